"""Stored rounds are made again bit for bit: with holds, preemption, growth, what was measured."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from makers import a_device, a_job, a_node, a_spec, wants

from cloudwhale import plugins
from cloudwhale.control.controller import Chosen
from cloudwhale.control.replay import plan_again
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, GpuRequest, Span
from cloudwhale.model.node import DeviceUse, Measured
from cloudwhale.model.plan import Place, Round
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import Sighting
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.simulation.playing import Arrival, Played, Setting, play

WHALE = Policies(
    plugins.load(plugins.ORDERS, "whale")(), plugins.load(plugins.SCORES, "whale")(), Rules()
)
CHOSEN = Chosen(WHALE, order="whale", score="whale", seed=7)
FAST, SLOW = a_device("fast-0", "A100-80GB", 80.0), a_device("slow-0", "L4", 24.0)
NODES = [
    a_node("fast", cpu=16.0, memory_gib=64.0, devices=(FAST,)),
    a_node("slow", cpu=16.0, memory_gib=64.0, devices=(SLOW,)),
]


def an_arrival(at: float, job: str, work_s: float, share: float, priority: int) -> Arrival:
    gpu = GpuRequest(count=1, share=share, memory_gib=Span(least=8.0))
    spec = a_spec(
        resources=wants(gpu=gpu), reference="A100-80GB", duration_s=work_s, priority=priority,
        checkpoint=CheckpointRule(every_s=60.0),
    )  # fmt: skip
    return Arrival(at, job, spec, work_s)


def a_busy_afternoon() -> Played:
    """Play batch jobs that fill both nodes, short ones between them, and urgent ones."""
    arrivals = [an_arrival(n * 200.0, f"batch-{n}", 1500.0 + 70 * n, 1.0, 20) for n in range(8)]
    arrivals += [an_arrival(50 + n * 333.0, f"tune-{n}", 400.0, 0.5, 50) for n in range(8)]
    arrivals += [an_arrival(900 + n * 900.0, f"urgent-{n}", 200.0, 1.0, 90) for n in range(4)]
    return play(Setting(NODES, arrivals), CHOSEN)


def made_again(stored: Round, store: MemoryStore) -> bool:
    """Say whether a round, read from its JSON as a database does, gives its plan again."""
    read = Round.model_validate_json(stored.model_dump_json())
    return plan_again(store, read).model_dump_json() == stored.plan.model_dump_json()


def test_every_round_of_a_busy_afternoon_is_made_again() -> None:
    played = a_busy_afternoon()
    kinds: Counter[str] = Counter()
    number = 1
    while (stored := played.store.round(number)) is not None:
        kinds.update(step.kind for step in stored.plan.steps)
        assert made_again(stored, played.store), number
        number += 1
    assert kinds["place"] >= 20 and kinds["ask-to-stop"] and kinds["hold"]


@pytest.mark.parametrize("used_gib", [None, 75.0])
def test_a_round_that_knows_of_growth_and_of_what_is_used_is_made_again(
    used_gib: float | None,
) -> None:
    store, job = MemoryStore(), a_job("big-1", resources=wants(memory_gib=2.0))
    sharer = an_arrival(0.0, "tune-1", 100.0, 0.5, 50)
    reason = Reason(code=Code.OUT_OF_MEMORY, says="used 2 GiB of 2 GiB")
    store.append([e.NodeJoined(at=0.0, node=node) for node in NODES])
    store.append([e.Submitted(at=0.0, job=job.id, first=job)])
    first = plan(store.world(1.0), WHALE)
    (place,) = (step for step in first.steps if isinstance(step, Place))
    store.append([
        e.Placed(at=1.0, job=job.id, attempt=1, placement=place.placement, reason=reason),
        e.Started(at=2.0, job=job.id, attempt=1),
        e.Retried(
            at=3.0, job=job.id, attempt=1, exit_code=137, reason=reason, not_before=3.0,
            grown=wants(memory_gib=60.0),
        ),
        e.Submitted(
            at=3.0, job="tune-1", first=a_job("tune-1").but(spec=sharer.spec, submitted_at=3.0)
        ),
    ])  # fmt: skip
    use = DeviceUse(used_gib=used_gib or 0.0, foreign_gib=used_gib or 0.0, sm=0.5)
    seen = {
        node.id: Sighting(
            node=node.id, heard_at=4.0, agent_alive=True,
            measured=Measured(devices={"fast-0": use} if node.id == "fast" else {}, cpu=1.5),
        )
        for node in NODES
    }  # fmt: skip
    stored = round_of(store, seen)
    assert made_again(stored, store)
    places = {s.job: s.placement.node for s in stored.plan.steps if isinstance(s, Place)}
    assert "big-1" in places
    assert places["tune-1"] == ("fast" if used_gib is None else "slow")


def round_of(store: MemoryStore, seen: dict[str, Sighting]) -> Round:
    """Plan as a controller does, and return what it stores."""
    world = replace(store.world(4.0), seed=7, sightings=seen)
    rows = {name: one.model_dump(mode="json") for name, one in seen.items()}
    return Round(
        number=1, version=world.version, now=4.0, seed=7, epoch=1, order="whale", score="whale",
        settings=WHALE.rules.model_dump_json(), sightings=json.dumps(rows),
        plan=plan(world, WHALE),
    )  # fmt: skip
