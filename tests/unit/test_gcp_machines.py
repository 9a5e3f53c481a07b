"""How our machines at Compute Engine are seen, end, and are told of when they are no more."""

from typing import Any

import pytest
from boxed_gcp import Box, boxed_words, stepped
from renting_gcp import a_request, an_offer

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.provider import Machine, Provider
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.listing import KEPT_S
from cloudwhale_providers.sandbox.compute.services import Services
from cloudwhale_providers.sandbox.endpoint import Weather

HOUR = 3600.0


def _launched(box: Box, provider: Provider, name: str = "rental-1", **offer: Any) -> Machine:
    return provider.launch(a_request(name, an_offer(**offer), box.clock.now() + HOUR))


def _only(provider: Provider) -> Machine:
    (machine,) = provider.machines()
    return machine


def test_a_machine_that_was_preempted_is_gone_and_says_why() -> None:
    box = stepped()
    provider = box.provider("lab")
    began_at = box.clock.now()
    machine = _launched(box, provider)
    provider.machines()
    box.pause(100.0)
    box.endpoint.interrupt(machine.id, notice_s=0.0)
    box.pause(10.0)
    assert _only(provider).state == "stopping"
    box.pause(50.0)
    gone = _only(provider)
    assert gone.state == "gone" and "compute.instances.preempted" in gone.says
    # STOPPING, from the soft off on, is not charged.
    assert gone.billed_from == began_at and gone.billed_to == began_at + 100.0


def test_a_lease_that_is_over_is_no_preemption() -> None:
    box = stepped()
    provider = box.provider("lab")
    _launched(box, provider)
    provider.machines()
    box.pause(HOUR)
    gone = _only(provider)
    assert gone.state == "gone" and "its time was up" in gone.says
    assert "preempted" not in gone.says
    assert gone.billed_to is not None and gone.billed_to == gone.stop_at


def test_a_machine_that_shut_down_by_itself_is_deleted_with_its_disk() -> None:
    box = stepped()
    provider = box.provider("lab")
    machine = _launched(box, provider)
    box.endpoint.end(machine.id)
    box.pause(5.0)
    gone = _only(provider)
    assert gone.state == "gone" and gone.billed_to is not None
    box.pause(5.0)
    assert _only(provider).state == "gone"
    assert provider.leftovers(()) == (), "a disk of a stopped machine costs on"


def test_what_is_gone_is_shown_for_an_hour() -> None:
    box = stepped()
    provider = box.provider("lab")
    machine = _launched(box, provider)
    provider.terminate(machine.id)
    box.pause(30.0)
    assert _only(provider).state == "gone"
    box.pause(KEPT_S - 60.0)
    assert _only(provider).state == "gone"
    box.pause(60.0)
    assert list(provider.machines()) == []


def test_a_zone_that_does_not_answer_says_nothing_of_its_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = stepped()
    provider = box.provider("lab")
    first = _launched(box, provider)
    second = _launched(box, provider, "rental-2", zone="us-east4-a")
    assert {one.id for one in provider.machines()} == {first.id, second.id}
    answer = Services.answer

    def partly(self: Services, call: Any) -> Any:
        told = answer(self, call)
        if call.method.id == "compute.instances.aggregatedList":
            told["items"].pop("zones/us-east4-a")
            told["unreachables"] = ["projects/p/zones/us-east4-a"]
        return told

    monkeypatch.setattr(Services, "answer", partly)
    box.pause(400.0)
    states = {one.id: one.state for one in provider.machines()}
    assert states == {first.id: "running", second.id: "running"}
    with pytest.raises(Unreachable, match="us-east4-a"):
        provider.leftovers(())
    with pytest.raises(Unreachable, match="not every zone has answered"):
        provider.terminate(names.machine_name("lab", "rental-3"))
    monkeypatch.undo()
    provider.terminate(second.id)
    box.pause(5.0)
    assert {one.id: one.state for one in provider.machines()}[second.id] == "gone"


def test_machines_that_are_listed_late_are_there_meanwhile() -> None:
    box = stepped(Weather(unseen_s=60.0))
    provider = box.provider("lab")
    machine = _launched(box, provider)
    for wait_s in (5.0, 5.0, 100.0):
        seen = _only(provider)
        assert (seen.id, seen.state) == (machine.id, "running")
        box.pause(wait_s)


def test_a_list_without_a_machine_that_is_there_ends_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = stepped()
    provider = box.provider("lab")
    machine = _launched(box, provider)
    assert _only(provider).state == "running"
    answer = Services.answer

    def without(self: Services, call: Any) -> Any:
        told = answer(self, call)
        if call.method.id == "compute.instances.aggregatedList":
            for part in told["items"].values():
                part.pop("instances", None)
        return told

    monkeypatch.setattr(Services, "answer", without)
    box.pause(400.0)
    assert _only(provider).state == "running"
    box.endpoint.fault("compute.instances.get", "error-before")
    box.pause(5.0)
    assert _only(provider).state == "running", "who does not answer says nothing"
    provider.terminate(machine.id)
    box.pause(30.0)
    assert _only(provider).state == "gone"


