"""What a round decided: steps, the reasons that changed, and the scores behind each place."""

from typing import Annotated, Literal

from pydantic import Field

from cloudwhale.model.cost import CostLine
from cloudwhale.model.job import Placement
from cloudwhale.model.night import Unfinished
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Wire


class Place(Wire):
    """Start the job's next attempt here."""

    kind: Literal["place"] = "place"
    job: str
    attempt: int
    placement: Placement
    reason: Reason
    pace: float = 1.0
    """How fast it is expected to go there beside where its duration holds."""


class AskToStop(Wire):
    """Stop the attempt: checkpoint first, then the signal, then the end."""

    kind: Literal["ask-to-stop"] = "ask-to-stop"
    job: str
    attempt: int
    wish: Literal["give-way", "limit"]
    reason: Reason


class Hold(Wire):
    """Do not start the job now, although it fits somewhere: a better place comes soon."""

    kind: Literal["hold"] = "hold"
    job: str
    until: Instant
    """It is not held back any longer than this, whatever comes."""
    reason: Reason


class Park(Wire):
    """Leave the job alone until a person acts."""

    kind: Literal["park"] = "park"
    job: str
    reason: Reason


class GiveUp(Wire):
    """End a job that holds no place and can never run."""

    kind: Literal["give-up"] = "give-up"
    job: str
    reason: Reason


class Drop(Wire):
    """End or set aside a job that holds no place, as its wish says."""

    kind: Literal["drop"] = "drop"
    job: str
    wish: Literal["cancel", "pause"]
    reason: Reason


class DeclareLost(Wire):
    """The node is silent for too long: its attempts are lost."""

    kind: Literal["declare-lost"] = "declare-lost"
    node: str
    silent_s: Seconds
    attempts: tuple[tuple[str, int], ...] = ()
    reason: Reason


class Clear(Wire):
    """A lost attempt is out for certain: its job may start again."""

    kind: Literal["clear"] = "clear"
    job: str
    attempt: int
    lost_s: Seconds = 0.0
    counts: bool = True
    """Whether it counts against `retry.max`: nothing was saved since it began."""


class Late(Wire):
    """Report that a job has saved nothing for twice its interval."""

    kind: Literal["late"] = "late"
    job: str
    attempt: int
    reason: Reason


class Missed(Wire):
    """Report that a job's deadline has passed while it has a place."""

    kind: Literal["missed"] = "missed"
    job: str
    reason: Reason


class Explain(Wire):
    """The reason why the job waits has changed."""

    kind: Literal["explain"] = "explain"
    job: str
    reason: Reason


class WakeAgent(Wire):
    """Start the agent of an owned node that has none running."""

    kind: Literal["wake-agent"] = "wake-agent"
    node: str


class PostStart(Wire):
    """Put the attempt's start order into its agent's mailbox (again, after a crash)."""

    kind: Literal["post-start"] = "post-start"
    job: str
    attempt: int
    rank: int = 0


class PostStop(Wire):
    """Put the attempt's stop order into its agent's mailbox (again, after a crash)."""

    kind: Literal["post-stop"] = "post-stop"
    job: str
    attempt: int
    rank: int = 0


class ForgetSaves(Wire):
    """Delete checkpoints of a gang that are older than all that it may go on from."""

    kind: Literal["forget-saves"] = "forget-saves"
    job: str
    attempt: int
    manifests: tuple[str, ...]


class PlannedSeat(Wire):
    """When a job is to run on a machine that is rented."""

    job: str
    starts_at: Instant
    ends_at: Instant


class Rent(Wire):
    """Set money aside for a machine, and have it launched for some jobs."""

    kind: Literal["rent"] = "rent"
    rental: Rental
    """As it is reserved: payer, offer, jobs, lease and money are in it."""
    reason: Reason
    seats: tuple[PlannedSeat, ...] = ()
    """Side by side and one after another; who starts first first."""
    cost: MicroUsd | None = None
    """Expected."""
    moved: MicroUsd = NOTHING
    """What of it is for bringing the jobs' data there."""


class Join(Wire):
    """Let a job onto a machine that its payer has rented for others and that has room."""

    kind: Literal["join"] = "join"
    rental: Rental
    """With the job among those that it is rented for."""
    job: str
    projects: dict[str, MicroUsd] = {}
    """What the account of its project sets aside for that; in the rental's sums already."""
    reason: Reason


class Launch(Wire):
    """Ask the provider for a machine whose money is set aside (again, after a crash)."""

    kind: Literal["launch"] = "launch"
    rental: str


class Receive(Wire):
    """The machine's agent has joined: it is ready."""

    kind: Literal["receive"] = "receive"
    rental: Rental


