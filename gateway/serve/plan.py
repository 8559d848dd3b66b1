"""Where a request may go and what it must fit there, from settings, catalogue and learned facts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final, NamedTuple

from multidict import CIMultiDict

from gateway.config import Route, Settings, is_pattern
from gateway.config.catalogue import ModelFacts
from gateway.context.count import delay, families, fixed_cost, proof, tokens
from gateway.context.count.calibration import Calibration
from gateway.context.count.tokens import TokenCount
from gateway.context.life import identity, measuring
from gateway.context.life.evidence import Before
from gateway.context.life.identity import conversation
from gateway.context.life.ladder import Task
from gateway.context.life.lessons import ANCHORED
from gateway.context.life.measuring import Measurement
from gateway.context.life.states import Visit
from gateway.serve import caching
from gateway.serve.shared import Gateway, Setup
from gateway.state.facts import Owner
from gateway.state.pool import INLINE, LARGE
from gateway.upstream.client import CALLER, Target
from gateway.wire.format import Conversation, Edits
from gateway.wire.message import text_of
from providers.registry import PROVIDERS

# The source of a window that no name decided: the upstream's model list, or the configured default.
TOLD: Final = "upstream"
DEFAULT: Final = "default"
UNKNOWN: Final = frozenset({TOLD, DEFAULT})
# Relative error of a count when an upstream may give any model this name: the same as for an unknown model.
GUESSED_ERROR: Final = families.family_of("unknown").error
# Ratio. Such a dense tokenizer may make more tokens than bytes: then a size in bytes proves nothing.
DENSE: Final = 2.0
# Every header with which some provider receives credentials.
CREDENTIALS: Final = frozenset(name.lower() for each in PROVIDERS.values() for name in each.credential_headers) | {
    "cookie"
}


CALLERS_KEPT: Final = 1024
"""Callers whose scope and learner are remembered, a number: a busy client sends the same credentials each time. Only hashes are kept."""

Learner = Callable[[Target], str]
"""Returns the caller as an upstream's facts name it: `Identity.learner`."""


def preload(gateway: Gateway, settings: Settings) -> None:
    """Load the vocabularies of all models that are configured by name; 0.2 s and 40 MB each."""
    routes = [settings.route(name) for name in settings.models if not is_pattern(name)]
    delay.preload({family_of(route, gateway.catalogue.find(route.name)) for route in routes})


def family_of(route: Route, facts: ModelFacts | None) -> str:
    """Return the family whose vocabulary and rules count for a model."""
    if route.tokenizer != "auto":
        return route.tokenizer
    return facts.family if facts else "unknown"


class Place(NamedTuple):
    """One upstream and model that could answer a request, with its window."""

    route: Route
    target: Target
    facts: ModelFacts | None
    window: int
    configured: int
    """The window without anything learned from answers."""
    entry: str
    """The source of the window: a configured or catalogued name, or another source. Bounded, usable as a label."""
    caller: str = ""
    """The caller whose refusals and bills count here and who learns from this answer; empty for nobody."""

    @property
    def upstream(self) -> str:
        """The upstream's configured name."""
        return self.target.name

    @property
    def model(self) -> str:
        """The model's name at the upstream."""
        return self.route.name

    @property
    def owner(self) -> Owner:
        """The name of the facts that were learned here."""
        return self.target.name, self.route.name, self.caller

    @property
    def max_retries(self) -> int:
        """Calls after the first one that a refused request may take."""
        return self.route.max_retries

    @property
    def family(self) -> str:
        """The family whose vocabulary and rules count for the model."""
        return family_of(self.route, self.facts)

    @property
    def images(self) -> str:
        """The rule for the cost of its images."""
        return self.facts.images if self.facts else ""


def place_at(visit: Visit) -> Place:
    """Return a place with all its facts."""
    assert isinstance(visit.place, Place)
    return visit.place


def places(
    gateway: Gateway,
    setup: Setup,
    route: Route,
    request: Conversation,
    learner: Learner,
    *,
    key: str = "",
    session: str = "",
) -> list[Place]:
    """Return the places that may answer, in order: the model's own upstreams, then its fallbacks, each with its own
    window. ``key`` is the hash of the client's key where it decides which upstreams rest, ``session``
    the client's own name of the conversation."""
    conversation = session.encode("utf-8", "surrogatepass")
    if not conversation and len(route.choices) > 1:
        conversation = _conversation(request)
    own = [setup.targets[name] for name in gateway.balance.order(route.choices, conversation, key)]
    found = [place_of(gateway, setup, route, target, learner(target)) for target in own]
    for other in setup.settings.fallbacks(route):
        target = setup.targets[other.upstream]
        found.append(place_of(gateway, setup, other, target, learner(target)))
    return found


