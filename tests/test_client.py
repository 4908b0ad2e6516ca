"""The client: what a memory must do, done over HTTP; and what it does when the connection fails."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import recollect
from recollect import AsyncMemory, Hits, InvalidInputError, Memory, NotFoundError, Recollect, UndoError, Written, errors
from recollect import client as client_module
from recollect.client import (
    Client,
    NotAllowedError,
    RemoteBatch,
    RemoteMemory,
    TooManyRequestsError,
    connect,
)
from recollect.client.connection import TRIES, HttpConnection
from recollect.client.json_values import from_plain, outcome_types, to_plain
from recollect.client.problems import error_of
from recollect.errors import AmbiguousError, StoreError, StoreUnavailableError
from recollect.surfaces.http.rate_limits import RateLimits
from recollect.surfaces.http.verb_routes import BATCH
from recollect.testing import FrozenClock
from recollect.verbs import VERBS
from tests.contracts.memory_contract import MemoryContract
from tests.serving import serving

_INSIDE = "looks inside the memory, which is elsewhere"
_BATCH = "asks within a batch what came of it, which is known at its end"
NOT_OVER_HTTP = {
    "test_R5_verify_finds_what_was_changed_behind_its_back": _INSIDE,
    "test_R7_clear_takes_the_log_and_the_consents_along_and_leaves_the_ledger": _INSIDE,
    "test_U7_the_log_of_tool_calls_is_read_by_time_tool_and_session": _INSIDE,
    "test_R6_old_tool_calls_are_removed_by_upkeep": _INSIDE,
    "test_R6_messages_expire_unless_important": _INSIDE,
    "test_a_write_that_could_not_begin_or_was_rolled_back_changes_nothing_that_is_known": _INSIDE,
    "test_P7_paused_stores_nothing_but_recalls": _BATCH,
    "test_R7_erasing_within_a_batch": _BATCH,
    "test_T7_what_a_host_spends_adds_up": _BATCH,
    "test_G3_many_reports_are_stored_together_or_not_at_all": _BATCH,
    "test_P7_while_paused_nothing_is_reported": _BATCH,
    "test_batch_is_all_or_nothing": _BATCH,
    "test_G3_a_host_may_report_as_often_as_it_likes": "is told of progress, which stays with the server",
    "test_F6_pruning_moves_the_least_valuable_out_of_the_file_and_loses_nothing": "800 requests, and nothing of HTTP",
}


class Served:
    """One server for all tests here; each is a tenant of its own, and so has a world of its own."""

    def __init__(self, app: Recollect, clock: FrozenClock, url: str) -> None:
        self.app, self.clock, self.url = app, clock, url
        self._numbers = count()

    def key(self, scope: str = "admin") -> str:
        return self.app.keys.create(f"t{next(self._numbers)}", scope=scope)[1]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    clock = FrozenClock()
    with (
        recollect.open(tmp_path_factory.mktemp("served"), clock=clock) as app,
        serving(app, limits=RateLimits(0, 0)) as url,
    ):
        yield Served(app, clock, url)


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    served.clock.now = FrozenClock().now
    with connect(served.url, key=served.key()) as client:
        yield client


class TestOverHttp(MemoryContract):
    """The contract of a memory, over real HTTP."""

    @pytest.fixture
    def clock(self, served: Served) -> FrozenClock:
        return served.clock

    @pytest.fixture
    def app(self, client: Client) -> Any:
        return client


for _name in NOT_OVER_HTTP:
    assert hasattr(MemoryContract, _name), f"{_name} is no test any more"
    setattr(TestOverHttp, _name, None)


# the same verbs


def test_U5_the_client_has_every_verb_with_its_signature() -> None:
    for name, member in inspect.getmembers(Memory, inspect.isfunction):
        if name.startswith("_") or name == "batch":
            continue
        remote = getattr(RemoteMemory, name)
        wanted, found = inspect.signature(member), inspect.signature(remote)
        assert list(found.parameters.values()) == list(wanted.parameters.values()), name
        if name == "import_":
            continue  # which has its own words: no folder can be sent
        assert remote.__doc__ == member.__doc__, name
        if name not in ("acting",):
            awaited = getattr(AsyncMemory, name)
            assert inspect.iscoroutinefunction(awaited) and inspect.signature(awaited) == found, name
    ours = {name for name, _ in inspect.getmembers(RemoteBatch, inspect.isfunction) if not name.startswith("_")}
    assert ours == set(BATCH)


@pytest.mark.parametrize("name", sorted(outcome_types()))
def test_U5_every_outcome_survives_the_way(name: str) -> None:
    from dataclasses import fields

    from recollect.records import Fact, Interaction, Outcome, Receipt

    now = FrozenClock()()
    fact = Fact(
        id="fact-1",
        content="Likes tea",
        created_at=now,
        updated_at=now,
        valid_from=now,
        tags=("a",),
        metadata={"b": [1]},
    )
    given: dict[str, Any] = {
        "message": "done", "notices": ("mind",), "record": fact, "previous": fact, "similar": (fact,), "merged": (fact,),
        "run": "run-1", "added": (fact,), "updated": (), "removed": (), "entries": (), "reason": "paused", "fresh": False,
        "receipt": Receipt(at=now, ids=("fact-1",), places={"records": 1}),
        "interaction": Interaction(id="event-1", at=now, kind="save"),
    }  # fmt: skip
    cls = outcome_types()[name]
    outcome = cls(**{one.name: given[one.name] for one in fields(cls)})
    assert from_plain(Outcome, to_plain(outcome)) == outcome


def test_U5_moving_to_a_server_is_one_line(client: Client, tmp_path: Path) -> None:
    def _erased(memory: Memory) -> dict[str, int]:
        places = memory.erase("drink").receipt.places
        return {place: number for place, number in places.items() if place != "kept answers"}  # a server keeps answers

    def use(memory: Memory) -> list[Any]:
        memory.remember("Likes tea", key="drink", category="preference")
        agent = memory.acting("agent", agent="bot", session="s1")
        agent.say("Hello there", session="s1")
        found = memory.search("tea")
        ranked = memory.rank([{"title": "Coffee", "n": 1}, {"title": "Tea ceremonies", "n": 2}])
        return [
            [hit.record.text for hit in found], found.mode, memory.context("tea"), memory.show(), memory.count(),
            [(one.item, one.position, one.why) for one in ranked], memory.why("drink").message, memory.days(),
            memory.mode, memory.exists, [session.id for session in memory.sessions()], memory.scratch("nothing"),
            memory.update("drink", "Likes rum").message, memory.undo().message, _erased(memory),
            memory.erase_topic("hello", dry_run=True)[0][0].text, memory.notices(), memory.verify(),
        ]  # fmt: skip

    remote: Any = client.user("u1")
    with recollect.open(tmp_path, clock=FrozenClock()) as app:
        assert use(remote) == use(app.user("u1"))
    assert isinstance(remote.search("tea"), Hits) and repr(remote) == "<RemoteMemory of 'u1'>"


def test_U5_errors_are_those_of_the_library(client: Client, served: Served) -> None:
    memory = client.user("u1")
    with pytest.raises(InvalidInputError) as raised:
        memory.remember("Likes tea", confidence=2)
    assert raised.value.field == "confidence" and "from 0 to 1" in str(raised.value)
    with pytest.raises(NotFoundError):
        memory.get("nothing")
    with pytest.raises(UndoError):
        memory.remember("Likes tea", key="a")
        memory.update("a", "Likes rum")
        memory.undo(1)
    memory.remember("One", key="b", category="preference")
    memory.remember("Two", key="b", category="work_context")
    with pytest.raises(AmbiguousError):
        memory.forget("b")
    with connect(served.url, key=served.key("read")) as reader:
        assert reader.user("u1").read() == []
        with pytest.raises(NotAllowedError, match="write"):
            reader.user("u1").note("x")
        with pytest.raises(NotAllowedError):
            list(reader.users())
    with connect(served.url, key="rk_x") as stranger, pytest.raises(NotAllowedError, match="unknown or was revoked"):
        stranger.user("u1").read()
    with pytest.raises(TypeError):
        memory.remember()  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="http://"):
        connect("localhost:8765")


def test_U5_what_an_operator_asks(client: Client) -> None:
    for user in ("a/b", "ü", ".."):
        client.user(user).note(f"Note of {user}")
    assert list(client.users()) == ["..", "a/b", "ü"]
    assert client.erase_user("a/b").places and list(client.users()) == ["..", "ü"]
    assert client.runs() == [] and client.trends() == []
    token = client.token("ü", scope="write", minutes=5)
    assert token.token.startswith("rt_")
    [declared] = [one for one in client.declarations("anthropic", "notes") if one["name"] == "memory_save"]
    assert "content" in declared["input_schema"]["properties"]
    result = client.call("ü", "memory_save", {"content": "Likes tea"}, session="s1")
    assert result.status == "ok" and client.task("ü", result.call)["status"] == "done"
    assert [note.content for note in client.user("ü").read()] == ["Note of ü", "Likes tea"]


def test_U5_a_batch_is_sent_at_its_end(client: Client) -> None:
    memory = client.user("u1")
    with memory.batch() as batch:
        first = batch.remember("Likes tea", key="drink")
        second = batch.update("drink", "Likes rum")
        assert memory.read() == []
        with pytest.raises(StoreError, match="not done yet"):
            _ = first.value
    assert isinstance(first.value, Written) and second.value.done and memory.get("drink").content == "Likes rum"
    with pytest.raises(NotFoundError), memory.batch() as batch:
        batch.note("A note")
        batch.forget("nothing")
    with pytest.raises(RuntimeError), memory.batch() as batch:
        batch.note("A note")
        raise RuntimeError
    with memory.batch():
        pass
    assert memory.count() == {"fact": 1}


@pytest.mark.slow
def test_U5_a_long_list_is_fetched_page_by_page(client: Client) -> None:
    memory = client.user("u1")
    for part in range(2):
        with memory.batch() as batch:
            for number in range(600):
                batch.say(f"Message {part * 600 + number}", session="s1")
    assert [one.content for one in memory.read(kind="message")] == [f"Message {number}" for number in range(1200)]
    assert len(memory.history()) == 1200 and len(memory.history(limit=700)) == 700


def test_R8_U5_a_memory_is_exported_and_imported_from_afar(client: Client, tmp_path: Path) -> None:
    client.user("u1").remember("Likes tea")
    path = client.user("u1").export(tmp_path / "memory.zip")
    assert path.read_bytes().startswith(b"PK") and list(tmp_path.iterdir()) == [path]
    assert client.user("u2").import_(path, dry_run=True).written == 1 and client.user("u2").read() == []
    assert client.user("u2").import_(path).written == 1
    assert [fact.text for fact in client.user("u2").read()] == ["Likes tea"]
    with pytest.raises(InvalidInputError, match="imports files only, not folders"):
        client.user("u2").import_(tmp_path)


def test_U5_the_verbs_can_be_awaited(client: Client) -> None:
    async def main() -> None:
        memory = AsyncMemory(client.user("u1"))
        outcomes = await asyncio.gather(*(memory.note(f"Note number {number}") for number in range(10)))
        assert all(outcome.done for outcome in outcomes)
        assert await memory.acting("agent").count() == {"note": 10}

    asyncio.run(main())


# when the connection fails


class Failing(httpx.HTTPTransport):
    """A real connection that loses some answers, after the server has given them."""

    def __init__(self, fails: int, error: type[httpx.TransportError] = httpx.ReadError) -> None:
        super().__init__()
        self.fails, self.error, self.asked = fails, error, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.error is httpx.ConnectError and self.asked <= self.fails:
            raise self.error("refused")
        answer = super().handle_request(request)
        if self.asked <= self.fails:
            answer.close()
            raise self.error("lost")
        return answer


@pytest.fixture
def failing(served: Served) -> Iterator[Callable[..., tuple[RemoteMemory, Failing, list[float]]]]:
    with ExitStack() as stack:

        def make(fails: int, **how: Any) -> tuple[RemoteMemory, Failing, list[float]]:
            transport, pauses = Failing(fails, **how), list[float]()
            http = stack.enter_context(httpx.Client(transport=transport, timeout=120))
            connection = HttpConnection(served.url, served.key(), timeout=120, pause=pauses.append, http=http)
            return Client(connection).user("u1"), transport, pauses

        yield make


def test_U5_a_write_whose_answer_was_lost_is_sent_again_and_done_once(
    failing: Callable[..., tuple[RemoteMemory, Failing, list[float]]],
) -> None:
    memory, transport, pauses = failing(TRIES - 1)
    assert isinstance(memory.note("Likes tea"), Written)
    assert transport.asked == TRIES and len(pauses) == TRIES - 1 and pauses == sorted(pauses)
    assert [note.content for note in memory.read()] == ["Likes tea"] and len(memory.history()) == 1


def test_U5_in_the_end_it_gives_up_and_says_so(
    failing: Callable[..., tuple[RemoteMemory, Failing, list[float]]],
) -> None:
    memory, transport, pauses = failing(100)
    with pytest.raises(StoreUnavailableError, match="ReadError"):
        memory.read()
    assert transport.asked == TRIES and len(pauses) == TRIES - 1


def test_U5_what_could_be_done_twice_is_not_sent_twice(
    failing: Callable[..., tuple[RemoteMemory, Failing, list[float]]],
) -> None:
    memory, transport, _ = failing(1)
    with pytest.raises(StoreUnavailableError):
        memory.acting(call="call-1").note("Likes tea")
    assert transport.asked == 1 and len(memory.read()) == 1
    memory, transport, _ = failing(1, error=httpx.ConnectError)
    assert memory.acting(call="call-1").note("Likes tea").done and transport.asked == 2, "it had never arrived"


def test_U5_it_waits_as_long_as_the_server_asks(tmp_path: Path) -> None:
    now, pauses = [0.0], list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += 30

    with recollect.open(tmp_path) as app, serving(app, limits=RateLimits(2, 0, lambda: now[0])) as url:
        connection = HttpConnection(url, None, timeout=120, pause=pause)
        with Client(connection) as client:
            for _ in range(4):
                client.user("u1").count()
            assert pauses == [5.0, 5.0], "what is asked for, but not forever"
            connection._tries = 1
            with pytest.raises(TooManyRequestsError) as raised:
                client.user("u1").count()
            assert raised.value.seconds == 30


def test_U5_a_server_that_is_not_there_is_unavailable() -> None:
    with Client(HttpConnection("http://127.0.0.1:9", None, timeout=5, pause=lambda _: None)) as client:
        with pytest.raises(StoreUnavailableError, match="ConnectError"):
            client.user("u1").read()
        with pytest.raises(StoreUnavailableError):
            client.user("u1").export("nowhere.zip")


def test_R4_U5_nothing_that_was_said_is_logged_or_in_an_address(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        memory = client.user("u1")
        memory.remember("Likes Lapsang", key="lapsang", tags=["lapsang"])
        memory.search("Lapsang")
        memory.get("lapsang")
        memory.why("lapsang")
        memory.read(key="lapsang", tags=["lapsang"])
        memory.history("lapsang")
        memory.set_scratch("lapsang", "souchong")
        memory.scratch("lapsang")
        memory.context("Lapsang")
        memory.rank(["Lapsang"])
    assert caplog.records and "lapsang" not in caplog.text.lower()
    for verb in VERBS.values():
        if verb.method == "GET":
            assert not {"ref", "key", "query", "topic", "content", "text", "tags"} & verb.parameters.keys(), verb.name


def test_U5_every_error_that_a_server_names_is_a_class_of_the_library() -> None:
    """Else the client could say no more than that it does not understand the response."""
    surfaces = Path(recollect.__file__).parent / "surfaces"
    sources = (file.read_text("utf-8") for file in surfaces.rglob("*.py"))
    names = {name for source in sources for name in re.findall(r"Problem\(\s*\d+,\s*\"(\w+)\"", source)}
    assert {"BadRequestError", "PreconditionFailedError", "NotFoundError"} <= names
    for name in names:
        found = error_of({"error": name, "detail": "so it is"}, 400)
        assert (type(found).__name__, str(found)) == (name, "so it is")
        assert hasattr(client_module, name) or hasattr(errors, name)
