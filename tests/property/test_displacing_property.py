"""Random small clusters where who runs is ranked with who waits: nobody is stopped in vain."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import a_device, a_node, a_spec
from simulating import a_chosen, never_over_capacity

from cloudwhale.model.job import CheckpointRule, GpuRequest, JobState, Resources, Span
from cloudwhale.model.node import Node
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.playing import Arrival, Played, Setting, play

ORDERS: Mapping[str, Mapping[str, Any]] = {
    "srtf": {"classless": True}, "srsf": {"classless": True}, "las": {"classless": True},
    "whale": {"age": False},
}  # fmt: skip
"""A wait that is too long follows the load: it may come and go as others stop, so without age."""
SEEDS = st.integers(0, 10**6)
MODELS = {"L4": 24.0, "A100-40GB": 40.0}
LONG_S = 4 * 3600.0


def nodes_of(dice: random.Random) -> list[Node]:
    """Return one to three machines; the first can run whatever is asked for here."""
    found = [_node("n0", 16.0, 64.0, ["A100-40GB", "A100-40GB"])]
    for number in range(dice.randint(0, 2)):
        models = dice.choices(sorted(MODELS), k=dice.randint(0, 3))
        found.append(_node(f"n{number + 1}", dice.choice((2.0, 8.0)), 32.0, models))
    return found


def _node(name: str, cpu: float, memory_gib: float, models: list[str]) -> Node:
    devices = tuple(a_device(f"{name}-g{n}", m, MODELS[m]) for n, m in enumerate(models))
    return a_node(name, cpu=cpu, memory_gib=memory_gib, devices=devices)


def arrivals_of(dice: random.Random) -> list[Arrival]:
    """Return a crowd: whole GPUs, shares and none, of every class, with and without checkpoints."""
    found: list[Arrival] = []
    for number in range(dice.randint(4, 16)):
        share = dice.choice((0.25, 0.5, 0.6, 1.0))
        gpu = GpuRequest(
            count=dice.choice((0, 1, 1, 1, 2)), share=share,
            memory_gib=Span(least=dice.choice((0.0, 4.0, 12.0, 30.0)) if share < 1 else 0.0),
            models=dice.choice(((), (), ("A100",))),
        )  # fmt: skip
        work_s = dice.choice((60.0, 600.0, 3600.0, 20_000.0)) * dice.uniform(0.7, 1.4)
        spec = a_spec(
            resources=Resources(
                gpu=gpu, cpu=dice.choice((0.5, 1.0, 2.0, 6.0)),
                memory_gib=dice.choice((None, 2.0, 30.0)),
            ),
            priority=dice.choice((20, 50, 80)), preemptible=dice.random() < 0.9,
            duration_s=dice.choice((None, work_s, work_s * dice.uniform(0.3, 3.0))),
            checkpoint=dice.choice((None, CheckpointRule(every_s=300.0))),
        )  # fmt: skip
        at = dice.choice((0.0, dice.uniform(0, LONG_S)))
        found.append(Arrival(at, f"j{number:02}", spec, work_s))
    return found


def played(order: str, seed: int) -> tuple[Played, list[Node]]:
    dice = random.Random(f"displacing-{seed}")
    nodes, arrivals = nodes_of(dice), arrivals_of(dice)
    rules: dict[str, Any] = {
        "displace": True, "preempt_after_s": dice.choice((0.0, 60.0)),
        "restart_s": dice.choice((0.0, 60.0)), "match": dice.random() < 0.5,
        "age": dice.random() < 0.7, "reserve": dice.random() < 0.5, **ORDERS[order],
    }  # fmt: skip
    chosen = a_chosen(order, dice.choice(("best-fit", "first-fit", "whale")), **rules)
    return play(Setting(nodes, arrivals, Physics()), chosen), nodes


@pytest.mark.parametrize("order", ORDERS)
@settings(deadline=None, max_examples=25)
@given(seed=SEEDS)
def test_an_order_that_displaces_brings_every_job_to_its_end_and_stops_nobody_in_vain(
    order: str, seed: int
) -> None:
    """The play itself refuses a plan with a fault, and rounds that come to nothing."""
    found, nodes = played(order, seed)
    assert all(one.job.state is JobState.COMPLETED for one in found.jobs.values())
    never_over_capacity(found, nodes)
    # Each stands behind all others at most so often: once each time that one of them comes.
    assert all(one.preemptions <= 2 * len(found.jobs) for one in found.jobs.values())
