"""One line is changed, the base URL: whatever a client writes behind it, a conversation is folded and nothing slips past a check."""

import asyncio
import gzip
import io
from asyncio import to_thread
from contextlib import asynccontextmanager
from hashlib import sha256

import openai
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic import AsyncAnthropic, AsyncAnthropicBedrock, AsyncAnthropicVertex, NotFoundError
from anthropic.lib.foundry import AsyncAnthropicFoundry
from langchain_openai import AzureChatOpenAI, AzureOpenAIEmbeddings
from openai import AsyncAzureOpenAI, AsyncOpenAI, PermissionDeniedError
from structlog.testing import capture_logs
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from gateway.standin import StandIn
from tests import fakes, raw, running
from tests.hostile.wire import until

VERSION = "2024-10-21"
KEY, OWN = "tfk_the-key-of-alice", "sk-of-the-operator"
HASH = f"sha256:{sha256(KEY.encode()).hexdigest()}"
SMALL = {"models": {"small": {"context_window": 2000}, "fast": {"name": "real", "context_window": 2000}}}
LONG = fakes.chat(60)
JSON = "application/json"


def root_of(gateway):
    """The address of a gateway without ``/v1``."""
    return gateway.base_url.removesuffix("/v1")


def azure(gateway, **how):
    """Azure's client, pointed at a gateway."""
    given = {
        "azure_endpoint": root_of(gateway),
        "api_version": VERSION,
        "api_key": "azure-key",
        "max_retries": 0,
        **how,
    }
    return AsyncAzureOpenAI(**given)


def upstream(standin, provider="openai", *, base="", key=""):
    """One upstream as the configuration has it."""
    found = {"provider": provider, "base_url": base or standin.base_url}
    return {"upstreams": {"standin": found | ({"api_key": key} if key else {})}}


def azure_upstream(standin, key=""):
    return upstream(standin, "azure", base=standin.base_url.removesuffix("/v1"), key=key)


def posts(standin):
    """What an upstream was asked, without the requests for its list of models."""
    return [seen for seen in standin.requests if seen.method == "POST"]


@pytest.mark.parametrize("fixed", [{}, {"azure_deployment": "small"}], ids=["a deployment a call", "one deployment"])
async def test_azures_client_is_folded_and_reaches_any_server(gateway, standin, fixed):
    ports = await gateway(standin, SMALL)
    async with azure(ports, **fixed) as client:
        whole = await client.chat.completions.with_raw_response.create(
            model="small" if not fixed else "gpt-4o", messages=LONG
        )
        assert whole.headers["x-turnfold-action"] == "fold"
        assert whole.parse().choices[0].message.content == "Understood."
        stream = await client.chat.completions.create(model="small", messages=LONG, stream=True)
        assert (
            "".join([event.choices[0].delta.content or "" async for event in stream if event.choices]) == "Understood."
        )
    assert [seen.raw_target for seen in standin.chats] == ["/v1/chat/completions"] * 2
    assert [seen.json["model"] for seen in standin.chats] == ["small"] * 2
    assert [seen.violations for seen in standin.chats] == [[], []]


async def test_a_deployment_is_a_model_name_that_may_be_an_alias(gateway, standin):
    ports = await gateway(standin, SMALL)
    async with azure(ports) as client:
        await client.chat.completions.create(model="fast", messages=[fakes.user("hi")])
        await client.embeddings.create(model="fast", input="hi")
    assert [seen.json["model"] for seen in posts(standin)] == ["real", "real"]
    assert [seen.raw_target for seen in posts(standin)] == ["/v1/chat/completions", "/v1/embeddings"]


async def test_azures_client_keeps_its_paths_at_azure(gateway, standin):
    ports = await gateway(standin, {**azure_upstream(standin), **SMALL})
    async with azure(ports) as client:
        await client.chat.completions.with_raw_response.create(model="fast", messages=LONG)
        await client.embeddings.with_raw_response.create(model="fast", input="hi")
        await client.images.with_raw_response.generate(model="fast", prompt="a ship")
        await client.responses.with_raw_response.create(model="fast", input="hi")
    base = "/openai/deployments/real"
    assert [seen.raw_target for seen in posts(standin)] == [
        f"{base}/chat/completions?api-version={VERSION}",
        f"{base}/embeddings?api-version={VERSION}",
        f"{base}/images/generations?api-version={VERSION}",
        f"/openai/responses?api-version={VERSION}",
    ]
    assert len(posts(standin)[0].body) < len(orjson.dumps(LONG)), "it is folded"
    assert {seen.headers["api-key"] for seen in standin.requests} == {"azure-key"}


async def test_other_clients_reach_azures_endpoints_too(gateway, standin):
    ports = await gateway(standin, azure_upstream(standin, OWN))
    async with AsyncOpenAI(base_url=ports.base_url, api_key="x") as client:
        await client.embeddings.with_raw_response.create(model="gpt-4o", input="hi")
        await client.audio.transcriptions.with_raw_response.create(model="gpt-4o", file=("a.wav", b"RIFF"))
    assert [seen.path for seen in posts(standin)] == [
        "/openai/deployments/gpt-4o/embeddings",
        "/openai/deployments/gpt-4o/audio/transcriptions",
    ]


@pytest.mark.parametrize("path", ["", "/openai/v1", "/openai/deployments/mine", "/models"])
async def test_a_body_without_a_readable_model_reaches_azure_where_the_url_names_none(gateway, standin, path):
    ports = await gateway(standin, upstream(standin, "azure", base=root_of(standin) + path))
    reply = await ports.ask("POST", "/embeddings", b"hello", {"content-type": JSON})
    assert (reply.status, len(standin.requests)) == ((200, 1) if path else (400, 0))


