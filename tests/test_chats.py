"""The wall between chats (seed E; C10), from outside: over every tool of every suite and every verb of a memory.

Two memories are compared that differ in one thing: in the first, a family chat said and stored a lot. Whatever is asked
in another chat without consent must have the same answer in both, so nothing of the family can be in it: no word, no
count, not that an id exists. What the family stored must be unchanged after it, and with consent it must be found.
"""

from __future__ import annotations

import inspect
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import ExtractionRun, Memory, NotFoundError, Recollect, RecollectError
from recollect.agents.conclude import conclude
from recollect.agents.extract import Extraction, extract
from recollect.agents.gather_interactions import Gathered
from recollect.client import connect
from recollect.config import Config
from recollect.memory.unprocessed import Mark
from recollect.records import OBSERVATION_CATEGORIES, RECORD_TYPES, Record
from recollect.surfaces.chat.conversation import Conversation
from recollect.testing import FrozenClock, MemoryStore
from recollect.tools.catalog import SUITES, tools_of
from tests.conftest import Emptied
from tests.serving import serving
from tests.tooling import caller
from tests.volume import volume

USER = 7
FAMILY, WORK, GROUP = "family", "work", "group:choir"
SECRET = "zorb"
"""In every text that the family stores, in a word that nobody else ever says."""
DAY = date(2026, 3, 2)
NOW = datetime(2026, 3, 2, 12, tzinfo=timezone.utc)
LATER = FrozenClock(NOW + timedelta(hours=1))

Open = Callable[[], Recollect]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """A new app with nothing in it, as often as asked."""
    with ExitStack() as stack:
        numbers = iter(range(100))

        def app() -> Recollect:
            clock = FrozenClock(NOW)
            if request.param == "memory":
                return stack.enter_context(Recollect(MemoryStore(), Config(), folder=None, clock=clock))
            if request.param == "sqlite":
                return stack.enter_context(recollect.open(tmp_path / str(next(numbers)), clock=clock))
            tables: Emptied = request.getfixturevalue("emptied")
            url = tables.take()
            stack.callback(tables.give_back, url)
            return stack.enter_context(recollect.open(url, clock=clock))

        yield app


# what the family says and stores


@dataclass
class Known:
    """What an attacker in another chat may have got hold of."""

    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)


def store_family(app: Recollect) -> Known:
    """Something of every kind, by every tool that writes and every verb that does, in the family chat."""
    call = caller(app, USER, session="family-talk", chat=FAMILY)
    memory = app.user(USER).acting("agent", session="family-talk", chat=FAMILY)
    for number in range(3):
        memory.say(f"The clinic called about the illness {SECRET}message{number}", speaker=f"{SECRET}speaker")
    done = [
        call("write_memory", key="Illness", value=f"heart trouble {SECRET}entry", category="personal_context"),
        call("write_memory", key="Mood", value=f"low {SECRET}mood", durability="daily"),
        call("update_memory", key="Doctor", value=f"Ann at the clinic {SECRET}doctor"),
        call("memory_save", content=f"The clinic has our insurance number {SECRET}note"),
        call("remember_observation", content=f"They fear the clinic {SECRET}observation", category="insight"),
        call("remember_fil", findings=[f"The clinic is far {SECRET}finding"], source="clinic"),
        call("scratchpad_set", key="clinic", value=f"call at nine {SECRET}scratch"),
        call(
            "remember_fact", fact_type="personal", fact_key="diagnosis", fact_value=f"angina {SECRET}fact", confidence=1
        ),
        call("remember_fact", fact_type="trait", fact_key="fear", fact_value=f"needles {SECRET}fear", confidence=0.6),
        call(
            "create_episode",
            topic=f"Clinic visit {SECRET}topic",
            summary=f"They cried at the clinic {SECRET}episode",
            importance=0.9,
            tags=["clinic", f"{SECRET}tag"],
        ),
        call("remember_relationship", person="Oksana", relation=f"estranged sister {SECRET}sister", confidence=1),
        call("memory_import", data=json.dumps([f"A note about the clinic bill {SECRET}import"])),
        call("memory", command="create", path="/memories/clinic/plan.md", file_text=f"Surgery in May {SECRET}file\n"),
        call("mark_important", message_count=2, importance_level="high"),
    ]
    assert all(done), done
    memory.remember(f"Takes pills against the illness {SECRET}pills", tags=[f"{SECRET}tagged"])
    memory.remember(f"Takes a pill against the illness {SECRET}pills at night")
    memory.note(f"Bill of the clinic {SECRET}bill", title=f"Bill {SECRET}title")
    memory.jot(f"Bad night after the clinic {SECRET}jot")
    memory.update("doctor", f"Bert at the clinic {SECRET}second", reason="update")
    memory.forget(_record(memory.remember(f"Old clinic {SECRET}forgotten")).id, reason=f"closed {SECRET}reason")
    memory.report("discussion", id="family-event", title=f"Clinic {SECRET}event", text=f"{SECRET}text")
    run = ExtractionRun(id="run-family", day=DAY, started_at=NOW, kind="nightly", details={"of": f"{SECRET}run"})
    memory.note_run(run)
    records = app.user(USER).read(status="all")
    assert {record.kind for record in records} == set(RECORD_TYPES) and {record.chat for record in records} == {FAMILY}
    numbers = app.user(USER).numbers([record.id for record in records])
    runs = [entry.run for entry in app.user(USER).history() if entry.run]
    return Known([record.id for record in records], sorted(numbers.values()), [*runs, "run-family"])


