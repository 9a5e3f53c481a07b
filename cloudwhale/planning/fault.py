"""What the checker finds, and what a rule of it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cloudwhale.model.plan import Plan
from cloudwhale.model.world import World
from cloudwhale.planning.rules import Rules


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that the plan breaks."""

    rule: str
    says: str


Rule = Callable[[Plan, World, Rules], Iterator[Fault]]
