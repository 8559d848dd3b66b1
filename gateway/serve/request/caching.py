"""What may be added to a request for its provider's prompt cache: marks and a key, where vendor and model are known to take
them."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from gateway.config.catalogue import CatalogueEntry
from gateway.context.cache.marking import BREAKPOINT_STYLE, CACHE_CONTROL_STYLE, NO_TERMS, CacheTerms, MarkStyle
from gateway.context.cache.rules import RULES, CacheRule, Matching
from gateway.context.cut.policy import Policy
from gateway.context.cut.units import Prices
from gateway.upstream.client import Target
from gateway.wire import cache_marks
from gateway.wire.format import Conversation, FormatName
from gateway.wire.message import PINNED_ROLES, text_of
from gateway.wire.raw_json import occurs

STYLES: Final[Mapping[tuple[Matching, FormatName], MarkStyle]] = {
    (Matching.BOUNDARY, "chat"): BREAKPOINT_STYLE,
    (Matching.BOUNDARY, "responses"): BREAKPOINT_STYLE,
    (Matching.MARKED, "messages"): CACHE_CONTROL_STYLE,
}
"""How marks are written, by the rule of a model's cache and the format of a request; others take none."""

VENDORS: Final[Mapping[str, frozenset[str]]] = {
    "prompt_cache_key": frozenset({"openai", "azure"}),
    BREAKPOINT_STYLE.member: frozenset({"openai", "azure"}),
    CACHE_CONTROL_STYLE.member: frozenset({"anthropic", "bedrock", "vertex"}),
}
"""The providers whose own service takes each member. Others may refuse a body with a member they do not know."""

HASHED_CHARACTERS: Final = 4000
"""Characters of each message that are hashed into a key. Chosen: conversations that begin alike for so long share a key."""


def terms_for(
    policy: Policy, catalogued: CatalogueEntry | None, target: Target, conversation: Conversation, scope: str
) -> CacheTerms:
    """Return what may be added to a request at a place: no marks where a client sets marks itself, and nothing where the
    upstream is not known to take it."""
    rule = RULES.get(catalogued.cache) if catalogued else None
    if rule is None or not target.vendor or (policy.cache_marks == policy.cache_key == "off"):
        return NO_TERMS
    key = _key(scope, conversation) if policy.cache_key == "auto" and _takes_key(target, rule, conversation) else ""
    style = None if policy.cache_marks == "off" else _style(target, rule, conversation)
    return CacheTerms(style, key, policy.cache_marks == "always" and bool(key or style))


def priced(policy: Policy, catalogued: CatalogueEntry | None, target: Target) -> Policy:
    """Return the policy with the prices of the vendor's cache, where the upstream is the vendor and they are known.

    They come from the catalogue and the configuration alone, so all replicas cut alike.
    """
    rule = RULES.get(catalogued.cache) if catalogued and target.vendor else None
    return replace(policy, prices=Prices(rule.written, rule.read)) if rule else policy


def marks_always(policy: Policy, catalogued: CatalogueEntry | None, target: Target) -> bool:
    """Return whether requests that fit get marks too, so that they are not sent unchanged."""
    return policy.cache_marks == "always" and target.vendor and bool(catalogued and catalogued.cache)


def _takes_key(target: Target, rule: CacheRule, conversation: Conversation) -> bool:
    provider = target.provider.name
    return rule.takes_key and provider in VENDORS["prompt_cache_key"] and conversation.format.name != "messages"


def _style(target: Target, rule: CacheRule, conversation: Conversation) -> MarkStyle | None:
    """Return how marks are written for an upstream; None if it takes none, or if the client sets marks itself."""
    style = STYLES.get((rule.matching, conversation.format.name))
    if style is None or target.provider.name not in VENDORS[style.member]:
        return None
    own = conversation.body if style is BREAKPOINT_STYLE else conversation.head
    if cache_marks.marks_outside_messages(own) or own.get("prompt_cache_options"):
        return None
    return None if occurs(b'"%b"' % style.member.encode(), conversation.raw) else style


def _key(scope: str, conversation: Conversation) -> str:
    """Return the ``prompt_cache_key`` of a conversation: a hash of the caller's scope and of the messages up to the first one
    that is not pinned."""
    hashed = blake2b(scope.encode(), digest_size=16, person=b"turnfold-cache")
    for message in conversation.messages:
        hashed.update(
            f"{message.get('role')}\n{text_of(message)[:HASHED_CHARACTERS]}\n".encode("utf-8", "surrogatepass")
        )
        if message.get("role") not in PINNED_ROLES:
            break
    return f"tf-{hashed.hexdigest()}"
