"""Who gets into the web console, and how they come by a link: from the command line, a chat, or the API."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import recollect
from recollect import Recollect
from recollect.client import connect
from recollect.errors import ConfigError, InvalidInputError
from recollect.identity.login import LINK_LIFETIME, Login, LoginRefusedError
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.cli import keys as _keys  # noqa: F401  (its commands)
from recollect.surfaces.cli.program import app as program
from recollect.testing import FrozenClock
from tests.serving import serving


@pytest.fixture
def app(tmp_path: Path) -> Recollect:
    return recollect.open(tmp_path, console_url="https://memory.example.com/console/")


def test_U6_a_code_that_was_typed_lets_one_visitor_in_once(app: Recollect) -> None:
    who = Login(app.keys)
    code, _ = who.code("42")
    cookie, _ = Login(app.keys).enter(f" {code.lower().replace('-', ' ')} ")  # by another process, typed carelessly
    visitor = who.session(cookie)
    assert visitor is not None and (visitor.user, visitor.operator, visitor.may_write) == ("42", False, True)
    for again in (who, Login(app.keys)):
        with pytest.raises(LoginRefusedError, match="already used"):
            again.enter(code)


def test_U6_a_code_is_not_stored(app: Recollect, tmp_path: Path) -> None:
    code, _ = Login(app.keys).code("42")
    app.close()
    plain = code.replace("-", "").encode()
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not any(code.encode() in data or plain in data for data in kept)


def test_U6_a_code_ends_with_its_minutes(app: Recollect) -> None:
    clock = FrozenClock()
    who = Login(app.keys, clock=clock)
    code, _ = who.code("42")
    clock.tick(seconds=LINK_LIFETIME.total_seconds() + 1)
    with pytest.raises(LoginRefusedError):
        who.enter(code)


def test_U6_who_guesses_codes_keeps_nobody_else_out(app: Recollect) -> None:
    who = Login(app.keys)
    code, _ = who.code("42")
    for number in range(40):
        with pytest.raises(LoginRefusedError, match="already used"):
            who.enter("22222-22222" if number % 2 else f"no code {number}")
    assert who.enter(code)


def test_U6_many_right_codes_are_no_guesses(app: Recollect) -> None:
    who = Login(app.keys)
    for number in range(30):
        assert who.enter(who.code(f"u{number}")[0])


def test_U6_a_visit_to_look_needs_a_key_that_may_read(app: Recollect) -> None:
    key, _ = app.keys.create(scope="read")
    who = Login(app.keys)
    cookie, _ = who.enter(who.code("42", read_only=True, key=key.id)[0])
    visitor = who.session(cookie)
    assert visitor is not None and not visitor.may_write
    with pytest.raises(LoginRefusedError):
        who.enter(who.code("42", key=key.id)[0])
    app.keys.revoke(key.id)
    assert who.session(cookie) is None


@pytest.mark.parametrize("wrong", ["", "Acme", "a/b", "../x", "a" * 33])
def test_U6_a_link_for_a_tenant_that_cannot_be_is_refused(app: Recollect, wrong: str) -> None:
    with pytest.raises(InvalidInputError, match="tenant"):
        Login(app.keys).link("42", tenant=wrong)


def test_U6_the_command_line_makes_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_CONSOLE_URL", "https://memory.example.com/console")
    told = CliRunner().invoke(program, ["login", "--user", "42", "--tenant", "acme", "--root", str(tmp_path)])
    assert told.exit_code == 0, told.output
    link = told.stdout.strip()
    assert link.startswith("https://memory.example.com/console/login?code=")
    with recollect.open(tmp_path) as app:
        who = Login(app.keys)
        visitor = who.session(who.enter(link.partition("code=")[2])[0])
        assert visitor is not None and (visitor.tenant, visitor.user) == ("acme", "@acme/42")
    told = CliRunner().invoke(program, ["login", "--operator", "--root", str(tmp_path)])
    with recollect.open(tmp_path) as app:
        who = Login(app.keys)
        visitor = who.session(who.enter(told.stdout.strip().partition("code=")[2])[0])
        assert visitor is not None and (visitor.user, visitor.operator) == (None, True)


def test_U6_a_person_asks_for_a_link_in_the_chat(app: Recollect) -> None:
    shown = str(Commands(app, ("telegram", 7)).run("/memory web"))
    [line] = [line for line in shown.splitlines() if "https://" in line]
    who = Login(app.keys)
    visitor = who.session(who.enter(line.partition("code=")[2].split()[0])[0])
    assert "/console/login" in line and visitor is not None and visitor.user == "telegram:7"


def test_U6_without_an_address_the_chat_says_whom_to_ask(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        assert "MEMORY_CONSOLE_URL" in str(Commands(app, ("telegram", 7)).run("/memory web"))


def test_U8_an_address_of_the_console_that_is_none_is_named() -> None:
    with pytest.raises(ConfigError, match="MEMORY_CONSOLE_URL"):
        recollect.Config(console_url="memory.example.com")


def test_U5_U6_an_application_makes_links_for_its_own_users_only(app: Recollect) -> None:
    with app, serving(app) as url:
        keys = {scope: app.keys.create("acme", scope=scope)[1] for scope in ("read", "write", "admin")}
        with connect(url, key=keys["write"]) as client:
            made = client.create_login("42")
            assert made.link == f"https://memory.example.com/console/login?code={made.code}"
        with httpx.Client(base_url=url, follow_redirects=True) as browser:
            page = browser.get(f"/console/login?code={made.code}").text
            mark = page.partition('name="csrf_token" value="')[2].partition('"')[0]
            entered = browser.post("/console/login", data={"code": made.code, "csrf_token": mark})
            assert entered.status_code == 200 and "Nothing is remembered yet" in entered.text
        asked = {"read": {"user": "42", "read_only": True}, "admin": {"operator": True}}
        for scope, key in keys.items():
            for wanted, body in asked.items():
                answer = httpx.post(f"{url}/v1/logins", json=body, headers={"authorization": f"Bearer {key}"})
                may = wanted == "read" or scope == "admin"
                assert answer.status_code == (201 if may else 403)
        token = httpx.post(
            f"{url}/v1/tokens", json={"user": "42"}, headers={"authorization": f"Bearer {keys['read']}"}
        ).json()["result"]["token"]
        told = httpx.post(f"{url}/v1/logins", json={"user": "43"}, headers={"authorization": f"Bearer {token}"})
        assert told.status_code == 403


def test_U5_U6_after_a_theft_another_secret_ends_tokens_links_and_logins(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        who = Login(app.keys)
        link, _ = who.link("42")
        visit, _ = who.enter(who.link("42")[0])
    told = CliRunner().invoke(program, ["keys", "renew", "--root", str(tmp_path)])
    assert told.exit_code == 0 and "Restart every server process" in told.stdout
    with recollect.open(tmp_path) as app:
        who = Login(app.keys)
        assert who.session(visit) is None
        with pytest.raises(LoginRefusedError):
            who.enter(link)
        assert who.enter(who.link("42")[0])
