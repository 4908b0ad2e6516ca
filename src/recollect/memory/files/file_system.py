"""Safe reading, creation and exchange of files that other programs may replace or write to at any moment.

Nothing here follows a symbolic link (call `target_of` first), waits for a FIFO, or reads a device.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import platform
import secrets
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_NO_FOLLOW: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NO_ATIME: Final[int] = getattr(os, "O_NOATIME", 0)
_UNREAD_NS: Final = 1_000_000_000
_QUIET_SECONDS: Final = 2.0
_SAVING_SECONDS: Final = 0.25

IN_THE_WAY: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP}
    | {errno.EINVAL, errno.ENAMETOOLONG, errno.ENOTEMPTY}
)
"""Errors about the place of a file rather than the disk: the file is left behind, and the memory continues."""

Stat = tuple[int, int, int]
"""Time of change, size, and inode."""


@dataclass(frozen=True, slots=True)
class Content:
    stat: Stat
    at: float
    data: bytes
    fingerprint: str
    mode: int
    read_ns: int
    """When it was last read, if the file system records that."""


def fingerprint_of(data: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(data).hexdigest()


def target_of(path: Path) -> Path:
    """Return the file that a path leads to through symbolic links.

    A link to a file of another owner is refused. Otherwise somebody who can create a link in a folder could make a
    process with more rights write where they cannot.
    """
    try:
        link = os.lstat(path)
    except FileNotFoundError:
        return path
    if not stat.S_ISLNK(link.st_mode):
        return path
    target = Path(os.path.realpath(path))
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        found = os.lstat(target.parent)  # it may be created there
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link to itself")
    if found.st_uid != link.st_uid:
        raise OSError(errno.EPERM, "it is a symbolic link to a file of another owner")
    return target


def stat_of(path: Path) -> Stat | None:
    """Return what tells one state of a file from another; None if there is no file."""
    try:
        return _stat(os.lstat(path))
    except FileNotFoundError:
        return None


def _stat(found: os.stat_result) -> Stat:
    return found.st_mtime_ns, found.st_size, found.st_ino


def read(path: Path, limit: int, *, as_reader: bool = False) -> Content | None:
    """Read at most ``limit + 1`` bytes of a file; None if there is no file.

    ``as_reader`` records the access, because the content is passed on to somebody.
    """
    for _ in range(10):
        try:
            fd = _open(path, 0 if as_reader else _NO_ATIME)
        except FileNotFoundError:
            return None
        try:
            before = os.fstat(fd)
            _check_regular(before)
            data = _read_all(fd, limit + 1)
            after = os.fstat(fd)
        finally:
            os.close(fd)
        if _stat(before) == _stat(after) == stat_of(path):  # otherwise it was changed or replaced while it was read
            mode = stat.S_IMODE(before.st_mode)
            return Content(_stat(before), time.time(), data, fingerprint_of(data), mode, before.st_atime_ns)
    raise OSError(errno.EAGAIN, "it keeps changing")


def _open(path: Path, flags: int) -> int:
    _check_regular(os.lstat(path))  # first: opening a device can have effects
    try:
        return os.open(path, os.O_RDONLY | _NO_FOLLOW | flags)
    except PermissionError:
        if not flags:
            raise
        return os.open(path, os.O_RDONLY | _NO_FOLLOW)  # it is not ours, so the access cannot be concealed


def _check_regular(found: os.stat_result) -> None:
    kinds: dict[str, Callable[[int], bool]] = {
        "a directory": stat.S_ISDIR,
        "a symbolic link": stat.S_ISLNK,
        "a FIFO": stat.S_ISFIFO,
        "a socket": stat.S_ISSOCK,
    }
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for name, is_one in kinds.items() if is_one(found.st_mode)), "a device")
        raise OSError(errno.EINVAL, f"it is {kind}, not a file")


def _read_all(fd: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(fd, min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def create(path: Path, data: bytes, mode: int = 0o644, *, sync: bool = False) -> None:
    """Create a file marked as unread, moving anything of that name out of the way."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW
    try:
        fd = os.open(path, flags, mode)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, flags, mode)
    except FileExistsError:
        remove(path)
        fd = os.open(path, flags, mode)
    try:
        while data:
            data = data[os.write(fd, data) :]
        if mode != 0o644:
            os.fchmod(fd, mode)
        if sync:
            os.fsync(fd)
        changed = os.fstat(fd).st_mtime_ns
        os.utime(fd, ns=(changed - _UNREAD_NS, changed))
    finally:
        os.close(fd)


