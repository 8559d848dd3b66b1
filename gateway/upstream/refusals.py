"""Convert a provider's refusal about size into the core's value."""

from gateway.context.life.ladder import StatedNumbers
from gateway.context.life.replies import OutputLimit, Refusal
from providers import record


def refusal_of(found: record.Refusal) -> Refusal:
    """Return a provider's refusal in the core's terms."""
    if isinstance(found, record.OutputTooLarge):
        return Refusal(found.sign, OutputLimit(found.limit))
    numbers = StatedNumbers(
        found.limit or found.implied, found.prompt, found.completion, found.total, found.exact, found.excess
    )
    return Refusal(found.sign, numbers)
