"""What operators see and do: figures by every way to them, the pages over real HTTP and in a real browser."""

from __future__ import annotations

import html
import json
import os
import random
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from typer.testing import CliRunner

import recollect
from recollect import InvalidInputError, Recollect
from recollect.records import ToolCall
from recollect.store.sqlite import SqliteStore
from recollect.surfaces.cli import usage_metrics as _metrics  # noqa: F401  (its command)
from recollect.surfaces.cli.program import app as program
from recollect.surfaces.web import operator_views
from recollect.surfaces.web.charts import (
    bar_chart,
    column_chart,
    compact_number,
    format_duration,
    histogram,
    line_chart,
)
from recollect.testing import FrozenClock, MemoryStore
from recollect.testing.postgres import PostgresServer
from recollect.usage_metrics import BOUNDS, CallGroup, Latency, Tally, compute_metrics, latency_of, latency_step
from recollect.work.contract import Done, FailedAttempt, Task
from tests.browser.windows import launched
from tests.serving import serving
from tests.words import mentions

NOON = datetime.now(timezone.utc).replace(hour=12, minute=0, second=0, microsecond=0)
FACT = {"fact_key": "editor", "fact_value": "Neovim", "fact_type": "preference", "confidence": 0.9}
SECRET = "wombat"


def call(name: str, tool: str = "recall_facts", outcome: str = "found", ms: float = 3.0, **values: Any) -> ToolCall:
    told: dict[str, Any] = {"at": NOON, "suite": "facts", "status": "ok"}
    return ToolCall(id=name, tool=tool, outcome=outcome, latency_ms=ms, **(told | values))


def log(app: Recollect, user: str, *calls: ToolCall) -> None:
    app.user(user).remember(f"Likes the {SECRET}", category="preference")
    with app._store.user(user).write() as tx:
        tx.log_calls(calls)


