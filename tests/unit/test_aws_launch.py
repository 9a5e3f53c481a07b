"""How machines are launched at EC2: with which words, once, and never without an end."""

import json
from base64 import b64decode
from typing import Any

import pytest
from renting_aws import NOW, OURS, ROLE, a_clock, a_provider, a_request, an_offer
from small_aws import AMI, GROUP, SmallAws
from small_schedules import refused

from cloudwhale.model.rental import Lease
from cloudwhale.spi.errors import Denied, NoCapacity, PriceMoved, TryAnother, Unreachable
from cloudwhale_providers.aws.launching import token
from cloudwhale_providers.aws.offers import LiveOffers
from cloudwhale_providers.sandbox.guests import block


@pytest.fixture
def aws() -> SmallAws:
    return SmallAws(a_clock())


def _fleet(aws: SmallAws) -> dict[str, Any]:
    return aws.words_of("create_fleet")[-1]


def _zones(aws: SmallAws) -> list[str]:
    overrides = _fleet(aws)["LaunchTemplateConfigs"][0]["Overrides"]
    return [one["AvailabilityZone"] for one in overrides]


def _template(aws: SmallAws) -> dict[str, Any]:
    (one,) = aws.templates.values()
    found: dict[str, Any] = one["data"]
    return found


def test_spot_is_asked_for_in_its_zone_and_in_those_that_cost_no_more(aws: SmallAws) -> None:
    aws.prices = {"us-east-1a": "0.35", "us-east-1b": "0.5", "us-east-1c": "0.4"}
    a_provider(aws).launch(a_request())
    assert _zones(aws) == ["us-east-1a", "us-east-1c"]
    assert _fleet(aws)["SpotOptions"]["AllocationStrategy"] == "price-capacity-optimized"
    assert "MaxPrice" not in json.dumps(_fleet(aws))


def test_on_demand_is_asked_for_in_every_zone_that_has_it(aws: SmallAws) -> None:
    aws.prices = {"us-east-1c": "9"}
    a_provider(aws).launch(a_request(offer=an_offer("us-east-1b", "on-demand")))
    assert _zones(aws) == ["us-east-1b", "us-east-1a", "us-east-1c"]
    assert _fleet(aws)["OnDemandOptions"]["AllocationStrategy"] == "lowest-price"
    target = _fleet(aws)["TargetCapacitySpecification"]
    assert target == {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}


def test_a_zone_that_lost_the_type_is_not_asked(aws: SmallAws) -> None:
    aws.zones = "bc"
    a_provider(aws).launch(a_request())
    assert _zones(aws) == ["us-east-1b", "us-east-1c"]


def test_a_type_that_no_zone_has_is_not_asked_for(aws: SmallAws) -> None:
    aws.zones = ""
    with pytest.raises(NoCapacity, match="no zone"):
        a_provider(aws).launch(a_request())
    assert not aws.words_of("create_fleet")


def test_a_price_that_has_moved_a_little_is_borne(aws: SmallAws) -> None:
    aws.prices = {f"us-east-1{letter}": "0.43" for letter in "abc"}
    a_provider(aws).launch(a_request())
    assert _zones(aws) == ["us-east-1a"]


def test_a_price_that_has_doubled_everywhere_is_told(aws: SmallAws) -> None:
    aws.prices = {f"us-east-1{letter}": "0.8" for letter in "abc"}
    with pytest.raises(PriceMoved, match="0.80 USD/h now"):
        a_provider(aws).launch(a_request())
    assert not aws.boxes


