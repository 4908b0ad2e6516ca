"""What recall must do wherever a memory is kept, through the public API. Inherited by the tests of each deployment."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import recollect
from recollect import InvalidInputError, Memory, Message, Recollect, Record, Updated, Written
from recollect.errors import ConfigError
from recollect.records import KINDS, Hit, Hits
from recollect.search.index.postings import word_hash
from recollect.search.passages import indexed_text
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.embedding import HashEmbedder
from recollect.text import terms
from recollect.userid import folder_name
from tests.fakes.embedding_server import EmbeddingServer

SYLLABLES = ("zor", "vex", "qui", "lam", "bre", "tok", "fir", "dul", "gan", "wop", "hys", "jub")
INVENTED = [first + second + "x" for first in SYLLABLES for second in SYLLABLES]
"""Words of no language, so that no stop word, no synonym and no date is among them."""


class Home:
    """Where a memory is kept. It can be opened many times; whatever is open is closed at the end."""

    def __init__(self, where: str | Path | MemoryStore, clock: FrozenClock, folder: Path | None = None) -> None:
        self.where = where
        self.clock = clock
        self.folder = folder
        self._opened = ExitStack()

    def open(self, **settings: Any) -> Recollect:
        files = None if self.where == self.folder else self.folder
        app = recollect.open(self.where, files=files, clock=self.clock, **settings)
        return self._opened.enter_context(app)

    def reopen(self, **settings: Any) -> Recollect:
        """As another process would, after this one has ended. A store in memory ends with its process, so it stays."""
        if not isinstance(self.where, MemoryStore):
            self.close()
        return self.open(**settings)

    def close(self) -> None:
        self._opened.close()

    def memory_md(self, user: str) -> Path:
        assert self.folder is not None
        return self.folder / folder_name(user) / "MEMORY.md"

    def snapshot(self, user: str) -> Path:
        assert self.folder is not None
        return self.folder / folder_name(user) / "index" / "words.idx"


def written(outcome: recollect.Outcome) -> Record:
    assert isinstance(outcome, Written), outcome
    return outcome.record


def contents(hits: Sequence[Hit]) -> list[str]:
    return [hit.record.content for hit in hits]


def told(hits: Sequence[Hit]) -> list[tuple[Any, ...]]:
    """All that a search says, without the ids."""
    return [
        (hit.record.kind, hit.record.text, hit.score, hit.raw_score, hit.words, hit.signals, hit.passage, hit.why)
        for hit in hits
    ]


def until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something that a background thread does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def some_text(rng: random.Random, most: int = 30) -> str:
    return " ".join(INVENTED[min(int(rng.expovariate(0.06)), 143)] for _ in range(rng.randrange(3, most)))


def bm25(memory: Memory, query: str, k1: float = 1.5, b: float = 0.75) -> dict[str, float]:
    """The seeds' formula over everything active, by id; only what has one of the words."""
    records = memory.read()
    bags = {record.id: Counter(terms(indexed_text(record))) for record in records}
    average = sum(bag.total() for bag in bags.values()) / max(len(bags), 1)
    scores: dict[str, float] = {}
    for record_id, bag in bags.items():
        for word in terms(query):
            if often := bag[word]:
                holding = sum(word in other for other in bags.values())
                idf = math.log((len(bags) - holding + 0.5) / (holding + 0.5) + 1)
                gained = idf * often * (k1 + 1) / (often + k1 * (1 - b + b * bag.total() / average))
                scores[record_id] = scores.get(record_id, 0.0) + gained
    return scores


def assert_ranked_by_the_formula(memory: Memory, query: str, k1: float = 1.5, b: float = 0.75) -> None:
    hits = memory.search(query, limit=10_000)
    wanted = bm25(memory, query, k1, b)
    assert {hit.record.id: hit.raw_score for hit in hits} == pytest.approx(wanted, rel=1e-5)
    order = [(-hit.raw_score, -hit.record.valid_from.timestamp(), hit.record.id) for hit in hits]
    assert order == sorted(order)
    for better, worse in pairwise(hits):
        assert wanted[better.record.id] >= wanted[worse.record.id] * (1 - 1e-5)


def a_life(memory: Memory, clock: FrozenClock, rng: random.Random, steps: int) -> None:
    """Facts and notes are written, changed, forgotten, brought back, merged and erased."""
    for _ in range(steps):
        clock.tick(seconds=rng.randrange(3))
        active = memory.read()
        dice = rng.random()
        if dice < 0.55 or len(active) < 4:
            if rng.random() < 0.5:
                memory.remember(some_text(rng))
            else:
                memory.note(some_text(rng), title=rng.choice((None, some_text(rng, 5))))
        elif dice < 0.75:
            memory.update(rng.choice(active).id, some_text(rng))
        elif dice < 0.87:
            memory.forget(rng.choice(active).id)
        elif dice < 0.93:
            memory.erase(rng.choice(memory.read(status="all")).id)
        elif dice < 0.97:
            notes = [record.id for record in active if record.kind == "note"]
            if len(notes) > 1:
                memory.merge(rng.sample(notes, 2), some_text(rng))
        else:
            archived = memory.read(status="archived")
            entries = [memory.history(record.id)[-1] for record in archived]
            if entries:
                memory.undo(rng.choice(entries).seq)


def every_kind(memory: Memory, clock: FrozenClock) -> None:
    """Records of every kind and state; each has the word "zorvexx" and a text of its own."""
    rng = random.Random(7)
    number = 0

    def text() -> str:
        nonlocal number
        number += 1
        clock.tick(hours=5)
        return f"zorvexx {INVENTED[10 + number]} {some_text(rng, 6)}"

    sources = ("explicit", "discussion", "discussion:42", "discussions", "tool:web")
    tags = ((), ("red",), ("red", "blue"), ("blue",))
    for n in range(12):
        common: dict[str, Any] = {"source": sources[n % 5], "tags": tags[n % 4]}
        acting = memory.acting(session=("one", "two", "three")[n % 3])
        acting.remember(text(), type=("skill", "trait", "opinion")[n % 3], **common)
        acting.remember(text(), category=("preference", "key_fact", "reading_history")[n % 3], **common)
        acting.note(text(), **common)
        acting.observe(text(), ("finding", "insight", "lesson")[n % 3], **common)
        if n % 2:
            memory.episode(text(), text(), tags=tags[n % 4], importance=0.5)
            memory.jot(text(), source=sources[n % 5])
        memory.say(text(), session=("one", "two")[n % 2], speaker=(None, "Ann Lee", "Bob")[n % 3], role="user")
        memory.set_scratch(f"zorvexx.{n}", text())
    facts = memory.read(kind="fact")
    for fact in facts[::5]:
        memory.forget(fact.id)
    memory.forget(facts[1].id, replaced_by=facts[2].id)
    memory.remember(text(), expires_at=clock() - timedelta(seconds=1))
    memory.remember(text(), expires_at=clock() + timedelta(days=1))


class Own:
    """An embedder as users write one: it can be held up, and it can be broken."""

    def __init__(self, name: str = "own", dimensions: int = 64) -> None:
        self.name = name
        self.dimensions = dimensions
        self.answer: Any = None
        self.held = ""
        self.go_on = threading.Event()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        if self.held and any(self.held in text for text in texts):
            self.go_on.wait(60)
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            found: NDArray[np.float32] = self.answer
            return found
        return HashEmbedder(self.dimensions).embed(texts)


def vectors(memory: Memory, embedder: str) -> set[str]:
    """The ids of the records that have a vector."""
    with memory._user_memory.user.read() as reader:
        return {row.record_id for row in reader.vectors(embedder)}


