"""The suite `facts`, as seed E has it: its own sample tests, and what they leave open."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.testing import FrozenClock
from tests.tooling import Caller, caller


@pytest.fixture
def app(tmp_path: Path) -> recollect.Recollect:
    return recollect.open(tmp_path)


@pytest.fixture
def call(app: recollect.Recollect) -> Caller:
    return caller(app, 123, "facts", session="456", chat="456")


def _remember(call: Caller, key: str = "location", value: str = "Kyiv", **more: Any) -> Any:
    given = {"user_id": 123, "fact_type": "personal", "fact_key": key, "fact_value": value, "confidence": 0.95}
    return call("remember_fact", **given | more)


# the tests of the seed


def test_T4_remember_fact_new(call: Caller) -> None:
    data = _remember(call)
    assert data["status"] == "success"
    assert "fact_id" in data
    assert data["message"] == "Remembered: personal → location = Kyiv"


def test_T4_P3_remember_fact_duplicate_in_another_script(call: Caller) -> None:
    _remember(call)
    data = _remember(call, value="Київ", confidence=0.9)
    assert data["status"] == "skipped"
    assert data["reason"] == "duplicate"
    assert data["message"] == "This fact is already known"


def test_T4_update_fact(call: Caller) -> None:
    first = _remember(call, confidence=0.9)
    data = call(
        "update_fact", user_id=123, fact_type="personal", fact_key="location", new_value="Lviv", confidence=0.95,
        change_reason="update",
    )  # fmt: skip
    assert data["status"] == "success"
    facts = call("recall_facts", user_id=123)
    location = next(fact for fact in facts["facts"] if fact["key"] == "location")
    assert location["value"] == "Lviv"
    assert location["fact_id"] == first["fact_id"] == data["fact_id"]


def test_T4_full_memory_lifecycle(app: recollect.Recollect) -> None:
    call = caller(app, 999, "facts", chat="111")
    assert call("recall_facts", user_id=999)["count"] == 0
    skill = {"user_id": 999, "fact_type": "skill", "fact_key": "programming_language"}
    call("remember_fact", **skill, fact_value="Python", confidence=0.9)
    found = call("recall_facts", user_id=999)
    assert found["count"] == 1
    fact = found["facts"][0]
    assert fact["value"] == "Python"
    assert isinstance(fact["fact_id"], int)
    call("update_fact", **skill, new_value="Python, Rust", confidence=0.95, change_reason="refinement")
    assert "Rust" in call("recall_facts", user_id=999)["facts"][0]["value"]
    call("forget_fact", **skill, reason="outdated")
    assert call("recall_facts", user_id=999)["count"] == 0


@pytest.mark.slow
def test_T4_100_concurrent_tool_calls(app: recollect.Recollect) -> None:
    async def remember_random_fact(user_id: int) -> str:
        suite = app.tools(user_id, "facts", chat="1")
        result = await suite.acall(
            "remember_fact",
            {
                "user_id": user_id,
                "fact_type": "preference",
                "fact_key": "hobby",
                "fact_value": f"hobby_{random.randint(1, 100)}",
                "confidence": 0.8,
            },
        )
        return result.text

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(remember_random_fact(number) for number in range(100)))

    results = asyncio.run(all_of_them())
    assert [json.loads(result)["status"] for result in results] == ["success"] * 100
    assert all(len(app.user(number).read(kind="fact")) == 1 for number in range(100))


# what they leave open


def test_T4_a_fact_keeps_its_type_and_maps_to_a_category(call: Caller) -> None:
    _remember(call, "language", "Python", fact_type="skill")
    fact = call.suite.memory.get("language")
    assert (fact.type, fact.category, fact.source) == ("skill", "work_context", "tool:remember_fact")
    assert fact.metadata == {"chat": "456"}


def test_T4_R2_the_excerpt_says_why(call: Caller) -> None:
    _remember(call, source_excerpt="Я з Києва")
    why = call.suite.memory.why("location")
    assert "Я з Києва" in str(why)


def test_T4_another_value_is_a_conflict(call: Caller) -> None:
    first = _remember(call)
    data = _remember(call, value="Lviv")
    assert (data["status"], data["reason"]) == ("skipped", "conflict")
    assert (data["fact_id"], data["known_value"]) == (first["fact_id"], "Kyiv")


def test_C1_an_uncertain_fact_is_recalled_and_stands_in_the_daily_note(call: Caller) -> None:
    data = _remember(call, confidence=0.6)
    assert (data["status"], data["uncertain"]) == ("success", True)
    (fact,) = call("recall_facts", user_id=123)["facts"]
    assert (fact["fact_id"], fact["confidence"], fact["uncertain"]) == (data["fact_id"], 0.6, True)
    assert "Kyiv" in call.suite.memory.daily() and "Kyiv" not in call.suite.memory.show()


@pytest.mark.parametrize("confidence", [0.4, 1.1, "high", -1, float("nan")])
def test_T4_a_confidence_out_of_range_is_told(call: Caller, confidence: Any) -> None:
    result = call.result(
        "remember_fact", user_id=123, fact_type="personal", fact_key="a", fact_value="b", confidence=confidence
    )
    assert result.status == "invalid" and result.content["message"].startswith("confidence is ")


def test_T4_recall_filters_by_type_and_query(call: Caller) -> None:
    _remember(call)
    _remember(call, "language", "Python and Rust", fact_type="skill")
    _remember(call, "hobby", "chess", fact_type="preference")
    assert {f["key"] for f in call("recall_facts", fact_types=["skill", "preference"])["facts"]} == {
        "language",
        "hobby",
    }
    assert [f["key"] for f in call("recall_facts", search_query="which programming language")["facts"]] == ["language"]
    assert call("recall_facts", search_query="chess", fact_types=["skill"])["count"] == 0
    assert call("recall_facts", limit=2)["count"] == 2
    assert "is not a fact type" in call("recall_facts", fact_types=["colour"])["message"]


def test_T4_update_of_an_unknown_fact_is_an_error(call: Caller) -> None:
    given = {"user_id": 123, "fact_key": "location", "new_value": "Lviv", "confidence": 1, "change_reason": "update"}
    data = call("update_fact", fact_type="personal", **given)
    assert data["status"] == "error" and "location" in data["message"]
    _remember(call)
    data = call("update_fact", fact_type="skill", **given)
    assert data["status"] == "error" and "personal" in data["message"]
    assert call.suite.memory.get("location").content == "Kyiv"


def test_T4_R3_what_held_before_an_update_can_still_be_asked(tmp_path: Path) -> None:
    clock = FrozenClock(datetime(2026, 1, 1, tzinfo=timezone.utc))
    app = recollect.open(tmp_path, clock=clock)
    call = caller(app, 123, "facts")
    _remember(call)
    clock.tick(days=30)
    call(
        "update_fact", user_id=123, fact_type="personal", fact_key="location", new_value="Lviv", confidence=0.95,
        change_reason="update",
    )  # fmt: skip
    then = app.user(123).read(kind="fact", key="location", as_of="2026-01-15")
    assert [fact.content for fact in then] == ["Kyiv"]


def test_T4_a_fact_can_be_superseded_by_another(call: Caller) -> None:
    _remember(call, "city", "Kyiv")
    new = _remember(call, "home", "Lviv, near the market")
    data = call(
        "forget_fact", user_id=123, fact_type="personal", fact_key="city", reason="superseded",
        replacement_fact_id=new["fact_id"],
    )  # fmt: skip
    assert data["status"] == "success"
    old = call.suite.memory.numbered(data["fact_id"])
    assert (old.status, old.superseded_by) == ("superseded", call.suite.memory.get("home").id)
    bad = call.result(
        "forget_fact",
        user_id=123,
        fact_type="personal",
        fact_key="home",
        reason="superseded",
        replacement_fact_id=99999,
    )
    assert bad.status == "error" and call.suite.memory.get("home").status == "active"


def test_T4_merge_facts(call: Caller) -> None:
    one = _remember(call, "hobby", "plays chess")["fact_id"]
    two = _remember(call, "pastime", "mountain hiking in summer")["fact_id"]
    data = call("merge_facts", user_id=123, fact_ids=[one, two], merged_value="Chess and hiking", merged_confidence=0.9)
    assert data["status"] == "success" and data["merged"] == [one, two]
    facts = call("recall_facts")["facts"]
    assert [(f["fact_id"], f["key"], f["value"]) for f in facts] == [(data["fact_id"], "hobby", "Chess and hiking")]
    again = call.result("merge_facts", user_id=123, fact_ids=[one, two], merged_value="x y", merged_confidence=0.9)
    assert again.status == "error" and "superseded" in again.text
    for ids in ([one], [1, 2, 3, 4, 5, 6], [one, one]):
        assert call.result("merge_facts", user_id=123, fact_ids=ids, merged_value="x", merged_confidence=1).is_error


def test_T4_ids_of_other_suites_are_understood(app: recollect.Recollect) -> None:
    call = caller(app, 123)
    _remember(call, "hobby", "plays chess")
    _remember(call, "pastime", "mountain hiking in summer")
    ids = [fact.id for fact in app.user(123).read(kind="fact")]
    data = call("merge_facts", fact_ids=ids, merged_value="Chess and hiking", merged_confidence=0.9)
    assert data["status"] == "success"


def test_T4_episodes_from_the_conversation(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user(123)
    for number in range(15):
        role, speaker = ("user", "Olena") if number % 2 else ("assistant", None)
        memory.say(f"Message {number} about the wedding", session="456", role=role, speaker=speaker)
    memory.say("Somewhere else", session="another")
    data = call(
        "create_episode", topic="Підготовка до весілля", summary="Обговорення планів весілля і списку гостей",
        importance=0.85, emotional_valence="positive", tags=["весілля", "свято"],
    )  # fmt: skip
    assert data["status"] == "success"
    assert data["message"] == "Episode created: Підготовка до весілля (10 messages)"
    (episode,) = call("recall_episodes", search_query="весілля")["episodes"]
    assert episode["episode_id"] == data["episode_id"]
    assert (episode["messages"], episode["participants"]) == (10, ["Olena"])
    assert call("recall_episodes", tags=["свято"])["count"] == 1
    assert call("recall_episodes", tags=["робота"])["count"] == 0
    assert call("recall_episodes", min_importance=0.9)["count"] == 0
    call("create_episode", topic="One", summary="A short talk about trains", importance=0.5, message_count="1")
    assert call("recall_episodes", search_query="trains")["episodes"][0]["messages"] == 1


def test_T4_update_and_archive_an_episode(call: Caller) -> None:
    number = call("create_episode", topic="Birthday", summary="We planned a party", importance=0.7)["episode_id"]
    data = call(
        "update_episode", episode_id=number, new_importance=0.9, additional_summary="It will be at the lake",
        add_tags=["lake"],
    )  # fmt: skip
    assert data["episode"]["summary"] == "We planned a party\nIt will be at the lake"
    assert (data["episode"]["importance"], data["episode"]["tags"]) == (0.9, ["lake"])
    assert data["episode_id"] == number
    assert "nothing to change" in call("update_episode", episode_id=number)["message"]
    assert call("update_episode", episode_id=424242, new_importance=1)["status"] == "error"
    assert call("archive_episode", episode_id=str(number), reason="over")["status"] == "success"
    assert call("recall_episodes")["count"] == 0
    assert call("archive_episode", episode_id=number)["status"] == "error"


def test_T4_a_fact_is_not_an_episode(call: Caller) -> None:
    number = _remember(call)["fact_id"]
    for none in (number, -1, 2**62):
        assert call("archive_episode", episode_id=none)["message"].startswith("there is no episode")


def test_T4_R6_mark_important_keeps_messages(call: Caller, app: recollect.Recollect) -> None:
    memory = app.user(123)
    assert call("mark_important", importance_level="high")["status"] == "error"
    for number in range(8):
        memory.say(f"We decided on plan {number}", session="456")
    data = call("mark_important", importance_level="critical", reason="a decision")
    assert (data["status"], data["count"]) == ("success", 5)
    kept = memory.read(kind="message")
    assert [one.importance for one in kept] == [0.5] * 3 + [1.0] * 5
    assert {one.expires_at for one in kept} == {None}  # no retention is set


def test_T4_R6_mark_important_keeps_messages_beyond_the_retention(tmp_path: Path) -> None:
    with recollect.open(tmp_path, message_retention_days=30) as app:
        memory = app.user(123)
        for number in range(8):
            memory.say(f"We decided on plan {number}", session="456")
        app.tools(123, "facts", session="456").call("mark_important", {"importance_level": "critical"})
        days = [(one.expires_at - one.created_at).days for one in memory.read(kind="message") if one.expires_at]
        assert days == [30] * 3 + [365] * 5


def test_T4_clear_profile_asks_first_and_can_be_undone(call: Caller, app: recollect.Recollect) -> None:
    _remember(call)
    _remember(call, "hobby", "chess")
    app.user(123).note("A note stays")
    assert call.result("clear_profile", user_id=123, confirm=False).status == "refused"
    assert call("recall_facts")["count"] == 2
    data = call("clear_profile", user_id=123, confirm=True)
    assert data["count"] == 2 and call("recall_facts")["count"] == 0
    assert len(app.user(123).read(kind="note")) == 1
    app.user(123).undo(data["run"])
    assert call("recall_facts")["count"] == 2


# whose facts they are


def test_T4_R4_a_user_id_of_somebody_else_is_refused(call: Caller, app: recollect.Recollect) -> None:
    app.user(777).remember("Warsaw", key="location")
    for tool, more in (
        ("recall_facts", {}),
        ("remember_fact", {"fact_type": "personal", "fact_key": "k", "fact_value": "v", "confidence": 1}),
        ("forget_fact", {"fact_type": "personal", "fact_key": "location", "reason": "outdated"}),
        ("clear_profile", {"confirm": True}),
    ):
        result = call.result(tool, user_id=777, **more)
        assert result.status == "invalid" and "123" in result.text and "Warsaw" not in result.text
    assert app.user(777).get("location").content == "Warsaw"


def test_T4_the_user_is_known_without_being_told(call: Caller) -> None:
    assert call("recall_facts")["status"] == "success"
    assert call("recall_facts", user_id="123")["status"] == "success"
    assert call("recall_facts", user_id=123.0)["status"] == "success"


def test_T4_those_who_take_part_can_be_named(app: recollect.Recollect) -> None:
    call = caller(app, 1, "facts", others=[2, 3])
    given = {"fact_type": "personal", "fact_key": "city", "fact_value": "Lviv", "confidence": 1}
    assert call("remember_fact", user_id=2, **given)["status"] == "success"
    assert app.user(2).get("city").content == "Lviv"
    assert app.user(1).read() == []
    assert "user_id is missing" in call("remember_fact", **given)["message"]
    assert "1 or 2 or 3" in call("remember_fact", user_id=4, **given)["message"]
    assert [row.tool for row in app.user(2).calls()] == ["remember_fact"]


def test_T4_a_user_with_another_kind_of_id_has_no_user_id_to_give(app: recollect.Recollect) -> None:
    suite = app.tools("ann", "facts")
    assert "user_id" not in suite.schema("remember_fact")["properties"]
    assert "user_id" not in suite.schema("remember_fact")["required"]
    assert "user_id" in app.tools(5, "facts").schema("remember_fact")["properties"]
    assert "user_id" not in app.tools(5, "facts", fixed_user=True).schema("remember_fact")["properties"]


# one memory


def test_T4_T1_T2_T3_the_same_memory_through_all_suites(app: recollect.Recollect) -> None:
    call = caller(app, 123)
    _remember(call, "favourite_dish", "varenyky with cherries", fact_type="preference")
    assert "varenyky" in call("search_memory", query="varenyky")
    assert "varenyky" in call("read_memory", category="preference")
    assert "varenyky" in call("memory_search", query="varenyky")[0]["text"]
    assert "varenyky" in call("recall", query="varenyky")[0]["content"]
    note = call("memory_save", content="Allergic to peanuts")["note_id"]
    assert call("recall_facts", search_query="peanuts")["facts"][0]["key"] == note
    call("write_memory", key="editor", value="Uses neovim", category="work_context", durability="durable")
    assert call("recall_facts", fact_types=["skill"])["facts"][0]["key"] == "editor"
    call("remember_observation", content="The staging server runs Debian", category="finding")
    assert "Debian" in call("search_memory", query="staging server")


@pytest.mark.parametrize("forget", ["delete_memory", "memory_delete", "forget_fact"])
def test_T4_T1_T2_forgotten_by_any_suite_is_forgotten_everywhere(app: recollect.Recollect, forget: str) -> None:
    call = caller(app, 123)
    _remember(call, "favourite_dish", "varenyky with cherries", fact_type="preference")
    found = call("memory_search", query="varenyky")[0]["note_id"]
    arguments = {
        "delete_memory": {"key": "favourite_dish"},
        "memory_delete": {"note_id": found},
        "forget_fact": {"fact_type": "preference", "fact_key": "favourite_dish", "reason": "user_requested"},
    }
    assert not call.result(forget, **arguments[forget]).is_error
    assert call("search_memory", query="varenyky").startswith("No memories found")
    assert call("memory_search", query="varenyky") == call("recall", query="varenyky") == []
    assert call("recall_facts", search_query="varenyky")["count"] == 0
    assert "varenyky" not in call("get_memory_context", topic="food")


def test_T4_P7_paused_nothing_is_written_by_any_tool(call: Caller) -> None:
    _remember(call)
    call.suite.memory.pause()
    for tool, more in (
        ("remember_fact", {"fact_type": "skill", "fact_key": "k", "fact_value": "v w", "confidence": 1}),
        ("forget_fact", {"fact_type": "personal", "fact_key": "location", "reason": "outdated"}),
        ("clear_profile", {"confirm": True}),
    ):
        result = call.result(tool, user_id=123, **more)
        assert result.status == "refused" and "paused" in result.text
    assert call("recall_facts")["count"] == 1
    call.suite.memory.pause(incognito=True)
    result = call.result("recall_facts")
    assert result.status == "refused" and "incognito" in result.text


# C12: facts that change with time


def _moved(tmp_path: Path) -> tuple[Caller, FrozenClock]:
    clock = FrozenClock()
    call = caller(recollect.open(tmp_path / "moved", clock=clock), 123, "facts", session="456")
    _remember(call)
    clock.tick(days=10)
    given = {"user_id": 123, "fact_type": "personal", "fact_key": "location", "confidence": 0.95}
    call("update_fact", **given, new_value="Lviv", change_reason="update", valid_from="2026-02-20")
    clock.tick(days=10)
    return call, clock


@pytest.mark.parametrize("more", [{}, {"search_query": "where do they live?"}, {"fact_types": ["personal"]}])
def test_C12_facts_as_of_a_time(tmp_path: Path, more: dict[str, Any]) -> None:
    call, _ = _moved(tmp_path)
    for day, place in (("2026-02-19", "Kyiv"), ("2026-02-21", "Lviv")):
        [fact] = call("recall_facts", user_id=123, as_of=day, **more)["facts"]
        assert fact["value"] == place
    assert call("recall_facts", user_id=123, as_of="2026-01-01", **more)["facts"] == []
    assert call("recall_facts", user_id=123, as_of="2026-02-19", search_query="piano lessons")["facts"] == []
    assert "as_of" in call.result("recall_facts", user_id=123, as_of="last week or so").text


@pytest.mark.parametrize(
    "query", ["where did they live before?", "previous location", "Where did they use to live, formerly?"]
)
def test_C12_what_held_before_comes_with_its_times(tmp_path: Path, query: str) -> None:
    call, _ = _moved(tmp_path)
    earlier, current = call("recall_facts", user_id=123, search_query=query)["facts"]
    assert (earlier["value"], current["value"]) == ("Kyiv", "Lviv")
    assert earlier["earlier"] and earlier["valid_until"].startswith("2026-02-20")
    assert "earlier" not in current


def test_C12_a_correction_never_held(call: Caller) -> None:
    _remember(call, value="Kiew")
    given = {"user_id": 123, "fact_type": "personal", "fact_key": "location", "confidence": 0.95}
    call("update_fact", **given, new_value="Kyiv", change_reason="correction")
    facts = call("recall_facts", user_id=123, search_query="where did they live before?")["facts"]
    assert [fact["value"] for fact in facts] == ["Kyiv"]


def test_C12_the_old_value_leads_to_the_fact_and_is_marked(tmp_path: Path) -> None:
    call, _ = _moved(tmp_path)
    found = call("recall_facts", user_id=123, search_query="Kyiv")["facts"]
    assert [(fact["value"], "earlier" in fact) for fact in found] == [("Kyiv", True), ("Lviv", False)]
    call.suite.memory.erase_topic("Kyiv")
    assert call("recall_facts", user_id=123, search_query="Kyiv")["facts"] == []
