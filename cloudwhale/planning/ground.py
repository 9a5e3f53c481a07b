"""The nodes of a round while it is matched: who sits where, and what that leaves."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from cloudwhale.model.job import Placement
from cloudwhale.model.plan import Scored
from cloudwhale.model.reason import Refusal
from cloudwhale.planning.fit import fit, fit_beside
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.needs import Need
from cloudwhale.planning.scoring import Song, Taste, scored


@dataclass(frozen=True, slots=True)
class Seat:
    """A place that a waiting job has for now."""

    rank: int
    """The job's number in the round's order; first first, and no two have the same."""
    need: int
    node: int
    placement: Placement


class Ground:
    """Changes while a round is matched; everything that reads it sees the same songs."""

    def __init__(
        self, songs: Sequence[Song], needs: Sequence[Need], taste: Callable[[], Taste]
    ) -> None:
        """`taste`: asked for when somebody fits somewhere, which in a long queue is rare."""
        self.needs = needs
        self._asked_taste = taste
        self.songs = list(songs)
        """What is free on each node now; the nodes are in the order of their ids."""
        self.before = tuple(songs)
        """What was free before anybody was seated."""
        self.seats: list[tuple[Seat, ...]] = [() for _ in songs]
        """Who was seated on each node in this round, in that order."""
        self._worth: dict[int, float] = {}
        self._fits: dict[tuple[str, str, bool], tuple[Free, Free | None, Placement | Refusal]] = {}
        """Where each demand was found to fit last, with what was free on the node then, beside
        what is reserved too.
        """
        self.changed: set[int] = set()
        """Nodes whose songs are others than when somebody last cleared this."""

    @cached_property
    def taste(self) -> Taste:
        """Return how places are judged in this round."""
        return self._asked_taste()

    def place(self, need: int, song: Song) -> Placement | Refusal:
        """Return the devices that a need would get on a node in some state, or why none."""
        wanted = self.needs[need]
        left = song.left if song.left is not None and song.node.id in wanted.barred else None
        # Needs that differ in length alone fit alike: of a long queue most do.
        key = (wanted.demand, song.node.id, left is not None)
        seen, beside, found = self._fits.get(key, (None, None, None))
        if found is None or seen is not song.free or beside is not left:
            if left is None:
                found = fit(wanted.spec, song.free)
            else:
                found = fit_beside(wanted.spec, song.free, left, song.kept_for)
            self._fits[key] = (song.free, left, found)
        return found

    def try_seat(self, rank: int, need: int, node: int) -> Seat | None:
        """Return the seat that a job would get on a node as it is now, or None."""
        found = self.place(need, self.songs[node])
        return None if isinstance(found, Refusal) else Seat(rank, need, node, found)

    def sit(self, seat: Seat) -> None:
        """Give a job a place that it fits."""
        self.songs[seat.node] = self._with(self.songs[seat.node], seat)
        self.seats[seat.node] += (seat,)
        self._is_changed(seat.node)

    def rise(self, seat: Seat) -> None:
        """Take a job's place away again."""
        self.songs[seat.node] = self.without(seat.node, (seat,))
        self.seats[seat.node] = tuple(one for one in self.seats[seat.node] if one != seat)
        self._is_changed(seat.node)

    def restore(self, node: int, seats: tuple[Seat, ...]) -> None:
        """Seat exactly these on a node, as they were before."""
        self.seats[node] = seats
        self.songs[node] = self.without(node, ())
        self._is_changed(node)

    def go_back_to(self, seats: Sequence[tuple[Seat, ...]]) -> None:
        """Seat exactly these everywhere."""
        for node, here in enumerate(seats):
            if self.seats[node] != here:
                self.restore(node, here)

    def without(self, node: int, gone: Collection[Seat]) -> Song:
        """Return a node's song as it would be if some had not been seated there."""
        song = self.before[node]
        for seat in self.seats[node]:
            if seat not in gone:
                song = self._with(song, seat)
        return song

    def busy_beside_s(self, seat: Seat) -> float:
        """Return until when a node would be busy if one had not been seated there."""
        before = self.before[seat.node]
        others = (one for one in self.seats[seat.node] if one != seat)
        runs = (self._run_s(self.needs[one.need], before, one.placement) for one in others)
        return max(before.busy_s, max(runs, default=0.0))

    def scored(self, seat: Seat) -> Scored:
        """Return a seat's scores in the company that it has now."""
        song = self.without(seat.node, (seat,))
        return scored(self.needs[seat.need], song, seat.placement, self.taste)

    def worth(self, node: int) -> float:
        """Return the sum of the scores of all who were seated on a node."""
        found = self._worth.get(node)
        if found is None:
            found = sum(self.scored(seat).total for seat in self.seats[node])
            self._worth[node] = found
        return found

    def _is_changed(self, node: int) -> None:
        self._worth.pop(node, None)
        self.changed.add(node)

    def _with(self, song: Song, seat: Seat) -> Song:
        need, placement = self.needs[seat.need], seat.placement
        left = song.left
        if left is not None and song.node.id in need.barred:
            left = left.less(need.wants, placement)
        free = song.free.less(need.wants, placement)
        busy_s = max(song.busy_s, self._run_s(need, song, placement))
        return Song(free, busy_s, left, song.kept_for, song.here)

    def _run_s(self, need: Need, song: Song, placement: Placement) -> float:
        """Return how long a job is expected to run there, those beside it left out of account."""
        given = placement.devices
        if not given:
            return need.length_s
        device = song.free.devices[song.node.facts.positions[given[0]]]
        return need.length_s / need.speeds[device.device.model]
