"""What was chosen for each payer of a round, then and when it is solved again."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cloudwhale.model.plan import Plan, Rent, Tender
from cloudwhale.model.units import MicroUsd, usd


@dataclass(frozen=True, slots=True)
class Side:
    """What was chosen once."""

    cost: MicroUsd | None = None
    """Expected; None: nothing was asked, or nobody kept it."""
    bound: MicroUsd | None = None
    """No plan for the same jobs is cheaper; None: nobody has worked it out."""
    machines: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many of each offer were rented."""
    how: str = ""


@dataclass(frozen=True, slots=True)
class Solved:
    """What was chosen for some jobs of one payer, then and now."""

    payer: str
    jobs: tuple[str, ...]
    then: Side
    now: Side

    @property
    def is_same(self) -> bool:
        """Say whether cost, bound and machines are the same."""
        return (self.then.cost, self.then.bound, self.then.machines) == (
            self.now.cost, self.now.bound, self.now.machines,
        )  # fmt: skip

    @property
    def says(self) -> str:
        """Return in a sentence what differs."""
        if self.is_same:
            return f"{self.payer}: the same again, {_choice(self.now)}"
        return f"{self.payer}: {_choice(self.then)} then; {_choice(self.now)} now"


def solved_again(old: Plan, new: Plan) -> tuple[Solved, ...]:
    """Return what was chosen in two plans of the same world, payer by payer."""
    then, now = dict(_chosen(old)), dict(_chosen(new))
    keys = dict.fromkeys((*then, *now))
    return tuple(
        Solved(key[0], key[1], then.get(key, Side()), now.get(key, Side())) for key in keys
    )


def _chosen(plan: Plan) -> Iterator[tuple[tuple[str, tuple[str, ...]], Side]]:
    rents = [step for step in plan.steps if isinstance(step, Rent)]
    tenders = plan.tenders or _untold(rents)
    for tender in tenders:
        jobs = set(tender.jobs)
        mine = [step.rental.offer for step in rents if jobs & set(step.rental.jobs)]
        asked = bool(plan.tenders)
        yield (
            (tender.payer, tender.jobs),
            Side(tender.cost if asked else None, tender.bound, Counter(mine), tender.how),
        )


def _untold(rents: list[Rent]) -> tuple[Tender, ...]:
    """Return one tender a payer for a round that an older program has stored."""
    jobs: dict[str, list[str]] = {}
    for step in rents:
        jobs.setdefault(step.rental.payer, []).extend(step.rental.jobs)
    nothing = MicroUsd(0)
    return tuple(
        Tender(payer=payer, jobs=tuple(names), cost=nothing, worst=nothing)
        for payer, names in jobs.items()
    )


def _choice(side: Side) -> str:
    """Return one side in words: `12.40 USD (at least 11.00) on 2 a, 1 b`."""
    cost = "a cost that was not kept" if side.cost is None else f"{usd(side.cost)} USD"
    bound = "" if side.bound is None else f" (at least {usd(side.bound)})"
    machines = ", ".join(f"{count} {offer}" for offer, count in sorted(side.machines.items()))
    return f"{cost}{bound} on {machines or 'no machine'}"
