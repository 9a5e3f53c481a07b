"""A small AWS in memory: what a launch, a stop and a sweep need of EC2, SSM and Scheduler.

It stands where boto3's session does. What it is asked and what it answers are held against
botocore's own models, so a word that AWS does not know fails here.
"""

import itertools
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aws_models import check_answer, check_asked
from small_iam import SmallIam
from small_schedules import SmallSchedules, Words, refused

from cloudwhale.simulation.clock import SteppedClock

AMI = "ami-0123456789abcdef0"
VPC, GROUP, GANG = "vpc-1", "sg-1", "sg-gang"
ZONES = "abc"
NONE = {
    "describe_fleets": "Fleets",
    "describe_volumes": "Volumes",
    "describe_addresses": "Addresses",
    "describe_network_interfaces": "NetworkInterfaces",
    "describe_snapshots": "Snapshots",
}
"""What a sweep asks for, and of which there is nothing here."""
Fault = Callable[[str, str, Callable[[], Words]], Words]
"""Given service and verb, and how to do it: does it, or goes wrong before or after that."""


@dataclass
class Box:
    """One instance."""

    id: str
    region: str
    zone: str
    type: str
    market: str
    tags: dict[str, str]
    launched_at: float
    state: str = "running"
    reason: tuple[str, str] | None = None
    ended: str = ""
    ended_at: float | None = None
    words: Words = field(default_factory=dict)
    """What it was asked for with."""


