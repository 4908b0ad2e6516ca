"""Likes, dislikes and occupations that a statement expresses: `likings`.

A statement is read clause by clause. Words for liking and disliking give a clause its sign, a negation reverses it
("not interested in crypto") or cancels it ("does not dislike Java"), and what is left are the things it is about. Order
does not matter, so that "mag Kaffee nicht" is read as well. Something that is only denied ("has no car") says nothing
either way. The tables cover some fifteen languages.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from recollect import text
from recollect.policy.duplicates.vocabulary import (
    DROPPED,
    JOIN,
    LINK,
    NEGATION,
    OPENER,
    PERSON,
    UNSPACED_PERSON,
    grammar,
)

__all__ = ["Liking", "against_words", "is_general", "likings", "sign_of", "speaks_against"]

_LANGUAGES = "en de fr es pt it nl pl uk ru tr el ar".split()
_MOST_THINGS = 12
_LONGEST_THING = 8  # words

_FOR = """like likes liked love loves loved loving adore adores enjoy enjoys enjoyed enjoying prefer prefers preferred
favorite favourite favorites favourites fan fond interest interests interested into passionate fascinated obsessed keen
enthusiast lover excited
mag liebt liebe bevorzugt bevorzuge gerne gern interessiert interessiere begeistert begeistere leiden ausstehen
aime adore prefere interesse passionne passionnee fan
gusta gustan encanta encantan interesa interesan apasiona prefiere soporta soporto
gosta gosto adora adoro interessa
piace piacciono ama adora preferisce sopporta
houdt graag leuk
lubi lubie uwielbia uwielbiam kocha kocham interesuje woli znosi znosze cierpi cierpie
любить люблю обожнює обожнюю подобається подобаються цікавиться цікавить цікавлюся захоплюється терпить терплю
любит обожает обожаю нравится нравятся интересуется интересует интересуюсь увлекается предпочитает выносит выношу терпит
sever severim seviyor seviyorum begenir ilgileniyor
αρεσει αγαπα
يحب احب يفضل افضل مهتم
पसंद"""
_AGAINST = """dislike dislikes disliked hate hates hated hating detest detests despise despises loathe loathes abhor
avoid avoids avoiding allergic intolerant boring bored annoying annoys annoyed uninterested averse aversion boycotts
overrated
hasst hasse verabscheut verabscheue meidet meide abneigung
deteste hais hait evite
odia odio detesta detesto evita
odeia odeio
haat verafschuwt vermijdt hekel
nienawidzi nienawidze unika
ненавидить ненавиджу уникає уникаю
ненавидит ненавижу избегает избегаю
sevmez sevmem sevmiyor sevmiyorum nefret
μισει
يكره اكره
नापसंद"""
# Said of what one is busy with; denied, it is something one does not want.
_WANTING = """want wants eat eats drink drinks use uses read reads watch watches care cares follow follows need needs
isst esse trinkt trinke benutzt nutzt liest mange boit utilise come bebe usa eet drinkt je pije
їсть п'є ест пьет"""
_BUSY = """plan plans planning goal goals learn learns learning study studies studying build builds building project
projects work works working using reading writing doing playing trying developing researching evaluating exploring
lernt lerne arbeitet arbeite apprend travaille aprende trabaja uczy pracuje вчить вивчає працює учит изучает работает"""
_DENYING = """never neither nor nie nicht pas jamais plus nunca jamas mai nooit nigdy ніколи никогда değil degil
لا ليس غير नहीं δεν hardly barely"""
# Words beside a thing that are not things.
_GENERAL = """article articles post posts news story stories content topic topics thing things stuff anything everything
something all any kind kinds type types sort sorts lot lots really very much new newest latest best good great more most
about especially mostly mainly also only still currently often always usually sometimes generally particularly
interesting big huge anymore think thinks thought believes finds
year years time times day days week weeks month months today people person user way ways
video videos blog blogs reading getting having being make makes making get gets go goes going be been
released release releases guide introduction intro deep dive why what how top part show ask tell built vs first last
tips tricks tutorial review update updates updated announcing part two three
मुझे मैं को है हैं
artikel nachrichten neue neuen articles nouvelles noticias artículos nuevos новини статті новости статьи новые
artykuly"""
_BARE = "no kein keine keinen geen aucun aucune sin sem senza bez без"
_JOINING = "or oder ou o u lub albo або или and und et y e i oraz й і та и en ve sowie plus as well"
_TURNING = "but however although though yet whereas aber doch jedoch mais pero mas ma maar ale lecz але проте но однако"
_ENDING = """than over instead rather versus except besides because since unless when if while which who that
statt weil wenn obwohl parce lorsque porque cuando si omdat als niz bo gdy ponieważ бо якщо коли замість потому если
когда вместо als dass"""

