"""The provider of simulated machines that are owned."""

from collections.abc import Callable, Collection, Sequence
from typing import Literal

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.provider import Amends, Check, LaunchRequest, Leftover, Machine, Stop


class SimulatedHosts:
    """The provider of simulated machines that are owned; passes the provider contract."""

    def __init__(self, machines: Sequence[SimulatedMachine], now: Callable[[], Instant]) -> None:
        self._machines = {machine.node: machine for machine in machines}
        self._now = now

    @property
    def stops(self) -> frozenset[Stop] | None:
        """Nothing is rented, and nobody ends a machine that is owned."""
        return None

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Owned machines are not rented."""
        return ()

    def launch(self, request: LaunchRequest) -> Machine:
        """Start a machine's agent; raise Unreachable for one that is lost."""
        machine = self._machines[request.node]
        if machine.is_lost:
            raise Unreachable(f"{request.node} does not answer")
        machine.start_agent(self._now())
        return _as_seen(machine)

    def machines(self) -> Sequence[Machine]:
        """Return every machine that answers, its agent running or not."""
        return [_as_seen(machine) for machine in self._machines.values() if not machine.is_lost]

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Owned machines have no stop that could be moved."""
        return "fixed"

    def terminate(self, machine: str) -> None:
        """End a machine's agent; one that is gone is fine."""
        if machine in self._machines:
            self._machines[machine].kill_agent()

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Nothing costs money here."""
        return ()

    def remove(self, leftover: Leftover) -> None:
        """Nothing is left over here."""

    def check(self) -> Sequence[Check]:
        """Return one row a machine."""
        return [Check(name=name, state="ok", says="simulated") for name in sorted(self._machines)]

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Return nothing: they have no account."""
        return Amends()


def _as_seen(machine: SimulatedMachine) -> Machine:
    return Machine(
        id=machine.node,
        node=machine.node,
        state="running" if machine.agent_alive else "gone",
        facts=machine.facts,
    )
