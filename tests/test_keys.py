"""Keys to the HTTP API, on both databases: shown once, stored as hashes, revoked at once; answers kept encrypted."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import recollect
from recollect import InvalidInputError, NotFoundError, Recollect
from recollect.errors import ConfigError, MissingExtraError
from recollect.identity.signing import sign
from recollect.store.keys import KEPT, KEYS, ApiKey, ApiKeys, IdempotentRequest
from recollect.store.postgres import PostgresStore
from recollect.store.service_tables import Tables
from recollect.store.service_tables_postgres import PostgresServiceTables
from recollect.testing import FrozenClock, MemoryStore
from tests.program import ProgramProcess


class KeysContract:
    """What keys must do wherever they are kept."""

    @pytest.fixture
    def clock(self) -> FrozenClock:
        return FrozenClock()

    @pytest.fixture
    def apps(self, clock: FrozenClock) -> Iterator[tuple[Recollect, Recollect]]:
        """The same deployment, opened twice, as two processes do."""
        raise NotImplementedError

    def test_U5_a_key_is_told_once_and_opens_until_it_is_revoked_anywhere(
        self, apps: tuple[Recollect, Recollect], clock: FrozenClock
    ) -> None:
        here, there = apps[0].keys, apps[1].keys
        assert here.all() == [] and not here.any() and here.named_by("rk_x") is None
        key, text = here.create("acme", scope="read", name="website")
        assert key == ApiKey(id=key.id, tenant="acme", name="website", scope="read", made_at=clock())
        assert text.startswith(f"rk_{key.id}_") and there.any() and there.all() == [key]
        assert there.named_by(text) == key and there.get(key.id) == key
        for wrong in (
            text[:-1],
            text + "0",
            text.upper(),
            text.replace(text[-4:], "0000"),
            f"rk_{'0' * 16}_{'0' * 48}",
        ):
            assert there.named_by(wrong) is None
        clock.tick(seconds=1)
        there.revoke(key.id)
        assert here.named_by(text) is None and here.any(), "where there was a key once, the door stays shut"
        [revoked] = here.all()
        assert revoked.revoked_at == clock() and not revoked.may("read")
        there.revoke(key.id)
        assert here.all() == [revoked]
        with pytest.raises(NotFoundError):
            here.revoke("nothing")

    def test_U5_who_may_write_may_read(self, apps: tuple[Recollect, Recollect]) -> None:
        keys = {scope: apps[0].keys.create(scope=scope)[0] for scope in ("read", "write", "admin")}
        allowed = {scope: [what for what in keys if key.may(what)] for scope, key in keys.items()}
        assert allowed == {"read": ["read"], "write": ["read", "write"], "admin": ["read", "write", "admin"]}

    @pytest.mark.parametrize(
        "wrong",
        [{"tenant": "A"}, {"tenant": ""}, {"tenant": "a/b"}, {"tenant": "a" * 33}, {"scope": "all"}, {"name": "a\nb"}],
    )
    def test_U5_no_impossible_key_is_made(self, apps: tuple[Recollect, Recollect], wrong: dict[str, str]) -> None:
        with pytest.raises(InvalidInputError) as raised:
            apps[0].keys.create(**wrong)
        assert raised.value.field in wrong and not apps[0].keys.any()

    def test_U5_processes_that_begin_at_once_sign_with_the_same_secret(self, apps: tuple[Recollect, Recollect]) -> None:
        found: list[bytes] = []
        together = threading.Barrier(2)

        def look(app: Recollect) -> None:
            together.wait()
            found.append(app.keys.secret)

        threads = [threading.Thread(target=look, args=(app,)) for app in apps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 2 and found[0] == found[1] and len(found[0]) == 32

    def test_U5_an_answer_is_kept_for_a_day_and_only_its_sender_can_read_it(
        self, apps: tuple[Recollect, Recollect], clock: FrozenClock
    ) -> None:
        here, there = apps[0].keys, apps[1].keys
        mine = IdempotentRequest("u1", "a key made up by its sender")
        assert here.answer(mine) is None
        here.keep_answer(mine, "digest", 200, b"Likes tea")
        there.keep_answer(mine, "digest", 500, b"who was second")
        assert there.answer(mine) == ("digest", 200, b"Likes tea")
        assert (
            there.answer(IdempotentRequest("u2", mine.key)) is None
            and there.answer(IdempotentRequest("u1", mine.key + "x")) is None
        )
        clock.now += KEPT - timedelta(seconds=1)
        assert here.answer(mine) is not None
        clock.tick(seconds=1)
        assert here.answer(mine) is None
        here.keep_answer(mine, "other", 200, b"Likes rum")
        assert here.answer(mine) == ("other", 200, b"Likes rum")

    def test_R7_what_is_erased_takes_the_answers_along(self, apps: tuple[Recollect, Recollect]) -> None:
        keys = apps[0].keys
        keys.forget_answers("u1")
        assert not keys.any()
        mine, other = IdempotentRequest("u1", "a key made up"), IdempotentRequest("u2", "a key made up")
        for one in (mine, other):
            keys.keep_answer(one, "digest", 200, b"")
        keys.forget_answers("u1")
        assert keys.answer(mine) == ("digest", 200, None), "that there was one stays, so that it is not done again"
        assert keys.answer(other) == ("digest", 200, b"")
        with keys._store.read() as view:
            assert view is not None and [row[0] for row in view.rows("answer", id=mine.id, since="")] == ["digest"]


class TestSqlite(KeysContract):
    @pytest.fixture
    def apps(self, clock: FrozenClock, tmp_path: Path) -> Iterator[tuple[Recollect, Recollect]]:
        with recollect.open(tmp_path, clock=clock) as one, recollect.open(tmp_path, clock=clock) as other:
            yield one, other

    def test_U5_neither_a_key_nor_an_answer_is_in_the_file(
        self, apps: tuple[Recollect, Recollect], tmp_path: Path
    ) -> None:
        keys = apps[0].keys
        _, text = keys.create()
        mine = IdempotentRequest("u1", "a key made up by its sender")
        keys.keep_answer(mine, "digest", 200, b"Likes tea with milk")
        stored = b"".join(path.read_bytes() for path in tmp_path.glob("keys.db*"))
        assert stored and text.rpartition("_")[2].encode() not in stored
        assert b"Likes tea" not in stored and mine.key.encode() not in stored
        apps[0].user("u1").remember("Likes tea")
        with apps[0].queue():
            pass
        if sys.platform != "win32":
            assert {stat.S_IMODE(os.stat(path).st_mode) for path in tmp_path.rglob("*.db*")} == {0o600}

    def test_U5_looking_for_keys_makes_no_file(self, apps: tuple[Recollect, Recollect], tmp_path: Path) -> None:
        assert not apps[0].keys.any() and apps[0].keys.all() == []
        assert list(tmp_path.glob("keys*")) == []


class TestPostgres(KeysContract):
    @pytest.fixture
    def apps(self, clock: FrozenClock, postgres_tables: str) -> Iterator[tuple[Recollect, Recollect]]:
        with recollect.open(postgres_tables, clock=clock) as one, recollect.open(postgres_tables, clock=clock) as other:
            yield one, other


def test_U5_a_store_of_ones_own_has_no_keys() -> None:
    with recollect.open(MemoryStore()) as app:
        assert not app.keys.any()
        app.keys.keep_answer(IdempotentRequest("u1", "a key made up"), "digest", 200, b"")
        with pytest.raises(ConfigError, match="PostgreSQL"):
            app.keys.create()


def test_U5_an_encrypted_answer_that_was_tampered_with_opens_nothing() -> None:
    mine = IdempotentRequest("u1", "a key made up")
    encrypted = mine.encrypt(b"Likes tea")
    assert (
        mine.decrypt(encrypted) == b"Likes tea"
        and mine.decrypt(mine.encrypt(b"")) == b""
        and encrypted != mine.encrypt(b"Likes tea")
    )
    for place in (0, 20, len(encrypted) - 1):
        broken = encrypted[:place] + bytes([encrypted[place] ^ 1]) + encrypted[place + 1 :]
        assert mine.decrypt(broken) is None
    assert mine.decrypt(b"") is None and mine.decrypt(b"what 0.1 had sealed in its own way") is None
    assert IdempotentRequest("u2", mine.key).decrypt(encrypted) is None


def test_U5_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for needs in (lambda: IdempotentRequest("u1", "a key made up").encrypt(b"x"), lambda: sign(b"s" * 32, "token", {})):
        with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[web\]'"):
            needs()


# the command line


def _run(root: Path, *args: str, code: int = 0) -> Any:
    from typer.testing import CliRunner

    from recollect.surfaces.cli import keys, serve  # noqa: F401  (their commands)
    from recollect.surfaces.cli.program import app

    result = CliRunner().invoke(app, [*args, "--root", str(root)])
    assert result.exit_code == code, result.output
    return result


def test_U3_U5_keys_are_made_listed_and_revoked(tmp_path: Path) -> None:
    assert "There are no API keys" in _run(tmp_path, "keys", "list").output
    made = json.loads(
        _run(tmp_path, "keys", "create", "--tenant", "acme", "--scope", "admin", "--name", "site", "--json").stdout
    )
    text = _run(tmp_path, "keys", "create").stdout.strip()
    with recollect.open(tmp_path) as app:
        one, other = app.keys.named_by(made["key"]), app.keys.named_by(text)
        assert one is not None and (one.tenant, one.scope, one.name) == ("acme", "admin", "site")
        assert other is not None and (other.tenant, other.scope) == ("default", "write")
    listed = _run(tmp_path, "keys", "list").stdout
    assert made["id"] in listed and "acme" in listed and made["key"] not in listed and text not in listed
    _run(tmp_path, "keys", "revoke", made["id"])
    with recollect.open(tmp_path) as app:
        assert app.keys.named_by(made["key"]) is None and app.keys.named_by(text) == other
    assert "there is no key" in _run(tmp_path, "keys", "revoke", "nothing", code=3).output
    _run(tmp_path, "keys", "create", "--scope", "all", code=2)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--listen", "0.0.0.0:0"], "--allow-host"),
        (["--listen", "0.0.0.0:0", "--allow-host", "memory.example.org"], "recollect keys create"),
        (["--listen", "127.0.0.1:1", "--port", "2"], "combined with --listen"),
        (["--database-url", "mysql://db"], "postgresql://"),
        (["--database-url", "postgresql://db/memory"], "combined with --root"),
        (["--suite", "nothing"], "not one of"),
    ],
)
def test_U3_U5_what_would_not_be_safe_is_not_served(args: list[str], said: str, tmp_path: Path) -> None:
    assert said in _run(tmp_path, "serve", *args, code=2).output


def test_U3_U5_serve_tells_where_and_ends_politely(tmp_path: Path) -> None:
    process = ProgramProcess("serve", "--port", "0", "--root", str(tmp_path), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr as told:
        lines = [told.readline() for _ in range(7)]
        assert "No API key is needed" in lines[6] and str(tmp_path) in lines[0]
        where = lines[1].split()[1].removesuffix("/console")
        for path in ("/health/ready", "/docs", "/", "/v1/users", "/console"):
            assert httpx.get(where + path, follow_redirects=True).is_success
        outcome = httpx.post(f"{where}/v1/users/me/note", json={"content": "Likes tea"}).json()["result"]
        assert outcome["done"]
        process.terminate()
        assert process.wait(60) == 0 and "stopped" in told.read()
    with recollect.open(tmp_path) as app:
        assert [note.content for note in app.user("me").read()] == ["Likes tea"]


def test_U5_keys_are_there_while_a_newer_version_has_not_brought_the_tables_forward(
    postgres_url: str, tmp_path: Path
) -> None:
    class Later(Tables):
        def migrations(self, database: str) -> Path:
            folder = tmp_path / database
            if not folder.exists():
                shutil.copytree(KEYS.migrations(database), folder)
                (folder / "0002_more.sql").write_text("ALTER TABLE memory_keys ADD COLUMN more TEXT", encoding="utf-8")
            return folder

    with recollect.open(postgres_url) as app:
        key, text = app.keys.create()
    with closing(PostgresStore(postgres_url)) as store:
        now = ApiKeys(PostgresServiceTables(store, Later(**{f.name: getattr(KEYS, f.name) for f in fields(Tables)})))
        assert now.any() and now.named_by(text) == key


def test_U6_a_login_link_tells_how_to_reach_another_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = _run(tmp_path, "login")
    assert "127.0.0.1:8765/console/login?code=" in told.stdout and "MEMORY_CONSOLE_URL" in told.stderr
    monkeypatch.setenv("MEMORY_CONSOLE_URL", "http://127.0.0.1:9000/console")
    told = _run(tmp_path, "login")
    assert "127.0.0.1:9000/console/login?code=" in told.stdout and "MEMORY_CONSOLE_URL" not in told.stderr
