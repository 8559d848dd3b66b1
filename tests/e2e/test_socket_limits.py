"""The limits of a key on WebSockets: a message beyond them is refused by an event of its API, and every bill on a socket counts."""

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from openai import AsyncOpenAI

from gateway.serve.sockets import limits
from tests import running
from tests.e2e.test_client_keys import ASK, BEARER, KEY, hashed, left

CREATE = '{"type":"response.create","model":"gpt-4o","input":"hi","stream_id":"second"}'
TOO_DEEP_TO_BE_READ = f'{CREATE[:-1]},"metadata":{"[" * 5000}{"]" * 5000}}}'
REALTIME = "/realtime?model=gpt-4o"
APPEND = '{"type":"input_audio_buffer.append","audio":"","event_id":"mine"}'
USAGE = {"input_tokens": 700, "output_tokens": 100}
CREATED = {"type": "response.created", "response": {"id": "r"}}
DONE = {"type": "response.done", "response": {"id": "r", "usage": USAGE}}
ANSWER = [CREATED, DONE]


@pytest.fixture
def says():
    """The events with which the server `speaking` answers each message in turn; the last ones again and again."""
    return [ANSWER]


@pytest.fixture
async def speaking(says):
    """A server whose sockets answer each message, and what reached it."""
    received = []

    async def handler(request):
        socket = web.WebSocketResponse(protocols=["realtime"])
        await socket.prepare(request)
        async for frame in socket:
            received.append(frame.data)
            for event in says[min(len(received), len(says)) - 1]:
                await (socket.send_bytes(event) if isinstance(event, bytes) else socket.send_json(event))
        return socket

    application = web.Application()
    application.router.add_get("/v1/responses", handler)
    application.router.add_get("/v1/realtime", handler)
    async with TestServer(application) as server:
        yield str(server.make_url("/v1")), received


@pytest.fixture
def limited(gateway, speaking, at_noon, monkeypatch):
    """Start a gateway in front of `speaking` for a key with limits, which are looked at with every message."""
    monkeypatch.setattr(limits, "KNOWN_S", 0.0)

    async def start(**of_key):
        return await gateway(speaking[0], {"keys": {"alice": {"hash": hashed(KEY), **of_key}}})

    return start


async def is_answered(gateway, socket, message):
    """Say a message that is answered by one response, and wait until its tokens are charged."""
    await say(socket, message)
    assert [(await heard(socket))["type"] for _ in range(2)] == ["response.created", "response.done"]
    await gateway.settled()


async def say(socket, message):
    await (socket.send_str if isinstance(message, str) else socket.send_bytes)(message)


async def heard(socket):
    """The next event."""
    return orjson.loads((await socket.receive(running.PATIENCE_S)).data)


def opened(gateway, path):
    return gateway.session.ws_connect(f"{gateway.base_url}{path}", headers=BEARER)


MESSAGES = [
    ("/responses", CREATE, 2),
    ("/responses", CREATE.encode(), 2),
    ("/responses", f'{CREATE[:-1]},"temperature":NaN}}', 2),
    (REALTIME, '{"type":"response.create","event_id":"mine"}', 1),
    (REALTIME, r'{"type":"response.create","event_id":"mine","half":"\ud83d"}', 1),
    (REALTIME, APPEND, 2),
    (REALTIME, b"\0\1", 2),
]
"""By path a message, and how often it is served: an answer is billed 800 tokens. A second answer in Realtime reads the first."""


@pytest.mark.parametrize(("path", "message", "served"), MESSAGES)
async def test_a_message_beyond_the_limit_is_refused_and_the_socket_stays_open(
    limited, speaking, path, message, served
):
    gateway = await limited(tpm=1000)
    async with opened(gateway, path) as socket:
        for _ in range(served):
            await is_answered(gateway, socket, message)
        for _ in range(2):
            await say(socket, message)
            refused = await heard(socket)
            assert refused["type"] == "error"
            assert (refused["error"]["type"], refused["error"]["code"]) == ("rate_limit_error", "rate_limit_exceeded")
            if path == "/responses":
                assert (refused["status"], refused["stream_id"]) == (429, "second")
                assert refused["error"]["headers"]["Retry-After"] == "45"
            else:
                assert refused["event_id"].startswith("event_")
                assert refused["error"]["event_id"] == ("mine" if isinstance(message, str) else None)
    assert len(speaking[1]) == served
    assert (await gateway.chat({**ASK, "max_tokens": 200}, BEARER)).status == 429


