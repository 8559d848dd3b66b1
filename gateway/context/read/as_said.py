"""Messages that are split into what their speaker says and what a program writes around it.

A fold works on `as_said`. When a message is shortened, the new one has all members of the old one, also its split. So a split is only used for the
content that it was made from.
"""

from collections.abc import Sequence
from sys import getsizeof
from typing import Any, Final, NamedTuple

from gateway.context.read import pasted
from gateway.context.read.line import head_and_tail
from gateway.context.read.program_messages import Piece
from gateway.context.read.prompt_template import LEARNED_FROM, PromptTemplate, pieces_in, pieces_of_answer, template_of
from gateway.context.read.view import SENT, SPLIT, viewed
from gateway.wire.derived import Interned, derived_of
from gateway.wire.memory import Memory
from gateway.wire.message import Message, text_of


class Split(NamedTuple):
    """The content of a message, split into what its speaker says and what is around it."""

    template: PromptTemplate | None
    """The template by which it was split; None for an answer."""
    content: Any
    whole: tuple[Piece, ...]
    """All of it; empty if nothing of it is known to be said."""
    pieces: tuple[Piece, ...]
    """The same without the rows around the user's words that an earlier message has, too: a profile comes again and again."""

    def bytes_of_pieces(self) -> int:
        """Return the bytes that the pieces take: many small ones take far more than their text."""
        return sum([getsizeof(piece) + getsizeof(piece.text) for piece in (*self.whole, *self.pieces)])


TEMPLATE_BYTES: Final = 1000
"""Approximate bytes of a remembered template."""


class _Seen(NamedTuple):
    """What was read of the messages so far."""

    rows: set[str]
    """The rows around the user's words."""
    pieces: dict[tuple[Piece, ...], tuple[Piece, ...]]
    """For each `Split.whole` its `Split.pieces`. So a message that comes again is split as the first time."""


def as_said(messages: Sequence[Message], memory: Memory | None = None) -> Sequence[Message]:
    """Return messages that are split where a program wrote around what is said; the same messages if there are none.

    The user's are split by the prompt template of their application, and answers in JSON by their members.
    """
    template = _template_of([message for message in messages if message.get("role") == "user"], memory)
    found: list[Message] | None = None
    seen = _Seen(set(), {})
    for index, message in enumerate(messages):
        split = _split_of(message, template, seen)
        if split is not None:
            found = found or list(messages)
            found[index] = viewed(message, {SPLIT: split}, split.bytes_of_pieces)
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


def _template_of(of_user: Sequence[Message], memory: Memory | None) -> PromptTemplate | None:
    """Return the template of the user's first messages, or the remembered one of the same messages; None if they have none."""
    first = of_user[: next((number for number in LEARNED_FROM if number <= len(of_user)), 0)]

    def learned() -> tuple[PromptTemplate | None]:
        return (template_of([head_and_tail(text_of(message)) for message in first]),)

    numbers = tuple([message.number for message in first if type(message) is Interned and message.number])
    if memory is None or len(numbers) < len(first):
        return learned()[0]
    return memory.get_or_make(("prompt template", numbers), learned, TEMPLATE_BYTES)[0]


def _split_of(message: Message, template: PromptTemplate | None, seen: _Seen) -> Split | None:
    """Return how a message is split; None if it is not. What is read of this message is added to what was ``seen``."""
    role, content, known = message.get("role"), message.get("content"), _known(message)
    if role == "assistant" and SENT not in message:
        return known or _split_answer(message)
    if role != "user" or template is None:
        return None
    whole = known.whole if known is not None and known.template == template else _whole(message, template)
    pieces = seen.pieces.get(whole)
    if pieces is None:
        pieces = seen.pieces[whole] = tuple([_without_seen(piece, seen.rows) for piece in whole])
    return Split(template, content, whole, pieces)


def _split_answer(message: Message) -> Split | None:
    text = text_of(message)
    pieces = tuple(pieces_of_answer(text)) if text[:1] == "{" else ()
    return Split(None, message.get("content"), pieces, pieces) if pieces else None


def _known(message: Message) -> Split | None:
    """Return the split that is remembered of a message. It may be of another conversation, in which other rows came before: then only its
    `whole` is right."""
    view = derived_of(message).view
    return None if view is None else view.get(SPLIT)


def _whole(message: Message, template: PromptTemplate) -> tuple[Piece, ...]:
    return tuple(pieces_in(head_and_tail(text_of(message)), template))


def _without_seen(piece: Piece, seen: set[str]) -> Piece:
    """Return a piece without the rows that were ``seen``, and add its other rows to them. A piece that is said is returned as it is."""
    if piece.is_said:
        return piece
    rows = piece.text.split("\n")
    left = [row for row in rows if row not in seen]
    seen.update(left)
    return piece if len(left) == len(rows) else Piece("\n".join(left), False)


def _pieces_of(message: Message) -> tuple[Piece, ...]:
    split: Split | None = message.get(SPLIT)
    return split.pieces if split is not None and split.content is message.get("content") else ()
