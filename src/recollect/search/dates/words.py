"""The words for times, in a dozen languages.

Tables only, in lower case and without accents.
"""

from __future__ import annotations

from functools import lru_cache

# Without accents. One line for each month, January first; one for each day, Monday first.
_MONTHS = """
january jan januar janner januari janvier enero gennaio janeiro styczen stycznia styczniu січень січня січні январь января январе
february feb februar februari fevrier febrero febbraio fevereiro luty lutego lutym лютий лютого лютому февраль февраля феврале
march mar marz mars marzo marco maart marzec marca marcu березень березня березні март марта марте
april apr avril abril aprile kwiecien kwietnia kwietniu квітень квітня квітні апрель апреля апреле
may mai mayo maggio maio mei maj maja maju травень травня травні май мая мае
june jun juni juin junio giugno junho czerwiec czerwca czerwcu червень червня червні июнь июня июне
july jul juli juillet julio luglio julho lipiec lipca lipcu липень липня липні июль июля июле
august aug aout agosto augustus sierpien sierpnia sierpniu серпень серпня серпні август августа августе
september sep sept septembre septiembre settembre setembro wrzesien wrzesnia wrzesniu вересень вересня вересні сентябрь сентября сентябре
october oct oktober octobre octubre ottobre outubro pazdziernik pazdziernika pazdzierniku жовтень жовтня жовтні октябрь октября октябре
november nov novembre noviembre novembro listopad listopada listopadzie листопад листопада листопаді ноябрь ноября ноябре
december dec dezember decembre diciembre dicembre dezembro grudzien grudnia grudniu грудень грудня грудні декабрь декабря декабре
"""  # noqa: E501
_WEEKDAYS = """
monday mondays mon montag lundi lunes lunedi maandag poniedzialek понеділок понеділка понедельник
tuesday tuesdays tue tues dienstag mardi martes martedi dinsdag wtorek вівторок вівторка вторник
wednesday wednesdays wed mittwoch mercredi miercoles mercoledi woensdag sroda srode середа середу среда среду
thursday thursdays thu thur thurs donnerstag jeudi jueves giovedi donderdag czwartek четвер четверг
friday fridays fri freitag vendredi viernes venerdi vrijdag piatek п'ятниця п'ятницю пятница пятницу
saturday saturdays sat samstag sonnabend samedi sabado sabato zaterdag sobota sobote субота суботу суббота субботу
sunday sundays sun sonntag dimanche domingo domenica zondag niedziela niedziele неділю воскресенье
"""
# Also words, names or planets: these need a number, a year, a preposition or a capital beside them.
DOUBTFUL = frozenset("may march mar mars marco maja maj mei jan dec sep sun sat mon wed fri марта".split())
ALSO_NAMES = frozenset("august april june".split())  # capitalised, they are a month more often than a person
_UNITS = {
    "minute": "minute minutes min mins minuten minuto minutos minuti minut хвилин хвилини минут минуты",
    "hour": """hour hours hr hrs stunde stunden heure heures hora horas ore uur godzin godziny годин години годину
        час часа часов""",
    "day": """day days tag tage tagen jour jours dia dias giorno giorni dag dagen dzien dni dnia день дні днів дня
        дней""",
    "night": "night nights nacht nuit noche notte",
    "week": """week weeks woche wochen semaine semaines semana semanas settimana settimane weken tydzien tygodni
        tygodnie tygodniu tygodnia тиждень тижні тижнів тижня неделя недели недель неделю неделе""",
    "weekend": "weekend weekends wochenende вихідні вихідних выходные выходных",
    "fortnight": "fortnight fortnights",
    "month": """month months monat monate monaten monats mois mes meses mese mesi maand maanden miesiac miesiace
        miesiecy miesiacu miesiaca місяць місяці місяців місяця месяц месяца месяцев месяце""",
    "quarter": "quarter quarters quartal trimestre квартал кварталу квартале",
    "year": """year years yr yrs jahr jahre jahren jahres an ans annee annees ano anos anno anni jaar jaren rok roku
        lata lat рік роки років року році год года лет году""",
    "decade": "decade decades jahrzehnt jahrzehnte",
}
_WHICH = {
    -1: """last previous past letzte letzten letzter letztes letztem vergangene vergangenen vergangenes vergangenem
        vorige vorigen voriges vorigem vorig afgelopen dernier derniere derniers dernieres passe passee pasado pasada
        ultimo ultima ultimos ultimas scorso scorsa scorsi passado passada zeszly zeszlym zeszlego zeszla ubiegly
        ubieglym ubieglego ubiegla poprzedni poprzednim poprzedniego минулий минулого минулої минулому минула минулу
        минулі минулих останні останніх прошлый прошлого прошлой прошлом прошлую прошлое прошлые прошлых последние
        последних""",
    0: """this current diese diesen dieser dieses diesem cette cet este esta questo questa quest deze dit tym tego
        цей цього цьому цю этот этого этом эту этой""",
    1: """next coming upcoming nachste nachsten nachster nachstes nachstem kommende kommenden kommendes prochain
        prochaine prochains prochaines proximo proxima prossimo prossima volgende volgend komende przyszly przyszlym
        przyszlego nastepny nastepnym nastepnego наступний наступного наступному наступна наступну наступної следующий
        следующего следующем следующую следующей будущем""",
}
# Romance adjectives follow their noun: la semaine dernière.
BEHIND = frozenset(
    """dernier derniere derniers dernieres passe passee pasado pasada scorso scorsa passado passada prochain
    prochaine proximo proxima prossimo prossima""".split()
)
_DAYS = {
    -2: """vorgestern anteayer antier anteontem eergisteren przedwczoraj позавчора позавчера avanthier""",
    -1: "yesterday gestern hier ayer ieri ontem gisteren wczoraj вчора вчера",
    0: """today tonight heute aujourd'hui hoy oggi hoje vandaag dzisiaj dzis сьогодні сегодня""",
    1: "tomorrow morgen demain manana domani amanha jutro завтра",
    2: "ubermorgen overmorgen pojutrze післязавтра послезавтра",
}
_NUMBERS = """0 zero
1 one a an ein eine einem einer einen un une una uno um uma een jeden один одну одна
2 two zwei deux dos due dois duas twee dwa dwie два дві две
3 three drei trois tres tre drie trzy три
4 four vier quatre cuatro quattro quatro cztery чотири четыре
5 five funf cinq cinco cinque vijf piec п'ять пять
6 six sechs seis sei zes szesc шість шесть
7 seven sieben sept siete sette sete zeven siedem сім семь
8 eight acht huit ocho otto oito osiem вісім восемь
9 nine neun neuf nueve nove negen dziewiec дев'ять девять
10 ten zehn dix diez dieci dez tien dziesiec десять
11 eleven elf
12 twelve zwolf douze doce dodici doze twaalf dwanascie дванадцять двенадцать
13 thirteen
14 fourteen
15 fifteen
16 sixteen
17 seventeen
18 eighteen
19 nineteen
20 twenty zwanzig vingt veinte venti vinte twintig
30 thirty
40 forty
50 fifty
60 sixty
90 ninety
100 hundred"""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_SEASONS = {
    3: "spring springtime fruhling fruhjahr printemps primavera lente wiosna весна весни весны навесні весной",
    6: "summer summertime sommer ete verano estate verao zomer lato літо літа лето влітку летом",
    9: "fall autumn herbst automne otono autunno outono herfst jesien осінь осені осень восени осенью",
    12: "winter wintertime hiver invierno inverno zima зима зими зимы взимку зимой",
}
_WORDS = {
    "since": "since seit depuis desde sinds",
    "ago": "ago fa atras geleden temu тому назад back",
    "before": "before",
    "after": "after",
    "early": "early earlier",
    "mid": "mid middle",
    "late": "late later",
}
_HOLIDAYS = "christmas xmas halloween thanksgiving valentine valentines easter new"
_LEADS = """until till by between from end beginning start prior half other couple few several vor il
    hace ha st independence memorial labor labour mother father black segunda terca quarta quinta sexta avant"""
