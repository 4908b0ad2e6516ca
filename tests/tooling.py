"""What the tests of the tool suites share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recollect.app import Recollect
from recollect.tools.suite import Result, Suite

SEED_TOOLS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "seed_tools.json").read_text("utf-8"))
"""The declarations of the seeds, as they have them."""


class Caller:
    """Calls tools by name, and reads JSON answers."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite

    def __call__(self, tool: str, /, **arguments: Any) -> Any:
        result = self.result(tool, **arguments)
        return result.content if isinstance(result.content, dict | list) else result.text

    def result(self, tool: str, /, **arguments: Any) -> Result:
        result = self.suite.call(tool, arguments)
        if isinstance(result.content, dict | list):
            assert json.loads(result.text) == result.content
        return result


def caller(recollect: Recollect, user: str | int = "u1", *suites: str, **where: Any) -> Caller:
    """Tools over the memory of a user."""
    return Caller(recollect.tools(user, *suites, **where))
