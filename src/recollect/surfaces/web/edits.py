"""The pages that change a memory: edit, pin, forget, merge, undo. Edits show a preview first, and no change overwrites
one that was made in the meantime."""

from __future__ import annotations

import hashlib
from typing import Any

from starlette.responses import Response

from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.refusals import refusal_of_secret
from recollect.policy.secrets import find_secrets, mask
from recollect.records import CATEGORIES, Edited, Merged, Outcome, Record, Refused
from recollect.surfaces.web.diffs import lines_changed, words_changed
from recollect.surfaces.web.rendering import WebRequest, redirect_with_notice, render_page
from recollect.surfaces.web.views import requested_day

_MEANWHILE = "It was changed in the meantime, to the first text below. Save only if you still want to."


class RefusedEditError(InvalidInputError):
    """The policy refused the change."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("memory", outcome.message)
        self.args = (outcome.message,)


def editor_view(request: WebRequest) -> Response:
    """Show the editor for a whole file."""
    day = requested_day(request)
    text = _file(request)
    return render_page(
        request, "editor.html", day=day, text=text, expect=page_digest(text), problem="", rows=None, compared=""
    )


def edit_view(request: WebRequest) -> Response:
    """Show what an edit would change, or save it if the file has not changed since."""
    day, current = requested_day(request), _file(request)
    text, expect = _with_newlines_of(current, request.field("text")), request.field("expect")
    rows = lines_changed(current, text)
    values: dict[str, Any] = {"day": day, "text": text, "rows": rows, "problem": "", "expect": expect}
    values["compared"] = page_digest(_unix_newlines(text))
    if expect != page_digest(current):
        values["problem"] = (
            "The file was changed in the meantime. Below is what your text would change now; nothing is lost."
        )
        return render_page(
            request, "editor.html", status=_stale_status(request), **values | {"expect": page_digest(current)}
        )
    if not _is_compared(request, text):
        return render_page(request, "editor.html", **values)
    outcome = request.memory.edit(text, day=day, expect=current)
    if isinstance(outcome, Refused):
        latest = _file(request)
        if outcome.reason == "secret":
            text = _without_secrets(text, latest)
            values |= {"text": text, "compared": page_digest(_unix_newlines(text))}
        values |= {"problem": outcome.message, "rows": lines_changed(latest, text), "expect": page_digest(latest)}
        return render_page(request, "editor.html", status=409 if outcome.reason == "changed" else 422, **values)
    run = outcome.run if isinstance(outcome, Edited) else None
    return redirect_with_notice(
        request, "" if day is None else f"daily/{day.isoformat()}", "saved", run, notices=outcome.notices
    )


def _is_compared(request: WebRequest, text: str) -> bool:
    """Return True if the form asks to save exactly the text that was compared."""
    return request.form.get("step") == "save" and request.form.get("compared") == page_digest(_unix_newlines(text))


def _stale_status(request: WebRequest) -> int:
    """Return the status of a page about a concurrent change: a conflict only if the form asked to save."""
    return 409 if request.form.get("step") == "save" else 200


def _file(request: WebRequest) -> str:
    day = requested_day(request)
    return request.memory.show() if day is None else request.memory.daily(day)


def page_digest(text: str) -> str:
    """Return a hash of a text."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _with_newlines_of(current: str, text: str) -> str:
    """Return a text from a browser with the line endings of the file."""
    plain = _unix_newlines(text)
    return plain.replace("\n", "\r\n") if "\r\n" in current else plain


def _without_secrets(text: str, current: str) -> str:
    """Return a refused text with secrets in its new parts masked; the rest is already in the file."""
    known = set(current.splitlines())
    lines = text.splitlines(keepends=True)
    masked = "".join(line if line.rstrip("\r\n") in known else mask(line) for line in lines)
    left = "".join(line for line in masked.splitlines(keepends=True) if line.rstrip("\r\n") not in known)
    return mask(masked) if find_secrets(left) else masked  # a secret over several lines, such as a private key


