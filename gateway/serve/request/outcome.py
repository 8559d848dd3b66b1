"""The outcome of a request, from its last state: for the response headers and for its record."""

import time
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gateway.context.count.proof import is_self_contained
from gateway.context.life.attempt import Attempt
from gateway.context.life.states import Answered, Chosen, Measured, Received, State, TooLarge, Unreachable, Visit
from gateway.context.life.task import Task
from gateway.observe.exchange import CLIENT_GONE, Action, Call, Exchange, Why
from gateway.serve.incoming import headers as ours
from gateway.serve.incoming.errors import OUR_FAULT
from gateway.serve.record import LONGEST_NAME, name_of
from gateway.serve.request.contents import AttemptContents, contents_of
from gateway.serve.request.place import place_at
from providers.record import Usage


class Times(msgspec.Struct, eq=False):
    """Times at which a request reached certain points, in seconds of `time.perf_counter`; 0 for a point not reached."""

    arrived: float
    read: float = 0.0
    """The body was read completely."""
    decided: float = 0.0
    """The first attempt was ready."""
    first_byte: float = 0.0
    """The answer began."""


class Delivery(msgspec.Struct, frozen=True):
    """What the client got in the end."""

    status: int
    error: str = ""
    """Code of our own error, or kind of the upstream's or client's fault; empty if the client has the upstream's whole answer."""
    usage: Usage | None = None
    warning: str = ""
    """A warning because of what the answer says, such as a suspiciously small bill."""


class Traffic(msgspec.Struct, frozen=True):
    """The part of a request's record that its state does not hold: who sent it, where to, and which calls were made for it."""

    request_id: str
    method: str = ""
    path: str = ""
    client: str = ""
    key: str = ""
    session: str = ""
    caller: str = ""
    """The hash of the caller's credentials."""
    answer_bytes: int = 0
    calls: tuple[Call, ...] = ()
    contents: AttemptContents | None = None
    """What the last attempt sends and leaves out."""


class Outcome(msgspec.Struct, frozen=True):
    """The last state of a request, in the words of headers and records."""

    state: State
    visit: Visit | None
    attempt: Attempt | None
    shown: Attempt | None
    """The attempt that headers and record describe: the one that was sent or, in mode observe, the one that would have been sent."""
    task: Task | None
    action: Action
    why: Why
    bounded: bool
    """Whether the tokens were not counted, and are at most the body's size in bytes."""

    @property
    def window(self) -> int:
        """The window of the attempt, in tokens; without an attempt, that of the last place; 0 if none was found."""
        if self.shown is not None:
            return self.shown.window
        return self.visit.place.window if self.visit is not None else 0


def of(state: State) -> Outcome:
    """Return the outcome of a request in its last state: used for its headers and its record."""
    visit: Visit | None = getattr(state, "visit", None)
    attempt: Attempt | None = getattr(state, "attempt", None)
    shown = (visit.planned if visit is not None else None) or attempt
    task = visit.task if visit is not None else None
    bounded = visit is not None and (
        visit.fit_proven or (state.life.mode == "off" and is_self_contained(state.life.conversation))
    )
    too_long = isinstance(state, Answered) and state.too_long and state.life.mode == "enforce"
    return Outcome(
        state,
        visit,
        attempt,
        shown,
        task,
        _action(state, attempt, too_long),
        _why(state, visit, attempt, too_long),
        bounded,
    )


def headers(outcome: Outcome, request_id: str, warning: str = "") -> dict[str, str]:
    """Return the response headers that say what the gateway did; numbers are tokens."""
    state, visit, shown, task = outcome.state, outcome.visit, outcome.shown, outcome.task
    fields: dict[str, str] = {ours.REQUEST_ID: request_id, ours.ACTION: outcome.action, ours.WHY: outcome.why}
    if visit is not None:
        fields[ours.WINDOW] = str(outcome.window)
        if task is not None:
            fields[ours.TOKENS_BEFORE] = str(task.prompt)
            fields[ours.TOKENS_AFTER] = str(shown.prompt if shown else None)
        elif outcome.bounded:
            fields[ours.TOKENS_BEFORE] = fields[ours.TOKENS_AFTER] = f"<={len(state.life.conversation.raw)}"
    fields[ours.TURNS_FOLDED] = str(shown.turns_folded if shown else 0)
    fields[ours.ATTEMPTS] = str(state.life.calls)
    if warnings := _warnings(outcome, warning):
        fields[ours.WARNING] = warnings
    return fields


