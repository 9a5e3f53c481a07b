"""Arithmetic that holds for one place and for many: a number, or an array with one for each.

Formulas are written for numbers. Where many places are judged at once every amount is an array,
which brings its own functions along, so that nothing heavy is imported for a few places.
"""

from typing import Any


def least(one: float, other: float) -> float:
    """Return the smaller of two amounts."""
    space = _space(one, other)
    return min(one, other) if space is None else _as_amount(space.minimum(one, other))


def most(one: float, other: float) -> float:
    """Return the larger of two amounts."""
    space = _space(one, other)
    return max(one, other) if space is None else _as_amount(space.maximum(one, other))


def share(some: float) -> float:
    """Return an amount cut to [0, 1]."""
    return least(most(some, 0.0), 1.0)


def part(some: float, whole: float) -> float:
    """Return which part of a whole something is, in [0, 1]; of nothing it is all."""
    space = _space(some, whole)
    if space is None:
        return min(1.0, max(0.0, some / whole)) if whole > 0 else 1.0
    # Much cheaper than a choice for each element: 1 where there is nothing, 0 elsewhere.
    is_nothing = _as_amount(space.asarray(whole <= 0, dtype=float))
    return most(share(some / (whole + is_nothing)), is_nothing)


def _space(one: Any, other: Any) -> Any:
    """Return the functions of the array among two amounts; None when both are numbers."""
    for amount in (one, other):
        if not isinstance(amount, float | int):
            return amount.__array_namespace__()
    return None


def _as_amount(found: Any) -> float:
    return found  # type: ignore[no-any-return]
