"""Statements prepared for comparison: `Statement.of`.

Case, punctuation, inflection, script, contractions, number words and the usual ways to name the speaker no longer
matter in it; negation, tense and who does what to whom still do. `comparison` decides when two statements are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recollect import text
from recollect.policy.duplicates.attributes import attribute_of, makes_statement, with_implied
from recollect.policy.duplicates.vocabulary import (
    CONTENT,
    CURRENCIES,
    DROPPED,
    EMOTICON,
    FOND,
    FRAME,
    GENDERS,
    JOIN,
    LINK,
    MOVABLE,
    NEGATION,
    OPENER,
    PERSON,
    POSSESSIVE,
    SPOKEN,
    UNSPACED_PERSON,
    compiled,
    phrases,
)
from recollect.policy.duplicates.word_order import normalize_order
from recollect.policy.duplicates.words import (
    COMPLETING,
    PAST,
    ComparedWord,
    compared_words,
    date_or_time,
    english_lemma,
    is_date,
    skeleton,
)

__all__ = ["Form", "Statement"]


class Form(NamedTuple):
    """A text in comparable form. The form of a negated word begins with "!"."""

    sequence: tuple[str, ...]  # forms and marks in order, as `word_order` reads them
    # The same with declined nouns as written: their endings say who does what to whom.
    exact: tuple[str, ...]
    order: tuple[str, ...]  # the forms in an order that does not depend on the writer's, where that is safe
    bag: tuple[str, ...]  # the forms that must all have a counterpart, sorted
    links: tuple[str, ...]  # prepositions that may be missing, sorted
    words: tuple[ComparedWord, ...]  # the words behind the forms, in order
    forms: tuple[str, ...]  # the forms of these words, in the same order
    stems: frozenset[str]
    names: frozenset[str]  # as written, in languages that decline names
    emoji: tuple[str, ...]
    genders: tuple[str, ...]  # his or her after the first word may be somebody else's


@dataclass(frozen=True, slots=True)
class Statement:
    """A text prepared for comparison; worth keeping when it is compared more than once."""

    key: str | None
    terms: tuple[str, ...]  # the terms an index finds it by
    signature: str  # see `comparison.signature`
    value: Form  # the content alone
    whole: Form  # "key: content", or the content where there is no key
    spoken: Form | None  # "lives in content", for keys that are expressed with a verb
    states: bool = False  # the content of a key says something by itself, whatever the key

    @classmethod
    def of(cls, content: str, key: str | None = None) -> Statement:
        value = _form(content)
        if not key:
            return cls(None, tuple(sorted(value.stems)), _sign(value), value, value, None)
        name = text.fold(key).replace("-", "_").replace(" ", "_").strip("_")
        label = name.replace("_", " ")
        whole = _with_label(label, value)
        spoken = _form(f"{SPOKEN[name]} {content}") if name in SPOKEN else None
        stems = whole.stems | spoken.stems if spoken else whole.stems
        stems |= attribute_of(name).names  # other names of the attribute have them too
        return cls(name, tuple(sorted(stems)), _sign(whole), value, whole, spoken, makes_statement(content))

    @property
    def said(self) -> frozenset[str]:
        """The words of the content, for comparison with those of a key."""
        negated = {"not"} if any(form[0] == "!" for form in self.value.forms) else set()
        return with_implied(frozenset(english_lemma(word.surface) for word in self.value.words) | negated)

    def __repr__(self) -> str:
        return f"Statement({self.signature!r})"


def _sign(form: Form) -> str:
    order = form.order if form.exact is form.sequence else normalize_order(form.exact)
    return " ".join(order + form.emoji + form.genders)


def _with_label(label: str, value: Form) -> Form:
    """Return the form of "label: value", from the value's: its language and its verb are its own."""
    head = _form(label)
    sequence = head.sequence + value.sequence
    return value._replace(
        sequence=sequence,
        exact=sequence if value.exact is value.sequence else head.exact + value.exact,
        order=normalize_order(sequence),
        bag=tuple(sorted(head.bag + value.bag)),
        links=tuple(sorted(head.links + value.links)),
        words=head.words + value.words,
        forms=head.forms + value.forms,
        stems=head.stems | value.stems,
    )


def _form(content: str) -> Form:
    said = text.clean(content)
    if frame := compiled(FRAME).match(said):
        said = said[frame.end() :] or said
    if not said.isascii():
        said = compiled(UNSPACED_PERSON).sub("", said)
    tokens = text.tokens(said)
    code = text.detect_language([token.lower() for token in tokens] if "'" not in said else _split_elisions(tokens))
    found: list[ComparedWord] = []
    for token in tokens:
        found += compared_words(token, code)
    by_first_word = phrases()
    if not by_first_word.keys().isdisjoint([word.surface for word in found]):
        found = _with_phrases(found, by_first_word)
    form = _assemble_form(found, code)
    if not form.bag and not form.emoji and found:
        # Only small words ("I am"): then they are the content.
        small = [ComparedWord.content(w.surface or w.form, w.surface) for w in found if w.surface != ","]
        form = _assemble_form(small, code)
    return form


def _split_elisions(tokens: list[str]) -> list[str]:
    """Return tokens in lower case, with j'habite in two: its first half reveals the language."""
    return [piece for token in tokens for piece in (text.token_words(token) if "'" in token else (token.lower(),))]


def _with_phrases(
    found: list[ComparedWord], by_first_word: dict[str, list[tuple[tuple[str, ...], str]]]
) -> list[ComparedWord]:
    """Replace every known phrase by the one word it stands for."""
    result: list[ComparedWord] = []
    at = 0
    while at < len(found):
        for parts, name in by_first_word.get(found[at].surface, ()):
            if tuple(word.surface for word in found[at : at + len(parts)]) == parts:
                result.append(ComparedWord.content(name, name, stem=text.stem(name, "en"), known=True))
                at += len(parts)
                break
        else:
            result.append(found[at])
            at += 1
    return result


