"""A play of runs that are nights, one after another, each opened when it is begun."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clouding import RENTING, an_offer
from makers import a_spec, wants

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, Job, JobState
from cloudwhale.model.night import Night
from cloudwhale.model.offer import Offer
from cloudwhale.model.run import Run
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.simulation.bells import Life
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import Engine
from cloudwhale.simulation.playing import told
from cloudwhale.simulation.raising import Raised
from cloudwhale.simulation.setting import Arrival, Offered, Setting
from cloudwhale.spi.store import JobQuery

HOUR = 3600.0
DAY = 24 * HOUR
OPENS, CLOSES = 2 * HOUR, 6 * HOUR
CHOSEN = Chosen(RENTING, order="priority", score="best-fit")
OFFER = an_offer("firm", boot_s=120.0)


@dataclass(frozen=True, slots=True)
class Evening:
    """A night that is begun at a time, and the jobs that are submitted for it."""

    at: float
    night: Night
    jobs: tuple[str, ...]
    budget: MicroUsd = micro_usd(100)


def a_night(number: int = 0, unfinished: Any = "park", **of: Any) -> Night:
    """Make a night from the third to the sixth hour of a day."""
    base: dict[str, Any] = {
        "name": "lab", "date": f"2026-12-0{number + 1}", "zone": "UTC", "unfinished": unfinished,
        "opens_at": number * DAY + OPENS, "closes_at": number * DAY + CLOSES,
    }  # fmt: skip
    return Night(**{**base, **of})


def an_arrival(name: str, work_s: float, says_s: float | None = None, **of: Any) -> Arrival:
    """Make a job that no machine of ours runs, which saves every five minutes."""
    base: dict[str, Any] = {
        "resources": wants(cpu=4),
        "checkpoint": CheckpointRule(every_s=300.0, grace_s=20.0),
    }
    spec = a_spec(name=name, duration_s=says_s or work_s, **{**base, **of})
    return Arrival(0.0, name, spec, work_s)


class Nights(Engine):
    """Opens each night at its time; what was left over before is carried into it."""

    def __init__(
        self, evenings: Sequence[Evening], setting: Setting, chosen: Chosen = CHOSEN
    ) -> None:
        super().__init__(setting, chosen)
        self.evenings = evenings
        self._coming = []
        self.restarts = False
        """Whether the controller dies after every turn."""

    @property
    def _is_over(self) -> bool:
        last = max(one.night.closes_at for one in self.evenings)
        return self.now > last + HOUR

    def _begin(self) -> None:
        super()._begin()
        self._env.process(self._evenings())

    def _evenings(self) -> Life:
        for number, one in enumerate(self.evenings, 1):
            yield self.wait(max(0.0, one.at - self.now))
            waiting = JobQuery(run=f"night-{number - 1}", states=(JobState.PENDING,))
            left = (
                self.store.jobs(waiting)
                if number > 1 and one.night.unfinished == "carry-over"
                else ()
            )
            night = one.night.but(carried=tuple(job.id for job in left))
            run = Run(
                id=f"night-{number}", opened_at=self.now, user="play", folder="/",
                budget=one.budget, night=night,
            )  # fmt: skip
            specs = {name: self.truth[name].spec for name in one.jobs}
            first = [
                e.Submitted(
                    at=self.now, job=name,
                    first=Job(id=name, run=run.id, spec=spec, submitted_at=self.now),
                )
                for name, spec in specs.items()
            ]  # fmt: skip
            self.store.append([e.RunOpened(at=self.now, run=run), *first])
            self._bell.ring()

    def _turn(self, raised: Raised) -> None:
        before = self.store.version()
        super()._turn(raised)
        if self.restarts and self.store.version() != before:
            self.stop_controller()
            self.start_controller()

    @property
    def events(self) -> list[e.Event]:
        """Return all that happened."""
        return [one.event for one in told(self.store)]

    @property
    def closed(self) -> list[e.NightClosed]:
        """Return how each night was closed."""
        return [event for event in self.events if isinstance(event, e.NightClosed)]

    @property
    def jobs(self) -> Mapping[str, Job]:
        """Return the jobs as they are."""
        return {job.id: job for job in self.store.jobs(JobQuery())}

    @property
    def spent(self) -> int:
        """Return what was paid, in micro-dollars."""
        return sum(event.amount for event in self.events if isinstance(event, e.Charged))


def played(
    arrivals: Sequence[Arrival], *evenings: Evening, nodes: Sequence[Any] = (), machines: int = 9,
    restarts: bool = False, offer: Offer = OFFER,
) -> Nights:  # fmt: skip
    """Play some nights, an hour beyond the last."""
    names = tuple(one.job for one in arrivals)
    evenings = evenings or (Evening(0.0, a_night(), names),)
    clouds = [Offered("cloud", [Shelf(offer, machines)], 0)]
    last = evenings[-1].night.closes_at + 2 * HOUR
    setting = Setting(nodes, arrivals, clouds=clouds, at_most_s=last, heartbeat_s=300.0)
    found = Nights(evenings, setting)
    found.restarts = restarts
    found.play()
    return found
