"""The Telegram of our own: driven by python-telegram-bot and by raw HTTP, with people on the other side."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode

import pytest
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, NetworkError, RetryAfter, TimedOut
from telegram.ext import (
    Application,
    ApplicationBuilder,
    CallbackQueryHandler,
    CommandHandler,
    MessageHandler,
    MessageReactionHandler,
    filters,
)

from recollect.errors import InvalidInputError
from recollect.testing import FrozenClock, telegram
from recollect.testing.telegram import Button, Entity, Group, Limits, Message, Person, TelegramServer
from recollect.testing.telegram.changes import Changes
from recollect.testing.telegram.webhook import backoff

ALL = list(Update.ALL_TYPES)


# a bot written with the library that bots are written with


async def _start(update: Any, context: Any) -> None:
    keyboard = [[InlineKeyboardButton("Yes", callback_data="y"), InlineKeyboardButton("No", callback_data="n")]]
    await update.effective_message.reply_text(
        f"*Hello* {update.effective_user.first_name}",
        parse_mode="MarkdownV2",
        reply_markup=InlineKeyboardMarkup(keyboard),
    )


async def _pressed(update: Any, context: Any) -> None:
    await update.callback_query.answer(f"You chose {update.callback_query.data}", show_alert=True)
    await update.callback_query.edit_message_text(f"Chosen: {update.callback_query.data}")


async def _document(update: Any, context: Any) -> None:
    file = await update.message.document.get_file()
    content = bytes(await file.download_as_bytearray())
    await update.message.reply_document(
        content[::-1], filename=f"back-{update.message.document.file_name}", caption="done"
    )


async def _reaction(update: Any, context: Any) -> None:
    new = update.message_reaction.new_reaction
    await update.effective_chat.send_message(f"You feel {new[0].emoji if new else 'nothing'}")


async def _echo(update: Any, context: Any) -> None:
    message = update.effective_message
    await message.set_reaction("👀")
    prefix = "edited: " if update.edited_message else ""
    await message.reply_text(
        prefix + (message.text or message.caption), do_quote=update.effective_chat.type != "private"
    )


class Bot:
    """Runs it in a thread, until the end of the with block."""

    def __init__(self, server: TelegramServer, *, webhook_port: int = 0, secret: str | None = None) -> None:
        self.server, self.webhook_port, self.secret = server, webhook_port, secret
        self.failed: list[BaseException] = []
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))

    def __enter__(self) -> Bot:
        self._thread.start()
        self._up.wait()
        try:
            assert self.failed == []
            self.server.wait_until_listening()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        try:
            application = self._application()
            async with application:
                await application.start()
                assert application.updater is not None
                if self.webhook_port:
                    await application.updater.start_webhook(
                        listen="127.0.0.1",
                        port=self.webhook_port,
                        url_path="hook",
                        webhook_url=f"http://127.0.0.1:{self.webhook_port}/hook",
                        allowed_updates=ALL,
                        secret_token=self.secret,
                    )
                else:
                    await application.updater.start_polling(allowed_updates=ALL)
                self._up.set()
                await self._over.wait()
                await application.updater.stop()
                await application.stop()
        except BaseException as error:  # the test reads it
            self.failed.append(error)
        finally:
            self._up.set()

    def _application(self) -> Application[Any, Any, Any, Any, Any, Any]:
        server = self.server
        builder = ApplicationBuilder().token(server.token).base_url(server.base_url).base_file_url(server.base_file_url)
        # few connections: the library's pool takes long to choose among many
        application = builder.concurrent_updates(True).connection_pool_size(8).pool_timeout(60).build()
        application.add_handler(CommandHandler("start", _start))
        application.add_handler(CallbackQueryHandler(_pressed))
        application.add_handler(MessageReactionHandler(_reaction))
        application.add_handler(MessageHandler(filters.Document.ALL, _document))
        application.add_handler(MessageHandler(filters.TEXT | filters.CAPTION, _echo))
        application.add_error_handler(self._error)
        return application

    async def _error(self, update: object, context: Any) -> None:
        self.failed.append(context.error)


class Raw:
    """The Bot API by hand."""

    def __init__(self, server: TelegramServer, token: str = "") -> None:
        self.server, self.token = server, token or server.token
        self.line: http.client.HTTPConnection | None = None

    def connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", int(self.server.url.rpartition(":")[2]), timeout=120)

    def __call__(self, method: str, **values: Any) -> tuple[int, Any]:
        return self.post(f"/bot{self.token}/{method}", json.dumps(values).encode(), "application/json")

    def post(self, path: str, content: bytes = b"", kind: str = "") -> tuple[int, Any]:
        connection = self.line or self.connected()
        try:
            connection.request("POST", path, content, {"Content-Type": kind} if kind else {})
            answer = connection.getresponse()
            body = json.loads(answer.read())
        finally:
            if self.line is None:
                connection.close()
        assert body["ok"] == (answer.status == 200)
        return answer.status, body["result"] if body["ok"] else body["description"]

    def ok(self, method: str, **values: Any) -> Any:
        status, result = self(method, **values)
        assert status == 200, result
        return result

    def no(self, method: str, **values: Any) -> str:
        status, description = self(method, **values)
        assert 400 <= status < 500, description
        return str(description)


@pytest.fixture
def server() -> Iterator[TelegramServer]:
    with TelegramServer() as running:
        yield running
    assert running.problems == []


@pytest.fixture
def raw(server: TelegramServer) -> Raw:
    return Raw(server)


@pytest.fixture
def ann(server: TelegramServer) -> Person:
    person = server.person("Ann", "ann_of_kyiv", "uk")
    person.says("/start")
    return person


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _told(body: dict[str, Any]) -> str:
    return str(next(kind for kind in body if kind != "update_id"))


# with python-telegram-bot


@pytest.mark.parametrize("way", ["polling", "webhook"])
def test_a_bot_talks_to_people(server: TelegramServer, way: str) -> None:
    with Bot(
        server, webhook_port=_port() if way == "webhook" else 0, secret="s3cret" if way == "webhook" else None
    ) as bot:
        ann, bo = server.person("Ann", language_code="uk"), server.person("Bo")
        question = ann.private.wait_for_reply(ann.says("/start"))
        assert question.text == "Hello Ann" and question.entities == (Entity("bold", 0, 5),)
        assert question.labels == [["Yes", "No"]]
        press = ann.presses("Yes", question).waits()
        assert (press.text, press.alert) == ("You chose y", True)
        ann.waits_for("Chosen: y")
        assert question.edited and question.buttons == () and question.versions == ["Hello Ann"]

        answer = ann.private.wait_for_reply(ann.says("ні 🙂"))
        assert answer.text == "ні 🙂"
        said = ann.private.messages[-2]
        assert said.reactions == {server.bot: "👀"}
        ann.reacts("🔥", answer)
        assert ann.waits_for("You feel").text == "You feel 🔥"
        ann.edits(said, "так")
        assert ann.waits_for("edited: так", after=answer)

        sent = bo.private.wait_for_reply(bo.sends_document("a.txt", b"\x00abc\r\n"))
        assert sent.document is not None and (sent.document.name, sent.document.content) == (
            "back-a.txt",
            b"\n\rcba\x00",
        )
        assert all("Ann" not in str(message) for message in bo.sees())
    assert bot.failed == []
    assert {one.status for one in server.asked} == {200}


def test_a_bot_talks_in_a_group_and_its_topics(server: TelegramServer) -> None:
    ann, bo = server.person("Ann"), server.person("Bo")
    with Bot(server) as bot:
        group = server.group("Trip", [ann, bo], forum=True)
        trains = group.topic("Trains", by=bo)
        hotels = group.topic("Hotels")
        first = ann.says("/start", group, thread=trains)
        second = bo.says(f"@{server.bot.username} where?", group, thread=hotels)
        hello, where = group.wait_for_reply(first), group.wait_for_reply(second)
        assert (hello.thread, hello.text, hello.reply_to) == (trains.id, "Hello Ann", first)
        assert (where.thread, where.reply_to) == (hotels.id, second)
        assert hello in ann.sees() and where in ann.sees(group) and hello not in server.person("Eve").sees()
        ann.says("only for you, Bo", group, thread=trains)
        again = bo.says("and when?", group, reply_to=where)
        assert group.wait_for_reply(again).text == "and when?"
        assert [one.text for one in group.messages if one.is_by_the_bot] == ["Hello Ann", second.text, "and when?"]
    assert bot.failed == []


def test_the_library_raises_what_it_raises_on_telegram(
    server: TelegramServer, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "true")  # the library warns about its old way
    group = server.group("Old", [ann], basic=True)
    old = group.id
    new = group.becomes_supergroup()

    async def main() -> None:
        async with Bot(server)._application().bot as bot:
            assert bot.username == "recollect_test_bot" and (await bot.get_me()).is_bot
            with pytest.raises(BadRequest, match="Chat not found"):
                await bot.send_message(404, "x")
            with pytest.raises(BadRequest, match=r"character '\.' is reserved"):
                await bot.send_message(ann.id, "1.0", parse_mode="MarkdownV2")
            with pytest.raises(ChatMigrated) as moved:
                await bot.send_message(old, "x")
            assert moved.value.new_chat_id == new
            server.fail("sendMessage", retry_after=7)
            with pytest.raises(RetryAfter) as later:
                await bot.send_message(ann.id, "x")
            assert later.value._retry_after.total_seconds() == 7
            server.fail("sendMessage", 502, body=b"<html>Bad Gateway</html>")
            with pytest.raises(NetworkError, match="Bad Gateway"):
                await bot.send_message(ann.id, "x")
            server.drop("sendMessage")
            with pytest.raises(NetworkError):
                await bot.send_message(ann.id, "x")
            with server.stall("sendMessage"), pytest.raises(TimedOut):
                await bot.send_message(ann.id, "x", read_timeout=0.01)
            ann.blocks()
            with pytest.raises(Forbidden, match="blocked by the user"):
                await bot.send_message(ann.id, "x")
            await bot.set_webhook(f"http://127.0.0.1:{_port()}/")
            assert (await bot.get_webhook_info()).pending_update_count > 0
            with pytest.raises(Conflict):
                await bot.get_updates()
            await bot.delete_webhook(drop_pending_updates=True)
            assert await bot.get_updates() == ()
            await bot.set_my_commands([("memory", "What I know")], language_code="uk")
            assert [one.command for one in await bot.get_my_commands(language_code="uk")] == ["memory"]
            assert await bot.get_my_commands() == ()
            assert (await bot.get_chat(new)).title == "Old"
            assert (await bot.get_chat_member(new, ann.id)).status == "creator"
            assert await bot.log_out()
            with pytest.raises(BadRequest, match="Logged out"):
                await bot.get_me()

    asyncio.run(main())


def test_a_hundred_people_at_once(server: TelegramServer) -> None:
    crowd = [server.person(f"P{number}") for number in range(100)]
    group = server.group("Crowd", crowd)

    def talk(person: Person) -> None:
        for number in range(3):
            text = f"{person.name} says {number}"
            assert person.private.wait_for_reply(person.says(text)).text == text
        asked = person.says(f"/start@{server.bot.username}", group)
        assert person.waits_for(lambda one: one.reply_to is asked).text == f"Hello {person.name}"

    with Bot(server) as bot, ThreadPoolExecutor(100) as pool:
        list(pool.map(talk, crowd))
        assert bot.failed == []
    for person in crowd:
        texts = [one.text for one in person.private.messages]
        assert texts == [f"{person.name} says {number}" for number in range(3) for _ in "qa"]
        assert [one.id for one in person.private.messages] == list(range(1, 7))
    assert server.pending == 0


def test_what_was_said_while_the_bot_was_down_is_answered_when_it_is_up(server: TelegramServer) -> None:
    ann = server.person("Ann")
    with Bot(server):
        ann.private.wait_for_reply(ann.says("one"))
    two, three = ann.says("two"), ann.says("three")
    assert server.pending == 2
    with Bot(server) as bot:
        assert ann.waits_for("two", after=two) and ann.waits_for("three", after=three)
        server.restart()
        assert ann.private.wait_for_reply(ann.says("four")).text == "four"
        server.stop()
        five = ann.says("five")
        server.start()
        assert ann.private.wait_for_reply(five).text == "five"
    assert not [error for error in bot.failed if not isinstance(error, NetworkError)]
    assert [one.text for one in ann.private.messages if one.is_by_the_bot].count("two") == 1


POLLER = """
import json, sys, urllib.request
def call(method, **values):
    request = urllib.request.Request(f"{sys.argv[1]}/{method}", json.dumps(values).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["result"]
offset = 0
while True:
    for update in call("getUpdates", offset=offset, timeout=50):
        offset = update["update_id"] + 1
        call("sendMessage", chat_id=update["message"]["chat"]["id"], text=update["message"]["text"])
"""


def test_a_bot_that_is_killed_gets_its_update_again(server: TelegramServer) -> None:
    ann = server.person("Ann")
    command = [sys.executable, "-c", POLLER, f"{server.base_url}{server.token}"]
    with server.stall("sendMessage") as stall:
        first = subprocess.Popen(command)
        ann.says("one")
        stall.reached()
        first.kill()
        first.wait()
        assert server.pending == 1
        stall.release()
        # it had asked before it died, so this comes: now from the dead, then from the living
        ann.waits_for("one")
    second = subprocess.Popen(command)
    try:
        ann.private.wait_for_reply(ann.says("two"))
        ann.waits_for("two")
    finally:
        second.kill()
        second.wait()
    assert [one.text for one in ann.private.messages if one.is_by_the_bot] == ["one", "one", "two"]


# updates


def test_updates_stay_until_they_are_confirmed(raw: Raw, server: TelegramServer) -> None:
    ann = server.person("Ann")
    for number in range(3):
        ann.says(f"n{number}")
    seen = raw.ok("getUpdates")
    assert [one["message"]["text"] for one in seen] == ["n0", "n1", "n2"]
    first = seen[0]["update_id"]
    assert [one["update_id"] for one in seen] == [first, first + 1, first + 2]
    assert raw.ok("getUpdates", limit=2) == seen[:2]
    assert raw.ok("getUpdates", limit=-1) == raw.ok("getUpdates", limit=1000) == seen
    assert raw.ok("getUpdates", offset=first + 1) == seen[1:]
    assert raw.ok("getUpdates") == seen[1:] and server.pending == 2
    assert raw.ok("getUpdates", offset=-1) == seen[2:] and server.pending == 1
    assert raw.ok("getUpdates", offset=first + 3) == []


def test_a_long_poll_returns_when_something_comes(raw: Raw, server: TelegramServer) -> None:
    ann = server.person("Ann")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(raw.ok, "getUpdates", timeout=50)
        server.wait_until_listening()
        ann.says("hi")
        assert [one["message"]["text"] for one in waiting.result(30)] == ["hi"]


def test_the_second_poller_ends_the_first(raw: Raw, server: TelegramServer) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(raw, "getUpdates", timeout=50)
        server.wait_until_listening()
        assert raw.ok("getUpdates") == []
        status, description = first.result(30)
        assert status == 409 and "terminated by other getUpdates" in description
        second = pool.submit(raw, "getUpdates", timeout=50)
        server.wait_until_listening()
        raw.ok("setWebhook", url=f"http://127.0.0.1:{_port()}/x")
        assert second.result(30)[0] == 409
    assert "while webhook is active" in raw.no("getUpdates")


def test_a_poller_that_died_is_no_conflict(raw: Raw, server: TelegramServer) -> None:
    dead = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
    dead.sendall(f"GET /bot{server.token}/getUpdates?timeout=50 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    server.wait_until_listening()
    dead.close()
    server.person("Ann")
    assert raw.ok("getUpdates") == []
    assert {one.status for one in server.asked} == {200}
    with pytest.raises(TimeoutError, match="never asked"):
        server.wait_until_listening(timeout=0)


def test_a_bot_gets_the_kinds_that_it_asked_for(raw: Raw, server: TelegramServer, ann: Person) -> None:
    message = ann.says("x")
    ann.reacts("👍", message)
    assert [_told(one) for one in raw.ok("getUpdates", offset=-9)] == ["message", "message"]
    raw.ok("getUpdates", allowed_updates=["message_reaction"])
    ann.says("not wanted")
    ann.reacts("🔥", message)
    ann.reacts(None, message)
    reactions = [one["message_reaction"] for one in raw.ok("getUpdates")[2:]]
    assert [(one["old_reaction"], one["new_reaction"]) for one in reactions] == [
        ([{"type": "emoji", "emoji": "👍"}], [{"type": "emoji", "emoji": "🔥"}]),
        ([{"type": "emoji", "emoji": "🔥"}], []),
    ]
    raw.ok("getUpdates", allowed_updates=[])
    ann.says("wanted again")
    assert _told(raw.ok("getUpdates")[-1]) == "message"


def test_the_same_update_can_come_twice(raw: Raw, server: TelegramServer) -> None:
    ann = server.person("Ann")
    server.deliver_twice()
    ann.says("once")
    (first,) = raw.ok("getUpdates")
    after = first["update_id"] + 1
    assert raw.ok("getUpdates", offset=after) == [first]
    assert raw.ok("getUpdates", offset=after) == [] and server.pending == 0
    server.deliver_again()
    assert raw.ok("getUpdates", offset=after) == [first]
    assert raw.ok("getUpdates", offset=after) == []
    with pytest.raises(InvalidInputError):
        server.deliver_again(5)


class Hook:
    """A webhook that answers what it is told to, one status after the other, then 200."""

    def __init__(self, *statuses: int, reply: bytes = b"") -> None:
        self.statuses, self.reply = list(statuses), reply
        self.got: list[tuple[str, Any]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.got.append((self.headers.get("X-Telegram-Bot-Api-Secret-Token", ""), body))
                self.send_response(hook.statuses.pop(0) if hook.statuses else 200)
                self.send_header("Content-Length", str(len(hook.reply)))
                self.end_headers()
                self.wfile.write(hook.reply)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def __enter__(self) -> Hook:
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def test_a_webhook_gets_updates_in_order_and_again_until_it_takes_them() -> None:
    with TelegramServer(webhook_backoff=(0.001, 0.002)) as server, Hook(500, 503, 302) as hook:
        raw, ann = Raw(server), server.person("Ann")
        ann.says("dropped")
        raw.ok("setWebhook", url=hook.url, secret_token="a-b_C9", drop_pending_updates=True)
        ann.says("one")
        ann.says("two")
        server.wait_until(lambda: server.pending == 0)
        assert [body["message"]["text"] for _, body in hook.got] == ["one"] * 4 + ["two"]
        assert {secret for secret, _ in hook.got} == {"a-b_C9"}
        info = raw.ok("getWebhookInfo")
        assert info["last_error_message"] == "Wrong response from the webhook: 302 Found"
        raw.ok("deleteWebhook")
        ann.says("three")
        assert [one["message"]["text"] for one in raw.ok("getUpdates")] == ["three"]
        assert raw.ok("getWebhookInfo")["url"] == ""


def test_a_webhook_that_is_not_there_is_tried_until_it_is() -> None:
    with TelegramServer(webhook_backoff=(0.001, 0.002)) as server, Hook() as hook:
        raw, ann = Raw(server), server.person("Ann")
        ann.says("hi")
        raw.ok("setWebhook", url=f"http://127.0.0.1:{_port()}/")
        server.wait_until(lambda: server._world.updates.info().get("last_error_message"))
        assert "Connection" in raw.ok("getWebhookInfo")["last_error_message"]
        raw.ok("setWebhook", url=hook.url)
        server.wait_until(lambda: server.pending == 0)
        server.deliver_again()
        server.wait_until(lambda: server.pending == 0)
        assert hook.got[0] == hook.got[1]


def test_the_pauses_of_a_webhook_grow() -> None:
    assert list(itertools.islice(backoff(0.5, 3), 5)) == [0.5, 1, 2, 3, 3]


def test_a_webhook_may_answer_with_a_method() -> None:
    reply = json.dumps({"method": "sendMessage", "chat_id": 42, "text": "from the answer"}).encode()
    with TelegramServer() as server, Hook(reply=reply) as hook:
        ann = server.person("Ann", id=42)
        Raw(server).ok("setWebhook", url=hook.url)
        assert ann.private.wait_for_reply(ann.says("hi")).text == "from the answer"


@pytest.mark.parametrize(
    "url", ["http://example.org/", "ftp://127.0.0.1/", "127.0.0.1", "http://[::1", "http://127.0.0.1:99999/"]
)
def test_a_webhook_leads_nowhere_else(raw: Raw, url: str) -> None:
    assert "bad webhook" in raw.no("setWebhook", url=url)
    assert raw.ok("getWebhookInfo")["url"] == ""


# what Telegram refuses


@pytest.mark.parametrize(
    ("text", "mode", "shown", "entities"),
    [
        ("*a* _b_ __c__ ~d~ ||e|| `f*`", "MarkdownV2", "a b c d e f*", [("bold", 0, 1), ("italic", 2, 1), ("underline", 4, 1), ("strikethrough", 6, 1), ("spoiler", 8, 1), ("code", 10, 2)]),
        ("🏟 *🏟*\\.", "MarkdownV2", "🏟 🏟.", [("bold", 3, 2)]),
        ("```python\nprint(1)\n```", "MarkdownV2", "print(1)", [("pre", 0, 8)]),
        (">a\n>b||\nc", "MarkdownV2", "a\nb\nc", [("expandable_blockquote", 0, 3)]),
        ("[a](https://e\\.org/\\))", "MarkdownV2", "a", [("text_link", 0, 1)]),
        ("<b>a<i>b</i></b> &lt;&amp;&#33;", "HTML", "ab <&!", [("bold", 0, 2), ("italic", 1, 1)]),
        ('<pre><code class="language-c">x</code></pre>', "html", "x", [("pre", 0, 1)]),
        ('<a href="tg://user?id=1001">Ann</a> > <tg-spoiler>x</tg-spoiler>', "HTML", "Ann > x", [("text_mention", 0, 3), ("spoiler", 6, 1)]),
        ("*a* [b](e.org) c\\_d", "Markdown", "a b c_d", [("bold", 0, 1), ("text_link", 2, 1)]),
        ("  <b> a </b>\r\n ", "HTML", "a", [("bold", 0, 1)]),
        ("/go@x_bot a@b.co #tag @someone www.e.org", "", "/go@x_bot a@b.co #tag @someone www.e.org", [("bot_command", 0, 9), ("email", 10, 6), ("hashtag", 17, 4), ("mention", 22, 8), ("url", 31, 9)]),
        ("`@someone` and/or 3/4", "MarkdownV2", "@someone and/or 3/4", [("code", 0, 8)]),
    ],
)  # fmt: skip
def test_markup_is_read(raw: Raw, ann: Person, text: str, mode: str, shown: str, entities: list[Any]) -> None:
    sent = raw.ok("sendMessage", chat_id=ann.id, text=text, parse_mode=mode)
    found = [(one["type"], one["offset"], one["length"]) for one in sent.get("entities", [])]
    assert (sent["text"], found) == (shown, entities)
    assert ann.private.messages[-1].text == shown


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("1.0", "MarkdownV2", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("a!", "MarkdownV2", "Character '!' is reserved"),
        ("a > b", "MarkdownV2", "Character '>' is reserved"),
        ("a | b", "MarkdownV2", "Character '|' is reserved"),
        ("🏟 🏟_abac * asd ", "MarkdownV2", "Can't find end of Bold entity at byte offset 15"),
        ("`a", "MarkdownV2", "Can't find end of Code entity at byte offset 0"),
        ("```py \n1", "MarkdownV2", "Can't find end of PreCode entity at byte offset 0"),
        ("[a](http://e", "MarkdownV2", "Can't find end of a URL at byte offset 4"),
        (">*a\nb*", "MarkdownV2", "Can't find end of Bold entity at byte offset 1"),
        ("a < b", "HTML", 'Unsupported start tag "" at byte offset 2'),
        ("<p>a</p>", "HTML", 'Unsupported start tag "p" at byte offset 0'),
        ("<b>a", "HTML", 'Can\'t find end tag corresponding to start tag "b"'),
        ("é<b>a</i>", "HTML", 'Unmatched end tag at byte offset 6, expected "</b>", found "</i>"'),
        ("a</b>", "HTML", "Unexpected end tag at byte offset 1"),
        ("a <", "HTML", "Unclosed start tag at byte offset 2"),
        ("<span>a</span>", "HTML", 'must have class "tg-spoiler"'),
        ("*a", "Markdown", "Can't find end of the entity starting at byte offset 0"),
    ],
)
def test_markup_that_is_wrong_is_refused(raw: Raw, ann: Person, text: str, mode: str, problem: str) -> None:
    before = len(ann.sees())
    description = raw.no("sendMessage", chat_id=ann.id, text=text, parse_mode=mode)
    assert description.startswith("Bad Request: can't parse entities: ") and problem in description
    assert len(ann.sees()) == before


def _inline(*data: str) -> dict[str, Any]:
    return {"inline_keyboard": [[{"text": "b", "callback_data": one}] for one in data]}


@pytest.mark.parametrize(
    ("method", "values", "problem"),
    [
        ("sendMessage", {"text": ""}, "message text is empty"),
        ("sendMessage", {"text": " \n "}, "message text is empty"),
        ("sendMessage", {"text": "<b> </b>", "parse_mode": "HTML"}, "message text is empty"),
        ("sendMessage", {"text": "a" * 4097}, "message is too long"),
        ("sendMessage", {"text": "😀" * 2049}, "message is too long"),
        ("sendMessage", {"text": "a", "parse_mode": "BBCode"}, "unsupported parse_mode"),
        ("sendMessage", {"text": "\ud800"}, "strings must be encoded in UTF-8"),
        ("sendMessage", {"text": "a", "chat_id": None}, "chat_id is empty"),
        ("sendMessage", {"text": "a", "chat_id": 5}, "chat not found"),
        ("sendMessage", {"text": "a", "chat_id": "@nobody"}, "chat not found"),
        ("sendMessage", {"text": "a", "message_thread_id": 9}, "message thread not found"),
        ("sendMessage", {"text": "a", "reply_parameters": {"message_id": 99}}, "message to be replied not found"),
        ("sendMessage", {"text": "a", "reply_parameters": "{"}, "can't parse reply parameters"),
        ("sendMessage", {"text": "a", "entities": [{"type": "bold", "offset": 0, "length": 2}]}, "outside of the text"),
        ("sendMessage", {"text": "😀😀", "entities": [{"type": "bold", "offset": 0, "length": 3}]}, "middle of a UTF-16 symbol"),
        ("sendMessage", {"text": "😀😀", "entities": [{"type": "bold", "offset": 1, "length": 3}]}, "middle of a UTF-16 symbol"),
        ("sendMessage", {"text": "*a*" * 12_000, "parse_mode": "MarkdownV2"}, "message is too long"),
        ("sendMessage", {"text": "a", "reply_markup": _inline("")}, "BUTTON_DATA_INVALID"),
        ("sendMessage", {"text": "a", "reply_markup": _inline("ї" * 32 + "x")}, "BUTTON_DATA_INVALID"),
        ("sendMessage", {"text": "a", "reply_markup": _inline(*"x" * 101)}, "REPLY_MARKUP_TOO_LONG"),
        ("sendMessage", {"text": "a", "reply_markup": {"inline_keyboard": [_inline("x")["inline_keyboard"][0] * 9]}}, "REPLY_MARKUP_TOO_LONG"),
        ("sendMessage", {"text": "a", "reply_markup": {"inline_keyboard": [{}]}}, "a row must be of type Array"),
        ("sendMessage", {"text": "a", "reply_markup": {"inline_keyboard": [[{"text": "b"}]]}}, "Text buttons are unallowed"),
        ("sendMessage", {"text": "a", "reply_markup": {"inline_keyboard": [[{"text": "", "url": "e.org"}]]}}, "must be a non-empty String"),
        ("sendMessage", {"text": "a", "reply_markup": {"inline_keyboard": [[{"text": "b", "url": "nowhere"}]]}}, "BUTTON_URL_INVALID"),
        ("sendMessage", {"text": "a", "reply_markup": [1]}, "can't parse reply markup JSON object"),
        ("editMessageText", {"text": "b"}, "message identifier is not specified"),
        ("editMessageText", {"text": "b", "message_id": 99}, "message to edit not found"),
        ("editMessageText", {"text": "b", "message_id": 1}, "message can't be edited"),
        ("editMessageText", {"text": "same", "message_id": 2}, "message is not modified"),
        ("editMessageText", {"text": "b", "message_id": "x"}, 'invalid parameter "message_id"'),
        ("editMessageReplyMarkup", {"message_id": 2}, "message is not modified"),
        ("editMessageReplyMarkup", {"message_id": 2, "reply_markup": {"keyboard": [["a"]]}}, "inline keyboard expected"),
        ("deleteMessage", {"message_id": 99}, "message to delete not found"),
        ("setMessageReaction", {"message_id": 99}, "message to react not found"),
        ("setMessageReaction", {"message_id": 1, "reaction": [{"type": "emoji", "emoji": "🧀"}]}, "REACTION_INVALID"),
        ("setMessageReaction", {"message_id": 1, "reaction": [{"type": "emoji", "emoji": "👍"}] * 2}, "REACTIONS_TOO_MANY"),
        ("sendChatAction", {"action": "dancing"}, "wrong parameter action"),
        ("answerCallbackQuery", {"callback_query_id": "1"}, "query is too old"),
        ("sendDocument", {}, "there is no document in the request"),
        ("sendDocument", {"document": "file404"}, "wrong file identifier"),
        ("setMyCommands", {"commands": [{"command": "Big", "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ("setMyCommands", {"commands": [{"command": "a", "description": ""}]}, "BOT_COMMAND_DESCRIPTION_INVALID"),
        ("setMyCommands", {"commands": "x"}, "can't parse commands"),
        ("getMyCommands", {"scope": {"type": "moon"}}, "can't parse BotCommandScope"),
        ("setWebhook", {"url": "http://127.0.0.1:1/", "secret_token": "a b"}, "unallowed characters"),
        ("getUpdates", {"allowed_updates": [1]}, "expected Strings"),
        ("getUpdates", {"offset": "many"}, 'invalid parameter "offset"'),
        ("getChatMember", {"user_id": 404}, "PARTICIPANT_ID_INVALID"),
        ("getFile", {"file_id": "x"}, "wrong file_id"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(raw: Raw, ann: Person, method: str, values: dict[str, Any], problem: str) -> None:
    raw.ok("sendMessage", chat_id=ann.id, text="same")
    before = str(ann.private)
    assert problem in raw.no(method, **{"chat_id": ann.id, **values})
    assert str(ann.private) == before
    last = raw.server.asked[-1]
    assert (last.status, last.took_effect) == (400, False) and problem in last.description


def test_what_is_just_within_the_limits_is_taken(raw: Raw, ann: Person) -> None:
    raw.ok("sendMessage", chat_id=ann.id, text="😀" * 2048)
    raw.ok("sendMessage", chat_id=ann.id, text=f"<b>{'a' * 4096}</b>  ", parse_mode="HTML")
    raw.ok("sendMessage", chat_id=ann.id, text="a", reply_markup=_inline("ї" * 32))
    raw.ok("sendMessage", chat_id=ann.id, text="a", reply_markup=_inline(*"x" * 100))
    raw.ok("sendMessage", chat_id=ann.id, text="a", reply_markup=_inline())
    quiet = {"message_id": 99, "allow_sending_without_reply": True}
    assert "reply_to_message" not in raw.ok("sendMessage", chat_id=ann.id, text="a", reply_parameters=quiet)
    given = [{"type": "bold", "offset": 0, "length": 2}, {"type": "mention", "offset": 0, "length": 1}]
    assert raw.ok("sendMessage", chat_id=ann.id, text="😀!", entities=given)["entities"] == given[:1]


def test_tokens_methods_and_paths(server: TelegramServer, raw: Raw) -> None:
    assert Raw(server, "7000000001:other")("getMe") == (401, "Unauthorized")
    assert Raw(server, "nonsense")("getMe") == (404, "Not Found")
    assert raw("makeCoffee") == (404, "Not Found")
    assert raw.post("/") == (404, "Not Found")
    assert raw.post(f"/bot{server.token}") == (404, "Not Found")
    assert raw("GETME")[0] == raw("getme")[0] == 200
    assert [one.status for one in server.asked] == [401, 404, 404, 404, 404, 200, 200]
    assert server.asked[-1].method == "getMe"


def test_parameters_come_in_every_way(server: TelegramServer, raw: Raw, ann: Person) -> None:
    path = f"/bot{server.token}/sendMessage"
    form = {"chat_id": str(ann.id), "text": "ф & = +", "reply_markup": json.dumps(_inline("x"))}
    raw.post(f"{path}?{urlencode(form)}")
    raw.post(path, urlencode(form).encode(), "application/x-www-form-urlencoded")
    raw.post(path, json.dumps({**form, "chat_id": ann.id}).encode(), "application/json; charset=utf-8")
    raw.post(path, json.dumps({**form, "reply_markup": _inline("x")}).encode(), "application/json")
    parts = "".join(
        f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form.items()
    )
    raw.post(path, f"{parts}--B--\r\n".encode(), 'multipart/form-data; boundary="B"')
    sent = ann.private.messages[1:]
    assert [(one.text, one.buttons) for one in sent] == [("ф & = +", ((Button("b", "x"),),))] * 5
    assert len({str(one.parameters) for one in server.asked_for("sendMessage")}) == 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{", "application/json"),
        (b"[1]", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"text=%ff&chat_id=1001", "application/x-www-form-urlencoded"),
        (b"&".join(b"a%d=1" % number for number in range(2000)), "application/x-www-form-urlencoded"),
        (b"--B\r\nnothing", "multipart/form-data; boundary=B"),
        (b"--B\r\n\r\nno name\r\n--B--", "multipart/form-data; boundary=B"),
        (b"x", "multipart/form-data"),
    ],
)
def test_bodies_that_make_no_sense_are_refused(raw: Raw, ann: Person, content: bytes, kind: str) -> None:
    assert raw.post(f"/bot{raw.token}/sendMessage", content, kind)[0] == 400
    assert len(ann.sees()) == 1


def test_a_document_arrives_byte_for_byte(server: TelegramServer, raw: Raw, ann: Person) -> None:
    content = bytes(range(256)) + b"\r\n--B\r--B\n\r\n" + b"--"
    head = f'--B--B\r\nContent-Disposition: form-data; name="chat_id"\r\n\r\n{ann.id}\r\n--B--B\r\n'
    head += 'Content-Disposition: form-data; name="document"; filename="звіт \\"1\\".md"\r\nContent-Type: x/y\r\n\r\n'
    status, sent = raw.post(
        f"/bot{server.token}/sendDocument",
        head.encode() + content + b"\r\n--B--B--\r\n",
        "multipart/form-data; boundary=B--B",
    )
    assert status == 200 and sent["document"]["file_name"] == 'звіт "1".md'
    seen = ann.waits_for(lambda one: one.document is not None)
    assert seen.document is not None and seen.document.content == content
    assert "(document" in str(seen)
    again = raw.ok("sendDocument", chat_id=ann.id, document=sent["document"]["file_id"], caption="again")
    assert again["document"] == sent["document"] and again["caption"] == "again"
    assert "no text in the message to edit" in raw.no("editMessageText", chat_id=ann.id, message_id=seen.id, text="x")


# who may what


def test_a_bot_does_not_write_first(server: TelegramServer, raw: Raw) -> None:
    ann, bo = server.person("Ann"), server.person("Bo")
    robot = server.person("Robot", is_bot=True)
    server.group("Both", [bo, robot])
    assert "chat not found" in raw.no("sendMessage", chat_id=ann.id, text="x")
    assert raw.no("sendMessage", chat_id=bo.id, text="x") == "Forbidden: bot can't initiate conversation with a user"
    ann.says("hi")
    raw.ok("sendMessage", chat_id=ann.id, text="x")
    robot.says("beep")
    assert "bots can't send messages to bots" in raw.no("sendMessage", chat_id=robot.id, text="x")


def test_who_blocks_the_bot_hears_nothing(server: TelegramServer, raw: Raw, ann: Person) -> None:
    ann.blocks()
    ann.blocks()
    assert raw.no("sendMessage", chat_id=ann.id, text="x") == "Forbidden: bot was blocked by the user"
    with pytest.raises(InvalidInputError, match="unblocks"):
        ann.says("x")
    ann.unblocks()
    raw.ok("sendMessage", chat_id=ann.id, text="x")
    moved = [one["my_chat_member"] for one in raw.ok("getUpdates") if "my_chat_member" in one]
    assert [one["new_chat_member"]["status"] for one in moved] == ["kicked", "member"]


def test_a_bot_edits_and_deletes_its_own(server: TelegramServer, raw: Raw, ann: Person) -> None:
    group = server.group("G", [ann])
    said = ann.says("/x", group)
    sent = raw.ok("sendMessage", chat_id=group.id, text="a", reply_markup=_inline("x"))
    assert "edit_date" not in raw.ok("editMessageReplyMarkup", chat_id=group.id, message_id=sent["message_id"])
    edited = raw.ok(
        "editMessageText", chat_id=group.id, message_id=sent["message_id"], text="*a*", parse_mode="MarkdownV2"
    )
    assert edited["edit_date"] and "reply_markup" not in edited
    assert "can't be deleted" in raw.no("deleteMessage", chat_id=group.id, message_id=said.id)
    raw.ok("deleteMessage", chat_id=group.id, message_id=sent["message_id"])
    assert "message to delete not found" in raw.no("deleteMessage", chat_id=group.id, message_id=sent["message_id"])
    assert "message to edit not found" in raw.no(
        "editMessageText", chat_id=group.id, message_id=sent["message_id"], text="b"
    )
    assert said in group.messages and not [one for one in group.messages if one.is_by_the_bot]
    raw.ok("deleteMessage", chat_id=ann.id, message_id=1)
    assert ann.private.messages == []
    led = server.group("Led", [ann], admin=True)
    said = ann.says("rude", led)
    answer = raw.ok("sendMessage", chat_id=led.id, text="no", reply_parameters={"message_id": said.id})
    assert answer["reply_to_message"]["text"] == "rude"
    raw.ok("deleteMessage", chat_id=led.id, message_id=said.id)
    edited = raw.ok("editMessageText", chat_id=led.id, message_id=answer["message_id"], text="no!")
    assert "reply_to_message" not in edited and said not in led.messages
    ann.deletes(led.messages[-1])
    with pytest.raises(TimeoutError):
        led.wait_for_reply(said, timeout=0)


def test_a_press_is_answered_once(server: TelegramServer, raw: Raw, ann: Person) -> None:
    raw.ok(
        "sendMessage",
        chat_id=ann.id,
        text="a",
        reply_markup={
            "inline_keyboard": [[{"text": "Go", "callback_data": "go"}, {"text": "See", "url": "https://e.org"}]]
        },
    )
    message = ann.private.messages[-1]
    go = message.buttons[0][0]
    first, second = ann.presses("Go", message), ann.presses(go, message)
    query = raw.ok("getUpdates")[-1]["callback_query"]
    assert (query["id"], query["data"], query["message"]["message_id"]) == (second.id, "go", message.id)
    raw.ok("answerCallbackQuery", callback_query_id=first.id, text="ok")
    assert first.waits().text == "ok" and not second.answered
    assert "query is too old" in raw.no("answerCallbackQuery", callback_query_id=first.id)
    assert "MESSAGE_TOO_LONG" in raw.no("answerCallbackQuery", callback_query_id=second.id, text="a" * 201)
    second.expires()
    assert "query is too old" in raw.no("answerCallbackQuery", callback_query_id=second.id)
    with pytest.raises(TimeoutError, match="never answered"):
        second.waits(timeout=0)
    with pytest.raises(InvalidInputError, match="never hears"):
        ann.presses("See", message)
    with pytest.raises(InvalidInputError, match="no button"):
        ann.presses("Stop", message)
    raw.ok("deleteMessage", chat_id=ann.id, message_id=message.id)
    ann.presses(go, message)
    gone = raw.ok("getUpdates", offset=-1)[0]["callback_query"]["message"]
    assert gone["date"] == 0 and "text" not in gone


@pytest.mark.parametrize(
    ("privacy", "admin", "heard"),
    [
        (True, False, ["/go", "/go@recollect_test_bot", "hey @Recollect_Test_Bot", "a reply"]),
        (True, True, None),
        (False, False, None),
    ],
)
def test_in_groups_a_bot_hears_what_is_meant_for_it(privacy: bool, admin: bool, heard: list[str] | None) -> None:
    with TelegramServer(privacy=privacy) as server:
        raw, ann, robot = Raw(server), server.person("Ann"), server.person("Robot", is_bot=True)
        group = server.group("G", [ann, robot], admin=admin)
        sent = raw.ok("sendMessage", chat_id=group.id, text="I am here")
        raw.ok("getUpdates", offset=-1)
        texts = [
            "/go",
            "/go@recollect_test_bot",
            "/go@other_bot",
            "hey @Recollect_Test_Bot",
            "@recollect_test_bot2",
            "hello",
            "and/or",
        ]
        for text in texts:
            ann.says(text, group)
            robot.says(text, group)
        reply = ann.says("a reply", group, reply_to=group.message(sent["message_id"]))
        ann.edits(reply, "a better reply")
        updates = raw.ok("getUpdates")[1:]
        assert [one["message"]["text"] for one in updates[:-1]] == (heard or [*texts, "a reply"])
        assert _told(updates[-1]) == "edited_message"
        command = updates[0]["message"]
        assert command["entities"] == [{"type": "bot_command", "offset": 0, "length": 3}]
        assert (command["chat"]["type"], command["from"]["is_bot"]) == ("supergroup", False)


def test_people_come_and_go_and_so_does_the_bot(server: TelegramServer, raw: Raw, ann: Person) -> None:
    bo = server.person("Bo")
    group = server.group("G", [ann], admin=True)
    raw.ok("getUpdates", offset=-1, allowed_updates=ALL)
    bo.joins(group)
    assert raw.ok("getChatMember", chat_id=group.id, user_id=bo.id)["status"] == "member"
    bo.leaves(group)
    assert raw.ok("getChatMember", chat_id=group.id, user_id=bo.id)["status"] == "left"
    assert raw.ok("getChatMember", chat_id=group.id, user_id=server.bot.id)["status"] == "administrator"
    group.removes_bot(ann)
    ann.says("they are gone", group)
    assert "not a member of the supergroup" in raw.no("sendMessage", chat_id=group.id, text="x")
    group.adds_bot(ann)
    kinds = [
        (_told(one), *(set(one[_told(one)]) & {"new_chat_members", "left_chat_member"}))
        for one in raw.ok("getUpdates")[1:]
    ]
    assert kinds == [
        ("chat_member",),
        ("message", "new_chat_members"),
        ("chat_member",),
        ("message", "left_chat_member"),
        ("my_chat_member",),
        ("message", "left_chat_member"),
        ("my_chat_member",),
        ("message", "new_chat_members"),
    ]
    for wrong in (lambda: bo.leaves(group), lambda: ann.joins(group), lambda: bo.says("x", group), group.adds_bot):
        with pytest.raises(InvalidInputError):
            wrong()


def test_topics_and_threads(server: TelegramServer, raw: Raw, ann: Person) -> None:
    forum, plain = server.group("F", [ann], forum=True), server.group("P", [ann])
    topic = forum.topic("Trains")
    said = ann.says("/go", forum, thread=topic)
    update = raw.ok("getUpdates")[-1]["message"]
    assert (update["message_thread_id"], update["is_topic_message"], update["chat"]["is_forum"]) == (
        topic.id,
        True,
        True,
    )
    assert update["reply_to_message"]["forum_topic_created"]["name"] == "Trains"
    sent = raw.ok("sendMessage", chat_id=forum.id, text="x", message_thread_id=topic.id)
    assert str(said) == "Ann in Trains: /go"
    assert sent["is_topic_message"] and forum.wait_for_reply(said).id == sent["message_id"]
    assert "is_topic_message" not in raw.ok("sendMessage", chat_id=forum.id, text="x", message_thread_id=1)
    assert "thread not found" in raw.no("sendMessage", chat_id=plain.id, text="x", message_thread_id=topic.id)
    first = ann.says("/a", plain)
    ann.says("/b", plain, reply_to=ann.says("/c", plain, reply_to=first))
    reply = raw.ok("getUpdates")[-1]["message"]
    assert reply["message_thread_id"] == first.id and "is_topic_message" not in reply
    with pytest.raises(InvalidInputError, match="forum=True"):
        plain.topic("x")
    with pytest.raises(InvalidInputError, match="no topic"):
        ann.says("x", plain, thread=3)


def test_forwards_photos_and_documents(server: TelegramServer, raw: Raw, ann: Person) -> None:
    bo = server.person("Bo")
    ann.forwards(bo.says("my secret"))
    ann.forwards("news", from_="Hidden Hugo")
    ann.forwards("news", from_=server.group("Club", [bo]))
    origins = [one["message"].get("forward_origin", {}) for one in raw.ok("getUpdates") if "message" in one]
    assert [one.get("type") for one in origins if one] == ["user", "hidden_user", "chat"]
    photo = ann.sends_photo("look /here")
    body = raw.ok("getUpdates")[-1]["message"]
    assert (
        body["caption"] == "look /here" and body["caption_entities"][0]["type"] == "bot_command" and "text" not in body
    )
    path = raw.ok("getFile", file_id=body["photo"][-1]["file_id"])["file_path"]
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    for token, status in ((server.token, 200), ("7000000001:other", 404)):
        connection.request("GET", f"/file/bot{token}/{path}")
        answer = connection.getresponse()
        assert (answer.status, answer.read() == b"\xff\xd8") == (status, status == 200)
    connection.close()
    assert str(photo) == "Ann: (photo)\n    look /here"
    assert "forwarded from Hidden Hugo" in str(ann.private)
    with pytest.raises(InvalidInputError, match="whose text"):
        ann.forwards("x")


def test_what_people_see_can_be_read(server: TelegramServer, raw: Raw, ann: Person) -> None:
    keyboard = {
        "inline_keyboard": [
            [{"text": "Yes", "callback_data": "y"}, {"text": "Site", "url": "e.org"}],
            [{"text": "No", "callback_data": "n"}],
        ]
    }
    text = "<b>bo🙂<i>ld</i></b> <code>x</code> <a href='e.org'>link</a> <tg-spoiler>hush</tg-spoiler>\n<pre>1</pre>"
    sent = raw.ok(
        "sendMessage",
        chat_id=ann.id,
        text=text,
        parse_mode="HTML",
        reply_markup=keyboard,
        reply_parameters={"message_id": 1},
    )
    raw.ok("setMessageReaction", chat_id=ann.id, message_id=1, reaction=[{"type": "emoji", "emoji": "❤️"}])
    raw.ok("sendChatAction", chat_id=ann.id, action="typing")
    assert ann.private.action == "typing"
    message = ann.private.messages[-1]
    assert str(ann.private) == (
        "Ann: /start\n    ❤️ Recollect\n"
        "Recollect, to Ann: *bo🙂_ld_* `x` link (http://e.org/) ||hush||\n    ```\n    1\n    ```\n"
        "    [Yes]  [Site]\n    [No]"
    )
    raw.ok("editMessageText", chat_id=ann.id, message_id=sent["message_id"], text="short")
    assert str(message) == "Recollect, to Ann: short (edited)"
    raw.ok("sendMessage", chat_id=ann.id, text="choose", reply_markup={"keyboard": [["A", {"text": "B"}]]})
    assert ann.private.action is None
    choose = ann.private.messages[-1]
    assert choose.keyboard == (("A", "B"),)
    assert "can't be edited" in raw.no("editMessageText", chat_id=ann.id, message_id=choose.id, text="x")
    ann.deletes(message)
    assert message not in ann.sees() and "deleted" in str(message)
    with pytest.raises(TimeoutError, match="sees only:\nAnn: /start"):
        ann.waits_for("short", timeout=0)
    with pytest.raises(TimeoutError, match="did not reply"):
        ann.private.wait_for_reply(ann.says("more"), timeout=0)


# what goes wrong on demand


def test_an_answer_is_lost_before_or_after_the_effect(server: TelegramServer, raw: Raw, ann: Person) -> None:
    server.drop("sendMessage")
    server.drop("sendMessage", after=True)
    server.fail("sendMessage", 502, after=True)
    for text, visible in (("one", False), ("two", True), ("three", True)):
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            assert raw("sendMessage", chat_id=ann.id, text=text)[0] == 502
        assert (ann.private.messages[-1].text == text) is visible
    assert [(one.status, one.took_effect) for one in server.asked_for("sendMessage")] == [
        (0, False),
        (0, True),
        (502, True),
    ]
    assert raw.ok("sendMessage", chat_id=ann.id, text="four")["message_id"] == 4
    server.drop("getUpdates", after=True)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        raw("getUpdates")
    assert len(raw.ok("getUpdates")) == 1


def test_what_hangs_when_the_test_ends_never_happens() -> None:
    with ThreadPoolExecutor(1) as pool:
        with TelegramServer() as server:
            ann = server.person("Ann")
            ann.says("hi")
            stall = server.stall("sendMessage")
            hanging = pool.submit(Raw(server), "sendMessage", chat_id=ann.id, text="too late")
            stall.reached()
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            hanging.result(30)
    assert len(ann.sees()) == 1 and server.asked == []


@pytest.mark.parametrize("after", [False, True])
def test_a_request_hangs_until_it_is_released(server: TelegramServer, raw: Raw, ann: Person, after: bool) -> None:
    with ThreadPoolExecutor(2) as pool, server.stall("sendMessage", after=after) as stall:
        hanging = [pool.submit(raw.ok, "sendMessage", chat_id=ann.id, text="late") for _ in "ab"]
        stall.reached(count=2)
        assert len(ann.private.messages) == (3 if after else 1)
        assert raw.ok("getMe")["is_bot"]
        assert not any(one.done() for one in hanging)
        stall.release()
        assert {one.result(30)["message_id"] for one in hanging} == {2, 3}
        raw.ok("sendMessage", chat_id=ann.id, text="at once")


def test_faults_last_as_long_as_they_are_told(server: TelegramServer, raw: Raw) -> None:
    server.fail("getMe", 500, times=2)
    server.fail("*", 503, times=None, description="closed for today")
    assert [raw("getMe")[0] for _ in range(3)] == [500, 500, 503]
    assert raw("getChat") == (503, "Service Unavailable: closed for today")
    server.heal()
    assert raw("getMe")[0] == 200
    for wrong in (lambda: server.fail("getMee"), lambda: server.drop(times=0), lambda: server.asked_for("x")):
        with pytest.raises(InvalidInputError):
            wrong()


def test_a_server_that_goes_down_ends_what_hangs(server: TelegramServer, raw: Raw, ann: Person) -> None:
    server.stall("sendMessage")
    with ThreadPoolExecutor(2) as pool:
        poll = pool.submit(raw, "getUpdates", timeout=50, offset=-0x7FFF)
        poll.result(30)
        waiting = [
            pool.submit(raw, "getUpdates", timeout=50, offset=1 << 40),
            pool.submit(raw, "sendMessage", chat_id=ann.id, text="x"),
        ]
        server.wait_until_listening()
        server.wait_until(lambda: server._faults._set[0].held == 1)  # type: ignore[attr-defined]
        url = server.url
        server.stop()
        for one in waiting:
            with pytest.raises((http.client.HTTPException, ConnectionError)):
                one.result(30)
        with pytest.raises(ConnectionRefusedError):
            raw("getMe")
        ann.says("still there?")
        server.start()
        server.heal()
        assert server.url == url and raw.ok("getMe")["is_bot"]
        assert [one["message"]["text"] for one in raw.ok("getUpdates")] == ["still there?"]
        assert not [one for one in ann.sees() if one.is_by_the_bot]


def test_nobody_else_is_given_the_port_of_a_server_that_is_down() -> None:
    with TelegramServer() as server, socket.socket() as other:
        server.stop()
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", int(server.url.rpartition(":")[2])))


def test_flood_limits_are_telegrams() -> None:
    clock = FrozenClock()
    with TelegramServer(limits=Limits(), clock=clock) as server:
        raw = Raw(server)
        people = [server.person(f"P{number}") for number in range(31)]
        group = server.group("G", people)
        for person in people:
            person.says("hi")

        def send(chat: int) -> int:
            return raw("sendMessage", chat_id=chat, text="x")[0]

        assert [send(people[0].id), send(people[0].id)] == [200, 429]
        clock.tick(seconds=1)
        assert [send(person.id) for person in people] == [200] * 30 + [429]
        clock.tick(seconds=0.5)
        assert raw("sendMessage", chat_id=people[30].id, text="x") == (429, "Too Many Requests: retry after 1")
        told = []
        for _ in range(21):
            clock.tick(seconds=1)
            told.append(send(group.id))
        assert told == [200] * 20 + [429]
        assert raw("sendMessage", chat_id=group.id, text="x")[1] == "Too Many Requests: retry after 40"
        clock.tick(seconds=40)
        assert send(group.id) == 200
        assert group.messages[-1].date == int(clock().timestamp())


def test_no_limits_without_being_asked(raw: Raw, ann: Person) -> None:
    assert {raw("sendMessage", chat_id=ann.id, text=f"{number}")[0] for number in range(40)} == {200}


# hostile


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST /bot{token}/getMe HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /bot{token}/getMe HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /bot{token}/getMe HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PUT /bot{token}/getMe HTTP/1.1\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_get_an_error(server: TelegramServer, request_bytes: bytes) -> None:
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=120) as line:
        line.sendall(request_bytes.replace(b"{token}", server.token.encode()))
        line.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: line.recv(4096), b""))
    assert b" 400 " in answer or b" 501 " in answer or b"Error code: 400" in answer
    assert Raw(server).ok("getMe")


def test_a_client_that_hangs_up_in_its_request_changes_nothing(server: TelegramServer, ann: Person) -> None:
    text = json.dumps({"chat_id": ann.id, "text": "half"}).encode()
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=120) as line:
        head = f"POST /bot{server.token}/sendMessage HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
        line.sendall(head.encode() + text)
        line.shutdown(socket.SHUT_WR)
        assert line.recv(100) == b""
    assert len(ann.sees()) == 1


def test_an_upload_in_chunks_is_read(server: TelegramServer, raw: Raw, ann: Person) -> None:
    body = json.dumps({"chat_id": ann.id, "text": "in chunks"}).encode()
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request(
        "POST",
        f"/bot{server.token}/sendMessage",
        iter([body[:7], body[7:]]),
        {"Content-Type": "application/json"},
        encode_chunked=True,
    )
    assert connection.getresponse().status == 200
    connection.close()
    assert ann.private.messages[-1].text == "in chunks"


@pytest.mark.parametrize(
    "value", [None, True, 1.5, [], {}, [[]], "", "\0", "9" * 40, {"a": {"b": []}}, [None], -1, 1 << 70]
)
def test_no_value_breaks_the_server(server: TelegramServer, raw: Raw, ann: Person, value: Any) -> None:
    names = ["chat_id", "text", "message_id", "message_thread_id", "reply_markup", "entities", "reply_parameters", "parse_mode", "commands", "scope", "reaction", "document", "url", "user_id", "callback_query_id", "offset", "limit", "allowed_updates", "action", "file_id", "language_code", "max_connections", "secret_token"]  # fmt: skip
    raw.line = raw.connected()
    raw.ok("sendMessage", chat_id=ann.id, text="x")
    for method in (
        "sendMessage",
        "editMessageText",
        "editMessageReplyMarkup",
        "deleteMessage",
        "sendDocument",
        "setMessageReaction",
        "answerCallbackQuery",
        "setMyCommands",
        "getMyCommands",
        "getChat",
        "getChatMember",
        "getFile",
        "sendChatAction",
        "setWebhook",
        "getUpdates",
    ):
        for name in names:
            values = {"chat_id": ann.id, "text": "t", "message_id": 2, "action": "typing", "commands": [], name: value}
            assert raw(method, **values)[0] in (200, 400), (method, name)
    raw.ok("deleteWebhook")
    raw.line.close()
    assert server.problems == []


@pytest.mark.parametrize("depth", [60, 980, 5000])
@pytest.mark.parametrize("name", ["reply_markup", "text", "chat_id"])
def test_what_is_nested_too_deep_is_refused(raw: Raw, ann: Person, depth: int, name: str) -> None:
    for value in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        body = f'{{"chat_id": {ann.id}, "text": "t", "{name}": {value}}}'
        assert raw.post(f"/bot{raw.token}/sendMessage", body.encode(), "application/json")[0] == 400


def test_a_condition_that_fails_fails_for_who_waits() -> None:
    changes, waiting = Changes(), threading.Event()
    answers: list[Any] = []

    def fails() -> bool:
        return bool(answers) and bool(1 // answers[0])

    def wait() -> Any:
        with changes:
            waiting.set()
            return changes.wait_for(fails, 30)

    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(wait)
        waiting.wait()
        with changes:  # only now does it really wait: it has let the lock go
            answers.append(0)
            changes.tell()
        with pytest.raises(ZeroDivisionError):
            waiter.result(30)


def test_what_was_so_for_a_moment_is_not_missed() -> None:
    changes, waiting = Changes(), threading.Event()
    there: list[str] = []

    def wait() -> Any:
        with changes:
            waiting.set()
            return changes.wait_for(lambda: there and there[0], 30)

    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(wait)
        waiting.wait()
        with changes:
            there.append("a flash")
            changes.tell()
            there.clear()
            changes.tell()
        assert waiter.result(30) == "a flash"


def test_a_webhook_that_never_answers_does_not_hold_the_server_up(
    server: TelegramServer, raw: Raw, ann: Person
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hook:
        raw.ok("setWebhook", url=f"http://127.0.0.1:{hook.getsockname()[1]}/")
        for said in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"):
            line, _ = hook.accept()
            with line:
                line.recv(1 << 16)
                line.sendall(said)
                server.restart()
        assert server.pending == 1
    assert raw.ok("deleteWebhook")


def test_what_a_dead_poller_was_given_counts_as_not_given(server: TelegramServer, raw: Raw, ann: Person) -> None:
    (first,) = raw.ok("getUpdates")
    after = first["update_id"] + 1
    assert raw.ok("getUpdates", offset=after) == []
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as dead:
        dead.sendall(
            f"GET /bot{server.token}/getUpdates?timeout=50&offset={after} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )
        server.wait_until_listening()
    server.deliver_again()
    assert raw.ok("getUpdates", offset=after) == [first]


def test_the_tests_own_mistakes_are_told(server: TelegramServer, ann: Person) -> None:
    bo = server.person("Bo", id=77)
    said = ann.says("x")
    group: Group = server.group("G", [bo])
    assert server.person("Cy", id=1000 + 4).id != server.person("Di").id
    wrong: list[Callable[[], Any]] = [
        lambda: server.person(""),
        lambda: server.person("Bo", id=77),
        lambda: server.person("Bo", id=-1),
        lambda: TelegramServer(token="nonsense"),
        lambda: server.group("G", [], forum=True, basic=True),
        lambda: ann.says(""),
        lambda: ann.says("a" * 4097),
        lambda: ann.says("x", bo.private),
        lambda: ann.says("x", reply_to=bo.says("y")),
        lambda: bo.edits(said, "mine now"),
        lambda: ann.edits(said, "x"),
        lambda: bo.deletes(said),
        lambda: bo.reacts("👍", said),
        lambda: ann.reacts("🧀", said),
        group.becomes_supergroup,
    ]
    for does in wrong:
        with pytest.raises(InvalidInputError):
            does()
    assert [one.text for one in ann.sees()] == ["/start", "x"]


def test_the_public_names_are_deliberate() -> None:
    assert len(telegram.__all__) == 12
    for name in telegram.__all__:
        assert getattr(telegram, name).__doc__
    assert isinstance(Message.text, property)
