"""One person on several channels: codes, confirmations, one memory, and the way back. On SQLite and on PostgreSQL.

Run as a program it is the other processes of these tests: ones that are killed, and ones that race.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recollect
from recollect.errors import ConfigError, InvalidInputError, LinkError, StoreBusyError, StoreError
from recollect.identity.codes import ALPHABET, LENGTH, new_code, normal
from recollect.identity.identities import Identity, Joined, Pending
from recollect.identity.links import TRIES, Identities
from recollect.memory.memory import Memory
from recollect.surfaces.cli import identity, read_commands, write_commands  # noqa: F401  (their commands)
from recollect.surfaces.cli.program import app
from recollect.testing import FrozenClock, MemoryStore
from tests.volume import first, volume
from tests.words import mentions

TERMINAL, TELEGRAM, WEB = ("terminal", "olena"), ("telegram", 12345), ("web", "olena@example.org")
STRANGER = ("telegram", 666)


@dataclass
class World:
    """Memories in one place, and a clock."""

    where: str
    clock: FrozenClock
    recollect: recollect.Recollect

    @property
    def identities(self) -> Identities:
        return self.recollect.identities

    @contextmanager
    def again(self) -> Iterator[Identities]:
        """The same place as another process sees it."""
        with recollect.open(self.where, clock=self.clock) as opened:
            yield opened.identities

    def memory(self, who: tuple[str, str | int]) -> Memory:
        return self.identities.memory(who)

    def join(self, shows: tuple[str, str | int] = TERMINAL, enters: tuple[str, str | int] = TELEGRAM) -> Joined:
        self.identities.enter_code(enters, self.identities.start_link(shows).text)
        assert isinstance(self.identities.confirm(enters), Pending)
        joined = self.identities.confirm(shows)
        assert isinstance(joined, Joined)
        return joined

    def bytes(self) -> bytes:
        """All that is stored anywhere."""
        if self.where.startswith("postgresql"):
            import psycopg

            with psycopg.connect(self.where) as db:
                names = [
                    row[0]
                    for row in db.execute(
                        "SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"
                    )
                ]
                return b"".join(repr(db.execute(f'SELECT * FROM "{name}"').fetchall()).encode() for name in names)
        self.recollect.close()
        return b"".join(path.read_bytes() for path in sorted(Path(self.where).rglob("*")) if path.is_file())

    def copies(self) -> int:
        with self.identities._store.read() as view:
            assert view is not None
            return sum(view.rows("copy", id=row[0])[0][0] is not None for row in view.rows("outlived", now="9999"))


@pytest.fixture(params=first(1, ["sqlite", "postgres"]))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    where = str(tmp_path / "memory") if request.param == "sqlite" else request.getfixturevalue("postgres_tables")
    clock = FrozenClock()
    with recollect.open(where, clock=clock) as opened:
        yield World(where, clock, opened)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[World]:
    """On SQLite only, for what does not touch the database."""
    clock = FrozenClock()
    with recollect.open(tmp_path / "memory", clock=clock) as opened:
        yield World(str(tmp_path / "memory"), clock, opened)


def refused(kind: str, act: Callable[[], object]) -> LinkError:
    with pytest.raises(LinkError) as caught:
        act()
    assert caught.value.kind == kind, caught.value
    return caught.value


def said(memory: Memory) -> set[str]:
    return {record.text for record in memory.read()}


# who it is


def test_U2_an_identity_is_a_user_of_its_own_and_asking_creates_nothing(world: World) -> None:
    assert world.identities.resolve(TELEGRAM) == "telegram:12345"
    assert world.identities.pending(TELEGRAM) is None
    assert world.identities.code_until(TELEGRAM) is None
    assert world.identities.all() == []
    assert world.identities.decline(TELEGRAM) is False
    assert list(world.recollect.users()) == []
    assert not Path(world.where).exists()


def test_U2_no_two_identities_have_one_user_id() -> None:
    from recollect.identity.identities import check_identity

    assert str(check_identity(("telegram", "a:b"))) == "telegram:a:b"
    for wrong in (
        "telegram:1", ("telegram",), ("tele:gram", "1"), ("Telegram", "1"), ("", "1"), ("x" * 33, "1"), ("telegram", ""),
        ("telegram", " 1"), ("telegram", "a\nb"), ("telegram", "\ud800"), ("telegram", "x" * 120), ("telegram", True),
        ("telegram", None), (1, 2), None, 7, ("телеграм", "1"), ("telegram", "a\x00b"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError):
            check_identity(wrong)


def test_U2_a_host_says_which_of_its_users_an_identity_is(world: World) -> None:
    world.identities.bind(TERMINAL, "me")
    world.identities.bind(TERMINAL, "me")
    assert world.identities.resolve(TERMINAL) == "me"
    world.recollect.user("me").remember("Likes jazz")
    world.memory(TELEGRAM).remember("Plays chess")
    world.join()
    assert world.identities.resolve(TELEGRAM) == "me"
    assert said(world.recollect.user("me")) == {"Likes jazz", "Plays chess"}
    refused("joined", lambda: world.identities.bind(TELEGRAM, "another"))
    world.recollect.erase_user("me")
    assert world.identities.resolve(TERMINAL) == "terminal:olena"


def test_U2_a_store_of_ones_own_joins_nobody() -> None:
    with recollect.open(MemoryStore()) as opened:
        assert opened.identities.resolve(TELEGRAM) == "telegram:12345"
        with pytest.raises(ConfigError):
            opened.identities.start_link(TELEGRAM)
        memory = opened.identities.memory(TELEGRAM)
        memory.remember("Likes jazz")
        memory.clear()
        memory.upkeep()
        opened.erase_user("telegram:12345")


# the code


def test_U2_a_code_is_short_unambiguous_and_only_its_hash_is_stored(world: World) -> None:
    code = world.identities.start_link(TERMINAL)
    assert len(normal(code.text)) == LENGTH
    assert not set("01OIL") & set(ALPHABET)
    assert code.until == world.clock() + timedelta(minutes=10)
    stored = world.bytes()
    assert code.text.encode() not in stored
    assert normal(code.text).encode() not in stored


@pytest.mark.parametrize(
    "wrong", ["", "K7QM", "K7QM2-XWDP0", "K7QM2-XWDPAA", "x" * 1000, "K7QM2\x00XWDPA", None, 1234567890, "кукуруза"]
)
def test_what_cannot_be_a_code_is_no_guess(wrong: Any, folder: World) -> None:
    for _ in range(TRIES + 1):
        with pytest.raises(InvalidInputError) as caught:
            folder.identities.enter_code(TELEGRAM, wrong)
    assert "2XW" not in str(caught.value) or "such as K7QM2-XWDPA" in str(caught.value)


def test_U2_a_code_is_read_however_it_is_typed(folder: World) -> None:
    text = folder.identities.start_link(TERMINAL).text
    assert folder.identities.enter_code(TELEGRAM, f" {text.lower().replace('-', ' – ')}\n")


def test_U2_nothing_is_joined_before_both_have_confirmed(world: World) -> None:
    world.memory(TERMINAL).remember("Has a secret garden")
    world.memory(TELEGRAM).remember("Plays chess")
    code = world.identities.start_link(TERMINAL)
    assert world.identities.code_until(TERMINAL) == code.until
    refused("nothing", lambda: world.identities.confirm(TERMINAL))
    seen = world.identities.enter_code(TELEGRAM, code.text)
    assert seen == world.identities.pending(TELEGRAM)
    for side, other in ((TERMINAL, "telegram"), (TELEGRAM, "terminal")):
        pending = world.identities.pending(side)
        assert pending is not None
        assert (pending.other_channel, pending.own_counts, pending.other_counts) == (other, {"fact": 1}, {"fact": 1})
        told = repr(pending) + pending.message
        assert "garden" not in told and "chess" not in told
    assert "olena" not in repr(seen) + seen.message
    waiting = world.identities.confirm(TELEGRAM)
    assert isinstance(waiting, Pending) and waiting.confirmed and not waiting.other_confirmed
    assert world.identities.confirm(TELEGRAM) == waiting
    assert said(world.memory(TELEGRAM)) == {"Plays chess"}
    assert world.identities.resolve(TELEGRAM) == "telegram:12345"
    with world.again() as again:
        assert isinstance(again.confirm(TERMINAL), Joined)
    assert world.identities.resolve(TELEGRAM) == "terminal:olena"
    assert said(world.memory(TELEGRAM)) == {"Has a secret garden", "Plays chess"}


@pytest.mark.parametrize("side", [TERMINAL, TELEGRAM])
def test_U2_either_side_can_decline(world: World, side: tuple[str, str | int]) -> None:
    code = world.identities.start_link(TERMINAL).text
    world.identities.enter_code(TELEGRAM, code)
    world.identities.confirm(TERMINAL if side == TELEGRAM else TELEGRAM)
    assert world.identities.decline(side) is True
    for one in (TERMINAL, TELEGRAM):
        assert world.identities.pending(one) is None
        refused("nothing", lambda: world.identities.confirm(TELEGRAM))
    refused("used", lambda: world.identities.enter_code(WEB, code))


def test_U2_everything_that_waits_expires(world: World) -> None:
    old = world.identities.start_link(TERMINAL).text
    world.clock.tick(seconds=600)
    error = refused("expired", lambda: world.identities.enter_code(TELEGRAM, old))
    assert "terminal" not in str(error) and "olena" not in str(error)
    world.identities.enter_code(TELEGRAM, world.identities.start_link(TERMINAL).text)
    world.identities.confirm(TELEGRAM)
    world.clock.tick(seconds=600)
    assert world.identities.pending(TERMINAL) is None
    refused("nothing", lambda: world.identities.confirm(TERMINAL))
    assert world.identities.resolve(TELEGRAM) == "telegram:12345"


def test_U2_a_code_works_once_and_a_new_one_ends_the_earlier(world: World) -> None:
    first, second = (world.identities.start_link(TERMINAL).text for _ in range(2))
    refused("expired", lambda: world.identities.enter_code(TELEGRAM, first))
    refused("own", lambda: world.identities.enter_code(TERMINAL, second))
    world.identities.enter_code(TELEGRAM, second)
    refused("used", lambda: world.identities.enter_code(TELEGRAM, second))
    refused("used", lambda: world.identities.enter_code(STRANGER, second))
    assert world.identities.pending(STRANGER) is None
    world.identities.confirm(TELEGRAM)
    world.identities.confirm(TERMINAL)
    refused("used", lambda: world.identities.enter_code(WEB, second))
    third = world.identities.start_link(TERMINAL).text
    refused("joined", lambda: world.identities.enter_code(TELEGRAM, third))


def test_U2_a_new_code_ends_what_waited_for_a_confirmation(folder: World) -> None:
    folder.identities.enter_code(STRANGER, folder.identities.start_link(TERMINAL).text)
    folder.identities.confirm(STRANGER)
    code = folder.identities.start_link(TERMINAL).text
    assert folder.identities.pending(STRANGER) is None
    refused("nothing", lambda: folder.identities.confirm(TERMINAL))
    folder.identities.enter_code(TELEGRAM, code)


def test_R4_guessing_is_limited_for_each_identity_and_a_restart_does_not_help(world: World) -> None:
    right = world.identities.start_link(TERMINAL).text
    for _ in range(TRIES):
        refused("wrong", lambda: world.identities.enter_code(STRANGER, "2222222222"))
    world.clock.tick(seconds=60)
    with world.again() as again:
        error = refused("limited", lambda: again.enter_code(STRANGER, right))
    assert error.retry_at == world.clock() + timedelta(minutes=14)
    assert "09:45" in str(error)
    world.recollect.erase_user("telegram:666")
    refused("limited", lambda: world.identities.enter_code(STRANGER, right))
    assert world.identities.enter_code(TELEGRAM, right)
    world.clock.tick(seconds=14 * 60)
    refused("wrong", lambda: world.identities.enter_code(STRANGER, "2222222222"))


def test_R4_wrong_codes_of_others_keep_nobody_from_linking(folder: World) -> None:
    right = folder.identities.start_link(TERMINAL).text
    for account in range(volume(10, 40)):
        for number in range(TRIES):
            wrong = f"{ALPHABET[account % 31]}{ALPHABET[number]}{ALPHABET[account // 31]}2222222"
            refused("wrong", lambda name=account, code=wrong: folder.identities.enter_code(("telegram", name), code))  # type: ignore[misc]
    assert folder.identities.enter_code(TELEGRAM, right)


def test_R4_one_code_cannot_be_tried_by_many(folder: World) -> None:
    old = folder.identities.start_link(TERMINAL).text
    right = folder.identities.start_link(TERMINAL).text
    for account in range(TRIES):
        refused("expired", lambda name=account: folder.identities.enter_code(("telegram", name), old))  # type: ignore[misc]
    error = refused("limited", lambda: folder.identities.enter_code(("telegram", 99), old))
    assert error.retry_at == folder.clock() + timedelta(minutes=15)
    assert folder.identities.enter_code(TELEGRAM, right)


def test_R4_a_code_is_too_long_to_be_guessed() -> None:
    guesses, shown = 5_000_000, 1_000  # a million accounts with five tries each, while a thousand codes are shown
    assert guesses * shown / len(ALPHABET) ** LENGTH < 1e-5
    assert all(len(normal(new_code())) == LENGTH for _ in range(100))


def test_P7_where_memory_is_off_nothing_is_joined(tmp_path: Path) -> None:
    with recollect.open(tmp_path, enabled=False) as opened:
        refused("paused", lambda: opened.identities.start_link(TERMINAL))


# one memory


def test_U2_everything_comes_along_with_what_is_known_about_it(world: World) -> None:
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    ours.remember("Likes jazz")
    ours.say("Good morning", session="tty")
    world.clock.tick(hours=1)
    theirs.remember("Really likes tea", pinned=True, importance=0.9, tags=["drinks"], excerpt="tea, please")
    theirs.remember("Is in Odesa", expires_at=world.clock() + timedelta(days=3), valid_from="2026-02-10")
    theirs.acting(trusted=False, agent="reader").remember("Owns three boats", source="tool:web")
    theirs.note("The release is cut on Monday", title="Releases", metadata={"page": 7})
    theirs.jot("Saw a film about bees")
    theirs.observe("Answers come late in the evening", "insight")
    theirs.episode("Trip", "We planned the trip to the sea", participants=["Olena"])
    theirs.say("Hello from the tram", session="chat-7", said_at="2026-02-11T08:00:00Z")
    theirs.set_scratch("draft", "Dear all")
    theirs.report("save", id="save-1", title="Rust async")
    theirs.remember("Kyiv", key="city")
    world.clock.tick(hours=1)
    theirs.update("city", "Lviv")
    before = {record.id: record for record in theirs.read(limit=None)}
    world.clock.tick(hours=1)
    joined = world.join()
    assert joined.counts == {"written": len(before)}
    memory = world.memory(TELEGRAM)
    assert memory.verify() == []
    assert said(memory) == {record.text for record in before.values()} | {"Likes jazz", "Good morning"}
    for record_id, old in before.items():
        new = memory.get(record_id)
        for name in ("created_at", "updated_at", "valid_from", "expires_at", "source", "trusted", "agent", "session"):
            assert getattr(new, name) == getattr(old, name), name
        for name in ("confidence", "pinned", "importance", "tags", "excerpt", "metadata", "key", "category"):
            assert getattr(new, name) == getattr(old, name), name
        [entry] = memory.history(record_id)
        assert (entry.actor, entry.run) == ("link:telegram:12345", joined.run)
        assert memory.why(record_id).message
    assert [session.id for session in memory.sessions()] == ["tty", "chat-7"]
    assert [one.id for one in memory.interactions()] == ["save-1"]
    assert [fact.content for fact in memory.read(key="city", as_of=world.clock() - timedelta(hours=2))] == ["Kyiv"]
    assert [hit.record.text for hit in memory.search("tram", include_conversation=True)][:1] == ["Hello from the tram"]
    assert list(world.recollect.users()) == ["terminal:olena"]
    assert [(e.op, e.reason) for e in memory.history() if e.op == "join"] == [("join", "joined with telegram:12345")]


def test_U2_what_both_know_is_known_once(world: World) -> None:
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    for memory in (ours, theirs):
        memory.remember("Likes jazz")
        memory.note("The release is cut on Monday")
        memory.jot("Saw a film")
        memory.observe("Bees sleep", "finding")
        memory.say("Hello", session="s", said_at="2026-02-11T08:00:00Z")
        memory.set_scratch("draft", "Dear all")
        memory.report("save", id="save-1", title="Rust")
    theirs.pin(theirs.read(kind="fact")[0].id)
    joined = world.join()
    assert joined.counts == {"known": 6}
    assert sum(ours.count().values()) == 6
    assert ours.read(kind="fact")[0].pinned
    assert len(ours.interactions()) == 1
    assert ours.verify() == []


@pytest.mark.parametrize(
    ("older", "newer", "holds"),
    [
        ("telegram", "terminal", "terminal"),
        ("terminal", "telegram", "telegram"),
        ("telegram by hand", "terminal", "telegram"),
        ("terminal by hand", "telegram", "terminal"),
        ("terminal by hand", "telegram by hand", "telegram"),
    ],
)
def test_U2_of_two_values_the_newer_holds_unless_the_older_was_written_by_hand(
    folder: World, older: str, newer: str, holds: str
) -> None:
    for which in (older, newer):
        channel, _, by_hand = which.partition(" ")
        memory = folder.memory(TERMINAL if channel == "terminal" else TELEGRAM)
        if by_hand:
            memory.edit(memory.show().replace("## Work Context\n", f"## Work Context\n\n- Role: {channel}\n", 1))
        else:
            memory.remember(channel, key="role", category="work_context")
        folder.clock.tick(hours=1)
    joined = folder.join()
    memory = folder.memory(TERMINAL)
    assert [fact.content for fact in memory.read(key="role")] == [holds]
    assert memory.verify() == []
    told = [state.content for entry in memory.history() for state in (entry.before, entry.after) if state]
    assert {"terminal", "telegram"} <= set(told)
    assert joined.counts in ({"updated": 1}, {"superseded": 1})


def test_P5_secrets_do_not_come_in_by_a_joining(folder: World) -> None:
    key = "sk-proj-" + "4f9aXb72Lq" * 3
    folder.memory(TELEGRAM).remember("Likes tea")
    with folder.recollect._store.user("telegram:12345").write() as tx:  # as if the policy had been another then
        now = folder.clock()
        seq = tx.next_seq()
        fact = recollect.Fact(
            id="fact-1", content=f"The key is {key}", seq=seq, created_at=now, updated_at=now, valid_from=now
        )
        tx.put(fact)
        tx.log([recollect.JournalEntry(seq=seq, at=now, actor="x", op="remember", record_id=fact.id, after=fact)])
    assert folder.join().counts == {"written": 1, "refused": 1}
    assert said(folder.memory(TERMINAL)) == {"Likes tea"}


@pytest.mark.everyday(3)
@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [("on", "paused", "paused"), ("paused", "on", "paused"), ("paused", "incognito", "incognito")],
)
def test_P7_if_either_was_paused_the_joined_memory_is(world: World, ours: str, theirs: str, both: str) -> None:
    for who, mode, text in ((TERMINAL, ours, "Likes jazz"), (TELEGRAM, theirs, "Plays chess")):
        memory = world.memory(who)
        memory.remember(text)
        if mode != "on":
            memory.pause(incognito=mode == "incognito")
    world.join()
    memory = world.memory(TERMINAL)
    assert memory.mode == both
    world.identities.unlink(TELEGRAM)
    assert (world.memory(TERMINAL).mode, world.memory(TELEGRAM).mode) == (ours, theirs)
    memory.resume()
    assert said(memory) == {"Likes jazz"}


def test_U2_a_consent_holds_if_it_was_given_on_both_sides(world: World) -> None:
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    for memory in (ours, theirs):
        memory.consent("across_chats")
    ours.consent("trends")
    world.join()
    assert set(ours.consents()) == {"across_chats"}
    world.identities.unlink(TELEGRAM)
    assert set(ours.consents()) == {"across_chats", "trends"}
    assert set(world.memory(TELEGRAM).consents()) == {"across_chats"}


def test_U2_who_has_no_memory_yet_takes_over_the_other_one(world: World) -> None:
    theirs = world.memory(TELEGRAM)
    theirs.remember("Plays chess")
    theirs.consent("trends")
    world.join()
    assert said(world.memory(TERMINAL)) == {"Plays chess"}
    assert set(world.memory(TERMINAL).consents()) == {"trends"}
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TERMINAL)) == set()
    assert set(world.memory(TERMINAL).consents()) == set()
    assert set(world.memory(TELEGRAM).consents()) == {"trends"}


def test_U2_nobody_has_a_memory_yet(world: World) -> None:
    assert world.join().counts == {}
    assert world.identities.resolve(TELEGRAM) == "terminal:olena"
    world.memory(TELEGRAM).remember("Plays chess")
    assert said(world.memory(TERMINAL)) == {"Plays chess"}
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == set()
    assert said(world.memory(TERMINAL)) == {"Plays chess"}


def test_U2_several_are_joined_one_after_another_and_undone_in_turn(world: World) -> None:
    for who, text in ((TERMINAL, "Likes jazz"), (TELEGRAM, "Plays chess"), (WEB, "Drinks tea")):
        world.memory(who).remember(text)
    world.join(TERMINAL, TELEGRAM)
    code = world.identities.start_link(TELEGRAM).text
    refused("joined", lambda: world.identities.enter_code(TERMINAL, code))
    world.join(WEB, TELEGRAM)
    assert {world.identities.resolve(who) for who in (TERMINAL, TELEGRAM, WEB)} == {"web:olena@example.org"}
    assert said(world.memory(TERMINAL)) == {"Likes jazz", "Plays chess", "Drinks tea"}
    assert [(str(one.identity), one.joined) for one in world.identities.all()] == [
        ("telegram:12345", True), ("terminal:olena", True), ("web:olena@example.org", False),
    ]  # fmt: skip
    refused("nothing", lambda: world.identities.unlink(WEB))
    assert world.identities.unlink(TELEGRAM).user_id == "terminal:olena"
    assert said(world.memory(WEB)) == {"Drinks tea"}
    assert said(world.memory(TELEGRAM)) == {"Likes jazz", "Plays chess"}
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == {"Plays chess"}
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}


def test_R4_nothing_of_a_third_person_is_touched_or_told(world: World) -> None:
    third = world.memory(WEB)
    third.remember("Keeps bees in Lviv")
    before = [entry.seq for entry in third.history()]
    world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember("Plays chess")
    world.join()
    world.identities.unlink(TELEGRAM)
    assert [entry.seq for entry in third.history()] == before
    for who in (TERMINAL, TELEGRAM):
        assert not mentions(repr([world.memory(who).read(), world.memory(who).history()]), "bees")
    code = world.identities.start_link(TERMINAL).text
    world.identities.enter_code(STRANGER, code)
    world.identities.confirm(STRANGER)
    for answer in (world.identities.pending(STRANGER), world.identities.confirm(STRANGER)):
        assert not mentions(repr(answer), "jazz")
    assert said(world.memory(STRANGER)) == set()
    refused("nothing", lambda: world.identities.unlink(STRANGER))
    refused("nothing", lambda: world.identities.confirm(WEB))
    assert world.identities.decline(WEB) is False
    assert world.identities.pending(TERMINAL) is not None


# and back


def test_R5_unlinking_gives_each_their_own_memory_back(world: World) -> None:
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    ours.remember("engineer", key="role", category="work_context")
    ours.report("save", id="ours", title="Jazz")
    world.clock.tick(hours=1)
    theirs.remember("teacher", key="role", category="work_context")
    theirs.remember("Plays chess")
    theirs.jot("Saw a film")
    theirs.report("save", id="theirs", title="Chess")
    theirs.forget(theirs.remember("Had a cat").record.id)  # type: ignore[attr-defined]
    kept = theirs.remember("Drinks tea").record.id  # type: ignore[attr-defined]
    before = [theirs.read(status="all", limit=None), theirs.history()]
    world.join()
    world.clock.tick(days=29)
    both = world.memory(TELEGRAM)
    both.remember("Learned together")
    both.update(kept, "Drinks green tea")
    undone = world.identities.unlink(TELEGRAM)
    assert (undone.user_id, undone.was_user_id, undone.kept) == ("telegram:12345", "terminal:olena", 1)
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    assert said(ours) == {"role: engineer", "Learned together", "Drinks green tea"}
    assert [theirs.read(status="all", limit=None), theirs.history()] == before
    assert ([one.id for one in ours.interactions()], [one.id for one in theirs.interactions()]) == (
        ["ours"],
        ["theirs"],
    )
    assert ours.verify() == theirs.verify() == []
    assert "chess" not in repr([ours.read(status="all"), ours.history()])
    refused("nothing", lambda: world.identities.unlink(TELEGRAM))
    assert world.join().counts["written"] >= 2
    assert {"Plays chess", "Saw a film"} <= said(world.memory(TERMINAL))
    assert world.memory(TERMINAL).verify() == []


def test_R5_after_thirty_days_it_is_final_and_upkeep_erases_the_copy(world: World) -> None:
    world.memory(TELEGRAM).remember("Plays chess")
    world.join()
    assert world.copies() == 1
    world.clock.tick(days=30)
    refused("final", lambda: world.identities.unlink(TELEGRAM))
    world.memory(TERMINAL).upkeep()
    assert world.copies() == 0
    assert world.identities.resolve(TELEGRAM) == "terminal:olena"
    assert said(world.memory(TELEGRAM)) == {"Plays chess"}


def test_R6_what_expired_meanwhile_does_not_come_back_and_expiry_is_no_erasure(world: World) -> None:
    theirs = world.memory(TELEGRAM)
    theirs.remember("Is in Odesa", expires_at=world.clock() + timedelta(days=3))
    theirs.remember("Plays chess")
    world.join()
    world.clock.tick(days=4)
    assert world.memory(TERMINAL).upkeep().expired == {"fact": 1}
    world.identities.unlink(TELEGRAM)
    assert [record.text for record in world.memory(TELEGRAM).read(status="all")] == ["Plays chess"]


# erasing


def _erase_record(memory: Memory) -> object:
    return memory.erase(memory.read(kind="fact")[0].id)


@pytest.mark.everyday(3)
@pytest.mark.parametrize(
    "act",
    [
        _erase_record,
        lambda memory: memory.erase_topic("zeppelin"),
        lambda memory: memory.clear(),
        lambda memory: memory.acting("upkeep").clear(),
    ],
)
def test_R7_whatever_the_survivor_erases_is_gone_from_the_copy(world: World, act: Callable[[Memory], Any]) -> None:
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    world.join()
    done = act(world.memory(TERMINAL))
    assert world.copies() == 0
    if isinstance(done, recollect.Erased):
        assert "telegram:12345" in done.notices[0]
    receipt = done.receipt if isinstance(done, recollect.Erased) else done[1]
    assert receipt.places["joined copies"] == 1
    with world.again() as again:
        refused("final", lambda: again.unlink(TELEGRAM))
    world.memory(TERMINAL).upkeep()
    assert b"zeppelin" not in world.bytes()
    world.memory(TERMINAL).acting("agent", agent="extractor").remember("Flies a zeppelin", source="batch_extraction")
    assert said(world.memory(TERMINAL)) == set()


def test_R7_clearing_a_memory_that_shows_nothing_drops_the_copy_too(world: World) -> None:
    theirs = world.memory(TELEGRAM)
    theirs.forget(theirs.remember("Flies a zeppelin").record.id)  # type: ignore[attr-defined]
    world.join()
    assert world.copies() == 1
    world.memory(TERMINAL).clear()
    assert world.copies() == 0
    assert b"zeppelin" not in world.bytes()


def test_R7_a_rehearsed_erasure_leaves_the_copy(world: World) -> None:
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    world.join()
    with pytest.raises(ZeroDivisionError), world.memory(TERMINAL).batch() as trial:
        trial.clear()
        raise ZeroDivisionError
    assert world.copies() == 1
    world.identities.unlink(TELEGRAM)


def test_R7_an_erasure_reaches_the_copies_of_all_that_was_joined_before(world: World) -> None:
    for who in (TERMINAL, TELEGRAM, WEB):
        world.memory(who).remember(f"Flies a zeppelin over {who[0]}")
    world.join(TERMINAL, TELEGRAM)
    world.join(WEB, TERMINAL)
    assert world.copies() == 2
    world.memory(TELEGRAM).clear()
    assert world.copies() == 0
    assert b"zeppelin" not in world.bytes()


def test_R7_erasing_another_user_leaves_the_copy(world: World) -> None:
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    world.memory(WEB).remember("Flies a zeppelin")
    world.join()
    world.memory(WEB).clear()
    world.recollect.erase_user("web:olena@example.org")
    assert world.copies() == 1


def test_R7_erasing_the_survivor_erases_copies_mapping_and_codes(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    world.join()
    code = world.identities.start_link(TERMINAL).text
    receipt = world.recollect.erase_user(world.identities.resolve(TELEGRAM))
    assert receipt.places["joined copies"] == 1
    assert receipt.places["links"] == 2
    assert world.identities.resolve(TELEGRAM) == "telegram:12345"
    assert world.identities.all() == []
    refused("wrong", lambda: world.identities.enter_code(WEB, code))
    assert list(world.recollect.users()) == []
    stored = world.bytes()
    for text in (b"zeppelin", b"jazz", b"12345", b"olena"):
        assert text not in stored


def test_R7_what_was_erased_on_one_side_does_not_come_back_through_the_other(world: World) -> None:
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    for memory in (ours, theirs):
        memory.remember("Flies a zeppelin")
        memory.remember("Drives a tram")
        memory.remember("Likes jazz")
    world.clock.tick(hours=1)
    ours.erase(next(one.id for one in ours.read() if "zeppelin" in one.text))
    theirs.erase(next(one.id for one in theirs.read() if "tram" in one.text))
    world.clock.tick(hours=1)
    assert world.join().counts == {"known": 1, "erased before": 1}
    memory = world.memory(TERMINAL)
    assert said(memory) == {"Likes jazz"}
    learning = memory.acting("agent", agent="extractor")
    for text in ("Flies a zeppelin", "Drives a tram", "Drives a tram"):
        learning.remember(text, source="batch_extraction")
        assert said(memory) == {"Likes jazz"}
    assert isinstance(learning.remember("Drives a tram", source="batch_extraction"), recollect.Refused)
    assert memory.remember("Drives a tram").done
    assert memory.verify() == []


def test_R7_what_was_said_again_after_an_erasure_comes_along(world: World) -> None:
    ours, theirs = world.memory(TERMINAL), world.memory(TELEGRAM)
    ours.erase(ours.remember("Drives a tram").record.id)  # type: ignore[attr-defined]
    world.clock.tick(hours=1)
    theirs.remember("Drives a tram")
    world.join()
    assert said(ours) == {"Drives a tram"}


def test_R7_what_is_erased_in_the_middle_of_a_joining_does_not_come_in_after_it(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    _stopped_joining(world)
    with pytest.raises(StoreBusyError, match="Erase again"):
        world.memory(TERMINAL).clear()
    world.memory(TERMINAL).clear()
    world.identities.upkeep()
    assert said(world.memory(TERMINAL)) == set()
    assert list(world.recollect.users()) == ["terminal:olena"]
    assert world.copies() == 0


def test_R7_erasing_a_user_in_the_middle_of_a_joining_ends_it(world: World) -> None:
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    _stopped_joining(world)
    world.recollect.erase_user("terminal:olena")
    world.identities.upkeep()
    assert list(world.recollect.users()) == []
    assert b"zeppelin" not in world.bytes()


def _stopped_joining(world: World) -> None:
    """Both have confirmed, and the process was stopped before anything was merged."""
    world.identities.enter_code(TELEGRAM, world.identities.start_link(TERMINAL).text)
    world.identities.confirm(TELEGRAM)
    with world.identities._store.write() as view:
        [link] = view.rows("open", now="", channel="terminal", name="olena") or [("",)]
        view.run("agree_shown", id=link[0])
        view.run("begin_joining", id=link[0], survivor="terminal:olena", joined="telegram:12345")


def test_R5_upkeep_completes_a_joining_that_was_stopped(world: World) -> None:
    world.memory(TELEGRAM).remember("Plays chess")
    _stopped_joining(world)
    pending = world.identities.pending(TERMINAL)
    assert pending is not None and pending.confirmed and pending.other_confirmed
    assert pending.other_counts == {"fact": 1}
    refused("nothing", lambda: world.identities.unlink(TELEGRAM))
    world.memory(TERMINAL).upkeep()
    assert said(world.memory(TERMINAL)) == {"Plays chess"}
    assert list(world.recollect.users()) == ["terminal:olena"]
    assert world.copies() == 1


def test_R5_what_is_written_to_the_old_memory_during_the_joining_is_not_lost(world: World) -> None:
    stale = world.recollect.user("telegram:12345")
    stale.remember("Plays chess")
    _stopped_joining(world)
    identities = world.identities
    seen: list[object] = []
    merge = identities._merge

    def interrupted(link: Any) -> None:
        merge(link)
        if not seen:
            seen.append(stale.remember("Came in late"))
            stale.report("save", id="late", title="Late")

    identities._merge = interrupted  # type: ignore[method-assign]
    identities.confirm(TERMINAL)
    assert said(world.memory(TERMINAL)) == {"Plays chess", "Came in late"}
    assert [one.id for one in world.memory(TERMINAL).interactions()] == ["late"]
    identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == {"Plays chess", "Came in late"}


def test_R5_what_was_spent_is_counted_once_however_much_comes_in_late(folder: World) -> None:
    stale = folder.recollect.user("telegram:12345")
    stale.spend("chat", tokens_in=5)
    stale.remember("Plays chess")
    _stopped_joining(folder)
    identities = folder.identities
    seen: list[object] = []
    merge = identities._merge

    def interrupted(link: Any) -> None:
        merge(link)
        if not seen:
            with stale.batch() as late:
                seen.extend(late.say(f"Message number {number}", session="late") for number in range(60))

    identities._merge = interrupted  # type: ignore[method-assign]
    identities.confirm(TERMINAL)
    memory = folder.memory(TERMINAL)
    assert len(memory.read(kind="message", limit=None)) == 60
    assert sum(one.tokens_in for one in memory.usage()) == 5
    assert sum(entry.op == "join" for entry in memory.history()) == 1
    assert memory.verify() == []


def test_R7_erasing_one_who_was_joined_takes_along_what_they_brought(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    world.join()
    assert world.recollect.erase_user("telegram:12345").places["joined copies"] == 1
    assert world.identities.resolve(TELEGRAM) == "telegram:12345"
    memory = world.memory(TERMINAL)
    assert said(memory) == {"Likes jazz"}
    assert memory.verify() == []
    assert b"zeppelin" not in world.bytes()


def test_R7_erasing_one_in_the_middle_of_their_joining_takes_along_what_came_so_far(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember("Flies a zeppelin")
    _stopped_joining(world)
    identities = world.identities

    def stopped(link: Any) -> None:
        raise KeyboardInterrupt

    identities._remove = stopped  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        identities.confirm(TERMINAL)
    assert "Flies a zeppelin" in said(world.recollect.user("terminal:olena"))
    world.recollect.erase_user("telegram:12345")
    assert said(world.memory(TERMINAL)) == {"Likes jazz"}
    assert list(world.recollect.users()) == ["terminal:olena"]
    assert world.identities.resolve(TELEGRAM) == "telegram:12345"
    assert b"zeppelin" not in world.bytes()


@pytest.mark.everyday(1)
def test_R7_what_was_erased_two_joinings_ago_is_not_learned_again(world: World) -> None:
    theirs = world.memory(TELEGRAM)
    theirs.erase(theirs.remember("Flies a zeppelin").record.id)  # type: ignore[attr-defined]
    world.memory(WEB).remember("Flies a zeppelin", source="discussion:1")
    world.join(TERMINAL, TELEGRAM)
    world.join(WEB, TERMINAL)
    memory = world.memory(TERMINAL)
    assert said(memory) == set()
    memory.acting("agent").remember("Flies a zeppelin", source="batch_extraction")
    assert said(memory) == set()


def test_R5_a_run_undone_by_hand_is_unlinked_all_the_same(world: World) -> None:
    world.memory(TERMINAL).remember("Likes jazz")
    world.memory(TELEGRAM).remember("Plays chess")
    run = world.join().run
    world.memory(TERMINAL).undo(run)
    assert said(world.memory(TELEGRAM)) == {"Likes jazz"}
    world.identities.unlink(TELEGRAM)
    assert said(world.memory(TELEGRAM)) == {"Plays chess"}
    memory = world.memory(TERMINAL)
    assert "chess" not in repr([memory.read(status="all"), memory.history()])
    assert memory.verify() == []


def test_R5_what_was_known_with_little_confidence_stays_a_fact_however_often_it_is_merged(world: World) -> None:
    theirs = world.memory(TELEGRAM)
    theirs.update(theirs.remember("Plays chess").record.id, confidence=0.3)  # type: ignore[attr-defined]
    _stopped_joining(world)
    identities = world.identities
    remove = identities._remove
    stops: list[object] = [None]

    def stopped(link: Any) -> None:
        if stops:
            stops.pop()
            with identities._store.write() as view:
                view.run("set_merged", id=link.id, merged=0)
            raise KeyboardInterrupt
        remove(link)

    identities._remove = stopped  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        identities.confirm(TERMINAL)
    identities.confirm(TERMINAL)
    memory = world.memory(TERMINAL)
    assert [(one.kind, one.text, one.confidence) for one in memory.read()] == [("fact", "Plays chess", 0.3)]
    assert memory.verify() == []


# the command line


def test_U3_two_channels_are_joined_on_the_command_line(tmp_path: Path) -> None:
    def run(*args: str, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [*args, "--root", str(tmp_path), "--json"])
        assert result.exit_code == code, result.output
        return json.loads(result.stdout if code == 0 else result.stdout or result.stderr)

    telegram = ("--as", "telegram:12345")
    assert run("identities") == []
    assert run("link", "status")["pending"] is None
    assert not (tmp_path / "identities.db").exists()
    run("remember", "Likes jazz")
    run("remember", "Plays chess", "--user", "telegram:12345")
    assert run("link", "confirm", code=1)["message"] == "There is nothing to confirm."
    code = run("link", "show")["code"]
    assert run("link", "enter", code, code=1) == {
        "error": "link",
        "message": "This code was shown on this channel; enter it on the other one.",
    }
    assert run("link", "enter", "?", *telegram, code=2)["error"] == "invalid_input"
    assert run("link", "enter", code, "--as", "telegram", code=2)["error"] == "invalid_input"
    assert run("link", "status")["code_until"]
    assert run("link", "enter", code, *telegram)["other_counts"] == {"fact": 1}
    assert run("link", "confirm", code=2)["error"] == "confirmation"
    assert run("link", "confirm", "--yes", *telegram)["joined"] is False
    assert run("link", "status")["pending"]["other_confirmed"] is True
    assert run("link", "confirm", "--yes")["result"]["user_id"] == "me"
    assert [one["text"] if "text" in one else one["content"] for one in run("read")] == ["Likes jazz", "Plays chess"]
    assert {tuple(one["identity"]): one["joined"] for one in run("identities")} == {
        ("telegram", "12345"): True,
        ("terminal", "me"): False,
    }
    assert run("link", "decline", code=1) == {"declined": False}
    assert run("link", "undo", "--yes", code=1)["error"] == "link"
    assert run("link", "undo", "--yes", *telegram)["user_id"] == "telegram:12345"
    run("identities", "--bind", "telegram:12345", "--user", "anna")
    assert {tuple(one["identity"]): one["user_id"] for one in run("identities")}["telegram", "12345"] == "anna"


def test_U3_on_a_terminal_the_person_reads_what_will_be_joined(tmp_path: Path) -> None:
    def run(*args: str) -> str:
        return CliRunner().invoke(app, [*args, "--root", str(tmp_path)]).output

    assert "is not linked" in run("link", "status")
    code = run("link", "show").split()[0]
    shown = run("link", "enter", code, "--as", "telegram:12345")
    assert "your terminal (nothing remembered yet)" in shown
    assert "recollect link confirm --as telegram:12345" in shown
    assert "your telegram" in run("link", "status")
    run("link", "confirm", "--yes", "--as", "telegram:12345")
    assert "one memory now" in run("link", "confirm", "--yes")
    assert "telegram:12345  me    linked" in run("identities")


def test_U3_the_command_line_follows_a_joining_that_another_channel_began(tmp_path: Path) -> None:
    def run(*args: str) -> Any:
        result = CliRunner().invoke(app, [*args, "--root", str(tmp_path), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    telegram = ("--as", "telegram:12345")
    run("remember", "Likes jazz")
    run("remember", "Plays chess", "--user", "telegram:12345")
    run("link", "enter", run("link", "show", *telegram)["code"])
    run("link", "confirm", "--yes")
    assert run("link", "confirm", "--yes", *telegram)["result"]["user_id"] == "telegram:12345"
    assert sorted(one["content"] for one in run("read")) == ["Likes jazz", "Plays chess"]  # as "me", still
    run("remember", "Sings")
    assert "Sings" in [one["content"] for one in run("read", "--user", "telegram:12345")]
    run("link", "undo", "--yes")
    assert [one["content"] for one in run("read")] == ["Likes jazz"]


# other processes


def _fill(where: str) -> None:
    with recollect.open(where) as opened:
        ours, theirs = opened.identities.memory(TERMINAL), opened.identities.memory(TELEGRAM)
        ours.remember("engineer", key="role", category="work_context")
        ours.remember("Likes jazz")
        theirs.remember("teacher", key="role", category="work_context")
        theirs.remember("Likes jazz")
        theirs.note("The release is cut on Monday")
        theirs.jot("Saw a film")
        theirs.say("Hello", session="s")
        theirs.report("save", id="save-1", title="Rust")
        theirs.spend("chat", tokens_in=5)
        theirs.erase(theirs.remember("Flies a zeppelin").record.id)  # type: ignore[attr-defined]
        opened.identities.enter_code(TELEGRAM, opened.identities.start_link(TERMINAL).text)
        opened.identities.confirm(TELEGRAM)


def _state(where: str) -> dict[str, Any]:
    """Everything that must be the same, however often it was begun."""
    with recollect.open(where) as opened:
        people = {}
        for who in (TERMINAL, TELEGRAM):
            memory = opened.identities.memory(who)
            people[str(Identity(who[0], str(who[1])))] = {
                "is": opened.identities.resolve(who),
                "said": sorted(said(memory)),
                "problems": memory.verify(),
                "interactions": [one.id for one in memory.interactions()],
                "tokens": sum(one.tokens_in for one in memory.usage()),
                "joins": sum(entry.op == "join" for entry in memory.history()),
            }
        left = [path.name for path in Path(where).rglob(".joining-*")] if "://" not in where else []
        return {"users": list(opened.users()), "left": left, **people}


def _is_whole(where: str, what: str) -> bool:
    """Whether a kill left all of the merging or of its undoing in the surviving memory, or nothing."""
    with recollect.open(where) as opened:
        done = [entry for entry in opened.user("terminal:olena").history() if entry.actor.startswith("link:")]
    found = [entry.op for entry in done if (entry.run or "").endswith("-undo") == (what == "unlink")]
    return not found or {"join": "join", "unlink": "unjoin"}[what] in found


def _die_at(number: int) -> Callable[[], int]:
    """Kill this process at the so-manieth statement that reaches a database; the answer counts them."""
    import psycopg

    counted = 0

    def count(*_: object) -> None:
        nonlocal counted
        counted += 1
        if counted == number:
            os.kill(os.getpid(), signal.SIGKILL)

    connect, execute = sqlite3.connect, psycopg.Connection.execute

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **options)
        db.set_trace_callback(count)
        return db

    def executed(self: Any, *args: Any, **options: Any) -> Any:
        count()
        return execute(self, *args, **options)

    sqlite3.connect = connected  # type: ignore[assignment]
    psycopg.Connection.execute = executed  # type: ignore[method-assign]
    return lambda: counted


def _in_child(act: Callable[[], object]) -> int:
    """Do this in a fork, and say how that ended."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kills(what: str, wheres: list[str], template: str) -> None:
    """Do it once whole, then kill it at points all along, and complete it each time: always the same."""

    def fresh(where: str) -> None:
        if template:
            shutil.copytree(template, where)
        else:
            _fill(where)
        if what == "unlink":
            with recollect.open(where) as opened:
                opened.identities.confirm(TERMINAL)

    def act(where: str, number: int = 0, counted: int = -1) -> None:
        statements = _die_at(number)
        with recollect.open(where) as opened:
            if what == "join":
                opened.identities.confirm(TERMINAL)
            else:
                opened.identities.unlink(TELEGRAM)
        if counted >= 0:
            os.write(counted, str(statements()).encode())

    whole, *others = wheres
    fresh(whole)
    told, telling = os.pipe()
    assert _in_child(lambda: act(whole, counted=telling)) == 0
    number = int(os.read(told, 20))
    expected = _state(whole)
    print(what, number, json.dumps(expected))
    assert expected["terminal:olena"]["problems"] == []
    assert len(expected["users"]) == (1 if what == "join" else 2)
    for place, where in enumerate(others):
        fresh(where)
        point = 1 + (place * (number - 2)) // max(len(others) - 1, 1)
        ended = _in_child(lambda where=where, point=point: act(where, point))  # type: ignore[misc]
        # the number of statements varies a little, because emptying a log that is busy is tried again: the last point
        # may be behind the end
        assert ended == -signal.SIGKILL or (ended == 0 and point > 0.9 * number), point
        assert _is_whole(where, what), point
        with recollect.open(where) as opened:
            opened.identities.upkeep()
            if what == "join" and opened.identities.pending(TERMINAL) is not None:
                opened.identities.confirm(TERMINAL)
            elif what == "unlink" and opened.identities.resolve(TELEGRAM) == "terminal:olena":
                opened.identities.unlink(TELEGRAM)
        assert _state(where) == expected, (point, _state(where))


