"""The policy for whoever sets an account up: it allows what `doctor aws --fix` asks, no more."""

import ast
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from cloudwhale_providers.aws.clients import permission
from cloudwhale_providers.aws.mending.allowing import KINDS

HOUSE = Path(__file__).parents[2]
POLICY = HOUSE / "infra" / "aws" / "setup-policy.json"
CODE = HOUSE / "providers" / "cloudwhale_providers" / "aws" / "mending"
ELSEWHERE = {
    "iam:PassRole": "checked when a role is put into an instance profile",
    "s3:GetBucketLocation": "the doctor looks at the bucket afterwards",
}
"""What no call in the folder is named after, and why it is there."""


def texts() -> set[str]:
    """Return every text in the code: a call's verb is always said as one, `{kind}` in it or not."""
    found: set[str] = set()
    for file in CODE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(one, "value", None) for one in node.values]
                text = "".join(one if isinstance(one, str) else "*" for one in parts)
                found |= {text.replace("*", kind) for kind in KINDS}
    return found


def asked() -> set[str]:
    session: Any = import_module("botocore.session").get_session()
    snake: Any = import_module("botocore").xform_name
    known = {
        snake(name): service
        for service in ("s3", "iam")
        for name in session.get_service_model(service).operation_names
    }
    return {permission(known[word], word) for word in texts() if word in known}


def allowed() -> set[str]:
    statements = json.loads(POLICY.read_text())["Statement"]
    return {action for one in statements for action in one["Action"]}


def test_the_calls_of_the_code_are_found() -> None:
    assert {"s3:CreateBucket", "iam:CreateRole", "iam:AttachUserPolicy"} <= asked()


def test_whoever_sets_up_may_do_what_is_asked() -> None:
    assert asked() - allowed() == set()


def test_whoever_sets_up_may_do_nothing_else() -> None:
    assert allowed() - asked() == set(ELSEWHERE)


def test_nothing_is_made_or_changed_but_what_is_ours() -> None:
    for one in json.loads(POLICY.read_text())["Statement"]:
        changes = [a for a in one["Action"] if not re.match(r"[a-z0-9]+:(Get|List)", a)]
        if changes and one["Resource"] == "*":
            assert "cloudwhale-" in one["Condition"]["ArnLike"]["iam:PolicyARN"]
