"""Commands that sentences name lead into the sandbox, where this one was given in there."""

import pytest
from makers import a_job

from cloudwhale.cli.here import ASKED, as_given_here, reason_here, story_here
from cloudwhale.cli.output import say
from cloudwhale.model.reason import Code, Reason
from cloudwhale.reporting.explain import story


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASKED, "true")


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ("`cloudwhale logs a-1` shows it", "`cloudwhale logs a-1 --sandbox` shows it"),
        ("`cloudwhale ps` or `cloudwhale nodes`",
         "`cloudwhale ps --sandbox` or `cloudwhale nodes --sandbox`"),
        ("`cloudwhale run -n x -- ls -l`", "`cloudwhale run -n x --sandbox -- ls -l`"),
        ("`cloudwhale attach r --sandbox`", "`cloudwhale attach r --sandbox`"),
        ("`cloudwhale sandbox stop` ends it", "`cloudwhale sandbox stop` ends it"),
        ("`cloudwhale offers --cpu 8`", "`cloudwhale offers --cpu 8`"),
        ("cloudwhale is no command here", "cloudwhale is no command here"),
    ],
)  # fmt: skip
def test_a_command_gets_the_option_once_and_only_where_it_means_something(
    inside: None, said: str, there: str
) -> None:
    assert as_given_here(said) == there
    assert as_given_here(there) == there


def test_outside_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ASKED, raising=False)
    assert as_given_here("`cloudwhale logs a-1`") == "`cloudwhale logs a-1`"


def test_what_is_said_and_told_has_it(inside: None, capsys: pytest.CaptureFixture[str]) -> None:
    say("See `cloudwhale nodes`.")
    assert capsys.readouterr().out == "See `cloudwhale nodes --sandbox`.\n"
    why = Reason(code=Code.BOOT_FAILED, says="no", change="`cloudwhale doctor aws` looks")
    told = story_here(story(a_job("a-1").but(reason=why), [], []))
    assert told.job.reason is not None
    assert told.job.reason.change == "`cloudwhale doctor aws --sandbox` looks"
    assert reason_here(None) is None
