"""Whose memory it is: which ids are accepted, and that no two of them ever share a folder."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect import InvalidInputError
from recollect.userid import check_user_id, folder_name
from tests.volume import volume

_HOSTILE = [
    "../other", "..", ".", "a/b", "a\\b", "/etc/passwd", "CON", "con", "nul", "COM1", "aux.txt", "%2e%2e", "~root", "a~b",
    "é", "e\u0301", "É", "ß", "SS", "ss", "İ", "i\u0307", "user", "User", "USER", "👍", "u1", "u1.", "u1 ", " u1", "-rf",
    "recollect.db", "memory.db", "a" * 64, "a" * 65, "a" * 128, "'; DROP TABLE users; --", "名前", "${HOME}", "a:b", "a|b",
]  # fmt: skip

printable = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"]), min_size=1, max_size=128
).filter(lambda text: text.isprintable() and not text.isspace())


def _as_the_worst_file_system_sees_it(name: str) -> str:
    """Case and Unicode form ignored, trailing dots and spaces dropped."""
    return unicodedata.normalize("NFKC", name).casefold().rstrip(". ")


def test_R4_hostile_ids_get_separate_safe_folders() -> None:
    names = [_as_the_worst_file_system_sees_it(folder_name(check_user_id(user))) for user in _HOSTILE]
    assert len(set(names)) == len(_HOSTILE)


@settings(max_examples=volume(60, 300))
@given(printable)
def test_R4_a_folder_name_is_safe_whatever_the_id(user: str) -> None:
    name = folder_name(check_user_id(user))
    assert name.isascii() and 1 <= len(name) <= 80 and name == name.lower()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-~") and name[0].isalnum()
    assert folder_name(user) == name


@settings(max_examples=volume(60, 300))
@given(printable, printable)
def test_R4_two_ids_never_share_a_folder(one: str, other: str) -> None:
    for variant in (other, one.upper(), one.lower(), unicodedata.normalize("NFD", one), one + ".", one + " "):
        if variant != one and 1 <= len(variant) <= 128 and variant.isprintable() and not variant.isspace():
            seen = _as_the_worst_file_system_sees_it
            assert seen(folder_name(one)) != seen(folder_name(variant))


@pytest.mark.parametrize(
    "bad",
    [
        "",
        " ",
        "   ",
        "a\0b",
        "a\nb",
        "\x1b[2J",
        "a" * 129,
        "a" * 300,
        "\ud800",
        "\u2028",
        "\u202e",
        "\u200d",
        None,
        1.5,
        True,
        b"u1",
        ["u1"],
    ],
)
def test_R4_other_ids_are_refused_with_a_clear_line(bad: object, tmp_path: Path) -> None:
    with recollect.open(tmp_path) as app, pytest.raises(InvalidInputError, match=r"^user: must ") as caught:
        app.user(bad)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_R4_hostile_users_stay_apart_on_disk(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with recollect.open(root) as app:
        for user in _HOSTILE:
            app.user(user).remember(f"belongs to {user!r}")
        assert sorted(app.users()) == sorted(_HOSTILE)
        for user in _HOSTILE:
            [record] = app.user(user).read()
            assert record.content == f"belongs to {user!r}"
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    assert all(path.is_dir() for path in root.iterdir() if not path.name.startswith("recollect."))
    (root / "recollect.db").unlink()
    with recollect.open(root) as app:  # the list of users can be lost: the folders tell
        assert sorted(app.users()) == sorted(_HOSTILE)
