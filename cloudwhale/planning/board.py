"""What the match asks of the places that are left, and the answer for few needs and nodes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from cloudwhale.model.plan import Scored
from cloudwhale.model.reason import Refusal
from cloudwhale.planning.ground import Ground, Seat
from cloudwhale.planning.refusals import Verdict, verdict
from cloudwhale.planning.scoring import RIVALS_KEPT, scored


@dataclass(frozen=True, slots=True)
class Top:
    """The best place that a need has now."""

    node: int
    total: float
    second: float | None
    """Of the best place on another node; None: there is none."""

    @property
    def regret(self) -> float:
        """Return what is lost if this place goes to another; more than all when it is the only."""
        return self.total - self.second if self.second is not None else 1.0 + self.total


class Board(Protocol):
    """Totals of all needs on all nodes, as the ground is now."""

    @property
    def ground(self) -> Ground:
        """Return who sits where."""
        ...

    @property
    def at_once(self) -> int:
        """Return how many jobs may be seated before the totals are looked at again."""
        ...

    @property
    def tries(self) -> int:
        """Return how many changes a round may try to make room, and as many to gain."""
        ...

    def tops(self, needs: Sequence[int]) -> Sequence[Top | None]:
        """Return the best place of each need, None where it has none; ties end at the node."""
        ...

    def best(self, need: int, but_for: Collection[int] = ()) -> int | None:
        """Return the node with the best place but for some."""
        ...

    def as_good(self, need: int, but_for: Collection[int], least: float) -> int | None:
        """Return the same if its total is at least so much; as it was when `tops` was asked.

        Only of nodes where nobody was seated since then.
        """
        ...

    def fitting(self, needs: Sequence[int]) -> Callable[[int], Sequence[int]]:
        """Return the function from each of the needs to the nodes where it fits now."""
        ...

    def scored(self, seats: Sequence[Seat]) -> Sequence[Scored]:
        """Return what each of the seated has, in the company that it ended up in."""
        ...

    def rivals(self, seats: Sequence[Seat]) -> Sequence[tuple[Scored, ...]]:
        """Return the best three places on other nodes that each of the seated could have now."""
        ...

    def verdicts(self, asked: Sequence[tuple[int, int | None]]) -> Sequence[Verdict]:
        """Return why the nodes refuse each need, the node that is named with it left out."""
        ...


class SmallBoard:
    """One place after another, without arrays: a few are judged sooner than numpy is imported."""

    at_once = 1
    tries = 400

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._known: dict[tuple[int, int], tuple[object, float | None]] = {}

    def tops(self, needs: Sequence[int]) -> Sequence[Top | None]:
        """Return the best place of each need."""
        return [self._top(need) for need in needs]

    def best(self, need: int, but_for: Collection[int] = ()) -> int | None:
        """Return the node with the best place but for some."""
        return self.as_good(need, but_for, 0.0)

    def as_good(self, need: int, but_for: Collection[int], least: float) -> int | None:
        """Return the same if its total is at least so much."""
        places = self._places(need)
        found = [(-t, node) for t, node in places if node not in but_for and t >= least]
        return min(found)[1] if found else None

    def rivals(self, seats: Sequence[Seat]) -> Sequence[tuple[Scored, ...]]:
        """Return the best three places on other nodes of each of the seated."""
        return [self._rivals(seat) for seat in seats]

    def fitting(self, needs: Sequence[int]) -> Callable[[int], Sequence[int]]:
        """Return the function from each of the needs to the nodes where it fits now."""
        found = {need: [node for _, node in self._places(need)] for need in needs}
        return found.__getitem__

    def scored(self, seats: Sequence[Seat]) -> Sequence[Scored]:
        """Return what each of the seated has."""
        return [self.ground.scored(seat) for seat in seats]

    def verdicts(self, asked: Sequence[tuple[int, int | None]]) -> Sequence[Verdict]:
        """Return why the nodes refuse each need."""
        return [verdict(need, self.ground, but_for) for need, but_for in asked]

    def _top(self, need: int) -> Top | None:
        ordered = sorted((-total, node) for total, node in self._places(need))
        if not ordered:
            return None
        second = -ordered[1][0] if len(ordered) > 1 else None
        return Top(ordered[0][1], -ordered[0][0], second)

    def _places(self, need: int) -> list[tuple[float, int]]:
        totals = ((self._total(need, node), node) for node in range(len(self.ground.songs)))
        return [(total, node) for total, node in totals if total is not None]

    def _total(self, need: int, node: int) -> float | None:
        song = self.ground.songs[node]
        seen, total = self._known.get((need, node), (None, None))
        if seen is not song:
            found = self._scored(need, node)
            total = None if found is None else found.total
            self._known[need, node] = (song, total)
        return total

    def _scored(self, need: int, node: int) -> Scored | None:
        song = self.ground.songs[node]
        found = self.ground.place(need, song)
        if isinstance(found, Refusal):
            return None
        return scored(self.ground.needs[need], song, found, self.ground.taste)

    def _rivals(self, seat: Seat) -> tuple[Scored, ...]:
        others = sorted(
            (-total, node) for total, node in self._places(seat.need) if node != seat.node
        )
        found = (self._scored(seat.need, node) for _, node in others[:RIVALS_KEPT])
        return tuple(one for one in found if one is not None)
