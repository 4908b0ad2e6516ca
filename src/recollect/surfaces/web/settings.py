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


def settings_view(asked: WebRequest) -> Response:
    """All switches."""
    given = asked.memory.consents()
    consents = [(name, CONSENT_MEANINGS[name], name in given) for name in CONSENTS]
    return render_page(
        asked, "settings.html", consents=consents, counts=asked.memory.count(), endings=",".join(ENDINGS)
    )


def mode_view(asked: WebRequest) -> Response:
    """On, paused or incognito."""
    wanted = asked.field("mode")
    if wanted == "on":
        asked.memory.resume()
    elif wanted in ("paused", "incognito"):
        asked.memory.pause(incognito=wanted == "incognito")
    else:
        raise InvalidInputError("mode", "must be on, paused or incognito")
    return redirect_with_notice(asked, asked.back("settings"), wanted)


def consent_view(asked: WebRequest) -> Response:
    """What the memory may be used for."""
    for name in CONSENTS:
        asked.memory.consent(name, asked.form.get(name) == "1")
    return redirect_with_notice(asked, "settings", "consent")


def export_view(asked: WebRequest) -> Response:
    """The whole memory as one archive."""
    folder = tempfile.mkdtemp(prefix="recollect-")
    try:
        path = asked.memory.export(Path(folder) / "memory.zip")
        file, size = path.open("rb"), path.stat().st_size
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # before it is sent: whoever leaves halfway leaves nothing behind
    headers = {"content-disposition": 'attachment; filename="memory.zip"', "content-length": str(size)}
    return StreamingResponse(_read_chunks(file), media_type="application/zip", headers=headers)


async def _read_chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while chunk := await in_thread("", file.read, _CHUNK):
            yield chunk


def import_view(asked: WebRequest) -> Response:
    """Take over an archive or another tool's export; first what that would do, if asked."""
    if asked.upload is None:
        raise InvalidInputError("file", "must be chosen: an archive made by export, or another tool's export")
    dry_run = asked.form.get("dry_run") == "1"
    report = asked.memory.import_(asked.upload, dry_run=dry_run)
    return render_page(asked, "imported.html", report=report, dry_run=dry_run)


# removing


def topic_view(asked: WebRequest) -> Response:
    """What speaks of a topic, before anything happens to it."""
    words = asked.query.get("topic", "").strip()
    found = asked.memory.erase_topic(words, dry_run=True)[0] if words else []
    return render_page(
        asked, "topic.html", topic=words, found=found[:_MOST_SHOWN], left=max(len(found) - _MOST_SHOWN, 0)
    )


def remove_view(asked: WebRequest) -> Response:
    """Forget or erase what was shown, and nothing else."""
    names = list(dict.fromkeys(asked.form.get("ids", "").split()))
    if not names or len(names) > _MOST_SHOWN:
        raise InvalidInputError("ids", f"must name 1 to {_MOST_SHOWN} records")
    if asked.form.get("how") == "forget":
        run = new_id("run")
        with asked.known.acting(run=run).batch() as mine:
            for name in names:
                mine.forget(name, reason="forgotten with a topic in the console")
        return redirect_with_notice(asked, "timeline", "forgotten", run)
    if asked.form.get("sure") != "1":
        raise InvalidInputError("sure", "must be ticked: what is erased does not come back")
    return _receipt_page(asked, _erase_records(asked, names, asked.form.get("topic", "").strip()))


def _erase_records(asked: WebRequest, names: list[str], topic: str) -> Receipt:
    """Erase these records; if they are all that speaks of a topic, every other mention of it as well."""
    with asked.known.batch() as mine:
        about = {record.id for record in mine.erase_topic(topic, dry_run=True)[0]} if topic else set()
        if about == set(names):
            receipt = mine.erase_topic(topic)[1]
            assert receipt is not None
            return receipt
        return mine.erase(*names).receipt


def remove_example_view(asked: WebRequest) -> Response:
    """Erase the example, if that is what this memory is."""
    if not example.is_example(asked.memory):
        raise NotFoundError("This memory is not the example; nothing was removed.")
    return _receipt_page(asked, example.remove_example(asked.app))


def confirm_erase_view(asked: WebRequest) -> Response:
    """What erasing one record means."""
    found = asked.memory.why(asked.path["id"]).record
    return render_page(asked, "erasing.html", record=found)


def clear_view(asked: WebRequest) -> Response:
    """Erase everything about the person, and begin again; with ``erase``, the person too."""
    word = asked.form.get("word", "").strip().lower()
    if word == "clear":
        return _receipt_page(asked, asked.memory.clear().receipt)
    if word == "erase" and asked.login.user is not None:
        return _receipt_page(asked, asked.app.erase_user(asked.login.user))
    raise InvalidInputError("word", "must be clear or erase; nothing was removed")


def _receipt_page(asked: WebRequest, receipt: Receipt) -> Response:
    if asked.login.user is not None:
        asked.app.keys.forget_answers(asked.login.user)
    return render_page(asked, "receipt.html", receipt=receipt)
