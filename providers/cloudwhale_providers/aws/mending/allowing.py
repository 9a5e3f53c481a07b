"""Allows a user or a role of the account what cloudwhale needs, by a policy of its own.

A managed one: an inline policy of a user holds 2,048 characters, a third of it (IAM quotas).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied, SettingsError
from cloudwhale_providers.aws.asking import Calls, code_of
from cloudwhale_providers.aws.checks_roles import ABSENT, IAM_REGION
from cloudwhale_providers.aws.mending.documents import same
from cloudwhale_providers.aws.mending.wants import Want

MOST_VERSIONS = 5  # of a managed policy (IAM quotas)
KINDS = ("user", "role", "group")


@dataclass(frozen=True, slots=True)
class Allowing:
    """What is wanted of IAM for one user, role or group."""

    calls: Calls
    account: str
    """Number of ours."""
    name: str
    """Of the policy."""
    document: Mapping[str, Any]
    to: str
    """`ann`, `user/ann`, `role/night`, or an ARN of these."""

    def wants(self) -> Sequence[Want]:
        """Return the policy, and that it is attached; raise SettingsError for an odd name."""
        kind, who = whom(self.to)
        return (
            Want(
                "policy", self.name, f"make the policy {self.name}", self._is_old, self._make
            ),
            Want(
                "permission", f"{kind} {who} may all that cloudwhale needs",
                f"attach that policy to the {kind} {who}",
                lambda: not self._is_attached(kind, who), lambda: self._attach(kind, who),
                "policy",
            ),
        )  # fmt: skip

    @property
    def _arn(self) -> str:
        return f"arn:aws:iam::{self.account}:policy/{self.name}"

    def _ask(self, verb: str, **words: Any) -> Mapping[str, Any]:
        return self.calls.call(IAM_REGION, "iam", verb, **words)

    def _is_old(self) -> bool:
        """Say whether the policy is missing, or another version's."""
        try:
            found = self._ask("get_policy", PolicyArn=self._arn)["Policy"]
        except CloudwhaleError as error:
            if code_of(error) in ABSENT:
                return True
            raise
        version = str(found["DefaultVersionId"])
        answer = self._ask("get_policy_version", PolicyArn=self._arn, VersionId=version)
        return not same(self.document, answer["PolicyVersion"]["Document"])

    def _make(self) -> None:
        text = json.dumps(self.document, separators=(",", ":"))
        try:
            versions = self._ask("list_policy_versions", PolicyArn=self._arn)["Versions"]
        except CloudwhaleError as error:
            if code_of(error) not in ABSENT:
                raise
            self._ask("create_policy", PolicyName=self.name, PolicyDocument=text)
            return
        others = [one for one in versions if not one["IsDefaultVersion"]]
        if len(versions) >= MOST_VERSIONS:
            oldest = min(others, key=lambda one: one["CreateDate"])
            self._ask("delete_policy_version", PolicyArn=self._arn, VersionId=oldest["VersionId"])
        self._ask(
            "create_policy_version", PolicyArn=self._arn, PolicyDocument=text, SetAsDefault=True
        )

    def _is_attached(self, kind: str, who: str) -> bool:
        try:
            answer = self._ask(f"list_attached_{kind}_policies", **{f"{kind.title()}Name": who})
        except CloudwhaleError as error:
            if code_of(error) not in ABSENT:
                raise
            says, remedy = f"the account has no {kind} {who}", f"`aws iam list-{kind}s` lists them."
            raise Denied(says, remedy) from error
        return any(one["PolicyArn"] == self._arn for one in answer["AttachedPolicies"])

    def _attach(self, kind: str, who: str) -> None:
        self._ask(f"attach_{kind}_policy", **{f"{kind.title()}Name": who}, PolicyArn=self._arn)


def whom(said: str) -> tuple[str, str]:
    """Return kind and name of whoever is meant; raise SettingsError for none that IAM has."""
    plain = said.rpartition(":")[2] if said.startswith("arn:") else said
    kind, _, name = plain.rpartition("/")
    kind = kind.partition("/")[0] or ("" if plain != said else "user")
    if kind not in KINDS or not name:
        raise SettingsError(
            f"--allow: {said!r} is no user, role or group of IAM",
            "Write user/NAME, role/NAME, group/NAME, or its ARN; `aws sts get-caller-identity` "
            "says who you are.",
        )
    return kind, name