class SmallAws(SmallSchedules, SmallIam):
    """Regions alike, three zones each; every instance runs at once and ends at once."""

    def __init__(self, clock: SteppedClock) -> None:
        super().__init__()
        self.clock = clock
        self.boxes: dict[str, Box] = {}
        self.by_launch: dict[str, list[Box]] = {}
        self.tokens: dict[str, tuple[str, Words]] = {}
        """By client token: what was asked, and what was answered."""
        self.templates: dict[tuple[str, str], Words] = {}
        self.groups: dict[str, Words] = {}
        """Security groups by region, that of gangs by region and `gang`."""
        self.asked: list[tuple[str, str, Words]] = []
        """Region, verb, words of all that was asked."""
        self.refusals: dict[str, Exception] = {}
        """By verb: how it is refused before anything happens."""
        self.fleet_errors: dict[str, str] = {}
        """By zone: the code of why it has no machine; `*` for all."""
        self.prices: dict[str, str] = {}
        """Spot prices by zone; 0.1 in others."""
        self.zones = ZONES
        self.unseen: set[str] = set()
        """Ids that are not listed yet."""
        self.dies: tuple[str, str] | None = None
        """Code and message of why new machines end before they run."""
        self.vpcs = [VPC]
        self.fault: Fault | None = None
        self.region_name = "us-east-1"
        self._count = itertools.count(1)

    # -- as a session ------------------------------------------------------------------------

    def client(self, service: str, region_name: str = "", config: object = None) -> "Client":
        """Return a client, as boto3's session does."""
        return Client(self, region_name, service)

    def answer(self, region: str, service: str, verb: str, words: Words) -> Words:
        """Do what is asked, held against the models of botocore."""
        check_asked(service, verb, words)
        self.asked.append((region, verb, words))
        if verb in self.refusals:
            raise self.refusals[verb]

        def do() -> Words:
            none: Words | None = {NONE[verb]: []} if verb in NONE else None
            found: Words = none or getattr(self, verb)(region, words)
            check_answer(service, verb, found)
            return found

        return do() if self.fault is None else self.fault(service, verb, do)

    def words_of(self, verb: str) -> list[Words]:
        """Return what a verb was asked with, in order."""
        return [words for _, name, words in self.asked if name == verb]

    @property
    def running(self) -> list[Box]:
        """Return the instances that cost money."""
        return [one for one in self.boxes.values() if one.state in ("pending", "running")]

    def end(self, name: str, code: str = "Client.UserInitiatedShutdown") -> None:
        """End an instance."""
        box = self.boxes[name]
        if box.state != "terminated":
            at = datetime.fromtimestamp(self.clock.now(), UTC).strftime("%Y-%m-%d %H:%M:%S")
            box.state, box.reason = "terminated", (code, f"{code}: ended")
            box.ended_at = self.clock.now()
            box.ended = f"User initiated ({at} GMT)" if code.startswith("Client") else code

    def fire(self) -> None:
        """Do what the schedules are due for."""
        now = datetime.fromtimestamp(self.clock.now(), UTC).strftime("at(%Y-%m-%dT%H:%M:%S)")
        for key, one in list(self.schedules.items()):
            if one["ScheduleExpression"] <= now:
                for name in json.loads(one["Target"]["Input"])["InstanceIds"]:
                    self.end(name)
                del self.schedules[key]

    # -- EC2 ---------------------------------------------------------------------------------

    def describe_regions(self, region: str, words: Words) -> Words:
        return {"Regions": [{"RegionName": name} for name in ("us-east-1", "eu-west-1")]}

    def describe_images(self, region: str, words: Words) -> Words:
        disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 75}}
        image = {"ImageId": words["ImageIds"][0], "RootDeviceName": "/dev/sda1",
                 "Architecture": "x86_64", "BlockDeviceMappings": [disk]}  # fmt: skip
        return {"Images": [image]}

    def describe_vpcs(self, region: str, words: Words) -> Words:
        return {"Vpcs": [{"VpcId": name} for name in self.vpcs]}

    def describe_subnets(self, region: str, words: Words) -> Words:
        """Return subnets that are called `subnet-ZONE-ROOM`."""
        found: list[Words] = []
        for name in words["SubnetIds"]:
            _, zone, room = name.split("-")
            found.append({"SubnetId": name, "VpcId": "vpc-own", "AvailabilityZone": region + zone,
                          "AvailableIpAddressCount": int(room)})  # fmt: skip
        return {"Subnets": found}

    def describe_security_groups(self, region: str, words: Words) -> Words:
        wanted = {value for one in words.get("Filters", ()) for value in one["Values"]}
        keys = [region, f"{region} gang"]
        if "cloudwhale:installation" not in wanted:  # one is asked for, by its name
            keys = (
                keys[1:] if any(one.startswith("cloudwhale-gang-") for one in wanted) else keys[:1]
            )
        return {"SecurityGroups": [self.groups[key] for key in keys if key in self.groups]}

    def create_security_group(self, region: str, words: Words) -> Words:
        is_gang = words["GroupName"].startswith("cloudwhale-gang-")
        key, made = (f"{region} gang", GANG) if is_gang else (region, GROUP)
        if key in self.groups:
            raise refused("InvalidGroup.Duplicate")
        own = words["TagSpecifications"][0]["Tags"]
        self.groups[key] = {
            "GroupId": made, "GroupName": words["GroupName"], "VpcId": words["VpcId"],
            "IpPermissions": [], "Tags": own,
        }  # fmt: skip
        return {"GroupId": made}

    def authorize_security_group_ingress(self, region: str, words: Words) -> Words:
        group = next(one for one in self.groups.values() if one["GroupId"] == words["GroupId"])
        if group["IpPermissions"]:
            raise refused("InvalidPermission.Duplicate")
        group["IpPermissions"] = words["IpPermissions"]
        return {"Return": True}

    def describe_instance_type_offerings(self, region: str, words: Words) -> Words:
        types = words["Filters"][0]["Values"]
        return {
            "InstanceTypeOfferings": [
                {"InstanceType": name, "Location": region + letter}
                for name in types
                for letter in self.zones
            ]
        }

    def describe_spot_price_history(self, region: str, words: Words) -> Words:
        only = words.get("AvailabilityZone")
        at = datetime(2020, 1, 1, tzinfo=UTC)
        return {
            "SpotPriceHistory": [
                {"InstanceType": name, "AvailabilityZone": region + letter, "Timestamp": at,
                 "SpotPrice": self.prices.get(region + letter, "0.1")}
                for name in words["InstanceTypes"]
                for letter in self.zones
                if only in (None, region + letter)
            ]
        }  # fmt: skip

    def create_launch_template(self, region: str, words: Words) -> Words:
        key = (region, words["LaunchTemplateName"])
        if key in self.templates:
            raise refused("InvalidLaunchTemplateName.AlreadyExistsException")
        own = words["TagSpecifications"][0]["Tags"]
        self.templates[key] = {
            "data": words["LaunchTemplateData"], "Tags": own,
            "at": datetime.fromtimestamp(self.clock.now(), UTC),
        }  # fmt: skip
        return {"LaunchTemplate": {"LaunchTemplateName": key[1]}}

    def create_fleet(self, region: str, words: Words) -> Words:
        return self._once(words, lambda: self._fleet(region, words))

    def run_instances(self, region: str, words: Words) -> Words:
        if words.get("DryRun"):
            raise refused("DryRunOperation", "would have succeeded", status=412)
        return self._once(words, lambda: self._run(region, words))

    def terminate_instances(self, region: str, words: Words) -> Words:
        for name in words["InstanceIds"]:
            if name not in self.boxes or name in self.unseen:
                raise refused("InvalidInstanceID.NotFound")
            assert self.boxes[name].region == region
        for name in words["InstanceIds"]:
            self.end(name)
        return {"TerminatingInstances": [{"InstanceId": name} for name in words["InstanceIds"]]}

    def create_tags(self, region: str, words: Words) -> Words:
        for name in words["Resources"]:
            self.boxes[name].tags |= {tag["Key"]: tag["Value"] for tag in words["Tags"]}
        return {}

    def describe_instances(self, region: str, words: Words) -> Words:
        found = [
            _described(box)
            for box in self._candidates(words)
            if box.region == region and self._is_listed(box) and _fits(box, words)
        ]
        first, most = int(words.get("NextToken", "0")), int(words.get("MaxResults", 1000))
        answer: Words = {"Reservations": [{"Instances": [one]} for one in found[first:][:most]]}
        if len(found) > first + most:
            answer["NextToken"] = str(first + most)
        return answer

    def describe_launch_templates(self, region: str, words: Words) -> Words:
        return {
            "LaunchTemplates": [
                {"LaunchTemplateId": f"lt-{name}", "LaunchTemplateName": name,
                 "Tags": one["Tags"], "CreateTime": one["at"]}
                for (where, name), one in self.templates.items()
                if where == region
            ]
        }  # fmt: skip

    def get_parameter(self, region: str, words: Words) -> Words:
        return {"Parameter": {"Name": words["Name"], "Value": AMI}}

    # -- how they are made -------------------------------------------------------------------

    def plant(self, region: str, own: Mapping[str, str]) -> Box:
        """Make an instance of somebody else."""
        return self._box(region, f"{region}a", "m7i.large", "on-demand", dict(own))

    def _is_listed(self, box: Box) -> bool:
        """Say whether EC2 shows an instance: ended ones for an hour."""
        ended_at = self.clock.now() if box.ended_at is None else box.ended_at
        return box.id not in self.unseen and self.clock.now() - ended_at < 3600

    def _candidates(self, words: Words) -> Collection[Box]:
        """Return few boxes where a filter names them, else all."""
        for one in words.get("Filters", ()):
            if one["Name"] == "instance-id":
                return [self.boxes[name] for name in one["Values"] if name in self.boxes]
            if one["Name"] == "tag:cloudwhale:launch":
                return [box for name in one["Values"] for box in self.by_launch.get(name, ())]
        return self.boxes.values()

    def _once(self, words: Words, make: Callable[[], Words]) -> Words:
        """Answer the same token with the same answer; refuse it with other words."""
        token, said = words["ClientToken"], json.dumps(words, sort_keys=True)
        if token in self.tokens:
            before, answer = self.tokens[token]
            if before != said:
                raise refused("IdempotentParameterMismatch")
            return answer
        answer = make()
        self.tokens[token] = (said, answer)
        return answer

    def _fleet(self, region: str, words: Words) -> Words:
        market = words["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
        config = words["LaunchTemplateConfigs"][0]
        self._template(region, config["LaunchTemplateSpecification"])
        told: list[Words] = []
        for override in config["Overrides"]:
            zone = _zone(region, override)
            code = self.fleet_errors.get(zone) or self.fleet_errors.get("*")
            where = {"LaunchTemplateAndOverrides": {"Overrides": override}, "Lifecycle": market}
            if code is None:
                box = self._box(region, zone, override["InstanceType"], market, _tags(words))
                box.words = words
                made = where | {"InstanceIds": [box.id], "InstanceType": box.type}
                return {"FleetId": "fleet-1", "Instances": [made], "Errors": told}
            told.append(where | {"ErrorCode": code, "ErrorMessage": f"{code} it is"})
        return {"FleetId": "fleet-1", "Instances": [], "Errors": told}

    def _run(self, region: str, words: Words) -> Words:
        self._template(region, words["LaunchTemplate"])
        zone = _zone(region, words.get("Placement") or words)
        if zone in self.fleet_errors:
            raise refused(self.fleet_errors[zone])
        market = words.get("InstanceMarketOptions", {}).get("MarketType", "on-demand")
        box = self._box(region, zone, words["InstanceType"], market, _tags(words))
        box.words = words
        return {"Instances": [_described(box)]}

    def _template(self, region: str, named: Words) -> None:
        if (region, named["LaunchTemplateName"]) not in self.templates:
            raise refused("InvalidLaunchTemplateName.NotFoundException")

    def _box(self, region: str, zone: str, kind: str, market: str, own: dict[str, str]) -> Box:
        name = f"i-{next(self._count):017x}"
        box = Box(name, region, zone, kind, market, own, float(int(self.clock.now())))
        if self.dies is not None:
            box.state, box.reason = "terminated", self.dies
        self.boxes[name] = box
        self.by_launch.setdefault(own.get("cloudwhale:launch", ""), []).append(box)
        return box


@dataclass(frozen=True)
class Client:
    """Stands where boto3's client does."""

    aws: SmallAws
    region: str
    service: str

    def __getattr__(self, verb: str) -> Callable[..., Words]:
        def ask(**words: Any) -> Words:
            return self.aws.answer(self.region, self.service, verb, words)

        return ask


def _zone(region: str, choice: Mapping[str, Any]) -> str:
    if "SubnetId" in choice:
        return region + str(choice["SubnetId"]).split("-")[1]
    return str(choice["AvailabilityZone"])


def _tags(words: Words) -> dict[str, str]:
    spec = next(one for one in words["TagSpecifications"] if one["ResourceType"] == "instance")
    return {tag["Key"]: tag["Value"] for tag in spec["Tags"]}


def _fits(box: Box, words: Words) -> bool:
    if "InstanceIds" in words and box.id not in words["InstanceIds"]:
        return False
    return all(_has(box, one["Name"], one["Values"]) for one in words.get("Filters", ()))


def _has(box: Box, name: str, values: list[str]) -> bool:
    match name.split(":", 1):
        case ["tag", key]:
            return box.tags.get(key) in values
        case ["tag-key"]:
            return any(key in box.tags for key in values)
        case ["instance-id"]:
            return box.id in values
        case ["instance-state-name"]:
            return box.state in values
    raise AssertionError(name)


def _described(box: Box) -> Words:
    found: Words = {
        "InstanceId": box.id,
        "InstanceType": box.type,
        "State": {"Name": box.state},
        "LaunchTime": datetime.fromtimestamp(box.launched_at, UTC),
        "Placement": {"AvailabilityZone": box.zone},
        "Tags": [{"Key": key, "Value": value} for key, value in box.tags.items()],
        "StateTransitionReason": box.ended,
    }
    if box.market == "spot":
        found["InstanceLifecycle"] = "spot"
    if box.reason is not None:
        found["StateReason"] = {"Code": box.reason[0], "Message": box.reason[1]}
    return found
