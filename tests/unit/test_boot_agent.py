"""The end of a first boot: an agent that watches, or a machine that goes."""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from boot_stand_ins import has_docker
from first_boots import BOOT, NODE, Machine, a_machine, bundle
from unpacking import unpack

from cloudwhale_providers.aws.user_data import user_data


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with a_machine(tmp_path) as made:
        yield made


SOON = f"""\
case $1 in -k) shift 3; set -- -k 1 1 "$@" ;; esac
exec {shutil.which("timeout")} "$@"
"""
"""Instead of `timeout`: the limit of a phase is a second."""


def unpacked(machine: Machine, packed: bytes = b"") -> None:
    with tarfile.open(fileobj=io.BytesIO(packed or bundle())) as archive:
        unpack(archive, machine.folder / "bundle")


def test_the_agent_takes_the_watch_over_before_the_first_end_is_called_off(
    machine: Machine,
) -> None:
    unpacked(machine)
    machine.fake("shutdown", f'ls "$CLOUDWHALE_ROOT/var/lib/cloudwhale/nodes/{NODE}" >>"$CALLS"')
    words = "--device='1x A10G 24GB' --cpu=4"
    booted = machine.first("agent", CLOUDWHALE_AGENT_WORDS=words)
    assert booted.phases["agent"] == "done"
    assert machine.calls() == ["shutdown -c", "watchdog.json"]
    started = booted.agent()["words"]
    assert {"--rented", "--own-users", "--lease=1:5400", "--notices=aws"} < set(started)
    assert "--power-off=shutdown -h now" in started and f"--node={NODE}" in started
    assert started[-2:] == ["--device=1x A10G 24GB", "--cpu=4"]


def test_a_first_end_that_cannot_be_called_off_comes_before_any_job(machine: Machine) -> None:
    unpacked(machine)
    machine.fake("shutdown", '[ "$1" != -c ]')
    booted = machine.first("agent")
    assert booted.failed == "agent: the first end of this machine cannot be called off"
    assert machine.calls("shutdown").count("shutdown -c") == 3 and booted.was_shut_down


def test_a_service_manager_keeps_the_agent_also_after_a_restart(machine: Machine) -> None:
    unpacked(machine)
    machine.has_systemd()
    (machine.place).mkdir()
    (machine.place / "environment").write_text("AWS_REGION=eu-west-1\n")
    booted = machine.first("agent")
    assert booted.phases["agent"] == "done" and booted.agent()["region"] == "eu-west-1"
    unit = (machine.root / "etc/systemd/system/cloudwhale-agent.service").read_text()
    assert "KillMode=process" in unit and "Restart=on-failure" in unit
    assert "systemctl enable cloudwhale-agent.service" in machine.calls()


def test_a_python_that_the_archive_is_not_for_is_named(machine: Machine) -> None:
    unpacked(machine)
    for found in (machine.folder / "bundle").glob("lib-cp*"):
        found.rename(found.with_name("lib-cp399"))
    booted = machine.first("agent")
    assert "the agent's archive is for lib-cp399: choose another `image`" in booted.failed


def test_an_agent_that_never_arms_its_watchdog_ends_the_machine(machine: Machine) -> None:
    unpacked(machine, bundle("import sys\nsys.exit('no module named pydantic')\n"))
    booted = machine.first("agent")
    assert booted.failed == "agent: the agent has not armed its watchdog: no module named pydantic"
    assert booted.was_shut_down and "shutdown -c" not in machine.calls()
    name = str(machine.place / "agent")
    assert subprocess.run(["pgrep", "-f", name], check=False).returncode == 1, "nothing tries again"


def test_a_phase_that_hangs_is_ended_and_says_its_limit(machine: Machine) -> None:
    machine.fake("timeout", SOON, told=False)
    machine.fake("apt-get", f"exec {shutil.which('sleep')} 60")
    booted = machine.first("docker")
    assert booted.failed.startswith("docker: took longer than its 240 s")
    assert booted.was_shut_down


def test_a_machine_without_gpus_looks_for_none(machine: Machine) -> None:
    unpacked(machine)
    has_docker(machine)
    booted = machine.first("driver", "docker", "toolkit", "gpus", "agent")
    assert set(booted.phases.values()) == {"done"}
    assert booted.says("gpus") == "no GPU was rented"
    assert not machine.calls("apt-get") and not machine.calls("modprobe")


def test_phases_that_an_image_has_no_use_for_are_said_to_be_done(machine: Machine) -> None:
    unpacked(machine)
    booted = machine.first("agent", gpus=1)
    assert booted.says("driver") == "this image has no use for it"
    assert list(booted.phases) == ["bundle", "driver", "docker", "toolkit", "gpus", "agent"]


def test_the_page_on_first_boots_names_each_phase_with_its_limit() -> None:
    page = (BOOT.parents[2] / "docs/first-boot.md").read_text()
    said = dict(re.findall(r"(?m)^\| `(\w+)` \| (\d+) s \|", page))
    (line,) = re.findall(r"(?m)^for one in (.*); do$", (BOOT / "first.sh").read_text())
    kept = dict(one.split(":") for one in line.split())
    text = user_data("s3://bucket/lab", "eu-west-1", "bundles/b")
    before = dict(reversed(re.findall(r"(?m)^ *try (\w+) (\d+) ", text)))  # the first of each
    assert said == before | kept