def _unix_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def remember_view(request: WebRequest) -> Response:
    """Store a fact that the person entered."""
    category = request.form.get("category") or None
    if category is not None and category not in CATEGORIES:
        raise InvalidInputError("category", f"must be one of {', '.join(CATEGORIES)}")
    key = request.form.get("key", "").strip() or None
    outcome = request.memory.remember(_unix_newlines(request.field("content")).strip(), key=key, category=category)
    return _redirect_after(request, "", "remembered", outcome)


def change_view(request: WebRequest) -> Response:
    """Preview a new value of a record, or save it if the record has not changed since."""
    content, seen = _unix_newlines(request.field("content")).strip(), request.field("seq")
    reason = "correction" if request.form.get("reason") == "correction" else "update"
    record, problem = _require_exact(request, request.memory.get(request.path["id"])), ""
    if refused := refusal_of_secret(content):  # before it is compared and shown
        content, problem = mask(content), refused.message
    elif _is_compared(request, content):
        with request.memory.batch() as mine:  # so that nothing happens between the check and the write
            record = mine.get(record.id)
            outcome = mine.update(record.id, content, reason=reason) if str(record.seq) == seen else None
        if outcome is not None and outcome.done:
            return _redirect_after(request, f"record/{record.id}", "changed", outcome)
        problem = "" if outcome is None else outcome.message
    is_stale = str(record.seq) != seen
    before, after = words_changed(record.content, content)
    status = 422 if problem else _stale_status(request) if is_stale else 200
    problem = problem or (_MEANWHILE if is_stale else "")
    values = {"record": record, "content": content, "reason": reason, "before": before, "after": after}
    return render_page(request, "change.html", status=status, problem=problem, compared=page_digest(content), **values)


def pin_view(request: WebRequest) -> Response:
    """Pin or unpin a fact."""
    wanted = request.form.get("pinned") == "1"
    name = request.path["id"]
    return _redirect_after(
        request, f"record/{name}", "pinned" if wanted else "unpinned", request.existing_memory.pin(name, wanted)
    )


def forget_view(request: WebRequest) -> Response:
    """Forget a record."""
    name = request.path["id"]
    reason = request.form.get("reason", "").strip() or None
    return _redirect_after(request, f"record/{name}", "forgotten", request.existing_memory.forget(name, reason=reason))


def undo_view(request: WebRequest) -> Response:
    """Undo a journal entry or a whole run."""
    target = request.field("target")
    if not target or (target.isdigit() and not (target.isascii() and len(target) <= 15)):
        raise InvalidInputError("target", "must be the number of an entry or the id of a run")
    undone = request.existing_memory.undo(target)
    return redirect_with_notice(
        request, request.back("timeline"), "undone", _last_target(request), notices=undone.notices
    )


def _last_target(request: WebRequest) -> str | int | None:
    last = request.memory.history(limit=1)
    return (last[-1].run or last[-1].seq) if last else None


def merge_view(request: WebRequest) -> Response:
    """Merge two records into one."""
    one, other = request.field("one"), request.field("other")
    outcome = request.existing_memory.merge(
        [one, other], _unix_newlines(request.field("content")).strip(), reason="merged in the console"
    )
    if isinstance(outcome, Merged):
        return redirect_with_notice(request, "duplicates", "merged", outcome.run, notices=outcome.notices)
    raise RefusedEditError(outcome)


def _require_exact(request: WebRequest, record: Record) -> Record:
    """Return the record if its full id was given, not only a matching key or ending."""
    if record.id != request.path["id"]:
        raise NotFoundError("This record does not exist.")
    return record


def _redirect_after(request: WebRequest, path: str, done: str, outcome: Outcome) -> Response:
    if not outcome.done:
        raise RefusedEditError(outcome)
    record: Record | None = getattr(outcome, "record", None)
    if done == "remembered" and record is not None and record.kind == "daily":
        path, done = f"record/{record.id}", "noted"
    seq = None if record is None else record.seq
    path = request.back(path)
    at = record.id if record is not None and record.id not in path else ""
    return redirect_with_notice(request, path, done, seq, notices=outcome.notices, at=at)
