"""What a job or a run cost, line by line."""

from decimal import Decimal

from cloudwhale.model.reason import Reason
from cloudwhale.model.value import Value


class JobReceipt(Value):
    """One job's part of a receipt; keys are those that every `--json` uses."""

    id: str
    name: str
    project: str
    state: str
    reason: Reason | None
    attempt: int
    node: str | None
    devices: tuple[str, ...]
    exit_code: int | None
    spent_usd: Decimal
    submitted_at: str | None
    started_at: str | None
    ended_at: str | None
    run_s: float
    wait_s: float
    lost_work_s: float
    interruptions: int


class RunReceipt(Value):
    """What a run cost."""

    run: str
    jobs: tuple[JobReceipt, ...]
    spent_usd: Decimal
    budget_usd: Decimal | None
    lost_work_s: float
    interruptions: int
