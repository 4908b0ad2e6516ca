"""Questions taken apart: the words, and whom, when and what kind of answer they are about."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from recollect.search.question import Question

NOW = datetime(2023, 7, 12, 15, 30, tzinfo=timezone.utc)
SPEAKERS = frozenset({"ann", "bob", "cleo", "smith", "user", "assistant"})


def question(text: str, speakers: frozenset[str] = SPEAKERS) -> Question:
    return Question.of(text, NOW, speakers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did I say about the greyhounds?", ("greyhound",)),
        ("greyhounds", ("greyhound",)),
        ("What kind of tea do I like?", ("tea", "like")),
        ("What did Ann do last week with her kayak?", ("kayak",)),
        ("Where did we go hiking in May 2023?", ("go", "hike")),
        ("the who", ("who",)),
        ("What happened in May 2023?", ()),
        ("in May 2023", ()),
        ("What did Ann say yesterday?", ()),
        ("tea tea", ("tea", "tea")),
        ("", ()),
        ("   ", ()),
        ("?!", ()),
    ],
)
def test_S5_the_words_are_what_it_is_about(text: str, words: tuple[str, ...]) -> None:
    assert question(text).words == words


def test_S9_names_of_speakers_are_set_apart_from_the_words() -> None:
    asked = question("What is Ann's job?")
    assert asked.names == ("ann",) and asked.name_words == ("ann",) and asked.words == ("job",)
    assert question("Did ANN, Bob, and Ann meet?").names == ("ann", "bob")
    assert question("What did the assistant and the user say of tea?").names == ()
    assert question("What is Ann's job?", frozenset()).names == ()
    assert "ann" in question("What is Ann's job?", frozenset()).words
    assert question("annual planning").names == ()


def test_S9_a_question_of_nothing_but_a_name_looks_for_the_name() -> None:
    asked = question("Ann?")
    assert asked.words == ("ann",) and asked.names == ()
    dated = question("Ann yesterday")
    assert dated.names == ("ann",) and dated.words == () and len(dated.spans) == 1


def test_S9_times_are_set_apart_from_the_words() -> None:
    asked = question("Which concert was in May 2023 or last week?")
    assert [span.text for span in asked.spans] == ["in May 2023", "last week"] or len(asked.spans) == 2
    assert asked.words == ("concert",)
    dated = question("in May 2023")
    assert dated.words == () and dated.spans
    assert dated.spans[0].start == datetime(2023, 5, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "asks_when", "of_assistant", "wants_latest"),
    [
        ("When did I move?", True, False, False), ("Wann war das Konzert?", True, False, False),
        ("Which boots did you recommend?", False, True, False), ("You told me of a book", False, True, False),
        ("in our last conversation", False, True, False), ("What is my current job?", False, False, True),
        ("most recent trip", False, False, True), ("What did I buy?", False, False, False),
        ("currents in the sea", False, False, False),
    ],
)  # fmt: skip
def test_S9_what_kind_of_answer_is_asked_for(
    text: str, asks_when: bool, of_assistant: bool, wants_latest: bool
) -> None:
    asked = question(text)
    assert (asked.asks_when, asked.of_assistant, asked.wants_latest) == (asks_when, of_assistant, wants_latest)


def test_S5_related_words_weigh_less_and_know_their_cause() -> None:
    asked = question("Which doctor?")
    related = {word: (weight, cause) for word, weight, cause in asked.related}
    assert related["physician"][1] == "doctor" and 0 < related["physician"][0] < 1
    assert "doctor" not in related
    both = question("doctor or physician")
    assert not {"doctor", "physician"} & {word for word, _, _ in both.related}
    assert len({word for word, _, _ in both.related}) == len(both.related)


def test_S5_terms_can_be_spelled_as_they_were_asked() -> None:
    asked = question("Greyhounds and GREYHOUND puppies")
    assert asked.spelled["greyhound"] == "greyhounds" and asked.spelled["puppi"] == "puppies"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("What is Ann's job?", "What is my job?"),
        ("Where does Ann live with her dog?", "Where do I live with my dog?"),
        ("What has Bob bought for himself?", "What have I bought for myself?"),
        ("Do Ann and Bob agree?", "Do Ann and Bob agree?"),
        ("Where is the dog?", "Where is the dog?"),
    ],
)
def test_S2_a_question_about_one_speaker_is_put_as_they_would(text: str, own: str) -> None:
    assert question(text).in_first_person() == own


def test_S1_a_very_long_query_is_cut_and_a_hostile_name_is_no_pattern() -> None:
    assert len(question("tea " * 50_000).text) == 10_000
    odd = Question.of("What does c++ say of (ann)?", NOW, frozenset({"c++", "(ann)"}))
    assert isinstance(odd.in_first_person(), str)
