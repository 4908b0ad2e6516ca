"""Words of a text, in any script.

Turns a text into a comparable form (`fold`), into words (`folded_words`), into search terms (`terms`) and into plain
ASCII (`romanize`). Search and the duplicate policy are built on it.

It has no dictionary and no model: the language of a text is guessed from its script and from small tables of frequent
words. Stemmers and transliteration tables are loaded on first use, so that importing this module is cheap.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

__all__ = [
    "clean",
    "detect_language",
    "fold",
    "folded_words",
    "language_of",
    "languages_of_script",
    "letter_runs",
    "romanize",
    "stem",
    "stems",
    "terms",
    "token_words",
    "tokens",
    "unspaced",
    "without_stop_words",
]

# -- characters ----------------------------------------------------------------------------------------------

# Scripts written without spaces between words, and Hangul, whose particles stick to the word: for these a run
# of characters is cut into pairs, which needs no dictionary.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # Kana and the iteration marks
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Han
)
# Python's \w leaves combining marks out. In these blocks they are part of a word.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0903\u093a-\u094f\u0951-\u0957"
    "\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd"
    "\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3c-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d81-\u0d83\u0dca-\u0ddf\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84"
    "\u102b-\u103e\u1056-\u1059\u135d-\u135f\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # a flag is two letters
    "|[\u2190-\u21ff\u231a-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2934-\u2b55\u3297\u3299"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff][\U0001f3fb-\U0001f3ff]?"
)
_SUFFIXES = (
    "js|ts|tsx|jsx|py|md|rs|go|rb|kt|cs|io|net|com|org|dev|ai|app|json|ya?ml|toml|txt|csv|html?|css|sql|sh|pdf|xml"
    "|ua|de|fr|uk|eu"
)
_PUNCTUATION = ",;:/&%€$£¥₴?!()=<>≤≥+±≠→~≈\u2013\u2014\u060c\u061f\u3001\u3002"


def _pattern(letter: str, mark: str, beyond: str) -> re.Pattern[str]:
    run = f"{letter}+(?:{mark}+{letter}*)*" if mark else f"{letter}+"
    return re.compile(
        rf"(?<!\S)-\d+(?:[.,]\d+)*|[vV]?\d+(?:[.,:]\d+)+"  # -5, 3.11, 1,200, 6:30, v2.1.3
        rf"|\d{{4}}-\d\d-\d\d(?!\w)"
        # The lookahead spares plain words the attempts that follow.
        rf"|{run}(?:(?=[+\#.'-])(?:\+\+(?![\w+])|(?<=\b[cfjCFJ])\#(?!\w)"  # c++, c#
        rf"|(?<=\b[^\W\d_])(?:\.[a-zA-Z]\b)+\.?"  # u.s.
        rf"|\.(?i:{_SUFFIXES})\b(?!\.\w)"  # node.js, client.ts
        rf"|(?<=[^\W\d_])-\d+(?:\.\d+)*[a-zA-Z]?\b"  # utf-8, gpt-4
        rf"|(?:'{run})+))?"  # don't, п'ять
        rf"|(?<!\w)\.(?i:net)\b{beyond}"
        rf"|[{_PUNCTUATION}]"
    )


# Patterns are compiled at first use: together they cost more than the rest of the import.
_compiled = lru_cache(maxsize=8)(re.compile)


@lru_cache(maxsize=1)
def _ascii() -> re.Pattern[str]:
    return _pattern("[A-Za-z0-9]", "", "")


@lru_cache(maxsize=1)
def _any() -> re.Pattern[str]:
    return _pattern(f"[^\\W_{_UNSPACED}]", f"[{_MARKS}]", f"|[{_UNSPACED}]+|{_EMOJI}")


_ONE_UNSPACED = f"[{_UNSPACED}]"
_MARK_SET = frozenset(_PUNCTUATION)
_ELIDED = r"(?i)^(?:[ldjnsmtc]|qu|jusqu|lorsqu|un|dell|all|nell|sull|dall|quest)'(?=\w\w)"

_CLEAN = {ord(c): "'" for c in "\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\u00b4`\uff07\u05f3"}
_CLEAN |= {ord(c): '"' for c in "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u05f4"}
_CLEAN |= {ord(c): "-" for c in "\u2010\u2011\u2012\u2212"}
_INVISIBLE = [0x00AD, 0x034F, 0x061C, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F)]
_INVISIBLE += [
    *range(0x2060, 0x2070),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
]
_REMOVE: dict[int, str | None] = dict.fromkeys(_INVISIBLE)
_CLEANED: dict[int, str | None] = {**_CLEAN, **_REMOVE}

# Letters that no decomposition turns into a base letter, and letters whose variants readers treat as the same.
_PLAIN = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ħ": "h", "ё": "е"}
    | {"أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ـ": ""}
)
_ACCENTS = "([a-z\u0370-\u03ff])[\u0300-\u036f]+"
_POINTS = "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670]+"


def clean(text: str) -> str:
    """Return text in one Unicode form, with straight quotes, single spaces and nothing invisible."""
    if not text.isascii():
        # Twice: taking an invisible character out can leave two that compose.
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).translate(_CLEANED))
        text = text.translate(_CLEANED)
    elif "`" in text:
        text = text.replace("`", "'")
    return " ".join(text.split())


def fold(text: str) -> str:
    """Return the form in which texts are compared: like `clean`, without case and accents.

    Only for matching. Latin and Greek lose accents, Arabic and Hebrew vowel points; й and ї stay letters.
    """
    text = clean(text)
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFD", text.casefold().translate(_PLAIN))
    text = _compiled(_POINTS).sub("", _compiled(_ACCENTS).sub(r"\1", text)).translate(_PLAIN)
    return clean(unicodedata.normalize("NFC", text))


def tokens(cleaned: str) -> list[str]:
    """Return the words and punctuation marks of a cleaned text, in order and with their case.

    A run of an unspaced script is one token here; `folded_words` splits it into pairs.
    """
    return (_ascii() if cleaned.isascii() else _any()).findall(cleaned)


def unspaced(token: str) -> bool:
    """Return True if a token is a run of a script without spaces, such as Chinese or Thai."""
    return _compiled(_ONE_UNSPACED).match(token) is not None


@lru_cache(maxsize=32768)
def token_words(token: str) -> tuple[str, ...]:
    """Return the folded words in one token: none for punctuation, pairs for Chinese, two for l'hôpital."""
    if token in _MARK_SET:
        return ()
    token = fold(token).lstrip("-")
    if len(token) > 1 and unspaced(token):
        return tuple(token[i : i + 2] for i in range(len(token) - 1))
    if "'" in token:
        if elided := _compiled(_ELIDED).match(token):
            return (token[: elided.end() - 1], token[elided.end() :])
    elif token.endswith(".") or (token[1:2] == "." and not token[0].isdigit()):
        return (token.replace(".", ""),)  # u.s.a. and usa are one word
    return (token,) if token else ()


