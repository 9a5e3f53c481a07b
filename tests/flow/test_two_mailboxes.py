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
    stage, cloud, _ = two_clouds(["quick"], amounts=(0, 1))
    cloud.is_away = True
    stage.raise_controller()
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}


# -- jobs that move --------------------------------------------------------------------------


def taken_away(stage: Stage) -> None:
    """Let the first cloud take its machine once its job has saved."""
    stage.raise_controller()
    saved = lambda: bool(happened(stage, e.CheckpointSaved))  # noqa: E731
    assert stage.play(saved, 400)
    (hired,) = stage.scenery.clouds["cloud"].hired.values()
    hired.taken_at = stage.machine_time


def test_a_job_that_moves_to_another_cloud_finds_its_checkpoint_there() -> None:
    stage, _, _ = two_clouds(["middling"], dry_after_s=40.0)
    taken_away(stage)
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}
    (event,) = happened(stage, e.Brought)
    assert (event.left.provider, event.left.region) == ("cloud", "cloud-r")
    assert event.size_bytes > 0
    resumed = [one.resumed_from for one in happened(stage, e.Started)]
    assert resumed[0] is None and resumed[1] is not None
    notes = [one.reason.says for one in happened(stage, e.Noted)]
    assert any("is brought from cloud" in says for says in notes)


def test_a_checkpoint_whose_store_is_away_is_waited_for() -> None:
    stage, cloud, _ = two_clouds(["middling"], dry_after_s=40.0)
    taken_away(stage)
    placed = lambda: len(happened(stage, e.Placed)) > 1  # noqa: E731
    assert stage.play(lambda: bool(happened(stage, e.AttemptLost)), 200)
    cloud.is_away = True
    assert stage.play(placed, 400)
    stage.play(lambda: False, 60)
    assert len(happened(stage, e.Started)) == 1
    cloud.is_away = False
    assert settles(stage)
    assert set(states(stage).values()) == {JobState.COMPLETED}
    assert len(happened(stage, e.Brought)) == 1


def test_a_job_that_was_cancelled_while_its_checkpoint_came_never_starts() -> None:
    stage, cloud, _ = two_clouds(["middling"], dry_after_s=40.0)
    taken_away(stage)
    assert stage.play(lambda: bool(happened(stage, e.AttemptLost)), 200)
    cloud.is_away = True
    assert stage.play(lambda: len(happened(stage, e.Placed)) > 1, 400)
    (job,) = states(stage)
    now = stage.scenery.clock.now()
    stage.scenery.store.append([e.CancelAsked(at=now, job=job)])
    stage.play(lambda: False, 30)
    cloud.is_away = False
    assert settles(stage)
    assert states(stage) == {job: JobState.CANCELLED}
    assert len(happened(stage, e.Started)) == 1
