"""Client keys: nobody is served without one, each is held to its models, modes and limits, and none leaves the gateway."""

import asyncio
from hashlib import sha256

import aiohttp
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic import AsyncAnthropic
from anthropic import AuthenticationError as AnthropicAuthenticationError
from anthropic import PermissionDeniedError as AnthropicPermissionDeniedError
from anthropic import RateLimitError as AnthropicRateLimitError
from openai import AsyncOpenAI, AuthenticationError, PermissionDeniedError, RateLimitError
from structlog.testing import capture_logs

from gateway import config as settings
from gateway.standin import StandIn
from tests import fakes, raw, running
from tests.compressed import PACK

KEY, OTHER = "tfk_the-key-of-alice", "tfk_the-key-of-bob"
UPSTREAM_KEY = "sk-of-the-operator"
ASK = {"model": "gpt-4o", "messages": [fakes.user("hi")]}
BEARER = {"authorization": f"Bearer {KEY}"}


def hashed(key):
    return f"sha256:{sha256(key.encode()).hexdigest()}"


def keyed(**limits):
    """One key with limits, one without, and an upstream whose own key is configured."""
    return {
        "keys": {"alice": {"hash": hashed(KEY), **limits}, "bob": {"hash": hashed(OTHER)}},
        "upstreams": {"standin": {"api_key": UPSTREAM_KEY}},
    }


@pytest.fixture
def guarded(standin, gateway):
    """Start a gateway that asks for keys."""

    async def start(**limits):
        config = keyed(**limits)
        config["upstreams"]["standin"] |= {"provider": "openai", "base_url": standin.base_url}
        return await gateway(standin, config)

    return start


def sent_anywhere(standin, text):
    """Whether a text is in anything that the upstream was sent."""
    return any(text in f"{asked.headers} {asked.body!r} {asked.path}" for asked in standin.requests)


ACCEPTED = [
    ({"authorization": f"Bearer {KEY}"}, "a bearer"),
    ({"authorization": f"bearer  {KEY} "}, "a scheme in any case"),
    ({"x-api-key": KEY}, "Anthropic's header"),
    ({"api-key": KEY}, "Azure's header"),
    ({"authorization": "Bearer sk-placeholder", "x-api-key": KEY}, "a placeholder beside it"),
]
REFUSED = [
    ({}, "no key"),
    ({"authorization": ""}, "an empty header"),
    ({"authorization": "Bearer "}, "a scheme alone"),
    ({"authorization": f"Bearer {KEY}x"}, "a longer key"),
    ({"authorization": f"Bearer {KEY[:-1]}"}, "a shorter key"),
    ({"authorization": f"Basic {KEY}"}, "another scheme"),
    ({"authorization": f"Bearer {hashed(KEY)}"}, "the hash"),
    ({"authorization": f"Bearer {UPSTREAM_KEY}"}, "the upstream's key"),
    ({"cookie": f"key={KEY}"}, "a cookie"),
    ({"x-turnfold-caller": KEY}, "a header that is used inside"),
]
PATHS = [
    ("POST", "/chat/completions", b'{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}'),
    ("POST", "/responses", b'{"model":"gpt-4o","input":"hi"}'),
    ("POST", "/messages", b'{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'),
    ("POST", "/messages/count_tokens", b'{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}'),
    ("POST", "/embeddings", b'{"model":"gpt-4o","input":"hi"}'),
    ("POST", "/files", b"anything"),
    ("GET", "/models", b""),
    ("GET", "/models/gpt-4o", b""),
    ("DELETE", "/files/f", b""),
]


@pytest.mark.parametrize(("headers", "_"), ACCEPTED, ids=[each[1] for each in ACCEPTED])
async def test_a_known_key_is_served_and_ends_at_the_gateway(guarded, standin, headers, _):
    answer = await (await guarded()).chat(ASK, headers)
    assert answer.status == 200
    (chat,) = standin.chats
    assert chat.headers["authorization"] == f"Bearer {UPSTREAM_KEY}"
    assert not sent_anywhere(standin, KEY)
    assert not sent_anywhere(standin, "sk-placeholder")


@pytest.mark.parametrize(("headers", "_"), REFUSED, ids=[each[1] for each in REFUSED])
async def test_anybody_else_is_refused(guarded, standin, headers, _):
    answer = await (await guarded()).chat(ASK, headers)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json["error"]["code"] == "invalid_api_key"
    assert KEY.encode() not in answer.body
    assert not standin.requests


@pytest.mark.parametrize(("method", "path", "body"), PATHS, ids=[f"{each[0]} {each[1]}" for each in PATHS])
@pytest.mark.parametrize("prefix", ["", "/v1", "/v1/v1"])
async def test_every_endpoint_asks_for_the_key(guarded, standin, method, path, body, prefix):
    running = await guarded()
    async with running.session.request(
        method,
        running.base_url.removesuffix("/v1") + prefix + path,
        data=body or None,
        headers={"content-type": "application/json"},
    ) as answer:
        assert answer.status == 401
    assert not standin.requests


@pytest.mark.parametrize(("method", "path", "body"), PATHS, ids=[f"{each[0]} {each[1]}" for each in PATHS])
async def test_on_no_endpoint_does_the_key_travel_on(guarded, standin, method, path, body):
    running = await guarded()
    others = {"cookie": f"k={KEY}", "x-goog-api-key": KEY, "x-portkey-api-key": KEY, "x-auth-token": KEY}
    await running.ask(method, path, body, {"content-type": "application/json", **others, **BEARER})
    assert standin.requests
    assert not sent_anywhere(standin, KEY)


async def test_headers_that_name_a_request_or_a_session_travel_on(guarded, standin):
    named = {"idempotency-key": "one", "x-sgl-routing-key": "two", "x-smg-routing-key": "three", "x-session-id": "four"}
    await (await guarded()).chat(ASK, {**named, **BEARER})
    assert named.items() <= dict(standin.chats[0].headers).items()


async def test_health_needs_no_key(guarded):
    running = await guarded()
    async with running.session.get(f"http://127.0.0.1:{running.port}/healthz") as answer:
        assert answer.status == 200


async def test_an_upstream_without_a_key_gets_none(gateway, standin):
    running = await gateway(standin, {"keys": {"alice": {"hash": hashed(KEY)}}})
    assert (await running.chat(ASK, BEARER)).status == 200
    assert "authorization" not in standin.chats[0].headers
    assert not sent_anywhere(standin, KEY)


