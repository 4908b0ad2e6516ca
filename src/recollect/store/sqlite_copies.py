"""Damaged databases that a repair set aside: finding them, and overwriting erased records in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from recollect.records import KINDS
from recollect.store.sqlite_pages import FRAME_HEADER, LOG_HEADER, PageFile, UnreadablePageError, cells

_ID = re.compile(rb"(?:%s)-[0-9a-z]{26}" % "|".join(KINDS).encode())
"""The first id in a row is that of its record; others follow."""


def copies(path: Path) -> list[Path]:
    """Return databases that were set aside, the latest last."""
    return sorted(path.parent.glob(f"{path.name}.damaged-????????T????????????"))


def erase_from_copies(path: Path, ids: Iterable[str], texts: Iterable[str] = (), *, dry_run: bool = False) -> int:
    """Overwrite the rows of these records in databases that were set aside; return their number.

    On pages that cannot be read, the ids and ``texts`` are overwritten wherever they occur.
    """
    wanted = frozenset(ids)
    return sum(_Copy(copy).erase(wanted, texts, dry_run) for copy in copies(path) if copy.is_file()) if wanted else 0


class _Copy:
    """A database that was set aside, opened for writing: all its pages, including those in its log."""

    def __init__(self, path: Path) -> None:
        self._parts = [part for part in (path, path.with_name(path.name + "-wal")) if part.is_file()]
        self._data = [bytearray(part.read_bytes()) for part in self._parts]
        file = PageFile(path)
        self._size, self._usable = file.page_size, file.usable
        self._pages: dict[int, list[tuple[bytearray, int]]] = {}
        for begin in range(0, len(self._data[0]), self._size):
            self._pages[begin // self._size + 1] = [(self._data[0], begin)]
        for number, data, begin in self._frames():
            self._pages.setdefault(number, []).append((data, begin))

    def _frames(self) -> Iterator[tuple[int, bytearray, int]]:
        for data in self._data[1:]:
            for begin in range(LOG_HEADER, len(data), FRAME_HEADER + self._size):
                yield int.from_bytes(data[begin : begin + 4], "big"), data, begin + FRAME_HEADER

    def erase(self, ids: frozenset[str], texts: Iterable[str], dry_run: bool) -> int:
        said = [*ids, *(text for text in texts if len(text) > 3)]
        longest_first = sorted({re.escape(text.encode()) for text in said}, key=lambda trace: -len(trace))
        traces = re.compile(b"|".join(longest_first))
        number = 0
        for page, places in list(self._pages.items()):
            for data, begin in places:
                number += self._erase_on(page, data, begin, ids, traces)
        if number and not dry_run:
            for part, data in zip(self._parts, self._data, strict=True):
                with part.open("r+b") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
        return number

    def _erase_on(self, page: int, data: bytearray, begin: int, ids: frozenset[str], traces: re.Pattern[bytes]) -> int:
        number, failures = 0, []
        foreign = [name.encode() for name in ids if not _ID.fullmatch(name.encode())]
        content = bytes(data[begin : begin + self._size])
        try:
            for cell in cells(content, page, self._usable, lambda: failures.append(page)):
                row = content[cell.begin : cell.begin + cell.local]
                named = _ID.search(row)
                if (named is not None and named.group().decode() in ids) or any(odd in row for odd in foreign):
                    data[begin + cell.begin : begin + cell.begin + cell.local] = bytes(cell.local)
                    self._erase_chain(cell.overflow)
                    number += 1
        except (UnreadablePageError, IndexError):
            failures.append(page)
        if failures:
            for found in traces.finditer(bytes(data[begin : begin + self._size])):
                data[begin + found.start() : begin + found.end()] = bytes(found.end() - found.start())
                number += 1
        return number

    def _erase_chain(self, number: int) -> None:
        waiting, done = [number], {0}
        while waiting:
            page = waiting.pop()
            if page not in done:
                done.add(page)
                for data, begin in self._pages.get(page, ()):
                    if data[begin] == 0:  # as on every overflow page; otherwise it belongs to a tree by now
                        waiting.append(int.from_bytes(data[begin : begin + 4], "big"))
                        end = min(begin + self._size, len(data))
                        data[begin:end] = bytes(end - begin)
