"""The `ollama` package through the gateway to a strict stand-in: folded, mended, streamed, refused, and what fits as it came."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import ollama
import orjson
import pytest

from gateway.standin import Completion, Gate, Raw, StandIn
from gateway.standin import ollama as strict
from gateway.standin.apis import OLLAMA as API
from gateway.standin.validity import broken_more_often
from tests import fakes, running
from tests.wire.conversations import PNG

WINDOW = 4000
LINES = {"content-type": "application/x-ndjson"}
JSON = {"content-type": "application/json"}
HISTORY = fakes.chat(60, 100)
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}


@dataclass(frozen=True, slots=True)
class Scene:
    standin: StandIn
    ports: running.Gateway
    client: ollama.AsyncClient

    @property
    def url(self) -> str:
        return f"{self.ports.base_url.removesuffix('/v1')}/api/chat"

    async def post(self, body: Any, **headers: str) -> running.Answered:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        async with self.ports.session.post(self.url, data=raw, headers={**JSON, **headers}) as response:
            return running.Answered(response.status, response.headers, await response.read())

    async def records(self) -> list[dict[str, Any]]:
        if self.ports.settled is not None:
            await self.ports.settled()
        async with self.ports.session.get(f"{self.ports.admin_url}/api/exchanges") as response:
            return orjson.loads(await response.read())


def config(standin: StandIn, *, window: int | None = WINDOW, provider: str = "ollama", **more: Any) -> dict[str, Any]:
    named = {} if window is None else {"context_window": window}
    return {
        "upstreams": {"standin": {"provider": provider, "base_url": standin.base_url}},
        "models": {"m": {"tokenizer": "o200k", **named}},
        **more,
    }


@asynccontextmanager
async def library(
    ports: running.Gateway, headers: Mapping[str, str] | None = None
) -> AsyncIterator[ollama.AsyncClient]:
    """The client library, as `OLLAMA_HOST` sets it up."""
    async with ollama.AsyncClient(host=ports.base_url.removesuffix("/v1"), headers=dict(headers or {})) as client:
        yield client


@pytest.fixture
def scene(gateway):
    """Set the scene: a stand-in that speaks Ollama's API, a gateway, and the client library."""

    @asynccontextmanager
    async def opened(
        settings: Mapping[str, Any] | None = None, *, headers: Mapping[str, str] | None = None, **described: Any
    ) -> AsyncIterator[Scene]:
        async with StandIn(**{"window": WINDOW, "apis": ("chat", "ollama"), **described}) as standin:
            ports = await gateway(standin, config(standin, **(settings or {})))
            async with library(ports, headers) as client:
                yield Scene(standin, ports, client)

    return opened


async def text_in(stream: Any) -> str:
    return "".join([part.message.content or "" async for part in stream])


def check_valid(given: Any, standin: StandIn) -> None:
    sent = standin.requests[-1].json
    assert broken_more_often(strict.violations({"messages": given}), strict.violations(sent)) == []


# Passed, and folded


@pytest.mark.parametrize("stream", [False, True])
async def test_what_fits_leaves_and_returns_as_it_came(scene, stream):
    async with scene() as told:
        raw = (
            b' {"model":"m", "stream":%b, "messages":[{"role":"user","content":"hi"}], "options":{"top_p":0.50}, "new":1}\n'
            % (b"true" if stream else b"false")
        )
        answer = await told.post(raw)
        direct = f"{told.standin.base_url.removesuffix('/v1')}/api/chat"
        async with told.ports.session.post(direct, data=raw) as response:
            plain = await response.read()
        assert (answer.status, answer.action) == (200, "none")
        assert answer.body == plain
        assert answer.headers["content-type"].startswith("application/x-ndjson" if stream else "application/json")
        assert (told.standin.requests[0].body, told.standin.requests[0].raw_target) == (raw, "/api/chat")


