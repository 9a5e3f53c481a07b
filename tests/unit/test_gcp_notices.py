"""A machine of Compute Engine hears that it goes: its metadata server says so, once and at once."""

import threading
from collections.abc import Iterator

import pytest
from small_gce import Metadata, metadata

from cloudwhale.agent.noticing import Noticing
from cloudwhale.agent.seen import Seen, Warned
from cloudwhale.clock import SystemClock
from cloudwhale.plugins import NOTICES, load
from cloudwhale_providers.gcp_notices import (
    ENDPOINT,
    GPUS,
    MAINTENANCE,
    NOTICE_S,
    OTHERS_EVERY,
    TAKEN,
    WAITS_S,
    GcpNotices,
)

CLOCK = SystemClock()


@pytest.fixture
def here() -> Iterator[Metadata]:
    with metadata() as server:
        server.says(TAKEN, "FALSE")
        server.says(MAINTENANCE, "NONE")
        yield server


def looks(notices: GcpNotices, here: Metadata, times: int = 1) -> list[float | None]:
    """Look so often, without waiting for a change; return when it says that it goes."""
    found: list[float | None] = []
    for _ in range(times):
        notices._etag = ""  # pyright: ignore[reportPrivateUsage]
        found += [one.goes_in_s for one in notices.look()]
    return found


def test_a_machine_that_nobody_takes_hears_nothing(here: Metadata) -> None:
    assert looks(GcpNotices(here.host), here, 2 * OTHERS_EVERY) == []


def test_thirty_seconds_are_left_where_no_more_were_granted(here: Metadata) -> None:
    here.says(TAKEN, "TRUE")
    (found,) = GcpNotices(here.host).look()
    assert (found.goes_at, found.goes_in_s) == (None, 30.0)
    assert "Google takes this machine back" in found.says


def test_what_was_granted_when_it_was_made_is_what_is_left(here: Metadata) -> None:
    here.says(NOTICE_S, "120")
    here.says(TAKEN, "TRUE")
    assert looks(GcpNotices(here.host), here) == [120.0]


def test_what_was_granted_and_cannot_be_read_is_the_usual(here: Metadata) -> None:
    here.says(NOTICE_S, "soon")
    here.says(TAKEN, "TRUE")
    assert looks(GcpNotices(here.host), here) == [30.0]


def test_the_word_ends_a_wait_that_is_under_way(here: Metadata) -> None:
    notices = GcpNotices(here.host)
    assert notices.look() == ()

    def takes_it() -> None:
        while not any("wait_for_change=true" in one for one in here.asked):
            threading.Event().wait(0.01)
        here.says(TAKEN, "TRUE")

    thread = threading.Thread(target=takes_it)
    begins = CLOCK.steady()
    thread.start()
    found = notices.look()
    thread.join()
    assert [one.goes_in_s for one in found] == [30.0]
    assert CLOCK.steady() - begins < WAITS_S, "it was not waited for to the end"


def test_a_look_without_a_change_takes_seconds(here: Metadata) -> None:
    notices = GcpNotices(here.host)
    begins = CLOCK.steady()
    assert notices.look() == () and notices.look() == ()
    assert CLOCK.steady() - begins < WAITS_S + 5.0


@pytest.mark.parametrize(("gpus", "left_s"), [("1", 3600.0), ("0", 60.0), (None, 60.0)])
def test_maintenance_that_ends_a_machine_says_when(
    here: Metadata, gpus: str | None, left_s: float
) -> None:
    here.says(GPUS, gpus)
    here.says(MAINTENANCE, "TERMINATE_ON_HOST_MAINTENANCE")
    assert looks(GcpNotices(here.host), here) == [left_s]


def test_a_migration_changes_nothing(here: Metadata) -> None:
    here.says(MAINTENANCE, "MIGRATE_ON_HOST_MAINTENANCE")
    assert looks(GcpNotices(here.host), here) == []


def test_a_service_that_fails_says_nothing_and_is_asked_again(here: Metadata) -> None:
    here.says(TAKEN, "TRUE")
    here.says(NOTICE_S, "120")
    here.fails = 2
    notices = GcpNotices(here.host)
    assert notices.look() == ()
    assert looks(notices, here) == [120.0]


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nobody.invalid", "127.0.0.1:x"])
def test_a_service_that_is_not_there_says_nothing_within_seconds(host: str) -> None:
    begins = CLOCK.steady()
    assert GcpNotices(host).look() == ()
    assert CLOCK.steady() - begins < 30.0


def test_it_is_found_by_its_name_and_where_the_environment_says(
    here: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, here.host)
    here.says(TAKEN, "TRUE")
    assert load(NOTICES, "gcp")().look() != ()


def test_each_is_told_once_and_counts_from_when_it_was_first_said(here: Metadata) -> None:
    told: list[Seen] = []
    now = [1000.0]
    notices = GcpNotices(here.host)
    noticing = Noticing(lambda: notices, told.append, lambda: now[0])
    here.says(MAINTENANCE, "TERMINATE_ON_HOST_MAINTENANCE")
    noticing.look(notices)
    now[0] = 1600.0
    here.says(TAKEN, "TRUE")
    for _ in range(3):
        noticing.look(notices)
        now[0] += 5.0
    assert [one.goes_at for one in told if isinstance(one, Warned)] == [1060.0, 1630.0]
