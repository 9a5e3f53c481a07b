"""What every metric says at a moment: samples of what the newest tick has left behind.

Gauges are worked out of the world when somebody asks; counters and histograms were counted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cloudwhale.clock import lasted
from cloudwhale.model.job import JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import MICRO_PER_USD, Instant, MicroUsd, Seconds
from cloudwhale.model.world import Account, World
from cloudwhale.planning import costing
from cloudwhale.planning.payers import month_of, project_and_month
from cloudwhale.reporting.metrics_table import AT_MOST, OTHER, PREFIX, TABLE, Metric

Labels = tuple[str, ...]
"""Values of a metric's labels, in its order."""

HERE = frozenset({NodeState.READY, NodeState.DRAINING})


@dataclass(frozen=True, slots=True)
class Spread:
    """Observations of a histogram."""

    counts: tuple[int, ...]
    """In each bucket alone, and last above all of them."""
    total: float

    @property
    def count(self) -> int:
        """Return how many there were."""
        return sum(self.counts)


Sample = float | Spread
Counts = Mapping[str, Mapping[Labels, float]]
"""By metric. Money is in micro-dollars here."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a tick leaves behind; nothing in it is changed afterwards."""

    world: World
    """As it was planned for, sightings and offers included."""
    ended_s: Seconds
    """When that tick ended, by the clock of the host that takes the time of ticks."""
    counts: Counts = field(default_factory=dict[str, Mapping[Labels, float]])
    spreads: Mapping[str, Mapping[Labels, Spread]] = field(
        default_factory=dict[str, Mapping[Labels, Spread]]
    )

    def aged(self, steady_s: Seconds) -> Seconds:
        """Return how long ago that was on the host's clock."""
        return max(0.0, steady_s - self.ended_s)

    def now(self, steady_s: Seconds) -> Instant:
        """Return what time it is for the controller; a wall clock that is set changes nothing."""
        return self.world.now + lasted(self.aged(steady_s))


def samples(
    vitals: Vitals | None, steady_s: Seconds
) -> Iterator[tuple[Metric, dict[Labels, Sample]]]:
    """Yield each metric of the table with its samples; none before the first tick has ended.

    `steady_s`: the time now, by the clock of `Vitals.ended_s`.
    """
    for metric in TABLE:
        yield metric, {} if vitals is None else _samples(metric, vitals, steady_s)


def _samples(metric: Metric, vitals: Vitals, steady_s: Seconds) -> dict[Labels, Sample]:
    if metric.kind == "histogram":
        return dict(vitals.spreads.get(metric.name, {}))
    seen = _SEEN.get(metric.name.removeprefix(PREFIX))
    found = vitals.counts.get(metric.name, {}) if seen is None else dict(seen(vitals, steady_s))
    per = MICRO_PER_USD if metric.unit == "usd" else 1
    return {labels: value / per for labels, value in found.items()}


# -- bounds of labels ------------------------------------------------------------------------


def bounded(
    found: Iterable[tuple[Labels, float]],
    at: int,
    at_most: int,
    together: Callable[[float, float], float] = lambda one, other: one + other,
) -> dict[Labels, float]:
    """Return samples of which only so many values of the label at a position have their own.

    Who comes first has its own; all that come after those are put `together` as `other`.
    """
    own: set[str] = set()
    sums: dict[Labels, float] = {}
    for labels, sample in found:
        if labels[at] in own or len(own) < at_most:
            own.add(labels[at])
        else:
            labels = (*labels[:at], OTHER, *labels[at + 1 :])
        sums[labels] = together(sums[labels], sample) if labels in sums else sample
    return sums


def _largest(found: Mapping[Labels, float], at: int, label: str) -> dict[Labels, float]:
    """Return samples within the bound of a label; those values have their own that have most."""
    sizes: Counter[str] = Counter()
    for labels, sample in found.items():
        sizes[labels[at]] += int(sample)
    rows = sorted(found.items(), key=lambda row: (-sizes[row[0][at]], row[0]))
    return bounded(rows, at, AT_MOST[label])


# -- gauges ----------------------------------------------------------------------------------


