"""Metrics and bounds, worked out by hand."""

from typing import Any

import pytest
from makers import a_device, a_node, a_spec, wants

from cloudwhale.model.node import Node
from cloudwhale.simulation.bounds import bounds
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.lineup import chosen
from cloudwhale.simulation.metrics import metrics, quantile, worst_fairness
from cloudwhale.simulation.playing import Arrival, Setting, play

ONE = a_node("desk", cpu=8.0, devices=(a_device("gpu-0"),))
TWO = a_node("desk", cpu=8.0, devices=(a_device("gpu-0"), a_device("gpu-1")))
AT_ONCE = Physics(start_s=0.0)


def an_arrival(at: float, job: str, work_s: float, gpus: int = 1, **fields: Any) -> Arrival:
    spec = a_spec(resources=wants(gpus=gpus), duration_s=work_s, **fields)
    return Arrival(at, job, spec, work_s)


def test_three_jobs_on_one_device_come_to_what_is_worked_out_by_hand() -> None:
    # a runs 0 to 100, b 100 to 150, c 150 to 160
    arrivals = [an_arrival(0, "a", 100), an_arrival(10, "b", 50), an_arrival(20, "c", 10)]
    found = metrics(
        play(Setting([ONE], arrivals, AT_ONCE), chosen("fit-first", {}, 0)), arrivals, [ONE]
    )
    assert (found.jobs, found.completed, found.failed) == (3, 3, 0)
    assert found.mean_completion_s == pytest.approx((100 + 140 + 140) / 3)
    assert found.median_completion_s == pytest.approx(140)
    assert found.mean_wait_s == pytest.approx((0 + 90 + 130) / 3)
    assert found.longest_wait_s == pytest.approx(130)
    assert found.p99_wait_s == pytest.approx(90 + 0.98 * 40)
    assert found.mean_slowdown == pytest.approx((1 + 140 / 50 + 140 / 10) / 3)
    assert found.makespan_s == pytest.approx(160)
    assert found.utilisation == pytest.approx(1.0)
    assert found.starved == 1, "c waited for 130 s to run for 10"
    assert found.preemptions == 0 and found.worst_fairness is None


def test_no_job_has_no_figures() -> None:
    found = metrics(play(Setting([ONE], []), chosen("fifo", {}, 0)), [], [ONE])
    assert (found.jobs, found.mean_completion_s, found.utilisation) == (0, None, None)
    assert bounds([], [ONE]) is None


def test_a_quantile_lies_between_its_neighbours_in_proportion() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([1.0, 2.0], 0.99) == pytest.approx(1.99)
    assert quantile([7.0], 0.99) == 7.0 and quantile([], 0.5) is None


def test_the_bound_lets_the_least_remaining_area_go_first_on_all_devices_as_one() -> None:
    # areas 200, 20 on two devices: the small one takes 10 to 20, the large one 0 to 110
    arrivals = [an_arrival(0, "a", 100, gpus=2), an_arrival(10, "b", 20)]
    found = bounds(arrivals, [TWO])
    assert found is not None
    assert found.mean_completion_s == pytest.approx((110 + 10) / 2)
    assert found.makespan_s == pytest.approx(110)


def test_no_job_is_bound_to_end_before_it_could_run() -> None:
    found = bounds([an_arrival(0, "a", 100), an_arrival(500, "b", 100)], [TWO])
    assert found is not None
    assert (found.mean_completion_s, found.makespan_s) == (100.0, 600.0)


def test_devices_count_by_how_fast_they_are() -> None:
    mixed = a_node("desk", devices=(a_device("a", "A100-80GB", 80.0), a_device("b", "L4", 24.0)))
    arrivals = [
        an_arrival(0, "a", 100, reference="A100-80GB", speeds={"L4": 0.25}),
        an_arrival(0, "b", 100, reference="A100-80GB", speeds={"L4": 0.25}),
    ]
    found = bounds(arrivals, [mixed])
    assert found is not None and found.makespan_s == pytest.approx(200 / 1.25)


@pytest.mark.parametrize("seed", range(3))
def test_no_play_is_better_than_the_bound(seed: int) -> None:
    from cloudwhale.simulation.traces.synthetic import Mix, mixed, small_nodes

    arrivals, nodes = mixed(seed, Mix(jobs=15, hours=0.5)), small_nodes()
    least = bounds(arrivals, nodes)
    assert least is not None
    for name in ("whale", "fifo"):
        found = metrics(play(Setting(nodes, arrivals), chosen(name, {}, 0)), arrivals, nodes)
        assert found.mean_completion_s is not None and found.makespan_s is not None
        assert found.mean_completion_s >= least.mean_completion_s
        assert found.makespan_s >= least.makespan_s


def test_fairness_is_that_of_the_project_that_fares_worst() -> None:
    # alone, each would have one of two devices: x takes 100, y 100 and 200
    arrivals = [
        an_arrival(0, "a", 100, project="x"),
        an_arrival(0, "b", 100, project="y"),
        an_arrival(0, "c", 100, project="y"),
    ]
    done = {"a": 200.0, "b": 100.0, "c": 100.0}
    nodes: list[Node] = [TWO]
    assert worst_fairness(done, arrivals, nodes) == pytest.approx(200 / 100)
    assert worst_fairness({"b": 300.0, "c": 300.0}, arrivals, nodes) is None, "one project alone"
