"""The commands forget, which lists what would go and asks first, and undo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recollect.errors import NotFoundError, UndoError
from recollect.memory.journal import last_change
from recollect.memory.memory import Memory
from recollect.records import JournalEntry, Record, new_id
from recollect.surfaces.chat.page import Choice, Line, Page, fits_choice, page
from recollect.surfaces.chat.show_commands import no_such_number, nothing_yet, usage
from recollect.surfaces.chat.speaker import (
    Asker,
    as_listed,
    bring_back,
    called,
    counted,
    item,
    items,
    mark,
    numbers_in,
    told,
)
from recollect.surfaces.chat.text_fit import WIDTH, fitted, quoted

_MOST_LISTED = 8
_MOST_NAMED = 100
_MOST_CLOSE = 4
_MOST_RECENT = 200
_MOST_CHARACTERS = 500
_CONFIRMED = re.compile(r"(?P<numbers>[\d,]+) (?P<mark>=\w+)(?: (?P<topic>.+))?")
_SETTINGS = frozenset({"pause", "incognito", "resume", "consent", "withdraw"})
_EVERYTHING = frozenset({"all", "everything", "it all", "all of it", "me"})

_Numbered = list[tuple[int, Record]]


def forget(asker: Asker, argument: str) -> Page:
    """Forget records by number at once; for a topic, list what would go and ask."""
    if not argument:
        return usage("What should I forget?", "forget tea")
    if not asker.memory.exists:
        return nothing_yet(asker)
    if confirmed := _CONFIRMED.fullmatch(argument):
        return _forget(asker, numbers_in(confirmed["numbers"]), confirmed["mark"], confirmed["topic"] or "")
    if numbers := numbers_in(argument):
        return _forget(asker, numbers, None, "", searchable=argument)
    if argument.casefold() in _EVERYTHING:
        return page(
            "To permanently erase everything, use /memory clear.",
            Line("It asks first.", "aside"),
            choices=[[Choice("See what would go", "clear")]],
        )
    topic = argument[:_MOST_CHARACTERS].strip('"“”„ ')
    return _ask(asker, topic, _matching(asker, topic))


def further(asker: Asker, argument: str) -> Page:
    """List more about a topic, after the record with this number: ``next 24 tea``."""
    number, _, topic = argument.partition(" ")
    if not topic or not numbers_in(number):
        return forget(asker, argument)
    matching = _matching(asker, topic)
    last = called(asker.memory, numbers_in(number)[0])
    if last is not None:
        behind = _order((numbers_in(number)[0], last))
        matching = [one for one in matching if _order(one) > behind]
    return _ask(asker, topic, matching, is_rest=True) if matching else page(f"That was all about {quoted(topic)}.")


def keep(asker: Asker, argument: str) -> Page:
    """Cancel: nothing changes."""
    return page(Line("OK, nothing was changed.", "good"))


def _matching(asker: Asker, topic: str) -> _Numbered:
    found = asker.speaking_of(topic)
    numbers = asker.numbers(found)
    return sorted(((numbers[r.id], r) for r in found if r.id in numbers), key=_order)


def _order(one: tuple[int, Record]) -> tuple[bool, int]:
    """Return a sort key: memories before messages, the newest first."""
    return one[1].kind == "message", -one[0]


def _ask(asker: Asker, topic: str, matching: _Numbered, *, is_rest: bool = False) -> Page:
    if not matching:
        return _close(asker, topic)
    some = matching[:_MOST_LISTED]
    while len(some) > 1 and not fits_choice(_command(some)):
        some = some[:-1]
    left = len(matching) - len(some)
    title = f"{counted(len(matching), 'thing', 'things')}{' more' if is_rest else ''} about {quoted(topic)}"
    title += f", the first {len(some)}:" if left else ":"
    choices = [[_forgetting(some, topic if left else ""), Choice("Keep", "keep")]]
    if left and fits_choice(following := f"next {some[-1][0]} {topic}"):
        choices.append([Choice(f"Show {counted(left, 'other', 'others')} ›", following)])
    return page(
        Line(title, "title"),
        *(item(told(r), n, rows=2) for n, r in some),
        "Forget it?" if len(some) == 1 else "Forget them?",
        choices=choices,
    )


def _forgetting(some: _Numbered, topic: str = "") -> Choice:
    label = "Forget this" if len(some) == 1 else f"Forget these {len(some)}"
    with_topic = f"{_command(some)} {topic}"
    return Choice(label, with_topic if topic and fits_choice(with_topic) else _command(some), danger=True)


def _command(some: _Numbered) -> str:
    """Return the command that forgets exactly these records in their current state."""
    return f"forget {','.join(str(number) for number, _ in some)} {as_listed(*(record for _, record in some))}"


def _close(asker: Asker, topic: str) -> Page:
    """Return near matches, because nothing contains these exact words."""
    hits = [] if asker.memory.mode == "incognito" else asker.memory.search(topic, limit=_MOST_CLOSE)
    numbers = asker.numbers(hit.record for hit in hits)
    close = [(numbers[hit.record.id], hit.record) for hit in hits if hit.record.id in numbers]
    lead = Line(f"I remember nothing about {quoted(topic)}.")
    if not close:
        return page(lead, choices=[[Choice("Show everything", "show")]])
    choices = [replace(_forgetting([one]), label=f"Forget #{one[0]}") for one in close]
    return page(
        lead,
        Line("Did you mean one of these?"),
        *(item(told(record), number, rows=2) for number, record in close),
        choices=[choices[:2], choices[2:], [Choice("Keep", "keep")]],
    )


def _forget(asker: Asker, numbers: Sequence[int], expected: str | None, topic: str, searchable: str = "") -> Page:
    """Forget records by number. If they were listed before, do so only if none has changed since."""
    if len(numbers) > _MOST_NAMED:
        return page(Line(f"That is too many. Give at most {_MOST_NAMED} numbers at a time.", "bad"))
    run = new_id("run")
    with asker.memory.acting(run=run).batch() as memory:
        named = [(number, called(memory, number)) for number in numbers]
        active = [(number, record) for number, record in named if record is not None and asker.is_active(record)]
        is_as_listed = expected in (None, as_listed(*(record for _, record in active)))
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
    return page(
        Line(done, "good"),
        *(item(told(record), number) for number, record in shown),
        *and_more(len(active) - len(shown)),
        *missing[:3],
        *remarks(notices),
        choices=choices,
    )


def _missing(number: int, record: Record | None) -> Line:
    if record is None:
        return Line(f"There is no #{number}.", "bad")
    if record.status == "superseded":
        return Line(f"#{number} was replaced by something newer.", "bad")
    return Line(f"#{number} was already {'forgotten' if record.status == 'archived' else 'removed'}.", "bad")


def _ask_again(asker: Asker, named: list[tuple[int, Record | None]], active: _Numbered, missing: list[Line]) -> Page:
    if all(record is not None and record.status == "archived" for _, record in named):  # pressed twice
        last = _last(asker.memory, named[0][1])
        back = [Choice("Undo", f"undo {last.run}")] if last is not None and last.run else []
        return page("This is already forgotten.", choices=[back])
    lines = [Line("Your memory has changed since I listed this, so I forgot nothing.", "bad"), *missing[:3]]
    if not active:
        return page(*lines)
    shown = active[:_MOST_LISTED]
    lines += [Line("This is the current list:"), *(item(told(record), number, rows=2) for number, record in shown)]
    return page(*lines, choices=[[_forgetting(shown), Choice("Keep", "keep")]])


def _nothing_forgotten(asker: Asker, numbers: Sequence[int], missing: list[Line], searchable: str) -> Page:
    choices = [Choice("Show everything", "show")]
    named = [called(asker.memory, number) for number in numbers]
    if len(named) == 1 and named[0] is not None and named[0].status == "archived":
        choices.insert(0, bring_back(numbers[0], named[0]))
    elif not any(named) and searchable and fits_choice(topic := f'forget "{searchable}"'):  # 1984 may be a book
        choices.insert(0, Choice(f"Look for {quoted(searchable, 14)}", topic))
    return page(*missing[:8], *and_more(len(missing) - 8), choices=[choices])


def and_more(number: int) -> list[Line]:
    """Return the last line of a shortened list."""
    return [Line(f"and {number:,} more", "aside")] if number > 0 else []


def remarks(notices: Iterable[str]) -> list[Line]:
    """Return the notices as lines."""
    return [Line(fitted(notice, 3 * WIDTH), "aside") for notice in list(dict.fromkeys(notices))[:2]]


# undo


def undo(asker: Asker, argument: str) -> Page:
    """Undo the last change, the last change of one record, or a run of changes."""
    if not asker.memory.exists:
        return nothing_yet(asker)
    if not argument:
        entry = _last(asker.memory)
        if entry is not None and _is_setting(asker.memory.history(limit=_MOST_RECENT), entry):
            return _setting_changed(asker, entry)
        return _NOTHING if entry is None else _take_back(asker, entry.run or entry.seq)
    if argument.startswith("run-"):
        return _take_back(asker, argument[:40])
    argument, _, expected = argument.partition(" =")
    numbers = numbers_in(argument)
    if not numbers:
        return usage("Which change should I undo? The last one, or the last one of a number.", "undo 12")
    record = called(asker.memory, numbers[0])
    if record is None or (expected and mark(record.id) != f"={expected}"):
        return no_such_number(numbers[0])
    entry = _last(asker.memory, record)
    return _NOTHING if entry is None else _take_back(asker, entry.seq)


_NOTHING = page("There is nothing to undo.")


def _last(memory: Memory, record: Record | None = None) -> JournalEntry | None:
    """Return the last change of the memory, or of one record."""
    about = None if record is None else record.id
    for limit in (_MOST_RECENT, None):
        if found := last_change(reversed(memory.history(about, limit=limit))):
            return found
    return None


def _is_setting(recent: Sequence[JournalEntry], entry: JournalEntry) -> bool:
    """Return True if a setting was changed after this entry: "undo" may be meant for the setting."""
    return any(later.seq > entry.seq and later.op in _SETTINGS for later in recent)


def _setting_changed(asker: Asker, entry: JournalEntry) -> Page:
    record = asker.memory.get(entry.record_id)
    number = asker.numbers([record]).get(record.id)
    before = f"undo {entry.run}" if entry.run else f"undo {number} {mark(record.id)}"
    return page(
        "Your last change was a setting, such as pause or trends. Change it back with the same command.",
        Line("Or undo the change of your memory before that:", "aside"),
        *items(asker, [record]),
        choices=[[Choice("Undo that", before), Choice("Keep", "keep")]],
    )


def _take_back(asker: Asker, target: int | str) -> Page:
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
    return page(
        Line("Undone.", "good"),
        *_listed(asker, "I remember again:", back),
        *_listed(asker, "I no longer remember:", gone),
        *([Line("The rest was changed again since then and stays.", "aside")] if kept else ()),
        *remarks(notices),
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


def _listed(asker: Asker, heading: str, records: list[Record]) -> list[Line]:
    shown = [record for record in records if record.kind != "scratch"]
    if not shown:
        return []
    return [Line(heading), *items(asker, shown[:_MOST_LISTED]), *and_more(len(shown) - _MOST_LISTED)]


def _not_undone(memory: Memory, target: int | str) -> Page:
    run = [e.seq for e in memory.history(run=target)] if isinstance(target, str) else [target]
    undone = {entry.undoes for entry in memory.history()}
    if set(run) <= undone:
        return page("That was already undone.")
    return page(Line("That can no longer be undone: part of it was changed or erased since.", "bad"))
