"""Structured logs: one event per fact, key-value pairs, never any message text or key."""

import asyncio
import atexit
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final, Generic, Literal, TextIO, TypeVar, cast

import msgspec
import orjson
import structlog
from msgspec.structs import asdict, replace

from gateway.observe.exchange import NOTHING_LOST, Exchange
from gateway.observe.log_stream import LogStream
from gateway.observe.printable import printable

Item = TypeVar("Item")
BATCH_S: Final = 0.02
"""Seconds for which lines are collected before they are written together. Chosen: a person who watches does not notice."""
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(
    *, form: Literal["auto", "json", "console"] = "json", level: str = "info", stream: TextIO | None = None
) -> None:
    """Configure structlog for the process. Lines go to ``stream`` (stderr); ``auto`` is readable text on a terminal,
    else JSON."""
    target = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        _stamp,
        structlog.processors.format_exc_info,
    ]
    factory: Any
    if form == "json" or (form == "auto" and not target.isatty()):
        shared.append(structlog.processors.JSONRenderer(serializer=_dumps))
        factory = JsonLines(BatchedStream(LogStream(target)))
    else:
        shared += [
            _shorten_request_line,
            _printable,
            structlog.dev.ConsoleRenderer(colors=target.isatty(), pad_event_to=0),
        ]
        factory = Lines(LogStream(target))
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )


