"""The command that opens the web console for a person: a link that is good once, for a few minutes."""

from __future__ import annotations

from recollect.identity.login import LINK, Login
from recollect.surfaces.chat.page import Line, Page, page
from recollect.surfaces.chat.speaker import Asker


def web(asker: Asker, argument: str) -> Page:
    """A link to the person's own pages."""
    where = asker.app.config.console_url
    if not where:
        return page(
            Line("Your memory has no web page here.", "bad"),
            Line("Whoever runs me can set MEMORY_CONSOLE_URL.", "aside"),
        )
    code, _ = Login(asker.app.keys).code(asker.memory.user_id)
    return page(
        Line("Your memory in a browser", "title"),
        Line(f"{where.rstrip('/')}/login?code={code}", "item"),
        f"It works once, within {LINK.seconds // 60} minutes.",
        Line("Whoever opens it can see and change your memory: give it to nobody.", "aside"),
    )
