"""Export and import as streams, without holding the whole archive in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from pydantic import Field

from recollect.memory.async_memory import in_thread
from recollect.memory.transfer import ImportReport
from recollect.surfaces.http import argument_schemas
from recollect.surfaces.http.messages import Request, Response, Route, respond
from recollect.surfaces.http.problems import Problem, as_things_are
from recollect.surfaces.http.request_buffer import BufferFolder
from recollect.surfaces.http.schema import NoArguments, StrictModel
from recollect.surfaces.http.verb_routes import VerbRoutes

MOST = 512 * 1024 * 1024
"""The maximum size of an import, in bytes."""
SECONDS = 30.0
"""The timeout for the next part of a body."""
_CHUNK = 1 << 16
_ENDINGS = frozenset({".zip", ".json", ".jsonl", ".md", ".txt"})


class ImportRequest(StrictModel):
    """The format of an import, and the user to take from it."""

    name: argument_schemas.storable_text_type(200) = Field(  # type: ignore[valid-type]
        "export.zip", description="the name of the file; its extension determines the format"
    )
    from_user: argument_schemas.LINE | None = None
    dry_run: bool = False


class TransferRoutes:
    """The handlers for export and import."""

    def __init__(self, memories: VerbRoutes, seconds: float = SECONDS) -> None:
        self._memories = memories
        self._seconds = seconds

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(
                method="GET",
                path="/users/{user}/export",
                name="export",
                does="Export the whole memory as one archive of Markdown and JSON Lines.",
                scope="read",
                takes=NoArguments,
                handle_async=self._export,
                streams="out",
            ),
            Route(
                method="POST",
                path="/users/{user}/import",
                name="import",
                does="Import a Recollect export, an MCP memory.jsonl, a Markdown file, or a mem0 export.",
                scope="write",
                takes=ImportRequest,
                returns=ImportReport,
                handle_async=self._import,
                streams="in",
                acts=True,
            ),
        ]

    async def _export(self, request: Request) -> Response:
        buffer = await in_thread("", BufferFolder)
        try:
            path = buffer.folder / "memory.zip"
            await in_thread(request.user, lambda: self._memories.memory(request).export(path))
        except BaseException:
            await in_thread("", buffer.close)
            raise
        headers = {"content-disposition": 'attachment; filename="memory.zip"'}
        return Response(kind="application/zip", headers=headers, stream=_stream_and_remove(path, buffer))

    async def _import(self, request: Request) -> Response:
        ending = Path(request.values.get("name", "export.zip")).suffix.lower()
        buffer = await in_thread("", BufferFolder)
        try:
            path = buffer.folder / f"import{ending if ending in _ENDINGS else ''}"
            await self._save(request, path)
            how: dict[str, Any] = {
                name: request.values[name] for name in ("from_user", "dry_run") if name in request.values
            }
            memory = await in_thread(request.user, self._memories.memory, request)
            with as_things_are():
                return await in_thread(request.user, lambda: respond(memory.import_(path, **how)))
        finally:
            await in_thread("", buffer.close)

    async def _save(self, request: Request, path: Path) -> None:
        file = await in_thread("", path.open, "wb")
        size = 0
        try:
            while True:
                message = await asyncio.wait_for(request.receive(), self._seconds)
                if message["type"] == "http.disconnect":
                    raise Problem(400, "BadRequestError", "the body is incomplete")
                size += len(message.get("body", b""))
                if size > MOST:
                    raise Problem(413, "TooLargeError", f"an import may have at most {MOST >> 20} MB")
                await in_thread("", file.write, message.get("body", b""))
                if not message.get("more_body"):
                    return
        except TimeoutError:
            raise Problem(408, "TooSlowError", "the rest of the body did not arrive in time") from None
        finally:
            await in_thread("", file.close)


async def _stream_and_remove(path: Path, buffer: BufferFolder) -> AsyncIterator[bytes]:
    try:
        file = await in_thread("", path.open, "rb")
        try:
            while chunk := await in_thread("", file.read, _CHUNK):
                yield chunk
        finally:
            await in_thread("", file.close)
    finally:
        await in_thread("", buffer.close)
