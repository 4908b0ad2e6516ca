"""Settings: one frozen value, and the only place that reads the environment.

An invalid value raises an error that names its variable. Unknown variables are ignored. The name of a model is checked
when the model is opened (`model_parts`): a wrong one stops only what needs a model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from recollect.errors import ConfigError, InvalidInputError


def _setting(
    default: Any,
    variable: str,
    description: str,
    low: float | None = None,
    high: float | None = None,
    *,
    words: tuple[str, ...] = (),
) -> Any:
    """Declare a setting. ``words`` are allowed in place of a number."""
    about = {"variable": variable, "description": description, "low": low, "high": high, "words": words}
    return field(default=default, metadata=about)


SUITE_NAMES = ("entries", "notes", "observations", "facts", "profile", "sessions", "files")
NEW_CHATS = "new"
"""The value of MEMORY_TOOL_ROLLOUT for "new chats only"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. Build it with `Config.load()`, or directly in tests."""

    memory_dir: Path = _setting(Path("data/memory"), "MEMORY_DIR", "the folder that holds one folder per user")
    database_url: str = _setting(
        "", "MEMORY_DATABASE_URL", "postgresql://… to keep records in PostgreSQL; empty: SQLite in MEMORY_DIR"
    )
    database_pool: int = _setting(
        10, "MEMORY_DATABASE_POOL", "with PostgreSQL: the maximum number of connections per process", 1, 1000
    )
    files: bool = _setting(
        True,
        "MEMORY_FILES",
        "with PostgreSQL: also keep MEMORY.md and the daily notes in MEMORY_DIR; default: only if MEMORY_DIR is set",
    )
    enabled: bool = _setting(True, "MEMORY_ENABLED", "false pauses memory for everyone; search still works")
    max_words: int = _setting(
        2000, "MEMORY_MAX_WORDS", "the maximum size of MEMORY.md in words; it is pruned to this", 50, 100_000
    )
    confidence_threshold: float = _setting(
        0.7,
        "MEMORY_CONFIDENCE_THRESHOLD",
        "facts below this confidence go to the daily note instead of MEMORY.md",
        0,
        1,
    )
    daily_retention_days: int = _setting(
        90, "MEMORY_DAILY_RETENTION_DAYS", "how long daily notes are kept, in days", 1, 36_500
    )
    message_retention_days: int = _setting(
        0,
        "MEMORY_MESSAGE_RETENTION_DAYS",
        "how long messages are kept after they were said, unless marked important, in days; 0: no limit",
        0,
        36_500,
    )
    call_retention_days: int = _setting(
        90, "MEMORY_CALL_RETENTION_DAYS", "how long tool calls are kept in the log, in days", 1, 36_500
    )
    interaction_retention_days: int = _setting(
        90, "MEMORY_INTERACTION_RETENTION_DAYS", "how long reported interactions are kept, in days", 1, 36_500
    )

    bm25_k1: float = _setting(1.5, "MEMORY_BM25_K1", "how much repeated words in a text count", 0, 10)
    bm25_b: float = _setting(0.75, "MEMORY_BM25_B", "how much long texts are discounted", 0, 1)
    index_limit: int = _setting(
        500_000,
        "MEMORY_INDEX_LIMIT",
        "with PostgreSQL: users with more records are searched in the database instead of in memory",
        1,
        10**9,
    )
    tsvector: bool = _setting(
        False,
        "MEMORY_TSVECTOR",
        "with PostgreSQL: search with the database's own full-text search (tsvector, English) instead of the index",
    )
    context_max_tokens: int = _setting(
        1500, "MEMORY_CONTEXT_MAX_TOKENS", "the size of the memory put into a prompt, in tokens", 50, 1_000_000
    )
    language: str = _setting("", "MEMORY_LANGUAGE", "the language for search: en, de, uk …; empty: detected per text")
    embedder: str = _setting(
        "", "MEMORY_EMBEDDER", "URL#MODEL, onnx:FOLDER, package:NAME or fastembed:MODEL; empty: search by words only"
    )
    embedder_key: str = _setting("", "MEMORY_EMBEDDER_KEY", "the API key of an embedder behind a URL")
    embedder_timeout_ms: int = _setting(
        1000, "MEMORY_EMBEDDER_TIMEOUT_MS", "how long a search waits for the embedder, in milliseconds", 1, 600_000
    )
    model: str = _setting(
        "",
        "MEMORY_MODEL",
        "NAME or openai:NAME, anthropic:NAME, gemini:NAME, URL#NAME; empty: no model, everything works by rules",
    )
    extraction_model: str = _setting(
        "", "MEMORY_EXTRACTION_MODEL", "the model that extracts memories, in the same format; empty: MEMORY_MODEL"
    )
    local_model: str = _setting(
        "",
        "MEMORY_LOCAL_MODEL",
        "a local model, tried before the other one where the rules are uncertain, as URL#NAME",
    )
    model_key: str = _setting(
        "", "MEMORY_MODEL_KEY", "the API key of the model; empty: the provider's own variable, such as OPENAI_API_KEY"
    )
    model_url: str = _setting("", "MEMORY_MODEL_URL", "a different base URL for the provider of MEMORY_MODEL")
    model_timeout_ms: int = _setting(
        60_000, "MEMORY_MODEL_TIMEOUT_MS", "timeout of a request to the model, in milliseconds", 1, 3_600_000
    )
    tool_based: bool = _setting(
        True,
        "ENABLE_TOOL_BASED_MEMORY",
        "false: models get no memory tools in discussions; memory is extracted afterwards",
    )
    tool_rollout: int | str = _setting(
        100,
        "MEMORY_TOOL_ROLLOUT",
        "the percentage of chats in which models get memory tools; new: only chats that have none so far",
        0,
        100,
        words=(NEW_CHATS,),
    )
    tool_suites: str = _setting(
        "entries", "MEMORY_TOOL_SUITES", "the tool suites that models get in discussions, separated by commas"
    )
    persona: str = _setting(
        "", "MEMORY_PERSONA", "who the model is in discussions: a text at the beginning of its system prompt"
    )
    automated_fallback: bool = _setting(
        True, "ENABLE_AUTOMATED_MEMORY_FALLBACK", "extract by rules what models with tools may have missed"
    )
    extraction_schedule: str = _setting(
        "0 23 * * *", "MEMORY_EXTRACTION_SCHEDULE", "when a worker learns from the day, as a cron expression in UTC"
    )
    tool_async: bool = _setting(
        True, "MEMORY_TOOL_ASYNC", "let a tool that takes too long for a reply continue in the background"
    )
    tool_timeout_ms: int = _setting(
        200, "MEMORY_TOOL_TIMEOUT_MS", "how long a reply waits for a tool, in milliseconds", 1, 600_000
    )
    tool_queue_size: int = _setting(
        1000, "MEMORY_TOOL_QUEUE_SIZE", "the maximum number of waiting background jobs; more are refused", 1, 10_000_000
    )
    daily_tokens: int = _setting(
        0, "MEMORY_DAILY_TOKENS", "the tokens a user may spend on memory in a day (UTC); 0: no limit", 0, 10**12
    )
    daily_cost: float = _setting(
        0.0,
        "MEMORY_DAILY_COST",
        "what a user may spend on memory in a day (UTC), in your currency; 0: no limit",
        0,
        1e9,
    )
    price_in: float = _setting(0.0, "MEMORY_PRICE_IN", "the price of a million input tokens, for the ledger", 0, 1e9)
    price_out: float = _setting(0.0, "MEMORY_PRICE_OUT", "the price of a million output tokens, for the ledger", 0, 1e9)
    http_key_rate: int = _setting(
        60_000, "MEMORY_HTTP_KEY_RATE", "HTTP requests per minute per API key; 0: no limit", 0, 10**9
    )
    http_user_rate: int = _setting(
        6_000, "MEMORY_HTTP_USER_RATE", "HTTP requests per minute per user; 0: no limit", 0, 10**9
    )
    console_url: str = _setting(
        "", "MEMORY_CONSOLE_URL", "the public URL of the web console, such as https://memory.example.com/console"
    )
    telemetry: str = _setting(
        "", "MEMORY_TELEMETRY", "telemetry of tool calls: otel, otlp, prometheus:PORT, separated by commas; empty: none"
    )
    telegram_token: str = _setting("", "TELEGRAM_BOT_TOKEN", "the token of your bot, from @BotFather")
    telegram_url: str = _setting("https://api.telegram.org", "MEMORY_TELEGRAM_URL", "the Bot API server")

    weights: str = _setting(
        "", "", "the weights of the search signals, as in vector=1,date=0.75; empty: the measured defaults"
    )
    """Only an argument of `recollect.open`, for benchmarks. You should not need to change the measured weights."""

    def __post_init__(self) -> None:
        for f in fields(self):
            low, high = f.metadata["low"], f.metadata["high"]
            value = getattr(self, f.name)
            if isinstance(f.default, Path) and isinstance(value, str):
                value = Path(value)
                object.__setattr__(self, f.name, value)  # as a caller wrote it
            _check_type(f, value)
            if low is not None and value not in f.metadata["words"] and not low <= value <= high:
                raise ConfigError(f"{f.metadata['variable']} is {value}; it must be from {low} to {high}")
        for wanted in filter(None, self.telemetry.replace(" ", "").split(",")):
            if not re.fullmatch(r"none|otel|otlp|prometheus:(\S+:)?\d{1,5}", wanted):
                raise ConfigError(f"MEMORY_TELEMETRY is {self.telemetry!r}; it must be otel, otlp or prometheus:PORT")
        self.weight_changes()
        self.suite_names()
        given = {"MEMORY_MODEL_URL": self.model_url, "MEMORY_CONSOLE_URL": self.console_url}
        urls = {name: url for name, url in given.items() if url} | {"MEMORY_TELEGRAM_URL": self.telegram_url}
        for variable, url in urls.items():
            if not re.match(r"https?://[^\s/]", url):
                raise ConfigError(f"{variable} is {without_password(url)!r}; it must begin with http:// or https://")

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Config:
        """Return the settings from the environment. Arguments that are not None override it."""
        environ = os.environ if environ is None else environ
        if not isinstance(environ, Mapping) or not all(isinstance(text, str) for text in environ.values()):
            raise ConfigError("environ must map names to texts, as os.environ does")
        if unknown := overrides.keys() - {f.name for f in fields(cls)}:
            raise ConfigError(
                f"there is no setting {min(unknown)!r}; `recollect config` and docs/configuration.md list all"
            )
        values: dict[str, Any] = {}
        for f in _variables():
            text = environ.get(f.metadata["variable"], "").strip()
            if text:
                values[f.name] = _parse_setting(f, text)
        values.update({name: value for name, value in overrides.items() if value is not None})
        # with PostgreSQL, do not write files to a folder that was never named
        values.setdefault("files", not values.get("database_url") or "memory_dir" in values)
        return cls(**values)

    @classmethod
    def resolve(cls, where: str | Path | None = None, files: str | Path | None = None, **overrides: Any) -> Config:
        """Return the settings for a place: a folder, a ``postgresql://`` address, or what the environment names.

        Every entry point uses this to find the memories and files: if two disagreed, one would leave files behind that
        the other reads. ``files`` is the folder for MEMORY.md and daily notes with PostgreSQL.
        """
        if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
            overrides["database_url"] = where
        elif where is not None:
            if not str(where) or "://" in str(where):
                raise InvalidInputError("where", "must be a folder or begin with postgresql://")
            overrides |= {"memory_dir": Path(where), "database_url": "", "files": True}
        if files is not None:
            overrides |= {"memory_dir": Path(files), "files": True}
        chosen = cls.load(**overrides)
        if files is not None and not chosen.database_url:
            raise InvalidInputError("files", "requires PostgreSQL; with a folder, the files are in that folder")
        return chosen

    @classmethod
    def table(cls) -> list[tuple[str, str, str]]:
        """Return the variable, default and description of every setting."""
        return [(f.metadata["variable"], _display_value(f.default), f.metadata["description"]) for f in _variables()]

    def values(self) -> dict[str, str]:
        """Return each variable with its value. Passwords in URLs are masked."""
        shown = {f.metadata["variable"]: _display_value(getattr(self, f.name)) for f in _variables()}
        for name in _URLS:
            shown[name] = without_password(shown[name])
        for name in ("MEMORY_EMBEDDER_KEY", "MEMORY_MODEL_KEY", "TELEGRAM_BOT_TOKEN"):
            shown[name] = "***" if shown[name] else ""
        return shown

    def suite_names(self) -> tuple[str, ...]:
        """Return the tool suites that models get in discussions."""
        names = tuple(name for part in self.tool_suites.split(",") if (name := part.strip()))
        if unknown := [name for name in names if name not in SUITE_NAMES]:
            known = ", ".join(SUITE_NAMES)
            raise ConfigError(f"MEMORY_TOOL_SUITES is {self.tool_suites!r}; {unknown[0]!r} is not one of {known}")
        if not names:
            raise ConfigError("MEMORY_TOOL_SUITES names no suite; ENABLE_TOOL_BASED_MEMORY=false offers no tools")
        return names

    def weight_changes(self) -> dict[str, float]:
        """Return the search weights that are set, by name."""
        changes: dict[str, float] = {}
        for item in self.weights.replace(" ", "").split(","):
            name, equals, number = item.partition("=")
            if not item:
                continue
            try:
                changes[name] = float(number)
            except ValueError:
                equals = ""
            if not equals or not name:
                raise ConfigError(f"weights is {self.weights!r}; it must be like vector=1,date=0.75") from None
        return changes


TURNED_OFF = "memory is turned off for everyone (MEMORY_ENABLED); the operator can turn it on"
"""The reason why nothing is stored if `Config.enabled` is False."""

_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "text"),
}


def _check_type(f: Field[Any], value: object) -> None:
    """Raise an error that names the setting, as the environment and as an argument, unless the value has its type."""
    kinds, wanted = _KINDS.get(type(f.default), ((Path,), "a path"))
    if value in f.metadata["words"]:
        return
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join([wanted, *f.metadata["words"]])
        given = repr(value) if isinstance(value, str) and f.metadata["words"] else type(value).__name__
        raise ConfigError(f"{f.metadata['variable'] or f.name} ({f.name}=) must be {wanted}, not {given}")


def _variables() -> list[Field[Any]]:
    return [f for f in fields(Config) if f.metadata["variable"]]


def without_password(url: str) -> str:
    """Return the URL with its password masked."""
    scheme, mark, rest = url.partition("://")
    credentials, at, host = rest.rpartition("@")
    if not at:
        return url
    return f"{scheme}{mark}{credentials.partition(':')[0]}:***@{host}"


def model_parts(spec: str, variable: str = "MEMORY_MODEL") -> tuple[str, str, str]:
    """Return provider, name and URL: ("openai", "gpt-5.5", ""), or ("", "qwen3", "http://localhost:8080/v1").

    A name without a provider is OpenAI's.
    """
    named = re.fullmatch(r"(?:(openai|anthropic|gemini):)?(\S+)", spec)
    if named and not named[1] and not re.fullmatch(r"\w[\w.-]*", spec):
        named = None
    placed = re.fullmatch(r"(https?://[^\s/#][^\s#]*)#(\S+)", spec)
    if spec and not named and not placed:
        forms = "NAME or openai:NAME, anthropic:NAME, gemini:NAME, or http://HOST/v1#NAME"
        raise ConfigError(f"{variable} is {without_password(spec)!r}; it must be {forms}")
    if placed:
        return "", placed[2], placed[1]
    return (named[1] or "openai", named[2], "") if named else ("", "", "")


_URLS = (
    "MEMORY_DATABASE_URL",
    "MEMORY_EMBEDDER",
    "MEMORY_MODEL",
    "MEMORY_EXTRACTION_MODEL",
    "MEMORY_LOCAL_MODEL",
    "MEMORY_MODEL_URL",
    "MEMORY_TELEGRAM_URL",
)

_WORDS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)


def _parse_setting(f: Field[Any], text: str) -> Any:
    variable, words = f.metadata["variable"], f.metadata["words"]
    kind: type[Any] = type(f.default)
    if text.lower() in words:
        return text.lower()
    try:
        if kind is bool:
            return _WORDS[text.lower()]
        if kind is int or kind is float:
            return kind(text)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise ConfigError(f"{variable} is {text!r}; it must be {' or '.join([wanted, *words])}") from None
    return Path(text) if issubclass(kind, Path) else text


def _display_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
