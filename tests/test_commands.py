"""The `/memory` commands: what a person sees, chooses, takes out and brings back, on a phone."""

from __future__ import annotations

import logging
import os
import re
import stat
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import recollect
from recollect.agents.remind import reminders_are_on
from recollect.errors import InvalidInputError, StoreBusyError, StoreError, StoreFullError, StoreReadOnlyError
from recollect.memory.memory import Memory
from recollect.records import Fact
from recollect.surfaces.chat import forget_commands
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatPage, Choice
from recollect.surfaces.chat.speaker import Asker
from recollect.surfaces.chat.text_fit import HEIGHT, WIDTH, cell_width, count_phone_lines, fit_cells, one_safe_line
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.memory_store import MemoryReader, MemoryTransaction, MemoryUser
from tests.volume import volume

ROOT = Path(__file__).parent.parent
ME, TERMINAL, STRANGER = ("telegram", 1), ("terminal", "olena"), ("telegram", 666)
EVERY = (
    "", "show", "more", "work", "search tea", "results 2 tea", "forget tea", "forget 2", "next 9 tea", "keep", "why 2",
    "why tea", "undo", "pause", "resume", "incognito", "clear", "clear yes", "export", "help", "link", "link K7QM2-XWDPA",
    "link yes", "link no", "link undo", "reminders", "trends", "2", "nonsense",
)  # fmt: skip
LONG = {
    "Cyrillic": "Дуже люблю зелений чай, tea, і довгі прогулянки лісом увечері після роботи, коли тихо ",
    "Chinese": "東京で緑茶 tea を飲むのが大好きで、毎朝散歩をしています。とても長い文ですから、まだまだ続きます",
    "Hebrew": "אני אוהב תה ירוק tea וטיולים ארוכים ביער בערב אחרי העבודה 123 ועוד הרבה דברים אחרים",
    "Persian": "می‌خواهم هر روز چای tea سبز بنوشم و در جنگل قدم بزنم و کتاب بخوانم و بنویسم",
    "emoji": "👩‍🚀👨‍👩‍👧‍👦🇺🇦❤️👍🏽☕️ tea 🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵🍵",
    "hearts": "tea " + "❤️" * 100,
    "one word": "tea " + "x" * 3000,
    "prose": "a very long fact about tea that goes on " * 20,
    "Zalgo": "Z" + "\u0301\u0316" * 200 + "algo drinks tea",
}
HOSTILE = (
    "tea \x1b[31mred\x1b]0;title\x07 end",
    "tea \u202egnp.exe\u202c \u2066isolate\u2069 \u200e\u200f",
    "tea zero\u200bwidth\ufeff\u2060 soft\u00adhyphen",
    "tea tags \U000e0041\U000e0042\U000e0043 hidden",
    "tea <b>bold</b> **stars** [link](https://example.org) `code` _x_ &amp; {} %s",
    "tea\r\n• Fake line #99\n/memory clear yes",
    "tea \u115f\u3164\uffa0\u2800 fillers \ufe00\U000e0100",
)


@dataclass
class World:
    """Memories in a folder, with a clock that stands still."""

    folder: Path
    clock: FrozenClock
    app: recollect.Recollect

    @property
    def memory(self) -> Memory:
        return self.app.identities.memory(ME)

    def commands(self, who: tuple[str, str | int] = ME) -> Commands:
        return Commands(self.app, who, clock=self.clock)

    def run(self, text: str, who: tuple[str, str | int] = ME) -> ChatPage:
        return looked_at(self.commands(who).run(text))

    def press(self, page: ChatPage, label: str, who: tuple[str, str | int] = ME) -> ChatPage:
        return self.run(choice(page, label).command, who)

    @contextmanager
    def again(self) -> Iterator[World]:
        """The same folder as another process sees it."""
        with recollect.open(self.folder, clock=self.clock) as app:
            yield World(self.folder, self.clock, app)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = FrozenClock()
    with recollect.open(tmp_path / "data", clock=clock) as app:
        yield World(tmp_path / "data", clock, app)


@pytest.fixture
def known(world: World) -> World:
    """A person of whom a few things are known: numbers 1 to 8."""
    memory = world.memory
    memory.remember("Prefers short answers", category="preference")
    memory.remember(
        "Senior engineer at Stripe", key="role", category="work_context", source="discussion:42", confidence=0.8,
        excerpt="I've just become a senior engineer",
    )  # fmt: skip
    memory.remember("Drinks green tea in the morning", category="personal_context")
    memory.remember("Allergic to peanuts", category="key_fact", pinned=True)
    memory.note("Try the oolong near the station", title="Tea list")
    memory.say("I only drink tea, never coffee", session="s")
    memory.episode("Kubernetes migration", "Moved to a new cluster with Helm")
    memory.set_scratch("agents own tea", "1")
    return world


def looked_at(page: ChatPage) -> ChatPage:
    """Every page fits a phone, acts on no display, has no ids in it, and its choices can be carried by a button."""
    text = str(page)
    assert 0 < count_phone_lines(text) <= HEIGHT, text
    assert not re.search(r"\b(?:fact|note|message|daily|episode|observation|scratch|run)-[0-9a-z]{20}", text), text
    shown = text.replace("\n", "") + "".join(one.label for row in page.choices for one in row)
    for character in shown:
        kind = unicodedata.category(character)
        assert kind not in ("Cc", "Cs") and (kind != "Cf" or character in "\u200c\u200d\u2068\u2069"), repr(text)
    assert shown.count("\u2068") == shown.count("\u2069"), repr(text)
    for row in page.choices:
        assert 0 < len(row) <= 3
        for one in row:
            assert len(one.command.encode()) <= 64 and 0 < cell_width(one.label) <= 30, one
    return page


def choice(page: ChatPage, label: str) -> Choice:
    return next(one for row in page.choices for one in row if one.label.startswith(label))


def labels(page: ChatPage) -> list[str]:
    return [one.label for row in page.choices for one in row]


def numbers(page: ChatPage) -> list[int]:
    return [line.number for line in page.lines if line.number is not None]


def remembered(memory: Memory) -> list[str]:
    return sorted(record.text for record in memory.read() if record.kind != "scratch")


