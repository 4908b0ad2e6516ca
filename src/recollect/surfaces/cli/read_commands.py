"""The commands that read. They never create anything, not even a folder."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from recollect.errors import AmbiguousError, InvalidInputError, NotFoundError
from recollect.records import ToolCall
from recollect.surfaces.cli.options import Given, Last, Raw, Ref, argument, option
from recollect.surfaces.cli.output import (
    ENTRY_HEAD,
    HIT_HEAD,
    RECORD_HEAD,
    SHORT_ID,
    entry_rows,
    format_moment,
    hit_rows,
    plain_data,
    record_details,
    record_rows,
    shorten_line,
)
from recollect.surfaces.cli.program import CHANGE, RECALL, command
from recollect.surfaces.cli.session import DONE, NOT_FOUND, CliSession
from recollect.times import parse_day, utc_now

if TYPE_CHECKING:
    from recollect.memory.memory import Memory


@command(RECALL, "recollect show", "recollect show --raw > MEMORY.md")
def show_command(session: CliSession, raw: Raw = False) -> None:
    """Show MEMORY.md: the facts known about the user."""
    text = session.existing_memory.show()
    session.out.document({"user": session.user, "text": text})
    session.out.markdown(text, raw=raw)


@command(
    RECALL,
    "recollect read --category preference",
    "recollect read --kind note --tag work --newest-first --limit 10",
    "recollect read --kind message --since 2026-02-12",
    "recollect read --key city --as-of 2025-06-01",
    mirrors="read",
)
def read_command(session: CliSession, given: Given) -> None:
    """List records by kind, category, tag and other filters."""
    memory = session.existing_memory
    records = memory.read(**given)
    session.out.listing(records, RECORD_HEAD, record_rows(records), nothing=_nothing_found(memory))


@command(RECALL, "recollect get role", "recollect get v1w2x3y4 --json")
def get_command(session: CliSession, ref: Ref) -> None:
    """Show everything about one record."""
    record = session.existing_memory.get(ref)
    session.out.document(record)
    session.out.line(record.text)
    session.out.line()
    session.out.pairs(record_details(record))


@command(
    RECALL,
    "recollect search tea or coffee",
    "recollect search deadline --kind note --kind episode",
    'recollect search "What did Anna say last week?" --include-conversation',
    mirrors="search",
)
def search_command(
    session: CliSession,
    given: Given,
    words: Annotated[list[str] | None, argument("WORDS", "What to look for.")] = None,
    query: Annotated[str | None, option("--query", "The same as WORDS.", "TEXT")] = None,
    explain: Annotated[bool, option("--explain", "Show how each score is computed.")] = False,
) -> None:
    """Search the memory, best matches first."""
    if words is None and query is None:
        raise InvalidInputError("WORDS", "is missing: what to look for")
    if words and query is not None:
        raise InvalidInputError("--query", "is the same as WORDS; give one of them")
    memory = session.existing_memory
    asked = " ".join(words) if words else query or ""
    hits = memory.search(asked, **given)
    session.out.document({"query": asked, "mode": hits.mode, "note": hits.note, "hits": list(hits)})
    if hits:
        rows = hit_rows(hits, asked, session.config.language, explain=explain)
        session.out.table(HIT_HEAD, rows, right=("score",))
    else:
        session.out.aside(_nothing_found(memory))
    if hits.note:
        session.out.aside(f"Note: {hits.note}")


@command(
    RECALL,
    'recollect recall-by-category "rate limits" lesson',
    name="recall-by-category",
    mirrors="recall_by_category",
)
def recall_by_category_command(session: CliSession, given: Given) -> None:
    """Search the findings, insights or lessons; print their texts."""
    found = session.existing_memory.recall_by_category(**given)
    session.out.document(found)
    for text in found:
        session.out.line(text)


@command(RECALL, 'recollect recall-fil "API integration"', name="recall-fil", mirrors="recall_fil")
def recall_fil_command(session: CliSession, given: Given) -> None:
    """Search findings, insights and lessons; print their texts."""
    found = session.existing_memory.recall_fil(**given)
    session.out.document(plain_data(found))
    for title, texts in (("Findings", found.findings), ("Insights", found.insights), ("Lessons", found.lessons)):
        session.out.line(f"{title}:")
        for text in texts or ("nothing",):
            session.out.line(f"  {text}")


@command(
    RECALL,
    "recollect context",
    "recollect context planning the move --max-tokens 500",
    "recollect context --json",
    mirrors="context",
)
def context_command(
    session: CliSession,
    given: Given,
    topic: Annotated[list[str] | None, argument("TOPIC", "The topic of the conversation, if known.")] = None,
    raw: Raw = False,
) -> None:
    """Show the memory block for a model's prompt."""
    memory = session.existing_memory
    text = memory.context(" ".join(topic or ()), **given)
    if session.json:
        from recollect.search.tokens import count

        session.out.document({"user": session.user, "text": text, "tokens": count(text)})
    session.out.markdown(text, raw=raw)
    if not text:
        session.out.aside(_nothing_found(memory))


