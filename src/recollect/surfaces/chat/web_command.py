"""The command that gives a person a one-time login link to the web console."""

from __future__ import annotations

from recollect.identity.login import LINK_LIFETIME, Login
from recollect.surfaces.chat.page import ChatLine, ChatPage, chat_page
from recollect.surfaces.chat.speaker import Asker


def chat_web(asker: Asker, argument: str) -> ChatPage:
    """Return a login link to the person's own pages."""
    where = asker.app.config.console_url
    if not where:
        return chat_page(
            ChatLine("The web console is not available here.", "bad"),
            ChatLine("The operator can set MEMORY_CONSOLE_URL.", "aside"),
        )
    code, _ = Login(asker.app.keys).code(asker.memory.user_id)
    return chat_page(
        ChatLine("Your memory in a browser", "title"),
        ChatLine(f"{where.rstrip('/')}/login?code={code}", "item"),
        f"It works once, within {LINK_LIFETIME.seconds // 60} minutes.",
        ChatLine("Anyone who opens it can see and change your memory. Don't share it.", "aside"),
    )
