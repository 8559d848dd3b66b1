"""Certificates of upstreams: the system's are loaded once, when a connection first needs them. aiohttp's own contexts are never used."""

import asyncio
import os
import ssl
import subprocess
import sys

import pytest
from multidict import CIMultiDict

from gateway.config import Upstream
from gateway.serve.process import load_certificates
from gateway.upstream import certificates
from gateway.upstream.client import Client, UpstreamCall, UpstreamUnreachable, target
from gateway.upstream.public_http import PublicHttp
from tests.e2e.test_serving_tls import made
from tests.running import ROOT

CALL = UpstreamCall("GET", "/models", "", "")
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
MADE = "import aiohttp.connector as made; print([len(each.get_ca_certs()) for each in (made._SSL_CONTEXT_VERIFIED, made._SSL_CONTEXT_UNVERIFIED)], made._SSL_CONTEXT_VERIFIED.verify_mode.name, made._SSL_CONTEXT_VERIFIED.check_hostname)"
"""How many certificates the contexts have that aiohttp made when it was imported, and whether the first one verifies."""


@pytest.fixture(autouse=True)
def nothing_loaded():
    """Shared contexts are made anew, because each test has other certificates."""
    certificates._shared.cache_clear()
    yield
    certificates._shared.cache_clear()


@pytest.fixture
async def server(tmp_path):
    """A server with a certificate that it signed itself; yields its port and the certificate's file."""
    cert, key = made(tmp_path, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n" if b"upgrade:" in head else ANSWER)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as listening:
        yield listening.sockets[0].getsockname()[1], cert


async def own(client, upstream):
    """Ask an upstream by our own client."""
    return (await client.send(upstream, CALL, CIMultiDict(), None)).status


async def public(client, upstream):
    """Ask an upstream by aiohttp's client."""
    await client._http.close()
    client._http = PublicHttp()
    return await own(client, upstream)


async def socket(client, upstream):
    """Open a WebSocket, which this server refuses by a status: so the TLS handshake was done."""
    try:
        await client.connect(upstream, CALL, CIMultiDict(), (), 1000)
    except UpstreamUnreachable as error:
        if "status 403" not in error.args[0]:
            raise
        return 200


@pytest.mark.parametrize("asking", [own, public, socket])
@pytest.mark.parametrize("trusted", ["by the system", "as ca_file", "unverified", "no"])
async def test_an_upstream_is_reached_if_its_certificate_is_trusted(monkeypatch, server, asking, trusted):
    port, cert = server
    monkeypatch.setenv("SSL_CERT_FILE", cert if trusted == "by the system" else os.devnull)
    upstream = target(
        Upstream(
            "u",
            "openai",
            f"https://127.0.0.1:{port}/v1",
            ca_file=cert if trusted == "as ca_file" else "",
            verify=trusted != "unverified",
        )
    )
    client = Client()
    try:
        if trusted == "no":
            with pytest.raises(UpstreamUnreachable, match="its certificate was not accepted"):
                await asking(client, upstream)
        else:
            assert await asking(client, upstream) == 200
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("scheme", "loads"), [("https", 1), ("http", 0), ("https, not verified", 0), ("https, with ca_file", 0)]
)
def test_the_systems_certificates_are_loaded_for_an_upstream_that_needs_them(tmp_path, scheme, loads):
    cert, _ = made(tmp_path, "ca")
    upstream = Upstream(
        "u",
        "openai",
        f"{scheme.partition(',')[0]}://h.example/v1",
        ca_file=cert if "ca_file" in scheme else "",
        verify="not" not in scheme,
    )
    load_certificates([target(upstream)])

    assert certificates._shared.cache_info().currsize == loads


def imported(first, cert):
    """Import aiohttp in a process of its own, where the system has one certificate; return what `MADE` says."""
    environ = {**os.environ, "SSL_CERT_FILE": cert, "SSL_CERT_DIR": os.devnull}
    done = subprocess.run(
        [sys.executable, "-c", first + MADE], cwd=ROOT, env=environ, capture_output=True, check=True, text=True
    )
    return done.stdout.strip()


def test_a_start_loads_no_certificates_and_aiohttps_context_trusts_nobody(tmp_path):
    cert, _ = made(tmp_path, "ca")
    started = "from gateway.command import cli; cli._load_packages();"

    assert imported(started, cert) == "[0, 0] CERT_REQUIRED True"
    assert imported("", cert) == "[1, 1] CERT_REQUIRED True", "aiohttp does it no longer: load_aiohttp can go"


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", "/somewhere")
    before = dict(os.environ)
    with certificates._no_certificates():
        assert ssl.create_default_context().get_ca_certs() == []
    assert dict(os.environ) == before
