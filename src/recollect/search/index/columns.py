"""Columns of the index: numbers for each document, the strings they stand for, and its id.

A document has a number; its columns hold codes for strings, and times as microseconds since 1970 (UTC). The active
messages of a session know their neighbours in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.records import Record
from recollect.search.filters import Filter
from recollect.search.index.postings import hash_text
from recollect.search.signs import Signs

NEVER = np.iinfo(np.int64).max
"""The expiry of what never expires."""

CODED = ("kind", "status", "category", "type", "source", "session", "speaker", "tier", "role", "chat")
"""The columns that hold codes of strings, -1 for none. ``tags`` holds codes of whole tuples."""

_COLUMNS: dict[str, type[np.generic]] = {
    **dict.fromkeys((*CODED, "tags"), np.int32),
    **dict.fromkeys(("kind", "status"), np.int8),  # few values, and every search compares them
    "said_at": np.int64,
    "expires_at": np.int64,
    "importance": np.float32,
    "confidence": np.float32,
    "trusted": np.bool_,
    "alive": np.bool_,
    "first": np.int32,  # its first passage, and their number
    "count": np.int32,
    "previous": np.int32,
    "following": np.int32,
    "digest": np.uint64,  # of the text and the marks
    "asks": np.bool_,
    "tells_when": np.bool_,
    "event_from": np.int64,  # the time its text is about; the start is after the end if there is none
    "event_until": np.int64,
    "version": np.int32,
    "vector": np.int32,  # the number the caller gave it, -1 for none; not saved
}
_NOT_SAVED = ("alive", "vector")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FEW_CODES = 8  # compared one by one
_STEPS = 32  # steps through a conversation to find a message's place, before searching all of it at once
_FOLD_AT = 4096  # ids kept in a dictionary, at least, before they are sorted in with the others

Array = NDArray[Any]
Mask = NDArray[np.bool_]


def microseconds(moment: datetime) -> int:
    """Return a time as a number that sorts in the same order."""
    return (moment - _EPOCH) // _MICROSECOND


class Growing:
    """Arrays of the same length that grow together."""

    def __init__(self, kinds: dict[str, type[np.generic]]) -> None:
        self.size = 0
        self.whole: dict[str, Array] = {name: np.zeros(0, dtype=kind) for name, kind in kinds.items()}

    def add(self, more: int = 1) -> int:
        """Add rows, all zero; return the number of the first."""
        begin, self.size = self.size, self.size + more
        if self.size > len(next(iter(self.whole.values()))):
            self._reserve(max(64, self.size + self.size // 2))
        return begin

    def view(self, name: str) -> Array:
        return self.whole[name][: self.size]

    def fill(self, columns: dict[str, Array]) -> None:
        """Replace whole columns, with room for more."""
        sizes = {len(columns[name]) for name in self.whole}
        if len(sizes) != 1 or not all(
            np.can_cast(columns[name].dtype, array.dtype) for name, array in self.whole.items()
        ):
            raise ValueError("columns that do not match")
        self.size = sizes.pop()
        for name, array in self.whole.items():
            grown = np.zeros(self.size + self.size // 8 + 64, dtype=array.dtype)
            grown[: self.size] = columns[name]
            self.whole[name] = grown

    def keep(self, mask: Mask) -> None:
        """Drop all other rows."""
        for name in self.whole:
            self.whole[name] = self.view(name)[mask]
        self.size = int(np.count_nonzero(mask))

    def _reserve(self, capacity: int) -> None:
        for name, array in self.whole.items():
            grown = np.zeros(capacity, dtype=array.dtype)
            grown[: len(array)] = array
            self.whole[name] = grown


class CodeTable:
    """The strings, or tuples of strings, a column's codes stand for."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values: list[Any] = list(values)
        self.codes: dict[Any, int] = {value: code for code, value in enumerate(self.values)}

    def code(self, value: Any) -> int:
        """Return the code of a value, a new one if necessary; -1 for None."""
        if value is None:
            return -1
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code


