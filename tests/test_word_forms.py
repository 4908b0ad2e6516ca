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
