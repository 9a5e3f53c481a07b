"""Who gets which role on what: a policy is read, added to, and written as a whole."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.gcp.asking import Calls, said_by, says_that_it_is_gone
from cloudwhale_providers.gcp.policies import Binding, Places, role_id
from cloudwhale_providers.wants import Want

VERSION = 3
"""Of a policy with conditions; who reads an older one loses them (IAM docs, "Policy versions")."""
TRIES = 5
"""Somebody else may write the same policy meanwhile: its etag tells, and it is read anew."""
CHANGED = frozenset({409, 412})


@dataclass(frozen=True, slots=True)
class GivenRoles:
    """What is wanted of the policies of a project, its bucket and its account."""

    calls: Calls
    places: Places

    def wants(self, given: Sequence[Binding]) -> Sequence[Want]:
        """Return a want for each binding."""
        return tuple(map(self._want, given))

    def _want(self, one: Binding) -> Want:
        where = {
            "project": f"the project {self.places.project}",
            "account": f"the service account {self.places.machine}",
            "bucket": f"the bucket {self.places.bucket}",
        }[one.on]
        name = role_id(one.role)
        hangs_on = {"account": "machine account", "bucket": "bucket"}.get(one.on, f"role {name}")
        part = " in the mailbox's folder" if one.expression else ""
        return Want(
            f"right {name}", f"{one.member} has it on {where}",
            f"give {one.member} the role {name} on {where}{part}",
            lambda: not self._has(one), lambda: self._give(one), hangs_on,
        )  # fmt: skip

    # -- what policies say -------------------------------------------------------------------

    def _role(self, one: Binding) -> str:
        return f"projects/{self.places.project}/roles/{role_id(one.role)}"

    def _has(self, one: Binding) -> bool:
        try:
            bindings = self._policy(one).get("bindings") or ()
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):  # what it is on is still to be made
                return False
            raise
        return any(self._is_it(one, told) and one.member in told["members"] for told in bindings)

    def _is_it(self, one: Binding, told: Mapping[str, Any]) -> bool:
        said: Mapping[str, Any] = told.get("condition") or {}
        is_same = str(said.get("expression", "")) == one.expression
        return told.get("role") == self._role(one) and is_same

    def _give(self, one: Binding) -> None:
        """Add a member; what the policy says otherwise stays. Raise CloudwhaleError."""
        for last in [False] * (TRIES - 1) + [True]:
            policy = self._policy(one)
            bindings = self._with(one, policy.get("bindings") or ())
            try:
                self._set(one, {**policy, "version": VERSION, "bindings": bindings})
                return
            except CloudwhaleError as error:
                said = said_by(error)
                if last or said is None or said.status not in CHANGED:
                    raise

    def _with(self, one: Binding, bindings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        found = [dict(told) for told in bindings]
        for told in found:
            if self._is_it(one, told):
                told["members"] = [*told["members"], one.member]
                return found
        added: dict[str, Any] = {"role": self._role(one), "members": [one.member]}
        if one.expression:
            added["condition"] = {"title": one.title, "expression": one.expression}
        return [*found, added]

    # -- where they lie ----------------------------------------------------------------------

    def _policy(self, one: Binding) -> dict[str, Any]:
        return dict(_READ[one.on](self.calls, self.places))

    def _set(self, one: Binding, policy: Mapping[str, Any]) -> None:
        _WRITE[one.on](self.calls, self.places, policy)


def _of_project(calls: Calls, places: Places) -> Mapping[str, Any]:
    return calls.call(
        "cloudresourcemanager", "projects.getIamPolicy", resource=f"projects/{places.project}",
        body={"options": {"requestedPolicyVersion": VERSION}},
    )  # fmt: skip


def _of_account(calls: Calls, places: Places) -> Mapping[str, Any]:
    return calls.call(
        "iam", "projects.serviceAccounts.getIamPolicy", resource=_account(places),
        options_requestedPolicyVersion=VERSION,
    )  # fmt: skip


def _of_bucket(calls: Calls, places: Places) -> Mapping[str, Any]:
    return calls.call(
        "storage", "buckets.getIamPolicy", bucket=places.bucket,
        optionsRequestedPolicyVersion=VERSION,
    )  # fmt: skip


def _set_project(calls: Calls, places: Places, policy: Mapping[str, Any]) -> None:
    path = f"projects/{places.project}"
    calls.call(
        "cloudresourcemanager", "projects.setIamPolicy", resource=path, body={"policy": policy}
    )


def _set_account(calls: Calls, places: Places, policy: Mapping[str, Any]) -> None:
    path = _account(places)
    calls.call("iam", "projects.serviceAccounts.setIamPolicy", resource=path,
               body={"policy": policy})  # fmt: skip


def _set_bucket(calls: Calls, places: Places, policy: Mapping[str, Any]) -> None:
    calls.call("storage", "buckets.setIamPolicy", bucket=places.bucket, body=policy)


def _account(places: Places) -> str:
    return f"projects/-/serviceAccounts/{places.machine}"


_READ: Mapping[str, Callable[[Calls, Places], Mapping[str, Any]]] = {
    "project": _of_project, "account": _of_account, "bucket": _of_bucket,
}  # fmt: skip
_WRITE: Mapping[str, Callable[[Calls, Places, Mapping[str, Any]], None]] = {
    "project": _set_project, "account": _set_account, "bucket": _set_bucket,
}  # fmt: skip
