"""The published rules of each provider's prompt cache, as data.

Prices are multiples of the price of one uncached input token. Sizes are tokens, lifetimes seconds. Each row names its
documentation page and the day it was read; where a page says nothing, the comment states the assumption.
"""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace


class Matching(StrEnum):
    """How a cache finds an entry."""

    PREFIX = "prefix"
    """The longest common prefix with any earlier request, in whole steps."""
    BOUNDARY = "boundary"
    """An entry is found only at the end of a message, and only where an entry was written."""
    MARKED = "marked"
    """Entries are written at marks that the client sets, and searched backwards from them."""


class CacheRule(msgspec.Struct, frozen=True):
    """What one kind of cache does with a request. The gateway reads prices, lifetime, marks and key; `benchmarks.cache` simulates all of it."""

    name: str
    matching: Matching
    least_prompt: int
    """Tokens. A shorter prompt is neither read nor written."""
    step: int
    """Tokens. The number of read tokens is a multiple of this."""
    read: float
    """Price of a token read from the cache."""
    written: float
    """Price of a token written to it; 1.0 where writing is free of charge."""
    lifetime_s: float
    """Seconds that an entry lives after it was last used."""
    written_long: float = 1.0
    """Price of a token written with the longer lifetime."""
    lifetime_long_s: float = 0.0
    marks: int = 0
    """Most marks in one request."""
    lookback: int = 0
    """Number of blocks before a mark that are searched for an older entry; 0 for all of them."""
    capacity: int = 0
    """Tokens that the cache holds; the least recently used are dropped first. 0 if it is unlimited."""
    takes_key: bool = False
    """Whether ``prompt_cache_key`` keeps a conversation at the server that has its entries."""
    tools_first: bool = True
    """Whether tools come before the system message. Most chat templates print them after it."""
    source: str = ""
    read_on: str = ""


_OPENAI: Final = "https://developers.openai.com/api/docs/guides/prompt-caching"
_ANTHROPIC: Final = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"

OPENAI: Final = CacheRule(
    "openai", Matching.PREFIX, least_prompt=1024, step=128, read=0.5, written=1.0, lifetime_s=300,
    takes_key=True, source=_OPENAI, read_on="2026-11-22",
)  # fmt: skip
"""gpt-4o and o1. Entries live 5 to 10 minutes: the shorter is assumed."""

OPENAI_QUARTER: Final = replace(OPENAI, name="openai-4.1", read=0.25)
"""gpt-4.1, o3 and o4-mini."""

OPENAI_TENTH: Final = replace(OPENAI, name="openai-5", read=0.1)
"""gpt-5 up to 5.5."""

OPENAI_BOUNDARY: Final = CacheRule(
    # Up to four entries are written a request, one of them at the newest user or tool message; the latest 80 are searched.
    "openai-5.6", Matching.BOUNDARY, least_prompt=1024, step=1, read=0.1, written=1.25, lifetime_s=1800, marks=4, lookback=80,
    takes_key=True, source=_OPENAI, read_on="2026-11-22",
)  # fmt: skip

ANTHROPIC: Final = CacheRule(
    # The smallest prompt is 1,024 tokens for most models, up to 4,096 for some; entries are searched 20 blocks back from each mark.
    "anthropic", Matching.MARKED, least_prompt=1024, step=1, read=0.1, written=1.25, lifetime_s=300, written_long=2.0,
    lifetime_long_s=3600, marks=4, lookback=20, source=_ANTHROPIC, read_on="2026-11-22",
)  # fmt: skip

GEMINI: Final = CacheRule(
    # 2,048 tokens for Flash, 4,096 for Pro: the larger is assumed. No lifetime is published; five minutes are assumed.
    "gemini", Matching.PREFIX, least_prompt=4096, step=1, read=0.1, written=1.0, lifetime_s=300,
    source="https://ai.google.dev/gemini-api/docs/caching", read_on="2026-11-22",
)  # fmt: skip

DEEPSEEK: Final = CacheRule(
    # Unused entries go "within hours to days": one hour is assumed.
    "deepseek", Matching.PREFIX, least_prompt=64, step=64, read=0.1, written=1.0, lifetime_s=3600,
    source="https://api-docs.deepseek.com/guides/kv_cache", read_on="2026-11-22",
)  # fmt: skip

MISTRAL: Final = CacheRule(
    # The discount is published, the step and lifetime are not: blocks of 64 and five minutes are assumed.
    "mistral", Matching.PREFIX, least_prompt=64, step=64, read=0.1, written=1.0, lifetime_s=300,
    source="https://docs.mistral.ai/", read_on="2026-11-22",
)  # fmt: skip

VLLM: Final = CacheRule(
    # Processing costs, not money: a token read from the cache is free. 16 tokens a block by default.
    "vllm", Matching.PREFIX, tools_first=False, least_prompt=16, step=16, read=0.0, written=1.0, lifetime_s=float("inf"), capacity=400_000,
    source="https://docs.vllm.ai/en/latest/design/prefix_caching/", read_on="2026-11-22",
)  # fmt: skip

SGLANG: Final = CacheRule(
    "sglang", Matching.PREFIX, tools_first=False, least_prompt=1, step=1, read=0.0, written=1.0, lifetime_s=float("inf"), capacity=400_000,
    source="https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html", read_on="2026-11-22",
)  # fmt: skip

LLAMA_CPP: Final = CacheRule(
    # One slot holds one prompt; the next request in it reads their common beginning.
    "llama.cpp", Matching.PREFIX, tools_first=False, least_prompt=1, step=1, read=0.0, written=1.0, lifetime_s=float("inf"), capacity=1,
    source="https://github.com/ggml-org/llama.cpp/tree/master/tools/server", read_on="2026-11-22",
)  # fmt: skip

RULES: Final = {
    rule.name: rule
    for rule in (
        OPENAI, OPENAI_QUARTER, OPENAI_TENTH, OPENAI_BOUNDARY, ANTHROPIC, GEMINI, DEEPSEEK, MISTRAL, VLLM, SGLANG, LLAMA_CPP
    )
}  # fmt: skip
"""All rules by name; ``cache`` in ``config/models.yaml`` names one."""
