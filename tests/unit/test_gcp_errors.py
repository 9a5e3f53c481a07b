"""What Google's error codes become: each provoked, as a refusal and in an operation that failed."""

from typing import Any

import pytest
from boxed_gcp import Box, stepped
from renting_gcp import a_request, an_offer, facts

from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    NoCapacity,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)
from cloudwhale_providers.gcp.asking import Said, code_of
from cloudwhale_providers.gcp.errors import AUTH, REACTIONS, Errand, failure, reaction
from cloudwhale_providers.gcp.saying import told, wrong_with
from cloudwhale_providers.sandbox.endpoint import Refusal, Weather, Which

OPERATIONS: dict[str, type[CloudwhaleError]] = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": NoCapacity,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": NoCapacity,
    "RESOURCE_POOL_EXHAUSTED": NoCapacity,
    "STOCKOUT": NoCapacity,
    "UNSUPPORTED_OPERATION": NoCapacity,
    "RESOURCE_NOT_READY": NoCapacity,
    "VM_MIN_COUNT_NOT_REACHED": NoCapacity,
    "QUOTA_EXCEEDED": QuotaExceeded,
    "RESOURCE_OPERATION_RATE_EXCEEDED": TryAnother,
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": TryAnother,
    "INTERNAL_ERROR": TryAnother,
    "CONDITION_NOT_MET": Denied,
    "PERMISSIONS_ERROR": Denied,
    "INVALID_USAGE": Denied,
}
"""What a launch says whose operation has failed: by then it is known that nothing was made."""
REFUSALS: dict[str, type[CloudwhaleError]] = {
    "insufficientCapacity": NoCapacity,
    "quotaExceeded": QuotaExceeded,
    "rateLimitExceeded": Unreachable,
    "userRateLimitExceeded": Unreachable,
    "resourceExhausted": Unreachable,
    "backendError": Unreachable,
    "internalError": Unreachable,
    "resourceNotReady": Unreachable,
    "resourceInUseByAnotherResource": Unreachable,
    "forbidden": Denied,
    "accessNotConfigured": Denied,
    "billingDisabled": Denied,
    "authError": Denied,
    "conditionNotMet": Denied,
    "invalid": Denied,
    "badRequest": Denied,
    "required": Denied,
}
"""What a launch says that is refused at once."""
CASES = sorted((OPERATIONS | REFUSALS).items())


def _refused(box: Box, **offer: Any) -> CloudwhaleError:
    asked = an_offer(**offer)
    with pytest.raises(CloudwhaleError) as caught:
        box.provider("lab", asked).launch(a_request("rental-1", asked, box.clock.now() + 3600))
    return caught.value


@pytest.mark.parametrize(("code", "kind"), CASES)
def test_a_launch_that_fails_with_a_code(code: str, kind: type[CloudwhaleError]) -> None:
    box = stepped(Weather(refusals=(Refusal(Which(), code),)))
    error = _refused(box)
    assert type(error) is kind and code_of(error) == code
    assert "compute.instances.create in us-central1-a" in error.says
    assert error.remedy or kind in (NoCapacity, TryAnother)
    assert not box.endpoint.instances()


