"""The state of a process for operators: upstreams, store, records, summaries, load."""

import os
import time
from typing import Any, Final

from gateway import __version__
from gateway.observe import shape
from gateway.serve.gateway import Gateway

STARTED: Final = time.time()
"""When this process loaded the gateway, in seconds since 1970."""
STARTED_MONOTONIC: Final = time.monotonic()
"""The same by the monotonic clock, which no change of the time moves."""


def status(gateway: Gateway) -> dict[str, Any]:
    """Return how the parts of this process are. Names and numbers only: no key, no URL with a password."""
    settings, store = gateway.settings, gateway.store
    summary = settings.fold.summary
    return {
        "version": __version__,
        "process": os.getpid(),
        "started": shape.iso(STARTED),
        "uptime_s": round(time.monotonic() - STARTED_MONOTONIC, 1),
        "state": gateway.readiness,
        "mode": settings.fold.mode,
        "requests_open": gateway.admission.requests,
        "bytes_held": gateway.admission.size_bytes,
        "queue": gateway.threads.waiting,
        "background_tasks": len(gateway.tasks),
        "upstreams": [
            {
                "name": name,
                "provider": upstream.provider,
                "default": name == settings.default_upstream,
                "resting": gateway.balance.rests_for_some(name),
            }
            for name, upstream in settings.upstreams.items()
        ],
        "store": {
            "kind": settings.store.url.partition(":")[0],
            "resting": list(getattr(store, "resting", ())),
        },
        "records": {
            "kept_s": settings.observe.keep_s if gateway.records.keeps else 0,
            "waiting": gateway.records.waiting,
            "resting": gateway.records.resting,
            "text": settings.observe.text,
        },
        "summariser": {"model": summary.model, "upstream": summary.upstream, "outcomes": gateway.metrics.summaries()},
    }