# showing


def test_U1_memory_is_shown_by_sections_with_numbers(known: World) -> None:
    assert str(known.run("/memory")) == (
        "What I remember about you\n\n"
        "User Preferences\n• Prefers short answers #1\n\n"
        "Work Context\n• Role: Senior engineer at Stripe #2\n\n"
        "Personal Context\n• Drinks green tea in the morning #3\n\n"
        "Key Facts\n• Allergic to peanuts #4\n\n"
        "Notes\n• Tea list: Try the oolong near the… #5\n\n"
        "Past Discussions\n• Kubernetes migration: Moved to a n… #7\n"
        "And 1 message of our conversations."
    )


@pytest.mark.parametrize(
    "typed",
    ["/memory search tea", "/Memory  Search  tea", "/MEMORY@recollect_bot search tea", "/mem search tea", "search tea",
     " /memory\nsearch\ttea ", "SEARCH tea", "/memory_search tea", '/memory search "tea"', "／memory search tea"],
)  # fmt: skip
def test_U1_commands_are_understood_however_they_are_typed(known: World, typed: str) -> None:
    assert str(known.run(typed)) == str(known.run("search tea"))
    assert sorted(numbers(known.run(typed))) == [3, 5]


def test_U1_what_is_no_command_is_left_to_others() -> None:
    assert all(Commands.owns(text) for text in ("/memory", "/memory@bot pause", " /MEM x", "/memory_help"))
    assert not any(Commands.owns(text) for text in ("memory", "/memories", "/discuss memory", "my /memory", ""))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("serch tea", "search"), ("forgt tea", "forget"), ("delete tea", "forget"), ("stop", "pause"), ("clera", "clear"),
     ("find tea", "search"), ("hlep", "help")],
)  # fmt: skip
def test_U1_a_near_miss_is_suggested_and_one_press_away(known: World, typed: str, meant: str) -> None:
    page = known.run(f"/memory {typed}")
    assert f"Did you mean “{meant}”?" in str(page) and page.lines[0].style == "bad"
    assert choice(page, "Yes").command == f"{meant} {typed.partition(' ')[2]}".strip()
    assert "I don't know" not in str(known.press(page, "Yes"))
    assert "Did you mean" in str(known.run(f"/memory {typed}", STRANGER)), "for a person without a memory, too"


def test_U1_a_section_is_shown_by_its_name_and_others_are_offered(known: World) -> None:
    for name in ("work", "Work Context", "WORK", "show work", "show work 7"):
        assert str(known.run(name)) == "Work Context\n• Role: Senior engineer at Stripe #2"
    page = known.run("/memory prefrences")
    assert str(known.press(page, "Show User Pref")).startswith("User Preferences\n• Prefers short")
    assert numbers(known.press(known.run("/memory oolong"), "Search"))[0] == 5, "another word may be looked for"


def test_U1_sections_of_the_persons_own_making_are_shown_whatever_they_are_called(world: World) -> None:
    names = ["🌱" * 60, "Search", "2024", "עברית", "a" * 200, "Pets", "Notes", "Trips", "Food", "Music"]
    text = "# User Memory\n" + "".join(f"\n## {name}\n\n- tea number {n}\n" for n, name in enumerate(names))
    world.memory.remember("Allergic to peanuts", category="key_fact")
    world.memory.edit(text + "\n## Key Facts\n\n- Allergic to peanuts\n")
    first = world.run("")
    second = world.press(first, "More sections")
    assert len(numbers(first)) + len(numbers(second)) == len(names) + 1
    assert str(world.run("show 2024")).startswith("2024\n• tea number 2")
    assert str(world.run("show search")).startswith("Search\n")
    assert str(world.run("pets")).startswith("Pets\n")
    world.memory.edit(world.memory.show() + "\n## Pets\n\n" + "".join(f"- cat number {n}\n" for n in range(30)))
    page = world.run("pets")
    while "More ›" in labels(page):
        page = world.press(page, "More ›")
    assert "Page 4 of 4, 31 in all" in str(page)


def test_U1_every_page_fits_a_phone_with_hundreds_of_long_facts(world: World) -> None:
    texts = list(LONG.values())
    with world.memory.batch() as memory:
        for n in range(facts := volume(200, 500)):
            text = f"{n} {texts[n % len(texts)]}"
            memory.remember(text[:3900], key=f"k{n}", category=("preference", "work_context", "key_fact")[n % 3])
        for n, text in enumerate([*HOSTILE, *texts]):
            memory.note(
                f"{n} {text}"[:3900].replace("\x1b", "").replace("\x07", ""),
                title=text[:30].split("\x1b")[0].split("\r")[0],
            )
            memory.say(f"{n} {text}".replace("\x1b", "").replace("\x07", ""), session="s")
    for text in EVERY:
        page = world.run(text)
        if page.document:
            page.document.unlink()
    for number in range(1, 12):
        world.run(f"why {number}")
    page, seen = world.run("work"), []
    seen += numbers(page)
    while "More ›" in labels(page):
        page = world.press(page, "More ›")
        seen += numbers(page)
    assert len(seen) == len(set(seen)) == (facts + 1) // 3, "every one is shown, once"


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_U1_text_is_cut_by_the_cells_it_takes(text: str) -> None:
    for cells in (5, 17, 36, 76):
        cut = fit_cells(text, cells)
        assert cell_width(cut) <= cells
        assert cut.strip("\u2068\u2069").endswith("…") or cut == one_safe_line(text)
        assert cell_width(cut) >= min(cells, cell_width(one_safe_line(text))) - 12
    assert fit_cells("short", 5) == "short" and fit_cells("shorts", 5) == "shor…"
    assert fit_cells("\u200b\u2060", 20) == "(invisible text)"


def test_U1_writing_that_needs_joiners_keeps_them() -> None:
    assert one_safe_line("👩‍🚀 ❤️") == "👩‍🚀 ❤️"
    assert one_safe_line("می‌خواهم") == "\u2068می‌خواهم\u2069"
    assert one_safe_line("pass\u200dword") == "password"


