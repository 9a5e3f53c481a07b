"""Which image machines boot from: what is missing is named with the setting that mends it."""

from collections.abc import Mapping
from typing import Any

import pytest
from aws_calls import FakeCalls, refused

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale_providers.aws.images import DEFAULT, HOLDS_S, KNOWN, Image, Images, python_of

AMI = "ami-0123456789abcdef0"
REGION = "us-east-1"


class Hands:
    """A clock whose hands are moved."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return self.at


def described(**changed: Any) -> dict[str, Any]:
    image = {
        "ImageId": AMI,
        "RootDeviceName": "/dev/sda1",
        "Architecture": "x86_64",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 60}},
            {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        ],
    }
    return {"Images": [image | changed]}


@pytest.fixture
def aws() -> FakeCalls:
    calls = FakeCalls()
    calls.says("get_parameter", {"Parameter": {"Value": AMI}})
    calls.says("describe_images", described())
    return calls


def test_a_parameter_names_the_image_and_the_image_says_its_disk(aws: FakeCalls) -> None:
    assert Images(aws, Hands()).image(REGION) == Image(AMI, "/dev/sda1", 60.0, "3.12")
    assert aws.asked[0] == (REGION, "get_parameter", {"Name": KNOWN[DEFAULT].parameter})


def test_an_image_that_is_named_itself_needs_no_parameter(aws: FakeCalls) -> None:
    assert Images(aws, Hands(), AMI).image(REGION).id == AMI
    assert aws.counted("get_parameter") == 0


@pytest.mark.parametrize(("name", "python"), [("ubuntu-24.04", "3.12"), ("debian-12", "3.11")])
def test_an_image_has_a_short_name_and_its_python_is_known(
    aws: FakeCalls, name: str, python: str
) -> None:
    assert Images(aws, Hands(), name).image(REGION).python == python
    assert aws.asked[0] == (REGION, "get_parameter", {"Name": KNOWN[name].parameter})


@pytest.mark.parametrize(
    ("called", "python"),
    [
        ("Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20261001", "3.10"),
        ("ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261001", "3.12"),
        ("debian-12-amd64-20261001-2255", "3.11"),
        ("al2023-ami-2023.9.20261001.0-kernel-6.12-x86_64", ""),
    ],
)
def test_an_image_of_ones_own_is_known_by_what_it_is_called(
    aws: FakeCalls, called: str, python: str
) -> None:
    aws.says("describe_images", described(Name=called))
    assert Images(aws, Hands(), AMI).image(REGION).python == python == python_of(called)


def test_an_image_is_looked_up_once_an_hour_in_each_region(aws: FakeCalls) -> None:
    clock = Hands()
    images = Images(aws, clock)
    for region in (REGION, REGION, "eu-west-1"):
        images.image(region)
    assert aws.counted("get_parameter") == 2
    clock.at += HOLDS_S
    images.image(REGION)
    assert aws.counted("get_parameter") == 3


def test_a_parameter_that_is_missing_is_named_with_the_setting(aws: FakeCalls) -> None:
    aws.says("get_parameter", refused("ParameterNotFound"))
    with pytest.raises(Denied) as caught:
        Images(aws, Hands()).image(REGION)
    assert KNOWN[DEFAULT].parameter in caught.value.says
    assert "`image` in [clouds.aws]" in caught.value.remedy


def test_an_image_that_is_missing_is_named_with_its_region(aws: FakeCalls) -> None:
    answers: list[Any] = [refused("InvalidAMIID.NotFound"), {"Images": []}]
    for answer in answers:
        aws.says("describe_images", answer)
        with pytest.raises(Denied, match=f"{REGION} has no image {AMI}"):
            Images(aws, Hands()).image(REGION)


def test_what_aws_does_not_answer_is_not_called_missing(aws: FakeCalls) -> None:
    aws.says("get_parameter", Unreachable("no answer"))
    with pytest.raises(Unreachable):
        Images(aws, Hands()).image(REGION)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"Architecture": "arm64"}, "is for arm64"), ({"BlockDeviceMappings": []}, "no root disk")],
)
def test_an_image_that_could_not_boot_is_refused(
    aws: FakeCalls, changed: Mapping[str, Any], says: str
) -> None:
    aws.says("describe_images", described(**changed))
    with pytest.raises(Denied, match=says):
        Images(aws, Hands()).image(REGION)


def test_a_refusal_is_not_kept(aws: FakeCalls) -> None:
    images = Images(aws, Hands())
    aws.says("get_parameter", refused("ParameterNotFound"))
    with pytest.raises(Denied):
        images.image(REGION)
    aws.says("get_parameter", {"Parameter": {"Value": AMI}})
    assert images.image(REGION).id == AMI
