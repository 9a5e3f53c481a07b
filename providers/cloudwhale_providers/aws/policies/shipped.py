"""The IAM policies as they lie in the package, and what an account and a mailbox make of them.

`infra/aws` has links to the same files for whoever sets an account up by hand.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

FOLDER = "cloudwhale_providers.aws.policies"
INSTALLATION = "cloudwhale:installation"
"""The tag that says whose a thing is: `tags.INSTALLATION`, which this does not import."""
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
    installation: str = ""
    """Whose things alone may be launched and ended; empty: those of every installation."""


@cache
def _text(name: Name) -> str:
    return files(FOLDER).joinpath(f"{name}.json").read_text(encoding="utf-8")


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
    if places.installation:
        text = text.replace("/cloudwhale-*", f"/cloudwhale-{places.installation}")
    found: dict[str, Any] = json.loads(text)
    if places.installation:
        for one in found["Statement"]:
            _narrow(one.get("Condition", {}), places.installation)
    return found


def _narrow(conditions: dict[str, dict[str, Any]], installation: str) -> None:
    """Let what speaks of the things of any installation speak of one's alone."""
    tagged = conditions.get("Null", {})
    for key in [key for key in tagged if key.endswith(f"/{INSTALLATION}")]:
        del tagged[key]
        conditions.setdefault("StringEquals", {})[key] = installation
    if not tagged:
        conditions.pop("Null", None)
