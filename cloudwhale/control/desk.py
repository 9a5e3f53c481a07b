"""What every command works at: settings, store, mailbox, key, this host's machines."""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import TracebackType
from typing import Self

from cloudwhale import plugins
from cloudwhale.clock import SystemClock
from cloudwhale.control.attempt_stores import AttemptStores
from cloudwhale.control.guarded import guarded
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.store import open_store
from cloudwhale.control.store.opening import database_url
from cloudwhale.host import Counted, HostOptions, as_arguments, facts
from cloudwhale.mailbox.objects import Objects, StoreObjects, open_objects
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale.settings import Settings, own_table, provider_of
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.provider import Grounds, Provider
from cloudwhale.spi.renting import Rent
from cloudwhale.spi.store import Store


@dataclass(frozen=True)
class Desk:
    """Open things of one process; close it, or use it in a `with`."""

    settings: Settings
    clock: SystemClock
    store: Store
    objects: StoreObjects
    """The main mailbox."""

    @cached_property
    def mailboxes(self) -> Mailboxes:
        """Return all mailboxes, those of clouds included."""
        return Mailboxes(self.objects, mailboxes_of(self.settings))

    def objects_of(self, job: str, attempt: int) -> Objects:
        """Return the store in which the log and the outputs of an attempt lie."""
        return AttemptStores(self.store, self.mailboxes).of(job, attempt)

    @cached_property
    def key(self) -> bytes:
        """Return the key that secrets at rest are sealed with; made when there is none."""
        from cloudwhale.control.secrets import load_key

        return load_key(self.settings.home)

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_desk(settings: Settings, *, may_migrate: bool = False) -> Desk:
    """Open database and mailbox; raise StoreUnusable with a sentence."""
    url = database_url(settings)
    store = open_store(url, may_migrate=may_migrate)
    return Desk(settings, SystemClock(), store, open_objects(mailbox_url(settings)))


def mailbox_url(settings: Settings) -> str:
    """Return the URL of the main store that controller and agents of this installation meet in."""
    return settings.mailbox or (settings.home / "mailbox").as_uri()


def own_mailboxes(settings: Settings) -> Mapping[str, str]:
    """Return the URLs of the stores that clouds have for themselves, by the clouds' names.

    Raise SettingsError for what is no URL.
    """
    found: dict[str, str] = {}
    for name, table in settings.clouds.items():
        url = table.get("mailbox", "")
        if not isinstance(url, str):
            raise SettingsError(
                f"[clouds.{name}]: mailbox is {url!r}, and is the URL of an object store",
                'Write `mailbox = "s3://bucket/folder"`, or leave it out: its machines then meet '
                "us in the main one.",
            )
        if url and url != mailbox_url(settings):
            found[name] = url
    return found


def mailboxes_of(settings: Settings) -> Mapping[str, Callable[[], Objects]]:
    """Return what opens those stores."""
    return {name: partial(open_objects, url) for name, url in own_mailboxes(settings).items()}


def node_name(settings: Settings) -> str:
    """Return what this host is called as a node."""
    return settings.node or socket.gethostname().split(".")[0] or "this-host"


def providers(settings: Settings, installation: str = "") -> Mapping[str, Provider]:
    """Return the providers that the settings ask for: this host, and clouds.

    `installation`: what tells our machines from those of others in the same account.
    """
    found = {name: _cloud(name, settings, installation) for name in sorted(settings.clouds)}
    return {**this_host(settings), **found}


def this_host(settings: Settings) -> Mapping[str, Provider]:
    """Return this host as a provider of its owned machine; nothing where it takes no jobs."""
    if not settings.takes_jobs:
        return {}
    local: Callable[..., Provider] = plugins.load(plugins.PROVIDERS, "local")
    options = host_options(settings)
    return {
        "local": local(
            home=settings.home,
            node=node_name(settings),
            facts=Counted(lambda: facts(settings.home, options), SystemClock()),
            options=[f"--lease-s={settings.attempt_lease_s}", *as_arguments(options)],
        )
    }


def _cloud(name: str, settings: Settings, installation: str) -> Provider:
    def listed(now: Instant) -> Sequence[Offer]:
        from cloudwhale.control.catalogue import catalogue

        return [offer for offer in catalogue(settings, now).offers if offer.provider == name]

    table = settings.clouds[name]
    make: Callable[[Grounds], Provider] = plugins.load(plugins.PROVIDERS, provider_of(name, table))
    clock, mailbox = SystemClock(), own_mailboxes(settings).get(name) or mailbox_url(settings)
    return make(Grounds(name, installation, own_table(table), listed, clock, mailbox))


def host_options(settings: Settings) -> HostOptions:
    """Return what the settings say of this host."""
    return HostOptions(
        devices=settings.devices,
        cpu=settings.cpu,
        memory_gib=settings.memory_gib,
        labels=settings.labels,
    )


def patience(settings: Settings) -> Patience:
    """Return how long the settings bear silence."""
    return Patience(attempt_lease_s=settings.attempt_lease_s, clock_skew_s=settings.clock_skew_s)


def policies(settings: Settings, clock: Clock | None = None) -> Policies:
    """Return the policies that the settings name; raise SettingsError for an unknown one.

    With a clock: a choice of machines that takes too long gives way to a simpler one. Simulations
    give none, so that the same world gives the same plan however busy the host is.
    """
    order = plugins.load(plugins.ORDERS, settings.order)()
    return Policies(
        order=order,
        score=plugins.load(plugins.SCORES, settings.score)(),
        wait=plugins.load(plugins.WAITS, settings.wait)(),
        rent=_rent(settings, clock),
        rules=Rules(
            patience=patience(settings),
            weights=settings.weights,
            shares=settings.shares,
            match=settings.match,
            age=settings.age,
            hold=settings.hold,
            reserve=settings.reserve,
            strict=settings.strict,
            preempt=settings.preempt,
            displace=settings.displace or order.displaces,
            classless=order.displaces,
            bring_home=settings.bring_home,
            auto_size=settings.auto_size,
            restart_s=settings.restart_s,
            preempt_after_s=settings.preempt_after_s,
            value_usd_h=settings.value_usd_h,
        ),
    )


def _rent(settings: Settings, clock: Clock | None) -> Rent:
    make: Callable[..., Rent] = plugins.load(plugins.RENTS, settings.rent)
    return make() if clock is None else guarded(make, clock, settings.rent_patience_s)
