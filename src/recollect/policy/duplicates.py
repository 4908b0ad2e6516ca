"""Is this the fact we already have, said differently?

Two statements about one person are compared by rules: `Statement.of` brings a text into a form in which case,
punctuation, inflection, script, contractions, number words and the usual ways to name the speaker no longer
matter, and `relation` calls two of them SAME only when every word that is left has its counterpart and the
order does not give it another role. Whatever a rule does not know counts as a difference: taking two facts
for one loses a memory, taking one for two only keeps a second copy.

It has no model and no dictionary, keeps nothing of what it saw apart from bounded caches of single words, and
knows nothing about stores, users or conflicts. A translation is recognised only where all its words are in
the tables below.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from recollect import text as _text

__all__ = ["Relation", "Statement", "relation", "signature"]


class Relation(enum.Enum):
    """How a new statement stands to a known one."""

    SAME = "same"
    NEAR = "near"
    DIFFERENT = "different"


# -- tables --------------------------------------------------------------------------------------------------
# Each is text, most of it split at first use, so that importing this module stays cheap.


def _set(table: str) -> frozenset[str]:
    return frozenset(table.split())


_compiled = lru_cache(maxsize=64)(re.compile)

# Words for the person the memory is about, and other words that carry nothing here: articles, present forms
# of
# "to be". Without them "The user is vegetarian", "I'm vegetarian" and "vegetarian" are one statement.
_SELF = {
    "en": "i user he she they",
    "de": "ich er benutzer benutzerin nutzer nutzerin",
    "fr": "je j il elle utilisateur utilisatrice",
    "es": "yo ella usuario usuaria me le",
    "pt": "eu ele ela usuario usuaria utilizador utilizadora",
    "it": "io lui lei utente",
    "nl": "ik hij zij ze gebruiker",
    "pl": "ja on ona uzytkownik uzytkowniczka",
    "uk": "я він вона вони користувач користувачка користувачу",
    "ru": "я он она они пользователь пользовательница",
    "tr": "ben o kullanici",
    "ar": "انا المستخدم",
    "el": "εγω χρηστησ",
}
_DROP = {
    "en": "a an the is am are be that of my his her their",
    "de": "der die das den dem des ein eine einen einem einer eines ist bin sind dass mein meine meinen"
    " meiner"
    " sein seine seinen ihr ihre ihren",
    "fr": "le la les l un une est suis sont que mon ma mes son sa ses se s",
    "es": "el la los las un una es soy son que mi mis su sus se",
    "pt": "o a os as um uma e sou sao que meu minha meus minhas seu sua seus suas",
    "it": "il lo la i gli le l un uno una sono che mio mia miei suo sua mi si",
    "nl": "de het een is ben zijn dat mijn haar",
    "pl": "jest jestem sa ze moj moja moje jego jej",
    "uk": "є що мій моя моє мої його її їхній",
    "ru": "есть что мой моя мое мои его ее их",
    "el": "ο η το οι τα ειναι ειμαι",
}
# Prepositions that may change or be missing without changing the fact ("at work", "in work"). Those with one
# label are taken for the same.
_WEAK = {
    "en": "in=in at=in on=in to=to for=for as=as",
    "de": "in=in im=in an=in am=in auf=in bei=in beim=in zu=to zum=to zur=to als=as fur=for",
    "fr": "a=in en=in dans=in au=in aux=in de=of du=of des=of d=of pour=for comme=as",
    "es": "en=in a=in al=in de=of del=of por=in para=for como=as",
    "pt": "em=in na=in nos=in nas=in de=of do=of da=of dos=of das=of para=for por=in como=as ao=to",
    "it": "a=in in=in nel=in nella=in al=in alla=in di=of del=of della=of da=from dal=from per=for come=as",
    "nl": "in=in op=in bij=in aan=in te=in voor=for als=as naar=to",
    "pl": "w=in we=in na=in u=in do=to dla=for jako=as",
    "uk": "у=in в=in на=in до=to для=for як=as по=in",
    "ru": "в=in во=in на=in у=in к=to ко=to для=for как=as по=in",
    "el": "στην=in στο=in στη=in στον=in σε=in",
}
# Portuguese "no" is one (strong, below): where a language is guessed wrong, a negation must not get lost.
# Words that open a part of their own, whose place in the sentence is free but whose object is not.
_STRONG = {
    "en": "from with without before after by against over than under until till since about between"
    " through during"
    " near into if when because unless while except versus despite via",
    "de": "mit ohne von vom aus vor nach gegen uber unter seit bis durch wenn weil statt",
    "fr": "avec sans avant apres contre depuis par sur sous si quand entre vers",
    "es": "con sin desde hasta antes despues contra sobre entre si cuando",
    "pt": "no com sem desde ate antes depois contra sobre entre se quando",
    "it": "con senza fino prima dopo contro sotto tra fra se quando",
    "nl": "met zonder van uit voor na tegen over onder sinds tot als",
    "pl": "z ze bez od przed po za pod nad o przy przeciw jesli kiedy",
    "uk": "з із зі без від перед після проти під над за про через якщо коли",
    "ru": "с со без из от до после против под над за про о об через если когда перед",
    "el": "απο με χωρισ πριν μετα αν",
}
_NOT = {
    "en": "not no",
    "de": "nicht kein keine keinen keinem keiner",
    "fr": "ne n",
    "es": "no",
    "pt": "nao",
    "it": "non",
    "nl": "niet geen",
    "pl": "nie",
    "uk": "не ні",
    "ru": "не нет",
}
_AND = {
    "en": "and plus",
    "de": "und sowie",
    "fr": "et",
    "es": "y e",
    "pt": "e",
    "it": "e ed",
    "nl": "en",
    "pl": "i oraz",
    "uk": "і й та",
    "ru": "и",
    "tr": "ve",
    "el": "και",
}
_NUMBERS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen"
    " seventeen eighteen nineteen twenty",
    "de": "null - zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
    "fr": "zero - deux trois quatre cinq six sept huit neuf dix onze douze",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "pt": "zero - dois|duas tres quatro cinco seis sete oito nove dez onze doze",
    "it": "zero - due tre quattro cinque sei sette otto nove dieci undici dodici",
    "nl": "nul - twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "pl": "zero jeden|jedna|jedno dwa|dwie|dwoje|dwoch trzy|troje|trzech cztery|czworo piec|piecioro"
    " szesc siedem"
    " osiem dziewiec dziesiec jedenascie dwanascie",
    "uk": "нуль один|одна|одне два|дві|двоє|двох три|троє|трьох чотири|четверо п'ять|п'ятеро шість"
    "|шестеро сім вісім"
    " дев'ять десять одинадцять дванадцять",
    "ru": "ноль один|одна|одно два|две|двое|двух три|трое|трех четыре|четверо пять|пятеро шесть семь"
    " восемь девять"
    " десять одиннадцать двенадцать",
    "tr": "sifir bir iki uc dort bes alti yedi sekiz dokuz on",
}
_TENS = "thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 hundred=100 thousand=1000"
_ORDINALS = "- first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_MONTHS = "january february march april may june july august september october november december"

# One spelling, abbreviation or name for each thing. Safe ones only: nobody means something else by k8s.
_WORDS = """javascript=js typescript=ts postgresql=postgres,pg,psql kubernetes=k8s mongodb=mongo
email=e-mail,emails,e-mails film=movie,movies child=kid,kids,children bicycle=bike apartment=flat
vacation=holiday,holidays television=tv telephone=phone,phones mother=mom,mum father=dad fridge=refrigerator
university=uni colleague=coworker photo=photograph theater=theatre center=centre meter=metre liter=litre
fiber=fibre kilometer=km,kms,kilometre,kilometres kilogram=kg,kilo mile=mi hour=hr,hrs minute=min,mins
gram=gramme milligram=mg euro=eur,€ dollar=usd,$ pound=gbp,£ percent=%,pct program=programme gray=grey
license=licence practice=practise defense=defence catalog=catalogue jewelry=jewellery traveling=travelling
traveled=travelled canceled=cancelled doctor=physician lawyer=attorney live=reside,resides,based like=enjoy
work=employed favorite=fave daily=everyday buy=purchase name=named machinelearning=ml
artificialintelligence=ai have=has go=goes woman=women man=men foot=feet tooth=teeth mouse=mice
wife=wives knife=knives"""
# Those that mean the same in every language.
_INTERNATIONAL = _set(
    "javascript typescript postgresql kubernetes mongodb email kilometer kilogram euro dollar percent"
)
# Longer ways to say one word.
_PHRASES = """the us=usa|united states of america=usa|united states=usa|united kingdom=uk|great britain=uk
new york city=nyc|new york=nyc|machine learning=machinelearning
artificial intelligence=artificialintelligence|amazon web services=aws|e mail=email|e mails=email
have to=must|has to=must|going to=will|every day=daily|each day=daily|every week=weekly|every month=monthly
every year=yearly|is called=name|are called=name|'s called=name|co worker=colleague|fond of=like
san francisco=sanfrancisco|estados unidos=usa|vereinigte staaten=usa|etats unis=usa|stati uniti=usa
stany zjednoczone=usa|сполучені штати=usa|соединенные штаты=usa|reino unido=uk|royaume uni=uk|regno unito=uk
nueva york=nyc|нью йорк=nyc|nowy jork=nyc|nova york=nyc|nova iorque=nyc|vs code=vscode
visual studio code=vscode
gran bretana=uk|велика британія=uk|великобританія=uk|node js=node.js|react js=reactjs"""
_IRREGULAR = """had=have was=be were=be did=do went=go bought=buy sold=sell ate=eat drank=drink drove=drive
wrote=write ran=run spoke=speak took=take got=get gave=give knew=know thought=think taught=teach
learnt=learn met=meet made=make said=say saw=see slept=sleep spent=spend began=begin broke=break built=build
came=come chose=choose fell=fall felt=feel found=find flew=fly forgot=forget grew=grow heard=hear kept=keep
lost=lose paid=pay rode=ride sang=sing sent=send stood=stand swam=swim told=tell understood=understand
won=win wore=wear brought=bring caught=catch"""
# The relatives and friends whose gender is the whole difference; other endings may vary with the speaker.
_KIN = {
    "es": "hijo hija hermano hermana abuelo abuela amigo amiga tio tia primo prima novio novia nieto"
    " nieta gato gata",
    "pt": "filho filha irmao irma avo amigo amiga tio tia primo prima namorado namorada neto neta gato gata",
    "it": "figlio figlia fratello sorella nonno nonna amico amica zio zia cugino cugina gatto gatta",
}
# Places, peoples and languages whose names differ from language to language by more than spelling.
_PLACES = """kyiv=kiev київ києва києві києву києвом киев киева киеве kijow kijowie kiew
kharkiv=харків харкова харкові харьков kharkov lviv=львів львова львові львов lvov lwow lemberg
odesa=одеса одесса odessa dnipro=дніпро днепр dnepr vienna=відень відня відні вена wien wieden vienne viena
warsaw=варшава warszawa warszawie warschau varsovie varsovia krakow=краків кракові краков cracow krakau
krakowie moscow=москва moskva moskau moscou moscu mosca moskwa
prague=прага praha prag praga rome=рим roma rom rzym paris=париж paryz parigi parís berlin=берлін берлин
berlino munich=мюнхен munchen muenchen monachium cologne=кельн кьольн koln koeln colonia kolonia
london=лондон londres londyn londra lisbon=лісабон лиссабон lisboa lissabon lisbonne lizbona
florence=флоренція флоренция firenze venice=венеція венеция venezia venedig milan=мілан милан milano mailand
naples=неаполь napoli turin=турин torino geneva=женева geneve genf zurich=цюрих zuerich brussels=брюссель
bruxelles bruessel brussel copenhagen=копенгаген kobenhavn kopenhagen athens=афіни афины αθηνα athen athenes
atenas istanbul=стамбул tokyo=東京 токіо токио tokio 도쿄 beijing=北京 пекін пекин peking pekin 베이징
shanghai=上海 шанхай nanjing=南京 kyoto=京都 кіото киото osaka=大阪 осака seoul=서울 сеул 首尔 busan=부산
cairo=القاهره القاهرة каїр каир kairo dubai=دبي дубай jerusalem=єрусалим иерусалим ירושלים nyc=ニューヨーク
纽约 뉴욕 ukraine=україна украина ukraina ucrania ucraina ウクライナ 乌克兰 우크라이나 أوكرانيا
germany=німеччина германия deutschland niemcy allemagne alemania alemanha germania duitsland ドイツ 德国
독일 ألمانيا france=франція франция frankreich francja francia franca 法国 フランス 프랑스 poland=польща
польша polska polen pologne polonia spain=іспанія испания espana spanien hiszpania espagne spagna إسبانيا
スペイン 西班牙 italy=італія италия italia italien wlochy italie イタリア 意大利 austria=австрія австрия
osterreich oesterreich autriche australia=австралія австралия australien australie 澳大利亚
switzerland=швейцарія швейцария schweiz suisse szwajcaria netherlands=нідерланди нидерланды holland
niederlande japan=日本 японія япония japon japonia giappone 일본 china=中国 中國 китай chiny chine 중국
korea=한국 韩国 корея usa=сша eeuu アメリカ 美国 미국 uk=великобритания イギリス 英国 영국 england=англія
англия angleterre inglaterra inghilterra turkey=туреччина турция turkiye turkei greece=греція греция
griechenland grecja ελλαδα russia=росія россия russland rosja canada=канада kanada brazil=бразилія бразилия
brasil mexico=мексика mexiko mexique egypt=єгипет египет مصر india=індія индия indien english=англійська
английский englisch anglais ingles inglese angielski engels 英語 英语 영어 german=німецька немецкий deutsch
allemand aleman alemao tedesco niemiecki duits ドイツ語 德语 french=французька французский franzosisch
francais frances francese francuski フランス語 法语 spanish=іспанська испанский spanisch espagnol espanol
espanhol spagnolo hiszpanski スペイン語 西班牙语 ukrainian=українська украинский ukrainisch ukrainien
ucraniano ucraino ukrainski polish=польська польский polnisch polonais polaco polacco polski
russian=російська русский russisch russe ruso russo rosyjski italian=італійська итальянский italienisch
italien italiano wloski japanese=японська японский japanisch 日本語 chinese=китайська китайский chinesisch
中文 汉语 portuguese=португальська португальский portugiesisch portugues"""
# Everyday verbs whose translation is certain, so that a fact found in two languages is kept once.
_VERBS = """live=живе живу живет wohnt wohne vive vivo mora moro habite mieszka mieszkam abita woont woon
work=працює працюю работает работаю arbeitet arbeite travaille trabaja trabajo trabalha lavora pracuje
have=має маю имеет имею hat habe tiene tengo tem tenho heeft heb
drink=п'є п'ю пьет пью trinkt trinke boit bois bebe bebo beve bevo pije drinkt
speak=spricht spreche говорить говорю говорит habla hablo parle parla parlo spreekt"""
# Words that say when or how often. They move freely: "on weekends plays chess", "plays chess on weekends".
_MOVABLE = _set("""daily weekly monthly yearly morning evening night afternoon noon weekend weekday monday
tuesday wednesday thursday friday saturday sunday today tomorrow yesterday always never often usually
sometimes rarely now currently щоранку щовечора щодня щотижня вранці ввечері зранку завжди ніколи часто
зазвичай иногда всегда никогда часто утром вечером утрам вечерам morgens abends nachts taglich immer nie
siempre nunca toujours jamais sempre mai zawsze nigdy czesto codziennie rano wieczorem
    montag dienstag mittwoch donnerstag freitag samstag sonntag wochenende
    lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miercoles jueves viernes sabado
    domingo sabados domingos manana noche lunedi martedi mercoledi giovedi venerdi sabato domenica manha
    noite weekendy poniedzialek wtorek srode czwartek piatek sobote niedziele понеділок понеділка вівторок
    вівторка середу середи четвер четверга п'ятницю п'ятниці суботу суботи неділю неділі вихідні вихідних
    понедельник вторник среду четверг пятницу субботу воскресенье выходные выходным""")
_EVERY = _set("every each")
_FOND = _set("like love hate prefer start begin continue")
_GENDERS = dict.fromkeys(_set("he his il он він on er ele lui hij"), "(he)")
_GENDERS |= dict.fromkeys(_set("she her elle ella она вона ona ela lei zij"), "(she)")
# Keys whose value people usually tell with a verb: location + Kyiv is "lives in Kyiv".
_SPOKEN = {
    "location": "live in",
    "city": "live in",
    "residence": "live in",
    "home_city": "live in",
    "employer": "work at",
    "company": "work at",
    "role": "work as",
    "job": "work as",
    "occupation": "work as",
    "profession": "work as",
    "allergy": "allergic to",
    "allergies": "allergic to",
    "name": "my name is",
}
_PAST = {
    "es": r"(?:aba|abas|aban|ía|ían|ó|aron|ieron)$",
    "pt": r"(?:ava|avam|ia|iam|ou|aram|eram|iram|eu|iu)$",
    "it": r"(?:ava|avano|eva|evano|iva|ivano|ò|arono|erono)$",
    "fr": r"(?:ait|ais|aient|èrent)$",
    "de": r"(?:te|ten|test)$",
    "nl": r"(?:de|te|den|ten)$",
    "pl": r"[aiyęe](?:ł|ła|ło|li|ły|łem|łam)$",
    # One for both: a short text may not tell them apart.
    "uk": r"(?:[аяиу]в|[аяиуієеёы](?:л|ла|ло|ли))(?:ся|сь)?$",
    "ru": r"(?:[аяиу]в|[аяиуієеёы](?:л|ла|ло|ли))(?:ся|сь)?$",
}
_FRAME = (
    r"(?i)\s*(?:"
    r"(?:please |also )?(?:remember|note|keep in mind|don'?t forget) that\s+"
    r"|(?:(?:the )?user|he|she|they|i) (?:has |have |had |also |just |once )*"
    r"(?:(?:mention(?:ed|s)?|sa(?:id|ys?)|stat(?:ed|es?)|not(?:ed|es)|told (?:me|us)|report(?:ed|s)"
    r"|confirm(?:ed|s)"
    r"|explain(?:ed|s)|indicat(?:ed|es?)|shared) that|(?:mentioned|said|says|stated|told (?:me|us))"
    r"(?= (?:he|she|they|i|his|her|their|my)\b))\s+"
    r"|(?:користувач(?:ка)?|він|вона|пользователь|он|она) (?:сказа[влла]+|згада[вла]+|каже|зазначи[вла]+"
    r"|сказал|говорит"
    r"|упомянул),? (?:що|что)\s+"
    r"|(?:запам'ятай|запомни),? (?:що|что)\s+"
    r"|(?:der (?:be)?nutzer|er|sie) (?:sagt|sagte|hat gesagt|hat erwahnt),? dass\s+"
    r"|(?:l'utilisateur|il|elle) (?:dit|a dit) que\s+"
    r"|(?:el usuario|él|ella) (?:dice|dijo) que\s+)"
)
# What opens a statement in scripts without spaces: "I", "the user", with the topic particle.
_UNSPACED_SELF = (
    r"^(?:私は|わたしは|僕は|俺は|ユーザーは|ユーザは|彼は|彼女は|我(?!们|的)|用户|用戶|저는"
    r"|나는|사용자는|제가)(?=.)"
)
_TIME = r"(\d{1,2})(?::(\d\d))?(am|pm)?$"
_AMOUNT = r"(\d+(?:[.,]\d+)*)(kms?|kg|mg|g|mi|h|hrs?|mins?|ml|cm|mm|m|l|kb|mb|gb|tb|eur|usd)$"
_ORDINAL = r"(\d+)(?:st|nd|rd|th)$"
_THOUSANDS = r"\d{1,3}(?:,\d{3})+$"
_VOWELS = frozenset("aeiouy")
# Surnames that are no plural of a first name, and words that only look like a plural.
_NO_PLURAL = _set("""williams roberts adams peters daniels johns edwards richards stevens matthews andrews
rogers collins jacobs james charles thomas phillips hopkins jenkins simmons sanders watkins wilkins harris
davis evans jones parsons rivers brooks woods fields news physics mathematics always perhaps towards besides
paris texas kansas""")
# Words one letter apart that are both words: never a typo.
_CONFUSABLE = (
    frozenset({"complement", "compliment"}),
    frozenset({"stationary", "stationery"}),
    frozenset({"contract", "contact"}),
    frozenset({"conversion", "conversation"}),
)

# -- words ---------------------------------------------------------------------------------------------------

_DROPPED, _CONTENT, _WEAKLY, _STRONGLY, _NEGATION, _JOIN, _OWNER, _EMOTICON, _POSSESSIVE = range(9)


class _Word(NamedTuple):
    """One word as the comparison sees it."""

    kind: int
    form: str  # equal forms are equal words; the tense mark ~ is part of it
    verb: str  # the same, if the word opens the statement and so is likely its verb
    stem: str  # romanized, for the index and for nearness
    surface: str  # folded, as written
    plain: str  # the form without tense
    known: bool  # settled by a table: spelling no longer says anything
    latin: bool
    capital: bool


def _pairs(table: str) -> dict[str, str]:
    """ "a=b,c" becomes {b: a, c: a, a: a}."""
    found: dict[str, str] = {}
    for entry in table.split():
        name, _, variants = entry.partition("=")
        found[name] = name
        found.update(dict.fromkeys(variants.split(","), name))
    return found


def _table(table: str) -> dict[str, str]:
    """ "a=b c=d" becomes {a: b, c: d}."""
    found: dict[str, str] = {}
    for entry in table.split():
        name, _, value = entry.partition("=")
        found[name] = value
    return found


class _Grammar(NamedTuple):
    kinds: dict[str, int]
    labels: dict[str, str]
    numbers: dict[str, str]
    past: re.Pattern[str] | None
    kin: frozenset[str]


@lru_cache(maxsize=64)
def _grammar(code: str) -> _Grammar:
    kinds: dict[str, int] = {}
    labels = _table(_WEAK.get(code, ""))
    for words, kind in (
        (_DROP.get(code, "").split(), _DROPPED),
        (labels, _WEAKLY),
        (_STRONG.get(code, "").split(), _STRONGLY),
        (_SELF.get(code, "").split(), _OWNER),
        (_AND.get(code, "").split(), _JOIN),
        (_NOT.get(code, "").split(), _NEGATION),
    ):
        for word in words:
            kinds.setdefault(word, kind)
    numbers: dict[str, str] = {}
    for value, names in enumerate(_NUMBERS.get(code, "").split()):
        numbers.update((name, str(value)) for name in names.split("|") if name != "-")
    if code == "en":
        numbers.update(_table(_TENS))
        numbers.update((name, f"{n}th") for n, name in enumerate(_ORDINALS.split()) if name != "-")
    past = _compiled(_PAST[code]) if code in _PAST else None
    return _Grammar(kinds, labels, numbers, past, frozenset(_KIN.get(code, "").split()))


@lru_cache(maxsize=1)
def _synonyms() -> dict[str, str]:
    return _pairs(_WORDS)


@lru_cache(maxsize=1)
def _irregular() -> dict[str, str]:
    return _table(_IRREGULAR)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Every known name of a place or language, folded, and its stems in the languages that decline names."""
    found: dict[str, str] = {}
    name = ""
    for entry in _PLACES.split():
        head, equals, rest = entry.partition("=")
        if equals:
            name = head
            found[name] = name
        variant = _text.fold(rest or head)
        found[variant] = name
    for variant, name in list(found.items()):
        for code in () if variant.isascii() else ("uk", "ru"):
            stem = _text.stem(variant, code)
            if len(stem) >= 4:
                found.setdefault(stem, name)
    return found


