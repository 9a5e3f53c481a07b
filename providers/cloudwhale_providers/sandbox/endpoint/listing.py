"""DescribeInstances, written here: moto takes half a second for a hundred instances."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cloudwhale_providers.sandbox.endpoint.estate import Record, reason_of, says
from cloudwhale_providers.sandbox.endpoint.fields import each
from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.moto_machines import CODES
from cloudwhale_providers.sandbox.endpoint.query import Query
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCOUNT

PAGE = 1000
ACTION = "DescribeInstances"

Fact = Callable[[Record], str]
FILTERS: Mapping[str, Fact] = {
    "instance-id": lambda one: one.instance.id,
    "instance-state-name": lambda one: one.instance.state,
    "instance-state-code": lambda one: str(CODES[one.instance.state]),
    "instance-type": lambda one: one.instance.type,
    "instance-lifecycle": lambda one: str(one.facts.get("InstanceLifecycle", "")),
    "availability-zone": lambda one: one.instance.zone,
    "client-token": lambda one: str(one.facts.get("ClientToken", "")),
    "image-id": lambda one: str(one.facts.get("ImageId", "")),
    "subnet-id": lambda one: str(one.facts.get("SubnetId", "")),
    "vpc-id": lambda one: str(one.facts.get("VpcId", "")),
    "private-ip-address": lambda one: str(one.facts.get("PrivateIpAddress", "")),
    "reservation-id": lambda one: str(one.made.reservation.id),
    "state-reason-code": lambda one: one.instance.reason,
    "iam-instance-profile.arn": lambda one: one.instance.profile,
}


class Listing:
    """Writes what is listed of instances; each is written once, until something of it changes."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def answer(self, records: Sequence[Record], asked: Mapping[str, Any]) -> Answer:
        """Return a page of a region's instances, oldest first; raise Refused."""
        named: Sequence[str] = each(asked, "InstanceIds")
        if named:
            if asked.get("MaxResults"):
                says = "The parameter instancesSet cannot be used with the parameter maxResults"
                raise Refused("InvalidParameterCombination", says)
            records = named_ones(records, named)
        found = [one for one in records if self._fits(one, each(asked, "Filters"))]
        token = str(asked.get("NextToken") or "")
        if token and not token.isdecimal():
            raise Refused("InvalidNextToken", "The token is invalid")
        first, most = int(token or 0), min(int(asked.get("MaxResults") or PAGE), PAGE)
        page = found[first : first + most]
        members = "<reservationSet>" + "".join(map(self._xml, page)) + "</reservationSet>"
        if len(found) > first + most:
            members += f"<nextToken>{first + most}</nextToken>"
        return self._query.framed(ACTION, members)

    def reservation(self, records: Sequence[Record]) -> Answer:
        """Return the answer of RunInstances."""
        first = records[0].made.reservation
        rows = [described(one) for one in records]
        told = {"ReservationId": first.id, "OwnerId": ACCOUNT, "Groups": [], "Instances": rows}
        return self._query.write("RunInstances", told)

    def _fits(self, one: Record, filters: Sequence[Mapping[str, Any]]) -> bool:
        return all(_fits(one, str(said["Name"]), each(said, "Values")) for said in filters)

    def _xml(self, one: Record) -> str:
        made_from = (one.instance, one.made.tags())
        if one.shown[0] != made_from:
            told = {
                "ReservationId": one.made.reservation.id,
                "OwnerId": ACCOUNT,
                "Groups": [],
                "Instances": [described(one)],
            }
            one.shown = (made_from, self._query.element("Reservation", "item", told))
        return one.shown[1]


def named_ones(records: Sequence[Record], names: Sequence[str]) -> list[Record]:
    """Return instances by their ids; raise Refused when one is not found."""
    there = {one.instance.id: one for one in records}
    for name in names:
        if not name.startswith("i-"):
            raise Refused("InvalidInstanceID.Malformed", f'Invalid id: "{name}"')
    missing = [name for name in names if name not in there]
    if missing:
        which = f"ID '{missing[0]}' does" if len(missing) == 1 else f"IDs '{', '.join(missing)}' do"
        raise Refused("InvalidInstanceID.NotFound", f"The instance {which} not exist")
    return [there[name] for name in dict.fromkeys(names)]


def _fits(one: Record, name: str, values: Sequence[str]) -> bool:
    if name == "tag-key":
        return any(fnmatchcase(key, value) for key in one.made.tags() for value in values)
    if name.startswith("tag:"):
        said = one.made.tags().get(name.removeprefix("tag:"))
        return said is not None and any(fnmatchcase(said, value) for value in values)
    fact = FILTERS.get(name)
    if fact is None:
        raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")
    return any(fnmatchcase(fact(one), value) for value in values)


def described(one: Record) -> dict[str, Any]:
    """Return an instance as EC2 lists it."""
    instance, is_there = one.instance, one.instance.state != "terminated"
    told: dict[str, Any] = {
        **one.facts,
        "InstanceId": instance.id,
        "InstanceType": instance.type,
        "LaunchTime": instance.launched_at,
        "State": {"Code": CODES[instance.state], "Name": instance.state},
        "StateTransitionReason": reason_of(instance),
        "Monitoring": {"State": "disabled"},
        "Tags": [{"Key": key, "Value": value} for key, value in sorted(one.made.tags().items())],
        "BlockDeviceMappings": _disks(one) if is_there else [],
        "NetworkInterfaces": _interfaces(one) if is_there else [],
        "SecurityGroups": _groups(one) if is_there else [],
    }
    if instance.reason:
        code = instance.reason
        told["StateReason"] = {"Code": code, "Message": f"{code}: {says(code)}"}
    if not is_there:
        for gone in ("SubnetId", "VpcId", "PrivateIpAddress", "PublicIpAddress"):
            told.pop(gone, None)
        told["PrivateDnsName"] = told["PublicDnsName"] = ""
    return told


def _disks(one: Record) -> list[dict[str, Any]]:
    return [
        {
            "DeviceName": device,
            "Ebs": {
                "VolumeId": disk.volume_id,
                "Status": "attached",
                "DeleteOnTermination": bool(disk.delete_on_termination),
                "AttachTime": one.instance.launched_at,
            },
        }
        for device, disk in one.made.volumes()
    ]


def _interfaces(one: Record) -> list[dict[str, Any]]:
    return [
        {
            "NetworkInterfaceId": each.id,
            "SubnetId": each.subnet.id,
            "VpcId": each.subnet.vpc_id,
            "OwnerId": ACCOUNT,
            "Status": "in-use",
            "PrivateIpAddress": each.private_ip_address,
        }
        for each in one.made.interfaces()
    ]


def _groups(one: Record) -> list[dict[str, Any]]:
    return [
        {"GroupId": group.id, "GroupName": group.name}
        for each in one.made.interfaces()
        for group in each.group_set
    ]
