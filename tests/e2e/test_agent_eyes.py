"""A real agent with a driver that we write: what it sees of its GPUs, and what it does about it."""

import os
from collections.abc import Callable

import pytest
from fake_gpus import FakeGpus
from live_agent import CLOCK, LiveAgent, a_start, until

from cloudwhale.mailbox.documents import AttemptEnded, Heartbeat, Joined, Noticed, StartOrder
from cloudwhale.model.node import Device, DeviceUse, Measured

A100 = Device(id="GPU-aaaa", model="A100-80GB", memory_gib=80.0, usable_gib=80.0)
STAY = "sleep 100"


@pytest.fixture
def seeing(agent: LiveAgent, fake_gpus: FakeGpus) -> LiveAgent:
    """Start the agent where it sees the GPUs."""
    agent.env |= fake_gpus.env
    agent.start()
    return agent


def sharing(job: str, gib: float | None, command: str = STAY) -> StartOrder:
    """Order a job that shares the first GPU and declares so much of its memory."""
    return a_start(job, command, devices=(A100,), share=0.5, gpu_memory_gib=gib)


def measured(agent: LiveAgent, what: str, holds: Callable[[Measured], bool]) -> Measured:
    """Wait until something is measured and told."""

    def found() -> Measured | None:
        told = [one.measured for one in agent.all_of(Heartbeat) if one.measured is not None]
        return next((one for one in reversed(told) if holds(one)), None)

    return until(found, what)


def of_first(told: Measured) -> DeviceUse:
    return told.devices["GPU-aaaa"]


def test_the_driver_tells_what_there_is_beside_what_is_declared(
    agent: LiveAgent, fake_gpus: FakeGpus
) -> None:
    fake_gpus.gpus[2].flags = "mig"
    fake_gpus.links = ((0, 1),)
    fake_gpus.write()
    agent.env |= fake_gpus.env
    agent.options = ["--device=1x L4 24GB"]
    agent.start()
    facts = agent.joined_again(1).facts
    assert [(one.id, one.model, one.declared) for one in facts.devices] == [
        ("GPU-aaaa", "A100-80GB", False), ("GPU-bbbb", "RTX4090", False),
        ("declared-0", "L4", True),
    ]  # fmt: skip
    assert facts.devices[1].memory_gib == 24.0
    assert facts.devices[1].packs_gib == pytest.approx(23.99, abs=0.01)
    assert facts.links == (("GPU-aaaa", "GPU-bbbb"),)


