"""The first boot of a simulated machine: phases that take their time, fail or hang."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cloudwhale.mailbox.box import boot_of
from cloudwhale.mailbox.documents import BootTold
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant, Seconds

State = Literal["begun", "done", "failed"]

PHASES: tuple[tuple[str, Seconds], ...] = (
    ("watchdog", 0.0), ("bundle", 2.0), ("driver", 1.0), ("docker", 8.0), ("toolkit", 4.0),
    ("gpus", 1.0), ("agent", 4.0),
)  # fmt: skip
"""In the order of a real one; 20 s in all."""


@dataclass(frozen=True, slots=True)
class BootPlan:
    """What the machines of an offer tell of their boots, and how these go."""

    phases: tuple[tuple[str, Seconds], ...] = PHASES
    """Each with how long it takes; the agent joins at the end of the last."""
    fails_in: str = ""
    """The phase that fails at its end; the machine tells so and ends itself."""
    hangs_in: str = ""
    """The phase that never ends."""
    says: str = "E: Unable to locate package"
    ends_after_s: Seconds = 5.0
    """From the failure of a phase to the end of its machine."""


class Booting:
    """One boot, all of it worked out when it begins; tells what is due when it is stepped."""

    def __init__(
        self, plan: BootPlan, objects: Objects, folder: str, began_at: Instant, slow: float = 1.0
    ) -> None:
        """`slow`: how many times as long everything takes."""
        self._box = boot_of(objects, folder)
        self._said = 0
        self._slow = slow
        self.joins_at: Instant = math.inf
        """When the agent is there; infinity: never."""
        self.ends_at: Instant = math.inf
        """When the machine ends itself, as a phase has failed; infinity: it does not."""
        self._coming = list(self._planned(plan, began_at))

    def _planned(self, plan: BootPlan, at: Instant) -> Iterator[BootTold]:
        for phase, for_s in plan.phases:
            yield _told(phase, "begun", at)
            if phase == plan.hangs_in:
                return
            took_s = for_s * self._slow
            at += took_s
            if phase == plan.fails_in:
                yield _told(phase, "failed", at, took_s, plan.says)
                self.ends_at = at + plan.ends_after_s
                return
            yield _told(phase, "done", at, took_s)
        self.joins_at = at

    def step(self, now: Instant) -> None:
        """Tell all that is due."""
        while self._coming and self._coming[0].at <= now:
            self._said = self._box.post(self._coming.pop(0).model_dump_json().encode(), self._said)

    def next_at(self) -> Instant:
        """Return when something is to be told next; infinity when nothing is."""
        return self._coming[0].at if self._coming else math.inf


def _told(
    phase: str, state: State, at: Instant, took_s: Seconds | None = None, says: str = ""
) -> BootTold:
    return BootTold(at=at, phase=phase, state=state, took_s=took_s, says=says)
