"""Whom a job's `notify` reaches, and what `notify test` says of targets that fail, typed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell
from small_receivers import a_closed_port, a_hook

JOB = 'name: a\ncommand: "true"\nnotify: {on: [completed, failed]}\n'


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path)
    yield typed
    typed.close()


def test_a_job_that_asks_for_notices_which_nobody_gets_is_queued_with_a_warning(
    shell: Shell,
) -> None:
    shell.write("a.yaml", JOB)
    said = shell("submit", "a.yaml", "--json")
    assert said.code == 0 and said.document["runs"]
    assert "Nobody will be told of a (notify: completed, failed)" in said.err
    assert "[notify.NAME]" in said.err
    shell.write("cloudwhale.toml", '[notify.desk]\ncommand = "true"\n')
    assert "Nobody will be told" not in shell("submit", "a.yaml", "--new").err


def test_targets_that_hang_or_refuse_are_tried_and_named(shell: Shell) -> None:
    with a_hook() as hook, a_closed_port() as closed:
        hook.hangs = True
        shell.write(
            "cloudwhale.toml",
            f'[notify.hung]\nwebhook = "{hook.url}"\n'
            f'[notify.mail]\nsmtp = "127.0.0.1:{closed}"\ntls = "none"\n'
            'from = "whale@lab.example"\nto = "ada@lab.example"\n'
            '[notify.desk]\ncommand = "true"\n',
        )
        said = shell("notify", "test", "--json")
    assert said.code == 1
    answers = {one["name"]: (one["arrived"], one["says"]) for one in said.document["targets"]}
    assert answers["desk"] == (True, "true ended with 0")
    assert answers["hung"] == (False, "127.0.0.1 does not answer: nothing in time")
    arrived, says = answers["mail"]
    assert not arrived and "Connection refused" in says and str(closed) in says
