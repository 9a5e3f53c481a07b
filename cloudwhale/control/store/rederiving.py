"""What older programs did not derive from the events, derived once after a migration.

A replay folds the events of old with the rules of today; the rows must say the same.
"""

from sqlalchemy import Connection, delete

from cloudwhale.control.store import reading, writing
from cloudwhale.control.store import tables as t
from cloudwhale.control.store.folding import Draft
from cloudwhale.control.store.state import Archive


def rederive(connection: Connection) -> None:
    """Write what nodes, rentals, charges, families and projects' use are by all events.

    Takes as long as it takes to read every event: some seconds for ten thousand jobs.
    """
    newest = reading.newest_event(connection)
    draft = Draft(Archive())
    for told in reading.until(connection, newest):
        draft.fold(told.seq, told.event)
    for table in (t.nodes, t.rentals, t.uses, t.charges, t.families):
        connection.execute(delete(table))
    writing.write_derived(connection, draft, newest)
