"""The commands for API keys and login links."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from recollect.identity.login import Login
from recollect.store.keys import DEFAULT_TENANT
from recollect.surfaces.cli.options import Files, Json, Root, User
from recollect.surfaces.cli.output import format_moment
from recollect.surfaces.cli.program import AGENTS, CliGroup, app, command, command_below
from recollect.surfaces.cli.session import CliSession
from recollect.times import to_text

_keys = typer.Typer(cls=CliGroup, name="keys")
app.add_typer(
    _keys,
    rich_help_panel=AGENTS,
    epilog="recollect keys create --name website\nrecollect keys list\nrecollect keys revoke 4f0c2a9be1d35786\n"
    "recollect keys renew",
)


@_keys.callback()
def _keys_group(
    ctx: typer.Context, user: User = "me", root: Root = None, files: Files = None, json: Json = False
) -> None:
    """Create, list and revoke API keys."""
    given = {"user": user, "root": root, "files": files, "json": json}
    ctx.default_map = dict.fromkeys(("create", "list", "revoke", "renew"), given)


@command_below(
    _keys, "recollect keys create", "recollect keys create --tenant acme --scope admin", "recollect keys create --json"
)
def keys_create_command(
    session: CliSession,
    tenant: Annotated[
        str, typer.Option("--tenant", help="The tenant that the key belongs to.", metavar="NAME")
    ] = "default",
    scope: Annotated[str, typer.Option("--scope", help="read, write or admin.", metavar="NAME")] = "write",
    name: Annotated[str, typer.Option("--name", help="A name for the key.", metavar="TEXT")] = "",
) -> None:
    """Create an API key. It is shown only once."""
    key, text = session.recollect.keys.create(tenant, scope=scope, name=name)
    session.out.document({"id": key.id, "tenant": key.tenant, "scope": key.scope, "name": key.name, "key": text})
    session.out.line(text)
    session.out.aside(f"Key id: {key.id}. Copy the key now; only its hash is stored, and it cannot be shown again.")


@command_below(_keys, "recollect keys list", "recollect keys list --json")
def keys_list_command(session: CliSession) -> None:
    """List API keys (secrets are never shown)."""
    found = session.recollect.keys.all()
    session.out.document(found)
    if not found:
        session.out.aside("There are no API keys. The API is open on this machine and closed to all others.")
        return
    rows = [
        (
            key.id,
            key.tenant,
            key.scope,
            key.name,
            format_moment(key.made_at),
            format_moment(key.revoked_at) if key.revoked_at else "",
        )
        for key in found
    ]
    session.out.table(("id", "tenant", "scope", "name", "made", "revoked"), rows)


@command_below(_keys, "recollect keys revoke 4f0c2a9be1d35786")
def keys_revoke_command(
    session: CliSession,
    key: Annotated[str, typer.Argument(help="The id of the key.", metavar="ID", show_default=False)],
) -> None:
    """Revoke a key immediately."""
    session.recollect.keys.revoke(key)
    session.out.document({"revoked": key})
    session.out.line(f"Revoked the key {key}.")


@command_below(_keys, "recollect keys renew")
def keys_renew_command(session: CliSession) -> None:
    """Replace the signing secret, for example after a backup was stolen."""
    session.recollect.keys.renew_secret()
    session.out.document({"renewed": True})
    session.out.line("All earlier tokens, login links and sessions are invalid. Restart every server process.")


@command(
    AGENTS,
    "recollect login",
    "recollect login --user 42 --tenant acme",
    "recollect login --operator",
)
def login_command(
    session: CliSession,
    tenant: Annotated[
        str, typer.Option("--tenant", help="The tenant that the user belongs to.", metavar="NAME")
    ] = "default",
    operator: Annotated[bool, typer.Option("--operator", help="Log in to the dashboards instead of a memory.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Allow viewing only.")] = False,
) -> None:
    """Create a one-time login link for the web console."""
    user = None if operator else session.user_id if tenant == DEFAULT_TENANT else session.user
    code, until = Login(session.recollect.keys).code(user, tenant=tenant, operator=operator, read_only=read_only)
    where = session.config.console_url.rstrip("/") or "http://127.0.0.1:8765/console"
    link = f"{where}/login?code={quote(code)}"
    session.out.document({"link": link, "code": code, "until": to_text(until)})
    session.out.line(link)
    session.out.aside(f"The link works once, until {format_moment(until)}. Anyone who opens it is logged in.")
