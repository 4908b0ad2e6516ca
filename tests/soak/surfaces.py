"""The four surfaces as processes that are asked one thing at a time: Python API, command line, MCP over stdio, HTTP."""

from __future__ import annotations

import io
import json
import os
import re
import select
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import recollect
from tests.soak.warm import USER, Child

PATIENCE = float(os.environ.get("SOAK_PATIENCE", "120"))
"""Seconds after which a call counts as hung. Nothing is ever compared with how long a call took."""


@dataclass(frozen=True)
class Op:
    """One thing to ask of a memory, in words that every surface can translate."""

    verb: str
    text: str = ""
    kind: str = ""
    key: str | None = None
    ref: str = ""
    number: int = 0
    tool: bool = False
    """Ask through a tool suite where the surface has both."""


@dataclass(frozen=True)
class Answer:
    """What came back. `acknowledged` is False if the process died before it answered."""

    acknowledged: bool = True
    error: str | None = None
    id: str | None = None
    seq: int | None = None
    records: tuple[tuple[str, str], ...] = ()
    text: str = ""
    problems: tuple[str, ...] = ()


DEAD = Answer(acknowledged=False)


class HungError(Exception):
    """A process did not answer."""


# -- tools ----------------------------------------------------------------------------------------------------------

TOOL_VERBS = frozenset({"remember", "note", "observe", "episode", "scratch", "update", "forget", "search"})


def as_tool(op: Op) -> tuple[str, dict[str, Any]] | None:
    """The tool call that does this, or None if no suite has one."""
    match op.verb, op.kind:
        case "remember", _ if op.key and op.number % 2:
            facts = {"fact_type": "skill", "fact_key": op.key, "fact_value": op.text, "confidence": 0.9}
            return "remember_fact", facts
        case "remember", _ if op.key:
            entry = {"key": op.key, "value": op.text, "category": "work_context", "durability": "durable"}
            return "write_memory", entry
        case "note", _:
            return "memory_save", {"content": op.text}
        case "observe", _:
            return "remember_observation", {"content": op.text, "category": "finding"}
        case "episode", _:
            return "create_episode", {"topic": "An evening", "summary": op.text, "importance": 0.8}
        case "scratch", _:
            return "scratchpad_set", {"key": op.key, "value": op.text}
        case "update", "fact" if op.key:
            return "update_memory", {"key": op.key, "value": op.text}
        case "update", "note" if op.ref:
            return "memory_update", {"note_id": op.ref, "content": op.text}
        case "forget", "fact" if op.key:
            return "delete_memory", {"key": op.key}
        case "forget", "note" if op.ref:
            return "memory_delete", {"note_id": op.ref}
        case "search", _:
            return "recall", {"query": op.text, "limit": 20}
    return None


def read_tool_answer(text: str, failed: bool) -> Answer:
    """What a tool said, whatever its suite's manner of speaking."""
    try:
        said: Any = json.loads(text)
    except ValueError:
        said = text
    if failed or (isinstance(said, dict) and said.get("status") not in (None, "success")):
        return Answer(error=text[:500])
    if isinstance(said, dict):
        found = said.get("note_id") or said.get("id")
        return Answer(id=found if isinstance(found, str) else None, text=text)
    if isinstance(said, str) and not said.startswith("✓"):
        return Answer(error=said[:500])
    return Answer(text=text)


# -- the process of each surface -------------------------------------------------------------------------------------


