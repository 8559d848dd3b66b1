"""Rates: what a key has used in the running minute, together with all others that serve it."""

import asyncio

import pytest
from msgspec.structs import replace

from gateway.observe.exchange import Exchange
from gateway.state.rates import Rates, expected, tokens_of
from gateway.state.store.memory import MemoryStore

MINUTE = 1_799_999_940.0


class Away(MemoryStore):
    """A store that does not work."""

    async def add(self, key, amount, *, ttl_s):
        return None


async def test_two_processes_with_one_store_count_together():
    store = MemoryStore()
    first, second = Rates(store, lambda: MINUTE), Rates(store, lambda: MINUTE + 59)
    await first.use("k", "requests", 1, 10)
    used = await second.use("k", "requests", 2, 10)
    assert (used.count, used.left) == (3, 7)


class OutOfOrder(MemoryStore):
    """A store that counts requests of one moment in another order than they came: the first comes last."""

    def __init__(self):
        super().__init__()
        self.waiting = 0

    async def add(self, key, amount, *, ttl_s):
        self.waiting += 1
        for _ in range(100 - self.waiting):
            await asyncio.sleep(0)
        return await super().add(key, amount, ttl_s=ttl_s)


@pytest.mark.parametrize("replicas", [1, 2])
async def test_of_requests_of_one_moment_exactly_the_limit_is_let_through(replicas):
    store = OutOfOrder()
    all_rates = [Rates(store, lambda: MINUTE) for _ in range(replicas)]
    used = await asyncio.gather(*(all_rates[n % replicas].use("k", "requests", 1, 7) for n in range(20)))
    assert sum(each.count <= each.limit for each in used) == 7


async def test_a_store_that_lost_its_counts_lets_no_process_begin_anew():
    store = MemoryStore()
    rates = Rates(store, lambda: MINUTE)
    for _ in range(9):
        await rates.use("k", "requests", 1, 7)
    store._counts.clear()
    assert (await rates.use("k", "requests", 1, 7)).count == 8


async def test_the_next_minute_starts_at_nothing():
    now = [MINUTE + 59.5]
    rates = Rates(MemoryStore(), lambda: now[0])
    assert (await rates.use("k", "tokens", 70, 60)).left == 0
    now[0] += 1
    assert (await rates.use("k", "tokens", 1, 60)).count == 1


async def test_without_the_store_each_process_counts_for_itself():
    first, second = (Rates(Away(), lambda: MINUTE) for _ in range(2))
    await first.use("k", "requests", 1, 10)
    assert (await first.use("k", "requests", 1, 10)).count == 2
    assert (await second.use("k", "requests", 1, 10)).count == 1


@pytest.mark.parametrize(("past", "reset"), [(0.0, 60), (0.4, 60), (15.0, 45), (59.9, 1)])
async def test_a_limit_is_whole_again_when_the_minute_ends(past, reset):
    rates = Rates(MemoryStore(), lambda: MINUTE + past)
    assert (await rates.use("k", "requests", 0, 1)).reset_s == reset


async def test_what_is_reserved_counts_until_the_bill_takes_its_place():
    rates = Rates(MemoryStore(), lambda: MINUTE)
    assert (await rates.reserve("a", "k", 60, 100))[1]
    assert not (await rates.reserve("b", "k", 60, 100))[1]
    assert (await rates.use("k", "tokens", 0, 100)).count == 60, "the refused one has given its tokens back"
    await rates.settle("k", 10, rates.take_reservation("a"))
    assert (await rates.use("k", "tokens", 0, 100)).count == 10
    assert rates.take_reservation("a") is rates.take_reservation("b") is None


@pytest.mark.parametrize(("billed", "now_counted"), [(30, 0), (60, 0), (75, 15)])
async def test_a_rest_stays_in_its_minute_and_what_is_more_is_charged_now(billed, now_counted):
    now = [MINUTE]
    rates = Rates(MemoryStore(), lambda: now[0])
    await rates.reserve("a", "k", 60, 100)
    now[0] += 60
    await rates.settle("k", billed, rates.take_reservation("a"))
    assert (await rates.use("k", "tokens", 0, 100)).count == now_counted


