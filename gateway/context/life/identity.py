"""A conversation's identity: chained hashes of its messages, and a scope that separates the memories of callers.

There is no session id: a request with the same prefix and the same credentials continues the same conversation. An
edit, a branch or a client's own compaction changes every later hash, so stale facts are never found.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from gateway.wire.derived import Interned, derived_of
from gateway.wire.message import OPENING_CHARACTERS, Message, canonical, canonical_pieces
from gateway.wire.piecewise import PIECE_BYTES

HASH_BYTES = 16
"""128 bits: accidental collisions are practically impossible, and a caller can only collide within its own scope."""

_KEY_HASH: Final = re.compile(f"[0-9a-f]{{{2 * HASH_BYTES}}}")

NAME_BYTES = 8
"""64 bits: readable, and among a billion conversations two share a name by accident with a chance of one in forty."""


def chain(messages: Sequence[Message], *owner: str) -> list[str]:
    """Return the name of a conversation after each of its messages: equal prefixes have equal names; item ``i`` covers ``i + 1`` messages.

    ``owner`` separates memories: a caller's scope, and the model if it matters. It reads every message: call it once per request.
    Equal means equal in canonical form: key order, white space in tool arguments, and text parts instead of a string
    make no difference. The position is part of the hash, so five identical messages have five hashes.
    """
    running = blake2b("\n".join(owner).encode(), digest_size=HASH_BYTES, person=b"turnfold-chain")
    hashes: list[str] = []
    for message in messages:
        # Remembered for each message: a growing conversation is hashed only where it is new.
        running.update(hash_of(message))
        hashes.append(running.copy().hexdigest())
    return hashes


def hash_of(message: Message) -> bytes:
    """Return the hash of a message's canonical form, or the remembered one."""
    derived = derived_of(message)
    if derived.hash is None:
        derived.hash = _hash_of(message)
    return derived.hash


def name_of(caller: str, opening: str) -> str:
    """Return the short name of a conversation by how it begins, for operators: the same for all its requests.

    ``caller`` is a key hash. Two conversations of one caller that begin with the same message share a name.
    """
    text = f"{caller}\n{opening[:OPENING_CHARACTERS]}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=NAME_BYTES, person=b"turnfold-opens").hexdigest()


def key_hash(credentials: Iterable[str]) -> str:
    """Hash a caller's credentials into the name that operators see and that `forget` accepts.

    For a single API key it is the output of ``printf %s "$KEY" | b2sum -l 128``, so it can be computed anywhere. The
    scheme before a key (``Bearer``) is left out. Callers without credentials share one name.
    """
    keys = "\n".join(filter(None, map(_bare, credentials)))
    return blake2b(keys.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).hexdigest()


def is_key_hash(name: str) -> bool:
    """Return whether a text can be what `key_hash` returns, and no key itself or pattern."""
    return _KEY_HASH.fullmatch(name) is not None


def scope_of(key: str, upstream: str) -> str:
    """Return the scope of a caller's memory at an upstream: the caller's key hash, a dot, and a short hash of the upstream's name.

    Two keys never share a scope, nor do two upstreams under one key. Every scope of a caller starts with its key hash.
    """
    return f"{key}.{blake2b(upstream.encode(), digest_size=8).hexdigest()}"


def learner_of(scope: str, address: str) -> str:
    """Return the name under which a caller's refusals and bills are kept: its scope, and a short hash of its network address.

    An upstream may check no keys, so different callers may send the same key. Pass no address for a key that the gateway has checked.
    """
    return f"{scope}.{blake2b(address.encode(), digest_size=8).hexdigest()}"


def key_hash_in(scope: str) -> str:
    """Return the key hash with which a scope begins."""
    return scope.partition(".")[0]


def _bare(credential: str) -> str:
    whole = credential.strip()
    scheme, _, rest = whole.partition(" ")
    return rest.strip() or whole if scheme.lower() == "bearer" else whole


def _hash_of(message: Message) -> bytes:
    hashed = blake2b(digest_size=HASH_BYTES, person=b"turnfold-message")
    for piece in _bytes_of(message):
        hashed.update(piece)
    return hashed.digest()


def _bytes_of(message: Message) -> Iterable[bytes]:
    """Return the canonical form of a message, a long one in pieces."""
    try:
        return (canonical(message),) if _is_short(message) else tuple(canonical_pieces(message))
    except TypeError:
        # orjson reads JSON four times deeper than it writes it. Such deep messages still need an identity.
        return (b"{", *_flat(message), b"}")


def _is_short(message: Message) -> bool:
    """Return whether a message is written at once without delaying other threads."""
    if type(message) is Interned and message.raw:
        return len(message.raw) <= PIECE_BYTES
    left, waiting = PIECE_BYTES, [*message.values()]
    while waiting and left > 0:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        left -= len(value) if isinstance(value, str) else 1
    return left > 0


def _flat(value: Any) -> Iterator[bytes]:
    """Write a value without recursion, each piece after its length; keys in order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += [part for key in sorted(item, reverse=True) for part in (item[key], key)]
            text = f"object {len(item)}"
        elif isinstance(item, list):
            waiting += reversed(item)
            text = f"array {len(item)}"
        else:
            text = repr(item)
        encoded = text.encode("utf-8", "surrogatepass")
        yield b"%d:%b" % (len(encoded), encoded)
