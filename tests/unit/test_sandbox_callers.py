"""Who asks the sandbox's cloud: its user, a machine by its keys, and others, who get 403."""

import http.client
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

import obstore
import pytest
from boxed import REGION, Box, a_box
from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

from cloudwhale_providers.sandbox.endpoint import Credentials
from cloudwhale_providers.sandbox.endpoint.account import MACHINE_ROLE_ID
from cloudwhale_providers.sandbox.endpoint.callers import HOLD_S, RENEWED_S
from cloudwhale_providers.sandbox.names import ACCESS_KEY, BUCKET, INSTANCE_PROFILE, SECRET_KEY

Refused: Any = (PermissionDeniedError, UnauthenticatedError)
_SESSION: Any = import_module("botocore.session").Session()
_CONFIGS: Any = import_module("botocore.config")
_ERRORS: Any = import_module("botocore.exceptions")
PROFILE = {"Name": INSTANCE_PROFILE}
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with a_box() as box:
        yield box


def keys_of(box: Box, machine: str) -> Credentials:
    found = box.endpoint.credentials_of(machine)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def machine(box: Box) -> str:
    return box.run(IamInstanceProfile=PROFILE)


@pytest.fixture
def keys(box: Box, machine: str) -> Credentials:
    """Give a machine's keys, which other tests may have let grow old."""
    return keys_of(box, machine)


def own(machine: str, name: str) -> str:
    """Return a key of a machine's own inbox."""
    return f"mailbox/inbox/@{MACHINE_ROLE_ID}:{machine}@n/{name}"


def a_client(box: Box, service: str, keys: Credentials, **config: Any) -> Any:
    return _SESSION.create_client(
        service,
        region_name=REGION,
        endpoint_url=box.endpoint.url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        aws_session_token=keys.token or None,
        config=_CONFIGS.Config(
            retries={"total_max_attempts": 1}, ignore_configured_endpoint_urls=True, **config
        ),
    )


def code(box: Box, service: str, verb: str, keys: Credentials, **words: Any) -> tuple[str, int]:
    """Return the code and the status that a call is refused with."""
    client = a_client(box, service, keys)
    try:
        getattr(client, verb)(**words)
    except _ERRORS.ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return str(error.response["Error"]["Code"]), int(status)
    finally:
        client.close()
    raise AssertionError(f"{verb} was not refused")


def plain(box: Box, method: str, target: str, body: bytes = b"", **headers: str) -> int:
    """Return the status of a request that nobody signs."""
    link = http.client.HTTPConnection(box.endpoint.url.removeprefix("http://"), timeout=30.0)
    try:
        link.request(method, target, body, {k.replace("_", "-"): v for k, v in headers.items()})
        return link.getresponse().status
    finally:
        link.close()


# -- the keys of a machine -------------------------------------------------------------------


def test_a_machine_with_a_role_has_keys_as_aws_gives_them(keys: Credentials) -> None:
    assert len(keys.access_key) == 20 and keys.access_key.startswith("ASIA")
    assert set(keys.access_key) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    assert len(keys.secret_key) == 40 and len(keys.token) > 100


def test_a_machine_without_a_role_has_none(box: Box) -> None:
    assert box.endpoint.credentials_of(box.run()) is None


def test_a_machine_that_never_was_has_none(box: Box) -> None:
    assert box.endpoint.credentials_of("i-0123456789abcdef0") is None


def test_each_machine_has_its_own(box: Box, keys: Credentials) -> None:
    other = keys_of(box, box.run(IamInstanceProfile=PROFILE))
    assert {other.access_key, other.secret_key, other.token}.isdisjoint(
        {keys.access_key, keys.secret_key, keys.token}
    )


