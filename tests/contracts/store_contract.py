"""What every store must do. Inherited by the tests of each store; no mocks, no branches by store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest

from recollect.records import (
    DailyEntry,
    Episode,
    ExtractionRun,
    Fact,
    Interaction,
    JournalEntry,
    Message,
    Note,
    Observation,
    Record,
    ScratchItem,
    Spending,
    ToolCall,
    new_id,
)
from recollect.store.contract import FileState, Query, State, Store, Tombstone, Transaction, VectorRow
from recollect.usage_metrics import BOUNDS, CallGroup, Tally, latency_step

T0 = datetime(2026, 2, 12, 9, 30, tzinfo=timezone.utc)


def fact(content: str = "likes tea", **values: Any) -> Fact:
    at = values.pop("at", T0)
    return Fact(
        id=values.pop("id", new_id("fact")), content=content, created_at=at, updated_at=at, valid_from=at, **values
    )


def tool_call(id: str, minutes: int = 0, **values: Any) -> ToolCall:
    told: dict[str, Any] = {"tool": "memory_save", "suite": "notes", "status": "ok", "outcome": "written"}
    return ToolCall(id=id, at=T0 + timedelta(minutes=minutes), latency_ms=1.5, **(told | values))


def episode(id: str) -> Episode:
    return Episode(id=id, content="x", topic="t", created_at=T0, updated_at=T0, valid_from=T0)


def interaction(id: str, minutes: int = 0, **values: Any) -> Interaction:
    return Interaction(id=id, at=T0 + timedelta(minutes=minutes), **({"kind": "save", "title": "Rust"} | values))


def extraction_run(id: str, day: int = 12, **values: Any) -> ExtractionRun:
    return ExtractionRun(id=id, day=date(2026, 2, day), started_at=T0 + timedelta(days=day - 12), **values)


def write(tx: Transaction, record: Record, op: str = "remember", before: Record | None = None, **values: Any) -> Record:
    record = replace(record, seq=tx.next_seq())
    tx.put(record)
    tx.log(
        [
            JournalEntry(
                seq=record.seq,
                at=record.updated_at,
                actor="person",
                op=op,
                record_id=record.id,
                before=before,
                after=record,
                **values,
            )
        ]
    )
    return record


class StoreContract:
    """Subclass it and provide the fixture ``store``."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        raise NotImplementedError

    def test_D3_every_kind_comes_back_as_it_was_put(self, store: Store) -> None:
        times: dict[str, Any] = {
            "created_at": T0,
            "updated_at": T0 + timedelta(seconds=1),
            "valid_from": T0 - timedelta(days=9),
        }
        common: dict[str, Any] = {
            **times,
            "session": "s1",
            "source": "discussion:42",
            "confidence": 0.75,
            "excerpt": "she said «так» 👍",
            "messages": ("m1", "m2"),
            "agent": "bot",
            "trusted": False,
            "importance": 0.9,
            "pinned": True,
            "tags": ("a", "ü"),
            "metadata": {"n": 1, "deep": {"list": [1, None, "x"]}},
            "expires_at": T0 + timedelta(days=3, microseconds=7),
            "valid_until": T0 + timedelta(days=2),
        }
        records: list[Record] = [
            Fact(
                id=new_id("fact"),
                content="Київ",
                key="location",
                category="personal_context",
                type="personal",
                tier="file",
                label="Location",
                section="Pets",
                **common,
            ),
            DailyEntry(id=new_id("daily"), content="a\nb", day=date(2026, 2, 12), section="Discussions", **common),
            Note(id=new_id("note"), content="n", title="T", **common),
            Observation(id=new_id("observation"), content="o", category="lesson", **common),
            Episode(id=new_id("episode"), content="e", topic="t", valence="mixed", participants=("p",), **common),
            Message(id=new_id("message"), content="m", role="assistant", speaker="Bot", **common),
            ScratchItem(id=new_id("scratch"), content="v", key="k", **common),
        ]
        user = store.user("u")
        with user.write() as tx:
            records = [write(tx, record) for record in records]
        with user.read() as reader:
            for record in records:
                assert reader.get(record.id) == record
                assert reader.versions(record.id) == [record]
                [entry] = reader.entries(record_id=record.id)
                assert entry.after == record and entry.before is None
            assert reader.find(Query()) == sorted(records, key=lambda r: r.id)
            assert reader.count() == {(record.kind, "active"): 1 for record in records}

    def test_nothing_is_there_before_the_first_write(self, store: Store) -> None:
        user = store.user("nobody")
        assert not user.exists()
        with user.read() as reader:
            assert reader.state().seq == 0 and reader.state().user_id == "nobody"
            assert reader.find(Query()) == [] and reader.entries() == [] and reader.files() == []
            assert reader.get("fact-x") is None and reader.entry(1) is None and reader.tombstones() == []
        assert not user.exists() and list(store.users()) == []

    def test_a_failed_transaction_leaves_nothing(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            first = write(tx, fact())
        ran: list[int] = []
        with pytest.raises(RuntimeError, match="stop"), user.write() as tx:
            write(tx, fact("likes coffee"))
            write(tx, replace(first, content="changed", version=2))
            tx.set_mode("paused")
            tx.set_file(FileState(name="MEMORY.md", fingerprint="f", seq=1))
            tx.bury([Tombstone(hash="h", record_id="r", at=T0)])
            tx.after_commit(lambda: ran.append(1))
            raise RuntimeError("stop")
        with user.read() as reader:
            assert reader.find(Query()) == [first]
            assert reader.state().seq == 1 and reader.state().mode == "on"
            assert len(reader.entries()) == 1 and reader.files() == [] and reader.tombstones() == []
        assert ran == []
        with user.write() as tx:
            assert write(tx, fact("likes milk")).seq == 2

    def test_a_transaction_sees_its_own_changes_and_others_do_not_until_it_ends(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            record = write(tx, fact())
            assert tx.get(record.id) == record and tx.find(Query()) == [record]
            assert tx.entries() and tx.state().user_id == "u"
            seen: list[Any] = []

            def look() -> None:
                with store.user("u").read() as reader:
                    seen.append(reader.find(Query()))

            other = threading.Thread(target=look)
            other.start()
            other.join()
            assert seen == [[]]
        with user.read() as reader:
            assert reader.find(Query()) == [record]

    def test_R5_sequence_numbers_have_no_gaps_with_many_writers(self, store: Store) -> None:
        def work(n: int) -> None:
            for i in range(5):
                with store.user("u").write() as tx:
                    write(tx, fact(f"fact {n} {i}"))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with store.user("u").read() as reader:
            assert [entry.seq for entry in reader.entries()] == list(range(1, 31))
            assert {record.seq for record in reader.find(Query())} == set(range(1, 31))
            assert reader.state().seq == 30

    def test_hooks_run_after_the_commit_and_before_the_next_writer(self, store: Store) -> None:
        user = store.user("u")
        order: list[object] = []
        holding, waiting = threading.Event(), threading.Event()

        def second() -> None:
            assert holding.wait(120)
            waiting.set()
            with store.user("u").write() as tx:
                order.append("second")
                write(tx, fact("b"))

        thread = threading.Thread(target=second)
        thread.start()
        with user.write() as tx:
            record = write(tx, fact("a"))

            def hook() -> None:
                holding.set()
                assert waiting.wait(120)
                with store.user("u").read() as reader:  # durable and visible by now
                    order.append(reader.get(record.id) == record)

            tx.after_commit(hook)
        thread.join()
        assert order == [True, "second"]

    def test_R3_versions_and_validity(self, store: Store) -> None:
        user = store.user("u")
        moved = T0 + timedelta(days=10)
        with user.write() as tx:
            kyiv = write(tx, fact("Kyiv", key="location"))
        with user.write() as tx:
            tx.keep(replace(kyiv, status="superseded", valid_until=moved))
            lviv = write(
                tx, replace(kyiv, content="Lviv", version=2, valid_from=moved, updated_at=moved), "update", kyiv
            )
        with user.read() as reader:
            assert reader.find(Query(key="location")) == [lviv]
            assert [r.content for r in reader.find(Query(key="location", valid_at=T0))] == ["Kyiv"]
            assert [r.content for r in reader.find(Query(key="location", valid_at=moved))] == ["Lviv"]
            assert reader.find(Query(valid_at=T0 - timedelta(days=1))) == []
            assert [r.content for r in reader.find(Query(kinds=("fact",), replaced=True))] == ["Kyiv"]
            assert reader.find(Query(kinds=("note",), replaced=True)) == []
            assert [r.version for r in reader.versions(kyiv.id)] == [1, 2]
            assert reader.get(kyiv.id) == lviv
            assert reader.find(Query(statuses=("superseded",))) == []  # closed versions are not latest ones
        with user.write() as tx:  # a correction keeps no old version
            right = write(tx, replace(lviv, content="Lwów", version=3), "update", lviv)
        with user.read() as reader:
            assert [r.content for r in reader.versions(kyiv.id)] == ["Kyiv", "Lwów"]
            assert reader.get(kyiv.id) == right
        with user.write() as tx:  # the highest version that held wins where two overlap
            again = write(tx, replace(right, content="Kyiv again", version=4, valid_from=T0), "undo", right)
        with user.read() as reader:
            assert reader.find(Query(valid_at=T0)) == [again]
        with user.write() as tx:  # what is forgotten now is not recalled from the past either
            write(tx, replace(again, version=5, status="archived"), "forget", again)
        with user.read() as reader:
            assert reader.find(Query(valid_at=T0)) == []

    def test_find_by_each_filter(self, store: Store) -> None:
        user = store.user("u")
        later = T0 + timedelta(hours=1)
        with user.write() as tx:
            a = write(tx, fact("a", key="role", category="work_context", tier="file", source="discussion:1"))
            b = write(
                tx, fact("b", category="preference", type="preference", tier="archive", tags=("x", "y"), at=later)
            )
            c = write(tx, fact("c", status="archived", session="s", source="discussions"))
            d = write(
                tx,
                Note(
                    id=new_id("note"),
                    content="d",
                    created_at=later,
                    updated_at=later,
                    valid_from=later,
                    tags=("x",),
                    expires_at=later,
                    source="tool:memory_save",
                ),
            )
        expected: list[tuple[Query, list[Record]]] = [
            (Query(), [a, b, d]),
            (Query(newest_first=True), [d, b, a]),
            (Query(statuses=()), [a, c, b, d]),
            (Query(statuses=("archived",)), [c]),
            (Query(ids=[a.id, d.id]), [a, d]),
            (Query(ids=[]), []),
            (Query(kinds=("note",)), [d]),
            (Query(kinds=("note", "fact")), [a, b, d]),
            (Query(key="role"), [a]),
            (Query(categories=("preference", "work_context")), [a, b]),
            (Query(types=("preference",)), [b]),
            (Query(tier="file"), [a]),
            (Query(source="discussion"), [a]),
            (Query(source="discussion:1"), [a]),
            (Query(source="tool"), [d]),
            (Query(source="%"), []),
            (Query(session="s", statuses=()), [c]),
            (Query(tags=("x",)), [b, d]),
            (Query(tags=("x", "y")), [b]),
            (Query(said_from=later), [b, d]),
            (Query(said_until=later), [a]),
            (Query(said_from=T0, said_until=later, kinds=("fact",)), [a]),
            (Query(said_from=later, said_until=later), []),
            (Query(said_from=later, kinds=("fact",), statuses=("active", "archived")), [b]),
            (Query(changed_after=a.seq, statuses=()), [b, c, d]),
            (Query(changed_after=a.seq, statuses=(), newest_first=True), [d, c, b]),
            (Query(alive_at=later), [a, b]),
            (Query(alive_at=T0), [a, b, d]),
            (Query(expired_at=later), [d]),
            (Query(limit=2), [a, b]),
            (Query(limit=2, offset=1), [b, d]),
            (Query(offset=2), [d]),
        ]
        with user.read() as reader:
            for query, wanted in expected:
                found = reader.find(query)
                if query.newest_first or query.changed_after is not None:
                    assert found == wanted, query
                else:
                    assert found == sorted(wanted, key=lambda r: (r.created_at, r.id)), query
            assert reader.count() == {("fact", "active"): 2, ("fact", "archived"): 1, ("note", "active"): 1}
            assert reader.ids_ending(a.id[-8:]) == [a.id]

    def test_S3_a_scan_gives_the_latest_of_everything_and_changed_what_to_look_at_again(self, store: Store) -> None:
        user = store.user("u")
        with user.read() as reader:
            assert list(reader.scan()) == [] and reader.changed(0) == []
        with user.write() as tx:
            a = write(tx, fact("a"))
            b = write(tx, fact("b"))
            a2 = write(tx, replace(a, status="archived", version=2), "forget", a)
        with store.user("other").write() as tx:
            write(tx, fact("not yours"))
        with user.read() as reader:
            assert sorted(record.id for record in reader.scan()) == sorted([a.id, b.id])
            assert {record.id: record.status for record in reader.scan()}[a.id] == "archived"
            assert [tuple(row) for row in reader.changed(1)] == [(2, b.id), (3, a2.id)]
            assert reader.changed(3) == []

    def test_R5_journal_entries_by_record_run_and_number(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            a = write(tx, fact("a"), run="run-1", call="call-9", reason="because", source="explicit")
            b = write(tx, fact("b"))
            a2 = write(tx, replace(a, status="archived", version=2), "forget", a, run="run-1", undoes=None)
            write(tx, replace(a, version=3), "undo", a2, undoes=a2.seq)
        with user.read() as reader:
            assert [e.seq for e in reader.entries()] == [1, 2, 3, 4]
            assert [e.op for e in reader.entries(record_id=a.id)] == ["remember", "forget", "undo"]
            assert [e.seq for e in reader.entries(run="run-1")] == [1, 3]
            assert [e.seq for e in reader.entries(call="call-9")] == [1] and reader.entries(call="call") == []
            assert [e.seq for e in reader.entries(undoes=3)] == [4]
            assert [e.seq for e in reader.entries(after=2)] == [3, 4]
            assert [e.seq for e in reader.entries(newest_first=True, limit=2)] == [4, 3]
            first = reader.entry(1)
            assert first is not None
            assert (first.call, first.reason, first.source, first.actor, first.at) == (
                "call-9",
                "because",
                "explicit",
                "person",
                T0,
            )
            assert reader.entry(3) is not None and reader.entry(3).before == a  # type: ignore[union-attr]
            assert reader.entry(b.seq).after == b  # type: ignore[union-attr]
            assert reader.entry(99) is None

    def test_R7_erase_removes_versions_and_journal_text(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            kyiv = write(tx, fact("Kyiv", key="location"), reason="said so")
            tea = write(tx, fact("tea"))
            tx.keep(replace(kyiv, status="superseded", valid_until=T0))
            write(tx, replace(kyiv, content="Lviv", version=2), "update", kyiv)
        with user.write() as tx:
            assert tx.erase([kyiv.id]) == {"versions": 2, "journal": 2}
            tx.bury([Tombstone(hash="h1", record_id=kyiv.id, at=T0)])
            tx.bury([Tombstone(hash="h1", record_id=kyiv.id, at=T0)])
        with user.read() as reader:
            assert reader.find(Query(statuses=())) == [tea]
            assert reader.versions(kyiv.id) == [] and reader.find(Query(valid_at=T0)) == [tea]
            for entry in reader.entries(record_id=kyiv.id):
                assert entry.erased
                assert (entry.before, entry.after, entry.reason, entry.source, entry.call) == (None,) * 5
            assert [e.seq for e in reader.entries()] == [1, 2, 3]
            assert reader.tombstones() == [Tombstone(hash="h1", record_id=kyiv.id, at=T0)]
            assert reader.tombstones(["h2"]) == [] and len(reader.tombstones(["h2", "h1"])) == 1

    def test_R7_an_old_version_goes_and_the_record_stays(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            kyiv = write(tx, fact("Kyiv", key="location"), reason="said so")
            tx.keep(replace(kyiv, status="superseded", valid_until=T0))
            lviv = write(tx, replace(kyiv, content="Lviv", version=2), "update", kyiv)
            tx.put_vectors("e", [(kyiv.id, 1, b"v1")])
        with user.write() as tx:
            assert tx.drop_versions([(kyiv.id, 1), (kyiv.id, 2), ("nothing", 1)]) == 1
            [made, changed] = tx.entries()
            tx.redact([replace(made, after=None, reason=None), replace(changed, before=None)])
        with user.read() as reader:
            assert reader.versions(kyiv.id) == [lviv] and reader.get(kyiv.id) == lviv
            [made, changed] = reader.entries()
            assert (made.before, made.after, made.reason, made.erased) == (None, None, None, True)
            assert (changed.before, changed.after, changed.erased) == (None, lviv, True)
            assert reader.vectors("e") == []
        with user.write() as tx:  # and what was left of it goes with the record
            assert tx.erase([kyiv.id])["journal"] >= 1
        with user.read() as reader:
            assert all((entry.before, entry.after, entry.source) == (None,) * 3 for entry in reader.entries())

    def test_R7_interactions_and_calls_go_by_their_ids(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            tx.put_interactions([interaction("one"), interaction("other")])
            tx.log_calls([tool_call("one"), tool_call("other")])
        with user.write() as tx:
            assert tx.drop_interactions(ids=[]) == tx.drop_calls(ids=[]) == 0
            assert tx.drop_interactions(ids=["one", "none"]) == tx.drop_calls(ids=["one", "none"]) == 1
        with user.read() as reader:
            assert [one.id for one in reader.interactions()] == [one.id for one in reader.calls()] == ["other"]
        day = T0.date()
        assert sum(store.tally("default", day, day).calls.values()) == 1

    def test_F6_last_recalled(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            a, b = write(tx, fact("a")), write(tx, fact("b"))
            tx.set_recalled({a.id: T0, b.id: T0})
            tx.set_recalled({a.id: T0 + timedelta(days=1)})
        with user.read() as reader:
            assert reader.recalled() == {a.id: T0 + timedelta(days=1), b.id: T0}
        with user.write() as tx:
            tx.erase([a.id])
        with user.read() as reader:
            assert reader.recalled() == {b.id: T0}

    def test_S2_vectors_come_back_by_number(self, store: Store) -> None:
        user = store.user("u")
        with user.read() as reader:
            assert reader.vectors("e") == [] and reader.last_vector("e") == 0
            assert reader.unembedded("e", kinds=("fact",), limit=5) == []
        with user.write() as tx:
            a, b, c = write(tx, fact("a")), write(tx, fact("b")), write(tx, fact("c"))
            tx.put_vectors("e", [(a.id, 1, b"a\0\xff"), (b.id, 1, b"b" * 5000)])
            tx.put_vectors("e", iter([(c.id, 1, b"c")]))
            tx.put_vectors("e", [])
            assert tx.last_vector("e") == 3 and len(tx.vectors("e")) == 3
        with user.read() as reader:
            rows = reader.vectors("e")
            assert rows == [
                VectorRow(1, a.id, 1, b"a\0\xff"),
                VectorRow(2, b.id, 1, b"b" * 5000),
                VectorRow(3, c.id, 1, b"c"),
            ]
            assert all(type(row.data) is bytes for row in rows)
            assert reader.vectors("e", limit=2) == rows[:2] and reader.vectors("e", after=1, limit=1) == rows[1:2]
            assert reader.vectors("e", after=2) == rows[2:] and reader.vectors("e", after=3) == []
            assert reader.vectors("E") == [] and reader.last_vector("E") == 0
        with user.write() as tx:  # a later one takes the place of the earlier, with a number of its own
            tx.put_vectors("e", [(a.id, 2, b"new")])
        with user.read() as reader:
            assert reader.vectors("e", after=3) == [VectorRow(4, a.id, 2, b"new")]
            assert [row.record_id for row in reader.vectors("e")] == [b.id, c.id, a.id]
            assert reader.last_vector("e") == 4
        with pytest.raises(RuntimeError, match="stop"), user.write() as tx:
            tx.put_vectors("e", [(b.id, 2, b"never")])
            tx.drop_vectors(keep=None)
            raise RuntimeError("stop")
        with user.read() as reader:
            assert reader.last_vector("e") == 4 and len(reader.vectors("e")) == 3
        assert user.check() == []

    def test_S2_what_has_no_vector_yet(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            late = write(tx, fact("late", at=T0 + timedelta(days=2)))
            early = write(tx, fact("early"))
            note = Note(id=new_id("note"), content="n", created_at=T0, updated_at=T0, valid_from=T0)
            middle = write(tx, replace(note, created_at=T0 + timedelta(days=1)))
            write(tx, fact("gone", status="archived"))
        both = ("fact", "note")
        with user.read() as reader:
            assert reader.unembedded("e", kinds=both, limit=9) == [early, middle, late]
            assert reader.unembedded("e", kinds=both, limit=2) == [early, middle]
            assert reader.unembedded("e", kinds=("note",), limit=9) == [middle]
            assert reader.unembedded("e", kinds=(), limit=9) == []
        with user.write() as tx:
            tx.put_vectors("e", [(early.id, 1, b"x"), (middle.id, 1, b"y")])
            tx.put_vectors("other", [(late.id, 1, b"z")])
        with user.read() as reader:
            assert reader.unembedded("e", kinds=both, limit=9) == [late]
            assert reader.unembedded("other", kinds=both, limit=9) == [early, middle]
        with user.write() as tx:  # what changed is to be embedded again; what was forgotten is not
            tx.keep(replace(early, status="superseded", valid_until=T0))
            changed = write(tx, replace(early, content="earlier", version=2), "update", early)
            write(tx, replace(late, status="archived", version=2), "forget", late)
        with user.read() as reader:
            assert reader.unembedded("e", kinds=both, limit=9) == [changed]
            assert {row.record_id for row in reader.vectors("other")} == {late.id}

    def test_S2_vectors_of_other_embedders_are_dropped(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            a, b = write(tx, fact("a")), write(tx, fact("b"))
            tx.put_vectors("old", [(a.id, 1, b"1"), (b.id, 1, b"2")])
            tx.put_vectors("new", [(a.id, 1, b"3")])
            assert [row.number for row in tx.vectors("new")] == [3] and tx.last_vector("old") == 2
            assert tx.drop_vectors(keep="new") == 2
            assert tx.drop_vectors(keep="new") == 0
            assert tx.vectors("old") == [] and [row.data for row in tx.vectors("new")] == [b"3"]
            assert tx.drop_vectors(keep=None) == 1
            assert tx.vectors("new") == []
            tx.put_vectors("old", [(a.id, 1, b"4")])
            assert [row.number for row in tx.vectors("old")] == [4], "a number is not given twice"

    def test_R7_S2_erasing_takes_the_vectors_along(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            a, b = write(tx, fact("a")), write(tx, fact("b"))
            tx.put_vectors("e", [(a.id, 1, b"1"), (b.id, 1, b"2")])
            tx.put_vectors("f", [(b.id, 1, b"3")])
        with user.write() as tx:
            assert tx.erase([b.id]) == {"versions": 1, "journal": 1}
        with user.read() as reader:
            assert [row.record_id for row in reader.vectors("e")] == [a.id] and reader.vectors("f") == []
        with user.write() as tx:  # computed before the erasure, stored after it
            tx.put_vectors("e", [(b.id, 1, b"late"), (a.id, 1, b"again")])
        with user.read() as reader:
            [row] = reader.vectors("e")
            assert row.data == b"again" and row.number == reader.last_vector("e") > 3
        with store.user("v").write() as tx:
            write(tx, replace(a, seq=0))
            tx.put_vectors("e", [(a.id, 1, b"v")])
            assert [row.number for row in tx.vectors("e")] == [1]
        store.erase_user("u")
        with store.user("u").read() as reader:
            assert reader.vectors("e") == [] and reader.last_vector("e") == 0
        with store.user("u").write() as tx:
            write(tx, replace(a, seq=0))
            assert tx.vectors("e") == [] and tx.last_vector("e") == 0
        with store.user("v").read() as reader:
            assert [row.data for row in reader.vectors("e")] == [b"v"]

    def test_R5_a_record_keeps_the_number_of_its_first_entry(self, store: Store) -> None:
        user = store.user("u")
        with user.read() as reader:
            assert reader.numbers(["fact-x"]) == {} == reader.numbers([])
        with user.write() as tx:
            a, b = write(tx, fact("a")), write(tx, fact("b"))
            write(tx, replace(a, version=2, content="aa"), "update", a)
            assert tx.numbers([a.id, b.id]) == {a.id: 1, b.id: 2}
        with store.user("v").write() as tx:
            write(tx, fact("not yours"))
            write(tx, replace(a, seq=0))
        with user.write() as tx:
            tx.erase([b.id])
        with user.read() as reader:
            assert reader.numbers([b.id, a.id, a.id, "fact-x"]) == {a.id: 1, b.id: 2}
            many = [f"fact-{number}" for number in range(70_000)]
            assert reader.numbers([*many, a.id]) == {a.id: 1}

    def test_U7_tool_calls_come_back_as_they_were_logged(self, store: Store) -> None:
        user = store.user("u")
        with user.read() as reader:
            assert reader.calls() == [] and reader.spending() == [] and reader.consents() == {}
        assert not user.exists()
        first = tool_call("call-b", tokens_in=12, tokens_out=2**40, session="s%", agent="bot ж")
        second = tool_call("call-a", tool="memory_search", outcome="done")
        third = tool_call("call-c", 1, status="error", outcome="timeout", session="s%")
        with user.write() as tx:
            tx.log_calls([third, first, second])
            assert tx.calls() == [second, first, third]
            assert tx.state().seq == 0
        with user.read() as reader:
            assert reader.state().seq == 0 and reader.entries() == [] and reader.find(Query(statuses=())) == []
            assert reader.calls() == [second, first, third]
            assert reader.calls(newest_first=True) == [third, first, second]
            assert reader.calls(newest_first=True, limit=1) == [third]
            assert reader.calls(since=third.at) == [third]
            assert reader.calls(until=third.at) == [second, first]
            assert reader.calls(tool="memory_search") == [second]
            assert reader.calls(session="s%") == [first, third]
            assert reader.calls(session="s%", since=third.at, tool="memory_save") == [third]
            assert reader.calls(call="call-a") == [second] and reader.calls(call="call") == []
        ended = replace(third, status="ok", outcome="written", latency_ms=12_000.25)
        with user.write() as tx:  # it outlived its time-out, and is logged again when it ends
            tx.log_calls([ended])
        with user.write() as tx:
            assert write(tx, fact()).seq == 1
        with user.read() as reader:
            assert reader.calls() == [second, first, ended]
        with pytest.raises(RuntimeError, match="stop"), user.write() as tx:
            tx.log_calls([tool_call("call-d")])
            tx.drop_calls()
            raise RuntimeError("stop")
        with store.user("v").write() as tx:
            tx.log_calls([replace(first, session="v")])
        with user.write() as tx:
            assert tx.calls() == [second, first, ended]
            assert tx.drop_calls(ended.at) == 2 and tx.calls() == [ended]
            assert tx.drop_calls() == 1 and tx.drop_calls() == 0 and tx.calls() == []
        with store.user("v").read() as reader:
            assert [call.session for call in reader.calls()] == ["v"]
        assert user.check() == []

    def test_U6_a_tally_counts_calls_by_day_tool_end_and_step(self, store: Store) -> None:
        assert store.tally(None, T0.date(), T0.date()) == Tally()
        times = [0.0, 0.05, 1e9, *BOUNDS, *(bound * 0.999 for bound in BOUNDS), *(bound * 1.001 for bound in BOUNDS)]
        calls = [replace(tool_call(f"c{at}"), latency_ms=time) for at, time in enumerate(times)]
        late = tool_call("late", 900, tool="recall_facts", status="timeout", outcome="running")
        with store.user("ann").write() as tx:
            tx.log_calls([*calls, late, tool_call("long ago", -60 * 24 * 400)])
        with store.user("bob").write() as tx:
            tx.log_calls(calls[:1])
        steps = Counter(latency_step(time) for time in [*times, 0.0])
        day, next_day = T0.date().isoformat(), (T0.date() + timedelta(days=1)).isoformat()
        found = store.tally(None, T0.date(), T0.date() + timedelta(days=1))
        assert {group: number for group, number in found.calls.items() if group.day >= day} == {
            **{CallGroup(day, "memory_save", "ok", "written", step): number for step, number in steps.items()},
            CallGroup(next_day, "recall_facts", "timeout", "running", latency_step(1.5)): 1,
        }
        assert found.users == 2 and found.unread == found.waiting == 0

    def test_U6_a_tally_counts_conversations_and_their_facts_by_day(self, store: Store) -> None:
        day, next_day = T0.date(), T0.date() + timedelta(days=1)
        wrote: dict[str, Any] = {"tool": "remember_fact", "session": "s"}
        with store.user("ann").write() as tx:
            write(tx, episode("e1"))
            write(tx, replace(episode("e2"), status="archived"))
            tx.log_calls([
                tool_call("1", tool="recall_facts", session="s"),
                tool_call("2", 900, **wrote),
                tool_call("3", 901, **wrote | {"outcome": "duplicate"}),
                tool_call("4", 902, **wrote | {"session": "t"}),
                tool_call("5", tool="remember_fact"),
            ])  # fmt: skip
        with store.user("bob").write() as tx:
            tx.log_calls([tool_call("1", **wrote)])
        found = store.tally("default", day, next_day)
        assert found.talks == {day.isoformat(): 2, next_day.isoformat(): 2}, "the same name, of two people"
        assert found.facts == {day.isoformat(): 1, next_day.isoformat(): 2}
        assert found.episodes == {day.isoformat(): 2}, "also those that were put away"

    def test_R4_U6_a_tally_is_of_one_tenant(self, store: Store) -> None:
        ours = ("u", "@Acme/u", "@/u", "@acme", "@a b/u", f"@{'a' * 33}/u", "x@acme/u", "@acme_/u")
        theirs = ("@acme/u", "@acme/@acme-2/v", "@acme/ж")
        others = ("@acme-2/u", "@acm/u", f"@{'a' * 32}/u", "@0/u")
        for user in (*ours, *theirs, *others):
            with store.user(user).write() as tx:
                tx.log_calls([tool_call("1", session="s")])
                write(tx, episode("e"))
        day = T0.date().isoformat()
        for tenant, number in (("default", 8), ("acme", 3), ("acme-2", 1), ("acm", 1), ("nobody", 0), (None, 15)):
            found = store.tally(tenant, T0.date(), T0.date())
            assert found.users == sum(found.calls.values()) == number
            assert found.talks.get(day, 0) == found.episodes.get(day, 0) == number

    def test_U6_a_tally_follows_what_is_logged_again_dropped_and_erased(self, store: Store) -> None:
        now = datetime.now(timezone.utc)
        one, other = (replace(tool_call(name), at=now) for name in ("1", "2"))

        def counted(day: date) -> tuple[int, int, int]:
            found = store.tally("default", day, day)
            calls = {group: number for group, number in found.calls.items() if group.day == day.isoformat()}
            return found.users, sum(calls.values()), sum(group.step for group in calls)

        for user in ("ann", "bob"):
            with store.user(user).write() as tx:
                tx.log_calls([one, tool_call("long ago")])
        step = latency_step(1.5)
        assert counted(now.date()) == counted(T0.date()) == (2, 2, step)
        with store.user("ann").write() as tx:
            tx.log_calls([other, tool_call("long ago, too")])
        assert counted(now.date()) == counted(T0.date()) == (2, 3, step)
        with store.user("ann").write() as tx:
            tx.log_calls([replace(other, latency_ms=700.0)])
        assert counted(now.date()) == (2, 3, step + latency_step(700.0)), "a call that ended late takes its own place"
        with store.user("bob").write() as tx:
            tx.drop_calls(now)
        assert counted(T0.date()) == (2, 2, step)
        with store.user("bob").write() as tx:
            tx.drop_calls()
        assert counted(now.date()) == (2, 2, step + latency_step(700.0))
        store.erase_user("ann")
        assert counted(now.date()) == counted(T0.date()) == (1, 0, 0)

    def test_T7_the_ledger_adds_up_by_day_and_operation(self, store: Store) -> None:
        user = store.user("u")
        day, next_day = date(2026, 2, 12), date(2026, 2, 13)
        with user.write() as tx:
            tx.charge([Spending(day=next_day, operation="extract", calls=1, tokens_in=2**40, cost=0.25)])
            tx.charge(
                [
                    Spending(day=day, operation="extract", calls=1, tokens_in=100, tokens_out=7, cost=0.5),
                    Spending(day=day, operation="Extract", calls=1),
                    Spending(day=day, operation="extract", calls=2, tokens_in=50, tokens_out=1, cost=0.25),
                ]
            )
            assert tx.state().seq == 0
        with user.write() as tx:
            tx.charge([Spending(day=next_day, operation="extract", calls=1, tokens_out=3)])
        with store.user("v").write() as tx:
            tx.charge([Spending(day=day, operation="extract", calls=9)])
        upper = Spending(day=day, operation="Extract", calls=1)
        lower = Spending(day=day, operation="extract", calls=3, tokens_in=150, tokens_out=8, cost=0.75)
        later = Spending(day=next_day, operation="extract", calls=2, tokens_in=2**40, tokens_out=3, cost=0.25)
        with user.read() as reader:
            assert reader.spending() == [upper, lower, later]
            assert reader.spending(since=next_day) == [later] == reader.spending(since=next_day, until=next_day)
            assert reader.spending(until=day) == [upper, lower] and reader.spending(until=date(2026, 2, 11)) == []
            assert reader.state().seq == 0

    def test_consents_are_given_and_withdrawn(self, store: Store) -> None:
        user = store.user("u")
        later = T0 + timedelta(days=1)
        with user.write() as tx:
            tx.set_consent("trends", True, T0)
            tx.set_consent("across_chats", True, T0)
            tx.set_consent("trends", True, later)
            tx.set_consent("never given", False, T0)
            assert list(tx.consents().items()) == [("across_chats", T0), ("trends", later)]
        with user.write() as tx:
            tx.set_consent("across_chats", False, later)
        with store.user("v").write() as tx:
            tx.set_consent("trends", False, later)
        with user.read() as reader:
            assert reader.consents() == {"trends": later} and reader.state().seq == 0
        with store.user("v").read() as reader:
            assert reader.consents() == {}

    def test_G3_interactions_come_back_as_they_were_reported(self, store: Store) -> None:
        user = store.user("u")
        with user.read() as reader:
            assert reader.interactions() == [] and reader.runs() == [] and reader.run(T0.date(), "batch") is None
        assert not user.exists()
        full = interaction(
            "b",
            kind="reaction",
            item="https://news.example/4711?a=1&b=%20",
            value="👍",
            topics=("rust", "so 'called' {async}", "ж"),
            text='she said «так»\n\tand "left" \\ % %s',
            session="s%",
            metadata={"n": 1.0, "big": 10**40, "deep": {"list": [1, None, "ü"]}},
        )
        bare = interaction("a", kind="command", title=None, value="/saved")
        last = interaction("c", 1, kind="read", session="s%")
        with user.write() as tx:
            tx.put_interactions([last, full, bare])
            assert tx.interactions() == [bare, full, last] and tx.state().seq == 0
            tx.put_interactions(iter([]))
        with user.read() as reader:
            assert reader.state().seq == 0 and reader.entries() == [] and reader.find(Query(statuses=())) == []
            assert reader.interactions() == [bare, full, last]
            assert reader.interactions(newest_first=True) == [last, full, bare]
            assert reader.interactions(newest_first=True, limit=1) == [last]
            assert reader.interactions(since=last.at) == [last] and reader.interactions(until=last.at) == [bare, full]
            assert reader.interactions(kinds=("read", "command")) == [bare, last]
            assert reader.interactions(session="s%") == [full, last] and reader.interactions(session="s") == []
            assert reader.interactions(session="s%", kinds=("read",), since=T0) == [last]
            assert reader.interactions(ids=["c", "x", "a"]) == [bare, last] and reader.interactions(ids=[]) == []
            assert reader.interactions(after=(bare.at, bare.id)) == [full, last]
            assert reader.interactions(after=(bare.at, bare.id), limit=1) == [full]
            assert reader.interactions(after=(last.at, last.id), newest_first=True) == [full, bare]
            assert reader.interactions(after=(T0, "aa")) == [full, last], "who was removed meanwhile is no end"
            assert reader.interactions(after=(last.at, last.id)) == []
            many = [f"event-{number}" for number in range(70_000)]
            assert reader.interactions(ids=[*many, "a"]) == [bare]
        assert user.check() == []

    def test_G3_interactions_are_told_apart_by_when_they_were_reported(self, store: Store) -> None:
        user = store.user("u")
        with user.read() as reader:
            assert reader.last_reported() is None
        minute = timedelta(minutes=1)
        unknown = interaction("a", 9)
        early, late = (
            interaction("b", 5, reported_at=T0 + 6 * minute),
            interaction("c", 0, reported_at=T0 + 60 * minute),
        )
        with user.write() as tx:
            tx.put_interactions([unknown, early, late])
            assert tx.last_reported() == late.reported_at
        with user.read() as reader:
            assert reader.interactions(reported_after=T0 + 6 * minute) == [late, unknown]
            assert reader.interactions(reported_after=T0 + 9 * minute) == [late], "it is when it happened, if not told"
            assert reader.interactions(reported_after=T0, until=T0 + minute) == [late]
            assert reader.interactions(reported_after=T0 + 60 * minute) == []
            assert [one.reported_at for one in reader.interactions()] == [
                T0 + 60 * minute,
                T0 + 6 * minute,
                T0 + 9 * minute,
            ]
            assert reader.last_reported() == late.reported_at
        with store.user("v").read() as reader:
            assert reader.last_reported() is None
        with user.write() as tx:
            tx.drop_interactions()
            assert tx.last_reported() is None

    def test_G3_what_is_reported_twice_is_stored_once(self, store: Store) -> None:
        user = store.user("u")
        first = interaction("a", title="first")
        with user.write() as tx:
            tx.put_interactions([first, interaction("a", 5, title="second")])
        with user.write() as tx:
            tx.put_interactions([interaction("a", title="third"), interaction("b")])
            assert tx.interactions() == [first, interaction("b")]
        with store.user("v").write() as tx:
            tx.put_interactions([interaction("a", title="of another")])
        with pytest.raises(RuntimeError, match="stop"), user.write() as tx:
            tx.put_interactions([interaction("c")])
            tx.drop_interactions()
            raise RuntimeError("stop")
        with user.write() as tx:
            assert write(tx, fact()).seq == 1
            tx.put_interactions([interaction("d", 1)])
            assert tx.drop_interactions(T0 + timedelta(minutes=1)) == 2 and len(tx.interactions()) == 1
            assert tx.drop_interactions() == 1 and tx.drop_interactions() == 0 and tx.interactions() == []
        with store.user("v").read() as reader:
            assert [one.title for one in reader.interactions()] == ["of another"]

    def test_G3_there_is_one_run_for_each_day_and_kind(self, store: Store) -> None:
        user = store.user("u")
        full = extraction_run(
            "run-1",
            status="failed",
            interactions_processed=1,
            memories_written=2,
            memories_updated=3,
            tokens_used=2**40,
            duration_ms=2**33,
            error="it’s «full» \\ %s",
            tier="rules",
            details={"n": 1.0, "deep": [None, {"ж": "ü"}]},
        )
        other, later = extraction_run("run-2", kind="discussion"), extraction_run("run-3", 13, kind="a")
        with user.write() as tx:
            for run in (later, other, full):
                tx.put_run(run)
            assert tx.run(full.day, "batch") == full and tx.state().seq == 0
        with user.read() as reader:
            assert reader.runs() == [full, other, later] and reader.runs(newest_first=True) == [later, other, full]
            assert reader.runs(limit=2) == [full, other] and reader.runs(newest_first=True, limit=1) == [later]
            assert reader.runs(since=later.day) == [later] and reader.run(later.day, "batch") is None
            assert reader.runs(kind="batch") == [full] and reader.runs(kind="batch", since=later.day) == []
        again = replace(full, status="completed", error=None)
        renamed = replace(other, id="run-4")
        moved = replace(later, day=date(2026, 2, 14))
        with user.write() as tx:
            for run in (again, renamed, moved):
                tx.put_run(run)
            assert tx.runs() == [again, renamed, moved]
        with store.user("v").write() as tx:
            tx.put_run(full)
        with pytest.raises(RuntimeError, match="stop"), user.write() as tx:
            tx.drop_runs()
            raise RuntimeError("stop")
        with user.write() as tx:
            assert tx.drop_runs() == 3 and tx.drop_runs() == 0 and tx.runs() == []
        with store.user("v").read() as reader:
            assert reader.runs() == [full] and reader.state().seq == 0
        assert user.check() == []

    def test_R7_erase_user_takes_the_log_the_ledger_and_the_consents_along(self, store: Store) -> None:
        for user_id in ("a", "b"):
            with store.user(user_id).write() as tx:
                tx.put_interactions([interaction("event-1")])
                tx.put_run(extraction_run("run-1"))
                tx.log_calls([tool_call("call-1")])
                tx.charge([Spending(day=T0.date(), operation="extract", calls=1)])
                tx.set_consent("trends", True, T0)
        assert sorted(store.users()) == ["a", "b"]
        store.erase_user("a")
        for user_id, left in (("a", 0), ("b", 1)):
            with store.user(user_id).read() as reader:
                assert [len(reader.calls()), len(reader.spending()), len(reader.consents())] == [left] * 3
                assert [len(reader.interactions()), len(reader.runs())] == [left] * 2
        with store.user("a").write() as tx:
            assert tx.calls() == [] and tx.spending() == [] and tx.consents() == {}
            assert tx.interactions() == [] and tx.runs() == []

    def test_state_and_files(self, store: Store) -> None:
        user = store.user("u")
        note = FileState(name="memory/2026-02-12.md", fingerprint="b", seq=1)
        memory = FileState(
            name="MEMORY.md", fingerprint="a", seq=2, previous_fingerprint="z", previous_seq=1, boot="boot"
        )
        with user.write() as tx:
            tx.set_file(note)
            tx.set_file(FileState(name="MEMORY.md", fingerprint="old", seq=1))
            tx.set_file(memory)
            tx.set_mode("paused")
        with user.read() as reader:
            assert reader.state().mode == "paused" and len(reader.state().secret) == 16
            assert reader.files() == [memory, note]
            assert reader.file("MEMORY.md") == memory and reader.file("x") is None
            secret = reader.state().secret
        with user.write() as tx:
            tx.drop_file(note.name)
            tx.drop_file("never there")
        with user.read() as reader:
            assert reader.files() == [memory] and reader.state().secret == secret
        state = State(user_id="u", created_at=T0, seq=7, mode="on", secret=b"0123456789abcdef")
        with store.user("v").write() as tx:
            tx.set_state(state)
        with store.user("v").read() as reader:
            assert reader.state() == replace(state, user_id="v")
        with store.user("v").write() as tx:
            assert tx.next_seq() == 8
            tx.log([JournalEntry(seq=8, at=T0, actor="person", op="pause", record_id="")])

    def test_R4_users_do_not_see_each_other(self, store: Store) -> None:
        ids = [
            "u",
            "U",
            "../u",
            "u/..",
            "é",
            "e\u0301",
            "%75",
            "u'; DROP TABLE memory; --",
            "CON",
            "👍",
            "1",
            "x" * 128,
        ]
        for user_id in ids:
            with store.user(user_id).write() as tx:
                record = fact(f"secret of {user_id}", id=new_id("fact"))
                write(tx, record)
                tx.bury([Tombstone(hash="h", record_id=record.id, at=T0)])
        assert list(store.users()) == sorted(ids)
        for user_id in ids:
            with store.user(user_id).read() as reader:
                assert [r.content for r in reader.find(Query(statuses=()))] == [f"secret of {user_id}"]
                assert [e.seq for e in reader.entries()] == [1] and len(reader.tombstones()) == 1

    def test_R4_users_are_listed_by_tenant_by_beginning_and_in_parts(self, store: Store) -> None:
        own = {
            "default": ["1", "@", "@Acme/1", "@acme", "A", "\ue000", "é", "\U0010ffff", "\U0010ffffx"],
            "acme": ["1", "10", "2", "@acme/1", "\ud7ff1", "\ue000", "é", "\U0010ffff"],
            "acme-2": ["1"],
            "acm": ["e/1"],
            "nobody": [],
        }
        first = {tenant: "" if tenant == "default" else f"@{tenant}/" for tenant in own}
        everyone = sorted(first[tenant] + user for tenant, users in own.items() for user in users)
        for user_id in everyone:
            with store.user(user_id).write() as tx:
                write(tx, fact())
        assert list(store.users()) == everyone
        for begins in ("", "1", "@", "@acme", "\ud7ff", "\U0010ffff", "é", "%", "_"):
            assert list(store.users(begins=begins)) == [user for user in everyone if user.startswith(begins)]
            for tenant, users in own.items():
                wanted = sorted(first[tenant] + user for user in users if user.startswith(begins))
                assert list(store.users(tenant=tenant, begins=begins)) == wanted, (tenant, begins)
        for whose in (None, *own):
            whole, parts, after = list(store.users(tenant=whose)), list[str](), ""
            while some := list(store.users(tenant=whose, after=after, limit=2)):
                assert len(some) <= 2
                parts, after = parts + some, some[-1]
            assert parts == whole
        assert list(store.users(after=everyone[-1])) == [] and list(store.users(limit=0)) == []

    def test_R4_the_same_record_id_can_be_used_by_two_users(self, store: Store) -> None:
        for user_id in ("a", "b"):
            with store.user(user_id).write() as tx:
                write(tx, fact(user_id, id="fact-1"))
        with store.user("a").write() as tx:
            tx.erase(["fact-1"])
        with store.user("b").read() as reader:
            assert reader.get("fact-1") is not None and not reader.entries()[0].erased

    def test_R7_erase_user_leaves_nothing(self, store: Store) -> None:
        for user_id in ("a", "b"):
            with store.user(user_id).write() as tx:
                write(tx, fact())
        places = store.erase_user("a")
        assert sum(places.values()) > 0
        assert list(store.users()) == ["b"] and not store.user("a").exists()
        with store.user("a").read() as reader:
            assert reader.find(Query(statuses=())) == [] and reader.state().seq == 0
        with store.user("a").write() as tx:
            assert write(tx, fact()).seq == 1
        assert sum(store.erase_user("never").values()) == 0

    def test_put_many_and_large_content(self, store: Store) -> None:
        user = store.user("u")
        big = "ж" * 200_000
        with user.write() as tx:
            records = [replace(fact(f"{i} {big if i == 7 else ''}"), seq=tx.next_seq()) for i in range(500)]
            tx.put_many(records)
            tx.log(
                JournalEntry(seq=r.seq, at=T0, actor="agent", op="remember", record_id=r.id, after=r) for r in records
            )
        with user.write() as tx:
            tx.put_many([replace(record, version=2, seq=record.seq) for record in records[:3]])
        records[:3] = [replace(record, version=2) for record in records[:3]]
        with user.read() as reader:
            assert len(reader.find(Query())) == 500
            assert reader.versions(records[0].id) == [records[0]]
            assert reader.get(records[7].id) == records[7]
        assert user.check() == []

    def test_it_can_be_closed_and_used_again(self, store: Store) -> None:
        user = store.user("u")
        with user.write() as tx:
            record = write(tx, fact())
        user.close()
        with user.read() as reader:
            assert reader.get(record.id) == record
