"""Learning from one sentence what it says about its author: `learn_from_sentence`.

A sentence is cut into clauses, each with a subject of its own. Introductory words are removed from a clause; then a
rule must match it from its first word to its last, so that nothing unknown stands before, around or after what is
learned. What others say, ask or would do begins differently, and so no rule matches it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from recollect.agents.rules.cyrillic import cyrillic_language
from recollect.agents.rules.learned import SOFT, Action, Learned, sort_of
from recollect.agents.rules.qualifiers import keep_limits
from recollect.agents.rules.sentences import HIDDEN
from recollect.agents.rules.slots import capitalize_first, fill, phrase, without_owner
from recollect.agents.rules.tables import CODES, Language, Rule, language_tables, union, wordings
from recollect.document.labels import key_of

__all__ = ["Manner", "in_order", "learn_from_sentence"]

_TAG = 2
_END = " \t.!…,;:-–—"
_WORKS_AT = {"uk": "Працює в ", "ru": "Работает в "}
"""Names are declined in these languages: without the words around it, the name would be in the wrong case."""
_AT = re.compile(r" (?:at|bei|chez|w|в|у) (?P<company>[^,]+)$")
_CYRILLIC = re.compile(r"[\u0400-\u052f]")
_ALIKE = {"likes": ("likes", "interested_in"), "interested_in": ("interested_in", "likes"), "language": ()}
"""Keys that end together with a thing that is over."""
_OPPOSITE = {"likes": ("dislikes",), "interested_in": ("dislikes",), "dislikes": ("likes", "interested_in")}
"""Keys that contradict each other for the same thing: the later statement wins."""
_GAP = re.compile(r"\{(\w+)\}")
_VERB_SAYS_WHO = ("uk", "ru")
"""Languages whose verbs say who speaks: "Люблю чай" is about oneself."""
_ARTICLE = re.compile(r"(?:(?:the|an?|der|die|das|den|le|la|les|el|los|las) |l')(?=\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Manner:
    """The style of a message: without capitals, or only capitals; with a greeting before its content."""

    lower: bool = False
    greeted: bool = False
    shouted: bool = False


@dataclass(frozen=True, slots=True)
class _StatementClause:
    text: str
    soft: bool
    corrects: bool
    changed: bool
    contrasted: bool = False


def in_order(text: str, code: str | None) -> tuple[str, ...]:
    """Return the languages to try on a text: the given one first, and only those of its script.

    Ukrainian and Russian share so many words that a text itself decides between them, and the given one only in doubt.
    """
    if _CYRILLIC.search(text) is None:
        return tuple(sorted((each for each in CODES if each not in ("uk", "ru")), key=lambda each: each != code))
    return ("uk", "ru") if (cyrillic_language(text) or code) == "uk" else ("ru", "uk")


def learn_from_sentence(
    said: str, excerpt: str, manner: Manner, *, asks: bool = False, code: str | None = None
) -> list[Learned]:
    """Return what one sentence says."""
    if union("opening", r"^\W*").match(said) or union("reported_end", "", r"\W*$").search(said) or HIDDEN in said:
        return []
    for each in in_order(said, code):
        tables = language_tables(each)
        found = _in_language(_before_question(said, tables) if asks else said, excerpt, tables, manner)
        if found:
            return found
    return []


def _before_question(said: str, tables: Language) -> str:
    """Return what stands before the question that a sentence ends with."""
    question = tables.asking.search(said)
    if question is None or len(question[0].split()) <= _TAG:
        return ""  # "…, am I?" asks about all that was said
    return said[: question.start()]


def _in_language(said: str, excerpt: str, tables: Language, manner: Manner) -> list[Learned]:
    whole = _clause(said, tables, whole=True)
    for rule in tables.changes:
        if found := _apply(rule, whole, excerpt, tables, manner):
            return [found]
    learned: list[Learned] = []
    former: Learned | None = None
    at, joined, corrects = 0, "", False
    for stop in [*(match for match in tables.joint.finditer(said)), None]:
        piece = said[at : stop.start() if stop else len(said)]
        if union("reporting").search(said, 0, at):
            break  # from here on somebody else may be speaking
        at = stop.end() if stop else len(said)
        if learned and tables.elided.match(piece):
            piece = f"{tables.subject} {piece}"  # "I live in Oslo and work at Equinor"
        clause = _clause(piece, tables)
        if tables.code in _VERB_SAYS_WHO and tables.elided.match(clause.text):
            full = _clause(f"{tables.subject} {clause.text}", tables)
            clause = replace(clause, text=full.text, soft=clause.soft or full.soft)
        clause = replace(
            clause, changed=clause.changed or bool(tables.now.search(joined)), contrasted=former is not None
        )
        clause = replace(clause, corrects=clause.corrects or corrects)
        corrects = clause.corrects and not clause.text  # "No, …"
        past = _learn_former(clause, excerpt, tables, manner)
        if past:
            learned += past
            joined = stop[0] if stop else ""
            former = past[-1] if past[-1].key == "background" else None
            continue
        for found in keep_limits(_match_rules(clause, excerpt, tables, manner), piece, tables):
            if former and clause.changed and not found.several:
                learned.remove(former)
                found = replace(found, action="update", previous=_value_of(former, found))
                former = None
            learned.append(found)
        joined = stop[0] if stop else ""
        if not learned and tables.frames.match(said) and not _has_lead_in(said, tables):
            break  # "In the game, I'm a thief": what follows holds only there
    return learned


def _has_lead_in(said: str, tables: Language) -> bool:
    return any(each.match(said) is not None for each in (tables.openers, tables.corrections, tables.hedges))


def _clause(piece: str, tables: Language, *, whole: bool = False) -> _StatementClause:
    text = piece.strip(_END + "()")
    soft = corrects = False
    changed = tables.now.search(text) is not None
    while True:
        before = text
        if match := tables.corrections.match(text):
            corrects, text = True, text[match.end() :]
        if match := tables.hedges.match(text):
            soft, text = True, text[match.end() :]
        if match := tables.openers.match(text):
            text = text[match.end() :]
        if text == before:
            break
    if match := tables.softeners.match(text):
        soft, text = True, match[1] + text[match.end() :]
    if match := tables.adverbs.match(text):
        text = match[1] + text[match.end() :]
    if match := tables.softeners.match(text):
        soft, text = True, match[1] + text[match.end() :]
    while match := tables.fillers.search(text):
        text = text[: match.start()]
        soft = soft or union("doubts").search(match[0]) is not None
    text = re.sub(r"[\s\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]+$", "", text)
    shorter = text if whole or tables.instead.search(text) else tables.cuts.sub("", text).strip(_END)
    return _StatementClause(shorter if " " in shorter else text.strip(_END), soft, corrects, changed)


def _match_rules(clause: _StatementClause, excerpt: str, tables: Language, manner: Manner) -> list[Learned]:
    corrected = clause
    previous = None
    if instead := tables.instead.search(clause.text):
        previous = instead["previous"].strip(_END)
        corrected = replace(_clause(clause.text[: instead.start()], tables), corrects=True, soft=clause.soft)
    for rule in tables.rules:
        if found := _apply(rule, corrected, excerpt, tables, manner):
            if rule.contrasted and found.key == "name" and not (previous and _misheard(found.content, previous)):
                continue  # "it's Lviv, not Kyiv"
            if previous and not found.several:
                found = replace(found, previous=_without_preposition(previous))
            elif previous:
                found = replace(
                    found,
                    ends=(*found.ends, *_opposite_wordings(tables, (_sort(rule),), _without_preposition(previous))),
                )
            return _split_employment(found, tables, manner)
    return []


def _misheard(name: str, other: str) -> bool:
    """Return True if one name may have been mistaken for the other."""
    return name[:1].casefold() == other[:1].casefold()


def _apply(rule: Rule, clause: _StatementClause, excerpt: str, tables: Language, manner: Manner) -> Learned | None:
    match = rule.pattern.fullmatch(clause.text)
    if match is None or (rule.greeted and not manner.greeted):
        return None
    if rule.contrasted and not (clause.corrects or clause.contrasted):
        return None
    values: dict[str, str] = {}
    gaps = {slot.name: slot.kind for slot in rule.slots}
    for name, raw in match.groupdict(default="").items():
        value = fill(gaps[name], raw, tables, manner.lower) if name in gaps else _capture_piece(raw, rule, tables)
        if value is None:
            return None
        values[name] = _spell_shouted(value) if manner.shouted and gaps.get(name) == "company" else value
    content = _fill_template(rule.content, values, tables)
    key = rule.key
    for name, value in values.items():
        if f"{{{name}}}" in key:
            if len(value.split()) > 4:
                return None
            key = key.replace(f"{{{name}}}", _ARTICLE.sub("", value, count=1))
    key = key if key == rule.key else key_of(key)
    action: Action = rule.action
    if action == "add" and not rule.sort.several and (clause.corrects or clause.changed):
        action = "update"
    line = phrase(content, tables, 24)
    if not line or not key:
        return None
    previous = values.get("previous") or values.get("from")
    return Learned(
        content=capitalize_first(line),
        key=None if rule.kind == "insight" else key,
        category=rule.sort.category,
        type=rule.sort.type,
        confidence=min(rule.confidence, SOFT) if clause.soft else rule.confidence,
        action="update" if previous else action,
        kind=rule.kind,
        durable=rule.durable,
        several=rule.sort.several,
        previous=capitalize_first(previous) if previous else None,
        ends=_ends(rule, values, tables),
        excerpt=excerpt,
        rule=rule.name,
    )


def _fill_template(template: str, values: dict[str, str], tables: Language) -> str:
    for name, value in values.items():
        if f"{{{name}3}}" in template:
            verb, _, rest = value.partition(" ")
            template = template.replace(f"{{{name}3}}", f"{tables.verbs.get(verb.lower(), verb)} {rest}".strip())
        template = template.replace(f"{{{name}1}}", tables.nominatives.get(value.lower(), value))
        template = template.replace(f"{{{name}}}", value)
    return template


def _sort(rule: Rule) -> str:
    return rule.name.partition(":")[2]


def _ends(rule: Rule, values: dict[str, str], tables: Language) -> tuple[str, ...]:
    """Return what contradicts a statement: what the rule lists, and all wordings of the opposite."""
    lines = [capitalize_first(_fill_template(each, values, tables)) for each in rule.ends]
    gaps = _GAP.findall(rule.content)
    value = values.get(gaps[0], "") if len(gaps) == 1 else ""
    sort = _sort(rule)
    if rule.action == "remove":
        lines += _opposite_wordings(tables, _ALIKE.get(sort, (sort,)), value)
    else:
        lines += _opposite_wordings(tables, _OPPOSITE.get(sort, ()), value)
    if rule.sort.several and (previous := values.get("previous") or values.get("from")):
        lines += _opposite_wordings(tables, (sort,), previous)
    return tuple(dict.fromkeys(lines))


def _opposite_wordings(tables: Language, sorts: tuple[str, ...], value: str) -> list[str]:
    if not value:
        return []
    codes = ("uk", "ru") if tables.code in ("uk", "ru") else (tables.code,)  # which of them is often a guess
    said = (each for code in codes for sort in sorts for each in wordings(code, sort))
    return [capitalize_first(each.replace("{}", value)) for each in said]


def _spell_shouted(shouted: str) -> str:
    """Spell a name that was given in capitals: IBM, but Oslo."""
    return " ".join(word.upper() if len(word) <= 3 else capitalize_first(word) for word in shouted.split())


def _capture_piece(raw: str, rule: Rule, tables: Language) -> str | None:
    """Return a piece of the clause that needs no kind, without possessives."""
    own = without_owner(re.sub(r"^(?:mon|ma|mein|meine) ", "", raw, flags=re.IGNORECASE))
    if rule.key == "communication_style":
        return None if HIDDEN in raw else raw
    points = "/" not in own and tables.nowhere.search(own)
    return None if HIDDEN in own or points else own


def _split_employment(found: Learned, tables: Language, manner: Manner) -> list[Learned]:
    """Return the role and, separately, the company of somebody who says both: either may change alone."""
    if found.key != "role" or found.action == "remove":
        return [found]
    where = _AT.search(found.content)
    name = fill("company", where["company"], tables, manner.lower) if where else None
    if where is None or name is None or _ARTICLE.match(name):
        return [found]
    sort = sort_of("company")
    name = _WORKS_AT.get(tables.code, "") + (_spell_shouted(name) if manner.shouted else name)
    company = replace(found, key="company", content=name, previous=None, type=sort.type, category=sort.category)
    return [replace(found, content=found.content[: where.start()]), company]


def _learn_former(clause: _StatementClause, excerpt: str, tables: Language, manner: Manner) -> list[Learned]:
    """Return what "I used to live in Kyiv" says; "now Lviv", if it follows, makes it an update."""
    told = ""
    for then, today in tables.formerly:
        if not told and (match := re.match(then + " ", clause.text, re.IGNORECASE)):
            told = f"{today} {clause.text[match.end() :]}"
    if not told:
        return []
    after = re.search(
        r"\s*,?\s+(?:but|and)?\s*(?:now|nowadays|these days)\s+(?:it's |in |at |a |an )?(?P<new>.+)$", told
    )
    base = told[: after.start()] if after else told
    for rule in tables.rules:
        old = _apply(rule, replace(clause, text=base), excerpt, tables, manner)
        if old is None or old.action == "remove" or old.kind != "fact":
            continue
        if after and not old.several:
            gap = rule.pattern.fullmatch(base)
            start = gap.start(rule.slots[-1].name) if gap and rule.slots else len(base)
            new = _apply(rule, replace(clause, text=base[:start] + after["new"]), excerpt, tables, manner)
            return [replace(new, action="update", previous=old.content)] if new else []
        if after:
            return []
        sort = sort_of("background")
        first, _, rest = clause.text.partition(" ")
        if tables.code in _VERB_SAYS_WHO and rest.lower().startswith(f"{tables.subject} "):
            rest = f"{first} {rest.partition(' ')[2]}"  # "Раніше я жив у Києві"
        content = capitalize_first(rest) if rest else clause.text
        return [
            replace(
                old,
                key="background",
                content=content,
                several=True,
                action="add",
                type=sort.type,
                category=sort.category,
                previous=old.content,
                ends=(old.content if old.several else f"{old.key}: {old.content}",),
            )
        ]
    return []


def _value_of(former: Learned, found: Learned) -> str:
    return former.previous or former.content


def _without_preposition(previous: str) -> str:
    return capitalize_first(
        re.sub(r"^(?:at|in|for|an?|the|bei|chez|en|un|une|una) ", "", previous, flags=re.IGNORECASE)
    )
