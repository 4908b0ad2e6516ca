"""The values that may fill a gap of a pattern: `fill`.

Each kind of gap has a function that takes the text up to the end of the clause and returns the value in it, or None if
it is not of that kind. In doubt it is None: a rule that does not match costs less than a wrong memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from recollect.agents.rules.sentences import HIDDEN
from recollect.agents.rules.tables import Language, word_set

__all__ = ["capitalize_first", "fill", "phrase", "without_owner"]

_WORD = re.compile(r"[\w'’+#./&@:-]*\w[\w'’+#./&-]*(?:\+\+|#)?|&")
_EDGES = " \t,;:.!…\"'()*_~-–—"
_NAME_LINKS = frozenset(
    """de la las los del da do dos di van von der den am an im the of upon le du sur sous et und y e і и i na nad
    bei""".split()
)
_LINKS_IN_LISTS = re.compile(
    r"\s*(?:,\s*(?:and|und|et|y|e|та|і|й|и|i|oraz|&)?\s+|\s(?:and|und|et|y|e|та|і|й|и|i|oraz|&|/)\s)\s*"
)
_IN_QUOTES = re.compile(r"^[\"']([^\"']+)[\"'](?=[.!]*$)")
_OWNER = re.compile(r"(?<!\w)(?:my|our) (?=\w)", re.IGNORECASE)
_POOR = re.compile(
    r"(?:kein\w*|nicht|не|ни|ні|nie|pas|not|terrible|bad|good|great|lousy|horrible|mediocre|decent|real|born|natural|total|amateur|hobby|aspiring|wannabe"
    r"|former|ex|future|would-be|fake|certified|better|failed|proper|keen|avid|passionate|enthusiastic|regular|frequent|heavy|slow|fast|safe|careful|nervous|back-?seat|lazy|messy|light|crazy|slave|intermediate|home|guter?|gute|schlechter?|bonne?|mauvaise?|buena?|mala?"
    r"|хорош\w+|поган\w+|добр\w+|плох\w+|dobr\w+|zły\w*)\b",
    re.IGNORECASE,
)
"""Words that make a profession a figure of speech, or not a present one."""
_NUMBER = re.compile(r"(?:\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|twelve|several)", re.IGNORECASE)


def fill(kind: str, raw: str, language: Language, lower: bool) -> str | None:
    """Return the value of a gap of this kind, or None. ``lower`` says that its author writes without capitals."""
    if HIDDEN in raw or "?" in raw or "http" in raw or not raw.strip():
        return None
    value = _KINDS[kind](_IN_QUOTES.sub(r"\1", raw.strip()), language, lower)
    value = value and without_owner(value)
    if value is None or language.nowhere.search(value):
        return None
    return value or None


def without_owner(text: str) -> str:
    """Remove possessives, which one's own memory does not need: "cooking with my kids"."""
    return _OWNER.sub("", text)


def capitalize_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def phrase(raw: str, language: Language, longest: int = 12) -> str | None:
    """Return a stretch of words without asides and fillers."""
    text = re.split(r"\s[-–—]+\s", language.cuts.sub("", " " + raw))[0].strip()
    while True:
        shorter = (
            language.fillers.sub("", " " + text).strip().rstrip(_EDGES.replace("(", "").replace(")", "") + "\ufe0f")
        )
        shorter = re.sub(r"\s*[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]+$|\s*[:;]-?[)(DP]$", "", shorter)
        if shorter == text:
            break
        text = shorter
    if text.count("(") != text.count(")"):
        text = text.partition("(")[0].rstrip()
    if text.count('"') % 2:
        return None
    count = len(text.split())
    return text if 0 < count <= longest and len(text) <= 120 and any(c.isalnum() for c in text) else None


def _fill_thing(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language)
    if text is None or language.not_first.match(text) or re.search(r"'s [a-z]", text):
        return None
    head, *rest = re.split(r",\s*", text)
    if rest and not all(0 < len(part.split()) <= 4 for part in (head, *rest)):
        if re.search(r"\ban? \w+$", head):
            return None  # "a safe, inviting place"
        text = head  # an aside, not a list
    return text if len(text.split()) <= 10 and len(text) > 1 else None


def _fill_doing(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language, 16)
    return None if text is None or language.not_first.match(text) else text


def _fill_short(raw: str, language: Language, lower: bool) -> str | None:
    text = _fill_thing(raw, language, lower)
    return text if text and len(text.split()) <= 4 else None


def _fill_matter(raw: str, language: Language, lower: bool) -> str | None:
    """Accept something to decide: more than a word."""
    text = _fill_doing(raw, language, lower)
    return text if text and len(text.split()) >= 2 else None


