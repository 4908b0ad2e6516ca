"""The path of a file that a person edits, and how our rendering is put in its place.

The steps, and what each name means if the process dies there:

1. ``.MEMORY.md.new`` is written, and the transaction is committed with its fingerprint. A file of this name with the
   fingerprint that the database knows is committed but not in place; with any other it was never committed.
2. It is renamed to ``.MEMORY.md.old``. This happens only after the commit, so a file of this name is either the
   committed rendering, by its fingerprint, or
3. after the two files were exchanged atomically, what was in place until then. If that is not what was read before
   the write, a person saved in between; if a program has it open, they are just saving. It stays there, and the next
   read or write merges it once nobody writes to it: this one's own, if it can. Exchanging the two back would lose it:
   whoever had looked at our rendering in between would save over it.
4. ``.MEMORY.md.old`` is deleted, once its content is as expected and no program has it open.

Changing this order loses a person's save or an acknowledged write: a file is deleted only after its content was
recognised as ours, and nothing is renamed over a file that was not inspected. Where two files cannot be exchanged
atomically, the old one gets a second name before it is replaced; a file that is renamed into place between those two
steps is lost, one that is written to is not.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from recollect.document.blocks import MAX_BYTES, decode_file
from recollect.errors import DocumentError
from recollect.memory.files import file_system
from recollect.memory.files.file_system import Content
from recollect.memory.files.pages import Page
from recollect.memory.files.versions import Version
from recollect.store.contract import FileState

BEHIND: Final = "behind "
"""The mark of a file that could not be read while the records it shows changed. When it comes back, even unchanged, it
is merged like a text that a person saved from the version they had.
"""


PUT_RIGHT: Final = "Put a text file there, or move it away: the next write then makes it again from what is stored"
"""What a person can do about a file that cannot be read."""


def complaint(path: Path) -> str:
    """Return what is wrong with a file that is not as it was rendered; what to do about it, if it cannot be read."""
    try:
        seen = file_system.read(file_system.target_of(path), MAX_BYTES, as_reader=True)
        decode_file(seen.data if seen else b"")
    except OSError as error:
        return f"it cannot be read ({error.strerror}). {PUT_RIGHT}"
    except DocumentError as error:
        return f"{error}. {PUT_RIGHT}"
    return "differs from what was last rendered"


def shown_hash(state: FileState | None) -> str:
    """Return the fingerprint of a file that shows everything it should; empty if it is behind."""
    return "" if state is None or state.boot.startswith(BEHIND) else state.fingerprint


def versions_of(state: FileState) -> tuple[Version, ...]:
    """Return the versions that somebody may have open, the present one last."""
    return (*state.versions, (state.seq,))


@dataclass(slots=True)
class OnDisk:
    """A file and what is beside it, after finishing what a crash interrupted."""

    disk: Content | None
    versions: tuple[Version, ...]
    late: list[tuple[Path, Content]] = field(default_factory=list)
    """Saves that were never in place, or not for long."""


@dataclass(frozen=True, slots=True)
class Place:
    """The path of a file, with symbolic links resolved, and the names beside it."""

    path: Path
    new: Path
    old: Path

    def committed_aside(self, fingerprint: str, disk: Content | None) -> Path | None:
        """Return the rendering that is committed but not in place yet. Delete one that was never committed."""
        in_place = disk is not None and disk.fingerprint == fingerprint
        written = read_aside(self.new)
        if written is not None:
            if written.fingerprint == fingerprint and not in_place:
                return self.new
            file_system.remove(self.new)
        kept = None if in_place else read_aside(self.old)
        return self.old if kept is not None and kept.fingerprint == fingerprint else None

    def left_open(self) -> list[Path]:
        """Return old files that a program had open when they were replaced."""
        return sorted(self.path.parent.glob(f"{self.old.name}-*"))

    def make_room(self, ours: str) -> Path | None:
        """Free the name of the old file. Unless it is our rendering, it is kept under the name returned."""
        busy = file_system.is_being_written(self.old)
        content = read_aside(self.old)
        if content is None:
            return None
        if content.fingerprint == ours and not busy:
            file_system.remove(self.old)
            return None
        spare = file_system.spare_name(self.old)
        os.rename(self.old, spare)
        return spare

    def exchange(self, previous: str, *, unread: bool, erased: bool = False) -> bool:
        """Move our rendering from the old file's name into place; return True if it is there now."""
        if not previous:
            try:
                file_system.move(self.old, self.path)
            except FileExistsError:
                return False  # created just now
            return True
        if not file_system.exchange(self.old, self.path):
            spare = file_system.spare_name(self.old)
            os.link(self.path, spare)  # so that a program that has it open writes to something we inspect
            os.replace(self.old, self.path)
            os.rename(spare, self.old)
        # inspect what came out: a person may have saved in between, or be saving now
        try:
            busy = file_system.is_being_written(
                self.old
            )  # first: a program that has closed it will not write after the reading
            out = file_system.read(self.old, MAX_BYTES)
            same = out is not None and out.fingerprint == previous
        except OSError:  # it is not a file any more
            out, same, busy = None, False, False
        if same and not busy:
            # a program that opened it before the exchange may read it only now, so it must be closed to count as unread
            had = file_system.is_open_elsewhere(self.old) or not file_system.is_unread(self.old)
            if erased or not (unread and had):
                file_system.remove(self.old)
            return True  # otherwise it was read at the last moment: it stays, to tell the next write
        return True  # a save, or a program that has it open: what it says is merged from there

    def remove_empty(self) -> None:
        """Remove a note without entries, unless somebody has just written to it."""
        if os.path.lexists(self.old):
            return
        with suppress(FileNotFoundError):
            os.rename(self.path, self.old)
            busy = file_system.is_being_written(self.old)
            left = file_system.read(self.old, MAX_BYTES)
            if left is not None and not left.data and not busy:
                file_system.remove(self.old)
            else:
                with suppress(FileExistsError):
                    file_system.move(self.old, self.path)

    def put(self, data: bytes) -> None:
        """Write a file that nobody has read yet."""
        file_system.create(self.new, data)
        os.replace(self.new, self.path)


@dataclass(slots=True)
class Sheet:
    place: Place
    page: Page
    disk: Content | None
    versions: tuple[Version, ...]
    """The versions that somebody may have, including the one on disk."""
    committed: str = ""
    """The fingerprint of the last rendering, in place or not."""
    shows: int | None = None
    """The sequence number that the file on disk shows, if it is our rendering."""
    dirty: bool = False
    holds: int = 0
    """The number of changes of this write it already shows, because it was made from the records."""
    given: bool = False
    """True if its text was replaced: then it may say what no record says."""
    erased: bool = False
    """True if something is erased from it."""
    tell_pending: Callable[[str], None] | None = None
    """The callback for an erasure whose text is not gone from the file yet."""
    unread: bool = False
    """True if nobody had read the version on disk when ours was written."""


@lru_cache(1024)
def place_at(path: Path) -> Place:
    return Place(path, path.with_name(f".{path.name}.new"), path.with_name(f".{path.name}.old"))


def read_aside(path: Path) -> Content | None:
    """Read a file of ours beside the one in place. Anything else of that name is moved away, never followed."""
    try:
        return file_system.read(path, MAX_BYTES)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        os.rename(path, file_system.spare_name(path.with_name(f"{path.name}.odd")))
        return None
