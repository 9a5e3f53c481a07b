"""Where inputs lie is asked of their stores, and a bucket of another region is read there."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from boxed_aws import boxed
from makers import a_spec

from cloudwhale.control.located import located
from cloudwhale.mailbox.sources import NothingThere, Source
from cloudwhale_providers.s3_store import region_of

WEST = "us-west-2"
BUCKET = "team-data-in-the-west"


@pytest.fixture(scope="module", autouse=True)
def store() -> Iterator[Any]:
    """A bucket in a region that is not this process's own, and objects in it."""
    with boxed(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ALLOW_HTTP", "true")
        client = import_module("boto3").client("s3", region_name=WEST)
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": WEST})
        client.put_object(Bucket=BUCKET, Key="corpus/a.txt", Body=b"one")
        client.put_object(Bucket=BUCKET, Key="corpus/deep/b.txt", Body=b"seven")
        yield client
        client.close()


def test_jobs_know_where_their_inputs_lie_and_how_much_it_is() -> None:
    spec = a_spec("job", inputs=(f"s3://{BUCKET}/corpus/", "https://a.b/c"))
    (told,) = located([spec])
    (data,) = told.data
    assert (data.url, data.region, data.size_bytes) == (f"s3://{BUCKET}/corpus/", WEST, 8)


def test_of_what_this_host_cannot_see_nothing_is_said() -> None:
    spec = a_spec("job", inputs=("s3://nobodys-bucket/x", f"s3://{BUCKET}/nothing/"))
    assert located([spec]) == (spec,)


def test_a_bucket_of_another_region_is_read_where_it_lies() -> None:
    source = Source(f"s3://{BUCKET}/corpus/")
    found = source.listed()
    assert [one.path for one in found] == ["a.txt", "deep/b.txt"]
    assert b"".join(bytes(chunk) for chunk in source.read(found[0], 0, 3)) == b"one"
    with pytest.raises(NothingThere):
        Source(f"s3://{BUCKET}/nothing/").listed()


def test_of_a_bucket_that_is_not_there_no_region_is_known() -> None:
    assert region_of("nobodys-bucket") == ""
