"""What a spot policy is asked: where one job with a deadline runs now, and in which market.

A job has work, a deadline, and loses a *changeover* each time it starts on another machine: boot,
restore, what it does again. Time goes in ticks. At each of them the policy sees what is known of
every site and says: stay, move, or idle. The simulator plays it on recorded availability
(`simulation/spotting`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from cloudwhale.model.units import Seconds

Market = Literal["spot", "on-demand"]


@dataclass(frozen=True, slots=True)
class Site:
    """A zone that has machines of the kind that the job runs on, at today's prices."""

    name: str
    region: str
    spot_usd_h: float
    on_demand_usd_h: float


@dataclass(frozen=True, slots=True)
class Use:
    """A machine of one site in one market."""

    site: str
    market: Market


@dataclass(frozen=True, slots=True)
class Sight:
    """What somebody saw of a site: whether a spot machine could be had, or stayed, at a time."""

    site: str
    at_s: Seconds
    """On the play's clock; below 0 before the job was there."""
    is_on: bool


@dataclass(frozen=True, slots=True)
class Errand:
    """The job, and what is fixed for it."""

    work_s: Seconds
    deadline_s: Seconds
    """From its start, which is 0."""
    changeover_s: Seconds
    """Without progress after each start on another machine, and billed."""
    tick_s: Seconds
    egress_usd: Mapping[tuple[str, str], float] = field(
        default_factory=dict[tuple[str, str], float]
    )
    """To bring its checkpoint from one region to another; absent: nothing."""
    probes_every_s: Seconds | None = None
    """Sites where it does not run are seen so often; None: at every tick."""


@dataclass(frozen=True, slots=True)
class Standing:
    """All that is known at a tick, before it is played."""

    at_s: Seconds
    work_left_s: Seconds
    changeover_left_s: Seconds
    """Of the machine that it has."""
    use: Use | None
    """The machine that it has; None: it idles. One that was taken is none."""
    region: str
    """Where its newest checkpoint lies; empty: it has none."""
    sites: Sequence[Site]
    is_on: Mapping[str, bool | None]
    """By site, whether spot can be had now; None: not seen now, and only trying would tell."""


class SpotPlayer(Protocol):
    """A policy at work on one errand; it may remember what it saw."""

    def choose(self, now: Standing) -> Use | None:
        """Return the machine for the tick that begins; None: idle.

        Called anew in the same tick when what it chose could not be had: `is_on` says so then. To
        choose what it has is to stay. Called again until it stays, idles, or gets what it asks for.
        """
        ...


class SpotPolicy(Protocol):
    """A rule for errands; entry points of `cloudwhale.policies.spot`."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player for one errand; `past` is what was seen of the sites before, in order."""
        ...
