"""Every provider is found by its name and calls the URL its documentation names."""

import pytest

from providers.record import Endpoint
from providers.registry import PROVIDERS, find

CHAT = "/chat/completions"

URLS = [
    ("openai", "https://api.openai.com/v1", {}, CHAT, "", "https://api.openai.com/v1/chat/completions"),
    ("openai", "https://api.openai.com/v1/", {}, "/models", "limit=2", "https://api.openai.com/v1/models?limit=2"),
    ("openai", "https://api.openai.com", {}, CHAT, "", "https://api.openai.com/v1/chat/completions"),
    ("vllm", "http://127.0.0.1:8000/", {}, CHAT, "", "http://127.0.0.1:8000/v1/chat/completions"),
    ("ollama", "http://127.0.0.1:11434/v1", {}, CHAT, "", "http://127.0.0.1:11434/v1/chat/completions"),
    ("generic", "https://api.perplexity.ai", {}, CHAT, "", "https://api.perplexity.ai/chat/completions"),
    ("generic", "https://h/a?key=1", {}, CHAT, "b=2", "https://h/a/chat/completions?key=1&b=2"),
    (
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        {},
        CHAT,
        "",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        CHAT,
        "",
        "https://res.openai.azure.com/openai/deployments/gpt%2F4o/chat/completions?api-version=2024-10-21",
    ),
    (
        "azure",
        "https://res.openai.azure.com/openai",
        {"deployment": "mine", "api_version": "2025-01-01-preview"},
        CHAT,
        "a=1",
        "https://res.openai.azure.com/openai/deployments/mine/chat/completions?a=1&api-version=2025-01-01-preview",
    ),
    (
        "azure",
        "https://res.openai.azure.com/openai/deployments/mine",
        {},
        CHAT,
        "api-version=2024-06-01",
        "https://res.openai.azure.com/openai/deployments/mine/chat/completions?api-version=2024-06-01",
    ),
    (
        "azure",
        "https://res.openai.azure.com/openai/v1",
        {},
        CHAT,
        "",
        "https://res.openai.azure.com/openai/v1/chat/completions",
    ),
    (
        "azure",
        "https://res.services.ai.azure.com/models",
        {"api_version": "2024-05-01-preview"},
        CHAT,
        "",
        "https://res.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        "/models",
        "",
        "https://res.openai.azure.com/openai/models?api-version=2024-10-21",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        "/responses/r/input_items",
        "",
        "https://res.openai.azure.com/openai/responses/r/input_items?api-version=2024-10-21",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        "/audio/speech",
        "",
        "https://res.openai.azure.com/openai/deployments/gpt%2F4o/audio/speech?api-version=2024-10-21",
    ),
    (
        "azure",
        "https://res.openai.azure.com/openai/v1",
        {},
        CHAT,
        "a=1&api-version=2024-10-21&b=2",
        "https://res.openai.azure.com/openai/v1/chat/completions?a=1&b=2",
    ),
    (
        "azure",
        "https://res.openai.azure.com/openai/v1",
        {},
        CHAT,
        "api-version=preview",
        "https://res.openai.azure.com/openai/v1/chat/completions?api-version=preview",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        "/realtime",
        "model=x&intent=transcription",
        "https://res.openai.azure.com/openai/realtime?intent=transcription&api-version=2024-10-21&deployment=gpt%2F4o",
    ),
    (
        "azure",
        "https://res.openai.azure.com?api-version=2025-04-01-preview",
        {"deployment": "mine"},
        "/realtime",
        "",
        "https://res.openai.azure.com/openai/realtime?api-version=2025-04-01-preview&deployment=mine",
    ),
    (
        "azure",
        "https://res.openai.azure.com/openai/v1",
        {},
        "/realtime",
        "model=x&api-version=2024-10-21",
        "https://res.openai.azure.com/openai/v1/realtime?model=x",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        "/embeddings/",
        "",
        "https://res.openai.azure.com/openai/deployments/gpt%2F4o/embeddings/?api-version=2024-10-21",
    ),
    (
        "azure",
        "https://res.openai.azure.com",
        {},
        "/images/variations",
        "",
        "https://res.openai.azure.com/openai/images/variations?api-version=2024-10-21",
    ),
]


@pytest.mark.parametrize(("name", "base", "options", "path", "query", "url"), URLS)
def test_a_url_is_base_path_and_query(
    name: str, base: str, options: dict[str, str], path: str, query: str, url: str
) -> None:
    assert find(name).locate(Endpoint(base, options=options), path, query, "gpt/4o") == url


@pytest.mark.parametrize(
    ("name", "key", "headers"),
    [
        ("openai", "sk-1", {"authorization": "Bearer sk-1"}),
        ("azure", "k", {"api-key": "k"}),
        ("azure", "eyJ0.x.y", {"authorization": "Bearer eyJ0.x.y"}),
        ("anthropic", "sk-ant-1", {"authorization": "Bearer sk-ant-1"}),
    ],
)
def test_a_key_travels_in_the_header_the_provider_reads(name: str, key: str, headers: dict[str, str]) -> None:
    assert find(name).authorize(key) == headers


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_every_provider_replaces_every_header_it_sets(name: str) -> None:
    provider = PROVIDERS[name]
    for key in ("k", "eyJ0.x.y"):
        assert set(provider.authorize(key)) <= set(provider.credential_headers)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("OpenAI", "openai"),
        ("llamacpp", "llama.cpp"),
        ("lm studio", "lmstudio"),
        ("openai-compatible", "generic"),
    ],
)
def test_a_provider_goes_by_several_names(name: str, row: str) -> None:
    assert find(name).name == row


@pytest.mark.parametrize(("name", "hint"), [("opnai", 'did you mean "openai"'), ("qqq", "known are openai, azure")])
def test_an_unknown_name_is_answered_with_a_near_one(name: str, hint: str) -> None:
    with pytest.raises(LookupError, match=hint):
        find(name)
