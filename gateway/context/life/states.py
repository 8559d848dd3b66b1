"""The states of one request, as frozen values. `gateway.context.life.transitions` has the table.

Each state says what the driver has to do next:

- `Received`: find the places that may answer.
- `Chosen`: see whether the request fits this place: by its size alone, else by a count.
- `Measured`: make the first attempt.
- `Ready`: send the attempt and read as far as it takes to recognise a refusal.
- `Uncounted`: count a request that was refused though its size seemed to prove that it fits.
- `Refused`: make a smaller attempt.
- `Answered`, `TooLarge`, `Unreachable`, `PassedThrough`: give the client the answer, our own refusal, our own error, or the result of passing
  the request through. These are final.

States and events are structures of msgspec: a frozen dataclass takes ten times as long to make, a named tuple three times.

This file knows neither sockets nor the wordings of upstreams: a refusal comes as numbers, an answer as a handle that is not read here.
"""

from typing import Final, Literal

import msgspec

from gateway.context.life import ladder, lessons
from gateway.context.life.attempt import Attempt
from gateway.context.life.events import AttemptMade, ReplyCame
from gateway.context.life.lessons import NOTHING_LEARNED, BilledPrompt, Learned, Lesson
from gateway.context.life.place import Place
from gateway.context.life.replies import OutputLimit, Refusal, Reply, StatedNumbers
from gateway.context.life.task import Task
from gateway.wire.format import Conversation

Mode = Literal["enforce", "observe", "off"]

NEAR_WINDOW: Final = 0.8
"""Share of its window from which a request's empty stream means "too long"; after a fold it always does (case 123).
Chosen: counts are less exact."""
PARTS_NAMED: Final = 3
"""The largest parts of a request that our own refusal names. Chosen: a line."""
FAULT_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses about the server's health or patience, not about the request: another place may do better."""


class Life(msgspec.Struct, frozen=True):
    """The facts about a request that hold in every state: its body, the remaining places, the calls so far."""

    conversation: Conversation
    mode: Mode
    places: tuple[Place, ...] = ()
    """Places still to try: the model's own upstreams, then its fallbacks."""
    larger: tuple[Place, ...] = ()
    """Models with a larger window, still to try for a request that is too long everywhere else."""
    calls: int = 0
    """Calls to upstreams, including the running one."""
    refusals: tuple[str, ...] = ()
    """The signs of all refusals, in order."""
    best_end: "Answered | TooLarge | None" = None
    """The end of the request if no later place does better."""
    tries_larger: bool = False
    """Whether the request was too long for every other place, so that models with a larger window are tried."""


class Visit(msgspec.Struct, frozen=True):
    """The facts about the request at the current place."""

    place: Place
    task: Task | None = None
    """The request counted for this place; None without a count."""
    fit_proven: bool = False
    """Whether the body's size proves that the request fits."""
    planned: Attempt | None = None
    """The attempt that would have been sent, in mode observe."""
    failed: bool = False
    """Whether a part of the gateway failed: then the request is sent unchanged."""
    limit_unknown: bool = False
    """Whether the last refusal at this place stated no believable limit."""

    @property
    def counted(self) -> Task:
        """The request counted for this place, in a state that follows a count."""
        assert self.task is not None
        return self.task


class Received(msgspec.Struct, frozen=True):
    """The request was read."""

    life: Life


class Chosen(msgspec.Struct, frozen=True):
    """The next place to ask."""

    life: Life
    visit: Visit


class Measured(msgspec.Struct, frozen=True):
    """The request was counted for its place."""

    life: Life
    visit: Visit

    def make_first_attempt(self) -> AttemptMade:
        """Make the first attempt, and check whether it can fit at all. Slow for a long conversation."""
        task = self.visit.counted
        attempt = ladder.first_attempt(task)
        return AttemptMade(attempt, cannot_fit=ladder.certainly_too_long(task, attempt))


class Ready(msgspec.Struct, frozen=True):
    """An attempt that can be sent."""

    life: Life
    visit: Visit
    attempt: Attempt


class Uncounted(msgspec.Struct, frozen=True):
    """Refused without a count."""

    life: Life
    visit: Visit
    attempt: Attempt
    reply: Reply
    refusal: Refusal


