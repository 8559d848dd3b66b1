"""Measure a request for a place: prove that it fits, or count it and return what it must fit there."""

from functools import partial
from typing import Final

from msgspec.structs import replace

from gateway.config import Settings, is_pattern
from gateway.context.choose import embedding
from gateway.context.count import delay, fixed_cost, message_cost, proof, tokens
from gateway.context.count.calibration import Calibration
from gateway.context.count.tokens import TokenCount
from gateway.context.life import identity
from gateway.context.life.lessons import LEAST_ANCHOR_SHARE
from gateway.context.life.task import MeasuredModel, Measurement, Reserve, Task, reserve_for, task_from
from gateway.serve.gateway import Gateway
from gateway.serve.request import caching
from gateway.serve.request.place import Place, error_of, family_of, has_guessed_family
from gateway.state.threads import INLINE
from gateway.wire.format import Conversation

DENSE_RATIO: Final = 2.0
"""Ratio of bills to counts. Above it a text may have more tokens than bytes, so that a size in bytes proves nothing. Chosen."""


def preload(gateway: Gateway, settings: Settings) -> None:
    """Load the vocabularies of all models that are configured by name, 0.2 s and 40 MB each, and the vectors if a model's questions
    are searched by meaning."""
    routes = [settings.route(name) for name in settings.models if not is_pattern(name)]
    delay.preload({family_of(route, gateway.catalogue.find(route.name)) for route in routes})
    if settings.by_meaning:
        embedding.load()


def must_count(gateway: Gateway, place: Place) -> bool:
    """Return whether a request must be counted at a place, whatever its size in bytes proves."""
    learning, owner = gateway.learning, place.owner
    return (
        learning.ratio(owner) > DENSE_RATIO
        or learning.may_fold_smaller(owner)
        or caching.marks_always(place.route.policy, place.catalogued, place.target)
    )


def fits_by_size(place: Place, conversation: Conversation) -> bool:
    """Return whether the size in bytes alone proves that the request fits, so that it need not be counted. Slow for a large
    body, which may have a hundred thousand tools and parts."""
    reserve = _reserve(place, conversation).tokens
    return proof.fits_by_size(len(conversation.raw), reserve, _window(place, reserve), conversation, place.family)


def _window(place: Place, reserve: int) -> int:
    """Return the window for a request with this reserve: less than the whole when a model limits the prompt itself."""
    if place.route.window is not None or place.catalogued is None:
        return place.window
    return min(place.window, place.catalogued.window_for(reserve))


def _reserve(place: Place, conversation: Conversation) -> Reserve:
    """Return the tokens that are kept free for the answer at a place."""
    route, catalogued = place.route, place.catalogued
    return reserve_for(
        conversation,
        place.window,
        configured=route.output_reserve,
        largest=route.max_output_tokens or (catalogued.max_output_tokens if catalogued else None),
        counted=catalogued is None or catalogued.counts_output or conversation.format.name != "messages",
    )


async def task_for(gateway: Gateway, place: Place, conversation: Conversation) -> Task:
    """Count a request at a place, and return what it must fit there. Much new text is counted and hashed in a thread, off the
    event loop."""
    learning, scope = gateway.learning, place.caller.scope
    reserve = _reserve(place, conversation)
    window = _window(place, reserve.tokens)
    size_bytes = _thread_bytes(place, conversation)
    measured, calibration = await _counted(gateway, place, conversation, window, size_bytes)
    chain = await _chain(gateway, place, conversation, _is_long(measured, window))
    smaller = await learning.smaller_size(place.owner, chain) if learning.may_fold_smaller(place.owner) else None
    window = min(window, smaller) if smaller else window
    if chain and (anchor := await learning.conversations.anchor(chain)) is not None:
        count_anchored = partial(
            tokens.count_request, conversation, place.family, place.images, calibration.ratio, anchor
        )
        best = await gateway.threads.run(count_anchored, size_bytes=size_bytes)
        measured = measured._replace(best=best, anchored=True)
    policy = caching.priced(place.route.policy, place.catalogued, place.target)
    return replace(
        task_from(conversation, measured, _measured_model(place, window), reserve, policy),
        scope=scope,
        last_request=learning.conversations.last_request(chain),
        cache=caching.terms_for(policy, place.catalogued, place.target, conversation, scope),
        has_erratic_bills=calibration.ignored_bills > 0,
    )


