"""A daily note only ever grows, except where something is erased."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.document.daily_md import SECTIONS, append_entry, one_block, parse_entries, remove_entries
from recollect.errors import InvalidInputError
from tests.volume import volume

DAY = date(2026, 2, 12)

NOTE = """\
# 2026-02-12

## Reading Activity
- Read 4 of 9 posts
- 👍 "How tide tables are made"

## Discussions
- Talked about "How tide tables are made" (7 messages)
  - Wants the source of the harmonic constants
    - found: none
  - Opinion: "good enough for the bay"

## Reading Activity
- ⭐ Saved "Lighthouse lenses"
"""

LINES = [
    "# 2026-02-12", "## Discussions", "## Reading Activity", "### Later", "# Explicit Memories",
    "- said: tea", "  - more", "prose", "", "", "<!-- open", "-->", "```", "  ~~~", "<pre>",
    "<div>", "> quote", "| a |", "a | b",
    "-|-", "---", "- x", "    code", "-", "- Empty:", "\x0b", "אבג",
]  # fmt: skip

lines = st.tuples(st.one_of(st.sampled_from(LINES), st.text(max_size=10)), st.sampled_from(["\n", "\n", "\r\n", "\r"]))
notes = st.builds(
    lambda bom, rows, last: bom + "".join(line + end for line, end in rows) + last,
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(lines, max_size=15),
    st.sampled_from(["", "- tail", "  "]),
)
contents = st.one_of(
    st.text(min_size=1),
    st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=12)), min_size=1, max_size=4).map("\n".join),
).filter(one_block)


def said(text: str) -> list[tuple[str, str]]:
    return [(entry.section, entry.content) for entry in parse_entries(text)]


def test_F7_a_note_is_read_entry_by_entry() -> None:
    assert said(NOTE) == [
        ("Reading Activity", "Read 4 of 9 posts"),
        ("Reading Activity", '👍 "How tide tables are made"'),
        (
            "Discussions",
            'Talked about "How tide tables are made" (7 messages)\n'
            "- Wants the source of the harmonic constants\n"
            '  - found: none\n- Opinion: "good enough for the bay"',
        ),
        ("Reading Activity", '⭐ Saved "Lighthouse lenses"'),
    ]
    assert {entry.key for entry in parse_entries(NOTE)} == {None}
    assert [entry.line for entry in parse_entries(NOTE)] == [4, 5, 8, 14]


def test_F7_a_day_as_it_grows() -> None:
    text = append_entry("", DAY, "Explicit Memories", "User said: remember the tide")
    text = append_entry(text, DAY, "Explicit Memories", "a\n\nb")
    text = append_entry(text, DAY, "Discussions", "- c")
    text = append_entry(text, DAY, "Explicit Memories", "d")
    assert text == (
        "# 2026-02-12\n\n## Explicit Memories\n- User said: remember the tide\n- a\n  b\n- d\n\n## Discussions\n- - c\n"
    )
    assert SECTIONS == ("Reading Activity", "Discussions", "Extracted Insights", "Explicit Memories")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ufeff", "\ufeff# 2026-02-12\n\n## Discussions\n- x\n"),
        (" ", " \n# 2026-02-12\n\n## Discussions\n- x\n"),
        ("# 2026-02-12", "# 2026-02-12\n\n## Discussions\n- x\n"),
        ("## discussions\r\n- a", "## discussions\r\n- a\r\n- x\r\n"),
        ("## Discussions\n```\ncode", "## Discussions\n```\ncode\n```\n\n- x\n"),
        ("## Discussions\n<!-- note\n", "## Discussions\n<!-- note\n-->\n\n- x\n"),
        ("## Discussions\n<div>\n", "## Discussions\n<div>\n\n- x\n"),
        ("## A\nb\nc\r", "## A\nb\nc\r\r\n## Discussions\n- x\n"),
    ],
)
def test_F7_appending_to_what_is_there(text: str, expected: str) -> None:
    assert append_entry(text, DAY, "Discussions", "x") == expected


@given(notes, st.sampled_from([*SECTIONS, "Later", "Odd: one #"]), contents)
@example("", "Discussions", "Role:")
@settings(max_examples=volume(50, 250))
def test_F7_appending_never_rewrites(text: str, section: str, content: str) -> None:
    after = append_entry(text, DAY, section, content)
    begin = next((at for at, (old, new) in enumerate(zip(text, after, strict=False)) if old != new), len(text))
    assert after.endswith(text[begin:]), "something else than an insertion"
    assert after.count("## ") - text.count("## ") <= 1 + content.count("## ")
    name = section.removesuffix(" #").casefold()
    before = said(text)
    same = [at for at, (other, _) in enumerate(before, 1) if other.casefold() == name]
    [(found, entry)] = list((Counter(said(after)) - Counter(before)).elements())
    assert (found.casefold(), entry) == (name, one_block(content))
    if same:
        assert said(after)[: same[-1]] == before[: same[-1]], "an entry goes to the end of its section"


@given(st.lists(st.tuples(st.sampled_from(SECTIONS), contents), max_size=8))
def test_F7_a_whole_day_is_read_back(day: list[tuple[str, str]]) -> None:
    text = ""
    for section, content in day:
        text = append_entry(text, DAY, section, content)
    order = list(dict.fromkeys(section for section, _ in day))
    assert said(text) == sorted(((s, one_block(c)) for s, c in day), key=lambda one: order.index(one[0]))
    assert len([line for line in text.splitlines() if line.startswith("## ")]) <= len(order) + sum(
        "## " in content for _, content in day
    )


def test_F7_an_entry_needs_text_and_a_section() -> None:
    with pytest.raises(InvalidInputError):
        append_entry("", DAY, "Discussions", " \n\x00")
    with pytest.raises(InvalidInputError):
        append_entry("", DAY, " ", "x")


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (set(), NOTE),
        ({"Read 4 of 9 posts"}, NOTE.replace("- Read 4 of 9 posts\n", "")),
        (
            {'⭐ Saved "Lighthouse lenses"'},
            NOTE.replace('## Reading Activity\n- ⭐ Saved "Lighthouse lenses"\n', ""),
        ),
        ({said(NOTE)[2][1]}, NOTE[: NOTE.index("## Disc")] + NOTE[NOTE.rindex("## Reading") :]),
        ({content for _, content in said(NOTE)}, "# 2026-02-12\n\n"),
    ],
)
def test_R7_erasing_takes_the_entry_and_a_bare_heading(gone: set[str], expected: str) -> None:
    assert remove_entries(NOTE, gone) == expected


def test_R7_erasing_leaves_what_a_person_wrote_below_the_heading() -> None:
    text = "# d\n\n## Discussions\n<!-- mine -->\n- x\n\n## Empty\n\n## Later\n- x\n  more\npara\n- x\nrest\n"
    expected = "# d\n\n## Discussions\n<!-- mine -->\n\n## Empty\n\n## Later\n- x\n  more\npara\n\nrest\n"
    assert remove_entries(text, {"x"}) == expected


@given(notes, st.integers(0, 7))
@example("## Discussions\n- x\n# 2026-02-12\n0\n", 1)
@settings(max_examples=volume(40, 200))
def test_R7_erasing_leaves_all_other_entries(text: str, pick: int) -> None:
    before = said(text)
    gone = {content for at, (_, content) in enumerate(before) if pick >> (at % 3) & 1}
    after = remove_entries(text, gone)
    if not gone:
        assert after == text
    if "```" not in text and "~~~" not in text:  # a fence that lost its neighbour may close further down
        assert [entry for entry in said(after) if entry[1]] == [entry for entry in before if entry[1] not in gone]
    assert not gone & {content for _, content in said(after)}
