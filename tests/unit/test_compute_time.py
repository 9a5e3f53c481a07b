"""What becomes of the machines of Compute Engine as time goes by, and what it leaves behind."""

from collections.abc import Iterator

import pytest
from boxed_gce import NOON, PLAIN, TYPE, ZONE, Gce, a_gce, scheduling

from cloudwhale_providers.sandbox.compute.wording import read_at, written_at
from cloudwhale_providers.sandbox.endpoint import (
    Capacity,
    Hang,
    Interruption,
    PriceFactor,
    Reap,
    Weather,
    Which,
)
from cloudwhale_providers.sandbox.endpoint.weather_values import Maintenance

OTHER, THIRD, FOURTH, FIFTH, STUCK = (
    "g2-standard-4", "g2-standard-12", "g2-standard-16", "g2-standard-32", "g2-standard-24",
)  # fmt: skip
TAKEN, MIXED = "compute.instances.preempted", "e2-standard-8"
WEATHER = Weather(
    schedule_late_s=3.0,
    price_factors=(PriceFactor(1000.0, 2.0, Which(TYPE)),),
    interruptions=(Interruption(age_s=100.0, which=Which(OTHER), nth=1),),
    maintenance=(Maintenance(age_s=50.0, which=Which(MIXED), ahead_s=3600.0),),
    reaps=(
        Reap(age_s=60.0, which=Which(THIRD)),
        Reap(which=Which(FOURTH), code="UNSUPPORTED_OPERATION"),
        Reap(which=Which(FIFTH)),
    ),
    hangs=(Hang(Which(STUCK)),),
)


@pytest.fixture(scope="module")
def box() -> Iterator[Gce]:
    with a_gce(WEATHER) as box:
        yield box


def limited(seconds: int, action: str = "DELETE", market: str = "on-demand") -> dict[str, object]:
    duration = {"seconds": str(seconds)}
    return scheduling(market, maxRunDuration=duration, instanceTerminationAction=action)


def is_gone(box: Gce, name: str) -> bool:
    return box.refusal("instances.get", zone=ZONE, instance=name) == (404, "notFound")


# -- the end of its time ---------------------------------------------------------------------


def test_a_machine_whose_time_is_up_is_deleted_and_an_operation_says_why(box: Gce) -> None:
    made = box.made("cw-limited", scheduling=limited(600))
    ends_at = read_at(made["resourceStatus"]["scheduling"]["terminationTimestamp"])
    assert ends_at == box.clock.now() + 600.0
    box.wait(602.0)
    assert box.status("cw-limited") == "RUNNING"
    box.wait(1.0)
    assert ("ended", "cw-limited") in box.heard
    assert "compute.instances.deferredDelete" in box.events()
    box.wait(1.0)
    assert is_gone(box, "cw-limited")


def test_a_machine_whose_time_is_up_may_be_stopped_instead(box: Gce) -> None:
    box.made("cw-halted", scheduling=limited(60, "STOP"))
    box.wait(64.0)
    stopped = box.described("cw-halted")
    assert stopped["status"] == "TERMINATED" and "resourceStatus" not in stopped
    assert "compute.instances.deferredStop" in box.events()


def test_its_time_begins_when_it_runs() -> None:
    with a_gce(Weather(boot_s=40.0)) as box:
        box.insert("cw-late", scheduling=limited(60))
        assert "resourceStatus" not in box.described("cw-late")
        box.wait(99.0)
        assert box.status("cw-late") == "RUNNING"
        box.wait(2.0)
        assert is_gone(box, "cw-late")


def test_a_machine_ends_at_a_time_that_is_said(box: Gce) -> None:
    ends_at = box.clock.now() + 1800.0
    said = written_at(ends_at)
    wanted = scheduling("on-demand", instanceTerminationAction="DELETE", terminationTime=said)
    box.made("cw-dated", scheduling=wanted)
    box.wait(ends_at - box.clock.now())
    assert box.status("cw-dated") == "RUNNING"
    box.wait(4.0)
    assert is_gone(box, "cw-dated")


# -- preemption ------------------------------------------------------------------------------


