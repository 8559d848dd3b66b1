"""The same conversations sent to a running llama-server, measured by its own counters.

Any model will do, also one of noise: what is counted is how much of each prompt the server processed (``timings.prompt_n``) and how much it had
from the request before (``timings.cache_n``). Start it with one slot and a window larger than the one that is asked for, since its tokens are not those
of this count; without a store of earlier prompts each way begins cold: ``llama-server -m MODEL.gguf -c 32768 -np 1 --cache-ram 0 --port 8080``.
Tools are sent with each request, so a server for conversations that call some is started with ``--jinja``.
The first request of a conversation is sent and not counted, for it is the same in all ways.
"""

from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson
from rich.console import Console
from rich.table import Table

TIMEOUT_S = 600.0
"""Seconds for one request: a busy machine takes minutes for some thousand tokens."""


class Talk(Protocol):
    """A conversation whose requests can be sent in several ways."""

    @property
    def tools(self) -> str: ...

    def sent(self, way: str) -> list[list[dict[str, Any]]]: ...


def show(title: str, talks: Sequence[Talk], ways: Sequence[str], address: str) -> None:
    """Print what the server processed of each way's requests."""
    shown = Table(title=f"{title}, as {address} counted")
    for column in ("way", "requests", "processed a request", "from cache", "refused"):
        shown.add_column(column, justify="left" if column == "way" else "right")
    for way in ways:
        processed = cached = requests = refused = 0
        for talk in talks:
            first, *others = talk.sent(way)
            ask(address, first, talk.tools)
            for messages in others:
                counted = ask(address, messages, talk.tools)
                refused += counted is None
                requests += 1
                processed, cached = processed + (counted or (0, 0))[0], cached + (counted or (0, 0))[1]
        told = max(requests - refused, 1)
        shown.add_row(
            way, str(requests), f"{processed / told:.0f}", f"{cached / max(processed + cached, 1):.1%}", str(refused)
        )
    Console(width=110).print(shown)


def ask(address: str, messages: Sequence[dict[str, Any]], tools: str = "") -> tuple[int, int] | None:
    """Send one request with these tool definitions and return the prompt tokens that were processed and those from the cache; None where
    the server refuses."""
    body: dict[str, Any] = {
        "messages": list(messages),
        "max_tokens": 1,
        "temperature": 0,
        "cache_prompt": True,
        "id_slot": 0,
    }
    if tools:
        body["tools"] = orjson.loads(tools)
    status, told = posted(address, body)
    timings = told.get("timings") if status == 200 else None
    return (int(timings["prompt_n"]), int(timings["cache_n"])) if timings else None


def posted(address: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Ask a server for a chat completion; return the status and the body of its answer."""
    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "127.0.0.1", place.port or 80, timeout=TIMEOUT_S)
    try:
        connection.request("POST", "/v1/chat/completions", orjson.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, orjson.loads(answer.read())
    finally:
        connection.close()
