"""The console as an ASGI application that can be mounted anywhere: authentication, forms, and routing to pages.

Mount("/console", console(app, who=Login(app.keys, open=address.is_loopback, user="me")))
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.app import Recollect
from recollect.errors import (
    AmbiguousError,
    InvalidInputError,
    NotFoundError,
    RecollectError,
    StoreBusyError,
    StoreError,
    UndoError,
)
from recollect.identity.login import Login, LoginRefusedError, LoginSession
from recollect.memory.async_memory import in_thread
from recollect.policy.secrets import mask
from recollect.surfaces.web import edits, operator_views, settings, views
from recollect.surfaces.web.live import Live
from recollect.surfaces.web.rendering import WebRequest, render_anonymous_page, render_page

LOGGER = logging.getLogger("recollect.web")

SESSION_COOKIE, BROWSER_COOKIE = "recollect_session", "recollect_browser"
"""The cookies: the login session and the browser id."""
MOST_FORM = 4 * 1024 * 1024
MOST_IMPORT = 64 * 1024 * 1024
SECONDS = 30.0
"""The timeout for a form, and for the next part of an import."""
_IMPORT_TIMES = 20

_STATUS: tuple[tuple[type[RecollectError], int], ...] = (
    (InvalidInputError, 422),
    (NotFoundError, 404),
    (AmbiguousError, 409),
    (UndoError, 409),
    (StoreBusyError, 503),
)
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers would hide the origin of our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}

_LISTS = {
    "episodes": (
        "episode",
        "Episodes",
        "Summaries of stretches of conversation.",
        "An agent stores one when something is worth remembering as a whole: a trip, an evening, an outage.",
    ),
    "observations": (
        "observation",
        "Observations",
        "What agents found out while working: findings, insights and lessons.",
        "They come from agents that report what they learned.",
    ),
    "notes": (
        "note",
        "Notes",
        "Free texts that you or an agent saved.",
        "Ask an agent to note something down for you.",
    ),
}
"""The pages that list records of one kind."""
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")

_Handler = Callable[[WebRequest], Response]


@dataclass(frozen=True)
class _PageRoute:
    """The handler of a page, and who may use it."""

    handle: _Handler
    writes: bool
    operator: bool
    most: int
    """The maximum size of a request in bytes."""


def console(app: Recollect, *, who: Login, live: Live | None = None) -> Starlette:
    """Return the console application. ``close_streams`` of its state ends the event streams before a stop."""
    return _Console(app, who, live or Live(app)).starlette()


class _Console:
    def __init__(self, app: Recollect, who: Login, live: Live) -> None:
        self._app = app
        self._who = who
        self._live = live

    def starlette(self) -> Starlette:
        get, post = partial(self._route, methods=["GET"]), partial(self._route, methods=["POST"], writes=True)
        routes: list[BaseRoute] = [
            get("/", views.memory_view),
            get("/edit", edits.editor_view, writes=True),
            post("/edit", edits.edit_view),
            post("/remember", edits.remember_view),
            get("/search", views.search_view),
            get("/timeline", views.timeline_view),
            get("/daily", views.daily_view),
            get("/daily/{day}", views.daily_view),
            get("/daily/{day}/edit", edits.editor_view, writes=True),
            post("/daily/{day}/edit", edits.edit_view),
            *(get(f"/{path}", views.records_view(*about)) for path, about in _LISTS.items()),
            get("/conversations", views.conversations_view),
            get("/conversation", views.conversation_view),
            get("/working", views.scratch_view),
            get("/people", views.people_view),
            get("/runs", views.runs_view),
            get("/runs/{run:path}", views.run_view),
            get("/duplicates", views.duplicates_view),
            post("/merge", edits.merge_view),
            post("/undo", edits.undo_view),
            get("/record/{id}", views.record_view),
            post("/record/{id}/change", edits.change_view),
            post("/record/{id}/pin", edits.pin_view),
            post("/record/{id}/forget", edits.forget_view),
            get("/record/{id}/erase", settings.confirm_erase_view, writes=True),
            get("/settings", settings.settings_view),
            post("/settings/mode", settings.mode_view),
            post("/settings/consent", settings.consent_view),
            get("/settings/topic", settings.topic_view),
            post("/settings/remove", settings.remove_view),
            post("/settings/clear", settings.clear_view),
            get("/export", settings.export_view),
            post("/import", settings.import_view, most=MOST_IMPORT),
            post("/example/remove", settings.remove_example_view),
            get("/operator", operator_views.dashboard_view, operator=True),
            get("/operator/users", operator_views.users_view, operator=True),
            get("/operator/users/erase", operator_views.confirm_erase_user_view, operator=True, writes=True),
            post("/operator/users/erase", operator_views.erase_user_view, operator=True),
            get("/operator/queue", operator_views.queue_view, operator=True),
            post("/operator/queue/{id}", operator_views.dead_letter_view, operator=True),
            Route("/events", self._events),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Mount("/static", _StaticAssets(directory=Path(__file__).parent / "static")),
        ]
        made = Starlette(routes=routes, exception_handlers={HTTPException: self._missing, StoreError: self._unknown})
        made.add_middleware(_SecurityHeaders)
        made.state.close_streams = self._live.close
        return made

    def _route(
        self,
        path: str,
        handle: _Handler,
        *,
        methods: list[str],
        writes: bool = False,
        operator: bool = False,
        most: int = MOST_FORM,
    ) -> Route:
        async def answer(request: Request) -> Response:
            return await self._answer(request, _PageRoute(handle, writes, operator, most))

        return Route(path, answer, methods=methods)

    # one request

    async def _answer(self, request: Request, wanted: _PageRoute) -> Response:
        login = await self._session_of(request)
        base = request.scope.get("root_path", "")
        if login is None or (wanted.operator and not login.operator):
            return RedirectResponse(f"{base}/login", 303)
        if login.user is None and not wanted.operator:
            return RedirectResponse(f"{base}/operator", 303)
        browser = request.cookies.get(BROWSER_COOKIE, "")
        fresh = "" if _is_browser_id(browser) else secrets.token_urlsafe(24)
        async with self._form(request, wanted.most) as (form, upload):
            response = await in_thread(
                login.user or "",
                self._handled,
                wanted,
                request,
                {"login": login, "base": base, "form": form, "upload": upload, "browser": browser or fresh},
            )
        if fresh:
            self._set(request, response, BROWSER_COOKIE, fresh)
        return response

    def _handled(self, wanted: _PageRoute, request: Request, given: dict[str, Any]) -> Response:
        browser, form = given.pop("browser"), given["form"]
        asked = WebRequest(
            app=self._app,
            here=request.scope["path"].removeprefix(given["base"]).strip("/"),
            csrf_token=self._who.csrf_token(_csrf_subject(browser, given["login"])),
            query=dict(request.query_params),
            path=request.path_params,
            **given,
        )
        if request.method == "POST" and not self._is_ours(request, form, given["login"]):
            return self._trouble(asked, 403, "This form has expired or came from another site. Go back and try again.")
        if wanted.writes and not asked.may_write:
            return self._trouble(asked, 403, "Your login is read-only. Ask for a login link that allows changes.")
        try:
            return wanted.handle(asked)
        except (
            Exception
        ) as error:  # the outermost handler: error texts may quote a memory and must not reach the server log
            status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
            said = str(error)
            if status >= 500:
                LOGGER.error("a page failed: %s", type(error).__name__)
                # not its message, which may name a folder of the server
                said = (type(error).__doc__ or "") if isinstance(error, RecollectError) else ""
            return self._trouble(asked, status, said or "Something went wrong. Nothing was left half done; try again.")

    def _is_ours(self, request: Request, form: dict[str, str], login: LoginSession | None) -> bool:
        """Return True if a form comes from a page shown to this browser in this login session (CSRF check)."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        browser = request.cookies.get(BROWSER_COOKIE, "")
        return _is_browser_id(browser) and self._who.is_csrf_token(
            _csrf_subject(browser, login), form.get("csrf_token", "")
        )

    @staticmethod
    def _trouble(asked: WebRequest, status: int, said: str) -> Response:
        titles = {403: "Not allowed", 404: "Not found", 409: "It has changed", 422: "Invalid input"}
        titles[503] = "Busy"
        written = mask(asked.form.get("content", ""))  # it may have been refused because it contains a secret
        try:
            title = titles.get(status, "Something went wrong")
            return render_page(asked, "trouble.html", status=status, title=title, said=mask(said), written=written)
        except Exception:  # the frame of the page cannot be rendered either
            return render_anonymous_page(
                "alone.html", base=asked.base, csrf_token="", status=status, title="Something went wrong", said=said
            )

    @asynccontextmanager
    async def _form(self, request: Request, most: int) -> AsyncIterator[tuple[dict[str, str], Path | None]]:
        """Read the fields of a form and an uploaded file, which is deleted after the request."""
        if request.method != "POST":
            yield {}, None
            return
        request._receive = _limit_body(request.receive, most)
        async with request.form(max_files=1, max_fields=50, max_part_size=most) as sent:
            fields = {name: value for name, value in sent.items() if isinstance(value, str)}
            file = next((value for value in sent.values() if isinstance(value, UploadFile) and value.filename), None)
            if file is None:
                yield fields, None
                return
            folder = Path(await in_thread("", tempfile.mkdtemp, prefix="recollect-"))
            try:
                ending = Path(file.filename or "").suffix.lower()
                path = folder / f"import{ending if ending in settings.ENDINGS else ''}"
                await in_thread("", _copy, file, path)
                yield fields, path
            finally:
                await in_thread("", partial(shutil.rmtree, folder, ignore_errors=True))

    # login

    async def _session_of(self, request: Request) -> LoginSession | None:
        login = await in_thread("", self._who.session, request.cookies.get(SESSION_COOKIE, ""))
        # a page elsewhere may have pointed its host name at our address, and a proxy may forward anyone
        is_there = _is_near(request) and not any(name in request.headers for name in _FORWARDED)
        return login if login is None or not login.is_open or is_there else None

    async def _login(self, request: Request) -> Response:
        base = request.scope.get("root_path", "")
        known = request.cookies.get(BROWSER_COOKIE, "")
        browser = known if _is_browser_id(known) else secrets.token_urlsafe(24)
        csrf_token = await in_thread("", self._who.csrf_token, _csrf_subject(browser, None))
        code, problem = request.query_params.get("code", ""), ""
        if request.method == "POST":
            async with self._form(request, MOST_FORM) as (form, _):
                code = form.get("code", "")
                if not await in_thread("", self._is_ours, request, form, None):
                    problem = "This form has expired. Try again."
                else:
                    try:
                        cookie, _ = await in_thread("", self._who.enter, code)
                    except LoginRefusedError as error:
                        code, problem = "", str(error)
                    else:
                        response: Response = RedirectResponse(f"{base}/", 303)
                        self._set(request, response, SESSION_COOKIE, cookie)
                        return response
        values = {"code": code[:2000], "problem": problem, "is_safe": _is_safe(request)}
        make = partial(
            render_anonymous_page,
            "login.html",
            base=base,
            csrf_token=csrf_token,
            status=403 if problem else 200,
            **values,
        )
        response = await in_thread("", make)
        self._set(request, response, BROWSER_COOKIE, browser)
        return response

    async def _logout(self, request: Request) -> Response:
        base = request.scope.get("root_path", "")
        async with self._form(request, MOST_FORM) as (form, _):
            login = await self._session_of(request)
            if login is not None and await in_thread("", self._is_ours, request, form, login):
                await in_thread("", self._who.leave, login)
        response = RedirectResponse(f"{base}/login", 303)
        response.delete_cookie(SESSION_COOKIE, path=base or "/")
        return response

    @staticmethod
    def _set(request: Request, response: Response, name: str, value: str) -> None:
        path = request.scope.get("root_path", "") or "/"
        secure = not _is_near(request) or request.url.scheme == "https"
        response.set_cookie(name, value, path=path, secure=secure, httponly=True, samesite="strict")

    # other responses

    async def _events(self, request: Request) -> Response:
        login = await self._session_of(request)
        if login is None or login.user is None:
            return Response(status_code=403)
        if not self._live.has_room(login.user):
            return Response("too many pages are open", 429)
        told = request.headers.get("last-event-id") or request.query_params.get("after", "")
        seen = int(told) if re.fullmatch(r"[0-9]{1,15}", told) else -1

        async def is_welcome() -> bool:
            now = await self._session_of(request)
            return now is not None and now.user == login.user

        stream = self._live.stream(login.user, seen, is_welcome)
        headers = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}  # for proxies
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def _missing(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        said = {
            404: "This page does not exist.",
            405: "This page does not accept that request.",
            413: "That is too large to send.",
        }
        base = request.scope.get("root_path", "")
        make = partial(
            render_anonymous_page, "alone.html", base=base, csrf_token="", status=status, title="Not available"
        )
        return await in_thread("", partial(make, said=said.get(status, "The request cannot be read.")))

    async def _unknown(self, request: Request, error: Exception) -> Response:
        """Respond that the visitor cannot be identified, because the store is not reachable."""
        LOGGER.error("a login session cannot be checked: %s", type(error).__name__)
        base, said = (
            request.scope.get("root_path", ""),
            "The memories cannot be reached right now. Try again in a moment.",
        )
        make = partial(
            render_anonymous_page, "alone.html", base=base, csrf_token="", status=503, title="Not available", said=said
        )
        return await in_thread("", make)


class _SecurityHeaders:
    """Adds security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = {name for name, _ in message["headers"]}
                more = _HEADERS | {"cache-control": "no-store"}
                extra = [(name.encode(), text.encode()) for name, text in more.items() if name.encode() not in named]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        await self._app(scope, receive, guarded)


class _StaticAssets(StaticFiles):
    """Serves styles and scripts, which browsers revalidate."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def _limit_body(receive: Receive, most: int) -> Receive:
    """Limit the size of a body and the time it may take, which grows with what has arrived."""
    size = 0
    until = asyncio.get_running_loop().time() + SECONDS * (1 if most <= MOST_FORM else _IMPORT_TIMES)

    async def part() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout_at(until), asyncio.timeout(SECONDS):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408) from None
        size += len(message.get("body", b""))
        if size > most:
            raise HTTPException(413)
        return message

    return part


def _copy(file: UploadFile, path: Path) -> None:
    with path.open("wb") as out:
        shutil.copyfileobj(file.file, out)


def _is_browser_id(text: str) -> bool:
    return re.fullmatch(r"[\w-]{20,64}", text, re.ASCII) is not None


def _csrf_subject(browser: str, login: LoginSession | None) -> str:
    """Return what a CSRF token is bound to: the browser and the login session, so that neither can be swapped."""
    return f"{browser} {'' if login is None else login.nonce}"


def _is_near(request: Request) -> bool:
    """Return True if the browser runs on this machine, where a cookie needs no encryption."""
    host = request.url.hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_safe(request: Request) -> bool:
    """Return True if the browser would send a secure cookie back. A proxy may have encrypted this connection."""
    return _is_near(request) or request.url.scheme == "https" or "x-forwarded-proto" in request.headers