@pytest.mark.parametrize("kind", sorted(limits.STOPS))
async def test_what_only_stops_work_passes_without_tokens(limited, speaking, kind):
    gateway = await limited(tpm=100)
    async with opened(gateway, REALTIME) as socket:
        for message in (APPEND, orjson.dumps({"type": kind}).decode()):
            await is_answered(gateway, socket, message)
    assert len(speaking[1]) == 2


async def test_a_message_of_two_types_stops_nothing(limited, speaking):
    gateway = await limited(tpm=100)
    async with opened(gateway, REALTIME) as socket:
        await is_answered(gateway, socket, APPEND)
        await say(socket, APPEND.replace("}", ',"type":"response.cancel"}'))
        assert (await heard(socket))["error"]["code"] == "rate_limit_exceeded"
    assert len(speaking[1]) == 1


async def test_a_stopping_message_is_held_to_the_models_of_its_key(limited, speaking):
    gateway = await limited(tpm=100, models=["gpt-4o"])
    async with opened(gateway, REALTIME) as socket:
        await is_answered(gateway, socket, APPEND)
        await say(socket, '{"type":"response.cancel","session":{"model":"dear"}}')
        assert (await socket.receive()).extra == "model_not_allowed"
    assert len(speaking[1]) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/responses", CREATE),
        (REALTIME, '{"type":"response.create"}'),
        ("/responses", TOO_DEEP_TO_BE_READ),
        (REALTIME, TOO_DEEP_TO_BE_READ),
        ("/responses", f'{CREATE[:-1]},"type":"session.update"}}'),
        ("/responses", CREATE.replace('"type"', '"Type"')),
        (REALTIME, '{"type":"response.create","type":"input_audio_buffer.clear"}'),
        (REALTIME, r'{"typ\u0065":"response.create","type":"input_audio_buffer.clear"}'),
        (REALTIME, '{"TYPE":"response.create"}'),
        (REALTIME, r'{"type":"response.create","type":"x","half":"\ud83d"}'),
    ],
)
async def test_messages_that_ask_count_as_requests(limited, speaking, path, message):
    gateway = await limited(rpm=3)
    async with opened(gateway, path) as socket:
        for _ in range(2):
            await say(socket, message)
            assert [(await heard(socket))["type"] for _ in range(2)] == ["response.created", "response.done"]
        await say(socket, message)
        assert (await heard(socket))["error"]["code"] == "rate_limit_exceeded"
    assert len(speaking[1]) == 2
    async with gateway.session.get(f"{gateway.admin_url}/api/exchanges") as answer:
        (refused,) = [each for each in await answer.json() if each["status"] == 429]
    assert (refused["error"], refused["attempts"], refused["key"]) == ("rate_limit_exceeded", 0, "alice")


@pytest.mark.parametrize(
    ("path", "more"), [("/responses", {"model": "gpt-4o", "input": "x" * 15_000}), (REALTIME, {"response": {"instructions": "x" * 15_000}})]
)  # fmt: skip
async def test_sockets_at_once_spend_no_more_tokens_than_the_limit(limited, speaking, path, more):
    gateway = await limited(tpm=10_000)
    create = orjson.dumps({"type": "response.create", **more}).decode()
    sockets = [await opened(gateway, path) for _ in range(5)]
    for socket in sockets:
        await socket.send_str(create)
    answers = [await heard(socket) for socket in sockets]
    for socket in sockets:
        await socket.close()
    assert sorted(answer["type"] for answer in answers) == ["error"] * 3 + ["response.created"] * 2
    assert len(speaking[1]) == 2
    await gateway.settled()
    assert await left(gateway) == 10_000 - 2 * 800


async def test_a_realtime_client_of_openais_reads_the_refusal(limited, speaking):
    gateway = await limited(rpm=1)
    async with (
        AsyncOpenAI(api_key=KEY, base_url=gateway.base_url) as client,
        client.realtime.connect(model="gpt-4o") as connection,
    ):
        await connection.response.create(event_id="mine")
        refused = await connection.recv()
        assert refused.type == "error"
        assert (refused.error.code, refused.error.event_id) == ("rate_limit_exceeded", "mine")
        await connection.input_audio_buffer.append(audio="AAAA")
        assert (await connection.recv()).type == "response.created"
    assert len(speaking[1]) == 1