async def test_a_long_history_is_folded_for_the_library_plain_and_streamed(scene):
    async with scene() as told:
        plain = await told.client.chat("m", HISTORY, options={"num_predict": 100})
        streamed = await text_in(await told.client.chat("m", HISTORY, stream=True))
        assert (plain.message.content, streamed) == ("Understood.", "Understood.")
        for seen in told.standin.requests:
            assert seen.violations == []
            assert WINDOW / 4 < seen.prompt_tokens < WINDOW
            assert seen.json["messages"][-1]["content"].startswith(HISTORY[-1]["content"])
        records = await told.records()
        assert [(one["format"], one["action"], one["stream"]) for one in records] == [
            ("ollama", "fold", True),
            ("ollama", "fold", False),
        ]
        assert [one["prompt_tokens"] for one in records] == [
            seen.prompt_tokens for seen in reversed(told.standin.requests)
        ]


async def test_a_stream_that_is_not_asked_for_is_one(scene):
    """Ollama's default is a stream."""
    async with scene() as told:
        answer = await told.post({"model": "m", "messages": HISTORY})
        assert (answer.action, answer.headers["content-type"]) == ("fold", "application/x-ndjson")
        assert (await told.records())[0]["stream"] is True


async def test_lines_reach_the_client_one_by_one(scene):
    gate = Gate()
    async with scene(reply=Completion("one two three", pieces=3, pace=gate)) as told:
        gate.release()  # the headers come with the first content
        async with told.ports.session.post(told.url, json={"model": "m", "messages": [fakes.user("hi")]}) as response:
            for count in range(1, 5):
                line = orjson.loads(await response.content.readline())
                assert line["done"] is (count == 4)
                gate.release()


async def test_tools_work_over_many_turns_that_are_folded(scene):
    def step(seen: Any) -> Completion:
        if seen.json["messages"][-1]["role"] == "tool":
            return Completion("Done.")
        return Completion(
            "", tool_calls=(fakes.call("look", {"path": "a"}), fakes.call("look", {"path": "b"}, "call_2"))
        )

    async with scene(otherwise=lambda seen: None) as told:
        messages: list[Any] = []
        for turn in range(14):
            messages.append({"role": "user", "content": f"Question {turn}: what is in the files?"})
            told.standin.script.append(step)
            answer = await told.client.chat("m", messages, tools=[TOOL])
            messages.append(answer.message)
            calls = answer.message.tool_calls or []
            assert [call.function.arguments for call in calls] == [{"path": "a"}, {"path": "b"}]
            for call in calls:
                found = fakes.words(150, turn)
                messages.append({"role": "tool", "content": found, "tool_name": call.function.name})
            final = await told.client.chat("m", messages, tools=[TOOL], stream=bool(turn % 2))
            text = await text_in(final) if turn % 2 else final.message.content
            messages.append({"role": "assistant", "content": text})
        assert [seen.violations for seen in told.standin.requests if seen.violations] == []
        assert {seen.status for seen in told.standin.requests} == {200}
        assert (await told.records())[0]["action"] == "fold"
        for seen in told.standin.requests:
            for message in seen.messages:
                for call in message.get("tool_calls", ()):
                    assert "id" not in call
                    assert isinstance(call["function"]["arguments"], dict)
                assert "tool_call_id" not in message


async def test_images_count_as_images_and_old_ones_are_left_out(scene):
    async with scene() as told:
        image = base64.b64decode(PNG) + b"\0" * 100_000  # as text it would be longer than the window
        shown = {"role": "user", "content": "What is this?", "images": [image]}
        await told.client.chat("m", [shown])
        assert (await told.records())[0]["action"] == "none"
        assert told.standin.requests[-1].json["messages"][0]["images"] == [base64.b64encode(image).decode()]

        await told.client.chat("m", [shown, fakes.assistant("A ship."), *HISTORY, {**shown, "content": "And this?"}])
        sent = told.standin.requests[-1].json["messages"]
        assert (await told.records())[0]["action"] == "fold"
        assert [len(message.get("images") or ()) for message in sent if message.get("images")] == [1]
        assert sent[-1]["images"] == [base64.b64encode(image).decode()]


# Sizes


