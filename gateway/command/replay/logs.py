"""Read request bodies from logs of many kinds, line by line, in bounded memory.

A line may be a body itself, or a record of a gateway or an observer that holds one: OpenAI's batch files, LiteLLM's and
Langfuse's records, HAR-like `request`/`body` pairs. What is no request is counted and left out.
"""

import gzip
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from gateway.wire.message import dumps
from gateway.wire.surrogates import loads

LONGEST_LINE: Final = 64 * 2**20
"""Bytes. A longer line is no request that a gateway would take: server.max_body."""
BATCH_BYTES: Final = 2**21
"""Bytes of lines that one process gets at once. Chosen: a second of work."""
SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".log", ".txt"})
"""Files that are read in a folder, each also with .gz behind."""
HOLDERS: Final = (
    "body", "request_body", "requestBody", "request", "proxy_server_request", "kwargs", "input", "payload", "req", "data", "json",
)  # fmt: skip
"""Members in which records hold the body, in the order in which they are tried."""
SETTINGS_OF: Final = ("optional_params", "model_parameters", "modelParameters", "invocation_params", "parameters")
"""Members in which records hold the other fields of the request."""
OBSERVED: Final = frozenset({"traceId", "trace_id", "observationId", "modelParameters", "parentObservationId"})
"""Members of Langfuse's records: their ``input`` is a list of messages, not a Responses body's."""
DEEPEST: Final = 4
"""Levels at which a body is looked for."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some lines, and how many bytes of the file they took."""

    lines: tuple[bytes, ...]
    read: int


def files_in(path: Path) -> list[Path]:
    """Return the log files at a path, in the order of their names."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.is_file() and _suffix(each) in SUFFIXES)


def batches(file: Path) -> Iterator[Batch]:
    """Read a file in batches of lines; a file that is one JSON value over several lines is one line. Raises OSError."""
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        source = cast("BinaryIO", io.BufferedReader(cast("Any", gzip.GzipFile(fileobj=raw)), 2**20)) if packed else raw
        lines: list[bytes] = []
        size, before = 0, 0
        for line in _values(source):
            lines.append(line)
            size += len(line)
            if size >= BATCH_BYTES:
                now = raw.tell()
                yield Batch(tuple(lines), now - before)
                lines, size, before = [], 0, now
        yield Batch(tuple(lines), raw.tell() - before)


def _values(source: BinaryIO) -> Iterator[bytes]:
    """Yield each line; where the first line is only the beginning of a JSON value, the whole file."""
    first = source.readline(LONGEST_LINE)
    if first.lstrip()[:1] in (b"{", b"[") and not _is_json(first):
        whole = first + source.read(LONGEST_LINE)
        if _is_json(whole):
            yield from _each(whole)
            return
        yield from whole.splitlines()
    else:
        yield from _each(first) if first.lstrip()[:1] == b"[" else (first,)
    while line := source.readline(LONGEST_LINE):
        yield line


def _each(value: bytes) -> Iterator[bytes]:
    """Yield the members of a list of records, or the value itself."""
    read = loads(value)
    if isinstance(read, list):
        yield from map(dumps, read)
    else:
        yield value


def _is_json(text: bytes) -> bool:
    try:
        loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def body_in(line: bytes) -> bytes | None:
    """Return the request body in a line; None when there is none."""
    try:
        record = loads(line)
    except orjson.JSONDecodeError:
        return None
    found = _body(record, 0)
    if found is None:
        return None
    return line if found is record else dumps(found)


def _body(record: Any, depth: int) -> Mapping[str, Any] | None:
    if isinstance(record, str) and record[:1] == "{":
        try:
            record = loads(record.encode("utf-8", "surrogatepass"))
        except orjson.JSONDecodeError:
            return None
    if not isinstance(record, dict) or depth > DEEPEST:
        return None
    if OBSERVED.isdisjoint(record) and _is_body(record):
        return _completed(record, record)
    for name in HOLDERS:
        held = record.get(name)
        if name == "input" and isinstance(held, list) and _are_messages(held):
            return _completed({"messages": held}, record)
        if (found := _body(held, depth + 1)) is not None:
            return _completed(found, record)
    return None


def _is_body(record: Mapping[str, Any]) -> bool:
    if isinstance(messages := record.get("messages"), list):
        return _are_messages(messages)
    return isinstance(record.get("input"), (str, list)) and isinstance(record.get("model"), str) and (
        isinstance(record["input"], str) or any(isinstance(item, dict) for item in record["input"])
    )  # fmt: skip


def _are_messages(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in value)


def _completed(body: Mapping[str, Any], record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body with the model and the settings that its record has beside it."""
    beside: dict[str, Any] = {}
    for name in SETTINGS_OF:
        held = record.get(name)
        if isinstance(held, dict) and (body is not record or name != "parameters"):
            beside |= {key: value for key, value in held.items() if value is not None}
    model = record.get("model") or record.get("model_name")
    if isinstance(model, str):
        beside.setdefault("model", model)
    missing = {name: value for name, value in beside.items() if name not in body}
    return {**body, **missing} if missing else body


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
