"""Paging through long lists. The cost of a page does not depend on what comes before it.

A cursor holds the sort key of the last item shown and the number of items before it. So a walk shows every item that
was there throughout exactly once, even while others write. To callers it is opaque.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, TypeVar

from recollect.errors import InvalidInputError

T = TypeVar("T")

Place = list[Any]
"""The sort key of an item, as JSON."""


class PageCursor:
    """One page of a list: its start, its size and, once read, the start of the next."""

    def __init__(self, size: int, cursor: str | None = None) -> None:
        self._size = size
        self._passed, self._place = _decode_cursor(cursor or "0")
        self.following: str | None = None

    @property
    def kept(self) -> Any:
        """The last part of the key that this page starts after; None for the first page."""
        return self._place[-1] if self._place else None

    def page(
        self, find: Callable[[Place | None, int], list[T]], place_of: Callable[[T], Place], limit: int | None
    ) -> list[T]:
        """Return the items of this page. ``find`` returns items after a place; ``limit`` is for all pages together."""
        left = self._size + 1 if limit is None else limit - self._passed
        most = min(self._size, left)
        if most <= 0:
            return []
        try:
            # a plain number given as a cursor says nothing about the item before it, so items are skipped
            skipped = self._passed if self._place is None else 0
            found = find(self._place, skipped + min(most + 1, left))[skipped:]
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            if self._place is None or isinstance(error, InvalidInputError):
                raise
            raise _foreign_cursor_error() from None
        items = found[:most]
        if len(found) > most:
            self.following = _encode_cursor(self._passed + most, place_of(items[-1]))
        return items


def _encode_cursor(passed: int, place: Place) -> str:
    text = json.dumps([passed, *place], ensure_ascii=False, separators=(",", ":"))
    return urlsafe_b64encode(text.encode("utf-8")).decode("ascii").rstrip("=")


def _decode_cursor(cursor: str) -> tuple[int, Place | None]:
    if cursor.isdecimal() and len(cursor) < 10:
        return int(cursor), None
    try:
        passed, *place = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("utf-8"))
        sound = type(passed) is int and 0 <= passed < 2**53 and place and all(map(_is_plain_value, place))
    except (ValueError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise _foreign_cursor_error()
    return passed, place


def _is_plain_value(value: object) -> bool:
    if isinstance(value, str):
        return "\0" not in value and value.isprintable()
    return type(value) is int and 0 <= value < 2**53


def _foreign_cursor_error() -> InvalidInputError:
    return InvalidInputError("cursor", "is invalid; start again without a cursor")
