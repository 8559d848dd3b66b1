"""Whether a message asks something, and how surely."""

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
        "what road did my car conk out on",
        "ok and at which garage did we leave it",
        "how come i got rid of Rick",
        "why'd we keep that old tub",
        "if i get locked out where did i stash the other one",
        "was all the wiring gone or not",
        "auf welches Konto ging die Kaution",
        "hatte ich dir die Nummer schon gegeben",
        "waarom wilde Bram niet mee",
        "vilket datum var det vi skulle ses",
        "hvor gjemte jeg nøkkelen",
        "var la jag kvittot",
        "il est né quand, mon neveu",
        "on a payé combien la caution",
        "que dijo el fontanero de la caldera",
        "a que hora era la cita",
        "em que dia ficou a entrega",
        "in che giorno arriva Marta",
        "czy Ola je ryby",
        "kto polecił mi dentystkę",
        "ve kterém patře bydlí Jana",
        "за сколько я продал машину",
        "звідки приїхав Остап",
        "σε ποιον έδωσα τα κλειδιά",
        "missä kaupungissa Aino asuu",
        "mennyibe került a fűtés",
        "איפה שמתי את הקבלה",
        "بكم بعت السيارة",
        "düğün hangi gündü",
        "arabayı kim kullanacak",
        "yüzüğü almış mıydım",
        "tiền cọc hết bao nhiêu",
        "ai đưa ba đi khám",
        "siapa yang pegang kuncinya",
        "दुकान की चाबी किसके पास है",
        "کلید خانه پیش کیست و کجا گذاشتم",
        "妹妹的航班几点到",
        "押金到底退没退",
        "大家さんの名前は",
        "父の病院はどこ",
        "현우 생일이 며칠이었지",
        "ใครเป็นคนจองโรงแรม",
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
        "Wie schön!",
        "Wo gehobelt wird, fallen Späne.",
        "Quel beau temps !",
        "что-то я устал",
        "我什么都吃。",
        "妈妈说去哪都行，我差点哭了",
        "明日は雨です。",
        f"What was the name again {'and so on ' * 20}",
        "I know the man who fixed it",
        "we were nine, on the boat",
        "my co-worker said no",
        "Kim and I went to the sea",
        "ich kam mit dem Bus",
        "heute war schön",
        "je ne sais pas",
        "mi hermana llega mañana",
        "jeg var på kino i går",
        "el cine cierra en enero",
        "ما بدي قهوة",
        "今天下雨。",
        "明日は雨です。",
        "비가 와요",
        f"what a week, {'and so on ' * 12}",
    ],
)
def test_remarks_that_begin_like_questions_are_none(text: str) -> None:
    assert not is_question(text)


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
