"""The pages of the suites in the documentation say what the declarations say."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.surfaces.cli import tools as _tools  # noqa: F401  (its command)
from recollect.surfaces.cli.program import app as program
from recollect.tools.catalog import SUITES
from recollect.tools.documentation import suite_page

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("suite", SUITES)
def test_the_page_of_a_suite_is_up_to_date(suite: str) -> None:
    made = suite_page(suite, SUITES[suite])
    kept = (DOCS / "tools" / f"{suite}.md").read_text("utf-8")
    command = ["tools", "--suite", suite, "--format", "markdown"]
    printed = CliRunner().invoke(program, command).stdout
    assert kept == made == printed, f"recollect {' '.join(command)} > docs/tools/{suite}.md"


def test_every_suite_has_an_introduction_and_a_row_in_the_overview() -> None:
    overview = (DOCS / "tools.md").read_text("utf-8")
    for suite, tools in SUITES.items():
        assert f"| [`{suite}`](tools/{suite}.md) | {len(tools)} |" in overview
