"""Each branch of the first boot, run for real among stand-ins of what machines have."""

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from first_boots import NODE, Machine, a_machine, bundle

VERSION = 'case " $* " in *" version "*) echo 28.3.1 ;; esac'
DOCKER = """\
case $1 in
    version)
        [ ! -e "$STATE/docker-is-down" ] || exit 1
        cat "$STATE/docker-version" 2>/dev/null || echo 28.3.1 ;;
    import) cat >"$STATE/image.tar" ;;
    run)
        [ ! -e "$STATE/run-says" ] || { cat "$STATE/run-says" >&2; exit 125; }
        echo "GPUs $(cat "$STATE/inside")" ;;
    pull) exit 1 ;;
esac
"""
SMI = """\
[ ! -e "$STATE/smi-says" ] || { cat "$STATE/smi-says"; exit 9; }
case $1 in
    -L)
        n=0
        while [ "$n" -lt "$(cat "$STATE/seen")" ]; do
            echo "GPU $n: NVIDIA A10G (UUID: GPU-$n)"
            n=$((n + 1))
        done ;;
    --query-gpu*) echo 580.82.07 ;;
esac
"""
CTK = """\
case "$1 $2" in
    "cdi generate") echo kind >"${3#--output=}" ;;
    "cdi list") [ -e "$STATE/no-cdi" ] || echo nvidia.com/gpu=all ;;
    "runtime configure")
        echo "{\\"runtimes\\": \\"$*\\"}" >"$CLOUDWHALE_ROOT/etc/docker/daemon.json" ;;
    "--version "*) echo "NVIDIA Container Toolkit CLI version 1.20.0" ;;
esac
"""

SOON = f"""\
case $1 in -k) shift 3; set -- -k 1 1 "$@" ;; esac
exec {shutil.which("timeout")} "$@"
"""
"""Instead of `timeout`: the limit of a phase is a second."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with a_machine(tmp_path) as made:
        yield made


def has_docker(machine: Machine, version: str = "28.3.1") -> None:
    machine.fake("docker", DOCKER)
    machine.fake("dockerd", 'rm -f "$STATE/docker-is-down"')
    machine.fake("service", "exit 1")
    (machine.folder / "docker-version").write_text(version)


def has_gpus(machine: Machine, wanted: int = 2, there: int = 2, inside: int = 2) -> None:
    """Give it GPUs: as device files, in its driver's eyes, and in a container."""
    machine.with_gpus(wanted, there)
    machine.fake("nvidia-smi", SMI)
    machine.fake("modprobe")
    (machine.folder / "seen").write_text(str(there))
    (machine.folder / "inside").write_text(str(inside))


def is_ubuntu(machine: Machine, kernel: str = "6.8.0-1040-aws") -> None:
    (machine.root / "etc/os-release").write_text('ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n')
    machine.fake("uname", f"echo {kernel}", told=False)
    machine.fake("modprobe")


# -- driver ---------------------------------------------------------------------------------------


def test_the_driver_of_an_image_is_taken_as_it_is(machine: Machine) -> None:
    has_gpus(machine)
    booted = machine.first("driver", gpus=2)
    assert booted.says("driver") == "the image's driver 580.82.07 sees 2 GPUs"
    assert not machine.calls("apt-get")


def test_a_driver_whose_module_is_not_loaded_is_loaded(machine: Machine) -> None:
    has_gpus(machine)
    (machine.folder / "smi-says").write_text("couldn't communicate with the NVIDIA driver\n")
    machine.fake("modprobe", 'rm "$STATE/smi-says"')
    assert machine.first("driver", gpus=2).phases["driver"] == "done"


def test_a_driver_that_does_not_fit_its_module_ends_the_machine(machine: Machine) -> None:
    has_gpus(machine)
    (machine.folder / "smi-says").write_text(
        "Failed to initialize NVML: Driver/library version mismatch\n"
    )
    booted = machine.first("driver", gpus=2)
    assert "version mismatch; choose another `image`" in booted.failed
    assert booted.was_shut_down and not machine.calls("apt-get")


