"""Seed B (user memory), as its author would run it: each test quotes the sentence of the document that it checks.

Only public surfaces are used: the Python API, agents, chat, command line, files and tables that the documentation
describes. A test that fails is a promise of the seed that does not hold.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
import re
import subprocess
import sys
import uuid
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

import recollect
from recollect import Memory, Recollect
from recollect.agents.capture import capture
from recollect.agents.conclude import conclude, idle_sessions
from recollect.agents.extract import Extracted, extract, extract_all
from recollect.agents.models import open_model
from recollect.agents.remind import remind
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatPage
from recollect.surfaces.telegram import Bot, Post
from recollect.testing import FrozenClock
from recollect.testing.models import Call, Fail, ModelRequest, ModelServer, Say, Turn
from recollect.testing.telegram import TelegramServer
from tests.program import run_separately

USER = "7f9c2a14-3b1d-4c58-9a52-0d6f4e1b8a77"
"""Seed B's users have UUIDs."""
OTHER = "0b8f5a3e-64c7-4a0d-8e0f-2f4f1f6f9c11"
POST = "c0a8012e-1111-4222-8333-444455556666"
ANN = ("telegram", 42)
DAY = date(2026, 2, 12)
CONFIRMED = "Got it, I'll remember that."
SECTIONS = ("## User Preferences", "## Work Context", "## Personal Context", "## Key Facts")

MEMORY_MD = """\
# User Memory

## User Preferences
- Prefers concise, technical summaries
- Interested in: distributed systems, Rust, PostgreSQL, ML infrastructure
- Dislikes: crypto, blockchain, NFT content
- Communication style: direct, technical, no fluff

## Work Context
- Role: Senior Backend Engineer
- Company: Stripe (Payments Infrastructure team)
- Current project: Building real-time fraud detection pipeline
- Tech stack: Python, Go, PostgreSQL, Kafka, Kubernetes
- Professional goals: Move into distributed systems architecture

## Personal Context
- Learning Zig on weekends
- Building a side project: local-first note-taking app
- Opinions: Prefers practical over theoretical articles
- Skeptical about AI code generation replacing engineers

## Key Facts
- Timezone: PST (UTC-8)
- Digest preference: morning delivery, Style 2 (flat scroll)
- Started using HN Pal: 2026-01-15
"""

DAILY_MD = """\
# 2026-02-12

## Reading Activity
- Read 6/8 digest posts
- 👍 "PostgreSQL 18 Released", "Raft Consensus Deep Dive"
- 👎 "Why Web3 Matters in 2026"
- ⭐ Saved "Understanding CRDTs"

## Discussions
- Discussed "PostgreSQL 18 Released" (12 messages, 15 min)
  - Interested in async vacuum improvements
  - Connected to CockroachDB pricing discussion from Feb 5
  - Opinion: "PG is good enough for most use cases"

## Extracted Insights
- Added interest: "async I/O in databases"
- Updated work context: "evaluating PG 18 upgrade for production"

## Explicit Memories
- User said: "Remember that I'm presenting on database performance next week"
"""

DOTENV = """\
# Memory System — v1
MEMORY_ENABLED=true                        # Global memory toggle
MEMORY_EXTRACTION_SCHEDULE="0 23 * * *"    # Daily at 23:00 UTC
MEMORY_MAX_WORDS=2000                      # MEMORY.md word limit
MEMORY_CONFIDENCE_THRESHOLD=0.7            # Min confidence to write to MEMORY.md
MEMORY_EXTRACTION_MODEL="gpt-4o-mini"      # LLM model for extraction

# Memory System — v2 (future)
MEMORY_DAILY_RETENTION_DAYS=90             # How long to keep daily files
MEMORY_BM25_K1=1.5                         # BM25 tuning parameter
MEMORY_BM25_B=0.75                         # BM25 tuning parameter
MEMORY_CONTEXT_MAX_TOKENS=1500             # Max tokens for memory context in prompts
"""

PREREQUISITES = """
CREATE TABLE users (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    telegram_id BIGINT UNIQUE,
    created_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE posts (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    title TEXT
);
"""
"""What the seed's database has before ("PostgreSQL database with `users`, `conversations`, `memory` tables")."""

SCHEMA = """
-- Core memory table (from spec.md, extended)
CREATE TABLE memory (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id UUID NOT NULL REFERENCES users(id),
    type TEXT NOT NULL,                -- 'preference' | 'work_context' | 'personal_context' | 'reading_history'
    key TEXT NOT NULL,                  -- e.g., 'role', 'interested_in', 'opinion_on_crypto'
    content TEXT NOT NULL,             -- the actual memory content
    source TEXT,                       -- 'discussion:uuid' | 'reaction:uuid' | 'explicit' | 'batch_extraction'
    source_post_id UUID REFERENCES posts(id),
    confidence DECIMAL(3,2) DEFAULT 1.0,
    active BOOLEAN DEFAULT true,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW(),
    expires_at TIMESTAMPTZ             -- NULL = never expires, set for ephemeral entries
);

-- Full-text search support (BM25 via PostgreSQL)
CREATE INDEX idx_memory_user_active ON memory(user_id) WHERE active = true;
CREATE INDEX idx_memory_type ON memory(user_id, type);
CREATE INDEX idx_memory_fts ON memory USING GIN (to_tsvector('english', content));
CREATE INDEX idx_memory_created ON memory(user_id, created_at DESC);

-- Memory extraction job tracking
CREATE TABLE memory_extraction_runs (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id UUID NOT NULL REFERENCES users(id),
    run_date DATE NOT NULL,
    interactions_processed INTEGER DEFAULT 0,
    memories_written INTEGER DEFAULT 0,
    memories_updated INTEGER DEFAULT 0,
    tokens_used INTEGER DEFAULT 0,
    duration_ms INTEGER,
    status TEXT DEFAULT 'pending',     -- 'pending' | 'running' | 'completed' | 'failed'
    error_message TEXT,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    UNIQUE(user_id, run_date)
);

-- User memory preferences (extend users table)
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_enabled BOOLEAN DEFAULT true;
ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_last_extracted_at TIMESTAMPTZ;
"""

Sql = Callable[..., list[Any]]


# what the author has at hand


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MEMORY_") and name != "MEMORY_TOOL_ASYNC"]:
        monkeypatch.delenv(name)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(datetime(2026, 2, 12, 9, 0, tzinfo=timezone.utc))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory"


@pytest.fixture
def app(root: Path, clock: FrozenClock) -> Iterator[Recollect]:
    with recollect.open(root, clock=clock) as app:
        yield app


@pytest.fixture
def memory(app: Recollect) -> Memory:
    return app.user(USER)


@pytest.fixture
def sql(postgres_url: str) -> Iterator[Sql]:
    """The author's own psql."""
    with psycopg.connect(postgres_url, autocommit=True) as db:

        def run(statement: str, *values: Any) -> list[Any]:
            cursor = db.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

        yield run


def public(name: str) -> Any:
    """A name that the author imports from the package."""
    return getattr(recollect, name)


def section(document: str, heading: str) -> list[str]:
    """The lines of one section."""
    lines: list[str] = []
    inside = False
    for line in document.splitlines():
        if line.startswith("#"):
            inside = line.strip() == heading
        elif inside and line.strip():
            lines.append(line)
    return lines


def entry(**fields: Any) -> dict[str, Any]:
    """A MemoryEntry, with the examples of the document."""
    example = {
        "category": "work_context",
        "key": "role",
        "value": "Senior Backend Engineer at Stripe",
        "action": "add",
        "confidence": 0.95,
        "source": "discussion:12345",
    }
    return example | fields


def daily_update(*entries: dict[str, Any], daily_notes: str = "", summary: str = "") -> dict[str, Any]:
    """A DailyMemoryUpdate."""
    return {
        "user_id": USER,
        "date": "2026-02-12",
        "memory_updates": list(entries),
        "daily_notes": daily_notes,
        "summary": summary,
    }


def without_tools(*answers: dict[str, Any]) -> Callable[[ModelRequest], Turn]:
    """A model that cannot call tools and returns the document's structured JSON, one answer for each request."""
    left = list(answers)

    def model(request: ModelRequest) -> Turn:
        if request.tools:
            return Fail(400, "gpt-4o-mini does not support tools")
        return Say(json.dumps(left.pop(0) if len(left) > 1 else left[0]))

    return model


def run_batch(
    root: Path,
    clock: FrozenClock,
    script: Callable[[ModelRequest], Turn],
    *,
    before: Callable[[Memory], None] | None = None,
) -> tuple[Extracted, str, str, ModelServer]:
    """Run the daily batch for the user with this model. Return its result, MEMORY.md, the daily note and the server."""
    with (
        ModelServer(script) as server,
        recollect.open(root, clock=clock, extraction_model=f"{server.openai_url}#gpt-4o-mini") as app,
    ):
        memory = app.user(USER)
        (before or talk_about_work)(memory)
        extracted = extract(memory, until_night(clock), extractor=app.extractor())
        return extracted, memory.show(), memory.daily(clock().date()), server


def until_night(clock: FrozenClock) -> date:
    """Wait for 23:00, when the batch runs, and return the day."""
    night = clock().replace(hour=23, minute=0, second=0)
    clock.tick(seconds=max(60, (night - clock()).total_seconds()))
    return clock().date()


def talk_about_work(memory: Memory) -> None:
    memory.say("I'm a Senior Backend Engineer at Stripe.", session="12345")


def everything_sent(request: ModelRequest) -> str:
    return request.system + json.dumps(request.raw, ensure_ascii=False)


