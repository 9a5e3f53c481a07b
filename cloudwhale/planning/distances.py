"""How far each need is from each node, and the code of what is in the way first, over arrays."""

from dataclasses import dataclass

import numpy as np

from cloudwhale.planning.asks import Asks, taken_gib
from cloudwhale.planning.columns import Bools, Columns, Floats, Ints
from cloudwhale.planning.inventory import DUST
from cloudwhale.planning.openings import Marks, Openings, RulesHere

# Places in CODES.
_NO_SUCH_GPU, _GPU_MEMORY, _GPU_COUNT, _CPU_EVER = 7, 8, 9, 10
_CPU_NOW, _IN_USE, _SHARE_NOW, _GPU_MEMORY_NOW, _COUNT_NOW = 13, 16, 17, 18, 19


@dataclass(frozen=True, slots=True)
class Distances:
    """By need and column: what is in the way (a place in `CODES`), and how much is missing."""

    mark: Marks
    shortfall: Floats


class Measure:
    """Measures distances as the columns are now; made anew when they change."""

    def __init__(
        self, asks: Asks, columns: Columns, openings: Openings, rules: RulesHere, at: Ints
    ) -> None:
        self._asks, self._columns, self._openings, self._rules = asks, columns, openings, rules
        self._at = at
        """Columns that are asked about."""
        self._gpu_mark, self._gpu_short = self._gpu_now()
        self._gpu_ever, self._gpu_ever_short = self._gpu_never()
        self._all = (columns.all_cpu[at], columns.all_memory[at], columns.all_disk[at])
        free = (columns.cpu[at], columns.memory[at], columns.disk[at])
        self._free = tuple(np.maximum(0.0, one) for one in free)

    def of(self, needs: Ints, nodes: Ints) -> Distances:
        """Return the distances of some needs; `nodes`: the node of each column asked about.

        What is asked first by `fit` is written last, so that it stands.
        """
        asks, rules = self._asks, self._rules
        gpu = asks.of_gpu[needs]
        mark = rules.unready[asks.has_secrets[needs]][:, nodes].copy()
        short = np.zeros(mark.shape)
        asked = self._gpu_mark[gpu]
        _write(mark, short, asked > 0, asked, self._gpu_short[gpu])
        wanted = (asks.cpu[needs], asks.memory[needs], asks.disk[needs])
        missing = [_missing(w, free) for w, free in zip(wanted, self._free, strict=True)]
        for number in (2, 1, 0):
            is_short = wanted[number][:, None] > self._free[number] + DUST
            _write(mark, short, is_short, _CPU_NOW + number, missing[number])
        for number in (2, 1, 0):
            is_short = wanted[number][:, None] > self._all[number] + DUST
            _write(mark, short, is_short, _CPU_EVER + number, missing[number])
        ever = self._gpu_ever[gpu]
        _write(mark, short, ever > 0, ever, self._gpu_ever_short[gpu])
        forbids = rules.forbids[rules.of_need[needs]][:, nodes]
        _write(mark, short, forbids > 0, forbids, 1.0)
        return Distances(mark, short)

    def _gpu_never(self) -> tuple[Marks, Floats]:
        """Return what of a request no end of a job could give, by request and column."""
        gpus, kind = self._asks.gpus, self._columns.kind[self._at]
        suitable = gpus.suits[:, kind].sum(axis=2)
        has_model = gpus.model_suits[:, kind].any(axis=2)
        count = gpus.count[:, None]
        mark = np.where(suitable < count, _GPU_COUNT, 0).astype(np.uint8)
        mark[(suitable == 0) & (count > 0)] = _GPU_MEMORY
        mark[~has_model & (count > 0)] = _NO_SUCH_GPU
        short = np.where(mark == _GPU_COUNT, 1.0 - suitable / np.maximum(count, 1), 1.0)
        return mark, short

    def _gpu_now(self) -> tuple[Marks, Floats]:
        """Return what of a request is taken by others, by request and column."""
        at = self._at
        count, have = self._asks.gpus.count[:, None], self._openings.count[:, at]
        mark = np.zeros(have.shape, dtype=np.uint8)
        short = np.zeros(have.shape)
        requests, where = np.nonzero(have < count)
        marks, shorts = self._taken(requests, at[where])
        mark[requests, where], short[requests, where] = marks, shorts
        return mark, short

    def _taken(self, requests: Ints, at: Ints) -> tuple[Marks, Floats]:
        gpus, columns = self._asks.gpus, self._columns
        suits = self._openings.suits(requests, at)
        share, count = gpus.share[requests], gpus.count[requests]
        takes = taken_gib(share[:, None], gpus.least_gib[requests][:, None], columns.packs_gib[at])
        most_share = np.where(suits, columns.share[at], -np.inf).max(axis=1)
        most_gib = np.where(suits, columns.gpu_gib[at], -np.inf).max(axis=1)
        needs = np.where(suits, takes, np.inf).min(axis=1)
        without = columns.gpu_gib[at] + columns.foreign_gib[at] + DUST >= takes
        without &= suits & (columns.share[at] + DUST >= share[:, None])
        short = 1.0 - self._openings.count[requests, at] / np.maximum(count, 1)
        mark = np.full(len(at), _COUNT_NOW, dtype=np.uint8)
        too_few = short.copy()
        is_full = most_gib + DUST < needs
        mark[is_full] = _GPU_MEMORY_NOW
        short[is_full] = (1.0 - np.maximum(0.0, most_gib) / needs)[is_full]
        is_shared = most_share + DUST < share
        mark[is_shared] = _SHARE_NOW
        short[is_shared] = (1.0 - most_share / share)[is_shared]
        in_use = without.sum(axis=1) >= count
        mark[in_use] = _IN_USE
        short[in_use] = too_few[in_use]
        return mark, short


def _missing(wanted: Floats, free: Floats) -> Floats:
    """Return which part of what is wanted is not there; nothing is missing of nothing."""
    found: Floats = 1.0 - free[None, :] / np.where(wanted > 0, wanted, np.inf)[:, None]
    return found


def _write(
    mark: Marks, short: Floats, where: Bools, marks: Marks | int, shorts: Floats | float
) -> None:
    np.copyto(mark, marks, where=where, casting="unsafe")
    np.copyto(short, shorts, where=where)