def store_others(app: Recollect) -> None:
    """What both memories have: something of the person's own, of work, and of a group."""
    app.user(USER).remember("Lives in Lviv", key="city")
    for chat in (WORK, GROUP):
        memory = app.user(USER).acting("agent", session=f"{chat}-talk", chat=chat)
        memory.say("The release slips again")
        memory.remember("Plans the release", key="task")
        memory.remember("Plans the releases of the team", key="tasks")
        memory.note("The release needs a checklist")
        memory.episode("Release", "The release was planned", tags=["release"])
        memory.jot("Release moved")
        memory.report("reaction", id=f"{chat}-event", title="Release notes", value="👍")


def of_the_family(app: Recollect) -> list[Any]:
    """All that is kept of the family, to the last byte."""
    memory = app.user(USER)
    mine = {record.id: record for record in memory.read(status="all") if record.chat == FAMILY}
    journal = [one for one in memory.history() if one.record_id in mine]
    events = [one for one in memory.interactions() if one.metadata.get("chat") == FAMILY]
    return [mine, journal, events, [run for run in memory.runs() if run.details.get("chat") == FAMILY]]


@dataclass
class Worlds:
    """The same memory with the family and without it."""

    apps: tuple[Recollect, Recollect]
    known: Known
    before: list[Any]
    guessed: set[str] = field(default_factory=set)
    """The ids that were given with what was asked: what was stored of them may come back."""
    asked: int = 0

    def compare(self, ask: Callable[[Recollect], list[str]], about: str, *, ranked: bool = False) -> None:
        """Ask both the same. The one with the family must not say anything else.

        What is ranked may come in another order: how rare a word is, is counted over all that a user has.
        """
        self.guessed |= {one for one in self.known.ids if one in about}
        told, expected = (ask(app) for app in self.apps)
        for mine, theirs in zip(told, expected, strict=True):
            assert SECRET not in mine.casefold(), f"{about} shows {mine}"
            assert not [one for one in self.known.ids if one in mine and one not in self.guessed], about
            assert ranked or plain(mine) == plain(theirs), about
        self.asked += 1
        if self.asked % 25 == 0:
            self.check_family(f"{about}, or one of the 25 before it,")

    def check_family(self, about: str) -> None:
        """What the family stored must be as it was."""
        assert of_the_family(self.apps[0]) == self.before, f"{about} changed what the family stored"


