"""What can still be read of a damaged SQLite database, as far as the files of the person do not tell it."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from recollect.errors import StoreCorruptError
from recollect.store.contract import Salvage, Tombstone
from recollect.store.rows import load_queries, readable
from recollect.times import from_text

_SQL = load_queries(Path(__file__).parent / "sqlite.sql")
_moment = readable(from_text)


def salvage(path: Path) -> Salvage:
    """What can still be read of a damaged database."""
    found: dict[str, list[Any]] = {"salvage_state": [], "tombstones": [], "salvage_counts": []}
    with suppress(sqlite3.Error):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            for name, rows in found.items():
                with suppress(sqlite3.Error):
                    rows.extend(db.execute(_SQL[name]))
        finally:
            db.close()
    mode, secret = found["salvage_state"][0] if found["salvage_state"] else (None, None)
    tombstones = []
    for digest, record_id, at in found["tombstones"]:
        with suppress(StoreCorruptError):
            tombstones.append(Tombstone(hash=digest, record_id=record_id, at=_moment(at)))
    return Salvage(
        aside=path,
        mode=mode if mode in ("on", "paused", "incognito") else None,
        secret=secret if isinstance(secret, bytes) and secret else None,
        tombstones=tuple(tombstones),
        counts=dict(found["salvage_counts"]) or None,
    )
