"""The roles of machines, of their stops and of spot, with the policies that ship."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.aws.asking import Calls, code_of
from cloudwhale_providers.aws.checks_bucket import Bucket
from cloudwhale_providers.aws.checks_roles import (
    ABSENT,
    IAM_REGION,
    SCHEDULER,
    SPOT_ROLE,
    several,
    trusts,
)
from cloudwhale_providers.aws.mending.documents import Roles, name_for, same
from cloudwhale_providers.aws.mending.wants import Want
from cloudwhale_providers.aws.policies import Places, filled

EC2 = "ec2.amazonaws.com"
SPOT = "spot.amazonaws.com"
FULL = "with a role"
THERE = frozenset({"EntityAlreadyExists", "InvalidInput"})
"""Somebody was faster; CreateServiceLinkedRole says `InvalidInput` for a role that is there."""


@dataclass(frozen=True, slots=True)
class RoleWants:
    """What is wanted of IAM for one mailbox."""

    calls: Calls
    bucket: Bucket
    account: str
    """Number of ours."""
    roles: Roles
    is_known: Callable[[str], bool]
    """Says whether EC2 knows a profile: it does so some seconds after IAM."""

    def wants(self) -> Sequence[Want]:
        """Return all of them; a policy hangs on its role."""
        machine, profile, stops = self.roles
        places = Places(self.account, self.bucket.name, self.bucket.prefix)
        return (
            *self._role("machine role", machine, EC2, filled("machine-trust", places)),
            self._policy(
                "machine role's policy", "reaches the mailbox and nothing else",
                ("machine role", machine), filled("machine-policy", places),
            ),
            Want(
                "machine profile", f"instance profile {profile}",
                f"make the instance profile {profile} with the role {machine}",
                lambda: self._profile(profile) != FULL or not self.is_known(profile),
                lambda: self._make_profile(profile, machine), "machine role",
            ),
            *self._role("stop role", stops, SCHEDULER, filled("scheduler-trust", places)),
            self._policy(
                "stop role's policy", "ends machines that carry our tag and nothing else",
                ("stop role", stops), filled("scheduler-policy", places),
            ),
            Want(
                "spot role", SPOT_ROLE,
                f"make {SPOT_ROLE}, under which EC2 starts spot machines",
                lambda: self._role_document(SPOT_ROLE) is None, self._make_spot_role,
            ),
        )  # fmt: skip

    def _ask(self, verb: str, **words: Any) -> Mapping[str, Any]:
        return self.calls.call(IAM_REGION, "iam", verb, **words)

    def _asked(self, verb: str, **words: Any) -> Mapping[str, Any] | None:
        """Return an answer; None for what is not there."""
        try:
            return self._ask(verb, **words)
        except CloudwhaleError as error:
            if code_of(error) in ABSENT:
                return None
            raise

    def _made(self, verb: str, **words: Any) -> None:
        """Make something; that it is there already is fine."""
        try:
            self._ask(verb, **words)
        except CloudwhaleError as error:
            if code_of(error) not in THERE:
                raise

    # -- roles and their policies ------------------------------------------------------------

    def _role(
        self, name: str, role: str, service: str, trust: Mapping[str, Any]
    ) -> tuple[Want, Want]:
        made = Want(
            name, f"role {role}", f"make the role {role}",
            lambda: self._role_document(role) is None,
            lambda: self._made(
                "create_role", RoleName=role, AssumeRolePolicyDocument=json.dumps(trust),
                Description="Made by cloudwhale doctor",
            ),
        )  # fmt: skip
        trusted = Want(
            f"{name}'s trust", f"{service} may take it", f"let {service} take the role {role}",
            lambda: not trusts(self._role_document(role) or trust, service),
            lambda: self._trust(role, trust), name,
        )  # fmt: skip
        return made, trusted

    def _role_document(self, role: str) -> Mapping[str, Any] | None:
        """Return whom a role trusts; None: there is no such role."""
        answer = self._asked("get_role", RoleName=role)
        if answer is None:
            return None
        return dict(answer["Role"].get("AssumeRolePolicyDocument") or {"Statement": []})

    def _trust(self, role: str, trust: Mapping[str, Any]) -> None:
        """Let a role also be taken by whom our trust names; others that it trusts stay."""
        said = self._role_document(role) or {}
        before = several(said.get("Statement"))
        document = {"Version": "2012-10-17", "Statement": [*before, *trust["Statement"]]}
        self._ask("update_assume_role_policy", RoleName=role, PolicyDocument=json.dumps(document))

    def _policy(
        self, name: str, there: str, of: tuple[str, str], document: Mapping[str, Any]
    ) -> Want:
        on, role = of
        policy = name_for(on.partition(" ")[0], self.bucket)

        def lacks() -> bool:
            said = self._asked("get_role_policy", RoleName=role, PolicyName=policy)
            return said is None or not same(document, said["PolicyDocument"])

        def make() -> None:
            self._ask(
                "put_role_policy", RoleName=role, PolicyName=policy,
                PolicyDocument=json.dumps(document, separators=(",", ":")),
            )  # fmt: skip

        return Want(name, there, f"give the role {role} the policy {policy}", lacks, make, on)

    # -- profile and spot --------------------------------------------------------------------

    def _profile(self, name: str) -> str:
        answer = self._asked("get_instance_profile", InstanceProfileName=name)
        if answer is None:
            return "absent"
        return FULL if answer["InstanceProfile"].get("Roles") else "empty"

    def _make_profile(self, name: str, role: str) -> None:
        found = self._profile(name)
        if found == "absent":
            self._made("create_instance_profile", InstanceProfileName=name)
        if found != FULL:
            self._ask("add_role_to_instance_profile", InstanceProfileName=name, RoleName=role)

    def _make_spot_role(self) -> None:
        self._made("create_service_linked_role", AWSServiceName=SPOT)
