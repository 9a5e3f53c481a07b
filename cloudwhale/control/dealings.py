"""What providers answer: the events of it, and what is remembered for the next time."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from cloudwhale.control.circuits import told_to
from cloudwhale.control.effects import Effect, Result
from cloudwhale.control.hired import Hired, Tried
from cloudwhale.control.hiring import LAUNCH, TERMINATE, Ended, Extended, Launched, LeaseTold
from cloudwhale.control.offers import Offered, Offers
from cloudwhale.control.reports import Notice
from cloudwhale.control.sweeping import Boxes, Leftovers, Removed, Sweeping
from cloudwhale.control.watcher import Machines
from cloudwhale.mailbox.box import node_in
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.model.rental import COMES_OR_IS, Rental, RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import booting, boots
from cloudwhale.spi.errors import (
    CloudwhaleError,
    Denied,
    PriceMoved,
    QuotaExceeded,
    TryAnother,
    Unreachable,
)
from cloudwhale.spi.store import Told

STUCK_AFTER = 10  # failures of a machine's end, each waiting longer than the one before
STUCK_AFTER_S: Seconds = 600.0

Story = Callable[[str], Sequence[Told]]
"""Returns what has happened to a thing."""


class Dealings:
    """Remembers what was refused, what does not boot, what cannot be ended, what was left over."""

    def __init__(self, offers: Offers, sweeping: Sweeping, story: Story) -> None:
        self._offers = offers
        self._sweeping = sweeping
        self._story = story
        self._tries: dict[str, tuple[int, Instant]] = {}
        """How often the end of each machine has failed in a row, and since when."""
        self._unknown: set[str] = set()
        """Machines that nobody rents and that are taken away, as was told."""
        self._doubted: set[str] = set()
        """Rentals whose machine may have been made: nobody has heard what came of a launch."""
        self._has_begun = False
        self._came: list[Leftovers] = []
        self._boxes: list[Boxes] = []
        self._offers.circuits.remember(story(boots.SUBJECT))

    # -- what comes back -----------------------------------------------------------------------

    def heard(self, result: Result, hired: Hired, now: Instant) -> Iterable[e.Event]:
        """Return what became of rented machines; what was refused is not asked for again soon."""
        match result.value:
            case Offered() as offered:
                refused = self._offers.came(offered)
                return () if refused is None else (_told_of(offered.provider, refused, now),)
            case Machines() as seen:
                return hired.seen(seen.provider, seen.machines)
            case Launched() | Extended() | Ended() | LeaseTold() as answer:
                self._tries.pop(result.key.subject, None)
                if isinstance(answer, Launched):
                    self._doubted.discard(result.key.subject)
                return hired.told(result.key.subject, answer)
            case Leftovers() as found:
                self._came.append(found)
            case Boxes() as boxes:
                self._boxes.append(boxes)
            case Removed() as removed:
                return (self._sweeping.removed(removed, now),)
            case _ if result.error is not None:
                return self._refused(result, result.error, hired, now)
            case _:
                pass
        return ()

    def _refused(
        self, result: Result, error: CloudwhaleError, hired: Hired, now: Instant
    ) -> Iterable[e.Event]:
        name, verb = result.key.subject, result.key.verb
        if verb == TERMINATE:
            return self._not_ended(name, error, hired, now)
        if verb == LAUNCH:
            self._shun(hired.offer_of(name), error, hired.rentals, now)
            if self._is_in_doubt(name, error):
                return ()
        return hired.refused(name, verb, error)

    def _is_in_doubt(self, name: str, error: CloudwhaleError) -> bool:
        """Say whether an earlier call may have made the machine of a launch that was refused now.

        Who may not even look says nothing of it: its money stays set aside, it is tried again, and
        its provider's list tells in the end.
        """
        if isinstance(error, Unreachable):
            self._doubted.add(name)
        elif not isinstance(error, Denied):
            self._doubted.discard(name)
        return name in self._doubted

    def _shun(
        self, offer: str, error: CloudwhaleError, rentals: Iterable[Rental], now: Instant
    ) -> None:
        """Ask for an offer no more for a while, nor for those that were tried with it."""
        others = error.offers if isinstance(error, TryAnother) else ()
        for one in dict.fromkeys((offer, *others)):
            if isinstance(error, PriceMoved):
                self._offers.moved(one)
            elif isinstance(error, QuotaExceeded):
                self._offers.exhaust(one, now, rentals)
            elif isinstance(error, Denied):
                self._offers.deny(one, now)
            elif isinstance(error, TryAnother):
                self._offers.block(one, now)

    def _not_ended(
        self, name: str, error: CloudwhaleError, hired: Hired, now: Instant
    ) -> Iterable[e.Event]:
        """Count how often a machine could not be ended; a person must look at one that cannot."""
        times, since = self._tries.get(name, (0, now))
        self._tries[name] = (times + 1, since)
        if times + 1 < STUCK_AFTER and now - since < STUCK_AFTER_S:
            return ()
        return hired.stuck(name, error, Tried(times + 1, now - since))

    def warned(self, notices: list[Notice], hired: Hired, now: Instant) -> Iterator[e.Event]:
        """Yield what notices change that machines were given; takes them out of the list."""
        while notices:
            notice = notices.pop(0)
            if hired.rents(notice.node):
                yield from hired.warned(notice)
            elif self._is_news(notice.node):
                yield _unknown(notice, now)

    def _is_news(self, node: str) -> bool:
        """Say whether nobody was told yet that a machine which we do not rent is taken away."""
        told = (one.event for one in self._story(node))
        noted = (one for one in told if isinstance(one, e.Noted))
        if node in self._unknown or any(one.reason.code is Code.TAKEN_AWAY for one in noted):
            return False
        self._unknown.add(node)
        return True

    # -- what was decided ----------------------------------------------------------------------

    def decided(self, made: p.Plan, world: World) -> Iterator[e.Event]:
        """Yield what follows for the next launches from machines that came up, or did not."""
        circuits = self._offers.circuits
        for step in made.steps:
            if isinstance(step, p.Receive):
                note = circuits.came_up(step.rental, world.now)
                yield from () if note is None else (note,)
            elif isinstance(step, p.Return) and step.reason.code is Code.BOOT_FAILED:
                yield from self._not_booted(step.rental, step.reason.says, made, world)
            elif isinstance(step, p.Settle) and _ended_unheard(step.rental, world):
                far = booting.far_words(step.rental, step.rental.ended_at or world.now)
                says = f"it ended before its agent joined{far and f'; {far}'}"
                note = boots.noted(step.rental, Code.BOOT_FAILED, says, world.now)
                yield from () if note is None else (note,)
                yield from self._not_booted(step.rental, says, made, world)

    def _not_booted(
        self, rental: Rental, says: str, made: p.Plan, world: World
    ) -> Iterator[e.Event]:
        """Ask for its offer no more for a while; yield what that opens, and to whom it is told."""
        self._offers.block(rental.offer, world.now)
        failed = boots.noted(rental, Code.BOOT_FAILED, says, world.now)
        if failed is not None:
            opened = self._offers.circuits.failed(failed)
            self._offers.try_last(world.now)
            yield from opened
            yield from told_to(rental, opened, _waiting(made, world))

    # -- what is due ---------------------------------------------------------------------------

    def due(self, world: World, now: Instant) -> list[Effect]:
        """Return the searches and removals that are due; asked before the first decision."""
        rentals = world.rentals.values()
        if not self._has_begun:  # what an earlier controller has asked for, nobody has heard of
            self._doubted = {one.id for one in rentals if one.state is RentalState.RESERVED}
            for one in rentals:
                if _goes_back_unbooted(one, world):
                    self._offers.block(one.offer, now)
            self._has_begun = True
        effects = self._sweeping.searches(rentals, now)
        came, self._came = self._came, []
        for found in came:
            effects += self._sweeping.removals(found, rentals, now)
        boxes, self._boxes = self._boxes, []
        known = {*world.rentals, *world.nodes}
        for box in boxes:
            left = [folder for folder in sorted(box.folders) if node_in(folder) not in known]
            gone = [folder for folder in left if self.was_rented(node_in(folder))]
            effects += [self._sweeping.tidied(folder, box.store) for folder in gone]
        return effects

    def was_rented(self, name: str) -> bool:
        """Say whether a name is of a machine that was rented, and is given back and paid for."""
        changes = [one.event for one in self._story(name)]
        states = [one.rental.state for one in changes if isinstance(one, e.RentalChanged)]
        return bool(states) and states[-1] is RentalState.RETURNED


def _ended_unheard(rental: Rental, world: World) -> bool:
    """Say whether a machine ended by itself and nobody has ever heard its agent.

    Whatever ends its first start, like an agent that does not run there, ends that of the next.
    """
    before, node = world.rentals.get(rental.id), world.nodes.get(rental.node or "")
    was_lost = before is not None and before.state is RentalState.LOST
    return was_lost and node is not None and not node.agent


def _goes_back_unbooted(rental: Rental, world: World) -> bool:
    """Say whether a machine did not come up, and is not back: an earlier controller judged so."""
    node = world.nodes.get(rental.node or "")
    is_unheard = node is None or not node.agent
    goes_back = rental.state not in COMES_OR_IS
    return goes_back and is_unheard and bool(booting.not_up(rental, world.now))


def _waiting(made: p.Plan, world: World) -> list[str]:
    """Return the jobs that wait after a plan as they did before: those that it places do not."""
    moved = {step.job for step in made.steps if isinstance(step, p.Place | p.Park | p.GiveUp)}
    moved |= {step.job for step in made.steps if isinstance(step, p.Drop)}
    jobs = world.jobs.values()
    waits = (JobState.PENDING, JobState.RECOVERING)
    return [one.id for one in jobs if one.state in waits and one.id not in moved]


def _unknown(notice: Notice, now: Instant) -> e.Noted:
    says = f"{notice.node} says that it is taken away, and nobody rents it here: {notice.says}"
    reason = Reason(code=Code.TAKEN_AWAY, says=says)
    return e.Noted(at=now, subject=notice.node, reason=reason)


def _told_of(provider: str, refused: Refusal, now: Instant) -> e.Noted:
    reason = Reason(code=refused.code, says=refused.says, change=refused.change)
    return e.Noted(at=now, subject=provider, reason=reason)
