"""Read what an upstream's answer says about the size of a request, in the core's terms."""

from gateway.context.life.replies import OutputLimit, Refusal, StatedNumbers, ThinkingRejected
from gateway.wire.format import Format
from providers.record import OutputTooLarge, Provider


def refusal_from(provider: Provider, format: Format, status: int, said: bytes) -> Refusal | None:
    """Return the refusal in a decoded body, or in the data of one stream event; None when it refuses nothing because of its size.

    ``format`` is that of the request: only some formats have signed thinking, which an upstream may reject.
    """
    found = provider.read_refusal(status, said)
    if found is None:
        rejected = status == 400 and format.rejects_thinking(said)
        return Refusal("thinking_rejected", ThinkingRejected()) if rejected else None
    if isinstance(found, OutputTooLarge):
        return Refusal(found.sign, OutputLimit(found.limit))
    numbers = StatedNumbers(
        found.limit or found.implied, found.prompt, found.completion, found.total, found.exact, found.excess
    )
    return Refusal(found.sign, numbers)
