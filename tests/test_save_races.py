"""A person saves while an agent writes: at every step of the write, and whatever is killed there, neither is lost.

The steps are all calls that touch the files. The editor takes its own steps in between, in every order.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.memory.files import file_system
from tests.volume import volume

_rename, _open, _write, _close = os.rename, os.open, os.write, os.close

_TYPED = "Typed by hand in this moment"
_STORED = "Stored by an agent meanwhile"
_TYPED_TWICE = ("Typed by hand in this moment", "Grows tomatoes on the balcony")


class Killed(BaseException):
    """The process is gone: nothing that it would have done after this happens."""


class Steps:
    """Counts the steps of a write, and lets others act before one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.acts: list[tuple[int, Callable[[], None]]] = []
        self.kill_at: int | None = None
        self.killed = self.on = self.acting = False
        for name in ("stat_of", "read", "create", "remove", "exchange", "move", "is_being_written", "is_unread"):
            monkeypatch.setattr(file_system, name, self._around(getattr(file_system, name)))
        for name in ("rename", "replace", "link", "unlink"):
            monkeypatch.setattr(os, name, self._around(getattr(os, name)))

    def _around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            self.take()
            return function(*args, **options)

        return step

    def take(self) -> None:
        if not self.on or self.acting:
            return
        if self.killed:
            raise Killed
        self.acting = True
        try:
            while self.acts and self.acts[0][0] <= self.count:
                self.acts.pop(0)[1]()
        finally:
            self.acting = False
        if self.kill_at == self.count:
            self.killed = True
            raise Killed
        self.count += 1

    @contextmanager
    def during(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on, self.acting = False, True
            while self.acts:  # an editor goes on, whoever was killed
                self.acts.pop(0)[1]()
            self.acting = False


class Editor:
    """Somebody who has the file open, adds a line and saves."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes() + f"- {_TYPED}\n".encode()
        self.fd = -1

    def write_alongside(self) -> None:
        self.path.with_name("4913").write_bytes(self.data)

    def rename(self) -> None:
        _rename(self.path.with_name("4913"), self.path)

    def open(self) -> None:
        self.fd = _open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)

    def truncate(self) -> None:
        if self.fd < 0:
            self.open()
        os.ftruncate(self.fd, 0)

    def write_half(self) -> None:
        half = len(self.data) // 2
        _write(self.fd, self.data[:half])
        self.data = self.data[half:]

    def write(self) -> None:
        _write(self.fd, self.data)
        _close(self.fd)

    def styles(self) -> dict[str, list[Callable[[], None]]]:
        return {
            "renamed": [self.write_alongside, self.rename],
            "in place": [self.truncate, self.write],
            "open early": [self.open, self.truncate, self.write_half, self.write],
        }


def _prepared(tmp_path: Path) -> tuple[recollect.Recollect, Memory, Path]:
    app = recollect.open(tmp_path)
    memory = app.user("u1")
    memory.remember("Likes tea")
    memory.remember("Engineer", key="role")
    return app, memory, tmp_path / "u1" / "MEMORY.md"


def _check(memory: Memory, path: Path, expected: set[str], where: str) -> None:
    facts = {record.text for record in memory.read(kind="fact")}
    facts |= {record.text for record in memory.read(kind="fact")}  # the file may have been given back to its editor
    assert facts == expected, where
    memory.remember("Plays chess")
    memory.read()
    text = path.read_text()
    for line in expected - {"role: Engineer"}:
        assert line in text, where
    assert memory.verify() == [], where
    assert not [file.name for file in path.parent.iterdir() if file.name.startswith(f".{path.name}")], where


def _length(tmp_path: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        app, memory, _ = _prepared(tmp_path / "length")
        steps = Steps(patch)
        with steps.during():
            memory.remember(_STORED)
            memory.read()
        app.close()
        return steps.count


def _schedules(style: str, parts: int, length: int) -> Iterator[list[int]]:
    """When each part of a save happens: two parts at any two steps, the second of some, and of four a fixed choice."""
    if parts == 2:
        yield from ([first, last] for first in range(length + 1) for last in range(first, length + 1, volume(17, 5)))
    else:
        choose = random.Random(style)
        yield from (sorted(choose.choices(range(length + 1), k=parts)) for _ in range(volume(20, 60)))


@pytest.mark.everyday(1)
@pytest.mark.parametrize(
    ("style", "can_exchange"),
    [  # renamed, where files cannot be exchanged: not promised, see the docstring of placement
        ("renamed", True),
        ("in place", True),
        ("open early", True),
        ("in place", False),
        ("open early", False),
    ],
)
def test_F8_a_save_at_any_step_of_a_write_is_not_lost(
    style: str, can_exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_exchange:
        monkeypatch.setattr(file_system, "_system_call", lambda: None)
    length = _length(tmp_path)
    assert length > 10
    for number, schedule in enumerate(_schedules(style, 4 if style == "open early" else 2, length)):
        app, memory, path = _prepared(tmp_path / str(number))
        parts = Editor(path).styles()[style]
        with monkeypatch.context() as patch:
            steps = Steps(patch)
            steps.acts = list(zip(schedule, parts, strict=True))
            with steps.during():
                memory.remember(_STORED)
                memory.read()
        _check(memory, path, {"Likes tea", "role: Engineer", _TYPED, _STORED}, f"{style} at {schedule} of {length}")
        app.close()


class HastyEditor:
    """Somebody who saves, looks at the file again at once, and saves once more from what stands there then."""

    def __init__(self, path: Path, styles: tuple[str, str]) -> None:
        self.path, self.styles = path, styles
        self.data = path.read_bytes()

    def save(self, number: int) -> None:
        data = self.data + f"- {_TYPED_TWICE[number]}\n".encode()
        if self.styles[number] == "renamed":
            self.path.with_name("4913").write_bytes(data)
            _rename(self.path.with_name("4913"), self.path)
        else:
            self.path.write_bytes(data)

    def look(self) -> None:
        self.data = self.path.read_bytes()

    def parts(self) -> list[Callable[[], None]]:
        return [lambda: self.save(0), self.look, lambda: self.save(1)]


@pytest.mark.everyday(1)
@pytest.mark.parametrize("second", ["renamed", "in place"])
@pytest.mark.parametrize("first", ["renamed", "in place"])
def test_F8_two_saves_at_any_steps_of_a_write_are_not_lost(
    first: str, second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = _length(tmp_path)
    choose = random.Random(f"{first} {second}")
    for number, saved in enumerate(sorted([*range(length + 1)] * volume(1, 20))):
        looked = min(length, saved + 1 + choose.randrange(4))
        schedule = [saved, looked, min(length, looked + 1 + choose.randrange(6))]
        app, memory, path = _prepared(tmp_path / str(number))
        with monkeypatch.context() as patch:
            steps = Steps(patch)
            steps.acts = list(zip(schedule, HastyEditor(path, (first, second)).parts(), strict=True))
            with steps.during():
                memory.remember(_STORED)
                memory.read()
        where = f"{first}, then {second}, at {schedule} of {length}"
        _check(memory, path, {"Likes tea", "role: Engineer", *_TYPED_TWICE, _STORED}, where)
        app.close()


@pytest.mark.everyday(1)
@pytest.mark.parametrize("style", ["renamed", "in place"])
def test_F8_a_kill_at_any_step_loses_neither_the_save_nor_what_was_acknowledged(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = _length(tmp_path)
    choose = random.Random(style)
    number = 0
    for kill_at in range(length):
        for begin in sorted({0, *choose.choices(range(length + 1), k=2)})[: volume(1, 3)]:
            number += 1
            app, memory, path = _prepared(tmp_path / str(number))
            parts = Editor(path).styles()[style]
            acknowledged = False
            with monkeypatch.context() as patch:
                steps = Steps(patch)
                steps.acts = list(zip([begin, min(begin + choose.randrange(4), length)], parts, strict=True))
                steps.kill_at = kill_at
                with suppress(Killed), steps.during():
                    memory.remember(_STORED)
                    acknowledged = True
                    memory.read()
            app.close()
            again = recollect.open(tmp_path / str(number))
            memory = again.user("u1")
            stored = {record.text for record in memory.read(kind="fact")} & {_STORED}
            assert stored or not acknowledged
            where = f"{style} from {begin}, killed at {kill_at} of {length}"
            _check(memory, path, {"Likes tea", "role: Engineer", _TYPED, *stored}, where)
            again.close()


def test_F8_what_is_written_into_a_file_long_after_it_was_replaced_is_taken_over(tmp_path: Path) -> None:
    app, memory, path = _prepared(tmp_path)
    editor = Editor(path)
    os.utime(path, (1_700_000_000, 1_700_000_000))  # it lay there for long
    editor.open()
    for number in range(5):
        memory.remember(f"{'vwxyz'[number] * 8} is stored meanwhile")
    app.close()
    editor.truncate()
    app = recollect.open(tmp_path)
    memory = app.user("u1")
    memory.remember("Stored in between")
    editor.write()
    facts = {record.text for record in memory.read(kind="fact")} | {record.text for record in memory.read(kind="fact")}
    assert {_TYPED, "Stored in between", "Likes tea"} <= facts and len(facts) == 9
    assert _TYPED in path.read_text() and memory.verify() == []
    app.close()


def test_F8_hundreds_of_saves_while_agents_write_lose_nothing(tmp_path: Path) -> None:
    """An editor of its own process, in both styles, that looks before it saves and saves as fast as it can."""
    _prepared(tmp_path)[0].close()
    path = tmp_path / "u1" / "MEMORY.md"
    script = textwrap.dedent(
        """
        import os, random, sys
        path, choose = sys.argv[1], random.Random(7)
        for number in range(300):
            while True:
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                if text.endswith("\\n"):
                    break
            word = "".join(choose.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(14))
            text += f"- {word} saved {number}\\n"
            if number % 2:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            else:
                with open(path + "~", "w", encoding="utf-8") as file:
                    file.write(text)
                os.rename(path + "~", path)
            print(f"{word} saved {number}", flush=True)
        """
    )
    editor = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    stored: list[str] = []
    choose = random.Random(11)
    with recollect.open(tmp_path, max_words=100_000) as app:
        memory = app.user("u1")
        while editor.poll() is None:
            word = "".join(choose.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(14))
            memory.acting("agent").remember(f"{word} stored {len(stored)}")
            stored.append(f"{word} stored {len(stored)}")
        saved = editor.communicate()[0].split("\n")[:-1]
        for _ in range(3):
            facts = {record.text for record in memory.read(kind="fact")}
        text = path.read_text()
        assert editor.returncode == 0 and len(saved) == 300 and stored
        assert [line for line in saved if line not in facts] == []
        assert [line for line in stored if line not in facts] == []
        assert [line for line in saved + stored if line not in text] == []
        assert memory.verify() == []


def test_F8_what_was_updated_while_a_person_saves_again_and_again_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our rendering is pushed aside by one save, the next one by another save: the first is nobody's text."""
    memory = recollect.open(tmp_path).user("u1")
    memory.remember("Keeps a diary")
    drink = memory.remember("Likes green tea", key="drink").record  # type: ignore[attr-defined]
    path = tmp_path / "u1" / "MEMORY.md"
    opened = path.read_bytes()
    saves = 0

    def save() -> None:
        nonlocal saves
        saves += 1
        beside = path.with_name("MEMORY.md~")
        beside.write_bytes(opened + b"".join(b"- Typed line %d\n" % number for number in range(saves)))
        _rename(beside, path)

    def saving_before(name: str) -> Callable[..., Any]:
        function = getattr(file_system, name)

        def step(*args: Any, **options: Any) -> Any:
            monkeypatch.setattr(file_system, name, function)
            save()
            return function(*args, **options)

        return step

    monkeypatch.setattr(file_system, "exchange", saving_before("exchange"))
    memory.update(drink.id, "Likes black tea")
    monkeypatch.setattr(file_system, "create", saving_before("create"))
    memory.update(drink.id, "Likes white tea")
    memory.note("Something else is written")
    assert saves == 2
    said = sorted(fact.text for fact in memory.read(kind="fact"))
    assert said == ["Keeps a diary", "Typed line 0", "Typed line 1", "drink: Likes white tea"]
    assert "Likes white tea" in path.read_text() and "black" not in path.read_text()
    assert memory.verify() == []
