"""Why a need has no place: a count per code, and in words the node that came closest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cloudwhale.model.reason import Code, Reason, Refusal
from cloudwhale.planning.fit import refusal_of
from cloudwhale.planning.ground import Ground


@dataclass(frozen=True)
class Verdict:
    """Why nodes refuse a need in this round; put into words only when somebody is told."""

    need: int
    ground: Ground
    refused: Mapping[Code, int]
    """How many nodes refuse, by code."""
    closest: int | None
    """The node that came closest to a yes: one where waiting helps, then the least shortfall."""
    can_wait: bool = True
    """Whether waiting helps on that node."""
    by: int | None = None
    """The filter that speaks there, by its number in `fit.FILTERS`, where that is known."""
    told: Reason | None = None
    """What is said instead, by somebody who knows more."""

    def because(self, reason: Reason) -> "Verdict":
        """Return the same verdict with another reason."""
        return replace(self, told=reason)

    @property
    def code(self) -> Code:
        """Return the code of the reason, without putting it into words."""
        if self.told is not None:
            return self.told.code
        if self.closest is None:
            return Code.NO_NODES
        return Code.NO_ROOM_NOW if self.can_wait else Code.NOTHING_FITS

    @cached_property
    def nearest(self) -> Refusal | None:
        """Return the refusal that came closest."""
        if self.closest is None:
            return None
        song = self.ground.songs[self.closest]
        if self.by is not None:
            return refusal_of(self.ground.needs[self.need].spec, song.free, self.by)
        found = self.ground.place(self.need, song)
        return found if isinstance(found, Refusal) else None

    @property
    def nearest_node(self) -> str | None:
        """Return the node that came closest."""
        return None if self.closest is None else self.ground.songs[self.closest].node.id

    @cached_property
    def reason(self) -> Reason:
        """Return why the job waits."""
        if self.told is not None:
            return self.told
        nearest = self.nearest
        if nearest is None:
            return Reason(
                code=Code.NO_NODES,
                says="there is no node to run on",
                change="start a node's agent, or add a node",
            )
        count = sum(self.refused.values())
        among = f" (the nearest of {count} nodes)" if count > 1 else ""
        return Reason(code=self.code, says=nearest.says + among, change=nearest.change)


def verdict(need: int, ground: Ground, but_for: int | None = None) -> Verdict:
    """Return why the nodes refuse a need as they are now, one node (where it sits) left out."""
    counts: dict[Code, int] = {}
    closest: tuple[bool, float, int] | None = None
    for node, song in enumerate(ground.songs):
        found = None if node == but_for else ground.place(need, song)
        if isinstance(found, Refusal):
            counts[found.code] = counts.get(found.code, 0) + 1
            distance = (not found.can_wait, found.shortfall, node)
            closest = distance if closest is None else min(closest, distance)
    if closest is None:
        return Verdict(need, ground, counts, None)
    return Verdict(need, ground, counts, closest[2], can_wait=not closest[0])
