"""Erasing a topic leaves its word nowhere: not in a record, an old version, a report, a job, a file or a table.

Memories are built through the public verbs and tools with the word in random places, languages, inflections and kinds;
what stays is looked for from outside, in the bytes of every file and the rows of every table.
"""

from __future__ import annotations

import io
import json
import random
import sqlite3
import unicodedata
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import recollect
from recollect import Memory, Recollect
from recollect.errors import UndoError
from recollect.identity.identities import Identity
from recollect.memory.mentions import texts_of
from recollect.policy.topics import Topic
from recollect.records import ExtractionRun, Record, Refused
from recollect.store.keys import IdempotentRequest
from recollect.surfaces.chat.forget_commands import chat_forget
from recollect.surfaces.chat.page import line_text
from recollect.surfaces.chat.speaker import Asker
from recollect.surfaces.cli import read_commands, remove_commands, write_commands  # noqa: F401  (their commands)
from recollect.surfaces.cli.program import app as program
from recollect.testing.embedding import HashEmbedder
from recollect.work.contract import Task
from recollect.work.jobs import conclude_task

NEEDLES = ("depress", "депресс", "抑郁症")
LANGUAGES = ("en", "de", "fr", "ru", "cjk")
SAYING = [
    "Ich habe eine Depression seit dem Winter",
    "was treated for DEPRESSION in 2019",
    "has been depressed since the move",
    "Zwei Depressionen in drei Jahren",
    "sucht eine Depressionstherapie in Graz",
    "jedes Jahr dieselbe Winterdepression",
    "reads „Depression“-Ratgeber am Abend",
    "a manic-depression runs in the family",
    "souffre d'une dépression sévère",
    "wrote De\u00adpression with a soft hyphen",
    "у него депрессия с весны",
]
PLAIN = [
    "likes green tea in the morning",
    "works as a nurse in Graz",
    "spielt jeden Sonntag Schach mit Opa",
    "has two cats called Mila and Momo",
    "apprend le piano depuis un an",
    "живёт у моря с братом",
    "is under pressure before every exam",
    "prefers an espresso after lunch",
]


def _folded(data: bytes) -> str:
    text = unicodedata.normalize("NFKD", data.decode("utf-8", errors="ignore")).casefold()
    return "".join(letter for letter in text if letter != "\u00ad" and not unicodedata.combining(letter))


def _held(data: bytes) -> list[str]:
    found = _folded(data)
    return [needle for needle in NEEDLES if needle in found]


def _in_files(root: Path) -> list[str]:
    paths = [path for path in root.rglob("*") if path.is_file()]
    return [f"{path.relative_to(root)}: {needle}" for path in paths for needle in _held(path.read_bytes())]


def _in_tables(url: str) -> list[str]:
    with psycopg.connect(url) as db:
        tables = db.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        found = []
        for schema, table in tables:
            rows = db.execute(f'SELECT t::text FROM "{schema}"."{table}" AS t').fetchall()
            found += [f"{table}: {needle}" for (row,) in rows for needle in _held(row.encode())]
    return found


def _in_export(memory: Memory, folder: Path) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(memory.export(folder / "export.zip").read_bytes())) as archive:
        return [f"{name}: {needle}" for name in archive.namelist() for needle in _held(archive.read(name))]


def _record(outcome: recollect.Outcome) -> Record:
    record = getattr(outcome, "record", None)
    assert isinstance(record, Record)
    return record


