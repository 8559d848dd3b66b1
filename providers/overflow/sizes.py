"""Assign roles to the numbers in a statement about size: limit, prompt, requested output.

This module reads the controlled language of `wording` with one ordered table. The first phrase that explains a number
decides its role; later phrases cannot change it. A number that no phrase explains has no role: nothing is guessed. This
module does not know whether a statement is a refusal.
"""

import re
from typing import Final

from providers.overflow.phrases import Phrase

SMALLEST_SIZE: Final = 16
"""Tokens. A smaller limit or prompt is not a size: "at least 1", an index, a minute."""

STATUSES: Final = frozenset({400, 401, 402, 403, 404, 408, 413, 422, 424, 429, 500, 502, 503, 504})
"""Numbers that many texts contain as HTTP statuses; no window has these sizes."""

LARGEST_UNNAMED: Final = 16_000_000
"""A larger number is in bytes, unless the statement speaks of tokens: the largest known windows have 10 million tokens.
"""

PARTS: Final = {
    "SIZE": "(length|token|model|total|request|given)*",
    "LIMIT": "(~ model|~ limit|~ context)? (prompt limit|prompt token limit|prompt length limit|limit prompt token|limit prompt length"
    "|limit prompt limit|limit prompt context|limit prompt request|prompt plus output|limit ~|model ~|context ~|model given|limit|context"
    "|length|token|model|total|request)*",
}
"""SIZE: words that may stand between a word and its number. LIMIT: names of a limit."""

ROLES: Final = tuple(
    Phrase(pattern, PARTS)
    for pattern in (
        # Whole calculations first, the longest before its parts.
        "#completion over #limit minus #prompt",  # 16384 > 32768 - 18954
        "context #limit minus ~? prompt length* #prompt",  # max_seq_len (8192) - prompt_len (8195)
        # 178959 + 64000 > 200000; prompt tokens (30000) and max_tokens (4096) exceed 32768
        "#prompt (token|prompt)* plus (limit|output|token|given)* #completion (token|output|limit|total)* (over|at_most) LIMIT #limit",
        # 131134 tokens (122942 in the messages, 58582 of tool input, 8192 in the completion)
        "#total token? #prompt token? given* prompt (prompt)* plus? #tool token? prompt? tool prompt? plus? (#completion|none) token? output",
        "#total token? #prompt token? given* prompt (prompt)* plus? (#completion|none) token? output",
        "#total token? #prompt token? given* prompt (prompt)* plus? #tool token? prompt? tool",
        "#total token? #prompt token? given* prompt",
        "prompt (token|length)* #prompt token? plus? limit? output (token|length)* #completion",  # prompt: 8500, max_tokens: 500
        "output (token|length)* #completion plus prompt (token|length)* #prompt",
        "#prompt (token|prompt)* plus (limit output|output|token)* #completion",  # given 3474 inputs and 60 max_new_tokens
        "prompt (token|length)* plus limit? output (token|length)* #total",  # input and maximum output tokens (35050)
        "prompt total #prompt token? (over|at_most) LIMIT #limit",
        "total SIZE #total token? (over|at_most) LIMIT #limit",
        "at_most (prompt|length|token)* (#0|#1) plus? #limit",  # range of input length should be [1, 983616]
        "over LIMIT by #excess",
        "#excess excess",
        # The requested output.
        "#completion token? output",
        "output (token|given|length)* too_long? #completion",
        # Lower bounds: the server stopped counting there.
        "(prompt|given) SIZE at_least #prompt",
        "total SIZE at_least #ignored",
        # 142907 > 131072; 8192 < 9000: the smaller number is the limit.
        "#one (token|prompt)* (over|at_most) LIMIT #other",
        "#one token? too_long #other",
        "over LIMIT #one token? of? #other",
        "over LIMIT #one token? (context|limit) LIMIT #other",
        "#one token? of #other",
        "#one token? given? #other token? .",
        "#one token? given? #other token? $",
        # "context window exceeded: 205000 tokens" may be either.
        "(limit|context) over #ignored token? .",
        "(limit|context) over #ignored token? $",
        # The limit.
        "over token #prompt LIMIT #limit",  # more tokens (9500) than this model allows (8192)
        "(over|at_most) LIMIT ~? #limit",
        "over prompt #limit",  # unable to fit the conversation into 8192 tokens
        "(limit prompt length|limit prompt token|limit|context) LIMIT ~? #limit",
        "#limit token? (limit|at_most|context)",
        "model (given|limit)* #limit",
        # Sum and prompt.
        "total SIZE #total",
        "(prompt|given|request) SIZE #prompt",
        "too_long length? #prompt",
        "#prompt token? given* (prompt|given|request|over)",
    )
)
"""Patterns that give numbers their roles, the surest first. Size decides which of ``one`` and ``other`` is the limit.
"""


def sizes(words: str) -> dict[str, int]:
    """Return limit, prompt, completion, total, excess and bound, as far as the texts state them.

    ``bound`` is a lower bound of the prompt, used when its exact size is not stated.
    """
    found, rest = _explain(words)
    known = {"prompt", "total", "completion", "excess"} & found.keys()
    if not known and "limit" in found and len(rest) == 1 and rest[0] > found["limit"]:
        found["prompt"] = rest[0]
    if "prompt" in found and "completion" not in found and "total" not in found and " prompt plus output " in words:
        found["total"] = found.pop("prompt")
    if "tool" in found:
        found["prompt"] = found.get("prompt", 0) + found.pop("tool")
    if f" at_least #{found.get('prompt')} " in words:
        found["bound"] = found.pop("prompt")
    return found


def prove_overflow(words: str) -> bool:
    """Return whether the numbers alone prove that a size is larger than its limit, whatever words stand between them."""
    found, _ = _explain(words)
    asked = max(found.get("total", 0), found.get("prompt", 0) + found.get("completion", 0))
    return asked > found.get("limit", asked) and bool(re.search(r" (?:prompt|context|token) ", words))


def _explain(words: str) -> tuple[dict[str, int], list[int]]:
    """Give the numbers their roles; return the roles and the numbers without a role."""
    numbers = [int(number) for number in re.findall(r" #(\d+)(?= )", words)]
    if not re.search(r" (?:token|context) ", words) and (" % " in words or max(numbers, default=0) > LARGEST_UNNAMED):
        return {}, []
    if " string " in words:
        return {}, []  # JSON-schema lengths: characters, or items of a list
    found: dict[str, int] = {}
    for role in ROLES:
        position = 0
        while match := role.search(words, position):
            position = match.start() + 1
            if _take_roles(found, match):
                words = words[: match.start()] + match[0].replace("#", "@") + words[match.end() :]
    rest = [int(number) for number in re.findall(r" #(\d+)(?= )", words)]
    return found, [number for number in rest if number >= SMALLEST_SIZE]


def _take_roles(found: dict[str, int], match: re.Match[str]) -> bool:
    """Add the roles of a match to ``found``, and return True; change nothing and return False if one of its numbers already has
    another role, or is not a size."""
    roles = {role: int(number[1:]) for role, number in match.groupdict().items() if number}
    if "one" in roles:
        one, other = roles["one"], roles["other"]
        if one == other:
            return False
        roles = {"prompt": max(one, other), "limit": min(one, other)}
    limit, prompt = roles.get("limit", SMALLEST_SIZE), roles.get("prompt", SMALLEST_SIZE)
    if min(limit, prompt) < SMALLEST_SIZE or limit in STATUSES or roles.get("completion") == 0:
        return False
    if any(found.get(role, number) != number for role, number in roles.items()):
        return False
    roles.pop("ignored", None)
    found |= roles
    return True
