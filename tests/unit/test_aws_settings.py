"""What `[clouds.aws]` may say, and how it is told what is wrong with it."""

from importlib import import_module
from typing import Any

import pytest

from cloudwhale.spi.errors import SettingsError
from cloudwhale_providers.aws.settings import REGIONS, WANTED, AwsSettings, read, regions


def test_the_regions_are_those_of_botocore() -> None:
    sessions: Any = import_module("botocore.session")
    assert list(REGIONS) == sorted(sessions.get_session().get_available_regions("ec2"))


def test_regions_are_names_or_patterns() -> None:
    assert regions(read({"regions": ["us-east-*", "eu-west-1"]})) == [
        "eu-west-1", "us-east-1", "us-east-2",
    ]  # fmt: skip
    assert regions(read({})) == []


def test_an_unknown_region_is_told_with_those_near_it() -> None:
    with pytest.raises(SettingsError) as caught:
        read({"regions": ["us-est-1"]})
    says = str(caught.value)
    assert "cloudwhale.toml" in says and "[clouds.aws]" in says and "'us-est-1'" in says
    assert "us-east-1" in caught.value.remedy


def test_a_region_of_subnets_is_checked_too() -> None:
    with pytest.raises(SettingsError, match="eu-west-9"):
        read({"subnets": {"eu-west-9": ["subnet-1"]}})


def test_an_unknown_key_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(SettingsError, match="Did you mean scheduler_role"):
        read({"sheduler_role": "x"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("regions", "us-east-1"), ("profile", 3), ("instance_profile", []),
        ("scheduler_role", 1), ("security_group", {}), ("subnets", ["subnet-1"]),
        ("image", 5), ("pin_zone", "maybe"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_told_with_the_right_one(key: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=rf"\[clouds.aws\]: {key} must be") as caught:
        read({key: value})
    assert WANTED[key] in caught.value.says


def test_every_key_says_what_it_wants() -> None:
    assert set(WANTED) == set(AwsSettings.model_fields)
