"""TLS towards clients and upstreams, a Unix socket, and the way through a proxy: on real sockets, with real certificates."""

import asyncio
import datetime
import ipaddress
import os
import signal
import ssl
from hashlib import sha256

import aiohttp
import orjson
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.config import SettingsError, parse
from gateway.serve.incoming.tls import Certificate
from gateway.upstream.client import proxy_for
from tests import fakes, running

ASK = {"model": "gpt-4o", "messages": [fakes.user("hi")]}


def made(folder, name):
    """Write a self-signed certificate for 127.0.0.1 and its key; return their paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    certificate = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=9)).add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(private)
    return str(folder / f"{name}.pem"), str(folder / f"{name}.key")


def trusting(cert):
    return ssl.create_default_context(cafile=cert)


async def shown_by(port, cert):
    """The common name of the certificate that a port shows to somebody who trusts one."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(cert))
    try:
        return dict(pair[0] for pair in writer.get_extra_info("peercert")["subject"])["commonName"]
    finally:
        writer.close()
        await writer.wait_closed()


async def test_clients_are_served_by_https_and_a_new_certificate_ends_no_connection(gateway, standin, tmp_path):
    cert, key = made(tmp_path, "first")
    running = await gateway(standin, {"server": {"tls": {"cert": cert, "key": key}}})
    assert running.base_url.startswith("https://127.0.0.1:")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(cert), limit=1)) as session:
        async with session.post(f"{running.base_url}/chat/completions", json=ASK) as answer:
            assert answer.status == 200
        old = {name: (tmp_path / f"first.{name}").read_bytes() for name in ("pem", "key")}
        made(tmp_path, "second")
        for name in ("pem", "key"):
            (tmp_path / f"first.{name}").write_bytes((tmp_path / f"second.{name}").read_bytes())
        running.inside.certificate.renew()
        assert await shown_by(running.port, str(tmp_path / "second.pem")) == "second"
        async with session.post(f"{running.base_url}/chat/completions", json=ASK) as answer:
            assert answer.status == 200, "the connection from before still serves"
    (tmp_path / "first.pem").write_bytes(old["pem"])
    with pytest.raises(SettingsError, match="do not fit together"):
        running.inside.certificate.renew()
    assert await shown_by(running.port, str(tmp_path / "second.pem")) == "second", "the last good one stays"