def test_every_code_of_the_table_is_known_to_mean_something() -> None:
    for code in REACTIONS:
        assert issubclass(reaction(Said(code, "so it is")).kind, CloudwhaleError)
    unproven = set(REACTIONS) - set(OPERATIONS) - set(REFUSALS)
    # Spelled otherwise by other front ends of Google, or of other APIs than Compute Engine's.
    assert unproven == {
        "stockout", "limitExceeded", "RATE_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL",
        "UNAVAILABLE", "DEADLINE_EXCEEDED", "resourceInUse", "fingerprintMismatch",
        "alreadyExists", "RESOURCE_ALREADY_EXISTS", "SERVICE_DISABLED", "BILLING_DISABLED",
        "billingNotEnabled", "CONSUMER_INVALID", "CONSUMER_SUSPENDED", "USER_PROJECT_DENIED",
        "IAM_PERMISSION_DENIED", "PERMISSION_DENIED", "insufficientPermissions",
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "SERVICE_ACCOUNT_ACCESS_DENIED", "UNAUTHENTICATED",
        "ACCESS_TOKEN_EXPIRED", "CREDENTIALS_MISSING", "notFound", "RESOURCE_NOT_FOUND",
        "INVALID_ARGUMENT", "INVALID_FIELD_VALUE",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "status", "says", "kind", "remedy"),
    [
        ("backendError", 503, "The zone does not have enough resources available", NoCapacity, ""),
        (
            "notFound", 404,
            "The resource 'projects/p/zones/z/machineTypes/g2-standard-4' was not found",
            NoCapacity, "",
        ),
        (
            "invalid", 400, "Invalid value for field 'resource.machineType': 'x'. Machine type "
            "with name 'x' does not exist in zone 'z'.", NoCapacity, "",
        ),
        (
            "notFound", 404,
            "The resource 'projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4' was not found",
            NoCapacity, "",
        ),
        (
            "conditionNotMet", 412, "Constraint constraints/compute.vmExternalIpAccess violated",
            Denied, "external_address = false",
        ),
        (
            "conditionNotMet", 412, "Constraint constraints/compute.requireShieldedVm violated",
            Denied, "org-policies list --project=p",
        ),
        (
            "forbidden", 403, "Required 'compute.images.useReadOnly' permission for "
            "'projects/x/global/images/y'", Denied, "Allow compute.instances.create",
        ),
        (
            "notFound", 404, "The resource 'projects/x/global/images/family/y' was not found",
            Denied, "`image` of [clouds.gcp]",
        ),
        (
            "invalid", 400, "Invalid value for field 'resource.networkInterfaces[0].network': x",
            Denied, "--subnet-mode=auto",
        ),
        (
            "forbidden", 403, "Compute Engine API has not been used in project 1 before or it is "
            "disabled", Denied, "gcloud services enable compute.googleapis.com --project=p",
        ),
        (
            "SERVICE_ACCOUNT_ACCESS_DENIED", 400, "The user does not have access", Denied,
            "gcloud iam service-accounts add-iam-policy-binding m@p.iam",
        ),
        ("forbidden", 403, "This API method requires billing to be enabled", Denied, "billing"),
        ("notFound", 404, "The resource 'projects/p' was not found", Denied, "projects list"),
        ("unheardOf", 502, "so it is", Unreachable, "by itself"),
        ("unheardOf", 429, "so it is", Unreachable, "by itself"),
        ("unheardOf", 401, "so it is", Denied, "gcloud auth application-default login"),
        ("unheardOf", 403, "so it is", Denied, "Allow"),
        ("unheardOf", 400, "so it is", Denied, "please report it"),
        (
            "conditionNotMet", 412, "The resource is protected against deletion", Denied,
            "--no-deletion-protection",
        ),
    ],
)  # fmt: skip
def test_a_sentence_tells_what_a_code_does_not(
    code: str, status: int, says: str, kind: type[CloudwhaleError], remedy: str
) -> None:
    known = reaction(Said(code, says, status))
    errand = Errand("compute.instances.create", "z", "p", "m@p.iam")
    words = {"service": "compute.googleapis.com", **errand._asdict()}
    assert known.kind is kind and remedy in known.remedy.format_map(words)


# -- reading -------------------------------------------------------------------------------------


def test_the_reason_of_the_front_of_googles_apis_is_read_with_its_facts() -> None:
    body = (
        b'{"error": {"code": 403, "message": "off", "status": "PERMISSION_DENIED", "errors": '
        b'[{"reason": "forbidden"}], "details": [{"@type": "t", "reason": "SERVICE_DISABLED", '
        b'"metadata": {"service": "compute.googleapis.com"}}]}}'
    )
    said = told(403, body)
    assert (said.code, said.status) == ("SERVICE_DISABLED", 403)
    assert said.facts == {"service": "compute.googleapis.com"}


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": "no"}', b'{"error": {}}'])
def test_an_answer_that_is_no_json_has_its_status_as_its_code(body: bytes) -> None:
    said = told(502, body)
    assert (said.code, said.status) == ("502", 502) and said.says
    assert reaction(said).kind is Unreachable


