"""Who is calling: the one user of the program, whom a token names, or whom a proxy names.

Knows nothing about memories.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recollect.errors import ConfigError, InvalidInputError
from recollect.tools.catalog import SUITES, tools_of
from recollect.userid import check_user_id

LOGGER = logging.getLogger("recollect.mcp")

DEFAULT_SUITES = ("notes",)
_SHORTEST = 16
_Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class McpCaller:
    """Whose memory a connection is about, and the suites it is offered."""

    user: str
    suites: tuple[str, ...] = DEFAULT_SUITES
    credential: str = ""
    """What tells one credential from another, without giving it away."""


@dataclass(frozen=True, slots=True)
class RejectedCaller:
    """Someone who is not let in, and the HTTP status that says so."""

    status: int
    why: str
    error: str = ""
    """The code of RFC 6750, if there was a token at all."""
    seconds: int = 0
    """When to try again, if it was too often."""


class Callers(Protocol):
    """Says who sent a request, by its headers."""

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        """Who it is."""
        ...


@dataclass(frozen=True, slots=True)
class OneCaller:
    """Everybody who can connect is the same user."""

    one: McpCaller

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        return self.one


@dataclass(frozen=True, slots=True)
class NamedByProxy:
    """A proxy that checks who it is says so in a header."""

    header: str
    suites: tuple[str, ...]

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        given = _values(headers, self.header)
        if len(given) != 1:
            # two: the proxy added its own to one that the client sent, and nobody knows which is whose
            return RejectedCaller(401, f"the header {self.header} must be there once")
        try:
            user = check_user_id(given[0].decode("utf-8").strip())
        except (UnicodeDecodeError, InvalidInputError):
            return RejectedCaller(401, f"the header {self.header} is not a user id")
        return McpCaller(user, self.suites)


class TokenFile:
    """Bearer tokens in a file, read again when it changes.

    A line for each: ``TOKEN USER`` or ``TOKEN USER notes,facts``; or JSON: ``{"TOKEN": "USER"}`` or
    ``{"TOKEN": {"user": "USER", "suites": ["notes"]}}``.
    """

    def __init__(self, path: Path, suites: tuple[str, ...]) -> None:
        self._path = path
        self._suites = suites
        self._known: dict[bytes, McpCaller] = {}
        self._version: tuple[int, ...] = ()
        self._problem = ""
        self._guard = threading.Lock()
        self._load()

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        with self._guard:
            if not self._is_current():
                return RejectedCaller(503, "the tokens cannot be read; see the log of the server")
            all_known = self._known
        given = _values(headers, "authorization")
        if len(given) != 1:
            return RejectedCaller(401, "a bearer token is needed")
        scheme, _, token = given[0].partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            return RejectedCaller(401, "a bearer token is needed")
        digest = hashlib.sha256(token.strip()).digest()
        found: McpCaller | None = None
        for known, caller in all_known.items():  # all of them, however early one fits
            if hmac.compare_digest(known, digest):
                found = caller
        return found or RejectedCaller(401, "the bearer token is not known", "invalid_token")

    def _is_current(self) -> bool:
        """Whether what is known is what the file says; nobody is let in by what it said before."""
        try:
            if _version(self._path) != self._version:
                self._load()
                LOGGER.warning("%s was read again: %d tokens", self._path, len(self._known))
        except ConfigError as error:
            self._known, self._version = {}, ()
            if self._problem != str(error):
                LOGGER.error("nobody is let in: %s", error)
                self._problem = str(error)
            return False
        return True

    def _load(self) -> None:
        version = _version(self._path)
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--tokens: cannot read {self._path}: {type(error).__name__}") from None
        self._known = {
            hashlib.sha256(token.encode()).digest(): self._entry(token, told)
            for token, told in _token_entries(text, self._path)
        }
        if not self._known:
            raise ConfigError(f"--tokens: there is no token in {self._path}")
        self._version, self._problem = version, ""

    def _entry(self, token: str, told: Mapping[str, Any]) -> McpCaller:
        # an error never shows the token
        if len(token) < _SHORTEST or not token.isascii() or any(letter.isspace() for letter in token):
            raise ConfigError(
                f"--tokens: a token must have at least {_SHORTEST} characters, ASCII and without spaces;"
                " `openssl rand -hex 32` makes one"
            )
        named = told.get("suites") or self._suites
        try:
            user = check_user_id(told.get("user"))
            suites = checked_suites(named.split(",") if isinstance(named, str) else named)
        except InvalidInputError as error:
            raise ConfigError(f"--tokens: {self._path}: {error}") from None
        return McpCaller(user, suites, hashlib.sha256(b"recollect-mcp " + token.encode()).hexdigest())


def checked_suites(names: Sequence[str] | None) -> tuple[str, ...]:
    """The suites meant: ``all`` are all, none are the default."""
    if not isinstance(names or (), list | tuple) or not all(isinstance(name, str) for name in names or ()):
        raise InvalidInputError("suites", "must be a list of names")
    chosen = tuple(dict.fromkeys(part.strip() for name in names or () for part in name.split(",") if part.strip()))
    if "all" in chosen:
        return tuple(SUITES)
    tools_of(chosen)
    return chosen or DEFAULT_SUITES


def _token_entries(text: str, path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    if text.lstrip().startswith("{"):
        try:
            read = json.loads(text, object_pairs_hook=_without_doubles)
        except ValueError as error:
            raise ConfigError(f"--tokens: {path} is not valid JSON: {error}") from None
        return [(token, told if isinstance(told, dict) else {"user": told}) for token, told in read.items()]
    found: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        token, *rest = line.split()
        if len(rest) not in (1, 2):
            raise ConfigError(f"--tokens: {path}, line {number}: must be TOKEN USER or TOKEN USER suite,suite")
        if token in found:
            raise ConfigError(f"--tokens: {path}, line {number}: this token is there already")
        found[token] = {"user": rest[0], "suites": rest[1] if len(rest) == 2 else None}
    return list(found.items())


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name is there twice")
    return dict(pairs)


def _version(path: Path) -> tuple[int, ...]:
    """What changes whenever the file changes; an error if others may read it."""
    try:
        about = path.stat()
    except OSError as error:
        raise ConfigError(f"--tokens: cannot read {path}: {error.strerror}") from None
    if os.name == "posix" and about.st_mode & stat.S_IRWXO:
        raise ConfigError(f"--tokens: everybody on this machine can use {path}; chmod 600 it")
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _values(headers: _Headers, name: str) -> list[bytes]:
    wanted = name.lower().encode("latin-1")
    return [value for key, value in headers if key.lower() == wanted]
