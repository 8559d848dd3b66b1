"""The right upstream or none: odd bodies are routed by the model they name, odd paths reach nobody, and no key goes astray."""

import gzip
import time
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.standin import StandIn
from gateway.upstream.public_http import PublicHttp
from gateway.wire.model_name import NO_MODEL, model_in
from tests import raw, running
from tests.compressed import PACK
from tests.hostile.wire import connected, until

JSON = "application/json"
FORM = "multipart/form-data; boundary=abc123"


def form(*fields, boundary=b"abc123"):
    """Write a multipart form; a field whose value is bytes is a file."""
    parts = []
    for name, value in fields:
        file = b'; filename="a.wav"\r\nContent-Type: audio/wav' if isinstance(value, bytes) else b""
        text = value if isinstance(value, bytes) else value.encode()
        parts.append(
            b'--%s\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (boundary, name.encode(), file, text)
        )
    return b"".join(parts) + b"--" + boundary + b"--\r\n"


HELLO = b'"messages":[{"role":"user","content":"hi"}]'
SAYS_ITS_MODEL = {
    "plain JSON": (JSON, b'{"model":"other",%s}' % HELLO),
    "JSON called text": ("text/plain", b'{"model":"other",%s}' % HELLO),
    "JSON called nothing": ("", b'{"model":"other",%s}' % HELLO),
    "a lone surrogate": (JSON, b'{"messages":[{"role":"user","content":"\\ud83d"}],"model":"other"}'),
    "NaN": (JSON, b'{"temperature":NaN,"model":"other",%s}' % HELLO),
    "Infinity behind the model": (JSON, b'{"model":"other","top_p":-Infinity}'),
    "bytes that are not UTF-8": (JSON, b'{"user":"\xff\xfe","model":"other"}'),
    "a control character in a text": (JSON, b'{"user":"a\x01\nb","model":"other"}'),
    "a byte order mark": (JSON, b'\xef\xbb\xbf{"model":"other"}'),
    "an end that is missing": (JSON, b'{"model":"other","messages":[{"role":"us'),
    "text behind the end": (JSON, b'{"model":"other"} and more'),
    "a comma too many": (JSON, b'{"model":"other",}'),
    "messages that are no list": (JSON, b'{"messages":"hello","model":"other"}'),
    "an escaped key": (JSON, b'{"mod\\u0065l":"other"}'),
    "another model deeper down": (JSON, b'{"metadata":{"model":"main"},"x":NaN,"model":"other"}'),
    "more than a megabyte": (JSON, b'{"pad":"' + b"x" * 1_300_000 + b'","model":"other"}'),
    "a form": (FORM, form(("model", "other"), ("file", b"\x00\r\n--abc\xff"))),
    "a form with its file first": (FORM, form(("file", b"RIFF" * 400_000), ("model", "other"))),
    "a form with a quoted boundary": ('multipart/form-data; boundary="abc123"', form(("model", "other"))),
    "a plain form": ("application/x-www-form-urlencoded", b"a=1&model=other"),
    "JSON called a plain form": ("application/x-www-form-urlencoded", b'{"model":"other","input":"hi"}'),
    "JSON with a semicolon, called a plain form": (
        "application/x-www-form-urlencoded",
        b'{"model":"other","input":"int a;"}',
    ),
    "JSON called a form": (FORM, b'{"model":"other"}'),
    "a form with a folded header": (FORM, form(("model", "other")).replace(b": form-data", b":\r\n form-data")),
    "a form as .NET writes it": (
        FORM,
        form(("model", "other"), ("file", b"x"))
        .replace(b'"model"', b"model")
        .replace(b'="a.wav"', b"=a.wav; filename*=utf-8''a.wav"),
    ),
    "a form as Apache writes it": (
        "multipart/form-data; boundary=abc123; charset=UTF-8",
        form(("model", "other")).replace(
            b'"model"', b'"model"\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: 8bit'
        ),
    ),
    "a form as aiohttp writes it": (
        FORM,
        form(("model", "other")).replace(
            b"Content-Disposition",
            b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\nContent-Disposition",
        ),
    ),
    "a file whose name is not in ASCII": (
        FORM,
        form(("model", "other"), ("file", b"x")).replace(b"a.wav", "Aufnahme für Jörg; 1.wav".encode()),
    ),
    "a file whose name is odd": (
        FORM,
        form(("model", "other"), ("file", b"x")).replace(b'"a.wav"', b'"a; name=\\"b\\".wav"'),
    ),
    "a file whose name ends in a backslash": (
        FORM,
        form(("model", "other"), ("file", b"x")).replace(b"a.wav", rb"C:\a.wav" b"\\"),
    ),
}
SAYS_NO_MODEL = {
    "nothing": (JSON, b""),
    "an object without one": (JSON, b'{"input":"x"}'),
    "an object without one, but with NaN": (JSON, b'{"input":NaN}'),
    "a form without one": (FORM, form(("purpose", "batch"), ("file", b"x"))),
    "a plain form without one": ("application/x-www-form-urlencoded", b"a=1"),
}
TWICE = {
    "a model twice": b'{"model":"main","messages":[{"role":"user","content":"hi"}],"input":"hi","model":"other"}',
    "a model twice, one written in escapes": b'{"mod\\u0065l":"main","messages":[{"role":"user","content":"hi"}],"input":"hi","model":"other"}',
    "a model in capitals, which Go reads": b'{"model":"main","messages":[{"role":"user","content":"hi"}],"input":"hi","MODEL":"other"}',
    "a model with one capital": b'{"Model":"main","messages":[{"role":"user","content":"hi"}],"input":"hi","model":"other"}',
    "a capital written in an escape": b'{"model":"main","messages":[{"role":"user","content":"hi"}],"input":"hi","\\u004dodel":"other"}',
    "a model, and null": b'{"model":"other","messages":[{"role":"user","content":"hi"}],"input":"hi","model":null}',
    "a model twice in text that is not strict": b'{"model":"main","a":NaN,"messages":[{"role":"user","content":"hi"}],"model":"other"}',
    "a model in two cases in text that is not strict": b'{"model":"main","a":"\\ud83d","Model":"other"}',
    "a model in two cases": b'{"model":"main","messages":[{"role":"user","content":"hi"}],"input":"hi","MoDel":"other"}',
    "a model twice in a long body": b'{"model":"main","messages":[{"role":"user","content":"%b"}],"input":"hi","model":"other"}'
    % (b"word " * 50_000),
}
"""Go, Rust and C++ differ in which of two members with one name they take, and for Go names of other cases are one."""
CANNOT_BE_TOLD = {
    **{name: (JSON, body) for name, body in TWICE.items()},
    "no JSON": (JSON, b"hello"),
    "binary": ("application/octet-stream", bytes(range(256))),
    "a list": (JSON, b'[{"model":"other"}]'),
    "a model that is a number": (JSON, b'{"model":5}'),
    "a model that is null": (JSON, b'{"model":null}'),
    "an empty model": (JSON, b'{"model":""}'),
    "an end before the model": (JSON, b'{"messages":[{"role":"us'),
    "a form that names two": (FORM, form(("model", "other"), ("model", "main"))),
    "a form with another boundary": (FORM, form(("model", "other"), boundary=b"xyz")),
    "a form without a boundary": ("multipart/form-data", form(("model", "other"))),
    "a form with two boundaries": (
        f"{FORM}; boundary=xyz",
        form(("model", "other"), boundary=b"xyz") + form(("model", "main")),
    ),
    "a form with the field in another case": (FORM, form(("model", "main"), ("Model", "other"))),
    "a form with a name in RFC 2231": (FORM, form(("model", "other")).replace(b'name="model"', b"name*=utf-8''model")),
    "a form with a name in pieces": (
        FORM,
        form(("model", "main"), ("x", "other")).replace(b'name="x"', b"name*0=mo; name*1=del"),
    ),
    "a form with a charset that Python refuses": (
        FORM,
        form(("model", "main"), ("x", "y")).replace(b'name="x"', b"name*=\0''model"),
    ),
    "a form with a boundary inside a line": (FORM, form(("model", "main"), ("x", "--abc123\r\n"))),
    "a form with something before its first boundary": (FORM, form(("model", "main"), ("model", "other"))[2:]),
    "a form whose model is a file": (FORM, form(("model", b"other"))),
    "a form whose model is in base64": (
        FORM,
        form(("model", "other")).replace(b'"model"', b'"model"\r\nContent-Transfer-Encoding: base64'),
    ),
    "a form whose model is in another charset": (
        FORM,
        form(("model", "other")).replace(b'"model"', b'"model"\r\nContent-Type: text/plain; charset=utf-16'),
    ),
    "a form with a space before a header": (FORM, form(("model", "other")).replace(b"Content", b" Content")),
    "a form with a form feed in a header": (
        FORM,
        form(("model", "main"), ("x", "other")).replace(
            b'"x"', b'"x"; a="\x0ccontent-disposition: form-data; name=model"'
        ),
    ),
    "a form with an attachment": (FORM, form(("model", "other")).replace(b"form-data", b"attachment")),
    "a form with a field of two names": (FORM, form(("model", "main"), ('x"; name="model', "other"))),
    "a form with two dispositions": (
        FORM,
        form(("model", "main"), ('x"\r\ncontent-disposition: form-data; name="model', "other")),
    ),
    "a file whose name ends in a backslash and may contain a name": (
        FORM,
        form(("model", "main"), ("x", b"other")).replace(b"a.wav", rb"; name=model" b"\\"),
    ),
    "a file whose name ends in a backslash before another name": (
        FORM,
        form(("model", "main"), ("x", b"other")).replace(b'"a.wav"', rb'"a\"; name="model"'),
    ),
    "a model whose name as a file ends in a backslash": (
        FORM,
        form(("model", b"other")).replace(b"a.wav", rb"a" b"\\"),
    ),
    "a form with a backslash at the end of a name": (FORM, form(("model", "main"), ("model\\", "other"))),
    "a form with an escape in a name": (FORM, form(("model", "main"), ("mod\\el", "other"))),
    "a form whose second part begins with half a line break": (
        FORM,
        form(("model", "main"), ("model", "other")).replace(b"main\r\n--", b"main\n--"),
    ),
    "a form with half a line break in a header": (
        FORM,
        form(("model", "main"), ("x", "y")).replace(
            b'Content-Disposition: form-data; name="x"', b'X: y\nContent-Disposition: form-data; name="model"\n\nother'
        ),
    ),
    "a form with a part without an end of its head": (
        FORM,
        form(("model", "main")).replace(
            b"--abc123--", b'--abc123\r\nContent-Disposition: form-data; name="model"\n\nother\r\n--abc123--'
        ),
    ),
    "UTF-16": (JSON, '{"model":"other"}'.encode("utf-16")),
    "JSON that is a plain form, too": (
        "application/x-www-form-urlencoded",
        b'{"model":"other","input":"&model=main&"}',
    ),
    "JSON called a plain form": (
        "application/x-www-form-urlencoded",
        b'{"a":"&model=main&","model":"other"}',
    ),
    "JSON that is a plain form with two models": (
        "application/x-www-form-urlencoded",
        b'{"model":"other","input":"&model=main&model=third&"}',
    ),
    "a form whose model stands behind its end": (FORM, form(("x", "y")) + form(("model", "other"))),
    "a form with more in the line of a boundary": (
        FORM,
        form(("x", "y"), ("model", "other")).replace(b"--abc123\r\n", b"--abc123x\r\n"),
    ),
    "a form with very many parts": (FORM, form(*[("x", "y")] * 1_000, ("model", "other"))),
    "a form with a very long head": (
        FORM,
        form(("model", "other")).replace(b"form-data", b"form-data" + b";a=b" * 4_000),
    ),
    "a plain form with very many fields": ("application/x-www-form-urlencoded", b"model=other" + b"&a=b" * 100_000),
    "JSON before a form": (FORM, b'\n {"model":"main"}\r\n' + form(("model", "other"))),
    "a plain form with an empty model, too": ("application/x-www-form-urlencoded", b"model=other&model="),
    "a plain form with the field in another case": ("application/x-www-form-urlencoded", b"model=other&Model=main"),
    "a plain form with a semicolon": ("application/x-www-form-urlencoded", b"model=other;model=main"),
    "JSON that is a plain form with semicolons": (
        "application/x-www-form-urlencoded",
        b'{"model":"other","input":";model=main;"}',
    ),
    "a plain form that names two": ("application/x-www-form-urlencoded", b"model=other&model=main"),
    "a model in capitals alone, which Go reads": (
        JSON,
        b'{"MODEL":"other","messages":[{"role":"user","content":"hi"}],"input":"hi"}',
    ),
    "a model in capitals alone in text that is not strict": (JSON, b'{"MODEL":"other","a":NaN}'),
    "a bottomless pit": (JSON, b'{"a":' * 100_000),
}


