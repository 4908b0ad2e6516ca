"""What many people care about: only those who consented, only what enough of them share, nothing of one person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recollect
from recollect import Config, InvalidInputError, Recollect, Trend
from recollect.surfaces.cli import interests, remove_commands  # noqa: F401  (their commands)
from recollect.surfaces.cli.program import app as program
from recollect.testing import FrozenClock, MemoryStore


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def app(clock: FrozenClock) -> Iterator[Recollect]:
    with recollect.open(MemoryStore(), clock=clock) as app:
        yield app


def _save(app: Recollect, number: int, *topics: str, begin: int = 0, consent: bool = True) -> list[recollect.Memory]:
    """So many users, each of whom saved something of these topics."""
    users = [app.user(f"u{place}") for place in range(begin, begin + number)]
    for memory in users:
        memory.report("save", title="Something", topics=list(topics))
        if consent:
            memory.consent("trends")
    return users


def test_T6_a_topic_that_enough_users_share_is_shown(app: Recollect, clock: FrozenClock) -> None:
    _save(app, 4, "Rust", "PostgreSQL")
    _save(app, 1, "rust", begin=4)
    clock.tick(days=1)
    assert app.trends() == [Trend(topic="rust", users=5)]


def test_T6_liked_things_and_discussions_count_and_other_facts_do_not(app: Recollect, clock: FrozenClock) -> None:
    for number in range(5):
        memory = app.user(f"u{number}")
        memory.remember("Likes distributed systems, hates golf")
        memory.remember("Lives in Smalltown", key="location")
        memory.episode("Kubernetes upgrades", "Private words of ours")
        memory.note("Secret project Falcon")
        memory.say("Our secret project is Falcon", session="s")
        memory.acting("agent", trusted=False).remember("Likes miracle pills")
        memory.report("reaction", value="👎", title="Spam", topics=["crypto"])
        memory.report("delivery", title="Sent to all", topics=["weather"])
        memory.consent("trends")
    clock.tick(days=1)
    assert [trend.topic for trend in app.trends()] == ["distributed systems", "kubernetes upgrades"]


def test_R4_only_who_consented_and_has_memory_on_is_counted(app: Recollect, clock: FrozenClock) -> None:
    users = _save(app, 5, "Rust")
    _save(app, 20, "Golf", begin=100, consent=False)
    clock.tick(days=1)
    assert [trend.topic for trend in app.trends()] == ["rust"]
    users[0].consent("trends", False)
    assert app.trends() == [], "withdrawing takes effect at the next call"
    users[0].consent("trends")
    assert len(app.trends()) == 1
    users[1].pause()
    assert app.trends() == []
    users[1].resume()
    users[1].pause(incognito=True)
    assert app.trends() == []
    users[1].resume()
    app.erase_user("u2")
    assert app.trends() == []


def test_P7_memory_switched_off_for_everyone_counts_nobody(clock: FrozenClock) -> None:
    store = MemoryStore()
    with recollect.open(store, clock=clock) as app:
        _save(app, 5, "Rust")
        clock.tick(days=1)
    with recollect.open(store, clock=clock, config=Config(enabled=False)) as app:
        assert app.trends() == []


def test_R4_one_user_is_one_however_much_they_do(app: Recollect, clock: FrozenClock) -> None:
    (one,) = _save(app, 1, "Rust")
    for number in range(50):
        one.report("save", item=f"post:{number}", title="More", topics=["Rust", "rust", "RUST"])
    clock.tick(days=1)
    assert app.trends() == []


@pytest.mark.parametrize("k", [4, 3, 1, 0, -5, True, 5.0, "5", None])
def test_R4_fewer_than_five_cannot_be_asked_for(app: Recollect, k: Any) -> None:
    with pytest.raises(InvalidInputError, match="k"):
        app.trends(k=k)


@pytest.mark.parametrize("days", [1, 29, 31, 0, True, 7.5, "30", None])
def test_R4_only_fixed_stretches_of_days_can_be_asked_for(app: Recollect, days: Any) -> None:
    with pytest.raises(InvalidInputError, match="7, 30, 90, 365"):
        app.trends(days=days)


def test_R4_asking_with_other_numbers_tells_nothing_more(app: Recollect, clock: FrozenClock) -> None:
    """Between two bands no answer changes, whatever k is: nobody can be subtracted out."""
    _save(app, 5, "Rust")
    clock.tick(days=1)

    def answers() -> list[list[Trend]]:
        return [app.trends(k=k, days=days) for k in range(5, 25) for days in (7, 30, 90, 365)]

    known = answers()
    for begin in range(5, 9):  # 6, 7, 8 and 9 users
        clock.tick(days=-1)
        _save(app, 1, "Rust", begin=begin)
        clock.tick(days=1)
        assert answers() == known
    clock.tick(days=-1)
    _save(app, 1, "Rust", begin=9)
    clock.tick(days=1)
    assert app.trends(k=5)[0].users == app.trends(k=10)[0].users == 10 and app.trends(k=11) == []


def test_R4_what_happens_today_shows_tomorrow(app: Recollect, clock: FrozenClock) -> None:
    _save(app, 5, "Rust")
    assert app.trends() == []
    clock.tick(hours=14.4)
    assert app.trends() == []
    clock.tick(hours=1)
    assert len(app.trends()) == 1
    clock.tick(days=30)
    assert app.trends() == [] and len(app.trends(days=90)) == 1


def test_R4_a_spelling_that_few_use_is_not_shown(app: Recollect, clock: FrozenClock) -> None:
    for number, spelling in enumerate(
        ["Databases", "database", "DATABASE", "Databases!", "the databases", "databases"]
    ):
        _save(app, 1, spelling, begin=number)
    clock.tick(days=1)
    (trend,) = app.trends()
    assert trend.topic == "databas", "what they have in common, as none of the spellings is shared by enough"


def test_R4_numbers_addresses_and_secrets_are_no_topics(app: Recollect, clock: FrozenClock) -> None:
    key = "sk-proj-" + "4f9aXb72Lq" * 3
    private = [
        f"my key {key}",
        "anna@example.com",
        "+49 151 23456789",
        "https://example.com/a",
        "a very long private story",
    ]
    _save(app, 6, *private, "C++", "Rust\u202e\u200b")
    clock.tick(days=1)
    assert [trend.topic for trend in app.trends()] == ["c++", "rust"]


def test_R4_the_order_tells_no_exact_numbers(app: Recollect, clock: FrozenClock) -> None:
    _save(app, 9, "Zig")
    _save(app, 5, "Ada", begin=20)
    clock.tick(days=1)
    assert app.trends() == [Trend(topic="ada", users=5), Trend(topic="zig", users=5)]


def test_T6_damaged_users_are_left_out(tmp_path: Path, clock: FrozenClock) -> None:
    with recollect.open(tmp_path, clock=clock) as app:
        _save(app, 7, "Rust")
        clock.tick(days=1)
    for name, content in (("u1", b"not a database"), ("u2", b"")):
        for path in (tmp_path / name).glob("*.db*"):
            path.write_bytes(content)
    with recollect.open(tmp_path, clock=clock) as app:
        assert app.trends() == [Trend(topic="rust", users=5)]
        (tmp_path / "u3" / "MEMORY.md").unlink(missing_ok=True)
        (tmp_path / "u3" / "MEMORY.md").write_text("# User Memory\n\n## Key Facts\n- Edited by hand\n")
        assert app.trends() == [], "who edited a file that nobody has read yet is not counted"
        app.user("u3").read()
        assert app.trends() == [Trend(topic="rust", users=5)]


def test_T6_a_user_who_is_writing_keeps_nobody_waiting(tmp_path: Path, clock: FrozenClock) -> None:
    with recollect.open(tmp_path, clock=clock) as app:
        users = _save(app, 5, "Rust")
        clock.tick(days=1)
        with users[0].batch() as batch:
            batch.remember("Likes tea")
            assert app.trends() == [Trend(topic="rust", users=5)]


def test_T6_counting_changes_nothing(tmp_path: Path, clock: FrozenClock) -> None:
    with recollect.open(tmp_path, clock=clock) as app:
        users = _save(app, 5, "Rust")
        app.user("u9").note("Untouched")
        before = [memory.history() for memory in users]
        clock.tick(days=1)
        app.trends()
        assert [memory.history() for memory in users] == before
        assert [memory.verify() for memory in users] == [[]] * 5


def test_T6_it_works_on_postgresql(postgres_url: str, clock: FrozenClock) -> None:
    with recollect.open(postgres_url, clock=clock) as app:
        _save(app, 5, "Rust")
        clock.tick(days=1)
        assert app.trends() == [Trend(topic="rust", users=5)]


# the command


def _run(tmp_path: Path, *args: str) -> Any:
    return CliRunner().invoke(program, [*args, "--root", str(tmp_path)])


def test_U3_trends_are_shown_in_a_table(tmp_path: Path) -> None:
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    with recollect.open(tmp_path) as app:
        for number in range(12):
            topics = ["Rust", "Golf"] if number < 5 else ["Rust"]
            app.user(f"u{number}").report("save", title="x", topics=topics, at=yesterday)
    nothing = _run(tmp_path, "trends")
    assert nothing.exit_code == 0 and nothing.stdout == ""
    assert "No topic was shared by 5 users in the 30 days before today." in nothing.stderr
    for number in range(12):
        assert _run(tmp_path, "consent", "trends", "--user", f"u{number}").exit_code == 0
    assert _run(tmp_path, "trends").stdout.splitlines() == ["users  topic", "  10+  rust", "   5+  golf"]
    assert json.loads(_run(tmp_path, "trends", "-k", "10", "--json").stdout) == [{"topic": "rust", "users": 10}]
    wrong = _run(tmp_path, "trends", "--at-least", "2")
    assert (
        wrong.exit_code == 2
        and wrong.stderr.startswith("recollect: --at-least: must be")
        and "at least 5" in wrong.stderr
    )
