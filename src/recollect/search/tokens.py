"""The number of tokens that a model makes of a text, counted offline.

The reference is `o200k_base`, the vocabulary of OpenAI's models since GPT-4o. Where the package `bpe-openai` is
installed (``pip install recollect[tokens]``), `count` asks it and is exact. Otherwise it estimates, a few per cent too
high rather than too low, so that a budget is kept.

The estimate has no vocabulary. For each letter of a word it looks up how often a token begins there, given the letters
around it: by script, by pair of letters, and by a window of four. How near it comes, by language, is in
`docs/context.md`; `tools/calibrate_tokens.py` made the tables, from texts that nobody here wrote.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import sys
import zlib
from bisect import bisect
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["count", "estimate"]

PACKAGE: Final = "bpe_openai"
VOCABULARY: Final = "o200k_base"

_MARGIN = 1.02
"""The estimate is raised by this, because a budget that is not quite used is better than one that is exceeded."""
_LONGEST = 64
"""Of a longer run of letters the beginning is looked at, and the rest counts alike."""

_PUNCTUATION = (
    r"\x00-\x20!-/:-@\[-`{-\xbf\u2000-\u206f\u2190-\u2bff\u3000-\u3004\u3008-\u303f\ufe0e\ufe0f"
    r"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U0001f000-\U0001faff\U000e0000-\U000fffff"
)
WORD: Final = rf"[^{_PUNCTUATION}\d]+"
_PIECE = (
    rf"(?P<word> ?[A-Z]?[a-z]+(?=[A-Z])| ?{WORD})"
    r"|(?P<clitic>['’](?:s|t|re|ve|m|ll|d)\b)"
    r"|(?P<number> ?[0-9]{1,3})"
    r"|(?P<rule> ?([!-/:-@\[-`{-~])\5{2,}\n*)"
    r"|(?P<mark> ?[!-/:-@\[-`{-~]{1,2}\n*)"
    r"|(?P<break>[^\S\n]*\n+)"
    r"|(?P<other> ?[^\s])"
    r"|(?P<space>\s+)"
)
_compiled = lru_cache(maxsize=4)(re.compile)


def count(text: str) -> int:
    """Return the number of tokens of a text: exactly where a tokenizer is installed, else as estimated.

    Whole lines may be counted separately: together they have no more than the sum.
    """
    tokenizer = installed_tokenizer()
    if tokenizer is None:
        return estimate(text)
    return tokenizer(text.encode(errors="replace").decode())  # it refuses a lone surrogate


def estimate(text: str) -> int:
    """Return the number of tokens of a text without a tokenizer."""
    return round(sum(map(_line_cost, text.splitlines(keepends=True))) + 0.49)


@lru_cache(maxsize=1)
def installed_tokenizer() -> Callable[[str], int] | None:
    """Return the counting function of the installed tokenizer, or None.

    Only the compiled part of the package is loaded: it holds the vocabulary and is ready in a tenth of a second, while
    the rest of the package reads it once more in Python.
    """
    name = f"{PACKAGE}._bindings"
    try:
        found = importlib.util.find_spec(PACKAGE)
        if found is None or found.submodule_search_locations is None:
            return None
        bindings: Any = sys.modules.get(name)
        if bindings is None:
            spec = PathFinder.find_spec(name, list(found.submodule_search_locations))
            if spec is None or spec.loader is None:
                return None
            bindings = importlib.util.module_from_spec(spec)
            sys.modules[name] = bindings  # it can be initialised once, should somebody import the package later
            spec.loader.exec_module(bindings)
        counting: Callable[[str], int] = bindings.tokenizer_for_encoding(VOCABULARY).count
        return counting if counting("Hello") == 1 else None
    except (ImportError, AttributeError, ValueError, OSError):  # another version, or built for another machine
        sys.modules.pop(name, None)
        return None


# the estimate


class Tables(NamedTuple):
    """The calibrated tables. Values are thirty-seconds of a token, 128 standing for 0."""

    blocks: tuple[int, ...]
    """The first characters of ranges of Unicode."""
    rates: tuple[float, ...]
    """The tokens that begin at a character of each range; 0 for one that is not calibrated."""
    pairs: bytes
    windows: bytes
    leanings: bytes
    """For each window, how far the languages it occurs in are from the average, in hundredths."""
    leaning_weight: float


@lru_cache(maxsize=1)
def _tables() -> Tables:
    data = json.loads(Path(__file__).with_name("tokens.json").read_text(encoding="utf-8"))
    pairs, windows, leanings = (
        zlib.decompress(base64.b85decode(data[name])) for name in ("pairs", "windows", "leanings")
    )
    blocks, rates, weight = tuple(data["blocks"]), tuple(data["rates"]), data["leaning_weight"]
    return Tables(blocks, rates, pairs, windows, leanings, weight)


def _line_cost(line: str) -> float:
    tables = _tables()
    fixed = cost = leaning = 0.0
    windows = 0
    for kind, piece in pieces(line):
        if kind == "word":
            tokens, lean, number = _word_cost(piece)
            cost, leaning, windows = cost + tokens, leaning + lean, windows + number
        else:
            fixed += _mark_cost(kind, piece)
    if windows:
        cost *= 1 + tables.leaning_weight * leaning / windows
    return fixed + _MARGIN * cost


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Cut a text into words, numbers and marks, nearly as the tokenizer does before it looks at letters."""
    for found in _compiled(_PIECE).finditer(text):
        assert found.lastgroup is not None
        yield found.lastgroup, found[0]


def _mark_cost(kind: str, piece: str) -> float:
    if kind == "number":
        return 1 + piece.startswith(" ")
    if kind == "rule":
        return 1 + len(piece) // 16
    if kind == "other":
        code = ord(piece[-1])
        return 1 if code < 0x2190 or 0x3000 <= code < 0x10000 else 1.5 if code < 0x3000 else 2.5
    return 1 if kind != "space" else 1 + len(piece) // 64


@lru_cache(maxsize=32768)
def _word_cost(word: str) -> tuple[float, float, int]:
    """Return the tokens of a word with the space before it, the sum of its leanings, and its letters."""
    letters = word.lstrip()
    if len(letters) > _LONGEST:
        tokens, lean, number = _word_cost(word[:_LONGEST])
        share = len(word) / _LONGEST
        return tokens * share, lean, number
    tables = _tables()
    total = lean = 0.0
    for letter, pair, window in looked_up(word, len(tables.pairs), len(tables.windows)):
        rate = tables.rates[bisect(tables.blocks, ord(letter))]
        if rate:
            total += rate + (tables.pairs[pair] + tables.windows[window] - 256) / 32
            lean += (tables.leanings[window] - 128) / 100
        else:
            total += len(letter.encode("utf-8", "replace"))
    return min(max(total, 1.0), len(word.encode("utf-8", "replace"))), lean, len(letters)


def looked_up(word: str, pairs: int, windows: int) -> Iterator[tuple[str, int, int]]:
    """Yield each letter of a word with its places in the tables of pairs and of windows, of these sizes."""
    letters = word.lstrip()
    padded = f"^{'^' if len(letters) == len(word) else '_'}{letters}$$".encode("utf-16-le", "surrogatepass")
    at = 0
    for letter in letters:
        yield letter, zlib.crc32(padded[at + 2 : at + 6]) % pairs, zlib.crc32(padded[at : at + 8]) % windows
        at += 2
