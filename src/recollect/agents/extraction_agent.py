"""The extraction agent: a model that searches the memory with the tools of the suite `entries`, then writes or updates.

Its changes are staged as findings and stored at the end of the run, in one transaction with its record: a kill leaves
nothing half done, and a dry run stores nothing. Until then each tool sees them in a transaction that is rolled back. A
change that nothing supports of what the person said or did is refused, and the model is told so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from recollect.agents.apply import Finding, apply_findings
from recollect.agents.capture import looks_like_instruction
from recollect.agents.evidence import Evidence, Support
from recollect.agents.gather_interactions import Gathered
from recollect.checks import MAX_KEY
from recollect.errors import NotFoundError
from recollect.memory.memory import Memory
from recollect.records import Conflict, Demoted, Forgotten, Outcome, Record, Updated, Written
from recollect.tools.entries import TOOLS
from recollect.tools.log import CallLog
from recollect.tools.suite import Suite
from recollect.tools.tool import Scope, Tool, ToolAnswer, outcome_of

_DONE = ("written", "updated", "demoted", "forgotten")
_NOT_SUPPORTED = "Not done: nothing that the person said or did in these interactions says so. Keep to their words."
_INSTRUCTION = "Not done: it reads like an instruction to a model, not like something about the person."
_KEPT = "Not done: the person wrote this entry themselves or said it later, so it stays."
_ORIGINS = frozenset("batch batch_extraction command conversation discussion interaction reaction read save".split())
"""The beginnings of sources that a model may give. It cannot claim that the person wrote something by hand."""


class _PreviewDoneError(Exception):
    """Ends a preview so that nothing of it is kept."""


class StagedChanges:
    """The changes that an agent has made so far, as findings."""

    def __init__(self, memory: Memory, collected: Gathered) -> None:
        self.findings: list[Finding] = []
        self._memory = memory
        self._evidence = Evidence.of(memory, collected)

    def suite(self, calls: int, log: CallLog | None) -> Suite:
        """Return the tools for one run of the agent."""
        tools = [
            replace(tool, run=self._reading(tool) if tool.does == "recall" else self._changing(tool)) for tool in TOOLS
        ]
        return Suite(self._memory, tools, agent="extract", log=log, clock=self._memory.clock).response(calls)

    def _reading(self, tool: Tool) -> Any:
        def run(scope: Scope, **values: Any) -> ToolAnswer:
            if not self.findings:
                return tool.run(scope, **values)
            with self._preview(scope.memory) as memory:
                return tool.run(replace(scope, memory=memory), **values)

        return run

    def _changing(self, tool: Tool) -> Any:
        def run(scope: Scope, **values: Any) -> ToolAnswer:
            if looks_like_instruction(f"{values['key']}: {values.get('value', '')}"):
                return ToolAnswer(_INSTRUCTION, "refused:instruction", "refused")
            with self._preview(scope.memory) as memory:
                before = _entry(memory, values["key"])
                answer = tool.run(replace(scope, memory=memory), **values)
                after = _entry(memory, values["key"])
            if answer.outcome not in _DONE:
                return answer
            finding = self._finding(tool, values, before, after)
            if finding is None:
                return ToolAnswer(_NOT_SUPPORTED, "refused:unsupported", "refused")
            with self._preview(scope.memory) as memory:
                outcome = apply_findings(memory, [finding]).outcomes[0]
            if not isinstance(outcome, Written | Updated | Demoted | Forgotten):
                return ToolAnswer(_why_not(outcome), outcome_of(outcome), "refused")
            self.findings.append(finding)
            return answer

        return run

    @contextmanager
    def _preview(self, memory: Memory) -> Iterator[Memory]:
        """Open a transaction in which the changes so far are made, and roll it back."""
        try:
            with memory.batch() as open_memory:
                apply_findings(open_memory, self.findings)
                yield open_memory
                raise _PreviewDoneError
        except _PreviewDoneError:
            pass

    def _finding(
        self, tool: Tool, values: dict[str, Any], before: Record | None, after: Record | None
    ) -> Finding | None:
        """Return what a call changes, if something that the person said or did supports it."""
        removes, known = tool.name == "delete_memory", "" if before is None else before.content
        category = values.get("category") or (after.category if after is not None else None)
        confidence = float(values.get("confidence", 1.0))
        value = known if removes else " ".join(str(values["value"]).split())
        if removes:
            support = self._evidence.stated(f"{values['key'].replace('_', ' ')} {known}")
        else:
            support = self._support(category or "", value, known, confidence)
        if support is None:
            return None
        return Finding(
            content=value,
            key=str(values["key"])[:MAX_KEY].strip(),
            category=category,
            action="remove" if removes else "update" if tool.name == "update_memory" else "add",
            confidence=confidence,
            source=_source(values.get("source"), support),
            excerpt=support.excerpt,
            messages=(support.said.message,) if support.said is not None and support.said.message else (),
            durable=values.get("durability", "durable") == "durable" and category != "reading_history",
            replaces=tool.name != "write_memory",
            said_at=support.at,
        )

    def _support(self, category: str, value: str, known: str, confidence: float) -> Support | None:
        likes = category in ("preference", "reading_history")
        weak = confidence < self._memory.config.confidence_threshold
        stated = self._evidence.stated(value, known=known, may_ask=likes)
        return stated or self._evidence.shown(category, value, weak=weak)


def _entry(memory: Memory, key: str) -> Record | None:
    try:
        return memory.get(key)
    except NotFoundError:
        return None


def _why_not(outcome: Outcome) -> str:
    return _KEPT if isinstance(outcome, Conflict) else outcome.message


def _source(given: str | None, support: Support) -> str:
    """Return the source that the model gave, unless it claims too much."""
    name = " ".join((given or "").split())
    if name.partition(":")[0] in _ORIGINS:
        return name[:200]
    return "batch_extraction" if support.said is None else support.said.source
