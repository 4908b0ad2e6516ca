"""The HTTP API, over real connections: who may ask what, what is answered, and what happens when things go wrong."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import recollect
from recollect import Memory, Recollect
from recollect.errors import ConfigError
from recollect.surfaces import http_server
from recollect.surfaces import serve as service
from recollect.surfaces.http.api import MOST_BODY, HttpApi
from recollect.surfaces.http.authentication import Authentication
from recollect.surfaces.http.concurrency import ConcurrencyLimiter
from recollect.surfaces.http.problems import Problem
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.http_server import Address
from recollect.testing import FrozenClock
from recollect.verbs import ELSEWHERE, VERBS
from tests.serving import serving
from tests.test_event_loop import Gate, GatedStore, Watch, turn
from tests.volume import sample, volume
from tests.words import mentions

_numbers = count()
PATIENCE = 30.0


class Tenant:
    """A host application with a key of its own on the shared server."""

    def __init__(self, app: Recollect, url: str, tenant: str | None = None, scope: str = "admin") -> None:
        self.app, self.url = app, url
        self.name = tenant or f"t{next(_numbers)}"
        self.key, self.text = app.keys.create(self.name, scope=scope)
        self.http = httpx.Client(base_url=url, headers={"authorization": f"Bearer {self.text}"}, timeout=PATIENCE)

    def post(self, path: str, body: Any = None, **how: Any) -> httpx.Response:
        return self.http.post(f"/v1/users/{path}", json={} if body is None else body, **how)

    def get(self, path: str, **query: Any) -> httpx.Response:
        verb = VERBS.get(path.rpartition("/")[2])
        if verb is not None and verb.method == "POST":
            return self.post(path, query)
        return self.http.get(f"/v1/users/{path}", params=query)

    def texts(self, user: str) -> list[str]:
        return [
            record["text"] for record in self.get(f"{quote(user, safe='')}/read").raise_for_status().json()["result"]
        ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recollect, str]]:
    with recollect.open(tmp_path_factory.mktemp("shared")) as app:
        app.keys.create()  # from here on nobody is let in without one
        with serving(app) as url:
            yield app, url


@pytest.fixture
def tenants(shared: tuple[Recollect, str]) -> Iterator[Callable[..., Tenant]]:
    """Makes host applications, each with a key of its own."""
    made: list[Tenant] = []

    def make(tenant: str | None = None, scope: str = "admin") -> Tenant:
        made.append(Tenant(*shared, tenant, scope))
        return made[-1]

    yield make
    for one in made:
        one.http.close()


@pytest.fixture
def tenant(tenants: Callable[..., Tenant]) -> Tenant:
    return tenants()


def problem(answer: httpx.Response, status: int, error: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["status"] == status and told["error"] == error and told["detail"] and told["title"]
    assert told["type"] == f"urn:recollect:error:{error}"
    return told


# what can be asked


def test_U5_every_verb_of_memory_has_a_route() -> None:
    verbs = {name for name, _ in inspect.getmembers(Memory, inspect.isfunction) if not name.startswith("_")}
    assert VERBS.keys() | ELSEWHERE.keys() == verbs, "a verb is declared with @verb"
    assert not VERBS.keys() & ELSEWHERE.keys()


def test_U5_the_document_tells_every_route_and_every_outcome(tenant: Tenant) -> None:
    told = httpx.get(f"{tenant.url}/v1/openapi.json").raise_for_status().json()
    assert told["openapi"] == "3.1.0"
    for verb in VERBS.values():
        operation = told["paths"][f"/v1/users/{{user}}/{verb.name}"][verb.method.lower()]
        assert operation["operationId"] == verb.name and operation["summary"] == verb.does.replace("`", "")
    schemas = told["components"]["schemas"]
    outcome = schemas["RememberAnswer"]["properties"]["result"]
    assert outcome["discriminator"]["propertyName"] == "outcome"
    names = set(outcome["discriminator"]["mapping"])
    assert {"written", "demoted", "duplicate", "conflict", "refused"} <= names
    assert schemas["Written"]["properties"]["outcome"]["const"] == "written"
    assert schemas["RememberArguments"]["additionalProperties"] is False
    assert schemas["RememberArguments"]["required"] == ["content"]


def test_U5_pages_ask_nobody_else_for_anything(tenant: Tenant) -> None:
    page = httpx.get(f"{tenant.url}/docs").raise_for_status()
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http://" not in page.text and "https://" not in page.text and "<script" not in page.text
    assert "/v1/users/{user}/remember" in page.text


def test_U5_what_is_remembered_is_found_and_an_outcome_tells_its_name(tenant: Tenant) -> None:
    written = tenant.post("42/remember", {"content": "Likes tea", "key": "drink"}).raise_for_status().json()["result"]
    assert (written["outcome"], written["done"], written["record"]["kind"]) == ("written", True, "fact")
    again = tenant.post("42/remember", {"content": "likes tea.", "key": "drink"}).json()["result"]
    assert (again["outcome"], again["done"]) == ("duplicate", False)
    found = tenant.post("42/search", {"query": "tea"}).json()["result"]
    assert found["mode"] == "words" and found["hits"][0]["record"] == written["record"]
    assert "Likes tea" in tenant.post("42/context", {"topic": "tea"}).json()["result"]
    assert tenant.get("42/about").json()["result"] == {"exists": True, "mode": "on"}
    assert tenant.get("nobody/about").json()["result"] == {"exists": False, "mode": "on"}
    ranked = tenant.post("42/rank", {"items": ["Coffee", "Tea ceremonies"]}).json()["result"]
    assert ranked[0]["item"] == "Tea ceremonies" and ranked[0]["position"] == 1


# tenants and users


def test_R4_U5_two_tenants_have_the_same_user_and_never_see_each_other(tenants: Callable[..., Tenant]) -> None:
    one, other, default = tenants(), tenants(), tenants("default")
    for tenant, drink in ((one, "tea"), (other, "rum"), (default, "milk")):
        tenant.post("42/remember", {"content": f"Likes {drink}", "key": "drink"}).raise_for_status()
    assert (one.texts("42"), other.texts("42"), default.texts("42")) == (
        ["drink: Likes tea"], ["drink: Likes rum"], ["drink: Likes milk"],
    )  # fmt: skip
    [record] = one.get("42/read").json()["result"]
    problem(other.get("42/get", ref=record["id"]), 404, "NotFoundError")
    problem(other.post("42/forget", {"ref": record["id"]}), 404, "NotFoundError")
    for crossing in (
        f"@{one.name}/42", f"%40{one.name}%2F42", f"@{one.name}%2f42", f"@{one.name}%252F42",
        f"42/../@{one.name}%2F42", f"%2E%2E%2F@{one.name}%2F42", f"%00@{one.name}%2F42",
    ):  # fmt: skip
        for thief in (other, default):
            raw = thief.http.build_request("POST", "/v1/users/x/read", json={})
            raw.url = raw.url.copy_with(raw_path=f"/v1/users/{crossing}/read".encode())
            answer = thief.http.send(raw)
            assert not mentions(answer.text, "tea") and answer.status_code in (200, 400, 404, 422), answer.text
            if answer.status_code == 200:
                assert answer.json()["result"] == []
    for tenant in (one, other):
        assert tenant.http.get("/v1/users").json() == {"result": ["42"], "next": None}
        assert not mentions(tenant.http.get("/v1/trends", params={"k": 5}).text, "tea")
    assert not any(user.startswith("@") for user in default.http.get("/v1/users").json()["result"])
    assert other.http.delete("/v1/users/42").json()["result"]["places"]
    assert one.texts("42") == ["drink: Likes tea"] and other.http.get("/v1/users").json()["result"] == []


def test_R4_U5_the_same_idempotency_key_means_nothing_to_others(tenants: Callable[..., Tenant]) -> None:
    one, other = tenants(), tenants()
    headers = {"idempotency-key": "the same for everybody"}
    first = one.post("42/note", {"content": "Likes tea"}, headers=headers).json()["result"]
    second = other.post("42/note", {"content": "Likes tea"}, headers=headers).json()["result"]
    third = one.post("43/note", {"content": "Likes rum"}, headers=headers).json()["result"]
    assert len({first["record"]["id"], second["record"]["id"], third["record"]["id"]}) == 3


def test_R4_U5_runs_and_identities_are_the_tenants_own(tenants: Callable[..., Tenant]) -> None:
    one, other = tenants(), tenants()
    run = {"id": "run-1", "day": "2026-02-12", "started_at": "2026-02-12T23:00:00.000000Z", "status": "completed"}
    one.post("42/note_run", {"run": run}).raise_for_status()
    assert [user for user, _ in one.http.get("/v1/runs").json()["result"]] == ["42"]
    assert other.http.get("/v1/runs").json()["result"] == []
    who = {"channel": "telegram", "name": "42"}
    for verb in ("resolve", "start_link", "pending", "unlink"):
        problem(one.http.post(f"/v1/identities/{verb}", json=who), 403, "NotAllowedError")
    default = tenants("default")
    assert default.http.post("/v1/identities/resolve", json=who).json()["result"] == {"user": "telegram:42"}
    code = default.http.post("/v1/identities/start_link", json=who).raise_for_status().json()["result"]["text"]
    entered = {"channel": "web", "name": "a", "code": code}
    pending = default.http.post("/v1/identities/enter_code", json=entered).raise_for_status().json()["result"]
    assert pending["other_channel"] == "telegram" and "Join this channel" in pending["message"]
    wrong = default.http.post("/v1/identities/enter_code", json=entered | {"code": "AAAAA-AAAAA"})
    assert problem(wrong, 409, "LinkError")["kind"] == "wrong"
    stolen = {"channel": "web", "name": f"@{one.name}/42", "user": "me"}
    problem(default.http.post("/v1/identities/bind", json=stolen), 422, "InvalidInputError")
    problem(default.http.post("/v1/identities/bind", json=who | {"user": f"@{one.name}/42"}), 422, "InvalidInputError")


@pytest.mark.everyday(4)
@pytest.mark.parametrize(
    "user", ["a/b", "..", ".", "%2F", "ü 1", "?x#y", "a:b@c", "\U0001f375", "users", "+ &=", "'\""]
)
def test_U5_whatever_a_user_is_called_it_is_one_part_of_the_path(user: str, tenant: Tenant) -> None:
    named = quote(user, safe="").replace(".", "%2E")
    asked = tenant.http.build_request("POST", "/", json={"content": f"Note of {user}"})
    asked.url = asked.url.copy_with(raw_path=f"/v1/users/{named}/note".encode())
    tenant.http.send(asked).raise_for_status()
    assert tenant.http.get("/v1/users").json()["result"] == [user]


def test_R4_U5_nobody_waits_for_the_user_of_another_tenant(tenants: Callable[..., Tenant]) -> None:
    one, other = tenants(), tenants()
    one.post("42/note", {"content": "A first note"}).raise_for_status()
    with ThreadPoolExecutor(20) as pool, one.app.user(f"@{one.name}/42").batch():  # their lock, held by this thread
        waiting = [pool.submit(one.post, "42/note", {"content": f"Note number {number}"}) for number in range(20)]
        for number in range(12):
            assert other.post("42/note", {"content": f"Note number {number}"}).is_success
        assert not any(future.done() for future in waiting)
    assert all(future.result().is_success for future in waiting)


# who may


def _credentials(tenant: Tenant) -> dict[str, str | None]:
    keys = tenant.app.keys
    made = {scope: keys.create(tenant.name, scope=scope) for scope in ("read", "write", "admin")}
    revoked, revoked_text = keys.create(tenant.name, scope="admin")
    keys.revoke(revoked.id)
    found: dict[str, str | None] = {scope: text for scope, (_, text) in made.items()}
    for scope in ("read", "write"):
        asked = {"user": "42", "scope": scope}
        answer = tenant.http.post("/v1/tokens", json=asked)
        assert answer.status_code == 201
        found[f"token to {scope}"] = answer.json()["result"]["token"]
    token = found["token to write"] or ""
    signature = 44  # characters at the end of a token
    found |= {
        "nothing": None,
        "revoked": revoked_text,
        "unknown": f"rk_{'0' * 16}_{'0' * 48}",
        "garbage": "rt_x.y",
        "other": "x",
        "another token's signature": (found["token to read"] or "")[:-signature] + token[-signature:],
        "token without its signature": token[:-signature],
        "token with more": token + "AA",
    }
    return found


MATRIX = {
    "read": {"read", "write", "admin", "token to read", "token to write"},
    "write": {"write", "admin", "token to write"},
    "read of another": {"read", "write", "admin"},
    "token": {"read", "write", "admin"},
    "users": {"admin"},
    "admin": {"admin"},
    "tool that reads": {"read", "write", "admin", "token to read", "token to write"},
    "tool that writes": {"write", "admin", "token to write"},
    "export": {"read", "write", "admin", "token to read", "token to write"},
    "identities": set(),
}
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "read": ("GET", "/v1/users/42/count", None),
    "write": ("POST", "/v1/users/42/set_scratch", {"key": "a", "value": "b"}),
    "read of another": ("POST", "/v1/users/43/read", {}),
    "token": ("POST", "/v1/tokens", {"user": "42"}),
    "users": ("GET", "/v1/users", None),
    "admin": ("POST", "/v1/users/42/upkeep", {}),
    "tool that reads": ("POST", "/v1/users/42/tools/memory_search", {"arguments": {"query": "tea"}}),
    "tool that writes": ("POST", "/v1/users/42/tools/memory_save", {"arguments": {"content": "Likes tea"}}),
    "export": ("GET", "/v1/users/42/export", None),
    "identities": ("GET", "/v1/identities", None),
}


def test_U5_who_may_do_what(tenant: Tenant) -> None:
    credentials = _credentials(tenant)
    allowed: dict[str, set[str]] = {}
    with httpx.Client(base_url=tenant.url) as http:
        for what, (method, path, body) in REQUESTS.items():
            allowed[what] = set()
            for who, text in credentials.items():
                headers = {} if text is None else {"authorization": f"Bearer {text}"}
                answer = http.request(method, path, json=body, headers=headers)
                if answer.is_success:
                    allowed[what].add(who)
                else:
                    known = who in ("read", "write", "admin") or who.startswith("token to")
                    assert answer.status_code == (403 if known else 401), (what, who, answer.text)
                    assert known or answer.headers["www-authenticate"].startswith("Bearer")
                    assert not mentions(answer.text, "tea")
    assert allowed == MATRIX
    for doubled in (["Bearer a", f"Bearer {tenant.text}"], [f"Basic {tenant.text}"], [f"Bearer  {tenant.text} x"]):
        answer = httpx.get(f"{tenant.url}/v1/users", headers=[("authorization", value) for value in doubled])
        assert answer.status_code == 401


def test_U5_a_token_is_good_for_no_more_than_its_key(tenant: Tenant, tenants: Callable[..., Tenant]) -> None:
    reader = tenants(tenant.name, scope="read")
    problem(reader.http.post("/v1/tokens", json={"user": "42", "scope": "write"}), 403, "NotAllowedError")
    for wrong in (
        {"user": ""},
        {"user": "42", "minutes": 0},
        {"user": "42", "minutes": 1441},
        {"user": "42", "scope": "admin"},
    ):
        problem(reader.http.post("/v1/tokens", json=wrong), 422, "InvalidInputError")
    token = reader.http.post("/v1/tokens", json={"user": "42"}).json()["result"]["token"]
    headers = {"authorization": f"Bearer {token}"}
    assert httpx.get(f"{tenant.url}/v1/users/42/count", headers=headers).is_success
    problem(httpx.post(f"{tenant.url}/v1/tokens", json={"user": "42"}, headers=headers), 403, "NotAllowedError")
    with recollect.open(tenant.app.config.memory_dir) as elsewhere:
        elsewhere.keys.revoke(reader.key.id)  # as another process does
    problem(httpx.get(f"{tenant.url}/v1/users/42/count", headers=headers), 401, "NotAllowedError")
    problem(reader.get("42/read"), 401, "NotAllowedError")


def test_U5_a_token_ends_by_itself(tmp_path: Path) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        door = Authentication(app.keys, open=False, clock=clock)
        _, text = app.keys.create(scope="write")
        key = door.caller([(b"authorization", f"Bearer {text}".encode())])
        token, until = door.token(key, "42", "read", 15)
        headers = [(b"authorization", f"bearer {token}".encode())]
        caller = door.caller(headers)
        assert (caller.user, caller.scope, caller.tenant, caller.key) == ("42", "read", "default", key.key)
        clock.tick(seconds=899)
        assert door.caller(headers) == caller
        clock.tick(seconds=1)
        assert clock() == until
        with pytest.raises(Problem):
            door.caller(headers)


def test_U5_without_a_key_only_this_machine_is_let_in_and_with_the_first_one_nobody_without(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        for host in ("0.0.0.0:0", "[::]:0"):
            with pytest.raises(ConfigError, match="recollect keys create"):
                service.Server(app, Address.parse(host), hosts=["memory.example.com"])
        with serving(app) as url, httpx.Client(base_url=url) as http:
            assert http.post("/v1/users/42/note", json={"content": "Likes tea"}).is_success
            assert http.get("/v1/users").json()["result"] == ["42"]
            token = http.post("/v1/tokens", json={"user": "42"}).json()["result"]["token"]
            headers = {"authorization": f"Bearer {token}"}
            assert http.get("/v1/users/42/count", headers=headers).is_success
            key, _ = app.keys.create()
            problem(http.get("/v1/users/42/count"), 401, "NotAllowedError")
            problem(http.get("/v1/users/42/count", headers=headers), 401, "NotAllowedError")
            app.keys.revoke(key.id)
            problem(http.get("/v1/users/42/count"), 401, "NotAllowedError")
        with pytest.raises(ConfigError, match="recollect keys create"):
            service.Server(app, Address.parse("0.0.0.0:0"), hosts=["memory.example.com"])
        app.keys.create()
        service.Server(app, Address.parse("0.0.0.0:0"), hosts=["memory.example.com"])


@pytest.mark.everyday(1)
@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip"])
def test_U5_a_proxy_before_a_server_without_keys_lets_nobody_in(tmp_path: Path, name: str) -> None:
    with recollect.open(tmp_path) as app, serving(app) as url:
        assert httpx.get(f"{url}/v1/users").is_success
        for path in ("/v1/users", "/v1/users/me/about"):
            told = httpx.get(url + path, headers={name: "203.0.113.7"})
            assert told.status_code == 401 and "proxy" in told.json()["detail"]
        assert httpx.post(f"{url}/mcp", json={}, headers={name: "203.0.113.7"}).status_code == 401


@pytest.mark.parametrize("path", ["/", "/v1/users", "/health/live", "/metrics", "/mcp", "/v1/openapi.json"])
def test_U5_no_web_page_gets_in_through_a_browser(path: str, tenant: Tenant) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "127.0.0.1:x"):
        answer = tenant.http.get(path, headers={"host": host})
        assert answer.status_code == 421, (host, answer.text)
    another = "http://127.0.0.1:1"  # a page that another program of this machine serves
    for origin in ("http://evil.example", "null", "https://127.0.0.1.evil.example", "file://", another):
        assert tenant.http.get(path, headers={"origin": origin}).status_code == 403
    assert tenant.http.get("/health/live", headers={"origin": tenant.url}).is_success
    assert tenant.http.get("/health/live", headers={"host": "localhost:1234"}).is_success
    plain = tenant.http.post("/v1/users/42/note", content=b'{"content": "x"}', headers={"content-type": "text/plain"})
    problem(plain, 415, "BadRequestError")


# what is wrong


def test_U5_what_is_wrong_is_told_with_the_field(tenant: Tenant) -> None:
    def wrong(path: str, body: Any) -> dict[str, Any]:
        return problem(tenant.post(path, body), 422, "InvalidInputError")

    assert wrong("42/remember", {"content": "x", "colour": "red"})["field"] == "colour"
    assert wrong("42/remember", {})["field"] == "content"
    assert wrong("42/remember", {"content": 5})["field"] == "content"
    assert wrong("42/remember", {"content": "x", "confidence": 2})["field"] == "confidence"
    assert wrong("42/remember", {"content": "x", "confidence": True})["field"] == "confidence"
    assert wrong("42/remember", {"content": "x", "tags": ["a", 3]})["field"] == "tags[1]"
    assert "preference" in wrong("42/remember", {"content": "x", "category": "like"})["detail"]
    assert wrong("42/remember", [])["field"] == "body"
    assert (
        wrong("42/report_many", {"events": [{"kind": "save", "title": "a"}, {"kind": "save", "b": 1}]})["field"]
        == "events[1].b"
    )
    assert (
        wrong("42/batch", {"operations": [{"verb": "note", "arguments": {"content": "a", "x": 1}}]})["field"]
        == "operations[0].x"
    )
    assert wrong("42/batch", {"operations": [{"verb": "export"}]})["field"] == "operations[0].verb"
    assert wrong("42/undo", {"target": 10**30})["field"].startswith("target")
    lone = tenant.http.post(
        "/v1/users/42/note", content=b'{"content": "\\ud800"}', headers={"content-type": "application/json"}
    )
    assert problem(lone, 422, "InvalidInputError")["field"] == "content"
    assert problem(tenant.get("42/sessions", limit="x"), 422, "InvalidInputError")["field"] == "limit"
    assert problem(tenant.get("42/sessions", nothing="x"), 422, "InvalidInputError")["field"] == "nothing"
    assert problem(tenant.get("42/numbered?number=1&number=2"), 422, "InvalidInputError")["field"] == "number"
    assert problem(tenant.get("42/read", cursor="?"), 422, "InvalidInputError")["field"] == "cursor"
    assert problem(tenant.get("a%00b/read"), 422, "InvalidInputError")["field"] == "user"
    assert problem(tenant.get(f"{'a' * 129}/read"), 422, "InvalidInputError")["field"] == "user"
    acting = {"recollect-acting": '{"actor": 5}'}
    assert (
        problem(tenant.post("42/note", {"content": "x"}, headers=acting), 422, "InvalidInputError")["field"] == "actor"
    )
    acting = {"recollect-acting": '{"may_be_done": 5}'}
    problem(tenant.post("42/note", {"content": "x"}, headers=acting), 422, "InvalidInputError")
    assert tenant.http.get("/v1/users").json()["result"] == [], "nothing was made of any of it"


def test_U5_what_is_right_in_itself_but_does_not_fit_what_is_there_is_a_conflict(tenant: Tenant) -> None:
    tenant.post("42/remember", {"content": "Likes tea", "key": "drink"}).raise_for_status()
    jotted = tenant.post("42/jot", {"content": "Had tea"}).raise_for_status().json()["result"]["record"]["id"]

    def conflict(verb: str, body: Any, **how: Any) -> str:
        found: str = problem(tenant.post(f"42/{verb}", body, **how), 409, "InvalidInputError")["field"]
        return found

    assert conflict("update", {"ref": jotted, "content": "Had rum"}) == "content"
    assert conflict("merge", {"refs": ["drink", jotted], "content": "Tea"}) == "refs"
    assert conflict("say", {"content": "Hello"}) == "session"
    assert conflict("report", {"kind": "save", "title": "Tea", "at": "2999-01-01"}) == "at"
    assert conflict("batch", {"operations": [{"verb": "say", "arguments": {"content": "Hello"}}]}) == "session"
    acting = {"recollect-acting": json.dumps({"session": "s1"})}
    assert tenant.post("42/say", {"content": "Hello"}, headers=acting).is_success


def test_U5_an_argument_is_refused_for_what_it_is_before_anything_is_looked_up(tenant: Tenant) -> None:
    """The same in an empty memory: what is wrong in itself is never a question of what is there."""
    for verb, name, wrong in (
        ("update", "valid_from", "soon"), ("update", "content", " \n"), ("update", "ref", "a\nb"),
        ("merge", "refs", ["one"]), ("forget", "reason", "x" * 501), ("note", "source", "a\nb"),
        ("remember", "key", "?!"), ("remember", "day", "9001-01-01"), ("jot", "section", "Nonsense"),
        ("erase_topic", "topic", "..."), ("edit", "text", "\ufeff\n"), ("report", "at", "2026-02-30"),
        ("history", "before", -1), ("history", "before", 1.5), ("undo", "target", "9" * 25), ("spend", "cost", -1),
        ("rank", "items", [{"title": 5}]), ("rank", "items", [{}]), ("unread", "marks", [{"seq": 1}]),
        ("note_run", "run", {"id": "a", "day": "soon", "started_at": "2026-01-01"}),
    ):  # fmt: skip
        needed = {"update": {"ref": "drink"}, "merge": {"content": "x"}, "forget": {"ref": "drink"}, "report": {"kind": "save"},
                  "spend": {"operation": "x"}, "unread": {"until": "2026-01-01"}}.get(verb, {"content": "x"})  # fmt: skip
        takes = VERBS[verb].parameters
        given: dict[str, Any] = {key: value for key, value in needed.items() if key in takes} | {name: wrong}
        assert problem(tenant.post(f"42/{verb}", given), 422, "InvalidInputError")["field"].startswith(name), (
            verb,
            wrong,
        )
    assert tenant.http.get("/v1/users").json()["result"] == []


def test_U5_a_tenant_may_call_a_user_what_the_default_one_may_not(
    tenant: Tenant, tenants: Callable[..., Tenant]
) -> None:
    user = {"user": "@team/bob"}
    made = tenant.http.post("/v1/tokens", json=user).raise_for_status().json()["result"]["token"]
    who = {"authorization": f"Bearer {made}"}
    assert httpx.get(f"{tenant.url}/v1/users/%40team%2Fbob/count", headers=who).is_success
    assert tenant.http.post("/v1/logins", json=user).is_success
    for path in ("tokens", "logins"):
        problem(tenants("default").http.post(f"/v1/{path}", json=user), 422, "InvalidInputError")


def test_U5_a_whole_number_is_one_however_it_is_written(tenant: Tenant) -> None:
    for number in range(3):
        tenant.post("42/note", {"content": f"Note number {number}"}).raise_for_status()
    first = tenant.post("42/read", {"page": 2.0, "limit": 3.0}).raise_for_status().json()
    assert len(first["result"]) == 2
    assert len(tenant.post("42/read", {"cursor": "2"}).raise_for_status().json()["result"]) == 1
    assert tenant.post("42/read", {"cursor": "999999999"}).raise_for_status().json() == {"result": [], "next": None}
    last = tenant.post("42/read", {"cursor": first["next"], "limit": 3.0}).raise_for_status().json()
    assert len(last["result"]) == 1 and last["next"] is None


@pytest.mark.everyday(8)
@pytest.mark.parametrize("verb", ["read", "history", "sessions", "calls", "interactions"])
@pytest.mark.parametrize("cursor", ["next", "W10", "WzAsMV0", "WzAsInllc3RlcmRheSIsImEiXQ", "WzAsIlx1MDAwMCIsIngiXQ"])
def test_U5_a_cursor_that_was_not_given_here_is_refused(tenant: Tenant, verb: str, cursor: str) -> None:
    tenant.post("42/say", {"content": "Hello", "session": "s"}).raise_for_status()
    answer = tenant.post(f"42/{verb}", {"cursor": cursor}) if verb in ("read", "history") else None
    answer = answer or tenant.get(f"42/{verb}", cursor=cursor)
    if not answer.is_success:  # a number may be a place in the journal
        assert problem(answer, 409, "InvalidInputError")["field"] == "cursor"
    else:
        assert verb == "history"


def test_U5_every_name_in_the_document_is_there_once(tenant: Tenant) -> None:
    told = httpx.get(f"{tenant.url}/v1/openapi.json").raise_for_status()
    schemas = told.json()["components"]["schemas"]
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', told.text))
    assert named <= schemas.keys() and {"Line500", "Moment", "UserId", "Plain"} <= named
    assert "x-named" not in told.text
    assert {record.__name__ for record in recollect.records.RECORD_TYPES.values()} <= schemas.keys()
    assert all("properties" in schemas[record.__name__] for record in recollect.records.RECORD_TYPES.values())


@pytest.mark.parametrize("character", ["\\u0000", "\\ud800"])
def test_U5_what_no_database_can_hold_is_refused_wherever_it_is(
    character: str, tmp_path: Path, postgres_url: str
) -> None:
    requests = {
        "read": ("session", "source", "key", "tags"), "history": ("ref", "run", "call"), "undo": ("target",),
        "forget": ("ref", "replaced_by"), "rank": ("items",), "report_many": ("events",),
    }  # fmt: skip
    for where in (tmp_path, postgres_url):
        with recollect.open(where) as app, serving(app) as url, httpx.Client(base_url=url) as http:
            app.user("42").remember("Likes tea", key="drink")
            for verb, names in requests.items():
                for name in names:
                    text = f'"x{character}"'
                    value = {
                        "tags": f"[{text}]",
                        "items": f"[{text}]",
                        "events": f'[{{"kind": "save", "title": {text}}}]',
                    }
                    given = ({"ref": '"drink"'} if verb == "forget" else {}) | {name: value.get(name, text)}
                    body = "{" + ", ".join(f'"{key}": {told}' for key, told in given.items()) + "}"
                    answer = http.post(
                        f"/v1/users/42/{verb}", content=body, headers={"content-type": "application/json"}
                    )
                    assert problem(answer, 422, "InvalidInputError")["field"].startswith(name), (verb, name)
            for path in ("tasks/x%00", "numbers?ids=x%00", "sessions?offset=-1", "sessions?offset=99999999999"):
                assert problem(http.get(f"/v1/users/42/{path}"), 422, "InvalidInputError")
            assert http.post("/v1/users/42/search", json={"query": "tea\0"}).json()["result"]["hits"]


@pytest.mark.parametrize(
    "body",
    [b"{", b"", b'{"content": NaN}', b"\xff\xfe", b'{"content": "x"}}', b"[" * 100_000, b"{'a': 1}", b'"\\ud800'],
)
def test_U5_what_is_not_json_is_said_to_be_none(body: bytes, tenant: Tenant) -> None:
    answer = tenant.http.post("/v1/users/42/note", content=body, headers={"content-type": "application/json"})
    if body:
        problem(answer, 400, "BadRequestError")
    else:
        assert problem(answer, 422, "InvalidInputError")["field"] == "content"
    assert tenant.get("42/about").is_success, "the next request is not touched"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("NaN", "the body is not JSON: NaN is not a number there"),
        ("-Infinity", "the body is not JSON: -Infinity is not a number there"),
        ("9" * 5000, "the body contains a number with too many digits"),
        ("[" * 200 + "]" * 200, "the body is nested too deeply"),
        ("[" * 950 + "]" * 950, "the body is nested too deeply"),
    ],
)
def test_U5_a_body_that_cannot_be_read_is_told_why(value: str, said: str, tenant: Tenant) -> None:
    body = f'{{"content": "Likes tea", "metadata": {{"a": {value}}}}}'
    answer = tenant.http.post("/v1/users/42/note", content=body, headers={"content-type": "application/json"})
    assert problem(answer, 400, "BadRequestError")["detail"] == said
    assert tenant.texts("42") == []


def test_U5_metadata_that_is_nested_too_deeply_is_named(tenant: Tenant) -> None:
    told = [
        problem(tenant.post("42/note", {"content": "x", "metadata": _nested(levels)}), 422, "InvalidInputError")
        for levels in (101, 105)
    ]
    assert {one["field"] for one in told} == {"metadata"}
    assert tenant.post("42/note", {"content": "Likes tea", "metadata": _nested(100)}).is_success
    for answer in (tenant.post("42/read"), tenant.get("42/history"), tenant.http.get("/v1/users/42/export")):
        assert answer.is_success, answer.text


def _nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


def test_U5_half_a_character_is_refused_wherever_it_is(tenant: Tenant) -> None:
    head = {"content-type": "application/json"}
    half = r'"bad \ud800 half"'
    bodies = {
        "42/note": [f'{{"content": {half}}}', f'{{"content": "x", "tags": [{half}]}}', f"{{{half}: 1}}",
                    f'{{"content": "x", "metadata": {{{half}: {half}}}}}'],
        "42/search": [f'{{"query": {half}}}', f'{{"query": "x", "type": {half}}}'],
        "42/read": [f'{{"cursor": {half}}}', f'{{"ids": [{half}]}}'],
        "42/tools/memory_save": [f'{{"arguments": {{"content": {half}}}}}', f'{{"arguments": {{{half}: 1}}}}',
                                 f'{{"arguments": {{}}, "session": {half}}}', f'{{"arguments": {half}}}'],
        "42/batch": [f'{{"operations": [{{"verb": {half}, "arguments": {{}}}}]}}'],
    }  # fmt: skip
    for path, given in bodies.items():
        for body in given:
            answer = tenant.http.post(f"/v1/users/{path}", content=body, headers=head)
            assert answer.status_code in (200, 400, 404, 409, 422), (path, body, answer.text)
            answer.json()
    for path, body in (("tokens", f'{{"user": {half}}}'), ("logins", f'{{"user": {half}}}')):
        assert tenant.http.post(f"/v1/{path}", content=body, headers=head).status_code == 422
    assert tenant.texts("42") == []


def test_U5_who_lacks_a_scope_is_told_what_has_it(tenant: Tenant) -> None:
    made = tenant.http.post("/v1/tokens", json={"user": "42", "scope": "read"}).json()["result"]["token"]
    head = {"authorization": f"Bearer {made}"}
    for path, body in (("note", {"content": "x"}), ("tools/memory_save", {"arguments": {"content": "x"}})):
        told = problem(httpx.post(f"{tenant.url}/v1/users/42/{path}", json=body, headers=head), 403, "NotAllowedError")
        assert "an API key or a token with the scope write" in told["detail"]
    told = problem(httpx.get(f"{tenant.url}/v1/users", headers=head), 403, "NotAllowedError")
    assert told["detail"] == "this requires an API key with the scope admin"


def test_U5_a_link_is_for_a_user_or_for_an_operator(tenant: Tenant) -> None:
    both = problem(tenant.http.post("/v1/logins", json={"operator": True, "user": "42"}), 422, "InvalidInputError")
    assert both["field"] == "operator" and "user" in both["detail"]
    for one in ({"operator": True}, {"operator": True, "user": None}, {"operator": False, "user": "42"}):
        assert tenant.http.post("/v1/logins", json=one).status_code == 201


@pytest.mark.parametrize("wrong", [{}, [], 1, True])
def test_U5_a_word_of_a_list_is_text(wrong: Any, tenant: Tenant) -> None:
    problem(tenant.post("42/read", {"type": wrong}), 422, "InvalidInputError")
    problem(tenant.post("42/search", {"query": "tea", "type": wrong}), 422, "InvalidInputError")


def test_U5_what_is_not_set_up_is_no_failure_of_the_server(tenant: Tenant) -> None:
    assert "MEMORY_EMBEDDER" in problem(tenant.post("42/embed"), 409, "ConfigError")["detail"]


def test_U5_what_is_not_there_is_not_found(tenant: Tenant) -> None:
    problem(tenant.get("42/nothing"), 404, "NotFoundError")
    problem(tenant.http.get("/v1/nothing"), 404, "NotFoundError")
    problem(tenant.http.get("/v1/users/42/tools/x/y"), 404, "NotFoundError")
    problem(tenant.get("42/get", ref="nothing"), 404, "NotFoundError")
    problem(tenant.post("42/tools/nothing"), 404, "NotFoundError")
    problem(tenant.get("42/tasks/call-1"), 404, "NotFoundError")
    answer = tenant.http.get("/v1/users/42/remember")
    assert problem(answer, 405, "BadRequestError") and answer.headers["allow"] == "POST"
    for method in ("HEAD", "OPTIONS", "PUT", "TRACE"):
        assert tenant.http.request(method, "/v1/users/42/count").status_code == 405
    answer = tenant.http.get("/v1/users/%FF/count")
    problem(answer, 400, "BadRequestError")


def test_U5_a_request_has_an_id_in_the_answer_and_in_the_log(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "recollect"):
        answer = tenant.http.get("/v1/users/42/count", headers={"x-request-id": "my-request.1"})
        assert answer.headers["x-request-id"] == "my-request.1" and "my-request.1 count 200" in caplog.text
        for insane in ("a b", "x" * 65, "<script>", ""):
            made = tenant.http.get("/v1/users/42/numbered?number=7", headers={"x-request-id": insane})
            assert made.headers["x-request-id"].startswith("request-")
            assert made.json()["request_id"] == made.headers["x-request-id"]


def test_R4_U5_the_log_holds_nothing_that_was_said(tenant: Tenant, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        tenant.post("42/remember", {"content": "Likes Lapsang", "key": "Souchong"})
        tenant.post("42/search", {"query": "Lapsang"})
        tenant.post("42/remember", {"content": "x", "Lapsang": "Souchong"})
        tenant.post("42/tools/memory_save", {"arguments": {"content": "Lapsang too"}})
        tenant.http.get("/v1/users/42/count?Lapsang=1")
        tenant.http.post("/v1/users/42/note", content=b"Lapsang", headers={"content-type": "application/json"})
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith("recollect"))
    assert ours and "Lapsang" not in ours and "Souchong" not in ours


def test_U5_storage_trouble_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "memories") as app:
        app.user("42").note("Likes tea")
    with recollect.open(tmp_path / "memories") as app, serving(app) as url:
        (tmp_path / "memories" / "42" / "memory.db").write_bytes(b"not a database at all" * 500)
        answer = httpx.get(f"{url}/v1/users/42/count")
        told = problem(answer, 500, "StoreCorruptError")
        assert "rebuild" in told["detail"] and str(tmp_path) not in answer.text


# limits


def test_U5_a_body_is_not_too_large(tenant: Tenant) -> None:
    large = b'{"content": "' + b"x" * MOST_BODY + b'"}'
    headers = {"content-type": "application/json"}

    def refused(**how: Any) -> httpx.Response:
        try:
            return tenant.http.post("/v1/users/42/note", headers=headers, **how)
        except httpx.TransportError:  # it was closed before all of it was sent
            return httpx.Response(413, headers={"content-type": "application/problem+json"}, json={})

    assert refused(content=large).status_code == 413
    assert refused(content=iter([large])).status_code == 413
    assert problem(tenant.post("42/note", {"content": "x" * 300_000}), 422, "InvalidInputError")["field"] == "content"
    raw = socket.create_connection(("127.0.0.1", int(tenant.url.rpartition(":")[2])), PATIENCE)
    head = f"POST /v1/users/42/note HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {tenant.text}\r\n"
    with raw:
        raw.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {MOST_BODY + 1}\r\n\r\n".encode())
        answer = raw.recv(65536)
        assert answer.startswith(b"HTTP/1.1 413") and b"connection: close" in answer
    assert tenant.texts("42") == []


def test_U5_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    now = [100.0]
    with recollect.open(tmp_path) as app, serving(app, limits=RateLimits(6, 3, lambda: now[0])) as url:

        def ask(user: str) -> httpx.Response:
            return httpx.get(f"{url}/v1/users/{user}/about")

        left = [ask("42").headers["ratelimit-remaining"] for _ in range(3)]
        assert left == ["2", "1", "0"]
        answer = ask("42")
        assert problem(answer, 429, "TooManyRequestsError")["seconds"] == 20
        assert answer.headers["retry-after"] == "20" and answer.headers["ratelimit-limit"] == "3"
        assert ask("43").is_success, "others are not touched"
        now[0] += 20
        assert ask("42").is_success and ask("42").status_code == 429
        assert [ask(str(user)).status_code for user in range(6)].count(429) == 3, "the key has a limit, too"
        assert httpx.get(f"{url}/health/live").is_success


def test_U5_buckets_fill_steadily_and_never_run_over() -> None:
    now = [0.0]
    limits = RateLimits(0, 60, lambda: now[0])
    assert limits.take("key", None) == {}
    for _ in range(60):
        limits.take("key", "42")
    with pytest.raises(Problem) as raised:
        limits.take("key", "42")
    assert raised.value.headers["retry-after"] == "1"
    now[0] += 1
    limits.take("key", "42")
    now[0] += 10_000
    assert limits.take("key", "42")["ratelimit-remaining"] == "59"


# once


def test_U5_a_request_sent_twice_is_done_once(tenant: Tenant) -> None:
    headers = {"idempotency-key": "first-request-of-all"}
    for path, body in (
        ("42/note", {"content": "Likes tea"}),
        ("42/batch", {"operations": [{"verb": "note", "arguments": {"content": "Likes rum"}}]}),
        ("42/tools/memory_save", {"arguments": {"content": "Likes milk"}}),
        ("42/spend", {"operation": "test", "tokens_in": 5}),
        ("42/report", {"kind": "save", "title": "Tea"}),
        ("42/remember", {"content": "password: hunter2hunter2", "key": "secret"}),
    ):
        headers = {"idempotency-key": f"request to {path}"}
        first, second = (tenant.post(path, body, headers=headers) for _ in range(2))
        assert first.is_success and first.content == second.content, path
        assert "idempotent-replayed" not in first.headers and second.headers["idempotent-replayed"] == "true"
        other = tenant.post(path, {"content": "Likes something else", "operations": []}, headers=headers)
        assert other.status_code == 422
    assert sorted(tenant.texts("42")) == ["Likes milk", "Likes rum", "Likes tea"]
    assert tenant.get("42/usage").json()["result"][0]["tokens_in"] == 5
    changed = tenant.post("42/note", {"content": "Likes gin"}, headers={"idempotency-key": "request to 42/note"})
    assert problem(changed, 409, "InvalidInputError")["field"] == "Idempotency-Key"
    for wrong in ("short", "x" * 201):
        assert tenant.post("42/note", {"content": "x"}, headers={"idempotency-key": wrong}).status_code == 422


def test_U5_of_many_who_send_the_same_at_once_one_does_it(tenant: Tenant) -> None:
    def send(number: int) -> dict[str, Any]:
        headers = {"idempotency-key": f"request number {number % 4}"}
        answer = tenant.post("42/note", {"content": f"Note {number % 4}"}, headers=headers)
        found: dict[str, Any] = answer.json()["result"]
        return found

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(send, range(48)))
    assert sorted(tenant.texts("42")) == [f"Note {number}" for number in range(4)]
    assert len({outcome["record"]["id"] for outcome in outcomes}) == 4
    assert {outcome["outcome"] for outcome in outcomes} == {"written"}


def test_U5_two_requests_with_one_key_are_never_both_done(tenant: Tenant) -> None:
    def send(number: int) -> int:
        headers = {"idempotency-key": "the same for all of them"}
        return tenant.post("42/note", {"content": f"Note number {number}"}, headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(send, range(16)))
    assert len(tenant.texts("42")) == 1 and statuses <= {200, 409}
    assert 409 in {send(100), send(101)}


KILLED = """
import os, signal, sys
import recollect
from recollect.store.keys import ApiKeys
from recollect.surfaces.serve import Server, run_server
from recollect.surfaces.http_server import Address

