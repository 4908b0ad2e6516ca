"""Tables of the service, which hold nobody's memory: identities, keys to the API.

There is one set of queries for both databases. A `ServiceTables` lends a `View` for reading, or for writing: then,
unless its tables need no turns, no other process writes, so that whoever looks first and changes then does it alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from recollect.errors import ConfigError, InvalidInputError

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LARGEST = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What is kept: the queries by their names, and what the databases call it."""

    name: str
    """Of the file, of the folders with the migrations, and in messages."""
    queries: Mapping[str, str] = field(repr=False)
    versions: str
    """The table that tells the version, in PostgreSQL."""
    lock: int
    if_lost: str
    """What it means if the file is moved away."""
    in_turns: bool = True

    def migrations(self, database: str) -> Path:
        """The folder of the scripts that make them."""
        return Path(__file__).parent / f"{self.name}_{database}_migrations"


def check_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values, if every database can hold them: a caller's odd one is no failure of the storage."""
    for name, value in values.items():
        if isinstance(value, str):
            fits = not _UNSTORABLE.search(value)
        elif isinstance(value, int):
            fits = -_LARGEST <= value < _LARGEST
        else:
            fits = value is None or isinstance(value, bytes | float)
        if not fits:
            raise InvalidInputError(name, "is nothing that can be stored; use plain text without control characters")
    return values


class View(Protocol):
    """The tables, as one transaction sees them."""

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """What a query gives."""
        ...

    def run(self, query: str, **values: Any) -> int:
        """Change something, and say how many rows it were."""
        ...


class ServiceTables(Protocol):
    """A database with such tables."""

    def read(self) -> AbstractContextManager[View | None]:
        """A view; None if nothing was ever stored, for reading creates nothing."""
        ...

    def write(self, *, erases: bool = False) -> AbstractContextManager[View]:
        """An open transaction; an exception inside rolls it back. What it ``erases`` must not survive in a log."""
        ...

    @property
    def pending(self) -> bool:
        """Whether what was erased is still in a log, because somebody else is reading."""
        ...

    def finish_erasing(self) -> None:
        """Try again to remove from the log what is `pending` there."""
        ...

    def close(self) -> None:
        """Let go of files; the next use opens them again."""
        ...


class NoServiceTables:
    """For a store of one's own: nothing is there, and nothing can be kept."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @contextmanager
    def read(self) -> Iterator[View | None]:
        yield None

    @contextmanager
    def write(self, *, erases: bool = False) -> Iterator[View]:
        raise ConfigError(f"{self._tables.name} can be kept in a folder or in PostgreSQL only")
        yield  # pragma: no cover

    @property
    def pending(self) -> bool:
        return False

    def finish_erasing(self) -> None:
        """There is nothing."""

    def close(self) -> None:
        """There is nothing."""
