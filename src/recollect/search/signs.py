"""Properties of a text besides its words: whether it asks, whether it gives a time, and the time it is about."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.search import dates

_MOST_TEXT = 1000
"""A statement is made early; long pasted texts are full of dates that are not when something happened."""
_LONGEST = timedelta(days=366)


class Signs(NamedTuple):
    asks: bool = False
    tells_when: bool = False
    event: tuple[datetime, datetime] | None = None


def signs_of(text: str, said_at: datetime) -> Signs:
    """Read the signs of a text that was said at a moment: "yesterday" is the day before it."""
    begin = text[:_MOST_TEXT]
    asks = text.rstrip().endswith(("?", "？"))
    if not dates.tells_when(begin):
        return Signs(asks=asks)
    spans = [span for span in dates.spans(begin, said_at) if span.end - span.start <= _LONGEST]
    if not spans:
        return Signs(asks=asks, tells_when=True)
    event = min(span.start for span in spans), max(span.end for span in spans)
    return Signs(asks=asks, tells_when=True, event=event)
