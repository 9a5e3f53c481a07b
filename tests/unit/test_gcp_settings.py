"""What `[clouds.gcp]` may say, and how it is told what is wrong with it."""

from typing import Any

import pytest

from cloudwhale.spi.errors import SettingsError
from cloudwhale_providers.gcp.settings import WANTED, GcpSettings, read, regions


def test_regions_are_names_or_patterns_of_those_that_are_known() -> None:
    known = ["europe-west4", "us-central1", "us-east4"]
    assert regions(read({"regions": ["us-*"]}), known) == ["us-central1", "us-east4"]
    assert regions(read({}), known) == known
    assert regions(read({"regions": ["me-west1"]}), known) == ["me-west1"], "it may be new"


def test_a_zone_is_told_from_its_region() -> None:
    with pytest.raises(SettingsError, match="'us-central1-a' is a zone") as caught:
        read({"regions": ["us-central1-a"]})
    assert "'us-central1'" in caught.value.remedy


def test_a_word_that_is_no_region_is_told() -> None:
    with pytest.raises(SettingsError, match="no region is called 'us-east-1'"):
        read({"regions": ["us-east-1"]})


def test_an_unknown_key_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(SettingsError, match="Did you mean service_account"):
        read({"servce_account": "x@y.z"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("project", "My Lab"), ("project", 3), ("regions", "us-central1"),
        ("service_account", "machine"), ("network", []), ("subnetwork", {}),
        ("external_address", "maybe"), ("image", 5), ("endpoint", "localhost:80"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_told_with_the_right_one(key: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=rf"\[clouds.gcp\]: {key} must be") as caught:
        read({key: value})
    assert WANTED[key] in caught.value.says


def test_every_key_says_what_it_wants() -> None:
    assert set(WANTED) == set(GcpSettings.model_fields)
    assert read({"mailbox": "gs://bucket/lab"}).mailbox == "gs://bucket/lab", "the house reads it"