def test_a_plain_ubuntu_gets_signed_modules_of_the_kernel_that_runs(machine: Machine) -> None:
    is_ubuntu(machine)
    machine.has_systemd()
    (machine.folder / "seen").write_text("1")
    machine.package("linux-modules-nvidia-580-server-open-6.8.0-1040-aws")
    machine.package("nvidia-headless-no-dkms-580-server-open")
    machine.package("nvidia-utils-580-server", nvidia_smi=SMI)
    booted = machine.first("driver", gpus=1)
    assert booted.says("driver") == "Ubuntu's driver 580.82.07 sees 1 GPUs"
    assert "modprobe nvidia" in machine.calls()
    # What upgrades by itself must not take the driver away under its module.
    assert "systemctl mask unattended-upgrades.service" in machine.calls("systemctl")


def test_a_kernel_without_signed_modules_has_them_built(machine: Machine) -> None:
    is_ubuntu(machine, "6.8.0-9999-aws")
    (machine.folder / "seen").write_text("1")
    machine.package("nvidia-headless-no-dkms-580-server-open")
    machine.package("nvidia-utils-580-server", nvidia_smi=SMI)
    machine.package("ubuntu-drivers-common", ubuntu_drivers="exit 0")
    assert machine.first("driver", gpus=1).phases["driver"] == "done"
    assert machine.calls("ubuntu-drivers") == [
        "ubuntu-drivers install --gpgpu nvidia:580-server-open"
    ]


def test_gpus_that_talk_through_switches_get_their_fabric_manager(machine: Machine) -> None:
    is_ubuntu(machine)
    device = machine.root / "sys/bus/pci/devices/0000:00:1d.0"
    device.mkdir(parents=True)
    (device / "class").write_text("0x068000\n")
    (device / "vendor").write_text("0x10de\n")
    (machine.folder / "seen").write_text("8")
    machine.package("linux-modules-nvidia-580-server-open-6.8.0-1040-aws")
    machine.package("nvidia-headless-no-dkms-580-server-open")
    machine.package("nvidia-utils-580-server", nvidia_smi=SMI)
    machine.package("nvidia-fabricmanager-580", nv_fabricmanager="exit 0")
    assert machine.first("driver", gpus=8).phases["driver"] == "done"
    assert (machine.bin / "nv-fabricmanager").exists()


def test_a_driver_that_cannot_be_installed_says_what_apt_said(machine: Machine) -> None:
    is_ubuntu(machine)
    machine.package("nothing")
    booted = machine.first("driver", gpus=1)
    assert booted.failed.startswith("driver: apt-get could not install ubuntu-drivers-common: E: ")
    assert booted.was_shut_down
    assert len([one for one in machine.calls("apt-get") if " update" in one]) == 6


def test_a_distribution_without_signed_drivers_is_refused_with_words(machine: Machine) -> None:
    name = "Debian GNU/Linux 12 (bookworm)"
    (machine.root / "etc/os-release").write_text(f'ID=debian\nPRETTY_NAME="{name}"\n')
    booted = machine.first("driver", gpus=1)
    assert f"{name} has no driver" in booted.failed and "choose another `image`" in booted.failed


def test_a_disk_that_is_too_small_says_how_much_is_lacking(machine: Machine) -> None:
    is_ubuntu(machine)
    machine.fake("df", 'echo "Filesystem 1024-blocks Used Available Capacity Mounted on"\n'
                       'echo "/dev/root 8000000 6000000 2097152 75% /"', told=False)  # fmt: skip
    booted = machine.first("driver", gpus=1)
    assert "has 2048 MB of room and the driver needs 3072 MB: 1024 MB are lacking" in booted.failed
    assert booted.was_shut_down


# -- Docker ---------------------------------------------------------------------------------------


