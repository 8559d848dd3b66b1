"""Whether a message asks, and what kind of question it is."""

import pytest

from gateway.context.read.questions import asks, asks_for_information, is_question, wants_to_know


@pytest.mark.parametrize("text", ["Is it?", "是吗？", "Wirklich? Gut.", "هل هذا صحيح؟"])
def test_questions_are_told_by_their_mark(text: str) -> None:
    assert asks(text)
    assert not asks(text.translate(dict.fromkeys(map(ord, "?？؟"), ".")))


@pytest.mark.parametrize(
    "text",
    [
        "Remind me what the vet said about the paw.",
        "ok so what was the name of that hotel again",
        "Everything that went wrong with the boiler, please.",
        "how many days do I work now",
        "give me the three movers' prices",
        "zeig mir alle Termine",
        "so what should we do next",
        "und was machen wir jetzt",
        "did I ever tell you my shoe size",
        "Sag mir nochmal die Adresse.",
        "wann war der Termin beim Zahnarzt",
        "Alles, was ich über die Wohnung gesagt habe.",
        "Rappelle-moi l'adresse du garage.",
        "où est le double des clés",
        "Dime otra vez el precio.",
        "cuándo sale el tren",
        "Ricordami il nome del medico.",
        "quando foi a consulta",
        "напомни адрес",
        "сколько стоил билет",
        "我妹妹的生日是哪天",
        "那家店叫什么",
        "ホテルの名前は何でしたっけ",
    ],
)
def test_a_question_is_told_without_its_mark(text: str) -> None:
    assert wants_to_know(text)
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "What a day!",
        "when I was nineteen we had no car",
        "How lovely.",
        "Thanks, that helps a lot.",
        "all good here",
        "Please book the second one.",
        "Give me a minute.",
        "wie schön",
        "Wo gehobelt wird, fallen Späne.",
        "quel beau temps",
        "что-то я устал",
        "我什么都吃。",
        "明日は雨です。",
        f"What was the name again {'and so on ' * 20}",
    ],
)
def test_remarks_that_begin_like_questions_are_none(text: str) -> None:
    assert not wants_to_know(text)


@pytest.mark.parametrize(
    ("text", "information"),
    [
        ("Which card did the refund go to?", True),
        ("and what was wrong with the line, that number with the minus?", True),
        ("Thanks. ¿Hasta qué fecha podía devolverlo?", True),
        ("Whereabouts should he pick it up?", True),
        ("tell me the number of the second order", True),
        ("Could you book the first one?", False),
        ("Can you cancel it, please?", False),
        ("Is that possible?", False),
        ("What a day.", False),
        (f"{'We went to the shop and back. ' * 6}Which one was it?", False),
    ],
)
def test_a_question_for_information_has_a_question_word_and_an_errand_has_none(text: str, information: bool) -> None:
    assert asks_for_information(text) == information
