"""Recollect: a long-term memory for AI agents and the people who talk to them.

import recollect

memory = recollect.open("data/memory").user("u1")
memory.remember("Prefers concise summaries", category="preference")
"""

from recollect.app import Recollect, open
from recollect.config import Config
from recollect.core.aio import AsyncMemory
from recollect.core.memory import Memory
from recollect.errors import (
    InvalidInputError,
    NotFoundError,
    RecollectError,
    StoreError,
    UndoError,
)
from recollect.records import (
    Conflict,
    DailyEntry,
    Demoted,
    Duplicate,
    Episode,
    Erased,
    Fact,
    Forgotten,
    Hit,
    JournalEntry,
    Merged,
    Message,
    Note,
    Observation,
    Outcome,
    Receipt,
    Record,
    Refused,
    ScratchItem,
    Undone,
    Updated,
    Written,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncMemory",
    "Config",
    "Conflict",
    "DailyEntry",
    "Demoted",
    "Duplicate",
    "Episode",
    "Erased",
    "Fact",
    "Forgotten",
    "Hit",
    "InvalidInputError",
    "JournalEntry",
    "Memory",
    "Merged",
    "Message",
    "NotFoundError",
    "Note",
    "Observation",
    "Outcome",
    "Receipt",
    "Recollect",
    "RecollectError",
    "Record",
    "Refused",
    "ScratchItem",
    "StoreError",
    "UndoError",
    "Undone",
    "Updated",
    "Written",
    "open",
]
