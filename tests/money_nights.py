"""Random nights for money: several clouds, gangs, budgets, egress, machines that are not back.

Each cloud has a mailbox of its own, so that what a job has saved has to be brought to where it goes
on, and leaves a cloud that bills it. The meter of that is here, and knows nothing of the ledger.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from clouding import NeverWaits
from makers import a_device, a_node
from two_stores import Ailing
from whole_worlds import (
    Meddling,
    Payers,
    arrivals_of,
    budget_of,
    faults_of,
    meddling_of,
    offer_of,
    shelf_of,
)  # fmt: skip

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.node import Node
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.mailbox import RingingObjects
from cloudwhale.simulation.playing import Arrival, Offered, Setting, told
from cloudwhale.simulation.raising import Ground

CLOUDS = ("cloud", "other", "third")
EGRESS_USD_GB = (None, 0.0, 0.09, 40.0, 40.0, 500.0)
"""Checkpoints of the simulation have a few hundred bytes: so that they cost something at all."""
BOTH = ("process", "container")
MANIFEST = "/manifest.json"


class Metered(Ailing):
    """A cloud's store as the controller sees it: it counts what is brought there from others."""

    def __init__(self, objects: RingingObjects, usd_gb: Callable[[str], Fraction]) -> None:
        """`usd_gb`: what a GB costs that leaves where a checkpoint was saved, by its manifest."""
        super().__init__(objects)
        self._usd_gb = usd_gb
        self.came: dict[str, MicroUsd] = {}
        """What each checkpoint has cost that was saved in another cloud, by its manifest."""

    def create(self, key: str, body: bytes) -> bool:
        usd_gb = self._usd_gb(key)  # before it is here, too
        is_new = super().create(key, body)
        if is_new and key.endswith(MANIFEST):
            self.came[key] = MicroUsd(math.ceil(len(body) * usd_gb / 1000))
        return is_new


class MoneyNight(Payers):
    """A play in which each cloud has its own mailbox."""

    def __init__(self, setting: Setting, chosen: Chosen, meddling: Meddling) -> None:
        self.boxes = {one.name: RingingObjects(lambda: self.now) for one in setting.clouds}
        self.metered = {name: Metered(box, self._usd_gb) for name, box in self.boxes.items()}
        super().__init__(setting, chosen, meddling)

    def _cloud(self, offered: Offered) -> SimulatedCloud:
        box = self.boxes[offered.name]
        cloud = SimulatedCloud(offered.shelves, box, self._program, lambda: self.now, offered.seed)
        cloud.habits = self._habits
        box.ring("inbox", self._posted)
        box.ring("orders", self._ordered)
        box.ring("boots", self._boots_on)
        return cloud

    def _made_ground(self) -> Ground:
        return replace(super()._made_ground(), others=self.metered)

    def rentals_ever(self) -> Sequence[Rental]:
        """Return every machine as it was left."""
        changed = (one.event for one in told(self.store) if isinstance(one.event, e.RentalChanged))
        return list({one.rental.id: one.rental for one in changed}.values())

    def egress(self) -> MicroUsd:
        """Return what clouds bill for what has left them for others."""
        return MicroUsd(sum(cost for one in self.metered.values() for cost in one.came.values()))

    def _usd_gb(self, key: str) -> Fraction:
        """Return what the cloud asks for a GB whose machine has saved a checkpoint."""
        for cloud in self.setting.clouds:
            there = self.boxes[cloud.name].get(key) is not None
            if there and key not in self.metered[cloud.name].came:
                price = cloud.shelves[0].offer.egress_usd_gb
                return Fraction(UNSAID_USD_GB if price is None else str(price))
        return Fraction(0)  # a machine of ours has


UNSAID_USD_GB = "0.09"
"""What is taken for a price that nobody has said."""


