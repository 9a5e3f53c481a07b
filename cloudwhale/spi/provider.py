"""What the house asks of those who have machines."""

from collections.abc import Sequence
from typing import Literal, Protocol

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.value import Value


class LaunchRequest(Value):
    """One machine to be had; repeating it with the same `request_id` changes nothing."""

    request_id: str
    node: str
    """Name that its agent reports under."""
    offer: Offer | None
    """None for an owned machine: start its agent."""
    mailbox: str
    """URL of the object store that controller and agent meet in."""
    home: str
    """Folder of the agent's own state, for machines that share this host's disk."""
    stop_at: Instant | None = None
    """When the provider itself must end the machine; None for owned ones."""


class Machine(Value):
    """A machine as the provider sees it now."""

    id: str
    node: str
    state: Literal["starting", "running", "stopping", "gone"]
    facts: Facts | None = None
    stop_at: Instant | None = None
    billed_from: Instant | None = None
    """When its bill began; None where the provider does not say, or there is none."""
    billed_to: Instant | None = None
    """When its bill ended, once it has."""
    owned: bool = True
    """False: rented, and its bill is ours."""
    price_usd_h: MicroUsd | None = None
    """What it is billed at; None where the provider does not say: as it was offered."""


class Leftover(Value):
    """Something of ours that exists at the provider and may cost money."""

    id: str
    what: str
    node: str | None = None


class Check(Value):
    """A row for `doctor`: what was looked at, whether it is well, how to mend it."""

    name: str
    state: Literal["ok", "warning", "failed"]
    says: str
    remedy: str = ""


class Provider(Protocol):
    """Machines to have; five verbs, `extend` and `check`."""

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return what could be rented now; empty for providers of owned machines."""
        ...

    def launch(self, request: LaunchRequest) -> Machine:
        """Start a machine; idempotent by request id; raise TryAnother, Denied or Unreachable."""
        ...

    def machines(self) -> Sequence[Machine]:
        """Return every machine of ours; may be old or partial."""
        ...

    def extend(self, machine: str, stop_at: Instant) -> Instant | Literal["fixed"]:
        """Move the provider's own stop; return the stop now in force, or that it is fixed.

        It is never later than was asked for: for that time no money is set aside.
        """
        ...

    def terminate(self, machine: str) -> None:
        """End a machine; one that is gone already is success."""
        ...

    def leftovers(self) -> Sequence[Leftover]:
        """Return what exists and belongs to no live machine of ours."""
        ...

    def check(self) -> Sequence[Check]:
        """Look at what this provider needs; takes seconds at most."""
        ...
