"""What machines are told at boot."""

import shutil
import subprocess

import pytest

from cloudwhale.spi.errors import Denied
from cloudwhale_providers.aws.user_data import MOST_BYTES, user_data
from cloudwhale_providers.sandbox.guests import block

BUNDLE = f"bundles/{'0f' * 32}.tar.gz"


def test_the_first_thing_a_machine_does_is_to_arm_its_watchdog() -> None:
    first, second = user_data("s3://bucket/lab", "eu-west-1", BUNDLE).splitlines()[:2]
    assert first == "#!/bin/sh" and second.startswith("shutdown -h +")


def test_the_block_is_read_without_running_anything() -> None:
    assert block(user_data("s3://bucket/lab", "eu-west-1", BUNDLE)) == {
        "mailbox": "s3://bucket/lab", "region": "eu-west-1", "bundle": BUNDLE,
        "sha256": "0f" * 32,
    }  # fmt: skip


def test_it_is_a_script_that_a_shell_can_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    script = tmp_path_factory.mktemp("boot") / "boot.sh"
    script.write_text(user_data("s3://bucket/lab", "eu-west-1", BUNDLE))
    checks = [["sh", "-n", str(script)]]
    if shutil.which("shellcheck"):
        checks.append(["shellcheck", str(script)])
    for words in checks:
        subprocess.run(words, check=True)


def test_more_than_aws_takes_is_refused_with_the_sizes() -> None:
    with pytest.raises(Denied, match=str(MOST_BYTES)):
        user_data("s3://bucket/" + "x" * MOST_BYTES, "eu-west-1", BUNDLE)


@pytest.mark.parametrize("word", ["s3://b/it's", "s3://b/a\nb"])
def test_what_would_not_be_one_word_to_a_shell_is_refused(word: str) -> None:
    with pytest.raises(Denied):
        user_data(word, "eu-west-1", BUNDLE)


@pytest.mark.parametrize("word", ["b$(reboot)", "b`reboot`", 'b"', "b%s", "b\\n", "b c"])
def test_an_archive_or_a_region_that_a_shell_would_read_is_refused(word: str) -> None:
    for region, bundle in ((word, BUNDLE), ("eu-west-1", word)):
        with pytest.raises(Denied):
            user_data("s3://bucket/lab", region, bundle)
