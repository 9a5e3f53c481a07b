"""Launches at the sandbox's EC2: what moto lacks, asked through boto3."""

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from boxed import (
    IMAGE,
    REGION,
    SCARCE,
    TYPE,
    Box,
    a_box,
    coded,
    codes,
    fleet_words,
    made,
    tags_at_creation,
    tags_of,
)

A, B, D = (f"{REGION}{letter}" for letter in "abd")
_ERRORS: Any = import_module("botocore.exceptions")


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with a_box(SCARCE) as box:
        box.template(
            "whole",
            UserData=coded("hello"),
            IamInstanceProfile={"Name": "cloudwhale-machine"},
            InstanceInitiatedShutdownBehavior="terminate",
            MetadataOptions={"HttpTokens": "required", "InstanceMetadataTags": "enabled"},
            BlockDeviceMappings=[
                {
                    "DeviceName": "/dev/sda1",
                    "Ebs": {"VolumeSize": 80, "VolumeType": "gp3", "Encrypted": True},
                }
            ],
            TagSpecifications=tags_at_creation(of="template", kept="yes"),
        )
        yield box


# -- tokens ----------------------------------------------------------------------------------


def test_the_same_token_gives_the_same_fleet_again(box: Box) -> None:
    first = box.fleet("whole", (TYPE, A), ClientToken="fleet-1")
    again = box.fleet("whole", (TYPE, A), ClientToken="fleet-1")
    assert again == first and len(made(first)) == 1
    assert sum(one.id == made(first)[0] for one in box.endpoint.instances()) == 1


def test_a_token_with_other_words_is_refused(box: Box) -> None:
    box.fleet("whole", (TYPE, A), ClientToken="fleet-2")
    other = fleet_words("whole", [{"InstanceType": TYPE, "AvailabilityZone": B}])
    assert box.refusal("ec2", "create_fleet", ClientToken="fleet-2", **other) == (
        "IdempotentParameterMismatch"
    )


def test_a_token_whose_answer_was_nothing_but_errors_gives_them_again(box: Box) -> None:
    first = box.fleet("whole", ("g5.2xlarge", A), ClientToken="fleet-3")
    assert codes(first) == [(A, "InsufficientInstanceCapacity")] and not made(first)
    assert box.fleet("whole", ("g5.2xlarge", A), ClientToken="fleet-3") == first


def test_a_token_holds_for_its_region_alone(box: Box) -> None:
    box.template("west", "us-west-2")
    words = fleet_words("west", [{"InstanceType": TYPE}], ClientToken="fleet-1")
    assert len(made(box.ec2("create_fleet", "us-west-2", **words))) == 1


def test_the_same_token_runs_an_instance_once(box: Box) -> None:
    assert box.run(ClientToken="run-1") == box.run(ClientToken="run-1")
    words: dict[str, Any] = {
        "ImageId": IMAGE,
        "InstanceType": "g5.8xlarge",
        "MinCount": 1,
        "MaxCount": 1,
    }
    assert box.refusal("ec2", "run_instances", ClientToken="run-1", **words) == (
        "IdempotentParameterMismatch"
    )


def test_a_refused_launch_has_used_no_token(box: Box) -> None:
    words: dict[str, Any] = {
        "ImageId": "ami-00000000000000000",
        "InstanceType": TYPE,
        "MinCount": 1,
        "MaxCount": 1,
    }
    refused = box.refusal("ec2", "run_instances", ClientToken="run-2", **words)
    assert refused == "InvalidAMIID.NotFound"
    assert box.run(ClientToken="run-2").startswith("i-")


def test_a_token_makes_one_template(box: Box) -> None:
    words: dict[str, Any] = {
        "LaunchTemplateName": "twice",
        "LaunchTemplateData": {"ImageId": IMAGE},
    }
    first = box.ec2("create_launch_template", ClientToken="template-1", **words)
    again = box.ec2("create_launch_template", ClientToken="template-1", **words)
    assert again == first
    refused = box.refusal("ec2", "create_launch_template", **words)
    assert refused == "InvalidLaunchTemplateName.AlreadyExistsException"


