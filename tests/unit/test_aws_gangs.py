"""The network of gangs: one group whose members reach each other, and nobody else does."""

from collections.abc import Iterator
from typing import Any

import pytest
from renting_aws import OURS, a_clock, a_provider
from scripted_aws import ScriptedAws, an_account, hasty_clients
from small_aws import GANG, GROUP, SmallAws
from small_schedules import refused

from cloudwhale.clock import SystemClock
from cloudwhale.spi.errors import Denied
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.clients import Clients
from cloudwhale_providers.aws.network import Network
from cloudwhale_providers.aws.settings import read

REGION = "us-east-1"
ITSELF = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": GANG}]}]


@pytest.fixture
def aws() -> SmallAws:
    return SmallAws(a_clock())


def a_network(aws: SmallAws, **options: Any) -> Network:
    clients = Clients(session=lambda profile: aws)
    return Network(Account(clients, OURS, read(options), aws.clock))


def rules(aws: SmallAws) -> Any:
    return aws.groups[f"{REGION} gang"]["IpPermissions"]


def test_members_of_a_gang_reach_each_other_by_every_protocol(aws: SmallAws) -> None:
    assert a_network(aws).gang_group(REGION) == GANG
    assert rules(aws) == ITSELF
    assert aws.groups[f"{REGION} gang"]["GroupName"] == f"cloudwhale-gang-{OURS}"


def test_machines_that_are_in_no_gang_are_in_a_group_that_nobody_enters(aws: SmallAws) -> None:
    network = a_network(aws)
    network.gang_group(REGION)
    assert network.group(REGION) == GROUP
    assert aws.groups[REGION]["IpPermissions"] == []


def test_the_group_of_gangs_is_made_once(aws: SmallAws) -> None:
    network = a_network(aws)
    assert network.gang_group(REGION) == network.gang_group(REGION) == GANG
    assert a_network(aws).gang_group(REGION) == GANG
    assert len(aws.words_of("create_security_group")) == 1
    assert len(aws.words_of("authorize_security_group_ingress")) == 1


def test_a_group_whose_maker_was_killed_before_its_rule_gets_it(aws: SmallAws) -> None:
    aws.refusals["authorize_security_group_ingress"] = refused("InternalError", status=500)
    with pytest.raises(Exception, match="AuthorizeSecurityGroupIngress"):
        a_network(aws).gang_group(REGION)
    aws.refusals.clear()
    assert a_network(aws).gang_group(REGION) == GANG
    assert rules(aws) == ITSELF


def test_that_another_made_the_rule_at_the_same_moment_is_fine(aws: SmallAws) -> None:
    code = refused("InvalidPermission.Duplicate")
    aws.refusals["authorize_security_group_ingress"] = code
    assert a_network(aws).gang_group(REGION) == GANG


def test_a_user_who_may_not_open_it_is_told_the_permission(aws: SmallAws) -> None:
    aws.refusals["authorize_security_group_ingress"] = refused("UnauthorizedOperation", status=403)
    with pytest.raises(Denied, match="Allow ec2:AuthorizeSecurityGroupIngress"):
        a_network(aws).gang_group(REGION)


@pytest.mark.parametrize(
    "opened",
    [
        {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-another"}]},
        {"IpProtocol": "tcp", "UserIdGroupPairs": [{"GroupId": GANG}],
         "Ipv6Ranges": [{"CidrIpv6": "::/0"}]},
    ],
)  # fmt: skip
def test_a_group_of_gangs_that_somebody_has_opened_further_is_not_used(
    aws: SmallAws, opened: Any
) -> None:
    a_network(aws).gang_group(REGION)
    rules(aws).append(opened)
    with pytest.raises(Denied, match="has opened"):
        a_network(aws).gang_group(REGION)


def test_a_group_that_the_settings_name_does_not_stand_in_for_it(aws: SmallAws) -> None:
    network = a_network(aws, security_group="sg-named")
    assert network.group(REGION) == "sg-named"
    assert network.gang_group(REGION) == GANG


def test_neither_group_is_left_over_while_the_installation_lives(aws: SmallAws) -> None:
    network = a_network(aws)
    network.group(REGION)
    network.gang_group(REGION)
    assert list(a_provider(aws).leftovers(())) == []


def test_another_installation_sees_them_and_does_not_touch_them(aws: SmallAws) -> None:
    a_network(aws).gang_group(REGION)
    (found,) = a_provider(aws, installation="lab-2").leftovers(())
    assert (found.what, found.is_ours, found.installation) == ("security group", False, OURS)


# -- as moto has groups ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def cloud() -> Iterator[ScriptedAws]:
    with an_account() as (aws, _):
        aws.forget()
        yield aws


def test_the_rule_is_known_again_as_ec2_describes_it(cloud: ScriptedAws) -> None:
    calls = hasty_clients()
    account = Account(calls, "gang-lab", read({}), SystemClock())
    made = Network(account).gang_group(REGION)
    assert Network(account).gang_group(REGION) == made
    (group,) = calls.call(REGION, "ec2", "describe_security_groups", GroupIds=[made])[
        "SecurityGroups"
    ]
    (rule,) = group["IpPermissions"]
    assert [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] == [made]
    assert rule["IpProtocol"] == "-1" and not rule["IpRanges"]
