"""The kinds of things that can be left over at AWS: how each is listed, and how it is removed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Unreachable
from cloudwhale_providers.aws.asking import Calls, listed, says_that_it_is_gone, tags_of

Thing = Mapping[str, Any]
Remove = Callable[[Calls, str, Thing], None]
"""Removes a thing of a region; what it raises is told by code."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that EC2 describes."""

    what: str
    verb: str
    key: str
    """Under which the answer has them."""
    id_key: str
    ids: str
    """The word that asks for some by id."""
    remove: Remove
    since_key: str = ""
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Filters: what is in use goes with whoever uses it."""
    words: Mapping[str, Any] = field(default_factory=dict[str, Any])
    has_tag_filter: bool = True

    def things(self, calls: Calls, region: str, tag: str) -> Iterator[Thing]:
        """Yield those that carry a tag; raise Denied or Unreachable."""
        filters = [{"Name": name, "Values": list(some)} for name, some in self.only.items()]
        if self.has_tag_filter:
            filters.append({"Name": "tag-key", "Values": [tag]})
        for one in self._described(calls, region, Filters=filters, **self.words):
            if tag in tags_of(one) and not _is_over(one):
                yield one

    def again(self, calls: Calls, region: str, name: str) -> Thing | None:
        """Return one by id; None when it is gone; raise Denied or Unreachable."""
        words: dict[str, Any] = {self.ids: [name]}
        try:
            found = next(self._described(calls, region, **words), None)
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return None
            raise
        return None if found is None or _is_over(found) else found

    def _described(self, calls: Calls, region: str, **words: Any) -> Iterator[Thing]:
        for one in listed(calls, region, "ec2", self.verb, self.key, **words):
            yield from one["Instances"] if self.key == "Reservations" else (one,)


def _is_over(one: Thing) -> bool:
    """Say whether a fleet asks for nothing any more, also where filters are not kept to."""
    return one.get("Type") == "instant" or str(one.get("FleetState", "")).startswith("deleted")


def _delete(verb: str, word: str, id_key: str) -> Remove:
    """Return the removal by a verb that takes one id."""

    def remove(calls: Calls, region: str, thing: Thing) -> None:
        words: dict[str, Any] = {word: thing[id_key]}
        calls.call(region, "ec2", verb, **words)

    return remove


def _terminate(calls: Calls, region: str, thing: Thing) -> None:
    if thing["State"]["Name"] not in ("shutting-down", "terminated"):
        calls.call(region, "ec2", "terminate_instances", InstanceIds=[thing["InstanceId"]])


def _delete_fleet(calls: Calls, region: str, thing: Thing) -> None:
    """Delete a fleet with its instances; refusals stand in an answer that is well otherwise."""
    answer = calls.call(
        region, "ec2", "delete_fleets", FleetIds=[thing["FleetId"]], TerminateInstances=True
    )
    for one in answer.get("UnsuccessfulFleetDeletions", ()):
        code = str(one["Error"]["Code"])
        if code != "fleetIdDoesNotExist":
            raise Unreachable(f"fleet {one['FleetId']} in {region} was not deleted: {code}")


def _release(calls: Calls, region: str, thing: Thing) -> None:
    """Release an address; one that something holds is taken from it first."""
    held = thing.get("AssociationId")
    if held:
        calls.call(region, "ec2", "disassociate_address", AssociationId=held)
    calls.call(region, "ec2", "release_address", AllocationId=thing["AllocationId"])


KINDS: tuple[Kind, ...] = (
    # Fleets that keep a number of machines up would replace those that we end. EC2 lists fleets of
    # type instant, which ours are, only by id: they ask for nothing any more and cost nothing.
    Kind(
        "fleet", "describe_fleets", "Fleets", "FleetId", "FleetIds", _delete_fleet, "CreateTime",
        {"type": ("maintain", "request"), "fleet-state": ("submitted", "active", "modifying")},
        has_tag_filter=False,
    ),
    Kind(
        "instance", "describe_instances", "Reservations", "InstanceId", "InstanceIds",
        _terminate, "LaunchTime",
        {"instance-state-name": ("pending", "running", "stopping", "stopped")},
    ),
    Kind(
        "volume", "describe_volumes", "Volumes", "VolumeId", "VolumeIds",
        _delete("delete_volume", "VolumeId", "VolumeId"), "CreateTime",
        {"status": ("available", "error")},
    ),
    Kind(
        "address", "describe_addresses", "Addresses", "AllocationId", "AllocationIds", _release,
    ),
    Kind(
        "interface", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId",
        "NetworkInterfaceIds",
        _delete("delete_network_interface", "NetworkInterfaceId", "NetworkInterfaceId"),
        only={"status": ("available",)},
    ),
    Kind(
        "snapshot", "describe_snapshots", "Snapshots", "SnapshotId", "SnapshotIds",
        _delete("delete_snapshot", "SnapshotId", "SnapshotId"), "StartTime",
        words={"OwnerIds": ["self"]},
    ),
    Kind(
        "template", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId",
        "LaunchTemplateIds",
        _delete("delete_launch_template", "LaunchTemplateId", "LaunchTemplateId"), "CreateTime",
        words={"MaxResults": 200},
    ),
    Kind(
        "security group", "describe_security_groups", "SecurityGroups", "GroupId", "GroupIds",
        _delete("delete_security_group", "GroupId", "GroupId"),
    ),
)  # fmt: skip
"""In the order in which they are to go: what uses something before what is used."""


def _never(calls: Calls, region: str, thing: Thing) -> None:
    raise Unreachable(f"{thing} in {region} is removed by its group and name")


SCHEDULE = Kind("schedule", "list_schedules", "Schedules", "Name", "", _never, "CreationDate")
"""Has no tags and no filters: `leftovers` finds it by the name of its group."""