def test_a_quota_is_read_from_words_and_from_parts() -> None:
    words = {
        "code": "QUOTA_EXCEEDED",
        "message": "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
    }
    (said,) = wrong_with({"error": {"errors": [words]}, "httpErrorStatusCode": 403})
    assert (said.metric, said.limit, said.status) == ("GPUS_ALL_REGIONS", 0.0, 403)
    info = {"limitName": "NVIDIA-L4-GPUS-per-project-region", "limit": 2.0}
    parts = {"code": "QUOTA_EXCEEDED", "message": "no", "errorDetails": [{"quotaInfo": info}]}
    (said,) = wrong_with({"error": {"errors": [parts]}})
    assert (said.metric, said.limit) == ("NVIDIA_L4_GPUS", 2.0)
    assert not wrong_with({"status": "DONE"})


@pytest.mark.parametrize("name", sorted(AUTH))
def test_what_googles_libraries_say_themselves_is_denied(name: str) -> None:
    error = failure(type(name, (Exception,), {})("no"), Errand("compute.instances.list"))
    assert isinstance(error, Denied) and error.remedy


def test_silence_is_unknown() -> None:
    assert isinstance(failure(TimeoutError("timed out"), Errand("x")), Unreachable)
    assert isinstance(failure(ConnectionResetError(), Errand("x")), Unreachable)


# -- quotas --------------------------------------------------------------------------------------


def test_a_quota_of_a_region_holds_for_it_and_its_command_is_told() -> None:
    box = stepped(Weather(quotas={"us-central1/NVIDIA_L4_GPUS": 0.0}))
    error = _refused(box, market="on-demand")
    assert isinstance(error, QuotaExceeded) and error.offers == ()
    assert "--quota-id=NVIDIA-L4-GPUS-per-project-region" in error.remedy
    assert "--dimensions=region=us-central1" in error.remedy
    assert "--project=cloudwhale-sandbox" in error.remedy


def test_a_quota_of_the_project_holds_for_all_that_counts_against_it() -> None:
    box = stepped(Weather(quotas={"GPUS_ALL_REGIONS": 0.0}))
    plain = an_offer(type="e2-standard-4", facts=facts(gpus=0), quota="gcp/r/spot/CPUS")
    offers = [an_offer(), an_offer("us-east4-c", "on-demand"), plain]
    asked = offers[0]
    with pytest.raises(QuotaExceeded, match="GPUS_ALL_REGIONS") as caught:
        box.provider("lab", *offers).launch(a_request("rental-1", asked, box.clock.now() + 3600))
    assert caught.value.offers == (offers[1].id,)
    assert "--quota-id=GPUS-ALL-REGIONS-per-project " in caught.value.remedy
    assert "--dimensions" not in caught.value.remedy


def test_what_a_refusal_tells_of_a_quota_is_offered_no_more() -> None:
    """H100's is in no list: nobody knows it before a launch was refused."""
    quota = "gcp/us-central1/on-demand/NVIDIA_H100"
    big = an_offer(
        market="on-demand", type="a3-highgpu-8g", quota=quota, quota_units=8.0,
        facts=facts("H100-80GB", 8, 6000.0),
    )  # fmt: skip
    box = stepped(Weather(quotas={"NVIDIA_H100": 0.0}))
    provider = box.provider("lab", big)
    assert {one.quota_left for one in provider.offers(box.clock.now())} == {1152.0}
    with pytest.raises(QuotaExceeded) as caught:
        provider.launch(a_request("rental-1", big, box.clock.now() + 3600))
    assert "gpu_family=NVIDIA_H100" in caught.value.remedy
    assert {one.quota_left for one in provider.offers(box.clock.now())} == {0.0}
