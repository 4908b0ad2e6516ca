"""A scripted model behind a real HTTP server, for testing agents without a network, a key or a bill.

`ModelServer` speaks the protocols of OpenAI (chat completions and responses), Anthropic (messages) and Gemini
(generateContent), streamed and not, so that the providers' own client libraries talk to it. What it answers is a
script in neutral words: one script serves all four protocols, and what was asked can be read back in neutral words too.

    with ModelServer([Call("memory_search", {"query": "name"}), Say("You are called SG.")]) as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="test")

It refuses what the real services refuse, so that a test which passes here means something. The rules are from the named
pages, read in stored copies and quotations in November 2026, from the libraries' source and from errors that users
reported; they were not tried on the live services.

**All protocols.** An API key must be there (401; Gemini 403). The body must be a JSON object with its required fields.
Every tool call of the assistant must be answered by a tool result at once, and every result must answer such a call.
A tool's name must have the allowed form, its schema must be a JSON Schema of type object: known types, ``properties``
of schemas, ``required`` a list of names, ``$ref`` local and not dangling.

**OpenAI** (developers.openai.com/api/docs/guides/function-calling and structured-outputs, and errors the service is on
record with). Names match ``^[a-zA-Z0-9_-]{1,64}$``. No anyOf, oneOf, allOf, enum or not at the top of a schema; an
object at the top has properties; an array has items. With ``strict: true``, everywhere in the schema:
``additionalProperties`` is false, ``required`` has every property and no other; a schema has a type (or enum, const,
anyOf), and a ``$ref`` stands alone; none of allOf, oneOf, not, if, then, else, dependentRequired, dependentSchemas,
patternProperties, propertyNames, unevaluatedProperties, unevaluatedItems, minProperties, maxProperties, contains,
minContains, maxContains, uniqueItems, minLength, maxLength, default; only nine string formats; at most 10 levels of
objects, 5000 properties and 1000 enum values. minimum, maximum, multipleOf, pattern, minItems and maxItems are allowed.
(``default`` is refused by gpt-4o and by Azure and accepted by models of late 2026, minLength and its like are not among
what the guide says is supported: where services differ or a guide is silent, we refuse, so what passes is portable.)
Chat completions: ``tools`` is not empty, ``tool_choice``, ``parallel_tool_calls`` and ``stream_options`` only with what
they are about. Responses: ``previous_response_id`` must be of a response that was stored.

**Anthropic** (platform.claude.com/docs: structured outputs, "JSON Schema limitations"; versions; define tools; and the
library's own ``transform_schema``). ``max_tokens`` and a known ``anthropic-version`` are required; from version
2026-10-21 on, temperature, top_p and top_k, documents in assistant messages and citations in user messages are refused.
Names match ``^[a-zA-Z0-9_-]{1,64}$`` and are unique, properties ``^[a-zA-Z0-9_.-]{1,64}$``; no anyOf, oneOf or allOf
at the top. Built-in tools (``memory_20250818`` and others with a date) are accepted. Results come first in the message
right after the calls. The first message is the user's, none is empty. With ``strict: true``, everywhere:
``additionalProperties`` is false; a schema has a type; none of minimum, maximum, exclusiveMinimum, exclusiveMaximum,
multipleOf, minLength, maxLength, maxItems, prefixItems, nor of OpenAI's list except allOf and default; ``minItems`` 0
or 1; ten string formats; no recursion; at most 20 strict tools and 24 optional properties in all.

**Gemini** (the library's types, and the fields of Schema in Google's references). Names start with a letter or
an underscore and may have dots, colons and dashes, up to 128 characters, none twice. ``parameters`` is the Schema
subset: known fields only, type names of the enum in either case, OBJECT at the top with properties, arrays with items,
enums of strings, ``required`` only of what is there. Or ``parametersJsonSchema``, but not both. As many function
responses as calls, each with the name (and the id, if there is one) of its call.

It does not check what only a model can: whether the arguments fit the schema, or how long a context is.
"""

from recollect.testing.models.script import (
    Asked,
    Call,
    Cut,
    Fail,
    Garbage,
    Message,
    Result,
    Say,
    Script,
    Stall,
    Tool,
    Turn,
    Usage,
)
from recollect.testing.models.server import ModelServer

__all__ = [
    "Asked",
    "Call",
    "Cut",
    "Fail",
    "Garbage",
    "Message",
    "ModelServer",
    "Result",
    "Say",
    "Script",
    "Stall",
    "Tool",
    "Turn",
    "Usage",
]
