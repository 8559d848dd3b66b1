"""Which words of a message are for what its reader knows already."""

import pytest

from gateway.context.read.familiar import familiar_words, speaks_of_speaker
from gateway.context.read.words import words


@pytest.mark.parametrize(
    ("text", "familiar"),
    [
        ("Write a card to the lad with the ferrets.", "lad ferrets"),
        ("Draft a message to Imogen about her course.", "imogen course"),
        ("Write Wilf's mum a note.", "wilf mum"),
        ("Write a haiku about autumn leaves.", ""),
        ("Write a description of a steel bottle with a bamboo lid.", ""),
        ("Plan a Lisbon weekend.", ""),
        ("It's late. That's a pity.", ""),
        ("Schreib Merle, wo die alte Vollmacht liegt.", "merle vollmacht alte"),
        ("Schreib ein Schreiben für ein Abo.", ""),
        ("Rédige un mot pour la voisine du dessous.", "voisine"),
        ("Escribe una carta a don Eusebio sobre el contrato.", "eusebio contrato"),
        ("Scrivi una lettera a Davide per il viaggio.", "davide viaggio"),
        ("Napisz list do Bartosza.", "bartosza"),
    ],
)
def test_articles_possessives_and_capitals_mark_what_is_known(text: str, familiar: str) -> None:
    assert {word.key for word in familiar_words(text)} == {word.key for word in words(familiar)}


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ("Write a note for my mum.", True),
        ("Write down what we’ve decided.", True),
        ("把我选学校的理由写成一段话。", True),
        ("给我写一首诗。", False),
        ("Give me a poem.", False),
        ("Draft a mail to Sam.", False),
    ],
)
def test_a_speaker_who_asks_to_be_given_something_does_not_speak_of_himself(text: str, speaks: bool) -> None:
    assert speaks_of_speaker(text) == speaks
