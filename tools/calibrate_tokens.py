"""Calibrate the token estimate of `recollect.search.tokens` and report how near it comes.

    python tools/calibrate_tokens.py                 # writes src/recollect/search/tokens.json, then reports
    python tools/calibrate_tokens.py --report        # only reports
    python tools/calibrate_tokens.py --english a.jsonl.gz --other-english b.jsonl.gz

The text is what is installed: the translations of Debian's programs under /usr/share/locale. Those of one half of the
programs calibrate, those of the other half are the test. English comes from files of JSON lines with a "text", "items"
or "statements". It needs bpe-openai and NumPy.
"""

from __future__ import annotations

import argparse
import base64
import bisect
import gettext
import gzip
import json
import random
import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recollect.search import tokens
from recollect.search.tokens import estimate, installed_tokenizer, looked_up, pieces

TARGET = Path(tokens.__file__).with_name("tokens.json")
LEARNED = frozenset(
    "glib20 gtk30 gtk20-properties coreutils git bash libc dpkg gsettings-desktop-schemas PackageKit shared-mime-info"
    " at-spi2-core gnupg2 psql-15".split()
)
TESTED = frozenset(
    "postgres-15 vim gtk20 gtk30-properties apt tar systemd wget findutils shadow gettext-tools Linux-PAM appstream"
    " software-properties avahi libapt-pkg6.0 grep sed gdk-pixbuf xkeyboard-config".split()
)
BLOCKS = [
    *(0x80, 0x250, 0x370, 0x400, 0x530, 0x590, 0x600, 0x700, 0x900, 0x980, 0xA00, 0xA80, 0xB00, 0xB80, 0xC00, 0xC80),
    *(0xD00, 0xD80, 0xE00, 0xE80, 0xF00, 0x1000, 0x10A0, 0x1100, 0x1200, 0x1400, 0x1780, 0x1800, 0x1E00, 0x1F00),
    *(0x2000, 0x3040, 0x30A0, 0x3100, 0x3400, 0x4E00, 0xA000, 0xAC00, 0xD7B0, 0x10000),
]
PAIRS, WINDOWS = 1 << 14, 1 << 15
LEAST = 3_000  # characters of a language
USUAL, MORE = 60_000, 150_000
MANY_WRITERS = frozenset("ru uk zh_CN zh_TW ja ko de fr es pt_BR it pl vi id tr nl hi ar bn fa".split())
ENGLISH = 500_000
SHRINK = 3.0