def test_keys_stay_until_they_are_about_to_run_out_and_old_ones_hold_meanwhile(box: Box) -> None:
    machine = box.run(IamInstanceProfile=PROFILE)
    first = keys_of(box, machine)
    box.wait(HOLD_S - RENEWED_S - 1.0)
    assert keys_of(box, machine) == first
    box.wait(2.0)
    second = keys_of(box, machine)
    assert second.access_key != first.access_key
    assert second.expires_at == box.clock.now() + HOLD_S
    obstore.put(box.store(first), own(machine, "1"), b"old")
    obstore.put(box.store(second), own(machine, "2"), b"new")
    box.wait(RENEWED_S)
    with pytest.raises(obstore.exceptions.GenericError, match="ExpiredToken"):
        obstore.put(box.store(first), own(machine, "3"), b"too late")


def test_the_keys_of_a_machine_that_has_ended_open_nothing(box: Box) -> None:
    machine = box.run(IamInstanceProfile=PROFILE)
    store = box.store(keys_of(box, machine))
    obstore.put(store, own(machine, "here"), b"here")
    box.ec2("terminate_instances", InstanceIds=[machine])
    with pytest.raises(obstore.exceptions.GenericError, match="ExpiredToken"):
        obstore.put(store, own(machine, "late"), b"still here")
    assert box.endpoint.credentials_of(machine) is None


# -- signatures ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "b c+d é%", "~x=y&z", "@a:b@c"])
def test_the_mailbox_client_signs_as_is_expected(
    box: Box, machine: str, keys: Credentials, name: str
) -> None:
    store, key = box.store(keys), own(machine, name)
    obstore.put(store, key, b"body", mode="create")
    assert obstore.get(store, key).bytes() == b"body"
    assert key in [one["path"] for some in obstore.list(store, own(machine, "")) for one in some]


def test_what_goes_in_parts_is_signed_part_by_part(box: Box, keys: Credentials) -> None:
    body = bytes(range(256)) * (6 * 4 * 1024)
    store = box.store(keys)
    obstore.put(store, "mailbox/outputs/j/1/x", body, use_multipart=True, chunk_size=5 * MIB)
    assert obstore.get(store, "mailbox/outputs/j/1/x").bytes() == body


@pytest.mark.parametrize("checksums", ["when_required", "when_supported"])
def test_the_sdk_signs_as_is_expected(
    box: Box, machine: str, keys: Credentials, checksums: str
) -> None:
    client = a_client(box, "s3", keys, request_checksum_calculation=checksums)
    key = own(machine, "s d k")
    client.put_object(Bucket=BUCKET, Key=key, Body=b"body", Metadata={"a": "b  c"})
    answer = client.get_object(Bucket=BUCKET, Key=key)
    assert answer["Body"].read() == b"body"
    client.close()


def test_an_address_that_was_signed_beforehand_is_good(
    box: Box, machine: str, keys: Credentials
) -> None:
    store = box.store(keys)
    obstore.put(store, own(machine, "signed"), b"body")
    url = obstore.sign(store, "GET", own(machine, "signed"), timedelta(minutes=5))
    target = url.removeprefix(box.endpoint.url)
    assert plain(box, "GET", target) == 200
    assert plain(box, "GET", target.replace("signed?", "other?")) == 403
    assert plain(box, "PUT", target) == 403


def test_another_secret_or_token_opens_nothing(box: Box, keys: Credentials) -> None:
    asked = {"Bucket": BUCKET, "Key": "mailbox/inbox/n/a"}
    wrong = replace(keys, secret_key="not-the-secret")
    assert code(box, "s3", "get_object", wrong, **asked) == ("SignatureDoesNotMatch", 403)
    wrong = replace(keys, token="not-the-token")
    assert code(box, "s3", "get_object", wrong, **asked) == ("InvalidAccessKeyId", 403)
    wrong = replace(keys, token="")
    assert code(box, "s3", "get_object", wrong, **asked) == ("InvalidAccessKeyId", 403)


