"""The formats of the providers: with their own libraries over real HTTP, and on every odd shape of plain data."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

import recollect
from recollect.errors import InvalidInputError
from recollect.testing.models import Call, ModelRequest, Say, ToolResult, Turn
from recollect.tools import wire
from recollect.tools.catalog import SUITES, tools_of
from recollect.tools.parameters import read_arguments
from recollect.tools.suite import Suite
from recollect.tools.tool import Tool
from tests.fakes.model_server import StrictModelServer

FORMATS: tuple[wire.Format, ...] = ("openai", "responses", "anthropic", "gemini")
CORRECT = {"content": "Likes tea"}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path) as app:
        yield app


@pytest.fixture
def suite(app: recollect.Recollect) -> Suite:
    return app.tools("u1", "notes", session="s1")


# hosts: what someone who uses a library of a provider writes


class Host:
    """A conversation over one library."""

    format: wire.Format
    malformed: Call = Call("memory_save", '{"content": "Likes te')

    def __init__(self, server: StrictModelServer) -> None:
        self.server = server
        self.messages: list[Any] = []

    def say(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def ask(self, tools: list[Any]) -> Any:
        raise NotImplementedError

    def stream(self, tools: list[Any]) -> Any:
        raise NotImplementedError

    def keep(self, response: Any) -> None:
        raise NotImplementedError

    def said(self, response: Any) -> str:
        raise NotImplementedError

    def weather(self) -> Any:
        """A tool of the host's own."""
        raise NotImplementedError

    def turn(self, suite: Suite, text: str, **options: Any) -> str:
        """Until the model has nothing more to call."""
        tools = wire.declarations(suite, self.format, **options)
        self.say(text)
        for _ in range(10):
            response = self.ask(tools)
            answered = wire.answer(suite, response, self.format)
            assert answered.others == []
            if not answered.messages:
                return self.said(response)
            self.keep(response)
            self.messages += answered.messages
        raise AssertionError("the model does not come to an end")

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return self.server.requests[-1].tool_results


class Chat(Host):
    format: wire.Format = "openai"

    def __init__(self, server: StrictModelServer) -> None:
        import openai

        super().__init__(server)
        self.client = openai.OpenAI(base_url=server.openai_url, api_key="test", max_retries=0)

    def ask(self, tools: list[Any]) -> Any:
        return self.client.chat.completions.create(model="m", messages=self.messages, tools=tools)

    def stream(self, tools: list[Any]) -> Any:
        with self.client.chat.completions.stream(model="m", messages=self.messages, tools=tools) as stream:
            return stream.get_final_completion()

    def keep(self, response: Any) -> None:
        self.messages.append(response.choices[0].message)

    def said(self, response: Any) -> str:
        return str(response.choices[0].message.content)

    def weather(self) -> Any:
        return {"type": "function", "function": {"name": "weather", "parameters": WEATHER}}