@lru_cache(maxsize=1)
def _verbs() -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for entry in _VERBS.split():
        head, equals, rest = entry.partition("=")
        name = head if equals else name
        found[rest or head] = name
    return found


@lru_cache(maxsize=1)
def _phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Phrases by their first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for entry in _PHRASES.replace("\n", "|").split("|"):
        phrase, _, word = entry.partition("=")
        parts = tuple(_text.fold(phrase).split())
        found.setdefault(parts[0], []).append((parts, word))
    for options in found.values():
        options.sort(key=lambda option: -len(option[0]))
    return found


def _american(word: str) -> str:
    """One spelling for colour and color, organise and organize."""
    if len(word) >= 5 and "our" in word:
        word = re.sub(r"our(?=$|ite$|hood$|al$|ful$|able$|ed$|ing$)", "or", word) if word != "scour" else word
    if len(word) >= 6:
        word = re.sub(r"(?<=[iy])s(?=(?:e|ed|er|ing|ation)$)", "z", word)
    return word


def _singular(word: str) -> str:
    """An English noun or verb without its -s. Only inflection: a stemmer would make engine of engineer."""
    if len(word) < 4 or word[-1] != "s" or word[-2] in "sui" or word in _NO_PLURAL:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


_ONE_SPELLING = (("kh", "h"), ("shch", "sch"), ("w", "v"), ("ph", "f"), ("ks", "x"), ("j", "i"), ("y", "i"))