def beside_result() -> None:
    """Have the log lines of a command that prints a result on stderr, so that a program can read the result."""
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def _printable(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters: a client's model name may hold some, and a terminal would obey them."""
    for name, value in event.items():
        if isinstance(value, str) and name != "exception" and not value.isprintable():
            event[name] = printable(value)
    return event


def _dumps(event: MutableMapping[str, Any], **_: Any) -> str:
    try:
        return orjson.dumps(event, default=str).decode()
    except TypeError:  # a number beyond 64 bits, a key that is no text: the line is written all the same
        return orjson.dumps({str(key): str(value) for key, value in event.items()}).decode()


class Batch(Generic[Item]):
    """Collects items for `BATCH_S` and hands them over together. Outside an event loop it hands over each item at once."""

    def __init__(self, hand_over: Callable[[list[Item]], None]) -> None:
        self._hand_over = hand_over
        self._waiting: list[Item] = []

    def add(self, item: Item) -> None:
        self._waiting.append(item)
        if len(self._waiting) == 1:
            try:
                asyncio.get_running_loop().call_later(BATCH_S, self.write_now)
            except RuntimeError:
                self.write_now()

    def write_now(self) -> None:
        """Hand over the collected items now."""
        waiting, self._waiting = self._waiting, []
        self._hand_over(waiting)


class BatchedStream:
    """A stream that writes the lines of `BATCH_S` together, because a write per line would cost more than the line.

    The remaining lines are written when the process ends.
    """

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._lines = Batch(self._write_out)
        atexit.register(self._lines.write_now)

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._stream.lost

    def write(self, line: str) -> None:
        """Add a line."""
        self._lines.add(line)

    def flush(self) -> None:
        """Do nothing: `write` decides when to write."""

    def _write_out(self, lines: list[str]) -> None:
        self._stream.write("".join(lines))


class Lines:
    """The logger factory of structlog: all loggers write into the same stream."""

    def __init__(self, lines: LogStream | BatchedStream) -> None:
        self.lines = lines

    def __call__(self, *_: object) -> structlog.WriteLogger:
        return structlog.WriteLogger(cast("TextIO", self.lines))


class JsonLines(Lines):
    """The same for lines of JSON."""


def lost_lines() -> int:
    """Return how many lines of the log could not be written since the process started."""
    factory = structlog.get_config()["logger_factory"]
    return factory.lines.lost if isinstance(factory, Lines) else 0


class ExchangeLog:
    """Writes the one line per request. Create it after the process has configured its logs.

    Lines are built in batches, which takes a third of the time. JSON is written without structlog's processors, which takes a third of
    theirs.
    """

    def __init__(self) -> None:
        self._log = structlog.get_logger().bind()
        factory = structlog.get_config()["logger_factory"]
        self._lines = factory.lines if isinstance(factory, JsonLines) else None
        self._wanted: bool = self._log.is_enabled_for(LEVELS["info"])
        self._ended = Batch(self._write)

    def observe(self, exchange: Exchange) -> None:
        """Add an exchange; its line is written a moment later, with the current time."""
        if self._wanted:
            self._ended.add((time.time(), exchange))

    def write_now(self) -> None:
        """Write the remaining lines."""
        self._ended.write_now()

    def _write(self, exchanges: list[tuple[float, Exchange]]) -> None:
        if self._lines is not None:
            self._lines.write(_json_lines([_line(ended, exchange) for ended, exchange in exchanges]))
            return
        for ended, exchange in exchanges:
            self._log.info(**msgspec.to_builtins(_line(ended, exchange)))


def _json_lines(lines: Sequence[msgspec.Struct]) -> str:
    """Return the same text that structlog would write for these lines."""
    try:
        return _encode_lines(lines).decode()
    except UnicodeEncodeError:  # the bytes of a header or path that are no text
        return _encode_lines([_with_valid_text(line) for line in lines]).decode()


def _with_valid_text(line: msgspec.Struct) -> msgspec.Struct:
    """Return a line in which `?` replaces characters that UTF-8 cannot encode."""
    texts = {name: value for name, value in asdict(line).items() if isinstance(value, str)}
    return replace(line, **{name: text.encode("utf-8", "replace").decode() for name, text in texts.items()})


def _line(ended: float, exchange: Exchange) -> msgspec.Struct:
    """Return the line of an exchange that ended at a time, in seconds since 1970."""
    lost = exchange.lost
    return _Line(
        datetime.fromtimestamp(ended, UTC),
        *_values(exchange),
        {name: count for name, count in lost._asdict().items() if count} if lost is not NOTHING_LOST else {},
        _ms(exchange.decided_s),
        _ms(exchange.first_byte_s),
        _ms(exchange.total_s),
        [{"stage": step.stage, "saved": step.saved, "detail": step.detail} for step in exchange.steps],
        "exchange",
        "info",
    )


def _ms(seconds: float) -> float:
    """Return milliseconds with three digits. A third of the cost of `round`."""
    return int(seconds * 1_000_000 + 0.5) / 1000


def _shorten_request_line(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Shorten the line of a request for a person who watches. The JSON log and /api/exchanges have all fields."""
    event["timestamp"] = str(event.get("timestamp", ""))[11:19]
    if event.get("event") != "exchange":
        return event
    first = {name: event[name] for name in ("timestamp", "level") if name in event}
    return {
        **first,
        "event": sentence(event),
        **{name: event[name] for name in ("warning", "error") if event.get(name)},
    }


def sentence(one: Mapping[str, Any]) -> str:
    """Return a sentence about a request: its status and model, what was done and why, sizes and time."""
    before, after = one.get("tokens_before"), one.get("tokens_after")
    what = f"{one['action']} ({one['why']})" if one.get("why") not in (None, "", one["action"]) else str(one["action"])
    parts = [str(one["status"]), one.get("model") or f"{one.get('method', '')} {one.get('path', '')}".strip(), what]
    if before is not None and after is not None:
        size = f"{before:,} → {after:,}" if after != before else f"{before:,}"
        parts.append(f"{size} of {one['window']:,} tokens")
    if turns := one.get("turns_folded"):
        parts.append(f"{turns} turn{'s' * (turns != 1)} folded")
    if one.get("attempts", 1) > 1:
        parts.append(f"{one['attempts']} calls")
    parts += [f"{one['total_ms'] / 1000:.2f} s", one["request_id"]]
    return "  ".join(part for part in parts if part)


def _stamp(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the time, unless the event has one."""
    if "timestamp" not in event:
        event["timestamp"] = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return event


_NAMES: Final = tuple(
    name
    for name in Exchange.__struct_fields__
    if name not in {"steps", "decided_s", "first_byte_s", "total_s", "at", "calls", "lost", "parts", "caller"}
)
_values: Final = attrgetter(*_NAMES)
_EMPTY_EXCHANGE: Final = Exchange.passed("", "own", 0)
_EMPTY_VALUES: Final = (None, "", ())


def _default_of(value: object) -> Any:
    """Return the default of a field, with which it is omitted: its value in an empty exchange if that is an empty value, else a value
    that no field has."""
    return value if value in _EMPTY_VALUES else ...


_Line: Final = msgspec.defstruct(
    "_Line",
    [
        "timestamp",
        *((name, Any, _default_of(getattr(_EMPTY_EXCHANGE, name))) for name in _NAMES),
        ("lost", dict[str, int], msgspec.field(default_factory=dict)),
        *((name, Any, ...) for name in ("decided_ms", "first_byte_ms", "total_ms")),
        ("steps", list[dict[str, Any]], msgspec.field(default_factory=list)),
        *((name, Any, ...) for name in ("event", "level")),
    ],
    omit_defaults=True,
)
"""The line of an exchange, without its empty fields."""
_encode_lines: Final = msgspec.json.Encoder(enc_hook=str).encode_lines
