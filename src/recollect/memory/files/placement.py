"""Where a file is that a person edits, and how our rendering of it gets there.

How a file gets into its place, and what each name says if the process dies there:

1. ``.MEMORY.md.new`` is written, and the transaction is committed with its fingerprint. A file of this name with the
   fingerprint that the database knows is committed but not in place; with any other it was never committed.
2. It is renamed to ``.MEMORY.md.old``. This happens after the commit only, so a file of this name is either the
   committed rendering, by its fingerprint, or
3. after the two files changed places in one step, what was in place until then. If that is not what was read before
   the write, a person saved in between; if some program has it open, they are just saving. Then the two change back,
   and the next write takes the person's text over. What is in ``.MEMORY.md.old`` for any other reason, because the
   process died or a program wrote into the old file late, is taken over by the next write as well.
4. ``.MEMORY.md.old`` is deleted, once it is what it was and nobody has it open.

Whoever changes this order loses a person's save or an acknowledged write: a file is only ever deleted after its
content was recognised as ours, and nothing is ever renamed over a file that was not looked at. Where two files cannot
change places in one step, the old one gets a second name before it is replaced; a file that is renamed into place
between those two steps is lost, one that is written into is not.
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

from recollect.document.blocks import MAX_BYTES, decode
from recollect.errors import DocumentError
from recollect.memory.files import file_system
from recollect.memory.files.file_system import Content
from recollect.memory.files.pages import Page
from recollect.memory.files.versions import Version
from recollect.store.contract import FileState

BEHIND: Final = "behind "
"""Marks the state of a file that could not be read while what it shows was changed. When it comes back, even exactly as
it was, it is merged like a text that a person saved from the version they had."""


PUT_RIGHT: Final = "Put a text file there, or move it away: the next write then makes it again from what is stored"
"""What a person can do about a file that cannot be read."""


def complaint(path: Path) -> str:
    """Return what is wrong with a file that is not as it was rendered; what to do about it, if it cannot be read."""
    try:
        seen = file_system.read(file_system.target_of(path), MAX_BYTES, as_reader=True)
        decode(seen.data if seen else b"")
    except OSError as error:
        return f"it cannot be read ({error.strerror}). {PUT_RIGHT}"
    except DocumentError as error:
        return f"{error}. {PUT_RIGHT}"
    return "not as it was last rendered"


def shown(state: FileState | None) -> str:
    """Return the fingerprint of a file that shows all it should; none if it is behind."""
    return "" if state is None or state.boot.startswith(BEHIND) else state.fingerprint


def versions_of(state: FileState) -> tuple[Version, ...]:
    """Return the versions that somebody may have open, the present one last."""
    return (*state.versions, (state.seq,))


@dataclass(slots=True)
class Found:
    """A file and what is beside it, after finishing what a crash interrupted."""

    disk: Content | None
    versions: tuple[Version, ...]
    late: list[tuple[Path, Content]] = field(default_factory=list)
    """What somebody saved that never was in place, or not for long."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is, through a symbolic link if it is one, and the names beside it."""

    path: Path
    new: Path
    old: Path

    def committed_aside(self, fingerprint: str, disk: Content | None) -> Path | None:
        """The rendering that is committed and not in place yet. What was never committed is deleted."""
        in_place = disk is not None and disk.fingerprint == fingerprint
        written = read_beside(self.new)
        if written is not None:
            if written.fingerprint == fingerprint and not in_place:
                return self.new
            file_system.remove(self.new)
        kept = None if in_place else read_beside(self.old)
        return self.old if kept is not None and kept.fingerprint == fingerprint else None

    def left_open(self) -> list[Path]:
        """Old files that some program had open when they were replaced."""
        return sorted(self.path.parent.glob(f"{self.old.name}-*"))

    def make_room(self, ours: str) -> Path | None:
        """Free the name of the old file. Unless it is a rendering of ours, it stays, under the name returned."""
        busy = file_system.is_being_written(self.old)
        content = read_beside(self.old)
        if content is None:
            return None
        if content.fingerprint == ours and not busy:
            file_system.remove(self.old)
            return None
        spare = file_system.spare_name(self.old)
        os.rename(self.old, spare)
        return spare

    def exchange(self, previous: str, *, unread: bool, erased: bool = False) -> bool:
        """Put our rendering, which has the name of the old file, into place; whether it is there now."""
        if not previous:
            try:
                file_system.move(self.old, self.path)
            except FileExistsError:
                return False  # made in this very moment
            return True
        can_return = file_system.exchange(self.old, self.path)
        if not can_return:
            spare = file_system.spare_name(self.old)
            os.link(self.path, spare)  # so that whoever has it open writes into something that is looked at
            os.replace(self.old, self.path)
            os.rename(spare, self.old)
        # what came out: a person may have saved in between, or be just saving
        try:
            busy = file_system.is_being_written(self.old)  # first: who has closed it will not write after the reading
            out = file_system.read(self.old, MAX_BYTES)
            same = out is not None and out.fingerprint == previous
        except OSError:  # it is no file any more
            out, same, busy = None, False, False
        if same and not busy:
            # who opened it before the exchange may read it only now, so it must be closed before it counts as unread
            had = file_system.is_open_elsewhere(self.old) or not file_system.is_unread(self.old)
            if erased or not (unread and had):
                file_system.remove(self.old)
            return True  # else it was read in the last moment: it stays, to tell the next write
        if not can_return:
            return True  # the next write takes it over from where it is
        if same and out is not None and (erased or not file_system.changed_lately(out.stat[0])):
            return True  # some program merely has it open; what it may write is taken over from there
        file_system.exchange(self.old, self.path)
        return False

    def remove_empty(self) -> None:
        """Remove a note that has no entries any more, unless somebody has just written into it."""
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
        """A file that nobody has looked at yet."""
        file_system.create(self.new, data)
        os.replace(self.new, self.path)


@dataclass(slots=True)
class Sheet:
    """A file in the course of a write."""

    place: Place
    page: Page
    disk: Content | None
    versions: tuple[Version, ...]
    """Those that somebody may have, the one on disk included."""
    committed: str = ""
    """The fingerprint of the last rendering, in place or not."""
    shows: int | None = None
    """The sequence number that the file on disk shows, if it is our rendering."""
    dirty: bool = False
    holds: int = 0
    """How many changes of this write it shows already, because it was made from the records."""
    given: bool = False
    """Whether its text was given anew: then it may say what no record says."""
    erased: bool = False
    """Whether something is removed from it for good."""
    tell_pending: Callable[[str], None] | None = None
    """Whom to tell, of an erasure, that its text is not gone from the file yet."""
    unread: bool = False
    """Whether nobody had read the version on disk when ours was written."""


@lru_cache(1024)
def place_at(path: Path) -> Place:
    return Place(path, path.with_name(f".{path.name}.new"), path.with_name(f".{path.name}.old"))


def read_beside(path: Path) -> Content | None:
    """A file of ours beside the one in place. Whatever else has its name is put out of the way, and never followed."""
    try:
        return file_system.read(path, MAX_BYTES)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        os.rename(path, file_system.spare_name(path.with_name(f"{path.name}.odd")))
        return None