@lru_cache(maxsize=16384)
def _skeleton(word: str) -> str:
    """What is left of a name when the ways to write it in Latin letters are taken for one."""
    found = _text.romanize(word)
    for old, new in _ONE_SPELLING:
        found = found.replace(old, new)
    found = re.sub(r"[^a-z0-9]", "", found)
    if found.startswith("ie"):
        found = found[1:]
    return re.sub(r"(.)\1+", r"\1", found)


def _content(
    form: str,
    surface: str,
    *,
    tense: str = "",
    verb: str = "",
    stem: str = "",
    known: bool = False,
    raw: str = "",
) -> _Word:
    latin = surface.isascii() or _text.romanize(surface) == surface
    return _Word(
        _CONTENT,
        form + tense,
        (verb or form) + tense,
        stem or form,
        surface,
        form,
        known,
        latin,
        raw[:1].isupper(),
    )


def _bare(kind: int, form: str = "", surface: str = "") -> _Word:
    return _Word(kind, form, form, form, surface, form, True, True, False)


def _english(word: str, raw: str) -> _Word:
    if base := _irregular().get(word):
        return _content(base, word, tense="~p", stem=base, raw=raw)
    synonyms = _synonyms()
    if name := synonyms.get(word):
        return _content(name, word, stem=_text.stem(name, "en"), known=True, raw=raw)
    singular = _singular(word)
    lemma = _american(singular)
    if name := synonyms.get(singular) or synonyms.get(lemma):
        return _content(name, word, stem=_text.stem(name, "en"), known=True, raw=raw)
    stem = _text.stem(lemma, "en")
    if len(word) > 4 and word.endswith("ed") and not word.endswith("eed") and word != "embed":
        name = synonyms.get(stem) or synonyms.get(stem + "e") or stem
        return _content(name, word, tense="~p", stem=_text.stem(name, "en"), raw=raw)
    return _content(lemma, word, stem=stem, raw=raw)


