"""Words prepared for comparison: `compared_words` makes `ComparedWord`s of a token and its language.

Inflection, spelling, script, contractions, and the ways to write a number, a time or a date are handled here, with the
tables of `vocabulary`. It sees a token and at most the one before it, never the sentence, and keeps only bounded caches
of single words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from recollect import text
from recollect.policy.duplicates.vocabulary import (
    CONTENT,
    EMOTICON,
    INTERNATIONAL,
    JOIN,
    LINK,
    MONTHS,
    MOVABLE,
    NEGATION,
    NO_PLURAL,
    POSSESSIVE,
    SHORTENED,
    Grammar,
    compiled,
    english_synonyms,
    grammar,
    irregular,
    place_names,
    verbs,
)

__all__ = [
    "COMPLETING",
    "PAST",
    "ComparedWord",
    "compared_words",
    "date_or_time",
    "english_lemma",
    "is_date",
    "skeleton",
]

PAST = "~p"
"""The ending of a form in the past tense."""

COMPLETING = frozenset(MONTHS) | {"am", "pm"}
"""Words that turn the number before them into a date or a time."""

_TIME = r"(\d{1,2})(?::(\d\d))?(am|pm)?$"
_AMOUNT = r"(\d+(?:[.,]\d+)*)(kms?|kg|mg|g|mi|h|hrs?|mins?|ml|cm|mm|m|l|kb|mb|gb|tb|eur|usd)$"
_ORDINAL = r"(\d+)(?:st|nd|rd|th)$"
_THOUSANDS = r"\d{1,3}(?:,\d{3})+$"


class ComparedWord(NamedTuple):
    """The compared properties of one word."""

    kind: int  # one of the kinds of `vocabulary`
    form: str  # equal forms are equal words; the mark of the past is part of it
    verb: str  # the same, if the word opens the statement and so is likely its verb
    stem: str  # romanized, for the index and for nearness
    surface: str  # folded, as written
    plain: str  # the form without tense
    known: bool  # settled by a table: the spelling is irrelevant
    latin: bool
    capital: bool

    @classmethod
    def content(
        cls,
        form: str,
        surface: str,
        *,
        tense: str = "",
        verb: str = "",
        stem: str = "",
        known: bool = False,
        raw: str = "",
    ) -> ComparedWord:
        """Return a word with content; `raw` is the token it is in, for its capital letter."""
        latin = surface.isascii() or text.romanize(surface) == surface
        return cls(
            CONTENT,
            form + tense,
            (verb or form) + tense,
            stem or form,
            surface,
            form,
            known,
            latin,
            raw[:1].isupper(),
        )

    @classmethod
    def bare(cls, kind: int, form: str = "", surface: str = "") -> ComparedWord:
        """Return a word that is only its form: a small word or a sign."""
        return cls(kind, form, form, form, surface, form, True, True, False)


_JOINED = (ComparedWord.bare(JOIN, ",", ","),)
_PUNCTUATION: dict[str, tuple[ComparedWord, ...]] = {
    **dict.fromkeys(",;&\u060c\u3001", _JOINED),
    "/": (ComparedWord.bare(JOIN, ",", "/"),),
    **dict.fromkeys(":!()=\u2013\u2014\u3002", ()),
    **{sign: (ComparedWord.bare(CONTENT, sign, sign),) for sign in "<>≤≥+±≠→~≈?"},
    "\u061f": (ComparedWord.bare(CONTENT, "?", "?"),),
    "%": (ComparedWord.bare(CONTENT, "percent", "%"),),
    "€": (ComparedWord.bare(CONTENT, "euro", "€"),),
    "$": (ComparedWord.bare(CONTENT, "dollar", "$"),),
    "£": (ComparedWord.bare(CONTENT, "pound", "£"),),
    "¥": (ComparedWord.bare(CONTENT, "yen", "¥"),),
    "₴": (ComparedWord.bare(CONTENT, "hryvnia", "₴"),),
}


@lru_cache(maxsize=32768)
def compared_words(token: str, code: str) -> tuple[ComparedWord, ...]:
    """Return the words in one token of a text in this language: two for "don't", none for a colon."""
    if token in _PUNCTUATION:
        return _PUNCTUATION[token]
    if token[0] == "-" and len(token) > 1:
        return (ComparedWord.content("-" + _number_words(token[1:])[0].form, token, known=True),)
    if code == "en" and ("'" in token or token.lower() == "cannot"):
        word = text.fold(token)
        if parts := SHORTENED.get(word):
            return tuple(w for part in parts for w in _split_word(part, part, code))
        if word.endswith("n't"):
            aux = () if word in ("don't", "doesn't", "isn't", "aren't") else _split_word(word[:-3], word[:-3], code)
            return (*aux, ComparedWord.bare(NEGATION, surface="not"))
        head, _, tail = word.rpartition("'")
        if tail in ("m", "re", "s", "ve", "ll", "d", ""):
            first = _split_word(head, token[: len(head)], code)
            if tail in ("ve", "ll", "d"):
                return (*first, *_split_word({"ve": "have", "ll": "will", "d": "would"}[tail], "", code))
            if tail == "s" and first and first[-1].kind == CONTENT:
                return (*first, ComparedWord.bare(POSSESSIVE, surface="'s"))
            return first
    # A run without spaces stays whole: the pairs that search cuts it into overlap.
    parts = text.token_words(token) if not text.unspaced(token) else (text.fold(token),)
    return tuple(w for part in parts for w in _split_word(part, token, code))


def _split_word(word: str, raw: str, code: str) -> tuple[ComparedWord, ...]:
    """Return a folded word; two only for an amount with its unit, a whole date, and dislike; none for no word."""
    if not word:
        return ()
    rules = grammar(code)
    kind = rules.kinds.get(word)
    if kind is not None:
        label = rules.labels[word] if kind == LINK else word
        return (ComparedWord.bare(kind, label, word),)
    first = word[0]
    if first.isdigit():
        return _number_words(word)
    if number := rules.numbers.get(word):
        return (ComparedWord.content(number, word, known=True),)
    if not first.isalpha() and first != ".":
        return (ComparedWord.bare(EMOTICON, word, word),)
    if name := place_names().get(word):
        return (ComparedWord.content(name, word, known=True, raw=raw),)
    if word in ("dislike", "dislikes"):
        return (ComparedWord.bare(NEGATION, surface="not"), ComparedWord.content("like", word, known=True))
    if code == "en" and word.isascii():
        return (_english(word, raw),)
    return (_foreign(word, raw, code, rules),)


# -- English -------------------------------------------------------------------------------------------------


def _english(word: str, raw: str) -> ComparedWord:
    if base := irregular().get(word):
        return ComparedWord.content(base, word, tense=PAST, raw=raw)
    by_name = english_synonyms()
    if name := by_name.get(word):
        return ComparedWord.content(name, word, stem=text.stem(name, "en"), known=True, raw=raw)
    singular = _singular(word)
    lemma = _american(singular)
    if name := by_name.get(singular) or by_name.get(lemma):
        return ComparedWord.content(name, word, stem=text.stem(name, "en"), known=True, raw=raw)
    stem = text.stem(lemma, "en")
    if len(word) > 4 and word.endswith("ed") and not word.endswith("eed") and word != "embed":
        name = by_name.get(stem) or by_name.get(stem + "e") or stem
        return ComparedWord.content(name, word, tense=PAST, stem=text.stem(name, "en"), raw=raw)
    return ComparedWord.content(lemma, word, stem=stem, raw=raw)


def _american(word: str) -> str:
    """Return one spelling for colour and color, organise and organize."""
    if len(word) >= 5 and "our" in word and word != "scour":
        word = re.sub(r"our(?=$|ite$|hood$|al$|ful$|able$|ed$|ing$)", "or", word)
    if len(word) >= 6:
        word = re.sub(r"(?<=[iy])s(?=(?:e|ed|er|ing|ation)$)", "z", word)
    return word


def english_lemma(word: str) -> str:
    """Return an English noun or verb without its -s, in American spelling."""
    return _american(_singular(word))


def _singular(word: str) -> str:
    """Return an English noun or verb without its -s. Only inflection: a stemmer would make engine of engineer."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "sui" or word in NO_PLURAL:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


