"""Calling tools: what they declare, and that a call always ends in an answer, in time, within its limits, and logged."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recollect
from recollect import errors
from recollect.memory.memory import Memory
from recollect.memory.thread_pool import ThreadPool
from recollect.records import ToolCall
from recollect.testing import MemoryStore
from recollect.testing.memory_store import MemoryTransaction, MemoryUser
from recollect.tools.catalog import SUITES, suite_of, tools_of
from recollect.tools.formatting import render_answer
from recollect.tools.parameters import Parameter
from recollect.tools.results import Status
from recollect.tools.suite import MAX_OUTPUT, Result, Suite
from recollect.tools.tool import Scope, Tool, ToolAnswer, tool
from tests.tooling import SEED_TOOLS, Forked, SlowStore, forked
from tests.volume import IS_LONG, volume
from tests.words import mentions

TOOLS = tools_of()
NAMES = [one.name for one in TOOLS]
STATUSES = set(get_args(Status))


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path) as app:
        yield app


@pytest.fixture
def suite(app: recollect.Recollect) -> Suite:
    app.user("u1").remember("Likes tea", key="drink")
    return app.tools("u1", session="s1")


# what is declared


def test_T7_the_suites_have_the_tools_they_should() -> None:
    sizes = {name: len(tools) for name, tools in SUITES.items()}
    assert sizes == {
        "entries": 6, "notes": 4, "observations": 11, "facts": 11, "profile": 5, "sessions": 6, "files": 1,
    }  # fmt: skip
    assert len(NAMES) == len(set(NAMES)) == 44
    for name in NAMES:
        assert name.isidentifier() and len(name) <= 64 and suite_of(name) is not None
    assert suite_of("nothing") is None
    with pytest.raises(errors.InvalidInputError, match="suites"):
        tools_of(["nothing"])


@pytest.mark.parametrize("name", SEED_TOOLS)
def test_T7_a_tool_of_the_seeds_is_declared_as_they_do(name: str) -> None:
    seed = SEED_TOOLS[name]
    [found] = [one for one in TOOLS if one.name == name]
    assert found.suite == seed["suite"]
    assert found.with_embedder().description.startswith(seed["description"])
    ours, theirs = found.schema(), seed["parameters"]
    assert ours["required"] == theirs["required"]
    assert list(ours["properties"])[: len(theirs["properties"])] == list(theirs["properties"])
    # the seeds' own extensions: C's fourth, and E's facts that change with time
    assert ours["properties"].keys() - theirs["properties"].keys() <= {"category", "as_of", "valid_from"}
    for parameter, declared in theirs["properties"].items():
        mine = ours["properties"][parameter]
        for word, value in declared.items():
            assert mine.get(word) == value, (parameter, word)


@pytest.mark.parametrize("one", TOOLS, ids=NAMES)
def test_T7_a_schema_is_valid_and_takes_an_example(one: Tool) -> None:
    for with_user in (True, False):
        schema = one.schema(with_user=with_user)
        jsonschema.Draft202012Validator.check_schema(schema)
        json.dumps(schema)
        everything = {name: _example(part) for name, part in schema["properties"].items()}
        least = {name: everything[name] for name in schema["required"]}
        for example in (everything, least):
            jsonschema.validate(example, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: object() for name in everything} or [], schema)
    assert one.description and one.title and 0 < one.timeout <= 60
    assert (one.tier == "read_only") == (
        one.does == "recall" or one.name.startswith(("scratchpad_get", "scratchpad_list", "scratchpad_search"))
    )


def _examples(suite: Suite, name: str, **more: Any) -> dict[str, Any]:
    """Arguments that a tool takes."""
    given = {one: _example(schema) for one, schema in suite.schema(name)["properties"].items()}
    better = {"user_id": suite.memory.user_id, "fact_types": ["preference"], "fact_type": "preference"}
    better |= {"as_of": "2026-02-12", "valid_from": "2036-02-12"} | more
    return given | {one: value for one, value in better.items() if one in given}


def _example(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "array":
        return [_example(schema["items"])] * max(schema.get("minItems", 1), 1)
    low = schema.get("minimum", 1)
    return {"string": "tea", "integer": low, "number": low, "boolean": True}[schema["type"]]


def test_T7_two_tools_of_one_name_are_refused(app: recollect.Recollect) -> None:
    with pytest.raises(errors.InvalidInputError, match="memory_save"):
        Suite(app.user("u1"), [*tools_of(["notes"]), replace(tools_of(["notes"])[1])])


def test_T7_a_session_that_cannot_be_one_is_told_to_the_host(app: recollect.Recollect) -> None:
    for wrong in ("", "a\nb", "x" * 600):
        with pytest.raises(errors.InvalidInputError, match="session"):
            app.tools("u1", session=wrong)


# as functions


@pytest.mark.parametrize("user", ["u1", "123"])
def test_T7_functions_have_signatures(app: recollect.Recollect, user: str) -> None:
    suite = app.tools(user)
    functions = suite.functions()
    assert list(functions) == NAMES
    for name, function in functions.items():
        schema = suite.schema(name)
        signature = inspect.signature(function)
        required = [one.name for one in signature.parameters.values() if one.default is inspect.Parameter.empty]
        assert set(signature.parameters) == set(schema["properties"])
        by_models = {"durability"} if name == "write_memory" else set()  # called directly, an entry is durable
        assert required == [one for one in schema["required"] if one not in by_models]
        assert signature.return_annotation is str and set(function.__annotations__) == {*signature.parameters, "return"}
        assert (function.__name__, function.__doc__) == (name, suite.tools[name].description)
        for parameter, declared in schema["properties"].items():
            if "default" in declared:
                assert signature.parameters[parameter].default == declared["default"]


def test_T7_functions_work_however_they_are_called(app: recollect.Recollect) -> None:
    functions = app.tools("u1", "entries", "notes", "sessions").functions()
    assert json.loads(functions["memory_save"]("Likes green tea"))["status"] == "success"
    search = functions["memory_search"]
    told = search("tea", 3)
    assert json.loads(told)[0]["text"] == "Likes green tea"
    assert search(query="tea", top_k="3") == search("tea", topK=3) == told == search("tea", 3, False)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), (("a", 1, True, "b", "more"), {}), (("a",), {"query": "b"}), ((), {"qery": "a"}), (([],), {}), (("a",), {"top_kk": 1})],
)  # fmt: skip
def test_T7_a_function_called_wrong_answers(app: recollect.Recollect, args: Any, kwargs: Any) -> None:
    told = json.loads(app.tools("u1", "notes").functions()["memory_search"](*args, **kwargs))
    assert told["status"] == "error" and ("query" in told["message"] or "top_k" in told["message"])


def test_T7_a_function_does_not_pass_over_what_it_was_given(app: recollect.Recollect) -> None:
    for number in range(3):
        app.user("u1").note(f"note {number}")
    export = app.tools("u1", "sessions").functions()["memory_export"]
    assert len(json.loads(export(1, unknown=2))["items"]) == 1


# names of tools


def test_T7_a_tool_is_found_by_the_name_a_client_made_of_it(suite: Suite) -> None:
    for name in (
        "memory_search",
        "mcp__recollect__memory_search",
        "recollect.memory_search",
        "MemorySearch",
        "memory-search",
    ):
        assert suite.call(name, {"query": "tea"}).tool == "memory_search"


@pytest.mark.parametrize(
    "name", ["", "nothing", "x" * 1_000_000, "\ud800", "a\nb", None, 5, b"memory_search", ["memory_search"]]
)
def test_T7_a_tool_that_does_not_exist_is_answered_with_those_that_do(suite: Suite, name: Any) -> None:
    result = suite.call(name, {"query": "tea"})
    assert (result.status, result.outcome, result.tool) == ("invalid", "unknown tool", "unknown")
    assert "memory_search" in result.text and len(result.text) < 2_000
    result.text.encode("utf-8")
    assert [row.tool for row in suite.memory.calls()] == ["unknown"]


# whatever is given


def _valid(parameter: Parameter, refs: Sequence[Any]) -> st.SearchStrategy[Any]:
    if parameter.enum:
        return st.sampled_from(parameter.enum)
    texts = st.sampled_from(
        [
            "tea",
            "Likes tea",
            "drink",
            "role",
            "s1",
            "view",
            "/memories/MEMORY.md",
            "/memories/a.md",
            "personal",
            *map(str, refs),
        ]
    )
    low, high = int(parameter.arg.low or 0), int(parameter.arg.high or 30)
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": texts | st.text(max_size=60),
        "integer": st.integers(low, high) | (st.sampled_from(list(refs)) if parameter.arg.reference else st.nothing()),
        "number": st.floats(parameter.arg.low or 0.0, parameter.arg.high or 1.0),
        "boolean": st.booleans(),
    }
    if parameter.items:
        items = st.sampled_from(list(refs)) if parameter.arg.reference else kinds[parameter.items]
        return st.lists(items, min_size=parameter.arg.items_low or 0, max_size=parameter.arg.items_high or 4)
    return kinds[parameter.type]


_HOSTILE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=20), st.binary(max_size=5),
    st.sampled_from(["null", "", " ", "²", "9" * 30, "\0", "\ud800", "\u202e", "[1, 2", "x" * 5_000, "y" * 300_000, "<|im_start|>",
                     "../../etc/passwd", "'; DROP TABLE records; --", "{{x}}", "%s%n", 10**30, -1, float("nan"), [], {}, [None], object()]),
    st.lists(st.text(max_size=5) | st.integers(), max_size=4),
)  # fmt: skip


@st.composite
def _calls(draw: st.DrawFn, refs: Sequence[Any]) -> tuple[str, Any]:
    one = draw(st.sampled_from(TOOLS))
    given: dict[str, Any] = {}
    for parameter in one.parameters:
        if parameter.arg.user:
            given[parameter.name] = draw(st.sampled_from([123, 123, "123", 456]))
        elif parameter.required or draw(st.booleans()):
            # mostly valid, or nothing but complaints would come
            given[parameter.name] = draw(_HOSTILE if draw(st.integers(0, 7)) == 0 else _valid(parameter, refs))
    whole = draw(st.sampled_from(["as it is"] * 8 + ["JSON", "more", "garbage"]))
    if whole == "JSON":
        try:
            return one.name, json.dumps(given)
        except (TypeError, ValueError):
            return one.name, given
    if whole == "garbage":
        return one.name, draw(_HOSTILE)
    return one.name, given | ({draw(st.text(max_size=5)): 1} if whole == "more" else {})


def check_answer(result: Result, tools: dict[str, Tool]) -> None:
    """What holds for every answer."""
    assert result.status in STATUSES
    assert len(result.text) <= MAX_OUTPUT
    result.text.encode("utf-8")
    assert "internal error" not in result.text, (result.tool, result.outcome)
    one = tools[result.tool]
    if one.json:
        told = json.loads(result.text)
        assert result.status not in ("invalid", "error", "limited", "timeout") or told["status"] == "error"
    if result.status == "invalid":
        names = [parameter.name for parameter in one.parameters]
        assert any(name in result.text for name in [*names, "arguments"]), (result.tool, result.text)


@pytest.mark.hypothesis
@pytest.mark.parametrize("where", ["memory", "folder"])
def test_R5_whatever_is_called_is_answered_and_logged_and_leaves_the_memory_whole(where: str, tmp_path: Path) -> None:
    with recollect.open(MemoryStore() if where == "memory" else tmp_path) as app:
        memory = app.user(123)
        refs = _stock(memory)
        suite = app.tools(123, session="s1", chat="c1")
        count, statuses = 0, set[str]()

        @settings(max_examples=volume(80, 400), deadline=None, suppress_health_check=list(HealthCheck))
        @given(_calls(refs))
        def check(call: tuple[str, Any]) -> None:
            nonlocal count
            count += 1
            result = suite.call(*call)
            check_answer(result, suite.tools)
            statuses.add(result.status)
            if count % 50 == 0:
                assert memory.verify() == []

        check()
        assert memory.verify() == []
        assert len(memory.calls(limit=None)) == count
        assert statuses >= {"ok", "invalid", "error"}


def _stock(memory: Memory) -> list[Any]:
    memory.remember("Likes tea", key="drink", type="preference")
    memory.remember("Engineer", key="role", category="work_context")
    memory.note("Has a dog called Rex")
    memory.observe("The API answers in JSON", "finding")
    memory.episode("Birthday", "They planned a party")
    memory.say("I like tea", session="s1")
    memory.set_scratch("task", "write tests")
    ids = [record.id for record in memory.read()]
    return [*ids, *memory.numbers(ids).values(), 999]


def test_R5_every_tool_answers_to_nothing_and_to_garbage(suite: Suite) -> None:
    for name in suite.tools:
        everything: tuple[Any, ...] = (
            None,
            {},
            "{}",
            "garbage",
            [],
            {"x": object()},
            {parameter.name: object() for parameter in suite.tools[name].parameters},
        )
        for one in everything:
            check_answer(suite.call(name, one), suite.tools)
    assert suite.memory.verify() == []


@pytest.mark.slow
def test_R5_every_tool_answers_to_very_much(suite: Suite) -> None:
    for name, one in suite.tools.items():
        given = {
            parameter.name: "tea " * 100_000
            for parameter in one.parameters
            if parameter.type == "string" and not parameter.enum
        }
        check_answer(suite.call(name, _examples(suite, name) | given), suite.tools)
    assert suite.memory.verify() == []


@pytest.mark.slow
def test_R5_an_answer_that_is_too_long_is_cut_and_stays_json(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    with memory.batch() as batch:
        for number in range(12):
            batch.note(f"tea {number} " + f'"{number}"\\ ' * 5_000)
            batch.observe(f"finding {number} about tea: " + f"{number * 7} leaves, " * 300, "finding")
        for number in range(300):
            batch.say(f"message {number} about tea and milk " + "and honey " * 10, session="s1")
        for number in range(10):
            batch.remember('"' * 3_800 + f" {number}", key=f"k{number}", type="preference")
    suite = app.tools("u1")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("recall", {"query": "tea", "limit": 50}), ("memory_search", {"query": "tea", "top_k": 20}), ("recall_fil", {"query": "tea", "limit_per_category": 50}),
        ("recall_by_category", {"query": "tea", "category": "finding", "limit": 50}), ("memory_read_session", {"session_id": "s1", "limit": 200}),
        ("recall_facts", {"limit": 50}), ("memory_export", {"limit": 500}), ("search_memory", {"query": "tea", "limit": 100}),
        ("retrieve_by_id", {"id": memory.read(kind="note")[0].id}), ("read_memory", {"category": "preference"}),
        ("update_fact", {"fact_type": "preference", "fact_key": "k1", "new_value": '"' * 3_900, "confidence": 0.9, "change_reason": "update"}),
    ]  # fmt: skip
    for name, arguments in calls:
        result = suite.call(name, arguments)
        check_answer(result, suite.tools)
        assert result.status == "ok" and len(result.text) > 2_000, name
    told = json.loads(suite.call("recall", {"query": "tea", "limit": 50}).text)
    assert len(told["results"]) >= 1 and told["results"][0]["id"] and told["left_out"] > 0
    assert json.loads(suite.call(*calls[-1]).text)["status"] == "success"


def test_R5_an_export_by_pages_leaves_nothing_out(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    with memory.batch() as batch:
        for number in range(60):
            batch.note(f"{number}: " + f"word{number} " * 150)
        batch.note("long " * 5_000)
    suite, found, too_long, offset = app.tools("u1"), [], [], 0
    while offset is not None:
        page = json.loads(suite.call("memory_export", {"limit": 500, "offset": offset}).text)
        assert "left_out" not in page
        found += [item["text"] for item in page["items"]]
        too_long += page.get("too_long", [])
        offset = page.get("next_offset")
    assert sorted(found) == sorted(note.content for note in memory.read() if len(note.content) < 20_000)
    assert len(found) == 60 and len(too_long) == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=volume(30, 150), deadline=None)
@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4) | st.lists(_JSON, max_size=8), st.integers(80, 300))
def test_R5_json_is_cut_to_json(content: Any, limit: int) -> None:
    text = render_answer(content, limit)
    assert len(text) <= limit
    assert json.loads(text) == content or len(json.dumps(content, ensure_ascii=False)) > limit


# what goes wrong inside


SECRET = "the launch code is 0000"


@tool("bad", does="remember", timeout=30)
def bad_tool(scope: Scope, how: str) -> ToolAnswer:
    """Goes wrong."""
    wrong: dict[str, Any] = {
        "raises": ValueError(SECRET), "exits": SystemExit(SECRET), "is interrupted": KeyboardInterrupt(SECRET), "has no memory": MemoryError(),
        "loses its store": errors.StoreError(SECRET), "is cancelled": asyncio.CancelledError(), "times out": TimeoutError(SECRET),
        "a set": ToolAnswer({"x": {1}}), "not a number": ToolAnswer({"x": float("nan")}), "nothing": None, "an object": ToolAnswer({"x": object()}),
        "half a character": ToolAnswer({"x": "\ud800"}), "half a text": ToolAnswer("\udfff"), "no text": ToolAnswer(5),  # type: ignore[arg-type]
    }  # fmt: skip
    if isinstance(wrong[how], BaseException):
        raise wrong[how]
    answer: ToolAnswer = wrong[how]
    return answer


@pytest.mark.parametrize(
    "how", ["raises", "exits", "is interrupted", "has no memory", "is cancelled", "times out", "a set", "not a number", "nothing", "an object"]
)  # fmt: skip
def test_R5_a_tool_that_goes_wrong_is_answered_without_what_was_said(
    app: recollect.Recollect, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    app.user("u1").note("exists")
    suite = Suite(app.user("u1"), [bad_tool], log=app._call_log())
    for result in (suite.call("bad_tool", {"how": how}), asyncio.run(suite.acall("bad_tool", {"how": how}))):
        assert result.status == "error" and json.loads(result.text)["status"] == "error"
        assert result.call in result.text and SECRET not in result.text
    assert SECRET not in caplog.text and "bad_tool failed" in caplog.text
    rows = app.user("u1").calls()
    assert [row.status for row in rows] == ["error", "error"] and SECRET not in repr(rows)


def test_R5_text_that_cannot_be_sent_is_mended(app: recollect.Recollect) -> None:
    suite = Suite(app.user("u1"), [bad_tool])
    assert json.loads(suite.call("bad_tool", {"how": "half a character"}).text) == {"x": "?"}
    assert suite.call("bad_tool", {"how": "half a text"}).text == "?"


STORE_ERRORS = [
    errors.StoreError,
    errors.StoreBusyError,
    errors.StoreReadOnlyError,
    errors.StoreFullError,
    errors.StoreUnavailableError,
    errors.StoreCorruptError,
]


@pytest.mark.parametrize("kind", STORE_ERRORS)
def test_R5_a_store_that_fails_is_told_and_nothing_is_half_done(
    kind: type[errors.StoreError], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(MemoryStore()) as app:
        memory = app.user("123")
        _stock(memory)
        before = [record.id for record in memory.read()]
        suite = app.tools("123", session="s1")

        def fail(self: object, *_: object) -> None:
            raise kind()

        with monkeypatch.context() as patch:
            patch.setattr(MemoryTransaction, "put", fail)
            patch.setattr(MemoryTransaction, "log", fail)
            patch.setattr(MemoryTransaction, "log_calls", fail)
            for one in TOOLS:
                result = suite.call(one.name, _examples(suite, one.name))
                check_answer(result, suite.tools)
                assert one.tier != "read_only" or result.status in ("ok", "error", "refused")
            told = suite.call("memory_save", {"content": "something new about the weather"})
            assert (told.status, told.outcome) == ("error", kind.__name__)
        assert [record.id for record in memory.read()] == before and memory.verify() == []
        assert "weather" not in caplog.text
        assert len(memory.calls(limit=None)) == len(TOOLS) + 1  # the log waited


def test_R5_a_store_that_cannot_even_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(MemoryStore()) as app:
        suite = app.tools("123")

        @contextmanager
        def fail(self: object) -> Iterator[Any]:
            raise errors.StoreUnavailableError()
            yield

        monkeypatch.setattr(MemoryUser, "read", fail)
        monkeypatch.setattr(MemoryUser, "write", fail)
        for one in TOOLS:
            result = suite.call(one.name, _examples(suite, one.name))
            assert (result.status, result.outcome) == ("error", "StoreUnavailableError")


class Raising:
    """A log, or telemetry, that fails."""

    def __getattr__(self, name: str) -> Any:
        def fail(*_: object, **__: object) -> None:
            raise OSError(SECRET)

        return (lambda *_: None) if name == "refusal" else fail


def test_U7_a_log_and_telemetry_that_fail_do_not_fail_the_call(
    app: recollect.Recollect, caplog: pytest.LogCaptureFixture
) -> None:
    failing: Any = Raising()
    for broken in ({"log": failing}, {"telemetry": failing}, {"log": failing, "telemetry": failing}):
        suite = Suite(app.user("u1"), TOOLS, **broken)
        assert suite.call("memory_search", {"query": "tea"}).status == "ok"
        assert asyncio.run(suite.acall("memory_save", {"content": f"note {len(broken)}"})).status == "ok"
        assert suite.call("nothing").status == "invalid"
    assert SECRET not in caplog.text and "OSError" in caplog.text


class Counting:
    """Telemetry that remembers."""

    def __init__(self) -> None:
        self.rows: list[ToolCall] = []

    def called(self, tool: Tool, call: ToolCall, began_ns: int) -> None:
        self.rows.append(call)

    def pattern(self, name: str) -> None:
        pass


def test_U7_telemetry_hears_of_every_call_also_if_the_log_fails(app: recollect.Recollect) -> None:
    heard, failing = Counting(), Raising()
    suite = Suite(app.user("u1"), TOOLS, telemetry=heard, log=failing)  # type: ignore[arg-type]
    for arguments in ({"query": "tea"}, {}, "garbage"):
        suite.call("memory_search", arguments)
    suite.call("nothing")
    assert [row.status for row in heard.rows] == ["ok", "invalid", "invalid", "invalid"]


def test_R5_nothing_of_the_content_is_in_records_of_the_python_log(
    suite: Suite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    words = "xylophone-quartz"
    for one in TOOLS:
        suite.call(one.name, {p.name: words for p in one.parameters})
        suite.call(
            one.name,
            {
                n: words if s["type"] == "string" and "enum" not in s else _example(s)
                for n, s in suite.schema(one.name)["properties"].items()
            },
        )
    suite.call(words, {words: words})
    assert words not in caplog.text
    assert words not in repr(suite.memory.calls(limit=None)) + repr(suite.memory.usage())


# in time


def in_time(suite: Suite, timeout: float = 0.01) -> Suite:
    """The same tools, impatient or patient."""
    return Suite(
        suite.memory,
        [replace(one, timeout=timeout) for one in suite.tools.values()],
        session=suite.session,
        log=suite._log,
    )


def test_R5_a_call_that_outlives_its_timeout_is_done_later_and_the_journal_says_so() -> None:
    store = SlowStore()
    with recollect.open(store) as app:
        app.user("u1").note("exists")
        suite = in_time(app.tools("u1", session="s1"))
        with store.held():
            result = suite.call("memory_save", {"content": "Likes oolong"})
            assert (result.status, result.outcome) == ("timeout", "running")
            assert result.call in result.text and json.loads(result.text)["status"] == "error"
            assert app.user("u1").history(call=result.call) == []
            assert store.waiting.wait(60)
        store.wait_done(app, result.call)
        [entry] = app.user("u1").history(call=result.call)
        assert entry.after is not None and entry.after.content == "Likes oolong"
        [row] = [row for row in app.user("u1").calls() if row.id == result.call]
        assert (row.status, row.outcome) == ("timeout", "written")
        assert row.tokens_in > 0 and row.tokens_out > 0 and row.latency_ms >= result.latency_ms
        [spent] = app.user("u1").usage()
        assert (spent.calls, spent.tokens_in, spent.tokens_out) == (1, row.tokens_in, row.tokens_out)


def test_R5_a_call_that_outlives_its_timeout_and_fails_is_not_done_and_the_log_says_so() -> None:
    store = SlowStore()
    with recollect.open(store) as app:
        app.user("u1").note("exists")
        suite = in_time(app.tools("u1"))
        with store.held():
            result = suite.call("memory_save", {"content": "Likes oolong"})
            assert result.outcome == "running"
            store.failing = errors.StoreFullError()
        store.wait_done(app, result.call)
        assert app.user("u1").history(call=result.call) == []
        assert [row.outcome for row in app.user("u1").calls()] == ["StoreFullError"]


def test_R5_a_call_behind_the_batch_of_another_thread_is_done_after_it(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.note("exists")
    suite = in_time(app.tools("u1"))
    opened, leave = threading.Event(), threading.Event()

    def batch() -> None:
        with memory.batch() as many:
            many.note("first")
            opened.set()
            assert leave.wait(60)

    other = threading.Thread(target=batch)
    other.start()
    assert opened.wait(60)
    result = suite.call("memory_save", {"content": "second"})
    assert result.status == "timeout"
    leave.set()
    other.join()
    SlowStore.wait_done(app, result.call)
    assert [entry.after.content for entry in memory.history(call=result.call) if entry.after] == ["second"]


def test_R5_a_batch_open_in_the_calling_thread_is_told_at_once(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    suite = app.tools("u1")
    with memory.batch() as batch:
        batch.note("first")
        for name, given in (("memory_save", {"content": "second"}), ("memory_search", {"query": "first"})):
            result = suite.call(name, given)
            assert (result.status, result.outcome) == ("error", "StoreError") and "batch" in result.text
        assert app.tools("u2").call("memory_save", {"content": "another"}).status == "ok"
        assert memory.calls() == []  # and looking at the log does not wait for the batch
    assert suite.call("memory_save", {"content": "second"}).status == "ok"
    assert [row.status for row in memory.calls(newest_first=False)] == ["error", "error", "ok"]


def test_R5_the_event_loop_goes_on_while_a_call_waits() -> None:
    store = SlowStore()

    async def main(app: recollect.Recollect) -> None:
        patient, impatient = app.tools("u1"), in_time(app.tools("u1"))
        going = asyncio.Event()
        with store.held():
            waiting = asyncio.create_task(patient.acall("memory_save", {"content": "Likes oolong"}))
            late = await impatient.acall("memory_save", {"content": "Likes sencha"})
            assert late.status == "timeout" and not waiting.done()
            asyncio.get_running_loop().call_soon(going.set)
            await going.wait()
        assert (await waiting).status == "ok"
        store.wait_done(app, late.call)
        assert len(app.user("u1").history(call=late.call)) == 1

    with recollect.open(store) as app:
        asyncio.run(main(app))


@pytest.mark.parametrize("budget", [0, 10**6])
def test_T7_the_event_loop_goes_on_also_where_the_log_cannot_be_written_yet(budget: int) -> None:
    store = SlowStore()

    async def main(app: recollect.Recollect) -> None:
        with store.held():  # the log of what is answered below has to wait too
            impatient = in_time(app.tools("u1"))
            for _ in range(3):
                assert (await impatient.acall("memory_save", {"content": "x"})).status == "timeout"
                assert (await impatient.acall("memory_save", {})).status == "invalid"
            assert impatient.call("nothing").status == "invalid"

    with recollect.open(store, daily_tokens=budget) as app:
        app.user("u1").note("exists")
        asyncio.run(main(app))
        app.close()


def test_R5_an_await_that_is_cancelled_leaves_the_call_to_its_end_and_in_the_log() -> None:
    store = SlowStore()

    async def main(app: recollect.Recollect) -> None:
        suite = app.tools("u1")
        with store.held():
            task = asyncio.create_task(suite.acall("memory_save", {"content": "Likes oolong"}))
            while not store.waiting.is_set():
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with recollect.open(store) as app:
        app.user("u1").note("exists")
        asyncio.run(main(app))
        (row,) = app.user("u1").calls()
        store.wait_done(app, row.id)
        assert len(app.user("u1").history(call=row.id)) == 1
        assert [(one.id, one.outcome) for one in app.user("u1").calls()] == [(row.id, "written")]


def test_R5_an_await_that_is_cancelled_before_the_call_began_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.memory.thread_pool._MOST", 1)
    monkeypatch.setattr("recollect.tools.suite.WORKERS", ThreadPool())
    store = SlowStore()

    async def main(app: recollect.Recollect) -> None:
        with store.held():
            first = asyncio.create_task(app.tools("u1").acall("memory_save", {"content": "first"}))
            while not store.waiting.is_set():
                await asyncio.sleep(0)
            second = asyncio.create_task(app.tools("u1").acall("memory_save", {"content": "second"}))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
        assert (await first).status == "ok"

    with recollect.open(store) as app:
        app.user("u1").note("exists")
        asyncio.run(main(app))
        rows = {row.outcome: row.id for row in app.user("u1").calls()}
        assert rows.keys() == {"written", "not begun"}
        assert app.user("u1").history(call=rows["not begun"]) == []


def test_R5_a_call_that_ends_after_its_loop_is_closed_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    store = SlowStore()
    with recollect.open(store) as app:
        app.user("u1").note("exists")
        with store.held():
            result = asyncio.run(in_time(app.tools("u1")).acall("memory_save", {"content": "Likes oolong"}))
        store.wait_done(app, result.call)
    assert caplog.records == []


def test_R5_a_call_that_had_not_begun_is_never_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.memory.thread_pool._MOST", 1)
    monkeypatch.setattr("recollect.tools.suite.WORKERS", ThreadPool())
    store = SlowStore()
    with recollect.open(store) as app:
        app.user("u1").note("exists")
        suite = in_time(app.tools("u1"))
        with store.held():
            first = suite.call("memory_save", {"content": "first"})
            assert first.outcome == "running" and store.waiting.wait(60)
            second = suite.call("memory_save", {"content": "second"})
            third = asyncio.run(suite.acall("memory_save", {"content": "third"}))
        for result in (second, third):
            assert (result.status, result.outcome) == ("timeout", "not begun") and "nothing was done" in result.text
        store.wait_done(app, first.call)
        assert suite.call("memory_save", {"content": "fourth"}).status in ("ok", "timeout")
        found = {record.content for record in app.user("u1").read(kind="note")}
        assert "first" in found and not found & {"second", "third"}
        assert app.user("u1").history(call=second.call) == app.user("u1").history(call=third.call) == []
        rows = {row.id: row for row in app.user("u1").calls()}
        assert rows[second.call].outcome == rows[third.call].outcome == "not begun"
        [spent] = app.user("u1").usage()
        assert spent.calls == len(rows) == 4


def test_R4_a_user_whose_calls_wait_leaves_threads_to_others() -> None:
    store = SlowStore()

    async def main(app: recollect.Recollect) -> None:
        mine, others = in_time(app.tools("u1"), 300), app.tools("u2")
        with store.held():
            waiting = [
                asyncio.create_task(mine.acall("memory_save", {"content": f"{n} is {n * 7919}"})) for n in range(200)
            ]
            assert (await others.acall("memory_search", {"query": "tea"})).status == "ok"
        assert {(await one).outcome for one in waiting} == {"written"}

    with recollect.open(store) as app:
        app.user("u2").note("Likes tea")
        asyncio.run(main(app))
        assert len(app.user("u1").read(kind="note")) == len(app.user("u1").calls(limit=None)) == 200


def test_R5_what_waits_for_a_thread_is_done_once_and_what_fails_hurts_nobody() -> None:
    workers, done, leave = ThreadPool(), list[int](), threading.Event()
    blocked = [workers.submit("u1", leave.wait, 60) for _ in range(8)]
    futures = [workers.submit("u1", done.append, number) for number in range(50)]
    assert futures[3].cancel() and not done
    assert workers.submit("u2", lambda: "done").result(60) == "done"
    failing = workers.submit("u2", int, "x")
    assert isinstance(failing.exception(60), ValueError)
    leave.set()
    assert all(one.result(60) for one in blocked)
    for future in futures[:3] + futures[4:]:
        future.result(60)
    assert sorted(done) == [number for number in range(50) if number != 3]


def test_R5_no_thread_can_begin(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPool, "submit", fail)
    assert suite.call("memory_save", {"content": "x"}).status == "error"


# modes


def test_P7_a_user_without_a_memory_gets_one_only_by_writing(app: recollect.Recollect) -> None:
    suite = app.tools("u9")
    for name in NAMES:
        if suite.tools[name].tier == "read_only":
            check_answer(suite.call(name, _examples(suite, name)), suite.tools)
    assert list(app.users()) == [] and app.user("u9").calls() == [] and not app.user("u9").exists


@pytest.mark.parametrize("mode", ["paused", "incognito", "disabled"])
def test_P7_no_tool_writes_while_memory_is_paused(tmp_path: Path, mode: str) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        _stock(memory)
        if mode != "disabled":
            memory.pause(incognito=mode == "incognito")
    with recollect.open(tmp_path, enabled=mode != "disabled") as app:
        memory = app.user("u1")
        suite, before = app.tools("u1", session="s1"), memory.history()
        for name, one in suite.tools.items():
            given = _examples(suite, name, command="create")
            result = suite.call(name, given)
            check_answer(result, suite.tools)
            reads = one.tier == "read_only"
            if mode == "incognito" or not reads:
                assert result.status == "refused" and not mentions(result.text.lower(), "tea"), name
            else:
                assert result.status != "invalid"
        assert memory.history() == before


# limits


def test_T7_a_response_may_make_five_calls(suite: Suite) -> None:
    bounded = suite.response()
    assert bounded.is_response and not suite.is_response
    told = [bounded.call("memory_save", {"content": f"number {number} is {number * 7919}"}) for number in range(7)]
    assert [result.status for result in told] == ["ok"] * 5 + ["limited"] * 2
    assert "5 memory calls" in told[5].text and suite.memory.history(call=told[5].call) == []
    assert len(suite.memory.read(kind="note")) == 5
    assert (
        suite.call("memory_search", {"query": "x"}).status
        == suite.response().call("memory_search", {"query": "x"}).status
        == "ok"
    )


@pytest.mark.parametrize("calls", [0, -3])
def test_T7_a_response_that_may_make_no_call(suite: Suite, calls: int) -> None:
    assert suite.response(calls).call("memory_search", {"query": "x"}).status == "limited"


def test_T7_wrong_calls_count_too(suite: Suite) -> None:
    bounded = suite.response(2)
    assert [bounded.call("memory_search", {}).status for _ in range(3)] == ["invalid", "invalid", "limited"]


def test_T7_fifty_threads_get_five_calls_between_them(suite: Suite) -> None:
    bounded = suite.response()
    barrier = threading.Barrier(50)

    def call(number: int) -> Result:
        barrier.wait(60)
        return bounded.call("memory_save", {"content": f"number {number} is {number * 7919}"})

    with ThreadPoolExecutor(50) as pool:
        told = list(pool.map(call, range(50)))
    assert sorted(result.status for result in told) == ["limited"] * 45 + ["ok"] * 5
    assert len(suite.memory.read(kind="note")) == 5 and len(suite.memory.calls()) == 50


# many at once


def _many(app: recollect.Recollect, calls: int, users: int) -> None:
    """Calls of many users at once, by threads and awaited: each user has just what is theirs."""
    patient = [replace(one, timeout=300) for one in tools_of(["entries", "notes"])]
    suites = [Suite(app.user(f"u{user}"), patient, log=app._call_log()) for user in range(users)]

    def arguments(number: int) -> tuple[str, dict[str, Any]]:
        text = f"Number {number} of u{number % users} is {number * 7919}"
        if number // users % 2:
            return "memory_save", {"content": text}
        return "write_memory", {
            "key": f"k{number}",
            "value": text,
            "category": "preference",
            "durability": "durable",
        }

    async def gather(numbers: range) -> list[Result]:
        return await asyncio.gather(*(suites[number % users].acall(*arguments(number)) for number in numbers))

    half = calls // 2
    with ThreadPoolExecutor(40) as pool:
        first = pool.map(lambda number: suites[number % users].call(*arguments(number)), range(half))
        results = [*asyncio.run(gather(range(half, calls))), *first]
    assert [result.text for result in results if result.status != "ok" or result.outcome != "written"] == []
    for user in range(users):
        memory = app.user(f"u{user}")
        expected = {f"Number {number} of u{user} is {number * 7919}" for number in range(user, calls, users)}
        assert {record.content for record in memory.read()} == expected
        assert {row.id for row in memory.calls(limit=None)} == {entry.call for entry in memory.history()}
        assert len(memory.calls(limit=None)) == len(expected)
        if user % 10 == 0:
            assert memory.verify() == []


@pytest.mark.slow
def test_R4_a_thousand_calls_of_a_hundred_users_at_once_on_sqlite(app: recollect.Recollect) -> None:
    _many(app, 1000, 100)


def test_R4_many_calls_of_many_users_at_once_on_postgresql(postgres_url: str) -> None:
    with recollect.open(postgres_url) as app:
        _many(app, *((300, 30) if IS_LONG else (60, 6)))


def test_R4_a_model_cannot_reach_another_user(app: recollect.Recollect) -> None:
    app.user(2).remember("Secretly likes coffee", key="drink", type="preference")
    app.user(3).remember("Likes cocoa", key="drink", type="preference")
    suite = app.tools(1, others=[3])
    for named in (2, "2", "2.0", " 2 ", -2, "u2", "../2", "1,2"):
        result = suite.call("recall_facts", {"user_id": named})
        assert result.status == "invalid" and "coffee" not in result.text
    assert "cocoa" in suite.call("recall_facts", {"user_id": "3.0"}).text
    assert app.user(2).calls() == [] and len(app.user(3).calls()) == 1


def test_R4_users_whose_names_are_alike_are_not_mixed_up(app: recollect.Recollect) -> None:
    app.user("a.0").remember("Likes cocoa", type="preference", key="drink")
    app.user("a").remember("Likes coffee", type="preference", key="drink")
    suite = app.tools("a", others=["a.0"], fixed_user=False)
    assert "cocoa" in suite.call("recall_facts", {"user_id": "a.0"}).text
    assert "coffee" in suite.call("recall_facts", {"user_id": "a"}).text


# forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_R4_tools_work_in_a_forked_child(suite: Suite) -> None:
    assert suite.call("memory_save", {"content": "said by the parent"}).status == "ok"

    def child() -> Forked:
        saved = suite.call("memory_save", {"content": "said by the child"})
        found = asyncio.run(suite.acall("memory_search", {"query": "parent"}))
        return [saved.status, found.status, "said by the parent" in found.text, len(suite.memory.calls())]

    assert forked(child)[:3] == ["ok", "ok", True]
    assert suite.call("memory_search", {"query": "child"}).status == "ok"
    assert {note.content for note in suite.memory.read(kind="note")} == {"said by the parent", "said by the child"}
    assert sorted(row.tool for row in suite.memory.calls()) == [
        "memory_save",
        "memory_save",
        "memory_search",
        "memory_search",
    ]
    assert suite.memory.verify() == []
