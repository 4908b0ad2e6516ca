"""Text for a small screen: on one line, cut to a width, without characters that affect the display.

Widths are counted in cells; Chinese characters and emoji take two.
"""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len

WIDTH, HEIGHT = 40, 25
"""The size of a page on a phone, in cells and lines."""

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
"""Characters that are invisible although Unicode counts them as letters, marks or symbols."""
_JOINERS = "\u200c\u200d"
_OPEN, _CLOSE = "\u2068", "\u2069"
_AS_EMOJI = "\ufe0f"  # makes the symbol before it wider
_MOST_MARKS = 4
_MOST_LOOKED_AT = 4_000


def one_safe_line(text: str) -> str:
    """Return the text on one line, without control characters, invisible characters and direction marks.

    Joiners stay where Persian and emoji need them, and only a few combining marks per letter. Right-to-left text is
    isolated, so that it cannot reorder the text around it.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    shown: list[str] = []
    marks = 0
    for here, character in enumerate(text):
        kind = unicodedata.category(character)
        marks = marks + 1 if kind[0] == "M" else 0
        if character.isspace():
            shown.append(" ")
        elif character in _JOINERS:
            if not text[max(here - 1, 0) : here].isascii() and not text[here + 1 : here + 2].isascii():
                shown.append(character)
        elif kind not in ("Cc", "Cf", "Cs") and marks <= _MOST_MARKS:
            shown.append(character)
    return isolate_direction(" ".join(_BLANK.sub("", "".join(shown)).split()))


def isolate_direction(text: str) -> str:
    """Return right-to-left text within isolating marks; other text unchanged."""
    runs_left = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"{_OPEN}{text}{_CLOSE}" if runs_left else text


def cell_width(text: str) -> int:
    """Return the width of a text in cells."""
    return cell_len(text)


def fit_cells(text: str, cells: int) -> str:
    """Return the text made harmless and cut to a width, with "…" for what is left out."""
    looked = text[:_MOST_LOOKED_AT]
    shown = one_safe_line(looked) or "(invisible text)"
    if cell_width(shown) + (len(looked) < len(text)) <= cells:
        return shown if looked == text else f"{shown}…"
    bare = shown.strip(_OPEN + _CLOSE)
    end, used = 0, 1
    while end < len(bare) and (used := used + (cell_width(bare[end]) or bare[end] == _AS_EMOJI)) <= cells:
        end += 1
    while end and end < len(bare) and (unicodedata.category(bare[end])[0] == "M" or bare[end] in _JOINERS):
        end -= 1  # keep a mark with the letter before it
    return isolate_direction(bare[:end].rstrip(" " + _JOINERS) + "…")


def quote_typed(text: str, cells: int = 24) -> str:
    """Return what the person typed, shortened and in quotes."""
    return f"“{fit_cells(text, cells)}”"


def count_phone_lines(text: str) -> int:
    """Return the number of lines a text takes on a phone, broken between words where possible."""
    rows = 0
    for line in text.split("\n"):
        rows, used = rows + 1, 0
        for cells in map(cell_width, line.split(" ")):
            if used and used + 1 + cells <= WIDTH:
                used += 1 + cells
            else:
                rows += (used > 0) + max(0, -(-cells // WIDTH) - 1)
                used = cells % WIDTH or min(cells, WIDTH)
    return rows
