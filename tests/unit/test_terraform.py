"""The Terraform module: it is well formed, and makes what `doctor aws --fix` makes."""

import json
import shutil
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cloudwhale_providers.aws.checks_bucket import Bucket
from cloudwhale_providers.aws.mending import buckets, documents
from cloudwhale_providers.aws.policies import NAMES, Places, filled
from cloudwhale_providers.aws.settings import read

MODULE = Path(__file__).parents[2] / "infra" / "terraform" / "aws"
FILES = sorted(MODULE.glob("*.tf"))
TERRAFORM = shutil.which("terraform")
ACCOUNT = "123456789012"


def plain(value: Any) -> Any:
    """Return what the parser read, without the quotes that it keeps."""
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.strip('"') if isinstance(value, str) else value


@cache
def parsed() -> dict[str, Any]:
    """Return all blocks of the module, by kind."""
    hcl: Any = import_module("hcl2")
    found: dict[str, Any] = {}
    for file in FILES:
        for kind, blocks in plain(hcl.loads(file.read_text())).items():
            found.setdefault(kind, []).extend(blocks)
    return found


def resource(kind: str, name: str) -> dict[str, Any]:
    """Return one resource."""
    (one,) = [
        block[kind][name] for block in parsed()["resource"] if kind in block and name in block[kind]
    ]
    found: dict[str, Any] = one
    return found


def local(name: str) -> Any:
    (one,) = [block[name] for block in parsed()["locals"] if name in block]
    return one


def test_every_file_is_parsed() -> None:
    assert {"data", "locals", "output", "provider", "resource", "terraform", "variable"} <= set(
        parsed()
    )


@pytest.mark.parametrize(
    ("kind", "name", "key", "policy"),
    [
        ("aws_iam_role", "machine", "assume_role_policy", "machine-trust"),
        ("aws_iam_role_policy", "machine", "policy", "machine-policy"),
        ("aws_iam_role", "stops", "assume_role_policy", "scheduler-trust"),
        ("aws_iam_role_policy", "stops", "policy", "scheduler-policy"),
        ("aws_iam_policy", "controller", "policy", "controller-policy"),
        ("aws_iam_role", "reaper", "assume_role_policy", "reaper-trust"),
        ("aws_iam_role_policy", "reaper", "policy", "reaper-policy"),
    ],
)
def test_policies_are_the_files_that_ship_and_no_copies(
    kind: str, name: str, key: str, policy: str
) -> None:
    assert resource(kind, name)[key] == f'${{local.policies["{policy}"]}}'
    assert (MODULE / "../../aws" / f"{policy}.json").is_file()
    assert f'"{policy}"' in local("policies")


def test_every_policy_that_ships_is_filled_in() -> None:
    assert [name for name in NAMES if f'"{name}"' not in local("policies")] == []


def test_roles_are_called_as_the_policies_call_them() -> None:
    assert resource("aws_iam_role", "machine")["name"] == documents.MACHINE
    assert resource("aws_iam_instance_profile", "machine")["name"] == documents.MACHINE
    assert resource("aws_iam_role", "stops")["name"] == documents.STOPS


def test_the_bucket_forgets_by_the_same_rules() -> None:
    unfinished, *old = buckets.rules("")
    ages = {rule["Filter"]["Prefix"]: rule["Expiration"]["Days"] for rule in old}
    assert local("ages") == ages
    rule = resource("aws_s3_bucket_lifecycle_configuration", "mailbox")["rule"][0]
    days = rule["abort_incomplete_multipart_upload"][0]["days_after_initiation"]
    assert days == unfinished["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]


def test_the_bucket_is_private_owned_and_encrypted() -> None:
    block = resource("aws_s3_bucket_public_access_block", "mailbox")
    assert [block[key] for key in block if key.startswith(("block_", "ignore_", "restrict_"))] == [
        True
    ] * 4
    owned = resource("aws_s3_bucket_ownership_controls", "mailbox")["rule"][0]
    assert owned["object_ownership"] == "BucketOwnerEnforced"
    sealed = resource("aws_s3_bucket_server_side_encryption_configuration", "mailbox")["rule"][0]
    default = sealed["apply_server_side_encryption_by_default"][0]
    assert default["sse_algorithm"] == "AES256"


def test_the_reaper_is_made_only_when_it_is_asked_for() -> None:
    own = [
        block[kind][name]
        for block in parsed()["resource"]
        for kind in block
        for name in block[kind]
        if name == "reaper"
    ]
    assert len(own) == 7
    assert {one["count"] for one in own} == {"${var.reaper ? 1 : 0}"}
    (variable,) = [block["reaper"] for block in parsed()["variable"] if "reaper" in block]
    assert variable["default"] is False


def test_it_prints_the_settings_that_are_read() -> None:
    (said,) = [block["settings"] for block in parsed()["output"] if "settings" in block]
    for key in ("regions", "instance_profile", "scheduler_role"):
        assert f"{key} = " in said["value"]
        read({key: ["us-east-1"] if key == "regions" else "x"})


# -- with terraform itself, which runs offline but for its providers --------------------------

needs_terraform = pytest.mark.skipif(TERRAFORM is None, reason="needs terraform")


def terraform(*words: str, folder: Path, told: str = "") -> str:
    assert TERRAFORM is not None
    environment = {"HOME": str(folder), "CHECKPOINT_DISABLE": "1", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [TERRAFORM, *words], cwd=folder, env=environment, input=told, text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_terraform
def test_the_files_are_formatted(tmp_path: Path) -> None:
    for file in FILES:
        (tmp_path / file.name).write_text(file.read_text())
    assert terraform("fmt", "-check", folder=tmp_path) == ""


@needs_terraform
@pytest.mark.parametrize("prefix", ["cloudwhale", "team/lab", ""])
def test_terraform_fills_the_policies_in_as_we_do(tmp_path: Path, prefix: str) -> None:
    module = tmp_path / "infra" / "terraform" / "aws"
    module.mkdir(parents=True)
    (module / "policies.tf").write_text((MODULE / "policies.tf").read_text())
    (module / "given.tf").write_text(
        f'variable "prefix" {{\n  default = "{prefix}"\n}}\n'
        f'locals {{\n  account = "{ACCOUNT}"\n  bucket  = "lab"\n}}\n'
    )
    (tmp_path / "infra" / "aws").symlink_to((MODULE / "../../aws").resolve())
    said = terraform("console", folder=module, told="jsonencode(local.policies)\n")
    found = json.loads(json.loads(said))
    for name in NAMES:
        ours = filled(name, Places(ACCOUNT, "lab", prefix))
        assert documents.same(ours, json.loads(found[name])), name


def test_names_of_policies_are_those_of_the_doctor() -> None:
    name = resource("aws_iam_role_policy", "machine")["name"]
    assert 'join(".", compact(["machine", local.bucket, replace(var.prefix, "/", "-")]))' in name
    assert documents.name_for("machine", Bucket("lab", "team/lab")) == "machine.lab.team-lab"