if sys.argv[2] == "kill":
    ApiKeys.keep_answer = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
with recollect.open(sys.argv[1]) as app:
    server = Server(app, Address.parse("127.0.0.1:0"))
    run_server(server, app, workers=0, listening=lambda port: print(port, flush=True))
"""


def _process(where: str, *more: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, where, *(more or ("go on",))], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    return process, f"http://127.0.0.1:{int(process.stdout.readline())}"


def _ended(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    code = process.wait(PATIENCE)
    assert process.stdout is not None
    process.stdout.close()
    return code


@pytest.mark.everyday(1)
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    ("path", "body"),
    [("note", {"content": "Likes tea"}), ("tools/memory_save", {"arguments": {"content": "Likes tea"}})],
)
def test_U5_W2_a_kill_between_the_effect_and_the_answer_does_nothing_twice(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    process, url = _process(str(tmp_path), "kill")
    headers = {"idempotency-key": f"request to {path}"}
    with pytest.raises(httpx.TransportError):
        httpx.post(f"{url}/v1/users/42/{path}", json=body, headers=headers)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert process.stdout is not None
    process.stdout.close()
    with recollect.open(tmp_path) as app:
        memory = app.user("42")
        assert len(memory.history()) == 1
        with serving(app) as url:
            answers = [httpx.post(f"{url}/v1/users/42/{path}", json=body, headers=headers) for _ in range(2)]
            assert answers[0].is_success and answers[0].content == answers[1].content
        assert len(memory.history()) == 1 and memory.verify() == []
        assert [note.content for note in memory.read(kind="note")] == ["Likes tea"]


def lose_answers(tenant: Tenant) -> None:
    """As if the process had been killed before it could keep them."""
    with tenant.app.keys._store.write() as view:
        view.run("tidy_answers", before="9999")


def test_U5_W2_an_answer_that_was_lost_is_told_again_from_the_journal(tenant: Tenant) -> None:
    tenant.post("42/remember", {"content": "Kyiv", "key": "city"}).raise_for_status()
    said = tenant.post("42/say", {"content": "Hello", "session": "s1"}).json()["result"]["record"]["id"]
    notes = [
        tenant.post("42/note", {"content": f"Note about {what}"}).json()["result"]["record"]["id"]
        for what in ("tea", "rum", "milk")
    ]
    requests: list[tuple[str, dict[str, Any]]] = [
        ("remember", {"content": "Likes tea"}),
        ("remember", {"content": "Perhaps likes rum", "confidence": 0.3}),
        ("remember", {"content": "Read about gin", "durability": "daily"}),
        ("observe", {"content": "The limit is 100", "category": "finding"}),
        ("episode", {"topic": "Party", "summary": "They plan a party"}),
        ("say", {"content": "Good morning", "session": "s1"}),
        ("jot", {"content": "Walked"}),
        ("set_scratch", {"key": "plan", "value": "one"}),
        ("set_scratch", {"key": "plan", "value": "two"}),
        ("update", {"ref": "city", "content": "Lviv"}),
        ("pin", {"ref": "city"}),
        ("mark_important", {"messages": [said], "level": "high"}),
        ("merge", {"refs": notes[:2], "content": "Notes about tea and rum"}),
        ("forget", {"ref": notes[2]}),
        ("undo", {}),
        ("erase", {"refs": [notes[2]]}),
        ("pause", {}),
        ("resume", {}),
        ("consent", {"name": "trends"}),
        ("spend", {"operation": "chat", "cost": 1.0}),
        ("report", {"kind": "save", "title": "Tea"}),
        ("report_many", {"events": [{"kind": "save", "title": "Tea"}, {"kind": "save", "title": "Tea"}]}),
        ("upkeep", {}),
    ]
    for number, (path, body) in enumerate(requests):
        headers = {"idempotency-key": f"request number {number}"}
        first = tenant.post(f"42/{path}", body, headers=headers)
        told = first.raise_for_status().json()["result"]
        entries = tenant.get("42/history").json()["result"]
        lose_answers(tenant)
        second = tenant.post(f"42/{path}", body, headers=headers)
        again = second.raise_for_status().json()["result"]
        assert tenant.get("42/history").json()["result"] == entries, f"{path} was done twice"
        if path.startswith("report"):
            told, again = (one if isinstance(one, list) else [one] for one in (told, again))
            assert [one["interaction"] for one in again] == [one["interaction"] for one in told]
        elif isinstance(told, dict) and "outcome" in told:
            assert again["outcome"] == told["outcome"], path
            assert again.get("record") == told.get("record") and again.get("previous") == told.get("previous"), path
            assert [one["id"] for one in again.get("merged", ())] == [one["id"] for one in told.get("merged", ())]
            if path == "erase":
                assert again["receipt"]["ids"] == told["receipt"]["ids"]
        else:
            assert again == told
    assert len(tenant.get("42/interactions").json()["result"]) == 3
    shown = tenant.get("42/show")
    edit = {"text": shown.json()["result"].replace("Lviv", "Odesa") + "- Likes cocoa\n"}
    headers = {"idempotency-key": "an edit whose answer is lost", "if-match": shown.headers["etag"]}
    told = tenant.post("42/edit", edit, headers=headers).raise_for_status().json()["result"]
    lose_answers(tenant)
    again = tenant.post("42/edit", edit, headers=headers).raise_for_status().json()["result"]
    for name in ("outcome", "added", "updated", "removed", "run"):
        assert again[name] == told[name], name
    batch = {"operations": [{"verb": "note", "arguments": {"content": "Likes gin"}}]}
    headers = {"idempotency-key": "a batch whose answer is lost"}
    tenant.post("42/batch", batch, headers=headers).raise_for_status()
    lose_answers(tenant)  # and what was kept before it was done
    assert problem(tenant.post("42/batch", batch, headers=headers), 409, "DoneAlreadyError")["call"]


def test_R7_U5_no_answer_outlives_what_was_erased(tenant: Tenant) -> None:
    headers = {"idempotency-key": "a request to be erased"}
    record = tenant.post("42/note", {"content": "Likes tea"}, headers=headers).json()["result"]["record"]
    tenant.post("42/erase", {"refs": [record["id"]]}).raise_for_status()
    again = tenant.post("42/note", {"content": "Likes tea"}, headers=headers)
    assert not mentions(again.text, "tea") and problem(again, 409, "NotFoundError")
    assert tenant.texts("42") == []


# long lists, files, batches


def test_U5_a_long_list_comes_in_pages(tenant: Tenant) -> None:
    notes = [{"verb": "note", "arguments": {"content": f"Note number {n}"}} for n in range(25)]
    tenant.post("42/batch", {"operations": notes}).raise_for_status()
    found: list[str] = []
    cursor: str | None = None
    for number in range(4):
        query = {"page": 10} | ({} if cursor is None else {"cursor": cursor})
        answer = tenant.get("42/read", **query).raise_for_status().json()
        found += [record["text"] for record in answer["result"]]
        cursor = answer["next"]
        if cursor is None:
            break
        if number == 0:  # what comes and goes meanwhile makes nobody miss the others
            tenant.post("42/forget", {"ref": answer["result"][0]["id"]}).raise_for_status()
            tenant.post("42/note", {"content": "Note number 25"}).raise_for_status()
    assert found == [f"Note number {n}" for n in range(26)]
    assert len(tenant.get("42/read", limit=3).json()["result"]) == 3
    assert tenant.get("42/history", page=1000).json()["next"] is None


def test_U5_a_file_is_edited_only_as_it_was_read(tenant: Tenant) -> None:
    tenant.post("42/remember", {"content": "Likes tea"}).raise_for_status()
    shown = tenant.get("42/show")
    tag, text = shown.headers["etag"], shown.json()["result"]
    same = tenant.http.get("/v1/users/42/show", headers={"if-none-match": tag})
    assert same.status_code == 304 and same.content == b""
    edited = tenant.post("42/edit", {"text": text.replace("tea", "rum")}, headers={"if-match": tag})
    assert edited.json()["result"]["outcome"] == "edited" and tenant.texts("42") == ["Likes rum"]
    stale = tenant.post("42/edit", {"text": text}, headers={"if-match": tag})
    problem(stale, 412, "PreconditionFailedError")
    assert tenant.texts("42") == ["Likes rum"] and tenant.get("42/show").headers["etag"] != tag


def test_U5_a_batch_is_done_as_a_whole_or_not_at_all(tenant: Tenant) -> None:
    together = [
        {"verb": "remember", "arguments": {"content": "Likes tea", "key": "drink"}},
        {"verb": "update", "arguments": {"ref": "drink", "content": "Likes rum"}},
        {"verb": "note", "arguments": {"content": "A note"}},
    ]
    answer = tenant.post("42/batch", {"operations": together}).raise_for_status().json()["result"]
    assert [one["outcome"] for one in answer] == ["written", "updated", "written"]
    wrong = [*together, {"verb": "forget", "arguments": {"ref": "nothing"}}]
    problem(tenant.post("43/batch", {"operations": wrong}), 404, "NotFoundError")
    assert tenant.texts("43") == []


def test_R5_U5_the_journal_says_on_whose_behalf(tenant: Tenant) -> None:
    acting = {"actor": "agent", "agent": "bot", "session": "s 1 ü", "run": "run-1", "call": "call-1", "trusted": False}
    headers = {"recollect-acting": json.dumps(acting)}
    tenant.post("42/note", {"content": "Likes tea"}, headers=headers).raise_for_status()
    [entry] = tenant.get("42/history", call="call-1").json()["result"]
    assert (entry["actor"], entry["run"], entry["after"]["agent"], entry["after"]["session"], entry["after"]["trusted"]) == (
        "agent", "run-1", "bot", "s 1 ü", False,
    )  # fmt: skip


def test_R8_U5_a_memory_goes_out_and_in_as_a_stream(tenant: Tenant) -> None:
    tenant.post("42/remember", {"content": "Likes tea"}).raise_for_status()
    out = tenant.get("42/export")
    assert out.headers["content-type"] == "application/zip" and out.content.startswith(b"PK")
    kind = {"content-type": "application/octet-stream"}
    report = tenant.http.post("/v1/users/43/import?dry_run=true", content=out.content, headers=kind).json()["result"]
    assert report["written"] == 1 and tenant.texts("43") == []
    tenant.http.post("/v1/users/43/import", content=iter([out.content]), headers=kind).raise_for_status()
    assert tenant.texts("43") == ["Likes tea"]
    lines = "# About me\n- Likes rum\n"
    tenant.http.post("/v1/users/44/import?name=notes.md", content=lines, headers=kind).raise_for_status()
    assert any("rum" in text for text in tenant.texts("44"))
    for content in (b"PK\x03\x04 not really", b"\x00" * 100):
        wrong = tenant.http.post("/v1/users/45/import", content=content, headers=kind)
        assert problem(wrong, 409, "InvalidInputError")["field"] == "path"
        assert "/tmp" not in wrong.text


# tools


def test_T1_U5_tools_are_declared_in_every_format(tenant: Tenant) -> None:
    for format in ("openai", "responses", "anthropic", "gemini", "mcp"):
        query = {"format": format, "suites": ["notes", "facts"]}
        told = tenant.http.get("/v1/tools", params=query).raise_for_status()
        assert "memory_save" in told.text and "remember_fact" in told.text and "write_memory" not in told.text
    assert problem(tenant.http.get("/v1/tools?format=xml"), 422, "InvalidInputError")["field"] == "format"
    assert problem(tenant.http.get("/v1/tools?suites=xml"), 422, "InvalidInputError")["field"] == "suites"


def test_T1_U5_a_tool_is_called_for_its_user_alone(tenant: Tenant) -> None:
    saved = tenant.post(
        "42/tools/memory_save", {"arguments": {"content": "Likes tea"}, "session": "s1", "agent": "bot"}
    )
    result = saved.raise_for_status().json()["result"]
    assert result["status"] == "ok" and tenant.texts("42") == ["Likes tea"]
    [entry] = tenant.get("42/history", call=result["call"]).json()["result"]
    assert entry["actor"] == "tool:memory_save" and entry["after"]["session"] == "s1"
    other = tenant.post("43/tools/recall_facts", {"arguments": {"user_id": 42, "query": "tea"}}).json()["result"]
    assert "Likes tea" not in other["text"]
    wrong = tenant.post("42/tools/memory_save", {"arguments": {}}).json()["result"]
    assert wrong["status"] == "invalid" and "content" in wrong["text"]
    assert tenant.get(f"42/tasks/{result['call']}").json()["result"]["status"] == "done"
    problem(tenant.get(f"43/tasks/{result['call']}"), 404, "NotFoundError")


def test_W1_U5_a_call_that_takes_long_is_queued_and_can_be_asked_for(tmp_path: Path) -> None:
    with recollect.open(tmp_path, tool_async=True, tool_timeout_ms=1) as app, serving(app) as url:
        app.user("42").note("A first note")
        with httpx.Client(base_url=url, timeout=PATIENCE) as http:
            with app.user("42").batch():  # the lock of the user, held by this thread
                answer = http.post("/v1/users/42/tools/memory_save", json={"arguments": {"content": "Likes tea"}})
                assert answer.status_code == 202 and answer.json()["result"]["status"] == "queued", answer.text
                where = answer.headers["location"]
                assert where == f"/v1/users/42/tasks/{answer.json()['result']['call']}"
                assert http.get(where).status_code == 202
            while (found := http.get(where)).status_code == 202:
                pass
            told = found.raise_for_status().json()["result"]
            assert told["status"] == "done" and told["entries"][0]["after"]["content"] == "Likes tea"


# health and numbers


def test_U7_U5_numbers_are_for_this_machine_or_an_admin(tenants: Callable[..., Tenant], tenant: Tenant) -> None:
    tenant.get("42/count")
    numbers = httpx.get(f"{tenant.url}/metrics")
    assert 'recollect_http_requests_total{route="count",status="200"}' in numbers.text
    assert numbers.headers["content-type"].startswith("text/plain") and tenant.name not in numbers.text
    forwarded = {"x-forwarded-for": "1.2.3.4"}
    problem(httpx.get(f"{tenant.url}/metrics", headers=forwarded), 401, "NotAllowedError")
    reader = tenants(scope="write")
    problem(reader.http.get("/metrics", headers=forwarded), 403, "NotAllowedError")
    assert tenant.http.get("/metrics", headers=forwarded).is_success


def test_U5_a_server_says_whether_it_lives_and_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_READY_SECONDS", 0.0)
    with recollect.open(tmp_path) as app, serving(app) as url:
        assert httpx.get(f"{url}/health/live").json() == {"status": "ok"}
        assert httpx.get(f"{url}/health/ready").json() == {"status": "ok", "trouble": []}
        app.keys.create()
        app.keys.close()
        (tmp_path / "keys.db").write_bytes(b"not a database at all" * 500)
        answer = httpx.get(f"{url}/health/ready")
        assert answer.status_code == 503 and answer.json()["trouble"] == ["keys"]
        assert httpx.get(f"{url}/health/live").is_success
        assert httpx.get(f"{url}/v1/users").status_code == 500, "nobody is let in who cannot be known"


def test_U4_U5_mcp_is_served_beside_it_with_the_same_keys(tenant: Tenant) -> None:
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    accept = {"accept": "application/json, text/event-stream"}
    assert httpx.post(f"{tenant.url}/mcp", json=hello, headers=accept).status_code == 401
    assert tenant.http.post("/mcp", json=hello, headers=accept).status_code == 401, "whose memory?"
    token = tenant.http.post("/v1/tokens", json={"user": "42", "scope": "write"}).json()["result"]["token"]
    for headers in ({"recollect-user": "42"}, {"authorization": f"Bearer {token}"}):
        begun = tenant.http.post("/mcp", json=hello, headers=accept | headers)
        assert begun.is_success and begun.json()["result"]["serverInfo"]["name"] == "recollect"
        here = accept | headers | {"mcp-session-id": begun.headers["mcp-session-id"]}
        note = f"Note by {'token' if 'authorization' in headers else 'key'}"
        call = {"name": "memory_save", "arguments": {"content": note}}
        tenant.http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=here)
        saved = tenant.http.post(
            "/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, headers=here
        )
        assert saved.is_success and not saved.json()["result"]["isError"], saved.text
    assert sorted(tenant.texts("42")) == ["Note by key", "Note by token"]


# slow clients, bad clients, and the end


def _raw(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), PATIENCE)


def _until_closed(connection: socket.socket) -> bytes:
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


def test_U5_who_is_too_slow_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heads of requests, and connections that say nothing, are for the proxy in front."""
    monkeypatch.setattr(http_server, "_IDLE_SECONDS", 0.05)
    head = b"POST /v1/users/42/note HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with recollect.open(tmp_path) as app, serving(app, seconds=0.05) as url:
        for half in (b'Content-Length: 100\r\n\r\n{"content": "', b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"):
            with _raw(url) as slow:
                slow.sendall(head + half)
                answer = _until_closed(slow)
                assert answer.startswith(b"HTTP/1.1 408") and b"TooSlowError" in answer
        with _raw(url) as second:  # a request that is fine, and then none
            second.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert _until_closed(second).startswith(b"HTTP/1.1 200")
        with _raw(url) as slow:
            slow.sendall(head.replace(b"/note", b"/import") + b"Content-Length: 100\r\n\r\nPK")
            assert _until_closed(slow).startswith(b"HTTP/1.1 408")
        assert httpx.get(f"{url}/v1/users").json()["result"] == []


@pytest.mark.everyday(3)
@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/users HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
        b"GET /v1/users HTTP/1.1\r\n\r\n",
        b"POST /v1/users/42/note HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /v1/users/42/note HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        b"POST /v1/users/42/note HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    ],
)
def test_U5_what_is_no_request_is_refused_and_harms_nobody(sent: bytes, tenant: Tenant) -> None:
    with _raw(tenant.url) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was closed while we were talking
        answer = _until_closed(connection)
    assert not answer or answer.split(b" ")[1] in (b"400", b"401", b"421", b"431"), answer[:200]
    assert httpx.get(f"{tenant.url}/health/live").is_success