def folded_words(text: str) -> list[str]:
    """Return the folded words of a text, in order.

    >>> words("Don’t use C++ or node.js 18.2 — Київ, 東京都!")
    ["don't", 'use', 'c++', 'or', 'node.js', '18.2', 'київ', '東京', '京都']
    """
    found: list[str] = []
    for token in tokens(clean(text)):
        found += token_words(token)
    return found


def letter_runs(folded: str) -> list[str]:
    """Return the runs of letters, digits and their marks in a folded text: "gpt-4_turbo" is gpt, 4 and turbo."""
    return _compiled(f"(?:[^\\W_]|[{_MARKS}])+").findall(folded)


def join_compounds(folded: str) -> str:
    """Return a folded text with compounds joined: "e-mail" is email, "don't" is dont.

    Numbers are unchanged, and a possessive 's is removed.
    """
    if "-" not in folded and "'" not in folded:
        return folded
    letter = f"(?:[^\\W_]|[{_MARKS}])"
    # only from the start of a word and without backtracking, or a word as long as a page would take minutes
    return _compiled(f"(?<!{letter}){letter}++(?:[-']{letter}++)+").sub(_join_compound, folded)


def _join_compound(found: re.Match[str]) -> str:
    compound = found[0].removesuffix("'s")
    return compound.replace("-", "").replace("'", "") if re.search(r"[^\W\d_]", compound) else compound


