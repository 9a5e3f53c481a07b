"""Looks at needs on nodes through arrays: where they fit, what each place scores."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from cloudwhale.model.job import Placement
from cloudwhale.model.node import Device
from cloudwhale.model.plan import Scored
from cloudwhale.model.reason import Refusal
from cloudwhale.planning.asks import Asks, taken_gib
from cloudwhale.planning.columns import Bools, Columns, Floats, Ints, listed
from cloudwhale.planning.ground import Ground, Seat
from cloudwhale.planning.openings import Openings, RulesHere
from cloudwhale.planning.rooms import Likings, Places, Rooms, Usable
from cloudwhale.planning.scoring import RIVALS_KEPT, Song
from cloudwhale.planning.speeds import BESIDE_A_NEIGHBOUR

BLOCK = 64
"""Needs that are looked at in one go: more would not fit into the processor's cache."""

SEATS = 512
"""Seats whose rivals are found in one go."""

PAIRS = 8192
"""Places that are scored in one go, for the same reason."""


class Sight:
    """The ground as arrays; `look_again` takes over what has changed.

    A node with a reservation has a second column, which shows what is left beside that: needs
    that would run into the reservation see this one instead.
    """

    def __init__(self, ground: Ground, devices: Sequence[Device]) -> None:
        self.ground, self._devices = ground, devices
        songs = ground.songs
        self.kept = [n for n, song in enumerate(songs) if song.left is not None]
        """Nodes with a reservation; the second column of the n-th is the n-th after the nodes."""
        self.asks = Asks(ground.needs, devices)
        self.columns = Columns([*songs, *(_beside(songs[n]) for n in self.kept)], devices)
        self.openings = Openings(self.asks, self.columns)
        self.rules = RulesHere(ground.needs, songs)
        self._likings = Likings(ground.needs, songs)
        self._usable = Usable(ground.taste.kinds, devices, self.columns)
        self._rooms = Rooms(self.asks, self.columns, self._usable)
        names = [songs[n].node.id for n in self.kept]
        self.barred = np.array(
            [[name in need.barred for name in names] for need in ground.needs], dtype=np.bool_
        ).reshape(len(ground.needs), len(names))
        """Whether a need must leave the n-th reservation its room."""
        ground.changed.clear()

    def look_again(self, nodes: Ints) -> None:
        """Take over the songs of nodes that have changed."""
        at = listed(nodes)
        for node in listed(nodes):
            song = self.ground.songs[node]
            self.columns.write(node, song.free, song.busy_s)
            if song.left is not None:
                at.append(len(self.ground.songs) + self.kept.index(node))
                self.columns.write(at[-1], _beside(song).free, song.busy_s)
        self.openings.look_again(np.array(at))
        self._usable.look_again(np.array(at))

    def totals(self, needs: Ints, nodes: Ints) -> Floats:
        """Return the weighted scores of needs on nodes, -inf where they do not fit."""
        found = np.full((len(needs), len(nodes)), -np.inf)
        fits = self._fits(needs, nodes)
        rows, at = np.nonzero(fits)
        if len(rows):
            scores = self._scores(needs[rows], nodes[at])
            taste = self.ground.taste
            weights = [taste.weights.get(name, 0.0) for name in taste.names]
            found[rows, at] = sum(w * one for w, one in zip(weights, scores, strict=True))
        return found

    def scored(self, seats: Sequence[Seat]) -> list[Scored]:
        """Return what each of the seated has in the company that it ended up in."""
        if not seats:
            return []
        placements = [seat.placement for seat in seats]
        needs = np.array([seat.need for seat in seats])
        nodes = np.array([seat.node for seat in seats])
        columns = self._without_each(seats, self._columns_of(needs, nodes))
        places = _given(needs, np.arange(len(seats)), placements, columns)
        kinds = self.ground.taste.kinds
        rooms = Rooms(self.asks, columns, Usable(kinds, self._devices, columns))
        return list(self._named(placements, self._judged(rooms, places, nodes)))

    def _without_each(self, seats: Sequence[Seat], at: Ints) -> Columns:
        """Return the column of each seat as it would be without it, the rest being the same."""
        columns, asks = self.columns.of(at), self.asks
        needs = np.array([seat.need for seat in seats])
        sits = np.zeros((len(seats), columns.width))
        for row, seat in enumerate(seats):
            ids = columns.ids[row]
            sits[row, [ids.index(device) for device in seat.placement.devices]] = 1.0
        share = sits * asks.share[needs][:, None]
        taken = taken_gib(asks.share[needs], asks.least_gib[needs], columns.packs_gib.T).T * sits
        columns.share += share
        columns.gpu_gib += taken
        alone = (1.0 - columns.slowed) / BESIDE_A_NEIGHBOUR
        columns.slowed += sits * (1.0 - alone - columns.slowed)
        columns.nodes[:5] += asks.rows[:5, needs]
        columns.free_gpus += share.sum(axis=1)
        columns.free_gpu_gib += taken.sum(axis=1)
        columns.busy_s[:] = [self.ground.busy_beside_s(seat) for seat in seats]
        return columns

    def rivals(self, seats: Sequence[Seat]) -> list[tuple[Scored, ...]]:
        """Return the best three places on other nodes that each of the seated could have."""
        found: list[tuple[Scored, ...]] = []
        nodes = np.arange(len(self.ground.songs))
        for start in range(0, len(seats), SEATS):
            some = seats[start : start + SEATS]
            needs = np.array([seat.need for seat in some])
            distinct, of = np.unique(needs, return_inverse=True)
            totals = self.totals(distinct, nodes)[of]
            totals[np.arange(len(some)), [seat.node for seat in some]] = -np.inf
            order, is_place = _best_of(totals, RIVALS_KEPT)
            rows, which = np.nonzero(is_place)
            places = iter(self._places(needs[rows], order[rows, which]))
            found += [tuple(islice(places, count)) for count in is_place.sum(axis=1).tolist()]
        return found

    def _places(self, needs: Ints, nodes: Ints) -> list[Scored]:
        """Return places with their devices and scores."""
        if not len(needs):
            return []
        at = self._columns_of(needs, nodes)
        placements = self._placements(needs, nodes, at)
        places = _given(needs, at, placements, self.columns)
        return list(self._named(placements, self._judged(self._rooms, places, nodes)))

    def _placements(self, needs: Ints, nodes: Ints, at: Ints) -> list[Placement]:
        """Return the devices that needs would get where they fit."""
        request = self.asks.of_gpu[needs]
        opened, most = self.openings.opened(request, at), self.asks.gpus.most[request]
        first = opened & (opened.cumsum(axis=1) <= most[:, None])
        found: list[Placement] = []
        rows = zip(listed(needs), listed(nodes), listed(at), strict=True)
        for row, (need, node, column) in enumerate(rows):
            song, ids = self.ground.songs[node], self.columns.ids[column]
            place: Placement | Refusal
            if self.columns.is_plain[column]:
                devices = tuple(ids[position] for position in np.flatnonzero(first[row]))
                place = Placement.model_construct(node=song.node.id, devices=devices)
            else:
                place = self.ground.place(need, song)
            assert isinstance(place, Placement), "only places that fit are asked about"
            found.append(place)
        return found

    def _named(self, placements: Sequence[Placement], scores: Sequence[Floats]) -> Iterator[Scored]:
        taste = self.ground.taste
        names, weights = taste.names, [taste.weights.get(name, 0.0) for name in taste.names]
        for placement, *row in zip(placements, *(one.tolist() for one in scores), strict=True):
            total = sum(w * value for w, value in zip(weights, row, strict=True))
            scores_by_name = dict(zip(names, row, strict=True))
            yield Scored.model_construct(placement=placement, scores=scores_by_name, total=total)

    def _scores(self, needs: Ints, nodes: Ints) -> list[Floats]:
        if len(needs) <= PAIRS:
            return self._scores_of_block(needs, nodes)
        blocks = [
            self._scores_of_block(needs[start : start + PAIRS], nodes[start : start + PAIRS])
            for start in range(0, len(needs), PAIRS)
        ]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def _scores_of_block(self, needs: Ints, nodes: Ints) -> list[Floats]:
        at = self._columns_of(needs, nodes)
        gpus, openings = self.asks.gpus, self.openings
        request = self.asks.of_gpu.take(needs)
        flat = request * self.columns.size + at
        opened = openings.count.reshape(-1).take(flat).astype(np.int64)
        has_gpu = gpus.count.take(request) > 0
        count = np.minimum(gpus.most.take(request), opened) * has_gpu
        first = openings.first.reshape(-1).take(flat).astype(np.int64)
        return self._judged(self._rooms, Places(needs, at, first, count), nodes)

    def _judged(self, rooms: Rooms, places: Places, nodes: Ints) -> list[Floats]:
        found = self._likings.found(places.needs, nodes)
        fetch_s = self._likings.fetch_s(places.needs, nodes)
        room = rooms.of(places, found, fetch_s)
        scores = self.ground.taste.policy.score(room)
        return [np.broadcast_to(np.asarray(one, dtype=float), nodes.shape) for one in scores]

    def _fits(self, needs: Ints, nodes: Ints) -> Bools:
        found = self._allowed(needs, nodes) & self.openings.fits(needs, nodes)
        for number, node in enumerate(self.kept):
            (here,) = np.nonzero(nodes == node)
            if len(here):
                second = np.array([len(self.ground.songs) + number])
                beside = self.openings.fits(needs, second)
                found[:, here] &= beside | ~self.barred[needs, number][:, None]
        return found

    def _allowed(self, needs: Ints, nodes: Ints) -> Bools:
        rules = self.rules
        allowed = rules.allowed.take(rules.allowed_row.take(needs), axis=0)
        found: Bools = allowed if len(nodes) == len(self.ground.songs) else allowed[:, nodes]
        return found

    def _columns_of(self, needs: Ints, nodes: Ints) -> Ints:
        """Return the column that each need sees of a node."""
        at = nodes
        for number, node in enumerate(self.kept):
            second = len(self.ground.songs) + number
            at = np.where((nodes == node) & self.barred[needs, number], second, at)
        return at


def _best_of(totals: Floats, most: int) -> tuple[Ints, Bools]:
    """Return the best nodes of each row, best first, and whether they are places at all.

    Takes what it has found out of `totals`.
    """
    each = np.arange(len(totals))
    order = np.zeros((len(totals), most), dtype=np.int64)
    is_place = np.zeros(order.shape, dtype=np.bool_)
    for rival in range(most):
        order[:, rival] = totals.argmax(axis=1)
        is_place[:, rival] = totals[each, order[:, rival]] > -np.inf
        totals[each, order[:, rival]] = -np.inf
    return order, is_place


def _given(needs: Ints, at: Ints, placements: Sequence[Placement], columns: Columns) -> Places:
    """Return the places of needs in columns with the devices that were given."""
    firsts = [
        columns.ids[column].index(one.devices[0]) if one.devices else 0
        for column, one in zip(listed(at), placements, strict=True)
    ]
    counts = [len(one.devices) for one in placements]
    return Places(needs, at, np.array(firsts), np.array(counts))


def _beside(song: Song) -> Song:
    """Return the song that those see who must leave a reservation its room."""
    assert song.left is not None, "only nodes with a reservation have a second column"
    return replace(song, free=song.free.within(song.left))
