"""Machines that are warned, listed, taken, or silent at drawn times: promise 5, whatever comes."""

import random
from collections.abc import Iterable

import pytest
from clouding import (
    RENTING,
    WarnedMachine,
    WarningCloud,
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    nothing_overlaps,
    settles,
)
from staging import jobs_of, pass_by

from cloudwhale.control.replay import world_of
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.job import HOLDS_A_PLACE, JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import ON_ITS_WAY, RentalState
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.planning.planner import plan
from cloudwhale.simulation.cloud import Hired, Shelf
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.provider import LaunchRequest

LIVES_MOST = 12
"""Machines after which no more is taken, so that every play ends."""
TAKES = (*ON_ITS_WAY, RentalState.READY)


class FatefulCloud(WarningCloud):
    """A cloud that does to each machine what is drawn for it."""

    drawn = random.Random(0)
    due: dict[str, tuple[str, Instant]] = {}

    def _hired(self, request: LaunchRequest, now: Instant) -> Hired:
        made = super()._hired(request, now)
        if len(self.hired) < LIVES_MOST:
            at = now + self.drawn.choice([5.0, 21.0, 30.0, 60.0, 150.0, 400.0])
            kinds = ["warned", "listed", "sudden", "silent", "back", "spared"]
            self.due[request.node] = (self.drawn.choice(kinds), at)
        return made

    def step(self, now: Instant) -> None:
        for name, (kind, at) in list(self.due.items()):
            if now >= at:
                del self.due[name]
                self._befall(self.hired[name], kind, now)
        super().step(now)

    def _befall(self, one: Hired, kind: str, now: Instant) -> None:
        if one.ended_at is not None:
            return
        assert isinstance(one.machine, WarnedMachine)
        match kind:
            case "warned":
                one.taken_at = now + self.drawn.choice([2.0, 30.0, 120.0])
                if one.is_up and self.drawn.random() < 0.8:  # else the notice is lost
                    one.machine.told(one.taken_at, now)
            case "listed":
                one.shelf = Shelf(one.shelf.offer.but(notice_s=60.0))
                one.taken_at = now + 60.0
            case "sudden":
                one.taken_at = now
            case "silent" if one.is_up:
                one.machine.lose(now)
            case "back" if one.is_up:
                one.machine.lose(now)
                self.due[one.request.node] = ("return", now + self.drawn.choice([100.0, 650.0]))
            case "return":
                one.machine.come_back(now)
            case _:
                pass

    def next_at(self, now: Instant) -> Instant:
        return min(super().next_at(now), *(max(now, at) for _, at in self.due.values()), now + 1e9)


def a_play(seed: int, *, stops_move: bool = True) -> Stage:
    FatefulCloud.drawn, FatefulCloud.due = random.Random(f"fates-{seed}"), {}
    shelves = [
        Shelf(an_offer(name, zone=name, market="spot", price_usd_h=micro_usd(price),
                       cap_usd_h=micro_usd(price), stop_moves=stops_move))
        for name, price in (("r-a", "1"), ("r-b", "1.1"), ("r-c", "3"))
    ]  # fmt: skip
    return a_cloudy_stage(
        ("middling", "saving", "middling"), shelves, budget="200", cloud=FatefulCloud, seed=seed,
        duration_s=500.0 if stops_move else 100.0, retry=RetryRule(max=50, backoff_s=5.0),
    )  # fmt: skip


def next_machines(stage: Stage) -> Iterable[tuple[str, int]]:
    """Yield how many machines are on their way, or wait, for each job that holds another place."""
    world = stage.scenery.store.world(stage.scenery.clock.now())
    for job in world.jobs.values():
        if job.state in HOLDS_A_PLACE and job.placement is not None:
            here = job.placement.node
            others = (one for one in world.rentals.values() if one.node != here)
            empty = [
                one
                for one in others
                if job.id in one.jobs and one.state in TAKES and one.ended_at is None
                if not any(
                    j.placement and j.placement.node == one.node for j in world.jobs.values()
                )
            ]
            yield job.id, len(empty)


@pytest.mark.parametrize("seed", range(16))
def test_no_attempt_starts_before_the_one_before_it_has_ended_whatever_becomes_of_its_machine(
    seed: int,
) -> None:
    lived_through(a_play(seed), seed)


@pytest.mark.parametrize("seed", range(5))
def test_nor_where_stops_cannot_be_moved_and_jobs_hop(seed: int) -> None:
    """Their files say a fifth of what they take: each outlives the lease that it begins under."""
    stage = a_play(seed, stops_move=False)
    lived_through(stage, seed)
    stops = [one.event for one in stage.scenery.store.since(0) if _ends_a_lease(one.event)]
    assert stops, "somebody outlived a lease"


def _ends_a_lease(event: e.Event) -> bool:
    codes = (Code.HOPS, Code.LEASE_ENDS)
    return isinstance(event, e.StopWished) and event.reason.code in codes


def lived_through(stage: Stage, seed: int) -> None:
    """Play to the end, with kills of the controller; check all that is promised on the way."""
    stage.raise_controller()
    kills = random.Random(f"kills-{seed}")
    for _ in range(400):
        pass_by(stage, 10.0)
        assert all(many <= 1 for _, many in next_machines(stage))
        assert stage.controller is not None and stage.controller.incident == ""
        if kills.random() < 0.02:
            stage.raise_controller()
        if all(job.ended for job in jobs_of(stage).values()):
            break
    assert settles(stage, 3000.0), [(job.id, job.reason) for job in jobs_of(stage).values()]
    nothing_overlaps(stage)
    adds_up(stage)
    assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
    every_round_is_made_again(stage)
    assert cloud_of(stage).hired


def every_round_is_made_again(stage: Stage) -> None:
    store, number = stage.scenery.store, 1
    assert isinstance(store, MemoryStore)
    while (stored := store.round(number)) is not None:
        again = plan(world_of(store, stored), RENTING)
        assert again.model_dump_json() == stored.plan.model_dump_json(), number
        number += 1
    assert number > 3


def test_the_fates_that_are_drawn_are_of_every_kind() -> None:
    kinds: set[str] = set()
    for seed in range(16):
        stage = a_play(seed)
        stage.raise_controller()
        pass_by(stage, 5.0)
        kinds |= {kind for kind, _ in FatefulCloud.due.values()}
    assert kinds == {"warned", "listed", "sudden", "silent", "back", "spared"}
