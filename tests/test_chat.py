"""The terminal chat, on a real pseudo-terminal: what a person types and sees, interruptions, kills, pipes and programs."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Message
from recollect.agents.extract import extract
from recollect.surfaces.chat.page import Choice
from recollect.surfaces.terminal.chat import _chosen_choice
from recollect.surfaces.terminal.lines import VERBS, _commands, _completer, earlier_inputs
from recollect.testing.models import Call, Cut, ModelRequest, ModelServer, Say, Stall, Turn
from tests.program import ProgramProcess
from tests.test_cli import environment, run

PROMPT = "› "
POST = "PostgreSQL 18 Released"


class Terminal:
    """The chat on a terminal. Everything waits for what is shown."""

    def __init__(self, root: Path, *args: str, columns: int = 80, **variables: str) -> None:
        self.fd, inside = pty.openpty()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.raw = ""
        self._left = b""
        self._seen = 0
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), inside)
        environ = environment(INPUTRC="/dev/null", **variables)
        self.process = ProgramProcess("chat", "--root", str(root), *args, **streams, env=environ, owns_terminal=True)
        os.close(inside)

    @property
    def shown(self) -> str:
        """All that was shown, without colours."""
        return plain(self.raw)

    def until(self, what: str) -> str:
        """What was shown since this was called last, as soon as it ends like that."""
        deadline = time.monotonic() + 120
        while not (new := self.shown[self._seen :]).endswith(what):
            assert time.monotonic() < deadline and self._read(deadline), f"not shown: {what!r}, but: {new!r}"
        self._seen += len(new)
        return new

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def say(self, line: str) -> str:
        """Type a line; the answer to it, up to the next prompt."""
        self.type(f"{line}\n")
        return self.until(f"\n{PROMPT}").removesuffix(PROMPT).strip("\n")

    def leave(self) -> str:
        """Press Ctrl-D; what is said to that."""
        self.type("\x04")
        said = self.until("Goodbye.\n")
        assert self.close() == 0
        return said

    def wait_for_keys(self) -> None:
        """Until it sleeps: a signal that comes between a key and the next wait is only seen with another key."""
        status = Path(f"/proc/{self.process.pid}/stat")
        while status.read_text().rpartition(")")[2].split()[0] != "S":
            pass

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> int:
        code = self.process.wait(timeout=120)
        os.close(self.fd)
        return code

    def _read(self, deadline: float) -> bool:
        if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
            return False
        try:
            data = self._left + os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return False
        try:
            self.raw, self._left = self.raw + data.decode(), b""
        except UnicodeDecodeError as error:
            self.raw, self._left = self.raw + data[: error.start].decode(), data[error.start :]
        return True


def plain(text: str) -> str:
    """Without colours, and with what was drawn over gone."""
    text = re.sub(r"\x1b\[\?\d+[hl]", "", text)
    text = re.sub(r"…\r\x1b\[K", "", text)  # the mark of waiting
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\x1b\][^\x07]*\x07|\r|\x07", "", text)


@contextmanager
def chatting(root: Path, *args: str, columns: int = 80, **variables: str) -> Iterator[Terminal]:
    terminal = Terminal(root, *args, columns=columns, **variables)
    try:
        terminal.until(PROMPT)
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.wait()


def with_model(server: ModelServer) -> dict[str, Any]:
    return {"MEMORY_MODEL": f"{server.openai_url}#test", "MEMORY_MODEL_KEY": "test"}


def said(root: Path, user: str = "me") -> list[str]:
    with recollect.open(root) as app:
        found = app.user(user).read(kind="message")
        return [one.content for one in found if isinstance(one, Message) and one.role == "user"]


def facts(root: Path) -> list[str]:
    with recollect.open(root) as app:
        return sorted(fact.text for fact in app.user("me").read(kind="fact"))


def memory_md(root: Path) -> str:
    return (root / "me" / "MEMORY.md").read_text(encoding="utf-8")


def discusses(asked: ModelRequest) -> Turn:
    """A model that talks, and that finds nothing when it is asked to extract."""
    if "look after the long-term memory" not in asked.system:
        return Say("Interesting! Tell me more.")
    return Call(asked.tools[0].name, {"memory_updates": [], "daily_notes": []})


# the checklist of the design


@pytest.mark.slow
def test_U1_the_manual_checklist_through_the_terminal(tmp_path: Path) -> None:
    with chatting(tmp_path) as terminal:
        # start a discussion, mention your job role → check MEMORY.md after extraction
        assert f"Discussing: {POST}" in terminal.say(f"/discuss {POST}")
        terminal.say("I'm a senior backend engineer at Stripe, so this matters to me.")
        assert "Stripe" in terminal.say("/end") and "Stripe" in memory_md(tmp_path)
        # "remember that I prefer technical articles" → immediately in MEMORY.md
        answer = terminal.say("remember that I prefer technical articles")
        assert "Got it, I'll remember that.\n✓ Remembered: Prefers technical articles #" in answer
        assert answer.endswith("· undo with /memory undo")
        assert "- Prefers technical articles" in memory_md(tmp_path)
        assert "\x1b[32m✓ Remembered" in terminal.raw
        # 👍 on three posts of one topic → an interest in the daily batch
        today = datetime.now(timezone.utc).date()
        with recollect.open(tmp_path) as app:
            memory = app.user("me")
            for title in (POST, "PostgreSQL vacuum internals", "Scaling PostgreSQL to 10 TB"):
                memory.report("reaction", title=title, value="👍")
            assert extract(memory, today).skipped is None
        # /memory shows what is stored
        shown = terminal.say("/memory")
        assert "Interested in PostgreSQL" in shown
        assert all(text.split(": ")[-1] in shown for text in facts(tmp_path))
        # pause → no extraction in the next batch
        assert "Memory is paused" in terminal.say("/memory pause")
        terminal.say("I moved to Lviv last month")
        with recollect.open(tmp_path) as app:
            assert extract(app.user("me"), today).skipped == "paused"
        assert "Lviv" not in memory_md(tmp_path)
        assert "on again" in terminal.say("/memory resume")
        # clear → MEMORY.md is reset
        asked = terminal.say("/memory clear")
        assert "Erase everything I know about you?" in asked and "  1  Erase everything\n  2  Keep" in asked
        assert "nothing was changed" in terminal.say("2")
        terminal.say("/memory clear")
        assert "✓ Everything is erased." in terminal.say("1")
        assert "Stripe" not in memory_md(tmp_path) and facts(tmp_path) == []
        assert "What I learned" not in terminal.leave()

    with ModelServer(discusses) as server, chatting(tmp_path, **with_model(server)) as terminal:
        with recollect.open(tmp_path) as app:
            app.user("me").remember("Interested in distributed systems", category="preference")
            app.user("me").remember("Works on a fraud pipeline", category="work_context")
        terminal.say("/discuss Raft Consensus Deep Dive")
        terminal.say("The leader election is what I waited for")
        terminal.say("/end")
        # forget a topic: it lists, asks, then forgets
        asked = terminal.say("/memory forget distributed systems")
        assert "• Interested in distributed systems #" in asked and "1  Forget this" in asked
        assert "Interested in distributed systems" in facts(tmp_path)
        assert "✓ Forgotten." in terminal.say("y")
        assert facts(tmp_path) == ["Works on a fraud pipeline"]
        # search for a past discussion
        assert "Raft Consensus Deep Dive" in terminal.say("/memory search what did we discuss about Raft")
        # the context is in the system prompt of the next discussion
        terminal.say("/discuss CockroachDB pricing")
        assert "Interesting! Tell me more." in terminal.say("What does it cost?")
        assert "### Core Profile" in server.requests[-1].system
        assert "Works on a fraud pipeline" in server.requests[-1].system
        terminal.leave()


# a person at a terminal


def test_U1_an_answer_comes_as_it_is_made_is_shown_once_and_steers_nothing(tmp_path: Path) -> None:
    evil, go_on = "\x1b]0;owned\x07\x1b[2Jhello\x9b31m", threading.Event()
    with recollect.open(tmp_path) as app:
        app.user("me").remember("Likes \u202egolf\u202c [bold]tea[/bold] :wow:")
    script: list[Turn] = [
        Stall(until=go_on, then=Say("First line.\nSecond line.")),
        Say(evil),
        Cut(Say(f"{evil} The vacuum of PostgreSQL " * 20), at=0.6),
        Say("Fine."),
    ]
    with ModelServer(script) as server, chatting(tmp_path, **with_model(server)) as terminal:
        terminal.type("Hello\n")
        terminal.until("Hello\n…")
        go_on.set()
        terminal.until(f"\n{PROMPT}")
        assert terminal.shown.endswith(f"{PROMPT}Hello\nFirst line.\nSecond line.\n\n{PROMPT}")
        assert server.requests[0].stream
        assert "hello" in terminal.say("Steer me")
        broken = terminal.say("Tell me")
        assert "The vacuum of" in broken and "✗ The model did not answer (unavailable)" in broken
        assert terminal.say("And now?").endswith("Fine.")
        assert "[bold]tea[/bold] :wow:" in terminal.say("/memory")
        assert "\x1b]0;" not in terminal.raw and "\x1b[2J" not in terminal.raw and "\x9b" not in terminal.raw


def test_U1_ctrl_c_stops_the_answer_and_not_the_program(tmp_path: Path) -> None:
    asked = threading.Event()

    def script(request: ModelRequest) -> Turn:
        if request.text == "Hello":
            asked.set()
            return Stall()
        return Say("Yes?")

    with ModelServer(script) as server, chatting(tmp_path, **with_model(server)) as terminal:
        terminal.type("Hello\n")
        assert asked.wait(30)
        terminal.type("\x03")
        assert "(interrupted)" in terminal.until(f"\n{PROMPT}")
        assert terminal.say("Still there?").endswith("Yes?")
        for typed in ("half a line", "another"):
            terminal.type(typed)
            terminal.until(typed)
            terminal.wait_for_keys()
            terminal.type("\x03")
            assert "Ctrl-D ends the chat." in terminal.until(f"\n{PROMPT}")
        terminal.process.kill()
    assert said(tmp_path) == ["Hello", "Still there?"]


def test_U1_ctrl_d_says_goodbye_and_what_was_learned(tmp_path: Path) -> None:
    with chatting(tmp_path) as terminal:
        assert "No model is configured" in terminal.say("I live in Lviv")
        shown = terminal.leave()
    assert "What I learned:\n✓ Remembered: Location: Lviv #" in shown
    assert facts(tmp_path) == ["location: Lviv"]


@pytest.mark.slow
def test_U1_a_killed_chat_loses_nothing_said_and_goes_on(tmp_path: Path) -> None:
    asked = threading.Event()

    def script(request: ModelRequest) -> Turn:
        if request.text == "I work at Stripe":
            asked.set()
            return Stall()
        return Say("Go on.")

    with ModelServer(script) as server:
        with chatting(tmp_path, **with_model(server)) as terminal:
            terminal.say(f"/discuss {POST}")
            terminal.say("I live in Lviv")
            terminal.type("I work at Stripe\n")
            assert asked.wait(30)
            terminal.kill()
        assert said(tmp_path) == ["I live in Lviv", "I work at Stripe"]
        with chatting(tmp_path, **with_model(server)) as terminal:
            assert f"Continuing “{POST}”." in terminal.shown
            assert terminal.say("Where was I?").endswith("Go on.")
            before = [message.text for message in server.requests[-1].messages]
            assert before == ["I live in Lviv", "Go on.", "I work at Stripe\n\nWhere was I?"]
            terminal.process.send_signal(signal.SIGHUP)  # the window is closed
            assert terminal.close() == -signal.SIGHUP
    with recollect.open(tmp_path) as app:
        assert app.user("me").verify() == []


def test_U1_a_named_chat_is_one_of_its_own_also_at_the_same_time(tmp_path: Path) -> None:
    with chatting(tmp_path, "--session", "thesis") as thesis:
        thesis.say("I live in Lviv")
        with chatting(tmp_path) as other:
            assert "Continuing" not in other.shown
            other.say("I work at Stripe")
            assert "Location: Lviv" in thesis.leave()
            learned = other.leave()
            assert "Company: Stripe" in learned and "Lviv" not in learned
    with chatting(tmp_path, "--session", "thesis") as thesis:
        assert "Continuing where you left off." in thesis.shown
        thesis.say("Now chapter two")
    with recollect.open(tmp_path) as app:
        assert [session.messages for session in app.user("me").sessions()] == [4, 2]


def test_U1_tab_completes_commands_and_arrows_bring_back_what_was_said(tmp_path: Path) -> None:
    with chatting(tmp_path) as terminal:
        terminal.say("I drink tea")
        terminal.type("/mem\tpau\t\n")
        assert "/memory pause" in terminal.until(f"\n{PROMPT}") and "Memory is paused." in terminal.shown
        terminal.say("/memory resume")
        terminal.kill()
    with chatting(tmp_path) as terminal:
        terminal.type("\x1b[A\n")
        assert "I drink tea" in terminal.until(f"\n{PROMPT}")
    assert said(tmp_path) == ["I drink tea", "I drink tea"]


def test_U1_the_history_of_lines_is_the_memory_and_nothing_in_incognito(tmp_path: Path) -> None:
    with chatting(tmp_path) as terminal:
        terminal.say("I drink tea")
        terminal.say("/memory incognito")
        terminal.say("I am a spy")
        terminal.kill()
    with recollect.open(tmp_path) as app:
        memory = app.user("me")
        assert earlier_inputs(memory, "terminal") == []
        memory.resume()
        assert earlier_inputs(memory, "terminal") == ["I drink tea"]
        assert earlier_inputs(memory, "elsewhere") == []
        memory.clear()
        assert earlier_inputs(memory, "terminal") == []
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"I am a spy" in path.read_bytes()]
    assert kept == []


def test_U1_a_number_answers_a_question_of_a_command_and_nothing_else(tmp_path: Path) -> None:
    with chatting(tmp_path, NO_COLOR="1") as terminal:
        terminal.say("remember that I like tea")
        assert "Forgot" not in terminal.say("1")  # the undo of what was remembered in passing has no number
        assert "  1  Forget" in terminal.say("/memory forget tea")
        terminal.type("\x1b[200~By the way,\nit rains\x1b[201~\n")  # pasted
        terminal.until(f"\n{PROMPT}")
        terminal.say("1")  # no longer an answer
        assert facts(tmp_path) == ["Likes tea"]
        assert said(tmp_path) == ["remember that I like tea", "1", "By the way,\nit rains", "1"]
        assert not re.search(r"\x1b\[[0-9;]*3\dm", terminal.raw) and "✓ Remembered" in terminal.raw
        # what is erased, no arrow brings back
        terminal.say("/memory clear")
        terminal.say("1")
        terminal.type("\x1b[A\x1b[A\x1b[AHello\n")
        assert "tea" not in terminal.until(f"\n{PROMPT}")
        assert said(tmp_path) == ["Hello"]


def test_U1_the_export_is_put_where_the_person_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with chatting(tmp_path / "memory", columns=400) as terminal:
        terminal.say("remember that I like tea")
        shown = terminal.say("/memory export")
        found = re.search(r"✓ Saved as (\S+)", shown)
        assert found is not None, shown
        saved = found[1]
    assert Path(saved).parent == tmp_path and Path(saved).stat().st_mode & 0o777 == 0o600
    with recollect.open(tmp_path / "copy") as app:
        app.user("me").import_(saved)
        assert [fact.text for fact in app.user("me").read(kind="fact")] == ["Likes tea"]


# pipes and programs


def test_U1_lines_from_a_pipe_are_a_script(tmp_path: Path) -> None:
    script = "\ufeffhello\r\n\nremember that I like tea\n/memory\n/memory forget tea\nn\n"
    done = run("chat", "--root", str(tmp_path), stdin=script.encode())
    shown = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    assert "\x1b" not in shown and PROMPT not in shown
    assert "✓ Remembered: Likes tea" in shown and "nothing was changed" in shown and shown.endswith("Goodbye.\n")
    assert facts(tmp_path) == ["Likes tea"]


def test_U1_bytes_that_are_no_text_are_no_reason_to_stop(tmp_path: Path) -> None:
    done = run("chat", "--root", str(tmp_path), stdin=b"\xff\xfe hello\x00\nremember that I like tea")
    assert done.returncode == 0 and b"Remembered: Likes tea" in done.stdout


def test_U1_programs_get_json_lines_and_may_say_how_a_text_is_meant(tmp_path: Path) -> None:
    requests: list[Any] = [
        {"text": "Remember that I live in Rome", "forwarded": True},
        {"text": "Remember that I like tea.\nThanks!", "message": "1"},
        {"text": "Remember that I like tea.\nThanks!", "message": "1"},
        {"choose": "forget tea"},
        {"nonsense": 1},
        {"text": "Remember that I live in Rome", "forwarded": "no"},
        {"text": 7},
        1,
    ]
    lines = "\n".join([*map(json.dumps, requests), "{broken", "just a line"])
    with ModelServer(discusses) as server:
        done = run("chat", "--root", str(tmp_path), "--json", stdin=lines.encode(), **with_model(server))
    events = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0 and {event["event"] for event in events} == {"ready", "piece", "page", "note"}
    assert sum(event["event"] == "ready" for event in events) == len(requests) + 3
    assert "".join(event["text"] for event in events if event["event"] == "piece").count("Interesting!") == 4
    good = [line["text"] for event in events for line in event.get("lines", []) if line["style"] == "good"]
    assert good == ["Got it, I'll remember that.", "Remembered: Likes tea"]
    (asked,) = [event for event in events if any("Forget" in choice["label"] for choice in event.get("choices", []))]
    assert asked["choices"][0]["danger"] is True
    assert [event["style"] for event in events if event["event"] == "note"] == ["bad", "bad", "bad", "bad", "text"]
    assert facts(tmp_path) == ["Likes tea"]


def test_U1_who_stops_reading_ends_the_chat(tmp_path: Path) -> None:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    child = ProgramProcess("chat", "--root", str(tmp_path), **pipes, env=environment())
    assert child.stdin is not None and child.stdout is not None
    child.stdout.close()
    child.stdin.write(b"hello\n" * 3)
    child.stdin.close()
    assert child.wait(timeout=120) == 141
    assert said(tmp_path)[0] == "hello"


def test_U1_ctrl_c_ends_a_script(tmp_path: Path) -> None:
    asked = threading.Event()

    def script(request: ModelRequest) -> Turn:
        asked.set()
        return Stall()

    with ModelServer(script) as server:
        child = ProgramProcess(
            *("chat", "--root", str(tmp_path)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(**with_model(server)),
        )
        assert child.stdin is not None
        with child.stdin as typed:
            typed.write(b"hello\nhello again\n")
            typed.flush()
            assert asked.wait(30)
            child.send_signal(signal.SIGINT)
            assert child.wait(timeout=120) == 130
    assert said(tmp_path) == ["hello"]


def test_U1_a_wrong_model_is_an_error_before_anything_is_said(tmp_path: Path) -> None:
    done = run("chat", "--root", str(tmp_path), stdin=b"hello\n", MEMORY_MODEL="nonsense")
    assert done.returncode == 2 and b"MEMORY_MODEL" in done.stderr and done.stdout == b""


# small parts


def test_U1_completion_knows_every_command_and_goes_word_by_word(tmp_path: Path) -> None:
    complete = _completer(_commands())

    def all_of(typed: str) -> list[str]:
        return [found for number in range(50) if (found := complete(typed, number)) is not None]

    assert all_of("/m") == ["/memory "]
    assert all_of("/memory re") == ["/memory resume ", "/memory reminders "]
    assert all_of("/memory ")[0] == "/memory search " and len(all_of("/memory ")) > 10
    told = run("chat", "--root", str(tmp_path), stdin=b"/memory help\n").stdout.decode()
    assert set(re.findall(r"^• /memory (\w+)", told, re.MULTILINE)) == set(VERBS)
    assert all_of("hello") == all_of("") == all_of("/memory search t") == []


def test_U1_a_choice_is_picked_by_number_label_or_yes_and_no() -> None:
    two = [Choice("Forget this", "forget 1", danger=True), Choice("Keep", "keep")]
    assert [_chosen_choice(line, two) for line in ("1", " 2 ", "keep", "Y", "no", "3", "0", "hello", "１")] == [
        two[0], two[1], two[1], two[0], two[1], None, None, None, two[0],
    ]  # fmt: skip
    assert _chosen_choice("1", []) is None and _chosen_choice("n", two[:1]) is None
