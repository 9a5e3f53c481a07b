"""What a job should ask for, by what attempts of its family have used."""

from typing import Any

from makers import a_device, a_job, a_node, a_world, wants

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState, Peaks, Placement, Span
from cloudwhale.model.peak import Peak
from cloudwhale.model.reason import Code, Reason
from cloudwhale.planning.sizing import (
    PEAKS_KEPT,
    gpu_measured,
    news,
    peak_of,
    size,
    sized,
    with_newest,
)

FAMILY = ("default", "j")


def a_peak(used: float | None = 8.0, **fields: Any) -> Peak:
    base: dict[str, Any] = {"job": "j", "at": 0.0, "end": "completed", "gpu": "a100-40gb"}
    known: dict[str, Any] = base | {"asked_gib": 40.0, "had_gib": 40.0, "used_gib": used} | fields
    return Peak(**known)


def asks(gib: float, **fields: Any) -> Any:
    gpu = wants(gpus=1).gpu.but(memory_gib=Span(least=gib))
    return wants(gpus=1).but(gpu=gpu, **fields)


def test_three_completed_attempts_make_a_size_with_head_room() -> None:
    found = size(asks(40.0), [a_peak(8.0), a_peak(9.0), a_peak(8.5)])
    assert found is not None
    assert found.wants.gpu.memory_gib.least == 11.0  # the next size above 10.8
    assert "instead of 40 GiB: 3 attempts have used 9 GiB at most" in found.says


def test_two_completed_attempts_are_no_evidence() -> None:
    assert size(asks(40.0), [a_peak(8.0), a_peak(9.0), a_peak(8.5, end="other")]) is None


def test_nobody_asks_for_more_than_the_file_says_without_an_oom() -> None:
    assert size(asks(8.0), [a_peak(9.5)] * 5) is None


def test_an_oom_of_the_family_raises_where_the_next_one_begins_at_once() -> None:
    outgrew = a_peak(15.9, end="outgrew", asked_gib=16.0, had_gib=16.0, grown_gib=24.0)
    found = size(asks(16.0), [outgrew])
    assert found is not None and found.wants.gpu.memory_gib.least == 24.0
    assert "ran out of memory" in found.says


def test_what_was_grown_to_bounds_the_size_from_below() -> None:
    outgrew = a_peak(16.0, end="outgrew", had_gib=16.0, grown_gib=24.0)
    found = size(asks(80.0), [outgrew, *[a_peak(5.0)] * 4])
    assert found is not None and found.wants.gpu.memory_gib.least == 24.0


def test_a_size_above_what_the_file_allows_is_left() -> None:
    outgrew = a_peak(16.0, end="outgrew", had_gib=16.0, grown_gib=24.0)
    narrow = asks(16.0)
    narrow = narrow.but(gpu=narrow.gpu.but(memory_gib=Span(least=16.0, most=20.0)))
    assert size(narrow, [outgrew]) is None


def test_memory_of_the_machine_is_sized_too_and_never_limited_anew() -> None:
    peaks = [a_peak(None, host_used_gib=3.0, host_asked_gib=32.0)] * 3
    found = size(wants(memory_gib=32.0), peaks)
    assert found is not None and found.wants.memory_gib == 4.0
    assert size(wants(), peaks) is None


def test_the_oldest_peaks_are_forgotten() -> None:
    peaks: tuple[Peak, ...] = ()
    for number in range(PEAKS_KEPT + 5):
        peaks = with_newest(peaks, a_peak(float(number)))
    assert [peak.used_gib for peak in peaks] == [float(n) for n in range(5, PEAKS_KEPT + 5)]


def test_an_attempt_that_ends_tells_what_it_used_and_had() -> None:
    node = a_node(devices=(a_device("g0", memory_gib=24.0),))
    job = a_job("j", name="j", resources=asks(16.0), state=JobState.RUNNING)
    job = job.but(placement=Placement(node=node.id, devices=("g0",)), attempt=1)
    done = e.Finished(at=9.0, job="j", attempt=1, peaks=Peaks(gpu_gib=7.0, memory_gib=2.0))
    found = peak_of(job, done, node)
    assert found is not None
    assert (found.end, found.asked_gib, found.had_gib, found.used_gib) == (
        "completed", 16.0, 24.0, 7.0,
    )  # fmt: skip
    assert peak_of(job, done.but(peaks=Peaks()), node) is None


def test_an_attempt_that_outgrew_tells_what_it_has_grown_to() -> None:
    job = a_job("j", name="j", resources=asks(16.0), state=JobState.RUNNING, attempt=1)
    reason = Reason(code=Code.GPU_OUT_OF_MEMORY, says="grows")
    more = e.Retried(
        at=9.0, job="j", attempt=1, exit_code=1, reason=reason, not_before=9.0, grown=asks(24.0)
    )
    found = peak_of(job, more, None)
    assert found is not None and (found.end, found.grown_gib) == ("outgrew", 24.0)
    assert gpu_measured([found]).grown_gib == 24.0


def test_only_jobs_that_wait_and_want_it_are_sized_and_told_why() -> None:
    jobs = [
        a_job("j", name="j", resources=asks(40.0), auto_size=True),
        a_job("no", name="j", resources=asks(40.0), auto_size=False),
        a_job("unsaid", name="j", resources=asks(40.0)),
        a_job("grown", name="j", resources=asks(40.0), auto_size=True).but(grown=asks(80.0)),
        a_job("runs", name="j", auto_size=True, state=JobState.RUNNING),
    ]
    world = a_world(jobs=jobs, peaks={FAMILY: (a_peak(8.0),) * 3})
    [told] = list(news(world, is_usual=False))
    assert told.job == "j" and told.reason.code is Code.SIZED
    assert {one.job for one in news(world, is_usual=True)} == {"j", "unsaid"}
    after = sized(world, is_usual=False)
    assert after.jobs["j"].wants.gpu.memory_gib.least == 10.0
    assert list(news(after, is_usual=False)) == []