def test_docker_of_an_image_stays_and_loses_no_gpus_to_a_reload(machine: Machine) -> None:
    has_docker(machine)
    machine.has_systemd()
    daemon = machine.root / "etc/docker/daemon.json"
    daemon.parent.mkdir()
    daemon.write_text('{"log-level": "warn", "exec-opts": ["native.cgroupdriver=systemd"]}')
    booted = machine.first("docker", gpus=1)
    assert booted.says("docker") == "the image's Docker 28.3.1"
    assert json.loads(daemon.read_text()) == {
        "log-level": "warn", "exec-opts": ["native.cgroupdriver=cgroupfs"],
    }  # fmt: skip
    assert machine.calls("systemctl").count("systemctl restart docker") == 1
    machine.first("docker", gpus=1)
    assert machine.calls("systemctl").count("systemctl restart docker") == 1


def test_without_docker_the_distributions_is_installed(machine: Machine) -> None:
    machine.package("docker.io", docker=VERSION, dockerd="exit 0")
    assert machine.first("docker").says("docker") == "the distribution's Docker 28.3.1"
    assert not (machine.root / "etc/docker/daemon.json").exists()  # no GPUs: as it comes


def test_docker_is_started_where_no_service_manager_is(machine: Machine) -> None:
    has_docker(machine)
    (machine.folder / "docker-is-down").touch()
    (machine.root / "var/log").mkdir(parents=True)
    assert machine.first("docker").phases["docker"] == "done"
    assert [one.strip() for one in machine.calls("dockerd")] == ["dockerd"]


def test_docker_that_does_not_start_says_its_last_error(machine: Machine) -> None:
    has_docker(machine)
    machine.has_systemd()
    (machine.folder / "docker-is-down").touch()
    (machine.folder / "journal").write_text("starting up\nfailed to start daemon: no iptables\n")
    booted = machine.first("docker")
    assert booted.failed == "docker: Docker does not start: failed to start daemon: no iptables"
    assert booted.was_shut_down


def test_a_daemon_file_that_is_broken_is_named(machine: Machine) -> None:
    has_docker(machine)
    (machine.root / "etc/docker").mkdir()
    (machine.root / "etc/docker/daemon.json").write_text("{")
    assert "daemon.json of this image cannot be read" in machine.first("docker", gpus=1).failed


# -- toolkit --------------------------------------------------------------------------------------


def test_a_docker_that_knows_cdi_is_given_gpus_by_it(machine: Machine) -> None:
    has_docker(machine)
    machine.has_systemd()
    machine.fake("nvidia-ctk", CTK)
    (machine.root / "etc/docker").mkdir()
    booted = machine.first("toolkit", gpus=2)
    assert booted.says("toolkit").endswith("1.20.0, GPUs by cdi")
    assert "CLOUDWHALE_GPUS_BY=cdi" in (machine.place / "environment").read_text()
    assert "nvidia-ctk runtime configure --runtime=docker --cdi.enabled" in machine.calls()
    assert "systemctl restart docker" in machine.calls()


@pytest.mark.parametrize("why", ["an older Docker", "no device in the specification"])
def test_where_cdi_does_not_work_the_hook_does(machine: Machine, why: str) -> None:
    has_docker(machine, "24.0.7" if why == "an older Docker" else "29.0.1")
    machine.fake("nvidia-ctk", CTK)
    (machine.root / "etc/docker").mkdir()
    if why != "an older Docker":
        (machine.folder / "no-cdi").touch()
    booted = machine.first("toolkit", gpus=2)
    assert booted.says("toolkit").endswith("GPUs by hook")
    assert "nvidia-ctk runtime configure --runtime=docker" in machine.calls()


def test_without_the_toolkit_nvidias_is_installed_in_a_pinned_version(machine: Machine) -> None:
    has_docker(machine)
    (machine.root / "etc/docker").mkdir()
    machine.fake("curl", 'echo "deb https://nvidia.github.io/libnvidia-container/stable/deb/ /"')
    machine.fake("gpg", 'cat >"$4"')
    for name in ("ca-certificates", "curl", "gnupg", "nvidia-container-toolkit-base",
                 "libnvidia-container-tools", "libnvidia-container1"):  # fmt: skip
        machine.package(name)
    machine.package("nvidia-container-toolkit", nvidia_ctk=CTK)
    older = machine.root / "etc/apt/sources.list.d/nvidia.list"
    older.parent.mkdir(parents=True)
    older.write_text("deb https://nvidia.github.io/libnvidia-container/stable/deb/ /\n")
    booted = machine.first("toolkit", gpus=2)
    assert booted.phases["toolkit"] == "done"
    assert "nvidia-container-toolkit=1.20.0-1" in machine.calls("apt-get")[-1]
    (listed,) = older.parent.iterdir()  # two lists with two keyrings, and apt would refuse both
    assert listed.read_text().startswith("deb [signed-by=")


