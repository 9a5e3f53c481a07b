"""Which plans are refused before anything is queued, and the sentence for each."""

from cloudwhale.cli.plan_money import short
from cloudwhale.cli.plan_view import by_name
from cloudwhale.cli.planning import Sheaf
from cloudwhale.cli.spots import spot_of_job
from cloudwhale.control.previewed import Preview, PreviewJob
from cloudwhale.spi.errors import DeadlineImpossible, NothingCanRunIt, OverBudget, SpecError


def refuse_impossible(made: Preview, sheaf: Sheaf) -> None:
    """Raise for the first job that could not be run.

    NothingCanRunIt: nothing there is could ever run it, or only what nobody can launch. OverBudget:
    the money does not reach for it. DeadlineImpossible: nothing would be done in time.
    """
    for job in made.jobs:
        found = _refusal(job, made)
        if found is not None:
            kind, says, remedy = found
            spot = spot_of_job(sheaf.path, job.name)
            raise kind(
                says,
                remedy,
                file=str(sheaf.path),
                line=spot.line if spot else None,
                column=spot.column if spot else None,
            )


def _refusal(job: PreviewJob, made: Preview) -> tuple[type[SpecError], str, str] | None:
    says, change = by_name(job.reason.says), by_name(job.reason.change, up=True)
    would = f"What would change it: {change}" if change else ""
    match job.state:
        case "impossible":
            return (
                NothingCanRunIt, f"{job.name} can run nowhere: {says}",
                would or "See `cloudwhale nodes`.",
            )  # fmt: skip
        case "over-budget":
            here = "" if job.binding is None else f"; here, {by_name(job.binding.says)}"
            return OverBudget, f"{job.name} is over budget: {says}{here}", _budget(made) or would
        case "too-late":
            return DeadlineImpossible, f"{job.name} cannot meet its deadline: {says}", would
        case "rented" if not made.can_launch:
            return (
                NothingCanRunIt,
                f"{job.name} can run on no machine of yours; {says.removeprefix('rents ')} would "
                f"do, for {short(job.cost or made.cost_usd)}",
                "No cloud account is set up that it could be rented with. --sandbox tries all on "
                "this host without one; the README says how to set one up.",
            )
        case _:
            return None


def _budget(made: Preview) -> str:
    if made.least_budget_usd is None:
        return ""
    return f"A budget of {short(made.least_budget_usd)} would be enough for all jobs."
