"""Generated cases for tools, verbs, files, imports and HTTP: no raw exception, no hang, no crash."""

from __future__ import annotations

import contextlib
import faulthandler
import http.client
import inspect
import io
import json
import logging
import os
import re
import shutil
import sys
import traceback
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import recollect
from recollect.testing import MemoryStore
from recollect.tools import wire
from tests.soak import values
from tests.soak.surfaces import Http
from tests.soak.warm import USER

CASES_IN_A_CHUNK = 500
PATIENCE = 120
"""Seconds after which a case counts as hung; the stack of every thread is printed then."""

STATUSES = {"ok", "queued", "refused", "invalid", "error", "timeout", "limited"}
RAW = re.compile(
    r"Traceback \(most recent|\b(?:Type|Value|Key|Attribute|Index|Assertion|Recursion|Overflow|Unicode\w+|OS|Memory)Error\b"
)


class Raw(Exception):
    """Something that is not one of the library's documented answers."""


class Loud(logging.Handler):
    """Keeps what was logged with a stack: an exception that somebody swallowed."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if (
            record.exc_info
            and record.exc_info[1] is not None
            and not isinstance(record.exc_info[1], recollect.RecollectError)
        ):
            self.stacks.append("".join(traceback.format_exception(record.exc_info[1]))[-1500:])


Case = tuple[str, Callable[[], None]]
"""What is tried, in words for the report, and the trial itself."""


@contextlib.contextmanager
def memory_app(place: Path, random: Random) -> Iterator[recollect.Recollect]:
    """A memory with something in it; mostly without files, which is quicker."""
    app = recollect.open(MemoryStore() if random.random() < 0.85 else place / "memory", tool_async=False)
    memory = app.user(USER)
    memory.remember("Likes green tea", key="drink")
    memory.note("The garden gate is blue")
    memory.say("Hello there", session="s1")
    memory.episode("A trip", "We went to Lviv by train")
    memory.observe("Trains are late", "finding")
    try:
        yield app
    finally:
        app.close()


# -- tools -----------------------------------------------------------------------------------------------------------


def tool_cases(place: Path, random: Random) -> Iterator[Case]:
    """Every tool of every suite, with arguments from its schema and hostile ones."""
    with memory_app(place, random) as app:
        tools = app.tools(USER, patient=True, session="s1", chat=random.choice((None, "family")))
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


def call_tool(tools: Any, name: str, arguments: Any) -> None:
    given = f"{arguments!r}"
    result = tools.call(name, arguments)
    if result.status not in STATUSES:
        raise Raw(f"status {result.status!r}")
    if not isinstance(result.text, str):
        raise Raw(f"text is a {type(result.text).__name__}")
    result.text.encode()
    if (found := RAW.search(result.text)) and found[0] not in given:
        raise Raw(f"answered with {result.text[:600]!r}")


# -- verbs -----------------------------------------------------------------------------------------------------------

LEFT_OUT = {"acting", "batch", "note_run", "unread", "rebuild", "export", "import_", "embed", "clock", "config"}
"""Verbs that take paths, objects or functions: they have areas or tests of their own."""


def verb_cases(place: Path, random: Random) -> Iterator[Case]:
    """The verbs of the Python API, with values that fit the annotations and others."""
    verbs = [name for name, _ in inspect.getmembers(recollect.Memory, inspect.isfunction) if not name.startswith("_")]
    verbs = [name for name in verbs if name not in LEFT_OUT]
    with memory_app(place, random) as app:
        memory = app.user(USER)
        for _ in range(CASES_IN_A_CHUNK):
            verb = random.choice(verbs)
            positional, named = arguments_of(random, getattr(recollect.Memory, verb))
            told = ", ".join(
                [*(f"{value!r:.300}" for value in positional), *(f"{k}={v!r:.300}" for k, v in named.items())]
            )
            yield (
                f"{verb}({told})",
                partial(call_verb, memory, verb, positional, named),
            )
            if verb in ("pause", "clear"):
                memory.resume()


def arguments_of(random: Random, function: Any) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        needed = parameter.default is inspect.Parameter.empty
        if name == "progress":
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional += [values.text(random) for _ in range(random.choice((0, 1, 1, 2)))]
        elif needed or random.random() < 0.3:
            value = value_for(random, str(parameter.annotation))
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = value
            elif len(positional) == len([0 for _ in positional]) and needed:
                positional.append(value)
            else:
                named[name] = value
    return positional, named


def value_for(random: Random, annotation: str) -> Any:
    """A value for an annotation; now and then one of another type."""
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


def call_verb(memory: recollect.Memory, verb: str, positional: list[Any], named: dict[str, Any]) -> None:
    with contextlib.suppress(recollect.RecollectError):
        repr(getattr(memory, verb)(*positional, **named))


# -- files -----------------------------------------------------------------------------------------------------------

MARKDOWN = (
    "# User Memory\n",
    "\n",
    "## User Preferences\n",
    "## Work Context\r\n",
    "## Key Facts\n",
    "### Deeper\n",
    "## Mine\n",
    "Setext\n---\n",
    "- Role: engineer\n",
    "* Likes tea\n",
    "+ plus\n",
    "1. first\n",
    "- [ ] to do\n",
    "- [x] done\n",
    "-\n",
    "- \n",
    "-no space\n",
    "  - nested: value\n",
    "    code\n",
    "\tTab: value\n",
    "```\nfenced\n```\n",
    "```\nnever closed\n",
    "~~~py\nx = 1\n~~~\n",
    "> quoted\n",
    "<!-- a comment -->\n",
    "<!-- never closed\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "---\ntitle: x\n---\n",
    "A paragraph of prose.\nIts second line.\n",
    "- Київ: місто\n",
    "- : no label\n",
    "- label:\n",
    "- a: b: c\n",
    "- **Bold**: value\n",
    "- [link](http://example.org): value\n",
    "\u202e- rtl\n",
    "- \u00a0nbsp\n",
    "\ufeff",
    "\x0b",
    "\x0c",
    "\u2028",
    "\x85",
    "no newline",
    "\r",
    "- Role: engineer\r\n",
)


def markdown(random: Random) -> bytes:
    """Something a person might have saved, down to bytes that are no text."""
    parts = [random.choice(MARKDOWN) for _ in range(random.randint(1, 25))]
    if random.random() < 0.3:
        parts.insert(random.randrange(len(parts)), values.text(random))
    data = bytearray("".join(parts).encode("utf-8", "surrogatepass"))
    if random.random() < 0.1:
        for _ in range(random.randint(1, 5)):
            data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


def file_cases(place: Path, random: Random) -> Iterator[Case]:
    """MEMORY.md and daily notes with random content: reading changes not a byte.

    Each file is that of a new user, of whom nothing else is known: what agents stored would have to go into the file.
    """
    root = place / "memory"
    app = recollect.open(root)
    editor = recollect.open(MemoryStore()).user("editor")
    for number in range(CASES_IN_A_CHUNK):
        data = markdown(random)
        if number % 5:
            edited = data.decode("utf-8", "surrogateescape")
            yield f"edit({edited!r:.1500})", partial(call_verb, editor, "edit", [edited], {})
            continue
        memory = app.user(f"u{number}")
        file = root / f"u{number}" / ("memory/2026-02-12.md" if number % 3 else "MEMORY.md")
        yield f"{file.name} = {data!r:.1500}", partial(read_file, memory, file, data)
    app.close()


def read_file(memory: recollect.Memory, file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    with contextlib.suppress(recollect.RecollectError):
        memory.read()
        memory.show()
        memory.daily("2026-02-12")
        memory.search("tea")
        memory.note("Somebody writes")
    if file.name == "MEMORY.md" and is_empty(data):
        return  # an empty file is written anew
    now = file.read_bytes() if file.exists() else b""
    if now != data:
        raise Raw(f"{file.name} is not byte for byte what was saved: {now!r:.1500}")


def is_empty(data: bytes) -> bool:
    try:
        return not data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return False


# -- imports ---------------------------------------------------------------------------------------------------------


def import_cases(place: Path, random: Random) -> Iterator[Case]:
    """Archives that somebody damaged, and files in the other formats with anything in them."""
    with memory_app(place, random) as app:
        archive = place / "good.zip"
        app.user(USER).export(archive)
        good = archive.read_bytes()
        for number in range(CASES_IN_A_CHUNK):
            name, data = damaged(random, good)
            path = place / f"import-{number % 7}{name}"
            yield f"import {path.name} {data!r:.800}", partial(import_file, app, path, data)


def damaged(random: Random, good: bytes) -> tuple[str, bytes]:
    choice = random.random()
    if choice < 0.35:
        data = bytearray(good)
        for _ in range(random.choice((1, 1, 3, 30))):
            data[random.randrange(len(data))] = random.randrange(256)
        return ".zip", bytes(data[: random.choice((len(data), random.randrange(len(data))))])
    if choice < 0.7:
        return ".zip", repacked(random, good)
    ending = random.choice((".jsonl", ".json", ".md", ".zip", ".txt", ""))
    if random.random() < 0.5:
        rows = [values.arguments_for(random, MEM0) for _ in range(random.randint(0, 5))]
        body = json.dumps(rows) if ending == ".json" else "\n".join(json.dumps(row) for row in rows)
        return ending, body.encode("utf-8", "replace")
    return ending, markdown(random)


MEM0: dict[str, Any] = {
    "properties": {
        name: {"type": kind}
        for name, kind in {
            "type": "string",
            "name": "string",
            "entityType": "string",
            "observations": "array",
            "memory": "string",
            "user_id": "string",
            "created_at": "string",
            "metadata": "object",
            "id": "string",
        }.items()
    }
}


def repacked(random: Random, good: bytes) -> bytes:
    """The archive with something else in its files."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            choice = random.random()
            if choice < 0.3 and data:
                data = mutated_json_lines(random, data)
            elif choice < 0.4:
                data = markdown(random)
            elif choice < 0.45:
                continue
            name = entry.filename if random.random() < 0.95 else random.choice(("../up", "/abs", "a/" * 40 + "b", ""))
            new.writestr(name or "x", data)
    return out.getvalue()