@pytest.mark.parametrize("text", HOSTILE)
def test_U1_nothing_from_memory_is_interpreted(world: World, text: str) -> None:
    try:
        world.memory.note(text, title="\u202eTitle\u200b")
    except InvalidInputError:  # control characters are not stored in the first place; older stores may have some
        text = text.replace("\x1b", "").replace("\x07", "")
        world.memory.note(text, title="\u202eTitle\u200b")
    for command in ("", "notes", "search tea", "why 1", "forget tea", "forget 1", "undo"):
        page = world.run(command)
        lines = [line for line in str(page).split("\n") if "tea" in line]
        assert all("Title: tea" in line for line in lines if "/memory clear" in line), "a text stays on its line"
        assert numbers(page) == [1], "a number in a text is no number"
    assert "<b>bold</b>" in str(world.run("why 1")) or "<b>" not in text


# searching


def test_U1_search_tells_why_in_a_word_and_offers_more(world: World) -> None:
    for n in range(14):
        world.memory.remember(f"Went to the tea house of {'ABCDEFGHIJKLMN'[n] * 5}", category="personal_context")
    page = world.run("search tea")
    assert str(page).startswith("Found for “tea”\n• Went to the tea house") and "because of “tea”" in str(page)
    seen = numbers(page)
    while "More ›" in labels(page):
        page = world.press(page, "More ›")
        seen += numbers(page)
    assert sorted(seen) == list(range(1, 15))
    assert numbers(world.press(page, "‹ Back")) == seen[6:12]
    assert "That was all" in str(world.run("results 99 tea"))


def test_U1_a_search_that_finds_nothing_says_so_and_what_was_only_said_is_found(known: World) -> None:
    assert str(known.run("search zebra")).startswith("I remember nothing about “zebra”.")
    assert "Show everything" in labels(known.run("search zebra"))
    page = known.run("search coffee")
    assert "it was mentioned" in str(page) and "You: I only drink tea, never coffee #6" in str(page)


def test_U1_of_a_long_text_the_part_that_matches_is_shown(world: World) -> None:
    world.memory.note("Nothing of interest here. " * 60 + "The rhubarb grows behind the shed. " + "And so on. " * 60)
    assert "rhubarb" in str(world.run("search rhubarb"))


# why


def test_U1_why_tells_where_it_comes_from(known: World) -> None:
    assert str(known.run("why 2")) == (
        "Why I know this\nRole: Senior engineer at Stripe #2\n"
        "• It came up in a discussion on 12 Feb 2026.\n"
        "• Based on: “I've just become a senior engineer”\n"
        "• How sure I am: quite sure."
    )
    for other in ("why #2", "why senior engineer", "2", "#2", "/memory why № 2", "why ２"):
        assert str(known.run(other)) == str(known.run("why 2"))


def test_U1_why_tells_of_messages_agents_doubts_and_changes(known: World) -> None:
    said = known.memory.say("My flat is in Lviv", session="s")
    agent = known.memory.acting("tool:remember_fact", agent="research", trusted=False)
    agent.remember("Lives in Lviv", key="city", category="personal_context", messages=[said.record.id], source="tool:x")  # type: ignore[attr-defined]
    told = str(known.run("why city Lviv"))
    assert "City: Lives in Lviv" in told and "An assistant noted it on 12 Feb 2026." in told
    assert "Written by “research”." in told and "Based on: “My flat is in Lviv”" in told
    assert "you did not write" in told
    known.clock.tick(days=3)
    known.memory.update("city", "Odesa")
    told = str(known.run("why city Odesa"))
    assert "City: Odesa" in told and "Changed 1 time, last on 15 Feb 2026, by you." in told
    number = numbers(known.run("why city Odesa"))[0]
    known.run(f"forget {number}")
    page = known.run(f"why {number}")
    assert "Forgotten on 15 Feb 2026, by you." in str(page)
    assert "City: Odesa" in str(known.press(page, "Restore it"))
    assert "Forgotten" not in str(known.run(f"why {number}"))


# forgetting


def test_U1_forget_lists_asks_and_takes_only_what_was_listed(known: World) -> None:
    before = remembered(known.memory)
    page = known.run("/memory forget tea")
    assert str(page) == (
        "3 things about “tea”:\n• Tea list: Try the oolong near the station #5\n• Drinks green tea in the morning #3\n"
        "• You: I only drink tea, never coffee #6\nForget them?"
    )
    assert labels(page) == ["Forget these 3", "Keep"] and remembered(known.memory) == before
    assert "nothing was changed" in str(known.press(page, "Keep")) and remembered(known.memory) == before
    known.memory.remember("Has a tea cosy", category="personal_context")
    done = known.press(page, "Forget these 3")
    assert str(done).startswith("Forgotten: 3 things.") and sorted(numbers(done)) == [3, 5, 6]
    assert remembered(known.memory) == sorted(
        set(before) - {r.text for r in _gone(known, 3, 5, 6)} | {"Has a tea cosy"}
    )
    assert labels(done) == ["Undo"], "nothing else was found when it was listed"
    assert numbers(known.run("forget tea")) == [9]
    undone = known.press(done, "Undo")
    assert "I remember again:" in str(undone) and remembered(known.memory) == sorted([*before, "Has a tea cosy"])
    assert "I no longer remember:" in str(known.press(undone, "Undo that"))
    assert numbers(known.run("forget tea")) == [9]


def _gone(world: World, *wanted: int) -> list[recollect.Record]:
    return [world.memory.numbered(number) for number in wanted]


def test_U1_forget_goes_through_more_than_fits_a_page(world: World) -> None:
    for n in range(21):
        world.memory.remember(f"Tea house number {n} is {'nice good fine'.split()[n % 3]}", category="key_fact")
    page, seen = world.run("forget tea"), []
    assert str(page).startswith("21 things about “tea”, the first 8:")
    seen += numbers(page)
    following = choice(page, "Show 13 others").command
    world.press(page, "Forget these 8")
    page = world.run(following)
    assert str(page).startswith("13 things more about “tea”, the first 8:")
    seen += numbers(page)
    page = world.press(page, "Show 5 others")
    seen += numbers(page)
    assert seen == list(range(21, 0, -1)) and "others" not in str(labels(page))
    world.press(page, "Forget these 5")
    assert numbers(world.run("forget tea")) == list(range(13, 5, -1))
    assert "That was all" in str(world.run("next 1 tea"))