async def test_the_window_is_the_smaller_of_num_ctx_and_the_configured_one(scene):
    async with scene(window=WINDOW) as told:
        await told.client.chat("m", HISTORY, options={"num_ctx": 2048})
        await told.client.chat("m", HISTORY, options={"num_ctx": 100_000})
        small, large = told.standin.requests
        assert (small.window, large.window) == (2048, WINDOW)
        assert small.prompt_tokens < 2048 < large.prompt_tokens < WINDOW
        assert small.json["options"] == {"num_ctx": 2048}
        assert [one["window"] for one in await told.records()] == [WINDOW, 2048]


async def test_a_small_num_ctx_is_not_learned_as_the_models_window(scene):
    """A refusal states the window of its request, which another request need not have."""
    async with scene({"window": 16_000}, window=16_000, scale=2.0) as told:
        for window, action in ((8192, "retry"), (16_000, "none")):
            body = {"model": "m", "messages": HISTORY, "options": {"num_ctx": window, "num_predict": 100}}
            answer = await told.post(body)
            assert (answer.action, answer.headers["x-turnfold-window"]) == (action, str(window))


async def test_only_a_larger_num_predict_is_lowered(scene):
    async with scene() as told:
        for given, sent in ((50_000, None), (100, 100), (-1, -1), (-2, -2)):
            options = {"num_predict": given, "temperature": 0.5}
            await told.client.chat("m", [fakes.user(fakes.words(1000))], options=options)
            got = told.standin.requests[-1].json["options"]
            assert got["temperature"] == 0.5
            assert got["num_predict"] == (sent if sent is not None else got["num_predict"]) < WINDOW


async def test_the_window_of_a_loaded_model_gives_way_to_num_ctx(scene):
    """Ollama loads the model anew with ``num_ctx``; that of the loaded one is what ``/api/ps`` states."""
    known = Raw(chunks=(orjson.dumps({"data": [{"id": "m", "object": "model", "owned_by": "library"}]}),))
    loaded = Raw(chunks=(orjson.dumps({"models": [{"name": "m", "model": "m", "context_length": 2048}]}),))
    ports = {"window": None}
    async with scene(
        ports, window=16_000, model_list=known, otherwise=lambda seen: loaded if seen.path == "/api/ps" else None
    ) as told:
        answers = [
            await told.post({"model": "m", "messages": HISTORY, **more})
            for more in ({}, {"options": {"num_ctx": 12_000}})
        ]
        assert [answer.headers["x-turnfold-window"] for answer in answers] == ["2048", "12000"]
        assert [answer.action for answer in answers] == ["fold", "none"]


async def test_a_num_ctx_beyond_the_models_own_window_is_that_window(scene):
    """Ollama lowers it so, and cuts what is longer in silence. The catalogue knows the model's own window."""
    loaded = Raw(chunks=(orjson.dumps({"models": [{"name": "gemma2", "model": "gemma2", "context_length": 4096}]}),))
    async with scene(
        {"window": None},
        window=100_000,
        models=("gemma2",),
        otherwise=lambda seen: loaded if seen.path == "/api/ps" else None,
    ) as told:
        for asked, window in ((6000, "6000"), (131_072, "8192"), (1e30, "8192")):
            answer = await told.post({"model": "gemma2", "messages": HISTORY, "options": {"num_ctx": asked}})
            assert (answer.status, answer.headers["x-turnfold-window"]) == (200, window)


# Refusals


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_mended_before_the_client_notices(scene, stream):
    async with scene({"window": 32_000}) as told:
        answer = await told.client.chat("m", HISTORY, stream=stream)
        assert (await text_in(answer) if stream else answer.message.content) == "Understood."
        assert [seen.status for seen in told.standin.requests] == [400, 200]
        record = (await told.records())[0]
        assert (record["action"], record["attempts"]) == ("retry", 2)
        check_valid(HISTORY, told.standin)


REFUSALS = [
    Raw(200, (b'{"error":"the input length exceeds the context length"}\n',), LINES),
    Raw(200, (b'{"error":"input length (9000 tokens) exceeds the model\'s maximum context length (4096 tokens)"}\n',), LINES),
    Raw(
        200,
        (
            b'{"model":"m","message":{"role":"assistant","content":""},"done":false}\n',
            b'{"error":"the input length exceeds the context length"}\n',
        ),
        LINES,
    ),
    Raw(400, (b'{"error":"the input length exceeds the context length"}',)),
    Raw(500, (b'{"error":"the input length exceeds the context length"}',)),
    Raw(200, (b'{"error":"the input length exceeds the context length"}',)),
]  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refusal_in_any_shape_is_mended(scene, refusal):
    async with scene({"window": 32_000}) as told:
        told.standin.script.append(refusal)
        assert await text_in(await told.client.chat("m", HISTORY, stream=True)) == "Understood."
        assert (await told.records())[0]["action"] == "retry"


