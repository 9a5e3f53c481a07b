"""What the attempts of a family have used at most, and what they had."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from cloudwhale.model.happened import OfJob
from cloudwhale.model.reason import Reason
from cloudwhale.model.resources import Resources
from cloudwhale.model.units import GiB, Instant, Seconds

End = Literal["completed", "outgrew", "other"]
"""How an attempt ended: `outgrew`, because what it had was too little memory."""


@dataclass(frozen=True, slots=True)
class Peak:
    """One ended attempt of a job; None where nobody could measure it, or nothing was asked for.

    Many are read with every database, so they are plain values.
    """

    job: str
    at: Instant
    end: End
    gpu: str = ""
    """Model of its device; empty: it had none."""
    asked_gib: GiB | None = None
    """Of GPU memory, per device, as its job asked for it."""
    had_gib: GiB | None = None
    """Its part of its smallest device."""
    used_gib: GiB | None = None
    """The most, on the device where it used most."""
    grown_gib: GiB | None = None
    """What its job asks for since it outgrew that."""
    host_asked_gib: GiB | None = None
    """Of the memory of the machine."""
    host_used_gib: GiB | None = None
    host_grown_gib: GiB | None = None


class History(NamedTuple):
    """What is known of the jobs of one name and project."""

    run_times: tuple[Seconds, ...] = ()
    """Of its completed jobs, newest last."""
    peaks: tuple[Peak, ...] = ()
    """Of its ended attempts, newest last."""


class Sized(OfJob):
    """A job that waits asks for other amounts of memory, by what its family was seen to use."""

    kind: Literal["sized"] = "sized"
    wants: Resources
    reason: Reason