_SAID_OTHERWISE = (
    (r"\b(?:can'?t|can ?not|could ?n[o']t|couldn't) (?:stand|bear|take)\b", " hates "),
    (r"\b(?:sick|tired|bored|wary) of\b|\bfed up with\b|\bput off by\b|\b(?:has |have )?lost interest in\b", " hates "),
    (r"\b(?:has|have|had|with|shows?) no interest in\b|\bof no interest\b|\bindifferent to\b", " hates "),
    (r"\bno longer (?:likes?|enjoys?|loves?|interested in|into|cares? (?:about|for))\b", " hates "),
    (r"\b(?:stopped|quit|gave up) (?:liking|enjoying|loving)\b", " hates "),
    (r"\b(?:not|doesn't|don't|didn't) only\b", " "),
    (r"\bleast (?:favou?rite|liked|preferred)\b", " hates "),
    (r"\bfavou?rite [\w ]{1,30}? (?:is|are)\b", " likes "),
    (r"\b(prefer\w*(?: (?!to\b)\S+){1,5}) to\b", r"\1 over"),
    (r"\b(?:wants?|would like|would love|prefers?) (?:fewer|less|no more|no|to (?:stop|avoid) \w+ing)\b", " hates "),
    (r"^(?:please )?(?:no more|enough(?: of)?|fewer|less|hide|mute|skip|stop (?:\w+ing)(?: me)?)\b", " hates "),
    (r"(?:,| and) more\b", " but likes "),
)
_HINTS = r"\bof\b|\bwith\b|\bby\b|interest|indifferent|longer|only|stopped|quit|gave|ca?n'?t|cannot|could"
_HINTS += r"|favou?rite|prefer|want|would|\bless\b|fewer|more|enough|^hide|^mute|^skip|^stop|^please|least"
_NO_OPINION = (
    r"\b(?:does not|doesn't|do not|don't|didn't|did not) mind\b|\bused to\b|\bif only\b"
    r"|\b(?:früher|autrefois|antes|раніше|раньше|kiedyś)\b"
)

_UNSPACED_AGAINST = (
    "不喜欢|不喜歡|不爱|不愛|不感兴趣|不感興趣|没兴趣|沒興趣|讨厌|討厭|厌恶|厭惡|不想看|避免"
    "|好きではない|好きじゃない|好きではありません|好きじゃありません|嫌い|きらい|苦手|興味がない|興味はない|興味がありません|興味ない"
    "|싫어|싫다|싫음|안 좋아|좋아하지 않|관심 없|관심없|ไม่ชอบ|เกลียด"
)
_UNSPACED_FOR = (
    "喜欢|喜歡|喜爱|喜愛|热爱|熱愛|偏好|感兴趣|感興趣|有兴趣|有興趣|爱|愛"
    "|大好き|好き|好む|興味がある|興味があります|興味|좋아|관심|사랑|ชอบ|สนใจ"
)
_UNSPACED_REST = (
    "です|ます|ました|でした|だ|する|して|いる|ている|あり|ある|には|では|とは|ことが|こと|が|を|は|に|の(?=$)"
    "|해요|합니다|하다|해|입니다|있다|있어요|있음|对|對|很|非常|特别|的(?=$)|了|在|มาก"
)
_PARTICLE = r"(?<=[\uac00-\ud7af])(?:을|를|이|가|은|는|에|도|과|와)$"
_SENTENCE = r"[.!?;…](?=\s|$)|[。！？；\n]|\s[–—-]\s"

