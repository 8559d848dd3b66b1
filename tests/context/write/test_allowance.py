"""How many tokens of quotes a message gets."""

from math import inf
from typing import Any

import pytest

from gateway.context.write.allowance import (
    FOR_QUESTION,
    NOTHING,
    Allowance,
    allowance,
    set_aside_tokens,
    tokens_before_digest,
)
from gateway.context.write.current_question import LEAST_ASKING, LIKELY_ASKING, SURE_ASKING
from tests.context.write.asked import (
    AGENT,
    AUTONOMOUS,
    CHAT,
    ERRAND,
    FOR_FACT,
    PHRASE,
    QUESTION,
    REQUEST,
    STATEMENT,
    WITHOUT_SUBJECT,
    question,
)


@pytest.mark.parametrize("text", [PHRASE, QUESTION])
@pytest.mark.parametrize(
    ("points", "tokens"), [(LEAST_ASKING - 0.1, 0), (LEAST_ASKING, 300), (LIKELY_ASKING, 700), (SURE_ASKING - 0.1, 700)]
)
def test_the_more_surely_a_message_of_a_chat_asks_the_more_it_gets(text: str, points: float, tokens: int) -> None:
    allowed = allowance(question(text, CHAT, points=points))

    assert allowed == (Allowance(tokens, tokens) if tokens else NOTHING)


def test_a_message_that_surely_asks_gets_more_in_the_form_of_a_question() -> None:
    assert allowance(question(PHRASE, CHAT, points=SURE_ASKING)) == Allowance(1500, 1500)
    assert allowance(question(QUESTION, CHAT, points=SURE_ASKING)) == FOR_QUESTION


def test_an_agent_that_works_on_its_own_is_asked_about_its_work_in_any_form() -> None:
    assert allowance(question(PHRASE, AUTONOMOUS, points=LEAST_ASKING)) == Allowance(300, 300)
    assert question(PHRASE, AUTONOMOUS, points=SURE_ASKING).about_conversation


@pytest.mark.parametrize("facts", [CHAT, AGENT, AUTONOMOUS])
@pytest.mark.parametrize("folded", [30_000, 500_000])
def test_a_statement_has_no_allowance(facts: dict[str, Any], folded: int) -> None:
    assert allowance(question(STATEMENT, facts, folded=folded)) == NOTHING


@pytest.mark.parametrize(
    ("text", "facts", "folded", "tokens"),
    [
        (WITHOUT_SUBJECT, CHAT, 30_000, (1600, 1600)),
        (WITHOUT_SUBJECT, CHAT, 500_000, (1600, 1600)),
        (FOR_FACT, AGENT, 30_000, (4000, 4000)),
        (FOR_FACT, {"has_agent": True}, 500_000, (0, 0)),
        (ERRAND, AGENT, 30_000, (0, 0)),
        (ERRAND, {**AGENT, "prefix_breaks": True}, 30_000, (0, inf)),
        (ERRAND, AGENT, 500_000, (10_000, inf)),
        (WITHOUT_SUBJECT, AGENT, 500_000, (1600, inf)),
        (REQUEST, AGENT, 30_000, (0, 0)),
        (QUESTION, AUTONOMOUS, 30_000, (6000, 8000)),
    ],
)
def test_the_allowance_depends_on_what_is_asked_and_where(
    text: str, facts: dict[str, Any], folded: int, tokens: tuple[int, float]
) -> None:
    allowed = allowance(question(text, facts, folded=folded))

    assert (allowed.set_aside_tokens, allowed.free_tokens) == tokens


def test_a_question_about_a_history_many_times_the_room_gets_more() -> None:
    allowed = allowance(question(QUESTION, CHAT, folded=500_000, points=SURE_ASKING))

    assert (allowed.set_aside_tokens, allowed.free_tokens) == (10_000, inf)


def test_turns_are_set_aside_within_shares_of_the_room_and_of_the_folded_part() -> None:
    points = SURE_ASKING
    assert set_aside_tokens(question(QUESTION, CHAT, points=points)) == 4000
    assert set_aside_tokens(question(QUESTION, CHAT, room=5000, folded=20_000, points=points)) == 3000
    assert set_aside_tokens(question(QUESTION, CHAT, folded=3000, points=points)) == 1000


def test_a_digest_leaves_room_only_for_what_is_asked_about_the_conversation() -> None:
    assert tokens_before_digest(question(FOR_FACT, AGENT)) == 4000
    assert tokens_before_digest(question(ERRAND, AGENT, folded=500_000)) == 0
