"""Parsing a query: its words, and whom, when and what kind of answer it is about.

Names of people who speak in the memory say whose words are wanted, and time expressions say when. Both are removed from
the words, because what somebody said rarely contains their own name or the date it was said on. Words that mean nearly
the same are added with a smaller weight.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from recollect.search import dates
from recollect.search.concepts import related_stems
from recollect.search.dates import Span
from recollect.text import clean, detect_language, fold, folded_words, stem, stems, terms

_MOST_TEXT = 10_000
"""A longer query is a document; its beginning says what it is about."""
_RELATED = 0.5
"""The share of a related word's weight that counts."""

_MOST_OTHERWISE = 16
"""A longer question reveals its language."""

_ROLES = frozenset({"user", "assistant", "system", "tool"})
_ALSO_WORDS = frozenset(
    "will may mark rose grace hope joy art bill rob jack pat sue drew frank chase dawn faith june april august"
    " summer autumn rich sky reed dean miles guy king page young long small best day".split()
)
"""Names that are names only with a capital letter."""
_SAID_BY_YOU = (
    r"\byou (?:said|told|mentioned|recommended|suggested|gave|provided|shared|listed|explained|wrote|created|advised"
    r"|described)\b|\bdid you\b|\bhave you (?:said|told|mentioned|recommended|suggested)\b"
    r"|\b(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|talk)\b"
)
_LATEST = r"\b(?:latest|newest|most recent(?:ly)?|last time|current(?:ly)?|right now|these days|nowadays|up to date)\b"
_KIND_OF = r"\b(kind|type|sort)s? of\b"
_compiled = lru_cache(maxsize=12)(re.compile)

_MOST_BROAD = 14
# A question of such words only, with one of the second table, asks for everything there is.
_ANY_QUESTION = """
a about an and any are at been can could did do does everything for from give has have i i've in is it know let list me
mine my of on our please see show so far tell that the there thing things to up us user user's users we what what's
which you you've your
что я ти ви мені мене про обо мной мне ты вы у в на що шо що-небудь є есть о об мій мої моя мои мое моє моих моїх
будь ласка покажи покажіть скажи скажіть розкажи розкажіть расскажи расскажите
перелічи перечисли дай список пожалуйста тобі тебе
ich du sie uber mich mir mein meine von ist alle zeig zeige liste bitte sag erzahl was uns wir die der das den es gibt
je tu vous moi mes mon ma de sur les la le l que qu'est-ce ce quoi sais-tu montre montrez dis dites moi-meme nous toutes
yo usted mi mis sobre los las que de lista muestra muestrame dime favor por tu el
eu voce o a os as meu minha meus minhas sobre mostre mostra lista diga me mim por
io di me che cosa le i il mostra mostrami elenca dimmi per favore lei
ja ty o mnie mi moje moich co pokaz powiedz prosze mam o
ik je jij u over mij wat de het mijn laat zien toon lijst
""".split()
_EVERYTHING = """
all anything everything facts know knows known memories memory myself note notes noted profile recall remember
remembered remembers saved stored told whatever
знаєш знаєте знаешь знаете знаем пам'ятаєш пам'ятаєте памятаєш помнишь помните все всі усе усі все-все всё всю весь
нотатки нотаток заметки заметок записи записів записей спогади пам'яті памяти памяті запам'ятав запам'ятала запомнил
запомнила
alles alle weisst wissen weißt notizen erinnerst erinnerungen gemerkt gespeichert
tout toutes tous sais sais-tu savez savez-vous souviens souvenirs notes memoire
todo todas todos sabes sabe recuerdas recuerda notas memoria
tudo todas todos sabe sabes lembra lembras notas
tutto tutte tutti sai sa ricordi note appunti memoria
wszystko wszystkie wiesz wie pamietasz notatki
alles alle weet onthoudt herinneringen notities
""".split()
_EVERYTHING_UNSPACED = (
    r"^(?:请|請)?(?:列出|显示|顯示|告诉我|告訴我)?(?:全部|所有|一切|每条|每條)(?:的)?(?:笔记|筆記|记忆|記憶|内容|內容|记录|記錄)?$"
    r"|^(?:你|您)(?:都)?(?:知道|了解|记得|記得)(?:关于|關於)?我?(?:的)?(?:什么|什麼|哪些|多少)(?:事情?)?$"
    r"|^(?:关于|關於)我(?:你|您)(?:都)?(?:知道|记得|記得)(?:些)?(?:什么|什麼)$"
    r"|^(?:すべて|全て|全部|全部の|すべての|全ての)(?:の)?(?:メモ|記憶|ノート|情報)?(?:を(?:見せて|教えて)(?:ください)?)?$"
    r"|^私について(?:何を)?(?:知って|覚えて)(?:い)?(?:る|ます)(?:か|こと)?(?:をすべて教えて(?:ください)?)?$"
    r"|^(?:전부|모두|모든(?:메모|기억|노트|것)?)(?:을|를)?(?:보여줘|알려줘|보여주세요|알려주세요)?$"
    r"|^(?:나|저)에대해(?:무엇을|뭘|뭐를?)?(?:알고있|기억하)(?:어|니|나요|습니까|고있어|고있나요)$"
)
"""The same in scripts without spaces, or where the spaces vary; spaces are removed before."""


@lru_cache(maxsize=1)
def _broad_words() -> tuple[frozenset[str], frozenset[str]]:
    everything = frozenset(fold(word) for word in _EVERYTHING)
    return frozenset(fold(word) for word in _ANY_QUESTION) | everything, everything


