"""Reminders: "You discussed something similar last week: …".

Only for real similarity: a past discussion, episode or note that shares its subject with what was just said. Not from
this session, not from today, and once per topic. That it was told is stored in working memory, as a hash without words
of the topic, under the user's lock, so no other process tells it again. While nothing can be stored, nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import blake2b

from recollect import checks as check
from recollect.agents.gather_interactions import discussed_title
from recollect.errors import StoreError
from recollect.memory.memory import Memory
from recollect.policy.injection import neutral
from recollect.policy.preferences import is_general
from recollect.records import DailyEntry, Episode, Message, Note, Outcome, Record
from recollect.text import clean, detect_language, fold, stem, terms, token_words, tokens, unspaced
from recollect.times import Clock

SWITCH = "reminders"
"""The key in working memory that switches reminders off, with the value "off"."""
_TOLD = "reminded:"
_MOST_TOLD = 500
_KINDS = ("episode", "note", "daily", "message")
_CANDIDATES = 30
_LATEST = 300  # discussions
_READ = 1_000  # characters of what is said
_LONGEST = 120
_ENOUGH, _ENOUGH_SAID = 2.0, 3.0  # shared words that make a subject: in a summary, and in a mere message
_SHARE, _SHARE_OF_NAME = 0.34, 0.5
_TALK = frozenset(
    """hello hi hey thanks thank please okay ok yes no sure nice well bye morning evening night tomorrow yesterday
    question questions help know want need like look see say said talk talked discuss discussed remind remember
    idea ideas again maybe let's let i'm i've i'd i'll don't can't what's it's that's you're could would should love
    hallo danke bitte gut ja nein guten morgen abend heute salut bonjour merci bien oui non hola gracias bueno si
    привіт дякую добре так ні привет спасибо хорошо да нет""".split()
)
"""Words of any conversation, without a subject."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder and its topic. ``source`` is the id of the record or interaction it comes from."""

    text: str
    topic: str
    when: str
    at: datetime
    source: str
    session: str | None = None


@dataclass(frozen=True, slots=True)
class _PastActivity:
    verb: str
    topic: str
    content: str
    at: datetime
    source: str
    session: str | None
    only_said: bool = False

    @property
    def mark(self) -> str:
        return _TOLD + blake2b(self.source.encode(), digest_size=12).hexdigest()


def remind(memory: Memory, text: str, *, session: str | None = None, clock: Clock | None = None) -> Reminder | None:
    """Return something the person did before that is similar to what they say or open now; None if there is nothing.

    ``session`` is the present one, which does not count as past.
    """
    said = check.check_query("text", text)[:_READ]
    here = check.check_optional_line("session", session)
    if memory.mode != "on" or not _subject(said, memory.config.language):
        return None
    now = (clock or memory.clock)()
    similar = _similar_activities(memory, said, here, now)
    if not similar or not reminders_are_on(memory) or not _claim_topic(memory, similar, now):
        return None
    past = similar[0]
    topic, when = _shorten_title(past.topic), ago(past.at.date(), now.date())
    told = f"You {past.verb} something similar {when}: {topic}"
    return Reminder(told, topic, when, past.at, past.source, past.session)


def reminders_are_on(memory: Memory) -> bool:
    """Return True if the person wants reminders, which is the default."""
    return fold(memory.scratch(SWITCH) or "").strip() not in ("off", "no", "false", "0")


def switch_reminders(memory: Memory, on: bool) -> Outcome:
    """Switch reminders on or off."""
    return memory.set_scratch(SWITCH, "on" if check.check_flag("on", on) else "off")


def ago(day: date, today: date) -> str:
    """Return a day in everyday words: yesterday, on Monday, last week, in March."""
    days = (today - day).days
    weeks = (today - timedelta(days=today.weekday()) - (day - timedelta(days=day.weekday()))).days // 7
    if days < 1:
        return "today"
    if days == 1:
        return "yesterday"
    if weeks == 0:
        return f"on {day:%A}"
    if weeks == 1:
        return "last week"
    if weeks <= 4 and days < 28:
        return f"{('two', 'three', 'four')[weeks - 2]} weeks ago"
    if (today.year - day.year) * 12 + today.month - day.month == 1:
        return "last month"
    return f"in {day:%B}" if day.year == today.year else f"in {day:%B %Y}"


# telling it once


