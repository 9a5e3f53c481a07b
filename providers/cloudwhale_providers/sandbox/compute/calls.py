"""One call of a method: what it names, what it says, and who makes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale_providers.sandbox.compute.discovery import Method
from cloudwhale_providers.sandbox.compute.wording import Words


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose token a request carries."""

    email: str
    machine: str = ""
    """Id of the instance that asks; empty: the user of the project."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call."""

    method: Method
    path: Mapping[str, str]
    """Parameters of the path: project, zone, instance."""
    query: Mapping[str, str]
    body: Mapping[str, Any]
    caller: Caller
    now: Instant
    repeated: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """All that each field of the address says; `query` has the last of each."""

    @property
    def zone(self) -> str:
        """Return the zone that it names; empty: none."""
        return self.path.get("zone", "")

    @property
    def scope(self) -> str:
        """Return what the operation of it belongs to: `zones/ZONE`, `regions/REGION`, `global`."""
        for word in ("zone", "region"):
            if word in self.path:
                return f"{word}s/{self.path[word]}"
        return "global"


Does = Callable[[Call], Words]
"""Answers a call of one method; raises Refused."""
