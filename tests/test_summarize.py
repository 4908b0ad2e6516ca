"""Summaries for one person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.agents.models import open_model
from recollect.agents.summarize import summarize
from recollect.testing.models import Fail, ModelServer, Say

TEXT = """The release brings asynchronous vacuum to the database, which removes long pauses on large tables.
Its logo was redrawn by a designer from Lisbon who also made the posters of the conference.
The team thanks many sponsors for their generous help over the last twelve months of work.
Replication slots now survive a failover, so that a standby can take over without a new copy.
A gift shop sells mugs, shirts and stickers with the new logo in four colours and two sizes.
"""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[recollect.Memory]:
    with recollect.open(tmp_path) as app:
        yield app.user("u1")


def test_G9_the_summary_of_a_model_is_made_with_the_memory(memory: recollect.Memory) -> None:
    memory.remember("Prefers concise, technical summaries", category="preference")
    with (
        ModelServer([Say("Vacuum no longer pauses.")]) as server,
        open_model(f"{server.openai_url}#m", key="k") as model,
    ):
        made = summarize(memory, TEXT, title="PostgreSQL 18 Released", model=model)
        asked = server.requests[0]
    assert (made.text, made.by, made.problem) == ("Vacuum no longer pauses.", "m", None)
    assert "Prefers concise, technical summaries" in (asked.system or "")
    assert "asynchronous vacuum" in asked.messages[0].text and asked.tools == ()
    assert [row.operation for row in memory.usage()] == ["summarize"]


def test_G9_without_a_model_the_sentences_that_matter_to_the_person_are_chosen(memory: recollect.Memory) -> None:
    memory.remember("Interested in replication and failover", category="preference")
    made = summarize(memory, TEXT, title="Release notes", max_words=18)
    assert made.by == "rules" and made.problem is None
    assert made.text == "Replication slots now survive a failover, so that a standby can take over without a new copy."
    assert len(summarize(memory, TEXT, max_words=40).text.split()) <= 40
    assert summarize(memory, "Short.", max_words=5).text == "Short."


def test_G9_a_failing_model_is_replaced_and_it_says_so(memory: recollect.Memory) -> None:
    with ModelServer([Fail(401, "no")] * 3) as server, open_model(f"{server.openai_url}#m", key="k") as model:
        made = summarize(memory, TEXT, model=model)
    assert made.by == "rules" and made.text and (made.problem or "").startswith("rejected")