def test_a_token_that_is_too_long_is_refused(box: Box) -> None:
    words = fleet_words("whole", [{"InstanceType": TYPE}], ClientToken="x" * 65)
    assert box.refusal("ec2", "create_fleet", **words) == "InvalidParameterValue"


def test_a_launch_that_is_repeated_until_it_is_answered_makes_one_machine(box: Box) -> None:
    box.endpoint.fault_share(0.4, seed=11)
    made_by: dict[str, str] = {}
    asked = 0
    try:
        for number in range(40):
            token = f"rough-{number}"
            while token not in made_by:
                asked += 1
                with suppress(_ERRORS.ClientError, _ERRORS.HTTPClientError):
                    made_by[token] = box.run(ClientToken=token)
    finally:
        box.endpoint.no_faults()
    listed = box.ec2(
        "describe_instances", Filters=[{"Name": "client-token", "Values": ["rough-*"]}]
    )
    assert asked > 50 and len(listed["Reservations"]) == len(set(made_by.values())) == 40


# -- what is made ----------------------------------------------------------------------------


def test_a_fleet_makes_what_template_and_request_say(box: Box) -> None:
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 120, "DeleteOnTermination": True}}
    words = fleet_words(
        "whole",
        [{"InstanceType": TYPE, "AvailabilityZone": B, "BlockDeviceMappings": [disk]}],
        TagSpecifications=tags_at_creation(of="request", name="one"),
    )
    machine = made(box.ec2("create_fleet", **words))[0]
    told = box.described(machine)
    wanted = {"of": "request", "name": "one", "kept": "yes"}
    assert tags_of(told).items() >= wanted.items()
    assert told["Placement"]["AvailabilityZone"] == B
    assert told["InstanceLifecycle"] == "spot" and told["SpotInstanceRequestId"]
    assert told["MetadataOptions"]["HttpTokens"] == "required"
    assert told["MetadataOptions"]["InstanceMetadataTags"] == "enabled"
    assert told["IamInstanceProfile"]["Arn"].endswith("instance-profile/cloudwhale-machine")
    behaviour = box.ec2(
        "describe_instance_attribute",
        InstanceId=machine,
        Attribute="instanceInitiatedShutdownBehavior",
    )
    assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
    seen = box.endpoint.instance(machine)
    assert seen is not None and seen.user_data == "hello" and seen.metadata_tags
    assert seen.disk_gib == 120 and seen.price_usd_h and seen.vcpus == 4


def test_volume_and_interface_are_tagged_and_sized(box: Box) -> None:
    machine = made(box.fleet("whole", (TYPE, A), TagSpecifications=tags_at_creation(mine="5")))[0]
    mine = [{"Name": "tag:mine", "Values": ["5"]}]
    volumes = box.ec2("describe_volumes", Filters=mine)["Volumes"]
    assert [(one["Size"], one["VolumeType"], one["Encrypted"]) for one in volumes] == [
        (80, "gp3", True)
    ]
    assert volumes[0]["Attachments"][0]["InstanceId"] == machine
    interfaces = box.ec2("describe_network_interfaces", Filters=mine)["NetworkInterfaces"]
    assert [one["Attachment"]["InstanceId"] for one in interfaces] == [machine]


def test_tags_that_are_added_later_are_listed_and_filtered_by(box: Box) -> None:
    machine = box.run()
    box.ec2("create_tags", Resources=[machine], Tags=[{"Key": "later", "Value": "x*y"}])
    assert tags_of(box.described(machine))["later"] == "x*y"
    found = box.ec2("describe_instances", Filters=[{"Name": "tag:later", "Values": ["x*"]}])
    assert found["Reservations"][0]["Instances"][0]["InstanceId"] == machine
    seen = box.endpoint.instance(machine)
    assert seen is not None and seen.tags["later"] == "x*y"


def test_instances_are_listed_in_pages(box: Box) -> None:
    for _ in range(6):
        box.run()
    pages = list(
        box.client("ec2")
        .get_paginator("describe_instances")
        .paginate(PaginationConfig={"PageSize": 5})
    )
    rows = [row["Instances"][0]["InstanceId"] for page in pages for row in page["Reservations"]]
    everything = [one.id for one in box.endpoint.instances() if one.region == REGION]
    assert len(pages) >= 2 and rows == everything