class Renew(Wire):
    """Set more money aside for a longer lease of a machine that is still needed."""

    kind: Literal["renew"] = "renew"
    rental: Rental
    """With the renewal, its money in the sum."""
    reason: Reason


class Extend(Wire):
    """Ask the provider to move its own stop of a machine (again, after a crash)."""

    kind: Literal["extend"] = "extend"
    rental: str


class TellLease(Wire):
    """Tell the agent of a rented machine how long it is paid for, and that we are there."""

    kind: Literal["tell-lease"] = "tell-lease"
    rental: Rental
    """With the lease to be told."""


class Return(Wire):
    """Give a machine back: nothing runs there, and nobody is on the way."""

    kind: Literal["return"] = "return"
    rental: Rental
    reason: Reason


class Terminate(Wire):
    """Ask the provider to end a machine that was given back (again, after a crash)."""

    kind: Literal["terminate"] = "terminate"
    rental: str


class Settle(Wire):
    """Pay for a machine that is gone, and free what was set aside beyond that."""

    kind: Literal["settle"] = "settle"
    rental: Rental
    """Returned, with what it has cost."""
    charges: dict[str, MicroUsd] = {}
    """What each of its jobs pays."""
    lines: dict[str, CostLine] = {}
    """What that was for, by job."""
    released: MicroUsd = MicroUsd(0)
    reason: Reason


class CloseNight(Wire):
    """A night is over: what is left over is dealt with, as its file says."""

    kind: Literal["close-night"] = "close-night"
    run: str
    unfinished: dict[str, Unfinished] = {}
    """What becomes of each job that is not done, by job."""
    reason: Reason


Step = Annotated[
    Place
    | AskToStop
    | Hold
    | Park
    | GiveUp
    | Drop
    | DeclareLost
    | Clear
    | Late
    | Missed
    | Explain
    | WakeAgent
    | PostStart
    | PostStop
    | ForgetSaves
    | Rent
    | Join
    | Launch
    | Receive
    | Renew
    | Extend
    | TellLease
    | Return
    | Terminate
    | Settle
    | CloseNight,
    Field(discriminator="kind"),
]


class Scored(Wire):
    """One place and what each named score gave it; scores are in [0, 1]."""

    placement: Placement
    scores: dict[str, float]
    total: float


class Decision(Wire):
    """Why one job got its place, or none: kept with the round."""

    job: str
    chosen: Scored | None = None
    rivals: tuple[Scored, ...] = ()
    """The best three others."""
    refused: dict[Code, int] = {}
    """How many nodes refused, by code."""
    nearest: Refusal | None = None
    """The refusal that was closest to a yes."""
    nearest_node: str | None = None


class Tender(Wire):
    """What was chosen for one payer, and how good that is."""

    payer: str
    jobs: tuple[str, ...]
    """All that were to be rented for."""
    cost: MicroUsd
    """Expected, of all machines that were chosen."""
    worst: MicroUsd
    """The most that their leases can cost."""
    bound: MicroUsd | None = None
    """No plan for the same jobs is cheaper; None: nobody has worked it out."""
    one_each: MicroUsd | None = None
    """What the cheapest machine for each of the jobs chosen for, alone, would cost in all."""
    left_out: dict[str, str] = {}
    """Why a job got no machine: `budget`, `quota`, `late`."""
    how: str = ""
    """Which way the choice was found."""
    code: Code | None = None
    """`solver-out-of-effort`, when a simpler choice had to do."""

    @property
    def gap(self) -> float | None:
        """Return how far above the bound it may be, as a share of the cost; None: unknown."""
        if self.bound is None or not self.cost:
            return None
        return max(0.0, 1 - self.bound / self.cost)


class Plan(Wire):
    """What should happen, and why. Empty steps: nothing to do."""

    version: int
    """Of the world it was made from."""
    steps: tuple[Step, ...] = ()
    decisions: tuple[Decision, ...] = ()
    tenders: tuple[Tender, ...] = ()
    look_again_at: Instant | None = None
    """When the same world would give another plan because time has passed; None: never."""


class Round(Wire):
    """A stored planning round: enough to run it again and compare bit for bit."""

    number: int
    """Given by the store; 0 before that."""
    version: int
    now: Instant
    seed: int
    epoch: int
    order: str
    score: str
    settings: str
    """Planning settings as JSON."""
    sightings: str
    """Sightings as JSON."""
    offers: str = ""
    """Digest of the list of offers, which the store keeps once; empty: nothing was offered."""
    wait: str = ""
    """Empty: whoever fits may start."""
    rent: str = ""
    """Empty: nothing is rented."""
    answers: str = ""
    """What the rent policy answered, as JSON (`control/answers`); empty: nothing was asked."""
    plan: Plan
