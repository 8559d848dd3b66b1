"""Paths on the client port: a client's calls are recognised with or without ``/v1`` in its base URL."""

from typing import Final

from aiohttp import web

ROOTS: Final = frozenset(
    {
        "assistants", "audio", "batches", "chat", "complete", "completions", "conversations", "embeddings", "files", "fine_tuning",
        "images", "messages", "models", "moderations", "realtime", "responses", "threads", "uploads", "vector_stores",
    }
)  # fmt: skip
"""Paths below ``/v1`` at OpenAI and Anthropic; without ``/v1``, the client's base URL lacks it."""


def api_path(path: str) -> str:
    """Return a path with exactly one ``/v1``: Anthropic's libraries add it to the base URL, OpenAI's do not."""
    while path.startswith("/v1/v1/"):
        path = path.removeprefix("/v1")
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/v1{path}" if first in ROOTS else path


def normal(request: web.BaseRequest) -> web.BaseRequest:
    """Return the request with that path; the same request if it has it already."""
    url = request.rel_url
    path = api_path(url.raw_path)
    if path == url.raw_path:
        return request
    return request.clone(
        rel_url=url.with_path(path, encoded=True).with_query(url.query)
        if url.query
        else url.with_path(path, encoded=True)
    )
