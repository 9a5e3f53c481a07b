"""The mailbox's bucket as it is to be: ours alone, uniform, and without what nobody reads."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.asking import Calls, said_by, says_that_it_is_gone
from cloudwhale_providers.gcp.checks_bucket import ANOTHER, Bucket, part
from cloudwhale_providers.wants import Want

UNFINISHED_DAYS = 7
OLD_DAYS = 90
"""Longer than any lease: what machines and controller said to each other about a rental."""
MOMENT_DAYS = 7
RENTED = ("orders/rent-", "inbox/rent-", "agents/rent-", "boots/rent-")
"""Folders of rented machines; those of own servers are read for as long as these live.

The controller removes them by itself; the rule is for those whose controller is gone.
"""
MOMENTS = ("clocks/", "hello/")
"""Written to look at a clock, or whether something can be written."""
FORGETS = (
    f"unfinished uploads go after {UNFINISHED_DAYS} days, messages about rented machines after "
    f"{OLD_DAYS}; checkpoints, logs and outputs stay"
)
PRIVATE = "enforced"


@dataclass(frozen=True, slots=True)
class BucketWants:
    """What is wanted of one bucket."""

    calls: Calls
    bucket: Bucket
    project: str
    region: str
    """Where it is to be made."""
    whose: Callable[[], str]
    """Returns the installation's name, once the mailbox is there."""

    def wants(self) -> Sequence[Want]:
        """Return all of them, the bucket first."""
        name = self.bucket.name
        return (
            Want(
                "bucket", f"gs://{name}", f"make the bucket {name} in {self.region}",
                self._is_missing, self._make,
            ),
            self._told(
                ("bucket's access", "uniform, and never public",
                 "make access to it uniform, and never public"),
                _is_locked, lambda _: _LOCKED,
            ),
            self._told(
                ("bucket's soft delete", "what is deleted is gone",
                 "let what is deleted in it be gone, instead of kept and paid for"),
                _keeps_nothing, lambda _: {"softDeletePolicy": {"retentionDurationSeconds": 0}},
            ),
            self._told(
                ("bucket's lifecycle", FORGETS, f"forget in it: {FORGETS}"),
                self._forgets, self._rules,
            ),
            self._told(
                ("bucket's label", "names the installation", "label it with the installation"),
                lambda told: names.INSTALLATION in part(told, "labels"),
                lambda _: {"labels": {names.INSTALLATION: names.label(self.whose())}},
            ),
        )  # fmt: skip

    # -- the bucket itself -------------------------------------------------------------------

    def _get(self) -> Mapping[str, Any]:
        return self.calls.call("storage", "buckets.get", bucket=self.bucket.name)

    def _is_missing(self) -> bool:
        try:
            self._get()
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return True
            said = said_by(error)
            if said is not None and said.status == 403:
                raise self._not_ours() from error
            raise
        return False

    def _make(self) -> None:
        body: dict[str, Any] = {"name": self.bucket.name, "location": self.region, **_LOCKED}
        try:
            self.calls.call("storage", "buckets.insert", project=self.project, body=body)
        except CloudwhaleError as error:
            said = said_by(error)
            if said is None or said.status != 409:
                raise
            if self._is_missing():  # raises for another's; else somebody was faster
                raise self._not_ours() from error

    def _not_ours(self) -> Denied:
        says = f"the bucket {self.bucket.name} is another project's, or we may not see it"
        return Denied(says, ANOTHER)

    # -- what it is told ---------------------------------------------------------------------

    def _told(
        self,
        words: tuple[str, str, str],
        is_well: Callable[[Mapping[str, Any]], bool],
        change: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    ) -> Want:
        """Return what a bucket is to be told; `words`: the row, when it was, what telling it is."""
        name, there, does = words
        return Want(name, there, does, lambda: self._lacks(is_well),
                    lambda: self._patch(change(self._get())), hangs_on="bucket")  # fmt: skip

    def _lacks(self, is_well: Callable[[Mapping[str, Any]], bool]) -> bool:
        """Say whether it is to be told; of one that is still to be made that is so."""
        try:
            return not is_well(self._get())
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return True
            raise

    def _patch(self, body: Mapping[str, Any]) -> None:
        self.calls.call("storage", "buckets.patch", bucket=self.bucket.name, body=dict(body))

    def _forgets(self, told: Mapping[str, Any]) -> bool:
        there: Sequence[Any] = part(told, "lifecycle").get("rule") or ()
        return all(one in there for one in rules(self.bucket.prefix))

    def _rules(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the lifecycle with our rules beside those that somebody else has set."""
        there: Sequence[Any] = part(told, "lifecycle").get("rule") or ()
        ours = rules(self.bucket.prefix)
        others = [one for one in there if one not in ours]
        return {"lifecycle": {"rule": [*others, *ours]}}


_LOCKED: Mapping[str, Any] = {
    "iamConfiguration": {
        "uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": PRIVATE,
    },
}  # fmt: skip


def _is_locked(told: Mapping[str, Any]) -> bool:
    access = part(told, "iamConfiguration")
    is_uniform = bool(part(access, "uniformBucketLevelAccess").get("enabled"))
    return is_uniform and access.get("publicAccessPrevention") == PRIVATE


def _keeps_nothing(told: Mapping[str, Any]) -> bool:
    policy = part(told, "softDeletePolicy")
    return int(policy.get("retentionDurationSeconds") or 0) == 0


def rules(prefix: str) -> list[dict[str, Any]]:
    """Return the rules by which a mailbox's bucket forgets; `prefix`: the mailbox's folder."""
    folder = f"{prefix}/" if prefix else ""
    old = [folder + name for name in RENTED]
    moments = [folder + name for name in MOMENTS]
    return [
        _rule("AbortIncompleteMultipartUpload", UNFINISHED_DAYS, [folder] if folder else []),
        _rule("Delete", OLD_DAYS, old),
        _rule("Delete", MOMENT_DAYS, moments),
    ]


def _rule(does: str, days: int, prefixes: Sequence[str]) -> dict[str, Any]:
    condition: dict[str, Any] = {"age": days}
    if prefixes:
        condition["matchesPrefix"] = list(prefixes)
    return {"action": {"type": does}, "condition": condition}
