"""The benchmarks: how well memories are found and learned, and how fast. They touch no memory of yours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.options import argument, option
from recollect.surfaces.cli.output import Output, progress
from recollect.surfaces.cli.program import START, CliGroup, command_group
from recollect.surfaces.cli.session import CliSession


class _Group(CliGroup):
    title = "Benchmarks"


_benchmark = command_group(
    "bench",
    START,
    "Measure how well and how fast memories are found.",
    "recollect bench recall --data locomo10.json",
    "recollect bench speed --quick",
    "recollect bench rules --misses",
    "recollect bench learning messages.jsonl --show misses",
    cls=_Group,
)


@_benchmark(
    "recollect bench recall --data locomo10.json",
    "recollect bench recall --data talks.jsonl --weights date=0,speaker=0.5 --json",
)
def recall(
    session: CliSession,
    data: Annotated[list[Path], option("--data", "LoCoMo, LongMemEval or JSON Lines; may be repeated.", "FILE")],
    embedder: Annotated[str, option("--embedder", "As in MEMORY_EMBEDDER, or none.", "SPEC")] = "none",
    weights: Annotated[str, option("--weights", "How much signals count: date=0.5,…", "NAME=X")] = "",
) -> None:
    """Ask questions whose answers are known."""
    from benchmarks.recall import measure
    from recollect.search.embedders.opening import open_embedder

    chosen = "" if embedder.strip().lower() == "none" else embedder.strip()
    open_embedder(chosen)  # a name that means nothing is told before anything is stored
    with _bars() as tell:
        figures = measure(data, embedder=chosen, weights=weights, progress=tell)
    session.out.document(figures)
    session.out.line(f"embedder: {figures['embedder']}; weights: {figures['weights']}; per cent")
    for name, found in figures["files"].items():
        session.out.line()
        _recalled(session.out, name, found)


_FIGURES = ("recall@1", "recall@5", "recall@10", "recall@20", "coverage@5", "ndcg@10", "mrr")


def _recalled(out: Output, name: str, found: Mapping[str, Any]) -> None:
    out.line(f"{name}: {found['conversations']:,} conversations, {found['search_ms']:.2f} ms a search")
    rows = {"turns": found["turns"], "sessions": found["sessions"]}
    rows |= {f"turns: {category or 'no category'}": figures for category, figures in found["categories"].items()}
    head = ("", "questions", *_FIGURES)
    cells = [(row, f"{of['questions']:,}", *(f"{of[each]:.1f}" for each in _FIGURES)) for row, of in rows.items()]
    out.table(head, cells, right=head[1:])


@_benchmark("recollect bench rules", "recollect bench rules --misses --data utterances.jsonl")
def rules(
    session: CliSession,
    data: Annotated[Path | None, option("--data", "Utterances, a line each.", "FILE", show_default=False)] = None,
    misses: Annotated[bool, option("--misses", "List what was wrong or not learned.")] = False,
) -> None:
    """Learn from utterances whose content is known."""
    from benchmarks import rules as bench

    figures = bench.measure(bench.load(data or bench.DATA))
    session.out.document(figures)
    head = ("", "utterances", "of them nothing", "to learn", "right", "wrong", "precision", "recall")
    for name, found in figures["sets"].items():
        rows = {name: found} | found["language"] | {f"… {why}": row for why, row in found["why"].items()}
        session.out.table(head, [_learned(row, of) for row, of in rows.items()], right=head[1:])
        session.out.line()
    for miss in figures["misses"] if misses else ():
        session.out.line(f"{miss['set']}, {miss['language']}, {miss['why']}: {miss['text']!r}")
        for sort in ("wrong", "missed"):
            for each in miss[sort]:
                session.out.line(f"    {sort}: {each}")


def _learned(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (f"{row[each]:,}" for each in ("utterances", "nothing", "wanted", "right", "wrong"))
    rates = ("–" if row[each] is None else f"{100 * row[each]:.1f}" for each in ("precision", "recall"))
    return name, *counts, *rates


@_benchmark("recollect bench learning messages.jsonl pairs.jsonl", "recollect bench learning *.jsonl --show misses")
def learning(
    session: CliSession,
    data: Annotated[list[Path], argument("FILE", "Labelled files: JSON Lines, one case per line.")],
    show: Annotated[
        str, option("--show", "Also list the misses, or the lines of every case.", "misses|lines", show_default=False)
    ] = "",
) -> None:
    """Learn from labelled messages, and count what was found, missed and wrong."""
    from benchmarks import learning as bench

    if show not in ("", "misses", "lines"):
        raise InvalidInputError("--show", "must be misses or lines")
    cases = bench.load(data)
    with _bars() as tell:
        figures = bench.measure(cases, progress=tell)
    session.out.document(figures)
    head = ("set", "measure", "right", "of", "per cent")
    rows = [(row["set"], row["measure"], *_counted(row)) for row in figures["table"]]
    session.out.table(head, rows, right=head[2:])
    if figures["lines"]["written"]:
        session.out.line()
        session.out.line("lines: " + ", ".join(f"{count:,} {kind}" for kind, count in figures["lines"].items()))
    for result in figures["results"] if show else ():
        if show == "lines" or result["missed"] or result["wrong"]:
            _listed(session.out, result)


def _counted(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"{row['right']:,}", f"{row['of']:,}", f"{row['percent']:.1f}"


def _listed(out: Output, result: Mapping[str, Any]) -> None:
    out.line()
    out.line(f"{result['set']} {result['id']}, {result['lang']}: {result['text']!r}")
    for sort in ("lines", "missed", "wrong"):
        for each in result[sort]:
            out.line(f"    {sort.removesuffix('s')}: {each}")


@_benchmark("recollect bench speed --quick", "recollect bench speed --sizes 1000,100000 --users 0 --plot speed.svg")
def speed(
    session: CliSession,
    sizes: Annotated[
        str | None, option("--sizes", "How many records one user has, in turn.", "N,N,…", show_default=False)
    ] = None,
    users: Annotated[
        int | None, option("--users", "How many users of 100 records; 0 for none.", "N", show_default=False)
    ] = None,
    quick: Annotated[bool, option("--quick", "Up to 10,000 records and 200 users.")] = False,
    plot: Annotated[Path | None, option("--plot", "Draw the times of a search.", "FILE.svg")] = None,
) -> None:
    """Time writes, searches and startup, compared with other engines."""
    from benchmarks import speed as bench
    from recollect.memory.output import open_output

    if session.root is not None and not Path(session.root).is_dir():
        raise InvalidInputError("--root", "must be a folder for the benchmark's data, which is removed at the end")
    if plot is not None and not plot.absolute().parent.is_dir():
        raise InvalidInputError("--plot", f"there is no folder {plot.parent}")
    usual_sizes, usual_users = (bench.QUICK_SIZES, bench.QUICK_USERS) if quick else (bench.SIZES, bench.USERS)
    with _bars() as tell:
        figures = bench.measure(
            usual_sizes if sizes is None else _numbers(sizes),
            usual_users if users is None else users,
            folder=None if session.root is None else Path(session.root),
            progress=tell,
        )
    if plot is not None:
        with open_output("--plot", plot) as file:
            file.write(_drawn(figures).encode())
    session.out.document(figures)
    _timed(session.out, figures)


def _numbers(text: str) -> list[int]:
    try:
        return [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError("--sizes", f"{text!r} is not numbers with commas, such as 1000,10000") from None


def _timed(out: Output, figures: Mapping[str, Any]) -> None:
    out.line(", ".join(f"{name} {value}" for name, value in figures["machine"].items()))
    out.line()
    head = ("one user, milliseconds", *(f"{each['records']:,}" for each in figures["sizes"]))
    out.table(head, _rows(figures["sizes"]), right=head[1:])
    if users := figures["users"]:
        out.line()
        out.line(f"{users['users']:,} users of 100 records")
        out.pairs(
            [
                ("records written a second", f"{users['write_per_s']:,.0f}"),
                ("first search of a user", f"{_both(users['cold_ms'])} ms"),
                ("the next", f"{_both(users['warm_ms'])} ms"),
                ("resident", f"{_megabytes(users['resident'])}, {_times(users['growth'])} that after a quarter"),
            ]
        )
    out.line()
    out.line("Goals")
    for goal in figures["goals"]:
        reached = {True: "reached", False: "MISSED", None: "not measured"}[goal["reached"]]
        figure = "" if goal["figure"] is None else f": {goal['figure']:.3g}{goal['unit']}"
        out.line(f"  {reached:12}  {goal['goal']}, {goal['records']:,} records ({goal['bound']}){figure}")


def _rows(sizes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each figure, a column for each size."""
    from benchmarks.speed import EVERYTHING, FILTERED, OURS

    yield "loaded in batches, a second", *(f"{each['load_per_s']:,.0f}" for each in sizes)
    yield "one durable write, p50 / p95", *(_both(each["write_ms"]) for each in sizes)
    for what, by in sizes[0]["search"].items():
        whole = what in (EVERYTHING, FILTERED)
        for name in by if whole else (OURS, "FTS5"):
            yield f"search {what}: {name}", *(_beside(each["search"][what][name]) for each in sizes)
        if whole:
            ours = [each["search"][what][OURS] for each in sizes]
            yield "… ours, of the processor", *(_rounded(each["processor_p50"], 2) for each in ours)
    yield "first search of a new process", *(_rounded(each["first"]["first_ms"], 1) for each in sizes)
    yield "… the imports before it", *(_rounded(each["first"]["import_ms"], 1) for each in sizes)
    yield "… the search after it", *(_rounded(each["first"]["next_ms"], 2) for each in sizes)
    yield "search without a write", *(_rounded(each["after_write"]["without_ms"], 2) for each in sizes)
    yield "search after a write", *(_rounded(each["after_write"]["after_ms"], 2) for each in sizes)
    yield "index, bytes a posting", *(_rounded(each["memory"]["bytes_per_posting"]) for each in sizes)
    yield "process that searched", *(_megabytes(each["memory"]["resident"]) for each in sizes)


