"""What a person changes in the console is on the disk, and what changes on the disk is in the console."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from recollect import Memory
from tests.browser.windows import House, a_life


def test_U6_an_edit_of_the_file_in_the_browser_is_on_the_disk_and_can_be_undone(house: House, memory: Memory) -> None:
    a_life(memory)
    before = house.file(memory)
    window = house.window(memory.user_id)
    window.open()
    window.follow("Edit MEMORY.md")
    text = window.main.get_by_role("textbox")
    text.fill(text.input_value().replace("Principal", "Distinguished") + "- Plays the cello\n")
    expect(window.main.locator("ins", has_text="Distinguished")).to_be_visible()
    assert house.file(memory) == before, "compared only"
    window.save()
    window.sees("Saved.")
    window.sees("Plays the cello")
    assert "Distinguished engineer at Northwind" in house.file(memory) and "- Plays the cello\n" in house.file(memory)
    window.press("Undo")
    window.sees("Undone.")
    assert house.file(memory) == before


@pytest.mark.slow
def test_U6_one_fact_changed_on_its_page_is_on_the_disk_with_its_history(house: House, memory: Memory) -> None:
    memory.remember("Berlin", key="city", category="personal_context")
    window = house.window(memory.user_id)
    window.open()
    window.follow("Berlin")
    window.unfold("Change it")
    window.main.get_by_role("textbox").fill("Hamburg")
    expect(window.main.locator("del")).to_have_text("Berlin")
    window.save()
    window.sees("Changed.")
    assert "Hamburg" in house.file(memory) and "Berlin" not in house.file(memory)
    history = window.main.get_by_role("region", name="History")
    expect(history).to_contain_text("Berlin → Hamburg")


@pytest.mark.slow
def test_U6_a_line_is_edited_where_it_stands(house: House, memory: Memory) -> None:
    a_life(memory)
    before = house.file(memory)
    window = house.window(memory.user_id)
    window.open()
    window.press("Edit Drinks rooibos")
    text = window.main.get_by_role("textbox", name="Text")
    expect(text).to_be_focused()
    text.fill("Drinks lapsang")
    text.press("Escape")
    expect(text).to_have_count(0)
    assert house.file(memory) == before, "given up"
    window.press("Edit Drinks rooibos")
    text.fill("Drinks lapsang")
    expect(window.main.locator("ins")).to_have_text("lapsang")
    text.press("Enter")
    window.sees("Changed.")
    expect(window.main.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    assert house.file(memory) == before.replace("rooibos", "lapsang")


@pytest.mark.slow
def test_U6_a_file_saved_by_an_editor_changes_the_open_page_without_reloading(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open()
    window.sees("Allergic to hazelnuts")
    window.mark_time()
    write_as_an_editor_does(house, memory, house.file(memory).replace("hazelnuts", "walnuts") + "- Plays the cello\n")
    window.sees("Allergic to walnuts")
    window.sees("Plays the cello")
    window.misses("Allergic to hazelnuts")
    expect(window.page.get_by_role("status").filter(has_text="A fact was remembered")).to_be_visible()
    assert window.is_same_page


def write_as_an_editor_does(house: House, memory: Memory, text: str) -> None:
    """Beside the file, then in its place."""
    path = house.app.config.memory_dir / memory.user_id / "MEMORY.md"
    beside = path.with_name(".MEMORY.md.swp")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


@pytest.mark.slow
def test_U6_what_is_written_on_the_disk_meanwhile_is_not_lost_to_an_open_editor(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open("edit")
    text = window.main.get_by_role("textbox")
    text.fill(text.input_value().replace("Principal", "Distinguished"))
    expect(window.main.locator("ins", has_text="Distinguished")).to_be_visible()
    write_as_an_editor_does(house, memory, house.file(memory) + "- Plays the cello\n")
    window.save()
    expect(window.main.get_by_role("alert")).to_contain_text("changed in the meantime")
    window.sees("removed: - Plays the cello")
    assert "Plays the cello" in house.file(memory) and "Distinguished" not in house.file(memory)
    assert "Distinguished" in text.input_value(), "nor is what was typed"
    text.fill(text.input_value() + "- Plays the cello\n")
    window.misses("removed: - Plays the cello")
    window.save()
    window.sees("Saved.")
    assert "Plays the cello" in house.file(memory) and "Distinguished" in house.file(memory)


@pytest.mark.slow
def test_U6_what_agents_write_appears_on_open_pages(house: House, memory: Memory) -> None:
    memory.remember("Likes tea", category="preference")
    file, timeline, today = (house.window(memory.user_id) for _ in range(3))
    for window, path in ((file, ""), (timeline, "timeline"), (today, "daily")):
        window.open(path)
        window.mark_time()
    _, key = house.app.keys.create(scope="write")
    answer = httpx.post(
        f"{house.url}/v1/users/{memory.user_id}/remember",
        json={"content": "Plays the cello", "category": "personal_context"},
        headers={"authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200
    file.sees("Plays the cello")
    timeline.sees("Plays the cello")
    tools = house.app.tools(memory.user_id, "facts", session="c1", agent="scribe", wait=True)
    fact = {"fact_key": "editor", "fact_value": "Neovim", "fact_type": "preference", "confidence": 0.95}
    assert tools.call("remember_fact", fact).outcome == "written"
    memory.jot("Asked about replication")
    file.sees("Neovim")
    timeline.sees("Neovim")
    today.sees("Asked about replication")
    assert file.is_same_page and timeline.is_same_page and today.is_same_page


@pytest.mark.slow
def test_U6_forgetting_and_undoing_it_take_a_line_out_of_the_file_and_put_it_back(house: House, memory: Memory) -> None:
    a_life(memory)
    before = house.file(memory)
    window = house.window(memory.user_id)
    window.open()
    window.follow("Drinks rooibos")
    window.press("Forget")
    window.sees("Forgotten. You can undo this.")
    assert "rooibos" not in house.file(memory)
    window.press("Undo")
    window.sees("Undone.")
    assert house.file(memory) == before
    window.open()
    window.sees("Drinks rooibos")


@pytest.mark.slow
def test_U6_a_pin_is_set_and_taken_away(house: House, memory: Memory) -> None:
    memory.remember("Likes tea", category="preference")
    window = house.window(memory.user_id)
    window.open()
    window.follow("Likes tea")
    window.press("Pin")
    window.sees("Pinned: it always stays")
    assert memory.search("tea")[0].record.pinned
    window.open()
    expect(window.main.get_by_role("listitem").filter(has_text="Likes tea")).to_contain_text("pinned")
    window.follow("Likes tea")
    window.press("Unpin")
    window.sees("No longer pinned.")
    assert not memory.search("tea")[0].record.pinned


@pytest.mark.slow
def test_U6_a_first_fact_is_written_by_the_person(house: House, memory: Memory) -> None:
    window = house.window(memory.user_id)
    window.open()
    window.sees("Nothing is remembered yet")
    window.unfold("Remember something")
    window.main.get_by_label("Fact about you").fill("Grows tomatoes 🍅 on the 縁側")
    window.main.get_by_label("Section").select_option("Personal Context")
    window.press("Remember")
    window.sees("Remembered.")
    window.sees("Grows tomatoes 🍅 on the 縁側")
    assert "- Grows tomatoes 🍅 on the 縁側\n" in house.file(memory)


@pytest.mark.slow
def test_U6_the_keyboard_alone_is_enough_to_change_a_fact(house: House, memory: Memory) -> None:
    memory.remember("Berlin", key="city", category="personal_context")
    window = house.window(memory.user_id)
    window.open()

    def go_to(name: str) -> None:
        """Press Tab until what has that name has the focus, and can be seen to have it."""
        focused = window.page.locator(":focus")
        for _ in range(60):
            window.page.keyboard.press("Tab")
            if focused.count() and name in (
                focused.inner_text() or focused.get_attribute("aria-label") or focused.input_value()
            ):
                assert focused.evaluate("one => getComputedStyle(one).outlineStyle") != "none", name
                return
        raise AssertionError(f"no way to {name}")

    keys = window.page.keyboard
    keys.press("Tab")
    keys.press("Enter")  # past the navigation
    expect(window.page).to_have_url(f"{window.base}/#main")
    go_to("Berlin")
    keys.press("Enter")
    expect(window.main.get_by_role("heading", name="Berlin")).to_be_visible()
    go_to("Change it")
    keys.press("Enter")
    keys.press("Tab")
    expect(window.main.get_by_role("textbox")).to_be_focused()
    keys.press("ControlOrMeta+A")
    keys.type("Hamburg")
    expect(window.main.locator("ins")).to_have_text("Hamburg")
    go_to("Save")
    keys.press("Enter")
    window.sees("Changed.")
    assert "Hamburg" in house.file(memory)


@pytest.mark.slow
def test_U6_everything_works_without_scripts(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id, scripts=False)
    window.open("edit")
    text = window.main.get_by_role("textbox")
    text.fill(text.input_value().replace("Principal", "Distinguished"))
    window.save()
    window.sees("Saved.")
    assert "Distinguished" in house.file(memory)
    search = window.page.get_by_role("searchbox", name="Search your memory")
    search.fill("rooibos")
    search.press("Enter")
    window.follow("rooibos")
    window.press("Forget")
    window.sees("Forgotten")
    assert "rooibos" not in house.file(memory)
    window.press("Undo")
    window.sees("Undone.")
    assert "rooibos" in house.file(memory)
    expect(window.page.get_by_role("button", name="Dark")).to_have_count(0)


@pytest.mark.slow
def test_U6_search_answers_while_typing_and_can_be_found_again(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open("search")
    window.page.keyboard.type("trains")
    expect(window.main.locator("mark", has_text="trains").first).to_be_visible()
    expect(window.page).to_have_url(f"{window.base}/search?q=trains")
    window.page.reload()
    expect(window.main.locator("mark", has_text="trains").first).to_be_visible()


@pytest.mark.slow
def test_U6_keys_lead_to_pages_but_not_from_a_field(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open()
    window.page.keyboard.press("/")
    search = window.page.get_by_role("searchbox", name="Search your memory")
    expect(search).to_be_focused()
    window.page.keyboard.type("t")
    expect(search).to_have_value("t")
    window.page.keyboard.press("Tab")
    window.page.keyboard.press("t")
    expect(window.page).to_have_url(f"{window.base}/timeline")


def test_U6_who_leaves_a_page_with_something_unsaved_is_asked(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open("edit")
    window.main.get_by_role("textbox").press_sequentially("x")
    with window.page.expect_event("dialog") as asked:
        window.page.get_by_role("link", name="Recollect", exact=True).click(no_wait_after=True)
    assert asked.value.type == "beforeunload"
    expect(window.page).to_have_url(f"{window.base}/edit")
    assert window.complaints == ["dialog: "]
    window.forgive()


@pytest.mark.slow
def test_U6_a_memory_is_downloaded_and_another_brought_in(house: House, memory: Memory, tmp_path: Path) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open("settings")
    with window.page.expect_download() as sent:
        window.follow("Download")
    archive = tmp_path / "memory.zip"
    sent.value.save_as(archive)
    other = house.window(f"{memory.user_id}-elsewhere")
    other.open("settings")
    other.main.get_by_label("File").set_input_files(archive)
    other.main.get_by_label("Only show what it would do").uncheck()
    other.press("Import")
    expect(other.main.get_by_role("heading", name="Imported")).to_be_visible()
    assert house.file(house.app.user(f"{memory.user_id}-elsewhere")) == house.file(memory)


@pytest.mark.slow
def test_U6_a_paused_memory_says_so_on_every_page_until_it_is_resumed(house: House, memory: Memory) -> None:
    a_life(memory)
    window = house.window(memory.user_id)
    window.open("settings")
    window.press("Pause")
    expect(window.main.get_by_role("heading", name="Memory is paused")).to_be_visible()
    window.open("timeline")
    window.sees("Memory is paused")
    assert not memory.remember("Plays the cello", category="key_fact").done
    window.open("settings")
    window.press("Resume")
    expect(window.main.get_by_role("heading", name="Memory is on")).to_be_visible()
    assert memory.remember("Plays the cello", category="key_fact").done
