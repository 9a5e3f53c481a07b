"""Gangs in simulated time: whole or not at all, lost together, resumed from what all have saved."""

from collections.abc import Callable
from functools import partial

import pytest
from clouding import (
    MortalCloud,
    MortalDeeds,
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    dies,
    is_settled,
    left_over,
    rentals_of,
    settles,
)
from staging import Fuse, MortalMachine, MortalStore, jobs_of, pass_by

from cloudwhale.control.sweeping import EVERY_S, GRACE_S
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Hired, Shelf
from cloudwhale.simulation.stage import Stage

SIZES = (2, 4)


def a_gang(name: str, nodes: int, *shelves: Shelf, **fields: object) -> Stage:
    """Make a stage with one gang and money enough."""
    offers = shelves or (Shelf(an_offer()),)
    fields = {"budget": "40", "cloud": MortalCloud, **fields}
    return a_cloudy_stage((name,), offers, nodes=nodes, **fields)  # type: ignore[arg-type]


def gang_of(stage: Stage) -> str:
    (name,) = jobs_of(stage)
    return name


def told(stage: Stage, kind: type[e.Event]) -> list[e.Event]:
    """Return all events of a kind, in order."""
    events = (one.event for one in stage.scenery.store.since(0, 100_000))
    return [event for event in events if isinstance(event, kind)]


def begun(stage: Stage) -> dict[int, list[tuple[str, float, float]]]:
    """Return, by attempt, on which machines its ranks began, when, and from how much work."""
    found: dict[int, list[tuple[str, float, float]]] = {}
    for machine in cloud_of(stage).machines_ever:
        for one in machine.begun:
            found.setdefault(one.key[1], []).append((machine.node, one.at, one.from_work_s))
    return found


def is_whole_or_not_at_all(stage: Stage, nodes: int) -> None:
    """Check that gangs were placed on so many ready machines alike, and never ran in two attempts.

    A rank begins once an attempt, on one machine; a later attempt begins after all of the former.
    """
    states: dict[str, RentalState] = {}
    for one in stage.scenery.store.since(0, 100_000):
        match one.event:
            case e.RentalChanged(rental=rental):
                states[rental.id] = rental.state
            case e.Placed(placement=place):
                assert len(set(place.nodes)) == nodes
                assert {states[name] for name in place.nodes} == {RentalState.READY}
            case _:
                continue
    ends: dict[int, float] = {}
    for machine in cloud_of(stage).machines_ever:
        for key, folder in machine.disk.folders.items():
            if folder.process is not None:
                ends[key[1]] = max(ends.get(key[1], 0.0), folder.process.ends_at)
    for attempt, ranks in begun(stage).items():
        assert len(ranks) == len({name for name, _, _ in ranks}) <= nodes
        assert len({work for _, _, work in ranks}) == 1, "all go on from the same"
        earlier = [at for number, at in ends.items() if number < attempt]
        assert all(at >= max(earlier, default=0.0) for _, at, _ in ranks)


@pytest.mark.parametrize("nodes", SIZES)
def test_a_gang_has_so_many_machines_at_once_and_each_is_paid_for(nodes: int) -> None:
    stage = a_gang("saving", nodes)
    stage.raise_controller()
    assert settles(stage)
    assert jobs_of(stage)[gang_of(stage)].state is JobState.COMPLETED
    is_whole_or_not_at_all(stage, nodes)
    adds_up(stage)
    last = [story[-1] for story in rentals_of(stage).values()]
    assert len(last) == nodes and {one.gang for one in last} == {last[0].id}
    charges = [one.amount for one in told(stage, e.Charged) if isinstance(one, e.Charged)]
    assert len(charges) == nodes and sum(charges) == cloud_of(stage).bill()
    started = told(stage, e.Started)
    assert len(started) == 1 and len(told(stage, e.MemberStarted)) == nodes


def test_machines_of_gangs_are_asked_for_with_a_network_of_their_own() -> None:
    stage = a_gang("quick", 2)
    stage.raise_controller()
    assert settles(stage)
    assert all(one.request.gang for one in cloud_of(stage).hired.values())


def lose_one(stage: Stage, number: int) -> Callable[[], None]:
    """Return what takes one machine away without a word, once, some time after the gang runs."""
    done: list[Hired] = []

    def lose() -> None:
        job = jobs_of(stage)[gang_of(stage)]
        now = stage.scenery.clock.now()
        if done or job.state is not JobState.RUNNING or job.checkpoint is None:
            return
        assert job.placement is not None
        name = job.placement.nodes[number]
        one = next(one for one in cloud_of(stage).hired.values() if one.machine.node == name)
        one.taken_at = now
        done.append(one)

    return lose


