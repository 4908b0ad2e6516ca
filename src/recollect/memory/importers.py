"""Import of other formats as records: a folder of Markdown, the MCP memory server's ``memory.jsonl``, and mem0's
export. Reads files; stores nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from recollect import checks as check
from recollect.config import Config
from recollect.document import daily_md
from recollect.document.memory_md import Document, decode_file, key_of, one_block, split_label
from recollect.errors import DocumentError, InvalidInputError, RecollectError
from recollect.memory.daily_notes import category_of_line
from recollect.policy.retention import daily_expiry
from recollect.records import DailyEntry, Fact, Note, Record, new_id
from recollect.times import from_text

_LARGEST = 64 << 20
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FRONT_MATTER = re.compile(r"\A\ufeff?---\r?\n(.*?)\r?\n---\r?\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to be imported, and where it was found."""

    where: str
    record: Record


@dataclass(frozen=True, slots=True)
class _Context:
    user_id: str
    from_user: str | None
    now: datetime
    config: Config
    skip: Callable[[str], None]

    def times(self, said: datetime | None = None) -> dict[str, Any]:
        return {"created_at": self.now, "updated_at": self.now, "valid_from": said or self.now}


def read_drafts(
    path: Path, user_id: str, from_user: str | None, now: datetime, config: Config, skipped: list[str]
) -> tuple[str, list[Draft]]:
    """Return the name of the format and all readable records. Explain the others in ``skipped``."""
    context = _Context(user_id, from_user, now, config, skipped.append)
    if path.is_dir():
        return "markdown", list(_markdown_drafts(path, context))
    if path.suffix.lower() in (".md", ".markdown"):
        return "markdown", list(_markdown_file_drafts(path, path.name, context))
    if path.stat().st_size > _LARGEST:
        raise InvalidInputError("path", f"{path.name} is larger than {_LARGEST >> 20} MB")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("path", f"{path.name} is not UTF-8 text") from None
    except OSError as error:
        raise InvalidInputError("path", f"{path.name} cannot be read ({error.strerror})") from None
    if (rows := _json_lines(text, path.name)) is not None and all("type" in row for row in rows):
        return "mcp", list(_mcp_drafts(rows, path.name, context))
    data = _from_json(text, path.name)
    if (memories := _mem0_rows(data)) is not None:
        return "mem0", list(_mem0_drafts(memories, path.name, context))
    raise InvalidInputError(
        "path",
        f"{path.name} has an unknown format; use a Recollect export, Markdown, an MCP memory.jsonl or a mem0 export",
    )


# a folder of Markdown


def _markdown_drafts(folder: Path, context: _Context) -> Iterator[Draft]:
    inside = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in (".md", ".markdown") or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        if not path.resolve().is_relative_to(inside):
            context.skip(f"{name}: skipped, because it links to a file outside the folder")
            continue
        yield from _markdown_file_drafts(path, name, context)


def _markdown_file_drafts(path: Path, name: str, context: _Context) -> Iterator[Draft]:
    try:
        if path.stat().st_size > _LARGEST:
            raise DocumentError(f"larger than {_LARGEST >> 20} MB")
        text = decode_file(path.read_bytes())
    except (DocumentError, OSError) as error:
        context.skip(f"{name}: {error}")
        return
    if path.name == "MEMORY.md":
        for item in Document.parse(text).items:
            yield Draft(
                f"{name} line {item.line}",
                Fact(
                    id=new_id("fact"),
                    **context.times(),
                    content=item.content,
                    key=item.key,
                    label=item.label,
                    category=item.category or "key_fact",
                    section=None if item.category else item.section,
                    tier="file",
                    source=f"import:{name}",
                ),
            )
        return
    day = _parse_day_name(path.stem)
    if day is not None and daily_expiry(day, context.config.daily_retention_days) > context.now:
        for entry in daily_md.parse_entries(text):
            section = entry.section if entry.section in daily_md.SECTIONS else "Extracted Insights"
            yield Draft(f"{name} line {entry.line}", _daily_entry(day, section, entry.content, name, context))
        return
    yield from _note_drafts(text, path.stem, name, context)


def _daily_entry(day: date, section: str, content: str, name: str, context: _Context) -> DailyEntry:
    return DailyEntry(
        id=new_id("daily"),
        **context.times(datetime(day.year, day.month, day.day, tzinfo=timezone.utc)),
        content=content,
        day=day,
        key=day.isoformat(),
        section=section,
        category=category_of_line(section, content),
        source=f"import:{name}",
        expires_at=daily_expiry(day, context.config.daily_retention_days),
    )


