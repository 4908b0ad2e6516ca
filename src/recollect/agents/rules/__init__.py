"""Learning from what a person says, by rules alone: no model, no network, no state.

    learn       what a message says about the person, as `Learned` values the host may store
    explicit    whether a message asks to remember something, and what
    interests   what many reactions, saves and discussions together say

Precision comes first: a rule that is not certain learns nothing. The tables below `languages` hold what people say in
each language, `sentences` reads a message, `slots` defines what may fill a gap of a pattern.
"""

from __future__ import annotations

from recollect.agents.rules.explicit import find_explicit
from recollect.agents.rules.extractor import learn
from recollect.agents.rules.interests import learn_interests
from recollect.agents.rules.learned import Explicit, Learned, ReadingEvent

__all__ = ["Explicit", "Learned", "ReadingEvent", "find_explicit", "learn", "learn_interests"]
