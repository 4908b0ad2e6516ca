"""The files a person reads, brought into step with the store, both ways.

Before a write, what the person edited is taken over and becomes ordinary changes in the journal. After it,
MEMORY.md and the daily notes are written aside within the transaction and renamed into place right after
the commit, all under the user's write lock. A file written aside that is still there after a crash says
that the rename did not happen; a file on disk that we did not render was edited by a person.

Files are not synced to disk one by one: the database holds everything they show. After a loss of power a
file may be older than the database believes; that is recognised by the machine having started anew since,
and then a missing line is no proof that a person deleted it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from recollect.core.files import MEMORY, NoFiles, daily_name, day_of, is_daily, page_of
from recollect.core.pages import MemoryPage, Page
from recollect.core.writing import Write
from recollect.document.blocks import decode, encode
from recollect.errors import DocumentError, storage_error
from recollect.records import DailyEntry, Fact, Record
from recollect.store.contract import FileState, Query, Reader, Transaction
from recollect.times import utc_now

_RACY_SECONDS = 0.1
_COPIES = "memory.db.damaged-*"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as we last saw it on disk."""

    stat: tuple[int, int, int]
    at: float
    data: bytes
    fingerprint: str

    def trusted(self) -> bool:
        """Whether an unchanged time stamp proves an unchanged file: not if it is too fresh to tell."""
        return self.at - self.stat[0] / 1e9 > _RACY_SECONDS


@dataclass(slots=True)
class _Sheet:
    """A file in the course of a write."""

    page: Page
    disk: _Seen | None
    base_seq: int | None
    dirty: bool = False
    holds: int = 0
    """How many changes of this write it shows already, because it was made from the records."""
    given: bool = False
    """Whether its text was given anew: then it may say what no record says."""


