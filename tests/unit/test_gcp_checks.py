"""What `doctor` says of a project of GCP: each thing that can be wrong, and what mends it."""

from collections.abc import Sequence
from typing import Any

import pytest
from boxed_gcp import MAILBOX, Box, stepped
from renting_gcp import an_offer
from small_s3 import serving

from cloudwhale.spi.provider import Check
from cloudwhale_providers.gcp import checks_clock
from cloudwhale_providers.sandbox.compute.calls import Caller
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, PROJECT
from cloudwhale_providers.sandbox.endpoint import Weather

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def nobody_tells_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", NOBODY)


def rows(box: Box, mailbox: str = MAILBOX, **said: Any) -> Sequence[Check]:
    return box.provider("lab", mailbox=mailbox, **said).check()


def row(found: Sequence[Check], name: str) -> Check:
    return next(one for one in found if one.name == f"gcp {name}")


def bad(found: Sequence[Check]) -> list[str]:
    return [f"{one.name}: {one.says}" for one in found if one.state != "ok"]


def without(box: Box, *permissions: str) -> Box:
    """Take permissions from whoever asks."""

    def may(caller: Caller, permission: str, resource: str) -> bool:
        return permission not in permissions

    box.endpoint.hold_to(may)
    return box


def test_a_project_in_which_all_is_well() -> None:
    found = rows(stepped())
    assert bad(found) == []
    assert {one.name for one in found} >= {
        f"gcp {name}" for name in (
            "credentials", "regions", "network", "quotas", "APIs", "permissions",
            "machine account", "bucket", "image", "plain image",
        )
    }  # fmt: skip


def test_the_wrong_project_is_the_only_row_but_credentials() -> None:
    (found,) = rows(stepped(Weather(foreign_projects=frozenset({"another-lab"}))),
                    project="another-lab")  # fmt: skip
    assert (found.name, found.state) == ("gcp project", "failed") and found.remedy


@pytest.mark.parametrize("api", ["iam.googleapis.com", "compute.googleapis.com"])
def test_an_api_that_is_not_enabled_is_named_with_the_command(api: str) -> None:
    found = row(rows(stepped(Weather(closed_apis=frozenset({api})))), "APIs")
    assert found.state == "failed" and api in found.says
    assert f"gcloud services enable {api} --project={PROJECT}" in found.remedy


def test_permissions_that_are_missing_are_named() -> None:
    box = without(stepped(), "compute.instances.create", "compute.disks.create")
    found = row(rows(box), "permissions")
    assert found.state == "failed"
    assert "compute.disks.create, compute.instances.create" in found.says
    assert f"--role=projects/{PROJECT}/roles/cloudwhale_controller" in found.remedy


@pytest.mark.parametrize("lacks", ["serviceusage.services.get", "compute.advice.capacityHistory"])
def test_what_only_the_doctor_or_advice_needs_is_a_warning(lacks: str) -> None:
    assert row(rows(without(stepped(), lacks)), "permissions").state == "warning"


def test_external_addresses_are_asked_for_only_where_they_are_wanted() -> None:
    box = without(stepped(), "compute.subnetworks.useExternalIp")
    assert row(rows(box), "permissions").state == "failed"
    assert row(rows(box, external_address=False), "permissions").state == "ok"


@pytest.mark.parametrize(
    ("email", "says"),
    [("", "no `service_account` is set"), (f"x@{PROJECT}.iam.gserviceaccount.com", "there is no")],
)
def test_machines_that_are_nobody_could_not_reach_the_mailbox(email: str, says: str) -> None:
    found = row(rows(stepped(), service_account=email), "machine account")
    assert found.state == "failed" and says in found.says and "--fix" in found.remedy


def test_an_account_that_is_disabled_or_that_we_may_not_use() -> None:
    box = stepped()
    box.endpoint.project_apis.people.disabled.add(MACHINE_ACCOUNT)
    assert "is disabled" in row(rows(box), "machine account").says
    found = row(rows(without(stepped(), "iam.serviceAccounts.actAs")), "machine account")
    assert found.state == "failed" and "add-iam-policy-binding" in found.remedy