def translations(programs: frozenset[str]) -> dict[str, list[str]]:
    """Return sentences by language."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(Path("/usr/share/locale").glob("*/LC_MESSAGES/*.mo")):
        language = path.parts[-3]
        if path.stem in programs and not re.search(r"[@.]", language):
            try:
                with path.open("rb") as file:
                    catalog: dict[Any, str] = vars(gettext.GNUTranslations(file))["_catalog"]
            except (OSError, ValueError, LookupError):  # an odd header
                continue
            sentences = (
                clean(line)
                for said, text in catalog.items()
                if said and text != (said[0] if isinstance(said, tuple) else said)
                for line in text.split("\n")
            )
            found[language] += dict.fromkeys(filter(is_sentence, sentences))
    chance = random.Random(1)
    for sentences_of in found.values():
        chance.shuffle(sentences_of)
    return {name: texts for name, texts in found.items() if sum(map(len, texts)) >= LEAST}


def clean(text: str) -> str:
    """Return a message without accelerators, placeholders, markup and options."""
    text = re.sub(r"[_&](?=\w)", "", text)
    text = re.sub(r"%[-#0-9.*$]*[a-zA-Z]+|%%|\{[^}]*\}|<[^>]*>|--?[\w-]+(=\S+)?", " ", text)
    return re.sub(r"[ \t]+", " ", text).strip()


def is_sentence(text: str) -> bool:
    letters = sum(letter.isalpha() or unicodedata.category(letter)[0] == "M" for letter in text)
    unspaced = len(text) >= 12 and re.search(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]", text)
    return letters > 0.6 * len(text) and bool(unspaced or (len(text) >= 25 and text.count(" ") >= 2))


def english(paths: Iterable[str]) -> list[str]:
    """Return the texts of files of JSON lines."""
    found: list[str] = []
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                data = json.loads(line)
                found += [one["text"] for one in data.get("items", ())] or data.get("statements", [])
                found += [data["text"]] if "text" in data else []
    random.Random(2).shuffle(found)
    return found


def beginning(texts: Iterable[str], most: int) -> Iterator[str]:
    """Yield texts up to a number of characters."""
    for text in texts:
        if most <= 0:
            return
        most -= len(text)
        yield text


# calibration


def token_starts(word: str) -> list[int]:
    """Return the number of tokens that begin at each letter of a word; a space belongs to its first letter."""
    from recollect.search.tokens import PACKAGE, VOCABULARY

    encode, decode = _codec(PACKAGE, VOCABULARY)
    begins, place = set(), 0
    for token in encode(word):
        begins.add(place)
        place += len(decode(token))
    found, place = [], 0
    for letter in word:
        size = len(letter.encode())
        found.append(sum(at in begins for at in range(place, place + size)))
        place += size
    return [found[0] + found[1], *found[2:]] if word[0] == " " else found


def _codec(package: str, vocabulary: str) -> tuple[Any, Any]:
    import importlib
    import warnings

    if not _CODECS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoding = importlib.import_module(package).get_encoding(vocabulary)
        _CODECS.append((encoding.encode_ordinary, encoding.decode_single_token_bytes))
    return _CODECS[0]


_CODECS: list[tuple[Any, Any]] = []


def calibrate(corpora: dict[str, list[str]]) -> dict[str, Any]:
    """Return the tables that predict the beginnings of tokens best: least squares, one table after the other."""
    columns: list[list[float]] = [[], [], [], [], [], []]
    names = list(corpora)
    for place, (name, texts) in enumerate(corpora.items()):
        most = ENGLISH if name == "en" else MORE if name in MANY_WRITERS else USUAL
        chosen = list(beginning(texts, most))
        words = Counter(piece for text in chosen for kind, piece in pieces(text) if kind == "word")
        share = min(6.0, max(1.0, 40_000 / sum(map(len, chosen))))
        for word, times in words.items():
            for (letter, at_pair, at_window), starts in zip(
                looked_up(word, PAIRS, WINDOWS), token_starts(word), strict=True
            ):
                row = (bisect.bisect(BLOCKS, ord(letter)), at_pair, at_window, starts, times * share, place)
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
    block, pair, window, number = (np.array(columns[n], dtype=np.intp) for n in (0, 1, 2, 5))
    begins, weight = (np.array(columns[n], dtype=np.float32) for n in (3, 4))

    def mean(place: Any, size: int, values: Any, shrink: float) -> Any:
        return np.bincount(place, weight * values, size) / (np.bincount(place, weight, size) + shrink)

    rates = mean(block, len(BLOCKS) + 1, begins, 1e-9)
    rates[np.bincount(block, weight, len(BLOCKS) + 1) < 200] = 0
    rest = begins - rates[block]
    pairs, windows = np.zeros(PAIRS), np.zeros(WINDOWS)
    for _ in range(25):
        pairs = mean(pair, PAIRS, rest - windows[window], SHRINK)
        windows = mean(window, WINDOWS, rest - pairs[pair], SHRINK)
    expected = rates[block] + pairs[pair] + windows[window]
    real_of, expected_of = (np.bincount(number, weight * values, len(names)) for values in (begins, expected))
    lean = real_of / expected_of - 1
    leanings = mean(window, WINDOWS, lean[number], SHRINK)
    # how far the average leaning of a text must be stretched to give that of its language
    felt = np.bincount(number, weight * leanings[window], len(names)) / np.bincount(number, weight, len(names))
    stretch = float((felt * lean).sum() / (felt * felt).sum())
    return {
        "blocks": BLOCKS,
        "rates": [round(float(rate), 3) for rate in rates],
        "leaning_weight": round(stretch, 3),
        "pairs": packed(pairs * 32),
        "windows": packed(windows * 32),
        "leanings": packed(leanings * 100),
    }


def packed(values: Any) -> str:
    rounded = np.clip(np.round(values) + 128, 0, 255).astype(np.uint8)
    return base64.b85encode(zlib.compress(rounded.tobytes(), 9)).decode()


# the report


def report(corpora: dict[str, list[str]]) -> None:
    """Print the ratio of the estimate to the real count, by language: the mean, and the extremes of single blocks."""
    real = installed_tokenizer()
    assert real is not None, "bpe-openai is not installed"
    ratios = {}
    for name, texts in sorted(corpora.items()):
        chosen = list(beginning(texts, 40_000))
        blocks, lines = [], ""
        for text in chosen:
            lines += f"- 2026-05-03 (note): {text}\n"
            if real(lines) > 1_300:
                blocks.append(estimate(lines) / real(lines))
                lines = ""
        if blocks:
            ratios[name] = float(np.mean(blocks))
            print(f"{name:8} {ratios[name]:5.2f} ({min(blocks):.2f} to {max(blocks):.2f}) of {len(blocks)} blocks")
    near = sum(0.9 <= ratio <= 1.1 for ratio in ratios.values())
    low, high = min(ratios.values()), max(ratios.values())
    print(f"{near} of {len(ratios)} languages within 10 %; the lowest {low:.2f}, the highest {high:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--english", nargs="*", default=[])
    parser.add_argument("--other-english", nargs="*", default=[])
    given = parser.parse_args()
    if not given.report:
        learned = translations(LEARNED)
        if given.english:
            learned["en"] = english(given.english)
        TARGET.write_text(json.dumps(calibrate(learned)) + "\n", encoding="utf-8")
    tested = translations(TESTED)
    if given.other_english:
        tested["en"] = english(given.other_english)
    report(tested)


if __name__ == "__main__":
    main()
