"""Docker and NVIDIA's toolkit on a machine: what is there, what is installed, what fails."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from boot_stand_ins import CTK, VERSION, has_docker
from first_boots import Machine, a_machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with a_machine(tmp_path) as made:
        yield made


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


def test_a_docker_that_still_starts_with_other_settings_is_restarted(machine: Machine) -> None:
    has_docker(machine)
    machine.has_systemd()
    machine.fake("systemctl", '[ "$1" != restart ] || rm -f "$STATE/docker-is-down"')
    (machine.folder / "docker-is-down").touch()
    pid = machine.root / "var/run/docker.pid"
    pid.parent.mkdir(parents=True)
    pid.write_text(str(os.getpid()))
    assert machine.first("docker", gpus=1).phases["docker"] == "done"
    assert "systemctl restart docker" in machine.calls()


def test_without_docker_the_distributions_is_installed(machine: Machine) -> None:
    machine.package("apparmor")
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


def a_repository(folder: Path, **programs: str) -> Path:
    """Make a package source of this host: packages by the name of their one program."""
    folder.mkdir()
    entries: list[str] = []
    for program, name in programs.items():
        package = folder / "tree" / name
        (package / "DEBIAN").mkdir(parents=True)
        control = (
            f"Package: {name}\nVersion: 1.0\nArchitecture: all\n"
            f"Maintainer: nobody <nobody@example.org>\nDescription: a stand-in\n"
        )
        (package / "DEBIAN/control").write_text(control)
        path = package / "usr/bin" / program
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        file = folder / f"{name}.deb"
        words = ["dpkg-deb", "--build", "--root-owner-group", str(package), str(file)]
        subprocess.run(words, check=True, capture_output=True)
        body = file.read_bytes()
        entries.append(
            f"{control}Filename: ./{file.name}\nSize: {len(body)}\n"
            f"SHA256: {hashlib.sha256(body).hexdigest()}\n"
        )
    (folder / "Packages").write_text("\n".join(entries))
    return folder


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for dpkg")
@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg")
def test_packages_really_are_installed_from_a_source_that_is_there(machine: Machine) -> None:
    source = a_repository(
        machine.folder / "source", dockerd="docker.io", apparmor_parser="apparmor"
    )
    for folder in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/apt/lists/partial",
                   "var/cache/apt/archives/partial", "etc/apt", "var/log/apt"):  # fmt: skip
        (machine.root / folder).mkdir(parents=True, exist_ok=True)
    (machine.root / "var/lib/dpkg/status").touch()
    (machine.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{source} ./\n")
    configuration = machine.folder / "apt.conf"
    configuration.write_text(
        f'Dir "{machine.root}/";\nDir::State::status "{machine.root}/var/lib/dpkg/status";\n'
        'Dir::Bin::methods "/usr/lib/apt/methods";\nDir::Bin::dpkg "/usr/bin/dpkg";\n'
        'APT::Sandbox::User "root";\n'
        f'DPkg::Options {{ "--root={machine.root}"; "--log=/dev/null"; }};\n'
    )
    real = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
    installed = machine.root / "usr/bin/dockerd"
    machine.fake(
        "apt-get",
        f'{real} APT_CONFIG={configuration} /usr/bin/apt-get "$@" || exit\n'
        f'[ ! -e "{installed}" ] || cp "{installed}" "{machine.bin}/"',
    )
    machine.fake("docker", VERSION)
    booted = machine.first("docker")
    assert booted.says("docker") == "the distribution's Docker 28.3.1", booted.console
    status = (machine.root / "var/lib/dpkg/status").read_text()
    assert status.count("Status: install ok installed") == 2
