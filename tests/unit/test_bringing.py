"""What a job has saved in one cloud is weighed, set aside and paid for when it goes to another."""

from typing import Any

import pytest
from clouding import RENTING, an_offer
from makers import a_job, a_node, a_world, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, CheckpointRule, Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Egress, Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.where import Where
from cloudwhale.model.world import Account, World
from cloudwhale.planning import checker, leasing
from cloudwhale.planning.bringing import Bringing, cost_of, egress_of
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.planner import plan
from cloudwhale.planning.settling import settled
from cloudwhale.planning.stock import Stock

HOUR = 3600.0
NOW = 10 * HOUR
GB = 1_000_000_000


def at(cloud: str, usd_h: str = "3.6", **of: Any) -> Offer:
    base = {"provider": cloud, "region": f"{cloud}-1", "zone": f"{cloud}-1a"}
    price = micro_usd(usd_h)
    return an_offer(f"{cloud}/m", **{**base, "price_usd_h": price, "cap_usd_h": price, **of})


HERE = at("rain", egress_usd_gb=0.12, egress_near_usd_gb=0.02)
THERE = at("snow", "3.5", egress_usd_gb=0.09)


RAIN = Where(provider="rain", region="rain-1", egress_usd_gb=0.12)


def a_saved(size: int, left: Where | None = RAIN) -> Job:
    saved = Checkpoint(
        attempt=1, seq=1, name="c-1", size_bytes=size, saved_at=NOW - 60, manifest="m"
    )
    rule = CheckpointRule(every_s=600.0)
    job = a_job("j", resources=wants(cpu=4), duration_s=2 * HOUR, checkpoint=rule)
    return job.but(checkpoint=saved, saved_from=left, attempt=1, run_s=HOUR, submitted_at=NOW - 60)


def world(job: Job, *offers: Offer, limit: float = 100.0) -> World:
    accounts = {"run-1": Account(payer="run-1", limit=micro_usd(str(limit)))}
    return a_world([job], [a_node(cpu=1.0)], now=NOW, offers=offers, accounts=accounts)


def rented(of: World) -> p.Rent:
    made = plan(of, RENTING)
    assert checker.check(made, of, RENTING.rules) == ()
    (step,) = [step for step in made.steps if isinstance(step, p.Rent)]
    return step


