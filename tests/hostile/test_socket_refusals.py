"""A refusal on a Responses socket is read, and something smaller is sent, before the client sees any of it."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.serve.sockets import retry
from tests import running
from tests.e2e.native import MODEL, RESPONSES
from tests.hostile.wire import until

LARGE = {"models": {MODEL: {"context_window": 400_000, "tokenizer": "o200k"}}}
SMALL = {"models": {MODEL: {"context_window": 8000, "tokenizer": "o200k"}}}
TOLD = "This model's maximum context length is {0} tokens. However, your messages resulted in {1} tokens."
LIMIT = 4000


def refused(prompt, limit=LIMIT):
    error = {"type": "invalid_request_error", "code": "context_length_exceeded", "message": TOLD.format(limit, prompt)}
    return {"type": "error", "status": 400, "error": error}


def event(kind, **more):
    return {"type": kind, "sequence_number": 0, **more}


BEGUN = [event("response.created", response={"id": "r"}), event("response.in_progress", response={"id": "r"})]
SAID = [event("response.output_text.delta", delta="Noted."), event("response.completed", response={"id": "r"})]
CLOSES = None
FAILED = {"type": "response.failed", "response": {"id": "r", "error": refused(9000)["error"]}}


def create(turns, **more):
    return {"type": "response.create", **RESPONSES.body(turns, **more)}


@asynccontextmanager
async def talking(script, config=LARGE):
    """A socket through a gateway, and what its upstream gets. ``script`` has the events for each message in turn."""
    got = []

    async def answer(request):
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for frame in socket:
            got.append(orjson.loads(frame.data))
            for each in script[min(len(got), len(script)) - 1]:
                if each is CLOSES:
                    await socket.close()
                elif isinstance(each, bytes):
                    await socket.send_bytes(each)
                else:
                    await socket.send_str(orjson.dumps(each).decode())
        return socket

    app = web.Application()
    app.router.add_get("/v1/responses", answer)
    async with (
        TestServer(app) as server,
        running.in_process(running.configured(str(server.make_url("/v1")), config)) as ports,
        ports.session.ws_connect(f"{ports.base_url}/responses", max_msg_size=0) as socket,
    ):
        yield ports, socket, got


async def heard(socket, count):
    async with asyncio.timeout(running.PATIENCE_S):
        return [orjson.loads(await socket.receive_str()) for _ in range(count)]


@pytest.mark.parametrize(
    "first", [[refused(9000)], [*BEGUN, refused(9000)], [*BEGUN, FAILED]], ids=["at once", "late", "failed"]
)
@pytest.mark.parametrize("config", [LARGE, SMALL], ids=["it seemed to fit", "it was folded"])
async def test_a_refused_message_is_sent_again_smaller_and_the_client_sees_one_answer(first, config):
    async with talking([first, [*BEGUN, *SAID]], config) as (ports, socket, got):
        await socket.send_json(create(120))
        assert await heard(socket, 4) == [*BEGUN, *SAID]
        assert [each["type"] for each in got] == ["response.create"] * 2
        assert len(orjson.dumps(got[1])) < len(orjson.dumps(got[0]))
        await socket.close()
        await ports.settled()
        (record,) = [each for each in await exchanges(ports) if each["tokens_before"]]
        assert (record["action"], record["attempts"], len(record["refusals"]), record["status"]) == ("retry", 2, 1, 200)
        assert [call["status"] for call in record["calls"]] == [400, 200]


async def exchanges(ports):
    async with ports.session.get(f"{ports.admin_url}/api/exchanges") as response:
        return await response.json()


@pytest.mark.parametrize(
    "first", [[refused(9000)], [*BEGUN, refused(9000)], [*BEGUN, FAILED]], ids=["at once", "late", "failed"]
)
async def test_a_client_whose_newest_part_is_refused_is_asked_for_the_whole_which_is_folded(first):
    """Codex sends only what is new, and ends its session at a refusal. At this code it sends everything, as the API's guide says."""
    async with talking([first, [*BEGUN, *SAID]], SMALL) as (_, socket, got):
        await socket.send_json(create(1, previous_response_id="resp_7", store=False))
        (asked,) = await heard(socket, 1)
        assert asked["error"]["code"] == "previous_response_not_found"
        assert "'resp_7'" in asked["error"]["message"]
        await socket.send_json(create(120, store=False))
        assert await heard(socket, 4) == [*BEGUN, *SAID]
        assert len(orjson.dumps(got[1])) < len(orjson.dumps(create(120))) / 2


@pytest.mark.parametrize("more", [{}, {"store": True}], ids=["by default", "stored"])
async def test_a_client_whose_conversation_is_stored_gets_the_refusal(more):
    """It may have nothing else of the conversation."""
    async with talking([[refused(9000)]], SMALL) as (_, socket, _got):
        await socket.send_json(create(1, previous_response_id="resp_7", **more))
        assert await heard(socket, 1) == [refused(9000)]


async def test_other_failures_of_the_newest_part_are_forwarded():
    other = {
        "type": "error",
        "status": 500,
        "error": {"type": "server_error", "code": "server_error", "message": "Oh."},
    }
    async with talking([[other]], SMALL) as (_, socket, _got):
        await socket.send_json(create(1, previous_response_id="resp_7", store=False))
        assert await heard(socket, 1) == [other]


