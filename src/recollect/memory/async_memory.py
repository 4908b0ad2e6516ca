"""The verbs of `Memory` as coroutines. Each call runs the one implementation in a thread.

The threads are our own: the event loop has few, the host application needs them too, and one user whose memory is
locked could occupy them all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Concatenate, ParamSpec, TypeVar

from recollect import checks as check
from recollect.memory.memory import Memory
from recollect.memory.thread_pool import WORKERS
from recollect.verbs import VERBS

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_thread(user_id: str, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run work for a user in a thread, in the caller's context, without blocking the event loop."""
    import asyncio  # a third of the package's import time, and not needed by those who do not await

    begun = WORKERS.submit(user_id, functools.partial(copy_context().run, work, *args, **kwargs))
    return await asyncio.wrap_future(begun)


def _awaited(
    verb: Callable[Concatenate[Memory, _P], _T],
) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _T]]:
    async def crossing(self: AsyncMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        # by name: a memory on a server overrides some verbs
        bound: Callable[_P, _T] = getattr(self.memory, verb.__name__)
        return await in_thread(self.memory._lane + self.memory.user_id, bound, *args, **kwargs)

    functools.update_wrapper(crossing, verb)
    return crossing


class AsyncMemory:
    """A `Memory`, local or on a server, whose verbs are awaited: ``await memory.remember("…")``.

    The verbs come from the table of verbs. They are also listed here, for type checkers.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = check.check_instance("memory", memory, Memory, "a Memory, as recollect.open(…).user(…) gives it")

    def __repr__(self) -> str:
        return f"<AsyncMemory of {self.memory.user_id!r}>"

    def acting(self, actor: str | None = None, **context: Any) -> AsyncMemory:
        """See `Memory.acting`."""
        return AsyncMemory(self.memory.acting(actor, **context))

    remember = _awaited(Memory.remember)
    note = _awaited(Memory.note)
    observe = _awaited(Memory.observe)
    remember_fil = _awaited(Memory.remember_fil)
    episode = _awaited(Memory.episode)
    say = _awaited(Memory.say)
    jot = _awaited(Memory.jot)
    set_scratch = _awaited(Memory.set_scratch)
    scratch = _awaited(Memory.scratch)
    update = _awaited(Memory.update)
    edit = _awaited(Memory.edit)
    forget = _awaited(Memory.forget)
    merge = _awaited(Memory.merge)
    pin = _awaited(Memory.pin)
    mark_important = _awaited(Memory.mark_important)
    pause = _awaited(Memory.pause)
    resume = _awaited(Memory.resume)
    consent = _awaited(Memory.consent)
    spend = _awaited(Memory.spend)
    report = _awaited(Memory.report)
    report_many = _awaited(Memory.report_many)
    note_run = _awaited(Memory.note_run)
    undo = _awaited(Memory.undo)
    erase = _awaited(Memory.erase)
    erase_topic = _awaited(Memory.erase_topic)
    clear = _awaited(Memory.clear)
    get = _awaited(Memory.get)
    read = _awaited(Memory.read)
    count = _awaited(Memory.count)
    search = _awaited(Memory.search)
    recall_by_category = _awaited(Memory.recall_by_category)
    recall_fil = _awaited(Memory.recall_fil)
    context = _awaited(Memory.context)
    show = _awaited(Memory.show)
    daily = _awaited(Memory.daily)
    days = _awaited(Memory.days)
    history = _awaited(Memory.history)
    why = _awaited(Memory.why)
    similar = _awaited(Memory.similar)
    rank = _awaited(Memory.rank)
    sessions = _awaited(Memory.sessions)
    numbers = _awaited(Memory.numbers)
    numbered = _awaited(Memory.numbered)
    consents = _awaited(Memory.consents)
    calls = _awaited(Memory.calls)
    usage = _awaited(Memory.usage)
    interactions = _awaited(Memory.interactions)
    unread = _awaited(Memory.unread)
    runs = _awaited(Memory.runs)
    export = _awaited(Memory.export)
    import_ = _awaited(Memory.import_)
    verify = _awaited(Memory.verify)
    rebuild = _awaited(Memory.rebuild)
    rebuild_index = _awaited(Memory.rebuild_index)
    embed = _awaited(Memory.embed)
    upkeep = _awaited(Memory.upkeep)
    notices = _awaited(Memory.notices)


for _name in VERBS.keys() - vars(AsyncMemory).keys():
    setattr(AsyncMemory, _name, _awaited(getattr(Memory, _name)))
