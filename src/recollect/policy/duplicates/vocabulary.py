"""The vocabulary of the duplicate policy: tables of words, and the dictionaries made from them.

They list which words carry nothing, join, negate or open a part of a sentence (`grammar`), which are another name for
the same thing (`english_synonyms`, `place_names`, `verbs`, `phrases`), and which may stand anywhere. A language is a
code such as "uk"; one without tables has only words that count. The tables are text, mostly split at first use, so that
importing stays cheap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from recollect import text

__all__ = [
    "CONFUSABLE",
    "CONTENT",
    "CURRENCIES",
    "DROPPED",
    "EMOTICON",
    "EVERY",
    "FOND",
    "FRAME",
    "GENDERS",
    "INTERNATIONAL",
    "JOIN",
    "LINK",
    "MONTHS",
    "MOVABLE",
    "NEGATION",
    "NO_PLURAL",
    "OPENER",
    "PERSON",
    "POSSESSIVE",
    "SHORTENED",
    "SPOKEN",
    "UNSPACED_PERSON",
    "Grammar",
    "compiled",
    "english_synonyms",
    "grammar",
    "irregular",
    "phrases",
    "place_names",
    "verbs",
]

# The role of a word in a statement. Plain numbers, because they are looked up for every word of every statement.
DROPPED, CONTENT, LINK, OPENER, NEGATION, JOIN, PERSON, EMOTICON, POSSESSIVE = range(9)

# Patterns are compiled at first use: together they cost more than the rest of the import.
compiled = lru_cache(maxsize=64)(re.compile)


def _set(table: str) -> frozenset[str]:
    return frozenset(table.split())


# -- tables --------------------------------------------------------------------------------------------------

# The person the memory is about. Like the words below, these carry nothing here: without both, "The user is
# vegetarian", "I'm vegetarian" and "vegetarian" are one statement.
_PERSON_WORDS = {
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
# Articles, possessives of that person and present forms of "to be".
_DROPPED_WORDS = {
    "en": "a an the is am are be that of my his her their",
    "de": "der die das den dem des ein eine einen einem einer eines ist bin sind dass mein meine meinen"
    " meiner sein seine seinen ihr ihre ihren",
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
# Prepositions that may change or be missing without changing the fact ("at work", "in work"). Those with one label are
# treated as the same.
_LINK_WORDS = {
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
# Words that open a part of their own, whose place in the sentence is free but whose object is not. Portuguese "no" ("in
# the") is here, not above: if the language was guessed wrong, it is a negation and must count.
_OPENER_WORDS = {
    "en": "from with without before after by against over than under until till since about between through"
    " during near into if when because unless while except versus despite via",
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
_NEGATION_WORDS = {
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
_JOIN_WORDS = {
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
# From zero upwards; "-" where the word is also an article, "|" between the forms of one number.
_NUMBER_WORDS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty",
    "de": "null - zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
    "fr": "zero - deux trois quatre cinq six sept huit neuf dix onze douze",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "pt": "zero - dois|duas tres quatro cinco seis sete oito nove dez onze doze",
    "it": "zero - due tre quattro cinque sei sette otto nove dieci undici dodici",
    "nl": "nul - twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "pl": "zero jeden|jedna|jedno dwa|dwie|dwoje|dwoch trzy|troje|trzech cztery|czworo piec|piecioro szesc"
    " siedem osiem dziewiec dziesiec jedenascie dwanascie",
    "uk": "нуль один|одна|одне два|дві|двоє|двох три|троє|трьох чотири|четверо п'ять|п'ятеро шість|шестеро"
    " сім вісім дев'ять десять одинадцять дванадцять",
    "ru": "ноль один|одна|одно два|две|двое|двух три|трое|трех четыре|четверо пять|пятеро шесть семь"
    " восемь девять десять одиннадцать двенадцать",
    "tr": "sifir bir iki uc dort bes alti yedi sekiz dokuz on",
}
_TENS = "thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 hundred=100 thousand=1000"
_ORDINALS = "- first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_MONTHS = "january february march april may june july august september october november december"
MONTHS = {name: number for number, name in enumerate(_MONTHS.split(), 1)}

# One spelling, abbreviation or name for each thing: the name first, then its variants. Safe ones only: k8s never means
# anything else.
_SYNONYMS = """javascript=js typescript=ts postgresql=postgres pg psql kubernetes=k8s mongodb=mongo
email=e-mail emails e-mails film=movie movies child=kid kids children bicycle=bike apartment=flat
vacation=holiday holidays television=tv telephone=phone phones mother=mom mum father=dad fridge=refrigerator
university=uni colleague=coworker photo=photograph theater=theatre center=centre meter=metre liter=litre
fiber=fibre kilometer=km kms kilometre kilometres kilogram=kg kilo mile=mi hour=hr hrs minute=min mins
gram=gramme milligram=mg euro=eur € dollar=usd $ pound=gbp £ percent=% pct program=programme gray=grey
license=licence practice=practise defense=defence catalog=catalogue jewelry=jewellery traveling=travelling
traveled=travelled canceled=cancelled doctor=physician lawyer=attorney live=reside resides based like=enjoy
work=employed favorite=fave daily=everyday buy=purchase name=named machinelearning=ml
artificialintelligence=ai have=has go=goes woman=women man=men foot=feet tooth=teeth mouse=mice
wife=wives knife=knives database=db dbs performance=perf application=app apps repository=repo repos
documentation=docs configuration=config configs infrastructure=infra environment=env authentication=auth
administrator=admin department=dept management=mgmt manager=mgr production=prod information=info laboratory=lab
mathematics=math maths statistics=stats specification=spec specs approximately=approx"""
# Those that mean the same in every language.
INTERNATIONAL = _set("javascript typescript postgresql kubernetes mongodb email kilometer kilogram euro dollar percent")
# Several words for one. One line or several: a line break separates like "|".
_PHRASES = """the us=usa|united states of america=usa|united states=usa|united kingdom=uk|great britain=uk
new york city=nyc|new york=nyc|machine learning=machinelearning
artificial intelligence=artificialintelligence|amazon web services=aws|e mail=email|e mails=email
have to=must|has to=must|going to=will|every day=daily|each day=daily|every week=weekly|every month=monthly
every year=yearly|is called=name|are called=name|'s called=name|co worker=colleague|fond of=like
san francisco=sanfrancisco|estados unidos=usa|vereinigte staaten=usa|etats unis=usa|stati uniti=usa
stany zjednoczone=usa|сполучені штати=usa|соединенные штаты=usa|reino unido=uk|royaume uni=uk|regno unito=uk
nueva york=nyc|нью йорк=nyc|nowy jork=nyc|nova york=nyc|nova iorque=nyc|vs code=vscode
visual studio code=vscode|gran bretana=uk|велика британія=uk|великобританія=uk|node js=node.js
react js=reactjs"""
# Past forms that no ending reveals.
_IRREGULAR = """had=have was=be were=be did=do went=go bought=buy sold=sell ate=eat drank=drink drove=drive
wrote=write ran=run spoke=speak took=take got=get gave=give knew=know thought=think taught=teach
learnt=learn met=meet made=make said=say saw=see slept=sleep spent=spend began=begin broke=break built=build
came=come chose=choose fell=fall felt=feel found=find flew=fly forgot=forget grew=grow heard=hear kept=keep
lost=lose paid=pay rode=ride sang=sing sent=send stood=stand swam=swim told=tell understood=understand
won=win wore=wear brought=bring caught=catch"""
# Relatives and friends whose gender is the whole difference; other endings may vary with the speaker.
_KIN_WORDS = {
    "es": "hijo hija hermano hermana abuelo abuela amigo amiga tio tia primo prima novio novia nieto nieta gato gata",
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
# Everyday verbs with certain translations, so that a fact found in two languages is kept once.
_VERBS = """live=живе живу живет wohnt wohne vive vivo mora moro habite mieszka mieszkam abita woont woon
work=працює працюю работает работаю arbeitet arbeite travaille trabaja trabajo trabalha lavora pracuje
have=має маю имеет имею hat habe tiene tengo tem tenho heeft heb
drink=п'є п'ю пьет пью trinkt trinke boit bois bebe bebo beve bevo pije drinkt
speak=spricht spreche говорить говорю говорит habla hablo parle parla parlo spreekt"""
# Words for when or how often. They move freely: "on weekends plays chess", "plays chess on weekends".
MOVABLE = _set("""daily weekly monthly yearly morning evening night afternoon noon weekend weekday monday
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
# They go with the time after them: "every Monday".
EVERY = _set("every each")
# Verbs after which "to hike" and "hiking" are the same.
FOND = _set("like love hate prefer start begin continue")
# The person of a pronoun or possessive that is not the first word and so may be somebody else.
GENDERS = dict.fromkeys(_set("he his il он він on er ele lui hij"), "(he)")
GENDERS |= dict.fromkeys(_set("she her elle ella она вона ona ela lei zij"), "(she)")
# Keys whose value is usually expressed with a verb: location + Kyiv is "lives in Kyiv".
SPOKEN = {
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
# Endings of the past tense, on words with their accents. Having lived there is not living there.
_PAST_ENDINGS = {
    "es": r"(?:aba|abas|aban|ía|ían|ó|aron|ieron)$",
    "pt": r"(?:ava|avam|ia|iam|ou|aram|eram|iram|eu|iu)$",
    "it": r"(?:ava|avano|eva|evano|iva|ivano|ò|arono|erono)$",
    "fr": r"(?:ait|ais|aient|èrent)$",
    "de": r"(?:te|ten|test)$",
    "nl": r"(?:de|te|den|ten)$",
    "pl": r"[aiyęe](?:ł|ła|ło|li|ły|łem|łam)$",
    # One for both: a short text may not distinguish them.
    "uk": r"(?:[аяиу]в|[аяиуієеёы](?:л|ла|ло|ли))(?:ся|сь)?$",
    "ru": r"(?:[аяиу]в|[аяиуієеёы](?:л|ла|ло|ли))(?:ся|сь)?$",
}
# Phrases that only say that something was said: "The user mentioned that …", "Please remember that …".
FRAME = (
    r"(?i)\s*(?:"
    r"(?:please |also )?(?:remember|note|keep in mind|don'?t forget) that\s+"
    r"|(?:(?:the )?user|he|she|they|i) (?:has |have |had |also |just |once )*"
    r"(?:(?:mention(?:ed|s)?|sa(?:id|ys?)|stat(?:ed|es?)|not(?:ed|es)|told (?:me|us)|report(?:ed|s)"
    r"|confirm(?:ed|s)|explain(?:ed|s)|indicat(?:ed|es?)|shared) that"
    r"|(?:mentioned|said|says|stated|told (?:me|us))(?= (?:he|she|they|i|his|her|their|my)\b))\s+"
    r"|(?:користувач(?:ка)?|він|вона|пользователь|он|она) (?:сказа[влла]+|згада[вла]+|каже|зазначи[вла]+"
    r"|сказал|говорит|упомянул),? (?:що|что)\s+"
    r"|(?:запам'ятай|запомни),? (?:що|что)\s+"
    r"|(?:der (?:be)?nutzer|er|sie) (?:sagt|sagte|hat gesagt|hat erwahnt),? dass\s+"
    r"|(?:l'utilisateur|il|elle) (?:dit|a dit) que\s+"
    r"|(?:el usuario|él|ella) (?:dice|dijo) que\s+)"
)
# Openings of a statement in scripts without spaces: "I", "the user", with the topic particle.
UNSPACED_PERSON = (
    r"^(?:私は|わたしは|僕は|俺は|ユーザーは|ユーザは|彼は|彼女は|我(?!们|的)|用户|用戶|저는"
    r"|나는|사용자는|제가)(?=.)"
)
# Surnames that are not the plural of a first name, and words that only look like a plural.
NO_PLURAL = _set("""williams roberts adams peters daniels johns edwards richards stevens matthews andrews
rogers collins jacobs james charles thomas phillips hopkins jenkins simmons sanders watkins wilkins harris
davis evans jones parsons rivers brooks woods fields news physics mathematics always perhaps towards besides
paris texas kansas""")
# Long words one vowel apart that are both words: never a typo.
CONFUSABLE = (
    frozenset({"complement", "compliment"}),
    frozenset({"stationary", "stationery"}),
)
# English contractions that do not split into a word and an ending of their own; "let's" is not "let is".
SHORTENED = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "ain't": ("not",),
    "let's": ("let's",),
}
CURRENCIES = _set("€ $ £ ¥ ₴")

