"""What every serving process needs: the stores behind it, and the signals that end it."""

import asyncio
import importlib
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog

from gateway.config import Settings
from gateway.observe.metrics import Metrics
from gateway.serve.request import measure
from gateway.serve.shared import Gateway, bounds_of
from gateway.state.records.base import RecordLog
from gateway.state.records.opening import open_log
from gateway.state.store import Store, open_store
from gateway.state.tasks import where
from providers.overflow import signs

log = structlog.get_logger(__name__)


def gateway_for(settings: Settings) -> Gateway:
    """Open the store and the log of records, and return what all requests of this process share."""
    metrics = Metrics()
    store = store_of(settings, lambda operation, reason: metrics.degraded(f"store {operation}"))
    gateway = Gateway(settings, store, metrics, log_of(settings))
    gateway.watch.start()
    return gateway


def begin(gateway: Gateway) -> None:
    """Start what a process of ours does beside serving, once its ports are open."""
    gateway.sweeper.start()
    warm(gateway)


def warm(gateway: Gateway) -> None:
    """Begin to load, beside serving, what a start does not need."""
    gateway.loading = True
    gateway.tasks.start(_prepare(gateway), "prepare")


async def _prepare(gateway: Gateway) -> None:
    """Load what a start does not need. Until then the process is not ready: a vocabulary holds the interpreter's lock while
    it loads, so requests would wait."""
    try:
        await asyncio.to_thread(load_the_rest)
        if gateway.settings.server.preload:
            await asyncio.to_thread(measure.preload, gateway, gateway.settings)
    finally:
        gateway.loading = False


def load_the_rest() -> None:
    """Load what a start does not need, and what the first refusal and the first fold would otherwise wait for."""
    signs.prepare()
    importlib.import_module("gateway.context.write.fold")


def store_of(settings: Settings, failed: Callable[[str, str], None] = lambda operation, reason: None) -> Store:
    """Open the configured store; ``failed`` is called with each failed operation and its reason."""
    chosen = settings.store
    return open_store(
        chosen.url,
        encryption_key=chosen.encryption_key,
        max_bytes=chosen.max_size,
        timeout_s=chosen.timeout_s,
        failed=failed,
    )


def log_of(settings: Settings) -> RecordLog | None:
    """Open the log of records beside the configured store; None for a store in memory."""
    return open_log(settings.store.url, bounds_of(settings))


def end_of_process() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set. From here on nothing of a request can come into the log of an exception."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_untold)
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    return stop


def _untold(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that no task awaited by its type and place; asyncio's own text and traceback may quote a
    request."""
    error = context.get("exception")
    log.error("unhandled", error=type(error).__name__, where=where(error) if isinstance(error, Exception) else "")
