"""Resolving references to records: by id, by the ending of an id, or by the key of a fact or of a daily entry."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from recollect.document.memory_md import key_of, label_of
from recollect.errors import AmbiguousError, InvalidInputError, NotFoundError
from recollect.records import RECORD_TYPES, DailyEntry, Fact, Message, Note, Record
from recollect.store.contract import Query, Reader

ABOUT = "about"
"""The metadata of a daily entry that reports a change of another record: the id of that record."""
_COMPARED = 2000
"""The number of latest facts searched for suggestions."""


def reports_change(record: Record) -> bool:
    """Return True for a line of a daily note that only reports a change. Its record says the same, and is found."""
    return record.kind == "daily" and ABOUT in record.metadata


def is_id(ref: str) -> bool:
    """Return True if this has the form of a record id."""
    kind, _, rest = ref.partition("-")
    return kind in RECORD_TYPES and len(rest) == 26


def find_record(
    reader: Reader,
    ref: str,
    *,
    category: str | None = None,
    fact_type: str | None = None,
    any_status: bool = False,
    alive_at: datetime | None = None,
) -> Record:
    """Return the record with this id, this key, or this ending of an id. A key names nothing that has expired."""
    found = find_records(reader, ref, category=category, fact_type=fact_type, any_status=any_status, alive_at=alive_at)
    # a fact, or else the latest entry: a key may be that of many daily entries
    found = [record for record in found if record.kind != "daily" or not record.entry_key] or found[-1:]
    active = [record for record in found if record.status == "active"]
    found = active or found[-1:]
    if len(found) > 1:
        raise AmbiguousError(f"{ref!r} could be any of: " + "; ".join(f"{r.id} ({r.text[:60]})" for r in found))
    return found[0]


def find_records(
    reader: Reader,
    ref: str,
    *,
    category: str | None = None,
    fact_type: str | None = None,
    any_status: bool = False,
    alive_at: datetime | None = None,
) -> list[Record]:
    """Return all records that a reference could mean, at least one. An id finds a record of any status."""
    if is_id(ref):
        record = reader.get(ref)
        if record is None:
            raise NotFoundError(f"there is no record {ref}{nearest(reader, ref)}")
        return [record]
    by_key = Query(
        kinds=("fact",),
        key=key_of(ref),
        categories=(category,) if category else (),
        types=(fact_type,) if fact_type else (),
        statuses=() if any_status else ("active",),
        alive_at=alive_at,
    )
    found = reader.find(by_key)
    found += [entry for entry in reader.find(replace(by_key, kinds=("daily",))) if entry.entry_key]
    if not found and len(ref) >= 4 and not category and not fact_type:
        by_ending = (reader.get(record_id) for record_id in reader.ids_ending(ref.lower()))
        found = [record for record in by_ending if record and (any_status or record.status == "active")]
    if not found:
        raise NotFoundError(f"nothing is remembered under {ref!r}{nearest(reader, ref)}")
    return found


def looks_like_id(ref: str) -> bool:
    """Return True if this is meant as an id or a number, and so never as the key of something new."""
    kind, dash, _ = ref.strip().partition("-")
    return ref.strip().lstrip("#").isdigit() or bool(dash and kind in RECORD_TYPES)


def nearest(reader: Reader, ref: str) -> str:
    """Return suggestions as the end of a sentence: active facts with similar keys, or similar ids."""
    facts = reader.find(Query(kinds=("fact",), newest_first=True, limit=_COMPARED))
    keys = list(dict.fromkeys(fact.key for fact in facts if fact.key))
    alike = get_close_matches(key_of(ref), keys, n=3, cutoff=0.6)
    alike += [key for key in keys if key not in alike and key_of(ref) and key_of(ref) in key.split()]
    names = alike[:3]
    if looks_like_id(ref) and not names:
        ids = [record.id for record in facts]
        names = get_close_matches(ref.strip().lower(), ids, n=3, cutoff=0.8)
    return f"; the nearest: {', '.join(names)}" if names else ""


def id_of(reader: Reader, ref: str) -> str:
    """Return the id of a record, including one that was erased and is only in the journal."""
    try:
        return find_record(reader, ref, any_status=True).id
    except NotFoundError:
        if reader.entries(record_id=ref, limit=1):
            return ref
        raise


def find_message(reader: Reader, ref: str) -> Record:
    """Return the message with this id or this ending of an id."""
    record = find_record(reader, ref)
    if not isinstance(record, Message):
        raise InvalidInputError("messages", f"{ref} is a {record.kind}; only messages can be marked important")
    return record


def find_to_change(
    reader: Reader,
    ref: str,
    category: str | None,
    fact_type: str | None,
    *,
    may_be_new: bool,
    alive_at: datetime | None = None,
) -> Record:
    """Return the record to change. Category and type select among records of one key; if none match, they are new
    values. With ``may_be_new``, the error for an unknown record recommends ``remember``.
    """
    if category or fact_type:
        try:
            return find_record(reader, ref, category=category, fact_type=fact_type, alive_at=alive_at)
        except NotFoundError:
            pass
    try:
        record = find_record(reader, ref, alive_at=alive_at)
    except NotFoundError as error:
        if not may_be_new:
            raise
        raise NotFoundError(f"{error}; use remember to add something new") from None
    if record.status != "active":
        raise NotFoundError(f"{record.id} is {record.status}; undo that before changing it")
    return record


def line_text(record: Record) -> str:
    """Return a record as a line for people; a fact as in MEMORY.md, with the label of its key."""
    if isinstance(record, Fact | DailyEntry) and record.entry_key:
        return f"{record.label or label_of(record.entry_key)}: {record.content}"
    if isinstance(record, Note) and record.title:
        return f"{record.title}: {record.content}"
    return record.text
