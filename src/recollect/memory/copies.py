"""Copies of memories that were joined with another, kept to undo the joining: what an erasure finds in them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

from recollect.errors import RecollectError
from recollect.memory import interaction_log
from recollect.memory.mentions import texts_of, texts_of_interaction
from recollect.memory.transfer import UNREADABLE, Archive, entry_from_dict
from recollect.policy.topics import Topic, strings_in
from recollect.records import Record, from_dict

_DAMAGED = (RecollectError, LookupError, ValueError, TypeError, AttributeError, EOFError, *UNREADABLE)


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """A `recollect.memory.mentions.Copy`, as an archive."""

    link: str
    name: str
    data: bytes

    def mentions(self, topics: Sequence[Topic]) -> bool:
        """Return True if the copy mentions one of these topics anywhere, or if that cannot be told."""
        try:
            with self._opened() as archive:
                said = list(_texts_in(archive))
                files = [text.decode("utf-8", "replace") for text in archive.files().values()]
        except _DAMAGED:
            return True
        headings = {line for text in files for line in text.splitlines() if line.startswith("#")}
        return any(
            any(map(topic.is_in, said)) or any(topic.without_lines(text, headings)[1] for text in files)
            for topic in topics
        )

    def states(self) -> list[Record]:
        """Return everything that a record of the copy says or ever said, the latest versions last."""
        try:
            with self._opened() as archive:
                entries = map(entry_from_dict, archive.rows("journal.jsonl"))
                told = [state for entry in entries for state in (entry.before, entry.after) if state is not None]
                return [*told, *map(from_dict, archive.rows("records.jsonl"))]
        except _DAMAGED:
            return []

    @contextmanager
    def _opened(self) -> Iterator[Archive]:
        with zipfile.ZipFile(BytesIO(self.data)) as opened:
            yield Archive("the archive", len(self.data), opened)


def _texts_in(archive: Archive) -> Iterator[list[str]]:
    """Yield the texts of everything in an archive but its files, together where they belong together."""
    for row in archive.rows("records.jsonl"):
        yield list(texts_of(from_dict(row)))
    for entry in map(entry_from_dict, archive.rows("journal.jsonl")):
        yield [entry.reason or ""]
        yield from (list(texts_of(record)) for record in (entry.before, entry.after) if record is not None)
    for row in archive.rows("interactions.jsonl", optional=True):
        yield list(texts_of_interaction(interaction_log.interaction_from_dict(row)))
    for row in archive.rows("runs.jsonl", optional=True):
        run = interaction_log.run_from_dict(row)
        yield [run.error or "", *strings_in(run.details)]
