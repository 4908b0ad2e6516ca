"""What a person changes: a line, the whole file, a pin; forgetting, merging and taking back. Each is shown first where
it could surprise, and never overwrites what somebody else changed meanwhile."""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.responses import Response

from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.write import refusal_of_secret
from recollect.policy.secrets import find_secrets, mask
from recollect.records import CATEGORIES, Edited, Merged, Outcome, Record, Refused
from recollect.surfaces.web.diffs import lines_changed, words_changed
from recollect.surfaces.web.rendering import WebRequest, redirect_with_notice, render_page
from recollect.surfaces.web.views import requested_day

_MEANWHILE = "It was changed meanwhile, to what is shown first. Save only if you still want to."


class RefusedEditError(InvalidInputError):
    """The policy said no, and why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("memory", outcome.message)
        self.args = (outcome.message,)


def editor_view(asked: WebRequest) -> Response:
    """A file, to be edited as a whole."""
    day = requested_day(asked)
    text = _file(asked)
    return render_page(
        asked, "editor.html", day=day, text=text, expect=page_digest(text), problem="", rows=None, compared=""
    )


def edit_view(asked: WebRequest) -> Response:
    """Show what an edit would change; then, if the file is still what it was made from, save it."""
    day, current = requested_day(asked), _file(asked)
    text, expect = _with_newlines_of(current, asked.field("text")), asked.field("expect")
    rows = lines_changed(current, text)
    values: dict[str, Any] = {"day": day, "text": text, "rows": rows, "problem": "", "expect": expect}
    values["compared"] = page_digest(_unix_newlines(text))
    if expect != page_digest(current):
        values["problem"] = "The file was changed meanwhile. Below is what your text would change now; nothing is lost."
        return render_page(
            asked, "editor.html", status=_stale_status(asked), **values | {"expect": page_digest(current)}
        )
    if not _is_compared(asked, text):
        return render_page(asked, "editor.html", **values)
    outcome = asked.memory.edit(text, day=day, expect=current)
    if isinstance(outcome, Refused):
        latest = _file(asked)
        if outcome.reason == "secret":
            text = _without_secrets(text, latest)
            values |= {"text": text, "compared": page_digest(_unix_newlines(text))}
        values |= {"problem": outcome.message, "rows": lines_changed(latest, text), "expect": page_digest(latest)}
        return render_page(asked, "editor.html", status=409 if outcome.reason == "changed" else 422, **values)
    run = outcome.run if isinstance(outcome, Edited) else None
    return redirect_with_notice(
        asked, "" if day is None else f"daily/{day.isoformat()}", "saved", run, notices=outcome.notices
    )


def _is_compared(asked: WebRequest, text: str) -> bool:
    """Whether this is to be saved, and is what the person has seen compared."""
    return asked.form.get("step") == "save" and asked.form.get("compared") == page_digest(_unix_newlines(text))


def _stale_status(asked: WebRequest) -> int:
    """The status of a page that tells of somebody else's change: only who wanted to save was refused."""
    return 409 if asked.form.get("step") == "save" else 200


def _file(asked: WebRequest) -> str:
    day = requested_day(asked)
    return asked.memory.show() if day is None else asked.memory.daily(day)


