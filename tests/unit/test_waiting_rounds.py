"""What the verdicts of a wait policy come to in a round."""

from collections.abc import Mapping
from typing import Any

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.world import World
from cloudwhale.planning.giving import Matched, matched
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.waiting import Quote, Verdict, Wait, Waits
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Fifo
from cloudwhale_policies.waiting.whale import Whale
from cloudwhale_policies.whale_order import Whale as WhaleOrder

QUOTE = Quote(2.0, 1.0, 7200.0)


class Says:
    """A policy that says what it was made with, and keeps what it was shown."""

    def __init__(self, *, needs_quotes: bool = True, **verdicts: Verdict) -> None:
        self._verdicts = verdicts
        self.needs_quotes = needs_quotes
        self.shown: list[Waits] = []

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        self.shown.append(waits)
        return self._verdicts


def a_trainer(name: str, **fields: Any) -> Job:
    return a_job(name, name=name, resources=wants(gpus=1), **{"duration_s": 3600.0, **fields})


def a_round(
    policy: Wait, *jobs: Job, quoted: tuple[str, ...] = ("x",), gpus: int = 2, **fields: Any
) -> Matched:
    devices = tuple(a_device(f"g{n}") for n in range(gpus))
    world: World = a_world(list(jobs), [a_node(cpu=16.0, devices=devices)], **fields)
    ready = [job for job in jobs if job.state is JobState.PENDING]
    policies = Policies(WhaleOrder(), BestFit(), Rules(value_usd_h=7.0), wait=policy)
    return matched(world, ready, policies, dict.fromkeys(quoted, QUOTE))


def test_who_fits_and_is_told_to_wait_gets_no_place_and_is_told_why() -> None:
    found = a_round(Says(x=Verdict("wait", "because", node="host", at=900.0)), a_trainer("x"))
    assert found.places == () and found.refused == ()
    ((job, reason),) = found.waits
    assert (job.id, reason.code) == ("x", Code.WAITS_FOR_START)
    assert reason.says == "is to start on host about 00:15 UTC; because"


def test_who_fits_nowhere_is_told_of_its_start() -> None:
    runs = placed(a_trainer("r"), "host", "g0")
    verdict = Verdict("wait", "because", node="host", at=900.0)
    found = a_round(Says(x=verdict), a_trainer("x"), runs, gpus=1)
    ((job, refused),) = found.refused
    assert (job.id, refused.code) == ("x", Code.WAITS_FOR_START) and found.waits == ()


def test_who_is_to_be_rented_for_leaves_and_gets_no_place() -> None:
    found = a_round(Says(x=Verdict("rent", "too late here")), a_trainer("x"))
    ((job, reason),) = found.leaving
    assert found.places == () and (job.id, reason.code) == ("x", Code.BETTER_RENTED)
    assert reason.says == "too late here"


def test_who_has_waited_too_long_starts_where_it_fits_whatever_the_policy_says() -> None:
    old = a_trainer("x", priority=50)
    for verdict in (Verdict("rent", "cheap"), Verdict("wait", "later")):
        found = a_round(Says(x=verdict), old, now=30 * 24 * 3600.0)
        assert [job.id for job, _ in found.places] == ["x"] and not found.leaving


def test_who_is_not_named_starts_where_it_fits() -> None:
    found = a_round(Says(), a_trainer("x"))
    assert [job.id for job, _ in found.places] == ["x"]


def test_a_policy_that_needs_quotes_is_not_asked_without_any_and_another_is() -> None:
    asked, unasked = Says(needs_quotes=False), Says()
    for policy in (asked, unasked):
        a_round(policy, a_trainer("x"), quoted=())
    assert len(asked.shown) == 1 and unasked.shown == []


def test_what_has_ended_is_shown_in_one_order_whatever_ended_first() -> None:
    times = {("b", "x"): (1.0, 2.0), ("a", "y"): (3.0,)}
    policy = Says()
    for durations in (times, dict(reversed(times.items()))):
        a_round(policy, a_trainer("x"), durations=durations)
    assert [waits.ended_s for waits in policy.shown] == [(3.0, 1.0, 2.0)] * 2


@pytest.mark.parametrize(("at", "look"), [(120.0, 120.0), (9000.0, 300.0), (None, 300.0)])
def test_a_wait_is_looked_at_again_at_its_start_and_every_five_minutes(
    at: float | None, look: float
) -> None:
    found = a_round(Says(x=Verdict("wait", "", at=at)), a_trainer("x"))
    assert found.look_again_at == look


def test_who_has_waited_too_long_starts_where_it_fits_whatever_is_said() -> None:
    said = Says(x=Verdict("wait", "", at=1e7))
    found = a_round(said, a_trainer("x"), now=30 * 24 * 3600.0)
    assert [job.id for job, _ in found.places] == ["x"]


def test_the_policy_is_shown_what_the_job_and_the_rules_say() -> None:
    said = Says()
    jobs = (
        a_trainer("x", wait_max_s=600.0, deadline=10_000.0),
        a_trainer("y", deadline=4000.0, value_of_time_usd_h=3.0),
        a_trainer("z", duration_s=None),
    )
    runs = placed(a_trainer("r"), "host", "g0").but(state=JobState.RUNNING, started_at=40.0)
    a_round(said, *jobs, runs, now=100.0)
    seen = {one.job.id: one for one in said.shown[0].waiting}
    assert [seen[n].start_by for n in "xyz"] == [600.0, 400.0, None]
    assert [seen[n].usd_h for n in "xyz"] == [7.0, 3.0, 7.0]
    assert [seen[n].length_s for n in "xyz"] == [3600.0, 3600.0, None]
    assert [seen[n].quote for n in "xyz"] == [QUOTE, None, None]
    assert [seen[n].fits_now for n in "xyz"] == [("host",)] * 3
    assert (said.shown[0].devices, said.shown[0].free) == ({"host": 2.0}, {"host": 1.0})
    ((job, ran_s, length_s),) = [(r.job.id, r.ran_s, r.length_s) for r in said.shown[0].running]
    assert (job, ran_s, length_s) == ("r", 60.0, 3600.0)


def test_nobody_waits_for_a_rented_machine_but_who_fits_there_may_start() -> None:
    said = Says()
    rented = a_node("rented", cpu=16.0, owned=False, devices=(a_device("o0"),))
    runs = placed(a_trainer("r"), "rented", "o0")
    for job in (runs, a_trainer("other")):
        world = a_world([a_trainer("x"), job], [a_node(cpu=16.0, devices=(a_device(),)), rented])
        policies = Policies(Fifo(), BestFit(), wait=said)
        matched(world, [world.jobs["x"]], policies, {"x": QUOTE})
    assert [w.waiting[0].nodes for w in said.shown] == [("host",), ("host", "rented")]


def test_without_anything_to_rent_the_whale_changes_nothing() -> None:
    jobs = [a_trainer(f"x{n}", submitted_at=float(n)) for n in range(5)]
    with_it, without = (a_round(policy, *jobs, quoted=(), now=50.0) for policy in (Whale(), Says()))
    assert with_it.places == without.places and with_it.waits == with_it.leaving == ()
    assert with_it.look_again_at == without.look_again_at
