"""The benchmarks, on tiny data: what they read, what they count, and what the command prints. Nothing is timed."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks import command as _command  # noqa: F401  (its commands)
from benchmarks import engines, new_process, recall, speed
from benchmarks.datasets import Conversation, load
from benchmarks.made_up import BEGIN, CATEGORIES, FORMS, SPAN, Entry, Talk, Wanted
from benchmarks.plot import svg
from typer.testing import CliRunner, Result

from recollect.errors import InvalidInputError
from recollect.surfaces.cli.program import app
from recollect.text import terms

DOCS = Path(__file__).parents[1] / "docs" / "cli.md"

NEUTRAL = {
    "id": "c1",
    "items": [
        {"id": "a", "text": "I adopted a grey cat", "speaker": "Ann", "date": "2024-03-01T10:00:00", "session": "s1"},
        {"id": "b", "text": "The train to Oslo was late", "speaker": "Ben", "date": "2024-03-01", "session": "s1"},
        {"id": "c", "text": "My violin needs new strings", "speaker": "Ann", "date": "2024-04-02", "session": "s2"},
    ],
    "questions": [
        {"id": "q1", "text": "Which cat was adopted?", "category": "pets", "evidence": ["a"]},
        {"id": "q2", "text": "What does the violin need?", "category": "music", "evidence": ["c"]},
        {"id": "q3", "text": "Nobody knows", "category": "music", "evidence": ["elsewhere"]},
    ],
}
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I moved to Lisbon."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Look at this!", "blip_caption": "a red kite"},
        ],
        "session_2_date_time": "10:00 am on 9 June, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "The marathon is in autumn."}],
    },
    "qa": [
        {"question": "Where did Ann move?", "answer": "Lisbon", "evidence": ["D1:1"], "category": 4},
        {"question": "What flies in the picture?", "answer": "a kite", "evidence": ["D1:2; D2:1"], "category": 1},
        {"question": "What did Ann never say?", "evidence": ["D1:1"], "category": 5},
    ],
}
LONGMEMEVAL = {
    "question_id": "e47",
    "question_type": "single-session-user",
    "question": "Which degree did I finish?",
    "question_date": "2023/06/01 (Thu) 09:00",
    "haystack_session_ids": ["late", "early"],
    "haystack_dates": ["2023/05/30 (Tue) 23:40", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [
        [{"role": "user", "content": "Recommend a film."}, {"role": "assistant", "content": "Try a comedy."}],
        [
            {"role": "user", "content": "I finished a degree in botany.", "has_answer": True},
            {"role": "assistant", "content": "Congratulations!"},
        ],
    ],
}


def written(path: Path, data: Any) -> Path:
    text = json.dumps(data) if isinstance(data, list) else json.dumps(data) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def run(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["bench", *args])
    assert result.exit_code == code, f"{result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result


def test_U3_an_installed_package_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from recollect.surfaces.cli import bench, program, tour, tools  # noqa\n"
        "program.app.registered_groups.clear(); bench.add_commands(Path(sys.argv.pop(1)))\n"
        "sys.exit(program.run_program(sys.argv[1:]))"
    )
    args = [sys.executable, "-c", code, str(tmp_path), "bench", "recall", "--data", "x.json"]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"recollect: bench: needs a source checkout[^\n]+\n", done.stderr)


# conversations


def _only(path: Path) -> Conversation:
    (conversation,) = load(path)
    return conversation


def test_S1_our_own_lines_are_read_and_what_cannot_be_scored_is_left_out(tmp_path: Path) -> None:
    plain = _only(written(tmp_path / "talk.jsonl", NEUTRAL))
    assert [item.id for item in plain.items] == ["a", "b", "c"]
    assert [asked.id for asked in plain.questions] == ["q1", "q2"]
    packed = tmp_path / "talk.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(NEUTRAL).encode()))
    assert _only(packed) == plain


def test_S1_locomo_is_read_as_it_comes(tmp_path: Path) -> None:
    talk = _only(written(tmp_path / "locomo10.json", [LOCOMO]))
    assert [(item.id, item.speaker, item.session) for item in talk.items] == [
        ("D1:1", "Ann", "session_1"),
        ("D1:2", "Ben", "session_1"),
        ("D2:1", "Ben", "session_2"),
    ]
    assert talk.items[0].date == "2023-05-08T13:56:00"
    assert "a red kite" in talk.items[1].text
    assert [(asked.category, asked.evidence) for asked in talk.questions] == [
        ("single-hop", ("D1:1",)),
        ("multi-hop", ("D1:2", "D2:1")),
    ]


def test_S1_longmemeval_is_read_as_it_comes(tmp_path: Path) -> None:
    talk = _only(written(tmp_path / "longmemeval_s.json", [LONGMEMEVAL]))
    assert [item.id for item in talk.items] == ["early_1", "early_2", "late_1", "late_2"]
    (asked,) = talk.questions
    assert (asked.evidence, asked.date) == (("early_1",), "2023-06-01T09:00:00")


@pytest.mark.parametrize(
    "content",
    [
        b"nonsense",
        b"[1, 2]",
        b'{"id": 1}',
        b"\x1f\x8bbroken",
        gzip.compress(b"x" * 999, mtime=0)[:-12],
        b"\xff\xfe",
        b"",
        b"[]",
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"data: bad\.json"):
        recall.measure([bad])


# recall


def test_S1_recall_is_counted_by_turn_session_and_category(tmp_path: Path) -> None:
    files = [
        written(tmp_path / "talk.jsonl", NEUTRAL),
        written(tmp_path / "locomo10.json", [LOCOMO]),
        written(tmp_path / "longmemeval_s.json", [LONGMEMEVAL]),
    ]
    seen: list[tuple[str, int, int]] = []
    figures = recall.measure(files, progress=lambda *told: seen.append(told))
    assert seen == [(file.name, 1, 1) for file in files]
    assert figures["embedder"] == "none"
    neutral = figures["files"]["talk.jsonl"]
    assert neutral["turns"] == {
        "questions": 2,
        **dict.fromkeys(("recall@1", "recall@5", "recall@10", "recall@20", "coverage@5", "ndcg@10", "mrr"), 100.0),
    }
    assert {name: found["questions"] for name, found in neutral["categories"].items()} == {"music": 1, "pets": 1}
    assert figures["files"]["longmemeval_s.json"]["sessions"]["recall@1"] == 100.0
    assert figures["files"]["locomo10.json"]["turns"]["questions"] == 2


def test_S1_the_figures_are_those_of_the_definition() -> None:
    tally = recall.Tally()
    tally.add(["x", "hit", "y", "z", "v", "late"], {"hit", "late"})
    tally.add(["x", "y"], {"hit"})
    assert tally.summary() == {
        "questions": 2,
        "recall@1": 0.0,
        "recall@5": 50.0,
        "recall@10": 50.0,
        "recall@20": 50.0,
        "coverage@5": 25.0,
        "ndcg@10": 30.3,
        "mrr": 25.0,
    }


def test_U3_bench_recall_prints_a_table_for_each_file(tmp_path: Path) -> None:
    data = [str(written(tmp_path / "talk.jsonl", NEUTRAL)), str(written(tmp_path / "locomo10.json", [LOCOMO]))]
    shown = run("recall", "--data", data[0], "--data", data[1], "--weights", "date=0").stdout
    assert "weights: date=0" in shown
    for name in ("talk.jsonl: 1 conversations", "locomo10.json: 1 conversations", "turns: pets", "turns: multi-hop"):
        assert name in shown
    for line in shown.splitlines():
        if line.startswith(("turns", "sessions")):
            assert len(re.findall(r"\d+\.\d", line)) == 7, line


def test_U3_bench_recall_as_json_wherever_the_option_stands(tmp_path: Path) -> None:
    data = str(written(tmp_path / "talk.jsonl", NEUTRAL))
    for args in (
        ["bench", "recall", "--data", data, "--json"],
        ["bench", "--json", "recall", "--data", data],
        ["--json", "bench", "recall", "--data", data],
    ):
        answer = CliRunner().invoke(app, args)
        assert answer.exit_code == 0
        assert json.loads(answer.stdout)["files"]["talk.jsonl"]["turns"]["questions"] == 2


@pytest.mark.parametrize(
    "args",
    [
        ("recall",),
        ("recall", "--data", "/nowhere/at/all.json"),
        ("recall", "--data", str(DOCS)),
        ("recall", "--data", "{data}", "--embedder", "nonsense"),
        ("recall", "--data", "{data}", "--embedder", "onnx:/nowhere/at/all"),
        ("recall", "--data", "{data}", "--weights", "nonsense"),
        ("recall", "--data", "{data}", "--weights", "nonsense=1"),
        ("speed", "--sizes", "many"),
        ("speed", "--sizes", "5"),
        ("speed", "--users", "-1"),
        ("speed", "--plot", "/nowhere/at/all.svg"),
        ("speed", "--root", "postgresql://localhost/x"),
        ("nonsense",),
        (),
    ],
)
def test_U3_bench_says_in_one_line_what_is_wrong(tmp_path: Path, args: tuple[str, ...]) -> None:
    data = str(written(tmp_path / "talk.jsonl", NEUTRAL))
    result = run(*(data if arg == "{data}" else arg for arg in args), code=2)
    assert result.stdout == ""
    assert re.fullmatch(r"recollect: [^\n]+\n", result.stderr)


# made-up conversations


@pytest.mark.slow
def test_the_same_seed_tells_the_same() -> None:
    first, again, other = (list(Talk(seed).records(300)) for seed in (1, 1, 2))
    assert first == again != other
    assert Talk().questions(20) == Talk().questions(20)
    assert Talk().narrowed(9, 300) == Talk().narrowed(9, 300)


@pytest.mark.slow
def test_records_are_like_talk() -> None:
    entries = list(Talk().records(2000))
    kinds = Counter(entry.kind for entry in entries)
    assert set(kinds) == {"message", "note", "observation"}
    assert all(entry.session and entry.speaker for entry in entries if entry.kind == "message")
    assert {entry.category for entry in entries if entry.kind == "observation"} == set(CATEGORIES)
    assert entries[0].said_at == BEGIN and entries[-1].said_at < BEGIN + SPAN
    held = [frozenset(terms(entry.text)) for entry in entries]
    assert 14 < sum(map(len, held)) / len(held) < 20
    asked = [frozenset(terms(question, asked=True)) for question in Talk().questions(60)]
    touched = sum(not words.isdisjoint(record) for words in asked for record in held) / len(asked) / len(held)
    assert 0.2 < touched < 0.4, "as in LoCoMo, where it is 28 %"


@pytest.mark.everyday(1)
@pytest.mark.parametrize("records", [300, 5000])
def test_filters_leave_something(records: int) -> None:
    entries = list(Talk().records(records))
    for wanted in Talk().narrowed(9, records):
        assert any(_fits(entry, wanted) for entry in entries), wanted


def _fits(entry: Entry, wanted: Wanted) -> bool:
    return (
        entry.kind == wanted.kind
        and wanted.since <= entry.said_at < wanted.until
        and wanted.category in (None, entry.category)
        and wanted.session in (None, entry.session)
    )


@pytest.mark.everyday(1)
@pytest.mark.parametrize("name", engines.NAMES)
def test_each_rival_answers_the_same_questions(tmp_path: Path, name: str) -> None:
    assert engines.installed(name), "see the dev dependencies"
    talk = Talk()
    told = [(entry, terms(entry.text)) for entry in talk.records(300)]
    with engines.built(name, tmp_path, iter(told)) as ask:
        for question, wanted in zip(talk.questions(9), talk.narrowed(9, 300), strict=True):
            words = terms(question, asked=True)
            having = {number for number, (_, held) in enumerate(told) if set(words) & set(held)}
            found = ask(words, None)
            assert set(found) <= having and len(found) == min(engines.BEST, len(having))
            fitting = {number for number in having if _fits(told[number][0], wanted)}
            found = ask(words, wanted)
            assert set(found) <= fitting and len(found) == min(engines.BEST, len(fitting))


def test_terms_with_signs_in_them_reach_fts5_whole(tmp_path: Path) -> None:
    texts = ("I write C++ and node.js", "It's 6:30 at Anna's", "gpt-4 costs 1,200 in the u.s.")
    told = [(Entry("note", text, BEGIN), terms(text)) for text in texts]
    with engines.built("FTS5", tmp_path, told) as ask:
        for number, (_, words) in enumerate(told):
            for word in words:
                assert ask([word], None) == [number], word


# speed


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a new process needs is measured once, and few questions are asked: these figures are for nobody."""
    monkeypatch.setattr(speed, "_PROCESSES", 1)
    monkeypatch.setattr(speed, "_QUESTIONS", 24)


