"""One browser and one server for all tests of the console. They end with these tests: a browser that is still there
would be in the way of whoever runs an event loop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Browser, expect

import recollect
from recollect import Memory, Recollect
from recollect.surfaces.web.live import Live
from tests.browser.windows import PATIENCE, House, launched
from tests.serving import serving

_numbers = count()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Recollect, str]]:
    """A server that lets in only who has a link or a key."""
    with recollect.open(tmp_path_factory.mktemp("house")) as app:
        app.keys.create(scope="admin")
        with serving(app, live=Live(app, seconds=0.05)) as url:
            yield app, url


@pytest.fixture
def house(browser: Browser, served: tuple[Recollect, str]) -> Iterator[House]:
    """The house, in which no window may have complained."""
    house = House(browser, *served)
    yield house
    assert house.close() == []


@pytest.fixture
def memory(house: House) -> Memory:
    """The memory of somebody new."""
    return house.app.user(f"u{next(_numbers)}")
