"""In which store an attempt's log and outputs lie: in that of the machine that it ran on."""

from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model import event as e
from cloudwhale.spi.store import Store


class AttemptStores:
    """Asks the database which machine an attempt ran on, where there is more than one store."""

    def __init__(self, store: Store, mailboxes: Mailboxes) -> None:
        self._store = store
        self._mailboxes = mailboxes

    def of(self, job: str, attempt: int) -> Objects:
        """Return the store of an attempt; the main one for an attempt that nobody knows."""
        if self._mailboxes.is_one:
            return self._mailboxes.main
        return self._mailboxes.of(self._provider(self._node(job, attempt)))

    def _node(self, job: str, attempt: int) -> str:
        """Return the node of an attempt, of a gang that of rank 0; empty: nobody knows."""
        for told in self._store.events(job):
            event = told.event
            if isinstance(event, e.Placed) and event.attempt == attempt:
                return event.placement.node
        return ""

    def _provider(self, node: str) -> str:
        """Return whose machine a node is or was; empty: ours."""
        for told in reversed(self._store.events(node) if node else ()):
            event = told.event
            if isinstance(event, e.RentalChanged) and event.rental.taken is not None:
                return event.rental.taken.provider
        return ""
