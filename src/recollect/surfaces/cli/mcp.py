"""The `recollect mcp` command."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.errors import InvalidInputError, MissingExtraError
from recollect.surfaces.cli.program import AGENTS, command
from recollect.surfaces.cli.session import CliSession

if TYPE_CHECKING:
    from recollect.surfaces.http_server import Address
    from recollect.surfaces.mcp.authentication import Callers


@command(
    AGENTS,
    "recollect mcp --user me",
    "recollect mcp --suite notes --suite facts",
    "recollect mcp --http 8765 --user me",
    "recollect mcp --http 8765 --tokens tokens.txt",
)
def mcp_command(
    session: CliSession,
    ctx: typer.Context,
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", help="Tool suite to offer (default: notes); repeatable.", metavar="NAME"),
    ] = None,
    http: Annotated[
        str | None,
        typer.Option("--http", help="Serve HTTP at /mcp instead of stdio.", metavar="[HOST:]PORT"),
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", help="Lines of TOKEN USER [SUITE,SUITE].", metavar="FILE")
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option("--user-header", help="The header in which a trusted proxy names the user.", metavar="NAME"),
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Confirm that only that proxy can reach this address.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Another accepted host name; repeatable.", metavar="NAME"),
    ] = None,
) -> None:
    """Serve the memory to MCP clients over stdio or HTTP."""
    try:
        import mcp as _  # noqa: F401
    except ImportError:
        raise MissingExtraError("mcp", "recollect mcp") from None
    from recollect.surfaces.mcp.authentication import McpCaller, checked_suites

    log_to_stderr()
    suites = checked_suites(suite)
    session.recollect.user(session.user)
    if http is None:
        for name, given in (("--tokens", tokens), ("--user-header", user_header), ("--behind-proxy", behind_proxy)):
            if given:
                raise InvalidInputError(name, "requires --http")
        from recollect.surfaces.mcp import stdio

        stdio.run_stdio(session.recollect, McpCaller(session.user, suites))
        return
    from recollect.surfaces.http_server import Address
    from recollect.surfaces.mcp import http as over_http

    address = Address.parse(http, "--http")
    is_named = getattr(ctx.get_parameter_source("user"), "name", "") == "COMMANDLINE"
    callers = _callers(session.user if is_named else None, tokens, user_header, behind_proxy, suites, address)
    if address.is_any and not allow_host:
        raise InvalidInputError(
            "--http", "listens on every address; add --allow-host with the host name that clients use"
        )
    over_http.run_http(session.recollect, callers, address, allow_host or ())


def _callers(
    user: str | None,
    tokens: Path | None,
    user_header: str | None,
    behind_proxy: bool,
    suites: tuple[str, ...],
    address: Address,
) -> Callers:
    """Return how callers are identified. Raise an error where that would not be safe."""
    from recollect.surfaces.mcp.authentication import McpCaller, NamedByProxy, OneCaller, TokenFile

    if sum(given is not None for given in (user, tokens, user_header)) != 1:
        raise InvalidInputError("--http", "requires exactly one of --user, --tokens and --user-header")
    if behind_proxy and user_header is None:
        raise InvalidInputError("--behind-proxy", "requires --user-header")
    if tokens is not None:
        return TokenFile(tokens, suites)
    if user_header is not None:
        if not (address.is_loopback or behind_proxy):
            raise InvalidInputError(
                "--user-header",
                f"anyone who can reach {address.host} could pose as any user; listen on 127.0.0.1, or add"
                " --behind-proxy if only the proxy can reach it",
            )
        if not user_header.replace("-", "").isalnum() or not user_header.isascii():
            raise InvalidInputError("--user-header", f"{user_header!r} is not a valid header name")
        return NamedByProxy(user_header, suites)
    assert user is not None
    if not address.is_loopback:
        raise InvalidInputError(
            "--http", f"anyone who can reach {address.host} could act as {user!r}; use --tokens instead of --user"
        )
    return OneCaller(McpCaller(user, suites))


class _Brief(logging.Formatter):
    """One line per log record, without tracebacks, which may contain what a user said."""

    def formatException(self, ei: object) -> str:
        return ""

    def format(self, record: logging.LogRecord) -> str:
        kind = record.exc_info[0] if record.exc_info else None
        record.exc_info, record.exc_text = None, None
        line = " ".join(super().format(record).split())
        return f"{line} ({kind.__name__})" if kind else line


def log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Brief("recollect: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
