"""The documentation site: it builds without warnings and without the network, and fetches nothing in the browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

ROOT = Path(__file__).parent.parent

_WITHOUT_NETWORK = """
import socket, sys

def refuse(*_):
    raise OSError("the documentation is built without the network")

socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(sys.argv[1:])
"""

_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|link\b[^>]*\brel=["']?(?:stylesheet|preload|preconnect|icon))\b[^>]*"""
    r"""\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
)


def _build(folder: Path, *, api: bool) -> None:
    """Build the site in strict mode: a broken link, a missing anchor or a page without a place in the menu fails it."""
    built = subprocess.run(
        [sys.executable, "-c", _WITHOUT_NETWORK, "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "SITE_API_REFERENCE": str(api).lower(), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, "\n".join(line for line in built.stderr.splitlines() if not line.startswith("INFO"))


def _fetched(folder: Path) -> list[str]:
    """Return what the pages would load from elsewhere."""
    return [address for path in folder.rglob("*.html") for address in _FETCHED.findall(path.read_text("utf-8"))]


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link_and_without_the_network(tmp_path: Path) -> None:
    _build(tmp_path, api=False)
    assert (tmp_path / "index.html").exists() and (tmp_path / "search" / "search_index.json").exists()
    assert _fetched(tmp_path) == []
    for page in ("overview.html", "changelog.html", "contributing.html", "examples.html", "files/deploy/nginx.conf"):
        assert (tmp_path / page).exists(), f"{page} comes from outside docs/"


@pytest.mark.slow
def test_the_site_has_the_api_reference_from_the_docstrings(tmp_path: Path) -> None:
    _build(tmp_path, api=True)
    page = (tmp_path / "api.html").read_text("utf-8")
    missing = [name for name in recollect.__all__ if f'id="recollect.{name}"' not in page]
    missing += [
        f"Memory.{verb}"
        for verb in dir(recollect.Memory)
        if not verb.startswith("_") and f'id="recollect.Memory.{verb}"' not in page
    ]
    assert missing == []
    assert _fetched(tmp_path) == []


def test_the_api_reference_names_everything_that_is_public() -> None:
    named = re.findall(r"^::: recollect\.(\w+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(recollect.__all__)