# -- language ------------------------------------------------------------------------------------------------

# Frequent words that add no meaning. Never add a negation.
_STOP = {
    "en": """a an the and or of to in on at for by with from as is am are was were be been being it its this
    that these those i me my you your he him his she her they them their we our do does did has have had
    will would can could should there then than so if but about into over up out also very just user""",
    "de": """der die das den dem des ein eine einen einem einer eines und oder in im an am auf bei zu zum
    zur von vom mit fur aus nach ist sind war waren bin bist sein ich du er sie es wir ihr mich mir ihn ihm
    mein meine meinen meiner seine seinen ihre dass als auch so wie hat habe haben wird werden sehr benutzer
    nutzer""",
    "fr": """le la les l un une des du de d et ou a au aux en dans par pour sur avec est sont suis etait je
    j tu il elle on nous vous ils elles me m te t se s mon ma mes son sa ses leur ce cet cette ces que qu
    qui ai as ont y tres utilisateur""",
    "es": """el la los las un una unos unas y e o u de del a al en con por para es son soy era fue yo tu
    ella ellos me te se le les lo mi mis su sus que como mas muy ha he hay esta este esto usuario""",
    "pt": """o a os as um uma uns umas e ou de do da dos das em no na nos nas por para com ao aos eu tu ele
    ela eles elas me te se lhe meu minha meus minhas seu sua seus suas que como muito foi era sou usuario
    utilizador""",
    "it": """il lo la i gli le l un uno una e ed o di del dello della dei degli delle a al allo alla ai alle
    da dal dalla in nel nella su sul per con che sono era io tu lui lei noi voi loro mi ti si ci mio mia miei
        suo sua come molto ha ho utente""",
    "nl": """de het een en of in op aan bij te tot van voor met is zijn was ben ik jij hij zij ze wij mijn
    zijn haar dat die als ook heeft heb hebben wordt zeer gebruiker""",
    "pl": """i oraz a albo lub w we na do z ze o po u za dla od przy jest sa byl byla ja ty on ona ono my wy
    oni moj moja moje jego jej ich sie ze to ten ta te jak tak bardzo uzytkownik""",
    "uk": """і й та або у в на до з із зі о об по за для від при про є був була було були я ти він вона воно
    ми ви вони мій моя моє мої його її їх що це цей ця ці як так дуже же б би користувач""",
    "ru": """и а или в во на до с со о об по за для от при про есть был была было были я ты он она оно мы вы
    они мой моя мое мои его ее их что это этот эта эти как так очень же бы у к ко пользователь""",
}
# Words that only turn a text into a question.
_ASKING = {
    "en": """what when where who whom whose which why how many much long often ever may might must each other any some
    all both here now only own same too happen happens happened tell remind mentioned mention said say please
    know i'm i've i'd i'll you're what's who's where's when's how's it's that's there's done been more most
    yours mine ours us hers theirs myself yourself himself herself itself ourselves themselves because until
    while between through during before after again once""",
    "de": """was wann wo wer wem wen wessen welche welcher welches welchen warum wieso weshalb wie viel viele oft lange
    hatte hatten kann konnte soll bitte sag weisst gesagt noch mal""",
    "fr": """quoi quand ou qui quel quelle quels quelles pourquoi comment combien est-ce avait etait peux peut dis dit
    rappelle""",
    "es": """que cuando donde quien quienes cual cuales por como cuanto cuanta cuantos cuantas habia estaba puede
    puedes dime recuerda dijo""",
    "pt": """que quando onde quem qual quais como quanto quantos quantas havia estava pode diga lembra disse""",
    "it": """cosa che quando dove chi quale quali perche come quanto quanti quante aveva puo dimmi ricorda detto""",
    "nl": """wat wanneer waar wie welke welk waarom hoe veel vaak lang kan had zeg gezegd""",
    "pl": """co kiedy gdzie kto kogo komu ktory ktora ktore jaki jaka jakie dlaczego jak ile czy moze powiedz""",
    "uk": """що коли де хто кого кому який яка яке які чому як скільки чи може скажи нагадай казав казала""",
    "ru": """что когда где кто кого кому какой какая какое какие почему как сколько ли может скажи напомни говорил
    говорила""",
}
# Further words that identify a language; a short remark often has no other sign.
_HINTS = {
    "en": """not no never likes like lives live works work uses use prefers prefer wants want drinks plays
    speaks two three four five six seven eight nine ten has name every before after morning evening day days
    week month year years takes take eats eat goes go reads read writes write learns learning knows know
    loves love hates hate needs need thinks think plans plan called named always usually often sometimes
    favorite favourite sister brother mother father wife husband son daughter friend who when where what how
    because until since without first only all some any both most many more less""",
    "de": """mag nicht kein keine keinen nie wohnt wohne isst esse trinkt trinke spricht spreche arbeitet
    arbeite lebt lebe will kann zwei drei vier funf sechs morgens abends ohne kommt heisst""",
    "fr": """ne n pas jamais aime habite travaille vit prefere parle mange boit veut deux trois quatre cinq
    sans avant apres chez fait utilise""",
    "es": """no nunca vive vivo trabaja trabajo come tiene tengo gusta habla hablo toma quiere dos tres
    cuatro cinco sin siempre usa bebe""",
    "pt": """nao nunca mora moro gosta gosto tem tenho trabalha fala come quer dois duas tres quatro cinco sem
        sempre bebe usa em""",
    "it": """non mai vive vivo mangia parla lavora ha ho due tre quattro cinque senza sempre beve vuole
    piace abita usa""",
    "nl": """geen niet nooit woont woon werkt werk eet drinkt spreekt houdt twee drie vier vijf zonder""",
    "pl": """nie nigdy lubi lubie mieszka mieszkam ma mam zna chce pije pracuje mowi dwa dwie trzy cztery piec
        bez""",
    "tr": """ve bir bu icin ile degil yok var seviyor yasiyor calisiyor iki uc dort bes kullanici ben""",
    "sv": """och att det som en ett inte aldrig jag han hon bor gillar arbetar har tva tre""",
}
_LETTERS = {"ß": "de", "ñ": "es", "ã": "pt", "õ": "pt", "ł": "pl", "ż": "pl", "ą": "pl", "ę": "pl", "ś": "pl"}
_LETTERS |= {
    "ğ": "tr",
    "ı": "tr",
    "ş": "tr",
    "œ": "fr",
    "è": "fr",
    "ê": "fr",
    "ä": "de",
    "ö": "de",
    "ü": "de",
}
_SNOWBALL = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "pt": "portuguese",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "ru": "russian",
    "tr": "turkish",
    "sv": "swedish",
    "ar": "arabic",
    "el": "greek",
    "hi": "hindi",
}


