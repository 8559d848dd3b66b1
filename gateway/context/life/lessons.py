"""Lessons: the knowledge in one refusal or one good answer.

There are three kinds, never mixed. *Stated* (`StatedWindow`): numbers in an upstream's own refusal, plausible and not an
echo of the request. *Guessed* (`SmallerFold`): a size that passed after a refusal without numbers, or bills that stopped
growing. *Observed* (all others): billed tokens. A guess affects only its own conversation: it makes the folds smaller and warns. This
module has no clock and no memory: `gateway.state.learning` applies the lessons.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from gateway.context.count import proof
from gateway.context.count.tokens import Anchor
from gateway.context.life import bills, identity, refusal_numbers
from gateway.context.life.attempt import Attempt
from gateway.context.life.bills import LastRequest, SentCount
from gateway.context.life.replies import StatedNumbers
from gateway.context.life.task import Task
from gateway.wire.message import Message

TRUNCATED: Final = "truncated"
ACCEPTED: Final = "accepted"
SUSPICIONS_BEFORE_WARNING: Final = 2
"""Number of suspect bills of one conversation that cause a warning. A single one may have an unknown innocent reason."""
LEAST_ANCHOR_SHARE: Final = 0.4
"""Share of the window. The last bill of a conversation is read and stored only if it is larger, because finding it needs a
hash of every message."""

FULL_BILL_SHARE: Final = 0.9
"""Share of our count of a request, from which a bill is for all of it, also for tool results. Chosen: less than a usual result is missing."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt as it was sent. All sizes are tokens."""

    upstream: str
    model: str
    scope: str
    """The scope of the memory that may be used."""
    count: SentCount
    """The attempt by our counts."""
    window: int
    """The size to which the attempt was made to fit."""
    kept_free: int = 0
    """Tokens kept free besides the prompt: for the answer, and as a margin."""
    output: int | None = None
    """The output limit that was sent."""
    fixed: int = 0
    """Tools, schema and the request's frame, as an anchor counts them."""
    last_request: LastRequest | None = None
    has_erratic_bills: bool = False
    """Whether bills of this model were absurd lately: then a small bill proves nothing."""

    @property
    def conversation_name(self) -> str:
        """The name of the conversation up to this request. It reads every message, so only lessons that need it ask for it."""
        chain = identity.chain(self.count.conversation.messages, self.scope, self.model)
        return chain[-1] if chain else ""


class BilledPrompt(msgspec.Struct, frozen=True):
    """The prompt tokens that an upstream bills: ``providers.record.Usage`` without the output."""

    prompt: int
    cached: int | None = None


class StatedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream refused and stated its window."""

    upstream: str
    model: str
    scope: str
    conversation: str
    tokens: int
    prompt: int | None
    """The size of the refused prompt as stated by the upstream."""
    counted: int
    """The same by our count."""
    sign: str


class SmallerFold(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation should be folded to this size."""

    upstream: str
    model: str
    scope: str
    conversation: str
    tokens: int
    billed: int | None
    counted: int
    sign: str
    """``accepted``: this size passed after a refusal without numbers; ``truncated``: bills show that the server
    truncates."""


class PromptRead(msgspec.Struct, frozen=True):
    """A prompt of this size was read completely, which disproves every smaller window of this model, guessed or stated."""

    upstream: str
    model: str
    tokens: int


class CountCompared(msgspec.Struct, frozen=True):
    """The upstream's count of a prompt that we counted; ``stated`` if it comes from a believed refusal."""

    upstream: str
    model: str
    counted: int
    billed: int
    stated: bool = False
    counter: str = ""
    """The name of the counter that counted."""


class ConversationBilled(msgspec.Struct, frozen=True):
    """The bill of a conversation, for the count of its next request."""

    scope: str
    conversation: str
    anchor: Anchor


class ConversationSeen(msgspec.Struct, frozen=True):
    """A request of a conversation, to judge the bill of the next one."""

    upstream: str
    model: str
    conversation: str
    last_request: LastRequest


Lesson = StatedWindow | SmallerFold | PromptRead | CountCompared | ConversationBilled | ConversationSeen


class Learned(msgspec.Struct, frozen=True):
    """The lessons of an answer, and the warning for client and operator (``x-turnfold-warning``); empty without a
    problem."""

    lessons: tuple[Lesson, ...] = ()
    warning: str = ""


NOTHING_LEARNED: Final = Learned()


def sent_of(task: Task, attempt: Attempt, upstream: str) -> Sent:
    """Describe an attempt of a counted request."""
    messages = task.messages_of(attempt)
    counted = sum(map(task.plain_counter.message, messages)) + task.plain_fixed
    count = SentCount(
        conversation=task.conversation, messages=messages, counter=task.plain_counter, counted=counted, prompt=attempt.prompt, error=task.error,
        folded=attempt.draft is not None, has_upper_bounds=_has_upper_bounds(task, attempt, messages),
    )  # fmt: skip
    return Sent(
        upstream=upstream, model=task.model, scope=task.scope, count=count, window=attempt.window,
        kept_free=task.reserve + task.fold_margin, output=task.output_of(attempt), fixed=task.fixed, last_request=task.last_request,
        has_erratic_bills=task.has_erratic_bills,
    )  # fmt: skip


def _has_upper_bounds(task: Task, attempt: Attempt, messages: Sequence[Message]) -> bool:
    """Return whether some part of an attempt is only counted by an upper bound. A fold that leaves all media out has no such part, so a
    conversation that once had an image can still correct its counts."""
    if not task.has_upper_bounds or attempt.draft is None:
        return task.has_upper_bounds
    return not (proof.reads_only_messages(task.conversation) and proof.is_text(messages))


