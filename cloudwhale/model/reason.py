"""Why something was decided, in a code from a closed list and a sentence with numbers."""

from enum import StrEnum

from cloudwhale.model.value import Value


class Code(StrEnum):
    """Every reason that a decision can carry; the README prints this list."""

    # placed
    PLACED = "placed"
    RESUMES = "resumes"
    SIZED = "sized"  # asks for what its family was seen to use
    AGED = "aged"  # goes before all others: it has waited for too long
    # why not on this node (refusals)
    NO_SUCH_GPU = "no-such-gpu"
    GPU_MEMORY = "gpu-memory"
    GPU_SHARE = "gpu-share"
    GPU_COUNT = "gpu-count"
    CPU = "cpu"
    MEMORY = "memory"
    DISK = "disk"
    LABELS = "labels"
    EXCLUDED = "excluded"
    MOUNTS = "mounts"
    RUNTIME = "runtime"
    MARKET = "market"
    NODE_NOT_READY = "node-not-ready"
    NODE_DRAINS = "node-drains"
    GPU_IN_USE = "gpu-in-use"  # somebody outside of cloudwhale uses the device, as measured
    KEPT_FREE = "kept-free"  # reserved for an older, larger job
    GANG = "gang"
    # why still waiting
    NO_NODES = "no-nodes"
    NO_ROOM_NOW = "no-room-now"
    NOTHING_FITS = "nothing-fits"
    WAITS_FOR_JOB = "waits-for-job"
    BACKOFF = "backoff"
    RECOVERING = "recovering"
    STANDS_BEHIND = "stands-behind"  # nobody passes who stands before it and does not fit yet
    HELD = "held"  # a better place becomes free soon
    MAKES_ROOM = "makes-room"  # jobs of lower priority give way to it
    WAITS_FOR_START = "waits-for-start"  # its start here is near enough to be waited for
    BETTER_RENTED = "better-rented"  # to wait for a start here costs more than to rent
    # why parked, failed or stopped
    DEPENDENCY_FAILED = "dependency-failed"
    DEADLINE_PASSED = "deadline-passed"
    MAX_DURATION = "max-duration"
    RETRIES_SPENT = "retries-spent"
    SECRET_MISSING = "secret-missing"
    COMMAND_FAILED = "command-failed"
    COMMAND_NOT_FOUND = "command-not-found"
    SETUP_FAILED = "setup-failed"
    OUT_OF_MEMORY = "out-of-memory"
    DISK_FULL = "disk-full"
    NODE_LOST = "node-lost"
    SHIM_LOST = "shim-lost"
    RESTORE_FAILED = "restore-failed"
    START_FAILED = "start-failed"
    USER_ASKED = "user-asked"
    PAUSED = "paused"
    PREEMPTED = "preempted"
    GPU_OUTGROWN = "gpu-outgrown"
    GPU_OUT_OF_MEMORY = "gpu-out-of-memory"
    DEVICE_LOST = "device-lost"
    NO_GPUS_INSIDE = "no-gpus-inside"
    IMAGE_REFUSED = "image-refused"
    INPUTS_REFUSED = "inputs-refused"
    RUNTIME_LOST = "runtime-lost"
    # money
    OVER_BUDGET = "over-budget"
    SOFT_LINE = "soft-line"
    WOULD_STRAND_STARTED_WORK = "would-strand-started-work"
    WORTH = "worth-less"  # others of its night are worth more a dollar
    # nights
    NIGHT = "night"  # outside of its night's hours
    LEFT_OVER = "left-over"  # its night has closed, and it is not done
    # rented machines
    QUOTA = "quota"  # the provider lets us have no more of these machines
    TOO_LATE = "too-late"  # nothing that can be rented would be done by its deadline
    OUT_OF_EFFORT = "solver-out-of-effort"  # a simpler choice of machines had to do
    RENTED = "rented"  # a machine is on its way for it
    JOINS = "joins"  # it goes onto a machine that its run has rented already
    NO_CAPACITY = "no-capacity"
    BOOT_FAILED = "boot-failed"
    MACHINE_GONE = "machine-gone"
    LEASE_ENDS = "lease-ends"
    SWITCHES = "switches"  # it goes on on on-demand, as spot might miss its deadline
    HOPS = "hops"  # it goes on on its next machine, as the stop of the one it has cannot be moved
    BRINGS_HOME = "brings-home"  # it goes on on a machine of ours, so that a rented one goes back
    RETURNED = "returned"
    TAKEN_AWAY = "taken-away"  # its provider takes the machine, or may take it
    BOOTED = "booted"  # a machine came up where others had not
    CIRCUIT_OPEN = "circuit-open"  # nothing is launched there for a while: machines did not boot
    NEEDS_ATTENTION = "needs-attention"  # its provider does not end a machine; a person must look
    LEFTOVER_REMOVED = "leftover-removed"  # something of ours belonged to no machine any more
    LEFTOVER_STAYS = "leftover-stays"  # it cannot be removed now, and is tried again
    NO_STOP = "no-stop"  # who has the machines does not end them by itself, nor do they
    INSTALLATION = "installation"  # under which name machines are rented
    # notes
    CHECKPOINT_LATE = "checkpoint-late"
    DEADLINE_MISSED = "deadline-missed"  # it passed while the job runs, which goes on
    STALE_ATTEMPT = "stale-attempt"
    STALE_FENCE = "stale-fence"
    CHECKPOINT_DROPPED = "checkpoint-dropped"
    LOG_SHORTENED = "log-shortened"
    OUTPUTS_DROPPED = "outputs-dropped"
    INPUTS_FETCHED = "inputs-fetched"
    TRANSFERS = "transfers"  # how far a long transfer of inputs or outputs is
    CLOCK_WENT_BACK = "clock-went-back"
    MAIL_MISSING = "mail-missing"  # documents of a mailbox were deleted unread
    CLOCK_DIFFERS = "clock-differs"
    NAME_TAKEN = "name-taken"  # two agents want to be one node
    IMAGE_PULLED = "image-pulled"
    GREW = "grew"
    CANNOT_ACT = "cannot-act"
    PLAN_REFUSED = "plan-refused"
    FINISHED = "finished"


class Reason(Value):
    """Why, with the numbers, and what would change it."""

    code: Code
    says: str
    change: str = ""
    """What a person (or time) could change so that the decision differs; empty when nothing."""


class Refusal(Value):
    """Why a job cannot be at a place; `can_wait` tells "not now" from "never"."""

    code: Code
    says: str
    can_wait: bool
    change: str = ""
    shortfall: float = 0.0
    """How far off, as a fraction of what was asked: the nearest miss is the smallest."""
