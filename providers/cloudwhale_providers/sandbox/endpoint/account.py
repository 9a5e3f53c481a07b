"""What the account of the sandbox has from the start: roles, images and their parameters."""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCOUNT, INSTANCE_PROFILE, SCHEDULER_ROLE

MACHINE_ROLE, MACHINE_ROLE_ID = "cloudwhale-machine", "AROACLOUDWHALEMACHINE"
SPOT_ROLE = "AWSServiceRoleForEC2Spot"
"""EC2 User Guide, "Service-linked role for Spot Instance requests"."""
IMAGE_OWNER = "898082745236"
"""Owner of AWS's Deep Learning AMIs."""
IMAGE_GIB = 60
"""The root disk of the image; the real ones are tens of GB too."""
ROOT_DEVICE = "/dev/sda1"
KINDS = (
    "base-oss-nvidia-driver-gpu-ubuntu-22.04",
    "base-oss-nvidia-driver-gpu-ubuntu-24.04",
    "base-with-single-cuda-ubuntu-22.04",
    "base-with-single-cuda-ubuntu-24.04",
)
OTHERS = (
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    "/aws/service/debian/release/12/latest/amd64",
)
"""Parameters of Ubuntu and of Debian; all of them name the one image that there is."""
ARCHITECTURES = ("x86_64", "arm64")


def parameter(architecture: str, kind: str) -> str:
    """Return the public parameter that names an image (AWS Deep Learning AMIs, release notes)."""
    return f"/aws/service/deeplearning/ami/{architecture}/{kind}/latest/ami-id"


def image_id(region: str, architecture: str) -> str:
    """Return the image of a region."""
    digest = hashlib.sha256(f"{region} {architecture}".encode()).hexdigest()
    return f"ami-{digest[:17]}"


def add_image(backend: Any, region: str, architecture: str) -> None:
    """Put the image into a region."""
    name = f"The sandbox's image {architecture}"
    image = _image_class()(
        backend,
        image_id(region, architecture),
        name=name,
        description="What machines of the sandbox boot from.",
        owner_id=IMAGE_OWNER,
        owner_alias="amazon",
        public=True,
        virtualization_type="hvm",
        architecture=architecture,
        image_location=f"amazon/{name}",
        hypervisor="xen",
        root_device_type="ebs",
        root_device_name=ROOT_DEVICE,
        region_name=f"{region}a",
    )
    image.ebs_snapshot.volume.size = IMAGE_GIB
    backend.amis[image.id] = image


@cache
def _image_class() -> Any:
    from moto.ec2.models.amis import Ami

    class Image(Ami):
        """An image whose root disk has a size of its own: moto knows 15 GiB only."""

        @property
        def block_device_mappings(self) -> list[dict[str, Any]]:
            """Return its one disk."""
            ebs = {
                "SnapshotId": self.ebs_snapshot.id,
                "VolumeSize": IMAGE_GIB,
                "DeleteOnTermination": True,
                "VolumeType": "gp3",
                "Encrypted": False,
            }
            return [{"DeviceName": self.root_device_name, "Ebs": ebs}]

    return Image


def add_parameters(region: str) -> None:
    """Put the parameters that name the images into a region's SSM."""
    from moto.backends import get_backend
    from moto.core.utils import utcnow
    from moto.ssm import models

    made: Any = models.Parameter  # abstract only by its base, which has nothing of SSM
    backend: Any = get_backend("ssm")[ACCOUNT][region]
    named = {parameter(one, kind): one for one in ARCHITECTURES for kind in KINDS}
    for name, architecture in (named | dict.fromkeys(OTHERS, ARCHITECTURES[0])).items():
        backend._parameters[name] = [
            made(
                account_id=ACCOUNT,
                name=name,
                value=image_id(region, architecture),
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=utcnow(),
                version=1,
                data_type="text",
            )
        ]


def add_roles(has_spot_role: bool) -> None:
    """Put the roles of machines, of their stops and of spot into the account."""
    from moto.iam import models

    models.SERVICE_NAME_CONVERSION["spot"] = "EC2Spot"  # moto does not know how EC2 calls it
    iam = _iam()
    _role(iam, MACHINE_ROLE, "ec2.amazonaws.com")
    role = iam.roles.pop(iam.get_role(MACHINE_ROLE).id)
    role.id = MACHINE_ROLE_ID  # who has asked for it may outlive this box and meet the next
    iam.roles[role.id] = role
    _role(iam, SCHEDULER_ROLE, "scheduler.amazonaws.com")
    if has_spot_role:
        add_spot_role()
    iam.create_instance_profile(INSTANCE_PROFILE, "/", [MACHINE_ROLE])


def add_spot_role() -> None:
    """Put the role into the account that EC2 has spot machines under."""
    _role(_iam(), SPOT_ROLE, "spot.amazonaws.com", "/aws-service-role/spot.amazonaws.com/")


def _role(iam: Any, name: str, service: str, path: str = "/") -> None:
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        ],
    }
    iam.create_role(name, json.dumps(trust), path, None, "", [], "3600")


def has_role(arn: str) -> bool:
    """Say whether the account has a role."""
    return any(role.arn == arn for role in _iam().roles.values())


def policies_of(role: str) -> tuple[str, ...]:
    """Return the policies that somebody has put into a role, as their texts; for any thread."""
    found = next((one for one in list(_iam().roles.values()) if one.name == role), None)
    return () if found is None else tuple(map(str, list(found.policies.values())))


def role_id_of(profile: str) -> str:
    """Return what IAM knows the role of an instance profile by; empty: none; for any thread."""
    for one in list(_iam().instance_profiles.values()):
        if one.name == profile:
            return str(one.roles[0].id) if one.roles else ""
    return ""


def has_spot_role() -> bool:
    """Say whether spot machines may be asked for."""
    return any(role.name == SPOT_ROLE for role in _iam().roles.values())


def role_of_profile(named: Mapping[str, Any]) -> str:
    """Return the role of an instance profile; empty: it has none, or is not there."""
    for one in _iam().instance_profiles.values():
        if one.arn == named.get("Arn") or one.name == named.get("Name"):
            return str(one.roles[0].arn) if one.roles else ""
    return ""


def profile_arn(named: Mapping[str, Any]) -> str:
    """Return the ARN of an instance profile; empty: none is named. Raise Refused for no profile."""
    if not named:
        return ""
    for one in _iam().instance_profiles.values():
        if one.arn == named.get("Arn") or one.name == named.get("Name"):
            return str(one.arn)
    said = named.get("Name") or named.get("Arn")
    says = (
        f"Value ({said}) for parameter iamInstanceProfile is invalid. Invalid IAM Instance Profile"
    )
    raise Refused("InvalidParameterValue", says)


def _iam() -> Any:
    from moto.backends import get_backend

    return get_backend("iam")[ACCOUNT]["aws"]
