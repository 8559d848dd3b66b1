"""A model behind a server of chat completions, asked for one answer at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import orjson

TIMEOUT_S = 600.0
"""Seconds for one answer: a busy machine reads some hundred tokens a second."""


@dataclass(frozen=True, slots=True)
class Model:
    """The model at an address."""

    address: str

    def answer(self, messages: Sequence[Mapping[str, Any]], most: int) -> str:
        """Return what it answers in at most so many tokens, always choosing the likeliest; empty where the server refuses."""
        place = urlsplit(self.address)
        connection = HTTPConnection(place.hostname or "127.0.0.1", place.port or 80, timeout=TIMEOUT_S)
        body = {"model": "any", "messages": list(messages), "max_tokens": most, "temperature": 0, "cache_prompt": True}
        try:
            connection.request("POST", "/v1/chat/completions", orjson.dumps(body), {"content-type": "application/json"})
            told = connection.getresponse()
            read = orjson.loads(told.read())
        finally:
            connection.close()
        return str(read["choices"][0]["message"].get("content") or "") if told.status == 200 else ""
