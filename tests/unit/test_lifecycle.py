"""The tables of states: every edge is taken, every state reached, every wish kept or outlived."""

from collections.abc import Callable, Mapping
from itertools import permutations

import pytest
from makers import a_job
from stories import HERE, WHY, rented

from cloudwhale.model import event as e
from cloudwhale.model.job import ENDED, HOLDS_A_PLACE, Checkpoint, Job, JobState, MemberEnd, Wish
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import RentalState
from cloudwhale.planning.lifecycle import RENTAL_TRANSITIONS, TRANSITIONS, apply, moved
from cloudwhale.spi.errors import IllegalTransition

LIVE, HOLDING = [state for state in JobState if state not in ENDED], sorted(HOLDS_A_PLACE)
NOW, WELL = 100.0, MemberEnd(how="exited", exit_code=0, at=100.0)


def a_checkpoint(attempt: int, seq: int = 1) -> Checkpoint:
    return Checkpoint(
        attempt=attempt, seq=seq, name=f"step-{seq}", size_bytes=1, saved_at=NOW, manifest="m"
    )


def job_in(state: JobState, **fields: object) -> Job:
    """Make a job in a state, at attempt 2, with a place when the state has one."""
    has_place = state in HOLDS_A_PLACE
    known = {"attempt": 2, "placement": HERE if has_place else None}
    return a_job("j", state=state, **{**known, **fields})


EVENTS: Mapping[type[e.OfJob], Callable[[int], e.OfJob]] = {
    e.CancelAsked: lambda _: e.CancelAsked(at=NOW, job="j"),
    e.PauseAsked: lambda _: e.PauseAsked(at=NOW, job="j"),
    e.ResumeAsked: lambda _: e.ResumeAsked(at=NOW, job="j"),
    e.Placed: lambda n: e.Placed(at=NOW, job="j", attempt=n + 1, placement=HERE, reason=WHY),
    e.Waits: lambda _: e.Waits(at=NOW, job="j", reason=WHY),
    e.Held: lambda _: e.Held(at=NOW, job="j", until=NOW + 60.0, reason=WHY),
    e.Sized: lambda _: e.Sized(at=NOW, job="j", wants=a_job("j").wants, reason=WHY),
    e.Parked: lambda _: e.Parked(at=NOW, job="j", reason=WHY),
    e.GaveUp: lambda _: e.GaveUp(at=NOW, job="j", reason=WHY),
    e.StopWished: lambda n: e.StopWished(at=NOW, job="j", attempt=n, wish="limit", reason=WHY),
    e.CheckpointLate: lambda n: e.CheckpointLate(at=NOW, job="j", attempt=n, reason=WHY),
    e.DeadlineMissed: lambda n: e.DeadlineMissed(at=NOW, job="j", reason=WHY),
    e.AttemptLost: lambda n: e.AttemptLost(at=NOW, job="j", attempt=n, reason=WHY),
    e.Cleared: lambda n: e.Cleared(at=NOW, job="j", attempt=n, lost_s=3.0),
    e.OrderPosted: lambda n: e.OrderPosted(at=NOW, job="j", attempt=n, number=1),
    e.StopPosted: lambda n: e.StopPosted(at=NOW, job="j", attempt=n, number=1),
    e.Unconfirmed: lambda n: e.Unconfirmed(at=NOW, job="j", attempt=n),
    e.Started: lambda n: e.Started(at=NOW, job="j", attempt=n),
    e.CheckpointSaved: lambda n: e.CheckpointSaved(
        at=NOW, job="j", attempt=n, checkpoint=a_checkpoint(n)
    ),
    e.MemberStarted: lambda n: e.MemberStarted(at=NOW, job="j", attempt=n, rank=1),
    e.MemberEnded: lambda n: e.MemberEnded(at=NOW, job="j", attempt=n, rank=1, end=WELL),
    e.SavesForgotten: lambda n: e.SavesForgotten(at=NOW, job="j", attempt=n, manifests=("m",)),
    e.Finished: lambda n: e.Finished(at=NOW, job="j", attempt=n),
    e.Failed: lambda n: e.Failed(at=NOW, job="j", attempt=n, exit_code=1, reason=WHY),
    e.Retried: lambda n: e.Retried(
        at=NOW, job="j", attempt=n, exit_code=1, reason=WHY, not_before=NOW + 30, lost_s=3.0
    ),
    e.Cancelled: lambda _: e.Cancelled(at=NOW, job="j", reason=WHY),
    e.Paused: lambda _: e.Paused(at=NOW, job="j", reason=WHY),
    e.GaveWay: lambda n: e.GaveWay(at=NOW, job="j", attempt=n, reason=WHY, lost_s=3.0),
}
"""An event of every kind, for the newest attempt of a job."""

