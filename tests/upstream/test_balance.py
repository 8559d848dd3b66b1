"""Choosing among upstreams: by weight, by conversation, and around those that failed."""

from collections import Counter

from gateway.upstream.balance import ALWAYS_KEPT, MOST_RESTS, Balance
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


CHOICES = [("a", 1), ("b", 1)]
ALICE, BOB, CAROL = (("a", "m", caller) for caller in ("alice", "bob", "carol"))


def test_an_upstream_that_failed_rests_longer_with_each_failure_and_comes_back() -> None:
    clock = Clock()
    balance = Balance(clock)

    balance.failed(ALICE)
    assert balance.resting(ALICE)
    clock.now = 1.5
    assert not balance.resting(ALICE)

    balance.failed(ALICE)
    clock.now = 3.0
    assert balance.resting(ALICE)
    assert balance.rests_for_some("a")
    balance.succeeded(ALICE)
    assert not balance.resting(ALICE)
    assert not balance.rests_for_some("a")


def test_a_resting_upstream_is_tried_last() -> None:
    balance = Balance(Clock())

    assert [balance.order(CHOICES, resting={"a"}) for _ in range(4)] == [["b", "a"]] * 4
    assert balance.order([("a", 9), ("b", 1)], b"any", {"a"}) == ["b", "a"]
    assert set(balance.order(CHOICES, resting={"a", "b"})) == {"a", "b"}


def test_an_upstream_rests_as_long_as_it_asked_for_within_a_minute_and_for_a_quota_within_ten() -> None:
    clock = Clock()
    balance = Balance(clock)

    balance.failed(ALICE, retry_after_s=20)
    balance.failed(BOB, retry_after_s=86_400)
    balance.failed(CAROL, retry_after_s=86_400, own_quota=True)
    clock.now = 19.0
    assert balance.resting(ALICE)
    clock.now = 59.0
    assert (balance.resting(ALICE), balance.resting(BOB)) == (False, True)
    clock.now = 61.0
    assert (balance.resting(BOB), balance.resting(CAROL)) == (False, True)
    clock.now = 601.0
    assert not balance.resting(CAROL)


def test_failures_of_one_caller_make_an_upstream_rest_for_nobody_else() -> None:
    clock = Clock()
    balance = Balance(clock)
    for _ in range(100):
        balance.failed(ALICE, retry_after_s=86_400)
        clock.now += 1

    assert not balance.resting(BOB)
    assert not balance.resting(("a", "other model", "alice"))


def test_failures_of_two_callers_make_it_rest_for_all_for_ten_seconds() -> None:
    clock = Clock()
    balance = Balance(clock)
    for owner in (ALICE, BOB, BOB):
        balance.failed(owner, retry_after_s=86_400)

    assert balance.resting(CAROL)
    assert not balance.resting(("a", "other model", "carol"))
    clock.now = 11.0
    assert (balance.resting(CAROL), balance.resting(ALICE)) == (False, True)


def test_failures_far_apart_or_about_quotas_make_it_rest_for_nobody_else() -> None:
    clock = Clock()
    balance = Balance(clock)
    balance.failed(ALICE)
    clock.now = 61.0
    balance.failed(BOB)
    balance.failed(ALICE, own_quota=True)

    assert not balance.resting(CAROL)


def test_an_answer_ends_the_rest_for_all() -> None:
    balance = Balance(Clock())
    balance.failed(ALICE)
    balance.failed(BOB)
    balance.succeeded(CAROL)

    assert not balance.resting(CAROL)
    assert balance.resting(ALICE)


def test_any_number_of_invented_callers_and_models_take_a_bounded_memory() -> None:
    balance = Balance(Clock())
    for number in range(MOST_RESTS):
        balance.failed(("a", f"m{number}", "attacker"), own_quota=True)
    balance.failed(ALICE)

    assert balance.resting(ALICE)
    assert not balance.resting(("a", "m0", "attacker"))


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
