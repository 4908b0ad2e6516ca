"""The commands forget, which lists what would go and asks first, and undo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recollect.errors import NotFoundError, UndoError
from recollect.memory.journal import last_change
from recollect.memory.memory import Memory
from recollect.memory.references import reports_change
from recollect.records import JournalEntry, Record, new_id
from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, chat_page, fits_choice
from recollect.surfaces.chat.show_commands import empty_memory_page, unknown_number_page, usage_page
from recollect.surfaces.chat.speaker import (
    Asker,
    item_line,
    item_lines,
    listing_digest,
    numbers_in,
    pluralize,
    record_by_number,
    record_text,
    short_digest,
    undo_choice,
)
from recollect.surfaces.chat.text_fit import WIDTH, fit_cells, quote_typed

_MOST_LISTED = 8
_MOST_NAMED = 100
_MOST_CLOSE = 4
_MOST_RECENT = 200
_MOST_CHARACTERS = 500
_CONFIRMED = re.compile(r"(?P<numbers>[\d,]+) (?P<mark>=\w+)(?: (?P<topic>.+))?")
_SETTINGS = frozenset({"pause", "incognito", "resume", "consent", "withdraw"})
_EVERYTHING = frozenset({"all", "everything", "it all", "all of it", "me"})

_Numbered = list[tuple[int, Record]]


def chat_forget(asker: Asker, argument: str) -> ChatPage:
    """Forget records by number at once; for a topic, list what would go and ask."""
    if not argument:
        return usage_page("What should I forget?", "forget tea")
    if not asker.memory.exists:
        return empty_memory_page(asker)
    if confirmed := _CONFIRMED.fullmatch(argument):
        return _forget(asker, numbers_in(confirmed["numbers"]), confirmed["mark"], confirmed["topic"] or "")
    if numbers := numbers_in(argument):
        return _forget(asker, numbers, None, "", searchable=argument)
    if argument.casefold() in _EVERYTHING:
        return chat_page(
            "To permanently erase everything, use /memory clear.",
            ChatLine("It asks first.", "aside"),
            choices=[[Choice("See what would go", "clear")]],
        )
    topic = argument[:_MOST_CHARACTERS].strip('"“”„ ')
    return _ask_what_goes(asker, topic, _matching(asker, topic))


def chat_next(asker: Asker, argument: str) -> ChatPage:
    """List more about a topic, after the record with this number: ``next 24 tea``."""
    number, _, topic = argument.partition(" ")
    if not topic or not numbers_in(number):
        return chat_forget(asker, argument)
    matching = _matching(asker, topic)
    last = record_by_number(asker.memory, numbers_in(number)[0])
    if last is not None:
        behind = _order((numbers_in(number)[0], last))
        matching = [one for one in matching if _order(one) > behind]
    return (
        _ask_what_goes(asker, topic, matching, is_rest=True)
        if matching
        else chat_page(f"That was all about {quote_typed(topic)}.")
    )


def chat_keep(asker: Asker, argument: str) -> ChatPage:
    """Cancel: nothing changes."""
    return chat_page(ChatLine("OK, nothing was changed.", "good"))


def _matching(asker: Asker, topic: str) -> _Numbered:
    # a line of a daily note that reports a change is never recalled, and would stay in the note
    found = [record for record in asker.speaking_of(topic) if not reports_change(record)]
    numbers = asker.numbers(found)
    return sorted(((numbers[r.id], r) for r in found if r.id in numbers), key=_order)


def _order(one: tuple[int, Record]) -> tuple[bool, int]:
    """Return a sort key: memories before messages, the newest first."""
    return one[1].kind == "message", -one[0]


def _ask_what_goes(asker: Asker, topic: str, matching: _Numbered, *, is_rest: bool = False) -> ChatPage:
    if not matching:
        return _suggest_close(asker, topic)
    some = matching[:_MOST_LISTED]
    while len(some) > 1 and not fits_choice(_command(some)):
        some = some[:-1]
    left = len(matching) - len(some)
    title = f"{pluralize(len(matching), 'thing', 'things')}{' more' if is_rest else ''} about {quote_typed(topic)}"
    title += f", the first {len(some)}:" if left else ":"
    choices = [[_forgetting(some, topic if left else ""), Choice("Keep", "keep")]]
    if left and fits_choice(following := f"next {some[-1][0]} {topic}"):
        choices.append([Choice(f"Show {pluralize(left, 'other', 'others')} ›", following)])
    return chat_page(
        ChatLine(title, "title"),
        *(item_line(record_text(r), n, rows=2) for n, r in some),
        "Forget it?" if len(some) == 1 else "Forget them?",
        choices=choices,
    )


def _forgetting(some: _Numbered, topic: str = "") -> Choice:
    label = "Forget this" if len(some) == 1 else f"Forget these {len(some)}"
    with_topic = f"{_command(some)} {topic}"
    return Choice(label, with_topic if topic and fits_choice(with_topic) else _command(some), danger=True)


def _command(some: _Numbered) -> str:
    """Return the command that forgets exactly these records in their current state."""
    return f"forget {','.join(str(number) for number, _ in some)} {listing_digest(*(record for _, record in some))}"


def _suggest_close(asker: Asker, topic: str) -> ChatPage:
    """Return near matches, because nothing contains these exact words."""
    hits = [] if asker.memory.mode == "incognito" else asker.memory.search(topic, limit=_MOST_CLOSE)
    numbers = asker.numbers(hit.record for hit in hits)
    close = [(numbers[hit.record.id], hit.record) for hit in hits if hit.record.id in numbers]
    lead = ChatLine(f"I remember nothing about {quote_typed(topic)}.")
    if not close:
        return chat_page(lead, choices=[[Choice("Show everything", "show")]])
    choices = [replace(_forgetting([one]), label=f"Forget #{one[0]}") for one in close]
    return chat_page(
        lead,
        ChatLine("Did you mean one of these?"),
        *(item_line(record_text(record), number, rows=2) for number, record in close),
        choices=[choices[:2], choices[2:], [Choice("Keep", "keep")]],
    )


def _forget(asker: Asker, numbers: Sequence[int], expected: str | None, topic: str, searchable: str = "") -> ChatPage:
    """Forget records by number. If they were listed before, do so only if none has changed since."""
    if len(numbers) > _MOST_NAMED:
        return chat_page(ChatLine(f"That is too many. Give at most {_MOST_NAMED} numbers at a time.", "bad"))
    run = new_id("run")
    with asker.memory.acting(run=run).batch() as memory:
        named = [(number, record_by_number(memory, number)) for number in numbers]
        active = [(number, record) for number, record in named if record is not None and asker.is_active(record)]
        is_as_listed = expected in (None, listing_digest(*(record for _, record in active)))
        notices = [n for _, r in active for n in memory.forget(r.id).notices] if is_as_listed else []
    missing = [_missing(number, record) for number, record in named if (number, record) not in active]
    if not is_as_listed:
        return _ask_again(asker, named, active, missing)
    if not active:
        return _nothing_forgotten(asker, numbers, missing, searchable)
    done = "Forgotten." if len(active) == 1 else f"Forgotten: {len(active)} things."
    choices = [[Choice("Undo", f"undo {run}")]]
    if topic and fits_choice(rest := f'forget "{topic}"'):  # in quotes, or 1984 would be a number
        choices[0].append(Choice("What is left?", rest))
    shown = active[:_MOST_LISTED]
    return chat_page(
        ChatLine(done, "good"),
        *(item_line(record_text(record), number) for number, record in shown),
        *more_line(len(active) - len(shown)),
        *missing[:3],
        *notice_lines(notices),
        choices=choices,
    )


def _missing(number: int, record: Record | None) -> ChatLine:
    if record is None:
        return ChatLine(f"There is no #{number}.", "bad")
    if record.status == "superseded":
        return ChatLine(f"#{number} was replaced by something newer.", "bad")
    return ChatLine(f"#{number} was already {'forgotten' if record.status == 'archived' else 'removed'}.", "bad")


def _ask_again(
    asker: Asker, named: list[tuple[int, Record | None]], active: _Numbered, missing: list[ChatLine]
) -> ChatPage:
    if all(record is not None and record.status == "archived" for _, record in named):  # pressed twice
        last = _latest_entry(asker.memory, named[0][1])
        back = [Choice("Undo", f"undo {last.run}")] if last is not None and last.run else []
        return chat_page("This is already forgotten.", choices=[back])
    lines = [ChatLine("Your memory has changed since I listed this, so I forgot nothing.", "bad"), *missing[:3]]
    if not active:
        return chat_page(*lines)
    shown = active[:_MOST_LISTED]
    lines += [
        ChatLine("This is the current list:"),
        *(item_line(record_text(record), number, rows=2) for number, record in shown),
    ]
    return chat_page(*lines, choices=[[_forgetting(shown), Choice("Keep", "keep")]])


def _nothing_forgotten(asker: Asker, numbers: Sequence[int], missing: list[ChatLine], searchable: str) -> ChatPage:
    choices = [Choice("Show everything", "show")]
    named = [record_by_number(asker.memory, number) for number in numbers]
    if len(named) == 1 and named[0] is not None and named[0].status == "archived":
        choices.insert(0, undo_choice(numbers[0], named[0]))
    elif not any(named) and searchable and fits_choice(topic := f'forget "{searchable}"'):  # 1984 may be a book
        choices.insert(0, Choice(f"Look for {quote_typed(searchable, 14)}", topic))
    return chat_page(*missing[:8], *more_line(len(missing) - 8), choices=[choices])


def more_line(number: int) -> list[ChatLine]:
    """Return the last line of a shortened list."""
    return [ChatLine(f"and {number:,} more", "aside")] if number > 0 else []


def notice_lines(notices: Iterable[str]) -> list[ChatLine]:
    """Return the notices as lines."""
    return [ChatLine(fit_cells(notice, 3 * WIDTH), "aside") for notice in list(dict.fromkeys(notices))[:2]]


# undo


def chat_undo(asker: Asker, argument: str) -> ChatPage:
    """Undo the last change, the last change of one record, or a run of changes."""
    if not asker.memory.exists:
        return empty_memory_page(asker)
    if not argument:
        entry = _latest_entry(asker.memory)
        if entry is not None and _is_setting(asker.memory.history(limit=_MOST_RECENT), entry):
            return _setting_changed(asker, entry)
        return _NOTHING if entry is None else _undo_page(asker, entry.run or entry.seq)
    if argument.startswith("run-"):
        return _undo_page(asker, argument[:40])
    argument, _, expected = argument.partition(" =")
    numbers = numbers_in(argument)
    if not numbers:
        return usage_page("Which change should I undo? The last one, or the last one of a number.", "undo 12")
    record = record_by_number(asker.memory, numbers[0])
    if record is None or (expected and short_digest(record.id) != f"={expected}"):
        return unknown_number_page(numbers[0])
    entry = _latest_entry(asker.memory, record)
    return _NOTHING if entry is None else _undo_page(asker, entry.seq)


_NOTHING = chat_page("There is nothing to undo.")


def _latest_entry(memory: Memory, record: Record | None = None) -> JournalEntry | None:
    about = None if record is None else record.id
    for limit in (_MOST_RECENT, None):
        if found := last_change(reversed(memory.history(about, limit=limit))):
            return found
    return None


def _is_setting(recent: Sequence[JournalEntry], entry: JournalEntry) -> bool:
    """Return True if a setting was changed or a channel linked after this entry: "undo" may be meant for that."""
    return any(later.seq > entry.seq and (later.op in _SETTINGS or later.actor.startswith("link:")) for later in recent)


def _setting_changed(asker: Asker, entry: JournalEntry) -> ChatPage:
    record = asker.memory.get(entry.record_id)
    number = asker.numbers([record]).get(record.id)
    before = f"undo {entry.run}" if entry.run else f"undo {number} {short_digest(record.id)}"
    run = asker.memory.history(run=entry.run) if entry.run else [entry]
    records = {one.record_id: one.after for one in run if one.after is not None}
    return chat_page(
        "Your last change was a setting, such as pause or trends, or a link. Change it back with the same command.",
        *_list_with_heading(asker, "Or undo the change of your memory before that:", list(records.values())),
        choices=[[Choice("Undo that", before), Choice("Keep", "keep")]],
    )


def _undo_page(asker: Asker, target: int | str) -> ChatPage:
    acting = asker.memory.acting(run=new_id("run"))
    try:
        with acting.batch() as memory:
            outcome = memory.undo(target)
            last = memory.history(limit=1)[0]
        entries, notices, kept = list(outcome.entries), outcome.notices, 0
    except NotFoundError:
        return _NOTHING
    except UndoError:
        with acting.batch() as memory:  # a new batch: the first one was rolled back
            entries, kept = _one_by_one(memory, target)
            last = memory.history(limit=1)[0]
        notices = ()
    if not entries:
        return _not_undone(asker.memory, target)
    back = [e.before for e in entries if e.before is not None and asker.is_active(e.before)]
    gone = [e.after for e in entries if e.after is not None and e.before not in back]
    return chat_page(
        ChatLine("Undone.", "good"),
        *_list_with_heading(asker, "I remember again:", back),
        *_list_with_heading(asker, "I no longer remember:", gone),
        *([ChatLine("The rest was changed again since then and stays.", "aside")] if kept else ()),
        *notice_lines(notices),
        choices=[[Choice("Undo that", f"undo {last.run}")]],
    )


def _one_by_one(memory: Memory, target: int | str) -> tuple[list[JournalEntry], int]:
    """Undo what can be undone of a run that cannot be undone as a whole, and count the rest."""
    done: list[JournalEntry] = []
    kept = 0
    for entry in reversed(memory.history(run=target)) if isinstance(target, str) else ():
        if entry.after is not None:
            try:
                done += memory.undo(entry.seq).entries
            except UndoError:
                kept += 1
    return done, kept


def _list_with_heading(asker: Asker, heading: str, records: list[Record]) -> list[ChatLine]:
    shown = [record for record in records if record.kind != "scratch"]
    if not shown:
        return []
    return [ChatLine(heading), *item_lines(asker, shown[:_MOST_LISTED]), *more_line(len(shown) - _MOST_LISTED)]


def _not_undone(memory: Memory, target: int | str) -> ChatPage:
    run = [e.seq for e in memory.history(run=target)] if isinstance(target, str) else [target]
    undone = {entry.undoes for entry in memory.history()}
    if set(run) <= undone:
        return chat_page("That was already undone.")
    return chat_page(ChatLine("That can no longer be undone: part of it was changed or erased since.", "bad"))
