"""What remains of an erased statement: keyed hashes, by which it is recognised in every text of a record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from recollect.policy.duplicates.comparison import signature
from recollect.records import USER_EDIT, Message, Record
from recollect.text import folded_words

_ENTRIES = frozenset({"fact", "daily", "note", "observation", "episode"})
_TEXTS = ("label", "title", "topic", "excerpt", "source")
_LONE_WORD = b"lone word"
"""Sets the hash of an erased one-word value apart from that of a record that is just this word."""
_MARKS = re.compile(r"^[\s>#*+<!|-]*(?:\d+[.)]\s)?(?:\[.\]\s)?|[\s>*|-]+$")  # of lists, quotes, headings and comments


def tombstone_hashes(record: Record, secret: bytes) -> list[str]:
    """Return the hashes that recognise an erased record where this secret is, the one with its key first.

    A single word says nothing without its key: after "pets: no" was erased, "children: no" is another statement. But an
    entry that has no key and is nothing but the erased word is the erased thing. A message is speech, not an entry.
    """
    key = record.entry_key
    hashes = [_hash(record.content, key, secret)]
    if len(folded_words(record.content)) > 1:
        return [*hashes, _hash(record.content, None, secret)] if key else hashes
    return hashes if key or record.kind not in _ENTRIES else [*hashes, _hash(record.content, None, secret, _LONE_WORD)]


def burial_hashes(record: Record, secret: bytes) -> list[str]:
    """Return the hashes to keep of a record that is erased: `tombstone_hashes` finds them again."""
    hashes = tombstone_hashes(record, secret)
    if record.entry_key and len(hashes) == 1:
        hashes.append(_hash(record.content, None, secret, _LONE_WORD))
    if record.entry_key and record.tier not in ("file", "archive"):
        hashes.append(_hash(record.text, None, secret))  # its line in a daily note
    return hashes


def text_hashes(texts: Iterable[str], secret: bytes) -> list[str]:
    """Return the hashes that recognise erased statements among these texts. A single word is none."""
    return [_hash(text, None, secret) for text in dict.fromkeys(texts) if len(folded_words(text)) > 1]


def texts_beside(record: Record) -> Iterator[str]:
    """Yield everything that a record says besides its content as a whole: its lines, labels, tags and metadata.

    Sessions, chats, speakers and participants are the host's names for where something was said, and by whom.
    """
    yield from lines_of(record.content)
    named = [getattr(record, name, None) for name in _TEXTS]
    for text in filter(None, [(record.key or "").replace("_", " "), *named, *record.tags]):
        yield from lines_of(text)
    yield from _texts_of_data({name: value for name, value in record.metadata.items() if name != "chat"})


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text, without what marks them as an item, a heading, a quote or a comment."""
    yield text
    for line in re.split(r"[\n|]", text):
        if plain := _MARKS.sub("", line):
            yield plain


def is_persons(record: Record) -> bool:
    """Return True for what the person says themselves: a message, an edit of a file, or something they asked for."""
    if isinstance(record, Message):
        return record.role == "user"
    return record.kind != "scratch" and (record.source == USER_EDIT or record.source.partition(":")[0] == "explicit")


def _texts_of_data(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from (PurePosixPath(part).stem.replace("_", " ") for part in value.split("/"))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts_of_data(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_of_data(item)


def _hash(content: str, key: str | None, secret: bytes, purpose: bytes = b"") -> str:
    said = signature(content, key).encode("utf-8")
    return hashlib.blake2b(said, key=secret, person=purpose, digest_size=16).hexdigest()
