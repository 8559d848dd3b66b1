"""Messages of the user in which it is known what the user says, and what an application writes around it.

A fold works on `as_said`. The members of a message are copied when it is shortened, so what was split is only used for the same content.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from gateway.context.read import pasted
from gateway.context.read.as_calls import SENT, SPLIT, viewed
from gateway.context.read.envelopes import LEARNED_FROM, Envelope, envelope_of, pieces_in, pieces_of_answer
from gateway.context.read.line import head_and_tail
from gateway.context.read.program_messages import Piece
from gateway.wire.facts import facts_of
from gateway.wire.message import Message, text_of

MOST_TIMES: Final = 3
"""Messages in which a row around the user's words is read. A profile comes again in every message."""


class Split(NamedTuple):
    """The content of a message, split into what its speaker says and what is around it."""

    envelope: Envelope | None
    """The envelope of the user's messages; None for an answer."""
    content: Any
    pieces: tuple[Piece, ...]
    """Empty if nothing of it is known to be said. What is around the user's words is without rows that `MOST_TIMES` earlier messages have."""


def as_said(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages that are split where a program wrote around what is said; the same messages if there are none.

    The user's are split by the envelope of their application, and answers in JSON by their members.
    """
    of_user = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    envelope = envelope_of([head_and_tail(text_of(messages[index])) for index in of_user[:LEARNED_FROM]])
    found: list[Message] | None = None
    seen: Counter[str] = Counter()
    for index, message in enumerate(messages):
        split = _split_of(message, envelope, seen)
        if split is not None:
            found = found or list(messages)
            found[index] = _viewed(message, split)
    return found or messages


def parts_of(message: Message) -> list[pasted.Part]:
    """Return the parts of a message's text: what its speaker says, and what is around it or pasted."""
    pieces = _pieces_of(message)
    return pasted.parts_of_pieces(pieces) if pieces else pasted.parts_of(head_and_tail(text_of(message)))


def said_in(message: Message) -> str:
    """Return what the user says in a message, without what is around it or pasted."""
    pieces = _pieces_of(message)
    said = pasted.own_words_of(pasted.parts_of_pieces(pieces)) if pieces else ""
    return said or pasted.own_words(head_and_tail(text_of(message)))


def _split_of(message: Message, envelope: Envelope | None, seen: Counter[str]) -> Split | None:
    """Return how a message is split; None if it is not. ``seen`` has the rows around the user's words so far."""
    role = message.get("role")
    if role == "assistant" and SENT not in message:
        text = text_of(message)
        return Split(None, message.get("content"), tuple(pieces_of_answer(text))) if text[:1] == "{" else None
    if role != "user" or envelope is None:
        return None
    known = _known(message)
    if known is None or known.envelope != envelope:
        pieces = pieces_in(head_and_tail(text_of(message)), envelope)
        known = Split(envelope, message.get("content"), tuple([_without(piece, seen) for piece in pieces]))
    seen.update([row for piece in known.pieces if not piece.is_said for row in piece.text.split("\n")])
    return known


def _known(message: Message) -> Split | None:
    view = facts_of(message).view
    return None if view is None else view.get(SPLIT)


def _without(piece: Piece, seen: Counter[str]) -> Piece:
    """Return a piece without the rows that were seen, unless it is said."""
    return (
        piece
        if piece.is_said
        else Piece("\n".join([row for row in piece.text.split("\n") if seen[row] < MOST_TIMES]), False)
    )


def _viewed(message: Message, split: Split) -> Message:
    if _known(message) is not split:
        facts_of(message).view = None
    return viewed(message, {SPLIT: split})


def _pieces_of(message: Message) -> tuple[Piece, ...]:
    split: Split | None = message.get(SPLIT)
    return split.pieces if split is not None and split.content is message.get("content") else ()