@pytest.mark.parametrize(
    ("name", "values", "is_found"),
    [
        ("instance-lifecycle", ["spot"], False),
        ("client-token", ["filtered"], True),
        ("instance-state-name", ["running", "pending"], True),
        ("availability-zone", [D], True),
        ("instance-type", ["g5.*"], True),
        ("tag-key", ["nothing"], False),
    ],
)
def test_filters_choose_instances(box: Box, name: str, values: list[str], is_found: bool) -> None:
    machine = box.run(D, ClientToken="filtered")
    found = box.ec2("describe_instances", Filters=[{"Name": name, "Values": values}])
    ids = [row["Instances"][0]["InstanceId"] for row in found["Reservations"]]
    assert (machine in ids) is is_found


def test_an_unknown_filter_is_refused(box: Box) -> None:
    filters = [{"Name": "colour", "Values": ["red"]}]
    assert box.refusal("ec2", "describe_instances", Filters=filters) == "InvalidParameterValue"


def test_run_instances_takes_a_template_too(box: Box) -> None:
    named = {"LaunchTemplateName": "whole", "Version": "1"}
    answer = box.ec2(
        "run_instances", LaunchTemplate=named, InstanceType=TYPE, MinCount=1, MaxCount=1
    )
    told = answer["Instances"][0]
    assert (
        tags_of(told)["of"] == "template" and tags_of(told)["aws:ec2launchtemplate:version"] == "1"
    )


# -- fleets and quotas as they are read ------------------------------------------------------


def test_an_instant_fleet_is_listed_by_its_id_only(box: Box) -> None:
    answer = box.fleet("whole", (TYPE, A))
    assert box.ec2("describe_fleets")["Fleets"] == []
    told = box.ec2("describe_fleets", FleetIds=[answer["FleetId"]])["Fleets"][0]
    assert told["Type"] == "instant" and made(told) == made(answer)


def test_deleting_a_fleet_ends_its_machines(box: Box) -> None:
    answer = box.fleet("whole", (TYPE, A))
    deleted = box.ec2("delete_fleets", FleetIds=[answer["FleetId"]], TerminateInstances=True)
    assert deleted["SuccessfulFleetDeletions"][0]["CurrentFleetState"] == "deleted_terminating"
    assert box.state(made(answer)[0]) == "shutting-down"


def test_quotas_are_read_by_their_codes(box: Box) -> None:
    def value(verb: str, code: str) -> float:
        answer = box.ask("service-quotas", verb, ServiceCode="ec2", QuotaCode=code)
        return float(answer["Quota"]["Value"])

    assert value("get_service_quota", "L-34B43A08") == 8.0
    assert value("get_service_quota", "L-3819A6DF") > 1000
    assert value("get_aws_default_service_quota", "L-3819A6DF") == 0.0
    listed = box.ask("service-quotas", "list_service_quotas", ServiceCode="ec2")["Quotas"]
    assert {"L-34B43A08", "L-C4BD4855"} <= {one["QuotaCode"] for one in listed}
    missing = box.refusal(
        "service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode="L-00000000"
    )
    assert missing == "NoSuchResourceException"


def test_the_account_has_image_network_and_roles(box: Box) -> None:
    name = (
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
    )
    found = box.ask("ssm", "get_parameter", Name=name)["Parameter"]["Value"]
    image = box.ec2("describe_images", ImageIds=[found])["Images"][0]
    assert image["RootDeviceName"] == "/dev/sda1" and image["OwnerId"] == "898082745236"
    assert image["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 60
    default = [{"Name": "default-for-az", "Values": ["true"]}]
    assert len(box.ec2("describe_subnets", Filters=default)["Subnets"]) == 6
    profile = box.ask("iam", "get_instance_profile", InstanceProfileName="cloudwhale-machine")
    assert profile["InstanceProfile"]["Roles"][0]["RoleName"] == "cloudwhale-machine"
    assert box.ask("iam", "get_role", RoleName="AWSServiceRoleForEC2Spot")["Role"]
    assert box.ask("sts", "get_caller_identity")["Account"] == "123456789012"
