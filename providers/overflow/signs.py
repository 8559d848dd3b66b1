"""Decide what a refusal says about size: prompt too long, too much output requested, or nothing.

The body is unwrapped (`unwrap`), normalised to a controlled language (`wording`) and matched against an ordered table
of signs; the first match decides. The order matters. Statements that can only be about rates are excluded first.
Statements that name the context window are trusted next. General words like "exceeds" are trusted only after output,
images, tools and time are excluded. Numbers are read by `sizes`.
"""

from typing import Final, Literal

import msgspec

from providers.overflow.phrases import Phrase
from providers.overflow.sizes import ROLES, prove_overflow, sizes
from providers.overflow.unfinished import read_unfinished
from providers.overflow.unwrap import LARGEST_BODY, Complaint, unwrap
from providers.overflow.wording import normalise
from providers.record import OutputTooLarge, Overflow, Refusal

OTHER_STATUSES: Final = frozenset({401, 402, 403, 404, 408, 409, 429, 499, 503, 504, 529})
"""Statuses for other problems (rates, permissions, missing pages): only sure signs count with them."""

PARTS: Final = {
    "PROMPT": "(length|total|given|limit|model|request|plus|#)* (prompt|context|token) NP",
    "NP": "(prompt|context|token|length|total|given|limit|model|request|plus|of|#|%|at_least)*",
    "FEW": "(~|length|limit|prompt|token|total|given|#)? " * 4,
}
"""Noun phrases about size: one about a prompt, one about anything, and up to four words of any kind."""

ERROR_MARKS: Final = (b"rror", b"err", b'ode"', b"ail", b'sg"', b"essage", b"tatus", b"eason", b"ault")
"""Parts of field names; a JSON body that reports an error contains at least one of them, in any spelling."""

Meaning = Literal["overflow", "output", "pass"]


class Sign(msgspec.Struct, frozen=True):
    """One way to say something about size, or about a subject that could be mistaken for it."""

    name: str
    meaning: Meaning
    pattern: Phrase
    sure: bool
    """Whether it counts with every status, even those in `OTHER_STATUSES`."""


def _signs(meaning: Meaning, patterns: dict[str, str], *, sure: bool = False) -> tuple[Sign, ...]:
    return tuple(Sign(name, meaning, Phrase(pattern, PARTS), sure) for name, pattern in patterns.items())


LONG_CONTEXT: Final = 200_000
"""Tokens. Larger prompts need Anthropic's long-context tier:
https://platform.claude.com/docs/en/build-with-claude/context-windows"""

SIGNS: Final = (
    # A smaller window, reported as a rate limit or as a missing permission.
    *_signs("overflow", {"long_context_tier": "tier"}, sure=True),
    # A shorter prompt does not help here, whatever else the text says.
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
    # Negative room for output: the prompt alone is larger than the window (vLLM, TensorRT-LLM).
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
    # max_tokens=4096 cannot be greater than max_model_len=2048: only the output is too large.
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
    # Names the context window.
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
    # Is about another subject.
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
    # General wordings of "too long".
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

NUMBERS: Final = Sign("numbers", "overflow", Phrase(""), sure=False)
"""Used when no sign matches, but the statement gives a size and a smaller limit."""


def read_refusal(status: int, body: bytes) -> Refusal | None:
    """Return what the answer says about size, or None when it is not about size."""
    if _is_plain(status, body):
        return None
    unfinished = read_unfinished(body) if status == 200 else None
    if unfinished is not None:
        return unfinished
    complaint = unwrap(body)
    statements = [normalise(statement) for statement in complaint.statements]
    names = [normalise(name) for name in complaint.names]
    doubtful = status in OTHER_STATUSES
    for sign in SIGNS:
        if sign.sure or not doubtful:
            for index, text in enumerate(statements + names):
                if sign.pattern.search(text):
                    return _refusal(sign, statements[index:] + statements[:index], complaint)
    if not doubtful:
        for index, text in enumerate(statements):
            if prove_overflow(text):
                return _refusal(NUMBERS, statements[index:] + statements[:index], complaint)
    if status == 413 and not statements and not names and not body.lstrip().startswith(b"<"):
        return Overflow(sign="bare_413")
    return None


def prepare() -> None:
    """Compile all patterns in an idle moment, so that the first refusal need not wait for it."""
    normalise("")
    for pattern in (*(sign.pattern for sign in SIGNS), *ROLES):
        pattern.search("")


def _is_plain(status: int, body: bytes) -> bool:
    """Return whether an answer cannot be a refusal. This check is cheap, because the events of healthy streams and embeddings come here too."""
    if b'"choices"' in body and b'"error"' not in body:
        return True
    return status == 200 and body[:1] in b"{[" and not any(mark in body[:LARGEST_BODY] for mark in ERROR_MARKS)


def _refusal(sign: Sign, statements: list[str], complaint: Complaint) -> Refusal | None:
    """Return the refusal that a sign means. Numbers of the statement that matched take precedence over those of others."""
    if sign.meaning == "pass":
        return None
    found: dict[str, int] = {}
    for text in [*statements, *(normalise(f"{name} {count}") for name, count in complaint.counts.items())]:
        found = sizes(text) | found
    if sign.meaning == "output":
        return OutputTooLarge(limit=0 if sign.name == "no_output" else found.get("limit"), sign=sign.name)
    prompt = found.get("prompt", found.get("bound"))
    limit, completion, total, excess = (found.get(role) for role in ("limit", "completion", "total", "excess"))
    implied = LONG_CONTEXT if sign.name == "long_context_tier" and limit is None else None
    if total is None and limit and excess:
        total = limit + excess
    counted = (prompt or total or 0, (prompt or 0) + (completion or 0))
    exact = ("prompt" in found or "bound" not in found) and (limit is None or limit + 1 not in counted)
    return Overflow(limit, prompt, completion, total, exact, excess, sign.name, implied)