# -- the bucket -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mailbox", ["", "file:///tmp/x", "s3://bucket/lab"])
def test_a_mailbox_that_machines_cannot_reach(mailbox: str) -> None:
    found = row(rows(stepped(), mailbox=mailbox), "bucket")
    assert found.state == "failed" and "--fix" in found.remedy


@pytest.mark.parametrize(
    ("bucket", "says"),
    [("no-such-bucket", "there is no bucket"), ("team-data", "does not let us in")],
)
def test_a_bucket_that_is_not_there_or_anothers(bucket: str, says: str) -> None:
    found = row(rows(stepped(), mailbox=f"gs://{bucket}/lab"), "bucket")
    assert found.state == "failed" and says in found.says and "gcloud storage" in found.remedy


@pytest.mark.parametrize(
    ("told", "state", "says"),
    [
        ({"projectNumber": "7"}, "failed", "another project"),
        ({"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}}}, "failed",
         "no uniform access"),
        ({"softDeletePolicy": {"retentionDurationSeconds": "604800"}}, "warning", "7 days"),
    ],
)  # fmt: skip
def test_a_bucket_that_is_otherwise_than_it_should(
    told: dict[str, Any], state: str, says: str
) -> None:
    box = stepped()
    box.endpoint.project_apis.buckets.buckets["cloudwhale-sandbox-gcp"] |= told
    found = row(rows(box), "bucket")
    assert found.state == state and says in found.says and found.remedy


def test_rights_in_the_bucket_that_are_missing_are_named() -> None:
    found = row(rows(without(stepped(), "storage.objects.delete")), "bucket")
    assert found.state == "failed" and "storage.objects.delete" in found.says
    assert "cloudwhale_mailbox" in found.remedy


# -- places ---------------------------------------------------------------------------------------


def test_no_network_names_the_command_that_makes_one() -> None:
    found = row(rows(stepped(Weather(default_network=False))), "network")
    assert found.state == "failed" and "gcloud compute networks create default" in found.remedy


def test_machines_without_addresses_need_nat() -> None:
    box = stepped()
    failed = row(rows(box, external_address=False), "network")
    assert failed.state == "failed" and "routers nats create" in failed.remedy
    box.endpoint.project_apis.routers.make("us-central1", "default")
    box.endpoint.project_apis.routers.make("us-east4", "default")
    well = row(rows(box, external_address=False), "network")
    assert well.state == "ok" and "Cloud NAT" in well.says


def test_a_region_that_is_not_there_is_named() -> None:
    offers = [an_offer(), an_offer(zone="mars-north1-a")]
    found = stepped().provider("lab", *offers, regions=["us-central1", "mars-north1"]).check()
    told = [one for one in found if one.name == "gcp regions"]
    assert [one.state for one in told] == ["ok", "failed"]
    assert "mars-north1 is named in `regions`" in told[1].says


def test_no_gpu_anywhere_and_no_gpu_of_that_kind() -> None:
    none = row(rows(stepped(Weather(quotas={"GPUS_ALL_REGIONS": 0}))), "quotas")
    assert none.state == "failed" and "gcloud quotas preferences create" in none.remedy
    offers = [an_offer(market="on-demand"), an_offer(zone="us-east4-a", market="on-demand")]
    box = stepped(Weather(quotas={"NVIDIA_L4_GPUS": 0}))
    few = row(box.provider("lab", *offers).check(), "quotas")
    assert few.state == "failed", "there is no other kind"
    assert "NVIDIA_L4_GPUS is 0 in us-central1, us-east4" in few.says


# -- the clock ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("off_s", "state"), [(0.0, "ok"), (60.0, "warning"), (-900.0, "failed")])
def test_a_clock_that_is_off_is_said(
    monkeypatch: pytest.MonkeyPatch, off_s: float, state: str
) -> None:
    from cloudwhale.clock import SystemClock

    with serving() as store:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", store["AWS_ENDPOINT"])
        found = checks_clock.look(lambda: SystemClock().now() + off_s)
    assert found is not None and found.state == state


def test_nobody_who_says_what_time_it_is_is_no_row() -> None:
    assert checks_clock.look(lambda: 0.0) is None
