"""An upstream that repeats the configured key in an error does not give it to the client."""

import gzip

import orjson
import pytest

from tests import fakes, raw

KEY = "sk-operators-own-key-8f3a91"
SAID = f'{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}'.encode()
PATHS = ["/chat/completions", "/responses", "/messages", "/embeddings", "/messages/count_tokens", "/responses/compact"]


def refused(body, more=b"", status=b"401 Unauthorized"):
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\nwww-authenticate: Bearer error=%b\r\n" % (
        status,
        KEY.encode(),
    )
    return head + more + b"content-length: %d\r\n\r\n" % len(body) + body


def in_chunks(body):
    head = b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"


ANSWERS = {
    "plain": refused(SAID),
    "status 400": refused(SAID, status=b"400 Bad Request"),
    "gzip": refused(gzip.compress(SAID), b"content-encoding: gzip\r\n"),
    "in chunks of one byte": in_chunks(SAID),
}


def config(base_url, **upstream):
    return {"upstreams": {"standin": {"provider": "openai", "base_url": base_url, "api_key": KEY, **upstream}}}


async def asked(ports, path="/chat/completions"):
    body = orjson.dumps({"model": "m", "max_tokens": 5, "messages": [fakes.user("hi")], "input": "hi"})
    return await raw.ask(ports.port, raw.request(f"/v1{path}", "POST", body, content_type="application/json"))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("said", ANSWERS.values(), ids=list(ANSWERS))
async def test_an_error_that_repeats_the_key_reaches_the_client_without_it(gateway, path, said):
    async with raw.upstream(lambda connection, number: said) as upstream:
        answer = await asked(await gateway(upstream.base_url, config(upstream.base_url)), path)
    assert answer.status in (400, 401)
    assert KEY not in f"{answer.headers} {answer.body!r}"
    assert b"Incorrect API key provided: ***" in answer.body


async def test_a_key_in_a_configured_header_is_hidden_too(gateway):
    said = refused(SAID.replace(KEY.encode(), b"org-0123456789abcdef-9"))
    async with raw.upstream(lambda connection, number: said) as upstream:
        headers = {"x-auth-team": "org-0123456789abcdef-9"}
        answer = await asked(await gateway(upstream.base_url, config(upstream.base_url, headers=headers)))
    assert b"org-" not in answer.body


@pytest.mark.parametrize("key", ["EMPTY", "sk-another-key-of-another-operator"])
async def test_an_error_without_the_key_travels_on_as_it_came(gateway, key):
    """Short keys are no secrets, and stand in many errors."""
    said = SAID.replace(KEY.encode(), b"EMPTY")
    async with raw.upstream(lambda connection, number: refused(said)) as upstream:
        answer = await asked(await gateway(upstream.base_url, config(upstream.base_url, api_key=key)))
    assert answer.body == said
