"""The story of one request as it is being written: what each part adds, what the headers and the exchange tell of it."""

import time
from dataclasses import dataclass, field

from aiohttp import web

from gateway.config import Mode, Route
from gateway.config.values import MODES
from gateway.context.life.ladder import Attempt, Task
from gateway.observe.exchange import Action, Exchange
from gateway.serve.errors import ClientError
from gateway.serve.plan import Place
from gateway.wire.format import Conversation
from providers.record import Usage


def mode_of(request: web.BaseRequest, route: Route) -> Mode:
    """Return the mode of one request: its own header, else the configured one.

    Raises ClientError for a word that is no mode, and for a mode that ``fold.client_modes`` leaves out.
    """
    asked = request.headers.get("x-turnfold-mode")
    if asked is None:
        return route.mode
    word = asked.strip().lower()
    if word not in MODES:
        raise ClientError(400, f"x-turnfold-mode: {asked[:40]!r} is not one of {', '.join(MODES)}", code="invalid_mode")
    if word not in route.client_modes and word != route.mode:
        allowed = f"allowed: {', '.join(route.client_modes)}" if route.client_modes else "the header is not allowed"
        raise ClientError(
            403,
            f"x-turnfold-mode: {word} is not allowed for this model (fold.client_modes); {allowed}",
            code="mode_not_allowed",
            type_="permission_error",
        )
    return word


@dataclass(slots=True)
class Story:
    """Collects the facts of one request. Holds no text of it beyond the model's name."""

    request_id: str
    request: Conversation
    mode: Mode
    started: float
    place: Place | None = None
    task: Task | None = None
    attempt: Attempt | None = None
    planned: Attempt | None = None
    """What would have been sent, in mode observe."""
    scope: str = ""
    """Whose memory may be used: a hash of the caller's credentials and the upstream."""
    unsized: bool = False
    """Whether the last refusal of this place stated no limit that could be believed."""
    bounded: bool = False
    """Nothing was counted; the body's size in bytes bounds its tokens."""
    attempts: int = 0
    gave_up: bool = False
    refusals: list[str] = field(default_factory=list)
    warning: str = ""
    error: str = ""
    decided: float = 0.0
    first_byte: float = 0.0

    @property
    def action(self) -> Action:
        if self.gave_up:
            return "error"
        if self.mode == "off":
            return "off"
        if self.mode == "observe":
            return "observe"
        if self.attempts > 1 and self.refusals:
            return "retry"
        altered = self.attempt is not None and (self.attempt.draft is not None or self.attempt.output is not None)
        return "fold" if altered else "none"

    @property
    def shown(self) -> Attempt | None:
        """The attempt of which headers and exchange tell: in mode observe the one that was not sent."""
        return self.planned or self.attempt

    @property
    def before(self) -> int | None:
        return self.task.prompt if self.task else None

    @property
    def after(self) -> int | None:
        return self.shown.prompt if self.shown and self.task else None

    def headers(self) -> dict[str, str]:
        """The response headers that tell the client what was done; numbers are tokens."""
        shown = self.shown
        headers = {"x-turnfold-request-id": self.request_id, "x-turnfold-action": self.action}
        if self.place is not None:
            headers["x-turnfold-window"] = str(shown.window if shown else self.place.window)
        if self.before is not None:
            headers["x-turnfold-tokens-before"] = str(self.before)
            headers["x-turnfold-tokens-after"] = str(self.after)
        elif self.bounded:
            headers["x-turnfold-tokens-before"] = headers["x-turnfold-tokens-after"] = f"<={len(self.request.raw)}"
        headers["x-turnfold-turns-folded"] = str(shown.turns_folded if shown else 0)
        headers["x-turnfold-attempts"] = str(self.attempts)
        if self.warning:
            headers["x-turnfold-warning"] = self.warning
        return headers

    def exchange(self, status: int, usage: Usage | None) -> Exchange:
        """Close the story: the frozen record for every observer."""
        shown = self.shown
        place = self.place
        return Exchange(
            request_id=self.request_id,
            upstream=place.target.name if place else "",
            model=self.request.model[:200],
            entry=place.entry if place else "",
            action=self.action,
            status=status,
            stream=self.request.stream,
            window=shown.window if shown else 0,
            tokens_before=self.before,
            tokens_after=self.after,
            basis=self.task.basis if self.task else "bytes" if self.bounded else "",
            turns_folded=shown.turns_folded if shown else 0,
            attempts=self.attempts,
            refusals=tuple(self.refusals),
            steps=shown.steps if shown else (),
            warning=self.warning,
            error=self.error,
            prompt_tokens=usage.prompt if usage else None,
            completion_tokens=usage.completion if usage else None,
            cached_tokens=usage.cached if usage else None,
            body_bytes=len(self.request.raw),
            decided_s=max(self.decided - self.started, 0.0),
            first_byte_s=max(self.first_byte - self.started, 0.0),
            total_s=time.perf_counter() - self.started,
        )
