"""Documents that never come: when to look behind one that is missing in an inbox."""

from cloudwhale.model.units import Instant, Seconds

LOOK_S: Seconds = 30.0  # three heartbeats late: is anything behind what is missing?
SURE_S: Seconds = 10.0  # a shared folder may show a document later than the one after it


class Missing:
    """Remembers which inboxes have a later document than the one that is waited for.

    An agent writes one document after the other, so what is missing then was deleted.
    """

    def __init__(self) -> None:
        self._begun: set[str] = set()
        """Inboxes that were read once since we began."""
        self._looked_at: dict[str, Instant] = {}
        self._since: dict[str, tuple[int, Instant]] = {}
        """The number that is missing, and since when that is known."""

    def must_look(self, node: str, quiet_since: Instant, now: Instant) -> bool:
        """Say whether to look, with a list, what lies behind a document that is not there."""
        if node in self._since:
            return now - self._since[node][1] >= SURE_S
        return now - max(quiet_since, self._looked_at.get(node, quiet_since)) >= LOOK_S

    def may_pass(self, node: str, number: int, now: Instant) -> bool:
        """Say whether a document that is not there may be passed over.

        At our first look, too: what was read long ago has been deleted by age.
        """
        if node not in self._begun:
            return True
        missing, since = self._since.get(node, (0, now))
        return missing == number and now - since >= SURE_S

    def read(self, node: str) -> None:
        """Note that documents came, so none is missing."""
        self._begun.add(node)
        self._since.pop(node, None)

    def looked(self, node: str, number: int, later: int, now: Instant) -> None:
        """Note what lies behind a missing document: a later one, or the same number for nothing."""
        self._begun.add(node)
        self._looked_at[node] = now
        if later > number:
            self._since.setdefault(node, (number, now))
        else:
            self._since.pop(node, None)
