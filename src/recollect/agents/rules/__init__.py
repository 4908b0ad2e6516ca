"""What is worth remembering in what a person says, by rules alone: no model, no network, no state.

    learn       what a message says about the person, as `Learned` values the host may store
    explicit    whether a message asks to remember something, and what
    interests   what many reactions, saves and discussions together say

Precision comes first: a rule that cannot be sure learns nothing. What people say in which language is in the tables
below `languages`, how a message is read in `reading`, what may fill a gap of a pattern in `slots`.
"""

from __future__ import annotations

from recollect.agents.rules.explicit import find_explicit
from recollect.agents.rules.extractor import learn
from recollect.agents.rules.interests import learn_interests
from recollect.agents.rules.learned import Explicit, Learned, ReadingEvent

__all__ = ["Explicit", "Learned", "ReadingEvent", "find_explicit", "learn", "learn_interests"]
