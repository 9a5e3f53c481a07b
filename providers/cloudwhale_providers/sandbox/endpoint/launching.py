"""Makes an instance in moto's models, with all that its launch says."""

import base64
from collections.abc import Mapping
from typing import Any

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale_providers.sandbox.endpoint.account import profile_arn
from cloudwhale_providers.sandbox.endpoint.estate import Record
from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.moto_machines import Made
from cloudwhale_providers.sandbox.endpoint.regions import Region
from cloudwhale_providers.sandbox.endpoint.specs import Spec, decoded

Facts = dict[str, Any]
METADATA = {
    "State": "applied",
    "HttpTokens": "optional",
    "HttpPutResponseHopLimit": 1,
    "HttpEndpoint": "enabled",
    "HttpProtocolIpv6": "disabled",
    "InstanceMetadataTags": "disabled",
}


def make(region: Region, spec: Spec, now: Instant, price: MicroUsd | None) -> tuple[Made, Instance]:
    """Make an instance; it is pending."""
    made = _run(region, spec)
    _tag(made, spec)
    profile = _profile(made, spec)
    volumes = [made.backend.get_volume(disk.volume_id) for _, disk in made.volumes()]
    wish, metadata = spec.wish, inner(spec.data, "MetadataOptions")
    instance = Instance(
        id=str(made.machine.id),
        type=wish.type,
        region=wish.region,
        zone=wish.zone,
        market=wish.market,
        tags=made.tags(),
        user_data=spec.user_data,
        launched_at=float(int(now)),
        price_usd_h=price,
        vcpus=wish.vcpus,
        disk_gib=sum(int(one.size) for one in volumes),
        metadata_tags=metadata.get("InstanceMetadataTags") == "enabled",
        profile=profile,
        image=str(spec.data["ImageId"]),
        volumes=tuple(str(one.id) for one in volumes),
    )
    return made, instance


def record(made: Made, instance: Instance, number: int, spec: Spec, token: str) -> Record:
    """Return an instance as it is kept; `number` is that of its launch."""
    machine = made.machine
    facts: Facts = {
        "ImageId": spec.data["ImageId"],
        "ClientToken": token,
        "KeyName": spec.data.get("KeyName"),
        "AmiLaunchIndex": 0,
        "SubnetId": spec.subnet,
        "VpcId": machine.vpc_id,
        "PrivateIpAddress": machine.private_ip,
        "PrivateDnsName": machine.private_dns_name,
        "PublicIpAddress": machine.public_ip,
        "PublicDnsName": machine.public_dns_name,
        "RootDeviceName": machine.root_device_name,
        "RootDeviceType": "ebs",
        "Architecture": machine.architecture,
        "EbsOptimized": bool(spec.data.get("EbsOptimized")),
        "Hypervisor": "xen",
        "VirtualizationType": "hvm",
        "Placement": {"AvailabilityZone": spec.wish.zone, "GroupName": "", "Tenancy": "default"},
        "MetadataOptions": {**METADATA, **inner(spec.data, "MetadataOptions")},
    }
    if instance.market == "spot":
        facts["InstanceLifecycle"] = "spot"
        facts["SpotInstanceRequestId"] = f"sir-{instance.id[-8:]}"
    if instance.profile:
        facts["IamInstanceProfile"] = {"Arn": instance.profile, "Id": "AIPACLOUDWHALESANDBOX"}
    return Record(instance, made, number, facts)


def _run(region: Region, spec: Spec) -> Made:
    data, backend = spec.data, region.backend
    from moto.core.types import Base64EncodedString

    user_data = decoded(data.get("UserData"))
    interfaces = [dict(one) for one in each(data, "NetworkInterfaces")]
    for one in interfaces:
        one.setdefault("DeviceIndex", 0)
        one["SubnetId"] = spec.subnet
    reservation = backend.run_instances(
        str(data["ImageId"]),
        1,
        Base64EncodedString(base64.b64encode(user_data).decode()) if user_data else None,
        [],
        instance_type=spec.wish.type,
        is_instance_type_default=False,
        placement=None,
        region_name=region.name,
        subnet_id=None if interfaces else spec.subnet,
        nics=interfaces,
        security_group_ids=[] if interfaces else list(each(data, "SecurityGroupIds")),
        associate_public_ip=None,
        key_name=data.get("KeyName"),
        instance_market_options="spot" if spec.wish.market == "spot" else None,
        instance_initiated_shutdown_behavior=data.get("InstanceInitiatedShutdownBehavior"),
        metadata_options=inner(data, "MetadataOptions"),
        block_device_mappings=_disks(region, data),
        tags={},
    )
    return Made(backend, reservation, reservation.instances[0])


def _disks(region: Region, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the disks of an instance: those of the image, as the launch says that they are."""
    image = region.image(str(data["ImageId"]))
    found: dict[str, dict[str, Any]] = {
        one["DeviceName"]: {**one["Ebs"]} for one in image.block_device_mappings
    }
    for one in each(data, "BlockDeviceMappings"):
        if "Ebs" in one:
            base = found.get(one["DeviceName"], {"DeleteOnTermination": True})
            found[one["DeviceName"]] = {**base, **one["Ebs"]}
    return [
        {"DeviceName": name, "Ebs": {key: value for key, value in ebs.items()}}
        for name, ebs in found.items()
    ]


def _tag(made: Made, spec: Spec) -> None:
    made.machine.add_tags(spec.tags["instance"])
    for _, disk in made.volumes():
        made.backend.get_volume(disk.volume_id).add_tags(spec.tags["volume"])
    for interface in made.interfaces():
        interface.add_tags(spec.tags["network-interface"])
        interface.delete_on_termination = True


def _profile(made: Made, spec: Spec) -> str:
    """Give an instance its profile, which is there; return the ARN."""
    arn = profile_arn(inner(spec.data, "IamInstanceProfile"))
    if arn:
        made.backend.associate_iam_instance_profile(
            instance_id=made.machine.id, iam_instance_profile_arn=arn
        )
    return arn
