"""Named arrays in one file: written aside and renamed, read at once, fully checksummed.

    magic, version of the format, length and checksum of the header
    header, JSON: the caller's notes, and the name, type, length, place and checksum of each array
    the arrays, each at a multiple of 64 bytes; its checksum covers the padding after it too

It is read, not mapped: all of it is read for the checksums anyway, and overwriting a mapped file, as a restored backup
may, would change what we know or kill the process. A file that is incomplete, or not ours, is treated as missing.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from glob import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:  # reading the notes must not cost the loading of NumPy
    from numpy.typing import NDArray

MAGIC = b"RCLINDEX"
VERSION = 1
"""The version of the format. Another one is not read; the caller rebuilds the index."""

_FRONT = struct.Struct("<8sIII")
_ALIGN = 64
_TYPES = frozenset({"|i1", "|u1", "<i2", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "|b1"})

Arrays = dict[str, "NDArray[Any]"]


def write_snapshot(path: Path, notes: dict[str, Any], arrays: Arrays) -> None:
    """Save arrays with notes; the file is complete and durable, or unchanged.

    Of two processes that write at the same time, one fails with a `FileNotFoundError`.
    """
    listing = []
    offset = 0
    for name, array in arrays.items():
        kind = array.dtype.newbyteorder("<").str
        if kind not in _TYPES or array.ndim != 1:
            raise TypeError(f"a snapshot cannot store {name} of type {array.dtype}")
        checksum = zlib.crc32(_filling(array.nbytes), zlib.crc32(_bytes(array)))
        listing.append({"name": name, "type": kind, "length": len(array), "at": offset, "crc": checksum})
        offset += _padded(array.nbytes)
    header = json.dumps({"notes": notes, "arrays": listing, "bytes": offset}).encode("ascii")
    header += b" " * (_padded(_FRONT.size + len(header)) - _FRONT.size - len(header))
    front = _FRONT.pack(MAGIC, VERSION, len(header), zlib.crc32(header))
    aside = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with open(aside, "xb") as file:
            file.write(front + header)
            for array in arrays.values():
                file.write(_bytes(array))
                file.write(_filling(array.nbytes))
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)  # last: a crash before this leaves the old file whole
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    # What a killed process left aside may hold what was erased since.
    for left in path.parent.glob(f".{escape(path.name)}.*.tmp"):
        left.unlink(missing_ok=True)
    # What was erased is in the old file too: that must not come back after a crash.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_snapshot(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Return what was saved, the arrays read-only; None if it cannot be trusted."""
    try:
        with open(path, "rb") as file:
            told = _header(file)
            if told is None:
                return None
            content = file.read()
        return _load_arrays(told, content)
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def notes_of(path: Path) -> dict[str, Any]:
    """Return the notes of a snapshot, without reading all of it; empty if there is none."""
    try:
        with open(path, "rb") as file:
            told = _header(file)
        return {} if told is None else dict(told["notes"])
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return {}


def _header(file: IO[bytes]) -> dict[str, Any] | None:
    """Return the header of a file of the right length; the arrays follow."""
    magic, version, length, checksum = _FRONT.unpack(file.read(_FRONT.size))
    if magic != MAGIC or version != VERSION:
        return None
    size, begin = os.fstat(file.fileno()).st_size, _FRONT.size + length
    if size < begin or begin % _ALIGN:
        return None
    header = file.read(length)
    if zlib.crc32(header) != checksum:
        return None
    told: dict[str, Any] = json.loads(header)
    return told if size == begin + told["bytes"] else None


def _load_arrays(told: dict[str, Any], content: bytes) -> tuple[dict[str, Any], Arrays] | None:
    import numpy as np

    arrays: Arrays = {}
    whole = memoryview(content)
    for entry in told["arrays"]:
        if entry["type"] not in _TYPES:
            return None
        kind = np.dtype(entry["type"])
        start = entry["at"]
        stop = start + _padded(entry["length"] * kind.itemsize)
        if zlib.crc32(whole[start:stop]) != entry["crc"]:
            return None
        arrays[entry["name"]] = np.frombuffer(content, dtype=kind, count=entry["length"], offset=start)
    return told["notes"], arrays


def _padded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _filling(size: int) -> bytes:
    return bytes(_padded(size) - size)


def _bytes(array: NDArray[Any]) -> memoryview:
    import numpy as np

    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return memoryview(little.view(np.uint8).data)
