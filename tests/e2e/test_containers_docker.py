"""Docker itself makes trouble: it goes away and comes back, has no GPUs, no image, no login."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from dockerd import IMAGE, Dockerd, busybox_image
from live_agent import LiveAgent, a_start, a_stop, until
from shell import Shell
from small_registry import Registry, docker_config, small_registry

from cloudwhale.agent.containers import images, pulling
from cloudwhale.agent.containers.client import DockerTrouble
from cloudwhale.agent.containers.images import Fetching, ImageRefused, fetch
from cloudwhale.agent.containers.settings import name_of
from cloudwhale.agent.pool import THREADS
from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.documents import Noticed, Remark
from cloudwhale.model.node import Device
from cloudwhale.model.reason import Code

pytestmark = pytest.mark.docker

L4 = Device(id="GPU-cccc", model="L4", memory_gib=24.0)
COUNTS = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo $i; sleep 0.1; done; echo done"


@pytest.fixture
def beside(
    agent: LiveAgent, own_dockerd: Dockerd, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveAgent]:
    """Give an agent, not started, beside a dockerd of its own, not started either."""
    monkeypatch.setenv("DOCKER_HOST", own_dockerd.host)
    yield agent
    if agent.process.poll() is None:
        agent.end()


def test_a_job_runs_on_while_docker_is_killed_and_comes_back(
    beside: LiveAgent, own_dockerd: Dockerd
) -> None:
    own_dockerd.start("--live-restore", gpus=False)
    own_dockerd.add_image()
    beside.start()
    beside.post(a_start(command=COUNTS, image=IMAGE))
    beside.post(a_start("gpu", image=IMAGE, devices=(L4,)))
    beside.wait_for_output(b"1\n")
    refused = beside.ended("gpu")
    assert refused.how == "no-gpus"
    assert "install nvidia-container-toolkit" in refused.says
    own_dockerd.end(signal.SIGKILL)
    own_dockerd.start("--live-restore", gpus=False)
    end = beside.ended()
    assert (end.how, end.exit_code) == ("exited", 0)
    assert beside.log().split() == [*(str(i).encode() for i in range(1, 41)), b"done"]
    until(lambda: own_dockerd.names() == [], "its container was removed")


def test_a_docker_that_takes_the_job_with_it_is_the_machines_fault(
    beside: LiveAgent, own_dockerd: Dockerd
) -> None:
    own_dockerd.start(gpus=False)
    own_dockerd.add_image()
    beside.start()
    saves = "trap 'echo saved; exit 1' TERM; echo ready; while :; do sleep 0.05; done"
    beside.post(a_start(command=saves, image=IMAGE))
    beside.wait_for_output(b"ready")
    own_dockerd.end()
    end = beside.ended()
    assert end.how == "runtime-lost"
    assert b"saved" in beside.log()
    beside.end()
    own_dockerd.start(gpus=False)
    assert own_dockerd.names() == [name_of(beside.folder().path)]
    beside.start()
    beside.post(a_start("next"))  # an agent with nothing to do looks around after ten seconds
    until(lambda: own_dockerd.names() == [], "what Docker kept of it was removed")


def test_a_docker_that_comes_or_goes_later_is_noticed(
    beside: LiveAgent, own_dockerd: Dockerd
) -> None:
    beside.program = "attentive_agent"
    beside.start()
    assert beside.joined_again(1).facts.runtimes == ("process",)
    own_dockerd.start(gpus=False)
    own_dockerd.add_image()
    beside.post(a_start("wakes"))
    assert beside.joined_again(2).facts.runtimes == ("process", "container")
    beside.post(a_start(image=IMAGE))
    assert (beside.ended().how, beside.ended().exit_code) == ("exited", 0)
    own_dockerd.end(signal.SIGKILL)
    beside.post(a_start("wakes again"))
    assert beside.joined_again(3).facts.runtimes == ("process",)
    beside.post(a_start("late", image=IMAGE))
    assert "Docker did not answer here" in beside.ended("late").says
    said = [one.says for one in beside.all_of(Noticed) if one.code is Code.RUNTIME]
    assert [words.split(":")[0] for words in said] == [
        "Docker answers now", "Docker no longer answers",
    ]  # fmt: skip


def test_a_host_whose_agent_sleeps_is_asked_for_docker_by_who_needs_it(
    tmp_path: Path, own_dockerd: Dockerd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", own_dockerd.host)
    shell = Shell(tmp_path)
    try:
        shell.write("plain.yaml", "name: plain\ncommand: 'true'\n")
        shell.write("job.yaml", f"name: job\nimage: {IMAGE}\ncommand: echo ran\n")
        assert shell("run", "-y", "plain.yaml").code == 0
        refused = shell("run", "-y", "job.yaml")
        assert (refused.code, "needs the container runtime" in refused.err) == (112, True)
        own_dockerd.start(gpus=False)
        own_dockerd.add_image()
        until(lambda: not shell.processes(), "its agent has gone")
        done = shell("run", "-y", "job.yaml")
        assert (done.code, "ran" in done.out) == (0, True), done
    finally:
        shell.close()


# -- images ----------------------------------------------------------------------------------


@pytest.fixture
def registry(
    dockerd: Dockerd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Registry]:
    """Give a registry that the shared dockerd may ask, and a user without a login."""
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setattr(images, "TRY_AGAIN_S", 0.01)
    (tmp_path / "docker").mkdir()
    with small_registry() as one:
        one.hold(busybox_image(os.urandom(100_000)))  # no layer of it was ever fetched
        yield one


def wanted(image: str, said: list[str]) -> Fetching:
    return Fetching(image, SystemClock(), said.append)


def test_an_image_that_lies_here_is_asked_nobody_for(registry: Registry) -> None:
    assert fetch(wanted(IMAGE, [])) is None
    assert registry.asked == []


def test_a_registry_that_is_busy_is_asked_again(registry: Registry) -> None:
    registry.broken = 2
    said: list[str] = []
    took = fetch(wanted(f"{registry.address}/sea/busybox:1", said))
    assert took is not None
    assert took.size_bytes == max(len(blob) for blob in registry.blobs.values())
    assert any("asked again" in line for line in said)
    assert said[-1].startswith("fetched the image")


def test_a_registry_that_nobody_reaches_is_no_refusal(registry: Registry) -> None:
    with pytest.raises(DockerTrouble) as raised:
        fetch(wanted("127.0.0.1:1/sea/busybox:1", []))
    assert not isinstance(raised.value, ImageRefused)
    assert raised.value.how == "start-failed"
    assert "connection refused" in raised.value.says


def test_a_private_image_needs_the_users_login(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = f"{registry.address}/sea/busybox:1"
    registry.private = True
    with pytest.raises(ImageRefused, match=f"docker login {registry.address}"):
        fetch(wanted(image, []))
    (tmp_path / "docker" / "config.json").write_text(docker_config(registry))
    assert fetch(wanted(image, [])) is not None


def test_a_job_whose_image_does_not_exist_ends_with_what_to_do(
    agent: LiveAgent, registry: Registry
) -> None:
    agent.start()
    image = f"{registry.address}/sea/no-such:1"
    agent.post(a_start(image=image))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("image-refused", None)
    assert f"the image {image} cannot be had" in end.says
    assert "check its name" in end.says
    assert agent.log().startswith(b"cloudwhale: fetching the image")


def test_a_pull_that_stalls_is_given_up_and_one_that_nobody_wants_is_left_at_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.flows.clear()
    wanting = iter([True, True])
    said: list[str] = []
    image = f"{registry.address}/sea/busybox:hangs"
    with pytest.raises(DockerTrouble, match="nobody waits for it any more"):
        fetch(Fetching(image, SystemClock(), said.append, lambda: next(wanting, False)))
    monkeypatch.setattr(pulling, "STALLED_S", 0.5)
    with pytest.raises(DockerTrouble, match="could not be fetched: nothing came of it for 0 s"):
        fetch(wanted(image, said))
    assert said == [f"fetching the image {image}"] * 2, "neither is tried again"
    registry.flows.set()
    assert fetch(wanted(image, said)) is not None, "both are over for Docker, too"


def test_an_image_that_lies_here_does_not_wait_behind_those_that_hang(
    agent: LiveAgent, registry: Registry
) -> None:
    agent.start()
    registry.flows.clear()
    hanging = [f"hangs-{number}" for number in range(THREADS + 1)]
    for job in hanging:
        agent.post(a_start(job, image=f"{registry.address}/sea/busybox:{job}"))
    until(lambda: all(b"fetching" in agent.output(job) for job in hanging), "all are fetched")
    agent.post(a_start("here", image=IMAGE))
    assert agent.ended("here").exit_code == 0
    for job in hanging:
        agent.post(a_stop(job))
    assert {agent.ended(job).how for job in hanging} == {"stopped"}
    assert agent.end() == 0


def test_a_fetched_image_is_told_of_and_a_stop_does_not_wait_for_one(
    agent: LiveAgent, registry: Registry
) -> None:
    agent.start()
    image = f"{registry.address}/sea/busybox:stop"
    registry.flows.clear()
    agent.post(a_start("stopped", image=image))
    until(lambda: any("/blobs/" in path for path in registry.asked), "a layer was asked for")
    agent.post(a_stop("stopped"))
    assert agent.ended("stopped").how == "stopped"
    registry.flows.set()
    agent.post(a_start(command="echo runs", image=f"{registry.address}/sea/busybox:go"))
    assert agent.ended().exit_code == 0
    told = [one for one in agent.all_of(Remark) if one.job == "job"]
    assert [one.code for one in told] == [Code.IMAGE_PULLED]
    lines = agent.log().decode().splitlines()
    assert lines[0].startswith("cloudwhale: fetching") and lines[-1] == "runs"
