"""A project of GCP that lacks everything is given it, once; what somebody else has set stays."""

import json
from typing import Any

import pytest
from boxed_gcp import Box, stepped

from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.provider import Amends, Check
from cloudwhale_providers.gcp.mending.mends import whom
from cloudwhale_providers.gcp.policies import NAMES, permissions, role_id
from cloudwhale_providers.sandbox.compute.calls import Caller
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.project_apis import ProjectApis
from cloudwhale_providers.sandbox.compute.refused import GoogleRefused
from cloudwhale_providers.sandbox.endpoint import Weather

BUCKET = f"cloudwhale-{PROJECT}"
URL = f"gs://{BUCKET}/cloudwhale"
MACHINE = f"cloudwhale-machine@{PROJECT}.iam.gserviceaccount.com"
ANN = "user:ann@example.com"


@pytest.fixture(autouse=True)
def nobody_tells_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")


def bare(**weather: Any) -> Box:
    """Make a project with nothing in it but its network."""
    box = stepped(Weather(**weather))
    things(box).people.accounts.clear()
    things(box).buckets.buckets.clear()
    return box


def things(box: Box) -> ProjectApis:
    return box.endpoint.project_apis


def amends(box: Box, allow: str = "", mailbox: str = "", **said: Any) -> Amends:
    provider = box.provider("lab", mailbox=mailbox, service_account="", **said)
    return provider.amends(lambda: "whale-1", allow)


def mended(found: Amends) -> list[Check]:
    return [one.mend() for one in found.mendings]


def test_a_bare_project_is_given_all_that_machines_need_and_then_lacks_nothing() -> None:
    box = bare()
    found = amends(box, ANN)
    assert {one.state for one in found.rows} == {"ok"}, "the APIs are there"
    assert {one.state for one in mended(found)} == {"ok"}
    assert [one.name for one in amends(box, ANN).mendings] == []
    assert found.mailbox == URL
    assert found.settings == {
        "project": PROJECT, "regions": ["us-central1", "us-east4"], "service_account": MACHINE,
    }  # fmt: skip
    rows = box.provider("lab", mailbox=URL, **found.settings).check()
    assert [one for one in rows if one.state != "ok"] == []


def test_what_would_be_done_is_said_and_changes_nothing() -> None:
    box = bare()
    says = [one.says for one in amends(box).mendings]
    assert f"make the bucket {BUCKET} in us-central1" in says
    assert f"make the service account {MACHINE}" in says
    assert not things(box).buckets.buckets and not things(box).people.roles


def test_without_whom_to_allow_only_machines_get_rights() -> None:
    box = bare()
    mended(amends(box))
    assert things(box).project.policies.get(f"projects/{PROJECT}", 3)["bindings"] == []
    assert set(things(box).people.roles) == {
        role_id(name) for name in NAMES if name.startswith("machine-")
    }


def test_machines_are_kept_to_the_mailboxs_folder() -> None:
    box = bare()
    mended(amends(box, mailbox=f"gs://{BUCKET}/a/b"))
    bindings = things(box).buckets.policies.get(f"projects/_/buckets/{BUCKET}", 3)["bindings"]
    told = {one["role"].rpartition("/")[2]: one for one in bindings}
    writes = told["cloudwhale_machine_writing"]["condition"]["expression"]
    assert f'"projects/_/buckets/{BUCKET}/objects/a/b/checkpoints/"' in writes
    assert "/orders/" not in writes and "/bundles/" not in writes
    assert told["cloudwhale_machine_writing"]["members"] == [f"serviceAccount:{MACHINE}"]


def test_a_bucket_is_private_uniform_and_forgets() -> None:
    box = bare()
    mended(amends(box))
    told = things(box).buckets.buckets[BUCKET]
    assert told["iamConfiguration"] == {
        "uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced",
    }  # fmt: skip
    assert int(told["softDeletePolicy"]["retentionDurationSeconds"]) == 0
    assert told["labels"] == {"cloudwhale-installation": "whale-1"}
    kinds = [one["action"]["type"] for one in told["lifecycle"]["rule"]]
    assert kinds == ["AbortIncompleteMultipartUpload", "Delete", "Delete"]


def test_what_somebody_has_set_stays() -> None:
    box = bare()
    theirs = {"action": {"type": "Delete"}, "condition": {"age": 5, "matchesPrefix": ["old/"]}}
    buckets = things(box).buckets
    buckets.buckets[BUCKET] = {
        "kind": "storage#bucket", "id": BUCKET, "name": BUCKET, "projectNumber": "123456789012",
        "metageneration": "1", "location": "EU", "labels": {"team": "nlp"},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
        "lifecycle": {"rule": [theirs]},
    }  # fmt: skip
    project = things(box).project.policies
    project.set(f"projects/{PROJECT}", {"bindings": [{"role": "roles/owner", "members": ["x"]}]})
    mended(amends(box, ANN))
    told = buckets.buckets[BUCKET]
    assert theirs in told["lifecycle"]["rule"] and told["location"] == "EU"
    assert told["labels"] == {"team": "nlp", "cloudwhale-installation": "whale-1"}
    roles = [one["role"] for one in project.get(f"projects/{PROJECT}", 3)["bindings"]]
    assert roles == ["roles/owner", f"projects/{PROJECT}/roles/cloudwhale_controller"]


