"""The Prometheus text format."""

from collections.abc import Iterator
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from gateway import __version__
from gateway.observe.metrics import Metrics


class _Families:
    """The part of a registry that `generate_latest` needs."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        for name, text, labels, numbers in self._metrics.counters():
            counter = CounterMetricFamily(name, text, labels=labels)
            for values, number in numbers:
                counter.add_metric(values, number)
            yield counter
        for name, text, labels, histograms in self._metrics.histograms():
            family = HistogramMetricFamily(name, text, labels=labels)
            for values, histogram in histograms:
                family.add_metric(values, histogram.buckets(), histogram.total)
            yield family
        info = GaugeMetricFamily("turnfold_build_info", "The running version.", labels=("version",))
        info.add_metric((__version__,), 1)
        yield info


def text_of(metrics: Metrics) -> bytes:
    """Return all numbers of one process in the text format."""
    return generate_latest(cast("CollectorRegistry", _Families(metrics)))
