"""Text that strict parsers refuse is measured and folded in every format, and a body that fits travels on as it came."""

from typing import Any

import orjson
import pytest

from gateway.standin import StandIn
from tests.fakes import words
from tests.running import Gateway

WINDOW = 2000
HALF = r"\ud83d"
"""Half of a character, as JavaScript writes a text that it cut in the middle of an emoji."""
PATHS = {
    "chat": ("/chat/completions", "messages", ""),
    "messages": ("/messages", "messages", '"max_tokens":100,'),
    "responses": ("/responses", "input", ""),
}
ODDITIES = {
    "a half in a question": ("", f"And this {HALF}?"),
    "a number that is none": ('"temperature":NaN,', "And this?"),
    "both, and infinity": ('"top_p":-Infinity,', f"{HALF}{HALF} \\\\ud83d?"),
}


def body(format: str, oddity: str, turns: int) -> bytes:
    """A conversation as a careless client writes it."""
    _, member, more = PATHS[format]
    odd, question = ODDITIES[oddity]
    said = [
        (role, f"{HALF if odd == '' else ''}{words(60, n)}") for n in range(turns) for role in ("user", "assistant")
    ]
    rows = [f'{{"role":"{role}","content":"{text}"}}' for role, text in [*said, ("user", question)]]
    return f'{{"model":"m",{more}{odd}"{member}":[{",".join(rows)}]}}'.encode()


async def asked(running: Gateway, format: str, raw: bytes) -> Any:
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "authorization": "Bearer x"}
    return await running.ask("POST", PATHS[format][0], raw, headers)


@pytest.mark.parametrize("oddity", ODDITIES)
@pytest.mark.parametrize("format", PATHS)
async def test_odd_text_is_folded_and_what_fits_travels_on_as_it_came(gateway, format: str, oddity: str) -> None:
    async with StandIn(window=100_000, rules=()) as standin, StandIn(window=100_000, rules=()) as other:
        upstreams = {"other": {"provider": "openai", "base_url": other.base_url}}
        running = await gateway(standin, {
            "upstreams": {**upstreams, "standin": {"provider": "openai", "base_url": standin.base_url}},
            "models": {"m": {"context_window": WINDOW, "tokenizer": "o200k", "upstream": "other", "output_reserve": 200}},
        })  # fmt: skip
        short = body(format, oddity, 2)
        answer = await asked(running, format, short)
        assert answer.headers["x-turnfold-action"] == "none"
        assert other.requests[-1].body == short

        answer = await asked(running, format, body(format, oddity, 60))
        assert answer.headers["x-turnfold-action"] == "fold", answer.body[:300]
        sent = orjson.loads(other.requests[-1].body.replace(b"NaN", b"null").replace(b"-Infinity", b"null"))
        kept = sent[PATHS[format][1]]
        assert 1 < len(kept) < 121
        assert "this" in str(kept[-1]) or "\ufffd\ufffd" in str(kept[-1]), "the question is whole"
        assert standin.requests == [], "the default upstream sees nothing"
