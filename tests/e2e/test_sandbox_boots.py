"""Machines of the box that really boot: through cloud-init to a ready agent, and gone again.

As root, with namespaces; skipped elsewhere with the reason.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from booting import (
    BOOTS_WITHIN_S,
    BootingCloud,
    a_booting_cloud,
    image_here,
    leaks_of,
    rules_of,
)
from boxed import IMAGE, REGION
from dockerd import busybox_image
from live_agent import CLOCK, a_start
from mortal_box import clients
from shell import Shell, until

from cloudwhale.mailbox.documents import AttemptEnded
from cloudwhale.model.node import Device
from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.endpoint import MetadataFault, Weather
from cloudwhale_providers.sandbox.processes import of_folder

PHASES = ("watchdog", "bundle", "driver", "docker", "toolkit", "gpus", "agent")
KILLED_AT = ("made", "cloud-init", *PHASES, "joined")
"""Twice each: twenty deaths."""
AT_ONCE = 4


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootingCloud]:
    with a_booting_cloud(tmp_path_factory.mktemp("boots") / "box") as found:
        yield found


def reached(cloud: BootingCloud, machine: str, node: str, point: str) -> bool:
    """Say whether a boot has come to a point."""
    if point == "made":
        return machine in cloud.machines.names
    if point == "cloud-init":
        return "Cloud-init" in cloud.console(machine)
    if point == "joined":
        return cloud.joined(node) is not None
    return any(told.phase == point for told in cloud.boot(node))


def test_a_machine_boots_through_every_phase_and_joins_with_what_its_type_has(
    cloud: BootingCloud,
) -> None:
    machine = cloud.launch("whole")
    here = cloud.until(lambda: cloud.joined("whole"), "its agent joins").facts
    assert [device.model for device in here.devices] == ["A10G"]
    assert "container" in here.runtimes
    cloud.until(lambda: cloud.boot("whole")[-1].state == "done", "its last phase is told")
    told = [one.phase for one in cloud.boot("whole") if one.state == "done"]
    assert told == list(PHASES)
    cloud.ends(machine)
    assert cloud.leaks() == []


@pytest.mark.parametrize("round_of", range(2 * len(KILLED_AT) // AT_ONCE))
def test_a_machine_that_dies_at_any_point_of_its_boot_leaves_nothing_and_is_not_half_ready(
    cloud: BootingCloud, round_of: int
) -> None:
    points = [KILLED_AT[(AT_ONCE * round_of + at) % len(KILLED_AT)] for at in range(AT_ONCE)]
    waiting = {
        cloud.launch(f"dies-{round_of}-{at}"): (f"dies-{round_of}-{at}", point)
        for at, point in enumerate(points)
    }
    killed = dict(waiting)
    while waiting:
        machine = cloud.until(
            lambda: next((one for one, at in waiting.items() if reached(cloud, one, *at)), None),
            f"one comes to its point: {waiting}",
        )
        cloud.ends(machine)
        del waiting[machine]
    assert cloud.leaks() == []
    for node, point in killed.values():
        has_joined = cloud.joined(node) is not None
        assert has_joined is (point == "joined") or point == "agent"


def test_a_job_runs_as_a_process_and_another_in_a_container_with_the_gpus_it_was_given(
    cloud: BootingCloud,
) -> None:
    machine = cloud.launch("works", kind="g5.12xlarge", gpus=4)
    here = cloud.until(lambda: cloud.joined("works"), "its agent joins").facts
    image = "cloudwhale-test/busybox:1"
    changes = ["--change", "ENV PATH=/bin"]
    cloud.inside(machine, ["docker", "import", *changes, "-", image], busybox_image())
    given = [Device.model_validate(one.model_dump()) for one in here.devices[1:3]]
    plain = a_start("plain", "nvidia-smi -L | wc -l; id -u")
    count = "ls -d /dev/nvidia[0-9]*; ! wget -T 2 -q -O - http://169.254.169.254/latest/api/token"
    boxed = a_start("boxed", count, image=image, devices=tuple(given), gpus=2)
    cloud.order("works", plain)
    cloud.order("works", boxed, after=1)

    def ended() -> list[AttemptEnded] | None:
        found = [one for one in cloud.reports("works") if isinstance(one, AttemptEnded)]
        return found if len(found) == 2 else None

    ends = {one.job: one for one in cloud.until(ended, "both jobs end")}
    assert ends["plain"].exit_code == 0
    assert ends["boxed"].exit_code == 0, ends["boxed"]
    said = cloud.objects.get("logs/boxed/1.log")
    assert said is not None and said.split() == [b"/dev/nvidia1", b"/dev/nvidia2"]
    cloud.ends(machine)
    assert cloud.leaks() == []


SLEEPS = "#!/bin/sh\n(trap '' TERM; setsid sleep 600) &\necho it sleeps\nsleep 600\n"
"""User data that never ends, and leaves a process that has a session of its own."""


def test_what_a_machine_leaves_when_its_box_is_killed_is_gone_at_once_or_with_the_next_box(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    image_here(folder)
    shell = Shell(tmp_path)
    words = ("sandbox", "serve", "--folder", str(folder), "--machines", "boots")
    box = shell.start(*words)
    until("the cloud answers", lambda: Sandbox().standing(folder))
    launch(folder, SLEEPS)
    consoles = folder / "instances"
    until("it runs its user data", lambda: "it sleeps" in said(consoles), limit_s=BOOTS_WITHIN_S)
    assert leaks_of(folder)
    os.kill(box.pid, signal.SIGKILL)
    box.wait()
    until("its machine has ended with it", lambda: not of_folder(consoles), limit_s=20.0)
    assert not [line for line in leaks_of(folder) if "overlay" in line], "mounts are private"
    box = shell.start(*words)
    until("the next one answers", lambda: Sandbox().standing(folder))
    assert leaks_of(folder) == []
    box.terminate()
    box.wait()
    assert leaks_of(folder) == []
    assert rules_of(folder) == []
    shell.close()


def said(consoles: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in consoles.glob("*/console.log"))


def launch(folder: Path, script: str) -> None:
    """Launch a machine in a box that another process is."""
    ec2 = clients(folder)["ec2", REGION]
    ec2.run_instances(
        ImageId=IMAGE, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, UserData=script
    )


@pytest.mark.parametrize(
    "weather",
    [
        Weather(metadata_faults=(MetadataFault(code=500, until_s=8.0),)),
        Weather(metadata_faults=(MetadataFault(delay_s=1.0),)),
    ],
    ids=["fails for 8 s", "takes a second each time"],
)
def test_a_machine_whose_metadata_service_is_in_trouble_boots_later(
    tmp_path: Path, weather: Weather
) -> None:
    with a_booting_cloud(tmp_path / "box", weather) as cloud:
        machine = cloud.launch("late", "#!/bin/sh\necho it runs\n")
        cloud.until(lambda: "it runs" in cloud.console(machine), "it boots in the end")


def test_a_machine_has_its_own_time_its_own_network_and_no_power_over_this_host(
    tmp_path: Path,
) -> None:
    with a_booting_cloud(tmp_path / "box", Weather(clock_ahead_s=300.0)) as cloud:
        one = cloud.launch("one", PRIES)
        other = cloud.launch("other", "#!/bin/sh\n")
        cloud.until(lambda: one not in cloud.running, "it has powered off")
        seen = dict(line.split(": ", 1) for line in cloud.console(one).splitlines() if ": " in line)
        assert abs(float(seen["its time"]) - CLOCK.now() - 300.0) < 60.0
        assert seen["sets the clock"] == "no"
        assert seen["its own id"] == one
        assert other not in cloud.console(one)
        assert seen["the cloud"] == "403"  # nobody who is known, but there
        assert seen["this host's loopback"] == "no"


PRIES = """#!/bin/sh
echo "its time: $(date +%s)"
yes() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
echo "sets the clock: $(yes date -s 2020-01-01)"
own=http://169.254.169.254/latest
token=$(curl -s -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $own/api/token)
echo "its own id: $(curl -s -H "X-aws-ec2-metadata-token: $token" $own/meta-data/instance-id)"
echo "the cloud: $(curl -s -o /dev/null -w '%{http_code}' $AWS_ENDPOINT_URL/cloudwhale-sandbox)"
echo "this host's loopback: $(yes curl -s -m 2 http://127.0.0.1:${AWS_ENDPOINT_URL##*:})"
shutdown -h now
"""
