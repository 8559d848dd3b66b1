"""The gateway: everything that the requests of one process share."""

import asyncio
import itertools
import secrets
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec
import structlog

from gateway.config import Settings, catalogue
from gateway.observe.exchange import Action, Exchange, Observer
from gateway.observe.log import ExchangeLog
from gateway.observe.metrics import Metrics
from gateway.serve.incoming.admission import Admission
from gateway.serve.incoming.peers import Peers
from gateway.serve.incoming.uploads import Uploads
from gateway.serve.sums import Summing
from gateway.state.forgetting import EVERY_CALLER, Forgotten, Watch
from gateway.state.garbage import Sweeper
from gateway.state.known_ids import KnownIds
from gateway.state.learning import Learning
from gateway.state.rates import Rates, tokens_of
from gateway.state.records.base import Bounds, RecordLog
from gateway.state.records.keeper import Records
from gateway.state.store import sealing_of
from gateway.state.store.base import Store
from gateway.state.store.reason import reason_of
from gateway.state.summariser import Summariser
from gateway.state.tasks import Tasks, where
from gateway.state.threads import WorkThreads
from gateway.upstream.balance import Balance
from gateway.upstream.client import Client, Target, target
from gateway.wire.memory import Memory

if TYPE_CHECKING:
    from gateway.observe.trace import Tracing

log = structlog.get_logger(__name__)


class Reloaded(msgspec.Struct, frozen=True):
    """The result of the last time the configuration was read."""

    good: bool
    """False when the file was refused, so that an earlier one is in use."""
    at: float
    """When the configuration in use was loaded, in seconds since 1970."""


class Setup(msgspec.Struct, frozen=True):
    """One configuration, ready for use. A request keeps the one it started with."""

    settings: Settings
    targets: Mapping[str, Target]
    has_aliases: bool
    """Whether some model has another name at its upstream, so that bodies are read to replace it."""

    def target_of(self, model: str) -> Target:
        """Return the upstream of a request that is not folded: its model's, else the default one."""
        name = self.settings.route(model).upstream if model else self.settings.default_upstream
        return self.targets[name]

    def has_at(self, target: Target, model: str) -> bool:
        """Return whether an upstream serves a model."""
        return target.name in dict(self.settings.route(model).choices)

    def name_at(self, target: Target, model: str) -> str:
        """Return an upstream's name of a model; for a model of another upstream, the client's."""
        return self.settings.route(model).name if self.has_at(target, model) else model


def setup(settings: Settings) -> Setup:
    """Build the upstreams of a configuration. Raises OSError when a certificate file cannot be read."""
    targets = {name: target(upstream) for name, upstream in settings.upstreams.items()}
    return Setup(settings, targets, any(model.name for model in settings.models.values()))


def bounds_of(settings: Settings) -> Bounds:
    """Return how much is kept of records."""
    chosen = settings.observe
    return Bounds(chosen.keep_s, chosen.max_records, chosen.max_size)


def _tracing(endpoint: str) -> "Tracing | None":
    """Return the tracer for an endpoint. Raises ImportError without the extra ``otel``."""
    if not endpoint:
        return None
    from gateway.observe.trace import Tracing  # noqa: PLC0415 - optional: imported when it is used

    return Tracing(endpoint)


def _traced(tracing: "Tracing") -> Client:
    from gateway.upstream.traced import TracedClient  # noqa: PLC0415 - optional: imported when it is used

    return TracedClient(tracing)


