"""Metrics in the words of Prometheus: as text, and as a file for node_exporter.

prometheus-client is imported here alone, and this module only where somebody asks for metrics.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder, write_to_textfile
from prometheus_client.registry import Collector

from cloudwhale.model.units import Seconds
from cloudwhale.reporting.metrics import Labels, Sample, Spread, Vitals, samples
from cloudwhale.reporting.metrics_table import Metric

Newest = Callable[[], Vitals | None]
"""Returns what the newest tick has left behind."""


class Exposition(Collector):
    """Turns what a tick has left behind into text; in any thread."""

    def __init__(self, newest: Newest, steady: Callable[[], Seconds]) -> None:
        self._newest, self._steady = newest, steady
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    @property
    def is_told(self) -> bool:
        """Say whether any tick has ended yet."""
        return self._newest() is not None

    def collect(self) -> Iterator[Family]:
        """Yield a family for each metric of the table; see Collector."""
        for metric, rows in samples(self._newest(), self._steady()):
            yield _family(metric, rows)

    def describe(self) -> Iterator[Family]:
        """Yield nothing: what is collected is not asked for when it is registered."""
        return iter(())

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return the text that a scraper accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def write(self, file: Path) -> None:
        """Write a file whole or not at all; raise OSError."""
        write_to_textfile(str(file), self._registry)


def _family(metric: Metric, rows: dict[Labels, Sample]) -> Family:
    if metric.kind == "histogram":
        return _histogram(metric, rows)
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.help, labels=metric.labels)
    for labels, sample in sorted(rows.items()):
        if not isinstance(sample, Spread):
            family.add_metric(labels, sample)
    return family


def _histogram(metric: Metric, rows: dict[Labels, Sample]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    ends = [*(repr(float(bucket)) for bucket in metric.buckets), "+Inf"]
    for labels, sample in sorted(rows.items()):
        if isinstance(sample, Spread):
            buckets = list(zip(ends, accumulate(sample.counts), strict=True))
            family.add_metric(labels, buckets, sample.total)
    return family
