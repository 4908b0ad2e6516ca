"""`recollect bench learning`: how labels are matched, what is counted, and what the command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks import command as _command  # noqa: F401  (its commands)
from benchmarks.learning import SETS, Case, Label, form_problem, load, measure
from typer.testing import CliRunner, Result

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.program import app

SAMPLE = Path(__file__).parent / "data" / "learning.jsonl"


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["bench", "learning", *args])
    assert result.exit_code == code, f"{result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result


def case(**row: object) -> list[Case]:
    return [Case(str(row["set"]), "c1", "en", row)]


@pytest.mark.parametrize(
    ("groups", "none", "line", "matches"),
    [
        ([["live", "home"], ["oslo"]], [], "location: Lives in OSLO", True),
        ([["live"], ["oslo"]], [], "Works in Oslo", False),
        ([["oslo"]], ["until"], "Lived in Oslo until 2020", False),
        ([["cat"]], [], "Educated in Graz", False),  # a term begins a word
        ([["=cat"]], [], "Has a cat", True),
        ([["=cat"]], [], "Has cats", False),
        ([["*allerg"]], [], "Hat eine Nussallergie", True),
        ([["12"]], [], "Comes on the 12th", True),
        ([["12"]], [], "Lives at number 312", False),
        ([["zoe"]], [], "Tochter: Zoé", True),
        ([["大阪"]], [], "会社は大阪です", True),
    ],
)
def test_a_label_matches_by_terms(groups: list[list[str]], none: list[str], line: str, matches: bool) -> None:
    assert Label.of({"all": groups, "not": none}).matches(line) is matches


@pytest.mark.parametrize(
    ("line", "lang", "problem"),
    [
        ("Works as a baker", "en", None),
        ("role: Baker", "en", None),
        ('Says "my precious" a lot', "en", None),
        ("'ve moved to Rome", "en", "begins in the middle"),
        ("pizza: Actually none", "en", "begins in the middle"),
        ("Loves cloudy days and", "en", "ends in the middle"),
        ("Loves tomatoes dude", "en", "ends in the middle"),
        ("Bakes bread (on Sundays", "en", "a bracket is open"),
        ("Takes my coffee black", "en", "first person"),
        ("Trinkt meinen Kaffee schwarz", "de", "first person"),
        ("我住在北京", "zh", "first person"),
    ],
)
def test_the_form_of_a_line_is_judged_by_its_words(line: str, lang: str, problem: str | None) -> None:
    assert form_problem(line, lang) == problem


def test_each_set_is_counted() -> None:
    seen: list[tuple[str, int, int]] = []
    figures = measure(load([SAMPLE]), progress=lambda *step: seen.append(step))
    assert seen[-1] == ("Learning", 10, 10)
    assert set(figures["cases"]) == set(SETS)
    counts = {row["measure"]: (row["right"], row["of"]) for row in figures["table"]}
    assert counts["facts found"][1] == 2
    assert counts["… in English"] == (1, 1)
    assert counts["nothing durable: nothing written"] == (1, 1)
    assert counts["kept whole"] == (1, 1)
    assert counts["present right"] == (1, 1)
    assert counts["same: found"] == (1, 1)
    assert counts["different: kept apart"] == (1, 1)
    assert counts["clean"] == (1, 1)
    assert counts["false entry: held back"] == (1, 1)
    assert counts["right entry: kept"] == (1, 1)
    assert set(figures["languages"]) == {"en", "de"}


def test_a_line_that_no_label_knows_is_unknown_and_a_forbidden_one_finds_nothing() -> None:
    asked = "Remember that the spare key is under the blue pot"
    key = {"all": [["key"]]}
    unknown = measure(case(set="message", text=asked, facts=[]))
    assert unknown["lines"]["unknown"] == 1
    assert unknown["results"][0]["wrong"][0].startswith("unknown: ")
    forbidden = measure(case(set="message", text=asked, facts=[key], **{"not": [{"all": [["blue"]]}]}))
    assert (forbidden["lines"]["forbidden"], forbidden["table"][0]["right"]) == (1, 0)


def test_an_end_counts_only_if_it_was_known_before() -> None:
    said = [{"date": "2026-03-01", "text": "hello"}, {"date": "2026-04-01", "text": "bye"}]
    figures = measure(case(set="sequence", messages=said, gone=[{"all": [["oslo"]]}]))
    assert figures["results"][0]["missed"] == ["never known: oslo"]


def test_what_must_never_be_stored_is_looked_for_in_messages_too() -> None:
    figures = measure(case(set="hostile", text="the weather is odd", never=["weather is odd"]))
    assert figures["results"][0]["wrong"] == ["stored: weather is odd"]


def test_a_speaker_of_a_conversation_in_another_file_is_learned_from(tmp_path: Path) -> None:
    said = [("Ann", "My name is Ann."), ("Ben", "My name is Ben."), ("Ann", "I live in Oslo.")]
    items = [
        {"id": str(number), "text": text, "speaker": speaker, "date": "2024-03-01", "session": "s1"}
        for number, (speaker, text) in enumerate(said)
    ]
    questions = [{"id": "q", "text": "Who?", "category": "", "evidence": ["0"], "date": ""}]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"id": "c1", "items": items, "questions": questions}) + "\n")
    row = {"set": "talk", "data": "talks.jsonl", "conversation": "c1", "speaker": "Ann"}
    labels = {"facts": [{"all": [["ann"]]}, {"all": [["oslo"]]}], "not": [{"all": [["ben"]]}]}
    labelled = tmp_path / "labels.jsonl"
    labelled.write_text(json.dumps(row | labels) + "\n", encoding="utf-8")
    figures = measure(load([labelled]))
    counts = {each["measure"]: (each["right"], each["of"]) for each in figures["table"]}
    assert counts["facts found"] == (2, 2)
    assert counts["lines that are not tastes"] == (2, 2)
    assert figures["results"][0]["wrong"] == []
    labelled.write_text(json.dumps(row | labels | {"conversation": "other"}) + "\n", encoding="utf-8")
    assert "has no conversation other" in run(str(labelled), code=2).stderr


def test_U3_bench_learning_prints_one_table_and_lists_misses(tmp_path: Path) -> None:
    shown = run(str(SAMPLE)).stdout
    assert "message   facts found" in shown
    assert len(re.findall(r"\d+\.\d$", shown, re.MULTILINE)) == 13
    missed = tmp_path / "missed.jsonl"
    row = {"set": "explicit", "id": "odd", "text": "Remember that I row", "facts": [{"all": [["submarine"]]}]}
    missed.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    assert "odd, en: 'Remember that I row'" not in run(str(missed)).stdout
    assert "    missed: submarine" in run(str(missed), "--show", "misses").stdout
    assert "    line: " in run(str(missed), "--show", "lines").stdout
    assert json.loads(run(str(missed), "--json").stdout)["table"][0]["percent"] == 0.0


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        '{"set": "other"}',
        '{"set": "message", "text": "x"}',
        '{"set": "message", "text": "x", "facts": [{"all": []}]}',
        '{"set": "gate", "messages": [], "entry": {}, "claim": {"all": [["x"]]}, "verdict": "perhaps"}',
    ],
)
def test_U3_a_line_that_is_not_a_case_is_named(tmp_path: Path, line: str) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"bad\.jsonl, line 2"):
        load([bad])
    result = run(str(bad), code=2)
    assert re.fullmatch(r"recollect: [^\n]+\n", result.stderr)


@pytest.mark.parametrize("args", [(), ("/nowhere/at/all.jsonl",), ("{sample}", "--show", "everything"), ("{empty}",)])
def test_U3_bench_learning_says_in_one_line_what_is_wrong(tmp_path: Path, args: tuple[str, ...]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")
    result = run(*(each.format(sample=SAMPLE, empty=empty) for each in args), code=2)
    assert result.stdout == ""
    assert re.fullmatch(r"recollect: [^\n]+\n", result.stderr)