def asks_for_everything(text: str) -> bool:
    """Return True for a question that names no topic: "what do you know about me?", "all notes", "everything"."""
    if len(text) > 200:
        return False
    if not text.isascii() and _compiled(_EVERYTHING_UNSPACED).search(re.sub(r"[\s?!.。？！]+", "", text)):
        return True
    found = [fold(word) for word in re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.replace("’", "'"))]
    allowed, everything = _broad_words()
    return 0 < len(found) <= _MOST_BROAD and allowed.issuperset(found) and not everything.isdisjoint(found)


_BEFORE = (
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|earlier|originally|used to|in the past|back then|at first|no longer"
    r"|раніше|колись|до того|до цього|перед тим|попередн\w+|колишн\w+|раньше|прежде|прежн\w+|до этого"
    r"|когда-то|бывш\w+|предыдущ\w+"
    r"|fruher\w*|vorher\w*|zuvor|damals|ehemalig\w*|avant|auparavant|autrefois|ancien(?:ne)?|precedent\w*"
    r"|antes|anteriormente|anterior|antiguamente|antigamente|prima|precedente\w*|una volta"
    r"|wczesniej|przedtem|dawniej|poprzedni\w*|vroeger|eerder|voorheen|vorige)\b"
    r"|以前|之前|从前|從前|原来|原來|曾经|曾經|前は|昔|예전|이전|전에는?"
)


def asks_for_the_past(text: str) -> bool:
    """Return True for a question about what held before: "where did they live before?"."""
    return len(text) <= 500 and _compiled(_BEFORE).search(fold(text)) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query."""

    text: str
    words: tuple[str, ...]
    """The search terms of what it is about."""
    related: tuple[tuple[str, float, str], ...] = ()
    """Terms that mean nearly the same as one of the words, with weight and word."""
    otherwise: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Each word as other languages would stem it: a few words do not reveal their language."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """The word of the query that a term came from."""
    names: tuple[str, ...] = ()
    """The names of speakers in it, folded."""
    name_words: tuple[str, ...] = ()
    """The same as search terms."""
    spans: tuple[Span, ...] = ()
    asks_when: bool = False
    of_assistant: bool = False
    """True if it asks for something the assistant said."""
    wants_latest: bool = False

    @classmethod
    def of(cls, text: str, now: datetime, speakers: Collection[str] = (), code: str = "") -> Question:
        """Parse a query. ``speakers`` are the folded names, word by word, of all speakers."""
        text = text[:_MOST_TEXT]
        code = code or detect_language(folded_words(text))
        spans = tuple(dates.spans(text, now))
        about = text
        for at, length in sorted({(span.at, len(span.text)) for span in spans}, reverse=True):
            about = f"{about[:at]} {about[at + length :]}"
        about, names = _without_names(about, speakers)
        about = _compiled(_KIND_OF, re.IGNORECASE).sub(" ", about)
        asked = terms(about, code, asked=True)
        if not asked and not spans:
            asked = terms(about, code)
            if not asked:
                asked, names = terms(text, code), ()
        return cls(
            text=text,
            words=asked,
            related=_related_terms(asked, code),
            otherwise=_alternatives(asked, about),
            spelled={stem(word, code): word for word in reversed(folded_words(text))},
            names=names,
            name_words=terms(" ".join(names), code) if names else (),
            spans=spans,
            asks_when=dates.asks_when(text),
            of_assistant=bool(_compiled(_SAID_BY_YOU, re.IGNORECASE).search(text)),
            wants_latest=bool(_compiled(_LATEST, re.IGNORECASE).search(text)),
        )

    def in_first_person(self) -> str:
        """Return the question as the one speaker it names would put it: "Ann's job" becomes "my job"."""
        if len(self.names) != 1:
            return self.text
        text = clean(self.text)
        name = re.escape(self.names[0])
        text = re.sub(rf"(?i)\b{name}(?:'s)?\b", lambda found: "my" if found[0].endswith("'s") else "I", text)
        for pattern, pronoun in _PRONOUNS:
            text = _compiled(pattern).sub(pronoun, text)
        return text


_PRONOUNS = (
    (r"\b(?:his|her)\b", "my"),
    (r"\b(?:himself|herself)\b", "myself"),
    (r"\b(?:he|she)\b", "I"),
    (r"\bdoes I\b", "do I"),
    (r"\b(?:has I|I has)\b", "have I"),
    (r"\bis I\b", "am I"),
    (r"\bI is\b", "I am"),
)


def _without_names(text: str, speakers: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Return the text without the names of speakers, and these names."""
    if not speakers:
        return text, ()
    names: dict[str, None] = {}
    kept = []
    for piece in clean(text).split(" "):
        bare = fold(piece.strip(".,;:!?\"'()[]")).removesuffix("'s")
        if bare in speakers and bare not in _ROLES and not (piece.islower() and bare in _ALSO_WORDS):
            names[bare] = None
        else:
            kept.append(piece)
    return (" ".join(kept), tuple(names)) if names else (text, ())


def _alternatives(asked: tuple[str, ...], about: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for word in " ".join(folded_words(about)[:_MOST_OTHERWISE]).replace("'", " ").split():
        if word.isalpha() and (own := [term for term in asked if term in stems(word)]):
            found[own[0]] = tuple(stems(word) - {own[0]})
    return found


def _related_terms(asked: tuple[str, ...], code: str) -> tuple[tuple[str, float, str], ...]:
    found: dict[str, tuple[str, float, str]] = {}
    own = dict.fromkeys(asked)
    for word in own:
        for other, weight in related_stems(word, code):
            if other not in own and (other not in found or found[other][1] < _RELATED * weight):
                found[other] = other, _RELATED * weight, word
    return tuple(found.values())