def test_U1_a_button_carries_as_many_numbers_as_it_can(world: World) -> None:
    now = world.clock()
    asker = Asker(app=world.app, identity=world.commands()._identity, memory=world.memory, now=now)
    record = Fact(id="fact-1", content="tea", created_at=now, updated_at=now, valid_from=now)
    many: list[tuple[int, recollect.Record]] = [(10**11 + n, record) for n in range(20)]
    page = looked_at(forget_commands._ask_what_goes(asker, "tea" * 30, many))
    assert labels(page)[0] == f"Forget these {len(numbers(page))}" and len(numbers(page)) == 3


def test_U1_what_changed_since_it_was_listed_is_asked_about_again(known: World) -> None:
    page = known.run("forget tea")
    known.memory.update(known.memory.numbered(3).id, "Drinks coffee now and had enough of tea")
    again = known.press(page, "Forget these 3")
    assert "changed since" in str(again) and "Drinks coffee now" in str(again)
    assert len(known.memory.read(status="archived")) == 0
    assert str(known.press(again, "Forget these 3")).startswith("Forgotten: 3 things.")
    twice = known.press(again, "Forget these 3")
    assert str(twice) == "This is already forgotten." and sorted(numbers(known.press(twice, "Undo"))) == [3, 5, 6]
    page = known.run("forget tea")
    known.memory.pin(known.memory.numbered(3).id)
    assert str(known.press(page, "Forget these 3")).startswith("Forgotten: 3 things."), "it says the same as before"


def test_U1_what_was_forgotten_elsewhere_meanwhile_is_said(known: World) -> None:
    page = known.run("forget tea")
    with known.again() as other:
        assert str(other.run("forget 3")).startswith("Forgotten.\n• Drinks green tea")
    assert "#3 was already forgotten." in str(known.run("forget 3"))
    again = known.press(page, "Forget these 3")
    assert "#3 was already forgotten." in str(again) and numbers(again) == [5, 6]
    with known.again() as other:
        other.memory.erase(known.memory.numbered(5).id)
    assert "There is no #5." in str(known.run("forget 5")) and "There is no #5." in str(known.run("why 5"))


def test_U1_of_many_presses_at_once_one_forgets_and_one_erases(known: World) -> None:
    for asked, label, done in (
        ("forget tea", "Forget these", "Forgotten: 3"),
        ("clear", "Erase", "Everything is erased"),
    ):
        page = known.run(asked)
        with ThreadPoolExecutor(8) as pool:
            told = [str(one) for one in pool.map(lambda _, page=page, label=label: known.press(page, label), range(8))]
        assert sum(one.startswith(done) for one in told) == 1
    assert known.memory.verify() == []


def test_U1_numbers_are_those_that_are_shown_and_nobody_elses(known: World) -> None:
    known.app.identities.memory(STRANGER).remember("Secret of another person")
    known.memory.update("role", "Staff engineer")
    assert "There is no #9." in str(known.run("forget 9")), "a change of #2, and no record"
    assert "There is no #8." in str(known.run("forget 8")), "working memory is not shown"
    for number in (2, 9, 99, 10**11):
        assert str(known.run(f"forget {number}", STRANGER)).startswith(f"There is no #{number}.")
        assert str(known.run(f"why {number}", STRANGER)).startswith(f"There is no #{number}.")
    assert "Secret" not in str(known.run("")) and "Secret" in str(known.run("", STRANGER))
    page = known.run("forget #1, 2 and 99")
    assert str(page).startswith("Forgotten: 2 things.") and "There is no #99." in str(page)


def test_U1_a_topic_may_be_a_number_and_everything_is_no_topic(world: World) -> None:
    for n in range(12):
        world.memory.remember(f"Read chapter {'abcdefghijkl'[n] * 4} of 1984", category="reading_history")
    assert "Look for “555 1234”" in labels(world.run("forget 555 1234"))
    page = world.press(world.run("forget 1984"), "Look for")
    assert str(page).startswith("12 things about “1984”")
    left = world.press(world.press(page, "Forget these 8"), "What is left?")
    assert str(left).startswith("4 things about “1984”") and len(world.memory.read()) == 4
    assert "Everything I know" not in str(world.run("forget everything")) and len(world.memory.read()) == 4
    assert "Erase everything I know" in str(world.press(world.run("forget all"), "See what would go"))


def test_U1_a_topic_without_a_match_offers_what_is_close(known: World) -> None:
    page = known.run("forget engineer in Berlin")
    assert "I remember nothing about “engineer in Berlin”." in str(page) and "#2" in str(page)
    assert known.memory.numbered(2).status == "active"
    assert str(known.press(page, "Forget #2")).startswith("Forgotten.\n• Role: Senior engineer")


# undo


def test_U1_undo_takes_back_the_last_change_but_not_what_was_said(known: World) -> None:
    known.memory.update("role", "Staff engineer")
    for n in range(3):
        known.memory.say(f"Something said {n}", session="s")
    page = known.run("/memory undo")
    assert str(page) == "Undone.\nI remember again:\n• Role: Senior engineer at Stripe #2"
    assert str(known.press(page, "Undo that")) == "Undone.\nI remember again:\n• Role: Staff engineer #2"
    known.run("undo")
    assert "Kubernetes" in str(known.run("undo")), "and then the one before"
    assert len(known.memory.read(kind="message")) == 4


def test_U1_undo_after_a_setting_asks_which_of_the_two_is_meant(known: World) -> None:
    for setting in ("pause", "resume", "trends on", "incognito"):
        known.run(setting)
        page = known.run("undo")
        assert str(page).startswith("Your last change was a setting") and "Kubernetes" in str(page)
        assert len(known.memory.history()) == known.memory.history()[-1].seq and 7 in numbers(known.run(""))
    assert "I no longer remember:\n• Kubernetes" in str(known.press(page, "Undo that"))


