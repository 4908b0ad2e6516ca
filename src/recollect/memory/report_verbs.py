"""The verbs for data stored alongside a memory and shown in no file: interactions, extraction runs, spending."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime

from recollect import fields
from recollect.memory.chat_scope import chat_metadata, transaction_in
from recollect.memory.interaction_log import checked_run, parse_interaction, parse_interactions, store_interactions
from recollect.memory.journal import Progress
from recollect.memory.read_verbs import ReadVerbs
from recollect.memory.write import refusal_if_paused
from recollect.records import ExtractionRun, Interaction, Outcome, Spending
from recollect.store.contract import Transaction
from recollect.verbs import verb


class ReportVerbs(ReadVerbs):
    """The verbs that report interactions, extraction runs and spending."""

    @verb(scope="write", batch=True)
    def spend(
        self,
        operation: fields.Operation,
        *,
        tokens_in: fields.Tokens = 0,
        tokens_out: fields.Tokens = 0,
        cost: fields.Cost = 0.0,
    ) -> None:
        """Record the cost of a model call in the ledger, for host applications that call models for this user."""
        spending = Spending(
            day=self._now.date(),
            operation=operation,
            calls=1,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=cost,
        )
        with self._alongside() as tx:
            tx.charge([spending])

    # interactions and runs

    @verb(scope="write", batch=True)
    def report(
        self,
        kind: fields.InteractionKind,
        *,
        id: fields.InteractionId | None = None,
        at: fields.ReportedAt | None = None,
        item: fields.ReportedItem | None = None,
        title: fields.ReportedTitle | None = None,
        value: fields.ReportedValue | None = None,
        topics: fields.Topics = (),
        text: fields.ReportedText | None = None,
        session: fields.Conversation | None = None,
        metadata: fields.Metadata | None = None,
    ) -> Outcome:
        """Report something the user did or was given: a delivery, read, reaction, save, command or discussion.

        With an ``id`` of your own it is stored once, however often it is reported. Secrets in it are masked.
        """
        about = {"item": item, "title": title, "value": value, "topics": topics, "text": text}
        around = {"id": id, "at": at, "session": session, "metadata": metadata}
        drafted = parse_interaction(kind, now=self._now, in_session=self._acting.session, **about, **around)
        return self._report([drafted])[0]

    @verb(scope="write", batch=True)
    def report_many(self, events: fields.Events, *, progress: Progress | None = None) -> list[Outcome]:
        """Report many interactions, as mappings of the arguments of `report`: all but erased ones, or none."""
        return self._report(parse_interactions(events, now=self._now, in_session=self._acting.session), progress)

    def _report(self, drafted: list[Interaction], progress: Progress | None = None) -> list[Outcome]:
        refused = refusal_if_paused("on", self._user_memory.config)  # before creating a memory for nothing
        if drafted and refused is None:
            with self._alongside() as tx:
                refused = refusal_if_paused(tx.state().mode, self._user_memory.config)
                if refused is None:
                    chat = self._acting.chat
                    drafted = [replace(one, metadata=chat_metadata(one.metadata, chat)) for one in drafted]
                    return [*store_interactions(tx, drafted, self._now, progress)]
        return [refused for _ in drafted if refused is not None]

    @verb(scope="write")
    def note_run(self, run: fields.Run) -> ExtractionRun:
        """Record the state of an extraction run, replacing that of the same day and kind."""
        checked = checked_run(run)
        checked = replace(checked, details=chat_metadata(checked.details, self._acting.chat))
        with self._alongside() as tx:
            tx.put_run(checked)
        return checked

    # inside

    @contextmanager
    def _alongside(self) -> Iterator[Transaction]:
        """Open a transaction for data stored alongside the memory; within a batch, the batch's own."""
        with self._user_memory.write_alongside() if self._open is None else nullcontext(self._open.tx) as tx:
            yield transaction_in(tx, self._acting.chat, self._acting.session)

    @property
    def _now(self) -> datetime:
        return self._user_memory.clock() if self._open is None else self._open.now
