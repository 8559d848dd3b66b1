"""What is kept for agents that call their tools in the text of their messages, in the middle of their work.

The rows of these sets say which messages have words of the user (``human``), and which values a later call uses (``values``), so nothing
depends on how the gateway reads such messages.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.recall.needed import Point, found, said_before

EVERY_SO_MANY: Final = 5
"""Of so many requests in the second half of a session one is measured."""

Fold = Callable[[Point, float], list[dict[str, Any]]]
"""Folds a request into its newest messages and a share of the others."""


class Kept(NamedTuple):
    """What is kept."""

    values: list[float]
    """Shares of the values that the next call uses, by request."""
    wishes: list[bool]
    remarks: list[float]
    """Shares of tasks, constraints, decisions, causes and open points."""


def requests_of(talk: Mapping[str, Any], ends: Sequence[int]) -> Iterator[Point]:
    """Yield the requests that end with these results; the newest messages are the user's last one, and the last step."""
    for end in ends:
        asked = _asked(talk, end)
        yield Point(talk["messages"][: end + 1], tail=frozenset([asked, end - 1, end]))


def _asked(talk: Mapping[str, Any], end: int) -> int:
    """Return the user's last message before the end of a request."""
    asked: int = max(index for index in talk["human"] if index <= end)
    return asked


def kept(talks: Sequence[Mapping[str, Any]], budget: float, fold: Fold) -> Kept:
    """Return what folds keep in the middle of the work."""
    all_kept = Kept([], [], [])
    for talk in talks:
        values: dict[int, list[str]] = {}
        for each in talk["values"]:
            values.setdefault(each["at"] - 1, []).append(each["value"])
        for point in requests_of(talk, [end for end in values if end > len(talk["messages"]) // 3]):
            needed = tuple(values[len(point.request) - 1])
            all_kept.values.append(found(Point([], values=needed), fold(point, budget)))
        results = [index for index in range(len(talk["messages"])) if _is_result(talk, index)]
        for point in requests_of(talk, results[len(results) // 2 :: EVERY_SO_MANY]):
            wishes, remarks = said_before(talk, _asked(talk, len(point.request) - 1), fold(point, budget))
            all_kept.wishes.extend(wishes)
            all_kept.remarks.extend(remarks)
    return all_kept


def _is_result(talk: Mapping[str, Any], index: int) -> bool:
    return talk["messages"][index]["role"] == "user" and index not in talk["human"]