@pytest.mark.parametrize(("nodes", "lost"), [(2, 0), (2, 1), (4, 0), (4, 3)])
def test_one_lost_machine_takes_the_gang_back_to_what_all_have_saved(nodes: int, lost: int) -> None:
    stage = a_gang("saving", nodes)
    stage.raise_controller()
    lose = lose_one(stage, lost)

    def over() -> bool:
        lose()
        return is_settled(stage)

    assert stage.play(over, 6000.0), [(j.state, j.reason) for j in jobs_of(stage).values()]
    job = jobs_of(stage)[gang_of(stage)]
    assert job.state is JobState.COMPLETED and job.attempt == 2 and job.interruptions == 1
    first, second = begun(stage)[1], begun(stage)[2]
    assert {work for _, _, work in first} == {0.0} and {work for _, _, work in second} >= {4.0}
    assert len({name for name, _, _ in [*first, *second]}) == 2 * nodes
    is_whole_or_not_at_all(stage, nodes)
    adds_up(stage)


def test_machines_that_cannot_be_all_of_a_gang_go_back_and_another_offer_is_taken() -> None:
    dear = micro_usd("9")
    few = Shelf(an_offer(), capacity=3)
    enough = Shelf(an_offer("dear", type="x1", price_usd_h=dear, cap_usd_h=dear))
    stage = a_gang("saving", 4, few, enough)
    stage.raise_controller()
    assert settles(stage)
    assert jobs_of(stage)[gang_of(stage)].state is JobState.COMPLETED
    is_whole_or_not_at_all(stage, 4)
    adds_up(stage)
    hired = list(cloud_of(stage).hired.values())
    cheap = [one for one in hired if one.shelf.offer.id == "big"]
    assert len(cheap) == 3 and not any(one.machine.begun for one in cheap)
    assert all(one.ended_at is not None and one.ended_at - one.launched_at < 60 for one in cheap)
    reasons = [one.reason.code for one in told(stage, e.Waits) if isinstance(one, e.Waits)]
    assert Code.NO_CAPACITY in reasons


def test_a_machine_that_does_not_boot_gives_the_others_back() -> None:
    dear = micro_usd("9")
    broken = Shelf(an_offer(), failed_boots=0.5)
    sound = Shelf(an_offer("dear", type="x1", price_usd_h=dear, cap_usd_h=dear))
    stage = a_gang("saving", 4, broken, sound, seed=1)
    stage.raise_controller()
    assert settles(stage)
    assert jobs_of(stage)[gang_of(stage)].state is JobState.COMPLETED
    is_whole_or_not_at_all(stage, 4)
    adds_up(stage)
    cheap = [one for one in cloud_of(stage).hired.values() if one.shelf.offer.id == "big"]
    assert len(cheap) == 4 and not any(one.machine.begun for one in cheap)


def test_leases_of_a_gang_are_lengthened_together() -> None:
    stage = a_gang("middling", 2, duration_s=60.0)
    stage.raise_controller()
    assert settles(stage)
    assert jobs_of(stage)[gang_of(stage)].state is JobState.COMPLETED
    numbers = [{one.lease.number for one in story} for story in rentals_of(stage).values()]
    assert len(numbers) == 2 and numbers[0] == numbers[1] and max(numbers[0]) > 1
    adds_up(stage)


def test_a_gang_whose_lease_nobody_can_pay_for_longer_lands_on_all_its_machines() -> None:
    stage = a_gang("long", 2, duration_s=60.0, budget="2.2")
    stage.raise_controller()
    assert stage.play(lambda: bool(told(stage, e.GaveWay)) or is_settled(stage), 3000.0), (
        "it lands when the money is gone"
    )
    ends = told(stage, e.MemberEnded)
    assert len(ends) == 2
    assert {one.end.how for one in ends if isinstance(one, e.MemberEnded)} == {"stopped"}
    saved = jobs_of(stage)[gang_of(stage)].checkpoint
    assert saved is not None
    is_whole_or_not_at_all(stage, 2)


@pytest.mark.parametrize("nodes", SIZES)
def test_a_gang_ends_as_a_whole_when_one_rank_fails(nodes: int) -> None:
    stage = a_gang("failing", nodes)
    stage.raise_controller()
    assert settles(stage)
    job = jobs_of(stage)[gang_of(stage)]
    assert job.state is JobState.FAILED and job.exit_code == 3
    adds_up(stage)