def test_U5_what_was_accepted_is_finished_before_the_end(tmp_path: Path) -> None:
    results: list[httpx.Response] = []
    with recollect.open(tmp_path) as app:
        app.user("42").note("A first note")
        begun = threading.Barrier(9)

        def write(url: str, number: int) -> None:
            with httpx.Client(base_url=url, timeout=PATIENCE) as http:
                http.get("/health/live")
                begun.wait()
                results.append(http.post("/v1/users/42/note", json={"content": f"Note number {number}"}))

        entered = threading.Semaphore(0)
        api_work = HttpApi._work

        def working(self: HttpApi, *args: Any) -> Any:
            entered.release()
            return api_work(self, *args)

        HttpApi._work = working  # type: ignore[method-assign,assignment]
        try:
            stack = serving(app)
            url = stack.__enter__()
            with app.user("42").batch():  # so that none of them can go on
                threads = [threading.Thread(target=write, args=(url, number)) for number in range(8)]
                for thread in threads:
                    thread.start()
                begun.wait()
                for _ in threads:
                    assert entered.acquire(timeout=PATIENCE)
                stopping = threading.Thread(target=stack.__exit__, args=(None, None, None))
                stopping.start()
            stopping.join(PATIENCE)
            for thread in threads:
                thread.join(PATIENCE)
        finally:
            HttpApi._work = api_work  # type: ignore[method-assign]
        assert [answer.status_code for answer in results] == [200] * 8
        assert len(app.user("42").read(kind="note")) == 9
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health/live")


