"""The commands for interests: ranking a list for one user, and topics that many users share."""

from __future__ import annotations

import json
from typing import Annotated, Any

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import Given, argument, option, rename_field
from recollect.surfaces.cli.output import MarkedCell, shorten_line
from recollect.surfaces.cli.program import RECALL, WHOLE, command
from recollect.surfaces.cli.session import CliSession, read_file_argument

_MOST_SHOWN = 160


@command(
    RECALL,
    "recollect rank titles.txt",
    "recollect rank - --limit 10 --json < items.jsonl",
    mirrors="rank",
    without=("items",),
)
def rank_command(
    session: CliSession,
    given: Given,
    file: Annotated[
        str,
        argument(
            "FILE", "One item per line, as text or a JSON object with title, text, topics; - reads standard input."
        ),
    ],
) -> None:
    """Sort a list of items by the user's interests."""
    found = session.memory.rank(_parse_ranked_items(read_file_argument("FILE", file)), **given)
    session.out.document(found)
    if not found:
        session.out.aside("The list is empty.")
        return
    as_given = not any(reason.ids for one in found for reason in one.reasons)
    rows = []
    for one in found:
        text = MarkedCell(_item_label(one.item), below=[one.why] if one.why and not as_given else ())
        rows.append((f"{one.score:+.2f}" if one.score else "0", str(one.position + 1), text))
    session.out.table(("score", "was", "item"), rows, right=("score", "was"))
    if as_given:
        session.out.aside(f"{found[0].why or 'the order is unchanged, as no interest matches any item'}.".capitalize())


@command(WHOLE, "recollect trends", "recollect trends --at-least 20 --days 7 --json")
def trends_command(
    session: CliSession,
    at_least: Annotated[int, option("--at-least -k", "Minimum number of users, 5 or more.", "NUMBER")] = 5,
    days: Annotated[int, option("--days", "The period in days: 7, 30, 90 or 365.", "NUMBER")] = 30,
) -> None:
    """Show interests that many users share (with consent)."""
    try:
        found = session.recollect.trends(k=at_least, days=days)
    except InvalidInputError as error:
        raise (rename_field(error, "--at-least") if error.field == "k" else error) from None
    nothing = f"No topic was shared by {at_least} users in the {days} days before today."
    rows = [(f"{one.users:,}+", one.topic) for one in found]
    session.out.listing(found, ("users", "topic"), rows, nothing=nothing, right=("users",))


def _parse_ranked_items(text: str) -> list[Any]:
    items: list[Any] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        said = line.strip()
        if not said.startswith("{"):
            items += [said] if said else []
            continue
        try:
            items.append(json.loads(said))
        except (ValueError, RecursionError):
            raise InvalidInputError("FILE", f"line {number} begins with {{ but is not valid JSON") from None
    return items


def _item_label(item: Any) -> str:
    if isinstance(item, dict):
        topics = item.get("topics")
        item = item.get("title") or item.get("text") or (topics if isinstance(topics, str) else ", ".join(topics or ()))
    return shorten_line(str(item), _MOST_SHOWN)
