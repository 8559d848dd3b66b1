"""Why an upstream cannot be reached: a wrong scheme, a certificate and a closed port are told apart."""

import asyncio
import os
import resource
import ssl
from contextlib import contextmanager

import pytest
from multidict import CIMultiDict

from gateway.command.check.upstreams import ask_one
from gateway.config import Upstream
from gateway.upstream.client import Client, UpstreamCall, UpstreamUnreachable, target
from gateway.upstream.public_http import PublicHttp
from tests.e2e.test_serving_tls import made

PLAIN = "the TLS handshake failed; if it speaks plain HTTP, its URL begins with http://"
CERTIFICATE = "its certificate was not accepted"
CLOSED = "it closed the connection without an answer"
CASES = [
    ("https", "plain", PLAIN),
    ("https", "closes", PLAIN),
    ("https", "tls", CERTIFICATE),
    ("http", "tls", CLOSED + "; if it speaks TLS, its URL begins with https://"),
    ("http", "speaks nonsense", "its answer was not valid HTTP"),
    ("https", "nobody", "the connection was refused"),
]


async def listening(kind, folder):
    """Start a server of a kind; return it and its port."""

    async def serve(reader, writer):
        if kind != "closes":
            await reader.read(1)
            writer.write(
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n" if kind == "plain" else b"nonsense\r\n\r\n"
            )
        writer.close()

    context = None
    if kind == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*made(folder, "server"))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    if kind == "nobody":
        server.close()
    return server, port


async def told(kind, scheme, folder, client):
    """Return the line about an upstream that does not answer, as `turnfold check --live` prints it."""
    server, port = await listening(kind, folder)
    try:
        return (await ask_one(client, Upstream("u", "openai", f"{scheme}://127.0.0.1:{port}/v1"))).line
    finally:
        await client.close()
        server.close()


@pytest.mark.parametrize(("scheme", "kind", "reason"), CASES, ids=[f"{scheme} to {kind}" for scheme, kind, _ in CASES])
async def test_the_reason_says_what_to_change(tmp_path, scheme, kind, reason):
    assert await told(kind, scheme, tmp_path, Client()) == f"upstreams.u: could not be reached: {reason}"


@pytest.mark.parametrize(("kind", "reason"), [("plain", PLAIN), ("tls", CERTIFICATE)])
async def test_aiohttps_client_gives_the_same_reasons(tmp_path, kind, reason):
    client = Client()
    await client._http.close()
    client._http = PublicHttp()
    assert await told(kind, "https", tmp_path, client) == f"upstreams.u: could not be reached: {reason}"


@contextmanager
def no_descriptors_left():
    """Leave this process no file descriptor that it could open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("http", [None, PublicHttp])
async def test_a_gateway_without_file_descriptors_does_not_blame_the_upstream(http):
    client = Client()
    if http is not None:
        await client._http.close()
        client._http = http()
    server, port = await listening("plain", None)
    upstream = target(Upstream("u", "openai", f"http://127.0.0.1:{port}/v1"))
    try:
        with no_descriptors_left(), pytest.raises(UpstreamUnreachable, match="no file descriptors left"):
            await client.send(upstream, UpstreamCall("GET", "/models", "", ""), CIMultiDict(), None)
    finally:
        await client.close()
        server.close()
