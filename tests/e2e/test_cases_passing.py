"""What fits leaves as it came, and everything that is not ours to decide travels on: bodies, headers, streams, endpoints."""

import asyncio
import gzip
import hashlib

import aiohttp
import orjson
import pytest

from gateway.standin import Gate, Raw, StandIn
from gateway.standin.answers import EVENTS
from tests import fakes
from tests.e2e.stories import events_of
from tests.fakes import assistant, call, result, system, user

A, B = call("f", {"x": 1}, "call_0"), call("g", {}, "call_b")
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 8000}}
CONFIG = {"models": {"gpt-4o": {"context_window": 128_000}, "fast": {"name": "gpt-4o-mini"}}}
LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}

AS_IT_CAME = [
    ("1 no messages", {"messages": []}),
    ("2 a plain question", {"messages": [user("hi")]}),
    ("11 an id used in two turns", {"messages": [user("a"), assistant(None, A), result("call_0", "1"), assistant("x"), user("b"), assistant(None, A), result("call_0", "2")]}),
    ("12 a result given twice", {"messages": [user("a"), assistant(None, A), result("call_0", "1"), result("call_0", "1")]}),
    ("14 calls without results last", {"messages": [user("a"), assistant(None, A)]}),
    ("15 a text and then a call", {"messages": [user("a"), assistant("let me see"), assistant(None, A), result("call_0", "1")]}),
    ("16 an empty id", {"messages": [user("a"), assistant(None, {**A, "id": ""}), result("", "1")]}),
    ("17 a legacy function", {"messages": [user("a"), LEGACY, {"role": "function", "name": "f", "content": "1"}]}),
    ("18 111 system, developer and system again", {"messages": [system("s"), {"role": "developer", "content": "d"}, user("a"), assistant("b"), system("t"), user("c")]}),
    ("19 a caption and an image", {"messages": [user("look"), {"role": "user", "content": [IMAGE]}]}),
    ("21 a prefill last", {"messages": [user("a"), assistant("The answer is")]}),
    ("22 unknown fields", {"messages": [{"role": "user", "content": "a", "name": "bob", "x_custom": {"k": [1, None]}}, {"role": "assistant", "content": None, "refusal": "no", "audio": {"id": "audio_1"}}, user("b")], "x_vendor": 1}),
    ("103 nothing but a system message", {"messages": [system("s")]}),
    ("115 an image in base64", {"messages": [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, IMAGE]}]}),
    ("a null content", {"messages": [user("a"), assistant(None), user("b")]}),
    ("an unknown role", {"messages": [{"role": "robot", "content": "x"}]}),
    ("118 messages missing", {}),
    ("118 messages of another shape", {"messages": "hello"}),
    ("118 messages of strings", {"messages": ["hello"]}),
    ("118 a message without role", {"messages": [{"content": "x"}]}),
    ("118 a content that is a number", {"messages": [{"role": "user", "content": 5}]}),
    ("118 tool_calls that are no list", {"messages": [{"role": "assistant", "content": "a", "tool_calls": {"a": 1}}]}),
    ("118 parts that are numbers", {"messages": [{"role": "user", "content": [1, None, "x"]}]}),
    ("118 max_tokens that is a text", {"messages": [user("a")], "max_tokens": "many"}),
    ("118 a negative max_tokens", {"messages": [user("a")], "max_tokens": -5}),
    ("118 tools that are no list", {"messages": [user("a")], "tools": "none"}),
]  # fmt: skip


@pytest.mark.parametrize("members", [row[1] for row in AS_IT_CAME], ids=[row[0] for row in AS_IT_CAME])
async def test_a_request_that_fits_arrives_byte_for_byte(gateway, members):
    raw = orjson.dumps({"model": "gpt-4o", **members})
    async with StandIn(otherwise=lambda _: fakes.reply("ok")) as standin:
        answer = await (await gateway(standin, CONFIG)).chat(raw)
        assert answer.status == 200
        assert [seen.body for seen in standin.chats] == [raw]


ODD_BYTES = [
    b'{"model":"gpt-4o","messages":[{"role":"user","content":"caf\\u00e9 \\ud83d\\ude00"}],"temperature":1.50}',
    b'{ "model" :  "gpt-4o" ,\n\t"messages": [ {"role":"user",  "content":"a"} ], "top_p":1e0, "n":1,"seed":12345678901234567890 }\n',
    b'{"messages":[{"role":"user","content":"a"}],"model":"gpt-4o","metadata":{"model":"other"},"stop":["\\/"]}',
    '{"model":"gpt-4o","messages":[{"role":"user","content":"日本語 \u2028 ẞ"}]}'.encode(),
]