def tokens_of(text: str) -> int:
    """Count as gpt-4o-mini does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        encoding = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    return len(encoding.encode_ordinary(text))


def text_of(pages: list[ChatPage] | ChatPage) -> str:
    return "\n".join(map(str, pages)) if isinstance(pages, list) else str(pages)


def press(commands: Commands, page: ChatPage, label: str) -> ChatPage:
    """Press the button whose label begins so."""
    for row in page.choices:
        for choice in row:
            if choice.label.startswith(label):
                return commands.run(choice.command)
    raise AssertionError(f"no button {label!r} on: {page}")


def command_line(*arguments: str, root: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_", "OPENAI_"))}
    settings = {"MEMORY_DIR": str(root), **settings}
    return run_separately(*arguments, env=environ | settings, cwd=root.parent, text=True, timeout=60)


# overview


def test_memory_is_built_from_everything_of_the_past_24_hours(memory: Memory, clock: FrozenClock) -> None:
    """Implicit extraction — a daily batch job reads all user messages (reactions, discussions, feedback) from the past
    24 hours and distills durable facts, preferences, and context into structured memory entries."""
    memory.say("I'm a backend engineer at Stripe.", session="post-1")
    for title in ("PostgreSQL 18 Released", "Scaling PostgreSQL", "PostgreSQL vacuum"):
        memory.report("reaction", value="👍", title=title)
    memory.report("command", value="/feedback", text="I prefer concise summaries.")
    extract(memory, until_night(clock))
    facts = {fact.category: fact for fact in memory.read(kind="fact")}
    assert {"work_context", "preference"} <= set(facts)
    document = memory.show()
    assert "Stripe" in document and "PostgreSQL" in document and "concise summaries" in document


def test_remember_this_writes_immediately(memory: Memory, root: Path) -> None:
    """Explicit capture — when a user says "remember this" … it writes immediately to memory."""
    capture(memory, "Remember this: I prefer technical articles")
    assert "technical articles" in (root / USER / "MEMORY.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I've decided to use Zig for my side project.", "Zig"),
        ("I prefer concise summaries.", "concise summaries"),
    ],
)
def test_a_decision_or_preference_in_conversation_is_written_immediately(
    app: Recollect, clock: FrozenClock, said: str, kept: str
) -> None:
    """… or the bot detects a decision/preference during conversation, it writes immediately to memory."""
    Conversation(app, ANN, place="chat", clock=clock).say(said)
    memory = app.identities.memory(ANN)
    assert any(kept in record.text for record in memory.read() if record.kind != "message")


def test_memory_md_persists_indefinitely(memory: Memory, clock: FrozenClock) -> None:
    """MEMORY.md — durable facts, preferences, and professional context … Updated infrequently, persists indefinitely."""
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    clock.tick(days=1000)
    memory.upkeep()
    assert "- Role: Senior Backend Engineer" in memory.show()


def test_daily_notes_are_one_file_per_day(memory: Memory, root: Path, clock: FrozenClock) -> None:
    """memory/YYYY-MM-DD.md — daily notes, running context, ephemeral observations. Append-only, one file per day."""
    memory.jot("Read the paper on Raft")
    memory.jot("Read the paper on Paxos")
    clock.tick(days=1)
    memory.jot("Read the paper on CRDTs")
    assert sorted(path.name for path in (root / USER / "memory").glob("*.md")) == ["2026-02-12.md", "2026-02-13.md"]


# memory categories


@pytest.mark.parametrize(
    ("category", "value", "heading"),
    [
        ("preference", "Prefers concise summaries", "## User Preferences"),
        ("preference", "Interested in Rust and distributed systems", "## User Preferences"),
        ("work_context", "Senior backend engineer at Stripe", "## Work Context"),
        ("work_context", "Building a search system with embeddings", "## Work Context"),
        ("personal_context", "Skeptical about crypto", "## Personal Context"),
        ("personal_context", "Learning Zig on weekends", "## Personal Context"),
    ],
)
def test_durable_categories_stand_in_their_section_of_memory_md(
    memory: Memory, category: str, value: str, heading: str
) -> None:
    """The memory system tracks four distinct categories of user knowledge … Durable (MEMORY.md)."""
    memory.remember(value, category=category)
    assert section(memory.show(), heading) == [f"- {value}"]


@pytest.mark.parametrize("value", ["Discussed PostgreSQL 18 (positive)", "Saved 3 articles on CRDTs"])
def test_reading_history_stands_in_the_daily_note(memory: Memory, value: str) -> None:
    """Reading History | Posts read, discussed, saved, reactions | … | Daily (YYYY-MM-DD.md)."""
    memory.remember(value, category="reading_history")
    assert value in memory.daily() and value not in memory.show()
    assert [record.text for record in memory.read(category="reading_history")] == [value]


# memory tiers


def test_the_layout_of_a_users_folder(memory: Memory, root: Path) -> None:
    """data/memory/{user_id}/ ├── MEMORY.md ├── memory/ │ ├── 2026-02-10.md … └── index/ # BM25 search index files."""
    memory.remember("Prefers concise summaries", category="preference")
    memory.jot("Read 6/8 digest posts")
    memory.search("summaries")
    memory.rebuild_index()
    folder = root / USER
    assert (folder / "MEMORY.md").is_file()
    assert (folder / "memory" / "2026-02-12.md").is_file()
    assert (folder / "index").is_dir()


def test_the_documents_own_memory_md_is_read_as_it_is(app: Recollect, root: Path) -> None:
    """MEMORY.md — the "character sheet" for each user (the document's example, put into place)."""
    (root / USER).mkdir(parents=True)
    (root / USER / "MEMORY.md").write_text(MEMORY_MD, "utf-8")
    memory = app.user(USER)
    assert memory.show() == MEMORY_MD
    role, timezone_ = memory.get("role"), memory.get("timezone")
    assert (role.content, role.category) == ("Senior Backend Engineer", "work_context")
    assert timezone_.content == "PST (UTC-8)"
    assert memory.search("fraud detection")[0].record.text.endswith("Building real-time fraud detection pipeline")
    assert len(memory.read(kind="fact", category="preference")) == 4
    assert (root / USER / "MEMORY.md").read_text("utf-8") == MEMORY_MD


def test_an_update_changes_only_its_line_of_the_documents_memory_md(app: Recollect, root: Path) -> None:
    """If key exists and action=update → replace the line."""
    (root / USER).mkdir(parents=True)
    (root / USER / "MEMORY.md").write_text(MEMORY_MD, "utf-8")
    memory = app.user(USER)
    memory.update("role", "Staff Engineer")
    expected = MEMORY_MD.replace("- Role: Senior Backend Engineer", "- Role: Staff Engineer")
    assert (root / USER / "MEMORY.md").read_text("utf-8") == expected


def test_the_documents_own_daily_note_is_read_as_it_is(app: Recollect, root: Path) -> None:
    """memory/YYYY-MM-DD.md — daily running notes (the document's example, put into place)."""
    (root / USER / "memory").mkdir(parents=True)
    note = root / USER / "memory" / "2026-02-12.md"
    note.write_text(DAILY_MD, "utf-8")
    memory = app.user(USER)
    assert memory.daily("2026-02-12") == DAILY_MD
    assert any("async vacuum" in hit.record.text for hit in memory.search("async vacuum improvements"))
    assert any("CRDTs" in hit.record.text for hit in memory.search("CRDTs"))
    assert note.read_text("utf-8") == DAILY_MD


def play_the_documents_day(memory: Memory, clock: FrozenClock) -> str:
    """What happens on 2026-02-12 in the document, and a week before. Return the daily note."""
    clock.tick(days=-7)
    memory.report("discussion", title="CockroachDB pricing", session="post-1")
    memory.say("CockroachDB pricing is too high for us, PostgreSQL would do.", session="post-1")
    conclude(memory, "post-1")
    extract(memory, until_night(clock))
    clock.tick(days=7, hours=-14)
    posts = [
        "PostgreSQL 18 Released",
        "Raft Consensus Deep Dive",
        "Why Web3 Matters in 2026",
        "Understanding CRDTs",
        "Show HN: A tiny shell",
        "Ask HN: Who is hiring?",
        "The history of Unix",
        "Solar roofs in winter",
    ]
    for title in posts:
        memory.report("delivery", title=title)
    for title in posts[:6]:
        memory.report("read", title=title)
    memory.report("reaction", value="👍", title="PostgreSQL 18 Released")
    memory.report("reaction", value="👍", title="Raft Consensus Deep Dive")
    memory.report("reaction", value="👎", title="Why Web3 Matters in 2026")
    memory.report("save", title="Understanding CRDTs")
    memory.report("discussion", title="PostgreSQL 18 Released", session="post-2")
    said = [
        "The async vacuum improvements interest me.",
        "I think PG is good enough for most use cases.",
        "CockroachDB pricing was the alternative for us, PostgreSQL would do.",
        "We are evaluating the PG 18 upgrade for production.",
        "Remember that I'm presenting on database performance next week",
        "Thanks!",
    ]
    for number, text in enumerate(said):
        memory.say(text, session="post-2")
        if text.startswith("Remember"):
            capture(memory, text, session="post-2")
        memory.say(f"Answer {number}.", session="post-2", role="assistant")
        if number < 5:
            clock.tick(seconds=180)
    conclude(memory, "post-2")
    extract(memory, until_night(clock))
    return memory.daily("2026-02-12")


def test_a_daily_note_has_the_documents_sections_once_each(memory: Memory, clock: FrozenClock) -> None:
    """# 2026-02-12 ## Reading Activity … ## Discussions … ## Extracted Insights … ## Explicit Memories."""
    note = play_the_documents_day(memory, clock)
    title, *headings = [line for line in note.splitlines() if line.startswith("#")]
    assert title == "# 2026-02-12" and len(headings) == len(set(headings))
    assert {"## Reading Activity", "## Discussions", "## Explicit Memories"} <= set(headings)
    assert set(headings) <= {"## Reading Activity", "## Discussions", "## Extracted Insights", "## Explicit Memories"}


def test_a_daily_note_tells_the_reading_activity(memory: Memory, clock: FrozenClock) -> None:
    """- Read 6/8 digest posts - 👍 "PostgreSQL 18 Released", "Raft Consensus Deep Dive" - 👎 "Why Web3 Matters in 2026"
    - ⭐ Saved "Understanding CRDTs"."""
    note = play_the_documents_day(memory, clock)
    assert section(note, "## Reading Activity") == [
        "- Read 6/8 digest posts",
        '- 👍 "PostgreSQL 18 Released", "Raft Consensus Deep Dive"',
        '- 👎 "Why Web3 Matters in 2026"',
        '- ⭐ Saved "Understanding CRDTs"',
    ]


def test_a_daily_note_tells_a_discussion_with_its_length(memory: Memory, clock: FrozenClock) -> None:
    """- Discussed "PostgreSQL 18 Released" (12 messages, 15 min)."""
    note = play_the_documents_day(memory, clock)
    assert '- Discussed "PostgreSQL 18 Released" (12 messages, 15 min)' in section(note, "## Discussions")


def test_opinions_stand_under_their_discussion(memory: Memory, clock: FrozenClock) -> None:
    """- Discussed … - Opinion: "PG is good enough for most use cases" (indented, below the discussion)."""
    lines = section(play_the_documents_day(memory, clock), "## Discussions")
    assert lines[0].startswith("- Discussed")
    assert any(line.startswith("  - Opinion:") and "PG is good enough for most use cases" in line for line in lines[1:])


def test_connections_stand_under_their_discussion(memory: Memory, clock: FrozenClock) -> None:
    """- Connected to CockroachDB pricing discussion from Feb 5."""
    lines = section(play_the_documents_day(memory, clock), "## Discussions")
    connected = [line for line in lines if line.startswith("  - Connected to")]
    assert len(connected) == 1 and "CockroachDB pricing" in connected[0] and re.search("Feb 5|2026-02-05", connected[0])


def test_extracted_insights_say_what_was_added_and_updated(memory: Memory, clock: FrozenClock) -> None:
    """## Extracted Insights - Added interest: "…" - Updated work context: "…"."""
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    for title in ("PostgreSQL 18 Released", "Scaling PostgreSQL", "PostgreSQL vacuum"):
        memory.report("reaction", value="👍", title=title)
    memory.say("I'm a staff engineer now.", session="post-1")
    extract(memory, until_night(clock))
    lines = section(memory.daily(), "## Extracted Insights")
    assert any(line.startswith("- Added interest:") and "PostgreSQL" in line for line in lines)
    assert any(line.startswith("- Updated work context:") and "taff engineer" in line for line in lines)


def test_explicit_memories_quote_the_user(memory: Memory, clock: FrozenClock) -> None:
    """## Explicit Memories - User said: "Remember that I'm presenting on database performance next week"."""
    note = play_the_documents_day(memory, clock)
    assert section(note, "## Explicit Memories") == [
        '- User said: "Remember that I\'m presenting on database performance next week"'
    ]


# when to write memory: implicit


def test_the_batch_runs_at_23_utc_without_being_asked(root: Path, clock: FrozenClock) -> None:
    """IMPLICIT (Daily Batch Job — runs at 23:00 UTC)."""
    with recollect.open(root, clock=clock) as app:
        assert app.config.extraction_schedule == "0 23 * * *"
        memory = app.user(USER)
        memory.say("I'm a backend engineer at Stripe.", session="post-1")
        with app.queue() as queue:
            with app.worker(queue) as worker:
                worker.wait_idle(timeout=30)
            clock.tick(hours=13, seconds=3540)  # 22:59
            with app.worker(queue) as worker:
                worker.wait_idle(timeout=30)
            assert memory.runs(kind="batch") == []
            clock.tick(seconds=60)
            with app.worker(queue) as worker:
                worker.wait_idle(timeout=30)
        assert [(run.day, run.status) for run in memory.runs(kind="batch")] == [(DAY, "completed")]
        assert "Stripe" in memory.show()


