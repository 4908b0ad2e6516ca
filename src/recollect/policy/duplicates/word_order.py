"""The meaning of word order, and where it is free.

A statement here is a sequence of forms and marks: "@in" opens a part and stands for a preposition that may be missing,
"^from" opens a part and must not, "," joins the items of a list, "|" ends a part. `normalize_order` gives one order to
all that say the same; `order_agrees` also tries the readings that a single order cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.policy.duplicates.vocabulary import EVERY, MOVABLE

__all__ = ["normalize_order", "order_agrees"]


def normalize_order(sequence: tuple[str, ...]) -> tuple[str, ...]:
    """Return the forms in a canonical order, where another order would say the same.

    Parts opened by a preposition, list items and words for the time may stand anywhere. What is left, the core, keeps
    its order: who manages whom depends on it.
    """
    core: list[str] = []
    moved: list[str] = []
    part: list[str] = core
    opened: list[list[str]] = []
    plain = True
    times = [at for at, form in enumerate(sequence) if form in MOVABLE]
    if times and times[-1] - times[0] >= len(times):
        times = []  # "runs on Monday and swims on Friday": each belongs to its own verb
    free = {*times, *(at - 1 for at in times if at and sequence[at - 1] in EVERY)}
    for at, form in enumerate(sequence):
        first = form[0]
        if first == "@" or first == "^":
            part = [form]
            opened.append(part)
            plain = False
        elif form == "|":
            part = core
        elif at in free:
            if part and part[0][0] == "^":
                part.append(form)
            else:
                moved.append(form)
                if part is not core and len(part) == 1:
                    part = core  # "on weekends" is complete; what follows is not part of it
        elif form == "," and len(opened) == 1 and not core and sequence[0] == opened[0][0]:
            part = core  # "In Berlin, lives with two cats"
        else:
            part.append(form)
            if first == ",":
                plain = False
    if plain and not moved:
        return tuple(core)
    parts = sorted([_sorted_list(part) for part in opened if len(part) > 1 or part[0][0] == "^"])
    return (*_sorted_list(core), *[form for part in parts for form in part], *sorted(moved))


def _sorted_list(part: list[str]) -> list[str]:
    """Return a part with the items of its list sorted, if it ends or begins with a list of single words."""
    if "," not in part:
        return part
    items = _list_items(part)
    if len(items) < 2 or any(len(item) > 1 for item in items[1:-1]):
        return [form for item in items for form in item]
    head, middle, tail = items[0], [item[0] for item in items[1:-1]], items[-1]
    if len(tail) == 1:
        return [*head[:-1], *sorted([head[-1], *middle, tail[0]])]
    if len(head) == 1:
        return [*sorted([head[0], *middle, tail[0]]), *tail[1:]]
    return [form for item in items for form in item]


def order_agrees(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Return True if two sequences of the same forms give each of them the same role.

    Different prepositions are ignored: the caller found them compatible.
    """
    if normalize_order(a) == normalize_order(b):
        return True
    plain_a = [form for form in a if form[0] not in "@,|"]
    plain_b = [form for form in b if form[0] not in "@,|"]
    if plain_a == plain_b:
        return True
    for one in _openings(a):
        for two in _openings(b):
            if normalize_order(one) == normalize_order(two):
                return True
    return _lists_agree(a, b)


def _openings(sequence: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the readings of a statement that opens with a preposition and no comma, by where its part may end."""
    start = 0
    while start < len(sequence) and (sequence[start] in MOVABLE or sequence[start] in EVERY):
        start += 1
    if start == len(sequence) or sequence[start][0] not in "@^":
        return [sequence]
    # After one to four words; all readings of one statement meet all of the other, so they must be few.
    ends = range(start + 2, min(len(sequence), start + 6))
    return [sequence, *((*sequence[:at], "|", *sequence[at:]) for at in ends)]


def _lists_agree(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Return True if two statements differ only in the order of a list's items, which may have several words."""
    if "," not in a or "," not in b:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    # Words before and after: then each item may belong to another verb.
    if start and end and a[len(a) - end][0] not in "@^":
        return False
    return sorted(_list_items(a[start : len(a) - end])) == sorted(_list_items(b[start : len(b) - end]))


def _list_items(forms: Iterable[str]) -> list[list[str]]:
    items: list[list[str]] = [[]]
    for form in forms:
        if form == ",":
            items.append([])
        else:
            items[-1].append(form)
    return [item for item in items if item]
