"""Launch templates: one for each version of what all machines have in common.

Its name holds a hash of its content, so one that is there is the right one, and nobody changes it.
"""

import hashlib
import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from threading import Lock
from typing import Any

from cloudwhale.model.units import GiB
from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale.spi.provider import LaunchRequest
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import code_of
from cloudwhale_providers.aws.images import KNOWN, SETTING, Image, Images
from cloudwhale_providers.aws.network import Network
from cloudwhale_providers.aws.user_data import user_data
from cloudwhale_providers.prices.aws import ROOT_KEEPS_GIB

EXISTS = "InvalidLaunchTemplateName.AlreadyExistsException"
ONE_HOP = 1
"""Containers in networks of their own do not reach the metadata service, nor the role's keys."""


class Templates:
    """Makes the launch templates that are missing; safe for threads."""

    def __init__(
        self, account: Account, images: Images, network: Network, bucket_region: str = ""
    ) -> None:
        """Take where the mailbox's bucket is; empty: where the machine is."""
        self._account = account
        self._images = images
        self._bucket_region = bucket_region
        self._network = network
        self._made: set[tuple[str, str]] = set()
        self._lock = Lock()

    def named(self, region: str, request: LaunchRequest) -> str:
        """Return the name of the template for a launch; raise Denied when it cannot be made."""
        content = self._content(region, request)
        name = name_of(self._account.ours, content)
        with self._lock:
            if (region, name) in self._made:
                return name
        self._make(region, name, content)
        with self._lock:
            self._made.add((region, name))
        return name

    def forget(self, region: str) -> None:
        """Make a region's templates anew: one is said to be gone."""
        with self._lock:
            self._made = {one for one in self._made if one[0] != region}

    def disks(self, region: str, request: LaunchRequest) -> list[dict[str, Any]]:
        """Return the disk of one machine, as large as its jobs ask for."""
        image = self._images.image(region)
        return [disk(image, root_gib(image, request))]

    def _make(self, region: str, name: str, content: Mapping[str, Any]) -> None:
        own = {tags.INSTALLATION: self._account.installation, tags.NAME: name}
        try:
            self._account.calls.call(
                region, "ec2", "create_launch_template", LaunchTemplateName=name,
                LaunchTemplateData=content,
                TagSpecifications=tags.at_creation(own, ["launch-template"]),
            )  # fmt: skip
        except CloudwhaleError as error:
            if code_of(error) != EXISTS:
                raise

    def _content(self, region: str, request: LaunchRequest) -> dict[str, Any]:
        image = self._images.image(region)
        if request.pythons and image.python and image.python not in request.pythons:
            raise Denied(
                f"the image {image.id} has Python {image.python}, and the agent's archive is for "
                f"{', '.join(request.pythons)}",
                f"Set `{SETTING}` in [clouds.aws] to {' or '.join(KNOWN)}.",
            )
        told = user_data(request.mailbox, self._bucket_region or region, request.bundle)
        content: dict[str, Any] = {
            "ImageId": image.id,
            "UserData": b64encode(told.encode()).decode(),
            "SecurityGroupIds": self._groups(region, request),
            "MetadataOptions": {
                "HttpTokens": "required",
                "HttpEndpoint": "enabled",
                "HttpPutResponseHopLimit": ONE_HOP,
                "InstanceMetadataTags": "enabled",
            },
            "InstanceInitiatedShutdownBehavior": "terminate",
            "BlockDeviceMappings": [disk(image, image.least_gib)],
        }
        profile = self._account.options.instance_profile
        if profile:
            key = "Arn" if profile.startswith("arn:") else "Name"
            content["IamInstanceProfile"] = {key: profile}
        return content

    def _groups(self, region: str, request: LaunchRequest) -> list[str]:
        """Return the security groups: those of gangs have one more, that admits its members."""
        usual = self._network.group(region)
        return [usual, self._network.gang_group(region)] if request.gang else [usual]


def name_of(whose: str, content: Mapping[str, Any]) -> str:
    """Return what a template is called: whose it is, and what is in it."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return f"{re.sub('[^a-zA-Z0-9().-]', '-', whose)[:100]}-{digest[:16]}"


def root_gib(image: Image, request: LaunchRequest) -> int:
    """Return how large a root disk is: what jobs and offer promise, beside what the image takes."""
    promised: GiB = request.disk_gib
    if request.offer is not None:
        promised = max(promised, request.offer.facts.disk_gib)
    return math.ceil(max(image.least_gib, promised + ROOT_KEEPS_GIB))


def disk(image: Image, gib: GiB) -> dict[str, Any]:
    """Return an encrypted root disk that goes with its machine."""
    ebs = {
        "VolumeType": "gp3",
        "VolumeSize": math.ceil(gib) or 8,
        "Encrypted": True,
        "DeleteOnTermination": True,
    }
    return {"DeviceName": image.root_device, "Ebs": ebs}
