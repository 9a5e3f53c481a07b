"""What an event is of: under that name its story is found."""

from cloudwhale.model import event as e
from cloudwhale.planning import payers
from cloudwhale.planning.noticing import POSITION


def subject(event: e.Event) -> str:
    """Return the job, node, run, rental or project (as a budget's) that an event is of."""
    match event:
        case e.BudgetSet():
            return f"{payers.PREFIX}{event.budget.project}"
        case e.RunBudgetSet() | e.NightClosed():
            return event.run
        case e.OfJob() | e.Brought():
            return event.job
        case e.RunOpened():
            return event.run.id
        case e.NodeJoined():
            return event.node.id
        case e.OfNode() | e.Read() | e.StoreUsed():
            return event.node
        case e.Noted():
            return event.subject
        case e.Noticed() | e.Notified():
            return POSITION
        case e.RentalChanged() | e.Reserved() | e.Charged() | e.Released() | e.BootTold():
            return event.rental if isinstance(event.rental, str) else event.rental.id