_SHORTENED = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "ain't": ("not",),
    "let's": ("let's",),
}


@lru_cache(maxsize=32768)
def _words_of(token: str, code: str) -> tuple[_Word, ...]:
    """The words in one token of a text in this language."""
    if token in _PUNCTUATION:
        return _PUNCTUATION[token]
    if token[0] == "-" and len(token) > 1:
        return (_content("-" + _number(token[1:])[0].form, token, known=True),)
    if code == "en" and ("'" in token or token.lower() == "cannot"):
        word = _text.fold(token)
        if parts := _SHORTENED.get(word):
            return tuple(w for part in parts for w in _one(part, part, code))
        if word.endswith("n't"):
            aux = () if word in ("don't", "doesn't", "isn't", "aren't") else _one(word[:-3], word[:-3], code)
            return (*aux, _bare(_NEGATION, surface="not"))
        head, _, tail = word.rpartition("'")
        if tail in ("m", "re", "s", "ve", "ll", "d", ""):
            first = _one(head, token[: len(head)], code)
            if tail in ("ve", "ll", "d"):
                return (*first, *_one({"ve": "have", "ll": "will", "d": "would"}[tail], "", code))
            if tail == "s" and first and first[-1].kind == _CONTENT:
                return (*first, _bare(_POSSESSIVE, surface="'s"))
            return first
    parts = _text.cut(token) if not _text.unspaced(token) else (_text.fold(token),)
    return tuple(w for part in parts for w in _one(part, token, code))


