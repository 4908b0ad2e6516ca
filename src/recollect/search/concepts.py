"""Which other words may say what a search term says: a small thesaurus for search without a model.

A person asks for siblings, the memory speaks of a sister. The table is written by hand in `concepts.txt`; what is
loaded, at the first question, is `concepts.json`, which `recollect.search.thesaurus` makes of it.

It knows nothing about queries, facts or ranking: it gives words and weights, the search decides what to do
with them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path


def related(stem: str, language: str = "en") -> list[tuple[str, float]]:
    """Other stems for a stem as `text.terms` gives it, each with a weight up to 1, strongest first.

    >>> related("physician")
    [('doctor', 0.8), ('dr', 0.8), ...]
    """
    return _tables().get(language, {}).get(stem, [])


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, list[tuple[str, float]]]]:
    tables: dict[str, dict[str, list[tuple[str, float]]]] = json.loads(
        Path(__file__).with_name("concepts.json").read_text(encoding="utf-8")
    )
    return tables
