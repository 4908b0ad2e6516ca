"""The HTTP client: the verbs of `Memory` with the same signatures, return values and errors.

    from recollect.client import connect

    memory = connect("http://127.0.0.1:8765", key="rk_…").user("u1")
    memory.remember("Prefers concise summaries", category="preference")

To await the verbs, wrap the memory: ``recollect.AsyncMemory(memory)``. Needs the extra ``client``.
"""

from recollect.client.client import Client, LoginLink, UserToken, connect
from recollect.client.problems import (
    BadRequestError,
    DoneAlreadyError,
    InternalError,
    NotAllowedError,
    PreconditionFailedError,
    TooLargeError,
    TooManyRequestsError,
    TooSlowError,
    UnansweredError,
)
from recollect.client.remote import BatchResult, RemoteBatch, RemoteMemory

__all__ = [
    "BadRequestError",
    "BatchResult",
    "Client",
    "DoneAlreadyError",
    "InternalError",
    "LoginLink",
    "NotAllowedError",
    "PreconditionFailedError",
    "RemoteBatch",
    "RemoteMemory",
    "TooLargeError",
    "TooManyRequestsError",
    "TooSlowError",
    "UnansweredError",
    "UserToken",
    "connect",
]