class Responses(Chat):
    format = "responses"

    def ask(self, tools: list[Any]) -> Any:
        return self.client.responses.create(model="m", input=self.messages, tools=tools)

    def stream(self, tools: list[Any]) -> Any:
        with self.client.responses.stream(model="m", input=self.messages, tools=tools) as stream:
            return stream.get_final_response()

    def keep(self, response: Any) -> None:
        self.messages += response.output

    def said(self, response: Any) -> str:
        return str(response.output_text)

    def weather(self) -> Any:
        return {"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}


class Anthropic(Host):
    format = "anthropic"
    malformed = Call("memory_save", {"text": ["Likes tea"]})  # the service lets only JSON objects through

    def __init__(self, server: StrictModelServer) -> None:
        import anthropic

        super().__init__(server)
        self.client = anthropic.Anthropic(base_url=server.anthropic_url, api_key="test", max_retries=0)

    def ask(self, tools: list[Any]) -> Any:
        return self.client.messages.create(model="m", max_tokens=100, messages=self.messages, tools=tools)

    def stream(self, tools: list[Any]) -> Any:
        with self.client.messages.stream(model="m", max_tokens=100, messages=self.messages, tools=tools) as stream:
            return stream.get_final_message()

    def keep(self, response: Any) -> None:
        self.messages.append({"role": "assistant", "content": response.content})

    def said(self, response: Any) -> str:
        return str(response.content[0].text)

    def weather(self) -> Any:
        return {"name": "weather", "input_schema": WEATHER}


class Gemini(Host):
    format = "gemini"

    def __init__(self, server: StrictModelServer) -> None:
        from google import genai

        super().__init__(server)
        options = genai.types.HttpOptions(base_url=server.gemini_url)
        self.client = genai.Client(api_key="test", http_options=options)

    def say(self, text: str) -> None:
        self.messages.append({"role": "user", "parts": [{"text": text}]})

    def _request(self, tools: list[Any]) -> dict[str, Any]:
        mode = {"function_calling_config": {"mode": "VALIDATED"}}
        return {"model": "m", "contents": self.messages, "config": {"tools": tools, "tool_config": mode}}

    def ask(self, tools: list[Any]) -> Any:
        return self.client.models.generate_content(**self._request(tools))

    def stream(self, tools: list[Any]) -> Any:
        return list(self.client.models.generate_content_stream(**self._request(tools)))

    def keep(self, response: Any) -> None:
        if response.candidates[0].content.parts:  # the service refuses a content without any
            self.messages.append(response.candidates[0].content)

    def said(self, response: Any) -> str:
        return str(response.text)

    def weather(self) -> Any:
        return {"function_declarations": [{"name": "weather", "parameters": WEATHER}]}


HOSTS: tuple[type[Host], ...] = (Chat, Responses, Anthropic, Gemini)


@pytest.fixture(params=HOSTS, ids=[host.format for host in HOSTS])
def hosting(request: pytest.FixtureRequest) -> Iterator[Callable[..., Host]]:
    """Starts a server with a script, and gives a host that talks to it. Whatever the server refuses fails the test."""
    hosts: list[Any] = []

    def host(*script: Turn | Callable[[ModelRequest], Turn]) -> Host:
        server = StrictModelServer(list(script))
        server.__enter__()
        hosts.append(request.param(server))
        return hosts[-1]  # type: ignore[no-any-return]

    yield host
    for one in hosts:
        one.client.close()
        one.server.__exit__(None, None, None)
        assert one.server.problems == []
        assert one.server.remaining == 0


Hosting = Callable[..., Host]


@pytest.mark.everyday(4)
@pytest.mark.parametrize("strict", [False, True])
def test_a_model_searches_saves_and_answers(hosting: Hosting, suite: Suite, strict: bool) -> None:
    def corrected(asked: ModelRequest) -> Turn:
        (found,) = json.loads(asked.tool_results[0].text)
        assert "Ana" in found["text"]
        return Call("memory_update", {"note_id": found["note_id"], "content": "Is called Anna"})

    suite.memory.note("Is called Ana")
    host = hosting(
        Call("memory_search", {"query": "name", "top_k": None, "include_conversation": None}),
        corrected,
        [Say("One more."), Call("memory_save", {"content": "Spells her name with two n"})],
        Say("Noted, Anna."),
    )
    assert host.turn(suite, "I am Anna, with two n", strict=strict) == "Noted, Anna."
    assert {note.text for note in suite.memory.read(kind="note")} == {"Is called Anna", "Spells her name with two n"}
    assert [tool.strict for tool in host.server.requests[0].tools] == [strict and host.format != "gemini"] * 4


def test_calls_of_one_response_run_in_order(hosting: Hosting, suite: Suite) -> None:
    host = hosting(
        [
            Call("memory_save", {"content": "Plays the oboe"}),
            Call("memory_search", {"query": "oboe"}),
            Call("memory_search", {"query": "violin"}),
            Call("memory_save", {"content": "Plays the violin"}),
        ],
        Say("Done."),
    )
    host.turn(suite, "I play the oboe and the violin")
    saved, oboe, violin, last = (json.loads(result.text) for result in host.results)
    assert [saved["status"], last["status"]] == ["success", "success"]
    assert [hit["text"] for hit in oboe] == ["Plays the oboe"]
    assert "Plays the violin" not in [hit["text"] for hit in violin]
    assert [result.name for result in host.results] == ["memory_save", "memory_search", "memory_search", "memory_save"]


def test_a_malformed_call_is_corrected(hosting: Hosting, suite: Suite) -> None:
    seen: list[ModelRequest] = []

    def again(asked: ModelRequest) -> Turn:
        seen.append(asked)
        return Call("memory_save", CORRECT)

    host = hosting(_mistaken, again, Say("Done."))
    assert host.turn(suite, "I like tea") == "Done."
    assert [note.text for note in suite.memory.read(kind="note")] == ["Likes tea"]
    if host.format == "gemini":
        assert "malformed" in seen[0].text
    else:
        (told,) = seen[0].tool_results
        assert told.is_error == (host.format == "anthropic")  # the others have no place for it
        assert json.loads(told.text)["status"] == "error"
        assert "not valid JSON" in told.text or "content is missing" in told.text


def _mistaken(asked: ModelRequest) -> Turn:
    """The mistake as it appears with the provider that is asked."""
    hosts = dict(zip(("openai-chat", "openai-responses", "anthropic", "gemini"), HOSTS, strict=True))
    return hosts[asked.protocol].malformed


def test_T7_the_sixth_call_of_a_response_is_not_done(hosting: Hosting, suite: Suite) -> None:
    texts = ["Has a cat", "Plays chess", "Lives in Lviv", "Drinks tea", "Reads Borges", "Rides a bicycle"]
    six: list[Say | Call] = [Call("memory_save", {"content": text}) for text in texts]
    host = hosting(six, Call("memory_save", {"content": texts[-1]}), Say("Done."))
    host.turn(suite, "All about me")
    first = host.server.requests[1].tool_results
    assert [json.loads(result.text)["status"] for result in first] == ["success"] * 5 + ["error"]
    assert "5 memory calls" in first[-1].text
    # the next response has five again
    assert len(suite.memory.read(kind="note")) == 6


def test_a_refusal_is_told_and_is_not_an_error(hosting: Hosting, suite: Suite) -> None:
    suite.memory.pause()
    host = hosting(Call("memory_save", CORRECT), Say("Memory is paused."))
    host.turn(suite, "I like tea")
    (told,) = host.results
    assert "paused" in told.text
    assert not told.is_error
    assert suite.memory.read(kind="note") == []


def test_tools_of_the_host_beside_ours(hosting: Hosting, suite: Suite) -> None:
    both: list[Say | Call] = [
        Call("weather", {"city": "Lviv"}),
        Call("memory_save", {"content": "Lives in Lviv"}),
        Call("weather", {"city": "Kyiv"}),
    ]
    host = hosting(both, Call("weather", {"city": "Odesa"}), Say("Sunny."))
    tools = [host.weather(), *wire.declarations(suite, host.format)]
    host.say("The weather at home?")

    response = host.ask(tools)
    answered = wire.answer(suite, response, host.format)
    assert [call.name for call in answered.others] == ["weather", "weather"]
    assert [(call.name, result.outcome) for call, result in answered.ours] == [("memory_save", "written")]
    assert len(answered.messages) == 1
    lviv, kyiv = answered.others
    answered.add(kyiv, "rain")
    answered.add(lviv, "no such city", is_error=True)
    assert answered.others == []
    host.keep(response)
    host.messages += answered.messages

    response = host.ask(tools)
    # in the order of the calls, whatever order the results came in
    assert [result.text for result in host.results][::2] == ["no such city", "rain"]
    answered = wire.answer(suite, response, host.format)
    assert answered.messages == []
    answered.add(answered.others[0], "sun")
    host.keep(response)
    host.messages += answered.messages
    assert host.said(host.ask(tools)) == "Sunny."


@pytest.mark.everyday(1)
def test_two_users_at_once_do_not_mix(hosting: Hosting, app: recollect.Recollect) -> None:
    script = [Call("memory_save", {"content": "Likes {}"}), Call("memory_search", {"query": "likes"}), Say("Done.")]
    suites = {"tea": app.tools("u1", "notes"), "coffee": app.tools("u2", "notes")}

    def played(turn: Any, drink: str) -> Any:
        return Call(turn.name, {"content": f"Likes {drink}"}) if getattr(turn, "name", "") == "memory_save" else turn

    hosts = {drink: hosting(*(played(turn, drink) for turn in script)) for drink in suites}
    for drink, host in hosts.items():
        host.say(f"I like {drink}")
    for _ in range(2):  # turn by turn, one after the other
        for drink, host in hosts.items():
            response = host.ask(wire.declarations(suites[drink], host.format))
            host.keep(response)
            host.messages += wire.answer(suites[drink], response, host.format).messages
    for drink, host in hosts.items():
        host.ask(wire.declarations(suites[drink], host.format))
        assert [hit["text"] for hit in json.loads(host.results[0].text)] == [f"Likes {drink}"]
        assert [note.text for note in suites[drink].memory.read(kind="note")] == [f"Likes {drink}"]


def test_a_stream_is_read_like_an_answer(hosting: Hosting, suite: Suite) -> None:
    made: list[Say | Call] = [Say("Wait."), Call("memory_save", CORRECT), Call("memory_search", {"query": "tea"})]
    host = hosting(made, made)
    host.say("I like tea")
    tools = wire.declarations(suite, host.format)
    streamed, whole = (wire.calls(response, host.format) for response in (host.stream(tools), host.ask(tools)))
    assert [call.name for call in streamed] == ["memory_save", "memory_search"]
    assert [(call.name, call.arguments) for call in streamed] == [(call.name, call.arguments) for call in whole]


def test_all_tools_are_accepted(hosting: Hosting, app: recollect.Recollect) -> None:
    offers: list[Suite | list[Tool]] = [tools_of(), app.tools("u1"), app.tools("7", others=["8"])]
    host = hosting(*[Say("Hello.")] * 2 * len(offers))
    host.say("Hello")
    for offered in offers:
        for strict in (False, True):
            host.ask(wire.declarations(offered, host.format, strict=strict))
            asked = host.server.requests[-1]
            assert [tool.name for tool in asked.tools] == [tool.name for tool in tools_of()]
            known = {"memory"} if host.format == "anthropic" else set()  # the provider describes that itself
            assert {tool.name for tool in asked.tools if not tool.description} == known
            if strict and host.format in ("openai", "responses"):
                assert all(tool.strict for tool in asked.tools)
            if not strict and host.format != "gemini":  # its library writes types in capitals
                schemas = {tool.name: tool.schema for tool in asked.tools if tool.name not in known}
                assert schemas == {tool.name: _schema(offered, tool) for tool in tools_of() if tool.name not in known}


def _schema(offered: Suite | list[Tool], tool: Tool) -> Any:
    return offered.schema(tool.name) if isinstance(offered, Suite) else tool.schema()


def test_anthropic_takes_each_suite_strictly() -> None:
    with StrictModelServer([Say("Hello.")] * len(SUITES)) as server:
        host = Anthropic(server)
        host.say("Hello")
        for tools in SUITES.values():
            host.ask(wire.declarations(tools, "anthropic", strict=True))
            assert all(tool.strict for tool in server.requests[-1].tools if tool.name != "memory")
        host.client.close()
    assert server.problems == []


# the libraries call functions by themselves


def test_gemini_calls_the_functions(suite: Suite) -> None:
    from google import genai

    script: list[Turn] = [
        Call("memory_save", {"content": "Plays the oboe"}),
        [Call("memory_search", {"query": "oboe", "top_k": 3.0}), Call("memory_save", {})],
        Say("You play the oboe."),
    ]
    with StrictModelServer(script) as server:
        options = genai.types.HttpOptions(base_url=server.gemini_url)
        with genai.Client(api_key="test", http_options=options) as client:
            tools: list[Any] = list(suite.functions().values())
            chat = client.chats.create(model="m", config={"tools": tools})
            assert chat.send_message("I play the oboe").text == "You play the oboe."
    assert server.problems == []
    found, missing = server.requests[-1].tool_results
    assert json.loads(found.text)[0]["text"] == "Plays the oboe"
    assert "content is missing" in missing.text


def test_gemini_takes_all_functions(app: recollect.Recollect) -> None:
    from google import genai

    with StrictModelServer([Say("Hello.")]) as server:
        options = genai.types.HttpOptions(base_url=server.gemini_url)
        with genai.Client(api_key="test", http_options=options) as client:
            tools: list[Any] = list(app.tools("7").functions().values())
            client.models.generate_content(model="m", contents="Hello", config={"tools": tools})
    assert server.problems == []
    declared = {tool.name: tool for tool in server.requests[0].tools}
    assert list(declared) == [tool.name for tool in tools_of()]
    for tool in tools_of():
        assert declared[tool.name].schema["properties"].keys() == tool.schema()["properties"].keys()


def test_anthropic_runs_the_functions(suite: Suite) -> None:
    import anthropic

    script: list[Turn] = [
        Call("memory_save", {"content": "Plays the oboe"}),
        [Call("memory_search", {"query": "oboe"}), Call("memory_search", {"query": "oboe", "top_k": 99})],
        Say("You play the oboe."),
    ]
    with StrictModelServer(script) as server, anthropic.Anthropic(base_url=server.url, api_key="test") as client:
        tools = [
            anthropic.beta_tool(function, input_schema=suite.schema(name))
            for name, function in suite.functions().items()
        ]
        messages: list[Any] = [{"role": "user", "content": "I play the oboe"}]
        # without a thread the library sends the whole conversation each time, which is what this server knows
        runner = client.beta.messages.tool_runner(
            model="m", max_tokens=100, messages=messages, tools=tools, thread=False
        )
        last: Any = runner.until_done()
        assert last.content[0].text == "You play the oboe."
    assert server.problems == []
    assert [json.loads(result.text)[0]["text"] for result in server.requests[-1].tool_results] == ["Plays the oboe"] * 2


# declarations


def test_declarations_have_the_form_of_the_provider(suite: Suite) -> None:
    schema, said = suite.schema("memory_save"), suite.tools["memory_save"].description
    described = {"name": "memory_save", "description": said}
    assert wire.declarations(suite, "openai")[1] == {"type": "function", "function": described | {"parameters": schema}}
    assert wire.declarations(suite, "responses")[1] == {
        "type": "function", "strict": False, **described, "parameters": schema}  # fmt: skip
    assert wire.declarations(suite, "anthropic")[1] == {**described, "input_schema": schema}
    (gemini,) = wire.declarations(suite, "gemini")
    assert gemini["function_declarations"][1] == described | {"parameters": schema}
    assert wire.declarations(suite, "mcp")[3] == {
        "name": "memory_delete",
        "title": "Memory delete",
        "description": suite.tools["memory_delete"].description,
        "inputSchema": suite.schema("memory_delete"),
        "annotations": {
            "readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False},
    }  # fmt: skip


def test_a_fixed_user_is_not_declared(app: recollect.Recollect) -> None:
    for fixed in (True, False):
        declared = wire.declarations(app.tools("7", "facts", fixed_user=fixed), "anthropic")
        shown = [tool["name"] for tool in declared if "user_id" in tool["input_schema"]["properties"]]
        assert bool(shown) is not fixed
    assert "user_id" in wire.declarations(SUITES["facts"], "anthropic")[0]["input_schema"]["properties"]


@pytest.mark.parametrize("tool", tools_of(), ids=lambda tool: tool.name)
@pytest.mark.parametrize("strict", [False, True])
def test_schemas_are_schemas_and_say_the_same(tool: Tool, strict: bool) -> None:
    plain = tool.schema()
    required, every = set(plain["required"]), set(plain["properties"])
    for format in FORMATS:
        if format == "anthropic" and tool.name == "memory":
            continue  # the provider declares it itself
        (declared,) = wire.declarations([tool], format, strict=strict)
        schema = _schema_in(declared)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert list(schema["properties"]) == list(plain["properties"])
        if not strict:
            assert schema == plain
            continue
        fits = jsonschema.Draft202012Validator(schema)
        some = {name: _example(plain["properties"][name]) for name in required}
        if format in ("openai", "responses"):
            assert set(schema["required"]) == every
            given = some | dict.fromkeys(every - required)  # null stands for not given
        else:
            assert schema["required"] == plain["required"]
            given = some
        fits.validate(given)
        fits.validate(given | {name: _example(plain["properties"][name]) for name in every})
        assert read_arguments(tool.parameters, given) == read_arguments(tool.parameters, some)
        if format != "gemini":
            assert not fits.is_valid(given | {"more": 1})
        for name in required:
            assert not fits.is_valid(given | {name: None})


def _schema_in(declared: dict[str, Any]) -> dict[str, Any]:
    if "function_declarations" in declared:
        declared = declared["function_declarations"][0]
    found = declared.get("input_schema") or declared.get("function", declared)["parameters"]
    assert isinstance(found, dict)
    return found


def _example(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "array":
        return [_example(schema["items"])] * schema.get("minItems", 1)
    low = schema.get("minimum", 1)
    return {"string": "a", "integer": int(low), "number": float(low), "boolean": True}[schema["type"]]


def test_what_strict_schemas_cannot_say_is_in_their_descriptions() -> None:
    tools = tools_of()
    number = {tool.name: place for place, tool in enumerate(tools)}

    def property_of(format: wire.Format, tool: str, name: str) -> Any:
        (declared,) = wire.declarations([tools[number[tool]]], format, strict=True)
        return _schema_in(declared)["properties"][name]

    assert property_of("openai", "memory_search", "top_k") == {
        "type": ["integer", "null"], "maximum": 20, "description": "Max results to return (default: 5, max: 20)"}  # fmt: skip
    assert property_of("anthropic", "memory_search", "top_k") == {
        "type": "integer", "description": "Max results to return (default: 5, max: 20)"}  # fmt: skip
    assert property_of("anthropic", "update_fact", "confidence") == {
        "type": "number", "description": "(at least 0.5, at most 1)"}  # fmt: skip
    assert property_of("anthropic", "merge_facts", "fact_ids") == {
        "type": "array",
        "items": {"type": "integer"},
        "description": "IDs of facts to merge (from recall_facts) (at least 2 items, at most 5 items)",
    }
    category = property_of("openai", "search_memory", "category")
    assert category["type"] == ["string", "null"]
    assert category["enum"][-1] is None
    assert "all" in category["description"]


def test_anthropic_strictness_ends_at_the_limits_of_the_service() -> None:
    declared = wire.declarations(tools_of(), "anthropic", strict=True)
    strict = [tool for tool in declared if tool.get("strict")]
    optional = sum(len(tool["input_schema"]["properties"]) - len(tool["input_schema"]["required"]) for tool in strict)
    assert len(strict) == 20
    assert optional <= 24
    plain = [tool for tool in declared if "strict" not in tool]
    assert plain == [tool for tool in wire.declarations(tools_of(), "anthropic") if tool in plain]


def test_a_format_that_is_not_known_is_told(suite: Suite) -> None:
    unknown: Any = "cohere"
    with pytest.raises(InvalidInputError, match="openai, responses, anthropic, gemini, mcp"):
        wire.declarations(suite, unknown)
    with pytest.raises(InvalidInputError, match="format"):
        wire.calls({}, unknown)
    with pytest.raises(InvalidInputError, match="format"):
        wire.answer(suite, {}, unknown)


# plain data, in all shapes that have been seen


def _function(name: str = "memory_save", arguments: Any = '{"content": "Likes tea"}', **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


SAVE = ("c1", "memory_save")

SHAPES: dict[str, tuple[wire.Format, Any, list[tuple[str, str]]]] = {
    "a whole completion": ("openai", {"choices": [{"message": {"tool_calls": [_function(id="c1")]}}]}, [SAVE]),
    "a choice": ("openai", {"message": {"content": None, "tool_calls": [_function(id="c1")]}}, [SAVE]),
    "a message": ("openai", {"role": "assistant", "content": None, "tool_calls": [_function(id="c1")]}, [SAVE]),
    "calls by their index": ("openai", {"tool_calls": {0: _function(id="c1"), 1: _function(id="c2")}}, [
        SAVE, ("c2", "memory_save")]),
    "no id": ("openai", {"tool_calls": [_function(id=""), _function()]}, [("", "memory_save")] * 2),
    "no calls": ("openai", {"role": "assistant", "content": "Hello", "tool_calls": None}, []),
    "no choices": ("openai", {"choices": []}, []),
    "nothing": ("openai", None, []),
    "no function": ("openai", {"tool_calls": [{"id": "c1"}]}, [("c1", "")]),
    "legacy": ("openai", {"choices": [{"message": {"function_call": {"name": "memory_save", "arguments": "{}"}}}]}, [
        ("", "memory_save")]),
    "both": ("openai", {"tool_calls": [_function(id="c1")], "function_call": {"name": "memory_save"}}, [SAVE]),
    "custom": ("openai", {"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]}, [
        ("c1", "sh")]),
    "objects": ("openai", SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(tool_calls=[
        SimpleNamespace(id="c1", function=SimpleNamespace(name="memory_save", arguments="{}"))]))]), [SAVE]),
    "a response": ("responses", {"output": [
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "message", "content": []},
        {"type": "web_search_call", "id": "w1"},
        {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "memory_save", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"}]}, [SAVE, ("c2", "sh")]),
    "output items": ("responses", [{"type": "function_call", "call_id": "c1", "name": "memory_save"}], [SAVE]),
    "no call id": ("responses", [{"type": "function_call", "id": "c1", "name": "memory_save"}], [SAVE]),
    "no output": ("responses", {"output": None}, []),
    "an anthropic message": ("anthropic", {"content": [
        {"type": "thinking", "thinking": "…"},
        {"type": "text", "text": "Wait."},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "tool_use", "id": "c1", "name": "memory_save", "input": {}}]}, [SAVE]),
    "blocks": ("anthropic", [{"type": "tool_use", "id": "c1", "name": "memory_save", "input": None}], [SAVE]),
    "only text": ("anthropic", {"content": "Hello"}, []),
    "a gemini response": ("gemini", {"candidates": [{"content": {"role": "model", "parts": [
        {"text": "Wait."}, {"functionCall": {"id": "c1", "name": "memory_save", "args": {}}}]}}]}, [SAVE]),
    "snake case": ("gemini", {"candidates": [{"content": {"parts": [
        {"function_call": {"name": "memory_save", "args": {}}}]}}]}, [("", "memory_save")]),
    "a content": ("gemini", {"role": "model", "parts": [{"functionCall": {"name": "memory_save"}}]}, [
        ("", "memory_save")]),
    "parts": ("gemini", [{"functionCall": {"name": "memory_save"}}], [("", "memory_save")]),
    "chunks": ("gemini", [
        {"candidates": [{"content": {"parts": [{"functionCall": {"id": "c1", "name": "memory_save"}}]}}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
        {"usageMetadata": {}}], [SAVE]),
    "no parts": ("gemini", {"candidates": [{"content": {"role": "model"}}]}, []),
    "blocked": ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}, "candidates": None}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_responses(name: str) -> None:
    format, response, expected = SHAPES[name]
    assert [(call.id, call.name) for call in wire.calls(response, format)] == expected


def _response(format: wire.Format, *made: tuple[str, Any]) -> dict[str, Any]:
    """A response with these calls, as plain data."""
    named = [(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(made)]
    if format == "openai":
        return {"tool_calls": [_function(name, arguments, id=id) for id, name, arguments in named]}
    if format == "responses":
        items = [{"call_id": id, "name": name, "arguments": arguments} for id, name, arguments in named]
        return {"output": [{"type": "function_call"} | item for item in items]}
    if format == "anthropic":
        blocks = [{"id": id, "name": name, "input": arguments} for id, name, arguments in named]
        return {"content": [{"type": "tool_use"} | block for block in blocks]}
    parts = [{"functionCall": {"id": id, "name": name, "args": arguments}} for id, name, arguments in named]
    return {"candidates": [{"content": {"parts": parts}}]}


def test_results_have_the_form_of_the_provider(suite: Suite) -> None:
    made: list[tuple[str, Any]] = [("memory_save", {"content": "Likes tea"}), ("memory_save", {})]
    told = {format: wire.answer(suite, _response(format, *made), format) for format in FORMATS}
    texts = {format: [result.text for _, result in answered.ours] for format, answered in told.items()}
    good, bad = texts["openai"]
    assert told["openai"].messages == [
        {"role": "tool", "tool_call_id": "c0", "content": good},
        {"role": "tool", "tool_call_id": "c1", "content": bad},
    ]
    good, bad = texts["responses"]
    assert told["responses"].messages == [
        {"type": "function_call_output", "call_id": "c0", "output": good},
        {"type": "function_call_output", "call_id": "c1", "output": bad},
    ]
    good, bad = texts["anthropic"]
    assert told["anthropic"].messages == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c0", "content": good, "is_error": False},
                {"type": "tool_result", "tool_use_id": "c1", "content": bad, "is_error": True},
            ],
        }
    ]
    good, bad = texts["gemini"]
    assert told["gemini"].messages == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "c0", "name": "memory_save", "response": {"output": good}}},
                {"functionResponse": {"id": "c1", "name": "memory_save", "response": {"error": bad}}},
            ],
        }
    ]
    assert repr(told["gemini"]) == "<Answered 2 of 2 calls>"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ('{"content": "Likes tea"}', "success"),
        ({"content": "Likes tea"}, "success"),
        ('"{\\"content\\": \\"Likes tea\\"}"', "success"),
        ('{"content": "Likes te', "error"),
        ("", "error"),
        (None, "error"),
        ([], "error"),
        (7, "error"),
        ({"content": None}, "error"),
    ],
)
def test_arguments_in_all_shapes(suite: Suite, format: wire.Format, arguments: Any, status: str) -> None:
    answered = wire.answer(suite, _response(format, ("memory_save", arguments)), format)
    ((call, result),) = answered.ours
    assert call.arguments == arguments
    assert result.content["status"] == status
    assert len(answered.messages) == 1


