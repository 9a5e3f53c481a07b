"""What the house asks of a cloud in a box: a whole cloud on this host, without an account."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.clock import Clock

Machines: TypeAlias = Literal["auto", "processes", "boots"]
"""How its machines run: as processes of this host, or as systems that boot; auto: as it can."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How a process reaches a sandbox: all that differs from a real account."""

    environment: Mapping[str, str]
    """Endpoint, dummy credentials and clock, for this process and those that it starts.

    An empty value takes a variable away that leads somewhere else.
    """
    mailbox: str
    """URL of the object store in the box."""
    clouds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Settings of the providers that launch there, by name."""
    owned: bool = True
    """Whether this host takes jobs too; a script may say `owned: none`."""
    boots: bool = False
    """Whether its machines boot from an image, and fetch the agent's archive as real ones do."""
    notes: tuple[str, ...] = ()
    """Sentences for whoever starts it: what this host cannot do, like containers without root."""
    script: str = ""
    """What tells its script from others; empty: it has none."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A sandbox that answers."""

    pid: int
    url: str
    speed: float
    """So many seconds pass there in one of ours."""
    script: str = ""
    """File of its weather; empty: it has none."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metered:
    """A machine of a sandbox on the bill that it keeps by itself."""

    id: str
    node: str
    type: str
    zone: str
    market: str
    since: Instant
    until: Instant | None
    """When its bill ended; None: it runs."""
    usd_h: MicroUsd
    """Its price, disk and address included."""
    cost: MicroUsd
    provider: str = ""
    """Whose machine it is."""


class Sandbox(Protocol):
    """A cloud in a process of its own; the entry point of `cloudwhale.sandboxes`."""

    def serve(
        self, folder: Path, script: Path | None, clock: Clock, machines: Machines = "auto"
    ) -> int:
        """Be the cloud until nobody has asked for anything for a while; return an exit code.

        Raise SpecError for a script that is wrong, naming file, line and remedy, and Denied where
        machines are to boot and cannot.
        """
        ...

    def progress(self, folder: Path) -> str:
        """Return how far a sandbox is that begins, as a sentence; empty: nothing keeps it."""
        ...

    def surroundings(self, folder: Path) -> Surroundings | None:
        """Return how the sandbox of a folder is reached; None: none answers."""
        ...

    def check(self, script: Path) -> str:
        """Read a script; raise SpecError when it is wrong. Return what tells it from others."""
        ...

    def standing(self, folder: Path) -> Standing | None:
        """Return how the sandbox of a folder stands; None: none answers."""
        ...

    def meter(self, folder: Path) -> Sequence[Metered]:
        """Return its own count of what its machines cost, in the order of their launches.

        Those of earlier sandboxes of the folder, too, also when none runs.
        """
        ...
