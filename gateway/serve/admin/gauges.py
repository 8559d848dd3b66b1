"""The numbers of this process that go up and down, read when they are scraped."""

from collections import Counter
from collections.abc import Iterator

from gateway.observe.log import lost_lines
from gateway.observe.metrics import Gauge
from gateway.serve.gateway import Gateway


def gauges(gateway: Gateway) -> Iterator[Gauge]:
    """Return every gauge. Labels are bounded: names from the configuration, kinds of facts."""
    yield _one("turnfold_open_requests", "Requests that are being served.", gateway.admission.requests)
    yield _one("turnfold_open_streams", "Answers that are being handed on.", gateway.admission.streams)
    yield _one("turnfold_held_bytes", "Bytes of bodies held for open requests.", gateway.admission.size_bytes)
    yield _one("turnfold_queue_length", "Pieces of work that wait for a thread or run in one.", gateway.threads.waiting)
    yield _one("turnfold_background_tasks", "Background tasks that are running.", len(gateway.tasks))
    yield _one("turnfold_records_waiting", "Records that are not yet in the store.", gateway.records.waiting)
    yield _one("turnfold_log_lines_lost", "Lines of the log since the start that could not be written.", lost_lines())
    yield _one("turnfold_draining", "1 while the process is stopping.", gateway.draining)
    resting = [((name,), float(gateway.balance.rests_for_some(name))) for name in gateway.settings.upstreams]
    yield Gauge(
        "turnfold_upstream_resting",
        "1 while an upstream that failed is left alone, for some caller or for all.",
        ("upstream",),
        resting,
    )
    yield _store(gateway)
    kinds = Counter((fact.kind, fact.what) for fact in gateway.learning.facts())
    text = "Facts learned from upstreams that hold at present."
    yield Gauge("turnfold_learned_facts", text, ("kind", "what"), [(kind, float(n)) for kind, n in kinds.items()])
    loaded = gateway.reloaded
    yield _one("turnfold_config_last_reload_successful", "1 unless the last reload was refused.", loaded.good)
    text = "When the configuration in use was loaded, in seconds since 1970."
    yield _one("turnfold_config_last_reload_success_timestamp_seconds", text, loaded.at)


def _one(name: str, text: str, number: float) -> Gauge:
    return Gauge(name, text, (), [((), float(number))])


def _store(gateway: Gateway) -> Gauge:
    """Return 1 for each kind of use of the store that works, 0 for one that rests after failures."""
    resting = {*getattr(gateway.store, "resting", ()), *(["records"] if gateway.records.resting else [])}
    uses = ("reads", "writes", "counts", "records")
    text = "1 while this use of the store works; 0 while it is left alone after failures."
    return Gauge("turnfold_store_up", text, ("use",), [((use,), float(use not in resting)) for use in uses])
