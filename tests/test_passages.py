"""Where long texts are cut."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pytest

from recollect.records import Fact, Note
from recollect.search.passages import indexed_text, passages

NOW = datetime(2026, 2, 12, tzinfo=timezone.utc)


def parts(text: str, most: int) -> list[str]:
    return [text[begin:end] for begin, end in passages(text, most)]


@pytest.mark.parametrize("text", ["", " ", "one", "Київ — це місто", "word " * 200, "東京" * 100])
def test_S4_a_short_text_is_one_passage(text: str) -> None:
    assert passages(text) == [(0, len(text))]


def test_S4_passages_are_the_whole_text_in_pieces_of_about_the_same_size() -> None:
    rng = random.Random(1)
    pieces = ("word", "longer-word", "end.", "really?\n", "\n\n", "слово", "東京都", "です。", "🙂", "\t", "ภาษา")
    for _ in range(300):
        most = rng.randrange(1, 40)
        text = "".join(rng.choice(pieces) + rng.choice((" ", " ", "")) for _ in range(rng.randrange(400)))
        cut = parts(text, most)
        assert "".join(cut) == text
        for part in cut:
            assert part.strip() or len(cut) == 1
            assert len(passages(part, most)) == 1
        if len(cut) > 1 and most > 4:
            assert min(len(part) for part in cut) > 0 and len(cut) <= 3 * len(text) / most + 1


def test_S4_a_word_is_never_cut() -> None:
    text = " ".join(f"word{i}" for i in range(1000))
    cut = parts(text, 30)
    assert [word for part in cut for word in part.split()] == text.split()
    sizes = [len(part.split()) for part in cut]
    assert max(sizes) <= 30 and max(sizes) - min(sizes) <= 1 and len(sizes) == 34
    assert passages("x" * 5000, 10) == [(0, 5000)]


def test_S4_paragraphs_come_before_sentences_and_sentences_before_words() -> None:
    first, second = "a b c d. " * 4 + "a b", "e f. g h i j " * 3
    assert parts(f"{first}\n\n{second}", 20) == [f"{first}\n\n", second]
    assert [part.rstrip()[-1] for part in parts("One two three. " * 20, 13)[:-1]] == ["."] * 4
    assert all(part.endswith("です。") for part in parts("東京都は日本の都です。" * 10, 25))


def test_S4_characters_count_where_there_are_no_spaces() -> None:
    text = "東京都" * 100
    cut = parts(text, 200)
    assert [len(part) for part in cut] == [150, 150]
    assert len(passages("слово " * 150)) == 1


def test_S4_a_note_is_found_by_its_title_too() -> None:
    moments: dict[str, Any] = {"created_at": NOW, "updated_at": NOW, "valid_from": NOW}
    assert indexed_text(Note(id="n", content="text", title="Title", **moments)) == "Title\ntext"
    assert indexed_text(Note(id="n", content="text", **moments)) == "text"
    assert indexed_text(Fact(id="f", content="engineer", key="role", label="Role", **moments)) == "Role: engineer"