def test_a_gang_is_cancelled_on_all_its_machines() -> None:
    stage = a_gang("endless", 4)
    stage.raise_controller()

    def over() -> bool:
        job = jobs_of(stage)[gang_of(stage)]
        if job.state is JobState.RUNNING and job.wish is None:
            stage.scenery.store.append([e.CancelAsked(at=stage.scenery.clock.now(), job=job.id)])
        return is_settled(stage)

    assert stage.play(over, 3000.0)
    assert jobs_of(stage)[gang_of(stage)].state is JobState.CANCELLED
    assert len(told(stage, e.MemberEnded)) == 4
    adds_up(stage)


def test_too_little_money_for_all_of_a_gang_rents_none() -> None:
    stage = a_gang("quick", 4, budget="1.5")  # one of them may cost 0.63 USD
    stage.raise_controller()
    assert not stage.play(lambda: bool(rentals_of(stage)), 300.0)
    reason = jobs_of(stage)[gang_of(stage)].reason
    assert reason is not None and reason.code is Code.OVER_BUDGET


# -- deaths ----------------------------------------------------------------------------------


def life(stage: Stage, fuse: Fuse, *, writes: bool, lost: int | None = None) -> Stage:
    """Live to the end; a controller that dies is followed by another after 3 s."""
    lose = None if lost is None else lose_one(stage, lost)

    def over() -> bool:
        if lose is not None:
            lose()
        return is_settled(stage)

    def lived(fuse: Fuse) -> None:
        cloud = cloud_of(stage)
        assert isinstance(cloud, MortalCloud)
        cloud.fuse = fuse
        store = MortalStore(stage.scenery.store, fuse) if writes else None
        stage.raise_controller(MortalDeeds(fuse), store)
        assert stage.play(over, 6000.0), [(j.state, j.reason) for j in jobs_of(stage).values()]
        if left_over(stage):
            stage.play(lambda: not left_over(stage), EVERY_S + GRACE_S + 10.0)

    if dies(partial(lived, fuse)):
        stage.controller = None
        pass_by(stage, 3.0)
        lived(Fuse(None))
    return stage


LIVES: dict[str, tuple[str, int, int | None]] = {
    "two end well": ("quick", 2, None),
    "four end well": ("quick", 4, None),
    "one of two is lost": ("saving", 2, 1),
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", sorted(LIVES))
def test_a_controller_that_dies_around_any_deed_leaves_no_gang_in_pieces(
    name: str, after: bool
) -> None:
    program, nodes, lost = LIVES[name]
    fuse = Fuse(None)
    life(a_gang(program, nodes), fuse, writes=True, lost=lost)
    assert fuse.count > 15
    for point in range(1, fuse.count + 1):
        stage = life(a_gang(program, nodes), Fuse(point, after), writes=True, lost=lost)
        job = jobs_of(stage)[gang_of(stage)]
        where = f"killed at {point} of {fuse.count}: {job.state}, {job.reason}"
        assert job.state is JobState.COMPLETED, where
        assert not left_over(stage), where
        is_whole_or_not_at_all(stage, nodes)
        adds_up(stage)


class MortalAgents(MortalCloud):
    """A cloud on one machine of which the agent may die around anything that it does."""

    makes = MortalMachine


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("rank", [0, 1])
def test_an_agent_that_dies_around_any_deed_leaves_no_gang_in_pieces(
    rank: int, after: bool
) -> None:
    def lived(fuse: Fuse) -> Stage:
        stage = a_gang("saving", 2, cloud=MortalAgents)
        stage.raise_controller()
        died: list[float] = []

        def over() -> bool:
            now = stage.machine_time
            for at, one in enumerate(cloud_of(stage).hired.values()):
                machine = one.machine
                assert isinstance(machine, MortalMachine)
                machine.fuse = fuse if at == rank else Fuse(None)
                if one.is_up and one.ended_at is None and not machine.agent_alive:
                    died.append(now)
                    machine.start_agent(now)
            return is_settled(stage)

        assert stage.play(over, 6000.0), [(j.state, j.reason) for j in jobs_of(stage).values()]
        return stage

    fuse = Fuse(None)
    lived(fuse)
    assert fuse.count > 10
    for point in range(1, fuse.count + 1):
        stage = lived(Fuse(point, after))
        job = jobs_of(stage)[gang_of(stage)]
        assert job.state is JobState.COMPLETED, (point, job.state, job.reason)
        is_whole_or_not_at_all(stage, 2)
        adds_up(stage)
