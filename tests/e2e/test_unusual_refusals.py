"""Refusals for length that look like something else: a rate limit, a missing permission, a failed server."""

import pytest

from tests import fakes

HISTORY = fakes.chat(60, 100)
TIER = b'{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}'
SHIFT = b'{"error":{"code":500,"message":"context shift is disabled","type":"server_error"}}'
QUOTA = b'{"type":"error","error":{"type":"rate_limit_error","message":"You\'re out of extra usage."}}'

UNUSUAL = {"tier-429": (429, TIER), "tier-403": (403, TIER), "context-shift": (500, SHIFT)}


@pytest.mark.parametrize(("status", "body"), UNUSUAL.values(), ids=UNUSUAL)
async def test_the_conversation_is_folded_and_sent_again(gateway, standin, status, body):
    standin.script.extend([fakes.verbatim(status, body), fakes.reply()])
    running = await gateway(standin, {"models": {"m": {"context_window": 16_000}}})
    answer = await running.chat({"model": "m", "messages": HISTORY, "max_tokens": 100})
    assert (answer.status, answer.action, answer.headers["x-turnfold-attempts"]) == (200, "retry", "2")


async def test_a_used_up_quota_is_passed_on(gateway, standin):
    standin.script.append(fakes.verbatim(429, QUOTA))
    running = await gateway(standin, {"models": {"m": {"context_window": 16_000}}})
    answer = await running.chat({"model": "m", "messages": HISTORY, "max_tokens": 100})
    assert (answer.status, answer.body, answer.headers["x-turnfold-attempts"]) == (429, QUOTA, "1")
