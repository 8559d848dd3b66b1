"""Compressed requests are measured, folded and mended like others. What fits passes in the encoding that it has."""

import orjson
import pytest

from gateway.standin import Completion, StandIn
from tests import fakes
from tests.compressed import PACK, zstd_with_window

WINDOW = 4000
CONFIG = {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}}
SHORT = {"messages": [fakes.user("hi")], "max_tokens": 100}
LONG = {"messages": fakes.chat(60, 100), "max_tokens": 100}
ITEMS = [{"type": "message", **message} for message in LONG["messages"]]
FORMATS = {
    "chat": ("/chat/completions", SHORT, LONG),
    "responses": ("/responses", {"input": "hi", "max_output_tokens": 100}, {"input": ITEMS, "max_output_tokens": 100}),
    "messages": ("/messages", SHORT, {**LONG, "messages": LONG["messages"][1:]}),
}


@pytest.fixture
async def strict():
    async with StandIn(window=WINDOW, otherwise=lambda _: Completion("Good.")) as standin:
        yield standin


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize(("path", "short", "long"), FORMATS.values(), ids=FORMATS)
async def test_what_fits_passes_as_it_came_and_what_does_not_is_folded(gateway, strict, path, short, long, encoding):
    running = await gateway(strict, CONFIG)
    headers = {"content-type": "application/json", "content-encoding": encoding}

    packed = PACK[encoding](orjson.dumps({"model": "m", **short}))
    answer = await running.ask("POST", path, packed, headers)
    assert (answer.status, answer.action) == (200, "none")
    assert (strict.requests[-1].body, strict.requests[-1].headers["content-encoding"]) == (packed, encoding)

    answer = await running.ask("POST", path, PACK[encoding](orjson.dumps({"model": "m", **long})), headers)
    assert (answer.status, answer.action) == (200, "fold")
    assert "content-encoding" not in strict.requests[-1].headers
    assert strict.requests[-1].violations == []


@pytest.mark.parametrize("encoding", PACK)
async def test_a_compressed_refusal_is_mended(gateway, standin, encoding):
    refusal = PACK[encoding](
        b'{"error":{"message":"maximum context length is 3000 tokens, requested 9000","code":400}}'
    )
    headers = {"content-type": "application/json", "content-encoding": encoding}
    standin.script.extend([fakes.verbatim(400, refusal, headers), fakes.reply()])
    running = await gateway(standin, {"models": {"m": {"context_window": 16_000}}})

    answer = await running.chat({"model": "m", **LONG}, {"accept-encoding": encoding})

    assert standin.requests[-2].headers["accept-encoding"] == encoding
    assert (answer.status, answer.action, answer.headers["x-turnfold-window"]) == (200, "retry", "3000")


@pytest.mark.parametrize("power", [23, 27])
async def test_a_body_whose_decoder_needs_much_memory_is_left_to_the_upstream(gateway, strict, power):
    """HTTP allows 8 MiB (RFC 9659); zstd itself allows 2 GiB."""
    running = await gateway(strict, CONFIG)
    packed = zstd_with_window(orjson.dumps({"model": "m", **LONG}), power)
    headers = {"content-type": "application/json", "content-encoding": "zstd"}

    answer = await running.ask("POST", "/chat/completions", packed, headers)

    assert (strict.requests[-1].body == packed) is (power > 23)
    assert answer.headers.get("x-turnfold-action") == ("fold" if power == 23 else "none")
