"""The real user data run on this host among stand-ins: from nothing to an agent, or to an end."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
import small_s3
from first_boots import BOOT, MACHINE, NODE, Machine, a_machine, bundle

from cloudwhale.clock import SystemClock
from cloudwhale.mailbox.documents import BootTold
from cloudwhale_providers.aws.user_data import user_data

PHASES = ["watchdog", "bundle", "driver", "docker", "toolkit", "gpus", "agent"]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with a_machine(tmp_path) as made:
        made.fake("docker", "echo 28.3.1")
        made.fake("dockerd")
        yield made


def store_is_ahead(machine: Machine, monkeypatch: pytest.MonkeyPatch, by_s: float) -> None:
    """Let the store's clock differ until a file is removed."""
    (machine.folder / "ahead").touch()

    def date(clerk: small_s3.Clerk, timestamp: float | None = None) -> str:
        off = by_s if (machine.folder / "ahead").exists() else 0.0
        return formatdate(SystemClock().now() + off, usegmt=True)

    monkeypatch.setattr(small_s3.Clerk, "date_time_string", date)


# -- from nothing to an agent ---------------------------------------------------------------------


def test_a_machine_boots_to_an_agent_and_tells_each_phase(machine: Machine) -> None:
    booted = machine.boots()
    assert booted.code == 0, booted.console
    assert list(booted.phases.items()) == [(name, "done") for name in PHASES]
    told = [BootTold.model_validate(one) for one in booted.told]
    assert [one.took_s is None for one in told] == [one.state == "begun" for one in told]
    assert [one.at for one in told] == sorted(one.at for one in told)
    started = booted.agent()
    assert f"--node={NODE}" in started["words"] and "--mailbox=s3://bucket/lab" in started["words"]
    assert started["region"] == "us-east-1"
    (lease,) = (one for one in started["words"] if one.startswith("--lease="))
    number, left_s = lease.removeprefix("--lease=").split(":")
    assert number == "1" and 5300 < int(left_s) <= 5400  # counted from the launch
    assert machine.calls("shutdown") == ["shutdown -h +30", "shutdown -c"]


@pytest.mark.parametrize("role", ["", "AROA0123456789ABCDEF0"])
def test_a_machine_tells_its_boot_behind_its_door_and_its_agent_which_that_is(
    machine: Machine, role: str
) -> None:
    machine.tagged(role=role)
    booted = machine.boots()
    assert booted.code == 0, booted.console
    assert list(booted.phases) == PHASES, "they are where the controller looks"
    door = f"{role}:{MACHINE}" if role else ""
    assert f"--door={door}" in booted.agent()["words"]


def test_a_lease_shorter_than_half_an_hour_ends_the_machine_sooner(machine: Machine) -> None:
    machine.tagged(lease="1:600")
    machine.boots()
    assert machine.calls("shutdown")[:2] == ["shutdown -h +30", "shutdown -h +11"]


def test_a_metadata_service_that_fails_for_a_while_holds_nobody_up(machine: Machine) -> None:
    machine.metadata.fails = 3
    machine.environment["CLOUDWHALE_PATIENCE_S"] = "30"
    assert machine.boots().phases["agent"] == "done"


def test_a_slow_metadata_service_is_waited_for(machine: Machine) -> None:
    machine.metadata.slow_s = 0.1
    assert machine.boots().phases["agent"] == "done"


