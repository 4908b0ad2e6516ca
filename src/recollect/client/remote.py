"""A remote memory: `Memory` whose verbs run on a server."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields as fields_of
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Self, TypeVar, get_origin
from uuid import uuid4

from recollect import checks as check
from recollect import fields
from recollect.client.connection import HttpConnection, segment
from recollect.client.json_values import from_plain, to_plain
from recollect.errors import ConfigError, InvalidInputError, StoreError
from recollect.memory.interaction_log import checked_run
from recollect.memory.interests import Ranked
from recollect.memory.journal import Progress
from recollect.memory.memory import Memory
from recollect.memory.output import open_output
from recollect.memory.transfer import ImportReport, check_source
from recollect.records import ExtractionRun, Interaction, Outcome
from recollect.verbs import ACTING, IDEMPOTENCY, VERBS, Verb

_P = ParamSpec("_P")
_T = TypeVar("_T")
_CHUNK = 1 << 16


class RemoteMemory(Memory):
    """One user's memory on a server, returned by `Client.user`. Thread-safe.

    It has the verbs of `Memory`. The server checks their arguments.
    """

    _lane = "\0"  # not the user's lane, which a server in the same process may need for this request

    def __init__(self, connection: HttpConnection, user_id: str, on_behalf: Mapping[str, Any] | None = None) -> None:
        if not callable(getattr(connection, "ask", None)):
            raise InvalidInputError("connection", "must be what `recollect.client.connect` makes; call that")
        self._connection = connection
        self._sent_along = dict(on_behalf or {})
        self._path = f"users/{segment(user_id)}/"
        self._user_id = user_id

    def __repr__(self) -> str:
        return f"<RemoteMemory of {self.user_id!r}>"

    @property
    def user_id(self) -> str:
        """The user's id."""
        return self._user_id

    @property
    def config(self) -> NoReturn:
        """Not available: the settings are on the server."""
        raise ConfigError("the settings of a remote memory are on its server and cannot be read here")

    @property
    def clock(self) -> NoReturn:
        """Not available: the clock is on the server."""
        raise ConfigError("the clock of a remote memory is on its server and cannot be read here")

    @property
    def in_chat(self) -> bool:
        """True if it acts in a chat and sees only what was said there."""
        return "chat" in self._sent_along

    @contextmanager
    def batch(self) -> Iterator[RemoteBatch]:  # type: ignore[override]  # what a verb returns is known only at the end
        """Make many changes in one transaction. They are sent together at the end of the block.

        Within the block, a verb returns a placeholder for its result: ``batch.remember("…").value``.
        """
        collected = RemoteBatch()
        yield collected
        if not collected.operations:
            return
        told = [
            {"verb": verb.name, "arguments": _plain_arguments(verb, given)} for verb, given, _ in collected.operations
        ]
        headers, again = self._headers(writes=True)
        found = self._connection.ask(
            "POST", self._path + "batch", body={"operations": told}, headers=headers, again=again
        )
        for (verb, _, later), value in zip(collected.operations, found["result"], strict=True):
            later.arrive(from_plain(verb.returns, value))

    @property
    def exists(self) -> bool:
        """True if anything was ever stored for this user."""
        return bool(self._connection.ask("GET", self._path + "about")["result"]["exists"])

    @property
    def mode(self) -> str:
        """The mode: on, paused or incognito."""
        return str(self._connection.ask("GET", self._path + "about")["result"]["mode"])

    def export(self, path: fields.PathName, *, progress: Progress | None = None) -> Path:
        target = check.check_path("path", path)
        with open_output("path", target) as file, self._connection.stream("GET", self._path + "export") as answer:
            for chunk in answer.iter_bytes(_CHUNK):
                file.write(chunk)
        return target

    export.__doc__ = Memory.export.__doc__

    def import_(
        self,
        path: fields.PathName,
        *,
        from_user: fields.FromUser | None = None,
        dry_run: fields.DryRun = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import a Recollect export, an MCP memory.jsonl, a Markdown file, or a mem0 export."""
        source = check.check_path("path", path)
        check_source(source)
        if not source.is_file():
            raise InvalidInputError(
                "path", f"there is no file at {path}; a remote memory imports files only, not folders"
            )
        query = {"name": source.name[-100:], "dry_run": str(dry_run).lower()}
        if from_user is not None:
            query["from_user"] = from_user
        headers = {"content-type": "application/octet-stream", **self._acting_header()}
        with (
            source.open("rb") as file,
            self._connection.stream(
                "POST",
                self._path + "import",
                params=query,
                content=iter(lambda: file.read(_CHUNK), b""),
                headers=headers,
            ) as answer,
        ):
            report: ImportReport = from_plain(ImportReport, json.loads(answer.read())["result"])
            return report

    def rank(self, items: fields.Items, *, limit: fields.Limit | None = None) -> list[Ranked]:
        given = list(items)
        asked: dict[str, Any] = {"items": [_plain_item(item) for item in given]} | (
            {} if limit is None else {"limit": limit}
        )
        found: list[Ranked] = self._ask(VERBS["rank"], asked)
        return [replace(one, item=given[one.position]) for one in found]

    rank.__doc__ = Memory.rank.__doc__

    def report_many(self, events: fields.Events, *, progress: Progress | None = None) -> list[Outcome]:
        told = [_plain_interaction(event) if isinstance(event, Interaction) else event for event in events]
        found: list[Outcome] = self._ask(VERBS["report_many"], {"events": told})
        return found

    report_many.__doc__ = Memory.report_many.__doc__

    def note_run(self, run: fields.Run) -> ExtractionRun:
        noted: ExtractionRun = self._ask(VERBS["note_run"], {"run": checked_run(run)})
        return noted

    note_run.__doc__ = Memory.note_run.__doc__

    # requests

    def _run_verb(self, verb: Verb, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if verb.elsewhere:
            return super()._run_verb(verb, args, kwargs)
        return self._ask(verb, verb.bound(args, kwargs))

    def _on_behalf(self, changed: dict[str, Any]) -> Self:
        return type(self)(self._connection, self.user_id, self._sent_along | changed)

    def _ask(self, verb: Verb, given: dict[str, Any]) -> Any:
        plain = _plain_arguments(verb, given)
        if verb.paged:
            return self._all_pages(verb, plain)
        return from_plain(verb.returns, self._answer(verb, plain)["result"])

    def _all_pages(self, verb: Verb, plain: dict[str, Any]) -> Any:
        items: list[Any] = []
        cursor: str | None = None
        while True:
            answer = self._answer(verb, plain | ({"cursor": cursor} if cursor else {}))
            items += answer["result"]
            cursor = answer["next"]
            if cursor is None:
                return from_plain(verb.returns, items)

    def _answer(self, verb: Verb, plain: dict[str, Any]) -> Any:
        headers, again = self._headers(writes=verb.writes)
        path = self._path + verb.name
        if verb.method == "GET":
            query = {name: _in_query(value) for name, value in plain.items() if value is not None}
            return self._connection.ask("GET", path, query=query, headers=headers)
        return self._connection.ask("POST", path, body=plain, headers=headers, again=again)

    def _acting_header(self) -> dict[str, str]:
        return {ACTING: json.dumps(self._sent_along)} if self._sent_along else {}

    def _headers(self, *, writes: bool) -> tuple[dict[str, str], bool]:
        """Return the headers of a request, and True if it may be retried."""
        if not writes:
            return self._acting_header(), True
        # with the host's own call id in the journal, the server cannot recognise a retry there
        return self._acting_header() | {IDEMPOTENCY: str(uuid4())}, "call" not in self._sent_along


def _plain_arguments(verb: Verb, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as plain data. Raise an error that names one that cannot be sent."""
    plain = {}
    for name, value in given.items():
        origin = get_origin(verb.parameters[name].type)
        if isinstance(value, str) and isinstance(origin, type) and issubclass(origin, Iterable):
            raise InvalidInputError(name, "must be a list, not text")
        try:
            plain[name] = to_plain(value)
            json.dumps(plain[name], allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            raise InvalidInputError(name, "cannot be sent as JSON") from None
    return plain


def _plain_item(item: Any) -> Any:
    """Return an item to rank as plain data: its title, text and topics."""
    if isinstance(item, str | Mapping):
        return item
    return {name: told for name in ("title", "text", "topics") if (told := getattr(item, name, None)) is not None}


def _plain_interaction(event: Interaction) -> dict[str, Any]:
    """Return an interaction as a host reports it; the server sets the time it was stored."""
    told = {one.name: getattr(event, one.name) for one in fields_of(event) if one.name != "reported_at"}
    return {name: value for name, value in told.items() if value is not None}


def _in_query(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


class BatchResult(Generic[_T]):
    """The result of a verb in a batch, available when the batch is done."""

    def __init__(self) -> None:
        self._arrived: list[_T] = []

    def arrive(self, value: _T) -> None:
        """Set the result."""
        self._arrived.append(value)

    @property
    def value(self) -> _T:
        """The result. Raises an error until the batch is done."""
        if not self._arrived:
            raise StoreError("the batch is not done yet; read the result after the with block")
        return self._arrived[0]


def _deferred(verb: Callable[Concatenate[Memory, _P], _T]) -> Callable[Concatenate[RemoteBatch, _P], BatchResult[_T]]:
    def noting(self: RemoteBatch, /, *args: _P.args, **kwargs: _P.kwargs) -> BatchResult[_T]:
        declared = VERBS[verb.__name__]
        later: BatchResult[_T] = BatchResult()
        self.operations.append((declared, declared.bound(args, kwargs), later))
        return later

    functools.update_wrapper(noting, verb)
    return noting


class RemoteBatch:
    """Collects changes to send them together."""

    def __init__(self) -> None:
        self.operations: list[tuple[Verb, dict[str, Any], BatchResult[Any]]] = []

    remember = _deferred(Memory.remember)
    note = _deferred(Memory.note)
    observe = _deferred(Memory.observe)
    remember_fil = _deferred(Memory.remember_fil)
    episode = _deferred(Memory.episode)
    say = _deferred(Memory.say)
    jot = _deferred(Memory.jot)
    set_scratch = _deferred(Memory.set_scratch)
    update = _deferred(Memory.update)
    forget = _deferred(Memory.forget)
    merge = _deferred(Memory.merge)
    pin = _deferred(Memory.pin)
    mark_important = _deferred(Memory.mark_important)
    pause = _deferred(Memory.pause)
    resume = _deferred(Memory.resume)
    consent = _deferred(Memory.consent)
    spend = _deferred(Memory.spend)
    report = _deferred(Memory.report)
    report_many = _deferred(Memory.report_many)
    undo = _deferred(Memory.undo)
    erase = _deferred(Memory.erase)
