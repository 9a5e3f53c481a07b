"""The roles that ship, as roles of the project, and the service account of machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied
from cloudwhale_providers.gcp.asking import Calls, said_by, says_that_it_is_gone
from cloudwhale_providers.gcp.policies import Name, permissions, role, role_id
from cloudwhale_providers.wants import Want


@dataclass(frozen=True, slots=True)
class PeopleWants:
    """What is wanted of IAM."""

    calls: Calls
    project: str
    machine: str
    """E-mail of the machines' account."""

    def roles(self, wanted: Sequence[Name]) -> Sequence[Want]:
        """Return a want for each role; one of an older version is brought up to date."""
        return tuple(map(self._role, wanted))

    def account(self) -> Sequence[Want]:
        """Return the want of the machines' account."""
        return (
            Want(
                "machine account", f"service account {self.machine}",
                f"make the service account {self.machine}", self._is_missing, self._make,
            ),
        )  # fmt: skip

    # -- roles -------------------------------------------------------------------------------

    def _role(self, name: Name) -> Want:
        return Want(
            f"role {role_id(name)}", f"as it ships: {role(name)['description']}",
            f"make the role {role_id(name)} in {self.project}",
            lambda: self._is_old(name), lambda: self._keep(name),
        )  # fmt: skip

    def _known(self, name: Name) -> Mapping[str, Any] | None:
        path = f"projects/{self.project}/roles/{role_id(name)}"
        try:
            return self.calls.call("iam", "projects.roles.get", name=path)
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return None
            raise

    def _is_old(self, name: Name) -> bool:
        found = self._known(name)
        if found is None or found.get("deleted"):
            return True
        return set(found.get("includedPermissions") or ()) != set(permissions(name))

    def _keep(self, name: Name) -> None:
        path, found = f"projects/{self.project}/roles/{role_id(name)}", self._known(name)
        if found is None:
            self.calls.call(
                "iam", "projects.roles.create", parent=f"projects/{self.project}",
                body={"roleId": role_id(name), "role": role(name)},
            )  # fmt: skip
            return
        if found.get("deleted"):  # its name is taken for a week
            self.calls.call("iam", "projects.roles.undelete", name=path, body={})
        self.calls.call(
            "iam", "projects.roles.patch", name=path, updateMask="includedPermissions",
            body={"includedPermissions": list(permissions(name))},
        )  # fmt: skip

    # -- the account -------------------------------------------------------------------------

    def _is_missing(self) -> bool:
        path = f"projects/-/serviceAccounts/{self.machine}"
        try:
            self.calls.call("iam", "projects.serviceAccounts.get", name=path)
        except CloudwhaleError as error:
            if says_that_it_is_gone(error):
                return True
            raise
        return False

    def _make(self) -> None:
        name, _, domain = self.machine.partition("@")
        if not domain.startswith(f"{self.project}."):
            raise Denied(
                f"{self.machine} is an account of another project, and is not there",
                "Set `service_account` of [clouds.gcp] to one that is there, or leave it out.",
            )
        try:
            self.calls.call(
                "iam", "projects.serviceAccounts.create", name=f"projects/{self.project}",
                body={
                    "accountId": name,
                    "serviceAccount": {"displayName": "machines that cloudwhale rents"},
                },
            )  # fmt: skip
        except CloudwhaleError as error:
            said = said_by(error)
            if said is None or said.status != 409:  # somebody was faster
                raise
