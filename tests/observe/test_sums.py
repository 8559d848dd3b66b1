"""The dashboard's figures: tables of records, and what must come out."""

import pytest

from gateway.observe import sums
from gateway.observe.sums import Sums, bounds, over_time

BASE = {
    "request_id": "tf-1", "model": "m", "upstream": "u", "entry": "m", "mode": "enforce", "action": "none", "status": 200, "error": "",
    "window": 1000, "tokens_before": 500, "tokens_after": 500, "prompt_tokens": 500, "cached_tokens": None, "conversation": "c",
    "session": "", "key": "", "why": "fits", "time": "2026-01-01T00:00:00Z", "at": 0, "attempts": 1, "refusals": [], "steps": [],
    "calls": [], "turns_folded": 0, "lost": {"turns": 0, "lines": 0, "images": 0, "question_characters": 0},
}  # fmt: skip
PRICE = {"m": {"input": 10, "cached": 1, "lifetime_s": 300}}


def folded(before, after, **known):
    known = {"prompt_tokens": after, **known}
    return {**BASE, "action": "fold", "why": "folded", "tokens_before": before, "tokens_after": after, **known}


def summed(records, prices=None):
    """The sums of records in any order, as JSON."""
    found = Sums((prices or {}).get)
    for one in sorted(records, key=lambda record: -record["at"]):
        found.add(one)
    return found.as_json()


WARM = {**BASE, "tokens_before": 1_000_000, "prompt_tokens": 1_000_000, "cached_tokens": 0}
SAVINGS = [
    ("nothing was folded", [BASE], PRICE, 0, 0, None),
    ("no cache was ever read: what was not sent is saved", [folded(2_000_000, 1_000_000)], PRICE, 1_000_000, 0, 10.0),
    ("an unknown price is no price", [folded(2_000_000, 1_000_000)], {}, 1_000_000, 0, None),
    (
        "where nothing ever was read from a cache, and no rule says that one is kept, none was broken",
        [WARM, folded(2_000_000, 1_000_000, at=10, cached_tokens=0)],
        {"m": {"input": 10, "cached": 10, "lifetime_s": None}}, 1_000_000, 0, 10.0,
    ),
    (
        # Whole: 2M tokens, 1M of them cached = 10 + 1 dollars. Folded: 1M fresh = 10.
        "a fold that breaks the cache costs what the cache would have given",
        [WARM, folded(2_000_000, 1_000_000, at=10, cached_tokens=0)],
        PRICE, 1_000_000, 1_000_000, 1.0,
    ),
    (
        # Whole: 1M fresh, 1M cached = 11. Folded: 0.1M fresh, 0.9M cached = 1.9.
        "a fold that stands is read from the cache",
        [WARM, folded(2_000_000, 1_000_000, at=10, cached_tokens=900_000)],
        PRICE, 1_000_000, 100_000, 9.1,
    ),
    (
        "a cache that has ended would have given nothing",
        [WARM, folded(2_000_000, 1_000_000, at=1000, cached_tokens=0)],
        PRICE, 1_000_000, 0, 10.0,
    ),
    ("another conversation's cache gives nothing", [{**WARM, "conversation": "d"}, folded(2_000_000, 1_000_000, at=1)], PRICE, 1_000_000, 0, 10.0),
    ("a request that failed fills no cache", [{**WARM, "status": 500}, folded(2_000_000, 1_000_000, at=1)], PRICE, 1_000_000, 0, 10.0),
    ("mode observe saves nothing", [{**folded(2_000_000, 1_000_000), "mode": "observe", "action": "observe"}], PRICE, 0, 0, None),
    ("a request that failed saves nothing", [{**folded(2_000_000, 1_000_000), "status": 502}], PRICE, 0, 0, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "prices", "tokens", "lost", "net"), [row[1:] for row in SAVINGS], ids=[row[0] for row in SAVINGS]
)
def test_savings_are_net_of_broken_caches(records, prices, tokens, lost, net):
    found = summed(records, prices)["savings"]
    assert (found["tokens"], found["cache_lost"]) == (tokens, lost)
    assert found["net"] == (None if net is None else pytest.approx(net))
    if net is not None:
        assert found["net"] == pytest.approx(found["gross"] - found["cache"])
        assert sum(one["net"] for one in found["models"]) == pytest.approx(net)


def test_savings_may_be_a_loss():
    assert summed([WARM, folded(1_050_000, 1_000_000, at=1, cached_tokens=0)], PRICE)["savings"]["net"] < 0


