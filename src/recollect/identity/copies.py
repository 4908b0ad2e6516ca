"""The copy of a memory before it was joined with another, kept to undo that: as the bytes of an export."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.errors import storage_error
from recollect.memory.transfer import export_archive, import_any
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting


def archive(person: UserMemory, link_id: str) -> bytes:
    """Return the whole memory as the bytes of an export."""
    with _aside(person, link_id) as folder:
        return export_archive(person, folder / "memory.zip").read_bytes()


def restore(person: UserMemory, copy: bytes, link_id: str) -> None:
    """Restore the memory as it was; if there is one by now, the old one is merged into it."""
    with _aside(person, link_id) as folder:
        path = folder / "memory.zip"
        path.write_bytes(copy)
        import_any(person, Acting(actor="link"), path, from_user=None, dry_run=False, progress=None)


@contextmanager
def _aside(person: UserMemory, link_id: str) -> Iterator[Path]:
    """Provide a folder for an archive, inside the user's folder if there is one, so that erasing the user erases it
    too.
    """
    place = _place(person)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".joining-{link_id}-", dir=place) as folder:
            yield Path(folder)
    except OSError as error:
        raise storage_error(error, place) from error


def sweep(person: UserMemory, link_id: str) -> None:
    """Remove what a killed process left there, once nobody needs it."""
    for folder in _place(person).glob(f".joining-{link_id}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _place(person: UserMemory) -> Path:
    return person.files.folder or Path(tempfile.gettempdir())


def secret_of(person: UserMemory) -> str:
    """Return a value that tells one life of a memory from another."""
    with person.user.read() as reader:
        return reader.state().secret.hex()