def remove(path: Path) -> None:
    """Delete a file of ours; move a directory of that name out of the way."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        if not path.is_dir() or path.is_symlink():
            raise
        os.rename(path, spare_name(path))


def remove_whole(path: Path) -> None:
    """Delete a file or a folder, ignoring errors."""
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def spare_name(path: Path) -> Path:
    """Return an unused name beside this one."""
    return path.with_name(f"{path.name}-{secrets.token_hex(4)}")


def _is_unread(found: os.stat_result) -> bool:
    """Check the mark of `create`: an access time one second before the modification time. Every read moves it."""
    return found.st_atime_ns == found.st_mtime_ns - _UNREAD_NS


def is_unread(path: Path) -> bool:
    """Return True if nobody has read a file since `create` made it. Call only where `tells_reads`."""
    try:
        return _is_unread(os.lstat(path))
    except OSError:
        return False


def tells_reads(folder: Path) -> bool:
    """Return True if the file system of a folder records reads; many are mounted without."""
    probe = spare_name(folder / ".reads")
    try:
        create(probe, b"-")
        os.close(os.open(probe, os.O_RDONLY | _NO_FOLLOW))
        if not is_unread(probe):
            return False  # it cannot even keep the mark
        fd = os.open(probe, os.O_RDONLY | _NO_FOLLOW)
        try:
            os.read(fd, 1)
        finally:
            os.close(fd)
        return not is_unread(probe)
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(probe)


# open files


def is_being_written(path: Path) -> bool:
    """Return True if a program has a file open for writing; where the system cannot tell, if one wrote to it just now.

    Linux grants a read lease only if nobody has the file open for writing. While we hold the lease, for microseconds,
    anyone who opens the file waits, and the kernel sends us a signal. It must be one that is ignored: the default,
    SIGIO, would end the process.
    """
    try:
        fd = _open(path, _NO_ATIME)
    except OSError:
        return False
    try:
        leased = _lease(fd, fcntl.F_RDLCK)
        return changed_lately(os.fstat(fd).st_mtime_ns) if leased is None else not leased
    finally:
        os.close(fd)


def is_open_elsewhere(path: Path) -> bool:
    """Return True if a program has a file open for reading or writing, or if the system cannot tell.

    Linux grants a write lease only if nobody else has the file open.
    """
    try:
        fd = _open(path, _NO_ATIME)
    except OSError:
        return False
    try:
        return not _lease(fd, fcntl.F_WRLCK)
    finally:
        os.close(fd)


def _lease(fd: int, kind: int) -> bool | None:
    """Return whether a lease of this kind is granted, giving it back at once; None where leases are unsupported."""
    if hasattr(fcntl, "F_SETLEASE") and hasattr(fcntl, "F_SETSIG"):
        try:
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            return True
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return False
    return None


def is_being_saved(path: Path) -> bool:
    """Return True if a program keeps writing to a file, after waiting briefly for it to finish."""
    until = time.monotonic() + _SAVING_SECONDS
    while is_being_written(path):
        found = stat_of(path)
        if found is None or not changed_lately(found[0]):
            return False  # it is merely held open
        if time.monotonic() > until:
            return True
        time.sleep(0.005)
    return False


def changed_lately(changed_ns: int) -> bool:
    return abs(time.time() - changed_ns / 1e9) < _QUIET_SECONDS


# exchange and rename

_NO_REPLACE: Final = 1
_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100
_RENAMEAT2: Final = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347, "armv7l": 382}
_UNSUPPORTED: Final = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files atomically; return False if the system cannot."""
    return _try_rename(one, other, _EXCHANGE)


def move(path: Path, target: Path) -> None:
    """Rename a file; raise FileExistsError if the target exists."""
    if _try_rename(path, target, _NO_REPLACE):
        return
    try:
        os.link(path, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # no links here either: a file created right after this check would be replaced
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.replace(path, target)
    else:
        os.unlink(path)


def _try_rename(path: Path, target: Path, how: int) -> bool:
    call = _system_call()
    if call is None:
        return False
    if call(os.fsencode(path), os.fsencode(target), how) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(path), None, str(target))


@cache
def _system_call() -> Callable[[bytes, bytes, int], int] | None:
    try:
        library = ctypes.CDLL(None, use_errno=True)
    except (OSError, TypeError):
        return None
    if sys.platform == "darwin":
        flags = {_NO_REPLACE: 4, _EXCHANGE: 2}  # RENAME_EXCL, RENAME_SWAP
        swap = getattr(library, "renamex_np", None)
        return None if swap is None else lambda path, target, how: int(swap(path, target, flags[how]))
    if not sys.platform.startswith("linux"):
        return None
    rename = getattr(library, "renameat2", None)
    if rename is not None:
        return lambda path, target, how: int(rename(_AT_FDCWD, path, _AT_FDCWD, target, how))
    number = _RENAMEAT2.get(platform.machine())
    if number is None:
        return None
    syscall = library.syscall
    return lambda path, target, how: int(syscall(number, _AT_FDCWD, path, _AT_FDCWD, target, how))


@cache
def boot() -> str:
    """Return the id of this boot; empty where the system has none, and then files are synced."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def remove_folder(folder: Path) -> int:
    """Remove a folder with everything in it; return the number of its files."""
    if not folder.is_dir():
        return 0
    number = sum(1 for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder)
    return number
