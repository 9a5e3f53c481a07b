"""Where the mailbox of a node is: in which store, and in which folder of it.

The store is that of its machine's provider; the folder that behind its rental's door, or that of
its name.
"""

from collections.abc import Iterable, Mapping

from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import folder_of
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.rental import Rental


class Doors:
    """Knows the doors of machines that are rented now; other nodes have none.

    A door is known from the moment on in which its machine is, and nothing is read of a machine or
    said to it before that. So a node has one folder for all of its life.
    """

    def __init__(self) -> None:
        self._doors: dict[str, str] = {}
        self._providers: dict[str, str] = {}
        self._followed: object = None

    def follow(self, rentals: Mapping[str, Rental]) -> None:
        """Take what a world's rentals say, if they are others than the last; at every tick."""
        if rentals is not self._followed:
            self._followed = rentals
            self.know(rentals.values())

    def know(self, rentals: Iterable[Rental]) -> None:
        """Take what rentals say now."""
        mine = [one for one in rentals if one.node is not None]
        self._doors = {one.node or "": one.door for one in mine if one.door}
        self._providers = {one.node or "": one.taken.provider for one in mine if one.taken}

    def folder(self, node: str) -> str:
        """Return what a node's folders are called."""
        return folder_of(node, self._doors.get(node, ""))

    def provider(self, node: str) -> str:
        """Return whose machine a node is; empty: ours, or nobody's that is rented now."""
        return self._providers.get(node, "")

    def store(self, node: str, mailboxes: Mailboxes) -> Objects:
        """Return the store that a node meets us in."""
        return mailboxes.of(self.provider(node))

    def lane(self, node: str, mailboxes: Mailboxes) -> str:
        """Return what that store is called: what is done there holds up no other one."""
        return mailboxes.name_of(self.provider(node))
