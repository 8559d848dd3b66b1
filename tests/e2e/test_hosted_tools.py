"""Tools that the provider runs: their results, as the client libraries send them back, through the running gateway."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anthropic
import openai
import orjson
import pytest
from anthropic.types import beta
from openai.types import responses

from gateway.standin import StandIn
from gateway.standin import messages as strict_messages
from gateway.standin import responses as strict_responses
from tests.fakes import words

WINDOW: Final = 8000
CONFIG: Final = {"models": {"m": {"context_window": WINDOW, "tokenizer": "o200k"}}}
QUESTION: Final = "Which consignment of the pharmacy in Leiden is late, and what is its number?"
FACT: Final = "consignment NL-77310 of the pharmacy in Leiden is late by 9 days"
LARGE: Final = "".join([f"consignment BE-{number} arrived on time in depot {number % 97}\n" for number in range(4000)])
"""Some 200 KB."""

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAA" * 2000
READ_ITEMS: Final = {
    "mcp_call": {"name": "track", "server_label": "depot", "arguments": '{"city":"Leiden"}', "output": "{}", "status": "completed"},
    "code_interpreter_call": {
        "code": "print(late('Leiden'))", "container_id": "cntr_1", "status": "completed",
        "outputs": [{"type": "image", "url": f"data:image/png;base64,{PNG}"}, {"type": "logs", "logs": "{}"}],
    },
    "file_search_call": {
        "queries": ["late in Leiden"], "status": "completed",
        "results": [{"file_id": "file-1", "filename": "depot.txt", "score": 0.5, "text": "{}"}],
    },
}  # fmt: skip
"""Items of Responses with a result in words; `{}` is its place."""
BLOCKS: Final = {
    "mcp_tool_result": [{"type": "text", "text": "{}"}],
    "web_fetch_tool_result": {
        "type": "web_fetch_result", "url": "https://depot.example/leiden", "retrieved_at": "2026-01-01T00:00:00Z",
        "content": {"type": "document", "title": "Depot", "source": {"type": "text", "media_type": "text/plain", "data": "{}"}},
    },
    "code_execution_tool_result": {"type": "code_execution_result", "stdout": "{}", "stderr": "", "return_code": 0, "content": []},
    "bash_code_execution_tool_result": {
        "type": "bash_code_execution_result", "stdout": "", "stderr": "{}", "return_code": 1,
        "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
    },
    "text_editor_code_execution_tool_result": {
        "type": "text_editor_code_execution_view_result", "content": "{}", "file_type": "text", "num_lines": 1, "start_line": 1, "total_lines": 1,
    },
}  # fmt: skip
"""Results of Messages in words, by the type of their block."""


def filled(value: Any, text: str) -> Any:
    """A copy of a result with a text at its place."""
    if isinstance(value, str):
        return text if value == "{}" else value
    if isinstance(value, Mapping):
        return {name: filled(inner, text) for name, inner in value.items()}
    return [filled(inner, text) for inner in value] if isinstance(value, list) else value


def items(kind: str, text: str, number: int = 1) -> list[dict[str, Any]]:
    """A tool's item of Responses, as the library gives it."""
    given = {"type": kind, "id": f"{kind}_{number}", **filled(READ_ITEMS[kind], text)}
    (item,) = responses.Response.model_construct(output=[]).output or [None]
    built = openai._models.construct_type(value=given, type_=responses.ResponseOutputItem)
    return [built.to_dict()]
