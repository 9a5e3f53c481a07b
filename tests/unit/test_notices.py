"""A rented machine hears that it goes: EC2 itself is asked, and each notice is told once."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cloudwhale.agent.noticing import Noticing
from cloudwhale.agent.seen import Seen, Warned
from cloudwhale.clock import SystemClock
from cloudwhale.plugins import NOTICES, load
from cloudwhale.spi.notices import Notice
from cloudwhale_providers.aws_notices import ENDPOINT, AwsNotices
from cloudwhale_providers.sandbox.metadata import MetadataService

TAKEN = "meta-data/spot/instance-action"
MAY_GO = "meta-data/events/recommendations/rebalance"


class Machine:
    """A machine with a metadata service of its own."""

    def __init__(self, service: MetadataService) -> None:
        self.says: dict[str, str] = {"meta-data/instance-id": "i-1"}
        self.url = service.add("i-1", lambda: self.says)
        self.service = service

    def goes(self, at: str, action: str = "terminate") -> None:
        self.says[TAKEN] = json.dumps({"action": action, "time": at})


@contextmanager
def machine(clock_s: list[float]) -> Iterator[Machine]:
    service = MetadataService(lambda: clock_s[0])
    try:
        yield Machine(service)
    finally:
        service.close()


@pytest.fixture
def here() -> Iterator[Machine]:
    with machine([0.0]) as found:
        yield found


def test_a_machine_that_nobody_takes_hears_nothing(here: Machine) -> None:
    assert AwsNotices(here.url).look() is None


def test_an_interruption_says_when(here: Machine) -> None:
    notices = AwsNotices(here.url)
    assert notices.look() is None
    here.goes("2026-11-30T12:02:00Z")
    assert notices.look() == Notice(
        goes_at=1796040120.0, says="AWS takes this machine back (terminate) at 12:02:00 UTC"
    )


def test_a_rebalance_recommendation_says_that_it_may_go(here: Machine) -> None:
    here.says[MAY_GO] = json.dumps({"noticeTime": "2026-11-30T12:00:00Z"})
    found = AwsNotices(here.url).look()
    assert found is not None and found.goes_at is None


def test_a_token_that_has_run_out_is_asked_for_anew() -> None:
    clock = [0.0]
    with machine(clock) as here:
        notices = AwsNotices(here.url)
        assert notices.look() is None
        clock[0] = 21_601.0
        here.goes("2026-11-30T12:02:00Z")
        assert notices.look() is not None


def test_words_that_cannot_be_read_are_no_notice(here: Machine) -> None:
    here.says[TAKEN] = "terminate, soon"
    assert AwsNotices(here.url).look() is None
    here.says[TAKEN] = json.dumps({"action": "terminate", "time": "soon"})
    assert AwsNotices(here.url).look() is None
    here.says[TAKEN] = json.dumps(["terminate"])
    assert AwsNotices(here.url).look() is None


def test_a_service_that_is_gone_says_nothing_and_is_not_waited_for(here: Machine) -> None:
    notices = AwsNotices(here.url)
    here.service.remove("i-1")
    clock = SystemClock()
    begins = clock.steady()
    assert notices.look() is None
    assert clock.steady() - begins < 5.0


def test_the_environment_says_where_the_service_is(
    here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, here.url)
    here.goes("2026-11-30T12:02:00Z")
    notices = load(NOTICES, "aws")()
    assert notices.look() is not None


def test_each_notice_is_told_once_and_a_recommendation_after_it_never(here: Machine) -> None:
    told: list[Seen] = []
    notices = AwsNotices(here.url)
    noticing = Noticing(lambda: notices, told.append)
    noticing.look(notices)
    here.says[MAY_GO] = json.dumps({"noticeTime": "2026-11-30T12:00:00Z"})
    noticing.look(notices)
    noticing.look(notices)
    here.goes("2026-11-30T12:02:00Z")
    noticing.look(notices)
    del here.says[TAKEN]
    noticing.look(notices)
    assert [one.goes_at for one in told if isinstance(one, Warned)] == [None, 1796040120.0]
