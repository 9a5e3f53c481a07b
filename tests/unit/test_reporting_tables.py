"""Why a job is where it is, in one sentence; what is asked for and used, in words."""

from typing import Any

import pytest
from makers import a_job, placed, wants

from cloudwhale.model.job import Checkpoint, GpuRequest, Job, JobState, Peaks, Span, Wish
from cloudwhale.model.reason import Code, Reason
from cloudwhale.reporting.amounts import peaks_words, wants_words
from cloudwhale.reporting.tables import why

SAVED = Checkpoint(attempt=1, seq=1, name="step-40", size_bytes=1, saved_at=5.0, manifest="m")
GAVE_WAY = Reason(code=Code.PREEMPTED, says="gave way", change="room for it becomes free")
NO_ROOM = Reason(code=Code.NO_ROOM_NOW, says="the freest GPU has 0.2")


def a_victim(**fields: Any) -> Job:
    """Make a job that was stopped once for another one and waits."""
    spent = {"attempt": 1, "interruptions": 1, "checkpoint": SAVED, "reason": GAVE_WAY}
    return a_job().but(**{**spent, **fields})


def test_a_job_that_gave_way_says_so_and_where_it_goes_on() -> None:
    assert why(a_victim(), 10.0) == "gave way, goes on from step-40"


def test_it_says_so_still_when_the_reason_why_it_waits_has_changed() -> None:
    said = why(a_victim(reason=NO_ROOM), 10.0)
    assert said == "gave way, goes on from step-40; the freest GPU has 0.2"


def test_a_job_that_gave_way_without_a_checkpoint_starts_over() -> None:
    said = why(a_victim(checkpoint=None, interruptions=2), 10.0)
    assert said == "gave way 2 times, starts over"


def test_a_retry_is_not_taken_for_giving_way() -> None:
    assert why(a_victim(retries=1, reason=NO_ROOM), 10.0) == NO_ROOM.says


@pytest.mark.parametrize(
    ("wish", "says"),
    [(Wish.GIVE_WAY, "gives way: "), (Wish.CANCEL, "is being cancelled: ")],
)
def test_a_running_job_that_is_to_stop_says_why(wish: Wish, says: str) -> None:
    job = placed(a_job()).but(state=JobState.RUNNING, wish=wish, reason=NO_ROOM)
    assert why(job, 10.0) == says + NO_ROOM.says


def test_what_is_asked_for_is_said_in_words() -> None:
    gpu = GpuRequest(count=1, share=0.5, memory_gib=Span(least=12.0))
    said = wants_words(wants(cpu=2.0, gpu=gpu, memory_gib=8.0, disk_gib=50.0))
    assert (
        said == "1 GPU, 50 % of it, 12 GiB of GPU memory, 2 CPUs, 8 GiB of memory, 50 GiB of disk"
    )


def test_what_nobody_measured_is_left_out() -> None:
    assert peaks_words(Peaks(sm=0.9, memory_gib=0.0125)) == (
        "its GPU 90 % of the time, 0.013 GiB of memory"
    )
    assert peaks_words(Peaks(cpu=0.0001)) == "next to nothing"


def test_a_job_whose_machine_was_taken_was_interrupted_and_gave_way_to_nobody() -> None:
    taken = Reason(code=Code.TAKEN_AWAY, says="its machine is taken away")
    job = a_job("j").but(attempt=1, interruptions=1, reason=taken)
    assert why(job, 10.0) == "was interrupted, starts over; its machine is taken away"
    other = job.but(reason=Reason(code=Code.PREEMPTED, says="gave way"))
    assert why(other, 10.0) == "gave way, starts over"
