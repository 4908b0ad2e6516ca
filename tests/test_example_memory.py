"""The example for a first visitor: made by the real parts, marked, never mixed up with anybody, removed in one click."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

import recollect
from recollect import Recollect
from recollect.surfaces import example
from tests.serving import serving


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Recollect:
    app = recollect.open(tmp_path_factory.mktemp("example"))
    example.fill_example(app)
    return app


def test_U6_the_example_has_something_on_every_page(filled: Recollect) -> None:
    memory = filled.user(example.USER)
    assert memory.verify() == []
    assert {"fact", "note", "observation", "episode", "daily", "message"} <= set(memory.count())
    shown = memory.show()
    assert "Staff engineer" in shown and "Backend" not in shown
    assert "an invented example to explore" in shown
    assert [run.status for run in memory.runs()] == ["completed"] * len(memory.runs())
    assert memory.similar() and memory.read(kind="fact", type="relationship")
    calls = memory.calls(limit=None)
    assert len(calls) > 20 and {call.status for call in calls} == {"ok"}
    days = {entry.at.date() for entry in memory.history()}
    assert len(days) > 5 and max(days) <= memory.clock().date()


def test_U6_the_example_is_told_once_and_anew_after_a_kill(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        app.user(example.USER).say("Hi! I'm Mara. I work as a backend engineer at Nordlys in Lisbon.", session="hello")
        example.fill_example(app)
        memory = app.user(example.USER)
        assert example.is_example(memory)
        last = memory.history(limit=1)[-1].seq
        example.fill_example(app)
        assert memory.history(limit=1)[-1].seq == last


def test_U6_somebody_who_is_called_example_is_let_be(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        app.user(example.USER).remember("Likes tea", key="drink")
        example.fill_example(app)
        assert not example.is_example(app.user(example.USER))
        assert app.user(example.USER).count() == {"fact": 1}


def test_U6_the_console_shows_the_example_until_one_click_removes_it(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        app.user("me").remember("Likes tea", key="drink")
        example.fill_example(app)
        with serving(app) as url, httpx.Client(base_url=f"{url}/console", follow_redirects=True) as browser:
            page = browser.get("/").text
            assert "Nordlys" in page and "example" in page and "Likes tea" not in page
            mark = page.partition('name="csrf_token" value="')[2].partition('"')[0]
            receipt = browser.post("/example/remove", data={"csrf_token": mark})
            assert receipt.status_code == 200
            page = browser.get("/").text
            assert "Nordlys" not in page and "Likes tea" in page
            mark = page.partition('name="csrf_token" value="')[2].partition('"')[0]
            assert browser.post("/example/remove", data={"csrf_token": mark}).status_code == 404
        assert not app.user(example.USER).exists and list(app.users()) == ["me"]


def test_U6_agents_never_see_the_example(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        example.fill_example(app)
        with serving(app) as url:
            found = httpx.post(f"{url}/v1/users/me/search", json={"query": "Nordlys engineer"}).json()
            assert found["result"]["hits"] == []