class Builder:
    """Fills a memory and remembers what must go and what must stay."""

    def __init__(self, app: Recollect, chance: random.Random, root: Path | None) -> None:
        self.app = app
        self.memory = app.user("u1")
        self.chance = chance
        self.root = root
        self.kept: dict[str, str] = {}
        self.made = 0

    def text(self, about: bool) -> str:
        self.made += 1
        return f"{self.chance.choice(SAYING if about else PLAIN)}, {self.made}"

    def fill(self, steps: int) -> None:
        acts = [self.fact, self.note, self.observe, self.episode, self.message, self.daily, self.scratch]
        acts += [self.changed, self.forgotten, self.merged, self.reported, self.run, self.job, self.tool]
        for act in [*acts, *self.chance.choices(acts, k=steps)]:
            act()
        for _ in range(3):  # something that must stay, of each kind
            self.keep(self.memory.remember(self.text(False), category="preference"))
            self.keep(self.memory.note(self.text(False), title="Plans"))
            self.keep(self.memory.say(self.text(False), session="chat-2"))
            self.keep(self.memory.jot(self.text(False)))
        if self.root is not None:
            self.write_into_files()

    def keep(self, outcome: recollect.Outcome) -> None:
        if isinstance(outcome, recollect.Written):
            self.kept[outcome.record.id] = outcome.record.text

    def around(self) -> dict[str, Any]:
        """The word beside the text of a record rather than in it."""
        where = self.chance.choice(["excerpt", "tags", "metadata", "source"])
        values: dict[str, Any] = {"excerpt": self.text(True), "tags": ["depression"], "source": "depression diary"}
        return {where: values.get(where, {"why": [self.text(True)], "depression": 1})}

    def fact(self) -> None:
        if self.chance.random() < 0.5:
            self.memory.remember(self.text(True), category=self.chance.choice(["preference", "key_fact"]))
        elif self.chance.random() < 0.5:
            self.memory.remember(self.text(False), key=f"depression {self.made}")
        else:
            self.memory.remember(self.text(False), key=f"k{self.made}", **self.around())

    def note(self) -> None:
        self.memory.note(self.text(False), title=self.text(True))
        self.memory.note(self.text(True))

    def observe(self) -> None:
        self.memory.observe(self.text(True), "finding", confidence=0.8)

    def episode(self) -> None:
        said = _record(self.memory.say(self.text(True), session="chat-3"))
        self.memory.episode(self.text(False), self.text(False), messages=[said.id])
        self.memory.episode(self.text(True), self.text(False), participants=["Depression group"])
        self.memory.remember(self.text(False), key=f"learned {self.made}", messages=[said.id])

    def message(self) -> None:
        self.memory.say(self.text(True), session="chat-1", speaker="Ana")
        self.memory.say(self.text(False), session="depression-evening", role="assistant")

    def daily(self) -> None:
        self.memory.jot(self.text(True), section="Discussions")
        self.memory.remember(self.text(True), confidence=0.5)

    def scratch(self) -> None:
        self.memory.set_scratch(f"s{self.made}", self.text(True))

    def changed(self) -> None:
        """What said it once and says something else now stays, but not what it said."""
        key = f"changed {self.made}"
        self.memory.remember(self.text(True), key=key)
        record = _record(self.memory.update(key, self.text(False), note=self.text(True)))
        self.kept[record.id] = record.text

    def forgotten(self) -> None:
        record = _record(self.memory.remember(self.text(True), key=f"gone {self.made}"))
        self.memory.forget(record.id, reason="depression is over")
        plain = _record(self.memory.remember(self.text(False), key=f"plain {self.made}"))
        self.memory.forget(plain.id, reason=self.text(True))

    def merged(self) -> None:
        one, other = _record(self.memory.note(self.text(True))), _record(self.memory.note(self.text(False)))
        if one.id != other.id:
            self.memory.merge([one.id, other.id], self.text(True))

    def reported(self) -> None:
        self.memory.report("read", id=f"event {self.made}", title=self.text(True), topics=["health"])
        self.memory.report("save", title=self.text(False), text=self.text(True), metadata={"shelf": "depression"})
        self.memory.report("read", title=self.text(False), id=f"kept event {self.made}")

    def run(self) -> None:
        self.made += 1
        run = ExtractionRun(
            id=f"run-{self.made}",
            day=date(2026, 1, 1 + self.made % 28),
            started_at=datetime.now(timezone.utc),
            status="failed",
            error=self.text(True),
            details={"seq": 1, "remark": self.text(True)},
        )
        self.memory.note_run(run)

    def job(self) -> None:
        with self.app.queue() as queue:
            queue.put(conclude_task("u1", f"depression {self.made}", self.text(True)))
            arguments = {"content": self.text(True)}
            queue.put(Task(name="tool", user_id="u1", payload={"tool": "memory_save", "arguments": arguments}))
            queue.put(Task(name="tool", user_id="u1", payload={"arguments": {"content": self.text(False)}}))
            queue.put(Task(name="tool", user_id="u2", payload={"arguments": {"content": "not depress, but u2"}}))

    def tool(self) -> None:
        tools = self.app.tools("u1", session="depression talk", wait=True)
        tools.call("memory_save", {"content": self.text(True)})
        tools.call("remember_fact", {"fact_content": self.text(True), "fact_type": "personal"})
        tools.call("write_memory", {"key": f"t{self.made}", "value": self.text(True), "category": "key_fact"})

    def write_into_files(self) -> None:
        assert self.root is not None
        self.memory.show()
        path = next(self.root.rglob("MEMORY.md"))
        text = path.read_text("utf-8")
        prose = (
            "\nMy own words about tea.\n\nThe depression came\nback in May.\n\n## Depression diary\n\n- took a walk\n"
        )
        path.write_text(text + prose, "utf-8")
        note = next(self.root.rglob("memory/*.md"))
        note.write_text(note.read_text("utf-8") + "\nEin Satz zur Depression.\n", "utf-8")


