"""Runs a stored round again: the same world must give the same plan, bit for bit."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cloudwhale import plugins
from cloudwhale.control.desk import Desk
from cloudwhale.control.offers import read_json
from cloudwhale.model.plan import Plan, Round
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.store import Store


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Whether a round's plan could be made again."""

    round: Round
    agrees: bool
    differences: tuple[str, ...]


def replay(desk: Desk, number: int) -> ReplayResult:
    """Make the plan of a stored round again and compare; raise CloudwhaleError if unknown."""
    stored = desk.store.round(number)
    if stored is None:
        raise CloudwhaleError(
            f"there is no round {number}", "`cloudwhale explain JOB` prints the rounds of a job."
        )
    again = plan_again(desk.store, stored)
    same = again.model_dump_json() == stored.plan.model_dump_json()
    differences = () if same else tuple(_differences(stored.plan, again))
    return ReplayResult(stored, same, differences)


def plan_again(store: Store, stored: Round) -> Plan:
    """Return the plan that today's code makes of the world of a stored round."""
    policies = Policies(
        order=plugins.load(plugins.ORDERS, stored.order)(),
        score=plugins.load(plugins.SCORES, stored.score)(),
        rules=Rules.model_validate_json(stored.settings),
        wait=plugins.load(plugins.WAITS, stored.wait)() if stored.wait else None,
        rent=plugins.load(plugins.RENTS, stored.rent)() if stored.rent else None,
    )
    return plan(world_of(store, stored), policies)


def world_of(store: Store, stored: Round) -> World:
    """Return the world that a stored round was made from."""
    rows = json.loads(stored.sightings)
    return replace(
        store.world_at(stored.version, stored.now),
        seed=stored.seed,
        sightings={name: Sighting.model_validate(row) for name, row in rows.items()},
        offers=read_json(stored.offers),
    )


def _differences(old: Plan, new: Plan) -> Iterator[str]:
    then = {step.model_dump_json() for step in old.steps}
    now = {step.model_dump_json() for step in new.steps}
    yield from (f"only then: {step}" for step in sorted(then - now))
    yield from (f"only now: {step}" for step in sorted(now - then))
    if then == now:
        yield "the steps agree; their order, the scores kept or the next look differ"