class Surface:
    """A process that works on one folder for one user."""

    name: ClassVar[str]
    verbs: ClassVar[frozenset[str]] = frozenset(
        "remember note observe episode say jot scratch update forget undo undo_last erase search read show verify".split()
    )

    def __init__(self, root: Path, errors: Path) -> None:
        self.root = root
        self.errors = errors
        self.child: Child | None = None

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def start(self) -> None:
        raise NotImplementedError

    def send(self, op: Op) -> None:
        raise NotImplementedError

    def receive(self, patience: float = PATIENCE) -> Answer:
        raise NotImplementedError

    def ask(self, op: Op) -> Answer:
        if not self.alive:
            self.start()
        self.send(op)
        return self.receive()

    def can(self, op: Op) -> bool:
        return op.verb in self.verbs

    def close(self) -> None:
        """Let go of the memory, and stay alive if the surface can do that."""
        self.exit()

    def exit(self) -> None:
        """End as the program ends when nothing goes wrong."""
        if self.child is not None:
            self.child.terminate()
            self._await_end(self.child)
            self.child = None

    def kill(self) -> None:
        if self.child is not None:
            self.child.dispose()
            self.child = None

    def _await_end(self, child: Child) -> None:
        end = time.monotonic() + PATIENCE
        while child.poll() is None:
            if time.monotonic() > end:
                child.dispose()
                raise HungError(f"{self.name} did not end")
            select.select([child.read_end], [], [], 0.005)
            child.read_some()
        child.dispose()

    def _line(self, child: Child, patience: float) -> bytes | None:
        """The next line of the child's output, or None if it has died."""
        end = time.monotonic() + patience
        while b"\n" not in child.received:
            left = end - time.monotonic()
            if left <= 0:
                raise HungError(f"{self.name} did not answer within {patience:.0f} s")
            if select.select([child.read_end], [], [], left)[0] and not child.read_some():
                return None
        line, _, child.received = child.received.partition(b"\n")
        return line


class Api(Surface):
    """A long-lived process that uses the Python API, driven by JSON lines."""

    name = "api"

    def start(self) -> None:
        root = str(self.root)
        self.child = Child(lambda: _serve_api(root), self.errors)

    def send(self, op: Op) -> None:
        assert self.child is not None
        self.child.write(json.dumps(op.__dict__).encode() + b"\n")

    def receive(self, patience: float = PATIENCE) -> Answer:
        assert self.child is not None
        line = self._line(self.child, patience)
        return DEAD if line is None else _answer_from(json.loads(line))

    def move(self, root: Path) -> None:
        """Use another folder from now on, in the same process."""
        self.root = root
        if self.alive:
            self.send(Op("move", text=str(root)))
            self.receive()

    def close(self) -> None:
        if self.alive:
            self.send(Op("close"))
            self.receive()

    def exit(self) -> None:
        if self.child is not None:
            self.child.close_input()
            self._await_end(self.child)
            self.child = None


def _answer_from(fields: dict[str, Any]) -> Answer:
    fields["records"] = tuple((kind, text) for kind, text in fields.get("records", ()))
    fields["problems"] = tuple(fields.get("problems", ()))
    return Answer(**fields)


def _serve_api(root: str) -> int:
    """The loop of an API process."""
    app: recollect.Recollect | None = None
    for line in sys.stdin:
        op = Op(**json.loads(line))
        try:
            if op.verb in ("close", "move"):
                if app is not None:
                    app.close()
                if op.verb == "move":
                    root, app = op.text, None
                fields: dict[str, Any] = {}
            else:
                app = app or recollect.open(root)
                fields = do_with_api(app, op)
        except recollect.RecollectError as error:
            fields = {"error": f"{type(error).__name__}: {error}"}
        except Exception:
            fields = {"error": "RAW " + traceback.format_exc()[-1500:]}
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()
    if app is not None:
        app.close()
    return 0


