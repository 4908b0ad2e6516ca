"""Requests and the rendering of templates. Everything in a page is escaped."""

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
        "Stored",
        (
            ("notes", "Notes"),
            ("observations", "Observations"),
            ("episodes", "Episodes"),
            ("conversations", "Conversations"),
            ("working", "Working memory"),
        ),
    ),
    ("History", (("timeline", "Timeline"), ("runs", "Runs"), ("duplicates", "Duplicates"))),
    ("", (("settings", "Settings"),)),
)
"""The pages of a person, in groups."""
OPERATING = (("operator", "Dashboard"), ("operator/users", "Users"), ("operator/queue", "Queue"))

DONE = {
    "saved": "Saved.",
    "changed": "Changed.",
    "pinned": "Pinned: it always stays in MEMORY.md.",
    "unpinned": "No longer pinned.",
    "forgotten": "Forgotten. You can undo this.",
    "undone": "Undone.",
    "merged": "Merged into one.",
    "paused": "Paused: nothing is stored until you resume.",
    "incognito": "Incognito: nothing is stored or used until you resume.",
    "on": "Memory is on again.",
    "off": "Memory is turned off for everyone. The operator can turn it on.",
    "consent": "Your consents are saved.",
    "remembered": "Remembered.",
    "noted": "Not certain enough for MEMORY.md: it was added to today's note.",
    "retried": "Queued again.",
    "dropped": "Removed from the queue.",
}
"""The messages after a change, by the word in the address."""

_PLACES = "|".join(path for _, rows in PERSONAL for path, _ in rows if path)
_BACK = re.compile(rf"(|{_PLACES}|(record|runs)/[\w-]{{1,80}}|daily/\d{{4}}-\d\d-\d\d)", re.ASCII)
"""The pages to which a form may redirect after a change."""


@dataclass(frozen=True)
class WebRequest:
    """A request in a login session."""

    app: Recollect
    login: LoginSession
    base: str
    """The path where the console is mounted, such as "/console"."""
    here: str
    """The path below it."""
    csrf_token: str
    """The CSRF token for the forms of the page."""
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    upload: Path | None = None

    @property
    def memory(self) -> Memory:
        """The user's own memory; no other is accessible."""
        if self.login.user is None:
            raise NotFoundError("You are logged in as an operator and have no memory of your own.")
        return self.app.user(self.login.user)

    @property
    def existing_memory(self) -> Memory:
        """The visitor's memory, which must exist, so that failing requests create nothing."""
        if not self.memory.exists:
            raise NotFoundError("Nothing is remembered yet.")
        return self.memory

    @property
    def may_write(self) -> bool:
        """True if the user may change anything."""
        return self.login.may_write

    def back(self, default: str) -> str:
        """Return the page from which the form was sent, if it is one of ours."""
        wanted = self.form.get("back", default)
        return wanted if _BACK.fullmatch(wanted) else default

    def number(self, name: str, default: int, most: int) -> int:
        """Return an integer from the query."""
        text = self.query.get(name, "")
        return min(max(int(text), 1), most) if text.isascii() and text.isdigit() and len(text) < 10 else default

    def field(self, name: str) -> str:
        """Return a required field of the form."""
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


def render_page(request: WebRequest, template: str, *, status: int = 200, **values: Any) -> Response:
    """Return a page of the console with its frame."""
    login = request.login
    last = [] if login.user is None else request.memory.history(limit=1)
    undo = request.query.get("undo", "") if request.may_write else ""
    if not last or undo not in (str(last[-1].seq), last[-1].run):
        undo = ""  # a crafted address must not offer to undo anything but the last change
    text = _TEMPLATES.get_template(template).render(
        request=request,
        base=request.base,
        here=request.here,
        csrf_token=request.csrf_token if request.may_write else "",  # without it, the page shows no forms
        leaving=request.csrf_token,
        login=login,
        personal=PERSONAL if login.user is not None else (),
        operating=OPERATING if login.operator else (),
        mode="on" if login.user is None else request.memory.mode,
        is_off=login.user is not None and not request.memory.config.enabled,
        last=last[-1] if last else None,
        is_example=login.user is not None and is_example(request.memory),
        notices=[] if login.user is None else request.memory.notices(),
        done=DONE.get(request.query.get("done", ""), ""),
        undo_target=undo,
        **values,
    )
    return HTMLResponse(text, status)


def render_anonymous_page(template: str, *, base: str, csrf_token: str, status: int = 200, **values: Any) -> Response:
    """Return a page for a visitor who is not logged in."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(base=base, csrf_token=csrf_token, **values), status)


def redirect_with_notice(
    request: WebRequest,
    path: str,
    done: str,
    undo: int | str | None = None,
    *,
    notices: Sequence[str] = (),
    at: str = "",
) -> Response:
    """Redirect after a change to a page that confirms it and offers undo. Notices are shown first.

    ``at`` is the part of the page to show."""
    if notices:
        return render_page(request, "noticed.html", said=DONE[done], more=notices, path=path)
    told = {"done": done} | ({} if undo is None else {"undo": str(undo)})
    return RedirectResponse(f"{request.base}/{path}?{urlencode(told)}{f'#{at}' if at else ''}", 303)


def highlight(text: str, spans: Sequence[tuple[int, int]]) -> Markup:
    """Return a text, escaped, with the matched words highlighted."""
    parts, here = [], 0
    for begin, end in spans:
        parts += [escape(text[here:begin]), Markup("<mark>"), escape(text[begin:end]), Markup("</mark>")]
        here = end
    return Markup("").join([*parts, escape(text[here:])])


def _time_tag(when: datetime, form: str, shape: str) -> Markup:
    """Return a time in UTC, which scripts convert to the viewer's time zone."""
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
