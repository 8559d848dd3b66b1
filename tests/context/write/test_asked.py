"""What a message asks, and how many tokens of quotes it gets."""

from math import inf
from typing import Any

import pytest

from gateway.context.cut.layout import Layout, Question
from gateway.context.cut.units import USER, Cut, Room, Unit
from gateway.context.write.asked import (
    FOR_PERHAPS_ASKING,
    FOR_REQUESTS,
    NOTHING,
    Ask,
    Kind,
    Needs,
    allowance,
    set_aside_tokens,
    tokens_before_digest,
)

FOR_FACT = "Which card was it?"
QUESTION = "Root cause of the double booking?"
UNMARKED = "what road did my car break down on"
ERRAND = "Could you book it for Friday?"
WITHOUT_SUBJECT = "Shall we go on?"
REQUEST = "Draft a mail to Sam about the boiler."
STATEMENT = "The bus was late again."
PHRASE = "the number of the last bus"

CHAT: dict[str, Any] = {"ends_with_question": True}
AGENT: dict[str, Any] = {**CHAT, "has_agent": True}
AUTONOMOUS: dict[str, Any] = {**AGENT, "autonomous": True}
ROOM = 100_000


def ask(
    text: str,
    facts: dict[str, Any],
    *,
    folded: int = 30_000,
    room: int = ROOM,
    needs: Needs = Needs.NOTHING,
) -> Ask:
    """Return what a text asks at the end of a conversation with so many folded tokens."""
    units = tuple(
        Unit(turn, USER, (turn,), cost=cost, trimmed_cost=cost, stubbed_cost=cost)
        for turn, cost in enumerate((folded, 10))
    )
    cut = Cut(first_kept=1)
    return Ask(text, Layout(units, Room(room, 0, 0.6, None), cut, cut, (0,), (Question((1,), cut),), **facts), needs)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (QUESTION, Kind.QUESTION),
        (UNMARKED, Kind.QUESTION),
        (WITHOUT_SUBJECT, Kind.QUESTION),
        (REQUEST, Kind.REQUEST),
        ("Go on.", Kind.STATEMENT),
        (STATEMENT, Kind.STATEMENT),
        ("", Kind.STATEMENT),
    ],
)
def test_a_message_is_a_question_or_a_request_or_a_statement(text: str, kind: Kind) -> None:
    assert ask(text, CHAT).kind is kind


def test_an_errand_in_the_form_of_a_question_is_a_request_in_a_chat_and_a_task_of_an_agent() -> None:
    assert ask(ERRAND, CHAT).kind is Kind.REQUEST
    assert ask(ERRAND, AGENT).kind is Kind.QUESTION


@pytest.mark.parametrize("needs", Needs)
def test_the_more_surely_a_request_needs_what_was_said_the_more_it_gets(needs: Needs) -> None:
    assert allowance(ask(PHRASE, CHAT, needs=needs)) == FOR_REQUESTS[needs]


def test_a_request_that_needs_nothing_has_no_allowance() -> None:
    assert allowance(ask(REQUEST, CHAT)) == NOTHING


def test_an_agent_that_works_on_its_own_is_asked_in_any_form_and_given_tasks_with_a_verb() -> None:
    assert allowance(ask(PHRASE, AUTONOMOUS, needs=Needs.PERHAPS)) == FOR_PERHAPS_ASKING
    assert allowance(ask(REQUEST, AUTONOMOUS, needs=Needs.PROBABLY)) == NOTHING
    assert allowance(ask(PHRASE, AGENT, needs=Needs.PERHAPS)) == NOTHING


@pytest.mark.parametrize("facts", [CHAT, AGENT, AUTONOMOUS])
@pytest.mark.parametrize("folded", [30_000, 500_000])
def test_a_statement_has_no_allowance(facts: dict[str, Any], folded: int) -> None:
    assert allowance(ask(STATEMENT, facts, folded=folded)) == NOTHING


@pytest.mark.parametrize(
    ("text", "facts", "folded", "tokens"),
    [
        (QUESTION, CHAT, 30_000, (4000, 4000)),
        (QUESTION, {}, 30_000, (4000, 4000)),
        (QUESTION, CHAT, 500_000, (10_000, inf)),
        (WITHOUT_SUBJECT, CHAT, 30_000, (1600, 1600)),
        (WITHOUT_SUBJECT, CHAT, 500_000, (1600, 1600)),
        (REQUEST, CHAT, 500_000, (1000, 1000)),
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
    needs = Needs.PROBABLY if text == REQUEST else Needs.NOTHING
    allowed = allowance(ask(text, facts, folded=folded, needs=needs))

    assert (allowed.set_aside_tokens, allowed.free_tokens) == tokens


def test_turns_are_set_aside_within_shares_of_the_room_and_of_the_folded_part() -> None:
    assert set_aside_tokens(ask(QUESTION, CHAT)) == 4000
    assert set_aside_tokens(ask(QUESTION, CHAT, room=5000, folded=20_000)) == 3000
    assert set_aside_tokens(ask(QUESTION, CHAT, folded=3000)) == 1000


def test_a_digest_leaves_room_only_for_what_is_asked_about_the_conversation() -> None:
    assert tokens_before_digest(ask(FOR_FACT, AGENT)) == 4000
    assert tokens_before_digest(ask(ERRAND, AGENT, folded=500_000)) == 0