def test_apis_come_first_and_the_rest_when_they_are_there() -> None:
    box = bare(closed_apis=frozenset({"iam.googleapis.com"}))
    found = amends(box)
    assert [one.says for one in found.mendings] == [f"enable iam.googleapis.com in {PROJECT}"]
    assert {one.state for one in mended(found)} == {"ok"}
    assert amends(box).mendings


def test_another_projects_bucket_is_never_touched() -> None:
    box = bare()
    found = amends(box, mailbox="gs://team-data/lab")
    (said,) = [one for one in found.rows if one.state == "failed"]
    assert said.name == "gcp bucket" and "another project's" in said.says
    rows = mended(found)
    assert {one.state for one in rows} == {"ok"}, "the rest is made"
    assert "team-data" not in things(box).buckets.buckets


def test_a_role_of_an_older_version_and_one_that_was_deleted_are_brought_up_to_date() -> None:
    box = bare()
    mended(amends(box, ANN))
    roles = things(box).people.roles
    roles["cloudwhale_controller"]["includedPermissions"] = ["compute.instances.get"]
    roles["cloudwhale_mailbox"] |= {"deleted": True}
    again = amends(box, ANN)
    assert [one.name for one in again.mendings] == [
        "gcp role cloudwhale_controller", "gcp role cloudwhale_mailbox",
    ]  # fmt: skip
    assert {one.state for one in mended(again)} == {"ok"}
    held = roles["cloudwhale_controller"]["includedPermissions"]
    assert sorted(held) == sorted(permissions("controller"))
    assert not roles["cloudwhale_mailbox"].get("deleted")


def test_who_writes_the_same_policy_meanwhile_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = bare()
    policies = things(box).project.policies
    original, tries = policies.set, [0]

    def contested(path: str, policy: Any) -> Any:
        tries[0] += 1
        if tries[0] == 1:
            original(path, {"bindings": [{"role": "roles/viewer", "members": ["x"]}]})
        return original(path, policy)

    monkeypatch.setattr(policies, "set", contested)
    assert {one.state for one in mended(amends(box, ANN))} == {"ok"}
    roles = [one["role"] for one in policies.get(f"projects/{PROJECT}", 3)["bindings"]]
    assert roles[0] == "roles/viewer" and len(roles) == 2 and tries[0] == 2


@pytest.mark.parametrize(
    ("lacks", "row", "named"),
    [
        ("storage.buckets.create", "gcp bucket", "storage.buckets.create"),
        ("iam.serviceAccounts.create", "gcp machine account", "iam.serviceAccounts.create"),
        ("iam.roles.create", "gcp role cloudwhale_machine_bucket", "iam.roles.create"),
    ],
)
def test_what_is_refused_names_the_permission_and_the_rest_is_made(
    lacks: str, row: str, named: str
) -> None:
    box = bare()

    def may(caller: Caller, permission: str, resource: str) -> bool:
        return permission != lacks

    box.endpoint.hold_to(may)
    rows = mended(amends(box))
    failed = next(one for one in rows if one.name == row)
    assert failed.state == "failed" and f"Allow {named} to whoever" in failed.remedy
    assert any(one.state == "ok" for one in rows)


def test_a_mailbox_in_another_cloud_gets_one_beside_it() -> None:
    found = amends(bare(), mailbox="s3://elsewhere/lab")
    assert found.mailbox == "" and found.settings["mailbox"] == URL


def test_the_policy_says_roles_and_what_they_are_given_on() -> None:
    told = json.loads(amends(bare()).policy)
    assert [one["on"] for one in told] == [
        f"projects/{PROJECT}", f"projects/{PROJECT}/serviceAccounts/{MACHINE}", f"gs://{BUCKET}",
    ]  # fmt: skip
    assert "compute.instances.create" in told[0]["role"]["includedPermissions"]


def test_without_a_project_there_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    box = bare()
    assert box.clients is not None
    monkeypatch.setattr("cloudwhale_providers.gcp.clients.Clients.project", lambda self: "")
    found = amends(box, project="")
    assert [(one.name, one.state) for one in found.rows] == [("gcp credentials", "failed")]
    assert not found.mendings


@pytest.mark.parametrize(
    ("said", "member"),
    [
        ("ann@example.com", ANN), (ANN, ANN), ("group:team@example.com", "group:team@example.com"),
        (MACHINE, f"serviceAccount:{MACHINE}"),
    ],
)  # fmt: skip
def test_who_is_meant(said: str, member: str) -> None:
    assert whom(said) == member


@pytest.mark.parametrize("said", ["ann", "everybody:", "allUsers", ":x"])
def test_nobody_is_refused(said: str) -> None:
    with pytest.raises(SettingsError, match="--allow"):
        whom(said)


def test_a_policy_that_always_changes_is_given_up_with_what_google_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = bare()

    def never(path: str, policy: Any) -> Any:
        raise GoogleRefused("aborted", "There were concurrent policy changes.", 409)

    monkeypatch.setattr(things(box).project.policies, "set", never)
    (failed,) = [one for one in mended(amends(box, ANN)) if one.state == "failed"]
    assert failed.name == "gcp right cloudwhale_controller" and "concurrent" in failed.says
