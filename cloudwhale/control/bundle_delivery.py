"""Puts the agent's archive into the mailbox, where machines fetch it when they boot."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import BUNDLES
from cloudwhale.mailbox.objects import Objects, Unreadable
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import Denied, StoreUnusable, Unreachable

if TYPE_CHECKING:  # zip files and pip are the matter of those who make one
    from cloudwhale.control.bundle import Bundle

OLD_S: Seconds = 30 * 86400.0
"""A machine needs its archive while it boots; who goes back to an older version uploads it anew."""


class Delivers(Protocol):
    """Whoever sees to it that machines find an archive in the mailbox."""

    def delivered(self, provider: str) -> "Bundle":
        """Return it once a provider's machines can fetch it; raise Denied or Unreachable.

        Safe for threads.
        """
        ...


class Deliveries:
    """Delivers into the store of each provider; one that hangs holds up no launch elsewhere."""

    def __init__(self, mailboxes: Mailboxes, make: Callable[[], "Bundle"]) -> None:
        self._mailboxes = mailboxes
        self._make = make
        self._by_store: dict[str, Delivery] = {}
        self._turn, self._making = Lock(), Lock()

    def delivered(self, provider: str) -> "Bundle":
        """See Delivers."""
        name = self._mailboxes.name_of(provider)
        with self._turn:
            if name not in self._by_store:
                self._by_store[name] = Delivery(self._mailboxes.of(provider), self._made)
            delivery = self._by_store[name]
        return delivery.delivered()

    def _made(self) -> "Bundle":
        with self._making:  # who comes second finds what the first has made
            return self._make()


class Delivery:
    """Makes the archive when one store's first machine needs it, and looks before each launch."""

    def __init__(self, objects: Objects, make: Callable[[], "Bundle"]) -> None:
        self._objects = objects
        self._make = make
        self._made: Bundle | None = None
        self._turn = Lock()

    def delivered(self) -> "Bundle":
        """Return it once it lies there; several launches at once wait for one that uploads it.

        Raise Denied or Unreachable.
        """
        with self._turn:
            if self._made is None:
                self._made = self._make()
            try:
                self._put(self._made)
            except StoreUnusable as error:
                raise Unreachable(
                    f"the agent's archive is not in the mailbox: {error.says}", error.remedy
                ) from error
            return self._made

    def _put(self, bundle: "Bundle") -> None:
        """Upload it unless it lies there whole; a lifecycle rule may have removed it since."""
        if self._objects.size_bytes(bundle.key) == bundle.size_bytes:
            return
        try:  # in parts: on a slow line all of it takes longer than one request may
            self._objects.put_file(bundle.key, bundle.file)
        except Unreadable as error:
            self._made = None  # another process has tidied: it is made again
            raise Denied(
                f"the agent's archive {error}", "Try again: it is then made anew."
            ) from error
        self._tidy(bundle)

    def _tidy(self, bundle: "Bundle") -> None:
        """Delete archives that nobody has uploaded for long, by the store's own clock."""
        now = self._objects.modified_at(bundle.key) or 0.0
        others = [key for key in self._objects.keys(BUNDLES) if key != bundle.key]
        written = {key: self._objects.modified_at(key) for key in others}
        self._objects.delete([key for key, at in written.items() if at and now - at > OLD_S])
