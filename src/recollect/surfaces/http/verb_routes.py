"""The routes of one user's memory: its verbs, batches, and its state."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, Field

from recollect.app import Recollect
from recollect.errors import InvalidInputError, NothingToRebuildError
from recollect.fields import component_schema
from recollect.memory.memory import Memory
from recollect.memory.paging import PageCursor
from recollect.memory.write import DoneAlreadyError
from recollect.records import JournalEntry, Refused
from recollect.surfaces.http import idempotency
from recollect.surfaces.http.messages import Request, Response, Route, respond
from recollect.surfaces.http.problems import Problem, as_things_are
from recollect.surfaces.http.routes import RouteGroup, route
from recollect.surfaces.http.schema import StrictModel, arguments_of, validate_fields, verb_arguments
from recollect.verbs import ACTING, ELSEWHERE, PAGE, VERBS, Verb

BATCH = tuple(name for name, verb in VERBS.items() if verb.batch)
"""The verbs that can be part of a batch."""
_MOST_OPERATIONS = 1000
ACTING_FIELDS = tuple(ELSEWHERE["acting"].arguments)


def _describe_per_verb(schema: dict[str, Any]) -> None:
    schema.clear()
    schema["anyOf"] = [
        {
            "type": "object",
            "properties": {
                "verb": {"const": name},
                "arguments": component_schema(arguments_of(name).__name__),
            },
            "required": ["verb", *(["arguments"] if _needs_any(name) else [])],
            "additionalProperties": False,
        }
        for name in BATCH
    ]


def _needs_any(name: str) -> bool:
    return any(field.is_required() for field in arguments_of(name).model_fields.values())


class Operation(StrictModel):
    """One verb of a batch."""

    model_config = ConfigDict(json_schema_extra=_describe_per_verb)

    verb: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Batch(StrictModel):
    """Several changes in one transaction."""

    operations: list[Operation] = Field(max_length=_MOST_OPERATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryInfo:
    """The state of a memory, without its content."""

    exists: bool
    mode: str


class VerbRoutes(RouteGroup):
    """The handlers of these routes."""

    def __init__(self, app: Recollect) -> None:
        self._app = app

    def routes(self) -> list[Route]:
        """Return a route for each verb, and those declared below."""
        return [*map(self._verb_route, VERBS.values()), *super().routes()]

    def memory(self, request: Request) -> Memory:
        """Return the memory of a request, acting as its header says."""
        memory = self._app.user(request.user)
        given = request.headers.get(ACTING)
        if given is None:
            return memory
        try:
            acting = json.loads(given)
        except (ValueError, RecursionError):
            acting = None
        if not isinstance(acting, dict) or not set(acting) <= set(ACTING_FIELDS):
            raise InvalidInputError("Recollect-Acting", f"must be a JSON object of {', '.join(ACTING_FIELDS)}")
        return memory.acting(**acting)

    def _verb_route(self, verb: Verb) -> Route:
        statuses = {412: "The file was changed in the meantime"} if verb.name == "edit" else {}
        return Route(
            method=verb.method,
            path=f"/users/{{user}}/{verb.name}",
            name=verb.name,
            does=verb.does,
            scope=verb.scope,
            takes=arguments_of(verb.name),
            returns=verb.returns,
            handle=lambda request: self.verb(verb, request),
            paged=verb.paged,
            repeatable=verb.writes,
            acts=True,
            statuses=statuses,
        )

    def verb(self, verb: Verb, request: Request) -> Response:
        """Run a verb."""
        values = verb_arguments(verb, request.values)
        memory = self.memory(request)
        if not verb.writes:
            return self._reading(verb, memory, values, request)

        def do(here: Memory) -> Response:
            if verb.name == "spend" and here is not memory:
                with here.batch() as batch:
                    _mark_in_journal(batch, [verb])
                    found = self._done(verb, batch, dict(values), request)
            else:
                found = self._done(verb, here, dict(values), request)
            if verb.erases:
                self._app.keys.forget_answers(request.user)
            return respond(found)

        def again(entries: Sequence[JournalEntry]) -> Response:
            return respond(idempotency.replay_outcome(verb.name, values, entries))

        _with_ids(request, [(verb, values)])
        if verb.name == "rebuild" and self._app.config.database_url:
            raise NothingToRebuildError("a memory in PostgreSQL cannot be rebuilt; restore the database from a backup")
        if verb.scope == "admin":  # safe to repeat, so the journal is not needed
            return idempotency.run_once(self._app.keys, request, lambda: do(memory), lambda: do(memory))
        return self._once(
            request, memory, do, again, keep=verb.name != "erase_topic"
        )  # its response contains what was erased

    @route("POST", "/users/{user}/batch", "write", takes=Batch, returns=list[Any], repeatable=True, acts=True)
    def batch(self, request: Request, *, operations: Sequence[Any]) -> Response:
        """Make many changes in one transaction: all or none."""
        changes = []
        for number, one in enumerate(operations):
            if one["verb"] not in BATCH:
                raise InvalidInputError(f"operations[{number}].verb", f"must be one of {', '.join(BATCH)}")
            verb = VERBS[one["verb"]]
            try:
                given = validate_fields(arguments_of(verb.name), one.get("arguments", {}), strict=True)
            except InvalidInputError as error:
                raise InvalidInputError(f"operations[{number}].{error.field}", _problem_text(error)) from None
            changes.append((verb, verb_arguments(verb, given)))
        _with_ids(request, changes)

        memory = self.memory(request)
        erases = any(verb.erases for verb, _ in changes)

        def do(here: Memory) -> Response:
            with here.batch() as batch:
                if here is not memory:
                    _mark_in_journal(batch, [verb for verb, _ in changes])
                with as_things_are():
                    answer = respond([verb.call(batch, dict(given)) for verb, given in changes])
                if here is not memory and not erases:
                    idempotency.draft_answer(self._app.keys, request, batch, answer)
            if erases:
                self._app.keys.forget_answers(request.user)
            return answer

        def again(entries: Sequence[JournalEntry]) -> Response:
            return idempotency.drafted_answer(self._app.keys, request, entries[-1])

        return self._once(request, memory, do, again)

    def _once(
        self,
        request: Request,
        memory: Memory,
        do: Callable[[Memory], Response],
        again: Callable[[Sequence[JournalEntry]], Response],
        *,
        keep: bool = True,
    ) -> Response:
        known = idempotency.idempotent_request(request)
        call = "" if known is None else known.call
        # a call id set by the host stays in the journal; several requests may share it, so it cannot identify one
        own = memory._acting.call is not None
        here = memory if known is None or own else idempotency.under_call(memory, call)

        def do_unless_done() -> Response:
            # if it was already done, the file has changed because of it
            if here is not memory and "if-match" in request.headers and memory.history(call=call, limit=1):
                raise DoneAlreadyError
            return do(here)

        return idempotency.run_once(
            self._app.keys, request, do_unless_done, lambda: again(memory.history(call=call)), keep=keep
        )

    def _reading(self, verb: Verb, memory: Memory, values: dict[str, Any], request: Request) -> Response:
        if verb.paged:
            cursor, size = values.pop("cursor", None), values.pop("page", PAGE)
            with as_things_are():  # a cursor of another list, or an invented one
                walk = PageCursor(size, cursor)
            items = _call_verb(verb, memory._walking(walk), values)
            return respond(items, next=walk.following)
        found = _call_verb(verb, memory, values)
        if verb.name not in ("show", "daily"):
            return respond(found)
        tag = tag_of(found)
        if tag in _tags(request.headers.get("if-none-match", "")):
            return Response(304, headers={"etag": tag})
        answer = respond(found)
        answer.headers["etag"] = tag
        return answer

    def _done(self, verb: Verb, memory: Memory, values: dict[str, Any], request: Request) -> Any:
        wanted = request.headers.get("if-match") if verb.name == "edit" else None
        if wanted is None:
            return _call_verb(verb, memory, values)
        now = memory.show() if values.get("day") is None else memory.daily(values["day"])
        if wanted.strip() != "*" and tag_of(now) not in _tags(wanted):
            raise _changed_problem()
        outcome = _call_verb(verb, memory, {"expect": now} | values)
        if isinstance(outcome, Refused) and outcome.reason == "changed":
            raise _changed_problem()
        return outcome

    @route("GET", "/users/{user}/about", "read")
    def about(self, request: Request) -> MemoryInfo:
        """Return whether the user has a memory, and its mode: on, paused or incognito."""
        memory = self._app.user(request.user)
        return MemoryInfo(exists=memory.exists, mode=memory.mode)


def _call_verb(verb: Verb, memory: Memory, values: dict[str, Any]) -> Any:
    with as_things_are():
        return verb.call(memory, values)


def _mark_in_journal(batch: Memory, verbs: Sequence[Verb]) -> None:
    """Add a journal entry for ledger writes, which have none, so that they are executed once."""
    if any(verb.name == "spend" for verb in verbs):
        assert batch._open is not None
        batch._open.mark("spend", "")


def _with_ids(request: Request, operations: Sequence[tuple[Verb, dict[str, Any]]]) -> None:
    """Give interactions, which are not in the journal, ids derived from the idempotency key, so that each is stored
    once."""
    known = idempotency.idempotent_request(request)
    if known is None:
        return
    for number, (verb, values) in enumerate(operations):
        events = [values] if verb.name == "report" else values["events"] if verb.name == "report_many" else ()
        for place, event in enumerate(events):
            if event.get("id") is None:
                event["id"] = f"event-{known.call}-{number}-{place}"


def tag_of(text: str) -> str:
    """Return the ETag of a text."""
    return f'"{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"'


def _tags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}


def _changed_problem() -> Problem:
    return Problem(
        412, "PreconditionFailedError", "the file was changed in the meantime; read it again and edit the new text"
    )


def _problem_text(error: InvalidInputError) -> str:
    return str(error).removeprefix(f"{error.field}: ")
