"""What remains of an erased statement: keyed hashes, by which it is recognised in every text of a record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from html import unescape
from pathlib import PurePosixPath
from typing import Any

from recollect.policy.duplicates.comparison import signature
from recollect.records import USER_EDIT, Message, Record
from recollect.text import folded_words

_ENTRIES = frozenset({"fact", "daily", "note", "observation", "episode"})
_TEXTS = ("label", "title", "topic", "excerpt", "source")
SEPARATED = "separated:"
"""Begins the hash of a statement that went with another memory: an old file does not bring it back, but anybody may say
it again."""
_LONE_WORD = b"lone word"
"""Sets the hash of an erased one-word value apart from that of a record that is just this word."""
_WORDS = b"words"
"""Sets the hash of the bare words of an erased statement apart from that of its canonical form."""
_BREAKS = re.compile(
    r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029|]|<(?:br|/?(?:p|li|div|td|th|h\d))\b[^<>]{0,200}>", re.IGNORECASE
)
_MARKS = re.compile(r"^[\s>#*+<!|-]*(?:[(\[]?\w{1,3}[.)\]]\s)?(?:\[.\]\s)?")  # of lists, quotes, headings and comments
_ENDS, _FOOTNOTE = " \t\u00a0>*|-", re.compile(r"\[\^?\d{1,3}\]$")
_LABEL = re.compile(r"([^:\u2014\u2013]{1,200}?)(?::|\s[\u2014\u2013-])\s+")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]{0,2000}\)")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_RAISED = re.compile("[\u00b9\u00b2\u00b3\u2070-\u2079\u2122\u2120]+")  # they would become digits and letters


def tombstone_hashes(record: Record, secret: bytes) -> list[str]:
    """Return the hashes that recognise an erased record where this secret is, the one with its key first.

    A single word says nothing without its key: after "pets: no" was erased, "children: no" is another statement. But an
    entry that has no key and is nothing but the erased word is the erased thing. A message is speech, not an entry.
    """
    key = record.key if record.kind == "fact" else None
    hashes = [_hash(record.content, key, secret)]
    if len(folded_words(record.content)) > 1:
        hashes += [_hash(record.content, None, secret)] if key else []
        return [*hashes, *_word_hashes(record.content, secret)[:1]]
    return hashes if key or record.kind not in _ENTRIES else [*hashes, _hash(record.content, None, secret, _LONE_WORD)]


def burial_hashes(record: Record, secret: bytes) -> list[str]:
    """Return the hashes to keep of a record that is erased: `tombstone_hashes` finds them again."""
    hashes = tombstone_hashes(record, secret)
    if record.kind == "fact" and record.key and len(hashes) == 1:
        hashes.append(_hash(record.content, None, secret, _LONE_WORD))
    return hashes


def text_hashes(texts: Iterable[str], secret: bytes) -> list[str]:
    """Return the hashes that recognise erased statements among these texts. A single word is none."""
    said = [text for text in dict.fromkeys(texts) if len(folded_words(text)) > 1]
    words = (hash for text in said for hash in _word_hashes(text, secret))
    return [*(_hash(text, None, secret) for text in said), *dict.fromkeys(words)]


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
    """Yield the lines of a text without markup: marks of items, headings, quotes and footnotes, tags, links.

    If a line begins with a label, as in "title: …", the label and the rest are yielded as well.
    """
    yield text
    for line in _BREAKS.split(unescape(text)):
        plain = _MARKS.sub("", _TAG.sub("", _LINK.sub(r"\1", line))).rstrip(_ENDS)
        plain = _FOOTNOTE.sub("", plain.rstrip(".,;!?")).rstrip(_ENDS)
        if plain:
            yield plain
        if label := _LABEL.match(plain):
            yield from (label[1], plain[label.end() :])


def is_persons(record: Record) -> bool:
    """Return True for what the person says themselves: a message, an edit of a file, or something they asked for."""
    if isinstance(record, Message):
        return record.role == "user"
    return record.kind != "scratch" and (record.source == USER_EDIT or record.source.partition(":")[0] == "explicit")


def _texts_of_data(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from lines_of(value)
        yield from (PurePosixPath(part).stem.replace("_", " ") for part in value.split("/"))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            yield from _texts_of_data(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_of_data(item)


def _word_hashes(text: str, secret: bytes) -> list[str]:
    """Return the hashes of the bare words of a text: as they are, without emoji, and once if they are repeated.

    Punctuation, symbols and what joins the words do not count.
    """
    words = folded_words(_RAISED.sub("", unescape(text).replace("%20", " ")))
    plain = [word for word in words if any(map(str.isalnum, word))]
    forms = [words, plain]
    length = next((n for n in range(2, len(plain) // 2 + 1) if plain == plain[:n] * (len(plain) // n)), None)
    forms += [plain[:length]] if length else []
    said = dict.fromkeys(" ".join(form) for form in forms if len(form) > 1)
    return [hashlib.blake2b(one.encode(), key=secret, person=_WORDS, digest_size=16).hexdigest() for one in said]


def _hash(content: str, key: str | None, secret: bytes, purpose: bytes = b"") -> str:
    said = signature(content, key).encode("utf-8")
    return hashlib.blake2b(said, key=secret, person=purpose, digest_size=16).hexdigest()
