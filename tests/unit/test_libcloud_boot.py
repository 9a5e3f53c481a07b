"""The real user data of a machine behind libcloud, run on this host among stand-ins."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import small_s3
from first_boots import NODE, Machine, Metadata
from renting_libcloud import KEYS, a_request

from cloudwhale.clock import SystemClock
from cloudwhale.model.rental import Lease
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.libcloud.user_data import user_data

BUNDLE = f"bundles/{'0f' * 32}.tar.gz"
PHASES = ["watchdog", "bundle", "driver", "docker", "toolkit", "gpus", "agent"]


class PlainMachine(Machine):
    """A machine without a metadata service: it knows what it was told."""

    lease_s = 5400.0
    gives: Mapping[str, str] = KEYS

    def __init__(self, folder: Path, store: str) -> None:
        super().__init__(folder, store, Metadata(), "")
        for name in ("AWS_ENDPOINT_URL", "AWS_EC2_METADATA_SERVICE_ENDPOINT"):
            del self.environment[name]

    def told_at_boot(self, key: str) -> str:
        now = SystemClock().now()
        until = now + self.lease_s
        lease = Lease(number=3, watched_until=until, away_until=until, stop_at=until)
        request = a_request(NODE, mailbox=self.mailbox, bundle=key, lease=lease, stop_at=until)
        return user_data(request, "lab", now, {**self.gives, "AWS_ENDPOINT_URL": self.store_url})


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[PlainMachine]:
    with small_s3.serving() as store:
        made = PlainMachine(tmp_path, store["AWS_ENDPOINT"])
        made.fake("docker", "echo 28.3.1")
        made.fake("dockerd")
        yield made


def test_a_machine_boots_to_its_agent_with_nothing_but_what_it_was_told(
    machine: PlainMachine,
) -> None:
    machine.has_systemd()
    booted = machine.boots()
    assert booted.code == 0, booted.console
    assert list(booted.phases) == PHASES and set(booted.phases.values()) == {"done"}
    assert machine.calls("shutdown")[0] == "shutdown -h +30"
    agent = (machine.place / "agent").read_text()
    assert f"--node='{NODE}'" in agent and "--lease='3:5" in agent and "--notices=''" in agent


def test_its_keys_lie_where_root_alone_reads_and_in_the_agents_environment(
    machine: PlainMachine,
) -> None:
    machine.has_systemd()
    machine.boots()
    kept = machine.place / "environment"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert f"AWS_SECRET_ACCESS_KEY={KEYS['AWS_SECRET_ACCESS_KEY']}\n" in kept.read_text()
    assert "TOLD_" not in kept.read_text()


def test_a_machine_without_a_key_ends_itself_and_says_why(machine: PlainMachine) -> None:
    machine.gives = {}
    booted = machine.boots()
    assert booted.code != 0
    assert "was given no key" in booted.console
    assert machine.calls("shutdown")[-1] == "shutdown -h now"


def test_a_short_lease_brings_the_end_near(machine: PlainMachine) -> None:
    machine.lease_s = 240.0
    machine.boots()
    (near,) = [one for one in machine.calls("shutdown") if one.startswith("shutdown -h +")][1:]
    assert int(near.removeprefix("shutdown -h +")) <= 5


def test_it_is_a_script_that_a_shell_can_read(tmp_path: Path) -> None:
    script = tmp_path / "boot.sh"
    script.write_text(user_data(a_request(NODE, bundle=BUNDLE), "lab", 0.0, KEYS))
    subprocess.run(["sh", "-n", str(script)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-s", "sh", str(script)], check=True)


def test_what_is_longer_than_clouds_take_is_refused() -> None:
    with pytest.raises(Denied, match="bytes"):
        user_data(a_request(NODE, bundle=BUNDLE), "lab", 0.0, {"LONG": "a" * 20_000})
