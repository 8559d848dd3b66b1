"""The OpenAI dialect: the record from which most other providers are derived."""

from typing import Final
from urllib.parse import urlsplit, urlunsplit

from providers.overflow.signs import read_refusal
from providers.record import Endpoint, Provider
from providers.usage import read_usage
from providers.windows import read_windows


def join(endpoint: Endpoint, path: str, query: str, model: str) -> str:
    """Append a path below ``/v1`` to the base URL, which normally ends in ``/v1`` itself."""
    base = urlsplit(endpoint.base_url)
    joined = "&".join(part for part in (base.query, query) if part)
    return urlunsplit((base.scheme, base.netloc, base.path.rstrip("/") + "/" + path.lstrip("/"), joined, ""))


def join_under_v1(endpoint: Endpoint, path: str, query: str, model: str) -> str:
    """Append like `join`; add ``/v1`` when the base URL is a bare host, for servers that have nothing else."""
    if urlsplit(endpoint.base_url).path in ("", "/"):
        path = "/v1/" + path.lstrip("/")
    return join(endpoint, path, query, model)


def join_at_root(endpoint: Endpoint, path: str, query: str) -> str:
    """Append a path to the root of a self-hosted server: its base URL without ``/v1``."""
    base = urlsplit(endpoint.base_url)
    root = base.path.rstrip("/").removesuffix("/v1")
    joined = "&".join(part for part in (base.query, query) if part)
    return urlunsplit((base.scheme, base.netloc, root + path, joined, ""))


def bearer(key: str) -> dict[str, str]:
    """Return the header that carries the key as a bearer token."""
    return {"authorization": f"Bearer {key}"}


OPENAI: Final = Provider(
    name="openai",
    locate=join_under_v1,
    authorize=bearer,
    read_refusal=read_refusal,
    read_windows=read_windows,
    read_usage=read_usage,
)
