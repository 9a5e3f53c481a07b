"""What the end of an attempt means for its job: finished, retried, failed, set aside or gone."""

from dataclasses import dataclass

from cloudwhale.model import event as e
from cloudwhale.model.job import Ending, Job, Peaks, RetryCause, Wish
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.planning.growth import GROWS_MOST, OF_MEMORY, Grown, growth
from cloudwhale.planning.next_machines import OF_MACHINES, has_saved

GOES_ON = (Code.LEASE_ENDS, Code.BRINGS_HOME, Code.SWITCHES, Code.HOPS)
"""Why a job may be stopped for its own sake; else it gives way to others."""


@dataclass(frozen=True, slots=True)
class End:
    """How an attempt ended, as its agent saw it."""

    attempt: int
    how: Ending
    exit_code: int | None
    says: str
    unsaved_s: Seconds
    ran_s: Seconds | None = None
    """None when nobody measured it."""
    peaks: Peaks = Peaks()
    device_gib: GiB | None = None
    """Nominal memory of the smallest device that it had; None: it had none, or nobody knows."""
    is_taken: bool = False
    """Whether its provider takes the machine away: then its agent has stopped it by itself."""


_CODES: dict[Ending, Code] = {
    "exited": Code.COMMAND_FAILED,
    "stopped": Code.COMMAND_FAILED,
    "not-found": Code.COMMAND_NOT_FOUND,
    "setup-failed": Code.SETUP_FAILED,
    "oom": Code.OUT_OF_MEMORY,
    "disk-full": Code.DISK_FULL,
    "shim-lost": Code.SHIM_LOST,
    "restore-failed": Code.RESTORE_FAILED,
    "start-failed": Code.START_FAILED,
    "gpu-outgrown": Code.GPU_OUTGROWN,
    "gpu-oom": Code.GPU_OUT_OF_MEMORY,
    "device-lost": Code.DEVICE_LOST,
    "no-gpus": Code.NO_GPUS_INSIDE,
    "image-refused": Code.IMAGE_REFUSED,
    "runtime-lost": Code.RUNTIME_LOST,
    "inputs-refused": Code.INPUTS_REFUSED,
}

_CAUSES: dict[Ending, RetryCause] = {
    "exited": RetryCause.ERROR,
    "stopped": RetryCause.PREEMPTION,
    "setup-failed": RetryCause.ERROR,
    "not-found": RetryCause.ERROR,
    "disk-full": RetryCause.ERROR,
    "oom": RetryCause.OOM,
    "shim-lost": RetryCause.NODE_LOSS,
    "restore-failed": RetryCause.NODE_LOSS,
    "start-failed": RetryCause.NODE_LOSS,
    "gpu-outgrown": RetryCause.OOM,
    "gpu-oom": RetryCause.OOM,
    "device-lost": RetryCause.NODE_LOSS,
    "no-gpus": RetryCause.NODE_LOSS,
    "image-refused": RetryCause.ERROR,
    "runtime-lost": RetryCause.NODE_LOSS,
    "inputs-refused": RetryCause.ERROR,
}

_REMEDIES: dict[Code, str] = {
    Code.COMMAND_FAILED: "see `cloudwhale logs {job}`; retry.on: [error] would try it again",
    Code.COMMAND_NOT_FOUND: "install it in `setup`, or give its whole path in `command`",
    Code.SETUP_FAILED: "see `cloudwhale logs {job}`; mend `setup`",
    Code.OUT_OF_MEMORY: "ask for more in resources.memory",
    Code.GPU_OUTGROWN: "ask for more in resources.gpu.memory, or for GPUs of its own",
    Code.GPU_OUT_OF_MEMORY: "ask for more in resources.gpu.memory, or make the job smaller",
    Code.DEVICE_LOST: "nothing, once another GPU is free; see `dmesg` on the node",
    Code.DISK_FULL: "free disk on the node, or ask for resources.disk so that another is chosen",
    Code.SHIM_LOST: "nothing: somebody killed the process that watches the job",
    Code.RESTORE_FAILED: "nothing: the next try restores again; see `cloudwhale logs {job}`",
    Code.START_FAILED: "see the agent's log on the node",
    Code.INPUTS_REFUSED: "correct `inputs` of the job, or let the machines read what they name",
}


def meaning(job: Job, end: End, at: Instant) -> e.Leaves:
    """Return the event that the end of the job's attempt leads to."""
    return _meaning(job, end, at).but(ran_s=end.ran_s, peaks=end.peaks)


def _meaning(job: Job, end: End, at: Instant) -> e.Leaves:
    if end.how == "exited" and end.exit_code == 0:
        return e.Finished(at=at, job=job.id, attempt=end.attempt)
    if job.wish is Wish.CANCEL:
        return e.Cancelled(at=at, job=job.id, reason=_asked(Code.USER_ASKED, job, end))
    if job.wish is Wish.PAUSE:
        return e.Paused(at=at, job=job.id, reason=_asked(Code.PAUSED, job, end))
    if job.wish is Wish.LIMIT:
        return _over_limit(job, end, at)
    if end.is_taken and end.how == "stopped":
        return _taken(job, end, at)
    if job.wish is Wish.GIVE_WAY and not end.is_taken:
        reason = Reason(code=Code.PREEMPTED, says="gave way", change="room for it becomes free")
        if job.reason is not None and job.reason.code in GOES_ON:
            reason = job.reason
        return e.GaveWay(
            at=at, job=job.id, attempt=end.attempt, reason=reason, lost_s=end.unsaved_s
        )
    if end.how in OF_MEMORY and job.spec.retry.max > 0:
        return _grown(job, end, at) or _failed_or_retried(job, end, at)
    return _failed_or_retried(job, end, at)