# -- dictionaries --------------------------------------------------------------------------------------------


class Grammar(NamedTuple):
    """The small words of one language, and its endings."""

    kinds: dict[str, int]
    labels: dict[str, str]  # of the links: "at" and "in" are both "in"
    numbers: dict[str, str]
    past: re.Pattern[str] | None
    kin: frozenset[str]


@lru_cache(maxsize=64)
def grammar(code: str) -> Grammar:
    kinds: dict[str, int] = {}
    labels = _labels(_LINK_WORDS.get(code, ""))
    # A word in several tables has the meaning of the first.
    for words, kind in (
        (_DROPPED_WORDS.get(code, "").split(), DROPPED),
        (labels, LINK),
        (_OPENER_WORDS.get(code, "").split(), OPENER),
        (_PERSON_WORDS.get(code, "").split(), PERSON),
        (_JOIN_WORDS.get(code, "").split(), JOIN),
        (_NEGATION_WORDS.get(code, "").split(), NEGATION),
    ):
        for word in words:
            kinds.setdefault(word, kind)
    numbers: dict[str, str] = {}
    for value, forms in enumerate(_NUMBER_WORDS.get(code, "").split()):
        numbers.update((form, str(value)) for form in forms.split("|") if form != "-")
    if code == "en":
        numbers.update(_labels(_TENS))
        numbers.update((name, f"{n}th") for n, name in enumerate(_ORDINALS.split()) if name != "-")
    past = compiled(_PAST_ENDINGS[code]) if code in _PAST_ENDINGS else None
    return Grammar(kinds, labels, numbers, past, _set(_KIN_WORDS.get(code, "")))