def work(app: Recollect, user: str) -> None:
    """A conversation of an agent, by its tools."""
    tools = app.tools(user, "facts", session="c1", wait=True)
    tools.call("remember_fact", FACT)
    tools.call("remember_fact", FACT)
    tools.call("remember_fact", FACT | {"fact_key": "shell", "fact_value": SECRET})
    change = {"confidence": 0.9, "change_reason": "update"}
    tools.call("update_fact", {"fact_type": "preference", "fact_key": "editor", "new_value": "Helix", **change})
    tools.call("forget_fact", {"fact_type": "preference", "fact_key": "shell", "reason": "outdated"})
    tools.call("recall_facts", {})
    tools.call("remember_fact", {})


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder, and an empty schema of a database."""
    if request.param == "sqlite":
        return str(tmp_path / "memory")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.empty_url()


# figures


def test_U6_percentiles_are_within_seven_percent_of_the_true_ones() -> None:
    chance = random.Random(5)
    for spread_of in (0.1, 0.8, 2.5):
        for number in (1, 2, 3, 99, 100, 101, 5000):
            times = sorted(20 * chance.lognormvariate(0, spread_of) for _ in range(number))
            counted = [latency_step(time) for time in times]
            found = latency_of({step: counted.count(step) for step in set(counted)})
            assert found.number == number == sum(count for _, count in found.steps)
            for share, told in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
                true = times[-(-int(share * 100) * number // 100) - 1]
                assert told is not None and abs(told / true - 1) < 0.07, (number, share)
    assert all(1.1 < later / earlier < 1.1429 for earlier, later in pairwise(BOUNDS))
    assert latency_of({}) == latency_of({7: 0}) == Latency()
    assert latency_of({0: 1}).p50 == BOUNDS[0] and latency_of({len(BOUNDS): 3, len(BOUNDS) - 1: 1}).steps == (
        (BOUNDS[-1], 4),
    )


def test_U6_figures_are_worked_out_from_what_was_counted() -> None:
    day, before = date(2026, 5, 2), date(2026, 5, 1)
    rows = [
        ("remember_fact", "ok", "written", 1.0, 6),
        ("remember_fact", "ok", "duplicate", 2.0, 1),
        ("remember_fact", "ok", "demoted", 2.0, 1),
        ("update_fact", "ok", "updated", 30.0, 3),
        ("forget_fact", "ok", "forgotten", 40.0, 1),
        ("recall_facts", "refused", "refused:incognito", 100.0, 7),
        ("recall_facts", "timeout", "running", 9000.0, 1),
        ("recall_facts", "queued", "queued", 200.0, 4),
    ]
    calls = {CallGroup("2026-05-02", *row[:3], latency_step(row[3])): row[4] for row in rows}
    calls[CallGroup("2026-04-30", "recall_facts", "ok", "found", 1)] = 99
    tally = Tally(
        calls=calls,
        talks={"2026-05-02": 2, "2026-04-30": 5},
        facts={"2026-05-02": 6, "2026-04-30": 9},
        episodes={"2026-05-01": 3, "2026-04-30": 9},
        users=4,
        unread=1,
    )
    found = compute_metrics(tally, before, day)
    assert (found.calls, found.failed, found.success, found.users, found.unread) == (24, 1, 0.95, 4, 1)
    assert [(one.tool, one.calls, one.failed) for one in found.tools] == [
        ("recall_facts", 12, 1),
        ("remember_fact", 8, 0),
        ("update_fact", 3, 0),
        ("forget_fact", 1, 0),
    ]
    assert [one.success for one in found.tools] == [7 / 8, 1.0, 1.0, 1.0], "what is queued has not ended"
    assert [(one.day, one.calls, one.failed, one.episodes) for one in found.days] == [
        (before, 0, 0, 3),
        (day, 24, 1, 0),
    ]
    assert found.days[0].p50 is None and found.days[1].p50 == found.latency.p50
    assert found.writing.number == 11 and found.writing.p99 == pytest.approx(40, rel=0.07)
    assert (found.conversations, found.facts_per_conversation, found.episodes) == (2, 3.0, 3)
    assert (found.updates, found.forgets, found.duplicates, found.duplicate_rate) == (3, 1, 1, 1 / 8)
    nothing = compute_metrics(Tally(), day, day)
    assert nothing.success is None and nothing.duplicate_rate is None and nothing.facts_per_conversation is None
    assert nothing.latency == Latency() and len(nothing.days) == 1


def test_U6_what_agents_do_is_counted_on_both_databases(where: str) -> None:
    clock = FrozenClock(NOON - timedelta(days=3))
    with recollect.open(where, clock=clock) as app:
        assert app.metrics().calls == 0 and app.metrics().users == 0
        app.user("u1").episode("Birthday", "Looked for a cabin")
        work(app, "u1")
        clock.tick(days=3)
        work(app, "u2")
        found = app.metrics(days=1)
        assert (found.calls, found.failed, found.users) == (7, 1, 2) and found.since == found.until == NOON.date()
        found = app.metrics()
        assert (found.calls, found.failed, found.success) == (14, 2, 12 / 14)
        assert [day.calls for day in found.days] == [0, 0, 0, 7, 0, 0, 7]
        assert [day.episodes for day in found.days] == [0, 0, 0, 1, 0, 0, 0]
        assert (found.conversations, found.facts_per_conversation) == (2, 2.0)
        assert (found.updates, found.forgets, found.duplicate_rate) == (2, 2, 2 / 6)
        assert found.writing.number == 8 and found.latency.number == 14
        assert [tool.tool for tool in found.tools][:1] == ["remember_fact"]
        assert SECRET not in str(found) and "u1" not in str(found)
        app.erase_user("u1")
        assert app.metrics().calls == 7 and app.metrics().users == 1


def test_U6_figures_refuse_what_makes_no_sense(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        for wrong in (
            {"days": 0},
            {"days": 367},
            {"days": "7"},
            {"tenant": "A"},
            {"tenant": ""},
            {"tenant": 3},
            {"seconds": -1},
        ):
            with pytest.raises(InvalidInputError):
                app.metrics(**wrong)
    assert not (tmp_path / "queue.db").exists(), "who only looks makes nothing"


def test_U6_no_user_is_left_out_however_many_there_are() -> None:
    with recollect.open(MemoryStore()) as app:
        for number in range(1200):
            with app._store.user(f"u{number}").write() as tx:
                tx.log_calls([call("1")])
        found = app.metrics()
        assert (found.users, found.calls, found.queue) == (1200, 1200, None)


def test_U6_users_who_did_nothing_are_not_read_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for user in ("ann", "bob"):
        with store.user(user).write() as tx:
            tx.log_calls([call("1")])
    store.close()
    for path in tmp_path.rglob("memory.db*"):
        os.utime(path, ns=(10**18, 10**18))  # long ago: nothing can have been written at the same moment

    def counted() -> tuple[int, int, int]:
        found = store.tally(None, NOON.date(), NOON.date())
        return found.users, found.unread, sum(found.calls.values())

    assert counted() == (2, 0, 2)
    path = tmp_path / "ann" / "memory.db"
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert counted() == (2, 0, 2), "it looks as it did"
    os.utime(path, ns=(before.st_mtime_ns + 1, before.st_mtime_ns + 1))
    assert counted() == (2, 1, 1), "it was read, and cannot be"
    shutil.rmtree(tmp_path / "ann")
    assert counted() == (1, 0, 1)


def test_U6_a_first_count_of_many_users_goes_on_where_it_ended(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for user in ("ann", "bob", "cid"):
        with store.user(user).write() as tx:
            tx.log_calls([call("1")])
    store.close()
    for path in tmp_path.rglob("memory.db*"):
        os.utime(path, ns=(10**18, 10**18))
    seen = []
    for _ in range(4):
        found = store.tally(None, NOON.date(), NOON.date(), 0.0)
        seen.append((found.users, found.waiting, sum(found.calls.values())))
    assert seen == [(3, 2, 1), (3, 1, 2), (3, 0, 3), (3, 0, 3)]


def test_U6_many_who_count_at_once_count_the_same(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    found: list[int] = []
    for user in range(12):
        with store.user(f"u{user}").write() as tx:
            tx.log_calls([call("1"), call("2")])

    def count() -> None:
        for tenant in ("default", None):
            found.append(sum(store.tally(tenant, NOON.date(), NOON.date()).calls.values()))

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert found == [24] * 12


# by the API and the command line


@pytest.mark.everyday(1)
def test_R4_U5_the_api_tells_a_key_that_administers_of_its_own_tenant(where: str) -> None:
    with recollect.open(where) as app:
        log(app, "ours", call("1"), call("2", ms=500.0))
        log(app, "@acme/theirs", call("1", tool="memory_search"))
        with app.queue() as queue:
            queue.put(Task(name="extract", user_id="@acme/theirs"))
        keys = {name: app.keys.create(tenant, scope=scope)[1] for name, tenant, scope in (
            ("ours", "default", "admin"), ("theirs", "acme", "admin"), ("writer", "default", "write"),
        )}  # fmt: skip
        with serving(app) as url:

            def asked(name: str, **query: Any) -> httpx.Response:
                headers = {"authorization": f"Bearer {keys[name]}"}
                return httpx.get(f"{url}/v1/metrics", params=query, headers=headers, timeout=120)

            ours, theirs = (asked(name, days=30).json()["result"] for name in ("ours", "theirs"))
            assert (ours["users"], ours["calls"], ours["queue"]["waiting"]) == (1, 2, 0)
            assert (theirs["users"], theirs["calls"], theirs["queue"]["waiting"]) == (1, 1, 1)
            assert [one["tool"] for one in theirs["tools"]] == ["memory_search"]
            assert ours["latency"]["p95"] == pytest.approx(500, rel=0.07) and len(ours["days"]) == 30
            assert asked("writer").status_code == 403
            for wrong in ({"days": 0}, {"days": 400}, {"days": "x"}, {"tenant": "acme"}):
                assert asked("ours", **wrong).status_code == 422
            assert SECRET not in asked("ours").text and "theirs" not in asked("ours").text


def test_U3_the_command_line_tells_the_figures(tmp_path: Path) -> None:
    def run(*args: str) -> str:
        done = CliRunner().invoke(program, ["metrics", *args, "--root", str(tmp_path)])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "0 users: 0 calls" in run()
    with recollect.open(tmp_path) as app:
        log(app, "u1", call("1"), call("2", status="error", outcome="StoreBusyError"))
        log(app, "@acme/u2", call("1"))
        with app.queue() as queue:
            queue.put(Task(name="extract"))
    told = run("--days", "30", "--tenant", "default")
    assert "1 user: 2 calls, 50.0% successful" in told and re.search(r"recall_facts +2 +50.0% +3", told)
    assert "Queue: 1 waiting since" in told
    assert json.loads(run("--json"))["calls"] == 3 and json.loads(run("--json", "--tenant", "acme"))["calls"] == 1


# pages


class Visit:
    """An operator's browser without scripts."""

    def __init__(self, url: str, code: str = "") -> None:
        self.http = httpx.Client(base_url=f"{url}/console/", timeout=120, follow_redirects=True)
        self.mark = ""
        if code:
            self.get("login")
            self.post("login", code=code)

    def get(self, path: str, status: int = 200) -> str:
        answer = self.http.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text[-500:])
        marks = re.findall(r'name="csrf_token" value="([^"]+)"', answer.text)
        self.mark = marks[-1] if marks else self.mark
        return answer.text

    def post(self, path: str, status: int = 200, /, **fields: str) -> str:
        answer = self.http.post(path, data={"csrf_token": self.mark, **fields})
        assert answer.status_code == status, (path, answer.status_code, answer.text[-500:])
        return answer.text

    def seen(self, path: str) -> str:
        return text_of(self.get(path))


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@contextmanager
def visiting(app: Recollect, *tenants: str, code: str = "") -> Iterator[list[Visit]]:
    """An operator of each tenant, let in by a key; or whoever is there, if nobody is named."""
    codes = [app.keys.create(tenant, scope="admin")[1] for tenant in tenants] or [code]
    with serving(app) as url:
        visits = [Visit(url, one) for one in codes]
        try:
            yield visits
        finally:
            for visit in visits:
                visit.http.close()