# -- other languages -----------------------------------------------------------------------------------------


def _foreign(word: str, raw: str, code: str, rules: Grammar) -> ComparedWord:
    surface = text.clean(raw).casefold()
    synonym = english_synonyms().get(word)
    if synonym in INTERNATIONAL:
        return ComparedWord.content(synonym, word, known=True, raw=raw)
    past = rules.past
    tense = PAST if past is not None and len(word) > 2 and past.search(surface) else ""
    if not tense and (translated := verbs().get(word)):
        return ComparedWord.content(translated, word, known=True)
    stem = text.stem(word, code)
    if not word.isascii() and (name := place_names().get(stem)):
        return ComparedWord.content(name, word, known=True, raw=raw)
    roman = text.romanize(stem)
    # A verb changes with the speaker ("wohne", "wohnt"), so it loses more of its ending than a noun.
    if code == "de":
        word = re.sub(r"(?<![aeq])([aou])e", r"\1", word)  # Koeln is Köln, which was folded to koln
        form = re.sub(r"(?<=\w{4})(?:en|es|em|e|n|s)$", "", word)
        verb = re.sub(r"(?<=\w{3})(?:te|ten|est|st|en|t|e)$", "", word)
    elif code == "nl":
        form, verb = re.sub(r"(?<=\w{4})(?:en|s)$", "", word), re.sub(r"(?<=\w{3})(?:en|t)$", "", word)
    elif code in ("es", "pt", "it", "fr"):
        form = word[:-1] if len(word) > 3 and word[-1] in "sx" and code != "it" else word
        verb = form if form in rules.kin else roman
    elif code in ("uk", "ru", "pl"):
        form = verb = roman
    elif code in ("cjk", "ar", "he"):
        form = verb = word  # in Latin letters, tones or vowels are lost and other words look the same
    else:
        form = verb = text.romanize(word)
    if form in MOVABLE or word in MOVABLE or surface in MOVABLE:
        form = verb = word
    return ComparedWord.content(form, word, tense=tense, verb=verb, stem=roman, raw=raw)


