"""The PostgreSQL store: many users and many machines on one database, in the tables of the seeds.

Tables live in the first schema of the search path, which a URL can set (``?options=-csearch_path%3Drecollect``) and
which is created if missing. An advisory lock keyed by the user serialises writers of all processes and is held until
the after-commit hooks are done. The server releases it when a connection dies, so a pooler between us and the server
must use session pooling. Transactions run in pipeline mode: writes wait for no answer until something is read or the
transaction ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigError, StoreCorruptError, StoreError
from recollect.records import Record
from recollect.store.contract import Salvage
from recollect.store.postgres_connections import POOL_SIZE, Connections, Pool, mapped_errors, parse_url
from recollect.store.postgres_tally import PostgresTally
from recollect.store.postgres_views import PostgresReader, PostgresTransaction
from recollect.store.rows import from_row, load_migrations, load_queries
from recollect.store.tenants import beyond, first_of, prefix_of
from recollect.usage_metrics import Tally

if TYPE_CHECKING:
    from psycopg import Connection

_HERE = Path(__file__).parent
_SQL: dict[str, Any] = load_queries(_HERE / "postgres.sql")
_USERS_PAGE = 2000
_MIGRATION_LOCK = 0x5245434F4C4C4543


class PostgresStore:
    """All users of one database. Connects at the first use; ``pool_size`` limits the connections in use."""

    def __init__(self, url: str, *, pool_size: int = POOL_SIZE) -> None:
        self._pool = Pool(parse_url(url), pool_size)
        self._tally = PostgresTally(self.reading)

    def user(self, user_id: str) -> PostgresUser:
        return PostgresUser(self, user_id)

    def users(
        self, *, tenant: str | None = None, begins: str = "", after: str = "", limit: int | None = None
    ) -> Iterator[str]:
        first = first_of(tenant, begins)
        values: dict[str, Any] = {"first": first, "beyond": beyond(first)}
        before = ["users_before"] if values["beyond"] else []
        others = ["users_of_no_tenant"] if tenant is not None and prefix_of(tenant) is None else []
        sql: Any = "\n".join(_SQL[part] for part in ("users", *before, *others, "users_in_order"))
        while limit is None or limit > 0:
            # in pages: however many there are, neither they nor a connection are held for long
            values |= {"after": after, "limit": _USERS_PAGE if limit is None else min(limit, _USERS_PAGE)}
            with mapped_errors(), self.reading() as db:
                rows = [] if db is None else db.execute(sql, values).fetchall()
            yield from (row[0] for row in rows)
            if len(rows) < values["limit"]:
                return
            after, limit = rows[-1][0], None if limit is None else limit - len(rows)

    def tally(self, tenant: str | None, since: date, until: date, seconds: float | None = None) -> Tally:
        return self._tally.tally(tenant, since, until)

    def erase_user(self, user_id: str, also: Callable[[], None] | None = None) -> dict[str, int]:
        beside = ("tool calls", "ledger", "consents", "interactions", "vectors", "words")
        places = ("records", "journal", "files", "tombstones", "recalls", "runs", *beside, "users")
        with mapped_errors(), self.reading() as known:
            if known is None:
                if also is not None:
                    also()
                return dict.fromkeys(places, 0)
        with self.user(user_id).locked([]) as db:
            row = db.execute(_SQL["erase_user"], {"user_id": user_id}).fetchone() or ()
            db.execute(_SQL["drop_user"], (user_id,))
            db.execute(_SQL["clear_user"], (user_id,))
            if also is not None:
                also()
        return dict(zip(places, row, strict=True))

    def close(self) -> None:
        self._pool.close()

    def here(self) -> Connections:
        """Return the connections of this process."""
        return self._pool.here()

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """Lend a connection for reading; None if nothing was ever written, so that reading creates no tables."""
        here = self.here()
        with here.lend() as db:
            here.migrated = here.migrated or _migrate_schema(db, reading=True)
            yield db if here.migrated else None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Lend a connection to a database that has all its tables."""
        here = self.here()
        with here.lend() as db:
            here.migrated = here.migrated or _migrate_schema(db, reading=False)
            yield db


