"""A model behind a server of chat completions, asked for one answer at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.cache.server import posted


@dataclass(frozen=True, slots=True)
class Model:
    """The model at an address."""

    address: str

    def answer(self, messages: Sequence[Mapping[str, Any]], most: int) -> str:
        """Return what it answers in at most so many tokens, always choosing the likeliest; empty where the server refuses."""
        body = {"model": "any", "messages": list(messages), "max_tokens": most, "temperature": 0, "cache_prompt": True}
        status, told = posted(self.address, body)
        return str(told["choices"][0]["message"].get("content") or "") if status == 200 else ""