def test_a_machine_with_a_notice_hears_of_its_end_two_minutes_and_a_half_before(box: Gce) -> None:
    notice = {"seconds": "120"}
    box.made("cw-warned", scheduling=scheduling(preemptionNoticeDuration=notice))
    box.compute.interrupt("cw-warned")
    box.wait(0.0)
    told_at = box.clock.now()
    seen = box.compute.instance("cw-warned")
    assert seen is not None and seen.noticed_at == told_at
    assert (seen.soft_off_at, seen.goes_at) == (told_at + 120.0, told_at + 150.0)
    assert box.status("cw-warned") == "RUNNING" and ("noticed", "cw-warned") in box.heard
    box.wait(120.0)
    assert box.status("cw-warned") == "STOPPING" and ("ended", "cw-warned") not in box.heard
    assert box.events()[-1] == TAKEN
    box.wait(30.0)
    ended = box.compute.instance("cw-warned")
    assert ended is not None and ended.ended_at == int(told_at + 120.0)  # it is charged no longer
    assert ("ended", "cw-warned") in box.heard and box.events()[-1] == TAKEN
    box.wait(1.0)
    assert is_gone(box, "cw-warned")


def test_a_machine_without_a_notice_has_thirty_seconds(box: Gce) -> None:
    box.made("cw-curt")
    box.compute.interrupt("cw-curt")
    assert box.status("cw-curt") == "STOPPING"
    seen = box.compute.instance("cw-curt")
    assert seen is not None and seen.goes_at == box.clock.now() + 30.0
    box.wait(29.0)
    assert ("ended", "cw-curt") not in box.heard
    box.wait(2.0)
    assert is_gone(box, "cw-curt")


def test_a_machine_that_shuts_down_when_it_is_told_to_was_preempted(box: Gce) -> None:
    box.made("cw-obedient")
    box.compute.interrupt("cw-obedient")
    box.wait(10.0)
    box.compute.end("cw-obedient")
    box.wait(1.0)
    assert is_gone(box, "cw-obedient")
    seen = box.compute.instance("cw-obedient")
    assert seen is not None and seen.reason == TAKEN


def test_a_machine_that_is_preempted_before_it_runs_never_does() -> None:
    with a_gce(Weather(boot_s=20.0)) as box:
        box.insert("cw-early")
        box.wait(5.0)
        box.compute.interrupt("cw-early")
        for _ in range(3):
            box.wait(9.0)
            assert box.status("cw-early") == "STOPPING"
        box.wait(10.0)
        assert is_gone(box, "cw-early") and box.heard == [
            ("noticed", "cw-early"),
            ("ended", "cw-early"),
        ]


def test_a_preempted_machine_may_be_kept_stopped(box: Gce) -> None:
    box.made("cw-frozen", scheduling=scheduling(instanceTerminationAction="STOP"))
    box.compute.interrupt("cw-frozen")
    box.wait(31.0)
    assert box.status("cw-frozen") == "TERMINATED"


def test_the_weather_takes_spot_machines_back_at_their_age(box: Gce) -> None:
    box.made("cw-spot", kind=OTHER)
    box.wait(99.0)
    assert box.status("cw-spot") == "RUNNING"
    box.wait(32.0)
    assert is_gone(box, "cw-spot")


def test_machines_on_demand_are_not_taken_back() -> None:
    rule = Interruption(age_s=10.0, which=Which(TYPE))
    with a_gce(Weather(interruptions=(rule,))) as box:
        box.made("cw-bought", scheduling=scheduling("on-demand"))
        box.wait(500.0)
        assert box.status("cw-bought") == "RUNNING"


# -- other ends ------------------------------------------------------------------------------


def test_a_host_error_stops_a_machine_without_a_word(box: Gce) -> None:
    box.made("cw-broken", kind=THIRD)
    box.wait(61.0)
    assert box.status("cw-broken") == "TERMINATED"
    assert "compute.instances.hostError" in box.events()
    assert ("noticed", "cw-broken") not in box.heard


