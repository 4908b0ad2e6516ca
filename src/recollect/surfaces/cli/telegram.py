"""The `recollect telegram` command."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from typing import Annotated

from recollect.errors import ConfigError, InvalidInputError, MissingExtraError
from recollect.surfaces.cli.mcp import log_to_stderr
from recollect.surfaces.cli.options import option
from recollect.surfaces.cli.program import AGENTS, INTERRUPTED, command
from recollect.surfaces.cli.session import CliSession

_LOOK_SECONDS = 0.5


@command(
    AGENTS,
    "recollect telegram",
    "recollect telegram --webhook-url https://bot.example.org/telegram",
)
def telegram_command(
    session: CliSession,
    webhook_url: Annotated[
        str | None, option("--webhook-url", "The public URL to which Telegram sends updates.", "URL")
    ] = None,
    listen: Annotated[
        str | None, option("--listen", "The address behind that URL (default: 127.0.0.1:8443).", "HOST:PORT")
    ] = None,
    concurrency: Annotated[
        int, option("--concurrency", "The number of people served at a time.", "NUMBER", min=1, max=64)
    ] = 16,
) -> None:
    """Run the Telegram bot."""
    try:
        from telegram.warnings import PTBDeprecationWarning
    except ImportError:
        raise MissingExtraError("telegram", "recollect telegram") from None
    from recollect.agents.models import configured_model
    from recollect.surfaces.telegram import Bot
    from recollect.surfaces.telegram.bot import BotError

    log_to_stderr()
    warnings.filterwarnings("ignore", category=PTBDeprecationWarning)  # about the library's own future
    config = session.recollect.config
    if not config.telegram_token:
        raise ConfigError("TELEGRAM_BOT_TOKEN is not set; create a bot with @BotFather on Telegram to get a token")
    if listen is not None and webhook_url is None:
        raise InvalidInputError("--listen", "requires --webhook-url")
    model = configured_model(config)
    bot = Bot(
        session.recollect,
        config.telegram_token,
        model=model,
        webhook_url=webhook_url,
        listen=listen or "127.0.0.1:8443",
        concurrency=concurrency,
    )
    asked = False

    def end(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)  # nothing is lost: unfinished updates are processed again at the next start
        asked = True
        # in a thread: the signal may arrive while this thread holds the lock that wake() needs
        threading.Thread(target=bot.wake, daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        with bot:
            told = f"with {model.name}" if model else "with no model"
            session.out.aside(f"@{bot.me.username} is running on Telegram, {told}. Press Ctrl-C to stop.")
            while not bot.wait(_LOOK_SECONDS):
                pass  # Python handles a signal only when this thread runs
            session.out.aside("Finishing …")
    except BotError:
        if not asked:  # a signal while Telegram is unreachable is not a failure
            raise
    finally:
        if model is not None:
            model.close()