_DOWN = frozenset(
    """👎 😡 😠 🤬 💩 🤮 🤢 😒 🙄 😤 🚫 dislike disliked downvote -1 thumbs_down thumbsdown thumbs-down hide hidden mute
    not_interested boring""".split()
)
_TONES = "[\U0001f3fb-\U0001f3ff\ufe0f\u200d♀♂]"

_SMALL = (DROPPED, LINK, OPENER, PERSON)

_compiled = lru_cache(maxsize=16)(re.compile)


class Liking(NamedTuple):
    """One thing a statement is about. ``sign`` is 1 if it is liked, -1 if disliked, 0 if it is only mentioned."""

    thing: str
    sign: int


def speaks_against(value: str | None) -> bool:
    """Return True if a reaction, such as 👎, expresses dislike."""
    return value is not None and _compiled(_TONES).sub("", value.strip().lower()).strip(":") in _DOWN


@lru_cache(maxsize=1)
def _word_roles() -> dict[str, str]:
    """Return the role of each word in a clause. For a word in several tables, the last one wins."""
    found: dict[str, str] = {}
    denying = {word for code in _LANGUAGES for word, kind in grammar(code).kinds.items() if kind == NEGATION}
    tables = (
        ("busy", _BUSY), ("wanting", _WANTING), ("ends", _ENDING), ("turns", _TURNING), ("denies", _DENYING),
        ("for", _FOR), ("against", _AGAINST),
    )  # fmt: skip
    for name, table in tables:
        found |= dict.fromkeys(map(text.fold, table.split()), name)
    return found | dict.fromkeys(denying, "denies")


@lru_cache(maxsize=1)
def against_words() -> frozenset[str]:
    """Return folded words one of which occurs in nearly every statement against a thing, in scripts with spaces."""
    return frozenset(word for word, role in _word_roles().items() if role in ("against", "denies"))


@lru_cache(maxsize=1)
def _general() -> frozenset[str]:
    return frozenset(map(text.fold, _GENERAL.split()))


def is_general(word: str) -> bool:
    """Return True if a folded word is not a topic by itself: "article", "new", "latest"."""
    return word in _general()


def sign_of(label: str) -> int:
    """Return the sign that the label of a fact gives its value: -1 for "Dislikes", 1 for "Interests", else 0."""
    found = likings(f"{label} zzz")
    return found[-1].sign if found else 0


def likings(statement: str, code: str = "") -> list[Liking]:
    """Return the things a statement is about, with its opinion of each. ``code`` is its language, if known."""
    found: list[Liking] = []
    for sentence in _compiled(_SENTENCE).split(text.clean(statement.replace("\n", ". "))):
        if not sentence or _compiled(_NO_OPINION, re.IGNORECASE).search(sentence):
            continue
        if not sentence.isascii() and text.unspaced(sentence.lstrip()[:1]):
            found += _read_unspaced(sentence)
            continue
        if _compiled(_HINTS, re.IGNORECASE).search(sentence):
            for pattern, said in _SAID_OTHERWISE:
                sentence = _compiled(pattern, re.IGNORECASE).sub(said, sentence)
        found += _read_sentence(sentence, code)
    return list(dict.fromkeys(found))[:_MOST_THINGS]


