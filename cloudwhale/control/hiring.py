"""What is done to rented machines: launch, extend, terminate, sweep what they leave behind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cloudwhale.control.effects import Effect, Key
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import folder_of, forget_node
from cloudwhale.model.job import Job
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import GiB, Instant
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.provider import LaunchRequest, Machine, Provider

if TYPE_CHECKING:
    from cloudwhale.control.bundle_delivery import Delivers

LAUNCH, EXTEND, TERMINATE, SWEEP = "launch", "extend", "terminate", "sweep"
TELL = "tell"
VERBS = frozenset({LAUNCH, EXTEND, TERMINATE, SWEEP, TELL})


@dataclass(frozen=True, slots=True)
class Where:
    """Places that agents are told of, and the clock that their leases are counted by."""

    mailbox: str
    home: str
    clock: Clock | None = None
    """None: the time of each round, which is as good where nothing takes time."""
    archive: "Delivers | None" = None
    """Puts the agent's archive into the mailbox; None: no machine there boots from an image."""
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    """By cloud, the URL of the mailbox that its machines have for themselves."""
    prove_ours: Callable[[str], object] = str
    """Called before a launch with its provider: raises when another installation has its store."""

    def mailbox_of(self, provider: str) -> str:
        """Return the URL of the store in which a provider's machines meet us."""
        return self.others.get(provider, self.mailbox)


@dataclass(frozen=True, slots=True)
class Launched:
    """A provider has given us a machine."""

    machine: Machine


@dataclass(frozen=True, slots=True)
class Extended:
    """A provider has moved its own stop, or does not."""

    lease: int
    """Number of the lease that was asked for."""
    stop_at: Instant | Literal["fixed"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A provider was told to end a machine, and has been looked at after that."""

    machine: Machine | None
    """As it is listed now; None: it is not."""


@dataclass(frozen=True, slots=True)
class LeaseTold:
    """The order that tells an agent of a lease lies in its mailbox."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Swept:
    """Nothing of a machine's mailbox is left."""


class Hiring:
    """Makes the effects on rented machines; each may be repeated."""

    def __init__(
        self, providers: Mapping[str, Provider], mailboxes: Mailboxes, where: Where
    ) -> None:
        self._providers = providers
        self._mailboxes = mailboxes
        self._where = where

    def launch(self, rental: Rental, jobs: Mapping[str, Job]) -> Effect | None:
        """Return the launch of a machine whose money is set aside; idempotent by the rental.

        `jobs`: those that live, by id.
        """
        provider = self._provider(rental)
        if provider is None or rental.node is None:
            return None
        name = _provider_of(rental)
        project, disk_gib = _asked(rental, jobs)
        request = LaunchRequest(
            request_id=rental.id,
            node=rental.node,
            offer=rental.taken,
            mailbox=self._where.mailbox_of(name),
            home=self._where.home,
            stop_at=rental.lease.stop_at,
            project=project,
            disk_gib=disk_gib,
            lease=rental.lease,
            gang=bool(rental.gang),
        )

        def launch() -> Launched:
            self._where.prove_ours(name)
            return Launched(provider.launch(self._equipped(request, name)))

        return Effect(Key(LAUNCH, rental.id), launch, is_slow=True, lane=name)

    def _equipped(self, request: LaunchRequest, provider: str) -> LaunchRequest:
        """Return a launch with the archive that its machine boots from, once it can be fetched."""
        archive = self._where.archive
        if archive is None:
            return request
        bundle = archive.delivered(provider)
        return request.but(bundle=bundle.key, pythons=bundle.pythons)

    def extend(self, rental: Rental) -> Effect | None:
        """Return the move of the provider's own stop to that of the renewal."""
        provider, renewal = self._provider(rental), rental.renewal
        if provider is None or renewal is None:
            return None
        lease = renewal.lease

        def extend() -> Extended:
            return Extended(lease.number, provider.extend(rental.machine, lease.stop_at))

        lane = _provider_of(rental)
        return Effect(Key(EXTEND, rental.id, lease.number), extend, is_slow=True, lane=lane)

    def terminate(self, rental: Rental) -> Effect | None:
        """Return the end of a machine; what the provider says of it then comes back.

        Of one that is gone, the provider is told so once more, and removes what it has set for it
        before its money is released.
        """
        provider = self._provider(rental)
        if provider is None or not rental.machine:
            return None

        def terminate() -> Ended:
            provider.terminate(rental.machine)
            listed = next((one for one in provider.machines() if one.id == rental.machine), None)
            if listed is None or listed.state == "gone":
                provider.terminate(rental.machine)
            return Ended(listed)

        return Effect(Key(TERMINATE, rental.id), terminate, is_slow=True, lane=_provider_of(rental))

    def sweep(self, rental: Rental) -> Effect | None:
        """Return the removal of what is left of a machine that is no more.

        That is its schedule, if it ended by itself, and what lies in the mailbox for it.
        """
        node, provider, name = rental.node, self._provider(rental), _provider_of(rental)
        if node is None:
            return None

        def sweep() -> Swept:
            if provider is not None and rental.machine:
                provider.terminate(rental.machine)
            # Before it was launched it had no door.
            for folder in {node, folder_of(node, rental.door)}:
                forget_node(self._mailboxes.of(name), folder)
            return Swept()

        return Effect(Key(SWEEP, rental.id), sweep, is_slow=True, lane=name)

    def _provider(self, rental: Rental) -> Provider | None:
        """Return who has the machine; None when the settings do not name it any more."""
        return self._providers.get(_provider_of(rental))


def _provider_of(rental: Rental) -> str:
    return "" if rental.taken is None else rental.taken.provider


def _asked(rental: Rental, jobs: Mapping[str, Job]) -> tuple[str, GiB]:
    """Return the project of a machine's first job, and the most disk that one of them asks for.

    The same for a launch that is repeated: who has ended meanwhile is known no more, and the
    provider keeps to what it was asked first.
    """
    mine = [jobs[name] for name in rental.jobs if name in jobs]
    disk_gib = max((job.wants.disk_gib or 0.0 for job in mine), default=0.0)
    return next(iter(rental.jobs.values()), ""), disk_gib
