"""The rule about who shares a rented machine catches five planted faults, and no honest plan."""

import pytest
from clouding import an_offer
from makers import a_job, a_world

from cloudwhale.model import plan as p
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import World
from cloudwhale.planning import checker, checker_company
from cloudwhale.planning.rules import Patience, Rules

RULES = Rules(patience=Patience(attempt_lease_s=100.0, clock_skew_s=10.0))
WHY = Reason(code=Code.RENTED, says="because")
LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
JOBS = {
    "plain": ("reef", None), "boxed": ("reef", "net:1"), "plain-too": ("reef", None),
    "deep": ("deep", None), "deep-boxed": ("deep", "net:1"),
}  # fmt: skip


def world() -> World:
    return a_world(
        [a_job(name, project=project, image=image) for name, (project, image) in JOBS.items()]
    )


def rental(*jobs: str) -> Rental:
    return Rental(
        id="rent-1-1", node="rent-1-1", payer="run-1", offer="big", lease=LEASE, taken=an_offer(),
        reserved=micro_usd(1), jobs={name: JOBS.get(name, ("gone",))[0] or "" for name in jobs},
    )  # fmt: skip


def rents(*jobs: str) -> p.Plan:
    step = p.Rent(rental=rental(*jobs), reason=WHY, seats=(), cost=micro_usd(1))
    return p.Plan(version=0, steps=(step,))


def joins(job: str, *others: str) -> p.Plan:
    step = p.Join(rental=rental(job, *others), job=job, projects={}, reason=WHY)
    return p.Plan(version=0, steps=(step,))


FAULTS = [
    rents("plain", "deep"),
    rents("plain", "plain-too", "deep-boxed"),
    rents("boxed", "deep"),
    joins("deep", "boxed"),
    joins("deep-boxed", "boxed", "plain"),
]
HONEST = [
    rents("plain", "plain-too", "boxed"),
    rents("boxed", "deep-boxed"),
    rents("deep"),
    joins("deep-boxed", "boxed"),
    joins("plain", "plain-too", "long-gone"),
]


def caught(made: p.Plan) -> set[str]:
    return {fault.rule for fault in checker.check(made, world(), RULES)}


@pytest.mark.parametrize("made", FAULTS)
def test_a_process_beside_a_job_of_another_project_is_caught(made: p.Plan) -> None:
    assert "company" in caught(made)


@pytest.mark.parametrize("made", HONEST)
def test_containers_and_jobs_of_one_project_may_share(made: p.Plan) -> None:
    assert "company" not in caught(made)


def test_no_other_rule_stands_in_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = tuple(rule for rule in checker.RULES if rule is not checker_company.company)
    monkeypatch.setattr(checker, "RULES", rest)
    assert all("company" not in caught(made) for made in FAULTS)
