"""Where series begin: at 0, as soon as it is known that there may be one.

How much a counter grew is told by two of its samples: one that began with its first dollar would
hide that dollar (https://prometheus.io/docs/practices/instrumentation, "Avoid missing metrics").
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from cloudwhale.model.rental import Rental
from cloudwhale.planning.noticing import BY_MACHINE
from cloudwhale.reporting.costs import CAUSES
from cloudwhale.reporting.metrics import Labels, Spread
from cloudwhale.reporting.metrics_table import PREFIX, TABLE

ENDS = ("completed", "failed", "cancelled")
REFUSALS = ("no-capacity", "quota-exceeded", "price-moved", "denied", "unreachable")
"""What a provider answers, and what it means that none does, as `vitals.code_of` calls them."""

Zero = tuple[str, Labels]
"""A metric's name without its prefix, and labels."""

_LABELS: Mapping[str, Iterable[Labels]] = {
    "jobs_ended_total": [(state,) for state in ENDS],
    "attempts_lost_total": sorted((str(code),) for code in BY_MACHINE),
    "admission_wait_seconds": [("own",), ("rented",)],
}
"""Of those whose labels are closed lists. Those without labels need none."""


def counters() -> Iterator[Zero]:
    """Yield the counters that every controller has."""
    for metric in TABLE:
        name = metric.name.removeprefix(PREFIX)
        if metric.kind == "counter":
            yield from ((name, labels) for labels in _labels(name, metric.labels))


def spreads() -> Iterator[tuple[str, Labels, Spread]]:
    """Yield the histograms that every controller has, without any observation."""
    for metric in TABLE:
        name, empty = (
            metric.name.removeprefix(PREFIX),
            Spread((0,) * (len(metric.buckets) + 1), 0.0),
        )
        if metric.kind == "histogram":
            yield from ((name, labels, empty) for labels in _labels(name, metric.labels))


def refusals(providers: Iterable[str]) -> Iterator[Zero]:
    """Yield what may be counted of those who may refuse us."""
    for provider in providers:
        yield from (("api_errors_total", (provider, code)) for code in REFUSALS)


def of_machine(rental: Rental, named: Callable[[str], str]) -> Iterator[Zero]:
    """Yield what may be counted once a machine is rented: its end by its provider, its money.

    `named`: returns what a project is called as a label.
    """
    if rental.taken is None:
        return
    of = (rental.taken.provider, rental.taken.market)
    yield "preemptions_total", of
    for project in map(named, sorted(set(rental.jobs.values()))):
        yield "spent_usd_total", (project, *of)
        yield from (("wasted_usd_total", (project, str(cause))) for cause in CAUSES)


def _labels(name: str, labels: tuple[str, ...]) -> Iterable[Labels]:
    return _LABELS.get(name, () if labels else [()])
