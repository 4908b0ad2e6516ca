"""The confidence gate: a fact that does not pass it is not in MEMORY.md but in a daily note, until it is confirmed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Final

from recollect.config import Config
from recollect.memory.daily_notes import section_of_day
from recollect.policy.retention import daily_expiry
from recollect.records import DailyEntry, Fact, Record, new_id

LEAST: Final = 0.5
"""The confidence from which something is an uncertain fact rather than a guess."""
_SHORT_OF_GATE: Final = 0.01


class Gate:
    """The gate at one moment."""

    def __init__(self, config: Config, now: datetime) -> None:
        self._threshold = config.confidence_threshold
        self._kept = config.daily_retention_days
        self._now = now

    def passes(self, fact: Fact) -> bool:
        """Return True if a fact is certain enough for MEMORY.md."""
        return fact.confidence >= self._threshold

    def day_for(self, fact: Fact) -> date:
        """Return the day whose note takes a fact: the one it had, if that note is still kept, or today."""
        day = fact.noted_on
        return day if day and daily_expiry(day, self._kept) > self._now else self._now.date()

    def uncertain(self, fact: Fact, day: date) -> Fact:
        """Return the fact as the note of this day shows it."""
        expiry = fact.expires_at or daily_expiry(day, self._kept)
        return replace(fact, tier=day.isoformat(), section=section_of_day(fact), expires_at=expiry)

    def passed(self, fact: Fact) -> Fact:
        """Return an uncertain fact as MEMORY.md shows it."""
        day = fact.noted_on
        with_note = day is not None and fact.expires_at == daily_expiry(day, self._kept)
        return replace(fact, tier="file", section=None, expires_at=None if with_note else fact.expires_at)

    def placed(self, changed: Fact, known: Fact, *, sure: bool) -> Fact:
        """Return a changed fact where it belongs: in MEMORY.md, or in the note of the day on which it changed.

        Without ``sure``, nobody said how certain it is: an uncertain one stays so.
        """
        if sure and self.passes(changed):
            return self.passed(changed)
        if (changed.content, changed.confidence) == (known.content, known.confidence):
            return replace(changed, section=known.section)
        return self.uncertain(self.passed(changed), self._now.date())

    def shortfall(self, fact: Record) -> str:
        """Return why a fact does not pass, as the beginning of a sentence."""
        return f"Confidence {fact.confidence:.2f} is below {self._threshold:.2f}"

    def entry(self, fact: Fact, day: date) -> DailyEntry:
        """Return a fact as an entry of a daily note."""
        named = fact.key is not None
        return DailyEntry(
            id=new_id("daily"),
            content=fact.content,
            day=day,
            key=fact.key if named else day.isoformat(),
            label=fact.label,
            tier=day.isoformat() if named else None,
            category=fact.category,
            type=fact.type,
            section=section_of_day(fact),
            created_at=self._now,
            updated_at=self._now,
            valid_from=fact.valid_from,
            session=fact.session,
            source=fact.source,
            confidence=fact.confidence,
            expires_at=fact.expires_at or daily_expiry(day, self._kept),
            excerpt=fact.excerpt,
            messages=fact.messages,
            agent=fact.agent,
            trusted=fact.trusted,
            importance=fact.importance,
            tags=fact.tags,
            metadata=fact.metadata,
        )

    def confirmed(self, known: Fact, said: Fact) -> Fact:
        """Return an uncertain fact after it was said again.

        A certain mention makes it certain. Two uncertain ones are added up as independent evidence, but in one
        conversation on one day they do not pass the gate: there, somebody may merely be repeating themselves. The same
        message, an unverified statement and a guess are no further evidence.
        """
        again = said.messages == known.messages if said.messages else said.excerpt and said.excerpt == known.excerpt
        if said.confidence < LEAST or (known.trusted and not said.trusted):
            return known
        sure = max(known.confidence, said.confidence)
        if sure < self._threshold and not again:
            sure = 1 - (1 - known.confidence) * (1 - said.confidence)
            same_talk = said.session == known.session and self._now.date() == known.updated_at.date()
            if same_talk:
                sure = max(known.confidence, said.confidence, min(sure, self._threshold - _SHORT_OF_GATE))
        raised = replace(known, confidence=round(sure, 4))
        return known if raised == known else self.placed(raised, known, sure=True)

    def replaced(self, known: Fact, said: Fact) -> Fact:
        """Return an uncertain fact with the value that was said with certainty."""
        taken = {"valid_from", "content", "source", "excerpt", "messages", "agent", "trusted", "session", "confidence"}
        taken |= {"importance", "pinned", "tags", "metadata", "category", "type", "label", "expires_at"}
        return replace(known, **{name: getattr(said, name) for name in taken}, tier="file", section=None)
