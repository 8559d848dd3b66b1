"""Structured logs: one event per fact, key-value pairs, never any message text or key."""

import sys
from collections.abc import MutableMapping
from operator import attrgetter
from typing import Any, Final, Literal, TextIO

import orjson
import structlog

from gateway.telemetry.exchange import Exchange

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(
    *, form: Literal["auto", "json", "console"] = "json", level: str = "info", stream: TextIO | None = None
) -> None:
    """Set up structlog for the process. Lines go to ``stream`` (stderr); ``auto`` writes for eyes on a terminal, else JSON."""
    target = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    factory: Any
    if form == "json" or (form == "auto" and not target.isatty()):
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


class ExchangeLog:
    """Writes the one line that every request ends in. Made once the process has configured its logs, and not before."""

    def __init__(self) -> None:
        self._log = structlog.get_logger().bind()
        self._wanted: bool = self._log.is_enabled_for(LEVELS["info"])

    def observe(self, exchange: Exchange) -> None:
        """Write what is known of an exchange; what is empty or None is left out."""
        if not self._wanted:
            return
        # `or value == 0` keeps 0 and False, and is several times as fast as asking for None, "" and ().
        fields = {name: value for name, value in zip(_NAMES, _values(exchange), strict=True) if value or value == 0}
        fields["decided_ms"] = round(exchange.decided_s * 1000, 3)
        fields["first_byte_ms"] = round(exchange.first_byte_s * 1000, 3)
        fields["total_ms"] = round(exchange.total_s * 1000, 3)
        if exchange.steps:
            fields["steps"] = [
                {"stage": step.stage, "saved": step.saved, "detail": step.detail} for step in exchange.steps
            ]
        self._log.info("exchange", **fields)


_NAMES: Final = tuple(
    name for name in Exchange._fields if name not in {"steps", "decided_s", "first_byte_s", "total_s"}
)
_values: Final = attrgetter(*_NAMES)
