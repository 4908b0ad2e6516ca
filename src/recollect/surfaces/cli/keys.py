"""The commands for API keys and login links."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from recollect.identity.login import Login
from recollect.store.keys import DEFAULT_TENANT
from recollect.surfaces.cli.options import PORT, argument, option
from recollect.surfaces.cli.output import format_moment
from recollect.surfaces.cli.program import AGENTS, command, command_group
from recollect.surfaces.cli.session import CliSession
from recollect.times import to_text

_keys = command_group(
    "keys",
    AGENTS,
    "Create, list and revoke API keys.",
    "recollect keys create --name website",
    "recollect keys list",
    "recollect keys revoke 4f0c2a9be1d35786",
    "recollect keys renew",
)


@_keys("recollect keys create", "recollect keys create --tenant acme --scope admin", "recollect keys create --json")
def keys_create_command(
    session: CliSession,
    tenant: Annotated[str, option("--tenant", "The tenant that the key belongs to.", "NAME")] = "default",
    scope: Annotated[str, option("--scope", "read, write or admin.", "NAME")] = "write",
    name: Annotated[str, option("--name", "A name for the key.", "TEXT")] = "",
) -> None:
    """Create an API key. It is shown only once."""
    key, text = session.recollect.keys.create(tenant, scope=scope, name=name)
    session.out.document({"id": key.id, "tenant": key.tenant, "scope": key.scope, "name": key.name, "key": text})
    session.out.line(text)
    session.out.aside(f"Key id: {key.id}. Copy the key now; only its hash is stored, and it cannot be shown again.")


@_keys("recollect keys list", "recollect keys list --json")
def keys_list_command(session: CliSession) -> None:
    """List API keys (secrets are never shown)."""
    found = session.recollect.keys.all()
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
    nothing = "There are no API keys. The API is open on this machine and closed to all others."
    session.out.listing(found, ("id", "tenant", "scope", "name", "created", "revoked"), rows, nothing=nothing)


@_keys("recollect keys revoke 4f0c2a9be1d35786")
def keys_revoke_command(
    session: CliSession,
    key: Annotated[str, argument("ID", "The id of the key.")],
) -> None:
    """Revoke a key immediately."""
    session.recollect.keys.revoke(key)
    session.out.document({"revoked": key})
    session.out.line(f"Revoked the key {key}.")


@_keys("recollect keys renew")
def keys_renew_command(session: CliSession) -> None:
    """Replace the signing secret."""
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
    tenant: Annotated[str, option("--tenant", "The tenant that the user belongs to.", "NAME")] = "default",
    operator: Annotated[bool, option("--operator", "Log in to the dashboards instead of a memory.")] = False,
    read_only: Annotated[bool, option("--read-only", "Allow viewing only.")] = False,
) -> None:
    """Create a one-time login link for the web console."""
    user = None if operator else session.user_id if tenant == DEFAULT_TENANT else session.user
    code, until = Login(session.recollect.keys).code(user, tenant=tenant, operator=operator, read_only=read_only)
    where = session.config.console_url.rstrip("/") or f"http://127.0.0.1:{PORT}/console"
    link = f"{where}/login?code={quote(code)}"
    session.out.document({"link": link, "code": code, "until": to_text(until)})
    session.out.line(link)
    session.out.aside(f"The link works once, until {format_moment(until)}. Anyone who opens it is logged in.")
    if not session.config.console_url:
        session.out.aside(
            f"It leads to port {PORT}. If `recollect serve` uses another, set MEMORY_CONSOLE_URL to its console,"
            " such as http://127.0.0.1:9000/console, or type the code there."
        )