def test_others_machines_are_never_listed_nor_ended() -> None:
    box = stepped()
    ours, theirs = box.provider("lab"), box.provider("den")
    foreign = _launched(box, theirs)
    box.insert("plain", "us-central1-a", {}, {})
    box.insert("like-ours", "us-central1-a", {}, {names.NODE: "rental-1"})
    box.insert("cw-0123456789abcdef01234567", "us-central1-a", {names.INSTALLATION: "lab-2"},
               {names.NODE: "rental-1", names.INSTALLATION: "lab"})  # fmt: skip
    assert list(ours.machines()) == []
    for name in (foreign.id, "plain", "like-ours", "cw-0123456789abcdef01234567"):
        ours.terminate(name)
    assert len(box.standing()) == 4


def test_an_end_that_fails_is_asked_for_again() -> None:
    box = stepped()
    provider = box.provider("lab")
    machine = _launched(box, provider)
    box.endpoint.fault("compute.instances.delete", "error-before")
    with pytest.raises(Unreachable):
        provider.terminate(machine.id)
    provider.terminate(machine.id)
    assert not box.standing()


def test_a_machine_that_may_not_be_deleted_is_told_with_the_command() -> None:
    box = stepped()
    provider = box.provider("lab")
    machine = _launched(box, provider)
    box.endpoint.fault("compute.instances.delete", "error-before", code="forbidden")
    with pytest.raises(Denied, match=r"compute\.instances\.delete in us-central1-a"):
        provider.terminate(machine.id)


def test_a_stop_is_fixed() -> None:
    box = stepped()
    provider = box.provider("lab")
    machine = _launched(box, provider)
    assert provider.extend(machine.id, box.clock.now() + 9999.0) == "fixed"
    assert provider.stops == {"cloud", "self"}


def test_all_who_ask_within_a_second_share_a_list() -> None:
    box = stepped()
    provider = box.provider("lab")
    provider.machines()
    words = boxed_words(box)
    for _ in range(5):
        provider.machines()
    assert words == []
    box.pause(2.0)
    provider.machines()
    assert [one.method for one in words] == ["compute.instances.aggregatedList"]


# -- leftovers -----------------------------------------------------------------------------------


def test_what_belongs_to_no_live_machine_is_left_over_in_whatever_zone() -> None:
    box = stepped()
    provider = box.provider("lab", an_offer(), an_offer("us-east4-a"))
    for name, zone in (("rental-1", "us-central1-a"), ("rental-2", "us-east4-a")):
        _launched(box, provider, name, zone=zone)
    narrow = box.provider("lab", regions=["europe-west4"])
    (left,) = narrow.leftovers({"rental-1"})
    assert (left.what, left.node, left.region) == ("instance", "rental-2", "us-east4")
    assert left.is_ours and left.project == "nlp"
    narrow.remove(left)
    box.pause(5.0)
    assert narrow.leftovers({"rental-1"}) == ()
    assert len(box.standing()) == 1


def test_a_disk_and_an_address_of_ours_are_found_priced_and_removed() -> None:
    box = stepped()
    assert box.clients is not None
    calls, labels = box.clients(), {names.INSTALLATION: "lab", names.NODE: "rental-9"}
    where = {"project": "cloudwhale-sandbox", "zone": "us-central1-a"}
    disk = {"name": "d1", "sizeGb": "200", "labels": labels,
            "type": "zones/us-central1-a/diskTypes/pd-balanced"}  # fmt: skip
    calls.call("compute", "disks.insert", **where, body=disk)
    calls.call(
        "compute", "addresses.insert", project=where["project"], region="us-east4",
        body={"name": "a1", "labels": labels},
    )  # fmt: skip
    box.pause(10.0)
    provider = box.provider("lab")
    found = provider.leftovers(())
    assert [(one.what, one.node, one.region) for one in found] == [
        ("volume", "rental-9", "us-central1"), ("address", "rental-9", "us-east4"),
    ]  # fmt: skip
    assert [one.usd_h for one in found] == [27397, 10000]
    for one in (*found, *found):
        provider.remove(one)
    box.pause(10.0)
    assert provider.leftovers(()) == ()


def test_what_is_anothers_is_shown_and_never_removed() -> None:
    box = stepped()
    theirs = box.provider("den")
    machine = _launched(box, theirs)
    ours = box.provider("lab")
    (left,) = ours.leftovers(())
    assert not left.is_ours and left.installation == "den"
    for said in (left, left.but(is_ours=True, installation="lab")):
        with pytest.raises(Denied, match="of the installation den"):
            ours.remove(said)
    assert [one.name for one in box.standing()] == [machine.id]
