"""What a machine of the box is told by its metadata service: text by path, as EC2 has them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.names import ACCOUNT

LOOPBACK = "127.0.0.1"
PROFILE_ID = "AIPACLOUDWHALESANDBOX"


@dataclass(frozen=True, slots=True)
class Keys:
    """Credentials of a machine's role, for a while."""

    role: str
    key: str
    secret: str
    token: str
    until: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True)
class Identity:
    """What a machine is told of itself."""

    id: str
    type: str
    zone: str
    region: str
    market: str
    tags: Mapping[str, str]
    user_data: str = ""
    image: str = ""
    profile: str = ""
    """ARN of its instance profile; empty: it has none."""
    launched_at: Instant = 0.0


def documents(
    who: Identity,
    notices: Mapping[str, str],
    address: str = LOOPBACK,
    keys: Keys | None = None,
) -> dict[str, str]:
    """Return all that a machine is told; `notices`: of its going, by path below `meta-data/`."""
    name = f"ip-{address.replace('.', '-')}.ec2.internal"
    told = {
        "ami-id": who.image,
        "hostname": name,
        "instance-id": who.id,
        "instance-type": who.type,
        "instance-life-cycle": who.market,
        "local-hostname": name,
        "local-ipv4": address,
        "placement/availability-zone": who.zone,
        "placement/region": who.region,
        **{f"tags/instance/{key}": value for key, value in who.tags.items()},
        **notices,
        **({} if keys is None else _of_role(who, keys)),
    }
    identity = {
        "accountId": ACCOUNT, "architecture": "x86_64", "availabilityZone": who.zone,
        "imageId": who.image, "instanceId": who.id, "instanceType": who.type,
        "pendingTime": _iso(who.launched_at), "privateIp": address, "region": who.region,
        "version": "2017-09-30",
    }  # fmt: skip
    found = {f"meta-data/{path}": text for path, text in told.items() if text}
    found["dynamic/instance-identity/document"] = json.dumps(identity)
    if who.user_data:
        found["user-data"] = who.user_data
    return found


def _of_role(who: Identity, keys: Keys) -> dict[str, str]:
    """Return the role's part: EC2 User Guide, "Retrieve security credentials"."""
    updated = _iso(keys.updated_at)
    info = {
        "Code": "Success", "LastUpdated": updated, "InstanceProfileArn": who.profile,
        "InstanceProfileId": PROFILE_ID,
    }  # fmt: skip
    credentials = {
        "Code": "Success", "LastUpdated": updated, "Type": "AWS-HMAC", "AccessKeyId": keys.key,
        "SecretAccessKey": keys.secret, "Token": keys.token, "Expiration": _iso(keys.until),
    }  # fmt: skip
    return {
        "iam/info": json.dumps(info),
        f"iam/security-credentials/{keys.role}": json.dumps(credentials),
    }


def _iso(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