@contextmanager
def worlds(opened: Open) -> Iterator[Worlds]:
    with_family, without = opened(), opened()
    known = store_family(with_family)
    numbers = len(with_family.user(USER).history())
    if numbers % 2:
        with_family.user(USER).acting(chat=FAMILY).jot(f"One more for the clinic {SECRET}even")
    for number in range(len(with_family.user(USER).history())):  # so that what comes next has the same numbers in both
        without.user(USER).consent("trends", number % 2 == 0)
    for app in (with_family, without):
        store_others(app)
    both = Worlds((with_family, without), known, of_the_family(with_family))
    yield both
    both.check_family("something")
    assert with_family.user(USER).verify() == []


# what is asked


def arguments(schema: dict[str, Any], known: Known, rng: random.Random) -> dict[str, Any]:
    """Plausible arguments for a tool, made from its schema and from what the attacker knows."""
    given = {}
    for name, declared in schema["properties"].items():
        if name == "user_id":
            given[name] = USER
        elif name in schema.get("required", ()) or rng.random() < 0.6:
            given[name] = value(name, declared, known, rng)
    return given


def value(name: str, declared: dict[str, Any], known: Known, rng: random.Random) -> Any:
    if "anyOf" in declared:
        declared = next(one for one in declared["anyOf"] if one.get("type") != "null")
    if "enum" in declared:
        return rng.choice([one for one in declared["enum"] if one is not None])
    kinds = declared.get("type")
    kind = next(one for one in kinds if one != "null") if isinstance(kinds, list) else kinds
    match kind:
        case "integer":
            if "id" in name.casefold():
                return rng.choice([*known.numbers, 1])
            low, high = declared.get("minimum", 1), declared.get("maximum", 50)
            return rng.choice([low, high, min(max(low, 10), high)])
        case "number":
            return rng.choice([declared.get("minimum", 0.0), declared.get("maximum", 1.0), 0.9])
        case "boolean":
            return rng.random() < 0.7
        case "array":
            if "view_range" in name:
                return [1, -1]
            if name == "fact_types":
                return rng.sample(["personal", "trait", "relationship", "preference"], 2)
            return [
                value(name, declared.get("items", {"type": "string"}), known, rng) for _ in range(rng.choice([2, 3]))
            ]
    return rng.choice(TEXTS.get(name, PATHS if "path" in name else ALL))(known, rng)


def _text(text: str) -> Callable[[Known, random.Random], str]:
    return lambda known, rng: text


def _id(known: Known, rng: random.Random) -> str:
    return rng.choice(known.ids)


def _ending(known: Known, rng: random.Random) -> str:
    return rng.choice(known.ids)[-6:]


def _number(known: Known, rng: random.Random) -> str:
    return str(rng.choice(known.numbers))


WORDS = [
    *map(_text, ("clinic", "illness", "Illness", "diagnosis", "doctor", "Oksana", "fear", "mood", "angina", "bill")),
    *map(_text, ("heart trouble", "what is the illness?", "The clinic called about the illness", "sister", "pills")),
    *map(_text, ("task", "release", "The clinic has our insurance number", "Takes pills against the illness", "*")),
    *map(_text, ("family-talk", "family", "work-talk", "/memories", "personal", "tell me everything", DAY.isoformat())),
]
ALL = [*WORDS, _id, _id, _ending, _number]
TEXTS = {
    "data": [
        _text(json.dumps(["The clinic has our insurance number", {"kind": "fact", "key": "illness", "text": "x"}]))
    ],
    "command": ALL,
}
PATHS = [
    *map(
        _text, ("/memories", "/memories/MEMORY.md", f"/memories/memory/{DAY}.md", "/memories/notes", "/memories/clinic")
    ),
    *map(_text, ("/memories/clinic/plan.md", "/memories/clinic/other.md", "/memories/work.md")),
    lambda known, rng: f"/memories/notes/{rng.choice(known.ids)}.md",
]


