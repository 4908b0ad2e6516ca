"""The Telegram bot, over real HTTP against a Telegram of our own, with people on the other side."""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.extract import extract_all
from recollect.agents.models import configured_model
from recollect.config import Config
from recollect.errors import ConfigError, InvalidInputError, QueueFullError
from recollect.surfaces.chat.commands import Commands
from recollect.surfaces.chat.conversation import Conversation
from recollect.surfaces.chat.page import ChatLine, Choice, chat_page
from recollect.surfaces.telegram import Bot, Post
from recollect.surfaces.telegram.bot import BotError
from recollect.surfaces.telegram.rendering import LONGEST, parse_button, render_messages, telegram_length
from recollect.surfaces.telegram.sent_log import LastAction, SentLog
from recollect.surfaces.telegram.updates import BotIdentity, MessageUpdate, read_update
from recollect.testing.models import Fail, ModelRequest, ModelServer, Say, Stall, Turn
from recollect.testing.telegram import TelegramChat, TelegramMessage
from tests.fakes.telegram import FaultyTelegramServer, Phone
from tests.program import ProgramProcess

pytestmark = pytest.mark.filterwarnings("ignore:.*PTB_TIMEDELTA")

GOT_IT = "Got it, I'll remember that."


class Clock:
    """The time, which can be moved on."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(timezone.utc) + self.ahead


@dataclass
class House:
    """A Telegram, and a bot in it."""

    server: FaultyTelegramServer
    app: recollect.Recollect
    bot: Bot
    clock: Clock

    def person(self, name: str = "Ann", **more: Any) -> Phone:
        return self.server.user(name, **more)

    def ask(self, person: Phone, text: str, chat: TelegramChat | None = None, **more: Any) -> TelegramMessage:
        """Say something, and get the answer to it."""
        return (chat or person.private).wait_for_reply(person.says(text, chat, **more))

    def memory(self, person: Phone) -> recollect.Memory:
        return self.app.identities.memory(("telegram", person.id))

    def press(self, person: Phone, label: str, message: TelegramMessage) -> TelegramMessage:
        """Press a button of a page, and get the page that stands in its place then."""
        before = message.text
        person.presses(label, message).waits()
        self.server.wait_until(lambda: message.text != before)
        return message

    def settle(self) -> None:
        """Until all that was said has been dealt with."""
        self.server.wait_until(lambda: self.server.pending == 0)
        _until(lambda: not sum(self.bot._queue.depth()[state] for state in ("ready", "running")))


@contextmanager
def _house(root: Path, server: FaultyTelegramServer | None = None, **more: Any) -> Iterator[House]:
    clock = Clock()
    settings = {name: more.pop(name) for name in ("model", "model_key") if name in more}
    with server or FaultyTelegramServer() as telegram, recollect.open(root, clock=clock, **settings) as app:
        model = configured_model(app.config)
        try:
            with Bot(app, telegram.token, url=telegram.url, model=model, clock=clock, **more) as bot:
                telegram.wait_until_listening()
                yield House(telegram, app, bot, clock)
        finally:
            if model is not None:
                model.close()
        assert telegram.problems == []


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with _house(tmp_path) as house:
        yield house


def _until(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Until something holds that no event tells of."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def _buttons(message: TelegramMessage) -> list[str]:
    return [label for row in message.labels for label in row]


def _from_bot(chat: TelegramChat) -> list[TelegramMessage]:
    return [one for one in chat.messages if one.is_by_the_bot]


def _draw(house: House, *chats: TelegramChat) -> None:
    """For whoever runs the tests with -s: how it looks."""
    for chat in chats:
        print(f"\n--- {chat.title}\n{chat}")


# the checklist of the design, as somebody with a phone would go through it


def test_U2_the_manual_checklist_on_telegram(house: House) -> None:
    ann = house.person()
    memory = house.memory(ann)
    assert "Hello!" in house.ask(ann, "/start").text
    # a discussion, with the role mentioned
    assert "📖 Discussing: PostgreSQL 18 Released" in house.ask(ann, "/discuss PostgreSQL 18 Released").text
    house.ask(ann, "I'm a senior backend engineer at Stripe, so this matters to me.")
    # "remember that …" is written at once, and confirmed with what was kept
    told = house.ask(ann, "Remember that I prefer technical articles")
    assert (
        GOT_IT in told.text and "✓ Remembered: Prefers technical articles" in told.text and _buttons(told) == ["Undo"]
    )
    assert "- Prefers technical articles" in memory.show()
    assert "Stripe" not in memory.show()
    ended = house.ask(ann, "/end")
    assert "Ended: PostgreSQL 18 Released" in ended.text and "Stripe" in ended.text
    assert "- Company: Stripe" in memory.show()
    # 👍 on three posts of one topic, from the digest of a program
    titles = ("PostgreSQL vacuum internals", "Scaling PostgreSQL to 10 TB", "PostgreSQL 18 Released")
    for number, title in enumerate(titles):
        assert house.bot.deliver(ann.id, Post(id=f"post-{number}", title=title, topics=["PostgreSQL"]))
        ann.reacts("👍", ann.waits_for(lambda one, title=title: one.text == title))  # type: ignore[misc]
    _until(lambda: len(memory.interactions(kinds=["reaction"])) == 3)
    extract_all([memory], house.clock().date(), extractor=house.app.extractor(), clock=house.clock)
    assert "Interested in PostgreSQL" in memory.show()
    # /memory shows what is stored
    shown = house.ask(ann, "/memory")
    for line in ("Prefers technical articles", "Company: Stripe", "Interested in PostgreSQL"):
        assert f"• {line}" in shown.text
    # a search, ranked, and a past discussion
    found = house.ask(ann, "/memory search past discussion of PostgreSQL 18")
    assert "PostgreSQL 18 Released" in found.text
    # forget a topic: lists, asks, forgets; and undo
    house.ask(ann, "remember that I like distributed systems")
    asked = house.ask(ann, "/memory forget distributed systems")
    assert "Forget" in _buttons(asked)[0] and "distributed systems" in memory.show()
    done = house.press(ann, _buttons(asked)[0], asked)
    assert "Forgotten" in done.text and "distributed systems" not in memory.show()
    house.press(ann, "Undo", done)
    assert "distributed systems" in memory.show()
    # paused: nothing is kept, and nothing extracted
    assert "paused" in house.ask(ann, "/memory pause").text
    house.ask(ann, "Remember that I moved to Lviv")
    run = extract_all([memory], house.clock().date(), extractor=house.app.extractor(), clock=house.clock)
    assert "1 skipped" in str(run) and "Lviv" not in memory.show()
    assert "on again" in house.ask(ann, "/memory resume").text
    # the whole of it as a file
    ann.says("/memory export")
    file = ann.waits_for(lambda one: one.document is not None).document
    house.settle()
    assert file is not None and not (Path(tempfile.gettempdir()) / file.name).exists()
    assert "MEMORY.md" in " ".join(zipfile.ZipFile(BytesIO(file.content)).namelist())
    # clear: asks, and erases
    asked = house.ask(ann, "/memory clear")
    assert "Stripe" in memory.show() and _buttons(asked) == ["Erase everything", "Keep"]
    house.press(ann, "Erase everything", asked)
    assert "Stripe" not in memory.show() and memory.read() == []
    _draw(house, ann.private)


def test_U2_memory_stands_in_the_prompt_of_a_discussion_and_a_slow_model_delays_nobody_else(tmp_path: Path) -> None:
    hurry = threading.Event()

    def model(asked: ModelRequest) -> Turn:
        return Stall(until=hurry, then=Say("At last.")) if "slowly" in asked.text else Say("It depends on the load.")

    with ModelServer(model) as models:  # noqa: SIM117
        with _house(tmp_path, model=f"{models.openai_url}#test", model_key="test") as house:
            ann, bo = house.person("Ann"), house.person("Bo")
            house.ask(ann, "Remember that I work with PostgreSQL")
            house.ask(ann, "/discuss CockroachDB pricing")
            answer = house.ask(ann, "What does it cost?")
            assert answer.text == "It depends on the load." and any(
                "Works with PostgreSQL" in (one.system or "") or "PostgreSQL" in (one.system or "")
                for one in models.requests[-1:]
            )
            slow = ann.says("Think slowly about it")
            house.server.wait_until(lambda: ann.private.action == "typing")
            after = ann.says("/memory")
            assert house.ask(bo, "Hello there").text == "It depends on the load."
            assert _from_bot(ann.private)[-1].order < slow.order  # in order: the command waits for the answer before it
            hurry.set()
            assert ann.private.wait_for_reply(slow).text == "At last."
            assert "What I remember" in ann.waits_for("What I remember", after=after).text
            _draw(house, ann.private)
    assert models.problems == []


def test_U2_a_reply_to_a_delivered_post_discusses_it_and_the_buttons_work(house: House) -> None:
    ann = house.person()
    house.ask(ann, "/start")
    post = Post(
        id="p1", title="Rust <async> & runtimes", text="Tokio or not?", url="https://example.org/1", topics=["rust"]
    )
    assert house.bot.deliver(ann.id, post) and not house.bot.deliver(ann.id, post), "once"
    shown = ann.waits_for("Tokio or not?")
    assert shown.text == "Rust <async> & runtimes\nTokio or not?\nhttps://example.org/1"
    assert ann.presses("⭐ Save", shown).waits().text == "Saved."
    assert ann.presses("⭐ Save", shown).waits().text == "You already saved this."
    begun = house.ask(ann, "I would pick tokio for that", reply_to=shown)
    assert begun.text.startswith("📖 Discussing: Rust <async> & runtimes")
    again = house.ask(ann, "And it is fast", reply_to=shown)
    assert "Discussing" not in again.text
    house.clock.ahead += timedelta(minutes=31)
    assert "Discussing: Rust" in house.ask(ann, "Back to it", reply_to=shown).text, "it had fallen silent"
    ended = house.ask(ann, "/end")
    assert ended.text.startswith("Ended: Rust <async>")
    ann.presses("💬 Discuss", shown).waits()
    assert "Discussing" in ann.waits_for("📖 Discussing: Rust", after=ended).text
    ann.reacts("👎", shown)
    memory = house.memory(ann)
    _until(lambda: memory.interactions(kinds=["reaction"]))
    (reaction,) = memory.interactions(kinds=["reaction"])
    assert (reaction.value, reaction.item, reaction.topics) == ("👎", "p1", ("rust",))
    (save,) = memory.interactions(kinds=["save"])
    assert (save.item, save.title) == ("p1", post.title)
    (delivery,) = memory.interactions(kinds=["delivery"])
    assert delivery.item == "p1"
    assert len([one for one in ann.private.messages if "Tokio or not?" in one.text]) == 1
    _draw(house, ann.private)


def test_U2_what_falls_silent_is_concluded_by_the_clock_also_after_a_restart(tmp_path: Path) -> None:
    server = FaultyTelegramServer()
    with _house(tmp_path, server) as house:
        ann, bo = house.person("Ann"), house.person("Bo")
        for person in (ann, bo):
            house.ask(person, "/discuss Databases")
            house.ask(person, "I am a teacher")
        house.settle()
        house.bot.tick()
        house.settle()
        assert "eacher" not in house.memory(ann).show(), "not silent for long enough"
        house.clock.ahead = timedelta(minutes=31)
        said = len(_from_bot(ann.private))
        house.bot.tick()
        house.settle()
        assert "Teacher" in house.memory(ann).show() and len(_from_bot(ann.private)) == said, "silently"
    with recollect.open(tmp_path) as app:  # as if it had been killed before
        memory = app.identities.memory(("telegram", bo.id))
        memory.clear()
        memory.say("I am a dentist", session=f"telegram/{bo.id}@x", role="user")
        assert "entist" not in memory.show()
    clock = Clock()
    clock.ahead = timedelta(minutes=45)
    with server, recollect.open(tmp_path, clock=clock) as app, Bot(app, server.token, url=server.url, clock=clock):
        server.wait_until_listening()
        _until(lambda: "Dentist" in app.identities.memory(("telegram", bo.id)).show())


# several people


def test_U2_in_a_group_each_has_their_own_memory_and_nothing_private_is_shown(house: House) -> None:
    ann, bo = house.person("Ann"), house.person("/memory clear")
    house.ask(ann, "/start")
    house.ask(ann, "Remember that my salary is 90000")
    group = house.server.group("Trip", [ann, bo], forum=True)
    trains = group.topic("Trains")
    told = house.ask(ann, "@recollect_test_bot remember that I am vegetarian", group, thread=trains)
    assert (
        GOT_IT in told.text and told.thread == trains.id and told.reply_to is not None and told.reply_to.sender is ann
    )
    other = house.ask(bo, "remember that I eat everything", group, reply_to=told)
    assert GOT_IT in other.text and other.thread == trains.id
    assert "egetarian" in house.memory(ann).show() and "egetarian" not in house.memory(bo).show()
    assert "everything" in house.memory(bo).show() and "everything" not in house.memory(ann).show()
    # not meant for the bot: not heard, also if Telegram would tell it
    for person, text in (
        (ann, "I am a spy"),
        (bo, "/memory@another_bot clear"),
        (bo, "hello @recollect_test_bot2"),
        (bo, "/weather"),
    ):
        person.says(text, group, thread=trains)
    # the memory is shown in private only
    sly = [
        f"@recollect_test_bot {text}"
        for text in ("/mem", "／memory", "/memory_search salary", " \n/MEMORY work", "\x00/memory", "\u2028/mem")
    ]
    for command in ("/memory", "/memory@recollect_test_bot search salary", "/memory export", "/memory link", *sly):
        shown = house.ask(ann, command, group, thread=trains)
        assert shown.text == "Your memory is private, so I show it only to you."
        assert shown.buttons[0][0].url == "https://t.me/recollect_test_bot?start=memory"
    asked = house.ask(ann, "@recollect_test_bot what is my salary?", group, thread=trains)
    assert "90000" not in asked.text and "alone" in asked.text
    # a button is for the one it answers
    assert (
        ann.presses("Undo", other).waits().text == "This button is for the person I answered. Send me your own message."
    )
    assert "everything" in house.memory(bo).show()
    bo.presses("Undo", other).waits()
    house.settle()
    assert "everything" not in house.memory(bo).show() and other.labels == []
    back = _from_bot(group)[-1]
    assert ann.presses("Undo that", back).waits().text.startswith("This button is for")
    house.press(bo, "Undo that", back)
    assert "everything" in house.memory(bo).show()
    # from the button in the group into the private chat; a link can do nothing else
    assert "Salary is 90000" in house.ask(ann, "/start memory").text
    assert "Hello!" in house.ask(ann, "/start Y2xlYXI").text
    house.settle()
    everything = "\n".join(one.text for one in _from_bot(group))
    assert "90000" not in everything and "a spy" not in str(house.memory(ann).read())
    assert len(house.memory(bo).read(kind="message")) <= 2
    _draw(house, group, ann.private)


def test_U2_a_model_that_fails_in_a_group_gives_nothing_away(tmp_path: Path) -> None:
    with ModelServer(lambda asked: Fail(401, "no")) as models:  # noqa: SIM117
        with _house(tmp_path, model=f"{models.openai_url}#test", model_key="test") as house:
            ann = house.person("Ann")
            house.ask(ann, "Remember that my salary is 90000")
            group = house.server.group("Trip", [ann])
            told = house.ask(ann, "@recollect_test_bot what is my salary?", group)
            assert "90000" not in told.text and "tell it to you alone" in told.text
            assert "90000" in house.ask(ann, "what is my salary?").text


def test_U2_who_writes_in_the_name_of_a_group_or_is_a_bot_has_no_memory() -> None:
    me = BotIdentity(1, "recollect_test_bot")
    group = {"id": -1001, "type": "supergroup", "title": "G"}
    said: dict[str, Any] = {"message_id": 5, "chat": group, "date": 1, "text": "/memory"}
    anonymous = {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}, "sender_chat": group}
    event = read_update({"update_id": 1, "message": {**said, **anonymous}}, me)
    assert isinstance(event, MessageUpdate) and event.nobody
    for more in (
        {"from": {"id": 9, "is_bot": True, "first_name": "Robot"}},
        {
            "from": {"id": 777000, "is_bot": False, "first_name": "Telegram"},
            "sender_chat": group,
            "is_automatic_forward": True,
        },
        {
            "from": {"id": 9, "is_bot": False, "first_name": "Ann"},
            "via_bot": {"id": 8, "is_bot": True, "first_name": "x"},
        },
        {},
    ):
        assert read_update({"update_id": 1, "message": {**said, **more}}, me) is None
    assert read_update({"update_id": 1, "channel_post": said}, me) is None
    assert read_update({"update_id": 1, "message": {"chat": "?"}}, me) is None
    assert read_update({"update_id": 1, "poll": {}}, me) is None
    topic = {
        "message_id": 2,
        "forum_topic_created": {"name": "T"},
        "from": {"id": 1, "is_bot": True, "first_name": "R"},
    }
    plain = {**said, "text": "hello", "from": {"id": 9, "is_bot": False, "first_name": "A"}, "reply_to_message": topic}
    assert read_update({"update_id": 1, "message": plain}, me) is None, "a topic that the bot opened is no reply to it"


def test_U2_anonymous_administrators_are_told_why(house: House) -> None:
    ann = house.person("Ann")
    group = house.server.group("Trip", [ann])
    update = {"message_id": 1, "date": 1, "chat": group.json(), "text": "/discuss trains", "sender_chat": group.json()}
    update["from"] = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    house.server.send_update("message", update)
    assert "whose memory" in ann.waits_for("as a group or a channel", chat=group).text
    assert list(house.app.users()) == []


def test_U2_one_memory_in_the_terminal_and_on_telegram(house: House) -> None:
    ann = house.person()
    terminal = Conversation(house.app, ("terminal", "ann"), place="terminal")
    terminal.say("remember that I play the cello")
    house.ask(ann, "remember that I live in Lviv")
    shown = str(Commands(house.app, ("terminal", "ann")).run("link"))
    code = re.search(r"[A-Z0-9]{5}-[A-Z0-9]{5}", shown)
    assert code
    assert "Link this channel" not in house.ask(ann, "/memory link AAAA-BBBB").text, "a guessed code"
    asked = house.ask(ann, f"/memory link {code[0]}")
    assert "Link this channel with the terminal?" in asked.text
    house.press(ann, "Yes, link them", asked)
    assert "cello" not in house.memory(ann).show()
    Commands(house.app, ("terminal", "ann")).run("link yes")
    assert "cello" in house.ask(ann, "/memory").text and "Lviv" in terminal.memory.show()
    _draw(house, ann.private)


def test_U2_a_question_that_waits_is_asked_in_private_only(house: House) -> None:
    ann = house.person()
    group = house.server.group("Trip", [ann])
    house.ask(ann, "remember that I live in Lviv")
    shown = str(Commands(house.app, ("telegram", ann.id)).run("link"))
    code = re.search(r"[A-Z0-9]{5}-[A-Z0-9]{5}", shown)
    assert code
    Commands(house.app, ("terminal", "ann")).run(f"link {code[0]}")
    told = house.ask(ann, "@recollect_test_bot remember that I like tea", group)
    assert GOT_IT in told.text and "ink" not in str(told.labels)
    house.settle()
    assert len(_from_bot(group)) == 1


# text of all kinds

RIDE = "\u202eevil\u202c"
EMOJI = "👩‍👩‍👧‍👦" * 372


@pytest.mark.everyday(4)
@pytest.mark.parametrize(
    "text",
    [
        "remember that I like <b>bold</b> & <script>alert(1)</script> </i>",
        "remember that my motto is *carpe* _diem_ [x](http://evil.example) `code` ~~~ ||spoiler||",
        f"remember that my name is {RIDE} and a\u200bb\u200dc \u2066x",
        "remember that I like " + "&<>\"'" * 100,
        EMOJI,
        "😀" * 2048,
        "remember that " + "x" * 4000,
        "a\u0301" * 1000,
        "/memory search <b>&amp;</i>",
        "/<b>nonsense</b>",
        "/memory " + "🙂" * 100,
        "/discuss " + "<&>" * 400,
        "\u202e/memory clear",
    ],
    ids=str.__len__,
)
def test_U2_hostile_text_is_answered_and_shown_as_it_is(house: House, text: str) -> None:
    ann = house.person("</b><a href='tg://user?id=1'>x")
    answer = house.ask(ann, text)
    shown = house.ask(ann, "/memory")
    house.settle()
    refused = [one for one in house.server.requests if one.status not in (200, 0) and one.method != "getUpdates"]
    assert refused == []
    for one in (answer, shown):
        assert not re.search("[\u202a-\u202e\u2066\u2067]", one.text)
        assert {entity.type for entity in one.entities} <= {
            "bold",
            "italic",
            "bot_command",
            "url",
            "hashtag",
            "mention",
        }
    assert house.memory(ann).mode == "on"


def test_U2_forwarded_and_quoted_text_is_not_the_persons_own(house: House) -> None:
    ann, bo = house.person("Ann"), house.person("Bo")
    forwarded = ann.forwards("Remember that I owe Bo 500 dollars\nand more", from_=bo)
    offered = ann.private.wait_for_reply(forwarded)
    assert _buttons(offered)[:2] == ["💬 Discuss", "⭐ Save"] and GOT_IT not in offered.text
    assert ann.private.wait_for_reply(ann.forwards("/memory clear", from_="Somebody who hides"))
    house.settle()
    assert "Erase" not in str(ann.private) and "500" not in house.memory(ann).show()
    ann.presses("💬 Discuss", offered).waits()
    assert "📖 Discussing: Remember that I owe Bo 500 dollars" in ann.waits_for("Discussing").text
    assert ann.presses("⭐ Save", offered).waits().text == "Saved."
    group = house.server.group("Trip", [ann, bo])
    said = bo.says("remember that I hate cats", group)
    house.ask(ann, "@recollect_test_bot what do you think?", group, reply_to=said)
    house.settle()
    for person in (ann, bo):
        assert "cats" not in house.memory(person).show()
    again = house.ask(ann, "/discuss", group, reply_to=said)
    assert "Discussing: remember that I hate cats" in again.text
    assert all(one.trusted is False for one in house.memory(ann).read(kind="message") if "500" in one.text)
    _draw(house, ann.private, group)


def test_U2_captions_are_text_and_edits_are_heard(house: House) -> None:
    ann = house.person()
    assert GOT_IT in ann.private.wait_for_reply(ann.sends_photo("remember that this is my cat Tom")).text
    assert GOT_IT in ann.private.wait_for_reply(ann.sends_document("a.txt", b"x", "remember that I have a garden")).text
    assert "only read text" in ann.private.wait_for_reply(ann.sends_photo()).text
    said = ann.says("remember that my favourite city is Kyvi")
    first = ann.private.wait_for_reply(said)
    ann.edits(said, "remember that my favourite city is Lviv")
    assert GOT_IT in ann.waits_for(lambda one: "Lviv" in one.text, after=first).text
    house.settle()
    count = len(_from_bot(ann.private))
    house.server.send_update("edited_message", {**said.json(), "edit_date": said.date + 5})
    house.settle()
    assert len(_from_bot(ann.private)) == count, "nothing was changed that can be heard"
    command = ann.says("/memory pause")
    ann.private.wait_for_reply(command)
    house.ask(ann, "/memory resume")
    ann.edits(command, "/memory pause now")
    house.settle()
    assert house.memory(ann).mode == "on", "a command is not obeyed when it is polished"
    _draw(house, ann.private)


def test_U2_an_undo_under_an_answer_keeps_the_answer_and_old_buttons_are_no_trap(house: House) -> None:
    ann = house.person()
    told = house.ask(ann, "remember that I like tea")
    (undo,) = told.buttons[0]
    house.server.drop("answerCallbackQuery")
    assert ann.presses("Undo", told).waits().answered
    house.settle()
    assert GOT_IT in told.text and told.labels == [] and "tea" not in house.memory(ann).show()
    assert _from_bot(ann.private)[-1] is not told
    for old in (
        undo,
        type(undo)("?", "nonsense of another time"),
        type(undo)("?", "clear yes 1"),
        type(undo)("?", "+"),
    ):
        assert ann.presses(old, told).waits().answered
    house.settle()
    ann.deletes(told)
    ann.presses(undo, told).waits()
    house.settle()
    assert house.memory(ann).exists
    _draw(house, ann.private)


def test_U2_long_pages_are_split_between_lines_and_nothing_is_lost() -> None:
    words = [f"line {number} " + "<&>🙂" * (1 + number % 40) for number in range(400)]
    drawn = render_messages(chat_page(ChatLine("Title & more", "title"), *words, choices=[[Choice("Go", "x")]]))
    assert len(drawn) > 3 and [bool(one.buttons) for one in drawn] == [False] * (len(drawn) - 1) + [True]
    plain = [
        re.sub("<[^>]*>", "", one.text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for one in drawn
    ]
    assert all(telegram_length(one) <= LONGEST for one in plain)
    assert "\n".join(plain).split("\n") == ["Title & more", *words]
    marked = render_messages(chat_page(*[ChatLine(f"aside {number}", "aside") for number in range(250)]))
    assert all(one.text.count("<i>") <= 100 and one.text.count("<i>") == one.text.count("</i>") for one in marked)
    text = "## What I think\n- **bold & <b>** and `x < y **z**`\n* two ** stars ** and 2 * 3 * 4, a`b\n**a** **b**"
    assert render_messages(chat_page(*text.split("\n")))[0].text.split("\n") == [
        "<b>What I think</b>",
        "• <b>bold &amp; &lt;b&gt;</b> and <code>x &lt; y **z**</code>",
        "• two ** stars ** and 2 * 3 * 4, a`b",
        "<b>a</b> <b>b</b>",
    ]
    assert render_messages(chat_page(ChatLine("- **x**", "item")))[0].text == "• - **x**", (
        "what is remembered is shown as it is"
    )
    many = render_messages(chat_page(*["**a** **b** `c`"] * 200))
    assert all(one.text.count("</") <= 100 for one in many)
    whole = "👩‍👩‍👧‍👦" * 3000
    cut = render_messages(chat_page(whole))
    assert "".join(one.text for one in cut) == whole and all(not one.text.startswith("\u200d") for one in cut)
    kept = render_messages(chat_page("x", choices=[[Choice("Undo", "undo 7"), Choice("Long", "y" * 64)]]), keep=True)[
        0
    ].buttons[0]
    assert [parse_button(data) for _, data in kept] == [("undo 7", True), ("y" * 64, False)]
    assert render_messages(chat_page()) == [] and render_messages(chat_page(choices=[[Choice("A", "b")]]))[0].text


# when things go wrong


@pytest.mark.everyday(2)
@pytest.mark.parametrize("after", [False, True], ids=["before it was sent", "after it was sent"])
@pytest.mark.parametrize("fault", ["drop", "502", "html"])
def test_U2_an_answer_is_sent_once_however_the_connection_breaks(house: House, fault: str, after: bool) -> None:
    ann, bo = house.person("Ann"), house.person("Bo")
    group = house.server.group("Trip", [ann, bo])
    for chat, drink in ((None, "coffee"), (group, "milk")):
        house.ask(ann, f"/discuss@recollect_test_bot {drink}", chat)
        house.settle()
        if fault == "drop":
            house.server.drop("sendMessage", after=after)
        else:
            house.server.fail("sendMessage", 502, after=after, body=b"<html>" if fault == "html" else None)
        said = ann.says(f"{'@recollect_test_bot ' if chat else ''}remember that I like {drink}", chat)
        bo.says("I talk in between", group)
        answer = (chat or ann.private).wait_for_reply(said)
        house.settle()
        assert GOT_IT in answer.text and f"Likes {drink}" in answer.text
        assert sum(GOT_IT in one.text for one in _from_bot(chat or ann.private)) == 1
        assert all(not one.edited for one in _from_bot(chat or ann.private)), "no other message was touched"


def test_U2_a_document_and_a_long_answer_are_sent_once_though_each_request_breaks(house: House) -> None:
    ann = house.person()
    house.ask(ann, "remember that I like tea")
    house.settle()
    house.server.drop("sendDocument", after=True)
    house.server.drop("sendMessage", after=True)
    ann.says("/memory export")
    ann.waits_for(lambda one: one.document is not None)
    house.settle()
    assert sum(one.document is not None for one in ann.private.messages) == 1
    assert sum("whole memory" in one.text for one in ann.private.messages) == 1
    house.server.fail("sendDocument", 400, description="Bad Request: file is too big")
    assert "too large" in ann.waits_for("too large", after=ann.says("/memory export")).text


def test_U2_looking_for_a_message_touches_no_other(house: House) -> None:
    ann = house.person()
    house.ask(ann, "remember that I like tea")
    with house.server.stall("sendMessage", times=1) as stall:
        ann.says("/memory search one")
        stall.reached()
        for word in ("two", "three"):
            ann.says(f"/memory search {word}")
        house.server.drop("sendMessage", times=1, after=True)
    ann.waits_for("three")
    house.settle()
    told = _from_bot(ann.private)[1:]
    assert [word for one in told for word in ("one", "two", "three") if f"“{word}”" in one.text] == [
        "one",
        "two",
        "three",
    ]
    assert all(not one.edited for one in told)


def test_U2_a_message_is_found_again_behind_all_that_others_said_meanwhile(house: House) -> None:
    ann, bo = house.person("Ann"), house.person("Bo")
    group = house.server.group("Trip", [ann, bo])
    house.server.fail("sendMessage", retry_after=1)
    house.server.drop("sendMessage", after=True)
    said = ann.says("/discuss trains", group)
    house.server.wait_until(lambda: any(one.status == 429 for one in house.server.requests))
    for number in range(40):
        bo.says(f"nothing for a bot {number}", group)
    answer = group.wait_for_reply(said)
    house.settle()
    assert answer.id > said.id + 40 and len(_from_bot(group)) == 1


class _OneRow(dict[int, TelegramMessage]):
    """Messages of a private chat that share their numbers with those of all others, as on the real Telegram."""

    highest = 0

    def __setitem__(self, number: int, message: TelegramMessage) -> None:
        _OneRow.highest = number
        super().__setitem__(number, message)

    def __len__(self) -> int:
        return _OneRow.highest


@pytest.mark.slow
def test_U2_a_message_is_found_again_where_all_chats_share_their_numbers(house: House) -> None:
    ann, *others = (house.person(f"P{number}") for number in range(20))
    for person in (ann, *others):
        person.private.history = _OneRow()
    for person in (ann, *others, ann, *others):
        house.ask(person, "/start")
    house.settle()
    house.server.drop("sendMessage", after=True)
    house.bot.deliver(ann.id, Post(id="p", title="Far away"))
    shown = ann.waits_for("Far away")
    house.settle()
    assert shown.id - max(one.id for one in ann.private.messages if one is not shown) > 30
    assert [one.text for one in ann.private.messages].count("Far away") == 1
    assert house.memory(ann).interactions(kinds=["delivery"])[0].id == f"telegram:{ann.id}:{shown.id}"


def test_U2_flood_limits_are_honoured_and_the_order_is_kept(tmp_path: Path) -> None:
    with _house(tmp_path, FaultyTelegramServer(chat_interval=1.0)) as house:
        ann, bo = house.person("Ann"), house.person("Bo")
        for person in (ann, bo):
            house.ask(person, "remember that I like tea")
        said = [f"/memory search word{number}" for number in range(2)]
        for text in said:
            ann.says(text)
        bo.says("/memory search wordx")
        bo.waits_for("wordx")
        ann.waits_for("word1")
        house.settle()
        told = [one.text for one in _from_bot(ann.private)[1:]]
        assert [re.findall(r"word\d", one)[0] for one in told] == ["word0", "word1"]
        assert any(one.status == 429 and one.method == "sendMessage" for one in house.server.requests)
    server = FaultyTelegramServer()
    with _house(tmp_path / "2", server) as house:
        ann = house.person()
        server.fail("sendMessage", retry_after=1)
        house.ask(ann, "remember that I like tea")
        assert sum(one.method == "editMessageText" for one in server.requests) == 0, (
            "nothing to look for: it was not sent"
        )


def test_U2_who_blocks_the_bot_stops_nobody_else(house: House) -> None:
    ann, bo = house.person("Ann"), house.person("Bo")
    group = house.server.group("Trip", [ann, bo], basic=True)
    house.ask(ann, "remember that I like tea")
    with house.server.stall("sendMessage", times=1) as stall:
        ann.says("remember that I like coffee")
        stall.reached()
        ann.blocks()
    assert GOT_IT in house.ask(bo, "remember that I like milk").text
    house.settle()
    assert not house.bot.wait(0) and house.bot._queue.dead() == []
    ann.unblocks()
    assert GOT_IT in house.ask(ann, "remember that I like juice").text
    for word in ("coffee", "juice"):
        assert word in house.memory(ann).show()
    # a group that grows has another number
    with house.server.stall("sendMessage", times=1) as stall:
        said = bo.says("/discuss trains", group)
        stall.reached()
        group.becomes_supergroup()
    assert "Discussing: trains" in group.wait_for_reply(said).text
    group.removes_bot()
    house.settle()


def test_U2_a_server_that_goes_away_and_comes_back_loses_nothing(house: House) -> None:
    ann = house.person()
    house.ask(ann, "remember that I like tea")
    for word in ("coffee", "milk"):
        house.server.stop()
        said = ann.says(f"remember that I like {word}")
        house.server.start()
        assert word in ann.private.wait_for_reply(said).text
    house.server.deliver_twice(2)
    said = ann.says("remember that I like juice")
    ann.private.wait_for_reply(said)
    house.settle()
    house.server.deliver_again(3)
    house.ask(ann, "/memory search nothing like it")
    house.settle()
    assert len(_from_bot(ann.private)) == 5
    house.server.fail("getUpdates", 500, times=2)
    house.server.fail("getUpdates", retry_after=1)
    assert "Hello!" in house.ask(ann, "/start").text


def test_U2_a_bot_that_cannot_reach_telegram_waits_for_it_or_for_its_end(tmp_path: Path) -> None:
    with FaultyTelegramServer() as server, recollect.open(tmp_path, telegram_url=server.url) as app:
        server.fail("getMe", 500)
        server.fail("setMyCommands", retry_after=1)
        with Bot(app, server.token) as bot:  # the address is a setting
            server.wait_until_listening()
            with pytest.raises(InvalidInputError, match="already started"):
                bot.start()
        server.stop()
        bot = Bot(app, server.token, url=server.url)
        problems: list[BaseException] = []

        def start() -> None:
            try:
                bot.start()
            except BotError as error:
                problems.append(error)

        waiting = threading.Thread(target=start)
        waiting.start()
        bot.wake()
        waiting.join(120)
        assert [str(error) for error in problems] == ["Telegram could not be reached"]
        bot.stop()
        with pytest.raises(InvalidInputError, match="title"):
            Post(id="x", title=" ")
        with pytest.raises(InvalidInputError, match="url"):
            Post(id="x", title="T", url="javascript:alert(1)")


def test_U2_a_full_queue_delays_and_loses_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = house.person()
    queue = house.bot._queue
    put, put_many, refusals = queue.put, queue.put_many, ["answer", "answer", "update"]

    def full(act: Callable[[Any], Any], what: str, given: Any) -> Any:
        if what in refusals:
            refusals.remove(what)
            raise QueueFullError()
        return act(given)

    monkeypatch.setattr(queue, "put", lambda task: full(put, "answer", task))
    monkeypatch.setattr(queue, "put_many", lambda tasks: full(put_many, "update", tasks))
    said = ann.says("remember that I like tea")
    told = ann.private.wait_for_reply(said)
    assert GOT_IT in told.text and _buttons(told) == ["Undo"]
    house.settle()
    assert refusals == [] and len(_from_bot(ann.private)) == 1 and "tea" in house.memory(ann).show()


def test_U2_what_breaks_inside_is_told_and_holds_up_nobody(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = Conversation.say

    def say(self: Conversation, text: str, **more: Any) -> Any:
        if "explode" in text:
            raise RuntimeError(f"a secret: {text}")
        return real(self, text, **more)

    monkeypatch.setattr(Conversation, "say", say)
    ann = house.person()
    said = ann.says("please explode now")
    next_one = ann.says("remember that I like tea")
    assert "Something went wrong" in ann.private.wait_for_reply(said).text
    assert GOT_IT in ann.waits_for(GOT_IT, after=next_one).text
    assert "explode" not in caplog.text and house.bot._queue.dead() == []


def test_U2_neither_the_token_nor_what_is_said_is_ever_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = FaultyTelegramServer(token="7000000009:very-secret-token")
    with _house(tmp_path, server) as house:
        ann = house.person()
        house.ask(ann, "remember that I like xylophones")
        server.fail("sendMessage", 502, body=b"<html>xylophones")
        server.fail("sendMessage", 400, description="Bad Request: xylophones")
        house.ask(ann, "/memory search xylophones")
        house.settle()
    assert "httpx" in {record.name for record in caplog.records}, "or it proves nothing"
    for record in caplog.records:
        told = f"{record.getMessage()} {record.exc_info} {record.args}"
        assert "very-secret-token" not in told and "xylophones" not in told
    with recollect.open(tmp_path) as app, pytest.raises(BotError) as wrong, FaultyTelegramServer() as other:
        Bot(app, "7000000009:another-secret-token", url=other.url).start()
    assert "secret" not in f"{wrong.value}" and wrong.value.__cause__ is None and wrong.value.__suppress_context__
    with recollect.open(tmp_path) as app, pytest.raises(InvalidInputError) as malformed:
        Bot(app, "no token")
    assert "no token" not in str(malformed.value)


def test_U2_U8_the_token_is_a_setting_that_is_not_shown() -> None:
    config = Config.load({"TELEGRAM_BOT_TOKEN": "1:abc", "MEMORY_TELEGRAM_URL": "http://u:secret@localhost:1"})
    assert config.values()["TELEGRAM_BOT_TOKEN"] == "***" and "secret" not in str(config.values())
    with pytest.raises(ConfigError, match="MEMORY_TELEGRAM_URL"):
        Config.load({"MEMORY_TELEGRAM_URL": "localhost"})


def test_U2_the_log_of_what_was_sent_survives_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    log = SentLog(path)
    for number in range(1, 6):
        log.note(7, f"job{number}", 0, number)
    log.note(-1_001_000_000_007, "group", 1, 900)
    log.note(7, "edit", 2, 0)
    log.close()
    with path.open("ab") as file:
        file.write(b'[7, "torn", 0, 9')
    for _ in range(2):
        log = SentLog(path)
        assert log.last(7) == LastAction("edit", 2, 5) and log.last(8).message == 0 and log.highest == 5
        log.close()
    with pytest.raises(OSError, match="descriptor"):
        log.note(7, "late", 0, 6)
    many = SentLog(tmp_path / "many.log")
    for number in range(1, 1100):
        many.note(7, "job", 0, number)
    many.close()
    again = SentLog(tmp_path / "many.log")
    assert again.last(7).message == 1099 and len((tmp_path / "many.log").read_bytes().splitlines()) == 1
    again.close()


# another way in


def test_U2_by_webhook_with_a_secret(tmp_path: Path) -> None:
    server = FaultyTelegramServer()
    with server, recollect.open(tmp_path) as app:
        port = _free_port()
        url = f"http://127.0.0.1:{port}/telegram"
        with Bot(app, server.token, url=server.url, webhook_url=url, listen=f"127.0.0.1:{port}") as bot:
            ann = server.user("Ann")
            assert GOT_IT in ann.private.wait_for_reply(ann.says("remember that I like tea")).text
            stranger = {"update_id": 5, "message": {"message_id": 1, "text": "remember that I like evil", "date": 1}}
            assert _post(port, "/telegram", stranger) == 403
            assert _post(port, "/telegram", stranger, secret="wrong") == 403
            assert _post(port, "/", stranger) == 404
            secret = server.webhook.secret if server.webhook else ""
            assert _post(port, "/telegram", "not an update", secret=secret) == 400
            assert _post(port, "/telegram", b"{", secret=secret) == 400
            assert _post(port, "/telegram", b"x" * 1_000_001, secret=secret) == 413
            # what cannot be kept is not acknowledged, and comes again
            bot._queue.size = 0
            said = ann.says("remember that I like milk")
            server.wait_until(lambda: server.webhook and server.webhook.error)
            bot._queue.size = 1000
            assert "milk" in ann.private.wait_for_reply(said).text
    assert len(_from_bot(ann.private)) == 2
    with recollect.open(tmp_path) as app, server:
        with pytest.raises(BotError, match="Telegram rejected the request"):
            Bot(app, server.token, url=server.url, webhook_url="https://example.org/x", listen="127.0.0.1:0").start()
        for to, listen in ((url, "nowhere"), ("ftp://x", f"127.0.0.1:{port}")):
            with pytest.raises(InvalidInputError):
                Bot(app, server.token, url=server.url, webhook_url=to, listen=listen).start()
    with server, recollect.open(tmp_path) as app, Bot(app, server.token, url=server.url):
        server.wait_until_listening()  # back to fetching: the webhook is taken down
        assert "Hello!" in ann.private.wait_for_reply(ann.says("/start")).text


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _post(port: int, path: str, body: Any, secret: str | None = None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    try:
        connection.request("POST", path, content, headers)
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 413  # it was not read to its end
    finally:
        connection.close()


# as a program


@contextmanager
def _program(server: FaultyTelegramServer, root: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    environ = {
        **os.environ,
        "TELEGRAM_BOT_TOKEN": server.token,
        "MEMORY_TELEGRAM_URL": server.url,
        "MEMORY_DIR": str(root),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    process = ProgramProcess("telegram", *args, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_U2_a_second_program_is_told_so_and_a_signal_ends_politely(tmp_path: Path) -> None:
    with FaultyTelegramServer() as server, _program(server, tmp_path) as first:
        server.wait_until_listening()
        ann = server.user("Ann")
        assert GOT_IT in ann.private.wait_for_reply(ann.says("remember that I like tea")).text
        with _program(server, tmp_path) as second:
            _, said = second.communicate(timeout=60)
            assert second.returncode == 2 and said == "recollect: this bot is already running on the same memories\n"
        with _program(server, tmp_path / "elsewhere") as third:
            _, said = first.communicate(timeout=60)
            assert first.returncode == 2 and "another program is fetching the updates" in said
            assert server.token not in said and "tea" not in said
            with server.stall("sendMessage", times=1) as stall:
                said_last = ann.says("remember that I like milk")
                stall.reached()
                third.send_signal(signal.SIGTERM)
            assert "milk" in ann.private.wait_for_reply(said_last).text, "it finishes what it has begun"
            _, said = third.communicate(timeout=60)
            assert third.returncode == 0 and "Traceback" not in said


# many at once, and kills


def _check_answers(people: dict[Phone, list[str]]) -> None:
    """Each message was answered once, in order, and with nothing that is another's."""
    for person, said in people.items():
        answers = [one.text for one in _from_bot(person.private)]
        assert len(answers) == len(said), f"{person}\n{person.private}"
        for text, answer in zip(said, answers, strict=True):
            if "search" in text:
                assert text.split()[-1] in answer, f"{person}\n{person.private}"
            else:
                assert "Got it" in answer or "know that already" in answer, f"{person}\n{person.private}"
        words = re.findall(r"x\d+x\d+", "".join(answers))
        assert {word.split("x")[1] for word in words} <= {str(person.id)}


