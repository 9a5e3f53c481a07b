"""What is known once an order lies in an agent's mailbox."""

from collections.abc import Iterable

from cloudwhale.control.carrying import Carried, brought
from cloudwhale.control.effects import Key
from cloudwhale.control.executor import Posted
from cloudwhale.model import event as e
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World


def ordered(key: Key, done: Posted | Carried, world: World, now: Instant) -> Iterable[e.Event]:
    """Return the events of an order that was posted, or of what was carried for one."""
    if isinstance(done, Carried):  # whoever it was for is wanted there no more
        return brought(done, world.rentals, now)
    return [*brought(done.carried, world.rentals, now), *_posted(key, done, now)]


def _posted(key: Key, posted: Posted, now: Instant) -> Iterable[e.Event]:
    job, number = key.subject, posted.number
    if key.verb == "start":
        return [e.OrderPosted(at=now, job=job, attempt=key.attempt, number=number, rank=key.rank)]
    if key.verb == "stop":
        return [e.StopPosted(at=now, job=job, attempt=key.attempt, number=number, rank=key.rank)]
    return []  # the order to leave: nothing waits for it