@pytest.mark.parametrize("raw", ODD_BYTES)
async def test_113_odd_json_arrives_byte_for_byte(gateway, standin, raw):
    answer = await (await gateway(standin, CONFIG)).chat(raw)
    assert answer.status == 200
    assert answer.action == "none"
    assert standin.chats[0].body == raw


async def test_an_alias_is_spliced_and_nothing_else_changes(gateway, standin):
    raw = b'{ "temperature":1.50,  "model": "fast", "messages":[{"role":"user","content":"model \\u00e9 \\"model\\": \\"fast\\""}] }'
    assert (await (await gateway(standin, CONFIG)).chat(raw)).status == 200
    assert standin.chats[0].body == raw.replace(b'"model": "fast",', b'"model": "gpt-4o-mini",', 1)


QUERIES = [
    ("model=fast&a=%2f", "model=gpt-4o-mini&a=%2f"),
    ("a=1&deployment=fast", "a=1&model=gpt-4o-mini"),
    ("deployment=gpt-4o&a=%2f", "deployment=gpt-4o&a=%2f"),
]


@pytest.mark.parametrize(("query", "sent"), QUERIES)
async def test_an_alias_in_a_query_is_replaced_too(gateway, standin, query, sent):
    """The offer of a call is no JSON: https://platform.openai.com/docs/guides/realtime-webrtc."""
    proxy = await gateway(standin, CONFIG)
    answer = await proxy.ask("POST", f"/realtime/calls?{query}", b"v=0", {"content-type": "application/sdp"})
    assert answer.status == 200
    seen = standin.requests[-1]
    assert (seen.raw_target, seen.body) == (f"/v1/realtime/calls?{sent}", b"v=0")


SESSIONS = [
    (
        "client_secrets",
        b'{"expires_after": {"seconds": 60.0}, "session": {"type": "realtime",  "model": "fast", "speed": 1.50}}',
    ),
    ("client_secrets", b'{"session":{"type":"transcription","audio":{"input":{"transcription":{"model": "fast"}}}}}'),
    ("client_secrets", b'{"session":{"model":"gpt-4o","audio":{"input":{"transcription":{"model": "fast"}}}}}'),
    ("sessions", b'{"model":"gpt-4o","input_audio_transcription":{"model": "fast"}}'),
    ("sessions", b'{"model": "fast","voice":"alloy"}'),
    ("sessions", b'{"model": "fast","speed":NaN}'),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("path", "body"), SESSIONS)
async def test_an_alias_in_a_session_of_realtime_is_replaced_too(gateway, standin, path, body, packed):
    proxy = await gateway(standin, CONFIG)
    encoding = {"content-encoding": "gzip"} if packed else {}
    for sent in (body.replace(b'"model": "fast"', b'"model": "gpt-4o-mini"'), body.replace(b"fast", b"gpt-4o")):
        asked = sent if b"mini" not in sent else body
        asked = gzip.compress(asked, mtime=0) if packed else asked
        await proxy.ask("POST", f"/realtime/{path}", asked, {"content-type": "application/json", **encoding})
        assert standin.requests[-1].body == (asked if b"mini" not in sent else sent)


async def test_an_alias_in_a_form_of_realtime_is_replaced_too(gateway, standin):
    proxy = await gateway(standin, CONFIG)
    form = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nfast\r\n--b--\r\n'
    await proxy.ask("POST", "/realtime/calls", form, {"content-type": "multipart/form-data; boundary=b"})
    assert standin.requests[-1].body == form.replace(b"fast", b"gpt-4o-mini")


