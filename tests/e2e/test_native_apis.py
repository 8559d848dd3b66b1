"""Messages and Responses through the running gateway: passed as they came below the window, folded natively above it."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from gateway.standin import Completion, Raw, Refuse, StandIn
from gateway.standin import messages as strict_messages
from gateway.standin import responses as strict_responses
from gateway.standin.answers import EVENTS
from gateway.standin.message_events import error
from providers.sse import Events
from tests import fakes
from tests.e2e.native import APIS, MESSAGES, MODEL, RESPONSES, Native

WINDOW = 4000
STRICT = {"messages": strict_messages, "responses": strict_responses}
JSON = {"content-type": "application/json"}
each_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)


def config(window: int = WINDOW, **more: Any) -> dict[str, Any]:
    return {"models": {MODEL: {"context_window": window, "tokenizer": "o200k"}}, **more}


async def ask(running: Any, api: Native, body: Mapping[str, Any] | bytes, **headers: str) -> Any:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return await running.ask("POST", api.path, raw, {"content-type": "application/json", **headers})


@each_api
async def test_what_fits_leaves_as_it_came(api, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        raw = b" " + orjson.dumps(api.body(3)) + b"\n"
        answer = await ask(running, api, raw)

    assert answer.status == 200
    assert answer.action == "none"
    assert standin.requests[0].body == raw
    assert standin.requests[0].path == f"/v1{api.path}"


@each_api
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["body", "agent"])
async def test_three_windows_of_conversation_are_folded_in_their_own_format(api, kind, stream, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        body = getattr(api, kind)(120, stream=stream)
        answer = await ask(running, api, body)
        again = await ask(running, api, body)

    assert (answer.status, answer.action) == (200, "fold")
    assert again.action == "fold"
    if kind == "body":  # the stand-in weighs results otherwise than we do, which the second request knows
        assert standin.requests[0].body == standin.requests[1].body
    sent = standin.requests[0].json
    assert STRICT[api.name].added(body, sent) == []
    assert _asked(sent[api.items][-1]) == _asked(body[api.items][-1])
    assert standin.requests[0].prompt_tokens > WINDOW / 4


def _asked(item: dict[str, Any]) -> str:
    """The text an item asks with; quotes stand behind it as parts of their own."""
    found = item.get("content", item.get("output"))
    if isinstance(found, str):
        return found
    texts = [part.get("text", part.get("content")) for part in found]
    return next(text for text in reversed(texts) if not text.startswith("[From earlier"))


@each_api
async def test_usage_is_learned_from_plain_answers_and_streams(api, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        for stream in (False, True):
            standin.script.append(Completion(usage={"input_tokens": 321, "output_tokens": 7}))
            await ask(running, api, api.body(2, stream=stream))
        async with running.session.get(f"{running.admin_url}/api/exchanges") as response:
            exchanges = orjson.loads(await response.read())

    assert [found["prompt_tokens"] for found in exchanges] == [321, 321]
    assert [found["completion_tokens"] for found in exchanges] == [7, 7]
    assert {found["format"] for found in exchanges} == {api.name}


@pytest.mark.parametrize("more", [(), (b"data: [DONE]\n\n",)], ids=["as OpenAI", "as some servers"])
@pytest.mark.parametrize("size", [20_000, 1_500_000])
async def test_the_bill_in_a_long_last_event_is_read(size, more, gateway):
    """The last event of Responses repeats the instructions, the tools and the whole answer, with its images."""
    response = {"instructions": "x" * size, "usage": {"input_tokens": 321, "output_tokens": 7}, "metadata": {}}
    said = b'data: {"type":"response.output_text.delta","delta":"Hi"}\n\n'
    last = b"data: " + orjson.dumps({"type": "response.completed", "response": response}) + b"\n\n"
    pieces = [last[at : at + 5000] for at in range(0, len(last), 5000)]
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        standin.script.append(Raw(200, (said, *pieces, *more), {"content-type": EVENTS}))
        await ask(running, RESPONSES, RESPONSES.body(2, stream=True))
        async with running.session.get(f"{running.admin_url}/api/exchanges") as response:
            (found,) = orjson.loads(await response.read())

    assert (found["prompt_tokens"], found["completion_tokens"]) == (321, 7)


@each_api
@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_learned_from_and_tried_again(api, stream, gateway):
    dialect = {"messages": "anthropic", "responses": "vllm"}[api.name]
    async with StandIn(window=WINDOW, dialect=dialect) as standin:
        running = await gateway(standin, config(window=20_000))
        answer = await ask(running, api, api.body(60, stream=stream))

    assert (answer.status, answer.action) == (200, "retry")
    assert standin.requests[-1].prompt_tokens <= WINDOW


@each_api
async def test_a_refusal_inside_a_stream_is_retried_before_anything_reaches_the_client(api, gateway):
    dialect = {"messages": "anthropic-stream", "responses": "openai-responses-stream"}[api.name]
    async with StandIn(window=WINDOW, dialect=dialect) as standin:
        running = await gateway(standin, config(window=20_000))
        answer = await ask(running, api, api.body(60, stream=True))

    names = [event.event for event in Events().feed(answer.body)]
    assert answer.action == "retry"
    assert not {"error", "response.failed"} & set(names)
    assert names[-1] in ("message_stop", "response.completed")


async def test_a_response_that_ends_for_want_of_room_is_folded_and_asked_again(gateway):
    async with StandIn(window=100_000) as standin:
        running = await gateway(standin, config(window=20_000))
        usage = {"input_tokens": 7990, "output_tokens": 10}
        standin.script.append(Completion(text="", finish_reason="length", usage=usage))
        answer = await ask(running, RESPONSES, RESPONSES.body(60))

    assert (answer.status, answer.action) == (200, "retry")
    assert len(standin.requests[1].body) < len(standin.requests[0].body)


OWN_REFUSALS = {
    "messages": lambda error: error["error"]["message"].startswith("prompt is too long: ") and error["type"] == "error",
    "responses": lambda error: error["error"]["code"] == "context_length_exceeded",
}


@each_api
async def test_our_own_refusal_speaks_the_clients_dialect(api, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        system = {"system": fakes.words(9000)} if api is MESSAGES else {"instructions": fakes.words(9000)}
        answer = await ask(running, api, api.body(2, **system))

    assert answer.status == 400
    assert OWN_REFUSALS[api.name](answer.json)
    assert standin.requests == []


@each_api
async def test_a_limit_that_cannot_be_lowered_is_not_told_as_lowered(api, gateway):
    """The smallest output is the very limit that the client gave."""
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        tools = [{"name": "look", "type": "function", "description": fakes.words(WINDOW)}]
        answer = await ask(running, api, api.body(4, tools=tools))

    assert answer.action == "error"
    assert "max-tokens-lowered" not in answer.headers.get("x-turnfold-warning", "")


@each_api
async def test_a_lower_output_limit_is_tried_before_history_goes(api, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        body = api.body(10, **{api.limit: 3500})
        answer = await ask(running, api, body)

    assert answer.status == 200
    assert standin.requests[0].json[api.limit] < 3500
    assert standin.requests[0].json[api.items] == body[api.items]


@each_api
@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_other_modes_change_nothing(api, mode, gateway):
    async with StandIn(window=WINDOW * 10) as standin:
        running = await gateway(standin, config())
        raw = orjson.dumps(api.body(60))
        answer = await ask(running, api, raw, **{"x-turnfold-mode": mode})

    assert answer.action == mode
    assert standin.requests[0].body == raw


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/v1/messages", "/messages", "/v1/messages?beta=true", "/messages?beta=true"]
)
async def test_any_base_url_reaches_messages(path, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        async with running.session.post(f"http://127.0.0.1:{running.port}{path}", json=MESSAGES.body(60)) as response:
            status, action = response.status, response.headers["x-turnfold-action"]

    assert (status, action) == (200, "fold")
    assert (standin.requests[0].path, standin.requests[0].query) == ("/v1/messages", path.partition("?")[2])


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/v1/responses", "/responses"])
async def test_any_base_url_reaches_responses(path, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        async with running.session.post(f"http://127.0.0.1:{running.port}{path}", json=RESPONSES.body(60)) as response:
            assert response.headers["x-turnfold-action"] == "fold"

    assert standin.requests[0].path == "/v1/responses"


async def test_text_that_stands_elsewhere_passes_and_a_refusal_of_it_teaches_nothing(gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config(window=20_000))
        body = RESPONSES.body(3, previous_response_id="resp_1")
        standin.script.extend([Refuse("vllm", limit=1000, prompt=5000)] * 4)
        refused = await ask(running, RESPONSES, body)
        standin.script.clear()
        later = await ask(running, RESPONSES, RESPONSES.body(10))

    assert refused.status == 400
    assert (later.status, later.headers["x-turnfold-window"]) == (200, "20000")


@each_api
async def test_headers_of_the_api_travel(api, gateway):
    async with StandIn(window=WINDOW, key="k") as standin:
        running = await gateway(standin, config())
        key = {"x-api-key": "k"} if api is MESSAGES else {"authorization": "Bearer k"}
        betas = {"anthropic-version": "2023-06-01", "anthropic-beta": "context-1m-2025-08-07"}
        answer = await ask(running, api, api.body(60), **key, **betas)

    assert answer.status == 200
    assert {name: standin.requests[0].headers[name] for name in betas} == betas


@each_api
async def test_explain_tells_what_would_be_sent(api, gateway):
    async with StandIn(window=WINDOW) as standin:
        running = await gateway(standin, config())
        body = api.agent(120)
        async with running.session.post(f"{running.admin_url}/api/explain", json=body) as response:
            told = orjson.loads(await response.read())

    assert (told["format"], told["action"]) == (api.name, "fold")
    assert STRICT[api.name].added(body, {**body, api.items: told["messages"]}) == []
    assert standin.requests == []


def thinking_agent(steps: int, **more: Any) -> dict[str, Any]:
    """An agent that thinks before each call."""
    body = MESSAGES.agent(steps, **more)
    for n, row in enumerate(body["messages"]):
        if row["role"] == "assistant":
            thought = f"Step {n}: where could it be?"
            row["content"].insert(
                0, {"type": "thinking", "thinking": thought, "signature": strict_messages.sign(thought)}
            )
    return {**body, "thinking": {"type": "adaptive"}}


def thoughts(body: Mapping[str, Any]) -> int:
    return sum(
        block["type"] == "thinking" for message in body["messages"] for block in strict_messages.blocks_of(message)
    )


async def test_thinking_that_is_not_accepted_is_taken_out_once(gateway):
    wording = (
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    )
    async with StandIn(window=WINDOW, rules=[]) as standin:
        running = await gateway(standin, config())
        standin.script.append(error(400, wording))
        answer = await ask(running, MESSAGES, thinking_agent(5))
        standin.script.extend([error(400, wording)] * 2)
        refused = await ask(running, MESSAGES, thinking_agent(5))

    assert (answer.status, answer.action) == (200, "retry")
    assert [thoughts(seen.json) for seen in standin.requests[:2]] == [5, 0]
    assert (refused.status, len(standin.requests)) == (400, 4)


async def test_a_model_that_binds_thinking_is_asked_to_drop_what_it_cannot_verify(gateway):
    async with StandIn(window=WINDOW, rules=[]) as standin:
        bound = {"claude-opus-5-5": {"context_window": WINDOW}}
        running = await gateway(standin, {"models": bound})
        await ask(running, MESSAGES, thinking_agent(5, model="claude-opus-5-5"))
        await ask(running, MESSAGES, thinking_agent(150, model="claude-opus-5-5"), **{"anthropic-beta": "own"})

    small, folded = [seen for seen in standin.requests if seen.method == "POST"]
    assert small.json["thinking"] == {"type": "adaptive"}
    assert "anthropic-beta" not in small.headers
    assert folded.json["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert folded.headers["anthropic-beta"] == "own,thinking-binding-controls-2026-08-01"


@pytest.mark.parametrize(("model", "expected"), [("claude-sonnet-4-5", "none"), ("claude-sonnet-4-0", "fold")])
async def test_the_output_counts_into_the_window_of_older_claude_models_only(model, expected, gateway):
    async with StandIn(window=10**6) as standin:
        running = await gateway(standin, {"models": {model: {"context_window": 20_000}}})
        answer = await ask(running, MESSAGES, MESSAGES.body(30, model=model, max_tokens=18_500))

    assert answer.action == expected


@each_api
async def test_an_upstream_without_the_api_is_named_with_what_to_configure(api, gateway):
    async with StandIn(apis=["chat"]) as standin:
        running = await gateway(standin, config())
        answer = await ask(running, api, api.body(2))

    message = answer.json["error"]["message"]
    assert answer.status == 400
    assert f"'standin' has no /v1{api.path}" in message
    assert "models.NAME.upstream" in message


@each_api
async def test_an_unknown_model_is_not_taken_for_a_missing_api(api, gateway):
    async with StandIn(models=("other",)) as standin:
        running = await gateway(standin, config())
        answer = await ask(running, api, api.body(2))

    assert answer.status == 404


COUNTS = [(MESSAGES, "/messages/count_tokens"), (RESPONSES, "/responses/input_tokens")]


@pytest.mark.parametrize(("api", "path"), COUNTS)
async def test_tokens_are_counted_by_the_upstream_or_by_us(api, path, gateway):
    body = orjson.dumps(api.body(60))
    told = []
    for apis in (["messages", "responses", "counts"], ["messages", "responses"]):
        async with StandIn(window=WINDOW, apis=apis) as standin:
            running = await gateway(standin, config())
            answer = await running.ask("POST", path, body, {"content-type": "application/json"})
            told.append((answer.status, answer.json["input_tokens"]))
            assert standin.requests[0].body == body

    assert told[0][0] == told[1][0] == 200
    assert told[1][1] == pytest.approx(told[0][1], rel=0.05)


@pytest.mark.parametrize(
    ("api", "path", "more"),
    [
        (RESPONSES, "/responses/input_tokens", {"previous_response_id": "resp_1"}),
        (RESPONSES, "/responses/input_tokens", {"conversation": {"id": "conv_1"}}),
        (RESPONSES, "/responses/input_tokens", {"prompt": {"id": "pmpt_1"}}),
        (MESSAGES, "/messages/count_tokens", {"thread": {"type": "continue", "id": "thread_1"}}),
    ],
)
async def test_a_prompt_that_only_the_upstream_has_is_not_counted_by_us(api, path, more, gateway):
    async with StandIn(window=WINDOW, apis=["messages", "responses"]) as standin:
        running = await gateway(standin, config())
        answer = await running.ask("POST", path, orjson.dumps({**api.body(2), **more}), JSON)

    assert answer.status == standin.requests[0].status == 404


@pytest.mark.parametrize(("api", "path"), COUNTS)
async def test_an_unknown_model_is_not_counted(api, path, gateway):
    async with StandIn(models=("other",)) as standin:
        running = await gateway(standin, config())
        answer = await running.ask("POST", path, orjson.dumps(api.body(2)), JSON)

    assert answer.status == 404
    assert "model" in answer.json["error"]["message"]
