"""The web console, over real HTTP and in a real browser: what a person sees and does, what an operator sees, and what
nobody may."""

from __future__ import annotations

import asyncio
import html
import io
import re
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from itertools import count, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

import recollect
from recollect import Memory, Recollect, ToolCall
from recollect.errors import InvalidInputError
from recollect.identity.login import LINK_LIFETIME, SESSION_LIFETIME, Login, LoginRefusedError
from recollect.surfaces import example
from recollect.surfaces.web import console as web
from recollect.surfaces.web.charts import bar_chart, column_chart
from recollect.surfaces.web.console import console
from recollect.surfaces.web.diffs import lines_changed, words_changed
from recollect.surfaces.web.live import Live
from recollect.testing import FrozenClock, MemoryStore
from recollect.work.contract import FailedAttempt, Task
from tests.browser.windows import launched
from tests.serving import serving as serving_all

PATIENCE = 30.0
STATIC = Path(web.__file__).parent / "static"
PAGES = (
    "", "edit", "search?q=engineer", "timeline", "daily", "episodes", "observations", "notes", "people", "runs",
    "conversations", "working", "duplicates", "settings", "settings/topic?topic=trains",
)  # fmt: skip
OPERATING = ("operator", "operator/users", "operator/queue")
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\"><script>alert('x')</script>",
    "[look](javascript:alert(1)) and <a href='javascript:alert(2)'>here</a>",
    "</textarea></title></svg><svg onload=alert(3)>",
    "{{ 'abc' * 3 }} {% raw %} ${'abc'.repeat(3)} &lt;b&gt; \u202etxt.exe",
)
COMPUTED = "abcabcabc"  # by the template that the last one would be; in no time, number or identifier
_numbers = count()
_visits: list[Visit] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Nobody stays after a test."""
    yield
    while _visits:
        _visits.pop().http.close()


@contextmanager
def serving(app: Recollect, who: Login, *, base: str = "/console") -> Iterator[str]:
    """The address of a console, served in a thread."""
    made = console(app, who=who, live=Live(app, seconds=0.02))
    config = uvicorn.Config(
        Starlette(routes=[Mount(base, made)]) if base else made, log_config=None, access_log=False, lifespan="off"
    )
    server = uvicorn.Server(config)
    loop = asyncio.new_event_loop()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or the end of each answer waits for a moment
        bound.listen(128)  # from here on who connects waits
        thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([bound])), name="console")
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}{base}"
        finally:

            def stop() -> None:
                made.state.close_streams()
                server.should_exit = True

            loop.call_soon_threadsafe(stop)
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the console did not stop"
            loop.run_until_complete(asyncio.sleep(0))  # what was hung up on is closed in the loop's next turn
            loop.close()


class Visit:
    """A browser without scripts: it keeps cookies and sends the forms of the pages it has seen."""

    def __init__(self, url: str, **how: Any) -> None:
        self.http = httpx.Client(base_url=url + "/", timeout=PATIENCE, follow_redirects=True, **how)
        self.mark = ""
        _visits.append(self)

    def get(self, path: str = "", status: int = 200) -> str:
        answer = self.http.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text[-600:])
        if found := re.search(r'name="csrf_token" value="([^"]+)"', answer.text):
            self.mark = found[1]
        return answer.text

    def post(self, path: str, status: int = 200, /, **fields: str) -> str:
        if not self.mark:
            self.get("settings")
        answer = self.http.post(path, data={"csrf_token": self.mark, **fields})
        assert answer.status_code == status, (path, answer.status_code, answer.text[-600:])
        return answer.text

    def seen(self, path: str = "") -> str:
        """What a person reads of a page."""
        return text_of(self.get(path))


def text_of(page: str) -> str:
    bare = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page))
    return " ".join(html.unescape(bare).split())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recollect, Login, str]]:
    """A console that lets in only who has a link or a key."""
    with recollect.open(tmp_path_factory.mktemp("shared")) as app:
        app.keys.create(scope="admin")
        who = Login(app.keys, open=True)
        with serving(app, who) as url:
            yield app, who, url


@pytest.fixture
def person(shared: tuple[Recollect, Login, str]) -> tuple[Memory, Visit]:
    """Somebody new, with a memory and a visit."""
    app, who, url = shared
    name = f"u{next(_numbers)}"
    return app.user(name), visiting(url, who, name)


def visiting(url: str, who: Login, name: str | None, **how: Any) -> Visit:
    visit = Visit(url)
    code, _ = who.link(name, **how)
    visit.get(f"login?code={quote(code)}")
    visit.post("login", code=code)
    visit.mark = ""  # that of the door; a visit has its own
    return visit


@pytest.fixture
def operator(shared: tuple[Recollect, Login, str]) -> Visit:
    return visiting(shared[2], shared[1], None, operator=True)


def a_life(memory: Memory) -> None:
    """Something on every page."""
    memory.remember("Staff engineer at Northwind", key="role", category="work_context")
    memory.remember("Prefers trains over flying within Europe", category="preference")
    memory.remember("Prefers trains to flights inside Europe", category="preference")
    memory.remember("Anna", key="wife", type="relationship")
    memory.jot("Asked about logical replication")
    memory.note("Passport, adapter, shoes", title="Packing list", tags=["travel"])
    memory.observe("Large transactions cause lag", "finding")
    memory.episode("Birthday", "Looked for a cabin near the lake", participants=["Anna", "Tomás"])


# seeing


def test_U6_the_memory_is_shown_by_section_with_each_fact_a_page_of_its_own(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    memory.remember("Allergic to hazelnuts", category="key_fact", pinned=True, confidence=0.9)
    page = visit.get()
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "User Preferences", "Work Context", "Personal Context", "Key Facts",
    ]  # fmt: skip
    assert "role Staff engineer at Northwind" in text_of(page).replace("Role", "role")
    assert "Allergic to hazelnuts pinned · 90% sure" in text_of(page)
    for fact in memory.read(kind="fact"):
        assert f'href="/console/record/{fact.id}"' in page
        assert fact.content in visit.seen(f"record/{fact.id}")


def test_U6_a_record_tells_its_source_why_it_is_known_and_every_version(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    told = memory.say("I moved to Hamburg", session="s1")
    memory.remember("Berlin", key="city", category="personal_context")
    message = told.record  # type: ignore[attr-defined]
    memory.acting(agent="scribe").update("city", "Hamburg", excerpt="I moved to Hamburg", messages=[message.id])
    seen = visit.seen(f"record/{memory.get('city').id}")
    assert "Hamburg" in seen and "Berlin → Hamburg" in seen and "Version 2" in seen
    assert "Based on" in seen and "I moved to Hamburg" in seen
    assert "by scribe" in seen and "Remembered" in seen


def test_U6_search_marks_the_reasons_in_what_it_found(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    memory.say("Trains are slow today", session="s1")
    page = visit.get("search?q=train")
    assert page.count("<mark>trains</mark>") == 2 and "Because of: train" in text_of(page)
    assert "Trains</mark> are slow" not in page
    assert "<mark>Trains</mark> are slow" in visit.get("search?q=train&conversation=1")
    assert "Nothing found." in visit.get("search?q=zebras")


def test_R5_the_timeline_shows_each_change_by_day_and_takes_it_back(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Berlin", key="city", category="personal_context")
    memory.update("city", "Hamburg", note="moved")
    page = visit.get("timeline")
    assert f"{datetime.now(timezone.utc):%A, %-d %B %Y}" in page and "moved" in page
    changes = memory.history()
    assert [offered(page, entry.seq) for entry in changes] == [False, True], "only the last change of a record first"
    seen = text_of(visit.post("undo", target=str(changes[-1].seq), back="timeline"))
    assert "Undone." in seen and memory.get("city").content == "Berlin"
    again = visit.get("timeline")
    assert "Redo" in again and offered(again, changes[0].seq) and not offered(again, changes[1].seq)
    visit.post("undo", target=str(memory.history()[-1].seq))
    assert memory.get("city").content == "Hamburg"


def offered(page: str, target: int | str) -> bool:
    return f'name="target" value="{target}"' in page


def test_R5_what_was_said_is_in_the_timeline_if_asked_for(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.say("Good morning", session="s1")
    memory.remember("Likes tea", category="preference")
    page = visit.get("timeline")
    assert "Likes tea" in page and "Good morning" not in page and "1 message is not shown" in page
    assert "Good morning" in visit.get("timeline?conversation=1")


def test_R5_a_run_is_shown_with_its_changes_and_undone_as_a_whole(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    with memory.acting("upkeep", run="run-of-mine").batch() as many:
        many.remember("Likes tea", category="preference")
        many.remember("Likes rye bread", category="preference")
    page = visit.get("runs")
    assert "2 changes" in page and "Likes rye bread" in page and offered(page, "run-of-mine")
    visit.post("undo", target="run-of-mine", back="runs")
    assert memory.read(kind="fact") == [] and not offered(visit.get("runs"), "run-of-mine")


def test_U6_what_cannot_be_undone_any_more_says_why(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Berlin", key="city", category="personal_context")
    memory.update("city", "Hamburg")
    assert "changed after entry 1" in text_of(visit.post("undo", 409, target="1"))
    assert "there is no run" in text_of(visit.post("undo", 404, target="run-nope"))
    for nonsense in ("", "²", "9" * 40):
        visit.post("undo", 422, target=nonsense)
    assert memory.get("city").content == "Hamburg"


def test_U6_notes_episodes_observations_and_daily_notes_have_pages(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    yesterday = datetime.now(timezone.utc).date() - timedelta(days=1)
    memory.jot("Fever in the morning", day=yesterday)
    assert "Packing list Passport, adapter, shoes travel" in visit.seen("notes")
    assert "Birthday Looked for a cabin near the lake With Anna, Tomás" in visit.seen("episodes")
    assert "finding Large transactions cause lag" in visit.seen("observations")
    today = visit.get("daily")
    assert "Asked about logical replication" in today and "Fever" not in today and f"daily/{yesterday}" in today
    assert "Fever in the morning" in visit.get(f"daily/{yesterday}")
    visit.get("daily/2026-02-31", 422)


def test_U6_people_are_drawn_and_told_in_a_table(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    assert "Nobody is mentioned yet" in visit.get("people")
    a_life(memory)
    page = visit.get("people")
    assert page.count('class="dot"') == 2 and 'class="tie s2"' in page, "Anna is a wife and took part"
    assert "Anna wife" in text_of(page) and '<th scope="row">Tomás</th>' in page
    assert 'class="with"' in page, "Anna and Tomás were somewhere together"


def test_U6_people_have_their_names_whichever_way_round_they_were_told_and_the_person_is_not_among_them(
    person: tuple[Memory, Visit],
) -> None:
    memory, visit = person
    memory.remember("daughter", key="Inês", type="relationship")
    memory.episode("Aquarium", "Saw the otters", participants=["Inês", memory.user_id, "user"])
    page = visit.get("people")
    assert "Inês daughter" in text_of(page) and page.count('class="dot"') == 1 and 'class="tie s2"' in page


def shown_entries(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'id="entry-(\d+)"', page)]


def walked(visit: Visit, path: str) -> Iterator[str]:
    """A page, and all earlier ones that it leads to."""
    while path:
        page = visit.get(path)
        yield page
        found = re.search(r'rel="next" href="/console/([^"]+)"', page)
        path = html.unescape(found[1]) if found else ""


def test_R5_the_whole_journal_can_be_read_page_by_page(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    with memory.batch() as many:
        many.remember("Berlin", key="city", category="personal_context")
        many.remember("Likes tea", category="preference")
        for number in range(120):
            many.jot(f"Walked {number} miles")
            many.say(f"Hello {number}", session="s1")
        many.update("city", "Hamburg")
    pages = list(walked(visit, "timeline"))
    changes = [entry.seq for entry in memory.history() if entry.after and entry.after.kind != "message"]
    assert [seq for page in pages for seq in shown_entries(page)] == changes[::-1] and len(pages) == 2
    assert offered(pages[-1], 2) and not offered(pages[-1], 1), "what was changed since cannot be undone there"
    assert "Latest" in pages[-1] and "Latest" not in pages[0]
    pages = list(walked(visit, "timeline?conversation=1"))
    assert [seq for page in pages for seq in shown_entries(page)] == list(range(243, 0, -1))
    assert "There are no earlier changes" in visit.get("timeline?before=1")


def test_R5_history_is_read_back_from_an_entry(person: tuple[Memory, Visit]) -> None:
    memory, _ = person
    with memory.acting(run="run-a").batch() as many:
        for number in range(6):
            many.jot(f"Walked {number} miles")
    memory.remember("Likes tea", category="preference")

    def seqs(**how: Any) -> list[int]:
        return [entry.seq for entry in memory.history(**how)]

    assert seqs(before=5, limit=2) == [3, 4] and seqs(before=3, limit=9) == [1, 2] and seqs(before=1, limit=3) == []
    assert seqs(before=99, limit=2) == [6, 7] and seqs(before=8, limit=2) == [6, 7] and seqs(before=4) == [1, 2, 3]
    assert seqs(run="run-a", before=5, limit=2) == [3, 4] and seqs(run="run-a", limit=1) == [6]
    with pytest.raises(InvalidInputError):
        memory.history(before=-1)


def test_R5_runs_are_read_page_by_page_each_once_and_each_has_a_page(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.acting(run="run-long").remember("Likes tea", category="preference")
    for number in range(40):
        memory.acting(run=f"run-{number}").jot(f"Walked {number} miles")
    memory.acting(run="run-long").remember("Likes rye bread", category="preference")
    pages = list(walked(visit, "runs"))
    found = [run for page in pages for run in re.findall(r'<article class="card" id="([^"]+)"', page)]
    assert found == ["run-long", *(f"run-{number}" for number in range(39, -1, -1))] and len(pages) == 2
    seen = visit.seen("runs/run-long")
    assert "2 changes" in seen and "Likes tea" in seen and "Likes rye bread" in seen
    assert "runs/run-long" in str(
        visit.http.post("undo", data={"csrf_token": visit.mark, "target": "run-long", "back": "runs/run-long"}).url
    )
    assert memory.read(kind="fact") == [] and "Undo the run" not in visit.get("runs/run-long")
    visit.get("runs/run-nope", 404)


def test_U6_conversations_are_read_with_what_was_learned_from_them(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    assert "There are no conversations yet" in visit.get("conversations")
    name = "chat/7 & <b>?#%"
    for number in range(102):
        memory.say(f"Sentence {number}", session=name, role="user" if number % 2 == 0 else "assistant")
    memory.acting(session=name).remember("Likes tea", category="preference")
    for number in range(31):
        memory.say("Good morning", session=f"s{number}")
    pages = list(walked(visit, "conversations"))
    assert len(pages) == 2 and sum(page.count('<article class="card"') for page in pages) == 32
    assert "Sentence 0" in pages[-1] and "102 messages" in pages[-1]
    first, second = walked(visit, f"conversation?id={quote(name, safe='')}")
    assert "Sentence 99" in first and "Sentence 100" not in first and "Sentence 101" in second
    assert "1 record from this conversation Likes tea" in text_of(first) and Checked(first).wrong == []
    fact = memory.read(kind="fact")[0]
    link = re.search(r'href="/console/(conversation\?id=[^"]+)"', visit.get(f"record/{fact.id}"))
    assert link and "Sentence 0" in visit.get(html.unescape(link[1]))
    for nobody in ("conversation", "conversation?id=nope"):
        visit.get(nobody, 404)


def test_U6_working_memory_can_be_seen_and_forgotten(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    assert "Empty: no agent" in visit.get("working")
    memory.set_scratch("draft", "Dear Anna")
    assert "draft Dear Anna" in visit.seen("working")
    item = memory.read(kind="scratch")[0]
    assert "Forgotten" in visit.post(f"record/{item.id}/forget", back="working") and "Empty: no agent" in visit.get(
        "working"
    )


def test_U6_times_are_utc_for_whom_no_script_tells_otherwise(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Likes tea", category="preference")
    at = memory.history()[-1].at
    page = visit.get("timeline")
    assert f'datetime="{at.isoformat(timespec="seconds")}"' in page and f">{at:%H:%M}</time>" in page
    assert f'title="{at:%-d %b %Y, %H:%M} UTC"' in page and "Times are UTC." in page


# changing


def test_U6_an_edit_is_compared_before_it_is_saved_and_can_be_undone(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    page = visit.get("edit")
    before = memory.show()
    assert html.unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.S)[1]) == before  # type: ignore[index]
    text, expect = before.replace("Staff", "Principal"), expected(page)
    compared = visit.post("edit", text=text.replace("\n", "\r\n"), expect=expect, step="preview")
    assert "<del>Staff</del>" in compared and "<ins>Principal</ins>" in compared and memory.show() == before
    other = text.replace("Northwind", "Southwind")
    again = visit.post("edit", text=other, step="save", **hidden(compared))
    assert "<ins>Southwind</ins>" in again and memory.show() == before, "only what was compared is saved"
    saved = visit.post("edit", text=text.replace("\n", "\r\n"), step="save", **hidden(compared))
    assert memory.show() == text, "line endings are the file's, not the browser's"
    run = memory.history()[-1].run
    assert "Saved." in saved and run and offered(saved, run)
    visit.post("undo", target=run)
    assert memory.get("role").content == "Staff engineer at Northwind"


def expected(page: str) -> str:
    return hidden(page)["expect"]


def hidden(page: str) -> dict[str, str]:
    """What a form remembers of what was shown."""
    return dict(re.findall(r'name="(expect|compared|seq)" value="([^"]*)"', page))


def save(visit: Visit, path: str, text: str, page: str, status: int = 200) -> str:
    """Compare and save."""
    compared = visit.post(path, text=text, expect=expected(page), step="preview")
    return visit.post(path, status, text=text, step="save", **hidden(compared))


def test_U6_an_edit_keeps_the_line_endings_of_a_file_from_elsewhere(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.edit("# User Memory\r\n\r\n## Key Facts\r\n- Likes tea\r\n")
    page = visit.get("edit")
    text = memory.show().replace("tea", "rooibos")
    save(visit, "edit", text, page)
    assert memory.show() == text and "\r\n" in text


def test_U6_an_edit_never_overwrites_what_was_written_meanwhile(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    page = visit.get("edit")
    text = memory.show().replace("Staff", "Principal")
    memory.remember("Allergic to hazelnuts", category="key_fact")
    refused = visit.post("edit", 409, text=text, expect=expected(page), step="save")
    assert "changed in the meantime" in refused and "Allergic to hazelnuts" in refused, "what would be lost is shown"
    assert memory.search("hazelnuts") and memory.get("role").content.startswith("Staff")
    visit.post("edit", text=text, step="save", **hidden(refused))
    assert not memory.search("hazelnuts"), "who was told and insists, is obeyed"


def test_U6_two_who_save_the_same_edit_at_once_do_not_both_win(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    expect = expected(visit.get("edit"))
    texts = [memory.show() + f"- Likes number {number}\n" for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        shown = [hidden(visit.post("edit", text=text, expect=expect, step="preview")) for text in texts]
        fields = [
            {"csrf_token": visit.mark, "text": text, "step": "save", **each}
            for text, each in zip(texts, shown, strict=True)
        ]
        answers = list(pool.map(lambda data: visit.http.post("edit", data=data).status_code, fields))
    assert sorted(answers) == [200, 409, 409, 409] and memory.show() in texts


def test_U6_a_daily_note_is_edited_like_the_file(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.jot("Asked about replication")
    today = datetime.now(timezone.utc).date().isoformat()
    page = visit.get(f"daily/{today}/edit")
    text = memory.daily(today).replace("replication", "sharding")
    save(visit, f"daily/{today}/edit", text, page)
    assert [entry.content for entry in memory.read(kind="daily")] == ["Asked about sharding"]


def test_U6_one_value_is_changed_after_it_was_compared_unless_another_was_first(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Berlin", key="city", category="personal_context")
    record = memory.get("city")
    path = f"record/{record.id}/change"
    compared = visit.post(path, content="Hamburg", seq=str(record.seq), step="preview")
    assert "<del>Berlin</del>" in compared and "<ins>Hamburg</ins>" in compared and memory.get("city") == record
    again = visit.post(path, content="Rome", step="save", **hidden(compared))
    assert "<ins>Rome</ins>" in again and memory.get("city") == record, "only what was compared is saved"
    memory.update("city", "Munich")
    refused = visit.post(path, 409, content="Hamburg", step="save", **hidden(compared))
    assert "<del>Munich</del>" in refused and memory.get("city").content == "Munich"
    visit.post(path, content="Hamburg", step="save", reason="correction", **hidden(refused))
    assert memory.get("city").content == "Hamburg"
    visit.post("record/city/change", 404, content="Rome", seq="1", step="save")


def test_U6_what_was_written_is_not_lost_when_the_policy_says_no(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Berlin", key="city", category="personal_context")
    record, secret = memory.get("city"), "Berlin, sk-ant-api03-" + "x9Yk" * 24
    compared = visit.post(f"record/{record.id}/change", 422, content=secret, seq=str(record.seq), step="preview")
    refused = visit.post(f"record/{record.id}/change", 422, content=secret, step="save", **hidden(compared))
    for page in (compared, refused, visit.post("remember", 422, content=secret)):
        assert "seems to contain a secret" in page and "Berlin, " in page and secret not in page
    assert memory.get("city") == record


def test_U6_an_entry_of_a_daily_note_is_changed_in_its_note_only(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.jot("Asked about replication")
    today = datetime.now(timezone.utc).date().isoformat()
    page = visit.get(f"record/{memory.read(kind='daily')[0].id}")
    assert "/change" not in page and f'href="/console/daily/{today}/edit"' in page
    assert "data-edit" not in visit.get(f"daily/{today}")


def test_U6_pin_forget_and_undo_from_the_page_that_tells_of_it(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Berlin", key="city", category="personal_context")
    record = memory.get("city")
    assert "Pinned" in visit.post(f"record/{record.id}/pin", pinned="1") and memory.get("city").pinned
    visit.post(f"record/{record.id}/pin", pinned="0")
    assert not memory.get("city").pinned
    gone = visit.post(f"record/{record.id}/forget")
    assert "Forgotten. You can undo this." in gone and not memory.search("Berlin")
    seq = memory.history()[-1].seq
    assert offered(gone, seq)
    visit.post("undo", target=str(seq))
    assert memory.get("city").content == "Berlin"


def test_U6_an_address_cannot_offer_to_undo_something_else(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Berlin", key="city", category="personal_context")
    memory.remember("Likes tea", category="preference")
    assert not offered(visit.get("?done=saved&undo=1"), 1) and offered(visit.get("?done=saved&undo=2"), 2)
    assert "<b>" not in visit.get("?done=%3Cb%3E") and 'class="told"' not in visit.get("?done=%3Cb%3E")


def test_U6_a_person_remembers_something_themselves_and_is_told_what_the_policy_says(
    person: tuple[Memory, Visit],
) -> None:
    memory, visit = person
    visit.post("remember", content="Likes tea", category="preference", key="")
    assert [fact.content for fact in memory.read(kind="fact")] == ["Likes tea"]
    assert "Invalid input" in visit.post("remember", 422, content="Likes tea", category="preference")
    visit.post("remember", 422, content="The key is sk-ant-api03-" + "x9Yk" * 24, category="key_fact")
    visit.post("remember", 422, content="Likes tea", category="nonsense")
    visit.post("remember", 422)
    assert len(memory.read(kind="fact")) == 1


def test_U6_near_duplicates_are_merged_and_the_merge_is_undone(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    page = visit.get("duplicates")
    assert "<del>flying</del>" in page and "<ins>flights</ins>" in page
    fields = dict(re.findall(r'name="(one|other)" value="([^"]+)"', page))
    done = visit.post("merge", **fields, content="Prefers trains to flights in Europe")
    assert "Merged into one" in done and len(memory.search("trains")) == 1
    assert "Replaced by Prefers trains to flights in Europe" in visit.seen(f"record/{fields['one']}")
    assert "There are no duplicates." in visit.get("duplicates")
    visit.post("undo", target=str(memory.history()[-1].run))
    assert len(memory.search("trains")) == 2


# settings


def test_U6_pause_incognito_resume_and_consents(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    for mode in ("paused", "incognito"):
        visit.post("settings/mode", mode=mode)
        assert memory.mode == mode and f"Memory is {mode}" in visit.get("settings")
        assert 'class="banner"' in visit.get("timeline")
    visit.post("settings/mode", mode="on")
    assert memory.mode == "on" and 'class="banner"' not in visit.get("timeline")
    visit.post("settings/mode", 422, mode="loud")
    visit.post("settings/consent", trends="1")
    assert memory.consents() == ("trends",)
    visit.post("settings/consent")
    assert memory.consents() == ()


def test_U6_memory_that_is_off_for_everyone_is_not_called_paused(tmp_path: Path) -> None:
    with recollect.open(tmp_path, enabled=False) as app:
        app.keys.create(scope="admin")
        with serving(app, who := Login(app.keys, open=True)) as url:
            visit = visiting(url, who, "anna")
            assert "Memory is turned off for everyone: nothing is stored." in visit.seen()
            assert "Memory is on again" not in visit.post("settings/mode", mode="on")


def test_U6_memory_is_paused_and_resumed_from_any_page_and_one_stays_there(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    for path in ("", "timeline", f"record/{memory.get('role').id}", "daily/2026-05-01"):
        page = visit.get(path)
        assert f'name="back" value="{path}"' in page and ">Pause</button>" in page
        after = visit.http.post("settings/mode", data={"csrf_token": visit.mark, "mode": "paused", "back": path})
        assert after.url.path == f"/console/{path}" and "Memory is paused" in after.text and memory.mode == "paused"
        assert ">Resume</button>" in after.text
        visit.post("settings/mode", mode="on", back=path)
    for elsewhere in (
        "//evil.example.com",
        "/",
        "https://evil.example.com",
        "record/../../x",
        "logout",
        "settings/clear",
        "\n",
    ):
        after = visit.http.post("settings/mode", data={"csrf_token": visit.mark, "mode": "on", "back": elsewhere})
        assert after.url.path == "/console/settings", elsewhere


def test_U6_who_may_only_look_sees_no_forms_and_changes_nothing(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    name = f"u{next(_numbers)}"
    memory = app.user(name)
    a_life(memory)
    memory.edit(memory.show() + "- Likes rooibos\n")
    memory.say("Good morning", session="s1")
    memory.set_scratch("draft", "Dear Anna")
    visit = visiting(url, who, name, read_only=True)
    before = memory.history()
    record = memory.get("role").id
    run = memory.history()[-3].run or ""
    for path in (*PAGES, f"record/{record}", f"runs/{run}" if run else "runs", "?done=saved&undo=11"):
        page = visit.get(path, 403 if path == "edit" else 200)
        forms = re.findall(r'<form[^>]*method="post" action="([^"]+)"', page)
        assert set(forms) <= {"/console/logout"}, (path, forms)
        assert '/edit"' not in page and '/erase"' not in page and "data-edit" not in page, path
    assert "Your access is read-only" in page and visit.http.get("export").status_code == 200
    visit.get(f"record/{record}/erase", 403)
    for path, fields in {
        "edit": {"text": "x", "expect": ""}, "remember": {"content": "Likes tea"}, "undo": {"target": "1"},
        f"record/{record}/forget": {}, f"record/{record}/pin": {"pinned": "1"}, "settings/mode": {"mode": "paused"},
        f"record/{record}/change": {"content": "x", "seq": "1"}, "settings/consent": {"trends": "1"},
        "settings/remove": {"ids": record, "how": "forget"}, "settings/clear": {"word": "erase"},
        "merge": {"one": record, "other": record, "content": "x"}, "import": {}, "example/remove": {},
    }.items():  # fmt: skip
        assert "Your login is read-only" in visit.post(path, 403, **fields), path
    assert memory.history() == before and memory.mode == "on"
    visit.http.post("logout", data={"csrf_token": visit.mark})
    assert visit.http.cookies.get(web.SESSION_COOKIE) is None


def test_U6_the_example_says_what_it_is_on_every_page_and_goes_with_one_click(
    shared: tuple[Recollect, Login, str], person: tuple[Memory, Visit]
) -> None:
    app, who, url = shared
    memory, visit = person
    memory.remember("Likes tea", category="preference")
    app.user(example.USER).remember(example._SAID, key=example._KEY, category="key_fact")  # as the story ends
    assert "example memory" not in visit.get()
    visit.post("example/remove", 404)
    assert memory.count() == {"fact": 1} and app.user(example.USER).exists
    guest = visiting(url, who, example.USER)
    for path in PAGES:
        assert "This is an invented example memory for you to explore. Remove the example" in guest.seen(path), path
    assert "Everything was removed" in guest.post("example/remove")
    assert not app.user(example.USER).exists and "example memory" not in guest.get()


def test_U6_a_memory_is_downloaded_and_brought_in_elsewhere(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    one, other = f"u{next(_numbers)}", f"u{next(_numbers)}"
    a_life(app.user(one))
    first, second = visiting(url, who, one), visiting(url, who, other)
    answer = first.http.get("export")
    assert answer.headers["content-disposition"] == 'attachment; filename="memory.zip"'
    assert "MEMORY.md" in " ".join(zipfile.ZipFile(io.BytesIO(answer.content)).namelist())

    def send(**fields: str) -> httpx.Response:
        second.get("settings")
        return second.http.post(
            "import", data={"csrf_token": second.mark, **fields}, files={"file": ("memory.zip", answer.content)}
        )

    tried = send(dry_run="1")
    assert "Import preview" in tried.text and app.user(other).count() == {}
    assert "Imported" in send().text and app.user(other).count() == app.user(one).count()
    nothing = second.http.post("import", data={"csrf_token": second.mark}, files={"other": ("", b"")})
    assert nothing.status_code == 422
    wrong = second.http.post("import", data={"csrf_token": second.mark}, files={"file": ("x.zip", b"not a zip")})
    assert wrong.status_code == 422 and "Traceback" not in wrong.text


def test_R7_a_topic_is_shown_and_then_forgotten_or_erased_exactly_as_shown(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    page = visit.get("settings/topic?topic=trains")
    ids = re.search(r'name="ids" value="([^"]+)"', page)
    assert ids and len(ids[1].split()) == 2 and len(memory.search("trains")) == 2, "shown, and nothing done"
    visit.post("settings/remove", ids=ids[1], how="forget")
    assert not memory.search("trains")
    visit.post("undo", target=str(memory.history()[-1].run))
    assert len(memory.search("trains")) == 2
    memory.remember("Model trains fill the attic", category="key_fact")
    visit.post("settings/remove", 422, ids=ids[1], how="erase")
    receipt = visit.post("settings/remove", ids=ids[1], how="erase", sure="1")
    assert "2 records were removed" in text_of(receipt) and "journal" in receipt
    assert [hit.record.content for hit in memory.search("trains")] == ["Model trains fill the attic"]
    assert "flights" not in visit.get("timeline") and "an erased record" in visit.get("timeline")
    visit.post("settings/remove", 422, ids="", how="erase", sure="1")


def test_R7_a_topic_that_only_the_copy_of_a_joined_memory_mentions_is_erased(
    shared: tuple[Recollect, Login, str], person: tuple[Memory, Visit]
) -> None:
    app, (memory, visit) = shared[0], person
    own, other = ("web", memory.user_id), ("telegram", memory.user_id)
    app.identities.bind(own, memory.user_id)
    memory.remember("Likes tea")
    theirs = app.identities.memory(other)
    theirs.forget(theirs.remember("Takes zoloftium daily").record.id)  # type: ignore[attr-defined]
    app.identities.enter_code(other, app.identities.start_link(own).text)
    app.identities.confirm(other)
    app.identities.confirm(own)
    ids = re.search(r'name="ids" value="([^"]+)"', visit.get("settings/topic?topic=zoloftium"))
    assert ids
    visit.post("settings/remove", ids=ids[1], how="forget", topic="zoloftium")
    assert "joined" in visit.post("settings/remove", ids=ids[1], how="erase", sure="1", topic="zoloftium")
    assert "Nothing found" in visit.get("settings/topic?topic=zoloftium")
    assert [record.text for record in memory.read()] == ["Likes tea"]


def test_R7_one_record_and_everything_are_erased_with_a_receipt(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    a_life(memory)
    record = memory.get("role")
    assert "Erase this?" in visit.get(f"record/{record.id}/erase")
    visit.post("settings/remove", ids=record.id, how="erase", sure="1")
    visit.get(f"record/{record.id}", 404)
    visit.post("settings/clear", 422, word="yes")
    assert memory.count()
    assert "Erased" in visit.post("settings/clear", word="Clear")
    assert memory.count() == {} and memory.exists
    a_life(memory)
    assert "Erased" in visit.post("settings/clear", word="erase")
    assert not memory.exists
    assert "Nothing is remembered yet" in visit.get()


# live


def test_U6_what_an_agent_writes_reaches_an_open_page_and_nobody_else(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    one, other = f"u{next(_numbers)}", f"u{next(_numbers)}"
    app.user(one).remember("Likes tea", category="preference")
    visit = visiting(url, who, one)
    app.user(other).remember("Likes coffee", category="preference")
    with visit.http.stream("GET", "events?after=1") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == "retry: 3000"
        app.user(other).remember("Likes cake", category="preference")
        app.user(one).acting(agent="scribe").update(app.user(one).search("tea")[0].record.id, "Likes green tea")
        told = list(islice((line for line in islice(lines, 1000) if line and not line.startswith(":")), 3))
    assert told == ["id: 2", "event: changed", 'data: {"seq": 2, "what": "update fact"}']


def test_U6_a_change_between_page_and_stream_is_not_missed(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Likes tea", category="preference")
    page = visit.get()
    seq = re.search(r'data-seq="(\d+)"', page)
    memory.remember("Likes rye bread", category="preference")
    assert seq
    with visit.http.stream("GET", f"events?after={seq[1]}") as answer:
        assert "id: 2" in [line for line, _ in zip(answer.iter_lines(), range(5), strict=False)]


def test_U6_what_a_person_writes_with_their_own_editor_reaches_an_open_page(
    shared: tuple[Recollect, Login, str], person: tuple[Memory, Visit]
) -> None:
    memory, visit = person
    memory.remember(f"Is called {memory.user_id}", category="key_fact")
    file = next(path for path in shared[0].config.memory_dir.rglob("MEMORY.md") if path.read_text() == memory.show())
    with visit.http.stream("GET", "events?after=1") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 3000"
        file.write_text(file.read_text() + "- Plays the cello\n", encoding="utf-8")
        told = next((line for line in islice(lines, 1000) if line.startswith("data:")), "")
        assert told.endswith('"what": "remember fact"}')
    assert "Plays the cello" in visit.get()


def test_U6_a_page_too_many_is_not_told_and_strangers_never(shared: tuple[Recollect, Login, str]) -> None:
    app, _, url = shared
    assert httpx.get(f"{url}/events").status_code == 403
    live = Live(app)

    async def many() -> list[bool]:
        streams = [live.stream("crowd", 0, welcome) for _ in range(12)]
        room = []
        for stream in streams:
            room.append(live.has_room("crowd"))
            await anext(stream)
        room.append(live.has_room("crowd"))
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]
        return [*room, live.has_room("crowd")]

    assert asyncio.run(many()) == [True] * 12 + [False, True]


class Gated(Live):
    """Counts the looks at a memory, and lets none end before it may."""

    def __init__(self, app: Recollect, **how: float) -> None:
        super().__init__(app, **how)
        self.looks = 0
        self.open = asyncio.Event()

    async def look(self, user: str) -> Any:
        self.looks += 1
        await self.open.wait()
        return await super().look(user)


async def welcome() -> bool:
    return True


def test_U6_a_memory_is_looked_at_once_for_all_of_its_pages(shared: tuple[Recollect, Login, str]) -> None:
    app, name = shared[0], f"u{next(_numbers)}"
    app.user(name).remember("Likes tea", category="preference")

    async def watch() -> tuple[int, list[bytes], int]:
        live = Gated(app, seconds=3600)
        streams = [live.stream(name, 0, welcome) for _ in range(5)]
        for stream in streams:
            assert (await anext(stream)).startswith(b"retry: 3000\n\n:")
        heard = [asyncio.ensure_future(anext(stream)) for stream in streams]
        for _ in range(20):
            await asyncio.sleep(0)
        looks = live.looks
        live.open.set()
        told = await asyncio.gather(*heard)
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]
        for _ in range(20):
            await asyncio.sleep(0)
        return looks, told, len(asyncio.all_tasks())

    looks, told, left = asyncio.run(watch())
    assert looks == 1 and len(told) == 5 and all(one.startswith(b"id: 1\n") for one in told)
    assert left == 1, "nobody looks any more"


def test_U6_a_quiet_stream_beats_and_ends_when_its_visitor_is_not_welcome_any_more(
    shared: tuple[Recollect, Login, str],
) -> None:
    app, name = shared[0], f"u{next(_numbers)}"
    answers = [True, False]

    async def is_welcome() -> bool:
        return answers.pop(0)

    async def listen() -> list[bytes]:
        return [part async for part in Live(app, seconds=0.001, beat=0).stream(name, 0, is_welcome)]

    assert asyncio.run(listen())[1:] == [b": still here\n\n"] and answers == []


def test_U6_a_memory_that_cannot_be_read_ends_the_stream_and_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(tmp_path) as app:
        app.user("me").remember("Likes wombats", category="preference")
    for file in tmp_path.rglob("*.db"):
        file.write_bytes(b"wombat" * 4000)
    with recollect.open(tmp_path) as app:

        async def listen() -> list[bytes]:
            live = Live(app, seconds=0.001)
            heard = [part async for part in live.stream("me", 0, welcome)]
            assert live.has_room("me")
            return heard

        assert len(asyncio.run(listen())) == 1
    assert "wombat" not in caplog.text


def test_U6_a_memory_that_is_locked_does_not_keep_other_pages_waiting(
    shared: tuple[Recollect, Login, str],
) -> None:
    app, who, url = shared
    name = f"u{next(_numbers)}"
    memory = app.user(name)
    memory.remember("Likes tea", category="preference")
    visit, other = visiting(url, who, name), visiting(url, who, f"u{next(_numbers)}")
    visit.get("settings")
    with ThreadPoolExecutor(1) as pool:
        with memory.batch() as batch:
            batch.remember("Likes rye bread", category="preference")
            waits = pool.submit(visit.post, "settings/mode", mode="paused")
            for _ in range(3):
                other.get()
                other.get("login")
            assert not waits.done()
        assert "Memory is paused" in waits.result(PATIENCE)


def test_U6_a_server_that_stops_ends_the_streams_of_open_pages(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, ThreadPoolExecutor(1) as pool:
        listening = threading.Event()

        def listen(url: str) -> str:
            with httpx.stream("GET", f"{url}/events?after=0", timeout=PATIENCE) as answer:
                heard = ""
                for line in answer.iter_lines():
                    heard += line
                    listening.set()
                return heard

        with serving(app, Login(app.keys, open=True)) as url:
            ended = pool.submit(listen, url)
            assert listening.wait(PATIENCE)
        assert ended.result(PATIENCE).startswith("retry: 3000")


def test_U6_a_form_that_does_not_come_is_not_waited_for(
    person: tuple[Memory, Visit], monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = person[1]
    visit.get("settings")
    monkeypatch.setattr(web, "SECONDS", 0.05)
    url = visit.http.base_url
    cookies = "; ".join(f"{name}={value}" for name, value in visit.http.cookies.items())
    with socket.create_connection((url.host, url.port or 80), timeout=PATIENCE) as raw:
        head = f"POST /console/edit HTTP/1.1\r\nhost: {url.host}\r\ncookie: {cookies}\r\ncontent-length: 100\r\n"
        raw.sendall(f"{head}content-type: application/x-www-form-urlencoded\r\n\r\nmark=".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 408")


def test_U6_with_postgresql_any_number_of_servers_are_one_console(postgres_url: str) -> None:
    with recollect.open(postgres_url) as one, recollect.open(postgres_url) as other:
        name = f"w{next(_numbers)}"
        code = Login(other.keys).link(name)[0]
        with serving(one, Login(one.keys)) as url:
            visit = Visit(url)
            visit.get("login")
            visit.post("login", code=code)
            with pytest.raises(LoginRefusedError):
                Login(other.keys).enter(code)
            visit.mark = ""
            visit.post("remember", content="Likes tea", category="preference")
            with visit.http.stream("GET", "events?after=1") as answer:
                lines = answer.iter_lines()
                assert next(lines) == "retry: 3000"
                other.user(name).remember("Plays the cello", category="personal_context")
                assert "id: 2" in islice(lines, 1000)
            page = visit.get("edit")
            save(visit, "edit", other.user(name).show().replace("cello", "viola"), page)
            assert other.user(name).search("viola") and "Plays the viola" in visit.get()
            for path in PAGES:
                visit.get(path)


# who


def test_U6_a_link_lets_in_once_whoever_comes_first(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    code, _ = who.link("u-once")
    visits = [Visit(url) for _ in range(6)]
    for visit in visits:
        assert "Open my memory" in visit.get(f"login?code={quote(code)}"), "looking at a link does not use it up"
    elsewhere = Login(app.keys)  # another process knows nothing of this one but the database

    def enter(number: int) -> bool:
        if number % 2:
            try:
                return bool(elsewhere.enter(code))
            except LoginRefusedError:
                return False
        data = {"csrf_token": visits[number].mark, "code": code}
        return visits[number].http.post("login", data=data).status_code == 200

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(enter, range(6))) == 1


def test_U6_links_and_logins_end(shared: tuple[Recollect, Login, str]) -> None:
    app, _, _ = shared
    clock = FrozenClock(datetime(2026, 5, 1, tzinfo=timezone.utc))
    who = Login(app.keys, open=True, clock=clock)
    late, _ = who.link("u1")
    cookie, until = who.enter(who.link("u1")[0])
    assert until == int((clock() + SESSION_LIFETIME).timestamp())
    clock.tick(seconds=LINK_LIFETIME.total_seconds())
    with pytest.raises(LoginRefusedError):
        who.enter(late)
    seen = who.session(cookie)
    assert seen and seen.user == "u1" and not seen.operator
    clock.tick(seconds=SESSION_LIFETIME.total_seconds())
    assert who.session(cookie) is None


def test_U6_a_visit_ends_with_the_key_that_made_its_link_and_with_leaving(
    shared: tuple[Recollect, Login, str],
) -> None:
    app, who, url = shared
    key, text = app.keys.create(scope="admin")
    cookie, _ = who.enter(who.link("u1", key=key.id)[0])
    mine = Visit(url)
    mine.get("login")
    assert "Dashboard" in mine.post("login", code=text)
    copied = mine.http.cookies.get(web.SESSION_COOKIE)
    assert copied and who.session(copied) and who.session(cookie)
    mine.get("operator")
    mine.post("logout")
    assert who.session(copied) is None, "a copy of the cookie is worth nothing any more"
    assert Login(app.keys).session(copied) is None, "in no process"
    assert who.session(cookie)
    app.keys.revoke(key.id)
    assert who.session(cookie) is None
    with pytest.raises(LoginRefusedError):
        who.enter(text)
    weak = app.keys.create(scope="write")[1]
    with pytest.raises(LoginRefusedError):
        who.enter(weak)


@pytest.mark.parametrize("change", ["", "x", ".", "…", "rk_", lambda text: text[:-2], lambda text: "A" + text[1:]])
def test_U6_what_was_tampered_with_lets_nobody_in(
    shared: tuple[Recollect, Login, str], change: str | Callable[[str], str]
) -> None:
    who = shared[1]
    code, cookie = who.link("u1")[0], who.enter(who.link("u1")[0])[0]
    wrong = (lambda _: change) if isinstance(change, str) else change
    assert who.session(wrong(cookie)) is None and who.session(code) is None
    for text in (wrong(code), cookie):
        with pytest.raises(LoginRefusedError):
            who.enter(text)


def test_U6_strangers_are_sent_to_the_door(shared: tuple[Recollect, Login, str]) -> None:
    url = shared[2]
    with httpx.Client(base_url=url) as http:
        for path in (*PAGES, *OPERATING, "export", "record/x"):
            answer = http.get(f"/{path}")
            assert answer.status_code == 303 and answer.headers["location"] == "/console/login"
        assert http.post("/settings/clear", data={"word": "erase"}).status_code == 303
        for path in ("undo", "nonsense", "static/../console.py", "static/%2e%2e/console.py"):
            assert http.get(f"/{path}").status_code in (404, 405)


def test_U6_nobody_sees_another_persons_memory(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    one, other = f"u{next(_numbers)}", f"u{next(_numbers)}"
    for name in (one, other):
        a_life(app.user(name))
        app.user(name).remember(f"The word of {name} is wombat", category="key_fact")
    record = next(r for r in app.user(one).read(kind="fact") if "wombat" in r.content)
    visit, operator = visiting(url, who, other), visiting(url, who, None, operator=True)
    for path in (f"record/{record.id}", f"record/{record.id}/erase"):
        assert "wombat" not in visit.get(path, 404)
    for path in ("pin", "forget", "change"):
        visit.post(f"record/{record.id}/{path}", 404, pinned="1", content="x", seq="1")
    visit.post("settings/remove", 404, ids=record.id, how="forget")
    visit.post("settings/remove", 404, ids=record.id, how="erase", sure="1")
    for page in [visit.get(path) for path in (*PAGES, "search?q=wombat")]:
        assert one not in page.replace(other, "")
    assert app.user(one).get(record.id) == record
    for path in OPERATING:
        page = operator.get(path)
        assert "wombat" not in page and "Northwind" not in page
        assert visit.http.get(path).url.path == "/console/login", "an operator's page"
    assert operator.http.get("timeline").url.path == "/console/operator", "operators have no memory here"
    assert operator.http.get("events").status_code == 403


def test_U6_operators_see_their_own_tenant_only(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    app.user("@acme/ann").remember("Likes tea", category="preference")
    app.user("bob-of-default").remember("Likes tea", category="preference")
    ours, theirs = visiting(url, who, None, operator=True), visiting(url, who, None, operator=True, tenant="acme")
    assert "ann" in theirs.seen("operator/users") and "bob-of-default" not in theirs.get("operator/users")
    assert "bob-of-default" in ours.get("operator/users") and "@acme" not in ours.get("operator/users")
    assert visiting(url, who, "ann", tenant="acme").get().count("Likes tea") == 1
    for name, tenant in (("@acme/ann", "default"), ("", "default"), (None, "default")):
        with pytest.raises(InvalidInputError):
            who.link(name, tenant=tenant)


def test_U6_a_machine_of_ones_own_is_open_until_there_is_a_key(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, serving(app, Login(app.keys, open=True, user="me"), base="") as url:
        visit = Visit(url)
        visit.post("remember", content="Likes tea", category="preference")
        assert app.user("me").search("tea") and "Likes tea" in visit.get()
        assert "me" in visit.seen("operator/users")
        for headers in ({"host": "evil.example.com"}, {"x-forwarded-for": "1.2.3.4"}, {"forwarded": "for=1.2.3.4"}):
            assert "Likes tea" not in visit.http.get("", headers=headers).text, "not from there"
            assert visit.http.get("events", headers=headers).status_code == 403
        app.keys.create()
        assert visit.http.get("").url.path == "/login"
    with recollect.open(tmp_path / "closed") as app:
        assert Login(app.keys).session("") is None, "nowhere else"


def test_U6_a_store_without_keys_has_a_secret_for_the_process() -> None:
    who = Login(recollect.open(MemoryStore()).keys, open=True)
    code = who.link("u1")[0]
    cookie = who.enter(code)[0]
    with pytest.raises(LoginRefusedError):
        who.enter(code)
    seen = who.session(cookie)
    assert seen and seen.user == "u1"
    who.leave(seen)
    assert who.session(cookie) == who.session(""), "left, and so who sits at the machine"


# safety


def test_U6_a_form_counts_only_from_a_page_of_ours(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    one, other = f"u{next(_numbers)}", f"u{next(_numbers)}"
    visit, stranger = visiting(url, who, one), visiting(url, who, other)
    app.user(one).remember("Likes tea", category="preference")
    visit.get("settings")
    stranger.get("settings")
    name = app.user(one).read(kind="fact")[0].id
    paths = {
        "undo": {"target": "1"}, "settings/mode": {"mode": "paused"}, "settings/clear": {"word": "clear"},
        "settings/remove": {"ids": name, "how": "erase", "sure": "1"}, f"record/{name}/forget": {}, "edit": {"text": "x"},
        f"record/{name}/pin": {"pinned": "1"}, "remember": {"content": "x"}, "settings/consent": {"trends": "1"},
        "merge": {"one": name}, f"record/{name}/change": {"content": "x"}, "import": {},
    }  # fmt: skip
    before = app.user(one).history()
    for path, fields in paths.items():
        for mark in ("", "x", stranger.mark, "é"):
            assert visit.http.post(path, data=fields | {"csrf_token": mark}).status_code == 403, path
        headers = {"sec-fetch-site": "cross-site"}
        assert visit.http.post(path, data=fields | {"csrf_token": visit.mark}, headers=headers).status_code == 403
    assert app.user(one).history() == before and app.user(one).mode == "on"
    visit.http.post("logout", data={"csrf_token": "x"})
    assert visit.http.cookies.get(web.SESSION_COOKIE) is None
    assert Visit(url).http.post("login", data={"code": who.link(one)[0]}).status_code == 403


def test_U6_every_answer_says_what_a_browser_may_do_with_it(
    shared: tuple[Recollect, Login, str], person: tuple[Memory, Visit]
) -> None:
    visit = person[1]
    for path in ("", "login", "nope", "static/console.css", "static/console.js", "export", "record/none"):
        headers = visit.http.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] in ("no-store", "no-cache"), path
    visit.http.cookies.clear()
    code = shared[1].link("u1")[0]
    for host, secure in (("127.0.0.1", False), ("localhost", False), ("memory.example.com", True)):
        with httpx.Client(base_url=shared[2], headers={"host": host}) as http:
            answer = http.get("/login")
            for cookie in answer.headers.get_list("set-cookie"):
                assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/console" in cookie
                assert ("Secure" in cookie) is secure
            assert ("not encrypted" in answer.text) is secure
    assert shared[1].enter(code)


def test_U6_looking_creates_nothing_and_neither_does_what_fails(shared: tuple[Recollect, Login, str]) -> None:
    app, who, url = shared
    name = f"u{next(_numbers)}"
    visit = visiting(url, who, name)
    for path in PAGES:
        visit.get(path)
    for path, fields in {
        "undo": {"target": "1"}, "merge": {"one": "a", "other": "b", "content": "x"}, "record/x/pin": {"pinned": "1"},
        "record/x/forget": {}, "record/x/change": {"content": "x", "seq": "1", "step": "save"},
        "settings/remove": {"ids": "x", "how": "forget"}, "settings/remove?": {"ids": "x", "how": "erase", "sure": "1"},
    }.items():  # fmt: skip
        visit.post(path, 404, **fields)
    assert name not in list(app.users()) and not app.user(name).exists


def test_U6_what_the_person_should_know_is_told(tmp_path: Path) -> None:
    with (
        recollect.open(tmp_path, max_words=50) as app,
        serving(app, Login(app.keys, open=True)) as url,
    ):
        visit = Visit(url)
        page = visit.get("edit")
        text = "# User Memory\n\n## Key Facts\n" + "".join(f"- Likes the number {n} very much\n" for n in range(30))
        assert "longer than 50 words" in save(visit, "edit", text, page)


def test_U6_the_console_is_served_beside_the_api(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, serving_all(app) as url:
        visit = Visit(f"{url}/console")
        assert httpx.get(url, follow_redirects=True).url.path == "/console/"
        visit.post("remember", content="Likes tea", category="preference")
        assert httpx.post(f"{url}/v1/users/me/search", json={"query": "tea"}).json()["result"]
        assert "Likes tea" in visit.get() and visit.http.get("static/console.css").status_code == 200
        assert visit.http.get("", headers={"host": "evil.example.com"}).status_code == 421
        code = Login(app.keys).link("me", key=app.keys.create(scope="write")[0].id)[0]
        visit.get(f"login?code={quote(code)}")
        assert "Likes tea" in visit.post("login", code=code)


def test_U6_a_form_of_another_visit_does_not_count_even_with_its_browser(
    shared: tuple[Recollect, Login, str],
) -> None:
    app, who, url = shared
    one, other = f"u{next(_numbers)}", f"u{next(_numbers)}"
    victim, attacker = visiting(url, who, one), visiting(url, who, other)
    attacker.get("settings")
    for cookie in list(victim.http.cookies.jar):
        if cookie.name == web.BROWSER_COOKIE:
            cookie.value = attacker.http.cookies[web.BROWSER_COOKIE]  # as from a neighbouring domain
    assert victim.http.post("settings/mode", data={"csrf_token": attacker.mark, "mode": "paused"}).status_code == 403
    assert app.user(one).mode == "on"


def test_U6_a_damaged_memory_tells_nothing_of_the_machine(
    shared: tuple[Recollect, Login, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(tmp_path) as app:
        app.user("me").remember("Likes wombats", category="preference")
    for file in tmp_path.rglob("*.db"):
        file.write_bytes(b"wombat" * 4000)
    who = Login(recollect.open(MemoryStore()).keys, open=True)  # theirs are damaged as well
    with recollect.open(tmp_path) as app, serving(app, who) as url:
        for path in ("", "timeline", "settings"):
            page = Visit(url).get(path, 500)
            assert str(tmp_path) not in page and "wombat" not in page and "<h1>" in page
    assert "wombat" not in caplog.text and str(tmp_path) not in caplog.text


def test_U6_an_export_leaves_nothing_behind_even_if_nobody_waits_for_it(
    person: tuple[Memory, Visit], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, visit = person
    a_life(memory)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with visit.http.stream("GET", "export") as answer:
        assert answer.status_code == 200 and list(tmp_path.iterdir()) == [], "gone before the first byte is read"


def test_U6_hostile_memories_are_shown_as_text_on_every_page(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    quoted = "".join(f"- {text}\n" for text in HOSTILE)
    memory.edit(f"# User Memory\n\n## Key Facts\n{quoted}\n## <script>alert(4)</script>\n- Odd: <b>bold</b>\n")
    for text in HOSTILE:
        memory.note(text, title=text)
        memory.observe(text, "insight", tags=["<i>tag</i>"])
        memory.episode(text, text, participants=[text])
        memory.jot(text)
        memory.remember(text, key="friend", type="relationship")
        memory.say(text, session="<s>")
        memory.set_scratch("<i>key</i>", text)
        memory.acting(agent=text, run=f"run/{text}").jot(f"Says {text}")
        memory.say(text, session=text)
    pages = [*PAGES, "search?q=%3Cscript%3Ealert&conversation=1", "settings/topic?topic=%3Cb%3E", "search?q=look"]
    pages += [f"record/{record.id}" for record in memory.read()]
    pages += [f"conversation?id={quote(session.id, safe='')}" for session in memory.sessions()]
    runs = {entry.run for entry in memory.history() if entry.run}
    assert len(runs) > 3
    pages += [f"runs/{quote(run)}" for run in runs]
    for path in pages:
        page = visit.get(path)
        checked = Checked(page)
        assert checked.wrong == [], path
        assert COMPUTED not in page, path
    assert Checked(visit.get(f"login?code={quote(HOSTILE[1])}")).wrong == []
    assert HOSTILE[1] in html.unescape(visit.get()), "and yet it can be read"


class Checked(HTMLParser):
    """What must not be in a page of ours, and what must."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.heads: list[str] = []
        self.ids: list[str] = []
        self.named: set[str] = set()
        self.fields: list[dict[str, str | None]] = []
        self._labels = self._drawn = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("style", "iframe", "object", "embed", "base", "img", "b", "i", "s"):
            self.wrong.append(tag)
        if tag == "script" and not re.fullmatch(r"/console/static/\w+\.js", values.get("src") or ""):
            self.wrong.append("script")
        for name, value in values.items():
            if name.startswith("on") or name == "style":
                self.wrong.append(f"{tag} {name}")
            if name in ("href", "src", "action", "formaction", "xlink:href") and not re.match(r"[/#]", value or ""):
                self.wrong.append(f"{tag} {name}={value}")
        self._drawn += tag == "svg"
        if tag in ("h1", "main", "title") and not self._drawn:
            self.heads.append(tag)
        if "id" in values:
            self.ids.append(values["id"] or "")
        if tag == "label":
            self._labels += 1
            self.named.add(values.get("for") or "")
        if tag in ("input", "textarea", "select") and values.get("type") != "hidden" and not self._labels:
            self.fields.append(values)

    def handle_endtag(self, tag: str) -> None:
        self._labels -= tag == "label"
        self._drawn -= tag == "svg"


