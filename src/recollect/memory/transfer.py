"""Export of a whole memory as one archive, and import.

The archive is a zip of the files a person reads (``MEMORY.md``, ``memory/*.md``) and of everything else as JSON Lines,
except the log of tool calls and the ledger. Imported into an empty memory, everything is restored exactly, including
ids, journal and consents. Imported into one that is in use, records are merged through the ordinary write path and
interactions by their ids; consents and extraction runs stay as they are. `recollect.memory.importers` reads other
formats.
"""

from __future__ import annotations

import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from recollect.checks import MAX_NESTING, is_nested_deeper
from recollect.errors import InvalidInputError, RecollectError, StoreBusyError
from recollect.memory import interaction_log
from recollect.memory.archive_check import check_archived, check_archived_text, check_file_line, check_unique
from recollect.memory.chat_scope import ChatTransaction
from recollect.memory.files.contract import NoFiles
from recollect.memory.importers import Draft, read_drafts
from recollect.memory.journal import Progress
from recollect.memory.output import open_output
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import ERASED, Acting, Write, refusal_if_paused
from recollect.records import (
    CONSENTS,
    MODES,
    Conflict,
    Duplicate,
    Interaction,
    JournalEntry,
    Record,
    Refused,
    from_dict,
    new_id,
    to_dict,
)
from recollect.store.contract import Query, Reader, State, Tombstone
from recollect.times import from_text, to_text

_FORMAT = "recollect-memory"
_VERSION = 1
_STEP = 500  # records looked up together
_LARGEST = 1 << 30
"""The limits in bytes: of the unpacked archive, of a line, and of one of the files a person reads."""
_LONGEST_LINE = 16 << 20
_LARGEST_FILE = 16 << 20
_MOST_ROWS = 10_000_000
_MOST_MEMBERS = 50_000
_OUTER_LEVELS = 10  # of the rows around metadata
_SMALL = 64 << 20
_HIGHEST_RATIO = 100
"""The highest compression ratio of an archive larger than ``_SMALL``: text never exceeds it."""
_MOST_NUMBER = 2**53
"""The highest journal number: a higher one would leave no numbers for later entries."""
UNREADABLE = (zipfile.BadZipFile, zlib.error, RuntimeError, struct.error, OverflowError, OSError)
"""The errors of a zip that is damaged, encrypted, or uses an unknown compression."""
_ZIP_BEGINS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06")
_LONGEST_SHOWN = 200
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """The result of an import. ``run`` undoes it as a whole, unless it restored an empty memory."""

    format: str
    run: str | None = None
    written: int = 0
    duplicates: int = 0
    conflicts: int = 0
    refused: int = 0
    interactions: int = 0
    skipped: list[str] = field(default_factory=list)
    """One line for each item that was not imported, with the reason."""


# export


def export_archive(
    memory: UserMemory, path: Path, progress: Progress | None = None, *, outside: Iterable[Path] = ()
) -> Path:
    """Write the archive, which must be ``outside`` of these folders; a file is replaced only once the new one is
    complete.
    """
    with open_output("path", path, outside) as file, memory.read(notes=True) as reader:
        write_archive(memory, reader, file, progress)
    return path


def write_archive(memory: UserMemory, reader: Reader, file: BinaryIO, progress: Progress | None = None) -> None:
    """Write the archive of a memory as this reader sees it."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in _members(memory, reader, progress):
            # a fixed time, so that the same memory gives the same archive
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), text, zipfile.ZIP_DEFLATED)


def own_folders(memory: UserMemory) -> list[Path]:
    """Return the folders of all users' memories: the databases, and the files people read."""
    folder = memory.files.folder
    return [memory.config.memory_dir, *([] if folder is None else [folder.parent])]


