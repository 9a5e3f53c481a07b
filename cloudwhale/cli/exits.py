"""Exit codes: what a script learns from how a command ended."""

from collections.abc import Iterable
from enum import IntEnum

from cloudwhale.spi import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cloudwhale.model.job import Job


class Exit(IntEnum):
    """Every code that is not a followed job's own; the README prints this list."""

    DONE = 0
    TROUBLE = 1
    """Something outside cloudwhale is in the way: the database, the mailbox, a doctor's check."""
    WRONG_USAGE = 2
    BUG = 70
    BAD_JOB_FILE = 110
    NOTHING_CAN_RUN_IT = 111
    OVER_BUDGET = 112
    DEADLINE = 113
    RETRIES_SPENT = 114
    REFUSED = 115
    CANCELLED = 116
    SIGNAL = 128
    """Plus the signal's number: a follower was told to go, and its jobs run on."""


class NotFound(errors.CloudwhaleError):
    """Nothing here has the name that was asked for."""


class Bug(errors.CloudwhaleError):
    """cloudwhale itself is wrong; where the trace is has been said already."""


class WrongUsage(errors.CloudwhaleError):
    """The options do not go together."""


_BY_ERROR: tuple[tuple[type[errors.CloudwhaleError], Exit], ...] = (
    (Bug, Exit.BUG),
    (errors.NothingCanRunIt, Exit.NOTHING_CAN_RUN_IT),
    (errors.OverBudget, Exit.OVER_BUDGET),
    (errors.DeadlineImpossible, Exit.DEADLINE),
    (errors.SpecError, Exit.BAD_JOB_FILE),
    (errors.SettingsError, Exit.WRONG_USAGE),
    (WrongUsage, Exit.WRONG_USAGE),
    (NotFound, Exit.WRONG_USAGE),
    (errors.Denied, Exit.REFUSED),
    (errors.QuotaExceeded, Exit.REFUSED),
)

_BY_REASON: dict[str, Exit] = {
    "nothing-fits": Exit.NOTHING_CAN_RUN_IT,
    "over-budget": Exit.OVER_BUDGET,
    "soft-line": Exit.OVER_BUDGET,
    "would-strand-started-work": Exit.OVER_BUDGET,
    "deadline-passed": Exit.DEADLINE,
    "too-late": Exit.DEADLINE,
    "retries-spent": Exit.RETRIES_SPENT,
}


def for_error(error: errors.CloudwhaleError) -> Exit:
    """Return the code for an error that ended a command."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.TROUBLE)


def for_jobs(jobs: Iterable["Job"]) -> int:
    """Return the code of the first job that did not complete, 0 when all did.

    First is by the time it ended; a job that is set aside for a person counts as last.
    """
    bad = [job for job in jobs if job.state != "completed"]
    if not bad:
        return Exit.DONE
    return for_job(min(bad, key=lambda job: job.ended_at or float("inf")))


def for_job(job: "Job") -> int:
    """Return the code of one job."""
    if job.state == "completed":
        return Exit.DONE
    if job.state == "cancelled":
        return Exit.CANCELLED
    by_reason = _BY_REASON.get(job.reason.code) if job.reason else None
    return by_reason or job.exit_code or Exit.TROUBLE
