"""An answer that ended for want of room, before a word of it, is a refusal; one that the client wished so short is none."""

from typing import Any

import orjson
import pytest

from providers.overflow.signs import read_refusal
from providers.record import Overflow

DETAILS = {"reason": "max_output_tokens"}
USAGE = {"input_tokens": 8000, "output_tokens": 192}
NO_ROOM = {
    "status": "incomplete",
    "incomplete_details": DETAILS,
    "output": [],
    "usage": USAGE,
    "max_output_tokens": 4096,
}
REFUSED = Overflow(limit=8192, prompt=8000, sign="no_room_for_answer")
CASES: list[tuple[dict[str, Any], Overflow | None]] = [
    (NO_ROOM, REFUSED),
    ({**NO_ROOM, "output": [{"type": "reasoning", "summary": []}]}, REFUSED),
    ({**NO_ROOM, "max_output_tokens": None}, REFUSED),
    ({**NO_ROOM, "max_output_tokens": 192}, None),
    ({**NO_ROOM, "output": [{"type": "message", "content": []}]}, None),
    ({**NO_ROOM, "incomplete_details": {"reason": "content_filter"}}, None),
    ({**NO_ROOM, "status": "completed"}, None),
    ({**NO_ROOM, "usage": None}, None),
]


@pytest.mark.parametrize(("response", "expected"), CASES)
def test_an_answer_that_has_no_room(response: dict[str, Any], expected: Overflow | None) -> None:
    whole = {"id": "resp_1", "object": "response", **response}

    assert read_refusal(200, orjson.dumps(whole)) == expected
    assert read_refusal(200, orjson.dumps({"type": "response.incomplete", "response": whole})) == expected


def test_the_long_context_tier_begins_at_200_000_tokens() -> None:
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}'

    refusal = read_refusal(429, body)

    assert isinstance(refusal, Overflow)
    assert (refusal.limit, refusal.implied) == (None, 200_000)