async def test_a_message_that_stays_refused_gets_the_upstreams_last_refusal():
    async with talking([[*BEGUN, refused(9000)]]) as (ports, socket, got):
        await socket.send_json(create(120))
        assert await heard(socket, 3) == [*BEGUN, refused(9000)]
        sizes = [len(orjson.dumps(each)) for each in got]
        assert 1 < len(sizes) <= 4
        assert sizes == sorted(set(sizes), reverse=True), "each attempt is smaller"
        await socket.send_json({"type": "response.cancel"})
        await until(lambda: got[-1] == {"type": "response.cancel"})
        assert ports.inside.gateway.admission.size_bytes == 0


@pytest.mark.parametrize(
    "late",
    [
        [*BEGUN, SAID[0], refused(9000)],
        [*BEGUN, {"type": "error", "status": 400, "error": {"code": "previous_response_not_found", "message": "No."}}],
        [b"binary", refused(9000)],
    ],
    ids=["after content", "another error", "after bytes"],
)
async def test_what_comes_after_content_or_is_no_refusal_is_handed_on(late):
    async with talking([late]) as (_, socket, got):
        await socket.send_json(create(120))
        for each in late:
            frame = await socket.receive(running.PATIENCE_S)
            assert (frame.data if isinstance(each, bytes) else orjson.loads(frame.data)) == each
        assert len(got) == 1


async def test_events_are_held_no_longer_than_a_stream_is(monkeypatch):
    monkeypatch.setattr(retry, "LONGEST_HOLD_S", 0.01)
    async with talking([BEGUN]) as (_, socket, _):
        await socket.send_json(create(3))
        assert await heard(socket, 2) == BEGUN


async def test_held_events_are_not_lost_when_the_upstream_closes():
    async with talking([[*BEGUN, CLOSES]]) as (_, socket, _):
        await socket.send_json(create(3))
        assert await heard(socket, 2) == BEGUN
        assert (await socket.receive(running.PATIENCE_S)).type is aiohttp.WSMsgType.CLOSE


async def test_of_two_unanswered_messages_none_is_sent_again():
    """It is not known which of them is refused."""
    async with talking([[], [refused(9000)]]) as (_, socket, got):
        await socket.send_json(create(120))
        await socket.send_json(create(120))
        assert await heard(socket, 1) == [refused(9000)]
        assert len(got) == 2


async def test_in_observe_mode_a_refusal_is_handed_on():
    async with talking([[refused(9000)]], {**LARGE, "fold": {"mode": "observe"}}) as (_, socket, got):
        await socket.send_json(create(120))
        assert await heard(socket, 1) == [refused(9000)]
        assert len(got) == 1


async def test_in_observe_mode_what_was_sent_is_learned_from():
    """The client's message was sent, and not the fold that was planned, which has 768 tokens."""
    config = {"models": {MODEL: {"context_window": 2000, "tokenizer": "o200k"}}, "fold": {"mode": "observe"}}
    async with talking([[refused(9000, 1500)]], config) as (ports, socket, _):
        await socket.send_json(create(120))
        assert await heard(socket, 1) == [refused(9000, 1500)]
        async with ports.session.get(f"{ports.admin_url}/api/learned") as response:
            facts = (await response.json())["facts"]
        (window,) = (fact for fact in facts if fact["what"] == "window")
        assert "25,371 by our count" in window["evidence"]


async def test_a_failure_of_our_own_hands_on_the_refusal(monkeypatch):
    async def broken(*_):
        raise RecursionError("forced")

    monkeypatch.setattr(retry, "run_decisions", broken)
    async with talking([[*BEGUN, refused(9000)]]) as (_, socket, got):
        await socket.send_json(create(120))
        assert await heard(socket, 3) == [*BEGUN, refused(9000)]
        assert len(got) == 1


async def test_what_another_process_learned_holds_for_messages_too(tmp_path):
    config = {**LARGE, "store": {"url": f"sqlite:///{tmp_path}/shared.db"}}
    async with talking([[refused(9000)], [*BEGUN, *SAID]], config) as (ports, socket, got):
        await socket.send_json(create(120))
        await heard(socket, 4)
        await ports.settled()
        upstream = ports.inside.gateway.settings.upstreams["standin"].base_url
        async with (
            running.in_process(running.configured(upstream, config)) as other,
            other.session.ws_connect(f"{other.base_url}/responses", max_msg_size=0) as fresh,
        ):
            await fresh.send_json(create(120))
            await heard(fresh, 4)
        sizes = [len(orjson.dumps(each)) for each in got]
        assert len(sizes) == 3
        assert sizes[2] < sizes[0] / 2


@pytest.mark.parametrize("quotes", [False, True])
async def test_a_refusal_is_learned_from_unless_it_quotes_the_client(quotes):
    """The retry is for this message alone."""
    more = {"instructions": TOLD.format(LIMIT, 9000)} if quotes else {}
    async with talking([[refused(9000)], [*BEGUN, *SAID]]) as (ports, socket, got):
        await socket.send_json(create(120, **more))
        await heard(socket, 4)
        assert len(got) == 2
        async with ports.session.get(f"{ports.admin_url}/api/learned") as response:
            assert (b"stated" not in await response.read()) == quotes