def test_U6_every_page_has_its_landmarks_one_heading_and_a_label_for_each_field(
    shared: tuple[Recollect, Login, str], person: tuple[Memory, Visit], operator: Visit
) -> None:
    memory, visit = person
    a_life(memory)
    memory.edit(memory.show() + "- Likes tea\n")
    pages = [(visit, path) for path in (*PAGES, f"record/{memory.get('role').id}", "login")]
    for one, path in [*pages, *((operator, path) for path in OPERATING)]:
        page = one.get(path)
        checked = Checked(page)
        assert checked.wrong == [], path
        assert sorted(checked.heads) == ["h1", "main", "title"], path
        assert len(checked.ids) == len(set(checked.ids)), path
        assert [field for field in checked.fields if field.get("id") not in checked.named] == [], path
        assert '<html lang="en">' in page and 'name="viewport"' in page
        for tag in re.findall(r"<nav[^>]*>", page):
            assert "aria-label" in tag


def test_U6_words_can_be_read_in_both_themes() -> None:
    style = (STATIC / "console.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style)
    themes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    themes = [theme for theme in themes if theme]
    assert len(themes) == 3 and themes[1] == themes[2], "light, dark by the system, dark by choice"
    for theme in themes:
        for text, ground in (
            ("ink", "paper"), ("soft", "paper"), ("soft", "raised"), ("accent", "paper"), ("accent", "tint"), ("ink", "mark"),
            ("on-accent", "accent"), ("on-accent", "danger"), ("danger", "paper"), ("gone-ink", "gone"), ("new-ink", "new"),
        ):  # fmt: skip
            assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((light(one), light(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_U6_too_much_and_nonsense_are_turned_away(person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Likes tea", category="preference")
    visit.get("settings")
    data = {"csrf_token": visit.mark, "text": "x" * (web.MOST_FORM + 1), "expect": ""}
    assert visit.http.post("edit", data=data).status_code == 413
    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert visit.http.post("edit", content=b"--x\r\nnonsense", headers=headers).status_code in (400, 403)
    assert visit.http.post("edit", content=b"\xff\xfe%zz", headers={"content-type": "text/plain"}).status_code == 403
    visit.post("edit", 422)
    for path in (
        "record/" + "x" * 300,
        "record/%00",
        "record/%ff",
        "daily/%00",
        "search?q=" + "x" * 5000,
        "search?q=%00",
        "settings/topic?topic=%00",
        "settings/topic?topic=%20",
        "search?q=%ed%a0%80",
    ):
        assert visit.http.get(path).status_code in (200, 404, 422), path
    for query in (
        "timeline?limit=99999999999",
        "timeline?limit=-1",
        "timeline?before=²",
        "timeline?before=99999999999",
        "timeline?before=999999999",
        "runs?before=0",
        "runs?before=-3",
        "notes?from=0",
        "notes?from=x",
    ):
        visit.get(query)
    assert "Likes tea" in visit.get()


# for operators


def call(tool: str, outcome: str, latency: float, status: str = "ok", session: str | None = "s1") -> ToolCall:
    at = datetime(2026, 5, 2, 12, tzinfo=timezone.utc)
    name = f"call-{next(_numbers)}"
    return ToolCall(
        id=name, at=at, tool=tool, suite="facts", status=status, outcome=outcome, latency_ms=latency, session=session
    )


def test_U6_an_operator_sees_use_latency_behaviour_and_work(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app:
        memory = app.user("u1")
        memory.episode("Birthday", "Looked for a cabin")
        tools = app.tools("u1", "facts", session="c1", agent="assistant", wait=True)
        fact = {"fact_key": "editor", "fact_value": "Neovim", "fact_type": "preference", "confidence": 0.9}
        for _ in range(2):
            tools.call("remember_fact", fact)
        tools.call("recall_facts", {})
        tools.call("remember_fact", {})
        with serving(app, Login(app.keys, open=True)) as url:
            visit = Visit(url)
            seen = visit.seen("operator?days=1")
            users = visit.seen("operator/users")
    assert "Calls 4" in seen and "Success 75.0 %" in seen and "Users 1" in seen
    assert "remember_fact 3" in seen and "recall_facts 1" in seen and "p50" in seen and "p99" in seen
    assert "Facts per conversation 1.0" in seen and "Episodes per day 1.0" in seen and "Duplicates 50.0 %" in seen
    assert "Jobs waiting 0" in seen and "Updates to forgets" in seen and "2 calls" not in seen
    assert "u1 1 1 0 2 on" in users


def test_U6_an_operator_retries_and_removes_what_was_given_up(tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, serving(app, Login(app.keys, open=True)) as url:
        with app.queue() as queue:
            for user in ("u1", "u2", "@acme/u3"):
                queue.put(Task(name="extract", user_id=user, payload={"text": "wombat"}, max_attempts=1))
            queue.settle([FailedAttempt(lease, "the model did not answer") for lease in queue.take("w", 3).leases])
            theirs = next(job.id for job in queue.dead() if job.user_id == "@acme/u3")
        visit = Visit(url)
        page = visit.get("operator/queue")
        assert "extract for u1" in page and "the model did not answer" in page
        assert "wombat" not in page and "u3" not in page
        names = re.findall(r'action="/console/operator/queue/([^"]+)"', page)
        assert len(names) == 2
        visit.post(f"operator/queue/{names[0]}", do="retry")
        visit.post(f"operator/queue/{names[1]}", do="drop")
        for name in (*names, theirs):
            visit.post(f"operator/queue/{name}", 404, do="retry")
        with app.queue() as queue:
            assert queue.depth()["ready"] == 1 and [job.id for job in queue.dead()] == [theirs]


# drawing and comparing


def test_U6_charts_escape_what_they_show() -> None:
    for made in (bar_chart([("<script>", 3)], '"<b>'), column_chart([("<script>", 3), ("b", 0)], '"<b>')):
        assert "<script>" not in made and "<b>" not in made and "&lt;script&gt;" in made
    assert 'height="140' in column_chart([("a", 2), ("b", 1)], "t") and 'height="70' in column_chart(
        [("a", 2), ("b", 1)], "t"
    )


def test_U6_a_comparison_gives_both_texts_back() -> None:
    for before, after in (("a b c", "a x c"), ("", "x"), ("x", ""), ("same", "same"), ("ä-1 “q”", "ä-2 “q”")):
        old, new = words_changed(before, after)
        assert "".join(part.text for part in old) == before and "".join(part.text for part in new) == after
    text = "\n".join(f"line {number}" for number in range(50))
    rows = lines_changed(text, text.replace("line 25", "line zwölf"))
    assert [row.kind for row in rows] == ["gap", "same", "same", "gone", "new", "same", "same"]
    assert lines_changed(text, text) == []


# in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def window(chromium: Any, person: tuple[Memory, Visit]) -> Iterator[Any]:
    """A window of somebody who is in, as narrow as a telephone; nothing may complain in it."""
    memory, visit = person
    a_life(memory)
    context = chromium.new_context(viewport={"width": 360, "height": 740}, base_url=str(visit.http.base_url))
    context.add_cookies(
        [{"name": web.SESSION_COOKIE, "value": visit.http.cookies[web.SESSION_COOKIE], "url": str(visit.http.base_url)}]
    )
    complaints: list[str] = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    yield opened
    context.close()
    assert complaints == []


def test_U6_in_a_browser_a_line_is_edited_where_it_stands(window: Any, person: tuple[Memory, Visit]) -> None:
    memory = person[0]
    window.goto("")
    window.click("li:has-text('Staff engineer') button.edit")
    window.wait_for_selector(".editor textarea")
    window.keyboard.type(" <b>GmbH</b>")
    window.wait_for_selector(".editor ins:has-text('GmbH')")
    assert memory.get("role").content == "Staff engineer at Northwind", "shown, and nothing done"
    memory.acting(agent="scribe").remember("Plays the cello", category="personal_context")
    window.wait_for_selector("#live.shown")
    assert window.input_value(".editor textarea").endswith("<b>GmbH</b>"), "what is being written stays"
    window.keyboard.press("Escape")
    window.wait_for_selector("text=Plays the cello")
    assert window.locator(".editor").count() == 0
    window.click("li:has-text('Staff engineer') button.edit")
    window.wait_for_selector(".editor textarea")
    window.keyboard.type(" GmbH")
    window.keyboard.press("Enter")
    window.wait_for_selector("text=Changed.")
    assert memory.get("role").content == "Staff engineer at Northwind GmbH"
    window.click(".told button:has-text('Undo')")
    window.wait_for_selector("text=Undone.")
    assert memory.get("role").content == "Staff engineer at Northwind"


def test_U6_in_a_browser_an_edit_in_place_never_overwrites_another(window: Any, person: tuple[Memory, Visit]) -> None:
    memory = person[0]
    window.goto("")
    window.click("li:has-text('Staff engineer') button.edit")
    window.wait_for_selector(".editor textarea")
    memory.update("role", "Retired")
    window.keyboard.type(" GmbH")
    window.wait_for_selector(".editor [role=alert]:has-text('changed in the meantime')")
    assert "Retired" in window.inner_text(".editor .diff .gone") and memory.get("role").content == "Retired"


@pytest.mark.slow
def test_U6_in_a_browser_times_are_the_viewers_own(chromium: Any, person: tuple[Memory, Visit]) -> None:
    memory, visit = person
    memory.remember("Likes tea", category="preference")
    at = memory.history()[-1].at.astimezone(timezone(timedelta(hours=14)))
    where = {"base_url": str(visit.http.base_url), "timezone_id": "Pacific/Kiritimati"}
    context = chromium.new_context(**where)
    context.add_cookies(
        [{"name": web.SESSION_COOKIE, "value": visit.http.cookies[web.SESSION_COOKIE], "url": str(visit.http.base_url)}]
    )
    page = context.new_page()
    page.goto("timeline")
    page.wait_for_selector("#zone:has-text('Pacific/Kiritimati')")
    assert page.inner_text(".event .when") == f"{at:%H:%M}" and page.inner_text(".date") == f"{at:%A, %-d %B %Y}"
    context.close()


@pytest.mark.slow
def test_U6_in_a_browser_lines_are_walked_by_keys_and_the_keys_are_told(window: Any) -> None:
    window.goto("")
    window.keyboard.press("j")
    first = window.evaluate("document.activeElement.textContent")
    window.keyboard.press("j")
    assert window.evaluate("document.activeElement.textContent") != first
    window.keyboard.press("k")
    assert window.evaluate("document.activeElement.textContent") == first
    window.keyboard.press("e")
    window.wait_for_selector(".editor textarea")
    window.keyboard.press("Escape")
    assert window.evaluate("document.activeElement.textContent") == first, "one is where one was"
    window.keyboard.press("?")
    window.wait_for_selector("#keys[open]")
    window.uncheck("#keys-on")
    window.click("#keys button")
    window.keyboard.press("t")
    assert not window.url.endswith("timeline"), "switched off"
