"""A cloud's list that never ends is no list: what is missing in half of one is not gone."""

from collections.abc import Mapping
from typing import Any

import pytest

from cloudwhale.spi.errors import Unreachable
from cloudwhale_providers.aws import asking as aws
from cloudwhale_providers.gcp import asking as gcp


class Endless:
    """Answers each page with one thing and the way to the next page."""

    def call(self, *where: str, **words: Any) -> Mapping[str, Any]:
        page = {"items": [{"name": "one"}], "nextPageToken": "again"}
        return page | {"Reservations": [{"Instances": ()}], "NextToken": "again"}

    def project(self) -> str:
        return "nobody"


def test_of_gcp() -> None:
    with pytest.raises(Unreachable, match="has not ended after 200 pages"):
        list(gcp.listed(Endless(), "compute", "instances.list"))


def test_of_aws() -> None:
    with pytest.raises(Unreachable, match="has not ended after 200 pages"):
        list(aws.listed(Endless(), "r", "ec2", "describe_instances", "Reservations"))
