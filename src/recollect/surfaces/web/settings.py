"""The settings pages: mode, consents, export and import, forgetting topics, erasing everything."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from starlette.responses import Response, StreamingResponse

from recollect.errors import InvalidInputError, NotFoundError
from recollect.memory.async_memory import in_thread
from recollect.records import CONSENT_MEANINGS, CONSENTS, Receipt, new_id
from recollect.surfaces import example
from recollect.surfaces.web.rendering import WebRequest, redirect_with_notice, render_page

ENDINGS = (".zip", ".json", ".jsonl", ".md", ".txt")
_MOST_SHOWN = 500
_CHUNK = 1 << 16


def settings_view(request: WebRequest) -> Response:
    """Show the settings."""
    given = request.memory.consents()
    consents = [(name, CONSENT_MEANINGS[name], name in given) for name in CONSENTS]
    return render_page(
        request, "settings.html", consents=consents, counts=request.memory.count(), endings=",".join(ENDINGS)
    )


def mode_view(request: WebRequest) -> Response:
    """Set the mode: on, paused or incognito."""
    wanted = request.field("mode")
    if wanted == "on":
        request.memory.resume()
        wanted = "on" if request.memory.config.enabled else "off"
    elif wanted in ("paused", "incognito"):
        request.memory.pause(incognito=wanted == "incognito")
    else:
        raise InvalidInputError("mode", "must be on, paused or incognito")
    return redirect_with_notice(request, request.back("settings"), wanted)


def consent_view(request: WebRequest) -> Response:
    """Save the consents."""
    for name in CONSENTS:
        request.memory.consent(name, request.form.get(name) == "1")
    return redirect_with_notice(request, "settings", "consent")


def export_view(request: WebRequest) -> Response:
    """Send the whole memory as one archive."""
    folder = tempfile.mkdtemp(prefix="recollect-")
    try:
        path = request.memory.export(Path(folder) / "memory.zip")
        file, size = path.open("rb"), path.stat().st_size
    finally:
        shutil.rmtree(
            folder, ignore_errors=True
        )  # before it is sent, so that an aborted download leaves nothing behind
    headers = {"content-disposition": 'attachment; filename="memory.zip"', "content-length": str(size)}
    return StreamingResponse(_read_chunks(file), media_type="application/zip", headers=headers)


async def _read_chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while chunk := await in_thread("", file.read, _CHUNK):
            yield chunk


def import_view(request: WebRequest) -> Response:
    """Import an archive or another tool's export; with ``dry_run``, show what that would do."""
    if request.upload is None:
        raise InvalidInputError("file", "is missing; choose an archive made by export, or another tool's export")
    dry_run = request.form.get("dry_run") == "1"
    report = request.memory.import_(request.upload, dry_run=dry_run)
    return render_page(request, "imported.html", report=report, dry_run=dry_run)


# removing


def topic_view(request: WebRequest) -> Response:
    """List what mentions a topic."""
    words = request.query.get("topic", "").strip()
    found = request.memory.erase_topic(words, dry_run=True)[0] if words else []
    return render_page(
        request, "topic.html", topic=words, found=found[:_MOST_SHOWN], left=max(len(found) - _MOST_SHOWN, 0)
    )


def remove_view(request: WebRequest) -> Response:
    """Forget or erase exactly the records that were shown."""
    names = list(dict.fromkeys(request.form.get("ids", "").split()))
    if not names or len(names) > _MOST_SHOWN:
        raise InvalidInputError("ids", f"must name 1 to {_MOST_SHOWN} records")
    if request.form.get("how") == "forget":
        run = new_id("run")
        # of a topic, some may be forgotten already, or only be in the copy of a joined memory
        may_lack = (NotFoundError,) if request.form.get("topic") else ()
        with request.existing_memory.acting(run=run).batch() as mine:
            for name in names:
                with suppress(*may_lack):
                    mine.forget(name, reason="forgotten with a topic in the console")
        return redirect_with_notice(request, "timeline", "forgotten", run)
    if request.form.get("sure") != "1":
        raise InvalidInputError("sure", "must be ticked, because erased records cannot be restored")
    return _receipt_page(request, _erase_records(request, names, request.form.get("topic", "").strip()))


def _erase_records(request: WebRequest, names: list[str], topic: str) -> Receipt:
    """Erase these records. If nothing else mentions the topic, also erase its other traces."""
    with request.existing_memory.batch() as mine:
        about = {record.id for record in mine.erase_topic(topic, dry_run=True)[0]} if topic else set()
        if about == set(names):
            receipt = mine.erase_topic(topic)[1]
            assert receipt is not None
            return receipt
        return mine.erase(*names).receipt


def remove_example_view(request: WebRequest) -> Response:
    """Erase the example memory."""
    if not example.is_example(request.memory):
        raise NotFoundError("This memory is not the example; nothing was removed.")
    return _receipt_page(request, example.remove_example(request.app))


def confirm_erase_view(request: WebRequest) -> Response:
    """Ask for confirmation before a record is erased."""
    found = request.memory.why(request.path["id"]).record
    return render_page(request, "erasing.html", record=found)


def clear_view(request: WebRequest) -> Response:
    """Erase everything about the person; with the word ``erase``, also the user."""
    word = request.form.get("word", "").strip().lower()
    if word == "clear":
        return _receipt_page(request, request.memory.clear().receipt)
    if word == "erase" and request.login.user is not None:
        return _receipt_page(request, request.app.erase_user(request.login.user))
    raise InvalidInputError("word", "must be clear or erase; nothing was erased")


def _receipt_page(request: WebRequest, receipt: Receipt) -> Response:
    if request.login.user is not None:
        request.app.keys.forget_answers(request.login.user)
    return render_page(request, "receipt.html", receipt=receipt)
