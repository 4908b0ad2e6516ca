"""A damaged SQLite database: set aside whole, and what the person's files do not tell read from it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.errors import StoreCorruptError
from recollect.store.contract import Salvage, Tombstone
from recollect.store.rows import load_queries, readable
from recollect.times import from_text, utc_now

_SQL = load_queries(Path(__file__).parent / "sqlite.sql")
_moment = readable(from_text)


def salvage(path: Path) -> Salvage:
    """Move a damaged database out of the way, and read what can still be read of it.

    If it is gone already, because an earlier attempt was killed, read what that one set aside.
    """
    if path.exists():
        return _read(_set_aside(path))
    earlier = sorted(path.parent.glob(f"{path.name}.damaged-????????T????????????"))
    return _read(earlier[-1]) if earlier else Salvage()


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged-{utc_now():%Y%m%dT%H%M%S%f}")
    parts = [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")]
    parts = [part for part in parts if part.exists()]
    for part in parts:  # all of them first: a crash must not part the database from its log
        copy = aside.with_name(aside.name + part.name.removeprefix(path.name))
        try:
            copy.hardlink_to(part)
        except OSError:  # not every file system has links
            shutil.copyfile(part, copy)
    for part in parts:
        part.unlink()
    return aside


def _read(path: Path) -> Salvage:
    wanted = ("salvage_schema", "salvage_state", "tombstones", "salvage_counts", "consents")
    found: dict[str, list[Any]] = {name: [] for name in wanted}
    whole: set[str] = set()
    with suppress(sqlite3.Error):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            for name, rows in found.items():
                with suppress(sqlite3.Error):
                    rows.extend(db.execute(_SQL[name]))
                    whole.add(name)
        finally:
            db.close()
    mode, secret = found["salvage_state"][0] if found["salvage_state"] else (None, None)
    tombstones = []
    for digest, record_id, at in found["tombstones"]:
        with suppress(StoreCorruptError):
            tombstones.append(Tombstone(hash=digest, record_id=record_id, at=_moment(at)))
    consents: dict[str, datetime] | None = None
    if "consents" in whole or found["salvage_schema"] in ([(1,)], [(2,)]):  # which had no table for them
        with suppress(StoreCorruptError):
            consents = {name: _moment(at) for name, at in found["consents"]}
    return Salvage(
        aside=path,
        mode=mode if mode in ("on", "paused", "incognito") else None,
        secret=secret if isinstance(secret, bytes) and secret else None,
        tombstones=tuple(tombstones),
        all_tombstones="tombstones" in whole and len(tombstones) == len(found["tombstones"]),
        consents=consents,
        counts=dict(found["salvage_counts"]) if "salvage_counts" in whole else None,
    )