async def test_our_own_refusal_is_an_error_of_the_library(scene):
    async with scene() as told:
        messages = [fakes.system(fakes.words(9000)), fakes.user("hi")]
        with pytest.raises(ollama.ResponseError, match="the maximum context length is 4000 tokens") as raised:
            await told.client.chat("m", messages)
        assert raised.value.status_code == 400
        with pytest.raises(ollama.ResponseError, match="the maximum context length is 4000 tokens"):
            await text_in(await told.client.chat("m", messages, stream=True))
        assert told.standin.requests == []


async def test_an_error_of_the_server_passes(scene):
    async with scene(models=("other",)) as told:
        with pytest.raises(ollama.ResponseError, match="model 'm' not found") as raised:
            await told.client.chat("m", HISTORY)
        assert raised.value.status_code == 404


async def test_an_unreachable_server_is_an_error_of_the_library(scene):
    async with scene() as told:
        await told.standin.close()
        with pytest.raises(ollama.ResponseError, match="could not be reached") as raised:
            await told.client.chat("m", HISTORY)
        assert raised.value.status_code == 502


async def test_an_error_in_the_middle_of_a_stream_is_recorded(scene):
    async with scene() as told:
        line = b'{"model":"m","message":{"role":"assistant","content":"Ha"},"done":false}\n'
        told.standin.script.append(Raw(200, (line, b'{"error":"an error was encountered"}\n'), LINES))
        with pytest.raises(ollama.ResponseError, match="an error was encountered"):
            await text_in(await told.client.chat("m", [fakes.user("hi")], stream=True))
        assert (await told.records())[0]["error"] == "response_failed"


async def test_an_error_in_a_last_line_without_its_end_is_recorded(scene):
    async with scene() as told:
        line = b'{"model":"m","message":{"role":"assistant","content":"Ha"},"done":false}\n'
        told.standin.script.append(Raw(200, (line, b'{"error":"an error was encountered"}'), LINES))
        await told.post({"model": "m", "messages": [fakes.user("hi")]})
        assert (await told.records())[0]["error"] == "response_failed"


async def test_a_client_that_leaves_behind_a_last_line_without_its_end_has_the_whole_answer(scene):
    line = (
        b'{"model":"m","message":{"role":"assistant","content":"Ha"},"done":true,"prompt_eval_count":7,"eval_count":2}'
    )
    async with scene() as told:
        told.standin.script.append(Raw(200, (line[:20], line[20:]), LINES, end="silence"))
        async with told.ports.session.post(told.url, json={"model": "m", "messages": [fakes.user("hi")]}) as response:
            while b"eval_count" not in await response.content.readany():
                pass
        while not (records := await told.records()):  # noqa: ASYNC110  # the record is made after the client has left
            await asyncio.sleep(0.01)
        assert (records[0]["status"], records[0]["error"], records[0]["prompt_tokens"]) == (200, "", 7)


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("POST", "/api/pull", "What loads or changes models is closed"),
        ("DELETE", "/api/delete", "What loads or changes models is closed"),
        ("GET", "/api/chat", "Nothing is served at GET /api/chat; of Ollama's own API"),
        ("POST", "/api/generate", "x-turnfold-request-id"),
    ],
)
async def test_errors_at_all_of_ollamas_paths_are_one_text(scene, method, path, said):
    """Its clients show an object as ``[object Object]``."""
    async with scene() as told:
        await told.standin.close()
        host = told.ports.base_url.removesuffix("/v1")
        async with told.ports.session.request(method, f"{host}{path}", json={"model": "m", "prompt": "hi"}) as response:
            body = orjson.loads(await response.read())
        assert isinstance(body["error"], str)
        assert said in body["error"] or said in response.headers


