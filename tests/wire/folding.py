"""A body of any format, folded: what the tests of the wire formats ask of the core."""

from typing import Any

import orjson

from gateway.context.count.message_cost import counter
from gateway.context.cut.budget import Budget
from gateway.context.cut.policy import Policy
from gateway.context.write.folding import fold_conversation
from gateway.wire.format import Conversation, Edits, Format

COUNTER = counter("gpt-5")


def read(format: Format, body: Any) -> Conversation:
    """Read a body that can be decided about."""
    request = format.parse(orjson.dumps(body))
    assert request is not None
    return request


def folded(format: Format, body: Any, share: float, rung: int = 1) -> bytes:
    """The body folded to a share of its size."""
    request = read(format, body)
    room = int(sum(map(COUNTER.message, request.messages)) * share) + 50
    draft = fold_conversation(request.messages, Budget(room, 0, 0, 0), COUNTER, Policy(), rung=rung)
    assert all(step.stage != "failed" for step in draft.steps)
    return format.encode(request, Edits(messages=draft.messages))
