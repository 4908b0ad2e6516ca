"""S7, C14: tokens are counted as the model counts them: by its tokenizer where one is installed, else by an estimate."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.search import tokens
from recollect.search.tokens import count, estimate
from tests.volume import volume

UTTERANCES = Path(__file__).parent / "data" / "utterances.jsonl"

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


DECLARATION = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason"
    " and conscience and should act towards one another in a spirit of brotherhood.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están "
    "de razón y conciencia, deben comportarse fraternalmente los unos con los otros.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de "
    "raison et de conscience et doivent agir les uns envers les autres dans un esprit de "
    "fraternité.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und "
    "Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.",
    "uk": "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і"
    " совістю і повинні діяти у відношенні один до одного в дусі братерства.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и"
    " совестью и должны поступать в отношении друг друга в духе братства.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni "
    "obdarzeni rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di "
    "ragione e di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e"
    " de consciência, devem agir uns para com os outros em espírito de fraternidade.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met "
    "verstand en geweten, en behoren zich jegens elkander in een geest van broederschap te "
    "gedragen.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler"
    " ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.",
    "fi": "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on "
    "annettu järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä.",
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। "
    "उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना"
    " चाहिए।",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا وعليهم أن يعامل "
    "بعضهم بعضًا بروح الإخاء.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה "
    "עליהם לנהוג איש ברעהו ברוח של אחוה.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι "
    "προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα "
    "αδελφοσύνης.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Mọi con "
    "người đều được tạo hóa ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình "
    "bằng hữu.",
    "bn": "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি"
    " আছে; সুতরাং সকলেরই একে অপরের প্রতি ভ্রাতৃত্বসুলভ মনোভাব নিয়ে আচরণ করা উচিত।",
    "ta": "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும், உரிமைகளிலும் "
    "சமமானவர்கள், அவர்கள் நியாயத்தையும் மனச்சாட்சியையும் இயற்பண்பாகப் பெற்றவர்கள்.",
    "ka": "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. მათ მინიჭებული"
    " აქვთ გონება და სინდისი და ერთმანეთის მიმართ უნდა იქცეოდნენ ძმობის სულისკვეთებით.",
    "id": "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka "
    "dikaruniai akal dan hati nurani dan hendaknya bergaul satu sama lain dalam semangat "
    "persaudaraan.",
}
"""Article 1 of the Universal Declaration of Human Rights."""


@lru_cache(maxsize=1)
def model_count() -> Callable[[str], int]:
    """The count of the model's tokenizer, from the package's own interface."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, not ours
        encode: Any = importlib.import_module("bpe_openai").get_encoding("o200k_base").encode_ordinary
    return lambda text: len(encode(text))


def ratio(text: str) -> float:
    return estimate(text) / model_count()(text)


@pytest.fixture
def no_tokenizer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tokens, "PACKAGE", "no_such_package")
    tokens.installed_tokenizer.cache_clear()
    yield
    tokens.installed_tokenizer.cache_clear()


# with a tokenizer


@settings(max_examples=volume(60, 300), deadline=None)
@given(st.text(max_size=200))
def test_S7_an_installed_tokenizer_is_asked(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert count(text) == model_count()(text)


@settings(max_examples=volume(60, 300), deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_S7_lines_have_no_more_together(lines: list[str]) -> None:
    lines = [f"- {line.encode('utf-8', 'replace').decode()}\n" for line in lines]
    assert count("".join(lines)) <= sum(map(count, lines))


def test_S7_only_the_compiled_part_of_the_tokenizer_is_loaded() -> None:
    import subprocess

    script = "import sys; from recollect.search.tokens import count; count('a'); print('bpe_openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


# without one


def test_S7_without_a_tokenizer_the_count_is_estimated(no_tokenizer: None) -> None:
    assert tokens.installed_tokenizer() is None
    assert [count(text) for text in ENGLISH.values()] == [estimate(text) for text in ENGLISH.values()]


@pytest.mark.parametrize("broken", ["raise ImportError('no')", "x = 1"])
def test_S7_a_tokenizer_that_cannot_be_used_is_ignored(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd_tokenizer").mkdir()
    (tmp_path / "odd_tokenizer" / "__init__.py").write_text("")
    (tmp_path / "odd_tokenizer" / "_bindings.py").write_text(broken)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(tokens, "PACKAGE", "odd_tokenizer")
    tokens.installed_tokenizer.cache_clear()
    try:
        assert tokens.installed_tokenizer() is None
    finally:
        tokens.installed_tokenizer.cache_clear()
    assert "odd_tokenizer._bindings" not in sys.modules


def test_C14_the_estimate_of_what_people_say_is_within_ten_per_cent() -> None:
    said: dict[str, str] = defaultdict(str)
    for line in UTTERANCES.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        said[data["language"]] += f"- 2026-05-03 (note): {data['text']}\n"
    found = {code: ratio(text) for code, text in said.items() if model_count()(text) > 1_000}
    assert len(found) >= 7
    assert {code: each for code, each in found.items() if not 0.97 <= each <= 1.1} == {}


@pytest.mark.parametrize("code", DECLARATION)
def test_C14_the_estimate_of_a_single_sentence_is_near_in_every_script(code: str) -> None:
    assert 0.9 <= ratio(DECLARATION[code]) <= 1.3


def test_C14_the_estimate_of_many_languages_together_is_within_ten_per_cent() -> None:
    assert 1 <= ratio("\n".join(DECLARATION.values())) <= 1.1


@pytest.mark.parametrize("name", ENGLISH)
def test_C14_the_estimate_of_english_is_near(name: str) -> None:
    assert 0.93 <= ratio(ENGLISH[name]) <= 1.2


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"nothing"}))
def test_S7_odd_text_is_not_counted_far_too_low(name: str) -> None:
    assert ratio(OTHERS[name]) >= 0.65


@settings(max_examples=volume(60, 300), deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_S7_estimated_lines_add_up(one: str, two: str) -> None:
    assert abs(estimate(f"{one}\n{two}") - estimate(f"{one}\n") - estimate(two)) <= 1
    assert estimate(one) >= 0


def test_S7_counting_needs_little_time() -> None:
    # Linear: a word of a million letters, and a million of everything else.
    for text in ("a" * 1_000_000, " " * 1_000_000, "-" * 1_000_000, "é" * 300_000, "aB" * 300_000, "1" * 300_000):
        assert estimate(text) > 0
    assert estimate("") == count("") == 0
