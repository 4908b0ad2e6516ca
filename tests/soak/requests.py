"""Generated requests to the API, in this process and over a socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import urllib.parse
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import recollect
from recollect.surfaces.http.api import HttpApi
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.http_server import Address
from recollect.surfaces.serve import Server
from recollect.testing import MemoryStore
from tests.soak import values
from tests.soak.cases import CASES_IN_A_CHUNK, PATIENCE, Case, Raw, memory_app
from tests.soak.documents import markdown
from tests.soak.surfaces import Http
from tests.soak.warm import USER

Request = tuple[str, str, bytes | None, dict[str, str]]
"""Method, target, body and headers."""


LEFT_OUT = ("/v1/users/{user}/rebuild",)
"""A store in memory has nothing to rebuild from, and fails; the real server has."""


@cache
def api_document() -> dict[str, Any]:
    """The OpenAPI document. It takes a second to make: ask for it once before chunks are forked."""
    with recollect.open(MemoryStore()) as app:
        return Server(app, Address.parse("127.0.0.1:0")).api.document()


def http_cases(place: Path, random: Random) -> Iterator[Case]:
    """The API in this process: every operation of its own document, and requests that are none."""
    with memory_app(place, random) as app, asyncio.Runner() as runner:
        server = Server(app, Address.parse("127.0.0.1:0"), limits=RateLimits(0, 0))
        for case in requests(random, api_document(), LEFT_OUT):
            yield f"{case!r:.1200}", partial(ask_api, runner, server.api, case)
            app.user(USER).count()


def socket_cases(place: Path, random: Random) -> Iterator[Case]:
    """The same requests to a real server."""
    os.environ.update(MEMORY_HTTP_USER_RATE="0", MEMORY_HTTP_KEY_RATE="0")
    server = Http(place / "memory", place / "errors")
    server.start()
    try:
        document = json.loads(request(server, ("GET", "/v1/openapi.json", None, {}))[1])
        for case in requests(random, document):
            yield f"{case!r:.1200}", partial(ask_server, server, case)
        check_answer(*request(server, ("GET", "/health/ready", None, {})))
    finally:
        server.kill()


def requests(random: Random, document: dict[str, Any], left_out: tuple[str, ...] = ()) -> Iterator[Request]:
    schemas = document.get("components", {}).get("schemas", {})
    operations = [
        (method.upper(), path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete") and path not in left_out
    ]
    for _ in range(CASES_IN_A_CHUNK):
        yield http_case(random, *random.choice(operations), schemas)


def http_case(random: Random, method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> Request:
    def piece(_: re.Match[str]) -> str:
        part = random.choice((USER, USER, "other", values.text(random)[:80]))
        return urllib.parse.quote(part.encode("utf-8", "surrogatepass"), safe="") or "%20"

    target = re.sub(r"\{\w+\}", piece, path)
    query = {}
    for parameter in operation.get("parameters", ()):
        if parameter.get("in") == "query" and random.random() < 0.5:
            value = str(values.from_schema(random, parameter.get("schema", {}), schemas))[:500]
            query[parameter["name"]] = value.encode("utf-8", "surrogatepass")
    if query:
        target += "?" + urllib.parse.urlencode(query)
    headers = {}
    body = None
    content = operation.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        value = values.from_schema(random, content["application/json"].get("schema", {}), schemas)
        body = json.dumps(value).encode("utf-8", "surrogatepass")
        headers["Content-Type"] = "application/json"
    elif content:
        body = markdown(random)
    if random.random() < 0.05:
        body = markdown(random)
    if random.random() < 0.05:
        headers["Recollect-Acting"] = random.choice(('{"actor": "agent"}', "{", '{"session": 5}', "[]"))
    if random.random() < 0.05:
        headers["Idempotency-Key"] = random.choice(("short", "k" * 20, "k" * 500))
    return method, target, body, headers


def ask_api(runner: asyncio.Runner, api: HttpApi, case: Request) -> bool:
    return check_answer(*runner.run(exchange(api, *case)))


async def exchange(
    api: HttpApi, method: str, target: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, bytes]:
    """One request over ASGI, as a server would hand it over."""
    path, _, query = target.encode("ascii").partition(b"?")
    fields = {"host": "127.0.0.1", "content-length": str(len(body or b"")), **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": urllib.parse.unquote(path.decode()),
        "raw_path": path,
        "query_string": query,
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in fields.items()],
        "client": ("127.0.0.1", 50000),
    }
    coming = [{"type": "http.request", "body": body or b"", "more_body": False}]
    status, answer = 0, bytearray()

    async def receive() -> Any:
        if not coming:
            await asyncio.Event().wait()  # the client stays until it has its answer
        return coming.pop()

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)
        answer.extend(message.get("body", b""))

    await api(scope, receive, send)
    return status, bytes(answer)


def request(server: Http, case: Request) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request(*case)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def ask_server(server: Http, case: Request) -> bool:
    try:
        return check_answer(*request(server, case))
    except (http.client.HTTPException, OSError) as error:
        raise Raw(f"no answer: {error!r}, server {'alive' if server.alive else 'dead'}") from None


def check_answer(status: int, answer: bytes) -> bool:
    """Return whether it is a success. A refusal is a problem document, and never the server's own fault."""
    if status < 400:
        if status < 200 or b"Traceback (most recent" in answer:
            raise Raw(f"HTTP {status}: {answer[:800]!r}")
        return True
    problem = json.loads(answer)
    if status >= 500 or problem["status"] != status or not problem["error"].endswith("Error"):
        raise Raw(f"HTTP {status}: {answer[:800]!r}")
    return False