def do_with_api(app: recollect.Recollect, op: Op) -> dict[str, Any]:
    """Do it, and return the fields of an `Answer`."""
    if op.tool and (call := as_tool(op)):
        result = app.tools(USER, wait=True).call(*call)
        answer = read_tool_answer(result.text, result.status not in ("ok", "queued"))
        if op.verb == "search" and answer.error is None:
            return {"records": [("", str(found.get("content"))) for found in json.loads(result.text)]}
        return dict(answer.__dict__)
    memory = app.user(USER)
    match op.verb:
        case "read":
            return {"records": [(record.kind, record.text) for record in memory.read()]}
        case "show":
            return {"text": memory.show()}
        case "search":
            hits = memory.search(op.text, limit=20, include_conversation=True)
            return {"records": [(hit.record.kind, hit.record.text) for hit in hits]}
        case "verify":
            return {"problems": memory.verify()}
        case "history":
            entries = [entry for entry in memory.history() if op.text in f"{entry.before}{entry.after}"]
            return {
                "text": "; ".join(f"{entry.seq} {entry.at:%H:%M:%S.%f} {entry.actor} {entry.op}" for entry in entries)
            }
        case "erase":
            memory.erase(op.ref)
            return {}
        case "undo":
            memory.undo(op.number)
            return {}
        case "undo_last":
            memory.undo()
            return {}
    outcome: Any = _write(memory, op)
    record = getattr(outcome, "record", None)
    return {
        "error": None if outcome.done else f"{type(outcome).__name__}: {outcome.message}",
        "id": getattr(record, "id", None),
        "seq": getattr(record, "seq", None),
    }


def _write(memory: recollect.Memory, op: Op) -> recollect.Outcome:
    match op.verb:
        case "remember":
            return memory.remember(op.text, key=op.key)
        case "note":
            return memory.note(op.text)
        case "observe":
            return memory.observe(op.text, "finding")
        case "episode":
            return memory.episode("An evening", op.text)
        case "say":
            return memory.say(op.text, session="s1")
        case "jot":
            return memory.jot(op.text)
        case "scratch":
            return memory.set_scratch(str(op.key), op.text)
        case "update":
            return memory.update(op.ref, op.text)
        case "forget":
            return memory.forget(op.ref)
    raise AssertionError(op.verb)


# -- command line ----------------------------------------------------------------------------------------------------


def cli_arguments(root: Path, op: Op) -> list[str]:
    """The command that does this."""
    everywhere = ["--root", str(root), "--user", USER, "--json"]
    if op.tool and (call := as_tool(op)):
        return ["tool", call[0], json.dumps(call[1]), *everywhere]
    keyed = ["--key", op.key] if op.key else []
    match op.verb:
        case "remember":
            return ["remember", op.text, *keyed, *everywhere]
        case "observe":
            return ["observe", op.text, "--category", "finding", *everywhere]
        case "episode":
            return ["episode", "An evening", op.text, *everywhere]
        case "say":
            return ["say", op.text, "--session", "s1", *everywhere]
        case "note" | "jot":
            return [op.verb, op.text, *everywhere]
        case "scratch":
            return ["scratch", str(op.key), op.text, *everywhere]
        case "update":
            return ["update", op.ref, op.text, *everywhere]
        case "forget":
            return ["forget", op.ref, "--yes", *everywhere]
        case "erase":
            return ["erase", op.ref, "--yes", *everywhere]
        case "undo":
            return ["undo", str(op.number), "--yes", *everywhere]
        case "undo_last":
            return ["undo", "--yes", *everywhere]
        case "search":
            return ["search", op.text, "--limit", "20", "--include-conversation", *everywhere]
        case "read" | "verify":
            return [op.verb, *everywhere]
        case "show":
            return ["show", "--raw", *everywhere[:-1]]
    raise AssertionError(op.verb)


def read_cli_answer(op: Op, code: int, printed: str, errors: str = "") -> Answer:
    """What the command printed, as an answer. Exit code 3 while reading means that there is no memory yet."""
    if "Traceback" in printed + errors:
        return Answer(error=f"RAW {(printed + errors)[-1500:]}")
    if code == 3 and op.verb in ("read", "show", "search", "verify"):
        return Answer()
    if code and not (code == 1 and op.verb == "verify"):
        return Answer(error=f"exit code {code}: {(printed + errors)[-500:]}")
    if op.verb == "show":
        return Answer(text=printed)
    said: Any = json.loads(printed)
    if op.tool and as_tool(op):
        told = said["answer"] if isinstance(said["answer"], str) else json.dumps(said["answer"])
        answer = read_tool_answer(told, said.get("status") not in ("ok", "queued"))
        if op.verb == "search" and answer.error is None:
            return Answer(records=tuple(("", str(found.get("content"))) for found in json.loads(told)))
        return answer
    match op.verb:
        case "verify":
            return Answer(problems=tuple(said["problems"]))
        case "read":
            return Answer(records=tuple(record_of(record) for record in said))
        case "search":
            return Answer(records=tuple(record_of(hit["record"]) for hit in said["hits"]))
    return outcome_of(said)