async def test_the_command_takes_a_new_certificate_up_by_itself(standin, tmp_path):
    cert, key = made(tmp_path, "first")
    text = running.configured(standin, {"server": {"tls": {"cert": cert, "key": key}}})
    made(tmp_path, "second")
    async with running.as_command(text, tmp_path) as (gateway, _):
        assert await shown_by(gateway.port, cert) == "first"
        for name in ("pem", "key"):
            os.replace(tmp_path / f"second.{name}", tmp_path / f"first.{name}")
        async with asyncio.timeout(running.PATIENCE_S):
            while (await shown_after(gateway.port)) != cert_bytes(tmp_path / "first.pem"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # files are polled; nothing tells when


async def test_a_removed_key_does_not_wait_for_a_certificate(standin, tmp_path):
    """A certificate's files are replaced one after the other, and the second one may never come."""
    cert, key = made(tmp_path, "first")
    keys = {name: {"hash": "sha256:" + sha256(name.encode()).hexdigest()} for name in ("kept", "leaked")}
    config = {"server": {"tls": {"cert": cert, "key": key}}, "keys": keys}
    made(tmp_path, "second")
    async with running.as_command(running.configured(standin, config), tmp_path) as (gateway, process):
        file = tmp_path / "turnfold.yaml"
        os.replace(tmp_path / "second.pem", tmp_path / "first.pem")
        changed = yaml.safe_load(file.read_text())
        del changed["keys"]["leaked"]
        file.write_text(yaml.safe_dump(changed))
        process.send_signal(signal.SIGHUP)
        url = f"https://127.0.0.1:{gateway.port}/v1/chat/completions"

        async def asked_with(name):
            headers = {"authorization": f"Bearer {name}"}
            async with gateway.session.post(url, json=ASK, headers=headers, ssl=False) as answer:
                return answer.status

        async with asyncio.timeout(running.PATIENCE_S):
            while (await asked_with("leaked")) != 401:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # a foreign process has no event to wait for
        assert await asked_with("kept") == 200, "the old certificate serves"


async def shown_after(port):
    """The certificate that a port shows, whoever made it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        return writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
        await writer.wait_closed()


def cert_bytes(path):
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def test_files_that_are_no_pair_are_told(tmp_path):
    first, second = made(tmp_path, "a"), made(tmp_path, "b")
    for cert, key, says in [
        (first[0], second[1], "do not fit together"),
        (str(tmp_path / "none"), first[1], r"server.tls.cert: .*none cannot be read"),
        (first[0], str(tmp_path / "none"), r"server.tls.key: .*none cannot be read"),
        (first[1], first[1], "not a certificate"),
    ]:
        with pytest.raises(SettingsError, match=says):
            Certificate(cert, key)
    with pytest.raises(SettingsError, match=r"server\.tls: needs both"):
        parse(f"server: {{tls: {{cert: {first[0]}}}}}", {})


async def test_clients_are_served_on_a_unix_socket_too(gateway, standin, tmp_path):
    path = str(tmp_path / "turnfold.sock")
    running = await gateway(standin, {"server": {"socket": path}})
    assert (await running.chat(ASK)).status == 200
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session,
        session.post("http://localhost/v1/chat/completions", json=ASK) as answer,
    ):
        assert answer.status == 200


async def test_an_upstream_that_asks_for_a_certificate_gets_the_configured_one(gateway, tmp_path):
    cert, key = made(tmp_path, "server")
    client_cert, client_key = made(tmp_path, "client")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_cert)
    context.load_cert_chain(cert, key)
    context.verify_mode = ssl.CERT_REQUIRED
    shown = []

    async def serve(reader, writer):
        shown.append(writer.get_extra_info("peercert")["subject"][0][0][1])
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"object":"list","data":[]}'
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                     b"content-length: %d\r\n\r\n%b" % (len(body), body))  # fmt: skip
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        upstream = {"provider": "openai", "base_url": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1",
                    "ca_file": cert, "client_cert": client_cert, "client_key": client_key}  # fmt: skip
        running = await gateway("http://127.0.0.1:9/v1", {"upstreams": {"standin": upstream}})
        assert (await running.ask("GET", "/models")).status == 200
    assert shown == ["client"]


async def test_an_upstream_elsewhere_is_reached_through_the_proxy_that_the_environment_names(gateway, monkeypatch):
    asked = []

    async def serve(reader, writer):
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        body = orjson.dumps({"object": "list", "data": []})
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                     b"content-length: %d\r\n\r\n%b" % (len(body), body))  # fmt: skip
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        running = await gateway("http://models.example:8000/v1")
        assert (await running.ask("GET", "/models")).status == 200
    assert asked == [b"GET http://models.example:8000/v1/models HTTP/1.1"]


PROXIES = [
    ("https://api.example/v1", {"https_proxy": "http://p:1"}, "http://p:1"),
    ("https://api.example/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
    ("http://api.example/v1", {"https_proxy": "http://p:1"}, ""),
    ("https://api.example/v1", {"https_proxy": "http://p:1", "no_proxy": "example"}, ""),
    ("https://api.example/v1", {"https_proxy": "http://p:1", "no_proxy": "*"}, ""),
    ("https://127.0.0.1:8000/v1", {"https_proxy": "http://p:1"}, ""),
    ("https://localhost/v1", {"https_proxy": "http://p:1"}, ""),
]


@pytest.mark.parametrize(("url", "environment", "proxy"), PROXIES)
def test_which_proxy_leads_to_an_upstream(url, environment, proxy, monkeypatch):
    for name in ("https_proxy", "http_proxy", "no_proxy", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy
