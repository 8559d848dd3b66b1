"""A conversation's identity: chained hashes of its messages, and the scope that keeps one caller's memory from another's.

There is no session id: whoever sends the same prefix with the same credentials continues the same conversation. An
edit, a branch or a client's own compaction changes every hash from there on, so nothing stale is ever found.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from gateway.wire.chat import Message, canonical, once

DIGEST_BYTES = 16
"""128 bits: two conversations never meet by accident, and a caller can only meet within its own scope."""


def chain(messages: Sequence[Message], scope: bytes) -> list[str]:
    """Hash the conversation after each message: equal up to there, equal hash; item ``i`` covers ``i + 1`` messages.

    Equal means equal in canonical form: key order, white space in tool arguments and text parts or a string make no
    difference. The position is part of the hash, so five identical messages have five hashes.
    """
    running = blake2b(scope, digest_size=DIGEST_BYTES, person=b"turnfold-chain")
    hashes: list[str] = []
    for message in messages:
        # By the message, not the conversation: one that grows is hashed only where it is new.
        running.update(once(message, chain, _digest))
        hashes.append(running.copy().hexdigest())
    return hashes


def conversation(scope: str, model: str, messages: Sequence[Message]) -> list[str]:
    """Name a conversation after each of its messages, for one caller and one model. Hashes all of it: ask once a request."""
    return chain(messages, f"{scope}\n{model}".encode())


def key_hash(credentials: Iterable[str]) -> str:
    """Hash a caller's credentials into the name under which operators see the caller and `forget` finds it.

    For a single API key it is what ``printf %s "$KEY" | b2sum -l 128`` prints, so that it can be computed anywhere. The scheme
    in front of a key (``Bearer``) is left out. Callers without credentials share one name.
    """
    keys = [_bare(credential) for credential in credentials]
    return blake2b(
        "\n".join(key for key in keys if key).encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES
    ).hexdigest()


def scope(credentials: Iterable[str], upstream: str) -> str:
    """Name whose memory this is: the caller's key hash, a dot, and a short hash of the upstream's name.

    Two keys never share a scope, nor do two upstreams under one key. Everything of a caller starts with its key hash.
    """
    return f"{key_hash(credentials)}.{blake2b(upstream.encode(), digest_size=8).hexdigest()}"


def _bare(credential: str) -> str:
    scheme, _, rest = credential.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" and rest.strip() else credential.strip()


def _digest(message: Message) -> bytes:
    return blake2b(_bytes_of(message), digest_size=DIGEST_BYTES, person=b"turnfold-message").digest()


def _bytes_of(message: Message) -> bytes:
    try:
        return canonical(message)
    except TypeError:
        # orjson reads JSON four times deeper than it writes it. Whoever nests like that still has an identity.
        return b"{" + b"".join(_flat(message)) + b"}"


def _flat(value: Any) -> Iterator[bytes]:
    """Spell a value out without recursion, each piece led by its length; keys in order."""
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
