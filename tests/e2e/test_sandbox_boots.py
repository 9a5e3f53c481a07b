"""Machines of the box that really boot: through cloud-init to a ready agent, and gone again.

As root, with namespaces; skipped elsewhere with the reason.
"""

from collections.abc import Iterator

import pytest
from booting import (
    BootingCloud,
    a_booting_cloud,
)
from dockerd import busybox_image
from live_agent import a_start

from cloudwhale.mailbox.documents import AttemptEnded
from cloudwhale.model.node import Device

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
    boxed = a_start("boxed", "ls -d /dev/nvidia[0-9]*", image=image, devices=tuple(given), gpus=2)
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
    asks = f"docker run --rm -v /:/host {image} chroot /host {ASKS} || echo nothing"
    assert cloud.inside(machine, ["sh", "-c", asks]).split() == [b"nothing"], "one hop, no more"
    assert len(cloud.inside(machine, ["sh", "-c", ASKS])) > 20
    cloud.ends(machine)
    assert cloud.leaks() == []


ASKS = (
    "curl -s -m 3 -X PUT -H X-aws-ec2-metadata-token-ttl-seconds:60"
    " http://169.254.169.254/latest/api/token"
)
"""For a token of the machine's metadata service."""
