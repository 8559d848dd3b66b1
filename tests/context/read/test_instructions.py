"""What a sentence tells an assistant to do, and what it is about."""

import pytest

from gateway.context.read.instructions import (
    has_frame,
    is_about_what_is_at_hand,
    is_errand,
    request_in,
    without_frame,
)

STORY = f"It was a long day. {'The bus was late. ' * 10}"
SPEECH = "so the bus was late again and it rained all the way home and nobody had an umbrella and then the dog ran off after a cat and i ran after the dog until we were both wet and tired"


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("It rained again. Draft a mail to Sam about the boiler. Thanks!", "Draft a mail to Sam about the boiler."),
        ("The bus was late. When does the plumber come? I have to go.", "When does the plumber come?"),
        ("Could you write that down for me", "Could you write that down for me"),
        ("Schreib mir bitte eine Liste der Gäste.", "Schreib mir bitte eine Liste der Gäste."),
        ("Fais-moi une liste des invités.", "Fais-moi une liste des invités."),
        ("Put together a note for Karim.", "Put together a note for Karim."),
        ("Add a section about the move.", "Add a section about the move."),
        ("A quick note for Karim, please.", "A quick note for Karim, please."),
        ("Entwirf eine Nachricht an Emils Eltern.", "Entwirf eine Nachricht an Emils Eltern."),
        ("Escríbeme un texto para la pared.", "Escríbeme un texto para la pared."),
        ("Me escreve um bilhete.", "Me escreve um bilhete."),
        ("Preparami una mail per Davide.", "Preparami una mail per Davide."),
        ("Napisz notatkę o przeprowadzce.", "Napisz notatkę o przeprowadzce."),
        ("帮我写一封信。", "帮我写一封信。"),
        ("列一个行李清单。", "列一个行李清单。"),
        ("把理由写成一段话。", "把理由写成一段话。"),
        ("高見さんに渡すメモを書いてほしい。", "高見さんに渡すメモを書いてほしい。"),
        ("공연 안내문을 써 줘.", "공연 안내문을 써 줘."),
        ("Write Gus a message. All of my stuff, and not mean.", "Write Gus a message."),
        ("email to Colette to say yes to the job", "email to Colette to say yes to the job"),
        ("do me a welcome sheet for Tamika", "do me a welcome sheet for Tamika"),
        (f"Write it down. {'It was a long day. ' * 10}", "Write it down."),
        ("email is down again", ""),
        ("one more thing before i forget, who was it that called", "who was it that called"),
        ("The boiler is back. what did he charge", "what did he charge"),
        (f"{STORY}what did he charge", "what did he charge"),
        (f"{STORY}what did he charge, the plumber. {STORY}", "what did he charge"),
        (f"{SPEECH} what did he charge the plumber", "what did he charge the plumber"),
        (f"{SPEECH} wat rekende de loodgieter", "wat rekende de loodgieter"),
        (SPEECH, ""),
        ("one more thing before i forget, the boiler is back", ""),
        ("The plan is to write more, and I find it hard to explain.", ""),
        ("mach ich.", ""),
        ("Schreib ich drauf.", ""),
        ("記録をまとめて高見さんに渡したいの。", ""),
        ("", ""),
    ],
)
def test_what_a_message_asks_are_its_questions_and_instructions(message: str, asked: str) -> None:
    assert request_in(message) == asked


@pytest.mark.parametrize(
    ("text", "errand"),
    [
        ("Can you put that into a table?", True),
        ("ok, could you please write to Dilys?", True),
        ("kannst du mir einen Brief schreiben?", True),
        ("Could you tell me who called?", False),
        ("Can you remember what Dilys lent me?", False),
        ("Can you write it down? And when was it?", False),
        ("When does the plumber come?", False),
        ("Write it down.", False),
    ],
)
def test_an_errand_in_the_form_of_a_question_asks_for_no_information(text: str, errand: bool) -> None:
    assert is_errand(text) == errand


@pytest.mark.parametrize(
    ("request_", "subject"),
    [
        ("Write me a short note about the loan.", "the loan."),
        ("Please write a thank-you card to the lad with the ferrets.", "the lad with the ferrets."),
        ("Could you draft a mail to Dilys?", "Dilys?"),
        ("Write my mum a note.", "my mum a note."),
        ("Schreib mir bitte eine kurze Notiz an Emils Eltern.", "Emils Eltern."),
        ("Redacta un mensaje para la maestra nueva.", "la maestra nueva."),
        ("What did Dilys lend me?", "What did Dilys lend me?"),
        ("Can you put that into a table?", "Can you put that into a table?"),
    ],
)
def test_the_frame_of_an_instruction_says_what_to_write_and_the_rest_what_about(request_: str, subject: str) -> None:
    assert without_frame(request_) == subject
    assert has_frame(request_) == (subject != request_)


@pytest.mark.parametrize("text", ["The loan is 3.5 %. It ends in May.", "I paid.\n\nThe rest comes on Friday.", ""])
def test_several_sentences_are_no_frame(text: str) -> None:
    assert not has_frame(text)


@pytest.mark.parametrize(
    ("request_", "at_hand"),
    [
        ("Fix this.", True),
        ("Thanks. Now make it shorter, please.", True),
        ("Translate this into French: the shop is closed.", True),
        ("Can you put that into a table?", True),
        ("Schreib das bitte förmlicher.", True),
        ("Formulier das Schreiben an die Kasse.", False),
        ("Tradúceme esto al inglés.", True),
        ("帮我把这句话翻译成英文。", True),
        ("これを英語に訳して。", True),
        ("Write a note about this and that.", False),
        ("Draft a mail to Sam about the boiler.", False),
    ],
)
def test_some_instructions_point_at_what_they_are_about(request_: str, at_hand: bool) -> None:
    assert is_about_what_is_at_hand(request_) == at_hand