@pytest.mark.usefixtures("one_process")
@pytest.mark.slow
def test_U3_bench_speed_measures_draws_and_tells(tmp_path: Path) -> None:
    drawn, root = tmp_path / "speed.svg", tmp_path / "root"
    root.mkdir()
    args = ("speed", "--sizes", "120,100", "--users", "3", "--plot", str(drawn), "--root", str(root))
    figures = json.loads(run(*args, "--json").stdout)
    assert list(root.iterdir()) == [], "the data must be gone"
    assert [each["records"] for each in figures["sizes"]] == [100, 120]
    for each in figures["sizes"]:
        assert set(each["search"]) == {"everything", "with filters", *FORMS}
        for by in each["search"].values():
            assert by["recollect"]["ratio"] == 1.0
            assert by["FTS5"]["p50"] <= by["FTS5"]["p95"]
            assert all((by[name] is None) == (not engines.installed(name)) for name in engines.NAMES)
        assert each["memory"]["postings"] > 10 * each["records"]
        assert {"import_ms", "first_ms", "next_ms"} == set(each["first"])
        assert {"p50", "p95"} == set(each["write_ms"])
    assert figures["users"]["records"] == 300
    assert {goal["reached"] for goal in figures["goals"]} == {None}
    picture = ElementTree.fromstring(drawn.read_text(encoding="utf-8"))
    assert "FTS5" in {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}


