"""Who may speak to the ports: hosts, web pages, loops, and keys that strangers could spend."""

import asyncio
import os
import socket
import sys
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from gateway.command import serving
from gateway.config import SettingsError, parse
from gateway.config.exposure import address_of, leads_to
from gateway.serve.incoming.errors import ClientError
from gateway.serve.incoming.guard import Guard
from gateway.standin import StandIn
from gateway.upstream.hops import HOPS, MOST_HOPS
from tests import fakes, raw, running

HOSTS = [
    ("127.0.0.1:8787", 200),
    ("127.0.0.1", 200),
    ("localhost:8787", 200),
    ("LOCALHOST", 200),
    ("app.localhost:8787", 200),
    ("[::1]:8787", 200),
    ("192.168.1.20:8787", 200),
    ("evil.example", 403),
    ("evil.example:8787", 403),
    ("127.0.0.1.evil.example:8787", 403),
    ("localhost.evil.example", 403),
    ("127.0.0.1@evil.example", 403),
    ("gateway", 403),
    ("[::1].evil.example", 403),
    ("[::1]evil:80", 403),
]


@pytest.mark.parametrize(("host", "status"), HOSTS)
async def test_on_loopback_both_ports_serve_addresses_and_localhost_alone(gateway, standin, host, status):
    ports = await gateway(standin)
    assert (await raw.ask(ports.port, raw.request(host=host))).status == status
    assert (await raw.ask(admin_port(ports), raw.request("/metrics", host=host))).status == status
    assert len(standin.requests) == (status == 200)


async def test_a_configured_host_is_served_and_others_are_not(gateway, standin):
    ports = await gateway(standin, {"server": {"allowed_hosts": ["gate.example", "*.inner.example"]}})
    asked = ["gate.example", "GATE.example:8787", "a.inner.example", "inner.example", "gate.example.evil", "localhost"]
    replies = [(await raw.ask(ports.port, raw.request(host=host))).status for host in asked]
    assert replies == [200, 200, 200, 403, 403, 200]


async def test_two_hosts_are_refused(gateway, standin):
    ports = await gateway(standin)
    request = b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n"
    assert (await raw.ask(ports.port, request)).status == 400
    assert standin.requests == []


@pytest.mark.parametrize("line", [b"GET /v1/models", b"GET /v1/models HTTP/0.9", b"GET /v1/models HTTP/2.0"])
async def test_other_versions_of_http_need_no_host_and_are_not_served(gateway, standin, line):
    ports = await gateway(standin)
    for port in (ports.port, admin_port(ports)):
        reply = await raw.ask(port, line + b"\r\n\r\n")
        assert reply.status in (400, 505)
        assert reply.error["message"]
    assert standin.requests == []


async def test_without_a_host_probes_alone_are_served(gateway, standin):
    """HTTP/1.0 needs none; load balancers that speak it ask for health alone."""
    ports = await gateway(standin)
    for port, path, status in (
        (ports.port, b"/v1/models", 400),
        (admin_port(ports), b"/metrics", 400),
        (ports.port, b"/healthz", 200),
        (admin_port(ports), b"/healthz", 200),
    ):
        assert (await raw.ask(port, b"GET " + path + b" HTTP/1.0\r\n\r\n")).status == status
    assert standin.requests == []
    named = b"GET /v1/models HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n"
    assert (await raw.ask(ports.port, named)).status == 200


CHAT = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
PAGES = [
    ("a page of another origin", {"origin": "https://evil.example"}, 403),
    ("a page on another port of this machine", {"origin": "http://127.0.0.1:3000"}, 403),
    ("a sandboxed page", {"origin": "null"}, 403),
    ("an image in a page", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
    ("a page of a sister domain", {"sec_fetch_site": "same-site"}, 403),
    ("a page under a rebound name", {"origin": "http://evil.example", "host": "evil.example"}, 403),
    ("a permitted page", {"origin": "https://chat.example"}, 200),
    ("a permitted page's sister", {"origin": "https://chat.example.evil"}, 403),
    ("a page of our own", {"origin": "http://127.0.0.1:8787", "host": "127.0.0.1:8787"}, 200),
    ("an address that was typed", {"sec_fetch_site": "none"}, 200),
    ("a program", {}, 200),
]


@pytest.mark.parametrize(("headers", "status"), [row[1:] for row in PAGES], ids=[row[0] for row in PAGES])
@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("POST", CHAT)])
async def test_a_web_page_gets_nothing_unless_its_origin_is_allowed(gateway, standin, headers, status, method, body):
    ports = await gateway(standin, {"server": {"cors_origins": ["https://chat.example"]}})
    target = "/v1/chat/completions" if body else "/v1/models"
    reply = await raw.ask(ports.port, raw.request(target, method, body, **headers))
    assert reply.status == status
    assert bool(standin.requests) == (status == 200)
    allowed = headers.get("origin") == "https://chat.example"
    assert reply.headers.get("access-control-allow-origin") == ("https://chat.example" if allowed else None)


