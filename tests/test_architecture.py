"""The shape of the house: imports point down, the public names are deliberate, the documents say what is true."""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import recollect
from recollect.config import Config
from tests.volume import IS_LONG, sample

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "recollect"

FLOORS = {
    "errors": 0, "counts": 0, "times": 0, "userid": 0, "records": 0, "ids": 0, "receipt": 0, "config": 0, "text": 0,
    "usage_metrics": 0,
    "document": 1, "policy": 1, "search": 1,
    "checks": 2, "store": 2,
    "fields": 3,
    "verbs": 4,
    "memory": 5,
    "tools": 6, "identity": 6,
    "agents": 7,
    "client": 7,
    "work": 8,
    "app": 9,
    "surfaces": 11,
    "__main__": 12,
    "testing": 12,
}  # fmt: skip


@cache
def _imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(found)


def test_imports_point_down_only() -> None:
    # within floor 0, and within one package, modules may use each other
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for module in _imports(path):
            parts = module.split(".")
            if parts[0] != "recollect" or room == "__init__" or len(parts) == 1:
                continue
            other = parts[1]
            if other != room and FLOORS[other] >= FLOORS[room] and (FLOORS[other], FLOORS[room]) != (0, 0):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    assert wrong == []


def test_only_the_stores_and_the_app_name_a_database() -> None:
    allowed = {"store", "work", "app", "testing"}
    wrong = [
        f"{path.relative_to(PACKAGE)}: {module}"
        for path in PACKAGE.rglob("*.py")
        for module in _imports(path)
        if re.match(r"sqlite3|psycopg|recollect\.store\.(sqlite|postgres)", module)
        and path.relative_to(PACKAGE).with_suffix("").parts[0] not in allowed
    ]
    assert wrong == []


def test_the_client_knows_nothing_of_servers_and_databases() -> None:
    check = (
        "import sys, recollect.client;"
        "heavy = {'sqlite3', 'psycopg', 'uvicorn', 'starlette', 'mcp', 'pydantic', 'typer'} & set(sys.modules);"
        "ours = [name for name in sys.modules if name.startswith(('recollect.app', 'recollect.surfaces', 'recollect.work'))];"
        "assert not heavy and not ours, (heavy, ours)"
    )
    subprocess.run([sys.executable, "-c", check], check=True, cwd=ROOT)


def test_only_config_reads_the_environment() -> None:
    wrong = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"os\.environ|os\.getenv|getenv\(", path.read_text(encoding="utf-8"))
        and path.name != "config.py"
        and "testing" not in path.parts
    ]
    assert wrong == []


def test_no_file_holds_more_than_it_should() -> None:
    long = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 600
    }
    assert long == {}


def test_the_public_names_are_deliberate() -> None:
    assert sorted(recollect.__all__, key=str.lower) == sorted(
        [
            "AsyncMemory",
            "Config",
            "Conflict",
            "DailyEntry",
            "DailyMemoryUpdate",
            "Demoted",
            "Duplicate",
            "Edited",
            "Episode",
            "Erased",
            "ExtractionRun",
            "Fact",
            "Forgotten",
            "Hit",
            "Hits",
            "Interaction",
            "InvalidInputError",
            "Joined",
            "JournalEntry",
            "LinkError",
            "Memory",
            "MemoryEntry",
            "Merged",
            "Message",
            "NotFoundError",
            "Note",
            "Observation",
            "Outcome",
            "Pending",
            "Ranked",
            "Reason",
            "Receipt",
            "Recollect",
            "RecollectError",
            "Record",
            "Refused",
            "Reported",
            "Result",
            "ScratchItem",
            "Session",
            "Spending",
            "StoreError",
            "Suite",
            "ToolCall",
            "Trend",
            "Unchanged",
            "UndoError",
            "Undone",
            "Updated",
            "Written",
            "open",
        ],
        key=str.lower,
    )
    for name in recollect.__all__:
        assert getattr(recollect, name).__doc__


