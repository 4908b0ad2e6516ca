"""Identifies callers: the single user of the program, the user of a token, or the user named by a proxy."""

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
    """The user of a connection, and the suites it is offered."""

    user: str
    suites: tuple[str, ...] = DEFAULT_SUITES
    credential: str = ""
    """Distinguishes credentials without revealing them."""


@dataclass(frozen=True, slots=True)
class RejectedCaller:
    """A rejected caller, with the HTTP status to respond with."""

    status: int
    why: str
    error: str = ""
    """The error code of RFC 6750, if a token was sent."""
    seconds: int = 0
    """Seconds to wait before a retry, after too many attempts."""


class Callers(Protocol):
    """Identifies the sender of a request by its headers."""

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        """Return the caller, or why the request is rejected."""
        ...


@dataclass(frozen=True, slots=True)
class OneCaller:
    """Treats every connection as the same user."""

    one: McpCaller

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        return self.one


@dataclass(frozen=True, slots=True)
class NamedByProxy:
    """Takes the user from a header that an authenticating proxy sets."""

    header: str
    suites: tuple[str, ...]

    def caller(self, headers: _Headers) -> McpCaller | RejectedCaller:
        given = _values(headers, self.header)
        if len(given) != 1:
            # a second header means that the client sent one too, and they cannot be told apart
            return RejectedCaller(401, f"the header {self.header} must occur exactly once")
        try:
            user = check_user_id(given[0].decode("utf-8").strip())
        except (UnicodeDecodeError, InvalidInputError):
            return RejectedCaller(401, f"the header {self.header} is not a user id")
        return McpCaller(user, self.suites)


class TokenFile:
    """Bearer tokens in a file, which is reloaded when it changes.

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
                return RejectedCaller(503, "the tokens cannot be read; see the server log")
            all_known = self._known
        given = _values(headers, "authorization")
        if len(given) != 1:
            return RejectedCaller(401, "a bearer token is required")
        scheme, _, token = given[0].partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            return RejectedCaller(401, "a bearer token is required")
        digest = hashlib.sha256(token.strip()).digest()
        found: McpCaller | None = None
        for known, caller in all_known.items():  # compare all of them, to take constant time
            if hmac.compare_digest(known, digest):
                found = caller
        return found or RejectedCaller(401, "unknown bearer token", "invalid_token")

    def _is_current(self) -> bool:
        """Reload the file if it changed. Return False if it cannot be read: old tokens are not accepted then."""
        try:
            if _version(self._path) != self._version:
                self._load()
                LOGGER.warning("reloaded %s: %d tokens", self._path, len(self._known))
        except ConfigError as error:
            self._known, self._version = {}, ()
            if self._problem != str(error):
                LOGGER.error("all callers are rejected: %s", error)
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
            raise ConfigError(f"--tokens: {self._path} contains no tokens")
        self._version, self._problem = version, ""

    def _entry(self, token: str, told: Mapping[str, Any]) -> McpCaller:
        # errors never show the token
        if len(token) < _SHORTEST or not token.isascii() or any(letter.isspace() for letter in token):
            raise ConfigError(
                f"--tokens: a token must have at least {_SHORTEST} ASCII characters and no spaces;"
                " create one with `openssl rand -hex 32`"
            )
        named = told.get("suites") or self._suites
        try:
            user = check_user_id(told.get("user"))
            suites = checked_suites(named.split(",") if isinstance(named, str) else named)
        except InvalidInputError as error:
            raise ConfigError(f"--tokens: {self._path}: {error}") from None
        return McpCaller(user, suites, hashlib.sha256(b"recollect-mcp " + token.encode()).hexdigest())


def checked_suites(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the checked suite names: ``all`` means all suites, none means the default."""
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
            raise ConfigError(f"--tokens: {path}, line {number}: duplicate token")
        found[token] = {"user": rest[0], "suites": rest[1] if len(rest) == 2 else None}
    return list(found.items())


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("duplicate name")
    return dict(pairs)


def _version(path: Path) -> tuple[int, ...]:
    """Return a value that changes with the file. Raise an error if other users can read the file."""
    try:
        about = path.stat()
    except OSError as error:
        raise ConfigError(f"--tokens: cannot read {path}: {error.strerror}") from None
    if os.name == "posix" and about.st_mode & stat.S_IRWXO:
        raise ConfigError(f"--tokens: {path} is readable by other users of this machine; run chmod 600 on it")
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _values(headers: _Headers, name: str) -> list[bytes]:
    wanted = name.lower().encode("latin-1")
    return [value for key, value in headers if key.lower() == wanted]