def _members(memory: UserMemory, reader: Reader, progress: Progress | None) -> Iterator[tuple[str, str | bytes]]:
    state = reader.state()
    records = reader.find(Query(statuses=()))
    files = memory.files.contents(reader)
    manifest = {"format": _FORMAT, "version": _VERSION, "user": state.user_id, "records": len(records)}
    yield "manifest.json", json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    yield from files.items()
    yield (
        "state.json",
        json.dumps(
            {
                "created_at": to_text(state.created_at),
                "seq": state.seq,
                "mode": state.mode,
                "secret": state.secret.hex(),
            }
        ),
    )
    versions: list[dict[str, Any]] = []
    for done, record in enumerate(records):
        versions += [to_dict(version) for version in reader.versions(record.id)]
        if progress and done % 500 == 0:
            progress(done, len(records))
    yield "records.jsonl", _dump_json_lines(versions)
    yield "journal.jsonl", _dump_json_lines(_entry_to_dict(entry) for entry in reader.entries())
    yield (
        "tombstones.jsonl",
        _dump_json_lines({"hash": t.hash, "record_id": t.record_id, "at": to_text(t.at)} for t in reader.tombstones()),
    )
    yield (
        "recalls.jsonl",
        _dump_json_lines({"record_id": i, "at": to_text(at)} for i, at in sorted(reader.recalled().items())),
    )
    yield (
        "consents.jsonl",
        _dump_json_lines({"name": name, "at": to_text(at)} for name, at in reader.consents().items()),
    )
    yield "interactions.jsonl", _dump_json_lines(interaction_log.event_to_dict(one) for one in reader.interactions())
    yield "runs.jsonl", _dump_json_lines(interaction_log.event_to_dict(run) for run in reader.runs())
    if progress:
        progress(len(records), len(records))


def _dump_json_lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


def _entry_to_dict(entry: JournalEntry) -> dict[str, Any]:
    data = {name: getattr(entry, name) for name in JournalEntry.__slots__}
    data |= {
        "at": to_text(entry.at),
        "before": to_dict(entry.before) if entry.before else None,
        "after": to_dict(entry.after) if entry.after else None,
    }
    return {name: value for name, value in data.items() if value not in (None, False)}


def entry_from_dict(data: dict[str, Any]) -> JournalEntry:
    """Return a journal entry as an archive has it."""
    values = data | {"at": from_text(data["at"])}
    for name in ("before", "after"):
        values[name] = from_dict(data[name]) if data.get(name) else None
    return check_archived(JournalEntry(**values))


# import


def import_any(
    memory: UserMemory, acting: Acting, path: Path, *, from_user: str | None, dry_run: bool, progress: Progress | None
) -> ImportReport:
    """Detect the format and import it."""
    try:
        return _import_any(memory, acting, path, from_user, dry_run, progress)
    except RecollectError as error:
        refused = error
    # the data that was read hangs on the frames of the traceback and on earlier errors; do not keep it alive
    refused.__context__ = refused.__cause__ = None
    raise refused.with_traceback(None)


def _import_any(
    memory: UserMemory, acting: Acting, path: Path, from_user: str | None, dry_run: bool, progress: Progress | None
) -> ImportReport:
    check_source(path)
    if path.is_file() and _is_zip(path):
        return import_archive(memory, acting, path, dry_run=dry_run, progress=progress)
    skipped: list[str] = []
    kind, drafts = read_drafts(path, memory.user.user_id, from_user, memory.clock(), memory.config, skipped)
    report = ImportReport(format=kind, skipped=skipped)
    with _rehearsal_memory(memory) if dry_run else nullcontext(memory) as target:
        return _merge_drafts(target, acting, drafts, report, dry_run, progress)


@contextmanager
def _rehearsal_memory(memory: UserMemory) -> Iterator[UserMemory]:
    """Yield the memory itself; if there is none yet, an empty one elsewhere: a dry run must not create it."""
    if memory.user.exists() or memory.files.any_text():
        yield memory
        return
    with memory.user.rehearsal() as user:
        yield UserMemory(user, NoFiles(), memory.config, memory.clock)