def test_U1_undo_of_a_number_takes_back_its_own_last_change(known: World) -> None:
    known.run("forget 3")
    known.memory.update("role", "Staff engineer")
    assert str(known.run("undo 3")) == "Undone.\nI remember again:\n• Drinks green tea in the morning #3"
    assert "I no longer remember:\n• Drinks green tea" in str(known.run("undo 3")), "that it was learned at all"
    assert str(known.run("undo 3")) == "There is nothing to undo."
    assert "There is no #99." in str(known.run("undo 99"))


def test_U1_undo_takes_back_what_is_left_of_a_change(known: World) -> None:
    forgotten = known.press(known.run("forget tea"), "Forget these 3")
    known.run("undo 3")
    page = known.press(forgotten, "Undo")
    assert numbers(page) == [6, 5] and "The rest was changed again" in str(page)
    assert numbers(known.press(page, "Undo that")) == [5, 6] and "#3" in str(known.run(""))
    assert numbers(known.run("undo")) == [6, 5], "the last change that holds, as far as it does"
    assert known.memory.verify() == []


def test_U1_what_can_no_longer_be_undone_is_said_kindly(known: World) -> None:
    forgotten = known.run("forget 2")
    known.press(forgotten, "Undo")
    assert str(known.press(forgotten, "Undo")) == "That was already undone."
    forgotten = known.run("forget 2")
    known.memory.remember("Baker", key="role", category="work_context")
    assert "can no longer be undone" in str(known.press(forgotten, "Undo"))
    forgotten = known.run("forget 3")
    known.memory.erase(known.memory.numbered(3).id)
    assert "can no longer be undone" in str(known.press(forgotten, "Undo"))
    assert str(known.run("undo run-nonsense")) == "There is nothing to undo."
    assert "For example: /memory undo 12" in str(known.run("undo the thing"))


# pause, incognito, consents


def test_P7_pause_resume_and_incognito_say_what_they_mean_and_may_be_repeated(known: World) -> None:
    for command, mode, first, second in (
        ("pause on", "paused", "Memory is paused.", "Memory is already paused."),
        ("incognito", "incognito", "You are incognito now.", "You are already incognito."),
        ("resume", "on", "Memory is on again.", "Memory is on."),
    ):
        assert str(known.run(command)).startswith(first) and known.memory.mode == mode
        entries = len(known.memory.history())
        assert str(known.run(command)).startswith(second) and known.memory.mode == mode
        assert len(known.memory.history()) == entries
    assert "Memory is paused." in str(known.press(known.run("incognito"), "Pause"))
    assert known.press(known.run("pause on"), "Resume") and known.memory.mode == "on"


def test_C7_pause_toggles_and_a_message_that_is_delivered_twice_toggles_once(known: World) -> None:
    assert str(known.run("pause")).startswith("Memory is paused.") and known.memory.mode == "paused"
    assert str(known.run("pause")).startswith("Memory is on again.") and known.memory.mode == "on"
    assert known.run("pause off") and known.memory.mode == "on"
    assert "on or off" in str(known.run("pause perhaps")) and known.memory.mode == "on"
    for name in ("1", "2"):
        talk = Conversation(known.app, ME, place="chat", clock=known.clock)
        for mode in ("paused", "on"):
            for _ in range(2):
                talk.say("/memory pause", message=f"{name}-{mode}")
                assert known.memory.mode == mode


@pytest.mark.parametrize("mode", ["pause", "incognito"])
def test_P7_the_person_sees_and_removes_their_own_while_nothing_is_kept(known: World, mode: str) -> None:
    before = str(known.run("")).split("\n")
    known.run(mode)
    state = "Paused: nothing new is stored." if mode == "pause" else "Incognito: only you see this."
    page = known.run("")
    assert state in str(page) and [line for line in str(page).split("\n") if not line.startswith(state[:6])] == before
    assert 3 in numbers(known.run("search tea")) and numbers(known.run("why green tea")) == [3]
    assert known.memory.remember("New").done is False
    done = known.press(known.run("forget tea"), "Forget these 3")
    assert 3 not in numbers(known.run("personal")) and 3 in numbers(known.press(done, "Undo"))
    assert numbers(known.run("personal")) == [3]
    known.memory.erase(known.memory.numbered(4).id)
    assert 4 not in numbers(known.run(""))
    exported = known.run("export").document
    assert exported is not None and exported.stat().st_size > 0
    exported.unlink()
    assert "everything is erased" in str(known.press(known.run("clear"), "Erase everything")).lower()
    assert known.memory.mode == ("paused" if mode == "pause" else "incognito"), "and it stays so"


@pytest.mark.parametrize("mode", ["resume", "pause", "incognito"])
def test_T6_reminders_and_trends_are_switched_by_the_person(known: World, mode: str) -> None:
    known.run(mode)
    before = known.memory.mode
    assert str(known.run("reminders")).startswith("Reminders: on.")
    off = known.press(known.run("/memory reminders"), "Turn off")
    assert str(off).startswith("Reminders: off.") and str(known.run("reminders")).startswith("Reminders: off.")
    assert str(known.run("trends")).startswith("Trends: off.") and known.memory.consents() == ()
    assert str(known.run("trends on")).startswith("Trends: on.") and known.memory.consents() == ("trends",)
    assert str(known.run("trends on")).startswith("Trends: on.")
    assert "on or off" in str(known.run("trends perhaps")) and known.memory.consents() == ("trends",)
    assert known.memory.mode == before
    known.run("resume")
    assert reminders_are_on(known.memory) is False
    known.run("reminders on")
    assert reminders_are_on(known.memory) is True


def test_P7_where_memory_is_switched_off_it_says_so(tmp_path: Path) -> None:
    clock = FrozenClock()
    with recollect.open(tmp_path, clock=clock) as app:
        app.identities.memory(ME).remember("Drinks tea")
    with recollect.open(tmp_path, clock=clock, enabled=False) as app:
        off = World(tmp_path, clock, app)
        assert "Memory is turned off here" in str(off.run("")) and "Drinks tea" in str(off.run(""))
        for command in ("pause", "resume"):
            assert "turned off here for everyone" in str(off.run(command))
        assert "cannot be changed" in str(off.run("reminders off"))
        assert "nothing can be linked" in str(off.run("link"))
        assert str(off.run("forget 1")).startswith("Forgotten.")


# the whole memory


