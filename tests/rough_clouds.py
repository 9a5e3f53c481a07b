"""Rough weather for a cloud, and a house that launches, ends and sweeps through it all the same."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from troubled_clouds import TroubledCloud

from cloudwhale.spi.errors import TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Leftover, Machine, Provider

PAUSE_S = 5.0
PATIENCE = 400
"""Tries of one thing; at a fault in five calls nothing needs so many."""
Found = TypeVar("Found")


class House:
    """Does with a provider what the controller does: once more after a doubt, anew after a no."""

    def __init__(self, cloud: TroubledCloud, rng: random.Random) -> None:
        self.cloud = cloud
        self._rng = rng
        self.provider: Provider = cloud.provider()
        self.live: dict[str, Machine] = {}
        """Machines that are wanted, by node."""
        self._count = 0

    def restart(self) -> None:
        """Forget all that is not stored, as a new process has."""
        self.provider = self.cloud.provider()

    def launch(self) -> Machine:
        """Launch one machine, however often it takes."""
        for _ in range(PATIENCE):
            self.cloud.be_dry(self._rng.random() < 0.05)
            self._count += 1
            request = self.cloud.request(self._count)
            try:
                machine = self.sure(partial(self._launched, request))
            except TryAnother:
                self._pause()
                continue
            if machine.state != "gone":  # it is, where its end could not be set
                self.live[machine.node] = machine
                return machine
        raise AssertionError("no launch ever succeeded")

    def end(self, machine: Machine) -> None:
        """End a machine."""
        del self.live[machine.node]
        self.sure(lambda: self.provider.terminate(machine.id))

    def sweep(self) -> int:
        """Remove what nobody owns; return how much that was."""
        found = self.sure(self._left_over)
        ours = [one for one in found if one.is_ours]
        for one in ours:
            self.sure(partial(self.provider.remove, one))
        self._pause()
        return len(ours)

    def machines(self) -> Sequence[Machine]:
        """Return what is listed."""
        return self.sure(lambda: self.provider.machines())

    def sure(self, do: Callable[[], Found]) -> Found:
        """Do a thing again for as long as nobody knows whether it was done."""
        for _ in range(PATIENCE):
            try:
                return do()
            except Unreachable:
                self._pause()
        raise AssertionError("it never came through")

    def _left_over(self) -> Sequence[Leftover]:
        return self.provider.leftovers(set(self.live))

    def _launched(self, request: LaunchRequest) -> Machine:
        return self.provider.launch(request)

    def _pause(self) -> None:
        self.cloud.pass_by(PAUSE_S)
