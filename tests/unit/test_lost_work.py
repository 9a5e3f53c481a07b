"""What is lost with a machine that ends without a word: all that ran since the last checkpoint."""

from dataclasses import replace

import pytest
from keeping_world import DRAINING, LOST, NAME, RUNNING, checked, world

from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, JobState
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import Sighting

WHY = Reason(code=Code.MACHINE_GONE, says="it is gone")
RECOVERING = RUNNING.but(state=JobState.RECOVERING, reason=WHY)
SAVED = Checkpoint(attempt=1, seq=1, name="c", size_bytes=1, saved_at=80.0, manifest="m")


@pytest.mark.parametrize(
    ("ended_at", "saved", "lost_s"),
    [
        (95.0, None, 75.0),  # it began at 20, and was heard last at 30
        (95.0, SAVED, 15.0),
        (60.0, SAVED, 0.0),  # whole seconds of a provider may lie before a checkpoint
        (25.0, None, 10.0),  # it was heard after that
        (500.0, None, 80.0),  # a provider whose clock is ahead
    ],
)
def test_it_ran_until_its_machine_ended_though_it_was_heard_before(
    ended_at: float, saved: Checkpoint | None, lost_s: float
) -> None:
    job = RECOVERING.but(checkpoint=saved)
    of = world(LOST.but(ended_at=ended_at), job, node=NodeState.LOST)
    heard = {**of.sightings, NAME: Sighting(node=NAME, heard_at=30.0)}
    made = checked(replace(of, sightings=heard))
    (clear,) = [step for step in made.steps if isinstance(step, p.Clear)]
    assert clear.lost_s == lost_s


def test_of_a_machine_that_was_to_go_nothing_ran_longer_than_it_was_told_to_stay() -> None:
    """A controller that was away counts all silence from when it is back."""
    going = DRAINING.but(interrupted_at=30.0, goes_at=60.0)
    of = world(going, RECOVERING, now=5000.0, node=NodeState.LOST)
    heard = {**of.sightings, NAME: Sighting(node=NAME, heard_at=1000.0)}
    made = checked(replace(of, sightings=heard))
    (clear,) = [step for step in made.steps if isinstance(step, p.Clear)]
    assert clear.lost_s == 40.0  # it began at 20
