"""The check of requests and answers against Google's discovery document sees what is wrong."""

from typing import Any

import pytest

from cloudwhale_providers.sandbox.compute.catalogue import catalogue, type_words
from cloudwhale_providers.sandbox.compute.discovery import Api, Method, api
from cloudwhale_providers.sandbox.compute.schemas import Fault, Schemas

HOME = "/compute/v1/projects/p/zones/us-central1-a"


def method(id: str) -> Method:
    found = [one for _, one in sorted_methods(api("compute", "v1")) if one.id == id]
    return found[0]


def sorted_methods(described: Api) -> list[tuple[str, Method]]:
    ways = described._ways  # pyright: ignore[reportPrivateUsage]
    return sorted(
        ((one.id, one) for some in ways.values() for _, one in some), key=lambda pair: pair[0]
    )


@pytest.mark.parametrize(
    ("verb", "path", "id", "words"),
    [
        ("GET", f"{HOME}/instances", "compute.instances.list", {}),
        ("POST", f"{HOME}/instances", "compute.instances.insert", {}),
        ("GET", f"{HOME}/instances/a", "compute.instances.get", {"instance": "a"}),
        ("DELETE", f"{HOME}/instances/a", "compute.instances.delete", {"instance": "a"}),
        ("POST", f"{HOME}/instances/a/setLabels", "compute.instances.setLabels", {}),
        ("GET", f"{HOME}/instances/a%2Fb", "compute.instances.get", {"instance": "a/b"}),
        ("GET", "/compute/v1/projects/p", "compute.projects.get", {"project": "p"}),
        ("GET", "/compute/v1/projects/p/global/images/family/f", "compute.images.getFromFamily",
         {"family": "f"}),
        ("GET", "/compute/v1/projects/p/global/images/i", "compute.images.get", {"image": "i"}),
    ],
)  # fmt: skip
def test_a_path_means_a_method(verb: str, path: str, id: str, words: dict[str, str]) -> None:
    meant = api("compute", "v1").meant(verb, path)
    assert meant is not None and meant.method.id == id
    assert words.items() <= meant.path.items()


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/projects/p"),
        ("PUT", f"{HOME}/instances"),
        ("GET", f"{HOME}/nothing"),
        ("GET", "/"),
    ],
)
def test_what_is_no_method_means_nothing(verb: str, path: str) -> None:
    assert api("compute", "v1").meant(verb, path) is None


def test_methods_of_other_apis_are_found_by_their_flat_paths() -> None:
    iam = api("iam", "v1")
    path = "/v1/projects/p/serviceAccounts/a@b.c"
    meant = iam.meant("GET", path)
    assert meant is not None and meant.method.id == "iam.projects.serviceAccounts.get"
    policy = iam.meant("POST", f"{path}:getIamPolicy")
    assert policy is not None and policy.method.id.endswith("serviceAccounts.getIamPolicy")


GOOD: dict[str, Any] = {
    "name": "cw-1", "id": "17", "labels": {"a": "b"}, "disks": [{"boot": True, "diskSizeGb": "9"}],
    "scheduling": {"maxRunDuration": {"seconds": "60"}, "provisioningModel": "SPOT"},
    "status": "RUNNING", "fingerprint": "YWJj",
}  # fmt: skip


def faults(body: Any) -> list[Fault]:
    return list(Schemas(api("compute", "v1")).of_body(method("compute.instances.insert"), body))


def test_what_is_right_has_no_fault() -> None:
    assert faults(GOOD) == [] and faults({"name": None}) == [] and faults({}) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"colour": "red"}, ""),
        ({"labels": {"a": 1}}, "labels.a"),
        ({"labels": "a=b"}, "labels"),
        ({"disks": {}}, "disks"),
        ({"disks": [{"boot": "true"}]}, "disks[0].boot"),
        ({"disks": [{"diskSizeGb": "many"}]}, "disks[0].diskSizeGb"),
        ({"disks": [{"index": 2**40}]}, "disks[0].index"),
        ({"scheduling": {"provisioningModel": "FREE"}}, "scheduling.provisioningModel"),
        ({"scheduling": {"maxRunDuration": {"hours": 1}}}, "scheduling.maxRunDuration"),
        ({"name": "Not A Name"}, "name"),
        ({"name": 7}, "name"),
        ({"id": "-1"}, "id"),
        ({"id": True}, "id"),
        ({"fingerprint": "no base64!"}, "fingerprint"),
        ({"canIpForward": 1}, "canIpForward"),
    ],
)
def test_each_thing_that_is_wrong_is_found_with_its_place(
    change: dict[str, Any], where: str
) -> None:
    assert [one.where for one in faults({**GOOD, **change})] == [where]


def test_a_body_where_none_belongs_is_a_fault() -> None:
    schemas = Schemas(api("compute", "v1"))
    assert list(schemas.of_body(method("compute.instances.get"), {"a": 1}))
    assert not list(schemas.of_body(method("compute.instances.get"), {}))


def test_fields_of_an_address_are_checked() -> None:
    schemas, insert = Schemas(api("compute", "v1")), method("compute.instances.list")
    good = {"maxResults": "5", "alt": "json", "prettyPrint": "false", "fields": "items"}
    assert list(schemas.of_query(insert, good)) == []
    bad = {"maxResults": "-5", "colour": "red", "prettyPrint": "maybe", "alt": "xml"}
    assert {one.where for one in schemas.of_query(insert, bad)} == set(bad)


def test_answers_are_checked_too() -> None:
    schemas, get = Schemas(api("compute", "v1")), method("compute.machineTypes.get")
    zone, kinds = next(iter(catalogue().zones.items()))
    for kind in kinds.values():
        assert list(schemas.of_answer(get, type_words(kind, zone))) == []
    assert list(schemas.of_answer(get, {"guestCpus": "four"}))
    assert list(schemas.of_answer(method("compute.zoneOperations.delete"), {"a": 1}))