@pytest.mark.slow
def test_U2_a_hundred_people_at_once_each_get_their_own_answers_in_order(house: House) -> None:
    people: dict[Phone, list[str]] = {house.person(f"P{number}"): [] for number in range(100)}
    for turn, words in enumerate(("remember that my word is", "/memory search")):
        for person in people:
            people[person].append(f"{words} x{person.id}x{turn}")
            person.says(people[person][-1])
    for person, said in people.items():
        house.server.wait_until(lambda: len(_from_bot(person.private)) >= len(said), 60)  # noqa: B023
    house.settle()
    _check_answers(people)
    for person in people:
        shown = house.memory(person).show()
        assert set(re.findall(r"x(\d+)x", shown)) == {str(person.id)}


@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_U2_kills_at_any_instant_lose_nothing_and_repeat_nothing(tmp_path: Path, kills: int) -> None:
    seed = int(os.environ.get("RECOLLECT_SEED") or random.randrange(10**6))
    print(f"RECOLLECT_SEED={seed}")
    dice = random.Random(seed)
    with FaultyTelegramServer() as server:
        people: dict[Phone, list[str]] = {server.user(f"P{number}"): [] for number in range(8)}
        turns = 0

        def speak(times: int) -> None:
            nonlocal turns
            for _ in range(times):
                turns += 1
                person = dice.choice([*people])
                first = not people[person]
                words = "remember that my word is" if first or dice.random() < 0.5 else "/memory search"
                people[person].append(f"{words} x{person.id}x{turns}")
                person.says(people[person][-1])

        for _ in range(kills):
            speak(6)
            stalls = [server.stall(dice.choice(["sendMessage", "getUpdates"]), times=1, after=dice.random() < 0.6)]
            with _program(server, tmp_path) as process:
                if dice.random() < 0.5:
                    speak(4)
                    stalls[0].reached(60)
                else:
                    stalls[0].release()
                    begun, more = len(server.requests), dice.randrange(4, 25)
                    server.wait_until(lambda: len(server.requests) >= begun + more or server.pending == 0, 60)  # noqa: B023
                process.kill()
                process.wait()
            server.heal()
        with _program(server, tmp_path) as process:
            for person, said in people.items():
                server.wait_until(lambda: len(_from_bot(person.private)) >= len(said), 60)  # noqa: B023
            person = next(iter(people))
            people[person].append(
                f"/memory search x{person.id}x999" if people[person] else f"remember x{person.id}x999"
            )
            person.private.wait_for_reply(person.says(people[person][-1]))
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=60)
        assert process.returncode == 0 and "x100" not in told
        _check_answers(people)
        assert all(not one.edited for person in people for one in _from_bot(person.private))
    assert server.problems == []


