"""The retry ladder: the first attempt, and the next one when the upstream says "too long".

This file only decides: it takes the numbers of a refusal and returns an attempt as bytes. Every attempt is strictly smaller than the
refused one, in messages or in requested output. If nothing smaller is left, the result is None.
"""

from math import ceil
from typing import Final

from msgspec import structs

from gateway.context.cache.marking import NO_TERMS
from gateway.context.count.calibration import MOST_RATIO
from gateway.context.count.message_cost import scaled
from gateway.context.cut.budget import Budget
from gateway.context.cut.rungs import RUNGS
from gateway.context.life.attempt import Attempt
from gateway.context.life.refusal_numbers import stated_prompt
from gateway.context.life.replies import Numbers, OutputLimit, StatedNumbers, ThinkingRejected
from gateway.context.life.task import LEAST_OUTPUT, Task
from gateway.context.write.draft import Step
from gateway.context.write.folding import fold_conversation
from gateway.wire.format import Conversation, Edits

HIGHEST_RUNG: Final = len(RUNGS) - 1
"""The number of the last rung."""

# When a refusal states no numbers, the next attempt must be small enough although window and tokenizer are unknown.
# An exact count means that only the window is wrong: one half. An estimate may combine a window of half the
# configured size with a tokenizer 2.5 times denser: one fifth, with a small reserve.
SHARE_WITHOUT_NUMBERS_EXACT: Final = 0.5
"""Share of our count of the refused prompt that the next attempt may have, if this count is exact."""
SHARE_WITHOUT_NUMBERS_ESTIMATE: Final = 0.18
"""The same for an estimated count."""
# The refusal states the limit but not the prompt: only the tokenizer is unknown.
SHARE_OF_LIMIT_EXACT: Final = 0.9
"""Share of the stated limit that the next attempt may have, if our count is exact."""
SHARE_OF_LIMIT_ESTIMATE: Final = 0.37
"""The same for an estimated count, whose tokenizer may be 2.5 times denser."""
LEAST_RETRY_RATIO: Final = 0.1
"""Ratio of an upstream's count to ours. A smaller one does not decide the next attempt. `LEAST_RATIO` is for what is learned."""

SPARE_TOKENS: Final = 16
"""Tokens that a lowered output leaves free, at least, besides the margin. They cost no history."""
SPARE_DIVISOR: Final = 25
"""Divisor of the prompt's tokens: a lowered output leaves so much free if that is more than `SPARE_TOKENS`."""


def unchanged_attempt(conversation: Conversation, model: str, window: int, prompt: int) -> Attempt:
    """Return an attempt with the client's own bytes; only the name of the model is replaced if it is an alias."""
    body = conversation.raw if model == conversation.model else conversation.format.encode(conversation, Edits(model))
    return Attempt(body, prompt, window)


def first_attempt(task: Task) -> Attempt:
    """Apply the cheapest sufficient remedy: none, a lower output limit, a fold."""
    if task.fits and task.cache.always:
        return _encode(task, Attempt(b"", task.prompt, task.window))
    if task.fits:
        return unchanged_attempt(task.conversation, task.model, task.window, task.prompt)
    left = task.window - task.margin - task.prompt
    if task.output_limit is not None and left >= task.least_output(task.window):
        return _with_output(task, Attempt(b"", task.prompt, task.window), _output_with_spare(task, left, task.prompt))
    return _fold(task, budget_of(task), ratio=1.0, rung=1)


def certainly_too_long(task: Task, attempt: Attempt) -> bool:
    """Return whether even this smallest form of a request is certainly too long, so that no upstream needs to be called.

    Learned facts do not decide this: a request that fits the configured window by the vocabulary alone is sent.
    """
    if task.fits:
        return False
    least = task.least_output(task.configured_window) if task.output_limit is not None else 1
    plain = sum(map(task.plain_counter.message, task.messages_of(attempt))) + task.plain_fixed
    return min(plain, attempt.prompt) * (1 - task.overcount) + least > max(task.configured_window, attempt.window)


def next_attempt(task: Task, attempt: Attempt, numbers: Numbers) -> Attempt | None:
    """Return a smaller attempt after a refusal; None without one."""
    if isinstance(numbers, OutputLimit):
        return _lower_output(task, attempt, numbers.limit)
    if isinstance(numbers, ThinkingRejected):
        return _without_thinking(task, attempt)
    return _fold_smaller(task, attempt, numbers)