async def _chain(gateway: Gateway, place: Place, conversation: Conversation, is_long: bool) -> list[str]:
    """Return the names of the conversation up to each of its messages, by which what was learned of it is found (`identity.chain`). Empty
    if nothing can have been learned of it: it is not long, and the caller's other requests were not suspicious."""
    learning, owner = gateway.learning, place.owner
    if not (is_long or learning.may_fold_smaller(owner) or learning.has_suspect_bills(owner)):
        return []
    hash_messages = partial(identity.chain, conversation.messages, place.caller.scope, place.model)
    return await gateway.threads.run(hash_messages, size_bytes=len(conversation.raw))


def _is_long(measured: Measurement, window: int) -> bool:
    """Return whether a request is so long that the conversation's last bill is kept, and that it may be folded soon."""
    return measured.stable.total > LEAST_ANCHOR_SHARE * window


def _thread_bytes(place: Place, conversation: Conversation) -> int:
    """Return the size of the work of counting, in bytes, as `WorkThreads.run` needs it: 0 if it is so small that no thread is needed."""
    size_bytes = len(conversation.raw)
    # The second check comes last, because it reads the messages.
    blocks = size_bytes >= INLINE or delay.blocks_event_loop(conversation, place.family, place.images)
    return max(size_bytes, INLINE) if blocks else 0


async def _counted(
    gateway: Gateway, place: Place, conversation: Conversation, window: int, size_bytes: int
) -> tuple[Measurement, Calibration]:
    """Count a request with the learned ratio. A long one may be folded: it is counted with the ratio in the store, which all
    processes share."""
    learning, owner = gateway.learning, place.owner
    counter = message_cost.counter(place.family, place.images, conversation.memory).name
    calibration = learning.calibration(owner).of(counter)
    measured = await gateway.threads.run(partial(_count, place, conversation, calibration), size_bytes=size_bytes)
    if _is_long(measured, window) and await learning.owners.adopt_stored_ratio(owner):
        calibration = learning.calibration(owner).of(counter)
        measured = await gateway.threads.run(partial(_count, place, conversation, calibration), size_bytes=size_bytes)
    return measured, calibration


def _count(place: Place, conversation: Conversation, calibration: Calibration) -> Measurement:
    """Count a request for a place. Slow for a long conversation."""
    count = tokens.count_request(conversation, place.family, place.images, calibration.ratio)
    stable = _as_estimate_if_guessed(count, place, calibration)
    plain_fixed = fixed_cost.fixed_cost(conversation.body, place.family, conversation.memory)
    bounded = stable.has_upper_bounds or not proof.is_self_contained(conversation)
    return Measurement(stable, stable, plain_fixed, bounded, calibration.ratio)


def _as_estimate_if_guessed(count: TokenCount, place: Place, calibration: Calibration) -> TokenCount:
    """Return the count. If its vocabulary is only guessed, it is an estimate, with a smaller error once bills confirmed it."""
    if not has_guessed_family(place):
        return count
    error = tokens.LEARNED_ERROR if calibration.confirmed else error_of(place)
    return replace(count, basis="estimate", error=max(count.error, error) if calibration.ratio == 1.0 else error)


def _measured_model(place: Place, window: int) -> MeasuredModel:
    """Return the model of a place, with its window for this request."""
    binds_thinking = place.catalogued is not None and place.catalogued.binds_thinking
    return MeasuredModel(
        place.model, window, place.configured_window, place.family, place.images, error_of(place), binds_thinking
    )
