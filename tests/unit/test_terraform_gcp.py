"""The Terraform module for GCP: it is well formed, and makes what `doctor gcp --fix` makes."""

import json
import re
import shutil
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cloudwhale_providers.gcp.checks_project import APIS
from cloudwhale_providers.gcp.mending import buckets, mends
from cloudwhale_providers.gcp.policies import NAMES, role
from cloudwhale_providers.gcp.settings import read

HOUSE = Path(__file__).parents[2]
MODULE = HOUSE / "infra" / "terraform" / "gcp"
INFRA = HOUSE / "infra" / "gcp"
FILES = sorted(MODULE.glob("*.tf"))
TERRAFORM = shutil.which("terraform")


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
    (one,) = [
        block[kind][name] for block in parsed()["resource"] if kind in block and name in block[kind]
    ]
    found: dict[str, Any] = one
    return found


def local(name: str) -> Any:
    (one,) = [block[name] for block in parsed()["locals"] if name in block]
    return one


def test_every_file_is_parsed() -> None:
    assert {"locals", "output", "provider", "resource", "terraform", "variable"} <= set(parsed())
    assert len(FILES) == 5


def test_roles_are_the_files_that_ship_and_no_copies() -> None:
    told = local("roles")
    assert [name for name in NAMES if name != "setup" and f'"{name}"' not in told] == []
    made = resource("google_project_iam_custom_role", "cloudwhale")
    assert made["permissions"] == "${each.value.includedPermissions}"
    assert made["role_id"] == 'cloudwhale_${replace(each.key, "-", "_")}'
    text = "".join(file.read_text() for file in FILES)
    assert not re.findall(r'"(?:compute|storage|iam)\.(?!googleapis)[a-zA-Z]+\.[a-zA-Z]+"', text)


@pytest.mark.parametrize("name", [*NAMES, "bindings"])
def test_the_infra_folder_shows_the_files_that_ship(name: str) -> None:
    shown = json.loads((INFRA / f"{name}.json").read_text(encoding="utf-8"))
    if name != "bindings":
        assert shown == role(name)  # type: ignore[arg-type]
    assert (INFRA / f"{name}.json").is_symlink()


def test_apis_and_names_are_those_of_the_doctor() -> None:
    assert [plain(one) for one in local("apis")] == list(APIS)
    assert resource("google_service_account", "machine")["account_id"] == mends.MACHINE
    (prefix,) = [block["prefix"] for block in parsed()["variable"] if "prefix" in block]
    assert prefix["default"] == mends.FOLDER


def test_the_bucket_forgets_by_the_same_rules() -> None:
    unfinished, *old = buckets.rules("")
    ages = {str(one["condition"]["age"]): one["condition"]["matchesPrefix"] for one in old}
    told = {str(key): [plain(one) for one in value] for key, value in local("ages").items()}
    assert told == ages
    made = resource("google_storage_bucket", "mailbox")
    (rule,) = made["lifecycle_rule"]
    assert rule["condition"][0]["age"] == unfinished["condition"]["age"]
    assert rule["action"][0]["type"] == unfinished["action"]["type"]


def test_the_bucket_is_private_uniform_and_keeps_nothing_deleted() -> None:
    made = resource("google_storage_bucket", "mailbox")
    assert made["uniform_bucket_level_access"] is True
    assert made["public_access_prevention"] == buckets.PRIVATE
    assert made["soft_delete_policy"][0]["retention_duration_seconds"] == 0


def test_it_prints_the_settings_that_are_read() -> None:
    (said,) = [block["settings"] for block in parsed()["output"] if "settings" in block]
    for key in ("project", "regions", "service_account", "network", "external_address"):
        assert f"{key} = " in said["value"]
    email = "cloudwhale-machine@my-lab-123456.iam.gserviceaccount.com"
    table = {"project": "my-lab-123456", "regions": ["us-central1"], "service_account": email}
    read({**table, "network": "default", "external_address": False})


needs_terraform = pytest.mark.skipif(TERRAFORM is None, reason="needs terraform")


@needs_terraform
def test_it_is_formatted() -> None:
    assert TERRAFORM is not None
    subprocess.run([TERRAFORM, "fmt", "-check", "-diff", str(MODULE)], check=True)
