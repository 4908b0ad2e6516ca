"""Recognising a known fact in other words.

Two statements about one person are compared by rules: `relation` calls them SAME only when every word that is left
after `Statement.of` has its counterpart, and the order does not give it another role. Anything a rule does not know
counts as a difference: taking two facts for one loses a memory, taking one for two only keeps a second copy. A
translation is recognised only where all its words are in the tables of `vocabulary`.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from recollect.policy.duplicates.attributes import attribute_of
from recollect.policy.duplicates.statements import Form, Statement
from recollect.policy.duplicates.vocabulary import CONFUSABLE
from recollect.policy.duplicates.word_order import order_agrees
from recollect.policy.duplicates.words import PAST, ComparedWord, skeleton

__all__ = ["Relation", "Statement", "relation", "rewords", "signature"]


class Relation(enum.Enum):
    """The relation of a new statement to a known one."""

    SAME = "same"
    NEAR = "near"
    DIFFERENT = "different"


def signature(content: str, key: str | None = None) -> str:
    """Return the canonical form of a statement: equal signatures mean the SAME statement, in any process.

    It still contains what the statement says. To keep it after an erasure, use a keyed hash.
    """
    return Statement.of(content, key).signature


def relation(new: Statement, known: Statement) -> Relation:
    """Return SAME, NEAR or DIFFERENT; the order of the two does not matter.

    With one key on both, the values are compared. Under two keys, or with one key, the same value is the SAME only if
    it says so by itself, or if both keys name one attribute; see `attributes`.
    """
    if new.signature == known.signature and new.signature:
        return Relation.SAME
    if new.key is not None and known.key is not None:
        if any(one.spoken and two.states and _same(one.spoken, two.value) for one, two in ((new, known), (known, new))):
            return Relation.SAME if _share_attribute(new, known) else Relation.NEAR
        if new.key != known.key:
            if not _same(new.value, known.value):
                return Relation.DIFFERENT
            return Relation.SAME if _share_attribute(new, known) else Relation.NEAR
        a, b = new.value, known.value
    else:
        a, b = new.whole, known.whole
        for keyed, other in ((new, b), (known, a)):
            if keyed.spoken is not None and _same(keyed.spoken, other):
                return Relation.SAME
            if keyed.states and attribute_of(keyed.key or "").is_plain(keyed.said) and _same(keyed.value, other):
                return Relation.SAME
    if _same(a, b):
        return Relation.SAME
    return Relation.NEAR if _share_topic(a, b) else Relation.DIFFERENT


def _share_attribute(a: Statement, b: Statement) -> bool:
    """Return True if one value under two keys is one fact."""
    one, two = attribute_of(a.key or ""), attribute_of(b.key or "")
    if one == two and one.names:
        return True
    stated = all(one.states or one.spoken is not None for one in (a, b)) and (a.states or b.states)
    return stated and one.allows(two, a.said | b.said)


def rewords(new: Statement, known: Statement) -> bool:
    """Return True if a statement probably says all that another one says, in part in other words.

    This is a guess, for two accounts of one message: most words are shared, and each missing one may have its
    counterpart among the new ones.
    """
    if relation(new, known) is Relation.SAME:
        return True
    told, said = known.whole.stems, new.whole.stems
    missing = told - said
    negations = [sum(form[0] == "!" for form in one.whole.forms) for one in (new, known)]
    return (
        len(told & said) >= 0.6 * len(told)
        and len(missing) <= len(new.value.stems - told)
        and negations[0] == negations[1]
    )


def _share_topic(a: Form, b: Form) -> bool:
    """Return True if they share most of their stems, or all of the shorter one's if it has several."""
    shared = len(a.stems & b.stems)
    if not shared:
        return False
    few, many = sorted((len(a.stems), len(b.stems)))
    return shared >= 0.6 * (few + many) / 2 or (few >= 2 and shared == few)


