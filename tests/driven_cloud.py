"""The simulated cloud behind a driver of libcloud: its machines are had and listed through that.

The provider between is the real one. Each life of the controller begins with a new one, which knows
nothing. The cloud has no stop of its own: its machines end themselves.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from staging import Fuse

from cloudwhale.model.units import Instant
from cloudwhale.simulation.clock import EnvironmentClock
from cloudwhale.simulation.cloud import Hired, SimulatedCloud, door_of
from cloudwhale.spi.provider import Grounds, LaunchRequest, Leftover, Machine, Stop
from cloudwhale_providers.libcloud import LibcloudProvider
from cloudwhale_providers.libcloud.names import name_of

OURS = "lab"
SIZE = {"usd_h": 1, "cpu": 8, "memory_gib": 32, "disk_gib": 100}
TABLE = {
    "driver": "dummy", "image": "Ubuntu", "off_is_free": True, "sizes": [{"size": "any", **SIZE}],
}  # fmt: skip


@dataclass(frozen=True)
class Thing:
    """A size, an image, or a machine, as drivers have them."""

    id: str
    name: str
    state: str = "running"
    created_at: datetime | None = None


class Driver:
    """What libcloud asks of a cloud; it knows no way to ask for one machine alone."""

    def __init__(self, cloud: "DrivenCloud") -> None:
        self._cloud = cloud

    def list_sizes(self) -> list[Thing]:
        return [Thing(one or "any", one) for one in {one.type for one in self._cloud.offers(0.0)}]

    def list_images(self) -> list[Thing]:
        return [Thing("i-1", "Ubuntu")]

    def list_nodes(self) -> list[Thing]:
        return self._cloud.ask("list", self._cloud.nodes)

    def create_node(self, name: str, size: Any, image: Any, ex_userdata: str) -> Thing:
        return self._cloud.ask("create", lambda: self._cloud.made(name))

    def destroy_node(self, node: Thing) -> bool:
        return self._cloud.ask("terminate", lambda: self._cloud.destroyed(node.id))


class DrivenCloud(SimulatedCloud):
    """See SimulatedCloud: the same machines, prices and fates."""

    _provider: LibcloudProvider | None = None
    _asked: dict[str, LaunchRequest]
    _destroyed: set[str]

    # -- as a driver sees it -------------------------------------------------------------------

    def nodes(self) -> list[Thing]:
        """Return what is there; a machine that has switched itself off stays until it is ended."""
        ours = [self._thing(one) for one in self.hired.values() if self._is_there(one)]
        others = [
            Thing(one.id, name_of(one.installation, one.id, one.node or ""))
            for one in self.foreign.values()
        ]
        return [*ours, *others]

    def made(self, name: str) -> Thing:
        """Make the machine of a launch."""
        request = self._asked[name]
        key = request.request_id
        assert key not in self.hired, f"{key} has a machine"
        made = self._hired(request, self._now())
        self.hired[key] = self._listed[made.id] = made
        return self._thing(made)

    def destroyed(self, machine: str) -> bool:
        """End a machine for good, others' too."""
        self.foreign.pop(machine, None)
        self._gone.add(machine)
        for one in self.hired.values():
            if one.id == machine:
                one.end(self._now())
        return True

    @property
    def _gone(self) -> set[str]:
        if "_destroyed" not in vars(self):
            self._destroyed = set()
        return self._destroyed

    def _is_there(self, one: Hired) -> bool:
        return one.id not in self._gone

    def _thing(self, one: Hired) -> Thing:
        states = {"starting": "pending", "gone": "stopped"}
        state = one.state(self._now())
        name = name_of(OURS, one.request.request_id, one.request.node)
        at = datetime.fromtimestamp(one.launched_at, UTC)
        return Thing(one.id, name, states.get(state, state), at)

    # -- as a provider -------------------------------------------------------------------------

    def reborn(self) -> None:
        """Forget all that the provider has learned: its process has died."""
        self._provider = None

    @property
    def _driven(self) -> LibcloudProvider:
        if self._provider is None:
            clock = EnvironmentClock(self._now)
            grounds = Grounds("cloud", OURS, TABLE, super().offers, clock, "memory://")
            self._provider = LibcloudProvider(grounds, lambda: Driver(self), {})
        return self._provider

    @property
    def stops(self) -> frozenset[Stop]:
        """As the provider says: the machines themselves."""
        return self._driven.stops or frozenset()

    def launch(self, request: LaunchRequest) -> Machine:
        """Launch through the driver."""
        if "_asked" not in vars(self):
            self._asked = {}
        self._asked[name_of(OURS, request.request_id, request.node)] = request
        made = self._driven.launch(request)
        self.step(self._now())
        return _doored(made)

    def machines(self) -> Sequence[Machine]:
        """List by the driver."""
        return [_doored(one) for one in self._driven.machines()]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Move nothing."""
        return self._driven.extend(machine, stop_at)

    def terminate(self, machine: str) -> None:
        """End by the driver."""
        self._driven.terminate(machine)

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Look by the driver."""
        return self.ask("sweep", lambda: self._driven.leftovers(live))

    def remove(self, leftover: Leftover) -> None:
        """Remove by the driver."""
        self._driven.remove(leftover)

    def unknown(self, live: Collection[str]) -> Iterator[Leftover]:
        """Yield what is there of ours, switched off or not, and belongs to no live machine."""
        for one in self.hired.values():
            if self._is_there(one) and one.machine.node not in live:
                yield Leftover(id=one.id, what="instance", node=one.machine.node)


class MortalDriven(DrivenCloud):
    """One whose caller may die before or after any call; a new life knows nothing."""

    _fuse = Fuse(None)

    @property
    def fuse(self) -> Fuse:
        """Return what counts the calls."""
        return self._fuse

    @fuse.setter
    def fuse(self, fuse: Fuse) -> None:
        self._fuse = fuse
        self.reborn()

    def ask(self, verb: str, do: Callable[[], Any]) -> Any:
        return self._fuse.around(do)


def _doored(machine: Machine) -> Machine:
    """Return a machine with the door that simulated ones have."""
    return machine.but(door=door_of(machine.id))
