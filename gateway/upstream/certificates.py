"""TLS towards upstreams: which certificates are trusted, and when the system's are loaded.

Loading the system's certificates takes 235 million processor instructions, a seventh of the gateway's start, and 0.8 MB. So
they are loaded once, for the first upstream that needs them. `Target.tls` says how an upstream is verified, and `context_of`
gives the context for it. Every connection gets its context from here, never one of aiohttp's own.
"""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from yarl import URL

from gateway.config import Upstream

Tls = ssl.SSLContext | bool
"""The context of one upstream, or only whether its certificate is verified."""


def tls_of(upstream: Upstream) -> Tls:
    """Return how the certificate of an upstream is verified. Raises OSError or ValueError for a file that cannot be used."""
    if not upstream.client_cert and (not upstream.ca_file or not upstream.verify):
        return upstream.verify
    context = ssl.create_default_context(cafile=upstream.ca_file or None) if upstream.verify else _trusting_everyone()
    if upstream.client_cert:
        context.load_cert_chain(upstream.client_cert, upstream.client_key or None, password="")
    return context


def context_of(tls: Tls) -> ssl.SSLContext:
    """Return the context to use. The two shared ones are made when they are first needed."""
    return _shared(verify=tls) if isinstance(tls, bool) else tls


def for_aiohttp(tls: Tls, url: URL, proxy: str = "") -> Tls:
    """Return aiohttp's argument ``ssl`` for a URL, and for the proxy on the way to it. Without TLS nothing is loaded."""
    return context_of(tls) if url.scheme in ("https", "wss") or proxy.startswith("https:") else True


@cache
def _shared(*, verify: bool) -> ssl.SSLContext:
    """Return the context of all upstreams without certificates of their own."""
    context = ssl.create_default_context() if verify else _trusting_everyone()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trusting_everyone() -> ssl.SSLContext:
    """Return a context that verifies no certificate, and so loads none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def load_aiohttp() -> None:
    """Load aiohttp without the system's certificates. Only for a process of our own, before it has threads.

    When it is imported, aiohttp makes two contexts and loads the certificates into both. The gateway uses neither. aiohttp
    still makes them. The one that verifies trusts no certificate, so code that uses it by mistake cannot connect.
    """
    with _no_certificates():
        import aiohttp  # noqa: F401, PLC0415


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Have OpenSSL find no certificates, by the environment variables that name the file and the folder."""
    places = ssl.get_default_verify_paths()
    names = (places.openssl_cafile_env, places.openssl_capath_env)
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)