class RecallContract:
    """Subclass it and provide the fixture ``home``."""

    @pytest.fixture
    def clock(self) -> FrozenClock:
        return FrozenClock()

    @pytest.fixture
    def home(self, clock: FrozenClock) -> Iterator[Home]:
        raise NotImplementedError

    @pytest.fixture
    def app(self, home: Home) -> Recollect:
        return home.open()

    @pytest.fixture
    def memory(self, app: Recollect) -> Iterator[Memory]:
        memory = app.user("u1")
        yield memory
        assert memory.verify() == []

    # S1: the formula

    @pytest.mark.everyday(1)
    @pytest.mark.parametrize("seed", [1, 2])
    def test_S1_words_rank_as_the_formula_says_whatever_happened_before(
        self, home: Home, clock: FrozenClock, seed: int
    ) -> None:
        rng = random.Random(seed)
        memory = home.open().user("u1")
        asked = [" ".join(rng.sample(INVENTED[:40], rng.randrange(1, 5))) for _ in range(6)]
        with memory.batch() as batch:
            a_life(batch, clock, rng, 30)
            for query in asked:
                assert_ranked_by_the_formula(batch, query)
        for _ in range(3):
            with memory.batch() as batch:
                a_life(batch, clock, rng, 15)
            for query in asked:
                assert_ranked_by_the_formula(memory, query)
        before = [told(memory.search(query, limit=20)) for query in asked]
        assert any(before)
        assert memory.rebuild_index() == len(memory.read(status="all"))
        memory = home.reopen().user("u1")
        assert [told(memory.search(query, limit=20)) for query in asked] == before
        a_life(memory, clock, rng, 5)
        for query in asked:
            assert_ranked_by_the_formula(memory, query)

    def test_S1_the_constants_of_the_formula_are_settings(self, home: Home, clock: FrozenClock) -> None:
        memory = home.open().user("u1")
        with memory.batch() as batch:
            a_life(batch, clock, random.Random(3), 40)
        found = []
        for k1, b in ((1.5, 0.75), (0.9, 0.3), (0.0, 0.0), (3.0, 1.0)):
            memory = home.reopen(bm25_k1=k1, bm25_b=b).user("u1")
            for query in (INVENTED[0], f"{INVENTED[1]} {INVENTED[2]} {INVENTED[5]}"):
                assert_ranked_by_the_formula(memory, query, k1, b)
                found.append([hit.raw_score for hit in memory.search(query, limit=100)])
            memory.rebuild_index()  # so that what is saved has been searched with other constants
        assert len({tuple(scores) for scores in found}) == len(found)

    def test_S1_a_word_asked_twice_counts_twice_and_what_has_no_word_is_not_found(self, memory: Memory) -> None:
        for text in ("zorvexx quilamx", "zorvexx brefirx", "quilamx dulganx"):
            memory.note(text)
        assert_ranked_by_the_formula(memory, "zorvexx zorvexx quilamx")
        assert memory.search("hysjubx") == []

    # S1: filters

    def test_S1_each_filter_and_all_together_choose_what_they_say(self, memory: Memory, clock: FrozenClock) -> None:
        start = clock()
        with memory.batch() as batch:
            every_kind(batch, clock)
        everything = memory.read(status="all")
        assert {record.kind for record in everything} == set(KINDS)
        assert {record.status for record in everything} == {"active", "archived", "superseded"}
        values: dict[str, list[Any]] = {
            "kinds": [(kind,) for kind in KINDS] + [("fact", "message"), ("note", "daily", "scratch")],
            "category": ["preference", "key_fact", "work_context", "finding", "lesson"],
            "type": ["skill", "trait", "relationship"],
            "tags": [("red",), ["blue", "red"], ("green",)],
            "source": ["explicit", "discussion", "discussion:42", "disc", "tool"],
            "session": ["one", "two", "nowhere"],
            "speaker": ["Ann Lee", "Bob", "Ann"],
            "status": ["active", "archived", "superseded", "all"],
            "since": [start, start + timedelta(days=6), (start + timedelta(days=9)).isoformat()],
            "until": [start, start + timedelta(days=6), (start + timedelta(days=9)).date()],
            "include_conversation": [True, False],
        }
        rng = random.Random(11)
        asked: list[dict[str, Any]] = [{}]
        asked += [{name: value} for name, options in values.items() for value in options]
        for _ in range(80):
            asked.append({name: rng.choice(values[name]) for name in rng.sample(sorted(values), rng.randrange(2, 5))})
        sizes = set()
        for filters in asked:
            wanted = {record.id for record in everything if fits(record, **filters)}
            found = [hit.record.id for hit in memory.search("zorvexx", limit=500, **filters)]
            assert len(found) == len(set(found)) and set(found) == wanted, filters
            sizes.add(len(found))
        assert len(sizes) > 20

    def test_S1_the_least_score_and_the_limit_cut_the_end_off(self, memory: Memory, clock: FrozenClock) -> None:
        with memory.batch() as batch:
            a_life(batch, clock, random.Random(5), 60)
        query = " ".join(INVENTED[:4])
        hits = memory.search(query, limit=1000)
        assert len(hits) > 12
        for least in (0.0, hits[3].score, hits[9].score, hits[9].score + 1e-9, 1.0):
            assert told(memory.search(query, limit=1000, min_score=least)) == told(
                [hit for hit in hits if hit.score >= least]
            )
        for limit in (1, 2, 7, len(hits), len(hits) + 1):
            assert told(memory.search(query, limit=limit)) == told(hits[:limit])
        assert len(memory.search(query)) == 5

    def test_S1_a_wrong_filter_is_named(self, memory: Memory) -> None:
        memory.note("zorvexx")
        wrong: list[tuple[str, Any]] = [
            ("kinds", ("facts",)), ("kinds", (3,)), ("category", "food"), ("type", "hobby"), ("tags", "red"),
            ("tags", [3]), ("status", "gone"), ("status", ""), ("since", "yesterday-ish"), ("until", 5), ("now", "noon"),
            ("min_score", 1.5), ("min_score", "high"), ("min_score", float("nan")), ("limit", 0), ("limit", -1),
            ("limit", 2.5), ("limit", True), ("kinds", 5), ("source", 5), ("session", ["one"]), ("speaker", ["Ann"]),
        ]  # fmt: skip
        for field, value in wrong:
            with pytest.raises(InvalidInputError, match=rf"^{field}(\[0\])?: "):
                memory.search("zorvexx", **{field: value})

    # S3: read your writes

    def test_S3_what_was_just_written_is_found(self, memory: Memory) -> None:
        memory.remember("Pilot at Lufthansa", key="role")
        memory.remember("Collects vintage typewriters")
        memory.note("The wifi router stands in the cellar", title="Household")
        memory.observe("The endpoint answers in 40 milliseconds", "finding")
        memory.episode("Sailing weekend", "They anchored near Korčula.")
        memory.jot("Read six articles on hydrogen")
        memory.say("My parrot is called Columbo", session="s1", speaker="Ann")
        memory.set_scratch("endpoint.staging", "banana-split")
        for query, content in {
            "pilot": "Pilot at Lufthansa", "role": "Pilot at Lufthansa", "typewriter": "Collects vintage typewriters",
            "router": "The wifi router stands in the cellar", "household": "The wifi router stands in the cellar",
            "milliseconds": "The endpoint answers in 40 milliseconds", "anchored": "They anchored near Korčula.",
            "sailing": "They anchored near Korčula.", "hydrogen": "Read six articles on hydrogen",
        }.items():  # fmt: skip
            assert contents(memory.search(query)) == [content], query
        assert contents(memory.search("parrot", include_conversation=True)) == ["My parrot is called Columbo"]
        assert contents(memory.search("banana split", kinds=["scratch"])) == ["banana-split"]

    def test_S3_after_a_change_the_old_words_find_nothing(self, memory: Memory) -> None:
        record = written(memory.remember("Collects vintage typewriters"))
        note = written(memory.note("The router stands in the cellar"))
        assert memory.search("typewriters") and memory.search("router")
        memory.update(record.id, "Collects old gramophones")
        memory.update(note.id, "The modem hangs on the wall")
        assert memory.search("typewriters") == [] and memory.search("router cellar") == []
        assert contents(memory.search("gramophones")) == ["Collects old gramophones"]
        [hit] = memory.search("modem")
        assert (hit.record.id, hit.record.version) == (note.id, 2)

    def test_S3_forget_undo_and_merge(self, memory: Memory) -> None:
        first = written(memory.note("Ann restores harpsichords"))
        second = written(memory.note("Bob restores clavichords"))
        memory.forget(first.id)
        assert contents(memory.search("restores")) == [second.content]
        assert contents(memory.search("restores", status="archived")) == [first.content]
        memory.undo()
        assert set(contents(memory.search("restores"))) == {first.content, second.content}
        memory.merge([first.id, second.id], "Ann and Bob repair keyboards")
        assert memory.search("restores harpsichords") == []
        assert contents(memory.search("keyboards")) == ["Ann and Bob repair keyboards"]
        memory.undo()
        assert set(contents(memory.search("restores"))) == {first.content, second.content}
        assert memory.search("keyboards") == []

    def test_S3_what_is_erased_or_cleared_is_gone(self, memory: Memory) -> None:
        tea = written(memory.remember("Drinks oolong"))
        memory.note("Oolong costs nine euros")
        memory.say("Oolong again", session="s")
        assert len(memory.search("oolong", include_conversation=True)) == 3
        memory.erase(tea.id)
        found = memory.search("oolong", include_conversation=True, status="all")
        assert set(contents(found)) == {"Oolong costs nine euros", "Oolong again"}
        memory.clear()
        assert memory.search("oolong", kinds=KINDS, status="all") == []
        memory.note("Oolong is back")
        assert contents(memory.search("oolong", status="all")) == ["Oolong is back"]

    def test_S3_what_is_imported_is_found(self, app: Recollect, memory: Memory, tmp_path: Path) -> None:
        memory.remember("Plays the theremin")
        memory.note("The theremin needs no touch")
        memory.say("I bought a theremin", session="s")
        path = memory.export(f"{tmp_path}.zip")
        other = app.user("u2")
        assert other.search("theremin") == []
        other.import_(path)
        found = other.search("theremin", include_conversation=True, limit=10)
        assert told(found) == told(memory.search("theremin", include_conversation=True, limit=10)) and len(found) == 3

    def test_S3_a_batch_finds_what_it_did_and_a_failed_one_leaves_nothing(self, memory: Memory) -> None:
        kept = written(memory.note("Grows tulips"))
        gone = written(memory.note("Grows orchids"))
        with pytest.raises(RuntimeError, match="no"), memory.batch() as batch:
            batch.note("Grows dahlias")
            assert contents(batch.search("dahlias")) == ["Grows dahlias"]
            batch.update(kept.id, "Grows lilies")
            batch.erase(gone.id)
            assert set(contents(batch.search("grows"))) == {"Grows dahlias", "Grows lilies"}
            raise RuntimeError("no")
        assert set(contents(memory.search("grows"))) == {"Grows tulips", "Grows orchids"}
        assert memory.search("dahlias lilies") == []
        with memory.batch() as batch:
            batch.note("Grows dahlias")
            batch.forget(kept.id)
            assert set(contents(batch.search("grows"))) == {"Grows orchids", "Grows dahlias"}
        assert set(contents(memory.search("grows"))) == {"Grows orchids", "Grows dahlias"}

    def test_S3_a_search_beside_an_open_batch_sees_only_what_is_stored(self, memory: Memory) -> None:
        changed, forgotten = written(memory.note("Grows tulips")), written(memory.note("Grows roses"))
        seen: dict[str, list[str]] = {}

        def look() -> None:
            for word in ("grows", "tulips", "roses", "dahlias", "lilies"):
                seen[word] = sorted(contents(memory.search(word)))

        with memory.batch() as batch:
            batch.note("Grows dahlias")
            batch.update(changed.id, "Grows lilies")
            batch.forget(forgotten.id)
            assert len(batch.search("grows")) == 2
            other = threading.Thread(target=look)
            other.start()
            other.join(30)
            assert contents(batch.search("lilies")) == ["Grows lilies"] and batch.search("tulips roses") == []
        assert not other.is_alive()
        assert seen == {
            "grows": ["Grows roses", "Grows tulips"], "tulips": ["Grows tulips"], "roses": ["Grows roses"],
            "dahlias": [], "lilies": [],
        }  # fmt: skip
        assert sorted(contents(memory.search("grows"))) == ["Grows dahlias", "Grows lilies"]

    def test_S3_another_application_on_the_same_memory_finds_it(self, home: Home, memory: Memory) -> None:
        other = home.open().user("u1")
        note = written(memory.note("Grows tulips"))
        assert contents(other.search("tulips")) == ["Grows tulips"]
        other.update(note.id, "Grows dahlias")
        assert memory.search("tulips") == [] and contents(memory.search("dahlias")) == ["Grows dahlias"]
        memory.erase(note.id)
        assert other.search("dahlias", status="all") == []
        other.note("Grows lilies")
        memory.clear()
        other.note("Grows roses")
        assert contents(memory.search("grows")) == contents(other.search("grows")) == ["Grows roses"]

    # S4: long texts

    def test_S4_a_long_note_is_found_by_words_deep_inside(self, memory: Memory) -> None:
        rng = random.Random(4)
        sentences = [f"{some_text(rng, 15).capitalize()}." for _ in range(650)]
        sentences[480] = "The spare key hangs behind the aquarium."
        text = " ".join(sentences)
        assert len(text.split()) > 5000
        long = written(memory.note(text, title="House book"))
        memory.note("An aquarium needs a filter")
        hits = memory.search("Where is the spare key? Near the aquarium?", limit=10)
        assert hits[0].record == long and len(hits) == 2
        assert "The spare key hangs behind the aquarium." in hits[0].passage
        assert len(hits[0].passage.split()) <= 200 and hits[0].passage in indexed_text(long)
        assert {"spare", "key", "aquarium"} <= set(hits[0].words)
        hits = memory.search(INVENTED[0], limit=50)
        assert [hit.record.id for hit in hits] == [long.id] and INVENTED[0] in hits[0].passage.lower()
        hits = memory.search("house book", limit=50)
        assert [hit.record.id for hit in hits] == [long.id] and hits[0].passage.startswith("House book")
        short = memory.search("filter")[0]
        assert short.passage == short.record.content
        memory.update(long.id, text.replace("aquarium", "terrarium"))
        [hit] = memory.search("terrarium")
        assert "behind the terrarium" in hit.passage and len(memory.search("aquarium")) == 1

    # S5: scores and reasons

    def test_S5_scores_are_normal_and_made_of_their_signals(self, memory: Memory, clock: FrozenClock) -> None:
        a_conversation(memory)
        memory.remember("Anna takes the dog to the vet", importance=0.9)
        memory.note("The vet is closed on Fridays", importance=0.1)
        memory.observe("The dog limps", "finding", confidence=0.3)
        for query in (
            "dog vet",
            "When did Anna go to the vet last week?",
            "latest news of the dog",
            "what did you say",
        ):
            hits = memory.search(query, include_conversation=True, limit=50)
            assert hits and hits.mode == "words" and hits.note == ""
            scores = [hit.score for hit in hits]
            assert scores == sorted(scores, reverse=True)
            for hit in hits:
                assert 0 <= hit.score <= 1
                assert sum(hit.signals.values()) == pytest.approx(hit.raw_score, abs=1e-5)
                assert hit.score == pytest.approx(1 - 1 / (1 + hit.raw_score))
                assert all(hit.signals.values()) and hit.passage and (hit.why or not hit.words)

    def test_S5_a_hit_says_why(self, memory: Memory, clock: FrozenClock) -> None:
        memory.remember("The passport lies in the blue drawer", importance=0.9)
        [hit] = memory.search("Where are the passports?")
        assert hit.words == ("passports",) and hit.why == "passports; important"
        memory.say("Which vet do you go to?", session="a", speaker="Ann", said_at="2026-02-03T10:00:00Z")
        memory.say("Doctor Paws, since last May", session="a", speaker="Bob", said_at="2026-02-03T10:01:00Z")
        hits = memory.search("When did Bob go to the vet last week?", include_conversation=True)
        by_speaker = {hit.record.speaker: hit for hit in hits if isinstance(hit.record, Message)}
        bob, ann = by_speaker["Bob"], by_speaker["Ann"]
        for reason in (
            "what was said around it",
            "its conversation",
            "who said it",
            "the time asked about",
            "it tells when",
        ):
            assert reason in bob.why, reason
        assert "vet" in ann.words and "who said it" not in ann.why and "speaker" not in ann.signals
        hits = memory.search("most recent passport", kinds=["fact", "message"])
        assert "recent" in hits[0].signals or hits[0].why.startswith("passport")

    def test_S5_an_uncertain_or_unimportant_memory_is_still_found(self, memory: Memory) -> None:
        memory.note("zorvexx zorvexx zorvexx quilamx")
        memory.observe(f"{' '.join(INVENTED[80:100])} hysjubx", "finding", confidence=0.0)
        memory.note(f"{' '.join(INVENTED[100:120])} hysjubx", importance=0.0)
        hits = memory.search("zorvexx zorvexx zorvexx zorvexx quilamx hysjubx", limit=10)
        assert len(hits) == 3
        assert all(0 <= hit.score <= 1 for hit in hits)

    # S6: languages

    def test_S6_words_are_found_in_every_language(self, app: Recollect) -> None:
        missed = []
        for number, (query, text) in enumerate(IN_MANY_LANGUAGES):
            memory = app.user(number)
            with memory.batch() as batch:
                for each in (text, "zorvexx quilamx", "Рівне та Луцьк", "天気がいい"):
                    batch.note(each)
            if contents(memory.search(query)) != [text]:
                missed.append((query, text))
        assert missed == []

    def test_S6_a_word_is_found_as_it_stands_whatever_stands_beside_it(self, app: Recollect) -> None:
        missed = []
        for number, (query, text) in enumerate(AS_IT_STANDS):
            memory = app.user(number)
            memory.note(text)
            if contents(memory.search(query)) != [text]:
                missed.append((query, text))
        assert missed == []

    def test_S6_similar_identifiers_are_told_apart(self, memory: Memory) -> None:
        for text in (
            "Writes C++ at work",
            "Writes C at home",
            "Pays for GPT-4",
            "Pays for GPT-3",
            "Uses PG18",
            "Uses PG17",
        ):
            memory.note(text)
        for query, best in (("C++", "Writes C++ at work"), ("gpt-4", "Pays for GPT-4"), ("PG 17", "Uses PG17")):
            assert contents(memory.search(query))[0] == best

    def test_S6_the_language_can_be_set(self, home: Home) -> None:
        memory = home.open(language="de").user("u1")
        memory.note("Wohnungen")  # nothing in a single word tells its language
        memory.note("Die Wohnungen sind teuer")
        assert len(memory.search("Wohnung")) == 2
        memory.rebuild_index()
        memory = home.reopen(language="en").user("u1")  # words are made differently: the index is made anew
        assert contents(memory.search("Wohnungen"))
        assert memory.search("die") and contents(memory.search("die")) == ["Die Wohnungen sind teuer"]
        assert len(home.reopen(language="de").user("u1").search("Wohnung")) == 2

    # S9: conversations

    def test_S9_messages_are_found_only_if_asked_for(self, memory: Memory) -> None:
        memory.say("The heron nests by the pond", session="s1")
        memory.note("A heron eats fish")
        memory.remember("Photographed a heron in Norfolk")
        assert {hit.record.kind for hit in memory.search("heron")} == {"note", "fact"}
        assert {hit.record.kind for hit in memory.search("heron", include_conversation=True)} == {
            "note",
            "fact",
            "message",
        }
        assert {hit.record.kind for hit in memory.search("heron", kinds=("message",))} == {"message"}
        assert {hit.record.kind for hit in memory.search("heron", kinds=("note",), include_conversation=True)} == {
            "note"
        }

    def test_S9_the_same_text_is_shown_once_and_makes_room_for_others(self, memory: Memory) -> None:
        memory.note("The heron nests by the pond")
        memory.say("the HERON nests by the  pond", session="s1")
        memory.say("The heron nests by the pond", session="s2")
        memory.say("I saw a heron on the roof", session="s2")
        hits = memory.search("heron", include_conversation=True, limit=2)
        assert len(hits) == 2 and len({hit.record.content.lower().split()[0] for hit in hits}) == 2

    def test_S9_what_is_said_often_does_not_hide_the_rest(self, memory: Memory) -> None:
        with memory.batch() as batch:
            for number in range(30):
                batch.say("heron heron heron", session=f"s{number}")
            batch.note("There was one grey heron beside the mill last autumn")
        hits = memory.search("heron", include_conversation=True, limit=5)
        assert {hit.record.kind for hit in hits} == {"message", "note"} and len(hits) == 2

    def test_S9_an_answer_is_found_by_the_question_before_it(self, memory: Memory) -> None:
        memory.say("Which restaurant did we book for the anniversary?", session="s1", role="user")
        memory.say("Chez Nadine, at eight", session="s1", role="assistant")
        memory.say("It rained all day in Lisbon", session="s2", role="user")
        hits = memory.search("anniversary restaurant", include_conversation=True)
        assert set(contents(hits)) == {
            "Which restaurant did we book for the anniversary?",
            "Chez Nadine, at eight",
        }
        answer = next(hit for hit in hits if hit.record.content.startswith("Chez"))
        assert answer.words == () and answer.signals["neighbours"] > 0 and "what was said around it" in answer.why

    def test_S9_the_neighbours_are_those_of_the_session_in_the_order_of_time(self, memory: Memory) -> None:
        memory.say("third thing: dulganx", session="s1", said_at="2026-02-03")
        memory.say("first thing: zorvexx", session="s1", said_at="2026-02-01")
        memory.say("elsewhere: brefirx", session="s2", said_at="2026-02-02")
        middle = written(memory.say("second thing: quilamx", session="s1", said_at="2026-02-02"))
        found = memory.search("zorvexx", kinds=["message"])
        assert contents(found) == ["first thing: zorvexx", "second thing: quilamx"]
        memory.forget(middle.id)
        found = memory.search("zorvexx", kinds=["message"])
        assert contents(found) == ["first thing: zorvexx", "third thing: dulganx"]

    def test_S9_a_speaker_who_is_named_is_preferred(self, memory: Memory) -> None:
        for name in ("Ann", "Bob", "Cleo Smith"):
            memory.say(f"I adopted a {name[0]}ocker spaniel in spring", session="s1", speaker=name)
            memory.say("Lovely weather", session="s1", speaker="Dan")
        for name, asked in (("Ann", "Ann"), ("Bob", "bob"), ("Cleo Smith", "Cleo"), ("Bob", "Bob's")):
            hits = memory.search(f"Which spaniel did {asked} adopt in spring?", include_conversation=True)
            best = hits[0].record
            assert isinstance(best, Message) and best.speaker == name and "who said it" in hits[0].why
        assert {"Ann", "Bob"} <= {
            hit.record.speaker
            for hit in memory.search("Did Ann and Bob adopt a spaniel?", kinds=["message"])
            if isinstance(hit.record, Message)
        }
        memory.note("Bob is allergic to cats")
        assert contents(memory.search("Bob")) == ["Bob is allergic to cats"]

    def test_S9_what_the_person_said_comes_first_unless_the_assistant_is_asked(self, memory: Memory) -> None:
        memory.say("I love my hiking boots from Salomon", session="s1", role="user")
        memory.say("Nice. And the jacket?", session="s1", role="assistant")
        memory.say("For the Alps the hiking boots from Lowa are good", session="s2", role="assistant")
        memory.say("All right, I will look at them", session="s2", role="user")
        first = contents(memory.search("hiking boots", include_conversation=True))[0]
        assert first == "I love my hiking boots from Salomon"
        asked = memory.search("Which hiking boots for the Alps did you recommend?", include_conversation=True)
        assert contents(asked)[0] == "For the Alps the hiking boots from Lowa are good"
        assert "person" in memory.search("hiking boots", include_conversation=True)[0].signals
        assert all("person" not in hit.signals for hit in asked)

    def test_S9_a_session_can_be_asked_for(self, memory: Memory) -> None:
        for session in ("s1", "s2", "s10"):
            memory.say(f"We talked of herons in {session}", session=session)
        found = memory.search("herons", include_conversation=True, session="s1")
        assert contents(found) == ["We talked of herons in s1"]
        assert [hit.record.session for hit in found] == ["s1"]

    # time

    def test_S9_a_time_in_the_question_prefers_what_was_said_then(self, memory: Memory) -> None:
        days = {"2023-05-10": "alps", "2023-06-20": "pyrenees", "2023-07-05": "vosges", "2023-06-28": "jura"}
        for day, place in days.items():
            memory.say(f"We went hiking in the {place}", session=place, said_at=day)
        for query, place in {
            "Where did we go hiking in May 2023?": "alps", "Where did we go hiking last week?": "vosges",
            "Where did we go hiking two weeks ago?": "jura", "hiking on 20 June 2023": "pyrenees",
            "hiking 2023-05": "alps",
        }.items():  # fmt: skip
            hits = memory.search(query, include_conversation=True, now="2023-07-12T15:30:00Z")
            assert hits[0].record.session == place, query
            assert hits[0].signals["date"] > 0 and "the time asked about" in hits[0].why
            assert len(hits) == 4, query

    def test_S9_a_question_of_a_date_alone_finds_what_was_said_then(self, memory: Memory) -> None:
        memory.say("I planted an apple tree", session="a", said_at="2023-05-10T08:00:00Z")
        memory.say("The car broke down", session="b", said_at="2023-09-01T08:00:00Z")
        memory.remember("Moved to Graz", valid_from="2023-05-20")
        found = contents(memory.search("What happened in May 2023?", include_conversation=True, now="2023-10-01"))
        assert set(found[:2]) == {"I planted an apple tree", "Moved to Graz"} and "The car broke down" not in found
        found = contents(memory.search("a month ago", include_conversation=True, now="2023-10-01"))
        assert found[0] == "The car broke down"
        assert memory.search("in August 1999", include_conversation=True) == []

    def test_S9_the_words_that_only_ask_do_not_outweigh_the_date(self, memory: Memory) -> None:
        memory.say("I planted an apple tree", session="a", said_at="2023-05-10T08:00:00Z")
        memory.say("Tell me what happened to what he said", session="b", said_at="2021-09-01T08:00:00Z")
        for query in ("What happened in May 2023?", "What was said in May 2023?", "What did I tell you in May 2023?"):
            found = contents(memory.search(query, include_conversation=True, now="2023-10-01"))
            assert found[0] == "I planted an apple tree", query

    def test_S9_the_clock_is_now_unless_another_time_is_given(self, memory: Memory, clock: FrozenClock) -> None:
        memory.say("Bought a kayak", session="a", said_at=clock() - timedelta(days=1))
        memory.say("Bought a canoe", session="b", said_at=clock() - timedelta(days=61))
        assert contents(memory.search("What did I buy yesterday?", kinds=["message"]))[0] == "Bought a kayak"
        earlier = clock() - timedelta(days=60)
        assert (
            contents(memory.search("What did I buy yesterday?", kinds=["message"], now=earlier))[0] == "Bought a canoe"
        )

    def test_S9_a_text_that_speaks_of_the_time_counts_too(self, memory: Memory) -> None:
        memory.say("The concert was on 3 March 2023", session="a", said_at="2023-06-01")
        memory.say("The concert was loud", session="b", said_at="2023-06-01")
        hits = memory.search("Which concert was on 3 March 2023?", kinds=["message"], now="2023-07-01")
        assert hits[0].record.session == "a" and hits[0].signals["event"] > 0 and "event" not in hits[1].signals
        hits = memory.search("When was the concert?", kinds=["message"], now="2023-07-01")
        assert hits[0].record.session == "a" and "it tells when" in hits[0].why

    def test_S9_a_time_can_be_told_by_an_event(self, memory: Memory) -> None:
        memory.say("My birthday party was wonderful tonight", session="a", said_at="2023-05-14T22:00:00Z")
        memory.say("I went to the dentist and bought balloons", session="b", said_at="2023-05-13T12:00:00Z")
        memory.say("I went to the zoo", session="c", said_at="2023-05-02T12:00:00Z")
        memory.say("I went to the cinema", session="d", said_at="2023-05-25T12:00:00Z")
        query = "Where did I go the day before my birthday party?"
        hits = memory.search(query, include_conversation=True, now="2023-07-01")
        assert hits[0].record.session == "b" and hits[0].signals["date"] > 0

    @pytest.mark.parametrize("now", ["0001-01-01", "2023-07-01", "9999-12-31T23:59:59Z"])
    def test_S9_no_time_is_too_far_away(self, memory: Memory, now: str) -> None:
        memory.say("Yesterday I met my aunt at the party", session="s", said_at="0001-01-01")
        memory.say("Tomorrow I meet my uncle at the wedding", session="s", said_at="9999-12-31T23:59:59Z")
        memory.say("My birthday party was wonderful", session="s", said_at="2023-05-14")
        for query in (
            "last week with my aunt", "next year with my uncle", "two weeks ago", "since 2020", "until tomorrow",
            "the day before the party with my aunt", "the year before I met my aunt at the party",
            "ten years after the wedding of my uncle", "the day after I meet my uncle at the wedding",
            "9999 years before my birthday party", "9999 weeks after my birthday party",
        ):  # fmt: skip
            assert isinstance(memory.search(query, include_conversation=True, now=now), Hits), query

    def test_S9_what_is_current_is_asked_for(self, memory: Memory) -> None:
        memory.say("My zorvexx is in Rome", session="a", said_at="2023-01-01")
        memory.say("My zorvexx is in Oslo", session="b", said_at="2023-06-01")
        memory.say("My zorvexx is in Bern", session="c", said_at="2023-03-01")
        hits = memory.search("Where is my zorvexx currently?", kinds=["message"], now="2023-07-01")
        assert contents(hits)[0] == "My zorvexx is in Oslo" and "recent" in hits[0].why

    # S2: meaning

    def test_S2_words_and_vectors(self, home: Home) -> None:
        memory = home.open(embedder=HashEmbedder()).user("u1")
        with memory.batch() as batch:
            for text in ("The quick brown fox", "A lazy dog sleeps", "Foxes are quick"):
                batch.note(text)
            batch.say("quick quick", session="s")
        memory.embed()
        hits = memory.search("quick fox")
        assert (hits.mode, hits.note) == ("words and vectors", "")
        assert "similar in meaning" in hits[0].why and hits[0].signals["vector"] > 0
        assert len(vectors(memory, "hash:64")) == 4
        for hit in hits:
            assert sum(hit.signals.values()) == pytest.approx(hit.raw_score, abs=1e-5)
        assert memory.embed() == 0
        again = home.reopen(embedder=HashEmbedder()).user("u1")
        assert told(again.search("quick fox")) == told(hits)

    def test_S2_similar_texts_are_found_without_a_common_term(self, home: Home) -> None:
        memory = home.open(embedder=HashEmbedder()).user("u1")
        with memory.batch() as batch:
            batch.note("it is what it was")  # for search by words, all of it is stop words
            for n in range(20):
                batch.note(f"{INVENTED[n]} {INVENTED[n + 20]}")
        memory.embed()
        hits = memory.search("zorvexx and so it was what it is")
        assert "it is what it was" in contents(hits)

    def test_S2_until_there_are_vectors_words_decide_and_a_note_says_so(self, home: Home) -> None:
        embedder = Own()
        embedder.held = "fox"
        try:
            memory = home.open(embedder=embedder).user("u1")
            memory.note("The quick brown fox")
            hits = memory.search("quick")
            assert contents(hits) == ["The quick brown fox"]
            assert hits.mode == "words" and "not ready yet" in hits.note
            assert "similar in meaning" not in hits[0].why
        finally:
            embedder.go_on.set()
        until(lambda: memory.search("quick").mode == "words and vectors")
        assert memory.search("quick").note == ""

    def test_S2_vectors_are_made_in_the_background(self, home: Home) -> None:
        memory = home.open(embedder=HashEmbedder()).user("u1")
        with memory.batch() as batch:
            for n in range(150):
                batch.note(f"{INVENTED[n % 144]} number {n}")
        until(lambda: len(vectors(memory, "hash:64")) == 150)
        assert memory.search("zorvexx").mode == "words and vectors"
        note = written(memory.note("hello there"))
        until(lambda: note.id in vectors(memory, "hash:64"))

    def test_S2_no_write_is_overlooked_while_the_background_is_finishing(self, home: Home) -> None:
        app = home.open(embedder=HashEmbedder())
        for number in range(30):
            with app.user(number).batch() as batch:
                batch.search("fox")  # wakes the thread up, which finds nothing to do yet
                batch.note("The quick brown fox")
        until(lambda: all(vectors(app.user(number), "hash:64") for number in range(30)), 10)

    def test_S2_what_was_written_without_an_embedder_gets_its_vectors_later(self, home: Home) -> None:
        memory = home.open().user("u1")
        memory.note("The quick brown fox")
        with pytest.raises(ConfigError, match="MEMORY_EMBEDDER"):
            memory.embed()
        memory = home.reopen(embedder=HashEmbedder()).user("u1")
        assert memory.search("quick").mode == "words"
        until(lambda: memory.search("quick").mode == "words and vectors")

    def test_S2_what_has_no_vector_yet_is_not_behind(self, home: Home) -> None:
        embedder = Own()
        memory = home.open(embedder=embedder).user("u1")
        with memory.batch() as batch:
            batch.note("A quick fox in the snow of January")
            batch.note("A slow dog in the rain of March")
        memory.embed()
        embedder.held = "harbour"
        try:
            memory.note("quick quick fox, harbour")
            hits = memory.search("quick fox", limit=3)
            assert hits.mode == "words and vectors" and contents(hits)[0] == "quick quick fox, harbour"
            assert "similar in meaning" not in hits[0].why
        finally:
            embedder.go_on.set()

    def test_S2_another_embedder_takes_over_while_search_goes_on(self, home: Home) -> None:
        memory = home.open(embedder=HashEmbedder(64)).user("u1")
        for text in ("The quick brown fox", "A lazy dog"):
            memory.note(text)
        memory.embed()
        other = Own("other", 32)
        other.held = "fox"
        try:
            memory = home.reopen(embedder=other).user("u1")
            hits = memory.search("quick")
            assert contents(hits) == ["The quick brown fox"] and hits.mode == "words" and hits.note
        finally:
            other.go_on.set()
        other.held = ""
        memory.embed()
        assert memory.search("quick").mode == "words and vectors"
        assert len(vectors(memory, "other")) == 2 and vectors(memory, "hash:64") == set()

    @pytest.mark.parametrize("dimensions", [32, 48, 128])
    def test_S2_the_same_name_with_other_dimensions_does_not_break_search(self, home: Home, dimensions: int) -> None:
        memory = home.open(embedder=Own("own", 64)).user("u1")
        memory.note("The quick brown fox")
        memory.embed()
        memory = home.reopen(embedder=Own("own", dimensions)).user("u1")
        assert contents(memory.search("quick")) == ["The quick brown fox"]
        memory.note("A quick dog")
        assert len(memory.search("quick")) == 2

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            (ValueError("no"), "ValueError"), (np.zeros((1, 3), np.float32), "3 dimensions instead of 64"),
            (np.zeros((7, 64), np.float32), "row"), (np.full((1, 64), np.nan, np.float32), "not finite"),
            ("words", "did not return a table of numbers"),
        ],
    )  # fmt: skip
    def test_S2_a_broken_embedder_breaks_nothing_and_the_note_says_why(
        self, home: Home, answer: Any, problem: str
    ) -> None:
        embedder = Own()
        embedder.answer = answer
        memory = home.open(embedder=embedder).user("u1")
        note = written(memory.note("The quick brown fox"))
        until(lambda: problem in memory.search("quick").note)
        hits = memory.search("quick brown")
        assert contents(hits) == ["The quick brown fox"]
        assert hits.mode == "words" and hits.note.startswith("searched by words only")
        assert isinstance(memory.update(note.id, "The quick red fox"), Updated)
        assert contents(memory.search("red")) == ["The quick red fox"] and memory.search("brown") == []
        assert memory.verify() == []

    def test_S2_an_embedder_that_recovers_is_used_again(self, home: Home) -> None:
        embedder = Own()
        embedder.answer = OSError("gone")
        memory = home.open(embedder=embedder).user("u1")
        memory.note("The quick brown fox")
        until(lambda: "OSError" in memory.search("quick").note)
        embedder.answer = None
        until(lambda: memory.search("quick").mode == "words and vectors")
        assert memory.search("quick").note == ""

    def test_S2_a_server_that_hangs_is_not_waited_for(self, home: Home) -> None:
        with EmbeddingServer() as server:
            for _ in range(50):
                server.script("hang")
            app = home.open(embedder=f"{server.url}#m", embedder_timeout_ms=50)
            memory = app.user("u1")
            memory.note("The quick brown fox")
            hits = memory.search("quick")
            assert contents(hits) == ["The quick brown fox"]
            assert hits.mode == "words" and "took longer than 0.05 s" in hits.note
            memory.note("The quick red fox")
            assert len(memory.search("quick")) == 2
            app.close()

    def test_S2_a_server_gives_vectors(self, home: Home) -> None:
        with EmbeddingServer(key="key-1") as server:
            memory = home.open(embedder=f"{server.url}#m", embedder_key="key-1").user("u1")
            memory.note("The quick brown fox")
            memory.embed()
            assert memory.search("quick").mode == "words and vectors"
            memory = home.open(embedder=f"{server.url}#m", embedder_key="key-2").user("u1")
            hits = memory.search("quick brown")
            assert hits.mode == "words" and "MEMORY_EMBEDDER_KEY" in hits.note and "key-2" not in hits.note
            assert contents(hits) == ["The quick brown fox"]
            home.close()

    def test_S2_a_change_makes_a_new_vector_and_the_old_one_finds_nothing(self, home: Home) -> None:
        embedder = Own()
        memory = home.open(embedder=embedder).user("u1")
        with memory.batch() as batch:
            note = written(batch.note("it is what it was"))
            for n in range(20):
                batch.note(f"{INVENTED[n]} {INVENTED[n + 20]}")
        memory.embed()
        assert contents(memory.search("and what it was it is"))[0] == "it is what it was"
        embedder.held = "balloon"
        try:
            memory.update(note.id, "a red balloon")
            assert "a red balloon" not in contents(memory.search("and what it was it is"))
            memory.rebuild_index()
            assert "a red balloon" not in contents(memory.search("and what it was it is"))
        finally:
            embedder.go_on.set()
        memory.embed()
        assert contents(memory.search("red balloons, a red balloon"))[0] == "a red balloon"
        assert any("a red balloon" in text for text in embedder.texts)
        assert "a red balloon" not in contents(memory.search("and what it was it is"))

    def test_S2_a_vector_of_an_older_text_is_not_used_by_who_opens_the_memory(self, home: Home) -> None:
        memory = home.open(embedder=Own()).user("u1")
        with memory.batch() as batch:
            note = written(batch.note("it is what it was"))
            for n in range(20):
                batch.note(f"{INVENTED[n]} {INVENTED[n + 20]}")
        memory.embed()
        home.reopen().user("u1").update(note.id, "a red balloon")
        embedder = Own()
        embedder.held = "balloon"
        try:
            memory = home.reopen(embedder=embedder).user("u1")
            assert "a red balloon" not in contents(memory.search("and what it was it is"))
        finally:
            embedder.go_on.set()

    def test_S2_erasing_removes_the_vectors(self, home: Home) -> None:
        memory = home.open(embedder=HashEmbedder()).user("u1")
        fox = written(memory.note("The quick brown fox"))
        dog = written(memory.note("A lazy dog"))
        memory.embed()
        assert vectors(memory, "hash:64") == {fox.id, dog.id}
        memory.erase(fox.id)
        assert vectors(memory, "hash:64") == {dog.id}
        assert "The quick brown fox" not in contents(memory.search("the quick brown fox", status="all"))
        memory.clear()
        assert vectors(memory, "hash:64") == set() and memory.search("a lazy dog") == []
        memory.note("A lazy cat")
        memory.embed()
        assert contents(memory.search("a lazy dog")) == ["A lazy cat"]

    def test_R7_the_background_does_not_bring_an_erased_user_back(self, home: Home) -> None:
        embedder = Own()
        embedder.held = "fox"
        app = home.open(embedder=embedder)
        other = app.user("u2")
        try:
            app.user("u1").note("The quick brown fox")
            until(lambda: any("fox" in text for text in embedder.texts))
            app.erase_user("u1")
        finally:
            embedder.go_on.set()
        for text in ("A lazy dog", "A white cat"):  # those who wait take turns: after the second, u1 had its turn
            note = written(other.note(text))
            until(lambda: note.id in vectors(other, "own"))  # noqa: B023
        assert list(app.users()) == ["u2"] and not app.user("u1").exists

    def test_R4_a_search_makes_no_user(self, home: Home) -> None:
        app = home.open(embedder=HashEmbedder())
        assert app.user("u1").search("fox") == []
        other = app.user("u2")
        note = written(other.note("A lazy dog"))
        until(lambda: note.id in vectors(other, "hash:64"))
        assert list(app.users()) == ["u2"] and not app.user("u1").exists

    def test_S2_a_memory_in_use_goes_on_after_the_application_was_closed(self, home: Home) -> None:
        app = home.open(embedder=HashEmbedder())
        memory = app.user("u1")
        memory.note("The quick brown fox")
        memory.embed()
        app.close()
        assert contents(memory.search("quick")) == ["The quick brown fox"]
        memory.note("A quick dog")
        assert len(memory.search("quick")) == 2

    def test_S2_vectors_choose_only_what_the_filters_allow(self, home: Home, clock: FrozenClock) -> None:
        memory = home.open(embedder=HashEmbedder()).user("u1")
        with memory.batch() as batch:
            every_kind(batch, clock)
        memory.embed()
        everything = memory.read(status="all")
        for filters in (
            {},
            {"category": "finding"},
            {"tags": ("red",)},
            {"status": "archived"},
            {"kinds": ("message",)},
        ):
            wanted = {record.id for record in everything if fits(record, **filters)}
            found = {hit.record.id for hit in memory.search("zorvexx", limit=500, **filters)}
            assert found == wanted, filters

    def test_S2_the_weight_of_vectors_is_a_setting(self, home: Home, clock: FrozenClock) -> None:
        memory = home.open().user("u1")
        with memory.batch() as batch:
            a_life(batch, clock, random.Random(9), 40)
        queries = [" ".join(INVENTED[n : n + 3]) for n in range(0, 12, 3)]
        plain = [told(memory.search(query, limit=30)) for query in queries]
        memory = home.reopen(embedder=HashEmbedder()).user("u1")
        memory.embed()
        assert [told(memory.search(query, limit=30)) for query in queries] != plain
        memory = home.reopen(embedder=HashEmbedder(), weights="vector=0").user("u1")
        memory.embed()
        assert [told(memory.search(query, limit=30)) for query in queries] == plain

    def test_S2_a_wrong_weight_is_named(self, home: Home) -> None:
        for weights, problem in (
            ("vektor=1", "'vektor'"),
            ("vector", "vector=1,date=0.75"),
            ("vector=much", "vector=1"),
        ):
            with pytest.raises(ConfigError, match=f"weights.*{problem}"):
                home.open(weights=weights).user("u1").search("anything")

    # whatever is asked

    @pytest.mark.everyday(1)
    @pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "vectors"])
    def test_S1_whatever_is_asked_there_is_an_answer(self, home: Home, embedder: HashEmbedder | None) -> None:
        memory = home.open(embedder=embedder).user("u1")
        memory.note("The quick brown fox", tags=["a"])
        memory.say("It was quick?", session="s", speaker="Ann (she/her)")
        memory.say("C++ [a-z]* (", session="s", speaker="C++")
        if embedder is not None:
            memory.embed()
        for query in HOSTILE:
            hits = memory.search(query, include_conversation=True, limit=3)
            assert isinstance(hits, Hits) and len(hits) <= 3
            assert all(0 <= hit.score <= 1 for hit in hits)
        for query in ("", "   ", "\n\t", "\0", "\x07\x1b", "\ud800"):
            assert memory.search(query) == []
        assert contents(memory.search("quick\0fox")) == ["The quick brown fox"]
        assert contents(memory.search("\ud83d quick")) == ["The quick brown fox"]
        assert contents(memory.search("quick " + "filler " * 20_000))[0] == "The quick brown fox"
        for wrong in (None, 5, b"quick", ["quick"]):
            with pytest.raises(InvalidInputError, match=r"^query: "):
                memory.search(wrong)  # type: ignore[arg-type]

    def test_S1_nothing_is_found_where_nothing_is(self, app: Recollect) -> None:
        memory = app.user("nobody")
        assert memory.search("anything", kinds=KINDS, status="all") == []
        assert not memory.exists

    # modes, users, expiry

    def test_P7_incognito_recalls_nothing_and_a_pause_everything(self, memory: Memory) -> None:
        memory.note("The quick brown fox")
        memory.pause()
        assert contents(memory.search("fox")) == ["The quick brown fox"]
        memory.pause(incognito=True)
        hits = memory.search("fox", status="all")
        assert hits == [] and isinstance(hits, Hits)
        memory.resume()
        assert contents(memory.search("fox")) == ["The quick brown fox"]

    def test_R4_nothing_of_another_user_is_found_or_counted(self, app: Recollect, memory: Memory) -> None:
        with memory.batch() as batch:
            for text in ("The quick brown fox", "A lazy dog", "A quick dog"):
                batch.note(text)
        before = told(memory.search("quick fox"))
        other = app.user("u2")
        with other.batch() as batch:
            for n in range(20):
                batch.note(f"The quick fox number {n}")
            batch.say("hello fox", session="s", speaker="Quick")
        assert told(memory.search("quick fox")) == before
        assert told(memory.search("quick fox", include_conversation=True, session="s")) == []
        assert all("number" in text for text in contents(other.search("quick fox", limit=50)))
        app.erase_user("u2")
        assert app.user("u2").search("fox") == [] and told(memory.search("quick fox")) == before

    def test_R6_what_has_expired_is_not_found(self, memory: Memory, clock: FrozenClock) -> None:
        memory.remember("Stays at the Ritz until Sunday", expires_at=clock() + timedelta(days=3))
        memory.jot("Breakfast at the Ritz")
        memory.say("The Ritz is lovely", session="s")
        memory.note("The Ritz is in Paris")
        assert len(memory.search("Ritz", include_conversation=True)) == 4
        clock.tick(days=3)
        assert "Stays at the Ritz until Sunday" not in contents(memory.search("Ritz"))
        assert len(memory.search("Ritz", include_conversation=True)) == 3
        clock.tick(days=88)
        for _ in range(2):
            kept = contents(memory.search("Ritz", include_conversation=True, status="all"))
            assert sorted(kept) == ["The Ritz is in Paris", "The Ritz is lovely"]  # messages are kept by default
            memory.upkeep()


