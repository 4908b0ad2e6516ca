"""A secret that was refused is not shown again: on no page, in no answer, no log and no journal."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import recollect
from recollect import Recollect
from recollect.agents.capture import capture
from recollect.identity.identities import Identity
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.cli import read_commands, remove_commands, write_commands  # noqa: F401  (their commands)
from recollect.surfaces.cli.program import app as program
from tests.serving import serving

KEY = "sk-proj-4f9Qz7LmT2vX8bN1cR6yW3hJ5kD0aE"
SECRETS = {
    "API key": f"my API key is {KEY}",
    "password": "the password is hunter2-Tr0ub4dor",
    "card number": "pay with 4111 1111 1111 1111",
}
NEEDLES = (KEY, KEY[8:], "hunter2-Tr0ub4dor", "4111 1111 1111 1111", "4111111111111111")


def _clean(where: str, text: str) -> None:
    assert [needle for needle in NEEDLES if needle in text] == [], where


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Recollect]:
    with recollect.open(tmp_path / "root") as app:
        app.user("me").remember("Likes tea", key="drink")
        app.user("me").note("Likes coffee")
        yield app


@pytest.fixture(params=list(SECRETS.values()), ids=list(SECRETS))
def secret(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Browser:
    """A browser without scripts."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=f"{url}/console/", follow_redirects=True, timeout=60)
        found = re.search(r'name="csrf_token" value="([^"]+)"', self.http.get("settings").text)
        assert found is not None
        self.mark = found[1]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, path: str, **fields: str) -> str:
        answer = self.http.post(path, data={"csrf_token": self.mark, **fields})
        assert answer.status_code < 500
        _clean(f"{path} {sorted(fields)}", answer.text)
        return answer.text


def _fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'name="(expect|compared|seq)" value="([^"]*)"', page))


@pytest.mark.everyday(2)
@pytest.mark.parametrize("with_files", [True, False])
def test_no_page_of_the_console_shows_a_refused_secret(
    tmp_path: Path, postgres_url: str, secret: str, with_files: bool
) -> None:
    with recollect.open(tmp_path / "root" if with_files else postgres_url) as app:
        memory = app.user("me")
        record = memory.remember("Likes tea", key="drink").record  # type: ignore[attr-defined]
        other = memory.note("Likes coffee").record  # type: ignore[attr-defined]
        with serving(app) as url, Browser(url) as browser:
            browser.post("remember", content=secret)
            browser.post("remember", content="Likes jazz", key=secret)
            path = f"record/{record.id}/change"
            for step in ("preview", "save"):
                shown = browser.post(path, content=secret, seq=str(record.seq), reason="update", step=step, compared="")
                assert "seems to contain a secret" in shown
                browser.post(path, content=secret, step=step, **_fields(shown))
            browser.post("merge", one=record.id, other=other.id, content=secret)
            browser.post(f"record/{other.id}/forget", reason=secret)
            for page in ("", "timeline", f"record/{other.id}", f"record/{record.id}", "settings"):
                _clean(page, browser.http.get(page).text)
            if not with_files:  # with files the person's own file holds what they write into it
                text = memory.show() + f"\n- {secret}\n"
                fields = _fields(browser.http.get("edit").text)
                fields = _fields(
                    browser.http.post("edit", data={"csrf_token": browser.mark, "text": text, **fields}).text
                )
                refused = browser.post("edit", text=text, step="save", **fields)
                assert "seems to contain a secret" in refused and "Likes tea" in refused
        _clean("history", repr(memory.history()))


@pytest.mark.everyday(1)
def test_no_answer_of_the_api_and_of_a_tool_shows_a_refused_secret(
    app: Recollect, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fields: dict[str, dict[str, Any]] = {
        "remember": {"content": secret},
        "note": {"content": "x", "title": secret},
        "observe": {"content": secret, "category": "finding"},
        "episode": {"topic": "t", "summary": secret},
        "say": {"content": secret, "session": "s"},
        "jot": {"content": secret},
        "set_scratch": {"key": "k", "value": secret},
        "update": {"ref": "drink", "content": secret},
        "forget": {"ref": "drink", "reason": secret},
        "report": {"kind": "save", "text": secret, "title": secret},
        "edit": {"text": f"# User Memory\n\n## Key Facts\n- {secret}\n"},
    }
    memory = app.user("me")
    with serving(app) as url, httpx.Client(base_url=f"{url}/v1/users/me/", timeout=60) as http:
        for verb, given in fields.items():
            if verb == "edit":
                continue  # the person's own text, which is theirs: see the test of the console
            answer = http.post(verb, json=given, headers={"Idempotency-Key": f"key of {verb}"})
            assert answer.status_code < 500, answer.text
            _clean(verb, answer.text)
        _clean("bad request", http.post("remember", json={"content": 5, "kind": secret, "category": secret}).text)
    tools = app.tools("me", session="s", wait=True)
    refused = 0
    for tool in tools.tools:
        names = tools.schema(tool)["properties"]
        for only in ({}, {"category": "key_fact", "fact_type": "personal", "key": "k"}):
            given = {name: secret for name, about in names.items() if "string" in json.dumps(about)} | only
            result = tools.call(tool, {name: value for name, value in given.items() if name in names})
            if result.status == "refused":
                refused += 1
                _clean(tool, result.text)
    assert refused >= 5
    for name in ("memory_save", "remember_fact", "write_memory", "save_observation"):
        result = tools.call(name, {"content": secret, "value": secret, "key": "k", "category": "key_fact"})
        _clean(name, result.text)
    _clean("log", caplog.text)
    _clean("history", repr(memory.history()))
    _clean("calls", repr(memory.calls(limit=None)))
    _clean("records", repr(memory.read(limit=None)))
    _clean("interactions", repr(memory.interactions()))


def test_no_line_of_the_command_line_and_of_a_chat_shows_a_refused_secret(
    app: Recollect, tmp_path: Path, secret: str
) -> None:
    root = ["--root", str(tmp_path / "root")]
    for args in (
        ["remember", secret],
        ["remember", secret, "--json"],
        ["note", secret],
        ["update", "drink", secret],
        ["jot", secret],
        ["say", secret],
        ["forget", "drink", "--reason", secret, "--yes"],
        ["history"],
        ["history", "--json"],
    ):
        result = CliRunner().invoke(program, [*args, *root])
        assert "No such command" not in result.output
        _clean(" ".join(args[:1]), result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit)
    memory = app.user("me")
    for said in (f"Remember that {secret}", f"remember: {secret}", f"Please note: {secret}"):
        captured = capture(memory, said)
        _clean("reply", "" if captured is None else captured.reply or "")
    commands = Commands(app, Identity("terminal", "me"))
    for typed in (f"/memory {secret}", f"/memory forget {secret}", f"/memory search {secret}"):
        commands.run(typed)  # what is asked for is not refused, but must not be stored
    _clean("history", repr(memory.history()))
    _clean("records", repr(memory.read(limit=None)))
