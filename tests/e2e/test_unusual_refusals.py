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


LIMIT = b'{"error":{"message":"This model\'s maximum context length is 8000 tokens. However, your messages resulted in 9000 tokens.","code":400}}'
EVENTS = {"content-type": "text/event-stream"}


async def test_a_refusal_that_is_json_under_a_streams_type_is_read(gateway, standin):
    standin.script.extend([fakes.verbatim(200, LIMIT, EVENTS), fakes.events(fakes.delta("Good."))])
    running = await gateway(standin, {"models": {"m": {"context_window": 16_000}}})
    answer = await running.chat({"model": "m", "messages": HISTORY, "max_tokens": 100, "stream": True})
    assert (answer.status, answer.action, answer.headers["x-turnfold-window"]) == (200, "retry", "8000")
    assert 4000 < answer.tokens[1] < 8000


@pytest.mark.parametrize(
    "body",
    [b'{"choices":[{"message":{"content":"Good."}}]}', b'\n{"error":{"message":"No such key"}}', b"Busy, try later"],
)
async def test_any_other_body_under_a_streams_type_is_handed_on(gateway, standin, body):
    standin.script.append(fakes.verbatim(200, body, EVENTS))
    running = await gateway(standin, {"models": {"m": {"context_window": 2000}}})
    answer = await running.chat({"model": "m", "messages": HISTORY, "max_tokens": 100, "stream": True})
    assert (answer.status, answer.body, answer.headers["x-turnfold-attempts"]) == (200, body, "1")


@pytest.mark.parametrize("body", [b"", b"\n\n", b": ping\n\nid: 7\nretry: 5\nevent: done\n\n"])
async def test_a_stream_that_says_nothing_is_a_refusal_of_a_folded_prompt(gateway, standin, body):
    standin.script.extend([fakes.verbatim(200, body, EVENTS), fakes.events(fakes.delta("Good."))])
    running = await gateway(standin, {"models": {"m": {"context_window": 2000}}})
    answer = await running.chat({"model": "m", "messages": HISTORY, "max_tokens": 100, "stream": True})
    assert (answer.status, answer.action, answer.headers["x-turnfold-attempts"]) == (200, "retry", "2")
