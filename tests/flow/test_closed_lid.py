"""The lid is closed: the controller is silent for hours, and machines do all by themselves."""

from clouding import a_cloudy_stage, account_of, an_offer, cloud_of, is_settled, rentals_of
from staging import Fuse, MortalEffects, jobs_of, nothing_ran_twice, pass_by

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.terms import WATCHED_S
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage

HOURS = 8 * 3600.0


def running(*names: str, duration_s: float) -> Stage:
    """Play until all jobs run on rented machines."""
    shelves = [Shelf(an_offer())]
    stage = a_cloudy_stage(names, shelves, budget="50", duration_s=duration_s)
    stage.raise_controller(MortalEffects(Fuse(None)))
    all_run = {JobState.RUNNING}
    assert stage.play(lambda: {job.state for job in jobs_of(stage).values()} == all_run, 200.0)
    pass_by(stage, 10.0)
    return stage


def close(stage: Stage, for_s: float = HOURS) -> float:
    """Close the lid for so long; return what was set aside or spent before."""
    stage.controller = None
    account = account_of(stage)
    end = stage.scenery.clock.now() + for_s
    while stage.scenery.clock.now() < end:
        cloud_of(stage).step(stage.machine_time)
        stage.scenery.clock.advance_to(min(end, stage.scenery.clock.now() + 5.0))
    return account.reserved + account.spent


def is_paid_within(stage: Stage, set_aside: float) -> None:
    """Check that the ledger has no less than was billed, and no more than was set aside.

    A cloud forgets a machine an hour after its end. Then nobody can say when that was, and its
    whole lease is paid for: the most that it can have cost.
    """
    account = account_of(stage)
    assert account.reserved == 0
    assert cloud_of(stage).bill() <= account.spent <= set_aside


def losses(stage: Stage) -> list[e.Event]:
    """Return what was judged lost."""
    told = stage.scenery.store.since(0, 100_000)
    return [one.event for one in told if isinstance(one.event, e.AttemptLost | e.Cleared)]


def test_jobs_that_end_in_time_are_done_when_the_lid_opens_and_nothing_was_lost() -> None:
    stage = running("middling", "middling", duration_s=500.0)
    set_aside = close(stage)
    assert cloud_of(stage).running == 0, "they have ended themselves"
    assert cloud_of(stage).bill() <= set_aside
    stage.raise_controller()
    assert stage.play(lambda: is_settled(stage), 600.0)
    jobs = jobs_of(stage).values()
    assert [(job.state, job.attempt, job.retries) for job in jobs] == [
        (JobState.COMPLETED, 1, 0)
    ] * 2
    assert losses(stage) == []
    nothing_ran_twice(stage)
    is_paid_within(stage, set_aside)


def test_a_machine_with_nothing_left_to_do_waits_a_quarter_of_an_hour_for_its_controller() -> None:
    stage = running("middling", duration_s=1500.0)
    close(stage)
    (machine,) = cloud_of(stage).hired.values()
    assert machine.ended_at is not None
    ran_s = machine.ended_at - machine.launched_at
    assert ran_s <= 20.0 + WATCHED_S + 60.0, "it does not wait for the end of its lease"


def test_a_job_that_is_too_long_lands_at_a_checkpoint_and_goes_on_when_the_lid_opens() -> None:
    stage = running("long", duration_s=300.0)
    (before,) = rentals_of(stage).values()
    set_aside = close(stage)
    cloud = cloud_of(stage)
    (machine,) = cloud.hired.values()
    assert machine.ended_at is not None and machine.ended_at <= before[-1].lease.away_until + 1.0
    assert cloud.bill() <= set_aside
    stage.raise_controller()
    assert stage.play(lambda: is_settled(stage), 6000.0)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt, job.retries, job.interruptions) == (JobState.COMPLETED, 2, 0, 1)
    assert job.lost_s <= cloud.habits.physics.stop_s
    assert losses(stage) == []
    assert account_of(stage).reserved == 0 and cloud.running == 0


def test_on_waking_everything_is_read_before_anything_is_judged() -> None:
    stage = running("endless", duration_s=4 * 3600.0)
    close(stage, 3600.0)
    stage.raise_controller()
    pass_by(stage, 60.0)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.RUNNING, 1), "an hour of silence was ours"
    assert losses(stage) == []
    rentals = stage.scenery.store.world(stage.scenery.clock.now()).rentals.values()
    (rental,) = rentals
    assert rental.state is RentalState.READY and rental.told is not None
    assert rental.told.watched_until > stage.scenery.clock.now(), "its agent was told anew"
    tenure = cloud_of(stage).hired[rental.id].machine.disk.tenure
    assert tenure is not None and tenure.watched_until > stage.scenery.clock.now()
