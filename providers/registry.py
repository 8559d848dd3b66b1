"""The providers by their names in configurations."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from providers.anthropic import ANTHROPIC
from providers.azure import AZURE
from providers.cerebras import CEREBRAS
from providers.native import LLAMA_CPP, OLLAMA, SGLANG, TGI, VLLM, read_usage_of_ollama
from providers.openai import OPENAI, join
from providers.record import Provider

GENERIC: Final = replace(OPENAI, name="generic", locate=join)

ROWS: Final = (
    OPENAI,
    AZURE,
    replace(GENERIC, versioned=True),  # it may be Azure under another name
    # Self-hosted servers, which have nothing but /v1: a bare host is enough.
    replace(OPENAI, name="vllm", native=VLLM),
    replace(OPENAI, name="sglang", native=SGLANG),
    replace(OPENAI, name="tgi", native=TGI),
    replace(OPENAI, name="ollama", native=OLLAMA, read_usage=read_usage_of_ollama),
    replace(OPENAI, name="llama.cpp", native=LLAMA_CPP),
    replace(OPENAI, name="lmstudio"),
    replace(OPENAI, name="litellm"),
    # Services, each with its own path.
    replace(GENERIC, name="openrouter"),
    replace(GENERIC, name="groq"),
    replace(GENERIC, name="together"),
    replace(GENERIC, name="fireworks"),
    CEREBRAS,
    replace(GENERIC, name="deepseek"),
    replace(GENERIC, name="mistral"),
    replace(GENERIC, name="xai"),
    replace(GENERIC, name="gemini"),
    ANTHROPIC,
    replace(GENERIC, name="bedrock"),
    replace(GENERIC, name="vertex"),
)

ALIASES: Final = {
    "llamacpp": "llama.cpp",
    "llama-cpp": "llama.cpp",
    "lm studio": "lmstudio",
    "lm-studio": "lmstudio",
    "openai-compatible": "generic",
}

PROVIDERS: Final[Mapping[str, Provider]] = {row.name: row for row in ROWS} | {
    alias: next(row for row in ROWS if row.name == name) for alias, name in ALIASES.items()
}


def find(name: str) -> Provider:
    """Return a provider by its configured name; raise a LookupError that suggests the nearest name."""
    provider = PROVIDERS.get(name.lower())
    if provider is None:
        near = get_close_matches(name.lower(), PROVIDERS, 1)
        hint = f'; did you mean "{near[0]}"?' if near else f"; known are {', '.join(row.name for row in ROWS)}"
        raise LookupError(f'no provider "{name}"{hint}')
    return provider
