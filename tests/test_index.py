"""The search index: exact whatever happened before, and whole or not at all on disk."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.records import Fact, Message, Note, Record
from recollect.search.filters import Filter
from recollect.search.index import columns, postings, snapshot
from recollect.search.index import index as index_module
from recollect.search.index.index import Index
from recollect.search.index.postings import mark_hash, word_hash
from recollect.search.passages import indexed_text, passages

NOW = datetime(2026, 2, 12, 9, 30, tzinfo=timezone.utc)
VOCABULARY = [f"w{i}" for i in range(60)] + ["Київ", "東京", "naïve", "🙂", "\ud800"]
KINDS: tuple[type[Record], ...] = (Fact, Message, Note)


def split(text: str) -> list[str]:
    return text.split()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that happens rarely happens often."""
    monkeypatch.setattr(postings, "FREEZE_AT", 40)
    monkeypatch.setattr(postings, "_AT_ONCE", 64)
    monkeypatch.setattr(index_module, "_AT_ONCE", 16)
    monkeypatch.setattr(index_module, "_COMPACT_AT", 8)
    monkeypatch.setattr(columns, "_STEPS", 3)
    monkeypatch.setattr(columns, "_FOLD_AT", 5)


def message(number: int, text: str, **more: Any) -> Message:
    values: dict[str, Any] = {
        "session": "s",
        "valid_from": NOW + timedelta(seconds=number),
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Message(id=f"message-{number:05d}", content=text, **(values | more))


class Plain:
    """BM25 as the formula says it, over dictionaries."""

    def __init__(self, records: dict[str, Record], k1: float = 1.5, b: float = 0.75) -> None:
        self.k1, self.b = k1, b
        self.bags = {
            record.id: [Counter(split(text[begin:end])) for begin, end in passages(text)]
            for record in records.values()
            if (text := indexed_text(record)) is not None
        }
        self.active = [bag for record in records.values() if record.status == "active" for bag in self.bags[record.id]]
        self.average = sum(bag.total() for bag in self.active) / max(1, len(self.active)) or 1.0

    def idf(self, word: str) -> float:
        holding = sum(word in bag for bag in self.active)
        return math.log((len(self.active) - holding + 0.5) / (holding + 0.5) + 1)

    def passage(self, bag: Counter[str], words: Sequence[str]) -> float:
        below = self.k1 * (1 - self.b + self.b * bag.total() / self.average)
        return sum(self.idf(word) * bag[word] * (self.k1 + 1) / (bag[word] + below) for word in words if bag[word])

    def scores(self, words: Sequence[str]) -> dict[str, float]:
        return {record_id: max(self.passage(bag, words) for bag in bags) for record_id, bags in self.bags.items()}


def neighbours(records: dict[str, Record]) -> dict[str, tuple[str | None, str | None]]:
    found: dict[str, tuple[str | None, str | None]] = dict.fromkeys(records, (None, None))
    speaking = [r for r in records.values() if r.kind == "message" and r.status == "active" and r.session is not None]
    for session in {r.session for r in speaking}:
        order = [
            r.id for r in sorted((r for r in speaking if r.session == session), key=lambda r: (r.valid_from, r.id))
        ]
        for before, here, after in zip([None, *order], order, [*order[1:], None], strict=False):
            found[here] = (before, after)
    return found


def fits(record: Record, wanted: Filter) -> bool:
    def among(value: Any, allowed: Sequence[str]) -> bool:
        return not allowed or value in allowed

    return (
        among(record.kind, wanted.kinds)
        and among(record.status, wanted.statuses)
        and among(record.category, wanted.categories)
        and among(record.type, wanted.types)
        and among(getattr(record, "speaker", None), wanted.speakers)
        and (wanted.tier is None or record.tier == wanted.tier)
        and (wanted.session is None or record.session == wanted.session)
        and (wanted.source is None or f"{record.source}:".startswith(wanted.source + ":"))
        and set(wanted.tags) <= set(record.tags)
        and (wanted.said_from is None or record.valid_from >= wanted.said_from)
        and (wanted.said_until is None or record.valid_from < wanted.said_until)
        and (wanted.alive_at is None or record.expires_at is None or record.expires_at > wanted.alive_at)
    )


def some_record(rng: random.Random) -> Record:
    kind = rng.choice(KINDS)
    long = rng.random() < 0.05
    words = [
        VOCABULARY[min(int(rng.expovariate(0.08)), len(VOCABULARY) - 1)]
        for _ in range(500 if long else rng.randrange(14))
    ]
    more: dict[str, Any] = {"title": rng.choice((None, "w1 title"))} if kind is Note else {}
    if kind is Message:
        more = {"role": rng.choice(("user", "assistant")), "speaker": rng.choice((None, "Ann", "Богдан"))}
    if kind is Fact:
        more = {"key": rng.choice((None, "w2")), "tier": rng.choice(("file", "archive"))}
    return kind(
        id=rng.choice((f"{kind.kind}-{rng.randrange(80):03d}", f"їжак {rng.randrange(9)}", f"{rng.randrange(4)}\0")),
        content=" ".join(words),
        status=rng.choice(("active", "active", "active", "archived", "superseded")),
        category=rng.choice((None, "preference", "key_fact")),
        type=rng.choice((None, "skill")),
        source=rng.choice(("explicit", "discussion", "discussion:42", "discussions")),
        session=rng.choice((None, "one", "two")),
        tags=tuple(rng.sample(("a", "b", "c"), rng.randrange(3))),
        importance=rng.random(),
        trusted=rng.random() < 0.5,
        valid_from=NOW + timedelta(seconds=rng.randrange(30)),
        expires_at=rng.choice((None, NOW + timedelta(seconds=rng.randrange(30)))),
        created_at=NOW,
        updated_at=NOW,
        **more,
    )


def some_filter(rng: random.Random) -> Filter:
    def maybe(value: Any, otherwise: Any) -> Any:
        return value if rng.random() < 0.25 else otherwise

    def moment() -> datetime:
        return NOW + timedelta(seconds=rng.randrange(30))

    return Filter(
        kinds=maybe(("message", "note"), ()),
        statuses=rng.choice((("active",), (), ("archived", "superseded"), ("unheard",))),
        categories=maybe(("preference", "unheard"), ()),
        types=maybe(("skill",), ()),
        tier=maybe("file", None),
        source=maybe(rng.choice(("discussion", "explicit", "d")), None),
        session=maybe(rng.choice(("one", "three")), None),
        speakers=maybe(("Ann", "Богдан"), ()),
        tags=maybe(rng.choice((("a",), ("b", "a"), ("z",))), ()),
        said_from=maybe(moment(), None),
        said_until=maybe(moment(), None),
        alive_at=maybe(moment(), None),
    )


Step = tuple[Index, dict[str, Record], dict[str, set[str]]]


def history(rng: random.Random, steps: int, path: Path, k1: float = 1.5, b: float = 0.75) -> Iterator[Step]:
    """An index in the course of a random life, with the records and the marks that should be in it."""
    index = Index(k1=k1, b=b, terms=split)
    records: dict[str, Record] = {}
    marks: dict[str, set[str]] = {}
    for step in range(steps):
        dice = rng.random()
        if dice < 0.7 or not records:
            record = some_record(rng)
            marks[record.id] = set(rng.choices(("m1", "m2", "w1"), k=rng.randrange(3)))
        elif dice < 0.85:  # the same text in another state
            record = replace(
                records[rng.choice(sorted(records))],
                status=rng.choice(("active", "archived")),
                session=rng.choice((None, "one", "two")),
                valid_from=NOW + timedelta(seconds=rng.randrange(30)),
            )
        elif dice < 0.97:
            gone = rng.choice([*sorted(records), "unknown"])
            records.pop(gone, None), marks.pop(gone, None)
            index.remove(gone)
            continue
        else:
            index.seq = step
            index.save(path)
            if rng.random() < 0.7:
                loaded = Index.load(path, k1=k1, b=b, terms=split)
                assert loaded is not None and loaded.seq == step and loaded.unsaved == 0
                index = loaded
            continue
        index.put(record, tuple(marks[record.id]))
        records[record.id] = record
        if step % 10 == 0:
            yield index, records, marks
    yield index, records, marks


def close(index: Index, words: Sequence[str], expected: dict[str, float]) -> None:
    scores = index.scores(words)
    assert scores.shape == (index.size,) and scores.dtype == np.float32
    got = {index.id_of(number): float(scores[number]) for number in np.flatnonzero(index.alive).tolist()}
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert not scores[~index.alive].any()
    plainly = sorted(expected.values(), reverse=True)
    ranked = [
        expected[index.id_of(int(number))] for number in np.argsort(-scores, kind="stable") if index.alive[number]
    ]
    assert ranked == pytest.approx(plainly, rel=1e-5, abs=1e-6)


@pytest.mark.everyday(1)
@pytest.mark.parametrize("seed", range(6))
def test_S1_ranks_as_the_plain_formula_whatever_happened_before(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    k1, b = rng.choice(((1.5, 0.75), (0.9, 0.4), (1.2, 0.0), (2.0, 1.0)))
    for index, records, marks in history(rng, 400, tmp_path / "index", k1, b):
        assert len(index) == len(records)
        plain = Plain(records, k1, b)
        for words in (rng.choices(VOCABULARY, k=4), ["w0", "w0", "w1"], ["unheard", "w3"], ["unheard"], []):
            close(index, words, plain.scores(words))
            assert index.idf(words) == pytest.approx([plain.idf(word) for word in words])
        for record_id in rng.sample(sorted(records), min(5, len(records))):
            number = index.number(record_id)
            assert number is not None and index.id_of(number) == record_id
            bags = plain.bags[record_id]
            assert index.passages_of(number) == len(bags)
            words = [*rng.choices(VOCABULARY, k=3), "m1"]
            assert index.matching(np.array([number]), words)[:, 0].tolist() == [
                any(word in bag for bag in bags) for word in words
            ]
            begin, end = index.best_passage(number, words)
            best = Counter(split(indexed_text(records[record_id])[begin:end]))
            top = max(plain.passage(bag, words) for bag in bags)
            assert best in bags and plain.passage(best, words) == pytest.approx(top, rel=1e-5)
        for mark in ("m1", "m2", "w1", "m3"):
            having = {i for i, record in records.items() if mark in marks[i] and record.status == "active"}
            assert sorted(index.ids(index.marked(mark))) == sorted(having)
        assert index.number("unknown") is None


@pytest.mark.parametrize("seed", range(3))
def test_S1_filters_and_columns_agree_with_the_records(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for index, records, _ in history(rng, 300, tmp_path / "index"):
        for _ in range(10):
            wanted = some_filter(rng)
            found = index.ids(np.flatnonzero(index.select(wanted)))
            assert sorted(found) == sorted(i for i, record in records.items() if fits(record, wanted)), wanted
        for record in records.values():
            number = index.number(record.id)
            assert number is not None
            for column in columns.CODED:
                code = int(getattr(index, column)[number])
                assert index.value(column, code) == getattr(record, column, None)
                assert code == -1 or index.code(column, index.value(column, code) or "") == code
            assert index.value("tags", int(index.tags[number])) == ", ".join(record.tags)
            assert index.said_at[number] == round(record.valid_from.timestamp() * 1e6)
            assert index.importance[number] == np.float32(record.importance)
            assert index.trusted[number] == record.trusted


@pytest.mark.everyday(2)
@pytest.mark.parametrize("seed", range(4))
def test_S9_each_message_knows_its_neighbours_whatever_happened_before(seed: int, tmp_path: Path) -> None:
    for index, records, _ in history(random.Random(seed), 400, tmp_path / "index"):
        expected = neighbours(records)
        for record_id, (before, after) in expected.items():
            number = index.number(record_id)
            assert number is not None
            previous, following = int(index.previous[number]), int(index.following[number])
            assert (index.id_of(previous) if previous >= 0 else None) == before
            assert (index.id_of(following) if following >= 0 else None) == after


@pytest.mark.parametrize("order", ["in order", "backwards", "shuffled"])
def test_S9_a_conversation_may_be_told_in_any_order(order: str) -> None:
    told = [message(number, "hi") for number in range(60)]
    if order == "backwards":
        told.reverse()
    elif order == "shuffled":
        random.Random(1).shuffle(told)
    index = Index(terms=split)
    for one in told:
        index.put(one)
    first = index.number("message-00000")
    assert first is not None
    number: int = first
    seen = []
    while number >= 0:
        seen.append(index.id_of(number))
        number = int(index.following[number])
    assert seen == sorted(seen) and len(seen) == 60


def test_S1_scores_do_not_depend_on_the_history_to_the_last_bit(tmp_path: Path) -> None:
    for seed in range(3):
        *_, (index, records, marks) = history(random.Random(seed), 300, tmp_path / "index")
        fresh = Index(terms=split)
        for record_id, record in sorted(records.items()):
            fresh.put(record, tuple(marks[record_id]))
        words = ["w0", "w7", "Київ", "w3", "w0"]
        by_id = [
            {one.id_of(number): one.scores(words)[number] for number in np.flatnonzero(one.alive).tolist()}
            for one in (index, fresh)
        ]
        assert by_id[0] == by_id[1]


def test_S3_a_put_is_found_by_the_next_search(tmp_path: Path) -> None:
    index = Index()
    for walk in range(30):
        index.put(message(walk, f"walk number {walk} in the park"))
        assert index.scores(["park"])[walk] > 0
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    assert loaded is not None
    loaded.put(message(99, "Wir fahren nach Zürich"))
    number = loaded.number("message-00099")
    assert number is not None and loaded.matching(np.array([number]), ["zurich", "park"])[:, 0].tolist() == [
        True,
        False,
    ]
    assert int(loaded.scores(["zurich"]).argmax()) == number


def test_S1_an_unchanged_text_costs_no_new_passages() -> None:
    index = Index(terms=split)
    index.put(message(1, "one two"), ("m",))
    size = index._passages.size
    index.put(message(1, "one two", importance=0.9, status="archived"), ("m",))
    assert index._passages.size == size and index.importance[0] == np.float32(0.9)
    assert not len(index.marked("m")) and index.unsaved == 2
    index.put(message(1, "one two"), ("other",))
    assert index.marked("other").tolist() == [0] and not len(index.marked("m"))


def test_S1_a_word_may_stand_in_a_passage_very_often() -> None:
    def many(text: str) -> list[str]:
        return [word for word in text.split() for _ in range(70_000 if word == "loud" else 300)]

    index = Index(terms=many)
    index.put(message(1, "loud quiet"))
    index.put(message(2, "quiet"))
    bags = [Counter(many("loud quiet")), Counter(many("quiet"))]
    average = sum(bag.total() for bag in bags) / 2
    times = bags[0]["loud"]
    below = 1.5 * (0.25 + 0.75 * bags[0].total() / average)
    assert index.scores(["loud"])[0] == pytest.approx(math.log(2) * times * 2.5 / (times + below), rel=1e-5)


def test_S1_an_empty_index_answers() -> None:
    index = Index()
    assert len(index) == index.size == 0
    assert index.scores(["a"]).shape == index.select(Filter()).shape == (0,)
    assert index.number("a") is None and index.idf(["a"]) == [pytest.approx(math.log(2))]
    index.remove("a")
    assert index.unsaved == 0
    index.put(message(1, ""))
    assert index.scores(["a"]).tolist() == [0.0]
    index.put(message(1, "a", status="archived"))
    assert index.scores(["a"])[0] > 0


def saved(path: Path, count: int = 40) -> Index:
    index = Index(terms=split)
    rng = random.Random(5)
    for number in range(count):
        index.put(message(number, " ".join(rng.choices(VOCABULARY, k=6)), tags=("t",)), (f"mark{number % 3}",))
    index.seq, index.life = 17, "life"
    index.save(path)
    return index


def load(path: Path) -> Index | None:
    return Index.load(path, terms=split)


def test_S3_a_snapshot_is_the_same_index_and_its_own_copy(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index = saved(path)
    loaded = load(path)
    assert loaded is not None and (loaded.seq, loaded.life, loaded.unsaved) == (17, "life", 0)
    assert np.array_equal(loaded.scores(["w1", "w2"]), index.scores(["w1", "w2"]))
    assert [p.name for p in tmp_path.iterdir()] == ["index"]
    before = path.read_bytes()
    loaded.put(message(3, "changed"))
    loaded.remove("message-00004")
    assert path.read_bytes() == before
    path.unlink()
    assert loaded.scores(["changed"])[loaded.number("message-00003")] > 0
    empty = Index(terms=split)
    empty.save(path)
    loaded = load(path)
    assert loaded is not None and len(loaded) == 0
    loaded.put(message(1, "a"))
    assert loaded.scores(["a"])[0] > 0


def test_S3_a_snapshot_that_cannot_be_trusted_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    assert load(path) is None
    assert load(tmp_path) is None
    path.write_bytes(b"")
    assert load(path) is None
    saved(path)
    whole = path.read_bytes()
    rng = random.Random(3)
    for length in [*range(200), *rng.sample(range(len(whole)), 200), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert load(path) is None, length
    path.write_bytes(whole + b"\0")
    assert load(path) is None
    for place in [*range(64), *rng.sample(range(len(whole)), 400)]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert load(path) is None, place
    for _ in range(50):
        path.write_bytes(rng.randbytes(rng.randrange(3000)))
        assert load(path) is None
        path.write_bytes(whole[:20] + rng.randbytes(len(whole) - 20))
        assert load(path) is None
    path.write_bytes(whole)
    assert load(path) is not None
    assert Index.load(path) is None  # other words
    monkeypatch.setattr(snapshot, "VERSION", snapshot.VERSION + 1)
    assert load(path) is None


def test_S3_a_snapshot_with_a_part_missing_is_none(tmp_path: Path) -> None:
    path = tmp_path / "index"
    saved(path)
    read = snapshot.read_snapshot(path)
    assert read is not None
    notes, arrays = read
    for name in arrays:
        snapshot.write_snapshot(
            tmp_path / "less", notes, {other: array for other, array in arrays.items() if other != name}
        )
        assert load(tmp_path / "less") is None, name
    snapshot.write_snapshot(tmp_path / "short", notes, arrays | {"kind": arrays["kind"][1:]})
    assert load(tmp_path / "short") is None
    with pytest.raises(TypeError):
        snapshot.write_snapshot(tmp_path / "odd", notes, {"odd": np.zeros(2, dtype=np.complex128)})


def test_S3_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    index = saved(path)
    whole = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    index.put(message(1, "new"))
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        index.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["index"] and path.read_bytes() == whole
    assert index.unsaved == 1 and index.scores(["new"]).any()


def test_R7_nothing_of_what_was_erased_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "index"
    index = saved(path)
    index.put(message(77, "w1 sesame", session="vault", speaker="Ali", tags=("hoard",)), ("cave",))
    index.save(path)
    traces = [
        word_hash("sesame").to_bytes(8, "little"),
        mark_hash("cave").to_bytes(8, "little"),
        postings.hash_text("message-00077").to_bytes(8, "little"),
        b"message-00077", b"vault", b"Ali", b"hoard",
    ]  # fmt: skip
    assert all(trace in path.read_bytes() for trace in traces)
    loaded = load(path)
    assert loaded is not None
    loaded.remove("message-00077")
    loaded.save(path)
    assert not any(trace in path.read_bytes() for trace in traces)
    left = tmp_path / ".index.0123abcd.tmp"  # by a process that was killed in the middle
    left.write_bytes(traces[0])
    loaded.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["index"]
    assert len(loaded) == 40 and not loaded.scores(["sesame"]).any()
    again = load(path)
    assert again is not None
    assert np.array_equal(again.scores(["w1", "w9"]), loaded.scores(["w1", "w9"]))


def test_S3_hashes_are_the_same_in_every_process() -> None:
    assert word_hash("word") == 0x958EC7D727CFA44A
    assert word_hash("word") != mark_hash("word")