@pytest.mark.everyday(1)
def test_U6_the_dashboard_shows_every_figure_and_a_table_for_each_chart(where: str) -> None:
    with recollect.open(where) as app:
        app.user("u1").episode("Birthday", "Looked for a cabin")
        work(app, "u1")
        with app.queue() as queue:
            queue.put(Task(name="extract", user_id="u1", payload={"text": SECRET}))
            queue.settle([Done(lease) for lease in queue.take("w", 9).leases])
        with visiting(app) as [visit]:
            page = visit.get("operator")
            for days in (1, 30, 90, 12345):
                assert "Calls 7" in visit.seen(f"operator?days={days}")
    seen = text_of(page)
    for told in (
        "Calls 7", "Success 85.7 %", "Users 1", "remember_fact 4 · 57%", "Facts per conversation 2.0", "1 conversation",
        "Episodes per day 0.1", "Updates to forgets 1.0 : 1", "Duplicates 33.3 %", "Jobs waiting 0", "Jobs done 1",
        "Writing p50", "4 calls that changed a memory", "Completion p50", "1 background job of the last day",
    ):  # fmt: skip
        assert told in seen, told
    titles = re.findall(r'<svg class="chart" [^>]*role="img" aria-label="([^"]+)"', page)
    assert titles == ["Calls per day", "Calls per tool", "Calls by latency", "Latency per day", "Episodes per day", "Writes by latency"]  # fmt: skip
    for title in titles:
        assert f"<summary>{title} as a table</summary>" in page
    assert page.count("<title>") > 12 and "style=" not in page and "onclick" not in page
    assert SECRET not in page and "Helix" not in page


