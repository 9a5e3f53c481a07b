"""Machines of the box's Compute Engine: how they are made, listed and ended."""

from collections.abc import Iterator

import pytest
from boxed_gce import TYPE, ZONE, Gce, a_gce

from cloudwhale_providers.sandbox.endpoint import Weather

WEATHER = Weather(boot_s=20.0, stopping_s=5.0, operation_s=10.0)


@pytest.fixture(scope="module")
def box() -> Iterator[Gce]:
    with a_gce() as box:
        yield box


@pytest.fixture
def slow() -> Iterator[Gce]:
    with a_gce(WEATHER) as box:
        yield box


def test_a_machine_is_made_listed_and_deleted(box: Gce) -> None:
    made = box.made("cw-one", kind=TYPE)
    assert made["status"] == "RUNNING"
    listed = box.ask("instances.aggregatedList")["items"][f"zones/{ZONE}"]["instances"]
    assert [one["name"] for one in listed] == ["cw-one"]
    box.ask("instances.delete", zone=ZONE, instance="cw-one")
    box.wait(2.0)
    assert box.refusal("instances.get", zone=ZONE, instance="cw-one") == (404, "notFound")
    assert box.ask("disks.list", zone=ZONE).get("items", []) == []
    assert ("started", "cw-one") in box.heard and ("ended", "cw-one") in box.heard
