"""What an upstream may do on the wire: answers nobody asked for, odd heads, broken ends. None of it reaches another caller."""

import asyncio
import sys

import pytest

from tests import raw

GOOD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n"
EVIL = GOOD + b'{"for":"evil"}'


def answered(connection, number):
    return GOOD + b'{"for":"me:%d"}' % connection


@pytest.fixture(params=["own", "public"], autouse=True)
def http_client(request, monkeypatch):
    """Run every test with both clients: our own, and aiohttp's, which serves where our parser cannot be loaded."""
    if request.param == "public":
        monkeypatch.setitem(sys.modules, "gateway.upstream.own_http", None)
    return request.param


async def asked(ports, target="/v1/models"):
    return await raw.ask(ports.port, raw.request(target))


async def test_an_answer_that_nobody_asked_for_is_given_to_nobody(gateway):
    """It arrives on the idle connection before the next request."""
    async with raw.upstream(answered) as upstream:
        ports = await gateway(upstream.base_url)
        first = await asked(ports)
        for writer in upstream.writers:
            if not writer.is_closing():
                writer.write(EVIL)
        await asyncio.sleep(0)
        second = await asked(ports)
        third = await asked(ports)
    assert first.body == b'{"for":"me:0"}'
    assert all(reply.status == 200 and b"evil" not in reply.body for reply in (second, third))


async def test_an_answer_that_nobody_asked_for_and_was_read_already_is_given_to_nobody(gateway):
    """The event loop has seen it: a request to another upstream path ran in between."""
    async with raw.upstream(answered) as upstream:
        ports = await gateway(upstream.base_url)
        await asked(ports)
        for writer in upstream.writers:
            if not writer.is_closing():
                writer.write(EVIL + EVIL)
                await writer.drain()
        for _ in range(20):
            await asyncio.sleep(0)
        replies = [await asked(ports) for _ in range(3)]
    assert all(reply.status == 200 and b"evil" not in reply.body for reply in replies)


async def test_a_second_answer_in_the_same_packet_is_given_to_nobody(gateway):
    async with raw.upstream(lambda connection, number: answered(connection, number) + EVIL) as upstream:
        ports = await gateway(upstream.base_url)
        replies = [await asked(ports) for _ in range(4)]
    assert all(reply.status == 200 and b"evil" not in reply.body for reply in replies)


async def test_a_body_longer_than_it_says_is_given_to_nobody(gateway):
    async with raw.upstream(lambda connection, number: answered(connection, number) + b"x" * 100) as upstream:
        ports = await gateway(upstream.base_url)
        replies = [await asked(ports) for _ in range(4)]
    assert all(reply.status == 502 or len(reply.body) == 14 for reply in replies)
    assert all(b"xxx" not in reply.body for reply in replies)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_connection_that_was_closed_while_idle_costs_no_request(gateway, method):
    """A POST is not sent twice, so it must not be sent on a connection that has ended."""
    async with raw.upstream(answered) as upstream:
        ports = await gateway(upstream.base_url)
        body = b"{}" if method == "POST" else b""
        for _ in range(3):
            reply = await raw.ask(ports.port, raw.request("/v1/embeddings", method, body))
            assert reply.status == 200
            for writer in upstream.writers:
                writer.close()


async def test_a_sound_idle_connection_is_used_again(gateway, http_client):
    async with raw.upstream(answered) as upstream:
        ports = await gateway(upstream.base_url)
        for _ in range(5):
            assert (await asked(ports)).status == 200
        assert len(upstream.writers) == (1 if http_client == "own" else 5)


HEADS = {
    "500 headers": b"".join(b"x-h-%d: %d\r\n" % (number, number) for number in range(500)),
    "a header of 30 KB": b"x-long: " + b"a" * 30_000 + b"\r\n",
    "5000 headers": b"".join(b"x-h-%d: %d\r\n" % (number, number) for number in range(5000)),
    "a header of 200 KB": b"x-long: " + b"a" * 200_000 + b"\r\n",
    "a control character in a header": b"x-odd: a\x01b\r\n",
    "a bare line feed": b"x-odd: a\nx-turnfold-action: forged\r\n",
    "a header without a name": b": nameless\r\n",
    "a header without a colon": b"colonless\r\n",
    "two lengths": b"content-length: 3\r\n",
}


@pytest.mark.parametrize("more", HEADS.values(), ids=list(HEADS))
async def test_an_odd_head_is_handed_on_or_is_a_clear_502(gateway, more):
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + more + b"\r\nok"
    async with raw.upstream(lambda *_: head) as upstream:
        ports = await gateway(upstream.base_url)
        for target, method, body in (
            ("/v1/models", "GET", b""),
            ("/v1/chat/completions", "POST", b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'),
        ):
            reply = await raw.ask(ports.port, raw.request(target, method, body))
            assert reply.status in (200, 502)
            assert reply.headers["x-turnfold-action"] in ("none", "error")
            if reply.status == 502:
                assert reply.error["code"] == "upstream_unreachable"
                assert "valid HTTP" in str(reply.error["message"])
            else:
                assert reply.body == b"ok"


async def test_500_headers_are_handed_on(gateway):
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + HEADS["500 headers"] + b"\r\nok"
    async with raw.upstream(lambda *_: head) as upstream:
        reply = await asked(await gateway(upstream.base_url))
    assert (reply.status, reply.headers["x-h-499"]) == (200, "499")


@pytest.mark.parametrize(
    "reason", [b"OK\x01", b"\x7f", b"O\x00K", b"OK\rSet-Cookie: a=b", "Größe".encode(), b"\xff\xfe", b"", b"x" * 20_000]
)
async def test_an_odd_reason_is_handed_on_without_harm_or_is_a_clear_502(gateway, reason):
    async with raw.upstream(lambda *_: b"HTTP/1.1 429 " + reason + b"\r\ncontent-length: 2\r\n\r\nok") as upstream:
        ports = await gateway(upstream.base_url)
        for target, method, body in (
            ("/v1/models", "GET", b""),
            ("/v1/chat/completions", "POST", b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'),
        ):
            async with asyncio.timeout(raw.PATIENCE_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", ports.port)
                writer.write(raw.request(target, method, body))
                head = await reader.readuntil(b"\r\n\r\n")
                writer.close()
            line = head.split(b"\r\n")[0]
            assert line.startswith((b"HTTP/1.1 429", b"HTTP/1.1 502"))
            assert not [byte for byte in line if byte < 32 or byte == 127]
            assert b"set-cookie" not in head.lower()
