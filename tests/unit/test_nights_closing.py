"""What closes a night, and what is told of those that are not done: rounds at its end."""

from typing import Any

import pytest
from clouding import RENTING
from makers import a_job, a_node, a_run, a_world, placed
from switching_world import a_rental

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Wish
from cloudwhale.model.night import Night
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.world import World
from cloudwhale.planning.checker_nights import RULES
from cloudwhale.planning.nights import BACK_WITHIN_S
from cloudwhale.planning.planner import plan
from cloudwhale.planning.rules import Rules

CLOSES = 1000.0
NIGHT = Night(name="lab", date="2026-12-01", zone="UTC", opens_at=100.0, closes_at=CLOSES)
LATE = CLOSES + BACK_WITHIN_S


def world(now: float, *jobs: Job, rentals: tuple[Rental, ...] = (), **of: Any) -> World:
    ended = of.pop("ended", {})
    return a_world(
        list(jobs), [a_node("home")], now=now, runs={"run-1": a_run(night=NIGHT.but(**of))},
        rentals={one.id: one for one in rentals}, ended=ended,
    )  # fmt: skip


def steps(of: World, kind: type[Any]) -> list[Any]:
    made = plan(of, RENTING)
    assert not [fault for rule in RULES for fault in rule(made, of, Rules())]
    return [step for step in made.steps if isinstance(step, kind)]


def running(name: str = "j", node: str = "home", **of: Any) -> Job:
    job = placed(a_job(name, **of), node)
    return job.but(state=JobState.RUNNING, order_posted=True, started_at=500.0)


def silent(name: str = "j") -> Job:
    return running(name).but(state=JobState.RECOVERING)


@pytest.mark.parametrize("job", [silent(), running().but(wish=Wish.GIVE_WAY)])
def test_who_never_lands_at_home_keeps_a_night_open_for_a_quarter_of_an_hour(job: Job) -> None:
    assert not steps(world(CLOSES, job), p.CloseNight)
    assert not steps(world(LATE - 1, job), p.CloseNight)
    (closes,) = steps(world(LATE, job), p.CloseNight)
    assert closes.unfinished == {"j": "continue"}, "it is parked by nobody: it holds its place yet"
    (carried,) = steps(world(LATE, job, unfinished="carry-over"), p.CloseNight)
    assert carried.unfinished == {"j": "carry-over"}


def test_a_rented_machine_that_somebody_is_on_keeps_it_open() -> None:
    lease = Lease(number=1, watched_until=900.0, away_until=900.0, stop_at=1020.0)
    there = a_rental(payer="run-1", lease=lease)
    assert not steps(world(LATE + 1, running(node=there.id), rentals=(there,)), p.CloseNight)


def test_who_can_never_start_is_given_up_and_not_left_over() -> None:
    doomed, waits = a_job("b", after=("a",)), a_job("c")
    of = world(CLOSES, doomed, waits, ended={"a": JobState.FAILED})
    assert [step.job for step in steps(of, p.GiveUp)] == ["b"]
    (closes,) = steps(of, p.CloseNight)
    assert closes.unfinished == {"c": "park"} and "1 job is left over" in closes.reason.says


def test_who_is_cancelled_as_it_closes_is_not_left_over_and_who_is_paused_is_set_aside() -> None:
    gone, aside = a_job("b", wish=Wish.CANCEL), a_job("c", wish=Wish.PAUSE)
    (closes,) = steps(world(CLOSES, gone, aside, unfinished="carry-over"), p.CloseNight)
    assert closes.unfinished == {"c": "park"}
