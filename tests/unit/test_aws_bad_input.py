"""Accounts that lack something: what a launch says, what the doctor says, and what mends it."""

import pytest
from boxed_aws import Box, boxed
from renting_aws import a_request, an_offer

from cloudwhale.model.offer import Offer
from cloudwhale.spi.errors import CloudwhaleError, Denied, QuotaExceeded
from cloudwhale.spi.provider import Check, Grounds
from cloudwhale_providers.aws import AwsProvider
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.sandbox.box import MAILBOX, settings
from cloudwhale_providers.sandbox.endpoint import Weather

OURS = "whale-1"


def a_provider(
    box: Box, offer: Offer, mailbox: str = MAILBOX, regions: tuple[str, ...] = ("us-east-1",)
) -> AwsProvider:
    table = {**settings({}), "regions": list(regions)}
    grounds = Grounds("aws", OURS, table, lambda now: [offer], box.clock, mailbox)
    return AwsProvider(grounds, Clients(attempts=1))


def refusal_of(provider: AwsProvider, offer: Offer, box: Box) -> CloudwhaleError:
    stop_at = box.clock.now() + 3600
    request = a_request("rental-1", offer, stop_at=stop_at, mailbox=MAILBOX)
    with pytest.raises(CloudwhaleError) as caught:
        provider.launch(request)
    return caught.value


def bad(provider: AwsProvider) -> list[Check]:
    return [one for one in provider.check() if one.state != "ok"]


@pytest.mark.parametrize(
    ("weather", "market", "kind", "mends", "name"),
    [
        (
            Weather(quotas={"L-3819A6DF": 0.0}), "spot", QuotaExceeded,
            "--quota-code L-3819A6DF", "aws quotas",
        ),
        (
            Weather(quotas={"L-DB2E81BA": 0.0}), "on-demand", QuotaExceeded,
            "--quota-code L-DB2E81BA", "aws quotas",
        ),
        (
            Weather(spot_role=False), "spot", Denied,
            "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
            "aws spot role",
        ),
        (Weather(image=False), "spot", Denied, "`image` in [clouds.aws]", "aws image"),
        (
            Weather(default_network=False), "spot", Denied,
            "aws ec2 create-default-vpc --region us-east-1", "aws network",
        ),
    ],
    ids=["spot-quota", "on-demand-quota", "spot-role", "image", "network"],
)  # fmt: skip
def test_launch_and_doctor_name_what_mends_an_account(
    weather: Weather, market: str, kind: type[CloudwhaleError], mends: str, name: str
) -> None:
    with boxed(weather=weather) as box:
        offer = an_offer(market=market)
        provider = a_provider(box, offer)
        refused = refusal_of(provider, offer, box)
        assert isinstance(refused, kind)
        assert mends in refused.remedy
        rows = [one for one in bad(provider) if one.name == name]
        assert len(rows) == 1
        assert mends in rows[0].remedy
        assert provider.machines() == []


def test_a_region_that_is_not_enabled_is_not_offered_and_its_command_is_told() -> None:
    with boxed(weather=Weather(closed_regions=frozenset({"eu-west-1"}))) as box:
        offer = an_offer("eu-west-1a")
        provider = a_provider(box, offer, regions=("us-east-1", "eu-west-1"))
        assert provider.offers(box.clock.now()) == ()
        command = "aws account enable-region --region-name eu-west-1"
        assert [one.name for one in bad(provider) if command in one.remedy]


def test_credentials_that_nobody_knows_launch_nothing_and_are_the_only_row() -> None:
    with boxed(weather=Weather(access_key="AKIDSOMEBODYELSE0000")) as box:
        offer = an_offer()
        provider = a_provider(box, offer)
        refused = refusal_of(provider, offer, box)
        assert isinstance(refused, Denied)
        assert "aws configure" in refused.remedy
        rows = provider.check()
        assert [(one.name, one.state) for one in rows] == [("aws credentials", "failed")]
        assert "aws configure" in rows[0].remedy
        with pytest.raises(Denied):
            provider.offers(box.clock.now())
        with pytest.raises(Denied):
            provider.leftovers([])


def test_a_bucket_of_another_account_is_named() -> None:
    with boxed(weather=Weather(foreign_buckets=frozenset({"theirs"}))) as box:
        rows = bad(a_provider(box, an_offer(), "s3://theirs/x"))
        assert [one.name for one in rows] == ["aws bucket"]
        assert "aws s3 mb" in rows[0].remedy
