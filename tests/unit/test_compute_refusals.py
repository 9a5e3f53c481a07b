"""What Compute Engine refuses at once, what its operations fail with, and in which words."""

from collections.abc import Iterator
from typing import Any

import pytest
from boxed_gce import PLAIN, REGION, ZONE, Gce, a_gce, body, disk, metadata, scheduling

from cloudwhale_providers.sandbox.compute.places import PROJECT_NUMBER
from cloudwhale_providers.sandbox.endpoint import Capacity, Refusal, Weather, Which

SCARCE = "g2-standard-16"
WEATHER = Weather(
    capacity=(
        Capacity(Which(SCARCE, ZONE, "spot"), 1), Capacity(Which("e2-standard-4"), 2, again=False),
    ),
    refusals=(
        Refusal(Which("e2-standard-8"), "RESOURCE_NOT_READY"),
        Refusal(Which("e2-standard-16"), "quotaExceeded"),
        Refusal(Which("e2-standard-32"), "InsufficientFreeAddressesInSubnet"),
    ),
    quotas={
        "NVIDIA_L4_GPUS": 4.0, "us-east4/NVIDIA_L4_GPUS": 1.0, "PREEMPTIBLE_NVIDIA_A100_GPUS": 1.0,
        "GPUS_ALL_REGIONS": 6.0, "N2_CPUS": 8.0, "NVIDIA_H100": 0.0, "C3_CPUS": 1000.0,
    },
    foreign_projects=frozenset({"somebody-elses"}),
    leaves_disks=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def fine() -> Iterator[Gce]:
    with a_gce() as box:
        yield box


@pytest.fixture(scope="module")
def scarce() -> Iterator[Gce]:
    with a_gce(WEATHER) as box:
        yield box


def limited(**duration: Any) -> dict[str, Any]:
    return scheduling("on-demand", maxRunDuration=duration, instanceTerminationAction="DELETE")


def gpus(kind: str, count: int) -> list[dict[str, Any]]:
    return [{"acceleratorType": f"zones/{ZONE}/acceleratorTypes/{kind}", "acceleratorCount": count}]


def account(email: str) -> list[dict[str, Any]]:
    return [{"email": email, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}]


IMAGES = "projects/deeplearning-platform-release/global/images"
WRONG: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
    ("a name with dots", {"name": "cw.1"}, (400, "invalid")),
    ("a type that is not there", {"kind": "g9-standard-4"}, (400, "invalid")),
    ("an L4 on E2", {"kind": PLAIN, "guestAccelerators": gpus("nvidia-l4", 1)}, (400, "invalid")),
    ("two L4 on a machine of one", {"guestAccelerators": gpus("nvidia-l4", 2)}, (400, "invalid")),
    ("a GPU nobody knows", {"guestAccelerators": gpus("nvidia-gt710", 1)}, (404, "notFound")),
    (
        "three T4",
        {"kind": "n1-standard-8", "guestAccelerators": gpus("nvidia-tesla-t4", 3)},
        (400, "invalid"),
    ),
    (
        "too many vCPUs beside a V100",
        {"kind": "n1-standard-16", "guestAccelerators": gpus("nvidia-tesla-v100", 1)},
        (400, "invalid"),
    ),
    ("GPUs that migrate", {"scheduling": {"automaticRestart": False}}, (400, "invalid")),
    ("spot that restarts", {"scheduling": scheduling(automaticRestart=True)}, (400, "invalid")),
    ("spot that migrates", {"scheduling": scheduling(onHostMaintenance="MIGRATE"), "kind": PLAIN},
     (400, "invalid")),
    ("flex-start", {"scheduling": scheduling(provisioningModel="FLEX_START")}, (400, "invalid")),
    ("29 seconds", {"scheduling": limited(seconds="29")}, (400, "invalid")),
    ("121 days", {"scheduling": limited(seconds=str(121 * 86_400))}, (400, "invalid")),
    (
        "a limit without what comes then",
        {"scheduling": scheduling("on-demand", maxRunDuration={"seconds": "60"})},
        (400, "invalid"),
    ),
    (
        "what comes then without a limit",
        {"scheduling": scheduling("on-demand", instanceTerminationAction="DELETE")},
        (400, "invalid"),
    ),
    (
        "two limits",
        {"scheduling": {**limited(seconds="60"), "terminationTime": "2027-02-01T00:00:00Z"}},
        (400, "invalid"),
    ),
    (
        "an end in the past",
        {"scheduling": scheduling(terminationTime="2020-02-01T00:00:00Z")},
        (400, "invalid"),
    ),
    (
        "a notice of a minute",
        {"scheduling": scheduling(preemptionNoticeDuration={"seconds": "60"})},
        (400, "invalid"),
    ),
    ("65 labels", {"labels": {f"a{number}": "" for number in range(65)}}, (400, "invalid")),
    ("a label with capitals", {"labels": {"Job": "x"}}, (400, "invalid")),
    ("a long value", {"labels": {"job": "x" * 64}}, (400, "invalid")),
    ("a key twice", {"metadata": {"items": [{"key": "a", "value": "1"}] * 2}}, (400, "invalid")),
    ("a strange key", {"metadata": {"items": [{"key": "a b", "value": ""}]}}, (400, "invalid")),
    ("a huge value", {"metadata": metadata(a="x" * (256 * 1024 + 1))}, (400, "invalid")),
    ("huge metadata", {"metadata": metadata(a="x" * 2**18, b="x" * 2**18)}, (400, "invalid")),
    ("no disk", {"disks": []}, (400, "invalid")),
    ("no boot disk first", {"disks": [{**disk(), "boot": False}]}, (400, "invalid")),
    ("a small disk", {"disks": [disk(diskSizeGb="20")]}, (400, "invalid")),
    ("a kind of disk nobody knows", {"disk_kind": "pd-tape"}, (400, "invalid")),
    ("a hyperdisk under G2", {"disk_kind": "hyperdisk-balanced"}, (400, "invalid")),
    ("no hyperdisk under G4", {"kind": "g4-standard-48"}, (400, "invalid")),
    ("no image", {"disks": [disk(sourceImage="my-image")]}, (400, "invalid")),
    ("an old image", {"disks": [disk(sourceImage=f"{IMAGES}/gone-v1")]}, (404, "notFound")),
    ("an old family", {"disks": [disk(sourceImage=f"{IMAGES}/family/gone")]}, (404, "notFound")),
    ("a disk that is not there", {"disks": [{"boot": True, "source": f"zones/{ZONE}/disks/no"}]},
     (400, "invalid")),
    ("no network", {"networkInterfaces": []}, (400, "invalid")),
    ("a network that is not there", {"networkInterfaces": [{"network": "global/networks/no"}]},
     (404, "notFound")),
    ("a subnetwork elsewhere",
     {"networkInterfaces": [{"subnetwork": "regions/us-east4/subnetworks/default"}]},
     (400, "invalid")),
    ("a stranger's account", {"serviceAccounts": account("x@y.iam.gserviceaccount.com")},
     (400, "SERVICE_ACCOUNT_ACCESS_DENIED")),
]  # fmt: skip


