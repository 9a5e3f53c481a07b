"""The real user data of Compute Engine run on this host among stand-ins, and what it asks with."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_gce
import small_s3
from first_boots import NODE, Machine, Metadata, bundle

from cloudwhale.clock import SystemClock
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.first_words import program
from cloudwhale_providers.gcp import machine_store
from cloudwhale_providers.gcp.user_data import MOST_BYTES, user_data
from cloudwhale_providers.machine_asking import Trouble
from cloudwhale_providers.sandbox.guests import block

BUNDLE = f"bundles/{'0f' * 32}.tar.gz"
TOKEN = json.dumps({"access_token": "ya29.dummy", "expires_in": 3599, "token_type": "Bearer"})
PHASES = ["watchdog", "bundle", "driver", "docker", "toolkit", "gpus", "agent"]


class GceMachine(Machine):
    """A machine of Compute Engine before its first boot."""

    def __init__(self, folder: Path, store: str, server: small_gce.Metadata) -> None:
        self.server = server
        super().__init__(folder, store, Metadata(), "")
        for name in ("AWS_ENDPOINT_URL", "AWS_EC2_METADATA_SERVICE_ENDPOINT"):
            del self.environment[name]
        self.environment |= {
            "GCE_METADATA_HOST": server.host,
            "STORAGE_EMULATOR_HOST": store,
        }
        self.mailbox = "gs://bucket/lab"
        server.says("instance/service-accounts/default/token", TOKEN)
        launched = int(SystemClock().now())
        server.says("instance/attributes/cloudwhale-launched-at", str(launched))

    def tagged(self, **tags: str) -> None:
        for name, value in tags.items():
            self.server.says(f"instance/attributes/cloudwhale-{name}", value or None)

    def told_at_boot(self, key: str) -> str:
        return user_data(self.mailbox, "us-central1", key)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[GceMachine]:
    with small_gce.metadata() as server, small_s3.serving() as store:
        made = GceMachine(tmp_path, store["AWS_ENDPOINT"], server)
        made.fake("docker", "echo 28.3.1")
        made.fake("dockerd")
        yield made


# -- the text -------------------------------------------------------------------------------------


def test_the_first_thing_a_machine_does_is_to_arm_its_watchdog() -> None:
    first, second = user_data("gs://bucket/lab", "us-central1", BUNDLE).splitlines()[:2]
    assert first == "#!/bin/sh" and second.startswith("shutdown -h +")


def test_the_block_is_read_without_running_anything() -> None:
    assert block(user_data("gs://bucket/lab", "us-central1", BUNDLE)) == {
        "mailbox": "gs://bucket/lab", "region": "us-central1", "bundle": BUNDLE,
        "sha256": "0f" * 32,
    }  # fmt: skip


def test_it_is_a_script_that_a_shell_can_read_and_nothing_in_it_is_aws(tmp_path: Path) -> None:
    script = tmp_path / "boot.sh"
    script.write_text(user_data("gs://bucket/lab", "us-central1", BUNDLE))
    checks = [["sh", "-n", str(script)]]
    if shutil.which("shellcheck"):
        checks.append(["shellcheck", str(script)])
    for words in checks:
        subprocess.run(words, check=True)
    assert "AWS" not in script.read_text() + program("cloudwhale_providers.gcp")


def test_more_than_gcp_takes_is_refused_with_the_sizes() -> None:
    with pytest.raises(Denied, match=str(MOST_BYTES)):
        user_data("gs://bucket/" + "x" * MOST_BYTES, "us-central1", BUNDLE)


# -- from nothing to an agent, or to an end -------------------------------------------------------


def test_a_machine_boots_to_an_agent_and_tells_each_phase(machine: GceMachine) -> None:
    booted = machine.boots()
    assert booted.code == 0, booted.console
    assert list(booted.phases.items()) == [(name, "done") for name in PHASES]
    words = booted.agent()["words"]
    assert f"--node={NODE}" in words and "--mailbox=gs://bucket/lab" in words
    assert "--door=" in words and "--notices=gcp" in words
    (lease,) = (one for one in words if one.startswith("--lease="))
    number, left_s = lease.removeprefix("--lease=").split(":")
    assert number == "1" and 5300 < int(left_s) <= 5400  # counted from the launch
    assert machine.calls("shutdown") == ["shutdown -h +30", "shutdown -c"]


def test_a_lease_counts_from_the_launch(machine: GceMachine) -> None:
    machine.tagged(**{"launched-at": str(int(SystemClock().now()) - 4800), "lease": "1:5400"})
    machine.boots()
    assert machine.calls("shutdown")[:2] == ["shutdown -h +30", "shutdown -h +11"]


def test_a_metadata_service_that_fails_for_a_while_holds_nobody_up(machine: GceMachine) -> None:
    machine.server.fails = 3
    machine.environment["CLOUDWHALE_PATIENCE_S"] = "30"
    assert machine.boots().phases["agent"] == "done"


def test_a_machine_without_a_service_account_says_which_setting_names_one(
    machine: GceMachine,
) -> None:
    machine.server.says("instance/service-accounts/default/token", None)
    booted = machine.boots()
    assert "`service_account` of [clouds.gcp] names one" in booted.console
    assert booted.was_shut_down


def test_a_machine_that_nobody_gave_a_lease_ends(machine: GceMachine) -> None:
    machine.tagged(lease="")
    booted = machine.boots()
    assert "the metadata service shows no attribute cloudwhale-lease" in booted.console
    assert booted.was_shut_down


def test_a_bundle_with_another_content_is_never_unpacked(machine: GceMachine) -> None:
    machine.archive = bundle(boot=machine.root)
    booted = machine.boots(key=BUNDLE)
    assert booted.failed.startswith(f"bundle: {BUNDLE} holds something else, by its SHA-256 ")
    assert booted.was_shut_down


# -- what it asks with ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mailbox", "host", "url"),
    [
        ("gs://bucket/lab", "", "https://storage.googleapis.com/bucket/lab/boots/a%20b"),
        ("gs://bucket", "", "https://storage.googleapis.com/bucket/boots/a%20b"),
        (
            "gs://bucket/a/b/",
            "http://10.0.0.1:4443/",
            "http://10.0.0.1:4443/bucket/a/b/boots/a%20b",
        ),
        ("gs://bucket/lab", "10.0.0.1:4443", "http://10.0.0.1:4443/bucket/lab/boots/a%20b"),
    ],
)
def test_where_an_object_is(
    monkeypatch: pytest.MonkeyPatch, mailbox: str, host: str, url: str
) -> None:
    monkeypatch.setenv("CLOUDWHALE_MAILBOX", mailbox)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", host)
    assert machine_store.DESK.url_of("boots/a b") == url


def test_an_object_is_created_once_and_a_token_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_store, "token", lambda: "ya29.dummy")
    desk = machine_store.DESK
    shown = desk.headers("PUT", "http://x/b/k", desk.only_new, b"")
    assert shown == {"x-goog-if-generation-match": "0", "authorization": "Bearer ya29.dummy"}


def test_a_time_of_launch_that_cannot_be_read_is_named(machine: GceMachine) -> None:
    machine.tagged(**{"launched-at": "yesterday"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCE_METADATA_HOST", machine.server.host)
        with pytest.raises(Trouble, match="cloudwhale-launched-at"):
            machine_store.DESK.left("1:5400")
