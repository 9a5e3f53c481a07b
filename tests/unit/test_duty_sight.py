"""An agent's duty towards what it sees of its machine: told, remembered, and stopped in time."""

from typing import Any

from orders import FACTS, KEY, Told, an_exit, of, posted, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Action, Close, KeepPeaks, KeepStop, Kill, Signal
from cloudwhale.agent.course import KEEP_PEAKS_EVERY_S
from cloudwhale.agent.duty import HEARTBEAT_S, wakes_at
from cloudwhale.agent.guard import GRACE_S, may_use_gib
from cloudwhale.agent.seen import Used, Using
from cloudwhale.mailbox.documents import AttemptEnded, Heartbeat, Joined, Noticed
from cloudwhale.model.job import Peaks
from cloudwhale.model.node import Device, DeviceUse, Measured

GPU = Device(id="GPU-a", model="L4", memory_gib=24.0)
OTHER = Device(id="GPU-b", model="L4", memory_gib=24.0)
SHARES: dict[str, Any] = {"devices": (GPU,), "gpu_memory_gib": 8.0}


def used(gib: float = 0.0, foreign_gib: float = 0.0, **peaks: float) -> Used:
    """Make the news of what the job and others use of the GPU."""
    use = DeviceUse(used_gib=gib + foreign_gib, foreign_gib=foreign_gib, jobs={"job": gib})
    using = Using(Peaks(gpu_gib=gib, **peaks), {"GPU-a": gib})
    return Used(Measured(devices={"GPU-a": use}), {KEY: using})


def sharing() -> Told:
    """Give an agent that runs a job with 8 GiB of a GPU."""
    agent = Told(seen.Woke(FACTS.but(devices=(GPU, OTHER)), "key"), start(**SHARES))
    agent.tell(seen.Prepared(KEY))
    agent.tell(seen.Began(KEY, agent.now))
    return agent


def ended(agent: Told, code: int = 0) -> AttemptEnded:
    """End the job's process; return what is told of it."""
    agent.tell(seen.Over(KEY, an_exit(code)))
    [closed] = of(Close, agent.tell(seen.Published(KEY, None)))
    return closed.report


def test_a_job_may_use_a_little_more_than_it_declared() -> None:
    assert may_use_gib(1.0) == 1.1
    assert may_use_gib(50.0) == 51.0
    agent = sharing()
    assert of(Signal, agent.tell(used(8.16))) == []


def test_one_that_outgrows_it_is_signalled_at_once_and_killed_within_a_second() -> None:
    agent = sharing()
    told = agent.tell(used(9.0))
    [keep] = of(KeepStop, told)
    [signal] = of(Signal, told)
    assert keep.wish == signal.wish
    assert (signal.wish.how, signal.wish.grace_s) == ("gpu-outgrown", GRACE_S)
    assert [one.peaks.gpu_gib for one in of(KeepPeaks, told)] == [9.0]
    assert [one.hard for one in of(Kill, agent.pass_(GRACE_S))] == [False]
    end = ended(agent, 137)
    assert (end.how, end.peaks.gpu_gib) == ("gpu-outgrown", 9.0)
    assert "9.00 GiB of GPU-a, and 8.00 GiB were declared" in end.says


def test_one_that_is_being_stopped_already_has_no_more_time_and_keeps_its_end() -> None:
    agent = sharing()
    agent.tell(stop())
    assert of(Kill, agent.tell(used(9.0))) == []
    assert len(of(Kill, agent.pass_(GRACE_S))) == 1
    assert ended(agent, 137).how == "stopped"


def test_peaks_only_rise_are_kept_now_and_then_and_told_at_the_end() -> None:
    agent = sharing()
    assert len(of(KeepPeaks, agent.tell(used(4.0, cpu=1.0)))) == 1, "the first at once"
    assert of(KeepPeaks, agent.tell(used(5.0, cpu=0.5))) == []
    agent.pass_(KEEP_PEAKS_EVERY_S)
    [kept] = of(KeepPeaks, agent.tell(used(3.0, cpu=0.5)))
    assert kept.peaks == Peaks(gpu_gib=5.0, cpu=1.0)
    agent.pass_(KEEP_PEAKS_EVERY_S)
    assert of(KeepPeaks, agent.tell(used(3.0))) == [], "nothing rose"
    assert ended(agent).peaks == Peaks(gpu_gib=5.0, cpu=1.0)