def test_importing_does_nothing_and_loads_no_surface() -> None:
    check = (
        "import sys, os; before = set(os.listdir('.')); import recollect;"
        "heavy = {'typer', 'rich', 'psycopg', 'numpy', 'rapidfuzz', 'Stemmer', 'anyascii', 'pydantic'} & set(sys.modules);"
        "assert not heavy, heavy; assert set(os.listdir('.')) == before; assert not __import__('threading').active_count() > 1"
    )
    subprocess.run([sys.executable, "-c", check], check=True, cwd=ROOT)


def test_every_requirement_is_proven_and_every_proof_is_a_requirement() -> None:
    rows = re.findall(
        r"^\| (\w+) \| .+? \| (proven|planned) \|$", (ROOT / "docs/requirements.md").read_text(), re.MULTILINE
    )
    stated = dict(rows)
    assert len(rows) == len(stated) > 60
    named = {
        match
        for path in (ROOT / "tests").rglob("*.py")
        for match in re.findall(
            r"(?<!@pytest\.mark\.slow\n)^ *def test_([A-Z]\d+)_", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert named - stated.keys() == set(), "tests name requirements that docs/requirements.md does not know"
    proven = {requirement for requirement, state in stated.items() if state == "proven"}
    assert proven - named == set(), "said to be proven, but no everyday test is named after it"


def test_the_page_of_the_seeds_says_what_their_scripts_check() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/seeds_page.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    for variable, default, description in Config.table():
        assert f"| `{variable}` | `{default}` | {description} |" in text


_EACH_IN_A_FORK = """
import importlib, json, multiprocessing, os, sys, types
import recollect.testing
from tests.soak import warm

warm.load()
examples = json.load(sys.stdin)
for name in ("anthropic", "asyncio", "httpx", "openai", "pydantic_ai", "telegram.ext"):
    if any(name in code for _, code in examples):
        importlib.import_module(name)

def run(folder, code):
    os.chdir(folder)
    for number, name in enumerate(("stdout", "stderr"), 1):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), number)
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(code, folder, "exec"), sys.modules["__main__"].__dict__)

for example in examples:
    process = multiprocessing.get_context("fork").Process(target=run, args=example)
    process.start()
    process.join()
    if process.exitcode:
        print(example[0])
"""
"""Everything that examples need is loaded once."""


def test_code_in_the_documents_runs(tmp_path: Path) -> None:
    examples = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, code in enumerate(
            re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
        ):
            if "postgresql://" in code:
                compile(code, str(path), "exec")
                continue
            folder = tmp_path / f"{path.stem}-{number + 1}"
            folder.mkdir()
            examples.append((str(folder), code))
    examples = [
        one for one in sample(3, examples) if IS_LONG or not re.search(r"anthropic|openai|pydantic_ai|telegram", one[1])
    ]
    done = subprocess.run(
        [sys.executable, "-c", _EACH_IN_A_FORK], cwd=ROOT, input=json.dumps(examples), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    failed = [Path(folder) for folder in done.stdout.splitlines()]
    assert not failed, "\n".join(f"{folder.name}:\n{(folder / 'stderr').read_text()}" for folder in failed)
    assert len(examples) >= 3 and all((Path(folder) / "stderr").exists() for folder, _ in examples)


def test_nothing_of_this_machine_is_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    wrong = []
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_file() and path.suffix in (".py", ".md", ".toml", ".txt", ".sql", "") and path != Path(__file__):
            text = path.read_text(encoding="utf-8", errors="replace")
            if re.search(r"/work/(main|shared)|/root/|file:///opt|index-url|--extra-index", text):
                wrong.append(name)
    assert wrong == []


def test_the_page_of_the_python_api_has_every_verb_as_its_docstring_tells_it() -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    rows = [
        f"| `{name}` | {(inspect.getdoc(inspect.getattr_static(cls, name)) or '').splitlines()[0].replace('``', '`')} |"
        for cls in (recollect.Memory, recollect.Recollect)
        for name in dir(cls)
        if not name.startswith("_")
    ]
    assert rows and [row for row in rows if row not in text] == []