OF_ATTEMPT = [kind for kind in EVENTS if issubclass(kind, e.OfAttempt)]


def met(job: Job, *kinds: type[e.OfJob]) -> Job:
    """Return a job after events of these kinds."""
    for kind in kinds:
        job = apply(job, EVENTS[kind](job.attempt))
    return job


def reached_from(starts: set[JobState]) -> set[JobState]:
    """Return every state that can be reached from some states."""
    found, size = set(starts), 0
    while len(found) > size:
        size = len(found)
        found |= {target for (source, _), target in TRANSITIONS.items() if source in found}
    return found


# -- the table -------------------------------------------------------------------------------


def test_every_state_is_reachable() -> None:
    assert reached_from({JobState.PENDING}) == set(JobState)


@pytest.mark.parametrize("state", LIVE)
def test_every_live_state_reaches_an_end(state: JobState) -> None:
    assert reached_from({state}) & ENDED


def test_every_kind_of_job_event_is_on_an_edge() -> None:
    assert {kind for _, kind in TRANSITIONS} == set(EVENTS)


@pytest.mark.parametrize(
    ("state", "kind"), TRANSITIONS, ids=lambda part: getattr(part, "__name__", part)
)
def test_every_edge_leads_where_the_table_says(state: JobState, kind: type[e.OfJob]) -> None:
    assert met(job_in(state), kind).state is TRANSITIONS[state, kind]


LACKING = [
    (state, kind)
    for state in LIVE
    for kind in EVENTS
    if (state, kind) not in TRANSITIONS
    and (kind is e.Placed or kind not in OF_ATTEMPT or state in HOLDS_A_PLACE)
]


@pytest.mark.parametrize(
    ("state", "kind"), LACKING, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_pair_that_the_table_lacks_is_a_bug(state: JobState, kind: type[e.OfJob]) -> None:
    with pytest.raises(IllegalTransition, match=f"job j is {state} .attempt 2. .*{kind.__name__}"):
        met(job_in(state), kind)


def test_a_job_that_may_still_run_is_never_placed_again() -> None:
    for state in HOLDING:
        with pytest.raises(IllegalTransition):
            met(job_in(state), e.Placed)


@pytest.mark.parametrize("state", sorted(ENDED))
def test_an_ended_job_swallows_whatever_is_said_of_it_late(state: JobState) -> None:
    job = job_in(state)
    assert all(met(job, kind) is job for kind in EVENTS)


@pytest.mark.parametrize("state", LIVE)
def test_what_is_said_of_an_older_attempt_changes_nothing(state: JobState) -> None:
    job = job_in(state)
    assert all(apply(job, EVENTS[kind](1)) is job for kind in OF_ATTEMPT if kind is not e.Placed)


@pytest.mark.parametrize("attempt", [1, 2, 4])
def test_a_place_for_another_attempt_than_the_next_changes_nothing(attempt: int) -> None:
    job = job_in(JobState.PENDING)
    assert apply(job, EVENTS[e.Placed](attempt - 1)) is job


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.PAUSED, JobState.PARKED])
def test_an_attempt_that_is_over_changes_nothing(state: JobState) -> None:
    job = job_in(state)
    assert all(met(job, kind) is job for kind in OF_ATTEMPT if kind is not e.Placed)


# -- wishes ----------------------------------------------------------------------------------

ASKED = (e.CancelAsked, e.PauseAsked, e.ResumeAsked)


