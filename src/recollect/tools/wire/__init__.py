"""The formats of the providers: our tools declared as each wants them, its calls read, their results written.

::

    tools = wire.declarations(suite, "anthropic")          # goes into the request as ``tools``
    answered = wire.answer(suite, response, "anthropic")   # runs the calls of the response
    messages += answered.messages                          # goes after the assistant's message

Takes what the providers' libraries return, and the plain data of raw HTTP as well; needs none of the libraries. Holds
no conversation and runs no loop: messages are the host's, and so are the calls of its own tools.
"""

from recollect.tools.wire.answers import Answered, aanswer, answer
from recollect.tools.wire.calls import Call, Format, calls
from recollect.tools.wire.declarations import declarations

__all__ = ["Answered", "Call", "Format", "aanswer", "answer", "calls", "declarations"]
