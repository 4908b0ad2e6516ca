"""Recognising requests to remember something: `find_explicit`.

The phrases are in ``languages/triggers.txt``. They count only at the beginning or the end of a sentence, where people
put them, so "I don't remember that" and "do you remember that film?" ask for nothing; nor do quotes, code and pasted
text, which `sentences` leaves out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from recollect.agents.rules.learned import Explicit
from recollect.agents.rules.qualifiers import names_day
from recollect.agents.rules.sentences import HIDDEN, Sentence, sentences
from recollect.agents.rules.slots import capitalize_first
from recollect.agents.rules.statements import in_order
from recollect.agents.rules.tables import TRIGGER_CODES, language_tables, triggers, union

__all__ = ["ExplicitRequest", "explicit_requests", "find_explicit"]

_EDGES = " \t\n,;:-–—.!…。！،"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MANY = 4
_LONGEST_TASK = 12


@dataclass(frozen=True, slots=True)
class ExplicitRequest:
    """A request, the words that state it, and the sentences they are in."""

    explicit: Explicit
    said: str
    sentences: frozenset[int]


def find_explicit(text: str, *, language: str | None = None) -> Explicit | None:
    """Return what a message asks to remember, or None if it asks for nothing."""
    found = explicit_requests(text, sentences(text), language)
    return found[0].explicit if found else None


def explicit_requests(text: str, said: list[Sentence], code: str | None = None) -> list[ExplicitRequest]:
    """Return all requests of a message, sentence by sentence."""
    near = in_order(text, code)
    order = sorted(TRIGGER_CODES, key=lambda each: near.index(each) if each in near else len(near))
    found: list[ExplicitRequest] = []
    for number, sentence in enumerate(said):
        if HIDDEN in sentence.text or union("reported_end", "", r"\W*$").search(sentence.text):
            continue
        for each in order:
            if one := _request_in_sentence(text, said, number, each):
                found.append(one)
                break
    return found


def _request_in_sentence(text: str, said: list[Sentence], number: int, code: str) -> ExplicitRequest | None:
    sentence, phrases = said[number], triggers(code)
    excerpt = text[sentence.start : sentence.end]
    if not sentence.asks and (back := phrases.back.match(sentence.text)):
        return _request_by_reference(text, said, number, code, back["this"])
    if (lead := phrases.lead.match(sentence.text)) and (content := _content_after(lead, sentence, code, said)):
        trigger = lead["task"] or lead["that"] or lead["this"] or lead["label"]
        told = Explicit(
            content=clean_content(content),
            excerpt=excerpt,
            trigger=trigger,
            language=code,
            reminder=lead["task"] is not None,
        )
        return ExplicitRequest(told, content, frozenset({number}))
    if not sentence.asks and (trail := phrases.trail.search(sentence.text)):
        content = sentence.text[: trail.start()].strip(_EDGES)
        trigger = trail["this"] or trail["label"] or trail["final"]
        if not _says_something(content) or union("not_told", r"^\W*").match(content):
            return None
        told = Explicit(content=clean_content(content), excerpt=excerpt, trigger=trigger, language=code)
        return ExplicitRequest(told, content, frozenset({number}))
    return None


def _content_after(lead: re.Match[str], sentence: Sentence, code: str, said: list[Sentence]) -> str:
    """Return what is to be remembered after a leading phrase, "" if nothing is."""
    raw = lead["content"].strip()
    content = raw.strip(_EDGES)
    phrases = triggers(code)
    spaced = _UNSPACED.search(content) is None
    if not _says_something(content) or (spaced and not lead["task"] and phrases.reminiscence.match(raw)):
        return ""
    if not spaced and phrases.reminiscence.search(raw):
        return ""
    if lead["task"] and (len(content.split()) > _LONGEST_TASK or union("advice").search(content)):
        return ""  # advice, from somebody to somebody
    own = union("subjects", r"^").match(content) is not None
    if sentence.asks:
        # "could you remember that I'm vegan?" is a request; "remember that film?" is only a question
        phrase = max(lead.start(name) for name in ("task", "that", "this", "label"))
        if not (sentence.text[:phrase].strip() and own):
            return ""
        content = content.rstrip("?？؟ ")
    # "note that" also occurs in every manual: there it is not the first sentence, and not about its author
    written = lead["label"] or (lead["that"] and union("prose").match(lead["that"]))
    if written and not own and (not sentence.first or len(said) > _MANY):
        return ""
    return content


def _request_by_reference(text: str, said: list[Sentence], number: int, code: str, trigger: str) -> ExplicitRequest:
    """Return what "remember this" points to: the sentence before, or after, or the message before."""
    near = [number - 1] if number else [number + 1] if number + 1 < len(said) else []
    for other in near:
        content = said[other].text.strip(_EDGES)
        if not said[other].asks and HIDDEN not in content and _says_something(content):
            start, end = min(said[number].start, said[other].start), max(said[number].end, said[other].end)
            told = Explicit(content=clean_content(content), excerpt=text[start:end], trigger=trigger, language=code)
            return ExplicitRequest(told, content, frozenset({number, other}))
    excerpt = text[said[number].start : said[number].end]
    told = Explicit(content="", excerpt=excerpt, trigger=trigger, language=code, refers_back=True)
    return ExplicitRequest(told, "", frozenset({number}))


def _says_something(content: str) -> bool:
    if _UNSPACED.search(content):
        return len(content) >= 3
    return len(content.split()) >= 2


def clean_content(content: str) -> str:
    """Return a memory in the words of the person: without "I'm" and "my", as a line of MEMORY.md begins."""
    for code in in_order(content, None):
        tables = language_tables(code)
        if (match := tables.openers.match(content)) and not names_day(match[0]):
            content = content[match.end() :] or content
        for start in tables.strip:
            if match := re.match(f"{start}(?!\\w)\\s*", content, re.IGNORECASE):
                return capitalize_first(content[match.end() :])
        subject = re.match(r"(i|ich|je|j'|yo|я|ja)\s+(\S+)(.*)$", content, re.IGNORECASE | re.DOTALL)
        if subject and code == "en" and subject[1].lower() == "i" and (third := tables.verbs.get(subject[2].lower())):
            return capitalize_first(third + subject[3])
    return capitalize_first(content)
