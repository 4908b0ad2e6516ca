"""Values at the edge of what Python can hold: they are answered or refused by name, never with an error of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import InvalidInputError, RecollectError
from recollect.work.contract import Task

LEVELS = 100


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path / "memory") as app:
        yield app


# nesting


def _lists(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def _mappings(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"k": value}
    return value


def _cycle(levels: int) -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


_TAKES: dict[str, Callable[[recollect.Recollect, Any], object]] = {
    "remember": lambda app, value: app.user("u").remember("Likes tea", metadata=value),
    "note": lambda app, value: app.user("u").note("Likes tea", metadata=value),
    "say": lambda app, value: app.user("u").say("Hello", session="s", metadata=value),
    "observe": lambda app, value: app.user("u").observe("title", "finding", metadata=value),
    "report": lambda app, value: app.user("u").report("read", title="A page", metadata=value),
    "report_many": lambda app, value: app.user("u").report_many([{"kind": "read", "title": "T", "metadata": value}]),
    "queue": lambda app, value: app.queue().put(Task(name="n", user_id="u", payload=value)),
}


@pytest.mark.everyday(16)
@pytest.mark.parametrize("levels", [LEVELS + 1, 400, 700, 5_000, 100_000])
@pytest.mark.parametrize("make", [_lists, _mappings, _cycle])
@pytest.mark.parametrize("take", _TAKES)
def test_F3_what_is_nested_too_deeply_is_refused_by_name(
    app: recollect.Recollect, take: str, make: Callable[[int], Any], levels: int
) -> None:
    with pytest.raises(InvalidInputError, match=r"(metadata|payload).*nested too deeply; at most 100 levels"):
        _TAKES[take](app, {"a": make(levels - 1)})
    assert app.user("u").read() == [] and app.user("u").interactions() == []


@pytest.mark.everyday(5)
@pytest.mark.parametrize("make", [_lists, _mappings])
@pytest.mark.parametrize("take", _TAKES)
def test_F3_the_deepest_that_is_allowed_can_be_used_everywhere(
    app: recollect.Recollect, tmp_path: Path, take: str, make: Callable[[int], Any]
) -> None:
    memory = app.user("u")
    _TAKES[take](app, {"a": make(LEVELS - 1)})
    memory.remember("Likes maps")
    path = memory.export(tmp_path / "a.zip")
    app.user("v").import_(tmp_path / "a.zip")
    for one in (memory, app.user("v")):
        one.read()
        one.search("tea")
        one.history()
        one.erase_topic("nothing of this kind")
    assert memory.verify() == [] and path is not None


# keys


_NO_TEXT = [None, 0, -1, float("nan"), True, b"x", [], {}, object(), ("a",)]


@pytest.mark.parametrize("wrong", [*_NO_TEXT, "", "\0", "\ud800", "x" * 70_000], ids=lambda value: repr(value)[:20])
def test_F3_a_key_of_any_type_is_answered_in_our_words(app: recollect.Recollect, wrong: Any) -> None:
    tries: list[Callable[[], object]] = [
        lambda: app.keys.create(wrong),
        lambda: app.keys.create(scope=wrong),
        lambda: app.keys.revoke(wrong),
    ]
    for one in tries:
        with pytest.raises(RecollectError):
            one()
    if wrong != "":
        with pytest.raises(InvalidInputError, match="name"):
            app.keys.create(name=wrong)
    assert app.keys.named_by(wrong) is None
    assert app.keys.all() == []


# clocks


_UTC = timezone.utc


@pytest.mark.parametrize(
    "now",
    [
        datetime(1, 1, 1, tzinfo=_UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=_UTC),
        datetime(2026, 2, 12),
        None,
        "2026-02-12",
    ],
    ids=str,
)
def test_F3_a_clock_that_cannot_be_right_is_refused_by_name(tmp_path: Path, now: Any) -> None:
    with recollect.open(tmp_path / "memory", clock=lambda: now) as app:
        memory = app.user("u")
        tries: list[Callable[[], object]] = [
            lambda: memory.remember("Likes tea"),
            lambda: memory.jot("Had tea"),
            memory.upkeep,
            lambda: app.identities.start_link(("telegram", "1")),
            app.keys.create,
        ]
        for one in tries:
            with pytest.raises(InvalidInputError, match="clock: returned"):
                one()


@pytest.mark.parametrize("year", [1000, 9000])
def test_F3_a_clock_may_be_centuries_off(tmp_path: Path, year: int) -> None:
    now = datetime(year, 1, 1, tzinfo=timezone(timedelta(hours=3)))
    with recollect.open(tmp_path / "memory", clock=lambda: now) as app:
        memory = app.user("u")
        memory.remember("Likes tea")
        memory.jot("Had tea")
        memory.say("Hello yesterday", session="s")
        memory.upkeep()
        app.identities.start_link(("telegram", "1"))
        assert memory.search("tea") and memory.verify() == []
