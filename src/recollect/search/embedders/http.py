"""An embedder over HTTP: any OpenAI-compatible /embeddings endpoint (Ollama, vLLM, TEI, llama.cpp, OpenAI).

Certificates are verified, redirects are not followed (they would carry the key and the texts elsewhere), and no error
quotes the key or a text. Each request has its own connection, so it is thread-safe.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import ipaddress
import json
import random
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

import numpy as np

from recollect.errors import ConfigError, EmbedderError
from recollect.search.embedders.embedder import as_vectors
from recollect.times import utc_now

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ATTEMPTS = 4
_PASSING = (408, 425, 429)
"""Status codes worth a retry, besides those from 500 on."""
_LARGEST_ANSWER = 256 * 1024 * 1024


class HttpEmbedder:
    """An endpoint and a model.

    The URL may end before /embeddings or with it; without a path, /v1/embeddings is used. ``timeout`` limits the
    seconds for one batch, including retries. ``dimensions`` requests vectors of that size; without it, the first answer
    sets the size.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        dimensions: int | None = None,
        timeout: float = 10.0,
        batch: int = 64,
    ) -> None:
        parts = _endpoint(url)
        self._url = urlunsplit(parts)
        self._host = parts.netloc
        self._model = model
        self._key = _checked_key(key)
        self._asked = dimensions
        self._timeout = timeout
        self._batch = batch
        self._dimensions = dimensions
        self._guard = threading.Lock()
        self._opener = _opener(parts.hostname or "")
        # a query may contain a key, so it is not part of the name
        plain = urlunsplit(parts._replace(query="")).removesuffix("/embeddings")
        self.name = f"{plain}#{model}" + (f"@{dimensions}" if dimensions else "")

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._embed_batch(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # servers refuse empty texts; their vector is zero, near to nothing
        spoken = [number for number, text in enumerate(texts) if text.strip()]
        found = [
            self._embed_batch([texts[number] for number in spoken[start : start + self._batch]])
            for start in range(0, len(spoken), self._batch)
        ]
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        if found:
            rows[spoken] = np.concatenate(found)
        return rows

    def _embed_batch(self, texts: list[str]) -> NDArray[np.float32]:
        answer = self._ask(texts)
        try:
            found = _rows_of(answer, len(texts))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise EmbedderError(
                f"{self._host} did not answer like an OpenAI-compatible embeddings endpoint ({_shape(error)});"
                " check the URL in MEMORY_EMBEDDER"
            ) from None
        with self._guard:
            rows = as_vectors(found, len(texts), self._dimensions, self.name)
            self._dimensions = rows.shape[1]
        return rows

    def _ask(self, texts: list[str]) -> bytes:
        """Return the body of a successful answer, retrying temporary problems while there is time."""
        deadline = time.monotonic() + self._timeout
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._post(texts, deadline)
            except _PassingProblem as problem:
                wait = max(problem.wait, 0.1 * 2**attempt * random.uniform(0.5, 1.0))
                if attempt == _ATTEMPTS or time.monotonic() + wait >= deadline:
                    raise EmbedderError(f"{self._host} {problem}; check that it is running and try again") from None
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _post(self, texts: list[str], deadline: float) -> bytes:
        body: dict[str, Any] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked is not None:
            body["dimensions"] = self._asked
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "recollect"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        # lone surrogates, which UTF-8 does not have, come from broken file names and the like
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        request = urllib.request.Request(self._url, data, headers, method="POST")
        seconds = max(deadline - time.monotonic(), 0.001)
        try:
            with self._opener.open(request, timeout=seconds) as response:
                return _read_response(response, deadline)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error, texts, deadline) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> Exception:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return EmbedderError(f"the certificate of {self._host} cannot be verified ({cause.verify_message})")
        if isinstance(cause, TimeoutError):
            return _PassingProblem(f"did not answer within {self._timeout:g} seconds")
        words = cause.strerror if isinstance(cause, OSError) and cause.strerror else type(cause).__name__
        return _PassingProblem(f"cannot be reached ({words})")

    def _refused(self, error: urllib.error.HTTPError, texts: list[str], deadline: float) -> Exception:
        if 300 <= error.code < 400:
            target = urlsplit(error.headers.get("Location", "")).netloc or "another address"
            return EmbedderError(f"{self._host} redirects to {target}; set the URL in MEMORY_EMBEDDER to the final one")
        if error.code in _PASSING or error.code >= 500:
            wait = _retry_after(error.headers.get("Retry-After"))
            asks = f" and asks to wait {wait:.0f} seconds" if wait else ""
            return _PassingProblem(f"answered HTTP {error.code}{asks}", wait)
        reason = self._reason(error, texts, deadline)
        hint = {401: "check MEMORY_EMBEDDER_KEY", 403: "check MEMORY_EMBEDDER_KEY"}.get(
            error.code, "check the URL and the model in MEMORY_EMBEDDER"
        )
        return EmbedderError(f"{self._host} refused with HTTP {error.code}{reason}; {hint}")

    def _reason(self, error: urllib.error.HTTPError, texts: list[str], deadline: float) -> str:
        """Return the server's reason for a refusal, unless it quotes what it was sent."""
        try:
            said: Any = json.loads(_read_response(error, deadline))
        except (OSError, http.client.HTTPException, ValueError, RecursionError):
            return ""
        for name in ("error", "message", "detail"):
            if isinstance(said, dict) and name in said:
                said = said[name]
        if not isinstance(said, str) or not said.strip():
            return ""
        plain = " ".join("".join(letter if letter.isprintable() else " " for letter in said).split())
        quoted = _shares(said, self._key, 4) or any(_shares(said, text, 12) for text in texts)
        return " (its reason quotes what was sent)" if quoted else f" ({plain[:200]})"