def larger(gateway: Gateway, setup: Setup, route: Route, learner: Learner) -> Iterator[Place]:
    """Return the places of ``on_overflow``."""
    for other in setup.settings.larger(route):
        target = setup.targets[gateway.balance.order(other.choices)[0]]
        yield place_of(gateway, setup, other, target, learner(target))


def place_of(gateway: Gateway, setup: Setup, route: Route, target: Target, caller: str = "") -> Place:
    """Return a model at an upstream as a place. A smaller window that the upstream's own refusals stated to this caller
    has precedence until it expires."""
    window, entry = window_at(gateway, setup, route, target)
    learned = gateway.learning.window((target.name, route.name, caller)) if caller else None
    facts = gateway.catalogue.find(route.name)
    return Place(route, target, facts, min(window, learned) if learned else window, window, entry, caller)


def window_at(gateway: Gateway, setup: Setup, route: Route, target: Target) -> tuple[int, str]:
    """Find the window of a model at an upstream, and its source: configured, stated by the running server, catalogued, listed,
    or the default, in this order."""
    lists = gateway.learning.lists
    if route.window is not None:
        return route.window, route.entry
    if running := lists.running(target.name, route.name):
        return running, TOLD
    if (facts := gateway.catalogue.find(route.name)) is not None:
        return facts.context_window, facts.name
    if told := lists.window(target.name, route.name):
        return told, TOLD
    return setup.settings.default_window, DEFAULT


def renamed(request: Conversation, model: str) -> bytes:
    """Return the body with another name for the model."""
    return request.format.encode(request, Edits(model=model))


def _conversation(request: Conversation) -> bytes:
    """Return the part of a conversation that stays the same in all turns; empty for a first request, which may go
    anywhere."""
    if not any(message.get("role") == "assistant" for message in request.messages):
        return b""
    opening = [text_of(message)[:1000] for message in request.messages[:3]]
    return "\n".join(opening).encode("utf-8", "surrogatepass")


class Identity(NamedTuple):
    """The hashes of one caller at one upstream; see `gateway.context.life.identity`."""

    key: str
    """The hash of its credentials as this upstream reads them."""
    scope: str
    """The scope of its memory: the credentials and the upstream."""
    learner: str
    """The caller whose refusals and bills at this upstream teach about each other, and about nobody else."""


def identity_of(target: Target, headers: CIMultiDict[str], address: str) -> Identity:
    """Return all hashes of a caller, with its credentials hashed once."""
    key = identity.key_hash(_credentials(target, headers))
    return _identity_under(key, target.name, "" if CALLER in headers else address)


@lru_cache(maxsize=CALLERS_KEPT)
def _identity_under(key: str, upstream: str, address: str) -> Identity:
    scope = identity.scope_under(key, upstream)
    return Identity(key, scope, identity.learner_under(scope, address))


def _credentials(target: Target, headers: CIMultiDict[str]) -> list[str]:
    """Return the client key of the caller, where the gateway asks for one; else its credentials as this upstream reads them."""
    if CALLER in headers:
        return [headers[CALLER]]
    return [headers[name] for name in target.provider.credential_headers if name in headers]


def guessed(place: Place) -> bool:
    """Return whether the family is derived from the model's name at an upstream where names prove nothing: ``gpt-4o``
    at llama.cpp.

    Services that sell a model under its own name are believed, and so is a tokenizer that the operator configured.
    """
    return place.route.tokenizer == "auto" and not place.target.vendor


def error_of(place: Place) -> float:
    """Return the relative error of a plain count at this place."""
    error = families.family_of(place.family).error
    return max(error, GUESSED_ERROR) if guessed(place) else error


def _believed(count: TokenCount, place: Place, calibration: Calibration) -> TokenCount:
    """Treat a count by a guessed vocabulary as an estimate until bills have confirmed it."""
    if count.basis == "anchor" or not guessed(place):
        return count
    error = tokens.LEARNED if calibration.confirmed else error_of(place)
    return replace(count, basis="estimate", error=max(count.error, error) if calibration.ratio == 1.0 else error)


