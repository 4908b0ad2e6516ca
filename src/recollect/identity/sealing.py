"""What somebody is given to bring back: readable by anybody, made by nobody else."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from typing import Any

_MOST = 4000


def sealed(secret: bytes, what: str, told: dict[str, Any]) -> str:
    """A text that says this, in letters that go into an address. ``what`` keeps texts for different uses apart."""
    payload = text_of(json.dumps(told, separators=(",", ":")).encode())
    return f"{payload}.{text_of(_seal(secret, what, payload))}"


def opened(secret: bytes, what: str, text: str) -> dict[str, Any] | None:
    """What a text says; None if it was not sealed with this secret for this use."""
    payload, _, seal = text.partition(".")
    if len(text) > _MOST or not text.isascii() or not hmac.compare_digest(_data(seal), _seal(secret, what, payload)):
        return None
    told: dict[str, Any] = json.loads(_data(payload))
    return told


def text_of(data: bytes) -> str:
    """Bytes in letters that go into an address."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _seal(secret: bytes, what: str, payload: str) -> bytes:
    return hmac.digest(secret, f"{what} {payload}".encode(), "sha256")


def _data(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""
