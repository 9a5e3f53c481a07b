"""Who seeks a next machine while it holds a place, on what terms, and what is kept for it."""

from typing import Any

import pytest
from clouding import RENTING, an_offer
from keeping_world import BOOTING, DRAINING, LOST, NAME, OFFER, READY, RUNNING, checked, job, world
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, Job, JobState, RetryCause, RetryRule, Wish
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.keeping import keeping
from cloudwhale.planning.leasing import beyond, pledged
from cloudwhale.planning.next_machines import as_waiting, comes, has_saved, seeks
from cloudwhale.planning.planner import plan
from cloudwhale.planning.queue import waiting
from cloudwhale.planning.speeds import work_s

NEXT = "rent-2-1"
GOING = DRAINING.but(interrupted_at=95.0)
SAVED = Checkpoint(attempt=1, seq=1, name="c", size_bytes=1, saved_at=80.0, manifest="m")
WHY = Reason(code=Code.TAKEN_AWAY, says="taken")
RECOVERING = RUNNING.but(state=JobState.RECOVERING, reason=WHY)


def next_machine(of: Rental, **fields: Any) -> Rental:
    return of.but(id=NEXT, node=NEXT, machine="m-2", **fields)


def both(next_one: Rental, *jobs: Job, node: NodeState = NodeState.READY) -> World:
    """Make a world with a machine that goes, and the next one."""
    of = world(GOING, *jobs, node=NodeState.DRAINING)
    there = a_node(NEXT, cpu=8.0, memory_gib=32.0, owned=False, provider="cloud").but(state=node)
    seen = {**of.sightings, NEXT: Sighting(node=NEXT, heard_at=of.now)}
    return a_world(
        list(jobs), [*of.nodes.values(), there], now=of.now, accounts=of.accounts,
        rentals={**of.rentals, NEXT: next_one}, sightings=seen,
    )  # fmt: skip


def offered(of: World, *offers: Any) -> World:
    return a_world(
        list(of.jobs.values()), list(of.nodes.values()), now=of.now, accounts=of.accounts,
        rentals=of.rentals, sightings=of.sightings, offers=offers or (OFFER,), version=7,
    )  # fmt: skip


def steps(of: World) -> list[str]:
    return [step.kind for step in checked(of).steps]


# -- who seeks -------------------------------------------------------------------------------


def test_a_job_that_recovers_seeks_what_it_will_start_on_and_no_other_does() -> None:
    rentals = {NAME: GOING}
    assert seeks(RECOVERING, rentals, 100.0)
    assert seeks(RECOVERING.but(wish=Wish.GIVE_WAY), rentals, 100.0)
    for other in (
        RUNNING, job(), RECOVERING.but(wish=Wish.CANCEL), RECOVERING.but(wish=Wish.PAUSE),
        RECOVERING.but(wish=Wish.LIMIT), RECOVERING.but(retries=3),
        RECOVERING.but(spec=RECOVERING.spec.but(deadline=100.0)),
        RECOVERING.but(spec=RECOVERING.spec.but(retry=RetryRule(on=()))),
    ):  # fmt: skip
        assert not seeks(other, rentals, 100.0)


def test_what_was_saved_is_progress_and_spends_no_retry() -> None:
    spent = RECOVERING.but(retries=3, checkpoint=SAVED)
    assert seeks(spent, {NAME: GOING}, 100.0)
    assert not seeks(spent.but(attempt=2), {NAME: GOING}, 100.0), "an earlier attempt has saved it"
    never = spent.but(spec=spent.spec.but(retry=RetryRule(max=0)))
    assert not seeks(never, {NAME: GOING}, 100.0)


def test_a_machine_that_is_taken_is_a_preemption_and_one_that_is_lost_a_loss() -> None:
    on = {cause: RECOVERING.spec.but(retry=RetryRule(on=(cause,))) for cause in RetryCause}
    preempted = RECOVERING.but(spec=on[RetryCause.PREEMPTION])
    assert seeks(preempted, {NAME: GOING}, 100.0)
    assert not seeks(preempted, {NAME: READY}, 100.0)
    assert seeks(RECOVERING.but(spec=on[RetryCause.NODE_LOSS]), {NAME: READY}, 100.0)
    assert not seeks(RECOVERING.but(spec=on[RetryCause.ERROR]), {NAME: GOING}, 100.0)


def test_what_is_left_of_its_work_counts_from_what_it_has_saved() -> None:
    soon = as_waiting(RECOVERING.but(checkpoint=SAVED), 100.0)  # it has run since 20
    assert (soon.state, soon.placement, soon.started_at) == (JobState.PENDING, None, None)
    assert (soon.run_s, soon.lost_s) == (80.0, 20.0)
    assert work_s(soon, Durations({})) == 900.0 - 60.0
    assert work_s(as_waiting(RECOVERING, 100.0), Durations({})) == 900.0
    assert not has_saved(RECOVERING) and as_waiting(RECOVERING, 100.0).lost_s == 80.0


