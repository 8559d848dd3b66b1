"""The numbers in a statement about size: which one is the limit, which the prompt, which the output asked for.

It reads the controlled language of `wording` with one ordered table: the first pattern that explains a number has it, and
no later one may explain it otherwise. A number that nothing explains stays unexplained: nothing is invented. This file does
not know whether a statement is a refusal at all; it is only asked about those that are.
"""

import re
from typing import Final

SMALLEST: Final = 16
"""A smaller limit or prompt is none: "at least 1", an index, a minute."""

LARGEST_UNNAMED: Final = 16_000_000
"""A number so large is bytes, unless the statement speaks of tokens."""

SIZE: Final = r"(?:(?:length|token|model|total|request|given) )*"
"""What may stand between a word and its number."""

LIMIT: Final = (
    r"(?:(?:length|token|total|request) |model (?:given )?)*"
    r"(?:prompt (?=(?:token |length )*limit )|limit prompt (?=token |length |limit |context )|(?:limit )?prompt plus output |limit |(?<=limit )(?:~ )"
    r"|context (?:~ (?=#))?|length |token |model (?:given )?|total |request )*"
)
"""What a limit may be called: ``limit prompt length``, ``context``, ``model limit context length``."""

ROLES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # Whole calculations first, the longest before its parts.
        # 16384 > 32768 - 18954
        r" (?P<completion>#\d+) over (?P<limit>#\d+) minus (?P<prompt>#\d+) ",
        # max_seq_len (8192) - prompt_len (8195)
        r" context (?P<limit>#\d+) minus (?:~ )*prompt (?:length )*(?P<prompt>#\d+) ",
        # 178959 + 64000 > 200000; prompt tokens (30000) and max_tokens (4096) exceed 32768
        r" (?P<prompt>#\d+) (?:token |prompt )*plus (?:limit |output |token |given )*(?P<completion>#\d+) "
        rf"(?:token |output |limit |total )*(?:over|at_most) {LIMIT}(?P<limit>#\d+) ",
        # 131134 tokens (122942 in the messages, 58582 of tool input, 8192 in the completion)
        r" (?P<total>#\d+) (?:token )?(?P<prompt>#\d+) (?:token )?(?:given )*(?:prompt )+(?:plus )?"
        r"(?:(?P<tool>#\d+) (?:token )?(?:prompt )?tool (?:prompt )?(?:plus )?)?(?:(?P<completion>#\d+|none) (?:token )?output )?",
        # prompt: 8500, max_tokens: 500
        r" prompt (?:token |length )*(?P<prompt>#\d+) (?:token )?(?:plus )?(?:limit )?output (?:token |length )*(?P<completion>#\d+) ",
        # input 30000 + output 4096; given 3474 inputs and 60 max_new_tokens
        r" (?P<prompt>#\d+) (?:token |prompt )*plus (?:limit |output |token )*(?P<completion>#\d+) ",
        # the sum of prompt and output tokens (35050)
        r" prompt (?:token |length )*plus (?:limit )?output (?:token |length )*(?P<total>#\d+) ",
        rf" total {SIZE}(?P<total>#\d+) (?:token )?(?:over|at_most) {LIMIT}(?P<limit>#\d+) ",
        # Range of input length should be [1, 983616]
        r" at_most prompt length #1 (?P<limit>#\d+) ",
        r" over by (?P<excess>#\d+) ",
        # the output asked for
        r" (?P<completion>#\d+) (?:token )?output ",
        r" output (?:token |given |length )*(?P<completion>#\d+) ",
        # a bound: the server stopped counting there
        rf" (?:prompt|given) {SIZE}at_least (?P<bound>#\d+) ",
        rf" total {SIZE}at_least (?P<ignored>#\d+) ",
        # 142907 > 131072; 8192 < 9000 prompt tokens: the limit is the smaller one
        rf" (?P<one>#\d+) (?:token |prompt )*(?:over|at_most) {LIMIT}(?P<other>#\d+) ",
        rf" over {LIMIT}(?P<one>#\d+) (?:token )?(?:of )?(?P<other>#\d+) ",
        r" (?P<one>#\d+) (?:token )?of (?P<other>#\d+) ",
        r" (?P<one>#\d+) (?:token )?(?P<other>#\d+) (?:token )?(?:\. |$)",
        # the limit
        rf" (?:over|at_most) {LIMIT}(?P<limit>#\d+) ",
        rf" (?=limit |context ){LIMIT}(?P<limit>#\d+) ",
        r" (?P<limit>#\d+) (?:token )?(?:limit|at_most|context) ",
        # sum and prompt
        rf" total {SIZE}(?P<total>#\d+) ",
        rf" (?:prompt|given|request) {SIZE}(?P<prompt>#\d+) ",
        r" too_long (?:length )?(?P<prompt>#\d+) ",
        r" (?P<prompt>#\d+) (?:token )?(?:given )*(?:prompt|given|over) ",
    )
)
"""Roles by pattern, the surest first. ``one`` and ``other`` are told apart by their size."""


def sizes(words: str) -> dict[str, int]:
    """Read limit, prompt, completion, total, excess and bound where the words state them.

    ``bound`` is a prompt of which only a lower bound is stated.
    """
    numbers = [int(number) for number in re.findall(r" #(\d+)(?= )", words)]
    if not re.search(r" (?:token|context) ", words) and (" % " in words or max(numbers, default=0) > LARGEST_UNNAMED):
        return {}
    if " string " in words:
        return {}  # JSON-schema lengths: characters, or items of a list
    found: dict[str, int] = {}
    for role in ROLES:
        position = 0
        while match := role.search(words, position):
            position = match.start() + 1
            if _agrees(found, match):
                explained = match[0].replace("#", "@")
                words = words[: match.start()] + explained + words[match.end() :]
    _explain_rest(found, [int(number) for number in re.findall(r" #(\d+)(?= )", words)])
    if "prompt" in found and "completion" not in found and "total" not in found and " prompt plus output " in words:
        found["total"] = found.pop("prompt")
    if "tool" in found:
        found["prompt"] = found.get("prompt", 0) + found.pop("tool")
    return found


def _agrees(found: dict[str, int], match: re.Match[str]) -> bool:
    """Take the roles of a match, unless one of them is known to be something else or is no size."""
    roles = {role: int(number[1:]) for role, number in match.groupdict().items() if number and number[1:].strip("0oen")}
    if "one" in roles:
        one, other = roles["one"], roles["other"]
        roles = {"prompt": max(one, other), "limit": min(one, other)}
    if min(roles.get("limit", SMALLEST), roles.get("prompt", SMALLEST)) < SMALLEST:
        return False
    if any(found.get(role, number) != number for role, number in roles.items()):
        return False
    roles.pop("ignored", None)
    found |= roles
    return True


def _explain_rest(found: dict[str, int], rest: list[int]) -> None:
    """Explain a single number left over by what it must be: the prompt does not fit the limit."""
    known = {"prompt", "bound", "total", "completion", "excess"} & found.keys()
    rest = [number for number in rest if number >= SMALLEST]
    if not known and "limit" in found and len(rest) == 1 and rest[0] > found["limit"]:
        found["prompt"] = rest[0]
    elif not found and len(rest) == 2 and rest[0] != rest[1]:
        found |= {"prompt": max(rest), "limit": min(rest)}
