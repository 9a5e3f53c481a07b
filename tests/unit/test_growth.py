"""What a job asks for after it has run out of memory."""

import pytest
from makers import a_job, placed, wants

from cloudwhale.model import event as e
from cloudwhale.model.job import Ending, GpuRequest, Job, JobState, Peaks, RetryRule, Span, Wish
from cloudwhale.model.reason import Code
from cloudwhale.planning.growth import GROWS_MOST, Grown, TooLarge, growth
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.outcome import End, meaning

NOTHING = Peaks()


def part(least: float = 8.0, most: float | None = None, models: tuple[str, ...] = ()) -> Job:
    """Make a job that shares one GPU."""
    span = Span(least=least, most=most)
    gpu = GpuRequest(count=1, share=0.5, memory_gib=span, models=models)
    return a_job("j", resources=wants(gpu=gpu))


def whole(*models: str, least: float = 0.0) -> Job:
    """Make a job with a GPU of its own."""
    gpu = GpuRequest(count=1, models=models, memory_gib=Span(least=least))
    return a_job("j", resources=wants(gpu=gpu))


def grown_gib(found: Grown | TooLarge | None) -> float:
    assert isinstance(found, Grown)
    return found.wants.gpu.memory_gib.least


@pytest.mark.parametrize(
    ("had", "used", "gets"),
    [
        (8.0, None, 10.0),  # the next size
        (8.0, 6.0, 10.0),
        (8.0, 10.0, 15.0),  # 1.5 times what was measured
        (0.5, 0.6, 1.0),
        (2.0, 2.1, 3.15),
        (24.0, 24.5, 36.75),
    ],
)
def test_a_part_of_a_gpu_grows_to_what_is_larger_of_the_next_size_and_half_as_much_again(
    had: float, used: float | None, gets: float
) -> None:
    found = growth(part(had), "gpu-outgrown", Peaks(gpu_gib=used), 80.0)
    assert grown_gib(found) == gets


def test_a_share_without_a_size_had_its_share_of_the_device() -> None:
    found = growth(part(0.0), "gpu-oom", NOTHING, 24.0)
    assert isinstance(found, Grown)
    assert found.says == "its memory per GPU grows from 12 GiB to 16 GiB"


def test_a_job_with_a_gpu_of_its_own_grows_to_the_next_gpu() -> None:
    assert grown_gib(growth(whole(), "gpu-oom", Peaks(gpu_gib=23.5), 24.0)) == 32.0
    found = growth(whole("A100-40GB", "A100-80GB"), "gpu-oom", NOTHING, 40.0)
    assert grown_gib(found) == 80.0


@pytest.mark.parametrize(
    ("job", "device_gib"),
    [
        (whole("A100-80GB"), 80.0),
        (whole(), 288.0),
        (part(8.0, most=9.0), 24.0),
        (part(20.0, models=("L4",)), 24.0),
    ],
)
def test_what_no_gpu_or_no_file_allows_is_not_asked_for(job: Job, device_gib: float) -> None:
    found = growth(job, "gpu-outgrown", Peaks(gpu_gib=21.0), device_gib)
    assert isinstance(found, TooLarge)
    assert found.change


def test_host_memory_grows_by_half_of_its_limit_or_of_what_was_measured() -> None:
    job = a_job("j", resources=wants(memory_gib=4.0))
    for used, gets in ((3.9, 6.0), (5.0, 7.5), (None, 6.0)):
        found = growth(job, "oom", Peaks(memory_gib=used), None)
        assert isinstance(found, Grown)
        assert found.wants.memory_gib == gets
    unlimited = growth(a_job("j"), "oom", Peaks(memory_gib=5.0), None)
    assert isinstance(unlimited, Grown)
    assert unlimited.wants.memory_gib == 7.5
    assert "no limit" in unlimited.says


def test_of_what_nobody_knows_nothing_grows() -> None:
    assert growth(a_job("j"), "oom", NOTHING, None) is None
    assert growth(whole(), "gpu-oom", NOTHING, None) is None
    assert growth(part(0.0), "gpu-oom", NOTHING, None) is None


# -- what that means for the job -------------------------------------------------------------


def running(job: Job) -> Job:
    return placed(job).but(state=JobState.RUNNING, started_at=0.0)


def end(
    how: Ending = "gpu-outgrown", gpu_gib: float | None = 12.0, device_gib: float = 24.0
) -> End:
    peaks = Peaks(gpu_gib=gpu_gib)
    return End(1, how, 143, "it used 12 GiB", 4.0, peaks=peaks, device_gib=device_gib)


def test_it_starts_again_at_once_whatever_its_retry_rule_is_for() -> None:
    job = running(part()).but(spec=part().spec.but(retry=RetryRule(max=1, on=())))
    event = meaning(job, end(), 9.0)
    assert isinstance(event, e.Retried)
    assert (event.not_before, event.lost_s, event.reason.code) == (9.0, 4.0, Code.GPU_OUTGROWN)
    assert event.reason.says == (
        "it used 12 GiB; its memory per GPU grows from 8 GiB to 18 GiB, growth 1 of 3"
    )
    after = apply(job, event)
    assert (after.state, after.grows, after.retries) == (JobState.PENDING, 1, 0)
    assert after.wants.gpu.memory_gib.least == 18.0
    assert after.peaks.gpu_gib == 12.0


def test_three_times_at_most_and_each_from_the_size_before() -> None:
    job, sizes = running(part(1.0)), list[float]()
    for _ in range(GROWS_MOST):
        job = running(apply(job, meaning(job, end("gpu-oom", None), 9.0)))
        sizes.append(job.wants.gpu.memory_gib.least)
    assert sizes == [2.0, 3.0, 4.0]
    event = meaning(job, end("gpu-oom", None), 9.0)
    assert isinstance(event, e.Failed)
    assert "it has grown 3 times" in event.reason.says
    assert "resources.gpu.memory" in event.reason.change


def test_a_job_that_is_never_to_be_retried_does_not_grow() -> None:
    job = running(part()).but(spec=part().spec.but(retry=RetryRule(max=0)))
    assert isinstance(meaning(job, end(), 9.0), e.Failed)


def test_one_that_cannot_grow_fails_and_says_what_to_do() -> None:
    event = meaning(running(whole("A100-80GB")), end("gpu-oom", device_gib=80.0), 9.0)
    assert isinstance(event, e.Failed)
    assert "none that it may have is larger" in event.reason.says
    assert "several GPUs" in event.reason.change


def test_a_wish_goes_before_growth() -> None:
    job = running(part()).but(wish=Wish.CANCEL)
    event = meaning(job, end(), 9.0)
    assert isinstance(event, e.Cancelled)
    assert event.peaks.gpu_gib == 12.0
