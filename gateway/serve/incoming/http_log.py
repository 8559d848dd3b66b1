"""The log of aiohttp's own servers. They log broken requests with the bytes that broke them, and a broken header may hold a key."""

import logging

from aiohttp import http_exceptions

from gateway.serve.incoming.errors import Failed


def silence_aiohttp() -> None:
    """Have aiohttp's own loggers write nothing: of a WebSocket they repeat all protocols, and a browser's key is one of them."""
    log = logging.getLogger("aiohttp")
    log.addHandler(logging.NullHandler())
    log.propagate = False


def http_log(part: str, failed: Failed) -> logging.Logger:
    """Return a logger for a server. Invalid HTTP is ignored, and a fault of our own is passed to ``failed`` without any text."""
    log = logging.Logger(part)
    log.addHandler(_Faults(part, failed))
    return log


class _Faults(logging.Handler):
    def __init__(self, part: str, failed: Failed) -> None:
        super().__init__(logging.ERROR)
        self._part, self._failed = part, failed

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, Exception) and not isinstance(error, http_exceptions.HttpProcessingError):
            self._failed(self._part, error)
