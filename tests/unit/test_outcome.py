import pytest
from makers import a_job, placed

from cloudwhale.model import event as e
from cloudwhale.model.job import Ending, Job, JobState, RetryCause, RetryRule, Wish
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