def _leading_name(
    raw: str, language: Language, lower: bool, longest: int, refused: frozenset[str]
) -> tuple[str, str] | None:
    """Return the name that a text begins with, and what follows it."""
    words: list[str] = []
    at = 0
    while len(words) < longest:
        match = re.compile(r"\s*").match(raw, at)
        found = _WORD.match(raw, match.end() if match else at)
        if found is None:
            break
        word = found[0].rstrip(".'-:/")
        if not word or not _is_name(word, lower, bool(words)):
            break
        words.append(word)
        at = found.start() + len(word)
        if raw[at : at + 1] not in (" ", ""):
            break
    while words and words[-1].lower() in _NAME_LINKS:
        dropped = words.pop()
        at = raw.rindex(dropped, 0, at)
    if (
        not words
        or words[0].lower() in refused
        or words[0].lower() in _NAME_LINKS - {"the", "la", "le", "los", "las", "de"}
    ):
        return None
    name = " ".join(words)
    return name, raw[at:]


def _is_name(word: str, lower: bool, inside: bool) -> bool:
    if inside and word.lower() in _NAME_LINKS:
        return True
    if word[0].isupper() or word[0].isdigit() or any(c.isupper() for c in word):
        return True
    return lower and not inside


def _goes_on_well(rest: str, language: Language) -> bool:
    left = rest.strip(" .!…)")
    if language.nowhere.search(rest) or re.search(r"\bthat\b", rest):
        return False
    return not left or language.tails.match(rest) is not None or not re.search(r"\w", left)


def _fill_place(raw: str, language: Language, lower: bool) -> str | None:
    article = re.match(r"the (?=[A-Z])", raw)
    found = _leading_name(raw[article.end() :] if article else raw, language, lower, 5, language.no_place)
    if found is None:
        return None
    name, rest = found
    other = name.lower() in word_set("technologies") or name.lower() in word_set("no_city")
    if other or name[0].isdigit() or (name.islower() and len(name) < 3):
        return None
    region = re.match(r",\s*([A-ZÀ-ÝА-ЯІЇЄҐ][\w.'-]*(?: [A-ZÀ-ÝА-ЯІЇЄҐ][\w'-]*){0,2})(?=\s*(?:$|[.,!]))", rest)
    if region:
        return f"{name}, {region[1].rstrip('.')}"
    name = " ".join(word.capitalize() if word.isupper() and len(word) > 3 else word for word in name.split())
    return capitalize_first(name) if _goes_on_well(rest, language) else None


def _fill_company(raw: str, language: Language, lower: bool) -> str | None:
    if re.match(r"(?:an?|ein(?:em|er)?|une?|una?)\s", raw, re.IGNORECASE):
        text = phrase(raw, language, 7)
        known = text and set(text.lower().split()) & word_set("workplaces")
        return text if text and known else None
    article = re.match(r"the (?=[A-Z])", raw)
    found = _leading_name(raw[article.end() :] if article else raw, language, lower, 4, language.no_place)
    if found is None or (found[0][0].isdigit() and found[0].replace(".", "").isdigit()):
        return None
    name, rest = found
    if lower and name.islower() and (rest.strip(" .!") or name in word_set("not_companies")):
        return None
    return name if _goes_on_well(rest, language) and name.lower() not in word_set("not_companies") else None


def _fill_person(raw: str, language: Language, lower: bool) -> str | None:
    found = _leading_name(raw, language, lower, 3, language.no_name)
    if found is None:
        return None
    name, rest = found
    words = name.split()
    if any(word.lower() in language.no_name or any(c.isdigit() for c in word) for word in words):
        return None
    if name.isupper() and len(name) > 3:
        return None
    if name.islower():
        name = name.title()
    return name if _goes_on_well(rest, language) else None


def _fill_one_name(raw: str, language: Language, lower: bool) -> str | None:
    """Accept a first name with anything after it: the rest is not about the author."""
    found = _leading_name(raw, language, False, 1, language.no_name)
    if found is None or any(c.isdigit() for c in found[0]) or (found[0].isupper() and len(found[0]) > 2):
        return None
    return found[0].removesuffix("'s")


def _fill_role(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language, 14)
    if text is None:
        return None
    head = re.split(
        r",| (?:at|for|in|with|from|of|to|who|by|on|bei|in der|im|für|chez|à|en|dans|de|w|в|у|на|з|із|зі|из) ", text
    )[0]
    words = head.split()
    if not 1 <= len(words) <= 6:
        return None
    last = [word.lower().strip(_EDGES) for word in words[-2:]]
    known = re.search(r"(?:ologist|ician)$", last[-1]) is not None or any(
        word in language.professions or word.split("-")[-1] in language.professions for word in last
    )
    if not known and not any(_compound(word, language) for word in last):
        return None
    if _POOR.match(head) or "'s" in head or re.search(r" (?:at heart|of life|in disguise|of fortune|now)\b", text):
        return None
    at = re.match(r"[^,]+? (?:at|bei|chez|en|w|в|у) (?P<where>.+)$", text)
    if at and (where := _fill_company(at["where"], language, lower)):
        return f"{text[: at.start('where')]}{where}"
    return head if at or "," in text else text