_NOT = ComparedWord.bare(CONTENT, "!", "!")  # a negation that belongs to no word


def _assemble_form(found: list[ComparedWord], code: str) -> Form:
    """Build the form in one pass over the words, each placed by its kind and by what came before."""
    sequence: list[str] = []
    words: list[ComparedWord] = []
    forms: list[str] = []
    links: list[str] = []
    emoji: list[str] = []
    names: list[str] = []
    genders: list[str] = []
    written: dict[int, str] = {}  # what stands in `exact`, by its place in the sequence
    verbed = False  # the verb was seen
    negated = False  # by a "not" that waits for its word
    french = False  # by "ne", whose other half is to follow
    used = False  # "used to": what follows is past
    fond = after_to = False  # after "likes", "likes to"
    led = False  # by a preposition
    currency: ComparedWord | None = None  # waits for its amount
    declined = code in ("uk", "ru", "pl")
    count = len(found)
    for at, word in enumerate(found):
        kind = word.kind
        if words and (word.plain[:1].isdigit() or word.surface in COMPLETING):
            joined = date_or_time(words[-1], word)
            if joined is not None and sequence[-1] in (",", forms[-1]):
                if sequence[-1] == ",":
                    sequence.pop()
                words[-1] = joined
                forms[-1] = sequence[-1] = ("!" if forms[-1][0] == "!" else "") + joined.form
                continue
        if kind == CONTENT:
            surface = word.surface
            if surface in CURRENCIES and at + 1 < count and found[at + 1].form[:1].isdigit():
                currency = word  # "$5" is read "5 dollars"
                continue
            if surface == "used" and at + 1 < count and found[at + 1].surface == "to":
                used = True
                continue
            form = word.form
            if not verbed and not led and form not in MOVABLE and not form[0].isdigit():
                form, verbed, opening = word.verb, True, True
            else:
                opening = False
            if surface in ("do", "does") and at + 1 < count and found[at + 1].kind == NEGATION:
                continue  # "does not" is "not"
            if surface == "pas" and french:
                continue
            if used:
                form = word.stem + PAST
                used = False
            elif fond and (after_to or word.surface.endswith("ing")):
                form = word.stem
            fond = word.plain in FOND
            after_to = False
            if negated:
                form = "!" + form
                negated = False
            if declined and not led and not word.known and not opening:
                written[len(sequence)] = surface
                if word.capital and at:
                    names.append(surface)
            led = False
            words.append(word)
            forms.append(form)
            sequence.append(form)
            if currency is not None:
                words.append(currency)
                forms.append(currency.form)
                sequence.append(currency.form)
                currency = None
        elif kind == LINK:
            led = True
            label = word.form
            if label == "for" and words and words[-1].plain == "work":
                label = "in"  # works at, works for: one employer
            elif label == "to":
                after_to = True
                if fond or used:
                    continue  # "likes to hike", "used to live": no direction
            links.append(label)
            sequence.append("@" + label)
        elif kind == JOIN:
            led = False
            if word.surface == "/" and words and words[-1].plain[0].isdigit():
                continue  # 3/4 is not a list
            if sequence and sequence[-1] != "," and not is_date(sequence[-1]):
                sequence.append(",")
        elif kind == DROPPED:
            if french and word.surface == "que":
                forms.append("only")  # "ne … que"
                words.append(ComparedWord.content("only", "que", known=True))
                sequence.append("only")
            elif words and word.surface in GENDERS:
                genders.append(GENDERS[word.surface])
        elif kind == PERSON:
            led = False
            if words and word.surface in GENDERS:
                genders.append(GENDERS[word.surface])
            if sequence:
                if sequence[-1] == ",":
                    sequence.pop()
                sequence.append("|")  # a subject: what follows belongs to no preposition before it
        elif kind == OPENER:
            led = True
            if word.form == "over" and any(w.plain == "prefer" for w in words):
                # "prefers Rust over Go", "prefers Rust to Go"
                links.append("to")
                sequence.append("@to")
                continue
            form = "^" + word.form
            words.append(word)
            forms.append(form)
            sequence.append(form)
        elif kind == NEGATION:
            if negated:  # "does not dislike" is neither of the two
                words.append(_NOT)
                forms.append("!")
                sequence.append("!")
            negated = True
            french = code == "fr"
        elif kind == EMOTICON:
            emoji.append(word.form)
        elif kind == POSSESSIVE:
            links.append("s")
    if negated:  # nothing followed: "no", "mag Kaffee nicht"
        words.append(_NOT)
        forms.append("!")
        sequence.append("!")
    while sequence and sequence[-1] in (",", "|"):
        sequence.pop()
    # A number at the start is something the person has: "12 years of Java".
    if len(words) > 2 and words[0].plain == "have" and forms[0] == "have" and words[1].plain[:1].isdigit():
        del words[0], forms[0]
        sequence.remove("have")
        written.clear()
    ordered = exact = tuple(sequence)
    if written:
        exact = tuple([written.get(at, form) for at, form in enumerate(ordered)])
    stems = {word.stem for word in words}
    for word in words:
        if word.capital or not word.latin:  # likely a name, which others write in another script
            stems.add(skeleton(word.surface))
    if not words:
        stems.update(emoji)
    stems.discard("")
    return Form(
        ordered,
        exact,
        normalize_order(ordered),
        tuple(sorted(forms)),
        tuple(sorted(links)),
        tuple(words),
        tuple(forms),
        frozenset(stems),
        frozenset(names),
        tuple(sorted(emoji)),
        tuple(sorted(genders)),
    )