def test_U6_empty_pages_say_so(where: str) -> None:
    with recollect.open(where) as app, visiting(app) as [visit]:
        seen = visit.seen("operator?days=30")
        assert "No tool was called in the last 30 days" in seen and "Success —" in seen and "Calls 0" in seen
        assert 'class="chart"' not in visit.get("operator?days=30")
        assert "No tool was called today" in visit.seen("operator?days=1")
        assert "There are no users yet" in visit.seen("operator/users")
        assert "There are no users whose id begins with x" in visit.seen("operator/users?q=x")
        seen = visit.seen("operator/queue")
        assert "No jobs were done recently" in seen and "There are no failed jobs" in seen


def test_U6_who_cannot_be_read_is_told_and_the_others_are_counted(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        log(app, "ann", call("1"))
        log(app, "bob", call("1"))
    (tmp_path / "ann" / "memory.db").write_bytes(b"no database, by any means" * 99)
    with recollect.open(tmp_path) as app, visiting(app) as [visit]:
        seen = visit.seen("operator?days=30")
        assert "1 user cannot be read" in seen and "Calls 1" in seen and "Users 2" in seen
        assert "ann — cannot be read" in visit.seen("operator/users") and "bob 1 0 0 1 on" in visit.seen(
            "operator/users"
        )
        assert "ann cannot be read" in visit.seen("operator/users/erase?user=ann"), "erasing needs no reading"


def test_U6_a_page_does_not_wait_until_everyone_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path) as app:
        for user in ("ann", "bob", "cid"):
            log(app, user, call("1"))
    for path in tmp_path.rglob("memory.db*"):
        os.utime(path, ns=(10**18, 10**18))
    monkeypatch.setattr(operator_views, "SECONDS", 0.0)
    with recollect.open(tmp_path) as app, visiting(app) as [visit]:
        first = visit.get("operator?days=30")
        assert "Still counting: 2 of 3 users left" in first and "data-again" in first
        visit.get("operator?days=30")
        assert "Still counting" not in visit.get("operator?days=7") and "Calls 3" in visit.seen("operator?days=90")