def test_a_machine_may_fail_while_it_is_made(box: Gce) -> None:
    assert box.failure("cw-still", kind=FIFTH)["code"] == "INTERNAL_ERROR"
    box.wait(1.0)
    assert is_gone(box, "cw-still") and ("started", "cw-still") not in box.heard
    assert box.compute.instance("cw-still") is None, "nothing is charged for it"


def test_a_machine_that_is_preempted_while_it_is_made_stays_stopped_with_its_disk(box: Gce) -> None:
    assert box.failure("cw-taken", kind=FOURTH)["code"] == "UNSUPPORTED_OPERATION"
    box.wait(500.0)
    assert box.status("cw-taken") == "TERMINATED"
    assert box.ask("disks.get", zone=ZONE, disk="cw-taken")["users"]
    box.ask("instances.delete", zone=ZONE, instance="cw-taken")
    box.wait(1.0)
    assert is_gone(box, "cw-taken")
    assert box.refusal("disks.get", zone=ZONE, disk="cw-taken") == (404, "notFound")
    assert [one for one in box.heard if "cw-taken" in one] == []


def test_a_machine_whose_launch_fails_is_seen_for_a_moment() -> None:
    scarce = Weather(operation_s=10.0, capacity=(Capacity(Which(TYPE), 0),))
    with a_gce(scarce) as box:
        operation = box.insert("cw-ghost")
        assert box.status("cw-ghost") == "PROVISIONING"
        assert box.compute.instances() == []
        box.wait(10.0)
        done = box.operation(operation)
        info = done["error"]["errors"][0]["errorDetails"][1]["errorInfo"]
        assert (info["reason"], info["metadatas"]["zone"]) == ("resource_availability", ZONE)
        assert is_gone(box, "cw-ghost") and box.heard == []
        assert box.refusal("disks.get", zone=ZONE, disk="cw-ghost") == (404, "notFound")


def test_maintenance_is_announced_and_stops_a_machine(box: Gce) -> None:
    box.made("cw-repaired", kind=MIXED, scheduling=scheduling("on-demand"))
    box.wait(51.0)
    seen = box.compute.instance("cw-repaired")
    assert seen is not None and seen.maintained_at == box.clock.now() + 3599.0
    box.wait(3600.0)
    assert box.status("cw-repaired") == "TERMINATED"
    assert "compute.instances.terminateOnHostMaintenance" in box.events()


def test_a_machine_may_run_whose_system_never_comes_up(box: Gce) -> None:
    box.made("cw-stuck", kind=STUCK)
    seen = box.compute.instance("cw-stuck")
    assert seen is not None and seen.hangs and seen.state == "running"


def test_an_end_that_comes_twice_is_one(box: Gce) -> None:
    box.made("cw-twice", kind=PLAIN)
    box.compute.end("cw-twice")
    first = box.compute.instance("cw-twice")
    box.wait(5.0)
    box.compute.end("cw-twice")
    box.compute.interrupt("cw-twice")
    box.compute.end("nobody")
    again = box.compute.instance("cw-twice")
    assert first is not None and again is not None and again.ended_at == first.ended_at
    assert box.heard.count(("ended", "cw-twice")) == 1


# -- prices ----------------------------------------------------------------------------------


def test_spot_prices_move_with_the_weather_and_a_machine_keeps_its_own(box: Gce) -> None:
    before = box.compute.price_usd_h(TYPE, ZONE, "spot", NOON)
    after = box.compute.price_usd_h(TYPE, ZONE, "spot", NOON + 1000.0)
    assert before and after == before * 2
    assert box.compute.price_usd_h(TYPE, ZONE, "on-demand", NOON + 1000.0) == (
        box.compute.price_usd_h(TYPE, ZONE, "on-demand", NOON)
    )
    assert box.compute.price_usd_h("n1-standard-8", ZONE, "spot", NOON) is None


def test_the_next_thing_that_happens_is_known() -> None:
    with a_gce(Weather(boot_s=20.0)) as box:
        assert box.compute.next_at() is None
        box.insert("cw-next", kind=PLAIN)
        box.wait(0.0)
        assert box.compute.next_at() == NOON + 10.0  # half the way it is staged
        box.wait(20.0)
        assert box.compute.asked_lately() and not box.compute.asked_lately()
