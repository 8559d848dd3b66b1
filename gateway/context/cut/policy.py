"""The operator's rules for folding a model's requests."""

from typing import Literal

import msgspec

from gateway.context.cut.units import UNKNOWN_PRICES, Prices


class Policy(msgspec.Struct, frozen=True):
    """The part of ``fold:`` in the configuration that the core needs; shares are of the room, 0 to 1."""

    low_water: float = 0.6
    """Share of the free room that may be filled after old results were trimmed. If more is filled, units are folded: otherwise the
    next turns would soon fill the room again."""
    margin: float = 0.02
    """Share of the window kept free because a count may be too low. An exact count may use less."""
    max_turns: int | None = None
    """Limit of turns that stay verbatim, even if more fit."""
    tool_result_chars: int = 20_000
    """Characters that an old tool result keeps when it is first cut."""
    question: Literal["cut", "refuse"] = "cut"
    """Whether a current question that cannot fit is cut, or the refusal is passed on."""
    recall_share: float = 0.15
    """Share of the room for quotes of the folded part; 0: no quotes."""
    semantic: bool = False
    """Whether quotes are also found by meaning, with the vectors of the extra ``semantic``."""
    cache_marks: Literal["auto", "off", "always"] = "auto"
    """Whether requests get cache marks where the client sets none: folded ones, none, or all."""
    cache_key: Literal["auto", "off"] = "auto"
    """Whether they get a ``prompt_cache_key`` where the client sets none."""
    min_output: int = 1024
    """``max_tokens`` is never lowered below this many tokens."""
    prices: Prices = UNKNOWN_PRICES
    """The provider's prices of a prompt token, by its cache. Of two ways to make room, the cheaper one is taken."""
