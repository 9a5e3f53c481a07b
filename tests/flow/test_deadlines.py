"""Jobs with deadlines on spot: on-demand comes in time, whatever spot does; what is late ends."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from clouding import RENTING, an_offer
from makers import a_node, a_spec, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.faults import ControllerRestarted
from cloudwhale.simulation.playing import Arrival, Played, play, told
from cloudwhale.simulation.setting import Offered, Setting
from cloudwhale.spi.waiting import Verdict
from cloudwhale.spi.waiting import Waits as Shown

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


def an_arrival(deadline_s: float, work_s: float = 4 * HOUR, name: str = "j", **of: Any) -> Arrival:
    base = {"resources": wants(cpu=4), "checkpoint": RULE, "retry": RETRY}
    spec = a_spec(duration_s=work_s, deadline=deadline_s, name=name, **{**base, **of})
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
@pytest.mark.parametrize("seed", range(3))
def test_no_storm_makes_it_miss_its_deadline(seed: int, slack: float, notice_s: float) -> None:
    drawn = random.Random(f"storm-{seed}-{slack}")
    deadline = slack * 4 * HOUR
    of = played(
        an_arrival(deadline), hazard_per_h=drawn.choice((0.5, 2.0, 6.0, 30.0)), seed=seed,
        notice_s=notice_s,
    )  # fmt: skip
    assert ended_at(of) <= deadline
    assert "on-demand" in markets(of) or len(markets(of)) >= 1


def test_who_waits_for_a_machine_of_ours_is_rented_for_on_demand_in_time() -> None:
    """The machine here is taken for the day; nothing else may run it but what can be rented."""
    deadline = 7 * HOUR
    home = a_node("home", cpu=4.0, memory_gib=32.0)
    first = an_arrival(100 * HOUR, 20 * HOUR, "first", market="local")
    later = Arrival(60.0, "j", an_arrival(deadline, name="j").spec, 4 * HOUR)
    patient = Chosen(replace(RENTING, wait=Waits()), order="priority", score="best-fit")
    clouds = [Offered("cloud", [Shelf(SPOT), Shelf(ON_DEMAND)], 0)]
    of = play(Setting([home], (first, later), clouds=clouds, budget=micro_usd(500)), patient)
    assert ended_at(of) <= deadline
    assert markets(of) == ["on-demand"]
    (rental,) = of.rentals
    assert rental.reserved_at > 2 * HOUR, "not before its last safe moment comes near"


class Waits:
    """Would have everybody wait for a machine of ours for ever."""

    needs_quotes = False

    def verdicts(self, waits: Shown) -> Mapping[str, Verdict]:
        return {
            one.job.id: Verdict("wait", "it may become free") for one in waits.waiting
            if not one.fits_now
        }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_not_even_the_slowest_of_everything_makes_it_miss(seed: int) -> None:
    """Stops save nothing and take the whole grace, restores a minute, boots as long as stated."""
    drawn = random.Random(f"worst-{seed}")
    physics = Physics(start_s=1.0, restore_s=55.0, stop_s=RULE.grace_s, saves_on_stop=False)
    every_s = drawn.choice((60.0, 600.0, 3000.0))
    deadline = drawn.uniform(4.15, 6.0) * HOUR
    one = an_arrival(deadline, checkpoint=RULE.but(every_s=every_s))
    hazard, notice_s = drawn.choice((0.2, 1.0, 4.0)), drawn.choice((0.0, 30.0, 120.0))
    shelves = [Shelf(SPOT.but(notice_s=notice_s), hazard_per_h=hazard), Shelf(ON_DEMAND)]
    restarts = tuple(ControllerRestarted(drawn.uniform(0, deadline), 3.0) for _ in range(6))
    of = play(
        Setting(
            [], [one], physics, clouds=[Offered("cloud", shelves, seed)], faults=restarts,
            budget=micro_usd(500),
        ),
        CHOSEN,
    )  # fmt: skip
    assert ended_at(of) <= deadline


def test_one_that_is_late_all_the_same_ends_and_is_told_once() -> None:
    """Its file says an hour, and it takes four."""
    one = an_arrival(2 * HOUR, 4 * HOUR)
    wrong = replace(one, spec=one.spec.but(duration_s=HOUR, max_duration_s=None))
    of = played(wrong)
    assert ended_at(of) > 2 * HOUR
    missed = [x.event for x in told(of.store) if isinstance(x.event, e.DeadlineMissed)]
    assert [event.at for event in missed] == [pytest.approx(2 * HOUR)]
    stopped = [x.event.at for x in told(of.store) if isinstance(x.event, e.StopWished)]
    assert max(stopped, default=0.0) < 2 * HOUR, "nobody is stopped for being late"


@pytest.mark.parametrize("others", [0, 2])
def test_one_that_is_late_on_a_machine_of_ours_is_told_when_its_deadline_passes(
    others: int,
) -> None:
    home = a_node("home", cpu=16.0, memory_gib=32.0)
    one = an_arrival(1.5 * HOUR, 2 * HOUR)
    wrong = replace(one, spec=one.spec.but(duration_s=HOUR, max_duration_s=None))
    beside = [an_arrival(100 * HOUR, HOUR / 2, f"k-{n}") for n in range(others)]
    of = play(Setting([home], [wrong, *beside]), CHOSEN)
    missed = [x.event for x in told(of.store) if isinstance(x.event, e.DeadlineMissed)]
    assert [event.job for event in missed] == ["j"]
    assert missed[0].at == pytest.approx(1.5 * HOUR)
    assert ended_at(of) == pytest.approx(2 * HOUR, abs=5.0)


@pytest.mark.parametrize("rent", ["greedy", "whale-rent"])
@pytest.mark.parametrize("seed", range(2))
def test_many_with_deadlines_share_machines_and_none_misses_its_own(seed: int, rent: str) -> None:
    drawn = random.Random(f"many-{seed}")
    arrivals = list[Arrival]()
    for number in range(8):
        work_s, at = drawn.uniform(0.3, 3.0) * HOUR, drawn.uniform(0.0, HOUR)
        # In time on on-demand from the start, with more or less to spare.
        deadline = at + work_s + drawn.uniform(0.15, 1.5) * HOUR
        one = an_arrival(deadline, work_s, f"j-{number}")
        arrivals.append(replace(one, at=at))
    hazard = drawn.choice((0.3, 1.0, 3.0))
    shelves = [Shelf(SPOT.but(notice_s=120.0), hazard_per_h=hazard), Shelf(ON_DEMAND)]
    chosen = replace(CHOSEN, policies=replace(RENTING, rent=plugins.load(plugins.RENTS, rent)()))
    clouds = [Offered("cloud", shelves, seed)]
    of = play(Setting([], arrivals, clouds=clouds, budget=micro_usd(1000)), chosen)
    late = {
        name: (one.job.ended_at or 0.0) - (one.job.spec.deadline or 0.0)
        for name, one in of.jobs.items()
    }
    assert {one.job.state for one in of.jobs.values()} == {JobState.COMPLETED}
    assert max(late.values()) <= 0.0, late
    assert "spot" in markets(of)


@pytest.mark.parametrize("budget", ["23", "30", "42", "45", "70"])
@pytest.mark.parametrize("seed", range(2))
def test_a_budget_that_holds_on_demand_at_first_holds_the_switch_later(
    seed: int, budget: str
) -> None:
    """However much spot has cost by then, and though the soft line may be passed."""
    drawn = random.Random(f"budget-{seed}-{budget}")
    deadline = drawn.uniform(4.3, 6.5) * HOUR
    of = played(
        an_arrival(deadline), hazard_per_h=drawn.choice((0.2, 0.7, 2.0)), seed=seed, budget=budget
    )  # fmt: skip
    assert ended_at(of) <= deadline
    taken = most = 0
    for one in told(of.store):
        if isinstance(one.event, e.Reserved | e.Released):
            is_more = isinstance(one.event, e.Reserved)
            taken += one.event.amount if is_more else -one.event.amount
        most = max(most, taken)
    assert most <= micro_usd(budget)
