"""Model lists tell their windows in many ways; what tells none, or nonsense, tells none."""

from typing import Any

import orjson
import pytest

from providers.windows import read_windows, running_list, running_windows

LISTS = [
    ({"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 8192}]}, {"m": 8192}),  # vLLM
    ({"data": [{"id": "gpt-4o", "object": "model", "owned_by": "openai"}]}, {}),
    (
        {"data": [{"id": "a/b", "context_length": 131072, "top_provider": {"context_length": 65536}}]},  # OpenRouter
        {"a/b": 65536},
    ),
    ({"data": [{"id": "a/b", "context_length": 131072, "top_provider": {"context_length": None}}]}, {"a/b": 131072}),
    ({"data": [{"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}}]}, {"m": 4096}),  # llama.cpp
    ({"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]}, {"m": 131072}),
    (
        {"data": [{"id": "m", "loaded_context_length": 4096, "max_context_length": 32768}]},  # LM Studio, /api/v0
        {"m": 4096},
    ),
    (
        {"models": [{"key": "m", "max_context_length": 32768, "loaded_instances": [{"config": {"context_length": 8192}}]}]},
        {"m": 8192},
    ),
    ({"models": [{"name": "llama3:8b", "model": "llama3:8b", "context_length": 4096}]}, {"llama3:8b": 4096}),  # Ollama
    ({"data": [{"id": "m", "context_window": 131072, "active": True}]}, {"m": 131072}),  # Groq
    ({"data": [{"id": "m", "max_context_length": 32768}]}, {"m": 32768}),  # Mistral
    ([{"id": "m", "type": "chat", "context_length": 32768}], {"m": 32768}),  # Together
    ({"models": [{"name": "models/gemini-2.5-pro", "inputTokenLimit": 1048576}]}, {"gemini-2.5-pro": 1048576}),
    ({"data": [{"id": "m", "capabilities": {"limits": {"max_context_window_tokens": 128000}}}]}, {"m": 128000}),
    ({"id": "m", "max_model_len": 4096}, {"m": 4096}),
    ({"data": [{"id": "m", "context_length": "32768"}]}, {"m": 32768}),
    ({"data": [{"id": "m", "context_length": True}, {"id": 3, "context_length": 5}, 7]}, {}),
    ({"data": [{"id": "m", "context_length": 0}, {"id": "n", "context_length": 10**12}]}, {}),
    ({"error": {"message": "no"}}, {}),
    ("text", {}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "windows"), LISTS)
def test_a_list_tells_its_windows(body: Any, windows: dict[str, int]) -> None:
    assert read_windows(orjson.dumps(body)) == windows


def test_what_is_no_list_tells_nothing() -> None:
    assert read_windows(b"<html>") == {}


ELSEWHERE = [
    ({"data": [{"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072}}]}, "/props"),
    ({"data": [{"id": "m.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131072, "n_ctx": 4096}}]}, None),
    ({"data": [{"id": "me/own", "owned_by": "me"}, {"id": "llama3", "owned_by": "library"}]}, "/api/ps"),
    ({"data": [{"id": "m", "owned_by": "organization_owner"}]}, "/api/v0/models"),
    ({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 4096}, {"id": "n", "owned_by": ["library"]}]}, None),
    ({"data": []}, None),
]


@pytest.mark.parametrize(("body", "path"), ELSEWHERE)
def test_a_list_shows_where_its_server_states_the_running_windows(body: Any, path: str | None) -> None:
    found = running_list(orjson.dumps(body))
    assert (found.path if found else None) == path


def test_a_loaded_model_of_ollama_is_found_without_its_tag() -> None:
    found = running_list(b'{"data": [{"id": "llama3:latest", "owned_by": "library"}]}')
    assert found is not None
    stated = (
        b'{"models": [{"name": "llama3:latest", "context_length": 4096}, {"name": "q:7b", "context_length": 8192}]}'
    )
    assert found.read(stated) == {"llama3": 4096, "llama3:latest": 4096, "q:7b": 8192}
    assert found.read(b"404 page not found") == {}


def test_an_adapter_runs_with_the_window_of_its_model() -> None:
    """vLLM states no window for a LoRA adapter, only the model that it belongs to."""
    listed = [
        {"id": "base", "owned_by": "vllm", "parent": None, "max_model_len": 4096},
        {"id": "sql", "owned_by": "vllm", "parent": "base", "max_model_len": None},
        {"id": "lost", "owned_by": "vllm", "parent": ["base"]},
    ]
    assert running_windows(orjson.dumps({"object": "list", "data": listed})) == {"base": 4096, "sql": 4096}
