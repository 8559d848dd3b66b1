"""A bill is judged by the tokens that were surely sent."""

import orjson
import pytest

from gateway.context.count.message_cost import counter
from gateway.context.life.bills import LastRequest, SentCount, judge
from gateway.wire.chat import CHAT

COUNTER = counter("o200k")
RESULT = "The tyre of wheel 4 has 2.1 bar. " * 100


@pytest.mark.parametrize("role", ["tool", "function"])
def test_a_bill_that_does_not_grow_with_a_result_is_suspect(role: str) -> None:
    """A result of a legacy ``function_call`` counted as nothing, so a server could leave it out unnoticed."""
    asked = {"role": "user", "content": "Is a tyre flat? " * 100}
    called = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    result = {"role": role, "name": "look", "content": RESULT}
    request = CHAT.parse(orjson.dumps({"model": "m", "messages": [asked, called, result]}))
    assert request is not None
    counted = sum(map(COUNTER.message, request.messages))
    count = SentCount(
        conversation=request, messages=request.messages, counter=COUNTER, counted=counted, prompt=counted, error=0.0,
        folded=False, has_upper_bounds=False,
    )  # fmt: skip
    billed = COUNTER.message(request.messages[0])

    assert judge(count, billed, None, LastRequest(1, 1, billed, full=True)) == "suspect"
