"""What a refusal says about size: too long, too much output asked for, or nothing of the kind.

An answer is unwrapped (`unwrap`), said in a controlled language (`wording`) and held against an ordered table of signs;
the first that applies decides. The order is the point: what can only be about rates is ruled out before
anything else, what names the context window outright is believed next, and general words like "exceeds" are believed only
of what is left when output, images, tools and time are ruled out. Numbers are read by `sizes`.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from providers.overflow.phrases import phrase
from providers.overflow.sizes import proves, sizes
from providers.overflow.unfinished import read_unfinished
from providers.overflow.unwrap import LARGEST_BODY, Complaint, unwrap
from providers.overflow.wording import words
from providers.record import OutputTooLarge, Overflow, Refusal

OTHER_STATUSES: Final = frozenset({401, 402, 403, 404, 408, 409, 429, 499, 503, 504, 529})
"""Statuses that speak of something else: with them only sure signs are believed."""

PARTS: Final = {
    "PROMPT": "(length|total|given|limit|model|request|plus|#)* (prompt|context|token) NP",
    "NP": "(prompt|context|token|length|total|given|limit|model|request|plus|of|#|%|at_least)*",
    "FEW": "(~|length|limit|prompt|token|total|given|#)? " * 4,
}
"""Noun phrases of words about size: about a prompt, about anything; and a few words of any kind."""

ERROR_MARKS: Final = (b"rror", b"err", b'ode"', b"ail", b'sg"', b"essage", b"tatus", b"eason", b"ault")
"""What a JSON body that means an error has at least one of, in any spelling."""

Verdict = Literal["overflow", "output", "pass"]


@dataclass(frozen=True, slots=True)
class Sign:
    """One way of saying something about size, or about what could be taken for it."""

    name: str
    verdict: Verdict
    pattern: re.Pattern[str]
    sure: bool
    """Believed whatever the status says."""


def _signs(verdict: Verdict, patterns: dict[str, str], *, sure: bool = False) -> tuple[Sign, ...]:
    return tuple(Sign(name, verdict, phrase(pattern, PARTS), sure) for name, pattern in patterns.items())


LONG_CONTEXT: Final = 200_000
"""Tokens from which on Anthropic wants its long-context tier: https://platform.claude.com/docs/en/build-with-claude/context-windows"""

SIGNS: Final = (
    # A smaller window that is worded as a rate limit or as a missing permission.
    *_signs("overflow", {"long_context_tier": "tier"}, sure=True),
    # Whatever else such a text says, a shorter prompt is not what it asks for.
    *_signs(
        "pass",
        {
            "rate": "rate",
            "absent": "absent",
            "time_over": "over (limit|context|length)* time",
            "other_value": "(time|auth|field) (token|length|#)* (over|at_most|too_long)",
        },
        sure=True,
    ),
    # The output that was left over is negative: the prompt alone is larger than the window (vLLM, TensorRT-LLM).
    *_signs("overflow", {"no_output_left": "output at_least? #? given? #negative"}, sure=True),
    *_signs("output", {"no_output": "output at_least #1 given #0"}, sure=True),
    *_signs(
        "overflow",
        {
            "sum_over": "prompt (token|length|#|total|given)* (plus|total) (plus|total|limit|length|given|token|#)* output"
            " (token|length|total|at_least|given|#)* (over|at_most)"
        },
        sure=True,
    ),
    # max_tokens=4096 cannot be greater than max_model_len=2048: the output alone, the prompt is not spoken of.
    *_signs(
        "output",
        {"output_over_window": "output (token|given|length)* # (at_most|over) (model|limit|length)* context"},
        sure=True,
    ),
    *_signs(
        "pass",
        {"output_and_window": "output (token|given|length)* (at_most|over) (model|limit|length)* context"},
        sure=True,
    ),
    # Names the window outright.
    *_signs(
        "overflow",
        {
            "over_context": "(over|too_long|at_most) (length|token|model|limit|of|prompt)* context",
            "context_over": "context (length|token|limit|model|total|given|#)* (over|too_long)",
            "context_stated": "context (length|token|limit|model)* ~? # token? (.|plus|given)* (prompt|request|total|output|token|at_least|#)",
            "stated_context": "PROMPT (.|given|plus)* (limit|model)* context (limit|length)* #",
        },
        sure=True,
    ),
    # Speaks of something else.
    *_signs(
        "pass",
        {
            "other_subject": "(time|auth|media|field|tool) FEW (over|too_long|at_most)",
            "other_object": "(over|at_most|too_long|limit) (limit|length|prompt|#)* (time|media|auth|field)",
            "output_limit": "output prompt? (token|length|limit|given|model|#|~)* (too_long|over|at_most|at_least)",
            "limit_of_output": "(at_most|limit|over) (limit|length|token|model|#)* output",
        },
    ),
    # Strings and lists are measured in characters and items; only those that carry the conversation count.
    *_signs("overflow", {"prompt_string": "^ (~|.)* (prompt|request) (prompt|request)* .? string (too_long|#)"}),
    *_signs("pass", {"other_string": "string"}),
    # General ways of saying too long.
    *_signs(
        "overflow",
        {
            "prompt_over": "PROMPT ~? over by? at_most? ~? NP (limit|token|model|#)",
            "prompt_too_long": "PROMPT ~? too_long",
            "too_long_prompt": "too_long length? (prompt|token)",
            "limit_over": "(token|prompt|model) (length|token|limit|model|#|%)* limit NP over",
            "prompt_length_over": "(prompt|token|limit length|length limit) (token|length|limit|#)* over (.|#|%)",
            "prompt_length_over_end": "(prompt|token|limit length|length limit) (token|length|limit|#)* over $",
            "over_limit": "over (length|limit|model)* (prompt|token)",
            "prompt_at_most": "PROMPT at_most NP #",
            "range": "at_most prompt length #1 #",
            "excess": "excess",
            "over_number": "over # token? given #",
            "reduce_prompt": "reduce length? (prompt|context)",
            "context_alone": "^ ~? (model|limit)* context (length|limit)* # token? .? $",
            "request_over": "request length? over limit* (length|limit|%|token)",
            "request_too_long": "request length? too_long",
        },
    ),
)

