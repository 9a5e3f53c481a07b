"""`doctor aws --fix` as it is typed: what it prints, asks, and does to a settings file."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from boxed_aws import boxed
from shell import Shell, Terminal

from cloudwhale_providers.sandbox.names import ACCOUNT

BUCKET = f"cloudwhale-{ACCOUNT}"
OWN = "# ours\n[clouds.aws]\npin_zone = true\n"


@pytest.fixture(scope="module")
def account() -> Iterator[None]:
    with boxed():
        yield


@pytest.fixture
def shell(account: None, tmp_path: Path) -> Iterator[Shell]:
    allowed = {"AWS_ALLOW_HTTP": "true", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "false"}
    found = Shell(tmp_path, settings=allowed)
    yield found
    found.close()


def test_nobody_who_cannot_be_asked_has_an_account_changed(shell: Shell) -> None:
    done = shell("doctor", "aws", "--fix")
    assert (done.code, "Say -y" in done.err) == (2, True)
    assert not (shell.folder / "cloudwhale.toml").exists()


def test_whoever_says_no_has_nothing_changed(shell: Shell) -> None:
    terminal = Terminal(shell, "doctor", "aws", "--fix")
    terminal.shows("[Y/n]")
    assert f"make the bucket {BUCKET} in us-east-1" in terminal.shown
    terminal.press("n\n")
    assert terminal.ends() == 0
    assert not (shell.folder / "cloudwhale.toml").exists()


def test_the_policy_is_printed_filled_in(shell: Shell) -> None:
    done = shell("doctor", "aws", "--policy")
    assert done.code == 0, done.err
    assert f"arn:aws:s3:::{BUCKET}/cloudwhale/*" in json.dumps(json.loads(done.out))
    assert "ACCOUNT" not in done.out


def test_a_settings_file_that_is_there_is_left_alone_and_shown_what_it_lacks(shell: Shell) -> None:
    shell.write("cloudwhale.toml", OWN)
    done = shell("doctor", "aws", "--fix", "-y", "--json")
    assert done.code == 0, done.err
    assert (shell.folder / "cloudwhale.toml").read_text() == OWN
    assert f'+mailbox = "s3://{BUCKET}/cloudwhale"' in done.err
    told = done.document
    assert tomllib.loads(told["settings"])["mailbox"] == f"s3://{BUCKET}/cloudwhale"
    seen = [*told["there"], *told["mended"]]
    assert "aws bucket" in [row["name"] for row in seen]
    assert {row["state"] for row in (*seen, *told["checks"])} == {"ok"}


def test_again_it_makes_nothing_and_writes_the_settings_where_there_are_none(shell: Shell) -> None:
    assert shell("doctor", "aws", "--fix", "-y").code == 0
    (shell.folder / "cloudwhale.toml").unlink()
    done = shell("doctor", "aws", "--fix", "-y", "--json")
    assert (done.code, done.document["mended"]) == (0, [])
    written = tomllib.loads((shell.folder / "cloudwhale.toml").read_text())
    assert written["clouds"]["aws"]["instance_profile"] == "cloudwhale-machine"
    assert shell("doctor", "aws").code == 0
