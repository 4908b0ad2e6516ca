"""Files saved at the old place of a joined memory, by an editor that was still open: their new lines are merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone

from recollect.counts import pluralize
from recollect.memory.importers import read_drafts
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting
from recollect.policy.duplicates.comparison import signature
from recollect.records import USER_EDIT, Record, new_id

_LONG_AGO = datetime(1000, 1, 1, tzinfo=timezone.utc)


class SavedAgainError(Exception):
    """The old place has changed meanwhile; the next look merges that."""


def take_in_late_saves(
    person: UserMemory, old: UserMemory, remove: Callable[[str, Callable[[], None]], object]
) -> None:
    """Merge the lines of such files that are not known and were not removed since; then ``remove`` the files.

    The files may be of any age, so what the memory has had before is not new, and what was erased stays erased.
    """
    folder = old.files.folder
    if folder is None or not old.files.any_text() or old.user.exists():
        return
    name, skipped = old.user.user_id, list[str]()
    before = _contents(old)
    drafts = read_drafts(folder, name, None, person.clock(), person.config, skipped)[1]
    if skipped:
        return  # unreadable: the person may still repair it
    with person.write(Acting(run=new_id("run"))) as write:
        states = [state for entry in write.tx.entries() for state in (entry.before, entry.after) if state is not None]
        known = set(map(_statement, states))
        new = [draft.record for draft in drafts if _statement(draft.record) not in known]
        new = [record for record in new if not write.was_erased(replace(record, created_at=_LONG_AGO))]
        merged = sum(write.remember(replace(record, source=USER_EDIT)).done for record in new)
        write.notices.append(
            f"A file of {name}, which is joined with this memory, was saved at its old place."
            f" {pluralize(merged, 'new line')} merged, and the file was removed"
        )
    person.notices += write.notices

    def unchanged() -> None:
        if old.user.exists() or _contents(old) != before:
            raise SavedAgainError

    remove(name, unchanged)


def _contents(memory: UserMemory) -> dict[str, bytes]:
    with memory.user.read() as reader:
        return memory.files.contents(reader)


def _statement(record: Record) -> str:
    return signature(record.content, record.key if record.kind == "fact" else None)
