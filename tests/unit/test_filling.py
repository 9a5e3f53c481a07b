"""Pods that never leave, played into a cluster by every installed policy."""

import random

import pytest

from cloudwhale import plugins
from cloudwhale.simulation.filling import BadSeat, Filled, class_of, fill, mix_of
from cloudwhale.simulation.filling_bound import dual_feasible, most_allocated_milli
from cloudwhale.spi.filling import (
    ClusterNode,
    Demand,
    Filling,
    Left,
    Pod,
    Rule,
    Seat,
    Shape,
)

POLICIES = plugins.names(plugins.FILLINGS)
ONE_GPU = Shape(cpu_milli=8000, memory_mib=32768, gpus=1, model="T4")
SHAPES = (
    ONE_GPU,
    Shape(cpu_milli=32000, memory_mib=131072, gpus=4, model="V100"),
    Shape(cpu_milli=64000, memory_mib=262144, gpus=8, model="G2"),
)


def a_demand(
    milli: int = 1000, gpus: int = 1, cpu: int = 1000, memory: int = 1024, models: str = ""
) -> Demand:
    names = frozenset(models.split("|")) if models else frozenset[str]()
    return Demand(cpu, memory, gpus, milli if gpus else 0, names)


def nodes(*shapes: Shape) -> list[ClusterNode]:
    return [ClusterNode(f"node-{number}", shape) for number, shape in enumerate(shapes)]


def pods(*demands: Demand) -> list[Pod]:
    return [Pod(f"pod-{number}", demand) for number, demand in enumerate(demands)]


def a_policy(name: str) -> Filling:
    made: Filling = plugins.load(plugins.FILLINGS, name)()
    return made


def filled(name: str, cluster: list[ClusterNode], asked: list[Pod]) -> Filled:
    rule = a_policy(name).study([node.shape for node in cluster], mix_of(asked))
    return fill(cluster, asked, rule)


def a_random_run(seed: int) -> tuple[list[ClusterNode], list[Pod]]:
    """Return a dozen nodes, and pods for one and a half of them."""
    dice = random.Random(f"filling-{seed}")
    cluster = nodes(*(dice.choice(SHAPES) for _ in range(12)))
    menu = [
        a_demand(
            milli=dice.choice((100, 190, 320, 470, 650, 810)),
            cpu=dice.choice((500, 3152, 8000)),
            memory=dice.choice((512, 16384)),
            models=dice.choice(("", "", "T4", "G2|V100")),
        )
        for _ in range(8)
    ]
    menu += [a_demand(gpus=gpus, cpu=gpus * dice.choice((2000, 9000))) for gpus in (0, 1, 1, 2, 4)]
    menu.append(a_demand(gpus=8, cpu=20000, models="G2"))
    asked: list[Demand] = []
    total = 0
    while total < 1500 * sum(node.shape.gpus for node in cluster):
        asked.append(dice.choice(menu))
        total += asked[-1].gpu_total_milli
    return cluster, pods(*asked)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", POLICIES)
def test_nothing_is_ever_given_twice(name: str, seed: int) -> None:
    cluster, asked = a_random_run(seed)
    taken: dict[int, list[tuple[Demand, Seat]]] = {}
    for pod, seat in zip(asked, filled(name, cluster, asked).seats, strict=True):
        if seat is not None:
            taken.setdefault(seat.node, []).append((pod.demand, seat))
    assert taken
    for node, held in taken.items():
        shape = cluster[node].shape
        assert sum(demand.cpu_milli for demand, _ in held) <= shape.cpu_milli
        assert sum(demand.memory_mib for demand, _ in held) <= shape.memory_mib
        for device in range(8):
            on_it = [demand for demand, seat in held if device in seat.devices]
            assert sum(demand.gpu_milli for demand in on_it) <= (1000 if device < shape.gpus else 0)
        for demand, seat in held:
            assert len(seat.devices) == len(set(seat.devices)) == demand.gpus
            assert not demand.models or shape.model in demand.models


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", POLICIES)
def test_a_pod_is_refused_only_where_nothing_can_take_it(name: str, seed: int) -> None:
    cluster, asked = a_random_run(seed)
    free = [[1000] * node.shape.gpus for node in cluster]
    cpu = [node.shape.cpu_milli for node in cluster]
    memory = [node.shape.memory_mib for node in cluster]
    for pod, seat in zip(asked, filled(name, cluster, asked).seats, strict=True):
        demand = pod.demand
        if seat is None:
            for node, gpus in enumerate(free):
                could = (
                    cpu[node] >= demand.cpu_milli
                    and memory[node] >= demand.memory_mib
                    and sum(left >= demand.gpu_milli for left in gpus) >= demand.gpus
                    and (not demand.models or cluster[node].shape.model in demand.models)
                )
                assert not could, (pod, node)
            continue
        cpu[seat.node] -= demand.cpu_milli
        memory[seat.node] -= demand.memory_mib
        for device in seat.devices:
            free[seat.node][device] -= demand.gpu_milli


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_fills_more_than_the_bound(name: str, seed: int) -> None:
    cluster, asked = a_random_run(seed)
    result = filled(name, cluster, asked)
    allocated = sum(
        pod.demand.gpu_total_milli
        for pod, seat in zip(asked, result.seats, strict=True)
        if seat is not None
    )
    assert 0 < allocated <= most_allocated_milli(cluster, asked) + 1e-3