def test_what_is_measured_is_told_with_each_heartbeat_whatever_else_is_said() -> None:
    agent = sharing()
    agent.tell(used(4.0))
    agent.pass_(HEARTBEAT_S)
    beats = [one for one in posted(agent.done) if isinstance(one, Heartbeat)]
    assert beats[-1].measured == used(4.0).measured
    assert wakes_at(agent.state) == agent.now + HEARTBEAT_S


def test_a_neighbour_that_takes_a_gib_more_is_told_at_once_but_not_for_ever() -> None:
    agent = sharing()
    agent.pass_(3.0)
    assert len(_beats(agent.tell(used(4.0)))) == 1, "the first news"
    agent.pass_(3.0)
    assert _beats(agent.tell(used(4.0, foreign_gib=0.9))) == []
    assert len(_beats(agent.tell(used(4.0, foreign_gib=5.0)))) == 1
    agent.pass_(1.0)
    assert _beats(agent.tell(used(4.0, foreign_gib=7.0))) == [], "two seconds at least"
    agent.pass_(1.0)
    assert len(_beats(agent.tell(used(4.0, foreign_gib=7.0)))) == 1


def _beats(done: list[Action]) -> list[Heartbeat]:
    return [one for one in posted(done) if isinstance(one, Heartbeat)]


def test_a_job_whose_gpu_is_gone_is_stopped_and_the_rest_is_told() -> None:
    agent = sharing()
    told = agent.tell(seen.Devices((OTHER,)))
    noticed, joined = posted(told)[:2]
    assert isinstance(noticed, Noticed)
    assert noticed.says == "GPU-a no longer answers"
    assert isinstance(joined, Joined)
    assert joined.facts.devices == (OTHER,)
    assert joined.attempts == (KEY,)
    assert [one.wish.how for one in of(Signal, told)] == ["device-lost"]
    assert ended(agent, 137).how == "device-lost"
    assert posted(agent.tell(seen.Devices((OTHER,)))) == [], "it is said once"
    back, joined = posted(agent.tell(seen.Devices((GPU, OTHER))))
    assert isinstance(back, Noticed)
    assert back.says == "GPU-a answers again"


def test_a_job_that_is_ordered_onto_a_gone_gpu_is_not_started() -> None:
    agent = Told(seen.Woke(FACTS.but(devices=(GPU,)), "key"), seen.Devices(()))
    [closed] = of(Close, agent.tell(start(**SHARES)))
    assert (closed.report.how, closed.report.says) == ("start-failed", "GPU-a no longer answers")


def test_stand_ins_are_never_lost() -> None:
    stand_in = GPU.but(id="declared-0", declared=True)
    agent = Told(seen.Woke(FACTS.but(devices=(stand_in,)), "key"), start(devices=(stand_in,)))
    agent.tell(seen.Prepared(KEY))
    agent.tell(seen.Began(KEY, agent.now))
    told = agent.tell(seen.Devices((OTHER,)))
    assert of(Signal, told) == []
    assert agent.state.facts is not None
    assert agent.state.facts.devices == (OTHER, stand_in)


def test_a_docker_that_came_or_went_is_told_once_with_its_images() -> None:
    agent = sharing()
    both = ("process", "container")
    told = posted(agent.tell(seen.Runtimes(both, ("busybox:1",))))
    [joined] = [one for one in told if isinstance(one, Joined)]
    assert (joined.facts.runtimes, joined.facts.images) == (both, ("busybox:1",))
    assert joined.attempts == (KEY,)
    [noticed] = [one for one in told if isinstance(one, Noticed)]
    assert "Docker answers now" in noticed.says
    assert agent.tell(seen.Runtimes(both)) == []
    gone, again = posted(agent.tell(seen.Runtimes(("process",))))
    assert isinstance(gone, Noticed) and "no longer answers" in gone.says
    assert isinstance(again, Joined) and again.facts.images == ()
    refused = agent.tell(start("late", image="busybox:1"))
    assert of(Close, refused)[0].report.how == "start-failed"
