"""The command that opens the web console for a person: a link that is good once, for a few minutes."""

from __future__ import annotations

from recollect.identity.login import LINK_LIFETIME, Login
from recollect.surfaces.chat.page import ChatLine, ChatPage, chat_page
from recollect.surfaces.chat.speaker import Asker


def chat_web(asker: Asker, argument: str) -> ChatPage:
    """A link to the person's own pages."""
    where = asker.app.config.console_url
    if not where:
        return chat_page(
            ChatLine("Your memory has no web page here.", "bad"),
            ChatLine("Whoever runs me can set MEMORY_CONSOLE_URL.", "aside"),
        )
    code, _ = Login(asker.app.keys).code(asker.memory.user_id)
    return chat_page(
        ChatLine("Your memory in a browser", "title"),
        ChatLine(f"{where.rstrip('/')}/login?code={code}", "item"),
        f"It works once, within {LINK_LIFETIME.seconds // 60} minutes.",
        ChatLine("Whoever opens it can see and change your memory: give it to nobody.", "aside"),
    )
