"""What is left over at AWS: ours is found with age and price and removed, others' is untouched."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from importlib import import_module
from itertools import count
from typing import Any

import pytest
from scripted_aws import ACCOUNT, ScriptedAws, an_account, hasty_clients, refusal

from cloudwhale.clock import SystemClock
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.provider import Leftover
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.leftovers import Leftovers
from cloudwhale_providers.aws.schedules import Schedules
from cloudwhale_providers.aws.settings import AwsSettings

REGION = "us-east-1"
DEAD, LIVE = "rental-dead", "rental-live"
AMI = "ami-12c6146b"
ROLE = "arn:aws:iam::123456789012:role/stops"
KINDS = ("address", "instance", "interface", "schedule", "security group", "snapshot", "template",
         "volume")  # fmt: skip


def moto_s(region: str) -> Any:
    """Return moto's own EC2 of a region."""
    return import_module("moto.backends").get_backend("ec2")[ACCOUNT][region]


@pytest.fixture(scope="module")
def cloud() -> Iterator[ScriptedAws]:
    with an_account() as (aws, _):
        aws.forget()
        for region in (REGION, "eu-west-1"):
            # Those of 1,300 images, through which moto looks for seconds whenever it is asked.
            moto_s(region).describe_snapshots()
            moto_s(region).snapshots.clear()
        yield aws


@pytest.fixture
def aws(cloud: ScriptedAws) -> ScriptedAws:
    cloud.unscript()  # the account stays: each test has installations of its own in it
    return cloud


class Garden:
    """Plants things in the account; each is tagged as the real code tags its own."""

    def __init__(self, calls: Clients, number: int) -> None:
        self._calls = calls
        self.ours, self.theirs = f"whale-{number}", f"another-{number}"

    def sweep(self, regions: tuple[str, ...] = (REGION,)) -> Leftovers:
        return Leftovers(an_installation(self.ours, self._calls), lambda: regions, usd_h)

    def left(self, live: Collection[str] = ()) -> list[Leftover]:
        """Return what our sweep finds of our two installations."""
        found = self.sweep().leftovers(live)
        return [one for one in found if one.installation in (self.ours, self.theirs)]

    def ec2(self, verb: str, **words: Any) -> Mapping[str, Any]:
        return self._calls.call(REGION, "ec2", verb, **words)

    def tagged(self, kind: str, whose: str, node: str) -> list[dict[str, Any]]:
        return tags.at_creation({tags.INSTALLATION: whose or self.ours, tags.NODE: node}, [kind])

    def instance(self, whose: str = "", node: str = DEAD, **fields: Any) -> str:
        answer = self.ec2(
            "run_instances", ImageId=AMI, InstanceType="g5.xlarge", MinCount=1, MaxCount=1,
            TagSpecifications=self.tagged("instance", whose, node), **fields,
        )  # fmt: skip
        return str(answer["Instances"][0]["InstanceId"])

    def volume(self, whose: str = "", node: str = DEAD) -> str:
        answer = self.ec2(
            "create_volume", AvailabilityZone=f"{REGION}a", Size=365, VolumeType="gp3",
            TagSpecifications=self.tagged("volume", whose, node),
        )  # fmt: skip
        return str(answer["VolumeId"])

    def address(self, whose: str = "", node: str = DEAD) -> str:
        answer = self.ec2(
            "allocate_address", Domain="vpc",
            TagSpecifications=self.tagged("elastic-ip", whose, node),
        )  # fmt: skip
        return str(answer["AllocationId"])

    def interface(self, whose: str = "", node: str = DEAD) -> str:
        subnet = self.ec2("describe_subnets")["Subnets"][0]["SubnetId"]
        answer = self.ec2(
            "create_network_interface", SubnetId=subnet,
            TagSpecifications=self.tagged("network-interface", whose, node),
        )  # fmt: skip
        return str(answer["NetworkInterface"]["NetworkInterfaceId"])

    def snapshot(self, whose: str = "", node: str = DEAD) -> str:
        volume = self.ec2("create_volume", AvailabilityZone=f"{REGION}a", Size=8)["VolumeId"]
        answer = self.ec2(
            "create_snapshot", VolumeId=volume,
            TagSpecifications=self.tagged("snapshot", whose, node),
        )  # fmt: skip
        return str(answer["SnapshotId"])

    def template(self, whose: str = "", name: str = "old") -> str:
        whose = whose or self.ours
        answer = self.ec2(
            "create_launch_template", LaunchTemplateName=f"{whose}-{name}",
            LaunchTemplateData={"ImageId": AMI},
            TagSpecifications=tags.at_creation({tags.INSTALLATION: whose}, ["launch-template"]),
        )  # fmt: skip
        made = str(answer["LaunchTemplate"]["LaunchTemplateId"])
        if name == "old":
            moto_s(REGION).launch_templates[made].create_time -= timedelta(days=30)
        return made

    def group(self, whose: str = "", name: str = "old") -> str:
        whose = whose or self.ours
        vpc = self.ec2("describe_vpcs")["Vpcs"][0]["VpcId"]
        answer = self.ec2(
            "create_security_group", GroupName=f"{whose}-{name}", Description="of a test",
            VpcId=vpc,
            TagSpecifications=tags.at_creation({tags.INSTALLATION: whose}, ["security-group"]),
        )  # fmt: skip
        return str(answer["GroupId"])

    def schedule(self, whose: str = "", node: str = DEAD) -> str:
        schedules = Schedules(an_installation(whose or self.ours, self._calls))
        schedules.arm(REGION, node, "i-0123456789abcdef0", 4_000_000_000.0)
        return f"{schedules.group}/{node}"

    def everything(self, whose: str) -> dict[str, str]:
        """Plant one of each kind; return their ids."""
        planted = {
            "instance": self.instance(whose),
            "volume": self.volume(whose),
            "address": self.address(whose),
            "interface": self.interface(whose),
            "snapshot": self.snapshot(whose),
            "template": self.template(whose),
            "security group": self.group(whose),
            "schedule": self.schedule(whose, node=f"{DEAD}-of-nothing"),
        }
        self.template(whose, "newest")
        return planted