async def test_a_file_is_streamed_to_its_deployment(gateway, standin):
    ports = await gateway(standin, azure_upstream(standin, OWN))
    async with azure(ports, azure_deployment="ears") as client:
        await client.audio.transcriptions.with_raw_response.create(model="whisper-1", file=("a.wav", b"RIFF"))
    assert standin.requests[-1].path == "/openai/deployments/ears/audio/transcriptions"


async def test_a_dated_version_does_not_reach_the_v1_api(gateway, standin):
    ports = await gateway(standin, upstream(standin, "azure", base=f"{root_of(standin)}/openai/v1"))
    async with azure(ports) as client:
        await client.chat.completions.with_raw_response.create(model="small", messages=[fakes.user("hi")])
    await ports.ask("POST", "/embeddings?api-version=preview", b'{"model":"small","input":"x"}', {"content-type": JSON})
    assert [seen.raw_target for seen in posts(standin)] == [
        "/openai/v1/chat/completions",
        "/openai/v1/embeddings?api-version=preview",
    ]


async def test_azures_responses_and_v1_paths_are_folded(gateway, standin):
    ports = await gateway(standin, SMALL)
    async with azure(ports) as client:
        asked = [{"role": one["role"], "content": one["content"]} for one in LONG]
        answer = await client.responses.with_raw_response.create(model="small", input=asked)
        assert answer.headers["x-turnfold-action"] == "fold"
    async with AsyncOpenAI(base_url=f"{root_of(ports)}/openai/v1/", api_key="x") as client:
        answer = await client.chat.completions.with_raw_response.create(model="small", messages=LONG)
        assert answer.headers["x-turnfold-action"] == "fold"
    assert [seen.raw_target for seen in posts(standin)] == ["/v1/responses", "/v1/chat/completions"]


async def test_langchains_azure_models_work(gateway, standin):
    ports = await gateway(standin, SMALL)
    given = {"azure_endpoint": root_of(ports), "api_version": VERSION, "api_key": "k"}
    model = AzureChatOpenAI(azure_deployment="small", model="gpt-4o", **given)
    said = await to_thread(model.invoke, [(one["role"], one["content"]) for one in LONG])
    assert said.content == "Understood."
    embeddings = AzureOpenAIEmbeddings(azure_deployment="fast", check_embedding_ctx_length=False, **given)
    assert len(await to_thread(embeddings.embed_query, "hi")) == 3
    assert [(seen.path, seen.json["model"]) for seen in posts(standin)] == [
        ("/v1/chat/completions", "small"),
        ("/v1/embeddings", "real"),
    ]


async def test_the_foundry_client_of_anthropic_is_folded(gateway, standin):
    ports = await gateway(standin, {**upstream(standin, "anthropic", key=OWN), **SMALL})
    base = f"{root_of(ports)}/anthropic"
    async with AsyncAnthropicFoundry(base_url=base, api_key="k", max_retries=0) as client:
        answer = await client.messages.with_raw_response.create(
            model="small", max_tokens=50, system="Short.", messages=LONG[1:]
        )
    assert answer.headers["x-turnfold-action"] == "fold"
    assert standin.requests[-1].raw_target == "/v1/messages"
    assert "api-key" not in standin.requests[-1].headers
    assert standin.requests[-1].headers["x-api-key"] == OWN


@pytest.mark.parametrize("provider", ["openai", "azure"])
async def test_a_deployment_may_have_a_slash_in_its_name(gateway, standin, provider):
    base = root_of(standin) if provider == "azure" else standin.base_url
    ports = await gateway(
        standin, {**upstream(standin, provider, base=base, key=OWN), "models": {"org/small": {"name": "small"}}}
    )
    async with azure(ports) as client:
        await client.chat.completions.with_raw_response.create(model="org/small", messages=[fakes.user("hi")])
    seen = standin.requests[-1]
    assert seen.json["model"] == "small"
    assert seen.path == (
        "/openai/deployments/small/chat/completions" if provider == "azure" else "/v1/chat/completions"
    )


async def test_without_a_deployment_in_the_path_the_bodys_model_counts(gateway, standin):
    ports = await gateway(standin, SMALL)
    reply = await raw.ask(
        ports.port,
        raw.request("/openai/deployments//chat/completions", "POST", orjson.dumps(CHAT), content_type=JSON),
    )
    assert (reply.status, reply.headers["x-turnfold-action"]) == (200, "fold")
    assert standin.requests[-1].raw_target == "/v1/chat/completions"


@pytest.mark.parametrize("endpoint", ["chat/completions", "embeddings"])
@pytest.mark.parametrize("several", [False, True])
async def test_at_azure_a_body_that_cannot_be_read_is_sent_because_the_path_decides(
    gateway, standin, endpoint, several
):
    more = {"other": {"provider": "openai", "base_url": standin.base_url}} if several else {}
    config = azure_upstream(standin, OWN)
    config["upstreams"] |= more
    ports = await gateway(standin, config)
    target = f"/openai/deployments/m/{endpoint}"
    for body, encoding in ((b"\x1bpacked", {"content_encoding": "br"}), (b"hello", {})):
        reply = await raw.ask(ports.port, raw.request(target, "POST", body, content_type=JSON, **encoding))
        assert (reply.status, standin.requests[-1].body) == (200, body)
        assert standin.requests[-1].path == target
    keyed = await gateway(standin, {**config, "keys": {"a": {"hash": HASH, "models": ["m"]}}})
    before = len(standin.requests)
    asked = raw.request(target, "POST", b"\x1bpacked", content_type=JSON, content_encoding="br", api_key=KEY)
    assert (await raw.ask(keyed.port, asked)).status == 400, "a relay of Azure's API may read the body"
    assert len(standin.requests) == before


