"""The formats of the providers: declares our tools, parses calls and writes their results.

::

    tools = wire.declarations(suite, "anthropic")          # goes into the request as ``tools``
    answered = wire.answer(suite, response, "anthropic")   # runs the calls of the response
    messages += answered.messages                          # goes after the assistant's message

Accepts the objects of the providers' libraries and the plain data of raw HTTP, and needs none of the libraries. It
holds no conversation and runs no loop: the host manages messages and calls its own tools.
"""

from recollect.tools.wire.answers import Answered, aanswer, answer
from recollect.tools.wire.calls import Call, Format, calls
from recollect.tools.wire.declarations import declarations

__all__ = ["Answered", "Call", "Format", "aanswer", "answer", "calls", "declarations"]
