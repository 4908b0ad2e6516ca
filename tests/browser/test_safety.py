"""What nobody may do in a browser: run what a memory contains, see what is another's, come back after leaving."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from recollect import Memory
from recollect.surfaces.web.console import BROWSER_COOKIE, SESSION_COOKIE
from tests.browser.windows import House, Window, a_life, records_of
from tests.volume import sample

HOSTILE = (  # written so that no policy takes it for program code
    '"><ScRiPt >alert(1)</script >',
    '"><img src=x onerror=alert(2)>',
    '"><img src=https://elsewhere.example/pixel.png>',
    '"><svg onload=alert(3)><style>*{display:none}</style>',
    '"></textarea></title></script ><ScRiPt >alert(4)</script >',
    "[look](javascript:alert(5)) <a href='javascript:alert(6)'>here</a>",
    "{{ 90001 * 90007 }} {% raw %} ${90001*90007} #{90001*90007} <%= 90001*90007 %>",
    "\"><iframe src='javascript:alert(7)'></iframe><base href='https://elsewhere.example/'>",
    "\"><form action='https://elsewhere.example/'><input name=mark autofocus onfocus=alert(8)>",
    "\"><meta http-equiv=refresh content='0;url=https://elsewhere.example/'>",
    "' onmouseover='alert(9)' x='\" autofocus onfocus=\"alert(10)",
    "\u202etxt.exe\u2066 \u200b\ufeff\u0300 &lt;b&gt; &#x3c;script&#x3e;",
)


def test_U6_hostile_memories_are_text_on_every_page_and_do_nothing(house: House, memory: Memory) -> None:
    lines = "".join(f"- {text}\n" for text in (*HOSTILE, "<script>alert(0)</script>"))
    memory.edit(f"# User Memory\n\n## Key Facts\n{lines}\n## <script>alert(11)</script>\n- Odd: <b>bold</b>\n")
    with memory.batch() as many:
        for number, text in enumerate(HOSTILE):
            outcomes = (
                many.note(text, title=text, tags=["<i>tag</i>"]),
                many.observe(text, "insight"),
                many.episode(text, text, participants=[text]),
                many.jot(text),
                many.remember(f"{text} {number}", key=f"friend {number}", type="relationship"),
                many.say(text, session="<s onclick=alert(12)>"),
                many.set_scratch(text[:40], text),
            )
            assert all(outcome.done for outcome in outcomes), outcomes
    memory.remember("Prefers trains <b>over</b> flying", category="preference")
    memory.remember("Prefers trains <b>to</b> flying", category="preference")
    window = house.window(memory.user_id)
    kinds = sorted({record.kind for record in memory.read()})
    searches = ["search?q=%3Cscript%3Ealert&conversation=1", "search?q=%22%3E%3Csvg%20onload%3Dalert(13)%3E"]
    topics = ["settings/topic?topic=%3Cscript%3E", "login?code=%22%3E%3Cscript%3Ealert(14)%3C/script%3E"]
    for path in sample(4, [*window.places(), *records_of(memory, *kinds), *searches, *topics]):
        window.open(path)
        assert window.page.evaluate(FOREIGN) == [], path
        assert str(90001 * 90007) not in window.main.inner_text(), f"{path} worked something out"
    window.open()
    for text in (*HOSTILE[:-1], "<script>alert(0)</script>"):
        window.sees(text)
    window.open("edit")
    assert all(text in window.main.get_by_role("textbox").input_value() for text in HOSTILE)


FOREIGN = """() => [...document.querySelectorAll("*")].filter((one) =>
    one.matches("main :is(script, style, iframe, base, img, object, embed, b, i), meta[http-equiv]")
    || [...one.attributes].some(({ name, value }) => name.startsWith("on") || /^\\s*(javascript|data):/i.test(value))
    || (one.tagName === "FORM" && new URL(one.action).origin !== location.origin)
).map((one) => one.outerHTML.slice(0, 200))"""
"""What is in a page and not of our templates."""


@pytest.mark.slow
def test_U6_hostile_lines_stay_text_when_they_come_by_themselves_and_when_they_are_edited(
    house: House, memory: Memory
) -> None:
    memory.note("Passport, adapter, shoes", title="Packing list")
    window = house.window(memory.user_id)
    window.open("notes")
    window.mark_time()
    for hostile in HOSTILE[:4]:
        memory.note(f"{hostile} is what it says", title=hostile)
        window.sees(f"{hostile} is what it says")
    assert window.page.evaluate(FOREIGN) == [] and window.is_same_page
    window.open()
    memory.edit(f"{memory.show()}- {HOSTILE[3]}\n")
    window.sees(HOSTILE[3])
    window.press(f"Edit {HOSTILE[3]}")
    text = window.main.get_by_role("textbox", name="Text")
    text.fill(HOSTILE[4])
    expect(window.main.locator("ins", has_text="textarea").first).to_be_visible()
    assert window.page.evaluate(FOREIGN) == []
    text.press("Escape")
    window.open("search")
    window.page.keyboard.type(HOSTILE[1])
    window.sees(f"{HOSTILE[1]} is what it says")
    assert window.page.evaluate(FOREIGN) == []


@pytest.mark.everyday(1)
@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<img src=static/mark.svg onload=alert(1)>",
        "<img src=https://elsewhere.example/x.png>",
        "<iframe src=https://elsewhere.example/></iframe>",
    ],
)
def test_U6_even_markup_that_got_into_a_page_would_do_nothing(house: House, memory: Memory, inside: str) -> None:
    window = house.window(memory.user_id)
    window.open()
    with window.page.expect_console_message(lambda said: "Content Security Policy" in said.text):
        window.page.evaluate(
            "inside => document.querySelector('main').append(document.createRange().createContextualFragment(inside))",
            inside,
        )
    assert window.complaints and not any(complaint.startswith("dialog") for complaint in window.complaints)
    window.forgive()


@pytest.mark.slow
def test_U6_two_people_in_two_browsers_see_only_their_own(house: House, memory: Memory) -> None:
    mine, yours = memory, house.app.user(f"{memory.user_id}-b")
    for one, word in ((mine, "wombat"), (yours, "quokka")):
        a_life(one)
        one.remember(f"The word is {word}", category="key_fact")
    left, right = house.window(mine.user_id), house.window(yours.user_id)
    left.open()
    right.open()
    left.sees("The word is wombat")
    right.sees("The word is quokka")
    right.mark_time()
    mine.remember("Plays the cello", category="personal_context")
    left.sees("Plays the cello")
    yours.remember("Paints in oil", category="personal_context")
    right.sees("Paints in oil")
    assert right.is_same_page
    right.misses("Plays the cello")
    for path in sample(4, ["search?q=wombat", "edit", *right.places()]):
        right.open(path)
        right.misses("wombat")
        right.misses("cello")
    for record in (mine.get("role"), *mine.read(kind="note")):
        for path in (f"record/{record.id}", f"record/{record.id}/erase"):
            right.open(path, 404)
            assert record.content not in right.page.content()
    for path in ("operator", "operator/users", "operator/queue"):
        right.open(path)
        expect(right.page).to_have_url(f"{right.base}/login")


@pytest.mark.slow
def test_U6_a_link_is_good_for_one_visit_and_its_cookie_for_the_browser_only(house: House, memory: Memory) -> None:
    a_life(memory)
    link = house.link(memory.user_id)
    mine, other = house.window(), house.window()
    for window in (mine, other):
        window.open(link)
        window.misses("Northwind")
    mine.press("Open my memory")
    mine.sees("Principal engineer at Northwind")
    assert "code=" not in mine.page.url
    other.press("Open my memory")
    expect(other.main.get_by_role("alert")).to_contain_text("was already used")
    other.open()
    expect(other.page).to_have_url(f"{other.base}/login")
    cookies = {cookie["name"]: cookie for cookie in mine.context.cookies()}
    assert set(cookies) == {SESSION_COOKIE, BROWSER_COOKIE}
    for cookie in cookies.values():
        assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["path"] == "/console"
        assert cookie["expires"] == -1, "it ends with the browser"
    assert mine.page.evaluate("document.cookie") == ""


@pytest.mark.slow
def test_U6_after_leaving_the_way_back_shows_nothing(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open()
    window.open("timeline")
    window.sees("Drinks rooibos")
    window.page.get_by_role("navigation", name="Pages", exact=True).get_by_role("button", name="Log out").click()
    expect(window.page).to_have_url(f"{window.base}/login")
    for _ in range(2):
        window.page.go_back(wait_until="commit")
        expect(window.page).to_have_url(f"{window.base}/login")
        expect(window.main.get_by_role("button", name="Log in")).to_be_visible()
        assert "Northwind" not in window.page.content() and "rooibos" not in window.page.content()


@pytest.mark.slow
def test_U6_a_page_that_is_open_elsewhere_after_leaving_tells_nothing_more(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open()
    second = Window(window.context, window.base)
    second.open("settings")
    second.page.get_by_role("navigation", name="Pages", exact=True).get_by_role("button", name="Log out").click()
    expect(second.page).to_have_url(f"{window.base}/login")
    window.press("Edit Drinks rooibos")
    expect(window.page).to_have_url(f"{window.base}/login")


@pytest.mark.slow
def test_U6_another_site_can_neither_frame_the_console_nor_send_its_forms(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open()
    elsewhere = Window(window.context, house.base)
    elsewhere.page.set_content(
        f'<iframe name="frame" src="{house.base}/"></iframe>'
        f'<form method="post" action="{house.base}/settings/clear"><input name="word" value="erase"><button>Win</button></form>'
    )
    expect(elsewhere.page.frame_locator("iframe").get_by_text("Northwind")).to_have_count(0)
    elsewhere.page.get_by_role("button", name="Win").click()
    expect(elsewhere.page.get_by_text("requests from pages of other sites are not allowed")).to_be_visible()
    assert memory.count()["fact"] == 6
    elsewhere.forgive()


def test_U6_the_console_asks_nobody_but_its_own_server(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    for path in ["", "timeline", *sample(3, [*window.places(), *records_of(memory), "login", "no-such-page"])]:
        window.page.goto(f"{window.base}/{path}")
    operator = house.window(operator=True)
    for path in ["operator/users", *sample(3, operator.places())]:
        operator.open(path)
    asked = {address.removeprefix(house.base).partition("?")[0] for address in [*window.asked, *operator.asked]}
    assert {"/static/console.css", "/static/console.js", "/", "/timeline", "/events", "/operator/users"} <= asked
    assert all(address.startswith(f"{house.base}/") for address in [*window.asked, *operator.asked])
