"""Clouds with mailboxes of their own: each machine is met in its own, and one that fails alone."""

from typing import TypeVar

from clouding import settles
from two_stores import Ailing, two_clouds

from cloudwhale.control.attempt_stores import AttemptStores
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import node_in
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.store import JobQuery

T = TypeVar("T")


def states(stage: Stage) -> dict[str, JobState]:
    return {job.id: job.state for job in stage.scenery.store.jobs(JobQuery())}


def happened(stage: Stage, kind: type[T]) -> list[T]:
    told = (one.event for one in stage.scenery.store.since(0, 100_000))
    return [event for event in told if isinstance(event, kind)]


def met_in(objects: Objects) -> list[str]:
    """Return the machines that were given orders in a store."""
    return [name for name in objects.folders("orders") if node_in(name).startswith("rent-")]


def is_running(stage: Stage, many: int) -> bool:
    return list(states(stage).values()).count(JobState.RUNNING) >= many


def test_each_machine_is_met_in_the_mailbox_of_its_cloud() -> None:
    stage, cloud, other = two_clouds(["middling", "middling"])
    stage.raise_controller()
    assert stage.play(lambda: is_running(stage, 2), 300)
    assert (len(met_in(cloud)), len(met_in(other))) == (1, 1)
    assert met_in(stage.scenery.objects) == []
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}
    placed = {event.placement.node: event for event in happened(stage, e.Placed)}
    stores = AttemptStores(
        stage.scenery.store, Mailboxes(stage.scenery.objects, {"other": lambda: other})
    )
    found = {stores.of(event.job, event.attempt) for event in placed.values()}
    assert found == {stage.scenery.objects, other}  # where what they have left is looked for
    stage.play(lambda: not met_in(cloud) and not met_in(other), 400)
    assert (met_in(cloud), met_in(other)) == ([], [])  # nothing is left of machines that are gone


def play_on_while_away(stage: Stage, away: Ailing, *, restarts: bool) -> None:
    """Take a store away until the job of the other cloud has ended."""
    stage.raise_controller()
    assert stage.play(lambda: is_running(stage, 2), 300)
    away.is_away = True
    if restarts:
        stage.raise_controller()
    assert stage.play(lambda: JobState.COMPLETED in states(stage).values(), 900)


def test_a_store_that_is_away_stops_nothing_on_the_other() -> None:
    stage, cloud, _ = two_clouds(["middling", "middling"])
    play_on_while_away(stage, cloud, restarts=False)
    assert sorted(states(stage).values()) == [JobState.COMPLETED, JobState.RUNNING]
    stage.play(lambda: False, 1200)
    assert happened(stage, e.AttemptLost) == []  # a store that cannot be read is no silence
    cloud.is_away = False
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}


def test_a_controller_that_begins_while_a_store_is_away_sees_to_the_other() -> None:
    stage, _, other = two_clouds(["middling", "middling"])
    play_on_while_away(stage, other, restarts=True)
    assert happened(stage, e.AttemptLost) == []
    other.is_away = False
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}


def test_whoever_waits_is_rented_for_in_the_other_cloud() -> None:
    stage, cloud, other = two_clouds(["quick"], amounts=(0, 1))
    cloud.is_away = True
    stage.raise_controller()
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}
