"""What a new price list changes: what is new, gone, dearer, cheaper."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.plausible import MARKETS
from cloudwhale.spi.prices import Listing, Market

TOLD = 0.005
"""Moves below half a per cent are rounding."""


class Thing(NamedTuple):
    """What has a price."""

    type: str
    region: str
    market: Market


class Move(NamedTuple):
    """A price that has changed."""

    thing: Thing
    before: MicroUsd
    after: MicroUsd

    @property
    def share(self) -> float:
        """Return by which part of itself it rose; below 0: it fell."""
        return self.after / max(1, self.before) - 1.0


@dataclass(frozen=True, slots=True)
class Changes:
    """Beside what was known before, the largest moves first."""

    new: tuple[Thing, ...]
    gone: tuple[Thing, ...]
    dearer: tuple[Move, ...]
    cheaper: tuple[Move, ...]
    same: int


def changes(before: Iterable[Listing], after: Iterable[Listing]) -> Changes:
    """Return what is different; `gone` says what has no price any more."""
    old, new = _prices(before), _prices(after)
    moves = [Move(thing, old[thing], new[thing]) for thing in sorted(old.keys() & new.keys())]
    return Changes(
        new=tuple(sorted(new.keys() - old.keys())),
        gone=tuple(sorted(old.keys() - new.keys())),
        dearer=_largest(move for move in moves if move.share > TOLD),
        cheaper=_largest(move for move in moves if move.share < -TOLD),
        same=sum(abs(move.share) <= TOLD for move in moves),
    )


def _largest(moves: Iterable[Move]) -> tuple[Move, ...]:
    return tuple(sorted(moves, key=lambda move: (-abs(move.share), move.thing)))


def _prices(listings: Iterable[Listing]) -> Mapping[Thing, MicroUsd]:
    return {
        Thing(one.shape.type, one.region, market): price.usd_h
        for one in listings
        for market in MARKETS
        if (price := one.price(market)) is not None
    }


def words_of(moves: Sequence[Move], most: int = 3) -> str:
    """Return the largest moves: `g5.xlarge us-east-1 spot 0.41 to 0.62 (+51 %)`."""
    return "; ".join(
        f"{move.thing.type} {move.thing.region} {move.thing.market} "
        f"{move.before / 1e6:.4g} to {move.after / 1e6:.4g} ({move.share:+.0%})"
        for move in moves[:most]
    )
