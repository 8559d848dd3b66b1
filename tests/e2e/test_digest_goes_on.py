"""An agent works through a running gateway: when the cut moves, the upstream sees the digest of before at the same place again."""

from itertools import pairwise

import orjson

from gateway.context import frames
from gateway.standin import StandIn
from gateway.wire.message import text_of
from tests import fakes

WINDOW = 4000
STEPS = 90


async def test_the_digest_of_before_stays_and_goes_on(gateway):
    """Each request is sent to one of two gateways in turn: neither has seen all of them."""
    messages = fakes.tool_loop(STEPS, 120)
    config = {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}}
    async with StandIn(window=WINDOW, dialect="openai") as standin:
        gateways = [await gateway(standin, config) for _ in range(2)]
        ends = [end for end, message in enumerate(messages, 1) if message["role"] == "tool"]
        for number, end in enumerate(ends):
            body = orjson.dumps({"model": "m", "messages": messages[:end], "max_tokens": 50})
            assert (await gateways[number % 2].chat(body)).status == 200
        sent = [seen.json["messages"] for seen in standin.chats]

    digests = [digest for digest in map(_digest, sent) if digest]
    moves = [(before, now) for before, now in pairwise(digests) if before != now]
    stayed = [now for before, now in moves if now[0] == before[0]]

    assert len(moves) > 3
    assert stayed
    assert all(len(digest) == 2 for digest in stayed)


def _digest(messages: list[dict]) -> tuple[str, ...]:
    """Return the frames before the first words of the user."""
    opening = next(message for message in messages if message["role"] == "user")
    return tuple(part for part in frames.split(text_of(opening)) if frames.is_frame(part))