def test_memory_is_told_by_job_and_the_rest_is_foreign(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    for job in ("one", "two"):
        seeing.post(sharing(job, 30.0))
    pids = {job: seeing.pids(job).job for job in ("one", "two")}
    fake_gpus.gpus[0].sm_percent = 70
    fake_gpus.held = {(0, pids["one"]): 20.0, (0, pids["two"]): 10.0, (0, os.getpid()): 7.0}
    fake_gpus.write()
    told = measured(seeing, "foreign use is told at once", lambda m: of_first(m).foreign_gib == 7.0)
    assert of_first(told).jobs == {"one": 20.0, "two": 10.0}
    assert (of_first(told).used_gib, of_first(told).sm) == (37.0, 0.7)
    assert told.memory_gib is not None


def test_a_job_that_outgrows_its_share_is_stopped_within_a_second_of_being_seen(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    seeing.post(sharing("good", 30.0))
    seeing.post(sharing("grows", 30.0, f"trap '' TERM; {STAY} & wait; {STAY}"))
    pids = {job: seeing.pids(job).job for job in ("good", "grows")}
    fake_gpus.hold(0, pids["good"], 30.5)
    fake_gpus.hold(0, pids["grows"], 33.0)
    grew_at = CLOCK.steady()
    end = seeing.ended("grows")
    assert CLOCK.steady() - grew_at < 6.0, "one second to see it, one to stop it, and a busy host"
    assert end.how == "gpu-outgrown"
    assert "33.00 GiB of GPU-aaaa, and 30.00 GiB were declared" in end.says
    assert end.peaks.gpu_gib == 33.0
    assert [one.job for one in seeing.all_of(AttemptEnded)] == ["grows"], "not its neighbour"


def test_a_job_with_its_device_to_itself_may_use_all_of_it(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    seeing.post(a_start("whole", STAY, devices=(A100,)))
    fake_gpus.hold(0, seeing.pids("whole").job, 79.0)
    measured(seeing, "it is seen", lambda m: of_first(m).jobs == {"whole": 79.0})
    assert seeing.all_of(AttemptEnded) == []


def test_a_gpu_that_falls_off_the_bus_ends_its_jobs_and_is_forgotten_until_it_returns(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    save = "cd $CLOUDWHALE_CHECKPOINT_DIR; echo 1 > .d; mv .d step-1;"
    seeing.post(sharing("job", 30.0, save + STAY))
    seeing.post(a_start("other", STAY))
    seeing.pids("job"), seeing.pids("other")
    seeing.published()
    fake_gpus.gpus[0].flags = "lost"
    fake_gpus.write()
    end = seeing.ended()
    assert (end.how, "GPU-aaaa no longer answers" in end.says) == ("device-lost", True)
    left = seeing.joined_again(2)
    assert [one.id for one in left.facts.devices] == ["GPU-bbbb", "GPU-cccc"]
    assert ("other", 1) in left.attempts
    seeing.post(sharing("late", 30.0))
    assert seeing.ended("late").how == "start-failed"
    fake_gpus.gpus[0].flags = "-"
    fake_gpus.write()
    assert len(seeing.joined_again(3).facts.devices) == 3
    assert [one.says for one in seeing.all_of(Noticed)] == [
        "GPU-aaaa no longer answers", "GPU-aaaa answers again",
    ]  # fmt: skip


def test_a_driver_that_answers_nothing_sensible_judges_nobody_until_it_is_opened_again(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    seeing.post(sharing("job", 30.0))
    fake_gpus.hold(0, seeing.pids().job, 10.0)
    measured(seeing, "it is seen", lambda m: of_first(m).jobs == {"job": 10.0})
    fake_gpus.error = 999
    fake_gpus.hold(0, seeing.pids().job, 50.0)
    until(lambda: len(seeing.all_of(Noticed)) == 1, "it says that it is blind")
    beats = len(seeing.all_of(Heartbeat))
    until(lambda: len(seeing.all_of(Heartbeat)) > beats, "it goes on")
    assert seeing.all_of(AttemptEnded) == []
    assert len(seeing.all_of(Joined)) == 1, "the devices stay"
    fake_gpus.error = 0
    fake_gpus.write()
    assert seeing.ended().how == "gpu-outgrown"
    said = [one.says for one in seeing.all_of(Noticed)]
    assert len(said) == 2
    assert "cannot be seen" in said[0]
    assert said[1] == "the GPUs can be seen again"


def test_peaks_survive_the_agent_that_saw_them(seeing: LiveAgent, fake_gpus: FakeGpus) -> None:
    use = "python3 -c 'x = bytearray(90 << 20); import time; time.sleep(100)'"
    seeing.post(sharing("job", 30.0, use))
    fake_gpus.hold(0, seeing.pids().job, 20.0)
    folder = seeing.folder().path
    until(lambda: "20.0" in _text(folder / "peaks.json"), "they are kept")
    seeing.kill()
    fake_gpus.hold(0, seeing.pids().job, 1.0)
    seeing.start()
    seeing.joined_again(2)
    assert seeing.end() == 0
    peaks = seeing.ended().peaks
    assert peaks.gpu_gib == 20.0
    assert peaks.memory_gib is not None
    assert peaks.memory_gib > 80 / 1024


def test_what_a_job_uses_unseen_does_not_count_as_somebody_elses(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    seeing.post(sharing("job", 30.0))
    fake_gpus.unmeasured.add((0, seeing.pids().job))
    fake_gpus.gpus[0].used_gib = 40.0
    fake_gpus.write()
    told = measured(seeing, "it is seen", lambda m: of_first(m).used_gib == 40.0)
    assert (of_first(told).foreign_gib, of_first(told).jobs) == (0.0, {})
    assert seeing.all_of(AttemptEnded) == [], "what is not measured is not judged"


def test_an_agent_that_starts_while_the_driver_is_blind_takes_no_gpu_from_its_jobs(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    seeing.post(sharing("job", 30.0))
    seeing.pids()
    seeing.joined_again(1)
    seeing.kill()
    fake_gpus.error = 999
    fake_gpus.write()
    seeing.start()
    assert [one.id for one in seeing.joined_again(2).facts.devices] == ["GPU-aaaa"]
    until(lambda: seeing.all_of(Noticed), "it says that it is blind")
    fake_gpus.error = 0
    fake_gpus.write()
    assert len(seeing.joined_again(3).facts.devices) == 3
    assert seeing.all_of(AttemptEnded) == []


def _text(path: os.PathLike[str]) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
