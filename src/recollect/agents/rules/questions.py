"""Which key a person asks for: "where do I live?" is a question about their location.

Search finds what shares words with a question. What a person is asked most shares none: "Where do I live?" and
"location: Lviv".
"""

from __future__ import annotations

import re
from typing import Final

from recollect.document.memory_md import key_of
from recollect.text import fold

_PATTERNS: Final = {
    "location": r"where (?:do|did) i (?:currently |now )?live|where am i (?:living|based|located)"
    r"|(?:what|which) (?:city|town|country|place) do i live in|wo (?:wohne|lebe) ich"
    r"|ou (?:est-ce que )?(?:j'habite|je vis)|ou (?:habite|vis)-je|donde vivo"
    r"|onde (?:eu )?(?:moro|vivo)|dove (?:vivo|abito)|де я живу|где я живу",
    "company": r"where do i work|wh(?:o|om|at company|ich company) do i work (?:for|at)|(?:wo|bei wem) arbeite ich"
    r"|ou (?:est-ce que )?je travaille|donde trabajo|де я працюю|где я работаю",
    "role": r"what do i do(?: for (?:a living|work))?$|what(?:'s| is) my (?:job|work|occupation|profession|position)"
    r"|was (?:bin ich von|ist mein) beruf|was arbeite ich|ким я працюю|кем я работаю",
    "name": r"who am i|wie hei(?:ss|ß)e ich|comment (?:est-ce que )?je m'appelle|como me llamo"
    r"|як мене звати|как меня зовут",
    "age": r"how old am i|wie alt bin ich|quel age (?:ai-je|est-ce que j'ai)|cuantos anos tengo|скільки мені років",
    "birthday": r"when(?:'s| is) my birthday|when was i born|wann (?:habe ich geburtstag|bin ich geboren)",
    "origin": r"where (?:do i come|am i) from|woher komme ich",
}
_KEYS: Final = {key: re.compile(rf"\b(?:{pattern})\b") for key, pattern in _PATTERNS.items()}
_MINE: Final = re.compile(r"\b(?:what|who|which|when|where)(?:'s| is| are| was) my ([\w ]{1,40})$")
_ASKS: Final = re.compile(
    r"^(?:what|who|whom|whose|which|when|where|why|how)(?:'s)? (?:is|are|was|were|do|did|does|am|my)\b"
)


def asked_keys(text: str) -> list[str]:
    """Return the keys of facts that a question asks for, the likeliest first."""
    asked = _plain(text)
    keys = [key for key, pattern in _KEYS.items() if pattern.search(asked)]
    if found := _MINE.search(asked):
        keys.append(key_of(found[1]))
    return list(dict.fromkeys(filter(None, keys)))


def is_question(text: str) -> bool:
    """Whether a text without a question mark asks something all the same."""
    return _ASKS.match(_plain(text)) is not None


def _plain(text: str) -> str:
    return " ".join(fold(text).replace("’", "'").strip(" ?!.？؟").split())
