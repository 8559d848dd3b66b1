"""Arguments that have one value in most calls of a tool, such as a time limit that a program always sets."""

import re
from collections.abc import Mapping
from math import ceil
from typing import Final

from gateway.context import weights
from gateway.context.read.line import CALL, tool_in
from gateway.context.weigh.folded_lines import FoldedLines

ARGUMENT: Final = re.compile(r"(?:(?<=\()|, )(\w++=[^\s,()]++)(?=[,)])")
"""An argument of one word in the line of a call, with its key, and with the comma before it unless it is the first one."""

_FIRST_COMMA: Final = re.compile(r"\A([^(]*+\(), ")


def common_arguments_of(pool: FoldedLines) -> Mapping[str, frozenset[str]]:
    """Return for each tool the arguments that most of its calls have.

    Such an argument is in one of the first calls, so only these are read. In the others it is only looked for.
    """
    calls: dict[str, list[str]] = {}
    for line in pool.lines:
        if line.kind is CALL:
            calls.setdefault(tool_in(line.text), []).append(line.text)
    common: dict[str, frozenset[str]] = {}
    for tool, texts in calls.items():
        least = max(weights.CALLS_OF_COMMON_ARGUMENT, ceil(weights.COMMON_ARGUMENT_SHARE * len(texts)))
        first = texts[: max(len(texts) - least + 1, 0)]
        arguments = {argument for text in first for argument in ARGUMENT.findall(text)}
        found = {each for each in arguments if sum([_has(text, each) for text in texts]) >= least}
        if found:
            common[tool] = frozenset(found)
    return common


def _has(call: str, argument: str) -> bool:
    """Return whether the line of a call has an argument, and not only one that begins like it."""
    return argument in call and (f"{argument}," in call or f"{argument})" in call)


def without_arguments(call: str, arguments: frozenset[str]) -> str:
    """Return the line of a call without these arguments."""
    left = ARGUMENT.sub(lambda found: "" if found[1] in arguments else found[0], call)
    return _FIRST_COMMA.sub(r"\1", left)
