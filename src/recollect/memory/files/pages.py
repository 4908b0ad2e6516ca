"""A file as the core sees it: which records it shows, how a changed record changes it, and what a person's edit means
for the records.

Markdown is handled by `recollect.document`; this module does not touch the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date
from typing import Any, Protocol

from recollect.document import daily_md
from recollect.document.matching import ExpectedFact, compare
from recollect.document.memory_md import (
    SECTIONS,
    TITLE,
    Document,
    Item,
    one_block,
    section_key,
    section_of,
    template,
)
from recollect.memory.files.erased_lines import erased_spans, was_erased
from recollect.memory.files.page_changes import (
    MergedSave,
    Words,
    apply_changes,
    compared_line,
    is_corrected,
    is_shown,
    section_in_file,
    squeeze,
)
from recollect.memory.files.versions import Base, PageView, Version, find_base, following_version
from recollect.memory.write import Write
from recollect.policy.retention import daily_expiry
from recollect.policy.topics import Topic
from recollect.records import USER_EDIT, DailyEntry, Fact, Record, new_id
from recollect.store.contract import Query

_HEADINGS = frozenset({TITLE, *(f"## {heading}" for heading in SECTIONS.values())})
"""The headings of MEMORY.md that Recollect writes itself."""


class Page(Protocol):
    """MEMORY.md or one daily note."""

    def render(self) -> str:
        """Return the text of the file."""
        ...

    def copy(self) -> Page:
        """Return a page that can be changed without changing this one."""
        ...

    def records(self, write: Write) -> list[Record]:
        """Return the records it should show."""
        ...

    def shows(self, record: Record) -> bool:
        """Return True if it shows the record."""
        ...

    def put(self, before: Record | None, after: Record | None) -> None:
        """Apply a change of a record."""
        ...

    def put_all(self, changes: Sequence[tuple[Record | None, Record | None]]) -> bool:
        """Apply changes of different records; return True if the text changed."""
        ...

    def wipe(self, records: Iterable[Record]) -> int:
        """Remove every line that says what these records say; return the number of lines."""
        ...

    def wipe_topic(self, topic: Topic) -> int:
        """Remove every line that mentions a topic; return the number of lines."""
        ...

    def catch_up(self, write: Write) -> bool:
        """Show the present records after a process without files changed them; return True if that was necessary."""
        ...

    def adopt(
        self, write: Write, records: Sequence[Record], versions: Sequence[Version] | None, name: str
    ) -> Version | None:
        """Update the records to match the file, on behalf of the write's actor.

        The text was made from one of these versions, or from an unknown one (None). Changes by others since that
        version are kept, and the page shows them afterwards. Returns the version that the text is now.
        """
        ...

    def saying(self, text: str) -> Page:
        """Return the same file with another text."""
        ...

    @property
    def items(self) -> tuple[Item, ...]:
        """Everything in it that can be remembered, from top to bottom."""
        ...

    def draft(self, write: Write, item: Item) -> Record:
        """Return the record that a new line would become."""
        ...


class MemoryPage:
    """MEMORY.md."""

    def __init__(self, document: Document) -> None:
        self._current = document
        self._waiting: dict[str, tuple[Record | None, Record | None]] = {}  # pending changes by record id
        self._said: tuple[Document, dict[Words, list[Item]]] | None = None  # lines of that document by their words

    @classmethod
    def parse(cls, text: str) -> MemoryPage:
        return cls(Document.parse(text))

    def render(self) -> str:
        return self._document.render()

    def copy(self) -> MemoryPage:
        return MemoryPage(self._document)

    def saying(self, text: str) -> MemoryPage:
        return MemoryPage.parse(text)

    @property
    def items(self) -> tuple[Item, ...]:
        return self._document.items

    @property
    def word_count(self) -> int:
        return self._document.word_count

    def records(self, write: Write) -> list[Record]:
        shown = filter(write.shows, write.cache.in_file.values())
        return sorted(shown, key=lambda fact: (fact.created_at, fact.id))

    def shows(self, record: Record) -> bool:
        return self._item(record) is not None

    def put(self, before: Record | None, after: Record | None) -> None:
        # applied on the next read: many single changes cost no more than all of them at once
        record = after or before
        if record is not None:
            if record.id in self._waiting:
                self._apply_waiting()
            self._waiting[record.id] = before, after

    def put_all(self, changes: Sequence[tuple[Record | None, Record | None]]) -> bool:
        before = self._document
        self._document = apply_changes(before, changes)
        return self._document is not before

    def _apply_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if waiting:
            self._current = apply_changes(self._current, list(waiting.values()))

    @property
    def _document(self) -> Document:
        self._apply_waiting()
        return self._current

    @_document.setter
    def _document(self, document: Document) -> None:
        self._apply_waiting()
        self._current = document

    def wipe(self, records: Iterable[Record]) -> int:
        said = {one_block(form) for record in records for form in (record.content, record.text)}
        gone = [
            item
            for item in self._document.items
            if item.content in said or (item.label and f"{item.label}: {item.content}" in said)
        ]
        if gone:
            self._document = self._document.remove_all(gone)
        return len(gone)

    def catch_up(self, write: Write) -> bool:
        facts = {compared_line(fact): fact for fact in write.cache.in_file.values()}
        unknown = [item for item in self.items if (item.key, squeeze(item.content)) not in facts]
        with write.as_person():  # text that the policy refuses stays in the person's file
            gone = [item for item in unknown if write.refusal(self.draft(write, item)) is None]
        if gone:
            self._document = self._document.remove_all(gone)
        missing = [fact for fact in facts.values() if not self.shows(fact)]
        for fact in missing:
            self.put(None, fact)
        return bool(gone or missing)

    def wipe_topic(self, topic: Topic) -> int:
        text, taken = topic.without_lines(self._document.render(), _HEADINGS)
        if taken:
            self._document = Document.parse(text)
        return taken

    def adopt(
        self, write: Write, records: Sequence[Record], versions: Sequence[Version] | None, name: str
    ) -> Version | None:
        now = {fact.id: fact for fact in records if isinstance(fact, Fact)}
        begun = write.last_seq
        lines: dict[Hashable, Item] = {
            _line_of(_place_of(item), item.key, item.content): item for item in self._document.items
        }
        shown = PageView("fact", is_shown, _shown_line, _alike_count(lines), self._has_headings)
        erased = erased_spans(write, (self.draft(write, item) for item in self._document.items))
        found = None if versions is None else find_base(write.tx, now, versions, lines.keys(), shown, erased)
        if found is None:
            base = dict(now)
            self._drop_outdated(write, now)
        else:
            base = {record_id: fact for record_id, fact in found.records.items() if isinstance(fact, Fact)}
        merged = MergedSave(name)
        self._drop_erased(write, {compared_line(fact) for fact in [*base.values(), *now.values()]}, found, merged)
        changes = compare([_expected_fact(fact) for fact in base.values()], self._document.items)
        for record_id, _ in changes.same:
            was, current = base[record_id], now.get(record_id)
            if current is not was:
                self.put(was, current)
                if current is None or _shown_line(current) != _shown_line(was):
                    merged.note(was, current)
        for record_id, item in [*changes.moved, *changes.changed]:
            edited = now.get(record_id) or write.tx.get(record_id)
            if isinstance(edited, Fact):
                only_moved = compared_line(base[record_id]) == (item.key, squeeze(item.content))
                if only_moved and record_id in now and compared_line(edited) != compared_line(base[record_id]):
                    item = self._reword(item, edited)
                    merged.note(base[record_id], edited)
                self._edited(write, edited, item, name)
        for record_id in changes.removed:
            if record_id not in now:
                continue
            if found is None or record_id not in found.deletable:
                self.put(None, now[record_id])
                merged.added += versions is not None
            else:
                gone = replace(now[record_id], status="archived")
                write.apply("forget", now[record_id], gone, reason=f"deleted from {name}", written=True)
        fresh = {compared_line(fact): fact for record_id, fact in now.items() if record_id not in base}
        rivals = {(fact.key, fact.category): words for words, fact in fresh.items() if fact.key}
        for item in changes.added:
            if fresh.pop((item.key, squeeze(item.content)), None) is None:
                # no two facts share a key: both wrote the same thing down, the person in their own words
                rival = rivals.get((item.key, item.category or "key_fact")) if item.key else None
                if rival is not None and rival in fresh:
                    self._edited(write, fresh.pop(rival), item, name)
                else:
                    self._added(write, item, name)
        for fact in fresh.values():
            self.put(None, fact)
            merged.added += 1
        merged.tell(write)
        return None if found is None else following_version(found.version, begun, write.last_seq)

    def _has_headings(self) -> bool:
        return _is_headed(self._document.render(), {line for line in template().splitlines() if line})

    def _drop_outdated(self, write: Write, now: Mapping[str, Fact]) -> None:
        """Drop lines that facts used to say: the file may be any old version, so they are not edits."""
        said = {compared_line(fact) for fact in now.values()}
        old = {compared_line(e.before) for e in write.tx.entries() if isinstance(e.before, Fact)} - said
        outdated = [item for item in self._document.items if (item.key, squeeze(item.content)) in old]
        if outdated:
            self._document = self._document.remove_all(outdated)

    def _drop_erased(self, write: Write, known: Set[Words], base: Base | None, merged: MergedSave) -> None:
        """Drop lines that were erased after the version they come from.

        This comes before the comparison, which could take such a line for a new wording of another one.
        """
        if not write.cache.buried:
            return
        unknown = [item for item in self._document.items if (item.key, squeeze(item.content)) not in known]
        erased = [item for item in unknown if was_erased(write, self.draft(write, item), base)]
        if erased:
            self._document = self._document.remove_all(erased)
            merged.erased += len(erased)

    def _reword(self, item: Item, fact: Fact) -> Item:
        """Give a line that the person moved the words that somebody else changed meanwhile."""
        document = self._document
        if fact.key is not None and fact.key != item.key:
            document = document.rename(item, fact.key, fact.label)
            item = item._replace(key=fact.key)
        if squeeze(fact.content) != squeeze(item.content):
            document = document.replace(item, fact.content)
        self._document = document
        return item._replace(label=fact.label, content=fact.content)

    def _edited(self, write: Write, fact: Fact, item: Item, name: str) -> None:
        said = _item_fields(item)
        reworded = (said["key"], said["content"]) != (fact.key, fact.content)
        changed = replace(fact, **said, **_author_fields(write, fact, reworded), status="active", tier="file")
        if _is_refused(write, changed, item, name):
            write.apply("forget", fact, replace(fact, status="archived"), reason=f"replaced in {name}", written=True)
            return
        if changed.content != fact.content:
            changed = replace(changed, valid_from=write.now)
            write.tx.keep(replace(fact, status="superseded", valid_until=write.now))
        write.apply("update", fact, changed, reason=f"edited in {name}", written=True)

    def draft(self, write: Write, item: Item) -> Fact:
        return Fact(id=new_id("fact"), tier="file", **_write_fields(write), **_item_fields(item))

    def _added(self, write: Write, item: Item, name: str) -> None:
        fact = self.draft(write, item)
        if _is_refused(write, fact, item, name):
            return
        known = write.same_key(fact) or write.archived_copy(fact)
        if known is not None and known.tier == "archive":
            self._edited(write, known, item, name)
        else:
            write.apply("remember", None, fact, reason=f"written into {name}", written=True)

    def _item(self, record: Record) -> Item | None:
        """Return the line that shows a record, preferring its own section."""
        document = self._document
        if self._said is None or self._said[0] is not document:
            said: dict[Words, list[Item]] = {}
            for item in document.items:
                said.setdefault((item.key, squeeze(item.content)), []).append(item)
            self._said = document, said
        found = self._said[1].get((record.key, squeeze(one_block(record.content))), [])
        section = section_in_file(record) if isinstance(record, Fact) else None
        return next((item for item in found if item.section == section), found[0] if found else None)


class DayPage:
    """One daily note: append-only, except when something is erased or has expired."""

    def __init__(self, day: date, text: str) -> None:
        self._day = day
        self._current = text
        self._waiting: list[tuple[str, str]] = []  # sections and texts to append
        self._said: set[str] | None = None  # its entries, once requested

    def render(self) -> str:
        return self._text

    def copy(self) -> DayPage:
        return DayPage(self._day, self._text)

    def saying(self, text: str) -> DayPage:
        return DayPage(self._day, text)

    @property
    def items(self) -> tuple[Item, ...]:
        return daily_md.parse_entries(self._text)

    def draft(self, write: Write, item: Item) -> DailyEntry:
        return DailyEntry(
            id=new_id("daily"),
            content=item.content,
            day=self._day,
            key=self._day.isoformat(),
            section=item.section,
            expires_at=daily_expiry(self._day, write.config.daily_retention_days),
            **_write_fields(write),
        )

    def records(self, write: Write) -> list[Record]:
        return write.tx.find(Query(kinds=("daily",), key=self._day.isoformat()))

    def shows(self, record: Record) -> bool:
        if self._said is None:
            self._said = {item.content for item in daily_md.parse_entries(self._text)}
        return one_block(record.content) in self._said

    def put(self, before: Record | None, after: Record | None) -> None:
        if after is None:
            if before is not None:
                self.wipe([before])
        elif isinstance(after, DailyEntry) and after.status == "active" and (before is None or not self.shows(after)):
            self._waiting.append((after.section, after.content))  # appended on the next read, all at once
            if self._said is not None:
                self._said.add(one_block(after.content))

    def put_all(self, changes: Sequence[tuple[Record | None, Record | None]]) -> bool:
        text = self._text
        leaving = [before for before, after in changes if before is not None and after is None]
        if leaving:
            self.wipe(leaving)
        for before, after in changes:
            if after is not None:
                self.put(before, after)
        return self._text != text

    @property
    def _text(self) -> str:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._current = daily_md.append_entries(self._current, self._day, waiting)
        return self._current

    def wipe(self, records: Iterable[Record]) -> int:
        before = len(daily_md.parse_entries(self._text))
        self._current = daily_md.remove_entries(self._text, {one_block(record.content) for record in records})
        self._said = None
        after = len(daily_md.parse_entries(self._text))
        self._drop_if_empty()
        return before - after

    def catch_up(self, write: Write) -> bool:
        # a forgotten entry keeps its line
        known = write.tx.find(Query(kinds=("daily",), key=self._day.isoformat(), statuses=()))
        said = {squeeze(one_block(entry.content)) for entry in known}
        unknown = [self.draft(write, item) for item in self.items if squeeze(item.content) not in said]
        with write.as_person():
            taken = self.wipe([entry for entry in unknown if write.refusal(entry) is None])
        missing = [entry for entry in self.records(write) if not self.shows(entry)]
        for entry in missing:
            self.put(None, entry)
        return bool(taken or missing)

    def wipe_topic(self, topic: Topic) -> int:
        title = f"# {self._day.isoformat()}"
        text, taken = topic.without_lines(self._text, {title, *(f"## {name}" for name in daily_md.SECTIONS)})
        if taken:
            self._current, self._said = text, None
            self._drop_if_empty()
        return taken

    def _drop_if_empty(self) -> None:
        if not daily_md.parse_entries(self._text) and self._text.strip("\ufeff \t\r\n") == f"# {self._day.isoformat()}":
            self._current, self._said = "", None

    def adopt(
        self, write: Write, records: Sequence[Record], versions: Sequence[Version] | None, name: str
    ) -> Version | None:
        begun = write.last_seq
        # a forgotten entry keeps its line, so it is included, and the line does not bring it back
        known = write.tx.find(Query(kinds=("daily",), key=self._day.isoformat(), statuses=()))
        entries = {entry.id: entry for entry in known if isinstance(entry, DailyEntry)}
        lines: dict[Hashable, Item] = {squeeze(item.content): item for item in self.items}
        headings = {f"# {self._day.isoformat()}", *(f"## {entry.section}" for entry in entries.values())}
        shown = PageView(
            "daily",
            self._ever_showed,
            lambda one: squeeze(one_block(one.content)),
            _alike_count(lines),
            lambda: _is_headed(self._text, headings),
        )
        erased = erased_spans(write, (self.draft(write, item) for item in self.items))
        found = None if versions is None else find_base(write.tx, entries, versions, lines.keys(), shown, erased)
        were: Mapping[str, Record] = entries if found is None else found.records
        base = {record_id: entry for record_id, entry in were.items() if isinstance(entry, DailyEntry)}
        merged = MergedSave(name)
        self._drop_erased(write, [*base.values(), *entries.values()], found, merged)
        changes = compare([_expected_fact(entry) for entry in base.values()], self.items)
        for record_id, _ in changes.same:
            now = entries.get(record_id)
            if now is not None and now.content != base[record_id].content:
                self.wipe([base[record_id]])
                self.put(None, now)
                merged.note(base[record_id], now)
        for record_id, item in [*changes.moved, *changes.changed]:
            entry = entries.get(record_id)
            if entry is not None and entry.status == "active":
                signed = _author_fields(write, entry, item.content != entry.content)
                edited = replace(entry, content=item.content, section=item.section, **signed)
                if not _is_refused(write, edited, item, name):
                    write.apply("update", entry, edited, reason=f"edited in {name}", written=True)
        for record_id in changes.removed:
            entry = entries.get(record_id)
            if entry is not None and entry.status == "active" and found is not None and record_id in found.deletable:
                write.apply(
                    "forget", entry, replace(entry, status="archived"), reason=f"deleted from {name}", written=True
                )
        fresh = {squeeze(one_block(entry.content)) for record_id, entry in entries.items() if record_id not in base}
        for item in changes.added:
            entry = self.draft(write, item)
            if squeeze(item.content) not in fresh and not _is_refused(write, entry, item, name):
                write.apply("remember", None, entry, reason=f"written into {name}", written=True)
        for record in self.records(write):
            if not self.shows(record):
                self.put(None, record)
                merged.added += versions is not None
        merged.tell(write)
        return None if found is None else following_version(found.version, begun, write.last_seq)

    def _drop_erased(self, write: Write, known: Iterable[Record], base: Base | None, merged: MergedSave) -> None:
        """Drop lines that were erased after the version they come from: see `MemoryPage`."""
        if not write.cache.buried:
            return
        said = {squeeze(one_block(entry.content)) for entry in known}
        unknown = [self.draft(write, item) for item in self.items if squeeze(item.content) not in said]
        if erased := [entry for entry in unknown if was_erased(write, entry, base)]:
            merged.erased += self.wipe(erased)

    def _ever_showed(self, record: Record) -> bool:
        return isinstance(record, DailyEntry) and record.day == self._day


def _is_headed(text: str, headings: Set[str]) -> bool:
    """Return True if a text has all of our headings, or nothing else."""
    lines = set(filter(None, map(str.strip, text.splitlines())))
    return headings <= lines or lines <= headings


def _shown_line(record: Record) -> tuple[str, str | None, str]:
    assert isinstance(record, Fact)
    return _line_of(section_in_file(record), record.key, one_block(record.content))


def _expected_fact(record: Record) -> ExpectedFact:
    if isinstance(record, Fact):
        place, key = section_in_file(record), record.key
        return ExpectedFact(id=record.id, section=place, category=record.category, key=key, content=record.content)
    assert isinstance(record, DailyEntry)
    return ExpectedFact(id=record.id, section=record.section, category=None, key=None, content=record.content)


def _alike_count(items: Mapping[Hashable, Item]) -> Callable[[Sequence[Record], Set[Hashable]], int]:
    """Return a function that counts the records that are certainly one of these lines: moved, with a new value, or
    slightly corrected.

    Mere resemblance proves nothing: somebody may have stored one line while the other was being written.
    """

    def count(records: Sequence[Record], lines: Set[Hashable]) -> int:
        new = [item for line, item in items.items() if line in lines]
        said = {record.id: record for record in records}
        changes = compare([_expected_fact(record) for record in records], new)
        return len(changes.moved) + sum(is_corrected(said[record_id], item) for record_id, item in changes.changed)

    return count


def _item_fields(item: Item) -> dict[str, Any]:
    return {
        "content": item.content,
        "key": item.key,
        "label": item.label,
        "category": item.category or "key_fact",
        "section": None if item.category else item.section,
    }


def _write_fields(write: Write) -> dict[str, Any]:
    by, now = write.acting, write.now
    return {
        "created_at": now,
        "updated_at": now,
        "valid_from": now,
        "source": by.edits_as,
        "session": by.session,
        "agent": by.agent,
        "trusted": by.trusted,
    }


def _author_fields(write: Write, record: Record, reworded: bool) -> dict[str, Any]:
    """Return the fields that record who says it now: a person owns all they touch, a tool only its own words."""
    by = write.acting
    if by.is_person:
        return {"source": USER_EDIT, "confidence": 1.0, "excerpt": None, "agent": None, "trusted": True}
    if not reworded:
        return {}
    signed = {"source": by.edits_as, "excerpt": None, "messages": (), "agent": by.agent, "trusted": by.trusted}
    return signed | {"session": by.session or record.session}


def _is_refused(write: Write, record: Record, item: Item, name: str) -> bool:
    """Return True, with a notice, for a line the policy refuses: it stays in the file but is not remembered."""
    refused = write.refusal(record)
    if refused is not None:
        what = refused.message.removeprefix("Not stored: ")
        write.notices.append(f"{name} line {item.line} stays in your file but is not remembered: {what}")
    return refused is not None


def _place_of(item: Item) -> str:
    return section_of(item.category) if item.category else item.section


def _line_of(section: str, key: str | None, content: str) -> tuple[str, str | None, str]:
    return section_key(section), key, squeeze(content)
