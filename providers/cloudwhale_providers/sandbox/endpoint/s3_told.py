"""What a bucket of the sandbox was told of itself: kept as it came, and given back so."""

from collections.abc import Mapping
from typing import NamedTuple

from cloudwhale_providers.sandbox.endpoint.messages import Answer, Asked
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.s3_words import body_of


class Kind(NamedTuple):
    """One of the things that a bucket can be told."""

    action: str
    """As S3's API calls it, behind `Get` and `Put`."""
    code: str
    """With which S3 says that it was not told."""
    says: str
    is_answered_with: int = 200
    """The status of what has told it."""


KINDS: Mapping[str, Kind] = {
    "publicAccessBlock": Kind(
        "PublicAccessBlock",
        "NoSuchPublicAccessBlockConfiguration",
        "The public access block configuration was not found",
    ),
    "ownershipControls": Kind(
        "BucketOwnershipControls",
        "OwnershipControlsNotFoundError",
        "The bucket ownership controls were not found",
    ),
    "encryption": Kind(
        "BucketEncryption",
        "ServerSideEncryptionConfigurationNotFoundError",
        "The server side encryption configuration was not found",
    ),
    "lifecycle": Kind(
        "BucketLifecycleConfiguration",
        "NoSuchLifecycleConfiguration",
        "The lifecycle configuration does not exist",
    ),
    "tagging": Kind("BucketTagging", "NoSuchTagSet", "The TagSet does not exist", 204),
}
"""By the word of the address (Amazon S3 API Reference)."""


class Told:
    """What buckets were told, in memory; S3's own defaults are not played."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], bytes] = {}

    def answer(self, asked: Asked, bucket: str, word: str) -> Answer:
        """Keep, give or forget one thing; raise Refused for what was never told."""
        kind, key = KINDS[word], (bucket, word)
        if asked.method == "PUT":
            self._told[key] = body_of(asked)
            return Answer(kind.is_answered_with)
        if asked.method == "DELETE":
            self._told.pop(key, None)
            return Answer(204)
        if key not in self._told:
            raise Refused(kind.code, kind.says, 404)
        return Answer(200, {"Content-Type": "application/xml"}, self._told[key])


def word_of(asked: Asked) -> str:
    """Return the word of the address that says what is told; empty for other requests."""
    return next((word for word in asked.query if word in KINDS), "")


def action_of(asked: Asked, word: str) -> str:
    """Return what S3 calls a request about what a bucket is told."""
    return asked.method.title() + KINDS[word].action
