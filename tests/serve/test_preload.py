"""`server.preload`: vocabularies are loaded right after the start, and the process is ready once they are there."""

import threading

import pytest

from gateway.context.count import delay
from gateway.context.count import vocabularies as tokenizers
from gateway.serve.process import start_background_work
from gateway.state import garbage

MODELS = {"gpt-4o": {}, "mine": {"context_window": 4096, "tokenizer": "llama3"}, "deepseek-*": {}}


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "_LOADED", set())
    tokenizers._exact_count.cache_clear()


async def probe(running, path: str) -> tuple[int, bytes]:
    async with running.session.get(running.base_url.removesuffix("/v1") + path) as response:
        return response.status, await response.read()


@pytest.mark.parametrize("preload", [True, False])
async def test_the_models_that_are_named_are_loaded_beside_serving(gateway, standin, preload: bool) -> None:
    running = await gateway(standin, {"server": {"preload": preload}, "models": MODELS})

    start_background_work(running.inside.gateway)
    await running.settled()

    assert [tokenizers.loaded(name) for name in ("o200k_base", "llama3", "deepseek_v3")] == [preload, preload, False]


async def test_until_they_are_loaded_the_process_serves_but_is_not_ready(gateway, standin, monkeypatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(delay, "load_vocabulary", lambda vocabulary: go_on.wait(20))
    running = await gateway(standin, {"models": MODELS})

    start_background_work(running.inside.gateway)
    try:
        assert await probe(running, "/readyz") == (503, b'{"status":"loading"}')
        assert await probe(running, "/healthz") == (200, b'{"status":"ok"}')
        asked = await running.chat({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello."}]})
        assert asked.status == 200
    finally:
        go_on.set()
    await running.settled()

    assert await probe(running, "/readyz") == (200, b'{"status":"ready"}')


async def test_memory_that_loading_has_left_is_given_back(gateway, standin, monkeypatch) -> None:
    given: list[tuple[bool, str]] = []
    monkeypatch.setattr(
        garbage,
        "trimmer",
        lambda: lambda: given.append((running.inside.gateway.loading, threading.current_thread().name)),
    )
    running = await gateway(standin, {"server": {"preload": False}})
    start_background_work(running.inside.gateway)
    await running.settled()

    assert [name for loading, name in given if loading and name != "MainThread"] != []


async def test_a_vocabulary_that_cannot_be_loaded_leaves_the_process_ready(gateway, standin, monkeypatch) -> None:
    def broken(vocabulary: str) -> None:
        raise OSError(vocabulary)

    monkeypatch.setattr(delay, "load_vocabulary", broken)
    running = await gateway(standin, {"models": MODELS})

    start_background_work(running.inside.gateway)
    await running.settled()

    assert await probe(running, "/readyz") == (200, b'{"status":"ready"}')


def test_two_threads_that_need_a_vocabulary_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    both = threading.Barrier(2)

    class Package:
        """Stands for the package with the vocabularies: loading ends when another thread has had its turn."""

        def __getattr__(self, name: str) -> "Package":
            return self

        def from_pretrained(self, vocabulary: str) -> "Package":
            loads.append(vocabulary)
            threading.Event().wait(0.05)
            return self

        def special_tokens(self) -> dict[str, int]:
            return {"<end>": 0}

        def encode_ordinary(self, text: str) -> list[str]:
            return text.split()

        def encode_flat(self, text: str) -> bytes:
            return b"1234" * len(text.split())

    def needs_it() -> None:
        both.wait()
        assert tokenizers.count("two words", "o200k_base") == 2

    monkeypatch.setattr(tokenizers.importlib, "import_module", lambda name: Package())
    threads = [threading.Thread(target=needs_it) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokenizers._exact_count.cache_clear()

    assert loads == ["o200k_base"]
