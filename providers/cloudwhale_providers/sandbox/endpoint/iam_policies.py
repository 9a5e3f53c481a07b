"""A small evaluator of IAM policies: whether one allows what a request needs.

IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements reference": what nothing
allows is denied, and an explicit deny goes before every allow. A policy that says what is not known
here is an error, so that nothing is allowed by being passed over.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from cloudwhale_providers.sandbox.endpoint.iam_conditions import (
    VARIABLE,
    Absent,
    Condition,
    Context,
    Malformed,
    arn_like,
    arn_source,
    conditions,
    exact,
    several,
    source,
    texts,
)

VERSION = "2012-10-17"
"""The one in which policies have variables."""
KNOWN = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "Condition"})
NONE = r"(?!)"
"""Matches nothing."""
Verdict = Literal["allowed", "implicitly", "explicitly"]
"""The last two: denied, as nothing allows it, or as a statement says so."""


@dataclass(frozen=True, slots=True)
class Need:
    """One permission that a request needs, on one thing."""

    action: str
    """As IAM calls it, `ec2:CreateFleet`."""
    resource: str
    """ARN; `*` where the action knows no things, and `…/*` for what is still to be made."""
    context: Context = field(default_factory=dict[str, tuple[str, ...]])


class Statement(NamedTuple):
    """One statement of a policy."""

    denies: bool
    actions: re.Pattern[str]
    all_but: bool
    """Whether the actions are those that are *not* meant."""
    resources: re.Pattern[str]
    """Those without variables, all in one: a store is asked hundreds of times a second."""
    filled: tuple[str, ...]
    """Resources with variables, which each request fills in."""
    conditions: tuple[Condition | Absent, ...]

    def meets(self, need: Need) -> bool:
        """Say whether it speaks of what is needed."""
        named = self.actions.fullmatch(need.action) is not None
        if named == self.all_but:
            return False
        if self.resources.fullmatch(need.resource) is None:
            if not any(_is_meant(need, resource) for resource in self.filled):
                return False
        return all(one.holds(need.context) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class Policy:
    """What somebody may do."""

    statements: tuple[Statement, ...]

    def verdict(self, need: Need) -> Verdict:
        """Say whether something that is needed is allowed."""
        met = [one.denies for one in self.statements if one.meets(need)]
        if any(met):
            return "explicitly"
        return "allowed" if met else "implicitly"

    def allows(self, need: Need) -> bool:
        """Say whether something that is needed is allowed."""
        return self.verdict(need) == "allowed"


def policy(document: Mapping[str, Any]) -> Policy:
    """Return a policy as its document has it; raise Malformed."""
    if document.get("Version") != VERSION or set(document) - {"Version", "Id", "Statement"}:
        raise Malformed(f"a policy has Version {VERSION} and statements, and nothing else")
    some = several(document.get("Statement"))
    if not some:
        raise Malformed("it has no statement")
    return Policy(tuple(_statement(one) for one in some))


def _statement(said: Any) -> Statement:
    if not isinstance(said, dict):
        raise Malformed("a statement has elements")
    words = cast("dict[str, Any]", said)
    strange = set(words) - KNOWN
    if strange:
        raise Malformed(f"{min(strange)} is not known here")
    if words.get("Effect") not in ("Allow", "Deny"):
        raise Malformed("Effect is Allow or Deny")
    if ("Action" in words) == ("NotAction" in words) or "Resource" not in words:
        raise Malformed("a statement has Action or NotAction, and Resource")
    actions = texts(words.get("Action") or words.get("NotAction"))
    resources = texts(words["Resource"])
    fixed = [arn_source(one) for one in resources if VARIABLE.search(one) is None]
    return Statement(
        words["Effect"] == "Deny",
        re.compile("|".join(map(source, actions)), re.IGNORECASE),
        "NotAction" in words,
        re.compile("|".join(fixed) or NONE, re.DOTALL),
        tuple(one for one in resources if VARIABLE.search(one)),
        conditions(words["Condition"]) if "Condition" in words else (),
    )


def _is_meant(need: Need, resource: str) -> bool:
    filled = exact(resource, need.context)
    return filled is not None and arn_like(need.resource, filled)