def _check_rest(memory: Memory, kept: dict[str, str]) -> None:
    gone = {record_id for record_id in kept if _missing(memory, record_id)}
    assert not gone
    assert {record_id: memory.get(record_id).text for record_id in kept} == kept
    assert memory.verify() == []
    assert [one.id for one in memory.interactions() if not one.id.startswith("kept")] == []


def _missing(memory: Memory, record_id: str) -> bool:
    try:
        memory.get(record_id)
    except recollect.NotFoundError:
        return True
    return False


@pytest.mark.everyday(1)
@pytest.mark.parametrize("seed", range(6))
def test_C18_an_erased_topic_is_in_no_file_and_no_export(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "root"
    with recollect.open(root) as app:
        builder = Builder(app, random.Random(seed), root)
        builder.fill(12)
        app.user("u2").remember("has a depression of her own")
        others = (root / "u2" / "memory.db").read_bytes()
        found, receipt = builder.memory.erase_topic("depression")
        assert receipt is not None and set(receipt.ids) == {record.id for record in found}
        assert all(number > 0 for number in receipt.places.values())
        assert {"records", "journal", "interactions", "runs", "jobs", "lines of MEMORY.md"} <= set(receipt.places)
        _check_rest(builder.memory, builder.kept)
        assert _in_export(builder.memory, tmp_path) == []
        assert (root / "u2" / "memory.db").read_bytes() == others
        with app.queue() as queue:
            assert queue.erase_jobs(lambda job: job.user_id == "u2") > 0  # another's jobs were there still
        app.erase_user("u2")
    assert _in_files(root) == []
    with recollect.open(root) as app:
        memory = app.user("u1")
        assert "My own words about tea." in memory.show()
        _check_rest(memory, builder.kept)
        assert memory.erase_topic("depression") == ([], None)


@pytest.mark.everyday(1)
@pytest.mark.parametrize("files", [False, True])
def test_C18_an_erased_topic_is_in_no_table(tmp_path: Path, postgres_url: str, files: bool) -> None:
    root = tmp_path / "files"
    with recollect.open(postgres_url, files=root if files else None) as app:
        builder = Builder(app, random.Random(7), root if files else None)
        builder.fill(12)
        found, receipt = builder.memory.erase_topic("depression")
        assert receipt is not None and found
        _check_rest(builder.memory, builder.kept)
        assert _in_export(builder.memory, tmp_path) == []
        with app.queue() as queue:
            assert queue.erase_jobs(lambda job: job.user_id == "u2") > 0
    assert _in_tables(postgres_url) == []
    assert not files or _in_files(root) == []


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Recollect]:
    with recollect.open(tmp_path / "root") as app:
        yield app


@pytest.mark.parametrize(
    ("topic", "saying", "not_saying"),
    [
        ("depression", SAYING, PLAIN),
        ("Kyiv", ["живе у Києві", "Київ навесні", "born in KYIV"], ["lives in Lviv", "Kyoto in spring"]),
        ("Київ", ["moved to Kyiv"], ["moved to Kraków"]),
        ("抑郁症", ["我有抑郁症很久了"], ["我喜欢喝茶"]),
        ("우울증", ["우울증이 있어요"], ["차를 좋아해요"]),
        ("tea", ["drinks tea", "three teas a day", "TEA-time"], ["is a teacher", "likes steak", "joined a team"]),
        ("Anna Smith", ["met Smith, Anna", "Anna Smith's house"], ["met Anna", "the Smith family"]),
        ("Crohn's disease", ["has Crohn’s disease", "CROHN'S-disease"], ["a rare disease"]),
        ("C++", ["writes C++ daily"], ["writes C daily"]),
        ("Müller", ["met Frau MÜLLER", "Müllers Garten"], ["met Frau Meier"]),
        ("asthma", ["Asthmaanfall im Mai", "severe asthma"], ["plasma physics"]),
    ],
)
def test_a_topic_is_found_in_any_language_and_form(
    app: Recollect, topic: str, saying: list[str], not_saying: list[str]
) -> None:
    memory = app.user("u1")
    for text in [*saying, *not_saying]:
        memory.note(text)
    found, _ = memory.erase_topic(topic, dry_run=True)
    assert sorted(record.text for record in found) == sorted(saying)
    memory.erase_topic(topic)
    assert sorted(record.text for record in memory.read(kind="note")) == sorted(not_saying)


