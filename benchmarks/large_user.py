"""A user too large to load, searched in PostgreSQL, beside the same user with an index in memory.

``python -m benchmarks.large_user 100000``: makes up so many records of one user, asks the same questions of two
processes, one with the index and one that may not load it, and prints what each needs: memory, time to be ready and
time to answer, how many of the best five they share, and how large the tables are. A third process hands the words to
the database before. With ``--vectors`` both search by vectors too, and the nearest by signs are compared with the
exactly nearest. One run on one machine: compare the two, not with others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
import psycopg

import recollect
from benchmarks.made_up import BEGIN, SPAN, Entry, Talk
from benchmarks.new_process import resident
from benchmarks.timing import percentiles, print_report
from recollect.records import RECORD_TYPES, JournalEntry, Record, new_id
from recollect.search import vectors
from recollect.search.embedders.embedder import unpack
from recollect.store.contract import Query
from recollect.store.postgres import PostgresStore
from recollect.store.word_contract import WordReader
from recollect.testing import FrozenClock
from recollect.testing.embedding import HashEmbedder
from recollect.testing.postgres import PostgresServer

USER = "large"
AT_ONCE = 5000
BEST = 5
DRAWN = 2000  # as memory/partial_index.py does
EMBEDDER = HashEmbedder(384)  # near are texts with common words: no model, so anybody can repeat it
SETTINGS = {"shared_buffers": "1GB", "fsync": "off", "synchronous_commit": "off", "max_wal_size": "8GB"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=int, nargs="?", default=100_000, help="how many records the user has")
    parser.add_argument("--questions", type=int, default=200, help="how many questions are asked of each")
    parser.add_argument("--vectors", action="store_true", help="search by vectors too, of 384 dimensions")
    parser.add_argument("--ask", nargs=2, metavar=("URL", "LIMIT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(asked(given.ask[0], int(given.ask[1]), given)))
        return
    with PostgresServer(settings=SETTINGS) as server:
        url = server.empty_url()
        began = time.perf_counter()
        load(url, Talk().records(given.records))
        figures: dict[str, Any] = {"records": given.records, "load_s": round(time.perf_counter() - began, 1)}
        with_index = of_a_process(url, 10**9, given)
        filling = of_a_process(url, given.records // 2, given, questions=1)
        in_database = of_a_process(url, given.records // 2, given)
        figures["tables_mb"] = sizes(url)
        if given.vectors:
            figures["by signs alone"] = nearest(url, Talk().questions(given.questions))
    figures["fill_s"] = filling["ready_s"]
    figures["with the index"] = told(with_index)
    figures["in the database"] = told(in_database)
    for name in ("best", "best_narrowed"):
        figures[f"same {name}"] = agreement(with_index[name], in_database[name])
        figures[f"same first of {name}"] = agreement(
            [best[:1] for best in with_index[name]], [best[:1] for best in in_database[name]]
        )
    print_report(figures, as_json=True)


def load(url: str, entries: Iterator[Entry]) -> None:
    """Store all of them, past the write path, which would take many times as long."""
    store = PostgresStore(url)
    while part := list(islice(entries, AT_ONCE)):
        with store.user(USER).write() as tx:
            records = [record_of(entry, tx.next_seq()) for entry in part]
            tx.put_many(records)
            tx.log(
                JournalEntry(seq=one.seq, at=one.created_at, actor="user", op="write", record_id=one.id, after=one)
                for one in records
            )
    store.close()


def record_of(entry: Entry, seq: int) -> Record:
    own: dict[str, Any] = {"session": entry.session, "category": entry.category, "tags": entry.tags, "seq": seq}
    if entry.kind == "message":
        own |= {"speaker": entry.speaker, "role": entry.role}
    at: datetime = entry.said_at
    return RECORD_TYPES[entry.kind](
        id=new_id(entry.kind), content=entry.text, created_at=at, updated_at=at, valid_from=at, **own
    )


def sizes(url: str) -> dict[str, float]:
    """How large the tables are, with their indexes."""
    with psycopg.connect(url) as db:
        rows = db.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relname = ANY(%s)",
            (["memory", "memory_journal", "memory_words", "memory_terms", "memory_vectors", "memory_meanings"],),
        )
        return {name: round(size / 1e6) for name, size in rows}


def of_a_process(url: str, limit: int, given: argparse.Namespace, questions: int | None = None) -> dict[str, Any]:
    """What a process of its own finds and needs."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.large_user",
        str(given.records),
        "--questions",
        str(questions or given.questions),
    ]
    command += ["--vectors"] if given.vectors else []
    run = subprocess.run([*command, "--ask", url, str(limit)], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def asked(url: str, limit: int, given: argparse.Namespace) -> dict[str, Any]:
    talk, embedder = Talk(), EMBEDDER if given.vectors else ""
    questions, filters = talk.questions(given.questions), talk.narrowed(given.questions, given.records)
    with recollect.open(url, clock=FrozenClock(BEGIN + SPAN), index_limit=limit, embedder=embedder) as app:
        memory, warm = app.user(USER), app.user("warm")
        if given.vectors:
            vectors.EXACT = given.records  # the index compares all of them exactly, to measure the database by it
            memory.embed()  # by the first process; the others find them
        warm.note(questions[0])
        warm.search(questions[0])  # what every process loads, whoever is searched
        before = resident() or 0
        began = time.perf_counter()
        memory.search(questions[0], include_conversation=True)
        ready = time.perf_counter() - began
        found: dict[str, Any] = {
            "ready_s": round(ready, 1),
            "times": [],
            "narrowed": [],
            "best": [],
            "best_narrowed": [],
        }
        for question, wanted in zip(questions, filters, strict=True):
            began = time.perf_counter()
            hits = memory.search(question, limit=BEST, include_conversation=True)
            found["times"].append(1e3 * (time.perf_counter() - began))
            found["best"].append([hit.record.id for hit in hits])
            began = time.perf_counter()
            hits = memory.search(
                question,
                limit=BEST,
                kinds=(wanted.kind,),
                since=wanted.since,
                until=wanted.until,
                category=wanted.category,
                session=wanted.session,
            )
            found["narrowed"].append(1e3 * (time.perf_counter() - began))
            found["best_narrowed"].append([hit.record.id for hit in hits])
        found["memory_mb"] = round(((resident() or 0) - before) / 1e6)
        began = time.perf_counter()
        memory.remember("A fact that nobody knows yet: the harbour closes at nine")
        found["write_ms"] = round(1e3 * (time.perf_counter() - began), 1)
        return found


def nearest(url: str, questions: Sequence[str]) -> dict[str, Any]:
    """How many of the exactly nearest five are among the nearest by their signs, and how long those take."""
    store = PostgresStore(url)
    asked, times, among, first = EMBEDDER.embed(questions), [], 0, 0
    with store.user(USER).read() as reader:
        assert isinstance(reader, WordReader)
        rows = reader.vectors(EMBEDDER.name)
        known = np.concatenate([unpack(row.data, EMBEDDER.dimensions)[:1] for row in rows])
        for query in asked:
            best = [rows[place].record_id for place in np.argsort(-(known @ query))[:BEST]]
            began = time.perf_counter()
            found = {row.record_id for row in reader.nearest(EMBEDDER.name, query.tolist(), Query(), DRAWN)}
            times.append(1e3 * (time.perf_counter() - began))
            among += len(found.intersection(best))
            first += best[0] in found
    store.close()
    return {
        "ms": percentiles(times, 99),
        f"of the best {BEST}, among {DRAWN}": round(among / (BEST * len(asked)), 3),
        "of the first": round(first / len(asked), 3),
    }


def told(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "ready_s": found["ready_s"],
        "memory_mb": found["memory_mb"],
        "search_ms": percentiles(found["times"], 99),
        "narrowed_ms": percentiles(found["narrowed"], 99),
        "write_ms": found["write_ms"],
    }


def agreement(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> float:
    """The share of the best of one that the other has too."""
    same = sum(len(set(a) & set(b)) for a, b in zip(one, other, strict=True))
    return round(same / max(sum(map(len, one)), 1), 3)


if __name__ == "__main__":
    main()