_BY_WRITERS = "sv nl tr pl it pt de fr es ru uk en"


@lru_cache(maxsize=1)
def _stop_words() -> dict[str, frozenset[str]]:
    return {code: frozenset(table.split()) for code, table in _STOP.items()}


@lru_cache(maxsize=1)
def _asking_words() -> dict[str, frozenset[str]]:
    return {code: frozenset(table.split()) for code, table in _ASKING.items()}


@lru_cache(maxsize=1)
def _speakers() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for tables in (_STOP, _HINTS):
        for code, table in tables.items():
            if code not in ("uk", "ru"):  # distinguished by their letters
                for word in table.split():
                    if code not in found.setdefault(word, []):
                        found[word].append(code)
    return {word: tuple(codes) for word, codes in found.items()}


@lru_cache(maxsize=32768)
def _script(word: str) -> str:
    """Return the language that a word's letters identify, "" for plain Latin ones."""
    if word.isascii():
        return ""
    for letter in word:
        if letter in _LETTERS:
            return _LETTERS[letter]
        if "\u0400" <= letter <= "\u052f":
            return "uk" if any(c in "іїєґ" for c in word) else "ru"
        if "\u0370" <= letter <= "\u03ff":
            return "el"
        if "\u0600" <= letter <= "\u06ff":
            return "ar"
        if "\u0900" <= letter <= "\u097f":
            return "hi"
        if "\u0590" <= letter <= "\u05ff":
            return "he"
        if _compiled(_ONE_UNSPACED).match(letter):
            return "cjk"
    return ""