# many processes


def test_D1_U5_what_cannot_be_rebuilt_is_said_to_be_restored_from_a_backup(postgres_url: str) -> None:
    with recollect.open(postgres_url) as app, serving(app) as url:
        app.user("42").note("Likes tea")
        answer = httpx.post(f"{url}/v1/users/42/rebuild", json={"force": True})
        assert "backup" in problem(answer, 409, "NothingToRebuildError")["detail"]
        assert [note.text for note in app.user("42").read()] == ["Likes tea"]


def test_D1_U5_what_one_process_acknowledged_the_other_has(postgres_url: str) -> None:
    process, there = _process(postgres_url)
    try:
        with recollect.open(postgres_url) as app, serving(app) as here, httpx.Client(timeout=PATIENCE) as http:
            for number in range(12):
                writer, reader = (here, there) if number % 2 else (there, here)
                content = f"Likes tea number {number}"
                http.post(f"{writer}/v1/users/42/note", json={"content": content}).raise_for_status()
                found = http.post(f"{reader}/v1/users/42/search", json={"query": content, "limit": 1})
                assert found.json()["result"]["hits"][0]["record"]["content"] == content
            headers = {"idempotency-key": "the same on both processes"}
            both = [
                http.post(f"{url}/v1/users/42/note", json={"content": "Once"}, headers=headers) for url in (here, there)
            ]
            assert both[0].content == both[1].content
            key, text = app.keys.create(scope="admin")
            known = {"authorization": f"Bearer {text}"}
            assert http.get(f"{there}/v1/users").status_code == 401
            token = http.post(f"{here}/v1/tokens", json={"user": "42"}, headers=known).json()["result"]["token"]
            by_token = {"authorization": f"Bearer {token}"}
            for url in (here, there):
                assert http.get(f"{url}/v1/users/42/count", headers=by_token).is_success
            app.keys.revoke(key.id)
            for url in (here, there):
                assert http.get(f"{url}/v1/users/42/count", headers=by_token).status_code == 401
                assert http.get(f"{url}/v1/users", headers=known).status_code == 401
    finally:
        assert _ended(process) == 0


