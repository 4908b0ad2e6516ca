"""Upkeep: what expires, when, and that it is learned from first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

import recollect
from recollect.agents.extract import Extraction, extract
from recollect.testing import FrozenClock

SAID = "I work at Stripe as a backend engineer."


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 1, 1, 9, tzinfo=timezone.utc))


@pytest.fixture
def app(tmp_path: Path, clock: FrozenClock) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path, clock=clock, message_retention_days=30) as app:
        yield app


def test_C13_the_verb_upkeep_learns_from_messages_before_they_expire(
    app: recollect.Recollect, clock: FrozenClock
) -> None:
    memory = app.user("ann")
    memory.say(SAID, session="s")
    clock.tick(days=40)
    assert memory.upkeep(dry_run=True).expired == {"message": 1} and "Stripe" not in memory.show()
    assert memory.upkeep().expired == {"message": 1}
    assert "Stripe" in memory.show() and memory.read(kind="message") == []


def test_C13_what_could_not_be_learned_from_does_not_expire(
    app: recollect.Recollect, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> Extraction:
        raise ValueError

    memory = app.user("ann")
    memory.say(SAID, session="s")
    memory.report("save", title="x")
    clock.tick(days=400)
    with monkeypatch.context() as patched:
        patched.setattr(app, "extractor", lambda **_: failing)
        report = memory.upkeep()
    assert report.expired == {} and report.interactions == 0 and "learned" in report.notices[0]
    report = memory.upkeep()
    assert (report.expired, report.interactions, report.notices) == ({"message": 1}, 1, ())
    assert "Stripe" in memory.show()


def test_C13_an_old_message_stored_after_the_nightly_run_stays_until_the_next(
    app: recollect.Recollect, clock: FrozenClock
) -> None:
    memory = app.user("ann")
    memory.say("Hello", session="s")
    clock.tick(days=1)
    assert extract(memory, clock().date()).skipped is None
    clock.tick(days=1)
    memory.say(SAID, session="s", said_at="2025-01-01")
    assert memory.upkeep().expired == {}
    clock.tick(days=1)
    assert memory.upkeep().expired == {"message": 1} and "Stripe" in memory.show()


@pytest.mark.parametrize("incognito", [False, True])
def test_C13_while_memory_is_off_nothing_is_learned_and_nothing_expires(
    app: recollect.Recollect, clock: FrozenClock, incognito: bool
) -> None:
    memory = app.user("ann")
    memory.say(SAID, session="s")
    memory.pause(incognito=incognito)
    clock.tick(days=40)
    assert memory.upkeep().expired == {}
    memory.resume()
    assert memory.count() == {"message": 1} and memory.runs() == []
    assert memory.upkeep().expired == {"message": 1} and "Stripe" in memory.show()


def test_C13_what_arrives_while_upkeep_learns_stays_until_the_next(
    app: recollect.Recollect, clock: FrozenClock
) -> None:
    memory = app.user("ann")
    memory.say("Hello", session="s")
    memory.report("read", title="A page")
    clock.tick(days=100)
    learn = memory._user_memory.learn

    def meanwhile() -> Collection[str]:
        unlearned = learn()
        memory.say(SAID, session="s", said_at="2026-01-02")
        memory.report("reaction", value="👍", title="PostgreSQL 18", at=datetime(2026, 1, 2, tzinfo=timezone.utc))
        return unlearned

    memory._user_memory.learn = meanwhile
    memory.upkeep()
    assert "PostgreSQL 18" in str(memory.interactions())
    memory._user_memory.learn = learn
    clock.tick(days=1)
    memory.upkeep()
    assert "Stripe" in memory.show() and memory.interactions() == []


def test_C13_reactions_are_learned_from_before_they_expire(app: recollect.Recollect, clock: FrozenClock) -> None:
    memory = app.user("ann")
    for title in ("PostgreSQL 18 Released", "Scaling PostgreSQL", "PostgreSQL vacuum"):
        memory.report("reaction", value="👍", title=title)
    clock.tick(days=100)
    assert memory.upkeep().interactions == 3 and "PostgreSQL" in memory.show()


def test_R6_a_retention_set_later_counts_for_messages_stored_before(tmp_path: Path, clock: FrozenClock) -> None:
    with recollect.open(tmp_path, clock=clock) as app:
        memory = app.user("ann")
        memory.say(SAID, session="s")
        promise = getattr(memory.say("I promise to call Bo", session="s"), "record", None)
        assert isinstance(promise, recollect.Message)
        memory.mark_important([promise.id], "high")
        clock.tick(days=40)
        assert memory.upkeep().expired == {}
    with recollect.open(tmp_path, clock=clock, message_retention_days=30) as app:
        memory = app.user("ann")
        assert memory.upkeep(dry_run=True).expired == {"message": 1}
        assert memory.upkeep().expired == {"message": 1} and "Stripe" in memory.show()
        assert [one.id for one in memory.read(kind="message")] == [promise.id]
        clock.tick(days=21)
        assert memory.upkeep().expired == {"message": 1}
