"""Generated calls of tools and of the verbs of the Python API."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import recollect
from recollect.tools import wire
from tests.soak import values
from tests.soak.cases import CASES_IN_A_CHUNK, Case, Raw, call_verb, memory_app
from tests.soak.warm import USER

STATUSES = {"ok", "queued", "refused", "invalid", "error", "timeout", "limited"}
RAW = re.compile(
    r"Traceback \(most recent|\b(?:Type|Value|Key|Attribute|Index|Assertion|Recursion|Overflow|Unicode\w+|OS|Memory)Error\b"
)


# -- tools -----------------------------------------------------------------------------------------------------------


def tool_cases(place: Path, random: Random) -> Iterator[Case]:
    """Every tool of every suite, with arguments from its schema and hostile ones."""
    with memory_app(place, random) as app:
        tools = app.tools(USER, wait=True, session="s1", chat=random.choice((None, "family")))
        declared = [tool["function"] for tool in wire.declarations(tools, "openai")]
        for _ in range(CASES_IN_A_CHUNK):
            tool = random.choice(declared)
            arguments: Any = values.arguments_for(random, tool["parameters"])
            if random.random() < 0.05:
                arguments = values.anything(random)
            elif random.random() < 0.1:
                arguments = json.dumps(arguments)[: random.choice((10, 10_000))]
            name = tool["name"] if random.random() < 0.99 else values.text(random)[:40]
            yield (
                f"{name}({arguments!r:.600})",
                partial(call_tool, tools, name, arguments),
            )
            app.user(USER).count()


def call_tool(tools: Any, name: str, arguments: Any) -> bool:
    given = f"{arguments!r}"
    result = tools.call(name, arguments)
    if result.status not in STATUSES:
        raise Raw(f"status {result.status!r}")
    if not isinstance(result.text, str):
        raise Raw(f"text is a {type(result.text).__name__}")
    result.text.encode()
    if (found := RAW.search(result.text)) and found[0] not in given:
        raise Raw(f"answered with {result.text[:600]!r}")
    return result.status in ("ok", "queued")


# -- verbs -----------------------------------------------------------------------------------------------------------

LEFT_OUT = {"acting", "batch", "note_run", "unread", "rebuild", "export", "import_", "embed", "clock", "config"}
"""Verbs that take paths, objects or functions: they have areas or tests of their own."""


def verb_cases(place: Path, random: Random) -> Iterator[Case]:
    """The verbs of the Python API, with values that fit the annotations and others."""
    verbs = [name for name, _ in inspect.getmembers(recollect.Memory, inspect.isfunction) if not name.startswith("_")]
    verbs = [name for name in verbs if name not in LEFT_OUT]
    signatures = {verb: inspect.signature(getattr(recollect.Memory, verb)) for verb in verbs}
    with memory_app(place, random) as app:
        memory = app.user(USER)
        for _ in range(CASES_IN_A_CHUNK):
            verb = random.choice(verbs)
            positional, named = arguments_of(random, signatures[verb])
            told = ", ".join(
                [*(f"{value!r:.300}" for value in positional), *(f"{k}={v!r:.300}" for k, v in named.items())]
            )
            yield (
                f"{verb}({told})",
                partial(call_verb, memory, verb, positional, named),
            )
            if verb in ("pause", "clear"):
                memory.resume()
            memory.count()


def arguments_of(random: Random, signature: inspect.Signature) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in list(signature.parameters.items())[1:]:
        needed = parameter.default is inspect.Parameter.empty
        if name == "progress":
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional += [values.text(random) for _ in range(random.choice((0, 1, 1, 2)))]
        elif needed or random.random() < 0.3:
            value = value_for(random, name, str(parameter.annotation))
            if needed and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                positional.append(value)
            else:
                named[name] = value
    return positional, named


FITTING: dict[str, tuple[Any, ...]] = {
    "ref": ("drink", "drink", "number 1", "Likes green tea"),
    "key": ("drink", "role", "home town"),
    "session": ("s1", "s2"),
    "category": ("preference", "key_fact", "finding", "work"),
    "kind": ("fact", "note", "message", "episode", "observation", "read", "like"),
    "status": ("active", "all", "superseded"),
    "role": ("user", "assistant"),
    "valence": ("positive", "negative", "neutral"),
    "topic": ("tea", "trains", "Lviv"),
    "query": ("tea", "where did we go", "the garden gate"),
}
"""Values that mean something, for arguments that seldom do by chance."""


def value_for(random: Random, name: str, annotation: str) -> Any:
    """A value for an argument; now and then one of another type."""
    if name in FITTING and random.random() < 0.6:
        return random.choice(FITTING[name])
    if random.random() < 0.06:
        return values.anything(random, plain=False)
    if "None" in annotation and random.random() < 0.1:
        return None
    if "Literal" in annotation:
        return random.choice([*re.findall(r"'(\w+)'", annotation), values.text(random)])
    if "Mapping" in annotation and "Iterable" not in annotation:
        return {values.text(random)[:40]: values.anything(random) for _ in range(random.choice((0, 1, 3)))}
    if "Iterable" in annotation or "Sequence" in annotation:
        return [
            values.anything(random) if "Any" in annotation else values.text(random)
            for _ in range(random.choice((0, 1, 2, 20)))
        ]
    if "Moment" in annotation or "date" in annotation:
        return random.choice(("2026-02-12", "2026-02-12T09:30:00Z", values.text(random)))
    if "bool" in annotation:
        return random.choice((True, False))
    if "float" in annotation:
        return random.choice((random.random(), random.choice(values.HOSTILE_NUMBERS)))
    if "int" in annotation:
        return random.choice((random.randint(-1, 30), random.choice(values.HOSTILE_NUMBERS)))
    return values.text(random)