@pytest.mark.parametrize("state", [JobState.PENDING, *HOLDING])
@pytest.mark.parametrize("stop_posted", [False, True])
@pytest.mark.parametrize("order", list(permutations(ASKED)))
def test_a_cancel_is_final_in_whatever_order_it_was_asked(
    state: JobState, stop_posted: bool, order: tuple[type[e.OfJob], ...]
) -> None:
    assert met(job_in(state, stop_posted=stop_posted), *order).wish is Wish.CANCEL


@pytest.mark.parametrize("state", [JobState.PENDING, *HOLDING])
def test_a_pause_is_taken_back_while_nobody_has_heard_of_it(state: JobState) -> None:
    assert met(job_in(state), e.PauseAsked, e.ResumeAsked).wish is None


@pytest.mark.parametrize("state", [JobState.PENDING, *HOLDING])
def test_the_last_of_pause_and_resume_holds(state: JobState) -> None:
    assert met(job_in(state), e.ResumeAsked, e.PauseAsked).wish is Wish.PAUSE


@pytest.mark.parametrize("state", HOLDING)
def test_a_pause_taken_back_after_its_stop_order_is_a_stop_and_a_start(state: JobState) -> None:
    job = met(job_in(state), e.PauseAsked, e.StopPosted, e.ResumeAsked)
    assert job.wish is Wish.GIVE_WAY
    assert met(job, e.PauseAsked).wish is Wish.PAUSE


@pytest.mark.parametrize("state", HOLDING)
def test_a_pause_taken_back_while_its_stop_order_goes_out_is_a_stop_and_a_start(
    state: JobState,
) -> None:
    assert met(job_in(state), e.PauseAsked, e.ResumeAsked, e.StopPosted).wish is Wish.GIVE_WAY


def test_an_old_stop_order_does_not_stop_a_job_that_is_queued_again() -> None:
    job = job_in(JobState.PENDING, stop_posted=True)
    assert met(job, e.PauseAsked, e.ResumeAsked).wish is None


def test_a_new_attempt_has_no_stop_order() -> None:
    job = met(job_in(JobState.PENDING, stop_posted=True, order_posted=True), e.Placed)
    assert (job.stop_posted, job.order_posted) == (False, False)


@pytest.mark.parametrize(
    ("wish", "kind", "then"),
    [
        (Wish.GIVE_WAY, e.PauseAsked, Wish.PAUSE),
        (Wish.LIMIT, e.PauseAsked, Wish.LIMIT),
        (Wish.LIMIT, e.ResumeAsked, Wish.LIMIT),
        (Wish.GIVE_WAY, e.ResumeAsked, Wish.GIVE_WAY),
        (Wish.LIMIT, e.CancelAsked, Wish.CANCEL),
        (Wish.GIVE_WAY, e.CancelAsked, Wish.CANCEL),
        (Wish.PAUSE, e.StopWished, Wish.PAUSE),
        (Wish.CANCEL, e.StopWished, Wish.CANCEL),
        (None, e.StopWished, Wish.LIMIT),
    ],
)
def test_the_stronger_wish_holds(wish: Wish | None, kind: type[e.OfJob], then: Wish) -> None:
    assert met(job_in(JobState.RUNNING, wish=wish), kind).wish is then


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.PARKED])
def test_a_job_that_does_not_run_has_nothing_to_pause(state: JobState) -> None:
    assert met(job_in(state), e.PauseAsked).wish is None
    assert met(job_in(state), e.PauseAsked, e.ResumeAsked).state is JobState.PENDING


@pytest.mark.parametrize("state", [JobState.PAUSED, JobState.PARKED])
def test_a_cancel_outlives_a_resume(state: JobState) -> None:
    job = met(job_in(state), e.CancelAsked, e.ResumeAsked)
    assert (job.state, job.wish) == (JobState.PENDING, Wish.CANCEL)


@pytest.mark.parametrize("state", HOLDING)
@pytest.mark.parametrize("kind", [e.Retried, e.GaveWay])
@pytest.mark.parametrize("wish", [Wish.CANCEL, Wish.PAUSE])
def test_a_persons_wish_outlives_the_end_that_it_crossed(
    state: JobState, kind: type[e.OfJob], wish: Wish
) -> None:
    assert met(job_in(state, wish=wish), kind).wish is wish


