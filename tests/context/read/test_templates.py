"""What the user says is told from the template around it."""

import pytest

from gateway.context.read.pasted import own_words, parts_of
from gateway.context.read.templates import pieces_of

PASSAGES = "[1] Housing\nThe host site rents a flat.\n\n[2] Pets\nNever allowed."
ASKED = "May I bring the dog?"


@pytest.mark.parametrize(
    "template",
    [
        "Use the following context to answer.\n\nContext:\n{passages}\n\nQuestion: {asked}\nHelpful Answer:",
        "Context information is below.\n---\n{passages}\n---\nAnswer the query.\nQuery: {asked}\nAnswer: ",
        "## Retrieved documents:\n{passages}\n\n**User question:** {asked}",
        "Kontext:\n{passages}\n\nFrage: {asked}\nAntwort:",
        "Question: {asked}\n\nSources:\n{passages}",
        "Fuentes:\n{passages}\n\nPregunta: {asked}\nRespuesta:",
    ],
)
def test_the_question_is_what_stands_behind_its_label(template: str) -> None:
    text = template.format(passages=PASSAGES, asked=ASKED)

    assert own_words(text) == ASKED
    blocks = [part.text for part in parts_of(text) if part.is_block]
    assert any(PASSAGES in block for block in blocks)
    assert not any(ASKED in block for block in blocks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[attempt_completion] Result:\nThe user has provided feedback.\n<feedback>\nalso for B2\n</feedback>\n",
            "also for B2",
        ),
        ("New task:\nmorning", "morning"),
        ("The user added a new task: morning", "morning"),
        ("Command not executed. The user rejected it with the following message:\nno, wait", "no, wait"),
        ("Here is the user's input (answer in JSON):\n\nmorning", "morning"),
        ("Observation:\nAll 3 are moved.\nNew task:\nmorning", "morning"),
        ("[TASK RESUMPTION] Interrupted.\n\nNew instructions:\n<user_message>\nmorning\n</user_message>", "morning"),
    ],
)
def test_what_the_user_says_in_a_result_is_the_users(text: str, said: str) -> None:
    assert own_words(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "Question: may I bring the dog?",
        "I have a question: may I bring the dog?",
        "The context:\nwe moved in May.\nMay I bring the dog?",
        "<feedback>nice</feedback>",
        "[1] first\n[2] second",
        "Please rewrite this.\nContext: my landlord\nQuestion: may I keep a dog?",
        "Please rewrite this for me.\nBackground: we moved in May.\nIt was cold.\n\nMessage: Dear Mr Aldous",
        "If the user writes in German: answer in German.",
        "The user manual says: press twice.",
        "Our rule for a new user: always ask for the name.",
        "",
    ],
)
def test_other_messages_have_no_template(text: str) -> None:
    assert pieces_of(text) == []
