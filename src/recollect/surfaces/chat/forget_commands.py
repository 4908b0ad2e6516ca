"""The commands that take something out and bring it back: forget, which lists and asks first, and undo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recollect.errors import NotFoundError, UndoError
from recollect.memory.journal import last_change
from recollect.memory.memory import Memory
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
    """Things by number are forgotten at once; of a topic it is listed first what would go."""
    if not argument:
        return usage_page("What shall I forget?", "forget tea")
    if not asker.memory.exists:
        return empty_memory_page(asker)
    if confirmed := _CONFIRMED.fullmatch(argument):
        return _forget(asker, numbers_in(confirmed["numbers"]), confirmed["mark"], confirmed["topic"] or "")
    if numbers := numbers_in(argument):
        return _forget(asker, numbers, None, "", searchable=argument)
    if argument.casefold() in _EVERYTHING:
        return chat_page(
            "Everything is erased for good with /memory clear.",
            ChatLine("It asks before it does.", "aside"),
            choices=[[Choice("See what would go", "clear")]],
        )
    topic = argument[:_MOST_CHARACTERS].strip('"“”„ ')
    return _ask_what_goes(asker, topic, _matching(asker, topic))


def chat_next(asker: Asker, argument: str) -> ChatPage:
    """What else there is about a topic, after the one with this number: ``next 24 tea``."""
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
    """The person thought better of it."""
    return chat_page(ChatLine("Fine, nothing was changed.", "good"))


def _matching(asker: Asker, topic: str) -> _Numbered:
    found = asker.speaking_of(topic)
    numbers = asker.numbers(found)
    return sorted(((numbers[r.id], r) for r in found if r.id in numbers), key=_order)


def _order(one: tuple[int, Record]) -> tuple[bool, int]:
    """What is remembered before what was only said, the newest first."""
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
    """Forgets exactly these, as they are now."""
    return f"forget {','.join(str(number) for number, _ in some)} {listing_digest(*(record for _, record in some))}"


def _suggest_close(asker: Asker, topic: str) -> ChatPage:
    """Nothing has these very words; perhaps something else was meant."""
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
    """Forget what is called so; if it was listed before, only if all of it is still as it was then."""
    if len(numbers) > _MOST_NAMED:
        return chat_page(ChatLine(f"That is a lot: {_MOST_NAMED} numbers at once, please, and not more.", "bad"))
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
    return ChatLine(f"#{number} was {'forgotten' if record.status == 'archived' else 'removed'} already.", "bad")


def _ask_again(
    asker: Asker, named: list[tuple[int, Record | None]], active: _Numbered, missing: list[ChatLine]
) -> ChatPage:
    if all(record is not None and record.status == "archived" for _, record in named):  # pressed twice
        last = _latest_entry(asker.memory, named[0][1])
        back = [Choice("Undo", f"undo {last.run}")] if last is not None and last.run else []
        return chat_page("This is forgotten already.", choices=[back])
    lines = [ChatLine("Your memory has changed since I listed this, so I have forgotten nothing.", "bad"), *missing[:3]]
    if not active:
        return chat_page(*lines)
    shown = active[:_MOST_LISTED]
    lines += [
        ChatLine("This is it now:"),
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
    """The end of a list that was cut."""
    return [ChatLine(f"and {number:,} more", "aside")] if number > 0 else []


def notice_lines(notices: Iterable[str]) -> list[ChatLine]:
    """What came up on the way."""
    return [ChatLine(fit_cells(notice, 3 * WIDTH), "aside") for notice in list(dict.fromkeys(notices))[:2]]


# undo


def chat_undo(asker: Asker, argument: str) -> ChatPage:
    """Take back the last change, the last change of one thing, or a run of changes."""
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
        return usage_page("Which change shall I take back? The last one, or the last one of a number.", "undo 12")
    record = record_by_number(asker.memory, numbers[0])
    if record is None or (expected and short_digest(record.id) != f"={expected}"):
        return unknown_number_page(numbers[0])
    entry = _latest_entry(asker.memory, record)
    return _NOTHING if entry is None else _undo_page(asker, entry.seq)


_NOTHING = chat_page("There is nothing to take back.")


def _latest_entry(memory: Memory, record: Record | None = None) -> JournalEntry | None:
    """The last change of anything, or of one thing."""
    about = None if record is None else record.id
    for limit in (_MOST_RECENT, None):
        if found := last_change(reversed(memory.history(about, limit=limit))):
            return found
    return None


def _is_setting(recent: Sequence[JournalEntry], entry: JournalEntry) -> bool:
    """Whether the person changed a setting after this change: then "undo" may be meant for that."""
    return any(later.seq > entry.seq and later.op in _SETTINGS for later in recent)


def _setting_changed(asker: Asker, entry: JournalEntry) -> ChatPage:
    record = asker.memory.get(entry.record_id)
    number = asker.numbers([record]).get(record.id)
    before = f"undo {entry.run}" if entry.run else f"undo {number} {short_digest(record.id)}"
    return chat_page(
        "The last thing you changed was a setting, such as pause or trends. Change it back in the same way.",
        ChatLine("Or take back the change of your memory before that:", "aside"),
        *item_lines(asker, [record]),
        choices=[[Choice("Take that back", before), Choice("Keep", "keep")]],
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
        with acting.batch() as memory:  # another: what the first one did is gone
            entries, kept = _one_by_one(memory, target)
            last = memory.history(limit=1)[0]
        notices = ()
    if not entries:
        return _not_undone(asker.memory, target)
    back = [e.before for e in entries if e.before is not None and asker.is_active(e.before)]
    gone = [e.after for e in entries if e.after is not None and e.before not in back]
    return chat_page(
        ChatLine("Taken back.", "good"),
        *_list_with_heading(asker, "I remember again:", back),
        *_list_with_heading(asker, "I no longer remember:", gone),
        *([ChatLine("The rest of it was changed again since, and stays.", "aside")] if kept else ()),
        *notice_lines(notices),
        choices=[[Choice("Undo that", f"undo {last.run}")]],
    )


def _one_by_one(memory: Memory, target: int | str) -> tuple[list[JournalEntry], int]:
    """What can be taken back of a run that cannot be as a whole, and how much cannot."""
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
        return chat_page("That was taken back already.")
    return chat_page(ChatLine("That can no longer be taken back: something in it was changed or erased since.", "bad"))
