"""Structured logs: one event per fact, key-value pairs, never any message text or key."""

import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import orjson
import structlog

from gateway.telemetry.exchange import Exchange

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(*, form: Literal["json", "console"] = "json", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up structlog for the process. Lines go to ``stream`` (stderr), JSON ones rendered by orjson."""
    target = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    factory: Any
    if form == "json":
        shared.append(structlog.processors.JSONRenderer(serializer=_dumps))
        factory = structlog.WriteLoggerFactory(file=target)
    else:
        shared.append(structlog.dev.ConsoleRenderer(colors=target.isatty()))
        factory = structlog.WriteLoggerFactory(file=target)
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )


def _dumps(event: MutableMapping[str, Any], **_: Any) -> str:
    return orjson.dumps(event, default=str).decode()


def log_exchange(exchange: Exchange) -> None:
    """Write the one line that every request ends in."""
    fields: dict[str, Any] = {
        name: value
        for name in exchange.__slots__
        if name != "steps" and (value := getattr(exchange, name)) not in (None, "", ())
    }
    for name in ("decided_s", "first_byte_s", "total_s"):
        fields[name.replace("_s", "_ms")] = round(fields.pop(name, 0.0) * 1000, 3)
    if exchange.steps:
        fields["steps"] = [{"stage": step.stage, "saved": step.saved, "detail": step.detail} for step in exchange.steps]
    structlog.get_logger().info("exchange", **fields)
