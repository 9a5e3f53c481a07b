"""The roles as they lie in the package, and what a project and a mailbox make of their bindings.

`infra/gcp` has links to the same files for whoever sets a project up by hand: each is what `gcloud
iam roles create --file` takes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

FOLDER = "cloudwhale_providers.gcp.policies"
Name = Literal[
    "controller", "acting", "mailbox", "machine-bucket", "machine-reading", "machine-writing",
    "machine-removing", "setup",
]  # fmt: skip
NAMES: tuple[Name, ...] = (
    "controller", "acting", "mailbox", "machine-bucket", "machine-reading", "machine-writing",
    "machine-removing", "setup",
)  # fmt: skip
On = Literal["project", "account", "bucket"]


@dataclass(frozen=True, slots=True)
class Places:
    """What the bindings are for."""

    project: str
    bucket: str
    prefix: str = "cloudwhale"
    """Folder of the mailbox in the bucket, without slashes around it; empty: all of the bucket."""
    machine: str = ""
    """E-mail of the machines' service account."""
    controller: str = ""
    """Whoever runs cloudwhale, as IAM names members: `user:ann@example.com`; empty: nobody."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A role that somebody gets on something."""

    role: Name
    member: str
    on: On
    title: str = ""
    """Of its condition."""
    expression: str = ""
    """Its condition in CEL; empty: it holds always."""


@cache
def _text(name: str) -> str:
    return files(FOLDER).joinpath(f"{name}.json").read_text(encoding="utf-8")


def role(name: Name) -> dict[str, Any]:
    """Return a role as it ships."""
    found: dict[str, Any] = json.loads(_text(name))
    return found


def permissions(name: Name) -> Sequence[str]:
    """Return what a role allows."""
    return tuple(str(one) for one in role(name)["includedPermissions"])


def role_id(name: Name) -> str:
    """Return what a project calls a role: letters, digits, `_` and `.` (IAM docs)."""
    return f"cloudwhale_{name.replace('-', '_')}"


def bindings(places: Places) -> Sequence[Binding]:
    """Return who gets which role on what; without a controller: what machines get."""
    members = {
        "CONTROLLER": places.controller,
        "MACHINE": f"serviceAccount:{places.machine}" if places.machine else "",
    }
    found: list[Binding] = []
    for one in json.loads(_text("bindings")):
        condition = one.get("condition", {})
        binding = Binding(
            one["role"], members[one["who"]], one["on"],
            _filled(condition.get("title", ""), places),
            _filled(condition.get("expression", ""), places),
        )  # fmt: skip
        if binding.member:
            found.append(binding)
    return tuple(found)


def _filled(text: str, places: Places) -> str:
    folder = f"{places.prefix}/" if places.prefix else ""
    return text.replace("objects/cloudwhale/", f"objects/{folder}").replace("BUCKET", places.bucket)
