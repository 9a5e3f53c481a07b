"""What the house asks of a cloud in a box: a whole cloud on this host, without an account."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cloudwhale.spi.clock import Clock


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How a process reaches a sandbox: all that differs from a real account."""

    environment: Mapping[str, str]
    """Endpoint, dummy credentials and clock, for this process and those that it starts."""
    mailbox: str
    """URL of the object store in the box."""
    clouds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Settings of the providers that launch there, by name."""
    owned: bool = True
    """Whether this host takes jobs too; a script may say `owned: none`."""
    notes: tuple[str, ...] = ()
    """Sentences for whoever starts it: what this host cannot do, like containers without root."""


class Sandbox(Protocol):
    """A cloud in a process of its own; the entry point of `cloudwhale.sandboxes`."""

    def serve(self, folder: Path, script: Path | None, clock: Clock) -> int:
        """Be the cloud until nobody has asked for anything for a while; return an exit code.

        Raise SpecError for a script that is wrong, naming file, line and remedy.
        """
        ...

    def surroundings(self, folder: Path) -> Surroundings | None:
        """Return how the sandbox of a folder is reached; None: none answers."""
        ...

    def check(self, script: Path) -> None:
        """Read a script; raise SpecError when it is wrong."""
        ...