def test_a_launch_that_found_a_price_moved_has_it_asked_for_anew(
    aws: SmallAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.prices = {f"us-east-1{letter}": "0.8" for letter in "abc"}
    forgotten: list[str] = []
    monkeypatch.setattr(LiveOffers, "forget_prices", lambda self, region: forgotten.append(region))
    with pytest.raises(PriceMoved):
        a_provider(aws).launch(a_request())
    assert forgotten == ["us-east-1"]


def test_own_subnets_stand_for_their_zones_the_emptiest_of_each(aws: SmallAws) -> None:
    subnets = {"us-east-1": ["subnet-a-5", "subnet-b-9", "subnet-a-7"]}
    a_provider(aws, subnets=subnets).launch(a_request())
    overrides = _fleet(aws)["LaunchTemplateConfigs"][0]["Overrides"]
    assert [one["SubnetId"] for one in overrides] == ["subnet-a-7", "subnet-b-9"]


def test_a_pinned_machine_is_asked_for_in_its_zone_alone(aws: SmallAws) -> None:
    machine = a_provider(aws, pin_zone=True).launch(a_request(offer=an_offer("us-east-1b")))
    (words,) = aws.words_of("run_instances")
    assert words["Placement"] == {"AvailabilityZone": "us-east-1b"}
    assert words["InstanceMarketOptions"]["SpotOptions"]["SpotInstanceType"] == "one-time"
    assert (words["MinCount"], words["MaxCount"]) == (1, 1)
    assert machine.zone == "us-east-1b" and not aws.words_of("create_fleet")


def test_a_machine_carries_what_it_is_to_know_as_tags_of_all_its_parts(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request())
    specs = _fleet(aws)["TagSpecifications"]
    assert [one["ResourceType"] for one in specs] == ["instance", "volume", "network-interface"]
    assert len({json.dumps(one["Tags"]) for one in specs}) == 1
    tags = {one["Key"]: one["Value"] for one in specs[0]["Tags"]}
    assert tags["cloudwhale:node"] == "rental-1"
    assert tags["cloudwhale:installation"] == OURS
    assert tags["cloudwhale:project"] == "nlp"
    assert tags["cloudwhale:lease"] == "1:3480"
    assert tags["cloudwhale:stop-at"] == str(int(NOW + 3600))
    assert tags["cloudwhale:gpus"] == str(len(an_offer().facts.devices))
    assert all(set(key) <= set("cloudwhale:-instaprjkNmgu") for key in tags)


def test_a_template_lets_nobody_in_and_ends_with_its_shutdown(aws: SmallAws) -> None:
    a_provider(aws, instance_profile="machines").launch(a_request())
    found = _template(aws)
    assert found["MetadataOptions"] == {
        "HttpTokens": "required", "HttpEndpoint": "enabled", "HttpPutResponseHopLimit": 1,
        "InstanceMetadataTags": "enabled",
    }  # fmt: skip
    assert found["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert found["ImageId"] == AMI and found["SecurityGroupIds"] == [GROUP]
    assert found["IamInstanceProfile"] == {"Name": "machines"}
    assert aws.groups["us-east-1"]["IpPermissions"] == []
    assert aws.groups["us-east-1"]["GroupName"] == f"cloudwhale-{OURS}"


def test_all_machines_of_one_agent_version_share_a_template(aws: SmallAws) -> None:
    provider = a_provider(aws)
    for name in ("rental-1", "rental-2"):
        provider.launch(a_request(name))
    a_provider(aws).launch(a_request("rental-3"))
    assert len(aws.templates) == 1
    provider.launch(a_request("rental-4", bundle=f"bundles/{'b2' * 32}.tar.gz"))
    assert len(aws.templates) == 2


def test_machines_of_gangs_have_a_group_more_and_so_a_template_of_their_own(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.launch(a_request("rental-1"))
    provider.launch(a_request("rental-2", gang=True))
    alone, among = sorted(one["data"]["SecurityGroupIds"] for one in aws.templates.values())
    assert among[0] == alone[0] and len(among) == 2 and len(alone) == 1


def test_an_image_whose_python_the_agents_archive_is_not_for_is_refused(aws: SmallAws) -> None:
    with pytest.raises(Denied, match="has Python 3.12, and the agent's archive is for 3.11") as no:
        a_provider(aws).launch(a_request(pythons=("3.11",)))
    assert "debian-12" in no.value.remedy and not aws.templates
    a_provider(aws).launch(a_request(pythons=("3.11", "3.12")))
    a_provider(aws, image="debian-12").launch(a_request("rental-2", pythons=("3.11",)))


def test_what_machines_are_told_at_boot_names_the_mailbox_and_the_bundle(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request())
    said = block(b64decode(_template(aws)["UserData"]).decode())
    assert said["mailbox"] == "s3://bucket/lab" and said["sha256"] == "a1" * 32


def test_a_root_disk_is_encrypted_goes_with_its_machine_and_holds_the_jobs(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request(disk_gib=300.0))
    (disk,) = _fleet(aws)["LaunchTemplateConfigs"][0]["Overrides"][0]["BlockDeviceMappings"]
    assert disk["DeviceName"] == "/dev/sda1"
    assert disk["Ebs"] == {
        "VolumeType": "gp3", "VolumeSize": 380, "Encrypted": True, "DeleteOnTermination": True,
    }  # fmt: skip


def test_a_group_that_somebody_has_opened_is_not_used(aws: SmallAws) -> None:
    a_provider(aws).launch(a_request())
    aws.groups["us-east-1"]["IpPermissions"] = [{"IpProtocol": "-1"}]
    with pytest.raises(Denied, match="has opened"):
        a_provider(aws).launch(a_request("rental-2"))


def test_without_a_default_network_the_command_that_makes_one_is_told(aws: SmallAws) -> None:
    aws.vpcs = []
    with pytest.raises(Denied, match="create-default-vpc --region us-east-1"):
        a_provider(aws).launch(a_request())


def test_a_template_that_somebody_removed_is_made_anew(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.launch(a_request())
    aws.templates.clear()
    provider.launch(a_request("rental-2"))
    assert len(aws.running) == 2


# -- once ----------------------------------------------------------------------------------------


def test_a_token_is_the_same_for_the_same_launch_and_fits() -> None:
    assert token(OURS, "rental-1") == token(OURS, "rental-1") != token(OURS, "rental-2")
    assert len(token(OURS, "x" * 200)) <= 64 and token("wörter", "wörter").isascii()


def test_two_installations_of_an_account_that_count_alike_get_a_machine_each(
    aws: SmallAws,
) -> None:
    one = a_provider(aws, installation="one").launch(a_request("rent-7-1"))
    other = a_provider(aws, installation="other").launch(a_request("rent-7-1"))
    assert one.id != other.id
    assert len(aws.running) == 2


def test_a_launch_that_is_repeated_finds_its_machine(aws: SmallAws) -> None:
    provider = a_provider(aws)
    first = provider.launch(a_request())
    assert provider.launch(a_request()).id == first.id
    assert a_provider(aws).launch(a_request()).id == first.id  # another process
    assert len(aws.words_of("create_fleet")) == 1


def test_a_lost_answer_is_replayed_while_the_machine_is_not_listed(aws: SmallAws) -> None:
    provider, lost = a_provider(aws), True

    def fault(service: str, verb: str, do: Any) -> Any:
        nonlocal lost
        answer = do()
        if verb == "create_fleet" and lost:
            lost = False
            aws.unseen |= set(aws.boxes)
            raise refused("InternalError", status=500)
        return answer

    aws.fault = fault
    with pytest.raises(Unreachable):
        provider.launch(a_request())
    aws.clock.advance_to(NOW + 7)
    machine = provider.launch(a_request())
    assert list(aws.boxes) == [machine.id]
    first, second = aws.words_of("create_fleet")
    assert first == second


def test_a_launch_that_is_repeated_later_leaves_its_machine_so_much_less_of_its_lease(
    aws: SmallAws,
) -> None:
    provider = a_provider(aws)
    aws.refusals["create_fleet"] = refused("ServiceUnavailable", status=503)
    with pytest.raises(Unreachable):
        provider.launch(a_request())
    del aws.refusals["create_fleet"]
    aws.clock.advance_to(NOW + 480)
    provider.launch(a_request())
    (box,) = aws.running
    assert box.tags["cloudwhale:lease"] == "1:3000"


def test_a_launch_after_a_refusal_is_another_one_with_another_token(aws: SmallAws) -> None:
    provider = a_provider(aws)
    aws.fleet_errors = {"*": "InsufficientInstanceCapacity"}
    with pytest.raises(NoCapacity):
        provider.launch(a_request("rental-1"))
    aws.fleet_errors = {}
    with pytest.raises(NoCapacity):
        provider.launch(a_request("rental-1"))  # EC2 replays the answer of a token
    provider.launch(a_request("rental-2"))
    assert len(aws.running) == 1


def test_a_token_with_other_words_is_looked_for_and_then_given_up(aws: SmallAws) -> None:
    provider = a_provider(aws)
    aws.fleet_errors = {"*": "InsufficientInstanceCapacity"}
    with pytest.raises(NoCapacity):
        provider.launch(a_request())
    later = a_request(lease=Lease(number=2, watched_until=0, away_until=NOW + 9, stop_at=NOW + 9))
    with pytest.raises(Unreachable, match="IdempotentParameterMismatch"):
        provider.launch(later)
    aws.clock.advance_to(NOW + 301)
    with pytest.raises(TryAnother, match="has made no machine"):
        provider.launch(later)
    assert not aws.boxes


def test_a_token_with_other_words_gives_the_machine_that_it_had_made(aws: SmallAws) -> None:
    provider = a_provider(aws)
    machine = provider.launch(a_request())
    aws.unseen = {machine.id}
    later = a_request(lease=Lease(number=2, watched_until=0, away_until=NOW + 9, stop_at=NOW + 9))

    def fault(service: str, verb: str, do: Any) -> Any:
        if verb == "create_fleet":
            aws.unseen.clear()  # the lists have caught up meanwhile
        return do()

    aws.fault = fault
    assert provider.launch(later).id == machine.id
    assert len(aws.boxes) == 1


# -- never without an end ------------------------------------------------------------------------


def test_the_call_after_a_launch_sets_the_end(aws: SmallAws) -> None:
    machine = a_provider(aws).launch(a_request(stop_at=NOW + 3600.7))
    verbs = [verb for _, verb, _ in aws.asked]
    assert verbs[verbs.index("create_fleet") + 1] == "create_schedule_group"
    assert verbs[verbs.index("create_fleet") + 2] == "create_schedule"
    (schedule,) = aws.words_of("create_schedule")
    assert schedule["ScheduleExpression"] == "at(2027-01-15T09:00:00)"
    assert schedule["ActionAfterCompletion"] == "DELETE"
    assert schedule["GroupName"] == f"cloudwhale-{OURS}"
    assert schedule["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
    assert schedule["Target"]["RoleArn"] == ROLE
    assert json.loads(schedule["Target"]["Input"]) == {"InstanceIds": [machine.id]}
    assert machine.stop_at == NOW + 3600


def test_a_machine_whose_end_cannot_be_set_is_ended_and_it_says_so(aws: SmallAws) -> None:
    aws.refusals["create_schedule"] = refused("AccessDeniedException", "not authorized")
    with pytest.raises(Denied, match="was ended again.*scheduler:CreateSchedule"):
        a_provider(aws).launch(a_request())
    assert not aws.running


def test_where_schedules_are_down_another_launch_is_made_later(aws: SmallAws) -> None:
    aws.refusals["create_schedule"] = refused("InternalServerException", status=500)
    with pytest.raises(TryAnother, match="was ended again"):
        a_provider(aws).launch(a_request())
    assert not aws.running


def test_a_machine_that_can_neither_be_given_an_end_nor_ended_is_found_again(
    aws: SmallAws,
) -> None:
    provider = a_provider(aws)
    aws.refusals["create_schedule"] = refused("AccessDeniedException")
    aws.refusals["terminate_instances"] = refused("RequestLimitExceeded", status=503)
    with pytest.raises(Unreachable, match="nor could it be"):
        provider.launch(a_request())
    aws.refusals.clear()
    machine = provider.launch(a_request())
    assert [one.id for one in aws.running] == [machine.id]
    assert len(aws.schedules) == 1


def test_a_launch_after_its_own_end_is_none(aws: SmallAws) -> None:
    with pytest.raises(TryAnother):
        a_provider(aws).launch(a_request(stop_at=NOW - 1))
    assert not aws.boxes


def test_a_machine_found_after_its_own_end_is_ended(aws: SmallAws) -> None:
    provider = a_provider(aws)
    provider.launch(a_request())
    with pytest.raises(TryAnother):
        provider.launch(a_request(stop_at=NOW - 1))
    assert not aws.running


def test_without_a_role_nobody_but_the_machine_ends_it_and_the_doctor_says_so(
    aws: SmallAws,
) -> None:
    provider = a_provider(aws, scheduler_role="")
    provider.launch(a_request())
    assert provider.stops == {"self"} and not aws.schedules
    assert a_provider(aws).stops == {"cloud", "self"}


def test_a_machine_is_launched_for_an_installation_and_until_a_time_only(aws: SmallAws) -> None:
    with pytest.raises(Denied):
        a_provider(aws, installation="").launch(a_request())
    with pytest.raises(Denied):
        a_provider(aws).launch(a_request(stop_at=None))
    assert not aws.boxes


def test_a_machine_is_told_where_the_bucket_is_rather_than_where_it_stands(
    aws: SmallAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    a_provider(aws).launch(a_request())
    assert block(b64decode(_template(aws)["UserData"]).decode())["region"] == "eu-west-1"
