"""What the user says is told from what an agent's program writes around it."""

import pytest

from gateway.context.read.pasted import own_words
from gateway.context.read.program_messages import pieces_of


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
        "I have a question: may I bring the dog?",
        "<feedback>nice</feedback>",
        "Please rewrite this for me.\nBackground: we moved in May.\nIt was cold.\n\nMessage: Dear Mr Aldous",
        "If the user writes in German: answer in German.",
        "The user manual says: press twice.",
        "Our rule for a new user: always ask for the name.",
        "",
    ],
)
def test_other_messages_are_the_users_own(text: str) -> None:
    assert pieces_of(text) == []