@pytest.mark.parametrize(("words", "refusal"), [(one[1], one[2]) for one in WRONG],
                         ids=[one[0] for one in WRONG])  # fmt: skip
def test_an_insert_is_refused_at_once(
    fine: Gce, words: dict[str, Any], refusal: tuple[int, str]
) -> None:
    asked = body(**{"name": "cw-wrong", **words})
    assert fine.refusal("instances.insert", zone=ZONE, body=asked) == refusal
    assert fine.refusal("instances.get", zone=ZONE, instance="cw-wrong")[0] == 404


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"colour": "red"}, 'Unknown name "colour"'),
        ({"scheduling": {"colour": "red"}}, "Unknown name \"colour\" at 'scheduling'"),
        ({"disks": [{"autoDelete": "yes"}]}, "'disks[0].autoDelete'"),
        ({"scheduling": {"provisioningModel": "FREE"}}, "scheduling.provisioningModel"),
        ({"labels": ["a"]}, "'labels'"),
    ],
)
def test_what_google_does_not_know_is_refused(fine: Gce, change: dict[str, Any], says: str) -> None:
    told = fine.error("instances.insert", zone=ZONE, body={**body("cw-odd"), **change})
    assert (told["code"], told["status"]) == (400, "INVALID_ARGUMENT")
    assert says in told["message"]
    assert told["details"][0]["@type"].endswith("google.rpc.BadRequest")


