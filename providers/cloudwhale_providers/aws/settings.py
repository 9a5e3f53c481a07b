"""What `[clouds.aws]` can say, with its defaults; each key is for those who asked for it."""

import difflib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError
from cloudwhale_providers.aws.images import DEFAULT, KNOWN

REGIONS: tuple[str, ...] = (
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3",
    "ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3",
    "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1",
    "ca-west-1", "eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2",
    "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1",
    "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
)  # fmt: skip
"""Regions of EC2, as botocore's endpoints list them; a test compares, boto3 is slow to import."""

WANTED = {
    "regions": 'a list of regions or patterns, like ["us-*", "eu-west-1"]',
    "profile": "the name of a profile of ~/.aws/config",
    "instance_profile": "the name or the ARN of an instance profile",
    "scheduler_role": "the ARN of a role, like arn:aws:iam::123456789012:role/cloudwhale-stops",
    "security_group": "the id of a security group, like sg-0123456789abcdef0",
    "subnets": 'regions with lists of subnets, like {us-east-1 = ["subnet-0123"]}',
    "image": f"{', '.join(KNOWN)}, an AMI's id, or the name of a parameter that names one",
    "pin_zone": "true or false",
}


class AwsSettings(Value):
    """Every key of `[clouds.aws]`."""

    regions: tuple[str, ...] = ()
    """Where machines may be rented, names or patterns; none: all that the catalogue lists."""
    profile: str = ""
    """Of the user's AWS configuration; empty: as the environment says."""
    instance_profile: str = ""
    """Role of the machines, name or ARN: they read and write the mailbox with it."""
    scheduler_role: str = ""
    """ARN of the role that ends machines on time; empty: nobody but the machine itself does."""
    security_group: str = ""
    """Empty: one without any inbound rule is made for the installation."""
    subnets: Mapping[str, tuple[str, ...]] = {}
    """By region; none: the default subnets of its default VPC."""
    image: str = DEFAULT
    """Short name of a known one, AMI, or the SSM parameter that names it."""
    pin_zone: bool = False
    """Whether a machine must stand in the zone that it was planned for."""


def read(table: Mapping[str, Any], name: str = "aws") -> AwsSettings:
    """Return the settings of a table; raise SettingsError, naming table, key and remedy."""
    for key in table:
        if key not in AwsSettings.model_fields:
            raise SettingsError(f"[clouds.{name}]: unknown key {key!r}", _near(key, WANTED))
    try:
        options = AwsSettings.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise SettingsError(
            f"[clouds.{name}]: {key} must be {WANTED[key]}, and {first['input']!r} is not",
            "Write it so in cloudwhale.toml, or remove it.",
        ) from error
    for word in (*options.regions, *options.subnets):
        if not any(fnmatchcase(region, word) for region in REGIONS):
            says = f"cloudwhale.toml, [clouds.{name}]: AWS has no region {word!r}"
            raise SettingsError(says, _near(word, REGIONS))
    return options


def regions(options: AwsSettings) -> Sequence[str]:
    """Return the regions that are meant by name; empty: nobody has said."""
    return [
        region for region in REGIONS if any(fnmatchcase(region, word) for word in options.regions)
    ]


def _near(word: str, known: Sequence[str] | Mapping[str, str]) -> str:
    close = difflib.get_close_matches(word, list(known), 3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}?" if close else "Known: " + ", ".join(known)
