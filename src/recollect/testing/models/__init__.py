"""A scripted model behind a real HTTP server, for testing agents without a network, a key or a bill.

`ModelServer` speaks the protocols of OpenAI (chat completions and responses), Anthropic (messages) and Gemini
(generateContent), streamed and not, so the providers' own client libraries talk to it. One script serves all four
protocols, and requests can be read back in the same neutral form:

    with ModelServer([Call("memory_search", {"query": "name"}), Say("Your name is SG.")]) as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="test")

It refuses what breaks a conversation with the real services: a missing key or field, tool calls without results and
results without calls. It does not check the schemas of tools, nor whether arguments fit them.
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
