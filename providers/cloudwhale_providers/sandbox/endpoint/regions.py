"""One region of moto's EC2, made ready: the network, the image and the sizes of its machines."""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from cloudwhale_providers.sandbox.endpoint.account import ARCHITECTURES, add_image
from cloudwhale_providers.sandbox.endpoint.moto_machines import tags_of
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCOUNT


class Region:
    """What launches ask of a region; moto's models have no types."""

    def __init__(self, name: str, has_image: bool, has_network: bool) -> None:
        from moto.backends import get_backend

        self.name = name
        self.backend: Any = get_backend("ec2")[ACCOUNT][name]
        quicken(self.backend)
        if has_image:
            for architecture in ARCHITECTURES:
                add_image(self.backend, name, architecture)
        if not has_network:
            _without_network(self.backend)

    @cached_property
    def _offered(self) -> Mapping[str, set[str]]:
        from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

        found: dict[str, set[str]] = {}
        for one in INSTANCE_TYPE_OFFERINGS["availability-zone"].get(self.name, ()):
            found.setdefault(one["InstanceType"], set()).add(one["Location"])
        return found

    def zones_of(self, type_name: str) -> set[str]:
        """Return where a type stands; empty: nowhere here."""
        return self._offered.get(type_name, set())

    def subnet(self, name: str) -> Any:
        """Return a subnet; raise Refused."""
        for in_zone in self.backend.subnets.values():
            if name in in_zone:
                return in_zone[name]
        raise Refused("InvalidSubnetID.NotFound", f"The subnet ID '{name}' does not exist")

    def default_subnet(self, zone: str) -> Any:
        """Return where machines stand for which no subnet is named; raise Refused."""
        found = [one for one in self.backend.subnets.get(zone, {}).values() if one.default_for_az]
        if found:
            return found[0]
        raise Refused("VPCIdNotSpecified", "No default VPC for this user.")

    def check_group(self, name: str) -> None:
        """Raise Refused for a security group that is not there."""
        if self.backend.get_security_group_from_id(name) is None:
            raise Refused("InvalidGroup.NotFound", f"The security group '{name}' does not exist")

    def image(self, name: str) -> Any:
        """Return an image; raise Refused."""
        found = self.backend.amis.get(name)
        if found is None:
            kind = "NotFound" if name.startswith("ami-") else "Malformed"
            raise Refused(f"InvalidAMIID.{kind}", f"The image id '[{name}]' does not exist")
        return found

    def template(self, named: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return a launch template and the version that is meant; raise Refused."""
        backend, name = self.backend, named.get("LaunchTemplateName", "")
        known = named.get("LaunchTemplateId") or backend.launch_template_name_to_ids.get(name)
        template = backend.launch_templates.get(known)
        if template is None:
            kind = "Id" if "LaunchTemplateId" in named else "Name"
            says = "The specified launch template does not exist."
            raise Refused(f"InvalidLaunchTemplate{kind}.NotFoundException", says)
        version = str(named.get("Version") or "$Default")
        numbers = {str(one.number) for one in template.versions}
        if version not in numbers | {"$Default", "$Latest"}:
            says = f"Could not find launch template version {version}"
            raise Refused("InvalidLaunchTemplateId.VersionNotFound", says)
        return template, template.get_version(version)

    def template_of(self, named: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return id and content of a launch template; raise Refused."""
        template, version = self.template(named)
        content: Mapping[str, Any] = version.data
        return str(template.id), content

    def tags(self, name: str) -> Mapping[str, str]:
        """Return the tags of a thing; none for what is not there."""
        return tags_of(self.backend, name)

    def address_of(self, association: str) -> str:
        """Return the address of an association; empty: there is none."""
        for one in self.backend.addresses:
            if association and one.association_id == association:
                return str(one.allocation_id)
        return ""


def is_region(name: str) -> bool:
    """Say whether there is such a region of EC2."""
    from moto.backends import get_backend

    return name in get_backend("ec2")[ACCOUNT]


@cache
def vcpus(type_name: str) -> int:
    """Return how many vCPUs a type has; 0 for one that is unknown."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    found = INSTANCE_TYPES.get(type_name)
    return 0 if found is None else int(found["VCpuInfo"]["DefaultVCpus"])


def quicken(backend: Any) -> None:
    """Let the tags of one resource be found without a look at those of all others."""
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

    slow = backend.describe_tags

    def found(filters: Mapping[str, Any] | None = None) -> Any:
        if filters is None or set(filters) != {"resource-id"} or len(filters["resource-id"]) != 1:
            return slow(filters)
        resource = filters["resource-id"][0]
        if not resource or "*" in resource or "?" in resource:
            return slow(filters)
        if not backend.tags.get(resource):
            return []
        kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource), "")
        return [
            {"resource_id": resource, "key": key, "value": value, "resource_type": kind}
            for key, value in backend.tags[resource].items()
        ]

    backend.describe_tags = found


def _without_network(backend: Any) -> None:
    for in_zone in backend.subnets.values():
        for name in [one.id for one in in_zone.values() if one.default_for_az]:
            del in_zone[name]
    for name in [one.id for one in backend.vpcs.values() if one.is_default in (True, "true")]:
        del backend.vpcs[name]
