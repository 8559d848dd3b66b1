"""The response headers and the record of a request, both computed from its state."""

import time
from dataclasses import dataclass

from gateway.context.count.tokens import self_contained
from gateway.context.life import identity
from gateway.context.life.ladder import Attempt, Task
from gateway.context.life.states import Answered, PassedOn, State, TooLarge, Unreachable, Visit
from gateway.observe.exchange import Action, Call, Exchange, Lost, Why
from gateway.serve import plan
from gateway.serve.errors import OUR_FAULT
from gateway.serve.record import LONGEST_NAME
from gateway.serve.window import Portrait, portrait
from providers.record import Usage


@dataclass(slots=True)
class Times:
    """Times at which a request reached certain points, in seconds of `time.perf_counter`; 0 for a point not reached."""

    arrived: float
    read: float = 0.0
    """The body was read completely."""
    decided: float = 0.0
    """The first attempt was ready."""
    first_byte: float = 0.0
    """The answer began."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How forwarding the answer ended."""

    status: int
    error: str = ""
    """Code of our own error, or kind of the upstream's or client's fault; empty otherwise."""
    usage: Usage | None = None
    warning: str = ""
    """A warning that the answer gave reason for."""
    delivered: bool = False
    """The client has the whole answer, so its leaving is not an error."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from and where it went: the part of its record that no state knows."""

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
    portrait: Portrait | None = None
    """A description of the last attempt."""


def headers(state: State, request_id: str, warning: str = "") -> dict[str, str]:
    """Return the response headers that describe the gateway's actions; numbers are tokens."""
    visit, shown = _visit(state), _shown(state)
    found = {"x-turnfold-request-id": request_id, "x-turnfold-action": action(state), "x-turnfold-why": why(state)}
    if visit is not None:
        found["x-turnfold-window"] = str(shown.window if shown else visit.place.window)
        if visit.task is not None:
            found["x-turnfold-tokens-before"] = str(visit.task.prompt)
            found["x-turnfold-tokens-after"] = str(shown.prompt if shown else None)
        elif _bounded(state, visit):
            found["x-turnfold-tokens-before"] = found["x-turnfold-tokens-after"] = f"<={len(state.life.request.raw)}"
    found["x-turnfold-turns-folded"] = str(shown.turns_folded if shown else 0)
    found["x-turnfold-attempts"] = str(state.life.calls)
    if warnings := _warnings(state, warning):
        found["x-turnfold-warning"] = warnings
    return found


def exchange(state: State, origin: Origin, times: Times, ending: Ending) -> Exchange:
    """Return the frozen record for all observers. ``state`` is the last state of the request."""
    life, visit, shown, usage = state.life, _visit(state), _shown(state), ending.usage
    total_s = time.perf_counter() - times.arrived
    task = visit.task if visit else None
    place = plan.place_at(visit) if visit else None
    seen = _portrait(task, shown, origin.portrait)
    return Exchange(
        request_id=origin.request_id,
        upstream=place.target.name if place else "",
        model=life.request.model[:LONGEST_NAME],
        entry=place.entry if place else "",
        action=action(state),
        status=ending.status,
        stream=life.request.stream,
        window=shown.window if shown else 0,
        tokens_before=task.prompt if task else None,
        tokens_after=shown.prompt if shown and task else None,
        basis=task.basis if task else "bytes" if visit and _bounded(state, visit) else "",
        turns_folded=shown.turns_folded if shown else 0,
        attempts=life.calls,
        refusals=life.refusals,
        steps=shown.steps if shown else (),
        why="failed" if ending.error == OUR_FAULT.code else why(state),
        warning=_warnings(state, ending.warning),
        error=ending.error,
        prompt_tokens=usage.prompt if usage else None,
        completion_tokens=usage.completion if usage else None,
        cached_tokens=usage.cached if usage else None,
        written_tokens=usage.written if usage else None,
        body_bytes=len(life.request.raw),
        decided_s=max(times.decided - times.read, 0.0),
        first_byte_s=max(times.first_byte - times.arrived, 0.0),
        total_s=total_s,
        mode=life.mode,
        format=life.request.format.name,
        question_kept=_share_kept(shown),
        key=origin.key,
        at=time.time() - total_s,
        client=origin.client,
        method=origin.method,
        path=origin.path,
        session=origin.session,
        conversation=identity.name_of(origin.caller, life.request.opening),
        model_used=place.model[:LONGEST_NAME] if place else "",
        answer_bytes=origin.answer_bytes,
        reserve=task.output_of(shown) or task.reserve if task and shown else 0,
        calls=origin.calls,
        lost=seen.lost if seen else Lost(),
        parts=seen.parts if seen else None,
        caller=origin.caller,
    )


def _portrait(task: Task | None, shown: Attempt | None, known: Portrait | None) -> Portrait | None:
    if known is not None and known.attempt is shown:
        return known
    return portrait(task, shown) if task and shown else None


def action(state: State) -> Action:
    """Return the action in one word, as in headers, log and metrics."""
    life = state.life
    if isinstance(state, (TooLarge, Unreachable)) or _too_long_everywhere(state):
        return "error"
    if life.mode != "enforce":
        return life.mode
    if life.calls > 1 and life.refusals:
        return "retry"
    attempt = _attempt(state)
    return "fold" if attempt is not None and attempt.altered else "none"


def why(state: State) -> Why:
    """Return the reason for the action, in one word."""
    life, visit = state.life, _visit(state)
    if isinstance(state, PassedOn) or visit is None or visit.failed:
        return "failed"
    if isinstance(state, TooLarge) or _too_long_everywhere(state):
        return "too_large"
    if life.mode != "enforce":
        return life.mode
    return _enforced(state, visit)


def _enforced(state: State, visit: Visit) -> Why:
    attempt = _attempt(state)
    if attempt is not None and attempt.altered:
        return "folded" if attempt.draft is not None else "lowered"
    if state.life.request.refers_elsewhere:
        return "stateful"
    return "proven" if visit.proven else "fits"


def _too_long_everywhere(state: State) -> bool:
    return isinstance(state, Answered) and state.too_long and state.life.mode == "enforce"


def _visit(state: State) -> Visit | None:
    return getattr(state, "visit", None)


def _attempt(state: State) -> Attempt | None:
    return getattr(state, "attempt", None)


def _shown(state: State) -> Attempt | None:
    """Return the attempt that headers and record describe: in mode observe, the one that was not sent."""
    visit = _visit(state)
    return (visit.planned if visit else None) or _attempt(state)


def _bounded(state: State, visit: Visit) -> bool:
    """Return whether nothing was counted, and the body's size in bytes bounds its tokens."""
    return visit.proven or (state.life.mode == "off" and self_contained(state.life.request))


def _share_kept(shown: Attempt | None) -> float | None:
    kept = shown.draft.question_kept if shown is not None and shown.draft is not None else None
    return None if kept is None else round(kept.characters / max(kept.total, 1), 3)


def _warnings(state: State, learned: str) -> str:
    """Return all warnings for the client, separated by ``, ``."""
    visit, attempt = _visit(state), _attempt(state)
    found: list[str] = []
    if attempt is not None and attempt.output is not None and visit is not None and visit.task is not None:
        found.append(f"max-tokens-lowered; {visit.task.asked} -> {attempt.output}")
    kept = attempt.draft.question_kept if attempt is not None and attempt.draft is not None else None
    if kept is not None:
        found.append(f"question-cut; kept={kept.characters}/{kept.total}")
    if learned:
        found.append(learned)
    return ", ".join(found)
