"""Rough weather for AWS, and a house that launches, ends and sweeps through it all the same."""

import random
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from renting_aws import a_provider, a_request, an_offer
from small_aws import SmallAws
from small_schedules import Words, refused

from cloudwhale.spi.errors import TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine, Provider

_exceptions: Any = import_module("botocore.exceptions")
PAUSE_S = 5.0
PATIENCE = 400
"""Tries of one thing; at a fault in five calls nothing needs so many."""
Found = TypeVar("Found")


def rough(rng: random.Random, share: float) -> Callable[[str, str, Callable[[], Words]], Words]:
    """Make faults of a share of all calls: error before, error after success, timeout, throttle."""

    def fault(service: str, verb: str, do: Callable[[], Words]) -> Words:
        if rng.random() >= share:
            return do()
        match rng.randrange(5):
            case 0:
                raise refused("RequestLimitExceeded", status=503)
            case 1:
                raise refused("InternalError", status=500)
            case 2:
                do()
                raise refused("InternalError", status=500)
            case 3:
                raise _exceptions.ConnectTimeoutError(endpoint_url="http://aws")
            case _:
                do()
                raise _exceptions.ReadTimeoutError(endpoint_url="http://aws")

    return fault


class House:
    """Does with a provider what the controller does: once more after a doubt, anew after a no."""

    def __init__(self, aws: SmallAws, rng: random.Random) -> None:
        self.aws = aws
        self._rng = rng
        self.provider: Provider = a_provider(aws)
        self.live: dict[str, Machine] = {}
        """Machines that are wanted, by node."""
        self._count = 0

    def restart(self) -> None:
        """Forget all that is not stored, as a new process has."""
        self.provider = a_provider(self.aws)

    def launch(self) -> Machine:
        """Launch one machine, however often it takes."""
        for _ in range(PATIENCE):
            dry = self._rng.random() < 0.05
            self.aws.fleet_errors = {"*": "InsufficientInstanceCapacity"} if dry else {}
            try:
                machine = self.sure(partial(self._launched, self._next()))
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
        found = self.sure(lambda: self.provider.leftovers(set(self.live)))
        ours = [one for one in found if one.is_ours]
        for one in ours:
            self.sure(partial(self.provider.remove, one))
        return len(ours)

    def sure(self, do: Callable[[], Found]) -> Found:
        """Do a thing again for as long as nobody knows whether it was done."""
        for _ in range(PATIENCE):
            try:
                return do()
            except Unreachable:
                self._pause()
        raise AssertionError("it never came through")

    def _launched(self, request: LaunchRequest) -> Machine:
        return self.provider.launch(request)

    def _next(self) -> LaunchRequest:
        self._count += 1
        now = self.aws.clock.now()
        market = ("spot", "on-demand")[self._count % 2]
        lease = a_request().lease
        assert lease is not None
        return a_request(
            f"rental-{self._count}",
            an_offer(f"us-east-1{'abc'[self._count % 3]}", market),
            lease=lease.but(away_until=now + 1e6),
            stop_at=now + 1e6,
        )

    def _pause(self) -> None:
        self.aws.clock.advance_to(self.aws.clock.now() + PAUSE_S)
