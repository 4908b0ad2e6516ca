"""Pictures of the web console for the documents: the real server, an example memory, a real browser.

python tools/screenshots.py docs/images
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, async_playwright

import recollect
from recollect import Recollect
from recollect.identity.login import Login
from recollect.surfaces import example
from recollect.surfaces.http_server import Address
from recollect.surfaces.serve import Server
from recollect.surfaces.web.console import SESSION_COOKIE
from recollect.testing import FrozenClock

DESK, TALL, PHONE = (1200, 800), (1200, 1150), (390, 780)
Theme = Literal["light", "dark"]


async def main(folder: Path) -> None:
    """Fill a memory, serve it, and take all pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium. `make browser` installs it, as root or with sudo.")
    folder.mkdir(parents=True, exist_ok=True)
    # today, as the dashboard looks back from now; at the same hour, so that the pictures are alike
    clock = FrozenClock(datetime.now(timezone.utc).replace(hour=18, minute=0, second=0, microsecond=0))
    with tempfile.TemporaryDirectory() as kept, recollect.open(kept, clock=clock) as app:
        await asyncio.to_thread(example.fill_example, app)
        server = Server(app, Address.parse("127.0.0.1:0"), user=example.USER)
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(server.serve(port.set_result))
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            await take_all(browser, app, f"http://127.0.0.1:{await port}/console", folder)
            await browser.close()
        server.stop()
        await serving


async def take_all(browser: Browser, app: Recollect, base: str, folder: Path) -> None:
    """Each page that the documents show."""
    memory = app.user(example.USER)
    changed = max(memory.read(kind="fact"), key=lambda fact: fact.version)
    pictures: tuple[tuple[str, str, tuple[int, int], Theme], ...] = (
        ("memory", "", DESK, "light"),
        ("memory-dark", "", DESK, "dark"),
        ("memory-phone", "", PHONE, "light"),
        ("search", "search?q=books+about+databases", DESK, "light"),
        ("timeline", "timeline", DESK, "light"),
        ("record", f"record/{changed.id}", TALL, "light"),
        ("people", "people", TALL, "light"),
        ("dashboard", "operator?days=30", TALL, "light"),
    )
    who = Login(app.keys)
    for name, path, (width, height), theme in pictures:
        context = await browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            timezone_id="UTC",
            locale="en-GB",
        )
        link, _ = who.link(None, operator=True) if path.startswith("operator") else who.link(example.USER)
        visit, _ = who.enter(link)
        await context.add_cookies([{"name": SESSION_COOKIE, "value": visit, "url": base}])
        page = await context.new_page()
        answer = await page.goto(f"{base}/{path}")
        if answer is None or answer.status != 200:
            sys.exit(f"{path or 'the first page'} was not shown: {answer and answer.status}")
        await page.evaluate("document.fonts.ready")
        file = folder / f"{name}.png"
        await page.screenshot(path=file)
        print(f"{file}  {file.stat().st_size // 1024} kB")
        await context.close()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path, help="where the pictures go")
    asyncio.run(main(asked.parse_args().folder))
