"""Whether the mailbox's bucket is there, ours, where we take it to be, and can be written once."""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.aws.asking import Calls, code_of
from cloudwhale_providers.aws.rows import Found, failed

US_EAST_1 = "us-east-1"
"""GetBucketLocation has no word for it: its reference says that the answer is then empty."""
OLD_EU = "EU"
REFUSED = frozenset({"403", "AccessDenied", "AllAccessDisabled"})
ABSENT = frozenset({"404", "NoSuchBucket"})
EXISTS = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict"})
NAME = re.compile(r"[A-Za-z0-9._-]{3,255}")
"""As buckets of before 2018 may be called in us-east-1 (S3's user guide); new ones are stricter."""
REGION_WORDS = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Where the mailbox's client reads its region; the first that is set holds."""
CREDENTIAL_WORDS = (
    "AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)  # fmt: skip
"""Where it finds credentials (object_store, AmazonS3Builder)."""


class Bucket(NamedTuple):
    """Where the mailbox is."""

    name: str
    prefix: str = ""


def bucket_of(mailbox: str) -> Bucket | None:
    """Return the bucket of a mailbox's URL; None when it is in none of S3's."""
    parts = urlsplit(mailbox)
    if parts.scheme not in ("s3", "s3a") or not parts.netloc:
        return None
    return Bucket(parts.netloc, parts.path.strip("/"))


def look(
    calls: Calls, mailbox: str, account: str, now: Instant, environment: Mapping[str, str]
) -> Found:
    """Return what is wrong with the bucket, or that it is well; `account`: number of ours.

    Writes an object, tries to write it again, and deletes it.
    """
    bucket = bucket_of(mailbox)
    if bucket is None:
        return Found(
            "failed",
            f"machines at AWS cannot reach the mailbox {mailbox}",
            "`cloudwhale doctor aws --fix` makes a bucket and sets `mailbox`; or `aws s3 mb "
            "s3://NAME --region REGION`, and `mailbox` in cloudwhale.toml as s3://NAME/cloudwhale.",
        )
    if not NAME.fullmatch(bucket.name):
        return Found("failed", f"no bucket can have the name {bucket.name}", _NAMES)
    region = _region(calls, bucket, account)
    if isinstance(region, Found):
        return region
    asks = next((environment[name] for name in REGION_WORDS if environment.get(name)), "")
    if (asks or US_EAST_1) != region:
        said = f"{REGION_WORDS[0]} is {asks}" if asks else f"no {REGION_WORDS[0]} is set"
        return Found(
            "failed",
            f"the bucket {bucket.name} is in {region}, and {said}, so it is looked for elsewhere",
            f"`export AWS_REGION={region}`, or make a bucket in the other region and set "
            "`mailbox` to it.",
        )
    return _written(calls, bucket, region, now)


def _region(calls: Calls, bucket: Bucket, account: str) -> str | Found:
    """Return where a bucket of ours is, or what is wrong with it."""
    try:
        calls.call(US_EAST_1, "s3", "head_bucket", Bucket=bucket.name)
    except CloudwhaleError as error:
        return _not_there(bucket, error)
    try:
        calls.call(US_EAST_1, "s3", "head_bucket", Bucket=bucket.name, ExpectedBucketOwner=account)
    except CloudwhaleError as error:
        if code_of(error) not in REFUSED:
            return failed(error)
        return Found(
            "failed",
            f"the bucket {bucket.name} belongs to another AWS account: its owner could read and "
            "change what machines are told",
            _ANOTHER,
        )
    try:
        answer = calls.call(US_EAST_1, "s3", "get_bucket_location", Bucket=bucket.name)
    except CloudwhaleError as error:
        return failed(error, f"Allow s3:GetBucketLocation on arn:aws:s3:::{bucket.name}.")
    where = answer.get("LocationConstraint")
    return "eu-west-1" if where == OLD_EU else str(where or US_EAST_1)


_NAMES = (
    "Set `mailbox` to s3://NAME/cloudwhale: names have 3 to 63 small letters, digits, dots and "
    "hyphens, and begin and end with a letter or a digit."
)
_ANOTHER = (
    "Names of buckets are taken in the whole world: `aws s3 mb s3://NAME --region REGION` with "
    "another name, and set `mailbox` to it."
)


def _not_there(bucket: Bucket, error: CloudwhaleError) -> Found:
    code = code_of(error)
    if code in ABSENT:
        return Found(
            "failed",
            f"there is no bucket {bucket.name}",
            f"`cloudwhale doctor aws --fix` makes it, or `aws s3 mb s3://{bucket.name} --region "
            "REGION`.",
        )
    if code in REFUSED:
        return Found(
            "failed",
            f"the bucket {bucket.name} does not let us in: it is another's, or we may not list it",
            f"If it is yours, allow s3:ListBucket on arn:aws:s3:::{bucket.name}. {_ANOTHER}",
        )
    return failed(error)


def _written(calls: Calls, bucket: Bucket, region: str, now: Instant) -> Found:
    """Return whether an object is created once: that is what keeps two agents apart."""
    key = "/".join(part for part in (bucket.prefix, "hello", f"doctor-{now:.6f}") if part)
    own = f"arn:aws:s3:::{bucket.name}/{bucket.prefix + '/' if bucket.prefix else ''}*"
    words = {"Bucket": bucket.name, "Key": key, "Body": b"", "IfNoneMatch": "*"}
    try:
        calls.call(region, "s3", "put_object", **words)
    except CloudwhaleError as error:
        return failed(error, f"Allow s3:PutObject on {own}." if code_of(error) in REFUSED else "")
    once = _is_refused(calls, region, words)
    try:
        calls.call(region, "s3", "delete_object", Bucket=bucket.name, Key=key)
    except CloudwhaleError as error:
        return failed(
            error, f"Allow s3:DeleteObject on {own}." if code_of(error) in REFUSED else ""
        )
    if isinstance(once, Found):
        return once
    if not once:
        return Found(
            "failed",
            f"{bucket.name} lets an object be created twice, so two agents could have one name",
            "Use a bucket of S3 itself: it keeps to If-None-Match.",
        )
    return Found("ok", f"s3://{bucket.name} in {region}, written and read")


def _is_refused(calls: Calls, region: str, words: Mapping[str, object]) -> bool | Found:
    try:
        calls.call(region, "s3", "put_object", **words)
    except CloudwhaleError as error:
        return True if code_of(error) in EXISTS else failed(error)
    return False


def credentials(arn: str, told: Mapping[str, str]) -> Found | None:
    """Return that the mailbox's client finds no credentials; None: it does, or may.

    It reads the environment, else asks the machine that it runs on, and knows no file of `~/.aws`.
    `arn`: who we are; a machine's own role is taken under the name of its instance.
    """
    if any(told.get(name) for name in CREDENTIAL_WORDS) or "/i-" in arn:
        return None
    return Found(
        "failed",
        "the mailbox's client reads the environment, and there are no credentials",
        '`eval "$(aws configure export-credentials --format env)"` puts those of a profile there.',
    )


def environment() -> Mapping[str, str]:
    """Return what this process was told: the mailbox's client reads its region there."""
    return os.environ