class _PassingProblem(Exception):
    """A temporary problem; ``wait`` is the number of seconds the server asks for."""

    def __init__(self, problem: str, wait: float = 0.0) -> None:
        super().__init__(problem)
        self.wait = wait


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        return None


def _opener(host: str) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    try:
        here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = False
    if here:
        handlers.append(urllib.request.ProxyHandler({}))  # a proxy cannot reach this machine
    return urllib.request.build_opener(*handlers)


def _endpoint(url: str) -> SplitResult:
    wrong = "MEMORY_EMBEDDER: the URL is invalid; use http://HOST/v1#MODEL"
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        raise ConfigError(wrong) from None
    readable = parts.scheme in ("http", "https") and parts.hostname and port_is_number
    if not readable or any(letter.isspace() or not letter.isprintable() for letter in url) or not url.isascii():
        raise ConfigError(wrong)
    if "@" in parts.netloc:
        raise ConfigError("MEMORY_EMBEDDER: put the key into MEMORY_EMBEDDER_KEY, not into the URL")
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path = f"{path or '/v1'}/embeddings"
    return parts._replace(path=path, fragment="")


def _checked_key(key: str | None) -> str:
    key = (key or "").strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise ConfigError("MEMORY_EMBEDDER_KEY has invalid characters; copy it again")
    return key


def _read_response(response: IO[bytes], deadline: float) -> bytes:
    """Return the whole answer, within the deadline even if the server sends it byte by byte."""
    parts: list[bytes] = []
    size = 0
    # read1 returns what is available; an error response has it only inside
    read = getattr(response, "read1", None) or response.read
    while part := read(1 << 16):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
        if size > _LARGEST_ANSWER:
            raise EmbedderError("the answer of the embeddings endpoint is too long; check the URL in MEMORY_EMBEDDER")
    if getattr(response, "length", None):
        raise http.client.IncompleteRead(b"")
    return b"".join(parts)


def _retry_after(header: str | None) -> float:
    if not header:
        return 0.0
    try:
        return max(float(header), 0.0) if header.strip().isdigit() else _until(header)
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _until(date: str) -> float:
    return max((parsedate_to_datetime(date) - utc_now()).total_seconds(), 0.0)


def _rows_of(answer: bytes, count: int) -> list[Any]:
    items = json.loads(answer)["data"]
    if not isinstance(items, list) or len(items) != count:
        raise ValueError(f"{len(items)} vectors for {count} texts")
    rows: dict[int, Any] = {}
    for position, item in enumerate(items):
        vector = item["embedding"]
        rows[int(item.get("index", position))] = _decode_vector(vector) if isinstance(vector, str) else vector
    if sorted(rows) != list(range(count)):
        raise ValueError("vectors numbered differently from the texts")
    found = [rows[number] for number in range(count)]
    if len({len(row) for row in found}) > 1:
        raise ValueError("vectors of different sizes")
    return found


def _decode_vector(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4")


def _shape(error: Exception) -> str:
    """Describe the problem with an answer, without quoting it."""
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "not JSON"
    if isinstance(error, KeyError):
        return f"no {error.args[0]}"
    if isinstance(error, binascii.Error) or type(error) is not ValueError:
        return "other fields than expected"
    return str(error) if str(error).startswith(("vectors ", *"0123456789")) else "other values than expected"


def _shares(said: str, text: str, length: int) -> bool:
    """Return True if a part of a text this long, or all of a shorter one, occurs in a message."""
    if len(text) <= length:
        return len(text) > 3 and text in said
    return any(text[start : start + length] in said for start in range(len(text) - length + 1))