async def test_the_sdks_raise_what_their_users_catch(guarded):
    running = await guarded(models=["gpt-4o"], rpm=1)
    root = running.base_url.removesuffix("/v1")
    ask = {"model": "gpt-4o", "max_tokens": 5, "messages": [fakes.user("hi")]}
    async with AsyncOpenAI(base_url=running.base_url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(AuthenticationError):
            await stranger.chat.completions.create(**ASK)
    async with AsyncAnthropic(base_url=root, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(AnthropicAuthenticationError) as refused:
            await stranger.messages.create(**ask)
        assert refused.value.body["error"]["type"] == "authentication_error"
        with pytest.raises(AnthropicAuthenticationError) as refused:
            await stranger.models.list()
        assert refused.value.body["type"] == "error"
    async with AsyncOpenAI(base_url=running.base_url, api_key=KEY, max_retries=0) as alice:
        await alice.chat.completions.create(**ASK)
        with pytest.raises(RateLimitError, match="1 requests a minute"):
            await alice.chat.completions.create(**ASK)
    async with AsyncAnthropic(base_url=root, api_key=KEY, max_retries=0) as alice:
        with pytest.raises(AnthropicRateLimitError):
            await alice.messages.create(**ask)


async def test_the_sdks_are_told_of_a_model_that_is_not_allowed(guarded, standin):
    running = await guarded(models=["gpt-4o-*"])
    async with AsyncOpenAI(base_url=running.base_url, api_key=KEY, max_retries=0) as alice:
        with pytest.raises(PermissionDeniedError, match=r"gpt-4o-\*"):
            await alice.chat.completions.create(**ASK)
    async with AsyncAnthropic(base_url=running.base_url.removesuffix("/v1"), api_key=KEY, max_retries=0) as alice:
        with pytest.raises(AnthropicPermissionDeniedError):
            await alice.messages.create(model="gpt-4o", max_tokens=5, messages=[fakes.user("hi")])
    assert not standin.requests


MODELS = [
    # patterns, model, served
    (["gpt-4o"], "gpt-4o", True),
    (["gpt-4o"], "gpt-4o-mini", False),
    (["gpt-4o*"], "gpt-4o-mini", True),
    (["a", "g?t-4o"], "gpt-4o", True),
    (["gpt-[4]o"], "gpt-4o", False),
    (["*"], "anything", True),
    ([], "anything", True),
    (["a*" * 40 + "b"], "a" * 200, False),
]


@pytest.mark.parametrize(("patterns", "model", "served"), MODELS)
async def test_a_key_is_held_to_its_models(guarded, patterns, model, served):
    running = await guarded(models=patterns)
    assert (await running.chat({**ASK, "model": model}, BEARER)).status == (200 if served else 403)


@pytest.mark.parametrize(
    "asked", [{**ASK, "model": "dear"}, {"messages": ASK["messages"]}], ids=["another model", "no model"]
)
async def test_a_refusal_says_which_models_the_key_is_for(guarded, asked):
    refused = await (await guarded(models=["gpt-4o*", "o3"])).chat(asked, BEARER)
    assert refused.json["error"]["message"].endswith(". The key is for: gpt-4o*, o3.")


def session_form(name):
    """A form with a model, and another one in a field of this name."""
    head = b"--b\r\nContent-Disposition: form-data; "
    return head + b'name="model"\r\n\r\ngpt-4o\r\n' + head + name + b'\r\n\r\n{"model":"dear"}\r\n--b--\r\n'


BODIES = [
    ("/embeddings", b'{"model":"dear","input":"hi"}', "application/json"),
    ("/embeddings", b'{"input":"hi"}', "application/json"),
    ("/embeddings", b'{"model":"gpt-4o","model":"dear","input":"hi"}', "application/json"),
    ("/batches", b'{"input_file_id":"f"}', "application/json"),
    ("/chat/completions", b'{"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/chat/completions", b'{"model":"dear","messages":"no conversation"}', "application/json"),
    ("/chat/completions", b'{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"model":"dear"}', "application/json"),
    ("/chat/completions", b'{"model":"dear","messages":[{"role":"user","content":"hi"}],"model":"gpt-4o"}', "application/json"),
    ("/embeddings", b'{"model":"dear","input":"hi","model":"gpt-4o"}', "application/json"),
    ("/audio/transcriptions", b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ndear\r\n--b--\r\n', "multipart/form-data; boundary=b"),
    ("/images/generations", b"not JSON at all", "application/json"),
    ("/chat/completions", b'{"model":"gpt-4o","Model":"dear","messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/embeddings", b'{"MODEL":"dear","input":"hi","model":"gpt-4o"}', "application/json"),
    ("/embeddings", b'{"model":"dear","input":"&model=gpt-4o&"}', "application/x-www-form-urlencoded"),
    ("/embeddings", b'{"model":"dear"}\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\ngpt-4o\r\n--b--\r\n', "multipart/form-data; boundary=b"),
    ("/embeddings?model=dear", b'{"model":"gpt-4o","input":"hi"}', "application/json"),
    ("/engines/dear/completions", b'{"model":"gpt-4o","prompt":"hi"}', "application/json"),
    ("/models/dear:generateContent", b'{"model":"gpt-4o"}', "application/json"),
    ("/chat/completions", b'{"model":"gpt-4o","models":["gpt-4o","dear"],"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/chat/completions", b'{"model":"gpt-4o","fallbacks":[{"model":"dear"}],"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/chat/completions", b'{"model":"gpt-4o","Models":["dear"],"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/responses", b'{"model":"gpt-4o","models":["dear"],"input":"hi"}', "application/json"),
    ("/messages", b'{"model":"gpt-4o","fallbacks":[{"gpt-4o":["dear"]}],"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/completions", b'{"model":"gpt-4o","models":["dear"],"prompt":"hi"}', "application/json"),
    ("/completions", b'{"model":"gpt-4o","models":["dear"],"prompt":"hi","x":NaN}', "application/json"),
    ("/realtime/client_secrets", b'{"model":"gpt-4o","session":{"model":"dear"}}', "application/json"),
    ("/realtime/client_secrets", b'{"model":"gpt-4o","Session":{"model":"dear"}}', "application/json"),
    ("/realtime/client_secrets", b'{"session":{"model":"dear"}}', "application/json"),
    ("/realtime/client_secrets", b'{"session":{"type":"realtime"}}', "application/json"),
    ("/realtime/client_secrets", b'{"session":{"model":"gpt-4o","Model":"dear"}}', "application/json"),
    ("/realtime/client_secrets", b'{"session":{"model":"dear"},"session":{"model":"gpt-4o"}}', "application/json"),
    ("/realtime/client_secrets", b'{"session":{"model":"gpt-4o"},"model":"dear"}', "application/json"),
    ("/realtime/client_secrets", b'{"session":{"model":"gpt-4o","audio":{"input":{"transcription":{"model":"dear"}}}}}', "application/json"),
    ("/realtime/sessions", b'{"session":{"model":"gpt-4o"}}', "application/json"),
    ("/embeddings", b'{"session":{"model":"gpt-4o"},"input":"hi"}', "application/json"),
    ("/realtime/calls", session_form(b'name="session"'), "multipart/form-data; boundary=b"),
    ("/realtime/calls", session_form(b"name=session"), "multipart/form-data; boundary=b"),
    ("/realtime/calls", session_form(b'name="Ses\\sion"'), "multipart/form-data; boundary=b"),
    ("/completions", b"model=gpt-4o&prompt=hi&models=dear", "application/x-www-form-urlencoded"),
    ("/chat/completions", b'{"model":"gpt-4o","context_window_fallbacks":[{"gpt-4o":["dear"]}],"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/chat/completions", b'{"model":"gpt-4o","content_policy_fallbacks":[{"gpt-4o":["dear"]}],"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/messages", b'{"model":"gpt-4o","tools":[{"type":"advisor_20260301","name":"advisor","model":"dear"}],"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/messages", b'{"model":"gpt-4o","tools":[],"Tools":[{"type":"advisor_20260301","model":"dear"}],"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/messages", b'{"model":"gpt-4o","tools":[{"name":"a","model":"gpt-4o","Model":"dear"}],"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}', "application/json"),
    ("/responses", b'{"model":"gpt-4o","tools":[{"type":"web_search"},{"type":"image_generation","model":"dear"}],"input":"hi"}', "application/json"),
    ("/responses", b'{"model":"gpt-4o","input":["hi",{"type":"additional_tools","role":"developer","tools":[{"type":"image_generation","model":"dear"}]}]}', "application/json"),
    ("/responses", b'{"model":"gpt-4o","input":[{"type":"additional_tools","tools":[],"Tools":[{"type":"image_generation","model":"dear"}]}]}', "application/json"),
    ("/responses", b'{"model":"gpt-4o","tools":[{"type":"image_generation","svg":{"model":"dear"}}],"input":"hi"}', "application/json"),
    ("/chat/completions?model=dear", b'{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}', "application/json"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "kind"), BODIES)
async def test_no_form_of_a_body_reaches_another_model(guarded, standin, path, body, kind):
    running = await guarded(models=["gpt-4o"])
    answer = await running.ask("POST", path, body, {"content-type": kind, **BEARER})
    assert answer.status in (400, 403)
    assert not standin.requests


async def test_a_secret_for_a_realtime_session_is_for_the_models_of_the_key(guarded, standin):
    running = await guarded(models=["gpt-4o"])
    standin.script.append(fakes.Raw(200, (b'{"value":"ek_1","expires_at":1,"session":{"type":"realtime"}}',)))
    async with AsyncOpenAI(base_url=running.base_url, api_key=KEY, max_retries=0) as client:
        made = await client.realtime.client_secrets.create(session={"type": "realtime", "model": "gpt-4o"})
        assert made.value == "ek_1"
        with pytest.raises(PermissionDeniedError):
            await client.realtime.client_secrets.create(session={"type": "realtime", "model": "dear"})
    assert len(standin.requests) == 1


@pytest.mark.parametrize(
    "more",
    [
        {
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "f", "parameters": {"properties": {"model": {"const": "dear"}}}},
                }
            ]
        },
        {"tools": [{"type": "image_generation", "model": "gpt-4o"}]},
        {"tools": None},
        {"models": ["gpt-4o"]},
        {"fallbacks": None, "models": []},
        {"response": {"a": 1}, "metadata": {"models": "x"}},
    ],
)
async def test_a_body_may_name_its_own_model_again(guarded, more):
    assert (await (await guarded(models=["gpt-4o"])).chat({**ASK, **more}, BEARER)).status == 200


async def test_the_text_and_files_of_a_form_name_no_other_model(guarded, standin):
    running = await guarded(models=["gpt-4o"])
    body = session_form(b'name="prompt"').replace(b'{"model":"dear"}', b'say "models" and "session", \\u0041')
    headers = {"content-type": "multipart/form-data; boundary=b", **BEARER}
    assert (await running.ask("POST", "/audio/transcriptions", body, headers)).status == 200
    assert standin.requests[-1].body == body


@pytest.mark.parametrize("path", ["/models/dear", "/models/ft:dear", "/engines/dear"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_no_url_reaches_another_model(guarded, standin, method, path):
    running = await guarded(models=["gpt-4o"])
    assert (await running.ask(method, path, headers=BEARER)).status == 403
    assert not standin.requests


async def test_the_list_of_models_shows_what_the_key_is_for(guarded):
    running = await guarded(models=["nothing-there", "alias*"])
    listed = (await running.ask("GET", "/models", headers=BEARER)).json["data"]
    assert listed == []
    assert (await running.ask("GET", "/models/gpt-4o", headers=BEARER)).status == 403
    others = await running.ask("GET", "/models", headers={"authorization": f"Bearer {OTHER}"})
    assert others.json["data"]


async def test_a_key_is_held_to_its_modes(guarded):
    running = await guarded(modes=["enforce", "observe"])
    refused = await running.chat(ASK, {**BEARER, "x-turnfold-mode": "off"})
    assert refused.status == 403
    assert refused.json["error"]["code"] == "mode_not_allowed"
    assert (await running.chat(ASK, {**BEARER, "x-turnfold-mode": "observe"})).status == 200
    assert (await running.chat(ASK, {"x-api-key": OTHER, "x-turnfold-mode": "off"})).status == 200


@pytest.mark.parametrize(
    ("expires", "status"), [("2020-01-31", 401), ("2020-01-31T10:00:00+02:00", 401), ("2999-01-31", 200)]
)
async def test_a_key_ends_with_its_time(guarded, expires, status):
    answer = await (await guarded(expires=expires)).chat(ASK, BEARER)
    assert answer.status == status
    if status == 401:
        assert answer.json["error"]["code"] == "expired_api_key"


async def test_requests_a_minute_are_counted_and_told(guarded, standin, at_noon):
    running = await guarded(rpm=2)
    first, second, third = [await running.chat(ASK, BEARER) for _ in range(3)]
    assert [first.status, second.status, third.status] == [200, 200, 429]
    assert [each.headers["x-ratelimit-remaining-requests"] for each in (first, second, third)] == ["1", "0", "0"]
    assert first.headers["x-ratelimit-limit-requests"] == "2"
    assert first.headers["x-ratelimit-reset-requests"] == f"{at_noon}s"
    assert third.headers["retry-after"] == str(at_noon)
    assert third.json["error"]["code"] == "rate_limit_exceeded"
    assert len(standin.chats) == 2
    assert (await running.chat(ASK, {"x-api-key": OTHER})).status == 200, "another key has its own limits"


async def test_billed_tokens_are_counted_and_told(guarded, at_noon):
    running = await guarded(tpm=50)
    first = await running.chat(ASK, BEARER)
    await running.settled()
    billed = first.json["usage"]["prompt_tokens"] + first.json["usage"]["completion_tokens"]
    second = await running.chat(ASK, BEARER)
    await running.settled()
    assert await left(running) == 50 - 2 * billed
    assert int(second.headers["x-ratelimit-remaining-tokens"]) < 50 - billed, "what the request may take is reserved"
    statuses = []
    for _ in range(50 // billed + 1):
        statuses.append((await running.chat(ASK, BEARER)).status)
        await running.settled()
    assert statuses[-1] == 429
    refused = await running.chat(ASK, BEARER)
    assert refused.headers["retry-after"] == str(at_noon)
    assert int(refused.headers["x-ratelimit-remaining-tokens"]) < len(str(ASK)) // 4 + 50 // 10


async def left(running):
    """The tokens that are left to the key."""
    return int((await running.ask("GET", "/models", headers=BEARER)).headers["x-ratelimit-remaining-tokens"])


async def test_many_at_once_spend_no_more_tokens_than_the_limit(guarded, standin, at_noon):
    running = await guarded(tpm=1000)
    answers = await asyncio.gather(*(running.chat({**ASK, "max_tokens": 200}, BEARER) for _ in range(20)))
    assert sorted(each.status for each in answers) == [200] * 4 + [429] * 16
    assert "this request may take 2" in next(each for each in answers if each.status == 429).json["error"]["message"]
    await running.settled()
    billed = sum(sum(each.json["usage"][kind] for kind in ("prompt_tokens", "completion_tokens"))
                 for each in answers if each.status == 200)  # fmt: skip
    assert await left(running) == 1000 - billed, "what was reserved and not spent is free again"


async def test_what_an_answer_was_not_given_for_is_not_charged(guarded, standin, at_noon):
    running = await guarded(tpm=1000)
    standin.script.append(fakes.error(400, "no"))
    assert (await running.chat(ASK, BEARER)).status == 400
    await running.settled()
    assert await left(running) == 1000


async def test_a_request_larger_than_the_limit_is_served_alone(guarded, standin, at_noon):
    running = await guarded(tpm=100)
    large = {**ASK, "max_tokens": 5000}
    first, second = await asyncio.gather(running.chat(large, BEARER), running.chat(large, BEARER))
    assert sorted((first.status, second.status)) == [200, 429]


async def test_each_key_has_numbers_of_its_own(guarded):
    running = await guarded(rpm=1)
    for _ in range(2):
        await running.chat(ASK, BEARER)
    async with running.session.get(f"{running.admin_url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    [name] = [key for key in running.inside.gateway.settings.keys if running.inside.gateway.settings.keys[key].rpm == 1]
    assert f'turnfold_key_requests_total{{key="{name}",status="200"}} 1.0' in lines
    assert f'turnfold_key_requests_total{{key="{name}",status="429"}} 1.0' in lines
    assert any(line.startswith(f'turnfold_key_tokens_total{{key="{name}",kind="prompt"}}') for line in lines)


async def test_streams_and_embeddings_are_billed_too(guarded, standin, at_noon):
    running = await guarded(tpm=100_000)
    await running.chat({**ASK, "stream": True, "stream_options": {"include_usage": True}}, BEARER)
    await running.settled()
    after_stream = int((await running.ask("GET", "/models", headers=BEARER)).headers["x-ratelimit-remaining-tokens"])
    assert after_stream < 100_000
    embedded = await running.ask(
        "POST", "/embeddings", b'{"model":"e","input":"hi"}', {"content-type": "application/json", **BEARER}
    )
    await running.settled()
    left = int((await running.ask("GET", "/models", headers=BEARER)).headers["x-ratelimit-remaining-tokens"])
    assert left == after_stream - embedded.json["usage"]["prompt_tokens"] < after_stream


async def test_many_at_once_get_no_more_than_the_limit(guarded, standin, at_noon):
    running = await guarded(rpm=5)
    answers = await asyncio.gather(*(running.chat(ASK, BEARER) for _ in range(20)))
    assert sorted(each.status for each in answers) == [200] * 5 + [429] * 15
    assert len(standin.chats) == 5


async def test_two_keys_share_no_memory(guarded):
    running = await guarded()
    scopes = set()
    known = running.inside.gateway.learning.conversations
    build = known.last_request
    names = []
    known.last_request = lambda hashes: (names.append(tuple(hashes)), build(hashes))[1]
    history = {"model": "gpt-4o", "messages": fakes.chat(40, 4000)}
    for headers in ({"x-api-key": KEY}, {"x-api-key": OTHER}, BEARER):
        names.clear()
        assert (await running.chat(history, headers)).status == 200
        scopes.add(names[0])
    assert len(scopes) == 2, "one key is one caller, whichever header carries it"


async def test_the_record_names_the_key_and_holds_nothing_of_it(guarded):
    with capture_logs() as lines:
        running = await guarded(models=["gpt-4o"])
        await running.chat(ASK, BEARER)
        await running.chat({**ASK, "model": "other"}, BEARER)
        await running.ask("GET", "/models", headers=BEARER)
        await running.chat(ASK, {"authorization": f"Bearer {KEY}y"})
    exchanges = running.inside.gateway.records.newest()
    assert [each.key for each in reversed(exchanges)] == ["alice", "alice", "alice", ""]
    assert KEY not in f"{exchanges} {lines}"


async def test_a_websocket_asks_for_the_key_and_does_not_hand_it_on(guarded, standin):
    running = await guarded(models=["gpt-4o"])
    url = running.base_url.replace("http", "ws") + "/realtime?model="
    for headers, model, status in (({}, "gpt-4o", 401), (BEARER, "other", 403), (BEARER, "", 403)):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await running.session.ws_connect(url + model, headers=headers)
        assert refused.value.status == status
    assert not standin.requests
    protocols = ["realtime", f"openai-insecure-api-key.{KEY}"]
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await running.session.ws_connect(url + "gpt-4o", protocols=protocols)
    assert refused.value.status == 502, "the stand-in has no WebSocket; the key was accepted"
    assert standin.requests
    assert not sent_anywhere(standin, KEY)


async def test_two_gateways_share_limits_through_redis(standin, gateway, at_noon, redis_url):
    config = {**keyed(rpm=4), "store": {"url": redis_url, "timeout": "5s"}}
    config["upstreams"]["standin"] |= {"provider": "openai", "base_url": standin.base_url}
    first, second = [await gateway(standin, config) for _ in range(2)]
    answers = [await each.chat(ASK, BEARER) for _ in range(3) for each in (first, second)]
    assert [each.status for each in answers] == [200] * 4 + [429] * 2


async def test_limits_hold_in_each_process_while_redis_is_away(standin, gateway, at_noon):
    config = {**keyed(rpm=2), "store": {"url": "redis://127.0.0.1:1/0"}}
    config["upstreams"]["standin"] |= {"provider": "openai", "base_url": standin.base_url}
    running = await gateway(standin, config)
    assert [(await running.chat(ASK, BEARER)).status for _ in range(3)] == [200, 200, 429]


EVENT = fakes.events(fakes.delta("word " * 40), done=False).chunks[0]
NO_BILL = fakes.verbatim(200, EVENT * 400, {"content-type": "text/event-stream"})
"""A stream of 400 events that does not state its bill."""
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("chunked", [None, True])
@pytest.mark.parametrize(("path", "prompt"), [("/chat/completions", "messages"), ("/completions", "prompt")])
async def test_a_stream_that_states_no_bill_is_counted_by_its_size(guarded, standin, at_noon, path, prompt, chunked):
    standin.script.append(NO_BILL)
    running = await guarded(tpm=10_000)
    body = orjson.dumps({"model": "gpt-4o", "stream": True, prompt: [fakes.user("hi " * 400)]})
    url = f"{running.base_url}{path}"
    async with running.session.post(url, data=body, headers=BEARER, chunked=chunked) as answer:
        assert await answer.read()
    await running.settled()
    counted = 10_000 - await left(running)
    by_size = len(body) // 4 + len(EVENT) * 400 // 256
    assert counted == by_size


@pytest.mark.parametrize("chunked", [None, True])
async def test_a_client_that_leaves_before_the_bill_of_its_embeddings_is_charged(gateway, at_noon, chunked):
    """The upstream has its text and bills it to us."""
    body = orjson.dumps({"model": "gpt-4o", "input": "hi " * 400})
    async with raw.upstream(lambda connection, number: b"") as silent:
        config = keyed(tpm=1000)
        config["upstreams"]["standin"] |= {"provider": "openai", "base_url": silent.base_url}
        running = await gateway(silent.base_url, config)
        leaves = aiohttp.ClientTimeout(total=0.3)
        url = f"{running.base_url}/embeddings"
        with pytest.raises(TimeoutError):
            await running.session.post(url, data=body, headers={**BEARER, **JSON}, chunked=chunked, timeout=leaves)
        rates = running.inside.gateway.rates
        async with asyncio.timeout(10):
            while rates._reserved:  # noqa: ASYNC110  # the gateway notices later that its client has left
                await asyncio.sleep(0.01)
        await running.settled()
        used = await rates.use(running.inside.gateway.settings.keys["alice"].id, "tokens", 0, 1000)
    assert used.count == len(body) // 4


async def test_a_stream_that_states_its_bill_is_charged_its_bill(guarded, standin, at_noon):
    bill = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}}
    standin.script.append(fakes.events(*[fakes.delta("word " * 40)] * 400, bill))
    running = await guarded(tpm=10_000)
    await running.chat({**ASK, "stream": True, "stream_options": {"include_usage": True}}, BEARER)
    await running.settled()
    assert await left(running) == 10_000 - 27


@pytest.mark.parametrize(
    ("path", "more", "fits"),
    [
        ("/chat/completions", {"n": 45, "max_tokens": 20}, False),
        ("/chat/completions", {"n": 40, "max_tokens": 20}, True),
        ("/chat/completions", {"n": "45", "max_tokens": 20}, False),
        ("/chat/completions", {"n": 45.0, "max_tokens": 20}, False),
        ("/chat/completions", {"n": "1e999", "max_tokens": 20}, True),
        ("/chat/completions", {"n": "many", "max_tokens": 20}, True),
        ("/completions", {"prompt": "hi"}, False),
        ("/embeddings", {"input": "hi"}, True),
    ],
)
async def test_all_answers_of_a_request_are_reserved(guarded, standin, at_noon, path, more, fits):
    running = await guarded(tpm=1000)
    spent = 100 if "max_tokens" in more else 900
    await running.inside.gateway.rates.use(running.inside.gateway.settings.keys["alice"].id, "tokens", spent, 1000)
    body = orjson.dumps({"model": "gpt-4o", **(ASK if path == "/chat/completions" else {}), **more})
    assert (await running.ask("POST", path, body, BEARER)).status == (200 if fits else 429)


async def test_counting_a_conversation_takes_no_tokens(guarded, standin, at_noon):
    standin.script.append(fakes.verbatim(200, '{"input_tokens":900}'))
    running = await guarded(tpm=1000)
    body = orjson.dumps({**ASK, "messages": [fakes.user("x" * 4000)]})
    assert (await running.ask("POST", "/messages/count_tokens", body, {**BEARER, **JSON})).status == 200
    await running.settled()
    assert await left(running) == 1000


@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_no_number_in_a_request_is_too_large_for_the_store(gateway, standin, at_noon, tmp_path, request, store):
    url = request.getfixturevalue("redis_url") if store == "redis" else f"sqlite:///{tmp_path}/x.db"
    config = {**keyed(tpm=1000), "store": {"url": url, "timeout": "5s"}}
    config["upstreams"]["standin"] |= {"provider": "openai", "base_url": standin.base_url}
    running = await gateway(standin, config)
    assert (await running.chat({**ASK, "max_tokens": 2**63 - 1, "n": 2**63 - 1}, BEARER)).status == 200
    await running.settled()
    async with running.session.get(f"{running.admin_url}/metrics") as answer:
        assert 'turnfold_degraded_total{part="store' not in await answer.text()


async def test_an_added_key_is_taken_up_and_a_removed_one_refused(tmp_path):
    async with StandIn() as standin:
        text = running.configured(standin, {"server": {"keys_file": "keys.yaml"}})
        folder_keys = tmp_path / "keys.yaml"
        folder_keys.write_text("keys: {}\n")
        async with running.as_command(text, tmp_path) as (gateway, _):
            assert (await gateway.chat(ASK, BEARER)).status == 401
            for content, status in ((f"keys: {{alice: {{hash: '{hashed(KEY)}'}}}}", 200), ("keys: {}", 401)):
                folder_keys.write_text(content)
                async with asyncio.timeout(running.PATIENCE_S):
                    while (await gateway.chat(ASK, BEARER)).status != status:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)  # the file is polled; nothing tells when


FRAMES = [
    ({"type": "response.create", "model": "gpt-4o", "input": "hi"}, True),
    ({"type": "response.create", "model": "dear", "input": "hi"}, False),
    ({"type": "response.create", "response": {"model": "dear"}}, False),
    ({"type": "session.update", "session": {"model": "dear"}}, False),
    ({"type": "response.create", "input": "hi"}, False),
    ({"type": "response.cancel"}, True),
    (["response.create"], False),
    ('{"type":"response.create","model":"dear","input":"hi","model":"gpt-4o"}', False),
    ('{"type":"response.create","model":"gpt-4o","response":{"model":"dear"},"response":{"model":"gpt-4o"}}', False),
    ('{"type":"response.create","input":"hi","type":"response.cancel"}', False),
    ('{"type":"response.create","model":"gpt-4o","response":{"model":"dear","model":"gpt-4o"}}', False),
    ({"type": "response.create", "model": "gpt-4o", "Model": "dear"}, False),
    ({"type": "response.cancel", "Type": "response.create"}, False),
    ({"type": "session.update", "Session": {"model": "dear"}}, False),
    ({"type": "session.update", "session": {"MODEL": "dear"}}, False),
    ({"type": "response.create", "model": "gpt-4o", "ſession": {"model": "dear"}}, False),
    ({"type": "response.create", "model": "gpt-4o", "reſponse": {"model": "dear"}}, False),
    ('{"type":"response.create","model":"gpt-4o","\\u017fession":{"model":"dear"}}', False),
    ({"type": "response.create", "model": "gpt-4o", "sessıon": {"model": "dear"}}, False),
    ({"type": "response.create", "model": "gpt-4o", "SESSİON": {"model": "dear"}}, False),
    ({"type": "response.create", "model": "gpt-4o", "response": None, "session": [], "größe": {"model": "x"}}, True),
    ({"type": "session.update", "session": {"audio": {"input": {"transcription": {"model": "dear"}}}}}, False),
    ({"type": "session.update", "session": {"audio": {"Input": {"transcription": {"model": "dear"}}}}}, False),
    (
        {
            "type": "session.update",
            "session": {"audio": {"input": {"transcription": {"model": "gpt-4o"}}, "output": {}}},
        },
        True,
    ),
    ({"type": "session.update", "session": {"audio": {"input": {"transcription": None}}}}, True),
    ({"type": "session.update", "session": {"input_audio_transcription": {"model": "dear"}}}, False),
    (
        '{"type":"session.update","session":{"audio":{"input":{"transcription":{"model":"dear"},"transcription":{"model":"gpt-4o"}}}}}',
        False,
    ),
]


@pytest.fixture
def received():
    """What reached the server `echo`."""
    return []


@pytest.fixture
async def echo(received):
    """A server with a WebSocket that sends back what it gets.

    A test names it before ``gateway``, so that it closes after it: a server that closes reads no more, and a gateway that closes a
    socket there waits five seconds for the answer.
    """

    async def handler(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for frame in socket:
            received.append(frame.data)
            await (socket.send_str if frame.type is aiohttp.WSMsgType.TEXT else socket.send_bytes)(frame.data)
        return socket

    application = web.Application()
    application.router.add_get("/v1/responses", handler)
    application.router.add_get("/v1/realtime", handler)
    async with TestServer(application) as server:
        yield str(server.make_url("/v1"))


def written(frame):
    return frame if isinstance(frame, str) else orjson.dumps(frame).decode()


REFUSED = (1008, "model_not_allowed")
"""The code and the reason with which a socket ends whose message is not for the key."""
DEAR = orjson.dumps({"type": "response.create", "model": "dear", "input": "hi"})
BYTES = [
    *[(written(frame).encode(), passes) for frame, passes in FRAMES if not isinstance(frame, list)],
    (b" \n" + DEAR, False),
    (b"\xef\xbb\xbf" + DEAR, False),
    (DEAR[:-1] + b',"n":NaN}', False),
    (DEAR.decode().encode("utf-16"), False),
    (DEAR.decode().encode("utf-16-be"), False),
    (DEAR.decode().encode("utf-32"), False),
    (b'{"a":"\xff",' + DEAR[1:], False),
    (b"{\0\x01\0\x02\0\x03\0", True),
    (b"\x7b\xff\xfe\x80", True),
    (b"\0\x01", True),
]
"""Binary frames: messages, which servers may read like text, and audio."""


@pytest.mark.parametrize(("data", "passes"), BYTES)
async def test_a_message_in_a_binary_frame_is_held_to_the_keys_models(echo, gateway, received, data, passes):
    running = await gateway(echo, {"keys": {"alice": {"hash": hashed(KEY), "models": ["gpt-4o"]}}})
    async with running.session.ws_connect(f"{running.base_url}/responses", headers=BEARER) as socket:
        await socket.send_bytes(data)
        answer = await socket.receive()
        assert (answer.data, answer.extra) == ((data, "") if passes else REFUSED)
    assert received == ([data] if passes else [])


CHANGES = [
    (None, "invalid_api_key"),
    ({"hash": hashed(OTHER)}, "invalid_api_key"),
    ({"hash": hashed(KEY), "expires": "2020-01-01"}, "expired_api_key"),
    ({"hash": hashed(KEY), "models": ["dear"]}, "model_not_allowed"),
    ({"hash": hashed(KEY), "addresses": ["10.0.0.0/8"]}, "address_not_allowed"),
    ({"hash": hashed(KEY), "tpm": 10_000, "models": ["gpt-*"]}, ""),
]
"""The new entry of a key, and the reason for which its sockets end."""
CREATE = '{"type":"response.create","model":"gpt-4o","input":"hi"}'


@pytest.mark.parametrize(
    ("path", "message"),
    [("/responses", CREATE), ("/realtime?model=gpt-4o", '{"type":"input_audio_buffer.append"}'), ("/realtime?model=gpt-4o", b"\0\1")],
)  # fmt: skip
@pytest.mark.parametrize(("entry", "reason"), CHANGES)
async def test_a_socket_ends_when_its_key_may_no_longer_be_used(echo, gateway, received, path, message, entry, reason):
    others = {"bob": {"hash": hashed(OTHER + "2")}}
    running_gateway = await gateway(echo, {"keys": {"alice": {"hash": hashed(KEY)}, **others}})
    async with running_gateway.session.ws_connect(f"{running_gateway.base_url}{path}", headers=BEARER) as socket:
        send = socket.send_str if isinstance(message, str) else socket.send_bytes
        await send(message)
        assert (await socket.receive()).data == message
        keys = {**others, **({"alice": entry} if entry else {})}
        changed = settings.parse(running.configured(echo, {"keys": keys}), {}, "test.yaml")
        running_gateway.inside.gateway.adopt(changed)
        await send(message)
        answer = await socket.receive()
        assert (answer.data, answer.extra) == ((1008, reason) if reason else (message, ""))
    assert received == ([message] if reason else [message, message])


@pytest.mark.parametrize(("frame", "passes"), FRAMES)
async def test_each_message_of_a_socket_is_held_to_the_keys_models(echo, gateway, received, frame, passes):
    config = {"keys": {"alice": {"hash": hashed(KEY), "models": ["gpt-4o"]}}}
    running = await gateway(echo, config)
    text = written(frame)
    async with running.session.ws_connect(f"{running.base_url}/responses", headers=BEARER) as socket:
        await socket.send_str(text)
        answer = await socket.receive()
        assert (answer.data, answer.extra) == ((text, "") if passes else REFUSED)
    assert received == ([text] if passes else [])


async def test_a_model_in_the_url_does_not_stand_for_the_model_of_a_responses_message(echo, gateway, received):
    """A server that reads no model there would use its default."""
    running = await gateway(echo, {"keys": {"alice": {"hash": hashed(KEY), "models": ["gpt-4o"]}}})
    url = f"{running.base_url}/responses?model=gpt-4o"
    async with running.session.ws_connect(url, headers=BEARER) as socket:
        await socket.send_str('{"type":"response.create","input":"hi"}')
        answer = await socket.receive()
        assert (answer.data, answer.extra) == REFUSED
    assert received == []


LIMIT = 100_000
OLLAMA = [
    b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n',
    b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":26,"eval_count":298}\n',
]
TWO_AT_ONCE = [
    {
        "index": index,
        "text": "word " * words,
        "meta_info": {
            "finish_reason": {"type": "stop"} if ends else None,
            "prompt_tokens": 7 + index,
            "completion_tokens": words,
        },
    }
    for index, words, ends in [
        (0, 1, False),
        (1, 2, True),
        *[(0, words, False) for words in range(2, 300)],
        (0, 300, True),
    ]
]
"""Of two answers in a stream, the second ends first. Each event has the whole text so far."""
OWN_BILLS = [
    ("ollama", "/api/chat", b'{"model":"m","done":true,"prompt_eval_count":26}', "application/json", 26),
    ("ollama", "/api/embed", b'{"model":"m","embeddings":[[0.1,0.2]],"prompt_eval_count":8}', "application/json", 8),
    ("llama.cpp", "/completion", b'{"content":"Hi","timings":{"prompt_n":10,"cache_n":30,"predicted_n":9}}', "application/json", 49),
    ("llama.cpp", "/infill", b'{"content":"Hi","timings":{"prompt_n":10,"predicted_n":9}}', "application/json", 19),
    (
        "tgi", "/generate_stream",
        b'data: {"token":{"text":"Hi"},"details":null}\n\ndata: {"token":{"text":"!"},"generated_text":"Hi!","details":{"finish_reason":"length","generated_tokens":2,"input_length":11}}\n\n',
        "text/event-stream", 13,
    ),
    (
        "sglang", "/generate",
        b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in TWO_AT_ONCE) + b"data: [DONE]\n\n",
        "text/event-stream", 7 + 300 + 8 + 2,
    ),
    ("ollama", "/api/chat", b"".join(OLLAMA), "application/x-ndjson", 26 + 298),
    ("ollama", "/api/generate", OLLAMA[1], "application/json", 26 + 298),
    ("llama.cpp", "/completion", b'{"content":"Hi","tokens_evaluated":40,"tokens_predicted":9}', "application/json", 49),
    (
        "llama.cpp", "/completion",
        b'data: {"content":"Hi","stop":false}\n\ndata: {"content":"","stop":true,"tokens_evaluated":40,"tokens_predicted":9}\n\n',
        "text/event-stream", 49,
    ),
    ("sglang", "/generate", b'{"text":"Hi","meta_info":{"prompt_tokens":7,"completion_tokens":5}}', "application/json", 12),
    (
        "sglang", "/generate",
        b'[{"text":"Hi","meta_info":{"prompt_tokens":7,"completion_tokens":5}},{"text":"Ho","meta_info":{"prompt_tokens":8,"completion_tokens":6}}]',
        "application/json", 26,
    ),
    (
        "sglang", "/generate",
        b'data: {"text":"H","meta_info":{"prompt_tokens":7,"completion_tokens":1}}\n\ndata: {"text":"Hi","meta_info":{"prompt_tokens":7,"completion_tokens":5}}\n\ndata: [DONE]\n\n',
        "text/event-stream", 12,
    ),
    ("vllm", "/v1/completions", b'{"choices":[{"text":"Hi"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}', "application/json", 7),
]  # fmt: skip
"""By provider and endpoint an answer, its type, and the tokens of its bill."""


async def asked_own(gateway, standin, provider, path, answer, kind, **headers):
    """The tokens that are counted for a request to an own endpoint, and its body."""
    standin.script.append(fakes.verbatim(200, answer, {"content-type": kind}))
    config = {**keyed(tpm=LIMIT)}
    config["upstreams"]["standin"] |= {"provider": provider, "base_url": standin.base_url}
    running = await gateway(standin, config)
    body = orjson.dumps({"model": "m", "prompt": "word " * 400})
    url = running.base_url.removesuffix("/v1") + path
    async with running.session.post(url, data=body, headers={**BEARER, **JSON, **headers}) as response:
        assert response.status == 200
        assert await response.read() == answer
    await running.settled()
    return LIMIT - await left(running), body


@pytest.mark.parametrize(("provider", "path", "answer", "kind", "tokens"), OWN_BILLS)
async def test_an_own_endpoint_is_charged_its_bill(gateway, standin, at_noon, provider, path, answer, kind, tokens):
    counted, _ = await asked_own(gateway, standin, provider, path, answer, kind)
    assert counted == tokens


NO_BILLS = [
    ("ollama", "/api/generate", b'{"response":"%s","done":true}', "application/json", 4),
    ("ollama", "/api/generate", b'{"response":"%s","done":true,"prompt_eval_count":-4,"eval_count":"many"}', "application/json", 4),
    ("ollama", "/api/chat", b'{"message":{"content":"%s"},"done":false}\n', "application/x-ndjson", 256),
    ("llama.cpp", "/completion", b'{"content":"%s"}', "application/json", 4),
    ("llama.cpp", "/infill", b'{"content":"%s"}', "application/json", 4),
    ("sglang", "/generate", b'{"text":"%s","meta_info":[]}', "application/json", 4),
    ("tgi", "/generate", b'{"generated_text":"%s"}', "application/json", 4),
    ("vllm", "/v1/completions", b'{"choices":[{"text":"%s"}]}', "application/json", 4),
    ("vllm", "/v1/completions/", b'{"choices":[{"text":"%s"}]}', "application/json", 4),
]  # fmt: skip
"""By provider and endpoint an answer without a bill, its type, and its bytes per token."""


async def test_a_bill_in_the_headers_of_an_answer_counts(gateway, standin, at_noon):
    told = {"content-type": "application/json", "x-prompt-tokens": "11", "x-generated-tokens": "2"}
    standin.script.append(fakes.verbatim(200, b'{"generated_text":"Hi!"}', told))
    config = keyed(tpm=LIMIT)
    config["upstreams"]["standin"] |= {"provider": "tgi", "base_url": standin.base_url}
    running = await gateway(standin, config)
    url = running.base_url.removesuffix("/v1") + "/generate"
    async with running.session.post(url, data=b'{"inputs":"Hello"}', headers={**BEARER, **JSON}) as response:
        assert response.status == 200
    await running.settled()
    assert await left(running) == LIMIT - 13


@pytest.mark.parametrize(("provider", "path", "answer", "kind", "bytes_per_token"), NO_BILLS)
async def test_an_own_endpoint_without_a_bill_is_charged_by_size(
    gateway, standin, at_noon, provider, path, answer, kind, bytes_per_token
):
    long = answer % (b"word " * 2000)
    counted, body = await asked_own(gateway, standin, provider, path, long, kind)
    assert counted == len(body) // 4 + len(long) // bytes_per_token


@pytest.mark.parametrize("path", ["/api/generate", "/api/chat"])
async def test_an_own_endpoint_is_refused_when_the_answer_may_be_too_long(gateway, standin, at_noon, path):
    config = keyed(tpm=1000)
    config["upstreams"]["standin"] |= {"provider": "ollama", "base_url": standin.base_url}
    running = await gateway(standin, config)
    await running.inside.gateway.rates.use(running.inside.gateway.settings.keys["alice"].id, "tokens", 950, 1000)
    url = running.base_url.removesuffix("/v1") + path
    async with running.session.post(url, data=b'{"model":"m","prompt":"hi"}', headers={**BEARER, **JSON}) as response:
        assert response.status == 429
    assert not standin.requests


async def test_words_of_a_tokenizer_are_no_answer_of_a_model(gateway, standin, at_noon):
    counted, _ = await asked_own(gateway, standin, "llama.cpp", "/tokenize", b'{"tokens":[1,2,3]}', "application/json")
    assert counted == 0


@pytest.mark.parametrize("path", ["/chat/completions", "/embeddings", "/completions"])
async def test_no_compressed_answer_is_asked_for_whose_bill_must_be_read(guarded, standin, path):
    """Ten megabytes of equal embeddings are a few KB compressed, and the bill stands at their end."""
    running = await guarded(tpm=LIMIT)
    body = orjson.dumps({"model": "gpt-4o", "input": "hi", "prompt": "hi", "messages": [fakes.user("hi")]})
    await running.ask("POST", path, body, {**BEARER, **JSON, "accept-encoding": "gzip, br, zstd"})
    assert standin.requests[-1].headers["accept-encoding"] == "identity"


PLAIN = b'{"choices":[{"message":{"content":"%b"}}]}'
BILLED = PLAIN[:-1] + b',"usage":{"prompt_tokens":3,"completion_tokens":4}}'


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize(
    ("path", "kind", "answer", "charged"),
    [
        ("/chat/completions", "text/event-stream", EVENT * 400, range(450, 560)),
        ("/completions", "text/event-stream", EVENT * 400, range(450, 560)),
        ("/chat/completions", "application/json", PLAIN % (b"word " * 2000), range(2500, 2600)),
        ("/completions", "application/json", PLAIN % (b"word " * 2000), range(2500, 2600)),
        ("/chat/completions", "application/json", BILLED % (b"word " * 150_000), range(7, 8)),
        ("/completions", "application/json", BILLED % (b"word " * 400_000), range(7, 8)),
    ],
)
async def test_an_answer_that_comes_compressed_is_charged_as_it_reads(
    guarded, standin, at_noon, path, kind, answer, charged, encoding
):
    """Some upstreams compress although they are asked not to."""
    packed = PACK[encoding](answer)
    standin.script.append(fakes.verbatim(200, packed, {"content-type": kind, "content-encoding": encoding}))
    running = await guarded(tpm=10_000)
    body = {"model": "gpt-4o", "stream": "event" in kind, "messages": [fakes.user("hi")], "prompt": "hi"}
    got = await running.ask("POST", path, orjson.dumps(body), {**BEARER, **JSON})
    assert got.status == 200
    await running.settled()
    assert 10_000 - await left(running) in charged


async def test_a_key_without_a_limit_of_tokens_may_get_a_compressed_answer(guarded, standin):
    running = await guarded(rpm=9)
    await running.ask("POST", "/embeddings", b'{"model":"e"}', {**BEARER, **JSON, "accept-encoding": "gzip, br"})
    assert standin.requests[-1].headers["accept-encoding"] == "gzip, br"


@pytest.mark.parametrize("compact", ["upstream", "ours"])
async def test_a_compaction_reserves_tokens(gateway, standin, at_noon, compact):
    config = keyed(tpm=1000)
    config["upstreams"]["standin"] |= {"provider": "openai", "base_url": standin.base_url, "compact": compact}
    running = await gateway(standin, config)
    await running.inside.gateway.rates.use(running.inside.gateway.settings.keys["alice"].id, "tokens", 990, 1000)
    body = orjson.dumps({"model": "gpt-4o", "input": [fakes.user("word " * 100)]})
    answer = await running.ask("POST", "/responses/compact", body, {**BEARER, **JSON})
    assert (answer.status, answer.json["error"]["code"]) == (429, "rate_limit_exceeded")
    assert not standin.requests


@pytest.mark.parametrize("path", ["/responses/compact", "/responses/input_tokens"])
async def test_a_compaction_and_a_count_name_no_other_model(guarded, standin, path):
    running = await guarded(models=["gpt-4o"])
    body = {"model": "gpt-4o", "input": "hi"}
    assert (await running.ask("POST", path, orjson.dumps(body), {**BEARER, **JSON})).status == 200
    standin.requests.clear()
    for more in ({"fallbacks": ["dear"]}, {"models": ["dear"]}, {"session": {"model": "dear"}}):
        assert (await running.ask("POST", path, orjson.dumps({**body, **more}), {**BEARER, **JSON})).status == 403
    assert not standin.requests


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/batches/", {"input_file_id": "f", "endpoint": "/v1/chat/completions", "completion_window": "24h"}),
        ("/batches?model=gpt-4o", {"input_file_id": "f", "endpoint": "/v1/responses", "completion_window": "24h"}),
        ("/batches", {"input_file_id": "f", "endpoint": "/v1/chat/completions", "completion_window": "24h"}),
        ("/messages/batches", {"requests": [{"custom_id": "1", "params": {**ASK, "max_tokens": 9}}]}),
    ],
)
@pytest.mark.parametrize("more", [{}, {"model": "gpt-4o"}])
async def test_a_key_for_some_models_starts_no_batch(guarded, standin, path, body, more):
    """Each request of a batch names a model of its own, in a file or inside the body."""
    running = await guarded(models=["gpt-4o"])
    assert (await running.ask("POST", path, orjson.dumps({**body, **more}), {**BEARER, **JSON})).status == 403
    assert not standin.requests


@pytest.mark.parametrize("chunked", [None, True])
@pytest.mark.parametrize(("provider", "path"), [("ollama", "/api/generate"), ("openai", "/v1/completions")])
async def test_a_passed_prompt_is_reserved_whole(gateway, standin, at_noon, provider, path, chunked):
    """In chunks, no header states its size."""
    config = keyed(tpm=1100)
    config["upstreams"]["standin"] |= {"provider": provider, "base_url": standin.base_url}
    running = await gateway(standin, config)
    body = orjson.dumps({"model": "m", "prompt": "x" * 1600})
    url = running.base_url.removesuffix("/v1") + path

    async def post():
        async with running.session.post(url, data=body, headers={**BEARER, **JSON}, chunked=chunked) as answer:
            return answer.status

    assert sorted(await asyncio.gather(*(post() for _ in range(8)))) == [200] * 2 + [429] * 6
    assert [seen.body for seen in standin.requests] == [body] * 2


@pytest.mark.parametrize("more", [{"model": "dear"}, {"models": ["dear"]}, {"fallbacks": ["dear"]}])
async def test_a_compaction_is_held_to_the_keys_models(guarded, standin, more):
    running = await guarded(models=["gpt-4o"])
    body = orjson.dumps({"model": "gpt-4o", "input": [fakes.user("hi")], **more})
    assert (await running.ask("POST", "/responses/compact", body, {**BEARER, **JSON})).status == 403
    assert not standin.requests
