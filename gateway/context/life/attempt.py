"""An attempt: one form of a request that can be sent, and how it was made."""

import msgspec

from gateway.context.write.draft import Draft, Step


class Attempt(msgspec.Struct, frozen=True):
    """A request to send: its bytes and how they were made."""

    body: bytes
    """Empty while the ladder decides what is sent: the bytes are written last."""
    prompt: int
    """All of it by our count, in tokens."""
    window: int
    """The tokens that it was made to fit. After a refusal it may be less than the window of the place."""
    rung: int = 0
    """How strict the fold is: a position in `RUNGS`."""
    ratio: float = 1.0
    """The factor of the stable count, after a refusal proved it too low."""
    draft: Draft | None = None
    output: int | None = None
    """The lowered output limit; None when the client's own holds."""
    steps: tuple[Step, ...] = ()
    keeps_thinking: bool = True
    """False when all signed thinking was removed, because the upstream did not accept it."""
    may_drop_thinking: bool = False
    """Whether signed thinking follows another conversation than the one it was made in, and the upstream may drop it."""

    @property
    def turns_folded(self) -> int:
        return self.draft.turns_folded if self.draft else 0

    @property
    def altered(self) -> bool:
        """Return whether it differs from the client's request. If a count is too high, a fold may change nothing."""
        return self.output is not None or (self.draft is not None and bool(self.steps))
