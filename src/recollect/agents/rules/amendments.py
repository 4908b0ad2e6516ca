"""Corrections by a short answer to the message before: `learn_amendments`.

"No, it's Lviv, not Kyiv" says little alone. After "So you live in Kyiv" it says "I live in Lviv": the value is put into
the sentence that had it wrong, which is read again by the same rules. The message before gives only the words around
the value. What is learned must contain the person's own word, and the wrong sentence must have been a fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from recollect.agents.rules.learned import Learned
from recollect.agents.rules.sentences import plain_punctuation, sentences
from recollect.agents.rules.statements import Manner, in_order, learn_from_sentence
from recollect.agents.rules.tables import Language, language_tables, union

__all__ = ["learn_amendments"]

_LONGEST: Final = 80
_MOST_SENTENCES: Final = 12
_TAG: Final = re.compile(r"[,;–—-]+\s*(?:[\w' ]{1,12}\?+|got it[.!]*|noted[.!]*)$|\?+$", re.IGNORECASE)
_NAMED: Final = re.compile(r"(?-i:[A-ZÀ-ÝА-ЯІЇЄҐ])[\w'-]+(?: (?-i:[A-ZÀ-ÝА-ЯІЇЄҐ])[\w'-]+){0,2}|\d{1,3}")


def learn_amendments(said: str, before: Sequence[tuple[str, str]], code: str | None = None) -> list[Learned]:
    """Return what a message says that only names the right value, after messages (role, text) that had it wrong."""
    if len(said) > _LONGEST:
        return []
    answer = plain_punctuation(said).strip(" .!…")
    for each in in_order(said, code):
        tables = language_tables(each)
        for pattern in tables.amends:
            if match := pattern.fullmatch(answer):
                right, wrong = match["new"], match.groupdict().get("old")
                for role, text in reversed(before):
                    if found := _learn_correction(right, wrong, role, text, tables):
                        return [replace(one, action="update", excerpt=said) for one in found]
    return []


def _learn_correction(right: str, wrong: str | None, role: str, text: str, tables: Language) -> list[Learned]:
    own = _own_sentences(text, role, tables)
    if wrong is None:
        return _learn_from_denial(right, own, tables)
    for sentence in reversed(own):
        if _contains_word(sentence, wrong):
            return _learn_with_replacement(right, wrong, sentence, tables)
    if role == "assistant" and _greeted_as(wrong, text):
        named = learn_from_sentence(f"{tables.naming} {right}", right, Manner(), code=tables.code)
        return [one for one in named if one.key == "name"]
    return []


def _own_sentences(before: str, role: str, tables: Language) -> list[str]:
    """Return the sentences of a message as the person would say them, "" for one that is not theirs."""
    found = []
    for sentence in sentences(before)[-_MOST_SENTENCES:]:
        text = sentence.text
        if role == "assistant":
            for spoken, own in tables.addressed:
                text = spoken.sub(own, text)
            speaks_of_itself = tables.subjects.search(sentence.text) is not None
            text = "" if speaks_of_itself or text == sentence.text else _TAG.sub("", text)
        found.append("" if role != "assistant" and (sentence.asks or role != "user") else text)
    return found


def _learn_from_denial(right: str, own: list[str], tables: Language) -> list[Learned]:
    """Return what "No, Lviv" says: only after a message that ends in one statement, so that there is no doubt."""
    if not own or not own[-1] or len([each for each in own if each]) > 1 or not _is_value(right, tables):
        return []
    known = learn_from_sentence(own[-1], own[-1], Manner(), code=tables.code)
    wrong = [one.content for one in known if not one.several and _contains_word(own[-1], one.content)]
    return _learn_with_replacement(right, wrong[0], own[-1], tables) if len(known) == len(wrong) == 1 else []


def _learn_with_replacement(right: str, wrong: str, text: str, tables: Language) -> list[Learned]:
    """Return what is learned from the sentence with the right value in place of the wrong one."""
    known = learn_from_sentence(text, text, Manner(), code=tables.code)
    again = learn_from_sentence(_replace_word(text, wrong, right), text, Manner(), code=tables.code)
    former = {one.key: one for one in known if _contains_word(one.content, wrong)}
    # what was never true is not a previous value: it is ended, but not named as one
    return [
        replace(one, previous=None, ends=(*one.ends, former[one.key].content) if one.several else one.ends)
        for one in again
        if one.key in former and _contains_word(one.content, right)
    ]


def _is_value(right: str, tables: Language) -> bool:
    """Return True if a word after "no" names something: "No, Sorry" does not."""
    said = any(each.fullmatch(right) for each in (tables.openers, tables.corrections, tables.hedges, tables.fillers))
    return not said and right.lower() not in tables.no_name and _NAMED.fullmatch(right) is not None


def _greeted_as(name: str, before: str) -> bool:
    greeting = union("greeting", r"^\W*").match(plain_punctuation(before))
    return greeting is not None and _contains_word(before[greeting.end() : greeting.end() + len(name) + 2], name)


def _contains_word(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def _replace_word(text: str, wrong: str, right: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(wrong)}(?!\w)", lambda _: right, text, count=1, flags=re.IGNORECASE)
