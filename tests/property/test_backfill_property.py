"""Backfilling on random small clusters: a start that was promised comes no later than that."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import a_device, a_node
from simulating import an_arrival, never_over_capacity

from cloudwhale.model.job import GpuRequest
from cloudwhale.model.node import Node
from cloudwhale.model.units import Instant
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.lineup import chosen
from cloudwhale.simulation.playing import Arrival, Setting, play
from cloudwhale.spi.waiting import Verdict, Wait, Waits

SEEDS = st.integers(0, 10**6)
AT_ONCE = Physics(neighbour=1.0, start_s=0.0, stop_s=0.0, restore_s=0.0)
"""Machines start and stop at once, so that said lengths are exact."""
POLICIES = ("easy-backfill", "conservative-backfill")


class Witness:
    """Hears what a wait policy promises, and changes nothing."""

    def __init__(self, policy: Wait) -> None:
        self.policy = policy
        self.promised: dict[str, Instant] = {}
        """The earliest start that each job was ever told, by its id."""
        self.needs_quotes = policy.needs_quotes

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        found = self.policy.verdicts(waits)
        for job, verdict in found.items():
            if verdict.at is not None:
                before = self.promised.get(job, math.inf)
                self.promised[job] = min(before, verdict.at)
        return found


def nodes_of(dice: random.Random) -> list[Node]:
    return [
        a_node(
            f"n{n}", cpu=1000.0,
            devices=tuple(a_device(f"n{n}-g{k}") for k in range(dice.randint(1, 4))),
        )
        for n in range(dice.randint(1, 3))
    ]  # fmt: skip


def arrivals_of(dice: random.Random, most: int, shares: tuple[float, ...]) -> list[Arrival]:
    """Return a crowd; some come at one instant, and some end at one."""
    found: list[Arrival] = []
    at = 0.0
    for number in range(14):
        at += dice.choice((0, 5, 20, 60))
        work_s = float(dice.choice((10, 30, 100, 300, 1000)) + dice.randrange(9))
        gpus, share = min(most, dice.choice((1, 1, 2, 4))), dice.choice(shares)
        found.append(an_arrival(at, f"j{number:02}", work_s, gpus=gpus, checkpoint=None))
        if share < 1:
            gpu = GpuRequest(count=1, share=share)
            wants = found[-1].spec.resources.but(gpu=gpu)
            found[-1] = replace(found[-1], spec=found[-1].spec.but(resources=wants))
    return found


def setting_of(seed: int, shares: tuple[float, ...] = (1.0,)) -> Setting:
    dice = random.Random(f"slots-{seed}")
    nodes = nodes_of(dice)
    most = max(len(node.facts.devices) for node in nodes)
    return Setting(nodes, arrivals_of(dice, most, shares), AT_ONCE, at_most_s=math.inf)


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=15)
@given(seed=SEEDS)
def test_nobody_starts_later_than_promised_where_lengths_are_exact(policy: str, seed: int) -> None:
    who = chosen(policy, {}, 1)
    assert who.policies.wait is not None
    witness = Witness(who.policies.wait)
    found = play(setting_of(seed), replace(who, policies=replace(who.policies, wait=witness)))
    for job, at in witness.promised.items():
        started_at = found.jobs[job].job.first_started_at
        assert started_at is not None
        assert started_at <= at + 0.01, (job, started_at - found.began_at, at - found.began_at)


@pytest.mark.parametrize("policy", POLICIES)
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS)
def test_shares_of_devices_are_backfilled_too_and_every_job_ends(policy: str, seed: int) -> None:
    setting = setting_of(seed, (0.25, 0.5, 0.6, 1.0))
    found = play(setting, chosen(policy, {}, 1))
    assert all(one.completion_s is not None for one in found.jobs.values())
    never_over_capacity(found, setting.nodes)


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_that_end_later_than_said_are_not_planned_for_without_an_end(policy: str) -> None:
    setting = replace(setting_of(7), physics=Physics())
    late = [
        replace(one, spec=one.spec.but(duration_s=0.8 * one.work_s)) for one in setting.arrivals
    ]
    found = play(replace(setting, arrivals=late), chosen(policy, {}, 1))
    assert all(one.completion_s is not None for one in found.jobs.values())
    assert found.rounds < 40 * len(late)