def check_source(path: Path) -> None:
    """Raise an error if there is no file or folder here that could be imported."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInputError("path", f"{path} does not exist") from None
    except OSError as error:
        raise InvalidInputError("path", f"{_shorten_text(str(path))} cannot be read ({error.strerror})") from None
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise InvalidInputError("path", f"{path.name} is neither a file nor a folder")


def _shorten_text(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _is_zip(path: Path) -> bool:
    """Return True for a zip, even a damaged one."""
    try:
        with path.open("rb") as file:
            return file.read(4) in _ZIP_BEGINS or zipfile.is_zipfile(file)
    except zipfile.BadZipFile:  # a zip by its end, but too damaged to tell more
        return True
    except OSError as error:
        raise InvalidInputError("path", f"{path.name} cannot be read ({error.strerror})") from None


class Archive:
    """An export that is read member by member, keeping little in memory."""

    def __init__(self, name: str, packed: int, archive: zipfile.ZipFile) -> None:
        self._name, self._archive = name, archive
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > _LARGEST:
            raise InvalidInputError("path", f"{name} unpacks to more than {_LARGEST >> 20} MB")
        if len(members) > _MOST_MEMBERS or (size > _SMALL and size > _HIGHEST_RATIO * packed):
            raise InvalidInputError("path", f"{name} is compressed too much to be an export")
        self._left, self._rows = _LARGEST, _MOST_ROWS

    def document(self, name: str) -> Any:
        return _from_json(self.data(name))

    def data(self, name: str) -> bytes:
        """Return all of a member that is not large."""
        with self._archive.open(name) as file:
            data = file.read(_LARGEST_FILE + 1)
        self._count(len(data), len(data) > _LARGEST_FILE, name)
        return data

    def rows(self, name: str, *, optional: bool = False) -> Iterator[dict[str, Any]]:
        if optional and name not in self._archive.NameToInfo:
            return
        with self._archive.open(name) as file:
            # only \n ends a line here: JSON escapes it inside of texts, but not the other characters that Python treats
            # as one
            while line := file.readline(_LONGEST_LINE + 1):
                self._rows -= 1
                self._count(len(line), len(line) > _LONGEST_LINE or self._rows < 0, name)
                if line.strip():
                    yield _from_json(line)

    def files(self) -> dict[str, bytes]:
        names = self._archive.NameToInfo
        return {name: self.data(name) for name in names if name == "MEMORY.md" or name.startswith("memory/")}

    def _count(self, size: int, too_long: bool, name: str) -> None:
        self._left -= size  # the actual size, whatever the headers say
        if too_long or self._left < 0:
            raise InvalidInputError("path", f"{name} in {self._name} is too long for an export")


def _from_json(data: bytes) -> Any:
    """Parse JSON; raise `ValueError` for lone surrogates, which no store could keep, and for what is nested deeper."""
    value = json.loads(data.decode("utf-8"))
    if is_nested_deeper(value, MAX_NESTING + _OUTER_LEVELS):
        raise ValueError("nesting")
    if b"\\ud" in data.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def import_archive(
    memory: UserMemory,
    acting: Acting,
    source: Path | BytesIO,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
    restoring: Callable[[], None] | None = None,
) -> ImportReport:
    """Import what `write_archive` wrote: exactly into an empty memory, by merging into one that is in use.

    With ``restoring``, a pause does not stop it: the memory was theirs already. It is called under the user's lock, and
    raises an error if nothing is to be restored any more.
    """
    name = source.name if isinstance(source, Path) else "the archive"
    try:
        packed = source.stat().st_size if isinstance(source, Path) else source.getbuffer().nbytes
        with zipfile.ZipFile(source) as opened:
            archive = Archive(name, packed, opened)
            manifest = archive.document("manifest.json")
            if manifest["format"] != _FORMAT:
                raise KeyError("format")
            if manifest["version"] > _VERSION:
                raise InvalidInputError("path", f"{name} was exported by a newer Recollect; upgrade to import it")
            told = archive.document("state.json")
            if told["mode"] not in MODES:
                raise ValueError("mode")
            state = check_archived(
                State(
                    user_id=memory.user.user_id,
                    created_at=from_text(told["created_at"]),
                    seq=told["seq"],
                    mode=told["mode"],
                    secret=bytes.fromhex(told["secret"]),
                )
            )
            versions = [check_file_line(check_archived(from_dict(row))) for row in archive.rows("records.jsonl")]
            entries = [entry_from_dict(row) for row in archive.rows("journal.jsonl")]
            tombstones = [
                check_archived(Tombstone(hash=row["hash"], record_id=row["record_id"], at=from_text(row["at"])))
                for row in archive.rows("tombstones.jsonl")
            ]
            recalls = {
                check_archived_text(row["record_id"]): from_text(row["at"]) for row in archive.rows("recalls.jsonl")
            }
            # older archives lack it; consents that only a newer Recollect knows mean nothing here
            consents = {
                row["name"]: from_text(row["at"])
                for row in archive.rows("consents.jsonl", optional=True)
                if row["name"] in CONSENTS
            }
            told_rows = archive.rows("interactions.jsonl", optional=True)
            interactions = [check_archived(interaction_log.interaction_from_dict(row)) for row in told_rows]
            runs = [
                check_archived(interaction_log.run_from_dict(row)) for row in archive.rows("runs.jsonl", optional=True)
            ]
            files = archive.files()
        for number in (*(entry.seq for entry in entries), *(version.seq for version in versions), state.seq):
            if type(number) is not int or not 0 <= number <= min(state.seq, _MOST_NUMBER):
                raise ValueError("seq")
        check_unique("records.jsonl", ((version.id, version.version) for version in versions))
        check_unique("journal.jsonl", (entry.seq for entry in entries))
        check_unique("interactions.jsonl", (one.id for one in interactions))
        check_unique("runs.jsonl", (run.id for run in runs))
        check_unique("runs.jsonl", ((run.day, run.kind) for run in runs))
    except RecollectError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, EOFError, RecursionError, *UNREADABLE):
        raise InvalidInputError("path", f"{name} is not a Recollect export, or it is damaged") from None
    latest = {version.id: version for version in versions}
    report = ImportReport(format="recollect")
    drafts = [Draft(name, record) for record in latest.values() if record.status == "active"]
    if _in_use(memory):
        _merge_interactions(memory, interactions, report, dry_run, restoring)
        return _merge_drafts(memory, acting, drafts, report, dry_run, progress, restoring)
    report.written, report.interactions = len(latest), len(interactions)
    if dry_run:
        return report
    with memory.user.write() as tx:
        if restoring is not None:
            restoring()
        if tx.state().seq:
            raise StoreBusyError("another process has just started this memory; import again to merge")
        tx.set_state(state)
        tx.put_many(latest.values())
        for version in versions:
            if version is not latest[version.id]:
                tx.keep(version)
        tx.log(entries)
        tx.bury(tombstones)
        tx.set_recalled(recalls)
        for consent, at in consents.items():
            tx.set_consent(consent, True, at)
        tx.put_interactions(interactions)
        for run in runs:
            tx.put_run(run)
        memory.files.restore(tx, files)
    memory.start_over()
    return report


def _in_use(memory: UserMemory) -> bool:
    """Return True if the memory has content; a database that was created but never written to does not count."""
    with memory.user.read() as reader:
        return reader.state().seq > 0 or memory.files.any_text()


class _DryRunEndError(Exception):
    """Ends a dry run so that nothing of it is kept."""


def _merge_drafts(
    memory: UserMemory,
    acting: Acting,
    drafts: list[Draft],
    report: ImportReport,
    dry_run: bool,
    progress: Progress | None,
    restoring: Callable[[], None] | None = None,
) -> ImportReport:
    """Import through the ordinary write path, in one transaction and one run: all of it is kept, or nothing."""
    run = acting.run or new_id("run")
    try:
        with memory.write(replace(acting, run=run)) as write:
            if restoring is not None:
                restoring()
                write.state = replace(write.state, mode="on")
            # other formats name no chats: what is known in any is known
            there = StoredRecords(write, in_chats=report.format == "recollect")
            for start in range(0, len(drafts), _STEP):
                if progress:
                    progress(start, len(drafts))
                step = drafts[start : start + _STEP]
                there.look_up([draft.record.id for draft in step])
                for draft in step:
                    _import_draft(write, there, draft, report)
            if dry_run:
                raise _DryRunEndError
    except _DryRunEndError:
        pass
    if progress:
        progress(len(drafts), len(drafts))
    report.run = run if report.written and not dry_run else None
    return report


def _merge_interactions(
    memory: UserMemory,
    interactions: list[Interaction],
    report: ImportReport,
    dry_run: bool,
    restoring: Callable[[], None] | None,
) -> None:
    if not interactions:
        return
    try:
        with memory.write_alongside() as tx:
            if restoring is not None:
                restoring()
            refused = refusal_if_paused(tx.state().mode, memory.config) if restoring is None else None
            if refused is not None:
                report.refused += 1
                report.skipped.append(f"interactions: {refused.message}")
            else:
                outcomes = interaction_log.store_interactions(tx, interactions, memory.clock())
                report.interactions = sum(outcome.fresh for outcome in outcomes)
                erased = [one for one in outcomes if one.message == interaction_log.ERASED_REPORT]
                report.refused += len(erased)
                report.skipped += [f"interactions: {one.message}" for one in erased]
            if dry_run:
                raise _DryRunEndError
    except _DryRunEndError:
        pass


def _import_draft(write: Write, there: StoredRecords, draft: Draft, report: ImportReport) -> None:
    record = replace(draft.record, version=1, seq=0, created_at=write.now, updated_at=write.now)
    if write.was_erased(draft.record):
        report.refused += 1
        report.skipped.append(f"{draft.where}: {ERASED}")
        return
    if there.has_id(record) or ((same := there.same(record)) is not None and same.content == record.content):
        report.duplicates += 1
        return
    if same is not None:
        report.conflicts += 1
        report.skipped.append(f"{draft.where}: {record.key} already has another value in working memory")
        return
    with within_chat(write, record.chat) if there.in_chats else nullcontext():
        outcome = write.remember(record)
    if outcome.done:
        there.add(getattr(outcome, "record", record))  # as it was stored: secrets are masked
        report.written += 1
    elif isinstance(outcome, Duplicate):
        report.duplicates += 1
    elif isinstance(outcome, Conflict):
        report.conflicts += 1
        report.skipped.append(f"{draft.where}: {outcome.message}")
    elif isinstance(outcome, Refused):
        report.refused += 1
        report.skipped.append(f"{draft.where}: {outcome.message}")


@contextmanager
def within_chat(write: Write, chat: str | None) -> Iterator[None]:
    """Compare with records of this chat only, or of no chat: the same in two chats is two records."""
    whole, write.tx = write.tx, ChatTransaction(write.tx, (chat,))
    try:
        yield
    finally:
        write.tx = whole


class StoredRecords:
    """The records already stored, looked up for each record of an import or a merge; each place is read once."""

    def __init__(self, write: Write, *, in_chats: bool = True) -> None:
        self._write = write
        self.in_chats = in_chats
        """True if the same in two chats is two records."""
        self._ids: set[str] = set()
        self._said: dict[tuple[str, str | None], dict[Hashable, Record]] = {}

    def look_up(self, ids: Sequence[str]) -> None:
        self._ids = {record.id for record in self._write.tx.find(Query(ids=ids, statuses=()))}

    def has_id(self, record: Record) -> bool:
        """Return whether the very record is stored; its id must have been looked up."""
        return record.id in self._ids

    def same(self, record: Record) -> Record | None:
        """Return the same thing at the same place, for kinds that the write path does not compare."""
        if record.kind in ("observation", "episode"):
            return self._write.cache.exact_copy(record)
        place = _location_key(record)
        return None if place is None else self._at(place).get(self._identity(record))

    def add(self, record: Record) -> None:
        place = _location_key(record)
        if place is not None:
            self._at(place)[self._identity(record)] = record
            if record.kind == "message" and ("message", None) in self._said:
                self._said["message", None][self._identity(record)] = record

    def _identity(self, record: Record) -> Hashable:
        chat = record.chat if self.in_chats else None
        if record.kind == "scratch":
            return chat, record.key
        return chat, record.content, record.valid_from if record.kind == "message" else None

    def _at(self, place: tuple[str, str | None]) -> dict[Hashable, Record]:
        if place not in self._said:
            kind, name = place
            query = Query(kinds=(kind,), session=name) if kind == "message" else Query(kinds=(kind,), key=name)
            found = self._write.tx.find(replace(query, newest_first=True))  # of several, the oldest is the last put
            self._said[place] = {self._identity(record): record for record in found}
        return self._said[place]


def _location_key(record: Record) -> tuple[str, str | None] | None:
    if record.kind == "message":
        return record.kind, record.session
    return (record.kind, record.key) if record.kind in ("scratch", "daily") else None