def test_gpus_may_be_said_when_they_are_those_of_the_type_or_attached_to_n1(fine: Gce) -> None:
    fine.made("cw-same", guestAccelerators=gpus("nvidia-l4", 1))
    made = fine.made("cw-n1", kind="n1-standard-16", guestAccelerators=gpus("nvidia-tesla-t4", 2))
    assert made["guestAccelerators"][0]["acceleratorCount"] == 2
    fine.made("cw-hyper", kind="c3-standard-8", disk_kind="hyperdisk-balanced")


@pytest.mark.parametrize(
    ("method", "words", "refusal"),
    [
        ("instances.list", {"zone": "mars-north1-a"}, (400, "invalid")),
        ("regions.get", {"region": "mars-north1"}, (400, "invalid")),
        ("instances.delete", {"zone": ZONE, "instance": "no"}, (404, "notFound")),
        ("zoneOperations.get", {"zone": ZONE, "operation": "no"}, (404, "notFound")),
        ("machineTypes.get", {"zone": ZONE, "machineType": "no"}, (404, "notFound")),
        ("disks.get", {"zone": ZONE, "disk": "no"}, (404, "notFound")),
        ("projects.get", {"project": "nobody-has-this"}, (404, "notFound")),
        ("projects.get", {"project": "somebody-elses"}, (403, "forbidden")),
        ("firewalls.list", {}, (501, "notImplemented")),
    ],
)
def test_what_is_not_there_is_refused(
    scarce: Gce, method: str, words: dict[str, Any], refusal: tuple[int, str]
) -> None:
    assert scarce.refusal(method, **words) == refusal


# -- operations that fail --------------------------------------------------------------------


def test_a_stock_out_is_an_operation_that_fails_and_may_leave_a_disk(scarce: Gce) -> None:
    scarce.made("cw-last", kind=SCARCE)
    operation = scarce.operation(scarce.insert("cw-none", kind=SCARCE))
    error = operation["error"]["errors"][0]
    assert (operation["status"], operation["httpErrorStatusCode"]) == ("DONE", 503)
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert "does not have enough resources available" in error["message"]
    assert scarce.refusal("instances.get", zone=ZONE, instance="cw-none")[0] == 404
    scarce.ask("disks.delete", zone=ZONE, disk="cw-none")
    on_demand = scheduling("on-demand")
    scarce.made("cw-paid", kind=SCARCE, scheduling=on_demand)
    scarce.made("cw-beside", "us-central1-b", kind=SCARCE)
    for name, zone in (("cw-last", ZONE), ("cw-paid", ZONE), ("cw-beside", "us-central1-b")):
        scarce.ask("instances.delete", zone=zone, instance=name)
    scarce.wait(1.0)


