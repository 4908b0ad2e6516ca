"""The connection to a server: requests, responses, and retries where they are safe.

Reads are safe to repeat, and so are requests with an idempotency key, which the server executes once. No content is
logged.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from recollect.checks import check_file_text
from recollect.client.problems import UnansweredError, error_of
from recollect.errors import InvalidInputError, MissingExtraError, StoreUnavailableError

try:
    import httpx
except ImportError:
    raise MissingExtraError("client", "recollect.client") from None

TRIES = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_AGAIN = frozenset({429, 502, 503, 504})


def segment(text: str) -> str:
    """Return a text encoded as one segment of a path, including dots."""
    return quote(check_file_text("path", text), safe="").replace(".", "%2E")


class HttpConnection:
    """A pool of connections. Thread-safe."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        timeout: float,
        tries: int = TRIES,
        pause: Callable[[float], None] = time.sleep,
        http: httpx.Client | None = None,
    ) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._url = httpx.URL(url.rstrip("/") + "/v1/")
        self._headers = headers
        self._http = http or httpx.Client(
            timeout=httpx.Timeout(timeout, connect=min(timeout, 5.0)),
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=4.0),
            trust_env=False,
            follow_redirects=False,
        )
        self._tries = tries
        self._pause = pause

    def ask(self, method: str, path: str, **how: Any) -> Any:
        """Return the answer to a `request` as plain data."""
        return self.request(method, path, **how).json()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        again: bool = True,
    ) -> httpx.Response:
        """Send a request and return the whole response, or raise its error. ``again`` allows retries."""
        try:
            asked = self._http.build_request(
                method,
                self._at(path),
                params=query or None,
                json=body,
                headers={**self._headers, **(headers or {})},
            )
        except (TypeError, ValueError):
            raise InvalidInputError("arguments", "must hold only what JSON can: text, numbers, lists, …") from None
        for number in range(1, self._tries + 1):
            last = number == self._tries
            try:
                answer = self._http.send(asked)
            except httpx.TransportError as error:
                never_arrived = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if last or not (again or never_arrived):
                    raise _unreachable(error) from None
                self._pause(_wait(number))
                continue
            if answer.is_success:
                return answer
            refused = answer.status_code == 429  # nothing was done
            if last or answer.status_code not in _AGAIN or not (again or refused):
                raise _error_from_response(answer)
            self._pause(_wait(number, answer.headers.get("retry-after")))
        raise AssertionError("unreachable")

    @contextmanager
    def stream(self, method: str, path: str, **how: Any) -> Iterator[httpx.Response]:
        """Send a request and return a response to be read in parts."""
        headers = {**self._headers, **how.pop("headers", {})}
        try:
            with self._http.stream(method, self._at(path), headers=headers, **how) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _error_from_response(answer)
                yield answer
        except httpx.TransportError as error:
            raise _unreachable(error) from None

    def _at(self, path: str) -> httpx.URL:
        return self._url.copy_with(raw_path=self._url.raw_path + path.encode("ascii"))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _wait(number: int, asked: str | None = None) -> float:
    if asked is not None and asked.isdigit():
        return min(float(asked), _LONGEST_PAUSE)
    return min(_FIRST_PAUSE * 2.0 ** (number - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def _unreachable(error: httpx.TransportError) -> StoreUnavailableError:
    return StoreUnavailableError(f"the server cannot be reached ({type(error).__name__}); check the URL and try again")


def _error_from_response(answer: httpx.Response) -> Exception:
    try:
        told = answer.json()
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return UnansweredError(f"the server answered with status {answer.status_code} and no reason")
    return error_of(told, answer.status_code)
