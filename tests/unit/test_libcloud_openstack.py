"""The provider through libcloud's own driver of OpenStack, over HTTP to a small cloud here."""

from collections.abc import Iterator
from typing import Any

import pytest
from renting_libcloud import KEYS, MAILBOX, NOW, a_clock, a_request, offers_of
from small_openstack import PASSWORD, PROJECT, REGION, USER, SmallOpenStack, opened

from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import Denied, NoCapacity, QuotaExceeded, Unreachable
from cloudwhale.spi.provider import Grounds, LaunchRequest
from cloudwhale_providers.libcloud import LibcloudProvider, OwnPrices

SIZE = {
    "size": "l4-90", "usd_h": 1.0, "cpu": 22, "memory_gib": 86, "disk_gib": 350,
    "gpu": "L4", "gpus": 1,
}  # fmt: skip


@pytest.fixture
def cloud() -> Iterator[SmallOpenStack]:
    with opened() as cloud:
        yield cloud


def a_provider(cloud: SmallOpenStack, clock: Clock | None = None, **said: Any) -> LibcloudProvider:
    """Make a provider as the settings of docs/libcloud.md would."""
    table = {
        "driver": "openstack",
        "credentials": {"key": "OS_USERNAME", "secret": "OS_PASSWORD"},
        "options": {
            "ex_force_auth_url": cloud.url, "ex_force_auth_version": "3.x_password",
            "ex_tenant_name": PROJECT, "ex_domain_name": "Default",
            "ex_force_service_region": REGION, "api_version": "2.2", "secure": False,
        },
        "region": REGION, "image": "Ubuntu 24.04", "sizes": [SIZE],
        "machine_environment": list(KEYS), **said,
    }  # fmt: skip
    offers = offers_of(OwnPrices("dummy", table, NOW))
    grounds = Grounds("dummy", "lab", table, lambda now: offers, clock or a_clock(), MAILBOX)
    environment = {"OS_USERNAME": USER, "OS_PASSWORD": PASSWORD, **KEYS}
    return LibcloudProvider(grounds, environment=environment)


def a_launch(provider: LibcloudProvider, name: str = "rent-7-1") -> LaunchRequest:
    """Ask for the machine that is offered."""
    (offer,) = provider.offers(NOW)
    return a_request(name, offer=offer)


def test_a_machine_is_made_listed_and_ended(cloud: SmallOpenStack) -> None:
    provider = a_provider(cloud)
    machine = provider.launch(a_launch(provider))
    (server,) = cloud.servers.values()
    assert (machine.id, machine.state, machine.node) == (server["id"], "starting", "rent-7-1")
    assert server["flavor"] == {"id": "f-1"} and server["image"] == {"id": "im-1"}
    assert cloud.told[server["name"]].startswith("#!/bin/sh\nshutdown -h +30")
    server["status"] = "ACTIVE"
    (seen,) = provider.machines()
    assert seen.state == "running" and seen.facts is not None
    assert [one.model for one in seen.facts.devices] == ["L4"]
    provider.terminate(machine.id)
    provider.terminate(machine.id)
    assert not cloud.servers and list(provider.machines()) == []


def test_an_answer_that_is_cut_off_is_found_again_also_by_another_process(
    cloud: SmallOpenStack,
) -> None:
    provider = a_provider(cloud)
    request, cloud.cut = a_launch(provider), "POST /compute/v2.1/servers"
    with pytest.raises(Unreachable):
        provider.launch(request)
    (name,) = cloud.servers
    assert provider.launch(request).id == a_provider(cloud).launch(request).id == name
    assert len(cloud.servers) == 1


def test_all_pages_of_a_list_are_read(cloud: SmallOpenStack) -> None:
    provider = a_provider(cloud)
    for number in range(5):
        provider.launch(a_launch(provider, f"rent-7-{number}"))
    assert len(a_provider(cloud).machines()) == 5


def test_what_an_empty_list_lacks_is_asked_for_by_its_id(cloud: SmallOpenStack) -> None:
    provider = a_provider(cloud)
    machine = provider.launch(a_launch(provider))
    cloud.hidden = True
    assert [one.state for one in provider.machines()] == ["starting"]
    a_provider(cloud).terminate(machine.id)
    assert not cloud.servers
    assert [one.state for one in provider.machines()] == ["gone"]


def test_a_server_in_error_is_gone_and_its_launch_is_refused(cloud: SmallOpenStack) -> None:
    provider = a_provider(cloud)
    request = a_launch(provider)
    provider.launch(request)
    (server,) = cloud.servers.values()
    server["status"] = "ERROR"
    assert [one.state for one in provider.machines()] == ["gone"]
    with pytest.raises(NoCapacity, match="made and failed"):
        provider.launch(request)
    assert not cloud.servers


@pytest.mark.parametrize(
    ("status", "message", "raised"),
    [
        (403, "Quota exceeded for cores: Requested 22, but already used 0 of 20", QuotaExceeded),
        (403, "Policy doesn't allow os_compute_api:servers:create", Denied),
        (400, "Invalid key_name provided.", Denied),
        (409, "No valid host was found. There are not enough hosts available.", NoCapacity),
        (500, "Unexpected API Error.", Unreachable),
        (429, "Too Many Requests", Unreachable),
    ],
)
def test_what_nova_answers_says_what_to_do_next(
    cloud: SmallOpenStack, status: int, message: str, raised: type[Exception]
) -> None:
    provider = a_provider(cloud)
    request = a_launch(provider)
    cloud.refuse = ("POST /compute/v2.1/servers", status, message)
    with pytest.raises(raised):
        provider.launch(request)
    assert not cloud.servers


def test_wrong_credentials_are_told_of(cloud: SmallOpenStack, monkeypatch: Any) -> None:
    monkeypatch.setattr("small_openstack.PASSWORD", "another")
    with pytest.raises(Denied, match="`credentials`"):
        a_provider(cloud).machines()


def test_doctor_finds_what_the_settings_name(cloud: SmallOpenStack) -> None:
    rows = {row.name.removeprefix("dummy "): row for row in a_provider(cloud).check()}
    states = {name: row.state for name, row in rows.items()}
    assert states == {
        "driver": "ok", "launches": "ok", "machines": "ok", "sizes": "ok", "image": "ok",
        "stop": "warning", "mailbox": "warning",
    }  # fmt: skip
    assert rows["image"].says == "Ubuntu 24.04 (im-1)"


def test_nothing_is_left_over_but_what_nobody_lives_for(cloud: SmallOpenStack) -> None:
    provider = a_provider(cloud)
    provider.launch(a_launch(provider))
    (left,) = provider.leftovers(())
    assert left.since == 1_796_032_800.0 and left.usd_h == 1_000_000
    provider.remove(left)
    assert not cloud.servers and not provider.leftovers(())
