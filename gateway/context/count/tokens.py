"""The token count of a request: the cost of each message, and of everything that is billed besides messages.

Costs that depend on other messages (several calls wrapped into one, reasoning that a template drops) are in
`cross_message_tokens`, so a message costs the same at every position.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Final, Literal

import msgspec

from gateway.context.count import media
from gateway.context.count.families import Undercount, family_of
from gateway.context.count.fixed_cost import fixed_cost
from gateway.context.count.message_cost import counter, reasoning_texts, scaled, text_counter
from gateway.wire.format import Conversation
from gateway.wire.memory import Memory
from gateway.wire.message import Message, media_parts, texts, tool_calls

Basis = Literal["exact", "anchor", "estimate"]


ANCHOR_ERROR: Final = 0.002
"""Relative error of a bill as the count of the messages that it was for. Chosen: only what a template writes at the end of a request is
not counted again."""
LEARNED_ERROR: Final = 0.05
"""Relative error of a count that was corrected by an earlier bill."""


class TokenCount(msgspec.Struct, frozen=True):
    """The token count of a request and its reliability."""

    messages: int
    fixed: int
    """Tools, schema, preambles: everything outside the messages."""
    basis: Basis
    error: float
    """The largest amount by which the truth may exceed ``total``, as a share of it."""
    has_upper_bounds: bool = False
    """Whether media were counted by an upper bound: then a bill for this request teaches nothing."""
    undercount: Undercount | None = None
    """How much too low an exact count's parts may be, where it is known; None: ``error``."""

    @property
    def total(self) -> int:
        return self.messages + self.fixed


class Anchor(msgspec.Struct, frozen=True):
    """The billed tokens of a conversation's first messages, including everything billed besides them."""

    covered: int
    """The number of these messages."""
    billed: int
    fixed: int
    """Our count of tools, schema and frame in that request; later changes are added."""


def count_request(
    conversation: Conversation, family: str, images: str = "", ratio: float = 1.0, anchor: Anchor | None = None
) -> TokenCount:
    """Count a whole request by the best method: the earlier bill of this conversation, else vocabulary and ratio."""
    row = family_of(family)
    memory = conversation.memory
    fixed = ceil(fixed_cost(conversation.body, family, memory) * ratio)
    cost = scaled(counter(family, images, memory), ratio, memory).message
    bounded = has_upper_bounds(conversation.messages)
    if anchor is not None and 0 < anchor.covered <= len(conversation.messages):
        new = sum(map(cost, conversation.messages[anchor.covered :]))
        total = max(anchor.billed + fixed - anchor.fixed + new, 1)
        error = ANCHOR_ERROR + row.error * new / total
        return TokenCount(max(total - fixed, 0), fixed, "anchor", error, bounded)
    messages = sum(map(cost, conversation.messages)) + cross_message_tokens(conversation.messages, family, memory)
    sure = row.exact and ratio == 1.0 and not bounded
    error = row.error if ratio == 1.0 else min(row.error, LEARNED_ERROR)
    # No bill of a Responses or Messages request was at hand, so their undercount is not known.
    undercount = row.undercount if sure and conversation.format.name == "chat" else None
    return TokenCount(messages, fixed, "exact" if sure else "estimate", error, bounded, undercount)


def cross_message_tokens(messages: Sequence[Message], family: str, memory: Memory | None = None) -> int:
    """Count the tokens that messages cost only together, in addition to their sum.

    Templates that drop the reasoning of earlier turns keep that of the current turn. OpenAI's backend writes the
    results of parallel calls as ASCII JSON: each letter beyond ASCII becomes an escape of some four tokens
    (https://community.openai.com/t/massive-token-overestimation-in-multiple-tool-calls-due-to-internal-unicode-escaping/1375117).
    """
    row = family_of(family)
    extra = 0
    if not row.reads_thinking:
        text = text_counter(row, memory or Memory())
        extra += sum(text(part) for message in _current_turn(messages) for part in reasoning_texts(message))
    if row.parallel is not None:
        extra += sum(
            _escape_cost(value) for message in _parallel_results(messages) for value in texts(message.get("content"))
        )
    return extra


def _current_turn(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages after the last user message, newest first."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return
        yield message


def _parallel_results(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the results of calls that one message made in parallel."""
    calls: set[str] = set()
    for message in messages:
        made = message.get("tool_calls")
        if made:
            if isinstance(made, list) and len(made) > 1:
                calls.update(call["id"] for call in tool_calls(message) if isinstance(call.get("id"), str))
        elif calls and message.get("role") == "tool" and str(message.get("tool_call_id")) in calls:
            yield message


def _escape_cost(value: str) -> int:
    """Return about how many tokens a text costs more when its letters beyond ASCII are escaped."""
    return 0 if value.isascii() else 3 * (len(value) - len(value.encode("ascii", "ignore")))


def has_upper_bounds(messages: Iterable[Message]) -> bool:
    """Return whether the messages contain something that can only be counted by an upper bound."""
    return any(
        media.is_upper_bound(part)
        for message in messages
        if type(message.get("content")) is list
        for part in media_parts(message)
    )


def margin(count: TokenCount, window: int, share: float) -> int:
    """Return tokens to keep free because a count may be too low: its own error; for an estimate at least ``share`` of
    the window.

    A reliable count keeps less than ``share`` free. A share of 0 keeps nothing free.
    """
    if share <= 0:
        return 0
    if count.basis == "exact" and count.undercount is not None:
        missing = count.undercount.messages * window + count.undercount.fixed * count.fixed
        return ceil(min(missing, share * window))
    kept_free = max(count.error, share) if count.basis == "estimate" else min(count.error, share)
    return ceil(kept_free * window)
