"""Labels and keys: `- GitHub Handle: octo` says `octo` under the key `github_handle`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import category as character_class
from unicodedata import normalize

from recollect.document.blocks import content_lines, one_block

MAX_LABEL: Final = 64

LABEL = re.compile(
    r"""(?: (?P<mark>\*{1,3}|_{1,3}|`) (?P<marked>[^:：\n]+?) \s*
            (?: (?P=mark)\s*(?: :(?=\s|\Z) | ： ) | :(?P=mark)(?=\s|\Z) | ：(?P=mark) )
          | (?P<plain>[^:：\n]+) (?: :(?=\s|\Z) | ： )
        ) [^\S\n]*""",
    re.VERBOSE,
)
_SENTENCE_END = re.compile(r"[.!?]\s|[。！？]")
_SEPARATORS = re.compile(r"[\s_/‐-―-]+")
_DROPPED = re.compile(r"[:*`\"()\[\]{}\ufe00-\ufe0f]")


@lru_cache(4096)
def key_of(label: str) -> str:
    """Return the key of a label: `GitHub Handle` and `**github-handle**` are both `github_handle`."""
    if _is_simple(label):
        return "_".join(label.lower().split())[:MAX_LABEL].rstrip("_")
    key = _fold_label(label)
    for _ in range(4):  # folding can reveal new separators and edges
        again = _fold_label(key)
        if again == key:
            break
        key = again
    return key


def _is_simple(label: str) -> bool:
    return label.isascii() and label.replace(" ", "").isalnum()


def _fold_label(label: str) -> str:
    text = label.casefold()
    if not text.isascii():
        text = normalize("NFKC", normalize("NFKC", label).casefold())
    if not text.isprintable():
        text = "".join(char for char in text if char.isprintable() or char.isspace())
    words = _SEPARATORS.split(_DROPPED.sub("", text))
    return "_".join(bare for word in words if (bare := word if word.isalnum() else _strip_punctuation(word)))[
        :MAX_LABEL
    ]


def _strip_punctuation(word: str) -> str:
    start, end = 0, len(word)
    while start < end and _is_punctuation(word[start]):
        start += 1
    while start < end and _is_punctuation(word[end - 1]):
        end -= 1
    return word[start:end]


def _is_punctuation(char: str) -> bool:
    return char not in "+#" and character_class(char)[0] in "PS"


def label_of(key: str) -> str:
    """Return a key as a person would write it: `interested_in` becomes `Interested in`."""
    label = key.replace("_", " ")
    label = label[:1].upper() + label[1:]
    return label if can_label(label, key) else key


def can_label(label: str, key: str) -> bool:
    """Return True if this label, written in front of a value, is read back as this key."""
    return (
        key_of(label) == key
        and content_lines(label, "bullet") == [label]
        and one_block(label) == label
        and split_label(f"{label}: x") == (label, "x")
    )


def split_label(text: str) -> tuple[str, str] | None:
    """Split `Label: value` into its parts; None for a text without a label or without a value."""
    first, _, rest = text.partition("\n")
    if ":" not in first and "：" not in first:
        return None
    match = LABEL.match(first)
    if match is None:
        return None
    label = (match["marked"] or match["plain"]).strip()
    value = first[match.end() :].strip()
    if rest:
        value = one_block(f"{value}\n{rest}")
    return (label, value) if value and _is_label(label) else None


def _is_label(label: str) -> bool:
    """Accept a short phrase, but not a sentence, nor the first half of something quoted, bracketed or emphasised."""
    return len(label) <= MAX_LABEL and (
        _is_simple(label)
        or (
            _SENTENCE_END.search(label) is None
            and label.count("(") == label.count(")")
            and not any(label.count(mark) % 2 for mark in ('"', "**", "__", "`"))
            and key_of(label) != ""
        )
    )
