"""Users too large to load: searched in PostgreSQL, with the answers that an index in memory gives."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

import recollect
from recollect import Duplicate, Memory, Recollect
from recollect.memory import partial_index, user_index
from recollect.records import Note, new_id
from recollect.search.embedders.embedder import pack
from recollect.store.postgres import PostgresStore
from recollect.testing import FrozenClock
from recollect.testing.embedding import HashEmbedder
from recollect.testing.postgres import PostgresServer
from tests.contracts.recall_contract import (
    INVENTED,
    Home,
    RecallContract,
    a_conversation,
    a_life,
    contents,
    every_kind,
    told,
    until,
    written,
)

NEVER = 10**9
MANY = 200  # vectors
QUESTIONS = (
    "zorvexx",
    f"{INVENTED[3]} {INVENTED[12]} {INVENTED[30]}",
    "dog vet",
    "When did Anna go to the vet last week?",
    "what did you say of the dog",
    "what did Bob say in January 2026?",
    "the latest about zorvexx",
    "nothing of this kind anywhere",
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"include_conversation": True},
    {"status": "all", "kinds": ("fact", "message")},
    {"session": "one", "include_conversation": True},
    {"speaker": "Bob", "include_conversation": True},
    {"tags": ("red",), "source": "discussion"},
)
TABLES = ("memory_large", "memory_words", "memory_terms")


class LargeHome(Home):
    """One where everybody is too large to load from the second record on."""

    def open(self, **settings: Any) -> Recollect:
        return super().open(**{"index_limit": 1, **settings})


@pytest.mark.slow
class TestRecall:
    """Some of what recall must do everywhere."""

    clock = RecallContract.clock
    app = RecallContract.app
    memory = RecallContract.memory

    @pytest.fixture
    def home(self, clock: FrozenClock, postgres_tables: str) -> Iterator[Home]:
        with closing(LargeHome(postgres_tables, clock)) as home:
            yield home

    test_S1_filters = RecallContract.test_S1_each_filter_and_all_together_choose_what_they_say
    test_S1_limits = RecallContract.test_S1_the_least_score_and_the_limit_cut_the_end_off
    test_S1_nothing = RecallContract.test_S1_nothing_is_found_where_nothing_is
    test_S2_vectors = RecallContract.test_S2_words_and_vectors
    test_S2_similar = RecallContract.test_S2_similar_texts_are_found_without_a_common_term
    test_S2_changes = RecallContract.test_S2_a_change_makes_a_new_vector_and_the_old_one_finds_nothing
    test_S2_erased = RecallContract.test_S2_erasing_removes_the_vectors
    test_S3_written = RecallContract.test_S3_what_was_just_written_is_found
    test_S3_changed = RecallContract.test_S3_after_a_change_the_old_words_find_nothing
    test_S3_undone = RecallContract.test_S3_forget_undo_and_merge
    test_S3_gone = RecallContract.test_S3_what_is_erased_or_cleared_is_gone
    test_S3_batch = RecallContract.test_S3_a_batch_finds_what_it_did_and_a_failed_one_leaves_nothing
    test_S3_beside = RecallContract.test_S3_a_search_beside_an_open_batch_sees_only_what_is_stored
    test_S3_others = RecallContract.test_S3_another_application_on_the_same_memory_finds_it
    test_S4_long = RecallContract.test_S4_a_long_note_is_found_by_words_deep_inside
    test_S6_language = RecallContract.test_S6_the_language_can_be_set
    test_S9_neighbours = RecallContract.test_S9_the_neighbours_are_those_of_the_session_in_the_order_of_time
    test_S9_speaker = RecallContract.test_S9_a_speaker_who_is_named_is_preferred
    test_S9_time = RecallContract.test_S9_a_question_of_a_date_alone_finds_what_was_said_then
    test_S9_event = RecallContract.test_S9_a_time_can_be_told_by_an_event
    test_S9_current = RecallContract.test_S9_what_is_current_is_asked_for
    test_R4_user = RecallContract.test_R4_nothing_of_another_user_is_found_or_counted
    test_R6_expired = RecallContract.test_R6_what_has_expired_is_not_found


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def opened(postgres_tables: str, clock: FrozenClock) -> Iterator[Callable[..., Recollect]]:
    """Opens the same memories with a limit: each time as another process would."""
    with ExitStack() as stack:

        def open_with(limit: int, **settings: Any) -> Recollect:
            return stack.enter_context(recollect.open(postgres_tables, clock=clock, index_limit=limit, **settings))

        yield open_with


@pytest.fixture
def sql(postgres_tables: str) -> Iterator[Callable[..., list[Any]]]:
    with psycopg.connect(postgres_tables, autocommit=True) as db:

        def run(statement: str, *values: Any) -> list[Any]:
            cursor = db.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


def lived(memory: Memory, clock: FrozenClock, steps: int = 40) -> None:
    with memory.batch() as batch:
        a_conversation(batch)
        every_kind(batch, clock)
        a_life(batch, clock, random.Random(4), steps)


def is_large(memory: Memory) -> bool:
    """Whether the last search loaded no index, as the database has the words."""
    return memory._user_memory.index.is_large and not memory._user_memory.index.is_loaded


def answers(memory: Memory, step: int = 1) -> list[Any]:
    asked = [(question, filters) for question in QUESTIONS for filters in FILTERS][::step]
    return [(question, filters, told(memory.search(question, limit=20, **filters))) for question, filters in asked]


def close_to(answer: Any) -> Any:
    """The same but for the last bits, which depend on the order in which numbers are added."""
    if isinstance(answer, float):
        return pytest.approx(answer, rel=1e-4, abs=1e-5)
    if isinstance(answer, dict):
        return {name: close_to(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return type(answer)(close_to(each) for each in answer)
    return answer


def assert_same(large: Memory, small: Memory, step: int = 7) -> None:
    found, wanted = answers(large, step), answers(small, step)
    assert is_large(large) and not is_large(small)
    assert sum(bool(hits) for _, _, hits in wanted) > len(wanted) / 3
    for one, other in zip(found, wanted, strict=True):
        assert one == close_to(other)


def test_D2_a_large_user_gets_the_answers_of_the_index(opened: Callable[..., Recollect], clock: FrozenClock) -> None:
    small = opened(NEVER).user("u1")
    lived(small, clock)
    assert_same(opened(50).user("u1"), small, step=1)


@pytest.mark.slow
def test_D2_and_so_with_vectors(opened: Callable[..., Recollect], clock: FrozenClock) -> None:
    small, large = (opened(limit, embedder=HashEmbedder()).user("u1") for limit in (NEVER, 50))
    lived(small, clock)
    large.embed()
    for question in QUESTIONS[:5]:
        found, wanted = (memory.search(question, limit=5, include_conversation=True) for memory in (large, small))
        assert (found.mode, found.note) == (wanted.mode, wanted.note) == ("words and vectors", "")
        assert contents(found)[:3] == contents(wanted)[:3]
    assert is_large(large)


def test_S3_every_change_is_seen_at_once_by_everyone(opened: Callable[..., Recollect], clock: FrozenClock) -> None:
    small, large, other = (opened(limit).user("u1") for limit in (NEVER, 20, 20))
    lived(small, clock, 10)
    note = written(large.note("a harbour of quince"))
    for reader in (other, large, small):
        assert contents(reader.search("quince harbour"))[:1] == ["a harbour of quince"]
    other.update(note.id, "a harbour of walnut")
    for reader in (large, other):
        assert reader.search("quince") == [] and contents(reader.search("walnut")) == ["a harbour of walnut"]
    large.undo()
    assert other.search("walnut") == [] and contents(other.search("quince")) == ["a harbour of quince"]
    small.forget(note.id)  # a process that keeps no words
    assert large.search("quince") == [] and len(large.search("quince", status="archived")) == 1
    with small.batch() as batch:
        a_life(batch, clock, random.Random(5), 20)
    assert_same(large, small)
    assert_same(other, small)


@pytest.mark.slow
def test_S3_within_a_batch_and_after_one_that_failed(opened: Callable[..., Recollect], clock: FrozenClock) -> None:
    large = opened(5).user("u1")
    lived(large, clock, 5)
    large.search("zorvexx")
    with pytest.raises(ZeroDivisionError), large.batch() as batch:
        batch.note("a quince that never was")
        assert contents(batch.search("quince")) == ["a quince that never was"]
        raise ZeroDivisionError
    assert large.search("quince") == [] and is_large(large)
    assert_same(large, opened(NEVER).user("u1"))


def test_P3_duplicates_are_recognised_without_loading_everything(
    opened: Callable[..., Recollect], clock: FrozenClock
) -> None:
    large = opened(20).user("u1")
    lived(large, clock)
    large.remember("Has a sister called Anna who lives in Berlin")
    fresh = opened(20).user("u1")
    assert isinstance(fresh.remember("Has a sister called Anna who lives in Berlin"), Duplicate)
    assert isinstance(fresh.remember("has a sister called Anna, who lives in Berlin."), Duplicate)
    written(fresh.remember("Has a brother called Otto who lives in Prague"))
    assert fresh._user_memory.index.is_large and not fresh._user_memory.index.is_loaded


def test_R7_erasing_leaves_nothing_of_the_words(
    opened: Callable[..., Recollect], clock: FrozenClock, sql: Callable[..., list[Any]]
) -> None:
    app = opened(5, embedder=HashEmbedder())
    memory = app.user("u1")
    lived(memory, clock, 10)
    memory.embed()
    memory.search("zorvexx")
    before = sql("SELECT term, passages FROM memory_terms ORDER BY 1")
    sums = sql("SELECT records, passages, words FROM memory_large")
    note = written(memory.note("quince marmalade, twice quince"))
    memory.embed()
    memory.note("another one")  # the write before it is taken in by now
    assert sql("SELECT count(*) FROM memory_words WHERE record_id = %s", note.id) == [(1,)]
    assert sql("SELECT count(*) FROM memory_meanings WHERE record_id = %s", note.id) == [(1,)]
    memory.erase(note.id)
    assert sql("SELECT count(*) FROM memory_words WHERE record_id = %s", note.id) == [(0,)]
    assert sql("SELECT count(*) FROM memory_meanings WHERE record_id = %s", note.id) == [(0,)]
    memory.erase(memory.read(kind="note", limit=1, newest_first=True)[0].id)
    assert sql("SELECT term, passages FROM memory_terms ORDER BY 1") == before
    assert sql("SELECT records, passages, words FROM memory_large") == sums
    memory.clear()
    assert sql("SELECT count(*) FROM memory_words") == sql("SELECT count(*) FROM memory_terms") == [(0,)]
    assert sql("SELECT records, passages, words FROM memory_large") in ([], [(0, 0, 0)])
    memory.note("once more")
    memory.note("and more")
    memory.search("more")
    app.erase_user("u1")
    for table in (*TABLES, "memory_meanings"):
        assert sql(f"SELECT count(*) FROM {table}") == [(0,)], table


def test_R4_words_of_one_user_say_nothing_of_another(
    opened: Callable[..., Recollect], sql: Callable[..., list[Any]]
) -> None:
    app, own = opened(1), dict(zip(("u1", "u2"), INVENTED, strict=False))
    for user in own:
        with app.user(user).batch() as batch:
            batch.note("quince harbour")
            batch.note(f"only of {user}: quince, {own[user]}")
        assert len(app.user(user).search("quince")) == 2
    assert app.user("u2").search(own["u1"]) == []
    assert sql("SELECT count(*) FROM memory_terms AS a JOIN memory_terms AS b USING (term) WHERE a.user_id <> b.user_id") \
        == [(0,)]  # fmt: skip
    kept = str(sql("SELECT terms::text FROM memory_words")) + str(sql("SELECT term FROM memory_terms"))
    assert "quinc" not in kept and INVENTED[0][:5] not in kept


def test_D2_who_grows_too_large_while_running_goes_over_in_steps_and_comes_back(
    opened: Callable[..., Recollect], sql: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_index, "_STEP", 10)
    memory = opened(30).user("u1")
    for n in range(30):
        memory.note(f"number {n} {INVENTED[n]}")
    assert len(memory.search("number", limit=100)) == 30
    assert memory._user_memory.index.is_loaded and sql("SELECT count(*) FROM memory_large") == [(0,)]
    memory.note("number 30")
    progress = []
    while not is_large(memory):
        assert len(memory.search("number", limit=100)) == 31  # whether in memory or not
        progress.append(sql("SELECT count(*) FROM memory_words")[0][0])
        assert len(progress) < 10
    assert progress == [10, 20, 30, 31]
    with memory.batch() as batch:
        for record in memory.read(limit=20):
            batch.erase(record.id)
    assert len(memory.search("number", limit=100)) == 11
    assert not is_large(memory) and sql("SELECT count(*) FROM memory_words") == [(0,)]
    assert len(memory.search("number", limit=100)) == 11


def test_D2_a_new_process_never_loads_what_is_too_large(
    opened: Callable[..., Recollect], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(opened(NEVER).user("u1"), clock)
    monkeypatch.setattr(user_index, "_STEP", 7)
    first = opened(20).user("u1")
    first.search("zorvexx")
    assert is_large(first)
    second = opened(20).user("u1")
    second.note("a first write, not a search")
    assert not second._user_memory.index.is_loaded
    assert_same(second, opened(NEVER).user("u1"))


def test_D2_other_rules_for_words_make_them_anew(
    opened: Callable[..., Recollect], sql: Callable[..., list[Any]]
) -> None:
    english = opened(1, language="en").user("u1")
    english.note("Die Häuser am Hafen")
    english.note("Running shoes")
    assert len(english.search("running shoe")) == 1 and is_large(english)
    [(before,)] = sql("SELECT life FROM memory_large")
    german = opened(1, language="de").user("u1")
    assert len(german.search("Haus Häfen")) == 1 and is_large(german)
    assert sql("SELECT life FROM memory_large") != [(before,)]
    german.rebuild_index()
    assert len(german.search("Haus Häfen")) == 1 and is_large(german)


def test_D2_vectors_need_no_extension_and_no_right_to_make_one(postgres: PostgresServer, clock: FrozenClock) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as db:
        db.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
        db.execute("CREATE DATABASE plain OWNER plain")
    url = f"postgresql://plain:plain@127.0.0.1:{postgres.port}/plain"
    with recollect.open(url, clock=clock, index_limit=1, embedder=HashEmbedder()) as app:
        memory = app.user("u1")
        for text in ("The quick brown fox", "A lazy dog sleeps"):
            memory.note(text)
        memory.embed()
        hits = memory.search("quick fox")
        assert contents(hits)[0] == "The quick brown fox" and is_large(memory)
        assert (hits.mode, hits.note) == ("words and vectors", "")
        assert isinstance(memory.remember("quick foxes are quick"), recollect.Written)
    with psycopg.connect(url) as db:
        assert db.execute("SELECT extname FROM pg_extension").fetchall() == [("plpgsql",)]


def test_S2_who_has_become_too_large_is_soon_compared_by_vectors(
    opened: Callable[..., Recollect], sql: Callable[..., list[Any]]
) -> None:
    embedder = HashEmbedder()
    small = opened(NEVER, embedder=embedder).user("u1")
    with small.batch() as batch:
        for n in range(10):
            batch.note(f"{INVENTED[n]} harbour")
    small.embed()
    assert sql("SELECT count(*) FROM memory_meanings") == [(0,)]
    large = opened(5, embedder=embedder).user("u1")
    large.search("harbour")  # and nothing is written
    until(lambda: sql("SELECT count(*) FROM memory_meanings") == [(10,)])


@pytest.mark.everyday(2)
@pytest.mark.parametrize("dimensions", [1, 7, 64, 1000, 5000])
def test_S2_vectors_of_any_size_are_compared(opened: Callable[..., Recollect], dimensions: int) -> None:
    memory = opened(1, embedder=HashEmbedder(dimensions)).user("u1")
    for text in ("quince harbour", "a lazy dog sleeps"):
        memory.note(text)
    memory.embed()
    hits = memory.search("quince harbour")
    assert contents(hits)[0] == "quince harbour" and hits.mode == "words and vectors" and is_large(memory)


@pytest.mark.slow
def test_D1_writers_and_searchers_at_once_miss_nothing(
    opened: Callable[..., Recollect], sql: Callable[..., list[Any]]
) -> None:
    apps = [opened(10) for _ in range(3)]
    for n in range(11):
        apps[0].user("u1").note(f"beginning {n}")
    failures: list[BaseException] = []

    def live(number: int) -> None:
        memory = apps[number % 3].user("u1")
        try:
            for n in range(6):
                memory.note(f"harbour {number} {INVENTED[6 * number + n]}")
                assert len(memory.search(INVENTED[6 * number + n])) == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=live, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    memory = opened(10).user("u1")
    memory.note("the end")
    assert len(memory.search("harbour", limit=100)) == 36 and is_large(memory)
    [(records, passages, words)] = sql("SELECT records, passages, words FROM memory_large")
    assert (records, passages) == (48, 48) or (records, passages) == (47, 47)  # the last one may still be apart
    assert sql("SELECT count(*), sum(length) FROM memory_words") == [(passages, words)]
    counted = (
        "SELECT term, count(*) FROM memory_words, unnest(tsvector_to_array(terms)) AS term WHERE length(term) = 16"
    )
    assert sql(f"{counted} GROUP BY term ORDER BY term") == sql("SELECT term, passages FROM memory_terms ORDER BY term")


def test_D1_another_process_finds_it_and_is_found(opened: Callable[..., Recollect], postgres_tables: str) -> None:
    memory = opened(3).user("u1")
    for n in range(5):
        memory.note(f"number {n}")
    assert len(memory.search("number")) == 5
    program = (
        "import recollect, sys\n"
        "with recollect.open(sys.argv[1], index_limit=3) as app:\n"
        "    memory = app.user('u1')\n"
        "    memory.note('a quince from elsewhere')\n"
        "    assert len(memory.search('number')) == 5\n"
        "    assert memory._user_memory.index.is_large and not memory._user_memory.index.is_loaded\n"
    )
    subprocess.run([sys.executable, "-c", program, postgres_tables], check=True, timeout=120)
    assert contents(memory.search("quince")) == ["a quince from elsewhere"]


def test_S1_odd_words_are_only_words(opened: Callable[..., Recollect]) -> None:
    memory = opened(1).user("u1")
    memory.note("another")
    for text in (
        "'; DROP TABLE memory_words; --",
        "a' | 'b",
        "\\ % %s {} :* <->",
        "\u202e\u0301 \ufffd",
        "𝔘𝔫𝔦 日本語 한국어",
        "x" * 5000,
    ):
        note = written(memory.note(f"harbour {text}"))
        assert memory.search(f"harbour {text}")[0].record.content == note.content
        assert is_large(memory)
        memory.erase(note.id)


def test_D1_where_nothing_can_be_written_search_goes_on(
    opened: Callable[..., Recollect], postgres_tables: str, clock: FrozenClock
) -> None:
    memory = opened(NEVER).user("u1")
    for n in range(12):
        memory.note(f"harbour {INVENTED[n]}")
    frozen = f"{postgres_tables}%20-cdefault_transaction_read_only%3Don"
    for is_prepared in (False, True):
        with recollect.open(frozen, clock=clock, index_limit=5) as app:
            reader = app.user("u1")
            assert len(reader.search("harbour", limit=50)) == len(memory.read())
            assert is_large(reader) == is_prepared
        opened(5).user("u1").search("harbour")
        memory.note(f"harbour {INVENTED[20]} which the words do not have yet")


def test_D1_a_process_killed_while_it_hands_over_the_words_loses_nothing(
    opened: Callable[..., Recollect], postgres_tables: str, sql: Callable[..., list[Any]]
) -> None:
    with opened(NEVER).user("u1").batch() as batch:
        for n in range(60):
            batch.note(f"harbour {n} {INVENTED[n]}")
    program = (
        "import os, recollect, sys\n"
        "from recollect.memory import partial_index, user_index\n"
        "user_index._STEP, worded, seen = 10, partial_index.index_passages, []\n"
        "def killed(*given):\n"
        "    seen.append(1)\n"
        "    return worded(*given) if len(seen) < 35 else os.kill(os.getpid(), 9)\n"
        "partial_index.index_passages = killed\n"
        "recollect.open(sys.argv[1], index_limit=5).user('u1').search('harbour')\n"
    )
    assert subprocess.run([sys.executable, "-c", program, postgres_tables], timeout=120).returncode == -9
    assert sql("SELECT complete, records, passages FROM memory_large") == [(False, 30, 30)]
    memory = opened(5).user("u1")
    assert len(memory.search("harbour", limit=100)) == 60 and is_large(memory)
    assert sql("SELECT complete, records, passages FROM memory_large") == [(True, 60, 60)]


def test_S4_a_text_of_more_words_than_are_kept(
    opened: Callable[..., Recollect], sql: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_index, "_MOST_TERMS", 30)
    monkeypatch.setattr(partial_index, "_MOST_MARKS", 20)
    memory = opened(1).user("u1")
    memory.note("another")
    long = ".".join(f"{chr(97 + n % 26)}{n:x}" for n in range(100))  # one word of many, so one passage
    written(memory.note(f"harbour {long}"))
    written(memory.note("quince"))
    assert [hit.record.content[:7] for hit in memory.search("harbour")] == ["harbour"]
    [(most,)] = sql("SELECT max(length(terms)) FROM memory_words")
    assert 30 + 20 <= most <= 2 * 30 + 20  # with those that are there twice
    assert isinstance(memory.note(f"harbour {long}"), Duplicate) and is_large(memory)


def test_S4_what_is_kept_of_a_passage_fits_into_a_tsvector(sql: Callable[..., list[Any]]) -> None:
    terms = [f"{n:016x}" for n in range(partial_index._MOST_TERMS + partial_index._MOST_MARKS)]
    several = [f"{term}2" for term in terms[: partial_index._MOST_TERMS]]
    kept = sql("SELECT length(%s::tsvector)", " ".join([*terms, *several]))
    assert kept == [(len(terms) + len(several),)]


def test_S4_a_word_said_very_often_beside_texts_without_words(opened: Callable[..., Recollect]) -> None:
    small, large = opened(NEVER).user("u1"), opened(1).user("u1")
    for text in ("!!!", "\u2764", "the of", "x y", ".".join(["ox"] * 66_000)):
        small.say(text, session="one")
    found, wanted = (memory.search("ox x", include_conversation=True) for memory in (large, small))
    assert told(found) == close_to(told(wanted)) and len(found) > 1 and is_large(large)


def test_S4_the_best_passage_of_a_long_text_is_the_one_shown(opened: Callable[..., Recollect]) -> None:
    small, large = opened(NEVER).user("u1"), opened(1).user("u1")
    parts = [" ".join([word] * 150) for word in ("harbour", "orchard", "quarry")]
    small.note("\n\n".join(parts))
    small.note("another")
    small.note("quarry quarry")
    for question in ("orchard", "quarry"):
        found, wanted = large.search(question), small.search(question)
        assert [hit.passage for hit in found] == [hit.passage for hit in wanted]
        assert [hit.raw_score for hit in found] == close_to([hit.raw_score for hit in wanted])
    assert is_large(large) and large.search("orchard")[0].passage == parts[1]


def test_S1_rebuilding_the_index_makes_the_words_anew(
    opened: Callable[..., Recollect],
    clock: FrozenClock,
    sql: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(user_index, "_STEP", 7)
    lived(opened(NEVER).user("u1"), clock, 10)
    memory = opened(10).user("u1")
    memory.search("zorvexx")
    kept = "SELECT record_id, passage, terms::text, counts FROM memory_words ORDER BY 1, 2"
    sums = "SELECT seq, complete, records, passages, words FROM memory_large"
    before, totals, terms = sql(kept), sql(sums), sql("SELECT term, passages FROM memory_terms ORDER BY 1")
    sql("UPDATE memory_words SET terms = '', counts = ''")
    sql("UPDATE memory_terms SET passages = 7")
    sql("DELETE FROM memory_words WHERE passage = 0 AND kind = 'note'")
    assert memory.rebuild_index() == totals[0][2]
    assert sql(kept) == before and sql(sums) == totals
    assert sql("SELECT term, passages FROM memory_terms ORDER BY 1") == terms
    assert_same(memory, opened(NEVER).user("u1"))


@pytest.mark.slow
def test_S1_rebuilding_what_was_only_begun_finishes_it(
    opened: Callable[..., Recollect], clock: FrozenClock, sql: Callable[..., list[Any]]
) -> None:
    lived(opened(NEVER).user("u1"), clock, 10)
    memory = opened(10).user("u1")
    memory.search("zorvexx")
    sql("UPDATE memory_large SET complete = false, seq = 3")
    memory.rebuild_index()
    assert sql("SELECT complete FROM memory_large") == [(True,)]
    memory.search("zorvexx")
    assert is_large(memory)


def test_R7_a_receipt_lists_the_words(opened: Callable[..., Recollect], clock: FrozenClock) -> None:
    app = opened(5, embedder=HashEmbedder())
    memory = app.user("u1")
    lived(memory, clock, 10)
    note = written(memory.note("quince marmalade"))
    memory.embed()
    memory.note("the write before it is taken in by now")
    places = memory.erase(note.id).receipt.places
    assert places["words"] == 1
    fresh = written(memory.note("nothing is kept of it yet"))
    assert "words" not in memory.erase(fresh.id).receipt.places
    memory.search("zorvexx")
    places = app.erase_user("u1").places
    assert places["words"] > 10 and places["vectors"] > 10


def test_F1_ranking_items_and_trends_load_nothing(opened: Callable[..., Recollect], clock: FrozenClock) -> None:
    with opened(NEVER).user("u1").batch() as batch:
        for n in range(30):
            batch.note(f"number {n} {INVENTED[n]}")
        batch.remember("Likes gardening and old maps")
        batch.remember("Dislikes football")
    wanted = opened(NEVER).user("u1").rank(["football news", "a walk", "gardening tips"])
    memory = opened(10).user("u1")
    found = memory.rank(["football news", "a walk", "gardening tips"])  # the first thing this process does
    assert is_large(memory)
    assert [(each.item, each.score) for each in found] == close_to([(each.item, each.score) for each in wanted])
    assert found[0].item == "gardening tips" and found[-1].item == "football news"
    app = opened(10)
    assert app.trends(k=5) == [] and not app.user("u1")._user_memory.index.is_loaded


def test_S1_a_fact_with_another_key(opened: Callable[..., Recollect]) -> None:
    memory, other = opened(3).user("u1"), opened(3).user("u1")
    for n in range(5):
        memory.note(f"number {n}")
    fact = written(memory.remember("Lisbon by the harbour", key="city"))
    assert [hit.record.key for hit in other.search("Lisbon")] == ["city"]
    memory.update(fact.id, key="home")
    for reader in (other, memory):
        assert [hit.record.key for hit in reader.search("Lisbon")] == ["home"]
        assert is_large(reader)


@pytest.mark.slow
def test_S2_many_vectors_are_compared_as_an_index_in_memory_does(
    opened: Callable[..., Recollect], postgres_tables: str, clock: FrozenClock, sql: Callable[..., list[Any]]
) -> None:
    letters, embedder, now = random.Random(9), HashEmbedder(), clock()
    texts = [" ".join("".join(letters.choices("abcdefgh", k=6)) for _ in range(6)) for _ in range(MANY)]
    store = PostgresStore(postgres_tables)
    with closing(store), store.user("u1").write() as tx:  # past the write path, which takes longer
        notes = [
            Note(id=new_id("note"), content=text, created_at=now, updated_at=now, valid_from=now, seq=tx.next_seq())
            for text in texts
        ]
        tx.put_many(notes)
        vectors = embedder.embed(texts)
        tx.put_vectors(embedder.name, [(note.id, 1, pack(row[None])) for note, row in zip(notes, vectors, strict=True)])
    small, large = (opened(limit, embedder=embedder).user("u1") for limit in (NEVER, 100))
    large.embed()
    assert sql("SELECT count(*) FROM memory_meanings") == [(MANY,)]
    same = 0
    for text in texts[:: MANY // 20]:
        asked = f"{text[1:-1]}x"  # other words at both ends, nearly the same letters
        found, wanted = large.search(asked, limit=3), small.search(asked, limit=3)
        assert found.mode == wanted.mode == "words and vectors"
        assert contents(found)[0] == contents(wanted)[0] == text
        same += contents(found) == contents(wanted)
    assert same >= 10 and is_large(large)
