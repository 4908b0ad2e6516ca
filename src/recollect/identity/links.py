"""Identities and links: which user an identity is, a code shown on one channel and entered on another, confirmation by
both, and undo.

Each step is decided and stored in one transaction of the identity store, which never waits for a memory. Memories are
merged outside of it, and the next caller completes whatever was interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

from recollect.config import Config
from recollect.errors import LinkError, RecollectError, StoreBusyError, StoreError
from recollect.identity.codes import hashed, new_code, normal
from recollect.identity.identities import BoundIdentity, Code, Identity, Joined, Pending, Unlinked, check_identity
from recollect.identity.late_saves import SavedAgainError, take_in_late_saves
from recollect.identity.link_states import (
    TRIES_MINUTES,
    begin_joining,
    check_finished,
    copies_of,
    digest,
    home_of,
    joined_of,
    joinings_above,
    kept_copy,
    last_joining,
    limits,
    named,
    not_undoable,
    own_user,
    salt_of,
)
from recollect.identity.merge import (
    Contents,
    Merge,
    contents,
    erase_brought,
    mark_of,
    memory_of,
    secret_of,
    state_before,
    take_back,
)
from recollect.memory.copies import KeptCopy
from recollect.memory.memory import Memory
from recollect.memory.transaction import NO_HOOKS
from recollect.memory.transfer import import_archive, write_archive
from recollect.memory.upkeep import remove_expired
from recollect.memory.user_memory import UserMemory
from recollect.memory.write import Acting, refusal_if_paused
from recollect.policy.topics import Topic
from recollect.records import new_id
from recollect.store.identities import Link, links, one_link
from recollect.store.service_tables import NoServiceTables, ServiceTables, View
from recollect.times import Clock, from_text, to_text, utc_now
from recollect.userid import check_user_id

CODE_MINUTES = 10
TRIES = 5
"""The limit of wrong codes per account, and of wrong entries per code by anybody; see `codes`."""
UNDO_DAYS = 30
_MOST_PASSES = 20

Someone = tuple[str, str | int]
"""A channel and a name; an `Identity`, or the two as they come."""


class _ChangedError(Exception):
    """The memory was written to after it was merged."""


@dataclass(frozen=True, slots=True)
class People:
    """The parts of the application that identities need."""

    person: Callable[[str], UserMemory]
    remove: Callable[[str, Callable[[], None]], object]
    """Removes a user, if the check under their lock raises nothing."""
    config: Config
    clock: Clock


class Identities:
    """The identities of all users. Get it from `Recollect.identities`."""

    def __init__(self, store: ServiceTables, people: People) -> None:
        self._store = store
        self._people = people

    # resolving

    def resolve(self, identity: Someone) -> str:
        """Return the user id of an identity: its own, such as "telegram:12345", unless it was bound or joined."""
        who = check_identity(identity)
        with self._store.read() as view:
            return str(who) if view is None else home_of(view, who)

    def memory(self, identity: Someone) -> Memory:
        """Return the memory of an identity."""
        who = check_identity(identity)
        with self._store.read() as view:
            own, home = (str(who), str(who)) if view is None else (own_user(view, who), home_of(view, who))
        person = self._people.person(home)
        if own != home:
            with suppress(SavedAgainError, RecollectError):  # the next look tries again
                take_in_late_saves(person, self._people.person(own), self._people.remove)
        return Memory(person)

    def bind(self, identity: Someone, user_id: str | int) -> None:
        """Bind an identity to one of your own users, for host applications with their own user ids."""
        who, user = check_identity(identity), check_user_id(user_id)
        with self._store.read() as view:
            if view is not None and view.rows("bound", **named(who)) == [(user,)]:
                return
        if user == str(who):
            with self._store.read() as view:
                if view is None or not view.rows("bound", **named(who)):
                    return
        with self._store.write() as view:
            own = own_user(view, who)
            taken = own != user and (one_link(view, "joins", user_id=own) or links(view, "joined_to", user_id=own))
            if not taken:
                view.run("bind", user_id=user, **named(who))
        if taken:
            raise LinkError("joined", f"{who} is already joined with another channel; unlink it first")

    def all(self) -> list[BoundIdentity]:
        """List all identities that were bound or joined."""
        with self._store.read() as view:
            if view is None:
                return []
            found = []
            for channel, name in view.rows("identities"):
                who = Identity(channel, name)
                home = home_of(view, who)
                joins = one_link(view, "joins", user_id=own_user(view, who))
                until = joins.until if joins and joins.state == "joined" and joins.undoable else None
                joined = joins is not None and joins.state != "restored"
                found.append(BoundIdentity(identity=who, user_id=home, joined=joined, undo_until=until))
        return found

    # linking

    def start_link(self, identity: Someone) -> Code:
        """Return a code to show on this channel and to enter on the other. Cancels what this identity began before."""
        who, now = check_identity(identity), self._now
        self._check_enabled()
        text = new_code()
        until = now + timedelta(minutes=CODE_MINUTES)
        with self._store.write() as view:
            code = hashed(normal(text), salt_of(view))
            view.run("close_open", state="replaced", **named(who))
            self._tidy(view, now)
            view.run(
                "show",
                id=new_id("run"),
                code=code,
                now=to_text(now),
                until=to_text(until),
                user_id=home_of(view, who),
                **named(who),
            )
        return Code(text=text, until=until)

    def enter_code(self, identity: Someone, code: str) -> Pending:
        """Enter the code that another channel shows. Nothing is joined yet: both sides have to confirm."""
        who, now, typed = check_identity(identity), self._now, normal(code)
        self._check_enabled()
        with self._store.write() as view:
            self._tidy(view, now)
            who_hash = hashlib.blake2b(str(who).encode(), key=bytes.fromhex(salt_of(view)), digest_size=16).hexdigest()
            code_hash = hashed(typed, salt_of(view))
            problem = self._limit(view, (who_hash, code_hash), now)
            if problem is None:
                link = one_link(view, "of_code", code=code_hash)
                problem = self._problem(view, link, who, now)
                if problem is None and link is not None:
                    view.run("close_open", state="replaced", **named(who))
                    view.run(
                        "enter",
                        id=link.id,
                        now=to_text(now),
                        until=to_text(now + timedelta(minutes=CODE_MINUTES)),
                        user_id=home_of(view, who),
                        **named(who),
                    )
                elif problem is not None and problem.kind in ("wrong", "expired", "used"):
                    for what in (who_hash, code_hash):
                        view.run("fail", who=what, now=to_text(now))
        if problem is not None:
            raise problem
        pending = self.pending(who)
        if pending is None:
            raise LinkError("expired", "The other side has withdrawn the code; show a new one there.")
        return pending

    def pending(self, identity: Someone) -> Pending | None:
        """Return what this identity can confirm or decline, if anything."""
        who, now = check_identity(identity), self._now
        with self._store.read() as view:
            link = None if view is None else one_link(view, "open", now=to_text(now), **named(who))
            if view is None or link is None or link.entered is None:
                return None
            shown, entered = Identity(*link.shown), Identity(*link.entered)
            own, other = (shown, entered) if who == shown else (entered, shown)
            users = {one: home_of(view, one) for one in (own, other)}
            if link.state == "joining":
                users = {shown: link.survivor, entered: link.joined}
        agreed, other_agreed = link.agreed if who == shown else link.agreed[::-1]
        return Pending(
            identity=who,
            showed_code=who == shown,
            other_channel=other.channel,
            own_counts=self._counts(users[own]),
            other_counts=self._counts(users[other]),
            confirmed=agreed,
            other_confirmed=other_agreed,
            until=link.until,
        )

    def confirm(self, identity: Someone) -> Joined | Pending:
        """Confirm what is pending. Once both sides have, the memories are joined.

        After a kill in the middle, confirming again completes it.
        """
        who, now = check_identity(identity), self._now
        self._check_enabled()
        for _ in range(_MOST_PASSES):
            problem: LinkError | None = None
            before: list[Link] = []
            with self._store.write() as view:
                link = one_link(view, "open", now=to_text(now), **named(who))
                if link is not None and link.state == "entered":
                    view.run("agree_shown" if who == link.shown else "agree_entered", id=link.id)
                    problem, before = begin_joining(view, link.id)
            if link is None:
                raise LinkError("nothing", "There is nothing to confirm.")
            if problem is not None:
                raise problem
            if not before:
                pending = self.pending(who)
                if pending is not None and not (pending.confirmed and pending.other_confirmed):
                    return pending
                return self._complete(link.id)
            for other in before:
                self._continue(other)
        raise StoreBusyError("these channels keep being joined with others; try again")

    def decline(self, identity: Someone) -> bool:
        """Decline what is pending, and withdraw a code that is shown; return True if there was any."""
        who = check_identity(identity)
        with self._store.read() as view:
            if view is None:
                return False
        with self._store.write() as view:
            return view.run("close_open", state="declined", **named(who)) > 0

    def code_until(self, identity: Someone) -> datetime | None:
        """Return until when a code that this identity showed can be entered; None if there is none."""
        who = check_identity(identity)
        with self._store.read() as view:
            link = None if view is None else one_link(view, "shown", now=to_text(self._now), **named(who))
        return None if link is None else link.until

    # undoing

    def unlink(self, identity: Someone) -> Unlinked:
        """Undo the last link by which this identity came to its present user, within 30 days.

        The memory that was joined is again as it was; what was learned since then stays with the other. Until all of
        it is restored, the identity keeps the joined memory. After a kill, unlinking again or `upkeep` completes it.
        """
        who, now = check_identity(identity), self._now
        link: Link | None = None
        problem: LinkError | None = LinkError("nothing", f"{who} is not linked to anything.")
        with self._store.read() as view:
            known = view is not None
        if known:
            with self._store.write() as view:
                link = last_joining(view, who)
                problem = not_undoable(view, link, who, now)
                if problem is None and link is not None and link.state == "joined":
                    view.run("begin_unlinking", id=link.id)
        if problem is not None or link is None:
            raise problem or LinkError("nothing", f"{who} is not linked to anything.")
        return self._undo(link.id)

    # maintenance

    def upkeep(self) -> None:
        """Complete interrupted joinings and unlinkings, and drop what has expired."""
        with self._store.read() as view:
            unfinished = [] if view is None else links(view, "unfinished")
        for link in unfinished:
            with suppress(LinkError, StoreBusyError):  # called off, or another process is doing it: next time, then
                self._continue(link)
        self.tidy()

    def tidy(self) -> None:
        """Erase copies that are too old to be restored, and old codes and failures."""
        bounds = limits(self._now)
        self._store.finish_erasing()
        with self._store.read() as view:
            if view is None or not view.rows("untidy", **bounds):
                return
        with self._store.write(erases=True) as view:
            self._tidy(view, self._now)

    def kept(self, user_id: str, topics: Sequence[Topic] = ()) -> list[KeptCopy]:
        """Return every copy that may hold what this user erases, or only those that mention these topics.

        Raises `UnfinishedError` while a memory is being joined with theirs or separated from it.
        """
        with self._store.read() as view:
            found = [] if view is None else copies_of(view, user_id)
            if view is None or not found:
                return []
            check_finished(found)
            copies = [kept_copy(view, link) for link in found]
        # read outside of the transaction: a copy is never changed, and their lock keeps new ones away
        return [copy for copy in copies if not topics or (copy.data and copy.mentions(topics))]

    def drop(self, user_id: str, copies: Sequence[KeptCopy]) -> None:
        """Erase these copies of memories joined with this user's. Raises `UnfinishedError` as `kept` does."""
        with self._store.write(erases=True) as view:
            found = copies_of(view, user_id)
            check_finished(found)
            for link in found:
                if any(copy.link == link.id for copy in copies):
                    view.run("make_final", id=link.id)

    @property
    def erasure_pending(self) -> bool:
        """True if a log still holds a copy that was erased."""
        return self._store.pending

    def is_joined(self, run: str) -> bool:
        """Return True if the joining of this run is still in effect."""
        with self._store.read() as view:
            link = None if view is None else one_link(view, "link", id=run)
        return link is not None and link.state in ("joining", "joined", "unlinking")

    def erase_user(self, user_id: str) -> tuple[dict[str, int], list[str]]:
        """Remove everything about a user; return the amounts by place, and users whose joining with them was
        unfinished.

        The latter must be erased too: both sides had confirmed that they are the same person.
        """
        copies = 0
        with self._store.read() as view:
            if view is None:
                return {}, []
            unlinkings = links(view, "unlinkings", user_id=user_id)
        for link in unlinkings:  # whoever is being separated from them keeps their own memory
            self._undo(link.id)
        with self._store.read() as view:
            joins = None if view is None else one_link(view, "joins", user_id=user_id)
            above = [] if view is None or joins is None else joinings_above(view, joins)
            copy = None if view is None or joins is None else kept_copy(view, joins)
        if joins is not None and copy is not None and above:
            # by now, what they brought along is a part of other memories and of their copies
            brought = joins.details.get("interactions", [])
            erase_brought(self._people.person(above[-1].survivor), copy, brought)
            copies = len(above)
            with self._store.write(erases=True) as view:
                for link in above:
                    view.run("make_final", id=link.id)
        elif joins is not None:  # what they brought along is removed from where it is now
            with self._store.write() as view:
                copies = sum(row[0] is not None for row in view.rows("copy", id=joins.id))
                view.run("call_off", id=joins.id, details=json.dumps({**joins.details, "erased": True}))
            self._undo(joins.id)
        with self._store.write(erases=True) as view:
            below = links(view, "below", user_id=user_id)
            users = {user_id, *(link.joined for link in below)}
            found = {link.id: link for user in sorted(users) for link in links(view, "links_of", user_id=user)}
            copies += sum(view.rows("copy", id=link_id)[0][0] is not None for link_id in found)
            for link_id in found:
                view.run("drop_link", id=link_id)
            bound = sum(view.run("unbind", user_id=user) for user in sorted(users))
            for user in sorted(users) if found or joins else ():
                self._bury(view, user)  # their files may come back from a backup, though they have no memory any more
        places = {"links": len(found), "joined copies": copies, "identities": bound}
        undone = [link.joined for link in below if link.state == "joining"]
        return {place: number for place, number in places.items() if number}, undone

    def bury(self, user_id: str) -> None:
        """Record that a user was erased just now: an older MEMORY.md is not read again."""
        if isinstance(self._store, NoServiceTables):
            return  # a custom store: its author takes care of that
        with self._store.write() as view:
            self._bury(view, user_id)

    def _bury(self, view: View, user_id: str) -> None:
        # by the real time and not the app's clock: it is compared with file times
        view.run("bury_user", who=digest(check_user_id(user_id)), at=to_text(utc_now()))

    def erased_at(self, user_id: str) -> datetime | None:
        """Return when a user of this id was last erased; None if never."""
        with self._store.read() as view:
            rows = [] if view is None else view.rows("erased_user", who=digest(check_user_id(user_id)))
        return from_text(rows[0][0]) if rows else None

    def close(self) -> None:
        self._store.close()

    # inside

    @property
    def _now(self) -> datetime:
        return self._people.clock()

    def _check_enabled(self) -> None:
        if refusal_if_paused("on", self._people.config) is not None:
            raise LinkError("paused", "Memory is switched off here, so nothing can be joined.")

    def _counts(self, user_id: str) -> dict[str, int]:
        person = self._people.person(user_id)
        return Memory(person).count() if memory_of(person) else {}

    def _limit(self, view: View, counted: tuple[str, str], now: datetime) -> LinkError | None:
        """Return an error after too many wrong codes of this account or wrong entries of this code."""
        since = to_text(now - timedelta(minutes=TRIES_MINUTES))
        failures = [view.rows("failures_of", who=what, since=since, most=TRIES) for what in counted]
        waits = [rows[-1][0] for rows in failures if len(rows) >= TRIES]
        if not waits:
            return None
        again = datetime.fromisoformat(max(waits)) + timedelta(minutes=TRIES_MINUTES)
        return LinkError(
            "limited", f"Too many wrong codes. Try again at {again:%H:%M} UTC, with a new code.", retry_at=again
        )

    def _problem(self, view: View, link: Link | None, who: Identity, now: datetime) -> LinkError | None:
        if link is None:
            return LinkError("wrong", "This code is not valid. Check it, or show a new one on the other channel.")
        if link.shown == who:
            return LinkError("own", "This code was shown on this channel; enter it on the other one.")
        if link.entered == who and link.state == "entered" and link.until > now:
            return LinkError("used", "You have already entered this code; now confirm it.")
        if link.state == "replaced" or (link.state == "shown" and link.until <= now):
            return LinkError("expired", "This code has expired. Show a new one on the other channel.")
        if link.state != "shown":
            return LinkError("used", "This code was already used. Show a new one on the other channel.")
        if home_of(view, Identity(*link.shown)) == home_of(view, who):
            return LinkError("joined", "These two channels are already joined.")
        return None

    def _tidy(self, view: View, now: datetime) -> None:
        for (link_id,) in view.rows("outlived", now=to_text(now)):
            view.run("make_final", id=link_id)
        bounds = limits(now)
        view.run("tidy_links", before=bounds["links_before"])
        view.run("tidy_failures", before=bounds["failures_before"])

    def _link(self, link_id: str) -> Link | None:
        with self._store.read() as view:
            return None if view is None else one_link(view, "link", id=link_id)

    def _complete(self, link_id: str) -> Joined:
        """Merge and remove the joined memory, continuing from wherever that was interrupted."""
        for _ in range(_MOST_PASSES):
            link = self._link(link_id)
            if link is None or link.entered is None or link.state not in ("joining", "joined"):
                raise LinkError("nothing", "The link was cancelled in the meantime.")
            if link.state == "joined":
                return joined_of(link)
            if not link.merged:
                self._merge(link)
                continue
            try:
                self._remove(link)
            except _ChangedError:
                with self._store.write() as view:
                    view.run("set_merged", id=link.id, merged=0)
                continue
            with self._store.write() as view:
                view.run("set_joined", id=link.id, until=to_text(self._now + timedelta(days=UNDO_DAYS)))
        raise StoreBusyError("the memory to be joined keeps changing; try again")

    def _merge(self, link: Link) -> None:
        assert link.entered is not None
        survivor, joined = self._people.person(link.survivor), self._people.person(link.joined)
        details: dict[str, Any] = dict(link.details)
        copy = BytesIO()
        brought: Contents | None = None
        if memory_of(joined):
            try:
                with joined.read(notes=True) as reader:
                    brought = contents(reader, link.id, self._now)
                    write_archive(joined, reader, copy)
            except StoreError:
                if self._is_merging(link.id):
                    raise
                return  # another process is further ahead and has cleaned up
            with survivor.read() as reader:
                details = {**state_before(reader, brought.interactions), **details, "mark": brought.mark}
        with self._store.write() as view:
            secret = "" if brought is None else brought.state.secret.hex()
            begun = view.run("begin_merging", id=link.id, secret=secret, details=json.dumps(details))
            view.run("keep_copy", id=link.id, copy=copy.getvalue() if brought else None)
        if not begun:
            return  # another process is further ahead
        if brought is not None:
            merge = Merge(survivor, brought, link.id, str(Identity(*link.entered)), lambda: self._check_on(link.id))
            details["counts"] = dict(merge())
        with self._store.write() as view:
            if view.run("set_merged", id=link.id, merged=1):
                view.run("set_details", id=link.id, details=json.dumps(details))

    def _is_merging(self, link_id: str) -> bool:
        link = self._link(link_id)
        return link is not None and link.state == "joining" and not link.merged

    def _check_on(self, link_id: str) -> None:
        link = self._link(link_id)
        if link is None or link.state != "joining":
            raise LinkError("nothing", "The link was cancelled in the meantime.")

    def _remove(self, link: Link) -> None:
        """Remove the joined memory from its old place, unless it was written to after it was merged."""
        joined = self._people.person(link.joined)
        if not memory_of(joined):
            return

        def unchanged() -> None:
            with joined.user.read() as reader:
                now = mark_of(reader.state(), reader.consents(), reader.interactions())
                if now != link.details.get("mark") or joined.files.edited(reader, notes=True):
                    raise _ChangedError

        if secret_of(joined) == link.secret:  # otherwise somebody began a new memory under this id
            self._people.remove(link.joined, unchanged)

    def _continue(self, link: Link) -> None:
        """Complete a joining or an unlinking that was interrupted."""
        if link.state == "joining":
            self._complete(link.id)
        else:
            self._undo(link.id)

    def _undo(self, link_id: str) -> Unlinked:
        """Restore the joined memory, let its user have it, and only then take back what it had brought."""
        link = self._link(link_id)
        if link is None or link.entered is None:
            raise LinkError("nothing", "The joined memory was erased in the meantime.")
        try:
            if link.state == "unlinking":
                self._restore(link)
                with self._store.write(erases=True) as view:
                    view.run("set_restored", id=link.id)
            with self._store.read() as view:
                erased = None if view is None or not link.details.get("erased") else kept_copy(view, link)
            name, survivor = str(Identity(*link.entered)), self._people.person(link.survivor)
            done, kept = take_back(survivor, link.id, link.details, name, lambda: self._is(link.id, "restored"), erased)
        except StoreBusyError as error:
            raise StoreBusyError("another process keeps writing to these memories; unlink again") from error
        with self._store.write(erases=True) as view:
            view.run("set_unlinked", id=link.id)
        return Unlinked(user_id=link.joined, was_user_id=link.survivor, taken_back=done, kept=kept)

    def _restore(self, link: Link) -> None:
        """Restore the joined memory from its copy, in its own place, unless another process has."""
        with self._store.read() as view:
            rows = [] if view is None else view.rows("copy", id=link.id)
        if not rows or rows[0][0] is None:
            return  # there was no memory
        back, copy = self._people.person(link.joined), rows[0][0]

        def still() -> None:  # afterwards they may have erased something of it
            if not self._is(link.id, "unlinking"):
                raise _ChangedError

        with suppress(_ChangedError):
            for last in (False, True):
                if secret_of(back) == link.secret:
                    break
                try:
                    import_archive(back, Acting(actor="link"), BytesIO(copy), restoring=still)
                    break
                except StoreBusyError:  # somebody has just begun a memory there: the copy is merged into it
                    if last:
                        raise
            with back.write(Acting(actor="upkeep"), hooks=NO_HOOKS) as write:
                still()
                remove_expired(write, back.files)

    def _is(self, link_id: str, state: str) -> bool:
        link = self._link(link_id)
        return link is not None and link.state == state
