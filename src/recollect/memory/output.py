"""Writing to a path that a caller chooses: the old content stays until the new content is complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recollect.errors import InvalidInputError, storage_error


@contextmanager
def open_output(field: str, path: Path, own: Iterable[Path] = ()) -> Iterator[BinaryIO]:
    """Open a file that replaces the regular file at ``path`` once it is complete.

    If ``path`` is a symbolic link, its target is replaced. A pipe is written to. A folder, device or socket is refused:
    replacing it could break the machine. So is a path inside one of the memory's ``own`` folders, wherever links lead.
    """
    try:
        _check_outside(field, path, own)
        target, kind = _target(field, path)
        with _pipe(field, path) if kind == stat.S_IFIFO else _replacing(target) as file:
            yield file
    except OSError as error:
        raise storage_error(error, path.parent) from error


def _check_outside(field: str, path: Path, own: Iterable[Path]) -> None:
    """Raise an error for a path inside one of these folders, however they are reached."""
    above = [os.stat(one) for one in Path(os.path.realpath(path)).parents if one.is_dir()]
    for folder in own:
        if folder.is_dir() and any(os.path.samestat(os.stat(folder), one) for one in above):
            raise InvalidInputError(field, f"{path} is inside the memory's own folder; choose another path")


def _target(field: str, path: Path) -> tuple[Path, int]:
    """Return the file to write and the type of what is there, 0 if nothing."""
    try:
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError:
        kind = 0
    except (OSError, RuntimeError):
        if path.is_symlink():
            raise InvalidInputError(field, f"{path} is a broken symbolic link") from None
        raise
    if kind not in (0, stat.S_IFREG, stat.S_IFIFO):
        names = {stat.S_IFDIR: "a folder; choose a file in it", stat.S_IFSOCK: "a socket; choose a file"}
        raise InvalidInputError(field, f"{path} is {names.get(kind, 'a device; choose a file')}")
    if not target.parent.is_dir():
        raise InvalidInputError(field, f"the folder {target.parent} does not exist")
    return target, kind


@contextmanager
def _pipe(field: str, path: Path) -> Iterator[BinaryIO]:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # otherwise it would wait forever for a reader
    except OSError as error:
        raise InvalidInputError(field, f"{path} is a pipe without a reader") from error
    os.set_blocking(fd, True)
    with os.fdopen(fd, "wb") as file:
        yield file


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    # an unguessable name and O_EXCL: never write through something another user put there, such as a link
    aside = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.new")
    fd = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
