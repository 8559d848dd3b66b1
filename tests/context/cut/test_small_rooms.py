"""How a room that holds few requests is shared: between a digest that says much and cuts that seldom move."""

from itertools import pairwise

import pytest

from gateway.context.cut.replay import replay
from gateway.context.cut.shares import CHAT_QUOTE_TOKENS
from gateway.context.cut.units import ANSWER, CALLS, USER, Room, Unit

REQUEST = 100
"""Tokens by which each request grows."""


def agent(requests: int) -> list[Unit]:
    """One question and a chain of calls with results of one size."""
    return [Unit(0, USER, (0,), 20, 20, 20), *(Unit(0, CALLS, (step + 1,), *[REQUEST] * 3) for step in range(requests))]


def chat(requests: int) -> list[Unit]:
    """Questions and plain answers, half of a request's tokens each."""
    return [
        Unit(number, kind, (2 * number + at,), *[REQUEST // 2] * 3)
        for number in range(requests)
        for at, kind in enumerate((USER, ANSWER))
    ]


def room_for(requests: float, quote_tokens: int = 0) -> Room:
    """A room that holds so many requests."""
    return Room(int(requests * REQUEST), quote_tokens, 0.6, None)


def requests_a_cut(units: list[Unit], room: Room) -> float:
    """The requests over the window for which a cut stands, on average."""
    cuts = [
        cut.first_kept
        for unit, cut in zip(units, replay(units, room), strict=True)
        if unit.kind is not ANSWER and cut.first_kept
    ]
    return len(cuts) / len(set(cuts))


@pytest.mark.parametrize("talk", [agent, chat])
def test_a_room_for_few_requests_still_lets_a_cut_stand_for_some(talk) -> None:
    """Otherwise nearly all of each request would be written anew."""
    assert requests_a_cut(talk(60), room_for(7, quote_tokens=70)) >= 2


def test_in_a_tight_room_the_digest_takes_all_that_is_left() -> None:
    room = room_for(4.5, quote_tokens=45)
    cut = replay(agent(60), room)[-1]
    standing = 60 - cut.first_kept + 1

    assert cut.digest_tokens >= room.free - standing * REQUEST - room.quote_tokens
    assert requests_a_cut(agent(60), room) < 2


def test_a_chat_keeps_room_to_grow_where_an_agent_does_not() -> None:
    """Its questions are answered from quotes; what tools returned is in the digest or nowhere."""
    assert requests_a_cut(chat(60), room_for(4.5)) > requests_a_cut(agent(60), room_for(4.5))


def test_the_more_requests_a_room_holds_the_smaller_is_the_digests_share() -> None:
    shares = [
        replay(agent(200), room)[-1].digest_tokens / room.free for room in (room_for(4.5), room_for(7), room_for(30))
    ]

    assert shares[0] > shares[1] > shares[2]


@pytest.mark.parametrize(("room", "most"), [(20, 0.15), (50, 0.12), (400, 0.1)])
def test_the_larger_the_room_the_smaller_is_the_share_that_stands_after_a_cut(room: int, most: float) -> None:
    """What stands is written once more; a small room has few messages to spare."""
    units, size = chat(10 * room), room_for(room)
    cuts = replay(units, size)
    standing = [
        sum(each.cost for each in units[cut.first_kept : at + 1]) / size.free
        for at, (before, cut) in enumerate(pairwise(cuts), 1)
        if cut.first_kept > before.first_kept
    ]

    assert most - REQUEST / size.free < max(standing) <= most


def test_the_room_kept_for_quotes_of_a_chat_does_not_grow_with_the_window() -> None:
    """A message that asks nothing, or little, needs no more of them in a large window; a question gets what is free."""
    quotes = [
        replay(chat(4000), room_for(room, quote_tokens=int(room * 15)))[-1].quote_tokens for room in (20, 100, 1000)
    ]

    assert quotes[0] == 150
    assert quotes[1] == quotes[2] == CHAT_QUOTE_TOKENS