def _lower_output(task: Task, attempt: Attempt, limit: int | None) -> Attempt | None:
    """Lower the output after a refusal about the output alone: to the largest one stated, or to the rest by our count."""
    if task.output_limit is None:
        return None
    current = attempt.output if attempt.output is not None else task.output_limit
    left = attempt.window - task.margin - attempt.prompt
    if limit is not None:
        # The limit may be the whole window ("cannot be greater than max_model_len"): leave the prompt its place.
        left = min(left, limit - attempt.prompt if limit > attempt.prompt else limit)
    target = min(left, current - 1)
    return _with_output(task, attempt, target) if target >= LEAST_OUTPUT else None


def _without_thinking(task: Task, attempt: Attempt) -> Attempt | None:
    """Return the same messages without the signed thinking that was rejected; None if it was removed before, or if there is none."""
    if not attempt.keeps_thinking:
        return None
    changed = _encode(
        task,
        structs.replace(
            attempt, keeps_thinking=False, steps=(*attempt.steps, Step("thinking", 0, "signature rejected"))
        ),
    )
    return changed if changed.body != attempt.body else None


def _fold_smaller(task: Task, attempt: Attempt, refusal: StatedNumbers) -> Attempt | None:
    """Fold to less than the refused attempt, on the lowest rung that gives less; None without one.

    The upstream's numbers take precedence over ours: its limit replaces the configured window if it is smaller, and its
    count of the prompt shows how far our count was too low.
    """
    output_limit = task.output_of(attempt)
    before = sum(map(task.counter.message, task.messages_of(attempt)))
    counted = before + task.fixed
    window = min(attempt.window, refusal.limit) if refusal.limit else attempt.window
    stated = _believed_prompt(refusal, attempt, output_limit, counted)
    # If the upstream counted fewer tokens than we did, only the window was wrong, and our count stays the safe one.
    ratio = attempt.ratio if stated is None else max(stated / max(counted, 1), min(1.0, attempt.ratio))
    reserve = task.reserve
    if stated is not None and refusal.limit:
        left = refusal.limit - stated
        if output_limit is not None and output_limit > left >= task.least_output(window):
            return _with_output(task, structs.replace(attempt, prompt=stated, window=window, ratio=ratio), left)
        reserve = max(reserve, refusal.completion or 0)
    cap = _cap(task, refusal, stated, ceil(counted * ratio), output_limit)
    budget = _budget(task, window, reserve, ratio=ratio, cap=cap, refused=True)
    for rung in range(max(attempt.rung, 1), HIGHEST_RUNG + 1):
        candidate = _fold(task, budget, ratio=ratio, rung=rung)
        if _is_smaller(task, candidate, before, output_limit):
            return candidate
    return None


def _believed_prompt(refusal: StatedNumbers, attempt: Attempt, output_limit: int | None, counted: int) -> int | None:
    """Return the refused prompt's tokens by the upstream's count; None if it states no number, or one too far from our count."""
    stated = stated_prompt(refusal, attempt, output_limit)
    if stated is None or not LEAST_RETRY_RATIO <= stated / max(counted, 1) <= MOST_RATIO:
        return None
    return stated


def _cap(task: Task, refusal: StatedNumbers, stated: int | None, ours: int, output_limit: int | None) -> int | None:
    """Return the most tokens of the next prompt, by our own count; None if the upstream's numbers say enough.

    ``stated`` is the upstream's count of the refused prompt, ``ours`` is our count of it.
    """
    if stated is None:
        return _cap_without_numbers(task, ours) if refusal.limit is None else _cap_by_limit(task, ours, refusal.limit)
    if refusal.limit and stated + (output_limit or refusal.completion or 0) > refusal.limit:
        return None
    # Without a limit, or if the prompt fits the limit, the refusal does not say by how much the prompt was too long.
    return _cap_without_numbers(task, ours)


def _cap_by_limit(task: Task, ours: int, limit: int) -> int:
    """Return the most tokens of the next prompt, by our own count, if the upstream states its limit and not the size of the prompt."""
    exact = task.counter.exact
    if ours > limit:
        return int(limit * (SHARE_OF_LIMIT_EXACT if exact else SHARE_OF_LIMIT_ESTIMATE))
    # Our count said that it fits this limit, so it is too low by an unknown factor.
    return int(ours * (SHARE_WITHOUT_NUMBERS_EXACT if exact else SHARE_OF_LIMIT_ESTIMATE))


