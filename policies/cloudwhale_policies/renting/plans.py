"""From machines with lots of jobs on them to the plan that names each job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale.spi.renting import Choice, RentalPlan, Seat
from cloudwhale_policies.renting.machine import Machine

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Tables


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines, and the lots of jobs for which no machine was to be had."""

    machines: Sequence[Machine]
    left: Sequence[int] = ()

    @property
    def usd(self) -> float:
        """Return what all machines count together."""
        return sum(machine.usd for machine in self.machines)


def worst_usd(tables: Tables, machines: Sequence[Machine]) -> float:
    """Return the most that all of them can cost together."""
    terms, kinds = tables.problem.terms, tables.kinds
    return sum(one.width * terms.worst_usd(kinds[one.kind], one.end_s) for one in machines)


def plan_of(tables: Tables, fleet: Fleet, how: str, asked: Tables | None = None) -> RentalPlan:
    """Return the plan; of a lot's jobs those that come first in the round start first.

    `asked`: what was asked, where the fleet is of fewer kinds.
    """
    jobs = _jobs_of_seats(tables, fleet)
    choices = tuple(_choice(tables, machine, jobs[at]) for at, machine in enumerate(fleet.machines))
    seated = {seat.job for choice in choices for seat in choice.seats}
    return RentalPlan(
        choices=choices,
        cost_usd=cost_usd(tables, fleet.machines),
        left_out=_left_out(asked or tables, seated, set(fleet.left)),
        how=how,
    )


def cost_usd(tables: Tables, machines: Sequence[Machine]) -> float:
    """Return what machines are expected to cost, whatever weight the worst case has."""
    kinds = tables.kinds
    return sum(one.width * kinds[one.kind].cost_usd(one.end_s) + one.extra_usd for one in machines)


def _jobs_of_seats(tables: Tables, fleet: Fleet) -> list[list[str]]:
    seats = sorted(
        (start, at, place)
        for at, machine in enumerate(fleet.machines)
        for place, start in enumerate(machine.starts)
    )
    waiting = [iter(rows) for rows in tables.members]
    named = [[""] * len(machine.lots) for machine in fleet.machines]
    for _, at, place in seats:
        row = next(waiting[fleet.machines[at].lots[place]])
        named[at][place] = tables.problem.jobs[row]
    return named


def _choice(tables: Tables, machine: Machine, jobs: Sequence[str]) -> Choice:
    seats = sorted(
        (
            Seat(job, start, tuple(one for one in range(mask.bit_length()) if mask >> one & 1))
            for job, start, mask in zip(jobs, machine.starts, machine.masks, strict=True)
        ),
        key=lambda seat: (seat.start_s, seat.job),
    )
    others = f" and {len(seats) - 1} more" if len(seats) > 1 else ""
    return Choice(
        offer=tables.kinds[machine.kind].offer,
        seats=tuple(seats),
        used_s=machine.end_s,
        says=f"the cheapest found for {seats[0].job}{others}",
        machines=machine.width,
    )


def _left_out(tables: Tables, seated: set[str], scarce: set[int]) -> dict[str, str]:
    left: dict[str, str] = {}
    fits: list[bool] = np.any(tables.fits, axis=1).tolist()
    for row, job in enumerate(tables.problem.jobs):
        lot = tables.lot_of[row]
        if job not in seated and fits[lot]:
            why = "quota" if lot in scarce else "budget"
            left[job] = why if np.isfinite(tables.cheapest_usd[lot]) else "late"
    return left
