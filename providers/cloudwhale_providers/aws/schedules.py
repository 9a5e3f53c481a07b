"""The cloud's own stop: a one-shot schedule of EventBridge that terminates one machine.

A schedule is called as the machine's node and lies in a group of the installation. It fires within
the minute after its time (EventBridge Scheduler User Guide, "Schedule types"), whoever is dead by
then, and is gone after that.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.aws import tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import code_of, listed

TARGET = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
MISSING, EXISTS = "ResourceNotFoundException", "ConflictException"
RETRIED_S: Seconds = 3600.0
RETRIES = 60
"""EC2 may be throttled or down when it fires: it tries for an hour, about once a minute."""
NAMES = re.compile(r"[0-9a-zA-Z_.-]{1,64}")


class Schedules:
    """Makes, moves and removes stops; each may be repeated; safe for threads."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._grouped: set[str] = set()
        """Regions whose group is known to be there."""
        self._lock = Lock()

    def arm(self, region: str, node: str, machine: str, stop_at: Instant) -> Instant:
        """Let the cloud end a machine at a time; return the time, in whole seconds and no later.

        Makes the group, replaces what bears the name; raise Denied, TryAnother or Unreachable.
        """
        words = self._words(node, machine, stop_at)
        self._ensure_group(region)
        try:
            self._call(region, "create_schedule", **words)
        except CloudwhaleError as error:
            if code_of(error) == EXISTS:
                self._call(region, "update_schedule", **words)
            elif code_of(error) == MISSING:  # the group was removed meanwhile
                self._ensure_group(region, anew=True)
                self._call(region, "create_schedule", **words)
            else:
                raise
        return float(int(stop_at))

    def move(self, region: str, node: str, machine: str, stop_at: Instant) -> Instant:
        """Move a stop; return the one in force then; one that is missing is made."""
        try:
            self._call(region, "update_schedule", **self._words(node, machine, stop_at))
        except CloudwhaleError as error:
            if code_of(error) != MISSING:
                raise
            return self.arm(region, node, machine, stop_at)
        return float(int(stop_at))

    def names(self, region: str) -> frozenset[str]:
        """Return what our schedules are called; raise Denied or Unreachable."""
        rows = listed(
            self._account.calls, region, "scheduler", "list_schedules", "Schedules",
            GroupName=self.group, MaxResults=100,
        )  # fmt: skip
        try:
            return frozenset(str(one["Name"]) for one in rows)
        except CloudwhaleError as error:
            if code_of(error) != MISSING:
                raise
            return frozenset()

    def remove(self, region: str, node: str) -> None:
        """Remove a stop; one that has fired, or never was, is removed."""
        try:
            self._call(region, "delete_schedule", Name=name_of(node), GroupName=self.group)
        except CloudwhaleError as error:
            if code_of(error) != MISSING:
                raise

    @property
    def group(self) -> str:
        """Return the group that all our schedules lie in."""
        return re.sub("[^0-9a-zA-Z_.-]", "-", self._account.ours)[:64]

    def _ensure_group(self, region: str, anew: bool = False) -> None:
        with self._lock:
            if region in self._grouped and not anew:
                return
        own = tags.listed({tags.INSTALLATION: self._account.installation})
        try:
            self._call(region, "create_schedule_group", Name=self.group, Tags=own)
        except CloudwhaleError as error:
            if code_of(error) != EXISTS:
                raise
        with self._lock:
            self._grouped.add(region)

    def _words(self, node: str, machine: str, stop_at: Instant) -> dict[str, Any]:
        """Return all of a schedule; an update replaces every field, so it says them all too."""
        at = datetime.fromtimestamp(int(stop_at), UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return {
            "Name": name_of(node),
            "GroupName": self.group,
            "Description": f"ends {machine}, the machine of {node}"[:512],
            "ScheduleExpression": f"at({at})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "State": "ENABLED",
            "Target": {
                "Arn": TARGET,
                "RoleArn": self._account.options.scheduler_role,
                "Input": json.dumps({"InstanceIds": [machine]}),
                "RetryPolicy": {
                    "MaximumEventAgeInSeconds": int(RETRIED_S),
                    "MaximumRetryAttempts": RETRIES,
                },
            },
        }

    def _call(self, region: str, verb: str, **words: Any) -> Mapping[str, Any]:
        return self._account.calls.call(region, "scheduler", verb, **words)


def name_of(node: str) -> str:
    """Return what the schedule of a node is called: the node, where AWS takes that as a name."""
    if NAMES.fullmatch(node):
        return node
    return f"node-{hashlib.sha256(node.encode()).hexdigest()[:32]}"
