from dataclasses import replace

import pytest
from makers import a_job, placed

from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, Ending, Job, JobState, RetryCause, RetryRule, Wish
from cloudwhale.model.reason import Code
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.outcome import End, meaning


def running(**fields: object) -> Job:
    return placed(a_job("j", **fields)).but(state=JobState.RUNNING, started_at=0.0)


def end(how: Ending = "exited", code: int | None = 1, unsaved_s: float = 4.0) -> End:
    return End(attempt=1, how=how, exit_code=code, says="", unsaved_s=unsaved_s)


def test_zero_completes_a_job_even_when_somebody_wanted_it_stopped() -> None:
    for wish in (None, *Wish):
        event = meaning(running().but(wish=wish), end(code=0), 9.0)
        assert isinstance(event, e.Finished)


def test_a_failure_that_is_not_to_be_retried_fails_with_the_code_and_a_remedy() -> None:
    event = meaning(running(), end(code=3), 9.0)
    assert isinstance(event, e.Failed)
    assert event.exit_code == 3
    assert event.reason.code is Code.COMMAND_FAILED
    assert "logs j" in event.reason.change


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("exited", RetryCause.ERROR),
        ("oom", RetryCause.OOM),
        ("stopped", RetryCause.PREEMPTION),
        ("shim-lost", RetryCause.NODE_LOSS),
        ("restore-failed", RetryCause.NODE_LOSS),
        ("start-failed", RetryCause.NODE_LOSS),
    ],
)
def test_what_the_user_wants_retried_goes_back_to_the_queue(how: Ending, cause: RetryCause) -> None:
    rule = RetryRule(max=1, on=(cause,), backoff_s=30.0)
    job = running(retry=rule)
    event = meaning(job, end(how), 9.0)
    assert isinstance(event, e.Retried)
    assert event.not_before == 39.0
    assert event.lost_s == 4.0
    spent = meaning(job.but(retries=1), end(how), 9.0)
    assert isinstance(spent, e.Failed)
    assert spent.reason.code is Code.RETRIES_SPENT


@pytest.mark.parametrize(
    ("wish", "kind", "state"),
    [
        (Wish.CANCEL, e.Cancelled, JobState.CANCELLED),
        (Wish.PAUSE, e.Paused, JobState.PAUSED),
        (Wish.LIMIT, e.Failed, JobState.FAILED),
        (Wish.GIVE_WAY, e.GaveWay, JobState.PENDING),
    ],
)
def test_a_stopped_attempt_means_what_was_wished(
    wish: Wish, kind: type[e.OfJob], state: JobState
) -> None:
    job = running(max_duration_s=60.0).but(wish=wish)
    event = meaning(job, end("stopped", 143), 9.0)
    assert isinstance(event, kind)
    assert apply(job, event).state is state


def test_every_ending_has_a_meaning_that_the_table_knows() -> None:
    endings: tuple[Ending, ...] = (
        "exited", "stopped", "not-found", "setup-failed", "oom", "disk-full", "shim-lost",
        "restore-failed", "start-failed",
    )  # fmt: skip
    for how in endings:
        for state in (JobState.STARTING, JobState.RUNNING, JobState.RECOVERING):
            job = running().but(state=state)
            after = apply(job, meaning(job, end(how), 9.0))
            assert after.ended or after.state is JobState.PENDING


# -- machines that are taken away ------------------------------------------------------------

SAVED = Checkpoint(attempt=1, seq=1, name="c", size_bytes=1, saved_at=5.0, manifest="m")
OF_THE_MACHINE: tuple[Ending, ...] = (
    "shim-lost", "restore-failed", "start-failed", "device-lost", "no-gpus", "runtime-lost",
)  # fmt: skip


def taken(how: Ending = "stopped", code: int | None = 143) -> End:
    return replace(end(how, code), is_taken=True)


def test_who_has_saved_when_its_machine_is_taken_goes_on_at_once_however_often() -> None:
    for job in (running(), running().but(retries=3), running(retry=RetryRule(max=0))):
        event = meaning(job.but(checkpoint=SAVED), taken(), 9.0)
        assert isinstance(event, e.GaveWay) and event.lost_s == 4.0
        assert event.reason.code is Code.TAKEN_AWAY and "4 s are lost" in event.reason.says
        after = apply(job.but(checkpoint=SAVED), event)
        assert (after.state, after.retries) == (JobState.PENDING, job.retries)
        assert (after.interruptions, after.not_before) == (1, None)


def test_who_has_saved_nothing_spends_a_retry_and_waits_before_the_next() -> None:
    old = SAVED.but(attempt=0)
    for job in (running(), running().but(checkpoint=old)):
        event = meaning(job, taken(), 9.0)
        assert isinstance(event, e.Retried) and event.counts and event.not_before == 39.0
        assert event.reason.code is Code.TAKEN_AWAY and "nothing was saved" in event.reason.says
        assert apply(job, event).retries == 1
    spent = meaning(running().but(retries=3), taken(), 9.0)
    assert isinstance(spent, e.Failed) and spent.reason.code is Code.RETRIES_SPENT
    unwanted = meaning(running(retry=RetryRule(on=(RetryCause.OOM,))), taken(), 9.0)
    assert isinstance(unwanted, e.Failed)


def test_its_own_error_in_the_time_of_a_notice_counts_as_ever() -> None:
    for wish in (None, Wish.GIVE_WAY):
        job = running().but(checkpoint=SAVED, wish=wish)
        assert isinstance(meaning(job, taken("exited", 3), 9.0), e.Failed)
        assert isinstance(meaning(job, taken("exited", 0), 9.0), e.Finished)
        again = running(retry=RetryRule(on=(RetryCause.ERROR,))).but(checkpoint=SAVED, wish=wish)
        event = meaning(again, taken("exited", 3), 9.0)
        assert isinstance(event, e.Retried) and event.counts


def test_a_wish_of_somebody_stays_a_wish_when_the_machine_is_taken() -> None:
    for wish, kind in ((Wish.CANCEL, e.Cancelled), (Wish.PAUSE, e.Paused), (Wish.LIMIT, e.Failed)):
        assert isinstance(meaning(running().but(wish=wish, checkpoint=SAVED), taken(), 9.0), kind)
    assert isinstance(
        meaning(running().but(wish=Wish.GIVE_WAY, checkpoint=SAVED), taken(), 9.0), e.GaveWay
    )


@pytest.mark.parametrize("how", OF_THE_MACHINE)
def test_what_the_machine_does_costs_no_retry_where_something_was_saved(how: Ending) -> None:
    job = running().but(retries=3, checkpoint=SAVED)
    event = meaning(job, end(how, None), 9.0)
    assert isinstance(event, e.Retried) and not event.counts and event.not_before == 9.0
    after = apply(job, event)
    assert (after.retries, after.interruptions) == (3, 1)
    never = running(retry=RetryRule(max=0)).but(checkpoint=SAVED)
    assert isinstance(meaning(never, end(how, None), 9.0), e.Failed)
    brief = meaning(job, replace(end(how, None), ran_s=8.0), 9.0)
    assert isinstance(brief, e.Retried) and not brief.counts and brief.not_before == 39.0


@pytest.mark.parametrize("how", ["exited", "oom"])
def test_what_the_job_does_costs_one_whatever_it_has_saved(how: Ending) -> None:
    rule = RetryRule(max=1, on=(RetryCause.ERROR, RetryCause.OOM))
    job = running(retry=rule).but(retries=1, checkpoint=SAVED)
    assert isinstance(meaning(job, end(how), 9.0), e.Failed)
