"""Arguments that have one value in nearly every call of a tool, such as a time limit that a program always sets."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from gateway.context import weights
from gateway.context.read.line import CALL
from gateway.context.weigh.folded_lines import FoldedLines

ARGUMENT: Final = re.compile(r"(?:(?<=\()|, )(\w++=[^\s,()]++)(?=[,)])")
"""An argument of one word in the line of a call, with its key, and with the comma before it unless it is the first one."""

_FIRST_COMMA: Final = re.compile(r"(?<=\w\(), ")


def tool_in(call: str) -> str:
    """Return the tool in the line of a call."""
    return call.partition("(")[0]


def common_arguments_of(pool: FoldedLines) -> Mapping[str, frozenset[str]]:
    """Return for each tool the arguments that nearly all of its calls have."""
    calls: Counter[str] = Counter()
    having: Counter[tuple[str, str]] = Counter()
    for line in pool.lines:
        if line.kind is CALL:
            tool = tool_in(line.text)
            calls[tool] += 1
            having.update([(tool, argument) for argument in set(ARGUMENT.findall(line.text))])
    common: dict[str, frozenset[str]] = {}
    for (tool, argument), number in having.items():
        if number >= weights.CALLS_OF_COMMON_ARGUMENT and number >= weights.COMMON_ARGUMENT_SHARE * calls[tool]:
            common[tool] = common.get(tool, frozenset()) | {argument}
    return common


def without_arguments(call: str, arguments: frozenset[str]) -> str:
    """Return the line of a call without these arguments."""
    left = ARGUMENT.sub(lambda found: "" if found[1] in arguments else found[0], call)
    return _FIRST_COMMA.sub("", left)
