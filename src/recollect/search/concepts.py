"""Words related to a search term: a small thesaurus for search without a model.

A person asks for siblings, the memory mentions a sister. The table is written by hand in `concepts.txt`; at the first
question, `concepts.json` is loaded, which `recollect.search.thesaurus` makes from it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path


def related_stems(stem: str, language: str = "en") -> list[tuple[str, float]]:
    """Return other stems for a stem of `text.terms`, each with a weight up to 1, strongest first.

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
