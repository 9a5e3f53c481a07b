"""What a job or a run cost, line by line."""

from decimal import Decimal
from typing import Literal

from cloudwhale.model.reason import Reason
from cloudwhale.model.value import Value

Course = Literal["on-demand", "one-each", "all-rented", "all-waited"]
"""Another course of things.

`on-demand`: the same jobs were rented for, on demand alone. `one-each`: each on a machine of its
own. `all-rented`: those that ran on machines of ours were rented for, too. `all-waited`: nothing
was rented, and they waited for machines of ours.
"""


class Otherwise(Value):
    """What the same jobs would have cost in another course of things.

    Both sides are what the planner expected of the same stored rounds, for the same jobs: not what
    was paid in the end, as nobody knows what would have happened to other machines.
    """

    course: Course
    jobs: int
    """That are compared."""
    rounds: tuple[int, ...]
    """Numbers of the rounds that were planned again."""
    then_usd: Decimal | None
    """What was expected of the machines that were rented; None: nobody knows."""
    other_usd: Decimal | None
    """The same of the other plans; None: some jobs would have got nothing, or nobody knows."""
    bound_usd: Decimal | None = None
    """No plan in that course is cheaper; None: nobody has worked it out, as where the jobs were of
    several rounds, which are planned for one by one."""
    gap: float | None = None
    """How far the other plans may be above that, as a share of their cost."""
    then_s: float | None = None
    """Of `all-waited`: from the first of the rounds until the last job would have been done."""
    other_s: float | None = None
    """The same without renting; None: some could never run here."""
    without: tuple[str, ...] = ()
    """Ids of jobs that would have got no machine, or no place."""


class Parts(Value):
    """What a sum was for, under the keys that `cost` uses.

    The first four add up to it, and so do egress and the last six: to the micro-dollar.
    """

    machine_usd: Decimal = Decimal(0)
    disk_usd: Decimal = Decimal(0)
    address_usd: Decimal = Decimal(0)
    egress_usd: Decimal = Decimal(0)
    """Checkpoints that were brought from other clouds."""
    useful_usd: Decimal = Decimal(0)
    wasted_boot_usd: Decimal = Decimal(0)
    wasted_idle_usd: Decimal = Decimal(0)
    wasted_lost_work_usd: Decimal = Decimal(0)
    wasted_failed_attempts_usd: Decimal = Decimal(0)
    wasted_over_asking_usd: Decimal = Decimal(0)


class LineReceipt(Value):
    """One job's part of one machine's bill."""

    rental: str
    job: str | None
    spent_usd: Decimal
    on_demand_usd: Decimal | None
    gpu_s: float
    parts: Parts


class TollReceipt(Value):
    """One interruption of a job, and what it cost."""

    at: str
    """When its attempt was over."""
    why: str
    lost_work_s: float
    wasted_usd: Decimal | None
    """For lost work, and for machines that were billed and did not run it; None: none was paid."""
    away_s: float | None
    """Until it ran again; None: it has not."""


class JobReceipt(Value):
    """One job's part of a receipt; keys are those that every `--json` uses."""

    id: str
    name: str
    project: str
    state: str
    reason: Reason | None
    attempt: int
    node: str | None
    devices: tuple[str, ...]
    others: tuple[str, ...] = ()
    """Of a gang: the nodes of its other ranks, from rank 1 on."""
    provider: str | None
    market: str | None
    """`local` on owned machines; None while the job has no place."""
    region: str | None
    zone: str | None
    price_usd_h: Decimal | None
    """Of the machine it is on; None for owned ones, which have no hourly price."""
    exit_code: int | None
    spent_usd: Decimal
    reserved_usd: Decimal
    budget_usd: Decimal | None
    saved_usd: Decimal | None
    """Against the same job on demand; None while no price to compare with is known."""
    wasted_usd: Decimal
    submitted_at: str | None
    started_at: str | None
    ended_at: str | None
    run_s: float
    wait_s: float
    lost_work_s: float
    interruptions: int
    parts: Parts = Parts()
    """Of what was spent."""
    gpu_s: float = 0.0
    """Rented seconds times devices, by its part of each machine."""
    restores: int = 0
    """How often it went on from a checkpoint."""
    tolls: tuple[TollReceipt, ...] = ()
    """What each interruption has cost, where that was asked for."""


class MachineReceipt(Value):
    """What one rented machine of a run cost."""

    id: str
    state: str
    provider: str
    type: str
    market: str
    region: str
    zone: str
    price_usd_h: Decimal | None
    """As it was billed, without disk and address; None: nobody knows."""
    extras_usd_h: Decimal
    """Its disk and address, on top of that."""
    billed_s: float
    """From when its bill began to when it ended, or until now; 0 when there is none."""
    billed_least_s: float
    """So long is billed at least."""
    started_at: str | None
    ended_at: str | None
    spent_usd: Decimal
    """Charged, once it is back; until then what would be by now; with what was brought there."""
    reserved_usd: Decimal
    """Set aside for it now."""
    released_usd: Decimal
    """Of what was set aside for it, what it did not need."""
    on_demand_usd: Decimal | None
    """What the same time would have cost on demand; None: nobody knows."""
    egress_usd: Decimal
    """Of what was spent: checkpoints that were brought there from other clouds, which bill it."""
    jobs: dict[str, Decimal]
    """What each job paid of it, by id."""
    boot: dict[str, float] = {}
    """Seconds that each phase of its first boot took, as it has told."""
    store_requests: int = 0
    """What its agents asked of the store, as they have said; in no sum, as the store bills it."""
    store_usd: Decimal = Decimal(0)
    """What that costs there, about."""
    parts: Parts = Parts()
    """Of what was spent."""
    lines: tuple[LineReceipt, ...] = ()
    """What each job paid for; they add up to the machine."""


class ProviderReceipt(Value):
    """What one cloud's part of a run is."""

    provider: str
    spent_usd: Decimal
    """For its machines, and for what left it."""
    machines: int
    """That were had."""
    egress_usd: Decimal
    """Of what was spent: checkpoints that left it for machines elsewhere."""


class RunReceipt(Value):
    """What a run cost."""

    run: str
    jobs: tuple[JobReceipt, ...]
    spent_usd: Decimal
    budget_usd: Decimal | None
    lost_work_s: float
    interruptions: int
    reserved_usd: Decimal = Decimal(0)
    """Set aside now, for machines that are not back."""
    released_usd: Decimal = Decimal(0)
    """Was set aside, and was not needed."""
    saved_usd: Decimal | None = None
    """Against the same machines on demand; None while no price to compare with is known."""
    planned_usd: Decimal | None = None
    """What its machines were expected to cost when they were rented; None: nobody knows."""
    one_each_usd: Decimal | None = None
    """What the cheapest machine for each of the same jobs alone was expected to cost then.

    To be held against `planned_usd`, and not against what was paid.
    """
    machines: tuple[MachineReceipt, ...] = ()
    providers: tuple[ProviderReceipt, ...] = ()
    """The same money by cloud; the parts add up."""
    running_usd: Decimal = Decimal(0)
    """What machines that are not back have come to by now: in no other sum of the run."""
    wasted_usd: Decimal = Decimal(0)
    parts: Parts = Parts()
    """Of what was spent."""
    otherwise: tuple[Otherwise, ...] | None = None
    """What the same jobs would have cost; None: nobody has asked."""
