"""The checker's rule about who is on a rented machine together: two projects in containers only."""

from collections.abc import Iterator

from cloudwhale.model import plan as p
from cloudwhale.model.world import World
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules


def company(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No process shares a machine that is rented, or joined, with a job of another project."""
    for step in plan.steps:
        if not isinstance(step, p.Rent | p.Join):
            continue
        rental = step.rental
        there = [world.jobs[name].spec for name in sorted(rental.jobs) if name in world.jobs]
        open_to_all = [spec for spec in there if spec.image is None]
        if open_to_all and len({spec.project for spec in there}) > 1:
            name = open_to_all[0].name
            yield Fault("company", f"{name} is no container, and {rental.id} has two projects")


RULES: tuple[Rule, ...] = (company,)
