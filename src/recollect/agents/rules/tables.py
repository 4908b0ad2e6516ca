"""The tables of one language, read from ``languages/*.txt`` and made into patterns at first use.

A file has sections in square brackets. ``[macros]`` names pieces of patterns. ``[rules]`` has a rule a line:

    key and flags: pattern => content

A key with a gap is written with its sort: ``opinion=opinion_on_{thing}``.

The pattern is a regular expression for a whole clause, in lower case, with gaps: ``{place}`` is a gap that only a
place may fill, ``{previous:place}`` the same under another name. ``<name>`` is a macro. The content is what will stand
in MEMORY.md, with the same gaps. The flags: ``update`` and ``remove`` (what to do with what is known), ``daily`` (not
durable), ``insight`` (a decision and no fact), ``greeted`` (only after a greeting), ``contrasted``
(only against what was said to be wrong or past), ``~0.8`` (how sure). A named group of the expression may stand in the
content, too; with a 3 after its name its verb is put into the third person. After the content may stand, each after a
bar, what cannot be true beside it: ``No longer has {food} | Drinks {food}``. All other sections are lists, an item a
line or several between bars; `Language` says what each is for.

Knows nothing of messages; what may fill a gap is in `slots`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from recollect.agents.rules.learned import CLEAR, Action, LearnedKind, Sort, sort_of

__all__ = [
    "CODES",
    "TRIGGER_CODES",
    "Language",
    "Rule",
    "Triggers",
    "language_tables",
    "rewrites",
    "section_words",
    "triggers",
    "union",
    "word_set",
    "wordings",
]

CODES: Final = ("en", "de", "fr", "es", "uk", "ru", "pl")
"""The languages whose statements are understood."""
TRIGGER_CODES: Final = (*CODES, "pt", "it", "nl", "tr", "zh", "ja", "ko", "ar", "hi")
"""The languages in which one can ask to remember something."""

_FOLDER: Final = Path(__file__).parent / "languages"
_NEVER: Final = r"(?!)"
_VALUE: Final = r"[\w'+#.&-]{1,30}(?: [\w'+#.&-]{1,30}){0,3}?"


class Slot(NamedTuple):
    """A gap of a pattern: its name, and what may fill it."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Rule:
    """The meaning of one way to say something."""

    name: str
    key: str
    sort: Sort
    pattern: re.Pattern[str]
    slots: tuple[Slot, ...]
    content: str
    ends: tuple[str, ...] = ()
    confidence: float = CLEAR
    action: Action = "add"
    kind: LearnedKind = "fact"
    durable: bool = True
    greeted: bool = False
    contrasted: bool = False
    whole: bool = False
    """True if it reads a whole sentence instead of a clause."""