_ONE_SPELLING = (("kh", "h"), ("shch", "sch"), ("w", "v"), ("ph", "f"), ("ks", "x"), ("j", "i"), ("y", "i"))


@lru_cache(maxsize=16384)
def skeleton(word: str) -> str:
    """Return what is left of a name when all its spellings in Latin letters are treated as one."""
    found = text.romanize(word)
    for old, new in _ONE_SPELLING:
        found = found.replace(old, new)
    found = re.sub(r"[^a-z0-9]", "", found)
    if found.startswith("ie"):
        found = found[1:]  # Yevhen, Evhen
    return re.sub(r"(.)\1+", r"\1", found)


# -- numbers, times and dates --------------------------------------------------------------------------------


def _number_words(word: str) -> tuple[ComparedWord, ...]:
    if word.isdecimal():
        # 007 is 7, but a long one is an identifier and its zeros count.
        plain = str(int(word)) if len(word) < 16 else word
        return (ComparedWord.content(plain, word, known=True),)
    if compiled(_THOUSANDS).match(word):
        return (ComparedWord.content(word.replace(",", ""), word, known=True),)
    if found := compiled(_ORDINAL).match(word):
        return (ComparedWord.content(f"{int(found[1])}th", word, known=True),)
    if found := compiled(_AMOUNT).match(word):
        return (*_number_words(found[1]), _english(found[2], ""))
    if (found := compiled(_TIME).match(word)) and (found[2] or found[3]):
        return (ComparedWord.content(_clock(int(found[1]), found[2], found[3]), word, known=True),)
    if len(word) == 10 and word[4] == word[7] == "-":
        # The year separately, as in "May 3, 2024".
        day = _day_form(int(word[5:7]), int(word[8:]))
        return (ComparedWord.content(day, word, known=True), ComparedWord.content(word[:4], word[:4], known=True))
    return (ComparedWord.content(word, word, known=True),)


def date_or_time(before: ComparedWord, word: ComparedWord) -> ComparedWord | None:
    """Return a day and a month, or an hour and am or pm, as one word; None where they are neither."""
    if word.surface in ("am", "pm"):
        clock = compiled(_TIME).match(before.surface)
        if clock is None or clock[3] or int(clock[1]) > 12:
            return None
        form = _clock(int(clock[1]), clock[2], word.surface)
        return ComparedWord.content(form, before.surface + word.surface, known=True)
    if word.surface in MONTHS:
        month, day = MONTHS[word.surface], before.plain
    elif before.surface in MONTHS:
        month, day = MONTHS[before.surface], word.plain
    else:
        return None
    day = day.removesuffix("th")
    if not day.isdecimal() or not 1 <= int(day) <= 31:
        return None
    return ComparedWord.content(_day_form(month, int(day)), f"{month}-{day}", known=True)


def _clock(hour: int, minute: str | None, half: str | None) -> str:
    if half == "pm" and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    return f"t{hour:02}:{minute or '00'}"


def _day_form(month: int, day: int) -> str:
    return f"d{month:02}-{day:02}"


def is_date(form: str) -> bool:
    """Return True if a form is a day of the year, as `date_or_time` writes it."""
    return form[0] == "d" and form[1:2].isdigit()
