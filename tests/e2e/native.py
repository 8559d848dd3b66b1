"""Conversations in the Messages and the Responses format, as long as a test wants them, and what a client asks with them."""

from dataclasses import dataclass
from typing import Any

from tests.fakes import words

MODEL = "m"


@dataclass(frozen=True, slots=True)
class Native:
    """One API: its path, how a conversation of so many turns looks, how short the answer is to be."""

    name: str
    path: str
    limit: str
    """The member that limits the output."""
    items: str
    """The member that holds the conversation."""

    def body(self, turns: int, tokens_each: int = 100, **more: Any) -> dict[str, Any]:
        """A conversation of plain turns that ends in a question."""
        rows = [{"role": "user", "content": f"Question 0. {words(tokens_each, 0)}"}]
        for turn in range(1, turns):
            rows.append({"role": "assistant", "content": words(tokens_each, 1000 + turn)})
            rows.append({"role": "user", "content": f"Question {turn}. {words(tokens_each, turn)}"})
        return {"model": MODEL, self.items: rows, self.limit: 100, **more}

    def agent(self, steps: int, tokens_each: int = 100, **more: Any) -> dict[str, Any]:
        """One question and many tool calls, the last of them just answered."""
        rows: list[dict[str, Any]] = [{"role": "user", "content": "Find the fault."}]
        for step in range(steps):
            rows += _step(self.name, f"{step}", words(tokens_each, step))
        return {"model": MODEL, self.items: rows, self.limit: 100, **more}


def _step(name: str, key: str, found: str) -> list[dict[str, Any]]:
    if name == "messages":
        use = {"type": "tool_use", "id": f"toolu_{key}", "name": "look", "input": {"path": key}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{key}", "content": found}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return [
        {"type": "reasoning", "id": f"rs_{key}", "summary": [], "encrypted_content": "QUJD" * 20},
        {
            "type": "function_call",
            "id": f"fc_{key}",
            "call_id": f"call_{key}",
            "name": "look",
            "arguments": '{"path": "a"}',
        },
        {"type": "function_call_output", "call_id": f"call_{key}", "output": found},
    ]


MESSAGES = Native("messages", "/messages", "max_tokens", "messages")
RESPONSES = Native("responses", "/responses", "max_output_tokens", "input")
APIS = (MESSAGES, RESPONSES)
