"""The Telegram of `recollect.testing`: used by python-telegram-bot and by raw HTTP, with users on the other side."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, NetworkError, RetryAfter
from telegram.ext import ApplicationBuilder, CallbackQueryHandler, CommandHandler, MessageHandler, filters

from recollect.errors import InvalidInputError
from recollect.testing import FrozenClock, telegram
from recollect.testing.telegram import Button, Entity
from tests.fakes.telegram import FaultyTelegramServer, Phone

pytestmark = pytest.mark.filterwarnings("ignore:.*PTB_TIMEDELTA")


class Raw:
    """The Bot API by hand."""

    def __init__(self, server: FaultyTelegramServer) -> None:
        self.server = server

    def __call__(self, method: str, **values: Any) -> tuple[int, Any]:
        return self.post(f"/bot{self.server.token}/{method}", values)

    def post(self, path: str, values: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.server.url.rpartition(":")[2]), timeout=60)
        try:
            connection.request("POST", path, json.dumps(values).encode(), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = json.loads(answer.read())
        finally:
            connection.close()
        assert body["ok"] == (answer.status == 200)
        return answer.status, body["result"] if body["ok"] else body["description"]

    def ok(self, method: str, **values: Any) -> Any:
        status, result = self(method, **values)
        assert status == 200, result
        return result

    def refused(self, method: str, **values: Any) -> str:
        status, description = self(method, **values)
        return f"{status} {description}"

    def kinds(self, offset: int = 0) -> list[str]:
        return [kind for one in self.ok("getUpdates", offset=offset) for kind in one if kind != "update_id"]


@pytest.fixture
def server() -> Iterator[FaultyTelegramServer]:
    with FaultyTelegramServer() as running:
        yield running
    assert running.problems == []


@pytest.fixture
def raw(server: FaultyTelegramServer) -> Raw:
    return Raw(server)


@pytest.fixture
def ann(server: FaultyTelegramServer) -> Phone:
    user = server.user("Ann", "ann_of_kyiv")
    user.says("/start")
    return user


# with python-telegram-bot


async def _start(update: Any, context: Any) -> None:
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
    await update.message.reply_text("<b>Shall</b> I?", parse_mode="HTML", reply_markup=keyboard)


async def _pressed(update: Any, context: Any) -> None:
    await update.callback_query.answer("Thank you")
    await update.callback_query.edit_message_text("I shall.")


async def _document(update: Any, context: Any) -> None:
    await update.message.reply_document(os.urandom(5000) + b"\r\n--x\r\n", filename="back.bin")


def test_a_bot_of_the_library_talks_to_users(server: FaultyTelegramServer) -> None:
    def users() -> None:
        server.wait_until_listening()
        ann = server.user("Ann")
        question = ann.private.wait_for_reply(ann.says("/start"))
        assert question.text == "Shall I?" and question.labels == [["Yes"]]
        assert ann.presses("Yes", question).waits().text == "Thank you"
        ann.waits_for("I shall.")
        assert str(ann.private) == "Ann: /start\nRecollect: I shall. (edited)"
        back = ann.private.wait_for_reply(ann.sends_document("a.bin", b"x")).document
        assert back is not None and back.name == "back.bin"
        assert len(back.content) == 5007 and back.content.endswith(b"\r\n--x\r\n")
        ann.blocks()
        ann.unblocks()

    async def main() -> None:
        app = ApplicationBuilder().token(server.token).base_url(server.base_url).build()
        app.add_handler(CommandHandler("start", _start))
        app.add_handler(CallbackQueryHandler(_pressed))
        app.add_handler(MessageHandler(filters.Document.ALL, _document))
        async with app:
            await app.start()
            assert app.updater is not None
            await app.updater.start_polling(allowed_updates=list(Update.ALL_TYPES))
            await asyncio.to_thread(users)
            await app.updater.stop()
            await app.stop()

    asyncio.run(main())


def test_the_library_raises_its_own_errors(server: FaultyTelegramServer, ann: Phone) -> None:
    group = server.group("Old", [ann], basic=True)
    old = group.id
    new = group.becomes_supergroup()

    async def main() -> None:
        async with Bot(server.token, base_url=server.base_url) as bot:
            with pytest.raises(BadRequest, match="Chat not found"):
                await bot.send_message(404, "x")
            with pytest.raises(ChatMigrated) as moved:
                await bot.send_message(old, "x")
            assert moved.value.new_chat_id == new
            server.fail("sendMessage", retry_after=7)
            with pytest.raises(RetryAfter):
                await bot.send_message(ann.id, "x")
            server.fail("sendMessage", 502, body=b"<html>Bad Gateway</html>")
            with pytest.raises(NetworkError, match="Bad Gateway"):
                await bot.send_message(ann.id, "x")
            server.drop("sendMessage")
            with pytest.raises(NetworkError):
                await bot.send_message(ann.id, "x")
            ann.blocks()
            with pytest.raises(Forbidden, match="blocked by the user"):
                await bot.send_message(ann.id, "x")
            await bot.set_webhook("http://127.0.0.1:9/")
            with pytest.raises(Conflict):
                await bot.get_updates()
            await bot.delete_webhook()

    asyncio.run(main())


# updates


def test_updates_stay_until_they_are_confirmed(raw: Raw, ann: Phone) -> None:
    ann.says("two")
    first = raw.ok("getUpdates")
    assert [one["message"]["text"] for one in first] == ["/start", "two"]
    assert raw.ok("getUpdates", limit=1) == first[:1]
    assert raw.ok("getUpdates", offset=first[0]["update_id"] + 1) == first[1:]
    assert raw.ok("getUpdates", offset=first[1]["update_id"] + 1) == []


def test_the_second_poller_ends_the_first(raw: Raw, server: FaultyTelegramServer) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(raw.refused, "getUpdates", timeout=30)
        server.wait_until_listening()
        assert raw.ok("getUpdates") == []
        assert waiting.result(60).startswith("409 Conflict: terminated by other getUpdates")


def test_what_a_dead_poller_was_waiting_for_is_not_lost(raw: Raw, server: FaultyTelegramServer, ann: Phone) -> None:
    raw.ok("getUpdates", offset=raw.ok("getUpdates")[-1]["update_id"] + 1)
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as dead:
        dead.sendall(f"GET /bot{server.token}/getUpdates?timeout=30 HTTP/1.1\r\n\r\n".encode())
        server.wait_until_listening()
    ann.says("anybody?")
    assert raw.kinds() == ["message"]


def test_an_update_can_come_again(raw: Raw, server: FaultyTelegramServer, ann: Phone) -> None:
    server.deliver_twice()
    ann.says("twice")
    first, second = raw.ok("getUpdates")
    after = second["update_id"] + 1
    assert raw.ok("getUpdates", offset=after) == [second]
    assert raw.ok("getUpdates", offset=after) == []
    server.deliver_again(2)
    assert raw.ok("getUpdates", offset=after) == [first, second]
    assert raw.ok("getUpdates", offset=after) == [] and server.pending == 0


def test_a_bot_gets_reactions_only_if_it_asks_for_them(raw: Raw, ann: Phone) -> None:
    raw.ok("sendMessage", chat_id=ann.id, text="Hello")
    ann.reacts("👍", ann.waits_for("Hello"))
    assert raw.kinds() == ["message"]
    raw.ok("getUpdates", allowed_updates=["message_reaction"])
    ann.reacts(None, ann.waits_for("Hello"))
    assert raw.kinds() == ["message", "message_reaction"]


def test_a_webhook_gets_updates_in_order_until_it_accepts_them(raw: Raw, server: FaultyTelegramServer) -> None:
    posts: list[tuple[str | None, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posts.append((self.headers["X-Telegram-Bot-Api-Secret-Token"], body["message"]["text"]))
            self.send_response(500 if len(posts) == 1 else 200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as hook:
        thread = threading.Thread(target=hook.serve_forever, args=(0.01,))
        thread.start()
        raw.ok("setWebhook", url=f"http://127.0.0.1:{hook.server_port}/x", secret_token="s")
        ann = server.user("Ann")
        for text in ("one", "two"):
            ann.says(text)
        server.wait_until(lambda: server.pending == 0)
        assert server.webhook is not None and "500" in server.webhook.error
        hook.shutdown()
        thread.join()
    assert posts == [("s", "one"), ("s", "one"), ("s", "two")]
    assert "plain HTTP" in raw.refused("setWebhook", url="https://example.org/")


# texts


@pytest.mark.parametrize(
    ("source", "text", "entities"),
    [
        ("<b>bold</b> &lt;&amp;&gt; &#33;", "bold <&> !", [Entity("bold", 0, 4)]),
        ("  <i>🙂 <b>x</b></i> ", "🙂 x", [Entity("italic", 0, 4), Entity("bold", 3, 1)]),
        ("<code>/x</code> /help", "/x /help", [Entity("code", 0, 2), Entity("bot_command", 3, 5)]),
        (
            '<a href="https://a.org">a</a> @ann_b',
            "a @ann_b",
            [Entity("text_link", 0, 1, "https://a.org"), Entity("mention", 2, 6)],
        ),
        ("a & b &unknown;", "a & b &unknown;", []),
    ],
)
def test_markup_is_read(raw: Raw, ann: Phone, source: str, text: str, entities: list[Entity]) -> None:
    raw.ok("sendMessage", chat_id=ann.id, text=source, parse_mode="HTML")
    (message,) = (one for one in ann.private.messages if one.is_by_the_bot)
    assert (message.text, list(message.entities)) == (text, entities)


@pytest.mark.parametrize(
    "source", ["<b>x", "x</b>", "<b><i>x</b></i>", "<script>x</script>", "1 < 2", "<3", "<!-- x -->", "a <"]
)
def test_markup_that_is_wrong_is_refused(raw: Raw, ann: Phone, source: str) -> None:
    found = raw.refused("sendMessage", chat_id=ann.id, text=source, parse_mode="HTML")
    assert found.startswith("400 Bad Request: can't parse entities")


def _keyboard(**button: Any) -> dict[str, Any]:
    return {"inline_keyboard": [[{"text": "x", **button}]]}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"text": " "}, "message text is empty"),
        ({"text": "🙂" * 2049}, "message is too long"),
        ({"parse_mode": "MarkdownV2"}, "only HTML"),
        ({"chat_id": 5}, "chat not found"),
        ({"chat_id": "x"}, "must be a number"),
        ({"message_thread_id": 5}, "message thread not found"),
        ({"reply_parameters": {"message_id": 99}}, "message to be replied not found"),
        ({"reply_markup": _keyboard(callback_data="й" * 33)}, "BUTTON_DATA_INVALID"),
        ({"reply_markup": _keyboard()}, "callback_data or a url"),
        ({"reply_markup": {"inline_keyboard": [[{"text": "x", "url": "https://x.org"}]] * 101}}, "TOO_LONG"),
    ],
)
def test_bad_messages_are_refused(raw: Raw, ann: Phone, values: dict[str, Any], problem: str) -> None:
    found = raw.refused("sendMessage", **{"chat_id": ann.id, "text": "x", **values})
    assert found.startswith("400 ") and problem in found
    assert len(ann.private.messages) == 1


def test_what_is_just_within_the_limits_is_accepted(raw: Raw, ann: Phone) -> None:
    raw.ok("sendMessage", chat_id=ann.id, text="🙂" * 2048, reply_markup=_keyboard(callback_data="й" * 32))
    assert ann.private.messages[-1].buttons == ((Button("x", "й" * 32),),)


def test_tokens_methods_and_commands(raw: Raw, server: FaultyTelegramServer) -> None:
    assert raw.ok("getMe")["username"] == "recollect_test_bot"
    assert raw.refused("sendPoll") == "404 Not Found"
    assert raw.post("/bot1:x/getMe", {})[0] == 401 and raw.post("/", {})[0] == 404
    assert raw.ok("setMyCommands", commands=[{"command": "memory", "description": "What I know"}])
    assert "BOT_COMMAND_INVALID" in raw.refused("setMyCommands", commands=[{"command": "Me!", "description": "x"}])


# chats


def test_a_bot_edits_its_own_messages_to_something_else(raw: Raw, ann: Phone) -> None:
    sent = raw.ok("sendMessage", chat_id=ann.id, text="one", reply_markup=_keyboard(callback_data="a"))
    place = {"chat_id": ann.id, "message_id": sent["message_id"]}
    same = raw.refused("editMessageText", text="one", reply_markup=_keyboard(callback_data="a"), **place)
    assert "message is not modified" in same
    raw.ok("editMessageReplyMarkup", **place)
    message = ann.waits_for("one")
    assert message.labels == [] and not message.edited
    raw.ok("editMessageText", text="two", **place)
    assert message.text == "two" and message.edited
    assert "can't be edited" in raw.refused("editMessageText", chat_id=ann.id, message_id=1, text="x")
    ann.deletes(message)
    assert "message to edit not found" in raw.refused("editMessageText", text="three", **place)


def test_a_press_is_answered_once(raw: Raw, ann: Phone) -> None:
    raw.ok("sendMessage", chat_id=ann.id, text="?", reply_markup=_keyboard(callback_data="a"))
    press = ann.presses("x", ann.waits_for("?"))
    query = raw.ok("getUpdates")[-1]["callback_query"]
    assert (query["data"], query["message"]["text"], query["from"]["first_name"]) == ("a", "?", "Ann")
    assert "MESSAGE_TOO_LONG" in raw.refused("answerCallbackQuery", callback_query_id=query["id"], text="x" * 201)
    raw.ok("answerCallbackQuery", callback_query_id=query["id"], text="Yes")
    assert press.waits().text == "Yes"
    assert "query is too old" in raw.refused("answerCallbackQuery", callback_query_id=query["id"])


def test_in_groups_a_bot_gets_what_is_meant_for_it(raw: Raw, server: FaultyTelegramServer, ann: Phone) -> None:
    group = server.group("Trip", [ann])
    raw.ok("sendMessage", chat_id=group.id, text="Hello")
    hello = group.messages[-1]
    meant = ("/help", "/help@recollect_test_bot", "hey @recollect_test_bot")
    for text in ("hello", "/help@other_bot", "@recollect_test_bot2", *meant):
        ann.says(text, group)
    ann.says("I agree", group, reply_to=hello)
    texts = [one["message"].get("text") for one in raw.ok("getUpdates") if "message" in one]
    assert texts == ["/start", None, *meant, "I agree"]
    group.removes_bot()
    assert raw.refused("sendMessage", chat_id=group.id, text="x").startswith("403 Forbidden: bot is not a member")


def test_topics(raw: Raw, server: FaultyTelegramServer, ann: Phone) -> None:
    group = server.group("Trip", [ann], forum=True)
    trains = group.topic("Trains")
    ann.says("/help", group, thread=trains)
    body = raw.ok("getUpdates")[-1]["message"]
    assert body["message_thread_id"] == trains.id and body["is_topic_message"]
    assert body["reply_to_message"]["forum_topic_created"]["name"] == "Trains"
    raw.ok("sendMessage", chat_id=group.id, message_thread_id=trains.id, text="Yes?")
    assert str(group.messages[-1]) == "Recollect in Trains: Yes?"


def test_forwards_files_and_edits(raw: Raw, server: FaultyTelegramServer, ann: Phone) -> None:
    ann.forwards("news", from_=server.user("Bo"))
    ann.forwards("rumours", from_="Somebody")
    ann.sends_photo("my cat")
    ann.edits(ann.sends_document("a.txt", b"x", "notes"), "better notes")
    forwarded, hidden, photo, document, edited = (next(reversed(one.values())) for one in raw.ok("getUpdates")[1:])
    assert forwarded["forward_origin"]["sender_user"]["first_name"] == "Bo"
    assert hidden["forward_origin"]["sender_user_name"] == "Somebody"
    assert photo["photo"] and photo["caption"] == "my cat"
    assert document["document"]["file_name"] == "a.txt" and edited["caption"] == "better notes"
    with pytest.raises(InvalidInputError, match="only their own"):
        ann.edits(server.user("Bo").says("x"), "y")


# faults


@pytest.mark.parametrize("after", [False, True])
def test_an_answer_is_lost_before_or_after_the_effect(
    raw: Raw, server: FaultyTelegramServer, ann: Phone, after: bool
) -> None:
    server.drop("sendMessage", after=after)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        raw("sendMessage", chat_id=ann.id, text="dropped")
    server.fail("sendMessage", 502, after=after)
    assert raw("sendMessage", chat_id=ann.id, text="failed")[0] == 502
    with ThreadPoolExecutor(1) as pool, server.stall("sendMessage", after=after) as stall:
        waiting = pool.submit(raw.ok, "sendMessage", chat_id=ann.id, text="held")
        stall.reached()
        texts = [one.text for one in ann.private.messages[1:]]
        assert texts == (["dropped", "failed", "held"] if after else []) and not waiting.done()
        stall.release()
        assert waiting.result(60)["text"] == "held"
    assert [one.status for one in server.requests] == [0, 502, 200]


def test_a_server_that_goes_down_comes_back_with_its_state(raw: Raw, server: FaultyTelegramServer, ann: Phone) -> None:
    port = int(server.url.rpartition(":")[2])
    with ThreadPoolExecutor(1) as pool:
        stall = server.stall("sendMessage")
        waiting = pool.submit(raw, "sendMessage", chat_id=ann.id, text="never")
        stall.reached()
        server.stop()
        assert isinstance(waiting.exception(60), http.client.HTTPException | ConnectionError)
    ann.says("still there?")
    with pytest.raises(ConnectionError):
        raw("getMe")
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    server.start()
    assert raw.kinds() == ["message", "message"] and len(ann.private.messages) == 2


def test_messages_that_come_too_fast_are_refused() -> None:
    clock = FrozenClock()
    with FaultyTelegramServer(chat_interval=1, clock=clock) as server:
        raw, ann, bo = Raw(server), server.user("Ann"), server.user("Bo")
        for user in (ann, bo):
            user.says("/start")
            raw.ok("sendMessage", chat_id=user.id, text="one")
        assert raw.refused("sendMessage", chat_id=ann.id, text="two") == "429 Too Many Requests: retry after 1"
        clock.tick(seconds=1)
        raw.ok("sendMessage", chat_id=ann.id, text="two")


def test_a_wait_that_fails_shows_the_screen(ann: Phone) -> None:
    with pytest.raises(TimeoutError, match="Ann: /start"):
        ann.waits_for("never", 0.01)
    with pytest.raises(TimeoutError, match="did not reply"):
        ann.private.wait_for_reply(ann.says("hello?"), 0.01)
    with pytest.raises(InvalidInputError, match="no button"):
        ann.presses("Yes", ann.says("x"))


def test_the_public_names_are_deliberate() -> None:
    assert all(hasattr(telegram, name) for name in telegram.__all__)
