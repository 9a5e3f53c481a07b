"""Random worlds, traces and faults through the simulator: what must hold whatever happens."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from clouding import RENTING, an_offer
from hypothesis import given, settings
from hypothesis import strategies as st
from simulating import a_chosen, a_machine, an_arrival, never_over_capacity, nothing_runs_twice

from cloudwhale.control import controller
from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import ENDED, CheckpointRule, GpuRequest, JobState, RetryRule
from cloudwhale.model.node import Node
from cloudwhale.model.rental import Boot
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import World
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.stirring import stir
from cloudwhale.simulation import faults as f
from cloudwhale.simulation.booting import PHASES, BootPlan
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import Engine
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.playing import Arrival, Offered, Setting, play, told
from cloudwhale.spi.store import JobQuery

SEEDS = st.integers(0, 10**6)
LONG_S = 4000.0


def nodes_of(dice: random.Random) -> list[Node]:
    return [a_machine(f"n{n}", dice.randint(1, 3)) for n in range(dice.randint(1, 3))]


def arrivals_of(dice: random.Random, nodes: list[Node]) -> list[Arrival]:
    most = max(len(node.facts.devices) for node in nodes)
    found: list[Arrival] = []
    for n in range(dice.randint(1, 8)):
        one = an_arrival(
            dice.choice((0.0, dice.uniform(0, LONG_S / 2))), f"j{n}", dice.uniform(1, LONG_S / 4),
            share=dice.choice((0.25, 0.5, 1.0)), gpus=dice.choice((1, 1, 1, most)),
            priority=dice.choice((10, 50, 90)), retry=RetryRule(max=50),
        )  # fmt: skip
        if dice.random() < 0.2:
            one = replace(one, spec=one.spec.but(checkpoint=None))
        else:
            one = replace(one, spec=one.spec.but(checkpoint=CheckpointRule(every_s=150.0)))
        found.append(one)
    return found


def setting_of(seed: int) -> Setting:
    dice = random.Random(f"simulated-{seed}")
    nodes = nodes_of(dice)
    names = [node.id for node in nodes]
    often = f.Often(dice.randint(0, 2), dice.randint(0, 2), dice.randint(0, 2), dice.randint(0, 2))
    physics = dice.choice((Physics(), Physics(1.0, 0.0, 0.0, 0.0), Physics(saves_on_stop=False)))
    return Setting(
        nodes, arrivals_of(dice, nodes), physics,
        faults=f.random_faults(seed, names, LONG_S, often),
    )  # fmt: skip


def a_chosen_of(seed: int) -> Chosen:
    dice = random.Random(f"chosen-{seed}")
    rules = {name: dice.random() < 0.5 for name in ("hold", "reserve", "preempt")}
    order, score = dice.choice((("whale", "whale"), ("fifo", "best-fit"), ("srtf", "best-fit")))
    return a_chosen(order, score, **rules)


@settings(deadline=None, max_examples=12)
@given(SEEDS)
def test_whatever_fails_every_job_ends_and_nothing_is_given_twice(seed: int) -> None:
    setting = setting_of(seed)
    engine = Engine(setting, a_chosen_of(seed))
    engine.play()
    jobs = engine.store.jobs(JobQuery())
    assert len(jobs) == len(setting.arrivals)
    assert all(job.state in ENDED for job in jobs), [(j.id, j.state, j.reason) for j in jobs]
    assert all(job.state is JobState.COMPLETED or job.retries for job in jobs)
    nothing_runs_twice(engine)


@settings(deadline=None, max_examples=8)
@given(SEEDS)
def test_no_device_is_ever_given_away_more_than_once_and_the_same_seed_is_the_same_log(
    seed: int,
) -> None:
    setting, chosen = setting_of(seed), a_chosen_of(seed)
    played = play(setting, chosen)
    never_over_capacity(played, setting.nodes)
    assert play(setting, chosen).digest == played.digest


def watched_in(
    setting: Setting, chosen: Chosen, look: Callable[[Sequence[e.Event], World, Policies], None]
) -> int:
    """Play; look at each change that stirs nobody. Return how many there were."""
    skipped = 0

    def watched(events: list[e.Event], world: World, policies: Policies) -> bool:
        nonlocal skipped
        stirred = stir(events, world, policies)
        if not stirred:
            skipped += 1
            look(events, world, policies)
        return stirred

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(controller, "stir", watched)
        play(setting, chosen)
    return skipped


def plans_nothing(events: Sequence[e.Event], world: World, policies: Policies) -> None:
    steps = plan(world, policies).steps
    due_by_time = [one for one in steps if one.kind in ("late", "declare-lost", "clear")]
    assert len(steps) == len(due_by_time), (events, steps)


@settings(deadline=None, max_examples=8)
@given(SEEDS)
def test_a_round_that_is_skipped_would_have_planned_nothing(seed: int) -> None:
    many = watched_in(replace(setting_of(seed), faults=()), a_chosen_of(seed), plans_nothing)
    assert many, "an order that was posted stirs nobody"


@pytest.mark.parametrize("seed", range(5))
def test_a_boot_that_goes_on_changes_no_plan(seed: int) -> None:
    seen: set[str] = set()

    def same(events: Sequence[e.Event], world: World, policies: Policies) -> None:
        seen.update(event.phase for event in events if isinstance(event, e.BootTold))
        bare = {name: rental.but(boot=Boot()) for name, rental in world.rentals.items()}
        kinds = [
            [step.kind for step in plan(of, policies).steps]
            for of in (world, replace(world, rentals=bare))
        ]
        assert kinds[0] == kinds[1], events

    watched_in(replace(rented_setting_of(seed, BootPlan()), faults=()), RENTS, same)
    assert seen == dict(PHASES).keys()


RENTS = Chosen(RENTING, order="priority", score="best-fit", wait="never", rent="one-each")


def rented_setting_of(seed: int, boot: BootPlan | None) -> Setting:
    """Make a setting in which everything is rented for, and something goes wrong."""
    dice = random.Random(f"rented-{seed}")
    arrivals = [
        replace(one, spec=one.spec.but(resources=one.spec.resources.but(cpu=6.0, gpu=GpuRequest())))
        for one in arrivals_of(dice, [a_machine("n1")])
    ]
    faults: list[f.Fault] = [
        f.Preempted(dice.choice((0.0, 3.0)), dice.choice((0.0, 120.0))),
        f.SlowBoot(dice.choice((0.0, 0.5))),
        f.NoCapacity(dice.uniform(0, 1000), dice.uniform(0, 1000)),
        f.PriceMoved(dice.uniform(0, 2000), dice.uniform(0.5, 2.0)),
        f.ControllerRestarted(dice.uniform(0, 2000), dice.uniform(0, 300)),
    ]
    shelves = [Shelf(an_offer(), capacity=dice.choice((1, 3, None)), boot=boot)]
    if boot is not None and (boot.fails_in or boot.hangs_in):
        dear = micro_usd("3.7")
        sound = an_offer("sound", type="s1.x", price_usd_h=dear, cap_usd_h=dear)
        shelves.append(Shelf(sound, boot=BootPlan()))
    return Setting(
        [a_machine("n1", 0)], arrivals, clouds=[Offered("cloud", shelves, seed)], faults=faults,
        budget=micro_usd(30),
    )  # fmt: skip


BOOT_PLANS = st.sampled_from(
    [None, BootPlan(), BootPlan(fails_in="docker"), BootPlan(hangs_in="gpus")]
)


@settings(deadline=None, max_examples=10)
@given(SEEDS, BOOT_PLANS)
def test_what_is_rented_is_given_back_and_paid_as_it_was_billed(
    seed: int, boot: BootPlan | None
) -> None:
    setting = rented_setting_of(seed, boot)
    engine = Engine(setting, RENTS)
    engine.play()
    assert all(job.ended for job in engine.store.jobs(JobQuery()))
    cloud = engine.clouds["cloud"]
    sums = dict.fromkeys(("reserved", "charged", "released"), 0)
    for one in told(engine.store):
        if isinstance(one.event, e.Reserved | e.Charged | e.Released):
            sums[one.event.kind] += one.event.amount
    assert sums["reserved"] == sums["charged"] + sums["released"]
    assert sums["charged"] == cloud.bill() and cloud.running == 0
    assert sums["charged"] <= micro_usd(30)
    nothing_runs_twice(engine)
