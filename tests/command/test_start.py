"""A start loads what serves; what folds and what reads refusals is loaded beside serving."""

import subprocess
import sys

from gateway.context.read import learned
from gateway.serve.process import load_remaining_code
from providers.overflow.sizes import ROLES
from tests.running import ROOT

LOADED = "import sys; from gateway.command import cli; cli._load_packages(); import gateway.command.serving; print(*sys.modules)"
READING = {
    f"gateway.context.read.{name}" for name in ("lines", "as_calls", "as_said", "wishes", "questions", "learned")
}
"""The code that reads messages for a fold, and what it has learned."""


def test_a_start_does_not_wait_for_what_only_a_fold_needs() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())

    assert "gateway.context.life.ladder" in loaded
    assert loaded.isdisjoint({"gateway.context.write.stages", "statistics"} | READING)
    assert loaded.isdisjoint({"prometheus_client", "http.server"}), "for the first scrape alone"
    assert loaded.isdisjoint({"sqlite3"}), "for a store in a file alone"
    assert loaded.isdisjoint({"rich", "greenlet"}), "structlog loads them, and the log needs neither"


def test_what_a_start_puts_off_is_there_before_it_is_needed() -> None:
    load_remaining_code()

    assert {"gateway.context.write.stages"} | READING <= sys.modules.keys()
    assert all("compiled" in vars(role) for role in ROLES)
    assert learned.weights.cache_info().currsize == learned.request_weights.cache_info().currsize == 1
