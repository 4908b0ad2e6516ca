"""A window of somebody's browser: it opens pages, presses what has a name, and keeps what a browser complained about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from recollect import Memory, Recollect
from recollect.identity.login import Login
from recollect.surfaces.web.console import SESSION_COOKIE

PATIENCE = 30_000
_NOWHERE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@contextmanager
def launched() -> Iterator[Browser]:
    """Debian's browser, which reaches this machine only."""
    where = shutil.which("chromium")
    if where is None:
        pytest.fail("There is no chromium. `make browser` installs it, as root or with sudo.", pytrace=False)
    with sync_playwright() as driver:
        # with the cache of whole pages that browsers have, which a driver would switch off
        browser = driver.chromium.launch(
            executable_path=where,
            args=["--no-sandbox", _NOWHERE],
            ignore_default_args=["--disable-back-forward-cache"],
        )
        yield browser
        browser.close()


class Window:
    """One page of a browser that shares nothing with another window. Nothing in it may complain."""

    def __init__(self, context: BrowserContext, base: str, *, has_scripts: bool = True) -> None:
        self.context = context
        self.has_scripts = has_scripts
        self.base = base
        self.page = context.new_page()
        self.asked: list[str] = []
        """The addresses of all requests."""
        self._heard: list[tuple[str, str]] = []
        self._documents: set[str] = set()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self._heard.append((f"script: {error}", "")))
        self.page.on("dialog", self._dialog)
        self.page.on("response", self._response)
        self.page.on("request", self._request)

    # going and doing

    def open(self, path: str = "", status: int = 200) -> Page:
        """Go to a page of the console."""
        answer = self.page.goto(f"{self.base}/{path}")
        assert answer is not None and answer.status == status, (path, answer and answer.status)
        return self.page

    def press(self, name: str) -> None:
        """Press the button of that name, the first if there are several."""
        self.main.get_by_role("button", name=name, exact=True).first.click()

    def follow(self, name: str) -> None:
        """Follow the link with that text, the first if there are several."""
        self.main.get_by_role("link", name=name).first.click()

    def unfold(self, name: str) -> None:
        """Open what is folded under that line, unless it is open."""
        summary = self.main.locator("summary", has_text=name)
        if not summary.evaluate("one => one.parentElement.open"):
            summary.click()

    def save(self) -> None:
        """Save what was typed. What would change is shown first; with scripts, without being asked to."""
        if not self.has_scripts:
            self.press("Compare")
        self.press("Save")

    def mark_time(self) -> None:
        """From here on `is_same_page` tells whether the page was ever loaded again."""
        self.page.evaluate("window.unmoved = true")

    # seeing

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def is_same_page(self) -> bool:
        return bool(self.page.evaluate("window.unmoved === true"))

    def sees(self, text: str) -> None:
        """Wait until that is shown."""
        expect(self.main.get_by_text(text).first).to_be_visible()

    def misses(self, text: str) -> None:
        """Wait until that is shown no more."""
        expect(self.main.get_by_text(text)).to_have_count(0)

    def places(self) -> list[str]:
        """The pages that the navigation leads to."""
        self.open()
        links = self.page.get_by_role("navigation", name="Pages", exact=True).get_by_role("link").all()
        return [(link.get_attribute("href") or "").removeprefix(urlsplit(self.base).path).strip("/") for link in links]

    def overflow(self) -> list[str]:
        """What makes the page wider than the window, if something does."""
        found: list[str] = self.page.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("body *")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 120))"""
        )
        return found

    # what went wrong

    @property
    def complaints(self) -> list[str]:
        """What the browser reported, and every request to somewhere else."""
        here = urlsplit(self.base).netloc
        away = [f"asked {address}" for address in self.asked if urlsplit(address).netloc != here]
        # that a page is an error page is not wrong; that a part of it is missing would be
        return [*away, *(text for text, where in self._heard if where not in self._documents)]

    def forgive(self) -> None:
        """Forget what was complained about so far."""
        self._heard.clear()
        self.asked.clear()

    def _console(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            is_missing = said.text.startswith("Failed to load resource")
            self._heard.append((f"console: {said.text}", said.location["url"] if is_missing else ""))

    def _dialog(self, dialog: Dialog) -> None:
        self._heard.append((f"dialog: {dialog.message}", ""))
        dialog.dismiss()

    def _response(self, answer: Response) -> None:
        if answer.request.is_navigation_request():
            self._documents.add(answer.url)

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob", "about"):
            self.asked.append(request.url)


class House:
    """A server with the memories of many, and whoever looks at theirs."""

    def __init__(self, browser: Browser, app: Recollect, url: str) -> None:
        self.browser = browser
        self.app = app
        self.url = url
        self.base = f"{url}/console"
        self.login = Login(app.keys)
        self.windows: list[Window] = []

    def window(
        self, user: str | None = None, *, operator: bool = False, wide: int = 1280, scripts: bool = True
    ) -> Window:
        """A new browser; of a user or an operator who is in, or of a stranger."""
        context = self.browser.new_context(viewport={"width": wide, "height": 900}, java_script_enabled=scripts)
        context.set_default_timeout(PATIENCE)
        if user is not None or operator:
            visit, _ = self.login.enter(self.login.link(user, operator=operator)[0])
            context.add_cookies(
                [{"name": SESSION_COOKIE, "value": visit, "url": self.base, "httpOnly": True, "sameSite": "Strict"}]
            )
        window = Window(context, self.base, has_scripts=scripts)
        self.windows.append(window)
        return window

    def link(self, user: str) -> str:
        """A one-time link, below the console."""
        return f"login?code={quote(self.login.link(user)[0])}"

    def file(self, memory: Memory) -> str:
        """MEMORY.md of somebody as it is on the disk."""
        return (self.app.config.memory_dir / memory.user_id / "MEMORY.md").read_text(encoding="utf-8")

    def close(self) -> list[str]:
        """Close all windows, and tell what they complained about."""
        found = [complaint for window in self.windows for complaint in window.complaints]
        while self.windows:
            self.windows.pop().context.close()
        return found


def a_life(memory: Memory) -> None:
    """Something on every page."""
    memory.remember("Staff engineer at Northwind", key="role", category="work_context")
    memory.remember("Prefers trains over flying within Europe", category="preference")
    memory.remember("Prefers trains to flights inside Europe", category="preference")
    memory.remember("Allergic to hazelnuts", category="key_fact", pinned=True, confidence=0.9)
    memory.remember("Anna", key="wife", type="relationship")
    memory.jot("Asked about logical replication")
    memory.note("Passport, adapter, shoes", title="Packing list", tags=["travel"])
    memory.observe("Large transactions cause lag", "finding")
    memory.episode("Birthday", "Looked for a cabin near the lake", participants=["Anna", "Tomás"])
    memory.say("I moved to Hamburg last week", session="s1")
    memory.update("role", "Principal engineer at Northwind", note="promoted")
    memory.edit(memory.show() + "- Drinks rooibos\n")


def records_of(memory: Memory, *kinds: str) -> list[str]:
    """Pages of a memory that the navigation does not lead to: the latest record of some kinds, and what is asked before
    a change."""
    latest = {record.kind: record.id for record in memory.read()}
    return [
        "edit", f"daily/{memory.clock().date()}/edit", "search?q=train&conversation=1", "settings/topic?topic=trains",
        f"record/{latest['fact']}/erase", *(f"record/{latest[kind]}" for kind in kinds or ("fact", "episode", "message")),
    ]  # fmt: skip
