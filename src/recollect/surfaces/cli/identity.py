"""The commands that link a person's identities on several channels, and list them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import Yes, argument, option, rename_field
from recollect.surfaces.cli.output import count_each, format_moment
from recollect.surfaces.cli.program import WHOLE, command, command_group
from recollect.surfaces.cli.session import DONE, NO, TERMINAL, CliSession

if TYPE_CHECKING:
    from recollect.identity.identities import BoundIdentity, Identity, Pending

_As = Annotated[str | None, option("--as", "Act as another identity, such as telegram:12345.", "CHANNEL:NAME")]

_link = command_group(
    "link",
    WHOLE,
    "Link two channels to one memory with a code.",
    "recollect link show",
    "recollect link enter K7QM2-XWDPA",
    "recollect link confirm",
)


@_link("recollect link show", "recollect link show --user anna")
def link_show_command(session: CliSession, as_: _As = None) -> None:
    """Show a code to enter on the other channel."""
    who = _acting_identity(session, as_, begins=True)
    code = session.recollect.identities.start_link(who)
    session.out.document({"identity": who, "code": code.text, "until": code.until})
    session.out.line(code.text)
    session.out.aside(f"Enter this code on the other channel before {format_moment(code.until)}. It works once.")
    session.out.aside("Then confirm here: recollect link confirm")


@_link("recollect link enter K7QM2-XWDPA", "recollect link enter K7QM2-XWDPA --as telegram:12345")
def link_enter_command(
    session: CliSession,
    code: Annotated[str, argument("CODE", "The code that the other channel shows.")],
    as_: _As = None,
) -> None:
    """Enter the code that the other channel shows."""
    pending = session.recollect.identities.enter_code(_acting_identity(session, as_, begins=True), code)
    session.out.document(pending)
    _print_pending(session, pending)
    _print_next_step(session, pending, as_)


@_link("recollect link confirm", "recollect link confirm --yes --json")
def link_confirm_command(session: CliSession, as_: _As = None, yes: Yes = False) -> int:
    """Confirm a pending link; both sides have to."""
    from recollect.identity.identities import Pending

    who = _acting_identity(session, as_)
    pending = session.recollect.identities.pending(who)
    if pending is not None and not pending.confirmed:
        session.may_ask(yes)
        if not yes:
            _print_pending(session, pending)
        if not session.agreed("Link them?", yes):
            return NO
    done = session.recollect.identities.confirm(who)
    session.out.document({"joined": not isinstance(done, Pending), "result": done})
    session.out.line(done.message)
    if not isinstance(done, Pending):
        session.out.aside(f"The memory now belongs to the user {done.user_id!r} (--user).")
        if done.undo_until is not None:
            session.out.aside(
                f"To undo this, until {format_moment(done.undo_until)}: recollect link undo --as {done.identity}"
            )
    return DONE


@_link("recollect link decline")
def link_decline_command(session: CliSession, as_: _As = None) -> int:
    """Decline a pending link, or withdraw a code."""
    declined = session.recollect.identities.decline(_acting_identity(session, as_))
    session.out.document({"declined": declined})
    session.out.line("Declined; nothing was linked." if declined else "There was nothing to decline.")
    return DONE if declined else NO


@_link("recollect link status", "recollect link status --as telegram:12345 --json")
def link_status_command(session: CliSession, as_: _As = None) -> None:
    """Show pending and existing links."""
    who, identities = _acting_identity(session, as_), session.recollect.identities
    home = identities.resolve(who)
    own = {str(who), home, *([session.user] if as_ is None else [])}
    joined = [one for one in identities.all() if one.user_id in own]
    pending, until = identities.pending(who), identities.code_until(who)
    session.out.document({"identity": who, "user": home, "pending": pending, "code_until": until, "identities": joined})
    if pending is not None:
        _print_pending(session, pending)
        _print_next_step(session, pending, as_)
    elif until is not None:
        session.out.line(f"A code is shown; it can be entered until {format_moment(until)}.")
    if joined:
        _print_identities(session, joined)
    elif pending is None and until is None:
        session.out.line(f"{who} is not linked, and no link is pending.")


@_link("recollect link undo --as telegram:12345")
def link_undo_command(session: CliSession, as_: _As = None, yes: Yes = False) -> int:
    """Undo a link, within 30 days."""
    who = _acting_identity(session, as_)
    identities = session.recollect.identities
    is_linked = any(one.identity == who and one.joined for one in identities.all())
    question = f"Undo the last link of {who}? What was learned since then stays with the other identity."
    if is_linked and not session.agreed(question, yes):
        return NO
    undone = identities.unlink(who)  # says why not, if there is nothing to undo
    session.out.document(undone)
    session.out.line(undone.message)
    return DONE


@command(WHOLE, "recollect identities", "recollect identities --bind telegram:12345 --user anna")
def identities_command(
    session: CliSession,
    bind: Annotated[str | None, option("--bind", "Bind this identity to the user from now on.", "CHANNEL:NAME")] = None,
) -> None:
    """List identities on all channels and their users."""
    known = session.recollect.identities
    if bind is not None:
        known.bind(_parse_identity("--bind", bind), session.user)
    found = known.all()
    session.out.document(found)
    if found:
        _print_identities(session, found)
    else:
        session.out.aside("No identities are linked. Each one is a separate user, such as telegram:12345.")


def _acting_identity(session: CliSession, given: str | None, *, begins: bool = False) -> Identity:
    """Return the identity named with --as, or the user's identity on the terminal."""
    if given is not None:
        return _parse_identity("--as", given)
    from recollect.identity.identities import check_identity

    try:
        who = check_identity((TERMINAL, session.user))
    except InvalidInputError as error:
        raise rename_field(error, "--user") from None
    if begins:
        session.recollect.identities.bind(who, session.user)
    return who


def _parse_identity(option: str, given: str) -> Identity:
    from recollect.identity.identities import check_identity

    channel, colon, name = given.partition(":")
    if not colon:
        raise InvalidInputError(option, f"{given!r} is not CHANNEL:NAME, such as telegram:12345")
    try:
        return check_identity((channel, name))
    except InvalidInputError as error:
        raise rename_field(error, option) from None


def _print_pending(session: CliSession, pending: Pending) -> None:
    session.out.line(pending.message)
    here, there = count_each(pending.own_counts) or "nothing yet", count_each(pending.other_counts) or "nothing yet"
    session.out.pairs([("here", here), (pending.other_channel, there), ("until", format_moment(pending.until))])


def _print_next_step(session: CliSession, pending: Pending, given: str | None) -> None:
    if not pending.confirmed:
        who = "" if given is None else f" --as {given}"
        session.out.aside(f"To agree: recollect link confirm{who}   To refuse: recollect link decline{who}")


def _print_identities(session: CliSession, found: list[BoundIdentity]) -> None:
    rows = []
    for one in found:
        way = "linked" if one.joined else "own" if str(one.identity) == one.user_id else "bound"
        rows.append(
            (str(one.identity), one.user_id, way, "" if one.undo_until is None else format_moment(one.undo_until))
        )
    session.out.table(("identity", "user", "status", "can be undone until"), rows)
