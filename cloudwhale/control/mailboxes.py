"""The stores that this installation meets its nodes in: the main one, and those of clouds.

A cloud has a mailbox of its own where the settings name one, `[clouds.NAME] mailbox`: then its
machines meet us there. All other machines, and what is ours, meet in the main one. A store is
called by its cloud's name; the main one has none.
"""

from collections.abc import Callable, Mapping
from threading import Lock

from cloudwhale.mailbox.objects import Objects

MAIN = ""


class Mailboxes:
    """Opens each store when it is first needed; from any thread."""

    def __init__(
        self, main: Objects, others: Mapping[str, Callable[[], Objects]] | None = None
    ) -> None:
        """`others`: by the name of a cloud, what opens the mailbox that it has for itself."""
        self.main = main
        self._others = dict(others or {})
        self._opened: dict[str, Objects] = {}
        self._turn = Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """Return what all stores are called, the main one first."""
        return (MAIN, *sorted(self._others))

    @property
    def is_one(self) -> bool:
        """Say whether everybody meets in the main one."""
        return not self._others

    def name_of(self, provider: str) -> str:
        """Return what the store is called that a provider's machines meet us in."""
        return provider if provider in self._others else MAIN

    def of(self, provider: str) -> Objects:
        """Return the store that a provider's machines meet us in; raise SettingsError."""
        if provider not in self._others:
            return self.main
        with self._turn:
            if provider not in self._opened:
                self._opened[provider] = self._others[provider]()
            return self._opened[provider]
