"""Whether the mailbox's bucket is there, ours, open to us, and keeps machines to their folder."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import said_by, says_that_it_is_gone
from cloudwhale_providers.gcp.policies import permissions, role_id
from cloudwhale_providers.rows import Found, failed

FIX = "`cloudwhale doctor gcp --fix`"
ANOTHER = (
    "Names of buckets are taken in the whole world: `gcloud storage buckets create gs://NAME "
    "--location=REGION --uniform-bucket-level-access` with another name, and set `mailbox` in "
    "[clouds.gcp] to gs://NAME/cloudwhale."
)
DAY_S = 86_400


class Bucket(NamedTuple):
    """Where the mailbox is."""

    name: str
    prefix: str = ""


def bucket_of(mailbox: str) -> Bucket | None:
    """Return the bucket of a mailbox's URL; None when it is in none of Cloud Storage's."""
    parts = urlsplit(mailbox)
    if parts.scheme not in ("gs", "gcs") or not parts.netloc:
        return None
    return Bucket(parts.netloc, parts.path.strip("/"))


def look(account: Account, mailbox: str) -> Found:
    """Return what is wrong with the bucket, or that it is well; changes nothing."""
    bucket = bucket_of(mailbox)
    if bucket is None:
        return Found(
            "failed",
            f"machines at GCP cannot reach the mailbox {mailbox or 'of this host'}",
            f"{FIX} makes a bucket and sets `mailbox` of [clouds.gcp]. {ANOTHER}",
        )
    try:
        told = account.calls.call("storage", "buckets.get", bucket=bucket.name)
        number = _number(account)
    except CloudwhaleError as error:
        return _not_there(account, bucket, error)
    if number and str(told.get("projectNumber", number)) != number:
        return Found(
            "failed",
            f"the bucket {bucket.name} belongs to another project: its owner could read and change "
            "what machines are told",
            ANOTHER,
        )
    return _open(account, bucket) or _as_it_is(bucket, told)


def _number(account: Account) -> str:
    """Return the project's number; empty: nobody says, and whose a bucket is stays unknown."""
    try:
        told = account.calls.call(
            "cloudresourcemanager", "projects.get", name=f"projects/{account.project}"
        )
    except CloudwhaleError:
        return ""
    return str(told.get("name", "")).rpartition("/")[2]


def _not_there(account: Account, bucket: Bucket, error: CloudwhaleError) -> Found:
    if says_that_it_is_gone(error):
        return Found(
            "failed",
            f"there is no bucket {bucket.name}",
            f"{FIX} makes it, or `gcloud storage buckets create gs://{bucket.name} "
            f"--project={account.project} --location=REGION --uniform-bucket-level-access`",
        )
    said = said_by(error)
    if said is not None and said.status == 403:
        return Found(
            "failed",
            f"the bucket {bucket.name} does not let us in: it is another's, or we may not see it",
            f"If it is yours, {_give(account, bucket)}. {ANOTHER}",
        )
    return failed(error)


def _open(account: Account, bucket: Bucket) -> Found | None:
    """Return what we may not do there; None: nothing."""
    wanted = list(permissions("mailbox"))
    try:
        answer = account.calls.call(
            "storage", "buckets.testIamPermissions", bucket=bucket.name, permissions=wanted
        )
    except CloudwhaleError as error:
        return failed(error)
    lacking = set(wanted) - set(answer.get("permissions") or ())
    if not lacking:
        return None
    return Found(
        "failed",
        f"not allowed in the bucket {bucket.name}: {', '.join(sorted(lacking))}",
        _give(account, bucket),
    )


def _give(account: Account, bucket: Bucket) -> str:
    role = f"projects/{account.project}/roles/{role_id('mailbox')}"
    return (
        f"`gcloud storage buckets add-iam-policy-binding gs://{bucket.name} --member=user:YOU "
        f"--role={role}`, or --role=roles/storage.admin"
    )


def _as_it_is(bucket: Bucket, told: Mapping[str, Any]) -> Found:
    access = part(told, "iamConfiguration")
    change = f"`gcloud storage buckets update gs://{bucket.name}"
    if not part(access, "uniformBucketLevelAccess").get("enabled"):
        return Found(
            "failed",
            f"the bucket {bucket.name} has no uniform access, so machines could not be kept to "
            "the mailbox's folder",
            f"{change} --uniform-bucket-level-access`",
        )
    kept_s = int(part(told, "softDeletePolicy").get("retentionDurationSeconds") or 0)
    if kept_s:
        return Found(
            "warning",
            f"what is deleted in {bucket.name} is kept, and paid for, {kept_s // DAY_S} days: old "
            "checkpoints too",
            f"{change} --clear-soft-delete`, or {FIX}",
        )
    return Found("ok", f"gs://{bucket.name} in {str(told.get('location', '')).lower()}")


def part(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a part of what was told; empty where it is left out."""
    found: Mapping[str, Any] | None = told.get(key)
    return found or {}
