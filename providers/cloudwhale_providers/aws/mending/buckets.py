"""The mailbox's bucket as it is to be: ours alone, encrypted, and without what nobody reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.asking import Calls, code_of
from cloudwhale_providers.aws.checks_bucket import ABSENT, US_EAST_1, Bucket
from cloudwhale_providers.aws.mending.wants import REFUSED, Want

UNFINISHED_DAYS = 7
OLD_DAYS = 90
"""Longer than any lease: what machines and controller said to each other about a rental."""
MOMENT_DAYS = 7
RENTED = (
    "orders/@", "inbox/@", "agents/@", "boots/@",
    "orders/rent-", "inbox/rent-", "agents/rent-", "boots/rent-",
)  # fmt: skip
"""Folders of rented machines, behind a door or of one without; those of own servers are read for as
long as these live.

The controller removes them by itself; the rule is for those whose controller is gone.
"""
MOMENTS = ("clocks/", "hello/")
"""Written to look at a clock, or whether something can be written."""
TAKEN = frozenset({"BucketAlreadyExists"})
MADE = frozenset({"BucketAlreadyOwnedByYou"})
FORGETS = (
    f"unfinished uploads go after {UNFINISHED_DAYS} days, messages about rented machines after "
    f"{OLD_DAYS}; checkpoints, logs and outputs stay"
)
PRIVATE = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
ENCRYPTED = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
OWNED = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
NOTHING_SET = frozenset(
    {
        "NoSuchPublicAccessBlockConfiguration", "NoSuchLifecycleConfiguration", "NoSuchTagSet",
        "OwnershipControlsNotFoundError", "ServerSideEncryptionConfigurationNotFoundError",
        *ABSENT,
    }
)  # fmt: skip
"""Codes of what a bucket was not told yet; also of a bucket that is still to be made."""


@dataclass(frozen=True, slots=True)
class BucketWants:
    """What is wanted of one bucket; asks with the owner's number, so another's is never changed."""

    calls: Calls
    bucket: Bucket
    account: str
    """Number of ours."""
    region: str
    """Where it is to be made."""
    whose: Callable[[], str]
    """Returns the installation's name, once the mailbox is there."""

    def wants(self) -> Sequence[Want]:
        """Return all of them, the bucket first."""
        name = self.bucket.name
        return (
            Want(
                "bucket",
                f"s3://{name}",
                f"make the bucket {name} in {self.region}",
                self._is_missing,
                self._make,
            ),
            self._told(
                ("bucket's privacy", "no public access", "block all public access to it"),
                ("get_public_access_block", "PublicAccessBlockConfiguration"),
                lambda said: said == PRIVATE,
                lambda _: self._put(
                    "put_public_access_block", PublicAccessBlockConfiguration=PRIVATE
                ),
            ),
            self._told(
                ("bucket's owner", "the account owns all in it", "let the account own all in it"),
                ("get_bucket_ownership_controls", "OwnershipControls"),
                lambda said: said == OWNED,
                lambda _: self._put("put_bucket_ownership_controls", OwnershipControls=OWNED),
            ),
            self._told(
                ("bucket's encryption", "what comes in is encrypted", "encrypt what comes in"),
                ("get_bucket_encryption", "ServerSideEncryptionConfiguration"),
                lambda said: bool(said) and bool(said["Rules"]),
                lambda _: self._put(
                    "put_bucket_encryption", ServerSideEncryptionConfiguration=ENCRYPTED
                ),
            ),
            self._told(
                ("bucket's lifecycle", FORGETS, f"forget in it: {FORGETS}"),
                ("get_bucket_lifecycle_configuration", "Rules"),
                lambda said: all(one in (said or ()) for one in rules(self.bucket.prefix)),
                self._put_rules,
            ),
            self._told(
                ("bucket's tag", "names the installation", "tag it with the installation"),
                ("get_bucket_tagging", "TagSet"),
                lambda said: any(one["Key"] == tags.INSTALLATION for one in said or ()),
                self._put_tag,
            ),
        )

    # -- the bucket itself -------------------------------------------------------------------

    def _is_missing(self) -> bool:
        words = {"Bucket": self.bucket.name, "ExpectedBucketOwner": self.account}
        try:
            self.calls.call(self.region, "s3", "head_bucket", **words)
        except CloudwhaleError as error:
            if code_of(error) in ABSENT:
                return True
            if code_of(error) in REFUSED:
                raise self._not_ours() from error
            raise
        return False

    def _make(self) -> None:
        words: dict[str, Any] = {"Bucket": self.bucket.name}
        if self.region != US_EAST_1:  # which has no word there (S3 API reference, CreateBucket)
            words["CreateBucketConfiguration"] = {"LocationConstraint": self.region}
        try:
            self.calls.call(self.region, "s3", "create_bucket", **words)
        except CloudwhaleError as error:
            if code_of(error) in TAKEN:
                raise self._not_ours() from error
            if code_of(error) not in MADE:
                raise

    def _not_ours(self) -> Denied:
        return Denied(
            f"the bucket {self.bucket.name} is another account's, or we may not see it",
            "Names of buckets are taken in the whole world: set `mailbox` to another name, "
            "s3://NAME/cloudwhale, and run this again. If it is yours, allow s3:ListBucket on "
            f"arn:aws:s3:::{self.bucket.name}.",
        )

    # -- what it is told ---------------------------------------------------------------------

    def _told(
        self,
        words: tuple[str, str, str],
        get: tuple[str, str],
        is_well: Callable[[Any], bool],
        put: Callable[[Any], None],
    ) -> Want:
        """Return what a bucket is to be told; `words`: the row, when it was, what telling it is."""
        name, there, does = words
        return Want(
            name, there, does,
            lambda: not is_well(self._said(*get)), lambda: put(self._said(*get)),
            hangs_on="bucket",
        )  # fmt: skip

    def _said(self, verb: str, key: str) -> Any:
        """Return what the bucket was told; None where it was told nothing."""
        words = {"Bucket": self.bucket.name, "ExpectedBucketOwner": self.account}
        try:
            return self.calls.call(self.region, "s3", verb, **words).get(key)
        except CloudwhaleError as error:
            if code_of(error) in NOTHING_SET:
                return None
            raise

    def _put(self, verb: str, **words: Any) -> None:
        own = {"Bucket": self.bucket.name, "ExpectedBucketOwner": self.account}
        self.calls.call(self.region, "s3", verb, **own, **words)

    def _put_rules(self, said: Sequence[Mapping[str, Any]] | None) -> None:
        """Set our rules beside those that somebody else has set."""
        ours = rules(self.bucket.prefix)
        names = {one["ID"] for one in ours}
        others = [one for one in said or () if one.get("ID") not in names]
        self._put(
            "put_bucket_lifecycle_configuration",
            LifecycleConfiguration={"Rules": [*others, *ours]},
        )

    def _put_tag(self, said: Sequence[Mapping[str, str]] | None) -> None:
        ours = {"Key": tags.INSTALLATION, "Value": self.whose()}
        self._put("put_bucket_tagging", Tagging={"TagSet": [*(said or ()), ours]})


def rules(prefix: str) -> list[dict[str, Any]]:
    """Return the rules by which a mailbox's bucket forgets; `prefix`: the mailbox's folder."""
    folder = f"{prefix}/" if prefix else ""
    whose = f"cloudwhale {prefix}".strip()
    old = [(name, OLD_DAYS) for name in RENTED] + [(name, MOMENT_DAYS) for name in MOMENTS]
    return [
        {
            "ID": f"{whose} unfinished",
            "Status": "Enabled",
            "Filter": {"Prefix": folder},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UNFINISHED_DAYS},
        },
        *(
            {
                "ID": f"{whose} {name}",
                "Status": "Enabled",
                "Filter": {"Prefix": folder + name},
                "Expiration": {"Days": days},
            }
            for name, days in old
        ),
    ]
