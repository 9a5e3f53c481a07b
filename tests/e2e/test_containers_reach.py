"""A container whose rules for devices were written anew without its GPUs is given up, and resumed.

What `systemctl daemon-reload` does to a container whose GPUs came by a hook is done here by hand.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from dockerd import IMAGE, Dockerd
from fake_gpus import FakeGpus
from live_agent import LiveAgent, a_start, a_stop, until

from cloudwhale.agent.belonging import Root
from cloudwhale.agent.containers.reach import Reach, shut_devices
from cloudwhale.agent.containers.settings import name_of
from cloudwhale.agent.eyes import container_of
from cloudwhale.mailbox.documents import AttemptEnded, StartOrder
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.node import Device

pytestmark = pytest.mark.docker

A100 = Device(id="GPU-aaaa", model="A100-80GB", memory_gib=80.0, usable_gib=80.0)
L4 = Device(id="GPU-cccc", model="L4", memory_gib=24.0, usable_gib=22.5)
RULES = Path("/sys/fs/cgroup/devices")
SAVES = (
    "trap 'echo $((step + 1)) >new; mv new $CLOUDWHALE_CHECKPOINT_DIR/step; exit 0' TERM\n"
    "step=$(cat $CLOUDWHALE_CHECKPOINT_DIR/step 2>/dev/null || echo 40)\n"
    "echo at $step; while :; do sleep 0.05; done"
)


@pytest.fixture
def seeing(
    agent: LiveAgent, dockerd: Dockerd, fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveAgent]:
    """Give an agent that looks at the devices of its containers every second."""
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    agent.env |= fake_gpus.env
    agent.program = "attentive_agent"
    agent.start()
    yield agent
    agent.end()
    mine = {name_of(path) for path in agent.attempts.glob("*/*")}
    until(lambda: not mine & set(dockerd.names()), f"no container of {agent.home} is left")


def saving(job: str, device: Device, **fields: object) -> StartOrder:
    rule = CheckpointRule(every_s=60.0, grace_s=5.0)
    return a_start(job, SAVES, image=IMAGE, devices=(device,), checkpoint=rule, **fields)


def root_of(agent: LiveAgent, job: str) -> Root:
    """Return where the processes of a container begin."""
    folder, pids = agent.folder(job), agent.pids(job)
    return Root(folder.key, folder.path, pids.shim, pids.job, container_of(folder.path))


def take_away(root: Root, minor: int) -> None:
    """Write the rules of a container's group anew, without one device."""
    found = list(RULES.glob(f"**/*{root.container}*/devices.deny"))
    if not found:
        pytest.skip("the rules of version 2 are a program that only systemd or runc can write")
    found[0].write_text(f"c 195:{minor} rwm")


def test_a_job_whose_container_lost_its_gpu_saves_ends_and_is_resumed(seeing: LiveAgent) -> None:
    for job, device in (("lost", A100), ("other", L4)):
        seeing.post(saving(job, device))
    for job in ("lost", "other"):
        seeing.wait_for_output(b"at 40", job)
    root = root_of(seeing, "lost")
    assert shut_devices(root) == ()
    take_away(root, 0)
    assert shut_devices(root) == ("/dev/nvidia0",)
    end = seeing.ended("lost")
    assert end.how == "no-gpus"
    assert end.says.startswith("its container can no longer open /dev/nvidia0: systemd has read")
    saved = seeing.published().checkpoint
    seeing.post(saving("lost", A100, attempt=2, restore=saved))
    seeing.wait_for_output(b"at 41", "lost", 2)
    assert shut_devices(root_of(seeing, "other")) == ()
    seeing.post(a_stop("lost", 2, grace_s=0.1))
    seeing.ended("lost", 2)
    assert [one.job for one in seeing.all_of(AttemptEnded)] == ["lost", "lost"]


def test_what_cannot_be_told_shuts_nobody_out(tmp_path: Path) -> None:
    mine = Root(("job", 1), tmp_path, os.getpid(), os.getpid(), "")
    assert shut_devices(mine) == ()
    gone = Root(("job", 1), tmp_path, 1, 2**22 - 1, "abc")
    assert shut_devices(gone) == ()


def test_a_container_is_looked_at_now_and_then_and_given_up_after_two_looks(
    tmp_path: Path,
) -> None:
    root = Root(("job", 1), tmp_path, 1, 2, "abc")
    answers: list[tuple[str, ...]] = [("/dev/nvidia0",), (), ("/dev/nvidia0",), ("/dev/nvidia0",)]
    looks: list[float] = []

    def look(one: Root) -> tuple[str, ...]:
        looks.append(now)
        return answers[len(looks) - 1]

    reach = Reach(look)
    told: dict[float, object] = {}
    for now in map(float, range(50)):
        if len(looks) < len(answers) and (found := reach.look([root], now)):
            told[now] = found
    assert looks == [20.0, 21.0, 41.0, 42.0], "a moment of doubt is looked at again at once"
    assert told == {42.0: {("job", 1): ("/dev/nvidia0",)}}
