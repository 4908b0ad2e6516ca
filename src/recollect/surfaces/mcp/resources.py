"""The MCP resources: MEMORY.md, the daily notes, the context for a prompt."""

from __future__ import annotations

from urllib.parse import unquote

import mcp_types as types

from recollect.errors import InvalidInputError
from recollect.memory.memory import Memory
from recollect.policy.injection import without_markup

MEMORY, CONTEXT, DAILY = "memory://MEMORY.md", "memory://context", "memory://daily"
MARKDOWN = "text/markdown"
INCOGNITO = "This memory is incognito. Its content is hidden until the person resumes it."

TEMPLATES = [
    types.ResourceTemplate(
        uri_template=f"{DAILY}/{{day}}",
        name="daily",
        title="The daily note of a day",
        description="What was noted on one day, given as YYYY-MM-DD.",
        mime_type=MARKDOWN,
    ),
    types.ResourceTemplate(
        uri_template=f"{CONTEXT}/{{topic}}",
        name="context",
        title="What is known about a topic",
        description="The person's profile, what is known about the topic, and the last seven days.",
        mime_type=MARKDOWN,
    ),
]


class UnknownResourceError(Exception):
    """The resource does not exist."""


def list_resources(memory: Memory) -> list[types.Resource]:
    """Return the available resources. Daily notes of an incognito memory are not listed."""
    days = [] if memory.mode == "incognito" else memory.days()[::-1]
    return [
        types.Resource(
            uri=MEMORY,
            name="MEMORY.md",
            title="Memory",
            description="What is known about the person, in a file that they can read and edit.",
            mime_type=MARKDOWN,
        ),
        types.Resource(
            uri=CONTEXT,
            name="context",
            title="Context for a prompt",
            description="The person's profile and the last seven days, short enough for a prompt.",
            mime_type=MARKDOWN,
        ),
        *(
            types.Resource(
                uri=f"{DAILY}/{day}",
                name=f"daily/{day}",
                title=f"Daily note of {day}",
                description="What was noted on this day.",
                mime_type=MARKDOWN,
            )
            for day in days
        ),
    ]


def read_resource(memory: Memory, uri: str) -> str:
    """Return the text of a resource."""
    name = uri.rstrip("/")
    if name.casefold() == MEMORY.casefold():  # some clients write the part after // in lower case
        return INCOGNITO if memory.mode == "incognito" else without_markup(memory.show())
    if name == CONTEXT or uri.startswith(f"{CONTEXT}/"):
        topic = unquote(uri.removeprefix(CONTEXT).removeprefix("/"))
        return context_resource(memory, topic)
    if name.startswith(f"{DAILY}/"):
        if memory.mode == "incognito":
            return INCOGNITO
        try:
            note = memory.daily(unquote(name.removeprefix(f"{DAILY}/")))
        except InvalidInputError:
            raise UnknownResourceError from None
        if note:
            return without_markup(note)
    raise UnknownResourceError


def context_resource(memory: Memory, topic: str) -> str:
    """Return the context for a prompt."""
    if memory.mode == "incognito":
        return INCOGNITO
    return memory.context(topic) or "Nothing is known yet."
