"""What models give for arguments: what is certain is taken, anything else is answered with one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect.testing import MemoryStore
from recollect.tools.parameters import Arg, ArgumentsError, Parameter, parameters_of, read_arguments, schema_of
from recollect.tools.suite import Result, Suite
from recollect.tools.tool import Scope, ToolAnswer, tool
from tests.volume import volume

seen: list[dict[str, Any]] = []


@tool("probe", does="remember", timeout=30)
def probe(
    scope: Scope,
    query: Annotated[str, Arg(says="A text")],
    top_k: Annotated[int, Arg(at_least=1, at_most=20)] = 5,
    share: Annotated[float, Arg(low=0, high=1)] = 1.0,
    exact_lines: Annotated[int | None, Arg(low=1, high=9)] = None,
    deep: bool = False,
    category: Literal["work_context", "preference"] | None = None,
    tags: list[str] | None = None,
    ids: Annotated[list[int] | None, Arg(items_low=2, items_high=3)] = None,
    record: Annotated[int | None, Arg(reference=True)] = None,
    source: Annotated[str | None, Arg(aside=True)] = None,
    text: str | None = None,
) -> ToolAnswer:
    """Notes down what it was given."""
    seen.append({name: value for name, value in locals().items() if name != "scope"})
    scope.memory.note("It was called")
    return ToolAnswer("done")


@tool("probe", does="other", timeout=30)
def optional(scope: Scope, offset: int = 0) -> ToolAnswer:
    """Needs nothing."""
    seen.append({"offset": offset})
    return ToolAnswer("done")


@pytest.fixture
def suite() -> Iterator[Suite]:
    seen.clear()
    with recollect.open(MemoryStore()) as app:
        yield Suite(app.user("u1"), [probe, optional])


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


class Opaque:
    """No data at all, and it does not even like to be looked at."""

    def __repr__(self) -> str:
        raise ValueError("do not look")


class Hostile(Mapping[str, Any]):
    """A mapping in name only."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("secret words")

    def __iter__(self) -> Iterator[str]:
        raise RecursionError("secret words")

    def __len__(self) -> int:
        raise MemoryError("secret words")


class HalfHostile(dict[str, Any]):
    """Has keys, but their values cannot be had."""

    def __getitem__(self, key: str) -> Any:
        raise OSError("secret words")


ID = "fact-01jcs0m3y7q8r9t0v1w2x3y4z5"
Q = {"query": "tea"}

TAKEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "as declared": (Q | {"top_k": 3, "share": 0.5, "deep": True, "tags": ["a"]},
        {"query": "tea", "top_k": 3, "share": 0.5, "deep": True, "tags": ["a"]}),
    "a number as text": (Q | {"top_k": "3", "share": " 0.25 "}, {"top_k": 3, "share": 0.25}),
    "a number with a sign, with an exponent": (Q | {"top_k": "+7", "share": "5e-1"}, {"top_k": 7, "share": 0.5}),
    "a float for an integer": (Q | {"top_k": 3.0}, {"top_k": 3}),
    "a float as text for an integer": (Q | {"top_k": "3.0"}, {"top_k": 3}),
    "an integer for a number": (Q | {"share": 1}, {"share": 1.0}),
    "a number for a text": ({"query": 2024}, {"query": "2024"}),
    "more than there is": (Q | {"top_k": 1000}, {"top_k": 20}),
    "a list as JSON": (Q | {"tags": '["a", "b"]', "ids": "[1, 2]"}, {"tags": ["a", "b"], "ids": [1, 2]}),
    "a list with numbers as text": (Q | {"ids": ["1", 2.0]}, {"ids": [1, 2]}),
    "one text for a list": (Q | {"tags": "birthday party"}, {"tags": ["birthday party"]}),
    "an empty text for a list": (Q | {"tags": ""}, {"tags": None}),
    "a tuple": (Q | {"tags": ("a", "b")}, {"tags": ["a", "b"]}),
    "null for what is optional": (Q | {"top_k": None, "tags": None, "category": None, "text": None},
        {"top_k": 5, "tags": None, "category": None, "text": None}),
    "null as text": (Q | {"top_k": "null", "share": "None", "deep": "undefined", "category": "null", "source": "NULL"},
        {"top_k": 5, "share": 1.0, "deep": False, "category": None, "source": None}),
    "null as the text that was meant": (Q | {"text": "null"}, {"text": "null"}),
    "null as a query": ({"query": "null"}, {"query": "null"}),
    "nothing as an empty text": (Q | {"top_k": "", "deep": " ", "category": "", "source": "", "text": ""},
        {"top_k": 5, "deep": False, "category": None, "source": None, "text": None}),
    "spaces are a text": (Q | {"text": "  "}, {"text": "  "}),
    "keys joined otherwise": ({"Query": "tea", "topK": 2, "exact-lines": 3, "TAGS": ["a"]},
        {"query": "tea", "top_k": 2, "exact_lines": 3, "tags": ["a"]}),
    "a key in two spellings that say the same": (Q | {"Query": "tea"}, {"query": "tea"}),
    "a key in two spellings, one of them null": (Q | {"topK": None, "top_k": 2}, {"top_k": 2}),
    "an enum in another case and with a space": (Q | {"category": " Work Context "}, {"category": "work_context"}),
    "true and false as text": (Q | {"deep": "True"}, {"deep": True}),
    "yes and no": (Q | {"deep": "no"}, {"deep": False}),
    "an id for a number": (Q | {"record": ID}, {"record": ID}),
    "a number for an id": (Q | {"record": "12"}, {"record": 12}),
    "JSON": ('{"query": "tea", "top_k": 2}', {"query": "tea", "top_k": 2}),
    "JSON within JSON": (json.dumps(json.dumps(Q)), {"query": "tea"}),
    "bytes": (b'{"query": "caf\xc3\xa9"}', {"query": "café"}),
    "bytes with a mark": (b'\xef\xbb\xbf{"query": "tea"}', {"query": "tea"}),
    "a key twice in JSON, saying the same": ('{"query": "tea", "query": "tea"}', {"query": "tea"}),
    "wrapped": ({"arguments": Q}, {"query": "tea"}),
    "wrapped as JSON": ({"arguments": json.dumps(Q | {"top_k": 2})}, {"query": "tea", "top_k": 2}),
    "wrapped with a name": ({"name": "probe", "parameters": Q}, {"query": "tea"}),
    "another mapping": (MappingProxyType(Q), {"query": "tea"}),
    "control characters": ({"query": "tea\x07\x1b[31m\u202e"}, {"query": "tea\x07\x1b[31m\u202e"}),
    "much": ({"query": "x" * 1_000_000}, {"query": "x" * 1_000_000}),
    "the smallest and the greatest": (Q | {"share": 0, "exact_lines": 9}, {"share": 0.0, "exact_lines": 9}),
}  # fmt: skip

