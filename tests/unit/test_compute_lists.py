"""What Compute Engine lists: pages, filters, places, types, prices of spot, operations."""

from collections.abc import Iterator
from typing import Any

import pytest
from boxed_gce import NOON, PLAIN, REGION, TYPE, ZONE, Gce, a_gce, metadata, scheduling

from cloudwhale_providers.prices.gcp import GcpPrices
from cloudwhale_providers.sandbox.compute.filters import wanted
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.endpoint import Capacity, PriceFactor, Weather, Which

OTHER = "us-east4-a"
WEATHER = Weather(
    price_factors=(PriceFactor(0.0, 1.0), PriceFactor(3600.0, 1.5, Which(TYPE, ZONE))),
    capacity=(Capacity(Which(TYPE, "us-central1-b"), 1),),
)


@pytest.fixture(scope="module")
def box() -> Iterator[Gce]:
    with a_gce(WEATHER) as box:
        for number in range(5):
            labels = {"cloudwhale-installation": "lab", "run": f"r{number % 2}"}
            box.made(f"cw-{number}", kind=PLAIN, labels=labels)
            box.wait(10.0)
        box.made("cw-far", OTHER, kind=PLAIN, scheduling=scheduling("on-demand"))
        yield box


def names(told: dict[str, Any]) -> list[str]:
    return [one["name"] for one in told.get("items", [])]


# -- pages -----------------------------------------------------------------------------------


def test_a_list_comes_in_pages(box: Gce) -> None:
    found: list[str] = []
    token, pages = "", 0
    while pages == 0 or token:
        more = {"pageToken": token} if token else {}
        told = box.ask("instances.list", zone=ZONE, maxResults=2, **more)
        found, pages, token = found + names(told), pages + 1, told.get("nextPageToken", "")
    assert found == [f"cw-{number}" for number in range(5)] and pages == 3


@pytest.mark.parametrize(
    "words",
    [{"pageToken": "zzz"}, {"orderBy": "size"}, {"maxResults": 501}, {"filter": "(a="}],
)
def test_a_list_that_cannot_be_made_is_refused(box: Gce, words: dict[str, Any]) -> None:
    assert box.refusal("instances.list", zone=ZONE, **words) == (400, "invalid")


def test_a_list_is_sorted_newest_first_when_that_is_asked_for(box: Gce) -> None:
    told = box.ask("instances.list", zone=ZONE, orderBy="creationTimestamp desc")
    assert names(told) == [f"cw-{number}" for number in reversed(range(5))]


def test_a_list_of_all_zones_names_each_and_says_which_are_empty(box: Gce) -> None:
    said = "labels.cloudwhale-installation=lab"
    told = box.ask("instances.aggregatedList", filter=said)["items"]
    assert len(told[f"zones/{ZONE}"]["instances"]) == 5
    assert [one["name"] for one in told[f"zones/{OTHER}"]["instances"]] == ["cw-far"]
    warning = told["zones/us-central1-c"]["warning"]
    assert warning["code"] == "NO_RESULTS_ON_PAGE"
    page = box.ask("instances.aggregatedList", maxResults=5)
    assert page["nextPageToken"]
    rest = box.ask("instances.aggregatedList", pageToken=page["nextPageToken"])["items"]
    assert [one["name"] for one in rest[f"zones/{OTHER}"]["instances"]] == ["cw-far"]


def test_a_zone_that_does_not_answer_is_told_apart_from_one_that_is_empty() -> None:
    with a_gce(Weather(silent_zones=frozenset({ZONE}))) as box:
        for method in ("instances", "disks"):
            told = box.ask(f"{method}.aggregatedList")["items"]
            assert told[f"zones/{ZONE}"]["warning"]["code"] == "UNREACHABLE"
            assert told[f"zones/{OTHER}"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"
            assert method not in told[f"zones/{ZONE}"]
        assert box.refusal("instances.list", zone=ZONE) == (503, "backendError")


# -- filters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("labels.run=r1", ["cw-1", "cw-3"]),
        ('labels.run = "r1"', ["cw-1", "cw-3"]),
        ("labels.run!=r1", ["cw-0", "cw-2", "cw-4"]),
        ("labels.missing:*", []),
        ("labels.run:*", [f"cw-{number}" for number in range(5)]),
        ("name=cw-2", ["cw-2"]),
        ("name eq cw-[12]", ["cw-1", "cw-2"]),
        ("name ne cw-[0-3]", ["cw-4"]),
        ("(status=RUNNING) (labels.run=r1)", ["cw-1", "cw-3"]),
        ("status=RUNNING AND labels.run=r1", ["cw-1", "cw-3"]),
        ("(name=cw-1) OR (name=cw-4)", ["cw-1", "cw-4"]),
        ("(labels.run=r1) AND ((name=cw-1) OR (name=cw-4))", ["cw-1"]),
        ("status!=RUNNING", []),
        ("scheduling.preemptible = true", [f"cw-{number}" for number in range(5)]),
        ('creationTimestamp > "2027-01-15T08:00:25Z"', ["cw-3", "cw-4"]),
        ("creationTimestamp <= '2027-01-15T00:00:10-08:00'", ["cw-0", "cw-1"]),
    ],
)
def test_a_filter_lets_pass_what_it_says(box: Gce, said: str, found: list[str]) -> None:
    assert names(box.ask("instances.list", zone=ZONE, filter=said)) == found


