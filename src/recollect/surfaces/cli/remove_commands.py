"""The commands that undo, forget and erase, which ask first, and those for pause and consent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from recollect.errors import InvalidInputError, NotFoundError, UndoError
from recollect.records import (
    CONSENT_MEANINGS,
    Consent,
    Erased,
    Forgotten,
    JournalEntry,
    Outcome,
    Receipt,
    Record,
    new_id,
)
from recollect.surfaces.cli.options import DryRun, Given, Yes, argument, option
from recollect.surfaces.cli.output import RECORD_HEAD, count_each, count_memories, record_line, record_rows
from recollect.surfaces.cli.program import CHANGE, REMOVE, command
from recollect.surfaces.cli.session import DONE, NO, CliSession

if TYPE_CHECKING:
    from recollect.memory.memory import Memory

_Topic = Annotated[str | None, option("--topic", "Everything that contains all these words.", "WORDS")]
_MOST_LISTED = 30
_NOT_MEMORIES = {"message": "a message", "scratch": "a value in working memory"}


@command(CHANGE, "recollect undo", "recollect undo 12", "recollect undo run-01k… --yes", writes=True)
def undo_command(
    session: CliSession,
    target: Annotated[
        str | None, argument("TARGET", "A number from the history, or a run (default: the last change).")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Undo a change or a whole run of changes."""
    if target is None:
        _check_last(session)
    outcome = session.rehearse(lambda trial: trial.undo(target))
    several = len(outcome.entries) > 1
    if several or dry_run:
        undone = [record for entry in outcome.entries if (record := entry.before or entry.after)]
        _print_records(session, undone)
    if dry_run:
        return session.print_outcome(outcome, dry_run=True)
    if several and not session.agreed(f"Undo all {len(outcome.entries)} changes?", yes):
        return NO
    first = outcome.entries[0]
    code = session.print_outcome(session.existing_memory.undo(target or first.run or first.seq))
    if not several and first.before is not None:
        session.out.line(f"Restored: {record_line(first.before)}")
    return code


def _check_last(session: CliSession) -> None:
    """Raise `UndoError` with the command to use, if the last thing done was not a change of a memory."""
    from recollect.memory.journal import followed_by, last_change

    entries = session.existing_memory.history()[::-1]
    last = followed_by(entries)
    if last is None:
        return
    change = last_change(entries)
    before = f". The change before it: recollect undo {change.run or change.seq}" if change else ""
    raise UndoError(f"nothing was undone: the last change (entry {last.seq}) was {_describe_last(last)}{before}")


def _describe_last(last: JournalEntry) -> str:
    if last.actor.startswith("link:"):
        return "a link of two channels; to revert it: recollect link undo"
    if last.after is not None:
        return f"{_NOT_MEMORIES.get(last.after.kind, last.op)}; to take it back: recollect undo {last.seq}"
    if last.op == "erase":
        return "an erasure, which cannot be undone"
    back = {
        "consent": f"consent {last.reason} --withdraw",
        "withdraw": f"consent {last.reason}",
        "pause": "resume",
        "incognito": "resume",
        "resume": "pause",
    }.get(last.op)
    return f"the setting {last.op!r}; to change it back: recollect {back}" if back else f"{last.op!r}"