@pytest.mark.usefixtures("one_process")
@pytest.mark.slow
def test_U3_bench_speed_shows_a_table_and_the_goals() -> None:
    shown = run("speed", "--sizes", "100", "--users", "2").stdout
    for expected in ("one durable write, p50 / p95", "search with filters: FTS5", "2 users of 100 records", "Goals\n"):
        assert expected in shown
    assert len(re.findall(r"^  not measured  ", shown, re.MULTILINE)) == len(speed.GOALS)


def test_goals_are_reached_or_missed_by_their_bound() -> None:
    size = {
        "records": 100_000,
        "search": {"messages": {"FTS5": {"to_index": 49.0}}, "with filters": {"recollect": {"p50": 2.5}}},
        "first": {"first_ms": 61.0},
        "after_write": {"slower_ms": 2.0},
        "memory": {"bytes_per_posting": None, "most_resident": 10**9},
    }
    large = {"records": 1_000_000, "memory": {"most_resident": 1_400_000_000}}
    told = speed.goals({"sizes": [size, large]})
    assert [goal["reached"] for goal in told] == [None, False, True, False, True, None, True]
    assert told[-1]["figure"] == pytest.approx(1.4)


def test_memory_is_read_where_the_system_tells() -> None:
    now, most = new_process.resident(), new_process.most_resident()
    assert (now is None) == (not Path("/proc/self/smaps_rollup").exists())
    assert now is None or most is None or 0 < now <= most * 1.1


