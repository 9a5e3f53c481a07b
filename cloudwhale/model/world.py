"""All that one planning round may know, frozen: version, now, jobs, nodes, money."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cloudwhale.model.budget import Budget
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Measured, Node
from cloudwhale.model.offer import Offer
from cloudwhale.model.peak import Peak
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value


class Account(Value):
    """A payer's money: a bound, what is set aside and what is gone."""

    payer: str
    """A run, or a project in a month as `planning/payers` writes it: `project:nlp:2026-11`."""
    limit: MicroUsd | None = None
    """None: nothing may be reserved, unless it needs no limit."""
    needs_limit: bool = True
    """Of runs: without a budget they rent nothing. Projects may, until somebody sets one."""
    reserved: MicroUsd = MicroUsd(0)
    spent: MicroUsd = MicroUsd(0)
    soft: float = 0.9
    """Share of the limit at which nothing new is rented."""


class Sighting(Value):
    """What was seen of a node since the last round; kept with the round, not an event."""

    node: str
    heard_at: Instant
    """When its agent last said anything, by this host's clock."""
    agent_alive: bool | None = None
    """For nodes whose agent we start ourselves: whether it runs; None where we cannot see."""
    measured: Measured | None = None
    """What is really used there; None where the agent does not say."""


class Use(Value):
    """What a project's ended attempts have used of GPUs, fading with time."""

    device_s: Seconds
    """Seconds times devices times share, as of `at`; half of it is forgotten every HALF_LIFE_S."""
    at: Instant

    def now(self, at: Instant) -> Seconds:
        """Return what is left of it at a later time."""
        return float(self.device_s * 0.5 ** (max(0.0, at - self.at) / USE_HALF_LIFE_S))


USE_HALF_LIFE_S: Seconds = 24 * 3600.0  # who used much yesterday counts half as much today


@dataclass(frozen=True, slots=True)
class World:
    """A snapshot. Mappings are never changed once a world holds them."""

    version: int
    """Number of the newest event that it has seen."""
    now: Instant
    seed: int = 0
    jobs: Mapping[str, Job] = field(default_factory=dict[str, Job])
    """Every job that has not ended, by id."""
    ended: Mapping[str, JobState] = field(default_factory=dict[str, JobState])
    """How the jobs ended that a live job waits for, by id."""
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    runs: Mapping[str, Run] = field(default_factory=dict[str, Run])
    """Runs that have a live job or an open rental, and nights that are still to be closed."""
    rentals: Mapping[str, Rental] = field(default_factory=dict[str, Rental])
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    offers: tuple[Offer, ...] = ()
    sightings: Mapping[str, Sighting] = field(default_factory=dict[str, Sighting])
    durations: Mapping[tuple[str, str], tuple[Seconds, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Seconds, ...]]
    )
    """Run times of ended jobs by family, newest last."""
    peaks: Mapping[tuple[str, str], tuple[Peak, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Peak, ...]]
    )
    """What ended attempts have used at most by family, newest last."""
    use: Mapping[str, Use] = field(default_factory=dict[str, Use])
    """What each project's ended attempts have used, by project."""
    budgets: Mapping[str, Budget] = field(default_factory=dict[str, Budget])
    """What projects may spend in a month, by project; one that is not here has no bound."""