def mutated_json_lines(random: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    try:
        row = json.loads(lines[at])
        target = row
        for _ in range(random.randint(0, 2)):
            inner = [value for value in target.values() if isinstance(value, dict)]
            target = random.choice(inner) if inner else target
        target[random.choice([*target, "extra"])] = values.anything(random)
        lines[at] = json.dumps(row).encode("utf-8", "surrogatepass")
    except (ValueError, AttributeError, IndexError):
        lines[at] = lines[at][: len(lines[at]) // 2]
    return b"\n".join(lines)


def import_file(app: recollect.Recollect, path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with contextlib.suppress(recollect.RecollectError):
        repr(app.user("other").import_(path))


# -- HTTP ------------------------------------------------------------------------------------------------------------


def http_cases(place: Path, random: Random) -> Iterator[Case]:
    """A real server: every operation of its own document, and requests that are none."""
    os.environ.update(MEMORY_HTTP_USER_RATE="0", MEMORY_HTTP_KEY_RATE="0")
    server = Http(place / "memory", place / "errors")
    server.start()
    try:
        document = json.loads(request(server, "GET", "/v1/openapi.json", None, {})[1])
        schemas = document.get("components", {}).get("schemas", {})
        operations = [
            (method.upper(), path, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method in ("get", "post", "put", "patch", "delete")
        ]
        for _ in range(CASES_IN_A_CHUNK):
            method, path, operation = random.choice(operations)
            case = http_case(random, method, path, operation, schemas)
            yield f"{case!r:.1200}", partial(ask_server, server, *case)
    finally:
        server.kill()


def http_case(
    random: Random, method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> tuple[str, str, bytes | None, dict[str, str]]:
    def piece(_: re.Match[str]) -> str:
        part = random.choice((USER, USER, "other", values.text(random)[:80]))
        return urllib.parse.quote(part.encode("utf-8", "surrogatepass"), safe="") or "%20"

    target = re.sub(r"\{\w+\}", piece, path)
    query = {}
    for parameter in operation.get("parameters", ()):
        if parameter.get("in") == "query" and random.random() < 0.5:
            value = str(values.from_schema(random, parameter.get("schema", {}), schemas))[:500]
            query[parameter["name"]] = value.encode("utf-8", "surrogatepass")
    if query:
        target += "?" + urllib.parse.urlencode(query)
    headers = {}
    body = None
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        value = values.from_schema(random, content["application/json"].get("schema", {}), schemas)
        body = json.dumps(value).encode("utf-8", "surrogatepass")
        headers["Content-Type"] = "application/json"
    elif content:
        body = markdown(random)
    if random.random() < 0.05:
        body = markdown(random)
    if random.random() < 0.05:
        headers["Recollect-Acting"] = random.choice(('{"actor": "agent"}', "{", '{"session": 5}', "[]"))
    if random.random() < 0.05:
        headers["Idempotency-Key"] = random.choice(("short", "k" * 20, "k" * 500))
    return method, target, body, headers


def request(server: Http, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ask_server(server: Http, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> None:
    try:
        status, answer = request(server, method, target, body, headers)
    except (http.client.HTTPException, OSError) as error:
        raise Raw(f"no answer: {error!r}, server {'alive' if server.alive else 'dead'}") from None
    if status == 500 or b"Traceback (most recent" in answer:
        raise Raw(f"HTTP {status}: {answer[:800]!r}")


# -- chunks ----------------------------------------------------------------------------------------------------------

AREAS: dict[str, tuple[Callable[[Path, Random], Iterator[Case]], int]] = {
    "tools": (tool_cases, 8),
    "verbs": (verb_cases, 6),
    "files": (file_cases, 2),
    "imports": (import_cases, 2),
    "http": (http_cases, 2),
}
"""What there is, and how many of twenty chunks it gets."""


def area_of(number: int) -> str:
    areas = [area for area, (_, share) in AREAS.items() for _ in range(share)]
    return areas[number * 7 % len(areas)]


def run_chunk(area: str, seed: str, place: Path, *, loud: bool = False) -> int:
    """Try the cases of one chunk; be called in a process of its own. Return how many there were; exit at a hang."""
    place.mkdir(parents=True, exist_ok=True)
    swallowed = Loud()
    logging.getLogger().addHandler(swallowed)
    logging.getLogger("recollect").addHandler(swallowed)
    current = place / "current"
    stack = (place / "stack").open("w")
    cases = 0
    with current.open("w", errors="backslashreplace") as log:
        for what, trial in AREAS[area][0](place, Random(f"{area} {seed}")):
            log.seek(0)
            log.truncate()
            log.write(what)
            log.flush()
            faulthandler.dump_traceback_later(PATIENCE, exit=True, file=stack)
            cases += 1
            try:
                trial()
                if swallowed.stacks:
                    raise Raw(f"swallowed and logged: {swallowed.stacks.pop()}")
            except Exception:
                (place / "wrong").write_text(
                    f"case {cases}: {what}\n  {traceback.format_exc()[-1800:]}", errors="backslashreplace"
                )
                if not loud:
                    raise
            finally:
                faulthandler.cancel_dump_traceback_later()
    return cases


def one_chunk(area: str, seed: str, place: Path) -> tuple[dict[str, int], str | None]:
    """Run a chunk in a process of its own. Return the counts, and what is wrong, with how to see it again."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            sys.stderr = sys.stdout
            os.write(writing, str(run_chunk(area, seed, place)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    said = b""
    while data := os.read(reading, 100):
        said += data
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    counts = {"cases": int(said or 0), f"{area}": int(said or 0), "violations": int(status != 0)}
    wrong = None
    if status:
        parts = [f"{area}, exit code {os.waitstatus_to_exitcode(status)}"]
        for name in ("wrong", "stack", "current") if not (place / "wrong").exists() else ("wrong",):
            if (place / name).exists():
                parts.append((place / name).read_text()[:4000])
        wrong = "\n  ".join(parts) + f"\n  python -m tests.soak fuzz --replay {area}/{seed}"
    shutil.rmtree(place, ignore_errors=True)
    return counts, wrong
