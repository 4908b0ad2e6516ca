"""What a person decides about their memory as a whole: whether it is on, what it may be used for, and that it ends."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
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
    """All switches."""
    given = request.memory.consents()
    consents = [(name, CONSENT_MEANINGS[name], name in given) for name in CONSENTS]
    return render_page(
        request, "settings.html", consents=consents, counts=request.memory.count(), endings=",".join(ENDINGS)
    )


def mode_view(request: WebRequest) -> Response:
    """On, paused or incognito."""
    wanted = request.field("mode")
    if wanted == "on":
        request.memory.resume()
    elif wanted in ("paused", "incognito"):
        request.memory.pause(incognito=wanted == "incognito")
    else:
        raise InvalidInputError("mode", "must be on, paused or incognito")
    return redirect_with_notice(request, request.back("settings"), wanted)


def consent_view(request: WebRequest) -> Response:
    """What the memory may be used for."""
    for name in CONSENTS:
        request.memory.consent(name, request.form.get(name) == "1")
    return redirect_with_notice(request, "settings", "consent")


def export_view(request: WebRequest) -> Response:
    """The whole memory as one archive."""
    folder = tempfile.mkdtemp(prefix="recollect-")
    try:
        path = request.memory.export(Path(folder) / "memory.zip")
        file, size = path.open("rb"), path.stat().st_size
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # before it is sent: whoever leaves halfway leaves nothing behind
    headers = {"content-disposition": 'attachment; filename="memory.zip"', "content-length": str(size)}
    return StreamingResponse(_read_chunks(file), media_type="application/zip", headers=headers)


async def _read_chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while chunk := await in_thread("", file.read, _CHUNK):
            yield chunk


def import_view(request: WebRequest) -> Response:
    """Take over an archive or another tool's export; first what that would do, if asked."""
    if request.upload is None:
        raise InvalidInputError("file", "must be chosen: an archive made by export, or another tool's export")
    dry_run = request.form.get("dry_run") == "1"
    report = request.memory.import_(request.upload, dry_run=dry_run)
    return render_page(request, "imported.html", report=report, dry_run=dry_run)


# removing


def topic_view(request: WebRequest) -> Response:
    """What speaks of a topic, before anything happens to it."""
    words = request.query.get("topic", "").strip()
    found = request.memory.erase_topic(words, dry_run=True)[0] if words else []
    return render_page(
        request, "topic.html", topic=words, found=found[:_MOST_SHOWN], left=max(len(found) - _MOST_SHOWN, 0)
    )


def remove_view(request: WebRequest) -> Response:
    """Forget or erase what was shown, and nothing else."""
    names = list(dict.fromkeys(request.form.get("ids", "").split()))
    if not names or len(names) > _MOST_SHOWN:
        raise InvalidInputError("ids", f"must name 1 to {_MOST_SHOWN} records")
    if request.form.get("how") == "forget":
        run = new_id("run")
        with request.existing_memory.acting(run=run).batch() as mine:
            for name in names:
                mine.forget(name, reason="forgotten with a topic in the console")
        return redirect_with_notice(request, "timeline", "forgotten", run)
    if request.form.get("sure") != "1":
        raise InvalidInputError("sure", "must be ticked: what is erased does not come back")
    return _receipt_page(request, _erase_records(request, names, request.form.get("topic", "").strip()))


def _erase_records(request: WebRequest, names: list[str], topic: str) -> Receipt:
    """Erase these records; if they are all that speaks of a topic, every other mention of it as well."""
    with request.existing_memory.batch() as mine:
        about = {record.id for record in mine.erase_topic(topic, dry_run=True)[0]} if topic else set()
        if about == set(names):
            receipt = mine.erase_topic(topic)[1]
            assert receipt is not None
            return receipt
        return mine.erase(*names).receipt


def remove_example_view(request: WebRequest) -> Response:
    """Erase the example, if that is what this memory is."""
    if not example.is_example(request.memory):
        raise NotFoundError("This memory is not the example; nothing was removed.")
    return _receipt_page(request, example.remove_example(request.app))


def confirm_erase_view(request: WebRequest) -> Response:
    """What erasing one record means."""
    found = request.memory.why(request.path["id"]).record
    return render_page(request, "erasing.html", record=found)


def clear_view(request: WebRequest) -> Response:
    """Erase everything about the person, and begin again; with ``erase``, the person too."""
    word = request.form.get("word", "").strip().lower()
    if word == "clear":
        return _receipt_page(request, request.memory.clear().receipt)
    if word == "erase" and request.login.user is not None:
        return _receipt_page(request, request.app.erase_user(request.login.user))
    raise InvalidInputError("word", "must be clear or erase; nothing was removed")


def _receipt_page(request: WebRequest, receipt: Receipt) -> Response:
    if request.login.user is not None:
        request.app.keys.forget_answers(request.login.user)
    return render_page(request, "receipt.html", receipt=receipt)
