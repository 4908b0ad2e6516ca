"""Time expressions of a text, resolved against a moment.

`spans` reads "last week", "7 May 2023" or "two days ago" and returns the days; `asks_when` and `tells_when` say whether
a text asks for a time or contains one; `relative` reads "the day before the wedding", whose day only the memory knows.
English is read thoroughly, other languages through tables of their words.

Days are days of UTC, weeks begin on Monday, and seasons are those of the northern hemisphere. An hour of a day gives
the whole day.

    words        the tables: which word names which month, unit, number ...
    tokens       where a text may name a time, and the tokens there
    calendar     arithmetic of days, weeks and months
    holidays     their days and their names
    written      7 May 2023, May, Q3
    nearby       last week, three days ago
    phrases      since May, the end of 2022, from June to August
    eastern      Chinese, Japanese, Korean
    reading      spans, tells_when
    questions    asks_when, relative
"""

from recollect.search.dates.questions import asks_when, relative
from recollect.search.dates.reading import Span, spans, tells_when

__all__ = ["Span", "asks_when", "relative", "spans", "tells_when"]
