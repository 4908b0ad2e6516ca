"""Hooks of the documentation site (mkdocs.yml): pages and files that live outside docs/.

Documents link to each other as they lie in the repository, so that the links work there too. On the site, a link that
leads out of docs/ goes to the page made from that document, or to a copy of the file. A link to a folder becomes text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
}
"""Documents outside docs/ and the page of the site that each becomes."""
SOURCES = {page: document for document, page in PAGES.items()}

_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```\s*?$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the documents outside docs/ as pages."""
    for document, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / document).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text with the links of the repository turned into links of the site."""
    source = page.file.src_uri
    document = SOURCES.get(source, f"docs/{source}")

    def site_link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), target))
        if (ROOT / path).is_dir():
            return text
        uri = _site_uri(path, files, config)
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(source) or '.')}{anchor})" if uri else match[0]

    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(site_link, part) for part in parts[::2]]
    return "".join(parts)


def _site_uri(path: str, files: Files, config: MkDocsConfig) -> str | None:
    """Return where the site has the file at this path of the repository; it is copied if it is not there yet."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if not (ROOT / path).is_file():
        return None  # left as it is: the strict build reports it
    uri = f"files/{path}"
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, content=(ROOT / path).read_bytes()))
    return uri