def from_refusal(
    sent: Sent, attempt: Attempt, refusal: StatedNumbers, sign: str, refusal_body: bytes
) -> tuple[Lesson, ...]:
    """Return the lessons of a refusal as too long. ``refusal_body`` is its decoded body: if it repeats the request, its numbers prove
    nothing."""
    count, limit = sent.count, refusal.limit
    prompt = refusal_numbers.stated_prompt(refusal, attempt, sent.output)
    states_window = refusal_numbers.plausible_window(count.counted, count.error, limit, prompt, sent.output)
    stated_size = (
        prompt if refusal_numbers.plausible_prompt(count.counted, prompt) and not count.has_upper_bounds else None
    )
    if count.conversation.refers_elsewhere or (not states_window and stated_size is None):
        return ()  # part of the refused prompt is outside the body: nothing follows for the window
    if refusal_numbers.is_echo(
        refusal_body, count.conversation, limit, refusal.prompt or refusal.total or refusal.excess
    ):
        return ()
    lessons: list[Lesson] = []
    if states_window and limit is not None and limit < sent.window:
        lessons.append(
            StatedWindow(
                upstream=sent.upstream,
                model=sent.model,
                scope=sent.scope,
                conversation=sent.conversation_name,
                tokens=limit,
                prompt=prompt,
                counted=count.counted,
                sign=sign,
            )
        )
    if stated_size is not None:
        name = count.counter.name
        lessons.append(CountCompared(sent.upstream, sent.model, count.counted, stated_size, stated=True, counter=name))
    return tuple(lessons)


def from_answer(sent: Sent, bill: BilledPrompt | None, *, limit_unknown: bool = False) -> Learned:
    """Return the lessons of a good answer. ``limit_unknown`` is true if this request was refused before, without a believable
    limit."""
    if bill is None:
        return Learned((_accepted_size(sent, None),)) if limit_unknown else NOTHING_LEARNED
    verdict = bills.judge(sent.count, bill.prompt, bill.cached, sent.last_request)
    if verdict == "suspect":
        return NOTHING_LEARNED if sent.has_erratic_bills else _lessons_of_suspect_bill(sent, bill)
    if verdict == "unclear":
        return Learned((_comparison(sent, bill),)) if bill.prompt > sent.count.prompt else NOTHING_LEARNED
    return Learned(_lessons_of_whole_bill(sent, bill, limit_unknown=limit_unknown))


def _lessons_of_whole_bill(sent: Sent, bill: BilledPrompt, *, limit_unknown: bool) -> tuple[Lesson, ...]:
    """Return the lessons of a bill that covers everything that was sent."""
    count = sent.count
    lessons: list[Lesson] = [PromptRead(sent.upstream, sent.model, bill.prompt)]
    if limit_unknown:
        lessons.append(_accepted_size(sent, bill.prompt))
    if not count.has_upper_bounds:
        lessons.append(_comparison(sent, bill))
    if not count.folded and count.messages and bill.prompt > LEAST_ANCHOR_SHARE * sent.window:
        full = bill.prompt >= FULL_BILL_SHARE * count.counted
        covered, name = len(count.messages), sent.conversation_name
        lessons.append(ConversationBilled(sent.scope, name, Anchor(covered, bill.prompt, sent.fixed)))
        lessons.append(
            ConversationSeen(sent.upstream, sent.model, name, LastRequest(covered, covered, bill.prompt, full))
        )
    elif sent.last_request is not None and sent.last_request.suspicions:
        lessons.append(
            ConversationSeen(
                sent.upstream, sent.model, sent.conversation_name, replace(sent.last_request, suspicions=0)
            )
        )
    return tuple(lessons)


def _lessons_of_suspect_bill(sent: Sent, bill: BilledPrompt) -> Learned:
    """Return the lessons of a bill that is so small that the server probably truncated the prompt. The second one causes a
    warning, and this conversation is folded smaller."""
    before = sent.last_request or LastRequest(0)
    last = replace(before, covered=len(sent.count.conversation.messages), suspicions=before.suspicions + 1)
    name = sent.conversation_name
    seen = ConversationSeen(sent.upstream, sent.model, name, last)
    if last.suspicions < SUSPICIONS_BEFORE_WARNING:
        return Learned((seen,))
    warning = f"{TRUNCATED}; sent={sent.count.prompt}; read={bill.prompt}"
    window = bills.usual_window_for(bill.prompt)
    smaller = SmallerFold(
        upstream=sent.upstream, model=sent.model, scope=sent.scope, conversation=name,
        tokens=window, billed=bill.prompt, counted=sent.count.counted, sign=TRUNCATED,
    )  # fmt: skip
    return Learned((seen, smaller) if window < sent.window else (seen,), warning)


def _accepted_size(sent: Sent, billed: int | None) -> SmallerFold:
    """Return the lesson of a size that passed after a refusal without numbers: the next fold is no larger."""
    size = (sent.count.prompt if billed is None else billed) + sent.kept_free
    return SmallerFold(
        upstream=sent.upstream, model=sent.model, scope=sent.scope, conversation=sent.conversation_name,
        tokens=size, billed=billed, counted=sent.count.counted, sign=ACCEPTED,
    )  # fmt: skip


def _comparison(sent: Sent, bill: BilledPrompt) -> CountCompared:
    count = sent.count
    return CountCompared(sent.upstream, sent.model, count.counted, bill.prompt, counter=count.counter.name)