# the event loop


def _scope(method: str, path: str, body: bytes) -> dict[str, Any]:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": headers, "client": ("127.0.0.1", 1),
    }  # fmt: skip


async def _asked(api: HttpApi, method: str, path: str, body: bytes = b"") -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await api(_scope(method, path, body), receive, send)
    return sent


class LoopWatch(Watch):
    """What the loop may do for a request: take it apart, hand it over, and send what comes of it."""

    MAY = re.compile(
        r"surfaces/http/api\.py:(__call__|_answered|_find|_asked|_body|send_response|request_id_of|_content_length|_too_large_problem|<listcomp>)$"
        r"|surfaces/http/(messages\.py:(has_user|has_body)|metrics\.py:count|problems\.py:.*|authentication\.py:may)$"
        r"|surfaces/http/(concurrency\.py:(slot|over)|routes\.py:handle_async|tool_routes\.py:call_tool|streams\.py:(export|_stream_and_remove))$|tools/suite\.py:|tools/tool\.py:"
    )

    @property
    def heavy(self) -> list[str]:
        return [name for name in super().heavy if not self.MAY.match(name)]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "remember", {"content": "Likes tea"}),
        ("POST", "search", {"query": "tea"}),
        ("POST", "batch", {"operations": [{"verb": "note", "arguments": {"content": "tea"}}]}),
        ("POST", "tools/memory_save", {"arguments": {"content": "tea"}}),
        ("GET", "count", None),
        ("GET", "export", None),
        ("GET", "show", None),
    ],
)
def test_W1_U5_the_server_answers_others_while_a_request_waits(
    method: str, path: str, body: Any, tmp_path: Path
) -> None:
    gate = Gate()
    store: Any = GatedStore(gate)
    with Recollect(store, recollect.Config.load(), folder=tmp_path / "files") as app:
        app.user("42").remember("Likes rum")
        api = HttpApi(app, Authentication(app.keys, open=True), RateLimits(0, 0))
        data = b"" if body is None else json.dumps(body).encode()

        async def main() -> None:
            with gate.shut() as came, LoopWatch() as watch:
                doing = asyncio.ensure_future(_asked(api, method, f"/v1/users/42/{path}", data))
                await asyncio.wait_for(came.wait(), PATIENCE)
                await turn()
                assert not doing.done()
            sent = await asyncio.wait_for(doing, PATIENCE)
            assert sent[0]["status"] == 200, sent
            assert gate.passed_on_loop == 0 and watch.heavy == []

        asyncio.run(main())


