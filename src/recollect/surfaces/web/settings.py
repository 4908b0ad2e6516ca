"""The settings pages: mode, consents, export and import, forgetting topics, erasing everything."""

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
from recollect.surfaces.web.rendering import Asked, page, then

ENDINGS = (".zip", ".json", ".jsonl", ".md", ".txt")
_MOST_SHOWN = 500
_CHUNK = 1 << 16


def settings(asked: Asked) -> Response:
    """Show the settings."""
    given = asked.memory.consents()
    consents = [(name, CONSENT_MEANINGS[name], name in given) for name in CONSENTS]
    return page(asked, "settings.html", consents=consents, counts=asked.memory.count(), endings=",".join(ENDINGS))


def mode(asked: Asked) -> Response:
    """Set the mode: on, paused or incognito."""
    wanted = asked.field("mode")
    if wanted == "on":
        asked.memory.resume()
    elif wanted in ("paused", "incognito"):
        asked.memory.pause(incognito=wanted == "incognito")
    else:
        raise InvalidInputError("mode", "must be on, paused or incognito")
    return then(asked, asked.back("settings"), wanted)


def consent(asked: Asked) -> Response:
    """Save the consents."""
    for name in CONSENTS:
        asked.memory.consent(name, asked.form.get(name) == "1")
    return then(asked, "settings", "consent")


def export(asked: Asked) -> Response:
    """Send the whole memory as one archive."""
    folder = tempfile.mkdtemp(prefix="recollect-")
    try:
        path = asked.memory.export(Path(folder) / "memory.zip")
        file, size = path.open("rb"), path.stat().st_size
    finally:
        shutil.rmtree(
            folder, ignore_errors=True
        )  # before it is sent, so that an aborted download leaves nothing behind
    headers = {"content-disposition": 'attachment; filename="memory.zip"', "content-length": str(size)}
    return StreamingResponse(_read(file), media_type="application/zip", headers=headers)


async def _read(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while chunk := await in_thread("", file.read, _CHUNK):
            yield chunk


def import_(asked: Asked) -> Response:
    """Import an archive or another tool's export; with ``dry_run``, show what that would do."""
    if asked.upload is None:
        raise InvalidInputError("file", "is missing; choose an archive made by export, or another tool's export")
    dry_run = asked.form.get("dry_run") == "1"
    report = asked.memory.import_(asked.upload, dry_run=dry_run)
    return page(asked, "imported.html", report=report, dry_run=dry_run)


# removing


def topic(asked: Asked) -> Response:
    """List what mentions a topic."""
    words = asked.query.get("topic", "").strip()
    found = asked.memory.erase_topic(words, dry_run=True)[0] if words else []
    return page(asked, "topic.html", topic=words, found=found[:_MOST_SHOWN], left=max(len(found) - _MOST_SHOWN, 0))


def remove(asked: Asked) -> Response:
    """Forget or erase exactly the records that were shown."""
    names = list(dict.fromkeys(asked.form.get("ids", "").split()))
    if not names or len(names) > _MOST_SHOWN:
        raise InvalidInputError("ids", f"must name 1 to {_MOST_SHOWN} records")
    if asked.form.get("how") == "forget":
        run = new_id("run")
        with asked.known.acting(run=run).batch() as mine:
            for name in names:
                mine.forget(name, reason="forgotten with a topic in the console")
        return then(asked, "timeline", "forgotten", run)
    if asked.form.get("sure") != "1":
        raise InvalidInputError("sure", "must be ticked, because erased records cannot be restored")
    return _receipt(asked, _erase(asked, names, asked.form.get("topic", "").strip()))


def _erase(asked: Asked, names: list[str], topic: str) -> Receipt:
    """Erase these records. If nothing else mentions the topic, also erase its other traces."""
    with asked.known.batch() as mine:
        about = {record.id for record in mine.erase_topic(topic, dry_run=True)[0]} if topic else set()
        if about == set(names):
            receipt = mine.erase_topic(topic)[1]
            assert receipt is not None
            return receipt
        return mine.erase(*names).receipt


def remove_example(asked: Asked) -> Response:
    """Erase the example memory."""
    if not example.is_example(asked.memory):
        raise NotFoundError("This memory is not the example; nothing was removed.")
    return _receipt(asked, example.remove(asked.app))


def erasing(asked: Asked) -> Response:
    """Ask for confirmation before a record is erased."""
    found = asked.memory.why(asked.path["id"]).record
    return page(asked, "erasing.html", record=found)


def clear(asked: Asked) -> Response:
    """Erase everything about the person; with the word ``erase``, also the user."""
    word = asked.form.get("word", "").strip().lower()
    if word == "clear":
        return _receipt(asked, asked.memory.clear().receipt)
    if word == "erase" and asked.visitor.user is not None:
        return _receipt(asked, asked.app.erase_user(asked.visitor.user))
    raise InvalidInputError("word", "must be clear or erase; nothing was erased")


def _receipt(asked: Asked, receipt: Receipt) -> Response:
    if asked.visitor.user is not None:
        asked.app.keys.forget_answers(asked.visitor.user)
    return page(asked, "receipt.html", receipt=receipt)