def test_missing_ids_stay_missing(suite: Suite) -> None:
    nameless = {"tool_calls": [_function(arguments=f'{{"content": "Likes {drink}"}}', id=None) for drink in "ab"]}
    assert [message["tool_call_id"] for message in wire.answer(suite, nameless, "openai").messages] == ["", ""]
    parts = [{"functionCall": {"name": "memory_save", "args": {"content": "Likes tea"}}}]
    (content,) = wire.answer(suite, parts, "gemini").messages
    assert "id" not in content["parts"][0]["functionResponse"]


def test_a_legacy_call_gets_a_legacy_answer(suite: Suite) -> None:
    message = {"role": "assistant", "content": None, "function_call": {"name": "memory_search", "arguments": '{"query": "x"}'}}  # fmt: skip
    assert wire.answer(suite, message, "openai").messages == [
        {"role": "function", "name": "memory_search", "content": "[]"}
    ]


def test_custom_calls_are_the_hosts(suite: Suite) -> None:
    item = {"type": "custom_tool_call", "call_id": "c1", "name": "memory_save", "input": "x"}
    for host_tools in (None, ()):
        answered = wire.answer(suite, [item], "responses", host_tools=host_tools)
        answered.add(answered.others[0], "done")
        assert answered.messages == [{"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}]


def test_calls_that_repeat_an_id_are_logged_each(app: recollect.Recollect, suite: Suite) -> None:
    suite.memory.note("Likes tea")
    for _ in range(3):
        wire.answer(suite, _response("openai", ("memory_search", '{"query": "tea"}')), "openai")
    app.close()
    with suite.memory._user_memory.user.read() as reader:
        assert len(list(reader.calls())) == 3


@pytest.mark.parametrize("name", ["functions.memory_save", "default_api:memory_save", "memorySave", "Memory-Save"])
def test_names_that_models_garble_are_ours(suite: Suite, name: str) -> None:
    answered = wire.answer(suite, _response("gemini", (name, CORRECT)), "gemini")
    assert answered.ours[0][1].status == "ok"
    assert answered.messages[0]["parts"][0]["functionResponse"]["name"] == name


@pytest.mark.parametrize(
    "name", ["weather", "github.memory_save", "mcp__other__memory_save", "memory", "", "functions."]
)
def test_names_that_are_not_ours(suite: Suite, name: str) -> None:
    response = _response("anthropic", (name, CORRECT))
    answered = wire.answer(suite, response, "anthropic")
    assert [call.name for call in answered.others] == [name]
    assert answered.messages == []
    # a host that has no such tool has it answered
    answered = wire.answer(suite, response, "anthropic", host_tools=["weather"])
    assert bool(answered.others) is (name == "weather")


def test_a_tool_that_nobody_has_is_told(suite: Suite) -> None:
    response = _response("openai", ("memory_forget_all", "{}"), ("weather", "{}"), ("memory_search", '{"query": "x"}'))
    answered = wire.answer(suite, response, "openai", host_tools=["weather"])
    assert [call.name for call in answered.others] == ["weather"]
    assert "there is no tool 'memory_forget_all'; the tools are memory_search" in answered.messages[0]["content"]


def test_a_result_is_added_once_and_to_its_response(suite: Suite) -> None:
    answered = wire.answer(suite, _response("openai", ("weather", "{}")), "openai")
    (call,) = answered.others
    with pytest.raises(InvalidInputError, match="call"):
        answered.add(wire.Call("c0", "weather", "{}"), "sun")
    answered.add(call, "sun")
    with pytest.raises(InvalidInputError, match="call"):
        answered.add(call, "rain")
    assert answered.messages == [{"role": "tool", "tool_call_id": "c0", "content": "sun"}]


def test_a_response_that_was_begun_goes_on_counting(suite: Suite) -> None:
    bounded = suite.response(2)
    made = [("memory_search", {"query": "x"})]
    statuses = [
        wire.answer(bounded, _response("gemini", *made), "gemini").ours[0][1].status for _ in range(3)
    ]  # fmt: skip
    assert statuses == ["ok", "ok", "limited"]
    assert wire.answer(suite, _response("gemini", *made * 6), "gemini").ours[-1][1].status == "limited"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_a_call_that_was_cut_off_is_not_done(suite: Suite, reason: str) -> None:
    response = _response("anthropic", ("memory_save", CORRECT), ("memory_save", {"content": "Moved to Lviv, and th"}))
    answered = wire.answer(suite, response | {"stop_reason": reason}, "anthropic")
    first, last = answered.messages[0]["content"]
    assert not first["is_error"]
    assert last["is_error"] and "cut off" in last["content"]
    assert [note.text for note in suite.memory.read(kind="note")] == ["Likes tea"]


def test_gemini_is_asked_again_after_a_call_it_could_not_write(suite: Suite) -> None:
    malformed: Any = {"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]}
    for response in (malformed, [{"usageMetadata": {}}, malformed]):
        (message,) = wire.answer(suite, response, "gemini").messages
        assert message["role"] == "user"
        assert "malformed" in message["parts"][0]["text"]
    for other in ({"candidates": [{"content": {}, "finishReason": "SAFETY"}]}, {}, None):
        assert wire.answer(suite, other, "gemini").messages == []


@pytest.mark.parametrize("format", FORMATS)
def test_it_can_be_awaited(suite: Suite, format: wire.Format) -> None:
    made: list[tuple[str, Any]] = [("memory_search", {"query": "x"})] * 6 + [("weather", {})]
    answered = asyncio.run(wire.aanswer(suite, _response(format, *made), format))
    assert [result.status for _, result in answered.ours] == ["ok"] * 5 + ["limited"]
    assert [call.name for call in answered.others] == ["weather"]
    assert answered.messages == wire.answer(suite, _response(format, *made), format).messages


def test_no_library_of_a_provider_is_loaded() -> None:
    import subprocess
    import sys

    check = "import sys, recollect.tools.wire; print({'openai', 'anthropic', 'google.genai', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# Anthropic's own memory tool


def test_T8_anthropic_knows_the_memory_tool_itself(app: recollect.Recollect) -> None:
    suite = app.tools("u1", "files")
    assert wire.declarations(suite, "anthropic", strict=True) == [{"type": "memory_20250818", "name": "memory"}]
    path = "/memories/MEMORY.md"
    script: list[Turn] = [
        Call("memory", {"command": "view", "path": "/memories"}),
        Call("memory", {"command": "insert", "path": path, "insert_line": 3, "insert_text": "- Tone: short answers"}),
        Call("memory", {"command": "view", "path": "/memories/../../etc/passwd"}),
        Say("Noted."),
    ]
    with StrictModelServer(script) as server:
        host = Anthropic(server)
        assert host.turn(suite, "Answer me shortly") == "Noted."
        results = [result for asked in server.requests[1:] for result in asked.tool_results]
        host.client.close()
    assert [result.is_error for result in results] == [False, False, True]
    assert "/memories/MEMORY.md" in results[0].text
    assert results[1].text == f"The file {path} has been edited."
    assert app.user("u1").get("tone").content == "short answers"
    assert wire.declarations(suite, "openai")[0]["function"]["parameters"]["required"] == ["command"]