def record_of(fields: dict[str, Any]) -> tuple[str, str]:
    """A record in JSON as its kind and all its words."""
    words = (fields.get(name) for name in ("topic", "title", "key", "content", "summary", "value"))
    return fields["kind"], " ".join(str(word) for word in words if word)


def outcome_of(said: dict[str, Any]) -> Answer:
    if not said.get("done", True):
        return Answer(error=f"{said.get('outcome')}: {said.get('message')}")
    record = said.get("record") or {}
    return Answer(id=record.get("id"), seq=record.get("seq"))


class Cli(Surface):
    """One process for each command."""

    name = "cli"

    @property
    def alive(self) -> bool:
        return True

    def start(self) -> None:
        """Nothing runs between two commands."""

    def send(self, op: Op) -> None:
        self.op = op
        arguments = cli_arguments(self.root, op)
        self.child = Child(lambda: _run_command(arguments), self.errors)
        self.child.close_input()

    def receive(self, patience: float = PATIENCE) -> Answer:
        child = self.child
        assert child is not None
        end = time.monotonic() + patience
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise HungError(f"recollect {self.op.verb} did not end within {patience:.0f} s")
            if select.select([child.read_end], [], [], left)[0] and not child.read_some():
                break
        code = child.wait()
        printed = child.received.decode()
        child.dispose()
        self.child = None
        return DEAD if code < 0 else read_cli_answer(self.op, code, printed)

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill()

    def exit(self) -> None:
        """It has ended with its command."""


def _run_command(arguments: list[str]) -> int:
    from recollect.surfaces.cli import main

    sys.argv = ["recollect", *arguments]
    os.dup2(1, 2)
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


class Shell(Surface):
    """Many commands in one process, one after the other, as an embedding application or a test runner calls them."""

    name = "shell"

    def start(self) -> None:
        self.child = Child(_serve_commands, self.errors)

    def send(self, op: Op) -> None:
        assert self.child is not None
        self.op = op
        self.child.write(json.dumps(cli_arguments(self.root, op)).encode() + b"\n")

    def receive(self, patience: float = PATIENCE) -> Answer:
        assert self.child is not None
        line = self._line(self.child, patience)
        if line is None:
            return DEAD
        said = json.loads(line)
        return read_cli_answer(self.op, said["code"], said["printed"], said["errors"])

    def exit(self) -> None:
        if self.child is not None:
            self.child.close_input()
            self._await_end(self.child)
            self.child = None


def _serve_commands() -> int:
    from recollect.surfaces.cli import main

    answers, lines = sys.stdout, sys.stdin
    for line in lines:
        sys.argv = ["recollect", *json.loads(line)]
        sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        said = {"code": code, "printed": sys.stdout.getvalue(), "errors": sys.stderr.getvalue()}
        sys.stdout = answers
        answers.write(json.dumps(said) + "\n")
        answers.flush()
    return 0


# -- MCP ---------------------------------------------------------------------------------------------------------------