def _cap_without_numbers(task: Task, ours: int) -> int:
    """Return the most tokens of the next prompt, by our own count, if the upstream states nothing that helps."""
    return int(ours * (SHARE_WITHOUT_NUMBERS_EXACT if task.counter.exact else SHARE_WITHOUT_NUMBERS_ESTIMATE))


def budget_of(task: Task) -> Budget:
    """Return the budget of a first fold, which decides where its cut is."""
    return _budget(task, task.window, task.reserve)


def _budget(
    task: Task, window: int, reserve: int, *, ratio: float = 1.0, cap: int | None = None, refused: bool = False
) -> Budget:
    """Return the budget of a fold to a window. The messages get at least half of it, so it may keep less than ``reserve`` free."""
    margin = ceil(task.fold_margin * window / max(task.window, 1))
    reserve = min(reserve, max(window // 2, 1))
    if cap is not None:
        # A cap limits the whole prompt; the rest of the window is kept free like a reserve.
        reserve = max(reserve, window - margin - max(cap, 1))
    return Budget(window, reserve, ceil(task.fixed * ratio), margin, task.least_output(window), refused)


def _fold(task: Task, budget: Budget, *, ratio: float, rung: int) -> Attempt:
    """Return a fold to a budget. ``ratio`` is that of the upstream's count to ours."""
    is_first_fold = rung == 1 and ratio == 1.0 and task.prepared is not None and task.prepared.budget == budget
    draft = fold_conversation(
        task.conversation.messages,
        budget,
        scaled(task.counter, ratio, task.conversation.memory),
        task.policy,
        rung=rung,
        summary=task.summary if rung < HIGHEST_RUNG else None,
        memory=task.conversation.memory,
        prepared=task.prepared if is_first_fold else None,
    )
    window, prompt = budget.window, draft.cost + budget.fixed
    attempt = Attempt(b"", prompt, window, rung, ratio, draft, None, draft.steps)
    left = window - budget.margin - prompt
    if task.output_limit is not None and left < task.output_limit:
        output = max(_output_with_spare(task, left, prompt), task.least_output(window))
        if output < task.output_limit:
            return _with_output(task, attempt, output)
    return _encode(task, attempt)


def _output_with_spare(task: Task, left: int, prompt: int) -> int:
    """Return an output limit slightly below the room that the prompt leaves: our count is not exact, and one token too many
    is refused."""
    return max(left - max(SPARE_TOKENS, prompt // SPARE_DIVISOR), min(left, task.least_output(task.window)))


def _with_output(task: Task, attempt: Attempt, output: int) -> Attempt:
    """Return the same messages with a lower output limit; the limit stays where the smallest output is as large."""
    before = task.output_of(attempt) or 0
    if output == before:
        return _encode(task, attempt)
    step = Step("max_tokens", max(before - output, 0), f"{before} -> {output}")
    return _encode(task, structs.replace(attempt, output=output, steps=(step, *attempt.steps)))


def _encode(task: Task, attempt: Attempt) -> Attempt:
    """Return the attempt with its bytes."""
    messages = attempt.draft.messages if attempt.draft else None
    may_drop_thinking = task.binds_thinking and attempt.keeps_thinking and messages is not None
    cache = task.cache if messages is not None or task.cache.always else NO_TERMS
    sent = cache.marked(messages or task.conversation.messages) if cache.style else messages
    edits = Edits(
        task.model,
        sent,
        attempt.output,
        attempt.keeps_thinking,
        may_drop_thinking=may_drop_thinking,
        added=cache.added(sent or ()),
    )
    return structs.replace(
        attempt, body=task.conversation.format.encode(task.conversation, edits), may_drop_thinking=may_drop_thinking
    )


def _is_smaller(task: Task, candidate: Attempt, before: int, output_limit: int | None) -> bool:
    """Return whether a candidate is strictly smaller than the refused request, whose messages cost ``before`` tokens: in
    its messages' cost, or in its output limit."""
    assert candidate.draft is not None
    after = sum(map(task.counter.message, candidate.draft.messages))
    if after != before or output_limit is None:
        return after < before
    return (candidate.output or output_limit) < output_limit
