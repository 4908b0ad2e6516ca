"""A request sent twice is done once, whatever happens in between.

What it changes is in the journal under a call id that follows from the idempotency key: whoever does it looks there
first, in the same transaction. So a kill between the effect and the answer is safe, and so are two who send it at once.
The answer is kept for a day; if it was lost, it is told again from the journal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from recollect.errors import InvalidInputError
from recollect.memory.memory import Memory
from recollect.memory.write import DoneAlreadyError
from recollect.records import (
    Demoted,
    Edited,
    Erased,
    Forgotten,
    JournalEntry,
    Merged,
    Outcome,
    Receipt,
    Record,
    Undone,
    Updated,
    Written,
)
from recollect.store.keys import ApiKeys, IdempotentRequest
from recollect.surfaces.http.messages import Request as Asked
from recollect.surfaces.http.messages import Response as Answer
from recollect.surfaces.http.problems import Problem

SHORTEST, LONGEST = 8, 200
_REPLAYED = {"idempotent-replayed": "true"}


def idempotent_request(asked: Asked) -> IdempotentRequest | None:
    """How the request will be known if it comes again; None if its sender does not care."""
    key = asked.headers.get("idempotency-key")
    if key is None:
        return None
    if not SHORTEST <= len(key) <= LONGEST or not key.isascii() or not key.isprintable():
        raise InvalidInputError("Idempotency-Key", f"must have {SHORTEST} to {LONGEST} printable characters")
    return IdempotentRequest(asked.user, key)


def request_digest(asked: Asked) -> str:
    """The same for the same request."""
    parts = (asked.route.name, asked.name, asked.headers.get("recollect-acting", ""), asked.headers.get("if-match", ""))
    told = "\0".join(parts).encode() + b"\0" + asked.query + b"\0" + asked.body
    return hashlib.sha256(told).hexdigest()


def run_once(
    keys: ApiKeys, asked: Asked, do: Callable[[], Answer], again: Callable[[], Answer], *, keep: bool = True
) -> Answer:
    """Do it, unless it was done: then the same answer. ``again`` tells what was done if the answer was lost."""
    known = idempotent_request(asked)
    if known is None:
        return do()
    request = request_digest(asked)
    if (kept := _stored_answer(keys, known, request)) is not None:
        return kept
    try:
        answer = do()
    except DoneAlreadyError:
        kept = _stored_answer(keys, known, request)  # by who was first, a moment ago
        if kept is not None:
            return kept
        answer, keep = again(), False  # who was first may be about to keep the whole of it
        answer.headers |= _REPLAYED
    if keep:
        keys.keep_answer(known, request, answer.status, answer.body)
    return answer


def _stored_answer(keys: ApiKeys, known: IdempotentRequest, request: str) -> Answer | None:
    found = keys.answer(known)
    if found is None:
        return None
    if found[0] != request:
        raise Problem(
            409,
            "InvalidInputError",
            "Idempotency-Key: another request was sent with this key; make up a new one for each",
            field="Idempotency-Key",
        )
    if found[2] is None:
        said = "this was done, and what was answered is no longer kept: something of this user was erased since"
        raise Problem(409, "NotFoundError", said)
    return Answer(found[1], found[2], headers=dict(_REPLAYED))


def draft_answer(keys: ApiKeys, asked: Asked, batch: Memory, answer: Answer) -> None:
    """Keep what will be answered once a batch is done, just before it is: the journal alone could not tell it."""
    known = idempotent_request(asked)
    entries = batch.history(call=known.call) if known else []
    if known and entries:
        keys.keep_answer(_draft_request(known, entries[-1]), request_digest(asked), answer.status, answer.body)


def drafted_answer(keys: ApiKeys, asked: Asked, last: JournalEntry) -> Answer:
    """What was to be answered to a batch whose last entry the journal has."""
    known = idempotent_request(asked)
    found = None if known is None else _stored_answer(keys, _draft_request(known, last), request_digest(asked))
    if found is None:
        raise lost_answer_problem(last)
    return found


def _draft_request(known: IdempotentRequest, last: JournalEntry) -> IdempotentRequest:
    # by its last entry: what was drafted for an attempt that failed is not what was done
    return IdempotentRequest(known.user, f"{known.key}\n{last.seq} {last.record_id}")


def under_call(memory: Memory, call: str) -> Memory:
    """The same memory, whose first write is not done if the journal has this call already."""
    written = False

    def may_be_done() -> bool:
        nonlocal written
        first, written = not written, True
        return first

    return memory.acting(call=call)._unless(may_be_done)


def replay_outcome(
    verb: str, arguments: dict[str, Any], entries: Sequence[JournalEntry]
) -> Outcome | list[Record] | None:
    """What a verb returned, from what the journal has of it."""
    last = entries[-1]
    if verb in ("pause", "resume", "consent", "spend"):
        return None
    if verb in ("erase", "erase_topic", "clear"):
        ids = tuple(dict.fromkeys(entry.record_id for entry in entries if entry.record_id))
        receipt = Receipt(at=last.at, ids=ids, places={"records": len(ids)})
        return Erased(message=f"Erased {len(ids)} already.", receipt=receipt)
    if verb == "undo":
        return Undone(message="Undone already.", entries=tuple(entries))
    if any(entry.erased for entry in entries):
        raise Problem(409, "UndoError", "this was done, and erased since")
    changed = [entry.after for entry in entries if entry.after is not None]
    if not changed:
        raise lost_answer_problem(last)
    record, before = changed[-1], last.before
    if verb == "mark_important":
        return changed
    if verb in ("remember", "note", "observe", "episode", "say", "jot", "set_scratch", "update", "pin"):
        if before is not None:
            return Updated(message=f"Updated: {record.text}", record=record, previous=before)
        if verb == "remember" and record.kind == "daily" and arguments.get("durability", "durable") == "durable":
            return Demoted(message=f"Noted for the day: {record.text}", record=record)
        return Written(message=f"Remembered: {record.text}", record=record)
    if verb == "forget":
        return Forgotten(message=f"Forgotten: {record.text}", record=record)
    if verb == "edit":
        return Edited(
            message="Edited already.",
            added=tuple(entry.after for entry in entries if entry.after and entry.before is None),
            updated=tuple(entry.after for entry in entries if entry.after and entry.before and _is_active(entry)),
            removed=tuple(entry.before for entry in entries if entry.before and not _is_active(entry)),
            run=last.run,
        )
    if verb == "merge" and last.run:
        new = next((entry.after for entry in entries if entry.before is None and entry.after), record)
        others = tuple(entry.before for entry in entries if entry.before is not None)
        return Merged(message=f"Merged: {new.text}", record=new, merged=others, run=last.run)
    raise lost_answer_problem(last)


def _is_active(entry: JournalEntry) -> bool:
    return entry.after is not None and entry.after.status == "active"


def lost_answer_problem(entry: JournalEntry) -> Problem:
    return Problem(
        409,
        "DoneAlreadyError",
        f"this was done already, and its answer was lost; see the history of the call {entry.call}",
        call=entry.call,
    )
