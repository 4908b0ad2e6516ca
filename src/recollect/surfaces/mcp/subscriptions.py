"""Notifies subscribers that a call of this server changed a resource of their own user.

Edits by the person and writes by other processes are noticed at the next call that writes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types import (
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

LOGGER = logging.getLogger("recollect.mcp")

_MOST_SUBSCRIBED = 1024
_SECONDS = 5.0
_Digests = Callable[[str, Sequence[str]], Awaitable[dict[str, str]]]


class _OpenStreams:
    """The open streams of one user, in protocol versions that have them."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.uris: Counter[str] = Counter()


class Subscriptions:
    """The subscriptions. ``digests`` returns a digest of each of a user's resources."""

    def __init__(self, digests: _Digests) -> None:
        self._digests = digests
        self._sessions: OrderedDict[tuple[str, str], tuple[ServerSession, set[str]]] = OrderedDict()
        self._streams: dict[str, _OpenStreams] = {}
        self._handlers: set[ListenHandler] = set()
        self._seen: dict[tuple[str, str], str] = {}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    # protocol versions with sessions: subscribe and unsubscribe

    async def subscribe(self, user: str, session: str, to: ServerSession, uri: str) -> None:
        """Subscribe a session. Ended sessions are dropped when there are too many."""
        _, uris = self._sessions.pop((user, session), (to, set()))
        self._sessions[user, session] = (to, uris | {uri})
        while len(self._sessions) > _MOST_SUBSCRIBED:
            self._sessions.popitem(last=False)
        await self._begin(user, [uri])

    def unsubscribe(self, user: str, session: str, uri: str) -> None:
        """Unsubscribe a session."""
        if found := self._sessions.get((user, session)):
            found[1].discard(uri)
            if not found[1]:
                del self._sessions[user, session]

    # protocol versions without sessions: a request that is answered for as long as the client listens

    async def listen(
        self, user: str, ctx: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Notify this client until it disconnects."""
        uris = list(params.notifications.resource_subscriptions or ())[:100]
        streams = self._streams.setdefault(user, _OpenStreams())
        streams.uris.update(uris)
        handler = ListenHandler(streams.bus, max_subscriptions=1)
        self._handlers.add(handler)
        try:
            await self._begin(user, uris)
            return await handler(ctx, params)
        finally:
            self._handlers.discard(handler)
            streams.uris.subtract(uris)
            streams.uris += Counter()  # drops counts of zero
            if not streams.uris:
                self._streams.pop(user, None)

    def close(self) -> None:
        """Close all streams."""
        for handler in list(self._handlers):
            handler.close()

    # what changed

    def look(self, user: str) -> None:
        """Check this user's resources soon, in the background, and notify subscribers of changes."""
        if not self._wanted(user):
            return
        if user in self._looking:
            self._again.add(user)
            return
        self._looking[user] = asyncio.create_task(self._look(user), name="recollect-changes")

    async def _look(self, user: str) -> None:
        try:
            while True:
                self._again.discard(user)
                for uri, digest in (await self._digests(user, sorted(self._wanted(user)))).items():
                    if self._seen.get((user, uri)) != digest:
                        self._seen[user, uri] = digest
                        await self._tell(user, uri)
                if user not in self._again:
                    return
        except Exception as error:  # a background task: there is no caller to raise to
            LOGGER.warning("subscribers were not notified of a change: %s", type(error).__name__)
        finally:
            del self._looking[user]

    async def _tell(self, user: str, uri: str) -> None:
        if streams := self._streams.get(user):
            await streams.bus.publish(ResourceUpdated(uri))
        for (whose, _), (session, uris) in list(self._sessions.items()):
            if whose == user and uri in uris:
                told = ResourceUpdatedNotification(params=ResourceUpdatedNotificationParams(uri=uri))
                try:  # a client that does not read must not keep the others waiting
                    await asyncio.wait_for(session.send_notification(told), _SECONDS)
                except TimeoutError:
                    LOGGER.warning("a subscriber does not read")

    async def _begin(self, user: str, uris: Sequence[str]) -> None:
        """Store the current digests, to detect changes."""
        self._seen |= {(user, uri): digest for uri, digest in (await self._digests(user, uris)).items()}
        if len(self._seen) > 4 * _MOST_SUBSCRIBED:
            self._seen = {key: digest for key, digest in self._seen.items() if key[1] in self._wanted(key[0])}

    def _wanted(self, user: str) -> set[str]:
        found = set(self._streams[user].uris) if user in self._streams else set()
        for (whose, _), (_, uris) in self._sessions.items():
            if whose == user:
                found |= uris
        return found


def text_digest(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=16).hexdigest()
