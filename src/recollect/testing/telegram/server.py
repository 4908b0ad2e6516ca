"""The server: starts and stops, lets people in, makes things go wrong, and notes down what was asked."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from recollect.errors import InvalidInputError
from recollect.testing.telegram.faults import Drop, Failure, Fault, Faults, Stall
from recollect.testing.telegram.limits import Flood, Limits
from recollect.testing.telegram.methods import Methods
from recollect.testing.telegram.parameters import Parameters
from recollect.testing.telegram.people import PATIENCE, Group, Person
from recollect.testing.telegram.refusal import RefusalError, too_many_requests
from recollect.testing.telegram.webhook import Delivery
from recollect.testing.telegram.wire import Gone, Wire, encoded
from recollect.testing.telegram.world import World

TOKEN = "7000000001:local-test-token"
ACCEPTING = 0.02
"""Seconds between two looks at whether the server is to stop accepting connections."""


@dataclass(frozen=True)
class Asked:
    """A request of the bot: what it asked, and what it was told.

    ``parameters`` are as they came, but numbers and JSON are made what they mean. ``status`` is 0 if the connection
    dropped; ``took_effect`` is whether it was done, also if the bot was told otherwise.
    """

    method: str
    parameters: Mapping[str, Any]
    status: int
    description: str = ""
    took_effect: bool = False


class TelegramServer:
    """A Telegram of your own, with one bot, for the time of a with block.

    ``token`` is the bot's. With ``privacy`` (as on Telegram by default) the bot hears in groups only what is meant for
    it. ``limits`` are those for sending, none by default. ``clock`` gives the dates of messages and is what the limits
    go by. ``webhook_backoff`` is how many seconds pass before a refused webhook is tried again: at first, and at most.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        name: str = "Recollect",
        username: str = "recollect_test_bot",
        privacy: bool = True,
        limits: Limits | None = None,
        clock: Callable[[], datetime] | None = None,
        webhook_backoff: tuple[float, float] = (0.05, 1.0),
    ) -> None:
        if not re.fullmatch(r"[1-9]\d{0,15}:[A-Za-z0-9_-]+", token):
            raise InvalidInputError("token", "a token is the bot's number, a colon, and letters, digits, _ or -")
        self.token = token
        self.problems: list[str] = []
        """What went wrong in the server itself; a test that wants to be sure asserts that it is empty."""
        now = clock or (lambda: datetime.now(timezone.utc))
        self._world = World(now, int(token.partition(":")[0]), name, username, privacy=privacy)
        self._changed = self._world.changed
        self._methods = Methods(self._world, Flood(limits, now))
        self._faults = Faults(self._changed)
        self._asked: list[Asked] = []
        self._backoff = webhook_backoff
        self._port = 0
        self._wire: Wire | None = None
        self._reserved: socket.socket | None = None

    # where it is

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """What python-telegram-bot takes as ``base_url``."""
        return f"{self.url}/bot"

    @property
    def base_file_url(self) -> str:
        """What python-telegram-bot takes as ``base_file_url``."""
        return f"{self.url}/file/bot"

    def __enter__(self) -> TelegramServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._go_down()
        self._free_port()
        self._faults.clear()

    def start(self) -> None:
        """Comes up, the second time on the same port and with everything that it knew."""
        if self._wire is not None:
            return
        with self._changed:
            self._world.updates.closed = False
            self._methods.logged_out = False
        self._free_port()
        self._wire = Wire(self._port, self)
        self._port = self._wire.server_port
        self._accepting = threading.Thread(target=self._wire.serve_forever, args=(ACCEPTING,), daemon=True)
        self._accepting.start()
        self._delivery = Delivery(self._world.updates, self._asked_in_answer, self._backoff)
        self._delivery.start()

    def stop(self) -> None:
        """Goes down: connections end, new ones are refused, the webhook is silent. People can still write."""
        if self._wire is None:
            return
        self._go_down()
        # so that nobody else is given the port while we are down
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", self._port))

    def restart(self) -> None:
        self.stop()
        self.start()

    def _go_down(self) -> None:
        if self._wire is None:
            return
        with self._changed:
            self._world.updates.closed = True
            self._changed.tell()
        self._delivery.stop()
        self._wire.shutdown()
        self._wire.server_close()
        self._accepting.join()
        self._wire.hang_up()
        self._wire = None

    def _free_port(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    # who there is

    @property
    def bot(self) -> Person:
        """The bot, as people see it."""
        return self._world.bot

    def person(
        self,
        first_name: str,
        username: str | None = None,
        language_code: str | None = None,
        id: int | None = None,
        *,
        is_bot: bool = False,
    ) -> Person:
        """Somebody new. The bot may not write to them before they have written to it."""
        return self._world.person(first_name, username, language_code, id, is_bot=is_bot)

    def group(
        self,
        title: str,
        people: Sequence[Person],
        forum: bool = False,
        *,
        basic: bool = False,
        admin: bool = False,
        with_bot: bool = True,
    ) -> Group:
        """A group of these people (the first made it) and the bot. A ``basic`` one can become a supergroup."""
        return self._world.group(title, people, forum=forum, basic=basic, admin=admin, with_bot=with_bot)

    # what was asked

    @property
    def asked(self) -> list[Asked]:
        """Every request so far, in the order in which they were done."""
        with self._changed:
            return list(self._asked)

    def asked_for(self, method: str) -> list[Asked]:
        """The requests of one method."""
        name = self._known(method)
        return [one for one in self.asked if one.method == name]

    @property
    def pending(self) -> int:
        """How many updates the bot has not yet confirmed."""
        with self._changed:
            return len(self._world.updates.pending)

    def wait_until_listening(self, timeout: float = PATIENCE) -> None:
        """Waits until the bot waits for updates or has set a webhook; raises TimeoutError."""
        listening = self._world.updates
        self._world.wait_until(lambda: listening.listening, timeout, lambda: "The bot never asked for updates.")

    def wait_until(self, condition: Callable[[], Any], timeout: float = PATIENCE) -> Any:
        """Waits until the condition holds; it is looked at whenever something happens. Raises TimeoutError."""
        return self._world.wait_until(condition, timeout, lambda: "It never came to that.")

    # what goes wrong

    def fail(
        self,
        method: str = "*",
        status: int = 500,
        *,
        times: int | None = 1,
        after: bool = False,
        description: str = "",
        retry_after: int | None = None,
        body: bytes | None = None,
    ) -> None:
        """The next requests get an error; with ``after`` they take effect all the same. ``"*"`` is every method.

        ``times=None`` lasts until `heal`. A ``body`` is sent as it stands: an HTML page from a proxy, say.
        """
        refusal = RefusalError(description, status=status)
        if retry_after is not None:
            refusal = too_many_requests(retry_after)
        self._faults.add(Failure(self._known(method), times, after, refusal, body))

    def drop(self, method: str = "*", *, times: int | None = 1, after: bool = False) -> None:
        """The connection ends without an answer; with ``after`` only once the request has taken effect."""
        self._faults.add(Drop(self._known(method), times, after))

    def stall(self, method: str = "*", *, times: int | None = None, after: bool = False) -> Stall:
        """Requests hang until the returned `Stall` is released; with ``after``, they have taken effect by then.

        One whose client gave up in the meantime takes effect when it is released, as on a slow network.
        """
        stall = Stall(self._known(method), times, after, self._changed)
        self._faults.add(stall)
        return stall

    def heal(self) -> None:
        """Nothing goes wrong any more, and what hangs is let go."""
        self._faults.clear()

    def deliver_twice(self, times: int = 1) -> None:
        """Each of the next updates comes a second time after the bot has confirmed it."""
        with self._changed:
            self._world.updates.twice += times

    def deliver_again(self, count: int = 1) -> None:
        """The updates that the bot confirmed last come again, with the same ids."""
        if self._world.updates.repeat(count) < count:
            raise InvalidInputError("count", "the bot has not confirmed so many updates yet")

    # for the wire

    def answer(self, token: str, method: str, values: dict[str, Any], gone: Gone) -> tuple[int, bytes]:
        """The status and the body; raises ConnectionError if there is to be no answer."""
        name = self._methods.name_of(method)
        if not re.fullmatch(r"\d+:[A-Za-z0-9_-]+", token) or (token == self.token and name is None):
            return self.refused(method, RefusalError(status=404), values)
        if token != self.token:
            return self.refused(method, RefusalError(status=401), values)
        assert name is not None
        fault = self._faults.take(name)
        if fault is not None and not fault.after:
            if isinstance(fault, Stall):
                self._hold(fault)
            else:
                with self._changed:
                    self._note(name, values, *_told(fault), took_effect=False)
                return _played(fault)
            fault = None
        status, body = self._do(name, values, gone, fault)
        if isinstance(fault, Stall):
            self._hold(fault)
        elif fault is not None:
            return _played(fault)
        return status, encoded(body)

    def refused(self, method: str, refusal: RefusalError, values: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        with self._changed:
            self._note(method, values or {}, refusal.status, refusal.description, took_effect=False)
        return refusal.status, encoded(refusal.body)

    def download(self, token: str, path: str) -> tuple[int, bytes]:
        with self._changed:
            file = self._world.files.get(path.rpartition("/")[2])
        if token != self.token or file is None:
            refusal = RefusalError(status=404)
            return 404, encoded(refusal.body)
        return 200, file.content

    def problem(self, text: str) -> None:
        with self._changed:
            self.problems.append(text)

    def _do(
        self, name: str, values: Mapping[str, Any], gone: Callable[[], bool], fault: Fault | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Does it and notes it down, in one step for all who look."""
        parameters = Parameters(values)
        try:
            if name == "getUpdates":
                result = self._methods.get_updates(parameters, gone)
                with self._changed:
                    self._noted(name, values, 200, "", fault)
                return 200, {"ok": True, "result": result}
            with self._changed:
                if self._world.updates.closed:
                    raise ConnectionAbortedError("the server went down before this was done")
                result = self._methods.call(name, parameters)
                self._noted(name, values, 200, "", fault)
                return 200, {"ok": True, "result": result}
        except RefusalError as refusal:
            problem = refusal
        except ConnectionError:
            raise
        except Exception as error:  # ours, not the bot's: the test must see it
            self.problem(f"{name} failed: {error!r}")
            problem = RefusalError("the test server failed", status=500)
        with self._changed:
            self._noted(name, values, problem.status, problem.description, fault)
        return problem.status, problem.body

    def _noted(self, name: str, values: Mapping[str, Any], status: int, description: str, fault: Fault | None) -> None:
        took_effect = status == 200
        if fault is not None and not isinstance(fault, Stall):
            status, description = _told(fault)
        self._note(name, values, status, description, took_effect=took_effect)

    def _note(
        self, method: str, values: Mapping[str, Any], status: int, description: str, *, took_effect: bool
    ) -> None:
        self._asked.append(Asked(method, dict(values), status, description, took_effect))
        self._changed.tell()

    def _hold(self, stall: Stall) -> None:
        with self._changed:
            stall.held += 1
            self._changed.tell()
            self._changed.wait_for(lambda: stall.released or self._world.updates.closed)
            if self._world.updates.closed:
                raise ConnectionAbortedError("the server went down")

    def _asked_in_answer(self, method: str, values: Mapping[str, Any]) -> None:
        name = self._methods.name_of(method)
        if name is not None and name != "getUpdates":
            with contextlib.suppress(ConnectionError):  # the server goes down
                self._do(name, dict(values), lambda: False)

    def _known(self, method: str) -> str:
        name = "*" if method == "*" else self._methods.name_of(method)
        if name is None:
            raise InvalidInputError("method", f"{method!r} is no method of the Bot API that this server knows")
        return name


def _told(fault: Fault) -> tuple[int, str]:
    return (fault.refusal.status, fault.refusal.description) if isinstance(fault, Failure) else (0, "")


def _played(fault: Fault) -> tuple[int, bytes]:
    if not isinstance(fault, Failure):
        raise ConnectionAbortedError("dropped, as was asked for")
    content = fault.content if fault.content is not None else encoded(fault.refusal.body)
    return fault.refusal.status, content
