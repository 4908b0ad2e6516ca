"""The embedder of the setting MEMORY_EMBEDDER."""

from __future__ import annotations

from pathlib import Path

from recollect.config import without_password
from recollect.errors import ConfigError
from recollect.search.embedders.embedder import Embedder

_FORMS = (
    "use http://HOST/v1#MODEL (any OpenAI-compatible endpoint), onnx:FOLDER, package:NAME, package:NAME+TOKENIZER,"
    " fastembed:MODEL, or none"
)


def open_embedder(spec: str, *, key: str | None = None) -> Embedder | None:
    """Return the embedder of a setting, None for none; the package lists the forms.

    No model is loaded and no server is contacted before the first use.
    """
    spec = spec.strip()
    if spec.lower() in ("", "none"):
        return None
    kind, _, rest = spec.partition(":")
    kind, rest = kind.lower(), rest.strip()
    if kind in ("http", "https"):
        url, _, model = spec.partition("#")
        if model.strip():
            from recollect.search.embedders.http import HttpEmbedder

            return HttpEmbedder(url.strip(), model.strip(), key=key)
    elif kind in ("onnx", "package", "fastembed") and rest:
        from recollect.search.embedders import onnx as local

        if kind == "onnx":
            return local.OnnxEmbedder(Path(rest).expanduser())
        return local.package_embedder(rest) if kind == "package" else local.FastembedEmbedder(rest)
    shown = without_password(spec).partition("?")[0]
    raise ConfigError(f"MEMORY_EMBEDDER is {shown!r}; {_FORMS}")
