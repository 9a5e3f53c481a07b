"""Runs a stored round again: the same world must give the same plan, bit for bit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from cloudwhale import plugins
from cloudwhale.control.answers import Remembered, read_json
from cloudwhale.control.desk import Desk
from cloudwhale.control.offers import read_json as read_offers
from cloudwhale.control.solved import Solved, solved_again
from cloudwhale.model.offer import Offer
from cloudwhale.model.plan import Plan, Round
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.errors import CloudwhaleError, StoreUnusable
from cloudwhale.spi.renting import Rent
from cloudwhale.spi.store import Store


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Whether a round's plan could be made again."""

    round: Round
    agrees: bool
    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What should be known of it, whether or not it agrees."""
    solved: tuple[Solved, ...] = ()
    """What was chosen for each payer then and now, where it was solved again."""


@dataclass(frozen=True, slots=True)
class Again:
    """A plan that was made again."""

    plan: Plan
    unknown: tuple[tuple[str, ...], ...] = ()
    """The jobs of each problem of renting that no stored answer belongs to."""


def replay(desk: Desk, number: int, *, resolve: bool = False) -> ReplayResult:
    """Make the plan of a stored round again and compare; raise CloudwhaleError if unknown.

    What was to be rented is taken as it was answered then; with `resolve` it is solved again.
    """
    stored = desk.store.round(number)
    if stored is None:
        raise CloudwhaleError(
            f"there is no round {number}", "`cloudwhale explain JOB` prints the rounds of a job."
        )
    again = made_again(desk.store, stored, resolve=resolve)
    same = again.plan.model_dump_json() == stored.plan.model_dump_json()
    return ReplayResult(
        round=stored,
        agrees=same,
        differences=() if same else tuple(_differences(stored.plan, again.plan)),
        notes=tuple(_notes(again)),
        solved=solved_again(stored.plan, again.plan) if resolve else (),
    )


def plan_again(store: Store, stored: Round) -> Plan:
    """Return the plan that today's code makes of the world of a stored round."""
    return made_again(store, stored).plan


def made_again(store: Store, stored: Round, *, resolve: bool = False) -> Again:
    """Return the plan that today's code makes of the world of a stored round.

    With the answers that are stored, unless it is to be solved again; a round of an older program
    has none, and is solved again too.
    """
    answers = () if resolve else read_json(stored.answers)
    told = Remembered(answers, partial(_rent, stored.rent)) if answers else None
    made = plan(world_of(store, stored), policies_of(stored, told))
    return Again(made, () if told is None else tuple(told.unknown))


def policies_of(stored: Round, rent: Rent | None = None) -> Policies:
    """Return the policies that a stored round was decided by; without `rent` they solve anew."""
    return Policies(
        order=plugins.load(plugins.ORDERS, stored.order)(),
        score=plugins.load(plugins.SCORES, stored.score)(),
        rules=Rules.model_validate_json(stored.settings),
        wait=plugins.load(plugins.WAITS, stored.wait)() if stored.wait else None,
        rent=rent or (_rent(stored.rent) if stored.rent else None),
    )


def _rent(name: str) -> Rent:
    made: Rent = plugins.load(plugins.RENTS, name)()
    return made


def world_of(store: Store, stored: Round) -> World:
    """Return the world that a stored round was made from."""
    rows = json.loads(stored.sightings)
    return replace(
        store.world_at(stored.version, stored.now),
        seed=stored.seed,
        sightings={name: Sighting.model_validate(row) for name, row in rows.items()},
        offers=_offers_of(store, stored),
    )


def _offers_of(store: Store, stored: Round) -> tuple[Offer, ...]:
    if not stored.offers:
        return ()
    text = store.offer_list(stored.offers)
    if text is None:
        raise StoreUnusable(
            f"the database holds no list of the offers that round {stored.number} was made with",
            "Without it the round cannot be made again.",
        )
    return read_offers(text)


def _notes(again: Again) -> Iterator[str]:
    for jobs in again.unknown:
        more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
        yield (
            f"no stored answer belongs to the problem of renting for {', '.join(jobs[:3])}{more}: "
            "this program asks something else than the one that planned it, and it was solved again"
        )


def _differences(old: Plan, new: Plan) -> Iterator[str]:
    then = {step.model_dump_json() for step in old.steps}
    now = {step.model_dump_json() for step in new.steps}
    yield from (f"only then: {step}" for step in sorted(then - now))
    yield from (f"only now: {step}" for step in sorted(now - then))
    if then == now:
        yield "the steps agree; their order, the scores kept or the next look differ"