@dataclass(frozen=True, slots=True)
class Language:
    """The words and patterns of one language, for plain text in any case."""

    code: str
    rules: tuple[Rule, ...]
    changes: tuple[Rule, ...]
    """The rules that read a whole sentence, such as one that says what was before and what is now."""
    joint: re.Pattern[str]
    """The boundary between clauses with subjects of their own."""
    elided: re.Pattern[str]
    """The beginning of a clause whose subject is in the one before."""
    subject: str
    """The subject that `elided` clauses lack."""
    openers: re.Pattern[str]
    """Words before a statement that mean nothing themselves."""
    corrections: re.Pattern[str]
    """Openers that say that something known is wrong."""
    hedges: re.Pattern[str]
    """Openers that make a statement a guess."""
    adverbs: re.Pattern[str]
    """A subject, then adverbs that a rule can ignore."""
    softeners: re.Pattern[str]
    """A subject, then adverbs that make a statement a guess."""
    now: re.Pattern[str]
    """Words that say that something has changed."""
    instead: re.Pattern[str]
    """The end of a correction: ", not Stripe"."""
    formerly: tuple[tuple[str, str], ...]
    """Beginnings of statements about the past, and what they would be today."""
    cuts: re.Pattern[str]
    """The boundary between the value of a gap and an aside."""
    fillers: re.Pattern[str]
    """Words removed from the end of a value."""
    not_first: re.Pattern[str]
    """Words that a thing one likes or does never begins with."""
    nowhere: re.Pattern[str]
    """Words that are never part of a value: they would point outside of the sentence."""
    times: re.Pattern[str]
    """An expression of time."""
    tails: re.Pattern[str]
    """Words that may follow a name or a place."""
    professions: frozenset[str]
    foods: frozenset[str]
    tongues: frozenset[str]
    tongue: re.Pattern[str]
    """A pattern for further names of languages."""
    nationalities: frozenset[str]
    no_place: frozenset[str]
    no_name: frozenset[str]
    verbs: dict[str, str]
    """First person to third."""
    nominatives: dict[str, str]
    """Declined words to their first form."""
    asking: re.Pattern[str]
    """The beginning of a question that follows a statement."""
    habits: frozenset[str]
    """The verbs, in the first person, of habits."""
    no_habit: re.Pattern[str]
    """Words of tasks at work, not habits."""
    frames: re.Pattern[str]
    """A phrase before a clause that limits it to a place or a person."""
    subjects: re.Pattern[str]
    """Words for oneself."""
    naming: str
    """Words that precede one's name."""
    addressed: tuple[tuple[re.Pattern[str], str], ...]
    """Wordings that address somebody, and the same in the first person."""
    amends: tuple[re.Pattern[str], ...]
    """Corrections of a single value: ``new``, and often the ``old`` one."""
    strip: tuple[str, ...]
    """Beginnings of sentences in the first person that a memory does not need."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """The phrases of one language that ask to remember something."""

    code: str
    lead: re.Pattern[str]
    trail: re.Pattern[str]
    back: re.Pattern[str]
    reminiscence: re.Pattern[str]


def _sections(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for raw in (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        line = raw.strip()
        if not line or line.startswith("# "):
            continue
        if line.startswith("[") and line.endswith("]") and " " not in line:
            current = found.setdefault(line[1:-1], [])
        else:
            current.append(line)
    return found


@lru_cache(maxsize=32)
def _table(name: str) -> dict[str, list[str]]:
    return _sections(name)


def _section_items(section: list[str]) -> list[str]:
    return [item for line in section for part in line.split(" | ") if (item := part.strip())]


def _any(items: list[str], before: str = "", after: str = "") -> re.Pattern[str]:
    if not items:
        return re.compile(_NEVER)
    return re.compile(f"{before}(?:{'|'.join(items)}){after}", re.IGNORECASE)


def _cuts(items: list[str]) -> re.Pattern[str]:
    """Return a pattern for asides: they begin with one of these words; those written with a comma need one."""
    after_comma = "|".join(item[2:] for item in items if item.startswith(", ")) or _NEVER
    anywhere = "|".join(item for item in items if not item.startswith(", ")) or _NEVER
    return re.compile(
        rf"(?:\s*,\s*(?:{after_comma})|(?:\s*[,;(]\s*|\s+)(?:{anywhere}))(?!\w).*", re.IGNORECASE | re.DOTALL
    )


def _section_words(section: list[str]) -> frozenset[str]:
    return frozenset(" ".join(section).split())


def section_words(code: str, name: str) -> frozenset[str]:
    """Return the words of a section of a language."""
    return _section_words(_table(code).get(name, []))


@lru_cache(maxsize=8)
def word_set(name: str) -> frozenset[str]:
    """Return a list that belongs to no language, such as the technologies."""
    return frozenset(item.lower() for item in _section_items(_table("common")[name]))


_GAP = re.compile(r"\{([a-z]\w*)(?::(\w+))?\}")


def _rule(line: str, macros: dict[str, str], code: str) -> Rule:
    head, _, rest = line.partition(": ")
    source, _, content = rest.partition(" => ")
    said, *ends = content.split(" | ")
    named, *flags = head.split()
    sort, _, key = named.partition("=")
    slots: list[Slot] = []

    def gap(found: re.Match[str]) -> str:
        slot = Slot(found[1], found[2] or found[1])
        slots.append(slot)
        # the last gap takes everything that is left: what fills it decides where it ends
        return f"(?P<{slot.name}>.+{'' if found.end() == len(source) else '?'})"

    for name, piece in macros.items():
        source = source.replace(f"<{name}>", f"(?:{piece})")
    pattern = re.compile(_GAP.sub(gap, source), re.IGNORECASE)
    sure = next((float(flag[1:]) for flag in flags if flag.startswith("~")), CLEAR)
    return Rule(
        name=f"{code}:{sort}",
        key=key or sort,
        sort=sort_of(sort),
        pattern=pattern,
        slots=tuple(slots),
        content=said.strip(),
        ends=tuple(each.strip() for each in ends),
        confidence=sure,
        action="remove" if "remove" in flags else "update" if "update" in flags else "add",
        kind="insight" if "insight" in flags else "fact",
        durable="daily" not in flags,
        greeted="greeted" in flags,
        contrasted="contrasted" in flags,
        whole="whole" in flags or any(slot.name == "previous" for slot in slots),
    )


@lru_cache(maxsize=len(CODES))
def language_tables(code: str) -> Language:
    """Return the tables of a language from `CODES`."""
    table = _table(code)

    # Russian and Ukrainian share letters and verbs: what one never likes, the other does not either
    near = {"uk": "ru", "ru": "uk"}.get(code)

    def items(name: str) -> list[str]:
        shared = _table(near).get(name, []) if near and name in ("not_first", "nowhere") else []
        return _section_items([*table.get(name, []), *shared])

    macros: dict[str, str] = {}
    for line in table.get("macros", []):
        name, _, piece = line.partition(" = ")
        for known, other in macros.items():
            piece = piece.replace(f"<{known}>", f"(?:{other})")
        macros[name] = piece
    elided = "|".join(items("elided")) or _NEVER
    subjects = "|".join(items("subjects"))
    joins = "|".join(items("joins"))
    adverbs, softeners = "|".join(items("adverbs")) or _NEVER, "|".join(items("softeners")) or _NEVER
    rules = tuple(_rule(line, macros, code) for line in table["rules"])
    return Language(
        code=code,
        rules=rules,
        changes=tuple(rule for rule in rules if rule.whole),
        joint=re.compile(
            rf"\s*(?:[,;]|\s[-–—])\s*(?:(?:{joins})\s+)*(?=(?:{subjects}|{elided})(?!\w))"
            rf"|\s+(?:{joins})\s+(?:(?:{joins})\s+)?(?=(?:{subjects}|{elided})(?!\w))",
            re.IGNORECASE,
        ),
        elided=re.compile(rf"(?:{elided})(?!\w)", re.IGNORECASE),
        subject="".join(items("subject")),
        openers=_any(items("openers"), r"\s*", r"(?!\w)[\s,:!.–—-]*"),
        corrections=_any(items("corrections"), r"\s*", r"(?!\w)[\s,:!.–—-]*"),
        hedges=_any(items("hedges"), r"\s*", r"(?!\w)[\s,:–—-]*"),
        adverbs=re.compile(rf"((?:{subjects}) )((?:(?:{adverbs}) )+)", re.IGNORECASE),
        softeners=re.compile(rf"((?:{subjects}) )((?:(?:{softeners}) )+)", re.IGNORECASE),
        now=_any(items("now"), r"(?<!\w)", r"(?!\w)"),
        instead=_any(
            items("instead"),
            r"(?:\s*,\s*(?:and\s+|but\s+)?"
            r"|\s+(?=and not |instead |rather than |statt |au lieu |en vez |en lugar |замість |вместо |zamiast ))",
            r"\s+(?P<previous>[^,;]{1,60})$",
        ),
        formerly=tuple(_pairs(table, "formerly")),
        cuts=_cuts(items("cuts")),
        fillers=_any(items("fillers"), r"[\s,]+", r"[\s!.,)]*$"),
        not_first=_any(items("not_first"), "", r"(?!\w)"),
        nowhere=_any(items("nowhere"), r"(?<!\w)", r"(?!\w)"),
        times=_any(items("times"), r"(?<!\w)", r"(?!\w)"),
        tails=_any(items("tails"), r"\s*[,(]?\s*", r"(?!\w)"),
        professions=_section_words(table.get("professions", [])),
        foods=_section_words(table.get("foods", [])),
        tongues=_section_words(table.get("tongues", [])),
        tongue=_any(items("tongue")),
        nationalities=_section_words(table.get("nationalities", [])),
        no_place=_section_words(table.get("no_place", [])),
        no_name=_section_words(table.get("no_name", [])),
        verbs=_forms(table, "verbs"),
        nominatives=_forms(table, "nominatives"),
        asking=_any(
            items("asking"), r"(?:\s*[,;:–—-]\s*(?:(?:" + joins + r")\s+)*|\s+(?:" + joins + r")\s+)", r"(?!\w).*$"
        ),
        habits=_section_words(table.get("habits", [])),
        no_habit=_any(items("no_habit"), r"(?<!\w)", r"(?!\w)"),
        frames=_any(items("frames"), r"\s*", r"(?!\w)"),
        subjects=re.compile(rf"(?<!\w)(?:{subjects})(?!\w)", re.IGNORECASE),
        naming="".join(items("naming")),
        addressed=tuple(
            (re.compile(rf"(?<!\w)(?:{then})(?!\w)", re.IGNORECASE), own) for then, own in _pairs(table, "addressed")
        ),
        amends=tuple(
            re.compile(
                line.replace("<new>", f"(?P<new>{_VALUE})").replace("<old>", f"(?P<old>{_VALUE})"), re.IGNORECASE
            )
            for line in table.get("amends", [])
        ),
        strip=tuple(items("strip")),
    )


def _forms(table: dict[str, list[str]], name: str) -> dict[str, str]:
    """Return the words of a section written as ``form=other``; a word alone stands for itself."""
    pairs = (word.split("=") for word in " ".join(table.get(name, [])).split())
    return {pair[0]: pair[-1] for pair in pairs}


def _pairs(table: dict[str, list[str]], name: str) -> list[tuple[str, str]]:
    """Return the lines of a section as pairs of before and after."""
    return [(then, now) for then, _, now in (line.partition(" => ") for line in table.get(name, []))]


class Rewrite(NamedTuple):
    """A roundabout way to say something, letters that it always has, and what the rules read instead."""

    hint: str
    pattern: re.Pattern[str]
    plainly: str


@lru_cache(maxsize=1)
def rewrites() -> tuple[Rewrite, ...]:
    """Return the rewrites of all languages. A line of ``[rewrites]`` is ``hint :: pattern => what to read``."""
    found = []
    for code in CODES:
        for line, plainly in _pairs(_table(code), "rewrites"):
            hint, _, pattern = line.partition(" :: ")
            found.append(Rewrite(hint.strip(), re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE), plainly))
    return tuple(found)


@lru_cache(maxsize=128)
def wordings(code: str, sort: str) -> tuple[str, ...]:
    """Return the contents that the rules of a language write for a sort, each with a single gap, ``{}``."""
    written = (
        rule for rule in language_tables(code).rules if rule.name == f"{code}:{sort}" and rule.action != "remove"
    )
    gaps = ((rule.content, re.findall(r"\{\w+\}", rule.content)) for rule in written)
    return tuple(dict.fromkeys(content.replace(gap[0], "{}") for content, gap in gaps if len(gap) == 1))


@lru_cache(maxsize=16)
def union(name: str, before: str = r"(?<!\w)", after: str = r"(?!\w)") -> re.Pattern[str]:
    """Return one list of all languages as one pattern: for signs that count in any language."""
    return _any(
        [item for code in (*CODES, "common") for item in _section_items(_table(code).get(name, []))], before, after
    )


@lru_cache(maxsize=len(TRIGGER_CODES))
def triggers(code: str) -> Triggers:
    """Return the phrases by which one of `TRIGGER_CODES` asks to remember something.

    ``that`` is followed by the content, ``this`` follows it or points back to it, ``label`` stands before or after it,
    ``task`` is followed by something to do. ``polite`` may stand before each of them.
    """
    phrases: dict[str, list[str]] = {}
    for line in _table("triggers")[code]:
        kind, _, listed = line.partition(": ")
        phrases.setdefault(kind, []).extend(_section_items([listed]))
    spaced = code not in ("zh", "ja")
    end = r"(?:(?!\w)|(?<='))" if spaced else ""

    def one_of(*kinds: str) -> str:
        return "|".join(item for kind in kinds for item in phrases.get(kind, [])) or _NEVER

    polite = rf"(?:(?:{one_of('polite')}){end}[\s,:!.]*)*"
    closing = rf"(?:[\s,]*(?:{one_of('polite')}))?[\s.!。！]*$"
    return Triggers(
        code,
        lead=re.compile(
            rf"\s*{polite}(?:(?P<task>{one_of('task')}){end}|(?P<label>{one_of('label')}){end}"
            rf"|(?P<that>{one_of('that')}){end}|(?P<this>{one_of('this')}){end}(?=\s*[:：,，—–-]))"
            rf"(?P<mark>[\s:：,，—–-]*)(?P<content>.*)$",
            re.IGNORECASE | re.DOTALL,
        ),
        trail=re.compile(
            rf"(?:\s*[,，;:(—–-]\s*{polite}(?P<this>{one_of('this')})"
            rf"|[\s,，;:()—–-]+(?P<label>{one_of('label', 'trail')})"
            rf"|(?P<final>{one_of('final')})){closing}",
            re.IGNORECASE,
        ),
        back=re.compile(rf"\s*{polite}(?P<this>{one_of('this', 'back')}){closing}", re.IGNORECASE),
        reminiscence=re.compile(rf"(?:{one_of('reminiscence')})", re.IGNORECASE),
    )
