"""Interactions that a host application reports, and the log of extraction runs.

Interactions are checked, cleaned of secrets and stored for a limited time, without journal and files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from recollect import checks as check
from recollect import fields
from recollect.errors import InvalidInputError
from recollect.memory.journal import Progress
from recollect.memory.refusals import mask_session
from recollect.memory.write import mask_data
from recollect.policy.secrets import find_secrets, mask
from recollect.records import INTERACTION_KINDS, ExtractionRun, Interaction, Reported, new_id
from recollect.store.contract import Transaction
from recollect.times import from_text, parse_moment, to_text

MAX_ERROR = 2_000
_AHEAD = timedelta(minutes=5)
"""The limit for how far the host application's clock may be ahead of ours."""
_STEP = 1000
_FIELDS = tuple(field.name for field in fields_of(Interaction) if field.name != "reported_at")
_INSTANT = timedelta(microseconds=1)
_OPTIONAL = frozenset({"duration_ms", "error", "tier"})
_NUMBERS = frozenset({"card number", "bank account", "PIN"})


def parse_interaction(kind: object, *, now: datetime, in_session: str | None = None, **given: Any) -> Interaction:
    """Return a validated interaction. Secrets in its texts are masked."""
    drafted = Interaction(
        kind=check.check_choice("kind", kind, INTERACTION_KINDS),
        id=check.check_optional_line("id", given.get("id"), 200) or new_id("event"),
        at=_check_interaction_time(given.get("at"), now),
        item=_address(check.check_optional_line("item", given.get("item"))),
        title=mask_data(check.check_optional_line("title", given.get("title"))),
        value=mask_data(check.check_optional_line("value", given.get("value"), 200)),
        topics=tuple(map(mask, check.check_words("topics", given.get("topics") or ()))),
        text=mask_data(check.check_optional_text("text", given.get("text"), fields.MAX_REPORTED)),
        session=mask_session(check.check_optional_line("session", given.get("session")) or in_session),
        metadata=mask_data(check.check_metadata("metadata", given.get("metadata"))),
    )
    if drafted.kind in ("reaction", "command") and drafted.value is None:
        example = "👍" if drafted.kind == "reaction" else "/saved"
        raise InvalidInputError("value", f"is required for a {drafted.kind}, such as {example}")
    if not (drafted.item or drafted.title or drafted.value or drafted.text or drafted.session):
        raise InvalidInputError("title", f"is required for a {drafted.kind}, unless an item, text or session is given")
    return drafted


def parse_interactions(
    events: Iterable[Mapping[str, Any] | Interaction], *, now: datetime, in_session: str | None = None
) -> list[Interaction]:
    """Return many validated interactions; an error names the position, from 0."""
    drafted = []
    for number, event in enumerate(events):
        try:
            drafted.append(_interaction_of(event, now, in_session))
        except InvalidInputError as error:
            raise InvalidInputError(f"events[{number}]", str(error)) from None
    return drafted


def read_lines(lines: Iterable[str], *, now: datetime) -> Iterator[Interaction | InvalidInputError | None]:
    """Yield each line of JSON Lines as an interaction or an error; None for an empty line."""
    for line in lines:
        if not line.strip("\ufeff \t\r\n"):
            yield None
            continue
        try:
            yield _interaction_of(json.loads(line.lstrip("\ufeff")), now, None)
        except InvalidInputError as error:
            yield error
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
            yield InvalidInputError("event", f"is not JSON ({reason})")


def _interaction_of(event: object, now: datetime, in_session: str | None) -> Interaction:
    if isinstance(event, Interaction):
        event = {name: getattr(event, name) for name in _FIELDS}
    if not isinstance(event, Mapping):
        raise InvalidInputError("event", f"must be a mapping of {', '.join(_FIELDS)}, not {type(event).__name__}")
    if unknown := [name for name in event if name not in (*_FIELDS, "reported_at")]:
        raise InvalidInputError(str(unknown[0])[:40], f"is not a field of an interaction: {', '.join(_FIELDS)}")
    return parse_interaction(**({"kind": None} | dict(event)), now=now, in_session=in_session)


ERASED_REPORT = "Not stored: the person had this erased."