async def test_the_admin_port_is_for_no_page_but_its_own(gateway, standin):
    ports = await gateway(standin, {"server": {"cors_origins": ["https://chat.example"]}})
    for origin in ("https://chat.example", "https://evil.example", f"http://127.0.0.1:{ports.port}"):
        assert (await raw.ask(admin_port(ports), raw.request("/api/exchanges", origin=origin))).status == 403
    own = f"127.0.0.1:{admin_port(ports)}"
    request = raw.request("/api/exchanges", host=own, origin=f"http://{own}", sec_fetch_site="same-origin")
    assert (await raw.ask(admin_port(ports), request)).status == 200


async def test_a_permitted_page_may_ask_first_and_read_streams_and_errors(gateway):
    page = {"origin": "https://chat.example"}
    async with StandIn() as standin:
        ports = await gateway(standin, {"server": {"cors_origins": ["https://chat.example"]}})
        asked = raw.request(
            "/v1/chat/completions", "OPTIONS", **page,
            access_control_request_method="POST", access_control_request_headers="authorization, x-stainless-os",
        )  # fmt: skip
        first = await raw.ask(ports.port, asked)
        assert first.status == 204
        assert first.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
        assert "POST" in first.headers["access-control-allow-methods"]
        assert standin.requests == []

        body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
        for target in ("/v1/chat/completions", "/v1/embeddings", "/nothing"):
            reply = await raw.ask(ports.port, raw.request(target, "POST", body, **page))
            assert reply.headers["access-control-allow-origin"] == "https://chat.example"
            assert reply.headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
async def test_a_post_to_the_admin_port_must_be_declared_as_json(gateway, standin, kind):
    ports = await gateway(standin)
    body = b'{"model":"m","messages":[]}'
    assert (
        await raw.ask(admin_port(ports), raw.request("/api/explain", "POST", body, content_type=kind))
    ).status == 415
    json = raw.request("/api/explain", "POST", body, content_type="application/json; charset=utf-8")
    assert (await raw.ask(admin_port(ports), json)).status == 200


@pytest.mark.parametrize(
    ("own", "host", "served"),
    [
        ("0.0.0.0", "turnfold.default.svc", True),
        ("10.0.0.7", "turnfold.internal", True),
        ("127.0.0.1", "turnfold.internal", False),
        ("::1", "turnfold.internal", False),
        ("localhost", "turnfold.internal", False),
        ("turnfold.internal", "turnfold.internal:8787", True),
    ],
)
def test_off_loopback_any_host_is_served_until_hosts_are_listed(own, host, served):
    def asks(guard):
        try:
            return guard.check("/v1/models", CIMultiDict({"Host": host})) == ""
        except ClientError:
            return False

    assert asks(Guard(own)) is served
    assert not asks(Guard(own, allowed_hosts=("other.example",))) or host.startswith(own)


def upstream_text(host="127.0.0.1", port=8787, url="https://api.example/v1", more="", server=""):
    return (
        f"server: {{host: '{host}', port: {port}{server}}}\nadmin: {{port: 9999}}\n"
        f"upstreams: {{u: {{provider: openai, base_url: '{url}'{more}}}}}\n"
    )


