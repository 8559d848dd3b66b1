"""A place, as far as decisions know it: one model at one upstream, where a request may be sent."""

from typing import Protocol


class Place(Protocol):
    """One upstream and model that may answer a request. `gateway.serve.request.place` knows more of it."""

    @property
    def upstream(self) -> str:
        """The upstream's configured name."""

    @property
    def model(self) -> str:
        """The model's name at the upstream."""

    @property
    def window(self) -> int:
        """Its context window, in tokens."""

    @property
    def max_retries(self) -> int:
        """The number of calls after the first one for a refused request."""
