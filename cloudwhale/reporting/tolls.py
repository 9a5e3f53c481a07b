"""What each interruption of a job has cost: work, money for machine time without any, and time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cloudwhale.model import event as e
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value
from cloudwhale.planning import ledger
from cloudwhale.planning.costing import usd_h
from cloudwhale.spi.store import Told


class Toll(Value):
    """What one interruption has cost."""

    lost_s: Seconds
    """Run time that no checkpoint held; their sum is the receipt's `lost_work_s`."""
    wasted: MicroUsd | None
    """For the machine time of that work, what the machine was billed after it, and the next one's
    time until the job ran there; None: no machine was paid for."""
    away_s: Seconds | None
    """From the word of it until the job ran again; None: it has not."""


Interrupts = e.Retried | e.Cleared | e.GaveWay
"""What the receipt counts as an interruption."""


@dataclass(slots=True)
class _Open:
    """An interruption as far as it is known."""

    seq: int
    began_at: Instant
    ended_at: Instant
    lost_s: Seconds
    nodes: tuple[str, ...]
    """Where it was interrupted; of a gang the machine of each rank."""
    again_at: Instant | None = None
    next_nodes: tuple[str, ...] = ()


def tolls(job: str, told: Sequence[Told], rentals: Iterable[Rental]) -> Mapping[int, Toll]:
    """Return the cost of each interruption, by the number of the event that ended its attempt.

    `rentals`: the machines of its run, as they are or were last. Of a machine that others shared,
    the part counts that the job held of it.
    """
    machines = {one.node: one for one in rentals if one.node is not None}
    return {
        one.seq: Toll(
            lost_s=one.lost_s,
            wasted=_wasted(job, one, machines),
            away_s=None if one.again_at is None else max(0.0, one.again_at - one.began_at),
        )
        for one in _interruptions(told)
    }


def _interruptions(told: Sequence[Told]) -> Iterator[_Open]:
    nodes: tuple[str, ...] = ()
    lost_at: Instant | None = None
    waiting: list[_Open] = []
    for item in told:
        event = item.event
        if isinstance(event, e.Placed):
            nodes, lost_at = event.placement.nodes, None
        elif isinstance(event, e.AttemptLost):
            lost_at = event.at if lost_at is None else lost_at
        elif isinstance(event, Interrupts):
            began_at = event.at if lost_at is None else lost_at
            waiting.append(_Open(item.seq, began_at, event.at, event.lost_s, nodes))
            lost_at = None
        elif isinstance(event, e.Started):
            for one in waiting:
                one.again_at, one.next_nodes = event.at, nodes
            yield from waiting
            waiting = []
    yield from waiting


def _wasted(job: str, one: _Open, machines: Mapping[str, Rental]) -> MicroUsd | None:
    old = [machines[name] for name in one.nodes if name in machines]
    new = [machines[name] for name in one.next_nodes if name in machines]
    if not old and not new:
        return None
    cost = sum(_of_old(job, one, rental) for rental in old)
    return MicroUsd(cost + sum(_of_new(job, one, rental) for rental in new if rental not in old))


def _of_old(job: str, one: _Open, rental: Rental) -> MicroUsd:
    """Return what its last machine cost for lost work, and idle, for as long as it was billed."""
    idle_s = 0.0
    since, offer = rental.requested_at, rental.taken
    if rental.ended_at is not None and since is not None and offer is not None:
        billed_to = max(rental.ended_at, since + max(offer.billing_least_s, 0.0))
        idle_s = max(0.0, billed_to - one.ended_at)
    return _part(job, rental, one.lost_s + idle_s)


def _of_new(job: str, one: _Open, rental: Rental) -> MicroUsd:
    """Return what its next machine cost before it ran there; nothing where it was there before."""
    since = rental.requested_at
    if since is None or one.again_at is None or since < one.began_at:
        return NOTHING
    return _part(job, rental, max(0.0, one.again_at - since))


def _part(job: str, rental: Rental, for_s: Seconds) -> MicroUsd:
    price = usd_h(rental)
    if price is None:
        return NOTHING
    held = sum(rental.held_s.values())
    share = rental.held_s.get(job, 0.0) / held if held > 0 else 1.0
    return MicroUsd(int(ledger.cost(price, for_s) * Decimal(share)))