def _race(where: str) -> None:
    """Several processes enter the same code at the same instant."""
    with recollect.open(where) as opened:
        code = opened.identities.start_link(TERMINAL).text
    ready, go = os.pipe(), os.pipe()
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            result = 2
            try:
                opened = recollect.open(where)
                opened.identities.resolve(TERMINAL)
                os.write(ready[1], b"x")
                os.read(go[0], 1)
                opened.identities.enter_code(("telegram", number), code)
                result = 0
            except LinkError as error:
                result = 1 if error.kind == "used" else 3
            except BaseException:
                traceback.print_exc()
            os._exit(result)
        children.append(child)
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"x" * len(children))
    results = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert results == [0] + [1] * (len(children) - 1), results


def _both(where: str) -> None:
    """Both sides confirm at the same instant, and later two processes undo it at the same instant."""
    _fill(where)
    with recollect.open(where) as opened:
        opened.identities.decline(TELEGRAM)
        opened.identities.enter_code(TELEGRAM, opened.identities.start_link(TERMINAL).text)
        before = _state(where)

    def at_once(*acts: Callable[[Identities], object]) -> None:
        ready, go = os.pipe(), os.pipe()
        children = []
        for act in acts:
            child = os.fork()
            if child == 0:
                result = 1
                try:
                    opened = recollect.open(where)
                    opened.identities.resolve(TERMINAL)
                    os.write(ready[1], b"x")
                    os.read(go[0], 1)
                    act(opened.identities)
                    result = 0
                except (LinkError, StoreError):
                    result = 0  # the other one was quicker, or is at it
                except BaseException:
                    traceback.print_exc()
                os._exit(result)
            children.append(child)
        for _ in children:
            os.read(ready[0], 1)
        os.write(go[1], b"x" * len(children))
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * len(children)
        with recollect.open(where) as opened:
            opened.identities.upkeep()

    at_once(*(lambda ids, who=who: ids.confirm(who) for who in (TERMINAL, TELEGRAM, TERMINAL)))
    joined = _state(where)
    assert joined["users"] == ["terminal:olena"], joined
    assert joined["terminal:olena"] == joined["telegram:12345"]
    assert joined["terminal:olena"]["joins"] == 1
    assert joined["terminal:olena"]["tokens"] == 5
    assert joined["terminal:olena"]["problems"] == []
    assert len(joined["terminal:olena"]["said"]) == 5, joined
    at_once(*(lambda ids: ids.unlink(TELEGRAM) for _ in range(2)))
    apart = _state(where)
    for who in ("terminal:olena", "telegram:12345"):
        assert (apart[who]["said"], apart[who]["problems"]) == (before[who]["said"], []), apart


