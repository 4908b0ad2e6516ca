"""The `recollect chat` command."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

from recollect.errors import LinkError
from recollect.surfaces.cli.options import option
from recollect.surfaces.cli.program import START, command
from recollect.surfaces.cli.session import TERMINAL, CliSession


@command(
    START,
    "recollect chat",
    "recollect chat --session thesis",
    "recollect chat --suite facts",
    "printf 'hello\\n' | recollect chat --json",
)
def chat_command(
    session: CliSession,
    name: Annotated[str | None, option("--session", "A separate chat that you can return to.", "NAME")] = None,
    suite: Annotated[
        list[str] | None,
        option("--suite", "A tool suite for the model (repeatable; default: MEMORY_TOOL_SUITES).", "NAME"),
    ] = None,
    persona: Annotated[str | None, option("--persona", "Who the model is (default: MEMORY_PERSONA).", "TEXT")] = None,
) -> None:
    """Talk to your memory, with a model if one is configured."""
    from recollect.agents.models import configured_model
    from recollect.surfaces.chat.conversation import Conversation
    from recollect.surfaces.terminal.chat import TerminalChat
    from recollect.surfaces.terminal.lines import PipedLines, TerminalLines
    from recollect.surfaces.terminal.screen import JsonScreen, Screen

    app, identity = session.recollect, (TERMINAL, session.user)
    with suppress(LinkError):  # already linked with another channel
        app.identities.bind(identity, session.user)
    model = configured_model(app.config)
    try:
        place = TERMINAL if name is None else f"{TERMINAL}/{name}"
        talk = Conversation(app, identity, place=place, model=model, suites=suite or None, persona=persona)
        screen = JsonScreen() if session.json else Screen()
        typed = sys.stdin.isatty() and sys.stdout.isatty() and not session.json
        if typed:
            who = f"as {session.user}, " if session.user != "me" else ""
            screen.say(
                f"Recollect, {who}with {model.name if model else 'no model'}. /help, or Ctrl-D to leave.", "aside"
            )
        TerminalChat(talk, screen, TerminalLines(talk.memory, place, screen.prompt) if typed else PipedLines()).run()
    finally:
        if model is not None:
            model.close()
