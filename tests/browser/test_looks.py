"""How the console looks: on a telephone, in both themes, to those who do not see it, and to an operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import expect

from recollect import Memory
from recollect.work.contract import FailedAttempt, Task
from tests.browser.windows import House, Window, a_life, records_of
from tests.volume import IS_LONG, sample

PHONE, SMALLEST, DESK = 390, 320, 1280


def test_U6_no_page_is_wider_than_a_telephone(house: House, memory: Memory) -> None:
    a_life(memory)
    word = "Donaudampfschifffahrtsgesellschaft" * 9
    memory.remember(f"https://example.com/{'a' * 300}", category="key_fact")
    memory.remember(word, key="k" * 60, type="relationship")
    memory.note(word, title="t" * 200, tags=["g" * 60])
    memory.episode("e" * 150, word, participants=["p" * 90, *(f"Friend {number}" for number in range(12))])
    memory.observe(word, "insight", tags=["o" * 60])
    memory.jot(word)
    memory.set_scratch("s" * 60, word)
    memory.say(word, session="c" * 80)
    memory.update("role", f"{word} {word}")
    window = house.window(memory.user_id, wide=PHONE)
    login = ["login", "login?code=" + "x" * 300]
    for path in sample(3, [*window.places(), *records_of(memory), f"search?q={word}", *login]):
        window.open(path)
        for wide in (PHONE, SMALLEST):
            window.page.set_viewport_size({"width": wide, "height": 740})
            assert window.overflow() == [], (path, wide)
    operator = house.window(operator=True, wide=PHONE)
    tools = house.app.tools(f"{'u' * 60}", "facts", session="c1", agent="scribe", wait=True)
    tools.call("recall_facts", {})
    for path in sample(3, operator.places()):
        operator.open(path)
        assert operator.overflow() == [], path


@pytest.mark.slow
def test_U6_on_a_telephone_the_menu_leads_everywhere_and_a_fact_can_be_changed(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id, wide=PHONE)
    window.open()
    expect(window.page.get_by_role("navigation", name="Pages", exact=True)).to_have_count(0)
    window.page.get_by_text("Menu", exact=True).click()
    window.page.get_by_role("navigation", name="All pages").get_by_role("link", name="Timeline").click()
    expect(window.main.get_by_role("heading", name="Timeline")).to_be_visible()
    window.open()
    window.press("Edit Drinks rooibos")
    window.main.get_by_role("textbox", name="Text").fill("Drinks lapsang")
    window.save()
    window.sees("Changed.")
    assert "Drinks lapsang" in house.file(memory) and window.overflow() == []


# for those who do not see it


@pytest.fixture(scope="module")
def axe() -> str:
    return f"{AXE_SCRIPT}\n;0"


def findings(window: Window, axe: str) -> Iterator[str]:
    """What is serious about the page as it is, with everything unfolded."""
    window.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    if not window.page.evaluate("'axe' in window"):
        window.page.evaluate(axe)
    found: list[dict[str, Any]] = window.page.evaluate(
        "async () => (await axe.run({ resultTypes: ['violations'] })).violations"
    )
    for one in found:
        if one["impact"] in ("serious", "critical"):
            yield from (f"{one['id']}: {node['html'][:160]} {node['failureSummary']}" for node in one["nodes"])


def findings_on(window: Window, axe: str, paths: Sequence[str]) -> list[str]:
    """What is serious about pages, by day at a desk or in the dark on a telephone: in turn every day, and both in the
    long run."""
    looks: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", DESK), ("dark", PHONE))
    found = []
    for number, path in enumerate(paths):
        for scheme, wide in looks if IS_LONG else looks[number % 2 :][:1]:
            window.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            window.page.set_viewport_size({"width": wide, "height": 900})
            window.open(path)
            found += [f"{path}, {scheme}: {finding}" for finding in findings(window, axe)]
    return found


def test_U6_axe_finds_nothing_serious_on_any_page(house: House, memory: Memory, axe: str) -> None:
    a_life(memory)
    memory.undo(memory.history()[-1].seq)
    window = house.window(memory.user_id)
    assert findings_on(window, axe, sample(4, [*window.places(), *records_of(memory), "login", "login?code=x"])) == []


@pytest.mark.slow
def test_U6_axe_finds_nothing_serious_in_what_appears_later(house: House, memory: Memory, axe: str) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.page.emulate_media(reduced_motion="reduce")
    window.open()
    window.press("Edit Drinks rooibos")
    window.main.get_by_role("textbox", name="Text").fill("Drinks lapsang")
    expect(window.main.locator("ins")).to_be_visible()
    wrong = [*findings(window, axe)]
    window.save()
    window.sees("Changed.")
    wrong += findings(window, axe)
    window.open("settings")
    window.press("Pause")
    expect(window.main.get_by_role("heading", name="Memory is paused")).to_be_visible()
    wrong += findings(window, axe)
    for path in ("record/none", "no-such-page"):
        window.open(path, 404)
        wrong += findings(window, axe)
    window.open("edit")
    window.main.get_by_role("textbox").fill("# User Memory\n\n## Key Facts\n- Drinks lapsang\n- Plays the cello\n")
    window.sees("added: - Plays the cello")
    assert [*wrong, *findings(window, axe)] == []


@pytest.mark.slow
def test_U6_axe_finds_nothing_serious_on_an_operators_pages(house: House, memory: Memory, axe: str) -> None:
    calls(house, memory)
    with house.app.queue() as queue:
        queue.put(Task(name="extract", user_id=memory.user_id, payload={}, max_attempts=1))
        queue.settle([FailedAttempt(lease, "the model did not answer") for lease in queue.take("w", 1).leases])
    window = house.window(operator=True)
    assert findings_on(window, axe, window.places()) == []


@pytest.mark.slow
def test_U6_axe_would_find_what_is_wrong(house: House, memory: Memory, axe: str) -> None:
    window = house.window(memory.user_id)
    window.open("settings")
    window.page.evaluate(
        "document.querySelector('main label input').parentElement.replaceWith(document.createElement('input'))"
    )
    window.page.evaluate("document.querySelector('h1').className = 'spoilt'")
    window.page.evaluate(
        "() => { const sheet = new CSSStyleSheet(); sheet.replaceSync('.spoilt { color: #bbb !important; }');"
        " document.adoptedStyleSheets = [sheet]; }"
    )
    assert {finding.partition(":")[0] for finding in findings(window, axe)} == {"label", "color-contrast"}


@pytest.mark.slow
def test_U6_the_theme_follows_the_system_until_one_is_chosen(house: House, memory: Memory) -> None:
    window = house.window(memory.user_id)
    window.page.emulate_media(color_scheme="light")
    window.open()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = window.page.evaluate(ground)
    window.page.emulate_media(color_scheme="dark")
    dark = window.page.evaluate(ground)
    assert light != dark
    window.page.get_by_role("button", name="Light").click()
    assert window.page.evaluate(ground) == light
    window.page.reload()
    assert window.page.evaluate(ground) == light, "it is remembered"
    window.page.get_by_role("button", name="Dark").click()
    assert window.page.evaluate(ground) == dark


# for an operator


def calls(house: House, memory: Memory) -> None:
    """Three facts of one conversation, one of them twice, and a call that is wrong."""
    tools = house.app.tools(memory.user_id, "facts", session="c1", agent="assistant", wait=True)
    for key, value in (("editor", "Neovim"), ("city", "Hamburg"), ("drink", "Rooibos"), ("editor", "Neovim")):
        tools.call(
            "remember_fact", {"fact_key": key, "fact_value": value, "fact_type": "preference", "confidence": 0.9}
        )
    tools.call("recall_facts", {})
    tools.call("remember_fact", {})


@pytest.mark.slow
def test_U6_the_dashboard_shows_the_calls_just_made(house: House, memory: Memory) -> None:
    window = house.window(operator=True)

    def shown(name: str) -> float:
        window.open("operator?days=1")
        tile = window.main.locator("dl > div").filter(has=window.page.get_by_text(name, exact=True)).first
        number = re.match(r"[\d.]+", tile.locator("dd").first.inner_text().replace(",", ""))
        return float(number[0]) if number else 0

    def drawn(tool: str) -> int:
        chart = window.main.get_by_role("img", name="Calls per tool")
        found = re.search(rf"{tool}: (\d+)", (chart.text_content() or "") if chart.count() else "")
        return int(found[1]) if found else 0

    before, recalled = shown("Calls"), drawn("recall_facts")
    calls(house, memory)
    assert shown("Calls") == before + 6 and drawn("recall_facts") == recalled + 1
    assert 0 < shown("Success") < 100 and shown("Duplicates") > 0 and shown("p99") > 0
    window.open("operator/users")
    row = window.main.get_by_role("row").filter(
        has=window.page.get_by_role("rowheader", name=memory.user_id, exact=True)
    )
    expect(row.get_by_role("cell").first).to_have_text("3")
    assert "Neovim" not in window.page.content(), "never what anybody remembers"
