"""Real containers on GPUs of a driver that we write: their memory is told and guarded by job."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dockerd import IMAGE, Dockerd
from fake_gpus import FakeGpus
from live_agent import CLOCK, LiveAgent, a_start, a_stop, until
from shell import Shell

from cloudwhale.agent.containers.settings import name_of
from cloudwhale.mailbox.documents import AttemptEnded, Heartbeat, StartOrder
from cloudwhale.model.node import Device

pytestmark = pytest.mark.docker

A100 = Device(id="GPU-aaaa", model="A100-80GB", memory_gib=80.0, usable_gib=80.0)
L4 = Device(id="GPU-cccc", model="L4", memory_gib=24.0, usable_gib=22.5)
STAYS = "sleep 100 & sleep 100"


@pytest.fixture
def seeing(
    agent: LiveAgent, dockerd: Dockerd, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveAgent]:
    """Give an agent that sees three GPUs and Docker; afterwards no container of it is left."""
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    agent.env |= fake_gpus.env
    agent.start()
    yield agent
    agent.end()
    mine = {name_of(path) for path in agent.attempts.glob("*/*")}
    until(lambda: not mine & set(dockerd.names()), f"no container of {agent.home} is left")


def sharing(job: str, gib: float, device: Device = A100, command: str = STAYS) -> StartOrder:
    """Order a container that shares a GPU and declares so much of its memory."""
    return a_start(job, command, image=IMAGE, devices=(device,), share=0.5, gpu_memory_gib=gib)


def inside(agent: LiveAgent, job: str) -> list[int]:
    """Wait until both sleeping processes of a container run; return their numbers out here."""

    def sleeping() -> list[int] | None:
        container = _container(agent.folder(job).path)
        found = [pid for pid in _pids() if _sleeps_in(pid, container)] if container else []
        return found if len(found) == 2 else None

    return until(sleeping, f"{job} to sleep in its container; {agent.story()}")


def test_of_two_containers_on_one_gpu_the_one_that_outgrew_its_share_is_stopped_at_once(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    seeing.post(sharing("good", 40.0))
    seeing.post(sharing("grows", 30.0, command=f"trap '' TERM; {STAYS}; {STAYS}"))
    good, grows = inside(seeing, "good"), inside(seeing, "grows")
    fake_gpus.gpus[0].used_gib = 2.0  # somebody else's, which is told at once
    fake_gpus.held = {(0, good[0]): 40.5, (0, grows[0]): 20.0, (0, grows[1]): 5.0}
    fake_gpus.write()
    by_job = {"good": 40.5, "grows": 25.0}
    until(
        lambda: any(
            beat.measured is not None and beat.measured.devices["GPU-aaaa"].jobs == by_job
            for beat in seeing.all_of(Heartbeat)
        ),
        "the memory of each container is told",
    )
    assert seeing.all_of(AttemptEnded) == []
    fake_gpus.hold(0, grows[1], 30.0)  # together more than the GPU has
    grew_at = CLOCK.steady()
    end = seeing.ended("grows")
    assert CLOCK.steady() - grew_at < 6.0, "one second to see it, one to stop it, and a busy host"
    assert end.how == "gpu-outgrown"
    assert "50.00 GiB of GPU-aaaa, and 30.00 GiB were declared" in end.says
    assert end.peaks.gpu_gib == 50.0
    assert set(grows).isdisjoint(_pids())
    assert [one.job for one in seeing.all_of(AttemptEnded)] == ["grows"], "not its neighbour"
    assert set(good) <= set(_pids())


def test_of_two_containers_on_one_gpu_both_are_stopped_when_both_outgrew_their_share(
    seeing: LiveAgent, fake_gpus: FakeGpus
) -> None:
    for job in ("one", "two", "good"):
        seeing.post(sharing(job, 10.0 if job == "one" else 5.0, L4))
    one, two, good = (inside(seeing, job)[1] for job in ("one", "two", "good"))
    fake_gpus.held = {(2, one): 10.4, (2, two): 5.2, (2, good): 5.0}
    fake_gpus.write()
    ends = {job: seeing.ended(job) for job in ("one", "two")}
    assert {end.how for end in ends.values()} == {"gpu-outgrown"}
    assert {job: end.peaks.gpu_gib for job, end in ends.items()} == {"one": 10.4, "two": 5.2}
    assert good in _pids()
    seeing.post(a_stop("good", grace_s=0.1))
    last = seeing.ended("good")
    assert (last.how, last.peaks.gpu_gib) == ("stopped", 5.0)


def test_a_gpu_that_falls_off_the_bus_takes_its_container_and_no_other(
    seeing: LiveAgent, fake_gpus: FakeGpus, dockerd: Dockerd
) -> None:
    seeing.post(sharing("lost", 30.0))
    seeing.post(sharing("other", 10.0, L4))
    lost, other = inside(seeing, "lost"), inside(seeing, "other")
    fake_gpus.gpus[0].flags = "lost"
    fake_gpus.write()
    end = seeing.ended("lost")
    assert (end.how, "GPU-aaaa no longer answers" in end.says) == ("device-lost", True)
    assert set(lost).isdisjoint(_pids())
    container = name_of(seeing.folder("lost").path)
    until(lambda: container not in dockerd.names(), "its container is removed")
    assert [one.id for one in seeing.joined_again(2).facts.devices] == ["GPU-bbbb", "GPU-cccc"]
    assert [one.job for one in seeing.all_of(AttemptEnded)] == ["lost"]
    assert set(other) <= set(_pids())


# -- the whole way ---------------------------------------------------------------------------

JOB = f"""
name: grows
image: {IMAGE}
command: |
  if [ $CLOUDWHALE_ATTEMPT = 1 ]; then
    while [ ! -e go ]; do sleep 0.05; done
    echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'; exit 1
  fi
  echo fits now on $(ls /dev/nvidia*)
