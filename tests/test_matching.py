"""What a person changed in MEMORY.md is told exactly: nothing missed, nothing imagined."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.document.matching import SIMILAR, SIMILAR_ELSEWHERE, ExpectedFact, FileChanges, compare
from recollect.document.memory_md import Document, Item, key_of, label_of
from tests.volume import first, volume

SECTIONS = ["User Preferences", "Work Context", "Personal Context", "Key Facts", "Boats & Harbours"]

TEXT = """\
# User Memory

## Work Context
- Role: Harbour pilot
- Employer: Port of Gdańsk
- Sleeps badly after night shifts

## Key Facts
- Timezone: CET
- Has a daughter called Ana
"""


def known_in(text: str) -> list[ExpectedFact]:
    items = Document.parse(text).items
    return [ExpectedFact(str(at), item.section, item.category, item.key, item.content) for at, item in enumerate(items)]


def after(text: str, *edits: tuple[str, str]) -> FileChanges:
    known = known_in(text)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    items = Document.parse(text).items
    changes = compare(known, items)
    check_nothing_is_lost(known, items, changes)
    return changes


def check_nothing_is_lost(known: list[ExpectedFact], items: tuple[Item, ...], changes: FileChanges) -> None:
    paired = changes.same + changes.moved + changes.changed
    assert sorted([id for id, _ in paired] + changes.removed) == sorted(one.id for one in known)
    assert sorted([item for _, item in paired] + changes.added + changes.repeated, key=line) == list(items)


def line(item: Item) -> int:
    return item.line


def told(changes: FileChanges) -> dict[str, object]:
    """The changes in short, without what stayed."""
    short = {
        "moved": [(id, item.section) for id, item in changes.moved],
        "changed": [(id, item.key, item.content) for id, item in changes.changed],
        "added": [(item.key, item.content) for item in changes.added],
        "removed": changes.removed,
        "repeated": [item.content for item in changes.repeated],
    }
    return {name: what for name, what in short.items() if what}


def test_F4_an_untouched_file_has_no_changes() -> None:
    assert told(after(TEXT)) == {}
    assert compare([], []) == FileChanges()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("- Role: Harbour pilot", "- Role: Retired", {"changed": [("0", "role", "Retired")]}),
        ("Role:", "**Job title:**", {"changed": [("0", "job_title", "Harbour pilot")]}),
        ("Role: ", "", {"changed": [("0", None, "Harbour pilot")]}),
        ("badly after", "well after long", {"changed": [("2", None, "Sleeps well after long night shifts")]}),
        ("- Timezone: CET\n", "", {"removed": ["3"]}),
        ("- Timezone", "- Boat: Ćma\n- Timezone", {"added": [("boat", "Ćma")]}),
        ("- Has", "Prose about nothing.\n\n- Has", {"added": [(None, "Prose about nothing.")]}),
        ("- Has", "- Timezone: CET\n- Has", {"repeated": ["CET"]}),
        ("- Has", "- Tea\n- Tea\n- Has", {"added": [(None, "Tea")], "repeated": ["Tea"]}),
        ("## Key Facts", "## Facts", {"moved": [("3", "Facts"), ("4", "Facts")]}),
        ("## Key Facts", "## 🔑 **key facts:**", {}),
        ("Harbour pilot", "Harbour   pilot\t", {}),
        ("- ", "* ", {}),
        ("\n", "\r\n", {}),
        ("# User", "\ufeff# User", {}),
        ("## Work", "<!-- - Role: Cook -->\n> - Role: Cook\n\n## Work", {}),
    ],
)
def test_F4_one_edit(old: str, new: str, expected: dict[str, object]) -> None:
    assert told(after(TEXT, (old, new))) == expected


def test_F4_sections_in_another_order_are_no_change() -> None:
    _, work, facts = TEXT.split("## ")
    assert told(after(TEXT, (f"{work}## {facts}", f"{facts}\n## {work}"))) == {}


def test_F4_a_line_moved_to_another_section() -> None:
    changes = after(TEXT, ("- Role: Harbour pilot\n", ""), ("- Timezone", "- Role: Harbour pilot\n- Timezone"))
    assert told(changes) == {"moved": [("0", "Key Facts")]}


def test_F4_a_line_moved_and_edited_at_once() -> None:
    changes = after(TEXT, ("- Role: Harbour pilot\n", ""), ("- Timezone", "- Role: Captain\n- Timezone"))
    assert told(changes) == {"changed": [("0", "role", "Captain")]}
    changes = after(TEXT, ("- Sleeps badly after night shifts\n", ""), ("- Has", "- Sleeps badly after shifts\n- Has"))
    assert told(changes) == {"changed": [("2", None, "Sleeps badly after shifts")]}
    changes = after(TEXT, ("- Sleeps badly after night shifts\n", ""), ("- Has", "- Sleeps well now\n- Has"))
    assert told(changes) == {"added": [(None, "Sleeps well now")], "removed": ["2"]}


def test_F4_a_line_made_equal_to_another_is_a_repeat() -> None:
    assert told(after(TEXT, ("Employer: Port of Gdańsk", "Role: Harbour pilot"))) == {
        "removed": ["1"],
        "repeated": ["Harbour pilot"],
    }


def test_equal_facts_pair_with_equal_lines() -> None:
    text = "## Key Facts\n- Pet: cat\n- Pet: cat\n- Pet: dog called Bruno\n"
    assert told(after(text)) == {}
    assert told(after(text, ("called Bruno", "named Bruno"))) == {"changed": [("2", "pet", "dog named Bruno")]}
    known = [
        ExpectedFact("a", "Key Facts", None, "pet", "tabby cat"),
        ExpectedFact("b", "Key Facts", None, "pet", "old dog"),
    ]
    items = Document.parse("## Key Facts\n- Pet: old big dog\n- Pet: tabby cats\n").items
    assert sorted((id, item.content) for id, item in compare(known, items).changed) == [
        ("a", "tabby cats"),
        ("b", "old big dog"),
    ]


# --- the threshold ---

UNRELATED = """\
Prefers short answers|Prefers dark mode|Prefers window seats|Has two cats, Miso and Tofu|Allergic to peanuts
Lives in Lisbon with a partner|Wants to run a marathon in spring|Plays the cello in an amateur orchestra
Reads mostly science fiction|Vegetarian since 2019|Uses vim keybindings everywhere|Born in Porto|Likes jazz
Works from home on Fridays|Speaks Portuguese, English and some Polish|Dislikes long meetings|Likes hiking
Learning Zig on weekends|Sceptical about generated code|Wakes up early|Owns a wooden dinghy|No coffee
role: senior backend engineer|employer: a payments company|current project: fraud detection in real time
stack: Python, Go, PostgreSQL, Kafka|goal: become an architect|timezone: Pacific|digest: in the morning"""

EDITED = """\
Likes technical summaries, not long|Likes long technical summaries with examples
Learning Zig on weekends|Learning Rust on weekends
Learning Zig on weekends|Learning Zig and Odin in the evenings
Sceptical about generated code|No longer sceptical about generated code
Has two cats, Miso and Tofu|Has three cats: Miso, Tofu and Nori
Lives in Lisbon with a partner|Lives in Lisbon
Wants to run a marathon in spring|Ran a marathon in spring
Plays the cello in an amateur orchestra|Plays the viola in an orchestra
Reads mostly science fiction|Reads mostly history
Vegetarian since 2019|Vegan since 2024
Uses vim keybindings everywhere|Uses emacs keybindings
Speaks Portuguese, English and some Polish|Speaks English, Polish and Portuguese"""


def paired(old: str, new: str) -> bool:
    item = Item("S", None, None, None, new, 1, "bullet")
    return bool(compare([ExpectedFact("a", "S", None, None, old)], [item]).changed)


def test_the_threshold_tells_edits_from_other_facts() -> None:
    facts = UNRELATED.replace("\n", "|").split("|")
    pairs = list(combinations(facts, 2))
    wrong = [pair for pair in pairs if paired(*pair)]
    assert len(wrong) <= len(pairs) * 0.01, wrong
    missed = [edit for edit in EDITED.splitlines() if not paired(*edit.split("|"))]
    assert missed == []
    assert 50 < SIMILAR < SIMILAR_ELSEWHERE < 100


# --- any edits of any file ---


@dataclass(frozen=True)
class Line:
    section: str
    label: str | None
    value: str
    id: str = ""
    fate: str = "same"


@cache
def phrase(seed: int) -> str:
    """Six made-up words; two seeds give texts that have nothing in common."""
    letters = random.Random(seed)
    return " ".join("".join(letters.choices("abcdefghijklmnoprstuvwyz", k=7)) for _ in range(6))


def file_of(lines: list[Line], style: random.Random) -> str:
    """The file as some person might leave it."""
    newline = style.choice(["\n", "\r\n"])
    sections = list(dict.fromkeys(line.section for line in lines))
    style.shuffle(sections)
    rows = ["# User Memory", ""]
    for section in sections:
        bullet = style.choice(["-", "*", "+", "•", "- [x]"])
        rows += ["<!-- - Note: hidden", "## Hidden", "-->", ""] * style.randrange(2)
        rows += [style.choice([f"## {section}", f"## {section}:", f"### **{section.upper()}**"])]
        rows += ["> quoted: text", "", "```", "- Role: code", "```"] * style.randrange(2)
        for line in [line for line in lines if line.section == section]:
            label = style.choice(["{}: ", "**{}:** ", "__{}__: "]).format(line.label) if line.label else ""
            rows += [f"{bullet} {label}{line.value}", *[""] * style.randrange(2)]
        rows += [""] * style.randrange(3)
    return style.choice(["", "\ufeff"]) + newline.join(rows) + newline


@st.composite
def edited_files(draw: st.DrawFn) -> tuple[list[Line], list[Line], random.Random]:
    style = draw(st.randoms(use_true_random=False))
    count = draw(st.integers(0, 25))
    before = []
    for at in range(count):
        label = draw(st.sampled_from([None, f"Label {at}"]))
        before.append(Line(draw(st.sampled_from(SECTIONS)), label, phrase(at), str(at)))
    lines: list[Line] = []
    for line in before:
        fate = draw(st.sampled_from(["same", "same", "same", "changed", "removed", "moved", "renamed", "twice"]))
        elsewhere = draw(st.sampled_from([name for name in SECTIONS if name != line.section]))
        if fate == "same" or (fate == "renamed" and not line.label):
            lines.append(line)
        elif fate == "changed" and line.label:
            section = draw(st.sampled_from([line.section, elsewhere]))
            lines.append(replace(line, section=section, value=phrase(1000 + len(lines)), fate="changed"))
        elif fate == "changed":
            lines.append(replace(line, value=line.value[8:] + " extra", fate="changed"))
        elif fate == "moved":
            lines.append(replace(line, section=elsewhere, fate="moved"))
        elif fate == "renamed":
            lines.append(replace(line, label=f"Other {line.id}", fate="changed"))
        elif fate == "twice":
            lines += [line, replace(line, section=draw(st.sampled_from(SECTIONS)), fate="repeated")]
    for at in range(draw(st.integers(0, 4))):
        label = draw(st.sampled_from([None, f"New {at}"]))
        section = draw(st.sampled_from([*SECTIONS, "Brand new"]))
        lines.append(Line(section, label, phrase(2000 + at), fate="added"))
    style.shuffle(lines)
    return before, lines, style


@given(edited_files())
@settings(max_examples=volume(30, 150), deadline=None)
def test_F4_any_edits_are_told_exactly(case: tuple[list[Line], list[Line], random.Random]) -> None:
    before, lines, style = case
    known = [
        ExpectedFact(line.id, line.section, None, key_of(line.label) if line.label else None, line.value)
        for line in before
    ]
    items = Document.parse(file_of(lines, style)).items
    assert len(items) == len(lines)
    changes = compare(known, items)
    check_nothing_is_lost(known, items, changes)

    def expected(fate: str) -> list[tuple[str, str, str]]:
        return sorted((line.id, line.label or "", line.value) for line in lines if line.fate == fate)

    def found(pairs: list[tuple[str, Item]]) -> list[tuple[str, str, str]]:
        return sorted((id, label_of(item.key) if item.key else "", item.content) for id, item in pairs)

    assert found(changes.same) == expected("same")
    assert found(changes.moved) == expected("moved")
    assert found(changes.changed) == expected("changed")
    assert sorted(item.content for item in changes.added) == sorted(line[2] for line in expected("added"))
    assert sorted(item.content for item in changes.repeated) == sorted(line[2] for line in expected("repeated"))
    assert sorted(changes.removed) == sorted({line.id for line in before} - {line.id for line in lines})


facts = st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from(["k", "l", None]), st.sampled_from(["x", "xy", "z"])))


@given(facts, facts)
def test_F4_nothing_is_lost_whatever_is_compared(
    old: list[tuple[str, str | None, str]], new: list[tuple[str, str | None, str]]
) -> None:
    known = [ExpectedFact(str(at), section, None, key, content) for at, (section, key, content) in enumerate(old)]
    items = tuple(
        Item(section, None, key, key, content, at, "bullet") for at, (section, key, content) in enumerate(new)
    )
    changes = compare(known, items)
    check_nothing_is_lost(known, items, changes)
    by_id = {one.id: one for one in known}
    for id, item in changes.same:
        assert (by_id[id].section, by_id[id].key, by_id[id].content) == (item.section, item.key, item.content)
    for id, item in changes.moved:
        assert (by_id[id].key, by_id[id].content) == (item.key, item.content)
    for id, item in changes.changed:
        assert (by_id[id].key, by_id[id].content) != (item.key, item.content)


@pytest.mark.parametrize("edited", first(1, [3_000, 0, 400, 20_000]))
def test_twenty_thousand_items_are_compared_without_comparing_each_with_each(edited: int) -> None:
    known = [ExpectedFact(str(at), f"S{at % 7}", None, None, phrase(at)) for at in range(20_000)]
    items = [Item(one.section, None, None, None, one.content, at, "bullet") for at, one in enumerate(known)]
    items = [item._replace(content=item.content + " and more") if item.line < edited else item for item in items]
    random.Random(1).shuffle(items)
    changes = compare(known, items)
    assert len(changes.same) == 20_000 - edited
    assert len(changes.changed) == edited or edited > 400
    assert len(changes.changed) + len(changes.removed) == edited
