"""python examples/hn_pal: see the README.md one folder up."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from datetime import date, timedelta
from pathlib import Path

from hacker_news import URL, HackerNews
from pal import HNPal
from recording import DAYS, FIRST_DAY, RecordedNews
from week import DemoClock, Week

from recollect import RecollectError
from recollect.surfaces.terminal.chat import TerminalChat
from recollect.surfaces.terminal.lines import PipedLines, TerminalLines
from recollect.surfaces.terminal.screen import Screen
from recollect.times import utc_now

parser = argparse.ArgumentParser(prog="hn_pal", description="A Hacker News companion that remembers its readers.")
parser.add_argument("--folder", type=Path, help="keep the memories here; otherwise in a temporary folder")
channel = parser.add_mutually_exclusive_group()
channel.add_argument("--interactive", action="store_true", help="be a reader yourself, in the terminal")
channel.add_argument("--telegram", action="store_true", help="run the bot; TELEGRAM_BOT_TOKEN is its token")
parser.add_argument("--live", action="store_true", help="stories from Hacker News, not from the recording")
parser.add_argument("--console", action="store_true", help="afterwards, open the web console on the memories")


def talk(pal: HNPal) -> None:
    """Chat with the reader "me" at the keyboard, as `recollect chat` does."""
    pal.app.identities.bind(("terminal", "me"), "me")
    conversation, screen = pal.conversation(("terminal", "me"), "terminal"), Screen()
    typed = sys.stdin.isatty() and sys.stdout.isatty()
    lines = TerminalLines(conversation.memory, "terminal", screen.prompt) if typed else PipedLines()
    TerminalChat(conversation, screen, lines).run()


def run_bot(pal: HNPal) -> None:
    """Run the Telegram bot until Ctrl-C."""
    from bot import PalBot

    bot = PalBot(pal, pal.app.config.telegram_token or "", pal.app.config.telegram_url)
    print("HN Pal is running on Telegram. Ctrl-C stops it.")
    bot.run()


def last_week() -> date:
    """Return the first day of the latest week that is over, at 23:00 on its last day. What is older would expire."""
    return (utc_now() - timedelta(hours=23)).date() - timedelta(days=len(DAYS) - 1)


def main(given: argparse.Namespace, folder: Path) -> None:
    """Run what the options ask for."""
    is_demo = not (given.interactive or given.telegram)
    clock = DemoClock(folder, last_week()) if is_demo else utc_now
    first_day = clock.first_day if isinstance(clock, DemoClock) else FIRST_DAY
    with (
        nullcontext() if given.live else RecordedNews(clock, first_day) as recorded,
        HNPal(folder, HackerNews(recorded.url if recorded else URL), clock=clock) as pal,
    ):
        if isinstance(clock, DemoClock):
            Week(pal, clock).play()
        elif given.telegram:
            run_bot(pal)
        else:
            talk(pal)
        database = pal.app.config.database_url
    user = "mira" if is_demo else "me"
    command = ["recollect", "serve", *([] if database else ["--root", str(folder)]), "--user", user]
    settings = {"MEMORY_DIR": str(folder)} if database else {}  # MEMORY_DATABASE_URL is set
    if given.console:
        program = Path(sys.executable).with_name("recollect")
        subprocess.run([program, *command[1:]], env=os.environ | settings, check=False)
    elif given.folder and not given.telegram:
        named = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
        print(f"\nTo see this memory in a browser: {' '.join([*named, shlex.join(command)])}")


options = parser.parse_args()
with tempfile.TemporaryDirectory() as temporary:
    try:
        main(options, options.folder or Path(temporary))
    except (RecollectError, OSError) as error:
        parser.exit(1, f"{error}\n")
    except KeyboardInterrupt:
        pass
