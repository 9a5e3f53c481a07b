"""One instance of moto's: its state is set here, as moto has no time between its states."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cloudwhale.model.units import Instant

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}
"""EC2 API Reference, InstanceState."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a launch has made in moto's models, which have no types."""

    backend: Any
    """EC2 of one region."""
    reservation: Any
    machine: Any

    def tags(self) -> dict[str, str]:
        """Return the instance's tags as they are now."""
        return tags_of(self.backend, self.machine.id)

    def volumes(self) -> Sequence[tuple[str, Any]]:
        """Return its disks by device."""
        return list(self.machine.block_device_mapping.items())

    def interfaces(self) -> Sequence[Any]:
        """Return its network interfaces."""
        return list(self.machine.nics.values())


def tags_of(backend: Any, resource: str) -> dict[str, str]:
    """Return the tags of anything of EC2, as they are now."""
    return dict(backend.tags.get(resource, {}))


def become(made: Made, state: str, reason: str, code: str, says: str) -> None:
    """Let an instance be in a state."""
    machine = made.machine
    machine._state.name, machine._state.code = state, CODES[state]
    machine._reason = reason
    if code:
        machine.state_reason.code, machine.state_reason.message = code, says


def take_down(made: Made) -> None:
    """Delete what goes with an instance: disks, interfaces, its profile's association."""
    kept = (made.machine._reason, made.machine.state_reason)
    made.machine.terminate()
    made.machine._reason, made.machine.state_reason = kept


def hide(made: Made) -> None:
    """Let an instance not be found."""
    made.backend.reservations.pop(made.reservation.id, None)


def show(made: Made) -> None:
    """Let an instance be found."""
    made.backend.reservations[made.reservation.id] = made.reservation


def gmt(at: Instant) -> str:
    """Return a time as EC2 writes it behind a reason."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S GMT")
