"""Generated documents: parsed, saved on disk, imported."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import recollect
from recollect.document import daily_md, memory_md
from recollect.document.memory_md import Document
from recollect.testing import MemoryStore
from tests.soak import values
from tests.soak.cases import CASES_IN_A_CHUNK, Case, Raw, call_verb, memory_app
from tests.soak.warm import USER

# -- the parser --------------------------------------------------------------------------------------------------------

MARKDOWN = (
    "# User Memory\n",
    "\n",
    "## User Preferences\n",
    "## Work Context\r\n",
    "## Key Facts\n",
    "### Deeper\n",
    "## Mine\n",
    "Setext\n---\n",
    "- Role: engineer\n",
    "* Likes tea\n",
    "+ plus\n",
    "1. first\n",
    "- [ ] to do\n",
    "- [x] done\n",
    "-\n",
    "- \n",
    "-no space\n",
    "  - nested: value\n",
    "    code\n",
    "\tTab: value\n",
    "\\- no list\n",
    "\\\tBackslash and tab: value\n",
    "- \\ # no heading\n",
    "```\nfenced\n```\n",
    "```\nnever closed\n",
    "~~~py\nx = 1\n~~~\n",
    "> quoted\n",
    "<!-- a comment -->\n",
    "<!-- never closed\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "---\ntitle: x\n---\n",
    "A paragraph of prose.\nIts second line.\n",
    "- Київ: місто\n",
    "- : no label\n",
    "- label:\n",
    "- a: b: c\n",
    "- **Bold**: value\n",
    "- [link](http://example.org): value\n",
    "\u202e- rtl\n",
    "- \u00a0nbsp\n",
    "\ufeff",
    "\x0b",
    "\x0c",
    "\u2028",
    "\x85",
    "no newline",
    "\r",
    "- Role: engineer\r\n",
)


def markdown(random: Random) -> bytes:
    """Something a person might have saved, down to bytes that are no text."""
    parts = [random.choice(MARKDOWN) for _ in range(random.randint(1, 25))]
    if random.random() < 0.3:
        parts.insert(random.randrange(len(parts)), values.text(random))
    data = bytearray("".join(parts).encode("utf-8", "surrogatepass"))
    if random.random() < 0.1:
        for _ in range(random.randint(1, 5)):
            data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data)


SECTIONS = (*memory_md.SECTIONS.values(), "Mine", "Deeper", "Setext", *daily_md.SECTIONS)


def parser_cases(place: Path, random: Random) -> Iterator[Case]:
    """MEMORY.md and daily notes as text: parsed, changed in one place, and saved through `edit`."""
    editor = recollect.open(MemoryStore()).user("editor")
    for number in range(CASES_IN_A_CHUNK):
        text = markdown(random).decode("utf-8", "surrogateescape")
        if number % 25 == 0:
            yield f"edit({text!r:.1500})", partial(call_verb, editor, "edit", [text], {})
            continue
        change = random.choice((add, replace, rename, remove, move, note_down, None))
        seed = random.random()
        what = change.__name__ if change else "parse"
        yield f"{what}({text!r:.1500}, {seed})", partial(parse, text, change, Random(seed))


Change = Callable[[Document, Random], Document]


def parse(text: str, change: Change | None, random: Random) -> bool:
    """Parse and render a text; the same after one change, whose result must read as it is written."""
    document = Document.parse(text)
    if document.render() != text:
        raise Raw(f"rendered as {document.render()!r:.1500}")
    if document.word_count != len(text.split()):
        raise Raw(f"{document.word_count} words, not {len(text.split())}")
    for item in (*document.items, *daily_md.parse_entries(text)):
        if memory_md.one_block(item.content) != item.content:
            raise Raw(f"{item!r} would be written as another text")
    if change is None:
        return True
    try:
        changed = change(document, random)
    except recollect.RecollectError:
        return False
    again = Document.parse(changed.render())
    if again.items != changed.items or again.word_count != changed.word_count:
        raise Raw(f"{changed.render()!r:.1500} does not read as it was written")
    return True


def an_item(document: Document, random: Random) -> Any:
    if not document.items:
        raise recollect.NotFoundError("the file says nothing")
    return random.choice(document.items)


def add(document: Document, random: Random) -> Document:
    key = random.choice((None, values.text(random)[:40]))
    return document.add(random.choice((*SECTIONS, values.text(random))), values.text(random), key)


def replace(document: Document, random: Random) -> Document:
    return document.replace(an_item(document, random), values.text(random))


def rename(document: Document, random: Random) -> Document:
    return document.rename(an_item(document, random), values.text(random))


def remove(document: Document, random: Random) -> Document:
    chosen = [item for item in document.items if random.random() < 0.3]
    return document.remove_all(chosen) if random.random() < 0.5 else document.remove(an_item(document, random))


def move(document: Document, random: Random) -> Document:
    return document.move(an_item(document, random), random.choice(SECTIONS))


def note_down(document: Document, random: Random) -> Document:
    """An entry in a daily note: what was there stays as it is, around it."""
    before = document.render()
    after = daily_md.append_entry(before, date(2026, 2, 12), random.choice(SECTIONS), values.text(random))
    begin = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before))
    if not after.endswith(before[begin:]):
        raise Raw(f"appended as {after!r:.1500}")
    return Document.parse(after)


# -- files -----------------------------------------------------------------------------------------------------------


def file_cases(place: Path, random: Random) -> Iterator[Case]:
    """MEMORY.md and daily notes on disk with random content: reading changes not a byte.

    Each file is that of a new user, of whom nothing else is known: what agents stored would have to go into the file.
    """
    root = place / "memory"
    app = recollect.open(root) if random.random() < 0.2 else recollect.open(MemoryStore(), files=root)
    for number in range(CASES_IN_A_CHUNK):
        data = markdown(random)
        memory = app.user(f"u{number}")
        file = root / f"u{number}" / ("memory/2026-02-12.md" if number % 3 else "MEMORY.md")
        yield f"{file.name} = {data!r:.1500}", partial(read_file, memory, file, data)
        memory.count()
    app.close()


def read_file(memory: recollect.Memory, file: Path, data: bytes) -> bool:
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    accepted = True
    try:
        memory.read()
        memory.show()
        memory.daily("2026-02-12")
        memory.search("tea")
        memory.note("Somebody writes")
    except recollect.RecollectError:
        accepted = False
    if is_blank(data):
        return accepted  # MEMORY.md is written anew, a daily note is removed
    now = file.read_bytes() if file.exists() else b""
    if now != data:
        raise Raw(f"{file.name} is not byte for byte what was saved: {now!r:.1500}")
    return accepted


def is_blank(data: bytes) -> bool:
    try:
        return not data.decode().strip("\ufeff \t\r\n")
    except UnicodeDecodeError:
        return False


# -- imports ---------------------------------------------------------------------------------------------------------


def import_cases(place: Path, random: Random) -> Iterator[Case]:
    """Archives that somebody damaged, and files in the other formats with anything in them."""
    with memory_app(place, random) as app:
        archive = place / "good.zip"
        app.user(USER).export(archive)
        good = archive.read_bytes()
        for number in range(CASES_IN_A_CHUNK):
            name, data = damaged(random, good)
            path = place / f"import-{number % 7}{name}"
            memory = app.user(random.choice(("other", f"new {number}")))
            yield f"import {path.name} {data!r:.300}", partial(import_file, memory, path, data)
            app.user("other").count()


def damaged(random: Random, good: bytes) -> tuple[str, bytes]:
    choice = random.random()
    if choice < 0.35:
        data = bytearray(good)
        for _ in range(random.choice((1, 1, 3, 30))):
            data[random.randrange(len(data))] = random.randrange(256)
        return ".zip", bytes(data[: random.choice((len(data), random.randrange(len(data))))])
    if choice < 0.7:
        return ".zip", repacked(random, good)
    ending = random.choice((".jsonl", ".json", ".md", ".zip", ".txt", ""))
    if random.random() < 0.5:
        rows = [values.arguments_for(random, MEM0) for _ in range(random.randint(0, 5))]
        body = json.dumps(rows) if ending == ".json" else "\n".join(json.dumps(row) for row in rows)
        return ending, body.encode("utf-8", "replace")
    return ending, markdown(random)


MEM0: dict[str, Any] = {
    "properties": {
        name: {"type": kind}
        for name, kind in {
            "type": "string",
            "name": "string",
            "entityType": "string",
            "observations": "array",
            "memory": "string",
            "user_id": "string",
            "created_at": "string",
            "metadata": "object",
            "id": "string",
        }.items()
    }
}


def repacked(random: Random, good: bytes) -> bytes:
    """The archive with something else in its files; half of the time in one row of one of them alone."""
    out = io.BytesIO()
    alone = random.choice(("records.jsonl", "records.jsonl", "journal.jsonl", "state.json", None, None, None, None))
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            choice = random.random()
            if alone is not None:
                data = mutated_json_lines(random, data) if entry.filename == alone else data
                new.writestr(entry.filename, data)
                continue
            if choice < 0.3 and data:
                data = mutated_json_lines(random, data)
            elif choice < 0.4:
                data = markdown(random)
            elif choice < 0.45:
                continue
            name = entry.filename if random.random() < 0.95 else random.choice(("../up", "/abs", "a/" * 40 + "b", ""))
            new.writestr(name or "x", data)
    return out.getvalue()


def mutated_json_lines(random: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    try:
        row = json.loads(lines[at])
        target = row
        for _ in range(random.randint(0, 2)):
            inner = [value for value in target.values() if isinstance(value, dict)]
            target = random.choice(inner) if inner else target
        target[random.choice([*target, "extra"])] = values.anything(random)
        lines[at] = json.dumps(row).encode("utf-8", "surrogatepass")
    except (ValueError, AttributeError, IndexError):
        lines[at] = lines[at][: len(lines[at]) // 2]
    return b"\n".join(lines)


def import_file(memory: recollect.Memory, path: Path, data: bytes) -> bool:
    """Import it. What was accepted can be read, changed and verified afterwards."""
    path.write_bytes(data)
    if not call_verb(memory, "import_", [path], {}):
        return False
    repr((memory.read(), memory.show(), memory.history(), memory.search("tea"), memory.verify()))
    memory.resume()
    memory.note("Something else")
    return True