def test_U1_clear_tells_what_goes_and_asks_again_if_memory_changed(known: World) -> None:
    page = known.run("/memory clear")
    assert "• 6 memories\n• 1 message" in str(page) and labels(page) == ["Erase everything", "Keep"]
    known.memory.remember("Has a cat")
    again = known.press(page, "Erase everything")
    assert "changed since I asked" in str(again) and "• 7 memories" in str(again) and len(known.memory.read()) == 9
    done = known.press(again, "Erase everything")
    assert str(done).startswith("Everything is erased.\n• 9 memories and messages, including old ones\n")
    assert "cannot be undone" in str(done) and known.memory.read(status="all") == []
    assert "I don't remember anything about you yet." in str(known.press(again, "Erase everything"))
    for command in ("", "clear", "search tea", "undo", "forget 3"):
        assert "tea" not in str(known.run(command)).replace("“tea”", "")
    assert "There is nothing to undo." in str(known.run("undo"))


def test_U1_a_bare_yes_or_a_made_up_one_clears_nothing(known: World) -> None:
    for typed in ("clear yes", "clear yes 8", "clear yes please", "clear all", "clear yes 8=000000", "clear y"):
        assert "Erase everything I know about you?" in str(known.run(typed))
    assert len(known.memory.read()) == 8


def test_R8_export_gives_an_archive_that_can_be_read_back(known: World, tmp_path: Path) -> None:
    page = known.run("/memory export")
    assert page.document is not None and page.document.name.startswith("memory-2026-02-12-")
    assert stat.S_IMODE(page.document.stat().st_mode) == 0o600
    with recollect.open(tmp_path / "other", clock=known.clock) as app:
        app.user("u").import_(page.document)
        assert remembered(app.user("u")) == remembered(known.memory)
    page.document.unlink()


# a person without a memory, and stores that fail


def test_U1_for_a_person_without_a_memory_commands_are_friendly_and_create_nothing(world: World) -> None:
    for text in EVERY:
        if text.partition(" ")[0] not in ("link", "pause", "incognito"):
            page = world.run(text)
            assert page.document is None and "did not work" not in str(page)
    world.run("undo 1")
    world.run("trends off")
    assert not world.folder.exists() or os.listdir(world.folder) == []
    assert str(world.run("forget tea")).startswith("I don't remember anything about you yet.")
    world.run("pause")
    assert world.memory.mode == "paused" and "Paused: nothing new is stored." in str(world.run(""))


