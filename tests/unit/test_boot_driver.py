"""The driver of a machine's GPUs, and the proof that containers see them."""

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from boot_stand_ins import SMI, has_docker, has_gpus, is_ubuntu
from first_boots import Machine, a_machine
from unpacking import unpack


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with a_machine(tmp_path) as made:
        yield made


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
    (masked,) = (one for one in machine.calls("systemctl") if "mask --now" in one)
    assert "unattended-upgrades.service" in masked and "apt-daily.timer" in masked


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
        unpack(image, root, "tar")
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


def test_a_container_without_the_module_that_cuda_needs_is_refused(machine: Machine) -> None:
    has_docker(machine)
    has_gpus(machine)
    (machine.root / "dev/nvidia-uvm").touch()
    assert "has no /dev/nvidia-uvm: CUDA would not start" in machine.first("gpus", gpus=2).failed
    (machine.folder / "uvm-inside").touch()
    assert machine.first("gpus", gpus=2).phases["gpus"] == "done"


def test_a_missing_fabric_manager_is_said_before_cuda_would(machine: Machine) -> None:
    has_docker(machine)
    has_gpus(machine)
    (machine.root / "dev/nvidia-nvswitch0").touch()
    assert "nvidia-fabricmanager is missing" in machine.first("gpus", gpus=2).failed