def test_nvidias_packages_out_of_reach_are_named(machine: Machine) -> None:
    has_docker(machine)
    for name in ("ca-certificates", "curl", "gnupg"):
        machine.package(name)
    machine.fake("gpg", "cat >/dev/null; exit 2")
    machine.fake("curl", "echo 'curl: (6) Could not resolve host' >&2; exit 6")
    booted = machine.first("toolkit", gpus=2)
    assert booted.failed == (
        "toolkit: NVIDIA's packages cannot be reached at "
        "https://nvidia.github.io/libnvidia-container"
    )
    assert booted.was_shut_down


# -- GPUs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["cdi", "hook"])
def test_gpus_are_proved_in_a_container_without_any_registry(machine: Machine, by: str) -> None:
    has_docker(machine)
    has_gpus(machine)
    machine.place.mkdir()
    (machine.place / "environment").write_text(f"CLOUDWHALE_GPUS_BY={by}\n")
    booted = machine.first("gpus", gpus=2)
    assert booted.says("gpus") == "2 GPUs are seen in a container"
    runs = [one for one in machine.calls("docker") if one.startswith("docker run")]
    assert ["--device nvidia.com/gpu=all" in one for one in runs] == [False, True][: len(runs)]
    assert len(runs) == (2 if by == "cdi" else 1)
    assert not [one for one in machine.calls("docker") if "pull" in one]
    assert "nvidia-smi -pm 1" in machine.calls()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for chroot")
def test_the_image_of_the_proof_runs_by_itself(machine: Machine, tmp_path: Path) -> None:
    has_docker(machine)
    has_gpus(machine)
    machine.first("gpus", gpus=2)
    root = tmp_path / "image"
    with tarfile.open(fileobj=io.BytesIO((tmp_path / "image.tar").read_bytes())) as image:
        image.extractall(root, filter="tar")
    words = ["chroot", str(root), "/bin/sh", "-c", "n=1; echo GPUs $((n + 1))"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "GPUs 2\n"


@pytest.mark.parametrize(
    ("there", "inside", "says"),
    [
        (1, 1, "this machine shows 1 of its 2 GPUs as device files"),
        (2, 0, "a container with `--gpus all` sees 0 of 2 GPUs, and starts all the same"),
        (2, 1, "sees 1 of 2 GPUs, and starts all the same"),
    ],
)
def test_fewer_gpus_than_were_rented_end_the_machine(
    machine: Machine, there: int, inside: int, says: str
) -> None:
    has_docker(machine)
    has_gpus(machine, 2, there, inside)
    booted = machine.first("gpus", gpus=2)
    assert says in booted.failed and booted.was_shut_down


def test_a_container_that_does_not_start_with_gpus_says_why(machine: Machine) -> None:
    has_docker(machine)
    has_gpus(machine)
    why = 'could not select device driver "" with capabilities: [[gpu]]'
    (machine.folder / "run-says").write_text(why)
    assert why in machine.first("gpus", gpus=2).failed


def test_a_missing_fabric_manager_is_said_before_cuda_would(machine: Machine) -> None:
    has_docker(machine)
    has_gpus(machine)
    (machine.root / "dev/nvidia-nvswitch0").touch()
    assert "nvidia-fabricmanager is missing" in machine.first("gpus", gpus=2).failed


# -- agent ----------------------------------------------------------------------------------------


def unpacked(machine: Machine, packed: bytes = b"") -> None:
    with tarfile.open(fileobj=io.BytesIO(packed or bundle())) as archive:
        archive.extractall(machine.folder / "bundle", filter="data")


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


# -- all of them ----------------------------------------------------------------------------------


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