NUMBERS: Final = Sign("numbers", "overflow", re.compile(""), sure=False)
"""No sign at all, but the statement gives a size and a smaller limit."""


def read_refusal(status: int, body: bytes, where: Literal["http", "sse"]) -> Refusal | None:
    """Read what an answer says about size; None when it is not about size."""
    if _is_plain(status, body):
        return None
    unfinished = read_unfinished(body) if status == 200 else None
    if unfinished is not None:
        return unfinished
    complaint = unwrap(body)
    said = [words(statement) for statement in complaint.statements]
    named = [words(name) for name in complaint.names]
    doubtful = status in OTHER_STATUSES
    for sign in SIGNS:
        if sign.sure or not doubtful:
            for place, text in enumerate(said + named):
                if sign.pattern.search(text):
                    return _refusal(sign, said[place:] + said[:place], complaint)
    if not doubtful:
        for place, text in enumerate(said):
            if proves(text):
                return _refusal(NUMBERS, said[place:] + said[:place], complaint)
    if status == 413 and not said and not named and not body.lstrip().startswith(b"<"):
        return Overflow(sign="bare_413")
    return None


def _is_plain(status: int, body: bytes) -> bool:
    """Whether nothing in an answer can be a complaint: the first events of healthy streams, embeddings and the like, which are long."""
    if b'"choices"' in body and b'"error"' not in body:
        return True
    return status == 200 and body[:1] in b"{[" and not any(mark in body[:LARGEST_BODY] for mark in ERROR_MARKS)


def _refusal(sign: Sign, said: list[str], complaint: Complaint) -> Refusal | None:
    """Make the value a sign stands for, with the numbers of the statement that showed it before those of the others."""
    if sign.verdict == "pass":
        return None
    found: dict[str, int] = {}
    for text in [*said, *(words(f"{name} {count}") for name, count in complaint.counts.items())]:
        found = sizes(text) | found
    if sign.verdict == "output":
        return OutputTooLarge(limit=0 if sign.name == "no_output" else found.get("limit"), sign=sign.name)
    prompt = found.get("prompt", found.get("bound"))
    limit, completion, total, excess = (found.get(role) for role in ("limit", "completion", "total", "excess"))
    implied = LONG_CONTEXT if sign.name == "long_context_tier" and limit is None else None
    if total is None and limit and excess:
        total = limit + excess
    counted = (prompt or total or 0, (prompt or 0) + (completion or 0))
    exact = ("prompt" in found or "bound" not in found) and (limit is None or limit + 1 not in counted)
    return Overflow(limit, prompt, completion, total, exact, excess, sign.name, implied)
