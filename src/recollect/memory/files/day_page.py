"""A daily note as the core sees it: free lines that are only appended, and the lines of entries with a key and of
uncertain facts, which follow their records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from recollect.document import daily_md
from recollect.document.matching import ExpectedFact, compare
from recollect.document.memory_md import Item, key_of, one_block, split_label
from recollect.memory.daily_notes import (
    category_of_line,
    day_of,
    follows_record,
    has_own_line,
    lines_of_day,
    section_of_day,
)
from recollect.memory.files.erased_lines import erased_spans, was_erased
from recollect.memory.files.page_changes import MergedSave, squeeze
from recollect.memory.files.pages import alike_count, author_fields, is_headed, is_refused, write_fields
from recollect.memory.files.versions import Base, PageView, Version, find_base, following_version
from recollect.memory.write import Write
from recollect.policy.retention import daily_expiry
from recollect.policy.topics import Topic
from recollect.records import DailyEntry, Fact, Record, new_id


class DayPage:
    """One daily note."""

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
            category=category_of_line(item.section, item.content),
            expires_at=daily_expiry(self._day, write.config.daily_retention_days),
            **write_fields(write),
        )

    def records(self, write: Write) -> list[Record]:
        return lines_of_day(write.tx, self._day)

    def shows(self, record: Record) -> bool:
        if self._said is None:
            self._said = {item.content for item in daily_md.parse_entries(self._text)}
        return _line_of(record) in self._said

    def put(self, before: Record | None, after: Record | None) -> None:
        old = before if before is not None and self._has_line(before) else None
        new = after if after is not None and self._has_line(after) else None
        if new is None:
            if old is not None:
                self._remove_line(old)
        elif old is None:
            self._append(new)
        elif _line_of(old) != _line_of(new) and self.shows(old):
            self._current = daily_md.replace_entry(self._text, _line_of(old), _line_of(new))
            self._said = None
        elif not self.shows(new):
            self._append(new)

    def _append(self, record: Record) -> None:
        if record.status == "active":
            self._waiting.append((_section_of(record), record.text))  # appended on the next read, all at once
            if self._said is not None:
                self._said.add(_line_of(record))

    def put_all(self, changes: Sequence[tuple[Record | None, Record | None]]) -> bool:
        text = self._text
        for before, after in sorted(changes, key=lambda change: change[1] is not None):
            self.put(before, after)
        return self._text != text

    @property
    def _text(self) -> str:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._current = daily_md.append_entries(self._current, self._day, waiting)
        return self._current

    def _remove_line(self, record: Record) -> None:
        """Remove one line: facts of two chats may say the same, and the other one stays."""
        self._current = daily_md.remove_entries(self._text, {_line_of(record)}, most=1)
        self._said = None
        self._drop_if_empty()

    def wipe(self, records: Iterable[Record]) -> int:
        before = len(daily_md.parse_entries(self._text))
        said = {one_block(form) for record in records for form in (record.content, record.text)}
        self._current = daily_md.remove_entries(self._text, said)
        self._said = None
        after = len(daily_md.parse_entries(self._text))
        self._drop_if_empty()
        return before - after

    def catch_up(self, write: Write) -> bool:
        said = {squeeze(_line_of(record)) for record in self._with_line(write).values()}
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
        entries = self._with_line(write)
        lines: dict[Hashable, Item] = {squeeze(item.content): item for item in self.items}
        headings = {f"# {self._day.isoformat()}", *(f"## {_section_of(entry)}" for entry in entries.values())}
        shown = PageView(
            ("daily", "fact"),
            self._has_line,
            lambda one: squeeze(_line_of(one)),
            alike_count(lines, _expected_line),
            lambda: is_headed(self._text, headings),
        )
        erased = erased_spans(write, (self.draft(write, item) for item in self.items))
        found = None if versions is None else find_base(write.tx, entries, versions, lines.keys(), shown, erased)
        base: Mapping[str, Record] = entries if found is None else found.records
        merged = MergedSave(name)
        self._drop_erased(write, [*base.values(), *entries.values()], found, merged)
        changes = compare([_expected_line(record) for record in base.values()], self.items)
        for record_id, _ in changes.same:
            was, now = base[record_id], entries.get(record_id)
            if now is None or now.text != was.text:
                self._remove_line(was)
                if now is not None:
                    self.put(None, now)
                merged.note(was, now)
        added = list(changes.added)
        for record_id, item in [*changes.moved, *changes.changed]:
            entry = entries.get(record_id)
            if entry is None:  # forgotten, or no longer in this note
                added.append(item)
            elif entry.status == "active":
                self._edited(write, entry, item, name)
        for record_id in changes.removed:
            entry = entries.get(record_id)
            if entry is not None and entry.status == "active" and found is not None and record_id in found.deletable:
                write.apply(
                    "forget", entry, replace(entry, status="archived"), reason=f"deleted from {name}", written=True
                )
        fresh = {squeeze(_line_of(entry)) for record_id, entry in entries.items() if record_id not in base}
        for item in added:
            entry = self.draft(write, item)
            if squeeze(item.content) not in fresh and not is_refused(write, entry, item, name):
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
        said = {squeeze(_line_of(entry)) for entry in known}
        unknown = [self.draft(write, item) for item in self.items if squeeze(item.content) not in said]
        if erased := [entry for entry in unknown if was_erased(write, entry, base)]:
            merged.erased += self.wipe(erased)

    def _edited(self, write: Write, record: Record, item: Item, name: str) -> None:
        assert isinstance(record, DailyEntry | Fact)
        content = _value_of(item, record)
        signed = author_fields(write, record, content != record.content)
        edited = replace(record, content=content, section=item.section, **signed)
        if is_refused(write, edited, item, name):
            return
        if isinstance(edited, Fact) and write.gate.passes(edited):
            # the person is certain: it moves to MEMORY.md
            self._current, self._said = daily_md.remove_entries(self._text, {item.content}, most=1), None
            self._drop_if_empty()
            if edited.content != record.content:
                edited = replace(edited, valid_from=write.now)
                write.tx.keep(replace(record, status="superseded", valid_until=write.now))
            write.apply("update", record, write.gate.passed(edited), reason=f"edited in {name}")
        else:
            write.apply("update", record, edited, reason=f"edited in {name}", written=True)
            if not self.shows(edited):  # its label was changed, which is not its key
                self._current = daily_md.replace_entry(self._text, item.content, _line_of(edited))
                self._said = None

    def _with_line(self, write: Write) -> dict[str, Record]:
        """Return the records whose lines are here: also forgotten free lines, which stay and must not be read again."""
        found = lines_of_day(write.tx, self._day, statuses=())
        return {record.id: record for record in found if self._has_line(record)}

    def _has_line(self, record: Record) -> bool:
        here = day_of(record) == self._day and has_own_line(record)
        return here and (record.status == "active" or not follows_record(record))


def _line_of(record: Record) -> str:
    return one_block(record.text)


def _expected_line(record: Record) -> ExpectedFact:
    return ExpectedFact(id=record.id, section=_section_of(record), category=None, key=None, content=record.text)


def _section_of(record: Record) -> str:
    return getattr(record, "section", None) or section_of_day(record)


def _value_of(item: Item, record: Record) -> str:
    """Return the value in a line that may begin with the label of its record."""
    labelled = split_label(item.content) if record.entry_key else None
    return labelled[1] if labelled and key_of(labelled[0]) == record.entry_key else item.content
