"""A client of the Hacker News API (https://github.com/HackerNews/API): the top stories and their comments."""

from __future__ import annotations

import html
import json
import re
import time
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from typing import Any

URL = "https://hacker-news.firebaseio.com"
_TIMEOUT_SECONDS = 10
_CONNECTIONS = 8
_KEPT_SECONDS = 600
_MOST_ITEMS = 2000
_MARKUP = re.compile(r"<[^<>]*>")
_TOPICS = {
    "AI": "ai llm llms gpt agent agents",
    "CSS": "css",
    "PostgreSQL": "postgresql postgres",
    "Python": "python",
    "Rust": "rust",
    "SQLite": "sqlite",
    "Zig": "zig",
    "accessibility": "accessible accessibility readers",
    "compilers": "compiler compilers linker llvm zig",
    "crypto": "crypto bitcoin ethereum blockchain nft nfts web3",
    "databases": "database databases sql postgresql postgres sqlite mysql",
    "embedded": "satellite bootloader firmware microcontroller e-ink embedded",
    "hardware": "hardware keyboard chip cpu gpu dashboard soldering",
    "machine learning": "model models learning neural inference training",
    "privacy": "privacy tracking doorbell collects surveillance",
    "security": "security passkeys phishing signing vulnerability malware exploit",
    "web": "css browser browsers javascript html pages page queries",
    "work": "startup interviews founder office remote hiring",
}
"""The topics of a story, by words of its title: Hacker News has none. A classifier would do better."""


@dataclass(frozen=True, slots=True)
class Story:
    """A story. ``text`` is the post itself, if it has one; ``comments`` are ids, the best first."""

    id: str
    title: str
    text: str
    url: str
    topics: tuple[str, ...]
    comments: tuple[int, ...]


class HackerNews:
    """The API at a base URL. Its methods raise OSError if it cannot be reached or does not answer in JSON.

    Items are kept for ten minutes, so that a digest for a thousand readers asks for each of them once.
    """

    def __init__(self, url: str = URL) -> None:
        self._url = url
        self._item = lru_cache(_MOST_ITEMS)(self._fetch_item)

    def top_stories(self, limit: int = 30) -> list[Story]:
        """Return the stories of the front page, the best first."""
        ids = self._get("topstories")
        if not isinstance(ids, list):
            raise OSError(f"{self._url} does not speak the Hacker News API")
        return [_story(item) for item in self._items(ids[:limit]) if item["type"] == "story"]

    def comments(self, story: Story, limit: int = 2) -> list[str]:
        """Return the best comments on a story."""
        return [_text(item) for item in self._items(story.comments[:limit])]

    def _items(self, ids: Iterable[int]) -> list[dict[str, Any]]:
        period = int(time.time() / _KEPT_SECONDS)
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            items = [*pool.map(lambda id: self._item(id, period), ids)]
        return [item for item in items if item and not item.get("deleted") and not item.get("dead")]

    def _fetch_item(self, id: int, period: int) -> Any:
        return self._get(f"item/{id}")

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/v0/{path}.json", timeout=_TIMEOUT_SECONDS) as response:
            try:
                return json.load(response)
            except (ValueError, HTTPException):
                raise OSError(f"{self._url} does not speak the Hacker News API") from None


def _story(item: dict[str, Any]) -> Story:
    words = set(re.findall(r"[\w-]+", item["title"].lower()))
    topics = tuple(topic for topic, signs in _TOPICS.items() if words.intersection(signs.split()))
    url = item.get("url") or f"https://news.ycombinator.com/item?id={item['id']}"
    return Story(str(item["id"]), item["title"], _text(item), url, topics, tuple(item.get("kids", ())))


def _text(item: dict[str, Any]) -> str:
    """Return the text of an item without its HTML."""
    return html.unescape(_MARKUP.sub("", item.get("text", "").replace("<p>", "\n"))).strip()
