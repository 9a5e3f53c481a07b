"""Who asks the box's Compute Engine: keys, JWTs, tokens of machines, and strangers."""

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

import pytest
from boxed_gce import NOON, PLAIN, SCOPE, ZONE, Gce, a_gce, body

from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.compute import Caller
from cloudwhale_providers.sandbox.compute.places import MACHINE_ACCOUNT, USER_ACCOUNT
from cloudwhale_providers.sandbox.endpoint.refused import Refused

_HTTP: Any = import_module("httplib2")
_ACCOUNT: Any = import_module("google.oauth2.service_account")
_AUTHORIZED: Any = import_module("google_auth_httplib2")
_JWT: Any = import_module("google.auth.jwt")
_CRYPT: Any = import_module("google.auth.crypt")


@pytest.fixture(scope="module")
def box() -> Iterator[Gce]:
    with a_gce() as box:
        yield box


def signed(box: Gce, **change: Any) -> str:
    key: Any = box.compute.key_file()
    claims = {
        "iss": USER_ACCOUNT, "scope": SCOPE, "aud": key["token_uri"],
        "iat": int(box.clock.now()), "exp": int(box.clock.now()) + 3600, **change,
    }  # fmt: skip
    signer = _CRYPT.RSASigner.from_service_account_info(key)
    return str(_JWT.encode(signer, claims).decode())


def exchange(box: Gce, assertion: str, grant: str = "") -> tuple[int, dict[str, Any]]:
    form = {
        "grant_type": grant or "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": assertion,
    }
    http = _HTTP.Http()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    head, content = http.request(f"{box.compute.url}/token", "POST", urlencode(form), headers)
    http.close()
    return int(head.status), json.loads(content)


def test_googles_own_library_logs_in_with_the_key_of_the_box() -> None:
    with a_gce() as box:
        box.compute.outside = SystemClock().now  # by which the library signs
        key = box.compute.key_file()
        who = _ACCOUNT.Credentials.from_service_account_info(key, scopes=[SCOPE])
        http = _AUTHORIZED.AuthorizedHttp(who, http=_HTTP.Http())
        url = f"{box.compute.url}/compute/v1/projects/{key['project_id']}/zones"
        head, _ = http.request(url)
        http.close()
        assert (head.status, who.service_account_email) == (200, USER_ACCOUNT)
        assert box.compute.knows(who.token)


def test_a_jwt_is_exchanged_for_a_token_that_lives_an_hour(box: Gce) -> None:
    status, told = exchange(box, signed(box))
    assert (status, told["token_type"]) == (200, "Bearer") and told["expires_in"] > 3000
    header = f"Bearer {told['access_token']}"
    assert box.compute.who(header) == Caller(USER_ACCOUNT)
    box.wait(3601.0)
    with pytest.raises(Refused):
        box.compute.who(header)
    assert not box.compute.knows(told["access_token"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"iss": "x@y.iam.gserviceaccount.com"}, "account not found"),
        ({"aud": "https://example.com"}, "audience"),
        ({"iat": NOON - 9000, "exp": NOON - 5400}, "short-lived"),
        ({"exp": NOON + 10**9}, "short-lived"),
        ({"scope": ""}, "scope"),
    ],
)
def test_a_jwt_that_is_wrong_opens_nothing(box: Gce, change: dict[str, Any], says: str) -> None:
    status, told = exchange(box, signed(box, **change))
    assert (status, told["error"]) == (400, "invalid_grant")
    assert says in told["error_description"]


def test_a_jwt_of_another_key_or_of_none_opens_nothing(box: Gce) -> None:
    with a_gce() as other:
        strange = signed(other)
    told = exchange(box, strange)[1]
    assert told["error_description"] == "Invalid JWT Signature."
    assert exchange(box, "no.jwt.atall")[1]["error"] == "invalid_grant"
    assert exchange(box, "", "password")[1]["error"] == "unsupported_grant_type"


def test_a_jwt_is_a_token_by_itself(box: Gce) -> None:
    assert box.compute.who(f"Bearer {signed(box)}") == Caller(USER_ACCOUNT)
    assert not box.compute.knows(signed(box, iss="nobody"))


@pytest.mark.parametrize("header", ["", "Basic x", "Bearer ", "Bearer ya29.unknown"])
def test_whoever_has_no_token_is_refused(box: Gce, header: str) -> None:
    http = _HTTP.Http()
    url = f"{box.compute.url}/compute/v1/projects/cloudwhale-sandbox/zones"
    head, content = http.request(url, headers={"authorization": header})
    http.close()
    told = json.loads(content)["error"]
    assert (head.status, told["status"]) == (401, "UNAUTHENTICATED")
    assert told["errors"][0]["reason"] == "authError"


def test_what_is_no_method_is_not_found(box: Gce) -> None:
    http = _HTTP.Http()
    head, _ = http.request(f"{box.compute.url}/compute/v2/projects/x")
    http.close()
    assert head.status == 404


def test_a_machine_has_a_token_for_as_long_as_it_runs(box: Gce) -> None:
    made = box.made("cw-token", kind=PLAIN)
    first = box.compute.credentials_of(made["id"])
    assert first is not None and first.left_s == 3600.0
    assert box.compute.who(f"Bearer {first.text}") == Caller(MACHINE_ACCOUNT, made["id"])
    box.wait(1800.0)
    again = box.compute.credentials_of("cw-token")
    assert again is not None and (again.text, again.left_s) == (first.text, 1800.0)
    box.wait(1600.0)
    newer = box.compute.credentials_of("cw-token")
    assert newer is not None and newer.text != first.text
    box.compute.end("cw-token")
    assert box.compute.credentials_of("cw-token") is None
    assert not box.compute.knows(newer.text)


def test_a_machine_without_an_account_has_no_token(box: Gce) -> None:
    box.made("cw-nobody", kind=PLAIN, serviceAccounts=[])
    assert box.compute.credentials_of("cw-nobody") is None
    assert box.compute.credentials_of("not-there") is None


def test_a_machine_may_not_make_machines(box: Gce) -> None:
    box.made("cw-machine", kind=PLAIN)
    token = box.compute.credentials_of("cw-machine")
    assert token is not None
    box.token = token.text
    refused = box.refusal("instances.list", zone=ZONE)
    box.token = ""
    assert refused == (403, "forbidden")


def test_somebody_else_may_say_who_may_do_what() -> None:
    asked: list[tuple[str, str]] = []
    with a_gce() as box:

        def may(caller: Caller, permission: str, resource: str) -> bool:
            asked.append((caller.email, permission))
            return permission != "compute.disks.create"

        box.compute.hold_to(may)
        box.ask("zones.list")
        told = box.error("instances.insert", zone=ZONE, body=body("cw-held"))
        assert told["errors"][0]["reason"] == "forbidden"
        assert "Required 'compute.disks.create' permission" in told["message"]
    assert asked == [
        (USER_ACCOUNT, "compute.zones.list"),
        (USER_ACCOUNT, "compute.instances.create"),
        (USER_ACCOUNT, "compute.disks.create"),
    ]