WHOLE = {"search", "context", "rank", "usage", "note_run"}
"""The verbs whose answer depends on all that a user has: how rare words are, what the operator spent, and that there is
one run of a day and kind."""
RANKING = {"query", "search_query", "topic", "person"}
"""The arguments by which memories are ranked."""


def plain(text: str) -> str:
    """An answer without what differs between two runs of the same: ids, scores, and the order of reports."""
    text = re.sub(r", 12, 0, 0, \d+, tzinfo", ", 12, 0, tzinfo", text)
    text = re.sub(rf"\b({'|'.join(RECORD_TYPES)}|run|call|event)-[0-9a-z]{{26}}\b", r"\1-ID", text)
    return re.sub(r"\d\.\d+", "F", text)


def rounds(opened: pytest.FixtureRequest) -> int:
    return {"memory": volume(12, 40), "sqlite": volume(2, 4), "postgres": volume(1, 3)}[
        opened.node.callspec.params["opened"]
    ]


@pytest.mark.everyday(1)
@pytest.mark.parametrize("chat", [WORK, GROUP])
def test_C10_no_tool_tells_or_changes_anything_of_another_chat(
    opened: Open, request: pytest.FixtureRequest, chat: str
) -> None:
    names = [tool.name for tool in tools_of()]
    assert len(names) == sum(map(len, SUITES.values()))  # whatever is in the catalog is swept
    with worlds(opened) as both:
        suites = {id(app): app.tools(USER, session=f"{chat}-talk", chat=chat) for app in both.apps}
        for turn in range(rounds(request)):
            for name in names:
                rng = random.Random(f"{turn} {name}")
                schema = suites[id(both.apps[0])].schema(name)
                given = arguments(schema, both.known, rng)

                def ask(app: Recollect, name: str = name, given: dict[str, Any] = given) -> list[str]:
                    result = suites[id(app)].call(name, given)
                    return [result.text, result.status, result.outcome]

                both.compare(ask, f"{name}({given})", ranked=bool(given.keys() & RANKING))


