"""The interface between the core and the files a person reads, their names, and the implementation without a folder.

`recollect.memory.files.disk` keeps them in a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Protocol

from recollect.document.blocks import encode_file
from recollect.document.memory_md import template
from recollect.memory.daily_notes import day_of, lines_of_day, noted_records
from recollect.memory.files.day_page import DayPage
from recollect.memory.files.pages import MemoryPage, Page
from recollect.memory.write import Change, Write
from recollect.policy.topics import Topic
from recollect.records import FILES_LEFT, Fact, Record
from recollect.store.contract import Query, Reader, Transaction

MEMORY = "MEMORY.md"


class Files(Protocol):
    """The operations the core needs on files. `DiskFiles` keeps them in a folder; `NoFiles` renders them on request."""

    @property
    def folder(self) -> Path | None: ...

    @property
    def displaced(self) -> bool:
        """True if the last write replaced a file that had been saved or read a moment before."""
        ...

    def edited(self, reader: Reader, *, notes: bool = False) -> bool:
        """Return True if a file differs from what was last rendered."""
        ...

    def take_over(self, write: Write) -> None:
        """Merge the person's edits of MEMORY.md into this write."""
        ...

    def take_over_daily(self, write: Write) -> None:
        """Merge the person's edits of all daily notes into this write."""
        ...

    def words_over(self, write: Write, limit: int) -> int:
        """Return by how many words MEMORY.md is too long, including the changes of this write."""
        ...

    def publish(self, write: Write) -> None:
        """Write the changed files aside, to be renamed into place after the commit."""
        ...

    def discard(self, *, keep: bool = False) -> None:
        """Drop the files written aside by a failed write; ``keep`` them if it may have been committed after all."""
        ...

    def page(self, write: Write, name: str) -> Page:
        """Return a file as this write sees it, edits merged; raise DocumentError if it cannot be read."""
        ...

    def put_page(self, write: Write, name: str, page: Page) -> None:
        """Replace a file with a page that already agrees with the records."""
        ...

    def erase(self, write: Write, records: Sequence[Record]) -> dict[str, int]:
        """Remove every line that says what these records say."""
        ...

    def erase_topic(self, write: Write, topic: Topic) -> dict[str, int]:
        """Remove every line that mentions a topic, including the person's own prose."""
        ...

    def reset(self, write: Write) -> dict[str, int]:
        """Start with an empty MEMORY.md, no daily notes, and no damaged copies of the database."""
        ...

    def damaged_copies(self) -> list[str]:
        """Return the names of databases that a repair set aside."""
        ...

    def text(self, reader: Reader) -> str:
        """Return MEMORY.md."""
        ...

    def daily_text(self, reader: Reader, day: date) -> str:
        """Return the note of one day."""
        ...

    def contents(self, reader: Reader) -> dict[str, bytes]:
        """Return every file by name, for an export."""
        ...

    def restore(self, tx: Transaction, files: Mapping[str, bytes]) -> None:
        """Write files back as they were exported."""
        ...

    def any_text(self) -> bool:
        """Return True if a person already keeps something here."""
        ...

    def problems(self, reader: Reader) -> list[str]:
        """Return the disagreements between files and records."""
        ...


class NoFiles:
    """The files of a store without a folder: MEMORY.md is rendered on request."""

    folder: Path | None = None
    displaced = False

    def edited(self, reader: Reader, *, notes: bool = False) -> bool:
        return False

    def take_over(self, write: Write) -> None:
        pass

    def take_over_daily(self, write: Write) -> None:
        pass

    def words_over(self, write: Write, limit: int) -> int:
        said = sum(len(fact.text.split()) + 1 for fact in write.cache.in_file.values())
        return said + len(template().split()) - limit

    def publish(self, write: Write) -> None:
        pass

    def discard(self, *, keep: bool = False) -> None:
        pass

    def page(self, write: Write, name: str) -> Page:
        text = self.text(write.tx) if name == MEMORY else self.daily_text(write.tx, day_of_file(name))
        return page_of(name, text)

    def put_page(self, write: Write, name: str, page: Page) -> None:
        pass

    def erase(self, write: Write, records: Sequence[Record]) -> dict[str, int]:
        return self._warn(write)

    def erase_topic(self, write: Write, topic: Topic) -> dict[str, int]:
        return self._warn(write)

    def reset(self, write: Write) -> dict[str, int]:
        return self._warn(write)

    @staticmethod
    def _warn(write: Write) -> dict[str, int]:
        """Add a notice if another process keeps files of this user, which cannot be reached from here."""
        number = len(write.tx.files())
        warning = "This process keeps no files, but another one does (MEMORY_FILES): MEMORY.md there was not erased."
        if number and warning not in write.notices:
            write.notices.append(warning)
        return {FILES_LEFT: number} if number else {}

    def damaged_copies(self) -> list[str]:
        return []

    def text(self, reader: Reader) -> str:
        page = MemoryPage.parse(template())
        for fact in reader.find(Query(kinds=("fact",), tier="file")):
            page.put(None, fact)
        return page.render()

    def daily_text(self, reader: Reader, day: date) -> str:
        page = DayPage(day, "")
        for entry in lines_of_day(reader, day):
            page.put(None, entry)
        return page.render()

    def contents(self, reader: Reader) -> dict[str, bytes]:
        days = sorted({day for record in noted_records(reader) if (day := day_of(record))})
        notes = {daily_name(day): encode_file(self.daily_text(reader, day)) for day in days}
        return {MEMORY: encode_file(self.text(reader))} | notes

    def restore(self, tx: Transaction, files: Mapping[str, bytes]) -> None:
        pass

    def any_text(self) -> bool:
        return False

    def problems(self, reader: Reader) -> list[str]:
        return []


def page_of(name: str, text: str) -> Page:
    """Return the file of this name as a page, a new one if there is no text."""
    return MemoryPage.parse(text or template()) if name == MEMORY else DayPage(day_of_file(name), text)


def files_to_change(change: Change) -> list[str]:
    """Return the files that a change concerns; a change that comes from a file is already in that one."""
    shown = {file_of(record) for record in (change.before, change.after) if record is not None}
    if change.written:
        shown.discard(file_of(change.after or change.before))
    return sorted(filter(None, shown))


def file_of(record: Record | None) -> str | None:
    """Return the file that shows a record, or would if it were active; None if none does."""
    day = day_of(record)
    return daily_name(day) if day else MEMORY if isinstance(record, Fact) else None


def records_of_file(reader: Reader, name: str) -> list[Record]:
    """Return the records that a file should show."""
    if name == MEMORY:
        return reader.find(Query(kinds=("fact",), tier="file"))
    return lines_of_day(reader, day_of_file(name))


def daily_name(day: date) -> str:
    return f"memory/{day.isoformat()}.md"


def is_daily(name: str) -> bool:
    """Return True for the name of a daily note."""
    try:
        return daily_name(day_of_file(name)) == name
    except ValueError:
        return False


def lines_place(name: str) -> str:
    """Return the place named in a receipt for erased lines of a file."""
    return "lines of MEMORY.md" if name == MEMORY else "lines of daily notes"


def day_of_file(name: str) -> date:
    return date.fromisoformat(Path(name).stem)