@lru_cache(maxsize=1)
def english_synonyms() -> dict[str, str]:
    """Return English words by any of their spellings, abbreviations and names."""
    found: dict[str, str] = {}
    for name, variant in _groups(_SYNONYMS):
        found[name] = name
        found[variant] = name
    return found


@lru_cache(maxsize=1)
def irregular() -> dict[str, str]:
    """Return English verbs by their irregular past."""
    return _labels(_IRREGULAR)


@lru_cache(maxsize=1)
def place_names() -> dict[str, str]:
    """Return every known name of a place or language, and its stems in the languages that decline names."""
    found: dict[str, str] = {}
    for name, variant in _groups(_PLACES):
        found[name] = name
        found[text.fold(variant)] = name
    for variant, name in list(found.items()):
        for code in () if variant.isascii() else ("uk", "ru"):
            stem = text.stem(variant, code)
            if len(stem) >= 4:  # a shorter one is also the stem of other words
                found.setdefault(stem, name)
    return found


@lru_cache(maxsize=1)
def verbs() -> dict[str, str]:
    """Return English verbs by their translations."""
    return {variant: name for name, variant in _groups(_VERBS)}


@lru_cache(maxsize=1)
def phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Return phrases and the word they stand for, by their first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for entry in _PHRASES.replace("\n", "|").split("|"):
        phrase, _, word = entry.partition("=")
        parts = tuple(text.fold(phrase).split())
        found.setdefault(parts[0], []).append((parts, word))
    for options in found.values():
        options.sort(key=lambda option: -len(option[0]))
    return found


def _labels(table: str) -> dict[str, str]:
    """ "a=b c=d" becomes {a: b, c: d}."""
    return dict(entry.split("=") for entry in table.split())


def _groups(table: str) -> Iterator[tuple[str, str]]:
    """ "a=b c d=e" gives (a, b), (a, c), (d, e)."""
    name = ""
    for entry in table.split():
        head, equals, variant = entry.partition("=")
        if equals:
            name = head
        yield name, variant or head