@pytest.mark.everyday(1)
def test_R4_U6_operators_see_nothing_of_other_tenants(where: str) -> None:
    with recollect.open(where) as app:
        log(app, "bob", call("1", tool="ours_only"))
        log(app, "@acme/ann", call("1", tool="theirs_only"), call("2", tool="theirs_only"))
        with app.queue() as queue:
            queue.put_many([Task(name="late", user_id=user, max_attempts=1) for user in ("bob", "@acme/ann", None)])
            queue.settle([FailedAttempt(lease, "no answer") for lease in queue.take("w", 9).leases])
            dead = {job.user_id: job.id for job in queue.dead()}
        with visiting(app, "default", "acme") as [ours, theirs]:
            seen = ours.seen("operator?days=30")
            assert "Calls 1" in seen and "Users 1" in seen and "theirs_only" not in seen and "Jobs failed 2" in seen
            seen = theirs.seen("operator?days=30")
            assert "Calls 2" in seen and "Users 1" in seen and "ours_only" not in seen and "Jobs failed 1" in seen
            assert "ann" in theirs.seen("operator/users") and "bob" not in theirs.seen("operator/users")
            seen = theirs.seen("operator/queue")
            assert "late for ann" in seen and "bob" not in seen and "everyone" not in seen
            seen = ours.seen("operator/queue")
            assert "late for bob" in seen and "late for everyone" in seen and not mentions(seen, "ann")
            for visit, stranger in ((ours, dead["@acme/ann"]), (theirs, dead["bob"]), (theirs, dead[None])):
                visit.post(f"operator/queue/{stranger}", 404, do="drop")
            for stranger, status in (("bob", 404), ("../bob", 404), ("@acme/bob", 404), ("", 422)):
                theirs.get(f"operator/users/erase?user={quote(stranger)}", status)
                theirs.post("operator/users/erase", status, user=stranger, typed=stranger)
            ours.post("operator/users/erase", 422, user="@acme/ann", typed="@acme/ann")
            assert app.user("bob").exists and app.user("@acme/ann").exists


