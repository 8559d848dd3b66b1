"""Why the requests of a conversation are processed anew: the tokens behind the first difference to the request before, by cause.

No cache reads these tokens, even one that matches any prefix; what it charges plays no part.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from gateway.context import frames
from gateway.context.cache.marking import parts_of
from gateway.wire.message import dumps

Message = dict[str, Any]

NEW: Final = "new messages"
DIGEST: Final = "digest"
QUOTES: Final = "quotes"
CAUSES: Final = {
    "first": "the first request",
    NEW: "messages that the client added",
    QUOTES: "quotes behind questions",
    DIGEST: "the digest, after a cut",
    "again, cut moved": "messages of before, because the cut moved",
    "again, quotes changed": "messages of before, because quotes before them changed",
    "again, other": "messages of before, because one before them has another form",
    "other form": "messages of before in another form, such as cut results",
}
"""The columns of the table, and their meaning."""


class Piece(NamedTuple):
    """A part of a request: one text of one message, or its calls."""

    kind: str
    """``note``, ``quotes`` or ``said``."""
    role: str
    text: str


def causes_of(
    conversation: Sequence[Message],
    ends: Iterable[int],
    requests: Sequence[Sequence[Message]],
    count: Callable[[str], int],
) -> Counter[str]:
    """Return the tokens of all requests that were processed anew, by cause; ``ends`` tells how many messages each came with."""
    found: Counter[str] = Counter()
    before: list[Piece] = []
    known = 0
    for end, request in zip(ends, requests, strict=True):
        now = [piece for message in request for piece in pieces(message)]
        added = {piece.text for message in conversation[known:end] for piece in pieces(message)}
        found.update(_of_request(before, now, added, count))
        before, known = now, end
    return found


def pieces(message: Message) -> list[Piece]:
    """Return a message in parts, each frame of the gateway apart."""
    role = str(message.get("role"))
    texts = [str(part.get("text") or "") for part in parts_of(message)]
    found = [Piece(_kind(text), role, text) for text in texts]
    calls = message.get("tool_calls")
    return [*found, Piece("said", role, dumps(calls).decode())] if calls else found


def _kind(text: str) -> str:
    if frames.is_quotes(text):
        return "quotes"
    return "note" if text == frames.NOTICE or frames.is_frame(text) else "said"


def _of_request(
    before: Sequence[Piece], now: Sequence[Piece], added: set[str], count: Callable[[str], int]
) -> Counter[str]:
    if not before:
        return Counter({"first": sum(count(piece.text) for piece in now)})
    same = next((place for place, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), len(before))
    kinds = {pieces[same].kind for pieces in (before, now) if same < len(pieces)}
    why = "cut moved" if "note" in kinds else "quotes changed" if "quotes" in kinds else "other"
    stood = set(before)
    found: Counter[str] = Counter()
    for piece in now[same:]:
        found[_cause(piece, why, stands=piece in stood, added=piece.text in added)] += count(piece.text)
    return found


def _cause(piece: Piece, why: str, *, stands: bool, added: bool) -> str:
    if piece.kind != "said":
        return DIGEST if piece.kind == "note" else QUOTES
    if stands:
        return f"again, {why}"
    return NEW if added else "other form"
