"""Templates filled in: what a request asks, and the page that answers it. Everything in a page is escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, RedirectResponse, Response

from recollect.app import Recollect
from recollect.errors import InvalidInputError, NotFoundError
from recollect.identity.login import LoginSession
from recollect.memory.memory import Memory
from recollect.records import Record
from recollect.surfaces.example import is_example

_HERE = Path(__file__).parent

PERSONAL = (
    ("", (("", "Memory"), ("daily", "Daily notes"), ("people", "People"))),
    (
        "Kept",
        (
            ("notes", "Notes"),
            ("observations", "Observations"),
            ("episodes", "Episodes"),
            ("conversations", "Conversations"),
            ("working", "Working memory"),
        ),
    ),
    ("What happened", (("timeline", "Timeline"), ("runs", "Runs"), ("duplicates", "Duplicates"))),
    ("", (("settings", "Settings"),)),
)
"""The pages of a person, in groups."""
OPERATING = (("operator", "Dashboard"), ("operator/users", "Users"), ("operator/queue", "Queue"))

DONE = {
    "saved": "Saved.",
    "changed": "Changed.",
    "pinned": "Pinned: it stays in MEMORY.md whatever happens.",
    "unpinned": "No longer pinned.",
    "forgotten": "Forgotten: out of recall, kept in the journal.",
    "undone": "Undone.",
    "merged": "Merged into one.",
    "paused": "Paused: nothing more is stored until you resume.",
    "incognito": "Incognito: nothing is stored and nothing recalled until you resume.",
    "on": "Memory is on again.",
    "consent": "Your consents are as you chose.",
    "remembered": "Remembered.",
    "noted": "Not sure enough to be durable: it went to today's note.",
    "retried": "It begins anew.",
    "dropped": "Removed from the queue.",
}
"""What a page says after a change; in an address stands only the word."""

_PLACES = "|".join(path for _, rows in PERSONAL for path, _ in rows if path)
_BACK = re.compile(rf"(|{_PLACES}|(record|runs)/[\w-]{{1,80}}|daily/\d{{4}}-\d\d-\d\d)", re.ASCII)
"""The pages that somebody may be sent back to after a change."""


@dataclass(frozen=True)
class WebRequest:
    """A request in a login session."""

    app: Recollect
    login: LoginSession
    base: str
    """Where the console is mounted: "" or such as "/console"."""
    here: str
    """The path below it."""
    csrf_token: str
    """What the forms of the page must carry to count."""
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    upload: Path | None = None

    @property
    def memory(self) -> Memory:
        """The user's own memory; there is no way to another one."""
        if self.login.user is None:
            raise NotFoundError("You are here as an operator, and have no memory of your own.")
        return self.app.user(self.login.user)

    @property
    def known(self) -> Memory:
        """The same, which must exist: what fails creates nothing."""
        if not self.memory.exists:
            raise NotFoundError("Nothing is remembered yet.")
        return self.memory

    @property
    def may_write(self) -> bool:
        """Whether the user may change anything, or only look."""
        return self.login.may_write

    def back(self, default: str) -> str:
        """The page from which the form was sent, if it is one of ours."""
        wanted = self.form.get("back", default)
        return wanted if _BACK.fullmatch(wanted) else default

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number of the address."""
        text = self.query.get(name, "")
        return min(max(int(text), 1), most) if text.isascii() and text.isdigit() and len(text) < 10 else default

    def field(self, name: str) -> str:
        """A field of the form that must be there."""
        if name not in self.form:
            raise InvalidInputError(name, "is missing")
        return self.form[name]


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": _moment_tag,
        "clock": _clock_tag,
        "day": _format_date,
        "percent": _percent,
        "short": _shorten,
    }
    made.globals |= {"marked": highlight, "kind_word": _kind_word}
    return made


def render_page(asked: WebRequest, template: str, *, status: int = 200, **values: Any) -> Response:
    """A page of the console, with its frame."""
    login = asked.login
    last = [] if login.user is None else asked.memory.history(limit=1)
    undo = asked.query.get("undo", "") if asked.may_write else ""
    if not last or undo not in (str(last[-1].seq), last[-1].run):
        undo = ""  # an address cannot offer to take back anything but what was just done
    text = _TEMPLATES.get_template(template).render(
        asked=asked,
        base=asked.base,
        here=asked.here,
        csrf_token=asked.csrf_token if asked.may_write else "",  # without it a page has no forms
        leaving=asked.csrf_token,
        login=login,
        personal=PERSONAL if login.user is not None else (),
        operating=OPERATING if login.operator else (),
        mode="on" if login.user is None else asked.memory.mode,
        last=last[-1] if last else None,
        is_example=login.user is not None and is_example(asked.memory),
        notices=[] if login.user is None else asked.memory.notices(),
        done=DONE.get(asked.query.get("done", ""), ""),
        undo_target=undo,
        **values,
    )
    return HTMLResponse(text, status)


def render_anonymous_page(template: str, *, base: str, csrf_token: str, status: int = 200, **values: Any) -> Response:
    """A page for somebody who is not known."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(base=base, csrf_token=csrf_token, **values), status)


def redirect_with_notice(
    asked: WebRequest, path: str, done: str, undo: int | str | None = None, *, notices: Sequence[str] = (), at: str = ""
) -> Response:
    """After a change: to a page that tells of it, and how to take it back. If there is more to tell, that first.

    ``at`` is the part of the page to show."""
    if notices:
        return render_page(asked, "noticed.html", said=DONE[done], more=notices, path=path)
    told = {"done": done} | ({} if undo is None else {"undo": str(undo)})
    return RedirectResponse(f"{asked.base}/{path}?{urlencode(told)}{f'#{at}' if at else ''}", 303)


def highlight(text: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """A text, escaped, with the words that were found in it marked."""
    parts, here = [], 0
    for begin, end in spans:
        parts += [escape(text[here:begin]), Markup("<mark>"), escape(text[begin:end]), Markup("</mark>")]
        here = end
    return Markup("").join([*parts, escape(text[here:])])


def _time_tag(when: datetime, form: str, shape: str) -> Markup:
    """A time in UTC; where scripts run, it becomes the viewer's own, in the same form."""
    said = f"{when:%-d %b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}" data-form="{}" title="{}">{}</time>').format(
        when.isoformat(timespec="seconds"), form, said, f"{when:{shape}}"
    )


def _moment_tag(when: datetime) -> Markup:
    return _time_tag(when, "moment", "%-d %b %Y, %H:%M")


def _clock_tag(when: datetime) -> Markup:
    return _time_tag(when, "clock", "%H:%M")


def _format_date(when: date) -> str:
    return f"{when:%A, %-d %B %Y}"


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _shorten(text: str, most: int = 140) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _kind_word(record: Record) -> str:
    return {"daily": "daily note", "scratch": "working memory"}.get(record.kind, record.kind)


_TEMPLATES = _environment()