def test_U6_users_are_shown_by_the_page_and_found_by_their_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_views, "USERS", 2)
    odd = "<b>&amp; x/?#%"
    with recollect.open(tmp_path) as app:
        for name in ("ann", "anton", "bob", odd, "@acme/zoe"):
            app.user(name).remember("Likes tea", category="preference")
        with visiting(app) as [visit]:
            page = visit.get("operator/users")
            assert html.escape(odd) in page and "ann 1 0 0 1 on" in text_of(page) and "anton" not in text_of(page)
            seen = [text_of(page)]
            while more := re.search(r'href="/console/([^"]+)">More<', page):
                page = visit.get(html.unescape(more[1]))
                seen.append(text_of(page))
            assert ["anton" in one and "bob" in one for one in seen] == [False, True]
            assert "From the beginning" in seen[1] and "zoe" not in "".join(seen)
            found = visit.seen("operator/users?q=an")
            assert "ann" in found and "anton" in found and "bob" not in found
            assert visit.seen(f"operator/users?q={quote('<b>')}").count("Last change") == 1
            for query in ("q=%00", "q=%ff", "after=%ed%a0%80", "q=" + "x" * 3000):
                assert visit.http.get(f"operator/users?{query}").status_code in (200, 422)


def test_R7_U6_an_operator_erases_a_user_who_asks_for_it(where: str) -> None:
    odd = "<b>&amp; x/?#% ' \" ж"
    with recollect.open(where) as app:
        log(app, "ann", call("1"))
        log(app, odd, call("1"))
        with app.queue() as queue:
            queue.put(Task(name="extract", user_id=odd))
        with visiting(app, "default") as [visit]:
            link = re.findall(r'href="/console/(operator/users/erase[^"]*)"', visit.get("operator/users"))[0]
            asked = visit.get(html.unescape(link))
            assert "Type the user's id" in asked and html.escape(odd, quote=False) in asked.replace(
                "&#34;", '"'
            ).replace("&#39;", "'")
            for typed in ("", odd + " ", odd.upper(), "ann"):
                visit.post("operator/users/erase", 422, user=odd, typed=typed)
            assert app.user(odd).exists
            receipt = text_of(visit.post("operator/users/erase", user=odd, typed=odd))
            assert "Erased" in receipt and "Removed" in receipt and re.search(r"jobs 1\b", receipt)
            assert not app.user(odd).exists and app.user("ann").exists
            visit.post("operator/users/erase", 404, user=odd, typed=odd)
            visit.mark = "forged"
            visit.post("operator/users/erase", 403, user="ann", typed="ann")
            assert app.user("ann").exists and "Calls 1" in visit.seen("operator?days=30")


def test_U6_who_may_only_look_changes_nothing(tmp_path: Path) -> None:
    from recollect.identity.login import Login

    with recollect.open(tmp_path) as app:
        app.keys.create(scope="admin")
        log(app, "ann", call("1"))
        with app.queue() as queue:
            queue.put(Task(name="extract", user_id="ann", max_attempts=1))
            queue.settle([FailedAttempt(lease, "no") for lease in queue.take("w", 9).leases])
            [job] = queue.dead()
        code, _ = Login(app.keys).link(None, operator=True, read_only=True)
        with visiting(app, code=code) as [visit]:
            page = visit.get("operator/queue")
            assert "extract for ann" in text_of(page) and "Retry" not in page
            assert "ann" in visit.seen("operator/users") and "Erase" not in visit.seen("operator/users")
            visit.get("operator/users/erase?user=ann", 403)
            for path, fields in (
                (f"operator/queue/{job.id}", {"do": "drop"}),
                ("operator/users/erase", {"user": "ann", "typed": "ann"}),
            ):
                visit.post(path, 403, **fields)
            assert app.user("ann").exists