# Bills


@pytest.mark.parametrize("stream", [False, True])
async def test_a_bill_is_recorded_and_learned_from(scene, stream):
    async with scene({"window": 16_000}, window=16_000, scale=1.5) as told:
        for _ in range(4):
            answer = await told.client.chat("m", HISTORY, stream=stream)
            if stream:
                await text_in(answer)
        records = await told.records()
        billed = told.standin.requests[-1].prompt_tokens
        assert {one["prompt_tokens"] for one in records} == {billed}
        assert {one["completion_tokens"] for one in records} == {3}
        assert abs(records[0]["tokens_before"] - billed) < billed / 20


async def test_bills_of_a_cached_prompt_make_no_request_count_less(scene):
    """Old versions state only the part of the prompt that was not in their cache."""
    async with scene({"window": 8000}, window=8000) as told:
        for end in (81, 85, 89, 93, 97):
            told.standin.script.append(Completion(usage={"prompt_tokens": 120, "completion_tokens": 4}))
            await told.client.chat("m", HISTORY[:end])
        answer = await told.post({"model": "m", "messages": HISTORY[:101], "stream": False})
        assert answer.tokens[0] >= told.standin.requests[-1].prompt_tokens * 0.95


async def test_a_prompt_that_is_cut_in_silence_is_noticed_by_its_bills(scene):
    async with scene({"window": 32_000}, truncates=True) as told:
        answers = [
            await told.post({"model": "m", "messages": HISTORY, "stream": False}),
            await told.post(
                {"model": "m", "messages": [*HISTORY, fakes.assistant("Yes."), fakes.user("And?")], "stream": False}
            ),
            await told.post(
                {"model": "m", "messages": [*HISTORY, fakes.assistant("Yes."), fakes.user("And?")] * 2, "stream": False}
            ),
        ]
        assert any("truncated" in answer.headers.get("x-turnfold-warning", "") for answer in answers)


# Around it


async def test_an_alias_gets_the_models_own_name(scene):
    async with scene({"models": {"alias": {"name": "real", "context_window": WINDOW, "tokenizer": "o200k"}}}) as told:
        await told.client.chat("alias", [fakes.user("hi")])
        await told.client.chat("alias", HISTORY)
        assert [seen.json["model"] for seen in told.standin.requests] == ["real", "real"]


@pytest.mark.parametrize("mode", ["off", "observe"])
async def test_modes_leave_a_long_request_as_it_came(scene, mode):
    async with scene(window=100_000) as told:
        raw = orjson.dumps({"model": "m", "messages": HISTORY})
        answer = await told.post(raw, **{"x-turnfold-mode": mode})
        assert told.standin.requests[0].body == raw
        assert answer.status == 200
        assert answer.action == mode


@asynccontextmanager
async def two_upstreams(first: str, second: str, models: Any) -> AsyncIterator[tuple[Any, StandIn, StandIn]]:
    """A library at a gateway with two servers of these providers."""
    async with StandIn(window=WINDOW, apis=("ollama",)) as one, StandIn(window=WINDOW, apis=("ollama",)) as two:
        upstreams = {
            "standin": {"provider": first, "base_url": one.base_url},
            "second": {"provider": second, "base_url": two.base_url},
        }
        text = running.configured(one, {"upstreams": upstreams, "models": models})
        async with running.in_process(text) as ports, library(ports) as client:
            yield client, one, two


async def test_a_request_goes_to_an_upstream_of_its_model_that_has_the_endpoint():
    models = {
        "m": {"upstreams": {"standin": 9, "second": 1}, "context_window": WINDOW, "tokenizer": "o200k"},
        "plain": {"upstream": "standin"},
    }
    async with two_upstreams("vllm", "ollama", models) as (client, first, second):
        for _ in range(3):
            await client.chat("m", HISTORY)
        with pytest.raises(ollama.ResponseError, match="needs an upstream with provider ollama") as raised:
            await client.chat("plain", HISTORY)
        assert raised.value.status_code == 404
        assert (len(first.requests), len(second.requests)) == (0, 3)


