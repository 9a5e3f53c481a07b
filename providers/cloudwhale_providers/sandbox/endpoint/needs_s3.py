"""What a request of S3 needs to be allowed.

Amazon S3 User Guide, "Required permissions for Amazon S3 API operations".
"""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from cloudwhale_providers.sandbox.endpoint.iam_conditions import Context
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need
from cloudwhale_providers.sandbox.endpoint.messages import Asked
from cloudwhale_providers.sandbox.endpoint.s3_actions import action_of

LIST = "s3:ListBucket"
OBJECTS: Mapping[str, str] = {
    "HeadObject": "GetObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "ListParts": "ListMultipartUploadParts",
}
"""Requests about objects whose permission is called otherwise."""
BUCKETS: Mapping[str, str] = {
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "PutBucket": "CreateBucket",
    "ListMultipartUploads": "ListBucketMultipartUploads",
}
LISTED = ("prefix", "delimiter", "max-keys")
OF_A_BUCKET: Mapping[tuple[str, str], str] = {
    ("GET", "location"): "GetBucketLocation",
    ("GET", "lifecycle"): "GetLifecycleConfiguration",
    ("PUT", "lifecycle"): "PutLifecycleConfiguration",
    ("GET", "encryption"): "GetEncryptionConfiguration",
    ("PUT", "encryption"): "PutEncryptionConfiguration",
    ("GET", "publicAccessBlock"): "GetBucketPublicAccessBlock",
    ("PUT", "publicAccessBlock"): "PutBucketPublicAccessBlock",
    ("GET", "ownershipControls"): "GetBucketOwnershipControls",
    ("PUT", "ownershipControls"): "PutBucketOwnershipControls",
    ("GET", "tagging"): "GetBucketTagging",
    ("PUT", "tagging"): "PutBucketTagging",
    ("GET", "versioning"): "GetBucketVersioning",
}
"""Settings of a bucket, by what the address asks for."""


def needs(asked: Asked) -> Sequence[Need]:
    """Return what a request needs; of many that are deleted at once, each is asked for alone."""
    bucket, _, key = asked.path.lstrip("/").partition("/")
    if not bucket:
        return (Need("s3:ListAllMyBuckets", "*"),)
    if not key:
        return _of_bucket(asked, bucket)
    action = action_of(asked)
    found = [of_object(OBJECTS.get(action, action), bucket, key)]
    source = asked.headers.get("x-amz-copy-source")
    if source is not None:
        from_bucket, _, from_key = unquote(source).lstrip("/").partition("/")
        found.append(of_object("GetObject", from_bucket, from_key))
    return found


def of_object(action: str, bucket: str, key: str) -> Need:
    """Return the need of an action on an object."""
    return Need(f"s3:{action}", f"arn:aws:s3:::{bucket}/{key}")


def existence(bucket: str, key: str) -> Need:
    """Return the need of whoever is to hear that there is no such object: else it is refused.

    GetObject of the S3 API Reference, "Permissions". The key stands for the prefix: so AWS does it,
    as the authors of Ceph's gateway found (ceph pull request 68577).
    """
    return Need(LIST, f"arn:aws:s3:::{bucket}", {"s3:prefix": (key,)})


def _of_bucket(asked: Asked, bucket: str) -> Sequence[Need]:
    arn, query, action = f"arn:aws:s3:::{bucket}", asked.query, action_of(asked)
    if action == "DeleteObjects" and "delete" in query:
        return ()
    for word in query:
        special = OF_A_BUCKET.get((asked.method, word))
        if special is not None:
            return (Need(f"s3:{special}", arn),)
    context: Context = {f"s3:{word}": (query[word],) for word in LISTED if word in query}
    return (Need(f"s3:{BUCKETS.get(action, action)}", arn, context),)
