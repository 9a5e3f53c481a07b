"""What agents say of what is really used: in no event, only in their newest heartbeats."""

from collections.abc import Iterable

from cloudwhale.control.doors import Doors
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import REPORTS, Heartbeat
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.machines import Look
from cloudwhale.spi.errors import CloudwhaleError

LOOK_BACK = 20  # documents: among so many of a busy agent there is a heartbeat
TOO_OLD_S: Seconds = 60.0  # six heartbeats: what was used then says nothing of now


def looks(
    mailboxes: Mailboxes, nodes: Iterable[Node], now: Instant, rentals: Iterable[Rental] = ()
) -> dict[str, Look]:
    """Return what each node's agent measured last; a node that does not say is left out.

    A mailbox that cannot be read now leaves out all who meet there: what is promised is known
    without it.
    """
    found: dict[str, Look] = {}
    silent: set[str] = set()
    doors = Doors()
    doors.know(rentals)
    for node in nodes:
        store = doors.lane(node.id, mailboxes)
        if node.state not in (NodeState.READY, NodeState.DRAINING) or store in silent:
            continue
        try:
            look = _newest(doors.store(node.id, mailboxes), doors.folder(node.id))
        except CloudwhaleError:
            silent.add(store)
            continue
        if look is not None and now - look.at <= TOO_OLD_S:
            found[node.id] = look
    return found


def _newest(objects: Objects, folder: str) -> Look | None:
    box = inbox_from(objects, folder)
    newest = box.newest()
    for number in range(newest, max(0, newest - LOOK_BACK), -1):
        body = box.read(number)
        report = None if body is None else _report(body)
        if isinstance(report, Heartbeat) and report.measured is not None:
            return Look(report.at, report.measured)
    return None


def _report(body: bytes) -> object:
    """Return a report, or None for what another version or a stranger has written."""
    try:
        return REPORTS.validate_json(body)
    except ValueError:
        return None