def test_W1_U5_a_long_body_is_read_beside_the_loop(tmp_path: Path) -> None:
    long = json.dumps({"content": "tea " * 250_000, "metadata": {}}).encode()
    with recollect.open(tmp_path) as app:
        api = HttpApi(app, Authentication(app.keys, open=True), RateLimits(0, 0))

        async def main() -> None:
            with LoopWatch() as watch:
                sent = await _asked(api, "POST", "/v1/users/42/note", long)
            assert sent[0]["status"] == 422 and watch.heavy == [] and len(watch.called) < 1_000

        asyncio.run(main())


# whatever the document allows, and what it does not


@pytest.mark.hypothesis
def test_U5_the_server_does_what_its_document_says(tmp_path: Path) -> None:
    """For each operation a few requests that fit the document, and a few that do not, judged by every check there is."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode

    few = settings(
        deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    numbers = {GenerationMode.POSITIVE: volume(1, 2), GenerationMode.NEGATIVE: 1}
    judged: dict[GenerationMode, set[str]] = {mode: set() for mode in GenerationMode}
    with recollect.open(tmp_path) as app, serving(app) as url:
        app.user("42").remember("Likes tea", key="drink")
        schema = schemathesis.openapi.from_url(f"{url}/v1/openapi.json")
        operations: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
        operations = list(sample(4, operations))
        for operation in operations:
            for mode, labels in judged.items():

                @settings(few, max_examples=numbers[mode])
                @given(case=operation.as_strategy(generation_mode=mode))
                def try_it(case: Any) -> None:
                    case.validate_response(case.call(base_url=url))
                    labels.add(case.operation.label)  # noqa: B023

                try:
                    try_it()
                except Unsatisfiable:
                    assert mode is GenerationMode.NEGATIVE, operation.label  # where nothing is taken, nothing is wrong
        assert len(judged[GenerationMode.POSITIVE]) == len(operations) > len(VERBS) // volume(4, 1)
        assert len(judged[GenerationMode.NEGATIVE]) > len(VERBS) // volume(4, 1)
        for user in app.users():
            assert app.user(user).verify() == []


def test_U5_reads_take_turns_and_nobody_waits_for_a_long_one() -> None:
    async def main() -> None:
        limiter = ConcurrencyLimiter(seconds=0.01)
        begun: list[str] = []
        first, second = asyncio.Event(), asyncio.Event()

        async def read(name: str, until: asyncio.Event) -> None:
            async with limiter.slot():
                begun.append(name)
                await until.wait()

        slow = asyncio.ensure_future(read("slow", first))
        quick = asyncio.ensure_future(read("quick", second))
        await asyncio.sleep(0)
        assert begun == ["slow"], "one at a time"
        second.set()
        await asyncio.wait_for(quick, PATIENCE)
        assert begun == ["slow", "quick"] and not slow.done(), "who takes long has had their turn"
        first.set()
        await asyncio.wait_for(slow, PATIENCE)
        async with limiter.slot():  # given back once, not twice
            third = asyncio.ensure_future(read("third", first))
            await asyncio.sleep(0)
            assert begun == ["slow", "quick"]
        await asyncio.wait_for(third, PATIENCE)

    asyncio.run(main())
