"""Behind a proxy: keys held to their clients' addresses, a base path on both ports, and web pages."""

from hashlib import sha256

import aiohttp
import pytest

from gateway.serve import arrival as arrivals
from tests import fakes, raw

ASK = {"model": "gpt-4o", "messages": [fakes.user("hi")]}
HASH = f"sha256:{sha256(b'secret').hexdigest()}"
HELD = {"keys": {"team": {"hash": HASH, "addresses": ["203.0.113.0/24"]}}}


@pytest.mark.parametrize(
    ("trusted", "forwarded_for", "status"),
    [
        (["127.0.0.0/8"], "203.0.113.9", 200),
        (["127.0.0.0/8"], "203.0.113.9, 127.0.0.1", 200),
        (["127.0.0.0/8"], "203.0.113.9, 198.51.100.1", 403),
        (["127.0.0.0/8"], None, 403),
        ([], "203.0.113.9", 403),
        (["10.0.0.0/8"], "203.0.113.9", 403),
    ],
)
async def test_a_key_is_held_to_its_addresses_as_trusted_proxies_tell_them(
    gateway, standin, trusted, forwarded_for, status
):
    ports = await gateway(standin, {**HELD, "server": {"trusted_proxies": trusted}})
    told = {"x-forwarded-for": forwarded_for} if forwarded_for else {}
    reply = await ports.chat(ASK, {"x-api-key": "secret", **told})
    assert reply.status == status
    assert len(standin.requests) == (status == 200)
    if status == 403:
        assert reply.json["error"]["code"] == "address_not_allowed"


async def test_what_comes_through_the_unix_socket_is_trusted_where_it_is_said(gateway, standin, tmp_path):
    path = str(tmp_path / "gate.sock")
    ports = await gateway(standin, {**HELD, "server": {"socket": path, "trusted_proxies": ["unix"]}})
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session:
        for client, status in [("203.0.113.9", 200), ("198.51.100.1", 403)]:
            told = {"x-api-key": "secret", "x-forwarded-for": client}
            async with session.post("http://localhost/v1/chat/completions", json=ASK, headers=told) as reply:
                assert reply.status == status
    assert (await ports.chat(ASK, {"x-api-key": "secret", "x-forwarded-for": "203.0.113.9"})).status == 403


async def test_every_record_knows_the_clients_address(gateway, standin, monkeypatch):
    seen = []
    arrive = arrivals.arrive
    monkeypatch.setattr(arrivals, "arrive", lambda *given: seen.append(arrive(*given)) or seen[-1])
    ports = await gateway(standin, {"server": {"trusted_proxies": ["127.0.0.1"]}})
    await ports.chat(ASK, {"x-forwarded-for": "203.0.113.9"})
    await ports.ask("GET", "/models")
    assert [arrival.client for arrival in seen] == ["203.0.113.9", "127.0.0.1"]


BELOW = [
    ("/llm/v1/models", 200),
    ("/llm/models", 200),
    ("/llm/v1/v1/models", 200),
    ("/llm", 200),
    ("/llm/healthz", 200),
    ("/healthz", 200),
    ("/readyz", 200),
    ("/v1/models", 404),
    ("/models", 404),
    ("/", 404),
    ("/llmx/v1/models", 404),
    ("/llm/llm/v1/models", 404),
    ("/other/llm/v1/models", 404),
]


@pytest.mark.parametrize(("path", "status"), BELOW)
async def test_everything_is_below_the_base_path(gateway, standin, path, status):
    ports = await gateway(standin, {"server": {"base_path": "/llm"}})
    reply = await raw.ask(ports.port, raw.request(path))
    assert reply.status == status
    if status == 404:
        assert "http://HOST:PORT/llm/v1" in reply.error["message"]
        assert standin.requests == []


async def test_clients_of_every_format_work_below_the_base_path(gateway, standin):
    ports = await gateway(standin, {"server": {"base_path": "/llm"}})
    assert ports.base_url.endswith("/llm/v1")
    assert (await ports.chat(ASK)).status == 200
    reply = await ports.ask("POST", "/chat/completions?a=%2F&b=1+1", b"{", {"content-type": "application/json"})
    assert reply.headers["x-turnfold-action"]
    assert [request.raw_target for request in standin.requests] == [
        "/v1/chat/completions",
        "/v1/chat/completions?a=%2F&b=1+1",
    ]
    refused = await ports.ask(
        "POST", "/messages", b"[]", {"content-type": "text/plain", "origin": "https://evil.example"}
    )
    assert refused.json["type"] == "error", "errors too are in the shape of the client's API"


async def test_the_admin_port_serves_at_the_root_and_below_the_base_path(gateway, standin):
    ports = await gateway(standin, {"server": {"base_path": "/llm"}, "admin": {"token": "t"}})
    for path in ("", "/llm"):
        for name, status in [("/healthz", 200), ("/metrics", 401), ("/api/exchanges", 401), ("/nothing", 401)]:
            async with ports.session.get(f"{ports.admin_url}{path}{name}") as reply:
                assert reply.status == status, path + name
        async with ports.session.get(
            f"{ports.admin_url}{path}/metrics", headers={"authorization": "Bearer t"}
        ) as reply:
            assert b"turnfold_requests" in await reply.read()


PAGE = {"origin": "https://chat.example"}


async def test_a_page_may_ask_before_it_has_a_key_and_read_refusals(gateway, standin):
    ports = await gateway(standin, {**HELD, "server": {"cors_origins": ["https://chat.example"], "base_path": "/llm"}})
    first = await raw.ask(ports.port, raw.request(
        "/llm/v1/chat/completions", "OPTIONS", **PAGE, access_control_request_method="POST",
        access_control_request_headers="authorization", access_control_request_private_network="true",
    ))  # fmt: skip
    assert first.status == 204
    assert first.headers["access-control-allow-private-network"] == "true"
    assert first.headers["vary"] == "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
    for target, status in [("/llm/v1/models", 401), ("/nothing", 404)]:
        reply = await raw.ask(ports.port, raw.request(target, **PAGE))
        assert (reply.status, reply.headers.get("access-control-allow-origin")) == (status, PAGE["origin"])


async def test_an_upstreams_own_rules_for_pages_give_way_to_ours_and_its_vary_stays(gateway, standin):
    theirs = {"vary": "Accept-Encoding", "access-control-allow-origin": "*", "access-control-allow-credentials": "true",
              "access-control-expose-headers": "x-theirs"}  # fmt: skip
    standin.script.extend([fakes.verbatim(200, b'{"choices":[]}', theirs)] * 3)
    ports = await gateway(standin, {"server": {"cors_origins": ["https://chat.example"]}})
    for target, body in [("/v1/chat/completions", b'{"model":"m","messages":[]}'), ("/v1/chat/completions", b"[]")]:
        reply = await raw.ask(ports.port, raw.request(target, "POST", body, **PAGE))
        assert reply.headers["access-control-allow-origin"] == PAGE["origin"]
        assert "access-control-allow-credentials" not in reply.headers
        assert reply.headers["vary"] == "Accept-Encoding, Origin"
        assert {"*", "x-turnfold-action", "retry-after"} <= set(
            reply.headers["access-control-expose-headers"].split(", ")
        )
    program = await raw.ask(ports.port, raw.request("/v1/chat/completions", "POST", b"[]"))
    assert (program.headers["vary"], program.headers["access-control-allow-origin"]) == ("Accept-Encoding", "*")