def test_what_is_listed_is_what_goes(app: Recollect) -> None:
    memory = app.user("u1")
    memory.remember("Ich habe eine Depression", key="health")
    memory.say("I am depressed", session="s")
    memory.remember("likes tea")
    listed, none = memory.erase_topic("depression", dry_run=True)
    assert none is None and len(memory.read()) == 3
    gone, receipt = memory.erase_topic("depression")
    assert [one.id for one in listed] == [one.id for one in gone] and receipt is not None
    assert set(receipt.ids) == {one.id for one in listed}


def test_forgetting_a_topic_in_a_chat_lists_what_erasing_it_would_remove(app: Recollect) -> None:
    memory = app.user("telegram:1")
    for text in SAYING:
        memory.note(text)
    memory.note("likes tea")
    listed = {record.id for record in memory.erase_topic("depression", dry_run=True)[0]}
    assert len(listed) == len(SAYING)
    identity = Identity("telegram", "1")
    asker = Asker(app=app, identity=identity, memory=memory, now=datetime.now(timezone.utc))
    assert {record.id for record in asker.speaking_of("depression")} == listed
    assert f"{len(SAYING)} things about" in line_text(chat_forget(asker, "depression").lines[0])


def test_what_was_erased_by_topic_does_not_come_back(app: Recollect, tmp_path: Path) -> None:
    memory = app.user("u1")
    memory.remember("Ich habe eine Depression", key="health")
    memory.remember("was depressed", key="mood")
    memory.update("mood", "fine")
    memory.report("read", id="event-1", title="On depression")
    before = memory.export(tmp_path / "before.zip")
    memory.erase_topic("depression")
    again = memory.import_(before)
    assert again.refused >= 1 and again.interactions == 0
    reported = memory.report("read", id="event-1", title="On depression")
    assert "erased" in reported.message and memory.interactions() == []
    agent = memory.acting("agent")
    assert isinstance(agent.remember("Ich habe eine Depression", key="health", source="tool:x"), Refused)
    assert isinstance(agent.remember("was depressed", key="mood", source="batch_extraction"), Refused)
    for entry in memory.history():
        if entry.erased:
            with pytest.raises(UndoError):
                memory.undo(entry.seq)
    assert memory.get("mood").text == "mood: fine"
    assert memory.erase_topic("depression", dry_run=True)[0] == []
    memory.rebuild_index()
    assert not memory.search("depression")


def test_a_record_that_says_something_else_now_stays_without_its_past(app: Recollect) -> None:
    memory = app.user("u1")
    memory.remember("depressed", key="mood")
    memory.update("mood", "cheerful", note="no longer depressed")
    memory.update("mood", "calm")
    _, receipt = memory.erase_topic("depression")
    assert receipt is not None and receipt.ids == () and receipt.places["versions"] == 1
    assert memory.get("mood").content == "calm"
    assert _held(json.dumps([repr(entry) for entry in memory.history()]).encode()) == []
    assert memory.verify() == []
    memory.undo()
    assert memory.get("mood").content == "cheerful"
    mood = memory.get("mood").id
    memory.erase(mood)
    assert not any(entry.after or entry.before or entry.reason for entry in memory.history(mood))


def test_the_persons_own_lines_go_and_the_rest_of_the_file_stays(app: Recollect, tmp_path: Path) -> None:
    memory = app.user("u1")
    memory.remember("likes tea")
    path = tmp_path / "root" / "u1" / "MEMORY.md"
    before = path.read_text("utf-8") + "\nA poem.\n\n> quoted, on depression\n\n```\ncode of mine\n```\n"
    path.write_text(before, "utf-8")
    _, receipt = memory.erase_topic("depression")
    assert receipt is not None and receipt.places == {"lines of MEMORY.md": 1}
    assert path.read_text("utf-8") == before.replace("> quoted, on depression\n", "")
    assert memory.verify() == []


