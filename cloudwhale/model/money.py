"""What can have happened to money: bounds that were set, sums set aside, spent or free again."""

from typing import Literal

from cloudwhale.model.budget import Budget
from cloudwhale.model.cost import CostLine
from cloudwhale.model.happened import Happened
from cloudwhale.model.units import NOTHING, MicroUsd
from cloudwhale.model.where import Where


class BudgetSet(Happened):
    """Somebody has set, changed or lifted what a project may spend in a month."""

    kind: Literal["budget-set"] = "budget-set"
    budget: Budget


class RunBudgetSet(Happened):
    """Somebody has changed what a run may spend, after it was opened."""

    kind: Literal["run-budget-set"] = "run-budget-set"
    run: str
    limit: MicroUsd
    by: str = ""


class Brought(Happened):
    """A job's checkpoint was copied to where the job goes on, out of a cloud that asks for that.

    The money is in what was set aside for the machine that it goes to, and is charged with it.
    """

    kind: Literal["brought"] = "brought"
    job: str
    rental: str
    """The machine that it is brought for; empty: one of ours."""
    checkpoint: str
    """Its name."""
    left: Where
    size_bytes: int
    cost: MicroUsd = NOTHING


class Reserved(Happened):
    """Money was set aside for a lease, in full, before the lease began or grew."""

    kind: Literal["reserved"] = "reserved"
    payer: str
    rental: str
    amount: MicroUsd
    projects: dict[str, MicroUsd] = {}
    """What the accounts of its projects set aside for it, beside the payer."""


class Charged(Happened):
    """Reserved money was spent; the price is frozen here."""

    kind: Literal["charged"] = "charged"
    payer: str
    rental: str
    amount: MicroUsd
    job: str | None = None
    project: str = "default"
    account: str = ""
    """The project's account that the same money is taken from; empty: none is kept."""
    line: CostLine | None = None
    """What it was for; None: written by an older program."""


class Released(Happened):
    """Reserved money was not needed."""

    kind: Literal["released"] = "released"
    payer: str
    rental: str
    amount: MicroUsd
    projects: dict[str, MicroUsd] = {}
    """What the accounts of its projects need no more, beside the payer."""
