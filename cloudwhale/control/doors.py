"""Which folder of the mailbox is a node's: that behind its rental's door, or that of its name."""

from collections.abc import Iterable

from cloudwhale.mailbox.box import folder_of
from cloudwhale.model.rental import Rental


class Doors:
    """Knows the doors of machines that are rented now; other nodes have none.

    A door is known from the moment on in which its machine is, and nothing is read of a machine or
    said to it before that. So a node has one folder for all of its life.
    """

    def __init__(self) -> None:
        self._doors: dict[str, str] = {}

    def know(self, rentals: Iterable[Rental]) -> None:
        """Take what rentals say now."""
        self._doors = {one.node: one.door for one in rentals if one.node is not None and one.door}

    def folder(self, node: str) -> str:
        """Return what a node's folders are called."""
        return folder_of(node, self._doors.get(node, ""))