@pytest.mark.parametrize("topic", ["memory", "preferences", "insights", "preference", "fact", "explicit", "chat"])
def test_words_of_our_own_are_no_topic(app: Recollect, topic: str) -> None:
    memory = app.user("u1")
    memory.remember("likes tea", category="preference")
    memory.jot("had tea", section="Extracted Insights")
    memory.say("tea please", session="chat-1")
    shown = memory.show()
    assert memory.erase_topic(topic) == ([], None)
    assert memory.show() == shown and memory.verify() == []


def test_a_topic_matches_by_word_and_not_by_chance() -> None:
    assert Topic("press").is_in(["the Press conference"]) and not Topic("press").is_in(["an espresso"])
    assert not Topic("paris").is_in(["a comparison"])
    assert not Topic("?!")


def test_every_text_of_a_record_counts(app: Recollect) -> None:
    record = _record(app.user("u1").remember("x", key="k", tags=["t"], excerpt="e", metadata={"m": ["v"]}))
    assert {"x", "k", "t", "e", "m", "v"} <= set(texts_of(record))


def test_what_waits_in_the_lines_of_a_bot_goes_as_well(app: Recollect) -> None:
    app.user("telegram:7").remember("has a depression")

    def put(line: str, text: str) -> None:
        update = {"message": {"text": text, "chat": {"type": "private"}}}
        with app.queue() as queue:
            queue.put(Task(name="telegram", user_id=f"telegram 99 {line}", payload={"update": update}))

    put("person 7", "my depression is back")
    put("chat 7", "You told me of a depression.")
    put("person 7", "hello")
    put("person 77", "a depression, but of somebody else")
    _, receipt = app.user("telegram:7").erase_topic("depression")
    assert receipt is not None and receipt.places["jobs"] == 2
    with app.queue() as queue:
        assert queue.depth()["ready"] == 2
    assert app.erase_user("telegram:7").places["jobs"] == 1
    with app.queue() as queue:
        assert queue.depth()["ready"] == 1


def test_kept_answers_go_however_something_is_erased(app: Recollect) -> None:
    memory = app.user("u1")
    memory.remember("has a depression", key="health")
    mine = IdempotentRequest("u1", "a key made up")
    for erase in (lambda: memory.erase("health"), lambda: memory.erase_topic("depression"), memory.clear):
        memory.remember("has a depression", key="health")
        app.keys.keep_answer(mine, "digest", 200, b"has a depression")
        erase()
        kept = app.keys.answer(mine)
        assert kept is not None and kept[2] is None  # that it was done is known, and not what was answered
        mine = IdempotentRequest("u1", f"{mine.key} again")


def test_the_command_line_lists_asks_and_erases_exactly_that(app: Recollect, tmp_path: Path) -> None:
    memory = app.user("me")
    memory.remember("Ich habe eine Depression", key="health")
    memory.report("read", title="On depression")
    memory.note("likes tea")
    root = ["--root", str(tmp_path / "root")]
    listed = CliRunner().invoke(program, ["erase", "--topic", "depression", "--dry-run", *root])
    assert listed.exit_code == 0 and "Depression" in listed.output and "interactions" in listed.output
    assert "Would erase 1 memory." in listed.output and "Erased" not in listed.output
    assert "would remove" in listed.output
    assert memory.get("health") and memory.interactions()
    done = CliRunner().invoke(program, ["erase", "--topic", "depression", "--yes", *root])
    assert done.exit_code == 0, done.output
    assert [record.text for record in memory.read()] == ["likes tea"] and memory.interactions() == []
    nothing = CliRunner().invoke(program, ["erase", "--topic", "depression", "--yes", *root])
    assert nothing.exit_code != 0


def test_vectors_of_what_was_erased_are_gone(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "root", embedder=HashEmbedder()) as app:
        memory = app.user("u1")
        memory.remember("depressed", key="mood")
        memory.embed()
        memory.update("mood", "cheerful")
        memory.note("a long depression")
        memory.embed()
        memory.erase_topic("depression")
        memory.embed()
        with sqlite3.connect(tmp_path / "root" / "u1" / "memory.db") as db:
            rows = db.execute("SELECT record_id, version FROM vectors").fetchall()
            latest = db.execute("SELECT id, version FROM records WHERE latest = 1").fetchall()
        db.close()
    assert sorted(rows) == sorted(latest) and len(rows) == 1
