"""`server.preload`: the first request waits for no vocabulary."""

import pytest

from gateway.context.count import vocabularies as tokenizers
from tests.e2e.scenes import upstream


@pytest.mark.parametrize("preload", [True, False])
async def test_the_models_that_are_named_are_loaded_before_anybody_asks(gateway, monkeypatch, preload: bool) -> None:
    monkeypatch.setattr(tokenizers, "_LOADED", set())
    tokenizers._encoder.cache_clear()
    models = {"gpt-4o": {}, "mine": {"context_window": 4096, "tokenizer": "llama3"}, "deepseek-*": {}}

    async with upstream() as standin:
        await gateway(standin, {"server": {"preload": preload}, "models": models})

    assert [tokenizers.loaded(name) for name in ("o200k_base", "llama3", "deepseek_v3")] == [preload, preload, False]
