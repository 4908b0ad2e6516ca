"""A scripted model behind a real HTTP server, for testing agents without a network, a key or a bill.

`ModelServer` speaks the protocols of OpenAI (chat completions and responses), Anthropic (messages) and Gemini
(generateContent), streamed and not, so the providers' own client libraries talk to it. One script serves all four
protocols, and requests can be read back in the same neutral form:

    with ModelServer([Call("memory_search", {"query": "name"}), Say("Your name is SG.")]) as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="test")

It refuses the mistakes that the real services refuse: a missing key or field, tool calls without results and results
without calls, tool names and schemas that are not allowed, and what each service forbids in ``strict`` tools. Where
services differ or their documentation is silent, it refuses, so what passes is portable. It cannot know what only a
model knows: whether the arguments fit the schema, or how long a context may be.
"""

from recollect.testing.models.script import (
    Call,
    ChatMessage,
    Cut,
    DeclaredTool,
    Fail,
    Garbage,
    ModelRequest,
    Say,
    Script,
    Stall,
    ToolResult,
    Turn,
    Usage,
)
from recollect.testing.models.server import ModelServer

__all__ = [
    "Call",
    "ChatMessage",
    "Cut",
    "DeclaredTool",
    "Fail",
    "Garbage",
    "ModelRequest",
    "ModelServer",
    "Say",
    "Script",
    "Stall",
    "ToolResult",
    "Turn",
    "Usage",
]
