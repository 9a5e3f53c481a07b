"""What money was for: the lines that cost reports, receipts and metrics add up."""

from enum import StrEnum
from typing import Literal

from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value


class Waste(StrEnum):
    """Why money was spent on nothing that lasted."""

    BOOT = "boot"
    """The machine was billed and not ready yet."""
    IDLE = "idle"
    """It was ready, and no job held a place there."""
    LOST = "lost-work"
    """The work was done again, as no checkpoint held it."""
    FAILED = "failed-attempts"
    """The attempt ended in a failure."""
    OVER_ASKED = "over-asking"
    """A smaller GPU, or a smaller part of one, would have held all that was used."""


class Items(Value):
    """A sum by what was bought; the parts add up to it, to the micro-dollar."""

    machine: MicroUsd = NOTHING
    disk: MicroUsd = NOTHING
    address: MicroUsd = NOTHING
    egress: MicroUsd = NOTHING
    """Checkpoints that were brought there from other clouds."""


class Purposes(Value):
    """The same sum by what it was for; the parts add up to it, to the micro-dollar."""

    useful: MicroUsd = NOTHING
    boot: MicroUsd = NOTHING
    idle: MicroUsd = NOTHING
    lost: MicroUsd = NOTHING
    failed: MicroUsd = NOTHING
    over: MicroUsd = NOTHING
    """Asked for and never used, of attempts that were useful otherwise."""
    moved: MicroUsd = NOTHING
    """Egress."""


Dimension = Literal[
    "project", "user", "job", "family", "run", "provider", "market", "region", "gpu", "day"
]
"""What costs can be shown by; `family` is a job's name, `gpu` a model (empty: none)."""


class CostLine(Value):
    """One job's part of one machine's bill, with the prices that were frozen when it was charged.

    A machine that no job is known for has a line without a job, of its payer. Of a machine that is
    not back yet lines say what it would be by now.
    """

    rental: str
    run: str
    """The payer."""
    user: str
    project: str
    job: str | None
    family: str
    """The job's name; empty without a job."""
    provider: str
    market: str
    region: str
    zone: str
    type: str
    gpu: str
    began_at: Instant
    """When the machine's bill began. The line belongs to the day and month of this moment."""
    ended_at: Instant
    """When it ended; now, of one that is not back."""
    is_running: bool = False
    spent: MicroUsd
    items: Items
    purposes: Purposes
    on_demand: MicroUsd | None
    """What the same part of the same time would have cost on demand; None: nobody knows."""
    gpu_s: Seconds
    """Seconds times devices, by the job's part of the machine."""


class CostSum(Value):
    """Lines added up for one value of each dimension that was asked for."""

    key: tuple[str, ...]
    """In the order of the dimensions; a day as `2026-11-30`, in the zone that was asked for."""
    lines: int
    jobs: int
    """How many different ones; 0 where that was not asked for."""
    spent: MicroUsd
    items: Items
    purposes: Purposes
    saved: MicroUsd
    """On demand minus spent, over the lines of which that is known."""
    unpriced: int
    """Lines of which nobody knows the price on demand: they are in no `saved`."""
    gpu_s: Seconds
