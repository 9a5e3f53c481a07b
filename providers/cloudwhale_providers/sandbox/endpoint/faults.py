"""Calls that fail: those that a test asks for, and a share of all by chance."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from cloudwhale_providers.sandbox.endpoint.messages import Answer
from cloudwhale_providers.sandbox.endpoint.refused import Refused, failed, throttled

Kind = Literal["error-before", "error-after-success", "timeout", "throttle"]
BY_CHANCE: tuple[Kind, ...] = ("error-before", "error-after-success", "timeout", "throttle")


@dataclass(slots=True)
class Fault:
    """What befalls the next calls of an action."""

    action: str
    """Its name, or a pattern: `CreateFleet`, `Describe*`."""
    kind: Kind
    times: int
    code: str
    """In place of the service's own; empty: that."""


class Faults:
    """Decides what befalls a call; threads may share it."""

    def __init__(self, seed: int, fault_share: float, throttle_share: float) -> None:
        self._chance = random.Random(seed)
        self._fault_share, self._throttle_share = fault_share, throttle_share
        self._waiting: list[Fault] = []
        self._turn = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Let a fault befall the calls of an action, after those that wait already."""
        with self._turn:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Let nothing befall any call that was asked for; chance goes on."""
        with self._turn:
            self._waiting.clear()

    def share(self, fault_share: float, seed: int) -> None:
        """Let a share of all calls fail from now on."""
        with self._turn:
            self._fault_share, self._chance = fault_share, random.Random(seed)

    def met(self, service: str, action: str, do: Callable[[], Answer]) -> Answer | None:
        """Return what is answered; None: nobody ever hears. Raise Refused."""
        fault = self._drawn(action, service)
        if fault is None:
            return do()
        if fault.kind == "throttle":
            raise _coded(fault, throttled(service))
        if fault.kind == "error-before":
            raise _coded(fault, failed(service))
        answer = do()  # a refusal is heard: only what has happened is kept quiet
        if fault.kind == "timeout":
            return None
        if answer.status < 400:
            raise _coded(fault, failed(service))
        return answer

    def _drawn(self, action: str, service: str) -> Fault | None:
        with self._turn:
            for fault in self._waiting:
                if fnmatchcase(action, fault.action):
                    fault.times -= 1
                    if fault.times <= 0:
                        self._waiting.remove(fault)
                    return fault
            if service == "s3":
                return None
            if self._throttle_share and self._chance.random() < self._throttle_share:
                return Fault(action, "throttle", 1, "")
            if self._fault_share and self._chance.random() < self._fault_share:
                return Fault(action, self._chance.choice(BY_CHANCE), 1, "")
        return None


def _coded(fault: Fault, usual: Refused) -> Refused:
    if not fault.code:
        return usual
    return Refused(
        fault.code, f"{fault.code}, as was asked for", usual.status if usual.status < 500 else 400
    )
