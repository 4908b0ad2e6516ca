"""Words that change what a statement means: "only" limits it, "today" limits its time.

The lists are in ``languages/common.txt``. What a rule understood keeps its limits, and what holds only today is a note
of the day.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from recollect.agents.rules.learned import Learned
from recollect.agents.rules.slots import capitalize_first
from recollect.agents.rules.tables import Language, union
from recollect.search.dates import spans

__all__ = ["as_note_of_the_day", "is_passing", "keep_limits", "names_day"]

_SOME_DAY = datetime(2024, 6, 15, 12, tzinfo=timezone.utc)
_LONGEST = 16
"""The number of words of a statement that can be kept as it was said."""
_PLANS = ("plan", None)


def is_passing(said: str) -> bool:
    """Return True if a statement holds only today, or for some hours, and is no event that lasts."""
    if union("lasting").search(said):
        return False
    if union("passing").search(said):
        return True
    midnight = _SOME_DAY.replace(hour=0)
    named = [(span.start, span.end) for span in spans(said, _SOME_DAY) if span.certain]
    today = (midnight, midnight + timedelta(days=1))
    return today in named and all(end <= today[1] and start >= today[0] for start, end in named)


def names_day(words: str) -> bool:
    """Return True if words name a day: they are more than a lead-in."""
    return bool(spans(words, _SOME_DAY))


def as_note_of_the_day(found: list[Learned], said: str) -> list[Learned]:
    """Return what a request says, for the daily note if it is passing. What a rule knows to be a fact stays one."""
    if not is_passing(said) or any(each.key not in _PLANS for each in found):
        return found
    return [
        replace(each, durable=False, content=each.content if each.key else capitalize_first(said)) for each in found
    ]


def keep_limits(found: list[Learned], said: str, tables: Language) -> list[Learned]:
    """Return what was learned from a clause, as it was said if the wording of the rule would lose a limit of it."""
    limits = [match[0].lower() for match in union("limiting").finditer(said)]
    if not limits or len(said.split()) > _LONGEST:
        return found
    whole = _third_person(said, tables)
    return [
        replace(each, content=whole, ends=())
        if each.several and any(limit not in each.content.lower() for limit in limits)
        else each
        for each in found
    ]


def _third_person(said: str, tables: Language) -> str:
    """Return "I only read on weekends" as a line of MEMORY.md: "Only reads on weekends"."""
    text = said.strip(" ,.!…")
    while (opener := tables.openers.match(text)) and opener.end():
        text = text[opener.end() :]
    if tables.code != "en":
        return capitalize_first(text)
    match = re.match(r"i (?P<limit>\w+ )?(?P<verb>[\w']+)(?P<rest>.*)$", text, re.IGNORECASE | re.DOTALL)
    third = tables.verbs.get(match["verb"].lower()) if match else None
    if match is None or third is None:
        return capitalize_first(text)
    return capitalize_first(f"{match['limit'] or ''}{third}{match['rest']}")
