"""A case is a file: a world, then the steps and reasons that the planner must give for it.

`order: together` puts all jobs into one class. `beats_every_order: true`: whichever order the jobs
are given to the match in one by one, as many places or a lower total come out.
"""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml
from makers import a_world

from cloudwhale import plugins
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.plan import Plan
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, Sighting, Use, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.packing import Packing, pack
from cloudwhale.planning.planner import Policies, plan
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale.spi.policy import Queueing

FILES = sorted(Path(__file__).parent.glob("*.yaml"))
PATIENCE = Patience(attempt_lease_s=100.0, clock_skew_s=10.0)
DEFAULT_FACTS = {"cpu": 2.0, "memory_gib": 16.0, "disk_gib": 100.0}
DEFAULT_OFFER = {"provider": "cloud", "region": "r", "zone": "r-a", "market": "on-demand"}


class Together:
    """All jobs in one class."""

    ages = False
    strict = False
    displaces = False

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        return [tuple(sorted(jobs, key=lambda job: (job.submitted_at, job.id)))]

    def next_change_s(self, job: Job, queueing: Queueing) -> None:
        return None


def policies_of(case: dict[str, Any]) -> Policies:
    order = case.get("order", "priority")
    return Policies(
        order=Together() if order == "together" else plugins.load(plugins.ORDERS, order)(),
        score=plugins.load(plugins.SCORES, case.get("score", "best-fit"))(),
        rules=Rules.model_validate({"patience": PATIENCE, **case.get("rules", {})}),
        wait=plugins.load(plugins.WAITS, case["wait"])() if "wait" in case else None,
        rent=plugins.load(plugins.RENTS, case["rent"])() if "rent" in case else None,
    )


def world_of(case: dict[str, Any]) -> World:
    now = float(case.get("now", 0.0))
    nodes: list[Node] = []
    heard: dict[str, Sighting] = {}
    for name, row in case.get("nodes", {}).items():
        row = dict(row or {})
        sighting = {"heard_at": row.pop("heard_at", now), "agent_alive": row.pop("alive", None)}
        sighting["measured"] = row.pop("measured", None)
        heard[name] = Sighting.model_validate({"node": name, **sighting})
        row["facts"] = DEFAULT_FACTS | row.get("facts", {})
        nodes.append(Node.model_validate({"id": name, "state": NodeState.READY, **row}))
    jobs: list[Job] = []
    for name, row in case.get("jobs", {}).items():
        row = dict(row or {})
        spec = {"name": name, "command": "true", **row.pop("spec", {})}
        base = {"id": name, "run": "run-1", "submitted_at": 0.0, "spec": spec}
        jobs.append(Job.model_validate(base | row))
    return a_world(
        jobs,
        nodes,
        now=now,
        ended=case.get("ended", {}),
        sightings=heard,
        offers=tuple(
            Offer.model_validate({**DEFAULT_OFFER, "id": name, **row})
            for name, row in case.get("offers", {}).items()
        ),
        accounts={
            name: Account(payer=name, limit=micro_usd(limit))
            for name, limit in case.get("budgets", {}).items()
        },
        rentals={
            name: Rental.model_validate({"id": name, "node": name, "payer": "run-1", **row})
            for name, row in case.get("rentals", {}).items()
        },
        use={name: Use(device_s=used, at=now) for name, used in case.get("use", {}).items()},
    )


def lines_of(made: Plan) -> list[str]:
    """Write each step as a person would say it: `place a on host: placed`."""
    lines: list[str] = []
    for step in made.steps:
        fields = step.model_dump(mode="json")
        whom = fields.get("job") or fields.get("node")
        words = [fields["kind"], whom or " ".join(fields["rental"]["jobs"])]
        if "placement" in fields:
            words += ["on", fields["placement"]["node"], *fields["placement"]["devices"]]
        code = fields["reason"]["code"] if "reason" in fields else ""
        lines.append(" ".join(words) + (f": {code}" if code else ""))
    return lines


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_planner_decides_as_the_case_says(file: Path) -> None:
    case = yaml.safe_load(file.read_text())
    policies = policies_of(case)
    world = world_of(case)
    made = plan(world, policies)
    assert lines_of(made) == case["expect"]["steps"], case["says"]
    assert check(made, world, policies.rules) == ()
    says = {getattr(s, "job", ""): s.reason.says for s in made.steps if hasattr(s, "reason")}
    if "look_again_at" in case["expect"]:
        assert made.look_again_at == case["expect"]["look_again_at"]
    for job, sentence in case["expect"].get("says", {}).items():
        assert says[job] == sentence


@pytest.mark.parametrize(
    "file", [f for f in FILES if "beats_every_order" in f.read_text()], ids=lambda file: file.stem
)
def test_no_order_of_taking_the_best_place_one_by_one_does_as_well(file: Path) -> None:
    case = yaml.safe_load(file.read_text())
    world, score = world_of(case), policies_of(case).score
    given = Packing(now=world.now, free=free_capacity(world.nodes.values(), ()), score=score)
    jobs = list(world.jobs.values())

    def outcome(classes: Sequence[Sequence[Job]]) -> tuple[int, float]:
        totals = [d.chosen.total for _, d in pack(classes, given).places if d.chosen is not None]
        return len(totals), sum(totals)

    together = outcome([jobs])
    one_by_one = [outcome([[job] for job in some]) for some in permutations(jobs)]
    assert len(one_by_one) > 1
    assert all(together > (count, total + 1e-3) for count, total in one_by_one), one_by_one


def test_there_are_cases() -> None:
    assert len(FILES) >= 8