def _elsewhere(*args: object) -> None:
    command = [sys.executable, "-m", "tests.test_identity", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.everyday(1)
@pytest.mark.parametrize("what", ["join", "unlink"])
def test_R5_a_kill_anywhere_leaves_a_joining_that_can_be_completed(tmp_path: Path, what: str) -> None:
    _fill(str(tmp_path / "template"))
    _elsewhere("kills", what, tmp_path / "template", *(tmp_path / str(number) for number in range(volume(2, 6))))


@pytest.mark.parametrize("what", ["join", "unlink"])
@pytest.mark.slow
def test_R5_a_kill_anywhere_on_postgres(postgres: Any, what: str) -> None:
    _elsewhere("kills", what, "", *(postgres.empty_url() for _ in range(3)))


@pytest.mark.everyday(1)
def test_R4_of_several_who_enter_a_code_at_once_one_does(world: World) -> None:
    world.recollect.close()
    _elsewhere("race", world.where)


@pytest.mark.slow
def test_R5_both_sides_may_confirm_and_undo_at_once(world: World) -> None:
    world.recollect.close()
    _elsewhere("both", world.where)


if __name__ == "__main__":
    if sys.argv[1] == "kills":
        _kills(sys.argv[2], sys.argv[4:], sys.argv[3])
    else:
        (_race if sys.argv[1] == "race" else _both)(sys.argv[2])
