"""Who our machines are to the mailbox's bucket: the id of their role, asked for at a launch.

IAM knows whoever has the keys of an instance's role as `aws:userid`, which is
`ROLE-ID:INSTANCE-ID` (IAM User Guide, "IAM policy elements: Variables and tags", principal key
values). The policy of machines opens to each the folders that are called after that, and no others.
"""

from threading import Lock

from cloudwhale.model.units import Seconds
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.checks_roles import IAM_REGION

ASKED_AGAIN_S: Seconds = 60.0
"""A role that is made anew has another id."""


class Roles:
    """Remembers the id for a minute; safe for threads."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known = ""
        self._asked_at: Seconds = float("-inf")
        self._turn = Lock()

    def id_of_machines(self) -> str:
        """Return the id of the role that machines are given; empty: the settings name none.

        Raise what IAM says, also that we may not ask: a machine that is not told which folders are
        its own would reach none, and cost money until it is given up.
        """
        named = self._account.options.instance_profile.rpartition("/")[2]
        if not named:
            return ""
        with self._turn:
            now = self._account.clock.steady()
            if now - self._asked_at >= ASKED_AGAIN_S:
                self._known = self._asked(named)
                self._asked_at = now
            return self._known

    def _asked(self, named: str) -> str:
        answer = self._account.calls.call(
            IAM_REGION, "iam", "get_instance_profile", InstanceProfileName=named
        )
        roles = answer["InstanceProfile"].get("Roles") or ()
        return str(roles[0]["RoleId"]) if roles else ""
