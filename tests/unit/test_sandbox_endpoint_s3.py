"""The sandbox's S3, asked through boto3 and through the store that mailboxes use."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import obstore
import pytest
from boxed import NOON, REGION, Box, a_box
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store

from cloudwhale_providers.sandbox.endpoint import Weather
from cloudwhale_providers.sandbox.endpoint.objects import New, Objects
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCESS_KEY, SECRET_KEY

BUCKET = "cloudwhale-sandbox"
MIB = 1024 * 1024
LARGE = bytes(range(256)) * (6 * 4 * 1024)  # 6 MiB, two parts


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    weather = Weather(foreign_buckets=frozenset({"of-others"}))
    with a_box(weather, tmp_path_factory.mktemp("s3")) as box:
        yield box


@pytest.fixture(scope="module")
def store(box: Box) -> S3Store:
    return S3Store(
        BUCKET,
        prefix="store",
        endpoint=box.endpoint.url,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        region=REGION,
        client_options={"allow_http": True},
    )


def s3(box: Box, verb: str, **words: Any) -> Any:
    return getattr(box.client("s3"), verb)(Bucket=BUCKET, **words)


# -- as mailboxes use it ---------------------------------------------------------------------


def test_what_is_put_is_got(store: S3Store) -> None:
    obstore.put(store, "a/b c+d é", b"body")
    assert obstore.get(store, "a/b c+d é").bytes() == b"body"
    assert obstore.get_range(store, "a/b c+d é", start=1, end=3) == b"od"
    assert obstore.head(store, "a/b c+d é")["size"] == 4


def test_an_object_is_made_once(store: S3Store) -> None:
    obstore.put(store, "once", b"1", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "once", b"2", mode="create")
    assert obstore.get(store, "once").bytes() == b"1"


def test_an_object_is_replaced_only_as_it_was_seen(store: S3Store) -> None:
    first = obstore.put(store, "seen", b"1")
    obstore.put(store, "seen", b"2", mode={"e_tag": first["e_tag"]})
    with pytest.raises(PreconditionError):
        obstore.put(store, "seen", b"3", mode={"e_tag": first["e_tag"]})
    assert obstore.get(store, "seen").bytes() == b"2"


def test_a_list_has_everything_below_a_prefix_in_order(box: Box, store: S3Store) -> None:
    keys = [f"many/{number:02d}" for number in range(25)]
    for key in reversed(keys):
        obstore.put(store, key, b"")
    assert [one["path"] for some in obstore.list(store, "many/") for one in some] == keys
    after = [one["path"] for some in obstore.list(store, "many/", offset=keys[20]) for one in some]
    assert after == keys[21:]
    pages = (
        box.client("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket=BUCKET, Prefix="store/many/", PaginationConfig={"PageSize": 10})
    )
    listed = [[one["Key"] for one in page["Contents"]] for page in pages]
    assert [len(page) for page in listed] == [10, 10, 5]
    assert [key for page in listed for key in page] == [f"store/{key}" for key in keys]


def test_a_list_with_a_delimiter_has_folders(store: S3Store) -> None:
    for key in ("tree/1", "tree/x/1", "tree/x/2", "tree/y/1"):
        obstore.put(store, key, b"")
    found = obstore.list_with_delimiter(store, "tree/")
    assert [one["path"] for one in found["objects"]] == ["tree/1"]
    assert list(found["common_prefixes"]) == ["tree/x", "tree/y"]


def test_many_are_deleted_at_once(store: S3Store) -> None:
    for key in ("gone/1", "gone/2", "gone/3"):
        obstore.put(store, key, b"")
    obstore.delete(store, ["gone/1", "gone/2", "gone/never"])
    assert [one["path"] for some in obstore.list(store, "gone/") for one in some] == ["gone/3"]


def test_a_large_object_goes_in_parts(store: S3Store) -> None:
    obstore.put(store, "large", LARGE, use_multipart=True, chunk_size=5 * MIB)
    assert obstore.get(store, "large").bytes() == LARGE
    assert obstore.get_range(store, "large", start=MIB, end=MIB + 4) == b"\x00\x01\x02\x03"


# -- as boto3 uses it ------------------------------------------------------------------------


def test_parts_are_put_together_as_they_are_named(box: Box) -> None:
    upload = s3(box, "create_multipart_upload", Key="parts")["UploadId"]
    tags = [
        s3(box, "upload_part", Key="parts", UploadId=upload, PartNumber=number, Body=body)["ETag"]
        for number, body in ((1, b"one "), (2, b"two "), (3, b"three"))
    ]
    listed = s3(box, "list_parts", Key="parts", UploadId=upload)["Parts"]
    assert [(one["PartNumber"], one["Size"]) for one in listed] == [(1, 4), (2, 4), (3, 5)]
    named = [{"PartNumber": number, "ETag": tags[number - 1]} for number in (1, 3)]
    done = s3(
        box, "complete_multipart_upload", Key="parts", UploadId=upload,
        MultipartUpload={"Parts": named},
    )  # fmt: skip
    assert done["ETag"].endswith('-2"')
    assert s3(box, "get_object", Key="parts")["Body"].read() == b"one three"
    assert "Uploads" not in s3(box, "list_multipart_uploads")


def test_an_upload_that_is_dropped_is_gone(box: Box) -> None:
    upload = s3(box, "create_multipart_upload", Key="dropped")["UploadId"]
    s3(box, "upload_part", Key="dropped", UploadId=upload, PartNumber=1, Body=b"x")
    assert s3(box, "list_multipart_uploads")["Uploads"][0]["Key"] == "dropped"
    s3(box, "abort_multipart_upload", Key="dropped", UploadId=upload)
    refused = box.refusal(
        "s3", "upload_part", Bucket=BUCKET, Key="dropped", UploadId=upload, PartNumber=1, Body=b"x"
    )
    assert refused == "NoSuchUpload"


def test_conditions_are_those_of_s3(box: Box) -> None:
    tag = s3(box, "put_object", Key="if", Body=b"1", IfNoneMatch="*")["ETag"]

    def put(**condition: str) -> str:
        return box.refusal("s3", "put_object", Bucket=BUCKET, Key="if", Body=b"2", **condition)

    assert put(IfNoneMatch="*") == "PreconditionFailed"
    assert put(IfMatch='"0"') == "PreconditionFailed"
    missing = box.refusal(
        "s3", "put_object", Bucket=BUCKET, Key="if-nothing", Body=b"2", IfMatch=tag
    )
    assert missing == "NoSuchKey"
    assert s3(box, "put_object", Key="if", Body=b"2", IfMatch=tag)["ETag"] != tag
    assert box.refusal("s3", "get_object", Bucket=BUCKET, Key="if", IfMatch=tag) == (
        "PreconditionFailed"
    )


def test_metadata_and_times_come_back_by_the_clock_of_the_box(box: Box) -> None:
    box.clock.advance_to(NOON + 5000.0)
    s3(box, "put_object", Key="meta", Body=b"1", Metadata={"by": "hand"}, ContentType="text/plain")
    told = s3(box, "head_object", Key="meta")
    assert told["Metadata"] == {"by": "hand"} and told["ContentType"] == "text/plain"
    assert told["LastModified"].timestamp() == NOON + 5000.0
    date = told["ResponseMetadata"]["HTTPHeaders"]["date"]
    assert parsedate_to_datetime(date).timestamp() == NOON + 5000.0
    s3(box, "copy_object", Key="copy", CopySource={"Bucket": BUCKET, "Key": "meta"})
    assert s3(box, "head_object", Key="copy")["Metadata"] == {"by": "hand"}
    assert s3(box, "head_object", Key="copy")["ETag"] == told["ETag"]


def test_a_range_is_part_of_an_object(box: Box) -> None:
    s3(box, "put_object", Key="span", Body=b"0123456789")
    answer = s3(box, "get_object", Key="span", Range="bytes=-3")
    assert answer["Body"].read() == b"789" and answer["ContentRange"] == "bytes 7-9/10"
    assert box.refusal("s3", "get_object", Bucket=BUCKET, Key="span", Range="bytes=10-") == (
        "InvalidRange"
    )


def test_buckets_are_made_once_and_lie_in_a_region(box: Box) -> None:
    west = box.client("s3", "us-west-2")
    where = {"LocationConstraint": "us-west-2"}
    west.create_bucket(Bucket="in-the-west", CreateBucketConfiguration=where)
    again = box.refusal(
        "s3", "create_bucket", "us-west-2", Bucket="in-the-west", CreateBucketConfiguration=where
    )
    assert again == "BucketAlreadyOwnedByYou"
    assert west.get_bucket_location(Bucket="in-the-west")["LocationConstraint"] == "us-west-2"
    west.put_object(Bucket="in-the-west", Key="a", Body=b"")
    full = box.refusal("s3", "delete_bucket", "us-west-2", Bucket="in-the-west")
    assert full == "BucketNotEmpty"
    names = [one["Name"] for one in box.client("s3").list_buckets()["Buckets"]]
    assert names == [BUCKET, "in-the-west"]
    west.delete_object(Bucket="in-the-west", Key="a")
    west.delete_bucket(Bucket="in-the-west")


@pytest.mark.parametrize(
    ("verb", "words", "code"),
    [
        ("head_bucket", {"Bucket": "nowhere"}, "404"),
        ("head_bucket", {"Bucket": "of-others"}, "403"),
        ("head_bucket", {"Bucket": BUCKET, "ExpectedBucketOwner": "000000000000"}, "403"),
        ("list_objects_v2", {"Bucket": "nowhere"}, "NoSuchBucket"),
        ("get_object", {"Bucket": BUCKET, "Key": "nothing"}, "NoSuchKey"),
        ("create_bucket", {"Bucket": "Wrong_Name"}, "InvalidBucketName"),
        ("get_object_tagging", {"Bucket": BUCKET, "Key": "once"}, "NotImplemented"),
        ("get_bucket_policy", {"Bucket": BUCKET}, "NotImplemented"),
    ],
)
def test_s3_refuses_in_its_own_words(box: Box, verb: str, words: dict[str, Any], code: str) -> None:
    assert box.refusal("s3", verb, **words) == code


def test_a_bucket_of_another_region_is_pointed_to(box: Box) -> None:
    client = box.client("s3", "us-west-2")
    told: list[str] = []

    def read(response: Any, **_: Any) -> None:
        told.append(response[0].headers["x-amz-bucket-region"])

    client.meta.events.register_first("needs-retry.s3.HeadBucket", read)
    client.head_bucket(Bucket=BUCKET)
    assert told[0] == REGION


def test_requests_are_counted_by_folder(box: Box) -> None:
    before = dict(box.endpoint.store_requests())
    for number in range(3):
        s3(box, "put_object", Key=f"count/here/{number}", Body=b"")
    s3(box, "get_object", Key="count/here/1")
    s3(box, "list_objects_v2", Prefix="count/here/")
    after = box.endpoint.store_requests()
    counted = {key: after[key] - before.get(key, 0) for key in after if "count" in key[1]}
    folder = f"{BUCKET}/count/here"
    assert counted == {("PUT", folder): 3, ("GET", folder): 1, ("LIST", folder): 1}


# -- beyond one life -------------------------------------------------------------------------


def test_another_life_finds_what_was_kept(tmp_path: Path) -> None:
    first = Objects(tmp_path)
    first.make("b", REGION, NOON)
    large = b"x" * 100_000
    first.put("b", "small", New(b"1", NOON, {"content-type": "text/plain"}))
    first.put("b", "large", New(large, NOON, {}))
    first.put("b", "small", New(b"2", NOON + 1, {}))
    first.put("b", "gone", New(large, NOON, {}))
    first.delete("b", "gone")
    upload = first.begin("b", "parts", {}, NOON)
    tags = [first.part(upload, number, large) for number in (1, 2)]
    first.complete(upload, list(enumerate(tags, 1)), (None, None), NOON)
    first.part(first.begin("b", "half", {}, NOON), 1, large)
    second = Objects(tmp_path)
    page = second.page("b", "", "", "", 10)
    assert [(key, one.body.size) for key, one in page.found] == [
        ("large", 100_000), ("parts", 200_000), ("small", 1),
    ]  # fmt: skip
    assert second.get("b", "small").body.read() == b"2" and second.get("b", "small").at == NOON + 1
    assert second.get("b", "parts").etag == first.get("b", "parts").etag
    assert second.get("b", "parts").body.read(99_999, 100_000) == b"xx"
    assert second.bucket("b").region == REGION
    assert len([path for path in tmp_path.iterdir() if path.name.isdecimal()]) == 3
    with pytest.raises(Refused, match="NoSuchKey"):
        second.get("b", "gone")


def test_a_file_that_was_half_written_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "000000000007.new").write_bytes(b"{}\nhalf")
    found = Objects(tmp_path)
    assert found.buckets() == {} and list(tmp_path.iterdir()) == []
