"""What the house asks of those who have machines."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Lease
from cloudwhale.model.units import GiB, Instant, MicroUsd
from cloudwhale.model.value import Value
from cloudwhale.spi.clock import Clock

Stop = Literal["cloud", "self"]
"""Who ends a machine by itself: its cloud, or the machine's own watchdog."""


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
    project: str = ""
    """Project of its first job, for the provider's own cost reports."""
    disk_gib: GiB = 0.0
    """Root disk that its jobs ask for, at least; 0: as the offer has it."""
    lease: Lease | None = None
    """What the machine's own watchdog holds to until its agent is told of a later one."""
    bundle: str = ""
    """Key in the mailbox of the agent's archive; its name holds the hash of its content."""
    pythons: tuple[str, ...] = ()
    """Versions of Python that the archive holds compiled packages for, like `3.12`."""
    gang: bool = False
    """Whether its jobs talk to others of theirs on other machines, over the network."""


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
    zone: str = ""
    """Where it came to stand, when the provider chose; empty: as it was offered."""
    says: str = ""
    """Why it is gone or goes, in the provider's words; empty where it says nothing."""
    door: str = ""
    """Who it is to the mailbox's store, which opens its folders to it alone; the same from its
    launch on, and its agent is told the same. Empty: the store tells no machines apart."""


class Leftover(Value):
    """Something that exists at the provider, may cost money, and belongs to no live machine."""

    id: str
    what: str
    """`instance`, `volume`, `address`, `interface`, `template`, `schedule`, `snapshot`, ..."""
    node: str | None = None
    region: str = ""
    is_ours: bool = True
    """False: another installation's; it is shown and never touched."""
    installation: str = ""
    since: Instant | None = None
    usd_h: MicroUsd | None = None
    """What it costs; None: unknown, 0: nothing by itself."""
    project: str = ""


class Check(Value):
    """A row for `doctor`: what was looked at, whether it is well, how to mend it."""

    name: str
    state: Literal["ok", "warning", "failed"]
    says: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Mending:
    """One thing that a provider's account lacks, or has otherwise, and can be given."""

    name: str
    """Of its row, `CLOUD bucket`."""
    says: str
    """What would be done, for whoever is asked first: `make the bucket lab in us-east-1`."""
    mend: Callable[[], Check]
    """Does it, unless it is done by now; a refusal is a row that names the permission."""


@dataclass(frozen=True, slots=True)
class Amends:
    """What an account needs and can be given: found by looking, which has changed nothing."""

    rows: Sequence[Check] = ()
    """What is well already, and what only a person can mend."""
    mendings: Sequence[Mending] = ()
    """In the order in which they are to be done; each is worth doing though another failed."""
    mailbox: str = ""
    """What the settings are to say as `mailbox` then; empty: as they do."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the provider's own table is to say then."""
    policy: str = ""
    """What whoever runs cloudwhale must be allowed, in the cloud's own language."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a cloud's provider is made from; entry points of `cloudwhale.providers` take it."""

    name: str
    """What its offers call it: the name of its entry point."""
    installation: str
    """Tells our machines from those of others in the same account."""
    settings: Mapping[str, Any]
    """Its own table of the settings, `[clouds.NAME]`; the provider says what is wrong with it."""
    listed: Callable[[Instant], Sequence[Offer]]
    """What the catalogue says that it offers; the provider makes it newer."""
    clock: Clock
    mailbox: str = ""
    """URL of the object store that its machines will use, which its checks look at."""


class Provider(Protocol):
    """Machines to have; its verbs, and what it says of itself."""

    @property
    def stops(self) -> frozenset[Stop] | None:
        """Who ends a rented machine of its by itself; empty: nobody; None: it rents none."""
        ...

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

    def leftovers(self, live: Collection[str]) -> Sequence[Leftover]:
        """Return what exists and belongs to no live machine; `live`: their nodes' names."""
        ...

    def remove(self, leftover: Leftover) -> None:
        """Remove something that was left over, which is ours; what is gone already is success."""
        ...

    def check(self) -> Sequence[Check]:
        """Look at what this provider needs; takes seconds at most."""
        ...

    def amends(self, whose: Callable[[], str], allow: str = "") -> Amends:
        """Look for what its account lacks and can be given; takes seconds, changes nothing.

        `whose`: returns the name of the installation, once its mailbox is there; `allow`: whoever
        is to be allowed what cloudwhale needs, as the cloud names them. What cannot be looked at
        is a row.
        """
        ...