def test_a_small_checkpoint_goes_where_it_is_cheaper() -> None:
    step = rented(world(a_saved(GB // 10), HERE, THERE))
    assert step.rental.offer == "snow/m"
    assert step.moved == micro_usd("0.012"), "by what the cloud asks that it leaves"


def test_a_large_one_stays_in_its_cloud() -> None:
    step = rented(world(a_saved(20 * GB), HERE, THERE))
    assert (step.rental.offer, step.moved) == ("rain/m", 0)
    assert step.rental.brings == {}


def test_where_its_own_cloud_has_nothing_it_is_brought_and_paid_for() -> None:
    job = a_saved(20 * GB)
    step = rented(world(job, THERE))
    alone = rented(world(job.but(saved_from=None), THERE))
    assert step.rental.brings == {"j": 0.12}, "as it was offered there"
    least = micro_usd("2.40")
    assert step.rental.reserved - alone.rental.reserved >= least
    taken_s = step.rental.lease.away_until - alone.rental.lease.away_until
    assert taken_s >= 20 * GB / 25e6, "and it takes time, which is in its lease"


@pytest.mark.parametrize("left", [None, RAIN.but(region="rain-2")])
def test_within_one_cloud_nothing_is_weighed(left: Where | None) -> None:
    """What comes from a machine of ours, or from a region of the same cloud, is read as before."""
    job = a_saved(20 * GB, left)
    stock = Stock((HERE,), Durations({}))
    assert stock.moved_usd(job).tolist() == [0.0]
    assert stock.runs_s(job).tolist() == stock.runs_s(job.but(saved_from=None)).tolist()
    assert stock.bringing.most(job) == 0


def test_the_checker_finds_a_machine_whose_money_is_not_enough_for_what_is_brought() -> None:
    of = world(a_saved(20 * GB), THERE, HERE.but(capacity=0))
    step = rented(world(a_saved(20 * GB).but(saved_from=None), THERE))
    short = p.Plan(version=of.version, steps=(step,))
    assert "set-aside" in {fault.rule for fault in checker.check(short, of, RENTING.rules)}


def test_a_budget_that_does_not_hold_the_egress_does_not_rent() -> None:
    job = a_saved(20 * GB)
    alone = rented(world(job.but(saved_from=None), THERE))
    limit = 1.0 + (alone.rental.reserved + leasing.pledged(alone.rental)) / 1e6
    made = plan(world(job, THERE, limit=limit), RENTING)
    assert not [step for step in made.steps if isinstance(step, p.Rent)]
    (said,) = [step.reason for step in made.steps if isinstance(step, p.Explain)]
    assert said.code.value == "over-budget"
    assert rented(world(job.but(saved_from=None), THERE, limit=limit)).rental.offer == "snow/m"


def test_of_many_the_dearest_is_what_a_purse_keeps() -> None:
    bringing = Bringing((HERE, THERE, at("hail")))
    job = a_saved(GB)
    assert bringing.most(job) == cost_of(int(1.5 * GB) + 1_000_000, 0.12), "its manifest too"
    assert bringing.costs_usd(job).tolist() == pytest.approx([0.0, 0.12, 0.12])
    assert bringing.takes_s(job).tolist() == [0.0, 40.0, 40.0]
    unsaid = a_saved(GB, RAIN.but(egress_usd_gb=None))
    assert Bringing((HERE, THERE)).usd_gb(unsaid, THERE) == 0.09, "nobody says: the usual"


# -- paying ----------------------------------------------------------------------------------


def a_machine(*egress: Egress, reserved: str = "10", **of: Any) -> Rental:
    lease = Lease(number=1, watched_until=NOW, away_until=NOW, stop_at=NOW)
    projects = {"project:nlp:1970-01": micro_usd(reserved), "project:cv:1970-01": micro_usd("3")}
    base: dict[str, Any] = {
        "id": "r", "node": "r", "payer": "run-1", "offer": THERE.id, "taken": THERE,
        "state": RentalState.DRAINING, "lease": lease, "reserved": micro_usd(reserved),
        "requested_at": NOW - HOUR, "ended_at": NOW, "jobs": {"a": "nlp", "b": "cv"},
        "held_s": {"a": 1.0, "b": 1.0}, "projects": projects, "egress": egress,
    }  # fmt: skip
    return Rental(**{**base, **of})


def left(job: str, usd: str) -> Egress:
    return Egress(job=job, provider="rain", region="rain-1", size_bytes=GB, cost=micro_usd(usd))


def test_each_pays_its_part_of_the_machine_and_what_it_brought() -> None:
    found = settled(a_machine(left("a", "1"), left("a", "0.5"), left("b", "0.25")))
    assert found.charges == {"a": micro_usd("3.25"), "b": micro_usd("2")}
    assert sum(found.charges.values()) + found.released == micro_usd("10")
    assert "1.75 USD of it are for checkpoints" in found.reason.says


def test_no_project_pays_more_than_it_has_set_aside() -> None:
    found = settled(a_machine(left("b", "2.9")))
    assert found.charges["b"] == micro_usd("3"), "of the machine it pays what is left of its own"
    assert sum(found.charges.values()) == micro_usd("6.4")


def test_more_than_was_set_aside_is_told_and_not_charged() -> None:
    found = settled(a_machine(left("a", "20")))
    assert sum(found.charges.values()) == micro_usd("10") and found.released == 0
    assert "more than was set aside" in found.reason.says


def test_a_machine_to_which_nothing_was_brought_is_paid_for_as_before() -> None:
    found = settled(a_machine())
    assert found.charges == {"a": micro_usd("1.75"), "b": micro_usd("1.75")}
    assert egress_of(a_machine()) == {}


def test_what_is_weighed_is_what_is_charged() -> None:
    assert cost_of(3 * GB, 0.09) == MicroUsd(270_000)
    assert cost_of(1, 0.09) == MicroUsd(1), "rounded up"