def an_installation(whose: str, calls: Clients) -> Account:
    return Account(calls, whose, AwsSettings(scheduler_role=ROLE), SystemClock())


def usd_h(zone: str, type_name: str, market: str, now: float) -> MicroUsd | None:
    return MicroUsd(1_006_000) if (type_name, market) == ("g5.xlarge", "on-demand") else None


NUMBERS = count()


@pytest.fixture(scope="module")
def calls(cloud: ScriptedAws) -> Clients:
    """One for all tests: each reads the models of its services anew."""
    return hasty_clients()


@pytest.fixture
def garden(aws: ScriptedAws, calls: Clients) -> Garden:
    return Garden(calls, next(NUMBERS))


def of(found: list[Leftover], what: str) -> Leftover:
    return next(one for one in found if one.what == what)


def test_one_of_each_kind_is_found_by_its_tag(garden: Garden) -> None:
    planted = garden.everything(garden.ours)
    found = {one.what: one.id for one in garden.left()}
    assert found == planted
    assert tuple(sorted(found)) == KINDS


def test_what_is_untagged_is_nobodys_leftover(garden: Garden) -> None:
    garden.ec2("run_instances", ImageId=AMI, MinCount=1, MaxCount=1)
    garden.ec2("create_volume", AvailabilityZone=f"{REGION}a", Size=8)
    garden.ec2("allocate_address", Domain="vpc")
    assert garden.left() == []


def test_what_belongs_to_a_live_machine_is_no_leftover(garden: Garden) -> None:
    for plant in (garden.instance, garden.volume, garden.address, garden.interface):
        plant(garden.ours, LIVE)
    garden.schedule(node=LIVE)
    assert garden.left([LIVE]) == []
    assert {one.node for one in garden.left()} == {LIVE}


def test_a_leftover_says_where_since_when_and_what_it_costs(garden: Garden) -> None:
    garden.instance()
    garden.volume()
    garden.address()
    found = garden.left()
    machine = of(found, "instance")
    assert (machine.region, machine.node, machine.installation) == (REGION, DEAD, garden.ours)
    assert machine.since is not None and machine.since <= SystemClock().now() + 1
    assert machine.usd_h == 1_006_000
    assert of(found, "volume").usd_h == 40_000  # 365 GiB at 0.08 USD a month of 730 hours
    assert of(found, "address").usd_h == 5_000


def test_a_machine_of_an_unknown_price_costs_unknown_and_not_nothing(garden: Garden) -> None:
    garden.instance(InstanceMarketOptions={"MarketType": "spot"})
    assert of(garden.left(), "instance").usd_h is None


def test_a_stopped_machine_costs_nothing_by_itself(garden: Garden) -> None:
    name = garden.instance()
    garden.ec2("stop_instances", InstanceIds=[name])
    assert of(garden.left(), "instance").usd_h == 0


def test_what_another_installation_has_is_shown_as_its_own(garden: Garden) -> None:
    planted = garden.everything(garden.theirs)
    found = garden.left()
    assert {one.id for one in found} >= set(planted.values())
    assert {(one.is_ours, one.installation) for one in found} == {(False, garden.theirs)}


def test_what_another_installation_has_is_never_removed(garden: Garden) -> None:
    garden.everything(garden.theirs)
    before = {one.id for one in garden.left()}
    for one in garden.left():
        with pytest.raises(
            Denied, match=f"is of the installation {garden.theirs}, and is not touched"
        ):
            garden.sweep().remove(one)
    assert {one.id for one in garden.left()} == before