# Ukrainian words without any of the letters that Russian lacks.
_UKRAINIAN = """користувач користувачка любить живе живу має маю та чи що як він вона вони хоче хочу працює
грає зараз дуже без від щоранку щодня програмісткою каву народження травня"""


@lru_cache(maxsize=1)
def _ukrainian_words() -> frozenset[str]:
    return frozenset(_UKRAINIAN.split())


def detect_language(found: list[str]) -> str:
    """Return the likely language of a text from its words in lower case; English when in doubt."""
    speakers = _speakers()
    votes: dict[str, int] = {}
    for word in found:
        if not word.isascii():
            if code := _script(word):
                if code == "ru" and word in _ukrainian_words():
                    code = "uk"
                # A letter is a stronger sign than a word that several languages share.
                votes[code] = votes.get(code, 0) + 4
            word = fold(word)
        weight = 2 if len(word) > 1 else 1  # vitamin D is not French
        for code in speakers.get(word, ()):
            votes[code] = votes.get(code, 0) + weight
    if not votes:
        return "en"
    if "uk" in votes and "ru" in votes:
        return "uk"  # one Ukrainian letter decides: Russian has none of them
    best = max(votes.values())
    if best < 2 or votes.get("en") == best:
        return "en"
    # If two languages share all these words, choose the one with more writers.
    return max((code for code in votes if votes[code] == best), key=_BY_WRITERS.find)


def language_of(text: str) -> str:
    """Return the likely language of a text."""
    return detect_language([token.lower() for token in tokens(clean(text))])


# -- stems ---------------------------------------------------------------------------------------------------

_UK_ENDINGS = """ами ями ові еві єві ого ому ими іми ього ьому ої ій им ім их іх ою ею єю ах ях ам ям ом ем
єм ів їв ать ять ить їть уть ють ємо емо имо їмо єте ете ите їте еш єш иш їш ає яє ує аю яю ую ають яють
ують аєш яєш уєш аємо уємо аєте уєте ати яти ити іти ути ав ала ало али яв яла яло яли ив ила ило или ував
ювала увала ювати увати ю у є е а я о и і ї ь й"""


@lru_cache(maxsize=1)
def _uk_endings() -> list[str]:
    return sorted(_UK_ENDINGS.split(), key=len, reverse=True)


def _ukrainian(word: str) -> str:
    """Return the stem of a Ukrainian word without case, number and person endings. Snowball has no such stemmer."""
    word = word.removesuffix("ся").removesuffix("сь") if len(word) > 5 else word
    if len(word) > 4 and word.endswith("лю") and word[-3] in "бпвмф":
        return word[:-2]  # люблю, любить
    for ending in _uk_endings():
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    if len(word) == 4 and word[-1] in "уеюєаи":
        return word[:-1]  # живу, живе
    return word


@lru_cache(maxsize=32)
def _stemmer(code: str) -> Callable[[str], str]:
    if code == "uk":
        return _ukrainian
    if code not in _SNOWBALL:
        return str
    import Stemmer  # here, not above: loading it costs more than this whole module

    # Without its own cache: `stem` has one, and this one would keep users' words for the life of the process.
    snowball: Callable[[str], str] = Stemmer.Stemmer(_SNOWBALL[code], 0).stemWord
    if code != "ru":
        return snowball

    def russian(word: str) -> str:
        if len(word) > 4 and word.endswith("лю") and word[-3] in "бпвмф":
            return word[:-2]
        found = snowball(word)
        if found == word and len(word) >= 5 and word.endswith(("ет", "ут", "ем")):
            found = word[:-2]  # живет: Snowball removes this ending only after а and я
        return found

    return russian


