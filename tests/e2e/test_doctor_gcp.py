"""`doctor gcp --fix` as it is typed, against a project of GCP that has nothing yet."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from boxed_gcp import boxed
from shell import Shell, Terminal

from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.storage import Storage

BUCKET = f"cloudwhale-{PROJECT}"
MACHINE = f"cloudwhale-machine@{PROJECT}.iam.gserviceaccount.com"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a bare project's APIs; its buckets hold objects, too."""
    with boxed(tmp_path_factory.mktemp("key")) as box, pytest.MonkeyPatch.context() as patch:
        apis, storage = box.endpoint.project_apis, Storage(box.clock)
        apis.people.accounts.clear()
        apis.buckets.buckets.clear()
        apis.buckets.on_made = storage.make
        try:
            patch.setenv("STORAGE_EMULATOR_HOST", storage.start())
            patch.setenv("GOOGLE_ALLOW_HTTP", "true")
            yield box.endpoint.url
        finally:
            storage.close()


@pytest.fixture
def shell(project: str, tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path)
    found.write("cloudwhale.toml", own(project))
    yield found
    found.close()


def own(url: str) -> str:
    return f'[clouds.gcp]\nproject = "{PROJECT}"\nregions = ["us-central1"]\nendpoint = "{url}"\n'


def test_nobody_who_cannot_be_asked_has_a_project_changed(shell: Shell) -> None:
    done = shell("doctor", "gcp", "--fix")
    assert (done.code, "Say -y" in done.err) == (2, True)


def test_whoever_says_no_has_nothing_changed(shell: Shell) -> None:
    terminal = Terminal(shell, "doctor", "gcp", "--fix")
    terminal.shows("[Y/n]")
    assert f"make the bucket {BUCKET} in us-central1" in terminal.shown
    terminal.press("n\n")
    assert terminal.ends() == 0


def test_the_policy_is_printed_filled_in(shell: Shell) -> None:
    done = shell("doctor", "gcp", "--policy")
    assert done.code == 0, done.err
    assert [one["on"] for one in json.loads(done.out)][2] == f"gs://{BUCKET}"
    assert "CONTROLLER" not in done.out


def test_a_bare_project_is_made_well_and_again_there_is_nothing_to_do(
    shell: Shell, project: str
) -> None:
    done = shell("doctor", "gcp", "--fix", "-y", "--json")
    assert done.code == 0, done.err
    told = done.document
    assert "gcp bucket" in [row["name"] for row in told["mended"]]
    seen = [*told["there"], *told["mended"], *told["checks"]]
    assert {row["state"] for row in seen} == {"ok"}, [one for one in seen if one["state"] != "ok"]
    said = tomllib.loads(told["settings"])
    assert said["mailbox"] == f"gs://{BUCKET}/cloudwhale"
    assert said["clouds"]["gcp"]["service_account"] == MACHINE
    lacking = f'service_account = "{MACHINE}"\n'
    shell.write("cloudwhale.toml", f'mailbox = "{said["mailbox"]}"\n\n{own(project)}{lacking}')
    again = shell("doctor", "gcp", "--fix", "-y", "--json")
    assert (again.code, again.document["mended"]) == (0, [])
    assert shell("doctor", "gcp").code == 0