BAD_BODIES = [
    ("118 not JSON", b"hello"),
    ("118 empty", b""),
    ("118 half a JSON", b'{"model":"gpt-4o","messages":[{"role":"us'),
    ("118 a list", b"[1,2]"),
    ("118 null", b"null"),
    ("118 not UTF-8", b'{"model":"gpt-4o","messages":[{"role":"user","content":"\xff\xfe\xc3("}]}'),
    ("118 deeply nested", b'{"model":"gpt-4o","messages":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    ("118 model missing", b'{"messages":[{"role":"user","content":"a"}]}'),
    ("118 a model that is a number", b'{"model":5,"messages":[{"role":"user","content":"a"}]}'),
    ("118 a lone surrogate", b'{"model":"gpt-4o","messages":[{"role":"user","content":"\\ud83d"}]}'),
]


@pytest.mark.parametrize("raw", [row[1] for row in BAD_BODIES], ids=[row[0] for row in BAD_BODIES])
async def test_118_what_cannot_be_read_is_forwarded_and_the_upstreams_own_error_comes_back(gateway, raw):
    refusal = fakes.error(400, "We could not parse the JSON body of your request.")
    async with StandIn(script=[refusal]) as standin:
        answer = await (await gateway(standin, CONFIG)).chat(raw)
        assert (answer.status, answer.body) == (400, refusal.chunks[0])
        assert [seen.body for seen in standin.chats] == [raw]


async def test_113_headers_travel_both_ways(gateway):
    told = {
        "retry-after": "3",
        "x-ratelimit-remaining-requests": "59",
        "openai-processing-ms": "12",
        "x-request-id": "req_1",
    }
    sent = {
        "authorization": "Bearer sk-client",
        "openai-organization": "org-1",
        "openai-project": "proj_1",
        "openai-beta": "assistants=v2",
        "idempotency-key": "abc",
        "x-custom": "ü".encode("latin-1").decode("latin-1"),
        "user-agent": "my-agent/1.0",
        "accept-language": "de",
    }
    async with StandIn(reply=fakes.Completion(headers=told)) as standin:
        running = await gateway(standin, CONFIG)
        answer = await running.chat(
            {"model": "gpt-4o", "messages": [user("a")]}, {**sent, "x-turnfold-mode": "enforce"}
        )
        arrived = standin.chats[0].headers
        assert {name: arrived[name] for name in sent} == sent
        assert not [name for name in arrived if name.lower().startswith("x-turnfold-")]
        assert {name: answer.headers[name] for name in told} == told


async def test_a_key_of_the_configuration_replaces_the_clients(gateway):
    async with StandIn(key="sk-config") as standin:
        running = await gateway(standin, {"upstreams": {"standin": {"provider": "openai", "base_url": standin.base_url, "api_key": "sk-config"}}})  # fmt: skip
        answer = await running.chat({"model": "gpt-4o", "messages": [user("a")]}, {"authorization": "Bearer sk-client"})
        assert answer.status == 200
        assert standin.chats[0].headers.getall("authorization") == ["Bearer sk-config"]


async def test_106_the_answer_is_the_upstreams_byte_for_byte(gateway):
    body = b'{ "id":"x",  "choices":[{"index":0,"message":{"role":"assistant","content":"\\u00e9"}}],"usage":{"prompt_tokens":123456,"x":1.50} }\n'
    async with StandIn(script=[Raw(200, (body,))]) as standin:
        answer = await (await gateway(standin, CONFIG)).chat({"model": "gpt-4o", "messages": [user("a")]})
        assert answer.body == body


async def test_106_a_stream_is_the_upstreams_byte_for_byte(gateway):
    chunks = (
        b": keep-alive\r\n\r\n",
        b'data: {"choices":[{"index":0,"delta":{"content":"\xc3',
        b'\xa9"}}]}\r\n\r\ndata: {"cho',
        b'ices":[],"usage":{"prompt_tokens":3}}\n\n',
        b"data: [DONE]\n\n",
    )
    async with StandIn(script=[Raw(200, chunks, {"content-type": EVENTS})]) as standin:
        answer = await (await gateway(standin, CONFIG)).chat(
            {"model": "gpt-4o", "messages": [user("a")], "stream": True}
        )
        assert answer.body == b"".join(chunks)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_compressed_answer_stays_compressed_for_a_client_that_asked(gateway, stream):
    packed = fakes.gzipped({"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]})
    async with StandIn(script=[packed]) as standin:
        body = {"model": "gpt-4o", "messages": [user("a")], "stream": stream}
        answer = await (await gateway(standin, CONFIG)).chat(body, {"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.body == packed.chunks[0]


async def test_a_stream_is_handed_on_chunk_by_chunk_as_it_comes(gateway):
    gate = Gate()
    events = [fakes.delta(str(number)) for number in range(5)]
    async with StandIn(script=[fakes.events(*events, gate=gate)]) as standin:
        running = await gateway(standin, CONFIG)
        url, body = f"{running.base_url}/chat/completions", {"model": "gpt-4o", "messages": [user("a")], "stream": True}
        gate.release()
        async with running.session.post(url, json=body) as response:
            for event in events:
                assert await response.content.readany() == b"data: " + orjson.dumps(event) + b"\n\n"
                gate.release()
            assert await response.read() == b"data: [DONE]\n\n"


async def test_116_a_client_that_leaves_in_mid_stream_cancels_the_upstream(gateway):
    gate = Gate(1)
    async with StandIn(script=[fakes.events(fakes.delta("a"), fakes.delta("b"), gate=gate)]) as standin:
        running = await gateway(standin, CONFIG)
        url, body = f"{running.base_url}/chat/completions", {"model": "gpt-4o", "messages": [user("a")], "stream": True}
        response = await running.session.post(url, json=body)
        await response.content.readany()
        response.close()
        async with asyncio.timeout(5):
            await standin.chats[0].done.wait()
        assert standin.chats[0].left


async def test_a_slow_reader_slows_the_upstream_not_the_memory(gateway):
    sent = 0

    async def count(_: int) -> None:
        nonlocal sent
        sent += 1

    block = b"data: " + b"x" * 65_000 + b"\n\n"
    stream = Raw(200, (block,) * 2000, {"content-type": EVENTS}, count)
    async with StandIn(script=[stream]) as standin:
        running = await gateway(standin, CONFIG)
        url, body = f"{running.base_url}/chat/completions", {"model": "gpt-4o", "messages": [user("a")], "stream": True}
        async with running.session.post(url, json=body) as response:
            await response.content.readexactly(1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await standin.chats[0].done.wait()  # 130 MB are not swallowed while nobody reads
            assert sent < 600
            response.close()


async def test_117_the_same_request_twice_is_two_upstream_calls(gateway, standin):
    running = await gateway(standin, CONFIG)
    bodies = [(await running.chat({"model": "gpt-4o", "messages": [user("a")]})).status for _ in range(2)]
    assert bodies == [200, 200]
    assert len(standin.chats) == 2


@pytest.mark.parametrize("mode", ["off", "observe"])
async def test_104_an_opt_out_is_never_altered(gateway, mode):
    async with StandIn(window=1000) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": 1000, "tokenizer": "o200k"}}})
        raw = orjson.dumps({"model": "m", "messages": fakes.chat(30), "max_tokens": 10})
        answer = await running.chat(raw, {"x-turnfold-mode": mode})
        assert (answer.status, answer.action) == (400, mode)
        assert answer.json["error"]["code"] == "context_length_exceeded"
        assert [seen.body for seen in standin.chats] == [raw]
        assert "x-turnfold-mode" not in standin.chats[0].headers


async def test_104_the_mode_of_a_model_may_be_configured(gateway):
    async with StandIn(window=1000) as standin:
        running = await gateway(standin, {"models": {"m": {"context_window": 1000, "mode": "off"}}})
        raw = orjson.dumps({"model": "m", "messages": fakes.chat(30)})
        assert (await running.chat(raw)).action == "off"
        assert [seen.body for seen in standin.chats] == [raw]


async def test_105_an_unaltered_answer_says_so(gateway, standin):
    answer = await (await gateway(standin, CONFIG)).chat({"model": "gpt-4o", "messages": [user("a")]})
    assert answer.action == "none"
    assert answer.headers["x-turnfold-window"] == "128000"
    assert answer.headers["x-turnfold-attempts"] == "1"
    assert answer.headers["x-turnfold-turns-folded"] == "0"
    assert answer.headers["x-turnfold-request-id"]
    before, after = answer.tokens
    assert before == after >= standin.chats[0].prompt_tokens


PATHS = [
    ("GET", "/models", b""),
    ("GET", "/models/gpt-4o?x=1&x=2&y=%20a%2Fb", b""),
    ("POST", "/responses", b'{"model":"gpt-4o","input":"hi"}'),
    ("POST", "/completions", b'{"model":"gpt-4o","prompt":"hi"}'),
    ("DELETE", "/files/file-1", b""),
    ("PATCH", "/anything/at%20all?q=%C3%A9", b"\x00\xff\x00"),
    ("PUT", "/upload", b"x" * 300_000),
    ("POST", "/images/generations", b'{"prompt":"a ship"}'),
    ("GET", "/chat/completions?limit=2", b""),
    ("POST", "/chat/completions/cmpl_1", b"{}"),
    ("OPTIONS", "/models", b""),
]


@pytest.mark.parametrize(("method", "path", "body"), PATHS)
async def test_every_other_endpoint_passes_with_its_query_and_body(gateway, standin, method, path, body):
    running = await gateway(standin, CONFIG)
    answer = await running.ask(method, path, body, {"content-type": "application/octet-stream", "x-one": "1"})
    assert answer.status == 200
    seen = standin.requests[0]
    assert (seen.method, seen.path, seen.body) == (method, "/v1" + path.partition("?")[0].replace("%20", " "), body)
    assert seen.raw_target.endswith(path)
    assert seen.headers["x-one"] == "1"


async def test_an_upload_in_parts_passes(gateway, standin):
    running = await gateway(standin, CONFIG)
    form = aiohttp.FormData()
    form.add_field("purpose", "assistants")
    form.add_field("file", bytes(range(256)) * 1000, filename="data.bin", content_type="application/octet-stream")
    async with running.session.post(f"{running.base_url}/files", data=form) as response:
        assert (await response.json())["bytes"] == len(standin.requests[0].body) > 256_000
    assert standin.requests[0].headers["content-type"].startswith("multipart/form-data; boundary=")
    assert bytes(range(256)) * 1000 in standin.requests[0].body


async def test_an_upload_of_unknown_length_passes_as_a_stream(gateway, standin):
    running = await gateway(standin, CONFIG)

    async def pieces():
        for number in range(100):
            yield bytes([number]) * 10_000

    async with running.session.post(f"{running.base_url}/files", data=pieces()) as response:
        told = await response.json()
    assert told["bytes"] == 1_000_000
    assert told["sha256"] == hashlib.sha256(b"".join(bytes([n]) * 10_000 for n in range(100))).hexdigest()


async def test_a_binary_download_passes(gateway, standin):
    answer = await (await gateway(standin, CONFIG)).ask("GET", "/files/file-1/content")
    assert answer.body == bytes(range(256)) * 512
    assert answer.headers["content-type"] == "application/octet-stream"


async def test_the_status_and_redirects_of_others_are_not_followed(gateway):
    script = [
        Raw(302, (b"",), {"location": "/elsewhere"}),
        Raw(204, (), {}),
        Raw(418, (b"tea",), {"content-type": "text/plain"}),
    ]
    async with StandIn(script=script) as standin:
        running = await gateway(standin, CONFIG)
        for status in (302, 204, 418):
            async with running.session.get(f"{running.base_url}/odd", allow_redirects=False) as response:
                assert response.status == status
                await response.read()
        assert len(standin.requests) == 3


async def test_models_go_to_their_own_upstreams(gateway, standin):
    async with StandIn() as other:
        config = {
            "upstreams": {
                "standin": {"provider": "openai", "base_url": standin.base_url},
                "other": {"provider": "vllm", "base_url": other.base_url},
            },
            "models": {"llama-*": {"upstream": "other", "context_window": 8192}},
        }
        running = await gateway(standin, config)
        assert (await running.chat({"model": "llama-3-8b", "messages": [user("a")]})).headers[
            "x-turnfold-window"
        ] == "8192"
        await running.ask(
            "POST", "/embeddings", b'{"model":"llama-e","input":"x"}', {"content-type": "application/json"}
        )
        await running.chat({"model": "gpt-4o", "messages": [user("a")]})
        assert [seen.path for seen in other.requests] == ["/v1/chat/completions", "/v1/embeddings"]
        assert len(standin.requests) == 1


async def test_many_at_once_are_all_answered_with_their_own_answer(gateway):
    def echo(seen):
        return fakes.reply(seen.messages[-1]["content"])

    async with StandIn(otherwise=echo) as standin:
        running = await gateway(standin, CONFIG)

        async def one(number: int) -> bool:
            stream = number % 2 == 0
            answer = await running.chat({"model": "gpt-4o", "messages": [user(f"number {number}")], "stream": stream})
            said = (
                "".join(part["choices"][0]["delta"].get("content", "") for part in events_of(answer)[:-1])
                if stream
                else answer.json["choices"][0]["message"]["content"]
            )
            return said == f"number {number}"

        assert all(await asyncio.gather(*(one(number) for number in range(60))))


async def test_health_and_readiness_are_told(gateway, standin):
    running = await gateway(standin, CONFIG)
    root = running.base_url.removesuffix("/v1")
    for path in ("/healthz", "/readyz"):
        async with running.session.get(root + path) as response:
            assert response.status == 200
    async with running.session.get(root + "/elsewhere") as response:
        assert response.status == 404
        assert orjson.loads(await response.read())["error"]["message"]
    assert standin.requests == []
