"""The files a person reads, as the core asks for them: what each is called, and what there is without a folder.

`recollect.memory.files.disk` keeps them in a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Protocol

from recollect.document.blocks import encode_file
from recollect.document.memory_md import template
from recollect.memory.files.pages import DayPage, MemoryPage, Page
from recollect.memory.write import Write
from recollect.policy.topics import Topic
from recollect.records import FILES_LEFT, DailyEntry, Record
from recollect.store.contract import Query, Reader, Transaction

MEMORY = "MEMORY.md"


class Files(Protocol):
    """What the core needs of the files; `DiskFiles` has them in a folder, `NoFiles` only on request."""

    @property
    def folder(self) -> Path | None: ...

    def edited(self, reader: Reader, *, notes: bool = False) -> bool:
        """Whether a file differs from what was last rendered."""
        ...

    def take_over(self, write: Write) -> None:
        """Make what the person changed in MEMORY.md part of this write."""
        ...

    def take_over_daily(self, write: Write) -> None:
        """The same for all daily notes."""
        ...

    def words_over(self, write: Write, limit: int) -> int:
        """By how many words MEMORY.md is too long, with what this write changed."""
        ...

    def publish(self, write: Write) -> None:
        """Write the changed files aside, to be renamed into place after the commit."""
        ...

    def discard(self, *, keep: bool = False) -> None:
        """The write failed: drop what was written aside, unless it may have been committed after all."""
        ...

    def page(self, write: Write, name: str) -> Page:
        """A file as this write sees it, with what the person edited taken over; DocumentError if it cannot be read."""
        ...

    def put_page(self, write: Write, name: str, page: Page) -> None:
        """Have the file say what this page says, as the records do already."""
        ...

    def erase(self, write: Write, records: Sequence[Record]) -> dict[str, int]:
        """Remove every line that says what these records say."""
        ...

    def erase_topic(self, write: Write, topic: Topic) -> dict[str, int]:
        """Remove every line that speaks of a topic, also where the person wrote it beside the memories."""
        ...

    def reset(self, write: Write) -> dict[str, int]:
        """An empty MEMORY.md, no daily notes, and no damaged copies of the database."""
        ...

    def damaged_copies(self) -> list[str]:
        """The names of databases that a repair set aside."""
        ...

    def text(self, reader: Reader) -> str:
        """MEMORY.md."""
        ...

    def daily_text(self, reader: Reader, day: date) -> str:
        """The note of one day."""
        ...

    def contents(self, reader: Reader) -> dict[str, bytes]:
        """Every file, by name, for an export."""
        ...

    def restore(self, tx: Transaction, files: Mapping[str, bytes]) -> None:
        """Put files back as they were exported."""
        ...

    def any_text(self) -> bool:
        """Whether a person already keeps something here."""
        ...

    def problems(self, reader: Reader) -> list[str]:
        """Where files and records disagree."""
        ...


class NoFiles:
    """For a store without a folder: MEMORY.md exists when someone asks for it."""

    folder: Path | None = None

    def edited(self, reader: Reader, *, notes: bool = False) -> bool:
        return False

    def take_over(self, write: Write) -> None:
        pass

    def take_over_daily(self, write: Write) -> None:
        pass

    def words_over(self, write: Write, limit: int) -> int:
        said = sum(len(fact.text.split()) + 1 for fact in write.known.in_file.values())
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
        """Say if another process keeps files of this user: they cannot be reached from here."""
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
        for entry in reader.find(Query(kinds=("daily",), key=day.isoformat())):
            page.put(None, entry)
        return page.render()

    def contents(self, reader: Reader) -> dict[str, bytes]:
        entries = reader.find(Query(kinds=("daily",)))
        days = sorted({entry.day for entry in entries if isinstance(entry, DailyEntry)})
        notes = {daily_name(day): encode_file(self.daily_text(reader, day)) for day in days}
        return {MEMORY: encode_file(self.text(reader))} | notes

    def restore(self, tx: Transaction, files: Mapping[str, bytes]) -> None:
        pass

    def any_text(self) -> bool:
        return False

    def problems(self, reader: Reader) -> list[str]:
        return []


def page_of(name: str, text: str) -> Page:
    """The file of this name as a page, a new one if there is no text."""
    return MemoryPage.parse(text or template()) if name == MEMORY else DayPage(day_of_file(name), text)


def daily_name(day: date) -> str:
    """The file of a day's note."""
    return f"memory/{day.isoformat()}.md"


def is_daily(name: str) -> bool:
    """Whether a file is the note of a day."""
    try:
        return daily_name(day_of_file(name)) == name
    except ValueError:
        return False


def lines_place(name: str) -> str:
    """Where lines of a file were erased, for a receipt."""
    return "lines of MEMORY.md" if name == MEMORY else "lines of daily notes"


def day_of_file(name: str) -> date:
    """The day of a note."""
    return date.fromisoformat(Path(name).stem)
