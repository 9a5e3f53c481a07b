"""Every metric that there is: name, kind, meaning, labels, unit; all else is made from this table.

Names and base units as Prometheus asks for (prometheus.io/docs/practices/naming): seconds, ratios,
dollars as they are; what only grows ends in `_total`. No label holds a job, and each has a bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]
Unit = Literal["", "seconds", "usd", "ratio"]

PREFIX = "cloudwhale_"
OTHER = "other"
"""Stands for all values of a label beyond its bound."""

AT_MOST: Mapping[str, int] = {"project": 100, "type": 50, "node": 100, "payer": 100}
"""How many values of a label have series of their own; other labels come from closed lists, or are
as many as there are clouds, regions of machines or GPU models."""

WAITS_S = (1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 86400, 259200)
"""From what a person calls at once to three days."""
WORKS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""From a tick that changes nothing to the longest that a choice of machines may take, twice."""
GAPS = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of series."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    unit: Unit = ""
    buckets: tuple[float, ...] = ()
    """Upper ends, ascending, infinity left out; of histograms alone."""

    @property
    def series(self) -> tuple[str, ...]:
        """Return the names under which it is queried."""
        if self.kind != "histogram":
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))


def _gauge(name: str, help: str, *labels: str, unit: Unit = "") -> Metric:
    return Metric(PREFIX + name, "gauge", help, labels, unit)


def _counter(name: str, help: str, *labels: str, unit: Unit = "") -> Metric:
    return Metric(PREFIX + name, "counter", help, labels, unit)


def _spread(
    name: str, help: str, *labels: str, buckets: tuple[float, ...], unit: Unit = "seconds"
) -> Metric:
    return Metric(PREFIX + name, "histogram", help, labels, unit, buckets)


TABLE: tuple[Metric, ...] = (
    # the queue
    _gauge("jobs", "Jobs that have not ended, by state and newest reason.", "state", "reason"),
    _gauge("project_jobs", "Jobs that have not ended, by project and state.", "project", "state"),
    _gauge(
        "oldest_wait_seconds", "How long the job has waited that waits longest.", unit="seconds"
    ),
    _spread(
        "admission_wait_seconds",
        "From submission to the first start, by whose machine it started on (own, rented).",
        "place", buckets=WAITS_S,
    ),
    _counter("jobs_ended_total", "Jobs that have ended, by how.", "state"),
    _counter("attempts_lost_total", "Attempts whose machine was lost, by reason.", "reason"),
    _counter("jobs_gave_way_total", "Attempts that were stopped for another job."),
    _counter(
        "lost_work_seconds_total", "Work that was done and has to be done again.", unit="seconds"
    ),
    _gauge(
        "checkpoints_late", "Running jobs that have saved nothing for twice their interval."
    ),
    # machines
    _gauge("nodes", "Nodes by whose they are (own, rented) and state.", "place", "state"),
    _gauge(
        "gpus", "GPUs of nodes that are there, by whose they are, and whether jobs hold them.",
        "place", "use",
    ),
    _gauge(
        "heartbeat_age_seconds", "How long ago a node's agent was heard.", "node", unit="seconds"
    ),
    _gauge(
        "rentals", "Rented machines that are not back, by state and offer.",
        "state", "provider", "market", "type",
    ),
    _counter(
        "preemptions_total", "Rented machines that their provider has taken away.",
        "provider", "market",
    ),
    _gauge("leaks", "What of ours at a provider belongs to no rental, as last seen.", "provider"),
    _gauge(
        "offer_gpu_hour_usd", "Lowest price of an hour of a GPU that could be rented now.",
        "gpu", "market", unit="usd",
    ),
    # money
    _counter(
        "spent_usd_total", "Spent on machines that are back and paid for, as the ledger has it.",
        "project", "provider", "market", unit="usd",
    ),
    _counter(
        "wasted_usd_total", "What of it went on nothing that lasted, by cause.",
        "project", "cause", unit="usd",
    ),
    _gauge(
        "saved_usd", "What the same would have cost more on demand, where that is known.",
        "project", unit="usd",
    ),
    _gauge(
        "unsettled_usd", "What machines that are not paid for yet have cost so far.",
        "provider", "market", unit="usd",
    ),
    _gauge(
        "budget_limit_usd", "Bounds of projects this month, and of runs that are not over.",
        "kind", "payer", unit="usd",
    ),
    _gauge(
        "budget_reserved_usd", "Set aside for machines that are not paid for yet.",
        "kind", "payer", unit="usd",
    ),
    _gauge("budget_spent_usd", "Spent of that budget.", "kind", "payer", unit="usd"),
    # the controller
    _spread("tick_seconds", "Time of one tick.", buckets=WORKS_S),
    _spread("round_seconds", "Time of one planning round, record included.", buckets=WORKS_S),
    _spread("solver_seconds", "Time of one choice of machines for a payer.", buckets=WORKS_S),
    _spread(
        "solver_gap_ratio", "How far a choice of machines is above its lower bound at most.",
        buckets=GAPS, unit="ratio",
    ),
    _counter("solver_out_of_effort_total", "Choices that ran out of effort; a simpler one held."),
    _gauge("plan_refused", "1 while the checker refuses the newest plan."),
    _gauge("tick_age_seconds", "How long ago the newest tick ended.", unit="seconds"),
    _gauge("effects", "Effects that are under way, or failed and due again.", "state"),
    _counter("api_errors_total", "Refusals of providers, and silence.", "provider", "code"),
    _gauge("notices", "Notices to people that have not arrived yet, for each target.", "state"),
    _gauge("build_info", "1, with the version that runs.", "version"),
)  # fmt: skip

BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in TABLE}


def as_markdown() -> str:
    """Return the table as docs/metrics.md holds it."""
    rows = ["| metric | kind | labels | what |", "| --- | --- | --- | --- |"]
    for metric in TABLE:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(rows)
