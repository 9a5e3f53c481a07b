"""Commands that sentences name lead into the sandbox, where this one was given in there."""

import pytest
from makers import a_job

from cloudwhale.cli.here import document_here, reason_here, sheet_here, story_here
from cloudwhale.cli.output import emit, say, stdout_paper
from cloudwhale.control.given import ASKED, as_given_here
from cloudwhale.control.notifying.message import message_of
from cloudwhale.model.notice import Notice, NoticeKind
from cloudwhale.model.reason import Code, Reason
from cloudwhale.reporting.explain import story
from cloudwhale.reporting.sheet import Column, Sheet, cells


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


def test_tables_have_it_wherever_they_name_a_command(
    inside: None, capsys: pytest.CaptureFixture[str]
) -> None:
    see, there = "see `cloudwhale leaks`", "see `cloudwhale leaks --sandbox`"
    sheet = Sheet((Column("why"),), (cells(see),), see, (see,), (see,))
    assert sheet_here(sheet) == Sheet((Column("why"),), (cells(there),), there, (there,), (there,))
    stdout_paper().sheet(sheet)
    assert capsys.readouterr().out.count(there) == 3, "title, row and note; asides are for people"


def test_documents_have_it_in_sentences_and_leave_alone_what_users_wrote(
    inside: None, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"command": "`cloudwhale ps`", "reason": {"says": "no", "change": "`cloudwhale ps`"}}
    assert document_here({"jobs": [job]}) == {
        "jobs": [{**job, "reason": {"says": "no", "change": "`cloudwhale ps --sandbox`"}}]
    }
    emit({"jobs": [job]})
    assert capsys.readouterr().out.count("--sandbox") == 1


def test_what_people_are_told_elsewhere_has_it(inside: None) -> None:
    change = "`cloudwhale resume a-1` queues it again"
    notice = Notice(id="n", kind=NoticeKind.PARKED, at=0.0, subject="a-1", name="a", change=change)
    message = message_of(notice)
    assert "`cloudwhale explain a-1 --sandbox`" in message.text
    assert "`cloudwhale resume a-1 --sandbox` queues it again" in message.text
    assert message.facts["change"] == "`cloudwhale resume a-1 --sandbox` queues it again"