def _read_sentence(sentence: str, code: str) -> list[Liking]:
    """Read the clauses of a sentence: a new one begins where the sign changes."""
    tokens = text.tokens(sentence)
    code = code or text.detect_language([token.lower() for token in tokens])
    kinds, signs = grammar(code).kinds, _word_roles()
    found: list[Liking] = []
    clause = _PreferenceClause()
    for place, token in enumerate(tokens):
        pieces = text.token_words(token)
        word = pieces[-1] if pieces else ""
        role = "denies" if word.endswith("n't") else signs.get(word, "")
        if role == "busy" and clause.things[-1]:
            role = ""  # machine learning
        if len(pieces) > 1 and signs.get(pieces[0]) == "denies":
            clause.denied = True  # n'aime
        if role == "turns" or (role in ("for", "against") and clause.has_things and clause.is_whole):
            found += clause.things_liked()
            clause = _PreferenceClause(denied=clause.denied_last, verb=clause.verb if role == "turns" else "")
        clause.denied_last = False
        if clause.ended or role == "turns":
            continue
        if role == "ends" and clause.has_things:
            clause.ended = True
        elif role == "denies":
            clause.bare = word in _word_table(_BARE) and not clause.has_things and not clause.verb
            clause.denied = clause.denied_last = True
            clause.next_thing()  # neither tea nor coffee
        elif role:
            clause.note(role)
        elif not pieces or word in _word_table(_JOINING) or kinds.get(word) == JOIN:
            if token in ",/&" or pieces:
                clause.next_thing()
        elif not clause.things[-1] and kinds.get(word) in _SMALL:
            continue
        elif (place and token[:1].isupper()) or not is_general(word):  # "Go" is a name
            clause.things[-1].append(token)
    found += clause.things_liked()
    return [Liking(thing, sign) for liked, sign in found if (thing := _trim_small_words(liked, code))]


@lru_cache(maxsize=4)
def _word_table(table: str) -> frozenset[str]:
    return frozenset(map(text.fold, table.split()))


def _trim_small_words(thing: str, code: str) -> str:
    """Return a thing without the small words around it: "in crypto", "le café"."""
    tokens = thing.split(" ")
    begin, end = 0, len(tokens)
    while begin < end and _is_small(tokens[begin], code):
        begin += 1
    while begin < end and _is_small(tokens[end - 1], code):
        end -= 1
    return " ".join(tokens[begin:end])


@lru_cache(maxsize=4096)
def _is_small(token: str, code: str) -> bool:
    return text.terms(f"{token} zzz", code) == ("zzz",)


class _PreferenceClause:
    def __init__(self, *, denied: bool = False, verb: str = "") -> None:
        self.things: list[list[str]] = [[]]
        self.denied = self.denied_last = denied
        self.bare = False  # denied by a word such as "no", and nothing came before
        self.ended = False
        self.verb = verb  # "likes Rust but not crypto": it need not be repeated

    @property
    def has_things(self) -> bool:
        return any(self.things)

    @property
    def is_whole(self) -> bool:
        """True if another sign would belong to a new clause: "vegan, avoids dairy"."""
        return bool(self.verb) or not self.things[-1]

    def note(self, role: str) -> None:
        if role in ("for", "against"):
            self.verb = role
        elif role != "ends" and not self.verb:
            self.verb = role if role == "wanting" else self.verb

    def next_thing(self) -> None:
        if self.things[-1]:
            self.things.append([])

    def things_liked(self) -> list[Liking]:
        sign = {"for": 1, "against": -1}.get(self.verb, 0)
        if self.denied:
            if self.verb == "against":
                return []  # "does not dislike" is neither
            if self.verb or self.bare:
                sign = -1  # "not interested in crypto"; "no crypto"
            else:
                return []
        whole = [" ".join(thing) for thing in self.things if 0 < len(thing) <= _LONGEST_THING or (thing and not sign)]
        return [Liking(thing, sign) for thing in whole]


def _read_unspaced(sentence: str) -> list[Liking]:
    said = _compiled(UNSPACED_PERSON).sub("", sentence)
    sign = 0
    if _compiled(_UNSPACED_AGAINST).search(said):
        sign = -1
    elif _compiled(_UNSPACED_FOR).search(said):
        sign = 1
    if sign:
        said = _compiled(f"{_UNSPACED_AGAINST}|{_UNSPACED_FOR}").sub(" ", said)
    found = []
    for part in re.split(r"[,、，和与與や及]|そして|그리고", said):
        # possessive, because these endings can be read in more than one way
        rest = _compiled(f"(?:{_UNSPACED_REST})++(?=\\s|$)|^(?:{_UNSPACED_REST})++").sub("", part.strip())
        thing = " ".join(_compiled(_PARTICLE).sub("", word) for word in rest.split())
        if thing and len(thing) > 1:
            found.append(Liking(thing, sign))
    return found
