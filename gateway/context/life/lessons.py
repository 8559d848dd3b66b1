"""Lessons: what one refusal, or one good answer, teaches, and of which kind that knowledge is.

Three kinds, never mixed. *Stated*: numbers of an upstream's own refusal, plausible and not an echo of the request. *Observed*: what was
billed. *Guessed*: everything else (a size that passed after a refusal without numbers, bills that stopped growing). A guess holds for
the conversation that it comes from, makes its folds smaller and warns; nothing else. Nothing here reads a clock or remembers
anything: `gateway.state.learning` applies the lessons.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from gateway.context.count.tokens import Anchor
from gateway.context.life import evidence, identity, ladder
from gateway.context.life.evidence import Before, Measured
from gateway.context.life.ladder import Attempt, Reading, Task

Kind = Literal["stated", "observed", "guessed"]

TRUNCATED: Final = "truncated"
ACCEPTED: Final = "accepted"
ALARM: Final = 2
"""Suspect bills of one conversation before anybody is warned: one may have an innocent reason that is not known here."""
ANCHORED: Final = 0.4
"""Share of the window from which on the last bill of a conversation is looked up and remembered: finding it costs a hash of every message."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt as it went out. All sizes are tokens."""

    upstream: str
    model: str
    scope: str
    """Whose memory may be used."""
    measured: Measured
    window: int
    """What the attempt was made to fit."""
    kept: int = 0
    """What was kept free beside the prompt: for the answer, and as a margin."""
    output: int | None = None
    """The output limit that was sent."""
    fixed: int = 0
    """Tools, schema and the frame of the request, as an anchor counts them."""
    before: Before | None = None
    erratic: bool = False
    """Bills of this model were absurd lately: nothing is concluded from a small one."""

    @property
    def conversation(self) -> str:
        """The name of the conversation up to this request. Hashes all of it: ask only where a lesson needs it."""
        chain = identity.conversation(self.scope, self.model, self.measured.request.messages)
        return chain[-1] if chain else ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What an upstream says it has read: ``providers.record.Usage`` without the output."""

    prompt: int
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class StatedWindow:
    """An upstream refused and stated its window."""

    upstream: str
    model: str
    scope: str
    conversation: str
    tokens: int
    prompt: int | None
    """The refused prompt's size as the upstream stated it."""
    counted: int
    """The same by our count."""
    sign: str
    kind: Kind = "stated"


@dataclass(frozen=True, slots=True)
class SmallerFold:
    """One conversation had better be folded to so much."""

    upstream: str
    model: str
    scope: str
    conversation: str
    tokens: int
    billed: int | None
    counted: int
    sign: str
    """``accepted``: so much passed after a refusal without numbers; ``truncated``: bills say that the server cuts."""
    kind: Kind = "guessed"


@dataclass(frozen=True, slots=True)
class PromptRead:
    """A prompt of this size was read whole: every smaller window of this model is disproved, guessed or stated."""

    upstream: str
    model: str
    tokens: int
    kind: Kind = "observed"


@dataclass(frozen=True, slots=True)
class CountCompared:
    """What the upstream makes of a prompt that we counted; ``stated`` where it stands in a refusal that is believed."""

    upstream: str
    model: str
    counted: int
    billed: int
    stated: bool = False
    kind: Kind = "observed"


@dataclass(frozen=True, slots=True)
class ConversationBilled:
    """What a conversation was billed, for the count of its next request."""

    scope: str
    conversation: str
    anchor: Anchor
    kind: Kind = "observed"


@dataclass(frozen=True, slots=True)
class ConversationSeen:
    """Where a conversation stands, for the judgement of its next bill."""

    upstream: str
    model: str
    conversation: str
    before: Before
    kind: Kind = "observed"


Lesson = StatedWindow | SmallerFold | PromptRead | CountCompared | ConversationBilled | ConversationSeen


@dataclass(frozen=True, slots=True)
class Learned:
    """What an answer teaches, and the warning for client and operator (``x-turnfold-warning``); empty where all is well."""

    lessons: tuple[Lesson, ...] = ()
    warning: str = ""


NOTHING: Final = Learned()


def sent_by(task: Task, attempt: Attempt, upstream: str, scope: str) -> Sent:
    """Describe an attempt of a counted request."""
    messages = task.sent_by(attempt)
    counted = sum(map(task.plain.message, messages)) + task.plain_fixed
    measured = Measured(
        task.request, messages, task.plain, counted, attempt.prompt, task.error, attempt.draft is not None, task.bounded
    )
    return Sent(
        upstream,
        task.model,
        scope,
        measured,
        attempt.window,
        task.reserve + task.kept,
        task.output_of(attempt),
        task.fixed,
        task.before,
        task.erratic,
    )


