"""Raises controllers over a scenery that outlives them: the same parts as in production."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from cloudwhale.control.controller import Chosen, Controller, Parts
from cloudwhale.control.effects import Effects, InlineEffects
from cloudwhale.control.executor import Executor
from cloudwhale.control.hiring import Where
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.notifying.notifying import Silent
from cloudwhale.control.sweeping import Sweeping
from cloudwhale.control.timeline import Timeline
from cloudwhale.control.watcher import Pace, Watcher
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.provider import Provider
from cloudwhale.spi.store import Store

NO_KEY = bytes(32)
SKEW_S = 30.0


@dataclass(frozen=True, slots=True)
class Ground:
    """What controllers stand on, whichever of them lives."""

    clock: Clock
    objects: Objects
    providers: Mapping[str, Provider]
    pace: Pace = Pace()
    others: Mapping[str, Objects] = field(default_factory=dict[str, Objects])
    """By cloud, the mailbox that its machines have for themselves."""

    @property
    def mailboxes(self) -> Mailboxes:
        """Return all mailboxes."""
        return Mailboxes(self.objects, {name: partial(_this, o) for name, o in self.others.items()})


@dataclass(frozen=True, slots=True)
class Raised:
    """A controller that lives, and those of its parts that the simulation speaks to."""

    controller: Controller
    watcher: Watcher


def raised(
    ground: Ground,
    store: Store,
    chosen: Chosen,
    effects: Effects | None = None,
    notifying: Silent | None = None,
) -> Raised:
    """Begin a controller's life: the next epoch, everything read from the store."""
    providers, mailboxes = ground.providers, ground.mailboxes
    watcher = Watcher(mailboxes, providers, store.read_to(), SKEW_S, ground.pace)
    where = Where("memory://", "/")
    parts = Parts(
        store=store,
        watcher=watcher,
        executor=Executor(store, mailboxes, providers, lambda: NO_KEY, where),
        effects=effects or InlineEffects(),
        timeline=Timeline(ground.clock, not_before=_newest_at(store)),
        sweeping=Sweeping(providers, mailboxes),
        notifying=notifying or Silent(),
    )
    epoch = store.new_epoch("stage", ground.clock.now())
    return Raised(Controller(parts, chosen, epoch), watcher)


def _this(objects: Objects) -> Objects:
    return objects


def _newest_at(store: Store) -> Instant:
    """Return when the newest event was: as in production, no controller's time begins before."""
    told = store.since(store.version() - 1, 1)
    return told[0].event.at if told else 0.0
