"""The JSON form of an exchange, for the admin port, the store and reports: docs/records.md describes it.

A stored record is read as a plain mapping. No record has the text of a message.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import asdict

from gateway.observe.exchange import Exchange

RecordJson = Mapping[str, Any]
"""One record in its JSON form."""
LARGEST: Final = 10**12
"""The largest number that a record has; larger ones are recorded as this one. JSON is written with 64 bits, and sums over all records must
fit into these, too. Chosen: more tokens or bytes than a request can have."""


def json_of(exchange: Exchange) -> dict[str, Any]:
    """Return the JSON form of an exchange."""
    found = asdict(exchange)
    found["time"] = iso(exchange.at)
    found["steps"] = [
        {"stage": step.stage, "saved": step.saved, "detail": step.detail, "count": step.count, "total": step.total}
        for step in exchange.steps
    ]
    found["calls"] = [asdict(call) for call in exchange.calls]
    found["lost"] = exchange.lost._asdict()
    found["parts"] = exchange.parts._asdict() if exchange.parts is not None else None
    return {name: _storable(value) for name, value in found.items()}


def _storable(value: Any) -> Any:
    """Return a value that JSON and stores can hold, whatever clients and upstreams sent: with its numbers within `LARGEST`, and with `?` for characters that UTF-8 cannot encode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if type(value) is int:
        return min(max(value, -LARGEST), LARGEST)
    if isinstance(value, Mapping):
        return {name: _storable(each) for name, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list | tuple) else value


def iso(seconds: float) -> str:
    """Return a time as text in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def conversation(records: list[RecordJson]) -> dict[str, Any]:
    """Return the facts about one conversation; ``records`` are its requests, oldest first."""
    first, last = records[0], records[-1]
    return {
        "conversation": first["conversation"],
        "session": next((one["session"] for one in records if one["session"]), ""),
        "first": first["time"],
        "last": last["time"],
        "requests": len(records),
        "keys": _different(records, "key"),
        "clients": _different(records, "client"),
        "models": _different(records, "model"),
        "folded": sum(1 for one in records if one["turns_folded"] or one["why"] == "folded"),
        "refused": sum(len(one["refusals"]) for one in records),
        "errors": sum(1 for one in records if one["status"] >= 400),
        "warnings": sorted({one["warning"] for one in records if one["warning"]}),
        "tokens_before": _sum(records, "tokens_before"),
        "tokens_after": _sum(records, "tokens_after"),
        "prompt_tokens": _sum(records, "prompt_tokens"),
        "cached_tokens": _sum(records, "cached_tokens"),
        "completion_tokens": _sum(records, "completion_tokens"),
        "lost": {name: max(one["lost"][name] for one in records) for name in first["lost"]},
        "exchanges": records,
    }


def _different(records: list[RecordJson], name: str) -> list[str]:
    return list(dict.fromkeys(one[name] for one in records if one[name]))


def _sum(records: list[RecordJson], name: str) -> int:
    return sum(one[name] or 0 for one in records)
