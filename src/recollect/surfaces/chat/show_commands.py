"""The commands that show memory: by section, by search, and where a record came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from recollect.document.memory_md import SECTIONS, section_of
from recollect.errors import NotFoundError
from recollect.records import USER_EDIT, Fact, Hit, JournalEntry, Record
from recollect.search.highlight import excerpt, match_spans
from recollect.surfaces.chat.page import ChatLine, ChatPage, Choice, chat_page, fits_choice, line_text
from recollect.surfaces.chat.speaker import (
    SHOWN,
    Asker,
    format_day,
    full_text,
    item_line,
    item_lines,
    listing_digest,
    numbers_in,
    pluralize,
    record_by_number,
    record_text,
    short_digest,
    undo_choice,
)
from recollect.surfaces.chat.text_fit import HEIGHT, WIDTH, count_phone_lines, fit_cells, quote_typed
from recollect.text import fold, terms

_MOST_SECTIONS = 7
_PER_SECTION_PAGE = 9
_PER_RESULT_PAGE = 6
_MOST_CHARACTERS = 500
_LONG = 500

_WORDS = {
    "User Preferences": "preferences",
    "Work Context": "work",
    "Personal Context": "personal",
    "Reading History": "reading",
    "Key Facts": "facts",
    "Notes": "notes",
    "Findings": "findings",
    "Past Discussions": "discussions",
    "Daily Notes": "days",
}
"""The word to type for each built-in section."""
_OF_KIND = {"note": "Notes", "observation": "Findings", "episode": "Past Discussions", "daily": "Daily Notes"}


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    records: list[Record]

    @property
    def word(self) -> str:
        """The short name of the section in a command."""
        return _WORDS.get(self.name) or short_digest(self.name)

    def is_called(self, name: str) -> bool:
        return name == self.word or fold(name) in (fold(self.name), fold(self.word))


def _sections(asker: Asker) -> list[_Section]:
    found: dict[str, list[Record]] = {name: [] for name in SECTIONS.values()}
    others: dict[str, list[Record]] = {name: [] for name in _OF_KIND.values()}
    for record in asker.remembered(*SHOWN):
        if isinstance(record, Fact):
            found.setdefault(record.section or section_of(record.category or "key_fact"), []).append(record)
        else:
            others[_OF_KIND[record.kind]].append(record)
    for name, records in others.items():
        found[name] = [*found.get(name, ()), *records]
    return [_Section(name, records) for name, records in found.items() if records]


# everything


def chat_show(asker: Asker, argument: str) -> ChatPage:
    """Show an overview of the memory, or one section."""
    if not asker.memory.exists:
        return empty_memory_page(asker)
    if not argument:
        return _overview(asker, 1)
    name, number = _with_page(argument)
    sections = _sections(asker)
    empty = [_Section(one, []) for one in SECTIONS.values()]
    for wanted, at in ((argument, 1), (name, number)):
        for section in [*sections, *empty]:
            if section.is_called(wanted):
                return _section_page(asker, section, at)
    return chat_why(asker, argument) if numbers_in(argument) else _no_section(asker, name, sections)


def chat_more(asker: Asker, argument: str) -> ChatPage:
    """Show the sections that did not fit on the first page."""
    if not asker.memory.exists:
        return empty_memory_page(asker)
    return _overview(asker, next(iter(numbers_in(argument)), 2))


def _overview(asker: Asker, number: int) -> ChatPage:
    sections = _sections(asker)
    if not sections:
        return empty_memory_page(asker)
    pages = -(-len(sections) // _MOST_SECTIONS)
    number = min(max(number, 1), pages)
    shown = sections[(number - 1) * _MOST_SECTIONS : number * _MOST_SECTIONS]
    title = ChatLine("What I remember about you" + (f" ({number}/{pages})" if pages > 1 else ""), "title")
    head, foot = [title, *mode_lines(asker)], _also(asker)
    room = HEIGHT - sum(count_phone_lines(line_text(line)) for line in [*head, *foot]) - 2 * len(shown)
    fair = _share_room(room, [len(section.records) for section in shown])
    numbers = asker.numbers(r for section, few in zip(shown, fair, strict=True) for r in section.records[:few])
    lines: list[ChatLine] = []
    choices: list[Choice] = []
    for section, few in zip(shown, fair, strict=True):
        every = len(section.records)
        count = f" ({few} of {every:,})" if few < every else ""
        lines.append(ChatLine(fit_cells(section.name, WIDTH - len(count)) + count, "heading"))
        lines += [item_line(record_text(record), numbers.get(record.id)) for record in section.records[:few]]
        if few < every:
            choices.append(Choice(f"{fit_cells(section.name, 16)} +{every - few:,}", f"show {section.word}"))
    rows = [choices[begin : begin + 2] for begin in range(0, len(choices), 2)]
    turning = [Choice("‹ Back", f"more {number - 1}")] if number > 1 else []
    turning += [Choice("More sections ›", f"more {number + 1}")] if number < pages else []
    return chat_page(*head, *lines, *foot, choices=[*rows, turning])


def _share_room(room: int, wanted: list[int]) -> list[int]:
    """Return how many lines each section gets: at least one, and the rest shared evenly."""
    given = [min(1, want) for want in wanted]
    while sum(given) < room and given != wanted:
        for here, want in enumerate(wanted):
            if given[here] < want and sum(given) < room:
                given[here] += 1
    return given


def _also(asker: Asker) -> list[ChatLine]:
    messages = asker.memory.count().get("message", 0)
    return (
        [ChatLine(f"And {pluralize(messages, 'message', 'messages')} of our conversations.", "aside")]
        if messages
        else []
    )


def mode_lines(asker: Asker) -> list[ChatLine]:
    """Return a line about the mode of the memory; none if it is on."""
    mode = asker.memory.mode
    if mode == "incognito":
        return [ChatLine("Incognito: only you see this. I don't use it and store nothing new.", "aside")]
    if not asker.memory.config.enabled:
        return [ChatLine("Memory is turned off here: nothing new is stored.", "aside")]
    return [ChatLine("Paused: nothing new is stored.", "aside")] if mode == "paused" else []


def empty_memory_page(asker: Asker) -> ChatPage:
    """Return the page of a memory without anything to show; messages that are kept are counted."""
    messages = _also(asker) if asker.memory.exists else []
    return chat_page(
        ChatLine("No facts yet." if messages else "I don't remember anything about you yet.", "title"),
        *messages,
        *mode_lines(asker),
        "Tell me something to remember, such as:",
        ChatLine("Remember that I prefer short answers.", "item"),
    )


# one section


def _section_page(asker: Asker, section: _Section, number: int) -> ChatPage:
    every = len(section.records)
    pages = max(1, -(-every // _PER_SECTION_PAGE))
    number = min(max(number, 1), pages)
    begin = (number - 1) * _PER_SECTION_PAGE
    turning = [Choice("‹ Back", f"show {section.word} {number - 1}")] if number > 1 else []
    turning += [Choice("More ›", f"show {section.word} {number + 1}")] if number < pages else []
    where = [ChatLine(f"Page {number} of {pages}, {every:,} in all", "aside")] if pages > 1 else []
    return chat_page(
        ChatLine(fit_cells(section.name, WIDTH), "title"),
        *mode_lines(asker),
        *item_lines(asker, section.records[begin : begin + _PER_SECTION_PAGE], rows=2),
        *([] if every else [ChatLine("There is nothing here yet.", "aside")]),
        *where,
        choices=[turning, [Choice("All sections", "show")]],
    )


def _no_section(asker: Asker, name: str, sections: list[_Section]) -> ChatPage:
    close = difflib.get_close_matches(fold(name)[:80], [word for s in sections for word in (fold(s.name), s.word)], 1)
    meant = [section for section in sections if close and close[0] in (fold(section.name), section.word)]
    choices = [Choice(f"Show {fit_cells(section.name, 24)}", f"show {section.word}") for section in meant]
    if fits_choice(f"search {name}"):
        choices.append(Choice(f"Search {quote_typed(name, 16)}", f"search {name}"))
    return chat_page(
        ChatLine(f"I don't know {quote_typed(name)}.", "bad"),
        *(_section_list(sections[:_MOST_SECTIONS]) if sections else ()),
        choices=[choices, [Choice("Show everything", "show")]],
    )


def _section_list(sections: Iterable[_Section]) -> list[ChatLine]:
    return [
        ChatLine("You can look at:"),
        *(ChatLine(fit_cells(section.name, WIDTH - 2), "item") for section in sections),
    ]


def _with_page(argument: str) -> tuple[str, int]:
    """Split ``work 2`` into the section and the page."""
    name, _, last = argument.rpartition(" ")
    return (name, int(last)) if name and last.isdecimal() and len(last) < 10 else (argument, 1)


# search


def chat_search(asker: Asker, argument: str) -> ChatPage:
    """Search the memory, best matches first."""
    return _results(asker, argument.strip('"“”„ '), 1)


def chat_results(asker: Asker, argument: str) -> ChatPage:
    """Show another page of search results: ``results 2 tea``."""
    number, _, query = argument.partition(" ")
    return _results(asker, query or number, int(number) if query and number.isdecimal() and len(number) < 4 else 1)


def _results(asker: Asker, query: str, number: int) -> ChatPage:
    query = query[:_MOST_CHARACTERS].strip()
    if not query:
        return usage_page("What should I look for?", "search tea")
    if not asker.memory.exists:
        return empty_memory_page(asker)
    begin = (max(number, 1) - 1) * _PER_RESULT_PAGE
    hits, remark = _search_hits(asker, query, begin + _PER_RESULT_PAGE + 1)
    shown = hits[begin : begin + _PER_RESULT_PAGE]
    if not shown:
        return _nothing_found(query, after=number > 1)
    numbers = asker.numbers(hit.record for hit in shown)
    code = asker.memory.config.language
    lines = [line for hit in shown for line in _hit_lines(hit, numbers.get(hit.record.id), query, code)]
    turning = [Choice("‹ Back", f"results {number - 1} {query}")] if number > 1 else []
    turning += [Choice("More ›", f"results {number + 1} {query}")] if len(hits) > begin + _PER_RESULT_PAGE else []
    return chat_page(
        ChatLine(f"Found for {quote_typed(query)}", "title"),
        *remark,
        *lines,
        choices=[[choice for choice in turning if fits_choice(choice.command)]],
    )


def _search_hits(asker: Asker, query: str, most: int) -> tuple[list[Hit], list[ChatLine]]:
    """Return hits and a remark. Messages are included only if no memory contains the words."""
    if asker.memory.mode == "incognito":
        hits = [Hit(record=record, score=1.0, raw_score=1.0) for record in asker.speaking_of(query)]
        return hits[:most], mode_lines(asker)
    hits = list(asker.memory.search(query, limit=most))
    if any(_has_query_word(hit) for hit in hits):
        return hits, []
    said = [
        hit for hit in asker.memory.search(query, limit=most, kinds=("message",)) if _has_query_word(hit) or not hits
    ]
    return [*said, *hits], [ChatLine("Not in my notes, but it was mentioned:", "aside")] if said else []


def _has_query_word(hit: Hit) -> bool:
    """Return True if the hit contains a word of the query itself, not only a similar one."""
    found = frozenset(terms(full_text(hit.record)))
    return any(found.issuperset(terms(word)) for word in hit.words)


def _hit_lines(hit: Hit, number: int | None, query: str, code: str) -> list[ChatLine]:
    """Return a hit as lines: the text, cut around the first match, and the reason it matched."""
    text = record_text(hit.record)
    text = " ".join((hit.passage if hit.passage and len(text) > _LONG else text).split())
    part, _ = excerpt(text, match_spans(text, query, code), 2 * WIDTH - 4)
    lines = [item_line(part, number, rows=2)]
    if hit.words:
        lines.append(
            ChatLine(
                f"   {'because of' if _has_query_word(hit) else 'close to'} {quote_typed(hit.words[0], 20)}", "aside"
            )
        )
    elif hit.why:
        lines.append(ChatLine(f"   {fit_cells(hit.why.partition(';')[0], 30)}", "aside"))
    return lines


def _nothing_found(query: str, *, after: bool) -> ChatPage:
    if after:
        return chat_page(f"That was all about {quote_typed(query)}.", choices=[[Choice("Show everything", "show")]])
    return chat_page(
        ChatLine(f"I remember nothing about {quote_typed(query)}."),
        ChatLine("Try another word.", "aside"),
        choices=[[Choice("Show everything", "show")]],
    )


def usage_page(problem: str, example: str) -> ChatPage:
    """Return a page that says what a command lacks, with an example."""
    return chat_page(ChatLine(problem), ChatLine(f"For example: /memory {example}", "aside"))


# why


def chat_why(asker: Asker, argument: str) -> ChatPage:
    """Show where a record came from and how certain it is."""
    if not argument:
        return usage_page("Which memory do you mean? Give its number.", "why 12")
    if not asker.memory.exists:
        return empty_memory_page(asker)
    numbers = numbers_in(argument)
    if numbers:
        record = record_by_number(asker.memory, numbers[0])
        return unknown_number_page(numbers[0]) if record is None else _explanation_page(asker, record)
    hits, _ = _search_hits(asker, argument[:_MOST_CHARACTERS], 1)
    return _explanation_page(asker, hits[0].record) if hits else _nothing_found(argument, after=False)


def unknown_number_page(number: int) -> ChatPage:
    """Return the page for a number without a record."""
    return chat_page(
        ChatLine(f"There is no #{number}.", "bad"),
        ChatLine("Each memory is shown with its number.", "aside"),
        choices=[[Choice("Show everything", "show")]],
    )


def _explanation_page(asker: Asker, record: Record) -> ChatPage:
    try:
        entries = asker.memory.why(record.id).entries
    except NotFoundError:  # erased elsewhere at this moment
        entries = ()
    number = asker.numbers([record]).get(record.id)
    shown = ChatLine(fit_cells(record_text(record), 6 * WIDTH - 12), "text", number)
    facts = [f"{_origin_text(record)} on {format_day(record.created_at.date())}."]
    if record.agent:
        facts.append(f"Written by {quote_typed(record.agent, 20)}.")
    facts += [f"Based on: {quote_typed(said, 3 * WIDTH - 16)}" for said in _support(asker, record)[:2]]
    if record.kind != "message":
        facts.append(f"How sure I am: {_confidence_text(record.confidence)}.")
    if not record.trusted:
        facts.append("It comes from a text you did not write, so I treat it with care.")
    facts += _history_lines(record, entries)
    return chat_page(
        ChatLine("Why I know this", "title"),
        shown,
        *(ChatLine(fact, "item") for fact in facts),
        choices=_next_choices(asker, record),
    )


def _next_choices(asker: Asker, record: Record) -> list[list[Choice]]:
    number = asker.numbers([record]).get(record.id)
    if number is None:
        return []
    if not asker.is_active(record):
        return [[undo_choice(number, record)]] if record.status == "archived" else []
    return [[Choice("Forget this", f"forget {number} {listing_digest(record)}", danger=True)]]


def _origin_text(record: Record) -> str:
    origin = record.source.partition(":")[0]
    return {
        USER_EDIT: "You wrote it in your memory file",
        "explicit": "You asked me to remember it",
        "explicit_mention": "You asked me to remember it",
        "conversation": "It was said in a conversation",
        "discussion": "It came up in a discussion",
        "reaction": "It comes from one of your reactions",
        "batch_extraction": "I learned it from our conversations",
        "tool": "An assistant noted it",
        "import": "It was imported",
        "link": "It came from another channel of yours",
    }.get(origin, f"It came from {quote_typed(origin, 20)}")


def _support(asker: Asker, record: Record) -> list[str]:
    """Return the supporting text: the excerpt, or the messages that are still stored."""
    if record.excerpt:
        return [record.excerpt]
    said = []
    for message in record.messages[:2]:
        try:
            found = asker.memory.get(message)
        except NotFoundError:
            continue
        if asker.is_active(found):
            said.append(found.content)
    return said


def _confidence_text(confidence: float) -> str:
    return "certain" if confidence >= 0.95 else "quite sure" if confidence >= 0.7 else "not very"


def _history_lines(record: Record, entries: tuple[JournalEntry, ...]) -> list[str]:
    """Return sentences about what happened to the record later."""
    if record.status == "superseded":
        return ["It has been replaced by something newer."]
    changes = [entry for entry in entries[1:] if entry.op != "prune"]
    if not changes:
        return []
    last = changes[-1]
    day, by = format_day(last.at.date()), "by you" if last.actor == "person" else "by an assistant"
    if record.status == "archived":
        return [f"Forgotten on {day}, {by}."]
    return [f"Changed {pluralize(len(changes), 'time', 'times')}, last on {day}, {by}."]