@pytest.mark.everyday(1)
def test_C10_no_verb_tells_or_changes_anything_of_another_chat(
    opened: Open, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    public = {
        name
        for name, _ in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_") and name not in ("acting", "batch")
    }
    with worlds(opened) as both:
        few = rounds(request) < 10  # what is stored on disk is asked less
        asked = verbs(
            replace(both.known, ids=both.known.ids[::5], numbers=both.known.numbers[::5]) if few else both.known,
            tmp_path,
        )
        assert set(asked) == public, "every verb has to be tried: add how to call it here"
        for chat in (WORK, GROUP):
            for name, calls in asked.items():
                for given in calls:
                    for in_batch in (False,) if few else (False, True):

                        def ask(
                            app: Recollect,
                            chat: str = chat,
                            name: str = name,
                            given: tuple[Sequence[Any], dict[str, Any]] = given,
                            in_batch: bool = in_batch,
                        ) -> list[str]:
                            return [called(app.user(USER).acting(session="s", chat=chat), name, given, in_batch)]

                        both.compare(ask, f"{name}{given} in {chat}", ranked=name in WHOLE)


def called(memory: Memory, name: str, given: tuple[Sequence[Any], dict[str, Any]], in_batch: bool) -> str:
    positional, named = given
    try:
        with memory.batch() if in_batch else ExitStack() as batch:
            here = batch if in_batch else memory
            assert isinstance(here, Memory)
            found = getattr(here, name)(*positional, **named)
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"
    if name == "numbers":
        found = sorted(found)
    return repr(found)


def verbs(known: Known, folder: Path) -> dict[str, list[tuple[Sequence[Any], dict[str, Any]]]]:
    """How each verb is called: with what the family stored, and what an attacker may guess of it."""
    refs = [*known.ids, *(one[-6:] for one in known.ids[:4]), "illness", "diagnosis", "doctor", "oksana", "clinic"]
    each: list[tuple[Sequence[Any], dict[str, Any]]] = [((ref,), {}) for ref in refs]
    words = ["clinic", "illness diagnosis", "What did the doctor say about the heart?"]
    mark = Mark(seq=0, reported=NOW - timedelta(days=9), until=NOW - timedelta(days=9))
    run = ExtractionRun(id="run-family", day=DAY, started_at=NOW, kind="nightly")
    again = ExtractionRun(id="run-other", day=DAY, started_at=NOW, kind="nightly")
    asked: dict[str, list[tuple[Sequence[Any], dict[str, Any]]]] = {
        "remember": [
            (("heart trouble",), {"key": "illness", "category": "personal_context"}),
            (("angina",), {"key": "diagnosis", "type": "personal"}),
            (("Takes pills against the illness",), {}),
            (("is low",), {"key": "mood", "durability": "daily"}),
        ],
        "note": [(("The clinic has our insurance number",), {})],
        "observe": [(("They fear the clinic", "insight"), {})],
        "remember_fil": [((["The clinic is far"], ["They fear the clinic"], ["Call the clinic early"]), {})],
        "recall_by_category": [((word, name), {}) for word in words for name in OBSERVATION_CATEGORIES],
        "recall_fil": [((word, 50), {}) for word in words],
        "episode": [(("Clinic visit", "They cried at the clinic"), {"tags": ["clinic"]})],
        "say": [(("The clinic called about the illness",), {"session": "family-talk"})],
        "jot": [(("Bad night after the clinic",), {})],
        "set_scratch": [(("clinic", "call at ten"), {})],
        "scratch": [(("clinic",), {}), (("reminders",), {})],
        "get": each,
        "why": each,
        "forget": [*each, *((((ref,), {"replaced_by": known.ids[0]})) for ref in ("task",))],
        "pin": each,
        "update": [*(((ref, "changed"), {}) for ref in known.ids), *(((ref,), {"importance": 0.9}) for ref in refs)],
        "merge": [((known.ids[:2], "merged"), {}), ((["illness", "diagnosis"], "merged"), {})],
        "mark_important": [((known.ids[:3], "critical"), {})],
        "edit": [(("# Memory\n\n## Key Facts\n\n- Illness: none\n",), {}), (("# 2026-03-02\n\n- x\n",), {"day": DAY})],
        "read": [
            ((), {"status": "all"}),
            ((), {"key": "diagnosis"}),
            ((), {"session": "family-talk"}),
            ((), {"tags": ["clinic"]}),
            ((), {"as_of": NOW}),
            *(((), {"kind": kind, "limit": 5, "newest_first": True}) for kind in RECORD_TYPES),
        ],
        "count": [((), {})],
        "search": [
            *(((word,), {"include_conversation": True, "limit": 50}) for word in words),
            *(((word,), {"status": "all", "kinds": list(RECORD_TYPES)}) for word in words),
            (("clinic",), {"session": "family-talk", "kinds": ["message"]}),
        ],
        "context": [((word,), {"include_conversation": True}) for word in words] + [((), {})],
        "show": [((), {})],
        "daily": [((), {}), ((DAY,), {})],
        "days": [((), {})],
        "history": [((), {}), ((), {"limit": 5}), ((), {"before": 30, "limit": 10})]
        + [((ref,), {}) for ref in refs]
        + [((), {"run": one}) for one in known.runs],
        "numbers": [((known.ids,), {})],
        "numbered": [((number,), {}) for number in known.numbers],
        "similar": [((), {})],
        "rank": [((["The clinic and the illness", "Releases", "Cooking"],), {})],
        "sessions": [((), {}), ((), {"limit": 1, "offset": 1})],
        "consents": [((), {})],
        "calls": [((), {}), ((), {"session": "family-talk"})],
        "usage": [((), {})],
        "interactions": [((), {}), ((), {"session": "family-talk"}), ((), {"limit": 1})],
        "unread": [((), {"until": NOW + timedelta(days=1)}), (([mark],), {"until": NOW, "session": "family-talk"})],
        "runs": [((), {}), ((), {"kind": "nightly"})],
        "note_run": [((run,), {}), ((again,), {})],
        "report": [(("discussion",), {"id": "other-event", "title": "Clinic"})],
        "report_many": [(([{"kind": "save", "id": "many-event", "title": "Clinic"}],), {})],
        "undo": [*(((number,), {}) for number in known.numbers), *(((one,), {}) for one in known.runs)],
        "spend": [(("extract",), {"tokens_in": 1})],
        "consent": [(("trends",), {}), (("trends", False), {})],
        "pause": [((), {})],
        "resume": [((), {})],
        "notices": [((), {})],
        # for the person, and not in a chat
        "erase": each,
        "erase_topic": [(("clinic",), {}), (("clinic",), {"dry_run": True})],
        "clear": [((), {})],
        "export": [((folder / "out.zip",), {})],
        "import_": [((folder / "in.zip",), {})],
        "verify": [((), {})],
        "rebuild": [((), {"force": True})],
        "rebuild_index": [((), {})],
        "embed": [((), {})],
        "upkeep": [((), {}), ((), {"dry_run": True})],
    }
    return asked


def _record(outcome: Any) -> Record:
    record = outcome.record
    assert isinstance(record, Record)
    return record


# consent


def test_T5_with_consent_everything_is_found_and_withdrawing_closes_it_at_once(opened: Open) -> None:
    app = opened()
    store_family(app)
    work, owner = caller(app, USER, session="work-talk", chat=WORK), app.user(USER)
    asked: dict[str, dict[str, Any]] = {
        "recall_facts": {"search_query": "diagnosis"},
        "recall_facts_global": {"search_query": "diagnosis"},
        "recall_episodes": {"search_query": "clinic"},
        "generate_profile_summary": {},
        "memory_search": {"query": "clinic"},
        "get_memory_context": {"topic": "clinic"},
        "suggest_merge": {},
        "memory_read_session": {"session_id": "family-talk"},
        "memory": {"command": "view", "path": "/memories/MEMORY.md"},
    }

    def shown() -> dict[str, bool]:
        return {name: SECRET in work.result(name, **given).text for name, given in asked.items()}

    for _ in range(2):
        assert not any(shown().values())
        owner.consent("across_chats")
        assert all(shown().values()), shown()
        owner.consent("across_chats", False)
    assert not any(shown().values())
    group = caller(app, USER, session="g", chat=GROUP)
    owner.consent("across_chats")
    for name, given in asked.items():  # others read along there, whatever the person agreed to
        assert SECRET not in group.result(name, **given).text, name


def test_T5_the_same_key_in_two_chats_is_two_facts(opened: Open) -> None:
    app = opened()
    fact = {"fact_type": "personal", "fact_key": "nickname", "confidence": 1}
    family, work = (caller(app, USER, "facts", chat=chat) for chat in (FAMILY, WORK))
    first = family("remember_fact", fact_value="Bunny", **fact)
    second = work("remember_fact", fact_value="Chief", **fact)
    assert first["status"] == second["status"] == "success" and "similar" not in second
    third = work("update_fact", new_value="Boss", change_reason="update", **fact)
    assert third["status"] == "success" and third["previous_value"] == "Chief"
    assert [one["value"] for one in family("recall_facts")["facts"]] == ["Bunny"]
    assert work("forget_fact", fact_type="personal", fact_key="nickname", reason="outdated")["status"] == "success"
    assert [one["value"] for one in family("recall_facts")["facts"]] == ["Bunny"]
    assert {fact.content for fact in app.user(USER).read(kind="fact", status="all")} == {"Bunny", "Boss"}
    assert app.user(USER).verify() == []


# what moves


def test_T5_what_is_said_in_a_chat_about_what_everybody_knows_is_not_told_in_another(opened: Open) -> None:
    app = opened()
    owner = app.user(USER)
    owner.remember("Engineer", key="role")
    work, family = (owner.acting("agent", chat=chat) for chat in (WORK, FAMILY))
    work.update("role", "Head of the secret project")
    assert "secret project" in work.show() and "secret project" not in family.show()
    assert family.read(kind="fact") == [] and owner.get("role").content == "Head of the secret project"
    assert "secret project" not in repr([family.history(), family.search("project", status="all").__repr__()])


def test_T5_nothing_private_enters_a_group(opened: Open) -> None:
    app = opened()
    owner, group = app.user(USER), app.user(USER).acting("agent", chat=GROUP)
    owner.remember("Is on sick leave", key="status")
    group.remember("Sings bass", key="voice")
    group.remember("Sings on Mondays", key="time")
    assert group.count() == {"fact": 2} and "sick" not in group.show() + group.context("sick leave status")
    owner.update("voice", "Sings bass, but lost the voice to an illness")  # said elsewhere: it is no longer the group's
    owner.merge(["time", "status"], "Sings no more on Mondays, being on sick leave")
    assert group.read(kind="fact", status="active") == [] and "illness" not in group.show() + repr(group.history())
    assert "illness" in owner.show() and "sick leave" in owner.show()
    assert "illness" not in owner.acting(chat=WORK).show()  # nor in a chat: part of it was said in the group


def test_T5_a_chat_with_others_is_a_group(opened: Open) -> None:
    app = opened()
    app.user(USER).remember("Is on sick leave", key="status")
    app.user(8).remember("Looks for another job", key="plan")
    choir = caller(app, USER, "facts", others=[8], chat="choir")
    for user in (USER, 8):
        assert choir("recall_facts", user_id=user)["count"] == 0
    choir("remember_fact", user_id=8, fact_type="skill", fact_key="voice", fact_value="bass", confidence=1)
    assert [one["key"] for one in choir("recall_facts", user_id=8)["facts"]] == ["voice"]
    assert choir("recall_facts", user_id=USER)["count"] == 0
    assert app.user(8).get("voice").chat == "group:choir"
    assert [fact.key for fact in app.user(8).acting(chat=WORK).read(kind="fact")] == ["plan"]


def test_T5_an_edit_of_what_a_chat_sees_of_memory_md_leaves_the_rest_alone(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        owner = app.user(USER)
        owner.acting("agent", chat=FAMILY).remember("Angina", key="illness")
        owner.remember("Lives in Lviv", key="city")
        path = tmp_path / str(USER) / "MEMORY.md"
        path.write_text(path.read_text("utf-8") + "\nA line of my own.\n", "utf-8")
        work = caller(app, USER, "files", chat=WORK)
        shown = work("memory", command="view", path="/memories/MEMORY.md")
        assert "Lviv" in shown and "Angina" not in shown
        told = work(
            "memory", command="str_replace", path="/memories/MEMORY.md", old_str="Lives in Lviv", new_str="Kyiv"
        )
        assert "edited" in told and "Angina" not in told
        text = path.read_text("utf-8")
        assert "Angina" in text and "Kyiv" in text and "Lviv" not in text and "A line of my own." in text
        assert owner.verify() == [] and owner.get("illness").content == "Angina"
        path.write_text(path.read_text("utf-8").replace("Angina", "Angina, mild"), "utf-8")
        assert owner.get("illness").chat == FAMILY  # a typo that the person corrects opens nothing
        assert "mild" not in owner.acting(chat=WORK).show()


# what is learned from a chat


def test_T5_what_is_learned_from_a_chat_stays_in_it(opened: Open) -> None:
    app = opened()
    owner = app.user(USER)
    said = {FAMILY: "I have a peanut allergy.", WORK: "I work as a translator.", GROUP: "I live in Odesa."}
    owner.say("My name is Vera.", session="own-talk")
    for chat, text in said.items():
        owner.acting("agent", chat=chat).say(text, session=f"{chat}-talk")
    owner.acting(chat=FAMILY).report("discussion", id="d1", title="Peanuts", session="family-talk")
    done = extract(owner, DAY, clock=LATER)
    assert done.run is not None and done.run.status == "completed"
    conclude(owner, "family-talk", clock=LATER)
    learned = {record.chat: record.text.casefold() for record in owner.read(kind="fact")}
    assert "peanut" in learned[FAMILY] and "translator" in learned[WORK]
    assert "odesa" in learned[GROUP] and "vera" in learned[None]
    for chat, words in {WORK: "peanut Odesa", FAMILY: "translator Odesa", GROUP: "peanut translator Vera"}.items():
        shown = repr(owner.acting(chat=chat).read(status="all")) + owner.acting(chat=chat).show()
        assert not [word for word in words.split() if word.casefold() in shown.casefold()], (chat, shown)
    assert owner.verify() == []


def test_T5_an_extractor_is_told_of_one_chat_at_a_time(opened: Open) -> None:
    app = opened()
    store_family(app)
    store_others(app)
    app.user(USER).say("My name is Vera.", session="own-talk")
    seen: list[tuple[str, str]] = []

    def reading(memory: Memory, collected: Gathered) -> Extraction:
        said = " ".join(one.text for one in collected.sayings)
        seen.append((said, memory.show() + repr(memory.search("clinic release", include_conversation=True))))
        return Extraction((), (), "mine")

    extract(app.user(USER), DAY, extractor=reading, clock=LATER)
    assert len(seen) == 4 and sum(SECRET in said for said, _ in seen) == 1
    for said, known in seen:
        assert SECRET not in known or SECRET in said
        assert not (SECRET in said and "release" in said)


@pytest.mark.parametrize("private", [True, False])
def test_T5_a_talk_in_a_group_knows_what_was_said_there(opened: Open, private: bool) -> None:
    app = opened()
    identity = ("telegram", "7")
    mine = Conversation(app, identity, place="telegram/7", clock=FrozenClock(NOW))
    group = Conversation(
        app, identity, place="telegram/-100", speaker="Vera", company=lambda: ["Taras"], clock=FrozenClock(NOW)
    )
    mine.say("Remember that I am afraid of the surgery")
    mine.memory.episode("Surgery", "The surgery was discussed with the doctor", source="explicit")
    group.say("Remember that I sing in the choir")
    here = mine if private else group
    told = " ".join(line.text for page in here.say("What do you know about the surgery?") for line in page.lines)
    assert ("surgery" in told) is private
    assert "choir" in " ".join(line.text for page in group.say("What about the choir?") for line in page.lines)
    owner = mine.memory
    assert {fact.chat for fact in owner.read(kind="fact")} == {None, "group:telegram/-100"}
    assert "choir" in owner.show()  # the person's own chat shows all of it
    assert "choir" not in owner.acting(chat=WORK).show()
    group.end()
    assert all(one.chat == "group:telegram/-100" for one in owner.read(status="all") if "choir" in one.text)


# from a service


def test_T5_the_wall_stands_over_http_too(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, serving(app) as url, connect(url) as client:
        memory = client.user("7")
        memory.acting("agent", chat=FAMILY).remember("Angina", key="illness")
        work = memory.acting("agent", chat=WORK)
        assert work.read(kind="fact") == [] and "Angina" not in work.show() and not work.search("angina")
        with pytest.raises(NotFoundError):
            work.get("illness")
        assert work.remember("None", key="illness").done

        def told() -> str:
            return client.call("7", "recall_facts", {"search_query": "illness"}, chat=WORK).text

        assert "Angina" not in told() and "None" in told()
        memory.consent("across_chats")
        assert {fact.content for fact in work.read(kind="fact")} == {"Angina", "None"}
        assert "Angina" in told()
        memory.consent("across_chats", False)
        assert "Angina" not in told()  # in the running session too
