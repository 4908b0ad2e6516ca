"""The files a person reads, kept in step with the store in both directions.

Before a write, the person's edits are merged and become ordinary changes in the journal. MEMORY.md and the daily notes
are then written aside within the transaction and exchanged with the files in place right after the commit, all under
the user's write lock. `recollect.memory.files.placement` describes the exchange and what is left if the process dies.

A file on disk that we did not render was edited by a person, starting from one of the versions that somebody may have
(`versions`). A version that nobody has read is not among them: where the file system records access times, reads are
detected when the file is replaced. Our own reads leave no trace.

Files are not synced to disk one by one, because the database holds everything they show. After a power loss a file may
be older than the database assumes. This is recognised by a changed boot id, and then a missing line does not prove that
a person deleted it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from recollect.document.blocks import MAX_BYTES, decode_file, encode_file
from recollect.errors import DocumentError, storage_error
from recollect.memory.files import contract, file_system, placement
from recollect.memory.files.contract import MEMORY, NoFiles, daily_name, files_to_change, is_daily, page_of
from recollect.memory.files.file_system import Content, fingerprint_of
from recollect.memory.files.pages import MemoryPage, Page
from recollect.memory.files.placement import BEHIND, OnDisk, Place, Sheet, place_at, read_aside, shown_hash, versions_of
from recollect.memory.files.versions import NO_FILE, Version, versions_to_keep
from recollect.memory.write import Write
from recollect.policy.topics import Topic
from recollect.records import Record
from recollect.store.contract import FileState, Reader, Transaction

_RACY_SECONDS, _CALM_SECONDS = 0.1, 2.0
_EMPTY = fingerprint_of(b"")
_UNREAD = "files not erased, because they cannot be read"
_COPIES = "memory.db.damaged-*"


class DiskFiles:
    """MEMORY.md and ``memory/YYYY-MM-DD.md`` in the user's folder."""

    def __init__(
        self, folder: Path, erased_at: Callable[[], datetime | None] = lambda: None, *, only_writer: bool = True
    ) -> None:
        self.folder, self.displaced = folder, False
        self._only_writer = only_writer  # otherwise other processes may change the memory without these files
        self._erased_at = erased_at
        """When a user of this name was erased, if ever: older files are not theirs."""
        self._seen: dict[str, Content] = {}
        self._pages: dict[str, tuple[str, Page]] = {}
        self._sheets: dict[str, Sheet | None] = {}
        self._behind: set[str] = set()
        self._problems: dict[str, str] = {}
        self._memory_state: FileState | None = None
        self._applied, self._followed, self._swept = 0, 0, False
        self._tells_reads: dict[Path, bool] = {}
        self._busy: dict[str, list[Path]] = {}  # files that were replaced while a program had them open

    def edited(self, reader: Reader, *, notes: bool = False) -> bool:
        state = reader.file(MEMORY)
        if not self._is_as_rendered(MEMORY, state) or self._missed_something(reader):
            return True
        if not notes:
            return False
        states = {state.name: state for state in reader.files()}
        return any(not self._is_as_rendered(name, states.get(name)) for name in {*self._daily_names(), *states})

    def take_over(self, write: Write) -> None:
        self._sheets, self._behind = {}, set()
        self._applied, self.displaced = 0, False
        if not self._swept:
            self._sweep(write.tx)
        state = self._memory_state = write.tx.file(MEMORY)
        if state is None:
            self._open(write, MEMORY, state)
            for name in self._daily_names():
                self._open(write, name, None)
        elif not self._is_as_rendered(MEMORY, state):
            self._open(write, MEMORY, state)
        if state is not None and self._missed_something(write.tx):
            for name in [MEMORY, *self._daily_names()]:
                sheet = self._sheet(write, name)
                if sheet is not None and sheet.page.catch_up(write):
                    sheet.dirty = sheet.erased = True
            self._followed = write.state.seq

    def _missed_something(self, reader: Reader) -> bool:
        """Return True if a process without files has changed what the files show since they were written."""
        shown = [] if self._only_writer else [state.seq for state in reader.files()]
        last, since = reader.state().seq, max([self._followed, *shown])
        if not shown or last <= since:
            return False
        missed = any(record_id.startswith(("fact-", "daily-")) for _, record_id in reader.changed(since))
        self._followed = since if missed else last
        return missed

    def _sweep(self, tx: Transaction) -> None:
        """Finish, once, what a dead process had committed, and delete what it had not."""
        names = {MEMORY}
        for pattern in ("memory/.????-??-??.md.new", "memory/.????-??-??.md.old*"):
            names |= {f"memory/{path.name[1:14]}" for path in self.folder.glob(pattern)}
        for name in sorted(names):
            if name != MEMORY and not is_daily(name):
                continue
            with suppress(OSError):
                place, state = self._place(name), tx.file(name)
                self._busy[name] = place.left_open()
                if state is None:
                    file_system.remove(place.new)
                else:
                    self._settle(name, place, state)
        self._swept = True

    def take_over_daily(self, write: Write) -> None:
        states = {state.name: state for state in write.tx.files()}
        for name in sorted({*self._daily_names(), *states} - {MEMORY, *self._sheets}):
            state = states.get(name)
            if not self._is_as_rendered(name, state):
                self._open(write, name, state)
            elif state is not None and state.fingerprint == _EMPTY:
                write.tx.drop_file(name)  # removed with its last entry, and gone

    def _sheet(self, write: Write, name: str) -> Sheet | None:
        """Return the file as this write sees it, edits merged; None if it cannot be read."""
        if name not in self._sheets:
            state = write.tx.file(name) if name != MEMORY else self._memory_state
            seen, cached = self._seen.get(name), self._pages.get(name)
            if name == MEMORY and state and seen and cached and seen.fingerprint == cached[0] == shown_hash(state):
                # read when this write began
                place = self._place(name)
                self._sheets[name] = Sheet(
                    place, cached[1].copy(), seen, versions_of(state), state.fingerprint, state.seq
                )
            else:
                self._open(write, name, state)
        return self._sheets[name]

    def _open(self, write: Write, name: str, state: FileState | None) -> None:
        try:
            place = self._place(name)
            found = self._settle(name, place, state)
            disk = found.disk
            text = decode_file(disk.data) if disk else ""
            rendered = state is not None and disk is not None and disk.fingerprint == shown_hash(state)
            if disk is not None and not rendered:
                if file_system.is_being_saved(place.path):
                    return self._blocked(write, name, "another program is saving it")
                if file_system.stat_of(place.path) != disk.stat:  # it was being saved; half a text means nothing
                    return self._open(write, name, state)
        except OSError as error:
            return self._blocked(write, name, f"it cannot be read ({error.strerror})")
        except DocumentError as error:
            return self._blocked(write, name, str(error))
        certain = state is None or state.boot.removeprefix(BEHIND) == file_system.boot()
        saved = self._take_over_late(write, name, place, found, certain=certain)
        if rendered and disk is not None and state is not None:
            cached = self._pages.get(name)
            page = cached[1].copy() if cached and cached[0] == disk.fingerprint else page_of(name, text)
            if saved is not None:  # the file has no text of its own, so the person's text takes its place
                page = saved
            sheet = Sheet(place, page, disk, found.versions, state.fingerprint, state.seq, dirty=bool(found.late))
            sheet.holds = len(write.changes) if saved is not None else 0
            self._sheets[name] = sheet
            return None
        if state is None and disk is not None and self._is_erased(disk):
            return self._blocked(
                write, name, "it is older than the erasure of this user. Delete it, or save it again to import it"
            )
        expected = name == MEMORY or disk is None or page_of(name, "").records(write)  # else a blank note is theirs
        lost = bool(expected) and not text.strip("\ufeff \t\r\n")
        page = page_of(name, "" if lost else text)
        sheet = self._sheets[name] = Sheet(
            place, page, disk, found.versions, state.fingerprint if state else "", dirty=True
        )
        records = page.records(write)
        if not lost:
            versions = self._of_calm_hands(write, place, disk, state) or found.versions
            with write.as_person():
                version = page.adopt(write, records, versions if certain else None, name)
            if version is not None:  # who saves it knows the file
                sheet.versions = (*(one for one in sheet.versions if one != NO_FILE), version)
            sheet.holds = len(write.changes)
            return None
        if saved is not None:
            sheet.page = saved
        else:
            for record in records:
                page.put(None, record)
        sheet.holds = len(write.changes)
        removed_by_us = state is not None and disk is None and state.fingerprint == _EMPTY
        if state is not None and not removed_by_us and saved is None and any(map(write.had, records)):
            how = "was empty" if disk else "was missing"
            write.notices.append(f"{name} {how} and was restored from memory; nothing was forgotten")
        return None

    def _settle(self, name: str, place: Place, state: FileState | None) -> OnDisk:
        """Return the file on disk and its possible versions, after finishing what a crash interrupted."""
        disk = self._look(name, place)
        if state is None:
            return OnDisk(disk, (NO_FILE if disk is None else (0,),))
        found = OnDisk(disk, versions_of(state))
        waiting = place.committed_aside(state.fingerprint, disk)
        if waiting is not None:
            if waiting != place.old:
                self._make_room(name, place, "")
                os.rename(waiting, place.old)
            if (disk.fingerprint if disk else "") == state.previous_fingerprint:
                place.exchange(state.previous_fingerprint, unread=True)
                found.disk = self._look(name, place)
            if not found.disk or found.disk.fingerprint != state.fingerprint:  # so nobody has ever seen it
                found.versions = (*state.versions, (state.previous_seq,))
        for old in [place.old, *self._busy.get(name, [])]:
            # first: a program that has closed it will not write into it after this
            busy = file_system.is_being_written(old)
            content = read_aside(old)
            if content is None or content.fingerprint == state.fingerprint:
                self._let_go(name, place, old, content, found.disk, state)
            elif not busy and content.fingerprint != state.previous_fingerprint and file_system.is_unread(old):
                self._forget_old(name, old)  # our own rendering that never stayed in place: not a person's text
            elif not busy:
                found.late.append((old, content))
        if found.late:
            found.versions = versions_to_keep([*state.versions, (state.previous_seq,), *found.versions])
        if name != MEMORY and state.fingerprint == _EMPTY and found.disk and not found.disk.data:
            place.remove_empty()
            found.disk = self._look(name, place)
        return found

    def _let_go(
        self, name: str, place: Place, old: Path, content: Content | None, disk: Content | None, state: FileState
    ) -> None:
        """Delete a rendering of ours that is also in place; keep one that is not until the next is."""
        if content is not None and disk is not None and disk.fingerprint == state.fingerprint:
            file_system.remove(old)
        if old != place.old and not os.path.lexists(old):
            self._busy[name].remove(old)

    def _of_calm_hands(
        self, write: Write, place: Place, disk: Content | None, state: FileState | None
    ) -> tuple[Version, ...]:
        """Return the present version, if somebody opened and saved it without haste.

        It was read a while after it was written, so not by a program that reads whatever changes, and saved in place a
        while after it was read. Then the version the text was made from is certain.
        """
        if state is None or disk is None or not state.seq or not self._notes_reads(place):
            return ()
        entry = write.tx.entry(state.seq)
        read_at = disk.read_ns / 1e9
        if entry is None or disk.stat[0] / 1e9 - read_at < _CALM_SECONDS:
            return ()
        return ((state.seq,),) if read_at - entry.at.timestamp() >= _CALM_SECONDS else ()

    def _take_over_late(self, write: Write, name: str, place: Place, found: OnDisk, *, certain: bool) -> Page | None:
        """Merge saves left beside the file into this write; return the last one, as the file would be now."""
        state = self._memory_state if name == MEMORY else write.tx.file(name)
        saved: Page | None = None
        versions = tuple(version for version in found.versions if state is None or version != (state.seq,))
        for path, content in found.late:
            try:
                text = decode_file(content.data)
            except DocumentError as error:
                shown = file_system.spare_name(place.path.with_name(f"{place.path.name}.saved"))
                os.rename(path, shown)
                write.notices.append(
                    f"{shown.name} was saved during a write and could not be merged; please check it: {error}"
                )
                continue
            if content.fingerprint != (state.previous_fingerprint if state else "") and text.strip("\ufeff \t\r\n"):
                saved = page_of(name, text)
                drafts = [saved.draft(write, item) for item in saved.items] if write.cache.buried else []
                # it was opened before that was erased
                saved.wipe([one for one in drafts if write.tombstone_hash(one) in write.cache.buried])
                with write.as_person():
                    version = saved.adopt(write, saved.records(write), versions if certain else None, name)
                if version is not None:
                    found.versions = (*found.versions, version)
            write.tx.after_commit(lambda path=path: self._forget_old(name, path))  # type: ignore[misc]
        return saved

    def _forget_old(self, name: str, path: Path) -> None:
        file_system.remove_whole(path)
        self._busy[name] = [other for other in self._busy.get(name, []) if other != path]

    def _blocked(self, write: Write, name: str, problem: str) -> None:
        self._sheets[name] = None
        self._problems[name] = problem
        write.notices.append(
            f"{name} was not changed: {problem}. New changes are stored and will appear in the file"
            " once it can be read again"
        )

    def words_over(self, write: Write, limit: int) -> int:
        self._bring_up_to_date(write)
        sheet = self._sheets.get(MEMORY)
        if sheet is None or not sheet.dirty:
            return 0
        assert isinstance(sheet.page, MemoryPage)
        return sheet.page.word_count - limit

    def publish(self, write: Write) -> None:
        self._bring_up_to_date(write)
        for name, sheet in list(self._sheets.items()):
            if sheet is not None and sheet.dirty:
                sheet.erased |= write.erased
                sheet.tell_pending = write.add_pending if sheet.erased else None
                try:
                    self._write_aside(write.tx, name, sheet, write.last_seq, write.notices)
                except OSError as error:
                    ours = name == MEMORY and sheet.place.path.parent == self.folder
                    if ours or error.errno not in file_system.IN_THE_WAY:
                        raise storage_error(error, self.folder) from error
                    self._blocked(write, name, f"it cannot be written ({error.strerror})")
                    self._behind.add(name)
        for state in filter(None, map(write.tx.file, sorted(self._behind))):
            write.tx.set_file(replace(state, boot=BEHIND + state.boot.removeprefix(BEHIND)))

    def _bring_up_to_date(self, write: Write) -> None:
        net: dict[str, dict[str, tuple[Record | None, Record | None]]] = {}
        number = self._applied
        while number < len(write.changes):  # opening a page can add changes of its own
            change = write.changes[number]
            for name in files_to_change(change):
                sheet = self._sheet(write, name)
                if sheet is None:
                    self._behind.add(name)
                elif number >= sheet.holds:
                    changed = net.setdefault(name, {})
                    first, _ = changed.get(change.record_id, (change.before, None))
                    changed[change.record_id] = (first, change.after)
            number += 1
        self._applied = number
        for name, changed in net.items():
            sheet = self._sheets[name]
            if sheet is not None:
                sheet.dirty |= sheet.page.put_all(list(changed.values()))

    def _write_aside(self, tx: Transaction, name: str, sheet: Sheet, seq: int, notices: list[str]) -> None:
        data = encode_file(sheet.page.render())
        fingerprint = fingerprint_of(data)
        previous = sheet.disk.fingerprint if sheet.disk else ""
        if fingerprint != previous:
            mode = sheet.disk.mode if sheet.disk else 0o644
            file_system.create(sheet.place.new, data, mode, sync=not file_system.boot())
        # Decided once: anyone who reads it from here on, during the commit, is noticed when the files are exchanged.
        sheet.unread = self._is_unread(sheet)
        versions = [version for version in sheet.versions if version != (sheet.shows,) or not sheet.unread]
        state = FileState(
            name=name,
            fingerprint=fingerprint,
            seq=seq,
            previous_fingerprint=previous,
            previous_seq=sheet.shows or 0,
            boot=file_system.boot(),
            versions=versions_to_keep([version for version in versions if version != (seq,)]),
        )
        tx.set_file(state)
        self._pages[name] = (fingerprint, sheet.page)
        if fingerprint != previous:
            tx.after_commit(lambda: self._rename(name, sheet, data, fingerprint, notices))

    def _is_unread(self, sheet: Sheet) -> bool:
        """Return True if nobody can have the version on disk open, because nobody has read it."""
        if sheet.disk is None or file_system.stat_of(sheet.place.path) != sheet.disk.stat:
            return False
        return file_system.is_unread(sheet.place.path) and self._notes_reads(sheet.place)

    def _notes_reads(self, place: Place) -> bool:
        folder = place.path.parent
        if folder not in self._tells_reads:
            self._tells_reads[folder] = file_system.tells_reads(folder)
        return self._tells_reads[folder]

    def _rename(self, name: str, sheet: Sheet, data: bytes, fingerprint: str, notices: list[str]) -> None:
        place = sheet.place
        try:
            in_place = file_system.stat_of(place.path) == (sheet.disk.stat if sheet.disk else None)
            if in_place:  # otherwise it was edited just now: the next write merges it
                self._make_room(name, place, sheet.committed)
                made = file_system.stat_of(place.new)
                os.rename(place.new, place.old)
                previous = sheet.disk.fingerprint if sheet.disk else ""
                in_place = place.exchange(previous, unread=sheet.unread, erased=sheet.erased)
                self.displaced |= os.path.lexists(place.old)
            if sheet.tell_pending is not None and (not in_place or os.path.lexists(place.old)):
                sheet.tell_pending(
                    f"{name} is open in another program, so erased text may remain in it or in {place.old.name}"
                    " beside it. It is removed by the next read or write after that program closes the file"
                )
            if not in_place:
                self._seen.pop(name, None)
                if sheet.given:
                    notices.append(
                        f"{name} was saved by another program at the same moment; only the facts of your text were kept"
                    )
                return
            if not data and name != MEMORY:
                place.remove_empty()
            elif made is not None:
                self._seen[name] = Content(
                    made, time.time(), data, fingerprint, sheet.disk.mode if sheet.disk else 0o644, 0
                )
        except OSError as error:
            self._seen.pop(name, None)
            notices.append(f"{name} could not be updated ({error.strerror}); the next write will retry")

    def _make_room(self, name: str, place: Place, ours: str) -> None:
        spare = place.make_room(ours)
        if spare is not None:
            self._busy.setdefault(name, []).append(spare)

    def discard(self, *, keep: bool = False) -> None:
        for sheet in self._sheets.values():
            if not keep and sheet is not None:
                with suppress(OSError):
                    file_system.remove(sheet.place.new)
        self._sheets, self._pages, self._seen = {}, {}, {}

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

    def erase(self, write: Write, records: Sequence[Record]) -> dict[str, int]:
        self._bring_up_to_date(write)
        removed = {"lines of MEMORY.md": 0, "lines of daily notes": 0}
        names = {MEMORY, *filter(None, map(contract.file_of, records))}
        for name in sorted(names):
            sheet = self._sheet(write, name)
            if sheet is None:
                self._behind.add(name)
                write.notices.append(f"{name} could not be read; check it yourself for text that was to be erased")
                continue
            if taken := sheet.page.wipe(records):
                sheet.dirty = sheet.erased = True
                removed[contract.lines_place(name)] += taken
        return removed

    def erase_topic(self, write: Write, topic: Topic) -> dict[str, int]:
        self._bring_up_to_date(write)  # the lines of erased records are gone before the rest is searched
        removed = {"lines of MEMORY.md": 0, "lines of daily notes": 0}
        for name in [MEMORY, *self._daily_names()]:
            sheet = self._sheet(write, name)
            if sheet is None:
                self._behind.add(name)
                write.notices.append(f"{name} could not be read; check it yourself for text that was to be erased")
                removed[_UNREAD] = removed.get(_UNREAD, 0) + 1
                continue
            if taken := sheet.page.wipe_topic(topic):
                sheet.dirty = sheet.erased = True
                removed[contract.lines_place(name)] += taken
        return removed

    def reset(self, write: Write) -> dict[str, int]:
        self._sweep(write.tx)
        names = self._daily_names()
        for name in [MEMORY, *names]:
            try:
                place = self._place(name)
                disk = self._look(name, place)
            except OSError as error:
                self._blocked(write, name, f"it cannot be read ({error.strerror})")
                continue
            state, opened = write.tx.file(name), self._sheets.get(name)
            committed, versions = (state.fingerprint, versions_of(state)) if state else ("", ())
            shows = state.seq if state and disk and disk.fingerprint == shown_hash(state) else None
            versions = opened.versions if opened else versions  # somebody may still save one of them
            self._sheets[name] = Sheet(place, page_of(name, ""), disk, versions, committed, shows, dirty=True)
        self._applied = len(write.changes)
        for copy in (copies := list(self.folder.glob(_COPIES))):  # they hold everything
            write.tx.after_commit(lambda copy=copy: file_system.remove_whole(copy))  # type: ignore[misc]
        return {"daily notes": len(names), "MEMORY.md": 1} | ({"damaged copies": len(copies)} if copies else {})

    def damaged_copies(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob(_COPIES) if not path.name.endswith(("-wal", "-shm")))

    def text(self, reader: Reader) -> str:
        seen = self._look_or_none(MEMORY, as_reader=True)
        if seen is None or (reader.file(MEMORY) is None and self._is_erased(seen)):
            return NoFiles().text(reader)
        return seen.data.decode("utf-8", errors="replace")

    def daily_text(self, reader: Reader, day: date) -> str:
        seen = self._look_or_none(daily_name(day), as_reader=True)
        if seen is not None and reader.file(daily_name(day)) is None and self._is_erased(seen):
            return NoFiles().daily_text(reader, day)
        return seen.data.decode("utf-8", errors="replace") if seen else ""

    def contents(self, reader: Reader) -> dict[str, bytes]:
        seen = {name: self._look_or_none(name, as_reader=True) for name in [MEMORY, *self._daily_names()]}
        known = {state.name for state in reader.files()}
        kept = {name: file for name, file in seen.items() if file and (name in known or not self._is_erased(file))}
        found = {name: file.data for name, file in kept.items()}
        return {MEMORY: encode_file(NoFiles().text(reader))} | found

    def restore(self, tx: Transaction, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            if name != MEMORY and not is_daily(name):
                continue
            place, seq = self._place(name), tx.state().seq
            try:
                page = page_of(name, decode_file(data))
            except DocumentError:  # it could not be read when it was exported either; keep the person's bytes
                tx.after_commit(lambda place=place, data=data: place.put(data))  # type: ignore[misc]
            else:
                sheet = Sheet(place, page, self._look(name, place), (), shows=seq)
                try:
                    self._write_aside(tx, name, sheet, seq, [])
                except OSError as error:
                    raise storage_error(error, self.folder) from error

    def any_text(self) -> bool:
        seen = (self._look_or_none(name) for name in [MEMORY, *self._daily_names()])
        return any(file is not None and not self._is_erased(file) for file in seen)

    def _is_erased(self, file: Content) -> bool:
        """Return True for a file not rendered here that is older than the user's erasure, as from a backup."""
        at = self._erased_at()
        return at is not None and file.stat[0] / 1e9 <= at.timestamp()

    def problems(self, reader: Reader) -> list[str]:
        found: list[str] = []
        for state in reader.files():
            seen = self._look_or_none(state.name)
            if state.name != MEMORY and seen is None and state.fingerprint == _EMPTY:
                continue
            if seen is None or seen.fingerprint != state.fingerprint:
                found.append(f"{state.name}: {placement.complaint(self.folder / state.name)}")
                continue
            page = page_of(state.name, decode_file(seen.data))
            records = contract.records_of_file(reader, state.name)
            found += [f"{state.name}: does not show {record.id}" for record in records if not page.shows(record)]
        return found

    def _is_as_rendered(self, name: str, state: FileState | None) -> bool:
        if state is None:
            disk = self._look_or_none(name)
            return not os.path.lexists(self.folder / name) if disk is None else self._is_erased(disk)
        try:
            place = self._place(name)
            if self._is_something_beside(name, place):
                self._seen.pop(name, None)  # so that the next write looks again and settles it
                return False
            seen = self._seen.get(name)
            fresh = seen is None or seen.at - seen.stat[0] / 1e9 < _RACY_SECONDS  # its time proves nothing yet
            known = seen is not None and not fresh and seen.fingerprint == shown_hash(state)
            if seen and known and seen.stat == file_system.stat_of(place.path):
                return True
            disk = self._look(name, place)
        except OSError:
            return False
        if disk is None:
            return name != MEMORY and state.fingerprint == _EMPTY
        if disk.fingerprint == state.fingerprint and os.path.lexists(place.new):
            self._seen.pop(name, None)
            return False
        return disk.fingerprint == shown_hash(state)

    def _is_something_beside(self, name: str, place: Place) -> bool:
        """Return True if there are old files that no program writes to any more, so that they can be settled."""
        if name not in self._busy:  # another process may have left some
            self._busy[name] = place.left_open()
        beside = [old for old in (place.old, *self._busy[name]) if file_system.stat_of(old) is not None]
        return any(not file_system.is_being_written(old) for old in beside)

    def _look(self, name: str, place: Place, *, as_reader: bool = False) -> Content | None:
        seen = file_system.read(place.path, MAX_BYTES, as_reader=as_reader)
        if seen is not None:
            self._seen[name] = seen
        return seen

    def _look_or_none(self, name: str, *, as_reader: bool = False) -> Content | None:
        try:
            return self._look(name, self._place(name), as_reader=as_reader)
        except OSError:
            return None

    def _place(self, name: str) -> Place:
        return place_at(file_system.target_of(self.folder / name))

    def _daily_names(self) -> list[str]:
        names = (f"memory/{path.name}" for path in (self.folder / "memory").glob("????-??-??.md"))
        return sorted(filter(is_daily, names))
