"""Who may do what: each request of somebody who is held to a policy is held against it."""

import json
from collections.abc import Callable, Mapping, Sequence

from cloudwhale_providers.aws.policies import Name, Places, filled
from cloudwhale_providers.sandbox.endpoint import account
from cloudwhale_providers.sandbox.endpoint.callers import Caller
from cloudwhale_providers.sandbox.endpoint.iam_conditions import Context
from cloudwhale_providers.sandbox.endpoint.iam_policies import Need, Policy, policy
from cloudwhale_providers.sandbox.endpoint.needs import with_context
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.names import ACCOUNT, BUCKET, FOLDER, SCHEDULER_ROLE

POLICIES: Mapping[str, Name] = {
    "user": "controller-policy",
    "machine": "machine-policy",
    "stops": "scheduler-policy",
}
"""By who asks: the policy that whoever sets an account up gives it."""
STOPS = Caller("stops", f"arn:aws:sts::{ACCOUNT}:assumed-role/{SCHEDULER_ROLE}/stop", "AROASTOPS")
Heard = Callable[[str, Need, bool], None]
"""Is told who needed what, and whether it was allowed."""
PutInto = Callable[[str], tuple[str, ...]]
"""Returns the texts of the policies that were put into a role, by its name."""


class Permits:
    """Holds callers to their policies; the account's own user to none, unless it is strict."""

    def __init__(self, is_strict: bool, put_into: PutInto = account.policies_of) -> None:
        """Machines may also do what was put into their role, for a mailbox elsewhere."""
        self.heard: Heard | None = None
        self._put_into = put_into
        self._read: dict[str, Policy] = {}
        places = Places(ACCOUNT, BUCKET, FOLDER)
        self._policies = {
            role: policy(filled(name, places))
            for role, name in POLICIES.items()
            if is_strict or role == "machine"
        }

    def is_held(self, caller: Caller) -> bool:
        """Say whether a policy says what somebody may do; the others may do everything."""
        return caller.role in self._policies

    def check(self, service: str, caller: Caller, needs: Sequence[Need]) -> None:
        """Raise Refused, in the service's words, for the first need that is not allowed."""
        for need in needs:
            if not self.may(caller, need):
                raise refusal(service, caller, need, self._known(caller))

    def may(self, caller: Caller, need: Need) -> bool:
        """Say whether somebody may do something."""
        if not self.is_held(caller):
            return True
        known = self._known(caller)
        need = with_context(need, of_caller(caller))
        is_allowed = known.allows(need)
        if self.heard is not None:
            self.heard(caller.role, need, is_allowed)
        return is_allowed

    def _known(self, caller: Caller) -> Policy:
        """Return all that a policy says of somebody."""
        own = self._policies[caller.role]
        if caller.role != "machine":
            return own
        role = caller.arn.split("/")[1]
        statements = [self._policy(text).statements for text in self._put_into(role)]
        return Policy(sum(statements, own.statements)) if statements else own

    def _policy(self, text: str) -> Policy:
        """Return a policy of a role; each is read once."""
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = policy(json.loads(text))
        return found


def of_caller(caller: Caller) -> Context:
    """Return what every request says of whoever makes it."""
    return {
        "aws:principalarn": (caller.arn,),
        "aws:principalaccount": (ACCOUNT,),
        "aws:userid": (caller.user_id,),
    }


def refusal(service: str, caller: Caller, need: Need, known: Policy) -> Refused:
    """Return how a service refuses what somebody may not do: IAM User Guide, "Access denied"."""
    why = (
        "with an explicit deny in an identity-based policy"
        if known.verdict(need) == "explicitly"
        else f"because no identity-based policy allows the {need.action} action"
    )
    who = f"User: {caller.arn} is not authorized to perform: {need.action}"
    says = f"{who} on resource: {need.resource} {why}"
    if service == "ec2":
        says = f"You are not authorized to perform this operation. {says}"
        if need.action == "iam:CreateServiceLinkedRole":
            return Refused("AuthFailure.ServiceLinkedRoleCreationNotPermitted", says, 403)
        return Refused("UnauthorizedOperation", says, 403)
    if service in ("s3", "iam", "sts"):
        return Refused("AccessDenied", says, 403)
    return Refused(
        "AccessDeniedException", says, 400 if service in ("ssm", "servicequotas") else 403
    )