def test_reactions_discussions_saves_and_commands_are_sent_to_the_model(root: Path, clock: FrozenClock) -> None:
    """Collect all user interactions from past 24h - Reactions (👍/👎) on delivered posts - Discussion messages (from
    conversations) - Saves/bookmarks - Commands used. Send to LLM for extraction."""

    def before(memory: Memory) -> None:
        memory.report("delivery", title="Solar roofs in winter")
        memory.report("reaction", value="👍", title="PostgreSQL 18 Released")
        memory.report("reaction", value="👎", title="Why Web3 Matters in 2026")
        memory.report("save", title="Understanding CRDTs")
        memory.report("command", value="/saved")
        memory.report("discussion", title="Raft Consensus Deep Dive", session="post-1")
        memory.say("Leader election is the hard part.", session="post-1")

    extracted, _, _, server = run_batch(root, clock, without_tools(daily_update()), before=before)
    sent = "\n".join(map(everything_sent, server.requests))
    assert "👍" in sent and "PostgreSQL 18 Released" in sent
    assert "👎" in sent and "Why Web3 Matters in 2026" in sent
    assert "Understanding CRDTs" in sent and "/saved" in sent
    assert "Raft Consensus Deep Dive" in sent and "Leader election is the hard part." in sent
    assert extracted.run is not None and extracted.run.interactions_processed == 7


def test_the_commands_a_person_types_are_interactions(app: Recollect, clock: FrozenClock) -> None:
    """Collect interactions from past 24h … Commands: /memory, /saved usage."""
    talk = Conversation(app, ANN, place="chat", clock=clock)
    talk.say("remember that I prefer technical articles")
    talk.say("/memory search articles")
    reported = app.identities.memory(ANN).interactions(kinds=["command"])
    assert any((one.value or "").startswith("/memory") for one in reported)


def test_topic_interests_come_from_reading_patterns(memory: Memory, clock: FrozenClock) -> None:
    """Identify topic interests from reading patterns. / React 👍 to 3 posts on same topic → check if interest is
    extracted in daily batch."""
    for title in ("Rust async runtimes", "Rust 2.0 announced", "Writing a kernel in Rust"):
        memory.report("reaction", value="👍", title=title)
    extract(memory, until_night(clock))
    assert any("Rust" in line for line in section(memory.show(), "## User Preferences"))


def test_the_batch_writes_facts_and_observations_to_their_tiers(root: Path, clock: FrozenClock) -> None:
    """Write outputs - Durable facts → MEMORY.md (merge/update) - Daily observations → memory/YYYY-MM-DD.md."""
    answer = daily_update(entry(), daily_notes="## Reading Activity\n- Read 6/8 digest posts")
    _, document, note, _ = run_batch(root, clock, without_tools(answer))
    assert "Senior Backend Engineer at Stripe" in "\n".join(section(document, "## Work Context"))
    assert "- Read 6/8 digest posts" in section(note, "## Reading Activity")
    assert "6/8" not in document


# when to write memory: explicit


TRIGGERS = [
    ("remember this", "Remember this: I prefer technical articles", "technical articles"),
    ("remember that", "Remember that I prefer technical articles", "technical articles"),
    ("note that", "Note that I work at Stripe", "Stripe"),
    ("keep in mind", "Keep in mind I am allergic to peanuts", "peanuts"),
    ("don't forget", "Don't forget I am a vegetarian", "vegetarian"),
    ("save this", "Save this: I prefer morning delivery", "morning delivery"),
    ("for future reference", "For future reference, I work with Kafka", "Kafka"),
    ("important:", "Important: I never read crypto posts", "crypto"),
    ("fyi", "FYI, I moved to Berlin", "Berlin"),
]


@pytest.mark.parametrize(("trigger", "message", "kept"), TRIGGERS, ids=[trigger for trigger, _, _ in TRIGGERS])
def test_every_trigger_is_detected_written_and_confirmed(memory: Memory, trigger: str, message: str, kept: str) -> None:
    """EXPLICIT_MEMORY_TRIGGERS = […]. Explicit memory triggers are detected for all trigger phrases. Confirm to user:
    "Got it, I'll remember that."."""
    assert trigger in message.lower()
    captured = capture(memory, message)
    assert captured is not None and captured.reply == CONFIRMED
    assert kept.lower() in memory.show().lower()


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("By the way, keep in mind that I work at Stripe", "Stripe"),
        ("I moved to Berlin, fyi", "Berlin"),
        ("I prefer technical articles, please remember that", "technical articles"),
        ("NOTE THAT I work at Stripe", "Stripe"),
    ],
)
def test_a_trigger_is_found_anywhere_in_a_message(memory: Memory, message: str, kept: str) -> None:
    """lowered = message.lower(); if not any(trigger in lowered …)."""
    captured = capture(memory, message)
    assert captured is not None and captured.reply == CONFIRMED
    assert kept.lower() in memory.show().lower()


def test_a_message_without_a_trigger_is_not_captured(memory: Memory) -> None:
    """if not any(trigger in lowered for trigger in EXPLICIT_MEMORY_TRIGGERS): return None."""
    assert capture(memory, "I like the new vacuum in PostgreSQL 18") is None


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("Remember that I'm in a hurry today", "in a hurry today"),
        ("Note that the meeting is at 5 today", "meeting is at 5 today"),
        ("FYI I'm on the train until noon", "on the train until noon"),
    ],
)
def test_running_notes_go_to_the_daily_note_only(memory: Memory, message: str, kept: str) -> None:
    """Running notes, ephemeral → memory/YYYY-MM-DD.md. Confirm to user: "Got it, I'll remember that."."""
    captured = capture(memory, message)
    assert captured is not None and CONFIRMED in captured.reply
    assert kept in memory.daily() and kept not in memory.show()


def test_what_is_captured_keeps_its_meaning(memory: Memory) -> None:
    """Decisions, preferences, facts → MEMORY.md ("I only read on weekends" keeps its "only": issue 16)."""
    capture(memory, "Remember that I only read on weekends")
    assert re.search(r"\bonly\b.*\bweekends\b", memory.show(), re.IGNORECASE)


def test_the_presentation_of_the_document(app: Recollect, clock: FrozenClock) -> None:
    """U->>B: "Remember that I'm presenting on DB perf next week" … MA->>FS: Write to MEMORY.md (durable fact), Append to
    memory/2026-02-12.md … B->>U: "Got it, I'll remember that."."""
    pages = Conversation(app, ANN, place="chat", clock=clock).say(
        "Remember that I'm presenting on DB perf next week", message="1"
    )
    assert CONFIRMED in text_of(pages)
    memory = app.identities.memory(ANN)
    assert memory.show().count("resenting on DB perf") == 1
    assert "I'm presenting on DB perf next week" in memory.daily("2026-02-12")


