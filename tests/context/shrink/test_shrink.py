"""What is left of a text that is too long for its place."""

import os
import subprocess
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context.count.message_cost import counter
from gateway.context.cut.media_and_reasoning import has_media_or_reasoning, without_media_and_reasoning
from gateway.context.shrink.json_value import shrink_json_hard
from gateway.context.shrink.message import fair_limits, shrink_message
from gateway.context.shrink.text import shrink_text
from gateway.wire.views import opaque
from tests.running import ROOT

COUNTER = counter("o200k")
COUNT = COUNTER.text


def test_an_error_at_the_end_of_a_long_log_survives() -> None:
    """Case 40."""
    log = "".join(f"2024-05-01 12:00:{row % 60:02d} worker {row} is idle\n" for row in range(4500))

    cut = shrink_text(log + "fatal: disk /dev/sda1 is full\n", 400, COUNT)

    assert cut.startswith("2024-05-01")
    assert cut.endswith("fatal: disk /dev/sda1 is full\n")
    assert COUNT(cut) <= 400


def test_an_error_in_the_middle_survives() -> None:
    log = "all is well here\n" * 2000 + "Traceback: KeyError 'port'\n" + "all is well here\n" * 2000

    assert "KeyError 'port'" in shrink_text(log, 300, COUNT)


def test_rows_that_bear_on_the_question_survive() -> None:
    rows = [f"customer {number} lives in town {number * 7}" for number in range(3000)]

    cut = shrink_text("\n".join(rows), 300, COUNT, frozenset({"1777"}))

    assert "customer 1777 lives" in cut


def test_the_gap_says_how_much_is_missing_and_markers_do_not_stack() -> None:
    """Case 42: cut twice, counted once."""
    text = "word " * 20_000

    once = shrink_text(text, 500, COUNT)
    twice = shrink_text(once, 200, COUNT)

    assert shrink_text(once, 500, COUNT) == once
    assert twice.count("characters cut") == 1
    cut = int(twice.split("[... ")[1].split(" ")[0])
    assert cut + len(twice.replace(f"[... {cut} characters cut ...]", "").replace("\n", "")) == pytest.approx(
        len(text), abs=4
    )


def test_json_stays_json() -> None:
    value = {"rows": [{"id": number, "text": "long " * 40} for number in range(300)], "next": None}

    cut = orjson.loads(shrink_text(orjson.dumps(value).decode(), 400, COUNT))

    assert cut.keys() == value.keys()
    assert cut["rows"][0]["id"] == 0
    assert cut["rows"][-1]["id"] == 299


def test_arguments_stay_json_with_the_same_keys() -> None:
    """Case 43."""
    arguments = orjson.dumps({"path": "a.py", "content": "x = 1\n" * 5000, "mode": "w"}).decode()
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "write", "arguments": arguments}}],
    }

    cut = shrink_message(message, 200, COUNTER)

    kept = orjson.loads(cut["tool_calls"][0]["function"]["arguments"])
    assert list(kept) == ["path", "content", "mode"]
    assert COUNTER.message(cut) <= 200
    assert message["tool_calls"][0]["function"]["arguments"] == arguments


def test_a_text_inside_a_part_is_cut_and_the_part_stays() -> None:
    """A search result of Messages: https://platform.claude.com/docs/en/build-with-claude/search-results."""
    found = {"type": "search_result", "source": "u", "content": [{"type": "text", "text": "all is well here\n" * 2000}]}
    signed = opaque({**found, "content": [{"type": "text", "text": "all is well here\n" * 20}]})
    message = {"role": "tool", "tool_call_id": "t1", "content": [found, signed]}

    cut, whole = shrink_message(message, 500, COUNTER)["content"]

    assert cut["content"][0]["text"].startswith("all is well")
    assert COUNTER.message({"role": "tool", "content": [cut]}) <= 500
    assert {**cut, "content": found["content"]} == found
    assert whole is signed


def test_media_become_text_that_says_what_stood_there() -> None:
    """Case 47; reasoning goes with them."""
    message = {
        "role": "user",
        "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "QUJD"}],
        "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "x"}}],
    }

    assert without_media_and_reasoning(message) == {
        "role": "user",
        "content": [{"type": "text", "text": "see"}, {"type": "text", "text": "[image removed]"}],
    }


@pytest.mark.parametrize(("reasoning", "kept"), [("", ""), ("hm", "hm"), ("hm " * 100, "hm " * 39 + "hm…")])
def test_the_beginning_of_reasoning_content_stays(reasoning: str, kept: str) -> None:
    message = {"role": "assistant", "content": "ok", "reasoning_content": reasoning}

    assert without_media_and_reasoning(message) == {**message, "reasoning_content": kept}
    assert has_media_or_reasoning(message) == (reasoning != kept)
    assert not has_media_or_reasoning(without_media_and_reasoning(message))


@pytest.mark.parametrize(
    ("costs", "total", "shared"),
    [([5, 5], 20, [5, 5]), ([10, 100, 100], 90, [10, 40, 40]), ([100], 30, [30]), ([], 3, []), ([50, 60], 0, [0, 0])],
)
def test_small_ones_keep_all_and_large_ones_share_the_rest(costs: list[int], total: int, shared: list[int]) -> None:
    assert fair_limits(costs, total) == shared


GLUED = st.sampled_from(
    ["e\u0301", "\U0001f469\u200d\U0001f4bb", "\U0001f1e8\U0001f1ed", "\u0915\u094d\u0937\u093f", "a", " ", "\n", "漢"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(GLUED, min_size=1, max_size=40).map("".join), st.integers(1, 40), st.integers(12, 200))
def test_characters_are_never_parted(piece: str, times: int, tokens: int) -> None:
    """Case 41: valid UTF-8, and no mark without its letter."""
    cut: Any = shrink_text(piece * times, tokens, COUNT)

    cut.encode()
    for part in cut.split("\n")[1:]:
        assert part[:1] not in ("\u0301", "\u200d", "\u094d", "\u093f") or f"\n{part[:1]}" in piece * times


SAME_EVERYWHERE = """
from hashlib import sha256
import orjson
from gateway.context.count.counter import Counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from tests.fakes import user, words
counter = Counter(lambda message: len(message["content"]) // 4, lambda text: len(text) // 4, exact=True)
draft = fold_conversation([user(words(9000))], Budget(1200, 300, 10, 24), counter, Policy())
print(sha256(orjson.dumps(draft.messages)).hexdigest())
"""


def test_a_text_is_cut_at_the_same_places_in_every_process():
    """Sets have another order in each process; sums over them must not."""
    cuts = {
        subprocess.run(
            [sys.executable, "-c", SAME_EVERYWHERE], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in "1234"
    }  # fmt: skip
    assert len(cuts) == 1


@pytest.mark.parametrize("number", ["1.50", "123456789012345678901234567890", "0.00001", "1E5"])
def test_numbers_in_shortened_json_keep_their_form(number: str) -> None:
    rows = ",".join(f'{{"id":{row},"amount":{number}}}' for row in range(300))

    cut = shrink_text(f"[{rows}]", 300, COUNT)

    assert f'{{"id":0,"amount":{number}}}' in cut
    assert number in shrink_json_hard(f'[{{"amount":{number},"text":"{"word " * 400}"}}]')
