"""Random worlds of renting: payers, projects, offers, faults, and people who meddle."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clouding import NeverWaits, an_offer
from makers import a_device, a_node, a_spec, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import CheckpointRule, GpuRequest, RetryRule
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.run import Run
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation import faults as f
from cloudwhale.simulation.bells import Life
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import Engine
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.playing import Arrival, Offered, Setting
from cloudwhale.spi.errors import IllegalTransition

PROJECTS = ("nlp", "vision", "bio")
MODELS = (("A100-40GB", 40.0, 1.5), ("T4", 16.0, 0.4), ("L4", 24.0, 0.7))
"""Name, memory in GiB, dollars an hour."""

AGAIN_S = 4 * 3600.0
"""The house is woken so often though nothing happens, as by clouds whose offers it asks for."""

Deed = Callable[[Engine], e.Event]


@dataclass(frozen=True, slots=True)
class Meddling:
    """Who pays, and what people do while jobs run."""

    runs: Mapping[str, MicroUsd]
    run_of: Mapping[str, str]
    budgets: Sequence[Budget] = ()
    deeds: Sequence[tuple[float, Deed]] = field(default_factory=tuple[tuple[float, Deed], ...])
    """When, in seconds from the beginning, and what."""


class Payers(Engine):
    """A play with several runs, budgets of projects, and people who change their minds."""

    def __init__(self, setting: Setting, chosen: Chosen, meddling: Meddling) -> None:
        super().__init__(setting, chosen)
        self.setting, self.meddling, self.policies = setting, meddling, chosen.policies

    def _begin(self) -> None:
        super()._begin()
        for name, limit in self.meddling.runs.items():
            run = Run(id=name, opened_at=self.now, user="play", folder="/", budget=limit)
            self.store.append([e.RunOpened(at=self.now, run=run)])
        self.store.append([e.BudgetSet(at=self.now, budget=one) for one in self.meddling.budgets])
        self._env.process(self._meddle())

    def _submitted(self, one: Arrival) -> e.Submitted:
        made = super()._submitted(one)
        job = made.first.but(run=self.meddling.run_of[one.job])
        return e.Submitted(at=made.at, job=made.job, first=job)

    def _meddle(self) -> Life:
        for at, deed in sorted(self.meddling.deeds, key=lambda one: one[0]):
            yield self.wait(max(0.0, self.began_at + at - self.now))
            try:
                self.store.append([deed(self)])
            except IllegalTransition:
                continue  # its job has ended, or was paused before
            self._bell.ring()
        while self.now < self.began_at + self.setting.at_most_s - 2 * AGAIN_S:
            yield self.wait(AGAIN_S)
            self._bell.ring()


def a_whole_world(seed: int, rent: str, jobs_most: int = 14) -> Payers:
    """Draw a play; each seed has other machines, jobs, payers and troubles."""
    dice = random.Random(f"whole-{seed}")
    arrivals = arrivals_of(dice, jobs_most)
    setting = Setting(
        [a_node("tiny", cpu=dice.choice((1.0, 2.0)))], arrivals, at_most_s=40 * 3600.0,
        physics=dice.choice((Physics(), Physics(saves_on_stop=False))),
        clouds=[Offered("cloud", shelves_of(dice), seed)], faults=faults_of(dice, seed),
    )  # fmt: skip
    wait = dice.choice(("never", "never", "whale"))
    order = dice.choice(("priority", "whale"))
    policies = Policies(
        plugins.load(plugins.ORDERS, order)(), plugins.load(plugins.SCORES, "best-fit")(), Rules(),
        NeverWaits() if wait == "never" else plugins.load(plugins.WAITS, wait)(),
        plugins.load(plugins.RENTS, rent)(),
    )  # fmt: skip
    chosen = Chosen(policies, order=order, score="best-fit", wait=wait, rent=rent)
    return Payers(setting, chosen, meddling_of(dice, arrivals))


# -- what can be rented ------------------------------------------------------------------------


def shelves_of(dice: random.Random) -> list[Shelf]:
    """Draw what a cloud offers: some run dry, some boot badly, some are taken back."""
    return [shelf_of(dice, offer_of(dice, f"o{number}")) for number in range(dice.randint(2, 6))]


def offer_of(dice: random.Random, name: str) -> Offer:
    """Draw an offer with 0 to 4 devices; one in seven has devices of two models."""
    model, gib, usd_h = dice.choice(MODELS)
    count, market = dice.choice((0, 1, 1, 2, 4)), dice.choice(("on-demand", "on-demand", "spot"))
    is_spot = market == "spot"
    devices = [a_device(f"{name}-d{number}", model, gib) for number in range(count)]
    if count >= 2 and dice.random() < 0.15:
        devices[-1] = a_device(devices[-1].id, "T4", 16.0)
    size = max(1, count)
    facts = Facts(cpu=8.0 * size, memory_gib=32.0 * size, disk_gib=100.0, devices=tuple(devices))
    usual_usd_h = (0.4 + usd_h * count) * dice.uniform(0.7, 1.3) * (0.35 if is_spot else 1.0)
    price = micro_usd(f"{usual_usd_h:.4f}")
    return an_offer(
        name, facts=facts, market=market, price_usd_h=price,
        cap_usd_h=MicroUsd(int(price * dice.choice((1.0, 1.0, 1.5)))),
        boot_s=dice.choice((0.0, 20.0, 90.0, 240.0)),
        billing_least_s=dice.choice((0.0, 60.0, 600.0)),
        billing_step_s=dice.choice((0.0, 1.0, 1.0, 60.0, 3600.0)),
        notice_s=dice.choice((0.0, 30.0, 120.0)) if is_spot else 0.0,
        hazard_per_h=dice.choice((None, 0.0, 0.3, 2.0)) if is_spot else 0.0,
        extras_usd_h=micro_usd(dice.choice(("0", "0", "0.05"))),
        quota=dice.choice(("", "q")), quota_units=4.0, capacity=dice.choice((None, None, 1)),
    )  # fmt: skip


def shelf_of(dice: random.Random, offer: Offer) -> Shelf:
    """Draw how many of an offer there are, and what goes wrong with it."""
    dry: tuple[tuple[float, float], ...] = ()
    moved: tuple[tuple[float, MicroUsd], ...] = ()
    if dice.random() < 0.2:
        begins = dice.uniform(0.0, 3000.0)
        dry = ((begins, begins + dice.uniform(100.0, 2000.0)),)
    if dice.random() < 0.3 and offer.price_usd_h is not None:
        price = MicroUsd(int(offer.price_usd_h * dice.choice((0.8, 1.6))))
        moved = ((dice.uniform(0.0, 5000.0), price),)
    return Shelf(
        offer, capacity=dice.choice((None, None, 2, 1, 0)), droughts=dry, prices=moved,
        hazard_per_h=dice.choice((None, 3.0)) if offer.market == "spot" else None,
        slow_boots=dice.choice((0.0, 0.0, 0.3)), failed_boots=dice.choice((0.0, 0.0, 0.3)),
    )  # fmt: skip


# -- jobs and payers ---------------------------------------------------------------------------


def arrivals_of(dice: random.Random, most: int = 14) -> list[Arrival]:
    """Draw jobs of many sizes; what is said of one in five is off by up to three times."""
    found: list[Arrival] = []
    for number in range(dice.randint(2, most)):
        gpus, at = dice.choice((0, 0, 1, 1, 2)), dice.choice((0.0, 0.0, dice.uniform(0, 4000)))
        share = dice.choice((1.0, 1.0, 0.5, 0.25)) if gpus == 1 else 1.0
        work_s = dice.choice((dice.uniform(60, 600), dice.uniform(600, 9000)))
        rule = CheckpointRule(
            every_s=dice.choice((60.0, 300.0)), grace_s=dice.choice((10.0, 90.0, 300.0))
        )
        spec = a_spec(
            f"j{number}", project=dice.choice(PROJECTS), priority=dice.choice((10, 50, 90)),
            resources=wants(
                cpu=dice.choice((2, 4, 6)), memory_gib=dice.choice((None, 4.0, 16.0)),
                gpu=GpuRequest(count=gpus, share=share),
            ),
            duration_s=dice.choice((work_s, work_s, work_s, None, work_s * dice.uniform(0.33, 3))),
            checkpoint=dice.choice((None, rule)), retry=RetryRule(max=50),
            market=dice.choice(("auto", "auto", "auto", "spot", "on-demand")),
            reference=dice.choice((None, "A100-40GB")) if gpus else None,
            **bounds_of(dice, at, work_s),
        )  # fmt: skip
        earlier = [one.job for one in found if one.at <= at]
        after = (dice.choice(earlier),) if earlier and dice.random() < 0.15 else ()
        found.append(Arrival(at, f"j{number}", spec, work_s, after))
    return found


def bounds_of(dice: random.Random, at: float, work_s: float) -> dict[str, Any]:
    """Draw what some jobs demand: a budget, a deadline, a longest wait, a longest run."""
    found: dict[str, Any] = {}
    if dice.random() < 0.15:
        found["budget"] = micro_usd(f"{dice.uniform(0.3, 6.0):.3f}")
    if dice.random() < 0.15:
        found["deadline"] = at + work_s * dice.uniform(1.1, 3.0) + 300.0
    if dice.random() < 0.2:
        found["wait_max_s"] = dice.choice((0.0, 600.0, 4000.0))
    if dice.random() < 0.1:
        found["max_duration_s"] = work_s * dice.uniform(0.5, 3.0)
    return found


def meddling_of(dice: random.Random, arrivals: Sequence[Arrival]) -> Meddling:
    """Draw who pays for what, and up to five deeds."""
    amounts = ("0.5", "2", "5", "20", "100")
    runs = {f"run-{n}": micro_usd(dice.choice(amounts)) for n in range(dice.randint(1, 3))}
    run_of = {one.job: dice.choice(list(runs)) for one in arrivals}
    budgets = [budget_of(dice)] if dice.random() < 0.5 else []
    deeds: list[tuple[float, Deed]] = []
    for _ in range(dice.choice((0, 1, 2, 5))):
        at, job = dice.uniform(1.0, 7000.0), dice.choice(arrivals).job
        match dice.choice(("budget", "run", "cancel", "pause")):
            case "budget":
                deeds.append((at, _sets(budget_of(dice))))
            case "run":
                amount = micro_usd(dice.choice(("0", "1", "5", "40")))
                deeds.append((at, _sets_run(dice.choice(list(runs)), amount)))
            case "cancel":
                deeds.append((at, _asks(e.CancelAsked, job)))
            case _:
                resumed_at = at + dice.uniform(100.0, 3000.0)
                deeds.append((at, _asks(e.PauseAsked, job)))
                deeds.append((resumed_at, _asks(e.ResumeAsked, job)))
    return Meddling(runs, run_of, budgets, deeds)


def budget_of(dice: random.Random) -> Budget:
    """Draw a project's budget of a month; one in six lifts it."""
    amount = dice.choice((None, "0", "0.5", "2", "8", "50"))
    return Budget(
        project=dice.choice(PROJECTS), month=None if amount is None else micro_usd(amount),
        soft_share=dice.choice((0.8, 0.95, 1.0)), set_at=0.0,
    )  # fmt: skip


