"""Count the names that mean several things: class names in two or more modules, function names in more than two.

    python tools/names.py            print the two shares
    python tools/names.py --list     and the names, with the modules that define them

It informs and does not gate. Methods count for the class they belong to, so only names at the top level of a module
are counted. A name that is required by a framework or by a protocol of ours still counts: it is found by grep as well.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "recollect"


def definitions(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the name and the module of everything defined at the top level of a module."""
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield "class", node.name.lstrip("_"), module
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield "function", node.name.lstrip("_"), module


def repeated(folder: Path, kind: str, most: int) -> tuple[dict[str, set[str]], int]:
    """Return the names that more than ``most`` modules define, and how many names there are."""
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for found, name, module in definitions(folder):
        if found == kind:
            modules[name].add(module)
    return {name: where for name, where in sorted(modules.items()) if len(where) > most}, len(modules)


def main() -> None:
    """Print the shares, and the names if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the names and where they are defined")
    arguments = parser.parse_args()
    for kind, most, words in (("class", 1, "two or more"), ("function", 2, "more than two")):
        names, total = repeated(SOURCE, kind, most)
        print(f"{kind} names in {words} modules: {len(names)} of {total} ({len(names) / total:.1%})")
        if arguments.list:
            for name, where in sorted(names.items(), key=lambda one: -len(one[1])):
                print(f"  {name}: {', '.join(sorted(where))}")


if __name__ == "__main__":
    main()
