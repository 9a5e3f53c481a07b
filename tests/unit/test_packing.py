from dataclasses import replace
from typing import Any

import pytest
from makers import a_device, a_job, a_node, wants
from match_worlds import Size, a_big_world

from cloudwhale.model.job import GpuRequest, Job, JobState
from cloudwhale.model.node import Node
from cloudwhale.model.reason import Code
from cloudwhale.planning import packing
from cloudwhale.planning.checker import check
from cloudwhale.planning.inventory import Reservation, free_capacity
from cloudwhale.planning.packing import Packed, Packing, pack
from cloudwhale.planning.planner import Policies, plan
from cloudwhale_policies.fits import BestFit, WorstFit
from cloudwhale_policies.whale import Whale
from cloudwhale_policies.whale_order import Whale as WhaleOrder


def packed(*classes: list[Job], nodes: list[Node], **given: Any) -> Packed:
    free = free_capacity(nodes, given.get("running", ()))
    return pack(classes, Packing(**{"now": 0.0, "free": free, "score": BestFit(), **given}))


def places(found: Packed) -> dict[str, str]:
    return {job.id: d.chosen.placement.node for job, d in found.places if d.chosen is not None}


def job(name: str, cpu: float = 1.0, **fields: Any) -> Job:
    return a_job(name, resources=wants(cpu=cpu), **{"duration_s": 600.0, **fields})


def test_a_class_is_matched_together_where_one_by_one_leaves_one_out() -> None:
    nodes = [a_node("a", cpu=8.0), a_node("b", cpu=2.0)]
    jobs = [job("small", 1.0), job("large", 8.0)]
    together = packed(jobs, nodes=nodes, score=WorstFit())
    one_by_one = packed(jobs[:1], jobs[1:], nodes=nodes, score=WorstFit())
    assert places(together) == {"small": "b", "large": "a"}
    assert places(one_by_one) == {"small": "a"}


def test_the_first_is_not_passed_over_for_two_behind_it() -> None:
    nodes = [a_node("a", cpu=4.0)]
    jobs = [job("first", 4.0), job("second", 2.0), job("third", 2.0)]
    assert places(packed(jobs, nodes=nodes)) == {"first": "a"}


def test_jobs_of_one_need_share_a_verdict_with_counts_and_the_nearest_miss() -> None:
    nodes = [a_node("a", cpu=1.0), a_node("b", cpu=3.0), a_node("c", cpu=8.0, labels={"x": "y"})]
    jobs = [
        job("one", 4.0, where={"labels": {"x": "z"}}),
        job("two", 4.0, where={"labels": {"x": "z"}}),
    ]
    jobs = [j.but(spec=j.spec.model_validate(j.spec.model_dump())) for j in jobs]
    found = packed(jobs, nodes=nodes)
    (_, one), (_, two) = found.refused
    assert one is two
    assert one.refused == {Code.LABELS: 3}
    assert (one.code, one.nearest_node) == (Code.NOTHING_FITS, "a")


def test_who_would_run_into_a_reservation_is_refused_there_and_who_ends_in_time_is_not() -> None:
    nodes = [a_node("a", cpu=4.0)]
    free = free_capacity(nodes, [])
    kept = Reservation("a", 900.0, "older", replace(free["a"], cpu=0.0))
    short, long = job("short", 1.0, duration_s=600.0), job("long", 1.0, duration_s=6000.0)
    found = packed([short, long], nodes=nodes, reserved={"a": kept})
    assert places(found) == {"short": "a"}
    ((_, verdict),) = found.refused
    assert verdict.refused == {Code.KEPT_FREE: 1}
    assert "older" in verdict.reason.says


def test_a_long_job_takes_what_the_reserved_one_leaves_and_not_twice() -> None:
    nodes = [a_node("a", cpu=4.0)]
    free = free_capacity(nodes, [])
    kept = Reservation("a", 900.0, "older", replace(free["a"], cpu=1.0))
    long = [job(f"long-{n}", 1.0, duration_s=6000.0) for n in range(2)]
    assert places(packed(long, nodes=nodes, reserved={"a": kept})) == {"long-0": "a"}


def test_the_weights_of_the_settings_decide_and_those_of_other_policies_do_not() -> None:
    nodes = [
        a_node("a", devices=(a_device("a0", "H100-80GB", 80.0),)),
        a_node("b", devices=(a_device("b0", "T4", 16.0),), cached=("label:x",)),
    ]
    gpu = a_job("j", resources=wants(gpus=1), affinity=("x",), reference="T4", duration_s=3600.0)
    at_home = packed([gpu], nodes=nodes, score=Whale(), weights={"affinity": 1.0})
    soon = packed([gpu], nodes=nodes, score=Whale(), weights={"finish": 1.0})
    assert (places(at_home), places(soon)) == ({"j": "b"}, {"j": "a"})
    assert places(packed([gpu], nodes=nodes, weights={"finish": 1.0})) == {"j": "a"}


def test_chosen_rivals_and_refusals_are_all_the_nodes() -> None:
    nodes = [a_node(f"n{n}", cpu=float(n)) for n in range(6)]
    ((_, decision),) = packed([job("j", 2.0)], nodes=nodes).places
    assert decision.chosen is not None
    assert [r.placement.node for r in decision.rivals] == ["n3", "n4", "n5"]
    assert (decision.chosen.placement.node, decision.refused) == ("n2", {Code.CPU: 2})
    assert decision.nearest_node == "n1"


@pytest.mark.parametrize("small", [True, False])
def test_few_and_many_take_the_same_places(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "SMALL", 10**6 if small else -1)
    half = GpuRequest(count=1, share=0.5)
    nodes = [a_node("a", cpu=8.0, devices=(a_device("g0"), a_device("g1"))), a_node("b", cpu=8.0)]
    jobs = [a_job(f"half-{n}", resources=wants(cpu=1, gpu=half)) for n in range(3)]
    jobs += [a_job("plain", resources=wants(cpu=2)), a_job("huge", resources=wants(cpu=99))]
    found = packed(jobs, nodes=nodes, score=Whale())
    assert places(found) == {"half-0": "a", "half-1": "a", "half-2": "a", "plain": "a"}
    assert [j.id for j, _ in found.refused] == ["huge"]


def test_a_large_round_breaks_no_rule_and_is_made_again_bit_for_bit() -> None:
    world = a_big_world(Size(waiting=300, nodes=40), seed=5)
    policies = Policies(WhaleOrder(), Whale())
    made = plan(world, policies)
    again = plan(
        replace(
            world,
            jobs=dict(reversed(list(world.jobs.items()))),
            nodes=dict(reversed(list(world.nodes.items()))),
        ),
        policies,
    )
    assert check(made, world, policies.rules) == ()
    assert made.model_dump_json() == again.model_dump_json()
    told = {getattr(step, "job", None) for step in made.steps}
    assert {j.id for j in world.jobs.values() if j.state is JobState.PENDING} <= told