@pytest.mark.parametrize(("kind", "body"), SAYS_ITS_MODEL.values(), ids=list(SAYS_ITS_MODEL))
def test_a_model_is_read_from_whatever_says_it(kind, body):
    assert model_in(body, kind) == "other"


@pytest.mark.parametrize(("kind", "body"), SAYS_NO_MODEL.values(), ids=list(SAYS_NO_MODEL))
def test_a_body_that_names_no_model_is_known_to_name_none(kind, body):
    assert model_in(body, kind) == NO_MODEL


@pytest.mark.parametrize(("kind", "body"), CANNOT_BE_TOLD.values(), ids=list(CANNOT_BE_TOLD))
def test_where_the_model_cannot_be_told_none_is_guessed(kind, body):
    assert model_in(body, kind) is None


@asynccontextmanager
async def two_upstreams(**config):
    """A gateway whose default upstream has a key that is for model `main` alone; `other` is served elsewhere."""
    async with StandIn() as main, StandIn() as other:
        text = running.configured(
            main,
            {
                "upstreams": {
                    "standin": {"provider": "openai", "base_url": main.base_url, "api_key": "sk-main"},
                    "other": {"provider": "openai", "base_url": other.base_url, "api_key": "sk-other"},
                },
                "models": {"other": {"upstream": "other"}, "alias": {"upstream": "other", "name": "real"}},
                **config,
            },
        )
        async with running.in_process(text) as ports:
            yield ports, main, other