@pytest.mark.parametrize(("provider", "asked"), [("ollama", 1), ("openai", 0)])
async def test_a_fallback_is_used_only_if_it_has_the_endpoint(provider, asked):
    sized = {"context_window": WINDOW, "tokenizer": "o200k"}
    models = {"m": {"fallbacks": ["n"], **sized}, "n": {"upstream": "second", **sized}}
    async with two_upstreams("ollama", provider, models) as (client, first, second):
        await first.close()
        with nullcontext() if asked else pytest.raises(ollama.ResponseError, match="could not be reached"):
            await client.chat("m", HISTORY)
        assert len(second.requests) == asked


MALFORMED = [
    b"",
    b"nonsense",
    b"[]",
    b'{"model":"m"}',
    b'{"model":"m","messages":[]}',
    b'{"model":"m","messages":"hello"}',
    b'{"model":"m","messages":[{"role":"user","content":["a"]}]}',
    b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]}',
    b'{"model":"m","messages":[{"role":"user","content":"hi"}]',
    b'{"model":"m","Messages":[{"role":"user","content":"hi"}]}',
]


@pytest.mark.parametrize("raw", MALFORMED)
async def test_a_malformed_body_passes_to_the_server(scene, raw):
    async with scene(otherwise=lambda _: API.error(400, "no")) as told:
        answer = await told.post(raw)
        assert (answer.status, answer.body) == (400, b'{"error":"no"}')
        assert told.standin.requests[0].body == raw


HOSTILE = [
    b'{"model":"m","messages":[{"role":"user","content":"hi"}],"options":' + b"[" * 300 + b"]" * 300 + b"}",
    b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":'
    + b'{"a":' * 200
    + b"1"
    + b"}" * 200
    + b'}}]},{"role":"user","content":"%s"}]}' % (b"word " * 6000),
    b'{"model":"m","messages":[],"messages":[{"role":"user","content":"a","content":"%s"}],"messages":[{"role":"user","content":"hi"}]}'
    % (b"word " * 6000),
    b'{"model":"m","options":{"num_ctx":1e400},"messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","options":{"num_ctx":1e300,"num_predict":1e300},"messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","options":{"num_ctx":1},"messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","messages":[{"role":"tool","content":"x","tool_call_id":"\\ud83d"},{"role":"\\u0000","content":"\\ud83d"}]}',
]


@pytest.mark.parametrize("raw", HOSTILE)
async def test_a_hostile_body_gets_an_answer_in_ollamas_shape(scene, raw):
    async with scene(rules=()) as told:
        answer = await told.post(raw)
        assert answer.status in (200, 400)
        assert answer.status == 200 or isinstance(answer.json["error"], str)
        assert told.ports.inside is not None
        assert not any(one["why"] == "failed" for one in await told.records())


async def test_a_limited_key_is_charged_the_bill_and_refused_in_ollamas_shape(gateway, at_noon):
    from tests.e2e.test_client_keys import BEARER, keyed  # noqa: PLC0415

    async with StandIn(window=WINDOW, apis=("ollama",)) as standin:
        keys = keyed(tpm=6000)
        settings = config(standin)
        ports = await gateway(standin, {**keys, **settings, "upstreams": settings["upstreams"]})
        async with library(ports, BEARER) as client:
            await client.chat("m", HISTORY, options={"num_predict": 50})
            with pytest.raises(ollama.ResponseError) as raised:
                await client.chat("m", HISTORY, options={"num_predict": 5000})
        assert raised.value.status_code == 429
        assert "may use 6000 tokens a minute" in raised.value.error
        async with library(ports) as client:
            with pytest.raises(ollama.ResponseError) as raised:
                await client.chat("m", HISTORY)
        assert raised.value.status_code == 401


async def test_a_request_can_be_explained(scene):
    async with scene() as told:
        body = {"model": "m", "messages": HISTORY, "options": {"num_ctx": 3000}}
        async with told.ports.session.post(f"{told.ports.admin_url}/api/explain", json=body) as response:
            explained = orjson.loads(await response.read())
        assert (explained["format"], explained["window"], explained["window_from"]) == ("ollama", 3000, "the request")
        assert explained["action"] == "fold"
        assert all("turnfold.view" not in message for message in explained["messages"])