def _one(word: str, raw: str, code: str) -> tuple[_Word, ...]:
    grammar = _grammar(code)
    kind = grammar.kinds.get(word)
    if kind is not None:
        label = grammar.labels[word] if kind == _WEAKLY else word
        return (_bare(kind, label, word),)
    first = word[0]
    if first.isdigit():
        return _number(word)
    if number := grammar.numbers.get(word):
        return (_content(number, word, known=True),)
    if not first.isalpha() and first != ".":
        return (_Word(_EMOTICON, word, word, word, word, word, True, True, False),)
    if name := _names().get(word):
        return (_content(name, word, known=True, raw=raw),)
    if word == "dislike" or word == "dislikes":
        return (_bare(_NEGATION, surface="not"), _content("like", word, known=True))
    if code == "en" and word.isascii():
        return (_english(word, raw),)
    return (_foreign(word, raw, code, grammar),)


def _foreign(word: str, raw: str, code: str, grammar: _Grammar) -> _Word:
    surface = _text.clean(raw).casefold()
    synonym = _synonyms().get(word)
    if synonym in _INTERNATIONAL:
        return _content(synonym, word, known=True, raw=raw)
    past = grammar.past
    tense = "~p" if past is not None and len(word) > 2 and past.search(surface) else ""
    if not tense and (translated := _verbs().get(word)):
        return _content(translated, word, known=True)
    stem = _text.stem(word, code)
    if not word.isascii() and (name := _names().get(stem)):
        return _content(name, word, known=True, raw=raw)
    roman = _text.romanize(stem)
    if code == "de":
        word = re.sub(r"(?<![aeq])([aou])e", r"\1", word)
        form = re.sub(r"(?<=\w{4})(?:en|es|em|e|n|s)$", "", word)
        verb = re.sub(r"(?<=\w{3})(?:te|ten|est|st|en|t|e)$", "", word)
    elif code == "nl":
        form, verb = re.sub(r"(?<=\w{4})(?:en|s)$", "", word), re.sub(r"(?<=\w{3})(?:en|t)$", "", word)
    elif code in ("es", "pt", "it", "fr"):
        form = word[:-1] if len(word) > 3 and word[-1] in "sx" and code != "it" else word
        verb = form if form in grammar.kin else roman
    elif code in ("uk", "ru", "pl"):
        form = verb = roman
    else:
        form = verb = _text.romanize(word) if code != "cjk" and code != "ar" and code != "he" else word
    if form in _MOVABLE or word in _MOVABLE or surface in _MOVABLE:
        form = verb = word
    return _content(form, word, tense=tense, verb=verb, stem=roman, raw=raw)


def _number(word: str) -> tuple[_Word, ...]:
    if word.isdecimal():
        plain = str(int(word)) if len(word) < 16 else word
        return (_content(plain, word, known=True),)
    if _compiled(_THOUSANDS).match(word):
        return (_content(word.replace(",", ""), word, known=True),)
    if found := _compiled(_ORDINAL).match(word):
        return (_content(f"{int(found[1])}th", word, known=True),)
    if found := _compiled(_AMOUNT).match(word):
        return (*_number(found[1]), _english(found[2], ""))
    if (found := _compiled(_TIME).match(word)) and (found[2] or found[3]):
        return (_content(_clock(int(found[1]), found[2], found[3]), word, known=True),)
    if len(word) == 10 and word[4] == word[7] == "-":
        day = f"d{int(word[5:7]):02}-{int(word[8:]):02}"
        return (_content(day, word, known=True), _content(word[:4], word[:4], known=True))
    return (_content(word, word, known=True),)


def _clock(hour: int, minute: str | None, half: str | None) -> str:
    if half == "pm" and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    return f"t{hour:02}:{minute or '00'}"


_JOINED = (_bare(_JOIN, ",", ","),)
_PUNCTUATION: dict[str, tuple[_Word, ...]] = {
    **dict.fromkeys(",;&\u060c\u3001", _JOINED),
    "/": (_bare(_JOIN, ",", "/"),),
    **dict.fromkeys(":!()=\u2013\u2014\u3002", ()),
    **{sign: (_bare(_CONTENT, sign, sign),) for sign in "<>≤≥+±≠→~≈?"},
    "\u061f": (_bare(_CONTENT, "?", "?"),),
    "%": (_bare(_CONTENT, "percent", "%"),),
    "€": (_bare(_CONTENT, "euro", "€"),),
    "$": (_bare(_CONTENT, "dollar", "$"),),
    "£": (_bare(_CONTENT, "pound", "£"),),
    "¥": (_bare(_CONTENT, "yen", "¥"),),
    "₴": (_bare(_CONTENT, "hryvnia", "₴"),),
}
_CURRENCIES = _set("€ $ £ ¥ ₴")
_MONTH = {name: n for n, name in enumerate(_MONTHS.split(), 1)}
_COMPLETING = frozenset(_MONTH) | {"am", "pm"}


