"""Paths on the client port: a client's calls are recognised with or without ``/v1`` in its base URL."""

from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from aiohttp import web
from yarl import URL

ROOTS: Final = frozenset(
    {
        "assistants", "audio", "batches", "chat", "complete", "completions", "conversations", "embeddings", "files", "fine_tuning",
        "images", "messages", "models", "moderations", "realtime", "responses", "threads", "uploads", "vector_stores",
    }
)  # fmt: skip
"""Paths below ``/v1`` at OpenAI and Anthropic; without ``/v1``, the client's base URL lacks it."""

PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Paths that machines poll to learn whether this process is alive and takes requests."""

OTHERS: Final = frozenset(
    {
        "admin", "chatkit", "classify", "containers", "detokenize", "edits", "engines", "evals", "experimental", "fim", "fine-tuning",
        "moderate", "ocr", "organization", "organizations", "pooling", "rerank", "score", "skills", "tokenize", "videos",
    }
)  # fmt: skip
"""Further documented first parts of paths below ``/v1``, which are not recognised without it."""


KEPT: Final = 256
"""Paths whose form is remembered, a number: most requests have one of three."""
NAMING: Final = ("/v1/models/", "/v1/engines/")
"""Beginnings of paths that name a model behind them."""


def models_in(url: URL) -> set[str]:
    """Return the models that a URL below ``/v1`` names, in its query or in its path."""
    named = {model for model in url.query.getall("model", ()) if model}
    path = url.raw_path
    for start in NAMING:
        if path.startswith(start) and (rest := path.removeprefix(start)):
            named.add(unquote(rest if start == NAMING[0] else rest.partition("/")[0]))
    return named


def root_of(path: str) -> str:
    """Return the documented first part of a path with ``/v1``, a bounded set; "" for any other."""
    return f"/v1/{path.removeprefix('/v1/').partition('/')[0]}" if known(path) else ""


def known(path: str) -> bool:
    """Return whether some documented API has endpoints under the first part of a path below ``/v1``."""
    return path.removeprefix("/v1/").partition("/")[0] in ROOTS | OTHERS


def api_path(path: str) -> str:
    """Return a path with exactly one ``/v1``: Anthropic's libraries add it to the base URL, OpenAI's do not."""
    while path.startswith("/v1/v1/"):
        path = path.removeprefix("/v1")
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/v1{path}" if first in ROOTS else path


@lru_cache(maxsize=KEPT)
def served_path(path: str, base_path: str) -> str:
    """Return a path below the base path as the API has it; "" outside. Probes find `/healthz` and `/readyz` at the root too."""
    if base_path and path not in PROBES:
        if path == base_path:
            return "/"
        if not path.startswith(f"{base_path}/"):
            return ""
        path = path.removeprefix(base_path)
    return api_path(path)


def with_path(request: web.BaseRequest, path: str) -> web.BaseRequest:
    """Return the request with another path and the same query; the same request if it has that path already."""
    url = request.rel_url
    if path == url.raw_path:
        return request
    return request.clone(rel_url=URL.build(path=path, query_string=url.raw_query_string, encoded=True))
