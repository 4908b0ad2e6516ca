"""Bad input never gets past the core: whatever is handed to a verb, it answers or says what is wrong with it.

Every public verb is called with hostile values for each of its parameters, found by its signature. Only errors that
tell the caller what to do may come out, never one of a database or of Python.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect import (
    AsyncMemory,
    ExtractionRun,
    InvalidInputError,
    Memory,
    NotFoundError,
    Recollect,
    RecollectError,
    StoreError,
)
from recollect.agents.capture import capture
from recollect.agents.conclude import conclude, idle_sessions
from recollect.agents.consolidate import TranscriptMessage, consolidate, insights
from recollect.agents.discuss import Discussion
from recollect.agents.extract import extract
from recollect.agents.observe import observe
from recollect.agents.remind import remind
from recollect.agents.summarize import summarize
from recollect.memory.unprocessed import Mark
from recollect.testing import MemoryStore
from tests.volume import first, sample, volume


class _Unspeakable:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def _deep() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(3000):
        found = {"a": found}
    return found


_TEXTS = [
    *("", " ", "\0", "a\0b", "\ud800", "a\udfffb", "a\nb", "\u2028", "\ufeff", "'; --", "%s", "%00", "\\", "{}", "all"),
    *("x" * 5000, "1" * 5000, "-1", "٣", "9" * 19, "9" * 20, "role", "s1", "2026-01-01", "9999-12-31"),
    *("fact-" + "\0" * 26, "fact-" + "0" * 26, "fact-\ud800" + "a" * 25, "9999-12-31T23:59:59-12:00"),
]
_WHOLE = [0, -1, 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, True, False]
_NUMBERS = [*_WHOLE, 0.5, -0.0, float("nan"), float("inf"), float("-inf"), 1e308]
_TIMES = [
    *(datetime.min, datetime.max, date.min, date.max, datetime.max.replace(tzinfo=timezone.utc)),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
]
_LISTS = [[], (), ["a\0"], ["\ud800"], [""], [1], [None], [[]], ["x"] * 2000, range(3)]
_MAPPINGS = [
    *({}, {"a": "\0"}, {"\0": 1}, {"\ud800": 1}, {"a": "\ud800"}, {1: 2}, {"a": 10**400}, {"a": float("nan")}),
    *({"a": object()}, {"a": "x" * 30_000}, _deep()),
]
_ODD = [None, b"a", b"\xff", {"a": 1}, set(), 10**5000, object(), Memory, _Unspeakable(), iter([object()])]
_ALL = [*_TEXTS, *_NUMBERS, *_TIMES, *_LISTS, *_MAPPINGS, *_ODD]

_RIGHT: dict[str, list[Any]] = {
    "str": _TEXTS,
    "Path": _TEXTS,
    "Literal": _TEXTS,
    "int": _WHOLE,
    "float": _NUMBERS,
    "bool": [True, False],
    "date": [*_TIMES, *_TEXTS],
    "Moment": [*_TIMES, *_TEXTS],
    "Sequence": _LISTS,
    "Iterable": _LISTS,
    "Mapping": _MAPPINGS,
    "ExtractionRun": _ODD,
}
"""Hostile values of the right type, by a word of the annotation."""

_CALLS: dict[str, dict[str, Any]] = {
    "remember": {"content": "Likes tea"},
    "note": {"content": "A note about tea"},
    "observe": {"content": "Tea is better hot", "category": "finding"},
    "episode": {"topic": "Tea", "summary": "Talked about tea"},
    "say": {"content": "Hello", "session": "s1"},
    "jot": {"content": "Had tea"},
    "set_scratch": {"key": "k", "value": "v"},
    "scratch": {"key": "k"},
    "update": {"ref": "role", "content": "Baker"},
    "edit": {"text": "# Memory\n\n- role: Chef\n"},
    "forget": {"ref": "role"},
    "merge": {"refs": ["city", "pet"], "content": "A cat in Berlin"},
    "pin": {"ref": "role"},
    "mark_important": {"messages": ["nothing"], "level": "high"},
    "consent": {"name": "trends"},
    "spend": {"operation": "summary"},
    "report": {"kind": "read", "title": "News"},
    "report_many": {"events": []},
    "note_run": {"run": ExtractionRun(id="r", day=date(2026, 1, 1), started_at=datetime(2026, 1, 1), kind="batch")},
    "erase_topic": {"topic": "tea"},
    "export": {"path": "archive.zip"},
    "import_": {"path": "nowhere/at/all"},
    "get": {"ref": "role"},
    "search": {"query": "tea"},
    "recall_fil": {"query": "tea"},
    "recall_by_category": {"query": "tea", "category": "finding"},
    "numbers": {"ids": []},
    "numbered": {"number": 1},
    "rank": {"items": ["tea"]},
    "why": {"ref": "role"},
    "unread": {"until": "2026-01-01"},
}
"""What each verb needs at least. Those that need nothing are not named."""

_APART = ("batch", "clear", "embed", "rebuild", "rebuild_index")
"""Verbs that take nothing to speak of, and undo or cost much."""

_ASIDE = {"progress", "clock", "on_text", "model", "extractor", "unreadable"}
"""Parameters for code of the host."""


def _verbs(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]


def _parameters(verb: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    try:
        types = get_type_hints(verb)
    except NameError:  # a name that is imported for type checkers only
        types = {}
    for name, one in inspect.signature(verb).parameters.items():
        if name not in _ASIDE:
            yield one.replace(annotation=types.get(name, one.annotation))


def _hostile_for(parameter: inspect.Parameter) -> list[Any]:
    """Hostile values of the type that a parameter asks for."""
    hint = parameter.annotation
    words = (hint.__name__ if isinstance(hint, type) else str(hint)).replace("[", " ").replace("]", " ").split()
    found: list[Any] = []
    for word in words:
        found += _RIGHT.get(word.strip(",").rpartition(".")[2], ())
    assert found, f"no hostile values for {parameter}"
    return found


def _problem(verb: Callable[..., Any], *args: Any, **given: Any) -> str | None:
    """What came out of a call that never should."""
    try:
        answer = verb(*args, **given)
        if isinstance(answer, Iterator):
            list(answer)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    except RecollectError as error:
        said = str(error)
        if "\0" in said or len(said) > 2_000 or said.encode("utf-8", "replace").decode() != said:
            return f"cannot be told: {said!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def _shown(value: Any) -> str:
    try:
        return repr(value)[:40]
    except Exception:
        return f"some {type(value).__name__}"


def _swept(
    name: str, verb: Callable[..., Any], needed: Mapping[str, Any], values: Sequence[Any] | None = None
) -> list[str]:
    """What goes wrong if each parameter in turn gets each hostile value."""
    found = []
    for parameter in _parameters(verb):
        if parameter.name in needed and isinstance(needed[parameter.name], Memory):
            continue
        for value in _hostile_for(parameter) if values is None else values:
            if parameter.kind is parameter.VAR_POSITIONAL:
                problem = _problem(verb, *needed.values(), value)
            else:
                problem = _problem(verb, **{**needed, parameter.name: value})
            if problem:
                found.append(f"{name}({parameter.name}={_shown(value)}): {problem}")
    return found


@pytest.fixture(params=first(1, ["memory", "sqlite", "postgres"]))
def app(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recollect]:
    """A few memories in each kind of store."""
    monkeypatch.chdir(tmp_path)
    where: Any = tmp_path / "memory"
    if request.param == "memory":
        where = MemoryStore()
    elif request.param == "postgres":
        where = request.getfixturevalue("postgres_tables")
    with recollect.open(where) as app:
        memory = app.user("u1")
        for key, value in {"role": "Chef", "city": "Berlin", "pet": "A cat"}.items():
            memory.remember(value, key=key)
        memory.say("I moved to Berlin and love tea", session="s1")
        yield app


def test_every_verb_answers_or_says_what_is_wrong(app: Recollect) -> None:
    memory, found = app.user("u1"), []
    others = (
        sample(3, _ALL) if isinstance(app._store, MemoryStore) else _ODD[:4]
    )  # types are looked at above all stores
    for name in _verbs(Memory):
        if name not in _APART:
            found += _swept(name, getattr(memory, name), _CALLS.get(name, {}))
            found += _swept(name, getattr(memory, name), _CALLS.get(name, {}), others)
            memory.resume()
    assert found == []
    assert memory.verify() == []


@pytest.mark.hypothesis
def test_several_bad_arguments_at_once_do_not_hide_each_other(app: Recollect) -> None:
    memory = app.user("u1")
    names = [name for name in _verbs(Memory) if name not in (*_APART, "export", "import_")]  # no files anywhere
    texts = st.text(st.characters(), max_size=30) | st.sampled_from(_TEXTS)  # all characters, also half ones
    plain = texts | st.integers() | st.floats() | st.booleans() | st.none() | st.datetimes() | st.dates()
    values = plain | st.lists(plain, max_size=3) | st.dictionaries(texts, plain, max_size=3)

    @settings(max_examples=volume(24, 120), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def call(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(names))
        verb = getattr(memory, name)
        given = dict(_CALLS.get(name, {}))
        for parameter in _parameters(verb):
            if parameter.kind is not parameter.VAR_POSITIONAL and data.draw(st.booleans()):
                given[parameter.name] = data.draw(st.sampled_from(_hostile_for(parameter)) | values)
        assert _problem(verb, **given) is None

    call()
    memory.resume()
    assert memory.verify() == []


def test_a_mark_is_checked_in_all_its_parts(app: Recollect) -> None:
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    whole: dict[str, Any] = {"seq": 1, "reported": now, "until": now}
    memory = app.user("u1")
    assert memory.unread([Mark(**whole)], until=now).mark.until == now
    for field in whole:
        for value in _ALL:
            marks = [Mark(**whole), Mark(**{**whole, field: value})]
            assert _problem(memory.unread, marks, until=now) is None, (field, _shown(value))


def test_a_bad_argument_within_a_batch_spoils_nothing_of_it(app: Recollect) -> None:
    memory = app.user("u1")
    with memory.batch() as batch:
        batch.remember("Plays the cello", key="instrument")
        for name, needed in _CALLS.items():
            if name not in ("export", "import_"):
                for field in needed:
                    for value in ("\0", "fact-" + "\0" * 26, "\ud800", -1, 2**64):
                        assert _problem(getattr(batch, name), **{**needed, field: value}) is None, (name, field)
        batch.remember("Green", key="colour")
    assert memory.get("instrument").content == "Plays the cello"
    assert memory.get("colour").content == "Green"
    assert memory.verify() == []


def test_what_is_awaited_is_refused_alike(tmp_path: Path) -> None:
    async def refused(memory: AsyncMemory) -> list[str]:
        found = []
        for name, needed in _CALLS.items():
            for field in needed:
                try:
                    await getattr(memory, name)(**{**needed, field: _Unspeakable()})
                except (InvalidInputError, NotFoundError):
                    found.append(f"{name}({field})")
        return found

    with recollect.open(tmp_path) as app:
        told = asyncio.run(refused(AsyncMemory(app.user("u1"))))
    assert told == [f"{name}({field})" for name, needed in _CALLS.items() for field in needed]


def test_every_verb_about_many_users_answers_or_says_what_is_wrong(app: Recollect) -> None:
    who = {"identity": ("telegram", "1")}
    names = [name for name in _verbs(Recollect) if name not in ("close", "queue", "worker", "extractor", "erase_user")]
    calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        *((getattr(app, name), {"user_id": "u1"} if name in ("user", "tools") else {}) for name in names),
        *((getattr(app.keys, name), {}) for name in ("create", "all", "any")),
        *((app.keys.revoke, {"key_id": "k"}), (app.keys.get, {"key_id": "k"}), (app.keys.named_by, {"text": "k"})),
        (app.identities.is_joined, {"run": "r"}),
    ]
    found = [problem for verb, needed in calls for problem in _swept(verb.__qualname__, verb, needed)]
    found += _swept(
        "erase_user", app.erase_user, {"user_id": "nobody"}, ["", "\0", "\ud800", "x" * 500, True, 2**64, None]
    )
    for name in ("resolve", "memory", "bind", "pending", "start_link", "enter_code", "confirm", "decline", "unlink"):
        verb = getattr(app.identities, name)
        more = {"user_id": "u1"} if name == "bind" else {"code": "ABCD-EFGH"} if name == "enter_code" else {}
        for value in ["", "\0", "\ud800", "a\nb", "x" * 500, "٣", -1, 2**64, True, 0.5, None, b"a"]:
            for identity in (value, ("telegram", value), (value, "1"), (value,)):
                if problem := _problem(verb, **{**who, **more, "identity": identity}):
                    found.append(f"{name}({_shown(identity)}): {problem}")
        for field in more:
            for value in _TEXTS:
                if problem := _problem(verb, **{**who, **more, field: value}):
                    found.append(f"{name}({field}={_shown(value)}): {problem}")
    no_place = "can only be stored in a folder or in PostgreSQL"
    assert [problem for problem in found if no_place not in problem] == []


def test_a_worker_has_a_whole_number_of_hands(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, closing(app.queue()) as queue:
        for number in (0, -1, 0.5, True, "2", None, float("inf"), 10**400):
            with pytest.raises(InvalidInputError, match="concurrency"):
                app.worker(queue, concurrency=number)  # type: ignore[arg-type]


def test_no_tool_stumbles_over_what_a_model_says(app: Recollect, caplog: pytest.LogCaptureFixture) -> None:
    """What is wrong is told to the model; that the storage failed, or something nobody foresaw, is an error logged."""
    caplog.set_level(logging.WARNING)
    tools = app.tools("u1")
    values = [*_TEXTS[:8], *_TEXTS[-4:], -1, 2**63, 10**400, True, float("nan"), None, ["a\0"], [1], {"\ud800": 1}, {}]
    for name in tools.tools:
        schema = tools.schema(name)
        plain = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": ["x"], "object": {}}
        needed = {field: plain[schema["properties"][field]["type"]] for field in schema.get("required", ())}
        for field in schema["properties"]:
            for value in values:
                tools.call(name, {**needed, field: value})
    assert [record.getMessage() for record in caplog.records] == []


def test_no_agent_stumbles_over_what_is_said(app: Recollect) -> None:
    memory, found = app.user("u1"), []
    talk = Discussion(app.tools("u1", session="s1"))
    day = date(2026, 1, 1)
    calls: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (capture, {"memory": memory, "text": "Remember that I like tea"}),
        (conclude, {"memory": memory, "session": "s1"}),
        (consolidate, {"memory": memory, "session": "s1", "transcript": [TranscriptMessage("user", "I like tea")]}),
        (remind, {"memory": memory, "text": "tea"}),
        (summarize, {"memory": memory, "text": "Tea is hot. Ice is not."}),
        (observe, {"model": None, "memory": memory, "step_name": "a", "step_type": "b", "output": "c"}),
        (talk.hear, {"text": "Hello"}),
        (talk.answer, {"text": "Hello"}),
    ]
    for verb, needed in calls:
        for parameter in _parameters(verb):
            if parameter.name not in ("memory", "transcript"):
                for value in _hostile_for(parameter):
                    if problem := _problem(verb, **{**needed, parameter.name: value}):
                        found.append(f"{verb.__name__}({parameter.name}={_shown(value)}): {problem}")
    for text in _TEXTS:
        found += filter(
            None,
            [
                _problem(insights, [TranscriptMessage("user", text)]),
                _problem(insights, [TranscriptMessage(text, "I like tea")]),
            ],
        )
        found += filter(None, [_problem(consolidate, memory, "s1", [TranscriptMessage("user", text)])])
    for when in (day, date.min, date.max):
        found += filter(None, [_problem(extract, memory, when)])
    found += filter(None, [_problem(idle_sessions, memory, limit=number) for number in _WHOLE])
    assert found == []
    assert memory.verify() == []


def test_a_record_gets_no_category_of_another_kind(app: Recollect) -> None:
    memory = app.user("u1")
    memory.remember("Likes tea", key="drink")
    memory.observe("Trains are late", "finding")
    [observation] = memory.read(kind="observation")
    for ref, category in (("drink", "finding"), (observation.id, "preference")):
        with pytest.raises(InvalidInputError, match="category"):
            memory.update(ref, category=category)
    assert memory.update("drink", category="preference").done
    assert memory.update(observation.id, category="lesson").done
    assert memory.verify() == []


def test_progress_that_cannot_be_called_is_refused(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.remember("Likes tea")
        verbs: list[Callable[..., Any]] = [memory.verify, memory.embed, partial(memory.export, tmp_path / "x.zip")]
        for verb in verbs:
            with pytest.raises(InvalidInputError, match="progress"):
                verb(progress="x")
        assert not (tmp_path / "x.zip").exists()
