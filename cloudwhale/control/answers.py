"""What a rent policy answered in a round, kept with it: a replay takes it instead of solving anew.

So a plan is made again bit for bit on another machine, with another version of a solver, and after
an answer that was cut off by a clock.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.renting import Demand, Kind, Rent, RentalPlan, RentalProblem, Terms

if TYPE_CHECKING:
    from cloudwhale.spi.renting import Matrix

TOLD_APART = 24
"""Bits of a time that are compared, seven digits: machines differ in the last ones."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to a problem."""

    problem: str
    """Its digest."""
    plan: RentalPlan


class Noted:
    """The rent policy of one round, whose answers are noted; see Rent."""

    def __init__(self, rent: Rent) -> None:
        self._rent = rent
        self._answered: list[tuple[RentalProblem, RentalPlan]] = []

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """See Rent."""
        plan = self._rent.choose(problem)
        self._answered.append((problem, plan))
        return plan

    def text(self) -> str:
        """Return the answers as JSON, in order; empty when nothing was asked."""
        return as_json(Answer(digest_of(problem), plan) for problem, plan in self._answered)


class Remembered:
    """Answers as they were given once; see Rent. What was not asked then is asked now."""

    def __init__(self, answers: Iterable[Answer], make: Callable[[], Rent]) -> None:
        self._answers = {one.problem: one.plan for one in answers}
        self._make = make
        self.unknown: list[tuple[str, ...]] = []
        """The jobs of each problem that no answer belongs to."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """See Rent."""
        found = self._answers.get(digest_of(problem))
        if found is not None:
            return found
        self.unknown.append(tuple(problem.jobs))
        return self._make().choose(problem)


def digest_of(problem: RentalProblem) -> str:
    """Return a SHA-256 of all that is asked; the same wherever the same world is planned for."""
    found = hashlib.sha256()
    for values in (problem.demands, problem.kinds, (problem.terms,)):
        found.update(repr([_said(value) for value in values]).encode())
    quotas = sorted(problem.quotas.items())
    found.update(repr((tuple(problem.jobs), quotas, problem.budget_usd, problem.seed)).encode())
    for matrix in (problem.runs_s, problem.late_s, problem.extra_usd):
        found.update(_rounded(matrix))
    for times in (problem.done_by_s, problem.start_by_s, (problem.horizon_s,)):
        found.update(_rounded(times))
    return found.hexdigest()


def _said(value: Demand | Kind | Terms) -> tuple[str, ...]:
    """Return all fields in words, numbers to seven digits."""
    found = (getattr(value, field.name) for field in fields(value))
    return tuple(f"{one:.7g}" if isinstance(one, float) else str(one) for one in found)


def _rounded(numbers: Matrix | Sequence[float]) -> bytes:
    """Return numbers as bytes, to seven digits: exponentials differ in the last of sixteen."""
    import numpy as np

    parts, powers = np.frexp(np.ascontiguousarray(numbers, dtype=np.float64))
    whole = np.ldexp(np.rint(np.ldexp(parts, TOLD_APART)), powers - TOLD_APART)
    found: bytes = whole.astype("<f8").tobytes()
    return repr(whole.shape).encode() + found


def as_json(answers: Iterable[Answer]) -> str:
    """Return answers as JSON; empty when there are none."""
    rows = [{"problem": one.problem, "plan": _plan_row(one.plan)} for one in answers]
    return json.dumps(rows, separators=(",", ":")) if rows else ""


def read_json(text: str) -> Sequence[Answer]:
    """Return answers from their JSON; raise StoreUnusable for what is none."""
    if not text:
        return ()
    try:
        return _schemas()[1].validate_json(text)
    except ValidationError as error:
        raise StoreUnusable(
            f"a round holds answers that this program cannot read ({error.errors()[0]['msg']})",
            "It was changed by hand or by another program; `replay --resolve` solves it again.",
        ) from error


def _plan_row(plan: RentalPlan) -> Mapping[str, Any]:
    row: dict[str, Any] = _schemas()[0].dump_python(plan, exclude_defaults=True)
    return {"choices": (), **row}


@cache
def _schemas() -> tuple[TypeAdapter[RentalPlan], TypeAdapter[list[Answer]]]:
    """Built when they are needed first: most rounds rent nothing."""
    return TypeAdapter(RentalPlan), TypeAdapter(list[Answer])
