"""Counts refusals by code and finds the nearest miss, for many needs at once."""

from collections.abc import Iterator, Sequence

import numpy as np

from cloudwhale.model.reason import Code
from cloudwhale.planning.columns import Ints
from cloudwhale.planning.distances import Distances, Measure
from cloudwhale.planning.openings import CODES, FILTER_OF, FIRST_NOW
from cloudwhale.planning.refusals import Verdict
from cloudwhale.planning.sight import BLOCK, Sight

KEPT_FREE = CODES.index(Code.KEPT_FREE)

# Farther than any shortfall: where waiting does not help, nothing is near.
HOPELESS = 1e6


def verdicts_of(asked: Sequence[tuple[int, int | None]], sight: Sight) -> list[Verdict]:
    """Return why the nodes refuse each need, the node that is named with it left out."""
    if not asked:
        return []
    count = len(sight.ground.songs)
    measures = [_measure(sight, np.arange(count))]
    measures += [_measure(sight, np.array([count + n])) for n in range(len(sight.kept))]
    found: list[Verdict] = []
    for start in range(0, len(asked), BLOCK):
        found += _block(asked[start : start + BLOCK], sight, measures)
    return found


def _measure(sight: Sight, at: Ints) -> Measure:
    return Measure(sight.asks, sight.columns, sight.openings, sight.rules, at)


def _block(
    asked: Sequence[tuple[int, int | None]], sight: Sight, measures: Sequence[Measure]
) -> Iterator[Verdict]:
    ground = sight.ground
    needs, of = np.unique([need for need, _ in asked], return_inverse=True)
    far = measures[0].of(needs, np.arange(len(ground.songs)))
    for number, node in enumerate(sight.kept):
        _look_beside(far, needs, sight, (number, node, measures[1 + number]))
    far = Distances(far.mark[of], far.shortfall[of])
    for row, (_, but_for) in enumerate(asked):
        if but_for is not None:
            far.mark[row, but_for] = 0
    distance = far.shortfall + np.where(far.mark < FIRST_NOW, HOPELESS, 0.0)
    distance[far.mark == 0] = np.inf
    closest = distance.argmin(axis=1) if distance.shape[1] else np.zeros(len(asked), dtype=int)
    kinds = len(CODES)
    tally = np.bincount(
        (far.mark + kinds * np.arange(len(asked))[:, None]).ravel(), minlength=kinds * len(asked)
    ).reshape(len(asked), kinds)
    for row, (need, _) in enumerate(asked):
        counts = _by_code(tally[row].tolist())
        if not counts:
            yield Verdict(need, ground, counts, None)
        else:
            node = int(closest[row])
            mark = int(far.mark[row, node])
            yield Verdict(need, ground, counts, node, mark >= FIRST_NOW, FILTER_OF[mark])


def _look_beside(far: Distances, needs: Ints, sight: Sight, kept: tuple[int, int, Measure]) -> None:
    """Say of those who would fit but for a reservation that the room is kept."""
    number, node, measure = kept
    beside = measure.of(needs, np.array([node]))
    refused = sight.barred[needs, number] & (far.mark[:, node] == 0) & (beside.mark[:, 0] > 0)
    far.mark[refused, node] = KEPT_FREE
    far.shortfall[refused, node] = beside.shortfall[refused, 0]


def _by_code(tally: Sequence[int]) -> dict[Code, int]:
    counts: dict[Code, int] = {}
    for code, count in zip(CODES, tally, strict=True):
        if code is not None and count:
            counts[code] = counts.get(code, 0) + count
    return counts
