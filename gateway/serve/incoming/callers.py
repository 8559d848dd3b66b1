"""Who a caller is at an upstream: hashes of its credentials, for memory, quotas and learned facts."""

from functools import lru_cache
from typing import Final

import msgspec
from multidict import CIMultiDict

from gateway.config.exposure import SECRET_WORDS
from gateway.context.life import identity
from gateway.upstream.client import CALLER, Target
from providers.registry import PROVIDERS

CALLERS_KEPT: Final = 1024
"""Callers whose scope and learner are remembered, a number: a busy client sends the same credentials each time. Only hashes are kept."""
CREDENTIALS: Final = frozenset(name.lower() for each in PROVIDERS.values() for name in each.credential_headers) | {
    "cookie"
}
"""Every header with which some provider receives credentials."""


NOT_SECRET: Final = ("idempotency-key", "routing-key")
"""Ends of names of headers that name a request, so that it is not carried out twice (draft-ietf-httpapi-idempotency-key-header), or a
session (SGLang's router)."""


def is_credential(name: str) -> bool:
    """Return whether a header may carry a credential: a provider's, or one that its name shows to be one, such as ``x-goog-api-key``."""
    lower = name.lower()
    if lower.endswith(NOT_SECRET):
        return False
    return lower in CREDENTIALS or any(word in lower for word in SECRET_WORDS)


class Identity(msgspec.Struct, frozen=True):
    """The hashes of one caller at one upstream; see `gateway.context.life.identity`."""

    key: str
    """The hash of its credentials as this upstream reads them."""
    scope: str
    """The scope of its memory: the credentials and the upstream."""
    learner: str
    """The caller as learned facts name it: its refusals and bills at this upstream count for this caller alone."""


NOBODY: Final = Identity("", "", "")
"""The caller of what no client asked for. Nothing is learned from it."""


def identity_of(target: Target, headers: CIMultiDict[str], address: str) -> Identity:
    """Return all hashes of a caller, with its credentials hashed once."""
    key = identity.key_hash(_credentials(target, headers))
    return _identity_under(key, target.name, "" if CALLER in headers else address)


@lru_cache(maxsize=CALLERS_KEPT)
def _identity_under(key: str, upstream: str, address: str) -> Identity:
    scope = identity.scope_of(key, upstream)
    return Identity(key, scope, identity.learner_of(scope, address))


def _credentials(target: Target, headers: CIMultiDict[str]) -> list[str]:
    """Return the client key of the caller, where the gateway asks for one; else its credentials as this upstream reads them."""
    if CALLER in headers:
        return [headers[CALLER]]
    return [headers[name] for name in target.key_headers if name in headers]