def test_a_plot_has_a_line_for_each_name_and_keeps_names_apart() -> None:
    picture = svg(
        "a <title>", {"x & y": [(1000, 0.02), (10**6, 5)], "z": [(1000, 1), (10**6, 5)]}, across="n", upwards="ms"
    )
    tree = ElementTree.fromstring(picture)
    space = "{http://www.w3.org/2000/svg}"
    assert len(list(tree.iter(f"{space}polyline"))) == 2
    heights = [float(text.get("y", "nan")) for text in tree.iter(f"{space}text") if text.text in ("x & y", "z")]
    assert abs(heights[0] - heights[1]) >= 15
    assert {"1,000", "1,000,000", "0.01", "10"} <= {text.text for text in tree.iter(f"{space}text")}
    assert "prefers-color-scheme: dark" in picture
    ElementTree.fromstring(svg("nothing", {"x": []}, across="n", upwards="ms"))


# documentation


def test_U3_every_option_of_the_benchmarks_is_documented_and_every_example_valid() -> None:
    from recollect.surfaces.cli.program import program

    section = DOCS.read_text(encoding="utf-8").partition("\n### bench\n")[2]
    section = re.split(r"^##", section, flags=re.MULTILINE)[0]
    group: Any = program().commands["bench"]
    shared = {"--user", "--user-id", "--root", "--files", "--json", "--help"}
    for name, command in group.commands.items():
        assert f"`bench {name}`" in section
        for parameter in command.params:
            missing = {option for option in parameter.opts if option.startswith("--")} - shared
            assert all(option in section for option in missing), f"{missing} of bench {name}"
    lines = [line for line in section.splitlines() if line.startswith("recollect bench ")]
    lines += [line for each in (group, *group.commands.values()) for line in each.epilog.splitlines()]
    assert len(lines) > 8
    for line in lines:
        name, *args = line.split()[2:]
        with group.commands[name].make_context(name, args):
            pass
