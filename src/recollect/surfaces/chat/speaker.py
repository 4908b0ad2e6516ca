"""The person who asks, with their memory, and the form in which they see records.

People may always see and remove their own data, so records are listed here even while memory is paused or incognito.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import blake2b

from recollect.app import Recollect
from recollect.counts import pluralize as pluralize
from recollect.document.memory_md import label_of
from recollect.errors import InvalidInputError, NotFoundError
from recollect.identity.identities import Identity
from recollect.memory.memory import Memory
from recollect.memory.mentions import records_about, topic_of
from recollect.records import DailyEntry, Fact, Message, Note, Record
from recollect.surfaces.chat.page import ChatLine, Choice, line_text
from recollect.surfaces.chat.text_fit import WIDTH, count_phone_lines, fit_cells

SHOWN = ("fact", "note", "observation", "episode", "daily")
"""The kinds that are shown. Messages are searched too; scratch values belong to the agents."""

PASSED_ON = ("forwarded", "quoted")
"""The sources of messages that are not the person's own words."""

_NUMBER = r"(?:[#№]\s?)?\d{1,12}"
_NUMBERS = re.compile(rf"{_NUMBER}(?:(?:\s*[,;&+]\s*|\s+and\s+|\s+){_NUMBER})*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A person who asks something at one moment."""

    app: Recollect
    identity: Identity
    memory: Memory
    now: datetime

    def remembered(self, *kinds: str) -> list[Record]:
        """Return active records of these kinds, pinned and new ones first."""
        if self.memory.mode == "incognito":
            found = [record for record in self._by_journal() if record.kind in kinds]
        else:
            found = [record for kind in kinds for record in self.memory.read(kind=kind)]
        return sorted(found, key=lambda record: (record.pinned, record.updated_at, record.id), reverse=True)

    def _by_journal(self) -> list[Record]:
        """Return active records from the journal: an incognito memory answers nothing else."""
        last: dict[str, Record | None] = {}
        for entry in self.memory.history():
            if entry.after is not None or entry.erased or entry.op in ("erase", "expire"):
                last[entry.record_id] = entry.after
        return [record for record in last.values() if record is not None and self.is_active(record)]

    def speaking_of(self, topic: str) -> list[Record]:
        """Return visible records that mention a topic, including messages."""
        remembered = self.remembered(*SHOWN, "message")
        try:
            found = {record.id for record in records_about(remembered, topic_of(remembered, topic), derived=False)}
        except InvalidInputError:
            return []  # the topic contains no words
        return [record for record in remembered if record.id in found]

    def is_active(self, record: Record) -> bool:
        """Return True if the record is currently remembered."""
        return record.status == "active" and (record.expires_at is None or record.expires_at > self.now)

    def numbers(self, records: Iterable[Record]) -> dict[str, int]:
        """Return the numbers of these records by id."""
        return self.memory.numbers([record.id for record in records])


def record_by_number(memory: Memory, number: int) -> Record | None:
    """Return the record with this number, whatever its status."""
    try:
        record = memory.numbered(number)
    except NotFoundError:
        return None
    # the journal numbers every change; a record's number is that of its first change
    is_shown = record.kind != "scratch" and memory.numbers([record.id]).get(record.id) == number
    return record if is_shown else None


def numbers_in(text: str) -> list[int]:
    """Return the numbers in a text such as "12" or "#12, #15 and 18"; none if it is anything else."""
    if not _NUMBERS.fullmatch(text.strip()):
        return []
    return list(dict.fromkeys(int(digits) for digits in re.findall(r"\d+", text)))


def listing_digest(*records: Record) -> str:
    """Return a fingerprint of these records with their current text."""
    return short_digest(*((record.id, record_text(record)) for record in records))


def short_digest(*parts: object) -> str:
    """Return a short fingerprint, to check that something is unchanged since a choice was offered."""
    return f"={blake2b(repr(parts).encode(), digest_size=8).hexdigest()[:6]}"


def undo_choice(number: int, record: Record) -> Choice:
    """Return the choice that undoes the last change of this record."""
    return Choice("Restore it", f"undo {number} {short_digest(record.id)}")


# records as text


def full_text(record: Record) -> str:
    """Return the full text of a record."""
    if isinstance(record, Note) and record.title:
        return f"{record.title}: {record.content}"
    if isinstance(record, Fact) and record.key and not record.label:
        return f"{label_of(record.key)}: {record.content}"
    return record.text


def record_text(record: Record) -> str:
    """Return a record as the person reads it."""
    if isinstance(record, DailyEntry):
        return f"{format_day(record.day)}: {record.content}"
    if isinstance(record, Message):
        return f"{_speaker_of(record)}: {record.content}"
    return full_text(record)


def _speaker_of(message: Message) -> str:
    if message.role != "user":
        return message.speaker or "Assistant"
    if not message.trusted and message.source in PASSED_ON:
        return message.source.capitalize()
    return message.speaker or "You"


def item_line(text: str, number: int | None, rows: int = 1) -> ChatLine:
    """Return a list item that takes at most ``rows`` lines on a phone."""
    cells = rows * WIDTH - 2 - (0 if number is None else len(f" #{number}"))
    line = ChatLine(fit_cells(text, cells), "item", number)
    while count_phone_lines(line_text(line)) > rows:  # breaking between words leaves gaps
        cells -= 3
        line = ChatLine(fit_cells(line.text, cells), "item", number)
    return line


def item_lines(asker: Asker, records: Sequence[Record], rows: int = 1) -> list[ChatLine]:
    """Return records as list items with their numbers."""
    numbers = asker.numbers(records)
    return [item_line(record_text(record), numbers.get(record.id), rows) for record in records]


def format_day(day: date) -> str:
    """Return a day as people write it: 12 Nov 2026."""
    return f"{day.day} {day:%b %Y}"
