"""Who shares a device with whom on a simulated machine, and how much that slows them down."""

from collections.abc import Iterable, Mapping, Sequence

from cloudwhale.agent.seen import Key
from cloudwhale.model.node import Device


class Beside:
    """The processes on each device of one machine."""

    def __init__(self, neighbour: float) -> None:
        self._neighbour = neighbour
        self._on_device: dict[str, list[Key]] = {}
        self._devices: dict[Key, Sequence[Device]] = {}

    def came(self, key: Key, devices: Sequence[Device]) -> Iterable[Key]:
        """Note a process on its devices; return all whose rate may be another now, it included."""
        self._devices[key] = devices
        for device in devices:
            self._on_device.setdefault(device.id, []).append(key)
        return (key, *self._neighbours(devices, key))

    def left(self, key: Key) -> Iterable[Key]:
        """Note that a process has ended; return those whose rate may be another now."""
        devices = self._devices.pop(key, ())
        for device in devices:
            self._on_device[device.id].remove(key)
        return self._neighbours(devices, key)

    def rate(self, key: Key, speeds: Mapping[str, float]) -> float:
        """Return the rate of a process on the slowest of its devices; 1 without devices."""
        rates = [
            speeds.get(device.model, 1.0) * self._neighbour ** (len(self._on_device[device.id]) - 1)
            for device in self._devices.get(key, ())
        ]
        return min(rates, default=1.0)

    def _neighbours(self, devices: Iterable[Device], key: Key) -> list[Key]:
        found = {other for device in devices for other in self._on_device[device.id]}
        return sorted(found - {key})