def from_refusal(sent: Sent, attempt: Attempt, refusal: Reading, sign: str, said: bytes) -> tuple[Lesson, ...]:
    """Learn from "too long". ``said`` is the refusal's body, decoded: a wording that stands in the request proves nothing."""
    measured, limit = sent.measured, refusal.limit
    prompt = ladder.stated_prompt(refusal, attempt, sent.output)
    window = evidence.plausible_window(measured.counted, measured.error, limit, prompt, sent.output)
    size = prompt if evidence.plausible_prompt(measured.counted, prompt) and not measured.bounded else None
    if measured.request.refers_elsewhere or (not window and size is None):
        return ()  # what was refused stands elsewhere as well: it tells nothing of the window
    if evidence.echoed(said, measured.request, limit, refusal.prompt or refusal.total or refusal.excess):
        return ()
    found: list[Lesson] = []
    if window and limit is not None and limit < sent.window:
        found.append(
            StatedWindow(
                sent.upstream, sent.model, sent.scope, sent.conversation, limit, prompt, measured.counted, sign
            )
        )
    if size is not None:
        found.append(CountCompared(sent.upstream, sent.model, measured.counted, size, stated=True))
    return tuple(found)


def from_answer(sent: Sent, bill: Bill | None, *, unsized: bool = False) -> Learned:
    """Learn from a good answer. ``unsized``: a refusal of this request stated no limit, or no size of the prompt."""
    if bill is None:
        return Learned((_accepted(sent, None),)) if unsized else NOTHING
    verdict = evidence.judge(sent.measured, bill.prompt, bill.cached, sent.before)
    if verdict == "suspect":
        return NOTHING if sent.erratic else _suspect(sent, bill)
    if verdict == "unclear":
        return Learned((_compared(sent, bill),)) if bill.prompt > sent.measured.prompt else NOTHING
    return Learned(_whole(sent, bill, unsized=unsized))


def _whole(sent: Sent, bill: Bill, *, unsized: bool) -> tuple[Lesson, ...]:
    """The bill is for all that was sent."""
    measured = sent.measured
    found: list[Lesson] = [PromptRead(sent.upstream, sent.model, bill.prompt)]
    if unsized:
        found.append(_accepted(sent, bill.prompt))
    if not measured.bounded:
        found.append(_compared(sent, bill))
    if not measured.folded and measured.messages and bill.prompt > ANCHORED * sent.window:
        full = bill.prompt >= 0.9 * measured.counted
        covered, name = len(measured.messages), sent.conversation
        found.append(ConversationBilled(sent.scope, name, Anchor(covered, bill.prompt, sent.fixed)))
        found.append(ConversationSeen(sent.upstream, sent.model, name, Before(covered, covered, bill.prompt, full)))
    elif sent.before is not None and sent.before.suspicions:
        found.append(ConversationSeen(sent.upstream, sent.model, sent.conversation, replace(sent.before, suspicions=0)))
    return tuple(found)


def _suspect(sent: Sent, bill: Bill) -> Learned:
    """The server seems to have cut the prompt: remember it; at the second time warn, and fold this conversation smaller."""
    before = sent.before or Before(0)
    before = replace(before, covered=len(sent.measured.request.messages), suspicions=before.suspicions + 1)
    name = sent.conversation
    seen = ConversationSeen(sent.upstream, sent.model, name, before)
    if before.suspicions < ALARM:
        return Learned((seen,))
    warning = f"{TRUNCATED}; sent={sent.measured.prompt}; read={bill.prompt}"
    window = evidence.window_like(bill.prompt)
    smaller = SmallerFold(
        sent.upstream, sent.model, sent.scope, name, window, bill.prompt, sent.measured.counted, TRUNCATED
    )
    return Learned((seen, smaller) if window < sent.window else (seen,), warning)


def _accepted(sent: Sent, billed: int | None) -> SmallerFold:
    """So much passed after a refusal without numbers: send no more of this conversation next time."""
    size = (sent.measured.prompt if billed is None else billed) + sent.kept
    return SmallerFold(
        sent.upstream, sent.model, sent.scope, sent.conversation, size, billed, sent.measured.counted, ACCEPTED
    )


def _compared(sent: Sent, bill: Bill) -> CountCompared:
    return CountCompared(sent.upstream, sent.model, sent.measured.counted, bill.prompt)