@pytest.mark.parametrize("way", ["chronyc", "timedatectl", "date"])
def test_a_clock_that_is_off_is_set_by_what_there_is(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    store_is_ahead(machine, monkeypatch, 300.0)
    machine.fake(way, 'rm "$STATE/ahead"')
    booted = machine.boots()
    assert booted.phases["agent"] == "done"
    (asked,) = machine.calls(way)
    if way == "date":
        assert 298 <= float(asked.rpartition("@")[2]) - booted.told[0]["at"] <= 304


# -- to an end ------------------------------------------------------------------------------------


def test_a_clock_five_minutes_off_that_cannot_be_set_ends_the_machine(machine: Machine) -> None:
    begin = SystemClock().now()
    machine.environment["CLOUDWHALE_CLOCK"] = f"{begin}:1:{begin - 300}"
    machine.fake("date")
    booted = machine.boots()
    assert booted.failed.startswith("watchdog: this machine's clock is 30")
    assert "s behind the mailbox's, and could not be set; more than 30 s is not" in booted.failed
    assert booted.was_shut_down
    assert not machine.calls("date")  # where time is pretended nobody sets this host's clock


def test_a_bundle_with_another_content_is_never_unpacked(machine: Machine) -> None:
    key = f"bundles/{'0f' * 32}.tar.gz"
    booted = machine.boots(key=key)
    assert booted.failed.startswith(f"bundle: {key} holds something else, by its SHA-256 ")
    assert booted.was_shut_down and not list(machine.place.glob("*/boot"))


def test_a_bundle_without_a_first_boot_is_named(machine: Machine) -> None:
    machine.archive = bundle(boot=machine.root)
    assert "has no boot/first.sh" in machine.boots().failed


def test_a_disk_without_room_for_the_bundle_says_how_much_is_lacking(machine: Machine) -> None:
    machine.fake("df", 'echo head\necho "/dev/root 8000000 7000000 409600 95% /"', told=False)
    booted = machine.boots()
    assert booted.failed == (
        "bundle: the disk has 400 MB of room, 1024 are needed: 624 MB are lacking"
    )
    assert booted.was_shut_down


def test_tags_that_the_metadata_does_not_show_end_the_machine(machine: Machine) -> None:
    machine.tagged(lease="")
    booted = machine.boots()
    assert "shows no tag cloudwhale:lease of this machine" in booted.console
    assert booted.was_shut_down


def test_a_metadata_service_that_only_fails_ends_the_machine(machine: Machine) -> None:
    machine.metadata.fails = 1_000
    booted = machine.boots()
    assert "the metadata service answers 500 (tried for 2 s)" in booted.console
    assert booted.was_shut_down and booted.code == 1


def test_a_machine_without_a_role_says_which_setting_names_one(machine: Machine) -> None:
    for path in [one for one in machine.metadata.documents if "security-credentials" in one]:
        del machine.metadata.documents[path]
    booted = machine.boots()
    assert "`instance_profile` of [clouds.aws] names one" in booted.console
    assert booted.was_shut_down


def test_a_shutdown_that_cannot_wait_is_waited_for(machine: Machine) -> None:
    machine.fake("shutdown", "case $2 in +*) exit 1 ;; esac")
    machine.fake("sleep", told=False)
    machine.boots()
    assert machine.calls("shutdown")[:2] == ["shutdown -h +30", "shutdown -h now"]


def test_a_clock_that_is_set_does_not_bring_the_end_near(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_is_ahead(machine, monkeypatch, 7200.0)
    del machine.metadata.documents["dynamic/instance-identity/document"]  # it has no such time
    machine.fake("date", 'rm "$STATE/ahead"')
    machine.boots()
    order = [one.split(" -u")[0] for one in machine.calls() if one.split()[0] != "docker"]
    assert order == ["shutdown -h +30", "shutdown -c", "date", "shutdown -h +30", "shutdown -c"]


def test_a_machine_that_starts_again_before_it_has_an_agent_ends(machine: Machine) -> None:
    again = machine.root / "var/lib/cloud/scripts/per-boot/cloudwhale"
    machine.tagged(gpus="1")  # it shows none, so its boot fails
    machine.fake("apt-get", "exit 100")
    (machine.root / "etc/os-release").write_text("ID=debian\n")
    assert machine.boots().failed
    machine.calls_file.unlink()
    subprocess.run([str(again)], env=machine.environment, check=True)
    assert machine.calls() == ["shutdown -h now"]


def test_a_machine_that_starts_again_with_an_agent_stays(machine: Machine) -> None:
    machine.boots()
    machine.calls_file.unlink()
    again = machine.root / "var/lib/cloud/scripts/per-boot/cloudwhale"
    subprocess.run([str(again)], env=machine.environment, check=True)
    assert machine.calls() == []


# -- as text --------------------------------------------------------------------------------------


def test_every_script_of_a_machine_is_clean_to_the_shells_critic(tmp_path: Path) -> None:
    critic = shutil.which("shellcheck")
    if critic is None:
        assert not os.environ.get("CI"), "CI must look at every script"
        pytest.skip("needs shellcheck")
    script = tmp_path / "user-data.sh"
    script.write_text(user_data("s3://bucket/lab", "eu-west-1", f"bundles/{'0f' * 32}.tar.gz"))
    words = [critic, "-x", str(script), *map(str, sorted(BOOT.glob("*.sh")))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "" and done.returncode == 0
