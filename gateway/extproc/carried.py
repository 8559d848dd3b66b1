"""What one attempt at a request leaves for the next: Envoy keeps it as metadata, so the next attempt may come to another processor.

Nothing here is the client's text: the mode that was asked for, and the numbers of refusals.
"""

from typing import Any, Final, NamedTuple

import msgspec

from gateway.context.life.ladder import StatedNumbers
from gateway.context.life.replies import OutputLimit, Refusal, ThinkingRejected

NAMESPACE: Final = "turnfold"
"""The namespace of the metadata, which Envoy's configuration names."""
FIELD: Final = "carried"
"""The member of the namespace that holds a `Carried` as JSON."""
LONGEST: Final = 2**14
"""Characters. Chosen: a hundred refusals, far more than any ladder has rungs."""


class CarriedRefusal(NamedTuple):
    """One refusal, as plain values."""

    sent: int
    """Bytes of the body that was refused."""
    sign: str
    stated: StatedNumbers | None = None
    """The numbers of a prompt that was too long."""
    output: int | None = None
    """The largest output that the upstream states, where it refused the output."""
    thinking: bool = False
    """The upstream rejected signed thinking."""

    @classmethod
    def of(cls, refusal: Refusal, sent: int) -> "CarriedRefusal":
        """Return a refusal as plain values."""
        numbers = refusal.numbers
        if isinstance(numbers, StatedNumbers):
            return cls(sent, refusal.sign, stated=numbers)
        return cls(sent, refusal.sign, output=numbers.limit, thinking=isinstance(numbers, ThinkingRejected))

    @property
    def refusal(self) -> Refusal:
        """The refusal in the core's terms."""
        if self.stated is not None:
            return Refusal(self.sign, self.stated)
        return Refusal(self.sign, ThinkingRejected(self.output) if self.thinking else OutputLimit(self.output))


class Carried(NamedTuple):
    """What earlier attempts at the same request leave."""

    mode: str | None = None
    """The client's ``x-turnfold-mode``, which the first attempt takes off; None when it sent none."""
    refusals: tuple[CarriedRefusal, ...] = ()


NOTHING: Final = Carried()
"""A first attempt."""


def written(carried: Carried) -> dict[str, Any]:
    """Return metadata for Envoy to keep."""
    return {NAMESPACE: {FIELD: msgspec.json.encode(carried).decode()}}


def read(request: Any) -> Carried:
    """Return what the metadata of a request to the processor holds; nothing when it is not ours."""
    for namespace in request.metadata_context.filter_metadata:
        if namespace.key == NAMESPACE and FIELD in namespace.value.fields:
            text = namespace.value.fields[FIELD].string_value
            try:
                return msgspec.json.decode(text, type=Carried) if len(text) <= LONGEST else NOTHING
            except msgspec.DecodeError:
                return NOTHING
    return NOTHING
