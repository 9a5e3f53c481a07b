"""The sweep: what exists at providers and belongs to no machine of ours is found and removed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from cloudwhale.clock import iso
from cloudwhale.control.effects import Effect, Key
from cloudwhale.control.mailboxes import MAIN, Mailboxes
from cloudwhale.mailbox.box import NODE_FOLDERS, forget_node
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds, usd
from cloudwhale.spi.provider import Leftover, Provider

SEARCH, REMOVE, TIDY = "search", "remove", "tidy"
EVERY_S: Seconds = 300.0  # a machine that nobody owns costs five minutes more at most
GRACE_S: Seconds = 600.0  # a launch that is under way, and lists that are behind, are over by then


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What one provider has that belongs to no live machine."""

    provider: str
    found: tuple[Leftover, ...]


@dataclass(frozen=True, slots=True)
class Boxes:
    """Folders of nodes in a mailbox, as they are called."""

    folders: frozenset[str]
    store: str = ""
    """What the mailbox is called."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Something that was left over is no more."""

    leftover: Leftover


class Sweeping:
    """Looks every five minutes, and once after the start; removes what is ours and old enough."""

    def __init__(self, providers: Mapping[str, Provider], mailboxes: Mailboxes) -> None:
        self._providers = providers
        self._mailboxes = mailboxes
        self._searched_at: Instant | None = None
        self._seen_at: dict[tuple[str, str], Instant] = {}
        """Since when each leftover is known here, whose provider does not say how old it is."""

    def searches(self, rentals: Iterable[Rental], now: Instant) -> list[Effect]:
        """Return the looks that are due."""
        if self._searched_at is not None and now - self._searched_at < EVERY_S:
            return []
        self._searched_at = now
        live = live_nodes(rentals)
        renting = [name for name, one in sorted(self._providers.items()) if one.stops is not None]
        searches = [self._search(name, live) for name in renting]
        return [*searches, *map(self._looked_through, self._mailboxes.names)] if searches else []

    def _search(self, name: str, live: frozenset[str]) -> Effect:
        def search() -> Leftovers:
            return Leftovers(name, tuple(self._providers[name].leftovers(live)))

        return Effect(Key(SEARCH, name), search, is_slow=True, lane=name)

    def removals(self, came: Leftovers, rentals: Iterable[Rental], now: Instant) -> list[Effect]:
        """Return the removals of what is ours, old enough, and of no rental that is open now."""
        live = live_nodes(rentals)
        keys = {(came.provider, one.id) for one in came.found}
        self._seen_at = {
            key: at for key, at in self._seen_at.items() if key[0] != came.provider or key in keys
        }
        due: list[Effect] = []
        for one in came.found:
            known_at = self._seen_at.setdefault((came.provider, one.id), now)
            if may_be_removed(one, live, known_at, now):
                due.append(removal(self._providers[came.provider], came.provider, one))
        return due

    def removed(self, value: Removed, now: Instant) -> e.Noted:
        """Return the note of a removal."""
        reason = Reason(code=Code.LEFTOVER_REMOVED, says=f"{described(value.leftover)}: removed")
        return e.Noted(at=now, subject=value.leftover.node or "controller", reason=reason)

    def _looked_through(self, store: str) -> Effect:
        def look() -> Boxes:
            objects = self._mailboxes.of(store)
            names = (name for folder in NODE_FOLDERS for name in objects.folders(folder))
            return Boxes(frozenset(names), store)

        return Effect(Key(TIDY, store or "mailbox"), look, lane=store)

    def tidied(self, folder: str, store: str = MAIN) -> Effect:
        """Return the removal of what lies in the mailbox of a machine that is no more."""

        def tidy() -> None:
            forget_node(self._mailboxes.of(store), folder)

        return Effect(Key(TIDY, folder), tidy, lane=store)


def live_nodes(rentals: Iterable[Rental]) -> frozenset[str]:
    """Return the nodes of machines that are not paid for: a launch may be under way for each."""
    return frozenset(one.node for one in rentals if one.node is not None)


def may_be_removed(
    leftover: Leftover, live: Collection[str], known_at: Instant, now: Instant
) -> bool:
    """Say whether something is ours, belongs to nobody who lives, and is older than the grace.

    `known_at`: since when it is known here, for those whose provider does not say.
    """
    since = known_at if leftover.since is None else leftover.since
    return leftover.is_ours and leftover.node not in live and now - since >= GRACE_S


def removal(provider: Provider, name: str, leftover: Leftover) -> Effect:
    """Return the effect that removes something that was left over."""

    def remove() -> Removed:
        provider.remove(leftover)
        return Removed(leftover)

    return Effect(Key(REMOVE, f"{name}/{leftover.id}"), remove, is_slow=True, lane=name)


def described(leftover: Leftover) -> str:
    """Say what something is that was left over, and what it costs."""
    where = f" in {leftover.region}" if leftover.region else ""
    since = f", since {iso(leftover.since)}" if leftover.since is not None else ""
    costs = "" if not leftover.usd_h else f", {usd(leftover.usd_h)} USD an hour"
    return f"{leftover.what} {leftover.id}{where}{since}{costs} belongs to no machine of ours"
