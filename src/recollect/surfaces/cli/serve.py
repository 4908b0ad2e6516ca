"""The `recollect serve` command."""

from __future__ import annotations

import logging
import socket
from typing import Annotated

from recollect import __version__
from recollect.errors import InvalidInputError, MissingExtraError, StoreError
from recollect.surfaces.cli.mcp import log_to_stderr
from recollect.surfaces.cli.options import PORT, AllowHost, option
from recollect.surfaces.cli.program import AGENTS, command
from recollect.surfaces.cli.session import CliSession

_TRIED = 20
"""The number of ports to try if none is given."""


@command(
    AGENTS,
    "recollect serve",
    "recollect serve --port 9000",
    "recollect serve --listen 0.0.0.0:8765 --allow-host memory.example.com",
    "recollect serve --database-url postgresql://db/memory",
)
def serve_command(
    session: CliSession,
    port: Annotated[
        int | None, option("--port", "The port (default: 8765 or the next free one).", "PORT", min=0, max=65535)
    ] = None,
    listen: Annotated[
        str | None, option("--listen", "Listen on this address instead of 127.0.0.1.", "[HOST:]PORT")
    ] = None,
    allow_host: AllowHost = None,
    database_url: Annotated[
        str | None, option("--database-url", "Store everything in PostgreSQL, for any number of processes.", "URL")
    ] = None,
    suite: Annotated[
        list[str] | None, option("--suite", "Tool suite for MCP (default: notes); repeatable.", "NAME")
    ] = None,
    log_requests: Annotated[bool, option("--log-requests", "Log one line per request, without content.")] = False,
    workers: Annotated[int, option("--workers", "Background jobs at a time; 0 for none.", "NUMBER", min=0, max=64)] = 4,
    example: Annotated[bool, option("--example", "Add an example memory to explore; one click removes it.")] = False,
) -> None:
    """Run the server: API, web console, MCP and background work."""
    try:
        import mcp as _  # noqa: F401
    except ImportError:
        raise MissingExtraError("web", "recollect serve") from None
    from recollect.surfaces.example import fill_example
    from recollect.surfaces.http_server import Address
    from recollect.surfaces.mcp.authentication import checked_suites
    from recollect.surfaces.serve import Server, run_server

    log_to_stderr()
    if log_requests:
        logging.getLogger("recollect.http").setLevel(logging.INFO)
    if database_url is not None:
        if not database_url.startswith(("postgresql://", "postgres://")):
            raise InvalidInputError("--database-url", "must begin with postgresql://")
        if session.root is not None:
            raise InvalidInputError("--database-url", "cannot be combined with --root")
        session.root = database_url
    if port is not None and listen is not None:
        raise InvalidInputError("--port", "cannot be combined with --listen")
    asked = listen or (None if port is None else f"127.0.0.1:{port}")
    address = Address.parse(asked or f"127.0.0.1:{_free_port()}", "--listen")
    address.check_named(allow_host, "--listen")
    recollect = session.recollect
    served = Server(recollect, address, hosts=allow_host or (), user=session.user_id, suites=checked_suites(suite))

    if example:
        fill_example(recollect)
    config = session.config
    kept = "PostgreSQL" if config.database_url else config.memory_dir

    def tell(bound: int) -> None:
        at = f"http://{address.url_host}:{bound}"
        session.out.aside(f"Recollect {__version__} is serving the memories in {kept}")
        for what, where in (
            ("console", f"{at}/console"),
            ("API", f"{at}/v1"),
            ("API docs", f"{at}/docs"),
            ("MCP", f"{at}/mcp"),
            ("worker", f"{workers} jobs at a time" if workers else "none in this process"),
        ):
            session.out.aside(f"  {what:<10} {where}")
        asked = "An API key or a login link is required" if recollect.keys.any() else "No API key is needed locally"
        session.out.aside(f"{asked}; `recollect keys create` creates one. Press Ctrl-C to stop.")

    run_server(served, recollect, workers=workers, listening=tell)


def _free_port() -> int:
    for port in range(PORT, PORT + _TRIED):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StoreError(f"the ports from {PORT} to {PORT + _TRIED - 1} are in use; choose another with --port")
