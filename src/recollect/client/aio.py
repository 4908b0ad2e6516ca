"""The verbs of a remote memory, awaited. One implementation: each call crosses into a thread and back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from recollect.client.remote import RemoteMemory
from recollect.core.aio import in_thread

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _awaited(
    verb: Callable[Concatenate[RemoteMemory, _P], _T],
) -> Callable[Concatenate[AsyncRemoteMemory, _P], Coroutine[Any, Any, _T]]:
    async def crossing(self: AsyncRemoteMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        # not among what is done for the user here: a server in the same process may have to do this very thing
        return await in_thread(f"\0{self.memory.user_id}", verb, self.memory, *args, **kwargs)

    functools.update_wrapper(crossing, verb)
    return crossing


class AsyncRemoteMemory:
    """A `RemoteMemory` whose verbs are awaited: ``await memory.remember("…")``."""

    def __init__(self, memory: RemoteMemory) -> None:
        self.memory = memory

    def __repr__(self) -> str:
        return f"<AsyncRemoteMemory of {self.memory.user_id!r}>"

    def acting(self, actor: str | None = None, **context: Any) -> AsyncRemoteMemory:
        """See `RemoteMemory.acting`."""
        return AsyncRemoteMemory(self.memory.acting(actor, **context))

    remember = _awaited(RemoteMemory.remember)
    note = _awaited(RemoteMemory.note)
    observe = _awaited(RemoteMemory.observe)
    episode = _awaited(RemoteMemory.episode)
    say = _awaited(RemoteMemory.say)
    jot = _awaited(RemoteMemory.jot)
    set_scratch = _awaited(RemoteMemory.set_scratch)
    scratch = _awaited(RemoteMemory.scratch)
    update = _awaited(RemoteMemory.update)
    edit = _awaited(RemoteMemory.edit)
    forget = _awaited(RemoteMemory.forget)
    merge = _awaited(RemoteMemory.merge)
    pin = _awaited(RemoteMemory.pin)
    mark_important = _awaited(RemoteMemory.mark_important)
    pause = _awaited(RemoteMemory.pause)
    resume = _awaited(RemoteMemory.resume)
    consent = _awaited(RemoteMemory.consent)
    spend = _awaited(RemoteMemory.spend)
    report = _awaited(RemoteMemory.report)
    report_many = _awaited(RemoteMemory.report_many)
    note_run = _awaited(RemoteMemory.note_run)
    undo = _awaited(RemoteMemory.undo)
    erase = _awaited(RemoteMemory.erase)
    erase_topic = _awaited(RemoteMemory.erase_topic)
    clear = _awaited(RemoteMemory.clear)
    get = _awaited(RemoteMemory.get)
    read = _awaited(RemoteMemory.read)
    count = _awaited(RemoteMemory.count)
    search = _awaited(RemoteMemory.search)
    context = _awaited(RemoteMemory.context)
    show = _awaited(RemoteMemory.show)
    daily = _awaited(RemoteMemory.daily)
    days = _awaited(RemoteMemory.days)
    history = _awaited(RemoteMemory.history)
    why = _awaited(RemoteMemory.why)
    similar = _awaited(RemoteMemory.similar)
    rank = _awaited(RemoteMemory.rank)
    sessions = _awaited(RemoteMemory.sessions)
    numbers = _awaited(RemoteMemory.numbers)
    numbered = _awaited(RemoteMemory.numbered)
    consents = _awaited(RemoteMemory.consents)
    calls = _awaited(RemoteMemory.calls)
    usage = _awaited(RemoteMemory.usage)
    interactions = _awaited(RemoteMemory.interactions)
    unread = _awaited(RemoteMemory.unread)
    runs = _awaited(RemoteMemory.runs)
    export = _awaited(RemoteMemory.export)
    import_ = _awaited(RemoteMemory.import_)
    verify = _awaited(RemoteMemory.verify)
    rebuild = _awaited(RemoteMemory.rebuild)
    rebuild_index = _awaited(RemoteMemory.rebuild_index)
    embed = _awaited(RemoteMemory.embed)
    upkeep = _awaited(RemoteMemory.upkeep)
    notices = _awaited(RemoteMemory.notices)