@pytest.mark.parametrize("target", ["/v1/embeddings", "/v1/chat/completions", "/v1/audio/transcriptions"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_every_body_that_says_its_model_reaches_that_models_upstream_alone(target, framing):
    async with two_upstreams() as (ports, main, other):
        for kind, body in SAYS_ITS_MODEL.values():
            await raw.ask(ports.port, written(target, kind, body, framing))
            assert other.requests[-1].body == body
            assert other.requests[-1].headers["authorization"] == "Bearer sk-other"
        assert len([seen for seen in other.requests if seen.method == "POST"]) == len(SAYS_ITS_MODEL)
        assert main.requests == []


@pytest.mark.parametrize("target", ["/v1/embeddings", "/v1/chat/completions"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_body_whose_model_cannot_be_told_reaches_nobody(target, framing):
    async with two_upstreams() as (ports, main, other):
        for kind, body in CANNOT_BE_TOLD.values():
            reply = await raw.ask(ports.port, written(target, kind, body, framing))
            assert (reply.status, reply.error["code"]) == (400, "model_unreadable")
            assert "model" in str(reply.error["message"])
        assert (main.requests, other.requests) == ([], [])


@pytest.mark.parametrize(
    "target",
    [
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/responses/input_tokens",
        "/v1/responses/compact",
    ],
)
@pytest.mark.parametrize("body", TWICE.values(), ids=list(TWICE))
async def test_a_body_that_names_two_models_reaches_nobody(target, body):
    async with two_upstreams() as (ports, main, other):
        reply = await raw.ask(ports.port, written(target, JSON, body, "length"))
        assert (reply.status, "model" in str(reply.error["message"])) == (400, True)
        assert (main.requests, other.requests) == ([], [])


def test_the_same_model_twice_is_one_model():
    assert model_in(b'{"model":"other","a":{"model":"main"},"model":"other"}', JSON) == "other"


@pytest.mark.parametrize("target", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_conversation_whose_model_is_no_text_reaches_nobody(target):
    field = b"input" if target == "/v1/responses" else b"messages"
    said = b'"max_tokens":5,"%s":[{"role":"user","content":"hi"}]' % field
    async with two_upstreams() as (ports, main, other):
        for model in (b"null", b"5", b'["other"]', b'""', b"{}"):
            reply = await raw.ask(ports.port, written(target, JSON, b'{"model":%s,%s}' % (model, said), "length"))
            assert reply.status == 400
        assert (main.requests, other.requests) == ([], [])


@pytest.mark.parametrize("target", ["/v1/models/other", "/v1/realtime/sessions?model=other", "/v1/engines/other/edits"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_url_that_names_a_model_reaches_that_models_upstream_alone(target, method):
    async with two_upstreams() as (ports, main, other):
        await raw.ask(ports.port, raw.request(target, method))
        assert [seen.headers["authorization"] for seen in other.requests] == ["Bearer sk-other"]
        assert main.requests == []


@pytest.mark.parametrize("upgrade", [False, True])
async def test_a_url_that_names_two_models_reaches_nobody(upgrade):
    wants = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"} if upgrade else {}
    async with two_upstreams() as (ports, main, other):
        asked = raw.request(
            "/v1/realtime?model=main&model=other",
            sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==" if upgrade else "",
            **wants,
        )
        reply = await raw.ask(ports.port, asked)
        assert (reply.status, reply.error["code"]) == (400, "model_unreadable")
        assert (main.requests, other.requests) == ([], [])


@asynccontextmanager
async def socket_server(received):
    """An upstream whose Responses socket keeps every message."""

    async def keep(request):
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        async for frame in socket:
            received.append(frame.data)
            await (socket.send_str if isinstance(frame.data, str) else socket.send_bytes)(frame.data)
        return socket

    app = web.Application()
    app.router.add_get("/v1/responses", keep)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/v1"))
    finally:
        await server.close()


SOCKET_MESSAGES = [
    ('{"type":"response.create","model":"main","input":"hi"}', ""),
    ('{"type":"response.create","input":"hi"}', ""),
    ('{"type":"response.cancel"}', ""),
    ('{"type":"response.create","model":"other","input":"hi"}', "model_of_another_upstream"),
    ('{"type":"response.create","model":"other","input":"hi","previous_response_id":"r"}', "model_of_another_upstream"),
    ('{"type":"response.create","model":"alias","input":"hi"}', "model_of_another_upstream"),
    ('{"type":"response.create","model":"other","input":"hi","top_p":NaN}', "model_of_another_upstream"),
    ('{"type":"response.create","model":"other","input":{}}', "model_of_another_upstream"),
    ('{"type":"response.create","model":5,"input":"hi"}', "model_unreadable"),
    ("hello", "model_unreadable"),
    ('{"type":"response.create","model":"other","input":"hi","model":"main"}', "model_unreadable"),
    ('{"type":"response.create","model":"other","input":"hi","type":"response.cancel"}', "model_of_another_upstream"),
    ('{"type":"response.create","model":"main","input":"hi","Model":"other"}', "model_unreadable"),
    ('{"type":"response.cancel","model":"other","t\\u0079pe":"response.create"}', "model_of_another_upstream"),
    ('{"type":"response.cancel","event_id":"a","event_id":"b"}', ""),
    ('{"type":"response.create","input":"hi","MODEL":"other"}', "model_unreadable"),
    ('{"type":"response.create","model":"main","response":{"model":"other"}}', "model_of_another_upstream"),
    ('{"type":"response.create","model":"main","reſponse":{"model":"other"}}', "model_unreadable"),
    (b'{"type":"response.create","model":"main","input":"hi"}', ""),
    (b'{"type":"response.create","model":"other","input":"hi"}', "model_of_another_upstream"),
    (b"\x01\x02", ""),
]


@pytest.mark.parametrize(("message", "code"), SOCKET_MESSAGES)
async def test_a_message_on_a_socket_reaches_its_models_upstream_or_nobody(message, code):
    received = []
    async with socket_server(received) as url, two_upstreams() as (_, _, other):
        upstreams = {
            "standin": {"provider": "openai", "base_url": url, "api_key": "sk-main"},
            "other": {"provider": "openai", "base_url": other.base_url, "api_key": "sk-other"},
        }
        models = {"other": {"upstream": "other"}, "alias": {"upstream": "other", "name": "real"}}
        text = running.configured(url, {"upstreams": upstreams, "models": models})
        async with running.in_process(text) as ports, ports.session.ws_connect(f"{ports.base_url}/responses") as socket:
            await (socket.send_str if isinstance(message, str) else socket.send_bytes)(message)
            reply = await socket.receive()
            assert (reply.data, reply.extra) == ((1008, code) if code else (message, ""))
        assert received == ([] if code else [message])


async def test_a_compressed_body_is_routed_by_its_model_and_an_unknown_packing_reaches_nobody():
    body = b'{"model":"other","input":"x"}'
    async with two_upstreams() as (ports, main, other):
        packed = gzip.compress(body, mtime=0)
        await raw.ask(ports.port, raw.request("/v1/embeddings", "POST", packed, content_encoding="gzip"))
        assert other.requests[-1].body == packed
        reply = await raw.ask(ports.port, raw.request("/v1/embeddings", "POST", b"\x1b" + body, content_encoding="br"))
        assert reply.status == 400
        assert main.requests == []


async def test_endpoints_without_a_model_go_to_the_default_upstream():
    async with two_upstreams() as (ports, main, other):
        await raw.ask(
            ports.port, raw.request("/v1/files", "POST", form(("purpose", "batch"), ("file", b"x")), content_type=FORM)
        )
        await raw.ask(ports.port, raw.request("/v1/files/file-1", "DELETE"))
        await raw.ask(ports.port, raw.request("/v1/vector_stores", "POST", b'{"name":"a"}', content_type=JSON))
        assert len(main.requests) == 3
        assert other.requests == []


async def test_with_one_upstream_everything_may_go_there(gateway, standin):
    ports = await gateway(standin)
    for kind, body in CANNOT_BE_TOLD.values():
        await raw.ask(ports.port, raw.request("/v1/embeddings", "POST", body, content_type=kind))
        assert standin.requests[-1].body == body


@pytest.mark.parametrize("piece", [b"\r\n--abc123", b"\r\n--abc123\r\n\r\n", b";a=b", b"x\r\n"])
def test_a_form_of_megabytes_of_boundaries_or_parameters_takes_short_time(piece):
    body = (
        b"--abc123\r\nContent-Disposition: form-data" + piece * (4_000_000 // len(piece)) + b"\r\n\r\nx\r\n--abc123--"
    )
    before = time.thread_time()
    assert model_in(body, FORM) is None
    assert time.thread_time() - before < 0.3


@pytest.mark.parametrize("target", ["/v1/embeddings", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("encoding", "is_read"),
    [
        ("br", False),
        ("compress", False),
        ("gzip, gzip", False),
        ("utf-8", True),
        ("identity", True),
        ("identity\r\ncontent-encoding: br", False),
    ],
)
async def test_a_body_in_an_encoding_that_only_a_server_reads_reaches_nobody(target, encoding, is_read):
    """Its bytes may be JSON to the gateway, and another body to the server."""
    async with two_upstreams() as (ports, main, other):
        body = b'{"model":"other","messages":[{"role":"user","content":"hi"}]}'
        reply = await raw.ask(
            ports.port, raw.request(target, "POST", body, content_type=JSON, content_encoding=encoding)
        )
        assert (sum(seen.method == "POST" for seen in other.requests), main.requests) == (int(is_read), [])
        assert is_read or (reply.status, reply.error["code"]) == (400, "model_unreadable")


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
@pytest.mark.parametrize("encoding", ["{}, identity", "identity\r\ncontent-encoding: {}"])
async def test_a_list_of_encodings_with_one_that_is_known_is_read(encoding, packed):
    async with two_upstreams() as (ports, main, other):
        body = PACK[packed](b'{"model":"other","messages":[{"role":"user","content":"hi"}]}')
        await raw.ask(
            ports.port,
            raw.request(
                "/v1/chat/completions", "POST", body, content_type=JSON, content_encoding=encoding.format(packed)
            ),
        )
        assert [seen.body for seen in other.requests if seen.method == "POST"] == [body]
        assert main.requests == []


async def test_a_realtime_session_is_made_where_its_model_is():
    async with two_upstreams() as (ports, main, other):
        for body in (b'{"session":{"model":"other"}}', b'{"session":{"x":1.50, "model":"alias"}}'):
            await raw.ask(ports.port, written("/v1/realtime/client_secrets", JSON, body, "length"))
            assert other.requests[-1].body == body.replace(b"alias", b"real")
        for body in (
            b'{"session":{"model":"other"},"session":{"model":"main"}}',
            b'{"model":"main","session":{"model":"other"}}',
        ):
            reply = await raw.ask(ports.port, written("/v1/realtime/client_secrets", JSON, body, "length"))
            assert (reply.status, reply.error["code"]) == (400, "model_unreadable")
        assert (len(other.requests), main.requests) == (2, [])


async def test_an_alias_is_written_where_it_can_be():
    async with two_upstreams() as (ports, main, other):
        await raw.ask(
            ports.port, raw.request("/v1/embeddings", "POST", b'{"x":NaN, "model":"alias"}', content_type=JSON)
        )
        assert other.requests[-1].body == b'{"x":NaN, "model":"real"}'
        cut = b'{"model":"alias","x":[1,'
        await raw.ask(ports.port, raw.request("/v1/embeddings", "POST", cut, content_type=JSON))
        assert len(other.requests) == 2
        assert main.requests == []


ALIASED = [
    (JSON, b'{"x":1.50, "model":"alias"}', b'{"x":1.50, "model":"real"}'),
    (JSON, b'{"x":NaN, "model":"alias"}', b'{"x":NaN, "model":"real"}'),
    (JSON, b'{"model":"alias","x":[1,', b'{"model":"real","x":[1,'),
    (JSON, b'{"x":1.50, "model":"other"}', b'{"x":1.50, "model":"other"}'),
    (FORM, form(("model", "alias"), ("file", b"RIFF")), form(("model", "real"), ("file", b"RIFF"))),
    (FORM, form(("model", "other"), ("file", b"RIFF")), form(("model", "other"), ("file", b"RIFF"))),
]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("packed", [None, *PACK])
async def test_an_alias_is_written_with_one_upstream_as_with_several(gateway, standin, several, packed):
    more = {"more": {"provider": "openai", "base_url": standin.base_url}} if several else {}
    upstreams = {"standin": {"provider": "openai", "base_url": standin.base_url}, **more}
    ports = await gateway(standin, {"upstreams": upstreams, "models": {"alias": {"name": "real"}}})
    for kind, body, sent in ALIASED:
        asked = PACK[packed](body) if packed else body
        encoding = {"content_encoding": packed} if packed else {}
        await raw.ask(ports.port, raw.request("/v1/embeddings", "POST", asked, content_type=kind, **encoding))
        assert standin.requests[-1].body == (asked if sent == body else sent)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("proxied", [False, True])
async def test_with_an_alias_any_other_body_still_reaches_the_only_upstream_as_it_came(
    gateway, standin, monkeypatch, framing, proxied
):
    if proxied:  # aiohttp's client sends it
        monkeypatch.setattr("gateway.upstream.client.best_http", PublicHttp)
    ports = await gateway(standin, {"models": {"alias": {"name": "real"}}, "server": {"max_body": "1MB"}})
    named = b'{"model":"alias","x":"%b"}'
    bodies = [
        *CANNOT_BE_TOLD.values(),
        (JSON, b'{"model":"%b"}' % (b"x" * 300)),
        ("", b"x" * 1_000_001),
        (JSON, named % (b"x" * 3_000_000)),
    ]
    for kind, body in bodies:
        reply = await raw.ask(ports.port, written("/v1/embeddings", kind, body, framing))
        assert (reply.status, standin.requests[-1].body) == (200, body)
    packed = gzip.compress(named % bytes(3_000_000))
    asked = raw.request("/v1/embeddings", "POST", packed, content_type=JSON, content_encoding="gzip")
    assert ((await raw.ask(ports.port, asked)).status, standin.requests[-1].body) == (200, packed)
    await raw.ask(ports.port, written("/v1/embeddings", JSON, named % b"x", framing))
    assert standin.requests[-1].body == b'{"model":"real","x":"x"}'


async def test_with_an_alias_a_body_that_arrives_too_slowly_to_be_read_whole_is_sent_as_it_comes(gateway):
    config = {"models": {"alias": {"name": "real"}}, "server": {"request_timeout": "100ms"}}
    async with raw.upstream(lambda *_: b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as upstream:
        ports = await gateway(upstream.base_url, config)
        async with connected(ports.port) as client:
            await client.send(
                raw.request("/v1/embeddings", "POST", content_type=JSON, content_length="23") + b'{"model":'
            )
            await until(lambda: bool(upstream.writers))
            await client.send(b'"alias","x":1}')
            assert (await client.answer())[0] == 200
    assert b"content-length: 23" in upstream.heads[0].lower()


@pytest.mark.parametrize("name", ["..", ".", "alias"])
async def test_with_an_alias_no_name_in_a_body_changes_the_path_of_azures_upstream(gateway, standin, name):
    azure = {"provider": "azure", "base_url": standin.base_url.removesuffix("/v1"), "api_key": "k"}
    ports = await gateway(standin, {"upstreams": {"standin": azure}, "models": {"alias": {"name": "real"}}})
    body = b'{"model":"%b","input":"hi"}' % name.encode()
    await raw.ask(ports.port, raw.request("/v1/embeddings?model=m", "POST", body, content_type=JSON))
    deployment = "real" if name == "alias" else "m"
    assert standin.requests[-1].path == f"/openai/deployments/{deployment}/embeddings"


BAD_TARGETS = [
    "/v1/../admin",
    "/v1/./models",
    "/v1/models/..",
    "/v1/%2e%2e/admin",
    "/v1/%2E%2E/admin",
    "/v1/.%2e/admin",
    "/v1/%252e%252e/admin",
    "/v1/%25252e%25252e/admin",
    "/v1/..;/admin",
    "/v1/..%2fadmin",
    "/v1/models%2f..%2fadmin",
    "/v1/models/a%2Fb",
    "/v1/models/a%252Fb",
    "/v1/files/deployments/a%2Fb/x",
    "/openai/deployments/a%2Fb/x",
    "/openai/deployments/a%252Fb/chat/completions",
    "/openai/deployments/a%2F..%2Fb/chat/completions",
    "/openai/deployments/a%2F%2e%2e%2Fb/chat/completions",
    "/openai%2F..%2Fdeployments/a/chat/completions",
    "/v1/models/a%5Cb",
    "/v1/models\\..\\admin",
    "/v1/models/..?x=1",
    "//evil.example/v1/models",
    "http://evil.example/v1/models",
    "http://127.0.0.1/v1/models",
    "HTTP://127.0.0.1/v1/models",
    "*",
]
GOOD_TARGETS = [
    "/v1/models/gpt-4o",
    "/v1/models/meta-llama/Llama-3",
    "/v1/models/a.b..c",
    "/v1/models/...",
    "/v1/models/ft:gpt-4o:org::x",
    "/v1/models/caf%C3%A9%20x",
    "/v1/models?q=../../x&u=http%3A%2F%2Fa%2F..",
]


@pytest.mark.parametrize("target", BAD_TARGETS)
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
async def test_a_target_that_could_be_read_as_another_reaches_nobody(gateway, standin, target, method):
    upstream = {"standin": {"provider": "openai", "base_url": standin.base_url, "api_key": "sk-ours"}}
    ports = await gateway(standin, {"upstreams": upstream})
    reply = await raw.ask(ports.port, raw.request(target, method))
    assert reply.status == 400
    assert reply.headers["x-turnfold-action"] == "error"
    assert reply.error["message"]
    assert standin.requests == []


@pytest.mark.parametrize("target", GOOD_TARGETS)
async def test_other_targets_travel_on_as_they_came(gateway, standin, target):
    ports = await gateway(standin)
    assert (await raw.ask(ports.port, raw.request(target))).status in (200, 404)
    assert standin.requests[-1].raw_target == target


@pytest.mark.parametrize("method", ["TRACE", "trace", "TRACK", "CONNECT"])
async def test_no_method_that_makes_a_server_repeat_or_tunnel_reaches_one(gateway, standin, method):
    """A server that answers TRACE sends back what it got: our key with it."""
    upstream = {"standin": {"provider": "openai", "base_url": standin.base_url, "api_key": "sk-ours"}}
    ports = await gateway(standin, {"upstreams": upstream})
    reply = await raw.ask(ports.port, raw.request("/v1/models", method))
    assert reply.status in (400, 405)
    assert b"sk-ours" not in reply.body
    assert standin.requests == []


async def test_a_websocket_to_another_path_reaches_nobody(gateway, standin):
    ports = await gateway(standin)
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_version": "13"}
    reply = await raw.ask(
        ports.port, raw.request("/v1/../realtime", sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==", **upgrade)
    )
    assert reply.status == 400
    page = raw.request(
        "/v1/realtime", sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==", origin="https://evil.example", **upgrade
    )
    assert (await raw.ask(ports.port, page)).status == 403
    assert standin.requests == []


def written(target, kind, body, framing):
    """A POST with a length or in chunks of 64 KiB."""
    if framing == "length" or not body:
        return raw.request(target, "POST", body, content_type=kind)
    pieces = [body[start : start + 65536] for start in range(0, len(body), 65536)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return raw.request(target, "POST", content_type=kind, transfer_encoding="chunked") + chunks + b"0\r\n\r\n"