class DiskFiles:
    """MEMORY.md and ``memory/YYYY-MM-DD.md`` in the user's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, _Seen] = {}
        self._pages: dict[str, tuple[str, Page]] = {}
        self._sheets: dict[str, _Sheet | None] = {}
        self._problems: dict[str, str] = {}
        self._memory_state: FileState | None = None
        self._applied = 0
        self._swept = False

    # what the person did

    def edited(self, reader: Reader, *, notes: bool = False) -> bool:
        if not self._is_as_rendered(MEMORY, reader.file(MEMORY)):
            return True
        if not notes:
            return False
        states = {state.name: state for state in reader.files()}
        return any(not self._is_as_rendered(name, states.get(name)) for name in {*self._daily_names(), *states})

    def take_over(self, write: Write) -> None:
        self._sheets = {}
        self._applied = 0
        if not self._swept:
            self._sweep(write.tx)
        state = self._memory_state = write.tx.file(MEMORY)
        if state is None:
            self._open(write, MEMORY, state)
            for name in self._daily_names():
                self._open(write, name, None)
        elif not self._is_as_rendered(MEMORY, state):
            self._open(write, MEMORY, state)

    def _sweep(self, tx: Transaction) -> None:
        """Once: finish what a process that died had committed, and delete what it had not."""
        for aside in [*self.folder.glob(f".{MEMORY}.new"), *self.folder.glob("memory/.????-??-??.md.new")]:
            path = aside.with_name(aside.name[1 : -len(".new")])
            name = path.relative_to(self.folder).as_posix()
            state = tx.file(name)
            with suppress(OSError):
                disk, written = self._look(path), self._look(aside)
                if state is None or written is None or written.fingerprint != state.fingerprint:
                    aside.unlink()
                elif (disk.fingerprint if disk else "") == state.previous_fingerprint:
                    os.replace(aside, path)
                    if not written.data and name != MEMORY:
                        path.unlink()
        self._swept = True

    def take_over_daily(self, write: Write) -> None:
        states = {state.name: state for state in write.tx.files()}
        for name in sorted({*self._daily_names(), *states} - {MEMORY}):
            state = states.get(name)
            if not self._is_as_rendered(name, state):
                self._open(write, name, state)
            elif state is not None and state.fingerprint == _fingerprint(b""):
                write.tx.drop_file(name)  # removed with its last entry, and gone

    def _sheet(self, write: Write, name: str) -> _Sheet | None:
        """The file as this write sees it, the person's edits taken over; None if it cannot be read."""
        if name not in self._sheets:
            state = write.tx.file(name) if name != MEMORY else self._memory_state
            seen, cached = self._seen.get(name), self._pages.get(name)
            if state and seen and cached and seen.fingerprint == cached[0] == state.fingerprint and name == MEMORY:
                self._sheets[name] = _Sheet(cached[1].copy(), seen, state.seq)  # looked at when this write began
            else:
                self._open(write, name, state)
        return self._sheets[name]

    def _open(self, write: Write, name: str, state: FileState | None) -> None:
        try:
            disk, base_seq = self._settled(name, state)
            text = decode(disk.data) if disk else ""
        except OSError as error:
            return self._blocked(write, name, f"it cannot be read ({error.strerror})")
        except DocumentError as error:
            return self._blocked(write, name, str(error))
        if state is not None and disk is not None and disk.fingerprint == state.fingerprint:
            cached = self._pages.get(name)
            page = cached[1].copy() if cached and cached[0] == disk.fingerprint else page_of(name, text)
            self._sheets[name] = _Sheet(page, disk, base_seq)
            return None
        lost = not text.strip("\ufeff \t\r\n")
        page = page_of(name, "" if lost else text)
        sheet = self._sheets[name] = _Sheet(page, disk, base_seq, dirty=True)
        records = page.records(write)
        if not lost:
            with write.as_person():
                page.adopt(write, records, base_seq, name)
            sheet.holds = len(write.changes)
            return None
        for record in records:
            page.put(None, record)
        sheet.holds = len(write.changes)
        if state is not None and records:
            how = "was empty" if disk else "was missing"
            write.notices.append(f"{name} {how} and was written again from memory; nothing was forgotten")
        return None

    def _settled(self, name: str, state: FileState | None) -> tuple[_Seen | None, int | None]:
        """The file on disk and the sequence number it shows, after finishing what a crash interrupted.

        None for the number if the machine was started anew since: then an older file may have come back.
        """
        path, aside = self._paths(name)
        disk = self._look(path)
        if state is None:
            return disk, 0
        base_seq = state.seq
        if (written := self._look(aside)) is not None:
            if written.fingerprint == state.fingerprint:
                # committed, but the process died before the rename
                if (disk.fingerprint if disk else "") == state.previous_fingerprint:
                    os.replace(aside, path)
                    return self._look(path), base_seq
                base_seq = state.previous_seq
            aside.unlink(missing_ok=True)
        return disk, base_seq if state.boot == _boot() else None

    def _blocked(self, write: Write, name: str, problem: str) -> None:
        self._sheets[name] = None
        self._problems[name] = problem
        write.notices.append(
            f"{name} was left as it is: {problem}. What you change meanwhile is stored, and goes into the file"
            " once it can be read again"
        )

    # what is to be written

    def words_over(self, write: Write, limit: int) -> int:
        self._bring_up_to_date(write)
        sheet = self._sheets.get(MEMORY)
        if sheet is None or not sheet.dirty:
            return 0
        assert isinstance(sheet.page, MemoryPage)
        return sheet.page.word_count - limit

    def publish(self, write: Write) -> None:
        self._bring_up_to_date(write)
        for name, sheet in self._sheets.items():
            if sheet is not None and sheet.dirty:
                self._write_aside(write.tx, name, sheet, write.last_seq, write.notices)

    def _bring_up_to_date(self, write: Write) -> None:
        net: dict[str, dict[str, tuple[Record | None, Record | None]]] = {}
        number = self._applied
        while number < len(write.changes):  # opening a page can add changes of its own
            change = write.changes[number]
            record = change.after or change.before
            if not change.written and isinstance(record, Fact | DailyEntry):
                name = MEMORY if isinstance(record, Fact) else daily_name(record.day)
                sheet = self._sheet(write, name)
                if sheet is not None and number >= sheet.holds:
                    changed = net.setdefault(name, {})
                    first = changed[record.id][0] if record.id in changed else change.before
                    changed[record.id] = (first, change.after)
            number += 1
        self._applied = number
        for name, changed in net.items():
            sheet = self._sheets[name]
            if sheet is not None:
                sheet.dirty |= sheet.page.put_all(list(changed.values()))

    def _write_aside(self, tx: Transaction, name: str, sheet: _Sheet, seq: int, notices: list[str]) -> None:
        _, aside = self._paths(name)
        data = encode(sheet.page.render())
        fingerprint = _fingerprint(data)
        previous = sheet.disk.fingerprint if sheet.disk else ""
        state = FileState(
            name=name,
            fingerprint=fingerprint,
            seq=seq,
            previous_fingerprint=previous,
            previous_seq=sheet.base_seq or 0,
            boot=_boot(),
        )
        tx.set_file(state)
        self._pages[name] = (fingerprint, sheet.page)
        if fingerprint == previous:
            return
        try:
            _write_file(aside, data)
        except OSError as error:
            raise storage_error(error, self.folder) from error
        tx.after_commit(lambda: self._rename(name, sheet, data, fingerprint, notices))

    def _rename(self, name: str, sheet: _Sheet, data: bytes, fingerprint: str, notices: list[str]) -> None:
        path, aside = self._paths(name)
        try:
            if _stat(path) != (sheet.disk.stat if sheet.disk else None):
                self._seen.pop(name, None)
                if sheet.given:
                    notices.append(
                        f"{name} was saved by someone else in the same moment; of your text its facts are kept"
                    )
                return  # edited in this very moment: the next write takes it over
            os.replace(aside, path)
            stat = _stat(path)
            if not data and name != MEMORY:
                path.unlink()
                stat = None
            if stat is not None:
                self._seen[name] = _Seen(stat, utc_now().timestamp(), data, fingerprint)
        except OSError as error:
            notices.append(f"{name} could not be brought up to date ({error.strerror}); the next write tries again")

    def discard(self, *, keep: bool = False) -> None:
        for name in self._sheets:
            if not keep:
                with suppress(OSError):
                    self._paths(name)[1].unlink(missing_ok=True)
        self._sheets, self._pages, self._seen = {}, {}, {}

    # a text given anew

    def page(self, write: Write, name: str) -> Page:
        self._bring_up_to_date(write)
        sheet = self._sheet(write, name)
        if sheet is None:
            raise DocumentError(f"{name} cannot be edited here: {self._problems[name]}")
        return sheet.page

    def put_page(self, write: Write, name: str, page: Page) -> None:
        sheet = self._sheet(write, name)
        assert sheet is not None
        sheet.page, sheet.dirty, sheet.given, sheet.holds = page, True, True, len(write.changes)

    # removing

    def erase(self, write: Write, records: Sequence[Record]) -> dict[str, int]:
        self._bring_up_to_date(write)
        removed = {"lines of MEMORY.md": 0, "lines of daily notes": 0}
        names = {MEMORY} | {daily_name(record.day) for record in records if isinstance(record, DailyEntry)}
        for name in sorted(names):
            sheet = self._sheet(write, name)
            if sheet is None:
                write.notices.append(f"{name} could not be read, so look there yourself for what was to be erased")
                continue
            place = "lines of MEMORY.md" if name == MEMORY else "lines of daily notes"
            if taken := sheet.page.wipe(records):
                sheet.dirty = True
                removed[place] += taken
        return removed

    def reset(self, write: Write) -> dict[str, int]:
        self._sweep(write.tx)
        names = self._daily_names()
        for name in [MEMORY, *names]:
            path, _ = self._paths(name)
            disk = self._look(path)
            self._sheets[name] = _Sheet(page_of(name, ""), disk, write.state.seq, dirty=True)
        self._applied = len(write.changes)
        copies = list(self.folder.glob(_COPIES))
        for copy in copies:  # everything is to go, and everything is what they hold
            write.tx.after_commit(lambda copy=copy: _remove(copy))  # type: ignore[misc]
        return {"daily notes": len(names), "MEMORY.md": 1} | ({"damaged copies": len(copies)} if copies else {})

    def damaged_copies(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob(_COPIES) if not path.name.endswith(("-wal", "-shm")))

    # looking

    def text(self, reader: Reader) -> str:
        seen = self._look_or_none(MEMORY)
        if seen is None:
            return NoFiles().text(reader)
        return seen.data.decode("utf-8", errors="replace")

    def daily_text(self, reader: Reader, day: date) -> str:
        seen = self._look_or_none(daily_name(day))
        return seen.data.decode("utf-8", errors="replace") if seen else ""

    def contents(self, reader: Reader) -> dict[str, bytes]:
        seen = {name: self._look_or_none(name) for name in [MEMORY, *self._daily_names()]}
        found = {name: file.data for name, file in seen.items() if file is not None}
        return {MEMORY: encode(NoFiles().text(reader))} | found

    def restore(self, tx: Transaction, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            if name != MEMORY and not is_daily(name):
                continue
            path, _ = self._paths(name)
            seq = tx.state().seq
            try:
                page = page_of(name, decode(data))
            except DocumentError:  # it could not be read when it was exported either; it is what the person has
                tx.after_commit(lambda path=path, data=data: _write_file(path, data))  # type: ignore[misc]
            else:
                self._write_aside(tx, name, _Sheet(page, self._look(path), seq), seq, [])

    def any_text(self) -> bool:
        return self._look_or_none(MEMORY) is not None or bool(self._daily_names())

    def problems(self, reader: Reader) -> list[str]:
        found: list[str] = []
        for state in reader.files():
            seen = self._look_or_none(state.name)
            if state.name != MEMORY and seen is None and state.fingerprint == _fingerprint(b""):
                continue
            if seen is None or seen.fingerprint != state.fingerprint:
                found.append(f"{state.name}: not as it was last rendered")
                continue
            page = page_of(state.name, decode(seen.data))
            if state.name == MEMORY:
                records = reader.find(Query(kinds=("fact",), tier="file"))
            else:
                records = reader.find(Query(kinds=("daily",), key=day_of(state.name).isoformat()))
            found += [f"{state.name}: does not show {record.id}" for record in records if not page.shows(record)]
        return found

    def _is_as_rendered(self, name: str, state: FileState | None) -> bool:
        path, aside = self._paths(name)
        if state is None:
            return not path.exists()
        seen = self._seen.get(name)
        if seen is not None and seen.fingerprint == state.fingerprint and _stat(path) == seen.stat:
            if seen.trusted():
                return True
            with suppress(OSError):
                return path.read_bytes() == seen.data
        try:
            disk = self._look(path)
        except OSError:
            return False
        if disk is None:
            return name != MEMORY and state.fingerprint == _fingerprint(b"")
        if disk.fingerprint == state.fingerprint and aside.exists():
            self._seen.pop(name, None)  # so that the next write looks again, and settles it
            return False
        return disk.fingerprint == state.fingerprint

    def _look(self, path: Path) -> _Seen | None:
        """The file as it is on disk; a stat before and after tells that it was not changed while reading."""
        for _ in range(10):
            before = _stat(path)
            if before is None:
                return None
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            if _stat(path) == before:
                seen = _Seen(before, utc_now().timestamp(), data, _fingerprint(data))
                if not path.name.startswith("."):
                    self._seen[path.relative_to(self.folder).as_posix()] = seen
                return seen
        raise OSError(0, "it keeps changing")

    def _look_or_none(self, name: str) -> _Seen | None:
        try:
            return self._look(self._paths(name)[0])
        except OSError:
            return None

    def _daily_names(self) -> list[str]:
        names = []
        for path in (self.folder / "memory").glob("????-??-??.md"):
            if is_daily(name := f"memory/{path.name}"):
                names.append(name)
        return sorted(names)

    @cache  # noqa: B019  (a folder has few files, and the cache goes when the folder's object goes)
    def _paths(self, name: str) -> tuple[Path, Path]:
        path = self.folder / name
        return path, path.with_name(f".{path.name}.new")


def _remove(path: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _fingerprint(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _write_file(path: Path, data: bytes) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        while data:
            data = data[os.write(fd, data) :]
        if not _boot():
            os.fsync(fd)
    finally:
        os.close(fd)


@cache
def _boot() -> str:
    """Names this run of the machine; empty where the system does not tell, and then files are synced."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