# Forms


def form(*fields):
    """A form with a file and these fields."""
    head = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    texts = "".join(head.format(*each) for each in fields).encode()
    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRI\r\n\r\nFF\r\n--b--\r\n'
    return texts + file


FORM_KIND = "multipart/form-data; boundary=b"
FORMS = [
    # the fields that are sent, the fields that the upstream gets
    ((), (("model", "ears"),)),
    ((("model", "ears"), ("language", "de")), (("model", "ears"), ("language", "de"))),
    ((("language", "de"), ("model", "whisper-1")), (("language", "de"), ("model", "ears"))),
    ((("model", "x"), ("model", "x")), (("model", "ears"), ("model", "ears"))),
]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(("sent", "got"), FORMS)
async def test_the_deployment_is_written_into_a_form(gateway, standin, keyed, sent, got):
    keys = {"keys": {"a": {"hash": HASH, "models": ["ears"]}}} if keyed else {}
    ports = await gateway(standin, keys)
    path = "/openai/deployments/ears/audio/transcriptions"
    asked = raw.request(path, "POST", form(*sent), content_type=FORM_KIND, api_key=KEY)
    assert (await raw.ask(ports.port, asked)).status == 200
    assert (standin.requests[-1].path, standin.requests[-1].body) == ("/v1/audio/transcriptions", form(*got))


async def test_azures_client_sends_a_file_with_a_key_for_some_models(gateway, standin):
    keys = {"keys": {"a": {"hash": HASH, "models": ["ears"]}}}
    for config in (upstream(standin, key=OWN), azure_upstream(standin, OWN)):
        ports = await gateway(standin, {**config, **keys})
        async with azure(ports, api_key=KEY, azure_deployment="ears") as client:
            await client.audio.transcriptions.with_raw_response.create(model="whisper-1", file=("a.wav", b"RIFF"))
        async with azure(ports, api_key=KEY, azure_deployment="eyes") as client:
            with pytest.raises(PermissionDeniedError):
                await client.audio.transcriptions.create(model="ears", file=("a.wav", b"RIFF"))
    assert len(posts(standin)) == 2


NOT_WRITTEN = [
    ("ears", form(("model", "ears"), ("Model", "dear"))),
    ("ears", form(("model", "ears"), ("model", "dear")).replace(b"ears\r\n--b", b"ears\n--b")),
    ("ears%0d%0a--b%0d%0aContent-Disposition: form-data; name=file%0d%0a%0d%0ax", form()),
]


@pytest.mark.parametrize(("name", "body"), NOT_WRITTEN)
async def test_a_form_that_servers_read_differently_reaches_no_deployment(gateway, standin, name, body):
    ports = await gateway(standin, {"keys": {"a": {"hash": HASH, "models": ["ears*"]}}})
    path = f"/openai/deployments/{name.replace(' ', '%20')}/audio/transcriptions"
    reply = await raw.ask(ports.port, raw.request(path, "POST", body, content_type=FORM_KIND, api_key=KEY))
    assert (reply.status, standin.requests) == (400, []) or (reply.status, standin.requests) == (403, [])


# Sockets


@asynccontextmanager
async def realtime_server(asked):
    """A server at every path whose socket keeps what opened it, and sends back each message."""

    async def handler(request):
        asked.append((request.path_qs, request.headers))
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for frame in socket:
            asked.append(frame.data)
            await socket.send_str(frame.data)
        return socket

    application = web.Application()
    application.router.add_get("/{path:.*}", handler)
    async with TestServer(application) as server:
        yield str(server.make_url("")).rstrip("/")


def realtime_client(ports, kind):
    """A client of the Realtime API of OpenAI, of Azure, or of Azure's v1."""
    sockets = root_of(ports).replace("http", "ws")
    if kind == "azure":
        return azure(ports, api_key=KEY, websocket_base_url=f"{sockets}/openai")
    base = f"{root_of(ports)}/openai/v1/" if kind == "azure v1" else ports.base_url
    return AsyncOpenAI(base_url=base, api_key=KEY, max_retries=0)


REALTIME = [
    # provider, base URL, what opens the upstream's socket
    ("openai", "/v1", "/v1/realtime?model=real"),
    ("azure", "", "/openai/realtime?api-version=2024-10-21&deployment=real"),
    ("azure", "/openai/v1", "/openai/v1/realtime?model=real"),
]
CREATE = {"type": "response.create", "response": {"instructions": "Greet."}}


@pytest.mark.parametrize(("provider", "base", "opened"), REALTIME)
@pytest.mark.parametrize("kind", ["openai", "azure", "azure v1"])
async def test_realtime_sockets_of_azure_and_openai_open_at_either(gateway, provider, base, opened, kind):
    asked = []
    keys = {"alice": {"hash": HASH, "models": ["fast"]}}
    async with realtime_server(asked) as url:
        ports = await gateway(url, {"keys": keys, **upstream(None, provider, base=url + base, key=OWN), **SMALL})
        async with realtime_client(ports, kind) as client, client.realtime.connect(model="fast") as socket:
            await socket.send(CREATE)
            assert orjson.loads(await socket.recv_bytes()) == CREATE, "it is not closed"
        (target, headers), message = asked
        assert target == opened
        assert KEY not in f"{target}{headers}"
        assert orjson.loads(message) == CREATE
        with pytest.raises(InvalidStatus, match="403"):
            async with realtime_client(ports, kind) as client, client.realtime.connect(model="small"):
                pass
        assert len(asked) == 2


