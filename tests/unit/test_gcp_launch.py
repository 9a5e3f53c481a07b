"""How machines are launched at Compute Engine: with which words, once, never without an end."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from boxed_gcp import Box, boxed_words, stepped
from renting_gcp import a_request, an_offer, facts

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import Denied, NoCapacity, TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.launching import STARTS_IN_S
from cloudwhale_providers.sandbox.endpoint import Capacity, Reap, Weather, Which

HOUR = 3600.0


def _request(box: Box, offer: Offer | None = None, name: str = "rental-1") -> LaunchRequest:
    return a_request(name, offer or an_offer(), box.clock.now() + HOUR)


def _body(box: Box, offer: Offer | None = None, **said: Any) -> Mapping[str, Any]:
    """Return what an insert has said of a machine."""
    asked = offer or an_offer()
    settings = said.pop("settings", {})
    request = _request(box, asked).but(**said)
    words = boxed_words(box)
    box.provider("lab", asked, **settings).launch(request)
    (body,) = [one.body for one in words if one.method == "compute.instances.insert"]
    return body


def test_spot_and_on_demand_are_deleted_at_their_end_and_never_restarted() -> None:
    box = stepped()
    spot = _body(box)["scheduling"]
    assert spot["provisioningModel"] == "SPOT"
    assert spot["preemptionNoticeDuration"] == {"seconds": "120"}
    plain = _body(stepped(), an_offer(market="on-demand"))["scheduling"]
    assert plain["provisioningModel"] == "STANDARD" and "preemptionNoticeDuration" not in plain
    for one in (spot, plain):
        assert one["instanceTerminationAction"] == "DELETE"
        assert one["maxRunDuration"] == {"seconds": str(int(HOUR - STARTS_IN_S))}
        assert one["onHostMaintenance"] == "TERMINATE" and one["automaticRestart"] is False


def test_a_machine_without_gpus_moves_when_its_host_is_maintained() -> None:
    offer = an_offer(market="on-demand", type="e2-standard-4", facts=facts(gpus=0))
    assert _body(stepped(), offer)["scheduling"]["onHostMaintenance"] == "MIGRATE"


@pytest.mark.parametrize(
    ("kind", "gpu", "gpus", "disk", "attached"),
    [
        ("g2-standard-8", "L4", 1, "pd-balanced", False),
        ("a2-highgpu-1g", "A100-40GB", 1, "pd-balanced", False),
        ("a3-highgpu-8g", "H100-80GB", 8, "pd-balanced", False),
        ("g4-standard-48", "RTXPRO6000", 1, "hyperdisk-balanced", False),
        ("n1-standard-8", "T4", 2, "pd-balanced", True),
    ],
)
def test_gpus_come_with_the_type_or_are_attached_and_disks_are_of_the_familys_kind(
    kind: str, gpu: str, gpus: int, disk: str, attached: bool
) -> None:
    offer = an_offer("us-central1-b", type=kind, facts=facts(gpu, gpus))
    body = _body(stepped(), offer)
    (boot,) = body["disks"]
    zone = "zones/us-central1-b"
    assert boot["initializeParams"]["diskType"] == f"{zone}/diskTypes/{disk}"
    assert boot["autoDelete"] is True
    wanted = [
        {"acceleratorType": f"{zone}/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 2}
    ]
    assert body.get("guestAccelerators", []) == (wanted if attached else [])


def test_local_disks_are_listed_where_the_type_brings_none() -> None:
    offer = an_offer(facts=facts(disk_gib=750.0))
    disks = _body(stepped(), offer)["disks"]
    assert [one.get("type") for one in disks] == [None, "SCRATCH", "SCRATCH"]
    assert disks[0]["initializeParams"]["diskSizeGb"] == "200"


def test_a_boot_disk_holds_what_jobs_ask_for() -> None:
    (disk,) = _body(stepped(), disk_gib=300.0)["disks"]
    assert disk["initializeParams"]["diskSizeGb"] == "380"
    assert "/family/" not in disk["initializeParams"]["sourceImage"], "it is pinned"


def test_a_machine_and_its_disk_say_whose_they_are_and_what_the_machine_is_to_know() -> None:
    body = _body(stepped())
    assert body["name"] == names.machine_name("lab", "rental-1")
    assert body["labels"] == body["disks"][0]["initializeParams"]["labels"] == {
        "cloudwhale-installation": "lab", "cloudwhale-node": "rental-1",
        "cloudwhale-request": "rental-1", "cloudwhale-project": "nlp",
    }  # fmt: skip
    said = names.attributes(body)
    assert said[names.LEASE] == "1:3480" and said[names.GPUS] == "1"
    assert said[names.REGION] == "us-central1" and said[names.NOTICE_S] == "120"
    assert '"mailbox": "gs://bucket/lab"' in said[names.USER_DATA]


def test_what_machines_are_told_at_boot_is_the_same_for_all() -> None:
    box = stepped()
    words = boxed_words(box)
    for name in ("rental-1", "rental-2"):
        box.provider("lab").launch(_request(box, name=name))
    bodies = [one.body for one in words if one.method == "compute.instances.insert"]
    first, second = (names.attributes(one)[names.USER_DATA] for one in bodies)
    assert first == second


def test_nobody_comes_in_and_rights_come_from_the_service_account() -> None:
    body = _body(stepped())
    (interface,) = body["networkInterfaces"]
    assert interface["network"].endswith("/global/networks/default")
    assert interface["accessConfigs"] == [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]
    (account,) = body["serviceAccounts"]
    assert account["scopes"] == ["https://www.googleapis.com/auth/cloud-platform"]


def test_without_an_external_address_a_machine_has_none() -> None:
    settings = {"external_address": False, "subnetwork": "default"}
    (interface,) = _body(stepped(), settings=settings)["networkInterfaces"]
    assert "accessConfigs" not in interface
    assert interface["subnetwork"].endswith("/regions/us-central1/subnetworks/default")


def test_an_image_whose_python_the_agents_archive_is_not_for_is_refused() -> None:
    box = stepped()
    with pytest.raises(Denied, match=r"has Python 3\.12, and the agent's archive is for 3\.11"):
        box.provider("lab").launch(_request(box).but(pythons=("3.11",)))
    assert not box.endpoint.instances()


# -- once ----------------------------------------------------------------------------------------


def test_a_launch_whose_answer_was_lost_makes_one_machine() -> None:
    for kind in ("error-after-success", "timeout"):
        box = stepped(Weather(operation_s=5.0))
        provider = box.provider("lab")
        box.endpoint.fault("compute.instances.insert", kind)
        with pytest.raises(Unreachable):
            provider.launch(_request(box))
        machine = box.provider("lab").launch(_request(box))
        assert machine.state == "running" and len(box.endpoint.instances()) == 1


def test_a_launch_whose_operation_cannot_be_waited_for_is_found_by_the_next() -> None:
    box = stepped(Weather(operation_s=5.0))
    box.endpoint.fault("compute.zoneOperations.wait", "error-before")
    with pytest.raises(Unreachable):
        box.provider("lab").launch(_request(box))
    assert box.provider("lab").launch(_request(box)).state == "running"
    assert len(box.endpoint.instances()) == 1


@pytest.mark.parametrize("again", [{"pythons": ("2.7",)}, {"stop_at": 25.0}])
def test_what_forbids_another_machine_does_not_forget_the_one_that_is_begun(
    again: Mapping[str, Any],
) -> None:
    box = stepped(Weather(operation_s=30.0, boot_s=20.0))
    box.endpoint.fault("compute.zoneOperations.wait", "error-before")
    provider, request = box.provider("lab"), _request(box)
    with pytest.raises(Unreachable):
        provider.launch(request)
    if "stop_at" in again:
        again = {"stop_at": box.clock.now() + again["stop_at"]}
    try:
        machine = provider.launch(request.but(**again))
    except TryAnother:
        box.pause(60.0)
        assert not box.standing(), "a machine that is refused does not run on"
    else:
        assert machine.state in ("starting", "running") and len(box.standing()) == 1


def test_an_operation_that_takes_too_long_is_looked_for_again() -> None:
    box = stepped(Weather(operation_s=400.0, boot_s=390.0))
    with pytest.raises(Unreachable, match="is not done after 300 s"):
        box.provider("lab").launch(_request(box))
    machine = box.provider("lab").launch(_request(box))
    assert machine.state == "running" and len(box.endpoint.instances()) == 1


def test_a_launch_that_fails_after_its_answer_was_lost_leaves_nothing() -> None:
    box = stepped(Weather(operation_s=5.0, capacity=(Capacity(Which(), 0),), leaves_disks=True))
    box.endpoint.fault("compute.instances.insert", "error-after-success")
    provider = box.provider("lab")
    with pytest.raises(Unreachable):
        provider.launch(_request(box))
    with pytest.raises(NoCapacity):
        provider.launch(_request(box))
    box.pause(10.0)
    assert provider.leftovers(()) == ()


def test_a_launch_that_failed_leaves_no_disk() -> None:
    box = stepped(Weather(capacity=(Capacity(Which(), 0),), leaves_disks=True))
    provider = box.provider("lab")
    with pytest.raises(NoCapacity, match="does not have enough resources"):
        provider.launch(_request(box))
    box.pause(10.0)
    assert provider.leftovers(()) == ()


def test_a_disk_that_an_old_launch_left_is_removed_for_the_next() -> None:
    box = stepped(Weather(capacity=(Capacity(Which(), 0, until_s=5.0),), leaves_disks=True))
    provider = box.provider("lab")
    box.endpoint.fault("compute.disks.delete", "error-before", times=9)
    with pytest.raises(NoCapacity):
        provider.launch(_request(box))
    assert [one.what for one in provider.leftovers(())] == ["volume"]
    box.endpoint.no_faults()
    for one in provider.leftovers(()):
        provider.remove(one)
    box.pause(10.0)
    assert provider.launch(_request(box, name="rental-2")).state == "running"
    assert provider.leftovers({"rental-2"}) == ()


def test_another_ones_machine_that_bears_our_name_is_not_taken() -> None:
    box = stepped()
    name = names.machine_name("lab", "rental-1")
    boxed_words(box)
    box.insert(name, "us-central1-a", labels={}, items={})
    with pytest.raises(Denied, match=f"has a machine {name} that is not ours"):
        box.provider("lab").launch(_request(box))
    (there,) = box.endpoint.instances()
    assert there.ended_at is None


def test_a_longer_notice_that_is_not_to_be_had_is_left_out() -> None:
    box = stepped(Weather(preemption_notices=False))
    words = boxed_words(box)
    provider = box.provider("lab")
    assert provider.launch(_request(box)).state == "running"
    assert provider.launch(_request(box, name="rental-2")).state == "running"
    bodies = [one.body for one in words if one.method == "compute.instances.insert"]
    asked = ["preemptionNoticeDuration" in one["scheduling"] for one in bodies]
    assert asked == [True, False, False], "what was refused once is not asked for again"
    assert [names.NOTICE_S in names.attributes(one) for one in bodies] == asked


def test_a_zone_without_the_type_is_not_asked_again() -> None:
    box = stepped()
    words = boxed_words(box)
    offer = an_offer("us-central1-f", type="a3-megagpu-8g", facts=facts("H100-80GB", 8))
    provider = box.provider("lab", offer)
    for name in ("rental-1", "rental-2"):
        with pytest.raises(NoCapacity):
            provider.launch(_request(box, offer, name))
    asked = [one for one in words if one.method == "compute.instances.insert"]
    assert len(asked) == 1


# -- with an end ---------------------------------------------------------------------------------


def test_a_machines_stop_is_never_later_than_was_asked_for() -> None:
    box = stepped(Weather(boot_s=20.0, operation_s=20.0))
    request = _request(box)
    machine = box.provider("lab").launch(request)
    assert machine.stop_at is not None and request.stop_at is not None
    assert request.stop_at - STARTS_IN_S <= machine.stop_at <= request.stop_at


def test_a_machine_that_starts_too_late_to_end_in_time_is_deleted_at_once() -> None:
    box = stepped(Weather(boot_s=175.0, operation_s=185.0))
    with pytest.raises(TryAnother, match="would be deleted 120 s too late"):
        box.provider("lab").launch(_request(box))
    box.pause(10.0)
    assert [one.ended_at is not None for one in box.endpoint.instances()] == [True]


def test_a_machine_whose_stop_nobody_tells_is_deleted_by_the_next_list() -> None:
    box = stepped(Weather(boot_s=60.0))
    provider = box.provider("lab")
    assert provider.launch(_request(box)).state == "starting"
    box.forget_stops()
    for _ in range(3):
        box.pause(100.0)
        box.provider("lab").machines()
    assert not box.standing()


@pytest.mark.parametrize("left_s", [-5.0, 0.0, 10.0])
def test_a_launch_whose_time_is_over_makes_nothing(left_s: float) -> None:
    box = stepped()
    request = a_request("rental-1", an_offer(), box.clock.now() + left_s)
    with pytest.raises(TryAnother):
        box.provider("lab").launch(request)
    assert not box.endpoint.instances()


def test_what_a_launch_made_is_ended_when_its_time_is_over() -> None:
    box = stepped()
    request = _request(box)
    box.provider("lab").launch(request)
    late = request.but(stop_at=box.clock.now() - 1.0)
    with pytest.raises(TryAnother, match="was to have ended"):
        box.provider("lab").launch(late)
    assert not box.standing()


def test_a_machine_that_is_gone_before_anybody_looked_says_so_and_what_it_cost() -> None:
    box = stepped(Weather(operation_s=5.0))
    request, provider = _request(box), box.provider("lab")
    box.endpoint.fault("compute.instances.insert", "error-after-success")
    with pytest.raises(Unreachable):
        provider.launch(request)
    box.pause(20.0)
    (there,) = box.endpoint.instances()
    box.endpoint.interrupt(there.id, notice_s=0.0)
    box.pause(60.0)
    machine = provider.launch(request)
    assert machine.state == "gone" and "preempted" in machine.says
    assert machine.billed_from is not None and machine.billed_to is not None
    assert 20.0 <= machine.billed_to - machine.billed_from <= 60.0


def test_a_launch_that_never_ran_is_told_as_not_had() -> None:
    box = stepped(Weather(reaps=(Reap(code="ZONE_RESOURCE_POOL_EXHAUSTED"),)))
    with pytest.raises(NoCapacity):
        box.provider("lab").launch(_request(box))
    box.pause(10.0)
    assert not box.standing()


def _ends_at(box: Box) -> Instant | None:
    return max((one.ended_at or 0.0 for one in box.endpoint.instances()), default=None)


def test_the_cloud_deletes_a_machine_on_time_while_nobody_is_there() -> None:
    box = stepped()
    machine = box.provider("lab").launch(_request(box))
    box.pause(HOUR)
    assert _ends_at(box) == machine.stop_at
    assert box.provider("lab").leftovers(()) == ()


def test_words_are_plain_json() -> None:
    assert json.loads(json.dumps(_body(stepped())))
