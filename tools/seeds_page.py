"""Write docs/seeds.md from the acceptance scripts: each sentence of the seeds, and whether it holds.

python tools/seeds_page.py            write the page
python tools/seeds_page.py --check    say whether it is up to date; exit with 1 if it is not
"""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "seeds.md"
TITLES = {
    "test_a.py": "A: the memory tools of an agent",
    "test_b.py": "B: user memory, MEMORY.md and daily notes",
    "test_c.py": "C: notes as tools of a model",
    "test_d.py": "D: observations and working memory",
    "test_e.py": "E: facts and episodes of a chat bot",
}
INTRODUCTION = """# The seeds, sentence by sentence

Recollect follows five documents, the seeds A to E. Each of their sentences that promises something is a check in
`tests/seeds/`, written from the document and not from the code; where two of them differ, or a sentence leaves
something open, the check says how that was settled. *Holds* means that the check passes: the seed's own example ran.
This page is made from the checks by `tools/seeds_page.py`; what does not hold is listed, with the reason, in
`tests/seeds/not_done.py`.
"""


class Checks:
    """Collects the checks as pytest does, without running them."""

    def __init__(self) -> None:
        self.cases: defaultdict[str, defaultdict[str, list[str | None]]] = defaultdict(lambda: defaultdict(list))
        self.sentences: dict[tuple[str, str], str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            assert isinstance(item, pytest.Function)
            mark = item.get_closest_marker("xfail")
            name = item.originalname
            self.cases[item.path.name][name].append(str(mark.kwargs["reason"]) if mark else None)
            self.sentences[item.path.name, name] = " ".join((inspect.getdoc(item.function) or name).split())


def state_of(cases: list[str | None]) -> str:
    """Return whether a sentence holds, and otherwise why not."""
    failing = [reason for reason in cases if reason is not None]
    if not failing:
        return "holds"
    reasons = "; ".join(dict.fromkeys(failing))
    return (
        f"not done: {reasons}" if len(failing) == len(cases) else f"partly ({len(failing)} of {len(cases)}): {reasons}"
    )


def page() -> str:
    """Return the text of the page."""
    checks = Checks()
    if pytest.main(
        ["--collect-only", "-qq", "--no-header", "-p", "no:cacheprovider", str(ROOT / "tests/seeds")], [checks]
    ):
        sys.exit("tests/seeds cannot be collected")
    counts, parts = ["| seed | sentences | hold | partly | not done |", "|---|---|---|---|---|"], []
    for file, title in TITLES.items():
        states = {name: state_of(cases) for name, cases in checks.cases[file].items()}
        number = [sum(state.startswith(word) for state in states.values()) for word in ("holds", "partly", "not done")]
        counts.append(f"| {title} | {len(states)} | {' | '.join(map(str, number))} |")
        rows = [
            f"| {checks.sentences[file, name].replace('|', chr(92) + '|').replace('<', '&lt;')} | {state} |"
            for name, state in states.items()
        ]
        parts.append(
            "\n".join([f"## {title}", "", f"`tests/seeds/{file}`", "", "| the seed | state |", "|---|---|", *rows])
        )
    return "\n\n".join([INTRODUCTION.rstrip(), "\n".join(counts), *parts]) + "\n"


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        if PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/seeds.md is not up to date: run python tools/seeds_page.py")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