@pytest.mark.parametrize(
    ("body_bytes", "window", "answer", "limit", "tokens"),
    [(400, 8000, 50, 10_000, 150), (400, 8000, None, 100_000, 1124), (400, 8000, None, 500, 150), (400_000, 8000, 50, 10_000, 8050)],
)  # fmt: skip
def test_a_request_may_take_its_size_at_most_the_window_and_its_answer(body_bytes, window, answer, limit, tokens):
    assert expected(body_bytes, window, answer, limit) == tokens


def test_several_answers_are_reserved_and_no_number_is_too_large_for_a_store():
    assert expected(400, 8000, 50, 10_000, answers=100) == 5100
    assert expected(400, 8000, 50, 10_000, answers=-1) == 150
    assert expected(400, 8000, 2**63 - 1, 10_000, answers=2**63 - 1) < 2**63


def exchange(why="fits", **facts):
    return Exchange.passed("id", why, 200, **{"format": "chat", "body_bytes": 400, **facts})


STREAMED = {"stream": True, "answer_bytes": 25_600}


@pytest.mark.parametrize(
    ("facts", "tokens"),
    [
        ({"prompt_tokens": 70, "completion_tokens": 7, "tokens_after": 60}, 77),
        ({"prompt_tokens": 70}, 70),
        ({"tokens_after": 60}, 60),
        ({}, 100),
        ({"format": ""}, 0),
        ({"format": "", "prompt_tokens": 5}, 5),
        ({"tokens_after": 60, "answer_bytes": 400}, 160),
        ({"format": "", "answer_bytes": 25_600}, 0),
        ({"why": "not_chat", "answer_bytes": 400}, 0),
        ({**STREAMED, "tokens_after": 60}, 160),
        ({**STREAMED, "format": ""}, 200),
        ({**STREAMED, "prompt_tokens": 70, "completion_tokens": 7}, 77),
        ({**STREAMED, "prompt_tokens": 70, "completion_tokens": 0}, 70),
        ({**STREAMED, "prompt_tokens": 70, "completion_tokens": 1, "error": "client_gone"}, 170),
        ({**STREAMED, "prompt_tokens": 70, "completion_tokens": 900, "error": "client_gone"}, 970),
        ({"prompt_tokens": 2**62, "completion_tokens": 2**62}, 2**40),
    ],
)
def test_tokens_are_billed_else_counted_else_guessed_by_size(facts, tokens):
    assert tokens_of(exchange(**facts)) == tokens


def test_a_failed_request_is_free_and_one_whose_client_left_is_not():
    counted = exchange(tokens_after=60)
    assert tokens_of(replace(counted, status=502)) == 0
    assert tokens_of(replace(counted, status=499, error="client_gone", attempts=1)) == 60
    assert tokens_of(replace(counted, status=499, error="client_gone", attempts=0)) == 0
    assert tokens_of(replace(counted, status=499, error="unfinished", attempts=1, **STREAMED)) == 160
    assert tokens_of(replace(counted, error="upstream_broke_off", completion_tokens=1, **STREAMED)) == 160


async def test_what_does_not_fit_is_given_back_to_its_own_minute():
    times = iter([MINUTE + 30, MINUTE + 59.9, MINUTE + 60.1])
    last = [MINUTE + 60.1]
    rates = Rates(MemoryStore(), lambda: next(times, last[0]))
    assert (await rates.reserve("a", "k", 60, 100))[1]
    assert not (await rates.reserve("b", "k", 60, 100))[1], "refused in the old minute"
    assert (await rates.use("k", "tokens", 0, 100)).count == 0, "the new minute has nothing to give back"


def test_where_only_a_bill_counts_a_client_that_leaves_before_it_is_charged_what_was_reserved():
    embedding = replace(exchange(format=""), status=499, error="client_gone", attempts=1)
    assert tokens_of(embedding, 700) == 700
    assert tokens_of(replace(embedding, prompt_tokens=5), 700) == 5
    assert tokens_of(replace(embedding, attempts=0), 700) == 0
    assert tokens_of(replace(embedding, status=200, error=""), 700) == 0
