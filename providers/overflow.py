"""What a refusal says about size: too long, too much output asked for, or nothing of the kind.

An answer is unwrapped (`unwrap`), said in a controlled language (`wording`) and held against an ordered table of signs;
the first that applies decides. The order is the point: what can only be about rates or output is ruled out
before a general word like "exceeds" is believed, and what names the context window outright is believed before that.
Numbers are read by `sizes`.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from providers.record import OutputTooLarge, Overflow, Refusal
from providers.sizes import sizes
from providers.unwrap import Complaint, unwrap
from providers.wording import words

NOT_SIZE: Final = frozenset({401, 402, 403, 404, 408, 409, 429, 499, 503, 504, 529})
"""Statuses with which only an outright mention of the context window is believed."""

NP: Final = r"(?:(?:prompt|context|token|length|total|given|limit|model|request|plus|of|#\d+|%|at_least) )*"
"""A noun phrase of words about size, numbers included."""

PROMPT: Final = rf"(?:(?:length|total|given|limit|model|request|plus|#\d+) )*(?:prompt|context|token) {NP}"
"""A noun phrase about the prompt, the context or tokens."""

OUTPUT: Final = r"(?<! plus)(?<! total)(?<! plus limit) output (?:(?:token|given|length) )*"
"""The output asked for, standing alone and not in a sum."""

Verdict = Literal["overflow", "output", "pass"]


@dataclass(frozen=True, slots=True)
class Sign:
    """One way of saying something about size. ``sure`` signs name the context window, others need a status that fits."""

    name: str
    verdict: Verdict
    pattern: re.Pattern[str]
    sure: bool = False


def _sign(name: str, verdict: Verdict, pattern: str, *, sure: bool = False) -> Sign:
    return Sign(name, verdict, re.compile(pattern), sure)


SIGNS: Final = (
    # Whatever else a text about rates says, a shorter prompt is not what it asks for.
    _sign("rate", "pass", r" rate ", sure=True),
    _sign(
        "other_value", "pass", r" (?:time|auth|field) (?:token |length |#\d+ )*(?:over|at_most|too_long) ", sure=True
    ),
    # The output that was left over is negative: the prompt alone is larger than the window (vLLM, TensorRT-LLM).
    _sign("no_output_left", "overflow", r" output (?:at_least )?(?:#\d+ )?(?:given )?#-\d+ ", sure=True),
    _sign("no_output", "output", r" output at_least #1 given #0 ", sure=True),
    # Prompt and output together.
    _sign(
        "sum_over",
        "overflow",
        r" prompt (?:(?:token|length|#\d+|total) )*(?:plus|total) (?:(?:plus|total|limit|length|given) )*output"
        r" (?:(?:token|length|total|at_least|#\d+) )*(?:over|at_most) ",
        sure=True,
    ),
    # max_tokens=4096 cannot be greater than max_model_len=2048: the output alone, the prompt is not spoken of.
    _sign(
        "output_over_window", "output", rf"{OUTPUT}#\d+ (?:at_most|over) (?:model |limit |length )*context ", sure=True
    ),
    _sign(
        "output_and_window", "pass", rf"{OUTPUT}(?:at_most|over|too_long) (?:model |limit |length )*context ", sure=True
    ),
    # Names the window outright.
    _sign(
        "over_context",
        "overflow",
        r" (?:over|too_long|at_most) (?:(?:length|token|model|limit|of|prompt) )*context ",
        sure=True,
    ),
    _sign(
        "context_over",
        "overflow",
        r" context (?:(?:length|token|limit|model|total|given|#\d+) )*(?:over|too_long) ",
        sure=True,
    ),
    _sign(
        "context_stated",
        "overflow",
        r" context (?:(?:length|token|limit|model) )*(?:~ )?#\d+ (?:token )?(?:\. |plus )*(?:given|prompt|request|total|output|#\d+) ",
        sure=True,
    ),
    _sign(
        "stated_context",
        "overflow",
        rf" {PROMPT}(?:\. |given |plus )*(?:limit |model )*context (?:limit |length )*#\d+ ",
        sure=True,
    ),
    # Speaks of something else.
    _sign(
        "other_subject",
        "pass",
        r" (?:time|auth|media|field|tool) (?:(?:~|length|limit|prompt|token|total|given|#\d+) ){0,4}(?:over|too_long|at_most) ",
    ),
    _sign(
        "other_object",
        "pass",
        r" (?:over|at_most|too_long|limit) (?:(?:limit|length|prompt|#\d+) )*(?:time|media|auth|field) ",
    ),
    _sign(
        "output_limit",
        "pass",
        r" output (?:(?:token|length|limit|given|model|#-?\d+|~) ){0,5}(?:too_long|over|at_most|at_least) ",
    ),
    _sign("limit_of_output", "pass", r" (?:at_most|limit|over) (?:(?:limit|length|token|model|#\d+) )*output "),
    # Strings and lists are measured in characters and items; only those that carry the conversation count.
    _sign("prompt_string", "overflow", r"^ (?:~ |\. )*(?:prompt |request )+(?:\. )?string (?:too_long|#\d+) "),
    _sign("other_string", "pass", r" string "),
    # General ways of saying too long.
    _sign("prompt_over", "overflow", rf" {PROMPT}(?:~ )?over (?:by )?(?:~ )?{NP}(?:limit|length|token|model|#\d+) "),
    _sign("prompt_too_long", "overflow", rf" {PROMPT}(?:~ )?too_long "),
    _sign("too_long_prompt", "overflow", r" too_long (?:length )?(?:prompt|token) "),
    _sign("limit_over", "overflow", rf" (?:token|prompt|model) (?:(?:length|token|limit|model|#\d+) )*limit {NP}over "),
    _sign(
        "prompt_length_over",
        "overflow",
        r" (?:(?:prompt|limit) (?:(?:token|length|limit|#\d+) )+|prompt )over (?:[.#%]|$)",
    ),
    _sign("over_limit", "overflow", r" over (?:(?:length|limit|model) )*(?:prompt|token) "),
    _sign("prompt_at_most", "overflow", rf" {PROMPT}at_most {NP}#\d+ "),
    _sign("range", "overflow", r" at_most prompt length #1 #\d+ "),
    _sign(
        "limit_given",
        "overflow",
        r" (?=(?:\w+ ){0,4}limit )(?:(?:limit|length|model) )*(?:prompt|token) (?:(?:prompt|token|length|limit|model) )*#\d+ (?:token )?"
        r"(?:\. )?(?:given|prompt|request) (?:(?:given|prompt|token|length|request) )*#\d+ ",
    ),
    _sign("given_limit", "overflow", rf" {PROMPT}#\d+ (?:token )?(?:\. |given )*(?:model |length )*limit {NP}#\d+ "),
    _sign("over_number", "overflow", r" over #\d+ (?:token )?given #\d+ "),
    _sign("reduce_prompt", "overflow", r" reduce (?:length )?prompt "),
    _sign("request_over", "overflow", r" request (?:length )?(?:too_long|over (?:limit )*(?:length|limit|%|token)) "),
)


def read_refusal(status: int, body: bytes, where: Literal["http", "sse"]) -> Refusal | None:
    """Read what an answer says about size; None when it is not about size."""
    if b'"choices"' in body and b'"error"' not in body:
        return None
    complaint = unwrap(body)
    said = [words(statement) for statement in complaint.statements]
    named = [words(name) for name in complaint.names]
    sure = status in NOT_SIZE
    for sign in SIGNS:
        if sure and not sign.sure:
            continue
        for place, text in enumerate(said + named):
            if sign.pattern.search(text):
                return _refusal(sign, said[place:] + said[:place] if place < len(said) else said, complaint)
    if status == 413 and not said and not named and body[:1] != b"<":
        return Overflow(sign="bare_413")
    return None


def _refusal(sign: Sign, said: list[str], complaint: Complaint) -> Refusal | None:
    if sign.verdict == "pass":
        return None
    found: dict[str, int] = {}
    for text in [*said, *(words(f"{name} {count}") for name, count in complaint.counts.items())]:
        found = sizes(text) | found
    if sign.verdict == "output":
        return OutputTooLarge(limit=0 if sign.name == "no_output" else found.get("limit"), sign=sign.name)
    prompt = found.get("prompt", found.get("bound"))
    limit, total, excess = found.get("limit"), found.get("total"), found.get("excess")
    if total is None and limit and excess:
        total = limit + excess
    counted = total if prompt is None else prompt
    exact = "prompt" in found or "bound" not in found
    exact = exact and (limit is None or limit + 1 not in (counted, (prompt or 0) + found.get("completion", 0)))
    return Overflow(limit, prompt, found.get("completion"), total, exact, excess, sign.name)