@pytest.mark.parametrize("said", ["a", "a=", "=b", "(a=b", "a=b)", "a~b", "a b c", "a=b OR"])
def test_a_filter_that_cannot_be_read_is_refused(said: str) -> None:
    with pytest.raises(GoogleRefused) as refused:
        wanted(said)
    assert (refused.value.code, refused.value.status) == ("invalid", 400)


# -- places and types ------------------------------------------------------------------------


def test_zones_and_regions_are_those_of_the_prices(box: Gce) -> None:
    listings = GcpPrices().shipped()
    told = box.ask("zones.list")
    assert {zone for one in listings for zone in one.zones} <= set(names(told))
    assert set(names(box.ask("regions.list"))) == {one.region for one in listings}
    zone = box.ask("zones.get", zone=ZONE)
    assert zone["region"].endswith(f"/regions/{REGION}") and zone["status"] == "UP"


def test_machine_types_have_the_gpus_that_the_prices_say(box: Gce) -> None:
    told = box.ask("machineTypes.aggregatedList", filter="name=a2-ultragpu-1g")["items"]
    one = told["zones/us-east4-c"]["machineTypes"][0]
    assert one["accelerators"] == [
        {"guestAcceleratorType": "nvidia-a100-80gb", "guestAcceleratorCount": 1}
    ]
    assert one["bundledLocalSsds"]["partitionCount"] == 1
    mega = box.ask("machineTypes.get", zone="us-east4-a", machineType="a3-megagpu-8g")
    assert mega["accelerators"][0]["guestAcceleratorType"] == "nvidia-h100-mega-80gb"
    assert "accelerators" not in box.ask("machineTypes.get", zone=ZONE, machineType=PLAIN)
    kinds = {one.shape.type for one in GcpPrices().shipped() if ZONE in one.zones}
    assert kinds <= set(names(box.ask("machineTypes.list", zone=ZONE)))


def test_accelerators_and_disks_are_listed_by_zone(box: Gce) -> None:
    found = names(box.ask("acceleratorTypes.list", zone=ZONE))
    assert {"nvidia-l4", "nvidia-tesla-t4", "nvidia-tesla-a100"} <= set(found)
    told = box.ask("acceleratorTypes.aggregatedList")["items"]
    assert told[f"zones/{OTHER}"]["acceleratorTypes"]
    l4 = box.ask("acceleratorTypes.get", zone=ZONE, acceleratorType="nvidia-l4")
    assert l4["zone"].endswith(ZONE)
    assert "hyperdisk-balanced" in names(box.ask("diskTypes.list", zone=ZONE))
    assert box.ask("diskTypes.get", zone=ZONE, diskType="pd-ssd")["name"] == "pd-ssd"
    assert box.ask("diskTypes.aggregatedList")["items"]


def test_images_are_found_by_family_and_by_name(box: Gce) -> None:
    project = "deeplearning-platform-release"
    family = "common-cu129-ubuntu-2204-nvidia-580"
    found = box.ask("images.getFromFamily", project=project, family=family)
    assert found["diskSizeGb"] == "50" and found["family"] == family
    assert box.ask("images.get", project=project, image=found["name"])["id"] == found["id"]
    assert len(names(box.ask("images.list", project=project))) == 4
    gone = box.refusal("images.getFromFamily", project=project, family="common-cu000")
    assert gone == (404, "notFound")


def test_every_region_has_a_subnetwork_of_the_default_network(box: Gce) -> None:
    network = box.ask("networks.get", network="default")
    assert names(box.ask("networks.list")) == ["default"]
    one = box.ask("subnetworks.get", region=REGION, subnetwork="default")
    assert one["selfLink"] in network["subnetworks"]
    assert names(box.ask("subnetworks.list", region=REGION)) == ["default"]
    assert box.ask("subnetworks.aggregatedList")["items"][f"regions/{REGION}"]["subnetworks"]
    gone = box.refusal("subnetworks.get", region=REGION, subnetwork="no")
    assert gone == (404, "notFound")
    assert box.ask("routers.list", region=REGION).get("items", []) == []