def test_capacity_may_be_gone_for_good_when_a_machine_ends(scarce: Gce) -> None:
    for name in ("cw-first", "cw-second"):
        scarce.made(name, kind="e2-standard-4")
    scarce.ask("instances.delete", zone=ZONE, instance="cw-first")
    scarce.wait(1.0)
    operation = scarce.operation(scarce.insert("cw-third", kind="e2-standard-4"))
    assert operation["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"


def test_the_weather_refuses_in_an_operation_or_at_once(scarce: Gce) -> None:
    assert scarce.failure("cw-op", kind="e2-standard-8")["code"] == "RESOURCE_NOT_READY"
    asked = body("cw-http", kind="e2-standard-16")
    assert scarce.refusal("instances.insert", zone=ZONE, body=asked) == (403, "quotaExceeded")
    scarce.made("cw-aws", kind="e2-standard-32")  # that code is none of this cloud's


def test_quotas_hold_in_a_region_and_everywhere(scarce: Gce) -> None:
    """Four L4 in one region, one in the other, six GPUs everywhere."""
    names = [(f"cw-q{number}", ZONE) for number in range(4)]
    for name, zone in names:
        scarce.made(name, zone)
    error = scarce.failure("cw-q4")
    info = error["errorDetails"][0]["quotaInfo"]
    assert (error["code"], info["limit"]) == ("QUOTA_EXCEEDED", 4.0)
    assert info["metricName"] == "compute.googleapis.com/nvidia_l4_gpus"
    assert info["limitName"] == "NVIDIA-L4-GPUS-per-project-region"
    assert info["dimensions"] == {"region": REGION}
    assert "NVIDIA_L4_GPUS" in error["message"]
    scarce.made("cw-q5", "us-east4-a")
    assert "us-east4" in scarce.failure("cw-q6", "us-east4-a")["message"]
    scarce.made("cw-q7", kind="a2-highgpu-1g")
    everywhere = scarce.failure("cw-q8", kind="a2-highgpu-1g", scheduling=scheduling("on-demand"))
    assert "GPUS_ALL_REGIONS" in everywhere["message"]
    told = {one["metric"]: one for one in scarce.ask("regions.get", region=REGION)["quotas"]}
    assert (told["NVIDIA_L4_GPUS"]["limit"], told["NVIDIA_L4_GPUS"]["usage"]) == (4.0, 4.0)
    assert told["PREEMPTIBLE_NVIDIA_A100_GPUS"]["usage"] == 1.0
    assert told["NVIDIA_A100_GPUS"]["usage"] == 0.0 and "NVIDIA_H100" not in told
    project = {one["metric"]: one for one in scarce.ask("projects.get")["quotas"]}
    assert project["GPUS_ALL_REGIONS"] == {"metric": "GPUS_ALL_REGIONS", "limit": 6.0, "usage": 6.0}
    for name, zone in [*names, ("cw-q5", "us-east4-a"), ("cw-q7", ZONE)]:
        scarce.ask("instances.delete", zone=zone, instance=name)
    scarce.wait(1.0)


def test_a_preemptible_quota_that_is_granted_is_the_only_one_for_spot(scarce: Gce) -> None:
    scarce.made("cw-p1", kind="a2-highgpu-1g")
    error = scarce.failure("cw-p2", kind="a2-highgpu-1g")
    assert "PREEMPTIBLE_NVIDIA_A100_GPUS" in error["message"]
    scarce.made("cw-p3", kind="a2-highgpu-1g", scheduling=scheduling("on-demand"))
    for name in ("cw-p1", "cw-p3"):
        scarce.ask("instances.delete", zone=ZONE, instance=name)
    scarce.wait(1.0)


def test_a_family_of_gpus_that_regions_do_not_show_has_a_quota_too(scarce: Gce) -> None:
    info = scarce.failure("cw-h100", kind="a3-highgpu-1g")["errorDetails"][0]["quotaInfo"]
    assert info["limitName"] == "GPUS-PER-GPU-FAMILY-per-project-region"
    assert info["dimensions"] == {"region": REGION, "gpu_family": "NVIDIA_H100"}


def test_a_stopped_machine_takes_no_quota_of_processors_but_of_its_disk(scarce: Gce) -> None:
    before = used(scarce, "SSD_TOTAL_GB")
    scarce.made("cw-n2", kind="n2-standard-8")
    assert scarce.failure("cw-n3", kind="n2-standard-8")["code"] == "QUOTA_EXCEEDED"
    scarce.compute.end("cw-n2")
    scarce.wait(1.0)
    assert (used(scarce, "N2_CPUS"), used(scarce, "SSD_TOTAL_GB")) == (0.0, before + 200.0)
    scarce.made("cw-n4", kind="n2-standard-8")


def used(box: Gce, metric: str) -> float:
    quotas = box.ask("regions.get", region=REGION)["quotas"]
    return next(float(one["usage"]) for one in quotas if one["metric"] == metric)


# -- the project -----------------------------------------------------------------------------


def test_an_api_that_is_not_enabled_says_how_to_enable_it() -> None:
    with a_gce(Weather(closed_apis=frozenset({"compute.googleapis.com"}))) as box:
        told = box.error("instances.aggregatedList")
        assert (told["code"], told["status"]) == (403, "PERMISSION_DENIED")
        assert told["errors"][0]["reason"] == "accessNotConfigured"
        info = told["details"][0]
        assert (info["reason"], info["metadata"]["service"]) == (
            "SERVICE_DISABLED", "compute.googleapis.com",
        )  # fmt: skip
        assert info["metadata"]["consumer"] == f"projects/{PROJECT_NUMBER}"
        box.compute.services.closed_apis.clear()
        assert "items" in box.ask("instances.aggregatedList")


def test_a_bare_project_refuses_what_needs_more() -> None:
    weather = Weather(
        external_addresses=False, preemption_notices=False, image=False, default_network=False
    )
    with a_gce(weather) as box:
        asked = body("cw-bare")
        assert box.refusal("networks.get", network="default") == (404, "notFound")
        assert "items" not in box.ask("networks.list")
        family = {"project": "ubuntu-os-cloud", "family": "ubuntu-2404-lts-amd64"}
        assert box.refusal("images.getFromFamily", **family) == (404, "notFound")
        noticed = {**asked, "scheduling": scheduling(preemptionNoticeDuration={"seconds": "120"})}
        assert "preemptionNoticeDuration" in box.error(
            "instances.insert", zone=ZONE, body=noticed
        )["message"]  # fmt: skip


def test_a_policy_of_the_organisation_forbids_external_addresses() -> None:
    with a_gce(Weather(external_addresses=False)) as box:
        told = box.error("instances.insert", zone=ZONE, body=body("cw-out"))
        assert (told["code"], told["errors"][0]["reason"]) == (412, "conditionNotMet")
        assert "constraints/compute.vmExternalIpAccess" in told["message"]
        inside = [{"subnetwork": f"regions/{REGION}/subnetworks/default"}]
        assert "accessConfigs" not in box.made("cw-in", networkInterfaces=inside)[
            "networkInterfaces"
        ][0]  # fmt: skip


# -- faults ----------------------------------------------------------------------------------


def test_calls_fail_as_they_are_asked_to(fine: Gce) -> None:
    fine.compute.fault("compute.instances.insert", "error-before")
    fine.compute.fault("compute.instances.insert", "throttle")
    fine.compute.fault("compute.instances.insert", "throttle", code="resourceExhausted")
    fine.compute.fault("compute.instances.insert", "error-before", code="billingDisabled")
    asked = {"zone": ZONE, "body": body("cw-fault", kind=PLAIN)}
    refused = [fine.refusal("instances.insert", **asked) for _ in range(4)]
    assert refused == [
        (503, "backendError"), (403, "rateLimitExceeded"), (429, "resourceExhausted"),
        (403, "billingDisabled"),
    ]  # fmt: skip
    fine.compute.fault("compute.instances.*", "error-after-success")
    assert fine.refusal("instances.insert", **asked) == (503, "backendError")
    assert fine.status("cw-fault") == "RUNNING"
    fine.compute.fault("compute.instances.insert", "throttle", times=99)
    fine.compute.no_faults()
    fine.made("cw-fine", kind=PLAIN)


def test_an_operation_fails_as_it_is_asked_to(fine: Gce) -> None:
    code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    fine.compute.fault("compute.instances.insert", "error-before", code=code)
    request = "11111111-2222-4333-8444-000000000009"
    assert fine.failure("cw-asked", request=request)["code"] == code
    again = fine.operation(fine.insert("cw-asked", request=request))
    assert again["error"]["errors"][0]["code"] == code
    assert fine.refusal("instances.get", zone=ZONE, instance="cw-asked")[0] == 404


def test_a_share_of_all_calls_fails_by_chance(fine: Gce) -> None:
    fine.compute.fault_share(1.0, seed=5)
    with pytest.raises(Exception) as failed:
        fine.ask("zones.list")
    fine.compute.fault_share(0.0)
    assert failed.value is not None and "items" in fine.ask("zones.list")
