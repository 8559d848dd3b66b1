"""Several upstreams: whose turn it is, who steps in when one fails, and who is asked when it is too long."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest
import yaml

from gateway.standin import Raw, StandIn
from tests import fakes, running

HELLO = [fakes.user("Hello")]
UNAVAILABLE = fakes.verbatim(503, '{"error":{"message":"overloaded"}}')


class Scene:
    """Some stand-ins by name and one gateway in front of them."""

    def __init__(self, gateway: running.Gateway, upstreams: dict[str, StandIn]) -> None:
        self.gateway = gateway
        self.upstreams = upstreams

    async def ask(self, model: str = "m", messages: Any = None, **headers: str) -> running.Answered:
        body = {"model": model, "messages": messages or HELLO}
        return await self.gateway.chat(body, {name.replace("_", "-"): value for name, value in headers.items()})

    def calls(self) -> dict[str, int]:
        return {name: len(upstream.chats) for name, upstream in self.upstreams.items()}


@pytest.fixture
async def scene() -> AsyncIterator[Any]:
    """Start stand-ins and a gateway that knows them all; the first is the default."""
    async with AsyncExitStack() as stack:

        async def start(config: dict[str, Any], **upstreams: StandIn) -> Scene:
            for upstream in upstreams.values():
                await stack.enter_async_context(upstream)
            more = config.pop("upstreams", {})
            named = {
                name: {"provider": "openai", "base_url": upstream.base_url, **more.get(name, {})}
                for name, upstream in upstreams.items()
            }
            dead = {name: value for name, value in more.items() if name not in named}
            first = next(iter(upstreams.values()))
            text = running.configured(first, {**config, "default_upstream": next(iter(named))})
            document = {**yaml.safe_load(text), "upstreams": {**named, **dead}}
            return Scene(await stack.enter_async_context(running.in_process(yaml.safe_dump(document))), upstreams)

        yield start


def refused_port() -> dict[str, str]:
    (port,) = running.free_ports(1)
    return {"provider": "openai", "base_url": f"http://127.0.0.1:{port}/v1"}


async def test_a_configured_key_takes_the_place_of_the_clients_and_else_the_clients_travels(scene: Any) -> None:
    told = await scene(
        {"upstreams": {"keyed": {"api_key": "sk-ours"}}, "models": {"k": {"upstream": "keyed"}}},
        open=StandIn(),
        keyed=StandIn(),
    )
    await told.ask("m", authorization="Bearer sk-client")
    await told.ask("k", authorization="Bearer sk-client")

    assert told.upstreams["open"].chats[0].headers["authorization"] == "Bearer sk-client"
    assert told.upstreams["keyed"].chats[0].headers["authorization"] == "Bearer sk-ours"


@pytest.mark.parametrize("fault", [UNAVAILABLE, fakes.RATE_LIMITED, fakes.RESET], ids=["503", "429", "reset"])
async def test_a_listed_fallback_steps_in_when_the_upstream_fails(scene: Any, fault: Raw) -> None:
    told = await scene(
        {"upstreams": {"first": {"fallbacks": ["second"]}}}, first=StandIn(script=[fault]), second=StandIn()
    )
    answer = await told.ask()

    assert answer.status == 200
    assert told.calls() == {"first": 1, "second": 1}
    assert answer.headers["x-turnfold-attempts"] == "2"


@pytest.mark.parametrize("fault", [UNAVAILABLE, fakes.RESET], ids=["503", "reset"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/responses", {"input": "hi", "previous_response_id": "resp_1"}),
        ("/responses", {"input": "hi", "conversation": {"id": "conv_1"}}),
        ("/responses", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
        ("/messages", {"messages": HELLO, "max_tokens": 9, "thread": {"type": "continue", "id": "thread_1"}}),
    ],
)
async def test_a_fallback_is_not_asked_to_continue_what_it_does_not_know(
    scene: Any, path: str, body: Any, fault: Raw
) -> None:
    told = await scene(
        {
            "models": {
                "m": {"fallbacks": ["other", "small"]},
                "small": {"upstream": "first"},
                "other": {"upstream": "second"},
            },
        },
        first=StandIn(script=[fault]),
        second=StandIn(),
    )
    raw, kind = orjson.dumps({"model": "m", **body}), {"content-type": "application/json"}
    await told.gateway.ask("POST", path, raw, kind)

    asked = {
        name: [seen.json["model"] for seen in upstream.requests if seen.json]
        for name, upstream in told.upstreams.items()
    }
    assert asked == {"first": ["m", "small"], "second": []}


async def test_a_clients_key_does_not_travel_to_whoever_steps_in(scene: Any) -> None:
    """It was given to the model the client named; a fallback or a larger model uses its own key or none."""
    told = await scene(
        {"upstreams": {"first": {"fallbacks": ["second"]}}}, first=StandIn(script=[UNAVAILABLE]), second=StandIn()
    )
    keys = {"authorization": "Bearer sk-client", "api_key": "sk-client", "x_goog_api_key": "sk-client"}
    await told.ask(**keys, x_app="mine", idempotency_key="once")
    sent = told.upstreams["second"].chats[0].headers

    assert "authorization" not in sent
    assert "sk-client" not in str(sent)
    assert sent["x-app"] == "mine"
    assert sent["idempotency-key"] == "once"


async def test_without_a_fallback_the_upstreams_fault_is_the_answer(scene: Any) -> None:
    told = await scene({}, only=StandIn(script=[UNAVAILABLE]))
    answer = await told.ask()

    assert (answer.status, answer.json) == (503, {"error": {"message": "overloaded"}})
    assert told.calls() == {"only": 1}


async def test_an_error_of_the_request_itself_is_no_reason_to_ask_elsewhere(scene: Any) -> None:
    bad = fakes.error(400, "temperature must be at most 2")
    told = await scene(
        {"upstreams": {"first": {"fallbacks": ["second"]}}}, first=StandIn(script=[bad]), second=StandIn()
    )

    assert (await told.ask()).status == 400
    assert told.calls() == {"first": 1, "second": 0}


async def test_an_upstream_that_asked_for_rest_is_left_alone(scene: Any) -> None:
    """retry-after: 7 is respected: the second request goes to the fallback at once."""
    told = await scene(
        {"upstreams": {"first": {"fallbacks": ["second"]}}},
        first=StandIn(script=[fakes.RATE_LIMITED]),
        second=StandIn(),
    )
    await told.ask()
    await told.ask()

    assert told.calls() == {"first": 1, "second": 2}


async def test_where_every_place_fails_the_first_ones_answer_comes_back(scene: Any) -> None:
    told = await scene(
        {"upstreams": {"first": {"fallbacks": ["dead"]}, "dead": refused_port()}}, first=StandIn(script=[UNAVAILABLE])
    )
    answer = await told.ask()

    assert (answer.status, answer.json) == (503, {"error": {"message": "overloaded"}})


async def test_a_fallback_model_is_fitted_to_its_own_window(scene: Any) -> None:
    told = await scene(
        {
            "models": {
                "m": {"context_window": 100_000, "fallbacks": ["small"]},
                "small": {"upstream": "second", "context_window": 1500, "name": "tiny"},
            }
        },
        first=StandIn(script=[UNAVAILABLE]),
        second=StandIn(window=1500),
    )
    answer = await told.ask("m", fakes.chat(60, 50))

    assert (answer.status, answer.action) == (200, "fold")
    assert told.upstreams["second"].chats[0].json["model"] == "tiny"
    assert answer.headers["x-turnfold-window"] == "1500"


async def test_first_requests_are_dealt_out_by_weight(scene: Any) -> None:
    told = await scene({"models": {"m": {"upstreams": {"a": 3, "b": 1}}}}, a=StandIn(), b=StandIn())
    for _ in range(12):
        assert (await told.ask()).status == 200

    assert told.calls() == {"a": 9, "b": 3}


async def test_a_conversation_stays_with_its_upstream(scene: Any) -> None:
    told = await scene({"models": {"m": {"upstreams": {"a": 1, "b": 1}}}}, a=StandIn(), b=StandIn())
    messages = fakes.chat(2, 20)
    for turn in range(8):
        messages = [*messages, fakes.assistant("Yes."), fakes.user(f"And {turn}?")]
        assert (await told.ask("m", messages)).status == 200

    assert sorted(told.calls().values()) == [0, 8]


async def test_another_upstream_of_the_same_model_steps_in(scene: Any) -> None:
    told = await scene(
        {"upstreams": {"dead": refused_port()}, "models": {"m": {"upstreams": {"dead": 9, "b": 1}}}}, b=StandIn()
    )
    statuses = Counter([(await told.ask()).status for _ in range(6)])

    assert statuses == {200: 6}


async def test_a_larger_model_is_asked_when_even_the_smallest_form_is_too_long(scene: Any) -> None:
    told = await scene(
        {
            "models": {
                "m": {"context_window": 2000, "on_overflow": ["large"], "tokenizer": "o200k"},
                "large": {"upstream": "second", "context_window": 50_000, "tokenizer": "o200k"},
            },
            "upstreams": {"second": {"api_key": "sk-large"}},
        },
        first=StandIn(window=2000),
        second=StandIn(window=50_000),
    )
    system = fakes.system(" ".join(fakes.PROSE for _ in range(200)))
    answer = await told.ask("m", [system, fakes.user("Hello")])

    assert answer.status == 200
    assert told.calls() == {"first": 0, "second": 1}
    sent = told.upstreams["second"].chats[0]
    assert sent.json["model"] == "large"
    assert sent.headers["authorization"] == "Bearer sk-large"
    assert answer.headers["x-turnfold-window"] == "50000"
    assert answer.headers["x-turnfold-action"] != "error"


async def test_without_a_larger_model_the_honest_refusal_calls_nobody(scene: Any) -> None:
    """Cases 52, 127: the words that clients look for, with the sizes."""
    told = await scene({"models": {"m": {"context_window": 2000, "tokenizer": "o200k"}}}, first=StandIn(window=2000))
    system = fakes.system(" ".join(fakes.PROSE for _ in range(200)))
    answer = await told.ask("m", [system, fakes.user("Hello")])

    assert answer.status == 400
    assert answer.json["error"]["code"] == "context_length_exceeded"
    assert "maximum context length is 2000 tokens" in answer.json["error"]["message"]
    assert "messages[0] (system)" in answer.json["error"]["message"]
    assert answer.action == "error"
    assert told.calls() == {"first": 0}


async def test_other_endpoints_go_where_their_model_lives(scene: Any) -> None:
    told = await scene(
        {"models": {"emb": {"upstream": "second", "name": "real-emb"}}}, first=StandIn(), second=StandIn()
    )
    body = b'{"model": "emb", "input":  "x", "n": 1.50}'
    answer = await told.gateway.ask("POST", "/embeddings", body, {"content-type": "application/json"})

    assert answer.status == 200
    assert [seen.body for seen in told.upstreams["second"].requests] == [
        b'{"model": "real-emb", "input":  "x", "n": 1.50}'
    ]
    assert told.upstreams["first"].requests == []


async def test_a_mode_that_is_none_is_the_clients_mistake(scene: Any) -> None:
    told = await scene({}, only=StandIn())
    answer = await told.ask(x_turnfold_mode="sometimes")

    assert answer.status == 400
    assert "enforce, observe, off" in answer.json["error"]["message"]
    assert told.calls() == {"only": 0}


@pytest.mark.parametrize(
    ("headers", "members"),
    [
        ({"x_session_id": "s-1"}, {}),
        ({"x_claude_code_session_id": "s-1"}, {}),
        ({"x_sgl_routing_key": "s-1"}, {}),
        ({}, {"prompt_cache_key": "s-1"}),
    ],
)
async def test_requests_of_one_session_go_to_one_upstream_whatever_they_say(
    scene: Any, headers: Any, members: Any
) -> None:
    it = await scene(
        {"models": {"m": {"upstreams": {"one": 1, "two": 1, "three": 1}}}},
        one=StandIn(),
        two=StandIn(),
        three=StandIn(),
    )
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    for number in range(6):
        await it.gateway.chat({"model": "m", "messages": [fakes.user(f"Task {number}")], **members}, sent)

    assert sorted(it.calls().values()) == [0, 0, 6]
    asked = next(seen for upstream in it.upstreams.values() for seen in upstream.chats)
    assert all(asked.headers.get(name) == value for name, value in sent.items())
    async with it.gateway.session.get(f"{it.gateway.admin_url}/api/exchanges") as found:
        assert {one["session"] for one in await found.json()} == {"s-1"}


async def test_without_a_session_first_requests_are_spread(scene: Any) -> None:
    it = await scene({"models": {"m": {"upstreams": {"one": 1, "two": 1}}}}, one=StandIn(), two=StandIn())
    for number in range(6):
        await it.ask(messages=[fakes.user(f"Task {number}")])

    assert sorted(it.calls().values()) == [3, 3]