@command(RECALL, "recollect daily", "recollect daily 2026-02-12", "recollect daily --days")
def daily_command(
    session: CliSession,
    day: Annotated[str | None, argument("DAY", "The day as YYYY-MM-DD (default: today).")] = None,
    days: Annotated[bool, option("--days", "List the days that have a note.")] = False,
    raw: Raw = False,
) -> int:
    """Show a daily note, or list the days that have one."""
    if days:
        found = session.existing_memory.days()
        session.out.document(found)
        for one in found:
            session.out.line(one.isoformat())
        return DONE
    wanted = utc_now().date() if day is None else parse_day("day", day)
    text = session.existing_memory.daily(wanted)
    session.out.document({"user": session.user, "day": wanted, "text": text})
    session.out.markdown(text, raw=raw)
    if text:
        return DONE
    session.out.aside(f"There is no daily note for {wanted}.")
    return NOT_FOUND


@command(
    CHANGE,
    "recollect history",
    "recollect history role",
    "recollect history --run run-01k…",
    "recollect history --call v1w2x3y4",
    mirrors="history",
    without=("before",),
)
def history_command(session: CliSession, given: Given, limit: Last = 20) -> None:
    """Show what changed, when and by whom, oldest first."""
    memory = session.existing_memory
    run, call = given.get("run"), given.get("call")
    known = None
    if call is not None:
        known = _complete_call_id(memory, call)
        given["call"] = known or call
    entries = memory.history(**given, limit=limit or None)
    if run is not None and not entries and not memory.history(run=run, limit=1):
        raise NotFoundError(f"There is no run {run}.")
    if call is not None and known is None and not entries:
        raise NotFoundError(f"There is no call {call}.")
    session.out.document(entries)
    if not entries:
        session.out.aside("There are no changes yet." if call is None else f"The call {call} changed nothing.")
        return
    session.out.table(ENTRY_HEAD, entry_rows(entries), right=("no",))
    runs: dict[str, list[int]] = {}
    for entry in entries:
        if entry.run:
            runs.setdefault(entry.run, []).append(entry.seq)
    for together, numbers in runs.items():
        if len(numbers) > 1 and run is None:
            session.out.line(f"{numbers[0]}–{numbers[-1]} belong together: {together}")
    if len(entries) == limit and sys.stdout.isatty():
        session.out.aside(f"Showing the last {limit}; use --limit for more.")


@command(CHANGE, "recollect why role")
def why_command(session: CliSession, ref: Ref) -> None:
    """Explain where a record came from, and when."""
    answer = session.existing_memory.why(ref)
    session.out.document(answer)
    session.out.line(shorten_line(answer.record.text, 400))
    session.out.line(f"  {answer.record.id}")
    session.out.line()
    session.out.line(answer.message)
    session.out.line()
    session.out.table(ENTRY_HEAD, entry_rows(answer.entries), right=("no",))


@command(RECALL, "recollect sessions", "recollect sessions --limit 5 --json", mirrors="sessions")
def sessions_command(session: CliSession, given: Given) -> None:
    """List stored conversations, latest first."""
    found = session.existing_memory.sessions(**given)
    rows = [(format_moment(one.ended, zone=False), f"{one.messages:,}", one.id) for one in found]
    head = ("last (UTC)", "messages", "session")
    session.out.listing(found, head, rows, nothing="No conversations.", right=("messages",))


@command(CHANGE, "recollect similar", "recollect similar --limit 5 --json", mirrors="similar")
def similar_command(session: CliSession, given: Given) -> None:
    """List pairs of facts or notes that say nearly the same."""
    found = session.existing_memory.similar(**given)
    session.out.document(found)
    if not found:
        session.out.aside("No similar facts or notes.")
        return
    for pair in found:
        session.out.table(RECORD_HEAD, record_rows(pair))
        session.out.line()
    older, newer = found[0]
    session.out.aside(f'To merge two: recollect merge {older.id[-SHORT_ID:]} {newer.id[-SHORT_ID:]} --content "…"')


@command(
    CHANGE,
    "recollect calls",
    "recollect calls --tool memory_save --since 2026-02-12",
    "recollect calls --session chat-7 --limit 100 --json",
    mirrors="calls",
    without=("newest_first",),
)
def calls_command(session: CliSession, given: Given, limit: Last = 20) -> None:
    """List tool calls, newest first."""
    found = session.existing_memory.calls(**given, limit=limit or None)
    head, rows = ("id", "when (UTC)", "ms", "tokens", "tool", "outcome"), map(_call_row, found)
    session.out.listing(found, head, rows, nothing="No tool calls.", right=("ms", "tokens"), limit=limit)


def _call_row(call: ToolCall) -> tuple[str, ...]:
    tokens = f"{call.tokens_in + call.tokens_out:,}" if call.tokens_in or call.tokens_out else ""
    # let "refused:paused" wrap between its words, not within one
    outcome = ": ".join(part.strip() for part in call.outcome.split(":"))
    if call.status != "ok" and not outcome.startswith(call.status):
        outcome = f"{call.status}: {outcome}" if outcome else call.status
    spent = f"{call.latency_ms:,.0f}", tokens
    return (call.id[-SHORT_ID:], format_moment(call.at, zone=False), *spent, call.tool, outcome)


def _complete_call_id(memory: Memory, call: str) -> str | None:
    """Return the full id of a tool call from the end of it, as lists show it, or None if it is not in the log."""
    found = {known.id for known in memory.calls(limit=None) if known.id.endswith(call)}
    if len(found) > 1 and call not in found:
        raise AmbiguousError(f"{len(found)} tool calls end in {call}; give more of the id (see recollect calls --json)")
    return call if call in found else next(iter(found), None)


def _nothing_found(memory: Memory) -> str:
    if memory.mode == "incognito":
        return "Nothing is shown: memory is incognito until `recollect resume`."
    return "Nothing found."