class Gateway:
    """Everything that the requests of one process share. ``setup`` is replaced as a whole when the configuration
    changes."""

    def __init__(
        self, settings: Settings, store: Store, metrics: Metrics | None = None, log: RecordLog | None = None
    ) -> None:
        self.catalogue = catalogue.load()
        self.store = store
        self.tasks = Tasks()
        self.threads = WorkThreads()
        self.memory = Memory(settings.server.memory)
        self.sweeper = Sweeper(self.threads, lambda: self.admission.requests, lambda: self.admission.begun)
        self.admission = Admission(self.threads)
        self.uploads = Uploads()
        self.tracing = _tracing(settings.observe.traces)
        self.client = Client() if self.tracing is None else _traced(self.tracing)
        self.balance = Balance()
        self.metrics = metrics or Metrics()
        self.learning = Learning(store, self.tasks, ignored=lambda kind: self.metrics.degraded(f"stored {kind}"))
        self.known_ids = KnownIds(store, self.tasks)
        self.summariser = Summariser(store, self.tasks, ttl_s=settings.store.ttl_s, observed=self.metrics.summarised)
        self.watch = Watch(store, self.tasks, self._forget)
        self.records = Records(
            log,
            self.tasks,
            sealing=sealing_of(settings.store.encryption_key),
            failed=self.failed,
            dropped=lambda count: self.metrics.degraded("records dropped"),
        )
        self._forgotten: dict[str, float] = {}
        self.summing = Summing()
        self.rates = Rates(store)
        self._log = ExchangeLog()
        self.observers: tuple[Observer, ...] = (
            self._log.observe,
            self.metrics.observe,
            self.records.observe,
            self._count_tokens_of_key,
            *((self.tracing.observe,) if self.tracing is not None else ()),
        )
        self.draining = False
        self.loading = False
        """Whether code and vocabularies are still being loaded in the background."""
        self.reloaded = Reloaded(good=True, at=time.time())
        self.peers: Peers | None = None
        """The other workers on this machine, where there are any."""
        self.setup = setup(settings)
        self._ids = itertools.count()
        self._id_prefix = secrets.token_hex(6)

    def adopt(self, settings: Settings) -> None:
        """Use these settings for new requests; running requests keep theirs."""
        self.setup = setup(settings)
        self.memory.budget = settings.server.memory
        self.records.limit(bounds_of(settings))
        self.reloaded = Reloaded(good=True, at=time.time())

    def note_refused_settings(self) -> None:
        """Remember that changed settings were refused."""
        self.reloaded = Reloaded(good=False, at=self.reloaded.at)

    def _forget(self, forgotten: Forgotten) -> None:
        """Drop the copies in memory, because an operator deleted something."""
        self.learning.forget(forgotten)
        self.summariser.forget()
        self.known_ids.forget()
        for caller, at in forgotten.callers.items():
            if self._forgotten.get(caller, 0.0) < at:
                self._forgotten[caller] = at
                self.records.forget_in_memory(None if caller == EVERY_CALLER else caller)
        log.info("memory_forgotten", everything=forgotten.at, models=len(forgotten.models))

    def _count_tokens_of_key(self, exchange: Exchange) -> None:
        """Count the tokens of an ended request against the limits of its client key, in the background."""
        if not exchange.key:
            return
        reserved = self.rates.take_reservation(exchange.request_id)
        key = self.settings.keys.get(exchange.key)
        tokens = tokens_of(exchange, reserved.tokens if reserved is not None else 0)
        if key is not None and key.tpm is not None and (tokens or reserved):
            self.tasks.start(self.rates.settle(key.id, tokens, reserved), "rates", must_finish=True)

    def request_id(self) -> str:
        """Return an id for one request: unique across processes, ordered within one."""
        return f"tf-{self._id_prefix}-{next(self._ids):x}"

    def own_headers(self, action: Action) -> dict[str, str]:
        """Return the headers of an answer for which only the action is known."""
        return {"x-turnfold-request-id": self.request_id(), "x-turnfold-action": action}

    @property
    def readiness(self) -> Literal["ready", "loading", "draining"]:
        """Whether this process should get new requests, in one word."""
        return "draining" if self.draining else "loading" if self.loading else "ready"

    @property
    def settings(self) -> Settings:
        """The current configuration."""
        return self.setup.settings

    def observe(self, exchange: Exchange) -> None:
        """Inform every observer; a failing one is logged and does not disturb the others."""
        for observer in self.observers:
            try:
                observer(exchange)
            except Exception as error:  # noqa: BLE001  # an observer's bug is not the client's affair
                self.failed("observer", error)

    def failed(self, part: str, error: Exception) -> None:
        """Count and log a survived failure of our own. Its text may quote the request and is left out."""
        self.degraded(part, reason_of(error), where(error))

    def degraded(self, part: str, error: str, where: str) -> None:
        """Count and log that a part failed and a simpler way was used."""
        self.metrics.degraded(part)
        log.error("degraded", part=part, error=error, where=where)

    async def close(self) -> None:
        self._log.write_now()
        self.uploads.close()
        self.watch.close()
        self.sweeper.close()
        await self.tasks.close()
        await self.records.close()
        await self.threads.close()
        await self.client.close()
        await self.store.close()
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
