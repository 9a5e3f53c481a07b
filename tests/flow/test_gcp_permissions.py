"""The roles that ship for GCP are enough for a whole life, and no permission is superfluous."""

from collections.abc import Iterator

import pytest
from allowed_gcp import PLACES, Life, Need, allows, whole_life

from cloudwhale_providers.gcp.policies import NAMES, Name, bindings, permissions
from cloudwhale_providers.sandbox.names import GCP_BUCKET

GIVEN = bindings(PLACES)
USED: tuple[Name, ...] = tuple(name for name in NAMES if name != "setup")
MACHINE = f"serviceAccount:{PLACES.machine}"
FOLDER = f"projects/_/buckets/{GCP_BUCKET}/objects/mailbox"


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Live once for all tests of this file."""
    return whole_life(tmp_path_factory.mktemp("life"))


def each() -> Iterator[tuple[Name, str]]:
    for name in USED:
        yield from ((name, one) for one in permissions(name))


def test_nobody_is_refused_anything_in_a_whole_life(life: Life) -> None:
    assert {(one.member, one.permission, one.resource) for one in life.refused} == set()


def test_everybody_was_there(life: Life) -> None:
    assert {one.member for one in life.needs} == {MACHINE, PLACES.controller}


@pytest.mark.parametrize(("name", "permission"), list(each()))
def test_without_it_something_is_refused(life: Life, name: Name, permission: str) -> None:
    given = [one for one in GIVEN if one.role == name]
    needed = [one for one in life.needs if allows(given, one)]
    assert [one for one in needed if not allows(given, one, without=permission)], (
        f"{permission} of {name} is not needed in a whole life"
    )


@pytest.mark.parametrize("folder", ["orders", "bundles", "workdirs", "hello"])
@pytest.mark.parametrize("verb", ["create", "delete"])
def test_a_machine_writes_nothing_that_others_are_told(folder: str, verb: str) -> None:
    need = Need(MACHINE, f"storage.objects.{verb}", f"{FOLDER}/{folder}/x")
    assert not allows(GIVEN, need)


@pytest.mark.parametrize("folder", ["inbox", "boots", "outputs"])
def test_a_machine_takes_back_nothing_that_it_has_said(folder: str) -> None:
    assert not allows(GIVEN, Need(MACHINE, "storage.objects.delete", f"{FOLDER}/{folder}/x"))


@pytest.mark.parametrize("path", ["installation.json", "hello/x", "boots/x"])
def test_a_machine_reads_nothing_that_is_not_for_it(path: str) -> None:
    assert not allows(GIVEN, Need(MACHINE, "storage.objects.get", f"{FOLDER}/{path}"))


@pytest.mark.parametrize("verb", ["get", "create", "delete"])
def test_a_machine_reaches_no_other_folder_of_the_bucket(verb: str) -> None:
    for path in ("else/checkpoints/x", "mailboxes/checkpoints/x", "checkpoints/x"):
        resource = f"projects/_/buckets/{GCP_BUCKET}/objects/{path}"
        assert not allows(GIVEN, Need(MACHINE, f"storage.objects.{verb}", resource))


@pytest.mark.parametrize(
    "permission",
    ["compute.instances.list", "iam.serviceAccounts.actAs", "storage.buckets.get",
     "resourcemanager.projects.get"],
)  # fmt: skip
def test_a_machine_asks_nothing_of_the_cloud_but_its_mailbox(permission: str) -> None:
    for resource in (f"projects/{PLACES.project}", f"projects/_/buckets/{GCP_BUCKET}"):
        assert not allows(GIVEN, Need(MACHINE, permission, resource))