def test_one_that_never_started_has_all_before_it() -> None:
    early = RECOVERING.but(started_at=None)
    assert (as_waiting(early, 100.0).run_s, as_waiting(early, 100.0).lost_s) == (0.0, 0.0)


@pytest.mark.parametrize("state", JobState)
def test_who_comes_to_a_machine_waits_or_recovers_elsewhere_or_is_moved(state: JobState) -> None:
    there = next_machine(READY)
    one = RUNNING.but(state=state, wish=None)
    if state is JobState.PENDING:
        one = one.but(placement=None)
    assert comes(one, there) is (state in (JobState.PENDING, JobState.RECOVERING))
    lives = state in (JobState.STARTING, JobState.RUNNING)
    if lives:
        assert comes(one, there.but(moves=("j",)))
        assert comes(one.but(wish=Wish.GIVE_WAY), there.but(moves=("j",)))
        assert not comes(one.but(wish=Wish.CANCEL), there.but(moves=("j",)))
    if state is JobState.RECOVERING:
        assert not comes(one, READY), "it is that machine which it loses"


# -- in a round ------------------------------------------------------------------------------


def test_its_next_machine_is_rented_while_it_recovers_and_nothing_of_it_starts() -> None:
    of = offered(world(GOING, RECOVERING.but(checkpoint=SAVED), node=NodeState.DRAINING))
    made = checked(of)
    (rent,) = (step for step in made.steps if isinstance(step, p.Rent))
    assert rent.rental.jobs == {"j": "default"}
    assert not any(isinstance(step, p.Place) for step in made.steps)
    lasts_s = rent.rental.lease.away_until - of.now
    assert lasts_s < 1.25 * (900.0 - 60.0 + 20.0) + 100.0, "for what is left of it"


def test_where_a_next_machine_is_on_its_way_no_other_is_rented() -> None:
    of = offered(both(next_machine(BOOTING), RECOVERING, node=NodeState.EXPECTED))
    assert steps(of) == []
    assert keeping(of, Durations({})).expected == {"j"}


def test_one_that_is_ready_waits_for_the_end_of_the_old_attempt_and_then_takes_the_job() -> None:
    assert steps(both(next_machine(READY), RECOVERING)) == []
    out = RECOVERING.but(state=JobState.PENDING, placement=None, started_at=None)
    made = checked(both(next_machine(READY), out))
    (place,) = (step for step in made.steps if isinstance(step, p.Place))
    assert (place.placement.node, place.attempt) == (NEXT, 2)
    back = RECOVERING.but(state=JobState.RUNNING)
    assert "return" in steps(both(next_machine(READY), back)), "it goes on where it was"


@pytest.mark.parametrize("wish", [Wish.CANCEL, Wish.PAUSE])
def test_a_next_machine_goes_back_in_the_round_in_which_nobody_needs_it(wish: Wish) -> None:
    stopped = RECOVERING.but(wish=wish, stop_posted=True)
    for state in (BOOTING, READY):
        is_there = NodeState.READY if state is READY else NodeState.EXPECTED
        assert "return" in steps(both(next_machine(state), stopped, node=is_there))
        assert "return" in steps(both(next_machine(state), node=is_there)), "it has ended"


def test_a_job_to_be_moved_runs_on_until_it_is_stopped() -> None:
    moving = next_machine(READY, moves=("j",))
    of = world(READY, RUNNING)
    of = a_world(
        [RUNNING], [*of.nodes.values(), a_node(NEXT, cpu=8.0, owned=False, provider="cloud")],
        now=100.0, accounts=of.accounts, rentals={NAME: READY, NEXT: moving},
        sightings={**of.sightings, NEXT: Sighting(node=NEXT, heard_at=100.0)},
    )  # fmt: skip
    found = keeping(of, Durations({}))
    assert found.expected == {"j"} and [one.kind for one in found.steps] == []


def test_room_of_ours_that_is_free_is_kept_for_it_and_nothing_is_rented() -> None:
    of = world(GOING, RECOVERING, node=NodeState.DRAINING)
    large = a_node("host", cpu=4.0, memory_gib=32.0)
    there = {**of.nodes, "host": large}
    later = a_job("later", resources=wants(cpu=4)).but(submitted_at=99.0)
    for jobs in ([RECOVERING], [RECOVERING, later]):
        here = a_world(
            jobs, list(there.values()), now=100.0, accounts=of.accounts, rentals=of.rentals,
            sightings=of.sightings, offers=(OFFER,), version=7,
        )  # fmt: skip
        made = checked(here)
        assert not any(isinstance(step, p.Place) for step in made.steps)
        rented = [name for one in made.steps if isinstance(one, p.Rent) for name in one.rental.jobs]
        assert "j" not in rented


def test_a_machine_with_room_is_joined_instead_of_another_rented() -> None:
    beside = placed(a_job("other", resources=wants(cpu=4), duration_s=900.0), NEXT).but(
        state=JobState.RUNNING, order_posted=True, started_at=90.0
    )
    there = next_machine(READY).but(jobs={"other": "default"})
    of = offered(both(there, RECOVERING, beside))
    made = checked(of)
    (join,) = (step for step in made.steps if isinstance(step, p.Join))
    assert join.job == "j" and join.rental.id == NEXT
    assert not any(isinstance(step, p.Rent | p.Place) for step in made.steps)


