"""A word is found in every record that has it, whatever languages their short texts are taken for."""

from __future__ import annotations

import pytest

import recollect
from recollect.testing import MemoryStore

NOTES = {
    "vakantie": ["De vakantie begint in juli", "Mijn vakantie was kort", "Anna praat over vakantie"],
    "lavoro": ["Il mio lavoro è noioso", "Cerco un nuovo lavoro a Milano", "Domani torno al lavoro"],
    "sigorta": ["Sigorta mayısta bitiyor", "Yeni bir sigorta arıyorum", "Konu: sigorta"],
    "organizacja": ["organizacja jest w maju", "organizacja prowadzi Anna", "Szef nie lubi, gdy organizacja trwa"],
    "страхування": ["Страхування закінчується у травні", "Шукаю страхування для авто", "Анна каже: страхування"],
    "Versicherung": [
        "Die Versicherung ist im Mai",
        "Der Chef mag die Versicherung nicht",
        "Anna leitet die Versicherung",
    ],
    "organisation": ["The organisation is in May", "Anna runs the organisation", "Our organisation grows"],
}


@pytest.mark.parametrize("word", NOTES)
def test_S6_a_word_is_found_in_every_note_that_has_it(word: str) -> None:
    with recollect.open(MemoryStore()) as app:
        memory = app.user("u1")
        for note in NOTES[word]:
            memory.note(note)
        assert {hit.record.text for hit in memory.search(word, limit=10)} == set(NOTES[word])
        assert all(note in memory.context(word) for note in NOTES[word])


@pytest.mark.parametrize(("before", "now"), [("Київ", "Львів"), ("Киев", "Львов"), ("Kyiv", "Lviv")])
def test_C12_where_somebody_lived_before_is_answered_in_three_languages(before: str, now: str) -> None:
    with recollect.open(MemoryStore()) as app:
        tools = app.tools(7, "facts", wait=True)
        place = {"user_id": 7, "fact_type": "personal", "fact_key": "location", "confidence": 0.9}
        tools.call("remember_fact", {**place, "fact_value": before})
        tools.call("update_fact", {**place, "new_value": now, "change_reason": "update"})
        for question in ("where did they live before?", "де він жив раніше?", "где они жили раньше?"):
            assert f'"{before}"' in tools.call("recall_facts", {"user_id": 7, "search_query": question}).text
        for question in ("where do they live?", "де він живе?", "где она живёт?"):
            assert f'"{now}"' in tools.call("recall_facts", {"user_id": 7, "search_query": question}).text


def test_S6_a_name_with_its_ending_is_found_with_and_without_it() -> None:
    notes = {"Ankara'da çalışıyor": "Ankara", "İzmir'de oturuyor": "İzmir", "Ayşe'nin kedisi var": "Ayşe"}
    with recollect.open(MemoryStore()) as app:
        memory = app.user("u1")
        for note, name in notes.items():
            memory.note(note)
            for word in (name, note.split()[0]):
                assert note in [hit.record.text for hit in memory.search(word)], word