@pytest.mark.parametrize("wish", [Wish.CANCEL, Wish.PAUSE])
def test_a_persons_wish_outlives_the_loss_of_a_node(wish: Wish) -> None:
    assert met(job_in(JobState.RUNNING, wish=wish), e.AttemptLost, e.Cleared).wish is wish


@pytest.mark.parametrize("wish", [Wish.LIMIT, Wish.GIVE_WAY])
def test_the_planners_wish_ends_with_the_attempt(wish: Wish) -> None:
    assert met(job_in(JobState.RUNNING, wish=wish), e.Retried).wish is None
    assert met(job_in(JobState.RUNNING, wish=wish), e.AttemptLost, e.Cleared).wish is None


@pytest.mark.parametrize("kind", [e.Paused, e.Parked])
def test_a_cancel_outlives_being_set_aside(kind: type[e.OfJob]) -> None:
    assert met(job_in(JobState.PENDING, wish=Wish.CANCEL), kind).wish is Wish.CANCEL
    assert met(job_in(JobState.PENDING, wish=Wish.PAUSE), kind).wish is None


@pytest.mark.parametrize("kind", [e.Finished, e.Failed, e.Cancelled])
def test_an_ended_job_has_no_wish(kind: type[e.OfJob]) -> None:
    assert met(job_in(JobState.RUNNING, wish=Wish.CANCEL), kind).wish is None


# -- what is kept of an attempt --------------------------------------------------------------


def test_run_time_is_summed_over_attempts() -> None:
    job = job_in(JobState.RUNNING, started_at=NOW - 40, run_s=5.0)
    assert met(job, e.Retried).run_s == 45.0


def test_a_clock_that_went_back_takes_no_run_time_away() -> None:
    assert met(job_in(JobState.RUNNING, started_at=NOW + 40, run_s=5.0), e.Retried).run_s == 5.0


@pytest.mark.parametrize("kind", [e.Retried, e.GaveWay])
def test_an_interruption_and_its_lost_work_are_counted(kind: type[e.OfJob]) -> None:
    job = met(job_in(JobState.RUNNING, lost_s=1.0), kind)
    assert (job.interruptions, job.lost_s, job.placement, job.started_at) == (1, 4.0, None, None)


@pytest.mark.parametrize("kind", [e.Retried, e.Cleared])
def test_a_start_again_uses_up_a_retry_and_giving_way_does_not(kind: type[e.OfJob]) -> None:
    assert met(job_in(JobState.RECOVERING), kind).retries == 1
    assert met(job_in(JobState.RUNNING), e.GaveWay).retries == 0


def test_a_doubted_order_is_to_be_posted_again_and_so_is_its_stop() -> None:
    job = met(job_in(JobState.RUNNING), e.OrderPosted, e.PauseAsked, e.StopPosted, e.Unconfirmed)
    assert (job.order_posted, job.stop_posted, job.wish) == (False, False, Wish.PAUSE)


def test_an_end_that_is_read_an_hour_late_counts_as_long_as_it_ran() -> None:
    running = job_in(JobState.RUNNING).but(started_at=NOW - 3600.0)
    late = e.Finished(at=NOW, job="j", attempt=running.attempt, ran_s=10.0)
    done = apply(running, late)
    assert (done.run_s, done.ended_at) == (10.0, NOW - 3590.0)
    untold = apply(running, e.Finished(at=NOW, job="j", attempt=running.attempt))
    assert (untold.run_s, untold.ended_at) == (3600.0, NOW)


def test_a_retry_waits_until_its_time_and_a_place_ends_the_wait() -> None:
    job = met(job_in(JobState.RUNNING), e.Retried)
    assert job.not_before == NOW + 30
    assert met(job, e.Placed).not_before is None


def test_a_finished_job_says_so_with_its_code() -> None:
    job = met(job_in(JobState.RUNNING, exit_code=None), e.Finished)
    assert (job.exit_code, job.ended_at) == (0, NOW)
    assert job.reason == Reason(code=Code.FINISHED, says="its process ended with 0")


