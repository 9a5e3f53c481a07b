"""Machines of the box's Compute Engine: how they are made, listed, changed and ended."""

from collections.abc import Iterator

import pytest
from boxed_gce import NOON, PLAIN, TYPE, ZONE, Gce, a_gce, body, disk, metadata

from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT
from cloudwhale_providers.sandbox.endpoint import Weather

UUID = "11111111-2222-4333-8444-{:012d}"


@pytest.fixture(scope="module")
def box() -> Iterator[Gce]:
    with a_gce() as box:
        yield box


@pytest.fixture(scope="module")
def slow() -> Iterator[Gce]:
    with a_gce(Weather(boot_s=20.0, stopping_s=5.0, operation_s=10.0, unseen_s=3.0)) as box:
        yield box


def gone(box: Gce, name: str, zone: str = ZONE) -> bool:
    return box.refusal("instances.get", zone=zone, instance=name) == (404, "notFound")


def disks(box: Gce, zone: str = ZONE) -> set[str]:
    return {one["name"] for one in box.ask("disks.list", zone=zone).get("items", [])}


# -- making ----------------------------------------------------------------------------------


def test_a_machine_is_made_listed_and_deleted_with_its_disk(box: Gce) -> None:
    made = box.made("cw-one")
    assert made["status"] == "RUNNING" and disks(box) >= {"cw-one"}
    listed = box.ask("instances.aggregatedList")["items"][f"zones/{ZONE}"]["instances"]
    assert "cw-one" in [one["name"] for one in listed]
    box.ask("instances.delete", zone=ZONE, instance="cw-one")
    assert box.status("cw-one") == "STOPPING"
    box.wait(1.0)
    assert gone(box, "cw-one") and "cw-one" not in disks(box)
    assert ("started", "cw-one") in box.heard and ("ended", "cw-one") in box.heard


def test_what_is_left_out_is_filled_in_and_gpus_come_with_the_type(box: Gce) -> None:
    made = box.made("cw-full", metadata=metadata(cloudwhale_node="n1", user_data="#!/bin/sh"))
    gpus = made["guestAccelerators"][0]
    assert gpus["acceleratorType"].endswith("/nvidia-l4") and gpus["acceleratorCount"] == 1
    assert made["scheduling"]["preemptible"] is True
    assert made["serviceAccounts"][0]["email"] == MACHINE_ACCOUNT
    assert made["networkInterfaces"][0]["accessConfigs"][0]["natIP"]
    assert made["disks"][0]["source"].endswith(f"/zones/{ZONE}/disks/cw-full")
    assert made["lastStartTimestamp"].endswith("-08:00")
    seen = box.compute.instance("cw-full")
    assert seen is not None and (seen.id, seen.provider) == (made["id"], "gcp")
    assert seen.tags["cloudwhale:node"] == "n1" and seen.user_data == "#!/bin/sh"
    assert (seen.disk_gib, seen.vcpus, seen.market) == (200, 8, "spot")
    assert seen.price_usd_h == box.compute.price_usd_h(TYPE, ZONE, "spot", NOON) is not None


def test_a_machine_is_found_by_number_and_by_zone_and_name(box: Gce) -> None:
    made = box.made("cw-twin", kind=PLAIN)
    other = box.made("cw-twin", "us-central1-b", kind=PLAIN)
    assert box.ask("instances.get", zone=ZONE, instance=made["id"])["name"] == "cw-twin"
    found = [box.compute.instance(f"{zone}/cw-twin") for zone in (ZONE, "us-central1-b")]
    assert [one and one.id for one in found] == [made["id"], other["id"]]


def test_a_name_is_taken_once_in_a_zone(box: Gce) -> None:
    box.made("cw-taken", kind=PLAIN)
    said = box.error("instances.insert", zone=ZONE, body=body("cw-taken", kind=PLAIN))
    assert (said["code"], said["errors"][0]["reason"]) == (409, "alreadyExists")
    assert said["message"].endswith("/instances/cw-taken' already exists")


def test_the_same_request_is_the_same_operation_whatever_it_says(box: Gce) -> None:
    request = UUID.format(1)
    first = box.insert("cw-again", request=request, kind=PLAIN)
    again = box.insert("cw-again", request=request, kind=TYPE)
    assert again["name"] == first["name"] and again["clientOperationId"] == request
    assert box.described("cw-again")["machineType"].endswith(PLAIN)
    deleted = [
        box.ask("instances.delete", zone=ZONE, instance="cw-again", requestId=request)["name"]
        for _ in range(2)
    ]
    assert deleted[0] == deleted[1] != first["name"]


