"""The catalogue knows models under all the names they are sold by, and says nothing without a source."""

import fnmatch
import re

import pytest

from gateway.config import catalogue
from gateway.config.catalogue import Catalogue, spellings
from gateway.context.cache.rules import RULES
from gateway.context.count.families import FAMILIES
from gateway.context.count.media import _PRICES

KNOWN = catalogue.load()


@pytest.mark.parametrize("name", KNOWN.models)
def test_every_entry_is_whole(name: str) -> None:
    entry = KNOWN.models[name]

    assert entry.source.startswith("https://")
    assert entry.family in FAMILIES
    assert 1_000 < entry.context_window < 20_000_000
    assert entry.max_output_tokens is not None
    assert entry.max_output_tokens <= entry.context_window
    assert entry.max_input_tokens is None or entry.max_input_tokens < entry.context_window
    assert not entry.cache or entry.cache in RULES
    if entry.images:
        kind, *numbers = entry.images.split()
        assert (kind, len(numbers)) in _PRICES


def test_the_current_models_are_known() -> None:
    assert len(KNOWN.models) > 150


def test_every_entry_can_be_found() -> None:
    """No glob is hidden by another that determines more."""
    for pattern in KNOWN.models:
        name = (
            re.sub(r"\[[^]]*\]", lambda found: found[0][1], pattern)
            .replace("*", "1" if pattern.startswith("claude-*") else "")
            .replace("?", "2")
        )
        found = KNOWN.find(name)
        assert found is not None
        assert found.name == pattern or fnmatch.fnmatchcase(name, found.name.lower())


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("gpt-4o", "gpt-4o*"),
        ("gpt-4o-2024-08-06", "gpt-4o*"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("openai/gpt-4o-mini", "gpt-4o-mini*"),
        ("GPT-4.1-Nano", "gpt-4.1-nano*"),
        ("gpt-4-0613", "gpt-4-0*"),
        ("gpt-4-1106-preview", "gpt-4-*-preview"),
        ("gpt-35-turbo", "gpt-35-turbo*"),
        ("gpt-5.2-chat-latest", "gpt-5*-chat*"),
        ("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini*"),
        ("gpt-5.6-sol", "gpt-5.[6789]*"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss*"),
        ("gpt-oss:20b", "gpt-oss*"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4[.-]5*"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4*"),
        ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3[.-]5-*"),
        ("anthropic.claude-v2", "claude-v2*"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0",
            "claude-sonnet-4*",
        ),
        ("anthropic/claude-3.7-sonnet:thinking", "claude-3[.-]7-*"),
        ("databricks-claude-sonnet-4", "claude-sonnet-4*"),
        ("claude-opus-5-5", "claude-*-5[.-][125]"),
        ("models/gemini-2.5-pro", "gemini-2.5-*"),
        ("google/gemini-2.0-flash-exp:free", "google/gemini-2*"),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "llama-3.[123]*"),
        ("meta-llama/llama-4-scout-17b-16e-instruct", "meta-llama/llama-4-scout-17b-16e-instruct"),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", "llama4-maverick*"),
        ("llama3.1:8b-instruct-q4_K_M", "llama3.[123]*"),
        ("accounts/fireworks/models/deepseek-v3p1", "deepseek-v3*"),
        ("deepseek-r1-distill-llama-70b", "deepseek-r1-distill-llama*"),
        ("qwen/qwen3-30b-a3b-instruct-2507", "qwen3-*-2507*"),
        ("zai-glm-4.7", "glm-4.[67]*"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "*mixtral-8x7b*"),
        ("us.amazon.nova-2-lite-v1:0", "nova-2-*"),
    ],
)
def test_a_model_is_known_by_the_names_vendors_give_it(name: str, entry: str) -> None:
    found = KNOWN.find(name)

    assert found is not None
    assert found.name == entry


@pytest.mark.parametrize(
    "name", ["", "my-own-finetune", "llama", "gpt", "/", ":latest", "@", "claude", "*", "[", "a" * 10_000, "ft:gpt-4o"]
)
def test_an_unknown_model_is_unknown(name: str) -> None:
    found = KNOWN.find(name)

    assert found is None or fnmatch.fnmatchcase(spellings(name)[-1], found.name)


def test_names_are_remembered_within_bounds() -> None:
    for n in range(catalogue.KEPT_NAMES + 10):
        KNOWN.find(f"model-{n}")

    assert len(KNOWN.found) <= catalogue.KEPT_NAMES


def test_where_the_prompt_is_limited_the_window_is_no_larger_than_prompt_and_answer() -> None:
    gpt_5 = KNOWN.find("gpt-5")
    gpt_4o = KNOWN.find("gpt-4o")
    assert gpt_5
    assert gpt_4o

    assert gpt_5.window_for(4096) == 272_000 + 4096
    assert gpt_5.window_for(200_000) == 400_000
    assert gpt_4o.window_for(4096) == 128_000


def test_a_name_is_spelled_with_less_and_less_around_it() -> None:
    assert spellings("us.anthropic.claude-sonnet-4-20250514-v1:0") == [
        "us.anthropic.claude-sonnet-4-20250514-v1:0",
        "anthropic.claude-sonnet-4-20250514-v1:0",
        "claude-sonnet-4-20250514-v1:0",
        "claude-sonnet-4-20250514-v1",
        "claude-sonnet-4-20250514",
        "claude-sonnet-4",
    ]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("gpt-4o-mini", "openai"),
        ("gpt-4.1", "openai-4.1"),
        ("gpt-5", "openai-5"),
        ("gpt-5.5", "openai-5"),
        ("gpt-5.6-mini", "openai-5.6"),
        ("claude-sonnet-4-5", "anthropic"),
        ("deepseek-chat", "deepseek"),
        ("gpt-oss-120b", ""),
        ("qwen3-8b", ""),
    ],
)
def test_a_model_names_the_rule_of_its_vendors_cache_where_one_is_published(name: str, rule: str) -> None:
    entry = KNOWN.find(name)
    assert entry is not None
    assert entry.cache == rule


def test_a_name_compiles_only_the_globs_that_begin_as_it_does():
    """Names come from clients and are looked up on the event loop."""
    fnmatch._compile_pattern.cache_clear()
    Catalogue(KNOWN.models).find("unheard-of")
    assert fnmatch._compile_pattern.cache_info().misses < 10
