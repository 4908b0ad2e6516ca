"""Recollect: a long-term memory for AI agents and the people who talk to them.

    import recollect

    memory = recollect.open("data/memory").user("u1")
    memory.remember("Prefers concise summaries", category="preference")

Importing the package loads nothing; each name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.agents.memory_update import DailyMemoryUpdate, MemoryEntry
    from recollect.app import Recollect, open
    from recollect.config import Config
    from recollect.errors import InvalidInputError, LinkError, NotFoundError, RecollectError, StoreError, UndoError
    from recollect.identity.identities import Joined, Pending
    from recollect.memory.async_memory import AsyncMemory
    from recollect.memory.interests import Ranked, Reason
    from recollect.memory.memory import Memory
    from recollect.memory.trends import Trend
    from recollect.records import (
        Conflict,
        DailyEntry,
        Demoted,
        Duplicate,
        Edited,
        Episode,
        Erased,
        ExtractionRun,
        Fact,
        Forgotten,
        Hit,
        Hits,
        Interaction,
        JournalEntry,
        Merged,
        Message,
        Note,
        Observation,
        Outcome,
        Receipt,
        Record,
        Refused,
        Reported,
        ScratchItem,
        Session,
        Spending,
        ToolCall,
        Unchanged,
        Undone,
        Updated,
        Written,
    )
    from recollect.tools.suite import Result, Suite

__version__ = "0.1.0"

_HOME = {
    "AsyncMemory": "recollect.memory.async_memory",
    "Config": "recollect.config",
    "Conflict": "recollect.records",
    "DailyEntry": "recollect.records",
    "DailyMemoryUpdate": "recollect.agents.memory_update",
    "Demoted": "recollect.records",
    "Duplicate": "recollect.records",
    "Edited": "recollect.records",
    "Episode": "recollect.records",
    "Erased": "recollect.records",
    "ExtractionRun": "recollect.records",
    "Fact": "recollect.records",
    "Forgotten": "recollect.records",
    "Hit": "recollect.records",
    "Hits": "recollect.records",
    "Interaction": "recollect.records",
    "InvalidInputError": "recollect.errors",
    "Joined": "recollect.identity.identities",
    "JournalEntry": "recollect.records",
    "LinkError": "recollect.errors",
    "Memory": "recollect.memory.memory",
    "MemoryEntry": "recollect.agents.memory_update",
    "Merged": "recollect.records",
    "Message": "recollect.records",
    "NotFoundError": "recollect.errors",
    "Note": "recollect.records",
    "Observation": "recollect.records",
    "Outcome": "recollect.records",
    "Pending": "recollect.identity.identities",
    "Ranked": "recollect.memory.interests",
    "Reason": "recollect.memory.interests",
    "Receipt": "recollect.records",
    "Recollect": "recollect.app",
    "RecollectError": "recollect.errors",
    "Record": "recollect.records",
    "Refused": "recollect.records",
    "Reported": "recollect.records",
    "Result": "recollect.tools.suite",
    "ScratchItem": "recollect.records",
    "Session": "recollect.records",
    "Spending": "recollect.records",
    "StoreError": "recollect.errors",
    "Suite": "recollect.tools.suite",
    "ToolCall": "recollect.records",
    "Trend": "recollect.memory.trends",
    "Unchanged": "recollect.records",
    "UndoError": "recollect.errors",
    "Undone": "recollect.records",
    "Updated": "recollect.records",
    "Written": "recollect.records",
    "open": "recollect.app",
}

__all__ = [
    "AsyncMemory",
    "Config",
    "Conflict",
    "DailyEntry",
    "DailyMemoryUpdate",
    "Demoted",
    "Duplicate",
    "Edited",
    "Episode",
    "Erased",
    "ExtractionRun",
    "Fact",
    "Forgotten",
    "Hit",
    "Hits",
    "Interaction",
    "InvalidInputError",
    "Joined",
    "JournalEntry",
    "LinkError",
    "Memory",
    "MemoryEntry",
    "Merged",
    "Message",
    "NotFoundError",
    "Note",
    "Observation",
    "Outcome",
    "Pending",
    "Ranked",
    "Reason",
    "Receipt",
    "Recollect",
    "RecollectError",
    "Record",
    "Refused",
    "Reported",
    "Result",
    "ScratchItem",
    "Session",
    "Spending",
    "StoreError",
    "Suite",
    "ToolCall",
    "Trend",
    "Unchanged",
    "UndoError",
    "Undone",
    "Updated",
    "Written",
    "open",
]


def __getattr__(name: str) -> Any:
    try:
        module = import_module(_HOME[name])
    except KeyError:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}") from None
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
