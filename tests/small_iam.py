"""What a launch needs of IAM, in memory: the role of the machines."""

from datetime import UTC, datetime

from small_schedules import Words

from cloudwhale.simulation.clock import SteppedClock

MACHINES = "AROA0123456789ABCDEF0"
"""Id of the role in every instance profile."""


class SmallIam:
    """Instance profiles of any name, all of one role."""

    clock: SteppedClock
    has_machines_role = True

    def get_instance_profile(self, region: str, words: Words) -> Words:
        """Return a profile whose role is one for all names."""
        name, account = words["InstanceProfileName"], "arn:aws:iam::123456789012"
        at = datetime.fromtimestamp(self.clock.now(), UTC)
        role = {"Path": "/", "RoleName": name, "RoleId": MACHINES, "CreateDate": at,
                "Arn": f"{account}:role/{name}"}  # fmt: skip
        return {"InstanceProfile": {
            "Path": "/", "InstanceProfileName": name, "InstanceProfileId": "AIPA0123456789ABCDEF0",
            "Arn": f"{account}:instance-profile/{name}", "CreateDate": at,
            "Roles": [role] if self.has_machines_role else [],
        }}  # fmt: skip