def _note_drafts(text: str, stem: str, name: str, context: _Context) -> Iterator[Draft]:
    front, body = _front_matter(text)
    heading = re.search(r"^#\s+(.+?)\s*#*\s*$", body, re.MULTILINE)
    try:
        title = check.check_line("title", front.get("title") or (heading[1] if heading else stem))
        tags = check.check_words(
            "tags", [tag.strip().lstrip("#") for tag in _split_list(front.get("tags", "")) if tag.strip("# ")]
        )
        content = check.check_text("content", body)
    except InvalidInputError as error:
        context.skip(f"{name}: {error}")
        return
    yield Draft(
        name,
        Note(id=new_id("note"), **context.times(), content=content, title=title, tags=tags, source=f"import:{name}"),
    )


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Parse simple ``name: value`` pairs at the top; a list below a name is joined with commas."""
    found = _FRONT_MATTER.match(text)
    if not found:
        return {}, text
    values: dict[str, str] = {}
    name = ""
    for line in found[1].splitlines():
        if line.lstrip().startswith("- ") and name:
            values[name] = f"{values[name]},{line.lstrip()[2:]}".strip(",")
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            values[name] = value.strip().strip("\"'")
    return values, text[found.end() :]


def _split_list(value: str) -> list[str]:
    return [part.strip().strip("\"'") for part in value.strip("[]").split(",") if part.strip()]


def _parse_day_name(stem: str) -> date | None:
    if not _DAY.fullmatch(stem):
        return None
    try:
        return date.fromisoformat(stem)
    except ValueError:
        return None


# the MCP memory server's graph


def _from_json(text: str, name: str) -> Any:
    """Return the parsed value, or None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
    except RecursionError:
        raise InvalidInputError("path", f"{name} is nested too deeply to be an export") from None


def _json_lines(text: str, name: str) -> list[dict[str, Any]] | None:
    rows = []
    for line in text.split("\n"):
        if line.strip():
            row = _from_json(line, name)
            if not isinstance(row, dict):
                return None
            rows.append(row)
    return rows or None


def _mcp_drafts(rows: list[dict[str, Any]], name: str, context: _Context) -> Iterator[Draft]:
    for number, row in enumerate(rows, 1):
        where = f"{name} line {number}"
        try:
            if row["type"] == "entity":
                subject = check.check_line("name", row["name"])
                sort = row.get("entityType")
                tags = check.check_words("entityType", [sort]) if sort else ()
                about_user = subject.casefold() in ("default_user", "user", context.user_id.casefold())
                for said in row.get("observations", []):
                    text = check.check_text("observations", said, check.MAX_FACT)
                    content = text if about_user else f"{subject} — {text}"
                    yield Draft(where, _make_fact(content, "import:mcp", context, tags=tags, keyed=about_user))
            elif row["type"] == "relation":
                words = [check.check_line(end, row[end]) for end in ("from", "relationType", "to")]
                content = " ".join(word.replace("_", " ") for word in words)
                fact = _make_fact(content, "import:mcp", context, keyed=False)
                yield Draft(where, replace(fact, type="relationship", category="personal_context"))
            else:
                context.skip(f"{where}: neither an entity nor a relation")
        except RecollectError as error:
            context.skip(f"{where}: {error}")
        except (KeyError, TypeError):
            context.skip(f"{where}: a field is missing or has the wrong type")


def _make_fact(content: str, source: str, context: _Context, *, tags: tuple[str, ...] = (), keyed: bool = True) -> Fact:
    text = one_block(content)
    label, value = (split_label(text) if keyed else None) or (None, text)
    return Fact(
        id=new_id("fact"),
        **context.times(),
        content=value,
        key=key_of(label) if label else None,
        label=label,
        category="key_fact",
        tier="file",
        source=source,
        tags=tags,
    )


# mem0


def _mem0_rows(data: Any) -> list[dict[str, Any]] | None:
    if isinstance(data, dict):
        data = next((data[name] for name in ("results", "memories", "data") if isinstance(data.get(name), list)), None)
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        return None
    return data if all(isinstance(row.get("memory", row.get("text")), str) for row in data) else None


def _mem0_drafts(rows: list[dict[str, Any]], name: str, context: _Context) -> Iterator[Draft]:
    owners = {str(row["user_id"]) for row in rows if row.get("user_id") is not None}
    wanted = context.from_user
    if wanted is None and len(owners) > 1:
        if context.user_id not in owners:
            raise InvalidInputError("from_user", f"{name} has memories of {len(owners)} users; choose one")
        wanted = context.user_id
    if wanted is not None and wanted not in owners:
        raise InvalidInputError("from_user", f"{name} has no memories of user {wanted!r}")
    for number, row in enumerate(rows, 1):
        where = f"{name} memory {number}"
        if wanted is not None and str(row.get("user_id")) != wanted:
            continue
        try:
            text = check.check_text("memory", row.get("memory", row.get("text")), check.MAX_FACT)
            categories = check.check_words("categories", row.get("categories") or [])
            fact = _make_fact(text, "import:mem0", context, tags=categories, keyed=False)
            metadata = check.check_metadata("metadata", row.get("metadata"))
            said = row.get("created_at")
            yield Draft(
                where,
                replace(
                    fact,
                    metadata=metadata,
                    valid_from=_parse_created_at(said) if isinstance(said, str) else context.now,
                ),
            )
        except RecollectError as error:
            context.skip(f"{where}: {error}")


def _parse_created_at(text: str) -> datetime:
    try:
        moment = from_text(text)
        return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        raise InvalidInputError("created_at", "must be a time such as 2026-01-31T12:00:00Z") from None