class RecallAcrossProcesses(RecallContract):
    """For stores that outlive their process."""

    def test_S3_another_process_finds_it_and_is_found(self, home: Home, memory: Memory) -> None:
        memory.note("Grows tulips")
        assert memory.search("dahlias") == []
        program = (
            "import json, sys, recollect\n"
            "where, files = json.loads(sys.argv[1])\n"
            "with recollect.open(where, files=files) as app:\n"
            "    memory = app.user('u1')\n"
            "    found = [hit.record.content for hit in memory.search('tulips')]\n"
            "    memory.update(memory.search('tulips')[0].record.id, 'Grows roses')\n"
            "    memory.note('Grows dahlias')\n"
            "    print(json.dumps(found + [hit.record.content for hit in memory.search('dahlias')]))\n"
        )
        files = None if home.where == home.folder or home.folder is None else str(home.folder)
        ran = subprocess.run(
            [sys.executable, "-c", program, json.dumps([str(home.where), files])],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout) == ["Grows tulips", "Grows dahlias"]
        assert contents(memory.search("dahlias")) == ["Grows dahlias"]
        assert memory.search("tulips") == [] and contents(memory.search("roses")) == ["Grows roses"]


class RecallWithFiles(RecallAcrossProcesses):
    """For memories a person can edit."""

    def test_S3_what_a_person_writes_into_a_file_is_found(self, home: Home, memory: Memory) -> None:
        memory.remember("Collects vintage typewriters", category="preference")
        assert contents(memory.search("typewriters")) == ["Collects vintage typewriters"]
        path = home.memory_md("u1")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("vintage typewriters", "old gramophones"), encoding="utf-8")
        assert memory.search("typewriters") == []
        assert contents(memory.search("gramophones")) == ["Collects old gramophones"]
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("- Collects old gramophones\n", "- Breeds alpacas\n"), encoding="utf-8")
        assert memory.search("gramophones") == [] and contents(memory.search("alpaca")) == ["Breeds alpacas"]
        memory.jot("Visited the aquarium")
        day = next((path.parent / "memory").glob("*.md"))
        day.write_text(day.read_text(encoding="utf-8").replace("aquarium", "planetarium"), encoding="utf-8")
        assert memory.search("aquarium") == [] and contents(memory.search("planetarium")) == ["Visited the planetarium"]

    def test_S1_the_next_process_goes_on_from_the_snapshot(self, home: Home, clock: FrozenClock) -> None:
        memory = home.open().user("u1")
        rng = random.Random(6)
        with memory.batch() as batch:
            for _ in range(260):
                batch.note(some_text(rng, 12))
            a_conversation(batch)
        query = " ".join(INVENTED[:3])
        before = told(memory.search(query, limit=30))
        talked = told(memory.search("What did Anna say of the dog?", include_conversation=True))
        assert talked and before
        home.close()
        saved = home.snapshot("u1").read_bytes()
        memory = home.open().user("u1")
        assert told(memory.search(query, limit=30)) == before
        assert told(memory.search("What did Anna say of the dog?", include_conversation=True)) == talked
        memory.note("hysjubx hysjubx")
        assert contents(memory.search("hysjubx"))[0] == "hysjubx hysjubx"
        home.close()
        for damaged in (b"", saved[: len(saved) // 2], saved[:100] + b"\0" * 50 + saved[150:]):
            home.snapshot("u1").write_bytes(damaged)
            memory = home.open().user("u1")
            assert len(memory.search(query, limit=30)) == len(before)
            assert contents(memory.search("hysjubx"))[0] == "hysjubx hysjubx"
            home.close()

    def test_R7_no_snapshot_knows_what_was_erased(self, home: Home) -> None:
        memory = home.open().user("u1")
        note = written(memory.note("hysjubx quilamx"))
        memory.note("zorvexx brefirx")
        memory.rebuild_index()
        path = home.snapshot("u1")
        marks = [word_hash(word).to_bytes(8, "little") for word in ("hysjubx", "quilamx")]
        assert all(mark in path.read_bytes() for mark in marks)
        memory.erase(note.id)
        assert not path.exists() or not any(mark in path.read_bytes() for mark in marks)
        memory = home.reopen().user("u1")
        assert memory.search("hysjubx", status="all") == [] and len(memory.search("zorvexx")) == 1


def a_conversation(memory: Memory) -> None:
    for day, session, speaker, role, text in (
        (1, "s1", "Anna", "user", "My dog Rex limps since yesterday"),
        (1, "s1", None, "assistant", "You should take the dog to a vet"),
        (1, "s1", "Anna", "user", "We go to the vet on Friday"),
        (5, "s2", "Bob", "user", "What did the vet say?"),
        (5, "s2", "Anna", "user", "It is only a thorn, and the dog is well"),
        (9, "s3", "Bob", "user", "I bought a kayak"),
    ):
        moment = datetime(2026, 2, day, 10, tzinfo=timezone.utc)
        memory.say(text, session=session, speaker=speaker, role=role, said_at=moment)


def fits(
    record: Record,
    *,
    kinds: Sequence[str] = (),
    include_conversation: bool = False,
    category: str | None = None,
    type: str | None = None,
    tags: Sequence[str] = (),
    source: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
    status: str = "active",
    since: Any = None,
    until: Any = None,
) -> bool:
    """The filters of search, said once more."""
    usual = {"fact", "note", "observation", "episode", "daily"} | ({"message"} if include_conversation else set())

    def moment(given: Any) -> datetime:
        found = datetime.fromisoformat(str(given))
        return found if found.tzinfo else found.replace(tzinfo=timezone.utc)

    return (
        record.kind in (kinds or usual)
        and status in ("all", record.status)
        and category in (None, record.category)
        and type in (None, record.type)
        and set(tags) <= set(record.tags)
        and (source is None or record.source == source or record.source.startswith(f"{source}:"))
        and session in (None, record.session)
        and speaker in (None, getattr(record, "speaker", None))
        and (since is None or record.valid_from >= moment(since))
        and (until is None or record.valid_from < moment(until))
    )


HOSTILE = [
    "x" * 100_000, "quick " * 20_000, " ".join(f"w{n}" for n in range(15_000)), "the and of is it was",
    "who what when where", "🙂🎸🇺🇦👩‍👩‍👧", "🙂" * 5000, ".*", "(", "[a-z", "\\", "(?i)", "a{1,99999}", "^$",
    "(a+)+$" + "a" * 5000, "'; DROP TABLE records; --", '" OR 1=1 --', "%_%", "$$", "{}", "%s %(name)s", "{0}",
    'fox AND NOT "quick', "fox*", "NEAR(fox quick)", "col:fox", "-fox", "fox | quick & !dog", "fox:*", "<->",
    "日本語 English العربية עברית Ελληνικά हिन्दी ไทย 한국어 русский", "a\u0300\u0301\u0302" * 3000,
    "\u202eright to left\u202c", "\u200b\u200b", "\ufeff", "\u2028", "\x00\x01\x02", "quick\x00fox", "\ud800",
    "a\udfff b", "\x1b[31mred\x1b[0m", "-" * 50_000, "?" * 50_000, "1" * 50_000, "1,2" * 20_000, "'" * 20_000,
    "a.b." * 20_000, "the day before " * 2000, "the day before the week after the month before my party",
    "yesterday " * 5000, "in May 2023 " * 3000, "99999999999 years ago", "in the year 99999", "0 days ago",
    "on 31 February 0000", "the day after 9999-12-31", "two weeks ago " * 500,
    "C++'s [Ann]'s (Ann) Ann? Ann (she/her)", "C++", "ANN", "\n".join(["line"] * 1000),
]  # fmt: skip
"""Queries that somebody's parser, pattern or database would trip over."""

IN_MANY_LANGUAGES = [
    ("running shoes", "She bought a running shoe yesterday"), ("study", "Anna studies physics in Graz"),
    ("adopted", "They are adopting a greyhound"), ("Wohnung", "Sie hat zwei Wohnungen in Köln"),
    ("koln", "Sie hat zwei Wohnungen in Köln"), ("die Häuser", "Er hat das Haus nicht gekauft"),
    ("pommes", "Elle ne mange pas la pomme rouge"), ("théâtre", "Il va au theatre avec ses enfants"),
    ("los gatos", "Mi hermana tiene un gato negro en la casa"), ("книга", "Вона читає цікаві книги про їжаків"),
    ("Одеса", "Живе в Одесі біля моря"), ("собака", "У него две собаки и кошка"), ("елка", "Ёлка стоит в углу"),
    ("lubi ogrody", "Ma ogród i dwa ogrody, nie lubi miasta"), ("zolw", "Żółw mieszka w ogrodzie"),
    ("kitap", "Ali kitapları çok seviyor ve okuyor"), ("İstanbul", "istanbul'da yaşıyor"),
    ("كتاب", "قرأت كتاب عن القهوة"), ("قهوة", "أحب القَهوة في الصباح"), ("θάλασσα", "Αγαπά τη ΘΑΛΑΣΣΑ και τον ήλιο"),
    ("किताब", "मुझे किताब पढ़ना पसंद है"), ("京都", "他去年搬到了京都市"), ("咖啡", "她每天早上喝咖啡"), ("ねこ", "ねこを二匹飼っています"),
    ("ラーメン", "東京でラーメンを食べました"), ("커피", "저는 커피를 좋아해요"), ("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า"),
    ("CAFÉ", "A cafe in Vienna"), ("naive", "a NAÏVE plan"), ("STRASSE", "Die Straße ist lang"),
    ("ｔｏｋｙｏ", "Tokyo tower"), ("PG 18", "We run PG18 in production"), ("PG18", "We run PG 18 in production"),
    ("C++", "Writes C++ at work"), ("node.js", "The server runs on Node.js"), ("v2.1.3", "Release v2.1.3 broke it"),
    ("gpt-4", "Pays for GPT-4 every month"), ("gpt", "Pays for GPT-4 every month"), ("1,200", "Rent is 1200 euros"),
    ("1200", "Rent is 1,200 euros"), ("3.11", "Uses Python 3.11 only"), ("🎸", "Plays 🎸 on Sundays"),
    ("don’t", "Don't call before ten"), ("user_id", "The column user_id is a text"),
    ("anna@example.com", "Write to anna@example.com"),
]  # fmt: skip
"""A query, and the text that it must find, mostly in another form of the word."""

AS_IT_STANDS = [
    ("Häuser", "Er hat die Häuser nicht gekauft"), ("nicht", "Er hat die Häuser nicht gekauft"),
    ("España", "Viajo por España con mi hermana"), ("hermana", "Viajo por España con mi hermana"),
    ("cafe", "Il va au cafe avec ses amis"), ("école", "Elle ne va pas à l'école"),
    ("kota", "Ma kota i dwa psy, nie lubi miasta"), ("ogrody", "Ma dwa ogrody, nie lubi miasta"),
    ("собаки", "У него две собаки"), ("книги", "Вона читає цікаві книги"), ("okuyor", "Ali kitap okuyor ve seviyor"),
    ("猫", "猫を二匹飼っています"), ("茶", "她喜欢喝茶"), ("차", "저는 차를 마셔요"), ("hiking", "We went hiking in the hills"),
    ("hiking im Wald mit der Familie", "We went hiking in the hills"),
]  # fmt: skip
"""A query with a word of the text, letter for letter; nothing in it need tell the language of the text."""
