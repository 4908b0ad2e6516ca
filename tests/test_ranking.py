"""The signals of a ranking, one by one: each is added with its weight, in units of the best match by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import recollect
from recollect.config import Config
from recollect.errors import ConfigError
from recollect.records import Message, Note, Record
from recollect.search.events import with_event
from recollect.search.filters import Filter
from recollect.search.index.index import Index
from recollect.search.question import Question
from recollect.search.ranking import Ranking, rank_documents
from recollect.search.weights import Weights
from recollect.testing import MemoryStore

NOW = datetime(2023, 7, 12, 15, 30, tzinfo=timezone.utc)


def note(name: str, text: str, **more: Any) -> Note:
    values: dict[str, Any] = {"created_at": NOW, "updated_at": NOW, "valid_from": NOW} | more
    return Note(id=f"note-{name}", content=text, **values)


def message(name: str, text: str, said: datetime = NOW, **more: Any) -> Message:
    values: dict[str, Any] = {"created_at": NOW, "updated_at": NOW, "valid_from": said, "session": "s"} | more
    return Message(id=f"message-{name}", content=text, **values)


def index_of(records: Sequence[Record]) -> Index:
    index = Index()
    for record in records:
        index.put(record)
    return index


def ranked(records: Sequence[Record], text: str, most: int = 50, **more: Any) -> tuple[list[str], Ranking]:
    index = index_of(records)
    question = Question.of(text, NOW, index.names())
    ranking = rank_documents(index, question, index.select(Filter()), most, **more)
    names = [name.partition("-")[2] for name in index.ids(ranking.numbers)]
    added = np.sum(list(ranking.signals.values()), axis=0) if len(names) else np.zeros(0)
    assert ranking.totals == pytest.approx(added, abs=1e-5)
    assert all(len(values) == len(names) for values in ranking.signals.values())
    assert (np.diff(ranking.totals) <= 0).all()
    return names, ranking


def test_S1_where_only_words_speak_the_sum_is_the_plain_score() -> None:
    records = [note("a", "zorvexx"), note("b", "zorvexx quilamx dulganx"), note("c", "quilamx")]
    names, ranking = ranked(records, "zorvexx")
    assert names == ["a", "b"]
    plain = index_of(records).scores(["zorvexx"])
    assert ranking.totals.tolist() == plain[:2].tolist()
    assert not ranking.signals["importance"].any() and not ranking.signals["confidence"].any()


def test_S1_of_equals_the_later_said_comes_first_then_the_smaller_id() -> None:
    texts = [note(f"{n}", "zorvexx", valid_from=NOW + timedelta(days=n % 3)) for n in range(9)]
    names, _ = ranked(texts, "zorvexx")
    assert names == ["2", "5", "8", "1", "4", "7", "0", "3", "6"]
    for most in range(1, 10):
        assert ranked(texts, "zorvexx", most)[0] == names[:most]
    assert ranked(texts[::-1], "zorvexx", 4)[0] == names[:4]


def test_S1_nothing_asked_and_nothing_there() -> None:
    assert ranked([note("a", "zorvexx")], "")[0] == []
    assert ranked([], "zorvexx")[0] == []
    assert ranked([note("a", "zorvexx")], "quilamx")[0] == []


def test_S1_of_very_many_words_the_rarest_count() -> None:
    others = " ".join(f"w{n}" for n in range(300))
    records = [note("rare", "hysjubx"), note("plain", "zorvexx")] + [note(f"{n}", others) for n in range(5)]
    names, _ = ranked(records, f"{others} hysjubx")
    assert "rare" in names and "plain" not in names


@pytest.mark.parametrize(("name", "high", "low"), [("importance", 0.9, 0.1), ("confidence", 1.0, 0.2)])
def test_S5_importance_and_confidence_add_to_equals(name: str, high: float, low: float) -> None:
    records = [note("low", "zorvexx", **{name: low}), note("high", "zorvexx", **{name: high})]
    names, ranking = ranked(records, "zorvexx")
    assert names == ["high", "low"]
    unit = float(ranking.signals["words"].max())
    assert ranking.signals[name][0] - ranking.signals[name][1] == pytest.approx(0.2 * unit * (high - low), abs=1e-5)
    off = Weights().but({name: 0.0})
    assert ranked(records, "zorvexx", weights=off)[1].totals.tolist() == pytest.approx([unit, unit])


def test_S9_neighbours_share_their_words_and_records_that_are_no_messages_do_not() -> None:
    records = [
        message("a", "zorvexx", NOW), message("b", "dulganx", NOW + timedelta(minutes=1)),
        message("c", "brefirx", NOW + timedelta(minutes=2)), note("d", "hysjubx", session="s"),
    ]  # fmt: skip
    names, ranking = ranked(records, "zorvexx")
    assert names == ["a", "b"]
    own = float(ranking.signals["words"][0])
    assert ranking.signals["neighbours"].tolist() == pytest.approx([0.0, 0.4 * own])
    assert ranking.signals["session"].tolist() == pytest.approx([0.5 * own] * 2)
    off = Weights().but({"neighbours": 0.0})
    assert ranked(records, "zorvexx", weights=off)[0] == ["a"]


def test_S9_speaker_person_and_questions() -> None:
    records = [
        message("ann", "zorvexx", session="1", speaker="Ann Lee", role="user"),
        message("bob", "zorvexx", session="2", speaker="Bob", role="user"),
        message("bot", "zorvexx", session="3", role="assistant"),
        message("asking", "zorvexx?", session="4", speaker="Cleo", role="user"),
    ]
    names, ranking = ranked(records, "zorvexx")
    signals = {name: dict(zip(names, values.tolist(), strict=True)) for name, values in ranking.signals.items()}
    unit = signals["words"]["ann"]
    assert names[-1] == "bot" and "speaker" not in signals
    assert signals["person"] == pytest.approx({"ann": 0.75 * unit, "bob": 0.75 * unit, "asking": 0.75 * unit, "bot": 0})
    assert signals["asks"] == pytest.approx({"ann": 0, "bob": 0, "asking": -0.15 * unit, "bot": 0}, abs=1e-6)
    names, ranking = ranked(records, "Lee zorvexx")
    assert names[0] == "ann" and ranking.signals["speaker"].tolist() == pytest.approx([0.6 * unit, 0, 0, 0])
    names, ranking = ranked(records, "zorvexx, as you said")
    assert "person" not in ranking.signals
    assert "speaker" not in ranked(records, "Ann Bob zorvexx")[1].signals


def test_S9_times_count_by_how_near_they_are() -> None:
    days = (10, 11, 20, 40, 400)
    records = [note(f"{day}", "zorvexx", valid_from=NOW - timedelta(days=day)) for day in days]
    names, ranking = ranked(records, "zorvexx 2023-07-02")
    assert names == ["10", "11", "20", "40", "400"]
    near = ranking.signals["date"] / (0.75 * ranking.signals["words"][0])
    assert near[0] == pytest.approx(1.0) and 0.05 < near[1] < 1 and near[2:].tolist() == [0, 0, 0]
    assert ranked(records, "2023-07-02")[0] == ["10", "11"]
    records = [note("said", "zorvexx"), note("tells", "zorvexx on 2023-03-03")]
    names, ranking = ranked(records, "zorvexx on 3 March 2023")
    assert names == ["tells", "said"] and ranking.signals["event"][0] > 0 == ranking.signals["event"][1]
    names, ranking = ranked(records, "when was zorvexx?")
    assert names == ["tells", "said"] and ranking.signals["when"].tolist()[1] == 0


def test_S9_the_latest_is_preferred_only_if_asked_for() -> None:
    records = [note("old", "zorvexx", valid_from=NOW - timedelta(days=9)), note("new", "zorvexx quilamx")]
    assert ranked(records, "zorvexx")[0] == ["old", "new"]
    even = [note("old", "zorvexx", valid_from=NOW - timedelta(days=9)), note("new", "zorvexx")]
    _, ranking = ranked(even, "latest zorvexx")
    unit = float(ranking.signals["words"].max())
    assert ranking.signals["latest"].tolist() == pytest.approx([0.25 * unit, 0.0])


def similar(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def test_S2_similarity_counts_beside_words() -> None:
    records = [note("a", "zorvexx quilamx"), note("b", "zorvexx brefirx"), note("c", "dulganx"), note("d", "hysjubx")]
    names, ranking = ranked(records, "zorvexx", similarity=similar(0.1, 0.9, 0.8, 0.1))
    assert names[0] == "b" and set(names) == {"a", "b", "c"}
    unit = float(ranking.signals["words"].max())
    assert ranking.signals["vector"][0] == pytest.approx(unit)
    names, _ = ranked(records, "nothing known", similarity=similar(0.1, 0.9, 0.8, 0.1))
    assert names == ["b", "c"]


def test_S2_what_has_no_vector_stands_by_its_words() -> None:
    records = [note("a", "zorvexx quilamx"), note("b", "zorvexx brefirx dulganx")]
    nan = float("nan")
    names, ranking = ranked(records, "zorvexx", similarity=similar(nan, 0.5))
    assert names == ["a", "b"] and np.isfinite(ranking.totals).all()
    names, ranking = ranked(records, "zorvexx", similarity=similar(nan, nan))
    assert names == ["a", "b"] and np.isfinite(ranking.totals).all()


def test_S2_without_a_weight_vectors_change_nothing() -> None:
    records = [note("a", "zorvexx quilamx"), note("b", "zorvexx"), note("c", "dulganx")]
    plain = ranked(records, "zorvexx")
    without = ranked(records, "zorvexx", similarity=similar(0.1, 0.2, 0.9), weights=Weights().but({"vector": 0.0}))
    assert without[0] == plain[0] and without[1].totals.tolist() == plain[1].totals.tolist()


def test_S1_only_what_fits_is_ranked_and_measured_by() -> None:
    index = index_of([note("a", "zorvexx zorvexx", tags=("x",)), note("b", "zorvexx quilamx", tags=("y",))])
    question = Question.of("zorvexx", NOW)
    ranking = rank_documents(index, question, index.select(Filter(tags=("y",))), 10)
    assert index.ids(ranking.numbers) == ["note-b"]


def test_S9_the_time_of_an_event_is_looked_up() -> None:
    party, day = datetime(2023, 5, 14, 22, tzinfo=timezone.utc), timedelta(days=1)
    index = index_of([message("a", "My birthday party was great", party), message("b", "I bought a kite", party - day)])
    fits = index.select(Filter())
    question = Question.of("What did I buy the day before my birthday party?", NOW)
    asked = with_event(index, question, fits, NOW, Weights())
    [span] = asked.spans
    assert span.start == datetime(2023, 5, 13, tzinfo=timezone.utc) and span.end == span.start + day
    assert asked.words == ("buy",) and asked.text == question.text
    unknown = Question.of("What did I buy the day before the eclipse?", NOW)
    assert with_event(index, unknown, fits, NOW, Weights()) == unknown
    plain = Question.of("What did I buy?", NOW)
    assert with_event(index, plain, fits, NOW, Weights()) is plain


def test_S2_weights_are_set_by_name() -> None:
    names = [f.name for f in fields(Weights)]
    changed = Weights().but(dict.fromkeys(names, 0.25))
    assert all(getattr(changed, name) == 0.25 for name in names)
    assert Config(weights=" vector = 1 , date=0.5,").weight_changes() == {"vector": 1.0, "date": 0.5}
    with pytest.raises(ConfigError, match=r"weights.*'vektor'.*vector"):
        Weights().but({"vektor": 1.0})
    for wrong in ("vector", "=1", "vector=", "vector=a"):
        with pytest.raises(ConfigError, match="weights"):
            Config(weights=wrong)


def test_S5_a_fact_keeps_its_plain_score_in_a_memory_that_holds_conversations() -> None:
    memory = recollect.open(MemoryStore()).user("u1")
    memory.remember("Grows tulips behind the house")
    for number in range(3):
        memory.say(f"Something about tulips, number {number}", session="s")
        memory.say("Indeed", role="assistant", session="s")
    (hit,) = memory.search("tulips")
    assert set(hit.signals) == {"words"} and hit.raw_score == pytest.approx(hit.signals["words"])
    assert {"session", "person"} <= set(memory.search("tulips", include_conversation=True)[0].signals)
