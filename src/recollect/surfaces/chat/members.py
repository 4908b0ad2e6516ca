"""The members of group chats: whoever has talked to us there.

Nothing of this is stored. It is derived from what people said, so a person who is erased is no longer a member, and
what one erases is gone for all. The first messages in a group search the memories for who talked there before this
process began.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from weakref import WeakKeyDictionary, ref

from recollect.agents.discuss import Participant
from recollect.app import Recollect
from recollect.errors import StoreError
from recollect.identity.identities import Identity
from recollect.memory.chat_scope import CONSENT, is_group
from recollect.memory.memory import Memory
from recollect.store.forks import renew_after_forks

LOGGER = logging.getLogger("recollect.talk")
_MOST_MEMBERS = 20
_MOST_SHARED = 3
"""The number of other groups of a member that are used in a group, with their consent."""
_MOST_SESSIONS = 1_000
_PATIENCE_SECONDS = 2.0
"""How long a message in a group waits for that search; the next message continues it."""
_PAGE = 200


class ChatMembers:
    """The members of all groups of an application. Thread-safe."""

    def __init__(self, app: Recollect) -> None:
        self._app = ref(app)  # weak: these are kept by the application
        self._guard = threading.Lock()
        self._members: dict[str, dict[Identity | str, str]] = {}
        """The identities, or users, of each group, with their names; whoever talked last comes last."""
        self._searching = threading.Lock()
        self._searched: str | None = ""
        """The last user whose memory was searched; None when all were."""
        renew_after_forks(self, ChatMembers._renew)

    def add(self, chat: str, member: Identity | str, name: str) -> None:
        """Record that somebody talks in a group."""
        with self._guard:
            known = self._members.setdefault(chat, {})
            known.pop(member, None)
            known[member] = name

    def participants(self, chat: str) -> list[Participant]:
        """Return the members of a group who talked last, each with their memory limited to it."""
        self._search()
        with self._guard:
            known = list(self._members.get(chat, {}).items())
        found: dict[str, Participant] = {}
        for member, name in reversed(known):
            memory = self._memory(member)
            here = memory.acting(chat=chat)
            if memory.user_id in found or not memory.exists or not here.read(limit=1):
                continue  # they erased what they said here
            shared = [memory.acting(chat=other) for other in self._shared(memory, chat)]
            found[memory.user_id] = Participant(name, here, tuple(shared))
            if len(found) == _MOST_MEMBERS:
                break
        return list(found.values())

    def names(self, memory: Memory, session: str) -> list[str]:
        """Return the names of the others in the group that a session of a person belongs to; none if it is private."""
        chat = next((one.chat for one in memory.read(kind="message", session=session, limit=1)), None)
        if chat is None or not is_group(chat):
            return []
        found = self.participants(chat)
        return [one.name for one in found if one.name and one.memory.user_id != memory.user_id]

    def _renew(self) -> None:
        self._guard, self._searching = threading.Lock(), threading.Lock()

    def _memory(self, member: Identity | str) -> Memory:
        app = self._app()
        assert app is not None
        return app.user(member) if isinstance(member, str) else app.identities.memory(member)

    def _shared(self, memory: Memory, chat: str) -> list[str]:
        """Return the other groups of a person, if they consented to have one chat know of another.

        What was said in private is not in any of them.
        """
        if CONSENT not in memory.consents():
            return []
        with self._guard:
            groups = [(group, list(members)) for group, members in self._members.items() if group != chat]
        theirs = (
            group
            for group, members in groups
            if any(self._memory(member).user_id == memory.user_id for member in members)
        )
        return [group for group, _ in zip(theirs, range(_MOST_SHARED), strict=False)]

    # what was said before this process

    def _search(self) -> None:
        """Look through the memories of some more users, until all were or time is up."""
        until = time.monotonic() + _PATIENCE_SECONDS
        app = self._app()
        if app is None or not self._searching.acquire(timeout=_PATIENCE_SECONDS):
            return
        try:
            while self._searched is not None and time.monotonic() < until:
                users = list(app.users(after=self._searched, limit=_PAGE))
                for user in users:
                    self._find_groups(app.user(user))
                    self._searched = user
                    if time.monotonic() >= until:
                        return
                if len(users) < _PAGE:
                    self._searched = None
        finally:
            self._searching.release()

    def _find_groups(self, memory: Memory) -> None:
        try:
            for chat, name in _groups_of(memory):
                found: dict[Identity | str, str] = {memory.user_id: name}
                with self._guard:
                    self._members[chat] = found | self._members.get(chat, {})
        except StoreError as error:
            LOGGER.warning("the groups of a user cannot be read: %s", type(error).__name__)


def _groups_of(memory: Memory) -> Iterator[tuple[str, str]]:
    """Yield the groups in which a person has talked, each with the name they have there."""
    seen: set[str] = set()
    for session in memory.sessions(limit=_MOST_SESSIONS):
        place = session.id.rpartition("@")[0] or session.id
        if place in seen:
            continue
        seen.add(place)
        for message in memory.read(kind="message", session=session.id, limit=1):
            if message.chat is not None and is_group(message.chat):
                yield message.chat, getattr(message, "speaker", None) or ""


_MEMBERS: WeakKeyDictionary[Recollect, ChatMembers] = WeakKeyDictionary()
_GUARD = threading.Lock()


def members_of(app: Recollect) -> ChatMembers:
    """Return the members of the groups of an application, shared by all its conversations."""
    with _GUARD:
        found = _MEMBERS.get(app)
        if found is None:
            found = _MEMBERS[app] = ChatMembers(app)
        return found