def _grown(job: Job, end: End, at: Instant) -> e.Failed | e.Retried | None:
    """Start it again with more memory, at once: waiting would change nothing.

    None when nobody knows how much it had or used: then its retry rule decides.
    """
    found = growth(job, end.how, end.peaks, end.device_gib)
    if found is None:
        return None
    code, says = _CODES[end.how], end.says or f"its process ended with {end.exit_code}"
    if isinstance(found, Grown) and job.grows < GROWS_MOST:
        reason = Reason(
            code=code,
            says=f"{says}; {found.says}, growth {job.grows + 1} of {GROWS_MOST}",
            change="a place that has so much",
        )
        return e.Retried(
            at=at, job=job.id, attempt=end.attempt, exit_code=end.exit_code, reason=reason,
            not_before=at, lost_s=end.unsaved_s, grown=found.wants,
        )  # fmt: skip
    if isinstance(found, Grown):
        says, change = f"{says}; it has grown {job.grows} times", _remedy(code, job)
    else:
        says, change = f"{says}; {found.says}", found.change
    reason = Reason(code=code, says=says, change=change)
    return e.Failed(
        at=at, job=job.id, attempt=end.attempt, exit_code=end.exit_code, reason=reason
    )  # fmt: skip


def _asked(code: Code, job: Job, end: End) -> Reason:
    code_text = "" if end.exit_code is None else f"; its process ended with {end.exit_code}"
    is_paused = code is Code.PAUSED
    change = f"`cloudwhale resume {job.id}` queues it again" if is_paused else ""
    what = "paused" if is_paused else "cancelled"
    return Reason(code=code, says=f"{what}, as asked{code_text}", change=change)


def _over_limit(job: Job, end: End, at: Instant) -> e.Failed:
    reason = Reason(
        code=Code.MAX_DURATION,
        says=f"ran for its max_duration of {job.spec.max_duration_s or 0:g} s and was stopped",
        change="raise max_duration and submit it again",
    )
    return e.Failed(at=at, job=job.id, attempt=end.attempt, exit_code=end.exit_code, reason=reason)


def _taken(job: Job, end: End, at: Instant) -> e.GaveWay | e.Failed | e.Retried:
    """What was saved is progress, and the job goes on at once; else its retry rule decides."""
    if not has_saved(job):
        return _failed_or_retried(job, end, at)
    saved = "" if job.checkpoint is None else f" with {job.checkpoint.name}"
    reason = Reason(
        code=Code.TAKEN_AWAY,
        says=f"its machine is taken away; it has stopped{saved}, {end.unsaved_s:.0f} s are lost",
        change="a place on another machine",
    )
    return e.GaveWay(at=at, job=job.id, attempt=end.attempt, reason=reason, lost_s=end.unsaved_s)


def _failed_or_retried(job: Job, end: End, at: Instant) -> e.Failed | e.Retried:
    cause = _CAUSES[end.how]
    code = _CODES[end.how]
    says = end.says or f"its process ended with {end.exit_code}"
    rule = job.spec.retry
    if end.is_taken and end.how == "stopped":
        code, says = Code.TAKEN_AWAY, "its machine is taken away, and nothing was saved"
    elif cause in OF_MACHINES & set(rule.on) and rule.max > 0 and has_saved(job):
        return _interrupted(job, end, at, Reason(code=code, says=says))
    if cause in rule.on and job.retries < rule.max:
        reason = Reason(
            code=code,
            says=f"{says}; retry {job.retries + 1} of {rule.max} in {rule.backoff_s:g} s",
            change="the wait ends",
        )
        return e.Retried(
            at=at, job=job.id, attempt=end.attempt, exit_code=end.exit_code, reason=reason,
            not_before=at + rule.backoff_s, lost_s=end.unsaved_s,
        )  # fmt: skip
    if cause in rule.on and rule.max > 0:
        code, says = Code.RETRIES_SPENT, f"{says}; all {rule.max} retries are spent"
    reason = Reason(code=code, says=says, change=_remedy(code, job))
    return e.Failed(
        at=at, job=job.id, attempt=end.attempt, exit_code=end.exit_code, reason=reason
    )  # fmt: skip


def _interrupted(job: Job, end: End, at: Instant, reason: Reason) -> e.Retried:
    """It has saved something, so this costs no retry, and no wait if it ran for as long as that.

    A machine on which nothing runs for long is not tried again at once, however often.
    """
    backoff_s = job.spec.retry.backoff_s
    ran_briefly = end.ran_s is not None and end.ran_s < backoff_s
    says = f"{reason.says}; what it has saved is kept"
    return e.Retried(
        at=at, job=job.id, attempt=end.attempt, exit_code=end.exit_code,
        reason=reason.but(says=says, change="a place that has room"),
        not_before=at + backoff_s if ran_briefly else at, lost_s=end.unsaved_s, counts=False,
    )  # fmt: skip


def _remedy(code: Code, job: Job) -> str:
    return _REMEDIES.get(code, "see `cloudwhale logs {job}`").format(job=job.id)
