"""Text of a memory on a small screen: on one line, cut to a width, and with nothing in it that acts on the display.

Widths are counted in cells, of which Chinese and emoji take two. Knows nothing about records or pages.
"""

from __future__ import annotations

import re
import unicodedata

from rich.cells import cell_len

WIDTH, HEIGHT = 40, 25
"""Of a page on a phone, in cells and lines."""

_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
"""What is seen by nobody, though it counts as a letter, a mark or a symbol."""
_JOINERS = "\u200c\u200d"
_OPEN, _CLOSE = "\u2068", "\u2069"
_AS_EMOJI = "\ufe0f"  # makes the symbol before it wider
_MOST_MARKS = 4
_MOST_LOOKED_AT = 4_000


def one_safe_line(text: str) -> str:
    """The text on one line, without control characters, invisible ones and marks of direction.

    Joiners stay where Persian and emoji need them; of marks piled up on one letter a few stay. Text that runs to the
    left is set apart, so that it cannot reorder what stands around it.
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
    """Text that runs to the left within marks that keep it to itself."""
    runs_left = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"{_OPEN}{text}{_CLOSE}" if runs_left else text


def cell_width(text: str) -> int:
    """How many cells a text takes."""
    return cell_len(text)


def fit_cells(text: str, cells: int) -> str:
    """The text made harmless, cut to so many cells; "…" stands for what is left out."""
    looked = text[:_MOST_LOOKED_AT]
    shown = one_safe_line(looked) or "(nothing to see)"
    if cell_width(shown) + (len(looked) < len(text)) <= cells:
        return shown if looked == text else f"{shown}…"
    bare = shown.strip(_OPEN + _CLOSE)
    end, used = 0, 1
    while end < len(bare) and (used := used + (cell_width(bare[end]) or bare[end] == _AS_EMOJI)) <= cells:
        end += 1
    while end and end < len(bare) and (unicodedata.category(bare[end])[0] == "M" or bare[end] in _JOINERS):
        end -= 1  # a mark belongs to the letter before it
    return isolate_direction(bare[:end].rstrip(" " + _JOINERS) + "…")


def quote_typed(text: str, cells: int = 24) -> str:
    """What the person typed, as it is repeated to them."""
    return f"“{fit_cells(text, cells)}”"


def count_phone_lines(text: str) -> int:
    """How many lines of a phone a text takes, broken between words where it can be."""
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
