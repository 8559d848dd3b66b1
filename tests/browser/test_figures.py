"""The dashboard's figures, as its own module counts them: tables of records, and what must come out."""

import pytest

BASE = {
    "request_id": "tf-1", "model": "m", "upstream": "u", "entry": "m", "mode": "enforce", "action": "none", "status": 200, "error": "",
    "window": 1000, "tokens_before": 500, "tokens_after": 500, "prompt_tokens": 500, "cached_tokens": None, "conversation": "c", "session": "",
    "at": 0, "attempts": 1, "refusals": [], "steps": [], "calls": [], "turns_folded": 0,
    "lost": {"turns": 0, "lines": 0, "images": 0, "question_characters": 0},
}  # fmt: skip
PRICE = {"m": {"input": 10, "cached": 1, "lifetime_s": 300}}


def folded(before, after, **known):
    known = {"prompt_tokens": after, **known}
    return {**BASE, "action": "fold", "tokens_before": before, "tokens_after": after, **known}


@pytest.fixture
async def count(gateway, standin, dashboard):
    """Call a function of figures.js in the browser."""
    opened = await dashboard(await gateway(standin))
    await opened.go()

    async def call(name, *given):
        return await opened.page.evaluate(
            "async ([name, given]) => (await import('/dashboard/figures.js'))[name](...given)", [name, list(given)]
        )

    return call


SAVINGS = [
    ("nothing was folded", [BASE], PRICE, 0, 0, None),
    ("no cache was ever read: what was not sent is saved", [folded(2_000_000, 1_000_000)], PRICE, 1_000_000, 0, 10.0),
    ("an unknown price is no price", [folded(2_000_000, 1_000_000)], {}, 1_000_000, 0, None),
    (
        "where nothing ever was read from a cache, and no rule says that one is kept, none was broken",
        [{**BASE, "tokens_before": 1_000_000, "prompt_tokens": 1_000_000, "cached_tokens": 0},
         folded(2_000_000, 1_000_000, at=10, cached_tokens=0)],
        {"m": {"input": 10, "cached": 10, "lifetime_s": None}}, 1_000_000, 0, 10.0,
    ),
    (
        # Whole: 2M tokens, 1M of them cached = 10 + 1 dollars. Folded: 1M fresh = 10.
        "a fold that breaks the cache costs what the cache would have given",
        [{**BASE, "tokens_before": 1_000_000, "prompt_tokens": 1_000_000, "cached_tokens": 0},
         folded(2_000_000, 1_000_000, at=10, cached_tokens=0)],
        PRICE, 1_000_000, 1_000_000, 1.0,
    ),
    (
        # Whole: 1M fresh, 1M cached = 11. Folded: 0.1M fresh, 0.9M cached = 1.9.
        "a fold that stands is read from the cache",
        [{**BASE, "tokens_before": 1_000_000, "prompt_tokens": 1_000_000, "cached_tokens": 0},
         folded(2_000_000, 1_000_000, at=10, cached_tokens=900_000)],
        PRICE, 1_000_000, 100_000, 9.1,
    ),
    (
        "a cache that has ended would have given nothing",
        [{**BASE, "tokens_before": 1_000_000, "prompt_tokens": 1_000_000, "cached_tokens": 0},
         folded(2_000_000, 1_000_000, at=1000, cached_tokens=0)],
        PRICE, 1_000_000, 0, 10.0,
    ),
    ("mode observe saves nothing", [{**folded(2_000_000, 1_000_000), "mode": "observe", "action": "observe"}], PRICE, 0, 0, None),
    ("a request that failed saves nothing", [{**folded(2_000_000, 1_000_000), "status": 502}], PRICE, 0, 0, None),
]  # fmt: skip


async def test_savings_are_net_of_broken_caches(count):
    for story, records, prices, tokens, lost, net in SAVINGS:
        found = await count("savings", records, prices)
        assert (found["tokens"], found["cacheLost"]) == (tokens, lost), story
        assert found["net"] == (None if net is None else pytest.approx(net)), story


async def test_savings_may_be_a_loss(count):
    grown = {**BASE, "tokens_before": 1_000_000, "prompt_tokens": 1_000_000, "cached_tokens": 0}
    found = await count("savings", [grown, folded(1_050_000, 1_000_000, at=1, cached_tokens=0)], PRICE)
    assert found["net"] < 0


async def test_fullness_is_counted_against_the_window_of_the_time(count):
    records = [
        {**BASE, "tokens_before": 100},
        {**BASE, "tokens_before": 1000},
        {**BASE, "tokens_before": 1001},
        {**BASE, "tokens_before": 5000, "window": 2000},
        {**BASE, "tokens_before": None, "prompt_tokens": 550},
        {**BASE, "tokens_before": None, "prompt_tokens": None},
        {**BASE, "window": 0},
    ]
    [found] = await count("fullness", records)
    classes = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 2, "more"]
    assert {name: number for name, number in zip(classes, found["counts"], strict=True) if number} == {
        0.1: 1, 0.6: 1, 1: 1, 1.25: 1, "more": 1,
    }  # fmt: skip
    assert (found["requests"], found["over"], found["most"], found["median"]) == (5, 2, 2.5, 1)
    assert (found["smallest"], found["largest"]) == (1000, 2000)


async def test_requests_over_time_lose_none(count):
    records = [{**BASE, "at": 1000 + 7 * number, "status": 500 if number % 9 == 0 else 200} for number in range(100)]
    found = await count("overTime", records)
    assert (sum(found["all"]), sum(found["failed"]), sum(found["folded"])) == (100, 12, 0)
    assert len(found["times"]) == len(found["all"]) <= 61
    assert await count("overTime", []) is None


async def test_the_worst_conversations_come_first(count):
    def losing(conversation, **lost):
        return {**BASE, "conversation": conversation, "lost": {**BASE["lost"], **lost}}

    found = await count(
        "losers", [losing("a", lines=9), losing("b", question_characters=1), losing("c"), losing("a", lines=4)]
    )
    assert [(each["conversation"], each["lines"], each["question"], each["requests"]) for each in found] == [
        ("b", 0, 1, 1), ("a", 9, 0, 2),
    ]  # fmt: skip


async def test_stages_and_rungs_are_summed(count):
    steps = [{"stage": "turns", "saved": 100}, {"stage": "digest", "saved": -30}]
    calls = [{"rung": 1, "sign": "code"}, {"rung": 2, "sign": ""}]
    records = [{**BASE, "steps": steps, "calls": calls, "refusals": ["code"]}, {**BASE, "steps": steps}]
    assert await count("byStage", records) == [
        {"stage": "turns", "requests": 2, "saved": 200}, {"stage": "digest", "requests": 2, "saved": -60},
    ]  # fmt: skip
    assert await count("byRung", records) == [
        {"rung": 1, "calls": 1, "refused": 1}, {"rung": 2, "calls": 1, "refused": 0},
    ]  # fmt: skip
    assert await count("bySign", records) == [{"sign": "code", "upstream": "u", "count": 1}]
