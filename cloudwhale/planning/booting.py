"""How far the first boot of a rented machine is: what it tells, folded into the rental."""

from cloudwhale.model import event as e
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.rental import Boot, Rental, RentalState
from cloudwhale.model.units import Instant, Seconds

BOOTS = frozenset({RentalState.REQUESTED, RentalState.BOOTING})
BOOTS_WITHIN_S: Seconds = 300.0  # on top of twice what its offer says: then it counts as failed
PHASES_MOST = 32  # of seven that there are; a machine that makes up names fills no database


def is_awaited(rental: Rental, node: Node | None) -> bool:
    """Say whether a machine boots as far as anybody knows, and its agent was not heard."""
    if rental.state not in BOOTS or rental.ended_at is not None:
        return False  # most of them; asked of all at every tick
    has_joined = node is not None and (node.state is not NodeState.EXPECTED or bool(node.agent))
    return not has_joined


def told(rental: Rental, node: Node | None, event: e.BootTold) -> Rental:
    """Return a rental after something that its machine told of its boot.

    The rental itself when that was read before, is not the next, or is of no boot any more: then
    nothing of it can be doubled, and nothing changes how a machine that is there is seen.
    """
    boot = rental.boot
    if event.number <= boot.read or not is_awaited(rental, node):
        return rental
    if event.state == "unreadable" or boot.has_failed:  # a boot fails once, and for good
        return rental.but(boot=boot.but(read=event.number))
    return rental.but(
        boot=boot.but(
            read=event.number, phase=event.phase, state=event.state, since=event.since,
            says=event.says, took_s=_took(boot, event),
        )
    )  # fmt: skip


def _took(boot: Boot, event: e.BootTold) -> dict[str, Seconds]:
    """Return how long phases took: by the machine, else by when they were told of."""
    took_s = event.took_s
    if took_s is None and boot.under_way == event.phase:
        took_s = max(0.0, event.since - boot.since)
    is_known = event.phase in boot.took_s or len(boot.took_s) < PHASES_MOST
    if event.state == "begun" or took_s is None or not is_known:
        return boot.took_s
    return {**boot.took_s, event.phase: took_s}


def moved(old: Rental, new: Rental, at: Instant) -> Rental:
    """Return a rental that has moved on with the boot that it had: who moves it may not know more.

    The phase in which its agent joined ends with that: nobody reads on.
    """
    boot = old.boot
    if new.state is RentalState.READY and old.state is not new.state and boot.under_way:
        took_s = boot.took_s | {boot.phase: max(0.0, at - boot.since)}
        boot = boot.but(state="done", since=at, took_s=took_s)
    ready_at = old.ready_at
    if ready_at is None and new.state is RentalState.READY:
        ready_at = at
    return new.but(boot=boot, ready_at=ready_at)


def late_at(rental: Rental) -> Instant:
    """Return when a machine counts as not booted whose agent has not joined until then."""
    boot_s = 0.0 if rental.taken is None else rental.taken.boot_s
    return _began_at(rental) + 2 * boot_s + BOOTS_WITHIN_S


def not_up(rental: Rental, now: Instant) -> str:
    """Say why a machine does not come up: a phase failed, or it is late; empty while it may."""
    if not rental.boot.has_failed and now < late_at(rental):
        return ""
    waited_s, far = now - _began_at(rental), far_words(rental, now)
    if rental.boot.has_failed:
        return far
    if far:
        return f"it was not ready in {waited_s:.0f} s: {far}"
    boot_s = 0.0 if rental.taken is None else rental.taken.boot_s
    return f"its agent has not joined for {waited_s:.0f} s; its offer says {boot_s:g} s"


def _began_at(rental: Rental) -> Instant:
    """Return since when it comes up; by our own clock, which may be far from its provider's."""
    if rental.launched_at is not None:
        return rental.launched_at
    return rental.reserved_at if rental.requested_at is None else rental.requested_at


def far_words(rental: Rental, now: Instant) -> str:
    """Say how far a boot is that has not come to its end; empty when it has told nothing."""
    boot = rental.boot
    if not boot.phase:
        return ""
    if boot.has_failed:
        return f"`{boot.phase}` failed" + (f": {boot.says}" if boot.says else "")
    for_s = max(0.0, now - boot.since)
    if boot.under_way:
        return f"`{boot.phase}` has gone on for {for_s:.0f} s"
    return f"nothing has come after `{boot.phase}` for {for_s:.0f} s"


_REMEDIES = {
    "bundle": "see that machines may read the mailbox, and have a Python that its archive is for",
    "driver": "take an image that has a driver, or let machines reach where packages come from",
    "docker": "take an image that has Docker, or let machines reach where packages come from",
    "toolkit": "take an image that has NVIDIA's container toolkit, or let machines fetch it",
    "gpus": "take an image whose driver is for these GPUs, or another kind of machine",
}
"""What helps against the failure of a phase; for others a person has to look."""


def remedy(rental: Rental) -> str:
    """Say what would change it that a machine does not come up."""
    own = _REMEDIES.get(rental.boot.phase, "look at its console")
    provider = "" if rental.taken is None else rental.taken.provider
    looks = f"; `cloudwhale doctor {provider}` looks at what is set up" if provider else ""
    return f"{own}{looks}. Another machine is tried."