def _compound(word: str, language: Language) -> bool:
    """Return True for a German compound of field and profession."""
    return language.code == "de" and any(word.endswith(name) and len(name) > 4 for name in language.professions)


def _fill_does(raw: str, language: Language, lower: bool) -> str | None:
    """Return what somebody does, with its verb in the third person; only verbs of the table."""
    text = phrase(raw, language, 14)
    if text is None:
        return None
    verb, _, rest = text.partition(" ")
    third = language.verbs.get(verb.lower())
    if third is None or (language.habits and verb.lower() not in language.habits) or language.no_habit.search(rest):
        return None
    return f"{third} {rest}".strip()


def _fill_activity(raw: str, language: Language, lower: bool) -> str | None:
    """Like `_does`, with an object: "I usually do" says nothing."""
    text = _fill_does(raw, language, lower)
    return text if text and " " in text else None


def _known_items(raw: str, language: Language, known: frozenset[str]) -> str | None:
    text = phrase(raw, language, 14)
    if text is None:
        return None
    kept: list[str] = []
    for item in _LINKS_IN_LISTS.split(text):
        bare = re.split(r" (?:for|at|with|daily|every|on|in|as|since|für|bei|pour|au|para|en|для|на|в|w|do) ", item)[0]
        bare = re.sub(
            r"^(?:some|a bit of|a little|un peu de|un poco de|ein bisschen|etwas|trochę|трохи|немного) ", "", bare
        )
        if bare.lower().strip(_EDGES) not in known:
            return None
        kept.append(item)
    return text if kept else None


def _fill_tech(raw: str, language: Language, lower: bool) -> str | None:
    return _known_items(raw, language, word_set("technologies"))


def _fill_one_tech(raw: str, language: Language, lower: bool) -> str | None:
    """Accept a text that begins with a technology; the rest says what for."""
    text = phrase(raw, language, 10)
    if text is None:
        return None
    first = _LINKS_IN_LISTS.split(text)[0]
    words = first.split()
    return text if any(" ".join(words[:n]).lower() in word_set("technologies") for n in (1, 2, 3)) else None


def _fill_languages(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language, 12)
    if text is None:
        return None
    for item in _LINKS_IN_LISTS.split(text):
        words = [word.lower().strip(_EDGES) for word in item.split()]
        if not any(word in language.tongues or language.tongue.fullmatch(word) for word in words):
            return None
        if len(item.split()) > 4:
            return None
    return text


def _fill_nationality(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language, 3)
    return text if text and all(w.lower() in language.nationalities for w in re.split(r"[\s-]", text)) else None


def _fill_date(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language, 6)
    if text is None:
        return None
    digits = any(c.isdigit() for c in text)
    return text if digits and (language.times.search(text) or re.search(r"\d[./-]\d", text)) else None


def _fill_dated(raw: str, language: Language, lower: bool) -> str | None:
    text = phrase(raw, language, 14)
    if text is None:
        return None
    return text if language.times.search(text) else None


def _fill_trip(raw: str, language: Language, lower: bool) -> str | None:
    text = _fill_dated(raw, language, lower)
    return text if text and text[0].isupper() and language.times.match(text) is None else None


def _fill_food(raw: str, language: Language, lower: bool) -> str | None:
    text = _fill_thing(raw, language, lower)
    if text is None or len(text.split()) > 8:
        return None
    words = {word.lower().strip(_EDGES) for word in text.split()}
    return text if words & language.foods else None


def _fill_number(raw: str, language: Language, lower: bool) -> str | None:
    return raw if _NUMBER.fullmatch(raw) else None


def _fill_word(raw: str, language: Language, lower: bool) -> str | None:
    return raw if len(raw.split()) == 1 and re.fullmatch(r"[\w'+/:-]+", raw) else None


def _fill_rest(raw: str, language: Language, lower: bool) -> str | None:
    return phrase(raw, language, 16)


_KINDS: Final[dict[str, Callable[[str, Language, bool], str | None]]] = {
    "place": _fill_place,
    "company": _fill_company,
    "person": _fill_person,
    "first": _fill_one_name,
    "role": _fill_role,
    "thing": _fill_thing,
    "short": _fill_short,
    "doing": _fill_doing,
    "matter": _fill_matter,
    "does": _fill_does,
    "activity": _fill_activity,
    "tech": _fill_tech,
    "onetech": _fill_one_tech,
    "tongues": _fill_languages,
    "nationality": _fill_nationality,
    "date": _fill_date,
    "dated": _fill_dated,
    "trip": _fill_trip,
    "food": _fill_food,
    "number": _fill_number,
    "word": _fill_word,
    "rest": _fill_rest,
}
