"""An AWS account in which all is well, and what the doctor says of it, for tests of its rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripted_aws import ACCOUNT, ScriptedAws, an_account, hasty_clients

from cloudwhale.clock import SystemClock
from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.provider import Check
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.checks import Checks
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.settings import read
from cloudwhale_providers.prices.aws import quota_group

REGION = "us-east-1"
PROFILE, STOPS = "cloudwhale-machine", "cloudwhale-stops"
TRUST = json.loads(
    (Path(__file__).parents[1] / "infra/aws/scheduler-trust.json").read_text(encoding="utf-8")
)
GOOD: Mapping[str, Any] = {
    "regions": [REGION],
    "instance_profile": PROFILE,
    "scheduler_role": f"arn:aws:iam::{ACCOUNT}:role/{STOPS}",
    "image": "ami-12c6146b",
}


def an_offer(type_name: str, market: Any, region: str = REGION, vcpus: float = 4.0) -> Offer:
    return Offer(
        id=f"aws/{region}a/{type_name}/{market}", provider="aws", region=region, zone=f"{region}a",
        market=market, facts=Facts(cpu=vcpus, memory_gib=14.0, disk_gib=120.0), type=type_name,
        price_usd_h=MicroUsd(1), cap_usd_h=MicroUsd(1), boot_s=0.0, quota_units=vcpus,
        quota=f"aws/{region}/{market}/{quota_group(type_name, market)}",
    )  # fmt: skip


OFFERS = (an_offer("g5.xlarge", "spot"), an_offer("g5.xlarge", "on-demand"))


@contextmanager
def a_good_account() -> Iterator[tuple[ScriptedAws, Clients]]:
    """Give an account that has all that launches need."""
    with an_account() as (aws, _):
        aws.forget()
        calls = hasty_clients()
        _furnish(calls)
        yield aws, calls


def _furnish(calls: Clients) -> None:
    def make(service: str, verb: str, **words: Any) -> None:
        calls.call(REGION, service, verb, **words)

    for name in ("mailbox-1", "mailbox-2"):
        make("s3", "create_bucket", Bucket=name)
    west = {"LocationConstraint": "eu-west-1"}
    calls.call(
        "eu-west-1", "s3", "create_bucket", Bucket="far-away", CreateBucketConfiguration=west
    )
    trust = json.dumps(TRUST)
    make("iam", "create_role", RoleName="AWSServiceRoleForEC2Spot", AssumeRolePolicyDocument=trust)
    make("iam", "create_role", RoleName=STOPS, AssumeRolePolicyDocument=trust)
    make("iam", "create_role", RoleName="machines", AssumeRolePolicyDocument="{}")
    make("iam", "create_role", RoleName="for-lambda", AssumeRolePolicyDocument="{}")
    for name in (PROFILE, "empty"):
        make("iam", "create_instance_profile", InstanceProfileName=name)
    make("iam", "add_role_to_instance_profile", InstanceProfileName=PROFILE, RoleName="machines")


def rows_of(
    calls: Clients,
    mailbox: str = "s3://mailbox-1/cloudwhale",
    offers: Sequence[Offer] = OFFERS,
    environment: Mapping[str, str] | None = None,
    **changed: Any,
) -> Sequence[Check]:
    options = read({**GOOD, **changed})
    account = Account(calls, "whale-1", options, SystemClock())
    told = {"AWS_REGION": REGION} if environment is None else environment
    told = {"AWS_ACCESS_KEY_ID": "testing", **told}
    return Checks(account, mailbox, lambda now: offers, told).rows()


def row(rows: Sequence[Check], name: str) -> Check:
    return next(one for one in rows if one.name == f"aws {name}")


def bad(rows: Sequence[Check]) -> list[Check]:
    return [one for one in rows if one.state != "ok"]