async def test_a_responses_client_of_openais_reads_the_refusal(limited, speaking):
    gateway = await limited(rpm=1)
    async with (
        AsyncOpenAI(api_key=KEY, base_url=gateway.base_url) as client,
        client.responses.connect() as connection,
    ):
        for _ in range(2):
            await connection.response.create(model="gpt-4o", input="hi")
            refused = await connection.recv()
            assert refused.type == "error"
            assert (refused.status, refused.error.code) == (429, "rate_limit_exceeded")
    assert speaking[1] == []


@pytest.mark.parametrize("says", [[[CREATED], [DONE]]])
async def test_a_response_that_nobody_asked_for_is_reserved_while_it_lasts(limited, speaking):
    """The upstream answers speech by itself."""
    gateway = await limited(tpm=10_000)
    async with opened(gateway, REALTIME) as socket:
        await say(socket, APPEND)
        await heard(socket)
        assert await left(gateway) == 10_000 - 1000, "a tenth of the limit"
        await say(socket, APPEND)
        await heard(socket)
        await gateway.settled()
        assert await left(gateway) == 10_000 - 800


@pytest.mark.parametrize("says", [[ANSWER, [CREATED], [DONE]]])
async def test_a_later_response_reserves_what_the_conversation_had_before(limited, speaking):
    gateway = await limited(tpm=10_000)
    async with opened(gateway, REALTIME) as socket:
        await is_answered(gateway, socket, APPEND)
        await say(socket, APPEND)
        await heard(socket)
        assert await left(gateway) == 10_000 - 800 - (800 + 1000)
        await say(socket, APPEND)
        await heard(socket)
        await gateway.settled()
        assert await left(gateway) == 10_000 - 2 * 800


@pytest.mark.parametrize("says", [[[CREATED], []]])
async def test_a_response_that_does_not_end_gives_its_reservation_back(limited, speaking):
    gateway = await limited(tpm=10_000)
    async with opened(gateway, REALTIME) as socket:
        await say(socket, APPEND)
        await heard(socket)
    await gateway.settled()
    assert await left(gateway) == 10_000


@pytest.mark.parametrize("about", ["mine", None])
async def test_a_response_that_the_upstream_refuses_gives_its_reservation_back(limited, says, speaking, about):
    refused = {"type": "error", "error": {"type": "invalid_request_error", "code": "active", "event_id": about}}
    says[:] = [[refused | {"error": {"type": "invalid_request_error", "event_id": "another"}}, refused]]
    gateway = await limited(tpm=10_000)
    async with opened(gateway, REALTIME) as socket:
        await say(
            socket,
            orjson.dumps(
                {"type": "response.create", "event_id": about} if about else {"type": "response.create"}
            ).decode(),
        )
        await heard(socket)
        await heard(socket)
        await gateway.settled()
        assert await left(gateway) == 10_000
    async with gateway.session.get(f"{gateway.admin_url}/api/exchanges") as answer:
        statuses = [each["status"] for each in await answer.json() if each["why"] == "websocket"]
    assert sorted(statuses) == [101, 400]


TRANSCRIBED = {
    "type": "conversation.item.input_audio_transcription.completed",
    "transcript": "Hello",
    "usage": {"type": "tokens", "input_tokens": 140, "output_tokens": 9, "total_tokens": 149},
}
BY_TIME = {**TRANSCRIBED, "usage": {"type": "duration", "seconds": 3}}


@pytest.mark.parametrize(
    ("events", "tokens"),
    [
        ([TRANSCRIBED], 149),
        ([BY_TIME], 0),
        ([orjson.dumps(TRANSCRIBED)], 149),
        ([orjson.dumps(event) for event in ANSWER], 800),
        ([CREATED, TRANSCRIBED, DONE], 949),
    ],
)
async def test_every_bill_on_a_realtime_socket_counts(limited, says, speaking, events, tokens):
    says[:] = [events]
    gateway = await limited(tpm=10_000)
    async with opened(gateway, REALTIME) as socket:
        await say(socket, APPEND)
        for event in events:
            frame = await socket.receive(running.PATIENCE_S)
            assert (
                frame.data == (event if isinstance(event, bytes) else orjson.dumps(event).decode())
                or orjson.loads(frame.data) == event
            )
        await gateway.settled()
        assert await left(gateway) == 10_000 - tokens


@pytest.mark.parametrize("says", [[[orjson.dumps(event) for event in ANSWER]]])
async def test_a_bill_in_a_binary_frame_of_responses_counts(limited, speaking):
    gateway = await limited(tpm=10_000)
    async with opened(gateway, "/responses") as socket:
        await is_answered(gateway, socket, CREATE)
        assert await left(gateway) == 10_000 - 800
