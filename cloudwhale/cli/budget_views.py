"""What the commands about budgets only show: who set what, and how the month is to end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import document_or
from cloudwhale.control.desk import Desk
from cloudwhale.model.units import Instant
from cloudwhale.model.world import Account
from cloudwhale.planning.payers import PREFIX, month_of, project_and_month
from cloudwhale.reporting.budget_history import (
    Change,
    changes,
    changes_sheet,
    history_keys,
    months_sheet,
)
from cloudwhale.reporting.outlooks import outlooks_keys, outlooks_sheet
from cloudwhale.spi.store import JobQuery

if TYPE_CHECKING:
    from cloudwhale.cli.output import Paper
    from cloudwhale.control.supply import Supply


def history(whose: str | None, as_json: bool) -> int:
    """Show who has set which budget, and what months have spent; of a project, a run, or all."""
    with desk_here() as desk:
        months = _months(desk, whose)
        names = (whose,) if whose is not None else _names(desk, months)
        found = _changes(desk, names)
    if whose is not None and not (found or months):
        raise NotFound(
            f"{whose!r} has had no budget and has spent nothing.",
            "`cloudwhale budget history` shows all that have.",
        )

    def drawn(paper: "Paper") -> None:
        paper.sheet(changes_sheet(found))
        if months:
            paper.say("")
            paper.sheet(months_sheet(months))

    document_or(as_json, lambda: history_keys(found, months), drawn)
    return Exit.DONE


def _months(desk: Desk, project: str | None) -> Sequence[Account]:
    of = [(project_and_month(account.payer), account) for account in desk.store.accounts()]
    return [
        account
        for found, account in of
        if found is not None
        and project in (None, found[0])
        and (account.limit is not None or account.spent or account.reserved)
    ]


def _names(desk: Desk, months: Sequence[Account]) -> Sequence[str]:
    whose = (project_and_month(account.payer) for account in months)
    projects = {found[0] for found in whose if found is not None}
    return sorted(projects | {*desk.store.world(desk.clock.now()).budgets})


def _changes(desk: Desk, names: Sequence[str]) -> Sequence[Change]:
    told = [one for name in names for one in desk.store.events(f"{PREFIX}{name}")]
    if len(names) == 1:
        told += desk.store.events(names[0])  # it may be a run's id
    return changes(told)


def forecast(project: str | None, as_json: bool) -> int:
    """Show how this month is expected to end, of one project or of all."""
    from cloudwhale.control.outlooks import outlooks

    with desk_here() as desk:
        now = desk.clock.now()
        if project is not None:
            _known(desk, project, now)
        found = outlooks(desk, now, _supply(desk, now), project)
    month = month_of(now)
    document_or(
        as_json,
        lambda: outlooks_keys(found, month),
        lambda paper: paper.sheet(outlooks_sheet(found, month)),
    )
    return Exit.DONE


def _known(desk: Desk, project: str, now: Instant) -> None:
    if project in desk.store.world(now).budgets or desk.store.jobs(
        JobQuery(project=project, limit=1)
    ):
        return
    raise NotFound(
        f"Nobody has used project {project!r}, and it has no budget.",
        "`cloudwhale budget forecast` shows all that there are.",
    )


def _supply(desk: Desk, now: Instant) -> "Supply":
    """Return what those that wait could be rented; nothing where no cloud is set up."""
    from cloudwhale.control.lives import Lives
    from cloudwhale.control.supply import NO_SUPPLY, supply
    from cloudwhale.planning.gravity import regions_of_jobs

    if not desk.settings.clouds:
        return NO_SUPPLY
    world = desk.store.world(now)
    hazards = Lives(desk.store.past_rentals).hazards(world.rentals, now)
    return supply(desk.settings, now, regions_of_jobs(world.jobs.values()), hazards)
