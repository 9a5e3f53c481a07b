"""What a person reads in the morning of what a night has done with their money."""

from decimal import Decimal

from cloudwhale.model.cost import Waste
from cloudwhale.model.value import Value


class NightMoney(Value):
    """What a night was allowed, and what has become of it; keys as in every document."""

    budget_usd: Decimal | None
    spent_usd: Decimal
    """Of machines that are not back yet what it would be by now."""
    reserved_usd: Decimal
    """Set aside still, for machines that are not back."""
    left_usd: Decimal | None
    """Of the budget, neither spent nor set aside; None without a budget."""
    saved_usd: Decimal | None
    """Against the same machines on demand; None: nobody knows."""
    wasted_usd: Decimal


class NightProject(Value):
    """One project's part of a night."""

    project: str
    jobs: int
    completed: int
    failed: int
    left_over: int
    gpu_s: float
    """Rented seconds times devices."""
    spent_usd: Decimal
    saved_usd: Decimal | None
    wasted_usd: Decimal


class NightJob(Value):
    """What became of one job."""

    id: str
    name: str
    project: str
    state: str
    where: str
    """The machine that it ran on last, in words; empty: it never started."""
    started_at: str | None
    """Its first start; times are in the night's zone."""
    ended_at: str | None
    run_s: float
    lost_work_s: float
    attempts: int
    interruptions: int
    spent_usd: Decimal
    wasted_usd: Decimal
    becomes: str = ""
    """What becomes of it, as it is left over; empty: it has ended."""
    why: str = ""
    """Why it failed or is left over."""
    change: str = ""
    """What a person could do about that."""
    exit_code: int | None = None
    last_line: str = ""
    """The last that it has printed, of one that failed."""


class NightMachine(Value):
    """One rented machine of a night."""

    id: str
    what: str
    """`CLOUD g5.xlarge spot in us-east-1a`."""
    state: str
    started_at: str | None
    ended_at: str | None
    billed_s: float
    spent_usd: Decimal
    jobs: tuple[str, ...]
    taken_away: bool = False
    """Its provider took it before it was given back."""


class NextNight(Value):
    """What is known of the night that follows."""

    opens_at: str
    closes_at: str
    budget_usd: Decimal | None
    waiting: tuple[str, ...]
    """Ids of jobs that are left over for it."""


class Morning(Value):
    """The report of one night."""

    run: str
    name: str
    """Of the night's file."""
    date: str
    zone: str
    opens_at: str
    closes_at: str
    told_at: str
    """When the report was made."""
    is_over: bool
    """Whether every job is done or left over, and every machine is back."""
    money: NightMoney
    wasted: dict[Waste, Decimal]
    """What was wasted by cause; causes without any are left out."""
    projects: tuple[NightProject, ...]
    jobs: tuple[NightJob, ...]
    machines: tuple[NightMachine, ...]
    lost_work_s: float
    interruptions: int
    tonight: NextNight | None = None
