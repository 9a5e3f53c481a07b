"""What a plan says that machines will cost is what the cloud bills in the end."""

import random
from collections.abc import Iterator

import pytest
from clouding import NeverWaits, an_offer
from makers import a_device, a_node, a_spec, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.model import plan as p
from cloudwhale.model.job import GpuRequest
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MICRO_PER_USD, micro_usd
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import Engine
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.playing import Arrival, Offered, Setting

OFF = 0.02
"""How far a bill may be from its plan."""

ALONE = Physics(neighbour=1.0)
"""Neighbours take nothing: a plan reckons with the lengths that jobs say."""


def offers() -> Iterator[Offer]:
    """Make machines of 1, 2, 4 and 8 GPUs; larger ones cost a little less for each."""
    for count, usd in ((1, "1.00"), (2, "1.90"), (4, "3.60"), (8, "6.90")):
        devices = tuple(a_device(f"g-{n}", "L4", 24.0) for n in range(count))
        facts = Facts(cpu=8.0 * count, memory_gib=32.0 * count, disk_gib=500.0, devices=devices)
        price = micro_usd(usd)
        yield an_offer(
            f"{count}-gpu", facts=facts, price_usd_h=price, cap_usd_h=price, boot_s=120.0,
            billing_step_s=1.0, extras_usd_h=micro_usd("0.02"),
        )  # fmt: skip


def arrivals(seed: int, count: int) -> list[Arrival]:
    """Make jobs of half a GPU to four, of half an hour to six, with limits of an hour to wait."""
    drawn = random.Random(f"plan-prices-{seed}")
    found: list[Arrival] = []
    for number in range(count):
        size = drawn.choice((0.5, 0.5, 1, 1, 2, 4))
        length_s = float(drawn.randrange(1800, 21600))
        gpu = GpuRequest(count=max(1, int(size)), share=min(1.0, size))
        spec = a_spec(
            name=f"j{number}", resources=wants(cpu=2, gpu=gpu), duration_s=length_s,
            wait_max_s=float(drawn.choice((3600, 6 * 3600))),
        )  # fmt: skip
        found.append(Arrival(0.0, f"j{number:02d}", spec, length_s))
    return found


def played(rent: str, seed: int, count: int = 14) -> Engine:
    policies = Policies(
        plugins.load(plugins.ORDERS, "priority")(), plugins.load(plugins.SCORES, "best-fit")(),
        Rules(), NeverWaits(), plugins.load(plugins.RENTS, rent)(),
    )  # fmt: skip
    chosen = Chosen(policies, order="priority", score="best-fit", wait="never", rent=rent)
    shelves = [Shelf(offer) for offer in offers()]
    setting = Setting(
        [a_node("here", cpu=1.0)], arrivals(seed, count), clouds=[Offered("cloud", shelves)],
        budget=micro_usd(5000), physics=ALONE,
    )  # fmt: skip
    engine = Engine(setting, chosen)
    engine.play()
    return engine


def planned_usd(engine: Engine) -> float:
    """Return what all rounds together said that their machines would cost."""
    total, number = 0, 1
    while (stored := engine.store.round(number)) is not None:
        total += sum(step.cost or 0 for step in stored.plan.steps if isinstance(step, p.Rent))
        number += 1
    return total / MICRO_PER_USD


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rent", ["one-each", "greedy", "whale-rent"])
def test_a_plan_costs_what_it_says(rent: str, seed: int) -> None:
    engine = played(rent, seed)
    billed = engine.clouds["cloud"].bill() / MICRO_PER_USD
    assert billed == pytest.approx(planned_usd(engine), rel=OFF)
    assert not engine.store.world(engine.now).rentals


def test_jobs_really_share_machines_and_follow_one_another_there() -> None:
    engine = played("whale-rent", 1)
    hired = engine.clouds["cloud"].hired
    assert len(hired) < 14
    assert engine.clouds["cloud"].bill() < played("one-each", 1).clouds["cloud"].bill()