class Refused(msgspec.Struct, frozen=True):
    """Refused as too long, or for its requested output."""

    life: Life
    visit: Visit
    attempt: Attempt
    reply: Reply
    refusal: Refusal

    def find_lessons(self) -> tuple[Lesson, ...]:
        """Return the lessons of the refusal. Slow for a long conversation."""
        numbers = self.refusal.numbers
        if not isinstance(numbers, StatedNumbers):
            return ()
        sent = lessons.sent_of(self.visit.counted, self.attempt, self.visit.place.upstream)
        return lessons.from_refusal(sent, self.attempt, numbers, self.refusal.sign, self.reply.refusal_body)

    def make_smaller_attempt(self) -> Attempt | None:
        """Return a smaller attempt; None when there is none, or no more calls are allowed. Slow for a long
        conversation."""
        if self.life.mode != "enforce" or self.life.calls > self.visit.place.max_retries:
            return None
        return ladder.next_attempt(self.visit.counted, self.attempt, self.refusal.numbers)


class Answered(msgspec.Struct, frozen=True):
    """Final: the client gets an upstream's answer."""

    life: Life
    visit: Visit
    attempt: Attempt
    reply: Reply
    too_long: bool = False
    """The answer is a refusal of the prompt, and nothing smaller could be sent."""

    @property
    def good(self) -> bool:
        """Whether the answer is one of success, so that its bill can teach something."""
        return self.reply.status == 200 and not self.too_long

    def find_lessons(self, bill: BilledPrompt | None) -> Learned:
        """Return the lessons of a good answer to a counted request."""
        task = self.visit.task
        if task is None or self.life.mode == "off":
            return NOTHING_LEARNED
        sent = lessons.sent_of(task, self.attempt, self.visit.place.upstream)
        return lessons.from_answer(sent, bill, limit_unknown=self.visit.limit_unknown)


class TooLarge(msgspec.Struct, frozen=True):
    """Final: even the smallest form cannot fit, so no upstream was called; the client gets our own refusal."""

    life: Life
    visit: Visit
    attempt: Attempt

    def write_refusal(self) -> bytes:
        """Write our own refusal in the client's format, with sizes and the largest parts by place, without their text."""
        task = self.visit.counted
        return task.conversation.format.refusal(
            self.attempt.window, self.attempt.prompt, task.reserve, largest_parts(task)
        )


class Unreachable(msgspec.Struct, frozen=True):
    """Final: no place answered; the client gets our own error."""

    life: Life
    visit: Visit
    attempt: Attempt
    error: Exception


class PassedThrough(msgspec.Struct, frozen=True):
    """Final: our own code failed before any place was found; the request is passed through unchanged."""

    life: Life


Undecided = Chosen | Measured | Uncounted | Refused
Ended = Answered | TooLarge | Unreachable | PassedThrough
State = Received | Undecided | Ready | Ended


def refusal_in(state: Ready, event: ReplyCame) -> Refusal | None:
    """Return the refusal in an answer; None if it refuses nothing because of its size. An empty stream counts as a refusal if the
    request was folded or is near its window."""
    reply, visit, attempt = event.reply, state.visit, state.attempt
    refusal = reply.refusal
    if reply.empty_stream:
        near = visit.task is not None and attempt.prompt >= NEAR_WINDOW * attempt.window
        return Refusal("empty_stream", StatedNumbers()) if near or attempt.draft is not None else None
    if refusal is not None and refusal.numbers == OutputLimit(0):
        # "max_tokens must be at least 1, got 0": the prompt fills the window, unless the client itself requested 0.
        client_asked_for_none = any(limit < 1 for limit in state.life.conversation.output_limits)
        return None if client_asked_for_none else Refusal(refusal.sign, StatedNumbers())
    return refusal


def largest_parts(task: Task) -> str:
    """Return the largest parts of a request by place and size, without their text."""
    parts = [
        (task.counter.message(message), f"messages[{index}] ({message.get('role')})")
        for index, message in enumerate(task.conversation.messages)
    ]
    parts.append((task.fixed, "tools and overhead"))
    return ", ".join(f"{name}: {size} tokens" for size, name in sorted(parts, reverse=True)[:PARTS_NAMED])


def failure_in(attempt: Attempt) -> str:
    """Return the type of our own exception that ended the folding of an attempt; empty without one. A *fault* is an upstream's:
    see `FAULT_STATUSES`."""
    return next((step.detail for step in attempt.steps if step.stage == "failed"), "")


def replies_in(state: State) -> list[Reply]:
    """Return the upstream answers that may still be forwarded."""
    replies = [state.reply] if isinstance(state, (Answered, Uncounted, Refused)) else []
    if isinstance(state.life.best_end, Answered):
        replies.append(state.life.best_end.reply)
    return replies
