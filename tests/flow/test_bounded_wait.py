"""The wait of every job is bounded, whatever stream of shorter or more urgent jobs comes."""

import math
import random
from dataclasses import dataclass, field

import pytest
from makers import a_device, a_node, a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.model.job import HOLDS_A_PLACE, GpuRequest, JobState, Resources
from cloudwhale.model.node import Node
from cloudwhale.model.plan import Plan
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning.aging import MOST_S, limits_of
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.standing import queueing
from cloudwhale.simulation.playing import Arrival, Played, Setting, play
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority
from cloudwhale_policies.whale_order import Whale

VICTIM = "large"
STREAM_S = 3 * 3600.0
GPU = GpuRequest(count=1)
STOP_S: Seconds = 120.0
"""From the last end on a node to the next start there, a stop included."""


@dataclass(slots=True)
class Watch:
    """Plans with some policies, and remembers the longest limit that any round had."""

    policies: Policies
    limit_s: Seconds = 0.0
    waiting_before: dict[str, int] = field(default_factory=dict[str, int])

    def __call__(self, world: World) -> Plan:
        ready = [job for job in world.jobs.values() if job.state is JobState.PENDING]
        runs = [job for job in world.jobs.values() if job.state in HOLDS_A_PLACE]
        known = queueing(world, Durations(world.durations), self.policies.rules)
        self.limit_s = max(self.limit_s, limits_of(ready, runs, known).large_s)
        return plan(world, self.policies)


def nodes(count: int) -> list[Node]:
    return [
        a_node(f"n{k}", cpu=8.0, devices=(a_device(f"n{k}-a"), a_device(f"n{k}-b")))
        for k in range(count)
    ]


def stream(seed: int, load: float, count: int, priority: int, length_s: Seconds) -> list[Arrival]:
    """Return short jobs of one GPU that come as fast as `count` nodes can take, times a load.

    What their files say of their length is off by up to three, either way.
    """
    dice = random.Random(seed)
    gap_s = length_s / (2 * count * load)
    found: list[Arrival] = []
    at = 0.0
    while at < STREAM_S:
        at += dice.expovariate(1 / gap_s)
        work_s = dice.uniform(0.5, 1.5) * length_s
        said_s = work_s * math.exp(dice.uniform(-1, 1) * math.log(3))
        spec = a_spec(
            "short", resources=wants(cpu=1, gpu=GPU), priority=priority, duration_s=said_s,
            preemptible=dice.random() < 0.5,
        )  # fmt: skip
        found.append(Arrival(at, f"short-{len(found):04}", spec, work_s))
    return found


def large(resources: Resources, said_s: Seconds, priority: int) -> Arrival:
    spec = a_spec("large", resources=resources, duration_s=said_s, priority=priority)
    return Arrival(300.0, VICTIM, spec, 600.0)


def bound_s(found: Played, watch: Watch) -> Seconds:
    """Return 2 L + (n + 1)(R + S): ARCHITECTURE.md, "No wait without end"."""
    victim = found.jobs[VICTIM].job
    before = [
        other.job
        for other in found.jobs.values()
        if other.job.id != VICTIM and other.job.submitted_at < victim.submitted_at + watch.limit_s
    ]
    due_at = victim.submitted_at + 2 * watch.limit_s
    still = [job for job in before if _starts_at(found, job.id) > due_at]
    longest_s = max(stay.until - stay.since for stay in found.stays)
    return 2 * watch.limit_s + (len(still) + 1) * (longest_s + STOP_S)


def _starts_at(found: Played, job: str) -> Instant:
    return min((stay.since for stay in found.stays if stay.job == job), default=math.inf)


def attacked(arrivals: list[Arrival], count: int, policies: Policies) -> tuple[Played, Watch]:
    watch = Watch(policies)
    chosen = Chosen(policies, order="whale", score="best-fit")
    return play(Setting(nodes(count), arrivals), chosen, watch), watch


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("priority", [20, 90], ids=["of its class", "of a higher class"])
@pytest.mark.parametrize("said_s", [200.0, 1800.0], ids=["said to be short", "said to be long"])
def test_a_stream_of_short_jobs_does_not_keep_a_large_one_from_its_bound(
    seed: int, priority: int, said_s: Seconds
) -> None:
    victim = large(wants(cpu=1, gpu=GpuRequest(count=2)), said_s, priority=20)
    arrivals = [victim, *stream(seed, 1.0, 1, priority, length_s=100.0)]
    found, watch = attacked(arrivals, 1, Policies(Whale(), BestFit(), Rules(preempt_after_s=60.0)))
    assert found.jobs[VICTIM].job.state is JobState.COMPLETED
    waited_s = _starts_at(found, VICTIM) - found.jobs[VICTIM].job.submitted_at
    assert waited_s <= bound_s(found, watch)
    assert watch.limit_s < MOST_S  # the bound is of the load, not of the day


def test_without_aging_the_same_stream_keeps_it_out_for_as_long_as_it_flows() -> None:
    victim = large(wants(cpu=1, gpu=GpuRequest(count=2)), 1200.0, priority=20)
    arrivals = [victim, *stream(0, 1.1, 1, 90, length_s=100.0)]
    plain = Rules(hold=False, reserve=False, preempt=False)
    found, _ = attacked(arrivals, 1, Policies(Priority(), BestFit(), plain))
    assert _starts_at(found, VICTIM) > STREAM_S