def test_an_ended_job_still_says_where_it_ran() -> None:
    assert met(job_in(JobState.RUNNING), e.Failed).placement == HERE


def test_an_adopted_attempt_keeps_the_time_it_began() -> None:
    job = job_in(JobState.RUNNING, started_at=7.0, first_started_at=3.0)
    again = met(job, e.AttemptLost, e.Started)
    assert (again.started_at, again.first_started_at) == (7.0, 3.0)


def test_a_started_attempt_has_its_order_whatever_was_noted() -> None:
    assert met(job_in(JobState.STARTING), e.Started).order_posted


def test_the_newest_checkpoint_is_the_one_to_resume_from() -> None:
    job = job_in(JobState.RUNNING).but(checkpoint=a_checkpoint(2, seq=5))
    assert met(job, e.CheckpointSaved).checkpoint == a_checkpoint(2, seq=5)
    assert met(job.but(checkpoint=a_checkpoint(1, seq=5)), e.CheckpointSaved).checkpoint == (
        a_checkpoint(2, seq=1)
    )


def test_a_late_checkpoint_is_said_once_until_one_is_saved() -> None:
    late = met(job_in(JobState.RUNNING), e.CheckpointLate)
    assert late.late_said
    assert not met(late, e.CheckpointSaved).late_said
    assert not met(late, e.Retried, e.Placed).late_said


# -- rentals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("old", RentalState)
@pytest.mark.parametrize("new", RentalState)
def test_a_rental_moves_along_the_table_or_stays(old: RentalState, new: RentalState) -> None:
    before, after = rented(old).rental, rented(new).rental
    if new is old or new in RENTAL_TRANSITIONS[old]:
        assert moved(before, after) == after
    else:
        with pytest.raises(IllegalTransition, match=f"rental m is {old} and cannot become {new}"):
            moved(before, after)


@pytest.mark.parametrize("new", RentalState)
def test_a_rental_begins_with_its_reservation(new: RentalState) -> None:
    if new is RentalState.RESERVED:
        assert moved(None, rented(new).rental).state is new
    else:
        with pytest.raises(IllegalTransition, match="not known yet"):
            moved(None, rented(new).rental)


@pytest.mark.parametrize("state", RentalState)
def test_every_rental_can_be_returned_in_the_end(state: RentalState) -> None:
    found, size = {state}, 0
    while len(found) > size:
        size = len(found)
        found |= {target for source in found for target in RENTAL_TRANSITIONS[source]}
    assert RentalState.RETURNED in found


def test_a_job_on_a_machine_that_was_not_heard_any_more_has_run_as_long_as_it_was_heard() -> None:
    recovering = job_in(JobState.RECOVERING).but(started_at=NOW - 600.0, checkpoint=None)
    cleared = e.Cleared(at=NOW, job="j", attempt=recovering.attempt, lost_s=8.0)
    assert apply(recovering, cleared).run_s == 8.0
    saved = recovering.but(checkpoint=a_checkpoint(2).but(saved_at=NOW - 560.0))
    assert apply(saved, cleared).run_s == 48.0
    before = recovering.but(checkpoint=a_checkpoint(1).but(saved_at=NOW - 900.0))
    assert apply(before, cleared).run_s == 8.0


@pytest.mark.parametrize(("pace", "kept_s"), [(0.25, 20.0), (1.0, 80.0), (2.0, 160.0)])
def test_what_an_attempt_keeps_is_counted_by_how_fast_its_place_is(
    pace: float, kept_s: float
) -> None:
    job = job_in(JobState.PENDING).but(attempt=0, placement=None, started_at=None)
    placed = e.Placed(at=0.0, job="j", attempt=1, placement=HERE, reason=WHY, pace=pace)
    started = e.Started(at=0.0, job="j", attempt=1)
    ended = e.GaveWay(at=100.0, job="j", attempt=1, reason=WHY, lost_s=20.0)
    for event in (placed, started, ended):
        job = apply(job, event)
    assert job.kept_s == pytest.approx(kept_s)
    assert (job.run_s, job.lost_s) == (100.0, 20.0)
