"""Jobs with deadlines on spot: on-demand comes in time, whatever spot does; what is late ends."""

import random
from collections.abc import Iterator

import pytest
from clouding import RENTING, an_offer
from makers import a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.playing import Arrival, Played, play, told
from cloudwhale.simulation.setting import Offered, Setting

HOUR = 3600.0
Droughts = tuple[tuple[float, float], ...]
RULE = CheckpointRule(every_s=300.0, grace_s=20.0)
RETRY = RetryRule(max=1000, backoff_s=30.0)  # spot alone decides when it ends
CHOSEN = Chosen(RENTING, order="priority", score="best-fit")
ON_DEMAND = an_offer("firm", boot_s=120.0)
SPOT = an_offer(
    "spot", market="spot", price_usd_h=micro_usd("1.2"), cap_usd_h=micro_usd("3.6"), boot_s=90.0,
    hazard_per_h=0.05,
)  # fmt: skip


def an_arrival(
    deadline_s: float, work_s: float = 4 * HOUR, name: str = "j", **of: object
) -> Arrival:
    fields = {"checkpoint": RULE, "retry": RETRY, **of}
    spec = a_spec(
        resources=wants(cpu=4), duration_s=work_s, deadline=deadline_s, name=name, **fields
    )
    return Arrival(0.0, name, spec, work_s)


def played(
    *arrivals: Arrival, hazard_per_h: float = 0.0, seed: int = 0, budget: str = "500",
    notice_s: float = 0.0, droughts: Droughts = (),
) -> Played:  # fmt: skip
    spot = Shelf(SPOT.but(notice_s=notice_s), droughts=droughts, hazard_per_h=hazard_per_h)
    clouds = [Offered("cloud", [spot, Shelf(ON_DEMAND)], seed)]
    return play(Setting([], arrivals, clouds=clouds, budget=micro_usd(budget)), CHOSEN)


def markets(of: Played) -> list[str]:
    return [one.taken.market for one in of.rentals if one.taken is not None]


def stops(of: Played) -> Iterator[e.StopWished]:
    for one in told(of.store):
        if isinstance(one.event, e.StopWished) and one.event.reason.code is Code.SWITCHES:
            yield one.event


def ended_at(of: Played, job: str = "j") -> float:
    found = of.jobs[job].job
    assert found.state is JobState.COMPLETED and found.ended_at is not None
    return found.ended_at


def test_with_time_to_spare_it_stays_on_spot_to_its_end() -> None:
    of = played(an_arrival(8 * HOUR))
    assert markets(of) == ["spot"] and not list(stops(of))
    assert ended_at(of) <= 8 * HOUR


@pytest.mark.parametrize("notice_s", [0.0, 120.0])
@pytest.mark.parametrize("slack", [1.15, 1.4, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_storm_makes_it_miss_its_deadline(seed: int, slack: float, notice_s: float) -> None:
    drawn = random.Random(f"storm-{seed}-{slack}")
    deadline = slack * 4 * HOUR
    of = played(
        an_arrival(deadline), hazard_per_h=drawn.choice((0.5, 2.0, 6.0, 30.0)), seed=seed,
        notice_s=notice_s,
    )  # fmt: skip
    assert ended_at(of) <= deadline
    assert "on-demand" in markets(of) or len(markets(of)) >= 1


def test_a_job_that_waits_for_spot_is_rented_for_on_demand_at_its_last_safe_moment() -> None:
    deadline = 7 * HOUR
    of = played(an_arrival(deadline, market="auto"), droughts=((0.0, 100 * HOUR),))
    assert ended_at(of) <= deadline
