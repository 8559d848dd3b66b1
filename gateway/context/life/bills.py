"""A bill: whether the prompt tokens that an upstream bills cover everything that was sent to it.

A bill may leave out text that a template drops or a cache held. So a small bill means that the server has truncated the prompt only if
nothing innocent explains it. This module has no clock and no memory.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from gateway.context.count.counter import Counter
from gateway.context.life.refusal_numbers import SMALL_ERROR, SMALLEST_WINDOW
from gateway.wire.format import Conversation
from gateway.wire.message import RESULT_ROLES, Message, text_of

LEAST_TRUNCATED_BILL: Final = 256
"""Tokens. A smaller bill is no sign of truncation: no server has so small a window, but a cache or a mock may bill it."""
LOW_BILL_SHARE: Final = 0.8
"""Share of the tokens that were surely sent. A bill below it, less twice the count's error, leaves something out."""
LOW_GROWTH_SHARE: Final = 0.5
"""Share of the tokens by which a conversation surely grew. If its bill grew by less (less twice the count's error), the bill
leaves something out."""
LEAST_GROWN_TOKENS: Final = 128
"""Tokens. If a conversation grew by less, its bill proves nothing."""
LEAST_GROWN_DIVISOR: Final = 50
"""Divisor of the bill before: if a conversation grew by less than this part of it, its bill proves nothing either."""
EQUAL_SHARE: Final = 0.05
"""Share by which two equal sizes may differ, of different templates."""
EQUAL_SHARE_OF_NEWEST: Final = 0.25
"""The same if only the newest messages are compared. Chosen larger, because frames are a larger part of them."""
EQUAL_TOKENS: Final = 64
"""Tokens by which two equal sizes may differ besides."""
ANCHOR_FACTOR: Final = 2.0
"""Factor. A bill further than this from the best count is not used as an anchor: it may be for another text."""

ORDINARY_FIELDS: Final = frozenset(
    {
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens",
        "messages", "metadata", "min_p", "modalities", "model", "n", "parallel_tool_calls", "prediction", "presence_penalty",
        "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "repetition_penalty", "response_format",
        "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice",
        "tools", "top_k", "top_logprobs", "top_p", "user", "verbosity",
        # The Messages API's own.
        "cache_control", "inference_geo", "output_config", "output_format", "stop_sequences", "thinking",
        # The Responses API's own.
        "background", "include", "max_output_tokens", "max_tool_calls", "reasoning", "text",
    }
)  # fmt: skip
"""Fields that are known not to shorten a prompt, in all formats. Any other (``truncate_prompt_tokens``, ``transforms``,
``truncation``, ``context_management``) may cause truncation."""

BillVerdict = Literal["whole", "suspect", "unclear"]
"""``whole``: the bill covers everything that was sent. ``suspect``: the server must have truncated. ``unclear``: neither is certain."""


class LastRequest(msgspec.Struct, frozen=True):
    """Facts about a conversation from its last request. Sizes are tokens."""

    covered: int
    """The number of messages in the last request."""
    anchored: int = 0
    """The number of messages in the last request with a believed bill; 0 without one."""
    billed: int = 0
    """The tokens of that bill."""
    full: bool = False
    """Whether that bill agreed with our count of the whole request, including tool results."""
    suspicions: int = 0
    """The number of suspect bills since then."""


_SPOKEN: Final = frozenset({"system", "developer", "user", "assistant"})


class SentCount(msgspec.Struct, frozen=True, kw_only=True):
    """One sent attempt by our counts, in tokens. `lessons.Sent` adds where it was sent."""

    conversation: Conversation
    messages: Sequence[Message]
    counter: Counter
    """Uses the vocabulary alone."""
    counted: int
    """The whole request by the vocabulary alone: no learned ratio, no earlier bill."""
    prompt: int
    """The whole request by the best available count."""
    error: float
    """Relative error of ``counted``."""
    folded: bool
    has_upper_bounds: bool
    """Whether some part is only counted by an upper bound, or is outside the body."""

    @property
    def sure_share(self) -> float:
        """The share of a count that was surely sent: all but twice its error."""
        return 1 - max(2 * self.error, SMALL_ERROR)

    @property
    def least(self) -> int:
        """A lower bound that holds for every template: the texts of users, assistant and instructions, without frames."""
        return min(self.least_from(0, results=False), self.prompt)

    def least_from(self, start: int, *, results: bool) -> int:
        """Return a lower bound from message ``start`` on; tool ``results`` may be counted if the model is known to read them."""
        roles = _SPOKEN | RESULT_ROLES if results else _SPOKEN
        return sum(self.counter.text(text_of(m)) for m in self.messages[start:] if m.get("role") in roles)

    def cost_from(self, start: int) -> int:
        """Return our full count from message ``start`` on: a server whose cache has the messages before bills this."""
        return sum(map(self.counter.message, self.messages[start:]))


def judge(count: SentCount, billed: int, cached: int | None, before: LastRequest | None) -> BillVerdict:
    """Judge the bill of a request: ``billed`` tokens, and ``cached`` of them came from a cache. ``before`` is the last request of its
    conversation."""
    is_low = billed < LOW_BILL_SHARE * count.sure_share * count.least
    if not is_low and not has_stopped_growing(count, billed, before):
        return "whole" if count.prompt / ANCHOR_FACTOR <= billed <= count.prompt * ANCHOR_FACTOR else "unclear"
    has_innocent_explanation = (
        billed < LEAST_TRUNCATED_BILL
        or count.has_upper_bounds
        or not ORDINARY_FIELDS.issuperset(count.conversation.body)
        or (_are_equal(billed + (cached or 0), count.prompt, max(EQUAL_SHARE, count.error)) and bool(cached))
        or (before is not None and _are_equal(billed, count.cost_from(before.covered), EQUAL_SHARE_OF_NEWEST))
    )
    return "unclear" if has_innocent_explanation else "suspect"


def has_stopped_growing(count: SentCount, billed: int, before: LastRequest | None) -> bool:
    """Return whether a conversation has grown since its last believed bill while its bill has not."""
    if before is None or not before.anchored or count.folded:
        return False
    grown = count.least_from(before.anchored, results=before.full)
    if grown < max(LEAST_GROWN_TOKENS, before.billed // LEAST_GROWN_DIVISOR):
        return False
    return billed - before.billed < LOW_GROWTH_SHARE * count.sure_share * grown


def usual_window_for(tokens: int) -> int:
    """Return the smallest usual size of a window that holds so many tokens: a power of two, or one and a half times one."""
    size = SMALLEST_WINDOW
    while size < tokens:
        if size * 3 // 2 >= tokens:
            return size * 3 // 2
        size *= 2
    return size


def _are_equal(billed: int, counted: int, share: float) -> bool:
    return abs(billed - counted) <= share * counted + EQUAL_TOKENS
