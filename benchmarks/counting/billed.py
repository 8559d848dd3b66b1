"""Counts against bills: the error of every recorded request, by group of models."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import mean, median

import orjson

from benchmarks.counting.rows import Row
from gateway.config import catalogue
from gateway.context.count.tokens import TokenCount, count_request
from gateway.wire.chat import ChatRequest
from gateway.wire.memory import Memory


def count(row: Row) -> TokenCount:
    """Count a recorded request as the gateway would before it has learned anything."""
    facts = catalogue.load().find(row.model)
    request = ChatRequest(orjson.dumps(row.body), row.body, row.model, tuple(row.body["messages"]), memory=Memory())
    return count_request(request, facts.family if facts else "unknown", facts.images if facts else "")


def error(row: Row) -> float:
    """How far the count is from the bill, as a share of it; above 0 is too many."""
    return (count(row).total - row.billed) / max(row.billed, 1)


@dataclass(frozen=True, slots=True)
class Line:
    """One group's errors."""

    group: str
    requests: int
    mean: float
    median: float
    within: float
    """Share of requests less than 5 % off."""
    bias: float
    whole: float
    """All tokens counted against all tokens billed."""


def table(rows: Iterable[Row]) -> Iterator[Line]:
    """Sum the errors up by group, the largest group first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    for group, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        errors = [error(row) for row in members]
        counted = sum(count(row).total for row in members)
        yield Line(
            group,
            len(members),
            mean(map(abs, errors)),
            median(map(abs, errors)),
            mean(abs(one) <= 0.05 for one in errors),
            mean(errors),
            counted / sum(row.billed for row in members) - 1,
        )