def store_interactions(
    tx: Transaction, drafts: list[Interaction], now: datetime, progress: Progress | None = None
) -> list[Reported]:
    """Store interactions; one whose id is known stays as first reported."""
    outcomes = []
    last = tx.last_reported()
    # later than everything stored, even if the clocks of machines differ: whoever has read those has not read these
    reported_at = now if last is None else max(now, last + _INSTANT)
    for start in range(0, len(drafts), _STEP):
        part = drafts[start : start + _STEP]
        known = {one.id: one for one in tx.interactions(ids=[one.id for one in part])}
        fresh = []
        erased = _erased_ids(tx, part)
        for draft in part:
            one = replace(draft, reported_at=reported_at)
            if one.id in erased and one.id not in known:
                outcomes.append(Reported(message=ERASED_REPORT, interaction=one, fresh=False))
                continue
            first = known.setdefault(one.id, one)
            if first is one:
                fresh.append(one)
            done = "Reported" if first is one else "Already reported"
            outcomes.append(
                Reported(message=f"{done}: {describe_interaction(first)}", interaction=first, fresh=first is one)
            )
        tx.put_interactions(fresh)
        if progress:
            progress(start + len(part), len(drafts))
    return outcomes


def interaction_hash(secret: bytes, interaction_id: str) -> str:
    """Return the hash that recognises an erased interaction if it is reported or imported again."""
    return hashlib.blake2b(f"interaction {interaction_id}".encode(), key=secret, digest_size=16).hexdigest()


def erased_interactions(
    secrets: Iterable[bytes], buried: Container[str], interactions: Iterable[Interaction]
) -> set[str]:
    """Return the ids of the interactions that one of these tombstones recognises, under any of these secrets."""
    keys = list(secrets)
    return {one.id for one in interactions if any(interaction_hash(key, one.id) in buried for key in keys)}


def _erased_ids(tx: Transaction, drafts: list[Interaction]) -> set[str]:
    secret = tx.state().secret
    hashes = {interaction_hash(secret, one.id): one.id for one in drafts}
    return {hashes[tombstone.hash] for tombstone in tx.tombstones(list(hashes))}


def describe_interaction(one: Interaction) -> str:
    """Return a short description of an interaction."""
    about = one.title or one.item or one.text or one.session
    return ", ".join(filter(None, [f"{one.kind} {one.value}" if one.value else one.kind, about]))


def checked_run(run: ExtractionRun) -> ExtractionRun:
    """Return an extraction run that can be stored; its error text is shortened and cleaned rather than refused."""
    if not isinstance(run, ExtractionRun):
        raise InvalidInputError("run", f"must be an ExtractionRun, not {type(run).__name__}")
    error = None if run.error is None else mask(check.check_query("error", run.error)).strip()[:MAX_ERROR]
    run = replace(run, error=error or None)
    given = {name: getattr(run, name) for name in fields.RUN}
    known = {name: value for name, value in given.items() if value is not None or name not in _OPTIONAL}
    checked = {name: fields.RUN[name].check(name, value) for name, value in known.items()}
    return replace(run, **checked | {"details": mask_data(checked["details"])})


# as plain data, for export


def event_to_dict(thing: Interaction | ExtractionRun) -> dict[str, Any]:
    """Return JSON-ready data without unset fields."""
    data = {field.name: getattr(thing, field.name) for field in fields_of(thing)}
    for name, value in data.items():
        if isinstance(value, datetime):
            data[name] = to_text(value)
        elif isinstance(value, date):
            data[name] = value.isoformat()
        elif isinstance(value, tuple):
            data[name] = list(value)
    return {name: value for name, value in data.items() if value not in (None, [], {})}


def interaction_from_dict(data: dict[str, Any]) -> Interaction:
    """Invert `event_to_dict`."""
    moments = {name: from_text(data[name]) for name in ("at", "reported_at") if name in data}
    return Interaction(**data | moments | {"topics": tuple(data.get("topics", ()))})


def run_from_dict(data: dict[str, Any]) -> ExtractionRun:
    """Invert `event_to_dict`."""
    moments = {"day": date.fromisoformat(data["day"]), "started_at": from_text(data["started_at"])}
    return ExtractionRun(**data | moments)


def _check_interaction_time(given: object, now: datetime) -> datetime:
    if given is None:
        return now
    moment = parse_moment("at", given)
    if _lacks_zone(given):
        raise InvalidInputError("at", f"{given!s} has no time zone; add one, as in {to_text(moment)}")
    if moment > now + _AHEAD:
        raise InvalidInputError("at", f"{to_text(moment)} is in the future; it is {to_text(now)} now")
    return moment


def _lacks_zone(given: object) -> bool:
    """Return True for a time without a zone. A day alone is a day in UTC."""
    if isinstance(given, str):
        try:
            date.fromisoformat(given.strip())
        except ValueError:
            return datetime.fromisoformat(given.strip()).tzinfo is None
        return False
    return isinstance(given, datetime) and given.tzinfo is None


def _address(item: str | None) -> str | None:
    """Return the name of an item, secrets masked; a number is kept, whatever its check digits say."""
    if item is None or all(secret.kind in _NUMBERS for secret in find_secrets(item)):
        return item
    return mask(item)
