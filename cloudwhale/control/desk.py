"""What every command works at: settings, store, mailbox, key, this host's machines."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

from cloudwhale import plugins
from cloudwhale.clock import SystemClock
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.reconcile import Patience
from cloudwhale.settings import Settings
from cloudwhale.spi.provider import Check, Provider
from cloudwhale.spi.store import Store


@dataclass(frozen=True)
class Desk:
    """Open things of one process; close it, or use it in a `with`."""

    settings: Settings
    clock: SystemClock
    store: Store
    objects: StoreObjects

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
    url = settings.database or sqlite_url(settings.home)
    store = open_store(url, may_migrate=may_migrate)
    return Desk(settings, SystemClock(), store, open_objects(mailbox_url(settings)))


def mailbox_url(settings: Settings) -> str:
    """Return the URL of the store that controller and agents of this installation meet in."""
    return settings.mailbox or (settings.home / "mailbox").as_uri()


def node_name(settings: Settings) -> str:
    """Return what this host is called as a node."""
    return settings.node or socket.gethostname().split(".")[0] or "this-host"


def providers(settings: Settings) -> Mapping[str, Provider]:
    """Return the providers that the settings ask for: now this host alone."""
    local = plugins.load(plugins.PROVIDERS, "local")
    return {
        "local": local(
            mailbox=mailbox_url(settings),
            home=settings.home,
            node=node_name(settings),
            options=_agent_options(settings),
        )
    }


def _agent_options(settings: Settings) -> Sequence[str]:
    """Return the arguments that tell this host's agent what it may use."""
    options = [f"--lease-s={settings.attempt_lease_s}"]
    options += [f"--device={device}" for device in settings.devices]
    options += [f"--label={key}={value}" for key, value in settings.labels.items()]
    if settings.cpu is not None:
        options.append(f"--cpu={settings.cpu}")
    if settings.memory_gib is not None:
        options.append(f"--memory-gib={settings.memory_gib}")
    return options


def policies(settings: Settings) -> Policies:
    """Return the policies that the settings name; raise SettingsError for an unknown one."""
    return Policies(
        order=plugins.load(plugins.ORDERS, settings.order)(),
        score=plugins.load(plugins.SCORES, settings.score)(),
        patience=Patience(
            attempt_lease_s=settings.attempt_lease_s, clock_skew_s=settings.clock_skew_s
        ),
    )


def checks(settings: Settings) -> Sequence[Check]:
    """Return what `doctor` looks at: every provider's rows, then our own."""
    rows = [row for provider in providers(settings).values() for row in provider.check()]
    with open_desk(settings) as desk:
        version = desk.store.version()
    rows.append(Check(name="database", state="ok", says=f"readable, {version} events"))
    rows.append(Check(name="mailbox", state="ok", says=mailbox_url(settings)))
    policies(settings)
    says = f"order {settings.order}, score {settings.score}"
    rows.append(Check(name="policies", state="ok", says=says))
    return rows
