"""The IAM policies as they lie in the package, and what an account and a mailbox make of them.

`infra/aws` has links to the same files for whoever sets an account up by hand.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Name = Literal[
    "controller-policy", "machine-policy", "scheduler-policy", "machine-trust", "scheduler-trust"
]
NAMES: tuple[Name, ...] = (
    "controller-policy", "machine-policy", "scheduler-policy", "machine-trust", "scheduler-trust",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Places:
    """What stands in the files as ACCOUNT and BUCKET, and the mailbox's folder there."""

    account: str
    """Number of the account."""
    bucket: str
    prefix: str = "cloudwhale"
    """Folder of the mailbox in the bucket, without slashes around it; empty: all of the bucket."""


@cache
def _text(name: Name) -> str:
    return files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")


def document(name: Name) -> dict[str, Any]:
    """Return a policy as it ships, with ACCOUNT and BUCKET in it."""
    found: dict[str, Any] = json.loads(_text(name))
    return found


def filled(name: Name, places: Places) -> dict[str, Any]:
    """Return a policy for an account and its mailbox."""
    folder = f"{places.prefix}/" if places.prefix else ""
    text = _text(name).replace("BUCKET/cloudwhale/", f"BUCKET/{folder}")
    text = text.replace('"cloudwhale/', f'"{folder}')  # in `s3:prefix`
    text = text.replace("ACCOUNT", places.account).replace("BUCKET", places.bucket)
    found: dict[str, Any] = json.loads(text)
    return found