def _claim_topic(memory: Memory, similar: list[_PastActivity], now: datetime) -> bool:
    """Return True if it is ours to tell: nothing of this topic was told before, and it is now marked."""
    if _was_reminded(memory, similar):
        return False
    try:
        with memory.batch() as batch:
            if _was_reminded(batch, similar):
                return False  # another process did so meanwhile
            for old in _reminder_marks(batch)[:-_MOST_TOLD]:
                batch.forget(old.id)
            return batch.set_scratch(similar[0].mark, f"told {now:%Y-%m-%d}").done
    except StoreError:
        return False  # if it cannot be marked, it would be told again and again


def _was_reminded(memory: Memory, similar: list[_PastActivity]) -> bool:
    marks = {record.key for record in _reminder_marks(memory)}
    return any(past.mark in marks for past in similar)


def _reminder_marks(memory: Memory) -> list[Record]:
    return [record for record in memory.read(kind="scratch") if (record.key or "").startswith(_TOLD)]


# similarity


def _similar_activities(memory: Memory, said: str, session: str | None, now: datetime) -> list[_PastActivity]:
    """Return what the person did before today in other sessions, the most similar first, then the latest."""
    code = memory.config.language
    subject = _subject(said, code)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    found: dict[str, tuple[float, _PastActivity]] = {}
    for past in _past_activities(memory, said, midnight):
        if past.at >= midnight or (session is not None and past.session == session):
            continue
        weight = _likeness(subject, past, code)
        if weight:
            found.setdefault(past.source, (weight - 0.5 * past.only_said, past))
    return [past for _, past in sorted(found.values(), key=lambda one: (one[0], one[1].at), reverse=True)]


def _past_activities(memory: Memory, said: str, before: datetime) -> Iterator[_PastActivity]:
    discussed = memory.interactions(kinds=("discussion",), until=before, newest_first=True, limit=_LATEST)
    titles: dict[str, str] = {}
    for one in discussed:
        if one.title:
            about = " ".join([one.title, *one.topics])
            titles.setdefault(one.session or "", one.title)
            yield _PastActivity("discussed", one.title, about, one.at, one.id, one.session)
    for hit in memory.search(said, kinds=_KINDS, limit=_CANDIDATES, until=before):
        if past := _activity_of(hit.record, hit.passage, titles):
            yield past


def _activity_of(record: Record, passage: str, titles: dict[str, str]) -> _PastActivity | None:
    at, session = record.valid_from, record.session
    if isinstance(record, Episode):
        return _PastActivity("discussed", record.topic or record.content, record.text, at, record.id, session)
    if isinstance(record, Note):
        topic = record.title or record.content
        return _PastActivity("noted", topic, f"{record.title or ''} {passage}", at, record.id, session)
    if isinstance(record, Message) and record.role == "user":
        topic = titles.get(session or "", "") or f'"{_shorten_title(record.content)}"'
        return _PastActivity("talked about", topic, passage or record.content, at, record.id, session, only_said=True)
    if isinstance(record, DailyEntry) and (title := discussed_title(record)):
        then = at.replace(year=record.day.year, month=record.day.month, day=record.day.day)
        return _PastActivity("discussed", title, title, then, record.id, session)
    return None


def _likeness(subject: dict[str, bool], past: _PastActivity, code: str) -> float:
    """Return how much of a subject is shared; 0 if too little."""
    other = _subject(past.content[:_READ], code)
    shared = subject.keys() & other.keys()
    weight, whole = _weight(shared), _weight(subject)
    if weight >= (_ENOUGH_SAID if past.only_said else _ENOUGH) and weight >= _SHARE * whole:
        return weight
    name = any(subject[word] or other[word] for word in shared)
    return weight if name and not past.only_said and weight >= _SHARE_OF_NAME * whole else 0.0


def _weight(words: Iterable[str]) -> float:
    return sum(0.5 if unspaced(word) else 1.0 for word in words)  # a pair of characters is half a word


def _subject(text: str, code: str) -> dict[str, bool]:
    """Return the subject of a text as stems, each with whether it is a name."""
    found = tokens(clean(text))
    code = code or detect_language([token.lower() for token in found])
    kept = frozenset(terms(f"{text} zzz", code, asked=True))
    subject: dict[str, bool] = {}
    for place, token in enumerate(found):
        for word in token_words(token):
            stemmed = stem(word, code)
            if stemmed not in kept or word in _TALK or is_general(word) or not any(map(str.isalpha, word)):
                continue
            marked = not word.isalpha() or (len(token) > 1 and not token[1:].islower())
            is_name = not unspaced(word) and (marked or (place > 0 and token[:1].isupper()))
            subject[stemmed] = subject.get(stemmed, False) or is_name
    return subject


def _shorten_title(text: str) -> str:
    line = neutral(text[: 4 * _LONGEST])
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