# -- statements ----------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """A text brought into comparable form."""

    # The forms in order; "@in" opens a part, "^from" is a word that opens one, "," joins items of a list.
    sequence: tuple[str, ...]
    # The same with declined nouns as written: who does what to whom is in their endings.
    exact: tuple[str, ...]
    order: tuple[str, ...]  # the forms in an order that no longer depends on the writer's, where that is safe
    bag: tuple[str, ...]  # the forms that must all have a counterpart, sorted
    links: tuple[str, ...]  # weak prepositions, sorted
    words: tuple[_Word, ...]  # the words behind the forms, in order
    forms: tuple[str, ...]  # the forms of these words, in the same order
    stems: frozenset[str]
    names: frozenset[str]  # as written, in languages that decline names
    emoji: tuple[str, ...]
    genders: tuple[str, ...]  # his or her after the first word may be somebody else's


@dataclass(frozen=True, slots=True)
class Statement:
    """A text prepared for comparison; worth keeping when it is compared more than once."""

    key: str | None
    terms: tuple[str, ...]
    signature: str
    _value: _Form
    _whole: _Form
    _spoken: _Form | None

    @classmethod
    def of(cls, content: str, key: str | None = None) -> Statement:
        value = _form(content)
        if not key:
            return cls(None, tuple(sorted(value.stems)), _sign(value), value, value, None)
        name = _text.fold(key).replace("-", "_").replace(" ", "_").strip("_")
        label = name.replace("_", " ")
        whole = _prefixed(label, value)
        spoken = _form(f"{_SPOKEN[name]} {content}") if name in _SPOKEN else None
        stems = whole.stems | spoken.stems if spoken else whole.stems
        return cls(name, tuple(sorted(stems)), _sign(whole), value, whole, spoken)

    def __repr__(self) -> str:
        return f"Statement({self.signature!r})"


def signature(content: str, key: str | None = None) -> str:
    """The canonical form of a statement: equal signatures are the SAME statement, in any process.

    It still spells out what the statement says. Whoever keeps it after an erasure should keep a keyed hash.
    """
    return Statement.of(content, key).signature


def _sign(form: _Form) -> str:
    order = form.order if form.exact is form.sequence else _arranged(form.exact)
    return " ".join(order + form.emoji + form.genders)


def _prefixed(label: str, value: _Form) -> _Form:
    """The form of "label: value", from the value's: its language and its verb are its own."""
    head = _form(label)
    sequence = head.sequence + value.sequence
    return value._replace(
        sequence=sequence,
        exact=sequence if value.exact is value.sequence else head.exact + value.exact,
        order=_arranged(sequence),
        bag=tuple(sorted(head.bag + value.bag)),
        links=tuple(sorted(head.links + value.links)),
        words=head.words + value.words,
        forms=head.forms + value.forms,
        stems=head.stems | value.stems,
    )


def _form(content: str) -> _Form:
    text = _text.clean(content)
    if frame := _compiled(_FRAME).match(text):
        text = text[frame.end() :] or text
    if not text.isascii():
        text = _compiled(_UNSPACED_SELF).sub("", text)
    tokens = _text.tokens(text)
    code = _text.language([token.lower() for token in tokens] if "'" not in text else _pieces(tokens))
    found: list[_Word] = []
    for token in tokens:
        found += _words_of(token, code)
    phrases = _phrases()
    if not phrases.keys().isdisjoint([word.surface for word in found]):
        found = _with_phrases(found, phrases)
    form = _assembled(found, code)
    if not form.bag and not form.emoji and found:
        # Nothing but small words ("I am"): then they are what it says.
        form = _assembled([_content(w.surface or w.form, w.surface) for w in found if w.surface != ","], code)
    return form


def _pieces(tokens: list[str]) -> list[str]:
    """Tokens in lower case, with j'habite in two: its first half tells the language."""
    return [piece for token in tokens for piece in (_text.cut(token) if "'" in token else (token.lower(),))]


def _with_phrases(found: list[_Word], phrases: dict[str, list[tuple[tuple[str, ...], str]]]) -> list[_Word]:
    result: list[_Word] = []
    at = 0
    while at < len(found):
        for parts, name in phrases.get(found[at].surface, ()):
            if tuple(word.surface for word in found[at : at + len(parts)]) == parts:
                result.append(_content(name, name, stem=_text.stem(name, "en"), known=True))
                at += len(parts)
                break
        else:
            result.append(found[at])
            at += 1
    return result


