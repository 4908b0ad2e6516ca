"""Ukrainian or Russian: `cyrillic_language`.

Most sentences have a letter that the other language lacks. In short ones without any, common words and endings decide;
some sentences are the same in both.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from recollect.agents.rules.tables import section_words

__all__ = ["cyrillic_language"]

_WORD: Final = re.compile(r"[\u0400-\u052f'’ʼ]+")
_UKRAINIAN_SIGN: Final = re.compile(r"[іїєґ]|[бвгджзйклмнпрстфхцчшщ]['’ʼ][яюєї]")
_RUSSIAN_SIGN: Final = re.compile("[ыэъё]")
_LETTER: Final = 3
"""How many words a letter is worth."""

_UKRAINIAN_ENDING: Final = re.compile(r"\w+(?:[аяиу]ти|тис[яь]|ння|[сц]ьк\w+|[бвдзлмнпрстф]ий)|\w{3,}(?:увати|ювати)")
_RUSSIAN_ENDING: Final = re.compile(r"\w{2,}(?:[еа]ни[ея]|ск(?:ого|ому|ой|их|ая|ую)|[аяи]ться|[еи]шь|ая|ое|ие)")
_ALSO_RUSSIAN: Final = frozenset(
    """кстати кровати печати памяти нити сити пяти шести десяти девяти двадцати тридцати третий синий последний летний
    зимний верхний средний древний соседний поздний ранний крайний нижний дальний задний передний давний домашний
    утренний вечерний осенний весенний внешний внутренний лишний сегодняшний вчерашний завтрашний нынешний здешний
    прошлогодний новогодний многолетний искренний""".split()
)
"""Russian words with the endings of Ukrainian ones."""


@cache
def _signs(code: str) -> frozenset[str]:
    return section_words(code, "signs")


def cyrillic_language(text: str) -> str:
    """Return "uk" or "ru" for a text in Cyrillic letters, "" if nothing decides."""
    score = 0
    for word in _WORD.findall(text.lower()):
        if _UKRAINIAN_SIGN.search(word):
            score += _LETTER
        elif _RUSSIAN_SIGN.search(word):
            score -= _LETTER
        elif word in _signs("uk"):
            score += 1
        elif word in _signs("ru") or word in _ALSO_RUSSIAN:
            score -= 1
        elif _UKRAINIAN_ENDING.fullmatch(word):
            score += 1
        elif _RUSSIAN_ENDING.fullmatch(word):
            score -= 1
    return "uk" if score > 0 else "ru" if score < 0 else ""
