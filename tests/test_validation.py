"""Bad input gets one clear line that names the field, and nothing is half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect import InvalidInputError, Memory, RecollectError
from tests.volume import volume

_BAD: list[tuple[str, str, Callable[[Any], object]]] = [
    ("content", "must not be empty", lambda m: m.remember("")),
    ("content", "must not be empty", lambda m: m.remember("  \n\t ")),
    ("content", "must not be empty", lambda m: m.remember("\ufeff\u200b")),
    ("content", "at most 4,000", lambda m: m.remember("x" * 1_000_000)),
    ("content", "at most 200,000", lambda m: m.note("x" * 1_000_000)),
    ("content", "control character", lambda m: m.remember("a\x07b")),
    ("content", "control character", lambda m: m.remember("a\x00b")),
    ("content", "control character", lambda m: m.remember("a\x1b[31mb")),
    ("content", "lone surrogate", lambda m: m.remember("a\ud800b")),
    ("content", "must be text, not int", lambda m: m.remember(7)),
    ("content", "must be text, not nothing", lambda m: m.remember(None)),
    ("category", "not one of preference, work_context", lambda m: m.remember("x y", category="hobbies")),
    ("type", "not one of personal", lambda m: m.remember("x y", type="Skill")),
    ("durability", "not one of durable, daily", lambda m: m.remember("x y", durability="forever")),
    ("confidence", "not a number from 0 to 1", lambda m: m.remember("x y", confidence=7)),
    ("confidence", "not a number from 0 to 1", lambda m: m.remember("x y", confidence="0.9")),
    ("confidence", "not a number from 0 to 1", lambda m: m.remember("x y", confidence=float("nan"))),
    ("importance", "not a number from 0 to 1", lambda m: m.remember("x y", importance=True)),
    ("valid_from", "not a date; use YYYY-MM-DD", lambda m: m.remember("x y", valid_from="13/05/2024")),
    ("valid_from", "not a date", lambda m: m.remember("x y", valid_from=20240513)),
    ("expires_at", "not a date", lambda m: m.remember("x y", expires_at="tomorrow")),
    ("as_of", "not a date", lambda m: m.read(as_of="yesterday")),
    ("day", "not a day; use YYYY-MM-DD", lambda m: m.jot("x y", day="2026-13-01")),
    ("day", "not a day", lambda m: m.daily("12.02.2026")),
    ("section", "not one of Reading Activity", lambda m: m.jot("x y", section="Misc")),
    ("key", "at most 64", lambda m: m.remember("x y", key="k" * 65)),
    ("key", "no letters or digits", lambda m: m.remember("x y", key="***")),
    ("key", "must be a single line", lambda m: m.remember("x y", key="a\nb")),
    ("tags", "must be a list of texts", lambda m: m.remember("x y", tags="tag")),
    ("tags[1]", "must be text", lambda m: m.remember("x y", tags=["a", 1])),
    ("tags", "at most 50", lambda m: m.remember("x y", tags=[str(n) for n in range(51)])),
    ("messages[0]", "must not be empty", lambda m: m.remember("x y", messages=[" "])),
    ("metadata", "only JSON values", lambda m: m.remember("x y", metadata={"a": object()})),
    ("metadata", "only JSON values", lambda m: m.remember("x y", metadata={"a": float("inf")})),
    ("metadata", "only JSON values", lambda m: m.remember("x y", metadata={"a": "\ud800"})),
    ("metadata", "mapping with text keys", lambda m: m.remember("x y", metadata={1: 2})),
    ("metadata", "at most 20,000", lambda m: m.remember("x y", metadata={"a": "x" * 30_000})),
    ("source", "must be a single line", lambda m: m.remember("x y", source="a\nb")),
    ("pinned", "not true or false", lambda m: m.remember("x y", pinned="yes")),
    ("category", "not one of finding, insight, lesson", lambda m: m.observe("x y", "fact")),
    ("valence", "not one of positive", lambda m: m.episode("t", "s", valence="happy")),
    ("topic", "must not be empty", lambda m: m.episode("", "s")),
    ("session", "is required for a message", lambda m: m.say("x y")),
    ("level", "not one of high, critical", lambda m: m.mark_important(["x"], "low")),
    ("reason", "not one of correction", lambda m: m.update("role", "x", reason="because")),
    ("kind", "not one of fact", lambda m: m.read(kind="facts")),
    ("status", "not one of active", lambda m: m.read(status="deleted")),
    ("limit", "not a whole number from 1", lambda m: m.read(limit=0)),
    ("limit", "not a whole number from 1", lambda m: m.search("tea", limit=-1)),
    ("query", "must be text, not int", lambda m: m.search(7)),
    ("refs", "at least two", lambda m: m.merge(["role"], "x y")),
    ("topic", "must contain a word", lambda m: m.erase_topic("?!")),
    ("path", "does not exist", lambda m: m.import_("/no/such/file")),
    ("actor", "must not be empty", lambda m: m.acting("")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "message", "act"), _BAD, ids=[f"{n}-{field}" for n, (field, _, _) in enumerate(_BAD)]
)
def test_bad_input_names_the_field_and_writes_nothing(
    field: str, message: str, act: Callable[[Memory], object], tmp_path: Path
) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.remember("Engineer", key="role")
        before = (memory.show(), memory.history(), memory.read(status="all"))
        with pytest.raises(InvalidInputError) as caught:
            act(memory)
        assert caught.value.field == field
        assert str(caught.value).startswith(f"{field}: ") and message in str(caught.value)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 250
        assert (memory.show(), memory.history(), memory.read(status="all")) == before
        assert memory.verify() == []


def test_open_says_what_it_can_open(tmp_path: Path) -> None:
    for bad in ("", "mysql://host/db", "redis://x"):
        with pytest.raises(InvalidInputError, match="where"):
            recollect.open(bad)


def test_U8_a_wrong_setting_is_named() -> None:
    for variable, value, message in [
        ("MEMORY_MAX_WORDS", "many", "must be a whole number"),
        ("MEMORY_MAX_WORDS", "3", "must be from 50"),
        ("MEMORY_CONFIDENCE_THRESHOLD", "7", "must be from 0 to 1"),
        ("MEMORY_ENABLED", "maybe", "must be true or false"),
    ]:
        with pytest.raises(recollect.RecollectError, match=f"{variable} is .*{message}"):
            recollect.Config.load({variable: value})
    config = recollect.Config.load({"MEMORY_MAX_WORDS": "500", "MEMORY_ENABLED": "false"}, max_words=600)
    assert (config.max_words, config.enabled, config.confidence_threshold) == (600, False, 0.7)
    secret = recollect.Config.load({"MEMORY_DATABASE_URL": "postgresql://me:pw@host/db"})
    assert "pw" not in secret.values()["MEMORY_DATABASE_URL"]


def test_P7_memory_enabled_false_pauses_everyone(tmp_path: Path) -> None:
    with recollect.open(tmp_path, enabled=False) as app:
        outcome = app.user("u1").remember("Likes tea")
        assert isinstance(outcome, recollect.Refused) and outcome.reason == "paused"


@settings(max_examples=volume(30, 150), deadline=None)
@given(
    content=st.one_of(st.text(max_size=300), st.none(), st.integers()),
    key=st.one_of(st.none(), st.text(max_size=80)),
    confidence=st.one_of(st.floats(), st.integers()),
    source=st.text(max_size=20),
    tags=st.lists(st.text(max_size=5), max_size=3),
)
def test_any_input_is_stored_or_refused_cleanly(
    content: Any, key: Any, confidence: Any, source: str, tags: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with recollect.open(tmp_path_factory.mktemp("any")) as app:
        memory = app.user("u1")
        try:
            outcome = memory.remember(content, key=key, confidence=confidence, source=source, tags=tags)
        except RecollectError as error:
            assert isinstance(error, InvalidInputError) and "\n" not in str(error)
            assert not memory.exists
        else:
            assert len(memory.read()) == (1 if outcome.done else 0)
            assert memory.verify() == []
            if outcome.done:
                again = memory.remember(content, key=key, confidence=confidence, source=source, tags=tags)
                assert len(memory.read()) == (2 if isinstance(again, recollect.Demoted) else 1)
