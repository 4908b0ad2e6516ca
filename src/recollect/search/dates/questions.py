"""Questions about time: when something was, or what was before or after an event."""

from __future__ import annotations

from datetime import datetime, timedelta

from recollect.search.dates.eastern import HAN
from recollect.search.dates.phrases import PhraseReader
from recollect.search.dates.tokens import (
    MARGIN,
    compiled,
    compose_text,
    fold_same_length,
    split_plain_words,
    tokens_between,
)
from recollect.search.dates.words import lexicon

_ASKS = (
    r"\bwhen\s+(?:did|do|does|was|were|is|are|will|would|had|has|have|can|could|should|am|'s|exactly|i|we|he|she|they"
    r"|my|the|our|his|her|their|you)\b|\bwhen's\b|^\s*when\b|\bwhen\s*\?|\bsince\s+when\b|\b(?:until|till)\s+when\b"
    r"|\b(?:what|which)\s+(?:\w+\s+)?(?:date|day|days|month|months|year|years|time|week|weekend|season|hour|decade"
    r"|quarter|century|weekday)\b|\bhow\s+(?:long|many\s+(?:days|weeks|months|years|hours|minutes))\b"
    r"|\bhow\s+(?:recently|soon|old|early|late)\b|\bat\s+what\s+(?:time|age)\b"
    r"|\bwann\b|\bseit wann\b|\ban welchem (?:tag|datum)\b|\bin welchem (?:jahr|monat)\b|\bwie lange\b"
    r"|\bquand\b|\bdepuis quand\b|\ben quelle annee\b|\bquel(?:le)? (?:jour|date|mois|annee)\b|\bcombien de temps\b"
    r"|\bcuando\b|\bque (?:dia|fecha|ano|mes|hora)\b|\ben que (?:ano|mes|fecha|dia)\b|\bhace cuanto\b|\bquando\b"
    r"|\bche (?:giorno|data|anno|mese|ora)\b|\bem que (?:ano|mes|dia|data)\b|\bquanto tempo\b|\bwanneer\b"
    r"|\bsinds wanneer\b|\bhoe lang\b|\bkiedy\b|\bod kiedy\b|\bjak dawno\b|\bw ktorym roku\b"
    r"|\bколи\b|\bвідколи\b|\bяк давно\b|\bякого (?:числа|дня|року|місяця)\b|\bв якому (?:році|місяці)\b|\bо котрій\b"
    r"|\bкогда\b|\bкак давно\b|\bкакого (?:числа|года)\b|\bв каком (?:году|месяце)\b|\bво сколько\b"
    r"|いつ|何時|何月|何日|何年|何曜日|什么时候|什麼時候|甚麼時候|何时|几号|幾號|几月"
    r"|哪年|哪一年|哪天|哪一天|几点|多久|언제|몇 시|며칠|몇 년"
)
# Every question for a time has one of the first, or one of each of the others; except in scripts without spaces.
_ASKING = frozenset(
    """when wann welchem lange quand quelle quel combien cuando fecha ano mes hora cuanto quando giorno data anno mese
    ora dia tempo wanneer lang kiedy dawno ktorym коли відколи давно якого якому котрій когда какого каком
    сколько""".split()
)
_WHAT = frozenset("what which how".split())
_OF_TIME = frozenset(
    """date day days month months year years time week weekend season hour decade quarter century weekday long many
    recently soon old early late age""".split()
)
_NOT_ASKS = (
    r"\b(?:what|which)\s+(?:\w+\s+)?(?:time|days?|years?|week|month|date)\s+(?:management|zones?|off|job|trip)\b"
)


def asks_when(text: str) -> bool:
    """Return True if a text asks for a time: when, what day, how long ago."""
    text = fold_same_length(compose_text(text))
    found = set(split_plain_words(text))
    if (
        found.isdisjoint(_ASKING)
        and (found.isdisjoint(_WHAT) or found.isdisjoint(_OF_TIME))
        and (text.isascii() or not compiled(HAN).search(text))
    ):
        return False
    if compiled(_ASKS).search(text) is None:
        return False
    return compiled(_NOT_ASKS).search(text) is None or compiled(r"\bwhen\b|\bhow long\b").search(text) is not None


_RELATIVE = (
    r"\b(?:(?P<number>the|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,4}"
    r"|(?:a\s)?few|(?:a\s)?couple\sof|several)\s)?(?:very\s|whole\s)?"
    r"(?P<unit>minute|hour|day|night|morning|evening|week|weekend|fortnight|month|year)s?\s"
    r"(?:right\s|just\s|immediately\s|directly\s)?(?P<side>before|after|prior\sto|following|preceding)\s(?P<event>[^?!.;,\n]{2,200})"
)
_RELATIVE_DAYS = {"week": 7, "weekend": 7, "fortnight": 14, "month": 30, "year": 365}
_VAGUE = {"few": 3, "couple": 2, "several": 4}


def relative(text: str) -> tuple[timedelta, str] | None:
    """Return how far from an event a text points, and the event; None where the event is a date `spans` resolves.

    >>> relative("What did I do the day before my birthday party?")
    (datetime.timedelta(days=-1), 'my birthday party')
    """
    text = " ".join(compose_text(text).split())
    low = fold_same_length(text)
    match = compiled(_RELATIVE).search(low)
    if match is None:
        return None
    event = text[match.start("event") : match.end("event")].strip(" '\"\u2019")
    if event.lower() in ("that", "this", "it", "then", "now", "the", ""):
        return None
    # The event may be a date, which needs no search.
    reader = PhraseReader(event, fold_same_length(event), datetime(2024, 6, 15, 12))
    reader.at = tokens_between(event, fold_same_length(event), 0, len(event))
    if reader.inner(MARGIN, 0) is not None:
        return None
    name = (match["number"] or "the").split()
    known = lexicon().get(name[-1] if name[-1] != "of" else name[-2])
    number = 1
    if name[-1].isdigit():
        number = int(name[-1])
    elif known and known[0] == "number":
        number = known[1]
    else:
        number = next((n for word, n in _VAGUE.items() if word in name), 1)
    if match["side"] in ("before", "prior to", "preceding"):
        number = -number
    unit = match["unit"]
    if unit in ("minute", "hour"):
        return timedelta(**{unit + "s": number}), event
    return timedelta(days=number * _RELATIVE_DAYS.get(unit, 1)), event
