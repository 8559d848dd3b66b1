"""The filters of a question about past requests, read from its query string."""

import re
from math import isnan, nan
from typing import Final

from multidict import MultiMapping

from gateway.config.readers import seconds_of_date
from gateway.observe.printable import printable
from gateway.serve.incoming.errors import ClientError
from gateway.state.records.base import MOST_FOUND, Query

FILTERS: Final = frozenset({"key", "model", "session", "conversation", "since", "until", "limit"})
_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_FILTER: Final = 300
"""Characters of a filter's value. Chosen: longer than any name that is kept."""


def query_of(given: MultiMapping[str], now: float) -> Query:
    """Read the filters of a request. Raises ClientError for an unknown filter or a value that means nothing."""
    for name in given:
        if name not in FILTERS:
            raise _wrong(name, f"is not one of {', '.join(sorted(FILTERS))}")
    return Query(
        key=given.get("key", "")[:LONGEST_FILTER],
        model=given.get("model", "")[:LONGEST_FILTER],
        session=given.get("session", "")[:LONGEST_FILTER],
        conversation=given.get("conversation", "")[:LONGEST_FILTER],
        since=moment("since", given["since"], now) if "since" in given else 0.0,
        until=moment("until", given["until"], now) if "until" in given else float("inf"),
        limit=_limit(given.get("limit", "100")),
    )


def _limit(written: str) -> int:
    if not (written.isascii() and written.isdigit()) or len(written) > 9:
        raise _wrong("limit", "is not a whole number")
    return min(int(written), MOST_FOUND)


def moment(name: str, written: str, now: float) -> float:
    """Read a moment: seconds since 1970, a date with or without a time, or how long ago (15m, 2h, 7d)."""
    if ago := _AGO.fullmatch(written.strip()):
        return now - float(ago[1]) * _SECONDS[ago[2]]
    try:
        seconds = _seconds(written)
    except ValueError:
        seconds = nan
    if isnan(seconds):
        expected = "15m, 2h or 7d (ago), 2026-01-31, 2026-01-31T12:00:00Z, or seconds since 1970"
        raise _wrong(name, f'"{printable(written[:40])}" is not a time, such as {expected}')
    return seconds


def _seconds(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return seconds_of_date(written)


def _wrong(name: str, problem: str) -> ClientError:
    return ClientError(400, f"{name[:40]}: {problem}.", code="invalid_query")
