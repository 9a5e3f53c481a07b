"""Makers for tests of the AWS provider: provider, offer and request, before the small AWS."""

from collections.abc import Sequence
from typing import Any

from small_aws import SmallAws

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Lease
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.spi.provider import Grounds, LaunchRequest
from cloudwhale_providers.aws import AwsProvider
from cloudwhale_providers.aws.clients import Clients

NOW = 1_800_000_000.0
ROLE = "arn:aws:iam::123456789012:role/cloudwhale-stops"
BUNDLE = f"bundles/{'a1' * 32}.tar.gz"
OURS = "lab-1"
"""The installation."""


def an_offer(zone: str = "us-east-1a", market: Any = "spot", **fields: Any) -> Offer:
    """Make an offer of a g5.xlarge at 0.4 dollars, the cap being 1."""
    kind = fields.pop("type", "g5.xlarge")
    return Offer(
        **{
            "id": f"aws/{zone}/{kind}/{market}", "provider": "aws", "region": zone[:-1],
            "zone": zone, "market": market, "type": kind, "boot_s": 60.0,
            "facts": Facts(cpu=4.0, memory_gib=16.0, disk_gib=120.0),
            "price_usd_h": micro_usd("0.4"), "cap_usd_h": micro_usd(1), "quota_units": 4.0,
            **fields,
        }
    )  # fmt: skip


def a_request(name: str = "rental-1", offer: Offer | None = None, **fields: Any) -> LaunchRequest:
    """Make a request whose cloud's stop is in an hour."""
    lease = Lease(
        number=1, watched_until=NOW + 900, away_until=NOW + 3480, stop_at=NOW + 3600
    )  # fmt: skip
    return LaunchRequest(
        **{
            "request_id": name, "node": name, "offer": offer or an_offer(), "home": "/",
            "mailbox": "s3://bucket/lab", "stop_at": lease.stop_at, "lease": lease,
            "project": "nlp", "bundle": BUNDLE, **fields,
        }
    )  # fmt: skip


def a_clock() -> SteppedClock:
    """Make a clock that stands at NOW."""
    return SteppedClock(NOW)


def a_provider(
    aws: SmallAws, offers: Sequence[Offer] = (), installation: str = OURS, **settings: Any
) -> AwsProvider:
    """Make the provider in one region, with a role that ends machines."""
    table = {"regions": ["us-east-1"], "scheduler_role": ROLE, **settings}
    listed = list(offers) or [an_offer()]
    grounds = Grounds("aws", installation, table, lambda now: listed, aws.clock)
    clients = Clients(session=lambda profile: aws)
    return AwsProvider(grounds, clients, pause=lambda for_s: None)