def test_a_body_that_was_changed_on_its_way_is_refused(
    box: Box, machine: str, keys: Credentials
) -> None:
    awsrequest: Any = import_module("botocore.awsrequest")
    auth: Any = import_module("botocore.auth")
    credentials: Any = import_module("botocore.credentials")
    url = f"{box.endpoint.url}/{BUCKET}/{own(machine, 'changed')}"
    request = awsrequest.AWSRequest("PUT", url, data=b"mine")
    known = credentials.Credentials(keys.access_key, keys.secret_key, keys.token)
    signer = auth.S3SigV4Auth(known, "s3", REGION)
    request.context["client_config"] = _CONFIGS.Config(s3={"payload_signing_enabled": True})
    signer.add_auth(request)
    headers = {name.replace("-", "_"): str(value) for name, value in request.headers.items()}
    target = url.removeprefix(box.endpoint.url)
    assert plain(box, "PUT", target, b"mine", **headers) == 200
    assert plain(box, "PUT", target, b"his!", **headers) == 403


# -- everybody else --------------------------------------------------------------------------

NOBODY = Credentials("AKIDNOBODYATALL00000", "nothing", "", 0.0)
IMPOSTOR = Credentials(ACCESS_KEY, "guessed", "", 0.0)
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("s3", "list_objects_v2", {"Bucket": BUCKET}),
    ("ec2", "describe_instances", {}),
    ("iam", "get_role", {"RoleName": "x"}),
    ("sts", "get_caller_identity", {}),
    ("ssm", "get_parameter", {"Name": "x"}),
    ("scheduler", "list_schedules", {}),
    ("service-quotas", "get_service_quota", {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}),
]
STRANGERS = {
    "s3": "InvalidAccessKeyId",
    "ec2": "AuthFailure",
    "iam": "InvalidClientTokenId",
    "sts": "InvalidClientTokenId",
}
IMPOSTORS = {
    "s3": "SignatureDoesNotMatch",
    "ec2": "AuthFailure",
    "iam": "SignatureDoesNotMatch",
    "sts": "SignatureDoesNotMatch",
}


@pytest.mark.parametrize(("service", "verb", "words"), CALLS, ids=[one[0] for one in CALLS])
def test_a_key_that_nobody_gave_out_is_refused_in_the_services_words(
    box: Box, service: str, verb: str, words: dict[str, Any]
) -> None:
    told = code(box, service, verb, NOBODY, **words)[0]
    assert told == STRANGERS.get(service, "UnrecognizedClientException")


@pytest.mark.parametrize(("service", "verb", "words"), CALLS, ids=[one[0] for one in CALLS])
def test_the_users_key_without_its_secret_opens_nothing(
    box: Box, service: str, verb: str, words: dict[str, Any]
) -> None:
    told = code(box, service, verb, IMPOSTOR, **words)[0]
    assert told == IMPOSTORS.get(service, "InvalidSignatureException")


def test_a_refusal_says_what_time_it_is_too(box: Box) -> None:
    link = http.client.HTTPConnection(box.endpoint.url.removeprefix("http://"), timeout=30.0)
    link.request("GET", f"/{BUCKET}/")
    date = link.getresponse().headers["Date"]
    link.close()
    assert parsedate_to_datetime(date).timestamp() == int(box.clock.now())


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "POST"])
def test_who_does_not_sign_gets_403_from_the_store(box: Box, method: str) -> None:
    target = f"/{BUCKET}/mailbox/orders/n/000001.json"
    assert plain(box, method, target) == 403
    assert plain(box, method, f"/{BUCKET}") == 403


def test_who_does_not_sign_learns_of_no_machine(box: Box) -> None:
    form = "application/x-www-form-urlencoded"
    body = b"Action=DescribeInstances&Version=2016-11-15"
    assert plain(box, "POST", "/", body, Content_Type=form) == 401  # AuthFailure, as EC2 has it
    assert plain(box, "GET", "/schedules") == 403


def test_the_user_is_who_it_says(box: Box) -> None:
    user = Credentials(ACCESS_KEY, SECRET_KEY, "", 0.0)
    client = a_client(box, "s3", user)
    client.put_object(Bucket=BUCKET, Key="own", Body=b"x")
    assert client.get_object(Bucket=BUCKET, Key="own")["Body"].read() == b"x"
    client.close()
