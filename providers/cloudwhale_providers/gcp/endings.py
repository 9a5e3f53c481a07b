"""How machines have ended that are not there any more: the operations of their zone tell it."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import listed

PREEMPTED = "compute.instances.preempted"
KINDS: Mapping[str, str] = {
    PREEMPTED: "it was preempted",
    "compute.instances.deferredDelete": "its time was up, and Compute Engine has deleted it",
    "compute.instances.deferredStop": "its time was up, and Compute Engine has stopped it",
    "compute.instances.hostError": "its host has failed",
    "compute.instances.terminateOnHostMaintenance": "its host was maintained",
    "compute.instances.guestTerminate": "it has shut down by itself",
    "stop": "somebody has stopped it",
    "delete": "somebody has deleted it",
}
"""Operations that end a machine, what explains most first: who is preempted is then deleted.

Compute Engine docs, "Audit logs: system events" and "Spot VMs"; the two of `maxRunDuration` as
public reports of runs have them. A lease that is over is no preemption.
"""
NAME = re.compile(r"[a-z0-9-]+")


class Ending(NamedTuple):
    """An end of a machine."""

    kind: str
    """Type of the operation."""
    at: Instant
    """When it began: from then on nothing is charged."""

    @property
    def says(self) -> str:
        """Return it in a sentence, with Compute Engine's word for it."""
        return f"{KINDS[self.kind]} ({self.kind})"


class Endings:
    """Reads operations; each machine is asked for once, when it is missed."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def of(self, zone: str, machine: str, number: str = "") -> Ending | None:
        """Return how a machine has ended; None when no operation says so, or none can be read."""
        wanted = f"targetId = {number}" if number.isdecimal() else f'targetLink eq ".*/{machine}"'
        if not NAME.fullmatch(machine):
            return None
        try:
            found = [
                ending
                for one in listed(
                    self._account.calls, "compute", "zoneOperations.list",
                    project=self._account.project, zone=zone, filter=wanted,
                )
                if (ending := _ending(one)) is not None
            ]  # fmt: skip
        except CloudwhaleError:
            return None
        order = list(KINDS)
        # The newest of the kind that explains most: a name may have been used before.
        return min(found, key=lambda one: (order.index(one.kind), -one.at), default=None)


def _ending(operation: Mapping[str, Any]) -> Ending | None:
    kind = str(operation.get("operationType", ""))
    at = names.instant(operation.get("insertTime")) or names.instant(operation.get("startTime"))
    has_failed = bool(operation.get("error"))
    return None if kind not in KINDS or at is None or has_failed else Ending(kind, at)