class Mcp(Surface):
    """`recollect mcp` over standard input and output, with every suite."""

    name = "mcp"
    verbs = TOOL_VERBS | {"read", "show"}

    def can(self, op: Op) -> bool:
        return op.verb in ("read", "show") or (op.verb in self.verbs and as_tool(op) is not None)

    def start(self) -> None:
        arguments = ["mcp", "--root", str(self.root), "--user", USER, "--suite", "all"]
        self.child = Child(lambda: _run_server(arguments), self.errors)
        self.number = 0
        self.waiting: list[int] = []
        self.results: dict[int, dict[str, Any]] = {}
        client = {"name": "soak", "version": "1"}
        self._call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        if self._result(PATIENCE) is not None:
            self.child.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def _call(self, method: str, params: dict[str, Any]) -> None:
        assert self.child is not None
        self.number += 1
        self.waiting.append(self.number)
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.child.write(json.dumps(message).encode() + b"\n")

    def _tool(self, name: str, arguments: dict[str, Any]) -> None:
        self._call("tools/call", {"name": name, "arguments": arguments})

    def _result(self, patience: float) -> dict[str, Any] | None:
        assert self.child is not None
        wanted = self.waiting.pop(0)
        while wanted not in self.results:  # answers come in any order
            line = self._line(self.child, patience)
            if line is None:
                return None
            said = json.loads(line)
            failed = {"isError": True, "content": [{"text": str(said.get("error"))}]}
            if "id" in said:
                self.results[said["id"]] = said.get("result", failed)
        return self.results.pop(wanted)

    def send(self, op: Op) -> None:
        self.op = op
        self.waiting.clear()
        if op.verb == "read":
            self._tool("memory_export", {"limit": 500})
            self._tool("recall_episodes", {"limit": 50})
        elif op.verb == "show":
            self._call("resources/read", {"uri": "memory://MEMORY.md"})
        else:
            call = as_tool(op)
            assert call is not None
            self._tool(*call)

    def receive(self, patience: float = PATIENCE) -> Answer:
        answers = []
        while self.waiting:
            result = self._result(patience)
            if result is None:
                return DEAD
            answers.append(result)
        if self.op.verb == "show" and "contents" in answers[0]:
            return Answer(text=answers[0]["contents"][0]["text"])
        texts = [result["content"][0]["text"] for result in answers]
        for result, text in zip(answers, texts, strict=True):
            if result.get("isError"):
                return Answer(error=text[:500])
        if self.op.verb == "read":
            kept = [record_of({"content": item["text"], **item}) for item in json.loads(texts[0])["items"]]
            episodes = [("episode", item["summary"]) for item in json.loads(texts[1])["episodes"]]
            return Answer(records=tuple(kept + episodes))
        if self.op.verb == "search":
            return Answer(records=tuple(("", str(found.get("content"))) for found in json.loads(texts[0])))
        return read_tool_answer(texts[0], False)

    def exit(self) -> None:
        if self.child is not None:
            self.child.close_input()
            self._await_end(self.child)
            self.child = None


