"""The pages of an SQLite file, read without SQLite, so that one damaged page does not hide the others.

The format is described at https://www.sqlite.org/fileformat.html. Only for files that were set aside: opening and
closing a live database file would drop the locks this process holds on it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_PAGE_SIZE = 4096
_HEADER, FRAME_HEADER, LOG_HEADER = 100, 24, 32
_LOG_MAGIC = 0x377F0682
TABLE_LEAF, TABLE_INTERIOR, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x05, 0x0A, 0x02
_KINDS = frozenset({TABLE_LEAF, TABLE_INTERIOR, INDEX_LEAF, INDEX_INTERIOR})
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value = None | int | float | str | bytes


class UnreadablePageError(Exception):
    """A page, or a row in it, is not valid."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The location of one row: its first part on the page, the rest on overflow pages."""

    begin: int
    """The start of the payload on the page, and the length of the part there."""
    local: int
    size: int
    rowid: int | None
    overflow: int


@dataclass(slots=True)
class PageTree:
    """The rows found below a root page."""

    rows: list[tuple[int | None, list[Value]]] = field(default_factory=list)
    complete: bool = True


class PageFile:
    """A database file together with its write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        log = path.with_name(path.name + "-wal")
        self._log = log.read_bytes() if log.is_file() else b""
        known = self._data[:16] == _MAGIC
        self.page_size = _size_in(self._data, 16, ">H") if known else _size_in(self._log, 8, ">I")
        reserved = self._data[20] if known else 0
        self.usable = self.page_size - reserved if reserved <= self.page_size // 2 else self.page_size
        self._changed: dict[int, int | None] = {}
        """Pages that the log replaces: the offset in it, or None if its frame is damaged."""
        self.broken_frames = 0
        self._read_log()
        self.seen: set[int] = set()
        """Pages that were read, and pages that should have been but could not."""
        self.unreadable: set[int] = set()

    @property
    def count(self) -> int:
        """The number of pages."""
        return max(len(self._data) // self.page_size, max(self._changed, default=0))

    def page(self, number: int) -> bytes:
        """Return the latest content of a page."""
        place = self._changed.get(number, -1)
        if place is None:
            raise UnreadablePageError(number)
        data, begin = (self._data, (number - 1) * self.page_size) if place < 0 else (self._log, place)
        found = data[begin : begin + self.page_size]
        if number < 1 or len(found) < self.page_size:
            raise UnreadablePageError(number)
        return found

    def tree(self, root: int) -> PageTree:
        """Return every readable row below a root page."""
        found = PageTree()
        waiting = [root]
        while waiting:
            number = waiting.pop()
            if number in self.seen:
                found.complete = False  # two parents, or a cycle
                continue
            try:
                data = self.page(number)
                kind = page_kind(data, number)
            except UnreadablePageError:
                self.unreadable.add(number)
                found.complete = False
                continue
            self.seen.add(number)
            if kind in (TABLE_INTERIOR, INDEX_INTERIOR):
                waiting += self._children(data, number, kind, found)
            if kind != TABLE_INTERIOR:
                found.rows += self.rows(number, found)
        return found

    def rows(self, number: int, within: PageTree) -> Iterator[tuple[int | None, list[Value]]]:
        """Yield the rows of one page; invalid ones are left out and mark the tree incomplete."""
        data = self.page(number)

        def failed() -> None:
            within.complete = False
            self.unreadable.add(number)

        for cell in cells(data, number, self.usable, failed):
            try:
                yield cell.rowid, decode_row(self._payload(data, cell))
            except (UnreadablePageError, ValueError):
                failed()

    def free_pages(self) -> set[int]:
        """Return unused pages, as far as the list of them can be read."""
        free: set[int] = set()
        try:
            trunk = int.from_bytes(self.page(1)[32:36], "big")
            while trunk and trunk not in free:
                data = self.page(trunk)
                free.add(trunk)
                number = int.from_bytes(data[4:8], "big")
                free.update(struct.unpack_from(f">{min(number, self.usable // 4 - 2)}I", data, 8))
                trunk = int.from_bytes(data[:4], "big")
        except UnreadablePageError:
            pass
        return free

    def _children(self, data: bytes, number: int, kind: int, found: PageTree) -> list[int]:
        start = _HEADER if number == 1 else 0
        children = [int.from_bytes(data[start + 8 : start + 12], "big")]
        for place in _cell_offsets(data, start, 12):
            if not start + 12 <= place <= self.usable - 4:
                found.complete = False
                self.unreadable.add(number)
                continue
            children.append(int.from_bytes(data[place : place + 4], "big"))
        return children

    def _payload(self, data: bytes, cell: Cell) -> bytes:
        parts, left, number = [data[cell.begin : cell.begin + cell.local]], cell.size - cell.local, cell.overflow
        while left > 0:
            page = self.page(number)
            self.seen.add(number)
            part = page[4 : 4 + min(left, self.usable - 4)]
            parts.append(part)
            left -= len(part)
            number = int.from_bytes(page[:4], "big")
            if (left > 0) != (number > 0):
                raise UnreadablePageError(number)
        return b"".join(parts)

    def _read_log(self) -> None:
        """Find the pages that the log replaces, up to its last commit.

        Each frame's checksum continues that of the frame before, which is stored there. So a damaged frame does not
        invalidate those after it, though SQLite stops at it.
        """
        if len(self._log) < LOG_HEADER + FRAME_HEADER:
            return
        size = FRAME_HEADER + self.page_size
        magic, salts, seed = self._log[:4], self._log[16:24], self._log[24:32]
        if int.from_bytes(magic, "big") & ~1 != _LOG_MAGIC:
            magic, salts = _LOG_MAGIC.to_bytes(4, "big"), self._log[LOG_HEADER + 8 : LOG_HEADER + 16]
        order = ">" if magic[3] & 1 else "<"
        pending: dict[int, int | None] = {}
        broken = 0
        for begin in range(LOG_HEADER, len(self._log) - size + 1, size):
            header, data = self._log[begin : begin + 24], begin + FRAME_HEADER
            number, commit = struct.unpack(">II", header[:8])
            ours = header[8:16] == salts
            good = ours and header[16:24] == _checksum(header[:8], self._log[data : begin + size], seed, order)
            seed = header[16:24]
            if good:
                pending[number] = data
                self.broken_frames, broken = self.broken_frames + broken, 0
            elif ours:
                self.broken_frames += 1
                if 0 < number <= 1 << 24:
                    pending[number] = None
            else:  # damaged if a frame of this log follows; otherwise left over from an earlier log
                broken += 1
            if good and commit:
                self._changed.update(pending)
                pending = {}


def page_kind(data: bytes, number: int) -> int:
    """Return the type of a tree page."""
    kind = data[_HEADER if number == 1 else 0]
    if kind not in _KINDS:
        raise UnreadablePageError(number)
    return kind


def cells(data: bytes, number: int, usable: int, failed: Callable[[], None]) -> Iterator[Cell]:
    """Yield the rows of a leaf or of an interior index page; ``failed`` is called for each invalid one."""
    start = _HEADER if number == 1 else 0
    kind = page_kind(data, number)
    if kind == TABLE_INTERIOR:
        return
    interior = kind == INDEX_INTERIOR
    most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    least = (usable - 12) * 32 // 255 - 23
    for place in _cell_offsets(data, start, 12 if interior else 8):
        try:
            position = place + 4 if interior else place
            size, position = _varint(data, position)
            rowid = None
            if kind == TABLE_LEAF:
                rowid, position = _varint(data, position)
                rowid = rowid - (1 << 64) if rowid >= 1 << 63 else rowid
            local, overflow = size, 0
            if size > most:
                local = least + (size - least) % (usable - 4)
                local = local if local <= most else least
                overflow = int.from_bytes(data[position + local : position + local + 4], "big")
            if place < start + 8 or size < 1 or position + local + (4 if overflow else 0) > usable:
                raise UnreadablePageError(number)
        except (UnreadablePageError, IndexError):
            failed()
            continue
        yield Cell(position, local, size, rowid, overflow)


def decode_row(payload: bytes) -> list[Value]:
    """Return the values of a row."""
    try:
        length, position = _varint(payload, 0)
        kinds = []
        while position < length:
            kind, position = _varint(payload, position)
            kinds.append(kind)
    except IndexError:
        raise UnreadablePageError from None
    if position != length:
        raise UnreadablePageError
    values: list[Value] = []
    for kind in kinds:
        size = _INTEGERS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        raw = payload[position : position + size]
        position += size
        if len(raw) < size or kind in (10, 11):
            raise UnreadablePageError
        if kind == 0:
            values.append(None)
        elif kind in (8, 9):
            values.append(kind - 8)
        elif kind == 7:
            values.append(struct.unpack(">d", raw)[0])
        elif kind < 7:
            values.append(int.from_bytes(raw, "big", signed=True))
        else:
            values.append(raw.decode("utf-8") if kind % 2 else raw)
    if position != len(payload):
        raise UnreadablePageError
    return values


def _cell_offsets(data: bytes, start: int, header: int) -> tuple[int, ...]:
    number = int.from_bytes(data[start + 3 : start + 5], "big")
    room = (len(data) - start - header) // 2
    return struct.unpack_from(f">{min(number, room)}H", data, start + header)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[position + count]
        if count == 8:
            return value << 8 | byte, position + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, position + count + 1
    raise UnreadablePageError


def _size_in(data: bytes, place: int, form: str) -> int:
    if len(data) < place + 4:
        return _PAGE_SIZE
    (size,) = struct.unpack_from(form, data, place)
    size = 65536 if size == 1 else size
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else _PAGE_SIZE


def _checksum(header: bytes, data: bytes, seed: bytes, order: str) -> bytes:
    first, second = struct.unpack(">II", seed)
    words = struct.unpack(f"{order}{(len(header) + len(data)) // 4}I", header + data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return struct.pack(">II", first, second)
