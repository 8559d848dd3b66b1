"""What a message asks."""

from typing import Any

import pytest

from gateway.context.write.current_question import Kind
from tests.context.write.asked import (
    AGENT,
    AUTONOMOUS,
    CHAT,
    ERRAND,
    PHRASE,
    QUESTION,
    REQUEST,
    STATEMENT,
    WITHOUT_SUBJECT,
    question,
)


@pytest.mark.parametrize(
    ("text", "facts", "by_form"),
    [
        (QUESTION, CHAT, False),
        (STATEMENT, CHAT, False),
        (ERRAND, CHAT, False),
        (WITHOUT_SUBJECT, CHAT, True),
        ("Go on.", CHAT, True),
        (QUESTION, AGENT, True),
        (PHRASE, AGENT, True),
        (QUESTION, AUTONOMOUS, True),
        (REQUEST, AUTONOMOUS, True),
        (PHRASE, AUTONOMOUS, False),
        (PHRASE, {"has_agent": True, "autonomous": True}, True),
    ],
)
def test_tasks_of_an_agent_and_messages_without_a_subject_are_judged_by_their_form(
    text: str, facts: dict[str, Any], *, by_form: bool
) -> None:
    assert question(text, facts).judged_by_form is by_form


@pytest.mark.parametrize(
    ("text", "facts", "kind"),
    [
        (WITHOUT_SUBJECT, CHAT, Kind.QUESTION),
        ("Can you do that?", CHAT, Kind.STATEMENT),
        ("Go on.", CHAT, Kind.STATEMENT),
        ("", CHAT, Kind.STATEMENT),
        (QUESTION, AGENT, Kind.QUESTION),
        (ERRAND, AGENT, Kind.QUESTION),
        (REQUEST, AGENT, Kind.STATEMENT),
    ],
)
def test_by_form_a_message_is_a_question_or_a_statement(text: str, facts: dict[str, Any], kind: Kind) -> None:
    assert question(text, facts).kind is kind
