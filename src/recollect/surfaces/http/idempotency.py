"""Idempotency: a request that is sent twice is executed once.

Its changes are in the journal under a call id derived from the idempotency key, and each execution checks the journal
first, in the same transaction. So a kill between effect and response is safe, and so are concurrent duplicates. The
response is stored for a day; if it was lost, it is rebuilt from the journal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from recollect.errors import InvalidInputError
from recollect.memory.daily_notes import day_of
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
    """Return how a retry of the request is recognised; None without an idempotency key."""
    key = asked.headers.get("idempotency-key")
    if key is None:
        return None
    if not SHORTEST <= len(key) <= LONGEST or not key.isascii() or not key.isprintable():
        raise InvalidInputError("Idempotency-Key", f"must have {SHORTEST} to {LONGEST} printable characters")
    return IdempotentRequest(asked.user, key)


def request_digest(asked: Asked) -> str:
    """Return a hash of the request, the same for a retry."""
    parts = (asked.route.name, asked.name, asked.headers.get("recollect-acting", ""), asked.headers.get("if-match", ""))
    told = "\0".join(parts).encode() + b"\0" + asked.query + b"\0" + asked.body
    return hashlib.sha256(told).hexdigest()


def run_once(
    keys: ApiKeys, asked: Asked, do: Callable[[], Answer], again: Callable[[], Answer], *, keep: bool = True
) -> Answer:
    """Execute a request once, or replay its response. ``again`` rebuilds the response if it was lost."""
    known = idempotent_request(asked)
    if known is None:
        return do()
    request = request_digest(asked)
    if (kept := _stored_answer(keys, known, request)) is not None:
        return kept
    try:
        answer = do()
    except DoneAlreadyError:
        kept = _stored_answer(keys, known, request)  # stored by a concurrent duplicate a moment ago
        if kept is not None:
            return kept
        answer, keep = again(), False  # the first request may be about to store the full response
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
            "Idempotency-Key: this key was used for another request; use a new key for each request",
            field="Idempotency-Key",
        )
    if found[2] is None:
        said = "this was already done; its response was deleted, because something of this user was erased since"
        raise Problem(409, "NotFoundError", said)
    return Answer(found[1], found[2], headers=dict(_REPLAYED))


def draft_answer(keys: ApiKeys, asked: Asked, batch: Memory, answer: Answer) -> None:
    """Store the response of a batch just before it commits, because the journal alone cannot rebuild it."""
    known = idempotent_request(asked)
    entries = batch.history(call=known.call) if known else []
    if known and entries:
        keys.keep_answer(_draft_request(known, entries[-1]), request_digest(asked), answer.status, answer.body)


def drafted_answer(keys: ApiKeys, asked: Asked, last: JournalEntry) -> Answer:
    """Return the stored response of a batch, by its last journal entry."""
    known = idempotent_request(asked)
    found = None if known is None else _stored_answer(keys, _draft_request(known, last), request_digest(asked))
    if found is None:
        raise lost_answer_problem(last)
    return found


def _draft_request(known: IdempotentRequest, last: JournalEntry) -> IdempotentRequest:
    # by its last entry, so that the draft of a failed attempt is not taken for the result
    return IdempotentRequest(known.user, f"{known.key}\n{last.seq} {last.record_id}")


def under_call(memory: Memory, call: str) -> Memory:
    """Return the memory with a check: its first write is skipped if the journal already has this call."""
    written = False

    def may_be_done() -> bool:
        nonlocal written
        first, written = not written, True
        return first

    return memory.acting(call=call)._unless(may_be_done)


def replay_outcome(
    verb: str, arguments: dict[str, Any], entries: Sequence[JournalEntry]
) -> Outcome | Sequence[Outcome] | list[Record] | None:
    """Rebuild the result of a verb from its journal entries."""
    last = entries[-1]
    if verb in ("pause", "resume", "consent", "spend"):
        return None
    if verb in ("erase", "erase_topic", "clear"):
        ids = tuple(dict.fromkeys(entry.record_id for entry in entries if entry.record_id))
        receipt = Receipt(at=last.at, ids=ids, places={"records": len(ids)})
        return Erased(message=f"Already erased {len(ids)}.", receipt=receipt)
    if verb == "undo":
        return Undone(message="Already undone.", entries=tuple(entries))
    if any(entry.erased for entry in entries):
        raise Problem(409, "UndoError", "this was done, and has been erased since")
    changed = [entry.after for entry in entries if entry.after is not None]
    if not changed:
        raise lost_answer_problem(last)
    record, before = changed[-1], last.before
    if verb == "mark_important":
        return changed
    if verb in ("remember", "note", "observe", "episode", "say", "jot", "set_scratch", "update", "pin"):
        if before is not None:
            return Updated(message=f"Updated: {record.text}", record=record, previous=before)
        if verb == "remember" and day_of(record) and arguments.get("durability", "durable") == "durable":
            return Demoted(message=f"Noted for the day: {record.text}", record=record)
        return Written(message=f"Remembered: {record.text}", record=record)
    if verb == "remember_fil":
        return [Written(message=f"Remembered: {record.text}", record=record) for record in changed]
    if verb == "forget":
        return Forgotten(message=f"Forgotten: {record.text}", record=record)
    if verb == "edit":
        return Edited(
            message="Already edited.",
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
        f"this was already done, but its response was lost; see the history of the call {entry.call}",
        call=entry.call,
    )
