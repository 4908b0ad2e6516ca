"""Finding the version of a file that a saved text was made from.

A person's editor may hold a version from long ago. Their changes are the difference to that version, not to what the
file says by now: only somebody who had a line before them can have deleted it.

A version is written as journal numbers. ``(k,)`` is what the file showed after entry k. ``(k, a, b, …)`` is that plus
the entries after a and up to b: what somebody saved who had started from k, while others changed other things. Nothing
of an erased record is kept.

The version is recognised by its lines: the one with most of the saved lines, then the one with most lines that resemble
the others. If several are equal, any of them may be meant, so only lines that all of them showed can have been deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from recollect.records import KINDS, JournalEntry, Record
from recollect.store.contract import Reader

Version: TypeAlias = tuple[int, ...]

MOST: Final = 200
"""The number of versions of a file that are remembered."""
_MOST_CHANGES: Final = 20_000  # journal entries read to find a version
_MOST_PAIRS: Final = 1000  # lines compared by their words, per version
_MOST_NUMBERS: Final = 4000  # in all versions together: a text saved again and again while others write has many
NO_FILE: Final = (0, 0, 0)
"""Stands for no file: somebody may have begun one by hand before there was one, and save it now."""
_FORGOTTEN: Final = (-1,)
"""Stands for versions that are no longer remembered."""


@dataclass(frozen=True, slots=True)
class PageView:
    """The records a page shows, and how their lines are compared."""

    kinds: tuple[str, ...]
    shows: Callable[[Record], bool]
    line: Callable[[Record], Hashable]
    alike: Callable[[Sequence[Record], Set[Hashable]], int]
    """Counts the records that resemble one of these lines."""
    headings: Callable[[], bool]
    """Returns True if the saved text has the headings of a file that we rendered, or nothing else."""


@dataclass(frozen=True, slots=True)
class Base:
    """The version that a text was made from."""

    version: Version
    records: dict[str, Record]
    """The records it showed, as they were then."""
    deletable: Set[str]
    """The ids of records that every possible version showed."""
    since: int
    """The oldest of those versions."""


def following_version(version: Version, after: int, until: int) -> Version:
    """Return the version of somebody who started from this one and made the changes of these journal entries."""
    return version if after == until else (*version, after, until)


def versions_to_keep(versions: Sequence[Version]) -> tuple[Version, ...]:
    """Return the versions to keep, each once, the latest last, with a marker if others were dropped."""
    kept: dict[Version, None] = {}
    numbers = 0
    for version in reversed(versions):
        numbers += 0 if version in kept else len(version)
        if version == _FORGOTTEN or len(kept) == MOST or numbers > _MOST_NUMBERS:
            return (_FORGOTTEN, *reversed(kept))
        kept[version] = None
    return tuple(reversed(kept))


def find_base(
    reader: Reader,
    now: Mapping[str, Record],
    versions: Sequence[Version],
    lines: Set[Hashable],
    page: PageView,
    erased: Sequence[Sequence[tuple[int, int]]] = (),
) -> Base | None:
    """Return the version that agrees best, then the one that lacks least, then the latest.

    ``now`` holds the records the page should show at present. ``erased`` holds, for each line that was erased, the
    journal entries that stored and erased it. None if the version may be one that is no longer remembered.
    """
    walk = _JournalWalk(reader, now, versions, page)
    agreements: dict[Version, tuple[int, int]] = {}
    blank: set[Version] = set()
    for version, there in walk.back():
        hits = sum(page.line(record) in lines for record in there.changed.values())
        hits += there.hits(lines)
        gone = sum(any(_showed(version, *span) for span in spans) for spans in erased)
        agreements[version] = hits + gone, hits - there.size
        if not there.size:
            blank.add(version)
    if not agreements:
        return None
    best = max(hits for hits, _ in agreements.values())
    if NO_FILE in agreements and len(agreements) > 1:
        if not best and not page.headings():
            return Base(NO_FILE, {}, set(), 0)
        del agreements[NO_FILE]
    likely = {version for version, (hits, _) in agreements.items() if hits == best}
    if len(likely) > 1:
        older = set() if best else _cleared(reader, walk, likely & blank)
        likely = likely if best else _not_saved_from(likely - older or likely, agreements) | (likely & blank - older)
    if len(likely) > 1:
        likely = _most_alike(_JournalWalk(reader, now, versions, page, walk.entries), likely, lines, page)
    chosen = max(likely, key=lambda version: (agreements[version][1], walk.place[version]))
    records: dict[str, Record] = {}
    deletable: set[str] | None = None
    for version, there in _JournalWalk(reader, now, versions, page, walk.entries).back():
        if version in likely:
            ids = there.ids()
            deletable = ids if deletable is None else deletable & ids
            if version == chosen:
                records = there.records()
    if walk.forgot_some and min(agreements, key=lambda version: walk.place[version]) in likely:
        deletable = set()  # nothing rules out a version older than all that are remembered
    if walk.forgot_some and _is_older(reader, lines - {page.line(record) for record in records.values()}, page):
        return None
    return Base(chosen, records, deletable or set(), min(version[0] for version in likely))


def _showed(version: Version, stored: int, erased: int) -> bool:
    """Return True if a version had a line that these journal entries stored and erased."""
    spans = zip(version[1::2], version[2::2], strict=True)
    return version[0] < erased and (stored <= version[0] or any(after < stored <= until for after, until in spans))


def _cleared(reader: Reader, walk: _JournalWalk, blank: Set[Version]) -> set[Version]:
    """Return those of these versions of which everything was erased: a text with no line of them is of a later one."""
    if not blank:
        return set()
    gone = [entry for entry in walk.entries if entry.op == "erase"][-_MOST_PAIRS:]
    stored = [(reader.entries(record_id=entry.record_id, limit=1), entry.seq) for entry in gone]
    return {one for one in blank if any(first and _showed(one, first[0].seq, last) for first, last in stored)}


def _is_older(reader: Reader, lines: Set[Hashable], page: PageView) -> bool:
    """Return True if one of these lines is what a record used to say: then the text is older than all versions."""
    said = (entry.before for entry in reader.entries() if entry.before is not None and page.shows(entry.before))
    return any(page.line(record) in lines for record in said)


def _not_saved_from(likely: set[Version], versions: Collection[Version]) -> set[Version]:
    """Drop versions that somebody has saved from since: if a text shares no line with any version, its author more
    likely continued from that save.
    """
    return {one for one in likely if not any(other[: len(one)] == one != other for other in versions)} or likely


def _most_alike(walk: _JournalWalk, likely: Set[Version], lines: Set[Hashable], page: PageView) -> set[Version]:
    alike: dict[Version, int] = {}
    for version, there in walk.back():
        if version in likely:
            shown = {record_id: page.line(record) for record_id, record in there.records().items()}
            records = there.records()
            missing = [records[record_id] for record_id, line in shown.items() if line not in lines]
            new = lines - set(shown.values())
            alike[version] = page.alike(missing, new) if 0 < len(missing) * len(new) <= _MOST_PAIRS else 0
    most = max(alike.values())
    return {version for version, number in alike.items() if number == most}


@dataclass(slots=True)
class _VersionRecords:
    """The records one version showed: those at its start, except the ones changed from it."""

    begun: dict[str, Record]
    begun_hits: Callable[[Set[Hashable]], int]
    line: Callable[[Record], Hashable]
    changed: dict[str, Record] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def hits(self, lines: Set[Hashable]) -> int:
        replaced = [self.begun[record_id] for record_id in self.touched if record_id in self.begun]
        return self.begun_hits(lines) - sum(self.line(record) in lines for record in replaced)

    @property
    def size(self) -> int:
        return len(self.begun) - len(self.touched & self.begun.keys()) + len(self.changed)

    def ids(self) -> set[str]:
        return (self.begun.keys() - self.touched) | self.changed.keys()

    def records(self) -> dict[str, Record]:
        return {key: record for key, record in self.begun.items() if key not in self.touched} | self.changed


class _JournalWalk:
    """A walk back through the journal, from what a page should show now to each of its versions."""

    def __init__(
        self,
        reader: Reader,
        now: Mapping[str, Record],
        versions: Sequence[Version],
        page: PageView,
        entries: list[JournalEntry] | None = None,
    ) -> None:
        self.place = {version: number for number, version in enumerate(versions) if version != _FORGOTTEN}
        self.forgot_some = _FORGOTTEN in versions
        self._page = page
        self._now = now
        self._first = min((version[0] for version in self.place), default=0)
        self.entries = self._read(reader) if entries is None else entries
        if self.entries and len(self.entries) == _MOST_CHANGES:
            self._first = self.entries[0].seq
            self.forgot_some = True

    def _read(self, reader: Reader) -> list[JournalEntry]:
        others = tuple(f"{kind}-" for kind in KINDS if kind not in self._page.kinds)
        changed = [
            seq for seq, record_id in reader.changed(self._first) if record_id and not record_id.startswith(others)
        ]
        changed = changed[-_MOST_CHANGES:]
        found = (reader.entry(seq) for seq in changed)
        return [entry for entry in found if entry is not None]

    def back(self) -> Iterator[tuple[Version, _VersionRecords]]:
        """Yield each version that can be reached, latest start first. The yielded value changes with the next step."""
        page, shown = self._page, dict(self._now)
        counted: dict[str, bool] = {}
        total: int | None = None

        def hits(lines: Set[Hashable]) -> int:
            nonlocal total
            if total is None:
                counted.update({key: page.line(record) in lines for key, record in shown.items()})
                total = sum(counted.values())
            for key in stale:
                total -= counted.pop(key, False)
                if key in shown:
                    counted[key] = page.line(shown[key]) in lines
                    total += counted[key]
            stale.clear()
            return total

        stale: set[str] = set()
        left = len(self.entries)
        begins: dict[int, list[Version]] = {}
        for version in self.place:
            begins.setdefault(version[0], []).append(version)
        for begin in sorted(begins, reverse=True):
            if begin < self._first:
                break
            while left and self.entries[left - 1].seq > begin:
                left -= 1
                entry = self.entries[left]
                shown.pop(entry.record_id, None)
                stale.add(entry.record_id)
                if entry.before is not None and page.shows(entry.before):
                    shown[entry.record_id] = entry.before
            for version in begins[begin]:
                there = _VersionRecords(shown, hits, page.line)
                self._replay(there, version, left)
                yield version, there

    def _replay(self, there: _VersionRecords, version: Version, left: int) -> None:
        spans = list(zip(version[1::2], version[2::2], strict=True))
        if not spans:
            return
        for entry in self.entries[left:]:
            if any(after < entry.seq <= until for after, until in spans):
                there.touched.add(entry.record_id)
                there.changed.pop(entry.record_id, None)
                if entry.after is not None and self._page.shows(entry.after):
                    there.changed[entry.record_id] = entry.after
