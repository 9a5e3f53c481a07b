"""What a machine of the sandbox may do beside its own mailbox: what somebody put into its role."""

import json

import pytest

from cloudwhale_providers.aws.policies import Places, filled
from cloudwhale_providers.sandbox.endpoint.callers import USER, Caller
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need
from cloudwhale_providers.sandbox.endpoint.permits import Permits
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCOUNT

MACHINE = Caller(
    "machine", f"arn:aws:sts::{ACCOUNT}:assumed-role/cloudwhale-machine/i-1", "AROA:i-1", "i-1"
)
ORDER = Need("s3:GetObject", "arn:aws:s3:::lab/whale/orders/@AROA:i-1@rent-1/000001.json")


def put(role: str) -> tuple[str, ...]:
    """Say what `doctor aws --fix` has put into the role of machines."""
    document = filled("machine-policy", Places(ACCOUNT, "lab", "whale"))
    return (json.dumps(document),) if role == "cloudwhale-machine" else ()


def test_a_machine_may_what_was_put_into_its_role() -> None:
    assert Permits(False, put).may(MACHINE, ORDER)


def test_a_machine_of_an_account_that_nobody_has_set_up_is_refused() -> None:
    permits = Permits(False, lambda role: ())
    with pytest.raises(Refused, match="AccessDenied"):
        permits.check("s3", MACHINE, [ORDER])


def test_what_is_in_another_role_is_not_the_machines() -> None:
    other = Caller("machine", f"arn:aws:sts::{ACCOUNT}:assumed-role/team/i-2", "AROA:i-2", "i-2")
    assert not Permits(False, put).may(other, ORDER)


def test_the_accounts_own_user_is_held_to_nothing() -> None:
    assert Permits(False, put).may(USER, Need("s3:DeleteBucket", "arn:aws:s3:::lab"))
