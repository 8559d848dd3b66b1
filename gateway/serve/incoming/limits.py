"""Limits of a request: the model's name, the number of messages and values, and the nesting."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from gateway.config.values import Server
from gateway.serve.incoming.errors import ClientError
from gateway.wire.format import Conversation

LONGEST_NAME: Final = 256
"""Bytes of a model's name. The longest real ones, ARNs of inference profiles, have 150."""
DOTS: Final = frozenset({".", ".."})
"""Names that are steps in a path: some upstreams have the model's name in theirs."""
SHORT_BODY: Final = 2**13
"""Bytes of a body up to which counting its brackets is quicker than walking through its values."""
COUNTED_AT_ONCE: Final = 2**14
"""Bytes in which signs are counted before the remaining bytes are checked again. Chosen: a few checks for half a megabyte."""
PIECE: Final = 2**20
"""Bytes inspected in one step, so that other threads wait only some milliseconds."""
_OPENING: Final = b"[{"
_CLOSING: Final = b"]}"
_NOT_STRUCTURE: Final = bytes(set(range(256)) - set(b"[]{},"))
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = [1 if byte in _OPENING else -1 if byte in _CLOSING else 0 for byte in range(256)]


def check_name(model: str) -> str:
    """Return the name of a model. Raises ClientError for a name that is too long, or that would change an upstream's path."""
    if model in DOTS:
        raise ClientError(400, "model: a name may not be a dot segment.", code="invalid_model")
    if len(model) > LONGEST_NAME or len(model.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        message = f"model: the name is longer than {LONGEST_NAME} bytes."
        raise ClientError(400, message, code="invalid_model")
    return model


def check_text(text: bytes, limits: Server) -> None:
    """Refuse a body that has too many values or nests too deep, before it is parsed: its values could take far more memory than
    its bytes. Raises ClientError.

    A value takes at least two bytes, so most bodies are too short to have too many values.
    """
    if surely_has_fewer_values(text, limits.max_values):
        return
    values = depth = deepest = 0
    for structure in _structures(text):
        brackets = structure.translate(None, _NOT_BRACKETS)
        values += len(structure) - sum(map(brackets.count, (b"]", b"}")))
        if values > limits.max_values:
            raise _too_much("JSON values", "max_values", limits.max_values)
        depths = accumulate(map(_STEP.__getitem__, brackets), initial=depth)
        deepest = max(deepest, max(depths))  # noqa: PLW3301  # unpacking would build a tuple of a million numbers
        depth += sum(map(_STEP.__getitem__, brackets))
        if deepest > limits.max_depth:
            raise _too_deep(limits)


def surely_has_fewer_values(text: bytes, most: int) -> bool:
    """Return whether a body surely has fewer than ``most`` values. In its first part the signs are counted, also those inside
    texts; the rest has at most one value for two bytes."""
    counted = 0
    for start in range(0, len(text), COUNTED_AT_ONCE):
        if counted + (len(text) - start) / 2 < most:
            return True
        piece = text[start : start + COUNTED_AT_ONCE]
        counted += sum(_count(sign, piece) for sign in (b",", b"[", b"{"))
        if counted >= most:
            return False
    return True


def _count(sign: bytes, text: bytes) -> int:
    """Return how often a byte occurs. `replace` finds it by memchr: in prose a tenth of the cost of `count` or `translate`."""
    return len(text) - len(text.replace(sign, b""))


def check_request(request: Conversation, limits: Server) -> None:
    """Raise ClientError for a request with too much nesting, too many messages or too long a name."""
    check_name(request.model)
    if request.message_count > limits.max_messages:
        raise _too_much("messages", "max_messages", limits.max_messages)
    if len(request.raw) <= SHORT_BODY and _count(b"[", request.raw) + _count(b"{", request.raw) <= limits.max_depth:
        return  # it could not nest too deep even if each bracket were inside the one before
    level: list[Any] = [request.head, *request.outline]
    for _ in range(limits.max_depth):
        level = [child for value in level for child in _children(value) if isinstance(child, (dict, list))]
        if not level:
            return
    raise _too_deep(limits)


def _children(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    """Return the values directly inside an object or a list."""
    return value.values() if isinstance(value, dict) else value


def _structures(text: bytes) -> Iterator[bytes]:
    """Yield the brackets and commas of a JSON text outside its strings, piece by piece."""
    inside = False
    start = 0
    while start < len(text):
        end = start + PIECE
        while text[end - 1 : end] == b"\\":  # an escape stays whole
            end += 1
        piece = text[start:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        start = end
        parts = piece.split(b'"')
        yield b"".join(parts[1 if inside else 0 :: 2]).translate(None, _NOT_STRUCTURE)
        inside ^= len(parts) % 2 == 0


def _too_much(kind: str, name: str, most: int) -> ClientError:
    return ClientError(400, f"The request has more {kind} than server.{name} ({most}).", code="request_too_complex")


def _too_deep(limits: Server) -> ClientError:
    message = f"The request nests lists and objects deeper than server.max_depth ({limits.max_depth})."
    return ClientError(400, message, code="request_too_complex")
