"""Which things events ask for when they are folded, so that they are read in one go."""

from collections.abc import Iterable

from cloudwhale.control.store.past import Named
from cloudwhale.model import event as e
from cloudwhale.model.units import MicroUsd


def named_in(events: Iterable[e.Event]) -> Named:
    """Return the things that folding these events will ask for."""
    named = Named()
    for event in events:
        _name(event, named)
    return named


def _name(event: e.Event, named: Named) -> None:
    match event:
        case e.OfJob():
            named.jobs.add(event.job)
        case e.RunOpened():
            named.runs.add(event.run.id)
            named.accounts.add(event.run.id)
            named.jobs.update(event.run.night.carried if event.run.night else ())
        case e.RunBudgetSet() | e.NightClosed():
            named.runs.add(event.run)
            named.accounts.add(event.run)
        case e.Reserved() | e.Charged() | e.Released():
            named.accounts.update(payments(event))
            named.jobs.update([event.job] if isinstance(event, e.Charged) and event.job else [])
        case e.Noticed():
            named.notices.update(notice.id for notice in event.notices)
        case e.Notified():
            named.notices.update(event.notices)
        case _:
            pass  # what they ask for is in memory, or is one row


def payments(event: e.Reserved | e.Charged | e.Released) -> dict[str, MicroUsd]:
    """Return what an event moves in each account."""
    if isinstance(event, e.Charged):
        also = {event.account: event.amount} if event.account else {}
    else:
        also = event.projects
    return {event.payer: event.amount, **also}
