"""What a gateway has seen when an operator opens its dashboard: conversations that grow, a refusal, an error, hostile names."""

from typing import Any

from gateway.standin import StandIn
from tests import fakes
from tests.running import Gateway

CONFIG: dict[str, Any] = {
    "models": {
        "m": {"context_window": 4000, "tokenizer": "o200k", "input_price": 2.0, "cached_price": 0.5},
        "small": {"context_window": 2500, "tokenizer": "o200k"},
    },
    "observe": {"text": True},
}
HOSTILE = '<img src=x onerror="window.harmed=1"><script>window.harmed=2</script>\'"`${7*7}{{7*7}}\u202egpj.exe'
SECRET = "please never deploy on a Friday, ticket QX-4711"


async def conversation(gateway: Gateway, turns: range, model: str = "m", **headers: str) -> str:
    """Let one conversation grow; return the id of its last request."""
    for count in turns:
        messages = fakes.chat(count, 120)
        messages[1] = fakes.user(f"Question 0 for {model}: {SECRET}?")
        answer = await gateway.chat({"model": model, "messages": messages, "max_tokens": 200}, headers)
        assert answer.status == 200, answer.body
    return str(answer.headers["x-turnfold-request-id"])


async def day(gateway: Gateway, standin: StandIn) -> str:
    """Send a day's mixture in a second; return the id of a request that was folded."""
    folded = await conversation(gateway, range(12, 60, 8))
    await conversation(gateway, range(4, 8), "gpt-4o")
    standin.script.extend([fakes.refuse(limit=2000), fakes.refuse(limit=2000)])
    await conversation(gateway, range(20, 22), "small")
    standin.script.append(fakes.error(500, "boom"))
    await gateway.chat({"model": "gpt-4o", "messages": [fakes.user("hi")]})
    await gateway.ask("POST", "/embeddings", b'{"model":"e","input":"x"}', {"content-type": "application/json"})
    await gateway.chat({"model": HOSTILE, "messages": [fakes.system(HOSTILE), fakes.user(HOSTILE)]})
    if gateway.settled:
        await gateway.settled()
    return folded