DECADES = {"fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80, "nineties": 90}
IN = frozenset(
    """in during since until till by before after from last next this of early late mid throughout around between
    every each im en em au w в у з seit depuis desde durante nel pour para""".split()
)
ON = frozenset("on last next this every each until till by before after since from and or am le el il op".split())
YEAR_IN = frozenset(
    """in since until till by before after from during of around circa about year early late mid end between to
    through spring summer fall autumn winter im en em w we в у jahr""".split()
)
NOT_YEAR_BEFORE = frozenset(
    """room number no nr version page route highway model flight suite apartment block line port error id pin code
    chapter section item level channel office gate ticket order issue about over under than nearly almost exactly
    least most only roughly approximately cost costs paid pay worth weighs has have had with for""".split()
)
COUNTED = frozenset(
    """people employees users dollars euros pounds bucks items miles km kilometers kilometres meters metres feet steps
    words points calories kcal times hours minutes seconds days weeks months years books pages songs photos pictures
    followers friends guests members students workers customers pieces lines files rows tokens mg g kg grams ml liters
    litres percent degrees usd eur gbp uah hryvnias watts volts hz rpm bytes kb mb gb cars houses tickets copies units
    participants attendees residents subscribers attempts votes""".split()
)
AFTER_YEAR = frozenset(
    """and or but was were is are did do does to for with when where who what how why which that the a my our his her
    their i we he she they you it in on at by from of as because so then until till than about while before after since
    had has have will would can could should if not no also only too там і й та и або чи und oder et y e o""".split()
)
ARTICLES = frozenset(
    "the of on in at during over within der die das le la les el los las il lo den dem o os as de het".split()
)
UNIT_NAMES = tuple(_UNITS)
DASHES = frozenset("-–—")
SMALL = {"couple": (2, 3), "few": (2, 5), "several": (3, 7)}


@lru_cache(maxsize=1)
def lexicon() -> dict[str, tuple[str, int]]:
    """Return the kind of each word, and its number."""
    found: dict[str, tuple[str, int]] = {}
    for line in _NUMBERS.splitlines():
        number, *names = line.split()
        found |= {name: ("number", int(number)) for name in names}
    found |= {word: ("ordinal", n) for n, word in enumerate(_ORDINALS.split(), 1)}
    for n, names_of_unit in enumerate(_UNITS.values()):
        found |= {word: ("unit", n) for word in names_of_unit.split() if word not in found}
    for n, line in enumerate(_WEEKDAYS.split("\n")[1:8]):
        found |= dict.fromkeys(line.split(), ("weekday", n))
    for n, line in enumerate(_MONTHS.split("\n")[1:13], 1):
        found |= dict.fromkeys(line.split(), ("month", n))
    for n, line in _SEASONS.items():
        found |= {word: ("season", n) for word in line.split() if word not in found}
    for n, line in _WHICH.items():
        found |= dict.fromkeys(line.split(), ("which", n))
    for n, line in _DAYS.items():
        found |= dict.fromkeys(line.split(), ("relative", n))
    found |= {word: ("decade", 1900 + n) for word, n in DECADES.items()}
    for name, line in _WORDS.items():
        found |= dict.fromkeys(line.split(), (name, 0))
    found |= dict.fromkeys(_HOLIDAYS.split(), ("holiday", 0))
    for word in _LEADS.split():
        found.setdefault(word, ("lead", 0))
    return found


@lru_cache(maxsize=1)
def triggers() -> frozenset[str]:
    """Return words one of which occurs in every time expression without a date in digits."""
    telling = {"unit", "weekday", "month", "season", "relative", "decade", "holiday"}
    found = {word for word, (kind, _) in lexicon().items() if kind in telling}
    found |= {part for word in found for part in word.split("'")} | {"morning", "afternoon", "evening", "feira"}
    # "an" is French for a year and "new" begins New Year: neither stands alone, and both are frequent.
    return frozenset(found - {"an", "new", "s", "l", "d"})
