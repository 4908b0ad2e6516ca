"""Service tables, which belong to no user's memory: identities, API keys.

Both databases share one set of queries. A `ServiceTables` opens a `View` for reading or writing. While one writes, no
other process does, unless its tables need no turns; so reading first and then changing is safe.
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
    """A set of tables: the queries by name, and the names in the databases."""

    name: str
    """The name of the file, of the folders with the migrations, and in messages."""
    queries: Mapping[str, str] = field(repr=False)
    versions: str
    """The table with the schema version, in PostgreSQL."""
    lock: int
    if_lost: str
    """The consequence of moving the file away."""
    in_turns: bool = True

    def migrations(self, database: str) -> Path:
        """Return the folder of the migrations."""
        return Path(__file__).parent / f"{self.name}_{database}_migrations"


def check_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values, or raise an error if a database cannot hold one: odd input is not a storage failure."""
    for name, value in values.items():
        if isinstance(value, str):
            fits = not _UNSTORABLE.search(value)
        elif isinstance(value, int):
            fits = -_LARGEST <= value < _LARGEST
        else:
            fits = value is None or isinstance(value, bytes | float)
        if not fits:
            raise InvalidInputError(name, "cannot be stored; use plain text without control characters")
    return values


class View(Protocol):
    """The tables as one transaction sees them."""

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        ...

    def run(self, query: str, **values: Any) -> int:
        """Run a change; return the number of rows."""
        ...


class ServiceTables(Protocol):
    """A database with service tables."""

    def read(self) -> AbstractContextManager[View | None]:
        """Open a view; None if nothing was ever stored, because reading creates nothing."""
        ...

    def write(self, *, erases: bool = False) -> AbstractContextManager[View]:
        """Open a transaction; an exception inside rolls it back. What it ``erases`` must not survive in a log."""
        ...

    @property
    def pending(self) -> bool:
        """True if a log still holds what was erased, because somebody else is reading."""
        ...

    def finish_erasing(self) -> None:
        """Try again to remove from the log what is `pending`."""
        ...

    def close(self) -> None:
        """Close files; the next use opens them again."""
        ...


class NoServiceTables:
    """The service tables of a custom store: empty, and nothing can be stored."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @contextmanager
    def read(self) -> Iterator[View | None]:
        yield None

    @contextmanager
    def write(self, *, erases: bool = False) -> Iterator[View]:
        raise ConfigError(f"{self._tables.name} can only be stored in a folder or in PostgreSQL")
        yield  # pragma: no cover

    @property
    def pending(self) -> bool:
        return False

    def finish_erasing(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