def _assembled(found: list[_Word], code: str) -> _Form:
    sequence: list[str] = []
    words: list[_Word] = []
    forms: list[str] = []
    links: list[str] = []
    emoji: list[str] = []
    names: list[str] = []
    genders: list[str] = []
    written: dict[int, str] = {}
    negated = used = fond = after_to = verbed = french = False
    currency: _Word | None = None
    declined = code in ("uk", "ru", "pl")
    led = False  # by a preposition
    count = len(found)
    for at, word in enumerate(found):
        kind = word.kind
        if words and (word.plain[:1].isdigit() or word.surface in _COMPLETING):
            joined = _joined(words[-1], word)
            if joined is not None and sequence[-1] in (",", forms[-1]):
                if sequence[-1] == ",":
                    sequence.pop()
                words[-1] = joined
                forms[-1] = sequence[-1] = ("!" if forms[-1][0] == "!" else "") + joined.form
                continue
        if kind == _CONTENT:
            surface = word.surface
            if surface in _CURRENCIES and at + 1 < count and found[at + 1].form[:1].isdigit():
                currency = word  # $5 is read "5 dollars"
                continue
            if surface == "used" and at + 1 < count and found[at + 1].surface == "to":
                used = True
                continue
            form = word.form
            if not verbed and not led and form not in _MOVABLE and not form[0].isdigit():
                form, verbed, opening = word.verb, True, True
            else:
                opening = False
            if surface in ("do", "does") and at + 1 < count and found[at + 1].kind == _NEGATION:
                continue
            if surface == "pas" and french:
                continue
            if used:
                form = word.stem + "~p"
                used = False
            elif fond and (after_to or word.surface.endswith("ing")):
                form = word.stem
            fond = word.plain in _FOND
            after_to = False
            if negated:
                form = "!" + form
                negated = False
            if declined and not led and not word.known and not opening:
                written[len(sequence)] = surface
                if word.capital and at:
                    names.append(surface)
            led = False
            words.append(word)
            forms.append(form)
            sequence.append(form)
            if currency is not None:
                words.append(currency)
                forms.append(currency.form)
                sequence.append(currency.form)
                currency = None
        elif kind == _WEAKLY:
            led = True
            label = word.form
            if label == "for" and words and words[-1].plain == "work":
                label = "in"  # works at, works for: one employer
            elif label == "to":
                after_to = True
                if fond or used:
                    continue  # "likes to hike", "used to live": no direction
            links.append(label)
            sequence.append("@" + label)
        elif kind == _JOIN:
            led = False
            if word.surface == "/" and words and words[-1].plain[0].isdigit():
                continue  # 3/4 is not a list
            if sequence and sequence[-1] != "," and not _is_date(sequence[-1]):
                sequence.append(",")
        elif kind == _DROPPED:
            if french and word.surface == "que":
                forms.append("only")  # ne ... que
                words.append(_content("only", "que", known=True))
                sequence.append("only")
            elif words and word.surface in _GENDERS:
                genders.append(_GENDERS[word.surface])
        elif kind == _OWNER:
            led = False
            if words and word.surface in _GENDERS:
                genders.append(_GENDERS[word.surface])
            if sequence:
                if sequence[-1] == ",":
                    sequence.pop()
                sequence.append("|")
        elif kind == _STRONGLY:
            led = True
            if word.form == "over" and any(w.plain == "prefer" for w in words):
                links.append("to")
                sequence.append("@to")
                continue
            form = "^" + word.form
            words.append(word)
            forms.append(form)
            sequence.append(form)
        elif kind == _NEGATION:
            if negated:  # "does not dislike" is neither of the two
                words.append(_bare(_CONTENT, "!", "!"))
                forms.append("!")
                sequence.append("!")
            negated = True
            french = code == "fr"  # the pas that follows is the other half
        elif kind == _EMOTICON:
            emoji.append(word.form)
        elif kind == _POSSESSIVE:
            links.append("s")
    if negated:  # nothing followed: "no", "mag Kaffee nicht"
        words.append(_bare(_CONTENT, "!", "!"))
        forms.append("!")
        sequence.append("!")
    while sequence and sequence[-1] in (",", "|"):
        sequence.pop()
    # A number that opens the statement is something the person has: "12 years of Java".
    if len(words) > 2 and words[0].plain == "have" and forms[0] == "have" and words[1].plain[:1].isdigit():
        del words[0], forms[0]
        sequence.remove("have")
        written.clear()
    ordered = exact = tuple(sequence)
    if written:
        exact = tuple([written.get(at, form) for at, form in enumerate(ordered)])
    stems = {word.stem for word in words}
    for word in words:
        if word.capital or not word.latin:
            stems.add(_skeleton(word.surface))
    if not words:
        stems.update(emoji)
    stems.discard("")
    return _Form(
        ordered,
        exact,
        _arranged(ordered),
        tuple(sorted(forms)),
        tuple(sorted(links)),
        tuple(words),
        tuple(forms),
        frozenset(stems),
        frozenset(names),
        tuple(sorted(emoji)),
        tuple(sorted(genders)),
    )


def _is_date(form: str) -> bool:
    return form[0] == "d" and form[1:2].isdigit()


def _joined(before: _Word, word: _Word) -> _Word | None:
    """A day and a month, or an hour and its half of the day, as one word."""
    if word.surface in ("am", "pm"):
        clock = _compiled(_TIME).match(before.surface)
        if clock is None or clock[3] or int(clock[1]) > 12:
            return None
        form = _clock(int(clock[1]), clock[2], word.surface)
        return _content(form, before.surface + word.surface, known=True)
    if word.surface in _MONTH:
        month, day = _MONTH[word.surface], before.plain
    elif before.surface in _MONTH:
        month, day = _MONTH[before.surface], word.plain
    else:
        return None
    day = day.removesuffix("th")
    if not day.isdecimal() or not 1 <= int(day) <= 31:
        return None
    return _content(f"d{month:02}-{int(day):02}", f"{month}-{day}", known=True)


def _arranged(sequence: tuple[str, ...]) -> tuple[str, ...]:
    """The forms in an order of our own, where another order would say the same.

    Parts opened by a preposition, list items and words for the time may stand anywhere. What is left, the
    core, keeps its order: who manages whom depends on it.
    """
    core: list[str] = []
    parts: list[tuple[str, ...]] = []
    moved: list[str] = []
    part: list[str] = core
    opened: list[list[str]] = []
    plain = True
    times = [at for at, form in enumerate(sequence) if form in _MOVABLE]
    if times and times[-1] - times[0] >= len(times):
        times = []  # "runs on Monday and swims on Friday": each belongs to its own verb
    free = {*times, *(at - 1 for at in times if at and sequence[at - 1] in _EVERY)}
    for at, form in enumerate(sequence):
        first = form[0]
        if first == "@" or first == "^":
            part = [form]
            opened.append(part)
            plain = False
        elif form == "|":
            part = core
        elif at in free:
            if part and part[0][0] == "^":
                part.append(form)
            else:
                moved.append(form)
                if part is not core and len(part) == 1:
                    part = core  # "on weekends" is complete; what follows is not part of it
        elif form == "," and len(opened) == 1 and not core and sequence[0] is opened[0][0]:
            part = core  # "In Berlin, lives with two cats"
        else:
            part.append(form)
            if first == ",":
                plain = False
    if plain and not moved:
        return tuple(core)
    for part in opened:
        if len(part) > 1 or part[0][0] == "^":
            parts.append(tuple(_sorted_list(part)))
    parts.sort()
    return (*_sorted_list(core), *(form for part_ in parts for form in part_), *sorted(moved))


def _sorted_list(part: list[str]) -> list[str]:
    """A part with the items of its list sorted, if it ends or begins with a list of single words."""
    if "," not in part:
        return part
    items: list[list[str]] = [[]]
    for form in part:
        if form == ",":
            items.append([])
        else:
            items[-1].append(form)
    items = [item for item in items if item]
    if len(items) < 2 or any(len(item) > 1 for item in items[1:-1]):
        return [form for item in items for form in item]
    head, middle, tail = items[0], [item[0] for item in items[1:-1]], items[-1]
    if len(tail) == 1:
        return [*head[:-1], *sorted([head[-1], *middle, tail[0]])]
    if len(head) == 1:
        return [*sorted([head[0], *middle, tail[0]]), *tail[1:]]
    return [form for item in items for form in item]


# -- comparison ----------------------------------------------------------------------------------------------


