"""Choosing among upstreams: by weight, by conversation, and around those that failed."""

from collections import Counter

from gateway.upstream.balance import ALWAYS_KEPT, Balance
from tests.fakes import Clock


def test_first_requests_are_spread_by_weight() -> None:
    balance = Balance(Clock())
    chosen = Counter(balance.order([("a", 3), ("b", 1)])[0] for _ in range(400))

    assert chosen == {"a": 300, "b": 100}


def test_a_conversation_keeps_its_upstream() -> None:
    balance = Balance(Clock())

    assert len({balance.order([("a", 1), ("b", 1)], b"one conversation")[0] for _ in range(20)}) == 1


def test_conversations_are_spread_by_weight() -> None:
    balance = Balance(Clock())
    chosen = Counter(balance.order([("a", 3), ("b", 1)], b"%d" % number)[0] for number in range(2000))

    assert 0.7 < chosen["a"] / 2000 < 0.8


def test_who_failed_rests_longer_with_each_failure_and_comes_back() -> None:
    clock = Clock()
    balance = Balance(clock)
    choices = [("a", 1), ("b", 1)]

    balance.failed("a")
    assert [balance.order(choices)[0] for _ in range(4)] == ["b"] * 4
    clock.now = 1.5
    assert {balance.order(choices)[0] for _ in range(4)} == {"a", "b"}

    balance.failed("a")
    clock.now = 3.0
    assert balance.resting("a")
    balance.succeeded("a")
    assert not balance.resting("a")


def test_an_upstream_rests_as_long_as_it_asked_for() -> None:
    clock = Clock()
    balance = Balance(clock)

    balance.failed("a", retry_after_s=20)
    clock.now = 19.0

    assert balance.order([("a", 9), ("b", 1)], b"any")[0] == "b"


def test_where_all_rest_all_are_still_tried() -> None:
    balance = Balance(Clock())
    balance.failed("a")
    balance.failed("b")

    assert set(balance.order([("a", 1), ("b", 1)])) == {"a", "b"}


def test_a_conversation_leaves_an_upstream_that_is_much_busier_than_its_share_and_comes_back() -> None:
    balance = Balance(Clock())
    choices = [("a", 1), ("b", 1), ("c", 1)]
    first, second, _ = balance.order(choices, b"one conversation")

    for _ in range(ALWAYS_KEPT):
        assert balance.order(choices, b"one conversation")[0] == first
        balance.began(first)
    assert balance.order(choices, b"one conversation")[0] == second
    balance.ended(first)
    assert balance.order(choices, b"one conversation")[0] == first


def test_no_upstream_gets_more_than_its_share_by_a_quarter() -> None:
    """However conversations fall, and with every one of them busy at once."""
    balance = Balance(Clock())
    choices = [("a", 3), ("b", 1)]
    running = Counter[str]()
    for number in range(1000):
        name = balance.order(choices, b"%d" % (number % 7))[0]
        balance.began(name)
        running[name] += 1

    assert running["a"] <= 1.25 * 750 + 1
    assert running["b"] <= 1.25 * 250 + 1


def test_an_upstream_that_ends_more_than_it_began_is_at_rest() -> None:
    balance = Balance(Clock())
    balance.ended("a")
    balance.began("a")

    assert len(balance.order([("a", 1), ("b", 1)], b"one")) == 2
