"""Other ways to search the same words: SQLite's FTS5, and bm25s and tantivy where they are installed.

Each is given the terms that our own index holds, made ready, and answers with the numbers of the ten best records.
None of them reads the records themselves, as a memory does, and none knows conversations, speakers or dates.
"""

from __future__ import annotations

import importlib.util
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.made_up import Entry, Wanted
from recollect.search.index.columns import microseconds

BEST = 10
NAMES = ("FTS5", "bm25s", "tantivy")

Ask = Callable[[Sequence[str], Wanted | None], list[int]]
Told = tuple[Entry, Sequence[str]]


def installed(name: str) -> bool:
    """Whether this one can be measured here."""
    return name == "FTS5" or importlib.util.find_spec(name) is not None


@contextmanager
def built(name: str, folder: Path, told: Iterable[Told]) -> Iterator[Ask]:
    """Load one with all records and their terms; how to ask it."""
    if name == "FTS5":
        with closing(sqlite3.connect(folder / "fts5.db")) as db:
            yield _fts5(db, told)
    else:
        yield {"bm25s": _bm25s, "tantivy": _tantivy}[name](folder, told)


def _fts5(db: sqlite3.Connection, told: Iterable[Told]) -> Ask:
    """A contentless table, one segment, and everything in the page cache: the best it can do."""
    for line in (
        "PRAGMA journal_mode = OFF",
        "PRAGMA synchronous = OFF",
        "PRAGMA cache_size = -1000000",
        "CREATE TABLE records (id INTEGER PRIMARY KEY, kind TEXT, category TEXT, session TEXT, said_at INTEGER)",
        """CREATE VIRTUAL TABLE words USING fts5
            (terms, content = '', tokenize = "unicode61 remove_diacritics 0 tokenchars '.+#-_:,&%$/'''")""",
    ):
        db.execute(line)
    for number, (entry, terms) in enumerate(told):
        row = (number, entry.kind, entry.category, entry.session, microseconds(entry.said_at))
        db.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", row)
        db.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (number, " ".join(terms)))
    db.execute("CREATE INDEX records_by_session ON records (session, said_at)")
    db.execute("CREATE INDEX records_by_category ON records (kind, category, said_at)")
    db.execute("INSERT INTO words (words) VALUES ('optimize')")
    db.execute("ANALYZE")
    db.commit()

    def ask(terms: Sequence[str], wanted: Wanted | None) -> list[int]:
        matching = " OR ".join(f'"{term}"' for term in terms)
        if wanted is None:
            query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?"
            return [row[0] for row in db.execute(query, (matching, BEST))]
        only = {"kind": wanted.kind, "category": wanted.category, "session": wanted.session}
        only = {column: value for column, value in only.items() if value is not None}
        query = (
            "SELECT words.rowid FROM words JOIN records ON records.id = words.rowid WHERE words MATCH ?"
            f"{''.join(f' AND {column} = ?' for column in only)} AND said_at >= ? AND said_at < ?"
            " ORDER BY bm25(words) LIMIT ?"
        )
        narrowed = (matching, *only.values(), microseconds(wanted.since), microseconds(wanted.until), BEST)
        return [row[0] for row in db.execute(query, narrowed)]

    return ask


def _bm25s(folder: Path, told: Iterable[Told]) -> Ask:
    """Scores computed ahead, all in memory; a filter is a mask over all records."""
    import numpy as np

    bm25s = import_module("bm25s")

    codes: dict[str | None, int] = {}
    kinds, groups, times, corpus = array("i"), array("i"), array("q"), []
    for entry, terms in told:
        kinds.append(codes.setdefault(entry.kind, len(codes)))
        groups.append(codes.setdefault(entry.category or entry.session, len(codes)))
        times.append(microseconds(entry.said_at))
        corpus.append(list(terms))
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index(corpus, show_progress=False)
    known = index.vocab_dict
    kind, group, time = np.array(kinds), np.array(groups), np.array(times)
    most = min(BEST, len(kinds))

    def ask(terms: Sequence[str], wanted: Wanted | None) -> list[int]:
        words = [term for term in terms if term in known]
        if not words:
            return []
        mask = None
        if wanted is not None:
            mask = kind == codes.get(wanted.kind, -1)
            if (only := wanted.category or wanted.session) is not None:
                mask &= group == codes.get(only, -1)
            mask &= (time >= microseconds(wanted.since)) & (time < microseconds(wanted.until))
        found, scores = index.retrieve([words], k=most, show_progress=False, weight_mask=mask)
        return [int(number) for number, score in zip(found[0], scores[0], strict=True) if score > 0]

    return ask


def _tantivy(folder: Path, told: Iterable[Told]) -> Ask:
    """One segment on disk, mapped; filters are clauses that score nothing."""
    tantivy = import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    for name in ("kind", "category", "session"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("number", "said_at"):
        builder.add_integer_field(name, stored=name == "number", indexed=True, fast=True)
    schema = builder.build()
    place = folder / "tantivy"
    place.mkdir()
    index = tantivy.Index(schema, path=str(place))
    writer = index.writer(heap_size=256_000_000, num_threads=1)
    for number, (entry, terms) in enumerate(told):
        fields: dict[str, Any] = {"number": number, "said_at": microseconds(entry.said_at)}
        fields |= {"terms": " ".join(terms), "kind": entry.kind}
        fields |= {name: value for name in ("category", "session") if (value := getattr(entry, name)) is not None}
        writer.add_document(tantivy.Document(**fields))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    query, occur = tantivy.Query, tantivy.Occur

    def ask(terms: Sequence[str], wanted: Wanted | None) -> list[int]:
        whole = query.boolean_query([(occur.Should, query.term_query(schema, "terms", term)) for term in terms])
        if wanted is not None:
            only = {"kind": wanted.kind, "category": wanted.category, "session": wanted.session}
            clauses = [
                *(query.term_query(schema, column, value) for column, value in only.items() if value is not None),
                query.range_query(
                    schema,
                    "said_at",
                    tantivy.FieldType.Integer,
                    microseconds(wanted.since),
                    microseconds(wanted.until),
                    include_upper=False,
                ),
            ]
            silent = [(occur.Must, query.const_score_query(clause, 0.0)) for clause in clauses]
            whole = query.boolean_query([(occur.Must, whole), *silent])
        hits = searcher.search(whole, BEST).hits
        return [int(searcher.doc(address).to_dict()["number"][0]) for _, address in hits]

    return ask
