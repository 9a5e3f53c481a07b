"""Names of users as IAM has them, and policies that say the same however they are spelled."""

from collections.abc import Sequence

import pytest

from cloudwhale.spi.errors import SettingsError
from cloudwhale_providers.aws.mending import documents
from cloudwhale_providers.aws.mending.allowing import whom
from cloudwhale_providers.sandbox.names import ACCOUNT


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("ann", ("user", "ann")),
        ("role/night", ("role", "night")),
        (f"arn:aws:iam::{ACCOUNT}:user/lab/ann", ("user", "ann")),
    ],
)
def test_a_user_is_named_as_iam_names_them(said: str, meant: Sequence[str]) -> None:
    assert whom(said) == meant


@pytest.mark.parametrize("said", ["", "user/", "machine/ann", f"arn:aws:iam::{ACCOUNT}:root"])
def test_a_name_that_is_nobodys_is_refused(said: str) -> None:
    with pytest.raises(SettingsError, match="no user, role or group"):
        whom(said)


def test_documents_that_say_the_same_are_the_same() -> None:
    one = {"Statement": [{"Sid": "A", "Action": ["a", "b"], "Resource": "r"}]}
    two = {"Statement": {"Resource": ["r"], "Action": ["b", "a"]}}
    assert documents.same(one, two)
    assert not documents.same(one, {"Statement": {"Resource": ["r"], "Action": ["b"]}})
    assert not documents.same(one, None)
