"""What happens to rented machines, in a few words, and what they have cost so far."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import ON_ITS_WAY, Rental, RentalState
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, usd
from cloudwhale.planning import ledger
from cloudwhale.planning.costing import billed, usd_h
from cloudwhale.reporting.booting import phase_words, took_words
from cloudwhale.reporting.figures import cents, hour, span

BACK = frozenset({RentalState.RETURNED})
TOLD_BY_ITS_STATE = frozenset({Code.RETURNED, Code.NEEDS_ATTENTION})
"""Notes on a machine that its change of state tells already."""

SMALL = Decimal("0.01")
SMALL_STEP = Decimal("0.0001")


def offer_words(offer: Offer) -> str:
    """Return what a person calls a machine that is rented: `CLOUD g5.xlarge spot in us-east-1a`."""
    return f"{offer.provider} {offer.type or offer.id} {offer.market} in {offer.zone}"


def small(amount: MicroUsd | Decimal) -> str:
    """Return an amount with its unit, in cents; less than one as hundredths of a cent."""
    exact = amount if isinstance(amount, Decimal) else usd(amount)
    if 0 < exact < SMALL:
        return f"{max(SMALL_STEP, exact.quantize(SMALL_STEP))} USD"
    return f"{cents(amount)} USD"


def cost_so_far(rental: Rental, now: Instant) -> MicroUsd:
    """Return what a machine has cost by now, as it is billed; what it did cost once it is paid."""
    offer, since = rental.taken, rental.requested_at
    if rental.state is RentalState.RETURNED:
        return rental.spent
    price = usd_h(rental)
    if offer is None or since is None or price is None:
        return NOTHING
    until = now if rental.ended_at is None else rental.ended_at
    machine = billed(rental, until)
    return min(rental.reserved, MicroUsd(machine + sum(one.cost for one in rental.egress)))


def egress_so_far(rental: Rental, now: Instant) -> dict[str, MicroUsd]:
    """Return what of a machine's cost is for checkpoints that left other clouds, by these."""
    costs: dict[str, int] = {}
    for one in rental.egress:
        costs[one.provider] = costs.get(one.provider, 0) + one.cost
    paid = min(MicroUsd(sum(costs.values())), cost_so_far(rental, now))
    return dict(ledger.split(paid, costs)) if paid else {}


def moved_words(before: Rental | None, after: Rental, now: Instant) -> str | None:
    """Say what has become of a machine; None for what nobody asks about."""
    if before is None or before.state is not after.state:
        return _state_words(after, now)
    joined = [job for job in after.jobs if job not in before.jobs]
    if joined:
        return f"is joined by {', '.join(joined)}"
    if after.lease.number != before.lease.number:
        return f"is ours until {hour(after.lease.away_until, now)}, {_reserved(after)}"
    return None


def _state_words(rental: Rental, now: Instant) -> str | None:
    match rental.state:
        case RentalState.RESERVED:
            return _asked_for(rental)
        case RentalState.BOOTING:
            boot_s = 0.0 if rental.taken is None else rental.taken.boot_s
            return f"boots, which takes {span(boot_s)} as a rule" if boot_s else "boots"
        case RentalState.READY:
            since = rental.reserved_at
            took = took_words(rental.boot.took_s)
            each = f": {took}" if took else ""
            return f"is ready, {span(max(0.0, now - since))} after it was asked for{each}"
        case RentalState.DRAINING:
            return "is given back"
        case RentalState.LOST:
            return "is gone"
        case RentalState.NEEDS_ATTENTION:
            return "needs attention: it does not end, and is told to again and again"
        case RentalState.RETURNED:
            return _returned(rental)
        case _:
            return None


def _asked_for(rental: Rental) -> str:
    offer = rental.taken
    if offer is None:
        return f"is asked for: {rental.offer}"
    price = usd_h(rental)
    hourly = "" if price is None else f", {small(price)} an hour"
    return f"is asked for: {offer_words(offer)}{hourly}, {_reserved(rental)}"


def _reserved(rental: Rental) -> str:
    return f"{small(rental.reserved)} reserved"


def _returned(rental: Rental) -> str:
    since, until = rental.requested_at, rental.ended_at
    if since is None or until is None:
        return "never came, and costs nothing"
    return f"is back, {small(rental.spent)} for {span(max(0.0, until - since))}"


def kept_words(rental: Rental, job: Job, now: Instant, also: str = "") -> str:
    """Say that a machine stays because a job has failed there, and how to look at it.

    `also`: what the commands that are named need beside their names.
    """
    folder = f"nodes/{rental.node}/attempts/{job.id}/{job.attempt}/work"
    return (
        f"is kept until {hour(rental.kept_until, now)} to be looked at, as {job.id} has failed: "
        f"its folder is {folder} in the agent's home on {rental.machine or rental.id}, its output "
        f"`cloudwhale logs {job.id}{also}`; `cloudwhale cancel {job.id}{also}` gives the machine "
        f"back"
    )


def machine_words(rental: Rental, now: Instant) -> str:
    """Say what a machine is and how far it has come, for a row of its own."""
    what = rental.offer if rental.taken is None else offer_words(rental.taken)
    if rental.state in ON_ITS_WAY:
        since = rental.reserved_at if rental.requested_at is None else rental.requested_at
        boot_s = 0.0 if rental.taken is None else rental.taken.boot_s
        usual = f" of about {span(boot_s)}" if boot_s else ""
        phase = phase_words(rental, now)
        return f"{phase}{phase and ', '}{span(max(0.0, now - since))}{usual}  {what}"
    if rental.kept_until > now and rental.state is RentalState.READY:
        return f"kept for {rental.kept_for} until {hour(rental.kept_until, now)}  {what}"
    return f"until {hour(rental.lease.away_until, now)}  {what}"


def noted_words(event: e.Noted) -> str | None:
    """Say what is worth knowing of a machine; None for what its state tells."""
    reason = event.reason
    says = reason.says.removeprefix(f"{event.subject} ")  # who is told of it stands before it
    if reason.code in TOLD_BY_ITS_STATE:
        return None
    remedy = reason.change if reason.code is Code.CANNOT_ACT else ""
    return f"{cut(says)}{remedy and f': {remedy}'} [{reason.code}]"


WORDS_MOST = 300  # clouds say the same of each zone; `explain` has all of it


def cut(says: str) -> str:
    """Return a sentence, or its beginning where it is a long one."""
    return says if len(says) <= WORDS_MOST else f"{says[: WORDS_MOST - 1]}…"


def lid_words(rentals: Iterable[Rental], now: Instant) -> str:
    """Say that nobody need watch; empty while a machine is on its way, or none is there.

    Only once all are there is it known what goes on by itself.
    """
    there = [rental for rental in rentals if rental.state not in BACK]
    if not any(one.state is RentalState.READY for one in there):
        return ""
    if any(one.state in ON_ITS_WAY for one in there):
        return ""
    until = max(one.lease.away_until for one in there)
    reserved = MicroUsd(sum(one.reserved for one in there))
    return (
        f"You may close the lid: it continues until {hour(until, now)}, {small(reserved)} reserved"
    )


def spent_so_far(rentals: Mapping[str, Rental], now: Instant) -> MicroUsd:
    """Return what a run's machines have cost by now, those that are back too."""
    return MicroUsd(sum(cost_so_far(rental, now) for rental in rentals.values()))