async def proven(gateway: Gateway, place: Place, request: Conversation) -> bool:
    """Return whether the size in bytes alone proves that the request fits, so that nothing is counted. The tools and parts
    of a large body are looked at in the pool, for there may be a hundred thousand."""
    learning, owner = gateway.learning, place.owner
    if learning.ratio(owner) > DENSE or learning.has_smaller(owner):
        return False
    if caching.always(place.route.policy, place.facts, place.target):
        return False
    reserve, _ = _reserve(place, request)
    size_bytes = len(request.raw)
    proves = partial(proof.proven, size_bytes, reserve, _window(place, reserve), request, place.family)
    return proves() if size_bytes < LARGE else await gateway.pool.run(proves, size_bytes=size_bytes)


def _window(place: Place, reserve: int) -> int:
    """Return the window for a request with this reserve: less than the whole when a model limits the prompt itself."""
    if place.route.window is not None or place.facts is None:
        return place.window
    return min(place.window, place.facts.window_for(reserve))


def _reserve(place: Place, request: Conversation) -> tuple[int, int | None]:
    """Return the tokens to reserve for the answer, and the client's own limit."""
    route, facts = place.route, place.facts
    return measuring.reserve_for(
        request,
        place.window,
        configured=route.output_reserve,
        largest=route.max_output_tokens or (facts.max_output_tokens if facts else None),
        counted=facts is None or facts.counts_output or request.format.name != "messages",
    )


async def task_for(gateway: Gateway, place: Place, request: Conversation, scope: str) -> Task:
    """Count the request and return what it must fit. Much new text is counted and hashed in the pool, off the event
    loop."""
    learning, owner = gateway.learning, place.owner
    reserve = _reserve(place, request)
    window = _window(place, reserve[0])
    size_bytes = len(request.raw)
    heavy = size_bytes >= INLINE or delay.heavy(request, place.family, place.images)  # the latter reads the messages
    pooled_bytes = max(size_bytes, INLINE) if heavy else 0
    calibration = learning.calibration(owner)
    found = await gateway.pool.run(partial(_counted, place, request, calibration), size_bytes=pooled_bytes)
    if found.stable.total > ANCHORED * window and await learning.follow(owner):
        calibration = learning.calibration(owner)
        found = await gateway.pool.run(partial(_counted, place, request, calibration), size_bytes=pooled_bytes)
    chain, own = list[str](), learning.has_smaller(owner)
    if found.stable.total > ANCHORED * window or own or learning.watches(owner):
        names = partial(conversation, scope, place.model, request.messages)
        chain = await gateway.pool.run(names, size_bytes=size_bytes)
        smaller = await learning.smaller(owner, chain) if own else None
        window = min(window, smaller) if smaller else window
        if (anchor := await learning.anchor(chain)) is not None:
            anchored = partial(tokens.count_request, request, place.family, place.images, calibration.ratio, anchor)
            best = await gateway.pool.run(anchored, size_bytes=pooled_bytes)
            found = found._replace(best=best, anchored=True)
    return _task(
        place, request, found, calibration, window=window, reserve=reserve, scope=scope, before=learning.before(chain)
    )


def _counted(place: Place, request: Conversation, calibration: Calibration) -> Measurement:
    """Count a request for a place. Slow for a long conversation."""
    count = tokens.count_request(request, place.family, place.images, calibration.ratio)
    stable = _believed(count, place, calibration)
    plain_fixed = fixed_cost.fixed_cost(request.body, place.family, request.memory)
    bounded = stable.bounded or not proof.self_contained(request)
    return Measurement(stable, stable, plain_fixed, bounded, calibration.ratio)


def _task(
    place: Place, request: Conversation, found: Measurement, calibration: Calibration, *, window: int,
    reserve: tuple[int, int | None], scope: str, before: Before | None,
) -> Task:  # fmt: skip
    """Return the task of a counted request at a place."""
    facts = place.facts
    policy = caching.priced(place.route.policy, facts, place.target)
    return measuring.task_from(
        request,
        found,
        model=place.model,
        window=window,
        reserve=reserve,
        family=place.family,
        images=place.images,
        policy=policy,
        configured=place.configured,
        scope=scope,
        error=error_of(place),
        binds_thinking=facts is not None and facts.binds_thinking,
        before=before,
        cache=caching.terms_for(policy, facts, place.target, request, scope),
        erratic=calibration.absurd > 0,
    )