def _jobs(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    jobs = vitals.world.jobs.values()
    found = Counter((job.state, "" if job.reason is None else job.reason.code) for job in jobs)
    return {(str(state), str(reason)): float(count) for (state, reason), count in found.items()}


def _project_jobs(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    jobs = vitals.world.jobs.values()
    return _largest(Counter((job.spec.project, str(job.state)) for job in jobs), 0, "project")


def _oldest_wait(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    jobs, now = vitals.world.jobs.values(), vitals.now(steady_s)
    waits = [now - job.submitted_at for job in jobs if job.state is JobState.PENDING]
    return {(): max([0.0, *waits])}  # a submitter's clock may be ahead of ours


def _checkpoints_late(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    jobs = vitals.world.jobs.values()
    late = (job for job in jobs if job.late_said and job.state is JobState.RUNNING)
    return {(): float(sum(1 for _ in late))}


def place_of(node: Node | None) -> str:
    """Return whose machine a node is, as the label `place` says it."""
    return "own" if node is None or node.owned else "rented"


def _nodes(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    nodes = vitals.world.nodes.values()
    found = Counter((place_of(node), str(node.state)) for node in nodes)
    return {labels: float(count) for labels, count in found.items()}


def _gpus(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    held: dict[str, set[str]] = defaultdict(set)
    for job in vitals.world.jobs.values():
        for member in () if job.placement is None else job.placement.members:
            held[member.node].update(member.devices)
    found: dict[Labels, float] = {
        (place, use): 0.0 for place in ("own", "rented") for use in ("held", "free")
    }
    for node in vitals.world.nodes.values():
        if node.state in HERE:
            ids = {device.id for device in node.facts.devices}
            found[place_of(node), "held"] += len(ids & held[node.id])
            found[place_of(node), "free"] += len(ids - held[node.id])
    return found


def _heartbeats(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    """Return the ages, the oldest of those beyond the bound as that of all others."""
    nodes, now = vitals.world.nodes, vitals.now(steady_s)
    sightings = vitals.world.sightings.values()
    seen = [one for one in sightings if one.node in nodes and nodes[one.node].state in HERE]
    ages = sorted((one.heard_at, one.node) for one in seen)
    rows = (((node,), max(0.0, now - heard_at)) for heard_at, node in ages)
    return bounded(rows, 0, AT_MOST["node"], together=max)


def _rentals(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    found: Counter[Labels] = Counter()
    for rental in vitals.world.rentals.values():
        offer = rental.taken
        if rental.state is RentalState.RETURNED:
            continue
        of = ("", "", "") if offer is None else (offer.provider, offer.market, offer.type)
        found[str(rental.state), *of] += 1
    return _largest(found, 3, "type")


def _offers(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    found: dict[Labels, float] = {}
    for offer in vitals.world.offers:
        devices = offer.facts.devices
        if offer.usd_h is None or not devices:
            continue
        labels = (devices[0].model, offer.market)
        found[labels] = min(found.get(labels, float("inf")), offer.usd_h / len(devices))
    return found


def _tick_age(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    return {(): vitals.aged(steady_s)}


def _unsettled(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    found: dict[Labels, float] = {}
    for rental in vitals.world.rentals.values():
        for line in costing.so_far(rental, vitals.world):
            labels = (line.provider, line.market)
            found[labels] = found.get(labels, 0.0) + line.spent
    return found


# -- budgets ---------------------------------------------------------------------------------


def _limits(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    return _money(vitals.world, lambda account: account.limit)


def _reserved(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    return _money(vitals.world, lambda account: account.reserved)


def _spent(vitals: Vitals, steady_s: Seconds) -> Mapping[Labels, float]:
    return _money(vitals.world, lambda account: account.spent)


def _money(world: World, of: Callable[[Account], MicroUsd | None]) -> dict[Labels, float]:
    """Return sums by payer: runs that are not over, and projects in this month.

    Those who have most have series of their own, the same for all three sums.
    """
    found: dict[Labels, float] = {}
    for kind in ("project", "run"):
        rows = sorted(
            ((name, account) for what, name, account in _accounts(world) if what == kind),
            key=lambda row: (-(row[1].limit or 0), -(row[1].spent + row[1].reserved), row[0]),
        )
        own = {name for name, _ in rows[: AT_MOST["payer"]]}
        for name, account in rows:
            amount = of(account)
            if amount is not None:
                labels = (kind, name if name in own else OTHER)
                found[labels] = found.get(labels, 0.0) + amount
    return found


def _accounts(world: World) -> Iterator[tuple[str, str, Account]]:
    month = month_of(world.now)
    for payer, account in world.accounts.items():
        whose = project_and_month(payer)
        if whose is not None and whose[1] == month:
            yield "project", whose[0], account
        elif whose is None and payer in world.runs:
            yield "run", payer, account


_SEEN: Mapping[str, Callable[[Vitals, Seconds], Mapping[Labels, float]]] = {
    "jobs": _jobs,
    "project_jobs": _project_jobs,
    "oldest_wait_seconds": _oldest_wait,
    "checkpoints_late": _checkpoints_late,
    "nodes": _nodes,
    "gpus": _gpus,
    "heartbeat_age_seconds": _heartbeats,
    "rentals": _rentals,
    "offer_gpu_hour_usd": _offers,
    "budget_limit_usd": _limits,
    "budget_reserved_usd": _reserved,
    "budget_spent_usd": _spent,
    "tick_age_seconds": _tick_age,
    "unsettled_usd": _unsettled,
}
"""What is worked out of the world; all else was counted."""
