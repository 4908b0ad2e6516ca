"""The part of a view of one user's rows that SQLite and PostgreSQL share. The statements are in ``.sql`` files.

Conditions are written with ``?``. A subclass runs them in its own dialect: it defines how a list is passed, and adds
the user where a database holds many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any, ClassVar, TypeVar, Unpack

from recollect.records import ExtractionRun, Interaction, JournalEntry, Record, Session, Spending, ToolCall
from recollect.store.contract import (
    CallFilter,
    EntryFilter,
    FileState,
    InteractionFilter,
    Query,
    RunFilter,
    SessionPage,
    Tombstone,
    VectorRow,
)
from recollect.store.rows import (
    call_from_row,
    call_to_row,
    entry_from_row,
    file_from_row,
    file_to_row,
    from_row,
    interaction_from_row,
    interaction_to_row,
    readable,
    run_from_row,
    run_to_row,
    spending_from_row,
    spending_to_row,
)
from recollect.times import from_text, to_text

_T = TypeVar("_T")
_moment = readable(from_text)


class SqlReader:
    SQL: ClassVar[Mapping[str, Any]]
    """The named statements. Those that conditions are appended to end with a condition."""
    COLUMNS: ClassVar[Mapping[str, str]]
    """The columns for categories and types."""
    LATEST: ClassVar[str]
    CHAT: ClassVar[str]
    """An expression for the chat of a record."""
    TAG: ClassVar[str]
    """The condition that a record has a tag."""
    MOMENT: ClassVar[str] = "?"
    """A time in a comparison of pairs."""
    LAST_MOMENT: ClassVar[str]
    """A value that sorts after every time."""
    NO_LIMIT: ClassVar[int | None]

    def _rows(self, sql: Any, *values: Any) -> list[Any]:
        """Run a statement about the user."""
        raise NotImplementedError

    def _named(self, name: str, **values: Any) -> list[Any]:
        """Run a named statement with named values."""
        raise NotImplementedError

    @staticmethod
    def _among(column: str, allowed: Sequence[str]) -> tuple[str, Any]:
        """Return the condition that a column has one of these values, and the value to pass."""
        raise NotImplementedError

    # -- records

    def get(self, record_id: str) -> Record | None:
        return _first(from_row, self._rows(f"{self.SQL['find']} AND id = ? AND {self.LATEST}", record_id))

    def find(self, query: Query) -> list[Record]:
        order = ("seq",) if query.changed_after is not None else ("created_at", "id", "version")
        return self._find(query, {}, order, query.newest_first, query.limit, query.offset)

    def _find(self, query: Query, also: Mapping[str, Any], *how: Any) -> list[Record]:
        return [from_row(row) for row in self._fitting("find", self.conditions_of(query) | dict(also), *how)]

    def changed(self, after: int) -> list[tuple[int, str]]:
        return self._rows(self.SQL["changed"], after)

    def count(self) -> dict[tuple[str, str], int]:
        return {(kind, status): number for kind, status, number in self._rows(self.SQL["count"])}

    def versions(self, record_id: str) -> list[Record]:
        return [from_row(row) for row in self._rows(f"{self.SQL['find']} AND id = ? ORDER BY version", record_id)]

    def ids_ending(self, ending: str) -> list[str]:
        return [row[0] for row in self._named("ids_ending", ending=ending)]

    # -- the journal

    def entry(self, seq: int) -> JournalEntry | None:
        return _first(entry_from_row, self._rows(f"{self.SQL['entries']} AND seq = ?", seq))

    def entries(self, **wanted: Unpack[EntryFilter]) -> list[JournalEntry]:
        conditions = {
            "seq > ?": wanted.get("after", 0),
            "seq < ?": wanted.get("before"),
            "record_id = ?": wanted.get("record_id"),
            "run = ?": wanted.get("run"),
            "call = ?": wanted.get("call"),
            "undoes = ?": wanted.get("undoes"),
        }
        return [entry_from_row(row) for row in self._fitting("entries", conditions, ("seq",), *_page(wanted))]

    def numbers(self, record_ids: Sequence[str]) -> dict[str, int]:
        condition, value = self._among("record_id", record_ids)
        return dict(self._rows(f"{self.SQL['numbers']} AND {condition} GROUP BY record_id", value))

    # -- other data

    def file(self, name: str) -> FileState | None:
        return _first(file_from_row, self._rows(f"{self.SQL['files']} AND name = ?", name))

    def files(self) -> list[FileState]:
        return [file_from_row(row) for row in self._rows(f"{self.SQL['files']} ORDER BY name")]

    def tombstones(self, hashes: Sequence[str] | None = None) -> list[Tombstone]:
        wanted = {} if hashes is None else dict([self._among("hash", hashes)])
        rows = self._fitting("tombstones", wanted, ("record_id", "hash"))
        return [Tombstone(hash=row[0], record_id=row[1], at=_moment(row[2])) for row in rows]

    def recalled(self) -> dict[str, datetime]:
        return {record_id: _moment(at) for record_id, at in self._rows(self.SQL["recalls"])}

    def sessions(self, **page: Unpack[SessionPage]) -> list[Session]:
        after, as_of = page.get("after"), page.get("as_of")
        rows = self._named(
            "sessions",
            ended=self.LAST_MOMENT if after is None else to_text(after[0]),
            session="" if after is None else after[1],
            stored=self.LAST_MOMENT if as_of is None else to_text(as_of),
            limit=page["limit"],
            offset=page.get("offset", 0),
        )
        return [Session(id=row[0], messages=row[1], began=_moment(row[2]), ended=_moment(row[3])) for row in rows]

    def calls(self, **wanted: Unpack[CallFilter]) -> list[ToolCall]:
        same = {"tool = ?": wanted.get("tool"), "session = ?": wanted.get("session"), "id = ?": wanted.get("call")}
        rows = self._fitting("calls", self._span(wanted) | same, ("at", "id"), *_page(wanted))
        return [call_from_row(row) for row in rows]

    def spending(self, *, since: date | None = None, until: date | None = None) -> list[Spending]:
        wanted = {"day >= ?": since and since.isoformat(), "day <= ?": until and until.isoformat()}
        return [spending_from_row(row) for row in self._fitting("spending", wanted, ("day", "operation"))]

    def consents(self) -> dict[str, datetime]:
        return {name: _moment(at) for name, at in self._rows(self.SQL["consents"])}

    def interactions(self, **wanted: Unpack[InteractionFilter]) -> list[Interaction]:
        reported, kinds, ids = wanted.get("reported_after"), wanted.get("kinds"), wanted.get("ids")
        conditions = self._span(wanted) | {
            "reported_at > ?": None if reported is None else to_text(reported),
            "session = ?": wanted.get("session"),
            **(dict([self._among("kind", kinds)]) if kinds else {}),
            **(dict([self._among("id", ids)]) if ids is not None else {}),
        }
        rows = self._fitting("interactions", conditions, ("at", "id"), *_page(wanted))
        return [interaction_from_row(row) for row in rows]

    def last_reported(self) -> datetime | None:
        rows = self._rows(self.SQL["last_reported"])
        return _moment(rows[0][0]) if rows and rows[0][0] is not None else None

    def run(self, day: date, kind: str) -> ExtractionRun | None:
        rows = self._rows(f"{self.SQL['runs']} AND run_date = ? AND kind = ?", day.isoformat(), kind)
        return _first(run_from_row, rows)

    def runs(self, **wanted: Unpack[RunFilter]) -> list[ExtractionRun]:
        since = wanted.get("since")
        conditions = {"run_date >= ?": since and since.isoformat(), "kind = ?": wanted.get("kind")}
        return [run_from_row(row) for row in self._fitting("runs", conditions, ("run_date", "kind"), *_page(wanted))]

    def vectors(self, embedder: str, *, after: int = 0, limit: int | None = None) -> list[VectorRow]:
        rows = self._rows(self.SQL["vectors"], after, embedder, self.NO_LIMIT if limit is None else limit)
        return [VectorRow(*row) for row in rows]

    def last_vector(self, embedder: str) -> int:
        rows = self._rows(self.SQL["last_vector"], embedder)
        return rows[0][0] if rows else 0

    def unembedded(self, embedder: str, *, kinds: Sequence[str], limit: int) -> list[Record]:
        also = {self.SQL["unembedded"]: embedder}
        return self._find(Query(kinds=kinds), also, ("created_at", "id"), False, limit) if kinds else []

    # -- conditions

    def conditions_of(self, query: Query) -> dict[str, Any]:
        """Return the conditions of a query on records, with the value or values of each."""
        if query.replaced:
            # in these words the index has it
            return {"status = 'superseded'": ()} | self.narrowing(replace(query, statuses=()))
        if query.valid_at is None:
            return {self.LATEST: ()} | self.narrowing(query)
        moment = to_text(query.valid_at)
        return {self.SQL["held_at"]: (moment, moment)} | self.narrowing(query)

    def narrowing(self, query: Query) -> dict[str, Any]:
        """Return the conditions without the choice of version."""
        found: dict[str, Any] = {}
        for name, column in ({"kinds": "kind", "statuses": "status"} | dict(self.COLUMNS)).items():
            allowed = getattr(query, name)
            if allowed and (name != "statuses" or query.valid_at is None):
                # for a single value the database knows that the following columns of an index are in order
                found |= dict([(f"{column} = ?", allowed[0]) if len(allowed) == 1 else self._among(column, allowed)])
        if query.ids is not None:
            found |= [self._among("id", query.ids)]
        if query.source is not None:
            begins = query.source + ":"
            found["(source = ? OR substr(source, 1, ?) = ?)"] = (query.source, len(begins), begins)
        if query.chats is not None:
            own, named = self._among(self.CHAT, [chat for chat in query.chats if chat is not None])
            found[f"({own} OR {self.CHAT} IS NULL)" if None in query.chats else own] = named
        for number, tag in enumerate(query.tags):
            found[self.TAG + " " * number] = tag  # each a condition of its own
        for column in ("key", "tier", "session"):
            found[f"{column} = ?"] = getattr(query, column)
        found["seq > ?"] = query.changed_after
        moments = {
            "valid_from >= ?": query.said_from,
            "valid_from < ?": query.said_until,
            "(expires_at IS NULL OR expires_at > ?)": query.alive_at,
            "expires_at <= ?": query.expired_at,
        }
        found |= {condition: to_text(at) for condition, at in moments.items() if at is not None}
        if query.after is not None:
            found[self._behind("created_at", query.newest_first)] = (to_text(query.after[0]), query.after[1])
        return {condition: value for condition, value in found.items() if value is not None}

    def _behind(self, column: str, newest_first: bool) -> str:
        return f"({column}, id) {'<' if newest_first else '>'} ({self.MOMENT}, ?)"

    def _span(self, wanted: CallFilter | InteractionFilter) -> dict[str, Any]:
        since, until, after = wanted.get("since"), wanted.get("until"), wanted.get("after")
        return {
            "at >= ?": since and to_text(since),
            "at < ?": until and to_text(until),
            self._behind("at", wanted.get("newest_first", False)): after and (to_text(after[0]), after[1]),
        }

    def _fitting(
        self,
        name: str,
        wanted: Mapping[str, Any],
        order: Sequence[str],
        newest_first: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Any]:
        """Return the rows of a named query that match the conditions; those whose value is None are ignored."""
        given = {condition: value for condition, value in wanted.items() if value is not None}
        by = ", ".join(f"{column} DESC" if newest_first else column for column in order)
        sql = " AND ".join([self.SQL[name], *given]) + f" ORDER BY {by}"
        values = values_of(given)
        if limit is not None or offset:
            sql += " LIMIT ? OFFSET ?"
            values += [self.NO_LIMIT if limit is None else limit, offset]
        return self._rows(sql, *values)


class SqlTransaction(SqlReader):
    """The part of a user's transaction that both databases share."""

    def __init__(self) -> None:
        self.hooks: list[Callable[[], None]] = []
        self.erased = False
        """True if something was removed that not even a log may keep."""
        self.pending = False

    def _each(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a named statement about the user with each of these rows."""
        raise NotImplementedError

    def _change(self, name: str, *values: Any) -> None:
        """Run a named statement about the user."""
        raise NotImplementedError

    def _removed(self, name: str, *values: Any) -> int:
        """Run a named statement that removes rows of the user; return their number."""
        raise NotImplementedError

    def set_file(self, state: FileState) -> None:
        self._change("set_file", *file_to_row(state))

    def drop_file(self, name: str) -> None:
        self._change("drop_file", name)

    def bury(self, tombstones: Iterable[Tombstone]) -> None:
        self._each("bury", ((t.hash, t.record_id, to_text(t.at)) for t in tombstones))

    def set_recalled(self, moments: Mapping[str, datetime]) -> None:
        self._each("set_recall", ((record_id, to_text(at)) for record_id, at in moments.items()))

    def log_calls(self, calls: Iterable[ToolCall]) -> None:
        self._each("log_call", map(call_to_row, calls))

    def drop_calls(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        return self._drop("calls", before, ids, has_content=ids is not None)

    def charge(self, spendings: Iterable[Spending]) -> None:
        self._each("charge", map(spending_to_row, spendings))

    def set_consent(self, name: str, given: bool, at: datetime) -> None:
        if given:
            self._change("give_consent", name, to_text(at))
        else:
            self._change("withdraw_consent", name)

    def put_interactions(self, interactions: Iterable[Interaction]) -> None:
        self._each("put_interaction", map(interaction_to_row, interactions))

    def drop_interactions(self, before: datetime | None = None, *, ids: Sequence[str] | None = None) -> int:
        return self._drop("interactions", before, ids, has_content=True)

    def _drop(self, table: str, before: datetime | None, ids: Sequence[str] | None, *, has_content: bool) -> int:
        if ids is None:
            number = self._removed(f"drop_{table}", self.LAST_MOMENT if before is None else to_text(before))
        else:
            number = self._removed(f"erase_{table}", self._among("id", ids)[1])
        self.erased = self.erased or (has_content and number > 0)
        return number

    def put_run(self, run: ExtractionRun) -> None:
        self._change("drop_run", run.id, run.day.isoformat(), run.kind)
        self._change("put_run", *run_to_row(run))

    def drop_runs(self) -> int:
        return self._removed("drop_runs")

    def drop_vectors(self, *, keep: str | None) -> int:
        return self._removed("drop_vectors", keep)

    def drop_versions(self, versions: Iterable[tuple[str, int]]) -> int:
        keys = list(versions)
        self._change("erase_vectors", self._among("record_id", [record_id for record_id, _ in keys])[1])
        self.erased = True
        return sum(self._removed("drop_version", *key) for key in keys)

    def after_commit(self, hook: Callable[[], None]) -> None:
        self.hooks.append(hook)


def values_of(conditions: Mapping[str, Any]) -> list[Any]:
    """Return the values of conditions, one after another."""
    return [value for each in conditions.values() for value in (each if isinstance(each, tuple) else (each,))]


def _first(made_from: Callable[[Any], _T], rows: Sequence[Any]) -> _T | None:
    return made_from(rows[0]) if rows else None


def _page(wanted: Mapping[str, Any]) -> tuple[bool, int | None, int]:
    return wanted.get("newest_first", False), wanted.get("limit"), wanted.get("offset", 0)
