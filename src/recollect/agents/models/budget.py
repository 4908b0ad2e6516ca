"""The cost of models: the daily budget of a user is checked before a call, and its use is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from recollect.config import Config
from recollect.errors import ModelError
from recollect.memory.memory import Memory


class HasTokens(Protocol):
    """Anything with token counts: a `Reply`, or a `ModelError` that came after some were used."""

    @property
    def tokens_in(self) -> int: ...

    @property
    def tokens_out(self) -> int: ...


def check_budget(memory: Memory, config: Config) -> None:
    """Raise a ModelError of the kind ``budget`` if the user has nothing left for today."""
    if not config.daily_tokens and not config.daily_cost:
        return
    spent = memory.usage()
    tokens, cost = sum(row.tokens_in + row.tokens_out for row in spent), sum(row.cost for row in spent)
    if 0 < config.daily_tokens <= tokens:
        raise ModelError("budget", f"the budget of {config.daily_tokens:,} tokens for today is used up")
    if 0 < config.daily_cost <= cost:
        raise ModelError("budget", f"the budget of {config.daily_cost:g} for today is used up")


def spend(memory: Memory, operation: str, used: HasTokens, config: Config) -> None:
    """Record what a model used in the ledger, at the configured prices."""
    cost = (used.tokens_in * config.price_in + used.tokens_out * config.price_out) / 1e6
    memory.spend(operation, tokens_in=used.tokens_in, tokens_out=used.tokens_out, cost=cost)


@dataclass(frozen=True, slots=True)
class Account:
    """The user and operation that pay. A `Model` charges every answer at once, whatever comes after it."""

    memory: Memory
    operation: str
    config: Config

    def check(self) -> None:
        check_budget(self.memory, self.config)

    def charge(self, used: HasTokens) -> None:
        if used.tokens_in or used.tokens_out:
            spend(self.memory, self.operation, used, self.config)
