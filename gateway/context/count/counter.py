"""A counter: the functions that count tokens for one model."""

from collections.abc import Callable

import msgspec

from gateway.wire.message import Message

CountText = Callable[[str], int]
"""Counts the tokens of a bare text."""


class Counter(msgspec.Struct, frozen=True):
    """The functions that count tokens for one model; both are pure and cached by content.

    ``message`` includes the per-message overhead of the template; ``text`` counts a bare text. A counter whose numbers
    move only in coarse steps is *stable*; only a stable counter decides where a cut is.
    """

    message: Callable[[Message], int]
    text: CountText
    exact: bool = False
    name: str = ""
    """Identifies the counter, so that its counts can be stored with a message; empty when they must not be stored."""
