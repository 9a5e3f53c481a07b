"""Arithmetic of money: reserve, admit, accrue, settle, split. Whole micro-dollars, rounded up."""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds, usd
from cloudwhale.model.value import Value
from cloudwhale.model.world import Account
from cloudwhale.planning.payers import called

SECONDS_PER_HOUR = 3600
FOR_MONEY = (Code.OVER_BUDGET, Code.SOFT_LINE, Code.WOULD_STRAND_STARTED_WORK)
"""Why a reservation is not admitted."""

LEAST_CHARGE_S: Seconds = 60.0  # the large clouds bill a minute at least
STOP_LAG_S: Seconds = 90.0  # from a provider's own stop to the end of its bill, at most


class LeaseTerms(Value):
    """All that can make a lease cost money."""

    cap_usd_h: MicroUsd
    """Highest price per hour that can be charged without our consent."""
    begins_at: Instant
    stop_at: Instant
    """Earliest stop that the provider itself enforces."""
    disk_usd_h: MicroUsd = MicroUsd(0)
    address_usd_h: MicroUsd = MicroUsd(0)
    egress_allowance: MicroUsd = MicroUsd(0)
    failed_boot_s: Seconds = 0.0
    """Boot time that is paid once more when the first boot fails."""
    billing_step_s: Seconds = 0.0
    """What is begun of a step is billed whole."""
    billing_least_s: Seconds = 0.0
    """Billed at least, where that is more than a minute."""


