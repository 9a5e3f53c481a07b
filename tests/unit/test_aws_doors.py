"""Who a machine of EC2 is to the mailbox: said by its role, alike to it and to who launched it."""

import pytest
from renting_aws import a_clock, a_provider, a_request
from small_aws import SmallAws
from small_iam import MACHINES
from small_schedules import refused

from cloudwhale.spi.errors import Denied


@pytest.fixture
def aws() -> SmallAws:
    return SmallAws(a_clock())


def test_a_machine_and_who_launched_it_know_alike_who_it_is_to_the_mailbox(aws: SmallAws) -> None:
    provider = a_provider(aws, instance_profile="arn:aws:iam::1:instance-profile/a/machines")
    machine = provider.launch(a_request())
    (box,) = aws.running
    assert box.tags["cloudwhale:role"] == MACHINES
    assert machine.door == f"{MACHINES}:{machine.id}"
    assert [one.door for one in provider.machines()] == [machine.door]
    assert aws.words_of("get_instance_profile") == [{"InstanceProfileName": "machines"}]
    later = a_provider(aws, instance_profile="machines").launch(a_request())
    assert later.door == machine.door, "whoever lost the answer hears the same"


def test_a_machine_that_is_not_listed_yet_is_known_to_the_mailbox_all_the_same(
    aws: SmallAws,
) -> None:
    provider = a_provider(aws, instance_profile="machines")
    aws.unseen = {f"i-{number:017x}" for number in range(9)}
    machine = provider.launch(a_request())
    assert machine.door == f"{MACHINES}:{machine.id}"


@pytest.mark.parametrize("named", ["", "machines"])
def test_machines_without_a_role_have_no_door(aws: SmallAws, named: str) -> None:
    aws.has_machines_role = False
    provider = a_provider(aws, instance_profile=named)
    assert provider.launch(a_request()).door == ""
    assert "cloudwhale:role" not in aws.running[0].tags
    assert len(aws.words_of("get_instance_profile")) == (1 if named else 0)


def test_the_role_is_asked_for_once_a_minute(aws: SmallAws) -> None:
    provider = a_provider(aws, instance_profile="machines")
    for name in ("rental-1", "rental-2"):
        provider.launch(a_request(name))
    assert len(aws.words_of("get_instance_profile")) == 1
    aws.clock.advance_to(aws.clock.now() + 60.0)
    provider.launch(a_request("rental-3"))
    assert len(aws.words_of("get_instance_profile")) == 2


def test_nothing_is_launched_whose_folders_nobody_may_name(aws: SmallAws) -> None:
    aws.refusals["get_instance_profile"] = refused("AccessDenied")
    with pytest.raises(Denied, match="iam:GetInstanceProfile"):
        a_provider(aws, instance_profile="machines").launch(a_request())
    assert not aws.boxes