def test_fullness_is_counted_against_the_window_of_the_time():
    [found] = summed([
        {**BASE, "tokens_before": 100},
        {**BASE, "tokens_before": 1000},
        {**BASE, "tokens_before": 1001},
        {**BASE, "tokens_before": 5000, "window": 2000},
        {**BASE, "tokens_before": None, "prompt_tokens": 550},
        {**BASE, "tokens_before": None, "prompt_tokens": None},
        {**BASE, "window": 0},
    ])["fullness"]  # fmt: skip
    classes = [*sums.SHARES, "more"]
    assert {name: number for name, number in zip(classes, found["counts"], strict=True) if number} == {
        0.1: 1, 0.6: 1, 1: 1, 1.25: 1, "more": 1,
    }  # fmt: skip
    assert (found["requests"], found["over"], found["most"], found["median"]) == (5, 2, 2.5, 1)
    assert (found["smallest"], found["largest"]) == (1000, 2000)


@pytest.mark.parametrize("gap_s", [0.01, 7, 60, 5000, 90_000], ids=lambda gap: f"one each {gap} s")
def test_requests_over_time_lose_none_and_fit_a_chart(gap_s):
    records = [
        {**BASE, "at": 1.8e9 + gap_s * number, "status": 500 if number % 9 == 0 else 200} for number in range(100)
    ]
    found = summed(records)["over_time"]
    assert (sum(found["all"]), sum(found["failed"]), sum(found["folded"])) == (100, 12, 0)
    assert len(found["times"]) == len(found["all"]) <= over_time.MOST_PIECES
    assert found["times"][0] <= 1.8e9 < found["times"][0] + found["step"]
    assert {later - one for one, later in zip(found["times"], found["times"][1:], strict=False)} <= {found["step"]}


def test_the_sums_of_no_records_are_empty():
    found = summed([])
    assert (found["over_time"], found["fullness"], found["losers"], found["savings"]["net"]) == (None, [], [], None)
    assert {found[name] for name in sums.TOTALS} == {0}


def test_each_length_of_a_piece_of_time_divides_the_next():
    assert [later % one for one, later in zip(over_time.STEPS_S, over_time.STEPS_S[1:], strict=False)] == [0] * (
        len(over_time.STEPS_S) - 1
    )


def test_the_worst_conversations_come_first():
    def losing(conversation, **lost):
        return {**BASE, "conversation": conversation, "lost": {**BASE["lost"], **lost}}

    found = summed([losing("a", lines=9), losing("b", question_characters=1), losing("c"), losing("a", lines=4)])[
        "losers"
    ]
    assert [(one["conversation"], one["lost"]["lines"], one["lost"]["question_characters"], one["requests"]) for one in found] == [
        ("b", 0, 1, 1), ("a", 9, 0, 2),
    ]  # fmt: skip
    assert not found[0]["observed"]


def test_stages_and_rungs_are_summed():
    steps = [{"stage": "turns", "saved": 100}, {"stage": "digest", "saved": -30}]
    calls = [{"rung": 1, "sign": "code"}, {"rung": 2, "sign": ""}]
    records = [
        {**BASE, "steps": steps, "calls": calls, "refusals": ["code"]},
        {**BASE, "steps": steps},
        {**BASE, "steps": steps, "mode": "observe"},
    ]
    found = summed(records)
    assert found["stages"] == [
        {"stage": "turns", "requests": 2, "saved": 200}, {"stage": "digest", "requests": 2, "saved": -60},
    ]  # fmt: skip
    assert found["rungs"] == [{"rung": 1, "calls": 1, "refused": 1}, {"rung": 2, "calls": 1, "refused": 0}]
    assert found["signs"] == [{"sign": "code", "upstream": "u", "count": 1}]
    assert found["would_fold"] == 1


def test_what_clients_name_is_bounded(monkeypatch):
    for name in ("MOST_MODELS", "MOST_CONVERSATIONS", "MOST_NAMES"):
        monkeypatch.setattr(bounds, name, 5)
    found = summed([
        folded(2000, 1000, model=f"m{number}", conversation=f"c{number}", session=f"s{number}", key=f"k{number}", at=number,
               refusals=[f"sign{number}"], lost={**BASE["lost"], "lines": number + 1})
        for number in range(50)
    ])  # fmt: skip
    assert found["requests"] == 50
    assert len(found["fullness"]) == 6
    assert sum(one["requests"] for one in found["fullness"]) == 50
    assert len(found["savings"]["models"]) == 6
    assert found["savings"]["requests"] == 50
    assert {name: len(values) for name, values in found["names"].items()} == {"key": 5, "model": 5, "session": 5}
    assert len(found["losers"]) == 5
    assert len(found["signs"]) == 5
