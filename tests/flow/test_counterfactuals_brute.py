"""Other courses of tiny runs beside all that there is: every way to rent, tried one by one."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import pytest
from clouding import a_cloudy_stage, an_offer, settles
from makers import a_job, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.control.counterfactuals import counterfactuals
from cloudwhale.model import event as e
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.receipt import Otherwise
from cloudwhale.model.units import MICRO_PER_USD, micro_usd
from cloudwhale.planning.policies import Policies
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.spi.store import JobQuery
from cloudwhale_policies.order import Priority

HOME_CPU = 2
"""Of the machine of ours on the stage."""


@dataclass(frozen=True)
class Tiny:
    """Some jobs of one size, and some offers that hold one or two of them at once."""

    lengths_s: tuple[float, ...]
    offers: tuple[Offer, ...]
    cpu: float
    rent: str


def a_tiny(seed: int, cpu: float = 4.0) -> Tiny:
    dice = random.Random(f"otherwise-{seed}")
    offers = [_offer(dice, f"o{number}", "on-demand") for number in range(2)]
    offers.append(_offer(dice, "o2", "spot"))
    lengths = tuple(float(dice.randrange(40, 400)) for _ in range(dice.choice((2, 3, 3))))
    return Tiny(lengths, tuple(offers), cpu, dice.choice(("greedy", "whale-rent", "cp-sat")))


def _offer(dice: random.Random, name: str, market: str) -> Offer:
    price = micro_usd(f"{dice.uniform(0.5, 4.0):.3f}")
    facts = Facts(cpu=dice.choice((4.0, 8.0)), memory_gib=64.0, disk_gib=100.0)
    return an_offer(
        name, market=market, facts=facts, price_usd_h=price, cap_usd_h=price, hazard_per_h=0.0,
        boot_s=dice.choice((0.0, 20.0, 60.0)), billing_least_s=dice.choice((0.0, 60.0)),
        extras_usd_h=micro_usd(dice.choice(("0", "0.05"))),
        billing_step_s=dice.choice((1.0, 60.0, 3600.0)),
    )  # fmt: skip


def told_of(tiny: Tiny, market: str) -> dict[str, Otherwise]:
    """Play a run to its end, and ask what else it could have been."""
    stage = a_cloudy_stage((), [Shelf(offer) for offer in tiny.offers], budget="1000")
    policies = Policies(
        Priority(), stage.scenery.chosen.policies.score, stage.scenery.chosen.policies.rules,
        plugins.load(plugins.WAITS, "no-wait")(), plugins.load(plugins.RENTS, tiny.rent)(),
    )  # fmt: skip
    chosen = Chosen(policies, "priority", "best-fit", wait="no-wait", rent=tiny.rent)
    stage.scenery = replace(stage.scenery, chosen=chosen)
    now = stage.scenery.clock.now()
    jobs = [
        a_job(
            f"quick-{number}", name="quick", resources=wants(cpu=tiny.cpu), duration_s=length_s,
            market=market,
        ).but(submitted_at=now)
        for number, length_s in enumerate(tiny.lengths_s)
    ]  # fmt: skip
    stage.scenery.store.append([e.Submitted(at=now, job=job.id, first=job) for job in jobs])
    stage.raise_controller()
    assert settles(stage)
    store = stage.scenery.store
    found = counterfactuals(store, "run-1", store.jobs(JobQuery(run="run-1")))
    return {one.course: one for one in found}


# -- all that there is -------------------------------------------------------------------------


def cost_usd(offer: Offer, used_s: float) -> float:
    """Return what a machine costs, by the seconds that its cloud bills."""
    step_s = offer.billing_step_s
    billed_s = max(-(-used_s // step_s) * step_s, offer.billing_least_s)
    assert offer.usd_h is not None
    return offer.usd_h / MICRO_PER_USD * billed_s / 3600.0


def groups(jobs: Sequence[float]) -> Iterator[list[list[float]]]:
    """Yield every way to put jobs together."""
    if not jobs:
        yield []
        return
    first, *rest = jobs
    for way in groups(rest):
        yield [[first], *way]
        for place in range(len(way)):
            yield [*way[:place], [first, *way[place]], *way[place + 1 :]]


def shortest_s(jobs: Sequence[float], at_once: int) -> float:
    """Return how long some jobs take on a machine that holds so many at once."""
    ways = product(range(at_once), repeat=len(jobs))
    return min(
        max(
            sum(job for job, lane in zip(jobs, way, strict=True) if lane == one)
            for one in range(at_once)
        )
        for way in ways
    )


def cheapest_usd(tiny: Tiny, offers: Sequence[Offer]) -> float:
    """Return what the best of all ways costs."""

    def of_group(jobs: Sequence[float]) -> float:
        return min(
            cost_usd(offer, offer.boot_s + shortest_s(jobs, int(offer.facts.cpu // tiny.cpu)))
            for offer in offers
            if offer.facts.cpu >= tiny.cpu
        )

    return min(sum(of_group(group) for group in way) for way in groups(tiny.lengths_s))


def is_no_better_than_the_best(one: Otherwise, best_usd: float) -> None:
    """Check a course, and that its words of bound and gap are true of the best of all ways."""
    assert one.other_usd is not None and not one.without
    other = float(one.other_usd)
    assert other >= best_usd - 2e-6
    if one.bound_usd is not None:
        assert float(one.bound_usd) <= best_usd + 2e-6, "some way is below what none can be below"
        assert one.gap is not None
        # "At most so much of it could be saved": the best way is within the gap.
        assert best_usd >= other * (1 - one.gap) - 2e-6


SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_on_demand_and_one_each_are_what_all_ways_say(seed: int) -> None:
    tiny = a_tiny(seed)
    told = told_of(tiny, "spot" if seed % 2 else "auto")
    steady = [offer for offer in tiny.offers if offer.market == "on-demand"]
    is_no_better_than_the_best(told["on-demand"], cheapest_usd(tiny, steady))
    one_each, alone = told["one-each"], 0.0
    offers = [offer for offer in tiny.offers if seed % 2 == 0 or offer.market == "spot"]
    for length_s in tiny.lengths_s:
        alone += min(cost_usd(offer, offer.boot_s + length_s) for offer in offers)
    assert one_each.other_usd is not None
    assert float(one_each.other_usd) == pytest.approx(alone, abs=2e-6 * len(tiny.lengths_s))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_rented_and_all_waited_are_what_all_ways_say(seed: int) -> None:
    tiny = a_tiny(seed, cpu=1.0)
    told = told_of(tiny, "auto")
    is_no_better_than_the_best(told["all-rented"], cheapest_usd(tiny, tiny.offers))
    if "all-waited" in told:
        other_s = told["all-waited"].other_s
        assert other_s is not None
        assert any(abs(other_s - one_s) < 2.0 for one_s in one_after_the_other(tiny.lengths_s))


def one_after_the_other(lengths_s: Sequence[float]) -> Iterator[float]:
    """Yield when each is done here, for each order in which they take what is free first.

    Compared are those alone that were rented for: the last of them need not be the last of all.
    """
    for order in permutations(lengths_s):
        lanes = [0.0] * HOME_CPU
        for length_s in order:
            lane = lanes.index(min(lanes))
            lanes[lane] += length_s
            yield lanes[lane]


def test_some_of_these_have_a_bound_and_some_have_waited() -> None:
    steady = [told_of(a_tiny(seed), "auto")["on-demand"] for seed in (0, 1, 5)]
    assert any(one.bound_usd for one in steady)
    assert any("all-waited" in told_of(a_tiny(seed, cpu=1.0), "auto") for seed in SEEDS)
