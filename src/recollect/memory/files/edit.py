"""Replacing the text of MEMORY.md or a daily note, as if it had been saved in an editor.

Every edit of a file takes the same path (`Page.adopt`), within one write. The person may write anything. For anybody
else the policy applies, and if it refuses one line, the whole text is refused. This module does not touch the disk.
"""

from __future__ import annotations

from dataclasses import replace

from recollect.counts import pluralize
from recollect.document.blocks import parse_blocks
from recollect.memory.files.contract import Files
from recollect.memory.files.pages import Page
from recollect.memory.write import Acting, Change, Write
from recollect.records import Edited, Outcome, Record, Refused, Unchanged, new_id


def edit_file(write: Write, files: Files, acting: Acting, name: str, text: str, expect: str | None) -> Outcome:
    """Replace the text of a file; ``expect`` is the text it must have had before."""
    acting = replace(acting, run=acting.run or new_id("run"))
    page = files.page(write, name)
    before = page.render()
    if not acting.is_person and (paused := write.paused()):
        return paused
    if expect is not None and before != expect:
        message = f"Not edited: {name} has changed in the meantime. Read it again and repeat your change."
        return Refused(reason="changed", message=message)
    if text == before:
        return Unchanged(message=f"{name} already has this text.")
    edited, begun = page.saying(text), len(write.changes)
    with write.on_behalf(acting):
        # the person's own prose stays in their file; without files it cannot be kept
        if (files.folder is None or not acting.is_person) and (refused := _find_refusal(write, page, edited)):
            return refused
        edited.adopt(write, edited.records(write), [(write.last_seq,)], name)
    files.put_page(write, name, edited)
    if files.folder is None and (lines := _prose(edited)):
        write.notices.append(
            f"{name}: {pluralize(lines, 'passage')} of your text not kept, because only facts are kept in a memory"
            " without files"
        )
        if len(write.changes) == begun:
            return Unchanged(message=f"{name}: no fact changed, and without files nothing else is kept.")
    return _edited_outcome(name, write.changes[begun:], acting.run)


def _find_refusal(write: Write, page: Page, edited: Page) -> Refused | None:
    """Return the policy's refusal of the first new passage it objects to, with its line number."""
    there = {block.text.strip() for block in parse_blocks(page.render())}
    items = {item.line: item for item in edited.items}
    line = 1
    for block in parse_blocks(edited.render()):
        if block.text.strip() not in there:
            item = items.get(line)
            if item:
                refused = write.refusal(edited.draft(write, item))
            else:
                refused = None if write.acting.is_person else write.refusal_of_prose(block.text)
            if refused:
                why = refused.message.removeprefix("Not stored: ")
                return replace(refused, message=f"Not edited, because of line {line}: {why}")
        line += block.lines
    return None


def _prose(page: Page) -> int:
    """Count the passages of a page that are neither headings nor remembered."""
    blocks = parse_blocks(page.render())
    said = sum(block.kind not in ("blank", "heading") and not block.is_mark for block in blocks)
    return said - len(page.items)


def _edited_outcome(name: str, changes: list[Change], run: str | None) -> Edited:
    added: list[Record] = []
    updated: list[Record] = []
    removed: list[Record] = []
    for change in changes:
        record = change.after
        if record is None:
            continue
        if record.status != "active":
            removed.append(record)
        else:
            (added if change.before is None else updated).append(record)
    counts = {"added": len(added), "changed": len(updated), "removed": len(removed)}
    told = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    return Edited(
        message=f"Edited {name}: {told or 'no fact changed'}.",
        added=tuple(added),
        updated=tuple(updated),
        removed=tuple(removed),
        run=run if changes else None,
    )
