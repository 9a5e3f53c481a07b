"""Which needs fit into which columns: the hard facts of `fit`, asked of all of them at once."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.job import JobSpec
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code
from cloudwhale.planning.asks import Asks, taken_gib
from cloudwhale.planning.columns import Bools, Columns, Ints
from cloudwhale.planning.fit import RULE_FILTERS
from cloudwhale.planning.inventory import DUST
from cloudwhale.planning.needs import Need
from cloudwhale.planning.scoring import Song

# What can be in the way, in the order in which `fit` asks; a mark is a place in this list.
_NEVER = (
    Code.MARKET, Code.EXCLUDED, Code.LABELS, Code.MOUNTS, Code.RUNTIME, Code.GANG,
    Code.NO_SUCH_GPU, Code.GPU_MEMORY, Code.GPU_COUNT, Code.CPU, Code.MEMORY, Code.DISK,
)  # fmt: skip
_NOW = (
    Code.CPU, Code.MEMORY, Code.DISK,
    Code.GPU_IN_USE, Code.GPU_SHARE, Code.GPU_MEMORY, Code.GPU_COUNT,
    Code.NODE_NOT_READY, Code.NODE_DRAINS, Code.KEPT_FREE,
)  # fmt: skip
CODES: tuple[Code | None, ...] = (None, *_NEVER, *_NOW)
FIRST_NOW = 1 + len(_NEVER)
"""From this mark on, waiting helps."""

FILTER_OF: tuple[int | None, ...] = (
    None, 0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 14, 14, 15, 15, None,
)  # fmt: skip
"""Which of `fit.FILTERS` gives each mark; None: several together."""

Marks: TypeAlias = NDArray[np.uint8]

BLOCK = 1 << 16
"""Devices that are looked at in one go, times requests: more would leave the processor's cache."""


class Openings:
    """Counts the open devices of each GPU request in each column, as the columns are now."""

    def __init__(self, asks: Asks, columns: Columns) -> None:
        self._asks, self._columns = asks, columns
        shape = (len(asks.gpus.count), columns.size)
        self.count = np.zeros(shape, dtype=np.int16)
        """Open devices, by request and column."""
        self.first = np.zeros(shape, dtype=np.int16)
        """The first of them, as a position in the column; 0 where there is none."""
        self.look_again(np.arange(columns.size))

    def look_again(self, at: Ints) -> None:
        """Count again in columns that have changed."""
        rows = len(self._asks.gpus.count)
        block = max(1, BLOCK // (self._columns.width * max(1, len(at))))
        for start in range(0, rows, block):
            requests = np.arange(start, min(start + block, rows))
            opened = self.opened(requests[:, None], at[None, :])
            self.count[start : start + block, at] = opened.sum(axis=2, dtype=np.int16)
            self.first[start : start + block, at] = opened.argmax(axis=2)

    def opened(self, requests: Ints, at: Ints) -> Bools:
        """Return which devices have room for a request; the last axis is the device."""
        gpus, columns = self._asks.gpus, self._columns
        share, least = gpus.share[requests][..., None], gpus.least_gib[requests][..., None]
        takes = taken_gib(share, least, columns.packs_gib.take(at, axis=0))
        found: Bools = columns.share.take(at, axis=0) + DUST >= share
        found &= columns.gpu_gib.take(at, axis=0) + DUST >= takes
        found &= self.suits(requests, at)
        return found

    def suits(self, requests: Ints, at: Ints) -> Bools:
        """Return which devices a request could run on if they were free."""
        table = self._asks.gpus.suits
        kind = self._columns.kind.take(at, axis=0)
        place: Ints = requests[..., None] * table.shape[1] + kind
        found: Bools = table.reshape(-1).take(place)
        return found

    def fits(self, needs: Ints, at: Ints) -> Bools:
        """Return where needs fit as far as CPU, memory, disk and devices go."""
        asks, columns = self._asks, self._columns
        gpu = asks.of_gpu[needs]
        opened = self.count.take(gpu, axis=0)
        if len(at) < self._columns.size:
            opened = opened.take(at, axis=1)
        found: Bools = opened >= asks.gpus.count[gpu].astype(np.int16)[:, None]
        room = np.maximum(0.0, columns.amounts[:, at]) + DUST
        for wanted, free in zip((asks.cpu, asks.memory, asks.disk), room, strict=True):
            found &= wanted[needs][:, None] <= free
        return found


class RulesHere:
    """What the rules of needs say of nodes, whatever is free: market, labels, mounts, runtime.

    Nodes of one profile are asked once for each set of rules.
    """

    def __init__(self, needs: Sequence[Need], songs: Sequence[Song]) -> None:
        self._songs = songs
        profiles: dict[tuple[object, ...], int] = {}
        of = [profiles.setdefault(_profile(song), len(profiles)) for song in songs]
        self._profile_of = np.array(of, dtype=np.int64)
        self._examples = [songs[of.index(number)] for number in range(len(profiles))]
        self._node_numbers = {song.node.id: n for n, song in enumerate(songs)}
        numbers: dict[tuple[object, ...], int] = {}
        rows: list[Marks] = []
        of_need: list[int] = []
        for need in needs:
            key = _rules(need)
            if key not in numbers:
                numbers[key] = len(rows)
                rows.append(self._row(need))
            of_need.append(numbers[key])
        self.forbids = np.array(rows, dtype=np.uint8).reshape(len(rows), len(songs))
        """1 + the number of the rule in `RULE_FILTERS` that forbids, by `of_need` and node."""
        self.of_need = np.array(of_need, dtype=np.int64)
        self.unready = np.array([[_unready(song, has) for song in songs] for has in (False, True)])
        """What the node's state says, as a number of `CODES`, by whether a need has secrets."""

        secrets = np.array([bool(need.spec.secrets) for need in needs], dtype=np.int64)
        self.allowed_row = 2 * self.of_need + secrets
        self.allowed = np.array(
            [(row == 0) & (state == 0) for row in self.forbids for state in self.unready]
        ).reshape(-1, len(songs))
        """Whether neither rules nor the node's state forbid, by `allowed_row` and node."""

    def _row(self, need: Need) -> Marks:
        spec = need.spec.but(where=need.spec.where.but(not_on=()))
        found = np.array([_forbids(spec, song) for song in self._examples], dtype=np.uint8)
        row: Marks = found[self._profile_of]
        for name in need.spec.where.not_on:
            number = self._node_numbers.get(name)
            if number is not None:
                row[number] = _forbids(need.spec, self._songs[number])
        return row


def _unready(song: Song, has_secrets: bool) -> int:
    state = song.node.state
    if state is NodeState.READY or (state is NodeState.EXPECTED and not has_secrets):
        return 0
    return CODES.index(Code.NODE_DRAINS if state is NodeState.DRAINING else Code.NODE_NOT_READY)


def _forbids(spec: JobSpec, song: Song) -> int:
    for number, forbids in enumerate(RULE_FILTERS):
        if forbids(spec, song.free, ()) is not None:
            return number + 1  # the codes begin with those of these filters
    return 0


def _profile(song: Song) -> tuple[object, ...]:
    node, facts = song.node, song.node.facts
    return (node.owned, tuple(sorted(facts.labels.items())), facts.mounts, facts.runtimes)


def _rules(need: Need) -> tuple[object, ...]:
    spec = need.spec
    where = (tuple(sorted(spec.where.labels.items())), spec.where.not_on)
    return (spec.market, where, tuple(spec.mounts), spec.image is None, spec.nodes)
