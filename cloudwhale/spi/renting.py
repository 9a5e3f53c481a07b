"""Which machines are rented for the jobs that had better not wait.

All jobs of one payer are one problem: jobs stand side by side on a machine and one after another.
A machine is paid for from its launch until its last job has ended. To minimise: expected money.

Bound by: what a machine has, at every moment; each job's latest end; the worst case of all machines
together, where there is a budget; how many machines a quota allows; one zone for a gang.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cloudwhale.model.units import GiB, Seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    """One row a job, one column a kind, in the order of the problem."""

HOUR_S: Seconds = 3600.0
MINUTE_S: Seconds = 60.0


@dataclass(frozen=True, slots=True)
class Kind:
    """Machines that could be rented and differ in nothing that matters here.

    All devices of a machine are alike. Money is in floats: it is weighed here and never paid.
    """

    offer: str
    """Id of the offer that is taken first."""
    zone: str
    model: str
    """Canonical name of its GPUs; empty: it has none."""
    devices: int
    device_gib: GiB
    """Memory of each of them."""
    cpu: float
    memory_gib: GiB
    disk_gib: GiB
    usd_h: float
    """Expected price per hour, disks and addresses included."""
    cap_usd_h: float
    """The most that an hour can cost without our consent, disks and addresses included."""
    boot_s: Seconds
    market: str = "on-demand"
    hazard_per_h: float = 0.0
    billing_step_s: Seconds = 1.0
    billing_least_s: Seconds = 60.0
    at_most: int | None = None
    """Machines of it that can be had at once; None: nobody has said."""
    quota: str = ""
    """The quota group that it counts against, when one is known."""
    quota_units: float = 0.0
    """What one machine takes of it."""

    @property
    def unused_s(self) -> Seconds:
        """Return for how long a lease of it may be paid beyond its time: a boot that fails, what
        is begun of a billing step, what is billed at least beyond a minute."""
        return self.boot_s + self.billing_step_s + max(0.0, self.billing_least_s - MINUTE_S)

    def cost_usd(self, used_s: Seconds) -> float:
        """Return what a machine costs from its launch, boot included, until it is given back."""
        step_s = self.billing_step_s
        billed_s = used_s if step_s <= 0 else -(-used_s // step_s) * step_s
        return self.usd_h * max(billed_s, self.billing_least_s) / HOUR_S


@dataclass(frozen=True, slots=True)
class Demand:
    """What a job takes of one machine while it runs there."""

    devices: int
    share: float
    """Of the compute of each of these devices, in (0, 1]; two jobs share one when both fit."""
    device_gib: GiB | None
    """Memory of each of these devices; None: as large a part of it as its share."""
    cpu: float
    memory_gib: GiB
    disk_gib: GiB
    nodes: int = 1
    """More than one: a gang, which takes so many machines of one offer, at once."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a lease is made longer than what it is planned for, so that its worst case is known."""

    longer: float = 1.25
    """There is money for so many times what is planned, boot included: jobs may run late."""
    least_s: Seconds = 300.0
    """A lease holds so long at least, landing left out."""
    beyond_s: Seconds = 0.0
    """Landing, stop and a minute that is billed at least, which come on top."""

    def worst_usd(self, kind: Kind, used_s: Seconds) -> float:
        """Return the most that a machine can cost which is planned for some time, boot included."""
        held_s = max(self.least_s, used_s * self.longer) + self.beyond_s + kind.unused_s
        return kind.cap_usd_h * held_s / HOUR_S


@dataclass(frozen=True, slots=True, eq=False)
class RentalProblem:
    """All that is to be rented for one payer in one round."""

    jobs: Sequence[str]
    """Ids, in the order of the round: who comes first gets the money first."""
    demands: Sequence[Demand]
    """Of each job."""
    kinds: Sequence[Kind]
    runs_s: Matrix
    """Expected run time of each job on each kind, boot left out; infinity: it cannot run there."""
    late_s: Matrix
    """What it takes at most, at the quantile that is asked of a deadline; at least `runs_s`."""
    extra_usd: Matrix
    """What a job costs on a kind on top of the machine's time: data that is moved, restores."""
    done_by_s: Sequence[Seconds]
    """From now until when each job must have ended, by `late_s`; infinity: nothing demands it."""
    start_by_s: Sequence[Seconds]
    """From now until when each job must have started; infinity: nothing demands it."""
    horizon_s: Seconds = float("inf")
    """No machine is planned for longer, boot included."""
    budget_usd: float | None = None
    """All worst cases together stay at or below it; None: no bound."""
    quotas: Mapping[str, float] = field(default_factory=dict[str, float])
    """What is left of each quota group that is known."""
    terms: Terms = Terms()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Seat:
    """A job's time on a machine."""

    job: str
    start_s: Seconds
    """From the launch of the machine, boot included."""
    devices: tuple[int, ...] = ()
    """Which of the machine's devices it takes, by position."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One machine (of a gang: so many alike), and the jobs that it is rented for."""

    offer: str
    seats: tuple[Seat, ...]
    """Ordered by their start, then by job."""
    used_s: Seconds
    """From its launch until the last of them is expected to end."""
    says: str
    machines: int = 1

    @property
    def jobs(self) -> tuple[str, ...]:
        """Return the jobs that it is rented for, who starts first first."""
        return tuple(seat.job for seat in self.seats)


@dataclass(frozen=True, slots=True)
class RentalPlan:
    """The machines to rent, and how good that is."""

    choices: tuple[Choice, ...]
    """A job in none of them waits."""
    cost_usd: float = 0.0
    """Expected, of all choices."""
    bound_usd: float | None = None
    """No plan for the same jobs costs less; None: nobody has worked it out."""
    worth_usd: Mapping[str, float] = field(default_factory=dict[str, float])
    """By job, what the bound says that it costs: its shadow price."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a job is in no choice although some kind fits: `budget`, `quota`, `late`."""
    how: str = ""
    """Which way the best plan was found, and with what effort."""
    out_of_effort: bool = False
    """Whether the effort ended before its work was done, so that a simpler plan was taken."""


class Rent(Protocol):
    """Chooses machines. What it may set aside in all is told by the problem's budget."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return the machines to rent; the same problem gives the same plan.

        Called once for each payer in a round. Effort is counted in work, never in seconds.
        """
        ...