def _run_server(arguments: list[str]) -> int:
    from recollect.surfaces.cli import main

    sys.argv = ["recollect", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


# -- HTTP --------------------------------------------------------------------------------------------------------------


@dataclass
class Request:
    """One request on its way."""

    op: Op
    received: bytearray = field(default_factory=bytearray)


class Http(Surface):
    """`recollect serve`, asked over one connection that stays open."""

    name = "http"
    connection: socket.socket | None = None
    received = b""

    def start(self) -> None:
        log = self.errors.with_name(f"{self.errors.name}-serve-{time.monotonic_ns()}")
        arguments = ["serve", "--root", str(self.root), "--port", "0", "--workers", "0"]
        self.child = Child(lambda: _run_server(arguments), log)
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/v1", log.read_text() if log.exists() else "")):
            if self.child.poll() is not None or time.monotonic() > end:
                raise HungError(f"serve did not start: {log.read_text()[-1500:]}")
            time.sleep(0.003)
        self.port = int(found[1])
        self._drop()
        while True:  # it listens a moment after it says so
            try:
                self._connect()
                break
            except ConnectionError:
                if self.child.poll() is not None or time.monotonic() > end:
                    raise HungError("serve does not listen") from None
                time.sleep(0.003)

    def _connect(self) -> None:
        self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def send(self, op: Op) -> None:
        self.op = op
        method, path, body = http_request(op)
        data = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Length: {len(data)}\r\n"
        if body is not None:
            head += "Content-Type: application/json\r\n"
        if self.connection is None:
            self._connect()
        assert self.connection is not None
        try:
            self.connection.sendall(head.encode() + b"\r\n" + data)
        except OSError:
            self._drop()

    def _drop(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def receive(self, patience: float = PATIENCE) -> Answer:
        answer = self._response(patience)
        if answer is None:
            self._drop()
            return DEAD
        status, body = answer
        if status == 404 and self.op.verb in ("show", "read", "search", "verify"):
            return Answer()
        if status >= 400:
            return Answer(error=f"{'RAW ' if status == 500 else ''}HTTP {status}: {body[:500].decode()}")
        return read_http_answer(self.op, json.loads(body))

    def _response(self, patience: float) -> tuple[int, bytes] | None:
        if self.connection is None:
            return None
        self.connection.settimeout(patience)
        try:
            while b"\r\n\r\n" not in self.received:
                if not (data := self.connection.recv(1 << 16)):
                    return None
                self.received += data
            head, _, rest = self.received.partition(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            length = int(fields.get(b"content-length", b"0"))
            while len(rest) < length:
                if not (data := self.connection.recv(1 << 16)):
                    return None
                rest += data
        except TimeoutError:
            raise HungError(f"serve did not answer {self.op.verb}") from None
        except OSError:
            return None
        self.received = rest[length:]
        return int(head.split()[1]), rest[:length]

    def kill(self) -> None:
        super().kill()
        self._drop()

    def exit(self) -> None:
        if self.child is not None:
            self._drop()
        super().exit()


def http_request(op: Op) -> tuple[str, str, dict[str, Any] | None]:
    """Method, path and body of the request that does this."""
    base = f"/v1/users/{USER}"
    if op.tool and (call := as_tool(op)):
        return "POST", f"{base}/tools/{call[0]}", {"arguments": call[1], "wait": True}
    match op.verb:
        case "remember":
            return "POST", f"{base}/remember", {"content": op.text, "key": op.key}
        case "observe":
            return "POST", f"{base}/observe", {"content": op.text, "category": "finding"}
        case "episode":
            return "POST", f"{base}/episode", {"topic": "An evening", "summary": op.text}
        case "say":
            return "POST", f"{base}/say", {"content": op.text, "session": "s1"}
        case "note" | "jot":
            return "POST", f"{base}/{op.verb}", {"content": op.text}
        case "scratch":
            return "POST", f"{base}/set_scratch", {"key": op.key, "value": op.text}
        case "update":
            return "POST", f"{base}/update", {"ref": op.ref, "content": op.text}
        case "forget":
            return "POST", f"{base}/forget", {"ref": op.ref}
        case "erase":
            return "POST", f"{base}/erase", {"refs": [op.ref]}
        case "undo":
            return "POST", f"{base}/undo", {"target": op.number}
        case "undo_last":
            return "POST", f"{base}/undo", {}
        case "search":
            return "POST", f"{base}/search", {"query": op.text, "limit": 20, "include_conversation": True}
        case "read":
            return "POST", f"{base}/read", {"page": 500}
        case "show" | "verify":
            return "GET", f"{base}/{op.verb}", None
    raise AssertionError(op.verb)


def read_http_answer(op: Op, said: dict[str, Any]) -> Answer:
    """The body of a response that is no error, as an answer."""
    result = said.get("result", said)
    if op.tool and as_tool(op):
        answer = read_tool_answer(
            str(result.get("text", result.get("content"))), result.get("status") not in ("ok", "queued")
        )
        if op.verb == "search" and answer.error is None:
            return Answer(records=tuple(("", str(found.get("content"))) for found in json.loads(answer.text)))
        return answer
    match op.verb:
        case "read":
            return Answer(records=tuple(record_of(record) for record in result))
        case "search":
            hits = result["hits"] if isinstance(result, dict) else result
            return Answer(records=tuple(record_of(hit["record"]) for hit in hits))
        case "show":
            return Answer(text=result if isinstance(result, str) else result.get("text", ""))
        case "verify":
            return Answer(problems=tuple(result))
        case "erase" | "undo" | "undo_last":
            return Answer()
    return outcome_of(result)


SURFACES: dict[str, Callable[[Path, Path], Surface]] = {
    "api": Api,
    "cli": Cli,
    "shell": Shell,
    "mcp": Mcp,
    "http": Http,
}
