"""Updates change what is there: they make nothing up, and lose nothing that they do not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recollect
from recollect.errors import NotFoundError
from recollect.records import Episode, Record
from recollect.surfaces.cli import write_commands as _writing  # noqa: F401  (adds its commands)
from recollect.surfaces.cli.program import app as cli
from recollect.testing.clock import FrozenClock


@pytest.fixture
def app(tmp_path: Path) -> Iterator[recollect.Recollect]:
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        yield app


UNKNOWN = ["999", "#999", "fact-01jcs0m3y7q8r9t0v1w2x3y4z5", "fact-12", "rolle", "no such thing"]


@pytest.mark.parametrize("ref", UNKNOWN)
def test_C19_an_update_of_what_does_not_exist_is_an_error(app: recollect.Recollect, tmp_path: Path, ref: str) -> None:
    memory = app.user("u1")
    memory.remember("Engineer", key="role")
    memory.remember("Lviv", key="city")
    app.user("u2").remember("Pilot", key="rolles")
    with pytest.raises(NotFoundError) as told:
        memory.update(ref, "x")
    with memory.batch() as batch, pytest.raises(NotFoundError):
        batch.update(ref, "x")
    result = CliRunner().invoke(cli, ["update", ref, "x", "--user", "u1", "--root", str(tmp_path)])
    assert result.exit_code == 3, result.output
    if ref == "rolle":
        assert "role" in str(told.value) and "role" in result.output and "rolles" not in str(told.value)
    assert "Pilot" not in str(told.value) and "Engineer" not in str(told.value)
    assert [record.key for record in memory.read()] == ["role", "city"]


def test_R1_the_nearest_keys_are_named(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    for key in ("favourite editor", "favourite colour", "home city"):
        memory.remember(f"Something about {key}", key=key)
    with pytest.raises(NotFoundError, match=r"the nearest: favourite.editor"):
        memory.update("favorite editor", "vim")
    with pytest.raises(NotFoundError, match=r"home.city"):
        memory.forget("city")


def test_A_update_memory_adds_a_new_key_but_never_an_id(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    tools = app.tools("u1", "entries")
    added = tools.call("update_memory", {"key": "role", "value": "Engineer"})
    assert "written" in added.text and memory.get("role").content == "Engineer"
    for ref in ("999", "fact-01jcs0m3y7q8r9t0v1w2x3y4z5"):
        refused = tools.call("update_memory", {"key": ref, "value": "Engineer"})
        assert refused.status == "error", refused.text
    assert len(memory.read()) == 1


def _episode(memory: recollect.Memory) -> Record:
    said = [memory.say(f"Line {number}", session="chat-1") for number in range(10)]
    outcome = memory.episode(
        "A move",
        "They moved to Lviv",
        messages=[one.record.id for one in said],  # type: ignore[attr-defined]
        tags=["home"],
        participants=["Anna", "Max"],
        metadata={"place": "Lviv"},
    )
    return outcome.record  # type: ignore[attr-defined, no-any-return]


def test_C12_an_episode_keeps_its_messages_through_every_update(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    before = _episode(memory)
    assert isinstance(before, Episode) and len(before.messages) == 10
    number = memory.numbers([before.id])[before.id]
    tools = app.tools("u1", "facts", session="chat-1")
    for given in (
        {"additional_summary": "Max helped"},
        {"new_importance": 0.9},
        {"add_tags": ["move"]},
        {"additional_summary": "It rained", "new_importance": 0.8, "add_tags": ["rain"]},
    ):
        told = tools.call("update_episode", {"episode_id": number, **given})
        assert told.status == "ok", told.text
    for reason in ("update", "correction", "refinement", "contradiction"):
        memory.update(before.id, f"They moved, says {reason}", reason=reason)
    after = memory.get(before.id)
    assert isinstance(after, Episode)
    assert after.messages == before.messages and after.participants == before.participants
    assert after.metadata == before.metadata and set(after.tags) == {"home", "move", "rain"}
    assert after.topic == "A move" and after.content == "They moved, says contradiction"


def test_C_notes_and_observations_keep_what_supports_them(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    seen = memory.observe(
        "Tests run in CI", "insight", excerpt="CI is red", messages=["m-1"], tags=["ci"], metadata={"run": 7}
    )
    noted = memory.note("Calls on Mondays", title="Calls", tags=["work"], metadata={"by": "phone"})
    for outcome in (seen, noted):
        before: Record = outcome.record  # type: ignore[attr-defined]
        memory.update(before.id, "Said otherwise now")
        after = memory.get(before.id)
        for name in ("messages", "excerpt", "tags", "metadata"):
            assert getattr(after, name) == getattr(before, name), name


def test_R2_only_a_fact_with_another_value_loses_the_support_of_the_old_one(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.remember("Engineer", key="role", excerpt="I am an engineer", messages=["m-1"], tags=["work"])
    memory.update("role", importance=0.9)
    memory.update("role", "Backend engineer", reason="refinement")
    assert memory.get("role").excerpt == "I am an engineer" and memory.get("role").messages == ("m-1",)
    memory.update("role", "Architect")
    assert memory.get("role").excerpt is None and memory.get("role").tags == ("work",)


def test_R1_a_merge_keeps_what_each_of_them_had(app: recollect.Recollect) -> None:
    memory = app.user("u1")
    memory.remember("Engineer", key="role", messages=["m-1"], tags=["work"], metadata={"a": 1})
    memory.remember("At Stripe", key="company", messages=["m-2"], excerpt="at Stripe", metadata={"b": 2})
    merged = memory.merge(["role", "company"], "Engineer at Stripe")
    record: Record = merged.record  # type: ignore[attr-defined]
    assert record.messages == ("m-1", "m-2") and record.tags == ("work",) and record.excerpt == "at Stripe"
    assert record.metadata["a"] == 1 and record.metadata["b"] == 2
