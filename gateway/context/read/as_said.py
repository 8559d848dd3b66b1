"""Messages of the user in which it is known what the user says, and what an application writes around it.

A fold works on `as_said`. The members of a message are copied when it is shortened, so what was split is only used for the same content.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from gateway.context.read import pasted
from gateway.context.read.as_calls import SPLIT, viewed
from gateway.context.read.envelopes import LEARNED_FROM, Envelope, envelope_of, pieces_in
from gateway.context.read.line import head_and_tail
from gateway.context.read.program_messages import Piece
from gateway.wire.facts import MessageFacts, facts_of
from gateway.wire.message import Message, text_of


class Split(NamedTuple):
    """The content of a message, split by an envelope."""

    envelope: Envelope
    content: Any
    pieces: tuple[Piece, ...]
    """Empty if nothing of it is known to be the user's."""


def as_said(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages in which the user's are split by the envelope of their application; the same messages if they have none."""
    of_user = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    envelope = envelope_of([head_and_tail(text_of(messages[index])) for index in of_user[:LEARNED_FROM]])
    if envelope is None:
        return messages
    found = list(messages)
    for index in of_user:
        found[index] = _split(messages[index], envelope)
    return found


def parts_of(message: Message) -> list[pasted.Part]:
    """Return the parts of a message's text: what its speaker says, and what is around it or pasted."""
    pieces = _pieces_of(message)
    return pasted.parts_of_pieces(pieces) if pieces else pasted.parts_of(head_and_tail(text_of(message)))


def said_in(message: Message) -> str:
    """Return what the user says in a message, without what is around it or pasted."""
    pieces = _pieces_of(message)
    said = pasted.own_words_of(pasted.parts_of_pieces(pieces)) if pieces else ""
    return said or pasted.own_words(head_and_tail(text_of(message)))


def _split(message: Message, envelope: Envelope) -> Message:
    facts: MessageFacts[Any] = facts_of(message)
    known: Split | None = facts.view.get(SPLIT) if facts.view is not None else None
    if known is None or known.envelope != envelope:
        content = message.get("content")
        facts.view = None
        return viewed(
            message, {SPLIT: Split(envelope, content, tuple(pieces_in(head_and_tail(text_of(message)), envelope)))}
        )
    return viewed(message, {})


def _pieces_of(message: Message) -> tuple[Piece, ...]:
    split: Split | None = message.get(SPLIT)
    return split.pieces if split is not None and split.content is message.get("content") else ()