@lru_cache(maxsize=65536)
def stem(word: str, code: str) -> str:
    """Return the stem of a folded word in a language; the word itself if there is no stemmer."""
    if len(word) < 3 or not word.isalpha():
        if "'" not in word:
            return word
        word = word.removesuffix("'s")
    if code == "en" and not word.isascii():
        code = _script(word)  # a foreign word in an English sentence
    found = _stemmer(code)(word)
    return found or word


@lru_cache(maxsize=4096)
def stems(word: str) -> frozenset[str]:
    """Return a folded word and its stems in all languages of its script, because one word does not identify it."""
    codes = languages_of_script(word) or tuple(_SNOWBALL)
    return frozenset({word, *(stem(word, code) for code in codes)})


def languages_of_script(word: str) -> tuple[str, ...]:
    """Return the languages that a folded word's letters identify; none for Latin letters."""
    code = _script(word)
    if code in ("uk", "ru"):
        return "uk", "ru"
    return (code,) if code in ("el", "ar", "hi", "he", "cjk") else ()


def without_stop_words(found: list[str], code: str) -> list[str]:
    """Return folded words without stop words; all of them if no other is left."""
    stops = _stop_words().get(code, frozenset())
    return [word for word in found if word not in stops] or found


_OTHER_SCRIPTS = frozenset({"uk", "ru", "el", "ar", "hi", "he", "cjk"})


def terms(text: str, code: str = "", *, asked: bool = False) -> tuple[str, ...]:
    """Return the search terms of a text: stemmed words without stop words, in order.

    The language is guessed unless its ``code`` is given. A text of only stop words ("The Who") keeps them, and
    negations always stay. With ``asked``, words that only form a question are left out. An identifier is found as a
    whole and by its parts: gpt-4 also by gpt and 4.
    """
    found = folded_words(text)
    if text.isascii():
        code = code or detect_language(found)
    else:
        cleaned = tokens(clean(text))
        code = code or detect_language(
            [token.lower() for token in cleaned]
        )  # before folding, which removes identifying letters
        if not asked:  # index single characters too, because they are searched as such and not as half of a pair
            found += [
                letter for token in cleaned if len(token) > 1 for letter in token if _compiled(_SYLLABLE).match(letter)
            ]
    if stops := _stop_words().get(code):
        found = [word for word in found if word not in stops] or found
    if asked and (asking := _asking_words().get(code)):
        dropped = asking | (stops or frozenset())
        found = [word for word in found if word.removesuffix("'s") not in dropped]
    stemmed: list[str] = []
    for word in found:
        if word.isalpha():
            stemmed.append(term(word, code))
        else:
            stemmed += [term(part, code) for part in _identifier_parts(word)]
    return tuple(stemmed)


def term(word: str, code: str) -> str:
    """Return the search term of a folded word in a text of this language; in other scripts, Latin words are English."""
    return stem(word, "en" if code in _OTHER_SCRIPTS and word.isascii() else code)


_CLITICS = frozenset({"", "s", "t", "m", "d", "re", "ve", "ll"})


@lru_cache(maxsize=16384)
def _identifier_parts(word: str) -> tuple[str, ...]:
    """Return an identifier and its parts; 1,200 is 1200, and c++, don't and 3.11 have no parts."""
    if not any(letter.isalpha() for letter in word):
        return (word.replace(",", "") if "," in word else word,)
    if "'" in word:
        head, _, tail = word.partition("'")
        named = len(head) > 2 and tail not in _CLITICS  # a name with its ending, as in Turkish
        return (word, head) if named else (word,)
    parts = [part for part in _compiled(_PART).findall(word) if len(part) > 1 or part.isdigit()]
    return (word, *(part for part in parts if part != word))


_SYLLABLE = "[\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]"  # Han and Hangul
_PART = r"[^\W\d_]+|\d+(?:[.:]\d+)*"


# -- transliteration -----------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _anyascii() -> Callable[[str], str]:
    from anyascii import anyascii  # its tables are read from disk

    return anyascii


@lru_cache(maxsize=32768)
def romanize(word: str) -> str:
    """Return a word of any script in lower-case ASCII letters: Харків becomes kharkiv."""
    folded = fold(word)
    if folded.isascii():
        return folded
    return _anyascii()(folded).lower().replace("'", "").replace("`", "").strip() or folded
