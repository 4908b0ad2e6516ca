"""MEMORY.md is read, changed line by line, and otherwise kept byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from recollect.document.memory_md import (
    MAX_BYTES,
    SECTIONS,
    Document,
    Item,
    category_of,
    decode_file,
    encode_file,
    key_of,
    label_of,
    one_block,
    render_item,
    section_key,
    section_of,
    split_label,
    template,
)
from recollect.errors import DocumentError, InvalidInputError, NotFoundError
from tests.volume import volume

SAMPLE = """\
# User Memory

## User Preferences
- Likes short answers with a source
- Interested in: sailing, SQLite internals, typography
- **Dislikes:** clickbait, autoplaying video

## Work Context
- Role: Harbour pilot
- Employer: Port of Gdańsk (night shifts)

## Personal Context
- Restoring a wooden dinghy
  - hull: sanded
  - mast: still missing

## Key Facts
- Timezone: CET (UTC+1)
- Boat's name: "Ćma"
"""

# Lines that mean something to the parser, so that random files are not merely prose.
FRAGMENTS = [
    "# User Memory", "## Work Context", "## Key Facts:", "### Deeper", "## Hobbies", "##Close",
    "# Other", "Set", "---",
    "===", "- Role: dev", "- likes tea", "* **City**: Oslo", "+ odd", "• dot", "– dash",
    "1. one", "2) two", "- [ ] todo",
    "- [x] done: yes", "-", "- Empty:", "  - nested", "    deep", "\tTab", "plain words",
    "more: words", "> quote",
    "| a | b |", "a | b", "--- | ---", "```", "```py", "~~~", "  ```", "<!-- note", "-->",
    "<!-- one line -->", "<div>",
    "<pre>", "</pre>", "[ref]: https://example.org", "", "", "", "   ", "\x0b", "\u2028",
    "- \\# x", "- <!-- gone -->",
    "שם: דניאל", "- שם: דניאל", "- 🎂 Birthday: May", "- a\x0bb", "  \\```", "\\- no bullet",
    "***", "- - -", "    ```",
]  # fmt: skip
ENDINGS = ["\n", "\n", "\n", "\r\n", "\r"]

lines = st.tuples(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=12)), st.sampled_from(ENDINGS))
markdown = st.builds(
    lambda bom, parts, last: bom + "".join(line + end for line, end in parts) + last,
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(lines, max_size=25),
    st.sampled_from(["", "- tail", "tail"]),
)
contents = st.one_of(
    st.text(min_size=1),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=15)), min_size=1, max_size=5).map("\n".join),
).filter(one_block)
keys = st.text(min_size=1, max_size=80).map(key_of).filter(bool)


def said(document: Document) -> list[tuple[str, str | None, str]]:
    return [(item.section, item.key, item.content) for item in document.items]


def check(document: Document) -> None:
    """A changed document is the one that would be read from its text."""
    again = Document.parse(document.render())
    assert document._blocks == again._blocks
    assert document.items == again.items
    assert document.word_count == len(document.render().split()) == again.word_count


# --- reading ---


def test_F3_the_sample_is_read_as_a_person_reads_it() -> None:
    document = Document.parse(SAMPLE)
    assert document.render() == SAMPLE
    assert [(item.category, item.key, item.label, item.content, item.line) for item in document.items] == [
        ("preference", None, None, "Likes short answers with a source", 4),
        ("preference", "interested_in", "Interested in", "sailing, SQLite internals, typography", 5),
        ("preference", "dislikes", "Dislikes", "clickbait, autoplaying video", 6),
        ("work_context", "role", "Role", "Harbour pilot", 9),
        ("work_context", "employer", "Employer", "Port of Gdańsk (night shifts)", 10),
        (
            "personal_context",
            None,
            None,
            "Restoring a wooden dinghy\n- hull: sanded\n- mast: still missing",
            13,
        ),
        ("key_fact", "timezone", "Timezone", "CET (UTC+1)", 18),
        ("key_fact", "boat's_name", "Boat's name", '"Ćma"', 19),
    ]


@given(st.one_of(st.text(), markdown))
@example("\ufeff")
@example("a\rb\r\nc\nd\x0be\x0cf\u2028g\x85h")
@settings(max_examples=volume(40, 200))
def test_F3_any_text_renders_back_byte_for_byte(text: str) -> None:
    document = Document.parse(text)
    assert document.render() == text
    assert document.word_count == len(text.split())
    assert all(item.content and item.content == one_block(item.content) for item in document.items)


@given(st.one_of(st.binary(), st.text().map(str.encode), markdown.map(str.encode)))
def test_F3_bytes_survive_or_are_refused(data: bytes) -> None:
    try:
        text = decode_file(data)
    except DocumentError:
        return
    assert encode_file(text) == data
    assert encode_file(Document.parse(text).render()) == data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"one\r\ntwo\rthree\n\xff", "line 4, byte 16 is not UTF-8 text; save the file as UTF-8"),
        (b"a\nb\0", "line 2, byte 4 is a NUL character; save the file as UTF-8 text"),
        (b"a" * (MAX_BYTES + 1), "the file is longer than the limit of 1,048,576 bytes"),
        ("# Memory".encode("utf-16"), "line 1, byte 1 is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_a_file_that_is_not_text_is_refused_in_one_clear_line(data: bytes, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        decode_file(data)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "\r\n\t\r\n", "\ufeff", "\ufeff\n", "# User Memory\n"])
def test_a_file_that_says_nothing_has_no_items(text: str) -> None:
    document = Document.parse(text)
    assert document.items == ()
    assert document.render() == text


def under(body: str, heading: str = "## Notes") -> list[tuple[str | None, str]]:
    return [(item.key, item.content) for item in Document.parse(f"{heading}\n{body}").items]


@pytest.mark.parametrize(
    "line",
    ["- tea", "* tea", "+ tea", "• tea", "– tea", "1. tea", "12) tea", "- [ ] tea",
    "* [x] tea", "  - tea", "-\ttea", "-   tea", "tea"],
)  # fmt: skip
def test_F3_odd_bullets_and_plain_lines_are_items(line: str) -> None:
    assert under(line) == [(None, "tea")]
    assert under(line + "\r\n\r\nmore\r\n") == [(None, "tea"), (None, "more")]


@pytest.mark.parametrize(
    "body",
    [
        "<!-- - tea -->", "<!--\n- tea\n\n## Tea\n-->", "<!-- never closed\n\n- tea",
        "- <!-- tea -->", "```\n- tea\n## Tea\n```",
        "~~~ md\n## Tea\n\n- tea\n~~~", "```\n- never closed\n\n- tea",
        "> tea\n> - tea\nlazy tea", "| tea | cup |\n|---|---|\n| 1 | 2 |",
        "tea | cup\n--- | ---\n1 | 2", "---", "* * *", "- - -", "___",
        "[tea]: https://example.org", "<div>\n- tea\n</div>",
        "<pre>\n\n- tea\n</pre>", "-", "- ", "- [ ]", "- Role:", "- **Role:**", "- Rôle：",
        "    - tea", "\ttea", "### Tea\n#### Cup", "==",
        "<!DOCTYPE html>", "--",
    ],
)  # fmt: skip
def test_F3_what_is_not_an_item_is_carried_along_unread(body: str) -> None:
    text = f"## Notes\n\n{body}\n"
    assert Document.parse(text).items == ()
    assert Document.parse(text).render() == text


def test_text_above_the_first_section_is_not_read() -> None:
    text = "---\ntitle: x\ntags:\n- tea\n---\nHello\n- tea\n\n# User Memory\nprose\n- tea\n\n## Notes\n- cup\n"
    assert said(Document.parse(text)) == [("Notes", None, "cup")]


def test_a_rule_above_the_sections_is_not_front_matter() -> None:
    assert said(Document.parse("---\n# Me\n## Notes\n- tea\n---\n- cup\n")) == [
        ("Notes", None, "tea"),
        ("Notes", None, "cup"),
    ]


def test_headings_of_every_kind_open_sections() -> None:
    text = "Title\n=====\n- no\n\n## A ##\n- a\nBig B\n-----\n- b\n# C\n- c\n##D\n- d\n#hashtag\n####### seven\n"
    assert said(Document.parse(text)) == [
        ("A", None, "a"), ("Big B", None, "b"), ("C", None, "c"), ("D", None, "d"),
        ("D", None, "#hashtag\n####### seven"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "heading",
    [
        "## Work Context",
        "## work context:",
        "# **Work Context**",
        "### 💼 Work context",
        "Work Context\n---",
        "## __WORK CONTEXT__ ##",
    ],
)
def test_known_headings_are_known_in_any_dress(heading: str) -> None:
    assert [item.category for item in Document.parse(f"{heading}\n- x\n").items] == ["work_context"]


def test_a_heading_inside_a_known_section_keeps_its_category() -> None:
    document = Document.parse("## Work Context\n### Tools\n- vim\n## Tools\n- saw\n### Key Facts\n- x\n### Sub\n- y\n")
    assert [(item.section, item.category) for item in document.items] == [
        ("Tools", "work_context"), ("Tools", None), ("Key Facts", "key_fact"), ("Sub", None),
    ]  # fmt: skip


def test_deeper_lines_belong_to_the_entry_above_them() -> None:
    body = "- one\n  two\n\n  - three\n    four\n\t five\n- six\nseven\n      eight\n"
    assert under(body) == [
        (None, "one\ntwo"),
        (None, "three\nfour\n five"),
        (None, "six"),
        (None, "seven\neight"),
    ]


def test_code_inside_an_entry_may_hold_blank_lines() -> None:
    body = "- Snippet:\n  ```\n  a\n\n  - b\n  ```\n- next\n"
    assert under(body) == [("snippet", "```\na\n- b\n```"), (None, "next")]
    assert under("- open\n  ```\n\n- next\n") == [(None, "open\n```"), (None, "next")]


def test_F3_right_to_left_text_and_emoji() -> None:
    text = "## Key Facts\n- שם: דניאל\n- العمل：مهندس\n- 🎂 Birthday: 5 May 🎉\n- 👩‍🚀: 🚀\n- أحب القهوة\n"
    document = Document.parse(text)
    assert document.render() == text
    assert [(item.key, item.content) for item in document.items] == [
        ("שם", "דניאל"), ("العمل", "مهندس"),
        ("birthday", "5 May 🎉"), (None, "👩‍🚀: 🚀"), (None, "أحب القهوة"),
    ]  # fmt: skip


# --- labels and keys ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Role: dev", ("Role", "dev")), ("**Role**: dev", ("Role", "dev")),
        ("**Role:** dev", ("Role", "dev")),
        ("__Role__: dev", ("Role", "dev")), ("`role`: dev", ("role", "dev")),
        ("*Role* : dev", ("Role", "dev")),
        ("役割：開発者", ("役割", "開発者")),
        ("**役割：**開発者", ("役割", "開発者")), ("Role : dev", ("Role", "dev")),
        ("Role:dev", None), ("https://example.org", None), ("10:30 standup", None),
        ("Meets at 10:30: always", None),
        ("I live here. Since: 2019", None), ("x" * 65 + ": y", None), ("Role:", None),
        ("**Role:**", None), ("no label", None),
        ("**Role: dev**", None), ('Says "well: no"', None), ("Uses (mostly: vim)", None), ("!!: y", None),
        ("Stack:\n- Go\n- C", ("Stack", "- Go\n- C")), ("Time: 10:30", ("Time", "10:30")),
        ("a: b: c", ("a", "b: c")),
    ],
)  # fmt: skip
def test_F3_labels(text: str, expected: tuple[str, str] | None) -> None:
    assert split_label(text) == expected


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("C++", "c++"), ("C#", "c#"), ("node.js", "node.js"),
        ("GitHub Handle", "github_handle"), ("**Role:**", "role"),
        ("interested-in", "interested_in"), ("  Home / Work  ", "home_work"),
        ("Ｆｕｌｌ Ｗｉｄｔｈ", "full_width"), ("Straße", "strasse"),
        ("Côté", "côté"), ("e.g.", "e.g"), ("🎂 Birthday!", "birthday"), ("हिन्दी", "हिन्दी"),
        ("\u200fשם\u200f", "שם"), ("—", ""),
        ("Role(s)", "roles"), ("x" * 100, "x" * 64), ("_", ""),
    ],
)  # fmt: skip
def test_keys(label: str, key: str) -> None:
    assert key_of(label) == key
    assert key_of(key) == key


def test_labels_of_keys() -> None:
    assert label_of("interested_in") == "Interested in"
    assert label_of("c++") == "C++"
    assert label_of("2fa") == "2fa"
    assert [section_of(category) for category in SECTIONS] == list(SECTIONS.values())
    assert category_of("Key facts") == "key_fact"
    assert category_of("Keys") is None
    assert section_key("C++") != section_key("C#")


@given(keys, contents)
@settings(max_examples=volume(40, 200))
def test_F3_every_key_is_read_back_from_its_line(key: str, content: str) -> None:
    assert key_of(key) == key
    assert key_of(label_of(key)) == key
    line = render_item(key, None, content)
    assert under(line) == [(key, one_block(content))]


@given(st.text(min_size=1, max_size=70), contents)
def test_F3_a_label_is_kept_where_it_can_be(label: str, content: str) -> None:
    key = key_of(label)
    assume(key)
    assert under(render_item(key, label, content)) == [(key, one_block(content))]
    with pytest.raises(InvalidInputError):
        render_item("—", None, content)


@given(contents)
@example("- a\n  b\n c")
@example("Role:")
@example("\\Role:")
@example("\\")
@example("--")
@example("<!--\n-->")
@example("[ ]")
@settings(max_examples=volume(40, 200))
def test_F3_content_is_read_back_as_written(content: str) -> None:
    expected = one_block(content)
    assert one_block(expected) == expected
    found = under(render_item(None, None, content))
    label = split_label(expected)
    assert found == [(key_of(label[0]), label[1]) if label else (None, expected)]


@pytest.mark.parametrize(
    "content",
    ["# a", "- a", "```", "<!-- a", "> a", "1. a", "---", "| a |", "===", "\\- a", "\\\\x", "* * *"],
)
def test_F3_text_that_looks_like_markdown_stays_text(content: str) -> None:
    for form in ("- x\n", "x\n"):
        document = Document.parse(f"## Notes\n\n{form}\nbelow\n")
        changed = document.replace(document.items[0], content)
        assert [item.content for item in changed.items] == [content, "below"]
        check(changed)


# --- changing ---


def test_F2_the_template() -> None:
    assert (
        template() == "# User Memory\n\n## User Preferences\n\n## Work Context\n\n## Personal Context\n\n## Key Facts\n"
    )
    assert Document.parse(template()).items == ()


def test_F3_new_lines_look_like_the_sample() -> None:
    document = (
        Document.parse(template())
        .add("Work Context", "Harbour pilot", key="role")
        .add("Work Context", "Night\n\nshifts ")
    )
    document = document.add("Key Facts", "CET", key="time_zone", label="Time zone").add("Reading History", "Moby-Dick")
    assert document.render() == (
        "# User Memory\n\n## User Preferences\n\n## Work Context\n- Role: Harbour pilot\n- Night\n  shifts\n"
        "\n## Personal Context\n\n## Reading History\n- Moby-Dick\n\n## Key Facts\n- Time zone: CET\n"
    )
    check(document)


@pytest.mark.parametrize(
    ("text", "section", "expected"),
    [
        ("", "Key Facts", "# User Memory\n\n## Key Facts\n- x\n"),
        ("\r\n", "Key Facts", "\r\n# User Memory\r\n\r\n## Key Facts\r\n- x\r\n"),
        ("\ufeff", "Key Facts", "\ufeff# User Memory\n\n## Key Facts\n- x\n"),
        ("## Hobbies\n* a", "hobbies:", "## Hobbies\n* a\n* x\n"),
        ("## Hobbies\n  9. a\n\nb\n", "Hobbies", "## Hobbies\n  9. a\n\nb\n  10. x\n"),
        (
            "## Hobbies\r\n- a\r\n\r\n<!-- c -->\r\n",
            "Hobbies",
            "## Hobbies\r\n- a\r\n- x\r\n\r\n<!-- c -->\r\n",
        ),
        ("## A\n```\nopen", "B", "## A\n\n## B\n- x\n\n```\nopen"),
        ("## Key Facts\n- a\n", "Work Context", "## Work Context\n- x\n\n## Key Facts\n- a\n"),
        ("hello", "B", "hello\n\n## B\n- x\n"),
        ("## B\n    code\n", "B", "## B\n- x\n\n    code\n"),
        ("a\nb\nc\r", "B", "a\nb\nc\r\r\n## B\n- x\n"),
        ("# User Memory\n", "User Memory", "# User Memory\n\n## User Memory\n- x\n"),
    ],
)
def test_F5_adding(text: str, section: str, expected: str) -> None:
    document = Document.parse(text).add(section, "x")
    assert document.render() == expected
    assert "x" in [item.content for item in document.items]
    check(document)


@given(
    markdown,
    st.sampled_from([*SECTIONS.values(), "Hobbies", "deeper", "C #", "Other"]),
    keys | st.none(),
    contents,
)
@settings(max_examples=volume(50, 250))
def test_F5_adding_leaves_every_other_byte(text: str, section: str, key: str | None, content: str) -> None:
    expected = one_block(content)
    assume(key or not split_label(expected))
    before = Document.parse(text)
    after = before.add(section, content, key=key)
    check(after)
    assert contains_in_order(after.render(), text)
    old, new = said(before), said(after)
    (at,) = [at for at in range(len(new)) if new[:at] + new[at + 1 :] == old][:1]
    assert new[at][1:] == (key, expected)
    assert section_key(new[at][0]) == section_key(section.removesuffix(" #"))


def contains_in_order(text: str, part: str) -> bool:
    rest = iter(text)
    return all(char in rest for char in part)


def test_replacing_keeps_bullet_label_ending_and_place() -> None:
    text = (
        "\ufeff## Notes\r\n  * [x] **Role:**  dev\r\n      since May\r\n- __City__ : Oslo\n"
        "+ Likes:\n    - tea\n    - rum\n\n para\nlines\r- end"
    )
    document = Document.parse(text)
    for content in ("chef\nsince June", "Rome", "- ale", "new\nprose", "fin"):
        at = ["chef\nsince June", "Rome", "- ale", "new\nprose", "fin"].index(content)
        document = document.replace(document.items[at], content)
        check(document)
    assert document.render() == (
        "\ufeff## Notes\r\n  * [x] **Role:**  chef\r\n      since June\r\n- __City__ : Rome\n"
        "+ Likes:\n    - ale\n\n new\nprose\r- fin"
    )


@pytest.mark.parametrize("ending", ["\n", ""])
def test_a_byte_order_mark_further_down_is_text(ending: str) -> None:
    """As in files that were joined: each of them may begin with one."""
    document = Document.parse(f"## Notes\n- tea\n\n\ufeffProse about bees.\nMore of it.{ending}")
    moved = document.move(document.items[1], "Key Facts")
    check(moved)
    assert [item.content for item in moved.items] == ["tea", "\ufeffProse about bees.\nMore of it."]
    replaced = document.replace(document.items[1], "\ufeffProse about ants.")
    check(replaced)
    assert [item.content for item in replaced.items] == ["tea", "\ufeffProse about ants."]
    added = Document.parse("- tea\n\ufeff").add("Notes", "rum")
    check(added)
    assert added.items[0].content == "rum"


@pytest.mark.parametrize("said", ["\\\tTab", "\\ # no heading", "\\\\\t- x"])
def test_a_backslash_in_front_of_white_space_is_text(said: str) -> None:
    document = Document.parse(f"## Notes\n{said}\nbelow\n\n- tea\n")
    assert document.items[0].content == f"{said}\nbelow" == one_block(document.items[0].content)
    replaced = document.replace(document.items[1], said).replace(document.items[0], said)
    check(replaced)
    assert [item.content for item in replaced.items] == [said, said]


def test_renaming_keeps_the_emphasis() -> None:
    document = Document.parse("## Notes\n- **Role**: dev\n- tea\n\nprose here\n  > quoted\n")
    document = document.rename(document.items[0], "job_title").rename(document.items[1], "drink", "DRINK")
    document = document.rename(document.items[2], "a note")
    assert document.render() == "## Notes\n- **Job title**: dev\n- DRINK: tea\n\n- A note: prose here\n\n  > quoted\n"
    check(document)
    assert [(item.key, item.content) for item in document.items] == [
        ("job_title", "dev"),
        ("drink", "tea"),
        ("a_note", "prose here"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## A\n- x\n- y\n", "## A\n- y\n"),
        ("## A\n\n- x\n\n## B\n", "## A\n\n## B\n"),
        ("## A\n- x\n\n## B\n", "## A\n\n## B\n"),
        ("## A\n\n\n- x\n\n\n## B\n", "## A\n\n\n\n## B\n"),
        ("## A\npara\n- x\n---\n", "## A\npara\n\n---\n"),
        ("## A\npara\n- x\nother\n", "## A\npara\n\nother\n"),
        ("## A\n- y\nx\n  > z\n", "## A\n- y\n\n  > z\n"),
        ("## A\n- y\n- x\n  more", "## A\n- y\n- x\n  more"),
        ("## A\ry\r- x\n\n\nz", "## A\ry\r\r\n\nz"),
        ("## A\n- y\n- x", "## A\n- y\n"),
    ],
)
def test_F5_removing_takes_only_the_lines_of_the_item(text: str, expected: str) -> None:
    document = Document.parse(text)
    for item in document.items:
        if item.content == "x":
            document = document.remove(item)
    assert document.render() == expected
    check(document)


def test_moving_takes_the_lines_along() -> None:
    document = Document.parse("## A\n  - **X:** 1\n    more\n  - y\n\n## B\n- z\n\nprose\n\n## C\n- w")
    x, y, _, prose, w = document.items
    for item, section in ((x, "B"), (prose, "A"), (w, "D"), (y, "C")):
        document = document.move(item, section)
        check(document)
    assert document.render() == ("## A\n\nprose\n\n## B\n- z\n\n- **X:** 1\n  more\n\n## C\n- y\n\n## D\n- w\n")


def test_an_item_is_found_again_after_other_changes() -> None:
    document = Document.parse(SAMPLE)
    first, *_, last = document.items
    changed = document.remove(first).replace(last, '"Mewa"')
    assert changed.items[-1].content == '"Mewa"'
    with pytest.raises(NotFoundError):
        changed.remove(first)
    with pytest.raises(InvalidInputError):
        changed.replace(changed.items[0], " \n ")
    with pytest.raises(InvalidInputError):
        changed.add(" ", "x")
    assert document.render() == SAMPLE


changes_to_make = st.lists(
    st.tuples(
        st.sampled_from(["add", "replace", "rename", "remove", "move"]),
        st.integers(0, 99),
        contents,
        keys,
        st.sampled_from(["Key Facts", "Hobbies", "Work Context", "Deeper"]),
    ),
    max_size=6,
)


@given(markdown, changes_to_make)
@settings(max_examples=volume(50, 250))
def test_F5_any_row_of_changes_leaves_all_other_items_as_they_were(
    text: str, steps: list[tuple[str, int, str, str, str]]
) -> None:
    document = Document.parse(text)
    for name, number, content, key, section in steps:
        before = facts(document)
        gone: list[tuple[str | None, str]] = []
        come: list[tuple[str | None, str]] = []
        if name == "add":
            document = document.add(section, content, key=key)
            come = [(key, one_block(content))]
        elif document.items:
            item = document.items[number % len(document.items)]
            gone = [(item.key, item.content)]
            if name == "replace":
                document = document.replace(item, content)
                label = split_label(one_block(content)) if not item.key and item.form == "bullet" else None
                come = [(key_of(label[0]), label[1]) if label else (item.key, one_block(content))]
            elif name == "rename":
                document = document.rename(item, key)
                come = [(key, item.content)]
            elif name == "move":
                document = document.move(item, section)
                come = gone
            else:
                document = document.remove(item)
        check(document)
        assert sorted(map(str, facts(document) + gone)) == sorted(map(str, before + come))


def facts(document: Document) -> list[tuple[str | None, str]]:
    return [(item.key, item.content) for item in document.items]


# --- large and hostile files: what is not linear would not come to an end ---


def test_a_large_file_is_read() -> None:
    text = template() + "- Some label 12: a few words, as people write them\n  and a second line\n" * 13_500
    assert 950_000 < len(text) < MAX_BYTES
    document = Document.parse(decode_file(encode_file(text)))
    assert len(document.items) == 13_500
    assert document.add("Key Facts", "one more").render().startswith(text)


@pytest.mark.everyday(4)
@pytest.mark.parametrize(
    "unit",
    [
        "  ``` x\n",
        "> a\n",
        "a | b\n",
        "[a",
        "**a ",
        "- ",
        "`",
        "\\",
        "<!--",
        "- a\n  ~~~\n\n",
        "---\n",
        "a: ",
    ],
)
def test_every_file_can_be_read(unit: str) -> None:
    text = "---\n## Notes\n- a\n" + unit * (300_000 // len(unit))
    document = Document.parse(text)
    assert isinstance(document.items, tuple)
    assert all(isinstance(item, Item) for item in document.items[:1])
    assert document.render() == text
