"""Machines that really boot into something bad: each says what, ends itself, and leaves nothing.

As root, with namespaces; skipped elsewhere with the reason.
"""

from pathlib import Path

from booting import BootingCloud, a_booting_cloud, the_bundle
from boxed import REGION

from cloudwhale.mailbox.documents import BootTold
from cloudwhale_providers.aws.user_data import user_data
from cloudwhale_providers.sandbox.box import MAILBOX
from cloudwhale_providers.sandbox.endpoint import Weather

SPOILED = f"bundles/{'0f' * 32}.tar.gz"
BLIND = "printf '#!/bin/sh\\nexec runc \"$@\"\\n' >/usr/bin/nvidia-container-runtime"
"""A runtime that takes a wish for GPUs, starts without them, and is content."""


def spoiled(*lines: str, bundle: str = "") -> str:
    """Return the real user data, with something done to the machine before."""
    real = user_data(MAILBOX, REGION, bundle or the_bundle().key)
    return "\n".join(["#!/bin/sh", *lines, *real.splitlines()[1:], ""])


def failed(cloud: BootingCloud, node: str) -> BootTold | None:
    """Return what a machine has told that failed."""
    return next((one for one in cloud.boot(node) if one.state == "failed"), None)


def test_what_a_machine_lacks_is_told_by_its_phase_and_the_machine_ends_itself(
    tmp_path: Path,
) -> None:
    with a_booting_cloud(tmp_path / "box") as cloud:
        cloud.objects.create(SPOILED, b"not what its name says")
        launched = {
            "spoiled": cloud.launch("spoiled", spoiled(bundle=SPOILED)),
            "gone": cloud.launch("gone", spoiled("rm /dev/nvidia0")),
            "blind": cloud.launch("blind", spoiled(BLIND)),
        }
        for node, machine in launched.items():
            cloud.until(lambda name=node: failed(cloud, name), f"{node} says what fails")
            cloud.until(lambda one=machine: one not in cloud.running, f"{node} has ended itself")
        told = {node: failed(cloud, node) for node in launched}
        words = {node: f"{one.phase}: {one.says}" for node, one in told.items() if one is not None}
        assert words["spoiled"].startswith(
            f"bundle: {SPOILED} holds something else, by its SHA-256"
        )
        assert words["gone"] == "gpus: this machine shows 0 of its 1 GPUs as device files"
        assert words["blind"] == (
            "gpus: a container with `--gpus all` sees 0 of 1 GPUs, and starts all the same"
        )
        assert [node for node in launched if cloud.joined(node) is not None] == []
        assert cloud.leaks() == []


def test_a_machine_whose_clock_is_five_minutes_off_says_so_and_ends_itself(tmp_path: Path) -> None:
    with a_booting_cloud(tmp_path / "box", Weather(clock_ahead_s=300.0)) as cloud:
        machine = cloud.launch("early")
        told = cloud.until(lambda: failed(cloud, "early"), "it says what fails")
        assert told.phase == "watchdog"
        assert "s ahead of the mailbox's, and could not be set" in told.says
        cloud.until(lambda: machine not in cloud.running, "it has ended itself")
        assert cloud.joined("early") is None and cloud.leaks() == []
