"""Model lists state which model stands behind a name; what states none, or nonsense, states none."""

from typing import Any

import orjson
import pytest

from providers.model_list import ANY_MODEL
from providers.origins import LONGEST_NAME, Origin, read_origins

QWEN = Origin("Qwen/Qwen3-8B")
LLAMA = Origin("/models/some.gguf", 128_256)


@pytest.mark.parametrize(
    ("body", "origins"),
    [
        ({"data": [{"id": "assistant", "owned_by": "vllm", "root": "Qwen/Qwen3-8B", "parent": None}]}, {"assistant": QWEN}),
        (
            {"data": [{"id": "base", "root": "Qwen/Qwen3-8B"}, {"id": "sql", "root": "/lora/sql", "parent": "base"}]},
            {"base": QWEN, "sql": QWEN},
        ),
        ({"data": [{"id": "sql", "root": "/lora/sql", "parent": "Qwen/Qwen3-8B"}]}, {"sql": QWEN}),
        (
            {"data": [{"id": "/models/some.gguf", "owned_by": "llamacpp", "meta": {"n_vocab": 128_256}}]},
            {"/models/some.gguf": LLAMA, ANY_MODEL: LLAMA},
        ),
        (
            {"data": [{"id": "gpt-4o", "owned_by": "llamacpp", "meta": {"n_vocab": 32_000}}]},
            {"gpt-4o": Origin("", 32_000), ANY_MODEL: Origin("", 32_000)},
        ),
        (
            {"models": [{"name": "mine:latest", "model": "mine:latest", "details": {"family": "qwen3"}}]},
            {"mine:latest": Origin("qwen3"), "mine": Origin("qwen3")},
        ),
        ({"data": [{"id": "gpt-4o", "object": "model", "owned_by": "openai"}]}, {}),
        ({"data": [{"id": "m", "root": 7}, {"root": "x"}, {"id": "n", "details": {"family": []}}, 3]}, {}),
        ({"data": [{"id": "m", "owned_by": "llamacpp", "meta": {"n_vocab": -1}}, {"id": "n"}]}, {"m": Origin()}),
        ({"data": [{"id": "m", "root": "x" * 10_000}]}, {"m": Origin("x" * LONGEST_NAME)}),
        ({"error": {"message": "no"}}, {}),
        ("text", {}),
    ],
)  # fmt: skip
def test_a_list_states_the_models_behind_its_names(body: Any, origins: dict[str, Origin]) -> None:
    assert read_origins(orjson.dumps(body)) == origins


def test_what_is_no_list_states_nothing() -> None:
    assert read_origins(b"<html>") == {}
