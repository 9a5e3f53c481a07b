"""What a dry run says: where each job would go, what would be rented, and what that comes to."""

from typing import Literal

from cloudwhale.model.reason import Reason
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value
from cloudwhale.planning.durations import Expected

State = Literal["runs-now", "rented", "waits", "over-budget", "too-late", "impossible"]
"""`over-budget`: nothing that is owned could ever run it, and the money for a machine is lacking.

`too-late`: nothing could have done it by its deadline. `impossible`: nothing at all could run it.
"""


class Rival(Value):
    """The best of the places that lost."""

    where: str
    """A node, or an offer as a person calls it: `CLOUD g6.xlarge spot, us-east-1`."""
    says: str
    """Why it lost, with numbers."""
    offer: str | None = None
    """Id of the offer; None: an owned node."""
    cost: MicroUsd | None = None
    """What the job would cost there."""
    ends_at: Instant | None = None
    """When it would be done there; None: unknown."""


class Binding(Value):
    """What forbids the cheaper thing."""

    code: str
    """The constraint: `gpu-memory`, `deadline`, `market`, `budget`, `never`, …"""
    says: str
    saves: MicroUsd | None = None
    """What the job would cost less without it; None: unknown."""


class PreviewJob(Value):
    """Where one job would go."""

    name: str
    project: str
    state: State
    node: str | None
    """An owned node."""
    devices: tuple[str, ...]
    reason: Reason
    expected: Expected
    """How long it is expected to run, on its reference GPU."""
    runner_up: Rival | None
    sized: str = ""
    """What it asks for by what its family was seen to use, and why; empty: what its file says."""
    held_until: Instant | None = None
    """It fits somewhere and is held back for a better place, no longer than this."""
    machine: str | None = None
    """Which of the plan's machines it would run on."""
    offer: str | None = None
    starts_at: Instant | None = None
    """None: nobody knows."""
    ends_at: Instant | None = None
    after: str | None = None
    """Name of the job whose end it waits for on that machine."""
    beside: tuple[str, ...] = ()
    """Names of those that run there while it does."""
    others: tuple[str, ...] = ()
    """Of a gang: the other machines that it has at the same time, `m2`, …"""
    cost: MicroUsd | None = None
    """Its part of what its machine is expected to cost; nothing on an owned node."""
    worst: MicroUsd | None = None
    """Its part of what is set aside for the machine."""
    binding: Binding | None = None
    switches_at: Instant | None = None
    """When it goes on on on-demand at the latest, for its deadline; None: it does not, or never."""
    switch_worst: MicroUsd | None = None
    """What that can cost at most, which is kept for it."""
    deadline_says: str = ""
    """How its deadline is kept on a machine that may be taken away; empty: it is on none."""


class PlannedJob(Value):
    """One job's time on a machine that would be rented."""

    name: str
    number: int
    """Its position among all jobs of the dry run."""
    starts_at: Instant
    ends_at: Instant


class PreviewMachine(Value):
    """A machine that would be rented."""

    name: str
    """`m1`, `m2`, …"""
    offer: str
    type: str
    provider: str
    region: str
    zone: str
    market: Literal["spot", "on-demand"]
    price_usd_h: MicroUsd
    """Now, disk and address included."""
    cap_usd_h: MicroUsd
    """The most that an hour can cost without our consent, disk and address included."""
    devices: tuple[str, ...] = ()
    """Models of its GPUs."""
    cpu: float = 0.0
    launched_at: Instant
    ready_at: Instant
    ends_at: Instant
    cost: MicroUsd
    worst: MicroUsd
    jobs: tuple[PlannedJob, ...]
    moved: MicroUsd = NOTHING
    """What of the cost is for bringing the jobs' data there."""
    moved_from: tuple[str, ...] = ()
    """The regions that data are brought from."""
    estimated: bool = False
    """Whether its price was worked out from others."""
    priced_at: Instant | None = None
    source: str = ""


class More(Value):
    """What a larger budget would change."""

    added: MicroUsd
    jobs: int = 0
    """So many more would get a machine."""
    sooner_s: Seconds = 0.0
    """The last of them would end so much sooner."""
    cost: MicroUsd = NOTHING
    """So much more would be spent, as expected."""


class Later(Value):
    """Jobs that come after others of the dry run, and that machines are rented for only then."""

    jobs: int
    cost: MicroUsd
    """What the cheapest machine for each of them alone is expected to cost."""


class Preview(Value):
    """What would happen if the jobs were submitted now."""

    jobs: tuple[PreviewJob, ...]
    gives_way: tuple[str, ...] = ()
    """Ids of running jobs that would be stopped for others, checkpoint first."""
    machines: tuple[PreviewMachine, ...] = ()
    """Machines that would be rented."""
    cost_usd: MicroUsd = NOTHING
    bound_usd: MicroUsd | None = NOTHING
    """No plan for the same jobs costs less; None: nobody has worked it out."""
    gap: float | None = 0.0
    """How far the cost may be above the least possible, as a share of the least; None: unknown."""
    one_each_usd: MicroUsd | None = NOTHING
    """What the cheapest machine for each job alone would cost in all."""
    worst_case_usd: MicroUsd = NOTHING
    """What would be set aside."""
    budget_usd: MicroUsd | None = None
    """None: nothing may be rented."""
    more: More | None = None
    """What another 5 USD would change; None: it was not asked, as no job lacks money."""
    least_budget_usd: MicroUsd | None = None
    """A budget that all jobs could be run with; None: this one does, or none would."""
    later: Later | None = None
    """Who is not in these sums, as it waits for others; None: all are."""
    can_launch: bool = True
    """Whether a provider is set up that could really launch the machines."""
    is_simpler: bool = False
    """Whether the solver's effort ended before its work was done."""
    prices: tuple[str, ...] = ()
    """Sentences on the prices that it was made with."""
    made_at: Instant = 0.0
