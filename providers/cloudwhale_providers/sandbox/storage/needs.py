"""Which permissions a request to Cloud Storage's XML API needs, and on what.

Cloud Storage docs, "IAM permissions for XML requests": whoever replaces an object must be allowed
to delete it, too. Who demands that there is none replaces none.
"""

from collections.abc import Callable, Sequence
from urllib.parse import unquote

from cloudwhale_providers.sandbox.endpoint.messages import Asked
from cloudwhale_providers.sandbox.storage.words import COPY_SOURCE, IF_GENERATION

Need = tuple[str, str]
"""A permission, and the resource that it is needed on."""
MayDo = Callable[[str, str, str], bool]
"""Says whether whoever shows a token has a permission on a resource."""


def anybody(token: str, permission: str, resource: str) -> bool:
    """Say yes: a token that is known opens everything."""
    return True


def needs_of(asked: Asked, is_there: Callable[[str, str], bool]) -> Sequence[Need]:
    """Return what a request needs; `is_there`: whether a bucket has an object now."""
    bucket, _, key = asked.path.lstrip("/").partition("/")
    if not key:
        is_list = asked.method == "GET" and "location" not in asked.query
        return [(f"storage.{'objects.list' if is_list else 'buckets.get'}", bucket_path(bucket))]
    is_new = asked.headers.get(IF_GENERATION) == "0"
    replaces = ["storage.objects.delete"] if not is_new and is_there(bucket, key) else []
    found = [(one, object_path(bucket, key)) for one in _of_object(asked, replaces)]
    source = asked.headers.get(COPY_SOURCE)
    if asked.method == "PUT" and source is not None:
        theirs, _, name = unquote(source).lstrip("/").partition("/")
        found.append(("storage.objects.get", object_path(theirs, name)))
    return found


def _of_object(asked: Asked, replaces: Sequence[str]) -> Sequence[str]:
    makes, uploads = "storage.objects.create", "storage.multipartUploads.create"
    if "uploadId" in asked.query:
        return {
            "PUT": [uploads, makes],
            "POST": [uploads, makes, *replaces],
            "DELETE": ["storage.multipartUploads.abort"],
            "GET": ["storage.multipartUploads.listParts"],
        }.get(asked.method, [])
    return {
        "PUT": [makes, *replaces],
        "POST": [uploads, makes],
        "DELETE": ["storage.objects.delete"],
        "GET": ["storage.objects.get"],
        "HEAD": ["storage.objects.get"],
    }.get(asked.method, [])


def bucket_path(bucket: str) -> str:
    """Return what IAM calls a bucket."""
    return f"projects/_/buckets/{bucket}"


def object_path(bucket: str, key: str) -> str:
    """Return what IAM calls an object."""
    return f"{bucket_path(bucket)}/objects/{key}"