def test_U6_dead_letters_of_others_hide_none_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_views, "LETTERS", 2)
    with recollect.open(tmp_path) as app:
        with app.queue() as queue:
            users = ["bob", *(f"@acme/{number}" for number in range(3))]
            queue.put_many([Task(name="late", user_id=user, max_attempts=1) for user in users])
            for lease in queue.take("w", 9).leases:
                queue.settle([FailedAttempt(lease, f"<script>{SECRET}</script>")])
        with visiting(app, "default", "acme") as [ours, theirs]:
            page = ours.get("operator/queue")
            assert "late for bob" in page and "<script>wombat" not in page and "&lt;script&gt;" in page
            seen = theirs.seen("operator/queue")
            assert "the latest 2 of 3" in seen and seen.count("late for") == 2 * 3
            [name] = re.findall(r'action="/console/(operator/queue/[^"]+)"', page)
            assert "Queued again" in text_of(ours.post(name, do="retry"))
            ours.post(name, 404, do="retry")
            with app.queue() as queue:
                assert queue.metrics("default").waiting == 1 and queue.metrics("acme").dead == 3


# drawing


def test_U6_charts_escape_what_they_show_and_are_never_out_of_bounds() -> None:
    odd = "<script>"
    few = latency_of({0: 1, len(BOUNDS): 2})
    drawn = [
        bar_chart([(odd, 3), ("b", 0)], '"<b>'),
        column_chart([(odd, 3), ("b", 0)], '"<b>', failed=[1, 0]),
        line_chart([odd, "b"], [(odd, [1.0, None]), ("b", [None, 99_999.0])], '"<b>'),
        histogram(few, '"<b>'),
        histogram(latency_of({90: 1}), '"<b>'),
        column_chart([(str(number), number * 10**9) for number in range(90)], "t"),
        column_chart([("a", 0)], "t"),
    ]
    for made in drawn:
        assert "<script" not in made and "<b>" not in made and made.count("<svg") == made.count("</svg>") == 1
        numbers = [float(one) for one in re.findall(r' (?:x|y|cx|cy|x1|x2|y1|y2)="([^"]+)"', made)]
        assert numbers and all(-1 <= number <= 641 for number in numbers)
        assert all(float(one) >= 0 for one in re.findall(r' (?:width|height)="([^"]+)"', made))


def test_U6_times_and_numbers_are_told_in_few_digits() -> None:
    told = {0.04: "0.1 ms", 0.86: "0.9 ms", 3.0: "3 ms", 38.2: "38 ms", 999.0: "999 ms", 1500: "1.5 s", 59_000: "59 s", 150_000: "2.5 min", 7_200_000: "2 h"}  # fmt: skip
    assert {time: format_duration(time) for time in told} == told
    assert [compact_number(number) for number in (0, 7, 950, 1200, 34_000, 1_500_000)] == [
        "0",
        "7",
        "950",
        "1.2k",
        "34k",
        "1.5M",
    ]


# in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.mark.slow
def test_U6_in_a_browser_the_numbers_follow_and_no_page_is_too_wide(chromium: Any, tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        log(app, "a" * 120, *(call(f"{tool}", tool=f"{tool}_{'x' * 40}") for tool in range(14)))
        with app.queue() as queue:
            queue.put(Task(name="n" * 90, user_id="a" * 120, max_attempts=1))
            queue.settle([FailedAttempt(lease, "e" * 300) for lease in queue.take("w", 9).leases])
        with serving(app) as url:
            window = chromium.new_page(viewport={"width": 360, "height": 740})
            complaints: list[str] = []
            window.on("pageerror", lambda error: complaints.append(str(error)))
            window.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            for path in (
                "operator/users",
                "operator/queue",
                f"operator/users/erase?user={'a' * 120}",
                "operator?days=30",
            ):
                window.goto(f"{url}/console/{path}")
                assert window.evaluate("document.documentElement.scrollWidth") <= 360, path
            window.locator("#using details summary").first.click()
            window.locator("#using details summary").first.focus()
            log(app, "b", call("1"))
            window.evaluate("window.here = true; document.dispatchEvent(new Event('visibilitychange'))")
            window.wait_for_selector("#using dd:has-text('15')")
            assert window.evaluate("window.here") is True, "the page is still the same"
            assert window.locator("#using details").first.get_attribute("open") is not None, (
                "what was opened stays open"
            )
            assert window.evaluate("document.activeElement.tagName") == "SUMMARY", "and whoever was there stays there"
            window.close()
            assert complaints == []