@pytest.mark.parametrize("name", POLICIES)
def test_the_first_of_two_equal_nodes_is_taken(name: str) -> None:
    result = filled(name, nodes(ONE_GPU, ONE_GPU, ONE_GPU), pods(a_demand(milli=500)))
    assert result.seats == (Seat(0, (0,)),)


@pytest.mark.parametrize("name", POLICIES)
def test_only_a_model_that_was_named_will_do(name: str) -> None:
    cluster = nodes(*(Shape(8000, 32768, 1, model) for model in ("P100", "G2", "T4", "G3")))
    result = filled(name, cluster, pods(*([a_demand(models="T4|G2")] * 3)))
    assert {seat and seat.node for seat in result.seats} == {1, 2, None}


@pytest.mark.parametrize("name", POLICIES)
def test_a_pod_that_the_mix_does_not_know_is_refused(name: str) -> None:
    cluster = nodes(ONE_GPU)
    rule = a_policy(name).study([ONE_GPU], mix_of(pods(a_demand(milli=500))))
    assert fill(cluster, pods(a_demand(milli=499)), rule).seats == (None,)


def test_the_curve_is_the_mean_over_the_pods_of_a_percent() -> None:
    cluster = nodes(*([ONE_GPU] * 2))
    halves = [a_demand(milli=500)] * 3
    result = filled("best-fit", cluster, pods(*halves, a_demand(gpus=0), a_demand(), a_demand()))
    # Three halves, a pod without GPU at the same percent, then two wholes that find no free GPU.
    assert result.allocated_percent == {25: 25.0, 50: 50.0, 75: 75.0, 125: 75.0, 175: 75.0}
    assert [result.at(percent) for percent in (10, 50, 74, 200)] == [0.0, 50.0, 50.0, 75.0]
    assert result.classes["1"].refused == 2
    assert result.classes["1"].refused_gpu_milli == 2000
    assert (result.classes["share"].pods, result.classes["share"].refused) == (3, 0)
    assert result.classes["cpu"].gpu_milli == 0


def test_a_class_says_size_and_whether_the_model_matters() -> None:
    assert class_of(a_demand(gpus=0)) == "cpu"
    assert class_of(a_demand(milli=999)) == "share"
    assert class_of(a_demand(gpus=8, models="G2")) == "8*"


class Stubborn:
    """Chooses one seat, whether it holds or not."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    def begin(self, shapes: object) -> "Stubborn":
        return self

    def choose(self, demand: Demand, left: Left) -> Seat | None:
        return self.seat


@pytest.mark.parametrize(
    ("demand", "seat", "says"),
    [
        (a_demand(cpu=9000), Seat(0, (0,)), "CPU"),
        (a_demand(memory=99999), Seat(0, (0,)), "memory"),
        (a_demand(), Seat(0, (1,)), "left of a GPU"),
        (a_demand(gpus=2), Seat(0, (0, 0)), "asks for 2 GPUs"),
        (a_demand(), Seat(0, ()), "asks for 1 GPUs"),
        (a_demand(models="G2"), Seat(0, (0,)), "asks for G2"),
    ],
)
def test_a_seat_that_does_not_hold_is_not_taken(demand: Demand, seat: Seat, says: str) -> None:
    rule: Rule = Stubborn(seat)
    with pytest.raises(BadSeat, match=says):
        fill(nodes(ONE_GPU), pods(demand), rule)


def test_an_empty_stream_fills_nothing() -> None:
    assert fill(nodes(ONE_GPU), [], Stubborn(Seat(0))) == Filled({}, {}, ())


def test_two_of_three_pods_that_take_more_than_half_are_bound_to_wait() -> None:
    assert most_allocated_milli(nodes(ONE_GPU), pods(*([a_demand(milli=600)] * 3))) == (
        pytest.approx(600.0)
    )


def test_the_bound_knows_cpu_and_models() -> None:
    cluster = nodes(ONE_GPU, Shape(2000, 32768, 1, "G2"))
    asked = pods(*([a_demand(models="T4")] * 2), a_demand(milli=400, cpu=2500))
    assert most_allocated_milli(cluster, asked) == pytest.approx(1000.0)
    assert most_allocated_milli(nodes(ONE_GPU), pods(a_demand(gpus=2))) == 0.0


@pytest.mark.parametrize("cut", range(1, 21))
def test_sizes_that_share_a_gpu_weigh_at_most_one(cut: int) -> None:
    dice = random.Random(f"cuts-{cut}")
    for _ in range(300):
        left, weight = 1000, 0.0
        while (size := dice.randint(1, 700)) <= left:
            left -= size
            weight += dual_feasible(size, cut)
        weight += dual_feasible(left, cut)
        assert weight <= 1.0 + 1e-9


NO_GPU = Shape(cpu_milli=8000, memory_mib=32768, gpus=0)


@pytest.mark.parametrize(
    ("cluster", "asked"),
    [
        (nodes(ONE_GPU), []),
        (nodes(ONE_GPU), pods(a_demand(gpus=0))),
        (nodes(NO_GPU), pods(a_demand(gpus=0), a_demand())),
        (nodes(ONE_GPU), pods(a_demand(models="G2"), a_demand(gpus=9))),
        ([], pods(a_demand())),
    ],
)
@pytest.mark.parametrize("name", POLICIES)
def test_a_mix_that_asks_for_no_gpu_here_is_filled_too(
    name: str, cluster: list[ClusterNode], asked: list[Pod]
) -> None:
    seats = filled(name, cluster, asked).seats
    assert seats == tuple(Seat(0) if cluster and not pod.demand.gpus else None for pod in asked)
