"""Rounds that a night does not make would have decided nothing else: after saves, and retries."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from night_checks import Checks, play
from night_house import House, chosen
from night_values import drawn

from cloudwhale.control import controller
from cloudwhale.control.controller import Controller
from cloudwhale.control.effects import Effects
from cloudwhale.control.executor import Executor
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint
from cloudwhale.model.world import World
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.stirring import stir

SAVES, FAILS = (2, 12), (12, 31)
"""Nights in which much is saved unasked, and in which much fails and is tried again."""


class Remembers(Checks):
    """Knows for each checkpoint what its job would have resumed from without it."""

    older: dict[str, Checkpoint | None]

    def __init__(self, house: House) -> None:
        super().__init__(house)
        Remembers.older = {}

    def _saved(self, event: e.CheckpointSaved) -> None:
        Remembers.older[event.checkpoint.manifest] = self.saved.get(event.job)
        super()._saved(event)


def without_saves(events: Sequence[e.Event], world: World) -> World:
    jobs = dict(world.jobs)
    for event in reversed(events):
        if isinstance(event, e.CheckpointSaved) and event.job in jobs:
            older = Remembers.older[event.checkpoint.manifest]
            jobs[event.job] = jobs[event.job].but(checkpoint=older)
    return replace(world, jobs=jobs)


def decided(world: World, policies: Policies) -> list[p.Step]:
    return [step for step in plan(world, policies).steps if not isinstance(step, p.Late)]


@pytest.mark.parametrize("seed", SAVES)
def test_what_is_saved_and_stirs_nobody_changes_no_plan(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    def watched(events: list[e.Event], world: World, policies: Policies) -> bool:
        nonlocal looked_at
        stirred = stir(events, world, policies)
        saved = {one.job for one in events if isinstance(one, e.CheckpointSaved)}
        if saved and not stirred:
            looked_at += 1
            late = [one for one in plan(world, policies).steps if isinstance(one, p.Late)]
            assert not saved & {one.job for one in late}, "told late although it has saved"
            bare = without_saves(events, world)
            assert decided(world, policies) == decided(bare, policies), events
        return stirred

    monkeypatch.setattr(controller, "stir", watched)
    assert play(drawn(seed), checks=Remembers).violation is None
    assert looked_at > 20, "in this night most saves stir somebody"


@pytest.mark.parametrize("seed", FAILS)
def test_what_is_tried_again_is_what_a_round_would_do(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = drawn(seed)
    policies, tried = chosen(night).policies, 0
    carry_out, try_again = Executor.carry_out, Controller._try_again  # pyright: ignore[reportPrivateUsage]
    is_again = False

    def watched(self: Executor, made: p.Plan, world: World, effects: Effects, epoch: int) -> None:
        nonlocal tried
        if is_again:
            tried += 1
            again = plan(world, policies).steps
            # Words and what is due at this very instant come with the next round.
            assert list(made.steps) == [one for one in again if is_effect(one, world)]
        carry_out(self, made, world, effects, epoch)

    def again(self: Controller, world: World) -> None:
        nonlocal is_again
        is_again = True
        try_again(self, world)
        is_again = False

    monkeypatch.setattr(Executor, "carry_out", watched)
    monkeypatch.setattr(Controller, "_try_again", again)
    assert play(night).violation is None
    assert tried > 20, "in this night little fails"


def is_effect(step: p.Step, world: World) -> bool:
    return not events_of(p.Plan(version=world.version, steps=(step,)), world.now)
