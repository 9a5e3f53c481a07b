"""The account that the tests of `doctor aws` ask; what it is made with is loaded for them alone."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from scripted_aws import ScriptedAws

    from cloudwhale_providers.aws.clients import Clients


@pytest.fixture(scope="module")
def good_account() -> "Iterator[tuple[ScriptedAws, Clients]]":
    """Give one account, in which all is well, to all tests of a module."""
    from checked_aws import a_good_account

    with a_good_account() as (aws, calls):
        yield aws, calls


@pytest.fixture
def aws(good_account: "tuple[ScriptedAws, Clients]") -> "ScriptedAws":
    """Give the good account, with the answers of moto until the test says others."""
    good_account[0].unscript()
    return good_account[0]


@pytest.fixture
def calls(good_account: "tuple[ScriptedAws, Clients]") -> "Clients":
    """Give what the good account is asked with."""
    return good_account[1]
