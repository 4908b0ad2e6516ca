"""The command that gives a person a one-time login link to the web console."""

from __future__ import annotations

from recollect.identity.login import LINK, Login
from recollect.surfaces.chat.page import Line, Page, page
from recollect.surfaces.chat.speaker import Asker


def web(asker: Asker, argument: str) -> Page:
    """Return a login link to the person's own pages."""
    where = asker.app.config.console_url
    if not where:
        return page(
            Line("The web console is not available here.", "bad"),
            Line("The operator can set MEMORY_CONSOLE_URL.", "aside"),
        )
    code, _ = Login(asker.app.keys).code(asker.memory.user_id)
    return page(
        Line("Your memory in a browser", "title"),
        Line(f"{where.rstrip('/')}/login?code={code}", "item"),
        f"It works once, within {LINK.seconds // 60} minutes.",
        Line("Anyone who opens it can see and change your memory. Don't share it.", "aside"),
    )