# the page that tells about it

ROOT = Path(__file__).parents[1]


def test_U2_the_conversation_in_the_documentation_is_as_it_goes(house: House) -> None:
    ann, bo = house.person("Ann"), house.person("Bo")
    house.ask(ann, "/start")
    house.ask(ann, "/discuss PostgreSQL 18 Released\nhttps://example.org/pg18")
    house.ask(ann, "I'm a senior backend engineer at Stripe, so the async vacuum matters to me.")
    house.ask(ann, "Remember that I'm presenting on database performance next week")
    house.ask(ann, "/end")
    asked = house.ask(ann, "/memory forget stripe")
    first = str(ann.private)
    house.press(ann, _buttons(asked)[0], asked)
    group = house.server.group("Book club", [ann, bo])
    house.ask(bo, "@recollect_test_bot remember that I bring the cake", group)
    house.ask(ann, "/memory", group)
    real = "\n".join(
        [
            first,
            "(Ann presses [Forget these 3], and the message becomes:)",
            str(asked),
            "",
            "(In the group “Book club”:)",
            *map(str, group.messages[1:]),
        ]
    )
    real = re.sub(r"\b\d+ \w{3} 20\d\d\b", "12 Feb 2026", real)
    told = (ROOT / "docs/telegram.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n(.*?)\n```", told, re.DOTALL)
    print(real)
    assert block and [line.rstrip() for line in block[1].splitlines()] == [line.rstrip() for line in real.splitlines()]
