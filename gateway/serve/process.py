"""A serving process: its stores, the code it loads after the start, and the signals that end it."""

import asyncio
import importlib
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import structlog
from yarl import URL

from gateway.config import Settings
from gateway.observe.metrics import Metrics
from gateway.serve.gateway import Gateway, bounds_of
from gateway.serve.request import measure
from gateway.state import garbage
from gateway.state.records.base import RecordLog
from gateway.state.records.opening import open_log
from gateway.state.store import Store, open_store
from gateway.state.tasks import where
from gateway.upstream.certificates import context_of
from gateway.upstream.client import Target
from providers.overflow import signs

log = structlog.get_logger(__name__)


def gateway_for(settings: Settings) -> Gateway:
    """Open the store and the log of records, and return the gateway that all requests of this process share."""
    metrics = Metrics()
    store = store_of(settings, lambda operation, reason: metrics.degraded(f"store {operation}"))
    gateway = Gateway(settings, store, metrics, log_of(settings))
    gateway.watch.start()
    return gateway


def start_background_work(gateway: Gateway) -> None:
    """Start the work beside serving, once the ports are open: garbage collection, and loading the remaining code."""
    gateway.sweeper.start()
    start_loading(gateway)


def start_loading(gateway: Gateway) -> None:
    """Start to load, in the background, what the start did not need."""
    gateway.loading = True
    gateway.tasks.start(_load(gateway), "prepare")


async def _load(gateway: Gateway) -> None:
    """Load certificates, code and vocabularies that the start did not need. Meanwhile the process is not ready: loading a
    vocabulary holds the interpreter's lock, so requests would wait."""
    try:
        await asyncio.to_thread(load_certificates, gateway.setup.targets.values())
        await asyncio.to_thread(load_remaining_code)
        if gateway.settings.server.preload:
            await asyncio.to_thread(measure.preload, gateway, gateway.settings)
        await asyncio.to_thread(garbage.trimmer())
    finally:
        gateway.loading = False


def load_certificates(targets: Iterable[Target]) -> None:
    """Load the system's certificates if an upstream is verified by them. Otherwise the first request to it would wait for it."""
    if any(target.tls is True and URL(target.endpoint.base_url).scheme == "https" for target in targets):
        context_of(True)


def load_remaining_code() -> None:
    """Load the code that the start did not need. Otherwise the first refusal, the first fold and the first quiet moment would wait for
    it."""
    signs.prepare()
    garbage.trimmer()
    for module in ("write.stages", "read.as_calls", "read.as_said"):
        importlib.import_module(f"gateway.context.{module}")
    importlib.import_module("gateway.context.read.learned").load()


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


def stop_event() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set. From now on unhandled exceptions are logged without the text of a request."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_log_unhandled)
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    return stop


def _log_unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception of a task that nothing awaits, by its type and place. asyncio's own text and traceback may quote a
    request."""
    error = context.get("exception")
    log.error("unhandled", error=type(error).__name__, where=where(error) if isinstance(error, Exception) else "")