def _both(figures: Mapping[str, float]) -> str:
    return f"{figures['p50']:.2f} / {figures['p95']:.2f}"


def _beside(figures: Mapping[str, float] | None) -> str:
    return "not installed" if figures is None else f"{_both(figures)} ({_times(figures['ratio'])})"


def _times(ratio: float | None) -> str:
    return "?" if ratio is None else f"{ratio:.2g}×" if ratio < 100 else f"{ratio:,.0f}×"


def _rounded(number: float | None, digits: int = 0) -> str:
    return "?" if number is None else f"{number:.{digits}f}"


def _megabytes(size: int | None) -> str:
    return "?" if size is None else f"{size / 1e6:,.0f} MB"


def _drawn(figures: Mapping[str, Any]) -> str:
    from benchmarks.plot import svg
    from benchmarks.speed import EVERYTHING

    lines: dict[str, list[tuple[float, float]]] = {}
    for each in figures["sizes"]:
        for name, found in each["search"][EVERYTHING].items():
            if found is not None:
                lines.setdefault(name, []).append((each["records"], found["p50"]))
    return svg("One search of six words, median", lines, across="records of the user", upwards="milliseconds")


@contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each stretch of work, one after the other."""
    named = ""
    update: Callable[[int, int], None] | None = None
    with ExitStack() as bars:

        def tell(what: str, done: int, total: int) -> None:
            nonlocal named, update
            if update is None or what != named:
                bars.close()
                named, update = what, bars.enter_context(progress(what))
            update(done, total)

        yield tell