@command(
    REMOVE,
    "recollect forget role",
    'recollect forget --topic "old flat" --dry-run',
    writes=True,
    mirrors="forget",
)
def forget_command(
    session: CliSession,
    given: Given,
    ref: Annotated[str | None, argument("REF", "An id, the end of an id, or the key of a fact.")] = None,
    topic: _Topic = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Archive a record; undo restores it."""
    if ref is None and topic is None:
        raise InvalidInputError("forget", "name a record, or use --topic")
    if ref is not None and topic is not None:
        raise InvalidInputError("forget", "give exactly one of these, not several together: one REF, or --topic WORDS")
    if topic is not None:
        return _forget_topic(session, topic, given.get("reason"), yes, dry_run)
    assert ref is not None
    name = ref

    def act(memory: Memory) -> Outcome:
        return memory.forget(name, **given)

    if not yes:
        outcome = session.rehearse(act)
        if dry_run:
            return session.print_outcome(outcome, dry_run=True)
        session.may_ask(yes)
        if isinstance(outcome, Forgotten):
            _print_records(session, [session.existing_memory.get(outcome.record.id)])
        if not session.agreed("Forget this?", yes):
            return NO
    return session.print_outcome(act(session.existing_memory))


def _forget_topic(session: CliSession, topic: str, reason: str | None, yes: bool, dry_run: bool) -> int:
    found = [
        record for record in session.existing_memory.erase_topic(topic, dry_run=True)[0] if record.status == "active"
    ]
    if not found:
        raise NotFoundError(f"nothing is remembered about {topic!r}")
    session.may_ask(yes, dry_run)
    _print_records(session, found)
    answer = {"outcome": "forgotten", "done": True, "records": found}
    if dry_run:
        session.out.document(answer | {"dry_run": True})
        session.changed_nothing(dry_run)
        return DONE
    if not session.agreed(f"Forget {_count_these(len(found))}?", yes):
        return NO
    run = session.run or new_id("run")
    notices: list[str] = []
    with session.existing_memory.acting(run=run).batch() as memory:
        for record in found:
            notices += memory.forget(record.id, reason=reason or f"forget {topic}").notices
    session.out.document(answer | {"run": run, "notices": list(dict.fromkeys(notices))})
    session.out.line(f"Forgot {count_memories(len(found))}.")
    session.out.asides(dict.fromkeys(notices))
    session.out.aside(f"To undo: recollect undo {run}")
    return DONE


@command(
    REMOVE,
    "recollect erase role",
    'recollect erase --topic "old flat"',
    "recollect erase --everything --user anna",
    writes=True,
)
def erase_command(
    session: CliSession,
    refs: Annotated[list[str] | None, argument("REFS", "Records, by id or key.")] = None,
    topic: _Topic = None,
    everything: Annotated[bool, option("--everything", "The user and everything about them.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> int:
    """Remove records permanently, everywhere; there is no undo."""
    targets = sum((bool(refs), topic is not None, everything))
    if not targets:
        raise InvalidInputError("erase", "name a record, or use --topic or --everything")
    if targets > 1:
        raise InvalidInputError("erase", "give exactly one of these, not several together: REFS, --topic, --everything")
    if everything:
        return _erase_user(session, yes, dry_run)
    if topic is not None:
        return _erase_topic(session, topic, yes, dry_run)
    names = list(refs or ())
    outcome = session.rehearse(lambda trial: trial.erase(*names))
    ids = outcome.receipt.ids
    session.may_ask(yes, dry_run)
    if not yes or dry_run:
        _print_records(session, [session.existing_memory.get(record_id) for record_id in ids])
    if not dry_run:
        if not session.agreed(f"Permanently erase {_count_these(len(ids))}?", yes):
            return NO
        outcome = session.existing_memory.erase(*ids)
    return _print_erasure(session, outcome, dry_run)


def _erase_topic(session: CliSession, topic: str, yes: bool, dry_run: bool) -> int:
    """List what mentions a topic, ask, and erase exactly that."""
    found, receipt = session.rehearse(lambda trial: trial.erase_topic(topic))
    if receipt is None:
        raise NotFoundError(f"nothing is remembered about {topic!r}")
    session.may_ask(yes, dry_run)
    if not yes or dry_run:
        _print_records(session, found)
    if not dry_run:
        target = f"{_count_these(len(found))} and every other mention" if found else "every mention"
        if not session.agreed(f"Permanently erase {target}?", yes):
            return NO
        with session.existing_memory.batch() as memory:
            now, _ = memory.erase_topic(topic, dry_run=True)
            if [record.id for record in now] != [record.id for record in found]:
                raise InvalidInputError("erase", "the memory changed after this list was made; run the command again")
            found, receipt = memory.erase_topic(topic)
        assert receipt is not None
    message = f"Erased {count_memories(len(found))}."
    return _print_erasure(session, Erased(message=message, receipt=receipt, notices=receipt.notices), dry_run)


def _erase_user(session: CliSession, yes: bool, dry_run: bool) -> int:
    memory = session.existing_memory
    held = _describe_contents(memory)
    if dry_run:
        session.out.document({"outcome": "erased", "done": True, "dry_run": True, "user": session.user})
        session.out.line(f"{session.user}: {held}")
        session.changed_nothing(dry_run)
        return DONE
    question = f"Permanently erase the user {session.user!r} and everything about them ({held})?"
    if not session.agreed(question, yes):
        return NO
    receipt = session.recollect.erase_user(session.user)
    left = receipt.left or "Only a tombstone stays, so that older files bring nothing back."
    message = f"Erased {session.user!r}. {left}"
    session.out.document({"outcome": "erased", "done": True, "message": message, "receipt": receipt})
    _print_receipt(session, receipt)
    session.out.line(message)
    return DONE


@command(REMOVE, "recollect clear", "recollect clear --yes", writes=True)
def clear_command(session: CliSession, yes: Yes = False, dry_run: DryRun = False) -> int:
    """Erase everything about the user and start over."""
    memory = session.existing_memory
    if dry_run:
        return _print_erasure(session, session.rehearse(lambda trial: trial.clear()), dry_run)
    if not session.agreed(
        f"Permanently erase everything known about {session.user!r} ({_describe_contents(memory)})?", yes
    ):
        return NO
    return _print_erasure(session, memory.clear(), dry_run)


@command(REMOVE, "recollect pause", "recollect pause --incognito", writes=True, mirrors="pause")
def pause_command(session: CliSession, given: Given) -> None:
    """Stop storing anything until resume."""
    memory = session.memory
    memory.pause(**given)
    session.out.document({"user": session.user, "mode": memory.mode})
    what = (
        "Incognito: nothing is stored or shown"
        if given["incognito"]
        else "Paused: nothing is stored, search still works"
    )
    session.out.line(f"{what}, until `recollect resume`.")


@command(REMOVE, "recollect resume", writes=True)
def resume_command(session: CliSession) -> int:
    """Store and search again after a pause."""
    memory = session.memory
    memory.resume()
    session.out.document({"user": session.user, "mode": memory.mode})
    if not session.config.enabled:
        from recollect.config import TURNED_OFF

        session.out.aside(f"Nothing is stored: {TURNED_OFF}.")
        return NO
    session.out.line("Memory is on.")
    return DONE


@command(
    REMOVE, "recollect consent", "recollect consent across_chats", "recollect consent trends --withdraw", writes=True
)
def consent_command(
    session: CliSession,
    name: Annotated[Consent | None, argument("NAME", "The consent to give or withdraw (default: list all).")] = None,
    withdraw: Annotated[bool, option("--withdraw", "Withdraw the consent.")] = False,
) -> None:
    """Give, withdraw or list consents."""
    if name is None:
        if withdraw:
            raise InvalidInputError("--withdraw", "requires the NAME of a consent; `recollect consent` lists them")
        _list_consents(session, session.existing_memory)
        return
    memory = session.existing_memory if withdraw else session.memory
    memory.consent(name, not withdraw)
    session.out.document({"user": session.user, "consents": memory.consents()})
    session.out.line(
        f"Consent to {name} withdrawn." if withdraw else f"Consent to {name} given: {CONSENT_MEANINGS[name]}."
    )


def _list_consents(session: CliSession, memory: Memory) -> None:
    given = memory.consents()
    rows = [{"name": name, "given": name in given, "means": means} for name, means in CONSENT_MEANINGS.items()]
    session.out.document(rows)
    session.out.table(
        ("consent", "given", "what it means"),
        [(name, "yes" if name in given else "no", means) for name, means in CONSENT_MEANINGS.items()],
    )


def _print_erasure(session: CliSession, outcome: Erased, dry_run: bool) -> int:
    if dry_run:
        outcome = replace(outcome, message=f"Would erase {count_memories(len(outcome.receipt.ids))}.")
    _print_receipt(session, outcome.receipt, dry_run)
    return session.print_outcome(outcome, dry_run=dry_run)


def _print_receipt(session: CliSession, receipt: Receipt, dry_run: bool = False) -> None:
    rows = [(f"{number:,}", place) for place, number in receipt.removed.items()]
    head = "would remove" if dry_run else "removed"
    session.out.table((head, "from"), rows, right=(head,))


def _print_records(session: CliSession, records: Sequence[Record]) -> None:
    session.out.table(RECORD_HEAD, record_rows(records[:_MOST_LISTED]))
    if len(records) > _MOST_LISTED:
        session.out.line(f"… and {len(records) - _MOST_LISTED:,} more")


def _count_these(number: int) -> str:
    return "this memory" if number == 1 else f"these {count_memories(number)}"


def _describe_contents(memory: Memory) -> str:
    return count_each(memory.count()) or "no active records"
