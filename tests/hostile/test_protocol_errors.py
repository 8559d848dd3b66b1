"""What is not valid HTTP is answered in JSON and leaves one record; a key in it reaches no answer and no log."""

import asyncio

import orjson
import pytest
from yarl import URL

from gateway.standin import StandIn
from tests import fakes, raw

CANARY = "sk-canary-7f3a9b2c5d8e1f40"
KEY = f"authorization: Bearer {CANARY}\r\n".encode()
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
CHUNKED = POST + KEY + b"transfer-encoding: chunked\r\n\r\n"

BROKEN = {
    "a header without a colon": (POST + b"Bearer " + CANARY.encode() + b"\r\n\r\n",),
    "a control character in a header": (POST + b"authorization: Bearer \x01" + CANARY.encode() + b"\r\n\r\n",),
    "a space before the colon": (POST + b"authorization : Bearer " + CANARY.encode() + b"\r\n\r\n",),
    "a header too long": (POST + b"authorization: Bearer " + CANARY.encode() * 4000 + b"\r\n\r\n",),
    "too many headers": (POST + b"".join(b"x-%d: %s\r\n" % (n, CANARY.encode()) for n in range(600)) + b"\r\n",),
    "a path too long": (b"GET /v1/" + CANARY.encode() * 4000 + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",),
    "a length that is no number": (POST + KEY + b"content-length: " + CANARY.encode() + b"\r\n\r\n",),
    "two lengths": (POST + KEY + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",),
    "a length and chunks": (POST + KEY + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",),
    "a chunk that is no number": (CHUNKED + CANARY.encode() + b"\r\nhello\r\n",),
    "no HTTP at all": (CANARY.encode() + b"\r\n\r\n",),
    "an unknown version": (b"GET /v1/models HTTP/9.9\r\n" + KEY + b"\r\n",),
    "a method in lower case": (b"get /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n" + KEY + b"\r\n",),
}


@pytest.mark.parametrize("pieces", BROKEN.values(), ids=list(BROKEN))
async def test_a_protocol_error_is_answered_in_json_and_recorded_once(gateway, standin, pieces):
    running = await gateway(standin)
    reply = await raw.ask(running.port, *pieces)

    assert 400 <= reply.status < 500
    assert reply.error["message"]
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.headers["x-turnfold-action"] == "error"
    assert CANARY.encode() not in reply.body
    async with running.session.get(f"{running.admin_url}/api/exchanges") as answer:
        (record,) = orjson.loads(await answer.read())
    assert record["request_id"] == reply.headers["x-turnfold-request-id"]
    assert (record["status"], record["why"]) == (reply.status, "malformed")
    assert CANARY not in str(record)
    assert standin.requests == []


async def test_the_log_of_a_real_process_holds_no_byte_of_a_broken_header(command, standin):
    running, process = await command(standin, {"log": {"level": "debug", "format": "json"}})
    statuses = [(await raw.ask(running.port, *pieces)).status for pieces in BROKEN.values()]
    admin_port = URL(running.admin_url).port or 0
    assert all([(await raw.ask(admin_port, *pieces)).status >= 400 for pieces in BROKEN.values()])
    assert (await running.chat({"model": "m", "messages": [fakes.user("hi")]})).status == 200
    process.terminate()
    async with asyncio.timeout(20):
        written, _ = await process.communicate()

    assert CANARY[:10].encode() not in written
    assert b"Traceback" not in written
    events = [orjson.loads(line) for line in written.splitlines()]
    exchanges = [event for event in events if event["event"] == "exchange"]
    assert sorted(event["status"] for event in exchanges) == sorted([*statuses, 200])
    assert not [event for event in events if event["event"] in ("degraded", "unhandled")]


@pytest.mark.parametrize("target", ["/v1/chat/completions", "/v1/embeddings", "/v1/files"])
@pytest.mark.parametrize("upstreams", [1, 2])
async def test_a_body_that_breaks_while_it_is_read_is_a_400_at_once(gateway, target, upstreams):
    """`100 Continue` tells that the body is being read before the bad chunk is sent."""
    head = f"POST {target} HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
    async with StandIn() as standin:
        more = {f"u{number}": {"provider": "openai", "base_url": standin.base_url} for number in range(upstreams - 1)}
        running = await gateway(standin, {"upstreams": more})
        async with asyncio.timeout(raw.PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(head.encode())
            assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
            writer.write(b"5\r\nhello\r\n")
            await writer.drain()
            writer.write(CANARY.encode() + b"\r\n\r\n")
            reply = await raw.read_reply(reader)
            writer.close()
        (record,) = await exchanges(running)
    assert (reply.status, reply.error["code"]) == (400, "malformed_request")
    assert (record["status"], record["why"]) == (400, "malformed")


async def test_a_client_that_leaves_in_the_middle_of_a_chunk_leaves_one_record(gateway, standin):
    running = await gateway(standin)
    _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(CHUNKED + b"100\r\nhello")
    await writer.drain()
    writer.close()
    await writer.wait_closed()

    async with asyncio.timeout(10):
        while not (found := await exchanges(running)):  # noqa: ASYNC110
            await asyncio.sleep(0)  # the record has no event to wait for
    assert [record["status"] in (400, 499) for record in found] == [True]


async def exchanges(running):
    async with running.session.get(f"{running.admin_url}/api/exchanges") as answer:
        return orjson.loads(await answer.read())


RECORDED = [
    ("another endpoint", "GET", "/v1/models", b"", 200, "not_chat"),
    ("an unknown endpoint", "GET", "/v1/nothing", b"", 200, "unknown_endpoint"),
    ("a body that is no chat request", "POST", "/v1/chat/completions", b"hello", 400, "not_json"),
    ("a path that is not ours", "GET", "/v2/models", b"", 404, "rejected"),
    ("a dot segment", "GET", "/v1/../v1/models", b"", 400, "rejected"),
]


@pytest.mark.parametrize(
    ("method", "target", "body", "status", "why"), [row[1:] for row in RECORDED], ids=[row[0] for row in RECORDED]
)
async def test_every_request_leaves_one_record_and_one_number_with_its_reason(
    gateway, method, target, body, status, why
):
    async with StandIn() as standin:
        running = await gateway(standin)
        reply = await raw.ask(running.port, raw.request(target, method, body))
        (record,) = await exchanges(running)
        async with running.session.get(f"{running.admin_url}/metrics") as answer:
            metrics = (await answer.read()).decode()

    assert (record["status"], record["why"]) == (reply.status, why)
    if why != "not_json":
        assert reply.status == status
    assert record["request_id"] == reply.headers["x-turnfold-request-id"]
    line = next(line for line in metrics.splitlines() if line.startswith("turnfold_not_folded_total{"))
    assert f'why="{why}"' in line
    assert line.endswith(" 1.0")
    requests = [line for line in metrics.splitlines() if line.startswith("turnfold_requests_total{")]
    assert [f'status="{reply.status}"' in line for line in requests] == [True]


async def test_health_checks_leave_no_record(gateway, standin):
    running = await gateway(standin)
    for path in ("/healthz", "/readyz"):
        assert (await raw.ask(running.port, raw.request(path))).status == 200
    assert await exchanges(running) == []


async def test_an_unreachable_upstream_leaves_a_record(gateway):
    running = await gateway("http://127.0.0.1:9/v1")
    reply = await raw.ask(running.port, raw.request("/v1/models"))
    (record,) = await exchanges(running)
    assert (reply.status, record["status"], record["error"]) == (502, 502, "upstream_unreachable")
    assert record["upstream"] == "standin"
