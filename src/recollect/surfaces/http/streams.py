"""Export and import as streams, without holding the whole archive in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from recollect.memory.async_memory import in_thread
from recollect.memory.transfer import ImportReport
from recollect.surfaces.http import argument_schemas
from recollect.surfaces.http.messages import Request, Response, respond
from recollect.surfaces.http.problems import Problem, as_things_are
from recollect.surfaces.http.request_buffer import BufferFolder
from recollect.surfaces.http.routes import RouteGroup, route
from recollect.surfaces.http.verb_routes import VerbRoutes

MOST = 512 * 1024 * 1024
"""The maximum size of an import, in bytes."""
SECONDS = 30.0
"""The timeout for the next part of a body."""
_CHUNK = 1 << 16
_ENDINGS = frozenset({".zip", ".json", ".jsonl", ".md", ".txt"})


_FileName = Annotated[
    argument_schemas.FILE_NAME, Field(description="the name of the file; its extension determines the format")
]


class TransferRoutes(RouteGroup):
    """The handlers for export and import."""

    def __init__(self, memories: VerbRoutes, seconds: float = SECONDS) -> None:
        self._memories = memories
        self._seconds = seconds

    @route("GET", "/users/{user}/export", "read", returns=None, streams="out")
    async def export(self, request: Request) -> Response:
        """Export the whole memory as one archive of Markdown and JSON Lines."""
        buffer = await in_thread("", BufferFolder)
        try:
            path = buffer.folder / "memory.zip"
            await in_thread(request.user, lambda: self._memories.memory(request).export(path))
        except BaseException:
            await in_thread("", buffer.close)
            raise
        headers = {"content-disposition": 'attachment; filename="memory.zip"'}
        return Response(kind="application/zip", headers=headers, stream=_stream_and_remove(path, buffer))

    @route("POST", "/users/{user}/import", "write", name="import", returns=ImportReport, streams="in", acts=True)
    async def import_(
        self,
        request: Request,
        *,
        name: _FileName = "export.zip",
        from_user: argument_schemas.LINE | None = None,
        dry_run: bool = False,
    ) -> Response:
        """Import a Recollect export, an MCP memory.jsonl, a Markdown file, or a mem0 export."""
        ending = Path(name).suffix.lower()
        buffer = await in_thread("", BufferFolder)
        try:
            path = buffer.folder / f"import{ending if ending in _ENDINGS else ''}"
            await self._save(request, path)
            memory = await in_thread(request.user, self._memories.memory, request)
            take = partial(memory.import_, path, from_user=from_user, dry_run=dry_run)
            with as_things_are():
                return await in_thread(request.user, lambda: respond(take()))
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