def test_nobody_gives_way_or_stands_behind_for_one_that_has_not_lost_its_place_yet() -> None:
    queue = waiting(world(GOING, RECOVERING, node=NodeState.DRAINING))
    assert queue.ready == () and [one.id for one in queue.seeking] == ["j"]


def test_without_anything_to_rent_a_job_that_recovers_changes_nothing() -> None:
    assert steps(world(GOING, RECOVERING, node=NodeState.DRAINING)) == []


def test_a_stop_that_is_wished_goes_out_to_a_machine_that_is_taken_and_a_start_does_not() -> None:
    wished = RECOVERING.but(wish=Wish.GIVE_WAY)
    assert steps(world(GOING, wished, node=NodeState.DRAINING)) == ["post-stop"]
    unposted = RECOVERING.but(order_posted=False)
    assert steps(world(GOING, unposted, node=NodeState.DRAINING)) == []


# -- money -----------------------------------------------------------------------------------


def test_nothing_is_pledged_any_more_to_a_machine_that_goes() -> None:
    late = GOING.but(late_until=5000.0)
    assert pledged(READY.but(late_until=5000.0)) > NOTHING
    assert pledged(late) == NOTHING
    assert beyond(world(late, RECOVERING), late, [RECOVERING], Durations({})) == NOTHING


def test_the_money_of_the_old_machine_stays_set_aside_beside_that_of_the_next() -> None:
    of = offered(world(GOING, RECOVERING, node=NodeState.DRAINING))
    tight = micro_usd("2.5")  # two are set aside for the machine that goes
    poor = a_world(
        [RECOVERING], list(of.nodes.values()), now=100.0, rentals=of.rentals, offers=of.offers,
        sightings=of.sightings, version=7,
        accounts={"run-1": Account(payer="run-1", limit=tight, reserved=GOING.reserved)},
    )  # fmt: skip
    assert not any(isinstance(step, p.Rent) for step in checked(poor).steps)


# -- what the checker refuses ----------------------------------------------------------------


def rent_for(one: Job) -> tuple[World, p.Plan]:
    of = offered(world(GOING, RECOVERING, node=NodeState.DRAINING))
    made = plan(of, RENTING)
    there = a_world(
        [one], list(of.nodes.values()), now=of.now, accounts=of.accounts, offers=of.offers,
        rentals=of.rentals, sightings=of.sightings, version=7,
    )  # fmt: skip
    return there, made


@pytest.mark.parametrize(
    "planted",
    [
        RUNNING,
        RUNNING.but(state=JobState.STARTING),
        RECOVERING.but(wish=Wish.CANCEL),
        RECOVERING.but(wish=Wish.PAUSE),
        RUNNING.but(state=JobState.PARKED, placement=None),
    ],
    ids=["runs", "starts", "is cancelled", "is paused", "is parked"],
)
def test_the_checker_refuses_a_machine_for_who_will_not_wait(planted: Job) -> None:
    of, made = rent_for(planted)
    assert "one-rental" in {fault.rule for fault in check(made, of, RENTING.rules)}
    of, made = rent_for(RECOVERING)
    assert check(made, of, RENTING.rules) == ()


def test_the_checker_refuses_a_second_next_machine() -> None:
    of, made = rent_for(RECOVERING)
    second = a_world(
        [RECOVERING], list(of.nodes.values()), now=of.now, accounts=of.accounts, offers=of.offers,
        rentals={**of.rentals, NEXT: next_machine(BOOTING)}, sightings=of.sightings, version=7,
    )  # fmt: skip
    assert "one-rental" in {fault.rule for fault in check(made, second, RENTING.rules)}


def test_a_machine_that_is_gone_has_its_attempt_cleared_without_a_retry_where_it_saved() -> None:
    gone = LOST.but(interrupted_at=95.0)
    for one, counts in ((RECOVERING, True), (RECOVERING.but(checkpoint=SAVED), False)):
        of = world(gone, one, node=NodeState.LOST)
        (clear,) = (step for step in checked(of).steps if isinstance(step, p.Clear))
        assert clear.counts is counts
    spent = RECOVERING.but(retries=3)
    made = checked(world(gone, spent, node=NodeState.LOST))
    (step,) = (one for one in made.steps if isinstance(one, p.GiveUp))
    assert step.reason.code is Code.RETRIES_SPENT


def test_another_zone_is_taken_once_the_one_that_took_a_machine_is_dearer_for_that() -> None:
    of = world(GOING, RECOVERING, node=NodeState.DRAINING)
    here = an_offer("a", zone="r-a", market="spot", hazard_per_h=3.0)
    there = an_offer("b", zone="r-b", market="spot", hazard_per_h=0.1)
    (rent,) = (one for one in checked(offered(of, here, there)).steps if isinstance(one, p.Rent))
    assert rent.rental.offer == "b"