# -- disks, addresses, operations ------------------------------------------------------------


def test_disks_are_made_listed_and_deleted(box: Gce) -> None:
    asked = {"name": "data", "sizeGb": "50", "labels": {"a": "b"}, "type": "pd-ssd"}
    box.ask("disks.insert", zone=OTHER, body=asked)
    assert box.refusal("disks.insert", zone=OTHER, body=asked) == (409, "alreadyExists")
    told = box.ask("disks.aggregatedList", filter="labels.a=b")["items"]
    assert [one["sizeGb"] for one in told[f"zones/{OTHER}"]["disks"]] == ["50"]
    wrong = {"name": "tape", "type": "pd-tape"}
    assert box.refusal("disks.insert", zone=OTHER, body=wrong) == (400, "invalid")
    box.ask("disks.delete", zone=OTHER, disk="data")
    assert box.refusal("disks.get", zone=OTHER, disk="data") == (404, "notFound")


def test_addresses_are_reserved_listed_and_given_back(box: Gce) -> None:
    asked = {"name": "front", "labels": {"a": "b"}}
    box.ask("addresses.insert", region=REGION, body=asked)
    assert box.refusal("addresses.insert", region=REGION, body=asked) == (409, "alreadyExists")
    told = box.ask("addresses.aggregatedList", filter="labels.a=b")["items"]
    assert told[f"regions/{REGION}"]["addresses"][0]["status"] == "RESERVED"
    assert names(box.ask("addresses.list", region=REGION)) == ["front"]
    box.ask("addresses.delete", region=REGION, address="front")
    gone = box.refusal("addresses.delete", region=REGION, address="front")
    assert gone == (404, "notFound")
    done = box.ask("regionOperations.list", region=REGION)["items"]
    assert [one["operationType"] for one in done] == ["insert", "delete"]
    assert box.ask("globalOperations.list").get("items", []) == []


def test_operations_say_what_was_done_to_what_and_can_be_forgotten(box: Gce) -> None:
    made = box.made("cw-op", kind=PLAIN, metadata=metadata(a="b"))
    said = f"targetId = {made['id']}"
    found = box.ask("zoneOperations.list", zone=ZONE, filter=said)["items"]
    assert [one["operationType"] for one in found] == ["insert"]
    assert found[0]["targetLink"] == made["selfLink"] and found[0]["endTime"]
    asked = {"zone": ZONE, "operation": found[0]["name"]}
    box.ask("zoneOperations.delete", **asked)
    assert box.refusal("zoneOperations.get", **asked) == (404, "notFound")
    again = box.insert("cw-op2", kind=PLAIN)
    assert again["name"] != found[0]["name"]


# -- advice ----------------------------------------------------------------------------------


def test_what_spot_has_cost_is_told_with_how_often_it_goes() -> None:
    with a_gce(WEATHER) as box:
        box.wait(7200.0)
        asked = {
            "types": ["PRICE", "PREEMPTION"],
            "instanceProperties": {
                "machineType": TYPE, "scheduling": {"provisioningModel": "SPOT"},
            },
            "locationPolicy": {"location": f"zones/{ZONE}"},
        }  # fmt: skip
        told = box.ask("advice.capacityHistory", region=REGION, body=asked)
        before, after = told["priceHistory"][-2:]
        spot = box.compute.price_usd_h(TYPE, ZONE, "spot", NOON)
        assert spot is not None
        assert (
            before["listPrice"]["nanos"] + int(before["listPrice"]["units"]) * 10**9 == spot * 1000
        )
        assert after["interval"]["startTime"] == "2027-01-15T09:00:00Z"
        assert after["listPrice"]["nanos"] > before["listPrice"]["nanos"]
        assert told["preemptionHistory"][0]["preemptionRate"] == pytest.approx(0.0044 * 24)


def test_where_machines_are_had_is_told_by_zone(box: Gce) -> None:
    asked: dict[str, Any] = {
        "size": 4,
        "instanceFlexibilityPolicy": {"instanceSelections": {"l4": {"machineTypes": [TYPE]}}},
        "instanceProperties": {"scheduling": {"provisioningModel": "SPOT"}},
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE"},
    }
    told = box.ask("advice.capacity", region=REGION, body=asked)["recommendations"]
    scores = {one["shards"][0]["zone"]: one["scores"]["obtainability"] for one in told}
    assert scores == {
        "zones/us-central1-a": 1.0, "zones/us-central1-b": 0.25, "zones/us-central1-c": 1.0,
    }  # fmt: skip
    asked["instanceFlexibilityPolicy"] = {"instanceSelections": {}}
    assert box.refusal("advice.capacity", region=REGION, body=asked) == (400, "invalid")