REFUSED: dict[str, tuple[Any, tuple[str, ...]]] = {
    "nothing": (None, ("query is missing", "text")),
    "an empty text": ("", ("query is missing",)),
    "null for what is required": ({"query": None}, ("query is missing",)),
    "half a number": (Q | {"top_k": 5.7}, ("top_k is 5.7", "whole number")),
    "half a number as text": (Q | {"top_k": "5.7"}, ('top_k is "5.7"', "whole number")),
    "a number in words": (Q | {"top_k": "five"}, ("top_k", "whole number")),
    "a number with a comma": (Q | {"share": "0,5"}, ("share", "a number")),
    "a share in percent": (Q | {"share": "90%"}, ("share", "a number")),
    "a number with a unit": (Q | {"top_k": "5 results"}, ("top_k", "whole number")),
    "an underscore": (Q | {"top_k": "1_0"}, ("top_k", "whole number")),
    "digits of another script": (Q | {"top_k": "٣"}, ("top_k", "whole number")),
    "superscript": (Q | {"top_k": "²"}, ("top_k", "whole number")),
    "a boolean for a number": (Q | {"top_k": True}, ("top_k is true", "whole number")),
    "not a number": (Q | {"share": float("nan")}, ("share", "a number")),
    "infinity": (Q | {"share": float("inf")}, ("share", "a number")),
    "infinity in JSON": ('{"query": "tea", "top_k": -Infinity}', ("top_k", "whole number")),
    "not a number for a text": ({"query": float("nan")}, ("query", "text")),
    "infinity as 1e999": ('{"query": 1e999}', ("query", "text")),
    "huge": (Q | {"top_k": 10**30}, ("top_k", "whole number")),
    "more digits than Python prints": (Q | {"top_k": 10**5000}, ("top_k", "whole number")),
    "more digits than Python prints, for a text": ({"query": 10**5000}, ("query", "text")),
    "more digits than Python reads": ('{"query": ' + "9" * 5000 + "}", ("JSON",)),
    "too small": (Q | {"top_k": 0}, ("top_k is 0", "at least 1")),
    "too great": (Q | {"share": 1.5}, ("share is 1.5", "from 0 to 1")),
    "beyond": (Q | {"exact_lines": 10}, ("exact_lines is 10", "from 1 to 9")),
    "one for true": (Q | {"deep": 1}, ("deep is 1", "true or false")),
    "one as text for true": (Q | {"deep": "1"}, ("deep", "true or false")),
    "perhaps": (Q | {"deep": "maybe"}, ("deep", "true or false")),
    "a list for true": (Q | {"deep": [True]}, ("deep", "true or false")),
    "another word": (Q | {"category": "hobby"}, ('category is "hobby"', "work_context, preference")),
    "a number for a word": (Q | {"category": 1}, ("category", "work_context, preference")),
    "a list for a text": ({"query": ["tea", "milk"]}, ("query", "text")),
    "an object for a text": ({"query": {"text": "tea"}}, ("query", "text")),
    "a boolean for a text": ({"query": True}, ("query is true", "text")),
    "texts with commas for a list": (Q | {"tags": "a, b"}, ("tags", "list of texts")),
    "lines for a list": (Q | {"tags": "a\nb"}, ("tags", "list of texts")),
    "half a list": (Q | {"tags": '["a", "b"'}, ("tags", "list of texts")),
    "an object for a list": (Q | {"tags": {"a": 1}}, ("tags", "list of texts")),
    "a list with a hole": (Q | {"tags": ["a", None]}, ("tags[1]", "text")),
    "a list within a list": (Q | {"tags": [["a"]]}, ("tags[0]", "text")),
    "too few": (Q | {"ids": [1]}, ("ids has 1 items", "from 2 to 3")),
    "too many": (Q | {"ids": [1, 2, 3, 4]}, ("ids has 4 items", "from 2 to 3")),
    "one number for a list": (Q | {"ids": 1}, ("ids", "list of whole numbers")),
    "half a number in a list": (Q | {"ids": [1, 2.5]}, ("ids[1]", "whole number")),
    "neither id nor number": (Q | {"record": "fact-12"}, ("record", "whole number")),
    "a misspelled key": (Q | {"top_kk": 2}, ("top_kk", "did you mean top_k?")),
    "another misspelled key": (Q | {"catgory": "preference"}, ("catgory", "did you mean category?")),
    "a misspelled key of what is required": ({"qery": "tea"}, ("query is missing", "qery")),
    "a key in two spellings": (Q | {"Query": "milk"}, ("query is given twice", "once")),
    "a key twice in JSON": ('{"query": "tea", "query": "milk"}', ('"query" is given twice', "once")),
    "no JSON": ("query=tea", ("not valid JSON",)),
    "half of JSON": ('{"query": "te', ("not valid JSON",)),
    "JSON with a line break in a text": ('{"query": "a\nb"}', ("not valid JSON",)),
    "a list": ([Q], ("not a JSON object", '"query"')),
    "a number": (5, ("not a JSON object", '"query"')),
    "JSON within JSON within JSON": (json.dumps(json.dumps(json.dumps(Q))), ("not a JSON object",)),
    "bytes that are no text": (b'{"query": "caf\xe9"}', ("UTF-8",)),
    "half a character": ({"query": "tea \ud83d"}, ("query", "half a character", "position 4")),
    "half a character in a list": (Q | {"tags": ["\udc00"]}, ("tags[0]", "half a character")),
    "half a character in JSON": ('{"query": "\\ud83d"}', ("query", "half a character")),
    "a null character": ({"query": "tea\0"}, ("query", "null character")),
    "much that is wrong": (Q | {"top_k": "9" * 1_000_000}, ("top_k", "whole number")),
    "deep": ({"query": nested(100_000)}, ("query", "text")),
    "deep JSON": ('{"query": ' + "[" * 100_000 + "]" * 100_000 + "}", ("not valid JSON",)),
    "a deep list as JSON": (Q | {"tags": "[" * 100_000}, ("tags", "list of texts")),
    "a cycle": (Q | {"tags": cyclic()}, ("tags[0]", "text")),
    "a cycle for a text": ({"query": cyclic()}, ("query is list", "text")),
    "an object": ({"query": Opaque()}, ("query is Opaque", "text")),
    "an object for all": (Opaque(), ("not a JSON object",)),
    "a set": (Q | {"tags": {"a"}}, ("tags is set", "list of texts")),
    "a class": ({"query": str}, ("query is type", "text")),
    "a mapping that fails": (Hostile(), ("not plain data", "JSON object")),
    "a mapping whose values fail": (HalfHostile(query="tea"), ("not plain data", "JSON object")),
    "wrapped wrong": ({"arguments": {"qery": "tea"}}, ("query is missing",)),
    "wrapped text": ({"input": "tea"}, ("query is missing", "input")),
}  # fmt: skip