def test_whoever_calls_anothers_thing_ours_is_refused_all_the_same(garden: Garden) -> None:
    garden.everything(garden.theirs)
    before = {one.id for one in garden.left()}
    for one in garden.left():
        with pytest.raises(Denied, match="is not touched"):
            garden.sweep().remove(one.but(is_ours=True, installation=garden.ours))
    assert {one.id for one in garden.left()} == before


def test_a_thing_that_nobody_has_tagged_is_not_removed(garden: Garden) -> None:
    name = str(garden.ec2("create_volume", AvailabilityZone=f"{REGION}a", Size=8)["VolumeId"])
    with pytest.raises(Denied, match="of nobody whom we know"):
        garden.sweep().remove(Leftover(id=name, what="volume", region=REGION))
    assert garden.ec2("describe_volumes", VolumeIds=[name])["Volumes"]


def test_a_sweep_removes_everything_and_touches_nothing_else(garden: Garden) -> None:
    garden.everything(garden.ours)
    garden.everything(garden.theirs)
    theirs = {one.id for one in garden.left() if not one.is_ours}
    for one in garden.left():
        if one.is_ours:
            garden.sweep().remove(one)
    left = garden.left()
    assert {one.id for one in left} == theirs
    assert not any(one.is_ours for one in left)


def test_removing_twice_is_removing_once(garden: Garden) -> None:
    garden.everything(garden.ours)
    for one in garden.left():
        garden.sweep().remove(one)
        garden.sweep().remove(one)
    assert garden.left() == []


def test_what_uses_something_is_listed_before_what_is_used(garden: Garden) -> None:
    garden.everything(garden.ours)
    ranks = [one.what for one in garden.left()]
    assert ranks.index("instance") < ranks.index("volume") < ranks.index("security group")
    assert ranks[-1] == "schedule"


def test_the_stop_of_a_machine_that_is_left_over_stays_until_it_is_gone(garden: Garden) -> None:
    garden.instance(node=DEAD)
    garden.schedule(node=DEAD)
    first = garden.left()
    assert [one.what for one in first] == ["instance"]
    garden.sweep().remove(first[0])
    assert [one.what for one in garden.left()] == ["schedule"]


def test_the_newest_template_and_our_group_are_used_for_the_next_machine(
    garden: Garden, calls: Clients
) -> None:
    account = an_installation(garden.ours, calls)
    garden.template()
    vpc = garden.ec2("describe_vpcs")["Vpcs"][0]["VpcId"]
    garden.ec2(
        "create_security_group", GroupName=account.ours, Description="of a test", VpcId=vpc,
        TagSpecifications=tags.at_creation({tags.INSTALLATION: garden.ours}, ["security-group"]),
    )  # fmt: skip
    assert garden.left() == []


def test_a_volume_that_is_attached_goes_with_its_machine(garden: Garden) -> None:
    machine = garden.instance()
    volume = garden.volume()
    zone = garden.ec2("describe_instances", InstanceIds=[machine])["Reservations"][0]["Instances"][
        0
    ]["Placement"]["AvailabilityZone"]
    assert zone == f"{REGION}a"
    garden.ec2("attach_volume", InstanceId=machine, VolumeId=volume, Device="/dev/sdh")
    assert [one.what for one in garden.left()] == ["instance"]


def test_what_is_still_in_use_is_tried_again_later(garden: Garden, aws: ScriptedAws) -> None:
    garden.group()
    one = of(garden.left(), "security group")
    aws.refuse("DeleteSecurityGroup", "DependencyViolation", "an interface has it")
    with pytest.raises(Unreachable, match="is still in use"):
        garden.sweep().remove(one)


def test_a_region_that_does_not_answer_is_not_a_region_without_leftovers(
    garden: Garden, aws: ScriptedAws
) -> None:
    garden.instance()
    aws.script(
        lambda verb: (
            refusal(verb, "InternalError", status=500)
            if (verb.region, verb.name) == ("eu-west-1", "DescribeVolumes")
            else None
        )
    )
    with pytest.raises(Unreachable):
        garden.sweep((REGION, "eu-west-1")).leftovers([])


def test_fleets_that_keep_machines_up_go_before_their_machines(garden: Garden) -> None:
    template = garden.template(name="newest")
    words: dict[str, Any] = {
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"},
                "Overrides": [{"InstanceType": "g5.xlarge"}],
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "OnDemandTargetCapacity": 1,
            "SpotTargetCapacity": 0,
            "DefaultTargetCapacityType": "on-demand",
        },
        "TagSpecifications": [
            *garden.tagged("fleet", garden.ours, DEAD),
            *garden.tagged("instance", garden.ours, DEAD),
        ],
    }
    for kind in ("maintain", "instant"):
        garden.ec2("create_fleet", Type=kind, **words)
    found = garden.left()
    assert [one.what for one in found] == ["fleet", "instance"]
    garden.sweep().remove(found[0])
    garden.sweep().remove(found[0])
    assert not [one for one in garden.left() if one.what == "fleet"]
