"""The Prometheus text format: the numbers of one process, or of all workers that share a port.

A worker's numbers travel to the worker that is scraped as plain lists. Where there are several workers, each number has
the label ``worker``: when one of them restarts, only its own counters begin anew, as Prometheus expects it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from gateway import __version__
from gateway.observe.metrics import Gauge, Metrics

Family = tuple[str, str, str, list[tuple[str, dict[str, str], float]]]
"""Name, description, type, and samples as (name, labels, value)."""


def families(metrics: Metrics, gauges: Iterable[Gauge] = (), worker: str = "") -> list[Family]:
    """Return all numbers of this process as plain values; ``worker`` is its number where there are several."""
    label = {"worker": worker} if worker else {}
    return [
        (
            metric.name,
            metric.documentation,
            metric.type,
            [(sample.name, {**sample.labels, **label}, sample.value) for sample in metric.samples],
        )
        for metric in _metrics(metrics, gauges)
    ]


def merged(workers: Iterable[Sequence[Any]]) -> bytes:
    """Return the numbers of several workers in the text format, each family once."""
    found: dict[str, Metric] = {}
    for numbers in workers:
        for name, text, kind, samples in numbers:
            metric = found.setdefault(name, Metric(name, text, kind))
            for sample, labels, value in samples:
                metric.add_sample(sample, labels, value)
    return generate_latest(cast("CollectorRegistry", _Collected(list(found.values()))))


class _Collected:
    """The part of a registry that `generate_latest` needs."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def _metrics(metrics: Metrics, gauges: Iterable[Gauge]) -> Iterator[Metric]:
    for name, text, labels, numbers in metrics.counters():
        counter = CounterMetricFamily(name, text, labels=labels)
        for values, number in numbers:
            counter.add_metric(values, number)
        yield counter
    for name, text, labels, histograms in metrics.histograms():
        family = HistogramMetricFamily(name, text, labels=labels)
        for values, histogram in histograms:
            family.add_metric(values, histogram.buckets(), histogram.total)
        yield family
    for gauge in (*gauges, Gauge("turnfold_build_info", "The running version.", ("version",), [((__version__,), 1)])):
        family_of_gauge = GaugeMetricFamily(gauge.name, gauge.text, labels=gauge.labels)
        for values, number in gauge.numbers:
            family_of_gauge.add_metric(values, number)
        yield family_of_gauge
    yield from ProcessCollector(registry=None).collect()
