"""What the filling policies weigh: fragmentation, learned waste and prices, by hand."""

import random
from dataclasses import replace

import numpy as np
import pytest

from cloudwhale.simulation.filling import fill, mix_of
from cloudwhale.spi.filling import ClusterNode, Demand, Mix, Pod, Shape
from cloudwhale_policies.filling.board import Seats
from cloudwhale_policies.filling.fragmentation import Fgd, Fragmentation
from cloudwhale_policies.filling.learned_waste import KNOTS, Seen, Waste, learned
from cloudwhale_policies.filling.menu import Menu, menu_of
from cloudwhale_policies.filling.prices import Free, Programme
from cloudwhale_policies.filling.rehearsal import scenes
from cloudwhale_policies.filling.whale import Practice, Weights, Whale

DUAL = Shape(cpu_milli=10_000, memory_mib=65536, gpus=2, model="T4")
ONE = Shape(cpu_milli=10_000, memory_mib=65536, gpus=1, model="T4")


def share(milli: int, cpu: int = 1000) -> Demand:
    return Demand(cpu, 1024, 1, milli)


def whole(gpus: int = 1, cpu: int = 1000, models: str = "") -> Demand:
    return Demand(cpu, 1024, gpus, 1000, frozenset(models.split("|")) if models else frozenset())


def a_menu(counts: dict[Demand, int], *shapes: Shape) -> Menu:
    return menu_of(shapes or (DUAL,), Mix(tuple(counts), tuple(counts.values())))


def test_fragmentation_is_what_typical_pods_cannot_use() -> None:
    mix = {share(500): 2, whole(cpu=20_000): 1, Demand(500, 512, 0, 0): 1}
    fragmentation = Fragmentation(a_menu(mix))
    # Half of the pods find 400 too small; a quarter lacks CPU and a quarter wants no GPU at all.
    by_hand = 0.5 * 400 + 0.25 * 1400 + 0.25 * 1400
    assert fragmentation.of(0, 9000, np.array([400, 1000])) == pytest.approx(by_hand)


def test_a_node_of_another_model_is_all_fragments() -> None:
    menu = a_menu({whole(models="G2"): 1})
    assert Fragmentation(menu).of(0, 9000, np.array([1000, 1000])) == pytest.approx(2000.0)


def test_demands_that_are_rare_are_not_typical() -> None:
    menu = a_menu({share(300): 98, share(950): 2})
    assert Fragmentation(menu).of(0, 9000, np.array([300, 900])) == pytest.approx(0.0)


@pytest.mark.parametrize("seed", range(5))
def test_growth_is_the_difference_of_two_states(seed: int) -> None:
    dice = random.Random(f"growth-{seed}")
    mix = {share(milli, cpu): dice.randint(1, 9) for milli, cpu in ((190, 500), (470, 4000))}
    mix |= {whole(2): 2, whole(1, 6000): 3, Demand(3000, 512, 0, 0): 2, share(810): 4}
    menu = a_menu(mix)
    fragmentation = Fragmentation(menu)
    waste = Waste(np.array(np.random.default_rng(seed).random((4, 1, len(KNOTS), 101))) * 500)
    waste.table[..., 0] = 0.0
    gpus = np.sort(np.array([dice.choice((190, 530, 1000)), 1000]))
    seats = Seats(menu, 0, 9000, gpus)
    grown, wasted = fragmentation.growth(seats), waste.growth(seats)
    assert len(seats.rows) > 5
    for way, row in enumerate(seats.rows):
        after = gpus.copy()
        if menu.shared[row]:
            after[int((gpus == seats.takes[way]).argmax())] -= menu.milli[row]
        elif menu.gpus[row]:
            after[len(gpus) - menu.gpus[row] :] = 0
        cpu = 9000 - int(menu.cpu[row])
        was, now = fragmentation.of(0, 9000, gpus), fragmentation.of(0, cpu, after)
        assert grown[way] == pytest.approx(now - was)
        both = waste(0, np.array([9000, cpu]), np.array([gpus, after]))
        assert wasted[way] == pytest.approx(both[1] - both[0])


def test_fgd_takes_the_first_node_when_whole_scores_are_equal() -> None:
    cluster = [ClusterNode("a", ONE), ClusterNode("b", ONE)]
    stream = [Pod("large", share(680)), Pod("larger", share(690)), Pod("usual", share(300))]
    rule = Fgd().study([ONE, ONE], Mix((share(300), share(680), share(690)), (98, 1, 1)))
    # It leaves 20 on the first and would leave 10 on the second: 49 points either way.
    assert [seat and seat.node for seat in fill(cluster, stream, rule).seats] == [0, 1, 0]


