"""An afternoon with a budget: some wait, some are rented for, and every round is made again."""

from collections import Counter

import pytest
from clouding import an_offer
from makers import a_device, a_node, a_spec, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.control.replay import plan_again
from cloudwhale.model.job import JobState
from cloudwhale.model.node import Facts
from cloudwhale.model.plan import Explain, Round
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.playing import Arrival, Offered, Played, Setting, play

NODE = a_node("own", cpu=16.0, memory_gib=64.0, devices=(a_device("own-0"), a_device("own-1")))
OFFER = an_offer(
    "gpu", boot_s=60.0,
    facts=Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0, devices=(a_device("gpu-0"),)),
)  # fmt: skip


def an_afternoon(wait: str, usd: int) -> Played:
    """Play long and short jobs on two GPUs, beside a cloud that rents one GPU for 3.60 an hour."""
    policies = Policies(
        plugins.load(plugins.ORDERS, "whale")(), plugins.load(plugins.SCORES, "whale")(),
        Rules(value_usd_h=8.0),
        plugins.load(plugins.WAITS, wait)(), plugins.load(plugins.RENTS, "one-each")(),
    )  # fmt: skip
    arrivals = [
        Arrival(
            n * 400.0, f"job-{n:02}",
            a_spec(f"job-{n:02}", resources=wants(gpus=1), duration_s=length_s), length_s,
        )
        for n in range(24)
        for length_s in ((600.0, 5400.0, 1200.0, 2400.0)[n % 4],)
    ]  # fmt: skip
    chosen = Chosen(policies, order="whale", score="whale", wait=wait, rent="one-each")
    clouds = (Offered("cloud", [Shelf(OFFER)]),)
    return play(Setting([NODE], arrivals, clouds=clouds, budget=micro_usd(usd)), chosen)


def rounds_of(played: Played) -> list[Round]:
    found: list[Round] = []
    while (stored := played.store.round(len(found) + 1)) is not None:
        found.append(stored)
    return found


def codes_of(played: Played) -> Counter[Code]:
    steps = (step for stored in rounds_of(played) for step in stored.plan.steps)
    return Counter(step.reason.code for step in steps if isinstance(step, Explain))


@pytest.fixture(scope="module")
def afternoon() -> Played:
    return an_afternoon("whale", 100)


def test_some_wait_for_a_start_and_some_are_rented_for(afternoon: Played) -> None:
    assert codes_of(afternoon)[Code.WAITS_FOR_START] > 0
    assert 0 < len(afternoon.rentals) < 24


def test_all_jobs_of_the_afternoon_complete_within_the_budget(afternoon: Played) -> None:
    assert {job.job.state for job in afternoon.jobs.values()} == {JobState.COMPLETED}
    assert 0.0 < afternoon.cost_usd <= 100.0


def test_every_round_in_which_somebody_waited_or_left_is_made_again(afternoon: Played) -> None:
    for stored in rounds_of(afternoon):
        read = Round.model_validate_json(stored.model_dump_json())
        again = plan_again(afternoon.store, read)
        assert again.model_dump_json() == stored.plan.model_dump_json(), stored.number


def test_renting_at_once_costs_more_and_never_renting_waits_longer(afternoon: Played) -> None:
    at_once, never = an_afternoon("no-wait", 100), an_afternoon("never", 100)
    waits = [sum(job.wait_s for job in p.jobs.values()) for p in (at_once, afternoon, never)]
    assert never.cost_usd == 0.0 < afternoon.cost_usd < at_once.cost_usd
    assert waits == sorted(waits) and waits[1] < waits[2] / 2


def test_without_money_everybody_runs_here() -> None:
    played = an_afternoon("whale", 0)
    assert played.cost_usd == 0.0 and not played.rentals
    assert {job.job.state for job in played.jobs.values()} == {JobState.COMPLETED}