def exchange(outcome: Outcome, traffic: Traffic, times: Times, delivery: Delivery) -> Exchange:
    """Return the record of a request for all observers."""
    life, visit, usage = outcome.state.life, outcome.visit, delivery.usage
    total_s = time.perf_counter() - times.arrived
    record = Exchange(
        request_id=traffic.request_id,
        upstream="",
        model=life.conversation.model[:LONGEST_NAME],
        entry="",
        action=outcome.action,
        status=delivery.status,
        stream=life.conversation.stream,
        window=outcome.window,
        tokens_before=None,
        tokens_after=None,
        basis="bytes" if outcome.bounded else "",
        attempts=life.calls,
        refusals=life.refusals,
        why=_why_of_record(outcome, delivery),
    )
    # Field by field, because that is quicker: see `Exchange`.
    record.warning = _warnings(outcome, delivery.warning)
    record.error = delivery.error
    record.body_bytes = len(life.conversation.raw)
    record.decided_s = max(times.decided - times.read, 0.0)
    record.first_byte_s = max(times.first_byte - times.arrived, 0.0)
    record.total_s = total_s
    record.mode = life.mode
    record.format = life.conversation.format.name
    record.key = traffic.key
    record.at = time.time() - total_s
    record.client = traffic.client
    record.method = traffic.method
    record.path = traffic.path
    record.session = traffic.session
    record.conversation = name_of(traffic.caller, life.conversation.opening)
    record.answer_bytes = traffic.answer_bytes
    record.calls = traffic.calls
    record.caller = traffic.caller
    if visit is not None:
        place = place_at(visit)
        record.upstream, record.model_used = place.target.name, place.model[:LONGEST_NAME]
        record.entry = place.window_source
    if usage is not None:
        record.set_bill(usage)
    return replace(record, **counts(outcome, traffic.contents)) if outcome.task is not None else record


def counts(outcome: Outcome, known: AttemptContents | None) -> dict[str, Any]:
    """Return the fields of a record that a count gives; none without a count. ``known`` are the contents of the last attempt."""
    task, shown = outcome.task, outcome.shown
    if task is None:
        return {}
    fields = {"tokens_before": task.prompt, "basis": task.basis}
    if shown is None:
        return fields
    contents = contents_of(task, shown, known)
    return fields | {
        "tokens_after": shown.prompt,
        "turns_folded": shown.turns_folded,
        "steps": shown.steps,
        "question_kept": _share_kept(shown),
        "reserve": task.output_of(shown) or task.reserve,
        "lost": contents.lost,
        "parts": contents.parts,
    }


_UNDECIDED: Final = frozenset({Received, Chosen, Measured})
"""States before the first attempt."""
_NO_ANSWER: Final = frozenset({TooLarge, Unreachable})
"""States in which no answer of an upstream is forwarded."""


def _action(state: State, attempt: Attempt | None, too_long: bool) -> Action:
    """Return the action in one word, as in headers, log and metrics."""
    life = state.life
    if too_long or type(state) in _NO_ANSWER:
        return "error"
    if life.mode != "enforce":
        return life.mode
    if life.calls > 1 and life.refusals:
        return "retry"
    return "fold" if attempt is not None and attempt.altered else "none"


def _why(state: State, visit: Visit | None, attempt: Attempt | None, too_long: bool) -> Why:
    """Return the reason for the action, in one word."""
    if visit is None or visit.failed:  # none of a request that was passed on
        return "failed"
    if too_long or type(state) is TooLarge:
        return "too_large"
    if state.life.mode != "enforce":
        return state.life.mode
    if attempt is not None and attempt.altered:
        return "folded" if attempt.draft is not None else "lowered"
    if state.life.conversation.refers_elsewhere:
        return "stateful"
    return "proven" if visit.fit_proven else "fits"


def _why_of_record(outcome: Outcome, delivery: Delivery) -> Why:
    """Return the reason for the record: that in the headers, unless a fault of ours or the client ended the request before an attempt was made."""
    if delivery.error == OUR_FAULT.code:
        return "failed"
    if delivery.error == CLIENT_GONE and type(outcome.state) in _UNDECIDED:
        return "left"
    return outcome.why


def _share_kept(shown: Attempt) -> float | None:
    """Return the share of the question that is sent; None when it is sent whole."""
    kept = shown.draft.question_kept if shown.draft is not None else None
    return None if kept is None else round(kept.characters / max(kept.total, 1), 3)


def _warnings(outcome: Outcome, learned: str) -> str:
    """Return all warnings for the client, separated by ``, ``."""
    attempt, task = outcome.attempt, outcome.task
    warnings: list[str] = []
    if attempt is not None and attempt.output is not None and task is not None:
        warnings.append(f"max-tokens-lowered; {task.output_limit} -> {attempt.output}")
    kept = attempt.draft.question_kept if attempt is not None and attempt.draft is not None else None
    if kept is not None:
        warnings.append(f"question-cut; kept={kept.characters}/{kept.total}")
    if learned:
        warnings.append(learned)
    return ", ".join(warnings)
