"""Bugs that are planted into controller, agent and provider: nights must catch each of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from night_checks import Played, play
from night_cloud import Mutant, NightCloud
from night_values import drawn

from cloudwhale.agent import duty as duties
from cloudwhale.agent import seen
from cloudwhale.agent.state import AgentState
from cloudwhale.control import executor, hired, orders
from cloudwhale.control.watcher import Watcher
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model.job import Checkpoint, Job
from cloudwhale.model.node import Node
from cloudwhale.model.plan import Settle
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning import keeping, reconcile, settling
from cloudwhale.planning.rules import Patience
from cloudwhale.simulation.cloud import Hired
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine

Bend = tuple[Any, str, Any]
"""Whose attribute, which, and what stands there instead."""


# -- agents --------------------------------------------------------------------------------


def _runs_on(state: AgentState, event: seen.Seen, now: Instant) -> Any:
    """Runs its jobs on though its store is silent for longer than its lease."""
    if isinstance(event, seen.StoreFailed):
        return state, ()
    return duties.duty(state, event, now)


def _obeys_late(state: AgentState, event: seen.Seen, now: Instant) -> Any:
    """Starts what was ordered long ago."""
    if isinstance(event, seen.Ordered) and isinstance(event.order, StartOrder):
        event = replace(event, order=event.order.but(at=now))
    return duties.duty(state, event, now)


# -- providers -----------------------------------------------------------------------------


class Doubling(NightCloud):
    """Makes another machine when a launch is repeated."""

    def _created(self, request: LaunchRequest) -> Hired:
        known = self.hired.get(request.request_id)
        if known is None or known.ended_at is not None:
            return super()._created(request)
        again = self._hired(request, self._now())
        self.hired[f"{request.request_id}-{again.id}"] = self._listed[again.id] = again
        return again


class Hopeful(NightCloud):
    """Says that a stop was moved though nobody has answered."""

    def extend(self, machine: str, stop_at: Instant) -> Any:
        try:
            return super().extend(machine, stop_at)
        except Unreachable:
            return stop_at


class Trusting(NightCloud):
    """Takes a machine for ended once it was told to end it, whatever came of that."""

    def prepare(self, house: Any) -> None:
        super().prepare(house)
        self._believed: set[str] = set()

    def terminate(self, machine: str) -> None:
        self._believed.add(machine)
        try:
            super().terminate(machine)
        except Unreachable:
            return

    def machines(self) -> Any:
        now = self._now()
        return [self._as_believed(one, now) for one in super().machines()]

    def _as_believed(self, one: Machine, now: Instant) -> Machine:
        if one.id not in self._believed or one.state == "gone":
            return one
        return one.but(state="gone", billed_to=now)


# -- controllers ---------------------------------------------------------------------------


def _gone_when_warned(node: Node, world: World) -> bool:
    rental = world.rentals.get(node.id)
    if rental is None:
        return False
    return rental.ended_at is not None or rental.state is RentalState.DRAINING


def _keeps_all(rental: Rental, world: World | None = None) -> Settle:
    made = SETTLED(rental, world)
    return made.but(released=MicroUsd(0))


SETTLED = settling.settled
START_ORDER = orders.start_order


class _Oldest:
    """Remembers the first checkpoint of every job, and lets it be restored for ever."""

    def __init__(self) -> None:
        self._first: dict[str, Checkpoint] = {}

    def __call__(self, job: Job, *args: Any, **fields: Any) -> Any:
        if job.checkpoint is not None:
            first = self._first.setdefault(job.id, job.checkpoint)
            job = job.but(checkpoint=first)
        return START_ORDER(job, *args, **fields)


def _by_own_clock(machine: Machine, now: Instant) -> Instant:
    return now


MUTANTS: dict[str, tuple[Mutant, Callable[[], tuple[Bend, ...]]]] = {
    "agent-runs-on-in-silence": (Mutant("agent-runs-on-in-silence", duty=_runs_on), lambda: ()),
    "agent-obeys-late-orders": (Mutant("agent-obeys-late-orders", duty=_obeys_late), lambda: ()),
    "launch-is-not-idempotent": (Mutant("launch-is-not-idempotent", cloud=Doubling), lambda: ()),
    "extend-is-believed": (Mutant("extend-is-believed", cloud=Hopeful), lambda: ()),
    "terminate-is-believed": (Mutant("terminate-is-believed", cloud=Trusting), lambda: ()),
    "moves-at-notice": (
        Mutant("moves-at-notice"), lambda: ((reconcile, "_is_gone", _gone_when_warned),)
    ),
    "forgets-to-release": (
        Mutant("forgets-to-release"), lambda: ((keeping, "settled", _keeps_all),)
    ),
    "restores-the-oldest": (
        Mutant("restores-the-oldest"), lambda: ((executor, "start_order", _Oldest()),)
    ),
    "is-impatient": (
        Mutant("is-impatient"),
        lambda: (
            (Patience, "lost_after_s", lambda self, node: 90.0),
            (Patience, "out_after_s", lambda self, node: 120.0),
        ),
    ),
    "judges-before-it-reads": (
        Mutant("judges-before-it-reads"),
        lambda: ((Watcher, "has_heard_out", lambda self, node, now: True),),
    ),
    "bills-by-its-own-clock": (
        Mutant("bills-by-its-own-clock"), lambda: ((hired, "_billed_to", _by_own_clock),)
    ),
}  # fmt: skip


@contextmanager
def planted(name: str) -> Iterator[Mutant]:
    """Plant a bug for a while."""
    mutant, bends = MUTANTS[name]
    with ExitStack() as all_:
        for whose, attribute, instead in bends():
            all_.enter_context(patch.object(whose, attribute, instead))
        yield mutant


def night_of(name: str, seed: int) -> Played:
    """Play a night with a bug."""
    with planted(name) as mutant:
        return play(drawn(seed), mutant)


def caught(name: str, seeds: range) -> tuple[int, str] | None:
    """Return the first seed at which a bug is caught, and by which rule; None: it is not."""
    for seed in seeds:
        wrong = night_of(name, seed).violation
        if wrong is not None:
            return seed, wrong.rule
    return None