def a_night(seed: int) -> MoneyNight:
    """Draw a night; each seed has other clouds, jobs, payers and troubles."""
    dice = random.Random(f"money-{seed}")
    arrivals = [dearer(dice, one) for one in arrivals_of(dice, 4)]
    setting = Setting(
        [home_of(dice)], arrivals, at_most_s=3600.0 * dice.choice((12.0, 12.0, 12.0, 1.5)),
        physics=dice.choice((Physics(), Physics(saves_on_stop=False))),
        clouds=clouds_of(dice, seed), faults=faults_of(dice, seed),
    )  # fmt: skip
    wait = dice.choice(("never", "never", "whale"))
    order = dice.choice(("priority", "whale"))
    policies = Policies(
        plugins.load(plugins.ORDERS, order)(), plugins.load(plugins.SCORES, "best-fit")(), Rules(),
        NeverWaits() if wait == "never" else plugins.load(plugins.WAITS, wait)(),
        plugins.load(plugins.RENTS, "greedy")(),
    )  # fmt: skip
    meddling = meddling_of(dice, arrivals)
    runs = {name: micro_usd(dice.choice(("2", "20", "100", "100"))) for name in meddling.runs}
    budgets = [budget_of(dice) for _ in range(dice.choice((0, 0, 1, 2, 3)))]
    chosen = Chosen(policies, order=order, score="best-fit", wait=wait, rent="greedy")
    return MoneyNight(setting, chosen, replace(meddling, runs=runs, budgets=budgets))


def home_of(dice: random.Random) -> Node:
    """Draw a machine of ours: one in three is of use to more than the smallest jobs."""
    if dice.random() < 0.67:
        return a_node("tiny", cpu=dice.choice((1.0, 2.0)), runtimes=BOTH)
    gpu = a_device("d0", "T4", 16.0)
    return a_node("desk", cpu=6.0, memory_gib=32.0, devices=(gpu,), runtimes=BOTH)


def dearer(dice: random.Random, one: Arrival) -> Arrival:
    """Draw whether a job is a gang, saves as it goes, shares machines, is free of bounds."""
    spec = one.spec
    if dice.random() < 0.25 and spec.resources.gpu.share == 1.0:
        spec = spec.but(nodes=dice.choice((2, 2, 3, 4)))
    if dice.random() < 0.6:
        rule = CheckpointRule(every_s=dice.choice((60.0, 300.0)), grace_s=10.0)
        spec = spec.but(checkpoint=rule)
    if dice.random() < 0.8:
        spec = spec.but(image="train:1")
    if dice.random() < 0.5:
        spec = spec.but(market=dice.choice(("auto", "spot")), budget=None, deadline=None)
    return replace(one, spec=spec)


def clouds_of(dice: random.Random, seed: int) -> Sequence[Offered]:
    """Draw one to three clouds, each with its price of egress and its regions.

    The first of several may run dry, and take what it has back soon: who ran there goes elsewhere.
    """
    names = CLOUDS[: dice.choice((1, 2, 2, 3))]
    dry_at = dice.uniform(300.0, 3000.0) if len(names) > 1 and dice.random() < 0.6 else math.inf
    return [
        Offered(name, shelves_in(dice, name, dry_at if name == names[0] else math.inf), seed)
        for name in names
    ]


def shelves_in(dice: random.Random, cloud: str, dry_at: float) -> Sequence[Shelf]:
    """Draw what one cloud offers; `dry_at`: from when on it has no machine any more."""
    egress_usd_gb, found = dice.choice(EGRESS_USD_GB), list[Shelf]()
    for number in range(dice.randint(1, 3)):
        region = f"{cloud}-r{dice.randint(1, 2)}"
        offer = offer_in(dice, f"{cloud}/o{number}").but(
            provider=cloud, region=region, zone=f"{region}a", egress_usd_gb=egress_usd_gb
        )
        shelf = shelf_of(dice, offer)
        if not math.isinf(dry_at):
            shelf = replace(shelf, droughts=((dry_at, math.inf),), hazard_per_h=6.0)
        found.append(shelf)
    return found


def offer_in(dice: random.Random, name: str) -> Offer:
    """Draw an offer: disks and addresses of several prices; now and then two models of GPU."""
    offer = offer_of(dice, name)
    extras, address = dice.choice((("0", "0"), ("0.05", "0.005"), ("0.0137", "0.0137")))
    return offer.but(
        facts=offer.facts.but(runtimes=BOTH), extras_usd_h=micro_usd(extras),
        address_usd_h=micro_usd(address), quota=offer.quota and f"{name.split('/')[0]}/q",
        billing_step_s=dice.choice((0.0, 1.0, 1.0, 60.0, 3600.0)),
        billing_least_s=dice.choice((0.0, 60.0, 600.0, 3600.0)),
    )  # fmt: skip
