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
    provider: str | None
    market: str | None
    """`local` on owned machines; None while the job has no place."""
    region: str | None
    zone: str | None
    price_usd_h: Decimal | None
    """Of the machine it is on; None for owned ones, which have no hourly price."""
    exit_code: int | None
    spent_usd: Decimal
    reserved_usd: Decimal
    budget_usd: Decimal | None
    saved_usd: Decimal | None
    """Against the same job on demand; None while no price to compare with is known."""
    wasted_usd: Decimal
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