@pytest.mark.parametrize("kind", ["openai", "azure", "azure v1"])
async def test_a_message_on_azures_socket_is_held_to_the_keys_models(gateway, kind):
    asked = []
    keys = {"alice": {"hash": HASH, "models": ["fast"]}}
    async with realtime_server(asked) as url:
        ports = await gateway(f"{url}/v1", {"keys": keys, **SMALL})
        async with realtime_client(ports, kind) as client, client.realtime.connect(model="fast") as socket:
            await socket.send({"type": "session.update", "session": {"model": "small"}})
            with pytest.raises(ConnectionClosedError, match="model_not_allowed"):
                await socket.recv_bytes()
        assert len(asked) == 1
        await until(lambda: not ports.inside.gateway.admission.requests)  # else it closes its socket at a closed server


# Keys


async def test_the_api_key_header_is_a_client_key_and_ends_at_the_gateway(gateway, standin):
    keys = {"alice": {"hash": HASH, "models": ["small"]}}
    ports = await gateway(standin, {"keys": keys, **upstream(standin, key=OWN), **SMALL})
    with capture_logs() as logs:
        async with azure(ports, api_key=KEY) as client:
            await client.chat.completions.create(model="small", messages=[fakes.user("hi")])
            with pytest.raises(PermissionDeniedError):
                await client.chat.completions.create(model="fast", messages=[fakes.user("hi")])
            with pytest.raises(PermissionDeniedError):
                await client.embeddings.create(model="fast", input="hi")
        async with azure(ports, api_key=KEY, azure_deployment="fast") as client:
            with pytest.raises(PermissionDeniedError):
                await client.chat.completions.create(model="small", messages=[fakes.user("hi")])
        async with azure(ports, api_key="wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(model="small", messages=[fakes.user("hi")])
    assert len(standin.requests) == 1
    assert KEY not in f"{standin.requests[0].headers}{standin.requests[0].raw_target}{standin.requests[0].body}"
    assert KEY not in str(logs)


@pytest.mark.parametrize("provider", ["openai", "vllm", "generic", "anthropic", "cerebras", "azure"])
async def test_a_clients_api_key_is_replaced_by_the_configured_one(gateway, standin, provider):
    ports = await gateway(standin, upstream(standin, provider, key=OWN))
    await ports.chat({"model": "m", "messages": [fakes.user("hi")]}, {"api-key": "azure-key"})
    assert "azure-key" not in str(standin.requests[-1].headers)


async def test_without_a_configured_key_a_clients_api_key_goes_where_the_upstream_reads_it(gateway, standin):
    ports = await gateway(standin, upstream(standin))
    async with azure(ports) as client:
        await client.chat.completions.create(model="small", messages=[fakes.user("hi")])
    assert standin.requests[-1].headers["authorization"] == "Bearer azure-key"
    await ports.chat({"model": "m", "messages": [fakes.user("hi")]}, {"api-key": "a", "authorization": "Bearer b"})
    assert standin.requests[-1].headers["authorization"] == "Bearer b", "a client that sends both is left alone"


async def test_a_clients_api_key_goes_where_anthropics_endpoint_reads_it(gateway, standin):
    ports = await gateway(standin, upstream(standin, "anthropic"))
    async with AsyncAnthropicFoundry(base_url=f"{root_of(ports)}/anthropic", api_key="k", max_retries=0) as client:
        await client.messages.create(model="m", max_tokens=5, messages=[fakes.user("hi")])
    assert standin.requests[-1].headers["x-api-key"] == "k"
    assert "authorization" not in standin.requests[-1].headers
    async with azure(ports) as client:
        await client.chat.completions.create(model="m", messages=[fakes.user("hi")])
    assert standin.requests[-1].headers["authorization"] == "Bearer azure-key"
    assert "x-api-key" not in standin.requests[-1].headers


@pytest.mark.parametrize("provider", ["openai", "anthropic", "azure"])
@pytest.mark.parametrize("other", [{"x-api-key": "b"}, {"authorization": "Bearer b"}])
async def test_a_clients_api_key_is_not_sent_anew_beside_its_other_key(gateway, standin, provider, other):
    ports = await gateway(standin, upstream(standin, provider))
    for path, more in (("/chat/completions", {}), ("/messages", {"anthropic-version": "2023-06-01"})):
        body = orjson.dumps({"model": "m", "max_tokens": 5, "messages": [fakes.user("hi")]})
        await ports.ask("POST", path, body, {"api-key": "a", "content-type": JSON, **more, **other})
        sent = {name.lower(): value for name, value in standin.requests[-1].headers.items()}
        keys = {name: sent[name] for name in ("api-key", "x-api-key", "authorization") if name in sent}
        assert keys == {"api-key": "a", **other}


# Other base URLs

CHAT = {"model": "small", "messages": LONG}
MESSAGES = {"model": "small", "max_tokens": 50, "messages": LONG[1:]}
RESPONSES = {"model": "small", "input": LONG}
FOLDED = [
    ("/v1/chat/completions", CHAT, "as documented"),
    ("/v1/chat/completions/", CHAT, "a slash at the end"),
    ("/v1//chat/completions", CHAT, "a base URL that ends in a slash"),
    ("/v1/chat//completions//", CHAT, "slashes anywhere"),
    ("/v1/ch%61t/completions", CHAT, "an escape that changes nothing"),
    ("/V1/Chat/Completions", CHAT, "letters of another case"),
    ("/chat/completions", CHAT, "no /v1"),
    ("/v1/v1/chat/completions", CHAT, "/v1 twice"),
    ("/v1/v1/chat/completions/", CHAT, "/v1 twice and a slash at the end"),
    ("/openai/v1/chat/completions", CHAT, "Groq, Azure"),
    ("/openai/chat/completions", CHAT, "a proxy's prefix"),
    ("/v1/openai/chat/completions", CHAT, "DeepInfra"),
    ("/api/v1/chat/completions", CHAT, "OpenRouter"),
    ("/api/v0/chat/completions", CHAT, "LM Studio"),
    ("/v1beta/openai/chat/completions", CHAT, "Gemini"),
    ("/inference/v1/chat/completions", CHAT, "Fireworks"),
    ("/compatible-mode/v1/chat/completions", CHAT, "DashScope"),
    ("/models/chat/completions?api-version=2024-05-01-preview", CHAT, "Azure's model inference"),
    ("/serving-endpoints/chat/completions", CHAT, "Databricks"),
    ("/v1/projects/p/locations/l/endpoints/openapi/chat/completions", CHAT, "Vertex"),
    ("/openai/deployments/small/chat/completions?api-version=2024-10-21", CHAT, "Azure"),
    ("/openai/deployments/small/chat/completions/", CHAT, "Azure with a slash at the end"),
    ("/v1/openai/deployments/small/chat/completions", CHAT, "Azure behind /v1"),
    ("/engines/small/chat/completions", CHAT, "LiteLLM"),
    ("/v1/responses/", RESPONSES, "Responses with a slash at the end"),
    ("/responses", RESPONSES, "Responses without /v1"),
    ("/openai/responses?api-version=preview", RESPONSES, "Azure's Responses"),
    ("/openai/v1/responses", RESPONSES, "Azure's v1 Responses"),
    ("/api/v1/responses", RESPONSES, "OpenRouter's Responses"),
    ("/any/v1/responses", RESPONSES, "Responses behind any prefix that ends in /v1"),
    ("/v1/messages/", MESSAGES, "Messages with a slash at the end"),
    ("/messages?beta=true", MESSAGES, "Messages without /v1"),
    ("/anthropic/v1/messages", MESSAGES, "Foundry, DeepSeek, Moonshot"),
    ("/api/v1/messages", MESSAGES, "OpenRouter's Messages"),
    ("/any/v1/messages", MESSAGES, "Messages behind any prefix that ends in /v1"),
]


@pytest.mark.parametrize(("target", "body", "name"), FOLDED, ids=[row[2] for row in FOLDED])
async def test_a_conversation_is_folded_whatever_stands_before_it(gateway, standin, target, body, name):
    ports = await gateway(standin, SMALL)
    reply = await raw.ask(ports.port, raw.request(target, "POST", orjson.dumps(body), content_type=JSON))
    assert (reply.status, reply.headers["x-turnfold-action"]) == (200, "fold"), name
    [seen] = posts(standin)
    path = "responses" if body is RESPONSES else "messages" if body is MESSAGES else "chat/completions"
    assert seen.raw_target == f"/v1/{path}" + ("?beta=true" if "?beta" in target else "")
    assert seen.violations == []


async def test_a_request_that_fits_keeps_its_bytes_whatever_stands_before_it(gateway, standin):
    ports = await gateway(standin, SMALL)
    body = b'{ "model" : "small", "temperature":1.50,"messages":[{"role":"user","content":"h\\u0069"}],"x":{} }'
    for target in ("/openai/deployments/small/chat/completions", "/api/v1/chat/completions", "/v1//chat/completions/"):
        await raw.ask(ports.port, raw.request(target, "POST", body, content_type=JSON))
        assert standin.requests[-1].body == body


BODY_OF_DEPLOYMENT = [
    (b'{"messages":[{"role":"user","content":"hi"}]}', "no model"),
    (b'{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}', "another one"),
    (b'{"messages":[{"role":"user","content":"hi"}],"model":null}', "null"),
    (b'{"messages":[{"role":"user","content":"hi"}],"model":7,"temperature":1.50}', "a number"),
]


@pytest.mark.parametrize(("body", "name"), BODY_OF_DEPLOYMENT, ids=[row[1] for row in BODY_OF_DEPLOYMENT])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("endpoint", ["chat/completions", "embeddings"])
async def test_the_deployment_decides_whatever_model_the_body_names(gateway, standin, body, name, packed, endpoint):
    ports = await gateway(standin)
    sent = gzip.compress(body, mtime=0) if packed else body
    encoding = {"content_encoding": "gzip"} if packed else {}
    target = f"/openai/deployments/small/{endpoint}"
    reply = await raw.ask(ports.port, raw.request(target, "POST", sent, content_type=JSON, **encoding))
    assert reply.status == 200, name
    seen = standin.requests[-1]
    assert seen.json == {**orjson.loads(body), "model": "small"}
    assert "content-encoding" not in seen.headers


@pytest.mark.parametrize("path", ["/v1/completions", "/openai/deployments/small/completions"])
async def test_a_form_and_a_body_that_is_no_json_pass(gateway, standin, path):
    ports = await gateway(standin)
    await raw.ask(ports.port, raw.request(path, "POST", b"hello", content_type=JSON))
    assert standin.requests[-1].body == b"hello"
    async with azure(ports, azure_deployment="small") as client:
        await client.audio.transcriptions.with_raw_response.create(model="whisper", file=io.BytesIO(b"RIFF"))
    assert standin.requests[-1].raw_target == "/v1/audio/transcriptions"


# What passes, and what does not

NATIVE = [
    ("ollama", "POST", "/api/chat"),
    ("ollama", "POST", "/api/generate"),
    ("ollama", "POST", "/api/embed"),
    ("ollama", "POST", "/api/show"),
    ("ollama", "GET", "/api/tags"),
    ("ollama", "GET", "/api/version"),
    ("llama.cpp", "POST", "/completion"),
    ("llama.cpp", "POST", "/infill"),
    ("llama.cpp", "POST", "/tokenize"),
    ("llama.cpp", "POST", "/apply-template"),
    ("llama.cpp", "GET", "/props"),
    ("vllm", "POST", "/tokenize"),
    ("vllm", "POST", "/detokenize"),
    ("vllm", "POST", "/rerank"),
    ("sglang", "POST", "/generate"),
    ("tgi", "POST", "/generate_stream"),
    ("tgi", "GET", "/info"),
]


@pytest.mark.parametrize(("provider", "method", "path"), NATIVE)
@pytest.mark.parametrize("ending", ["", "/v1"])
async def test_a_servers_own_endpoints_pass_as_they_came(gateway, standin, provider, method, path, ending):
    base = root_of(standin) + ending
    ports = await gateway(standin, upstream(standin, provider, base=base, key=OWN))
    body = b'{ "model":"m","prompt":"hi" }' if method == "POST" else b""
    reply = await raw.ask(
        ports.port, raw.request(f"{path}?a=1", method, body, content_type=JSON, authorization="Bearer x")
    )
    assert (reply.status, reply.headers["x-turnfold-action"]) == (200, "none")
    seen = standin.requests[-1]
    assert (seen.method, seen.raw_target, seen.body) == (method, f"{path}?a=1", body)
    assert seen.headers["authorization"] == f"Bearer {OWN}"


NOT_SERVED = [
    ("ollama", "POST", "/api/pull"),
    ("ollama", "DELETE", "/api/delete"),
    ("ollama", "POST", "/api/create"),
    ("ollama", "GET", "/api/chat"),
    ("ollama", "POST", "/api/chat/x"),
    ("ollama", "POST", "/completion"),
    ("llama.cpp", "POST", "/api/chat"),
    ("llama.cpp", "GET", "/slots"),
    ("llama.cpp", "POST", "/props"),
    ("vllm", "POST", "/sleep"),
    ("vllm", "POST", "/reset_prefix_cache"),
    ("litellm", "POST", "/key/generate"),
    ("openai", "POST", "/api/chat"),
    ("openai", "GET", "/any/v1/models"),
    ("openai", "POST", "/v1beta/models/gemini-pro:generateContent"),
    ("openai", "POST", "/model/anthropic.claude/invoke"),
    ("openai", "POST", "/admin"),
    ("openai", "POST", "/V1/chat/completion"),
    ("openai", "POST", "/any/messages"),
    ("openai", "POST", "/any/threads/t/messages"),
]


@pytest.mark.parametrize(("provider", "method", "path"), NOT_SERVED)
async def test_every_other_endpoint_of_a_server_stays_closed(gateway, standin, provider, method, path):
    ports = await gateway(standin, upstream(standin, provider, key=OWN))
    reply = await raw.ask(ports.port, raw.request(path, method, b'{"model":"m"}', content_type=JSON))
    assert reply.status == 404
    if path.startswith("/api/"):  # an error in Ollama's shape
        assert reply.error.startswith("Nothing is served at ")
    else:
        assert reply.error["code"] == "not_found"
    assert standin.requests == []


PASSED = [
    "/v1/threads/t/messages",
    "/openai/threads/t/messages",
    "/v1/conversations/c/items",
    "/v1/files/deployments/x",
    "/v1/chat/completions/id/messages",
    "/v1/sessions/s/messages",
    "/v1/files/a/",
]


@pytest.mark.parametrize("path", PASSED)
async def test_an_endpoint_that_only_looks_like_a_conversation_passes(gateway, standin, path):
    ports = await gateway(standin)
    body = orjson.dumps(CHAT)
    reply = await raw.ask(ports.port, raw.request(path, "POST", body, content_type=JSON))
    assert reply.status == 200
    assert standin.requests[-1].raw_target == path.replace("/openai/", "/v1/")
    assert standin.requests[-1].body == body


@pytest.mark.parametrize(
    "path", ["/v1/x?model=a&model=b", "/v1/x?model=a&deployment=b", "/v1/models/a/models/b?model=c"]
)
async def test_a_url_that_names_two_models_passes_where_neither_decides_anything(gateway, standin, path):
    ports = await gateway(standin)
    assert (await raw.ask(ports.port, raw.request(path))).status == 200
    assert standin.requests[-1].raw_target == path


# Attacks


@asynccontextmanager
async def two_upstreams(restricted=()):
    """A gateway whose default upstream is for model `main`; `other` is served elsewhere. With ``restricted``, one key for these models."""
    async with StandIn() as main, StandIn() as other:
        text = running.configured(
            main,
            {
                "upstreams": {
                    "standin": {"provider": "ollama", "base_url": main.base_url, "api_key": "sk-main"},
                    "other": {"provider": "azure", "base_url": root_of(other), "api_key": "sk-other"},
                },
                "models": {"other": {"upstream": "other"}, "alias": {"upstream": "other", "name": "real"}},
                **({"keys": {"a": {"hash": HASH, "models": list(restricted)}}} if restricted else {}),
            },
        )
        async with running.in_process(text) as ports:
            yield ports, main, other


@pytest.mark.parametrize("endpoint", ["chat/completions", "embeddings", "completions", "audio/speech"])
async def test_a_deployment_reaches_its_models_upstream_alone(endpoint):
    async with two_upstreams() as (ports, main, other):
        for name, sent in (("other", "other"), ("alias", "real"), ("o%74her", "other")):
            body = b'{"model":"main","input":"x","messages":[{"role":"user","content":"hi"}]}'
            await raw.ask(
                ports.port, raw.request(f"/openai/deployments/{name}/{endpoint}", "POST", body, content_type=JSON)
            )
            seen = other.requests[-1]
            assert seen.path == f"/openai/deployments/{sent}/{endpoint}"
            assert (seen.json["model"], seen.headers["api-key"]) == (sent, "sk-other")
        assert main.requests == []
        await raw.ask(
            ports.port,
            raw.request(
                f"/openai/deployments/main/{endpoint}", "POST", b'{"model":"other","messages":[]}', content_type=JSON
            ),
        )
        assert (main.requests[-1].path, main.requests[-1].json["model"]) == (f"/v1/{endpoint}", "main")


ASK = b'{"model":"%s","input":"x","prompt":"x","messages":[{"role":"user","content":"hi"}]}'
FORM = "application/x-www-form-urlencoded"
CALLED_FORMS = [
    ("/v1/embeddings?model=main", b'{"model":"other"}'),
    ("/v1/embeddings", b'{"a":"&model=main&","model":"other"}'),
    ("/api/chat?model=main", b'{"model":"other"}'),
    ("/openai/deployments/main/embeddings", b'{"model":"other"}'),
    ("/openai/deployments/main/embeddings", b"model=other"),
    ("/openai/deployments/main/embeddings", b"input=x"),
]
FORBIDDEN = [
    ("/openai/deployments/other/chat/completions", b"main"),
    ("/openai/deployments/main/../other/chat/completions", b"main"),
    ("/openai/deployments/main%2f..%2fother/chat/completions", b"main"),
    ("/openai/deployments//other/chat/completions", b"main"),
    ("/openai/deployments/main/other/chat/completions", b"main"),
    ("/openai/deployments/main/chat/completions/deployments/other/chat/completions", b"main"),
    ("/openai/deployments/other/deployments/main/chat/completions", b"main"),
    ("/openai/deployments/./chat/completions", b"main"),
    ("/openai/deployments/%2e%2e/chat/completions", b"main"),
    ("/openai/deployments/..;/chat/completions", b"main"),
    ("/openai/deployments/main%00/chat/completions", b"main"),
    ("/openai/deployments/main%0a/chat/completions", b"main"),
    ("/openai/deployments/other/extensions/chat/completions", b"main"),
    ("/openai/deployments/other/anything", b"main"),
    ("/openai/deployments/main/chat/completions", b'main","model":"other'),
    ("/deployments/other/embeddings", b"main"),
    ("/v1/deployments/other/embeddings", b"main"),
    ("/openai/Deployments/other/embeddings", b"main"),
    ("/openai/deployments/other/Embeddings", b"main"),
    ("/openai/DEPLOYMENTS/other/anything", b"main"),
    ("/v1/deployments;x/other/embeddings", b"main"),
    ("/v1/deployments/main/deployments/other/anything", b"main"),
    ("/v1/projects/models/main/publishers/google/models/other:rawPredict", b"main"),
    ("/v1/Models/other:generateContent", b"main"),
    ("/v1/engines/other/completions", b"main"),
    ("/v1/engines/other/edits", b"main"),
    ("/v1/embeddings?model=other", b"main"),
    ("/v1/projects/p/locations/l/publishers/anthropic/models/other:rawPredict", b"main"),
    ("/v1/models/other:generateContent", b"main"),
    ("/v1/model/other/invoke", b"main"),
    ("/v1/model/other%3a0/converse", b"main"),
    ("/v1/audio/speech?deployment=other", b"main"),
    ("/v1/embeddings?Model=other", b"main"),
    ("/v1/embeddings?mod%65l=other", b"main"),
    ("/v1/chat/completions?model=other", b"main"),
    ("/v1/responses?model=main&model=other", b"main"),
    ("/v1/messages?Model=other", b"main"),
    ("/v1/messages/count_tokens?model=other", b"main"),
    ("/v1/responses/compact?deployment=other", b"main"),
    ("/openai/deployments/main/chat/completions?model=other", b"main"),
    ("/v1//chat//completions/", b"other"),
    ("/v1/ch%61t/completions", b"other"),
    ("/v1/Chat/Completions", b"other"),
    ("/any/chat/completions", b"other"),
    ("/api/v1/embeddings", b"other"),
    ("/v1/embeddings/", b"other"),
    ("/api/chat", b"other"),
    ("/api/generate", b'main","model":"other'),
    ("/api/show", b'main","MODEL":"other'),
    ("/v1/chat/completions", b'main","Model":"other'),
    ("/v1/embeddings", b'main","mOdEl":"other'),
]


@pytest.mark.parametrize(("target", "model"), FORBIDDEN, ids=[f"{row[0]} {row[1].decode()}" for row in FORBIDDEN])
async def test_no_path_takes_a_key_to_a_model_that_is_not_its_own(target, model):
    async with two_upstreams(["main"]) as (ports, main, other):
        asked = raw.request(target, "POST", ASK % model, content_type=JSON, authorization=f"Bearer {KEY}")
        reply = await raw.ask(ports.port, asked)
        assert reply.status in (400, 403, 404)
        assert (main.requests, other.requests) == ([], [])


@pytest.mark.parametrize(("target", "body"), CALLED_FORMS)
async def test_a_body_that_is_called_a_form_is_held_to_its_own_model(target, body):
    async with two_upstreams(["main"]) as (ports, main, other):
        asked = raw.request(target, "POST", body, content_type=FORM, authorization=f"Bearer {KEY}")
        reply = await raw.ask(ports.port, asked)
        assert reply.status in (400, 403)
        assert (main.requests, other.requests) == ([], [])


LISTS = [
    *["/api/tags", "/api/ps", "/api/version", "/openai/deployments", "/v1/engines"],
    *["/v1/engines/", "/v1/Engines", "/openai/Deployments/"],
]


@pytest.mark.parametrize("path", LISTS)
async def test_a_key_for_some_models_does_not_see_a_servers_own_lists(path):
    async with two_upstreams(["main"]) as (ports, main, _):
        reply = await raw.ask(ports.port, raw.request(path, authorization=f"Bearer {KEY}"))
        assert (reply.status, main.requests) == (403, [])
        if path.startswith("/api/"):  # an error in Ollama's shape
            assert reply.error.startswith("The request names no model.")
        else:
            assert reply.error["code"] == "model_not_allowed"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_key_for_some_models_cannot_touch_another_by_its_url(method):
    async with two_upstreams(["main"]) as (ports, main, other):
        for path in (
            "/v1/models/other",
            "/v1//models/other",
            "/v1/%6dodels/other",
            "/v1/Models/other",
            "/models/other",
            "/openai/models/other",
        ):
            reply = await raw.ask(ports.port, raw.request(path, method, authorization=f"Bearer {KEY}"))
            assert reply.status == 403, path
        assert (main.requests, other.requests) == ([], [])


@pytest.mark.parametrize(
    "path", ["/api/chat", "/completion", "/openai/deployments/x/embeddings", "/api/v1/models", "/any/chat/completions"]
)
async def test_every_form_of_path_asks_for_the_key(path):
    async with two_upstreams(["main"]) as (ports, main, other):
        reply = await raw.ask(ports.port, raw.request(path, "POST", ASK % b"main", content_type=JSON))
        assert reply.status == 401
        assert (main.requests, other.requests) == ([], [])


@pytest.mark.parametrize("model", [".", ".."])
async def test_a_model_named_like_a_dot_segment_reaches_nobody(model):
    async with two_upstreams() as (ports, main, other):
        for path in ("/v1/chat/completions", "/v1/embeddings", "/v1/responses"):
            reply = await raw.ask(ports.port, raw.request(path, "POST", ASK % model.encode(), content_type=JSON))
            assert (reply.status, reply.error["code"]) == (400, "invalid_model")
        assert (main.requests, other.requests) == ([], [])


async def test_claude_code_and_anthropics_client_work_with_and_without_v1(gateway, standin):
    ports = await gateway(standin, SMALL)
    for base in (root_of(ports), ports.base_url, f"{root_of(ports)}/", f"{root_of(ports)}/anthropic"):
        async with AsyncAnthropic(base_url=base, api_key="k", max_retries=0) as client:
            answer = await client.messages.with_raw_response.create(model="small", max_tokens=50, messages=LONG[1:])
            assert answer.headers["x-turnfold-action"] == "fold"


async def test_clients_of_bedrock_and_vertex_are_told_that_nothing_is_served(gateway, standin):
    ports = await gateway(standin, upstream(standin, key=OWN))
    asked = {"model": "claude", "max_tokens": 5, "messages": [fakes.user("hi")]}
    async with AsyncAnthropicBedrock(
        api_key="k", aws_region="us-east-1", base_url=root_of(ports), max_retries=0
    ) as client:
        with pytest.raises(NotFoundError, match="set the client's base URL"):
            await client.messages.create(**asked)
    given = {"region": "r", "project_id": "p", "access_token": "t", "max_retries": 0}
    async with AsyncAnthropicVertex(base_url=root_of(ports), **given) as client:
        with pytest.raises(NotFoundError, match="set the client's base URL"):
            await client.messages.create(**asked)
    assert standin.requests == []


@pytest.mark.parametrize("endpoint", ["embeddings", "chat/completions"])
async def test_a_body_that_is_decompressed_for_its_deployment_counts_among_the_bytes_that_are_held(gateway, endpoint):
    """The first request waits at the upstream, so that the second is not alone."""
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def wait(request):
        await request.read()
        arrived.set()
        await go_on.wait()
        return web.json_response({})

    application = web.Application()
    application.router.add_post("/v1/{path:.*}", wait)
    async with TestServer(application) as server:
        ports = await gateway(
            str(server.make_url("/v1")), {**SMALL, "server": {"max_in_flight": "2MiB", "max_body": "2MiB"}}
        )
        url = ports.base_url.removesuffix("/v1") + f"/openai/deployments/fast/{endpoint}?api-version={VERSION}"
        content = {"input": "x " * 500_000, "messages": [fakes.user("x " * 500_000)]}
        packed = gzip.compress(orjson.dumps({"model": "another", **content}))
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        first = {"model": "m", "input": "x" * 200_000}
        async with asyncio.timeout(running.PATIENCE_S), asyncio.TaskGroup() as both:
            both.create_task(ports.session.post(f"{ports.base_url}/embeddings", json=first))
            await arrived.wait()
            async with ports.session.post(url, data=packed, headers=headers) as refused:
                go_on.set()
                assert (refused.status, (await refused.json())["error"]["code"]) == (503, "overloaded")