def _sets(budget: Budget) -> Deed:
    return lambda play: e.BudgetSet(at=play.now, budget=budget.but(set_at=play.now))


def _sets_run(run: str, limit: MicroUsd) -> Deed:
    return lambda play: e.RunBudgetSet(at=play.now, run=run, limit=limit)


def _asks(kind: type[e.CancelAsked | e.PauseAsked | e.ResumeAsked], job: str) -> Deed:
    return lambda play: kind(at=play.now, job=job)


def faults_of(dice: random.Random, seed: int) -> tuple[f.Fault, ...]:
    """Draw dead controllers, stores that take nothing or are slow, and wrong estimates."""
    found: list[f.Fault] = [
        f.ControllerRestarted(dice.uniform(0, 6000), dice.choice((0.0, 30.0, 1500.0)))
        for _ in range(dice.choice((0, 0, 1, 3)))
    ]
    if dice.random() < 0.3:
        found.append(f.WrongEstimates(3.0, seed))
    if dice.random() < 0.2:
        found.append(f.StoreFails(dice.uniform(0, 5000), dice.uniform(1, 100)))
    if dice.random() < 0.15:
        found.append(f.StoreSlow(dice.uniform(0, 5000), 600.0, 20.0))
    return tuple(found)


def sleeps_s(faults: Sequence[f.Fault]) -> float:
    """Return for how long nobody may have looked after machines, all faults in a row."""
    found = 0.0
    for fault in faults:
        if isinstance(fault, f.ControllerRestarted | f.StoreFails | f.StoreSlow):
            found += fault.for_s
    return found
