"""A rented machine hears that it goes: EC2 itself is asked, and each notice is told once."""

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager

import pytest

from cloudwhale.agent.noticing import Noticing
from cloudwhale.agent.seen import Seen, Warned
from cloudwhale.clock import SystemClock
from cloudwhale.plugins import NOTICES, load
from cloudwhale.spi.notices import Notice
from cloudwhale_providers.aws_notices import ENDPOINT, OTHERS_EVERY, AwsNotices
from cloudwhale_providers.sandbox.metadata import FINE, MetadataService, Trouble

TAKEN = "meta-data/spot/instance-action"
MAY_GO = "meta-data/events/recommendations/rebalance"
SCHEDULED = "meta-data/events/maintenance/scheduled"


class Machine:
    """A machine with a metadata service of its own."""

    def __init__(self, service: MetadataService) -> None:
        self.says: dict[str, str] = {"meta-data/instance-id": "i-1"}
        self.trouble = FINE
        self.url = service.add("i-1", lambda: self.says, trouble=lambda: self.trouble)
        self.service = service

    def goes(self, at: str, action: str = "terminate") -> None:
        self.says[TAKEN] = json.dumps({"action": action, "time": at})

    def is_maintained(self, *events: Mapping[str, str]) -> None:
        usual = {
            "NotBefore": "1 Dec 2026 09:00:43 GMT", "Code": "instance-retirement",
            "Description": "it degrades", "EventId": "instance-event-1",
            "NotAfter": "1 Dec 2026 09:17:23 GMT", "State": "active",
        }  # fmt: skip
        self.says[SCHEDULED] = json.dumps([{**usual, **event} for event in events])


@contextmanager
def machine(clock_s: list[float]) -> Generator[Machine]:
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
    assert AwsNotices(here.url).look() == ()


def test_an_interruption_says_when(here: Machine) -> None:
    notices = AwsNotices(here.url)
    assert notices.look() == ()
    here.goes("2026-11-30T12:02:00Z")
    assert notices.look() == (
        Notice(
            goes_at=1796040120.0, says="AWS takes this machine back (terminate) at 12:02:00 UTC"
        ),
    )


def test_a_rebalance_recommendation_says_that_it_may_go(here: Machine) -> None:
    here.says[MAY_GO] = json.dumps({"noticeTime": "2026-11-30T12:00:00Z"})
    (found,) = AwsNotices(here.url).look()
    assert found.goes_at is None


def test_a_token_that_has_run_out_is_asked_for_anew() -> None:
    clock = [0.0]
    with machine(clock) as here:
        notices = AwsNotices(here.url)
        assert notices.look() == ()
        clock[0] = 21_601.0
        here.goes("2026-11-30T12:02:00Z")
        assert notices.look() != ()


def test_words_that_cannot_be_read_are_no_notice(here: Machine) -> None:
    here.says[TAKEN] = "terminate, soon"
    assert AwsNotices(here.url).look() == ()
    here.says[TAKEN] = json.dumps({"action": "terminate", "time": "soon"})
    assert AwsNotices(here.url).look() == ()
    here.says[TAKEN] = json.dumps(["terminate"])
    assert AwsNotices(here.url).look() == ()


def test_a_service_that_is_gone_says_nothing_and_is_not_waited_for(here: Machine) -> None:
    notices = AwsNotices(here.url)
    here.service.remove("i-1")
    clock = SystemClock()
    begins = clock.steady()
    assert notices.look() == ()
    assert clock.steady() - begins < 5.0


def test_the_environment_says_where_the_service_is(
    here: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, here.url)
    here.goes("2026-11-30T12:02:00Z")
    notices = load(NOTICES, "aws")()
    assert notices.look() != ()


def test_each_notice_is_told_once_and_a_recommendation_after_it_never(here: Machine) -> None:
    told: list[Seen] = []
    notices = AwsNotices(here.url)
    noticing = Noticing(lambda: notices, told.append)

    def looks() -> None:
        for _ in range(OTHERS_EVERY):
            noticing.look(notices)

    looks()
    here.says[MAY_GO] = json.dumps({"noticeTime": "2026-11-30T12:00:00Z"})
    looks()
    here.goes("2026-11-30T12:02:00Z")
    looks()
    del here.says[TAKEN]
    looks()
    assert [one.goes_at for one in told if isinstance(one, Warned)] == [None, 1796040120.0]


def test_hibernation_leaves_no_time_whatever_is_said(here: Machine) -> None:
    here.goes("2026-11-30T12:02:00Z", "hibernate")
    (found,) = AwsNotices(here.url).look()
    assert found.at_once and "hibernate" in found.says


@pytest.mark.parametrize("action", ["terminate", "stop"])
def test_two_minutes_are_left_before_a_machine_is_stopped(here: Machine, action: str) -> None:
    here.goes("2026-11-30T12:02:00Z", action)
    (found,) = AwsNotices(here.url).look()
    assert not found.at_once and found.goes_at == 1796040120.0


@pytest.mark.parametrize("code", ["instance-stop", "instance-retirement", "system-reboot"])
def test_maintenance_that_ends_a_machine_says_when(here: Machine, code: str) -> None:
    here.is_maintained({"Code": code})
    assert AwsNotices(here.url).look() == (
        Notice(
            goes_at=1796115643.0,
            says=f"AWS has scheduled {code} for this machine at 2026-12-01 09:00:43 UTC",
        ),
    )


def test_the_soonest_maintenance_comes_first_and_a_recommendation_last(here: Machine) -> None:
    here.is_maintained({}, {"NotBefore": "30 Nov 2026 09:00:43 GMT", "Code": "instance-stop"})
    here.says[MAY_GO] = json.dumps({"noticeTime": "2026-11-30T12:00:00Z"})
    assert [one.goes_at for one in AwsNotices(here.url).look()] == [
        1796029243.0, 1796115643.0, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        {"State": "canceled"}, {"State": "completed"}, {"Code": "system-maintenance"},
        {"NotBefore": "soon"}, {"NotBefore": ""},
    ],
)  # fmt: skip
def test_maintenance_that_ends_nothing_or_cannot_be_read_is_no_notice(
    here: Machine, event: Mapping[str, str]
) -> None:
    here.is_maintained(event)
    assert AwsNotices(here.url).look() == ()


@pytest.mark.parametrize("said", ["[]", "{}", "[1, null]", "no JSON"])
def test_a_list_of_maintenance_that_is_none_is_no_notice(here: Machine, said: str) -> None:
    here.says[SCHEDULED] = said
    assert AwsNotices(here.url).look() == ()


def test_a_service_that_fails_for_a_while_is_asked_again(here: Machine) -> None:
    here.goes("2026-11-30T12:02:00Z")
    notices = AwsNotices(here.url)
    here.trouble = Trouble(code=500)
    assert notices.look() == ()
    here.trouble = FINE
    assert notices.look() != ()


def test_a_slow_service_is_heard_all_the_same(here: Machine) -> None:
    here.goes("2026-11-30T12:02:00Z")
    here.trouble = Trouble(delay_s=0.3)
    assert AwsNotices(here.url).look() != ()


def test_an_interruption_is_asked_for_alone_between_two_looks_at_all(here: Machine) -> None:
    notices = AwsNotices(here.url)
    here.is_maintained({})
    heard = [len(notices.look()) for _ in range(2 * OTHERS_EVERY)]
    assert heard == 2 * [1, *(0 for _ in range(OTHERS_EVERY - 1))]
    here.goes("2026-11-30T12:02:00Z")
    assert notices.look() != ()