def test_with_a_model_capture_uses_it(root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """# Use LLM to extract what to remember: extraction = await memory_agent.extract_explicit(message=…, context=…) (the
    model has no tools in the discussion itself, so what it knows better can only come from this)."""
    monkeypatch.setenv("ENABLE_TOOL_BASED_MEMORY", "false")
    said = "FYI the whole crypto thing leaves me cold"
    value = "Skeptical about the whole crypto thing"
    better = entry(category="personal_context", key="opinion_on_crypto", value=value, source="explicit", quote=said)
    answer = daily_update(better) | better | {"is_durable": True, "durability": "durable"}

    def model(request: ModelRequest) -> Turn:
        names = [tool.name for tool in request.tools]
        if request.tool_results or not names:
            return Say(json.dumps(answer))
        if "write_memory" in names:
            fields = ("key", "value", "category", "durability", "confidence", "source")
            return Call("write_memory", {name: answer[name] for name in fields})
        return Call(names[0], answer)

    with (
        ModelServer(model) as server,
        recollect.open(root, clock=clock, model=f"{server.openai_url}#gpt-4o-mini") as app,
        open_model(f"{server.openai_url}#gpt-4o-mini", key="test") as agent,
    ):
        Conversation(app, ANN, place="chat", model=agent, extractor=app.extractor(), clock=clock).say(said)
        assert value in app.identities.memory(ANN).show()


def test_capture_is_confirmed_with_a_model_too(app: Recollect, clock: FrozenClock) -> None:
    """Add user confirmation response ("Got it, I'll remember that."). / B->>U: "Got it, I'll remember that."."""
    with (
        ModelServer(lambda request: Say("Databases, then.")) as server,
        open_model(f"{server.openai_url}#gpt-4o-mini", key="test") as agent,
    ):
        talk = Conversation(app, ANN, place="chat", model=agent, clock=clock)
        pages = talk.say("Remember that I'm presenting on DB perf next week")
    assert CONFIRMED in text_of(pages)


# when to write memory: after a discussion


def test_a_discussion_that_ends_leaves_topic_opinion_and_durable_insight(memory: Memory) -> None:
    """POST-DISCUSSION … - Topics discussed - User opinions expressed … - Write to memory/YYYY-MM-DD.md - Merge durable
    insights to MEMORY.md."""
    memory.report("discussion", title="PostgreSQL 18 Released", session="post-2")
    memory.say("I'm a senior backend engineer at Stripe.", session="post-2")
    memory.say("I think PostgreSQL is good enough for most use cases.", session="post-2")
    conclude(memory, "post-2")
    assert "PostgreSQL 18 Released" in memory.daily() and "good enough for most use cases" in memory.daily()
    assert "Stripe" in "\n".join(section(memory.show(), "## Work Context"))


def test_connections_to_past_discussions_are_captured(memory: Memory, clock: FrozenClock) -> None:
    """Post-discussion extraction captures topics, opinions, and connections."""
    for session, title in (("post-1", "CockroachDB pricing"), ("post-2", "CockroachDB pricing revisited")):
        memory.report("discussion", title=title, session=session)
        memory.say("CockroachDB pricing is too high for us.", session=session)
        conclude(memory, session)
        clock.tick(days=7)
    note = memory.daily("2026-02-19")
    assert re.search('Connected to "?CockroachDB pricing.*(Feb 12|2026-02-12)', note)


def test_opinions_keep_the_users_voice(memory: Memory) -> None:
    """Preserve user voice when recording opinions."""
    memory.report("discussion", title="PostgreSQL 18 Released", session="post-2")
    memory.say("I think PG is good enough for most use cases.", session="post-2")
    conclude(memory, "post-2")
    assert "PG is good enough for most use cases" in memory.daily() + memory.show()


def test_a_discussion_ends_after_30_minutes(memory: Memory, clock: FrozenClock) -> None:
    """When a discussion ends (30-min timeout …)."""
    memory.report("discussion", title="PostgreSQL 18 Released", session="post-2")
    memory.say("I'm a senior backend engineer at Stripe.", session="post-2")
    clock.tick(seconds=29 * 60)
    assert idle_sessions(memory) == []
    clock.tick(seconds=60)
    assert idle_sessions(memory) == ["post-2"]


def test_a_discussion_ends_when_the_user_switches_posts(app: Recollect, clock: FrozenClock) -> None:
    """… or user switches posts, extract insights."""
    talk = Conversation(app, ANN, place="chat", clock=clock)
    talk.begin("PostgreSQL 18 Released")
    talk.say("I'm a senior backend engineer at Stripe.")
    talk.begin("Raft Consensus Deep Dive")
    memory = app.identities.memory(ANN)
    assert "Stripe" in memory.show() and 'Discussed "PostgreSQL 18 Released"' in memory.daily()


def test_the_extraction_after_a_discussion_gets_messages_title_and_memory(root: Path, clock: FrozenClock) -> None:
    """extract_from_discussion(messages=conversation.messages, article_title=article_title, existing_memory=…); entries
    with confidence >= 0.7 are merged; extraction.daily_notes are appended."""
    answer = daily_update(
        entry(key="project", value="Evaluating the PG 18 upgrade for production", source="discussion:post-2"),
        daily_notes="## Discussions\n- Interested in async vacuum improvements",
    )
    with (
        ModelServer(without_tools(answer)) as server,
        recollect.open(root, clock=clock, extraction_model=f"{server.openai_url}#gpt-4o-mini") as app,
    ):
        memory = app.user(USER)
        memory.remember("Learning Zig on weekends", category="personal_context")
        memory.report("discussion", title="PostgreSQL 18 Released", session="post-2")
        memory.say("We are evaluating the PG 18 upgrade for production.", session="post-2")
        conclude(memory, "post-2", extractor=app.extractor())
        sent = "\n".join(map(everything_sent, server.requests))
        assert "We are evaluating the PG 18 upgrade for production." in sent
        assert "PostgreSQL 18 Released" in sent and "Learning Zig on weekends" in sent
        assert "async vacuum improvements" in memory.daily()
        assert "Evaluating the PG 18 upgrade for production" in memory.show()
        stored = [fact for fact in memory.read(kind="fact") if "PG 18" in fact.text]
        assert [fact.source for fact in stored] == ["discussion:post-2"]


# the daily batch


def test_the_extraction_agent_calls_tools(root: Path, clock: FrozenClock) -> None:
    """Create `MemoryExtractionAgent` with extraction prompt (tool-calling). Build extraction pipeline (collect → LLM →
    tool calls → write to MEMORY.md)."""
    write = {
        "key": "role",
        "value": "Senior Backend Engineer at Stripe",
        "category": "work_context",
        "durability": "durable",
        "source": "discussion:12345",
        "confidence": 0.95,
    }
    turns: list[Turn] = [Call("search_memory", {"query": "role"}), Call("write_memory", write)]
    extracted, document, _, server = run_batch(root, clock, lambda request: turns.pop(0) if turns else Say("Done."))
    assert server.problems == []
    assert {"search_memory", "write_memory", "update_memory"} <= {tool.name for tool in server.requests[0].tools}
    assert "Senior Backend Engineer at Stripe" in "\n".join(section(document, "## Work Context"))
    assert extracted.run is not None and extracted.run.status == "completed" and extracted.run.memories_written == 1


def test_the_existing_memory_is_sent_along(root: Path, clock: FrozenClock) -> None:
    """Send to MemoryExtractionAgent (LLM) Input: interaction summary + existing MEMORY.md."""

    def before(memory: Memory) -> None:
        memory.remember("Skeptical about crypto", category="personal_context")
        talk_about_work(memory)

    _, _, _, server = run_batch(root, clock, without_tools(daily_update()), before=before)
    assert any("Skeptical about crypto" in everything_sent(request) for request in server.requests)


def test_the_prompt_says_the_documents_rules(root: Path, clock: FrozenClock) -> None:
    """MEMORY_EXTRACTION_SYSTEM_PROMPT: CATEGORIES TO EXTRACT … RULES: Merge with existing memory — don't duplicate …
    Preserve user voice … Never fabricate … Do NOT store code snippets."""
    _, _, _, server = run_batch(root, clock, without_tools(daily_update()))
    prompt = everything_sent(server.requests[-1]).lower()
    said = ["preference", "work", "personal", "reading", "duplicat|already known|not written again", "own words|voice"]
    for words in [*said, "never|only what", "code", "update|chang", "remove|no longer", "specific", "confidence"]:
        assert re.search(words, prompt), words


def test_users_with_memory_disabled_are_skipped(app: Recollect, clock: FrozenClock) -> None:
    """For each active user with memory_enabled=true. / Memory extraction respects `memory_enabled=false` — skips user
    entirely. / Run `/memory pause` → verify no extraction happens in next batch."""
    memory = app.user(USER)
    memory.say("I'm a backend engineer at Stripe.", session="post-1")
    memory.pause()
    before = memory.show()
    summary = extract_all([memory], until_night(clock))
    assert (summary.written, summary.updated, summary.tokens, summary.skipped) == (0, 0, 0, 1)
    assert memory.runs(kind="batch") == [] and memory.show() == before


def test_the_batch_processes_multiple_users_and_reports(app: Recollect, root: Path, clock: FrozenClock) -> None:
    """Daily batch job processes multiple users in sequence. Report: users processed, memories written, tokens used."""
    app.user(USER).say("I'm a backend engineer at Stripe.", session="post-1")
    app.user(OTHER).say("I live in Oslo.", session="post-1")
    summary = extract_all([app.user(name) for name in app.users()], until_night(clock))
    assert summary.users == 2 and summary.written >= 2 and summary.tokens == 0
    assert "Stripe" in app.user(USER).show() and "Oslo" in app.user(OTHER).show()
    assert "Stripe" not in app.user(OTHER).show() and "Oslo" not in app.user(USER).show()


def test_a_batch_run_is_logged_with_its_metrics(root: Path, clock: FrozenClock) -> None:
    """Log extraction run to memory_extraction_runs: interactions_processed, memories_written, memories_updated,
    tokens_used, duration_ms, status."""
    extracted, _, _, _ = run_batch(root, clock, without_tools(daily_update(entry())))
    run = extracted.run
    assert run is not None and (run.status, run.day) == ("completed", DAY)
    assert (run.interactions_processed, run.memories_written, run.memories_updated) == (1, 1, 0)
    assert run.tokens_used > 0 and run.duration_ms is not None


# structured output


def test_memory_entry_is_a_public_type_with_the_documents_fields() -> None:
    """class MemoryEntry(BaseModel): category, key, value, action, confidence, source."""
    one = public("MemoryEntry")(**entry())
    assert (one.category, one.key, one.value) == ("work_context", "role", "Senior Backend Engineer at Stripe")
    assert (one.action, one.confidence, one.source) == ("add", 0.95, "discussion:12345")


@pytest.mark.parametrize("category", ["preference", "work_context", "personal_context", "reading_history"])
@pytest.mark.parametrize("action", ["add", "update", "remove"])
def test_memory_entry_takes_every_category_and_action(category: str, action: str) -> None:
    """category: Literal["preference", "work_context", "personal_context", "reading_history"]; action: Literal["add",
    "update", "remove"]."""
    one = public("MemoryEntry")(**entry(category=category, action=action))
    assert (one.category, one.action) == (category, action)


@pytest.mark.parametrize(
    "wrong",
    [
        {"category": "gossip"},
        {"action": "replace"},
        {"confidence": 1.5},
        {"confidence": -0.1},
        {"confidence": "sure"},
        {"key": None},
        {"value": None},
    ],
    ids=str,
)
def test_memory_entry_validates_all_fields(wrong: dict[str, Any]) -> None:
    """`MemoryEntry` Pydantic model validates all fields correctly."""
    make = public("MemoryEntry")
    with pytest.raises((ValueError, recollect.RecollectError)):
        make(**entry(**wrong))


def test_daily_memory_update_is_a_public_type_that_reads_the_documents_json() -> None:
    """class DailyMemoryUpdate(BaseModel): user_id, date, memory_updates: list[MemoryEntry], daily_notes, summary."""
    data = daily_update(entry(), daily_notes="## Discussions\n- Discussed CRDTs", summary="Learned the role")
    update = public("DailyMemoryUpdate").model_validate_json(json.dumps(data))
    assert (update.user_id, str(update.date), update.summary) == (USER, "2026-02-12", "Learned the role")
    assert update.daily_notes == "## Discussions\n- Discussed CRDTs"
    assert isinstance(update.memory_updates[0], public("MemoryEntry"))
    assert update.memory_updates[0].value == "Senior Backend Engineer at Stripe"


def test_the_batch_accepts_the_documents_json(root: Path, clock: FrozenClock) -> None:
    """LLM extraction returns valid `DailyMemoryUpdate` structure. daily_notes: markdown string for today's daily file."""
    notes = '## Discussions\n- Discussed "PostgreSQL 18 Released"\n  - Interested in async vacuum improvements'
    answer = daily_update(entry(), daily_notes=notes, summary="Learned role and company")
    extracted, document, note, _ = run_batch(root, clock, without_tools(answer))
    run = extracted.run
    assert run is not None and run.status == "completed" and run.error is None
    assert "Senior Backend Engineer at Stripe" in "\n".join(section(document, "## Work Context"))
    lines = section(note, "## Discussions")
    assert '- Discussed "PostgreSQL 18 Released"' in lines
    assert "  - Interested in async vacuum improvements" in lines


def test_the_summary_of_an_update_is_kept(root: Path, clock: FrozenClock) -> None:
    """summary: str # One-line summary of what changed."""
    answer = daily_update(entry(), summary="Learned where they work")
    extracted, _, _, _ = run_batch(root, clock, without_tools(answer))
    assert "Learned where they work" in repr(extracted.run)


@pytest.mark.parametrize("left_out", ["memory_updates", "daily_notes", "summary", "user_id", "date"])
def test_an_answer_without_one_of_its_parts_is_accepted(root: Path, clock: FrozenClock, left_out: str) -> None:
    """Return a structured JSON with: memory_updates … daily_notes … (issue 16: a batch answer without some of its lists
    is accepted)."""
    answer = daily_update(entry(), daily_notes="- Talked about work", summary="Learned the role")
    del answer[left_out]
    extracted, document, note, server = run_batch(root, clock, without_tools(answer))
    assert server.problems == []
    assert extracted.run is not None and extracted.run.error is None and extracted.run.tier != "rules"
    assert left_out == "memory_updates" or "Senior Backend Engineer at Stripe" in document
    assert left_out == "daily_notes" or "Talked about work" in note


def test_what_nobody_said_is_not_in_memory_md(root: Path, clock: FrozenClock) -> None:
    """Never fabricate or infer beyond what the data shows."""
    answer = daily_update(entry(category="personal_context", key="city", value="Lives in Paris with two cats"))
    _, document, _, _ = run_batch(root, clock, without_tools(answer))
    assert "Paris" not in document


def test_entries_are_categorised(memory: Memory, clock: FrozenClock) -> None:
    """Memory entries are categorized into: preference, work_context, personal_context, reading_history."""
    memory.say("I'm a backend engineer at Stripe and I'm skeptical about crypto.", session="post-9")
    memory.say("I prefer concise summaries.", session="post-9")
    play_the_documents_day(memory, clock)
    for category in ("preference", "work_context", "personal_context", "reading_history"):
        assert memory.read(category=category), category


# merging into MEMORY.md


def test_the_merge_adds_updates_and_removes(root: Path, clock: FrozenClock) -> None:
    """If key exists and action=update → replace the line. If key is new and action=add → append to correct section. If
    action=remove → delete the line."""

    def before(memory: Memory) -> None:
        memory.remember("Senior Backend Engineer", key="role", category="work_context")
        memory.remember("Skeptical about crypto", key="opinion_on_crypto", category="personal_context")
        memory.say("I'm a Staff Engineer now.", session="12345")
        memory.say("I changed my mind about crypto, please drop my opinion on crypto.", session="12345")
        memory.say("I prefer concise summaries.", session="12345")

    answer = daily_update(
        entry(action="update", value="Staff Engineer"),
        entry(action="remove", category="personal_context", key="opinion_on_crypto", value="Skeptical about crypto"),
        entry(category="preference", key="summary_style", value="Prefers concise summaries"),
    )
    _, document, _, _ = run_batch(root, clock, without_tools(answer), before=before)
    assert "Staff Engineer" in "\n".join(section(document, "## Work Context"))
    assert "Senior Backend Engineer" not in document
    assert section(document, "## Personal Context") == []
    assert "concise summaries" in "\n".join(section(document, "## User Preferences"))


def test_the_merge_does_not_duplicate(root: Path, clock: FrozenClock) -> None:
    """MEMORY.md merge correctly adds, updates, and removes entries without duplication."""
    answer = daily_update(entry(), entry(key="job", value="Senior backend engineer at Stripe"))
    _, first, _, _ = run_batch(root, clock, without_tools(answer))
    clock.tick(days=1)
    _, second, _, _ = run_batch(root, clock, without_tools(answer))
    assert first.lower().count("senior backend engineer at stripe") == 1
    assert second.lower().count("senior backend engineer at stripe") == 1


def test_a_correction_by_the_user_updates_the_memory(memory: Memory, clock: FrozenClock) -> None:
    """If a user corrects a previous memory, update it."""
    memory.say("I work at Stripe.", session="post-1")
    extract(memory, until_night(clock))
    assert "Stripe" in memory.show()
    clock.tick(days=1)
    memory.say("Actually I work at Google now, not Stripe.", session="post-2")
    extract(memory, until_night(clock))
    assert "Google" in memory.show() and "Stripe" not in memory.show()


def test_reading_history_is_not_merged_into_memory_md(root: Path, clock: FrozenClock) -> None:
    """section_map = {preference, work_context, personal_context} … if not target_section: return."""
    answer = daily_update(entry(category="reading_history", key="discussed", value="Discussed where they work, Stripe"))
    _, document, note, _ = run_batch(root, clock, without_tools(answer))
    assert "Discussed where they work" not in document and "Discussed where they work" in note


def test_memory_md_stays_under_2000_words(memory: Memory, clock: FrozenClock, root: Path) -> None:
    """Keep MEMORY.md under 2000 words (prune old/low-confidence entries)."""
    memory.remember("Senior Backend Engineer", key="role", category="work_context", confidence=1.0)
    with memory.batch() as batch:
        for number in range(300):
            text = f"Project {number} concerns {' '.join(f'w{number}x{part}' for part in range(8))}"
            batch.remember(text, category="work_context", confidence=0.7, source="batch_extraction")
    memory.upkeep()
    document = (root / USER / "MEMORY.md").read_text("utf-8")
    assert 1500 < len(document.split()) <= 2000
    assert "Senior Backend Engineer" in document
    assert memory.search("w0x3")[0].record.text.startswith("Project 0 ")


def test_memory_md_is_made_from_the_template_on_the_first_interaction(memory: Memory, root: Path) -> None:
    """MEMORY.md is created for each user on first interaction. / MEMORY.md is created with correct template on first
    interaction."""
    memory.say("Hello!", session="post-1")
    document = (root / USER / "MEMORY.md").read_text("utf-8")
    assert [line for line in document.splitlines() if line.strip()] == ["# User Memory", *SECTIONS]


def test_a_reported_interaction_is_a_first_interaction_too(memory: Memory, root: Path) -> None:
    """MEMORY.md is created for each user on first interaction."""
    memory.report("reaction", value="👍", title="PostgreSQL 18 Released")
    assert (root / USER / "MEMORY.md").read_text("utf-8").startswith("# User Memory")


# BM25


class BM25MemoryIndex:
    """The document's own index, word for word; only the loading of documents is the test's."""

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        self.k1 = k1
        self.b = b
        self.documents: list[dict[str, Any]] = []
        self.doc_freqs: dict[str, int] = defaultdict(int)
        self.doc_lengths: list[int] = []
        self.avg_dl: float = 0.0
        self.token_index: dict[str, list[int]] = defaultdict(list)

    def index(self, contents: list[str]) -> None:
        for number, content in enumerate(contents):
            tokens = tokenize(content)
            self.documents.append({"content": content, "token_counts": Counter(tokens)})
            self.doc_lengths.append(len(tokens))
            for token in set(tokens):
                self.doc_freqs[token] += 1
                self.token_index[token].append(number)
        self.avg_dl = sum(self.doc_lengths) / len(contents)

    def search(self, query: str, top_k: int = 5) -> list[dict[str, Any]]:
        query_tokens = tokenize(query)
        scores = [0.0] * len(self.documents)
        n = len(self.documents)
        for token in query_tokens:
            if token not in self.token_index:
                continue
            df = self.doc_freqs[token]
            idf = math.log((n - df + 0.5) / (df + 0.5) + 1)
            for doc_idx in self.token_index[token]:
                tf = self.documents[doc_idx]["token_counts"][token]
                dl = self.doc_lengths[doc_idx]
                numerator = tf * (self.k1 + 1)
                denominator = tf + self.k1 * (1 - self.b + self.b * dl / self.avg_dl)
                scores[doc_idx] += idf * (numerator / denominator)
        ranked = sorted(enumerate(scores), key=lambda x: x[1], reverse=True)
        return [{**self.documents[idx], "score": score} for idx, score in ranked[:top_k] if score > 0]


def tokenize(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


KNOWN = [
    "Interested in distributed systems, consensus and replication",
    "Discussed distributed databases over lunch with the storage group from Berlin",
    "Learning Zig on weekends",
    "Building a search service with embeddings",
    "Kubernetes cluster upgrade scheduled; Kubernetes networking replaced",
    "The team moved one service to Kubernetes after the outage in spring",
    "Prefers concise technical summaries",
    "Dislikes crypto and blockchain posts",
]


@pytest.mark.parametrize("query", ["distributed systems", "kubernetes", "zig weekends", "search embeddings", "crypto"])
def test_rankings_are_those_of_the_documents_bm25(memory: Memory, query: str) -> None:
    """BM25 index produces correct rankings for known queries."""
    with memory.batch() as batch:
        for text in KNOWN:
            batch.note(text)
    index = BM25MemoryIndex()
    index.index(KNOWN)
    expected = [one["content"] for one in index.search(query)]
    found = [hit.record.text for hit in memory.search(query)]
    assert expected and found[: len(expected)] == expected


def test_search_covers_memory_md_and_daily_notes(memory: Memory) -> None:
    """BM25 search over user memory entries (MEMORY.md + daily notes)."""
    memory.remember("Interested in CRDTs", category="preference")
    memory.jot('⭐ Saved "Understanding CRDTs"', section="Reading Activity")
    assert {hit.record.kind for hit in memory.search("CRDTs")} == {"fact", "daily"}


def test_search_returns_the_five_best_with_id_content_source_date_and_score(memory: Memory) -> None:
    """def search(self, query: str, top_k: int = 5) -> list[dict] # {id, content, source, date} … "score": score … if
    score > 0."""
    for name in "Rust Kafka Helm Bazel Redis Nginx Spark".split():
        memory.remember(f"Uses {name} in the payments pipeline", category="work_context", source="batch_extraction")
    hits = memory.search("payments pipeline")
    assert len(hits) == 5 and [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    record = hits[0].record
    assert record.id and record.text and record.source == "batch_extraction" and record.created_at.date() == DAY
    assert all(hit.score > 0 for hit in hits)
    assert list(memory.search("gardening")) == []


def test_daily_notes_of_the_last_90_days_are_searched(memory: Memory, clock: FrozenClock) -> None:
    """# Load recent daily notes (last 90 days)."""
    memory.jot("Read about vector clocks")
    clock.tick(days=89)
    assert len(memory.search("vector clocks")) == 1
    clock.tick(days=2)
    assert len(memory.search("vector clocks")) == 0


def test_the_index_rebuilds_after_extraction_without_errors(memory: Memory, clock: FrozenClock) -> None:
    """BM25 index rebuilds after extraction without errors. / Rebuild index after daily extraction."""
    memory.say("I'm a backend engineer at Stripe.", session="post-1")
    extract(memory, until_night(clock))
    assert any("Stripe" in hit.record.text for hit in memory.search("Stripe"))
    assert memory.rebuild_index() > 0
    assert any("Stripe" in hit.record.text for hit in memory.search("Stripe"))


# the memory in prompts


def test_the_context_has_the_documents_format(memory: Memory, clock: FrozenClock) -> None:
    """context = ## User Memory ### Core Profile … ### Relevant Past Context … ### Recent Activity …."""
    clock.tick(days=-30)
    memory.jot("Discussed PostgreSQL vacuum with the team")
    clock.tick(days=30)
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    memory.remember("Prefers concise summaries", category="preference")
    memory.jot("Read 6/8 digest posts")
    block = memory.context("PostgreSQL vacuum")
    headings = [line for line in block.splitlines() if line.startswith("#")]
    assert headings == ["## User Memory", "### Core Profile", "### Relevant Past Context", "### Recent Activity"]
    core, rest = block.split("### Relevant Past Context")
    relevant, recent = rest.split("### Recent Activity")
    assert "Senior Backend Engineer" in core and "Prefers concise summaries" in core
    assert "PostgreSQL vacuum" in relevant and "Read 6/8 digest posts" in recent


def test_the_core_profile_is_always_included(memory: Memory) -> None:
    """1. Always include core MEMORY.md (preferences + work context)."""
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    memory.remember("Prefers concise summaries", category="preference")
    block = memory.context("gardening in winter")
    assert "Senior Backend Engineer" in block and "Prefers concise summaries" in block


def test_recent_activity_is_of_the_last_seven_days(memory: Memory, clock: FrozenClock) -> None:
    """3. Get recent daily notes (last 7 days) for recency."""
    memory.jot("Read about sourdough")
    clock.tick(days=2)
    memory.jot("Read about beekeeping")
    clock.tick(days=6)
    block = memory.context("quantum computing")
    assert "beekeeping" in block and "sourdough" not in block


def long_memory(memory: Memory) -> None:
    subjects = "Kafka Postgres Redis Helm Bazel Nginx Spark Flink Envoy Consul Vault Nomad Ceph Istio Linkerd".split()
    places = "checkout ledger payouts onboarding disputes invoicing reporting treasury".split()
    with memory.batch() as batch:
        for number, subject in enumerate(subjects):
            for place in places:
                text = f"Moved the {place} team's PostgreSQL tables behind {subject} after incident {number} in {place}"
                batch.note(text)
        for place in places:
            batch.remember(f"Owns the {place} roadmap together with the platform group", category="work_context")


def test_the_context_stays_within_1500_tokens_and_uses_them(memory: Memory) -> None:
    """Formatted memory (~1500 tokens). / truncate_to_tokens(context, max_tokens) (counted by the tokenizer of the
    document's gpt-4o-mini; Corrections C14: filled to 90 % when there is enough that is relevant)."""
    long_memory(memory)
    block = memory.context("PostgreSQL tables of the teams")
    assert 1350 <= tokens_of(block) <= 1500


@pytest.mark.parametrize("budget", [100, 300, 800])
def test_the_context_respects_the_budget_it_is_given(memory: Memory, budget: int) -> None:
    """`get_memory_context()` respects token budget."""
    long_memory(memory)
    block = asyncio.run(recollect.AsyncMemory(memory).context("PostgreSQL", max_tokens=budget))
    assert 0 < tokens_of(block) <= budget


def discuss_with_model(app: Recollect, clock: FrozenClock, said: str) -> ModelRequest:
    """Tap Discuss on a post, say something, and return what the model got."""
    with ModelServer(lambda request: Say("Sure.")) as server:
        with open_model(f"{server.openai_url}#gpt-4o-mini", key="test") as agent:
            talk = Conversation(app, ANN, place="chat", model=agent, clock=clock)
            pages = talk.begin("PostgreSQL 18 Released", "Asynchronous I/O has arrived.")
            assert "📖 Discussing: PostgreSQL 18 Released" in text_of(pages)
            talk.say(said)
        return server.requests[0]


def test_memory_is_in_the_system_prompt_of_a_discussion(app: Recollect, clock: FrozenClock) -> None:
    """U->>B: Taps 💬 Discuss on post … B->>U: "📖 Discussing: [title]" … Memory injected into system prompt. / Memory
    context is injected into DiscussionAgent system prompts."""
    app.identities.memory(ANN).remember("Senior Backend Engineer", key="role", category="work_context")
    request = discuss_with_model(app, clock, "What is new?")
    assert "### Core Profile" in request.system and "Senior Backend Engineer" in request.system


def test_a_discussion_gets_past_discussions_and_notes_on_its_topic(app: Recollect, clock: FrozenClock) -> None:
    """B->>FS: BM25 search daily notes for topic. FS-->>B: Relevant past discussions & notes."""
    memory = app.identities.memory(ANN)
    clock.tick(days=-20)
    memory.jot('Discussed "PostgreSQL vacuum internals" (4 messages, 3 min)', section="Discussions")
    clock.tick(days=20)
    request = discuss_with_model(app, clock, "What is new?")
    assert "### Relevant Past Context" in request.system and "PostgreSQL vacuum internals" in request.system


def test_a_discussion_knows_the_reactions_and_reads_of_the_last_7_days(app: Recollect, clock: FrozenClock) -> None:
    """B->>DB: Get recent reading history. DB-->>B: Last 7 days of reactions/reads."""
    memory = app.identities.memory(ANN)
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    clock.tick(days=-2)
    memory.report("reaction", value="👍", title="Raft Consensus Deep Dive")
    memory.report("read", title="Understanding CRDTs")
    clock.tick(days=2)
    request = discuss_with_model(app, clock, "What is new?")
    assert "Raft Consensus Deep Dive" in request.system and "Understanding CRDTs" in request.system


def test_discuss_is_tapped_on_a_post(root: Path) -> None:
    """U->>B: Taps 💬 Discuss on post … B->>U: "📖 Discussing: [title]"."""
    with (
        TelegramServer() as server,
        recollect.open(root) as app,
        Bot(app, server.token, url=server.url) as bot,
    ):
        server.wait_until_listening()
        ann = server.user("Ann")
        ann.private.wait_for_reply(ann.says("/start"))
        assert bot.deliver(ann.id, Post(id=POST, title="PostgreSQL 18 Released", text="Asynchronous I/O has arrived."))
        post = ann.waits_for(lambda message: "PostgreSQL 18 Released" in message.text)
        label = next(label for row in post.labels for label in row if "Discuss" in label)
        assert label == "💬 Discuss"
        ann.presses(label, post)
        ann.waits_for(lambda message: "📖 Discussing: PostgreSQL 18 Released" in message.text)
    assert server.problems == []


def test_summaries_are_personalised_by_memory(app: Recollect) -> None:
    """Integrate with SummarizationAgent for personalized summaries."""
    from recollect.agents.summarize import summarize

    memory = app.user(USER)
    memory.remember("Prefers concise, technical summaries", category="preference")
    with (
        ModelServer([Say("Short.")]) as server,
        open_model(f"{server.openai_url}#gpt-4o-mini", key="test") as model,
    ):
        summarize(memory, "PostgreSQL 18 brings asynchronous I/O.", model=model, title="PostgreSQL 18 Released")
    assert "Prefers concise, technical summaries" in everything_sent(server.requests[0])


# tables


def test_the_documents_sql_and_the_program_share_one_database(
    postgres_url: str, sql: Sql, root: Path, clock: FrozenClock
) -> None:
    """CREATE TABLE memory (…); CREATE TABLE memory_extraction_runs (…); ALTER TABLE users … (run as they are, before
    the program is started for the first time)."""
    sql(PREREQUISITES)
    sql(SCHEMA)
    sql("INSERT INTO users (id) VALUES (%s)", USER)
    with recollect.open(postgres_url, files=root, clock=clock) as app:
        memory = app.user(USER)
        memory.remember("Senior Backend Engineer", key="role", category="work_context", confidence=0.95)
        rows = sql("SELECT user_id, type, key, content, source, confidence, active, expires_at FROM memory")
    expected = (
        uuid.UUID(USER),
        "work_context",
        "role",
        "Senior Backend Engineer",
        "explicit",
        Decimal("0.95"),
        True,
        None,
    )
    assert rows == [expected]


def test_an_existing_users_table_is_used(postgres_url: str, sql: Sql, root: Path, clock: FrozenClock) -> None:
    """user_id UUID NOT NULL REFERENCES users(id). / ALTER TABLE users ADD COLUMN IF NOT EXISTS memory_enabled BOOLEAN
    DEFAULT true; … memory_last_extracted_at TIMESTAMPTZ."""
    sql(PREREQUISITES)
    sql("INSERT INTO users (id, telegram_id) VALUES (%s, 42)", USER)
    with recollect.open(postgres_url, files=root, clock=clock) as app:
        app.user(USER).remember("Senior Backend Engineer", key="role", category="work_context")
        users = sql("SELECT id, telegram_id, memory_enabled, memory_last_extracted_at FROM users")
        assert users == [(uuid.UUID(USER), 42, True, None)]
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            sql("INSERT INTO memory (user_id, type, key, content) VALUES (%s, 'preference', 'x', 'y')", OTHER)


@pytest.fixture
def mirrored(postgres_url: str, sql: Sql, root: Path, clock: FrozenClock) -> Iterator[Recollect]:
    """The deployment of the document: files, mirrored in PostgreSQL, with the tables that the program makes."""
    with recollect.open(postgres_url, files=root, clock=clock) as app:
        app.user(USER).remember("Prefers concise summaries", category="preference")
        yield app


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (
            "memory",
            {
                "id": "uuid",
                "user_id": "uuid",
                "type": "text",
                "key": "text",
                "content": "text",
                "source": "text",
                "source_post_id": "uuid",
                "confidence": "numeric",
                "active": "boolean",
                "created_at": "timestamp with time zone",
                "updated_at": "timestamp with time zone",
                "expires_at": "timestamp with time zone",
            },
        ),
        (
            "memory_extraction_runs",
            {
                "id": "uuid",
                "user_id": "uuid",
                "run_date": "date",
                "interactions_processed": "integer",
                "memories_written": "integer",
                "memories_updated": "integer",
                "tokens_used": "integer",
                "duration_ms": "integer",
                "status": "text",
                "error_message": "text",
                "created_at": "timestamp with time zone",
            },
        ),
        (
            "users",
            {"id": "uuid", "memory_enabled": "boolean", "memory_last_extracted_at": "timestamp with time zone"},
        ),
    ],
)
def test_the_tables_have_the_documents_columns(
    mirrored: Recollect, sql: Sql, table: str, columns: dict[str, str]
) -> None:
    """CREATE TABLE memory / memory_extraction_runs, users.memory_enabled (as written)."""
    found = dict(
        sql(
            "SELECT column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = %s",
            table,
        )
    )
    assert {name: found.get(name) for name in columns} == columns


def test_type_and_key_of_a_row_are_never_null(mirrored: Recollect, sql: Sql) -> None:
    """type TEXT NOT NULL, … key TEXT NOT NULL (facts without a key of their own get one)."""
    mirrored.user(USER).say("Hello!", session="post-1")
    assert sql("SELECT content FROM memory WHERE type IS NULL OR key IS NULL") == []


def test_the_memory_table_holds_entries_only(mirrored: Recollect, sql: Sql) -> None:
    """The PostgreSQL `memory` table mirrors key entries for search and querying: type -- 'preference' | 'work_context' |
    'personal_context' | 'reading_history'."""
    mirrored.user(USER).say("Hello!", session="post-1")
    types = {row[0] for row in sql("SELECT type FROM memory")}
    assert types == {"preference"}


def test_the_documents_indexes_exist(mirrored: Recollect, sql: Sql) -> None:
    """CREATE INDEX idx_memory_user_active …, idx_memory_type …, idx_memory_fts …, idx_memory_created …."""
    found = dict(sql("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"))
    assert (
        "WHERE (active = true)" in found["idx_memory_user_active"] or "WHERE active" in found["idx_memory_user_active"]
    )
    assert "(user_id, type)" in found["idx_memory_type"]
    assert "gin (to_tsvector('english'" in found["idx_memory_fts"]
    assert "(user_id, created_at DESC)" in found["idx_memory_created"]


def test_entries_are_found_by_full_text_search_in_sql(mirrored: Recollect, sql: Sql) -> None:
    """-- Full-text search support (BM25 via PostgreSQL). / optional PostgreSQL `tsvector` fallback."""
    mirrored.user(USER).remember("Interested in distributed systems", category="preference")
    rows = sql(
        "SELECT content FROM memory WHERE user_id = %s AND active"
        " AND to_tsvector('english', content) @@ plainto_tsquery('english', 'distributed system')",
        USER,
    )
    assert rows == [("Interested in distributed systems",)]


def test_the_tsvector_fallback_can_be_chosen() -> None:
    """Add optional PostgreSQL `tsvector` fallback for simpler deployments (the settings' page tells how)."""
    settings = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
    assert "tsvector" in settings


def test_a_forgotten_entry_is_inactive_in_the_table(mirrored: Recollect, sql: Sql) -> None:
    """active BOOLEAN DEFAULT true."""
    memory = mirrored.user(USER)
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    memory.forget("role")
    assert sql("SELECT active FROM memory WHERE key = 'role' AND user_id = %s", USER) == [(False,)]


def test_ephemeral_entries_expire_in_the_table(mirrored: Recollect, sql: Sql, clock: FrozenClock) -> None:
    """expires_at TIMESTAMPTZ -- NULL = never expires, set for ephemeral entries."""
    memory = mirrored.user(USER)
    memory.remember("Discussed PostgreSQL 18", key="discussed", category="reading_history", durability="daily")
    rows = sql("SELECT type, expires_at FROM memory WHERE key = 'discussed' AND user_id = %s", USER)
    assert [row[0] for row in rows] == ["reading_history"]
    assert rows[0][1] is not None and abs(rows[0][1] - clock() - timedelta(days=90)) <= timedelta(days=1)
    assert sql("SELECT expires_at FROM memory WHERE type = 'preference' AND user_id = %s", USER) == [(None,)]


def test_explicit_memories_have_the_source_explicit(mirrored: Recollect, sql: Sql) -> None:
    """source TEXT -- … 'explicit' …. / MA->>DB: Insert memory row."""
    capture(mirrored.user(USER), "Remember that I'm presenting on DB perf next week")
    rows = sql("SELECT source FROM memory WHERE content LIKE '%%resenting on DB perf%%' AND user_id = %s", USER)
    assert rows and {row[0] for row in rows} == {"explicit"}


def test_the_post_of_a_discussion_is_in_source_post_id(
    postgres_url: str, sql: Sql, root: Path, clock: FrozenClock
) -> None:
    """source_post_id UUID REFERENCES posts(id). / source 'discussion:uuid'."""
    sql(PREREQUISITES)
    sql("INSERT INTO users (id) VALUES (%s)", USER)
    sql("INSERT INTO posts (id, title) VALUES (%s, 'PostgreSQL 18 Released')", POST)
    with recollect.open(postgres_url, files=root, clock=clock) as app:
        memory = app.user(USER)
        session = str(uuid.UUID(int=7))
        memory.report("discussion", item=POST, title="PostgreSQL 18 Released", session=session)
        memory.say("I'm a senior backend engineer at Stripe.", session=session)
        conclude(memory, session)
        rows = sql(
            "SELECT DISTINCT source, source_post_id FROM memory WHERE type = 'work_context' AND user_id = %s", USER
        )
    assert rows == [(f"discussion:{session}", uuid.UUID(POST))]


def test_runs_are_logged_in_the_documents_table(mirrored: Recollect, sql: Sql, clock: FrozenClock) -> None:
    """Memory extraction run metrics are logged to `memory_extraction_runs` table."""
    memory = mirrored.user(USER)
    memory.say("I'm a backend engineer at Stripe.", session="post-1")
    extract(memory, until_night(clock))
    rows = sql(
        "SELECT run_date, interactions_processed, memories_updated, tokens_used, status, error_message,"
        " memories_written > 0, duration_ms >= 0 FROM memory_extraction_runs WHERE user_id = %s",
        USER,
    )
    assert rows == [(DAY, 1, 0, 0, "completed", None, True, True)]
    assert sql("SELECT memory_last_extracted_at IS NOT NULL FROM users WHERE id = %s", USER) == [(True,)]
    with pytest.raises(psycopg.errors.UniqueViolation):
        sql("INSERT INTO memory_extraction_runs (user_id, run_date) VALUES (%s, %s)", USER, DAY)


def test_a_failed_run_is_logged_with_its_error(mirrored: Recollect, sql: Sql, clock: FrozenClock) -> None:
    """status TEXT -- 'pending' | 'running' | 'completed' | 'failed'; error_message TEXT."""

    def broken(memory: Memory, collected: Any) -> Any:
        raise RuntimeError("the model is on fire")

    memory = mirrored.user(USER)
    memory.say("I'm a backend engineer at Stripe.", session="post-1")
    extract_all([memory], until_night(clock), extractor=broken)
    rows = sql("SELECT status, error_message IS NOT NULL FROM memory_extraction_runs WHERE user_id = %s", USER)
    assert rows == [("failed", True)]


def test_memory_enabled_false_in_the_table_skips_the_user(mirrored: Recollect, sql: Sql, clock: FrozenClock) -> None:
    """Memory extraction respects `memory_enabled=false` — skips user entirely."""
    memory = mirrored.user(USER)
    memory.say("I'm a backend engineer at Stripe.", session="post-1")
    sql("UPDATE users SET memory_enabled = false WHERE id = %s", USER)
    assert extract_all([memory], until_night(clock)).skipped == 1
    assert "Stripe" not in memory.show()
    assert sql("SELECT count(*) FROM memory_extraction_runs WHERE user_id = %s", USER) == [(0,)]


def test_pause_toggles_memory_enabled_in_the_table(mirrored: Recollect, sql: Sql, clock: FrozenClock) -> None:
    """Implement `/memory pause` — toggle `memory_enabled` flag."""
    mirrored.identities.memory(ANN).remember("Prefers tea", category="preference")
    commands = Commands(mirrored, ANN, clock=clock)
    query = "SELECT memory_enabled FROM users u JOIN memory m ON m.user_id = u.id WHERE m.content = 'Prefers tea'"
    assert sql(query) == [(True,)]
    commands.run("/memory pause")
    assert sql(query) == [(False,)]
    commands.run("/memory pause")
    assert sql(query) == [(True,)]


def test_other_ids_get_a_uuid_that_stays(postgres_url: str, sql: Sql, root: Path, clock: FrozenClock) -> None:
    """users.id UUID (Corrections C6: ids that are not UUIDs get one derived from them, and the mapping is kept)."""
    for _ in range(2):
        with recollect.open(postgres_url, files=root, clock=clock) as app:
            app.user("anna").remember("Prefers tea", category="preference")
            assert list(app.users()) == ["anna"]
    ids = [row[0] for row in sql("SELECT id FROM users")]
    assert len(ids) == 1 and isinstance(ids[0], uuid.UUID) and ids[0].version == 5


def test_files_and_table_say_the_same(mirrored: Recollect, sql: Sql, root: Path) -> None:
    """Memory entries are correctly synced between file storage and PostgreSQL."""
    memory = mirrored.user(USER)
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    memory.update("role", "Staff Engineer")
    rows = sql("SELECT content FROM memory WHERE active AND user_id = %s ORDER BY content", USER)
    assert rows == [("Prefers concise summaries",), ("Staff Engineer",)]
    document = (root / USER / "MEMORY.md").read_text("utf-8")
    assert "- Role: Staff Engineer" in document and "- Prefers concise summaries" in document


def test_memory_md_wins_over_the_table_when_it_was_edited(mirrored: Recollect, sql: Sql, root: Path) -> None:
    """MEMORY.md is authoritative — the file is the source of truth … If they diverge, MEMORY.md wins."""
    memory = mirrored.user(USER)
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    path = root / USER / "MEMORY.md"
    path.write_text(path.read_text("utf-8").replace("Senior Backend Engineer", "Staff Engineer"), "utf-8")
    assert "- Role: Staff Engineer" in memory.show()
    assert sql("SELECT content FROM memory WHERE key = 'role' AND active AND user_id = %s", USER) == [
        ("Staff Engineer",)
    ]


def test_memory_md_wins_over_the_table_when_the_table_was_changed(mirrored: Recollect, sql: Sql, root: Path) -> None:
    """PostgreSQL `memory` table is a mirror for search/query purposes. If they diverge, MEMORY.md wins."""
    mirrored.user(USER).remember("Senior Backend Engineer", key="role", category="work_context")
    sql("UPDATE memory SET content = 'Juggler' WHERE key = 'role' AND user_id = %s", USER)
    memory = mirrored.user(USER)
    assert "- Role: Senior Backend Engineer" in memory.show() and "Juggler" not in memory.show()
    memory.remember("Learning Zig on weekends", category="personal_context")
    assert "- Role: Senior Backend Engineer" in (root / USER / "MEMORY.md").read_text("utf-8")
    assert sql("SELECT content FROM memory WHERE key = 'role' AND active AND user_id = %s", USER) == [
        ("Senior Backend Engineer",)
    ]


# /memory


@pytest.fixture
def known(app: Recollect) -> Memory:
    """Ann's memory, with something in it."""
    memory = app.identities.memory(ANN)
    memory.remember("Senior Backend Engineer", key="role", category="work_context")
    memory.remember("Interested in distributed systems", category="preference")
    memory.remember("Learning Zig on weekends", category="personal_context")
    return memory


def test_memory_shows_what_is_stored(app: Recollect, known: Memory, clock: FrozenClock) -> None:
    """`/memory` command displays formatted user memory. / Run `/memory` → verify formatted display matches stored data."""
    page = text_of(Commands(app, ANN, clock=clock).run("/memory"))
    for text in (
        "User Preferences",
        "Interested in distributed systems",
        "Work Context",
        "Role: Senior Backend Engineer",
        "Personal Context",
        "Learning Zig on weekends",
    ):
        assert text in page


def test_memory_pause_toggles(app: Recollect, known: Memory, clock: FrozenClock) -> None:
    """`/memory pause` toggles memory collection on/off."""
    commands = Commands(app, ANN, clock=clock)
    commands.run("/memory pause")
    assert known.mode == "paused"
    assert not known.remember("Prefers tea", category="preference").done
    commands.run("/memory pause")
    assert known.mode == "on"
    assert known.remember("Prefers tea", category="preference").done


def test_memory_clear_asks_and_resets(app: Recollect, known: Memory, clock: FrozenClock) -> None:
    """`/memory clear` resets all user memory (with confirmation). / Run `/memory clear` → verify MEMORY.md is reset."""
    commands = Commands(app, ANN, clock=clock)
    page = commands.run("/memory clear")
    assert page.choices and "Senior Backend Engineer" in known.show()
    press(commands, page, "Erase")
    assert [line for line in known.show().splitlines() if line.strip()] == ["# User Memory", *SECTIONS]
    assert known.read() == [] and list(known.search("Zig")) == []


def test_memory_forget_removes_a_topic_interactively(app: Recollect, known: Memory, clock: FrozenClock) -> None:
    """Run `/memory forget distributed systems` → verify topic removed. / `/memory forget <topic>` removes specific
    memories interactively."""
    commands = Commands(app, ANN, clock=clock)
    page = commands.run("/memory forget distributed systems")
    assert "Interested in distributed systems" in text_of(page)
    assert "distributed systems" in known.show()
    press(commands, page, "Forget")
    assert "distributed systems" not in known.show() and "Zig" in known.show()
    assert list(known.search("distributed systems")) == []


def test_memory_search_returns_ranked_results(app: Recollect, known: Memory, clock: FrozenClock) -> None:
    """`/memory search <query>` returns ranked results."""
    known.note("Attended a meetup on distributed tracing")
    page = text_of(Commands(app, ANN, clock=clock).run("/memory search distributed systems"))
    assert -1 < page.find("Interested in distributed systems") < page.find("distributed tracing")


def test_the_commands_work_in_the_chat(root: Path) -> None:
    """Users can … view it with `/memory`, and control it with `/memory pause|forget|clear`."""
    root.mkdir(parents=True)
    typed = (
        "remember that I prefer technical articles\n/memory\n/memory pause\n/memory pause\n/memory clear\n1\n/memory\n"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    done = run_separately(
        "chat", input=typed, env=environ | {"MEMORY_DIR": str(root)}, cwd=root.parent, text=True, timeout=60
    )
    assert done.returncode == 0 and CONFIRMED in done.stdout and "Prefers technical articles" in done.stdout
    assert "technical articles" not in (root / "me" / "MEMORY.md").read_text("utf-8")


# daily notes


def test_daily_notes_are_only_appended_to(memory: Memory, root: Path, clock: FrozenClock) -> None:
    """Daily notes (memory/YYYY-MM-DD.md) are append-only and never modified after creation."""
    folder = root / USER / "memory"
    memory.jot("Read 6/8 digest posts", section="Reading Activity")
    memory.jot("Talked about CRDTs", section="Discussions")
    first = (folder / "2026-02-12.md").read_text("utf-8")
    memory.jot("Read one more post", section="Reading Activity")
    second = (folder / "2026-02-12.md").read_text("utf-8")
    remaining = iter(second.splitlines())
    assert all(line in remaining for line in first.splitlines())
    clock.tick(days=1)
    memory.jot("Read nothing")
    memory.forget(memory.read(kind="daily")[0].id)
    assert (folder / "2026-02-12.md").read_text("utf-8") == second


def test_daily_notes_are_pruned_after_retention(memory: Memory, root: Path, clock: FrozenClock) -> None:
    """Daily notes auto-pruned after retention period."""
    memory.jot("Read 6/8 digest posts")
    note = root / USER / "memory" / "2026-02-12.md"
    clock.tick(days=89)
    memory.upkeep()
    assert note.exists()
    clock.tick(days=2)
    memory.upkeep()
    assert not note.exists()


def test_the_worker_prunes_daily_notes_by_itself(root: Path, clock: FrozenClock) -> None:
    """Production v2: Daily notes auto-pruned after `MEMORY_DAILY_RETENTION_DAYS`."""
    with recollect.open(root, clock=clock, daily_retention_days=10) as app, app.queue() as queue:
        app.user(USER).jot("Read 6/8 digest posts")
        with app.worker(queue) as worker:
            worker.wait_idle(timeout=30)
        clock.tick(days=12)
        with app.worker(queue) as worker:
            worker.wait_idle(timeout=30)
    assert not (root / USER / "memory" / "2026-02-12.md").exists()


# no code, confidence, privacy

CODE = "def add(a, b):\n    return a + b\n\nprint(add(1, 2))"


def test_code_is_not_stored(memory: Memory) -> None:
    """No code snippets or technical implementations are stored in memory."""
    assert not memory.remember(f"Uses this:\n```python\n{CODE}\n```", category="work_context").done
    assert not memory.jot(f"```python\n{CODE}\n```").done
    capture(memory, f"Remember this:\n```python\n{CODE}\n```")
    assert "def add" not in memory.show() + memory.daily()


def test_code_from_the_model_is_not_stored(root: Path, clock: FrozenClock) -> None:
    """Do NOT store code snippets or technical implementations."""
    answer = daily_update(
        entry(key="snippet", value=f"Senior Backend Engineer at Stripe ```python\n{CODE}\n```"),
        daily_notes=f"Shared this at Stripe:\n```python\n{CODE}\n```",
    )
    _, document, note, _ = run_batch(root, clock, without_tools(answer))
    assert "def add" not in document and "def add" not in note


@pytest.mark.parametrize(("confidence", "durable"), [(0.7, True), (0.95, True), (0.69, False), (0.3, False)])
def test_only_confident_entries_are_in_memory_md(
    root: Path, clock: FrozenClock, confidence: float, durable: bool
) -> None:
    """Only entries with confidence ≥ 0.7 are written to durable MEMORY.md. Lower-confidence entries go to daily notes
    only, which auto-expire after 90 days."""
    _, document, note, _ = run_batch(root, clock, without_tools(daily_update(entry(confidence=confidence))))
    assert ("Senior Backend Engineer at Stripe" in document) is durable
    assert durable or "Senior Backend Engineer at Stripe" in note


def test_clear_deletes_all_memory_of_one_user_only(app: Recollect, root: Path) -> None:
    """Users can delete all memory at any time with `/memory clear`. No memory data is shared between users."""
    for user in (USER, OTHER):
        app.user(user).remember(f"Works with {user[:4]}", category="work_context")
        app.user(user).jot("Read 6/8 digest posts")
    app.user(USER).clear()
    assert app.user(USER).read() == [] and list((root / USER / "memory").glob("*.md")) == []
    assert f"Works with {OTHER[:4]}" in app.user(OTHER).show() and "6/8" in app.user(OTHER).daily()
    assert app.user(OTHER).search(f"Works with {USER[:4]}")[0].record.text == f"Works with {OTHER[:4]}"


# manual testing checklist


def test_mentioning_a_role_in_a_discussion_is_in_memory_md_after_extraction(app: Recollect, clock: FrozenClock) -> None:
    """Start a discussion, mention your job role → check MEMORY.md after extraction."""
    talk = Conversation(app, ANN, place="chat", clock=clock)
    talk.begin("PostgreSQL 18 Released")
    talk.say("I'm a data engineer, so the async vacuum matters to me.")
    memory = app.identities.memory(ANN)
    extract(memory, until_night(clock))
    assert "ata engineer" in "\n".join(section(memory.show(), "## Work Context"))


def test_a_past_discussion_is_found(memory: Memory) -> None:
    """Search memory for a past discussion topic → verify relevant results."""
    memory.report("discussion", title="Raft Consensus Deep Dive", session="post-1")
    memory.say("Leader election is the hard part for us.", session="post-1")
    conclude(memory, "post-1")
    assert "Raft Consensus Deep Dive" in memory.search("raft consensus")[0].record.text


# configuration


def dotenv(**more: str) -> dict[str, str]:
    """The document's .env as a shell reads it."""
    shown = subprocess.run(
        ["bash", "-c", "set -a; source /dev/stdin; env -0"], input=DOTENV, capture_output=True, text=True, check=True
    )
    pairs = dict(line.split("=", 1) for line in shown.stdout.split("\0") if "=" in line)
    return {name: value for name, value in pairs.items() if f"\n{name}=" in f"\n{DOTENV}"} | more


def test_the_documents_configuration_is_accepted(root: Path) -> None:
    """MEMORY_ENABLED=true MEMORY_EXTRACTION_SCHEDULE="0 23 * * *" MEMORY_MAX_WORDS=2000 … (all nine, verbatim)."""
    root.mkdir(parents=True)
    assert len(dotenv()) == 9
    done = command_line("config", "--json", root=root, **dotenv())
    assert done.returncode == 0, done.stderr
    for value in ("0 23 * * *", "gpt-4o-mini", "2000", "0.7", "90", "1.5", "0.75", "1500"):
        assert value in done.stdout


def test_the_documents_values_are_the_defaults(app: Recollect) -> None:
    """MEMORY_MAX_WORDS=2000 … MEMORY_CONFIDENCE_THRESHOLD=0.7 … MEMORY_CONTEXT_MAX_TOKENS=1500."""
    config = app.config
    assert (config.enabled, config.extraction_schedule, config.max_words) == (True, "0 23 * * *", 2000)
    assert (config.confidence_threshold, config.daily_retention_days) == (0.7, 90)
    assert (config.bm25_k1, config.bm25_b, config.context_max_tokens) == (1.5, 0.75, 1500)


@pytest.mark.parametrize(
    "arguments", [("remember", "Prefers tea"), ("search", "tea"), ("show",), ("users",)], ids=" ".join
)
@pytest.mark.parametrize("model", ["gpt-4o-mini", "nonsense:model"])
def test_C5_commands_that_need_no_model_work_with_any_model_setting(
    root: Path, arguments: tuple[str, ...], model: str
) -> None:
    """MEMORY_EXTRACTION_MODEL="gpt-4o-mini" (issue 16: an unusable model setting must never stop commands that need no
    model)."""
    with recollect.open(root) as app:
        app.user("me").remember("Prefers green tea in the morning", category="preference")
    done = command_line(*arguments, root=root, **dotenv(MEMORY_EXTRACTION_MODEL=model))
    assert done.returncode == 0, done.stderr


def test_C5_gpt_4o_mini_is_openais(root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_EXTRACTION_MODEL="gpt-4o-mini" # LLM model for extraction."""
    with ModelServer(lambda request: Say(json.dumps(daily_update(entry()))), key="sk-test") as server:
        for name, value in dotenv(MEMORY_MODEL_URL=server.openai_url, OPENAI_BASE_URL=server.openai_url).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        with recollect.open(root, clock=clock) as app:
            memory = app.user(USER)
            talk_about_work(memory)
            extract(memory, until_night(clock), extractor=app.extractor())
    assert server.requests and {request.model for request in server.requests} == {"gpt-4o-mini"}


def test_memory_enabled_false_stops_all_collection(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_ENABLED=true # Global memory toggle."""
    monkeypatch.setenv("MEMORY_ENABLED", "false")
    with recollect.open(root) as app:
        memory = app.user(USER)
        assert not memory.remember("Prefers tea", category="preference").done
        capture(memory, "Remember that I prefer coffee")
        assert memory.read() == []


def test_the_word_limit_is_a_setting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_MAX_WORDS=2000 # MEMORY.md word limit."""
    monkeypatch.setenv("MEMORY_MAX_WORDS", "100")
    with recollect.open(root) as app:
        memory = app.user(USER)
        with memory.batch() as batch:
            for number in range(40):
                text = f"Project {number} concerns w{number}a w{number}b"
                batch.remember(text, category="work_context", source="batch_extraction")
        assert len(memory.show().split()) <= 100


def test_the_confidence_threshold_is_a_setting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_CONFIDENCE_THRESHOLD=0.7 # Min confidence to write to MEMORY.md."""
    monkeypatch.setenv("MEMORY_CONFIDENCE_THRESHOLD", "0.9")
    with recollect.open(root) as app:
        memory = app.user(USER)
        memory.remember("Prefers tea", category="preference", confidence=0.8)
        assert "Prefers tea" not in memory.show() and "Prefers tea" in memory.daily()


def test_the_context_size_is_a_setting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_CONTEXT_MAX_TOKENS=1500 # Max tokens for memory context in prompts."""
    monkeypatch.setenv("MEMORY_CONTEXT_MAX_TOKENS", "200")
    with recollect.open(root) as app:
        long_memory(app.user(USER))
        assert 0 < tokens_of(app.user(USER).context("PostgreSQL")) <= 200


def test_the_bm25_parameters_are_settings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MEMORY_BM25_B=0.75 # BM25 tuning parameter (with b=1 long texts are discounted, with b=0 they are not)."""
    scores = {}
    for b in ("0", "1"):
        monkeypatch.setenv("MEMORY_BM25_B", b)
        with recollect.open(root / b) as app:
            memory = app.user(USER)
            memory.note("Kubernetes " + " ".join(f"word{number}" for number in range(100)))
            for number in range(9):
                memory.note(f"Short note {number}")
            scores[b] = memory.search("kubernetes")[0].signals["words"]
    assert scores["0"] > scores["1"]


# scripts


@pytest.fixture
def yesterday_and_today(root: Path) -> Path:
    """Two users with something to extract, at the real time."""
    with recollect.open(root) as app:
        app.user(USER).say("I'm a backend engineer at Stripe.", session="post-1")
        app.user(USER).remember("Interested in distributed systems", category="preference")
        app.user(OTHER).say("I live in Oslo.", session="post-1")
    return root


def test_extract_memory_for_one_user_as_a_dry_run(yesterday_and_today: Path) -> None:
    """python -m scripts.extract_memory --user-id <user_id> --dry-run."""
    before = (yesterday_and_today / USER / "MEMORY.md").read_text("utf-8")
    done = command_line("extract", "--user-id", USER, "--dry-run", root=yesterday_and_today)
    assert done.returncode == 0, done.stderr
    assert "Stripe" in done.stdout and "Oslo" not in done.stdout
    assert (yesterday_and_today / USER / "MEMORY.md").read_text("utf-8") == before


def test_extract_memory_for_all_users(yesterday_and_today: Path) -> None:
    """python -m scripts.extract_memory --all. Report: users processed, memories written, tokens used."""
    done = command_line("extract", "--all", root=yesterday_and_today)
    assert done.returncode == 0, done.stderr
    assert "Stripe" in (yesterday_and_today / USER / "MEMORY.md").read_text("utf-8")
    assert "Oslo" in (yesterday_and_today / OTHER / "MEMORY.md").read_text("utf-8")
    last = done.stdout.strip().splitlines()[-1].lower()
    assert re.search(r"\b2 users?\b", last) and "written" in last and "token" in last


def test_rebuild_memory_index_for_a_user(yesterday_and_today: Path) -> None:
    """python -m scripts.rebuild_memory_index --user-id <user_id>."""
    done = command_line("rebuild-index", "--user-id", USER, root=yesterday_and_today)
    assert done.returncode == 0, done.stderr


def test_search_memory_of_a_user(yesterday_and_today: Path) -> None:
    """python -m scripts.search_memory --user-id <user_id> --query "distributed systems"."""
    done = command_line("search", "--user-id", USER, "--query", "distributed systems", root=yesterday_and_today)
    assert done.returncode == 0, done.stderr
    assert "Interested in distributed systems" in done.stdout


def test_the_scripts_run_as_a_module(yesterday_and_today: Path) -> None:
    """python -m … (issue 16: `python -m recollect` works)."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "extract", "--user-id", USER, "--dry-run"],
        env=environ | {"MEMORY_DIR": str(yesterday_and_today)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "Stripe" in done.stdout


# what it enables


def test_reading_history_ranks_content(memory: Memory) -> None:
    """Smart Recommendations: Reading history enables content ranking by user interest. / memory-weighted content
    ranking."""
    for number in range(3):
        memory.report("save", title=f"PostgreSQL internals, part {number}", topics=["PostgreSQL"])
    memory.remember("Dislikes crypto", category="preference")
    titles = ["Crypto exchange hacked", "Gardening in spring", "PostgreSQL 18 Released"]
    assert [one.item for one in memory.rank(titles)] == [titles[2], titles[1], titles[0]]


def test_a_similar_topic_of_last_week_is_suggested(memory: Memory, clock: FrozenClock) -> None:
    """proactive memory suggestions ("You discussed a similar topic last week")."""
    memory.report("discussion", title="CockroachDB pricing", session="post-1")
    memory.say("CockroachDB pricing is too high for us.", session="post-1")
    conclude(memory, "post-1")
    clock.tick(days=7)
    reminder = remind(memory, "What do you think of the new CockroachDB pricing?", session="post-2")
    assert reminder is not None and "last week" in reminder.text and "CockroachDB pricing" in reminder.text


def test_trends_are_anonymous_and_across_users(app: Recollect, clock: FrozenClock) -> None:
    """cross-user anonymized trend detection."""
    for number in range(6):
        memory = app.user(f"reader-{number}")
        memory.report("save", title="Async runtimes", topics=["Rust"])
        memory.consent("trends")
    clock.tick(days=1)
    trends = app.trends()
    assert [trend.topic for trend in trends] == ["rust"] and "reader" not in repr(trends)
