"""A machine of Compute Engine, with all that is listed of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox.compute.wording import Words, link, written_at
from cloudwhale_providers.sandbox.endpoint.machines import Instance, State

STATES: dict[str, State] = {
    "PROVISIONING": "pending", "STAGING": "pending", "RUNNING": "running",
    "STOPPING": "shutting-down", "TERMINATED": "terminated",
}  # fmt: skip
Then = Literal["DELETE", "STOP"]


@dataclass(slots=True)
class Record:
    """A machine, and all that is listed of it."""

    instance: Instance
    facts: Words
    """What is listed of it, but for what changes by itself."""
    status: str = "PROVISIONING"
    then: Then = "STOP"
    """What becomes of it when it is preempted, or its time is up."""
    runs_for_s: Seconds | None = None
    ends_at: Instant | None = None
    """When its time is up; the later of what was asked for holds."""
    notice_s: Seconds = 0.0
    """How long before the soft off it wants to be told."""
    made_at: Instant = 0.0
    takes: Mapping[str, float] = field(default_factory=dict[str, float])
    """What it takes of the quotas while it runs, by metric."""
    is_gone: bool = False
    leaves_disks: bool = False
    """Whether its disks stay although they were to go with it."""
    times: Words = field(default_factory=dict[str, Any])
    """`lastStartTimestamp` and `lastStopTimestamp`."""

    @property
    def key(self) -> tuple[str, str]:
        """Return zone and name."""
        return self.instance.zone, self.instance.name

    @property
    def path(self) -> str:
        """Return what its link names."""
        return str(self.facts["selfLink"]).removeprefix(link(""))

    @property
    def target(self) -> tuple[str, str]:
        """Return path and id, as operations name it."""
        return self.path, self.instance.id

    @property
    def attributes(self) -> Mapping[str, str]:
        """Return its metadata by key."""
        items: Sequence[Mapping[str, str]] = self.facts["metadata"].get("items") or ()
        return {one["key"]: one["value"] for one in items}

    @property
    def takes_room(self) -> bool:
        """Say whether its processors and GPUs are taken."""
        return self.instance.ended_at is None

    @property
    def has_run(self) -> bool:
        """Say whether it has ever come up."""
        return "lastStartTimestamp" in self.times

    def words(self) -> Words:
        """Return it as it is listed now."""
        found = {**self.facts, **self.times, "status": self.status}
        if self.ends_at is not None:
            found["resourceStatus"] = {
                "scheduling": {"terminationTimestamp": written_at(self.ends_at)}
            }
        return found