def relation(new: Statement, known: Statement) -> Relation:
    """SAME, NEAR or DIFFERENT; the two may be given in either order.

    With one key on both, the values are compared. Statements under two keys are never the SAME.
    """
    if new.signature == known.signature and new.signature:
        return Relation.SAME
    if new.key is not None and known.key is not None:
        if new.key != known.key:
            return Relation.NEAR if _same(new._value, known._value) else Relation.DIFFERENT
        a, b = new._value, known._value
    else:
        a, b = new._whole, known._whole
        for keyed, other in ((new, b), (known, a)):
            if keyed._spoken is not None and _same(keyed._spoken, other):
                return Relation.SAME
    if _same(a, b):
        return Relation.SAME
    return Relation.NEAR if _close(a, b) else Relation.DIFFERENT


def _close(a: _Form, b: _Form) -> bool:
    shared = len(a.stems & b.stems)
    if not shared:
        return False
    few, many = sorted((len(a.stems), len(b.stems)))
    return shared >= 0.6 * (few + many) / 2 or (few >= 2 and shared == few)


def _same(a: _Form, b: _Form) -> bool:
    if len(a.bag) != len(b.bag):
        return False
    if a.emoji != b.emoji and ((a.emoji and b.emoji) or len(a.bag) < 2):
        return False
    if not _genders_agree(a, b):
        return False
    if a.order == b.order:
        return bool(a.bag or a.emoji) and (a.names == b.names or _names_agree(a, b))
    swap: dict[str, str] = {}
    if a.bag != b.bag:
        found = _counterparts(a, b)
        if found is None:
            return False
        swap = found
    if a.links != b.links and not _compatible(a.links, b.links):
        return False
    if a.names != b.names and not swap and not _names_agree(a, b):
        return False
    sequence = tuple(swap.get(form, form) for form in a.sequence) if swap else a.sequence
    return _order_agrees(sequence, b.sequence)


def _genders_agree(a: _Form, b: _Form) -> bool:
    return a.genders == b.genders or not a.genders or not b.genders


def _compatible(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """One may leave out an "in" that the other has; apart from that they must be the same."""
    more, less = Counter(a), Counter(b)
    if more.total() < less.total():
        more, less = less, more
    return not (less - more) and (more - less).keys() <= {"in", "as", "s"}


def _names_agree(a: _Form, b: _Form) -> bool:
    """Where names are declined, another ending is another part: Богдан керує, керує Богданом."""
    written_a = {word.surface for word in a.words}
    written_b = {word.surface for word in b.words}
    return a.names <= written_b and b.names <= written_a


def _counterparts(a: _Form, b: _Form) -> dict[str, str] | None:
    """Pairs for the words that have no equal, by script or as a single slip of the pen; None if one has none.

    The result maps forms of `a` to forms of `b`.
    """
    right = list(b.bag)
    left: list[str] = []
    for form in a.bag:
        if form in right:
            right.remove(form)
        elif len(left) == 3:
            return None
        else:
            left.append(form)
    words_a = dict(zip(a.forms, a.words, strict=True))
    words_b = dict(zip(b.forms, b.words, strict=True))
    slips = 0
    found: dict[str, str] = {}
    for form in left:
        one = words_a[form]
        for other in right:
            two = words_b[other]
            if (form[0] == "!") is not (other[0] == "!") or form.endswith("~p") != other.endswith("~p"):
                continue
            if one.known and two.known:
                continue
            if one.latin != two.latin and len(one.surface) > 2:
                if _skeleton(one.surface) != _skeleton(two.surface):
                    continue
            elif one.known or two.known or slips or not _slip(one, two):
                continue
            else:
                slips += 1
            found[form] = other
            right.remove(other)
            break
        else:
            return None
    return found


@lru_cache(maxsize=1)
def _distance() -> Callable[..., int]:
    from rapidfuzz.distance import OSA  # compiled code: loaded only where a typo has to be told

    return OSA.distance


def _slip(one: _Word, two: _Word) -> bool:
    """Whether two long words are one with a typing error inside.

    Beginnings and ends must agree: that is where words of one family differ (Christian, Christina). A name
    has to be longer, and no letter of it may be another one: Freiburg is not Freiberg.
    """
    a, b = one.surface, two.surface
    short, long = sorted((a, b), key=len)
    if len(short) < 7 or len(long) - len(short) > 1 or a[:3] != b[:3] or a[-1] != b[-1]:
        return False
    if a[-2:] != b[-2:] and (len(short) < 10 or len(long) == len(short)):
        return False
    if not a.isalpha() or not b.isalpha() or _distance()(a, b, score_cutoff=1) != 1:
        return False
    # "painting" and "panting": an ending adds letters, not evidence.
    size = len(short) - (3 if a.endswith("ing") else 2 if a.endswith("ed") else 0)
    if frozenset((a, b)) in _CONFUSABLE:
        return False
    if one.capital or two.capital:
        return len(short) >= 11 and (len(long) > len(short) or sorted(a) == sorted(b))
    if len(long) > len(short):
        at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
        doubled = long[at] == long[at - 1] or long[at] == long[at + 1 : at + 2]
        return size >= (7 if doubled else 8)
    if sorted(a) == sorted(b):
        return size >= 7
    return size >= 9 and all(x == y or (x in _VOWELS and y in _VOWELS) for x, y in zip(a, b, strict=True))


def _order_agrees(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    if _arranged(a) == _arranged(b):
        return True
    plain_a = [form for form in a if form[0] not in "@,|"]
    plain_b = [form for form in b if form[0] not in "@,|"]
    if plain_a == plain_b:
        return True  # only the prepositions differ, and they were found compatible
    for one in _openings(a):
        for two in _openings(b):
            if _arranged(one) == _arranged(two):
                return True
    return _lists_agree(a, b)


def _openings(sequence: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Readings of a statement that opens with a preposition and no comma: where may its part end?"""
    start = 0
    while start < len(sequence) and (sequence[start] in _MOVABLE or sequence[start] in _EVERY):
        start += 1
    if start == len(sequence) or sequence[start][0] not in "@^":
        return [sequence]
    ends = range(start + 2, min(len(sequence), start + 6))
    return [sequence, *((*sequence[:at], "|", *sequence[at:]) for at in ends)]


def _lists_agree(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether two statements differ in the order of a list's items only, which may be of several words."""
    if "," not in a or "," not in b:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    # Words before and after: then each item may belong to another verb.
    if start and end and a[len(a) - end][0] not in "@^":
        return False
    return _items(a[start : len(a) - end]) == _items(b[start : len(b) - end])


def _items(forms: tuple[str, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    item: list[str] = []
    for form in (*forms, ","):
        if form == ",":
            if item:
                found.append(tuple(item))
            item = []
        else:
            item.append(form)
    return sorted(found)
