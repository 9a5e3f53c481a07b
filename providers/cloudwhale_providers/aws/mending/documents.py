"""Policies of IAM as documents: filled in for an account, and compared whatever their spelling."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from cloudwhale_providers.aws.checks_bucket import Bucket
from cloudwhale_providers.aws.checks_roles import several
from cloudwhale_providers.aws.policies import Places, filled

MACHINE, STOPS = "cloudwhale-machine", "cloudwhale-stops"
"""What the roles are called where the settings do not say otherwise; the policies name them so."""


class Roles(NamedTuple):
    """What the roles of an installation are called."""

    machine: str = MACHINE
    profile: str = MACHINE
    stops: str = STOPS


def controller(bucket: Bucket, account: str, roles: Roles) -> dict[str, Any]:
    """Return what whoever runs cloudwhale must be allowed, with the roles as they are called."""
    text = json.dumps(filled("controller-policy", Places(account, bucket.name, bucket.prefix)))
    for shipped, own in (
        (f"role/{MACHINE}", f"role/{roles.machine}"),
        (f"instance-profile/{MACHINE}", f"instance-profile/{roles.profile}"),
        (f"role/{STOPS}", f"role/{roles.stops}"),
    ):
        text = text.replace(f'{shipped}"', f'{own}"')
    found: dict[str, Any] = json.loads(text)
    return found


def name_for(what: str, bucket: Bucket) -> str:
    """Return what a policy is called that is for one mailbox: others of the account have theirs."""
    said = f"{what}.{bucket.name}.{bucket.prefix}".rstrip(".")
    return re.sub(r"[^\w+=,.@-]", "-", said)[:128]  # the characters and length that IAM takes


def same(ours: Mapping[str, Any], theirs: Any) -> bool:
    """Say whether two policies say the same, in whatever order, one thing as one or as a list."""
    return _plain(dict(ours)) == _plain(theirs)


def _plain(value: Any) -> str:
    """Return a text that is the same for what says the same; names of statements say nothing."""
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        said = {key: _plain(one) for key, one in entries if key not in ("Sid", "Id")}
        return json.dumps(said, sort_keys=True)
    if isinstance(value, list):
        return " ".join(sorted(_plain(one) for one in several(cast("Any", value))))
    return json.dumps(value)