def _same(a: Form, b: Form) -> bool:
    """Return True if they say the same. Cheap checks come first: most pairs end there."""
    if len(a.bag) != len(b.bag):
        return False
    # One emoji beside a sentence is decoration; a different one, or one beside a single word, is part of the content.
    if a.emoji != b.emoji and ((a.emoji and b.emoji) or len(a.bag) < 2):
        return False
    if not _genders_agree(a, b):
        return False
    if a.order == b.order:
        return bool(a.bag or a.emoji) and (a.names == b.names or _names_agree(a, b))
    swap: dict[str, str] = {}
    if a.bag != b.bag:
        found = _counterparts(a, b)
        if found is None:
            return False
        swap = found
    if a.links != b.links and not _compatible(a.links, b.links):
        return False
    # With a swap, a name may be in another script, where its ending cannot be compared.
    if a.names != b.names and not swap and not _names_agree(a, b):
        return False
    sequence = tuple(swap.get(form, form) for form in a.sequence) if swap else a.sequence
    return order_agrees(sequence, b.sequence)


def _genders_agree(a: Form, b: Form) -> bool:
    """Return True if the genders match; a statement that does not say he or she agrees with both."""
    return a.genders == b.genders or not a.genders or not b.genders


def _compatible(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Accept an "in", an "as" or a possessive that only one has; the rest must be the same."""
    more, less = Counter(a), Counter(b)
    if more.total() < less.total():
        more, less = less, more
    return not (less - more) and (more - less).keys() <= {"in", "as", "s"}


def _names_agree(a: Form, b: Form) -> bool:
    """Compare names as written where they are declined: another ending is another role (Богдан, Богданом)."""
    written_a = {word.surface for word in a.words}
    written_b = {word.surface for word in b.words}
    return a.names <= written_b and b.names <= written_a


def _counterparts(a: Form, b: Form) -> dict[str, str] | None:
    """Pair the words without an equal, by script or as a single typing error; None if one has no counterpart.

    The result maps forms of `a` to forms of `b`.
    """
    right = list(b.bag)
    left: list[str] = []
    for form in a.bag:
        if form in right:
            right.remove(form)
        elif len(left) == 3:
            return None  # this many differences are not an accident
        else:
            left.append(form)
    words_a = dict(zip(a.forms, a.words, strict=True))
    words_b = dict(zip(b.forms, b.words, strict=True))
    slips = 0
    found: dict[str, str] = {}
    for form in left:
        one = words_a[form]
        for other in right:
            two = words_b[other]
            if (form[0] == "!") is not (other[0] == "!") or form.endswith(PAST) != other.endswith(PAST):
                continue
            if one.known and two.known:
                continue
            if one.latin != two.latin and len(one.surface) > 2:  # a shorter one sounds like too many others
                if skeleton(one.surface) != skeleton(two.surface):
                    continue
            elif one.known or two.known or slips or not _slip(one, two):
                continue
            else:
                slips += 1
            found[form] = other
            right.remove(other)
            break
        else:
            return None
    return found


@lru_cache(maxsize=1)
def _distance() -> Callable[..., int]:
    from rapidfuzz.distance import OSA  # compiled code: loaded only to check for a typo

    return OSA.distance


_VOWELS = frozenset("aeiouy")


def _slip(one: ComparedWord, two: ComparedWord) -> bool:
    """Return True if two long words are the same with a typing error inside.

    Beginnings and ends must agree: that is where words of one family differ (Christian, Christina). A name has to be
    longer, and no letter of it may be replaced: Freiburg is not Freiberg.
    """
    a, b = one.surface, two.surface
    short, long = sorted((a, b), key=len)
    if len(short) < 7 or len(long) - len(short) > 1 or a[:3] != b[:3] or a[-1] != b[-1]:
        return False
    if a[-2:] != b[-2:] and (len(short) < 10 or len(long) == len(short)):
        return False
    if not a.isalpha() or not b.isalpha() or _distance()(a, b, score_cutoff=1) != 1:
        return False
    # "painting" and "panting": an ending adds letters, not evidence.
    size = len(short) - (3 if a.endswith("ing") else 2 if a.endswith("ed") else 0)
    if frozenset((a, b)) in CONFUSABLE:
        return False
    if one.capital or two.capital:
        return len(short) >= 11 and (len(long) > len(short) or sorted(a) == sorted(b))
    if len(long) > len(short):
        at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
        doubled = long[at] == long[at - 1] or long[at] == long[at + 1 : at + 2]
        return size >= (7 if doubled else 8)
    if sorted(a) == sorted(b):
        return size >= 7
    return size >= 9 and all(x == y or (x in _VOWELS and y in _VOWELS) for x, y in zip(a, b, strict=True))