class Ids:
    """The ids of documents by number and vice versa, without a Python object for each."""

    def __init__(self) -> None:
        self.text = bytearray()
        self._ends = Growing({"end": np.int64})
        self._hashes: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)  # sorted, and whose they are
        self._numbers: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._fresh: dict[str, int] = {}

    def add(self, record_id: str) -> None:
        """Add the id of the next document."""
        number = self._ends.add()
        self.text += record_id.encode("utf-8", "surrogatepass")
        self._ends.whole["end"][number] = len(self.text)
        self._fresh[record_id] = number
        if len(self._fresh) > max(_FOLD_AT, len(self._hashes) // 4):
            self._fold()

    def drop(self, record_id: str) -> None:
        """Remove a document; its number is not reused."""
        self._fresh.pop(record_id, None)

    def bytes_of(self, number: int) -> bytes:
        """Return an id in its sort order."""
        ends = self._ends.whole["end"]
        return bytes(self.text[int(ends[number - 1]) if number else 0 : int(ends[number])])

    def of(self, number: int) -> str:
        return self.bytes_of(number).decode("utf-8", "surrogatepass")

    def find(self, record_id: str, alive: Array) -> int | None:
        """Return the number of the live document with this id."""
        if (known := self._fresh.get(record_id)) is not None:
            return known
        if not len(self._hashes):
            return None
        key = np.uint64(hash_text(record_id))
        wanted = record_id.encode("utf-8", "surrogatepass")
        place = int(self._hashes.searchsorted(key))
        while place < len(self._hashes) and self._hashes[place] == key:
            number = int(self._numbers[place])
            if alive[number] and self.bytes_of(number) == wanted:
                return number
            place += 1
        return None

    def keep(self, mask: Mask) -> None:
        """Keep only these, with new numbers."""
        self._fold()
        ends = self._ends.view("end")
        lengths = np.diff(ends, prepend=0)
        stays = np.repeat(mask, lengths)
        self.text = bytearray(np.frombuffer(self.text, dtype=np.uint8)[stays].tobytes())
        self._ends.fill({"end": np.cumsum(lengths[mask])})
        renumber = np.cumsum(mask, dtype=np.int32) - np.int32(1)
        kept = mask[self._numbers]
        self._hashes, self._numbers = self._hashes[kept], renumber[self._numbers[kept]]

    def _fold(self) -> None:
        if not self._fresh:
            return
        fresh = np.array([hash_text(record_id) for record_id in self._fresh], dtype=np.uint64)
        hashes = np.concatenate((self._hashes, fresh))
        numbers = np.concatenate((self._numbers, np.array(list(self._fresh.values()), dtype=np.int32)))
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._numbers = hashes[order], numbers[order]
        self._fresh = {}

    def arrays(self) -> dict[str, Array]:
        """Return everything to be saved."""
        self._fold()
        return {
            "id_text": np.frombuffer(bytes(self.text), dtype=np.uint8),
            "id_end": self._ends.view("end"),
            "id_hash": self._hashes,
            "id_number": self._numbers,
        }

    def fill(self, arrays: dict[str, Array]) -> None:
        self.text = bytearray(arrays["id_text"].data)
        self._ends.fill({"end": arrays["id_end"]})
        self._hashes, self._numbers = arrays["id_hash"].copy(), arrays["id_number"].copy()


class Documents(Growing):
    """The columns of all documents."""

    def __init__(self) -> None:
        super().__init__(_COLUMNS)
        self.ids = Ids()
        self.tables = {name: CodeTable() for name in (*CODED, "tags")}
        self._known_bounds: tuple[int, int, int] | None = None  # None until requested
        # the first and the last message of each session, by its code
        self._ends = Growing({"head": np.int32, "tail": np.int32})

    def new(self, record_id: str) -> int:
        """Return the number of a new document."""
        number = self.add()
        self.ids.add(record_id)
        for name in ("previous", "following", "vector"):
            self.whole[name][number] = -1
        return number

    def note(self, number: int, record: Record, text_digest: int) -> None:
        """Store the fields of a record, and put a message into its place in the conversation."""
        self._known_bounds = None
        whole, tables = self.whole, self.tables
        said_at = microseconds(record.valid_from)
        session = tables["session"].code(record.session)
        speaks = record.kind == "message" and record.status == "active" and record.session is not None
        spoke = self._speaks(number)
        stays = spoke and speaks and whole["said_at"][number] == said_at and whole["session"][number] == session
        if spoke and not stays:
            self._unlink(number)
        for name in CODED:
            whole[name][number] = tables[name].code(getattr(record, name, None))
        whole["tags"][number] = tables["tags"].code(record.tags)
        whole["said_at"][number] = said_at
        whole["expires_at"][number] = NEVER if record.expires_at is None else microseconds(record.expires_at)
        whole["importance"][number] = record.importance
        whole["confidence"][number] = record.confidence
        whole["trusted"][number] = record.trusted
        whole["digest"][number] = text_digest
        whole["version"][number] = record.version
        whole["alive"][number] = True
        if speaks and not stays:
            self._link(number)

    def note_signs(self, number: int, signs: Signs) -> None:
        whole = self.whole
        whole["asks"][number], whole["tells_when"][number] = signs.asks, signs.tells_when
        begin, end = (NEVER, 1 - NEVER) if signs.event is None else map(microseconds, signs.event)
        whole["event_from"][number], whole["event_until"][number] = begin, end

    def bury(self, number: int) -> None:
        """Remove a document."""
        self._known_bounds = None
        if self._speaks(number):
            self._unlink(number)
        self.whole["alive"][number] = False
        self.ids.drop(self.ids.of(number))

    # -- conversations ---------------------------------------------------------------------------------------

    def _speaks(self, number: int) -> bool:
        """Return True for a message that knows its neighbours."""
        whole, tables = self.whole, self.tables
        return bool(
            whole["alive"][number]
            and whole["session"][number] >= 0
            and whole["status"][number] == tables["status"].codes.get("active", -2)
            and whole["kind"][number] == tables["kind"].codes.get("message", -2)
        )

    def _speaking(self) -> Mask:
        active, message = (
            self.tables[column].codes.get(value, -2) for column, value in (("status", "active"), ("kind", "message"))
        )
        fits: Mask = self.view("alive") & (self.view("status") == active) & (self.view("kind") == message)
        return fits & (self.view("session") >= 0)

    def _before(self, number: int, other: int) -> bool:
        said = self.whole["said_at"]
        if said[number] != said[other]:
            return bool(said[number] < said[other])
        return self.ids.bytes_of(number) < self.ids.bytes_of(other)

    def _link(self, number: int) -> None:
        previous, following = self.whole["previous"], self.whole["following"]
        session = int(self.whole["session"][number])
        while self._ends.size <= session:
            fresh = self._ends.add()
            self._ends.whole["head"][fresh] = self._ends.whole["tail"][fresh] = -1
        heads, tails = self._ends.whole["head"], self._ends.whole["tail"]
        before = self._place(number, int(heads[session]), int(tails[session]))
        after = int(heads[session]) if before < 0 else int(following[before])
        previous[number], following[number] = before, after
        if before < 0:
            heads[session] = number
        else:
            following[before] = number
        if after < 0:
            tails[session] = number
        else:
            previous[after] = number

    def _place(self, number: int, head: int, tail: int) -> int:
        """Return the message of its session that it follows; -1 for none. Usually that is the last one."""
        if tail < 0 or self._before(number, head):
            return -1
        place = tail
        for _ in range(_STEPS):
            if self._before(place, number):
                return place
            place = int(self.whole["previous"][place])
        others = np.flatnonzero(self._speaking() & (self.view("session") == self.whole["session"][number]))
        others = others[others != number]
        said, moment = self.view("said_at")[others], self.whole["said_at"][number]
        same = others[said == moment]
        earlier = [int(other) for other in same if self._before(int(other), number)]
        if earlier:
            return max(earlier, key=self.ids.bytes_of)
        others = others[said < moment]
        said = self.view("said_at")[others]
        latest = others[said == said.max()]
        return max((int(other) for other in latest), key=self.ids.bytes_of)

    def _unlink(self, number: int) -> None:
        previous, following = self.whole["previous"], self.whole["following"]
        session = int(self.whole["session"][number])
        before, after = int(previous[number]), int(following[number])
        if before < 0:
            self._ends.whole["head"][session] = after
        else:
            following[before] = after
        if after < 0:
            self._ends.whole["tail"][session] = before
        else:
            previous[after] = before
        previous[number] = following[number] = -1

    def _find_ends(self) -> None:
        """Find the first and last message of each session, from the neighbours."""
        speaking, sessions = self._speaking(), self.view("session")
        ends = {}
        for name, neighbour in (("head", "previous"), ("tail", "following")):
            numbers = np.flatnonzero(speaking & (self.view(neighbour) < 0))
            ends[name] = np.full(len(self.tables["session"].values), -1, dtype=np.int32)
            ends[name][sessions[numbers]] = numbers
        self._ends.fill(ends)

    # -- as a whole ------------------------------------------------------------------------------------------

    def compact(self) -> None:
        """Drop dead documents, and every string that only they had. Numbers change."""
        self._known_bounds = None
        alive = self.view("alive").copy()
        if not alive.all():
            renumber = np.cumsum(alive, dtype=np.int32) - np.int32(1)
            self.ids.keep(alive)
            self.keep(alive)
            for name in ("previous", "following"):
                numbers = self.view(name)
                numbers[:] = np.where(numbers >= 0, renumber[numbers], np.int32(-1))
        for name, table in self.tables.items():
            used = np.bincount(self.view(name) + 1, minlength=len(table.values) + 1)[1:] > 0
            if not used.all():
                codes = np.append(np.cumsum(used, dtype=np.int32) - np.int32(1), np.int32(-1))
                self.view(name)[:] = codes[self.view(name)]
                self.tables[name] = CodeTable(
                    value for value, is_used in zip(table.values, used, strict=True) if is_used
                )
        self._find_ends()

    def arrays(self) -> dict[str, Array]:
        """Return everything to be saved after `compact`; codes in as few bytes as they need."""
        arrays = {name: self.view(name) for name in self.whole if name not in _NOT_SAVED}
        for name, table in self.tables.items():
            if len(table.values) < 1 << 15:
                arrays[name] = arrays[name].astype(np.int8 if len(table.values) < 1 << 7 else np.int16)
        return arrays | self.ids.arrays()

    def restore(self, arrays: dict[str, Array], tables: dict[str, list[Any]]) -> None:
        """Load what was saved."""
        self._known_bounds = None
        size = len(arrays["kind"])
        self.fill(arrays | {"alive": np.ones(size, dtype=np.bool_), "vector": np.full(size, -1, dtype=np.int32)})
        self.ids.fill(arrays)
        self.tables = {
            name: CodeTable(map(tuple, tables[name]) if name == "tags" else tables[name]) for name in self.tables
        }
        self._find_ends()

    # -- filtering -------------------------------------------------------------------------------------------

    def select(self, wanted: Filter) -> Mask:
        """Return the live documents that match."""
        fits = self.view("alive").copy()
        sets = {
            "kind": wanted.kinds,
            "status": wanted.statuses,
            "category": wanted.categories,
            "type": wanted.types,
            "speaker": wanted.speakers,
            "tier": () if wanted.tier is None else (wanted.tier,),
            "session": () if wanted.session is None else (wanted.session,),
        }
        for column, values in sets.items():
            if values:
                known = self.tables[column].codes
                fits &= self._among(column, [known[value] for value in values if value in known])
        if wanted.chats is not None:
            known = self.tables["chat"].codes
            allowed = [known[chat] for chat in wanted.chats if chat in known]
            own = self._among("chat", allowed)
            fits &= own | (self.view("chat") < 0) if None in wanted.chats else own
        if wanted.source is not None:
            prefix = wanted.source + ":"
            fits &= self._having("source", lambda source: source == wanted.source or source.startswith(prefix))
        if wanted.tags:
            needed = frozenset(wanted.tags)
            fits &= self._having("tags", needed.issubset)
        first, last, soonest = self._bounds()
        if wanted.said_from is not None and (moment := microseconds(wanted.said_from)) > first:
            fits &= self.view("said_at") >= moment
        if wanted.said_until is not None and (moment := microseconds(wanted.said_until)) <= last:
            fits &= self.view("said_at") < moment
        if wanted.alive_at is not None and (moment := microseconds(wanted.alive_at)) >= soonest:
            fits &= self.view("expires_at") > moment
        return fits

    def _bounds(self) -> tuple[int, int, int]:
        """Return the first and the last time anything was said, and the earliest expiry."""
        if self._known_bounds is None:
            said = self.view("said_at")
            first, last = int(said.min(initial=NEVER)), int(said.max(initial=-NEVER))
            self._known_bounds = first, last, int(self.view("expires_at").min(initial=NEVER))
        return self._known_bounds

    def _having(self, column: str, fits: Callable[[Any], bool]) -> Mask:
        return self._among(column, [code for code, value in enumerate(self.tables[column].values) if fits(value)])

    def _among(self, column: str, codes: list[int]) -> Mask:
        held = self.view(column)
        if 0 < len(codes) <= _FEW_CODES:
            fits: Mask = held == codes[0]
            for code in codes[1:]:
                fits |= held == code
            return fits
        chosen = np.zeros(len(self.tables[column].values) + 1, dtype=np.bool_)
        chosen[codes] = True  # the last place, which -1 finds, stays false
        return chosen[held]