class PostgresUser:
    def __init__(self, store: PostgresStore, user_id: str) -> None:
        self.user_id = user_id
        self._store = store
        # stable between processes; two users who share a number only wait for each other
        digest = hashlib.blake2b(user_id.encode(), digest_size=8, person=b"recollect").digest()
        self._lock = int.from_bytes(digest, "big", signed=True)

    def exists(self) -> bool:
        with mapped_errors(), self._store.reading() as db:
            return db is not None and db.execute(_SQL["exists"], (self.user_id,)).fetchone() is not None

    @contextmanager
    def read(self) -> Iterator[PostgresReader]:
        with mapped_errors(), self._store.reading() as db:
            if db is None:
                yield PostgresReader(None, self.user_id)
                return
            with db.pipeline():
                db.execute(_SQL["begin_reading"])
                yield PostgresReader(db, self.user_id)
                db.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[PostgresTransaction]:
        hooks: list[Callable[[], None]] = []
        with self.locked(hooks) as db:
            transaction = PostgresTransaction(db, self.user_id, hooks)
            yield transaction
            transaction.finish()

    @contextmanager
    def write_if_free(self) -> Iterator[PostgresTransaction | None]:
        """Open a transaction without waiting; None if another thread or process is writing."""
        here = self._store.here()
        with mapped_errors(), here.turn(self.user_id, wait=False) as is_ours:
            if not is_ours:
                yield None
                return
            with self._store.writing() as db:
                if db.execute(_SQL["lock_if_free"], (self._lock,)).fetchone() != (True,):
                    yield None
                    return
                with db.pipeline():
                    db.execute("BEGIN")
                    transaction = PostgresTransaction(db, self.user_id, [])
                    yield transaction
                    transaction.finish()
                    db.execute("COMMIT")
                    db.execute(_SQL["unlock"], (self._lock,))

    @contextmanager
    def locked(self, hooks: list[Callable[[], None]]) -> Iterator[Connection]:
        """Open a transaction that keeps all other writers of this user out until the hooks have run."""
        from psycopg import OperationalError

        with mapped_errors(), self._store.here().turn(self.user_id), self._store.writing() as db:
            with db.pipeline():
                db.execute(_SQL["lock"], (self._lock,))
                db.execute("BEGIN")
                yield db
                db.execute("COMMIT")
                if not hooks:
                    db.execute(_SQL["unlock"], (self._lock,))
            for hook in hooks:
                hook()
            if hooks:
                # a connection that has broken by now has released the lock, and the write is done
                with suppress(OperationalError):
                    db.execute(_SQL["unlock"], (self._lock,))

    def text_search(self, query: str, limit: int) -> list[Record]:
        """Return active records whose content has all words of the query, by PostgreSQL's own English search."""
        with mapped_errors(), self._store.reading() as db:
            rows = [] if db is None else db.execute(_SQL["text_search"], (query, self.user_id, limit)).fetchall()
        return [from_row(row) for row in rows]

    def rehearsal(self) -> AbstractContextManager[PostgresUser]:
        return nullcontext(self)

    def check(self) -> list[str]:
        try:
            with mapped_errors(), self._store.reading() as db:
                rows = [] if db is None else db.execute(_SQL["check"], {"user_id": self.user_id}).fetchall()
        except StoreCorruptError as error:
            return [str(error)]
        return [row[0] for row in rows]

    def lost(self) -> list[str]:
        return []

    def repair(self) -> Salvage:
        raise StoreError("PostgreSQL data cannot be repaired for one user; restore the database from a backup")

    def close(self) -> None:
        """Do nothing: connections belong to the store."""


def _migrate_schema(db: Connection, *, reading: bool) -> bool:
    """Migrate the schema, one numbered file after another. For reading, an empty schema stays empty."""
    import psycopg
    from psycopg import sql

    migrations = load_migrations(_HERE / "postgres_migrations")
    schema, there, version = _schema(db, len(migrations))
    if version == len(migrations) or (reading and version == 0):
        return version > 0
    # before the transaction: one that began earlier may not see the tables another process made
    db.execute(_SQL["lock"], (_MIGRATION_LOCK,))
    with db.transaction():
        if not there:
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        version = _schema(db, len(migrations))[2]  # another process may have been first
        if version == 0:
            _check_strangers(db, schema)
        for number, script in enumerate(migrations[version:], version + 1):
            try:
                db.execute(script.encode())
            except psycopg.errors.InvalidForeignKey:
                raise ConfigError(f"the id of table {schema}.users is not unique; {_OWN_SCHEMA}") from None
            db.execute(_SQL["set_version"], (number,))
    db.execute(_SQL["unlock"], (_MIGRATION_LOCK,))
    return True


def _schema(db: Connection, known: int) -> tuple[str, bool, int]:
    """Return the schema for our tables, whether it exists, and the version of its tables."""
    path, current, migrated = db.execute(_SQL["home"]).fetchone() or ("", None, False)
    schema = path.split(",")[0].strip().strip('"')
    if schema in ("$user", ""):
        schema = current
    if schema is None:
        raise ConfigError(f"the search path of the database has no schema; {_OWN_SCHEMA}")
    if schema != current or not migrated:
        return schema, schema == current, 0
    [version] = db.execute(_SQL["version"]).fetchone() or (0,)
    if version > known:
        raise StoreError(
            f"this memory was written by a newer Recollect (schema {version}, this one knows {known}); "
            "upgrade Recollect"
        )
    return schema, True, version


_OWN_SCHEMA = "give Recollect a schema of its own, by adding ?options=-csearch_path%3Drecollect to the database URL"


def _check_strangers(db: Connection, schema: str) -> None:
    """Refuse to share a schema with foreign tables, except a table of users with text ids."""
    for table, id_type in db.execute(_SQL["strangers"]).fetchall():
        if table != "users":
            raise ConfigError(
                f"the database has a table {schema}.{table} that does not belong to Recollect; {_OWN_SCHEMA}"
            )
        if id_type not in ("text", "character varying"):
            raise ConfigError(
                f"the id of table {schema}.users is {id_type or 'missing'}, but Recollect's user ids are "
                f"text; {_OWN_SCHEMA}"
            )
