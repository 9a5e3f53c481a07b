"""A mailbox in S3 that refuses us: the sentence says what to look at."""

from collections.abc import Callable, Iterator

import pytest
from scripted_aws import ScriptedAws, an_account

from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.mailbox.sources import Source
from cloudwhale.spi.errors import Denied, StoreUnusable

SAYS = "User: arn:aws:iam::123456789012:user/ada is not authorized to perform this"


@pytest.fixture
def account() -> Iterator[tuple[ScriptedAws, pytest.MonkeyPatch]]:
    with an_account() as (aws, patch):
        patch.setenv("AWS_ALLOW_HTTP", "true")
        yield aws, patch


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda objects: objects.create("hello", b""), id="write"),
        pytest.param(lambda objects: objects.get("hello"), id="read"),
        pytest.param(lambda objects: objects.keys("hello"), id="list"),
        pytest.param(lambda objects: objects.folders("hello"), id="list folders"),
    ],
)
@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "ExpiredToken", "AccessDenied"])
def test_credentials_that_the_store_refuses_lead_to_the_doctor(
    account: tuple[ScriptedAws, pytest.MonkeyPatch],
    code: str,
    ask: Callable[[StoreObjects], object],
) -> None:
    account[0].refuse_all(code, SAYS, status=403)
    with pytest.raises(StoreUnusable) as caught:
        ask(open_objects("s3://mailbox-1/cloudwhale"))
    assert f"the store refuses us: {SAYS}" in caught.value.says
    assert "Debug" not in caught.value.says
    assert "cloudwhale doctor" in caught.value.remedy


def test_inputs_that_may_not_be_listed_are_not_asked_for_again(
    account: tuple[ScriptedAws, pytest.MonkeyPatch],
) -> None:
    account[0].refuse_all("AccessDenied", SAYS, status=403)
    with pytest.raises(Denied, match="may not be read from this machine"):
        Source("s3://team-data/corpus").listed()


def test_whoever_has_no_credentials_for_the_store_is_told_so(
    account: tuple[ScriptedAws, pytest.MonkeyPatch],
) -> None:
    aws, patch = account
    patch.delenv("AWS_ACCESS_KEY_ID")
    patch.delenv("AWS_SECRET_ACCESS_KEY")
    with aws.listening() as url:  # it has no metadata service, like a laptop
        aws.refuse_all("AccessDenied", status=403)
        patch.setenv("AWS_METADATA_ENDPOINT", url)
        with pytest.raises(StoreUnusable) as caught:
            open_objects("s3://mailbox-1/cloudwhale").create("hello", b"")
    assert "There are no credentials for the store" in caught.value.remedy