class FailingStore(MemoryStore):
    """A store that fails as it is told, for those who write or for all."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: StoreError | None = None
        self.reads_too = False

    def user(self, user_id: str) -> MemoryUser:
        with self._guard:
            return self._users.setdefault(user_id, _FailingUser(user_id, self))


class _FailingUser(MemoryUser):
    def __init__(self, user_id: str, store: FailingStore) -> None:
        super().__init__(user_id)
        self._store = store

    @contextmanager
    def read(self) -> Iterator[MemoryReader]:
        if self._store.failing is not None and self._store.reads_too:
            raise self._store.failing
        with super().read() as reader:
            yield reader

    @contextmanager
    def write(self) -> Iterator[MemoryTransaction]:
        if self._store.failing is not None:
            raise self._store.failing
        with super().write() as transaction:
            yield transaction


@pytest.mark.parametrize(
    ("error", "told"),
    [(StoreBusyError, "busy or cannot be reached"), (StoreReadOnlyError, "read-only"), (StoreFullError, "no space left"),
     (StoreError, "cannot be opened")],
)  # fmt: skip
def test_U1_a_store_that_fails_is_told_in_plain_words_and_nothing_is_lost(
    error: Callable[[], StoreError], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, clock = FailingStore(), FrozenClock()
    with recollect.open(store, clock=clock) as app, caplog.at_level(logging.DEBUG):
        world = World(Path(), clock, app)
        world.memory.remember("Drinks green tea", key="drink")
        store.failing = error()
        for command in ("forget 1", "undo", "pause", "trends on", "reminders off"):
            page = world.run(command)
            assert told in str(page) and page.lines[0].style == "bad"
            assert labels(page) in (["Try again"], [])
        assert "Drinks green tea" in str(world.run("")) and "green tea" not in caplog.text
        clear = world.run("clear")
        assert told in str(world.press(clear, "Erase everything"))
        store.failing = None
        assert len(world.memory.read()) == 1 and world.memory.mode == "on"
        assert str(world.run("forget 1")).startswith("Forgotten.")
        assert str(world.run("link")) == "Channels cannot be linked here."


def test_R8_an_export_that_fails_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = FailingStore(), FrozenClock()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with recollect.open(store, clock=clock) as app:
        world = World(Path(), clock, app)
        world.memory.remember("Drinks green tea")
        store.failing, store.reads_too = StoreBusyError(), True
        assert "busy or cannot be reached" in str(world.run("export")) and os.listdir(tmp_path) == []
        store.failing = None
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
        assert "cannot be opened right now" in str(world.run("export"))


def test_U1_a_damaged_store_is_left_as_it_is(known: World) -> None:
    known.app.close()
    [database] = known.folder.rglob("memory.db")
    for beside in database.parent.glob(database.name + "-*"):
        beside.unlink()
    damaged = b"this is no database " * 500
    database.write_bytes(damaged)
    with known.again() as other:
        for text in EVERY:
            if text.partition(" ")[0] not in ("help", "link", "keep"):
                page = other.run(text)
                assert page.document is None and ("damaged" in str(page) or "For example" in str(page)), (
                    text,
                    str(page),
                )
    assert database.read_bytes() == damaged


def test_U2_a_damaged_table_of_channels_is_left_as_it_is(known: World) -> None:
    known.run("link")
    known.app.close()
    for file in known.folder.glob("identities.db*"):
        file.unlink()
    (known.folder / "identities.db").write_bytes(b"this is no database " * 500)
    with known.again() as other:
        assert "damaged" in str(other.run("")) and "damaged" in str(other.run("link yes"))
        assert other.commands().waiting() is None


def test_U1_a_memory_file_that_cannot_be_read_is_told_once_a_page(known: World) -> None:
    [file] = known.folder.rglob("MEMORY.md")
    file.write_bytes(b"\xff\xfe not text")
    for command in ("forget 3", "undo", "search tea"):
        assert str(known.run(command)).count("MEMORY.md was not changed") == 1
    assert file.read_bytes() == b"\xff\xfe not text"


def test_U1_a_memory_file_edited_by_hand_is_shown_and_remarks_are_told(known: World) -> None:
    [file] = known.folder.rglob("MEMORY.md")
    file.write_text(file.read_text() + "- Plays the cello\n- The key is sk-proj-a8Fj3kLm9Qw2Er5Ty7Ui1Op4As6Df8Gh\n")
    page = known.run("forget cello")
    assert "Plays the cello" in str(page)
    assert "stays in your file but is not remembered" in str(page)


# odd input


@pytest.mark.everyday(6)
@pytest.mark.parametrize("command", ["", "search", "forget", "why", "undo", "show", "more", "next", "results", "clear yes",
                                     "link", "reminders", "trends", "pause", "export", "keep", "help"])  # fmt: skip
def test_U1_odd_input_gets_a_friendly_line(known: World, command: str) -> None:
    before = known.memory.read()
    odd = ["x" * 10_000, "'; DROP TABLE records; --", "🍵" * 300, "99999999999999999999999", "-1", "0", "\x00\ud800\x1b[0m",
           "..", "../../etc/passwd", "\u202e\u200b", "%s {0} ${x}", "=", "12 =", "1 =000000", "#", '"', "run-", "1,",
           "١٢٣", "½", "/memory /memory clear", "-" * 200, "1 " * 400, "*", "tea " * 200, "1, " * 300 + "x"]  # fmt: skip
    for text in odd:
        page = known.run(f"/memory {command} {text}")
        assert "did not work" not in str(page), (command, text)
        if page.document:
            page.document.unlink()
    if command not in ("forget", "undo", "pause", "reminders"):
        assert known.memory.read() == before
    assert known.run("/memory " + command + "1" * 5000)


def test_U1_every_choice_of_every_page_runs(known: World) -> None:
    waiting = [known.run(text) for text in (*EVERY, "forget engineer", "pause", "prefrences", "serch tea", "forget 77")]
    tried: set[str] = set()
    while waiting:
        page = waiting.pop()
        if page.document:
            page.document.unlink()
        for one in (one for row in page.choices for one in row):
            kind = re.sub(r"=\w+|run-\w+|\d+", "N", one.command)
            if kind not in tried:
                tried.add(kind)
                answer = known.run(one.command)
                assert "did not work" not in str(answer) and "I don't know" not in str(answer), one
                waiting.append(answer)
    assert {"undo N", "clear yes NN", "forget N N", "link new", "keep"} <= tried, tried


# linking


def _code(page: ChatPage) -> str:
    found = re.search(r"/memory link (\S+)", str(page))
    assert found
    return found[1]


def test_U2_two_channels_are_linked_by_a_code_that_both_confirm(known: World) -> None:
    known.app.identities.memory(TERMINAL).remember("Lives in Lviv", category="personal_context")
    shown = known.run("/memory link")
    assert "works once, within 10 minutes" in str(shown) and known.commands().waiting() is None
    asked = known.run(f"/memory link {_code(shown).lower()}", TERMINAL)
    assert str(asked).startswith("Link this channel with Telegram?\n• Here: 1 thing remembered\n• There: 8 things")
    waiting = known.commands().waiting()
    assert waiting is not None and str(waiting).startswith("Link this channel with the terminal?")
    assert "Drinks" not in str(asked) and "Lviv" not in str(waiting), "nothing of what the other remembers"
    assert str(known.run("/memory link")) == str(waiting), "a code is no answer to a question"
    half = known.press(asked, "Yes", TERMINAL)
    assert "Now say yes on Telegram too" in str(half) and known.commands(TERMINAL).waiting() is None
    done = known.press(looked_at(waiting), "Yes")
    assert "this channel and the terminal share one memory now" in str(done) and "until 14 Mar 2026" in str(done)
    assert str(known.run("", TERMINAL)) == str(known.run("")) and "Lives in Lviv" in str(known.run(""))
    assert known.commands().waiting() is None and known.commands(TERMINAL).waiting() is None
    assert "already share one memory" in str(known.run(f"link {_code(known.run('link new'))}", TERMINAL))


@pytest.mark.parametrize("who", [ME, TERMINAL])
def test_U2_a_link_is_undone_from_either_side(known: World, who: tuple[str, str | int]) -> None:
    known.app.identities.memory(TERMINAL).remember("Lives in Lviv")
    before = str(known.run(""))
    known.run(f"link {_code(known.run('link'))}", TERMINAL)
    known.run("link yes")
    known.run("link yes", TERMINAL)
    asked = known.run("link undo", who)
    assert "Lives in Lviv" in str(known.run("")), "it asks first"
    assert "nothing was changed" in str(known.press(asked, "Keep", who))
    assert "Unlinked." in str(known.press(asked, "Unlink", who))
    assert str(known.run("")) == before and "Lives in Lviv" in str(known.run("", TERMINAL))
    assert "nothing is linked here" in str(known.press(asked, "Unlink", who))


def test_U2_undo_does_not_take_a_link_apart(known: World) -> None:
    known.app.identities.memory(TERMINAL).remember("Lives in Lviv")
    known.run(f"link {_code(known.run('link'))}", TERMINAL)
    known.run("link yes")
    known.run("link yes", TERMINAL)
    assert "Kubernetes" in str(known.run("undo")) and "Lives in Lviv" in str(known.run(""))


def test_R7_clear_says_that_a_link_is_final(world: World) -> None:
    for who in (ME, TERMINAL):
        world.app.identities.memory(who).remember(f"Lives on {who[0]}")
    world.run(f"link {_code(world.run('link'))}", TERMINAL)
    world.run("link yes")
    world.run("link yes", TERMINAL)
    assert "link can no longer be undone" in str(world.press(world.run("clear"), "Erase everything"))


def test_U2_choices_offered_before_a_link_touch_nothing_of_the_other_memory(world: World) -> None:
    for who, drinks in ((ME, "tea"), (TERMINAL, "coffee")):
        for n in range(4):
            world.app.identities.memory(who).remember(f"Likes {drinks} of {'abcd'[n] * 4}")
    world.run("forget 4", TERMINAL)
    forget, clear = world.run("forget coffee", TERMINAL), world.run("clear", TERMINAL)
    back = world.run("forget 4", TERMINAL)
    world.run("forget 1")  # so that the journals are equally long
    world.run(f"link {_code(world.run('link'))}", TERMINAL)
    world.run("link yes")
    world.run("link yes", TERMINAL)
    before = remembered(world.memory)
    assert "changed since" in str(world.press(forget, "Forget these 3", TERMINAL))
    assert "changed since" in str(world.press(clear, "Erase everything", TERMINAL))
    assert "There is no #4." in str(world.press(back, "Restore it", TERMINAL))
    assert remembered(world.memory) == before


def test_U2_a_confirmation_is_for_one_memory_even_if_another_is_as_long(world: World) -> None:
    with world.app.identities.memory(TERMINAL).batch() as memory:
        for n in range(60):
            memory.say(f"Something said {n}", session="s")
    clear = world.run("clear", TERMINAL)
    length = len(world.app.identities.memory(TERMINAL).history())
    world.memory.remember("Drinks green tea")
    world.app.identities.memory(TERMINAL).clear()
    world.run(f"link {_code(world.run('link'))}", TERMINAL)
    world.run("link yes")
    world.run("link yes", TERMINAL)
    while len(world.memory.history()) < length:
        world.memory.say("More of it", session="t")
    assert len(world.memory.history()) == length
    assert "changed since I asked" in str(world.press(clear, "Erase everything", TERMINAL))
    assert "Drinks green tea" in str(world.run(""))


def test_U2_codes_that_do_not_work_say_why(known: World) -> None:
    code = _code(known.run("link"))
    assert "from this channel" in str(known.run(f"link {code}"))
    assert "doesn't look like a code" in str(known.run("link hello", STRANGER))
    known.clock.tick(seconds=601)
    assert "has expired" in str(known.run(f"link {code}", TERMINAL))
    code = _code(known.run("link new"))
    assert "nothing was linked" in str(known.run("link no")) and "No link was pending" in str(known.run("link no"))
    assert "used or withdrawn" in str(known.run(f"link {code}", TERMINAL))
    code = _code(known.run("link new"))
    asked = known.run(f"link {code.replace('-', ' ')}", TERMINAL)
    assert str(asked).startswith("Link this channel with Telegram?")
    assert str(known.run(f"link {code}", TERMINAL)) == str(asked), "typed twice, it is still asked"
    known.run("link no")
    for _ in range(5):
        known.run("link K7QM2-XWDPA", STRANGER)
    assert str(known.run("link K7QM2-XWDPA", STRANGER)) == "Too many wrong codes. Try again in 15 minutes."
    assert "No link is pending" in str(known.run("link yes"))


# elsewhere


def test_U1_the_same_on_postgresql(postgres_url: str) -> None:
    clock = FrozenClock()
    with recollect.open(postgres_url, clock=clock) as app:
        world = World(Path(), clock, app)
        assert str(world.run("")).startswith("I don't remember")
        for drink in ("green tea", "black tea", "coffee"):
            world.memory.remember(f"Drinks {drink} every day", category="preference")
        assert numbers(world.run("search tea")) and "Drinks coffee" in str(world.run(""))
        page = world.run("forget tea")
        with recollect.open(postgres_url, clock=clock) as other:
            World(Path(), clock, other).run("incognito")
        assert "Incognito" in str(world.run("")) and numbers(world.run("forget tea")) == numbers(page) == [2, 1]
        done = world.press(page, "Forget these 2")
        assert numbers(world.run("preferences")) == [3] and "again" in str(world.press(done, "Undo"))
        for odd in ("\x00", "99999999999", "undo run-\x00", "forget \x00 tea", "why \ud800"):
            assert "did not work" not in str(world.run(odd))
        clear = world.run("clear")
        assert "Everything is erased." in str(world.press(clear, "Erase everything"))


# the documentation


def _session(folder: Path) -> str:
    """The sample session of docs/commands.md, as it really goes."""
    clock = FrozenClock()
    with recollect.open(folder, clock=clock) as app:
        world = World(folder, clock, app)
        memory = world.memory
        memory.remember("Prefers short answers", category="preference")
        memory.remember(
            "Senior engineer at Stripe", key="role", category="work_context", source="discussion:42", confidence=0.8,
            excerpt="I've just become a senior engineer",
        )  # fmt: skip
        memory.remember("Drinks green tea in the morning", category="personal_context")
        memory.note("Try the oolong near the station", title="Tea list")
        told: list[str] = []

        def show(typed: str, page: ChatPage) -> ChatPage:
            rows = ["   ".join(f"[{one.label}]" for one in row) for row in page.choices]
            told.append("\n".join([f"> {typed}", "", str(page), *(["", *rows] if rows else [])]))
            return page

        show("/memory", world.run("/memory"))
        show("/memory search tea", world.run("/memory search tea"))
        show("/memory why 2", world.run("/memory why 2"))
        page = show("/memory forget tea", world.run("/memory forget tea"))
        page = show("[Forget these 2]", world.press(page, "Forget these 2"))
        show("[Undo]", world.press(page, "Undo"))
        show("/memory pause", world.run("/memory pause"))
        show("/memory serch tea", world.run("/memory serch tea"))
        show("/memory clear", world.run("/memory clear"))
    return "\n\n\n".join(told) + "\n"


def test_U1_the_session_in_the_documentation_is_what_happens(tmp_path: Path) -> None:
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    [sample] = re.findall(r"^```text\n(.*?)^```", text, re.M | re.S)
    assert sample == _session(tmp_path)


def test_U1_every_command_is_documented_and_in_the_help(world: World) -> None:
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    told = re.findall(r"^• /memory (\w+)", str(world.run("help")), re.M)
    assert len(told) >= 13
    for name in told:
        assert f"| `/memory {name}" in text, name
    assert all(cell_width(line) <= WIDTH for line in str(world.run("help")).split("\n"))