KEYED = [
    ("on loopback", upstream_text(more=", api_key: k"), ""),
    ("with clients' own keys", upstream_text("0.0.0.0"), ""),
    ("on every address", upstream_text("0.0.0.0", more=", api_key: k"), "server.open"),
    ("on one address", upstream_text("10.1.2.3", more=", api_key: k"), "server.open"),
    ("under a name", upstream_text("gate.example", more=", api_key: k"), "server.open"),
    ("on every IPv6 address", upstream_text("::", more=", api_key: k"), "server.open"),
    ("with the key as a header", upstream_text("0.0.0.0", more=", headers: {Authorization: Bearer k}"), "server.open"),
    (
        "with a relay's key as a header",
        upstream_text("0.0.0.0", more=", headers: {x-portkey-api-key: k}"),
        "server.open",
    ),
    ("with a session as a header", upstream_text("0.0.0.0", more=", headers: {Cookie: k}"), "server.open"),
    (
        "with a certificate of our own",
        upstream_text("0.0.0.0", more=", client_cert: a.pem, client_key: b.pem"),
        "server.open",
    ),
    ("on an IPv4 loopback address as IPv6", upstream_text("::ffff:127.0.0.1", more=", api_key: k"), ""),
    ("with another header", upstream_text("0.0.0.0", more=", headers: {x-team: a}"), ""),
    ("on purpose", upstream_text("0.0.0.0", more=", api_key: k", server=", open: true"), ""),
]


@pytest.mark.parametrize(("text", "refused"), [row[1:] for row in KEYED], ids=[row[0] for row in KEYED])
def test_a_configured_key_is_not_laid_open_by_accident(text, refused):
    if not refused:
        parse(text, {})
        return
    with pytest.raises(SettingsError) as error:
        parse(text, {})
    (problem,) = error.value.problems
    assert refused in problem
    assert "api_key" in problem
    assert "open: true" in problem


ON_EVERY_ADDRESS = upstream_text("0.0.0.0").replace("{port: 9999}", "{host: 0.0.0.0, port: 9999, token: secret}")
RELOADED = [
    ("a key for the port of this machine", upstream_text("127.0.0.1", more=", api_key: k"), "server.open"),
    ("an admin port of this machine without a token", upstream_text("0.0.0.0"), "admin.token"),
]


@pytest.mark.parametrize(("changed", "refused"), [row[1:] for row in RELOADED], ids=[row[0] for row in RELOADED])
def test_a_changed_file_is_checked_with_the_addresses_that_are_still_open(changed, refused):
    """A changed host takes effect at the next start, a key and a token at once."""
    now = parse(ON_EVERY_ADDRESS, {})
    after = parse(changed, {})
    with pytest.raises(SettingsError) as error:
        serving.settings_after(now, after, {})
    assert [problem.split(": ")[0] for problem in error.value.problems if refused in problem] == [refused]
    safe = parse(f"{ON_EVERY_ADDRESS}fold: {{mode: observe}}", {})
    assert serving.settings_after(now, safe, {}).fold.mode == "observe"


