"""Two gateways that share a store send a conversation in the same bytes, whatever each of them has learned by itself."""

import orjson
import pytest

from gateway.standin import StandIn
from tests import fakes
from tests.running import configured, in_process

WINDOW = 3000


def body(messages) -> bytes:
    return orjson.dumps({"model": "unheard-of", "messages": messages, "max_tokens": 50})


@pytest.mark.parametrize("scale", [1.6, 0.7])
async def test_a_gateway_folds_as_another_one_that_has_learned_how_the_upstream_counts(tmp_path, scale):
    """The second gateway knew the model before the first one was billed, and has seen none of its bills."""
    config = {
        "store": {"url": f"sqlite:///{tmp_path}/shared.db"},
        "models": {"unheard-of": {"context_window": WINDOW}},
    }
    long = fakes.chat(60, 100)
    async with StandIn(window=WINDOW, scale=scale, dialect="openai") as standin:
        text = configured(standin, config)
        async with in_process(text) as first, in_process(text) as second:
            await second.chat(body([fakes.user("Hello")]))
            for turns in range(6, 15):
                await first.chat(body(fakes.chat(turns, 100)))
                await first.settled()
            learned = await _learned(first)
            sent = []
            for gateway in (first, second):
                assert (await gateway.chat(body(long))).status == 200
                sent.append(standin.chats[-1].body)
                await gateway.settled()

    assert b'"ratio"' in learned, "the first gateway has learned how the upstream counts"
    assert sent[0] == sent[1]


KINDS = (fakes.chat, fakes.tool_turns, fakes.tool_loop)


def conversation(number: int) -> list[dict]:
    """One of many conversations that do not fit: of each kind, of many lengths, with messages of many sizes."""
    size = 60 + number * 37 % 150
    messages = KINDS[number % len(KINDS)](WINDOW // size + 5 + number % 17, size)
    return [messages[0], fakes.user(f"This is conversation {number}."), fakes.assistant("Good."), *messages[1:]]


async def test_200_conversations_leave_two_gateways_alike_that_were_billed_differently(tmp_path):
    """Each has its own history: one was billed more than it counted, the other less. What one learns on the way the other reads."""
    config = {
        "store": {"url": f"sqlite:///{tmp_path}/shared.db"},
        "models": {"unheard-of": {"context_window": WINDOW}},
    }
    differ = []
    folded = 0
    async with StandIn(window=2 * WINDOW, scale=1.4, dialect="openai") as standin:
        text = configured(standin, config)
        async with in_process(text) as first, in_process(text) as second:
            for gateway, scale in ((first, 1.4), (second, 0.8)):
                standin.scale = scale
                for turns in range(6, 15):
                    await gateway.chat(body(fakes.chat(turns, 100)))
                    await gateway.settled()
            for number in range(200):
                came = body(conversation(number))
                sent = []
                for gateway in (first, second) if number % 2 else (second, first):
                    await gateway.chat(came)
                    await gateway.settled()
                    sent.append(standin.chats[-1].body)
                folded += sent[0] != came
                differ += [number] if sent[0] != sent[1] else []

    assert differ == []
    assert folded > 150


async def _learned(gateway) -> bytes:
    async with gateway.session.get(f"{gateway.admin_url}/api/learned") as answer:
        return await answer.read()
