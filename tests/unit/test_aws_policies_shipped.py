"""The policies in the package: the same files as in `infra/aws`, filled in for an account."""

import json
from pathlib import Path

import pytest

from cloudwhale_providers.aws.policies import NAMES, Places, document, filled, shipped
from cloudwhale_providers.aws.tags import INSTALLATION
from cloudwhale_providers.sandbox.endpoint.iam_policies import policy

INFRA = Path(__file__).parents[2] / "infra" / "aws"


@pytest.mark.parametrize("name", NAMES)
def test_the_infra_folder_shows_the_files_that_ship(name: str) -> None:
    shown = json.loads((INFRA / f"{name}.json").read_text(encoding="utf-8"))
    assert shown == document(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(file.name for file in INFRA.glob("*-policy.json")))
def test_a_policy_says_nothing_that_the_sandbox_would_have_to_guess(name: str) -> None:
    assert policy(json.loads((INFRA / name).read_text(encoding="utf-8"))).statements


@pytest.mark.parametrize("name", NAMES)
def test_a_filled_policy_names_the_account_and_nothing_that_stands_for_one(name: str) -> None:
    text = json.dumps(filled(name, Places("123456789012", "lab-bucket", "team")))  # type: ignore[arg-type]
    assert "ACCOUNT" not in text and "BUCKET" not in text
    assert "lab-bucket/cloudwhale/" not in text


def test_a_mailbox_may_lie_in_a_folder_of_its_own() -> None:
    text = json.dumps(filled("machine-policy", Places("123456789012", "lab", "deep/down")))
    assert "arn:aws:s3:::lab/deep/down/" in text


def test_a_policy_may_be_narrowed_to_one_installation() -> None:
    held = filled("controller-policy", Places("123456789012", "lab", installation="lab-1"))
    text = json.dumps(held)
    assert '"Null"' not in text
    assert '"aws:ResourceTag/cloudwhale:installation": "lab-1"' in text
    assert '"aws:RequestTag/cloudwhale:installation": "lab-1"' in text
    assert "schedule-group/cloudwhale-lab-1" in text and "cloudwhale-*" not in text
    stops = filled("scheduler-policy", Places("123456789012", "lab", installation="lab-1"))
    assert stops["Statement"][0]["Condition"] == {
        "StringEquals": {f"aws:ResourceTag/{INSTALLATION}": "lab-1"}
    }


def test_the_tag_of_the_policies_is_that_of_the_machines() -> None:
    assert shipped.INSTALLATION == INSTALLATION


def test_a_mailbox_may_have_the_whole_bucket() -> None:
    text = json.dumps(filled("machine-policy", Places("123456789012", "lab", "")))
    assert "arn:aws:s3:::lab/" in text and "lab//" not in text
