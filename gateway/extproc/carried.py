"""Facts that one attempt at a request carries over to the next. Envoy keeps them as metadata: the next attempt may reach another processor.

They are the requested mode and the numbers of refusals. They never hold text of the client.
"""

from typing import Any, Final, NamedTuple

import msgspec

from gateway.context.life.replies import OutputLimit, Refusal, StatedNumbers, ThinkingRejected

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
    """The facts carried over from earlier attempts at the same request."""

    mode: str | None = None
    """The client's ``x-turnfold-mode``, which the first attempt removes; None when the client sent none."""
    refusals: tuple[CarriedRefusal, ...] = ()


NOTHING: Final = Carried()
"""The value of a first attempt."""


def to_metadata(carried: Carried) -> dict[str, Any]:
    """Return the metadata that Envoy is to keep."""
    return {NAMESPACE: {FIELD: msgspec.json.encode(carried).decode()}}


def from_metadata(request: Any) -> Carried:
    """Return the facts in the metadata of a message from Envoy; `NOTHING` when there are none, or when they are not ours."""
    for namespace in request.metadata_context.filter_metadata:
        if namespace.key == NAMESPACE and FIELD in namespace.value.fields:
            text = namespace.value.fields[FIELD].string_value
            try:
                return msgspec.json.decode(text, type=Carried) if len(text) <= LONGEST else NOTHING
            except msgspec.DecodeError:
                return NOTHING
    return NOTHING