def cost(price_usd_h: MicroUsd, seconds: Seconds) -> MicroUsd:
    """Return the cost of some time at an hourly price, rounded up to the micro-dollar."""
    # Exact, in whole numbers: as with fractions, at a tenth of their time.
    parts, whole = max(0.0, seconds).as_integer_ratio()
    return MicroUsd(-(-price_usd_h * parts // (SECONDS_PER_HOUR * whole)))


def accrued(
    price_usd_h: MicroUsd, seconds: Seconds, *, step_s: Seconds = 1.0, least_s: Seconds = 60.0
) -> MicroUsd:
    """Return what a provider charges for some time: whole billing steps, a minimum at least.

    A step of 0 bills the time as it is.
    """
    used_s = max(0.0, seconds)
    billed = used_s if step_s <= 0 else math.ceil(used_s / step_s) * step_s
    return cost(price_usd_h, max(billed, least_s))


def worst_case(terms: LeaseTerms) -> MicroUsd:
    """Return the most that a lease can cost, whatever fails."""
    planned_s = max(0.0, terms.stop_at - terms.begins_at)
    least_s = max(LEAST_CHARGE_S, terms.billing_least_s) + terms.billing_step_s
    billed_s = planned_s + least_s + STOP_LAG_S + terms.failed_boot_s
    hourly = MicroUsd(terms.cap_usd_h + terms.disk_usd_h + terms.address_usd_h)
    return MicroUsd(cost(hourly, billed_s) + terms.egress_allowance)


def left(account: Account) -> MicroUsd:
    """Return what may still be reserved; nothing when no limit is set, whoever needs none."""
    if account.limit is None:
        return MicroUsd(0)
    return MicroUsd(max(0, account.limit - account.reserved - account.spent))


def refusal(
    account: Account, worst: MicroUsd, started_forecast: MicroUsd = NOTHING
) -> Refusal | None:
    """Return why a reservation is not admitted, or None: the one rule for every payer.

    `started_forecast` is the 90 % forecast of finishing all started work beyond its leases; what is
    rented for here will have started, so it is counted too.
    """
    limit, whose = account.limit, called(account.payer)
    if limit is None:
        if not account.needs_limit:
            return None
        return _no(Code.OVER_BUDGET, f"{whose} has no budget", "give one with --budget")
    change = _raised(account, worst, started_forecast)
    if worst > left(account):
        says = f"could cost {usd(worst)} USD, {usd(left(account))} of {usd(limit)} USD are left"
        if not account.needs_limit:
            says += f" to {whose}"
        return _no(Code.OVER_BUDGET, says, change)
    if worst + started_forecast > left(account):
        says = (
            f"could cost {usd(worst)} USD, and {usd(started_forecast)} more where what then has "
            f"started runs late; {usd(left(account))} USD are left"
        )
        return _no(Code.WOULD_STRAND_STARTED_WORK, says, f"{change}, or let work finish")
    if account.spent + account.reserved >= limit * _soft(account.soft):
        says = f"{usd(MicroUsd(account.spent + account.reserved))} of {usd(limit)} USD are taken"
        says += f", past the soft line of {account.soft:.0%}"
        return _no(Code.SOFT_LINE, says, f"{change}, or its soft line")
    return None


def together(*refusals: Refusal | None) -> Refusal | None:
    """Return why some of several payers admit no reservation, in one; None: all of them do."""
    found = [one for one in refusals if one is not None]
    if len(found) < 2:
        return found[0] if found else None
    says, change = "; ".join(one.says for one in found), "; ".join(one.change for one in found)
    return found[0].but(says=says, change=change)


def least_limit(
    account: Account, worst: MicroUsd, started_forecast: MicroUsd = NOTHING
) -> MicroUsd | None:
    """Return the least limit with which `refusal` admits a reservation; None: none does."""
    taken, soft = account.spent + account.reserved, _soft(account.soft)
    if not soft:
        return None
    above_soft = taken * soft.denominator // soft.numerator + 1
    return MicroUsd(max(taken + worst + started_forecast, above_soft))


def _raised(account: Account, worst: MicroUsd, started_forecast: MicroUsd) -> str:
    """Return which budget a reservation needs, as what is to be done."""
    least, change = (
        least_limit(account, worst, started_forecast),
        f"raise the budget of {called(account.payer)}",
    )
    if least is None or account.limit is None:
        return change
    return f"{change} by {usd(MicroUsd(least - account.limit))} USD"


def soft_line(account: Account) -> MicroUsd | None:
    """Return the amount from which on nothing new is rented; None without a limit."""
    if account.limit is None:
        return None
    share = _soft(account.soft)
    return MicroUsd(-(-account.limit * share.numerator // share.denominator))


@lru_cache(maxsize=64)
def _soft(share: float) -> Fraction:
    return Fraction(share).limit_denominator(10**6)


def _no(code: Code, says: str, change: str) -> Refusal:
    return Refusal(code=code, says=says, can_wait=True, change=change)


Move: TypeAlias = Literal["reserved", "charged", "released"]


def after(account: Account, event: e.Reserved | e.Charged | e.Released) -> Account:
    """Return the payer's account after an event; see `moved`."""
    return moved(account, event.kind, event.amount)


def moved(account: Account, move: Move, amount: MicroUsd) -> Account:
    """Return an account after a move; a charge and a release take from what is reserved.

    Raise ValueError for a move that would set aside more than the limit leaves, or spend or free
    more than was set aside. A limit that was lowered below what is taken stops reservations alone.
    """
    if amount < 0:
        raise ValueError(f"{move} of a negative amount: {amount}")
    if move == "reserved":
        is_bounded = account.limit is not None or account.needs_limit
        if is_bounded and amount > left(account):
            raise ValueError(f"{move} of {amount} but {account.payer} has {left(account)} left")
        return account.but(reserved=MicroUsd(account.reserved + amount))
    if amount > account.reserved:
        raise ValueError(f"{move} of {amount} but {account.payer} has {account.reserved} reserved")
    changed = account.but(reserved=MicroUsd(account.reserved - amount))
    if move == "charged":
        return changed.but(spent=MicroUsd(account.spent + amount))
    return changed


def split(amount: MicroUsd, weights: Mapping[str, float]) -> Mapping[str, MicroUsd]:
    """Split money by weight so that the parts add up exactly; the largest remainders round up.

    Weights are shares × seconds; when all are zero the first (by name) takes everything.
    """
    total = sum(Fraction(weight) for weight in weights.values())
    names = sorted(weights)
    if not names:
        raise ValueError("nobody to split the money between")
    if total == 0:
        return {name: amount if name == names[0] else MicroUsd(0) for name in names}
    exact = {name: amount * Fraction(weights[name]) / total for name in names}
    parts = {name: math.floor(share) for name, share in exact.items()}
    short = amount - sum(parts.values())
    by_remainder = sorted(names, key=lambda name: (parts[name] - exact[name], name))
    for name in by_remainder[:short]:
        parts[name] += 1
    return {name: MicroUsd(part) for name, part in parts.items()}


def split_below(
    amount: MicroUsd, weights: Mapping[str, float], most: Mapping[str, MicroUsd]
) -> Mapping[str, MicroUsd]:
    """Split money by weight so that nobody gets more than its most; the others share what is over.

    Who has no most can take everything. Raise ValueError when all of them are too little.
    """
    found: dict[str, MicroUsd] = {}
    shares = dict(weights)
    while shares:
        parts = split(MicroUsd(amount - sum(found.values())), shares)
        over = [name for name, part in parts.items() if part > most.get(name, part)]
        if not over:
            return {**found, **parts}
        for name in over:
            found[name] = most[name]
            del shares[name]
    if sum(found.values()) < amount:
        raise ValueError(f"{amount} is more than all may pay together: {sum(found.values())}")
    return found
