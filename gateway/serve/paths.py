"""Paths on the client port: whichever base URL a client was given, with or without ``/v1``, its calls are found."""

from typing import Final

from aiohttp import web

ROOTS: Final = frozenset(
    {
        "assistants", "audio", "batches", "chat", "complete", "completions", "conversations", "embeddings", "files", "fine_tuning",
        "images", "messages", "models", "moderations", "realtime", "responses", "threads", "uploads", "vector_stores",
    }
)  # fmt: skip
"""What stands behind ``/v1`` at OpenAI and Anthropic: such a path without it comes from a base URL without it."""


def api_path(path: str) -> str:
    """A path as it would be below one ``/v1``: Anthropic's libraries add it to the base URL, OpenAI's do not."""
    while path.startswith("/v1/v1/"):
        path = path.removeprefix("/v1")
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/v1{path}" if first in ROOTS else path


def normal(request: web.BaseRequest) -> web.BaseRequest:
    """The request under its path below one ``/v1``; the very request where that is its path."""
    url = request.rel_url
    path = api_path(url.raw_path)
    if path == url.raw_path:
        return request
    return request.clone(
        rel_url=url.with_path(path, encoded=True).with_query(url.query)
        if url.query
        else url.with_path(path, encoded=True)
    )