async def started(folder, text, *arguments):
    """Run `turnfold serve` until it ends by itself."""
    (folder / "t.yaml").write_text(text)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "serve", "--config", str(folder / "t.yaml"), *arguments,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(running.ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(running.PATIENCE_S):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, output.decode()


async def test_the_command_line_cannot_lay_a_key_open_by_accident(tmp_path):
    status, output = await started(tmp_path, upstream_text(more=", api_key: sk-secret"), "--host", "0.0.0.0")
    assert status == 1
    assert "server.open" in output
    assert "sk-secret" not in output


@pytest.mark.parametrize(
    ("url", "host", "port", "is_it"),
    [
        ("http://127.0.0.1:8787/v1", "127.0.0.1", 8787, True),
        ("http://localhost:8787/v1", "127.0.0.1", 8787, True),
        ("http://[::1]:8787", "localhost", 8787, True),
        ("http://127.0.0.1:8787/v1", "0.0.0.0", 8787, True),
        ("http://0.0.0.0:8787/v1", "127.0.0.1", 8787, True),
        ("http://10.1.2.3:8787/v1", "10.1.2.3", 8787, True),
        ("http://[::ffff:127.0.0.1]:8787/v1", "127.0.0.1", 8787, True),
        ("http://[::ffff:7f00:1]:8787/v1", "0.0.0.0", 8787, True),
        ("https://gate.example/v1", "gate.example", 443, True),
        ("http://127.1:8787/v1", "127.0.0.1", 8787, True),
        ("http://0x7f000001:8787/v1", "127.0.0.1", 8787, True),
        ("http://2130706433:8787/v1", "0.0.0.0", 8787, True),
        ("http://0177.0.0.1:8787/v1", "localhost", 8787, True),
        ("http://0:8787/v1", "127.0.0.1", 8787, True),
        ("http://[::ffff:0:0]:8787/v1", "127.0.0.1", 8787, True),
        ("http://localhost.:8787/v1", "127.0.0.1", 8787, True),
        ("http://\uff11\uff12\uff17.0.0.1:8787/v1", "127.0.0.1", 8787, True),
        ("http://0x0a010203:8787/v1", "10.1.2.3", 8787, True),
        ("http://[0:0:0:0:0:0:0:1]:8787/v1", "::1", 8787, True),
        ("http://127.0.0.1:8000/v1", "127.0.0.1", 8787, False),
        ("http://0x0a010203:8787/v1", "10.1.2.4", 8787, False),
        ("http://cafe:8787/v1", "127.0.0.1", 8787, False),
        ("http://127.0.0.1:8787/v1", "10.1.2.3", 8787, False),
        ("http://other.example:8787/v1", "0.0.0.0", 8787, False),
    ],
)
def test_an_upstream_that_is_the_gateway_is_told_from_others(url, host, port, is_it):
    assert leads_to(url, host, port) is is_it


@given(
    st.lists(
        st.one_of(
            st.integers(0, 2**33).map(str),
            st.integers(0, 300).map(hex),
            st.integers(0, 300).map("0{:o}".format),
            st.sampled_from(["", "0x", "08", "a", "0xg", "-1", " 1"]),
        ),
        min_size=1,
        max_size=5,
    ).map(".".join)
)
def test_numbers_are_the_address_that_resolvers_make_of_them(written):
    """`inet_aton` is what resolvers use; the library, which imports no socket, reads the same file of settings."""
    try:
        expected = str(ip_address(written))
    except ValueError:
        try:
            expected = socket.inet_ntoa(socket.inet_aton(written)) if written.strip() == written else "None"
        except OSError:
            expected = "None"
    assert str(address_of(written)) == expected


async def test_an_upstream_that_is_the_gateway_is_refused_at_the_start(tmp_path):
    with pytest.raises(SettingsError, match=r"upstreams\.u\.base_url: is this gateway itself"):
        parse(upstream_text(url="http://localhost:8787/v1"), {})
    with pytest.raises(SettingsError, match=r"upstreams\.u\.base_url: is this gateway itself"):
        parse(upstream_text(url="http://localhost:9999/api"), {})  # its admin port
    (port,) = running.free_ports(1)
    text = upstream_text(port=1, url=f"http://127.0.0.1:{port}/v1")
    status, output = await started(tmp_path, text, "--port", str(port))
    assert (status, "is this gateway itself" in output) == (1, True)


async def test_a_request_that_comes_round_again_is_508_and_is_not_sent_round_for_ever(tmp_path):
    """The gateway's upstream is a forwarder that leads back to it, as a load balancer or another name would."""
    (back,) = running.free_ports(1)
    async with running.in_process(running.configured(f"http://127.0.0.1:{back}/v1")) as ports:
        passed = []

        async def forward(reader, writer):
            passed.append(1)
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", ports.port)
            writer_ends = [(reader, inner_writer), (inner_reader, writer)]
            await asyncio.gather(*(pump(source, sink) for source, sink in writer_ends))

        async def pump(source, sink):
            try:
                while piece := await source.read(65536):
                    sink.write(piece)
                    await sink.drain()
            except ConnectionError:
                pass
            sink.close()

        server = await asyncio.start_server(forward, "127.0.0.1", back)
        for target, method, body in (
            ("/v1/models", "GET", b""),
            ("/v1/chat/completions", "POST", b'{"model":"m","messages":[]}'),
        ):
            reply = await raw.ask(ports.port, raw.request(target, method, body))
            assert (reply.status, reply.error["code"]) == (508, "loop_detected")
        assert len(passed) <= 4
        server.close()


async def test_two_gateways_in_a_row_are_no_loop_and_ten_are(gateway, standin):
    ports = await gateway(standin)
    two = raw.request(**{HOPS: "first"})
    assert (await raw.ask(ports.port, two)).status == 200
    assert standin.requests[-1].headers[HOPS].startswith("first, ")
    many = raw.request(**{HOPS: ", ".join(f"g{number}" for number in range(MOST_HOPS))})
    assert (await raw.ask(ports.port, many)).status == 508
    assert len(standin.requests) == 1


def admin_port(ports):
    return int(ports.admin_url.rpartition(":")[2])


async def test_a_chat_from_a_program_is_served_as_ever(gateway, standin):
    ports = await gateway(standin)
    assert (await ports.chat({"model": "m", "messages": [fakes.user("hi")]})).status == 200