@pytest.mark.parametrize("what", TAKEN)
def test_R5_what_is_certain_is_taken(suite: Suite, what: str) -> None:
    given, expected = TAKEN[what]
    result = suite.call("probe", given)
    assert result.status == "ok", result.text
    assert {name: seen[0][name] for name in expected} == expected
    assert all(type(seen[0][name]) is type(value) for name, value in expected.items())


@pytest.mark.parametrize("what", REFUSED)
def test_R5_what_is_not_certain_is_answered_and_nothing_is_done(suite: Suite, what: str) -> None:
    given, fragments = REFUSED[what]
    result = suite.call("probe", given)
    assert result.status == "invalid" and result.outcome == "bad arguments"
    assert seen == [] and not suite.memory.exists
    _check_sentence(result, fragments)


def _check_sentence(result: Result, fragments: tuple[str, ...]) -> None:
    told = json.loads(result.text)
    assert told["status"] == "error"
    message = told["message"]
    assert all(fragment in message for fragment in fragments), message
    assert "\n" not in message and ". " not in message and len(message) < 300
    assert "secret" not in message
    result.text.encode("utf-8")


def test_R5_an_unknown_argument_is_ignored_and_told_to_the_host(suite: Suite) -> None:
    result = suite.call("probe", {"query": "tea", "verbose": True, "color": "red"})
    assert result.status == "ok" and result.ignored == ("verbose", "color")


def test_R5_keys_that_are_not_text_are_ignored(suite: Suite) -> None:
    assert suite.call("probe", {"query": "tea", 5: 1, None: 2, ("a",): 3}).ignored == ("5", "None", "('a',)")


def test_R5_wrapped_arguments_are_not_passed_over_where_nothing_is_required(suite: Suite) -> None:
    assert suite.call("optional", {"arguments": '{"offset": 100}'}).status == "ok"
    assert suite.call("optional", {"name": "optional", "input": {"offset": 7}}).ignored == ("name",)
    assert [one["offset"] for one in seen] == [100, 7]


def test_R5_arguments_that_are_given_are_not_changed(suite: Suite) -> None:
    given = {"query": "tea", "tags": ["a"], "topK": "2", "more": {"x": 1}}
    before = json.dumps(given)
    suite.call("probe", given)
    assert json.dumps(given) == before


def test_T7_a_schema_tells_the_limits_that_it_should() -> None:
    schema = schema_of(probe.parameters)
    assert schema["required"] == ["query"]
    assert schema["properties"]["share"] == {"type": "number", "minimum": 0, "maximum": 1}
    assert schema["properties"]["ids"] == {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}
    assert schema["properties"]["category"] == {"type": "string", "enum": ["work_context", "preference"]}
    assert parameters_of(probe.run) == probe.parameters


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=12)
_ANYTHING = st.recursive(
    _SCALARS | st.sampled_from(["null", "[1, 2]", '["a"]', "true", "5", "5.5", "1e400", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_NAMES = [parameter.name for parameter in probe.parameters]
_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
}


@settings(max_examples=volume(60, 300), deadline=None)
@given(given=st.dictionaries(st.sampled_from([*_NAMES, "topK", "Query", "other"]), _ANYTHING, max_size=6) | _ANYTHING)
def test_R5_whatever_is_given_is_read_as_declared_or_refused_in_one_sentence(given: Any) -> None:
    try:
        values, _ = read_arguments(probe.parameters, given)
    except ArgumentsError as error:
        assert "\n" not in str(error) and len(str(error)) < 400
        str(error).encode("utf-8")
        return
    for parameter in probe.parameters:
        _check_type(parameter, values[parameter.name])


def _check_type(parameter: Parameter, value: Any) -> None:
    if value is None:
        assert not parameter.required
    elif not (parameter.arg.reference and isinstance(value, str)):
        wanted = _TYPES[parameter.type]
        assert isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)
        assert not parameter.enum or value in parameter.enum
