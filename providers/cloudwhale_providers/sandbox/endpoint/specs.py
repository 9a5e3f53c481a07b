"""What one instance is launched with: the template, then what the request says over it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.endpoint.account import profile_arn
from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.regions import Region, vcpus
from cloudwhale_providers.sandbox.endpoint.room import Wish

USER_DATA_BYTES = 16_384
"""EC2 User Guide, "User data": 16 KB, as it is before it is encoded."""
TAGGED = ("instance", "volume", "network-interface")


@dataclass(frozen=True, slots=True)
class Spec:
    """One instance that is wanted."""

    wish: Wish
    data: Mapping[str, Any]
    """As a launch template has it."""
    subnet: str
    tags: Mapping[str, Mapping[str, str]]
    """By what is tagged."""

    def tagged(self, own: Mapping[str, str]) -> "Spec":
        """Return the same whose instance has more tags."""
        return replace(self, tags={**self.tags, "instance": {**self.tags["instance"], **own}})

    @property
    def user_data(self) -> str:
        """Return it as text."""
        return decoded(self.data.get("UserData")).decode("utf-8", "replace")


def spec(region: Region, data: Mapping[str, Any], tags: Any, market: Market) -> Spec:
    """Return what is to be launched; raise Refused where EC2 would not look any further."""
    type_name = str(data.get("InstanceType") or "m1.small")
    if "InstanceRequirements" in data:
        raise Refused(
            "InvalidParameterCombination", "the sandbox takes instance types by name only"
        )
    named = subnet_of(data)
    zone = zone_of(data)
    if named:
        subnet = region.subnet(named)
        if zone and zone != subnet.availability_zone:
            raise Refused("InvalidParameterValue", f"{named} does not stand in {zone}")
    else:
        zones = sorted(region.zones_of(type_name))
        subnet = region.default_subnet(zone or (zones[0] if zones else f"{region.name}a"))
    wish = Wish(
        type_name, region.name, str(subnet.availability_zone), market, vcpus(type_name),
        most(data),
    )  # fmt: skip
    _check(region, data)
    return Spec(wish, data, str(subnet.id), _tags(data, tags))


def merged(template: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template's data with what a request says in its place."""
    found = {**template, **{key: value for key, value in over.items() if value is not None}}
    mappings = {one.get("DeviceName"): one for one in each(template, "BlockDeviceMappings")}
    mappings |= {one.get("DeviceName"): one for one in each(over, "BlockDeviceMappings")}
    if mappings:
        found["BlockDeviceMappings"] = list(mappings.values())
    return found


def subnet_of(data: Mapping[str, Any]) -> str:
    """Return the subnet that is named; empty: none is."""
    if data.get("SubnetId"):
        return str(data["SubnetId"])
    for interface in each(data, "NetworkInterfaces"):
        if interface.get("SubnetId"):
            return str(interface["SubnetId"])
    return ""


def zone_of(data: Mapping[str, Any]) -> str:
    """Return the zone that is named; empty: none is."""
    placement = inner(data, "Placement")
    return str(data.get("AvailabilityZone") or placement.get("AvailabilityZone") or "")


def most(data: Mapping[str, Any]) -> MicroUsd | None:
    """Return the highest spot price that is named; None: whatever it costs."""
    options = inner(inner(data, "InstanceMarketOptions"), "SpotOptions")
    said = data.get("MaxPrice") or options.get("MaxPrice")
    return None if said is None else micro_usd(str(said))


def decoded(user_data: Any) -> bytes:
    """Return user data as its machine reads it."""
    return base64.b64decode(str(user_data)) if user_data else b""


def _check(region: Region, data: Mapping[str, Any]) -> None:
    try:
        size = len(decoded(data.get("UserData")))
    except ValueError as error:
        raise Refused(
            "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data."
        ) from error
    if size > USER_DATA_BYTES:
        raise Refused("InvalidUserData.Malformed", "User data is limited to 16384 bytes")
    profile_arn(inner(data, "IamInstanceProfile"))
    groups = list(each(data, "SecurityGroupIds"))
    groups += [
        one for interface in each(data, "NetworkInterfaces") for one in each(interface, "Groups")
    ]
    for group in groups:
        region.check_group(str(group))
    image = region.image(str(data.get("ImageId") or ""))
    least = image.block_device_mappings[0]["Ebs"]["VolumeSize"]
    for mapping in each(data, "BlockDeviceMappings"):
        wanted = inner(mapping, "Ebs").get("VolumeSize")
        if mapping.get("DeviceName") == image.root_device_name and wanted and int(wanted) < least:
            says = f"Volume of size {wanted}GB is smaller than snapshot, expect size >= {least}GB"
            raise Refused("InvalidBlockDeviceMapping", says)


def _tags(data: Mapping[str, Any], asked: Any) -> dict[str, dict[str, str]]:
    """Return the tags by what is tagged; the request's go over those of the template."""
    found: dict[str, dict[str, str]] = {kind: {} for kind in TAGGED}
    for one in [*each(data, "TagSpecifications"), *(asked or ())]:
        kind = found.setdefault(str(one.get("ResourceType")), {})
        kind |= {str(tag["Key"]): str(tag.get("Value", "")) for tag in each(one, "Tags")}
    return found