def page_digest(text: str) -> str:
    """What tells one text from another."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _with_newlines_of(current: str, text: str) -> str:
    """A text as a browser sends it, with the line endings of the file."""
    plain = _unix_newlines(text)
    return plain.replace("\n", "\r\n") if "\r\n" in current else plain


def _without_secrets(text: str, current: str) -> str:
    """A refused text as it may be shown again: secrets masked in what is new; the rest is in the file already."""
    known = set(current.splitlines())
    lines = text.splitlines(keepends=True)
    masked = "".join(line if line.rstrip("\r\n") in known else mask(line) for line in lines)
    left = "".join(line for line in masked.splitlines(keepends=True) if line.rstrip("\r\n") not in known)
    return mask(masked) if find_secrets(left) else masked  # one over several lines, such as a block with a key


def _unix_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def remember_view(asked: WebRequest) -> Response:
    """A fact that the person adds."""
    category = asked.form.get("category") or None
    if category is not None and category not in CATEGORIES:
        raise InvalidInputError("category", f"must be one of {', '.join(CATEGORIES)}")
    key = asked.form.get("key", "").strip() or None
    outcome = asked.memory.remember(_unix_newlines(asked.field("content")).strip(), key=key, category=category)
    return _redirect_after(asked, "", "remembered", outcome)


def change_view(asked: WebRequest) -> Response:
    """Another value for one record: shown first, then saved if nobody else changed it meanwhile."""
    content, seen = _unix_newlines(asked.field("content")).strip(), asked.field("seq")
    reason = "correction" if asked.form.get("reason") == "correction" else "update"
    record, problem = _require_exact(asked, asked.memory.get(asked.path["id"])), ""
    if refused := refusal_of_secret(content):  # before it is compared, and so before it is shown
        content, problem = mask(content), refused.message
    elif _is_compared(asked, content):
        with asked.memory.batch() as mine:  # so that nobody is in between looking and writing
            record = mine.get(record.id)
            outcome = mine.update(record.id, content, reason=reason) if str(record.seq) == seen else None
        if outcome is not None and outcome.done:
            return _redirect_after(asked, f"record/{record.id}", "changed", outcome)
        problem = "" if outcome is None else outcome.message
    is_stale = str(record.seq) != seen
    before, after = words_changed(record.content, content)
    status = 422 if problem else _stale_status(asked) if is_stale else 200
    problem = problem or (_MEANWHILE if is_stale else "")
    values = {"record": record, "content": content, "reason": reason, "before": before, "after": after}
    return render_page(asked, "change.html", status=status, problem=problem, compared=page_digest(content), **values)


def pin_view(asked: WebRequest) -> Response:
    """Keep a fact in MEMORY.md, or no longer."""
    wanted = asked.form.get("pinned") == "1"
    name = asked.path["id"]
    return _redirect_after(asked, f"record/{name}", "pinned" if wanted else "unpinned", asked.known.pin(name, wanted))


def forget_view(asked: WebRequest) -> Response:
    """Out of recall."""
    name = asked.path["id"]
    reason = asked.form.get("reason", "").strip() or None
    return _redirect_after(asked, f"record/{name}", "forgotten", asked.known.forget(name, reason=reason))


def undo_view(asked: WebRequest) -> Response:
    """Take back an entry of the journal or a whole run."""
    target = asked.field("target")
    if not target or (target.isdigit() and not (target.isascii() and len(target) <= 15)):
        raise InvalidInputError("target", "must be the number of an entry or the id of a run")
    undone = asked.known.undo(target)
    return redirect_with_notice(asked, asked.back("timeline"), "undone", _last_target(asked), notices=undone.notices)


def _last_target(asked: WebRequest) -> str | int | None:
    last = asked.memory.history(limit=1)
    return (last[-1].run or last[-1].seq) if last else None


def merge_view(asked: WebRequest) -> Response:
    """Two records become one."""
    one, other = asked.field("one"), asked.field("other")
    outcome = asked.known.merge(
        [one, other], _unix_newlines(asked.field("content")).strip(), reason="merged in the console"
    )
    if isinstance(outcome, Merged):
        return redirect_with_notice(asked, "duplicates", "merged", outcome.run, notices=outcome.notices)
    raise RefusedEditError(outcome)


def _require_exact(asked: WebRequest, record: Record) -> Record:
    """A record that was asked for by its id, and not by something that fits by chance."""
    if record.id != asked.path["id"]:
        raise NotFoundError("There is no such record.")
    return record


def _redirect_after(asked: WebRequest, path: str, done: str, outcome: Outcome) -> Response:
    if not outcome.done:
        raise RefusedEditError(outcome)
    record: Record | None = getattr(outcome, "record", None)
    if done == "remembered" and record is not None and record.kind == "daily":
        path, done = f"record/{record.id}", "noted"
    seq = None if record is None else record.seq
    path = asked.back(path)
    at = record.id if record is not None and record.id not in path else ""
    return redirect_with_notice(asked, path, done, seq, notices=outcome.notices, at=at)
