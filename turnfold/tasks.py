"""The core's task for one request of the library: what the gateway finds out about a model, from the catalogue alone."""

from typing import TYPE_CHECKING

from gateway.context.count import families, tokens
from gateway.context.cut.policy import Policy
from gateway.context.life.task import MeasuredModel, Measurement, Task, reserve_for, task_from
from gateway.wire.format import Conversation

if TYPE_CHECKING:
    from gateway.config.catalogue import CatalogueEntry


def task_of(
    conversation: Conversation,
    *,
    model: str,
    window: int | None,
    policy: Policy,
    output_reserve: int | None = None,
    tokenizer: str = "auto",
) -> Task:
    """Count a request and return what it must fit. Raises ValueError when no window is known, or no such tokenizer."""
    if tokenizer != "auto" and tokenizer not in families.names():
        raise ValueError(f'no tokenizer "{tokenizer}"; expected "auto", or one of {", ".join(families.names())}')
    catalogued = _catalogued(model) if window is None or tokenizer == "auto" else None
    if window is None:
        if catalogued is None:
            raise ValueError(f"no context window is known for the model {model!r}: pass window=, in tokens")
        window = catalogued.context_window
    window = min(window, conversation.asked_window or window)
    family = tokenizer if tokenizer != "auto" else catalogued.family if catalogued else "unknown"
    images = catalogued.images if catalogued else ""
    counted = tokens.count_request(conversation, family, images)
    reserve = reserve_for(
        conversation,
        window,
        configured=output_reserve,
        largest=None,
        counted=catalogued is None or catalogued.counts_output or conversation.format.name != "messages",
    )
    measured_model = MeasuredModel(
        conversation.model or model,
        window,
        window,
        family,
        images,
        counted.error,
        catalogued is not None and catalogued.binds_thinking,
    )
    count = Measurement(counted, counted, counted.fixed, counted.has_upper_bounds)
    return task_from(conversation, count, measured_model, reserve, policy)


def _catalogued(model: str) -> "CatalogueEntry | None":
    """Return the catalogue's entry of a model; None without one, or without a model."""
    if not model:
        return None
    from gateway.config import catalogue  # noqa: PLC0415  # it reads a file, which is not needed if window and tokenizer are given

    return catalogue.load().find(model)
