"""A verb is declared once: everything else follows from its declaration."""

from __future__ import annotations

import asyncio
import inspect
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

import recollect
from recollect import AsyncMemory, InvalidInputError, Memory, fields
from recollect.client import RemoteMemory
from recollect.memory import async_memory
from recollect.surfaces.cli.verb_options import options_of, verb_values
from recollect.surfaces.http.schema import arguments_of
from recollect.surfaces.http.verb_routes import VerbRoutes
from recollect.verbs import ELSEWHERE, NOT_SENT, VERBS, Verb, verb

_Mood = Annotated[str, fields.choice_field(("merry", "grave"), "How it should sound.")]
_ALL: list[Verb] = [*VERBS.values(), *ELSEWHERE.values()]


class _Connection:
    """Stands for a server: keeps what was sent, and answers with the same."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def ask(self, method: str, path: str, *, body: Any = None, **_how: Any) -> Any:
        self.sent.append((method, path, body))
        return {"result": "Carpe diem"}


@pytest.fixture
def motto(monkeypatch: pytest.MonkeyPatch) -> Iterator[Verb]:
    """A verb that was just declared, with an argument of a type that was just declared."""

    def motto(self: Memory, topic: fields.Key, *, mood: _Mood | None = None, tags: fields.Tags = ()) -> str:
        """A motto for the person."""
        return f"{self.user_id}: {topic}, {mood}, {tags!r}"

    declared: Callable[..., Any] = verb(scope="read")(motto)
    monkeypatch.setattr(Memory, "motto", declared, raising=False)
    yield VERBS["motto"]
    del VERBS["motto"]
    arguments_of.cache_clear()


def test_a_declared_verb_checks_its_arguments(motto: Verb, tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        memory: Any = app.user("u1")
        assert memory.motto(" work ", mood="merry", tags=["a", "a"]) == "u1: work, merry, ('a',)"
        assert memory.motto(topic="work") == "u1: work, None, ()"
        with pytest.raises(InvalidInputError, match="mood: 'sad' is not one of merry, grave"):
            memory.motto("work", mood="sad")
        with pytest.raises(InvalidInputError, match="topic: '!' has no letters or digits"):
            memory.motto("!")
        with pytest.raises(TypeError, match="colour"):
            memory.motto("work", colour="red")


def test_a_declared_verb_has_a_route_and_a_schema(motto: Verb, tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        route = next(one for one in VerbRoutes(app).routes() if one.name == "motto")
    assert (route.method, route.path, route.scope) == ("POST", "/users/{user}/motto", "read")
    assert route.does == "A motto for the person." and route.returns is str
    schema = route.takes.model_json_schema()
    assert list(schema["properties"]) == ["topic", "mood", "tags"] and schema["required"] == ["topic"]
    assert schema["properties"]["mood"]["anyOf"][0]["enum"] == ["merry", "grave"]


def test_a_declared_verb_can_be_asked_of_a_server_and_awaited(motto: Verb) -> None:
    connection: Any = _Connection()
    memory: Any = RemoteMemory(connection, "u1")
    assert inspect.signature(memory.motto) == inspect.signature(motto.function.__get__(memory))
    assert memory.motto("work", mood="merry") == "Carpe diem"
    assert connection.sent == [("POST", "users/u1/motto", {"topic": "work", "mood": "merry"})]
    derived = runpy.run_path(async_memory.__file__)["AsyncMemory"]
    assert inspect.iscoroutinefunction(derived.motto)
    assert inspect.signature(derived.motto) == inspect.signature(motto.function)


def test_what_a_server_does_in_its_own_way_is_awaited_so(tmp_path: Path) -> None:
    class Ranking(RemoteMemory):
        def rank(self, items: fields.Items, *, limit: fields.Limit | None = None) -> Any:
            return [*items, limit]

    connection: Any = _Connection()
    assert asyncio.run(AsyncMemory(Ranking(connection, "u1")).rank(["tea"], limit=1)) == ["tea", 1]
    acting = AsyncMemory(RemoteMemory(connection, "u1")).acting("agent", chat="work").memory
    assert isinstance(acting, RemoteMemory) and acting.in_chat


def test_a_declared_verb_has_options_on_the_command_line(motto: Verb) -> None:
    topic, mood, tags = (one.annotation.__metadata__[0] for one in options_of(motto))
    assert (topic.metavar, topic.help) == ("NAME", "The name of the fact, such as role.")
    assert (mood.default, mood.help) == ("--mood", "How it should sound.")
    assert (tags.default, *tags.param_decls) == ("--tag", "-t")
    assert verb_values(motto, {"topic": "work", "mood": None, "tags": ["a"]}) == {"topic": "work", "tags": ["a"]}


@pytest.mark.parametrize("declared", _ALL, ids=lambda one: one.name)
def test_every_argument_has_a_field_that_accepts_its_default(declared: Verb) -> None:
    for name, argument in declared.arguments.items():
        if name in NOT_SENT:
            continue
        assert argument.field is not None, name
        if argument.default not in (inspect.Parameter.empty, None):
            found = argument.field.check(name, argument.default)
            assert (tuple(found) if isinstance(argument.default, tuple) else found) == argument.default


def test_only_the_list_for_type_checkers_names_the_verbs_again() -> None:
    source = Path(async_memory.__file__).read_text("utf-8")
    listed = set(re.findall(r"^    (\w+) = _awaited\(Memory\.\1\)$", source, re.MULTILINE))
    assert listed == {name for name, _ in inspect.getmembers(AsyncMemory, inspect.iscoroutinefunction)}
    assert listed == VERBS.keys() | {"export", "import_"}
    assert not {name for name in VERBS if name in vars(RemoteMemory)} - {"rank", "report_many", "note_run"}
