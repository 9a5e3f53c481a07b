"""Small stories for tests: the events that a job, a node or a rental goes through."""

from collections.abc import Sequence

from cloudwhale.model import event as e
from cloudwhale.model.job import Job, Placement
from cloudwhale.model.plan import Decision, Place, Plan, Round, Step
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd

WHY = Reason(code=Code.PLACED, says="host scores 1")
HERE = Placement(node="host")


def submitted(*jobs: Job) -> list[e.Event]:
    return [e.Submitted(at=job.submitted_at, job=job.id, first=job) for job in jobs]


def completes(job: str, ran_s: float = 5.0) -> list[e.Event]:
    """Return what happens to a pending job until it has completed."""
    return [
        e.Placed(at=1.0, job=job, attempt=1, placement=HERE, reason=WHY),
        e.Started(at=2.0, job=job, attempt=1),
        e.Finished(at=2.0 + ran_s, job=job, attempt=1),
    ]


def was_placed(job: str) -> e.Placed:
    return e.Placed(at=1.0, job=job, attempt=1, placement=HERE, reason=WHY)


def rented(state: RentalState, payer: str = "run-1") -> e.RentalChanged:
    lease = Lease(number=1, watched_until=1.0, away_until=2.0, stop_at=3.0)
    return e.RentalChanged(
        at=0.0,
        rental=Rental(
            id="m", payer=payer, offer="o", lease=lease, reserved=MicroUsd(9), state=state
        ),
    )


def a_round(version: int, *steps: Step, decisions: Sequence[Decision] = ()) -> Round:
    plan = Plan(version=version, steps=steps, decisions=tuple(decisions))
    return Round(
        number=0, version=version, now=1.0, seed=0, epoch=1, order="fifo", score="best-fit",
        settings="{}", sightings="[]", plan=plan,
    )  # fmt: skip


def a_place(job: str) -> Place:
    return Place(job=job, attempt=1, placement=HERE, reason=WHY)
