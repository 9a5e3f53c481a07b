"""A plan's machines played in the simulated cloud: launched, taken away, launched again, billed.

When a machine dies and what it is billed are the cloud's. A job starts when all those have ended
that its plan lets end before it; one that is interrupted goes on, on another machine of the same
offer, from its last save.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rentals_mix import CHECKPOINT

from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MICRO_PER_USD, Instant, Seconds
from cloudwhale.planning.stock import RESTORES_S, SAVE_HOLDS_S
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale.spi.renting import Choice, RentalPlan, RentalProblem

NEAR_S = 1e-3
EVERY_S = CHECKPOINT.every_s
AWAY_S = 1e7
"""Between the lives of two machines that are played: none is listed when another begins."""


@dataclass(slots=True)
class Work:
    """A job of a machine that is played."""

    left_s: Seconds
    """Of its work, run undisturbed."""
    before: Sequence[int]
    """Who must have ended, by position."""
    is_risky: bool
    ended_at: Instant = math.inf
    tries: int = 0

    def takes_s(self) -> Seconds:
        """Return how long it takes from here when nothing happens, with its saves."""
        again_s = RESTORES_S if self.tries else 0.0
        saves = max(0, math.ceil(self.left_s / EVERY_S) - 1) if self.is_risky else 0
        return again_s + self.left_s + saves * SAVE_HOLDS_S

    def interrupted(self, ran_s: Seconds) -> None:
        """Lose what was done since the last save."""
        done_s = ran_s - (RESTORES_S if self.tries else 0.0)
        saved = max(0, math.floor(done_s / (EVERY_S + SAVE_HOLDS_S)))
        self.left_s -= min(saved * EVERY_S, self.left_s - NEAR_S)
        self.tries += 1


@dataclass(slots=True)
class Stage:
    """A cloud and its clock."""

    offers: Mapping[str, Offer]
    seed: int
    now: Instant = 0.0
    cloud: SimulatedCloud = field(init=False)

    def __post_init__(self) -> None:
        """Put every offer on a shelf."""
        shelves = [Shelf(offer) for offer in self.offers.values()]
        self.cloud = SimulatedCloud(
            shelves,
            open_objects("memory://"),
            lambda _: Program(work_s=0.0),
            lambda: self.now,
            self.seed,
        )

    def play(self, name: str, offer: Offer, works: Sequence[Work]) -> None:
        """Launch machines for some jobs until all have ended."""
        self.now += AWAY_S
        life = 0
        while any(math.isinf(work.ended_at) for work in works):
            life += 1
            request = LaunchRequest(
                request_id=f"{name}-{life}", node=f"{name}-{life}", offer=offer,
                mailbox="memory://", home="/",
            )  # fmt: skip
            machine = self.cloud.launch(request)
            hired = self.cloud.hired[request.request_id]
            self.now = _lived(works, hired.boots_at, hired.taken_at)
            self.cloud.terminate(machine.id)


def _lived(works: Sequence[Work], up_at: Instant, taken_at: Instant) -> Instant:
    """Run jobs on a machine while it lives, and return when it is no longer needed or there."""
    starts: list[Instant] = []
    ends: list[Instant] = []
    for work in works:
        ready = max([up_at, *(ends[one] for one in work.before)])
        starts.append(ready)
        ends.append(up_at if work.ended_at < up_at else ready + work.takes_s())
    for work, start, end in zip(works, starts, ends, strict=True):
        if work.ended_at < up_at:
            continue
        if end <= taken_at:
            work.ended_at = end
        elif start < taken_at:
            work.interrupted(taken_at - start)
    return min(max(ends), taken_at)


def replayed_usd(
    problem: RentalProblem, plan: RentalPlan, calm: RentalProblem,
    offers: Mapping[str, Offer], seed: int,
) -> float:  # fmt: skip
    """Return what a plan's machines cost with the interruptions of a seed, and the moved data.

    `calm`: the same problem where no machine is ever taken away.
    """
    column = {kind.offer: at for at, kind in enumerate(problem.kinds)}
    row = {job: at for at, job in enumerate(problem.jobs)}
    used = {choice.offer: offers[choice.offer] for choice in plan.choices}
    stage, extra = Stage(used, seed), 0.0
    for number, choice in enumerate(plan.choices):
        at = column[choice.offer]
        rows = [row[job] for job in choice.jobs]
        extra += sum(float(problem.extra_usd[one, at]) for one in rows)
        runs_s = [float(problem.runs_s[one, at]) for one in rows]
        calm_s = [float(calm.runs_s[one, at]) for one in rows]
        is_risky = problem.kinds[at].hazard_per_h > 0
        for copy in range(choice.machines):
            works = [
                Work(left_s, _before(choice, runs_s, place), is_risky)
                for place, left_s in enumerate(calm_s)
            ]
            stage.play(f"m{number}-{copy}", used[choice.offer], works)
    return stage.cloud.bill() / MICRO_PER_USD + extra


def _before(choice: Choice, runs_s: Sequence[Seconds], place: int) -> list[int]:
    """Return who ends before a job starts, as it is planned; seats are ordered by their start."""
    start_s = choice.seats[place].start_s
    return [
        one for one in range(place) if choice.seats[one].start_s + runs_s[one] <= start_s + NEAR_S
    ]