def test_what_is_scarce_has_a_price_and_what_is_plenty_has_none() -> None:
    other = Shape(cpu_milli=10_000, memory_mib=65536, gpus=1, model="V100")
    menu = a_menu({whole(models="V100"): 1, whole(): 1}, ONE, other)
    programme = Programme(menu)
    each = np.array([10_000.0, 10_000.0])
    coming = np.zeros(2)
    coming[menu.models.all(axis=1)] = 0.5
    coming[~menu.models.all(axis=1)] = 2.0
    prices = programme.prices(Free(each, each, np.array([1000.0, 1000.0])), coming)
    assert prices is not None
    assert [kind.model for kind in menu.kinds] == ["T4", "V100"]
    assert prices.gpu == pytest.approx([0.0, 1.0], abs=1e-3)
    assert prices.cpu == pytest.approx([0.0, 0.0], abs=1e-3)
    worth = prices.of(menu)
    assert worth[:, 1] == pytest.approx([1000.0, 1000.0], abs=1.0)


def test_cpu_has_a_price_where_it_runs_out_first() -> None:
    menu = a_menu({whole(cpu=2000): 1}, ONE)
    one = np.array([1000.0])
    prices = Programme(menu).prices(Free(4 * one, 90 * one, 9 * one), np.array([50.0]))
    assert prices is not None
    # A pod of 2000 CPU milli brings 1000 GPU milli.
    assert prices.cpu == pytest.approx([0.5], abs=1e-3)
    assert prices.gpu == pytest.approx([0.0], abs=1e-3)


def seen(left: int, final: int, times: int, cpu: int = 9000) -> Seen:
    return Seen(
        kind=np.zeros(times, dtype=np.int64),
        cpu=np.full(times, cpu),
        gpus=np.tile(np.array([left, 0]), (times, 1)),
        final=np.tile(np.array([final, 0]), (times, 1)),
    )


def test_waste_is_what_was_left_in_the_end() -> None:
    waste = learned(seen(left=530, final=60, times=10_000), 1)
    found = waste(0, np.array([9000, 9000]), np.array([[530, 0], [0, 0]]))
    assert found == pytest.approx([60.0, 0.0], abs=1.0)


def test_what_was_never_seen_is_expected_to_be_half_wasted() -> None:
    waste = learned(seen(left=530, final=60, times=100), 1)
    assert waste(0, np.array([9000]), np.array([[200, 0]])) == pytest.approx([100.0])


def test_more_cpu_never_makes_more_waste() -> None:
    waste = learned(seen(left=500, final=500, times=1000, cpu=24_000), 1)
    assert bool((np.diff(waste.table, axis=2) <= 0.0).all())


MIX = {share(810, 3152): 9, share(470): 7, share(190, 200): 3, whole(1, 4000): 9, whole(2, 6000): 2}
NODES = [DUAL] * 9 + [ONE] * 6


def test_the_same_seed_learns_the_same_whatever_the_order_of_the_cluster() -> None:
    mix = Mix(tuple(MIX), tuple(MIX.values()))
    practice = Practice(scenes=1, rounds=2, seed=3)
    first = Whale(practice=practice).study(NODES, mix)
    second = Whale(practice=practice).study(NODES[::-1], mix)
    stream = [Pod(str(n), demand) for n, demand in enumerate(scenes(NODES, mix, 1, 9)[0].demands)]
    cluster = [ClusterNode(str(number), shape) for number, shape in enumerate(NODES)]
    assert fill(cluster, stream, first).seats == fill(cluster, stream, second).seats


def test_a_rule_fills_the_same_however_often_it_has_filled_before() -> None:
    mix = Mix(tuple(MIX), tuple(MIX.values()))
    rule = Whale(practice=Practice(scenes=1, rounds=1)).study(NODES, mix)
    stream = [Pod(str(n), demand) for n, demand in enumerate(scenes(NODES, mix, 1, 9)[0].demands)]
    cluster = [ClusterNode(str(number), shape) for number, shape in enumerate(NODES)]
    assert fill(cluster, stream, rule) == fill(cluster, stream, rule)


def test_prices_keep_a_model_for_those_that_need_it() -> None:
    plenty = Shape(cpu_milli=10_000, memory_mib=65536, gpus=1, model="G2")
    cluster = [ClusterNode(f"scarce-{n}", ONE) for n in range(3)]
    cluster += [ClusterNode(f"plenty-{n}", plenty) for n in range(9)]
    stream = [Pod(f"any-{n}", whole()) for n in range(9)]
    stream += [Pod(f"choosy-{n}", whole(models="T4")) for n in range(3)]
    shapes = [node.shape for node in cluster]
    blind = Weights(fragmentation=0.0, waste=0.0, price=0.0)
    for weights, refused in ((blind, 3), (replace(blind, price=3.0), 0), (Weights(), 0)):
        rule = Whale(weights, Practice(scenes=1, rounds=1)).study(shapes, mix_of(stream))
        result = fill(cluster, stream, rule)
        assert sum(seat is None for seat in result.seats) == refused