resources: {{memory: 64MB, gpu: {{count: 1, memory: 8GB.., share: 0.5}}}}
retry: {{max: 1, on: []}}
"""


@pytest.fixture
def shell(
    tmp_path: Path, dockerd: Dockerd, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shell]:
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", **fake_gpus.env})
    yield typed
    typed.close()


def test_a_container_whose_gpu_refuses_it_memory_runs_again_with_more(
    shell: Shell, fake_gpus: FakeGpus
) -> None:
    run = shell.start("run", "-y", shell.write("job.yaml", JOB))
    until(lambda: len(shell.jobs()) == 1, "the job to be there")
    [job] = shell.jobs()
    folder = shell.home / "nodes" / "host" / "attempts" / job.id / "1"
    until(lambda: (folder / "pids.json").exists(), "it to run")
    [placement] = [one.placement for one in shell.jobs()]
    assert placement is not None
    [given] = [n for n, gpu in fake_gpus.gpus.items() if gpu.uuid in placement.devices]
    fake_gpus.hold(given, int(json.loads((folder / "pids.json").read_text())["job"]), 7.0)
    peaks = folder / "peaks.json"
    until(lambda: peaks.exists() and '"gpu_gib":7.0' in peaks.read_text(), "what it holds is seen")
    (folder / "work" / "go").touch()
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    assert "fits now on /dev/nvidia" in out
    [job] = shell.jobs()
    assert (job.attempt, job.grows, job.retries) == (2, 1, 0)
    assert job.wants.gpu.memory_gib.least == 10.5
    assert job.peaks.gpu_gib == 7.0
    assert "its GPU had no memory left for it" in shell("explain", job.id).out


# -- processes of containers, seen from out here ---------------------------------------------


def _container(folder: Path) -> str:
    try:
        return str(json.loads((folder / "container.json").read_text())["id"])
    except OSError:
        return ""


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _sleeps_in(pid: int, container: str) -> bool:
    try:
        is_inside = container in Path(f"/proc/{pid}/cgroup").read_text()
        return is_inside and Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    except OSError:
        return False