def test_a_request_whose_answer_was_lost_can_be_made_again(box: Gce) -> None:
    request = UUID.format(2)
    box.compute.fault("compute.instances.insert", "timeout", times=2)  # httplib2 asks twice
    with pytest.raises(ConnectionError):
        box.insert("cw-lost", request=request, kind=PLAIN)
    box.insert("cw-lost", request=request, kind=PLAIN)
    assert box.status("cw-lost") == "RUNNING"


@pytest.mark.parametrize("request_id", ["no-uuid", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_is_a_uuid(box: Gce, request_id: str) -> None:
    asked = {"zone": ZONE, "body": body("cw-id"), "requestId": request_id}
    assert box.refusal("instances.insert", **asked) == (400, "invalid")


# -- time ------------------------------------------------------------------------------------


def test_an_insert_takes_time_and_so_does_a_boot(slow: Gce) -> None:
    operation = slow.insert("cw-slow")
    assert operation["status"] == "PENDING" and operation["operationType"] == "insert"
    assert slow.operation(operation)["status"] == "RUNNING"
    assert slow.status("cw-slow") == "PROVISIONING"
    assert slow.ask("instances.list", zone=ZONE).get("items", []) == []
    slow.wait(10.0)
    done = slow.operation(operation)
    assert (done["status"], done["progress"]) == ("DONE", 100) and "error" not in done
    assert slow.status("cw-slow") == "STAGING"
    assert len(slow.ask("instances.list", zone=ZONE)["items"]) == 1
    slow.wait(10.0)
    assert slow.status("cw-slow") == "RUNNING"
    deleting = slow.ask("instances.delete", zone=ZONE, instance="cw-slow")
    slow.wait(4.0)
    assert slow.status("cw-slow") == "STOPPING"
    slow.wait(1.0)
    assert gone(slow, "cw-slow") and slow.operation(deleting)["status"] == "DONE"


def test_whoever_waits_for_an_operation_waits_until_it_is_done() -> None:
    with a_gce(Weather(operation_s=1000.0), real=lambda for_s: 0.0) as box:
        operation = box.insert("cw-waited", kind=PLAIN)
        asked = {"zone": ZONE, "operation": operation["name"]}
        assert box.ask("zoneOperations.wait", **asked)["status"] == "RUNNING"
        box.wait(1000.0)
        assert box.ask("zoneOperations.wait", **asked)["status"] == "DONE"


def test_a_machine_that_is_gone_is_told_of_for_an_hour(slow: Gce) -> None:
    slow.insert("cw-past", kind=PLAIN)
    slow.wait(30.4)
    slow.ask("instances.delete", zone=ZONE, instance="cw-past")
    slow.wait(5.0)
    seen = slow.compute.instance("cw-past")
    assert seen is not None and seen.state == "terminated" and seen.reason == "delete"
    assert seen.ended_at == pytest.approx(slow.clock.now() - 5.0, abs=0.001)
    assert seen.launched_at == round(seen.launched_at, 3), "thousandths, as it is listed"
    slow.wait(3600.0)
    assert slow.compute.instance("cw-past") is None


# -- ends ------------------------------------------------------------------------------------


def test_a_machine_that_shuts_down_stays_with_its_disk_until_it_is_deleted(box: Gce) -> None:
    box.made("cw-off")
    box.compute.end(f"{ZONE}/cw-off")
    assert box.status("cw-off") == "STOPPING" and "compute.instances.guestTerminate" in box.events()
    box.wait(1.0)
    stopped = box.described("cw-off")
    assert stopped["status"] == "TERMINATED" and stopped["lastStopTimestamp"]
    assert ("ended", "cw-off") in box.heard and "cw-off" in disks(box)
    box.wait(5000.0)
    assert box.status("cw-off") == "TERMINATED"
    ended = box.compute.instance("cw-off")
    box.ask("instances.delete", zone=ZONE, instance="cw-off")
    box.wait(1.0)
    assert gone(box, "cw-off") and "cw-off" not in disks(box)
    again = box.compute.instance("cw-off")
    assert ended is not None and again is not None and again.ended_at == ended.ended_at


def test_what_is_gone_says_since_when_its_disk_is(box: Gce) -> None:
    box.made("cw-disk-1")
    box.made("cw-disk-2")
    box.compute.end("cw-disk-1")
    box.wait(100.0)
    ended = box.compute.instance("cw-disk-1")
    assert ended is not None and ended.ended_at is not None and ended.deleted_at is None
    for name in ("cw-disk-1", "cw-disk-2"):
        box.ask("instances.delete", zone=ZONE, instance=name)
    box.wait(1.0)
    stopped, ran = box.compute.instance("cw-disk-1"), box.compute.instance("cw-disk-2")
    assert stopped is not None and ran is not None
    assert stopped.deleted_at is not None and stopped.deleted_at >= ended.ended_at + 100.0
    assert ran.deleted_at == ran.ended_at, "it went with the machine"


def test_a_machine_is_stopped_by_a_call_once(box: Gce) -> None:
    box.made("cw-stop", kind=PLAIN)
    box.ask("instances.stop", zone=ZONE, instance="cw-stop")
    box.wait(1.0)
    assert box.status("cw-stop") == "TERMINATED"
    again = box.refusal("instances.stop", zone=ZONE, instance="cw-stop")
    assert again == (400, "resourceNotReady")


def test_a_disk_that_does_not_go_with_its_machine_stays(box: Gce) -> None:
    kept = {**disk(), "autoDelete": False}
    box.made("cw-kept", disks=[kept])
    held = box.refusal("disks.delete", zone=ZONE, disk="cw-kept")
    assert held == (400, "resourceInUseByAnotherResource")
    box.ask("instances.delete", zone=ZONE, instance="cw-kept")
    box.wait(1.0)
    left = box.ask("disks.get", zone=ZONE, disk="cw-kept")
    assert "users" not in left and left["lastDetachTimestamp"]
    assert box.refusal("instances.insert", zone=ZONE, body=body("cw-kept")) == (
        409,
        "alreadyExists",
    )
    box.ask("disks.delete", zone=ZONE, disk="cw-kept")
    assert "cw-kept" not in disks(box)


# -- changing --------------------------------------------------------------------------------


def test_metadata_and_labels_are_put_in_place_with_their_fingerprint(box: Gce) -> None:
    made = box.made("cw-told", kind=PLAIN, metadata=metadata(cloudwhale_node="a"))
    asked = {"zone": ZONE, "instance": "cw-told"}
    now = {**metadata(cloudwhale_node="b", other="c"), "fingerprint": "c3RhbGU="}
    assert box.refusal("instances.setMetadata", **asked, body=now) == (412, "conditionNotMet")
    now["fingerprint"] = made["metadata"]["fingerprint"]
    box.ask("instances.setMetadata", **asked, body=now)
    seen = box.compute.instance("cw-told")
    assert seen is not None and seen.tags == {"cloudwhale:node": "b"}
    assert box.compute.attributes_of(seen.id) == {"cloudwhale-node": "b", "other": "c"}
    labels = {"labels": {"x": "y"}, "labelFingerprint": made["labelFingerprint"]}
    box.ask("instances.setLabels", **asked, body=labels)
    assert box.described("cw-told")["labels"] == {"x": "y"}
    assert box.refusal("instances.setLabels", **asked, body=labels) == (412, "conditionNotMet")


def test_how_long_a_machine_may_run_is_changed_only_while_it_is_stopped(box: Gce) -> None:
    box.made("cw-timed", kind=PLAIN)
    asked = {"zone": ZONE, "instance": "cw-timed"}
    longer = {
        "maxRunDuration": {"seconds": "7200"}, "instanceTerminationAction": "DELETE",
        "provisioningModel": "SPOT",
    }  # fmt: skip
    assert box.refusal("instances.setScheduling", **asked, body=longer) == (400, "invalid")
    box.ask("instances.stop", **asked)
    box.wait(1.0)
    box.ask("instances.setScheduling", **asked, body=longer)
    assert box.described("cw-timed")["scheduling"]["maxRunDuration"] == {"seconds": "7200"}


def test_a_console_shows_nothing(box: Gce) -> None:
    box.made("cw-console", kind=PLAIN)
    told = box.ask("instances.getSerialPortOutput", zone=ZONE, instance="cw-console", start="7")
    assert (told["contents"], told["next"]) == ("", "7")
